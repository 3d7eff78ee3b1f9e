"""Confidence intervals of means over topics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, warn
from vbterrier.frames.parameters import choice, whole
from vbterrier.frames.values import KEY, values_of
from vbterrier.kernels.resample import (
    ENDLESS,
    means_of,
    quantiles_at,
    resampled_means,
    stream,
    studentised,
    weighted_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vbterrier.annotations import Floats


def share_below(replicas: Floats, point: Floats, equal: float | Floats) -> Floats:
    """The share of values below the point, ties (closer than ``equal``) counting half, shape (...) from (B, ...).

    >>> float(share_below(np.array([0.1, 0.2, 0.3, 0.4]), np.array(0.2), 1e-9))
    0.375
    """
    below, up_to = ((replicas < point - equal).mean(axis=0), (replicas <= point + equal).mean(axis=0))
    return np.asarray((below + up_to) / 2)


def bca_ends(replicas: Floats, share: Floats, acceleration: float | Floats, tails: Floats) -> Floats:
    """The quantiles of resampled values at levels moved by bias and acceleration, shape (2, ...).

    ``Φ(z_0 + (z_0 + z)/(1 - a (z_0 + z)))`` in place of each level ``Φ(z)``, with ``z_0 = Φ^-1(share)``.

    Parameters
    ----------
    replicas
        Resampled values, shape (B, ...).
    share
        Of them below the point, shape (...), see :func:`share_below`; where it is 0 or 1, half a value is taken.
    acceleration
        a, shape (...).
    tails
        The levels of both ends, shape (2,).

    >>> draws = np.linspace(0, 1, 101)
    >>> bca_ends(draws, np.array(0.5), 0.0, np.array([0.05, 0.95])).round(3).tolist()
    [0.05, 0.95]
    """
    from scipy import special

    bias = special.ndtri(np.clip(share, 0.5 / len(replicas), 1 - 0.5 / len(replicas)))
    moved = bias + special.ndtri(tails).reshape(2, *[1] * bias.ndim)
    shrunk = np.maximum(1 - acceleration * moved, np.finfo(np.float64).tiny)
    return quantiles_at(replicas, special.ndtr(bias + moved / shrunk))


# Means and values this close, beside the largest value, are one in another order of summation.
_EQUAL = 1e-12


def _percentile(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    return np.quantile(resampled_means(values, n_resamples, draws), tails, axis=0)


def _bca(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean = values.mean(axis=0)
    square, cube = (((values - mean) ** power).sum(axis=0) for power in (2, 3))
    means = resampled_means(values, n_resamples, draws)
    share = share_below(means, mean, _EQUAL * np.abs(values).max(axis=0))
    return bca_ends(means, share, cube / (6 * square**1.5), tails)


def _studentised(values: Floats, tails: Floats, draws: np.random.Generator, n_resamples: int) -> Floats:
    mean, spread = values.mean(axis=0), values.std(axis=0)
    scaled = (values - mean) / spread
    means, squares = np.split(resampled_means(np.hstack([scaled, scaled**2]), n_resamples, draws), 2, axis=1)
    reach = np.quantile(studentised(means, squares), tails[::-1], axis=0)
    # Quantiles that lie between a number and infinity, too.
    reach[np.abs(reach) > ENDLESS * _EQUAL] *= np.inf
    return np.asarray(mean - reach * spread)


def _poisson(values: Floats, tails: Floats, sums: Callable[[Floats, int], tuple[Any, Any]], n_resamples: int) -> Floats:
    return poisson_ends(means_of(*sums(values, n_resamples)), tails)


def poisson_ends(means: Floats, tails: Floats) -> Floats:
    """Quantiles of what :func:`~vbterrier.kernels.resample.means_of` gives; resamples without a topic say nothing."""
    resampled = means[1:]
    empty = np.isnan(resampled)
    if not empty.any():
        return np.quantile(resampled, tails, axis=0)
    ends = np.full((2, means.shape[1]), np.nan)
    some = ~empty.all(axis=0)
    ends[:, some] = np.nanquantile(resampled[:, some], tails, axis=0)
    return ends


def _student(values: Floats, tails: Floats, _draws: np.random.Generator, _n_resamples: int) -> Floats:
    from scipy import special

    n = len(values)
    reach = special.stdtrit(n - 1, tails)[:, None] * values.std(axis=0, ddof=1) / np.sqrt(n)
    return np.asarray(values.mean(axis=0) + reach)


METHODS: dict[str, Callable[..., Floats]] = {
    "percentile": _percentile,
    "bca": _bca,
    "studentised": _studentised,
    "poisson": _poisson,
    "normal": _student,
}


@dataclass(frozen=True, eq=False)
class TopicValues:
    """The values of some systems and measures that have the same topics.

    Parameters
    ----------
    names, measures
        Of each column.
    places
        The place of each column among those of all topics, in order of appearance.
    qids
        The topics, sorted.
    values
        Shape (n, m).
    """

    names: list[str]
    measures: list[str]
    places: list[int]
    qids: list[str]
    values: Floats


def topic_values(values: Any) -> list[TopicValues]:
    """Columns of a V frame, those with the same topics together. The order of rows decides that of columns, no more.

    Raises
    ------
    InputError
        See :func:`vbterrier.frames.values.values_of`.

    >>> frame = pd.DataFrame({"name": "a", "qid": ["2", "1", "1"], "measure": ["P", "P", "AP"], "value": [0.5, 1, 0]})
    >>> [(found.measures, found.qids, found.values.tolist()) for found in topic_values(frame)]
    [(['P'], ['1', '2'], [[1.0], [0.5]]), (['AP'], ['1'], [[0.0]])]
    """
    frame = values_of(values)
    return tables_of([frame[key] for key in KEY], frame["value"].to_numpy())


def tables_of(keys: Sequence[Any], values: Floats) -> list[TopicValues]:
    """:func:`topic_values` of columns known to be good: names, topics and measures, and a finite value of each."""
    if not len(values):
        return []
    (name, names), (measure, measures) = (pd.factorize(keys[at]) for at in (0, 2))
    qid, qids = pd.factorize(keys[1], sort=True)
    column, pairs = pd.factorize(name * len(measures) + measure)
    order = np.lexsort((qid, column))
    parts = np.split(order, np.flatnonzero(np.diff(column[order])) + 1)
    groups: dict[bytes, list[int]] = {}
    for place, rows in enumerate(parts):
        groups.setdefault(qid[rows].tobytes(), []).append(place)
    return [
        TopicValues(
            [names[pairs[place] // len(measures)] for place in places],
            [measures[pairs[place] % len(measures)] for place in places],
            places,
            list(qids[qid[parts[places[0]]]]),
            np.stack([values[parts[place]] for place in places], axis=1),
        )
        for places in groups.values()
    ]


COLUMNS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
TOPIC_METHODS = tuple(METHODS)
# Those that resample the topics.
RESAMPLED = TOPIC_METHODS[:4]
N_RESAMPLES = 2000
# Resampled means held in memory at a time.
_BATCH = 8_000_000


@dataclass(frozen=True)
class Interval:
    """The ends of an interval of a mean, and the method that gave them."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, eq=False)
