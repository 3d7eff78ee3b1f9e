"""Limits of means of bounded scores, valid for any distribution of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Floats

    Bounds = tuple[float, float]


_BATCH = 4_000_000
# Scores beyond the bounds by less than this are rounding errors.
_ROUNDING = 1e-9


def mean_draws(
    values: Floats, bounds: Bounds, n_draws: int, draws: np.random.Generator, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Draws of the lower and of the upper confidence distribution of means of bounded scores, each (n_draws, m).

    The weights of the n topics and of one further topic are uniform on the simplex (those of n + 1 exponential
    numbers). The further topic has the smallest possible score in the lower, the largest in the upper distribution. The
    α quantile of the lower distribution is a lower confidence limit of the mean at 1 - α for any distribution of
    scores within the bounds (Gaffke 2005). For scores of 0 and 1 it is the limit of Clopper and Pearson.

    Parameters
    ----------
    values
        Shape (n, m).
    bounds
        The smallest and the largest possible score.
    n_draws
        Number of draws, which all columns share.
    draws
        The source of random numbers.
    weights
        Sampling weights, shape (n,), for a weighted mean. The further topic has the largest of them. Equal weights by
        default.

    References
    ----------
    Gaffke: Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
    Mathematical Methods of Statistics 14, 2005; Learned-Miller and Thomas: A new confidence interval for the mean of a
    bounded random variable, arXiv 1905.06208, which conjectures validity for every n; no exception is known.

    >>> low, high = mean_draws(np.ones((10, 1)), (0.0, 1.0), 10_000, np.random.default_rng(1))
    >>> round(float(np.quantile(low, 0.05)), 2), round(float(high.min()), 6)
    (0.75, 1.0)
    """
    n, m = values.shape
    relative = np.ones(n + 1) if weights is None else np.append(weights, weights.max())
    low, high = np.empty((2, n_draws, m))
    step = max(1, _BATCH // (n + 1))
    for start in range(0, n_draws, step):
        rows = slice(start, min(start + step, n_draws))
        drawn = draws.standard_exponential((rows.stop - start, n + 1)) * relative
        drawn /= drawn.sum(axis=1, keepdims=True)
        known, further = drawn[:, :n] @ values, drawn[:, n:]
        low[rows], high[rows] = known + further * bounds[0], known + further * bounds[1]
    # Rounding errors.
    return np.clip(low, *bounds), np.clip(high, *bounds)


def constant_limits(value: Any, n: int, bounds: Any, tails: Any) -> Floats:
    """Limits of the mean if n topics have the same score, those of :func:`bounded_limits` in closed form, (2, ...).

    ``x - (x - a)(1 - α^(1/n))`` and ``x + (b - x)(1 - α^(1/n))`` for scores between a and b.

    Parameters
    ----------
    value
        The score, shape (...).
    n
        Number of topics.
    bounds
        The smallest and the largest possible score, broadcast with it; NaN is returned if they are infinite.
    tails
        The probabilities below both limits.

    >>> constant_limits(1.0, 50, (0.0, 1.0), [0.025, 0.975]).round(2).tolist()
    [0.93, 1.0]
    """
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    error = np.array([tails[0], 1 - np.asarray(tails[1])], dtype=np.float64)
    further = 1 - error ** (1 / n)
    with np.errstate(invalid="ignore"):
        limits = np.stack([value - (value - low) * further[0], value + (high - value) * further[1]])
    return np.where(np.isfinite(low) & np.isfinite(high) & (value >= low) & (value <= high), limits, np.nan)


def bounded_limits(
    values: Floats,
    bounds: Bounds,
    tails: Any,
    n_draws: int,
    draws: np.random.Generator,
    weights: Floats | None = None,
) -> Floats:
    """Limits of intervals of means that cover at least their nominal level for any scores within the bounds, (2, m).

    Parameters
    ----------
    values, bounds, n_draws, draws, weights
        As for :func:`mean_draws`.
    tails
        The probabilities below both limits, shape (2,) or (2, m).

    Returns
    -------
    numpy.ndarray
        NaN if the bounds are unknown or a score is outside them.

    >>> scores = np.repeat([[0.0], [1.0]], [18, 2], axis=0)
    >>> bounded_limits(scores, (0.0, 1.0), [0.025, 0.975], 100_000, np.random.default_rng(1)).round(2).tolist()
    [[0.01], [0.32]]
    """
    limits = np.full((2, values.shape[1]), np.nan)
    if np.isfinite(bounds).all():
        inside = ((values >= bounds[0] - _ROUNDING) & (values <= bounds[1] + _ROUNDING)).all(axis=0)
        both = mean_draws(values[:, inside], bounds, n_draws, draws, weights)
        tails = np.broadcast_to(np.asarray(tails, dtype=np.float64).reshape(2, -1), limits.shape)[:, inside]
        for side, (drawn, tail) in enumerate(zip(both, tails, strict=True)):
            place = np.clip(np.ceil(tail * n_draws - 0.5).astype(np.int64), 0, n_draws - 1)
            limits[side, inside] = np.take_along_axis(np.sort(drawn, axis=0), place[None], axis=0)[0]
    return limits
