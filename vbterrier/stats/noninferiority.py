"""Non-inferiority of a system to another by two criteria: the mean difference and the share of large losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.kernels.resample import bounded_limits, constant_limits, stream
from vbterrier.stats.inverted_intervals import confidence_sequence

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.frames.contracts import Bounds

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
# Guarantees: Student's t for the mean and Clopper-Pearson for large losses, or limits for any distribution of the mean.
BOTH, ANY = "mean+losses", "any"
GUARANTEES = (BOTH, ANY)
# Draws of bounded limits beyond the smallest tail.
_BEYOND, _MOST_DRAWS = 20, 10**8
# Larger samples of queries than these are not considered: a multiple of the sample, and a number.
_MOST_TIMES, _MOST_QUERIES = 10, 1000
# The prior of the share of large losses in confidence sequences: Beta(1/2, 8), most sensitive to shares near .05.
PRIOR = (0.5, 8.0)
_HALVINGS = 50
# A count above 0 that replaces 0.
_FEWEST = 1e-9


@dataclass(frozen=True)
class Criteria:
    """Criteria of a decision on differences new - baseline of queries.

    - ``margin``: the largest acceptable loss of the mean
    - ``tail``: the largest probability of a false PASS, and that of a false FAIL
    - ``guarantee``: ``"mean+losses"`` or ``"any"``
    - ``large_loss``, ``max_share``: a loss beyond ``large_loss`` is large; the acceptable share of queries with a large
      loss. 1 leaves this criterion out, as ``"any"`` does
    - ``sequential``: the limits remain valid when they are inspected after every query
    - ``bounds``: the smallest and the largest possible difference
    - ``n_resamples``, ``seed``: draws of limits for any distribution, at least 20/tail, and their seed
    """

    margin: float
    tail: float
    guarantee: str = BOTH
    large_loss: float = 0.5
    max_share: float = 0.05
    sequential: bool = False
    bounds: Bounds = (-1.0, 1.0)
    n_resamples: int = 10_000
    seed: int = 0

    @property
    def counts_losses(self) -> bool:
        """True if large losses are a criterion."""
        return self.guarantee == BOTH and self.max_share < 1

    @property
    def tails(self) -> tuple[float, float]:
        """Probabilities of error of the limits that lead to PASS, which needs both criteria, and to FAIL by either."""
        return self.tail, self.tail / 2 if self.counts_losses else self.tail


@dataclass(frozen=True)
class Limits:
    """One-sided limits of mean differences and of shares of large losses in m samples, each of shape (m,)."""

    low: Floats
    high: Floats
    share: Floats
    share_low: Floats
    share_high: Floats

    def decisions(self, criteria: Criteria) -> list[str]:
        """PASS, FAIL or UNKNOWN of each sample."""
        few = ~(self.share_high > criteria.max_share) | (not criteria.counts_losses)
        many = (self.share_low > criteria.max_share) & criteria.counts_losses
        passed = (self.low > -criteria.margin) & few
        failed = (self.high < -criteria.margin) | many
        return [PASS if good else FAIL if bad else UNKNOWN for good, bad in zip(passed, failed, strict=True)]

    def widened(self, mean: Floats, away: tuple[float, float, float, float]) -> Limits:
        """Limits with further independent errors: reaches below and above the mean, and below and above the share."""

        def beyond(limit: Floats, value: Floats, reach: float) -> Floats:
            return value + np.sign(limit - value) * np.hypot(limit - value, reach) if reach > 0 else limit

        low, high = beyond(self.low, mean, away[0]), beyond(self.high, mean, away[1])
        share_low, share_high = (
            np.clip(beyond(limit, self.share, reach), 0.0, 1.0)
            for limit, reach in ((self.share_low, away[2]), (self.share_high, away[3]))
        )
        return Limits(low, high, self.share, share_low, share_high)


def limits(
    criteria: Criteria, differences: Floats, weights: Floats, lost: Floats | None = None, name: str = ""
) -> Limits:
    """Limits of m samples of differences of the same n queries.

    - ``differences``, ``weights``: shapes (n, m) and (n,)
    - ``lost``: the probability of a large loss of each query, shape (n, m); by default 0 or 1, from the differences
    - ``name``: part of the key of random draws
    """
    lost = (differences < -criteria.large_loss).astype(np.float64) if lost is None else lost
    tails = np.array([criteria.tails[0], 1 - criteria.tails[1]])
    low, high = _mean_limits(criteria, differences, weights, tails, name)
    share = np.average(lost, axis=0, weights=weights)
    below, above = np.zeros_like(share), np.ones_like(share)
    if criteria.counts_losses:
        below, above = _share_limits(criteria, lost, weights, name)
    return Limits(low, high, share, below, above)


def _mean_limits(criteria: Criteria, differences: Floats, weights: Floats, tails: Floats, name: str) -> Floats:
    """Limits of weighted means, shape (2, m)."""
    if criteria.sequential:
        return _sequences(differences, weights, tails, criteria.bounds)
    if criteria.guarantee == ANY:
        return _bounded(criteria, differences, weights, tails, criteria.bounds, name)
    from scipy import special

    n, mean = len(differences), np.average(differences, axis=0, weights=weights)
    # The linearised weighted mean, D + w (d - D)/w̄.
    linear = mean + (weights / weights.mean())[:, None] * (differences - mean)
    ends = mean + special.stdtrit(n - 1, tails)[:, None] * linear.std(axis=0, ddof=1) / np.sqrt(n)
    same = np.ptp(differences, axis=0) == 0
    if same.any():
        # Equal differences have no spread: other queries may differ, by large losses only as far as these are bounded.
        reach = criteria.large_loss if criteria.counts_losses else np.inf
        bounds = tuple(np.clip(bound, mean[same] - reach, mean[same] + reach) for bound in criteria.bounds)
        ends[:, same] = constant_limits(mean[same], n, bounds, tails)
    return np.asarray(ends)


def _share_limits(criteria: Criteria, lost: Floats, weights: Floats, name: str) -> Floats:
    """Limits of shares of large losses, shape (2, m); the upper limit leads to PASS.

    Clopper and Pearson's for equal weights, with expected counts of queries whose loss is predicted; otherwise limits
    for any distribution, of which they are a special case.
    """
    from scipy import special

    above, below = criteria.tails
    if criteria.sequential:
        return share_sequences(lost, weights, below, above)
    if np.ptp(weights) > 0:
        return _bounded(criteria, lost, weights, np.array([below, 1 - above]), (0.0, 1.0), f"{name} losses")
    n, count = len(lost), lost.sum(axis=0)
    # The limits are 0 without a loss and 1 with losses alone, where the inverse is undefined.
    low = np.where(count > 0, special.betaincinv(np.maximum(count, _FEWEST), n - count + 1, below), 0.0)
    high = np.where(count < n, special.betaincinv(count + 1, np.maximum(n - count, _FEWEST), 1 - above), 1.0)
    return np.stack([low, high])


def _bounded(criteria: Criteria, values: Floats, weights: Floats, tails: Floats, bounds: Bounds, name: str) -> Floats:
    smallest = float(min(tails[0], 1 - tails[1]))
    if not smallest * _MOST_DRAWS >= _BEYOND:
        raise ParameterError(
            f"limits that are wrong with probability {smallest:.2g} need more than {_MOST_DRAWS:,} draws; use a "
            "smaller level= or look="
        )
    n_draws = max(criteria.n_resamples, ceil(_BEYOND / smallest))
    return bounded_limits(values, bounds, tails, n_draws, stream(criteria.seed, "release gate", name), weights)


def _sequences(values: Floats, weights: Floats, tails: Floats, bounds: Bounds) -> Floats:
    """The last limits of confidence sequences of each column, shape (2, m)."""
    ends = np.empty((2, values.shape[1]))
    for place, column in enumerate(values.T):
        for side, (tail, end) in enumerate(((tails[0], "low"), (1 - tails[1], "high"))):
            last = confidence_sequence(column, level=1 - 2 * tail, bounds=bounds, weights=weights).iloc[-1]
            ends[side, place] = last[end]
    return ends


def share_sequences(lost: Floats, weights: Floats, below: float, above: float) -> Floats:
    """The last limits of confidence sequences of shares of large losses, shape (2, m); sequences of means if weighted.

    A share p is excluded at a level 1 - α once ``B(a + k, b + n - k)/B(a, b) > p^k (1 - p)^(n - k)/α`` after n queries
    of which k lost: the left side over the likelihood is a martingale under p (Robbins, Ann. Math. Stat. 41, 1970).
    """
    from scipy import special

    if np.ptp(weights) > 0:
        return _sequences(lost, weights, np.array([below, 1 - above]), (0.0, 1.0))
    n, k = np.arange(1, len(lost) + 1)[:, None], np.cumsum(lost, axis=0)
    a, b = PRIOR
    evidence = special.betaln(a + k, b + n - k) - special.betaln(a, b)
    ends = []
    for tail, outer in ((below, 0.0), (above, 1.0)):
        inside, outside = k / n, np.full(k.shape, outer)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = evidence - special.xlogy(k, middle) - special.xlog1py(n - k, -middle) <= np.log(1 / tail)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(outside)
    # Intervals only narrow.
    return np.stack([ends[0].max(axis=0), ends[1].min(axis=0)])


def queries_needed(
    criteria: Criteria,
    differences: Floats,
    weights: Floats,
    lost: Floats,
    away: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
) -> int | None:
    """The number of queries at which a sample with the observed spread is decided.

    The queries are repeated evenly in the order of their differences, so that all shares are those of the sample;
    errors of predictions ``away``, see :meth:`Limits.widened`, decrease with the square root of the number. Returns
    None if ten times the queries, or 1,000, decide nothing.

    - ``differences``, ``weights``, ``lost``: shape (n,)
    """
    n, criteria, order = len(differences), replace(criteria, n_resamples=1), np.argsort(differences, kind="stable")

    def decided(size: int) -> bool:
        rows = order[((np.arange(size) + 0.5) * n / size).astype(np.int64)]
        if criteria.sequential:
            # Sequences depend on the order.
            rows = rows[np.random.default_rng(criteria.seed).permutation(size)]
        part = differences[rows, None], weights[rows], lost[rows, None]
        scale = float(np.sqrt(n / size))
        mean = np.average(part[0], axis=0, weights=part[1])
        reach = (away[0] * scale, away[1] * scale, away[2] * scale, away[3] * scale)
        return limits(criteria, *part).widened(mean, reach).decisions(criteria)[0] != UNKNOWN

    few, many = n, max(_MOST_TIMES * n, _MOST_QUERIES)
    if not decided(many):
        return None
    while many - few > max(1, few // 50):
        middle = (few + many) // 2
        few, many = (few, middle) if decided(middle) else (middle, many)
    return many
