"""Distributions of scores: atoms, grids, samples, and convolutions of two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from vbterrier.kernels.rankings import spans
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats


# The lowest level of a quantile: values of probability 0 are no quantiles.
MIN_PROBABILITY = 1e-300
# Bins of the histogram in which quantiles are searched for.
_N_BINS = 4096
# The largest number of pairs that are held in memory, and that end a bisection.
_EXPLICIT = 1 << 20
_MAX_BISECTION_PAIRS = 1 << 16


class ScoreDistribution(Protocol):
    """The interface of all distributions."""

    @property
    def method(self) -> str:
        """``"exact"``, ``"grid"`` or ``"mc"``."""

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged."""

    @property
    def is_sorted(self) -> bool:
        """True if quantiles are looked up rather than searched for by bisection."""

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level, shape like levels."""

    def brackets(self, levels: Floats) -> Floats:
        """Certified limits of each quantile, shape (2, n_levels); equal if the distribution is exact."""

    def mode(self) -> float:
        """The most probable value, the largest of several."""

    def cdf(self, values: Floats) -> Floats:
        """Probability of at most each value, shape like values."""

    def atoms(self) -> tuple[Floats, Floats]:
        """Increasing values and their probabilities."""


def merge_atoms(values: Floats, probs: Floats) -> tuple[Floats, Floats]:
    """Merge increasing values that lie within 1e-12 of their neighbour, and drop values of probability 0."""
    happens = probs > 0
    values, probs = values[happens], probs[happens]
    first = np.flatnonzero(np.concatenate([[True], np.diff(values) > ROUNDING]))
    return values[first], np.add.reduceat(probs, first)


def peak(values: Floats, probs: Floats) -> float:
    """The most probable of increasing values, the largest of several; values within 1e-12 of each other are merged."""
    first = np.concatenate([[0], np.flatnonzero(values[1:] - values[:-1] > ROUNDING) + 1])
    mass = np.add.reduceat(probs, first)
    return float(values[first[np.flatnonzero(mass >= mass.max() - ROUNDING)[-1]]])


@dataclass(frozen=True, eq=False)
class Atoms:
    """Sorted values with their probabilities, both of shape (m,)."""

    values: Floats
    probs: Floats
    cumulative: Floats
    method: str = "exact"
    is_sorted = True

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged."""
        return len(self.values)

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level."""
        places = self.cumulative.searchsorted(np.maximum(levels - ROUNDING, MIN_PROBABILITY))
        return self.values.take(places, mode="clip")

    def brackets(self, levels: Floats) -> Floats:
        """The quantiles themselves, twice."""
        exact = self.quantiles(levels)
        return np.stack([exact, exact])

    def mode(self) -> float:
        """The most probable value, the largest of several."""
        return peak(self.values, self.probs)

    def cdf(self, values: Floats) -> Floats:
        """Probability of at most each value, shape like values."""
        places = np.searchsorted(self.values, values + ROUNDING, side="right")
        return np.where(places > 0, self.cumulative[places - 1], 0.0)

    def atoms(self) -> tuple[Floats, Floats]:
        """Increasing values and their probabilities, equal values merged."""
        return merge_atoms(self.values, self.probs)


def atoms_from_unsorted(values: Floats, probs: Floats) -> Atoms:
    """Atoms from unsorted values, shape (m,)."""
    order = np.argsort(values, kind="stable")
    return Atoms(values[order], probs[order], np.cumsum(probs[order]))


@dataclass(frozen=True, eq=False)
class Grid(Atoms):
    """Values on a grid with certified brackets.

    The value of each document is split between the two cells around it so that its mean is kept. The errors of the u
    documents are then independent, centred and smaller than one cell.

    - ``cell``: width of a cell
    - ``n_documents``: the number of values added up
    - ``largest``: the largest possible score, which rounding to cells may exceed
    """

    cell: float = 0.0
    n_documents: int = 0
    largest: float = np.inf

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose probability to be reached is at least each level, at most the largest score."""
        return np.minimum(super().quantiles(levels), self.largest)

    def brackets(self, levels: Floats) -> Floats:
        """The narrower of the deterministic bracket (u cells) and Hoeffding's with probability 1 - 1e-9."""
        certain = self.n_documents * self.cell
        here = self.quantiles(levels)
        sure = np.stack([here - certain, here + certain])
        miss = 1e-9
        reach = self.cell * np.sqrt(self.n_documents * np.log(2 / miss) / 2)
        likely = np.stack([self.quantiles(levels - miss) - reach, self.quantiles(np.minimum(levels + miss, 1)) + reach])
        narrower = likely[1] - likely[0] < sure[1] - sure[0]
        return np.where(narrower, likely, sure)