class Intervals:
    """The ends of many intervals, arrays of one shape, and the method that gave them."""

    low: Floats
    high: Floats
    method: str


def intervals(
    values: Any, *, method: str = "percentile", level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """Intervals over topics of the mean of every system and measure.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value, as :func:`vbterrier.score` and ``pt.Experiment(perquery=True)`` give it.
    method, level, n_resamples, seed
        As for :func:`topics_intervals`. Systems and measures with the same topics share the resamples.

    Returns
    -------
    pandas.DataFrame
        The C frame: name, measure, value (the mean), low, high, level, method, n_qids, n_resamples, seed; a row for
        each system and measure, in order of appearance. The order of topics changes nothing.

    Raises
    ------
    InputError
        A value that is missing or not finite; a topic that stands twice.
    ParameterError
        As for :func:`topics_intervals`.

    Examples
    --------
    >>> values = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.2, 0.4, 0.9]})
    >>> intervals(values, method="normal").round(3)[["name", "measure", "value", "low", "high"]].values.tolist()
    [['a', 'AP', 0.5, -0.396, 1.396]]
    """
    _check(method, level, n_resamples, seed)
    made = interval_rows(topic_values(values), method, level=level, n_resamples=n_resamples, seed=seed)
    return pd.DataFrame(made, columns=list(COLUMNS))


def interval_rows(
    tables: Iterable[TopicValues], method: str, *, level: float, n_resamples: int, seed: int
) -> list[tuple[Any, ...]]:
    """The rows of :func:`intervals` of values that are laid out by topic already."""
    used = n_resamples if method in RESAMPLED else 0
    rows: dict[int, tuple[Any, ...]] = {}
    for table in tables:
        found = _topics_intervals(table.values, level, method, _draws(method, seed, "", table.qids), n_resamples)
        columns = zip(
            table.places, table.names, table.measures, table.values.mean(axis=0), found.low, found.high, strict=True
        )
        for place, name, measure, mean, low, high in columns:
            rows[place] = (name, measure, mean, low, high, level, found.method, len(table.qids), used, seed)
    return [rows[place] for place in sorted(rows)]


def topics_interval(
    values: Floats,
    *,
    level: float = 0.95,
    method: str = "percentile",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    name: str = "",
    qids: Sequence[str] | None = None,
) -> Interval:
    """The interval of a mean over topics: :func:`topics_intervals` of one column, of shape (n,).

    Examples
    --------
    >>> topics_interval(np.array([0.2, 0.4, 0.9, 0.5]), seed=1).method
    'topics (percentile)'
    """
    _check(method, level, n_resamples, seed)
    column = np.asarray(values, dtype=np.float64)[:, None]
    draws = _draws(method, seed, name, _numbered(column) if qids is None else qids)
    found = _topics_intervals(column, level, method, draws, n_resamples)
    return Interval(float(found.low[0]), float(found.high[0]), found.method)


def topics_intervals(
    values: Floats,
    *,
    level: float = 0.95,
    method: str = "percentile",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    name: str = "",
    qids: Sequence[str] | None = None,
) -> Intervals:
    """The intervals of means over topics: how far they would move with other topics of the kind.

    Parameters
    ----------
    values
        A score of each topic, a column for each mean, shape (n, m). All columns share the resamples.
    level
        Nominal coverage, 0 to 1.
    method
        ``"percentile"``: the quantiles ``(1 ± level)/2`` of the means of resampled topics. ``"bca"``: bias-corrected
        and accelerated (Efron 1987). ``"studentised"``: ``mean - q s/sqrt(n)`` with the quantiles q of ``t* = (mean* -
        mean)/(s*/sqrt(n))`` over resamples, also called bootstrap-t (Efron and Tibshirani 1993, section 12.5).
        ``"poisson"``: percentiles of ``Σ w x / Σ w`` with a Poisson number w of mean 1 for each topic, which its id and
        the seed decide (Chamandy et al. 2012): :class:`~vbterrier.stats.topic_statistics.TopicStatistics` gives
        the same ends for topics in parts.
        ``"normal"``: ``mean ± t s/sqrt(n)`` with Student's t of n - 1 degrees of freedom, which no resample decides.
    n_resamples
        Resamples of the topics.
    seed, name
        Decide the resamples together.
    qids
        The topics, for ``"poisson"``; the numbers of the rows unless given.

    Returns
    -------
    Intervals
        Ends of shape (m,). Equal ends where all topics score the same; NaN, with a warning, for a single topic, which
        says nothing about others. A studentised end is infinite, with a warning, where too many resamples
        hold topics that all score the same.

    Raises
    ------
    ParameterError
        An unknown method, a level outside (0, 1), no resample, a seed below 0.

    Notes
    -----
    Simulated shares of nominal 95 % intervals that hold the true mean (10,000 samples each, 1,999 resamples)::

        scores of topics                    n   percentile  bca   studentised  normal
        normal                              5      .84      .84      .95        .95
                                           10      .90      .90      .95        .95
                                           25      .93      .93      .95        .95
                                           50      .94      .93      .95        .95
                                          250      .95      .95      .95        .95
        every other one 0, others beta      5      .84      .88      .96        .90
                                           10      .90      .93      .99        .93
                                           25      .93      .95      .97        .94
                                           50      .94      .95      .96        .95
                                          250      .95      .95      .95        .95
        one of ten above 0                 25      .82      .87      .92        .82
                                           50      .89      .93      .98        .89
                                          250      .94      .95      .96        .94
        log-normal (skewness 6)            25      .87      .88      .93        .88
                                           50      .90      .91      .93        .90
                                          250      .93      .93      .94        .94

    Poisson weights held .88 of the normal scores at 5 topics, .94 at 25 and 50, .95 at 250; of those that are often 0
    .87, .94, .94, .95; of one of ten above 0 .84, .90, .94 from 25 topics on; of log-normal ones .87, .90, .93: as
    percentiles or a little more, in intervals 17 % wider at 5 topics, 3 % at 25 and 1 % at 50.

    Studentised intervals hold most and are the widest: twice as wide as others at 5 topics, a tenth at 25 to 50, and
    without an end where scores are seldom above 0. With 50 topics and more, bca costs nothing; with few of them, normal
    scores want Student's t.

    One set of resamples is made for all columns; sums over it are products of matrices. The acceleration is that of the
    jackknife of a mean, ``Σ (x - mean)³ / (6 (Σ (x - mean)²)^1.5)``. Memory is bounded: columns are done in blocks.

    Examples
    --------
    >>> scores = np.array([[0.2, 0.0], [0.4, 0.0], [0.9, 0.0], [0.5, 0.0]])
    >>> found = topics_intervals(scores, method="normal")
    >>> found.low.round(3).tolist(), found.high.round(3).tolist(), found.method
    ([0.032, 0.0], [0.968, 0.0], 'topics (normal)')
    """
    _check(method, level, n_resamples, seed)
    draws = _draws(method, seed, name, _numbered(values) if qids is None else qids)
    return _topics_intervals(values, level, method, draws, n_resamples)


def _numbered(values: Floats) -> list[str]:
    return list(map(str, range(len(values))))


def _draws(method: str, seed: int, name: str, qids: Sequence[str]) -> Callable[[], Any]:
    """What resamples topics: numbers of rows, or under "poisson" each topic by its id."""
    if method == "poisson":
        return lambda: partial(weighted_sums, qids, seed=seed, name=name)
    return lambda: stream(seed, name)


def _check(method: str, level: float, n_resamples: int, seed: int) -> None:
    choice("method", method, TOPIC_METHODS)
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)


