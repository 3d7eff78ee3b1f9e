"""Intervals from replicas, and the number of replicas required by Hoeffding's inequality."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError, choice, warn, whole
from vbterrier.stats.topic_intervals import Intervals, bca_limits, check_level, proportion_below, tail_probabilities

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


REPLICA_METHODS = ("percentile", "bca", "normal")
# Differences below this are rounding errors of sums in a different order.
_EQUAL = 1e-9


def hoeffding_replicas(epsilon: float, delta: float, *, alpha: float = 0.0) -> int:
    """Smallest number of replicas whose mean is within ``epsilon`` of its expectation with probability ``1 - delta``.

    The smallest B with ``2 exp(-2 B ε² / R²) <= δ``. ``R`` is the range of a replica's score: 1 for ES (``alpha=0``),
    ``1 - (1 - sqrt(1 + α²))/2`` for VB_α, which can be negative; the paper's claim is for ES.

    Parameters
    ----------
    epsilon
        The tolerated error, above 0.
    delta
        The probability of a larger error, in (0, 1).
    alpha
        Weight of the variance penalty, at least 0.

    Raises
    ------
    ParameterError
        A value outside its range.

    Examples
    --------
    >>> hoeffding_replicas(0.05, 0.05), hoeffding_replicas(0.05, 0.05, alpha=1)
    (738, 1076)
    """
    width = _range_of(alpha)
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf):
        raise ParameterError(f"epsilon={epsilon!r}: wanted a number above 0")
    _check_probability(delta)
    return max(1, math.ceil(width * width * math.log(2 / delta) / (2 * epsilon * epsilon)))


def hoeffding_error(n_replicas: int, delta: float, *, alpha: float = 0.0) -> float:
    """Error that the mean of B replicas exceeds with probability at most ``delta``.

    ``ε = R sqrt(ln(2/δ) / (2 B))``, see :func:`hoeffding_replicas`.

    Raises
    ------
    ParameterError
        A value outside its range.

    Examples
    --------
    >>> round(hoeffding_error(1000, 0.05), 4)
    0.0429
    """
    whole("n_replicas", n_replicas)
    _check_probability(delta)
    return _range_of(alpha) * math.sqrt(math.log(2 / delta) / (2 * n_replicas))


def _range_of(alpha: float) -> float:
    if not (isinstance(alpha, (int, float)) and 0 <= alpha < math.inf):
        raise ParameterError(f"alpha={alpha!r}: wanted a number of at least 0")
    return (1 + math.hypot(1, alpha)) / 2


def _check_probability(delta: float) -> None:
    if not (isinstance(delta, (int, float)) and 0 < delta < 1):
        raise ParameterError(f"delta={delta!r}: wanted a number between 0 and 1, such as 0.05")


def replica_intervals(
    replicas: Floats,
    *,
    point: Floats | None = None,
    acceleration: Floats | None = None,
    level: float = 0.95,
    method: str = "percentile",
    source: str = "replicas",
) -> Intervals:
    """Confidence intervals of scores from their replicas.

    Parameters
    ----------
    replicas
        Scores, with the replicas along the first axis, shape (B, ...).
    point
        Scores without perturbation, shape (...); needed for ``"bca"``.
    acceleration
        Of the BCa interval, shape (...), see :func:`vbterrier.kernels.resample.acceleration_of`; defined if units, such
        as intents, were resampled. By default 0, which is stated in the name of the method.
    level
        Nominal coverage, 0 to 1.
    method
        ``"percentile"``: the quantiles ``(1 ± level)/2`` of the replicas. ``"bca"``: quantiles adjusted for the
        proportion of replicas below the point (ties count half) and for the acceleration (Efron 1987). ``"normal"``:
        the formula of the paper, ``mean_b ± z s_b/sqrt(B)``. It measures only the Monte Carlo error of the mean over
        replicas, which decreases with their number, and not the variation of scores between replicas.
    source
        The source of uncertainty, for the name of the method: ``"replicas"`` or ``"intents"``.

    Returns
    -------
    Intervals
        Limits of shape (...).

    Raises
    ------
    ParameterError
        An unknown method, a level outside (0, 1), no replicas, no point for ``"bca"``.

    Notes
    -----
    Percentile intervals have their nominal coverage if the truth deviates from the observation as replicas do:
    Dirichlet distributed π, scores or temperatures with the given noise, tags of calibrated weight (simulated coverage
    .94 to .95 at nominal 95 %). They do not correct bias: if 30 % of the tags are confused, confusing them again gives
    intervals that cover the score of the true tags with probability .55. For resampled intents, coverage depends on
    their number (percentile, bca): .85, .88 for 6 intents of very different weights; .90, .95 for 8 of similar
    weights; .95, .96 for 50. The normal formula covers the expectation over replicas with probability .95, the truth
    with probability .05.

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
        raise ParameterError("replicas: none; give at least one")
    if method == "percentile":
        low, high = np.quantile(replicas, tail_probabilities(level), axis=0)
        return Intervals(low, high, f"{source} (percentile)")
    if method == "normal":
        return _monte_carlo(replicas, level, source)
    if point is None:
        raise ParameterError("method='bca' needs the score without perturbation: give point")
    share = proportion_below(replicas, point, _EQUAL)
    outside = int(((share == 0) | (share == 1)).sum())
    if outside:
        warn(
            f"{outside} of {share.size} scores without perturbation lie outside the range of their replicas: the "
            "perturbation shifts these scores, and their BCa intervals end at the nearest replica; use "
            "method='percentile'"
        )
    low, high = bca_limits(replicas, share, 0.0 if acceleration is None else acceleration, tail_probabilities(level))
    return Intervals(low, high, f"{source} (bca{', acceleration 0' if acceleration is None else ''})")


def _monte_carlo(replicas: Floats, level: float, source: str) -> Intervals:
    from scipy import special

    name = f"{source} (normal, Monte Carlo error)"
    mean = replicas.mean(axis=0)
    if len(replicas) == 1:
        warn("the error of a mean needs at least two replicas")
        return Intervals(np.full_like(mean, np.nan), np.full_like(mean, np.nan), name)
    half_width = special.ndtri((1 + level) / 2) * replicas.std(axis=0, ddof=1) / np.sqrt(len(replicas))
    return Intervals(mean - half_width, mean + half_width, name)
