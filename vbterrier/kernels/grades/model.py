"""The model of unjudged documents as arrays, and draws from Pólya urns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Increments:
    """A score as the sum of the increments of its unjudged documents, in the order of the ranking.

    X and Y are two functions of the levels assigned so far, with values X and Y before a document and X' and Y' after
    it. The i-th document adds ``(X' - X)(alone_i + together_i Y') + fixed_i + lasting_i Y'``: its own term, and the
    terms of the judged documents between it and the next unjudged one.

    - ``base``: terms before the first unjudged document, shape (n,)
    - ``alone``, ``together``, ``fixed``, ``lasting``: shape (n, u)
    - ``seen``: function of the number of documents on each level, shape (..., L), that returns X and Y, each of shape
      (...)
    """

    base: Floats
    alone: Floats
    together: Floats
    fixed: Floats
    lasting: Floats
    seen: Callable[[Ints], tuple[Floats, Floats]]

    def select(self, topics: Ints | slice) -> Increments:
        """Return the increments of some topics."""
        return Increments(
            self.base[topics],
            self.alone[topics],
            self.together[topics],
            self.fixed[topics],
            self.lasting[topics],
            self.seen,
        )


@dataclass(frozen=True, eq=False)
class UnjudgedModel:
    """The scores of n topics with up to u unjudged documents each and L levels of gain.

    Each document draws a level from its prior. If all judged documents of that level outside the ranking are used up,
    the document is *assigned* the next lower level that has one left. Level 0 is unlimited.

    - ``base``: score of the judged part, shape (n,)
    - ``weights``: score of one unit of gain at each unjudged document in drawing order, padded with 0, shape (n, u)
    - ``n_unjudged``: number of unjudged documents of each topic, shape (n,), 0..u
    - ``prob``: probability of each level, shape (n, 1, L) if all documents share it, (n, u, L) otherwise
    - ``left``: judged documents of each level outside the ranking, shape (n, L)
    - ``gain``: gain of each level, shape (L,), increasing from 0
    - ``strength``: Pseudo-count of the prior in documents, shape (n,). ``inf`` (or ``None`` for all topics) means that
      the prior is known exactly and draws are independent; otherwise documents are drawn from an urn, see :func:`urn`
    - ``value``: for scores that are not sums over documents: ``value(topic, levels)`` maps the levels of the unjudged
      documents of a topic in drawing order, shape (m, n_unjudged), to scores, shape (m,); ``base`` and ``weights`` are
      ignored
    - ``increments``: the scores of ``value`` as sums of increments, if they have that form; ``None`` otherwise
    """

    base: Floats
    weights: Floats
    n_unjudged: Ints
    prob: Floats
    left: Ints
    gain: Floats
    strength: Floats | None = None
    value: Callable[[int, Ints], Floats] | None = None
    increments: Increments | None = None

    def __len__(self) -> int:
        return len(self.base)

    def select(self, topics: Ints | slice) -> UnjudgedModel:
        """Return the model of some topics."""
        value, places = self.value, np.arange(len(self))[topics]
        part = UnjudgedModel(
            self.base[topics],
            self.weights[topics],
            self.n_unjudged[topics],
            self.prob[topics],
            self.left[topics],
            self.gain,
            None if self.strength is None else self.strength[topics],
            None if value is None else lambda topic, levels: value(int(places[topic]), levels),
            None if self.increments is None else self.increments.select(topics),
        )
        # Each topic has its rows, independently of the others.
        computed = vars(self).keys() & {"attainable_prob", "caps"}
        vars(part).update({name: vars(self)[name][topics] for name in computed})
        return part

    @property
    def is_shared(self) -> bool:
        """True if all documents of a topic have the same prior."""
        return bool(self.prob.shape[1] == 1)

    @cached_property
    def depends(self) -> Bools:
        """Topics whose documents are dependent because their prior is uncertain, shape (n,)."""
        if self.strength is None:
            return np.zeros(len(self), dtype=bool)
        return np.isfinite(self.strength) & (self.n_unjudged > 1)

    def topic_strength(self, topic: int) -> float | None:
        """The strength of a topic's prior; ``None`` if its documents are independent."""
        return None if self.strength is None or not self.depends[topic] else float(self.strength[topic])

    @cached_property
    def attainable_prob(self) -> Floats:
        """The prior with the probability of levels without any document moved to the next lower level, like prob."""
        prob = self.prob.copy()
        for level in range(prob.shape[2] - 1, 0, -1):
            empty = self.left[:, level] == 0
            prob[empty, :, level - 1] += prob[empty, :, level]
            prob[empty, :, level] = 0.0
        return prob

    @cached_property
    def caps(self) -> Ints:
        """The largest number of documents that can be assigned each level, shape (n, L), 0..n_unjudged."""
        caps = np.minimum(self.left, self.n_unjudged[:, None])
        drawn: Bools = np.any(self.attainable_prob > 0, axis=1)
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
        """Topics that may have too few documents of some level, shape (n,)."""
        return np.asarray(((self.caps > 0) & (self.caps < self.n_unjudged[:, None])).any(axis=1))

    @cached_property
    def n_active(self) -> Ints:
        """Number of levels that a document can be assigned, shape (n,)."""
        active: Ints = np.count_nonzero(self.caps > 0, axis=1)
        return np.maximum(active, 1)

    def n_paths(self) -> Floats:
        """An upper bound on the number of sequences of levels, shape (n,)."""
        with np.errstate(over="ignore"):
            return self.n_active.astype(np.float64) ** self.n_unjudged


