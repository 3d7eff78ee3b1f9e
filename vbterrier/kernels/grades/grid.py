"""Distributions of deep rankings, on a grid of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import Grid
from vbterrier.kernels.grades.problem import n_states, states

if TYPE_CHECKING:
    from vbterrier.kernels.grades.problem import Problem

CELLS = 1 << 15


def grid_work(problem: Problem, topic: int, cells: int = CELLS) -> float:
    """How many cells :func:`grid_law` would touch for a topic."""
    caps, n_unjudged = problem.caps[topic], int(problem.n_unjudged[topic])
    return float(n_states(caps, n_unjudged)) * cells * n_unjudged * int(problem.n_active[topic])


def grid_law(problem: Problem, topic: int, cells: int = CELLS) -> Grid:
    """The distribution of one topic on a grid over the range of its score.

    Each document's value falls between two cells and is split between them in proportion, which keeps the mean and
    makes the errors of the documents independent and centred whatever was drawn, so that Hoeffding's inequality holds
    even where grades run out.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    cells
        Cells over the range of the score.
    """
    n_unjudged, caps = int(problem.n_unjudged[topic]), problem.caps[topic]
    active = np.flatnonzero(caps > 0)
    values = problem.weights[topic, :n_unjudged, None] * problem.gain[active]
    cell = max(float(values.max(axis=1).sum()), 1e-300) / cells
    space = states(caps, n_unjudged)
    mass = np.zeros((len(space), cells + n_unjudged + 1))
    mass[0, 0] = 1.0
    used = 1
    prob = problem.landed[topic]
    for document in range(n_unjudged):
        land = space.landing(prob[document if len(prob) > 1 else 0])
        place = values[document] / cell
        floor = np.floor(place).astype(np.int64)
        after = np.zeros_like(mass)
        for level, low, part in zip(active, floor, place - floor, strict=True):
            source = np.flatnonzero(space.available[:, level] & (land[:, level] > 0))
            moved = mass[source, :used] * land[source, level, None]
            target = source + space.step[level]
            after[target, low : low + used] += moved * (1 - part)
            after[target, low + 1 : low + 1 + used] += moved * part
        used = min(used + int(floor.max()) + 1, mass.shape[1] - 1)
        mass = after
    total = mass.sum(axis=0)
    scores = problem.base[topic] + cell * np.arange(len(total))
    return Grid(scores, total, np.cumsum(total), method="grid", cell=cell, n_documents=n_unjudged)
