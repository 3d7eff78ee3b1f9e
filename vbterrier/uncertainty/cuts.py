"""All cuts of topics by coverage: what they explain, by permuted residuals and over resampled topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.resample import stream
from vbterrier.kernels.segments import explained_by_cuts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Numbers held in memory at a time.
_BATCH = 4_000_000
# Shares this close are one share: sums in another order.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Search:
    """All cuts of some topics: coverage and regressors in its order, and what a segment needs."""

    x: Floats
    beside: Floats
    n_terms: int
    least: float

    @property
    def cuts(self) -> Ints:
        """The first topic of each larger coverage, shape (c,)."""
        return np.flatnonzero(np.diff(self.x) > 0) + 1

    @property
    def spare(self) -> int:
        """Degrees of freedom that a cut leaves."""
        return len(self.x) - int(np.linalg.matrix_rank(self.beside)) - self.n_terms

    def shares(self, y: Floats, weights: Floats) -> Floats:
        """What each cut explains, NaN where it is none; see ``kernels.segments.explained_by_cuts``; shape (b, c)."""
        return explained_by_cuts(self.x, self.beside, y, weights, self.cuts, n_terms=self.n_terms, least=self.least)

    def best(self, y: Floats, weights: Floats) -> tuple[Ints, Floats]:
        """The best cut of each row, and what it explains, 0 where there is none; shape (b,)."""
        found = np.nan_to_num(self.shares(y, weights), nan=0.0)
        return found.argmax(axis=1), found.max(axis=1)

    def f_of(self, explained: Floats) -> Floats:
        """F of shares explained."""
        with np.errstate(divide="ignore"):
            found: Floats = (explained / self.n_terms) / ((1 - explained) / self.spare)
        return found

    def p_of(self, f_statistic: float) -> float:
        """The law of F for one cut."""
        from scipy import stats

        return float(stats.f.sf(f_statistic, self.n_terms, self.spare))

    def batches(self, n: int) -> Iterator[int]:
        """The sizes of batches that make n."""
        step = max(1, _BATCH // max(len(self.x) * self.n_terms * self.beside.shape[1], 1))
        for done in range(0, n, step):
            yield min(step, n - done)


def permuted_p(search: Search, y: Floats, seen: float, n_permutations: int, seed: int) -> float:
    """The share of permuted residuals whose best cut explains as much, what was seen among them."""
    coef, *_ = np.linalg.lstsq(search.beside, y, rcond=None)
    left = y - search.beside @ coef
    draw, ones = stream(seed, "breakpoint permutations"), np.ones((1, len(y)))
    n_as_far = 1
    for size in search.batches(n_permutations):
        permuted = draw.permuted(np.broadcast_to(left, (size, len(left))), axis=1)
        _, explained = search.best(permuted, ones)
        n_as_far += int((explained >= seen - _EQUAL).sum())
    return n_as_far / (n_permutations + 1)


def ends(search: Search, x: Floats, y: Floats, level: float, n_resamples: int, seed: int) -> tuple[float, float]:
    """Percentiles of the best cut over resampled topics."""
    draw, n = stream(seed, "breakpoint resamples"), len(x)
    places = []
    for size in search.batches(n_resamples):
        rows = draw.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        weights = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        cut, explained = search.best(y[None], weights)
        places.append(x[search.cuts[cut]][explained > 0])
    found = np.concatenate(places) if places else np.empty(0)
    if not len(found):
        return float("nan"), float("nan")
    # Places are coverages that there are, not means of them.
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    return float(low), float(high)
