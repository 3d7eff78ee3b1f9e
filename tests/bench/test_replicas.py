"""Replicas beside Algorithm 1 as a plain loop, on the same intents: ``pytest tests/bench --benchmark-only``.

1,000 replicas of 250 queries with 8 intents. The loop is timed on 20 of the replicas and scaled up; speeds are read
from the table and from ``extra_info``, never asserted.
"""

import math
import time

import numpy as np
import pandas as pd
import pytest

from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import (
    Dirichlet,
    DropCandidates,
    IntentBootstrap,
    ScoreNoise,
    TagConfusion,
    TemperatureJitter,
)
from vbterrier.stats.replicas import replicate

N_TOPICS, N_INTENTS, N_REPLICAS, N_LOOPED = 250, 8, 1000, 20
NOISE = {
    "Dirichlet": [Dirichlet(10)],
    "temperature": [TemperatureJitter(0.3)],
    "scores": [ScoreNoise(0.3)],
    "candidates": [DropCandidates(0.1)],
    "bootstrap": [IntentBootstrap()],
    "tags": [TagConfusion(0.1)],
    "four": [Dirichlet(10), TemperatureJitter(0.3), ScoreNoise(0.3), DropCandidates(0.1)],
}


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(N_INTENTS), N_TOPICS)
    qid = np.repeat([f"q{topic}" for topic in range(N_TOPICS)], N_INTENTS)
    entity = [f"e{place}" for place in range(N_INTENTS)] * N_TOPICS
    frame = pd.DataFrame({"qid": qid, "entity_id": entity, "prob": prob.ravel()})
    intent = np.sort(rng.choice(len(frame), 1500, replace=False))
    docno = [f"d{number}" for number in range(1500)]
    return frame, prob, Matches(intent, rng.integers(0, 10, 1500), docno=docno)


def plain_loop(prob, covered, n_replicas):
    """Algorithm 1 with a Dirichlet of concentration 10: ES and VB of each query and replica, replica by replica."""
    rng = np.random.default_rng(1)
    means = [0.0] * len(prob)
    for _ in range(n_replicas):
        for topic, pi in enumerate(prob):
            replica = rng.dirichlet(10 * pi)
            success = sum(p for p, served in zip(replica, covered[topic], strict=True) if served)
            means[topic] += success - math.sqrt(max(success * (1 - success), 0.0))
    return [mean / n_replicas for mean in means]


@pytest.mark.parametrize("noise", NOISE)
def test_a_thousand_replicas_of_250_queries(benchmark, collection, noise):
    frame, prob, matches = collection
    statistics = [Statistic("ES", 10), Statistic("VB", 10)]
    found = benchmark(replicate, frame, {"a": matches}, NOISE[noise], statistics, n_replicas=N_REPLICAS)
    assert found.values.shape == (1, 2, N_REPLICAS, N_TOPICS)

    covered = np.zeros(prob.size, dtype=bool)
    covered[matches.intent] = True
    started = time.perf_counter()
    plain_loop(prob, covered.reshape(prob.shape), N_LOOPED)
    looped = (time.perf_counter() - started) * N_REPLICAS / N_LOOPED
    if benchmark.stats:
        benchmark.extra_info["times the plain loop with a Dirichlet"] = round(looped / benchmark.stats.stats.median, 1)
        print(benchmark.extra_info)


def test_eight_scores_of_five_systems(benchmark, collection):
    frame, _, matches = collection
    statistics = [Statistic(measure, cutoff) for measure in ("ES", "VB") for cutoff in (1, 3, 5, 10)]
    systems = {str(number): matches for number in range(5)}
    found = benchmark(replicate, frame, systems, [Dirichlet(10)], statistics, n_replicas=N_REPLICAS)
    assert found.values.shape == (5, 8, N_REPLICAS, N_TOPICS)
