"""Comparisons of all pairs and intervals of many means beside SciPy and ranx: ``pytest tests/bench --benchmark-only``.

30 systems on 250 topics with 10,000 resamples, 435 pairs; and 40 means over 6,980 topics with 10,000 resamples. SciPy
is timed on a few pairs or with fewer resamples and scaled up, ranx (where it is installed) with all of them; ratios
are read from ``extra_info``, never asserted.
"""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.topic_intervals import TOPIC_METHODS, topics_intervals

N_SYSTEMS, N_TOPICS, N_RESAMPLES, N_PAIRS = 30, 250, 10_000, 435
N_SCIPY = 3


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    return np.clip(
        rng.beta(2, 3, (N_TOPICS, 1)) + rng.normal(np.arange(N_SYSTEMS) / 300, 0.1, (N_TOPICS, N_SYSTEMS)), 0, 1
    )


def frame_of(scores):
    n, m = scores.shape
    names, qids = [f"s{i:02d}" for i in range(m)], [f"q{i:03d}" for i in range(n)]
    key = {"name": np.repeat(names, n), "qid": qids * m, "measure": "AP"}
    return pd.DataFrame({**key, "value": scores.T.ravel()})


def seconds(function, *args, **options):
    start = time.perf_counter()
    function(*args, **options)
    return time.perf_counter() - start


def scaled_up(scores, test):
    """SciPy's time of a test and a percentile interval of a pair, on a few pairs, for all of them."""
    pairs = [scores[:, i] - scores[:, i + 1] for i in range(N_SCIPY)]
    options = {"n_resamples": N_RESAMPLES, "vectorized": True}
    took = sum(seconds(stats.bootstrap, (d,), np.mean, method="percentile", **options) for d in pairs)
    if test == "randomisation":
        took += sum(
            seconds(stats.permutation_test, (d,), np.mean, permutation_type="samples", **options) for d in pairs
        )
    else:
        took += sum(seconds(stats.bootstrap, (d,), one_t, method="percentile", **options) for d in pairs)
    return took * N_PAIRS / N_SCIPY


def one_t(differences, axis=-1):
    return differences.mean(axis=axis) / differences.std(axis=axis)


@pytest.mark.parametrize("correction", ["holm", "max-t"])
@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_all_pairs_of_30_systems(benchmark, scores, test, correction):
    options = {"test": test, "correction": correction, "n_resamples": N_RESAMPLES}
    result = benchmark.pedantic(comparisons, (frame_of(scores),), options, rounds=3, warmup_rounds=1)
    assert len(result) == N_PAIRS
    benchmark.extra_info["SciPy, times ours"] = round(scaled_up(scores, test) / benchmark.stats.stats.median, 1)


@pytest.mark.parametrize("test", ["t", "wilcoxon"])
def test_all_pairs_without_resamples(benchmark, scores, test):
    result = benchmark(comparisons, frame_of(scores), test=test)
    assert len(result) == N_PAIRS
    peer = stats.ttest_rel if test == "t" else stats.wilcoxon
    took = sum(seconds(peer, scores[:, i], scores[:, j]) for i in range(N_SYSTEMS) for j in range(i))
    benchmark.extra_info["SciPy pair by pair, times ours"] = round(took / benchmark.stats.stats.median, 1)


def test_all_pairs_beside_ranx(benchmark, scores):
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(1)
    qrels = ranx.Qrels({f"q{i}": {f"d{j}": 1 for j in range(5)} for i in range(N_TOPICS)})
    runs = [
        ranx.Run({f"q{i}": {f"d{j}": rng.random() for j in range(20)} for i in range(N_TOPICS)}, name=f"s{k:02d}")
        for k in range(N_SYSTEMS)
    ]
    options = {"metrics": ["map"], "stat_test": "fisher", "n_permutations": N_RESAMPLES}
    theirs = seconds(ranx.compare, qrels, runs, **options)
    result = benchmark.pedantic(
        comparisons, (frame_of(scores),), {"n_resamples": N_RESAMPLES}, rounds=3, warmup_rounds=1
    )
    assert len(result) == N_PAIRS
    benchmark.extra_info["ranx, times ours"] = round(theirs / benchmark.stats.stats.median, 1)


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_forty_means_over_6980_topics(benchmark, method):
    values = np.random.default_rng(2).beta(2, 3, (6980, 40))
    options = {"method": method, "n_resamples": N_RESAMPLES, "bounds": (0.0, 1.0)}
    result = benchmark.pedantic(topics_intervals, (values,), options, rounds=2, warmup_rounds=1)
    assert (result.low < result.high).all()
    if method == "percentile":
        # BCa's jackknife does not grow with resamples, so that its time cannot be scaled up.
        settings = {"method": "percentile", "n_resamples": N_RESAMPLES // 100, "vectorized": True}
        took = seconds(stats.bootstrap, (values[:, 0],), np.mean, **settings) * 40 * 100
        benchmark.extra_info["SciPy, times ours"] = round(took / benchmark.stats.stats.median, 1)
