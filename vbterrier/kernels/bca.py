"""What bias-corrected and accelerated intervals (Efron 1987) are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Influences this small are roundings.
_NOTHING = 1e-9


def quantiles_at(replicas: Floats, levels: Floats) -> Floats:
    """Quantiles along the first axis, at levels of their own for each score, as (low, high) of shape (2, ...).

    >>> quantiles_at(np.array([[0.0, 0.0], [1.0, 3.0]]), np.array([[0.5, 0.0], [1.0, 0.5]])).tolist()
    [[0.5, 0.0], [1.0, 1.5]]
    """
    ordered = np.sort(replicas, axis=0)
    place = levels * (len(replicas) - 1)
    below = place.astype(np.int64)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, len(replicas) - 1), axis=0)
    found: Floats = low + (high - low) * (place - below)
    return found


def acceleration_of(left_out: Floats, *, of_mean: bool = False) -> Floats:
    """The acceleration of BCa intervals by the jackknife over the resampled units.

    ``a = Σ_q Σ_i l_qi³/n_q³ / (6 (Σ_q Σ_i l_qi²/n_q²)^(3/2))`` with ``l_qi = (n_q - 1)(mean_i θ_(-i) - θ_(-i))``; for a
    query of its own the sum over q is dropped (Efron 1987; Davison and Hinkley 1997, section 5.3.2, for
    several samples).

    Parameters
    ----------
    left_out
        Scores without one unit after the other, shape (..., n, n_topics), NaN where a query has no such unit.
    of_mean
        Whether the interval is that of the mean over queries.

    Returns
    -------
    numpy.ndarray
        Shape (..., n_topics), or (...) for the mean; 0 where no unit matters.

    Examples
    --------
    >>> acceleration_of(np.array([[0.1], [0.2], [0.9]])).round(3).tolist()
    [-0.064]
    """
    known = ~np.isnan(left_out)
    n = np.maximum(known.sum(axis=-2, keepdims=True), 1)
    filled = np.where(known, left_out, 0.0)
    influence = np.where(known, filled.sum(axis=-2, keepdims=True) / n - filled, 0.0) * (n - 1) / n
    axes = (-2, -1) if of_mean else (-2,)
    square, cube = ((influence**power).sum(axis=axes) for power in (2, 3))
    # Where no unit matters, rounding alone is left.
    matters = square > _NOTHING**2
    acceleration: Floats = np.divide(cube, 6 * square**1.5, out=np.zeros_like(cube), where=matters)
    return acceleration
