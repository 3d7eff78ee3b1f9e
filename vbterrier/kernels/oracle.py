"""The most that a ranking of k documents can cover of the intents of its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

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
