"""Intervals and tests of thousands of columns and pairs at once, against SciPy on each."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.kernels.resample import stream
from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.topic_intervals import intervals

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")]
N_TOPICS = 25
# Which systems have scores in steps of .2.
STEPS = slice(None, None, 3)


def frame_of(table):
    """The values of many systems, a column each, as a V frame."""
    n_topics, n_systems = table.shape
    return pd.DataFrame(
        {
            "name": np.repeat([f"s{number:04d}" for number in range(n_systems)], n_topics),
            "qid": np.tile([f"q{number:03d}" for number in range(n_topics)], n_systems),
            "measure": "nDCG@10",
            "value": table.T.ravel(),
        }
    )


@pytest.fixture(scope="module")
def table():
    """2,000 systems: skewed, with zeros, and steps as a small cutoff makes them."""
    rng = np.random.default_rng(11)
    made = rng.beta(rng.uniform(0.3, 3, 2000), rng.uniform(0.3, 3, 2000), (N_TOPICS, 2000))
    made[:, STEPS] = np.round(made[:, STEPS] * 5) / 5
    made[rng.random(made.shape) < 0.1] = 0.0
    return made


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_students_interval_of_2000_systems(table, level):
    result = intervals(frame_of(table), method="normal", level=level)
    low, high = stats.t.interval(level, N_TOPICS - 1, table.mean(axis=0), stats.sem(table, axis=0))
    # Within the range of the measure.
    assert np.abs(result["low"] - np.maximum(low, 0)).max() <= 1e-12
    assert np.abs(result["high"] - np.minimum(high, 1)).max() <= 1e-12


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_bootstrap_intervals_of_2000_systems(table, method, theirs, level):
    result = intervals(frame_of(table), method=method, level=level, n_resamples=200, seed=3)
    # Resampled means of steps often equal the mean; whole numbers show it to SciPy, which compares without tolerance.
    unit = np.ones(table.shape[1])
    unit[STEPS] = 5
    whole = table * unit
    whole[:, STEPS] = np.round(whole[:, STEPS])
    expected = stats.bootstrap(
        (whole.T,),
        np.mean,
        axis=-1,
        confidence_level=level,
        method=theirs,
        n_resamples=200,
        random_state=stream(3, ""),
    ).confidence_interval
    assert np.abs(result["low"] - expected.low / unit).max() <= 1e-12
    assert np.abs(result["high"] - expected.high / unit).max() <= 1e-12


def test_students_t_of_1999_pairs(table):
    pairs = comparisons(frame_of(table), baseline="s0000", test="t", correction="none")
    first = pairs["name_a"].str[1:].astype(int), pairs["name_b"].str[1:].astype(int)
    expected = stats.ttest_rel(*(table[:, list(names)] for names in first))
    assert len(pairs) == 1999
    assert np.allclose(pairs["p_value"], expected.pvalue, rtol=1e-9, atol=1e-15)
    theirs = expected.confidence_interval(0.95)
    assert np.abs(pairs["low"] - theirs.low).max() <= 1e-12
    assert np.abs(pairs["high"] - theirs.high).max() <= 1e-12


@pytest.mark.parametrize("n_topics", [6, 13, 14, 25])
def test_signed_ranks_of_many_pairs_with_and_without_ties(table, n_topics):
    few = table[:n_topics, :400]
    result = comparisons(frame_of(few), baseline="s0001", test="wilcoxon", correction="none")
    pairs = zip(result["name_a"].str[1:].astype(int), result["name_b"].str[1:].astype(int), strict=True)
    # Differences of steps of .2 are equal but for a rounding, which SciPy takes for different ranks.
    expected = [stats.wilcoxon(np.round(few[:, a] - few[:, b], 13)).pvalue for a, b in pairs]
    assert len(expected) == 399
    assert np.allclose(result["p_value"], expected, rtol=1e-9)
