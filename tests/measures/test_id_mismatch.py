"""Runs of which nothing is judged, in the hands of hosts that cannot refuse them."""

import warnings

import ir_measures
import pandas as pd
import pytest

from vbterrier import BNDCG
from vbterrier.errors import DegenerateWarning

QRELS = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["d1", "caf\u00e9"], "relevance": [1, 0]})


def scored(*ids):
    run = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": ids, "score": 1.0})
    return ir_measures.calc_aggregate([BNDCG(prior="pool") @ 10], QRELS, run)


@pytest.mark.parametrize("ids", [("1", "2"), ("d1 ", "x"), ("x", "cafe\u0301"), ("\u00a0d1", "x")])
def test_ids_that_are_written_otherwise_are_said(ids):
    with pytest.warns(
        DegenerateWarning, match=r"run: none of its documents is judged: it has .*; qrels has 'd1', 'caf"
    ):
        scored(*ids)


@pytest.mark.parametrize("ids", [("new", "other"), ("d1", "d1 "), ("D1", "n")])
def test_documents_that_are_new_are_not(ids):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scored(*ids)
    assert said == []
