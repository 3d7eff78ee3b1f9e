"""Base classes of stages over linked pools, document runs aligned with a pool, and the reachable documents."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyterrier as pt

from vbterrier.entities.pool import link_pool
from vbterrier.entities.provenance import JUDGMENTS, with_strongest_mark
from vbterrier.errors import InputError, agreeing, examples, warn, whole
from vbterrier.frames.columns import TAGS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.entity_coverage import ABSENT, ALPHA, SHRINKAGE, UNDEFINED, EntityTable, warn_of_other_ids
from vbterrier.frames.id_spaces import entity_ids
from vbterrier.frames.ids import Ids, column_ids, require_same_kind
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.pool_links import UNJUDGED
from vbterrier.frames.ranking import Run, places, run_places
from vbterrier.hosts import pyterrier
from vbterrier.kernels.coverage import CLASSES
from vbterrier.kernels.rankings import spans

if TYPE_CHECKING:
    from typing_extensions import Self

    from vbterrier.annotations import Bools, Floats, Ints


_ARRAYS = ("topic", "label", "rank", "starts", "entity", "weight", "mentions")
_MAX_LABEL_LENGTH = 60
_SELECTED_COLUMNS = ("name", "qid", "rank", "entity_id", "score", "df_relevant", "df_other", "oer", "signal")


def check_links(links: Any) -> LinkedPool | pd.DataFrame:
    """Return the parameter ``links``: a pool, that of an artifact or of a K frame, or a copy of a T frame."""
    if isinstance(links, pt.Artifact):
        # An artifact of linked pools, vbterrier.entities.LinkSet.
        links = getattr(links, "pool", links)
    if isinstance(links, LinkedPool):
        return links
    frame = pandas_frame(links, "links")
    if {"label", "rank"} <= set(frame.columns):
        return LinkedPool.from_frame(frame)
    frame = pandas_frame(frame, "links", TAGS)
    # Validate now, so that errors are raised before an experiment starts.
    TagFrame(frame, name="links")
    return frame.copy()


def pool_of_links(links: Any, name: str) -> LinkedPool:
    """Return the linked pool of a parameter ``links``, which tags are not."""
    pool = check_links(links)
    if not isinstance(pool, LinkedPool):
        raise InputError(f"{name}: links are tags without a pool; pass link_pool(pool, tags, qrels) or its frame")
    return pool


def require_judged(pool: LinkedPool, name: str) -> None:
    """Refuse a linked pool without judgments."""
    if len(pool) and (pool.label < 0).all():
        raise InputError(f"{name}: no document of the links is judged; give link_pool the qrels")


class EntityStage(pyterrier.Stage):
    """A stage whose parameters may be pools, frames and tables of vectors."""

    @staticmethod
    def same(one: Any, other: Any) -> bool:
        """Return True if two parameters are equal; pools, frames and arrays are compared by content."""
        same = EntityStage.same
        if one is other or type(one) is not type(other):
            return one is other
        if isinstance(one, LinkedPool):
            texts = [(pool.docno.text, pool.entities.text) for pool in (one, other)]
            ids = one.topics == other.topics and all(left.equals(right) for left, right in zip(*texts, strict=True))
            return ids and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in _ARRAYS)
        if isinstance(one, (list, tuple)):
            return len(one) == len(other) and all(map(same, one, other))
        if isinstance(one, dict):
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        if isinstance(one, pd.DataFrame):
            return bool(one.equals(other))
        return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)

    @staticmethod
    def short(value: Any) -> str:
        """Return a short text for a parameter: the size of a pool, a frame or a table."""
        if isinstance(value, LinkedPool):
            return f"{len(value.topics)} topics"
        if isinstance(value, pd.DataFrame):
            return f"{len(value)} rows"
        if hasattr(value, "__qualname__"):
            return str(value.__qualname__)
        # The repr of a table of vectors could take longer than the ranking.
        if isinstance(value, (str, int, float, tuple, list, pt.Transformer)) or value is None:
            text = repr(value)
            return text if len(text) <= _MAX_LABEL_LENGTH else text[: _MAX_LABEL_LENGTH - 3] + "..."
        return f"{len(value)} entries" if hasattr(value, "__len__") else type(value).__name__

    @staticmethod
    def hash_value(value: Any) -> int:
        """Return a hash; pools are compared by content, so their hash depends on the type only."""
        return hash(LinkedPool) if isinstance(value, LinkedPool) else pyterrier.Stage.hash_value(value)


class PoolLinks:
    """Links of documents: a linked pool or its K frame, or tags with which any run is linked."""

    def __init__(self, source: Any) -> None:
        self.given = check_links(source)

    def of(self, run: Run) -> Documents:
        """Return the documents of a run, by topic and in trec_eval's order, with their entities.

        Documents outside the linked pool, and documents without tags, have no entities.
        """
        documents = unlinked_documents(run)
        if isinstance(self.given, LinkedPool):
            pool = documents.pool
            document = self.given.find_documents(run.topics, pool.topic, pool.docno, f"{run.name} column 'docno'")
            return replace(documents, pool=linked_as(self.given, document, pool), in_pool=document >= 0)
        return replace(documents, pool=link_pool(run, self.given)) if any_tagged(run, self.given) else documents


def any_tagged(run: Run, tags: Any) -> bool:
    """Return True if a document of a run has a tag; ids have to be of the same kind."""
    tagged = column_ids(tags["docno"], "links column 'docno'")
    require_same_kind(tagged, run.docno, "links column 'docno'", f"{run.name} column 'docno'")
    return bool(pc.any(pc.is_in(run.docno.text, value_set=tagged.text)).as_py())


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a run with their entities."""

    run: Run
    pool: LinkedPool  # the documents of the run as a pool, by topic and in trec_eval's order
    row: Ints  # the row of the run of each document, shape (n_documents,)
    in_pool: Bools  # True for documents in the linked pool, shape (n_documents,)

    @property
    def score(self) -> Floats:
        """The score of each document, shape (n_documents,)."""
        return self.run.score[self.row]


