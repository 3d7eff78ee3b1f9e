"""Declarations at their edges: parameters given twice, odd numbers, batches without intents, empty columns."""

import functools
import re
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier import BNDCG, ES, VB, register_intents, register_tags, score
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames import ranking
from vbterrier.intents.coverage import Intents
from vbterrier.intents.sources import from_diversity
from vbterrier.kernels.vb import per_topic
from vbterrier.unjudged import distribution

INTENTS = pd.DataFrame({"query_id": ["a", "a", "b", "b"], "entity_id": ["A", "B"] * 2, "prob": [0.75, 0.25] * 2})
RUN = pd.DataFrame(
    {"query_id": list("abbbb"), "doc_id": list("vwxyz"), "score": [1.0, 4, 3, 2, 1], "entity_id": list("ABBBB")}
)


def values(measure, target=INTENTS, run=RUN):
    return {metric.query_id: metric.value for metric in measure.iter_calc(target, run)}


def test_p2_without_a_cutoff_a_topic_does_not_depend_on_the_lists_of_others():
    alone = [frame[frame["query_id"] == "a"] for frame in (INTENTS, RUN)]
    register_tags("p2", pd.DataFrame({"docno": ["v", "k", "l"], "entity_id": "A"}), replace=True)
    expected = 0.75 / (1 + 1 / np.log2(3) + 0.5)
    assert values(ES(gain="dcg", tags="p2"))["a"] == pytest.approx(expected, abs=1e-12)
    assert values(ES(gain="dcg", tags="p2"), *alone)["a"] == pytest.approx(expected, abs=1e-12)


def test_p4_a_run_without_any_tag_scores_zero_whatever_its_column_is_made_of():
    assert values(VB @ 5, run=RUN.assign(entity_id=np.nan)) == {"a": 0.0, "b": 0.0}
    register_tags("p4", pd.DataFrame({"docno": [], "entity_id": []}), replace=True)
    with pytest.warns(DegenerateWarning, match="tags: no rows"):
        assert values(VB(tags="p4") @ 5) == {"a": 0.0, "b": 0.0}


def test_p6_the_wrapper_of_another_package_is_not_taken_for_ours(monkeypatch):
    theirs = ir_measures.parse_trec_measure

    @functools.wraps(theirs)
    def wrapper(name):
        return theirs(name)

    monkeypatch.setattr(ir_measures, "parse_trec_measure", wrapper)
    vbterrier.enable_string_measures(enabled=False)
    assert ir_measures.parse_trec_measure is wrapper
    vbterrier.enable_string_measures()
    assert ir_measures.parse_trec_measure("VB@10") == [VB @ 10]
    vbterrier.enable_string_measures(enabled=False)
    assert ir_measures.parse_trec_measure is wrapper


def test_p7_two_labels_of_one_document_for_one_subtopic_are_refused_by_measures_of_others_too():
    qrels = pd.DataFrame({"qid": "a", "iteration": [*"1222"], "docno": [*"xxyy"], "label": [1, 0, 1, 0]})
    with pytest.raises(InputError, match="document 'y' of query 'a' has two labels for iteration '2'"):
        from_diversity(qrels)
    with pytest.raises(InputError, match="document 'y' of query 'a' has several labels for subtopic '2'"):
        score(run_of(a=["x"]), qrels, ["alpha_nDCG@10"])


def test_p8_adhoc_judgments_are_no_tags_of_named_intents():
    register_intents("p8", INTENTS.rename(columns={"query_id": "qid"}), replace=True)
    adhoc = pd.DataFrame({"query_id": ["a", "b"], "doc_id": ["v", "w"], "relevance": 1, "iteration": "0"})
    with pytest.raises(InputError, match="found no tags"):
        values(ES(intents="p8") @ 5, adhoc, RUN.drop(columns="entity_id"))


def test_p9_numbered_queries_of_tags_never_meet_text_in_silence():
    register_tags("p9", pd.DataFrame({"qid": [1], "docno": ["v"], "entity_id": ["A"]}), replace=True)
    renamed = [frame.replace({"query_id": {"a": "01", "b": "02"}}) for frame in (INTENTS, RUN)]
    with pytest.raises(InputError, match="tags column 'qid' holds integers"):
        values(ES(tags="p9") @ 5, *renamed)


def test_p11_no_intents_have_sums_of_zero():
    assert per_topic(np.empty(0), np.empty(0, dtype=np.int64), 2).tolist() == [0.0, 0.0]
    assert per_topic(np.empty((3, 0)), np.empty(0, dtype=np.int64), 2).tolist() == [[0.0, 0.0]] * 3
    assert Intents(pd.DataFrame({"qid": [], "entity_id": [], "prob": []})).topics == []


QRELS = pd.DataFrame({"qid": ["a", "b", "c"], "docno": ["v", "w", "x"], "label": 1})
TOPICS = pd.DataFrame({"qid": ["a", "b", "c"], "query": "x"})
SYSTEM = pd.DataFrame({"qid": ["a", "b", "c"], "docno": ["v", "w", "x"], "score": 1.0, "entity_id": ["A", "B", "C"]})


