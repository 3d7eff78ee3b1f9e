"""Resampling tests of ratios of sums, which each sign flip and each resample recomputes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels import linking
from vbterrier.kernels.resample import INFINITY_SUBSTITUTE
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Floats


class RatioPair(NamedTuple):
    """The answers of two systems, and the ratio of sums that their tests compare.

    ``first``, ``second``: the numbers of each kind of answer in the units that are flipped or drawn, topics or clusters
    of topics, shape (n_units, n_kinds). ``figure`` and ``slopes``: the ratio of numbers of kinds, and its derivatives,
    which do not depend on the sum of the numbers.
    """

    first: Floats
    second: Floats
    figure: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats]

    def flipped_differences(self, signs: Floats) -> Floats:
        """``|θ_a - θ_b|`` with exchanged answers in the units of sign -1, shape (rows,); infinite if undefined."""
        both, half = (self.first + self.second).sum(axis=0) / 2, (self.first - self.second) / 2
        moved = signs @ half
        gap = np.abs(self.figure(both + moved) - self.figure(both - moved))
        return np.where(np.isnan(gap), np.inf, gap)

    def difference(self, counts: Floats) -> tuple[Floats, Floats]:
        """The difference of the ratios of resamples, and its standard deviation over units, shape (rows,) each.

        The deviation is that of the delta method, ``√(m Σ_u c_u (∇θ_a · a_u - ∇θ_b · b_u)²)`` of m units.
        """
        first, second = counts @ self.first, counts @ self.second
        change = self.slopes(first) @ self.first.T - self.slopes(second) @ self.second.T
        spread = np.sqrt(len(self.first) * (counts * change**2).sum(axis=-1))
        return self.figure(first) - self.figure(second), spread

    def resampled_t(self, counts: Floats) -> Floats:
        """``|d* - d|/s*`` of resamples, shape (rows,); infinite if a ratio is undefined."""
        observed = self.difference(np.ones((1, len(self.first))))[0][0]
        difference, spread = self.difference(counts)
        distance = np.abs(difference - observed)
        flat = np.where(distance <= ROUNDING, 0.0, INFINITY_SUBSTITUTE)
        t = np.divide(distance, spread, out=flat, where=spread > ROUNDING)
        return np.where(np.isnan(difference), np.inf, t)


def ratio_pairs(
    measure: str, pairs: list[tuple[int, int]], answers: Floats, of_units: Callable[[Floats], Floats]
) -> list[RatioPair]:
    """Return the pairs of a linking measure, from the codes of the answers of all systems, shape (n, n_systems).

    ``pairs``: the columns of both systems; ``of_units``: sums of rows over the units that are flipped or drawn.
    """
    place = linking.figure_index(measure)
    kinds = [of_units(np.eye(linking.N_ANSWERS)[each]) for each in answers.T.astype(np.int64)]
    figure, slopes = partial(linking.figure, place=place), partial(linking.slopes, place=place)
    return [RatioPair(kinds[a], kinds[b], figure, slopes) for a, b in pairs]
