"""How far labels follow a score that needs none, told for each labelled query by the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Deviations this small, relative to the scores, are roundings.
_ROUNDING = 1e-12
# What is left of the spread of scores without one query, relative to all of it, if it is no more than roundings.
_LEFT = 1e-9


def left_out_slopes(labels: Floats, scores: Floats) -> Floats:
    """Slopes of labels on scores by least squares, each without one query, the last axis reduced and kept.

    ``Σ_j (s_j - s̄)(y_j - ȳ) / Σ_j (s_j - s̄)²`` over the ``j != i``, from the sums over all: without query i they lose
    ``n / (n - 1)`` times its own product of deviations.

    Parameters
    ----------
    labels, scores
        Of the same queries, shape (..., n).

    Returns
    -------
    numpy.ndarray
        Shape (..., n); 0 where the scores of the others do not differ.

    >>> left_out_slopes(np.array([1.0, 2.0, 3.0, 0.0]), np.array([1.0, 2.0, 3.0, 9.0])).round(3).tolist()
    [-0.36, -0.212, -0.184, 1.0]
    """
    n = labels.shape[-1]
    y, s = (values - values.mean(axis=-1, keepdims=True) for values in (labels, scores))
    own = n / max(n - 1, 1)
    whole = (s**2).sum(axis=-1, keepdims=True)
    spread = whole - own * s**2
    shared = (s * y).sum(axis=-1, keepdims=True) - own * s * y
    rounding = _ROUNDING**2 * (scores**2).sum(axis=-1, keepdims=True)
    slopes: Floats = np.divide(
        shared, spread, out=np.zeros_like(shared), where=spread > np.maximum(_LEFT * whole, rounding)
    )
    return slopes
