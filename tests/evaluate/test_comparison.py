"""Comparisons of systems: inputs, errors, suspect runs, and letters."""

import re
import warnings
from dataclasses import replace
from itertools import combinations

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.comparison import Comparison, compare
from vbterrier.settings import Data, Inference
from vbterrier.stats.comparisons import COLUMNS, comparisons
from vbterrier.stats.paired_tests import TESTS
from vbterrier.stats.topic_intervals import intervals

TOPICS = [f"q{at}" for at in range(8)]
# Three systems by hand: b is a - 0.1 everywhere, c is a and b in turn.
A = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
B = [value - 0.1 for value in A]
C = [value - 0.1 * (at % 2) for at, value in enumerate(A)]


def frame(measure="nDCG@10", **systems):
    parts = [pd.DataFrame({"name": name, "qid": TOPICS[: len(of)], "value": of}) for name, of in systems.items()]
    return pd.concat(parts, ignore_index=True).assign(measure=measure)[["name", "qid", "measure", "value"]]


VALUES = frame(b=B, a=A, c=C)
FEW = Inference(n_resamples=300)
QRELS = pd.DataFrame(
    [(qid, docno, label) for qid in TOPICS for docno, label in (("d1", 2), ("d2", 1), ("d3", 0))],
    columns=["qid", "docno", "label"],
)


def run(order, topics=TOPICS):
    rows = [(qid, docno, -place) for qid in topics for place, docno in enumerate(order)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


RUNS = {"good": run(["d1", "d2", "d3"]), "bad": run(["d3", "d2", "d1"])}


def test_differences_letters_and_p_values_of_three_systems_by_hand():
    comparison = compare(VALUES, inference=Inference(test="randomisation"))
    pairs = comparison.pairs.set_index(["name_a", "name_b"])
    assert list(pairs.index) == [("a", "c"), ("a", "b"), ("c", "b")], "the higher mean first"
    assert pairs["diff"].tolist() == pytest.approx([0.05, 0.1, 0.05])
    assert pairs[["wins", "losses", "ties"]].to_numpy().tolist() == [[4, 0, 4], [8, 0, 0], [4, 0, 4]]
    # Of all 2^8 flips, those with 4 or 8 equal signs are as extreme.
    assert pairs["p_value"].tolist() == [2 / 16, 2 / 256, 2 / 16]
    # Of all flips, the largest statistic of the pairs is as large as those in 60, and of the first pair in 2.
    assert pairs["p_adjusted"].tolist() == pytest.approx([60 / 256, 2 / 256, 60 / 256])
    assert comparison.significant().tolist() == [False, True, False]
    assert comparison.systems[["name", "letters"]].to_numpy().tolist() == [["a", "a"], ["c", "ab"], ["b", "b"]]
    assert comparison.systems["value"].tolist() == pytest.approx([0.775, 0.725, 0.675])
    assert comparison.flags["flag"].tolist() == ["", "", ""]
    assert comparison.flags["n_missing"].isna().all()
    columns = "name measure value low high level method n_qids n_resamples seed letters"
    assert comparison.pairs.columns.tolist() == [*COLUMNS, "flag"]
    assert comparison.systems.columns.tolist() == columns.split()
    assert comparison.flags.columns.tolist() == ["name", "measure", "n_qids", "n_missing", "n_zero", "flag"]
    assert repr(comparison) == (
        "Comparison(3 systems, nDCG@10, 8 topics; sign-flip randomisation, max-T correction over 3 tests: 1 of 3 pairs "
        "differ at the level 0.05)"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"test": "wilcoxon", "correction": "bh"},
        {"test": "bootstrap", "correction": "max-t", "interval": "bca", "seed": 3},
        {"correction": "none", "level": 0.5, "margin": 0.07, "interval": "normal", "family": "all"},
    ],
)
def test_options_reach_tests_and_intervals(options):
    varied, b = [0.1, 0.3, 0.2, 0.5, 0.4, 0.9, 0.0, 0.3], [*B[:-1], 0.65]
    comparison = compare(frame(b=b, a=A, c=varied, d=C[::-1]), inference=replace(FEW, **options))
    settings_of_call = {**options, **FEW.explicit_settings()}
    method = settings_of_call.pop("interval", "unseen")
    ordered = frame(a=A, d=C[::-1], b=b, c=varied)
    pd.testing.assert_frame_equal(
        comparison.pairs.drop(columns="flag"), comparisons(ordered, **settings_of_call), check_dtype=False
    )
    kept = {key: settings_of_call[key] for key in ("level", "n_resamples", "seed") if key in settings_of_call}
    means = intervals(ordered, method=method, **kept)
    pd.testing.assert_frame_equal(comparison.systems.drop(columns="letters"), means, check_dtype=False)
    assert comparison.margin == options.get("margin")


