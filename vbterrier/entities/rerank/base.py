"""Base classes of document rerankers, and normalisation of scores."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.provenance import with_strongest_mark
from vbterrier.entities.stage import OnDocuments
from vbterrier.errors import InputError, ParameterError, choice, number, whole
from vbterrier.frames.ranking import Run, ranked
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities


NORMS = ("minmax", "z", "none")


def normalise_by_topic(values: Floats, starts: Ints, norm: str) -> Floats:
    """Normalise values of documents, sorted by topic with the offsets ``starts``, in every topic.

    ``minmax``: ``(x - min) / (max - min)``; ``z``: ``(x - mean) / sd`` with the population standard deviation; both are
    0 in topics with equal values. ``none``: unchanged.
    """
    if norm == "none" or not len(values):
        return values
    first, sizes = starts[:-1], np.diff(starts)
    rounding: Any = 0.0
    if norm == "minmax":
        centre = np.minimum.reduceat(values, first)
        scale = np.maximum.reduceat(values, first) - centre
    else:
        centre = np.add.reduceat(values, first) / sizes
        deviations = values - np.repeat(centre, sizes)
        scale = np.sqrt(np.add.reduceat(deviations**2, first) / sizes)
        rounding = ROUNDING * np.maximum.reduceat(np.abs(values), first)
    factor = np.divide(1.0, scale, out=np.zeros(len(first)), where=scale > rounding)
    made: Floats = (values - np.repeat(centre, sizes)) * np.repeat(factor, sizes)
    return made


ENTITY_WEIGHTS = ("uniform", "rank", "score", "idf")


def entity_weights(listed: TopEntities, kind: str) -> Floats:
    """Return the weight of each listed entity, shape (n,).

    ``"uniform"``: 1. ``"rank"``: ``1/log2(rank + 1)`` with ranks from 1. ``"score"``: its score in the run. ``"idf"``:
    ``log((N + 1)/(df + 1)) + 1`` for N documents in the topic's pool, of which df mention the entity.
    """
    n = len(listed.rank)
    if kind == "rank":
        weights: Floats = 1 / np.log2(listed.rank + 2)
        return weights
    if kind == "idf":
        size = np.diff(listed.pool.topic_starts)[listed.topic]
        idf: Floats = np.log((size + 1) / (np.bincount(listed.owner, minlength=n) + 1)) + 1
        return idf
    if kind == "uniform":
        return np.ones(n)
    refuse_as_weights(listed, listed.score < 0)
    return listed.score


def refuse_as_weights(listed: TopEntities, bad: Bools) -> None:
    """Refuse scores as weights."""
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"entities: {listed.ids.text[at].as_py()!r} of query {listed.pool.topics[listed.topic[at]]!r} has the "
            f"score {listed.score[at]:g}, wanted at least 0 as a weight; use entity_weight='rank'"
        )


class Reranker(OnDocuments, abc.ABC):
    """Base class of stages that rescore the documents of a run with entity evidence: R -> R.

    The work has three parts of decreasing cost, of which the configurations of a grid share the first two.
    """

    # Parameters that only affect the last part.
    CHEAP: tuple[str, ...] = ("weight", "norm")
    cutoff: int
    norm: str

    def _set_common(self, cutoff: Any, norm: Any) -> None:
        self.cutoff = whole("cutoff", cutoff)
        self.norm = choice("norm", norm, NORMS)

    def documents(self, run: Run) -> Documents:
        """Return the documents of a run with their entities."""
        return self._linker.of(run)

    def prepare_documents(self, documents: Documents) -> Any:
        """Return the part that depends on the documents only; ``None`` by default."""

    @abc.abstractmethod
    def match_entities(self, listed: TopEntities, prepared: Any) -> Any:
        """Return the evidence of the listed entities for the documents."""

    @abc.abstractmethod
    def scores(self, documents: Documents, observed: Any) -> Floats:
        """Return the new score of each document, shape (n_documents,)."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rerank the rows of a result frame."""
        self._require_columns(inp)
        if not len(inp):
            return inp.assign(rank=pd.Series(dtype="int64"))
        documents, entities = self.documents(Run(inp)), self._entity_run(inp)
        require_finite(documents)
        listed = self._top_entities(documents, entities, self.cutoff)
        score = self.scores(documents, self.match_entities(listed, self.prepare_documents(documents)))
        made = ranked(inp.iloc[documents.row].reset_index(drop=True).assign(score=score))
        return with_strongest_mark(made, inp, entities.frame)


class Interpolation(Reranker):
    """Base class of rerankers that interpolate document scores with one number of evidence per document."""

    weight: float

    def _set_common(self, cutoff: Any, norm: Any, weight: Any = 0.5) -> None:
        super()._set_common(cutoff, norm)
        self.weight = number("weight", weight, low=0, high=1)

    def scores(self, documents: Documents, observed: Any) -> Floats:
        """Return ``(1 - weight) norm(score) + weight norm(evidence)``."""
        starts = documents.pool.topic_starts
        score, evidence = (normalise_by_topic(values, starts, self.norm) for values in (documents.score, observed))
        mixed: Floats = (1 - self.weight) * score + self.weight * evidence
        return mixed


def by_id(name: str, value: Any) -> Any:
    """Return a parameter that maps ids to values, or ``None``."""
    has = hasattr(value, "__getitem__") and hasattr(value, "__contains__") and not isinstance(value, (str, bytes))
    if value is None or has:
        return value
    raise ParameterError(f"{name}: found {type(value).__name__}, wanted a mapping from ids, such as a dictionary")


def require_finite(documents: Documents) -> None:
    """Refuse scores of documents that are not finite."""
    bad = ~np.isfinite(documents.score)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"run column 'score': document {documents.pool.docno.text[at].as_py()!r} of query "
            f"{documents.pool.topics[documents.pool.topic[at]]!r} has {documents.score[at]}, wanted a finite number"
        )
