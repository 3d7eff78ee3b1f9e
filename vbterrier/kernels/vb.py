"""Expected success over ambiguous intents, its variance penalty, and the maximum of k documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.gain import cumulative_discounts, discounts

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


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
    intent: Ints, weight: Floats, rank: Ints, *, known: Ints | None, cutoff: int | None, n_intents: int
) -> Floats:
    """``g_i = Σ_j w_ij / log2(j + 1)`` over the DCG of ``min(k, n_i)`` matches in the first ranks, shape (n_intents,).

    Parameters
    ----------
    intent, weight, rank
        The intent, the weight in [0, 1] and the 0-based rank of every match, each of shape (n_matches,).
    known
        Documents known to be about each intent ``n_i``, shape (n_intents,); ``None`` takes k.
    cutoff
        The cutoff k; ``None``, where ``known`` is given, for whole rankings.
    n_intents
        The number of intents.

    >>> dcg_gain(np.array([0]), np.ones(1), np.array([1]), known=np.array([1]), cutoff=10, n_intents=1).round(4).tolist()
    [0.6309]
    """
    found = np.bincount(intent, weights=weight * discounts(int(rank.max(initial=-1)) + 1)[rank], minlength=n_intents)
    best = np.full(n_intents, cutoff) if known is None else known
    if cutoff is not None:
        best = np.minimum(best, cutoff)
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


# Numbers that the exact search holds at a time; beyond, the greedy ranking stands.
MOST_CELLS = 2**20
# Documents that are compared each with each, to leave out those that others replace.
MOST_COMPARED = 1000
_ROUNDING = 1e-12


def best_success(
    prob: Floats, topic: Ints, n_topics: int, *, intent: Ints, document: Ints, weight: Floats, k: int | None
) -> tuple[Floats, Bools]:
    """``max Σ_i π_i max_{d in S} w_id`` over all sets S of k documents, of each topic.

    Exact, for all topics at once, where no document of a topic is about two of its intents and where k documents are
    enough for one each: the k largest ``π_i max_d w_id``. Elsewhere by :func:`best_cover`.

    Parameters
    ----------
    prob, topic
        Probability and topic of each intent, each of shape (n_intents,).
    n_topics
        The number of topics.
    intent, document, weight
        The intent, the document (any number of its own) and the weight in [0, 1] of every tag, each of shape (n_tags,).
    k
        How many documents are shown, at least 1; ``None`` for any number.

    Returns
    -------
    (success, exact)
        Each of shape (n_topics,). Where it is not exact, the greedy ranking's success, which is at least ``1 - 1/e`` of
        the best (Nemhauser, Wolsey and Fisher 1978).

    >>> tags = {"intent": np.array([0, 1, 2]), "document": np.array([7, 7, 8]), "weight": np.ones(3)}
    >>> success, exact = best_success(np.array([0.25, 0.25, 0.5]), np.zeros(3, dtype=int), 1, **tags, k=1)
    >>> success.tolist(), exact.tolist()
    ([0.5], [True])
    """
    useful = (weight > 0) & (prob[intent] > 0)
    intent, document, weight = intent[useful], document[useful], weight[useful]
    best = np.zeros(len(prob))
    np.maximum.at(best, intent, weight)
    value = prob * best
    n_coverable = np.bincount(topic[value > 0], minlength=n_topics)
    if k is None:
        return per_topic(value, topic, n_topics), np.ones(n_topics, dtype=bool)
    order = np.lexsort((-value, topic))
    sizes = np.bincount(topic, minlength=n_topics)
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shown = order[place < k]
    success, exact = per_topic(value[shown], topic[shown], n_topics), np.ones(n_topics, dtype=bool)
    order = np.lexsort((intent, document, topic[intent]))
    intent, document, weight = intent[order], document[order], weight[order]
    hard = _shares_documents(topic[intent], document, intent, n_topics) & (n_coverable > k)
    bounds = np.searchsorted(topic[intent], np.arange(n_topics + 1))
    for one in np.flatnonzero(hard):
        here = slice(bounds[one], bounds[one + 1])
        intents, column = np.unique(intent[here], return_inverse=True)
        documents, row = np.unique(document[here], return_inverse=True)
        weights = np.zeros((len(documents), len(intents)))
        np.maximum.at(weights, (row, column), weight[here])
        success[one], exact[one] = best_cover(prob[intents], weights, k)
    return success, exact


def _shares_documents(topic: Ints, document: Ints, intent: Ints, n_topics: int) -> Bools:
    """Which topics have a document that is about two of their intents, of tags in that order, shape (n_topics,)."""
    two = (topic[1:] == topic[:-1]) & (document[1:] == document[:-1]) & (intent[1:] != intent[:-1])
    shares = np.zeros(n_topics, dtype=bool)
    shares[topic[1:][two]] = True
    return shares


def best_cover(prob: Floats, weights: Floats, k: int) -> tuple[float, bool]:
    """The best k documents of one topic, and whether that is certain.

    Gains that can be reached with 1, 2, ... documents are kept as a set, less those which even the largest single
    additions to come could not raise above the greedy ranking.

    Parameters
    ----------
    prob
        Shape (n_intents,).
    weights
        What each document is about, shape (n_documents, n_intents).
    k
        How many documents are shown, at least 1.

    >>> weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    >>> best_cover(np.array([0.2, 0.3, 0.3, 0.2]), weights, 2)
    (1.0, True)
    """
    weights = _undominated(weights)
    best = greedy_cover(prob, weights, k)
    reached = np.zeros((1, len(prob)))
    for left in range(min(k, len(weights)), 0, -1):
        if len(reached) * weights.size > MOST_CELLS:
            return best, False
        wider = np.maximum(reached[:, None, :], weights)
        value = wider @ prob
        best = max(best, float(value.max()))
        added = value - (reached @ prob)[:, None]
        # Success is submodular: what single documents add now is the most that they can add later.
        most = np.partition(added, -left, axis=1)[:, -left:].sum(axis=1) + reached @ prob
        reached = np.unique(wider[most > best + _ROUNDING].reshape(-1, len(prob)), axis=0)
        if not len(reached):
            break
    return best, True


def greedy_cover(prob: Floats, weights: Floats, k: int) -> float:
    """Success of taking k times the document that adds most, the first of equals.

    >>> greedy_cover(np.array([0.2, 0.3, 0.3, 0.2]), np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1.0, 0]]), 2)
    0.8
    """
    gain = np.zeros(len(prob))
    for _ in range(min(k, len(weights))):
        wider = np.maximum(gain, weights)
        gain = wider[int(np.argmax(wider @ prob))]
    return float(gain @ prob)


def _undominated(weights: Floats) -> Floats:
    """The distinct documents, if they are few only those that no other document replaces."""
    # Most documents are about one intent, and of those the best of each intent is enough.
    worse = (np.count_nonzero(weights, axis=1) == 1) & (weights < weights.max(axis=0)).all(axis=1, where=weights > 0)
    distinct = np.unique(weights[~worse], axis=0)
    if len(distinct) > MOST_COMPARED:
        return distinct
    kept = np.ones(len(distinct), dtype=bool)
    for row, one in enumerate(distinct):
        # Of two distinct rows at most one covers the other, so none is left out with its better.
        kept[row] = np.count_nonzero((distinct >= one).all(axis=1)) == 1
    return distinct[kept]
