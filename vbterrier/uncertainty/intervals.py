"""Intervals of a system's mean, each named after the one source of uncertainty that it measures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.frames.parameters import choice
from vbterrier.kernels.bca import quantiles_at
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOPIC_METHODS = ("percentile", "bca", "normal")
REPLICA_METHODS = ("percentile", "bca", "normal")
N_RESAMPLES = 2000
# Resampled values held in memory at a time.
_BATCH = 4_000_000
# Scores this close are one score: sums in another order.
_EQUAL = 1e-9


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


def topics_interval(
    values: Floats,
    *,
    level: float = 0.95,
    method: str = "percentile",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    name: str = "",
) -> Interval:
    """The interval of a mean over topics: how far it would move with other topics of the kind.

    Parameters
    ----------
    values
        A score of each topic, shape (n,).
    level
        Nominal coverage, 0 to 1.
    method
        ``"percentile"`` or ``"bca"`` (bias-corrected and accelerated; Efron 1987), both by ``scipy.stats.bootstrap``;
        or ``"normal"``, ``mean ± t s/sqrt(n)`` with Student's t of n - 1 degrees of freedom, which no resample decides.
    n_resamples
        Resamples of the topics.
    seed, name
        Decide the resamples together.

    Returns
    -------
    Interval
        Equal ends when all topics score the same; NaN for a single topic, which says nothing about others.

    Raises
    ------
    ParameterError
        An unknown method, a level outside (0, 1).

    Notes
    -----
    The bootstrap needs topics. Simulated shares of nominal 95 % intervals that hold the true mean (percentile, bca,
    normal): normal scores, 5 topics .85, .83, .95; 10 topics .90, .90, .95; 20 topics .93, .92, .95. Scores that are 0
    for every other topic: 5 topics .85, .87, .89; 10 topics .89, .93, .93; from 50 topics on all about .94.

    Examples
    --------
    >>> topics_interval(np.array([0.2, 0.4, 0.9, 0.5]), seed=1).method
    'topics (percentile)'
    """
    choice("method", method, TOPIC_METHODS)
    check_level(level)
    if len(values) < 2:  # noqa: PLR2004 - two topics are the least that can differ
        warnings.warn("an interval over topics needs at least two of them", DegenerateWarning, stacklevel=2)
        return Interval(np.nan, np.nan, f"topics ({method})")
    if np.ptp(values) == 0:
        return Interval(float(values[0]), float(values[0]), f"topics ({method})")
    if method == "normal":
        return _student(values, level)
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        ends = stats.bootstrap(  # type: ignore[call-overload]  # its stubs know the newest names only
            (values,),
            np.mean,
            confidence_level=level,
            method={"percentile": "percentile", "bca": "BCa"}[method],
            n_resamples=n_resamples,
            batch=max(1, _BATCH // len(values)),
            random_state=stream(seed, name),
        ).confidence_interval
    return Interval(float(ends.low), float(ends.high), f"topics ({method})")


def _student(values: Floats, level: float) -> Interval:
    from scipy import special

    n, mean = len(values), float(values.mean())
    reach = float(special.stdtrit(n - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / float(np.sqrt(n))
    return Interval(mean - reach, mean + reach, "topics (normal)")


def replica_intervals(
    replicas: Floats,
    *,
    point: Floats | None = None,
    acceleration: Floats | None = None,
    level: float = 0.95,
    method: str = "percentile",
    source: str = "replicas",
) -> Intervals:
    """Intervals of scores from their replicas.

    Parameters
    ----------
    replicas
        Scores, the replicas along the first axis, shape (B, ...).
    point
        Scores without perturbation, shape (...); needed for ``"bca"``.
    acceleration
        Of the BCa interval, shape (...), see :func:`vbterrier.uncertainty.acceleration_of`: known where units were
        resampled, as intents are.
        Without it 0 is taken, and the method's name says so.
    level
        Nominal coverage, 0 to 1.
    method
        ``"percentile"``: the quantiles ``(1 ± level)/2`` of the replicas. ``"bca"``: quantiles moved by the share of
        replicas below the point (ties count half) and by the acceleration (Efron 1987). ``"normal"``: the formula that
        the paper prints, ``mean_b ± z s_b/sqrt(B)``. It measures the Monte Carlo error of the mean of replicas alone,
        which more replicas make as small as one likes, and says nothing of how far scores move between replicas.
    source
        What the replicas perturb, for the method's name: ``"replicas"`` or ``"intents"``.

    Returns
    -------
    Intervals
        Ends of shape (...).

    Raises
    ------
    ParameterError
        An unknown method, a level outside (0, 1), no replicas, no point where one is needed.

    Notes
    -----
    Percentiles hold a truth that differs from what was observed as replicas differ from it: π drawn from the Dirichlet
    law, scores or temperatures with that noise, tags that are right as often as they state (simulated: .94 to .95 of
    nominal 95 %). They do not undo a distortion: with tags of which 30 % are confused, confusing them once more gives
    intervals that hold the score of the true tags .55 of the time. Resampled intents need intents (percentile, bca): 6
    of very different weights .85, .88; 8 of similar ones .90, .95; 50 of them .95, .96. The normal formula holds the
    expectation over replicas .95 of the time, the truth .05 of the time.

    Examples
    --------
    >>> draws = np.linspace(0, 1, 101)
    >>> found = replica_intervals(draws, level=0.9)
    >>> found.low.round(3).tolist(), found.high.round(3).tolist(), found.method
    (0.05, 0.95, 'replicas (percentile)')
    >>> replica_intervals(draws, method="normal").method
    'replicas (normal, Monte Carlo error)'
    """
    choice("method", method, REPLICA_METHODS)
    check_level(level)
    if not len(replicas):
        raise ParameterError("replicas: none; make one at least")
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "percentile":
        low, high = np.quantile(replicas, tails, axis=0)
        return Intervals(low, high, f"{source} (percentile)")
    if method == "normal":
        return _monte_carlo(replicas, level, source)
    if point is None:
        raise ParameterError("method='bca' needs the score without perturbation: give point")
    low, high = quantiles_at(replicas, _bca_levels(replicas, point, acceleration, tails))
    return Intervals(low, high, f"{source} (bca{', acceleration 0' if acceleration is None else ''})")


def _monte_carlo(replicas: Floats, level: float, source: str) -> Intervals:
    from scipy import special

    name = f"{source} (normal, Monte Carlo error)"
    mean = replicas.mean(axis=0)
    if len(replicas) == 1:
        warnings.warn("the error of a mean needs two replicas at least", DegenerateWarning, stacklevel=3)
        return Intervals(np.full_like(mean, np.nan), np.full_like(mean, np.nan), name)
    reach = special.ndtri((1 + level) / 2) * replicas.std(axis=0, ddof=1) / np.sqrt(len(replicas))
    return Intervals(mean - reach, mean + reach, name)


def _bca_levels(replicas: Floats, point: Floats, acceleration: Floats | None, tails: Floats) -> Floats:
    """The levels of the quantiles that are the ends, shape (2, ...)."""
    from scipy import special

    n = len(replicas)
    share = ((replicas < point - _EQUAL).mean(axis=0) + (replicas <= point + _EQUAL).mean(axis=0)) / 2
    outside = int(((share == 0) | (share == 1)).sum())
    if outside:
        warnings.warn(
            f"{outside} of {share.size} scores without perturbation lie outside all of their replicas: these were "
            "shifted, not spread, and their BCa intervals end at the nearest replica; look at percentiles",
            DegenerateWarning,
            stacklevel=3,
        )
    bias = special.ndtri(np.clip(share, 0.5 / n, 1 - 0.5 / n))
    moved = bias + special.ndtri(tails).reshape(2, *[1] * bias.ndim)
    shrunk = 1 - (0.0 if acceleration is None else acceleration) * moved
    levels: Floats = special.ndtr(bias + moved / np.maximum(shrunk, np.finfo(np.float64).tiny))
    return levels


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
