"""Coverage of a linked pool by an entity run at every cutoff, and observable entity relevance (OER)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, agreeing, examples, number, warn, whole
from vbterrier.frames.id_spaces import entity_ids
from vbterrier.frames.ids import Ids, require_same_kind, warn_of_near_matches
from vbterrier.frames.ranking import Run, run_places
from vbterrier.kernels.coverage import (
    CLASSES,
    coverage,
    first_ranks,
    greedy_cover,
    observable_relevance,
    signal_classes,
)
from vbterrier.kernels.rankings import NO_RANK

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.linked_pool import LinkedPool


# The parameters of OER. The paper states neither value; every report prints them.
ALPHA = 0.5
SHRINKAGE = 5.0
# Entity numbers for ranks beyond the end of a list, and for entities that no document of any topic mentions.
NO_ENTITY, UNKNOWN_ENTITY = -1, -2
# The class of an entity that no document of the topic's pool mentions, and of all entities of a topic without OER.
ABSENT, UNDEFINED = "absent", "undefined"


class EntityTable:
    """Counts of relevant and non-relevant documents for each pair of topic and entity in a pool.

    ``df_relevant`` and ``df_other`` count the topic's documents that mention the entity, shape (n_pairs,);
    ``n_relevant`` and ``n_other`` all of its documents, shape (n_topics,). Unjudged documents are non-relevant.
    """

    def __init__(self, pool: LinkedPool, rel: int = 1) -> None:
        self.pool, self.rel = pool, whole("rel", rel, meaning=", the lowest relevant label")
        relevant = pool.relevant(rel)
        n_topics, n_pairs = len(pool.topics), len(pool.pairs)
        self.n_relevant: Ints = np.bincount(pool.topic[relevant], minlength=n_topics)
        self.n_other: Ints = np.bincount(pool.topic[~relevant], minlength=n_topics)
        self.df_relevant: Ints = np.bincount(pool.pair[relevant[pool.document]], minlength=n_pairs)
        self.df_other: Ints = pool.df - self.df_relevant

    def __len__(self) -> int:
        return len(self.pool.pairs)

    def __repr__(self) -> str:
        return f"EntityTable({len(self)} pairs of topic and entity, rel={self.rel})"

    @cached_property
    def topic(self) -> Ints:
        """The topic of each pair, in ascending order, shape (n_pairs,)."""
        return self.pool.pairs // max(len(self.pool.entities), 1)

    @cached_property
    def entity(self) -> Ints:
        """Index of each pair's entity in ``pool.entities``, ascending in each topic, shape (n_pairs,)."""
        return self.pool.pairs % max(len(self.pool.entities), 1)

    @property
    def df(self) -> Ints:
        """Documents of the topic's pool that mention the entity, shape (n_pairs,)."""
        return self.pool.df

    @property
    def contrasts(self) -> Bools:
        """True for topics with relevant and non-relevant documents; other topics have no OER, shape (n_topics,)."""
        return (self.n_relevant > 0) & (self.n_other > 0)

    def oer(self, alpha: float = ALPHA, shrinkage: float = SHRINKAGE) -> Floats:
        """Return OER (:func:`vbterrier.kernels.coverage.observable_relevance`) of each pair, shape (n_pairs,).

        NaN in topics without relevant or without non-relevant documents.
        """
        number("alpha", alpha, low=0, open_low=True)
        number("shrinkage", shrinkage, low=0, open_low=True)
        n_relevant, n_other = self.n_relevant[self.topic], self.n_other[self.topic]
        rates = observable_relevance(
            self.df_relevant, self.df_other, n_relevant, n_other, alpha=alpha, shrinkage=shrinkage
        )
        return np.where(self.contrasts[self.topic], rates, np.nan)

    def classes(self, alpha: float = ALPHA, shrinkage: float = SHRINKAGE) -> Ints:
        """Return the class of each pair as an index into ``CLASSES``, -1 in topics without an OER, shape (n_pairs,)."""
        return signal_classes(self.oer(alpha, shrinkage), self.df_relevant, self.df_other)


def warn_of_no_entities(ids: Ids, topics: list[str], name: str) -> None:
    """Warn if an entity run has no entities for any of the topics, whose ids are then usually others."""
    if topics and not len(ids):
        warn(f"{name}: no entities for any of {len(topics)} topics ({examples(topics)})")


