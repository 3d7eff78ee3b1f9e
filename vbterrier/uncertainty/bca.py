"""Bias-corrected and accelerated intervals (Efron 1987) from resampled values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.bca import quantiles_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