@dataclass(frozen=True, eq=False)
class Sample(Atoms):
    """Sorted draws, each with the same probability.

    - ``legacy``: interpolate quantiles linearly and estimate the mode from histograms, as the published code of the
      paper does
    """

    legacy: bool = False

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest draw whose empirical CDF reaches each level; interpolated if legacy."""
        return np.quantile(self.values, levels) if self.legacy else super().quantiles(levels)

    def brackets(self, levels: Floats) -> Floats:
        """The simultaneous Dvoretzky-Kiefer-Wolfowitz band at 95 %, with Massart's constant."""
        reach = np.sqrt(np.log(2 / 0.05) / (2 * len(self.values)))
        low, high = (super(Sample, self).quantiles(np.clip(levels + side, 0, 1)) for side in (-reach, reach))
        return np.stack([low, high])

    def mode(self) -> float:
        """The most frequent draw, the largest of several; from histograms if legacy."""
        return histogram_mode(self.values) if self.legacy else super().mode()


def histogram_mode(draws: Floats) -> float:
    """The mode of draws as estimated by the published code of the paper.

    The draws are counted in twenty equal, right-closed bins over their range, and the draws in the fullest bins are
    kept. This is repeated once; the mode is the largest draw left.
    """
    for _ in range(2):
        edges = np.linspace(draws.min(), draws.max(), 21)
        bins = np.maximum(np.searchsorted(edges, draws, side="left") - 1, 0)
        counts = np.bincount(bins)
        draws = draws[counts[bins] == counts.max()]
    return float(draws.max())


@dataclass(frozen=True, eq=False)
class Pairs:
    """The sum of two scores, given their joint distribution.

    - ``left``, ``right``: increasing values, shapes (a,) and (b,)
    - ``probs``: probability of each pair, shape (a, b)
    - ``apart``: True if different pairs have different sums
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
        """The bin of each sum in a histogram over their range, and the cumulative probability of the bins."""
        sums, probs = self._sums, self.probs.reshape(-1)
        lowest, highest = float(sums.min()), float(sums.max())
        width = max(highest - lowest, ROUNDING) / _N_BINS
        bins = np.minimum(((sums - lowest) / width).astype(np.int32), _N_BINS - 1)
        return bins, np.cumsum(np.bincount(bins, weights=probs, minlength=_N_BINS))

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level; only the sums of its bin are sorted."""
        sums, probs = self._sums, self.probs.reshape(-1)
        bins, reached = self._coarse
        result = np.empty(len(levels))
        for place, level in enumerate(np.maximum(levels - ROUNDING, MIN_PROBABILITY)):
            # At a level of 1 the sum of all probabilities may be smaller by rounding.
            chosen = min(int(np.searchsorted(reached, level)), _N_BINS - 1)
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
            return peak(*self._sorted_sums())
        likely = self.probs.reshape(-1) >= self.probs.max() - ROUNDING
        return float(self._sums[likely].max())

    def cdf(self, values: Floats) -> Floats:
        """Probability of at most each value, shape like values."""
        # The sums are not sorted, which takes longer than to find the first value that each does not exceed.
        least, place = np.unique(values, return_inverse=True)
        first = np.searchsorted(least + ROUNDING, self._sums)
        mass = np.bincount(first, weights=self.probs.reshape(-1), minlength=len(least) + 1)
        reached: Floats = np.cumsum(mass, dtype=np.float64).take(place).reshape(np.shape(values))
        return reached

    def atoms(self) -> tuple[Floats, Floats]:
        """Increasing values and their probabilities, equal values merged."""
        return merge_atoms(*self._sorted_sums())

    def _sorted_sums(self) -> tuple[Floats, Floats]:
        order = np.argsort(self._sums, kind="stable")
        return self._sums[order], self.probs.reshape(-1)[order]


