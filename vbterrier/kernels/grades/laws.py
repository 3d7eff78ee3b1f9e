"""Distributions of one score: sorted atoms, cells of a grid, a sample; in ``halves``, the sum of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Sums of the same terms in another order differ by this much at the most.
SAME = 1e-12
# A level of probability is reached when it is missed by no more than the rounding of the sums that lead to it.
SLACK = 1e-12
SMALLEST = 1e-300


class Law(Protocol):
    """What every distribution answers."""

    @property
    def method(self) -> str:
        """``"exact"``, ``"grid"`` or ``"mc"``."""

    @property
    def n_atoms(self) -> int:
        """Atoms before equal ones are merged."""

    @property
    def is_sorted(self) -> bool:
        """Whether quantiles are looked up rather than searched for."""

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest value whose CDF reaches each level, shape like levels."""

    def brackets(self, levels: Floats) -> Floats:
        """Certified limits of each quantile, shape (2, n_levels); equal where the law is exact."""

    def mode(self) -> float:
        """The most probable value, the largest of several."""

    def cdf(self, value: float) -> float:
        """Probability of at most ``value``."""

    def atoms(self) -> tuple[Floats, Floats]:
        """Rising values and their probabilities."""


def merged(values: Floats, probs: Floats) -> tuple[Floats, Floats]:
    """Rising values with those within 1e-12 of their neighbour made one, and what cannot happen left out."""
    happens = probs > 0
    values, probs = values[happens], probs[happens]
    first = np.flatnonzero(np.concatenate([[True], np.diff(values) > SAME]))
    return values[first], np.add.reduceat(probs, first)


def peak(values: Floats, probs: Floats) -> float:
    """The most probable of rising values, those within 1e-12 of their neighbour taken together; the largest of several.

    >>> peak(np.array([0.1, 0.5, 0.5]), np.array([0.4, 0.3, 0.3]))
    0.5
    """
    first = np.concatenate([[0], np.flatnonzero(values[1:] - values[:-1] > SAME) + 1])
    mass = np.add.reduceat(probs, first)
    return float(values[first[np.flatnonzero(mass >= mass.max() - SLACK)[-1]]])


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
        places = self.cumulative.searchsorted(np.maximum(levels - SLACK, SMALLEST))
        return self.values.take(places, mode="clip")

    def brackets(self, levels: Floats) -> Floats:
        """The quantiles themselves, twice."""
        exact = self.quantiles(levels)
        return np.stack([exact, exact])

    def mode(self) -> float:
        """The most probable value, the largest of several."""
        return peak(self.values, self.probs)

    def cdf(self, value: float) -> float:
        """Probability of at most ``value``."""
        place = int(np.searchsorted(self.values, value + SAME, side="right"))
        return float(self.cumulative[place - 1]) if place else 0.0

    def atoms(self) -> tuple[Floats, Floats]:
        """Rising values and their probabilities, equal values merged."""
        return merged(self.values, self.probs)


def atoms_of(values: Floats, probs: Floats) -> Atoms:
    """Atoms from unsorted values, shape (m,)."""
    order = np.argsort(values, kind="stable")
    return Atoms(values[order], probs[order], np.cumsum(probs[order]))


@dataclass(frozen=True, eq=False)
class Grid(Atoms):
    """Values on a grid, with how far the true value may lie from its cell.

    Each document's value was split between the two cells around it so that the mean is kept; the errors of the u
    documents are then independent, centred and each within one cell.

    Parameters
    ----------
    cell
        Width of a cell.
    n_documents
        The number of values added up.
    """

    cell: float = 0.0
    n_documents: int = 0

    def brackets(self, levels: Floats) -> Floats:
        """The narrower of the certain bracket (u cells) and Hoeffding's at 1e-9 of probability."""
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

    Parameters
    ----------
    legacy
        Read quantiles by linear interpolation and the mode from histograms, as the code behind the paper does.
    """

    legacy: bool = False

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest draw whose share of draws at or below reaches each level."""
        return np.quantile(self.values, levels) if self.legacy else super().quantiles(levels)

    def brackets(self, levels: Floats) -> Floats:
        """The Dvoretzky-Kiefer-Wolfowitz band at 95 % (with Massart's constant), for all levels at once."""
        reach = np.sqrt(np.log(2 / 0.05) / (2 * len(self.values)))
        low, high = (super(Sample, self).quantiles(np.clip(levels + side, 0, 1)) for side in (-reach, reach))
        return np.stack([low, high])

    def mode(self) -> float:
        """The most frequent draw, the largest of several; by histograms when legacy."""
        return histogram_mode(self.values) if self.legacy else super().mode()


def histogram_mode(draws: Floats) -> float:
    """The mode as the code behind the paper reads it from draws.

    Twenty right-closed equal bins over the range of the draws; the fullest bins are kept, the same is done once more
    to what was kept, and the largest draw left is the mode.

    >>> histogram_mode(np.array([0.0, 0.5, 0.5, 1.0]))
    0.5
    """
    for _ in range(2):
        edges = np.linspace(draws.min(), draws.max(), 21)
        bins = np.maximum(np.searchsorted(edges, draws, side="left") - 1, 0)
        counts = np.bincount(bins)
        draws = draws[counts[bins] == counts.max()]
    return float(draws.max())
