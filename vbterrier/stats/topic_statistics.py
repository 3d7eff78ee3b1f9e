"""Mergeable statistics of topics, ratios of means over topics, and scores of the joint intents of all topics."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, check_level, warn, whole
from vbterrier.frames.notebook import Panel
from vbterrier.frames.ranges import mean_bounds, score_bounds
from vbterrier.frames.results import Shown, of_means
from vbterrier.frames.score_table import ScoreTable, refuse_ratios
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import (
    BLOCK_CELLS,
    bca_acceleration,
    constant_limits,
    random_signs,
    resampled_means,
    stream,
    weighted_means,
    weighted_sums,
)
from vbterrier.kernels.student_t import t_quantile
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.kernels.vb import lowest_point
from vbterrier.stats.comparisons import COLUMNS as PAIR_COLUMNS
from vbterrier.stats.comparisons import adjusted_p_values, system_pairs
from vbterrier.stats.matches import PooledSuccess, Statistic
from vbterrier.stats.paired_tests import TESTS
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    CONSTANT_METHOD,
    N_RESAMPLES,
    UNSEEN,
    bca_limits,
    poisson_limits,
    proportion_below,
    tail_probabilities,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.results import Figures


METHOD = "topics (poisson)"
# Columns processed at a time.
_BLOCK_COLUMNS = 500
_UNBOUNDED = "no document that is not relevant is reached: the ratio is infinite"


@dataclass(frozen=True, eq=False)
class _Column:
    """A system and measure: sums of weights, shape (1 + B,), and of weighted digits, (4, 1 + B), and extreme values."""

    weights: Ints
    sums: Ints
    minimum: float
    maximum: float

    def __add__(self, other: _Column) -> _Column:
        low, high = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        return _Column(self.weights + other.weights, self.sums + other.sums, low, high)


class TopicStatistics(Shown):
    """Mergeable means over topics with Poisson bootstrap intervals, computed from batches of topics in any order.

    The weight of a topic in a resample is a Poisson number of mean 1, determined by the seed and the topic id, so that
    batches are independent (Chamandy, Muralidharan, Najmi and Naidu, Estimating Uncertainty for Massive Data Streams,
    Google, 2012, section 3). The sums are integers: weights, and weighted values in units of 2^-58. The results are
    therefore bitwise the same for any split into batches, and the limits equal those of
    ``intervals(values, method="poisson")``. A topic that is added twice counts twice: batches must be disjoint.

    Parameters
    ----------
    n_resamples, seed
        Number and seed of the resamples of the topics. Memory is ``40 (1 + n_resamples)`` bytes for each system and
        measure, for any number of topics.

    Examples
    --------
    >>> values = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.2, 0.4, 0.9]})
    >>> parts = [TopicStatistics(seed=1).add(part) for part in (values[:1], values[1:])]
    >>> merged = parts[0].merge(parts[1]).to_frame()
    >>> whole = TopicStatistics(seed=1).add(values).to_frame()
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
            yield from of_means(self.to_frame())

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.to_frame()}}

    def add(self, values: Any) -> TopicStatistics:
        """Add the values of further topics, a V frame (name, qid, measure, value), and return the same object."""
        scores = ScoreTable.of_frame(values)
        refuse_ratios(scores.measures, "stats.intervals(values, method='poisson') of all topics")
        for places, qids, columns in scores.columns():
            weights, sums = weighted_sums(qids, columns, self.n_resamples, self.seed)
            lowest, highest = columns.min(axis=0).tolist(), columns.max(axis=0).tolist()
            for place, (system, measure) in enumerate(places.tolist()):
                key = scores.names[system], scores.measures[measure]
                self._count(key, _Column(weights, sums[:, :, place], lowest[place], highest[place]))
        return self

    def merge(self, other: TopicStatistics) -> TopicStatistics:
        """Return the statistics of the topics of both objects; neither is changed."""
        if (self.n_resamples, self.seed) != (other.n_resamples, other.seed):
            raise ParameterError(f"{self} and {other}: wanted the same n_resamples and seed for both")
        merged = TopicStatistics(n_resamples=self.n_resamples, seed=self.seed)
        merged._columns = dict(self._columns)
        for key, column in other._columns.items():
            merged._count(key, column)
        return merged

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return the C frame of means with percentile intervals: a row per name and measure."""
        check_level(level)
        rows: list[tuple[Any, ...]] = []
        keys = sorted(self._columns)
        for start in range(0, len(keys), _BLOCK_COLUMNS):
            chosen = keys[start : start + _BLOCK_COLUMNS]
            columns = [self._columns[key] for key in chosen]
            means, limits = self._poisson_limits(columns, [measure for _, measure in chosen], tail_probabilities(level))
            numbers = zip(chosen, columns, means.tolist(), limits.T.tolist(), strict=True)
            for key, column, mean, (low, high) in numbers:
                is_bounded = column.minimum == column.maximum and math.isfinite(low)
                made = (CONSTANT_METHOD, 0) if is_bounded else (METHOD, self.n_resamples)
                rows.append((*key, mean, low, high, level, made[0], int(column.weights[0]), made[1], self.seed))
        if any(column.weights[0] < 2 for column in self._columns.values()):  # noqa: PLR2004 - a bootstrap needs two
            warn("an interval over topics needs at least two topics")
        return pd.DataFrame(rows, columns=list(COLUMNS))

    @staticmethod
    def _poisson_limits(columns: list[_Column], measures: list[str], tails: Floats) -> tuple[Floats, Floats]:
        weights = np.stack([column.weights for column in columns], axis=1)
        means = weighted_means(weights, np.stack([column.sums for column in columns], axis=2))
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
        former = self._columns.get(key)
        self._columns[key] = column if former is None else former + column


@dataclass(frozen=True)
class Ratio(Shown):
    """A ratio of means, the limits of its interval, and the number of topics."""

    value: float
    low: float
    high: float
    n_qids: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row: value, low, high, n_qids."""
        return pd.DataFrame([asdict(self)])

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Ratio of means", self.to_frame(), value="value", heads=0)


