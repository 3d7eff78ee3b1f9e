"""Limits of means of bounded scores: Clopper and Pearson's for 0 and 1, valid for other scores."""

import numpy as np
import pytest
from scipy import stats

from vbterrier.kernels import resample
from vbterrier.kernels.resample import bounded_limits, constant_limits, mean_draws

TAILS = [0.025, 0.975]


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (1, 5), (3, 20), (20, 20), (45, 60)])
def test_limits_of_0_and_1_are_exact(successes, n):
    table = np.repeat([1.0, 0.0], [successes, n - successes])[:, None]
    expected = stats.binomtest(successes, n).proportion_ci(0.95, "exact")
    found = bounded_limits(table, (0.0, 1.0), TAILS, 100_000, np.random.default_rng(1))[:, 0]
    assert found == pytest.approx([expected.low, expected.high], abs=0.006)
    # Another unit changes nothing.
    moved = bounded_limits(6 * table - 2, (-2.0, 4.0), TAILS, 100_000, np.random.default_rng(1))[:, 0]
    assert moved == pytest.approx(6 * found - 2)


def test_equal_scores_have_the_same_limits_in_closed_form():
    table = np.full((12, 2), [0.3, 1.0])
    drawn = bounded_limits(table, (0.0, 1.0), TAILS, 200_000, np.random.default_rng(2))
    assert constant_limits(table[0], 12, (0.0, 1.0), TAILS) == pytest.approx(drawn, abs=0.003)
    # Nothing is known without bounds, or outside them.
    assert np.isnan(constant_limits(0.3, 12, (-np.inf, np.inf), TAILS)).all()
    assert np.isnan(constant_limits(1.3, 12, (0.0, 1.0), TAILS)).all()


def test_scores_without_bounds_or_outside_them_have_no_limits():
    table = np.array([[0.1, 0.5], [0.2, 1.5], [0.9, 0.5]])
    draws = np.random.default_rng(1)
    assert np.isnan(bounded_limits(table, (-np.inf, np.inf), TAILS, 10, draws)).all()
    found = bounded_limits(table, (0.0, 1.0), TAILS, 1000, draws)
    assert np.isnan(found).tolist() == [[False, True], [False, True]]
    # Each column may have its own probabilities.
    wide, narrow = bounded_limits(table[:, [0, 0]], (0.0, 1.0), [[0.005, 0.25], [0.995, 0.75]], 1000, draws).T
    assert wide[0] < narrow[0] < table[:, 0].mean() < narrow[1] < wide[1]


def test_weights_are_those_of_repeated_topics_with_the_heaviest_as_the_further_one(monkeypatch):
    values, weights = np.array([[0.0], [1.0], [0.5]]), np.array([1.0, 3.0, 2.0])
    low, high = mean_draws(values, (0.0, 1.0), 50_000, np.random.default_rng(3), weights)
    exponential = np.random.default_rng(3).standard_exponential((50_000, 4)) * [1.0, 3.0, 2.0, 3.0]
    shares = exponential / exponential.sum(axis=1, keepdims=True)
    assert low[:, 0] == pytest.approx(shares @ [0.0, 1.0, 0.5, 0.0])
    assert high[:, 0] == pytest.approx(shares @ [0.0, 1.0, 0.5, 1.0])
    # Blocks draw the same numbers.
    monkeypatch.setattr(resample, "_BATCH", 40)
    assert mean_draws(values, (0.0, 1.0), 50_000, np.random.default_rng(3), weights)[0] == pytest.approx(low)