def test_the_order_of_rows_systems_and_measures_changes_no_number():
    both = pd.concat([VALUES, VALUES.assign(measure="AP", value=VALUES["value"] ** 2)])
    result, other = (
        compare(both, inference=FEW),
        compare(both.sample(frac=1, random_state=1), inference=FEW),
    )
    for one in ("pairs", "systems", "flags"):
        key = ["measure", *getattr(result, one).columns[:2]]
        frames = [getattr(each, one).sort_values(key, ignore_index=True) for each in (result, other)]
        pd.testing.assert_frame_equal(*frames)
    alone = compare(VALUES, inference=FEW).pairs
    of_both = result.pairs[result.pairs["measure"] == "nDCG@10"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, of_both)


def test_runs_and_their_scores_give_the_same(tmp_path):
    measures = ["nDCG@10", "ENDCG@10"]
    comparison = compare(RUNS, QRELS, measures, inference=FEW)
    scored = vbterrier.score(RUNS, QRELS, measures)
    for other in (
        compare(scored, measures=measures, inference=FEW),
        compare(scored.values, measures=measures, inference=FEW),
    ):
        pd.testing.assert_frame_equal(other.pairs, comparison.pairs)
        pd.testing.assert_frame_equal(other.systems, comparison.systems)
    assert comparison.pairs["measure"].tolist() == measures
    assert comparison.flags["n_missing"].tolist() == [0, 0, 0, 0]
    one = vbterrier.ES @ 5
    intents = pd.DataFrame({"qid": TOPICS, "entity_id": "E", "prob": 1.0})
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["E", "F"]})
    without = {"good": RUNS["good"], "none": run(["d2", "d3"])}
    assert compare(without, measures=one, intents=intents, tags=tags, inference=FEW).pairs["diff"].tolist() == [1.0]


def test_measures_are_chosen_by_object_or_text_in_their_order():
    both = pd.concat([VALUES.assign(measure="VB@10"), VALUES.assign(measure="AP"), VALUES.assign(measure="mine")])
    for choice in (["AP", "VB@10"], [ir_measures.AP, vbterrier.VB @ 10], ["AP", "VB(alpha=1)@10"]):
        assert compare(both, measures=choice, inference=FEW).pairs["measure"].unique().tolist() == [
            "AP",
            "VB@10",
        ]
    # The range of "mine" is unknown.
    for measures, n_pairs in ((None, 9), ("mine", 3)):
        with pytest.warns(DegenerateWarning, match="3 of . intervals are withheld: method='unseen' needs"):
            assert len(compare(both, measures=measures, inference=FEW).pairs) == n_pairs
    assert compare(both, measures="mine", inference=Inference(interval="normal")).systems["low"].notna().all()
    with pytest.raises(ParameterError, match=r"no values of P@10; found 'VB@10', 'AP', 'mine'"):
        compare(both, measures=["P@10"])


