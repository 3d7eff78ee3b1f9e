"""Documents drawn one after the other, with the least that must be remembered of those before."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grades.urn import next_draw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


class Move(NamedTuple):
    """What a draw does to some states.

    Parameters
    ----------
    source, target
        The states before and after, shape (S,), each named once.
    level
        What the document lands on.
    chance
        Its probability, shape (n, S).
    """

    source: Ints
    target: Ints
    level: int
    chance: Floats


@dataclass(frozen=True, eq=False)
class States:
    """The counts of documents landed so far on the levels that can run out, laid out as one axis.

    Parameters
    ----------
    available
        Whether each state still takes a document at each level, shape (S, L).
    step
        How far a landing on each level moves along the axis, shape (L,); 0 for levels that cannot run out.
    """

    available: Bools
    step: Ints

    def __len__(self) -> int:
        return len(self.available)

    def landing(self, prob: Floats) -> Floats:
        """Probability to land on each level from each state, shape (..., S, L), for draws of shape (..., L)."""
        land = np.zeros((*prob.shape[:-1], *self.available.shape))
        carried = np.zeros((*prob.shape[:-1], len(self)))
        for level in range(prob.shape[-1] - 1, -1, -1):
            carried = carried + prob[..., None, level]
            free = self.available[:, level]
            land[..., level] = np.where(free, carried, 0.0)
            carried = np.where(free, 0.0, carried)
        return land


def n_states(caps: Ints, n_unjudged: int) -> int:
    """The number of states that :func:`states` would lay out."""
    binding = caps[(caps > 0) & (caps < n_unjudged)]
    return int(np.prod(binding + 1.0))


def states(caps: Ints, n_unjudged: int) -> States:
    """Lay out the states of topics with the same caps, shape (L,)."""
    binding = np.flatnonzero((caps > 0) & (caps < n_unjudged))
    shape = tuple(int(caps[level]) + 1 for level in binding)
    total = int(np.prod(shape, dtype=np.int64))
    counts = np.indices(shape).reshape(len(binding), total)
    available = np.broadcast_to(caps > 0, (total, len(caps))).copy()
    step = np.zeros(len(caps), dtype=np.int64)
    for axis, level in enumerate(binding):
        available[:, level] = counts[axis] < caps[level]
        step[level] = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    return States(available, step)


class LandedWalk:
    """States are what landed on the levels that can run out: draws are independent.

    Parameters
    ----------
    problem
        Topics with the same caps and number of documents.
    """

    def __init__(self, problem: Problem) -> None:
        self._landed, self._caps = problem.landed, problem.caps[0]
        self._states = states(self._caps, int(problem.n_unjudged[0]))
        self._land = self._states.landing(self._landed[:, 0])

    def __len__(self) -> int:
        return len(self._states)

    def moves(self, document: int) -> Iterator[Move]:
        """What the draw of a document can do."""
        if document and self._landed.shape[1] > 1:
            self._land = self._states.landing(self._landed[:, document])
        for level in np.flatnonzero(self._caps > 0).tolist():
            source = np.flatnonzero(self._states.available[:, level])
            yield Move(source, source + self._states.step[level], level, self._land[:, source, level])


class DrawnWalk:
    """States are how often each level was drawn: draws follow the urn, and what was drawn says what has run out.

    Parameters
    ----------
    problem
        Topics with the same caps and number of documents, whose documents share their prior.
    """

    def __init__(self, problem: Problem) -> None:
        self._prob, self._caps = problem.landed, problem.caps[0]
        self._strength = problem.strength
        self._levels = _drawn_levels(problem)
        side = int(problem.n_unjudged[0]) + 1
        n_free = len(self._levels) - 1
        # The first level's count is what the others leave of the draws so far.
        counts = np.indices((side,) * n_free).reshape(n_free, side**n_free)
        within = np.flatnonzero(counts.sum(axis=0) < side)
        self._counts = counts[:, within].T
        self._strides = np.append(0, side ** np.arange(n_free - 1, -1, -1))
        self._cells = within
        self._states = np.zeros(side**n_free, dtype=np.int64)
        self._states[within] = np.arange(len(within))

    def __len__(self) -> int:
        return len(self._cells)

    def moves(self, document: int) -> Iterator[Move]:
        """What the draw of a document can do."""
        others = self._counts.sum(axis=1)
        reached = np.flatnonzero(others <= document)
        counts = np.column_stack([document - others, self._counts])[reached]
        drawn = next_draw(self._prob[:, :, self._levels], self._strength, counts, document)
        landing = self._landing(counts)
        for place, stride in enumerate(self._strides.tolist()):
            for level in np.unique(landing[:, place]).tolist():
                among = np.flatnonzero(landing[:, place] == level)
                source = reached[among]
                yield Move(source, self._states[self._cells[source] + stride], level, drawn[:, among, place])

    def _landing(self, counts: Ints) -> Ints:
        """The level that a draw of each level lands on after some draws, shape (S, n_drawn)."""
        arriving = np.zeros((len(counts), len(self._caps)), dtype=np.int64)
        arriving[:, self._levels] = counts
        free = np.ones(arriving.shape, dtype=bool)
        for level in range(len(self._caps) - 1, 0, -1):
            over = np.maximum(arriving[:, level] - self._caps[level], 0)
            arriving[:, level - 1] += over
            free[:, level] = arriving[:, level] < self._caps[level]
        below = np.maximum.accumulate(np.where(free, np.arange(len(self._caps)), 0), axis=1)
        return below[:, self._levels]


def _drawn_levels(problem: Problem) -> Ints:
    return np.flatnonzero((problem.landed > 0).any(axis=(0, 1)))


def n_walk_states(problem: Problem) -> float:
    """The number of states that :func:`walk` would lay out; infinite where there is no such walk."""
    n_unjudged = int(problem.n_unjudged[0])
    if not problem.depends[0]:
        return float(n_states(problem.caps[0], n_unjudged))
    n_free = len(_drawn_levels(problem)) - 1
    return float(comb(n_unjudged + n_free, n_free)) if problem.is_shared else float("inf")


def walk(problem: Problem) -> LandedWalk | DrawnWalk:
    """Draw documents of topics that share their caps, their number of documents and whether draws are independent."""
    return DrawnWalk(problem) if problem.depends[0] else LandedWalk(problem)
