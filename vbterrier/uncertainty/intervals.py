"""Intervals of a system's mean, each named after the one source of uncertainty that it measures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOPIC_METHODS = ("percentile", "bca")
N_RESAMPLES = 2000
# Resampled values held in memory at a time.
_BATCH = 4_000_000


@dataclass(frozen=True)
class Interval:
    """The ends of an interval of a mean, and the method that gave them."""

    low: float
    high: float
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
    """The bootstrap interval of a mean over topics: how far it would move with other topics of the kind.

    Parameters
    ----------
    values
        A score of each topic, shape (n,).
    level
        Nominal coverage, 0 to 1.
    method
        ``"percentile"`` or ``"bca"`` (bias-corrected and accelerated; Efron 1987), both by ``scipy.stats.bootstrap``.
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

    Examples
    --------
    >>> topics_interval(np.array([0.2, 0.4, 0.9, 0.5]), seed=1).method
    'topics (percentile)'
    """
    if method not in TOPIC_METHODS:
        raise ParameterError(f"method={method!r}: wanted one of {', '.join(map(repr, TOPIC_METHODS))}")
    check_level(level)
    if len(values) < 2:  # noqa: PLR2004 - two topics are the least that can differ
        warnings.warn("an interval over topics needs at least two of them", DegenerateWarning, stacklevel=2)
        return Interval(np.nan, np.nan, f"topics ({method})")
    if np.ptp(values) == 0:
        return Interval(float(values[0]), float(values[0]), f"topics ({method})")
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
