"""Intervals of a system's mean, each named after the one source of uncertainty that it measures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.frames.parameters import choice, whole
from vbterrier.kernels.poisson import weighted_sums
from vbterrier.kernels.resample import stream
from vbterrier.uncertainty.topic_ends import METHODS
from vbterrier.uncertainty.topic_values import topic_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from vbterrier.uncertainty.topic_values import TopicValues

    Floats = NDArray[np.float64]

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
        the seed decide (Chamandy et al. 2012): :class:`~vbterrier.uncertainty.topic_statistics.TopicStatistics` gives
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
        warnings.warn("an interval over topics needs at least two of them", DegenerateWarning, stacklevel=3)
        return Intervals(ends[0], ends[1], f"topics ({method})")
    ends[:] = values[0]
    varies = np.flatnonzero(np.ptp(values, axis=0) > 0)
    step = max(1, _BATCH // n_resamples)
    for start in range(0, len(varies), step):
        these = varies[start : start + step]
        ends[:, these] = METHODS[method](values[:, these], tails_of(level), draws(), n_resamples)
    endless = int(np.isinf(ends).any(axis=0).sum())
    if endless:
        warnings.warn(
            f"{endless} of {ends.shape[1]} studentised intervals have no end: in too many resamples all topics score "
            "the same; take percentiles, or more topics",
            DegenerateWarning,
            stacklevel=3,
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
