"""Concatenated frames with repeated index labels: rows are dropped by position."""

import pandas as pd
import pytest

from vbterrier import score
from vbterrier.errors import DegenerateWarning
from vbterrier.frames.ranking import ranked
from vbterrier.unjudged.distribution import bootstrap_distribution

QRELS = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [2, 1, 0]})
RUN = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})


@pytest.mark.filterwarnings("ignore:an interval:vbterrier.errors.DegenerateWarning")
def test_first_keeps_the_best_rank_whatever_the_labels_of_rows():
    run = pd.concat([RUN, RUN.iloc[[0]].assign(score=0.5)])
    assert run.index.tolist() == [0, 1, 2, 0]
    with pytest.warns(DegenerateWarning, match="1 repeated"):
        assert ranked(run, duplicates="first")["docno"].tolist() == ["a", "b", "c"]
    with pytest.warns(DegenerateWarning, match="1 repeated"):
        found = score(run, QRELS, ["BNDCG@10"], duplicates="first").means().iloc[0, 0]
    assert found == pytest.approx(bootstrap_distribution(RUN, QRELS).mean[0])
