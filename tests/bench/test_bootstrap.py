"""Bootstrapped nDCG beside a faithful Monte Carlo of the paper's algorithm, on the same topics in the same run.

``pytest tests/bench --benchmark-only``. Speeds are read from its table and from ``extra_info``, never asserted.
"""

import math
import random
import statistics
import time
import timeit

import numpy as np
import pytest

from vbterrier.frames.files.reading import read_qrels, read_run
from vbterrier.frames.ranking import Run
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.metrics import AP, ERR, RBP, Q
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import Process

LEVELS = (0.05, 0.25, 0.75, 0.95)
N_DRAWS = 1000


@pytest.fixture(scope="module")
def ance(shared_data):
    folder = shared_data / "trec-covid"
    return read_run(folder / "run.ance.top100.txt.gz"), read_qrels(folder / "qrels.incomplete.txt.gz")


def all_statistics(judgments, run, metric=None, prior_strength=math.inf):
    process = Process("pool+run", prior_strength=prior_strength)
    distribution = BootstrapDistribution(judgments.judge(Run(run), 10), process, metric)
    return [
        distribution.mean,
        distribution.std,
        distribution.median,
        distribution.mode,
        *(distribution.quantile(level) for level in LEVELS),
    ]


def monte_carlo(distribution):
    """Algorithm 1 as the paper states it, for each topic: tabulated gains, 1,000 sequences of draws."""
    model = distribution.model
    rng = random.Random(0)
    grades = range(len(model.gain))
    for topic in range(len(model)):
        n = int(model.n_unjudged[topic])
        table = [[model.weights[topic, i] * gain for gain in model.gain] for i in range(n)]
        scores = []
        for _ in range(N_DRAWS):
            left = model.left[topic].tolist()
            score = float(model.base[topic])
            for i, grade in enumerate(rng.choices(grades, model.prob[topic, 0], k=n)):
                assigned = grade
                while assigned > 0 and left[assigned] == 0:
                    assigned -= 1
                left[assigned] -= 1
                score += table[i][assigned]
            scores.append(score)
        statistics.fmean(scores), statistics.pstdev(scores), np.quantile(scores, LEVELS)


def test_all_statistics_of_ance(benchmark, ance):
    run, qrels = ance
    set_up = statistics.median(timeit.repeat(lambda: Judgments(qrels), number=1, repeat=9))
    judgments = Judgments(qrels)
    n_topics = len(judgments.topics)
    values = benchmark(all_statistics, judgments, run)
    assert len(values[0]) == n_topics

    started = time.perf_counter()
    certain = Process("pool+run", prior_strength=math.inf)
    monte_carlo(BootstrapDistribution(judgments.judge(Run(run), 10), certain))
    sampled = time.perf_counter() - started
    median = benchmark.stats.stats.median
    benchmark.extra_info["set-up of the qrels, ms"] = round(set_up * 1e3, 2)
    benchmark.extra_info["µs a topic, set-up over ten runs"] = round((median + set_up / 10) / n_topics * 1e6, 1)
    benchmark.extra_info["ratio to 1,000 draws in Python"] = round(sampled / (median + set_up / 10), 1)


def test_moments_of_ance(benchmark, ance):
    run, qrels = ance
    judgments = Judgments(qrels)
    means = benchmark(lambda: BootstrapDistribution(judgments.judge(Run(run), 10), Process("pool+run")).mean)
    assert len(means) == len(judgments.topics)


def test_all_statistics_of_ance_under_an_uncertain_prior(benchmark, ance):
    """Beside the same under a certain one."""
    run, qrels = ance
    judgments = Judgments(qrels)
    values = benchmark(all_statistics, judgments, run, prior_strength=5.0)
    certain = statistics.median(timeit.repeat(lambda: all_statistics(judgments, run), number=1, repeat=9))
    assert values[0] == pytest.approx(all_statistics(judgments, run)[0], abs=1e-12)
    benchmark.extra_info["µs a topic"] = round(benchmark.stats.stats.median / len(judgments.topics) * 1e6, 1)
    benchmark.extra_info["ratio to a certain prior"] = round(benchmark.stats.stats.median / certain, 2)


@pytest.mark.parametrize("metric", [RBP(), AP(), ERR(), Q()], ids=lambda metric: metric.name)
def test_all_statistics_of_other_metrics(benchmark, ance, metric):
    run, qrels = ance
    judgments = Judgments(qrels)
    values = benchmark(all_statistics, judgments, run, metric, prior_strength=5.0)
    assert np.isfinite(values).all()
    benchmark.extra_info["µs a topic"] = round(benchmark.stats.stats.median / len(judgments.topics) * 1e6, 1)
