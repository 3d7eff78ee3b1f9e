"""Distributions of the tests: normal, Student's t and noncentral t."""

import numpy as np
import pytest
import scipy
from scipy import special, stats

from vbterrier.kernels.normal import normal_cdf, normal_quantile
from vbterrier.kernels.student_t import noncentrality, t_cdf, t_quantile

DF = np.array([1, 1.5, 2, 3, 5, 9.7, 24, 49, 249, 999.5, 6_979, 1e5, 1e8])[:, None]
PROBS = np.concatenate([np.linspace(0.001, 0.999, 333), 10.0 ** -np.arange(3, 16)])


def test_normal_distribution_and_quantiles_equal_scipy():
    z = np.linspace(-8, 8, 1_601)
    np.testing.assert_allclose(normal_cdf(z), special.ndtr(z), rtol=1e-13)
    prob = np.concatenate([[0, 1], PROBS, 1 - PROBS, 10.0 ** -np.arange(16, 300, 7)])
    np.testing.assert_allclose(normal_quantile(prob), special.ndtri(prob), rtol=2e-15, atol=1e-16)
    assert np.isnan(normal_quantile([-0.1, 1.1, np.nan])).all()
    assert normal_cdf(np.zeros((2, 0))).shape == normal_quantile(np.zeros((2, 0))).shape == (2, 0)


def test_t_distribution_equals_scipy_and_its_closed_forms():
    t = np.concatenate([np.linspace(-12, 12, 481), [-30, -100]])
    np.testing.assert_allclose(t_cdf(DF, t), special.stdtr(DF, t), rtol=1e-12, atol=1e-200)
    assert t_cdf(1, 1e-9) == pytest.approx(0.5 + 1e-9 / np.pi, rel=1e-15)
    far = -(10.0 ** np.arange(1, 20, 3))
    np.testing.assert_allclose(t_cdf(1, far), np.arctan(-1 / far) / np.pi, rtol=1e-14)
    far = far[:4]
    np.testing.assert_allclose(t_cdf(2, far), 1 / (far**2 + 2 - far * np.sqrt(far**2 + 2)), rtol=1e-14)
    np.testing.assert_array_equal(t_cdf([3, 3, np.inf, np.inf], [-np.inf, np.inf, 0, np.inf]), [0, 1, 0.5, 1])
    assert np.isnan(t_cdf([-1, 0, np.nan, 3], [1, 1, 1, np.nan])).all()


def test_t_quantiles_equal_scipy_and_invert_the_distribution():
    prob = PROBS[PROBS >= 1e-9]
    # SciPy 1.15 has relative errors of 2.5e-11.
    rtol = 1e-12 if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17) else 1e-10
    np.testing.assert_allclose(t_quantile(DF, prob), special.stdtrit(DF, prob), rtol=rtol, atol=1e-13)
    np.testing.assert_allclose(
        t_cdf(DF, t_quantile(DF, PROBS)), np.broadcast_to(PROBS, (len(DF), len(PROBS))), rtol=1e-12
    )
    np.testing.assert_array_equal(t_quantile(7, [0, 0.5, 1]), [-np.inf, 0, np.inf])
    assert t_quantile(np.inf, 0.975) == normal_quantile(0.975)
    assert np.isnan(t_quantile([5, 5, -1, np.nan], [-0.1, 1.1, 0.3, 0.3])).all()


@pytest.mark.parametrize("df", [1, 4, 49, 6_979])
@pytest.mark.parametrize("t", [-40.0, -1.5, 0.0, 0.3, 8.0])
def test_noncentralities_give_the_observed_t_its_probability(df, t):
    prob = np.array([0.001, 0.025, 0.5, 0.975, 0.999])
    delta = noncentrality(df, prob, t)
    np.testing.assert_allclose(stats.nct.cdf(t, df, delta), prob, rtol=1e-9)
    np.testing.assert_allclose(stats.nct.sf(t, df, delta), 1 - prob, rtol=1e-9)


def test_noncentralities_by_symmetry_and_beyond_their_range():
    np.testing.assert_allclose(noncentrality(9, [0.1, 0.9], [2, -2]), noncentrality(9, [0.1, 0.9], [2, -2])[::-1] * -1)
    assert noncentrality(99, 0.025, 3e5) == pytest.approx(100 * noncentrality(99, 0.025, 3e3))
    np.testing.assert_allclose(noncentrality(1e7, 0.025, 2.0), 2 - special.ndtri(0.025), rtol=1e-6)
    assert np.isnan(noncentrality([9, 9, 9, np.inf, -1], [0, 1, 0.5, 0.5, 0.5], [1, 1, np.inf, 1, 1])).all()
    assert noncentrality(np.zeros(0), 0.5, 1.0).shape == (0,)
