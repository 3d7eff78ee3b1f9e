"""An entity run on a pool: which entities stand where, and which documents they reach."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import DegenerateWarning, examples
from vbterrier.frames.ids import Ids, require_same_kind
from vbterrier.frames.ranked import Run
from vbterrier.frames.topics import run_places
from vbterrier.kernels.coverage import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

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
    >>> Selection(link_pool(pool, tags), run, depth=20).entity
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
            warnings.warn(
                f"{run.name}: no document of the links mentions any of its {len(number)} entities (run: "
                f"{examples(docno.text[:4].to_pylist())}; links: {examples(pool.entities.text[:4].to_pylist())}); look "
                "for other spaces of ids",
                DegenerateWarning,
                stacklevel=3,
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
