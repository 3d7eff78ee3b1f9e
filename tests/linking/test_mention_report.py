"""Linking over mentions against sets of (document, span, entity)."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.linking import mention_report
from vbterrier.settings import Inference

COLUMNS = ["docno", "start", "end", "entity_id"]
FEW = Inference(n_resamples=20)
# Random answers need not have an entity of gold.
FOREIGN = pytest.mark.filterwarnings("ignore:.*no answer is an entity of gold:vbterrier.errors.DegenerateWarning")
# Few positions and entities, so that spans are equal, overlap and differ.
SPANS = st.dictionaries(
    st.tuples(st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 6), st.integers(1, 3)),
    st.sampled_from(["Q1", "Q2", "NIL", "<NIL>"]),
    min_size=1,
    max_size=12,
)
KEPT = {
    "Link": lambda entity: entity[0] == "Q",
    "Nil": lambda entity: entity[0] != "Q",
    "All": lambda _: True,
    "Span": lambda _: True,
}


def frame(spans):
    return pd.DataFrame([(d, s, s + n, e) for (d, s, n), e in spans.items()], columns=COLUMNS)


def items(spans, kind):
    """Neleval's sets: spans and entities of the mentions that a measure counts."""
    plain = {key: "NIL" if "NIL" in entity else entity for key, entity in spans.items()}
    return {(*key, "" if kind == "Span" else entity) for key, entity in plain.items() if KEPT[kind](entity)}


def of_sets(gold, system):
    right = len(gold & system)
    p, r = (right / len(each) if each else np.nan for each in (system, gold))
    return p, r, 2 * right / (len(gold) + len(system)) if gold or system else np.nan


@FOREIGN
@given(gold=SPANS, system=SPANS)
@pytest.mark.slow
def test_strong_match_is_that_of_sets(gold, system):
    docs = {key[0] for key in gold}
    if not docs & {key[0] for key in system}:
        return
    systems = {"mine": frame(system)}
    micro = mention_report(systems, frame(gold), inference=FEW).figures().loc["mine"]
    macro = mention_report(systems, frame(gold), average="macro", inference=FEW).figures().loc["mine"]
    for kind in KEPT:
        expected, result = items(gold, kind), items(system, kind)
        np.testing.assert_allclose(micro[[f"{kind}{each}" for each in ("P", "R", "F1")]], of_sets(expected, result))
        rows = []
        for doc in docs | {key[0] for key in system}:
            one, two = ({item for item in each if item[0] == doc} for each in (expected, result))
            rows.append((1.0, 1.0, 1.0) if not one and not two else np.nan_to_num(of_sets(one, two)))
        np.testing.assert_allclose(macro[[f"{kind}{each}" for each in ("P", "R", "F1")]], np.mean(rows, axis=0))


def pairs_of(gold, system):
    """Weak match as stated: equal spans, then the first free gold mention that a prediction overlaps."""
    free, taken = sorted(gold), []
    for span in sorted(system):
        if span in gold:
            free.remove(span)
            taken.append((span, span))
    for doc, start, end in sorted(system):
        if (doc, start, end) in gold:
            continue
        over = [(d, s, e) for d, s, e in free if d == doc and s < end and start < e]
        if over:
            free.remove(over[0])
            taken.append((over[0], (doc, start, end)))
    return taken


@FOREIGN
@given(gold=SPANS, system=SPANS)
def test_weak_match_pairs_overlapping_spans_once(gold, system):
    if not {key[0] for key in gold} & {key[0] for key in system}:
        return
    report = mention_report({"mine": frame(system)}, frame(gold), match="weak", inference=FEW)
    counts = report.counts.set_index("kind")
    for kind in KEPT:
        one, two = ({(d, s, s + n): entity for d, s, n, entity in items(each, kind)} for each in (gold, system))
        right = sum(one[a] == two[b] for a, b in pairs_of(one, two))
        assert counts.loc[kind, ["gold", "predicted", "right"]].tolist() == [len(one), len(two), right]


