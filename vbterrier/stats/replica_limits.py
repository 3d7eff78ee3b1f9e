"""Intervals from replicas, and the number of replicas by Hoeffding's inequality."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError, warn
from vbterrier.frames.parameters import choice
from vbterrier.stats.topic_intervals import Intervals, bca_limits, check_level, proportion_below, tail_probabilities

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


def hoeffding_replicas(epsilon: float, delta: float, *, alpha: float = 0.0) -> int:
    """The fewest replicas whose mean is within ``epsilon`` of its expectation with probability ``1 - delta``.

    The smallest B with ``2 exp(-2 B ε² / R²) <= δ``. ``R`` is the range of one replica's score: 1 for ES (``alpha=0``),
    ``1 - (1 - sqrt(1 + α²))/2`` for VB_α, which can be negative; the paper's claim is for ES.

    Parameters
    ----------
    epsilon
        The error allowed, above 0.
    delta
        The probability with which it may be larger, in (0, 1).
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
    width = _width(alpha)
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf):
        raise ParameterError(f"epsilon={epsilon!r}: wanted a number above 0")
    _check_share(delta)
    return max(1, math.ceil(width * width * math.log(2 / delta) / (2 * epsilon * epsilon)))


def hoeffding_error(n: int, delta: float, *, alpha: float = 0.0) -> float:
    """The error that the mean of ``n`` replicas exceeds with probability ``delta`` at most.

    ``ε = R sqrt(ln(2/δ) / (2 n))``, see :func:`hoeffding_replicas`.

    Raises
    ------
    ParameterError
        A value outside its range.

    Examples
    --------
    >>> round(hoeffding_error(1000, 0.05), 4)
    0.0429
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"n={n!r}: wanted a whole number of at least 1")
    _check_share(delta)
    return _width(alpha) * math.sqrt(math.log(2 / delta) / (2 * n))


def _width(alpha: float) -> float:
    if not (isinstance(alpha, (int, float)) and 0 <= alpha < math.inf):
        raise ParameterError(f"alpha={alpha!r}: wanted a number of at least 0")
    return (1 + math.hypot(1, alpha)) / 2


def _check_share(delta: float) -> None:
    if not (isinstance(delta, (int, float)) and 0 < delta < 1):
        raise ParameterError(f"delta={delta!r}: wanted a number between 0 and 1, as 0.05")


REPLICA_METHODS = ("percentile", "bca", "normal")
# Scores this close are one score: sums in another order.
_EQUAL = 1e-9


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
        Of the BCa interval, shape (...), see :func:`vbterrier.stats.acceleration_of`: known where units were
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
    if method == "percentile":
        low, high = np.quantile(replicas, tail_probabilities(level), axis=0)
        return Intervals(low, high, f"{source} (percentile)")
    if method == "normal":
        return _monte_carlo(replicas, level, source)
    if point is None:
        raise ParameterError("method='bca' needs the score without perturbation: give point")
    share = proportion_below(replicas, point, _EQUAL)
    _warn_of_shifts(share)
    low, high = bca_limits(replicas, share, 0.0 if acceleration is None else acceleration, tail_probabilities(level))
    return Intervals(low, high, f"{source} (bca{', acceleration 0' if acceleration is None else ''})")


def _monte_carlo(replicas: Floats, level: float, source: str) -> Intervals:
    from scipy import special

    name = f"{source} (normal, Monte Carlo error)"
    mean = replicas.mean(axis=0)
    if len(replicas) == 1:
        warn("the error of a mean needs two replicas at least")
        return Intervals(np.full_like(mean, np.nan), np.full_like(mean, np.nan), name)
    reach = special.ndtri((1 + level) / 2) * replicas.std(axis=0, ddof=1) / np.sqrt(len(replicas))
    return Intervals(mean - reach, mean + reach, name)


def _warn_of_shifts(share: Floats) -> None:
    outside = int(((share == 0) | (share == 1)).sum())
    if outside:
        warn(
            f"{outside} of {share.size} scores without perturbation lie outside all of their replicas: these were "
            "shifted, not spread, and their BCa intervals end at the nearest replica; look at percentiles"
        )
