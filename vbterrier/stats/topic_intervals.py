"""Confidence intervals of means over topics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, check_level, choice, warn, whole
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ranges import UNKNOWN, mean_bounds
from vbterrier.frames.score_table import (
    ScoreTable,
    answers_by,
    linearised_on,
    refuse_ratios_of_means,
    with_answers,
)
from vbterrier.kernels import linking
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.mean_limits import SampledQueries, lower_limit, upper_limit
from vbterrier.kernels.normal import normal_cdf, normal_quantile
from vbterrier.kernels.resample import (
    INFINITY_SUBSTITUTE,
    bounded_limits,
    constant_limits,
    quantiles_at,
    resampled_means,
    stream,
    studentised_means,
    weighted_means,
    weighted_sums,
)
from vbterrier.kernels.student_t import t_quantile
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Bools, Floats
    from vbterrier.frames.contracts import Bounds


COLUMNS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
N_RESAMPLES = 2000
BOUNDED, UNSEEN = "bounded", "unseen"
# The method of intervals of pooled scores that are the same on all topics, for any method of others.
CONSTANT_METHOD = f"topics ({BOUNDED})"
# Resampled means held in memory at a time.
_BLOCK_CELLS = 8_000_000


@dataclass(frozen=True)
class Interval:
    """The limits of an interval of a mean, and the method."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, eq=False)
class Intervals:
    """The limits of several intervals, arrays of one shape, and the method.

    ``constant``: True for intervals of scores that are the same on all topics, which are ``"bounded"``.
    """

    low: Floats
    high: Floats
    method: str
    constant: Bools | None = None

    def interval_method(self, place: int) -> str:
        """The method of an interval; that asked for if there is none."""
        is_bounded = self.constant is not None and bool(self.constant[place] and np.isfinite(self.low[place]))
        return CONSTANT_METHOD if is_bounded else self.method


@with_usual_errors
def intervals(
    values: Any,
    *,
    method: str = UNSEEN,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    bounds: Bounds | None = None,
    sample: Callable[[Sequence[str]], SampledQueries] | None = None,
) -> pd.DataFrame:
    """Confidence intervals over topics of the mean of every system and measure.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value, as returned by :func:`vbterrier.score` and
        ``pt.Experiment(perquery=True)``. Linking measures are ratios of sums, which each resample recomputes from the
        columns gold and answer of :func:`vbterrier.score`.
    method, level, n_resamples, seed
        As for :func:`topics_intervals`. Systems and measures with the same topics share the resamples.
    bounds
        The smallest and the largest possible score, the same for all measures; by default the range of each measure
        (:func:`~vbterrier.frames.ranges.score_bounds`).
    sample
        How the topics were sampled, by their ids: weights and clusters, for ``"unseen"``.

    Returns
    -------
    pandas.DataFrame
        The C frame: name, measure, value (the mean), low, high, level, method, n_qids, n_resamples, seed; a row for
        each system and measure, in order of appearance, by system. The result does not depend on the order of topics.
        Limits are within the bounds, if they are known; ``"unseen"`` and ``"bounded"`` intervals are withheld (NaN)
        otherwise.

    Raises
    ------
    InputError, ParameterError
        A value that is missing, infinite or duplicated; a score outside ``bounds``; a ratio of sums without the columns
        gold and answer, for a method that resamples; an unknown option.

    Examples
    --------
    >>> values = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.2, 0.4, 0.9]})
    >>> intervals(values).round(3)[["name", "measure", "value", "low", "high"]].values.tolist()
    [['a', 'AP', 0.5, 0.0, 1.0]]
    >>> fifty = pd.DataFrame({"name": "a", "qid": range(50), "measure": "AP", "value": 0.0})
    >>> intervals(fifty).round(4)[["low", "high"]].values.tolist()
    [[0.0, 0.0711]]
    """
    _check(method, level, n_resamples, seed)
    scores = ScoreTable.of_frame(values)
    if bounds is not None:
        low, high = bounds
        if not low < high:
            raise ParameterError(f"bounds={bounds}: wanted the smallest and the largest possible score, as (0, 1)")
        if ((scores.values < low) | (scores.values > high)).any():
            raise InputError(f"values: scores are outside bounds={bounds}; wanted wider bounds")
    if sample is not None and method != UNSEEN:
        raise ParameterError(f"method={method!r} has no weights or clusters; use {UNSEEN!r}")
    refuse_ratios_of_means(scores.measures)
    answers = with_answers(scores, pandas_frame(values, "values"))
    scores = linearised_on(answers, sample).of(scores.measures)
    drawn: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    rows = interval_rows(scores, method, **drawn, bounds=bounds, sample=sample, answers=answers)
    return pd.DataFrame([rows[place] for place in sorted(rows)], columns=list(COLUMNS))


