"""Base class of intent stages, candidate frames, and rankings in the order of trec_eval."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, excerpt, warn
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import intent_probabilities, owner, require_once
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import column_ids, column_numbers
from vbterrier.frames.ranking import ranked
from vbterrier.hosts import pyterrier
from vbterrier.intents.taggers import source_name
from vbterrier.kernels.candidates import proportional, with_fixed_masses

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from vbterrier.annotations import Bools, Floats, Ints


_MAX_LABEL_LENGTH = 60
#: The end of the warning of queries that a source of intents has no candidate of.
WITHOUT_CANDIDATES = f"without candidates: {NIL} has probability 1"


class IntentStage(pyterrier.Stage):
    """Base class of stages whose parameters may be linkers, pipelines and functions."""

    @staticmethod
    def short(value: Any) -> str:
        """Return the label of a value; long labels lose their last parameters: ``Client('https://...', ...)``."""
        text = source_name(value)
        if len(text) <= _MAX_LABEL_LENGTH:
            return text
        if isinstance(value, (dict, list, tuple)):
            return f"{len(value)} entries"
        name, bracket, rest = text[: _MAX_LABEL_LENGTH - 4].partition("(")
        if not bracket or not text.endswith(")"):
            return text[: _MAX_LABEL_LENGTH - 3] + "..."
        kept, comma, _ = rest.rpartition(", ")
        is_whole = comma and kept.count("(") == kept.count(")") and kept.count("'") % 2 == kept.count('"') % 2 == 0
        return f"{name}({kept + comma if is_whole else ''}...)"


def knowledge_base(source: Any, *methods: str) -> Any:
    """Return a knowledge base, or any object with the required methods."""
    missing = [name for name in methods if not callable(getattr(source, name, None))]
    if missing:
        requirement = "wanted a knowledge base, such as KnowledgeBase(path)"
        raise ParameterError(f"kb={excerpt(source)}: {requirement}; it has no method {missing[0]!r}")
    return source


class Candidates:
    """Candidates of queries, with the index of each row's ``topic`` and True for rows of ``nil``, of shape (n,).

    ``entity`` is the column of entities, ``docno`` in the results of a retriever over entities, which have no NIL;
    an entity may be repeated among the candidates of a query if ``repeats``.
    """

    def __init__(self, frame: Any, *, entity: str = "entity_id", repeats: bool = False, name: str = "intents") -> None:
        self.frame, self.name = pandas_frame(frame, name), name
        require(self.frame, ("qid", entity), name)
        self.qid = column_ids(self.frame["qid"], f"{name} column 'qid'")
        self.entity = column_ids(self.frame[entity], f"{name} column {entity!r}")
        self.topics, self.topic = self.qid.codes()
        self.n = len(self.topics)
        is_nil = pc.equal(self.entity.text, NIL).to_numpy(zero_copy_only=False).astype(bool)
        # Results of a retriever and files of scores have no NIL with a probability.
        self.nil: Bools = is_nil if entity == "entity_id" and "prob" in self.frame.columns else np.zeros_like(is_nil)
        if not repeats:
            require_once(self.topics, self.topic, self.entity, name)

    def owner(self, row: int) -> str:
        """Return the candidate of a row and its query, for messages."""
        return owner(self.topics, self.topic, self.entity, row)

    @cached_property
    def tie(self) -> Ints:
        """The position of each row's id in sorted order, which breaks ties, shape (n,)."""
        return self.entity.ranks()

    @cached_property
    def prob(self) -> Floats:
        """The probability of each row, shape (n,), normalised over each topic."""
        prob, total = intent_probabilities(self.frame["prob"], self.topics, self.topic, self.entity, self.name)
        return prob / total[self.topic]

    @cached_property
    def entities(self) -> Ints:
        """Row numbers of entities other than NIL."""
        return np.flatnonzero(~self.nil)

    @cached_property
    def among_entities(self) -> Floats:
        """The probability of each entity given that NIL is not meant, shape (n_entities,)."""
        return proportional(self.prob[self.entities], self.topic[self.entities], self.n)

    def beside_nil(self, prob: Floats) -> Floats:
        """Return row probabilities from entity probabilities: NIL keeps its mass, the entities share the rest."""
        if not self.nil.any():
            return prob
        of_rows = np.zeros(len(self.topic))
        of_rows[self.entities] = prob
        return with_fixed_masses(of_rows, np.where(self.nil, self.prob, 0.0), self.topic, self.n)

    def scores(self) -> Floats:
        """Return the finite score of each entity, shape (n_entities,)."""
        # NIL has no score.
        column = self.frame["score"].mask(self.nil, 0.0) if self.nil.any() else self.frame["score"]
        score = column_numbers(column, f"{self.name} column 'score'", lambda row: f" ({self.owner(row)})")
        bad = ~np.isfinite(score)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{self.name}: row {row} ({self.owner(row)}) has score {score[row]:g}, wanted finite")
        return score[self.entities]

    def with_prob(self, prob: Floats) -> pd.DataFrame:
        """Return the frame with these probabilities, rows in the same order."""
        return self.frame.assign(prob=prob)


class SortByRank(IntentStage):
    """Sort results by query and rank, so that every host reads the ranking that measures of this package read: R -> R.

    Put it last in the pipelines of ``pt.Experiment`` with measures of other packages: only those of this
    package, and all measures in :func:`vbterrier.score`, do not depend on the order of rows.

    Notes
    -----
    Documents are ordered as by :func:`vbterrier.frames.ranked`; ``rank`` counts from 0, ``score`` becomes ``-rank``.
    Engines break ties in different ways, and ir_measures passes runs to pyndeval in blocks of adjacent rows of one
    query, of which only the last counts if the rows of queries are mixed: a run of TREC Web 2012 had alpha_nDCG@10
    .3654 as a file, .0943 with shuffled rows, and .3654 with shuffled rows and this stage.

    Raises
    ------
    InputError
        A score that is not a number, a duplicate document.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": ["q1", "q2", "q1"], "docno": ["a", "b", "c"], "score": [1.0, 9.0, 2.0]})
    >>> SortByRank()(run.assign(rank=0)).values.tolist()
    [['q1', 'c', 0.0, 0], ['q1', 'a', -1.0, 1], ['q2', 'b', 0.0, 0]]
    """

    def __init__(self) -> None:
        super().__init__()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a result frame in the order of their ranks."""
        self.require_columns(inp, "qid", "docno", "score")
        made = ranked(inp)
        return made.assign(score=-made["rank"].astype("float64") + 0.0)


def warn_of_queries(topics: Sequence[str], what: str) -> None:
    """Warn once of all affected queries, and not at all if there are none."""
    if topics:
        warn(f"{len(topics)} {'query' if len(topics) == 1 else 'queries'} ({examples(topics)}) {what}")
