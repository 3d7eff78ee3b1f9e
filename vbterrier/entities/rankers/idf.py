"""Entities that much of the pool mentions weigh less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyterrier as pt

from vbterrier.entities.rankers.base import RunReranker, warn
from vbterrier.frames.ranked import ranked

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def pool_df(pool: LinkedPool) -> Ints:
    """Documents of the topic's pool that mention each pair's entity, shape (n_pairs,)."""
    return np.bincount(pool.pair, minlength=len(pool.pairs))


def pool_idf(pool: LinkedPool, df: Ints) -> Floats:
    """``log((N_q + 1)/(df + 1)) + 1`` of each pair, with N_q documents in the topic's pool, shape (n_pairs,)."""
    n_documents = np.diff(pool.topic_starts)[pool.pairs // max(len(pool.entities), 1)]
    idf: Floats = np.log((n_documents + 1) / (df + 1)) + 1
    return idf


class LocalIDF(RunReranker):
    """Reweigh an entity run by how rare its entities are in the pool: E -> E.

    ``score'(e, q) = score(e, q) (log((N_q + 1)/(df(e, q) + 1)) + 1)``, where ``N_q`` documents make the pool of the
    topic and df of them mention e. Entities that none of them mentions get 0.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.pool.LinkedPool`, or its K frame.
    depth
        How many documents of each topic make the pool; ``None`` for all.

    Raises
    ------
    InputError
        Links that are tags without a pool. See the contracts of runs.

    Notes
    -----
    The factor is at least 1. Scores below 0 fall where they should rise, which a warning says.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, equation 10.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d2"], "entity_id": ["Paris", "Paris", "Texas"]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Paris", "Texas", "Rome"], "score": [1.2, 1.0, 3.0]})
    >>> LocalIDF(link_pool(pool, tags))(run)[["docno", "score"]].round(3).values.tolist()
    [['Texas', 1.405], ['Paris', 1.2], ['Rome', 0.0]]
    """

    def __init__(self, links: Any, *, depth: int | None = None) -> None:
        super().__init__()
        self._set_links(links, depth)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set scores and ranks of an entity run anew."""
        pt.validate.result_frame(inp, extra_columns=["score"])
        placed = self._placed(inp)
        if (placed.run.score < 0).any():
            warn("entity run: scores below 0, which LocalIDF lowers the more the rarer an entity is; shift them first")
        idf = pool_idf(placed.pool, pool_df(placed.pool))
        score: Any = placed.run.score * placed.of_pairs(idf)
        return ranked(inp.assign(score=score.astype(np.float64)), name="entity run")
