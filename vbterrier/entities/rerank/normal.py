"""Scores of different scales made comparable, topic by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

NORMS = ("minmax", "z", "none")
# A spread this small beside the numbers themselves is rounding.
_ROUNDING = 1e-12


def normalised(values: Floats, starts: Ints, norm: str) -> Floats:
    """Values of documents on one scale in every topic, shape (n_documents,).

    ``minmax``: ``(x - min) / (max - min)``; ``z``: ``(x - mean) / sd``, the standard deviation with n below; both 0 in
    topics whose documents are all equal, which tells nothing. ``none``: as they are.

    Parameters
    ----------
    values
        By topic, shape (n_documents,).
    starts
        Where the documents of each topic begin, and where the last one's end, shape (n_topics + 1,); no topic is empty.
    norm
        One of ``NORMS``.

    >>> normalised(np.array([4.0, 2.0, 3.0, 7.0, 7.0]), np.array([0, 3, 5]), "minmax")
    array([1. , 0. , 0.5, 0. , 0. ])
    """
    if norm == "none" or not len(values):
        return values
    first, sizes = starts[:-1], np.diff(starts)
    if norm == "minmax":
        centre = np.minimum.reduceat(values, first)
        spread = np.maximum.reduceat(values, first) - centre
        rounding = np.zeros(len(first))
    else:
        centre = np.add.reduceat(values, first) / sizes
        deviations = values - np.repeat(centre, sizes)
        spread = np.sqrt(np.add.reduceat(deviations**2, first) / sizes)
        rounding = _ROUNDING * np.maximum.reduceat(np.abs(values), first)
    scale = np.divide(1.0, spread, out=np.zeros(len(first)), where=spread > rounding)
    made: Floats = (values - np.repeat(centre, sizes)) * np.repeat(scale, sizes)
    return made