def warn_of_other_ids(pool: LinkedPool, ids: Ids, number: Ints, name: str) -> None:
    """Warn if there are no entities for the topics of a pool, or none that any document mentions.

    ``number`` are the indices of ``ids`` into the entities of the pool, -1 outside it.
    """
    warn_of_no_entities(ids, pool.topics, name)
    if not len(ids) or not len(pool.entities):
        return
    is_nil = entity_ids(ids, name, space=pool.space).is_nil
    if is_nil.any():
        message = agreeing(int(is_nil.sum()), "ids are NIL, have a rank and are reached by nothing")
        nils = ids.take(np.flatnonzero(is_nil)).distinct()[0].text.to_pylist()
        warn(f"{name}: {message} ({examples(nils)}); remove them")
    if (number < 0).all():
        # Usually a mismatch of ids, such as titles against numbers, and rarely a bad ranker.
        warn(
            f"{name}: no document of the links mentions any of its {len(ids)} entities ({name}: "
            f"{examples(ids.text[:4].to_pylist())}; links: {examples(pool.entities.text[:4].to_pylist())}); check that "
            "both use the same entity ids"
        )
    else:
        warn_of_near_matches(ids.take(np.flatnonzero(number < 0)), pool.entities, name, "entities", "the links")


class Selection:
    """The first entities of a run for the topics of a pool, in trec_eval's order.

    ``entity`` has indices into ``pool.entities``, -1 beyond the end of the list, -2 for an entity that no document of
    any topic mentions; ``score`` has NaN beyond the end. Shape (n_topics, length of the longest list).
    """

    def __init__(self, pool: LinkedPool, run: Any, cutoff: int | None = None) -> None:
        run = run if isinstance(run, Run) else Run(run)
        self.pool = pool
        require_same_kind(pool.entities, run.docno, "links column 'entity_id'", f"{run.name} column 'docno'")
        # Topics of a pool are text. Callers that have its frame compare the kinds of ids.
        place = run_places(run, pool.topics, Ids(None, run.topic_ids.integers), "links")
        top = run.top(cutoff)
        rows, topic, rank, docno = top.of_topics(place, len(pool.topics))
        self.entity: Ints = np.full(rows.shape, NO_ENTITY)
        self.score: Floats = np.full(rows.shape, np.nan)
        number = pool.entities_of(docno)
        if len(number):
            warn_of_other_ids(pool, docno, number, run.name)
        self.entity[topic, rank] = np.where(number >= 0, number, UNKNOWN_ENTITY)
        self.score[topic, rank] = run.score[rows[topic, rank]]

    @property
    def depth(self) -> int:
        """The number of ranks."""
        return int(self.entity.shape[1])

    @property
    def n_entities(self) -> Ints:
        """The number of entities in the list of each topic, including entities outside the pool, shape (n_topics,)."""
        listed: Ints = (self.entity != NO_ENTITY).sum(axis=1)
        return listed

    @cached_property
    def pair(self) -> Ints:
        """Index into ``pool.pairs``, -1 if no document of the topic mentions the entity, shape (n_topics, depth)."""
        return self.pool.find(np.arange(len(self.entity))[:, None], self.entity)

    @cached_property
    def link_ranks(self) -> Ints:
        """The rank, from 0, of each link's entity in the list of its topic, ``NO_RANK`` if absent, shape (n_links,)."""
        ranks = np.full(len(self.pool.entity), NO_RANK)
        topic, rank = np.nonzero(self.pair >= 0)
        owner, link = self.pool.mentioned(self.pair[topic, rank])
        ranks[link] = rank[owner]
        return ranks

    @cached_property
    def first(self) -> Ints:
        """The best rank among the entities of each document, ``NO_RANK`` if none is listed, shape (n_documents,)."""
        return first_ranks(self.link_ranks, self.pool.starts)


SIGNAL = ("core", "conditional")
BAIT = ("generic bait", "anti-signal")

# The correlation of two entities is always 1 or -1.
LEAST_CORRELATED = 3


