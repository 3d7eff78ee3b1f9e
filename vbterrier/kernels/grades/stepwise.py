"""Moments of scores whose terms look back: average precision, the Q-measure, expected reciprocal rank.

What the first i unjudged documents have landed on follows from how often each level was drawn for them (see
``drawn``), and so does all that later terms of such a score see of them: how many are relevant and what they gain, or
how probably a user reads on. So what a document adds depends on the counts before and behind it alone, and moments
come from the last document backwards, without a list of sequences.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.drawn import layer, successors
from vbterrier.kernels.grades.urn import next_draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem, Steps

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Topics times states held in memory at a time, and states times documents times levels of one topic.
_BATCH = 200_000
MAX_WORK = 1e7


def step_moments(problem: Problem, steps: Steps, *, spread: bool = True) -> tuple[Floats, Floats]:
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


def _backwards(problem: Problem, steps: Steps, levels: Ints, *, spread: bool) -> tuple[Floats, Floats]:
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
