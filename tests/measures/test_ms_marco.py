"""The reciprocal rank of MS MARCO's tool beside that of trec_eval, which differ in the order of ties."""

import ir_measures
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR

import vbterrier
from vbterrier import Execution
from vbterrier.measures import MarcoRR

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

QRELS = pd.DataFrame([("q1", "b", 1), ("q2", "a", 2), ("q2", "c", 1)], columns=["qid", "docno", "label"])


def run_of(*rows):
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


@pytest.mark.parametrize(
    ("rows", "marco", "trec"),
    [
        # One tie: ascending a, b, c; descending c, b, a.
        ([("q1", "a", 1.0), ("q1", "b", 1.0), ("q1", "c", 1.0), ("q1", "d", 0.5)], 1 / 2, 1 / 2),
        ([("q1", "b", 1.0), ("q1", "c", 1.0)], 1, 1 / 2),
        ([("q1", "a", 1.0), ("q1", "b", 1.0)], 1 / 2, 1),
        # Equal in single precision alone.
        ([("q1", "c", 1.0 + 1e-12), ("q1", "b", 1.0)], 1 / 2, 1 / 2),
        ([("q1", "a", 1.0 + 1e-12), ("q1", "b", 1.0)], 1 / 2, 1),
    ],
)
def test_ties_by_hand(rows, marco, trec):
    means = vbterrier.score({"a": run_of(*rows)}, QRELS[:1], [MarcoRR @ 10, RR @ 10]).means()
    assert means.loc["a"].tolist() == [marco, trec]


def test_ties_beyond_the_cutoff_decide_which_documents_are_first():
    rows = [("q1", docno, 1.0) for docno in "abcdef"]
    means = vbterrier.score({"a": run_of(*rows)}, QRELS[:1], [MarcoRR @ 1, MarcoRR @ 2, RR @ 2]).means()
    assert means.loc["a"].tolist() == [0, 1 / 2, 0]


@given(
    st.lists(
        st.tuples(st.sampled_from(["q1", "q2"]), st.sampled_from("abcde"), st.sampled_from([1.0, 2.0, 1.0 + 1e-12])),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    st.sampled_from([1, 2, 3, 10]),
    st.sampled_from([1, 2]),
)
def test_values_are_those_of_the_tool(rows, cutoff, rel):
    run = run_of(*rows)
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    tool = ir_measures.providers.registry["msmarco"]
    there = tool.iter_calc([RR(rel=rel) @ cutoff], QRELS.rename(columns=names), run.rename(columns=names))
    here = vbterrier.score({"a": run}, QRELS, [MarcoRR(rel=rel) @ cutoff]).values
    # The tool leaves out topics without documents, which count 0.
    expected = {"q1": 0.0, "q2": 0.0} | {one.query_id: one.value for one in there}
    assert dict(zip(here["qid"], here["value"], strict=True)) == expected


def test_blocks_of_a_file_have_the_values_of_the_whole(tmp_path):
    rows = [("q1", docno, 1.0) for docno in "abcdef"] + [("q2", docno, 1.0) for docno in "fedcb"]
    run_of(*rows).to_parquet(tmp_path / "run.parquet")
    whole, blocks = (
        vbterrier.score(
            {"a": tmp_path / "run.parquet"}, QRELS, [MarcoRR @ 2], execution=Execution(memory=memory)
        ).values
        for memory in (None, "64MiB")
    )
    pd.testing.assert_frame_equal(whole, blocks)
    assert whole["value"].tolist() == [1 / 2, 1 / 2]