def test_what_experiments_give_per_query_is_taken():
    topics = pd.DataFrame({"qid": TOPICS, "query": "x"})
    systems = [pt.Transformer.from_df(one.assign(rank=0)) for one in RUNS.values()]
    measures = [ir_measures.nDCG @ 10, "map", vbterrier.BNDCG @ 5]
    table = pt.Experiment(systems, topics, QRELS, measures, names=list(RUNS), perquery=True)
    comparison = compare(table, inference=FEW)
    assert sorted(comparison.pairs["measure"]) == ["BNDCG@5", "map", "nDCG@10"]
    pairs = compare(RUNS, QRELS, ["nDCG@10", "AP", "BNDCG@5"], inference=FEW).pairs.replace({"AP": "map"})
    frames = [each.sort_values("measure", ignore_index=True) for each in (comparison.pairs, pairs)]
    pd.testing.assert_frame_equal(*frames, check_dtype=False)


def test_a_baseline_is_compared_with_all_and_has_no_letters():
    comparison = compare(VALUES, baseline="c", inference=FEW)
    assert comparison.pairs[["name_a", "name_b"]].to_numpy().tolist() == [["a", "c"], ["b", "c"]]
    assert comparison.baseline == "c"
    assert set(comparison.systems["letters"]) == {""}
    with pytest.raises(ParameterError, match="baseline='d'"):
        compare(VALUES, baseline="d")


@settings(deadline=None, max_examples=40)
@drawn(
    st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=2, max_size=6),
    st.sampled_from([0.5, 0.8, 0.9]),
)
def test_systems_share_a_letter_exactly_when_their_pair_is_not_significant(table, level):
    # The t test warns of systems that differ by a constant.
    assume(all(len(set(np.subtract(a, b))) > 1 or a == b for a, b in combinations(table, 2)))
    values = frame(**{f"s{at}": [(1 + value) / 5 for value in one] for at, one in enumerate(table)})
    comparison = compare(values, inference=Inference(test="t", correction="none", interval="normal", level=level))
    shown = {
        name: set(re.findall(r"[a-z]\d*", text)) for name, text in comparison.systems[["name", "letters"]].to_numpy()
    }
    for a, b, significant in zip(
        comparison.pairs["name_a"], comparison.pairs["name_b"], comparison.significant(), strict=True
    ):
        assert bool(shown[a] & shown[b]) != significant


def test_a_p_at_the_level_is_significant():
    pairs = pd.DataFrame({"p_adjusted": [0.1, 0.100001], "level": 0.9})
    result = Comparison(pairs, pd.DataFrame(), pd.DataFrame())
    assert result.alpha == 0.1
    assert result.significant().tolist() == [True, False]


# Flags.


@pytest.mark.filterwarnings("ignore:.*which score as empty rankings:vbterrier.errors.DegenerateWarning")
def test_runs_that_retrieved_nothing_for_most_topics_are_flagged():
    runs = {**RUNS, "cut": run(["d1", "d2", "d3"], TOPICS[:3]), "half": run(["d1", "d2", "d3"], TOPICS[:4])}
    text = "cut retrieved nothing for 5 of 8 topics"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        comparison = compare(runs, QRELS, ["nDCG@10", "AP"], data=Data(on_topics="all"), inference=FEW)
    messages = [str(each.message) for each in warned]
    assert len([message for message in messages if text in message]) == 1
    # Those of the scores.
    assert len([message for message in messages if "which score as empty rankings" in message]) == 2
    flags = comparison.flags[comparison.flags["measure"] == "AP"].set_index("name")
    assert flags["n_missing"].to_dict() == {"good": 0, "bad": 0, "cut": 5, "half": 4}
    assert flags.index[flags["flag"] != ""].tolist() == ["cut"]
    with_cut = (comparison.pairs["name_a"] == "cut") | (comparison.pairs["name_b"] == "cut")
    assert (comparison.pairs["flag"] == np.where(with_cut, text, "")).all()
    assert "flagged: 'cut'" in repr(comparison)
    # Scores flag it, too.
    with pytest.warns(DegenerateWarning, match=text):
        compare(vbterrier.score(runs, QRELS, "AP", data=Data(on_topics="all")), inference=FEW)


SAME, HARD, NOTHING = [0.5] * 3 + [0.0] * 5, [0.9, 0.8, *[0.0] * 6], [0.0] * 8


