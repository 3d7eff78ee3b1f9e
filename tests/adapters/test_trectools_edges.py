"""The adapter at its edges: frames that lack columns or come from other libraries."""

import pandas as pd
import pytest
from trectools import TrecQrel, TrecRun

from vbterrier.errors import InputError
from vbterrier.evaluate.trectools import VBTrecEval

QRELS = pd.DataFrame({"qid": ["q"], "docno": ["007"], "label": [1]})
RUN = pd.DataFrame({"qid": ["q"], "docno": ["007"], "score": [1.0]})


def test_judgments_without_a_column_are_refused_with_what_was_wanted():
    with pytest.raises(InputError, match="qrels: wanted columns qid, docno, label; missing label"):
        VBTrecEval.from_frames(RUN, QRELS.drop(columns="label"))


def test_polars_frames_are_taken():
    polars = pytest.importorskip("polars")
    assert VBTrecEval.from_frames(polars.from_pandas(RUN), polars.from_pandas(QRELS)).get_bootstrapped_ndcg() == 1.0


def test_objects_without_data_are_a_value_error_as_all_bad_input():
    with pytest.raises(ValueError, match="must hold data"):
        VBTrecEval(TrecRun(), TrecQrel())
