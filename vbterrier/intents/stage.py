"""Base class of intent stages, and frames of candidates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.frames.contracts import frame_of, owner, probabilities_of, require, require_once
from vbterrier.frames.ids import ids_of, numbers_of
from vbterrier.hosts import pyterrier
from vbterrier.kernels import candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from vbterrier.annotations import Bools, Floats, Ints


_LONGEST = 60


class IntentStage(pyterrier.Stage):
    """A stage whose parameters may be linkers, pipelines and functions."""

    @staticmethod
    def short(value: Any) -> str:
        """The label of a value, where it is long without the last of its parameters: ``Client('https://...', ...)``."""
        text = label_of(value)
        if len(text) <= _LONGEST:
            return text
        if isinstance(value, (dict, list, tuple)):
            return f"{len(value)} entries"
        name, bracket, rest = text[: _LONGEST - 4].partition("(")
        if not bracket or not text.endswith(")"):
            return text[: _LONGEST - 3] + "..."
        kept, comma, _ = rest.rpartition(", ")
        is_whole = comma and kept.count("(") == kept.count(")") and kept.count("'") % 2 == kept.count('"') % 2 == 0
        return f"{name}({kept + comma if is_whole else ''}...)"


def label_of(source: object) -> str:
    """A short text of a linker, a pipeline or a callable, the same in every process.

    >>> label_of(len), label_of(object())
    ('len', 'object')
    """
    if hasattr(source, "__qualname__"):
        return str(source.__qualname__)
    text = repr(source)
    return type(source).__name__ if " at 0x" in text else text


def knowledge_base(given: Any, *methods: str) -> Any:
    """A parameter that is a knowledge base, or anything with those of its methods that are needed.

    Raises
    ------
    ParameterError
        Anything else, such as a path.

    >>> knowledge_base("congress.kb", "names")
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: kb='congress.kb': wanted a knowledge base, as KnowledgeBase(path); it has no \
method 'names'
    """
    missing = [name for name in methods if not callable(getattr(given, name, None))]
    if missing:
        wanted = "wanted a knowledge base, as KnowledgeBase(path)"
        raise ParameterError(f"kb={given!r}: {wanted}; it has no method {missing[0]!r}")
    return given


# The intent that none of the candidates is meant. Its probability is the user's: stages move mass among the others.
NIL = "NIL"


class Candidates:
    """The candidates of some queries: rows (qid, entity_id), topics by their place, and what is NIL.

    Parameters
    ----------
    frame
        Columns qid and ``entity``.
    entity
        The column of entities; ``docno`` in the results of a retriever over entities.
    repeats
        Whether an entity may stand twice among the candidates of a query.
    name
        What messages call the frame.

    Raises
    ------
    InputError
        A missing column or id; an entity that stands twice.

    Attributes
    ----------
    topics : list of str
        In order of appearance.
    topic : numpy.ndarray
        The place of each row's topic, shape (n,).
    nil : numpy.ndarray
        Which rows are the NIL intent, shape (n,): none in results of a retriever.
    """

    def __init__(self, frame: Any, *, entity: str = "entity_id", repeats: bool = False, name: str = "intents") -> None:
        self.frame, self.name = frame_of(frame, name), name
        require(self.frame, ("qid", entity), name)
        self.qid = ids_of(self.frame["qid"], f"{name} column 'qid'")
        self.entity = ids_of(self.frame[entity], f"{name} column {entity!r}")
        self.topics, self.topic = self.qid.codes()
        self.n = len(self.topics)
        is_nil = pc.equal(self.entity.text, NIL).to_numpy(zero_copy_only=False).astype(bool)
        # A retriever or a file of scores knows no NIL with a mass of its own.
        self.nil: Bools = is_nil if entity == "entity_id" and "prob" in self.frame.columns else np.zeros_like(is_nil)
        if not repeats:
            require_once(self.topics, self.topic, self.entity, name)

    def owner(self, row: int) -> str:
        """The candidate of a row and its query, for messages."""
        return owner(self.topics, self.topic, self.entity, row)

    @cached_property
    def tie(self) -> Ints:
        """The place of each row's id in the order of ids, which decides among equals, shape (n,)."""
        return self.entity.ranks()

    @cached_property
    def prob(self) -> Floats:
        """The probability of each row, shape (n,), 1 in sum over a topic.

        Raises
        ------
        InputError
            Not in [0, 1], or another sum.
        """
        prob, total = probabilities_of(self.frame["prob"], self.topics, self.topic, self.entity, self.name)
        return prob / total[self.topic]

    @cached_property
    def entities(self) -> Ints:
        """The rows that are not NIL."""
        return np.flatnonzero(~self.nil)

    @cached_property
    def among_entities(self) -> Floats:
        """The probability of each entity given that one is meant, shape (n_entities,)."""
        return candidates.proportional(self.prob[self.entities], self.topic[self.entities], self.n)

    def beside_nil(self, prob: Floats) -> Floats:
        """The probability of each row from those among entities: NIL keeps its mass, the entities share the rest."""
        if not self.nil.any():
            return prob
        spread = np.zeros(len(self.topic))
        spread[self.entities] = prob
        return candidates.beside(spread, np.where(self.nil, self.prob, 0.0), self.topic, self.n)

    def scores(self) -> Floats:
        """The score of each entity, finite, shape (n_entities,).

        Raises
        ------
        InputError
            A score that is missing or infinite.
        """
        # NIL has none.
        column = self.frame["score"].mask(self.nil, 0.0) if self.nil.any() else self.frame["score"]
        score = numbers_of(column, f"{self.name} column 'score'", self._whose)
        bad = ~np.isfinite(score)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{self.name}: row {row} ({self.owner(row)}) has score {score[row]:g}, wanted finite")
        return score[self.entities]

    def _whose(self, row: int) -> str:
        return f" ({self.owner(row)})"

    def with_prob(self, prob: Floats) -> pd.DataFrame:
        """The frame with these probabilities, rows as they stand."""
        return self.frame.assign(prob=prob)


def warn_of(topics: Sequence[str], what: str) -> None:
    """Warn once of all queries that something is the matter with; silent for none."""
    if topics:
        warn(f"{len(topics)} {'query' if len(topics) == 1 else 'queries'} ({examples(topics)}) {what}")
