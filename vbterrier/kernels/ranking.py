"""Order, ties and top rows of ranked lists that are stored one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints


def is_falling(score: NDArray[np.float32], starts: Ints) -> bool:
    """Return True if scores never increase within the groups that begin at ``starts``."""
    rises = score[1:] > score[:-1]
    rises[starts[1:] - 1] = False
    return not bool(rises.any())


def top_rows(starts: Ints, stops: Ints, cutoff: int) -> Ints:
    """The first ``cutoff`` rows of each group, padded with -1, shape (n_groups, cutoff).

    >>> top_rows(np.array([0, 3]), np.array([3, 4]), 2)
    array([[ 0,  1],
           [ 3, -1]])
    """
    rows = starts[:, None] + np.arange(cutoff)
    return np.where(rows < stops[:, None], rows, -1)


def tied_groups(score: NDArray[np.float32], starts: Ints, stops: Ints, cutoff: int) -> NDArray[np.bool_]:
    """Groups of falling scores with a tie that involves their first ``cutoff`` rows, shape (n_groups,)."""
    if len(starts) * (cutoff + 1) < len(score):
        rows = top_rows(starts, stops, cutoff + 1)
        tied: NDArray[np.bool_] = ((rows[:, 1:] >= 0) & (score[rows[:, 1:]] == score[rows[:, :-1]])).any(axis=1)
        return tied
    equal = np.flatnonzero(score[1:] == score[:-1])
    # A tie counts if the next row is in the same group and the row itself is above the cutoff.
    group = np.searchsorted(starts, equal, side="right") - 1
    touching = (equal + 1 < stops[group]) & (equal - starts[group] < cutoff)
    tied = np.zeros(len(starts), dtype=bool)
    tied[group[touching]] = True
    return tied


def n_tied(score: NDArray[np.float32], rows: Ints, starts: Ints, stops: Ints) -> int:
    """The number of rows that share their score with a neighbour in their group of falling scores; -1 is no row.

    >>> n_tied(np.float32([3, 2, 2, 1]), np.array([[0, 1]]), np.array([0]), np.array([4]))
    1
    """
    above = (rows > starts[:, None]) & (score[np.maximum(rows - 1, 0)] == score[rows])
    below = (rows >= 0) & (rows + 1 < stops[:, None])
    below &= score[np.where(below, rows + 1, 0)] == score[rows]
    return int(np.count_nonzero(above | below))


def spans(lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """Concatenate the half-open ranges ``[low, high)``; return the number of the range and the value of each element.

    >>> spans(np.array([4, 0, 7]), np.array([6, 0, 8]))
    (array([0, 0, 2]), array([4, 5, 7]))
    """
    sizes = highs - lows
    owner = np.repeat(np.arange(len(lows)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) + np.repeat(lows - before, sizes)
