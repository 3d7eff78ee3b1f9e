"""Answers of entity linking systems, the correct ones, and the outcome of each query."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, choice, examples, excerpt, warn
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_answers
from vbterrier.frames.id_spaces import NIL, EntityIds, entity_ids
from vbterrier.frames.ids import Ids, Lookup, column_ids, column_integers, require_same_kind, warn_of_near_matches
from vbterrier.frames.ranking import Run, run_places
from vbterrier.kernels import linking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints


MULTIPLE_ANSWERS = ("raise", "any")
UNANSWERED = ("nothing", "nil")


class Gold:
    """The correct answer of each query, and ``is_nil``, True for queries without an entity.

    ``frame`` has columns qid, entity_id, or it has judgments (qid, docno, label) of entities, which are correct if
    their label is at least 1, or it is a path. The other parameters are those of :func:`linking_report`.
    """

    def __init__(self, frame: Any, *, nil: str = NIL, multiple_answers: str = "raise", name: str = "gold") -> None:
        choice("multiple_answers", multiple_answers, MULTIPLE_ANSWERS)
        self.nil, self.name = checked_nil(nil), name
        frame = answers_frame(frame, name)
        column = _entity_column(frame, name)
        if not len(frame):
            raise InputError(f"{name}: no rows; wanted the queries over which systems are evaluated")
        self.qid = column_ids(frame["qid"], f"{name} column 'qid'")
        self.topics, topic = self.qid.codes()
        entity = _entities(frame, column, self.qid, name)
        if "label" in frame.columns and {"docno", "iteration"} & set(frame.columns):
            correct = np.flatnonzero(column_integers(frame["label"], f"{name} column 'label'") >= 1)
            topic, entity = topic[correct], entity.take(correct)
        plain = plain_entities(entity, nil, name)
        nils, (_, code) = plain.is_nil, plain.ids.distinct()
        # Equal rows are one answer, and all NILs of a query, independently of their spelling.
        answer = np.where(nils, -1, code)
        once = ~pd.DataFrame({"topic": topic, "answer": answer}).duplicated().to_numpy()
        topic, entity, nils = topic[once], plain.ids.take(np.flatnonzero(once)), nils[once]
        n_correct = np.bincount(topic, minlength=len(self.topics))
        n_nil = np.bincount(topic[nils], minlength=len(self.topics))
        self._refuse(n_correct == 0, f"has no correct answer; write {nil!r} if there is no entity")
        self._refuse((n_nil > 0) & (n_nil < n_correct), f"has both {nil!r} and an entity; keep the correct one")
        if multiple_answers == "raise":
            self._refuse(n_correct > 1, "has several correct answers; keep one, or pass multiple_answers='any'")
        self.is_nil: Bools = n_nil > 0
        self.entity, self.space = entity.take(np.flatnonzero(~nils)), plain.space
        self._topic = topic[~nils]

    def entities_in(self, space: str) -> Ids:
        """Return the entities as they are spelled in a space that answers have, which that of the gold standard is."""
        return self.entity if space == self.space else entity_ids(self.entity, self.name, space=space).ids

    def is_correct(self, topic: Ints, entity: EntityIds) -> Bools:
        """Return True for each entity that is correct for its query."""
        rows, _ = Lookup(self._topic, self.entities_in(entity.space)).find(topic, entity.ids)
        correct = np.zeros(len(topic), dtype=bool)
        correct[rows] = True
        return correct

    def _refuse(self, bad: Bools, what: str) -> None:
        if bad.any():
            n, first = int(bad.sum()), self.topics[int(np.argmax(bad))]
            more = f" ({n} such queries)" if n > 1 else ""
            raise InputError(f"{self.name}: query {first!r} {what}{more}")


@dataclass(frozen=True, eq=False)
class Decisions:
    """The outcome of each query of a gold standard for one system."""

    gold_nil: Bools  # True for queries without an entity
    answer: Ints  # the kind of each answer, as in :mod:`vbterrier.kernels.linking`

    @property
    def counts(self) -> Ints:
        """Queries by kind (gold link, gold NIL) and answer (right link, wrong link, NIL, unanswered); shape (2, 4)."""
        return np.bincount(4 * self.gold_nil + self.answer, minlength=8).reshape(2, 4)

    def influence(self) -> Floats:
        """Return the contribution of each query to each figure, whose mean is the figure; shape (n, 8)."""
        return linking.influence(self.counts)[self.gold_nil.astype(np.int64), self.answer]


def decide(run: Run, gold: Gold, *, unanswered: str = "nothing") -> Decisions:
    """Compare a system's answers, the best-ranked entity of each query, with the gold standard.

    Answers to queries outside the gold standard do not count; a warning reports them.
    """
    choice("unanswered", unanswered, UNANSWERED)
    answer = np.full(len(gold.topics), linking.NIL_ANSWER if unanswered == "nil" else linking.NO_ANSWER, dtype=np.int64)
    if run.topics:
        # Check queries before entities: a NIL among integer entities can be the only cause of a difference in types.
        effect = (
            f": precision counts answers to queries of {gold.name} alone; if the system found these mentions itself, "
            "use vbterrier.linking.mention_report, whose precision counts every mention"
        )
        here = run_places(run, gold.topics, gold.qid, gold.name, effect=effect)
        require_same_kind(gold.entity, run.docno, f"{gold.name} entities", f"{run.name} entities")
        top = run.top(1)
        top.warn_of_ties(run.name)
        kept = here >= 0
        topic, entity = here[kept], run.docno.take(top.rows[kept, 0])
        plain = plain_entities(entity, gold.nil, run.name, space=gold.space)
        correct, nils, gold_ids = gold.is_correct(topic, plain), plain.is_nil, gold.entities_in(plain.space)
        answer[topic] = np.where(nils, linking.NIL_ANSWER, np.where(correct, linking.RIGHT_LINK, linking.WRONG_LINK))
        warn_of_foreign_answers(plain.ids.take(np.flatnonzero(~nils)), gold_ids, run.name, gold.name)
    else:
        warn(f"{run.name}: empty; none of the {len(gold.topics)} queries has an answer")
    return Decisions(gold.is_nil, answer)


def warn_of_foreign_answers(answers: Ids, gold: Ids, name: str, gold_name: str) -> None:
    """Warn of answers that are entities of the gold standard in another spelling, or if none is an entity of it."""
    if warn_of_near_matches(answers, gold, name, "answers", gold_name) or not len(answers) or not len(gold):
        return
    if not pc.any(pc.is_in(answers.text, value_set=gold.text)).as_py():
        answered, gold_examples = (examples(ids.text[:4].to_pylist()) for ids in (answers, gold))
        warn(
            f"{name}: no answer is an entity of {gold_name}: it has {answered}; {gold_name} has {gold_examples}; check "
            "the id space and the spelling of ids"
        )


def warn_of_silence(decisions: Decisions, nil: str, name: str) -> None:
    """Warn if a system never gives a kind of answer that the gold standard has: its precision is 0 in the total."""
    counts = decisions.counts
    for kind, gold, n_answers in (
        ("an entity", counts[0].sum(), counts[:, : linking.NIL_ANSWER].sum()),
        (repr(nil), counts[1].sum(), counts[:, linking.NIL_ANSWER].sum()),
    ):
        if gold and not n_answers:
            n = int(counts[:, linking.NO_ANSWER].sum())
            hint = f"; unanswered='nil' counts {n} unanswered queries as {nil}" if n and kind == repr(nil) else ""
            warn(f"{name}: no query is answered with {kind}, correct for {gold} queries: its precision is 0{hint}")


def answers(system: Any, *, name: str = "run", duplicates: str = "error") -> Run:
    """Return a system's answers as a run whose documents are entities.

    ``system`` has columns qid, entity_id, with one row per query or several with scores, or it is a run (qid, docno,
    score), or the path of either.
    """
    frame = answers_frame(system, name)
    if _entity_column(frame, name) == "entity_id":
        qid = column_ids(frame["qid"], f"{name} column 'qid'")
        _entities(frame, "entity_id", qid, name)
        if "score" not in frame.columns:
            topics, topic = qid.codes()
            twice = np.bincount(topic, minlength=len(topics)) > 1
            if twice.any():
                raise InputError(
                    f"{name}: query {topics[int(np.argmax(twice))]!r} has several answers and there is no column "
                    "'score' to rank them; keep one, or add scores"
                )
            frame = frame.assign(score=1.0)
        frame = frame.rename(columns={"entity_id": "docno"}).replace({"docno": {"": NIL}})
    run = Run(frame, name=name, duplicates=duplicates)
    run.refuse_duplicates()
    return run


def answers_frame(source: Any, name: str) -> pd.DataFrame:
    """Return a frame of answers, read from a file if given a path."""
    if isinstance(source, Run):
        # Answers that were read as a run have entities in the place of documents.
        return source.frame
    return read_answers(source) if isinstance(source, (str, os.PathLike)) else pandas_frame(source, name)


def checked_nil(nil: str) -> str:
    """Check the string that means no entity."""
    if not isinstance(nil, str) or not nil:
        raise ParameterError(f"nil={excerpt(nil)}: wanted the string that means no entity, such as 'NIL'")
    return nil


def plain_entities(entity: Ids, nil: str | Sequence[str], name: str, *, space: str = "") -> EntityIds:
    """Return :func:`vbterrier.frames.id_spaces.entity_ids`, with further words for no entity.

    A warning reports ids that only resemble NIL.
    """
    plain = entity_ids(entity, name, space=space)
    words = [nil] if isinstance(nil, str) else list(nil)
    if entity.integers and words == [NIL]:
        return plain
    further = pc.is_in(entity.text, value_set=pa.array(words, entity.text.type)).to_numpy(zero_copy_only=False)
    nils: Bools = plain.is_nil | further.astype(bool)
    word = "|".join(map(re.escape, words))
    names = "|null|none" if words == [NIL] else ""
    near = pc.match_substring_regex(entity.text, rf"^(\W*({word}|NIL|NIL\d+)\W*{names})$", ignore_case=True)
    near = near.to_numpy(zero_copy_only=False).astype(bool) & ~nils
    if near.any():
        first, expected = entity.text[int(np.argmax(near))].as_py(), " or ".join(map(repr, words))
        warn(
            f"{name}: {first!r} ({int(near.sum())} rows) is treated as an entity, because nil={expected} means no "
            "entity; pass nil= or rename it"
        )
    return plain._replace(is_nil=nils)


def _entity_column(frame: pd.DataFrame, name: str) -> str:
    """Return the column of the entities: entity_id, or docno of runs and judgments."""
    id_columns = [column for column in ("entity_id", "docno") if column in frame.columns]
    if len(id_columns) > 1:
        raise InputError(f"{name}: found both entity_id and docno; keep the column with the answers")
    require(frame, ("qid", *(id_columns or ["entity_id"])), name)
    return id_columns[0]


def _entities(frame: pd.DataFrame, column: str, qid: Ids, name: str) -> Ids:
    missing = frame[column].isna().to_numpy()
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(
            f"{name}: row {row} (query {qid.text[row].as_py()!r}) has no {column}; write 'NIL' if there is no entity"
        )
    return column_ids(frame[column], f"{name} column {column!r}")