def unlinked_documents(run: Run) -> Documents:
    """Return the documents of a run without any entities."""
    rows, starts, sizes = run.ordered_rows()
    rank = np.arange(len(rows)) - np.repeat(starts, sizes)
    pool = without_links(run.topics, run.topic[rows], run.docno.take(rows), rank)
    return Documents(run, pool, rows, np.ones(len(rows), dtype=bool))


def without_links(topics: list[str], topic: Ints, docno: Ids, rank: Ints) -> LinkedPool:
    """Return a pool of unjudged documents without entities."""
    none, starts = np.empty(0, dtype=np.int64), np.zeros(len(topic) + 1, dtype=np.int64)
    unjudged = np.full(len(topic), UNJUDGED)
    return LinkedPool(topics, topic, docno, unjudged, rank, docno.take(none), starts, none, np.empty(0), none)


def linked_as(pool: LinkedPool, document: Ints, bare: LinkedPool) -> LinkedPool:
    """Return the documents of ``bare`` with the links and labels of documents of a pool, none for the document -1."""
    if bare.topics == pool.topics and np.array_equal(document, np.arange(len(pool))):
        # The same object, so that its cached properties are computed once.
        return pool
    inside = np.flatnonzero(document >= 0)
    owner, link = spans(pool.starts[document[inside]], pool.starts[document[inside] + 1])
    label = np.full(len(document), UNJUDGED)
    label[inside] = pool.label[document[inside]]
    starts = np.searchsorted(inside[owner], np.arange(len(document) + 1))
    links = {name: getattr(pool, name)[link] for name in ("entity", "weight", "mentions")}
    return replace(bare, label=label, entities=pool.entities, space=pool.space, starts=starts, **links)


@dataclass(frozen=True, eq=False)
class TopEntities:
    """The first entities of a run for the topics of a pool, and the links to them."""

    pool: LinkedPool
    # topic, rank, score, ids, pair: for each listed entity, shape (n,): index of its topic in the pool, its rank from
    # 0, its score, its id, and its index into ``pool.pairs``, -1 if no document of the topic mentions it.
    topic: Ints
    rank: Ints
    score: Floats
    ids: Ids
    pair: Ints
    # link, owner: the links of the pool to listed entities, and the index of each link's listed entity, shape (m,).
    link: Ints
    owner: Ints

    @classmethod
    def of(cls, pool: LinkedPool, run: Run, cutoff: int | None) -> TopEntities:
        """Look up the first entities of each topic; topics that only the pool or only the run has are ignored."""
        require_same_kind(pool.entities, run.docno, "links column 'entity_id'", f"{run.name} column 'docno'")
        pool_run = run.only(pool.topics)
        top = pool_run.top(cutoff)
        place, rank = np.nonzero(top.rows >= 0)
        rows = top.rows[place, rank]
        topic, ids = places(pool_run.topics, pool.topics)[place], pool_run.docno.take(rows)
        ids = entity_ids(ids, run.name, space=pool.space).ids
        pair = pool.find(topic, pool.entities_of(ids))
        inside = np.flatnonzero(pair >= 0)
        owner, link = pool.mentioned(pair[inside])
        return cls(pool, topic, rank, pool_run.score[rows], ids, pair, link, inside[owner])

    @property
    def n(self) -> Ints:
        """The number of listed entities of each topic, shape (n_topics,)."""
        return np.bincount(self.topic, minlength=len(self.pool.topics))

    @cached_property
    def document(self) -> Ints:
        """The document of each link to a listed entity, shape (m,)."""
        return self.pool.document[self.link]

    @cached_property
    def reached_mask(self) -> Bools:
        """True for documents of the pool that mention a listed entity, shape (n_documents,)."""
        reached = np.zeros(len(self.pool), dtype=bool)
        reached[self.document] = True
        return reached

    def document_sums(self, values: Floats) -> Floats:
        """Return the sum of values over each document's links to listed entities, (m,) -> (n_documents,)."""
        total: Floats = np.bincount(self.document, values, minlength=len(self.pool)).astype(np.float64, copy=False)
        return total