@dataclass(frozen=True, eq=False)
class Convolution:
    """The sum of two independent scores, each given as merged atoms, without sorting all pairs."""

    left: tuple[Floats, Floats]
    right: tuple[Floats, Floats]
    method: str = "exact"

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged: all pairs."""
        return len(self.left[0]) * len(self.right[0])

    @property
    def is_sorted(self) -> bool:
        """True if the pairs are few enough to be held in memory."""
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

        Different pairs have different sums (see :func:`vbterrier.kernels.grades.exact.split_documents`), so the mode of
        the sum is the sum of the modes.
        """
        return peak(*self.left) + peak(*self.right)

    def cdf(self, values: Floats) -> Floats:
        """Probability of at most each value, shape like values."""
        places = np.searchsorted(self.right[0], values[..., None] + ROUNDING - self.left[0], side="right")
        reached: Floats = self._right_cumulative[places] @ self.left[1]
        return reached

    def atoms(self) -> tuple[Floats, Floats]:
        """Increasing values and their probabilities, equal values merged."""
        return self._pairs.atoms()

    def _by_bisection(self, level: float) -> float:
        """Bisect the range until few enough pairs are left to be sorted."""
        level = max(level - ROUNDING, MIN_PROBABILITY)
        low = float(self.left[0][0] + self.right[0][0]) - ROUNDING
        high = float(self.left[0][-1] + self.right[0][-1])
        # For each value of the left score, the number of right values whose sum is at most either end.
        below, above = self._places(low), self._places(high)
        while int((above - below).sum()) > _MAX_BISECTION_PAIRS and high - low > ROUNDING:
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


def central_interval(distribution: ScoreDistribution, level: float) -> tuple[float, float]:
    """The smallest and the largest value with a mid-probability from ``(1 - level)/2`` to ``(1 + level)/2``.

    The mid-probability of x is ``P(X < x) + P(X = x)/2`` (Lancaster 1961). The interval between the quantiles covers at
    least ``level`` and, for distributions with few atoms, far more; this interval covers ``level`` on average. For
    distributions with many small atoms the two agree.

    - ``distribution``: the distribution
    - ``level``: from 0 to 1

    Returns (low, high): The median twice if no value qualifies.
    """
    tail = (1 - level) / 2
    low, high = distribution.quantiles(np.array([tail, 1 - tail])).tolist()
    below, reached = _around(distribution, low)
    if (below + reached) / 2 < tail - ROUNDING:
        low = _quantile(distribution, reached + 2 * ROUNDING)
    below, reached = _around(distribution, high)
    if (below + reached) / 2 > 1 - tail + ROUNDING and below > 0:
        high = _quantile(distribution, below)
    return (low, high) if low <= high else (_quantile(distribution, 0.5),) * 2


def _around(distribution: ScoreDistribution, value: float) -> tuple[float, float]:
    """Probability of values below an atom, and of values up to it."""
    below, reached = distribution.cdf(np.array([value - 3 * ROUNDING, value])).tolist()
    return below, reached


def _quantile(distribution: ScoreDistribution, level: float) -> float:
    return float(distribution.quantiles(np.array([min(level, 1.0)]))[0])
