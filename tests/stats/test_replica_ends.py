"""Intervals from replicas, and the number of replicas by Hoeffding's inequality."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import bca_acceleration
from vbterrier.kernels.vb import bernoulli_variance, vb
from vbterrier.stats.replicas import hoeffding_error, hoeffding_replicas, replica_intervals

SCORES = np.random.default_rng(7).beta(2, 5, 40)
DRAWS = np.random.default_rng(3).gamma(2.0, size=(400, 3, 2))
POINT = np.array([[1.2, 1.7], [2.0, 0.9], [1.0, 1.5]])


def test_percentiles_are_quantiles_and_the_papers_normal_interval_shrinks_with_replicas():
    intervals = replica_intervals(DRAWS, level=0.8)
    assert intervals.method == "replicas (percentile)"
    assert np.array([intervals.low, intervals.high]) == pytest.approx(np.quantile(DRAWS, [0.1, 0.9], axis=0))
    intervals = replica_intervals(DRAWS, method="normal")
    reach = 1.959963984540054 * DRAWS.std(axis=0, ddof=1) / 20
    assert intervals.method == "replicas (normal, Monte Carlo error)"
    assert np.array([intervals.low, intervals.high]) == pytest.approx(DRAWS.mean(axis=0) + np.array([-reach, reach]))


@pytest.mark.parametrize("acceleration", [None, 0.0, 0.05, -0.1])
def test_bca_levels_are_the_textbook_formula(acceleration):
    given_a = None if acceleration is None else np.full(POINT.shape, acceleration)
    intervals = replica_intervals(DRAWS, point=POINT, acceleration=given_a, level=0.9, method="bca", source="intents")
    assert intervals.method == ("intents (bca, acceleration 0)" if acceleration is None else "intents (bca)")
    a = acceleration or 0.0
    for place in np.ndindex(POINT.shape):
        draws = DRAWS[:, place[0], place[1]]
        bias = stats.norm.ppf((draws < POINT[place]).mean())
        for got, tail in ((intervals.low[place], 0.05), (intervals.high[place], 0.95)):
            moved = bias + stats.norm.ppf(tail)
            level = stats.norm.cdf(bias + moved / (1 - a * moved))
            assert got == pytest.approx(np.quantile(draws, level), abs=1e-12)


def test_ties_with_the_point_count_half():
    draws = np.repeat([0.0, 0.5, 1.0], [40, 40, 20])
    # 40 below, 40 tied: a proportion of 0.6, which raises the levels.
    bias = stats.norm.ppf(0.6)
    expected = np.quantile(draws, stats.norm.cdf(2 * bias + stats.norm.ppf([0.025, 0.975])))
    intervals = replica_intervals(draws, point=np.array(0.5), method="bca")
    assert (float(intervals.low), float(intervals.high)) == pytest.approx(tuple(expected), abs=1e-12)


def test_a_point_outside_its_replicas_is_said_once():
    draws = np.tile(np.linspace(0.2, 0.4, 50)[:, None], 3)
    with pytest.warns(DegenerateWarning, match="2 of 3 scores without perturbation lie outside the range of") as record:
        intervals = replica_intervals(draws, point=np.array([0.1, 0.3, 0.5]), method="bca")
    assert len(record) == 1
    assert (intervals.low[0], intervals.high[2]) == pytest.approx((0.2, 0.4))
    assert np.isfinite([intervals.low, intervals.high]).all()


def test_replicas_that_agree_give_equal_ends_and_one_has_no_error():
    for method in ("percentile", "bca", "normal"):
        intervals = replica_intervals(np.full((30, 2), 0.25), point=np.full(2, 0.25), method=method)
        assert intervals.low.tolist() == intervals.high.tolist() == [0.25, 0.25]
    with pytest.warns(DegenerateWarning, match="at least two replicas"):
        intervals = replica_intervals(np.array([[0.3, 0.4]]), method="normal")
    assert np.isnan([intervals.low, intervals.high]).all()
    assert replica_intervals(np.array([0.3])).low == 0.3
    assert replica_intervals(np.array([0.3]), point=np.array(0.3), method="bca").high == 0.3


def test_units_that_do_not_matter_and_single_ones_accelerate_nothing():
    for left in (np.full((4, 2), 0.5), np.array([[0.3], [np.nan]])):
        assert not bca_acceleration(left).any()
    assert bca_acceleration(np.full((2, 2), np.nan), of_mean=True) == 0.0


ERRORS, SHARES, ALPHAS = st.floats(0.001, 0.9), st.floats(1e-9, 0.999), st.floats(0, 10)


def bound(n, epsilon, width):
    return 2 * math.exp(-2 * n * epsilon**2 / width**2)


@given(ERRORS, SHARES, ALPHAS)
def test_the_number_is_the_smallest_that_the_inequality_allows(epsilon, delta, alpha):
    n = hoeffding_replicas(epsilon, delta, alpha=alpha)
    width = 1 - (1 - math.sqrt(1 + alpha**2)) / 2
    assert bound(n, epsilon, width) <= delta * (1 + 1e-9)
    assert n == 1 or bound(n - 1, epsilon, width) > delta * (1 - 1e-9)


@given(st.integers(1, 10**6), SHARES, ALPHAS)
def test_the_error_is_the_inverse(n, delta, alpha):
    error = hoeffding_error(n, delta, alpha=alpha)
    assert abs(hoeffding_replicas(error, delta, alpha=alpha) - n) <= 1


@given(ALPHAS)
def test_the_range_is_that_of_the_scores(alpha):
    success = np.linspace(0, 1, 20_001)
    scores = vb(success, bernoulli_variance(success), alpha)
    width = hoeffding_error(1, 0.5, alpha=alpha) / hoeffding_error(1, 0.5)
    assert width == pytest.approx(np.ptp(scores), abs=1e-4)
