"""The Poisson bootstrap: every unit is drawn by itself, so that its sums can be made in parts that never meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# A value is a sum of whole multiples of these, none above 2^26: what is below the last is rounded.
_UNITS = np.ldexp(1.0, [20, -6, -32, -58])
_TOO_LARGE = 2.0**46
# Weights held at a time: sums of a block's digits stay below 2^53, where floats count every whole number.
_BLOCK = 1 << 21


def poisson_weights(units: Sequence[str], n_resamples: int, seed: int, name: str = "") -> Floats:
    """How often each unit is in each resample: Poisson numbers of mean 1, decided by seed, name and the unit alone.

    Returns
    -------
    ndarray
        Shape (n, 1 + n_resamples); the first column is the sample itself, 1 throughout.

    >>> weights = poisson_weights(["q1", "q2"], 1000, seed=0)
    >>> bool((weights[1] == poisson_weights(["q2"], 1000, seed=0)).all()), round(float(weights.mean()), 1)
    (True, 1.0)
    """
    weights = np.ones((len(units), 1 + n_resamples))
    for row, unit in enumerate(units):
        weights[row, 1:] = stream(seed, name, "poisson", unit).poisson(1.0, n_resamples)
    return weights


def digits(values: Floats) -> Floats:
    """Each value in whole numbers of 2^20, 2^-6, 2^-32 and 2^-58, shape (4, ...), rounded by 2^-59 at most.

    >>> digits(np.array([1.5, -0.125])).astype(int).tolist()
    [[0, 0], [96, -8], [0, 0], [0, 0]]
    """
    found, rest = [], np.asarray(values, dtype=np.float64)
    for unit in _UNITS[:-1]:
        found.append(np.trunc(rest / unit))
        # Exact: digits are cut off at the top.
        rest = rest - found[-1] * unit
    return np.stack([*found, np.rint(rest / _UNITS[-1])])


def weighted_sums(
    units: Sequence[str], values: Floats, n_resamples: int, seed: int, name: str = ""
) -> tuple[Ints, Ints]:
    """Sums of weights, shape (1 + n_resamples,), and of weighted digits, shape (4, 1 + n_resamples, m), from (n, m).

    They are whole numbers, so that sums over parts are those of the whole to the last bit, however it is parted.

    Raises
    ------
    InputError
        A value of 2^46 or more, below or above 0.

    >>> weights, sums = weighted_sums(["1", "2"], np.array([[0.5], [0.25]]), 10, seed=0)
    >>> int(weights[0]), means_of(weights, sums)[0].tolist()
    (2, [0.375])
    """
    if (np.abs(values) >= _TOO_LARGE).any():
        raise InputError(f"a value of {np.abs(values).max():g}: Poisson weights are summed for values below 2^46 only")
    weights = np.zeros(1 + n_resamples, dtype=np.int64)
    sums = np.zeros((len(_UNITS), 1 + n_resamples, values.shape[1]), dtype=np.int64)
    step = max(1, _BLOCK // (1 + n_resamples))
    for start in range(0, len(units), step):
        block = poisson_weights(units[start : start + step], n_resamples, seed, name)
        weights += block.sum(axis=0).astype(np.int64)
        for place, digit in enumerate(digits(values[start : start + step])):
            if digit.any():
                sums[place] += (block.T @ digit).astype(np.int64)
    return weights, sums


def means_of(weights: Ints, sums: Ints) -> Floats:
    """Weighted means, shape (1 + n_resamples, m); NaN in a resample that holds no unit."""
    total = np.zeros(sums.shape[1:])
    # The least first: what is small is not lost.
    for unit, of_unit in zip(_UNITS[::-1], sums[::-1], strict=True):
        total += of_unit * unit
    with np.errstate(invalid="ignore"):
        return np.asarray(total / weights.reshape(len(weights), -1))
