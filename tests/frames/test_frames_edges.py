"""Messages name query and document; empty columns of any kind are empty."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.contracts import flatten_qrels
from vbterrier.frames.ids import ids_of
from vbterrier.frames.ranking import ranked
from vbterrier.unjudged.pool import Judgments


def test_an_empty_categorical_column_has_no_ids():
    assert len(ids_of(pd.Series([], dtype="category"), "x")) == 0


def rows(labels, docnos=("d", "d")):
    return pd.DataFrame({"qid": "q", "docno": list(docnos), "label": labels})


def test_flattening_compares_labels_as_numbers():
    assert flatten_qrels(rows(["9", "10"]))["label"].tolist() == [10]


def test_flattening_refuses_labels_and_ids_that_are_missing():
    with pytest.raises(InputError, match="qrels column 'label': row 1"):
        flatten_qrels(rows([1.0, np.nan]))
    with pytest.raises(InputError, match="qrels column 'docno': row 1 has no id"):
        flatten_qrels(rows([1, 2], ("d", None)))


def test_faulty_numbers_are_named_with_query_and_document_as_python_writes_them():
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, np.nan]})
    with pytest.raises(InputError, match=r"row 1 .*nan.*query 'q1', document 'b'.*wanted a number"):
        ranked(run)
    with pytest.raises(InputError, match=r"row 0 .*0\.5.*query 'q', document 'd'.*wanted a whole number"):
        Judgments(rows([0.5, 1.0]))
