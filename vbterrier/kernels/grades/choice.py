"""Choice of the method for the distribution of a topic's score, and distributions on grids."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.distributions import Atoms, Grid
from vbterrier.kernels.grades.exact import (
    drawn_levels,
    exact_distributions,
    is_enumerated,
    n_walk_states,
    sampled_distribution,
    split_documents,
    walk,
)
from vbterrier.kernels.grades.moments import increment_steps
from vbterrier.kernels.tolerances import WHOLE_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.kernels.grades.model import Increments, UnjudgedModel


METHODS = ("auto", "exact", "grid", "mc")

# The largest number of sequences of assigned levels if a level may have too few documents, and otherwise of atoms of
# the larger half.
MAX_PATHS = 1e6
MAX_HALF = {"auto": 20_000.0, "exact": 2.6e6}
# The largest number of enumerated sequences, of sequences that are sums of two dependent halves, and of sequences times
# pairs of sets of documents for dependent documents with different priors. A grid of increments takes less time than
# long lists; ten documents of three grades are enumerated.
MAX_SEQUENCES = {"auto": 3e5, "exact": 2e6}
MAX_LISTED_INCREMENTS = {"auto": 6e4, "exact": 2e6}
MAX_JOINED = {"auto": 2e6, "exact": 1e7}
MAX_SETS = {"auto": 5e7, "exact": 1e9}
# The largest number of cell updates: about a second per topic under "auto".
MAX_CELL_UPDATES = {"auto": 1.5e8, "grid": 4e9, "exact": 0.0}
MAX_LATTICE = {"auto": 1.5e8, "exact": 4e9, "grid": 0.0}
GRID_CELLS = 1 << 15
# Increments depend on the state, so they are added state by state, to shorter rows whose cells cost more.
INCREMENT_CELLS, _SHORT_ROW = 1 << 12, 8


class TooLargeError(Exception):
    """Error for a topic that is too large for the requested method.

    - ``topic``: the position of the topic
    """

    def __init__(self, topic: int) -> None:
        self.topic = topic
        super().__init__(f"topic {topic}")


# Products of many probabilities may underflow to 0.
@np.errstate(under="ignore")
def topic_distributions(
    model: UnjudgedModel, method: str, uniforms: Callable[[int], NDArray[np.float64]], *, legacy: bool = False
) -> list[ScoreDistribution]:
    """The distribution of each topic.

    - ``model``: the model of unjudged documents
    - ``method``: ``"exact"``, ``"grid"``, ``"mc"``, or ``"auto"``: exact if that is cheap, else the grid, else draws
    - ``uniforms``: function that returns the uniform numbers of a topic, shape (n_draws, n_unjudged); called only for
      draws
    - ``legacy``: see :class:`vbterrier.kernels.grades.distributions.Sample`

    Raises TooLargeError: A topic is too large for ``method="exact"`` or ``"grid"``.
    """
    n = len(model)
    if method == "mc":
        return [sampled_distribution(model, topic, uniforms(topic), legacy=legacy) for topic in range(n)]
    exactly = np.zeros(n, dtype=bool) if method == "grid" else feasible(model, method)
    chosen = np.flatnonzero(exactly)
    distributions: dict[int, ScoreDistribution] = dict(
        zip(chosen.tolist(), exact_distributions(model.select(chosen)), strict=True)
    )
    for topic in np.flatnonzero(~exactly).tolist():
        if lattice_work(model, topic) <= MAX_LATTICE[method]:
            distributions[topic] = lattice_distribution(model, topic)
        elif grid_work(model, topic) <= MAX_CELL_UPDATES[method]:
            distributions[topic] = grid_distribution(model, topic)
        elif method != "auto":
            raise TooLargeError(topic)
        else:
            distributions[topic] = sampled_distribution(model, topic, uniforms(topic), legacy=legacy)
    return [distributions[topic] for topic in range(n)]


def feasible(model: UnjudgedModel, method: str) -> Bools:
    """Topics that are small enough for an exact distribution under ``"auto"`` or ``"exact"``, shape (n,)."""
    paths, listed = model.n_paths(), is_enumerated(model)
    with np.errstate(over="ignore"):
        half = model.n_active.astype(np.float64) ** np.ceil(model.n_unjudged / 2)
        sets = paths * 3.0**model.n_unjudged
    bearable = np.where(model.binds, paths <= MAX_PATHS, half <= MAX_HALF[method])
    for topic in np.flatnonzero(model.binds & ~bearable & ~listed):
        bearable[topic] = n_assigned_sequences(model.caps[topic], int(model.n_unjudged[topic]), MAX_PATHS) <= MAX_PATHS
    bearable = np.where(model.depends, paths <= MAX_JOINED[method], bearable)
    most = MAX_LISTED_INCREMENTS if _has_increment_grid(model) else MAX_SEQUENCES
    bearable = np.where(listed, paths <= most[method], bearable)
    bearable &= model.is_shared | ~model.depends | (sets <= MAX_SETS[method])
    # Pairs of halves with equal sums are enumerated, so these topics need two halves without equal sums.
    for topic in np.flatnonzero(bearable & ~listed & ~model.binds & ~model.depends & (paths > MAX_PATHS)):
        bearable[topic] = split_documents(model.weights[topic, : model.n_unjudged[topic]])[2]
    return bearable


def n_assigned_sequences(caps: Ints, n_documents: int, most: float) -> float:
    """The number of sequences of levels that documents can be assigned; infinite if it is above ``most``.

    With N_l(m) the number for m documents on the first l levels, ``N_(l+1)(m) = Σ_(j <= cap) C(m, j) N_l(m - j)``.

    - ``caps``: the largest number of documents on each level, shape (L,); level 0 is unlimited
    - ``n_documents``: the number of documents, at least 1
    """
    size, numbers = np.arange(n_documents + 1.0), np.ones(n_documents + 1)
    for cap in caps[1:].tolist():
        # Binomial coefficients C(m, j).
        ways, total = np.ones(n_documents + 1), numbers.copy()
        for assigned in range(1, cap + 1):
            ways *= np.maximum(size - assigned + 1, 0) / assigned
            total[assigned:] += ways[assigned:] * numbers[:-assigned]
            if total[-1] > most:
                return float("inf")
        numbers = total
    return float(numbers[-1])


def grid_work(model: UnjudgedModel, topic: int, cells: int = GRID_CELLS) -> float:
    """The number of cell updates of :func:`grid_distribution` for a topic."""
    one = model.select(slice(topic, topic + 1))
    if model.value is not None:
        if not _has_increment_grid(model):
            return float("inf")
        n_levels = len(drawn_levels(one))
        return float(comb(int(one.n_unjudged[0]) - 1 + n_levels, n_levels)) * n_levels * INCREMENT_CELLS * _SHORT_ROW
    return n_walk_states(one) * cells * int(one.n_unjudged[0]) * int(one.n_active[0])


def _has_increment_grid(model: UnjudgedModel) -> bool:
    return model.increments is not None and model.is_shared


def grid_distribution(model: UnjudgedModel, topic: int, cells: int = GRID_CELLS) -> Grid:
    """The distribution of one topic on a grid over the range of its score.

    The value of each document is split in proportion between the two cells around it. This keeps the mean, and the
    errors of the documents are independent and centred given the draws, so that Hoeffding's inequality holds even if
    grades have too few documents or draws are dependent.

    - ``model``: the model of unjudged documents
    - ``topic``: the position of the topic
    - ``cells``: number of cells over the range of a score that is a sum over documents; other scores that are sums of
      increments have :data:`INCREMENT_CELLS`
    """
    one = model.select(slice(topic, topic + 1))
    if one.increments is not None:
        return _increment_grid(one, one.increments)
    n_unjudged = int(one.n_unjudged[0])
    values = _values(one)
    cell = max(float(values.max(axis=1).sum()), 1e-300) / cells
    mass = _cell_values(one, values / cell, cells + n_unjudged + 1)
    scores = one.base[0] + cell * np.arange(len(mass))
    largest = float(one.base[0] + values.max(axis=1).sum())
    return Grid(scores, mass, np.cumsum(mass), method="grid", cell=cell, n_documents=n_unjudged, largest=largest)


def _increment_grid(one: UnjudgedModel, increments: Increments) -> Grid:
    """The distribution of a topic whose score is a sum of increments, from the last document to the first.

    The sum that documents add from a count of drawn levels on follows from the sums after one more draw.
    """
    steps = list(increment_steps(one, increments, drawn_levels(one)))
    added = [
        np.stack([step.gained[0, to] - lost[0] for to, lost in zip(step.after, step.lost, strict=True)])
        for step in steps
    ]
    lows, highs = (np.array([end(values) for values in added]) for end in (np.min, np.max))
    cell = max(float((highs - lows).sum()), 1e-300) / INCREMENT_CELLS
    mass, used = np.zeros((steps[0].gained.shape[1] if steps else 1, INCREMENT_CELLS + len(steps) + 1)), 1
    mass[:, 0] = 1.0
    for step, values, low in zip(steps, added, lows, strict=True):
        places = (values - low) / cell
        floors = np.floor(places).astype(np.int64)
        chance = np.broadcast_to(step.chance[:, 0], places.shape)
        upper, lower = chance * (places - floors), chance * (1 - (places - floors))
        before = np.zeros((places.shape[1], mass.shape[1]))
        for level, to in enumerate(step.after):
            for state, (row, floor) in enumerate(zip(to.tolist(), floors[level].tolist(), strict=True)):
                before[state, floor : floor + used] += lower[level, state] * mass[row, :used]
                before[state, floor + 1 : floor + 1 + used] += upper[level, state] * mass[row, :used]
        used += int(floors.max()) + 1
        mass = before
    base = float(increments.base[0] + lows.sum())
    probs = mass[0, :used]
    scores = np.asarray(base + cell * np.arange(used), dtype=np.float64)
    largest = float(increments.base[0] + highs.sum())
    return Grid(scores, probs, np.cumsum(probs), method="grid", cell=cell, n_documents=len(steps), largest=largest)


def lattice_distribution(model: UnjudgedModel, topic: int) -> Atoms:
    """The exact distribution of a topic whose values are all multiples of one unit (finite :func:`lattice_work`)."""
    one = model.select(slice(topic, topic + 1))
    unit, places = _whole(_values(one))
    mass = _cell_values(one, places, int(places.max(axis=1).sum()) + len(places) + 1)
    scores: Floats = one.base[0] + unit * np.arange(len(mass))
    return Atoms(scores, mass, np.cumsum(mass))


def lattice_work(model: UnjudgedModel, topic: int) -> float:
    """The number of cell updates of :func:`lattice_distribution`; infinite without a common unit of the values."""
    if model.value is not None:
        return float("inf")
    one = model.select(slice(topic, topic + 1))
    _, places = _whole(_values(one))
    if not np.isfinite(places).all():
        return float("inf")
    return grid_work(model, topic, int(places.max(axis=1, initial=0).sum()) + len(places) + 1)


def _values(one: UnjudgedModel) -> Floats:
    """The value of each document at each level that it can be assigned, shape (u, L)."""
    values: Floats = one.weights[0, : int(one.n_unjudged[0]), None] * one.gain * (one.caps[0] > 0)
    return values


def _whole(values: Floats) -> tuple[float, Floats]:
    """The smallest positive value, and all values as multiples of it; NaN for fractions."""
    positive = values[values > 0]
    unit = float(positive.min()) if len(positive) else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        multiple = values / unit
        near = np.round(multiple)
        return unit, np.where(np.abs(multiple - near) < WHOLE_ROUNDING, near, np.nan)


def _cell_values(one: UnjudgedModel, places: Floats, n_cells: int) -> Floats:
    """The probability of each cell, the value of each document in units of cells split between the two around it."""
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
