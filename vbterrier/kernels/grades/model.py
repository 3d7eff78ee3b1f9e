"""The model of unjudged documents as arrays, and Pólya urns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Bools, Floats, Ints


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
class UnjudgedModel:
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
        :func:`vbterrier.kernels.grades.model.urn`.
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

    def select(self, topics: Ints | slice) -> UnjudgedModel:
        """Some of the topics."""
        return UnjudgedModel(
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


def urn(rng: np.random.Generator, n_draws: int, n_documents: int, strength: float) -> Floats:
    """Uniform numbers behind the grades of documents in visiting order.

    Parameters
    ----------
    rng
        Where chance comes from.
    n_draws, n_documents
        How many sequences, and their length.
    strength
        s, above 0; ``inf`` for independent numbers.

    Returns
    -------
    numpy.ndarray
        In [0, 1), shape (n_draws, n_documents).

    >>> urn(np.random.default_rng(0), 2, 4, 2.0).round(2).tolist()
    [[0.64, 0.27, 0.04, 0.02], [0.81, 0.91, 0.81, 0.81]]
    """
    uniforms = rng.random((n_draws, n_documents))
    if not np.isfinite(strength):
        return uniforms
    draws = np.arange(n_draws)
    for document in range(1, n_documents):
        # Of s + i units the first i belong to the earlier documents, one each.
        ball = rng.random(n_draws) * (strength + document)
        again = np.flatnonzero(ball < document)
        uniforms[again, document] = uniforms[draws[again], ball[again].astype(np.int64)]
    return uniforms


def next_draw(prob: Floats, strength: Floats | None, seen: Floats, n_seen: int) -> Floats:
    """Probability of each level at the next draw: ``(s·p + seen)/(s + n_seen)``, written so that s may be infinite.

    Parameters
    ----------
    prob
        The prior, shape (n, 1, L).
    strength
        s of each topic, shape (n,); ``None`` if infinite.
    seen
        How often each level was drawn so far, shape (m, L).
    n_seen
        How many draws there were.

    Returns
    -------
    numpy.ndarray
        Shape (n, m, L); (n, 1, L) where strength is ``None``.

    >>> next_draw(np.array([[[0.5, 0.5]]]), np.array([2.0]), np.array([[1.0, 0.0]]), 1).round(3).tolist()
    [[[0.667, 0.333]]]
    """
    if strength is None or not n_seen:
        return prob
    share = (n_seen / (strength + n_seen))[:, None, None]
    return prob + share * (seen / n_seen - prob)


def joint_probs(prob: Floats, strength: float, left: Ints, right: Ints) -> Floats:
    """Probability of every pair of a sequence of draws and one that follows it, each given by its counts of levels.

    A sequence with c_l draws of level l has probability ``Π_l (s·p_l)^(c_l) / s^(u)``, with rising powers.

    Parameters
    ----------
    prob
        The prior, shape (L,).
    strength
        s, finite.
    left, right
        How often each level is in the sequences, shapes (a, L) and (b, L).

    Returns
    -------
    numpy.ndarray
        Shape (a, b).

    >>> joint_probs(np.array([0.5, 0.5]), 2.0, np.array([[1, 0]]), np.array([[1, 0], [0, 1]])).round(3).tolist()
    [[0.333, 0.167]]
    """
    counts = left[:, None, :] + right
    before = np.arange(int(counts[0, 0].sum()))
    # Both products of u factors are scaled alike, so that neither a weak nor a strong prior leaves their range.
    rising = np.cumprod((strength * prob[:, None] + before) / (strength + 1), axis=1)
    rising = np.concatenate([np.ones((len(prob), 1)), rising], axis=1)
    joint = rising[np.arange(len(prob)), counts].prod(axis=2)
    return np.asarray(joint / np.prod((strength + before) / (strength + 1)))


def comonotone_variance(prob: Floats, weights: Floats, gain: Floats) -> Floats:
    """The variance of ``H(U) = Σ_i w_i·h_i(U)``, all documents' gains read off one number U.

    H is a step function of U: where U passes a document's CDF at a level, its gain rises to that of the next.

    Parameters
    ----------
    prob
        Probability of each level, shape (n, u, L).
    weights
        w, shape (n, u).
    gain
        Gain of each level, shape (L,).

    Returns
    -------
    numpy.ndarray
        Shape (n,).
    """
    n = len(prob)
    steps = np.minimum(np.cumsum(prob[:, :, :-1], axis=2), 1.0).reshape(n, -1)
    rises = (weights[:, :, None] * np.diff(gain)).reshape(n, -1)
    order = np.argsort(steps, axis=1, kind="stable")
    steps, rises = np.take_along_axis(steps, order, axis=1), np.take_along_axis(rises, order, axis=1)
    heights = np.concatenate([np.zeros((n, 1)), np.cumsum(rises, axis=1)], axis=1)
    widths = np.diff(steps, axis=1, prepend=0.0, append=1.0)
    centred = heights - (heights * widths).sum(axis=1, keepdims=True)
    variance: Floats = (centred**2 * widths).sum(axis=1)
    return variance