def test_spans_that_touch_do_not_overlap():
    gold = frame({("d1", 0, 6): "Q1", ("d1", 1, 1): "Q1"})
    system = frame({("d1", 2, 2): "Q1", ("d1", 2, 3): "Q1"})
    counts = mention_report({"mine": system}, gold, match="weak", inference=FEW).counts
    assert counts["right"].tolist() == [1, 0, 1, 1]


def test_spurious_spans_count_in_precision():
    gold = frame({("d1", 0, 5): "Q1", ("d1", 10, 4): "Q2"})
    system = frame({("d1", 0, 5): "http://www.wikidata.org/entity/Q1", ("d1", 30, 4): "wd:Q9", ("d9", 0, 1): "Q7"})
    value = mention_report({"mine": system}, gold, inference=FEW).figures().loc["mine"]
    assert value[["LinkP", "LinkR", "LinkF1", "SpanP"]].tolist() == pytest.approx([1 / 3, 1 / 2, 2 / 5, 1 / 3])
    assert np.isnan(value["NilP"])


def test_the_best_candidate_of_a_span_is_its_answer():
    gold = frame({("d1", 0, 5): "Q1"})
    two = pd.DataFrame([("d1", 0, 5, "Q2", 0.4), ("d1", 0, 5, "Q1", 0.6)], columns=[*COLUMNS, "score"])
    assert mention_report({"a": two, "b": two[::-1]}, gold, inference=FEW).figures()["LinkF1"].tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match=r"system 'a': mention 'd1:0-5' has two entities; keep one, or add"):
        mention_report({"a": two.drop(columns="score")}, gold)


CANDIDATES = st.dictionaries(
    st.tuples(st.sampled_from(["d1", "d2"]), st.sampled_from([0, 4, 8]), st.just(2)),
    st.lists(st.sampled_from(["Q1", "Q2", "Q3", "NIL"]), min_size=1, max_size=4, unique=True),
    min_size=1,
    max_size=6,
)


@FOREIGN
@given(gold=CANDIDATES, system=CANDIDATES, n_best=st.integers(1, 4), is_scored=st.booleans())
@pytest.mark.slow
def test_any_of_the_first_candidates_may_be_right(gold, system, n_best, is_scored):
    gold = {span: entities[0] for span, entities in gold.items()}
    if not {key[0] for key in gold} & {key[0] for key in system}:
        return
    rows = [(d, s, s + n, e, 1 - at / 10) for (d, s, n), each in system.items() for at, e in enumerate(each)]
    mine = pd.DataFrame(rows, columns=[*COLUMNS, "score"])
    # Candidates with scores may be in any order; others are best first.
    mine = mine[::-1] if is_scored else mine.assign(score=np.nan)
    row = mention_report({"mine": mine}, frame(gold), n_best=n_best, inference=FEW).figures().loc["mine"]
    for kind, keeps in KEPT.items():
        expected = {span for span, entity in gold.items() if keeps(entity)}
        predicted = {span for span, entities in system.items() if keeps(entities[0])}
        right = sum(kind == "Span" or gold[span] in system[span][:n_best] for span in expected & predicted)
        p, r = (right / len(each) if each else np.nan for each in (predicted, expected))
        np.testing.assert_allclose(row[[f"{kind}P", f"{kind}R"]], (p, r))


@FOREIGN
def test_candidates_of_hipe_are_those_of_its_scorer(tmp_path, command):
    """Links between | in the order of the cell; gold standards have the link of the first word of a mention."""
    head = (
        "TOKEN\tNE-COARSE-LIT\tNEL-LIT\n# document_id = d1\nParis\tB-loc\t{}\nx\tO\t_\nBonn\tB-loc\t{}\nam\tI-loc\t{}\n"
    )
    gold, mine = tmp_path / "gold.tsv", tmp_path / "mine.tsv"
    gold.write_text(head.format("Q90", "Q586", "Q1"))
    mine.write_text(head.format("Q1|Q90|Q2", "Q5|Q6|Q586", "Q5|Q6|Q586"))
    for n_best, value in ((1, 0.0), (2, 0.5), (3, 1.0)):
        with pytest.warns(DegenerateWarning, match="words with different links"):
            report = mention_report({"mine": mine}, gold, n_best=n_best, inference=FEW)
        assert report.figures().loc["mine", "AllF1"] == value
        code, out, _ = command("link", mine, "-g", gold, "--match", "strong", "--n-best", n_best, "-f", "csv")
        assert code == 0
        assert f"mine,AllF1,{value}" in out
    code, _, err = command("link", mine, "-g", gold, "--n-best", 2)
    assert (code, "--n-best applies to --match" in err) == (2, True)
    with pytest.raises(ParameterError, match="n_best=0: wanted a whole number of at least 1"):
        mention_report({"mine": mine}, gold, n_best=0)