def test_p13_a_batch_of_topics_without_intents_is_left_out_or_zero_as_asked():
    register_intents("p13", pd.DataFrame({"qid": ["b"], "entity_id": ["B"], "prob": [1.0]}), replace=True)
    system = pt.Transformer.from_df(SYSTEM)
    skip, zero = (VB(intents="p13", undefined=policy) @ 10 for policy in ("skip", "zero"))
    table = pt.Experiment([system], TOPICS, QRELS, [zero], names=["x"], batch_size=1)
    assert table[repr(zero)].tolist() == pytest.approx([1 / 3])
    with pytest.raises(InputError, match=r"undefined for 1 of 1 topics \('a'\), and this host averages all topics"):
        pt.Experiment([system], TOPICS, QRELS, [skip], names=["x"], batch_size=1)
    with pytest.warns(DegenerateWarning) as told:
        table = vbterrier.Experiment([system], TOPICS, QRELS, [skip, zero], names=["x"], batch_size=1)
    assert any(f"(of 3 topics): {skip} of 'x': 2" in str(one.message) for one in told)
    assert table[[repr(skip), repr(zero)]].to_numpy() == pytest.approx(np.array([[1.0, 1 / 3]]))
    with pytest.raises(InputError, match="have none of the topics"):
        pt.Experiment([system], TOPICS, QRELS, [VB(intents="p13") @ 10], names=["x"], batch_size=1)


# Odd but legal evaluations, and odd ones that are refused, found by looking for them.


# The intervals of single topics are undefined and not tested here.
pytestmark = pytest.mark.filterwarnings("ignore:an interval over topics")


def qrels_of(*rows):
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def run_of(**lists):
    rows = [(qid, docno, -float(rank)) for qid, docnos in lists.items() for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def test_topics_left_out_beside_another_measure_are_counted_for_each_measure():
    vbterrier.register_intents("only q1", pd.DataFrame({"qid": ["q1"], "entity_id": ["A"], "prob": [1.0]}))
    vbterrier.register_tags("only a", pd.DataFrame({"docno": ["a"], "entity_id": ["A"]}))
    qrels, run = qrels_of(("q1", "a", 1), ("q2", "b", 1), ("q2", "c", 0)), run_of(q1=["a"], q2=["b"])
    skipping = ES(intents="only q1", tags="only a", undefined="skip") @ 2
    with pytest.warns(DegenerateWarning, match="1 topic is not in intents"):
        result = score(run, qrels, [skipping, BNDCG @ 2])
    assert result.intervals.groupby("measure")["n_qids"].max().to_dict() == {str(skipping): 1, "BNDCG@2": 2}


def test_one_list_far_longer_than_the_others_asks_for_a_cutoff(monkeypatch):
    monkeypatch.setattr(ranking, "MAX_PLACES", 10)
    run, qrels = (
        run_of(q1=[f"d{i}" for i in range(9)], q2=["a"]),
        qrels_of(("q1", "d1", 1), ("q1", "d2", 0), ("q2", "a", 1)),
    )
    with pytest.raises(
        InputError,
        match=r"2 topics and a list of 9 documents exceed the limit of [\d,]+ places of a table; give a cutoff",
    ):
        score(run, qrels, [BNDCG])
    assert len(score(run, qrels, [BNDCG @ 3]).values) == 2
    assert len(vbterrier.frames.ranked(run)) == 10, "a flat ranking needs no table"


@pytest.mark.parametrize("strength", [2.0, float("inf")])
def test_distributions_with_more_atoms_than_can_be_listed_still_answer_quantiles(monkeypatch, strength):
    run = run_of(q1=[f"u{i}" for i in range(6)])
    qrels = qrels_of(*(("q1", f"j{i}", i % 4) for i in range(60)))
    result = vbterrier.unjudged.bootstrap_distribution(run, qrels, prior="pool", prior_strength=strength)
    assert len(result.atoms("q1")[0]) > 1
    monkeypatch.setattr(distribution, "MOST_ATOMS", 1)
    with pytest.raises(ParameterError, match="more than the 1 that can be listed; ask for quantiles"):
        result.atoms("q1")
    assert np.isfinite(result.median).all()


# Runs of which nothing is judged, in the hands of hosts that cannot refuse them.


QRELS_OF_ID_MISMATCH = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["d1", "caf\u00e9"], "relevance": [1, 0]})


def scored(*ids):
    run = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": ids, "score": 1.0})
    return ir_measures.calc_aggregate([BNDCG(prior="pool") @ 10], QRELS_OF_ID_MISMATCH, run)


MISWRITTEN = [("1", "2"), ("d1 ", "x"), ("x", "cafe\u0301"), ("\u00a0d1", "x"), ("D1", "n")]


@pytest.mark.parametrize("ids", [*MISWRITTEN, ("new", "other"), ("d1", "d1 ")])
def test_ids_that_are_written_otherwise_are_said_and_documents_that_are_new_are_not(ids):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        scored(*ids)
    words = r"run: none of its documents is judged: it has .*; qrels has 'd1', 'caf"
    assert [bool(re.match(words, str(one.message))) for one in record] == [True] * (ids in MISWRITTEN)


def test_a_judged_document_below_the_cutoff_shows_that_ids_are_written_alike():
    run = pd.DataFrame({"query_id": "q1", "doc_id": ["D1", "n", "d1"], "score": [3.0, 2.0, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ir_measures.calc_aggregate([BNDCG(prior="pool") @ 1], QRELS_OF_ID_MISMATCH, run)
    with pytest.warns(DegenerateWarning, match="none of its documents is judged"):
        ir_measures.calc_aggregate([BNDCG(prior="pool") @ 1], QRELS_OF_ID_MISMATCH, run.iloc[:2])
