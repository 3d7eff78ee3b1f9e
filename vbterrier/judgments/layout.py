"""Judged rankings as the kernels take them: the unjudged documents in the order in which they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.judgments.metrics import Metric
    from vbterrier.judgments.pool import JudgedTop

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


# Ranks of rankings that are laid out at a time.
MOST_PLACES = 1 << 22


def problem_of(judged: JudgedTop, metric: Metric, visits: Ints, prob: Floats, strength: Floats | None) -> Problem:
    """Lay out the unjudged documents of the cut in visiting order.

    Parameters
    ----------
    judged
        The cut run.
    metric
        What the score is.
    visits
        See :func:`visits_of`.
    prob
        The prior, shape (n, 1, L), or (n, u, L) in visiting order.
    strength
        How many documents the prior of each topic is worth, shape (n,); ``None`` where all are known exactly.
    """
    parts = metric.parts(judged)
    base = (parts.unit * parts.gain[np.maximum(judged.levels, 0)]).sum(axis=1)
    weights = np.take_along_axis(np.where(judged.unjudged, parts.unit, 0.0), visits, axis=1)
    left = judged.judgments.counts - judged.counts
    value = None if parts.score is None else _value(judged, visits, parts.score)
    steps = parts.steps(visits) if parts.steps is not None and _follow(visits, judged.n_unjudged) else None
    return Problem(base, weights, judged.n_unjudged, prob, left, parts.gain, strength, value, steps)


def _value(judged: JudgedTop, visits: Ints, score: Callable[[Ints, int], Floats]) -> Callable[[int, Ints], Floats]:
    """The score of rankings whose unjudged documents landed on some levels."""

    def value(topic: int, levels: Ints) -> Floats:
        places = visits[topic, : levels.shape[1]]
        step = max(1, MOST_PLACES // max(judged.levels.shape[1], 1))
        return np.concatenate(
            [part(topic, places, levels[at : at + step]) for at in range(0, max(len(levels), 1), step)]
        )

    def part(topic: int, places: Ints, levels: Ints) -> Floats:
        rankings = np.tile(judged.levels[topic], (len(levels), 1))
        rankings[:, places] = levels
        return score(rankings, topic)

    return value


def _follow(visits: Ints, n_unjudged: Ints) -> bool:
    """Whether documents are drawn in the order of the ranking."""
    counts = np.arange(1, visits.shape[1]) < n_unjudged[:, None]
    return not bool((counts & (np.diff(visits, axis=1) < 0)).any())


def visits_of(judged: JudgedTop, *, by_docno: bool) -> Ints:
    """The places of the unjudged documents in visiting order, then any others, shape (n, most unjudged)."""
    most = int(judged.n_unjudged.max(initial=0))
    turn = np.broadcast_to(np.arange(judged.levels.shape[1]), judged.levels.shape)
    if by_docno:
        topic, rank = np.nonzero(judged.unjudged)
        turn = turn.copy()
        turn[topic, rank] = judged.run.docno.take(judged.rows[topic, rank]).ranks()
    behind = np.where(judged.unjudged, turn, np.iinfo(np.int64).max)
    return np.argsort(behind, axis=1, kind="stable")[:, :most]