def _topics_intervals(
    values: Floats, level: float, method: str, draws: Callable[[], Any], n_resamples: int
) -> Intervals:
    ends = np.full((2, values.shape[1]), np.nan)
    if len(values) < 2:  # noqa: PLR2004 - two topics are the least that can differ
        warn("an interval over topics needs at least two of them")
        return Intervals(ends[0], ends[1], f"topics ({method})")
    ends[:] = values[0]
    varies = np.flatnonzero(np.ptp(values, axis=0) > 0)
    step = max(1, _BATCH // n_resamples)
    for start in range(0, len(varies), step):
        these = varies[start : start + step]
        ends[:, these] = METHODS[method](values[:, these], tails_of(level), draws(), n_resamples)
    endless = int(np.isinf(ends).any(axis=0).sum())
    if endless:
        warn(
            f"{endless} of {ends.shape[1]} studentised intervals have no end: in too many resamples all topics score "
            "the same; take percentiles, or more topics"
        )
    return Intervals(ends[0], ends[1], f"topics ({method})")


def unjudged_interval(means: Floats, stds: Floats, *, level: float = 0.95) -> Interval:
    """The interval of a mean over these very topics: how far it would move if their unjudged documents were judged.

    Topics are independent, so the variance of their mean is ``Σ σ_t² / n²``; the normal quantile is taken, cut to
    [0, 1].

    Parameters
    ----------
    means, stds
        Expected score and its standard deviation for each topic, shape (n,).
    level
        Nominal coverage, 0 to 1.

    Examples
    --------
    >>> interval = unjudged_interval(np.array([0.5, 0.7]), np.array([0.0, 0.0]))
    >>> interval.low, interval.high, interval.method
    (0.6, 0.6, 'unjudged (normal)')
    """
    check_level(level)
    from scipy import special

    mean = float(means.mean())
    reach = float(special.ndtri((1 + level) / 2)) * float(np.sqrt((stds**2).sum())) / len(means)
    return Interval(max(mean - reach, 0.0), min(mean + reach, 1.0), "unjudged (normal)")


def check_level(level: float) -> None:
    """Refuse a level that is no share strictly between 0 and 1.

    Raises
    ------
    ParameterError
    """
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise ParameterError(f"level={level}: wanted a number between 0 and 1, as 0.95")


def tails_of(level: float) -> Floats:
    """The levels of both ends of an interval that leaves as much out below as above.

    >>> tails_of(0.9).round(3).tolist()
    [0.05, 0.95]
    """
    return np.array([(1 - level) / 2, (1 + level) / 2])
