"""Which way to a distribution a topic takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.exact import exact_laws, is_listed
from vbterrier.kernels.grades.grid import grid_law, grid_work
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
# Sequences that are listed with all their grades, and the pairs of sequences and sets of documents behind their
# probabilities where documents of different priors depend on each other.
MAX_LISTED = {"auto": 3e5, "exact": 2e6}
MAX_PAIRS = {"auto": 5e7, "exact": 1e9}
# Cells that a grid may touch: a second of work for a topic, or as many as the user asked for.
MAX_CELLS = {"auto": 1.5e8, "grid": 4e9, "exact": 0.0}


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
    paths = problem.n_paths()
    with np.errstate(over="ignore"):
        half = problem.n_active.astype(np.float64) ** np.ceil(problem.n_unjudged / 2)
        pairs = paths * 3.0**problem.n_unjudged
    bearable = np.where(problem.binds, paths <= MAX_PATHS, half <= MAX_HALF[method])
    bearable = np.where(problem.depends | is_listed(problem), paths <= MAX_LISTED[method], bearable)
    return bearable & (problem.is_shared | ~problem.depends | (pairs <= MAX_PAIRS[method]))


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
    if method == "exact" and not exactly.all():
        raise TooLargeError(int(np.argmin(exactly)))
    chosen = np.flatnonzero(exactly)
    laws: dict[int, Law] = dict(zip(chosen.tolist(), exact_laws(problem.select(chosen)), strict=True))
    for topic in np.flatnonzero(~exactly).tolist():
        if grid_work(problem, topic) <= MAX_CELLS[method]:
            laws[topic] = grid_law(problem, topic)
        elif method == "grid":
            raise TooLargeError(topic)
        else:
            laws[topic] = sampled_law(problem, topic, uniforms(topic), legacy=legacy)
    return [laws[topic] for topic in range(n)]
