"""Power of the paired t test where differences are normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from vbterrier.errors import InputError

# More queries than anyone has: a difference that needs them is none.
MOST = 10**9


def power_by_formula(n: Any, delta: float, std: float, level: float) -> Any:
    """Power of the paired t test of normal differences, right sign only: the noncentral t.

    >>> round(float(power_by_formula(34, 0.5, 1.0, 0.95)), 2)
    0.81
    """
    from scipy import special, stats

    # SciPy before 1.13 divides by zero on its way to the right value.
    with np.errstate(divide="ignore"):
        return stats.nct.sf(special.stdtrit(n - 1, (1 + level) / 2), n - 1, delta * np.sqrt(n) / std)


def needed_by_formula(delta: float, std: float, power: float, level: float) -> int:
    """The least n of normal differences, by bisection: power rises with n.

    >>> needed_by_formula(0.5, 1.0, 0.8, 0.95)
    34
    """
    low, high = 1, 2
    while power_by_formula(float(high), delta, std, level) < power:
        low, high = high, 2 * high
        require_possible(high, delta)
    while high - low > 1:
        middle = (low + high) // 2
        if power_by_formula(float(middle), delta, std, level) < power:
            low = middle
        else:
            high = middle
    return high


def require_possible(n: int, delta: float) -> None:
    """Refuse more queries than anyone has.

    Raises
    ------
    InputError
    """
    if n > MOST:
        raise InputError(
            f"delta={delta:g}: not even {MOST:,} queries detect so small a difference; wanted a larger one"
        )


def detectable_by_formula(n: int, std: float, power: float, level: float) -> float:
    """The least difference that n queries detect with this power.

    >>> round(detectable_by_formula(34, 1.0, 0.8, 0.95), 2)
    0.5
    """
    from scipy import optimize

    far = std
    while power_by_formula(float(n), far, std, level) < power:
        far *= 2
    return float(optimize.brentq(lambda delta: power_by_formula(float(n), delta, std, level) - power, 0.0, far))