def reached_shares(selection: Selection, chosen: Bools) -> Floats:
    """Return the share of the chosen documents that the first 0, 1, ... entities reach, shape (n_topics, depth + 1).

    NaN for topics without a chosen document.
    """
    pool = selection.pool
    cutoffs = np.arange(selection.depth + 1)
    return coverage(selection.first, chosen, pool.topic, len(pool.topics), cutoffs)


def at_cutoff(shares: Floats, k: int | None) -> Floats:
    """Return the column of a cutoff, or the last column if the cutoff exceeds the longest list, shape (n_topics,)."""
    last = shares.shape[1] - 1
    column: Floats = shares[:, last if k is None else min(k, last)]
    return column


def mean_overlap(selection: Selection, chosen: Bools, k: int) -> Floats:
    """Return the mean number of the first k entities per chosen document that mentions any of them (Table 5).

    ``mean |Λ(d) ∩ Ê^k|`` over the chosen documents with at least one, shape (n_topics,); NaN for topics without one.
    """
    pool = selection.pool
    among = np.bincount(pool.document[selection.link_ranks < k], minlength=len(pool))
    covered = chosen & (among > 0)
    n = np.bincount(pool.topic[covered], minlength=len(pool.topics))
    return share(np.bincount(pool.topic[covered], among[covered], minlength=len(pool.topics)), n)


def ratio(relevant: Floats, other: Floats, n_other: Ints, epsilon: float | None = None) -> Floats:
    """Return ``RelCov / (NonRelCov + ε)`` of each topic, NaN if either is undefined; shape (n_topics,)."""
    # Half a document is added so that topics that reach no non-relevant document have a ratio.
    ratios: Floats = relevant / (other + (0.5 / np.maximum(n_other, 1) if epsilon is None else epsilon))
    return ratios


def of_selected(selection: Selection, values: Floats) -> Floats:
    """Return the values of the selected entities from the values of all pairs, shape (n_topics, depth).

    Entities that no document of the topic mentions have the value 0; beyond the end of a list it is NaN.
    """
    values_at_rank: Floats = np.zeros(selection.entity.shape)
    inside = selection.pair >= 0
    values_at_rank[inside] = values[selection.pair[inside]]
    values_at_rank[selection.entity == NO_ENTITY] = np.nan
    return values_at_rank


def mean_of_first(values: Floats, k: int | None) -> Floats:
    """Return the mean over the first k entities, or all if fewer are listed; 0 if none are; shape (n_topics,)."""
    head = values[:, :k]
    listed = ~np.isnan(head)
    mean: Floats = np.where(listed, head, 0.0).sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
    return mean


def class_indicators(classes: Ints, names: tuple[str, ...]) -> Floats:
    """Return 1 for pairs of the named classes and 0 for other pairs, shape (n_pairs,)."""
    return np.isin(classes, [CLASSES.index(name) for name in names]).astype(np.float64)


def rank_correlation(scores: Floats, values: Floats) -> Floats:
    """Return Spearman's correlation of each topic over entities without NaN, with mean ranks for ties.

    NaN if fewer than three entities remain, or if all their scores or all their values are equal; shape (n_topics,).

    >>> rank_correlation(np.array([[3.0, 2.0, 1.0, np.nan]]), np.array([[0.5, 0.9, 0.1, np.nan]]))
    array([0.5])
    """
    from scipy import stats

    both_defined = ~(np.isnan(scores) | np.isnan(values))
    n = both_defined.sum(axis=1, keepdims=True)
    left, right = (
        np.where(
            both_defined,
            stats.rankdata(np.where(both_defined, axis, np.nan), axis=1, nan_policy="omit") - (n + 1) / 2,
            0.0,
        )
        for axis in (scores, values)
    )
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    defined = (n[:, 0] >= LEAST_CORRELATED) & (scale > 0)
    correlation: Floats = np.full(len(scores), np.nan)
    np.divide((left * right).sum(axis=1), scale, out=correlation, where=defined)
    return correlation


