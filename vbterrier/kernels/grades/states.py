"""States of a topic during successive draws of its unjudged documents."""

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
    """The transitions of some states by a draw.

    Parameters
    ----------
    source, target
        The distinct states before and after the draw, shape (S,).
    level
        The level that the document lands on.
    chance
        The probability of the transition, shape (n, S).
    """

    source: Ints
    target: Ints
    level: int
    chance: Floats


@dataclass(frozen=True, eq=False)
class States:
    """Counts of documents on the levels that may have too few documents, along one axis.

    Parameters
    ----------
    available
        True if a level has a document left in a state, shape (S, L).
    step
        The difference of the states before and after landing on each level, shape (L,); 0 for unlimited levels.
    """

    available: Bools
    step: Ints

    def __len__(self) -> int:
        return len(self.available)

    def landing(self, prob: Floats) -> Floats:
        """Probability of landing on each level from each state, shape (..., S, L), for draws of shape (..., L)."""
        land = np.zeros((*prob.shape[:-1], *self.available.shape))
        carried = np.zeros((*prob.shape[:-1], len(self)))
        for level in range(prob.shape[-1] - 1, -1, -1):
            carried = carried + prob[..., None, level]
            free = self.available[:, level]
            land[..., level] = np.where(free, carried, 0.0)
            carried = np.where(free, 0.0, carried)
        return land


def states(caps: Ints, n_unjudged: int) -> States:
    """The states of topics with the same caps, shape (L,)."""
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
    """Independent draws; states are the counts of documents on the levels that may have too few documents.

    Parameters
    ----------
    model
        Topics with the same caps and number of documents.
    """

    def __init__(self, model: UnjudgedModel) -> None:
        self._landed, self._caps = model.landed, model.caps[0]
        self._states = states(self._caps, int(model.n_unjudged[0]))
        self._land = self._states.landing(self._landed[:, 0])

    def __len__(self) -> int:
        return len(self._states)

    def moves(self, document: int) -> Iterator[Move]:
        """Yield the transitions by the draw of a document."""
        if document and self._landed.shape[1] > 1:
            self._land = self._states.landing(self._landed[:, document])
        for level in np.flatnonzero(self._caps > 0).tolist():
            source = np.flatnonzero(self._states.available[:, level])
            yield Move(source, source + self._states.step[level], level, self._land[:, source, level])


class DrawnWalk:
    """Draws from an urn; states are the counts of drawn levels, which determine the levels without documents left.

    Parameters
    ----------
    model
        Topics with the same caps and number of documents and with shared priors.
    """

    def __init__(self, model: UnjudgedModel) -> None:
        self._prob, self._caps = model.landed, model.caps[0]
        self._strength = model.strength
        self._levels = _drawn_levels(model)
        side = int(model.n_unjudged[0]) + 1
        n_free = len(self._levels) - 1
        # The count of the first level is the number of draws less all other counts.
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
        """Yield the transitions by the draw of a document."""
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
        """The level that a draw of each level lands on in each state, shape (S, n_drawn)."""
        arriving = np.zeros((len(counts), len(self._caps)), dtype=np.int64)
        arriving[:, self._levels] = counts
        free = np.ones(arriving.shape, dtype=bool)
        for level in range(len(self._caps) - 1, 0, -1):
            over = np.maximum(arriving[:, level] - self._caps[level], 0)
            arriving[:, level - 1] += over
            free[:, level] = arriving[:, level] < self._caps[level]
        below = np.maximum.accumulate(np.where(free, np.arange(len(self._caps)), 0), axis=1)
        return below[:, self._levels]


def _drawn_levels(model: UnjudgedModel) -> Ints:
    return np.flatnonzero((model.landed > 0).any(axis=(0, 1)))


def n_walk_states(model: UnjudgedModel) -> float:
    """The number of states of :func:`walk`; infinite if there is no such walk."""
    n_unjudged = int(model.n_unjudged[0])
    if not model.depends[0]:
        caps = model.caps[0]
        return float(np.prod(caps[(caps > 0) & (caps < n_unjudged)] + 1.0))
    n_free = len(_drawn_levels(model)) - 1
    return float(comb(n_unjudged + n_free, n_free)) if model.is_shared else float("inf")


def walk(model: UnjudgedModel) -> LandedWalk | DrawnWalk:
    """The draws of topics with the same caps and number of documents, either all independent or all dependent."""
    return DrawnWalk(model) if model.depends[0] else LandedWalk(model)


@lru_cache(maxsize=256)
def layer(n_drawn: int, n_levels: int) -> Ints:
    """All counts of levels that sum to ``n_drawn``, in lexicographic order, shape (S, n_levels)."""
    places = list(combinations(range(n_drawn + n_levels - 1), n_levels - 1))
    bars = np.array(places, dtype=np.int64).reshape(len(places), n_levels - 1)
    ends = np.pad(bars, ((0, 0), (1, 0)), constant_values=-1)
    return np.diff(ends, axis=1, append=n_drawn + n_levels - 1) - 1


@lru_cache(maxsize=256)
def successors(n_drawn: int, n_levels: int) -> tuple[Ints, ...]:
    """The position in the next layer of counts with one more draw of each level, each of shape (S,)."""
    after = layer(n_drawn + 1, n_levels)
    base = (n_drawn + 2) ** np.arange(n_levels - 1, -1, -1)
    # In lexicographic order the counts, read as digits of a number, increase.
    return tuple(
        np.searchsorted(after @ base, (layer(n_drawn, n_levels) + unit) @ base)
        for unit in np.eye(n_levels, dtype=np.int64)
    )