def interval_rows(
    scores: ScoreTable,
    method: str,
    *,
    level: float,
    n_resamples: int,
    seed: int,
    bounds: Bounds | None = None,
    sample: Callable[[Sequence[str]], SampledQueries] | None = None,
    answers: ScoreTable,
) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return the rows of :func:`intervals` by the places of system and measure in a table.

    ``sample``: how topics were sampled, by their ids; ``answers``: a table with the answers of ratios.
    """
    used = n_resamples if method in RESAMPLED_METHODS else 0
    ranges = np.array([mean_bounds(measure) if bounds is None else bounds for measure in scores.measures])
    rows: dict[tuple[int, int], tuple[Any, ...]] = {}
    for places, qids, values in scores.columns():
        topic_sample = SampledQueries.equal(len(qids)) if sample is None else sample(qids)
        draws = _draws(method, seed, "", qids)
        limits = _topics_intervals(values, level, method, draws, n_resamples, ranges[places[:, 1]].T, topic_sample)
        columns = zip(places.tolist(), topic_sample.mean(values), limits.low, limits.high, strict=True)
        for column, ((system, measure), mean, low, high) in enumerate(columns):
            made = limits.interval_method(column)
            drawn = 0 if made == CONSTANT_METHOD and method != BOUNDED else used
            name = scores.names[system], scores.measures[measure]
            rows[system, measure] = (*name, mean, low, high, level, made, len(qids), drawn, seed)
    if method in RATIO_METHODS:
        _recompute_ratios(rows, scores, answers, method, level=level, n_resamples=n_resamples, seed=seed)
    return rows


def _recompute_ratios(
    rows: dict[tuple[int, int], tuple[Any, ...]], scores: ScoreTable, answers: ScoreTable, method: str, **drawn: Any
) -> None:
    """Replace the limits of ratios of sums by those of the ratios of resampled answers, where resamples differ."""
    for measure, of_answers in answers_by(scores.measures).items():
        at, place = scores.measures.index(measure), linking.figure_index(measure)
        figure, slopes = (partial(each, place=place) for each in (linking.figure, linking.slopes))
        for system, name in enumerate(scores.names):
            values, cells = scores.values[at, system], answers.rows(of_answers, [name], scores.qids)[0]
            has_value = ~np.isnan(values)
            if np.isnan(cells[has_value]).any():
                raise InputError(
                    f"values: {measure} of {name!r} is a ratio of sums, which resamples of values do not give; keep "
                    "the columns gold and answer of vbterrier.score, or use method='unseen'"
                )
            if has_value.sum() < 2:  # noqa: PLR2004 - resamples of one topic do not differ
                continue
            of_known = np.where(has_value, cells, np.nan)[None, None]
            ((_, qids, answer_counts),) = ScoreTable([of_answers], [name], scores.qids, of_known).columns()
            limits = np.clip(ratio_limits(answer_counts[:, 0], qids, figure, slopes, method, **drawn), 0, 1)
            if np.isfinite(limits).all():
                head, resampled = rows[system, at][:3], (drawn["n_resamples"], drawn["seed"])
                rows[system, at] = (*head, *limits, drawn["level"], f"topics ({method})", len(qids), *resampled)


def topics_interval(values: Floats, **options: Any) -> Interval:
    """Confidence interval of a mean over topics: :func:`topics_intervals` of one column, of shape (n,)."""
    interval = topics_intervals(np.asarray(values, dtype=np.float64)[:, None], **options)
    return Interval(float(interval.low[0]), float(interval.high[0]), interval.interval_method(0))


def method_within(method: str, bounds: Bounds) -> str:
    """The method of an interval, and Student's t instead of ``"unseen"`` if the range of scores is unknown.

    >>> method_within("unseen", (0.0, 1.0)), method_within("unseen", (0.0, float("inf")))
    ('unseen', 'normal')
    """
    return "normal" if method == UNSEEN and not np.isfinite(bounds).all() else method


def topics_intervals(
    values: Floats,
    *,
    level: float = 0.95,
    method: str = "percentile",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    name: str = "",
    qids: Sequence[str] | None = None,
    bounds: Bounds = UNKNOWN,
) -> Intervals:
    """Confidence intervals of means over topics, for the population that the topics are a sample of.

    - ``values``: the score of each topic, a column for each mean, shape (n, m). All columns share the resamples.
    - ``method``: ``"unseen"``: Student's t, corrected for skewness on each side, and for topics that were not sampled
      and have the smallest or the largest possible score (:func:`~vbterrier.kernels.mean_limits.lower_limit`).
      ``"percentile"``: the quantiles ``(1 ± level)/2`` of the means of resampled topics. ``"bca"``:
      bias-corrected and accelerated (Efron 1987), with the acceleration of the jackknife of a mean. ``"studentised"``:
      ``mean - q s/sqrt(n)`` with the quantiles q of ``t* = (mean* - mean)/(s*/sqrt(n))`` over resamples, also called
      bootstrap-t (Efron and Tibshirani 1993, section 12.5). ``"poisson"``: percentiles of ``Σ w x / Σ w`` with Poisson
      weights w of mean 1, determined by topic id and seed (Chamandy et al. 2012);
      :class:`~vbterrier.stats.topic_statistics.TopicStatistics` computes the same limits from batches of topics.
      ``"normal"``: ``mean ± t s/sqrt(n)`` with Student's t of n - 1 degrees of freedom, without resampling.
      ``"bounded"``: limits that cover at least the level for any distribution of scores within the bounds, see
      :func:`~vbterrier.kernels.resample.mean_draws`; for scores of 0 and 1, those of Clopper and Pearson.
    - ``seed, name``: together determine the resamples.
    - ``qids``: topic ids, for ``"poisson"``; row numbers by default.
    - ``bounds``: the smallest and the largest possible score; infinite if unknown. Limits are clipped to them.

    Returns limits of shape (m,); NaN, with a warning, for a single topic, and without bounds for ``"unseen"`` and
    ``"bounded"``. If all topics have the same score, the spread of other topics is unknown: limits are those of
    ``"bounded"``, which is then the method of the interval (the same as those of ``"unseen"``). A studentised limit is
    infinite, with a warning, if in too many resamples all topics have the same score and there are no bounds.

    docs/explanation/statistics.md has the simulated coverage. Bounded limits are valid for any scores within the bounds
    by conjecture, and wide if scores vary less than their range allows.
    """
    _check(method, level, n_resamples, seed)
    draws = _draws(method, seed, name, list(map(str, range(len(values)))) if qids is None else qids)
    columns = np.repeat(np.array(bounds, dtype=np.float64)[:, None], values.shape[1], axis=1)
    return _topics_intervals(values, level, method, draws, n_resamples, columns, SampledQueries.equal(len(values)))


def unjudged_interval(means: Floats, variances: Floats, *, level: float = 0.95) -> Interval:
    """Interval of the mean over these topics, given the uncertainty about their unjudged documents.

    The variance of the mean is ``Σ v_t / n²`` with ``v_t = Σ_s Cov(X_t, X_s)``, the variance of a topic's score if
    topics are independent. The interval uses the normal quantile and is clipped to [0, 1].
    """
    check_level(level)
    mean = float(means.mean())
    half_width = float(normal_quantile((1 + level) / 2)) * float(np.sqrt(max(variances.sum(), 0.0))) / len(means)
    return Interval(max(mean - half_width, 0.0), min(mean + half_width, 1.0), "unjudged (normal)")


def _draws(method: str, seed: int, name: str, qids: Sequence[str]) -> Callable[[], Any]:
    """Return a factory of the random source of a method: of row numbers, or for "poisson" of weights by topic id."""
    if method == "poisson":
        return lambda: partial(weighted_sums, qids, seed=seed, name=name)
    return lambda: stream(seed, name)


def _check(method: str, level: float, n_resamples: int, seed: int) -> None:
    choice("method", method, TOPIC_METHODS)
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)


def _topics_intervals(
    values: Floats,
    level: float,
    method: str,
    draws: Callable[[], Any],
    n_resamples: int,
    bounds: Floats,
    sample: SampledQueries,
) -> Intervals:
    """Limits, with the smallest and largest possible mean of each column, shape (2, m)."""
    limits = np.full((2, values.shape[1]), np.nan)
    if len(values) < 2:  # noqa: PLR2004 - a standard deviation needs two topics
        warn("an interval over topics needs at least two topics")
        return Intervals(limits[0], limits[1], f"topics ({method})")
    tails = tail_probabilities(level)
    varies = np.ptp(values, axis=0) > 0
    if method == UNSEEN:
        limits = _of_unseen(values, tails[0], bounds, sample)
    elif not varies.all():
        limits[:, ~varies] = constant_limits(values[0, ~varies], len(values), bounds[:, ~varies], tails)
    if method == BOUNDED:
        for ends in np.unique(bounds[:, varies], axis=1).T:
            these = varies & (bounds == ends[:, None]).all(axis=0)
            limits[:, these] = bounded_limits(values[:, these], (ends[0], ends[1]), tails, n_resamples, draws())
    elif method != UNSEEN:
        step, chosen = max(1, _BLOCK_CELLS // n_resamples), np.flatnonzero(varies)
        for start in range(0, len(chosen), step):
            these = chosen[start : start + step]
            limits[:, these] = METHODS[method](values[:, these], tails, draws(), n_resamples)
    limits = np.clip(limits, *bounds)
    _warn_of_limits(limits, varies, method)
    return Intervals(limits[0], limits[1], f"topics ({method})", ~varies if method != UNSEEN else None)


def _of_unseen(values: Floats, tail: float, bounds: Floats, sample: SampledQueries) -> Floats:
    """Limits of :mod:`vbterrier.kernels.mean_limits` on both sides, shape (2, m); NaN without bounds."""
    exact, left, rest = sample.split_certain(values)
    moments, finite = sample.drawn_queries.moments(rest), np.isfinite(bounds).all(axis=0)
    worst, best = -np.where(finite, bounds[0], 0.0), np.where(finite, bounds[1], 0.0)
    low, high = lower_limit(moments, tail, worst, t_quantile), upper_limit(moments, tail, best, t_quantile)
    return np.where(finite, np.stack([exact + left * low, exact + left * high]), np.nan)


def _warn_of_limits(limits: Floats, varies: Bools, method: str) -> None:
    withheld = np.isnan(limits).any(axis=0)
    if (withheld & ~varies).any():
        warn(
            f"{int((withheld & ~varies).sum())} of {len(varies)} intervals are withheld: all topics have the same "
            "score, and the range of the measure is unknown, so that nothing is known about other topics"
        )
    if (withheld & varies).any():
        warn(
            f"{int((withheld & varies).sum())} of {len(varies)} intervals are withheld: method={method!r} needs a "
            "measure with a known range of scores; use another method, as 'normal', or bounds= of stats.intervals"
        )
    unbounded = int(np.isinf(limits).any(axis=0).sum())
    if unbounded:
        warn(
            f"{unbounded} of {len(varies)} {method} intervals are unbounded: in too many resamples all topics "
            "have the same score; use method='percentile', or more topics"
        )


def tail_probabilities(level: float) -> Floats:
    """Return the probabilities of both limits of an equal-tailed interval."""
    return np.array([(1 - level) / 2, (1 + level) / 2])


def proportion_below(replicas: Floats, point: Floats, equal: float | Floats) -> Floats:
    """Return the proportion of values below a point, counting ties (closer than ``equal``) half: (B, ...) to (...)."""
    below, up_to = ((replicas < point - equal).mean(axis=0), (replicas <= point + equal).mean(axis=0))
    return np.asarray((below + up_to) / 2)


def bca_limits(replicas: Floats, share: Floats, acceleration: float | Floats, tails: Floats) -> Floats:
    """Return the limits of bias-corrected and accelerated (BCa) intervals, shape (2, ...).

    They are quantiles of resampled values at ``Φ(z_0 + (z_0 + z)/(1 - a (z_0 + z)))`` instead of ``Φ(z)``, with
    ``z_0 = Φ^-1(share)`` of the proportion of values below the point; proportions 0 and 1 are moved by half a value.
    """
    bias = normal_quantile(np.clip(share, 0.5 / len(replicas), 1 - 0.5 / len(replicas)))
    moved = bias + normal_quantile(tails).reshape(2, *[1] * bias.ndim)
    shrunk = np.maximum(1 - acceleration * moved, np.finfo(np.float64).tiny)
    return quantiles_at(replicas, normal_cdf(bias + moved / shrunk))


# The methods. Each returns the limits, shape (2, m).


def _percentile(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    return np.quantile(resampled_means(values, n_resamples, draws), tails, axis=0)


def _bca(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean = values.mean(axis=0)
    square, cube = (((values - mean) ** power).sum(axis=0) for power in (2, 3))
    means = resampled_means(values, n_resamples, draws)
    share = proportion_below(means, mean, ROUNDING * np.abs(values).max(axis=0))
    return bca_limits(means, share, cube / (6 * square**1.5), tails)


def _studentised_limits(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean, std = values.mean(axis=0), values.std(axis=0)
    scaled = (values - mean) / std
    means, squares = np.split(resampled_means(np.hstack([scaled, scaled**2]), n_resamples, draws), 2, axis=1)
    t = np.quantile(studentised_means(means, squares), tails[::-1], axis=0)
    # Quantiles interpolated between a finite and an infinite value are infinite, too.
    t[np.abs(t) > INFINITY_SUBSTITUTE * ROUNDING] *= np.inf
    return np.asarray(mean - t * std)


# The methods that recompute a ratio of sums.
RATIO_METHODS = ("percentile", "bca", "studentised", "poisson")


def ratio_limits(
    cells: Floats,
    qids: Sequence[str],
    figure: Callable[[Floats], Floats],
    slopes: Callable[[Floats], Floats],
    method: str,
    *,
    level: float,
    n_resamples: int,
    seed: int,
) -> tuple[float, float]:
    """Return the limits of an interval of a ratio of sums, which each resample of topics and each jackknife recomputes.

    - ``cells``, ``qids``: the kind of each topic, a whole number, and its id, shape (n,)
    - ``figure``: the ratio from shares of the kinds, (...) of (..., n_kinds); NaN if undefined
    - ``slopes``: the derivative of the ratio by each share, (..., n_kinds) of (..., n_kinds), the standard error of
      ``"studentised"``, which each resample recomputes, too
    - ``method``: one of ``RATIO_METHODS``

    Both limits are NaN if the ratio is undefined, or the same for all resamples.
    """
    kinds = np.arange(int(cells.max()) + 1)
    is_kind = (cells[:, None] == kinds).astype(np.float64)
    share, n, tails = is_kind.mean(axis=0), len(cells), tail_probabilities(level)
    draws = _draws(method, seed, "", qids)()
    if method == "poisson":
        shares = weighted_means(*draws(is_kind, n_resamples))[1:]
    else:
        shares = resampled_means(is_kind, n_resamples, draws)
    replicas, point = figure(shares), figure(share)
    shares, replicas = shares[np.isfinite(replicas)], replicas[np.isfinite(replicas)]
    if not np.isfinite(point) or not len(replicas) or np.ptp(replicas) <= ROUNDING:
        return np.nan, np.nan
    if method == "studentised":
        # Ratios do not depend on the sum of the shares, so that the mean slope is 0.
        error, errors = (
            np.sqrt((kind_shares * slopes(kind_shares) ** 2).sum(axis=-1)) for kind_shares in (share, shares)
        )
        distance = replicas - point
        flat = np.where(np.abs(distance) <= ROUNDING, 0.0, np.copysign(INFINITY_SUBSTITUTE, distance))
        t = np.quantile(np.divide(distance, errors, out=flat, where=errors > ROUNDING), tails[::-1])
        t[np.abs(t) > INFINITY_SUBSTITUTE * ROUNDING] *= np.inf
        return float(point - t[0] * error), float(point - t[1] * error)
    method = "percentile" if method == "poisson" else method
    if method == "percentile":
        low, high = np.quantile(replicas, tails)
        return float(low), float(high)
    # The ratio without one topic, by its kind.
    without = figure((share * n - np.eye(len(kinds))) / (n - 1))[cells.astype(np.int64)]
    change = without[np.isfinite(without)]
    change = change.mean() - change
    square = float((change**2).sum())
    acceleration = float((change**3).sum()) / (6 * square**1.5) if square > 0 else 0.0
    low, high = bca_limits(replicas, proportion_below(replicas, point, ROUNDING), acceleration, tails)
    return float(low), float(high)


def _poisson(values: Floats, tails: Floats, sums: Callable[[Floats, int], tuple[Any, Any]], n_resamples: int) -> Floats:
    return poisson_limits(weighted_means(*sums(values, n_resamples)), tails)


def poisson_limits(means: Floats, tails: Floats) -> Floats:
    """Return quantiles of the means of :func:`~vbterrier.kernels.resample.weighted_means`, ignoring empty resamples."""
    resampled = means[1:]
    empty = np.isnan(resampled)
    if not empty.any():
        return np.quantile(resampled, tails, axis=0)
    limits = np.full((2, means.shape[1]), np.nan)
    some = ~empty.all(axis=0)
    limits[:, some] = np.nanquantile(resampled[:, some], tails, axis=0)
    return limits


def _student(values: Floats, tails: Floats, _draws: np.random.Generator, _n_resamples: int) -> Floats:
    n = len(values)
    deviation = t_quantile(n - 1, tails)[:, None] * values.std(axis=0, ddof=1) / np.sqrt(n)
    return np.asarray(values.mean(axis=0) + deviation)


METHODS: dict[str, Callable[..., Floats]] = {
    "percentile": _percentile,
    "bca": _bca,
    "studentised": _studentised_limits,
    "poisson": _poisson,
    "normal": _student,
}
TOPIC_METHODS = (UNSEEN, *METHODS, BOUNDED)
# The methods that draw random numbers.
RESAMPLED_METHODS = ("percentile", "bca", "studentised", "poisson", BOUNDED)
