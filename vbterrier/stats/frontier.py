"""Pareto frontiers of runs in two measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, check_level, examples, nearest, warn, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import BLOCK_CELLS, stream
from vbterrier.kernels.tolerances import COMPARED_DECIMALS, REPLICA_ROUNDING
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.topic_intervals import N_RESAMPLES, tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Bools, Floats
    from vbterrier.frames.results import Figures


# Chatterjee, section 6.2: RelCov above, NonRelCov below.
TARGETS = ((0.80, 0.50), (0.90, 0.70), (0.95, 0.75))
# Below this number of runs, warn.
_MIN_RUNS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Shown):
    """Result of :func:`pareto_frontier`.

    ``runs``: a row for each run, in the order of the input: name, the means of both measures, n_qids (topics of the
    first), on_frontier. ``correlation``: statistic ("Pearson r"), value, low, high, level, method, n_runs; a row for
    each method, ``"Fisher z"`` and ``"runs (percentile)"``. ``targets``: above, below, n_runs, n_inside, share, low,
    high, level: a row for each target region, with Clopper-Pearson limits. ``values``: the V frame of both measures,
    for plots.
    """

    runs: pd.DataFrame
    correlation: pd.DataFrame
    targets: pd.DataFrame
    values: pd.DataFrame
    maximised: str
    minimised: str

    def to_frame(self) -> pd.DataFrame:
        """Return ``runs``: a row per run."""
        return self.runs

    def _line(self) -> str:
        n = int(self.runs["on_frontier"].sum())
        return f"{n} of {len(self.runs)} runs on the frontier of {self.maximised} and {self.minimised}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Runs", self.runs)
        yield Panel("Correlation over runs", self.correlation, value="value")
        yield Panel("Runs inside the target regions", self.targets, value="share", heads=2)

    def _figures(self) -> Figures:
        return {"coverage_discrimination": lambda: {"values": self.values, "x": self.minimised, "y": self.maximised}}

    def front(self) -> pd.DataFrame:
        """Return the non-dominated runs, sorted by the minimised measure."""
        return self.runs[self.runs["on_frontier"]].sort_values(self.minimised, kind="stable").reset_index(drop=True)


@with_usual_errors
def pareto_frontier(
    values: Any,
    *,
    maximised: str = "RelCov@20",
    minimised: str = "NonRelCov@20",
    targets: Sequence[tuple[float, float]] = TARGETS,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Frontier:
    """Pareto frontier of runs in two measures, and the correlation of the measures over runs.

    A run is on the frontier if no other run dominates it, with a mean of ``maximised`` at least as high and a mean of
    ``minimised`` at least as low, one of them strictly. Runs with equal means do not dominate each other.

    Parameters
    ----------
    values, maximised, minimised
        The V frame: name, qid, measure, value; the names of two of its measures.
    targets
        Target regions: (lower bound of the maximised measure, upper bound of the minimised one), both exclusive.
    level, n_resamples, seed
        Nominal coverage of the intervals; number and seed of the resamples of the runs.

    Returns
    -------
    Frontier
        ``runs``: a row per run, with ``on_frontier``; ``correlation`` of both measures; ``targets``: counts in target
        regions.

    Notes
    -----
    The intervals assume that runs are a random sample. In practice they rarely are: configurations of the same method
    are similar, so that all intervals are too narrow. Resamples in which a measure does not vary have no correlation
    and are ignored. The cost is that of sorting the runs.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 4.1 and 6.2, figure 6.

    Examples
    --------
    >>> import warnings
    >>> values = pd.DataFrame({"name": list("abcd") * 2, "qid": "q1",
    ...                        "measure": ["RelCov@20"] * 4 + ["NonRelCov@20"] * 4,
    ...                        "value": [0.9, 0.8, 0.95, 0.8, 0.6, 0.7, 0.9, 0.4]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # a warning of the small number of runs
    ...     result = pareto_frontier(values)
    >>> result.front()["name"].tolist(), result.targets["share"].tolist()
    (['d', 'a', 'c'], [0.0, 0.0, 0.0])
    """
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)
    if maximised == minimised:
        raise ParameterError(f"maximised and minimised are both {maximised!r}: wanted two measures")
    frame = pandas_frame(values, "values")
    require(frame, ("name", "qid", "measure", "value"), "values")
    high, n_qids = _means(frame, maximised)
    low, _ = _means(frame, minimised)
    if set(high.index) != set(low.index):
        odd = sorted(set(high.index) ^ set(low.index))
        raise InputError(
            f"values: {agreeing(len(odd), 'runs')} ({examples(odd)}) with only one of {maximised} and {minimised}"
        )
    up: Floats = np.array(high, dtype=np.float64)
    down: Floats = np.array(low.loc[high.index], dtype=np.float64)
    on_frontier = undominated_mask(np.round(up, COMPARED_DECIMALS), np.round(down, COMPARED_DECIMALS))
    n, shares = len(up), []
    for above, below in targets:
        inside = int(((up > above) & (down < below)).sum())
        shares.append((above, below, n, inside, inside / n, *share_interval(inside, n, level), level))
    columns = {"name": high.index.to_numpy(), maximised: up, minimised: down}
    return Frontier(
        pd.DataFrame({**columns, "n_qids": n_qids, "on_frontier": on_frontier}),
        _correlation_row(up, down, level, n_resamples, seed),
        pd.DataFrame(shares, columns=["above", "below", "n_runs", "n_inside", "share", "low", "high", "level"]),
        frame.loc[frame["measure"].isin([maximised, minimised]), ["name", "qid", "measure", "value"]],
        maximised,
        minimised,
    )


def _means(values: pd.DataFrame, measure: str) -> tuple[pd.Series[float], int]:
    """Return the mean of each run, by name, and the number of topics."""
    rows = values[values["measure"] == measure]
    if not len(rows):
        names = [str(name) for name in values["measure"].unique()]
        raise InputError(f"values: no {measure}; found {examples(names)}.{nearest(measure, names)}")
    table = rows.pivot(index="qid", columns="name", values="value")[rows["name"].unique()]
    if table.isna().any(axis=None):
        odd = table.index[table.isna().any(axis=1)]
        raise InputError(
            f"values: some run has no {measure} for {agreeing(len(odd), 'topics')} ({examples(odd)}); means over "
            "different topics are not comparable: keep the topics that all runs have"
        )
    return table.mean(), len(table)


def undominated_mask(up: Floats, down: Floats) -> Bools:
    """Return a mask of the points that are not dominated, maximising ``up`` and minimising ``down``, shape (n,)."""
    if not len(up):
        return np.zeros(0, dtype=bool)
    order = np.lexsort((-up, down))
    best = np.maximum.accumulate(up[order])
    # The first point of each value of ``down`` has the largest ``up`` among them.
    new = np.concatenate([[True], np.diff(down[order]) > 0])
    head = np.flatnonzero(new)[np.cumsum(new) - 1]
    before = np.concatenate([[-np.inf], best])[head]
    is_undominated = np.empty(len(up), dtype=bool)
    is_undominated[order] = (up[order] == up[order][head]) & (up[order] > before)
    return is_undominated


def pearson_interval(r: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Fisher's interval of a correlation of n pairs, ``tanh(artanh r ± z/sqrt(n - 3))``; NaN for fewer than four."""
    if n < 4 or np.isnan(r):  # noqa: PLR2004 - the formula's 3
        return float("nan"), float("nan")
    from scipy import special

    half_width = special.ndtri((1 + level) / 2) / np.sqrt(n - 3)
    with np.errstate(divide="ignore"):
        z = np.arctanh(r)
    return float(np.tanh(z - half_width)), float(np.tanh(z + half_width))


def _correlation_row(up: Floats, down: Floats, level: float, n_resamples: int, seed: int) -> pd.DataFrame:
    n = len(up)
    r = float(_pearson(up[None], down[None])[0])
    if n < _MIN_RUNS or np.isnan(r):
        constant = "the correlation is undefined, as a measure does not vary"
        warn(f"{n} runs: {constant if np.isnan(r) else 'too few for reliable intervals'}")
    draw = stream(seed, "frontier")
    step = max(1, BLOCK_CELLS // n)
    parts = [
        _pearson(up[rows], down[rows])
        for done in range(0, n_resamples, step)
        for rows in [draw.integers(n, size=(min(step, n_resamples - done), n))]
    ]
    replicas = np.concatenate(parts)
    replicas = replicas[~np.isnan(replicas)]
    defined = len(replicas) and not np.isnan(r)
    resampled = np.quantile(replicas, tail_probabilities(level)) if defined else [np.nan, np.nan]
    limits = {"Fisher z": pearson_interval(r, n, level), "runs (percentile)": tuple(map(float, resampled))}
    rows = [("Pearson r", r, low, high, level, method, n) for method, (low, high) in limits.items()]
    return pd.DataFrame(rows, columns=["statistic", "value", "low", "high", "level", "method", "n_runs"])


def _pearson(up: Floats, down: Floats) -> Floats:
    """Return the correlation of each row, NaN if a measure does not vary, shape (b,)."""
    left, right = (side - side.mean(axis=1, keepdims=True) for side in (up, down))
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    varies = (np.ptp(up, axis=1) > REPLICA_ROUNDING) & (np.ptp(down, axis=1) > REPLICA_ROUNDING)
    correlation: Floats = np.full(len(up), np.nan)
    np.divide((left * right).sum(axis=1), scale, out=correlation, where=varies)
    return np.clip(correlation, -1.0, 1.0)
