"""Entity rankers without supervision: consensus, IDF and PageRank over co-occurrence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyterrier as pt

from vbterrier.entities.rankers.base import PoolRanker, QueryEntities, RunReranker
from vbterrier.errors import examples, warn
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.parameters import choice, number, whole
from vbterrier.frames.ranking import ranked

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.pool import LinkedPool


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
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.

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

    def __init__(self, links: Any, *, pool_cutoff: int | None = None) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set scores and ranks of an entity run anew."""
        pt.validate.result_frame(inp, extra_columns=["score"])
        placed = self._placed(inp)
        if (placed.run.score < 0).any():
            warn("entity run: scores below 0, which LocalIDF lowers the more the rarer an entity is; shift them first")
        idf = pool_idf(placed.pool, pool_df(placed.pool))
        score: Any = placed.run.score * placed.of_pairs(idf)
        return ranked(inp.assign(score=score.astype(np.float64)), name="entity run")


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
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.
    cutoff
        The number of entities of each topic to keep; ``None`` for all.

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
        pool_cutoff: int | None = None,
        cutoff: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff, cutoff)
        self.support = choice("support", support, SUPPORT)
        self.min_documents = whole("min_documents", min_documents)

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:  # noqa: ARG002 - the same for every ranker
        """The score of each of ``pool.pairs``, NaN below ``min_documents``, shape (n_pairs,)."""
        df = pool_df(pool)
        return np.where(df >= self.min_documents, soft_support(pool, self.support) * pool_idf(pool, df), np.nan)


def personalised_pagerank(document: Ints, entity: Ints, restart: Floats, *, damping: float, tolerance: float) -> Floats:
    """Where a walk with restarts over entities that share documents is found, shape (n_entities,).

    Parameters
    ----------
    document, entity
        The links of one topic, each once: numbers of documents and of entities from 0, shape (n_links,).
    restart
        Where walks begin, sums to 1, shape (n_entities,).
    damping
        How probable it is to go on.
    tolerance
        The largest L1 distance to the exact distribution.

    Notes
    -----
    From e to f with probability ``A[e, f] / sum_g A[e, g]``, where A counts the documents that mention both, e other
    than f; from an entity that shares no document, to the restart. ``A = B'B - diag(df)`` with B the documents by
    entities is never made: a step is two products with B, linear in the links. A step brings any distribution nearer to
    the limit by the factor ``damping``, and two are at most 2 apart: so the number of steps is known before, whatever
    the graph.

    >>> one, two = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    >>> walk = personalised_pagerank(one, two, np.array([1.0, 0.0, 0.0]), damping=0.5, tolerance=1e-9)
    >>> walk.round(4).tolist()
    [0.5833, 0.3333, 0.0833]
    """
    from scipy.sparse import csr_array

    n_documents = int(document.max(initial=-1)) + 1
    of_documents = csr_array((np.ones(len(entity)), (document, entity)), shape=(n_documents, len(restart)))
    of_entities = of_documents.T.tocsr()
    df = np.bincount(entity, minlength=len(restart))
    shared = of_entities @ (of_documents @ np.ones(len(restart))) - df
    alone = shared == 0
    per_edge = np.divide(1.0, shared, out=np.zeros(len(restart)), where=~alone)
    walk = restart.copy()
    for _ in range(math.ceil(math.log(tolerance / 2) / math.log(damping))):
        leaving = walk * per_edge
        walk = damping * (of_entities @ (of_documents @ leaving) - df * leaving + walk[alone].sum() * restart)
        walk += (1 - damping) * restart
    return walk


