"""Scores whose terms look back, taken apart by their unjudged documents: the numbers of ``kernels.grades`` steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.problem import Steps
from vbterrier.kernels.rankings import ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.judgments.pool import JudgedTop

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def counted(judged: JudgedTop, visits: Ints, relevant: Floats, worth: Floats, weight: Floats) -> Steps:
    """``Σ_r I(r) w_r Σ_{i<=r} h_i``: average precision and the Q-measure.

    Parameters
    ----------
    judged, visits
        The cut run, and the places of its unjudged documents in the order of the ranking.
    relevant, worth
        I and h of each level, shape (L,).
    weight
        w of each rank, shape (n, width).
    """
    is_relevant, so_far = at(relevant, judged.levels), np.cumsum(at(worth, judged.levels), axis=1)
    behind = _behind(judged, is_relevant * weight * so_far)
    lasting = _behind(judged, is_relevant * weight)
    own = np.take_along_axis(weight, visits, axis=1)
    alone = own * np.take_along_axis(so_far, visits, axis=1)
    return Steps(behind[:, 0], alone, own, behind[:, 1:], lasting[:, 1:], lambda n: (n @ relevant, n @ worth))


def stopping(judged: JudgedTop, visits: Ints, stops: Floats) -> Steps:
    """``Σ_r (1/r) s_r Π_{i<r} (1 - s_i)``: expected reciprocal rank.

    What an unjudged document adds is ``1/r`` of the share of users who stop there: the fall of those who go on.

    Parameters
    ----------
    judged, visits
        As in :func:`counted`.
    stops
        s of each level, shape (L,), below 1.
    """
    stop = at(stops, judged.levels)
    reaches = np.cumprod(1.0 - stop, axis=1) / (1.0 - stop)
    share = reaches / ranks(stop.shape[1])
    lasting = _behind(judged, stop * share)
    alone = -np.take_along_axis(share, visits, axis=1)
    nothing = np.zeros_like(alone)

    def seen(landed: Ints) -> tuple[Floats, Floats]:
        goes_on: Floats = ((1.0 - stops) ** landed).prod(axis=-1)
        return goes_on, goes_on

    return Steps(lasting[:, 0], alone, nothing, nothing, lasting[:, 1:], seen)


def at(gain: Floats, levels: Ints) -> Floats:
    """The gain at each rank; levels -1 and -2 gain nothing."""
    found: Floats = np.append(gain, [0.0, 0.0])[levels]
    return found


def _behind(judged: JudgedTop, terms: Floats) -> Floats:
    """Sums of terms before the first unjudged document and from each to the next, shape (n, most unjudged + 1)."""
    n, width = len(terms), int(judged.n_unjudged.max(initial=0)) + 1
    cell = np.arange(n)[:, None] * width + np.cumsum(judged.unjudged, axis=1)
    sums: Floats = np.bincount(cell.ravel(), terms.ravel(), minlength=n * width).astype(np.float64)
    return sums.reshape(n, width)
