"""Rankings that hold unjudged documents, as all bounds take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.gain import discounts, ideal_dcg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.gain import Floats, Ints


@dataclass(frozen=True, eq=False)
class PartlyJudged:
    """Rankings with unjudged documents and their pools: what every bound starts from, computed once for all bounds.

    A level is the index of a grade, by rising gain. Topics are the first axis; no topic touches another.

    Parameters
    ----------
    levels
        Level of the document at each rank, shape (n, width), -1 for an unjudged document, -2 where there is no document
        (a list shorter than others). Ranks below ``depth`` are ignored.
    pool
        Judged documents of each level, shape (n, n_levels), those in the ranking included. A grade that no judged
        document has, but an unjudged one may get, is a column of zeros.
    gain
        The gain of each level, shape (n_levels,), strictly rising from ``gain[0] == 0``.
    top
        The highest level that an unjudged document may get, 0 to n_levels - 1.
    depth
        The cutoff k of the ranking and of the ideal one, ``None`` for no cutoff; it may exceed the width of ``levels``.

    Examples
    --------
    The ranking (grade 1, unjudged) over a pool of one document, where grades go up to 3:

    >>> levels, pool = np.array([[1, -1]]), np.array([[0, 1, 0, 0]])
    >>> topics = PartlyJudged(levels, pool, gain=np.array([0.0, 1.0, 2.0, 3.0]), top=3, depth=2)
    >>> topics.n_unjudged, topics.judged_dcg
    (array([1]), array([1.]))
    """

    levels: Ints
    pool: Ints
    gain: Floats
    top: int
    depth: int | None

    @cached_property
    def counted(self) -> Ints:
        """The levels down to the cutoff, shape (n, min(k, width))."""
        return self.levels[:, : self.depth]

    @cached_property
    def unjudged(self) -> NDArray[np.bool_]:
        """Where an unjudged document stands, the shape of ``counted``."""
        return np.equal(self.counted, -1)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents down to the cutoff, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged, axis=1))

    @cached_property
    def judged_dcg(self) -> Floats:
        """The DCG when every unjudged document gains nothing, shape (n,)."""
        dcg: Floats = self.gain[np.maximum(self.counted, 0)] @ discounts(self.counted.shape[1])
        return dcg

    @cached_property
    def unjudged_discounts(self) -> Floats:
        """``W(x)``, the sum of the x largest discounts at unjudged ranks, shape (n, most unjudged + 1).

        Topics with fewer than x unjudged documents repeat their last value.
        """
        ascending = np.sort(np.where(self.unjudged, discounts(self.counted.shape[1]), 0.0), axis=1)
        most = self.n_unjudged.max(initial=0)
        return np.pad(ascending[:, ::-1][:, :most].cumsum(axis=1), ((0, 0), (1, 0)))

    @cached_property
    def n_at_least(self) -> Ints:
        """``n_l``, the pool documents of level l or higher for l = 1, 2, ..., shape (n, n_levels - 1)."""
        return self.pool[:, :0:-1].cumsum(axis=1)[:, ::-1]

    def dcg(self, n_raised: Ints) -> Floats:
        """DCG when the first ``n_raised[:, l - 1]`` unjudged documents reach level l, shape (n,)."""
        raised: Floats = np.take_along_axis(self.unjudged_discounts, n_raised, axis=1) @ np.diff(self.gain)
        return self.judged_dcg + raised

    def ideal(self, n_top: Ints | int = 0) -> Floats:
        """Ideal DCG when ``n_top`` documents of level ``top`` join the pool, shape (..., n) as that of ``n_top``."""
        joining = np.multiply.outer(n_top, np.arange(len(self.gain)) == self.top)
        return ideal_dcg(self.pool + joining, self.gain, self.depth)
