"""Unsupervised entity rankers: consensus, IDF, PageRank over co-occurrence, and chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import PoolRanker, QueryEntities, RunOnPool, RunReranker
from vbterrier.entities.stage import EntityStage
from vbterrier.errors import agreeing, choice, examples, number, warn, whole
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ranking import Run, ranked
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.linked_pool import LinkedPool


class LocalIDF(RunReranker):
    """Multiply the scores of an entity run by the inverse document frequency in the pool: E -> E.

    ``score'(e, q) = score(e, q) (log((N_q + 1)/(df(e, q) + 1)) + 1)``, where the pool of the topic has ``N_q``
    documents, and df of them mention e. An entity that no document mentions gets 0.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.LinkedPool`, or its K frame.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.

    Raises
    ------
    InputError
        Tags instead of a pool. See the contract of runs.

    Notes
    -----
    The factor is at least 1, so it lowers negative scores of rare entities; a warning reports negative scores.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, equation 10.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities import link_pool
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
        """Replace the scores and ranks of an entity run."""
        self.require_columns(inp, "qid", "docno", "score")
        aligned = RunOnPool.on(self._pool, inp)
        if (aligned.run.score < 0).any():
            warn("entity run: scores below 0, which LocalIDF lowers more for rarer entities; shift them first")
        idf = aligned.of_pairs(aligned.pool.idf)
        return ranked(inp.assign(score=(aligned.run.score * idf).astype(np.float64)), name="entity run")


SUPPORT = ("rank", "rho", "rho+rank")


def soft_support(pool: LinkedPool, support: str) -> Floats:
    """Return the support of each pair, summed over the documents that mention its entity, shape (n_pairs,)."""
    weight = np.ones(len(pool.entity)) if support == "rank" else pool.weight
    if support != "rho":
        # The first rank of a pool is 0.
        weight = weight / np.log2(pool.rank + 2.0)[pool.document]
    return np.bincount(pool.pair, weight, minlength=len(pool.pairs)).astype(np.float64, copy=False)


class ConsensusEntities(PoolRanker):
    """Rank entities by the number and rank of the documents that mention them: R -> E.

    ``score(e, q) = soft_support(e, q) (log((K + 1)/(df(e, q) + 1)) + 1)`` for entities of at least ``min_documents``
    documents, where the pool has K documents and df of them mention e. By default, entities of a single document are
    dropped, because linkers rarely repeat an error.

    Parameters
    ----------
    links
        The pool with its entities, a :class:`~vbterrier.entities.LinkedPool` or its K frame; the input then
        determines the topics to rank, and its documents are ignored. Or tags of documents (docno, entity_id [, weight,
        qid]); the documents of the input are then the pool.
    support
        The contribution of a document: ``"rank"``, ``1/log2(rank + 1)`` with ranks from 1; ``"rho"``, the highest
        confidence of its mentions; ``"rho+rank"``, the product.
    min_documents
        The smallest number of documents that mention a ranked entity.
    pool_cutoff, cutoff
        The number of documents in the pool of each topic, and of entities to keep; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames.

    Notes
    -----
    A confidence of 0 contributes nothing: an entity with no other links is ranked with score 0. Topics whose documents
    have no entities are absent from the result.

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

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:  # noqa: ARG002 - common signature
        """Return the score of each of ``pool.pairs``, NaN below ``min_documents``, shape (n_pairs,)."""
        return np.where(pool.df >= self.min_documents, soft_support(pool, self.support) * pool.idf, np.nan)


def personalised_pagerank(document: Ints, entity: Ints, restart: Floats, *, damping: float, tolerance: float) -> Floats:
    """Return the stationary distribution of a walk with restarts over co-occurring entities, shape (n_entities,).

    ``document`` and ``entity`` are the distinct links of one topic; ``restart`` sums to 1; ``tolerance`` is the largest
    L1 distance to the exact distribution.

    The walk moves from e to f with probability ``A[e, f] / sum_g A[e, g]``, where A counts the documents that mention
    both and f differs from e; from an entity without neighbours it restarts. ``A = B'B - diag(df)``, with B the
    documents by entities, is not computed: a step is two products with B. Every step reduces the L1 distance to the
    limit, initially at most 2, by the factor ``damping``, which determines the number of steps for any graph.
    """
    from scipy.sparse import csr_array

    n_documents = int(document.max(initial=-1)) + 1
    of_documents = csr_array((np.ones(len(entity)), (document, entity)), shape=(n_documents, len(restart)))
    of_entities = of_documents.T.tocsr()
    df = np.bincount(entity, minlength=len(restart))
    shared = of_entities @ (of_documents @ np.ones(len(restart))) - df
    isolated = shared == 0
    per_edge = np.divide(1.0, shared, out=np.zeros(len(restart)), where=~isolated)
    walk = restart.copy()
    for _ in range(math.ceil(math.log(tolerance / 2) / math.log(damping))):
        leaving = walk * per_edge
        walk = damping * (of_entities @ (of_documents @ leaving) - df * leaving + walk[isolated].sum() * restart)
        walk += (1 - damping) * restart
    return walk


class PersonalisedPageRank(PoolRanker):
    """Rank entities by a walk with restarts over the co-occurrence graph of the topic's pool: R -> E.

    ``x = damping (P'x + x(isolated) r) + (1 - damping) r``, where P moves from an entity to its neighbours in
    proportion to the number of documents that mention both, and r is the restart distribution.

    Parameters
    ----------
    links, pool_cutoff, cutoff
        As in :class:`~vbterrier.entities.ConsensusEntities`.
    damping
        The probability of a step without restart, above 0 and below 1.
    restart
        The restart distribution. ``"rank"``, ``"rho"``, ``"rho+rank"``: proportional to the support of
        :class:`~vbterrier.entities.ConsensusEntities`; ``"uniform"``: uniform over the entities of the pool; or the
        entities of the queries, an I frame (qid, entity_id [, prob]): proportional to prob. Topics without a query
        entity in the pool are not ranked, with a warning.
    tolerance
        The largest L1 distance of the scores to the exact distribution.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags, K and I frames.

    Notes
    -----
    Scores sum to 1 in every topic before ``cutoff`` applies. Entities that the walk never reaches are not ranked. The
    number of steps depends only on ``damping`` and ``tolerance``: 118 by default. The paper names the method and does
    not define the graph: this one counts documents and ignores confidences.

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
            self.restart = pandas_frame(restart, "restart").copy()
            self._query = QueryEntities(self.restart, name="restart")

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:  # noqa: ARG002 - common signature
        """Return the probability of each of ``pool.pairs``, NaN for unreached entities, shape (n_pairs,)."""
        weight = self._weight(pool)
        n_topics, size = len(pool.topics), len(pool.entities)
        pairs = np.searchsorted(pool.pairs, np.arange(n_topics + 1) * size)
        links = pool.starts[pool.topic_starts]
        score = np.zeros(len(weight))
        unknown = []
        for topic in range(n_topics):
            restart_pairs, linked = slice(*pairs[topic : topic + 2]), slice(*links[topic : topic + 2])
            total = weight[restart_pairs].sum()
            if total > 0:
                score[restart_pairs] = personalised_pagerank(
                    pool.document[linked] - pool.topic_starts[topic],
                    pool.pair[linked] - pairs[topic],
                    weight[restart_pairs] / total,
                    damping=self.damping,
                    tolerance=self.tolerance,
                )
            elif restart_pairs.stop > restart_pairs.start:
                unknown.append(pool.topics[topic])
        if unknown:
            problem = agreeing(len(unknown), "topics have no restart entity and no ranking")
            warn(f"restart: {problem} ({examples(unknown)})")
        return np.where(score > 0, score, np.nan)

    def _weight(self, pool: LinkedPool) -> Floats:
        """Return the unnormalised restart weight of each of ``pool.pairs``."""
        if self._query is None:
            support = str(self.restart)
            return np.ones(len(pool.pairs)) if support == "uniform" else soft_support(pool, support)
        topic, entity, prob = self._query.of(pool.topics)
        pair = pool.find(topic, pool.entities_of(entity))
        weight = np.bincount(pair[pair >= 0], prob[pair >= 0], minlength=len(pool.pairs))
        return weight.astype(np.float64, copy=False)


class RandomEntities(EntityStage):
    """Replace the scores of an entity run by random numbers, the control of trained rankers: E -> E.

    Parameters
    ----------
    seed
        At least 0. The score of an entity depends on the seed, the topic and the entity, not on the other rows.

    Raises
    ------
    ParameterError
        A seed that is no whole number of at least 0.

    Notes
    -----
    If candidates are derived from judgments (:func:`~vbterrier.entities.supervision.closed_entities`), a random order
    of them gains in conditional evaluation as a trained ranker does: the candidates carry the judgments.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Paris", "Texas"], "score": [2.0, 1.0]})
    >>> RandomEntities(seed=1)(run)[["docno", "rank"]].values.tolist()
    [['Paris', 0], ['Texas', 1]]
    """

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__()
        self.seed = whole("seed", seed, low=0)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace the scores and ranks of an entity run."""
        self.require_columns(inp, "qid", "docno", "score")
        run = Run(inp, name="entity run")
        score = random_scores(run.topics, run.topic, run.docno, self.seed)
        return ranked(run.frame.assign(score=score), name="entity run")


def random_scores(topics: list[str], topic: Ints, entity: Ids, seed: int) -> Floats:
    """Return a uniform random number in [0, 1) that the seed and the ids of each pair determine, shape (n,)."""
    words = np.array([stream(seed, "entities", qid).integers(2**63) for qid in topics], dtype=np.uint64)
    # The upper 53 bits, the precision of a double.
    scores: Floats = (mix(mix(entity.fingerprints) + words[topic]) >> np.uint64(11)) / 2.0**53
    return scores
