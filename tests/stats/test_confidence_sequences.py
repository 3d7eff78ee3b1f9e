"""Intervals that remain valid when they are inspected after every topic."""

import numpy as np
import pytest
from scipy import stats

from vbterrier.errors import InputError, ParameterError
from vbterrier.stats.inverted_intervals import confidence_sequence, spent_level

KINDS = {
    "uniform": lambda rng, n: rng.random(n) - 0.5,
    "sparse": lambda rng, n: (rng.random(n) < 0.05) - 0.05,
    "binary": lambda rng, n: (rng.random(n) < 0.5) - 0.5,
    "skewed": lambda rng, n: rng.beta(0.3, 2, n) - 0.3 / 2.3,
}


@pytest.mark.parametrize(
    ("kind", "n_samples"),
    [
        ("sparse", 200),
        *(pytest.param(kind, 60, marks=pytest.mark.slow) for kind in KINDS if kind != "sparse"),
        *(pytest.param(kind, 200, marks=pytest.mark.nightly) for kind in KINDS if kind != "sparse"),
    ],
)
def test_all_intervals_together_contain_the_mean_as_often_as_they_say(kind, n_samples):
    rng, n = np.random.default_rng(1), 120
    missed = peeked = 0
    for _ in range(n_samples):
        x = KINDS[kind](rng, n)
        found = confidence_sequence(x, bounds=(-1, 1), level=0.9)
        missed += int(((found["low"] > 0) | (found["high"] < 0)).any())
        sizes = np.arange(5, n + 1)
        means = np.cumsum(x)[4:] / sizes
        std = np.sqrt(np.maximum(np.cumsum(x**2)[4:] / sizes - means**2, 1e-12) * sizes / (sizes - 1))
        peeked += int((np.abs(means) > stats.t.ppf(0.95, sizes - 1) * std / sizes**0.5).any())
    assert stats.binom.sf(missed - 1, n_samples, 0.1) > 1e-3
    # An ordinary interval excludes the mean at some time in far more samples.
    assert peeked > 0.35 * n_samples


def test_capitals_are_those_of_bets_one_by_one():
    x, alpha = np.random.default_rng(3).beta(2, 3, 60), 0.05
    found = confidence_sequence(x)
    means = np.linspace(0, 1, 2001)
    more = less = np.ones(2001)
    mean, squares, low, high = 0.5, 0.25, 0.0, 1.0
    for at, value in enumerate(x, 1):
        variance = squares / at
        bet = np.sqrt(2 * np.log(2 / alpha) / (variance * at * np.log(at + 1)))
        with np.errstate(divide="ignore"):
            more = more * (1 + np.minimum(bet, 0.5 / means) * (value - means))
            less = less * (1 - np.minimum(bet, 0.5 / (1 - means)) * (value - means))
        left = means[np.maximum(more, less) < 2 / alpha]
        low, high = max(low, left.min() - 0.0005), min(high, left.max() + 0.0005)
        assert found.loc[at - 1, ["low", "high"]].tolist() == pytest.approx([low, high], abs=1e-9)
        mean = (x[:at].sum() + 0.5) / (at + 1)
        squares += (value - mean) ** 2


def test_intervals_narrow_and_follow_the_bounds():
    x = np.random.default_rng(5).random(700)
    found = confidence_sequence(x, level=0.9)
    assert found["n_qids"].tolist() == list(range(1, 701))
    assert found["value"].to_numpy() == pytest.approx(np.cumsum(x) / np.arange(1, 701))
    assert found["low"].is_monotonic_increasing
    assert found["high"].is_monotonic_decreasing
    moved = confidence_sequence(4 * x - 2, level=0.9, bounds=(-2, 2))
    assert moved[["low", "high"]].to_numpy() == pytest.approx(4 * found[["low", "high"]].to_numpy() - 2)
    # The first 100 intervals know nothing of later topics.
    assert confidence_sequence(x[:100], level=0.9).equals(found.head(100))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (dict(values=[]), InputError, "shape \\(0,\\)"),
        (dict(values=[0.5, 1.5]), InputError, "topic 1 has 1.5, wanted 0 to 1; pass bounds="),
        (dict(values=[np.nan]), InputError, "topic 0 has nan"),
        (dict(values=[0.5], bounds=(1, 0)), ParameterError, "bounds=\\(1, 0\\)"),
        (dict(values=[0.5], level=95), ParameterError, "level=95"),
    ],
)
def test_scores_out_of_bounds_are_refused(given, error, said):
    with pytest.raises(error, match=said):
        confidence_sequence(**given)


def test_levels_of_all_looks_together_spend_the_error_once():
    spent = sum(1 - spent_level(0.9, look) for look in range(1, 20_000))
    assert spent == pytest.approx(0.1, abs=1e-4)
    with pytest.raises(ParameterError, match="look=0"):
        spent_level(0.9, 0)
