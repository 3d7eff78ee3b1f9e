"""Probabilities of the candidates of each topic, from scores and from weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.vb import per_topic, segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def normalised(weights: Floats, topic: Ints, n_topics: int) -> Floats:
    """Weights divided by their sum over each topic, shape (..., n_intents); zeros where all are zero.

    >>> normalised(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 2).tolist()
    [0.25, 0.75, 1.0]
    """
    total = per_topic(weights, topic, n_topics)[..., topic]
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def softmax(logits: Floats, topic: Ints, n_topics: int) -> Floats:
    """``π_i = exp(l_i) / Σ_j exp(l_j)`` over each topic, the maximum subtracted first, shape (..., n_intents).

    ``-inf`` gives 0; a topic of ``-inf`` alone gives zeros.

    Parameters
    ----------
    logits
        Scores over temperature, less violations; shape (..., n_intents).
    topic
        The place of each intent's topic, shape (n_intents,), in any order.
    n_topics
        The number of topics.

    >>> softmax(np.array([1000.0, 1000.0, -5.0]), np.array([0, 0, 1]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    return normalised(raised(logits, topic, n_topics), topic, n_topics)


def raised(logits: Floats, topic: Ints, n_topics: int) -> Floats:
    """``exp(l_i - max_j l_j)`` over each topic: the softmax before its division, 1 for the most probable intent.

    >>> raised(np.array([0.0, 0.0, -np.inf]), np.array([0, 0, 1]), 2).tolist()
    [1.0, 1.0, 0.0]
    """
    peak = peaks(logits, topic, n_topics)
    below = logits - np.where(np.isfinite(peak), peak, 0.0)[..., topic]
    return np.exp(below, out=below)


def peaks(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """The largest value of each topic, shape (..., n_topics); ``-inf`` for a topic without any.

    >>> peaks(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 2]), 3).tolist()
    [3.0, -inf, 2.0]
    """
    best = np.full((*values.shape[:-1], n_topics), -np.inf)
    if len(topic):
        order, present, starts = segments(topic)
        sorted_values = values if order is None else values[..., order]
        best[..., present] = np.maximum.reduceat(sorted_values, starts, axis=-1)
    return best
