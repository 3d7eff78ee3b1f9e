"""Condensed lists of frames that change later, and of topics that nobody judged."""

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning
from vbterrier.unjudged.condense import Condense

QRELS = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a", "b"], "label": [2, 0]})
RUN = pd.DataFrame({"qid": ["q1", "q9"], "docno": ["a", "a"], "score": [2.0, 1.0], "rank": [0, 0]})


def test_a_batch_of_nothing_but_topics_without_judgments_comes_out_empty():
    with pytest.warns(DegenerateWarning, match="q9"):
        kept = Condense(QRELS).transform(RUN[RUN["qid"] == "q9"])
    assert len(kept) == 0
    assert list(kept.columns) == list(RUN.columns)


def test_stages_of_polars_judgments_compare_and_hash():
    polars = pytest.importorskip("polars")
    assert Condense(polars.from_pandas(QRELS)) == Condense(QRELS)
    assert hash(Condense(polars.from_pandas(QRELS))) == hash(Condense(QRELS))


def test_what_the_caller_does_to_the_judgments_later_changes_no_equality():
    mine = QRELS.copy()
    stage = Condense(mine)
    mine["label"] = 7
    assert stage == Condense(QRELS)
