"""Covering as many documents as possible with few entities, greedily and for all topics at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def greedy_cover(
    document: Ints, pair: Ints, pair_starts: Ints, n_documents: int, depth: int | None = None
) -> tuple[Ints, Ints]:
    """Take the entity that reaches most documents not yet reached, the first of equals, again and again.

    What the first k of them reach is at least ``1 - (1 - 1/k)^k``, more than ``1 - 1/e``, of what any k entities reach
    (Nemhauser, Wolsey and Fisher 1978).

    Parameters
    ----------
    document, pair
        The document and the pair of topic and entity of each link, shape (n_links,).
    pair_starts
        Where the pairs of each topic begin, and where the last one's end, shape (n_topics + 1,).
    n_documents
        How many documents there are.
    depth
        How many entities to take at most; ``None`` to go on until everything that can be reached is.

    Returns
    -------
    (pairs, n_reached)
        The pairs taken, -1 where nothing is left to reach, and how many documents those so far reach; each of shape
        (n_topics, d), where d is the longest list.

    Notes
    -----
    A pass over the links and pairs that are left for each rank, for all topics together.

    >>> pairs, n_reached = greedy_cover(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.array([0, 2]), 3)
    >>> pairs.tolist(), n_reached.tolist()
    ([[0, 1]], [[2, 3]])
    """
    n_topics, reached = len(pair_starts) - 1, np.zeros(n_documents, dtype=bool)
    kept, pair = np.unique(pair, return_inverse=True)
    topic = np.searchsorted(pair_starts, kept, side="right") - 1
    pairs: list[Ints] = []
    gains: list[Ints] = []
    while len(pair) and (depth is None or len(pairs) < depth):
        gain = np.bincount(pair, minlength=len(kept))
        best = np.zeros(n_topics, dtype=np.int64)
        np.maximum.at(best, topic, gain)
        winners = np.flatnonzero((gain == best[topic]) & (gain > 0))
        _, first = np.unique(topic[winners], return_index=True)
        taken = np.zeros(len(kept), dtype=bool)
        taken[winners[first]] = True
        chosen = np.full(n_topics, -1)
        chosen[topic[winners[first]]] = kept[winners[first]]
        reached[document[taken[pair]]] = True
        left = ~reached[document]
        document, pair = document[left], pair[left]
        pairs.append(chosen)
        gains.append(best)
    if not pairs:
        return np.empty((n_topics, 0), dtype=np.int64), np.empty((n_topics, 0), dtype=np.int64)
    return np.stack(pairs, axis=1), np.cumsum(np.stack(gains, axis=1), axis=1)