@with_usual_errors
def disc_ratio(
    rel_cov: Any, nonrel_cov: Any, *, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Ratio:
    """Discrimination ratio of a collection, mean RelCov / mean NonRelCov, with an interval over topics.

    The limits are percentiles of the ratio over resamples of the topics, which keep the two values of a topic together.

    Parameters
    ----------
    rel_cov, nonrel_cov, level, n_resamples, seed
        The values of each topic, in the same order, shape (n,), without topics in which either is undefined; nominal
        coverage; number and seed of the resamples of the topics.

    Returns
    -------
    Ratio
        Infinite, with a warning, if no topic reaches a non-relevant document; NaN if no topic reaches any document.

    Notes
    -----
    Table 5 of the source reports ratios of means (.971/.888 = 1.09). Means of ratios diverge if NonRelCov is 0.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.3.

    Examples
    --------
    >>> result = disc_ratio([1.0, 0.8, 0.9], [0.6, 0.9, 0.5])
    >>> round(result.value, 3), result.low < result.value < result.high
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
    step = max(1, BLOCK_CELLS // n)
    for start in range(0, n_resamples, step):
        rows = draw.integers(n, size=(min(step, n_resamples - start), n))
        replicas[start : start + step] = _ratio(above[rows].sum(axis=1), below[rows].sum(axis=1))
    defined = replicas[~np.isnan(replicas)]
    if not len(defined):
        return Ratio(value, np.nan, np.nan, n)
    # Order statistics are defined even if some ratios are infinite.
    low, high = np.quantile(defined, tail_probabilities(level), method="nearest")
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


class PooledScores:
    """Scores of systems over the joint intents of all queries, as one evaluation (Ding 2025, Table 1).

    A query is drawn, each with the same probability, then one of its intents: ``P(q, i) = π_i / n``. ES is the mean
    over queries; the variance is that of success over all queries, so that a system that serves some queries and fails
    for others is penalised, which it is not by the mean VB of queries with a single intent.

    ``moments``: ES, ``Σ π_i g_i²`` and the gain of the most probable intent of each query, shape (n_systems, n_kinds,
    3, n_topics), kinds in the order of the statistics, which are named by their measures. The order of ``qids`` does
    not matter.
    """

    def __init__(
        self, moments: Floats, names: Sequence[str], statistics: dict[str, Statistic], qids: Sequence[str]
    ) -> None:
        order = sorted(range(len(qids)), key=lambda place: qids[place])
        self.names, self.statistics = list(names), statistics
        self.kinds = list(dict.fromkeys(statistic.kind for statistic in statistics.values()))
        self.shape, self.n = moments.shape[:-1], len(qids)
        # A row for each query.
        self.rows = moments[..., order].reshape(-1, self.n).T.copy()

    def scores(self, means: Floats) -> Floats:
        """Return the scores of systems from their mean moments, shape (..., n, n_measures)."""
        moments = means.reshape(*means.shape[:-1], -1, *self.shape[1:])
        of_kind = [PooledSuccess(*np.moveaxis(moments[..., kind, :], -1, 0)) for kind in range(len(self.kinds))]
        values = [statistic.of(of_kind[self.kinds.index(statistic.kind)]) for statistic in self.statistics.values()]
        return np.asarray(np.stack(values, axis=-1), dtype=np.float64)

    def intervals(
        self, *, method: str = "percentile", level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
    ) -> pd.DataFrame:
        """Return the C frame, with intervals from resampled queries.

        ``method``: ``"percentile"``, ``"bca"``, or ``"normal"``: Student's t with the standard error of the jackknife.
        The resamples are those of :func:`~vbterrier.stats.intervals`.

        ES and TopIntent are means over queries. Scores that depend on ES alone take their extreme values within the
        limits of ES: resamples of a score near its minimum, such as VB at ES = .15, are all above it, and their
        quantiles would exclude it. If all queries have the same success, the limits of ES are those of
        :func:`~vbterrier.kernels.resample.constant_limits`.
        """
        tails, point = tail_probabilities(level), self.scores(self.rows.mean(axis=0))
        # Pooled scores are no means.
        method = "percentile" if method == UNSEEN else method
        if self.n < 2:  # noqa: PLR2004 - a bootstrap needs two
            warn("an interval over topics needs at least two topics")
            limits = np.full((2, *point.shape), np.nan)
        else:
            limits = self._score_limits(resampled_means(self.rows, n_resamples, stream(seed, "")), tails, method)
        bounds = np.array([mean_bounds(measure) for measure in self.statistics]).T
        limits = np.clip(limits, *bounds[:, None, :])
        description = f"topics ({method})", self.n, 0 if method == "normal" else n_resamples
        constant = np.ptp(self.rows, axis=0).reshape(self.shape) == 0
        rows = []
        for (at, name), (column, (measure, statistic)) in product(
            enumerate(self.names), enumerate(self.statistics.items())
        ):
            is_bounded = constant[at][self._moment_index(statistic)] and self.n > 1
            about = (CONSTANT_METHOD, self.n, 0) if is_bounded else description
            rows.append((name, measure, point[at, column], *limits[:, at, column].tolist(), level, *about, seed))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _moment_index(self, statistic: Statistic) -> tuple[int, int]:
        """The position of the kind of gain and of the moment on which a statistic depends."""
        return self.kinds.index(statistic.kind), 2 if statistic.measure == "TopIntent" else 0

    @property
    def _left_out(self) -> Floats:
        """Mean moments without each query in turn."""
        return np.asarray((self.rows.sum(axis=0) - self.rows) / (self.n - 1))

    def _score_limits(self, resampled: Floats, tails: Floats, method: str) -> Floats:
        """Return the limits of all scores, shape (2, n_systems, n_measures), from resampled moments."""
        mean, left_out = self.rows.mean(axis=0), self._left_out
        limits = _limits(self.scores(resampled), self.scores(mean), self.scores(left_out), tails, method)
        every, point, left = (means.reshape(-1, *self.shape) for means in (resampled, mean, left_out))
        of_means = _limits(every, point[0], left, tails, method)
        table = self.rows.reshape(self.n, *self.shape)
        constant = np.ptp(table, axis=0) == 0
        of_means[:, constant] = constant_limits(table[0, constant], self.n, (0.0, 1.0), tails)
        of_means = np.clip(of_means, 0.0, 1.0)
        for column, statistic in enumerate(self.statistics.values()):
            column_of_moment = (slice(None), *self._moment_index(statistic))
            low, high = of_means[0][column_of_moment], of_means[1][column_of_moment]
            # Penalties are extreme at the ends, at one half, or at the minimum of VB.
            at = np.stack([low, high, *(np.clip(peak, low, high) for peak in (0.5, lowest_point(statistic.alpha)))])
            # Gains may differ between intents as much as those of 0 and 1, or not at all.
            scores = np.concatenate([statistic.of(PooledSuccess(at, square, at)) for square in (at, at**2)])
            chosen = constant[column_of_moment] | (statistic.variance == "bernoulli")
            limits[:, chosen, column] = np.stack([scores.min(axis=0), scores.max(axis=0)])[:, chosen]
        return limits

    def comparisons(
        self,
        *,
        baseline: str | None = None,
        method: str = "percentile",
        level: float = 0.95,
        n_resamples: int = N_RESAMPLES,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Return the P frame of differences between pooled scores.

        The systems of a query are exchanged with probability 1/2, and p is the share of differences that are at least
        as large as the observed one, which is counted, corrected by Holm's method for each measure; intervals are those
        of :meth:`intervals`, not corrected. Effect sizes, and the queries that a system wins, are not defined.
        """
        tails, mean, named = tail_probabilities(level), self.rows.mean(axis=0), system_pairs(self.names, baseline)
        if not named:
            return pd.DataFrame(columns=list(PAIR_COLUMNS))
        a, b = (np.array([self.names.index(pair[side]) for pair in named]) for side in (0, 1))
        point = self.scores(mean)
        diff = point[a] - point[b]
        resampled = left = point[None]
        if self.n > 1:
            resampled = self.scores(resampled_means(self.rows, n_resamples, stream(seed, "")))
            left = self.scores(self._left_out)
        limits = _limits(resampled[:, a] - resampled[:, b], diff, left[:, a] - left[:, b], tails, method)
        p_value = np.stack([self._randomisation_p(*pair, n_resamples, seed) for pair in zip(a, b, strict=True)])
        frames = []
        for column, measure in enumerate(self.statistics):
            table = pd.DataFrame(named, columns=["name_a", "name_b"]).assign(measure=measure, diff=diff[:, column])
            low, high = limits[:, :, column] if self.n > 1 else np.full((2, len(named)), np.nan)
            corrected = adjusted_p_values(p := p_value[:, column], "holm")
            frames.append(table.assign(low=low, high=high, p_value=p, p_adjusted=corrected, n_tests=len(named)))
        table = pd.concat(frames, ignore_index=True).assign(n_qids=self.n, test=TESTS["randomisation"])
        made = table.assign(correction="holm", level=level, method=f"topics ({method})")
        none = dict.fromkeys(("effect_size", "effect_low", "effect_high", "p_equivalence"), np.nan)
        made = made.assign(n_resamples=n_resamples, seed=seed, **none)
        made[["wins", "losses", "ties"]] = pd.NA
        return made[list(PAIR_COLUMNS)]

    def _randomisation_p(self, a: int, b: int, n_resamples: int, seed: int) -> Floats:
        """Return p of the randomisation test of two systems, shape (n_measures,)."""
        rows = self.rows.reshape(self.n, *self.shape)
        half, middle = (rows[:, a] - rows[:, b]) / 2, (rows[:, a] + rows[:, b]).mean(axis=0) / 2
        flat = half.reshape(self.n, -1)
        draws = stream(seed, "pooled", self.names[a], self.names[b])
        moved = np.concatenate([signs @ flat / self.n for signs in random_signs(self.n, n_resamples, draws)])
        moved = np.concatenate([flat.mean(axis=0)[None], moved]).reshape(-1, *half.shape[1:])
        whole = np.repeat(middle[None, None], len(moved), axis=0)
        # Both sides of an exchange, in the places of the first two systems.
        sides = np.concatenate([whole + moved[:, None], whole - moved[:, None]], axis=1)
        scores = self.scores(sides.reshape(len(moved), -1))
        size = np.abs(scores[:, 0] - scores[:, 1])
        return np.asarray((size >= size[0] - ROUNDING).mean(axis=0))


def _limits(resampled: Floats, point: Floats, left_out: Floats, tails: Floats, method: str) -> Floats:
    """Return the limits of statistics, shape (2, ...), from resamples (B, ...) and without each topic (n, ...)."""
    if method == "percentile":
        return np.quantile(resampled, tails, axis=0)
    n = len(left_out)
    if method == "bca":
        acceleration = bca_acceleration(np.moveaxis(left_out, 0, -1)[..., None])[..., 0]
        return bca_limits(resampled, proportion_below(resampled, point, ROUNDING), acceleration, tails)
    error: Floats = np.sqrt((n - 1) * left_out.var(axis=0))
    return np.asarray(point + t_quantile(n - 1, tails).reshape(2, *[1] * point.ndim) * error)
