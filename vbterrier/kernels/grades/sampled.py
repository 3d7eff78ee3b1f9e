"""The process itself, drawn many times: the fallback, and the way of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem


def sampled_law(problem: Problem, topic: int, uniforms: NDArray[np.float64], *, legacy: bool = False) -> Sample:
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
    n_draws, n_unjudged = uniforms.shape
    caps = problem.caps[topic].copy()
    # What nothing lands on is skipped on the way down as if it were used up.
    left = np.broadcast_to(caps, (n_draws, len(caps))).copy()
    scores = np.full(n_draws, problem.base[topic])
    draws = np.arange(n_draws)
    for document in range(n_unjudged):
        prob = problem.landed[topic, document if problem.landed.shape[1] > 1 else 0]
        level = np.searchsorted(np.cumsum(prob)[:-1], uniforms[:, document], side="right")
        for _ in range(len(caps) - 1):
            level = np.where((left[draws, level] == 0) & (level > 0), level - 1, level)
        left[draws, level] -= 1
        scores += problem.weights[topic, document] * problem.gain[level]
    scores = np.sort(scores)
    share = np.full(n_draws, 1.0 / n_draws)
    return Sample(scores, share, np.arange(1, n_draws + 1) / n_draws, method="mc", legacy=legacy)
