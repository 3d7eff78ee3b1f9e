"""Precision and recall of tags against documents that people labelled."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier import register_tags
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.intents.tagging_quality import tag_quality


def tags(*rows, columns=("docno", "entity_id")):
    return pd.DataFrame(rows, columns=list(columns))


GOLD = tags(("x", "A"), ("x", "B"), ("y", "A"), ("z", "C"))
TAGS = tags(("x", "A"), ("x", "C"), ("y", "A"), ("elsewhere", "A"))


def test_counts_and_rates_by_hand():
    quality = tag_quality(TAGS, GOLD)
    assert (quality.n_documents, quality.n_tags, quality.n_gold, quality.n_correct) == (3, 3, 4, 2)
    assert quality.micro == pytest.approx((2 / 3, 2 / 4, 4 / 7))
    rates = quality.documents.set_index("docno")[["precision", "recall", "f1"]].T.to_dict("list")
    assert rates == {"x": [0.5] * 3, "y": [1.0] * 3, "z": [0.0] * 3}
    assert quality.macro == pytest.approx((0.5, 0.5, 0.5))
    assert quality.entities.to_numpy().tolist()[:2] == [["A", 2, 2, 2, 1, 1, 1], ["C", 1, 1, 0, 0, 0, 0]]
    assert quality.entities.iloc[2].tolist()[:4] == ["B", 0, 1, 0]
    assert math.isnan(quality.entities.iloc[2]["precision"])


def test_a_document_of_the_sample_without_gold_tags_counts_for_precision():
    with_empty = tag_quality(TAGS, GOLD, documents=["x", "y", "z", "elsewhere", "quiet"])
    assert with_empty.micro == pytest.approx((2 / 4, 2 / 4, 2 / 4))
    assert with_empty.macro == pytest.approx((0.5, 0.5, 0.5))
    assert with_empty.n_documents == 5
    rates = with_empty.documents.set_index("docno")["precision"]
    assert (rates["elsewhere"], rates["quiet"]) == (0.0, 1.0)
    weightless = pd.concat([GOLD.assign(weight=1.0), tags(("elsewhere", "A")).assign(weight=0.0)])
    assert tag_quality(TAGS, weightless).micro == with_empty.micro


def test_tags_count_once_and_only_with_weight():
    twice = pd.concat([TAGS, TAGS.iloc[:2]]).assign(weight=[0.1, 0.0, 1, 1, 0.5, 0.0])
    for name, frame in (("quality tags", twice), ("quality gold", GOLD)):
        register_tags(name, frame, replace=True)
    assert tag_quality("quality tags", "quality gold").micro == pytest.approx((1.0, 0.5, 2 / 3))


def test_tags_by_tie_have_a_precision_of_their_own():
    # The tag of A in x is repeated, once by a score; the last document is not of the sample.
    result = tags(("x", "A"), ("x", "A"), ("x", "C"), ("y", "A"), ("z", "D"), ("elsewhere", "A"))
    quality = tag_quality(result.assign(tied=[1, 0, 1, 1, 1, 1], n_abstained=0), GOLD)
    assert quality.decisions.to_numpy().tolist() == [["score", 1, 1, 1.0], ["tie", 3, 1, pytest.approx(1 / 3)]]
    assert "3 tags by a tie, precision 0.3333" in repr(quality)
    assert quality.micro == tag_quality(result, GOLD).micro
    assert not len(tag_quality(result, GOLD).decisions)
    none = tag_quality(result.assign(tied=0), GOLD).decisions
    assert none["n_tags"].tolist() == [4, 0]
    assert math.isnan(none["precision"].iloc[1])


def test_tags_of_queries_are_compared_by_query():
    columns = ("qid", "docno", "entity_id")
    gold = tags(("a", "x", "A"), ("b", "x", "B"), columns=columns)
    result = tags(("a", "x", "A"), ("b", "x", "A"), columns=columns)
    assert tag_quality(result, gold).micro == pytest.approx((0.5, 0.5, 0.5))
    assert tag_quality(result, gold, documents=pd.DataFrame({"qid": ["b"], "docno": ["x"]})).micro == (0.0, 0.0, 0.0)


def test_no_tags_at_all_have_no_precision():
    with pytest.warns(DegenerateWarning, match="no document of the sample has tags: 'elsewhere' against 'x', 'y', 'z'"):
        quality = tag_quality(TAGS.iloc[3:], GOLD)
    assert math.isnan(quality.micro.precision)
    assert quality.micro[1:] == (0.0, 0.0)
    assert quality.macro == (0.0, 0.0, 0.0)
    intervals = quality.intervals(n_resamples=10).set_index(["measure", "method"])
    assert intervals.loc[("micro precision", "documents (percentile)"), ["low", "high"]].isna().all()
    assert ("micro precision", "tags (wilson)") not in intervals.index


@pytest.mark.parametrize(
    ("tagged", "gold", "options", "message"),
    [
        (TAGS.assign(qid="a"), GOLD, {}, "only tags have a column qid"),
        (TAGS, GOLD.assign(qid="a"), {}, "gold have a column qid"),
        (TAGS.assign(docno=[1, 2, 3, 4]), GOLD, {}, "tags column 'docno' holds integers, gold column 'docno' holds"),
        (TAGS, GOLD.assign(entity_id=[1, 2, 3, 4]), {}, "gold column 'entity_id' holds integers"),
        (TAGS, GOLD, {"documents": [1]}, "documents column 'docno' holds integers"),
        (TAGS, GOLD, {"documents": "x"}, "wanted ids or a frame"),
        (TAGS, GOLD, {"documents": []}, "the sample has no document"),
        (TAGS, GOLD.iloc[:0], {}, "the sample has no document"),
        (TAGS.drop(columns="docno"), GOLD, {}, "tags: wanted columns docno, entity_id; missing docno"),
    ],
)
def test_what_cannot_be_compared_is_refused(tagged, gold, options, message):
    with pytest.raises(InputError, match=message):
        tag_quality(tagged, gold, **options)


PAIRS = st.sets(st.tuples(st.sampled_from("vwxyz"), st.sampled_from("ABC")), max_size=12)


@pytest.mark.filterwarnings("ignore:no document of the sample")
@settings(deadline=None, max_examples=100)
@given(PAIRS, PAIRS, st.sets(st.sampled_from("vwxyz"), min_size=1))
def test_rates_are_those_of_plain_loops(tagged, gold, sample):
    quality = tag_quality(tags(*sorted(tagged)), tags(*sorted(gold)), documents=sorted(sample))
    correct = n_tags = n_gold = 0
    by_document = []
    for docno in sample:
        entities, right = ({entity for of, entity in pairs if of == docno} for pairs in (tagged, gold))
        correct, n_tags, n_gold = correct + len(entities & right), n_tags + len(entities), n_gold + len(right)
        if not entities and not right:
            by_document.append((1.0, 1.0, 1.0))
        elif not entities & right:
            by_document.append((0.0, 0.0, 0.0))
        else:
            precision, recall = len(entities & right) / len(entities), len(entities & right) / len(right)
            by_document.append((precision, recall, 2 * precision * recall / (precision + recall)))
    assert quality.macro == pytest.approx(tuple(np.mean(by_document, axis=0)), abs=1e-12)
    micro = [
        correct / n_tags if n_tags else math.nan,
        correct / n_gold if n_gold else math.nan,
        2 * correct / (n_tags + n_gold) if n_tags + n_gold else math.nan,
    ]
    assert list(quality.micro) == pytest.approx(micro, abs=1e-12, nan_ok=True)


def drawn(n_documents, seed):
    """Tags of documents, of which some are hard: what is right in one document goes together."""
    draw = np.random.default_rng(seed)
    rows, gold = [], []
    for docno in range(n_documents):
        skill = draw.beta(2, 1)
        for entity in range(draw.integers(1, 6)):
            gold.append((f"d{docno}", f"E{entity}"))
            rows.append((f"d{docno}", f"E{entity}" if draw.random() < skill else f"wrong {entity}"))
    return tags(*rows), tags(*gold)


def test_wilson_is_the_textbook_formula_and_resamples_are_of_whole_documents():
    quality = tag_quality(*drawn(60, 1))
    table = quality.intervals(n_resamples=4000).set_index(["measure", "method"])
    p, n, z = quality.micro.precision, quality.n_tags, stats.norm.ppf(0.975)
    middle, reach = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    wilson = table.loc[("micro precision", "tags (wilson)")]
    assert wilson[["low", "high"]].tolist() == pytest.approx(
        [(middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)], abs=1e-9
    )
    by_document = table.xs("documents (percentile)", level="method")
    assert by_document["value"].tolist() == pytest.approx([*quality.micro, *quality.macro])
    correct, total = quality.documents["n_correct"], quality.documents["n_tags"]
    peer = stats.bootstrap(
        (correct.to_numpy(), total.to_numpy()),
        lambda correct, total, axis: correct.sum(axis) / total.sum(axis),
        paired=True,
        method="percentile",
        n_resamples=4000,
        random_state=np.random.default_rng(5),
    ).confidence_interval
    assert by_document.loc["micro precision", ["low", "high"]].tolist() == pytest.approx(list(peer), abs=0.01)
    mean = stats.norm.interval(0.95, *stats.norm.fit(quality.documents["precision"]))
    reach = (mean[1] - mean[0]) / 2 / math.sqrt(60)
    expected = [quality.macro.precision - reach, quality.macro.precision + reach]
    assert by_document.loc["macro precision", ["low", "high"]].tolist() == pytest.approx(expected, abs=0.02)
    assert np.ptp(by_document.loc["micro precision", ["low", "high"]]) > np.ptp(wilson[["low", "high"]])


def test_the_same_seed_gives_the_same_intervals_whatever_the_batch(monkeypatch):
    quality = tag_quality(*drawn(30, 2))
    first = quality.intervals(seed=3, n_resamples=200)
    monkeypatch.setattr("vbterrier.intents.tagging_quality.BLOCK_CELLS", 300)
    pd.testing.assert_frame_equal(quality.intervals(seed=3, n_resamples=200), first)
    assert not quality.intervals(seed=4, n_resamples=200).equals(first)


def test_one_document_says_nothing_about_others():
    quality = tag_quality(TAGS, GOLD, documents=["x"])
    with pytest.warns(DegenerateWarning, match="needs at least two"):
        table = quality.intervals(n_resamples=5)
    assert table.loc[table["method"] == "documents (percentile)", ["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"n_resamples": 0}, {"seed": -1}, {"seed": 0.5}])
def test_intervals_of_nothing_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        tag_quality(TAGS, GOLD).intervals(**options)


@pytest.mark.parametrize(
    ("linker", "expected"), [("wat", (0.7058, 0.6084, 0.6535)), ("genre", (0.8700, 0.8518, 0.8608))]
)
def test_real_linkers_against_gold(shared_data, linker, expected):
    linked = {}
    for name in ("gold", linker):
        path = shared_data / "aida_ambiguous_labels" / f"links.{name}.jsonl.gz"
        entries = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        # NIL and unmapped mentions are no entities.
        nothing = {"<NIL>", "<NO_MAPPING>"}
        linked[name] = {entry["doc"]: {link[2] for link in entry["links"]} - nothing for entry in entries}
    gold, result = linked["gold"], linked[linker]
    rows = [[(docno, one) for docno, entities in of.items() for one in sorted(entities)] for of in (result, gold)]
    frames = [tags(*of) for of in rows]
    quality = tag_quality(*frames, documents=list(gold))
    correct = sum(len(gold[docno] & result[docno]) for docno in gold)
    precision = correct / sum(len(result[docno]) for docno in gold)
    recall = correct / sum(len(entities) for entities in gold.values())
    assert quality.n_documents == 447
    assert quality.micro == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)), abs=1e-12)
    assert quality.micro == pytest.approx(expected, abs=5e-5)
    per_entity = quality.entities.set_index("entity_id")
    entity = per_entity.index[0]
    both = [docno for docno in gold if entity in gold[docno] and entity in result[docno]]
    assert per_entity.loc[entity, "n_correct"] == len(both)
    assert per_entity.loc[entity, "n_gold"] == max(
        sum(name in entities for entities in gold.values()) for name in per_entity.index[:20]
    )


def test_the_sample_may_be_ids_or_a_frame_or_a_column_of_one():
    gold = tags(("d1", "A"), ("d2", "B"))
    ids = ["d1", "d3"]
    polars = pytest.importorskip("polars")
    for sample in (ids, pd.Series(ids), polars.Series(ids), pd.DataFrame({"docno": [*ids, "d1"]})):
        quality = tag_quality(gold, gold, documents=sample)
        assert (quality.documents["docno"].tolist(), quality.n_documents) == (ids, 2)
