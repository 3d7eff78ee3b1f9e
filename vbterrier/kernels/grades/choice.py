"""Which way to a distribution a topic takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.exact import exact_laws, is_listed, split
from vbterrier.kernels.grades.grid import grid_law, grid_work, lattice_law, lattice_work
from vbterrier.kernels.grades.sampled import sampled_law

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.kernels.grades.laws import Law
    from vbterrier.kernels.grades.problem import Problem

    Bools = NDArray[np.bool_]

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


def feasible(problem: Problem, method: str) -> Bools:
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


def laws_of(
    problem: Problem, method: str, uniforms: Callable[[int], NDArray[np.float64]], *, legacy: bool = False
) -> list[Law]:
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
    laws: dict[int, Law] = dict(zip(chosen.tolist(), exact_laws(problem.select(chosen)), strict=True))
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