@pytest.mark.parametrize(
    ("systems", "n_zero", "message"),
    [
        (
            {"a": A, "b": B, "cut": [0.9, 0.8, *[0.0] * 5, 0.8]},
            [0, 0, 5],
            "cut scores exactly 0 on 5 of the 8 topics on",
        ),
        # Half is not a majority, and topics on which all systems score 0 do not count.
        ({"a": A, "cut": [0.9, 0.8, 0.7, *[0.0] * 4, 0.8]}, [0, 4], None),
        ({"a": HARD, "b": HARD, "cut": [0.1, 0.2, *HARD[2:]]}, [0, 0, 0], None),
        # Empty runs do not vouch for each other.
        (
            {"a": A, "x": NOTHING, "y": NOTHING, "z": NOTHING},
            [0, 8, 8, 8],
            "x scores exactly 0 on 8 .*; y scores .*; z scores exactly 0 on 8",
        ),
        # A system that scores on most topics is not suspect.
        ({"a": [0.0, 0.0, *[0.5] * 6], "x": SAME, "y": SAME, "z": SAME}, [2, 0, 0, 0], None),
        ({"a": NOTHING, "b": NOTHING}, [0, 0], None),
    ],
)
def test_values_that_are_0_where_others_are_not_are_suspected(systems, n_zero, message):
    if message:
        with pytest.warns(DegenerateWarning, match=message):
            comparison = compare(frame(**systems), inference=FEW)
    else:
        comparison = compare(frame(**systems), inference=FEW)
    flags = comparison.flags.set_index("name").loc[list(systems)]
    assert flags["n_zero"].tolist() == n_zero
    suspects = {name for name, n in zip(systems, n_zero, strict=True) if message and n}
    assert set(flags.index[flags["flag"] != ""]) == suspects
    for pair in comparison.pairs.itertuples():
        assert pair.flag.count("scores exactly 0") == (pair.name_a in suspects) + (pair.name_b in suspects)


def test_measures_of_success_or_failure_are_no_reason_for_a_flag():
    # All systems score on 20 topics, each system alone on 30 others: 0 on most topics of other systems.
    solved = np.zeros((200, 4))
    solved[:20] = 1
    for at in range(4):
        solved[20 + 30 * at : 50 + 30 * at, at] = 1
    wide = pd.DataFrame(solved, columns=[*"abcd"]).assign(qid=[str(at) for at in range(200)])
    comparison = compare(wide.melt("qid", var_name="name").assign(measure="P@1"), inference=FEW)
    assert comparison.flags["flag"].eq("").all()


# Errors.


def test_different_topics_are_refused_with_both_counts_and_the_remedy():
    values = frame(a=A, b=B[:6])
    message = r"of nDCG@10, 'a' has 8 topics, 'b' has 6, and they differ in 'q6', 'q7': .*on_topics='common'.*0 where"
    with pytest.raises(InputError, match=message):
        compare(values)
    comparison = compare(values, data=Data(on_topics="common"), inference=FEW)
    pd.testing.assert_frame_equal(comparison.pairs, compare(frame(a=A[:6], b=B[:6]), inference=FEW).pairs)
    with pytest.raises(InputError, match="run 'good' has 8 of the 8 topics, run 'cut' has 3"):
        compare({"good": RUNS["good"], "cut": run(["d1"], TOPICS[:3])}, QRELS, ["AP"])


def test_as_many_topics_but_others_are_different_topics():
    values = frame(a=A, b=C)
    values.loc[values["name"] == "b", "qid"] = values["qid"].replace("q0", "q9")
    with pytest.raises(InputError, match="'a' has 8 topics, 'b' has 8, and they differ in 'q0', 'q9'"):
        compare(values)
    assert (compare(values, data=Data(on_topics="common"), inference=FEW).pairs["n_qids"] == 7).all()


def test_a_system_that_lacks_a_measure_is_refused():
    values = pd.concat([VALUES, frame("AP", a=A, b=B)])
    with pytest.raises(InputError, match="of AP, 'b' has 8 topics, 'c' has 0"):
        compare(values)
    with pytest.raises(InputError, match="of AP, no topic is common to all systems"):
        compare(values, data=Data(on_topics="common"))
    assert len(compare(values, measures="nDCG@10", inference=FEW).pairs) == 3


