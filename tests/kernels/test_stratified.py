"""Stratified random numbers with keys: permutations, distributions, and independence of keys and draws."""

import numpy as np
import pytest
from scipy import special, stats

from vbterrier.kernels.resample import gammas, poissons, strata, symmetric, uniforms

KEYS = np.random.default_rng(3).integers(2**63, size=300).astype(np.uint64) * np.uint64(2)


def quantiles(n_draws):
    """Normal quantiles in the middle of the strata of half of the draws."""
    n = strata(KEYS[:1], (n_draws + 1) // 2)[1]
    return special.ndtri((np.arange(n) + 0.5) / n).astype(np.float32)


@pytest.mark.parametrize("n_draws", [1, 2, 3, 500, 512, 1000, 70_000])
def test_every_key_has_each_stratum_once(n_draws):
    result, n = strata(KEYS[:20], n_draws)
    assert result.shape == (20, n_draws)
    assert result.max() < n <= max(2 * n_draws, 2)
    assert all(len(np.unique(row)) == n_draws for row in result)


def test_numbers_of_a_key_depend_on_nothing_else():
    assert (strata(KEYS[::-1][:7], 1000)[0] == strata(KEYS, 1000)[0][::-1][:7]).all()
    for numbers in (uniforms, lambda *arguments: symmetric(*arguments[:2], quantiles(1000), *arguments[2:])):
        whole = numbers(KEYS, 1000)
        parts = [numbers(KEYS, 1000, start, start + 125) for start in range(0, 1000, 125)]
        assert (np.concatenate(parts, axis=1) == whole).all()
        assert (numbers(KEYS, 1000, 400, 700) == whole[:, 400:700]).all()


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x < 100, lambda x: (x - 512.0) ** 2], ids=["x", "p", "square"])
def test_keys_and_draws_are_independent(of):
    numbers = of(strata(KEYS, 1000)[0].astype(np.float64)).astype(np.float64)
    for axis in (numbers, numbers.T):
        together = np.corrcoef(axis)[np.triu_indices(len(axis), 1)] * np.sqrt(axis.shape[1])
        # As of independent numbers: standard deviation 1, and the largest of many.
        assert together.std() == pytest.approx(1, abs=0.05)
        assert np.abs(together).max() < 7


def test_uniform_numbers_are_one_in_each_stratum():
    result = uniforms(KEYS, 1000)
    assert result.dtype == np.float32
    assert 0 < result.min() <= result.max() <= 1
    assert result.mean(axis=1) == pytest.approx(0.5, abs=0.008)
    # Numbers of all keys together fill the strata.
    assert stats.kstest((result * 1024 % 1)[:, 0], "uniform").pvalue > 1e-3


def test_symmetric_numbers_have_opposite_signs_in_the_halves():
    result = symmetric(KEYS, 1000, quantiles(1000))
    assert (result[:, 500:] == -result[:, :500]).all()
    assert result.std() == pytest.approx(1, abs=0.003)
    assert symmetric(KEYS, 7, quantiles(7)).shape == (300, 7)
    # A function of the quantiles has its values at the same numbers, without a computation for each of them.
    of = special.ndtr(quantiles(1000))
    assert (symmetric(KEYS, 1000, of, opposite=special.ndtr(-quantiles(1000))) == special.ndtr(result)).all()


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0, 3.0, 40.0])
@pytest.mark.slow
def test_gamma_numbers_have_their_distribution(shape):
    result = gammas(KEYS, 1000, quantiles(1000), np.full((300, 1), shape))
    assert result.mean() == pytest.approx(shape, rel=0.025)
    assert result.var() == pytest.approx(shape, rel=0.06)
    assert stats.kstest(result.ravel(), stats.gamma(shape).cdf).statistic < 0.01


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.7, 3.0, 15.9, 16.1, 200.0])
def test_poisson_numbers_have_their_distribution(mean):
    uniform = uniforms(KEYS, 1000)
    result = poissons(np.full(uniform.shape, mean, np.float32), uniform)
    assert result.mean() == pytest.approx(mean, rel=5e-3, abs=1e-5)
    assert result.var() == pytest.approx(mean, rel=0.01, abs=1e-5)
    expected = stats.poisson(mean).pmf(np.arange(400))
    assert np.abs(np.bincount(result.ravel(), minlength=400) / result.size - expected).max() < 2e-3