def required_columns(stage: pt.Transformer) -> list[str]:
    """Return the columns that a stage needs, as far as its inspection shows."""
    columns: list[str] = (pt.inspect.transformer_inputs(stage, strict=False) or [[]])[0]
    return columns


class OnEntities(EntityStage):
    """Base class of stages that read an entity run, given as a frame or produced by a stage from the input."""

    entities: Any
    COLUMNS: tuple[str, ...] = ("qid", "docno", "score")

    def _set_entities(self, entities: Any) -> None:
        self._run: Run | None = None
        self._inner: list[str] | None = None
        if isinstance(entities, pt.Transformer):
            self.entities = entities
            return
        frame = pandas_frame(entities, "entities")
        require(frame, ("qid", "docno", "score"), "entities")
        # A copy, so that later changes of the caller's frame have no effect.
        self.entities = frame[frame.columns.intersection(["qid", "docno", "score", JUDGMENTS])].copy()
        self._run = Run(self.entities, name="entities")

    def _columns(self) -> list[str]:
        """The columns of the input that the stage itself needs."""
        return list(self.COLUMNS)

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of the input that the stage and the stage that ranks the entities need."""
        if self._inner is None:
            is_pipeline = isinstance(self.entities, pt.Transformer)
            self._inner = required_columns(self.entities) if is_pipeline else []
        return [list(dict.fromkeys([*self._columns(), *self._inner]))]

    def _require_columns(self, inp: pd.DataFrame) -> None:
        self.require_columns(inp, *self.transform_inputs()[0])

    def with_entities(self, entities: Any) -> Self:
        """Return a copy with another entity run, or another stage that makes one; what was learned remains.

        A reranker that was trained once can so be applied to the entities of several rankers.
        """
        made = copy.copy(self)
        made._set_entities(entities)  # noqa: SLF001 - a copy of this class
        return made

    def _entity_run(self, inp: pd.DataFrame) -> Run:
        return self._run if self._run is not None else Run(self.entities.transform(inp), name="entities")


class OnDocuments(OnEntities):
    """Base class of stages over document runs that read links and an entity run."""

    links: Any

    def _set_inputs(self, links: Any, entities: Any) -> None:
        # Not _links, which PyTerrier takes for the parameter.
        self._linker = PoolLinks(links)
        self.links = self._linker.given
        self._set_entities(entities)

    def _top_entities(self, documents: Documents, run: Run, cutoff: int | None) -> TopEntities:
        require_same_kind(run.topic_ids, documents.run.topic_ids, "entities column 'qid'", "run column 'qid'")
        n = int((~documents.in_pool).sum())
        if n:
            first = documents.pool.docno.take(np.flatnonzero(~documents.in_pool)[:4]).text.to_pylist()
            warn(
                f"run: {agreeing(n, 'documents are not in the pool of links and count as without entities')} "
                f"({examples(first)})"
            )
        listed = TopEntities.of(documents.pool, run, cutoff)
        self._check_ids(listed)
        return listed

    def _check_ids(self, listed: TopEntities) -> None:
        warn_of_other_ids(listed.pool, listed.ids, listed.pool.entities_of(listed.ids), "entities")


class EntityReachable(OnDocuments):
    """Keep the documents that mention one of the first entities of their topic: the conditional pool.

    ``D_cond(q) = {d in D(q) : Λ(d) ∩ Ê^k ≠ ∅}``; in a pipeline, ``retriever >> EntityReachable(...) >> reranker``.

    Parameters
    ----------
    links, entities
        See :class:`~vbterrier.entities.OverlapReranker`. Documents outside a linked pool are not reachable.
    cutoff
        The number of entities of each topic that select documents.

    Raises
    ------
    ParameterError
        ``cutoff`` below 1.
    InputError
        See the contracts of runs, tags and K frames; ids of different kinds.

    Notes
    -----
    Documents keep their order and scores; ``rank`` is recomputed from 0. Topics without a reachable document are
    absent, and a warning names some of them. This stage restricts a ranking only: to restrict judgments too, as the
    conditional setting requires, evaluate with :func:`vbterrier.evaluate.settings.evaluate_settings`.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, Eq. 1.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Texas", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> EntityReachable(tags, entities, cutoff=1).transform(run).values.tolist()
    [['q1', 'd2', 1.0, 0]]
    """

    def __init__(self, links: Any, entities: Any, *, cutoff: int = 20) -> None:
        super().__init__()
        self.cutoff = whole("cutoff", cutoff)
        self._set_inputs(links, entities)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep the reachable rows of a result frame."""
        self._require_columns(inp)
        if not len(inp):
            return inp.assign(rank=pd.Series(dtype="int64"))
        documents, entities = self._linker.of(Run(inp)), self._entity_run(inp)
        pool, kept = documents.pool, self._top_entities(documents, entities, self.cutoff).reached_mask
        n_kept = np.bincount(pool.topic[kept], minlength=len(pool.topics))
        empty = [pool.topics[place] for place in np.flatnonzero(n_kept == 0)]
        if empty:
            warn(f"run: {len(empty)} of {len(n_kept)} topics have no reachable document ({examples(empty)})")
        frame = inp.iloc[documents.row[kept]].reset_index(drop=True)
        frame = frame.assign(rank=np.arange(len(frame)) - np.repeat(np.cumsum(n_kept) - n_kept, n_kept))
        return with_strongest_mark(frame, inp, entities.frame)


