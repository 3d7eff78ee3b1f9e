"""Base classes of entity rankers."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.pool import link_pool
from vbterrier.entities.provenance import with_strongest_mark
from vbterrier.entities.stage import EntityStage, any_tagged, check_links, linked_as, pool_of_links, without_links
from vbterrier.errors import InputError, agreeing, examples, warn, whole_or_none
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.ids import Ids, column_ids, column_numbers, require_same_kind, warn_of_near_matches
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.ranking import Run, places
from vbterrier.kernels.rankings import spans

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints


class Topics:
    """The topics of an input frame in order of appearance, with the columns of their queries."""

    def __init__(self, inp: pd.DataFrame) -> None:
        self.inp = inp
        self.names, self._code = column_ids(inp["qid"], "input column 'qid'").codes()
        self.first: Ints = np.unique(self._code, return_index=True)[1]

    def queries(self, topics: list[str]) -> list[str]:
        """Return the query texts of the given topics."""
        text = pd.factorize(self.inp["query"])[0]
        bad = (text < 0) | (text != text[self.first][self._code])
        if bad.any():
            row = int(np.argmax(bad))
            qid, problem = self.names[self._code[row]], "no text" if text[row] < 0 else "a different text"
            raise InputError(
                f"input: row {row} has {problem} for query {qid!r}; give all rows of a query the same text"
            )
        return [str(each) for each in self.inp["query"].iloc[self.first[places(topics, self.names)]]]

    def entity_run(self, topic: Ints, entity: Ints, ids: Ids, score: Floats, cutoff: int | None = None) -> pd.DataFrame:
        """Return the entity run of pairs: query columns, docno, score, rank.

        ``entity`` indexes ``ids``, which are in byte order, so that ties are broken as in trec_eval.
        """
        # Single precision, as in every comparison of scores.
        rows = np.lexsort((-entity, -score.astype(np.float32), topic))
        topic = topic[rows]
        starts = np.searchsorted(topic, np.arange(len(self.names)))
        rank = np.arange(len(rows)) - starts[topic]
        kept = slice(None) if cutoff is None else rank < cutoff
        rows, topic, rank = rows[kept], topic[kept], rank[kept]
        of_queries = self.inp.columns[self.inp.columns.isin(pt.model.query_columns(self.inp))]
        made = self.inp[of_queries].iloc[self.first[topic]].reset_index(drop=True)
        docno = pd.Series(ids.take(entity[rows]).text.to_pandas(), dtype=str)
        return made.assign(docno=docno, score=score[rows], rank=rank)


def part(pool: LinkedPool, which: Ints, cutoff: int | None = None) -> LinkedPool:
    """Return the pool of topics, by index, with their first documents; the same object if nothing is removed."""
    if np.array_equal(which, np.arange(len(pool.topics))) and (cutoff is None or (pool.rank < cutoff).all()):
        return pool
    topic, document = spans(pool.topic_starts[which], pool.topic_starts[which + 1])
    if cutoff is not None:
        kept = pool.rank[document] < cutoff
        topic, document = topic[kept], document[kept]
    topics = [pool.topics[place] for place in which.tolist()]
    return linked_as(pool, document, without_links(topics, topic, pool.docno.take(document), pool.rank[document]))


class PoolRanker(EntityStage, abc.ABC):
    """Base class of stages from topics with pools to entity runs; subclasses score pairs of topic and entity."""

    links: LinkedPool | pd.DataFrame
    needs_query = False

    def _set_links(self, links: Any, pool_cutoff: Any, cutoff: Any) -> None:
        self.pool_cutoff = whole_or_none("pool_cutoff", pool_cutoff)
        self.cutoff = whole_or_none("cutoff", cutoff)
        self.links = check_links(links)
        self._pool: LinkedPool | None = None
        if isinstance(self.links, LinkedPool):
            # Cut once, so that the cached properties of the pool are computed once for all batches.
            self._pool = part(self.links, np.arange(len(self.links.topics)), self.pool_cutoff)

    @abc.abstractmethod
    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:
        """Return the score of each of ``pool.pairs``, NaN for pairs that are not ranked; queries if ``needs_query``."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank the entities of every topic of a result frame, or of a query frame if ``links`` is a pool."""
        query = ["query"] if self.needs_query else []
        documents = [] if self._pool is not None else ["docno", "score"]
        self.require_columns(inp, "qid", *query, *documents)
        topics = Topics(inp)
        pool = self._linked_pool(inp, topics)
        queries = topics.queries(pool.topics) if query else []
        score = self.scores(pool, queries) if len(pool.pairs) else np.empty(0)
        pair = np.flatnonzero(~np.isnan(score))
        size = max(len(pool.entities), 1)
        topic = places(pool.topics, topics.names)[pool.pairs[pair] // size]
        made = topics.entity_run(topic, pool.pairs[pair] % size, pool.entities, score[pair], self.cutoff)
        # The documents of the input are the pool only if links are tags.
        return made if self._pool is not None else with_strongest_mark(made, inp)

    def _linked_pool(self, inp: pd.DataFrame, topics: Topics) -> LinkedPool:
        if isinstance(self.links, LinkedPool):
            return restrict_pool(self._pool or self.links, topics.names)
        run = Run(inp, name="input")
        if any_tagged(run, self.links):
            return link_pool(run, self.links, cutoff=self.pool_cutoff)
        if len(run):
            warn(f"input: none of its {len(run)} documents has an entity in links ({examples(topics.names)})")
        none = np.empty(0, dtype=np.int64)
        return without_links([], none, run.docno.take(none), none)


def restrict_pool(pool: LinkedPool, topics: list[str]) -> LinkedPool:
    """Return the pool of the given topics, in the order of the pool; topics outside it are reported."""
    place = places(topics, pool.topics)
    if (place < 0).any():
        lost = [topic for topic, index in zip(topics, place.tolist(), strict=True) if index < 0]
        warn(f"input: {agreeing(len(lost), 'topics are not in links and have no entities')} ({examples(lost)})")
    return part(pool, np.sort(place[place >= 0]))


@dataclass(frozen=True, eq=False)
class RunOnPool:
    """An entity run aligned with a pool: the index of each row's topic and of its pair in the pool, -1 if absent."""

    run: Run
    pool: LinkedPool
    topic: Ints
    pair: Ints

    @classmethod
    def on(cls, pool: LinkedPool, inp: pd.DataFrame) -> RunOnPool:
        """Look up a run; a warning reports a run none of whose entities is in the pool."""
        run = Run(inp, name="entity run")
        require_same_kind(pool.entities, run.docno, "links column 'entity_id'", "entity run column 'docno'")
        topic = places(run.topics, pool.topics)[run.topic]
        number = pool.entities_of(run.docno)
        pair = pool.find(topic, number)
        if len(pair) and (pair < 0).all():
            shown = examples(run.docno.text[:4].to_pylist())
            warn(f"entity run: none of its {len(pair)} entities is in the pool of its topic ({shown})")
        warn_of_near_matches(
            run.docno.take(np.flatnonzero(number < 0)), pool.entities, "entity run", "entities", "the links"
        )
        return cls(run, pool, topic, pair)

    def of_pairs(self, values: Any) -> Any:
        """Return the value of each row's pair, 0 for entities outside the pool."""
        return np.where(self.pair >= 0, values[self.pair], 0) if len(values) else np.zeros(len(self.pair))


class RunReranker(EntityStage):
    """Base class of stages from entity runs to entity runs that read the pools."""

    links: LinkedPool

    def _set_links(self, links: Any, pool_cutoff: Any) -> None:
        self.pool_cutoff = whole_or_none("pool_cutoff", pool_cutoff)
        self.links = pool_of_links(links, type(self).__name__)
        self._pool = part(self.links, np.arange(len(self.links.topics)), self.pool_cutoff)


class QueryEntities:
    """Entities of queries with probabilities, from an I frame; ``prob`` is 1 if absent."""

    def __init__(self, frame: Any, *, name: str) -> None:
        frame = pandas_frame(frame, name)
        require(frame, ("qid", "entity_id"), name)
        refuse_near_misses(frame, ("prob",), name)
        self.topics, self.topic = column_ids(frame["qid"], f"{name} column 'qid'").codes()
        self.entity = column_ids(frame["entity_id"], f"{name} column 'entity_id'")
        self.prob = column_numbers(frame["prob"], f"{name} column 'prob'") if "prob" in frame else np.ones(len(frame))
        bad = ~((self.prob >= 0) & np.isfinite(self.prob))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{name}: row {row} has prob {self.prob[row]:g}, wanted a number of at least 0")

    def of(self, topics: list[str]) -> tuple[Ints, Ids, Floats]:
        """Return the rows of the given topics: the index of each row's topic, its entity and its probability."""
        place = places(self.topics, topics)[self.topic]
        rows = np.flatnonzero(place >= 0)
        return place[rows], self.entity.take(rows), self.prob[rows]