def test_files_are_read_and_intervals_are_of_ratios_of_sums(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text("".join(f"d{n}\t0\t4\tQ{n + 1}\nd{n}\t9\t12\tNIL\n" for n in range(30)))
    mine = frame({(f"d{n}", 0, 5): f"Q{n + 1 + (n % 3 == 0)}" for n in range(30)})
    report = mention_report({"mine": mine}, path)
    row = report.to_frame().set_index("measure").loc["LinkF1"]
    assert (row["value"], row["n_qids"]) == (pytest.approx(2 / 3), 30)
    assert 0.4 < row["low"] < 2 / 3 < row["high"] < 0.9
    assert report.intervals[["low", "high"]].max(axis=None) <= 1


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (frame({("d9", 0, 5): "Q1"}), "system 'a': no document in common with gold: it has 'd9', gold has 'd1'"),
        (frame({("d1", -1, 0): "Q1"}), r"row 0 \(document 'd1'\) has start -1 and end -1, wanted 0 <= start < end"),
        (frame({("d1", 0, 5): "dbr:Paris"}), "'dbr:Paris' is of dbpedia, wanted ids of wikidata"),
        (
            frame({("d1", 0, 5): "Q1"}).assign(qid="d1:w0-5"),
            "system 'a': offsets count words, those of gold characters; wanted one unit",
        ),
    ],
)
def test_mentions_that_cannot_be_compared_are_refused(system, message):
    gold = frame({("d1", 0, 5): "Q1"}).assign(qid="d1:0-5")
    with pytest.raises(InputError, match=message):
        mention_report({"a": system}, gold)


def test_no_mentions_and_unknown_options():
    gold = frame({("d1", 0, 5): "Q1"})
    with pytest.raises(InputError, match="gold: no rows"):
        mention_report({"a": gold}, gold.iloc[:0])
    with pytest.warns(DegenerateWarning, match="system 'a': no mentions; none of 1 mentions of gold is found"):
        assert mention_report({"a": gold.iloc[:0]}, gold, inference=FEW).figures()["LinkR"].item() == 0
    with pytest.raises(ParameterError, match="match='fuzzy': wanted one of 'strong', 'weak'"):
        mention_report({"a": gold}, gold, match="fuzzy")


def test_links_of_another_spelling_or_of_other_ids_are_reported():
    gold = pd.DataFrame([("d1", 0, 5, "Michael Jordan"), ("d1", 10, 15, "Paris")], columns=COLUMNS)
    for entities, message, f1 in (
        (["Michael_Jordan", "Paris"], "1 answers differ from those of gold only in case, .* write ids alike", 0.5),
        (["Q41421", "Q90"], "no answer is an entity of gold: it has 'Q41421', 'Q90'; gold has .* check", 0),
        ([41421, 90], "no answer is an entity of gold: it has '41421', '90'; gold has .* check", 0),
    ):
        with pytest.warns(DegenerateWarning, match=f"system 's': {message}"):
            figures = mention_report({"s": gold.assign(entity_id=entities)}, gold).to_frame()
        assert figures.set_index("measure")["value"]["LinkF1"] == f1


def test_a_fraction_as_offset_has_the_remedy_of_offsets():
    gold = pd.DataFrame([("d1", 0, 5, "Paris")], columns=COLUMNS)
    with pytest.raises(InputError, match=r"system 's' column 'start': row 0 holds 0.5, wanted a whole number; repair"):
        mention_report({"s": gold.assign(start=0.5)}, gold)
