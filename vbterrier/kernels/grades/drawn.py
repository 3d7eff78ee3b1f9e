"""Moments where documents share a prior and grades run out, by how often each grade was drawn.

What the first i documents have landed on follows from how often each grade was drawn for them, in whatever order: a
grade takes as many as it has left and passes the rest down. So with ``T_i`` the gain of the first i documents, the
score is ``base + Σ_i v_i T_i`` with ``v_i = w_i - w_(i+1)``, and its moments come from the last document backwards.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.urn import next_draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Topics times states held in memory at a time.
_BATCH = 100_000


def drawn_moments(problem: Problem, *, spread: bool = True) -> tuple[Floats, Floats]:
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


def _backwards(problem: Problem, n_unjudged: int, levels: Ints, *, spread: bool) -> tuple[Floats, Floats]:
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
