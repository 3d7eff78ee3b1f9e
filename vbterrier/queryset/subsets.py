"""Subsets of a query set: the first queries in the order given, or random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.frames.parameters import number, whole
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ORDERS = ("given", "random")
# Sizes looked at unless they are given.
_N_SIZES = 20
# Numbers held in memory at a time: 32 MB.
_BLOCK = 1 << 22


def checked_sizes(sizes: Iterable[int] | None, n: int, least: int) -> list[int]:
    """Numbers of queries, rising; twenty of them by default.

    Raises
    ------
    ParameterError
        One that is below ``least`` or above n, the number of all queries; none.

    >>> checked_sizes(None, 7, 2)
    [2, 3, 4, 5, 6, 7]
    """
    if sizes is None:
        return sorted({max(round(n * part / _N_SIZES), min(least, n)) for part in range(1, _N_SIZES + 1)})
    found = sorted({whole("sizes", size, low=least, high=n, meaning=", the number of queries") for size in sizes})
    if not found:
        raise ParameterError("sizes: none; wanted numbers of queries, or None for twenty of them")
    return found


def orders_of(n: int, order: str, n_subsets: int, seed: int, held: int) -> Iterator[Ints]:
    """Orders of all queries, whose beginnings are the subsets, in blocks of shape (rows, n).

    Parameters
    ----------
    n, order, n_subsets, seed
        How many queries; ``"given"`` for the one order they have, ``"random"`` for as many random ones.
    held
        Numbers that the caller holds for each subset at a time.

    >>> [block.tolist() for block in orders_of(3, "given", 1, 0, 3)]
    [[[0, 1, 2]]]
    """
    if order == "given":
        yield np.arange(n)[None, :]
        return
    draws, step = stream(seed, "subsets"), max(1, _BLOCK // max(held, n))
    for done in range(0, n_subsets, step):
        yield draws.random((min(step, n_subsets - done), n)).argsort(axis=1)


def band(found: Floats, level: float, order: str) -> Floats:
    """What the share ``level`` of all subsets has, shape (2, ...) of (n_subsets, ...); NaN for the one order given.

    The mean is inside, also where nearly all subsets are alike.

    >>> band(np.array([0.0, 1.0, 2.0]), 0.5, "random").tolist()
    [0.5, 1.5]
    """
    mean = found.mean(axis=0)
    if order == "given":
        return np.full((2, *mean.shape), np.nan)
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.stack([np.minimum(low, mean), np.maximum(high, mean)])