class PersonalisedPageRank(PoolRanker):
    """Rank entities by a walk with restarts over the co-occurrence graph of the topic's pool: R -> E.

    ``x = damping (P'x + x(alone) r) + (1 - damping) r``: entities are joined by the documents that mention both, P goes
    from one to its neighbours in proportion to how many those are, r is where walks restart.

    Parameters
    ----------
    links
        As :class:`~vbterrier.entities.rankers.consensus.ConsensusEntities` takes them.
    damping
        How probable it is to go on instead of restarting, above 0 and below 1.
    restart
        ``"rank"``, ``"rho"``, ``"rho+rank"``: in proportion to the soft support of
        :class:`~vbterrier.entities.rankers.consensus.ConsensusEntities`; ``"uniform"``: at any entity of the pool; or
        the entities of the queries, an I frame (qid, entity_id [, prob]), in proportion to prob. Topics without an
        entity in the pool that is one of the query's have no ranking, with a warning.
    tolerance
        The largest L1 distance of the scores to the exact distribution.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.
    cutoff
        The number of entities of each topic to keep; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags, K and I frames.

    Notes
    -----
    Scores sum to 1 in every topic before ``cutoff``. Entities that the walk never reaches score 0 and are not ranked. The
    number of steps follows from damping and tolerance alone, 118 by default, each linear in the links; the graph itself
    is never made. The paper names the method and leaves the graph open: we count documents and no confidences.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.8. Haveliwala: Topic-Sensitive PageRank,
    WWW 2002.

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Rome", "Italy", "Italy", "Milan"]})
    >>> query = pd.DataFrame({"qid": ["q1"], "entity_id": ["Rome"]})
    >>> PersonalisedPageRank(tags, damping=0.5, restart=query)(pool)[["docno", "score"]].round(4).values.tolist()
    [['Rome', 0.5833], ['Italy', 0.3333], ['Milan', 0.0833]]
    """

    def __init__(
        self,
        links: Any,
        *,
        damping: float = 0.85,
        restart: Any = "rank",
        tolerance: float = 1e-8,
        pool_cutoff: int | None = None,
        cutoff: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff, cutoff)
        self.damping = number("damping", damping, low=0, high=1, open_low=True, open_high=True)
        self.tolerance = number("tolerance", tolerance, low=0, high=1, open_low=True, open_high=True)
        self._query: QueryEntities | None = None
        if isinstance(restart, str):
            self.restart: str | pd.DataFrame = choice("restart", restart, (*SUPPORT, "uniform"))
        else:
            self.restart = frame_of(restart, "restart").copy()
            self._query = QueryEntities(self.restart, name="restart")

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:  # noqa: ARG002 - the same for every ranker
        """The share of the walk at each of ``pool.pairs``, NaN where it never is, shape (n_pairs,)."""
        weight = self._weight(pool)
        n_topics, size = len(pool.topics), len(pool.entities)
        pairs = np.searchsorted(pool.pairs, np.arange(n_topics + 1) * size)
        links = pool.starts[pool.topic_starts]
        score = np.zeros(len(weight))
        unknown = []
        for topic in range(n_topics):
            own, linked = slice(*pairs[topic : topic + 2]), slice(*links[topic : topic + 2])
            total = weight[own].sum()
            if total > 0:
                score[own] = personalised_pagerank(
                    pool.document[linked] - pool.topic_starts[topic],
                    pool.pair[linked] - pairs[topic],
                    weight[own] / total,
                    damping=self.damping,
                    tolerance=self.tolerance,
                )
            elif own.stop > own.start:
                unknown.append(pool.topics[topic])
        if unknown:
            warn(f"restart: nowhere to begin in {len(unknown)} topics, which have no ranking ({examples(unknown)})")
        return np.where(score > 0, score, np.nan)

    def _weight(self, pool: LinkedPool) -> Floats:
        """What restarts at each of ``pool.pairs`` in proportion."""
        if self._query is None:
            support = str(self.restart)
            return np.ones(len(pool.pairs)) if support == "uniform" else soft_support(pool, support)
        topic, entity, prob = self._query.of(pool.topics)
        pair = pool.find(topic, pool.entities_of(entity))
        found = pair >= 0
        return np.bincount(pair[found], prob[found], minlength=len(pool.pairs)).astype(np.float64, copy=False)
