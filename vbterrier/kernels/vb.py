"""Expected success over ambiguous intents, and its variance penalty (Ding 2025, section 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.gain import cumulative_discounts, discounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def per_topic(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """The sum of values of each topic, shape (..., n_topics), for values of shape (..., n_intents).

    >>> per_topic(np.array([0.2, 0.3, 1.0]), np.array([0, 0, 2]), 3).tolist()
    [0.5, 0.0, 1.0]
    """
    if values.ndim == 1:
        return np.bincount(topic, weights=values, minlength=n_topics).astype(np.float64, copy=False)
    sums = np.zeros((*values.shape[:-1], n_topics))
    if len(topic):
        order, present, starts = segments(topic)
        sorted_values = values if order is None else values[..., order]
        sums[..., present] = np.add.reduceat(sorted_values, starts, axis=-1, dtype=np.float64)
    return sums


def segments(topic: Ints) -> tuple[Ints | None, Ints, Ints]:
    """How ``ufunc.reduceat`` finds the intents of each topic: an order that brings them together, topics, starts.

    The order is ``None`` where the intents of each topic stand together already, by rising topics.

    >>> segments(np.array([0, 0, 2]))[1:]
    (array([0, 2]), array([0, 2]))
    """
    order = None
    if (topic[1:] < topic[:-1]).any():
        order = np.argsort(topic, kind="stable")
        topic = topic[order]
    starts = np.concatenate([[0], np.flatnonzero(topic[1:] != topic[:-1]) + 1])
    return order, topic[starts], starts


def binary_gain(intent: Ints, weight: Floats, n_intents: int) -> Floats:
    """``g_i = max_j w_ij``: whether, or how surely, some retrieved document is about the intent, shape (n_intents,).

    Parameters
    ----------
    intent, weight
        The intent and the weight in [0, 1] of every match of a retrieved document, each of shape (n_matches,).
    n_intents
        The number of intents.

    >>> binary_gain(np.array([0, 0, 2]), np.array([0.4, 0.9, 1.0]), 3).tolist()
    [0.9, 0.0, 1.0]
    """
    gain = np.zeros(n_intents)
    np.maximum.at(gain, intent, weight)
    return gain


def dcg_gain(
    intent: Ints, weight: Floats, rank: Ints, *, known: Ints | None, depth: int | None, n_intents: int
) -> Floats:
    """``g_i = Σ_j w_ij / log2(j + 1)`` over the DCG of ``min(k, n_i)`` matches in the first ranks, shape (n_intents,).

    Parameters
    ----------
    intent, weight, rank
        The intent, the weight in [0, 1] and the 0-based rank of every match, each of shape (n_matches,).
    known
        Documents known to be about each intent ``n_i``, shape (n_intents,); ``None`` takes k.
    depth
        The cutoff k; ``None``, where ``known`` is given, for whole rankings.
    n_intents
        The number of intents.

    >>> dcg_gain(np.array([0]), np.ones(1), np.array([1]), known=np.array([1]), depth=10, n_intents=1).round(4).tolist()
    [0.6309]
    """
    found = np.bincount(intent, weights=weight * discounts(int(rank.max(initial=-1)) + 1)[rank], minlength=n_intents)
    best = np.full(n_intents, depth) if known is None else known
    if depth is not None:
        best = np.minimum(best, depth)
    ideal = cumulative_discounts(int(best.max(initial=0)))[best]
    return np.divide(found, ideal, out=np.zeros(n_intents), where=ideal > 0)


def bernoulli_variance(success: Floats) -> Floats:
    """``ES (1 - ES)``: the most the variance across intents can be (Bhatia-Davis), and what it is for binary gains."""
    return np.maximum(success * (1.0 - success), 0.0)


def lowest_point(alpha: float) -> float:
    """The expected success at which VB is lowest, ``(1 - 1/sqrt(1 + α²))/2``; VB is not monotone below it.

    >>> round(lowest_point(1.0), 4)
    0.1464
    """
    return (1.0 - 1.0 / float(np.hypot(1.0, alpha))) / 2.0


def vb(success: Floats, variance: Floats, alpha: float, *, monotone: bool = False, clip: bool = False) -> Floats:
    """``VB_α = ES - α sqrt(Var)``, in ``[(1 - sqrt(1 + α²))/2, 1]``.

    Parameters
    ----------
    success, variance
        ES and Var, of one shape.
    alpha
        Weight of the penalty, at least 0.
    monotone
        Take the minimum over all p of at least ES of VB at p, with the Bernoulli variance: below the lowest point that
        minimum itself, so that more success never scores less.
    clip
        Raise negative scores to 0.

    >>> vb(np.array([0.8]), np.array([0.16]), 1.0).round(4).tolist()
    [0.4]
    """
    if monotone:
        success = np.maximum(success, lowest_point(alpha))
        variance = bernoulli_variance(success)
    score = success - alpha * np.sqrt(variance)
    return np.maximum(score, 0.0) if clip else score
