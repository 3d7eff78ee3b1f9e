"""Judgments as arrays: what the pool holds of each grade, and what the first ranks of a run hold of it."""

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
from vbterrier.kernels.gain import gains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints
    from vbterrier.frames.ranking import Run, Top


UNJUDGED = -1
NOTHING = -2


class Judgments(LabelFrame):
    """The judged documents of every topic, by grade.

    Labels below 0 count as grade 0, as in trec_eval.

    Parameters
    ----------
    qrels
        Columns qid, docno, label.
    name
        What messages call it.
    drop_negative
        Take labels below 0 for missing judgments instead (what the code behind the ECIR 2023 paper does).

    Raises
    ------
    InputError
        A missing column or id, a label that is no whole number, one document with two labels.

    Attributes
    ----------
    grades : numpy.ndarray
        The grades that occur, rising from 0, shape (L,).
    counts : numpy.ndarray
        Judged documents of each topic and grade, shape (n, L).
    """

    def __init__(self, qrels: Any, *, name: str = "qrels", drop_negative: bool = False) -> None:
        super().__init__(qrels, name=name, drop_negative=drop_negative)
        grade = np.maximum(self.label, 0)
        self.grades = np.union1d(grade, 0)
        self.level = np.searchsorted(self.grades, grade)
        self.counts = self.count(self.topic, self.level)

    def regraded(self, grades: Ints) -> Judgments:
        """The same judgments with a place for each of some grades too, whether or not a document has them."""
        wider = copy.copy(self)
        wider.grades = np.union1d(self.grades, grades)
        place = np.searchsorted(wider.grades, self.grades)
        wider.level = place[self.level]
        wider.counts = np.zeros((len(self.topics), len(wider.grades)), dtype=np.int64)
        wider.counts[:, place] = self.counts
        return wider

    def count(self, topic: Ints, level: Ints) -> Ints:
        """How often each grade occurs in each topic, shape (n, L)."""
        cells = np.bincount(topic * len(self.grades) + level, minlength=len(self.topics) * len(self.grades))
        return cells.reshape(len(self.topics), len(self.grades))

    def judge(self, run: Run, depth: int | None) -> JudgedTop:
        """Look up the first ``depth`` documents of each topic of a run.

        Raises
        ------
        InputError
            Topics or documents that can never meet, see :func:`vbterrier.frames.ranking.run_places`.
        """
        run_places(run, self.topics, self.qid, self.name)
        require_same_kind(self.docno, run.docno, f"{self.name} column 'docno'", f"{run.name} column 'docno'")
        top = run.top(depth)
        top.warn_of_ties(run.name)
        return self.judged(run, top, depth)

    def judged(self, run: Run, top: Top, depth: int | None) -> JudgedTop:
        """Look up the first documents of a run that was found to be in order."""
        found = places(run.topics, self.topics)
        rows = np.full((len(self.topics), top.depth), -1, dtype=np.int64)
        rows[found[found >= 0]] = top.rows[found >= 0]
        levels = np.full(rows.shape, NOTHING, dtype=np.int64)
        topic, rank = np.nonzero(rows >= 0)
        row = self.lookup.find_one(topic, run.docno.take(rows[topic, rank]))
        levels[topic, rank] = np.where(row >= 0, self.level[row], UNJUDGED) if len(self.level) else UNJUDGED
        return JudgedTop(self, run, rows, levels, depth)


@dataclass(frozen=True, eq=False)
class JudgedTop:
    """The first ranks of every judged topic in a run.

    Parameters
    ----------
    judgments
        The pool.
    run
        The run.
    rows
        The row of the run at each rank, -1 where there is none, shape (n, width).
    levels
        The place of its grade among ``judgments.grades``, -1 unjudged, -2 no document, shape (n, width).
    depth
        The cutoff k that was asked for; ``None`` for the whole ranking. The width is less where lists are shorter.
    """

    judgments: Judgments
    run: Run
    rows: Ints
    levels: Ints
    depth: int | None

    def cut(self, depth: int | None) -> JudgedTop:
        """The same with a smaller cutoff."""
        if depth == self.depth:
            return self
        return JudgedTop(self.judgments, self.run, self.rows[:, :depth], self.levels[:, :depth], depth)

    def deeper(self, times: int) -> JudgedTop:
        """The same with a cutoff that many times as large, or as large as can be laid out."""
        if self.depth is None:
            return self
        depth = max(self.depth, min(self.depth * times, ranking.MOST_PLACES // max(len(self.run.topics), 1)))
        return self.judgments.judged(self.run, self.run.top(depth), depth)

    @cached_property
    def unjudged(self) -> NDArray[np.bool_]:
        """Where documents without judgment stand, shape (n, width)."""
        return np.equal(self.levels, UNJUDGED)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents of each topic, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged, axis=1))

    @cached_property
    def counts(self) -> Ints:
        """Judged documents of each topic and grade within the cut, shape (n, L)."""
        topic, rank = np.nonzero(self.levels >= 0)
        return self.judgments.count(topic, self.levels[topic, rank])

    def regraded(self, grades: Ints) -> JudgedTop:
        """The same with a place for each of some grades too, see :meth:`Judgments.regraded`."""
        wider = self.judgments.regraded(grades)
        # The last two places are what -2 and -1 index: no document, unjudged.
        place = np.append(np.searchsorted(wider.grades, self.judgments.grades), [NOTHING, UNJUDGED])
        return JudgedTop(wider, self.run, self.rows, place[self.levels], self.depth)

    def unjudged_share(self) -> NDArray[np.float64]:
        """``unjudged / retrieved`` within the cut, 0 where nothing was retrieved, shape (n,)."""
        retrieved = np.count_nonzero(self.levels != NOTHING, axis=1)
        return np.asarray(self.n_unjudged / np.maximum(retrieved, 1))


def grade_gains(judged: JudgedTop, dcg: str) -> NDArray[np.float64]:
    """The gain of each grade, shape (L,): ``"log2"`` the grade, ``"exp-log2"`` ``2^grade - 1``.

    Raises
    ------
    InputError
        A grade without a finite gain.
    """
    grades = judged.judgments.grades
    with np.errstate(over="ignore"):
        gain = gains(grades, exponential=dcg == "exp-log2")
    if not np.isfinite(gain).all():
        raise InputError(f"{judged.judgments.name}: grade {grades[-1]} has no finite gain 2^grade - 1; use dcg='log2'")
    return gain
