"""Mergeable statistics of topics, and ratios of means over topics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, warn, whole
from vbterrier.frames.contracts import mean_bounds, score_bounds
from vbterrier.frames.notebook import Panel, Shown, of_means
from vbterrier.kernels.resample import constant_limits, means_of, stream, weighted_sums
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    N_RESAMPLES,
    check_level,
    poisson_limits,
    tail_probabilities,
    topic_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.notebook import Figures


METHOD = "topics (poisson)"
# Columns processed at a time.
_BLOCK = 500
_UNBOUNDED = "no document that is not relevant is reached: the ratio is infinite"
# Resampled topics held in memory at a time.
_BATCH = 4_000_000


@dataclass(frozen=True, eq=False)
class _Column:
    """A system and measure: sums of weights, shape (1 + B,), and of weighted digits, (4, 1 + B), and extreme values."""

    weights: Ints
    sums: Ints
    minimum: float
    maximum: float

    def __add__(self, other: _Column) -> _Column:
        return _Column(
            self.weights + other.weights,
            self.sums + other.sums,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
        )


class TopicStatistics(Shown):
    """Mergeable means over topics with Poisson bootstrap intervals, computed from batches of topics in any order.

    The weight of a topic in a resample is a Poisson number of mean 1, determined by the seed and the topic id, so that
    batches are independent (Chamandy et al. 2012, section 3). The sums are kept as integers: weights, and weighted
    values in units of 2^-58. The results are therefore bitwise the same for any split into batches, and the limits
    equal those of ``intervals(values, method="poisson")``.

    Parameters
    ----------
    n_resamples
        Number of resamples of the topics.
    seed
        Determines the resamples.

    Raises
    ------
    ParameterError
        A number of resamples below 1, a seed below 0.

    Notes
    -----
    Memory is ``40 (1 + n_resamples)`` bytes for each system and measure, 80 kB for 2,000 resamples, for any number of
    topics. Objects can be pickled. A topic that is added twice counts twice: batches must be disjoint.

    References
    ----------
    Chamandy, Muralidharan, Najmi and Naidu: Estimating Uncertainty for Massive Data Streams, Google, 2012.

    Examples
    --------
    >>> values = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.2, 0.4, 0.9]})
    >>> parts = [TopicStatistics(seed=1).add(part) for part in (values[:1], values[1:])]
    >>> merged = parts[0].merge(parts[1]).intervals()
    >>> whole = TopicStatistics(seed=1).add(values).intervals()
    >>> merged.equals(whole), merged["n_qids"].tolist(), merged["value"].tolist()
    (True, [3], [0.5])
    """

    def __init__(self, *, n_resamples: int = N_RESAMPLES, seed: int = 0) -> None:
        self.n_resamples = whole("n_resamples", n_resamples)
        self.seed = whole("seed", seed, low=0)
        self._columns: dict[tuple[str, str], _Column] = {}

    def __repr__(self) -> str:
        return f"TopicStatistics({len(self._columns)} means, n_resamples={self.n_resamples}, seed={self.seed})"

    def _panels(self) -> Iterator[Panel]:
        if self._columns:
            yield from of_means(self.intervals())

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.intervals()}}

    def add(self, values: Any) -> TopicStatistics:
        """Add the values of further topics.

        Parameters
        ----------
        values
            The V frame of some topics: name, qid, measure, value.

        Returns
        -------
        TopicStatistics
            The same object.

        Raises
        ------
        InputError
            A missing or non-finite value, a value of 2^46 or more; a duplicate topic.
        """
        for table in topic_values(values):
            weights, sums = weighted_sums(table.qids, table.values, self.n_resamples, self.seed)
            lowest, highest = table.values.min(axis=0).tolist(), table.values.max(axis=0).tolist()
            for place, key in enumerate(zip(table.names, table.measures, strict=True)):
                self._count(key, _Column(weights, sums[:, :, place], lowest[place], highest[place]))
        return self

    def merge(self, other: TopicStatistics) -> TopicStatistics:
        """Return the statistics of the topics of both objects; neither is changed.

        Raises
        ------
        ParameterError
            Different ``n_resamples`` or ``seed``.
        """
        if (self.n_resamples, self.seed) != (other.n_resamples, other.seed):
            raise ParameterError(f"{self} and {other}: wanted the same n_resamples and seed for both")
        merged = TopicStatistics(n_resamples=self.n_resamples, seed=self.seed)
        merged._columns = dict(self._columns)
        for key, column in other._columns.items():
            merged._count(key, column)
        return merged

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """Means with percentile intervals.

        Parameters
        ----------
        level
            Nominal coverage, 0 to 1.

        Returns
        -------
        pandas.DataFrame
            The C frame, by name and measure, as of :func:`~vbterrier.stats.intervals`.

        Raises
        ------
        ParameterError
            A level outside (0, 1).
        """
        check_level(level)
        rows: list[tuple[Any, ...]] = []
        keys = sorted(self._columns)
        for start in range(0, len(keys), _BLOCK):
            columns = [self._columns[key] for key in keys[start : start + _BLOCK]]
            measures = [measure for _, measure in keys[start : start + _BLOCK]]
            means, limits = self._limits(columns, measures, tail_probabilities(level))
            for key, column, mean, (low, high) in zip(
                keys[start : start + _BLOCK], columns, means.tolist(), limits.T.tolist(), strict=True
            ):
                n_qids = int(column.weights[0])
                rows.append((*key, mean, low, high, level, METHOD, n_qids, self.n_resamples, self.seed))
        if any(column.weights[0] < 2 for column in self._columns.values()):  # noqa: PLR2004 - a bootstrap needs two
            warn("an interval over topics needs at least two topics")
        return pd.DataFrame(rows, columns=list(COLUMNS))

    @staticmethod
    def _limits(columns: list[_Column], measures: list[str], tails: Floats) -> tuple[Floats, Floats]:
        weights = np.stack([column.weights for column in columns], axis=1)
        means = means_of(weights, np.stack([column.sums for column in columns], axis=2))
        limits = poisson_limits(means, tails)
        for place, column in enumerate(columns):
            if column.weights[0] < 2:  # noqa: PLR2004 - a bootstrap needs two
                limits[:, place] = np.nan
            elif column.minimum == column.maximum:
                means[0, place] = column.minimum
                bounds = score_bounds(measures[place])
                limits[:, place] = constant_limits(column.minimum, int(column.weights[0]), bounds, tails)
        return means[0], np.clip(limits, *np.array([mean_bounds(measure) for measure in measures]).T)

    def _count(self, key: tuple[str, str], column: _Column) -> None:
        known = self._columns.get(key)
        self._columns[key] = column if known is None else known + column


@dataclass(frozen=True)
class Ratio(Shown):
    """A ratio of means, the limits of its interval, and the number of topics."""

    value: float
    low: float
    high: float
    n_qids: int

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Ratio of means", pd.DataFrame([asdict(self)]), value="value", heads=0)


def disc_ratio(
    rel_cov: Any, nonrel_cov: Any, *, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Ratio:
    """Discrimination ratio of a collection, mean RelCov / mean NonRelCov, with an interval over topics.

    ``DiscRatio = mean_q RelCov / mean_q NonRelCov``. The limits are percentiles of the ratio over resamples of the
    topics, which keep the two values of a topic together.

    Parameters
    ----------
    rel_cov, nonrel_cov
        The values of each topic, in the same order, shape (n,), without topics in which either is undefined.
    level
        Nominal coverage, 0 to 1.
    n_resamples
        Number of resamples of the topics.
    seed
        Determines the resamples.

    Returns
    -------
    Ratio
        Infinite, with a warning, if no topic reaches a non-relevant document; NaN if no topic reaches any document.

    Raises
    ------
    InputError
        Different numbers of topics, no topics, or a value outside [0, 1].
    ParameterError
        A level outside (0, 1), a number of resamples below 1.

    Notes
    -----
    Table 5 of the source reports ratios of means (.971/.888 = 1.09). Means of ratios are not used, as they diverge if
    NonRelCov is 0.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.3.

    Examples
    --------
    >>> found = disc_ratio([1.0, 0.8, 0.9], [0.6, 0.9, 0.5])
    >>> round(found.value, 3), found.low < found.value < found.high
    (1.35, True)
    """
    check_level(level)
    whole("n_resamples", n_resamples)
    above, below = _shares(rel_cov, "rel_cov"), _shares(nonrel_cov, "nonrel_cov")
    if len(above) != len(below):
        raise InputError(f"rel_cov has {len(above)} topics, nonrel_cov {len(below)}; give the same topics in both")
    n, draw = len(above), stream(seed, "disc_ratio")
    value = float(_ratio(above.sum(), below.sum()))
    if not np.isfinite(value):
        warn("no document is reached: the ratio is undefined" if np.isnan(value) else _UNBOUNDED)
    replicas = np.empty(n_resamples)
    step = max(1, _BATCH // n)
    for start in range(0, n_resamples, step):
        rows = draw.integers(n, size=(min(step, n_resamples - start), n))
        replicas[start : start + step] = _ratio(above[rows].sum(axis=1), below[rows].sum(axis=1))
    known = replicas[~np.isnan(replicas)]
    if not len(known):
        return Ratio(value, np.nan, np.nan, n)
    # Order statistics are defined even if some ratios are infinite.
    low, high = np.quantile(known, tail_probabilities(level), method="nearest")
    return Ratio(value, float(low), float(high), n)


def _ratio(above: Any, below: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(above, below)


def _shares(values: Any, name: str) -> Floats:
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 1 or not len(shares):
        raise InputError(f"{name}: wanted one proportion for each topic, found an array of shape {shares.shape}")
    bad = ~((shares >= 0) & (shares <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name}: topic {row} has {shares[row]:g}, wanted 0 to 1; drop topics with an undefined value from both"
        )
    return shares
