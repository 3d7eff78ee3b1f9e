"""Mean and variance of bootstrapped scores, without their distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.drawn import drawn_moments
from vbterrier.kernels.grades.states import n_walk_states, walk
from vbterrier.kernels.grades.stepwise import step_moments
from vbterrier.kernels.grades.urn import comonotone_variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]



def moments(problem: Problem, *, spread: bool = True) -> tuple[Floats, Floats]:
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
        :class:`~vbterrier.kernels.grades.problem.Steps`: those are the caller's to read off the distribution.
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


def _unbound(problem: Problem) -> tuple[Floats, Floats]:
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


def _by_state(problem: Problem, *, spread: bool) -> tuple[Floats, Floats]:
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
