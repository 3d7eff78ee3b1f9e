"""The number of replicas by Hoeffding's inequality."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import ParameterError
from vbterrier.kernels.vb import bernoulli_variance, vb
from vbterrier.stats.replica_limits import hoeffding_error, hoeffding_replicas

errors, shares, alphas = st.floats(0.001, 0.9), st.floats(1e-9, 0.999), st.floats(0, 10)


def bound(n, epsilon, width):
    return 2 * math.exp(-2 * n * epsilon**2 / width**2)


@given(errors, shares, alphas)
def test_the_number_is_the_smallest_that_the_inequality_allows(epsilon, delta, alpha):
    n = hoeffding_replicas(epsilon, delta, alpha=alpha)
    width = 1 - (1 - math.sqrt(1 + alpha**2)) / 2
    assert bound(n, epsilon, width) <= delta * (1 + 1e-9)
    assert n == 1 or bound(n - 1, epsilon, width) > delta * (1 - 1e-9)


def test_by_hand():
    # ln(40) / (2 · 0.01²) = 18444.4
    assert hoeffding_replicas(0.01, 0.05) == 18445
    assert hoeffding_replicas(5.0, 0.5) == 1, "no fewer than one"


@given(st.integers(1, 10**6), shares, alphas)
def test_the_error_is_the_inverse(n, delta, alpha):
    error = hoeffding_error(n, delta, alpha=alpha)
    assert abs(hoeffding_replicas(error, delta, alpha=alpha) - n) <= 1


@given(alphas)
def test_the_range_is_that_of_the_scores(alpha):
    success = np.linspace(0, 1, 20_001)
    scores = vb(success, bernoulli_variance(success), alpha)
    width = hoeffding_error(1, 0.5, alpha=alpha) / hoeffding_error(1, 0.5)
    assert width == pytest.approx(np.ptp(scores), abs=1e-4)


def test_means_of_replicas_stay_within_the_error_as_often_as_promised():
    # The worst case in [0, 1]: fair coins. Hoeffding guarantees 90 %; coins exceed it.
    n = 200
    error = hoeffding_error(n, 0.1)
    means = np.random.default_rng(0).binomial(n, 0.5, 5000) / n
    assert (np.abs(means - 0.5) >= error).mean() <= 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hoeffding_replicas(0, 0.05), "epsilon=0: wanted a number above 0"),
        (lambda: hoeffding_replicas(math.nan, 0.05), "epsilon=nan"),
        (lambda: hoeffding_replicas(0.1, 0), "delta=0: wanted a number between 0 and 1"),
        (lambda: hoeffding_replicas(0.1, 1), "delta=1"),
        (lambda: hoeffding_replicas(0.1, 0.05, alpha=-1), "alpha=-1: wanted a number of at least 0"),
        (lambda: hoeffding_error(0, 0.05), "n_replicas=0: wanted a whole number of at least 1"),
        (lambda: hoeffding_error(2.5, 0.05), "n_replicas=2.5"),
        (lambda: hoeffding_error(10, 5), "delta=5"),
    ],
)
def test_values_out_of_range_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
