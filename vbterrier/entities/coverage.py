"""Coverage of a linked pool by an entity run at every cutoff."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.ids import Ids, require_same_kind
from vbterrier.frames.ranking import Run
from vbterrier.frames.runs import run_places
from vbterrier.kernels.coverage import CLASSES, NEVER, coverage, greedy_cover

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.oer import EntityTable
    from vbterrier.entities.pool import LinkedPool


# In place of an entity's number: the list is shorter; no document of any topic mentions it.
NONE, UNKNOWN = -1, -2


class Selection:
    """The first entities of a run for the topics of a pool.

    Parameters
    ----------
    pool
        The pool.
    run
        The entity run, a frame or a ``Run``: qid, docno (an entity's id), score; in trec_eval's order.
    depth
        How many entities of each topic to keep; ``None`` for all.

    Attributes
    ----------
    entity : numpy.ndarray
        Numbers among ``pool.entities``, -1 where the list is shorter, -2 for an entity that no document of any topic
        mentions, shape (n_topics, depth); ``depth`` is that of the longest list.
    score : numpy.ndarray
        NaN where the list is shorter, shape (n_topics, depth).

    Raises
    ------
    InputError
        See the contract of runs; ids that can never meet; no topic in common.

    Warns
    -----
    DegenerateWarning
        No document mentions any of the entities.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Paris", "Texas"]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Texas", "Rome"], "score": [2.0, 1.0]})
    >>> Selection(link_pool(pool, tags), run, cutoff=20).entity
    array([[ 1, -2]])
    """

    def __init__(self, pool: LinkedPool, run: Any, depth: int | None = None) -> None:
        run = run if isinstance(run, Run) else Run(run)
        self.pool = pool
        require_same_kind(pool.entities, run.docno, "links column 'entity_id'", f"{run.name} column 'docno'")
        # Topics have met as text since the pool was linked; whoever holds its frame compares their kinds.
        place = run_places(run, pool.topics, Ids(None, run.topic_ids.integers), "links")
        top = run.top(depth)
        found, shape = place >= 0, (len(pool.topics), top.depth)
        rows = np.full(shape, -1)
        rows[place[found]] = top.rows[found]
        filled = rows >= 0
        self.entity: Ints = np.full(shape, NONE)
        self.score: Floats = np.full(shape, np.nan)
        docno = run.docno.take(rows[filled])
        number = pool.entities_of(docno)
        if len(number) and len(pool.entities) and (number < 0).all():
            # Not one in any topic's documents: seldom a bad ranker, mostly titles against ids.
            warn(
                f"{run.name}: no document of the links mentions any of its {len(number)} entities (run: "
                f"{examples(docno.text[:4].to_pylist())}; links: {examples(pool.entities.text[:4].to_pylist())}); look "
                "for other spaces of ids"
            )
        self.entity[filled] = np.where(number >= 0, number, UNKNOWN)
        self.score[filled] = run.score[rows[filled]]

    @property
    def depth(self) -> int:
        """The number of ranks."""
        return int(self.entity.shape[1])

    @property
    def n_entities(self) -> Ints:
        """How many entities are listed for each topic, those outside the pool included, shape (n_topics,)."""
        listed: Ints = (self.entity != NONE).sum(axis=1)
        return listed

    @cached_property
    def pair(self) -> Ints:
        """The place among ``pool.pairs``, -1 where no document of the topic mentions it, shape (n_topics, depth)."""
        return self.pool.find(np.arange(len(self.entity))[:, None], self.entity)

    @cached_property
    def link_ranks(self) -> Ints:
        """The rank from 0 of each link's entity in its topic's list, ``NEVER`` without one, shape (n_links,)."""
        ranks = np.full(len(self.pool.entity), NEVER)
        link, rank = self._links
        ranks[link] = rank
        return ranks

    @cached_property
    def first(self) -> Ints:
        """The best rank among the entities of each document, ``NEVER`` where none is listed, shape (n_documents,)."""
        ranks = np.full(len(self.pool), NEVER)
        link, rank = self._links
        np.minimum.at(ranks, self.pool.document[link], rank)
        return ranks

    @property
    def _links(self) -> tuple[Ints, Ints]:
        """The links of listed entities, and the rank of each."""
        topic, rank = (np.asarray(axis) for axis in np.nonzero(self.pair >= 0))
        owner, link = self.pool.mentioned(self.pair[topic, rank])
        return link, rank[owner]


SIGNAL = ("core", "conditional")
BAIT = ("generic bait", "anti-signal")

# Two numbers always agree or oppose.
LEAST_CORRELATED = 3


def reached_shares(selection: Selection, chosen: Bools) -> Floats:
    """The share of some documents that the first 0, 1, 2, ... entities reach, shape (n_topics, depth + 1).

    Parameters
    ----------
    selection
        The entity run.
    chosen
        Which documents of the pool count, shape (n_documents,); a topic without any has NaN.
    """
    pool = selection.pool
    cutoffs = np.arange(selection.depth + 1)
    return coverage(selection.first, chosen, pool.topic, len(pool.topics), cutoffs)


def at_cutoff(shares: Floats, k: int | None) -> Floats:
    """The column of a cutoff, the last for those beyond the longest list, shape (n_topics,)."""
    last = shares.shape[1] - 1
    column: Floats = shares[:, last if k is None else min(k, last)]
    return column


def mean_overlap(selection: Selection, chosen: Bools, k: int) -> Floats:
    """How many of the first k entities some documents mention, mean over those that mention any (Table 5).

    ``mean |Λ(d) ∩ Ê^k|`` over the chosen documents with at least one; NaN for topics without such a document.

    Parameters
    ----------
    selection
        The entity run.
    chosen
        Which documents of the pool count, shape (n_documents,).
    k
        How many entities count.

    Returns
    -------
    numpy.ndarray
        Shape (n_topics,).
    """
    pool = selection.pool
    among = np.bincount(pool.document[selection.link_ranks < k], minlength=len(pool))
    covered = chosen & (among > 0)
    n, total = (
        np.bincount(pool.topic[covered], weights, minlength=len(pool.topics)) for weights in (None, among[covered])
    )
    with np.errstate(invalid="ignore"):
        overlap: Floats = total / n
    return overlap


def ratio(relevant: Floats, other: Floats, n_other: Ints) -> Floats:
    """``RelCov / (NonRelCov + 1/(2 |N_q|))`` of each topic, NaN where either is undefined; shape (n_topics,)."""
    # Half a document more than is reached: a topic that reaches no other document has a ratio, too.
    found: Floats = relevant / (other + 0.5 / np.maximum(n_other, 1))
    return found


def of_selected(selection: Selection, values: Floats, *, outside: float) -> Floats:
    """A value of each selected entity from those of all pairs, shape (n_topics, depth).

    Parameters
    ----------
    selection
        The entity run.
    values
        Of each pair, shape (n_pairs,).
    outside
        The value of an entity that no document of the topic mentions. Where the list is shorter it is NaN.
    """
    found: Floats = np.full(selection.entity.shape, outside)
    inside = selection.pair >= 0
    found[inside] = values[selection.pair[inside]]
    found[selection.entity == NONE] = np.nan
    return found


def mean_of_first(values: Floats, k: int | None) -> Floats:
    """The mean over the first k entities, or over the fewer that are listed; 0 without any; shape (n_topics,)."""
    head = values[:, :k]
    listed = ~np.isnan(head)
    mean: Floats = np.where(listed, head, 0.0).sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
    return mean


def is_one_of(classes: Ints, names: tuple[str, ...]) -> Floats:
    """1 for pairs of the named classes, 0 for others, shape (n_pairs,)."""
    return np.isin(classes, [CLASSES.index(name) for name in names]).astype(np.float64)


def rank_correlation(scores: Floats, values: Floats) -> Floats:
    """Spearman's correlation of each topic over entities without NaN, equal numbers at their mean rank.

    NaN where fewer than three entities are left, or all their scores or all their values are equal; shape (n_topics,).

    >>> rank_correlation(np.array([[3.0, 2.0, 1.0, np.nan]]), np.array([[0.5, 0.9, 0.1, np.nan]]))
    array([0.5])
    """
    from scipy import stats

    known = ~(np.isnan(scores) | np.isnan(values))
    n = known.sum(axis=1, keepdims=True)
    left, right = (
        np.where(known, stats.rankdata(np.where(known, axis, np.nan), axis=1, nan_policy="omit") - (n + 1) / 2, 0.0)
        for axis in (scores, values)
    )
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    defined = (n[:, 0] >= LEAST_CORRELATED) & (scale > 0)
    found: Floats = np.full(len(scores), np.nan)
    np.divide((left * right).sum(axis=1), scale, out=found, where=defined)
    return found


def core_coverage(table: EntityTable, classes: Ints) -> Floats:
    """The share of each topic's relevant documents that mention a core entity, shape (n_topics,)."""
    pool, core = table.pool, classes == CLASSES.index("core")
    _, link = pool.mentioned(np.flatnonzero(core))
    reached = np.zeros(len(pool), dtype=bool)
    reached[pool.document[link]] = True
    n = np.bincount(pool.topic[reached & pool.relevant(table.rel)], minlength=len(pool.topics))
    return share(n, table.n_relevant)


def share(part: Ints, whole: Ints) -> Floats:
    """Part of a whole, NaN where there is nothing; shape (n_topics,)."""
    found: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


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
