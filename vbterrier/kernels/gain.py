"""Gains, discounts and the ideal DCG of pools given as counts of grades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def discounts(depth: int) -> Floats:
    """``1 / log2(rank + 1)`` for ranks 1 to ``depth`` (Järvelin and Kekäläinen 2002, base 2).

    >>> discounts(3).round(4).tolist()
    [1.0, 0.6309, 0.5]
    """
    return 1.0 / np.log2(np.arange(2, depth + 2))


def cumulative_discounts(depth: int) -> Floats:
    """The sum of the first 0, 1, ..., ``depth`` discounts, shape (depth + 1,).

    >>> cumulative_discounts(2).round(4).tolist()
    [0.0, 1.0, 1.6309]
    """
    return np.concatenate([[0.0], np.cumsum(discounts(depth))])


def gains(grades: Ints, *, exponential: bool = False) -> Floats:
    """The gain of each grade: the grade itself (trec_eval), or ``2^grade - 1``; grades below 0 gain nothing.

    >>> gains(np.array([-1, 0, 1, 3]))
    array([0., 0., 1., 3.])
    >>> gains(np.array([0, 1, 3]), exponential=True)
    array([0., 1., 7.])
    """
    clipped = np.maximum(grades, 0).astype(np.float64)
    return np.exp2(clipped) - 1.0 if exponential else clipped


def ideal_dcg(counts: Ints, gain: Floats, depth: int | None) -> Floats:
    """The DCG of the best ranking of each pool.

    With ``n_l`` documents of level ``l`` or higher and ``C(n)`` the sum of the first n discounts,
    ``IDCG@k = Σ_l (gain_l - gain_{l-1}) · C(min(k, n_l))``: a sum over levels, not over documents.

    Parameters
    ----------
    counts
        Documents of each level, shape (..., n_levels), levels by rising gain; level 0 gains nothing.
    gain
        The gain of each level, shape (n_levels,), ``gain[0] == 0``, rising.
    depth
        The cutoff k; ``None`` counts the whole pool.

    Returns
    -------
    numpy.ndarray
        Shape (...,).

    >>> ideal_dcg(np.array([[5, 1, 1]]), np.array([0.0, 1.0, 2.0]), 10).round(4).tolist()
    [2.6309]
    """
    at_least = np.cumsum(counts[..., :0:-1], axis=-1)[..., ::-1]
    if depth is not None:
        at_least = np.minimum(at_least, depth)
    cumulative = cumulative_discounts(int(at_least.max(initial=0)))
    ideal: Floats = cumulative[at_least] @ np.diff(gain)
    return ideal
