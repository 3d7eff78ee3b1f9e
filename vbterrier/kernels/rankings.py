"""Scores of rankings given as arrays: the last axis is the ranks, leading axes are topics, draws, systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def ranks(width: int) -> Floats:
    """1, 2, ..., ``width``, shape (width,).

    >>> ranks(3).tolist()
    [1.0, 2.0, 3.0]
    """
    return np.arange(1, width + 1, dtype=np.float64)


def rbp_weights(width: int, p: float) -> Floats:
    """``(1 - p) p^(rank - 1)`` for ranks 1 to ``width`` (Moffat and Zobel 2008, equation 4), shape (width,).

    >>> rbp_weights(3, 0.5).tolist()
    [0.5, 0.25, 0.125]
    """
    return (1.0 - p) * p ** np.arange(width, dtype=np.float64)


def average_precision(relevant: Floats, n_relevant: Ints | int) -> Floats:
    """``AP = (1/R) Σ_r I(r) C(r)/r`` with C(r) relevant documents in the first r.

    Parameters
    ----------
    relevant
        I: 1 where a relevant document stands, 0 elsewhere, shape (..., width).
    n_relevant
        R, relevant documents there are, shape (...) or one for all; where none is, AP is 0.

    Returns
    -------
    numpy.ndarray
        Shape (...,).

    >>> average_precision(np.array([1.0, 0.0, 1.0]), 4).round(4).item()
    0.4167
    """
    width = relevant.shape[-1]
    found: Floats = (relevant * np.cumsum(relevant, axis=-1) / ranks(width)).sum(axis=-1)
    return found / np.maximum(n_relevant, 1)


def err(stops: Floats) -> Floats:
    """``ERR = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)`` (Chapelle et al. 2009, equation 4).

    Parameters
    ----------
    stops
        Probability that a user who looks at a rank is satisfied and stops there, shape (..., width).

    Returns
    -------
    numpy.ndarray
        Shape (...,).

    >>> err(np.array([0.5, 0.5])).item()
    0.625
    """
    width = stops.shape[-1]
    goes_on = np.cumprod(1.0 - stops, axis=-1)
    reaches = np.concatenate([np.ones_like(stops[..., :1]), goes_on[..., :-1]], axis=-1)
    score: Floats = (stops * reaches[..., :width] / ranks(width)).sum(axis=-1)
    return score


def q_measure(gain: Floats, ideal: Floats, n_relevant: Ints | int, beta: float = 1.0) -> Floats:
    """``Q = (1/R) Σ_r I(r) (C(r) + β cg(r)) / (r + β cg*(r))`` (Sakai 2005), 0 where nothing is relevant.

    Parameters
    ----------
    gain
        Gain at each rank, shape (..., width); what gains anything is relevant: I(r) = 1.
    ideal
        cg*: cumulative gain of the ideal ranking at each rank, shape (..., width).
    n_relevant
        R, shape (...) or one for all.
    beta
        How much gains count beside ranks; 0 is average precision.

    Returns
    -------
    numpy.ndarray
        Shape (...,).

    >>> q_measure(np.array([0.0, 2.0]), np.array([2.0, 3.0]), 2).item()
    0.3
    """
    relevant = (gain > 0).astype(np.float64)
    reached = np.cumsum(relevant, axis=-1) + beta * np.cumsum(gain, axis=-1)
    score: Floats = (relevant * reached / (ranks(gain.shape[-1]) + beta * ideal)).sum(axis=-1)
    return score / np.maximum(n_relevant, 1)
