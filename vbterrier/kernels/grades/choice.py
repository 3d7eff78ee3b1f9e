"""Choice of the method for the distribution of a topic's score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.distributions import Atoms, Grid
from vbterrier.kernels.grades.exact import exact_laws, is_listed, sampled_law, split
from vbterrier.kernels.grades.states import n_walk_states, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.kernels.grades.model import UnjudgedModel


CELLS = 1 << 15
# How far a multiple may be from a whole number by rounding.
WHOLE = 1e-9


def grid_work(problem: UnjudgedModel, topic: int, cells: int = CELLS) -> float:
    """How many cells :func:`grid_law` would touch for a topic."""
    if problem.value is not None:
        return float("inf")
    one = problem.select(slice(topic, topic + 1))
    return n_walk_states(one) * cells * int(one.n_unjudged[0]) * int(one.n_active[0])


def grid_law(problem: UnjudgedModel, topic: int, cells: int = CELLS) -> Grid:
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


def lattice_law(problem: UnjudgedModel, topic: int) -> Atoms:
    """The exact distribution of one topic of which :func:`lattice_work` is finite: every value has its cell."""
    one = problem.select(slice(topic, topic + 1))
    unit, places = _whole(_values(one))
    mass = _filled(one, places, int(places.max(axis=1).sum()) + len(places) + 1)
    scores: Floats = one.base[0] + unit * np.arange(len(mass))
    return Atoms(scores, mass, np.cumsum(mass))


def lattice_work(problem: UnjudgedModel, topic: int) -> float:
    """How many cells :func:`lattice_law` would touch; infinite where values are no whole multiples of the least."""
    if problem.value is not None:
        return float("inf")
    one = problem.select(slice(topic, topic + 1))
    _, places = _whole(_values(one))
    if not np.isfinite(places).all():
        return float("inf")
    return grid_work(problem, topic, int(places.max(axis=1, initial=0).sum()) + len(places) + 1)


def _values(one: UnjudgedModel) -> Floats:
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


def _filled(one: UnjudgedModel, places: Floats, n_cells: int) -> Floats:
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


METHODS = ("auto", "exact", "grid", "mc")

# Sequences that are followed one by one where grades run out, and the atoms of the larger half where none does.
MAX_PATHS = 1e6
MAX_HALF = {"auto": 20_000.0, "exact": 2.6e6}
# Sequences that are listed with all their grades, those that are summed from two halves that depend on each other, and
# sequences times pairs of sets of documents, where documents of different priors depend on each other.
MAX_LISTED = {"auto": 3e5, "exact": 2e6}
MAX_JOINED = {"auto": 2e6, "exact": 1e7}
MAX_SETS = {"auto": 5e7, "exact": 1e9}
# Cells that a grid may touch: a second of work for a topic, or as many as the user asked for.
MAX_CELLS = {"auto": 1.5e8, "grid": 4e9, "exact": 0.0}
MAX_LATTICE = {"auto": 1.5e8, "exact": 4e9, "grid": 0.0}


class TooLargeError(Exception):
    """A topic is too large for the method that was asked for.

    Parameters
    ----------
    topic
        Its place among the topics.
    """

    def __init__(self, topic: int) -> None:
        self.topic = topic
        super().__init__(f"topic {topic}")


def feasible(problem: UnjudgedModel, method: str) -> Bools:
    """Which topics can be done exactly under ``"auto"`` or ``"exact"``, shape (n,)."""
    paths, listed = problem.n_paths(), is_listed(problem)
    with np.errstate(over="ignore"):
        half = problem.n_active.astype(np.float64) ** np.ceil(problem.n_unjudged / 2)
        sets = paths * 3.0**problem.n_unjudged
    bearable = np.where(problem.binds, paths <= MAX_PATHS, half <= MAX_HALF[method])
    bearable = np.where(problem.depends, paths <= MAX_JOINED[method], bearable)
    bearable = np.where(listed, paths <= MAX_LISTED[method], bearable)
    bearable &= problem.is_shared | ~problem.depends | (sets <= MAX_SETS[method])
    # Halves of one kin are multiplied out.
    for topic in np.flatnonzero(bearable & ~listed & ~problem.binds & ~problem.depends & (paths > MAX_PATHS)):
        bearable[topic] = split(problem.weights[topic, : problem.n_unjudged[topic]])[2]
    return bearable


def distribution_of(
    problem: UnjudgedModel, method: str, uniforms: Callable[[int], NDArray[np.float64]], *, legacy: bool = False
) -> list[ScoreDistribution]:
    """The distribution of each topic.

    Parameters
    ----------
    problem
        The process.
    method
        ``"exact"``, ``"grid"``, ``"mc"``, or ``"auto"``: exact while that is cheap, else the grid, else draws.
    uniforms
        Gives the numbers behind the draws of a topic, shape (n_draws, n_unjudged); called only where they are needed.
    legacy
        Read draws as the code behind the paper does.

    Raises
    ------
    TooLargeError
        ``method="exact"`` or ``"grid"`` where a topic is too large for it.
    """
    n = len(problem)
    if method == "mc":
        return [sampled_law(problem, topic, uniforms(topic), legacy=legacy) for topic in range(n)]
    exactly = np.zeros(n, dtype=bool) if method == "grid" else feasible(problem, method)
    chosen = np.flatnonzero(exactly)
    laws: dict[int, ScoreDistribution] = dict(zip(chosen.tolist(), exact_laws(problem.select(chosen)), strict=True))
    for topic in np.flatnonzero(~exactly).tolist():
        if lattice_work(problem, topic) <= MAX_LATTICE[method]:
            laws[topic] = lattice_law(problem, topic)
        elif grid_work(problem, topic) <= MAX_CELLS[method]:
            laws[topic] = grid_law(problem, topic)
        elif method != "auto":
            raise TooLargeError(topic)
        else:
            laws[topic] = sampled_law(problem, topic, uniforms(topic), legacy=legacy)
    return [laws[topic] for topic in range(n)]
