"""The most relevant documents that any k entities of a pool reach: what entity runs could do at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError
from vbterrier.kernels.cover import greedy_cover

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool

    Ints = NDArray[np.int64]

# Nodes of the search tree of one topic, after which an exact cover is given up.
MOST_NODES = 10_000


class Oracle:
    """The relevant documents that the best entities reach, for every number of entities in one pass.

    Parameters
    ----------
    pool
        The pool.
    rel
        The lowest relevant label.
    depth
        The largest number of entities; ``None`` for as many as are needed.

    Attributes
    ----------
    pair : numpy.ndarray
        Greedy choices among ``pool.pairs``, -1 behind the last, shape (n_topics, d).
    n_reached : numpy.ndarray
        Relevant documents that the first 1, 2, ... of them reach, shape (n_topics, d).

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Paris", "Texas"]})
    >>> qrels = pool.assign(label=1)
    >>> Oracle(link_pool(pool, tags, qrels)).greedy(1)
    array([1])
    """

    def __init__(self, pool: LinkedPool, rel: int = 1, depth: int | None = None) -> None:
        self._n_topics = len(pool.topics)
        relevant = pool.relevant(rel)[pool.document]
        self._document, self._pair = pool.document[relevant], pool.pair[relevant]
        edges = np.arange(self._n_topics + 1) * max(len(pool.entities), 1)
        self._starts = np.searchsorted(pool.pairs, edges)
        self.pair, self.n_reached = greedy_cover(self._document, self._pair, self._starts, len(pool), depth)
        self.topics = pool.topics

    def greedy(self, k: int | None) -> Ints:
        """Relevant documents that k entities reach, chosen greedily, shape (n_topics,)."""
        depth = self.n_reached.shape[1]
        if not depth:
            return np.zeros(self._n_topics, dtype=np.int64)
        column: Ints = self.n_reached[:, (depth if k is None else min(k, depth)) - 1]
        return column

    def exact(self, k: int | None) -> Ints:
        """Relevant documents that the best k entities reach, shape (n_topics,).

        Topics whose greedy choice reaches all that can be reached are settled; the others are integer programmes, one a
        topic: maximise ``Σ_d y_d`` with ``y_d <= Σ_{e in Λ(d)} x_e``, ``Σ_e x_e <= k``, x binary, y in [0, 1].

        Raises
        ------
        InputError
            A topic that is not settled within ``MOST_NODES`` nodes of the search.
        """
        best = self.greedy(k).copy()
        if k is None:
            return best
        topic = np.searchsorted(self._starts, self._pair, side="right") - 1
        # Links stand by document, documents by topic.
        bounds = np.searchsorted(topic, np.arange(self._n_topics + 1))
        for one in range(self._n_topics):
            here = slice(bounds[one], bounds[one + 1])
            documents, row = np.unique(self._document[here], return_inverse=True)
            entities, column = np.unique(self._pair[here], return_inverse=True)
            # One entity is chosen best by greed, and all of them reach everything.
            if best[one] < len(documents) and 1 < k < len(entities):
                best[one] = _most_reached(row, column, k, self.topics[one])
        return best


def _most_reached(document: Ints, entity: Ints, k: int, name: str) -> int:
    """The most documents that k entities reach, by SciPy's HiGHS; one link is (document, entity)."""
    from scipy import optimize, sparse

    n_documents, n_entities = int(document.max()) + 1, int(entity.max()) + 1
    linked = sparse.csr_array((np.ones(len(document)), (document, entity)), shape=(n_documents, n_entities))
    reached = optimize.LinearConstraint(
        sparse.hstack([linked, -sparse.eye_array(n_documents)], format="csr"), 0, np.inf
    )
    taken = np.concatenate([np.ones(n_entities), np.zeros(n_documents)])
    found = optimize.milp(
        taken - 1,
        constraints=[reached, optimize.LinearConstraint(taken, 0, k)],
        integrality=taken,
        bounds=optimize.Bounds(0, 1),
        options={"node_limit": MOST_NODES, "mip_rel_gap": 0.0},
    )
    if found.status != 0:
        raise InputError(
            f"query {name!r}: the best {k} of {n_entities} entities for {n_documents} relevant documents are not found "
            f"within {MOST_NODES} steps; take the greedy cover, exact=False, which is at least 63 % of it"
        )
    return round(-found.fun)
