"""Draws of unjudged documents one after the other, with minimal state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grades.model import next_draw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.grades.model import UnjudgedModel


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

    def __init__(self, problem: UnjudgedModel) -> None:
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

    def __init__(self, problem: UnjudgedModel) -> None:
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


def _drawn_levels(problem: UnjudgedModel) -> Ints:
    return np.flatnonzero((problem.landed > 0).any(axis=(0, 1)))


def n_walk_states(problem: UnjudgedModel) -> float:
    """The number of states that :func:`walk` would lay out; infinite where there is no such walk."""
    n_unjudged = int(problem.n_unjudged[0])
    if not problem.depends[0]:
        return float(n_states(problem.caps[0], n_unjudged))
    n_free = len(_drawn_levels(problem)) - 1
    return float(comb(n_unjudged + n_free, n_free)) if problem.is_shared else float("inf")


def walk(problem: UnjudgedModel) -> LandedWalk | DrawnWalk:
    """Draw documents of topics that share their caps, their number of documents and whether draws are independent."""
    return DrawnWalk(problem) if problem.depends[0] else LandedWalk(problem)


# Topics times states held in memory at a time.
_BATCH = 100_000


def drawn_moments(problem: UnjudgedModel, *, spread: bool = True) -> tuple[Floats, Floats]:
    """Mean and variance of topics with one number of unjudged documents and a shared prior, each of shape (n,).

    Without ``spread`` variances are NaN, for less than two thirds of the time.

    From the last document back, ``F_i(c) = E[v_i T_i + ... + v_u T_u | c drawn by the first i]`` and its second moment
    follow from those of i + 1 by one draw of the urn. Cost: topics times counts of drawn grades times grades.
    """
    n_unjudged = int(problem.n_unjudged[0])
    levels = np.flatnonzero((problem.landed > 0).any(axis=(0, 1)))
    step = max(1, _BATCH // len(layer(n_unjudged, len(levels))))
    mean, square = np.empty(len(problem)), np.empty(len(problem))
    for start in range(0, len(problem), step):
        part = slice(start, start + step)
        mean[part], square[part] = _backwards(problem.select(part), n_unjudged, levels, spread=spread)
    if not spread:
        return problem.base + mean, square
    return problem.base + mean, np.maximum(square - mean**2, 0.0)


def _backwards(problem: UnjudgedModel, n_unjudged: int, levels: Ints, *, spread: bool) -> tuple[Floats, Floats]:
    """The first two moments of what the unjudged documents of some topics add to their scores."""
    caps, kind = np.unique(problem.caps, axis=0, return_inverse=True)
    prob = problem.landed[:, :, levels]
    falls = problem.weights[:, :n_unjudged] - np.pad(problem.weights[:, 1:n_unjudged], ((0, 0), (0, 1)))
    mean, square = np.zeros((2, len(problem), 1))
    for n_drawn in range(n_unjudged, 0, -1):
        counts = layer(n_drawn, len(levels))
        gained = _gained(counts, caps, levels, problem.gain)[kind.reshape(-1)] * falls[:, n_drawn - 1 : n_drawn]
        before = layer(n_drawn - 1, len(levels)).astype(np.float64)
        # One array for each level: what lies side by side is read side by side.
        chance = [
            next_draw(prob[:, :, [place]], problem.strength, before[:, [place]], n_drawn - 1)[:, :, 0]
            for place in range(len(levels))
        ]
        after = successors(n_drawn - 1, len(levels))
        if spread:
            square = _expected(square + gained * (gained + 2 * mean), chance, after)
        mean = _expected(gained + mean, chance, after)
    return mean[:, 0], square[:, 0] if spread else np.full(len(problem), np.nan)


def _expected(values: Floats, chance: list[Floats], after: tuple[Ints, ...]) -> Floats:
    """The expectation over the next draw of what is known of the counts behind it, shape (n, S)."""
    found = chance[0] * values.take(after[0], axis=1)
    for share, place in zip(chance[1:], after[1:], strict=True):
        found += share * values.take(place, axis=1)
    return found


def _gained(counts: Ints, caps: Ints, levels: Ints, gain: Floats) -> Floats:
    """The gain of documents after some draws, for each of some caps, shape (n_caps, S)."""
    total = np.zeros((len(caps), len(counts)))
    falling = np.zeros((len(caps), len(counts)), dtype=np.int64)
    drawn = dict(zip(levels.tolist(), counts.T, strict=True))
    for level in range(len(gain) - 1, -1, -1):
        arriving = falling + drawn.get(level, 0)
        landed = np.minimum(arriving, caps[:, level : level + 1])
        total += gain[level] * landed
        falling = arriving - landed
    return total


@lru_cache(maxsize=256)
def layer(n_drawn: int, n_levels: int) -> Ints:
    """All counts of some levels that sum to ``n_drawn``, in lexical order, shape (S, n_levels)."""
    places = list(combinations(range(n_drawn + n_levels - 1), n_levels - 1))
    bars = np.array(places, dtype=np.int64).reshape(len(places), n_levels - 1)
    ends = np.pad(bars, ((0, 0), (1, 0)), constant_values=-1)
    return np.diff(ends, axis=1, append=n_drawn + n_levels - 1) - 1


@lru_cache(maxsize=256)
def successors(n_drawn: int, n_levels: int) -> tuple[Ints, ...]:
    """For each level, where counts with one more draw of it stand in the next layer, each of shape (S,)."""
    after = layer(n_drawn + 1, n_levels)
    base = (n_drawn + 2) ** np.arange(n_levels - 1, -1, -1)
    # In lexical order the numbers that the counts spell rise.
    return tuple(
        np.searchsorted(after @ base, (layer(n_drawn, n_levels) + unit) @ base)
        for unit in np.eye(n_levels, dtype=np.int64)
    )
