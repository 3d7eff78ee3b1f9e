"""Judgments as arrays: counts of grades in the pool, and the judged documents of a run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames import ranking
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import places, run_places
from vbterrier.kernels.rankings import gains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints
    from vbterrier.frames.ranking import Run, Top


UNJUDGED = -1
NOTHING = -2


class Judgments(LabelFrame):
    """The judged documents of every topic, by grade.

    Labels below 0 count as grade 0, as in trec_eval.

    ``qrels``: columns qid, docno, label. ``name``: the name of the qrels in messages. ``drop_negative``: treat labels
    below 0 as missing judgments instead, as the published code of the ECIR 2023 paper does. ``grades``: the grades that
    occur, increasing from 0, shape (L,). ``counts``: judged documents of each topic and grade, shape (n, L). Raises
    InputError: a missing column or id, a label that is not a whole number, a document with two labels.
    """

    def __init__(self, qrels: Any, *, name: str = "qrels", drop_negative: bool = False) -> None:
        super().__init__(qrels, name=name, drop_negative=drop_negative)
        grade = np.maximum(self.label, 0)
        self.grades = np.union1d(grade, 0)
        self.level = np.searchsorted(self.grades, grade)
        self.counts = self.count(self.topic, self.level)

    def regraded(self, grades: Ints) -> Judgments:
        """Return the same judgments with additional, possibly unused grades."""
        wider = copy.copy(self)
        wider.grades = np.union1d(self.grades, grades)
        place = np.searchsorted(wider.grades, self.grades)
        wider.level = place[self.level]
        wider.counts = np.zeros((len(self.topics), len(wider.grades)), dtype=np.int64)
        wider.counts[:, place] = self.counts
        return wider

    def count(self, topic: Ints, level: Ints) -> Ints:
        """Count each grade in each topic, shape (n, L)."""
        cells = np.bincount(topic * len(self.grades) + level, minlength=len(self.topics) * len(self.grades))
        return cells.reshape(len(self.topics), len(self.grades))

    def judge(self, run: Run, cutoff: int | None) -> JudgedTop:
        """Look up the first ``cutoff`` documents of each topic of a run.

        Raises InputError: topics or documents with ids that cannot match, see
        :func:`vbterrier.frames.ranking.run_places`.
        """
        run_places(run, self.topics, self.qid, self.name)
        require_same_kind(self.docno, run.docno, f"{self.name} column 'docno'", f"{run.name} column 'docno'")
        top = run.top(cutoff)
        top.warn_of_ties(run.name)
        return self.judged(run, top, cutoff)

    def judged(self, run: Run, top: Top, cutoff: int | None) -> JudgedTop:
        """Look up the given top documents of a run without further checks."""
        found = places(run.topics, self.topics)
        rows = np.full((len(self.topics), top.depth), -1, dtype=np.int64)
        rows[found[found >= 0]] = top.rows[found >= 0]
        levels = np.full(rows.shape, NOTHING, dtype=np.int64)
        topic, rank = np.nonzero(rows >= 0)
        row = self.lookup.find_one(topic, run.docno.take(rows[topic, rank]))
        levels[topic, rank] = np.where(row >= 0, self.level[row], UNJUDGED) if len(self.level) else UNJUDGED
        return JudgedTop(self, run, rows, levels, cutoff)


@dataclass(frozen=True, eq=False)
class JudgedTop:
    """A run with its judgments up to a rank cutoff, for every judged topic.

    ``judgments``: the pool. ``run``: the run. ``rows``: the row of the run at each rank, -1 for no document, shape (n,
    width). ``levels``: the position of the grade in ``judgments.grades``, -1 for unjudged, -2 for no document, shape
    (n, width). ``cutoff``: the requested cutoff k; ``None`` for the whole ranking. The width is smaller if all lists
    are shorter.
    """

    judgments: Judgments
    run: Run
    rows: Ints
    levels: Ints
    cutoff: int | None

    def cut(self, cutoff: int | None) -> JudgedTop:
        """Return the judged run with a smaller cutoff."""
        if cutoff == self.cutoff:
            return self
        return JudgedTop(self.judgments, self.run, self.rows[:, :cutoff], self.levels[:, :cutoff], cutoff)

    def deeper(self, times: int) -> JudgedTop:
        """Return the judged run with a cutoff ``times`` as large, limited by memory."""
        if self.cutoff is None:
            return self
        cutoff = max(self.cutoff, min(self.cutoff * times, ranking.MOST_PLACES // max(len(self.run.topics), 1)))
        return self.judgments.judged(self.run, self.run.top(cutoff), cutoff)

    @cached_property
    def unjudged(self) -> NDArray[np.bool_]:
        """A mask of unjudged documents, shape (n, width)."""
        return np.equal(self.levels, UNJUDGED)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents of each topic, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged, axis=1))

    @cached_property
    def counts(self) -> Ints:
        """Judged documents of each topic and grade up to the cutoff, shape (n, L)."""
        topic, rank = np.nonzero(self.levels >= 0)
        return self.judgments.count(topic, self.levels[topic, rank])

    def regraded(self, grades: Ints) -> JudgedTop:
        """Return the same run with additional grades, see :meth:`Judgments.regraded`."""
        wider = self.judgments.regraded(grades)
        # Levels -2 and -1 index the last two elements: no document, unjudged.
        place = np.append(np.searchsorted(wider.grades, self.judgments.grades), [NOTHING, UNJUDGED])
        return JudgedTop(wider, self.run, self.rows, place[self.levels], self.cutoff)

    def unjudged_share(self) -> NDArray[np.float64]:
        """``unjudged / retrieved`` up to the cutoff, 0 if nothing is retrieved, shape (n,)."""
        retrieved = np.count_nonzero(self.levels != NOTHING, axis=1)
        return np.asarray(self.n_unjudged / np.maximum(retrieved, 1))


def grade_gains(judged: JudgedTop, dcg: str) -> NDArray[np.float64]:
    """The gain of each grade, shape (L,): ``"log2"`` the grade, ``"exp-log2"`` ``2^grade - 1``.

    Raises InputError: a grade without a finite gain.
    """
    grades = judged.judgments.grades
    with np.errstate(over="ignore"):
        gain = gains(grades, exponential=dcg == "exp-log2")
    if not np.isfinite(gain).all():
        raise InputError(f"{judged.judgments.name}: grade {grades[-1]} has no finite gain 2^grade - 1; use dcg='log2'")
    return gain
