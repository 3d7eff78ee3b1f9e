"""Base class of document rerankers, and normalisation of scores."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.reachable import OnDocuments
from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.parameters import choice, number, whole
from vbterrier.frames.ranking import Run, ranked

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities


NORMS = ("minmax", "z", "none")
# A spread this small beside the numbers themselves is rounding.
_ROUNDING = 1e-12


def normalised(values: Floats, starts: Ints, norm: str) -> Floats:
    """Values of documents on one scale in every topic, shape (n_documents,).

    ``minmax``: ``(x - min) / (max - min)``; ``z``: ``(x - mean) / sd``, the standard deviation with n below; both 0 in
    topics whose documents are all equal, which tells nothing. ``none``: as they are.

    Parameters
    ----------
    values
        By topic, shape (n_documents,).
    starts
        Where the documents of each topic begin, and where the last one's end, shape (n_topics + 1,); no topic is empty.
    norm
        One of ``NORMS``.

    >>> normalised(np.array([4.0, 2.0, 3.0, 7.0, 7.0]), np.array([0, 3, 5]), "minmax")
    array([1. , 0. , 0.5, 0. , 0. ])
    """
    if norm == "none" or not len(values):
        return values
    first, sizes = starts[:-1], np.diff(starts)
    if norm == "minmax":
        centre = np.minimum.reduceat(values, first)
        spread = np.maximum.reduceat(values, first) - centre
        rounding = np.zeros(len(first))
    else:
        centre = np.add.reduceat(values, first) / sizes
        deviations = values - np.repeat(centre, sizes)
        spread = np.sqrt(np.add.reduceat(deviations**2, first) / sizes)
        rounding = _ROUNDING * np.maximum.reduceat(np.abs(values), first)
    scale = np.divide(1.0, spread, out=np.zeros(len(first)), where=spread > rounding)
    made: Floats = (values - np.repeat(centre, sizes)) * np.repeat(scale, sizes)
    return made


class Reranker(OnDocuments, abc.ABC):
    """A stage from runs of documents to runs of the same documents, scored by entity evidence too: R -> R.

    Its work falls into parts of falling cost: what is prepared of documents alone, the evidence of the first k
    entities, and the scores that a few numbers make of both. A grid of configurations shares the former two.
    """

    # Parameters that only the last part reads.
    CHEAP: tuple[str, ...] = ("weight", "norm")
    cutoff: int
    norm: str

    def _set_common(self, cutoff: Any, norm: Any) -> None:
        self.cutoff = whole("cutoff", cutoff)
        self.norm = choice("norm", norm, NORMS)

    def documents(self, run: Run) -> Documents:
        """The documents of a run with their entities."""
        return self._links.of(run)

    def prepared(self, documents: Documents) -> Any:  # noqa: ARG002 - most need nothing
        """What is made of documents whatever the entities."""
        return None

    @abc.abstractmethod
    def observed(self, listed: TopEntities, prepared: Any) -> Any:
        """What the listed entities say of the documents."""

    @abc.abstractmethod
    def scores(self, documents: Documents, observed: Any) -> Floats:
        """The new score of each document, shape (n_documents,)."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score the rows of a result frame anew."""
        pt.validate.columns(inp, includes=["qid", "docno", "score"])
        if not len(inp):
            return inp.assign(rank=pd.Series(dtype="int64"))
        documents = self.documents(Run(inp))
        require_finite(documents)
        listed = self._listed(documents, inp, self.cutoff)
        score = self.scores(documents, self.observed(listed, self.prepared(documents)))
        return ranked(inp.iloc[documents.row].reset_index(drop=True).assign(score=score))


class Interpolation(Reranker):
    """A reranker whose evidence is one number a document, interpolated with its score."""

    weight: float

    def _set_common(self, cutoff: Any, norm: Any, weight: Any = 0.5) -> None:
        super()._set_common(cutoff, norm)
        self.weight = number("weight", weight, low=0, high=1)

    def scores(self, documents: Documents, observed: Any) -> Floats:
        """``(1 - weight) norm(score) + weight norm(evidence)``."""
        starts = documents.pool.topic_starts
        score, told = (normalised(values, starts, self.norm) for values in (documents.score, observed))
        mixed: Floats = (1 - self.weight) * score + self.weight * told
        return mixed


def by_id(name: str, value: Any) -> Any:
    """A parameter that gives something by id, or ``None``.

    Raises
    ------
    ParameterError
        Anything without ``in`` and ``[id]``; a text, such as a path.
    """
    has = hasattr(value, "__getitem__") and hasattr(value, "__contains__") and not isinstance(value, (str, bytes))
    if value is None or has:
        return value
    raise ParameterError(f"{name}: found {type(value).__name__}, wanted something to look up ids in, as a dictionary")


def require_finite(documents: Documents) -> None:
    """Refuse scores of documents that cannot be weighed against anything.

    Raises
    ------
    InputError
    """
    bad = ~np.isfinite(documents.score)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"run column 'score': document {documents.pool.docno.text[at].as_py()!r} of query "
            f"{documents.pool.topics[documents.pool.topic[at]]!r} has {documents.score[at]}, wanted a finite number"
        )