def urn(rng: np.random.Generator, n_draws: int, n_documents: int, strength: float) -> Floats:
    """Uniform numbers from Pólya's urn that determine the levels of documents in drawing order.

    The number of document i + 1 equals that of each earlier document with probability 1/(s + i), and is new otherwise.

    - ``rng``: the generator of random numbers
    - ``n_draws``, ``n_documents``: number of sequences, and their length
    - ``strength``: s, above 0; ``inf`` for independent numbers

    Returns in [0, 1), shape (n_draws, n_documents).
    """
    uniforms = rng.random((n_draws, n_documents))
    if not np.isfinite(strength):
        return uniforms
    draws = np.arange(n_draws)
    for document in range(1, n_documents):
        # Of s + i units the first i represent the earlier documents.
        ball = rng.random(n_draws) * (strength + document)
        again = np.flatnonzero(ball < document)
        uniforms[again, document] = uniforms[draws[again], ball[again].astype(np.int64)]
    return uniforms


def next_draw(prob: Floats, strength: Floats | None, seen: Floats, n_seen: int) -> Floats:
    """Probability of each level at the next draw: ``(s·p + seen)/(s + n_seen)``; s may be infinite.

    - ``prob``: the prior, shape (n, 1, L)
    - ``strength``: s of each topic, shape (n,); ``None`` if infinite
    - ``seen``: previous draws of each level, shape (m, L)
    - ``n_seen``: number of previous draws

    Returns shape (n, m, L); (n, 1, L) if strength is ``None``.
    """
    if strength is None or not n_seen:
        return prob
    share = (n_seen / (strength + n_seen))[:, None, None]
    return prob + share * (seen / n_seen - prob)


def joint_probs(prob: Floats, strength: float, left: Ints, right: Ints) -> Floats:
    """Joint probability of pairs of consecutive sequences of draws, each given by its counts of levels.

    A sequence of u draws, c_l of level l, has probability ``Π_l (s·p_l)^(c_l) / s^(u)``, with rising factorials.

    - ``prob``: the prior, shape (L,)
    - ``strength``: s, finite
    - ``left``, ``right``: counts of the levels in the first and the second sequence, shapes (a, L) and (b, L)

    Returns shape (a, b).
    """
    counts = left[:, None, :] + right
    before = np.arange(int(counts[0, 0].sum()))
    # Both products of u factors are divided by (s + 1)^u, so that they neither overflow nor underflow.
    rising = np.cumprod((strength * prob[:, None] + before) / (strength + 1), axis=1)
    rising = np.concatenate([np.ones((len(prob), 1)), rising], axis=1)
    joint = rising[np.arange(len(prob)), counts].prod(axis=2)
    return np.asarray(joint / np.prod((strength + before) / (strength + 1)))


def comonotone_variance(prob: Floats, weights: Floats, gain: Floats) -> Floats:
    """The variance of ``H(U) = Σ_i w_i·h_i(U)``: the gains of all documents are quantiles at the same uniform number U.

    H is a step function with a step wherever U exceeds a document's CDF at a level.

    - ``prob``: probability of each level, shape (n, u, L)
    - ``weights``: w, shape (n, u)
    - ``gain``: gain of each level, shape (L,)

    Returns shape (n,).
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
