"""Mean and variance of bootstrapped scores, without their distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.problem import n_states, states

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]

# States times documents times levels of one topic; beyond, the moments are sampled.
MAX_WORK = 2e8


def moments(problem: Problem) -> tuple[Floats, Floats]:
    """Mean and variance of every topic.

    Where nothing can run out the draws are independent: ``mean = base + Σ_i w_i μ_i`` and
    ``var = Σ_i w_i² σ_i²``. Elsewhere a dynamic program over documents carries (P, E, E²) for every state of the
    counts that can run out.

    Returns
    -------
    (mean, variance)
        Each of shape (n,); NaN where the states are too many (``MAX_WORK``), which are the caller's to sample.
    """
    mean, variance = _independent(problem)
    binding = np.flatnonzero(problem.binds)
    if len(binding):
        signatures = np.column_stack([problem.n_unjudged, problem.caps])[binding]
        kinds, member = np.unique(signatures, axis=0, return_inverse=True)
        for kind in range(len(kinds)):
            topics = binding[member.reshape(-1) == kind]
            mean[topics], variance[topics] = _by_state(problem.select(topics))
    return mean, variance


def _independent(problem: Problem) -> tuple[Floats, Floats]:
    expected = problem.landed @ problem.gain
    spread = np.maximum(problem.landed @ problem.gain**2 - expected**2, 0.0)
    mean = problem.base + (problem.weights * expected).sum(axis=1)
    return mean, (problem.weights**2 * spread).sum(axis=1)


def _by_state(problem: Problem) -> tuple[Floats, Floats]:
    """The dynamic program, for topics that share their caps and their number of documents."""
    n_unjudged, caps = int(problem.n_unjudged[0]), problem.caps[0]
    size = n_states(caps, n_unjudged)
    if size * n_unjudged * len(caps) > MAX_WORK:
        unknown = np.full(len(problem), np.nan)
        return unknown, unknown
    space = states(caps, n_unjudged)
    # Rows of `carried`: probability of the state, and the first two moments of the score within it.
    carried = np.zeros((3, len(problem), len(space)))
    carried[0, :, 0] = 1.0
    shared = problem.landed.shape[1] == 1
    land = space.landing(problem.landed[:, 0])
    for document in range(n_unjudged):
        if not shared:
            land = space.landing(problem.landed[:, document])
        after = np.zeros_like(carried)
        for level in np.flatnonzero(caps > 0):
            source = np.flatnonzero(space.available[:, level])
            target = source + space.step[level]
            value = (problem.weights[:, document] * problem.gain[level])[:, None]
            mass, first, second = carried[:, :, source] * land[None, :, source, level]
            after[0][:, target] += mass
            after[1][:, target] += first + value * mass
            after[2][:, target] += second + 2 * value * first + value**2 * mass
        carried = after
    _, first, second = carried.sum(axis=2)
    return problem.base + first, np.maximum(second - first**2, 0.0)
