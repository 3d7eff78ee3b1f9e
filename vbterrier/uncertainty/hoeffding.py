"""How many replicas a mean needs, by Hoeffding's inequality (Ding 2025, claim D1)."""

from __future__ import annotations

import math

from vbterrier.errors import ParameterError


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