@pytest.mark.parametrize("measure", ["NumRet", "num_ret", "num_rel_ret", "NumRelRet(rel=2)", "DiscRatio@20"])
def test_measures_that_are_no_means_are_refused(measure):
    values = pd.concat([VALUES, VALUES.assign(measure=measure)])
    with pytest.raises(ParameterError, match=re.escape(measure) + ".* is not a mean over topics"):
        compare(values)
    assert len(compare(values, measures=["nDCG@10"], inference=FEW).pairs) == 3


def test_it_is_said_when_topics_are_too_few_for_any_p_to_be_significant():
    many = frame(**{f"s{at:02d}": np.roll(A, at) + at / 100 for at in range(8)})
    with pytest.warns(
        DegenerateWarning, match=r"sign flips of 8 topics, corrected for 28 pairs, leave no p below 0.22"
    ):
        compare(many, inference=Inference(test="randomisation", correction="holm"))
    with pytest.warns(DegenerateWarning, match="sign flips of 4 topics leave no p below 0.12"):
        compare(frame(a=A[:4], b=B[:4]), inference=Inference(test="randomisation"))
    # Signed ranks are flipped, too, even without correction.
    for options in ({"test": "wilcoxon"}, {"correction": "none"}, {"correction": "bh"}, {"correction": "max-t"}):
        with pytest.warns(DegenerateWarning, match="4 topics leave no p below 0.12: .* at the level 0.05; compare on"):
            compare(frame(a=A[:4], b=C[:4]), inference=Inference(**{"test": "randomisation", **options}))
    # 2/32 is significant at this level; other tests do not warn.
    compare(frame(a=A[:5], b=B[:5]), inference=Inference(test="randomisation", level=0.9))
    compare(many, baseline="s00", inference=Inference(test="randomisation", level=0.9))
    compare(many, inference=Inference(test="randomisation"))
    compare(many)
    compare(many, inference=Inference(test="t"))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_one_topic_tells_nothing_apart(test, correction):
    with pytest.warns(DegenerateWarning) as record:
        comparison = compare(frame(a=A[:1], b=B[:1]), inference=Inference(test=test, correction=correction, margin=0.2))
    assert any("needs at least two" in str(each.message) for each in record)
    assert comparison.pairs[["p_value", "p_adjusted"]].to_numpy().tolist() == [[1.0, 1.0]]
    assert comparison.pairs[["low", "high", "effect_size", "p_equivalence"]].isna().all(axis=None)
    assert not comparison.significant().any()


# Real runs.


def test_measures_that_are_undefined_for_all_topics_are_left_out_and_counted(tmp_path):
    links = pd.DataFrame({"qid": ["q1", "q2"], "docno": "a", "entity_id": "E", "label": 0, "rank": 1, "weight": 1.0})
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": "E", "score": 1.0})
    runs, measures = {"one": run, "other": run}, ["RelCov@5", "NonRelCov@5"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        scores = vbterrier.score(runs, links, measures)
    for arguments in ((runs, links, measures), (scores,), (scores, None, measures)):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            comparison = compare(*arguments)
        assert comparison.pairs["measure"].tolist() == ["NonRelCov@5"]
        left_out = "RelCov@5: undefined for all topics of all systems, and left out of the comparison"
        assert left_out in [str(one.message) for one in record]
    with pytest.raises(InputError, match=r"^RelCov@5: undefined for all topics of all systems; wanted another measure"):
        compare(scores, measures="RelCov@5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        page = vbterrier.write_report(runs, links, measures, path=tmp_path / "a.html")
        assert page.verdict[0].startswith("By NonRelCov@5")
        alone = vbterrier.write_report(runs, links, "RelCov@5", path=tmp_path / "a.html")
    assert alone.verdict[0] == "RelCov@5 is undefined for all topics of one."