def core_coverage(table: EntityTable, classes: Ints) -> Floats:
    """Return the share of each topic's relevant documents that mention a core entity, shape (n_topics,).

    NaN for topics without relevant or without non-relevant documents, which have no OER and so no core entities.
    """
    pool = table.pool
    _, link = pool.mentioned(np.flatnonzero(classes == CLASSES.index("core")))
    reached = np.zeros(len(pool), dtype=bool)
    reached[pool.document[link]] = True
    n = np.bincount(pool.topic[reached & pool.relevant(table.rel)], minlength=len(pool.topics))
    return np.where(table.contrasts, share(n, table.n_relevant), np.nan)


def share(part: Ints | Floats, whole: Ints) -> Floats:
    """Return ``part / whole``, NaN if the whole is 0; shape (n_topics,)."""
    shares: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


# The limit of nodes in the search for the exact cover of one topic.
MOST_NODES = 10_000


class Oracle:
    """The number of relevant documents that the best entities reach, up to a number of entities or as many as needed.

    ``pair`` has the greedily chosen indices into ``pool.pairs``, -1 after the last, ``n_reached`` the number of
    relevant documents that the first 1, 2, ... of them reach, shape (n_topics, d).
    """

    def __init__(self, pool: LinkedPool, rel: int = 1, cutoff: int | None = None) -> None:
        self.topics = pool.topics
        relevant = pool.relevant(rel)[pool.document]
        self._document, self._pair = pool.document[relevant], pool.pair[relevant]
        edges = np.arange(len(pool.topics) + 1) * max(len(pool.entities), 1)
        self._starts = np.searchsorted(pool.pairs, edges)
        self.pair, self.n_reached = greedy_cover(self._document, self._pair, self._starts, len(pool), cutoff)

    def greedy(self, k: int | None) -> Ints:
        """Return the number of relevant documents that k greedily chosen entities reach, shape (n_topics,)."""
        depth = self.n_reached.shape[1]
        if not depth:
            return np.zeros(len(self.topics), dtype=np.int64)
        column: Ints = self.n_reached[:, (depth if k is None else min(k, depth)) - 1]
        return column

    def exact(self, k: int | None) -> Ints:
        """Return the number of relevant documents that the best k entities reach, shape (n_topics,).

        An integer programme in topics in which the greedy choice does not reach every reachable document: maximise
        ``Σ_d y_d`` with ``y_d <= Σ_{e in Λ(d)} x_e``, ``Σ_e x_e <= k``, x binary, y in [0, 1].
        """
        best = self.greedy(k).copy()
        if k is None:
            return best
        topic = np.searchsorted(self._starts, self._pair, side="right") - 1
        # Links are sorted by document, and documents by topic.
        bounds = np.searchsorted(topic, np.arange(len(self.topics) + 1))
        for one in range(len(self.topics)):
            here = slice(bounds[one], bounds[one + 1])
            documents, row = np.unique(self._document[here], return_inverse=True)
            entities, column = np.unique(self._pair[here], return_inverse=True)
            # The greedy choice of one entity is optimal, and so is the choice of all entities.
            if best[one] < len(documents) and 1 < k < len(entities):
                best[one] = _most_reached(row, column, k, self.topics[one])
        return best


def _most_reached(document: Ints, entity: Ints, k: int, name: str) -> int:
    """Return the largest number of documents that k entities reach, by SciPy's HiGHS; a link is (document, entity)."""
    from scipy import optimize, sparse

    n_documents, n_entities = int(document.max()) + 1, int(entity.max()) + 1
    linked = sparse.csr_array((np.ones(len(document)), (document, entity)), shape=(n_documents, n_entities))
    reached = sparse.hstack([linked, -sparse.eye_array(n_documents)], format="csr")
    taken = np.concatenate([np.ones(n_entities), np.zeros(n_documents)])
    limits = [optimize.LinearConstraint(reached, 0, np.inf), optimize.LinearConstraint(taken, 0, k)]
    options: Any = {"node_limit": MOST_NODES, "mip_rel_gap": 0.0}
    solution = optimize.milp(
        taken - 1, constraints=limits, integrality=taken, bounds=optimize.Bounds(0, 1), options=options
    )
    if solution.status != 0:
        raise InputError(
            f"query {name!r}: found no best {k} of {n_entities} entities for {n_documents} relevant documents "
            f"within {MOST_NODES} steps; use the greedy cover, exact=False, which reaches at least 63 % of the optimum"
        )
    return round(-solution.fun)
