"""Coverage of nominal 95 % intervals in simulations with known truth.

A method is tested where it is valid: the number of intervals that cover the truth must not differ from a binomial of
0.95 at the 0.1 % level (1,000 intervals of 92 % would). Known undercoverage is tested, too.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.stats import Dirichlet, IntentBootstrap, ScoreNoise, TagConfusion, TagDropout, TemperatureJitter
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.replicas import left_out, replica_intervals, replicate
from vbterrier.stats.topic_intervals import TOPIC_METHODS, topics_intervals

pytestmark = pytest.mark.slow

ES = [Statistic("ES", None)]
LEVEL = 0.95


def assert_nominal(held):
    held = np.asarray(held)
    assert stats.binomtest(int(held.sum()), held.size, LEVEL).pvalue > 0.001, held.mean()


def assert_below_nominal(held, highest):
    """Assert that coverage is significantly below ``highest``."""
    held = np.asarray(held)
    assert stats.binomtest(int(held.sum()), held.size, highest, alternative="less").pvalue < 0.001, held.mean()


def covers(ends, truth):
    """Whether intervals cover the truth."""
    return np.asarray((ends.low <= truth) & (truth <= ends.high))


def intents_of(weight):
    """Queries of n candidates each, from weights of shape (n_queries, n)."""
    (n_queries, n), prob = weight.shape, weight / weight.sum(axis=1, keepdims=True)
    qid = np.repeat([f"q{query}" for query in range(n_queries)], n)
    return pd.DataFrame({"qid": qid, "entity_id": [f"E{i:03d}" for i in range(n)] * n_queries, "prob": prob.ravel()})


def covering(covered):
    """The matches of a system that covers some candidates, from truth values of shape (n_queries, n)."""
    rows = np.flatnonzero(covered.ravel())
    return {"a": Matches(rows, np.zeros(len(rows), dtype=int))}


# Over topics: the truth is the mean of the distribution that topics are drawn from.


def topics_held(draw, truth, n, method, n_simulations=2000):
    """Return a mask of the intervals that cover the truth, in 100 batches with separate resamples."""
    rng = np.random.default_rng(2025)
    held = []
    for number in range(100):
        intervals = topics_intervals(draw(rng, (n, n_simulations // 100)), method=method, n_resamples=499, seed=number)
        held.append(covers(intervals, truth))
    return np.concatenate(held)


def normal(rng, shape):
    return rng.normal(0.4, 0.2, shape)


def often_zero(rng, shape):
    """Scores similar to ES: every other topic is 0, the rest beta distributed; mean 0.2."""
    return rng.beta(2, 3, shape) * (rng.random(shape) < 0.5)


def skewed(rng, shape):
    """A few topics contribute most of the sum: skewness 6, mean 1.649."""
    return rng.lognormal(size=shape)


@pytest.mark.parametrize("n", [3, 10, 50])
def test_students_intervals_of_normal_scores_are_exact_however_few_topics(n):
    assert_nominal(topics_held(normal, 0.4, n, "normal", 3000))


@pytest.mark.parametrize("n", [5, 25])
def test_studentised_intervals_of_normal_scores_are_exact_with_few_topics(n):
    assert_nominal(topics_held(normal, 0.4, n, "studentised"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("method", "n"),
    [("bca", 25), ("normal", 25), ("percentile", 50), ("bca", 50), ("poisson", 50), ("normal", 50)]
    + [(method, 250) for method in TOPIC_METHODS if method != "bounded"],
)
def test_intervals_over_scores_of_which_half_are_0(method, n):
    assert_nominal(topics_held(often_zero, 0.2, n, method))


@pytest.mark.parametrize("n", [25, 50])
def test_studentised_intervals_hold_more_than_they_say_where_half_of_the_scores_are_0(n):
    # Some 97 % and 96 %, as stated in the docstring.
    held = topics_held(often_zero, 0.2, n, "studentised", 4000)
    assert stats.binomtest(int(held.sum()), held.size, LEVEL, alternative="greater").pvalue < 0.01, held.mean()


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_bootstrap_wants_50_normal_scores_and_has_too_few_with_5(method):
    # The bootstrap divides by n and uses normal quantiles instead of Student's with n - 1: its coverage for 50 topics
    # is at most 94 %. True coverages from 93 % to 95 % are accepted, at the 0.1 % level.
    held = topics_held(normal, 0.4, 50, method)
    assert stats.binom.ppf(0.0005, held.size, 0.93) <= held.sum() <= stats.binom.ppf(0.9995, held.size, 0.95)
    # Some 84 % with five, as stated in the docstring.
    assert_below_nominal(topics_held(normal, 0.4, 5, method, 400), 0.9)


@pytest.mark.parametrize(
    ("method", "n", "highest"),
    [
        *[("percentile", 25, 0.9), ("bca", 25, 0.91), ("studentised", 25, 0.945), ("normal", 25, 0.9)],
        *[("percentile", 50, 0.925), ("bca", 50, 0.935), ("studentised", 50, 0.95), ("normal", 50, 0.925)],
    ],
)
def test_strongly_skewed_scores_want_more_topics_than_any_method_gives_for(method, n, highest):
    # Some 87, 88, 93, 88 % and 90, 91, 93, 90 %, as stated in the docstring.
    assert_below_nominal(topics_held(skewed, np.exp(0.5), n, method, 4000), highest)


# Over intents: candidates are drawn from a population of intents; the truth is the covered proportion of it.


def resampled(n, shape):
    """Queries of n candidates whose weights have a gamma distribution, half of them covered, and their replicas."""
    rng = np.random.default_rng(7)
    weight, covered = rng.gamma(shape, size=(800, n)), rng.random((800, n)) < 0.5
    frame, systems = intents_of(weight), covering(covered)
    return replicate(frame, systems, [IntentBootstrap()], ES, n_replicas=400), left_out(frame, systems, ES)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_over_50_intents_and_six_of_very_different_weights(method):
    result, without = resampled(50, 4.0)
    table = result.frame(method=method, left_out=without)
    assert table["method"][0] == f"intents ({method})"
    assert_nominal(covers(table, 0.5))
    # Six are too few: some 85 % and 88 %, as stated in the docstring.
    result, without = resampled(6, 1.0)
    assert_below_nominal(covers(result.frame(method=method, left_out=without), 0.5), 0.925)


def test_intervals_of_means_over_queries_from_resampled_intents():
    # Means over 3 queries of 60 intents each: 300 collections.
    rng = np.random.default_rng(8)
    weight, covered = rng.gamma(4.0, size=(900, 60)), rng.random((900, 60)) < 0.5
    replicas = replicate(intents_of(weight), covering(covered), [IntentBootstrap()], ES, n_replicas=300)
    means = replicas.values[0, 0].reshape(300, 300, 3).mean(axis=2)
    assert_nominal(covers(replica_intervals(means, source="intents"), 0.5))


# Over replicas: the truth is drawn from the distribution of the perturbation.


@pytest.fixture(scope="module")
def counted():
    """Queries of 6 candidates, every other one covered, and π as proportions of 12 observations."""
    rng = np.random.default_rng(9)
    prob = rng.dirichlet(np.ones(6), 1500)
    covered = np.tile([True, False], (1500, 3))
    truth = np.array([rng.dirichlet(12 * p + 1e-12) for p in prob])
    replicas = replicate(intents_of(prob), covering(covered), [Dirichlet(12)], ES, n_replicas=600)
    return replicas, (truth * covered).sum(axis=1), (prob * covered).sum(axis=1)


def test_percentiles_of_dirichlet_replicas_cover_such_a_pi_and_means_over_queries(counted):
    result, truth, _ = counted
    assert_nominal(covers(result.frame(), truth))
    means = replica_intervals(result.values[0, 0].reshape(600, 300, 5).mean(axis=2))
    assert_nominal(covers(means, truth.reshape(300, 5).mean(axis=1)))


def test_the_papers_normal_interval_holds_the_expectation_and_not_the_truth(counted):
    result, truth, expectation = counted
    table = result.frame(method="normal")
    assert_nominal(covers(table, expectation))
    # It covers the true ES of about 1 of 15 queries.
    assert_below_nominal(covers(table, truth), 0.15)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("noise", [ScoreNoise(0.8), TemperatureJitter(0.6)], ids=repr)
def test_noise_of_scores_around_what_was_observed_holds_what_was_true(noise, method):
    # Two candidates: ES is a monotone function of one number with additive noise, so that percentiles, which are
    # equivariant, are exact. The observed frame is itself a noisy replica of the true one.
    rng = np.random.default_rng(11)
    true = rng.beta(2, 2, 1500)
    log_odds = np.log(true / (1 - true))
    if isinstance(noise, ScoreNoise):
        seen = log_odds + 0.8 * (rng.standard_normal((1500, 2)) @ [1, -1])
    else:
        seen = log_odds * np.exp(0.6 * rng.standard_normal(1500))
    prob = 1 / (1 + np.exp(-seen))
    frame, systems = intents_of(np.column_stack([prob, 1 - prob])), covering(np.tile([True, False], (1500, 1)))
    table = replicate(frame, systems, [noise], ES, n_replicas=800).frame(method=method)
    assert_nominal(covers(table, true))


def test_dropped_tags_hold_the_truth_where_weights_are_right():
    # Each of 14 intents has one document, with a tag that is correct with the probability of its weight.
    rng = np.random.default_rng(12)
    prob, weight = rng.dirichlet(np.ones(14), 800), rng.uniform(0.2, 0.9, (800, 14))
    right = rng.random(weight.shape) < weight
    n = weight.size
    systems = {"a": Matches(np.arange(n), np.zeros(n, int), weight.ravel(), [f"d{i}" for i in range(n)])}
    table = replicate(intents_of(prob), systems, [TagDropout()], ES, n_replicas=600).frame()
    truth = (prob * right).sum(axis=1)
    assert_nominal((table["low"] <= truth + 1e-9) & (truth - 1e-9 <= table["high"]))


def test_confusing_tags_once_more_does_not_undo_their_confusion():
    # Replicas are biased against the truth, as the observed tags already are: the interval does not cover it.
    rng = np.random.default_rng(13)
    covered = np.tile(np.arange(10) < 8, (600, 1))
    frame, (rows,) = intents_of(np.full((600, 10), 0.1)), np.nonzero(covered.ravel())
    docno = [f"d{row}" for row in rows]
    wrong = rng.random(len(rows)) < 0.3
    tagged = np.where(wrong, rows - rows % 10 + (rows % 10 + rng.integers(1, 10, len(rows))) % 10, rows)
    systems = {"a": Matches(tagged, np.zeros(len(rows), int), docno=docno)}
    table = replicate(frame, systems, [TagConfusion(0.3)], ES, n_replicas=300).frame()
    assert_below_nominal(covers(table, 0.8), 0.9)
