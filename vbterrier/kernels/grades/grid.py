"""Distributions of deep rankings, on a grid of scores; exact where the scores are on one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import Atoms, Grid
from vbterrier.kernels.grades.states import n_walk_states, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]

CELLS = 1 << 15
# How far a multiple may be from a whole number by rounding.
WHOLE = 1e-9


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
    values = _values(one)
    cell = max(float(values.max(axis=1).sum()), 1e-300) / cells
    mass = _filled(one, values / cell, cells + n_unjudged + 1)
    scores = one.base[0] + cell * np.arange(len(mass))
    return Grid(scores, mass, np.cumsum(mass), method="grid", cell=cell, n_documents=n_unjudged)


def lattice_law(problem: Problem, topic: int) -> Atoms:
    """The exact distribution of one topic of which :func:`lattice_work` is finite: every value has its cell."""
    one = problem.select(slice(topic, topic + 1))
    unit, places = _whole(_values(one))
    mass = _filled(one, places, int(places.max(axis=1).sum()) + len(places) + 1)
    scores: Floats = one.base[0] + unit * np.arange(len(mass))
    return Atoms(scores, mass, np.cumsum(mass))


def lattice_work(problem: Problem, topic: int) -> float:
    """How many cells :func:`lattice_law` would touch; infinite where values are no whole multiples of the least."""
    if problem.value is not None:
        return float("inf")
    one = problem.select(slice(topic, topic + 1))
    _, places = _whole(_values(one))
    if not np.isfinite(places).all():
        return float("inf")
    return grid_work(problem, topic, int(places.max(axis=1, initial=0).sum()) + len(places) + 1)


def _values(one: Problem) -> Floats:
    """What each document scores at each level that it can land on, shape (u, L)."""
    values: Floats = one.weights[0, : int(one.n_unjudged[0]), None] * one.gain * (one.caps[0] > 0)
    return values


def _whole(values: Floats) -> tuple[float, Floats]:
    """The least positive value, and all as multiples of it: NaN where they are not whole."""
    positive = values[values > 0]
    unit = float(positive.min()) if len(positive) else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        multiple = values / unit
        near = np.round(multiple)
        return unit, np.where(np.abs(multiple - near) < WHOLE, near, np.nan)


def _filled(one: Problem, places: Floats, n_cells: int) -> Floats:
    """The probability of each cell when each document's value, in cells, is split between the two around it."""
    path = walk(one)
    mass = np.zeros((len(path), n_cells))
    mass[0, 0] = 1.0
    used = 1
    floors = np.floor(places).astype(np.int64)
    for document, (place, floor) in enumerate(zip(places, floors, strict=True)):
        after = np.zeros_like(mass)
        for source, target, level, chance in path.moves(document):
            moved = mass[source, :used] * chance[0, :, None]
            low, part = int(floor[level]), float(place[level] - floor[level])
            after[target, low : low + used] += moved * (1 - part)
            after[target, low + 1 : low + 1 + used] += moved * part
        used += int(floor.max()) + 1
        mass = after
    total: Floats = mass.sum(axis=0)
    return total
