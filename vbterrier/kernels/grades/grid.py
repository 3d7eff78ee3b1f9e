"""Distributions of deep rankings, on a grid of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import Grid
from vbterrier.kernels.grades.states import n_walk_states, walk

if TYPE_CHECKING:
    from vbterrier.kernels.grades.problem import Problem

CELLS = 1 << 15


def grid_work(problem: Problem, topic: int, cells: int = CELLS) -> float:
    """How many cells :func:`grid_law` would touch for a topic."""
    if problem.value is not None:
        return float("inf")
    one = problem.select(slice(topic, topic + 1))
    return n_walk_states(one) * cells * int(one.n_unjudged[0]) * int(one.n_active[0])


def grid_law(problem: Problem, topic: int, cells: int = CELLS) -> Grid:
    """The distribution of one topic on a grid over the range of its score.

    Each document's value falls between two cells and is split between them in proportion, which keeps the mean and
    makes the errors of the documents independent and centred whatever was drawn, so that Hoeffding's inequality holds
    even where grades run out or draws depend on each other.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    cells
        Cells over the range of the score.
    """
    one = problem.select(slice(topic, topic + 1))
    n_unjudged = int(one.n_unjudged[0])
    values = one.weights[0, :n_unjudged, None] * one.gain * (one.caps[0] > 0)
    cell = max(float(values.max(axis=1).sum()), 1e-300) / cells
    path = walk(one)
    mass = np.zeros((len(path), cells + n_unjudged + 1))
    mass[0, 0] = 1.0
    used = 1
    for document in range(n_unjudged):
        place = values[document] / cell
        floor = np.floor(place).astype(np.int64)
        after = np.zeros_like(mass)
        for source, target, level, chance in path.moves(document):
            moved = mass[source, :used] * chance[0, :, None]
            low, part = int(floor[level]), float(place[level] - floor[level])
            after[target, low : low + used] += moved * (1 - part)
            after[target, low + 1 : low + 1 + used] += moved * part
        used = min(used + int(floor.max()) + 1, mass.shape[1] - 1)
        mass = after
    total = mass.sum(axis=0)
    scores = one.base[0] + cell * np.arange(len(total))
    return Grid(scores, total, np.cumsum(total), method="grid", cell=cell, n_documents=n_unjudged)
