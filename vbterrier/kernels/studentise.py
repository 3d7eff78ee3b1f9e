"""Means in units of their own spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# What stands for infinity, so that quantiles between two of them are no NaN.
ENDLESS = 1e100
# Variances this small beside the square of the mean, and means this small beside a spread of 1, are roundings.
_NOTHING = 1e-12


def studentised(means: Floats, squares: Floats) -> Floats:
    """``m / sqrt(q - m²)`` from the means m and the mean squares q of resampled values, of any shape.

    It is Student's t without its factor ``sqrt(n - 1)``. The values are to have a spread of about 1 around about 0
    before they are resampled, so that no digits are lost. Where a resample does not vary, it is 0 for a mean of 0, and
    otherwise ±1e100 in place of infinity.

    >>> studentised(np.array([0.6, 1.0, 0.0]), np.array([1.0, 1.0, 0.0])).round(3).tolist()
    [0.75, 1e+100, 0.0]
    """
    variance = squares - means**2
    varies = variance > _NOTHING * squares
    flat = np.where(np.abs(means) > _NOTHING, np.copysign(ENDLESS, means), 0.0)
    return np.divide(means, np.sqrt(variance, where=varies, out=np.ones_like(variance)), where=varies, out=flat)
