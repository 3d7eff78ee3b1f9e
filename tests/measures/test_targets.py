"""What the judgments of a call must hold, and ids of a run that contradict them."""

import warnings

import pandas as pd
import pytest

from vbterrier import score
from vbterrier.errors import DegenerateWarning
from vbterrier.measures.target import EvaluationTarget

QIDS = ["q1", "q2"]
QRELS = pd.DataFrame(
    [(qid, docno, label) for qid in QIDS for docno, label in (("New York", 1), ("Boston", 1), ("Austin", 0))],
    columns=["qid", "docno", "label"],
)


def run_of(*docnos):
    rows = [(qid, docno, -rank) for qid in QIDS for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


@pytest.mark.parametrize("other", ["New_York", "New%20York", "new york", "New York "])
def test_documents_that_are_judged_under_another_spelling_are_told(other):
    message = (
        f"run 'a', first 4 rows: 1 documents differ from those of the qrels only in case.*{other!r} and 'New York'"
    )
    with pytest.warns(DegenerateWarning, match=message):
        values = score({"a": run_of(other, "Boston")}, QRELS, ["P@2"]).values
    assert values["value"].tolist() == [0.5, 0.5]


def test_unjudged_documents_are_no_other_spelling():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = score({"a": run_of("New York", "Newark")}, QRELS, ["P@2"]).values
    assert values["value"].tolist() == [0.5, 0.5]


def test_judgments_of_topics_are_their_rows_in_order():
    target = EvaluationTarget(QRELS.iloc[[0, 3, 1, 4, 2, 5]].reset_index(drop=True))
    pd.testing.assert_frame_equal(target.of_topics({"q2", "missing"}).frame, QRELS[3:].reset_index(drop=True))
    pd.testing.assert_frame_equal(target.of_topics({"q2", "q1"}).frame, target.frame)
