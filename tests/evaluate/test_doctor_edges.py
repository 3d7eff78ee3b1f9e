"""The doctor on files without any computable measure."""

import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.evaluate.doctor import diagnose

QRELS = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a", "b"], "label": [2, 0]})
RUN = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a", "x"], "score": [2.0, 1.0]})


@pytest.mark.parametrize("column", ["qid", "docno", "label"])
def test_judgments_without_a_column_are_an_error_that_names_it(column):
    with pytest.raises(InputError, match=f"qrels: wanted columns qid, docno, label; missing {column}"):
        diagnose({"mine": RUN}, QRELS.drop(columns=column))


def test_no_runs_are_an_error():
    with pytest.raises(InputError, match="no runs"):
        diagnose({}, QRELS)


def test_conflicting_labels_leave_no_measure_possible():
    conflicting = pd.concat([QRELS, QRELS.iloc[:1].assign(label=0)], ignore_index=True)
    assert not any(item.possible for item in diagnose({"mine": RUN}, conflicting).support)


def test_of_empty_runs_nothing_is_said_to_be_complete():
    support = diagnose({"mine": RUN.iloc[:0]}, QRELS).support
    assert not any("nothing is unjudged" in item.reason or "complete" in item.reason for item in support)


def test_repeated_documents_are_dropped_by_place_whatever_the_labels_of_rows():
    run = pd.concat([RUN, RUN.iloc[:1].assign(score=0.5)])
    assert diagnose({"mine": run}, QRELS).runs["duplicates"].tolist() == [1]
