"""The process itself, drawn many times: the fallback, and the way of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Sequences that are scored together: a score that is no sum may lay out whole rankings for each.
BLOCK = 1 << 14


def sampled_law(problem: Problem, topic: int, uniforms: Floats, *, legacy: bool = False) -> Sample:
    """Draw the scores of one topic.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    uniforms
        Numbers in [0, 1), shape (n_draws, n_unjudged): they decide every draw.
    legacy
        See :class:`vbterrier.kernels.grades.laws.Sample`.
    """
    scores = np.sort(scores_of(problem, topic, uniforms))
    n_draws = len(scores)
    share = np.full(n_draws, 1.0 / n_draws)
    return Sample(scores, share, np.arange(1, n_draws + 1) / n_draws, method="mc", legacy=legacy)


def scores_of(problem: Problem, topic: int, uniforms: Floats) -> Floats:
    """The scores of one topic whose documents have given numbers, in the order of the numbers.

    A document's grade is where its number falls in the CDF of its prior.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    uniforms
        Numbers in [0, 1), documents in visiting order, shape (n_draws, n_unjudged).

    Returns
    -------
    numpy.ndarray
        Shape (n_draws,).
    """
    n_draws, n_unjudged = uniforms.shape
    ends = np.cumsum(problem.landed[topic, : max(n_unjudged, 1)], axis=1)
    scores = np.empty(n_draws)
    for first in range(0, n_draws, BLOCK):
        block = slice(first, first + BLOCK)
        drawn = np.zeros(uniforms[block].shape, dtype=np.int64)
        for level in range(ends.shape[1] - 1):
            drawn += uniforms[block] >= ends[:, level]
        scores[block] = _score(problem, topic, drawn)
    return scores


def scored(problem: Problem, topic: int, drawn: Ints) -> Floats:
    """The scores of one topic whose documents drew some levels, shape (m,) for levels of shape (m, n_unjudged)."""
    blocks = range(0, len(drawn), BLOCK)
    return np.concatenate([_score(problem, topic, drawn[first : first + BLOCK]) for first in blocks])


def _score(problem: Problem, topic: int, drawn: Ints) -> Floats:
    landed = land(drawn, problem.caps[topic])
    if problem.value is not None:
        return problem.value(topic, landed)
    scores = np.full(len(drawn), problem.base[topic])
    for document in range(drawn.shape[1]):
        scores += problem.weights[topic, document] * problem.gain[landed[:, document]]
    return scores


def land(drawn: Ints, caps: Ints) -> Ints:
    """Pass draws down from levels that have run out.

    Of the documents that arrive at a level, drawn there or passed down, the first as many as it has places stay.

    Parameters
    ----------
    drawn
        The level of each document in visiting order, shape (m, u).
    caps
        How many documents each level takes, shape (L,); level 0 takes all.

    Returns
    -------
    numpy.ndarray
        Shape (m, u).

    >>> land(np.array([[2, 2, 1, 2]]), np.array([4, 1, 1])).tolist()
    [[2, 1, 0, 0]]
    """
    landed = drawn.copy()
    for level in range(len(caps) - 1, 0, -1):
        if caps[level] < drawn.shape[1]:
            here = landed == level
            landed -= here & (np.cumsum(here, axis=1) > caps[level])
    return landed
