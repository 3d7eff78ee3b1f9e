"""Pipeline stage that keeps the documents reachable through entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.stage import EntityStage, PoolLinks, TopEntities
from vbterrier.errors import examples, warn, whole
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import Run

if TYPE_CHECKING:
    from vbterrier.entities.stage import Documents


class OnEntities(EntityStage):
    """Base class of stages that read an entity run, given as a frame or produced by a stage from the input."""

    entities: Any

    def _set_entities(self, entities: Any) -> None:
        self._run: Run | None = None
        if isinstance(entities, pt.Transformer):
            self.entities = entities
            return
        frame = frame_of(entities, "entities")
        require(frame, ("qid", "docno", "score"), "entities")
        # A copy, so that later changes of the caller's frame have no effect.
        self.entities = frame[["qid", "docno", "score"]].copy()
        self._run = Run(self.entities, name="entities")

    def _entity_run(self, inp: pd.DataFrame) -> Run:
        return self._run or Run(self.entities.transform(inp), name="entities")


class OnDocuments(OnEntities):
    """Base class of stages over document runs that read links and an entity run."""

    links: Any

    def _set_inputs(self, links: Any, entities: Any) -> None:
        self._links = PoolLinks(links)
        self.links = self._links.given
        self._set_entities(entities)

    def _top_entities(self, documents: Documents, inp: pd.DataFrame, cutoff: int | None) -> TopEntities:
        run = self._entity_run(inp)
        require_same_kind(run.topic_ids, documents.run.topic_ids, "entities column 'qid'", "run column 'qid'")
        n = int((~documents.known).sum())
        if n:
            first = documents.pool.docno.take(np.flatnonzero(~documents.known)[:4]).text.to_pylist()
            warn(f"run: {n} documents are not in the pool of links and count as without entities ({examples(first)})")
        return TopEntities.of(documents.pool, run, cutoff)


class EntityReachable(OnDocuments):
    """Keep the documents that mention one of the first entities of their topic: the conditional pool.

    ``D_cond(q) = {d in D(q) : Λ(d) ∩ Ê^k ≠ ∅}``; in a pipeline, ``retriever >> EntityReachable(...) >> reranker``.

    Parameters
    ----------
    links
        The entities of documents: a :class:`~vbterrier.entities.pool.LinkedPool`, its K frame, or tags (docno,
        entity_id [, weight, qid]). Documents outside a linked pool are not reachable.
    entities
        An entity run (qid, docno: an entity id, score), or a stage that returns one for the input run.
    cutoff
        The number of entities of each topic that select documents.

    Raises
    ------
    InputError
        See the contracts of runs, tags and K frames; ids of different kinds.
    ParameterError
        ``cutoff`` below 1.

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
        pt.validate.columns(inp, includes=["qid", "docno", "score"])
        if not len(inp):
            return inp.assign(rank=pd.Series(dtype="int64"))
        documents = self._links.of(Run(inp))
        pool, kept = documents.pool, self._top_entities(documents, inp, self.cutoff).reached
        n_kept = np.bincount(pool.topic[kept], minlength=len(pool.topics))
        empty = [pool.topics[place] for place in np.flatnonzero(n_kept == 0)]
        if empty:
            warn(f"run: {len(empty)} of {len(n_kept)} topics have no reachable document ({examples(empty)})")
        frame = inp.iloc[documents.row[kept]].reset_index(drop=True)
        return frame.assign(rank=np.arange(len(frame)) - np.repeat(np.cumsum(n_kept) - n_kept, n_kept))
