"""Variances of means over topics, split by source, and their resamples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.nested import resampled_variances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.nested import Counts

    Floats = NDArray[np.float64]

# Variances this close are one variance, summed in another order.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Components:
    """Values of topics (m, n), their variances within topics, what values hold of these; parts of sources (S, m, n)."""

    values: Floats
    within: Floats
    held: Floats
    parts: Floats
    often: Counts

    def contributions(self) -> Floats:
        """The variance of the mean by source, shape (m, sources)."""
        n = self.values.shape[1]
        if n == 1:
            warnings.warn(
                "one topic says nothing of others: the share of topics needs two at least",
                DegenerateWarning,
                stacklevel=3,
            )
        spread: Floats = self.values.var(axis=1, ddof=1) if n > 1 else np.full(len(self.values), np.nan)
        between = spread - self.held.mean(axis=1)
        if (between < -_EQUAL).any():
            warnings.warn(
                f"noise within topics explains more than all of the spread over topics of {int((between < 0).sum())} "
                f"of {len(between)} means: topics contribute 0",
                DegenerateWarning,
                stacklevel=3,
            )
        return np.asarray(_by_source(between, self.within.mean(axis=1), self.parts.mean(axis=2)) / n)

    def ends_of_shares(self, contributions: Floats, level: float) -> tuple[Floats, Floats]:
        """Quantiles of the shares over resampled topics, each (m, sources); NaN where there are no shares."""
        n, unknown = len(self.often), np.isnan(shares_of(contributions))
        if n == 1:
            return np.full(unknown.shape, np.nan), np.full(unknown.shape, np.nan)
        weights = self.often.astype(np.float64) / n
        _, spread = resampled_variances(self.values, self.often)
        drawn = _by_source(spread - self.held @ weights, self.within @ weights, self.parts @ weights)
        # Resamples of one topic again and again have no variance to share.
        shares = np.nan_to_num(np.moveaxis(shares_of(np.moveaxis(drawn, 1, 2)), 2, 1), nan=0.0)
        low, high = ends_of(shares, level)
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)

    def resampled(self, topics: Floats) -> Floats:
        """Means over resampled topics whose values spread as expected scores do, shape (m, B)."""
        n = len(self.often)
        if n == 1:
            return np.full((len(self.values), self.often.shape[1]), np.nan)
        mean = self.values.mean(axis=1, keepdims=True)
        spread = self.values.var(axis=1, ddof=1, keepdims=True)
        shrunk = np.sqrt(np.divide(topics[:, None] * n, spread, out=np.zeros_like(spread), where=spread > 0))
        # Values that hold no noise stay as they are, to the last bit.
        values = self.values if not self.held.any() else mean + shrunk * (self.values - mean)
        means: Floats = values @ self.often.astype(np.float64) / n
        return means


def _by_source(between: Floats, within: Floats, parts: Floats) -> Floats:
    """Topics (m, ...), the sources (S, m, ...), and what several leave of ``within``: (m, S + 2, ...).

    Estimates that add up to more than there is are taken in proportion.
    """
    between, parts = np.maximum(between, 0.0), np.maximum(parts, 0.0)
    if len(parts) == 1:
        return np.stack([between, within], axis=1)
    both = parts.sum(axis=0)
    parts = parts * np.where(both > within, np.divide(within, both, out=np.ones_like(both), where=both > 0), 1.0)
    rest = np.maximum(within - parts.sum(axis=0), 0.0)
    return np.stack([between, *parts, rest], axis=1)


def shares_of(variances: Floats) -> Floats:
    """Parts of the sum along the last axis; NaN where it is 0."""
    total = variances.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(variances, total, out=np.full(variances.shape, np.nan), where=total > 0)
    return shares


def ends_of(means: Floats, level: float) -> tuple[Floats, Floats]:
    """The quantiles that hold the middle of draws along the last axis."""
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return low, high
