"""Declarations at their edges: parameters given twice, odd numbers, batches without intents, empty columns."""

import functools

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier import (
    BNDCG,
    ES,
    VB,
    DegenerateWarning,
    InputError,
    ParameterError,
    measures_from,
    register_intents,
    register_tags,
)
from vbterrier.intents.coverage import Intents
from vbterrier.intents.sources import from_diversity
from vbterrier.kernels import rankings
from vbterrier.kernels.vb import per_topic

INTENTS = pd.DataFrame({"query_id": ["a", "a", "b", "b"], "entity_id": ["A", "B"] * 2, "prob": [0.75, 0.25] * 2})
RUN = pd.DataFrame(
    {"query_id": list("abbbb"), "doc_id": list("vwxyz"), "score": [1.0, 4, 3, 2, 1], "entity_id": list("ABBBB")}
)


def values(measure, target=INTENTS, run=RUN):
    return {metric.query_id: metric.value for metric in measure.iter_calc(target, run)}


def test_p2_without_a_cutoff_a_topic_does_not_depend_on_the_lists_of_others():
    alone = [frame[frame["query_id"] == "a"] for frame in (INTENTS, RUN)]
    register_tags("p2", pd.DataFrame({"docno": ["v", "k", "l"], "entity_id": "A"}), replace=True)
    known = 0.75 / (1 + 1 / np.log2(3) + 0.5)
    assert values(ES(gain="dcg", tags="p2"))["a"] == pytest.approx(known, abs=1e-12)
    assert values(ES(gain="dcg", tags="p2"), *alone)["a"] == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("alpha", [float("inf"), 10**400])
def test_p3_a_weight_that_is_not_finite_is_refused(alpha):
    with pytest.raises(ParameterError, match="wanted a number of at least 0"):
        VB(alpha=alpha)


def test_p3_minus_zero_is_zero():
    assert VB(alpha=-0.0) == VB(alpha=0)


def test_p4_a_run_without_any_tag_scores_zero_whatever_its_column_is_made_of():
    assert values(VB @ 5, run=RUN.assign(entity_id=np.nan)) == {"a": 0.0, "b": 0.0}
    register_tags("p4", pd.DataFrame({"docno": [], "entity_id": []}), replace=True)
    with pytest.warns(DegenerateWarning, match="tags: no rows"):
        assert values(VB(tags="p4") @ 5) == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@True", "cutoff True: wanted a whole number"),
        ("VB(alpha=1,alpha=2)@10", "'alpha' is given twice"),
        ("VB(cutoff=5)@10", "'cutoff' is given twice"),
        ("BNDCG(prior={[]:1})@10", "values are numbers"),
    ],
)
def test_p5_text_that_is_no_measure(text, message):
    with pytest.raises(ParameterError, match=message):
        measures_from(text)


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


def test_p7_two_labels_of_one_document_for_one_subtopic_are_refused():
    qrels = pd.DataFrame({"qid": "a", "iteration": ["1", "1", "2"], "docno": ["x", "x", "y"], "label": [1, 0, 1]})
    with pytest.raises(InputError, match="document 'x' of query 'a' has two labels for iteration '1'"):
        from_diversity(qrels)


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


def test_p10_a_row_of_minus_one_reads_nothing():
    rows = np.array([[0, -1]])
    assert rankings.n_tied(np.ones(1, dtype=np.float32), rows, np.array([0]), np.array([1])) == 0


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
    for policy, mean in (("skip", 1.0), ("zero", 1 / 3)):
        measure = VB(intents="p13", undefined=policy) @ 10
        table = pt.Experiment([system], TOPICS, QRELS, [measure], names=["x"], batch_size=1)
        assert table[repr(measure)].tolist() == pytest.approx([mean])
    with pytest.raises(InputError, match="have none of the topics"):
        pt.Experiment([system], TOPICS, QRELS, [VB(intents="p13") @ 10], names=["x"], batch_size=1)


def test_p14_a_percentile_has_one_name():
    assert BNDCG(stat="q05") == BNDCG(stat="q5.0") == BNDCG(stat="q5")
    assert repr(BNDCG(stat="q97.50")) == "BNDCG(stat='q97.5')"
