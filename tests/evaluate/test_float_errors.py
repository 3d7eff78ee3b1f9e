"""Numbers do not depend on the handling of floating-point errors that callers set."""

import numpy as np
import pandas as pd
import pytest
from ir_measures import nDCG

import vbterrier
from vbterrier import stats
from vbterrier.settings import Inference

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
QUICK = Inference(n_resamples=50)


@pytest.fixture(scope="module")
def world():
    """Runs with scores of many magnitudes, and incomplete judgments."""
    rng = np.random.default_rng(0)
    docnos = [f"d{number}" for number in range(120)]
    runs = {
        name: pd.DataFrame(
            {
                "qid": np.repeat([f"q{topic}" for topic in range(12)], 40),
                "docno": np.concatenate([rng.permutation(docnos)[:40] for _ in range(12)]),
                "score": np.tile(10.0 ** -np.arange(0, 320, 8), 12),
            }
        )
        for name in "ab"
    }
    pairs = pd.concat(runs.values())[["qid", "docno"]].drop_duplicates(ignore_index=True).sample(250, random_state=1)
    return runs, pairs.assign(label=rng.integers(0, 3, len(pairs)))


def per_topic(runs, qrels):
    return vbterrier.score(runs, qrels, ["nDCG@10"], inference=QUICK).values


CALLS = {
    "score": lambda runs, qrels: vbterrier.score(runs, qrels, ["nDCG@10", "AP", "ERR@10"], inference=QUICK).intervals,
    "score B": lambda runs, qrels: vbterrier.score(runs, qrels, ["BNDCG@10", "BAP@10"], inference=QUICK).intervals,
    "score E": lambda runs, qrels: vbterrier.score(runs, qrels, ["ENDCG@10", "EERR@10"], inference=QUICK).intervals,
    "compare": lambda runs, qrels: vbterrier.compare(runs, qrels, "ENDCG@10", inference=QUICK).pairs,
    "Experiment": lambda runs, qrels: vbterrier.Experiment(
        list(runs.values()), pd.DataFrame({"qid": qrels["qid"].unique(), "query": "x"}), qrels, [nDCG @ 10, "ENDCG@10"]
    ),
    "intervals": lambda runs, qrels: stats.intervals(per_topic(runs, qrels), n_resamples=50),
    "one measure": lambda runs, qrels: pd.DataFrame(
        (vbterrier.BNDCG @ 10).iter_calc(as_named(qrels), as_named(runs["a"]))
    ),
}


def as_named(frame):
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    return frame.rename(columns=names)


@pytest.mark.parametrize("call", CALLS)
def test_errors_that_callers_ask_for_change_nothing(world, call):
    expected = CALLS[call](*world)
    with np.errstate(all="raise"):
        result = CALLS[call](*world)
        assert np.geterr()["under"] == "raise"
    pd.testing.assert_frame_equal(result, expected)
