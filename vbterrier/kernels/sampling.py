"""Survey sampling: samples of units, inclusion probabilities, allocation to strata, and variances of totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints


# The weight of a stratum with share 0, relative to the largest.
_MIN_WEIGHT = 1e-12
# Bisections that determine a factor to the last digit.
_HALVINGS = 100


def drawn_units(n_units: int, n: int, draws: np.random.Generator, *, replace: bool) -> Ints:
    """A simple random sample of n of ``n_units`` units, in drawing order, shape (n,).

    Each unit has a random number, so larger samples from the same stream begin with the smaller ones.
    """
    if replace:
        return np.floor(draws.random(n) * n_units).astype(np.int64)
    numbers = draws.random(n_units)
    first = np.argpartition(numbers, n - 1)[:n] if n else np.empty(0, dtype=np.int64)
    return first[np.argsort(numbers[first])]


def inclusion_probabilities(sizes: Floats, n: int) -> Floats:
    """Probabilities proportional to size that sum to n, shape (n_units,): ``min(1, λ size)``.

    Units with a share above 1 are drawn with certainty, and the rest of the sample is allocated to the other units.

    - ``sizes``: above 0, shape (n_units,)
    - ``n``: from 1 to n_units
    """
    if n == len(sizes):
        return np.ones(n)
    largest = np.sort(sizes)[::-1]
    # The total size without the k largest units, summed from the smallest for precision.
    rest = np.cumsum(largest[::-1])[::-1]
    # No unit smaller than an uncertain one is certain, and the last draw is never certain.
    k = np.arange(n)
    n_certain = int(np.count_nonzero((n - k[:-1]) * largest[: n - 1] >= rest[: n - 1]))
    share: Floats = sizes * ((n - n_certain) / rest[n_certain])
    return np.where(share >= 1 - ROUNDING, 1.0, share)


def systematic(prob: Floats, draws: np.random.Generator) -> Ints:
    """Systematic sampling with given inclusion probabilities, from a random start through units in random order.

    - ``prob``: probabilities above 0 and at most 1 whose sum is a whole number n, shape (n_units,)

    Returns n distinct units.
    """
    sure, unsure = np.flatnonzero(prob >= 1), np.flatnonzero(prob < 1)
    order = unsure[draws.permutation(len(unsure))]
    ends = np.cumsum(prob[order])
    n = int(np.rint(ends[-1])) if len(order) else 0
    # The last end may be below n by rounding.
    places = np.searchsorted(ends, draws.random() + np.arange(n), side="right")
    return np.concatenate([sure, order[np.minimum(places, len(order) - 1)]])


def allocation(shares: Floats, n: int, low: Ints, high: Ints) -> Ints:
    """Sample sizes of strata with sum n, proportional to shares within bounds, shape (n_strata,).

    - ``shares``: Non-negative, at least one positive, shape (n_strata,)
    - ``n``: from ``low.sum()`` to ``high.sum()``
    - ``low``, ``high``: the smallest and the largest size of each stratum, shape (n_strata,)

    ``clip(λ share, low, high)`` with λ such that the sum is n, rounded by the largest remainder method.
    """
    # A stratum with share 0 gets units only beyond the bounds of the other strata.
    weight = np.maximum(shares / shares.max(), _MIN_WEIGHT)
    below, above = 0.0, float(high.max()) / float(weight.min())
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if np.clip(middle * weight, low, high).sum() < n:
            below = middle
        else:
            above = middle
    ideal = np.clip(above * weight, low, high)
    sizes: Ints = np.floor(ideal + ROUNDING).astype(np.int64)
    remainder = np.where(sizes < high, ideal - sizes, -1.0)
    sizes[np.argsort(-remainder, kind="stable")[: n - int(sizes.sum())]] += 1
    return sizes


def total_variance(expanded: Floats, n_draws: Ints, left: Floats, stratum: Ints) -> tuple[Floats, Ints]:
    """The estimated variance of totals from a sample, and the number of draws per stratum that contribute to it.

    ``v = Σ_h m_h/(m_h - 1) Σ_i c_i (e_i - B_h)²`` over the draws i of each stratum h, ``B_h = Σ c_i e_i / Σ c_i``, m_h
    the number of its draws with ``c_i > 0``.

    - ``expanded``: the contribution of each draw of a query to the totals: ``y/π``, or ``y/(n p)`` with replacement,
      shape (n, n_columns)
    - ``n_draws``: number of draws of each query, shape (n,)
    - ``left``: ``c_i``: 1 for independent draws, otherwise ``1 - π_i``, shape (n,)
    - ``stratum``: the stratum of each query, from 0, shape (n,)

    Returns (variance, n_varying): Shapes (n_columns,), NaN if only one draw of a stratum contributes; and (n_strata,).
    """
    n_varying = np.bincount(stratum, weights=np.where(left > 0, n_draws, 0)).astype(np.int64)
    weight = n_draws * left

    def by_stratum(values: Floats) -> Floats:
        sums = np.zeros((len(n_varying), values.shape[1]))
        np.add.at(sums, stratum, values)
        return sums

    with np.errstate(divide="ignore", invalid="ignore"):
        centre = by_stratum(weight[:, None] * expanded) / np.bincount(stratum, weights=weight)[:, None]
        around = by_stratum(weight[:, None] * (expanded - centre[stratum]) ** 2)
        parts = around * np.where(n_varying > 1, n_varying / (n_varying - 1), np.nan)[:, None]
    return np.where(n_varying[:, None] == 0, 0.0, parts).sum(axis=0), n_varying
