"""The process behind bootstrapped scores, as arrays: who may be drawn, and what can run out.

Documents without judgment are visited in a fixed order. Each draws a grade; a grade that no judged document outside
the ranking has left is replaced by the next lower one that has; grade 0 never runs out (Fröbe et al., ECIR 2023,
Algorithm 1). A score is the judged part plus, for each visited document, its weight times the gain of its grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """n topics, up to u unjudged documents each, L levels of gain.

    Parameters
    ----------
    base
        Score of the judged part, shape (n,).
    weights
        Score of one unit of gain at each unjudged document in visiting order, 0 behind the last, shape (n, u).
    n_unjudged
        Unjudged documents of each topic, shape (n,), 0..u.
    prob
        Probability of each level, shape (n, 1, L) when all documents share it, (n, u, L) otherwise.
    left
        Judged documents of each level outside the ranking, shape (n, L).
    gain
        Gain of each level, shape (L,), rising from 0.
    """

    base: Floats
    weights: Floats
    n_unjudged: Ints
    prob: Floats
    left: Ints
    gain: Floats

    def __len__(self) -> int:
        return len(self.base)

    def select(self, topics: Ints | slice) -> Problem:
        """Some of the topics."""
        return Problem(
            self.base[topics],
            self.weights[topics],
            self.n_unjudged[topics],
            self.prob[topics],
            self.left[topics],
            self.gain,
        )

    @cached_property
    def landed(self) -> Floats:
        """The probabilities after levels that are empty from the start have passed theirs down, shape like prob."""
        prob = self.prob.copy()
        for level in range(prob.shape[2] - 1, 0, -1):
            empty = self.left[:, level] == 0
            prob[empty, :, level - 1] += prob[empty, :, level]
            prob[empty, :, level] = 0.0
        return prob

    @cached_property
    def caps(self) -> Ints:
        """How many documents can land on each level, shape (n, L): 0 never, n_unjudged as many as there are."""
        caps = np.minimum(self.left, self.n_unjudged[:, None])
        drawn: Bools = np.any(self.landed > 0, axis=1)
        falling = np.zeros(len(self), dtype=bool)
        for level in range(caps.shape[1] - 1, 0, -1):
            reached = drawn[:, level] | falling
            caps[~reached, level] = 0
            binds = reached & (caps[:, level] > 0) & (caps[:, level] < self.n_unjudged)
            falling = np.where(self.left[:, level] == 0, falling, binds)
        caps[:, 0] = self.n_unjudged
        return caps

    @cached_property
    def binds(self) -> Bools:
        """Whether any level can run out while documents are drawn, shape (n,)."""
        return np.asarray(((self.caps > 0) & (self.caps < self.n_unjudged[:, None])).any(axis=1))

    @cached_property
    def n_active(self) -> Ints:
        """Levels that a document can land on, shape (n,)."""
        active: Ints = np.count_nonzero(self.caps > 0, axis=1)
        return np.maximum(active, 1)

    def n_paths(self) -> Floats:
        """An upper limit of the number of sequences of grades, shape (n,)."""
        return self.n_active.astype(np.float64) ** self.n_unjudged


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
