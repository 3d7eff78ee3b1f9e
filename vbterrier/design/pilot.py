"""Pilot studies, and the width of intervals as a function of the number of queries."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest, number, warn, whole
from vbterrier.frames.queries import sampled_queries, selected_queries
from vbterrier.frames.score_table import ScoreTable, table_on_own_topics
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.mean_limits import SampledQueries, limit_of_seen, moments
from vbterrier.kernels.resample import stream
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.annotations import Floats, Ints


# The smallest sample for an estimate of kurtosis.
MIN_DIFFERENCES = 5
# Numbers drawn at a time: 16 MB.
_BLOCK_CELLS = 1 << 21
METHOD = "topics (t)"
# Kurtosis of the normal distribution.
_NORMAL_KURTOSIS = 3.0
COLUMNS = (
    *("name", "measure", "n_qids", "n_more", "width", "width_then", "ratio", "level", "method"),
    *("ratio_low", "ratio_high"),
)


def trimmed_kurtosis(values: Floats) -> float:
    """Kurtosis about a trimmed mean (Bonett 2006); 3, the normal kurtosis, below 5 values."""
    k = len(values)
    if k < MIN_DIFFERENCES:
        return _NORMAL_KURTOSIS
    cut = int(k / (2 * (k - 4) ** 0.5))
    trimmed = np.sort(values)[cut : k - cut].mean()
    return float(k * ((values - trimmed) ** 4).sum() / ((values - values.mean()) ** 2).sum() ** 2)


class Pilot:
    """Differences between two systems on the queries of a pilot, and how these were sampled.

    Queries of equal weight without clusters are stored sorted: their order has no effect. ``units`` are the queries or
    clusters, at least five, that are drawn independently.
    """

    def __init__(self, differences: Any, sample: SampledQueries | None = None) -> None:
        try:
            values = np.asarray(differences)
            # Complex numbers would lose their imaginary parts, and times are no scores.
            values = values.astype(np.float64, casting="unsafe" if values.dtype.kind in "OUSif" else "same_kind")
        except (TypeError, ValueError) as error:
            raise InputError(f"pilot: wanted a data frame of values, or an array of differences; {error}") from error
        if values.ndim != 1 or len(values) < MIN_DIFFERENCES:
            raise InputError(
                f"pilot: wanted at least {MIN_DIFFERENCES} differences, found an array of shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise InputError(f"pilot: difference {int(np.argmin(np.isfinite(values)))} is not a finite number")
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            raise InputError(
                f"pilot: both systems differ by {values[0]:g} on all {len(values)} queries: no variance to plan with; "
                "use other queries or other systems"
            )
        is_equal = sample is None or (sample.clusters is None and np.ptp(sample.weights) == 0)
        self.values: Floats = np.sort(values) if is_equal else values
        self.sample = SampledQueries.equal(len(values)) if sample is None or is_equal else sample
        self.is_equal = is_equal
        if len(self) < MIN_DIFFERENCES:
            raise InputError(f"pilot: wanted at least {MIN_DIFFERENCES} clusters, found {len(self)}")
        self._moments = self.sample.moments(self.values[:, None])

    def __len__(self) -> int:
        return self.sample.n_units

    @property
    def per_unit(self) -> float:
        """The number of queries of a unit."""
        return len(self.values) / len(self)

    def n_queries(self, n_units: int) -> int:
        """The number of queries of so many units."""
        return math.ceil(n_units * self.per_unit - ROUNDING * n_units)

    @property
    def negation(self) -> Pilot:
        """The pilot of the opposite differences."""
        return Pilot(-self.values, None if self.is_equal else self.sample)

    @property
    def mean(self) -> float:
        """The observed difference."""
        return float(self._moments.mean[0])

    @property
    def std(self) -> float:
        """The standard error of the mean times the root of the number of units.

        For queries of equal weight, the sample standard deviation, with n - 1.
        """
        return float(np.sqrt(self._moments.variance[0] * len(self)))

    @cached_property
    def kurtosis(self) -> float:
        """The kurtosis of the parts of units in the mean, see :func:`trimmed_kurtosis`."""
        return trimmed_kurtosis(self.values if self.is_equal else self._parts)

    @property
    def _shares(self) -> Floats:
        """Shares of the units in the mean."""
        share, clusters = self.sample.weights / self.sample.weights.sum(), self.sample.clusters
        return np.asarray(share if clusters is None else np.bincount(clusters, share), dtype=np.float64)

    @property
    def _parts(self) -> Floats:
        """Parts of the units in the mean, as deviations from it."""
        parts = self.sample.weights / self.sample.weights.sum() * (self.values - self.mean)
        clusters = self.sample.clusters
        return np.asarray(parts if clusters is None else np.bincount(clusters, parts), dtype=np.float64)

    @property
    def centred_differences(self) -> Floats:
        """Deviations from the mean, scaled so that resamples have the variance that the pilot estimates."""
        scale = self.std / np.sqrt(len(self) * (self._parts**2).sum())
        return np.asarray((self.values - self.mean) * scale)

    def std_upper_limit(self, assurance: float) -> float:
        """The upper confidence limit of the standard deviation at one level.

        The largest of three limits: Bonett's with at least the normal kurtosis, which small samples underestimate; the
        limit of the mean square of the parts of units by steps 1 and 2 of
        :func:`~vbterrier.kernels.mean_limits.lower_limit`, for skewed squares; and, for unequal weights, that of
        ``σ² exp(v)`` with the variances σ² of deviations and v of logarithms of weights, for log-normal weights that
        are unrelated to the deviations: a pilot of 50 rarely has the queries that weigh most. At .5, the
        observed standard deviation.
        """
        from scipy import special

        if assurance == 0.5:  # noqa: PLR2004 - no limit
            return self.std

        k, z = len(self), float(special.ndtri(assurance))
        limit = max(
            self._std_limits(2 * assurance - 1, max(self.kurtosis, _NORMAL_KURTOSIS))[1], self._square_limit(assurance)
        )
        share = self._shares
        if self.is_equal or np.ptp(share) == 0:
            return limit
        deviations, spread = self._parts / share, float(np.log(share).var(ddof=1))
        c = k / (k - z)
        of_weights = 2 * spread**2 / (k - 1)
        of_deviations = (max(trimmed_kurtosis(deviations), _NORMAL_KURTOSIS) - (k - 3) / k) / (k - 1)
        half_width = z * c * (of_weights + of_deviations) ** 0.5
        log_normal = (deviations**2).sum() / (k - 1) * c * np.exp(spread + half_width)
        return max(limit, math.sqrt(log_normal))

    def _square_limit(self, assurance: float) -> float:
        """The upper limit of the standard deviation as the root of a mean of squares."""
        from scipy import special

        parts = self._parts
        squares = parts**2 / (parts**2).mean()
        low = limit_of_seen(moments(squares[:, None]).negation, 1 - assurance, special.stdtrit)
        return self.std * math.sqrt(-low[0])

    def std_interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the standard deviation (Bonett 2006), which does not assume normal differences.

        ``log σ² = log(c s²) ± z c sqrt((γ - (k - 3)/k)/(k - 1))``, ``c = k/(k - z)``, with the kurtosis γ.
        """
        return self._std_limits(level, self.kurtosis)

    def _std_limits(self, level: float, kurtosis: float) -> tuple[float, float]:
        from scipy import special

        k, z = len(self), float(special.ndtri((1 + level) / 2))
        if z >= k:
            raise ParameterError(f"level={level}: too high for a pilot of {k} queries")
        correction = k / (k - z)
        half_width = z * correction * ((kurtosis - (k - 3) / k) / (k - 1)) ** 0.5
        middle = self.std * correction**0.5
        return middle * float(np.exp(-half_width / 2)), middle * float(np.exp(half_width / 2))

    def resampled_moments(
        self, sizes: Sequence[int], n_simulations: int, seed: int
    ) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Mean, its standard error and degrees of freedom in centred resamples of each number of units.

        Shapes (n_simulations,); degrees of freedom also (1,). Resamples of queries of equal weight are nested: each
        size extends the previous one.
        """
        draws, centred = stream(seed, "pilot"), self.centred_differences
        if not self.is_equal:
            columns = np.repeat(centred[:, None], n_simulations, axis=1)
            for size in sizes:
                moments = self.sample.resample_units(size, n_simulations, draws).moments(columns)
                yield moments.mean, np.sqrt(moments.variance), moments.df
            return
        both = np.stack([centred, centred**2], axis=1)
        sums, n = np.zeros((n_simulations, 2)), 0
        for size in sizes:
            step = max(1, _BLOCK_CELLS // max(min(size - n, len(self)), 1))
            for start in range(0, n_simulations, step):
                stop = min(start + step, n_simulations)
                sums[start:stop] += _resampled_sums(both, size - n, stop - start, draws)
            n = size
            mean = sums[:, 0] / n
            # Numerically stable because the differences are centred.
            variance = np.maximum(sums[:, 1] / n - mean**2, 0.0) / (n - 1)
            yield mean, np.sqrt(variance), np.array([n - 1.0])


def build_pilot(source: Any, pair: Sequence[str] | None, measure: str | None, queries: Any = None) -> tuple[Pilot, str]:
    """The pilot of two systems of a V frame by one measure, and its name; or of an array of differences.

    ``queries``: weights and clusters of the queries of a V frame, see :func:`vbterrier.frames.queries.queries_frame`.
    """
    if not hasattr(source, "columns"):
        if pair is not None or measure is not None or queries is not None:
            raise ParameterError("pair, measure and queries apply to V frames: leave them out for differences")
        return Pilot(source), ""
    tables = {view.measure: view for view in table_on_own_topics(source).views()}
    if measure is None and len(tables) != 1:
        raise ParameterError(f"values contain {len(tables)} measures ({examples(tables)}); select one with measure=")
    chosen = next(iter(tables)) if measure is None else _listed_word("measure", measure, tables)
    names = tables[chosen].names
    if pair is None and len(names) != 2:  # noqa: PLR2004 - a pair
        raise ParameterError(f"values contain {len(names)} systems ({examples(names)}); select two with pair=")
    pair = names if pair is None else pair
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:  # noqa: PLR2004 - a pair
        raise ParameterError(f"pair={excerpt(pair)}: wanted the names of two systems, as ('a', 'b')")
    one, other = (names.index(_listed_word("pair", name, names)) for name in pair)
    values = tables[chosen].values
    differences = values[:, one] - values[:, other]
    if queries is None:
        return Pilot(differences), chosen
    rows = selected_queries(queries, tables[chosen].qids, call="queries_needed", honoured=("weight", "cluster"))
    if "weight" in rows.columns:
        differences, rows = differences[rows["weight"] > 0], rows[rows["weight"] > 0]
    return Pilot(differences, sampled_queries(rows)), chosen


def pilot_pairs(values: Any, baseline: str | None, measure: str | None) -> Iterator[tuple[str, str, str]]:
    """Measure and names of all pairs of systems of a V frame, or of all systems with the baseline."""
    tables = {view.measure: view.names for view in ScoreTable.of_frame(values).views()}
    for chosen in tables if measure is None else [_listed_word("measure", measure, tables)]:
        names = tables[chosen]
        if baseline is None:
            yield from ((chosen, *pair) for pair in combinations(names, 2))
        else:
            _listed_word("baseline", baseline, names)
            yield from ((chosen, name, baseline) for name in names if name != baseline)


def _listed_word(parameter: str, word: str, words: Iterable[str]) -> str:
    words = list(words)
    if word not in words:
        raise ParameterError(f"{parameter}={excerpt(word)} is unknown; found {examples(words)}.{nearest(word, words)}")
    return word


def _resampled_sums(both: Floats, n: int, n_rows: int, draws: np.random.Generator) -> Floats:
    """Sums over n rows of ``both`` drawn with replacement, shape (n_rows, 2): by indices, or by multinomial counts."""
    k = len(both)
    if n < k:
        return np.asarray(both[draws.integers(k, size=(n_rows, n))].sum(axis=1))
    return np.asarray(draws.multinomial(n, np.full(k, 1 / k), size=n_rows) @ both)


@with_usual_errors
def interval_width(
    values: Any, n_more: int | Iterable[int] = (10, 25, 50, 100), *, level: float = 0.95
) -> pd.DataFrame:
    """Width of the t interval of each mean, now and with more queries from the same population.

    ``width = 2 t(n - 1) s/√n`` and, for a constant s, ``width_then = 2 t(N - 1) s/√N`` with ``N = n + m`` queries. The
    change of s, ``s'²/s² = (n - 1 + m F)/(N - 1)`` with F of (m, n - 1) degrees of freedom for normal scores, gives the
    prediction interval of the ratio.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value; for differences between two systems, use them as values.
    n_more
        Numbers of further queries, at least 1.
    level
        Nominal coverage of the interval of the mean, and of the prediction interval of the ratio.

    Returns
    -------
    pandas.DataFrame
        One row per system, measure and number: name, measure, n_qids, n_more, width, width_then, ratio (of width_then
        to width), level, method, ratio_low, ratio_high (prediction interval of the ratio). NaN for a single query; the
        ratio is also NaN if all scores are equal.

    Raises
    ------
    InputError, ParameterError
        A missing or duplicated value; a number below 1, a level outside (0, 1).

    Notes
    -----
    For heavier tails than normal, degrees of freedom are reduced by the kurtosis (Shoemaker, The American Statistician
    57, 2003), estimated as by Bonett (2006) from at least five queries. docs/explanation/statistics.md has the coverage
    of prediction intervals.

    Examples
    --------
    >>> frame = pd.DataFrame({"name": "a", "qid": list("12345"), "measure": "AP", "value": [0.1, 0.5, 0.4, 0.9, 0.3]})
    >>> interval_width(frame, [5, 15])["ratio"].round(3).tolist()
    [0.576, 0.377]
    """
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    numbers = [n_more] if hasattr(n_more, "__index__") else list(n_more)
    more = np.array(sorted({whole("n_more", n) for n in numbers}), dtype=np.int64)
    if not len(more):
        raise ParameterError("n_more: none; wanted numbers of further queries")
    groups = table_on_own_topics(values).frame().groupby(["measure", "name"], sort=False)["value"]
    keys = [(name, measure, len(scores)) for (measure, name), scores in groups]
    moments = np.array([_moments(scores.to_numpy()) for _, scores in groups]).reshape(-1, 3)
    if (moments[:, 0] == 1).any():
        warn("an interval over topics needs at least two of them")
    n, std, kurtosis = moments.T[:, :, None]
    widths = {name: column.ravel() for name, column in _widths(n, std, kurtosis, more, level).items()}
    frame = pd.DataFrame([key for key in keys for _ in more], columns=["name", "measure", "n_qids"])
    frame = frame.assign(n_more=np.tile(more, len(keys)), level=level, method=METHOD, **widths)
    return frame[list(COLUMNS)]


def _moments(scores: Floats) -> tuple[float, float, float]:
    """Number, standard deviation (NaN for one score, 0 for equal scores), and kurtosis (at least the normal one)."""
    if len(scores) == 1 or np.ptp(scores) == 0:
        return len(scores), np.nan if len(scores) == 1 else 0.0, _NORMAL_KURTOSIS
    return len(scores), float(scores.std(ddof=1)), max(trimmed_kurtosis(scores), _NORMAL_KURTOSIS)


def _widths(n: Floats, std: Floats, kurtosis: Floats, more: Ints, level: float) -> dict[str, Floats]:
    """Columns of the frame, shape (n_groups, n_sizes), from (n_groups, 1) and (n_sizes,)."""
    from scipy import special

    total, tails = n + more, np.array([(1 - level) / 2, (1 + level) / 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        now, then = (2 * special.stdtrit(size - 1, tails[1]) / np.sqrt(size) for size in (n, total))
        ratio = np.where(std > 0, then / now, np.nan)
        # Degrees of freedom of a variance, n - 1 and m for the normal kurtosis.
        freedom_then, freedom = 2 * more / (kurtosis - 1), 2 * n / (kurtosis - (n - 3) / (n - 1))
        f = special.fdtri(freedom_then, freedom, tails[:, None, None])
        low, high = ratio * np.sqrt((n - 1 + more * f) / (total - 1))
    widths = {"width": np.broadcast_to(now * std, ratio.shape), "width_then": then * std}
    return {**widths, "ratio": ratio, "ratio_low": low, "ratio_high": high}
