"""The methods of intervals over topics: values that vary, shape (n, m), to both ends of their means, shape (2, m)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.kernels.poisson import means_of
from vbterrier.kernels.resample import resampled_means
from vbterrier.kernels.studentise import ENDLESS, studentised
from vbterrier.uncertainty.bca import bca_ends, share_below

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Means and values this close, beside the largest value, are one in another order of summation.
_EQUAL = 1e-12


def _percentile(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    return np.quantile(resampled_means(values, n_resamples, draws), tails, axis=0)


def _bca(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean = values.mean(axis=0)
    square, cube = (((values - mean) ** power).sum(axis=0) for power in (2, 3))
    means = resampled_means(values, n_resamples, draws)
    share = share_below(means, mean, _EQUAL * np.abs(values).max(axis=0))
    return bca_ends(means, share, cube / (6 * square**1.5), tails)


def _studentised(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean, spread = values.mean(axis=0), values.std(axis=0)
    scaled = (values - mean) / spread
    means, squares = np.split(resampled_means(np.hstack([scaled, scaled**2]), n_resamples, draws), 2, axis=1)
    reach = np.quantile(studentised(means, squares), tails[::-1], axis=0)
    # Quantiles that lie between a number and infinity, too.
    reach[np.abs(reach) > ENDLESS * _EQUAL] *= np.inf
    return np.asarray(mean - reach * spread)


def _poisson(values: Floats, tails: Floats, sums: Callable[[Floats, int], tuple[Any, Any]], n_resamples: int) -> Floats:
    return poisson_ends(means_of(*sums(values, n_resamples)), tails)


def poisson_ends(means: Floats, tails: Floats) -> Floats:
    """Quantiles of what :func:`~vbterrier.kernels.poisson.means_of` gives; resamples without a topic say nothing."""
    resampled = means[1:]
    empty = np.isnan(resampled)
    if not empty.any():
        return np.quantile(resampled, tails, axis=0)
    ends = np.full((2, means.shape[1]), np.nan)
    some = ~empty.all(axis=0)
    ends[:, some] = np.nanquantile(resampled[:, some], tails, axis=0)
    return ends


def _student(values: Floats, tails: Floats, _draws: np.random.Generator, _n_resamples: int) -> Floats:
    from scipy import special

    n = len(values)
    reach = special.stdtrit(n - 1, tails)[:, None] * values.std(axis=0, ddof=1) / np.sqrt(n)
    return np.asarray(values.mean(axis=0) + reach)


METHODS: dict[str, Callable[..., Floats]] = {
    "percentile": _percentile,
    "bca": _bca,
    "studentised": _studentised,
    "poisson": _poisson,
    "normal": _student,
}
