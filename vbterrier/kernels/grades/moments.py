"""Mean and variance of bootstrapped scores, without their distribution."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.model import comonotone_variance, next_draw
from vbterrier.kernels.grades.states import drawn_moments, layer, n_walk_states, successors, walk

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.model import Steps, UnjudgedModel


# Topics times states held in memory at a time, and states times documents times levels of one topic.
_BATCH = 200_000
MAX_WORK = 1e7


def step_moments(problem: UnjudgedModel, steps: Steps, *, spread: bool = True) -> tuple[Floats, Floats]:
    """Mean and variance of every topic; NaN where there are too many states or priors are not shared.

    Without ``spread`` variances are NaN. From the last document back, ``M_i(c) = E[added by documents i+1...u | c drawn
    by the first i]`` follows from ``M_(i+1)`` by one draw of the urn, and the variance by the law of total variance.
    """
    mean, variance = np.full((2, len(problem)), np.nan)
    if not problem.is_shared:
        return mean, variance
    for n_unjudged in np.unique(problem.n_unjudged).tolist():
        alike = np.flatnonzero(problem.n_unjudged == n_unjudged)
        levels = np.flatnonzero((problem.landed[alike] > 0).any(axis=(0, 1)))
        n_states = comb(n_unjudged + len(levels) - 1, len(levels) - 1)
        if n_states * n_unjudged * len(problem.gain) > MAX_WORK:
            continue
        n_together = max(1, _BATCH // n_states)
        for start in range(0, len(alike), n_together):
            topics = alike[start : start + n_together]
            part = _backwards(problem.select(topics), steps.select(topics), levels, spread=spread)
            mean[topics], variance[topics] = part
    return mean, variance


def _backwards(problem: UnjudgedModel, steps: Steps, levels: Ints, *, spread: bool) -> tuple[Floats, Floats]:
    n_unjudged = int(problem.n_unjudged[0])
    caps, kind = np.unique(problem.caps, axis=0, return_inverse=True)
    kind, prob = kind.reshape(-1), problem.landed[:, :, levels]
    mean, variance = np.zeros((2, len(problem), len(layer(n_unjudged, len(levels)))))
    seen = _seen(n_unjudged, caps, levels, steps)
    for document in range(n_unjudged - 1, -1, -1):
        (changed, behind), before = seen, _seen(document, caps, levels, steps)
        terms = (steps.alone, steps.together, steps.fixed, steps.lasting)
        alone, together, fixed, lasting = (each[:, [document]] for each in terms)
        unit = alone + together * behind[kind]
        total = changed[kind] * unit + fixed + lasting * behind[kind] + mean
        drawn = layer(document, len(levels)).astype(np.float64)
        chance = np.moveaxis(next_draw(prob, problem.strength, drawn, document), 2, 0)
        after = successors(document, len(levels))
        added = [total[:, to] - before[0][kind] * unit[:, to] for to in after]
        mean = sum(share * value for share, value in zip(chance, added, strict=True))
        if spread:
            variance = sum(
                share * ((value - mean) ** 2 + variance[:, to])
                for share, value, to in zip(chance, added, after, strict=True)
            )
        seen = before
    return steps.base + mean[:, 0], variance[:, 0] if spread else np.full(len(problem), np.nan)


def _seen(n_drawn: int, caps: Ints, levels: Ints, steps: Steps) -> tuple[Floats, Floats]:
    """What terms see of documents after some draws, for each of some caps, each of shape (n_caps, S)."""
    counts = layer(n_drawn, len(levels))
    drawn = np.zeros((caps.shape[1], 1, len(counts)), dtype=np.int64)
    drawn[levels, 0] = counts.T
    landed = np.empty((len(caps), len(counts), caps.shape[1]), dtype=np.int64)
    falling = np.zeros((len(caps), len(counts)), dtype=np.int64)
    for level in range(caps.shape[1] - 1, -1, -1):
        arriving = falling + drawn[level]
        landed[:, :, level] = np.minimum(arriving, caps[:, level : level + 1])
        falling = arriving - landed[:, :, level]
    return steps.seen(landed)


def moments(problem: UnjudgedModel, *, spread: bool = True) -> tuple[Floats, Floats]:
    """Mean and variance of every topic; without ``spread`` the variance of some may be left out, NaN.

    Where nothing can run out, ``mean = base + Σ_i w_i μ_i``. Independent draws have the variance
    ``Σ_i w_i² σ_i²``; draws from an urn of strength s mix it with the variance C of draws that all read their grade off
    one and the same number (``(Σ_i w_i)² σ²`` where the prior is shared):
    ``var = s/(s+1)·Σ_i w_i² σ_i² + 1/(s+1)·C``. Elsewhere a dynamic program over documents carries (P, E, E²) for every
    state of the counts that matter.

    Returns
    -------
    (mean, variance)
        Each of shape (n,); NaN where the states are too many (``MAX_WORK``) and for scores that are neither sums nor
        :class:`~vbterrier.kernels.grades.model.Steps`: those are the caller's to read off the distribution.
    """
    if problem.steps is not None:
        return step_moments(problem, problem.steps, spread=spread)
    if problem.value is not None:
        unknown = np.full(len(problem), np.nan)
        return unknown, unknown.copy()
    mean, variance = _unbound(problem)
    binding = np.flatnonzero(problem.binds)
    if len(binding):
        # Topics of one walk: where documents share what is not known of their prior, caps do not change it.
        caps = np.where((problem.depends & problem.is_shared)[:, None], 0, problem.caps)
        signatures = np.column_stack([problem.n_unjudged, problem.depends, caps])[binding]
        kinds, member = np.unique(signatures, axis=0, return_inverse=True)
        for kind in range(len(kinds)):
            topics = binding[member.reshape(-1) == kind]
            mean[topics], variance[topics] = _by_state(problem.select(topics), spread=spread)
    return mean, variance


def _unbound(problem: UnjudgedModel) -> tuple[Floats, Floats]:
    expected = problem.landed @ problem.gain
    spread = np.maximum(problem.landed @ problem.gain**2 - expected**2, 0.0)
    mean = problem.base + (problem.weights * expected).sum(axis=1)
    variance = (problem.weights**2 * spread).sum(axis=1)
    if problem.strength is None or not problem.depends.any():
        return mean, variance
    if problem.is_shared:
        together = problem.weights.sum(axis=1) ** 2 * spread[:, 0]
    else:
        together = comonotone_variance(problem.landed, problem.weights, problem.gain)
    return mean, variance + (together - variance) / (problem.strength + 1)


def _by_state(problem: UnjudgedModel, *, spread: bool) -> tuple[Floats, Floats]:
    """The dynamic program, for topics of one :func:`vbterrier.kernels.grades.states.walk`."""
    n_unjudged = int(problem.n_unjudged[0])
    if n_walk_states(problem) * n_unjudged * len(problem.gain) > MAX_WORK:
        unknown = np.full(len(problem), np.nan)
        return unknown, unknown
    if problem.depends[0]:
        return drawn_moments(problem, spread=spread)
    path = walk(problem)
    # Rows of `carried`: probability of the state, and the first two moments of the score within it.
    carried = np.zeros((3, len(problem), len(path)))
    carried[0, :, 0] = 1.0
    for document in range(n_unjudged):
        after = np.zeros_like(carried)
        for source, target, level, chance in path.moves(document):
            value = (problem.weights[:, document] * problem.gain[level])[:, None]
            mass, first, second = carried[:, :, source] * chance
            after[0][:, target] += mass
            after[1][:, target] += first + value * mass
            after[2][:, target] += second + 2 * value * first + value**2 * mass
        carried = after
    _, first, second = carried.sum(axis=2)
    return problem.base + first, np.maximum(second - first**2, 0.0)
