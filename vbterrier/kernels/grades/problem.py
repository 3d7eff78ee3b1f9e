"""The process behind bootstrapped scores, as arrays: who may be drawn, and what can run out.

Documents without judgment are visited in a fixed order. Each draws a grade; a grade that no judged document outside
the ranking has left is replaced by the next lower one that has; grade 0 never runs out (Fröbe et al., ECIR 2023,
Algorithm 1). A score is the judged part plus, for each visited document, its weight times the gain of its grade, or
any other function of the grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Steps:
    """A score whose terms look back, as what its unjudged documents add to it, first to last.

    With X and Y two things to be seen of the levels that documents have landed on so far, X and Y before a document and
    X' and Y' behind it, the i-th adds ``(X' - X)(alone_i + together_i Y') + fixed_i + lasting_i Y'``: its own term, and
    those of the judged documents from it to the next.

    Parameters
    ----------
    base
        Terms before the first unjudged document, shape (n,).
    alone, together, fixed, lasting
        Shape (n, u).
    seen
        X and Y, each of shape (...), of how many documents have landed on each level, shape (..., L).
    """

    base: Floats
    alone: Floats
    together: Floats
    fixed: Floats
    lasting: Floats
    seen: Callable[[Ints], tuple[Floats, Floats]]

    def select(self, topics: Ints | slice) -> Steps:
        """Some of the topics."""
        return Steps(
            self.base[topics],
            self.alone[topics],
            self.together[topics],
            self.fixed[topics],
            self.lasting[topics],
            self.seen,
        )


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
    strength
        Pseudo-count of the prior, shape (n,): how many documents it is worth; ``inf`` (or ``None``, for all topics)
        where it is known exactly and documents are drawn independently, else they are drawn from an urn, see
        :func:`vbterrier.kernels.grades.urn.urn`.
    value
        For scores that are no sums: ``value(topic, levels)`` takes the levels that the unjudged documents of a topic
        landed on, in visiting order, shape (m, n_unjudged), to scores, shape (m,); ``base`` and ``weights`` then count
        for nothing.
    steps
        The same scores as sums of what each document adds, where they come so; ``None`` otherwise.
    """

    base: Floats
    weights: Floats
    n_unjudged: Ints
    prob: Floats
    left: Ints
    gain: Floats
    strength: Floats | None = None
    value: Callable[[int, Ints], Floats] | None = None
    steps: Steps | None = None

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
            None if self.strength is None else self.strength[topics],
            self._value_of(topics),
            None if self.steps is None else self.steps.select(topics),
        )

    def _value_of(self, topics: Ints | slice) -> Callable[[int, Ints], Floats] | None:
        value, places = self.value, np.arange(len(self))[topics]
        return None if value is None else lambda topic, levels: value(int(places[topic]), levels)

    @property
    def is_shared(self) -> bool:
        """Whether all documents of a topic have the same prior."""
        return bool(self.prob.shape[1] == 1)

    @cached_property
    def depends(self) -> Bools:
        """Whether the documents of a topic depend on each other through what is not known of the prior, shape (n,)."""
        if self.strength is None:
            return np.zeros(len(self), dtype=bool)
        return np.isfinite(self.strength) & (self.n_unjudged > 1)

    def strength_of(self, topic: int) -> float | None:
        """The strength of a topic's prior; ``None`` where its documents are independent."""
        return None if self.strength is None or not self.depends[topic] else float(self.strength[topic])

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
        with np.errstate(over="ignore"):
            return self.n_active.astype(np.float64) ** self.n_unjudged