def selected_entities(
    runs: Any, links: Any, *, cutoff: int = 20, rel: int = 1, alpha: float = ALPHA, shrinkage: float = SHRINKAGE
) -> pd.DataFrame:
    """Return the first entities of runs with their document frequencies, OER and signal class.

    Parameters
    ----------
    runs
        An entity run (qid, docno: an entity's id, score), or a mapping of names to such runs.
    links
        A linked pool with labels, its K frame, or its artifact.
    cutoff
        The number of entities of each topic that count.
    rel
        The lowest relevant label; unjudged documents are non-relevant.
    alpha, shrinkage
        The pseudo-count and the shrinkage of OER, see :meth:`vbterrier.frames.entity_coverage.EntityTable.oer`.

    Returns
    -------
    pandas.DataFrame
        One row per run, topic and rank: name, qid, rank (from 0), entity_id, score, df_relevant, df_other, oer,
        signal (the class; ``"absent"`` with ``oer`` 0 if no document of the topic mentions the entity), k, rel, alpha,
        tau. In topics without relevant or without non-relevant documents, ``oer`` is NaN and ``signal`` is
        ``"undefined"``. In each other topic, the mean of ``oer`` is OER@k, and the share of rows of two classes is
        SignalRate or BaitRate.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contract of runs; ids of different kinds; no topic in common.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.5 and figure 4.

    Examples
    --------
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Texas", "Texas"]})
    >>> links = link_pool(pool, tags, pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]}))
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Texas", "Rome"], "score": [2.0, 1.0]})
    >>> result = selected_entities(run, links)
    >>> result[["entity_id", "df_relevant", "df_other", "oer", "signal"]].round(2).values.tolist()
    [['Texas', 0, 2, -0.89, 'sparse'], ['Rome', 0, 0, 0.0, 'absent']]
    """
    table = EntityTable(pool_of_links(links, "selected_entities"), rel)
    oer, classes = table.oer(alpha, shrinkage), table.classes(alpha, shrinkage)
    named = runs if isinstance(runs, Mapping) else {"run": runs}
    cutoff = whole("cutoff", cutoff)
    parts = [_entity_rows(str(name), run, table, oer, classes, cutoff) for name, run in named.items()]
    selected = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_SELECTED_COLUMNS))
    return selected.assign(k=cutoff, rel=rel, alpha=alpha, tau=shrinkage)


def _entity_rows(name: str, source: Any, table: EntityTable, oer: Floats, classes: Ints, cutoff: int) -> pd.DataFrame:
    pool = table.pool
    run = source if isinstance(source, Run) else Run(source, name=f"run {name!r}")
    # Raises an error if the two share no topic.
    run_places(run, pool.topics, Ids(None, run.topic_ids.integers), "links")
    listed = TopEntities.of(pool, run, cutoff)
    # -1 indexes the last value, which is appended for entities that no document of the topic mentions.
    pair, topic = listed.pair, listed.topic
    names = np.array([*CLASSES, ABSENT], dtype=object)
    return pd.DataFrame(
        {
            "name": name,
            "qid": np.array(pool.topics, dtype=object)[topic],
            "rank": listed.rank,
            "entity_id": listed.ids.text.to_pandas(),
            "score": listed.score,
            "df_relevant": np.append(table.df_relevant, 0)[pair],
            "df_other": np.append(table.df_other, 0)[pair],
            "oer": np.where(table.contrasts[topic], np.append(oer, 0.0)[pair], np.nan),
            "signal": np.where(table.contrasts[topic], names[np.append(classes, len(CLASSES))[pair]], UNDEFINED),
        }
    )
