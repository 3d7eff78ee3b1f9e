"""Distributions of the sum of two scores, of which no more is sorted than is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import SAME, SLACK, SMALLEST, merged, peak
from vbterrier.kernels.order import spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_BINS = 4096
_EXPLICIT = 1 << 20
_FEW = 1 << 16


@dataclass(frozen=True, eq=False)
class Pairs:
    """The sum of two scores, with the probability of every pair of their values.

    Parameters
    ----------
    left, right
        Rising values, shapes (a,) and (b,).
    probs
        Probability of each pair, shape (a, b).
    apart
        Whether no value of the sum can be reached from two pairs.
    """

    left: Floats
    right: Floats
    probs: Floats
    apart: bool = True
    method: str = "exact"
    is_sorted = True

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged: all pairs."""
        return int(self.probs.size)

    @cached_property
    def _sums(self) -> Floats:
        return np.add.outer(self.left, self.right).reshape(-1)

    @cached_property
    def _coarse(self) -> tuple[NDArray[np.int32], Floats]:
        """The bin of each sum in a histogram over their range, and the probability up to the end of each bin."""
        sums, probs = self._sums, self.probs.reshape(-1)
        lowest, highest = float(sums.min()), float(sums.max())
        width = max(highest - lowest, SAME) / _BINS
        bins = np.minimum(((sums - lowest) / width).astype(np.int32), _BINS - 1)
        return bins, np.cumsum(np.bincount(bins, weights=probs, minlength=_BINS))

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level: find its bin, and sort only what is in it."""
        sums, probs = self._sums, self.probs.reshape(-1)
        bins, reached = self._coarse
        result = np.empty(len(levels))
        for place, level in enumerate(np.maximum(levels - SLACK, SMALLEST)):
            # At a level of 1 the sum of all probabilities may fall short by its rounding.
            chosen = min(int(np.searchsorted(reached, level)), _BINS - 1)
            inside = np.flatnonzero(bins == chosen)
            inside = inside[np.argsort(sums[inside], kind="stable")]
            before = reached[chosen - 1] if chosen else 0.0
            within = int(np.searchsorted(before + np.cumsum(probs[inside]), level))
            result[place] = sums[inside[min(within, len(inside) - 1)]]
        return result

    def brackets(self, levels: Floats) -> Floats:
        """The quantiles themselves, twice."""
        exact = self.quantiles(levels)
        return np.stack([exact, exact])

    def mode(self) -> float:
        """The most probable value, the largest of several."""
        if not self.apart:
            return peak(*self._sorted())
        likely = self.probs.reshape(-1) >= self.probs.max() - SLACK
        return float(self._sums[likely].max())

    def cdf(self, value: float) -> float:
        """Probability of at most ``value``."""
        return float(self.probs.reshape(-1)[self._sums <= value + SAME].sum())

    def atoms(self) -> tuple[Floats, Floats]:
        """Rising values and their probabilities, equal values merged."""
        return merged(*self._sorted())

    def _sorted(self) -> tuple[Floats, Floats]:
        order = np.argsort(self._sums, kind="stable")
        return self._sums[order], self.probs.reshape(-1)[order]


@dataclass(frozen=True, eq=False)
class Halves:
    """The sum of two independent scores, each given as merged atoms; nothing the size of their product is sorted."""

    left: tuple[Floats, Floats]
    right: tuple[Floats, Floats]
    method: str = "exact"

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged: all pairs."""
        return len(self.left[0]) * len(self.right[0])

    @property
    def is_sorted(self) -> bool:
        """Whether the pairs are few enough to be looked at one by one."""
        return self.n_atoms <= _EXPLICIT

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self.left[0], self.right[0], np.multiply.outer(self.left[1], self.right[1]))

    @cached_property
    def _right_cumulative(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.right[1])])

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level."""
        if self.is_sorted:
            return self._pairs.quantiles(levels)
        return np.array([self._by_bisection(level) for level in levels])

    def brackets(self, levels: Floats) -> Floats:
        """The quantiles themselves, twice."""
        exact = self.quantiles(levels)
        return np.stack([exact, exact])

    def mode(self) -> float:
        """The most probable value, the largest of several.

        The halves are cut so that no value of the sum can be reached from two different pairs (see
        :func:`vbterrier.kernels.grades.exact.split`), so the modes of the halves add up.
        """
        return peak(*self.left) + peak(*self.right)

    def cdf(self, value: float) -> float:
        """Probability of at most ``value``."""
        places = np.searchsorted(self.right[0], value + SAME - self.left[0], side="right")
        return float(self.left[1] @ self._right_cumulative[places])

    def atoms(self) -> tuple[Floats, Floats]:
        """Rising values and their probabilities; as many as the product of the halves."""
        return self._pairs.atoms()

    def _by_bisection(self, level: float) -> float:
        """Halve an interval until the pairs that fall into it are few enough to be sorted."""
        level = max(level - SLACK, SMALLEST)
        low = float(self.left[0][0] + self.right[0][0]) - SAME
        high = float(self.left[0][-1] + self.right[0][-1])
        # How many of the right half each of the left takes to stay at or below either end.
        below, above = self._places(low), self._places(high)
        while int((above - below).sum()) > _FEW and high - low > SAME:
            middle = (low + high) / 2
            within = self._places(middle)
            if self.left[1] @ self._right_cumulative[within] >= level:
                high, above = middle, within
            else:
                low, below = middle, within
        one, other = spans(below, above)
        sums, probs = self.left[0][one] + self.right[0][other], self.left[1][one] * self.right[1][other]
        order = np.argsort(sums, kind="stable")
        reached = float(self.left[1] @ self._right_cumulative[below]) + np.cumsum(probs[order])
        return float(sums[order[min(int(np.searchsorted(reached, level)), len(order) - 1)]])

    def _places(self, value: float) -> NDArray[np.int64]:
        return np.searchsorted(self.right[0], value - self.left[0], side="right")
