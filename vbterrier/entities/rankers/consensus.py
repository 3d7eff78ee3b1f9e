"""Entities on which documents of the pool agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import PoolRanker
from vbterrier.entities.rankers.idf import pool_df, pool_idf
from vbterrier.frames.parameters import choice, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool

    Floats = NDArray[np.float64]

SUPPORT = ("rank", "rho", "rho+rank")


def soft_support(pool: LinkedPool, support: str) -> Floats:
    """What the documents that mention each pair's entity add up to, shape (n_pairs,).

    A document adds ``1/log2(rank + 1)``, rank from 1, for ``"rank"``; the highest confidence of its mentions of the
    entity for ``"rho"``; their product for ``"rho+rank"``.
    """
    weight = np.ones(len(pool.entity)) if support == "rank" else pool.weight
    if support != "rho":
        # Ranks of pools begin at 0.
        weight = weight / np.log2(pool.rank + 2.0)[pool.document]
    return np.bincount(pool.pair, weight, minlength=len(pool.pairs)).astype(np.float64, copy=False)


class ConsensusEntities(PoolRanker):
    """Rank entities by the documents of the pool that agree on them: R -> E.

    ``score(e, q) = soft_support(e, q) (log((K + 1)/(df(e, q) + 1)) + 1)`` for entities of at least ``min_documents``
    documents, where K documents make the pool and df of them mention e. Links of one document alone are dropped, since
    errors of linkers are seldom made twice.

    Parameters
    ----------
    links
        The pool with its entities: a :class:`~vbterrier.entities.pool.LinkedPool` or its K frame, in which case the
        input says for which topics to rank, and its documents do not count. Or tags of documents (docno, entity_id
        [, weight, qid]); then the documents of the input are the pool.
    support
        What a document adds: ``"rank"`` ``1/log2(rank + 1)`` with ranks from 1; ``"rho"`` the highest confidence of its
        mentions; ``"rho+rank"`` the product.
    min_documents
        How many documents must mention an entity.
    depth
        How many documents of each topic make the pool; ``None`` for all.
    top
        How many entities of each topic to keep; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames.

    Notes
    -----
    Linear in the links. A confidence of 0 adds nothing: an entity of such links alone scores 0 and stays. Topics whose
    documents have no entities are absent from the result.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, equation 11.

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d3"], "entity_id": ["Paris", "Rome", "Paris", "Texas"]})
    >>> ConsensusEntities(tags)(pool)[["docno", "score", "rank"]].round(3).values.tolist()
    [['Paris', 2.1, 0]]
    """

    def __init__(
        self,
        links: Any,
        *,
        support: str = "rank",
        min_documents: int = 2,
        depth: int | None = None,
        top: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, depth, top)
        self.support = choice("support", support, SUPPORT)
        self.min_documents = whole("min_documents", min_documents)

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:  # noqa: ARG002 - the same for every ranker
        """The score of each of ``pool.pairs``, NaN below ``min_documents``, shape (n_pairs,)."""
        df = pool_df(pool)
        return np.where(df >= self.min_documents, soft_support(pool, self.support) * pool_idf(pool, df), np.nan)
