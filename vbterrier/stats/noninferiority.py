"""Non-inferiority of a system to another by two criteria: the mean difference and the share of large losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.frames.answer import FAIL, PASS, UNKNOWN
from vbterrier.kernels.mean_limits import (
    Moments,
    SampledQueries,
    clopper_pearson,
    lower_limit,
    smallest_number,
    upper_limit,
)
from vbterrier.kernels.resample import bounded_limits, stream
from vbterrier.stats.inverted_intervals import confidence_sequence, sequences_exceed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.contracts import Bounds

# Guarantees: a limit of the mean that counts unseen losses, and Clopper and Pearson's of large losses; or limits of the
# mean for any distribution.
BOTH, ANY = "mean+losses", "any"
GUARANTEES = (BOTH, ANY)
# Draws of bounded limits beyond the smallest tail.
_MIN_TAIL_DRAWS, _MAX_DRAWS = 20, 10**8
# Larger samples of queries than these are not considered: a multiple of the sample, and a number.
_MOST_TIMES, _MOST_QUERIES = 10, 1000
# The prior of the share of large losses in confidence sequences: Beta(1/2, 8), most sensitive to shares near .05.
LOSS_SHARE_PRIOR = (0.5, 8.0)
_HALVINGS = 50
# The weight of a set of queries has no logarithm of the rest at 1, and no number at 0.
_LARGEST_SHARE, _SMALLEST_SHARE = 1 - 1e-9, 1e-9
# A part of the distance of tested shares.
_SHARE_OFFSET = 1e-6
# The smallest worst loss that is tried.
_MIN_LOSS_STEP = 1e-3
# The probability of a decision with the number of queries that is stated as needed, and the resamples that estimate it.
DECISION_PROBABILITY, _N_RESAMPLES, _FEW_RESAMPLES = 0.8, 400, 20


@dataclass(frozen=True)
class Criteria:
    """Criteria of a decision on differences new - baseline of queries.

    - ``margin``: the largest acceptable loss of the mean
    - ``tail``: the largest probability of a false PASS, and that of a false FAIL
    - ``guarantee``: ``"mean+losses"`` or ``"any"``
    - ``worst``: no query counts for a larger loss; by default the largest that the bounds permit
    - ``large_loss``, ``max_share``: a loss beyond ``large_loss`` is large; the acceptable share of queries with a large
      loss. 1 leaves this criterion out, as ``"any"`` does
    - ``sequential``: the limits remain valid when they are inspected after every query
    - ``bounds``: the smallest and the largest possible difference
    - ``n_resamples``, ``seed``: draws of limits for any distribution, at least 20/tail, and their seed
    - ``n_failures``: the tests whose FAIL alone decides, among which the probability of a false FAIL is divided
    """

    margin: float
    tail: float
    guarantee: str = BOTH
    worst: float | None = None
    large_loss: float = 0.5
    max_share: float = 0.05
    sequential: bool = False
    bounds: Bounds = (-1.0, 1.0)
    n_resamples: int = 10_000
    seed: int = 0
    n_failures: int = 1

    @property
    def counts_losses(self) -> bool:
        """True if large losses are a criterion."""
        return self.guarantee == BOTH and self.max_share < 1

    @property
    def worst_loss(self) -> float:
        """The largest loss of a query that counts."""
        return -self.bounds[0] if self.worst is None else self.worst

    @property
    def tails(self) -> tuple[float, float]:
        """Probabilities of error of the limits that lead to PASS, which needs all criteria, and to FAIL by any."""
        return self.tail, self.tail / (2 if self.counts_losses else 1) / self.n_failures


@dataclass(frozen=True)
class Limits:
    """One-sided limits of mean differences and of shares of large losses in m samples, each of shape (m,).

    ``mean`` is that of the differences with losses cut at the worst loss, of which ``low`` and ``high`` are limits.
    """

    mean: Floats
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

    def with_added_errors(self, away: tuple[float, float, float, float]) -> Limits:
        """Limits with further independent errors: reaches below and above the mean, and below and above the share."""

        def beyond(limit: Floats, value: Floats, reach: float) -> Floats:
            return value + np.sign(limit - value) * np.hypot(limit - value, reach) if reach > 0 else limit

        low, high = beyond(self.low, self.mean, away[0]), beyond(self.high, self.mean, away[1])
        share_low, share_high = (
            np.clip(beyond(limit, self.share, reach), 0.0, 1.0)
            for limit, reach in ((self.share_low, away[2]), (self.share_high, away[3]))
        )
        return Limits(self.mean, low, high, self.share, share_low, share_high)


def limits(
    criteria: Criteria, differences: Floats, sample: SampledQueries, lost: Floats | None = None, name: str = ""
) -> Limits:
    """Limits of m samples of differences of the same n queries.

    - ``differences``: shape (n, m)
    - ``sample``: how the queries were sampled
    - ``lost``: the probability of a large loss of each query, shape (n, m); by default 0 or 1, from the differences
    - ``name``: part of the key of random draws

    The limits of the mean are those of the differences with losses cut at ``criteria.worst_loss``.
    """
    lost = (differences < -criteria.large_loss).astype(np.float64) if lost is None else lost
    counted = np.maximum(differences, -criteria.worst_loss)
    low, high = _mean_limits(criteria, counted, sample, name)
    share = sample.mean(lost)
    below, above = np.zeros_like(share), np.ones_like(share)
    if criteria.counts_losses:
        below, above = _share_limits(criteria, lost, sample)
    return Limits(sample.estimate(counted), low, high, share, below, above)


def _mean_limits(criteria: Criteria, differences: Floats, sample: SampledQueries, name: str) -> tuple[Floats, Floats]:
    """Limits of means, each of shape (m,)."""
    bounds = (-criteria.worst_loss, criteria.bounds[1])
    above, below = criteria.tails
    tails = np.array([above, 1 - below])
    exact, left, values = sample.split_certain(differences)
    rest = sample.drawn_queries
    if criteria.sequential or criteria.guarantee == ANY:
        ends = [_of_each(criteria, *column, tails, bounds, name) for column in _columns(values, rest)]
        low, high = np.hstack(ends)
    else:
        from scipy import special

        moments, unseen = rest.moments(values).heaviest_unseen, None if rest.unsampled is None else rest.unseen_share
        low = lower_limit(moments, above, -bounds[0], special.stdtrit, unseen)
        # Without a range, queries that were not sampled gain at most what they may lose.
        best = bounds[1] if np.isfinite(bounds[1]) else -bounds[0]
        high = upper_limit(moments, below, best, special.stdtrit, unseen)
    return exact + left * low, exact + left * high


def _columns(values: Floats, sample: SampledQueries) -> Iterator[tuple[Floats, Floats]]:
    """Values and weights of a row for each draw: all columns together, or one at a time if their copies differ."""
    if sample.copies is None:
        yield values, sample.weights
        return
    for column, copies in zip(values.T, np.broadcast_to(sample.copies.T, values.T.shape), strict=True):
        rows = np.repeat(np.arange(len(column)), copies.astype(np.int64))
        yield column[rows, None], sample.weights[rows]


def _of_each(criteria: Criteria, values: Floats, weights: Floats, tails: Floats, bounds: Bounds, name: str) -> Floats:
    """Limits of means by confidence sequences, or for any distribution, shape (2, m)."""
    if criteria.sequential:
        return _sequences(values, weights, tails, bounds)
    return _bounded_limits(criteria, values, weights, tails, bounds, name)


def _share_limits(criteria: Criteria, lost: Floats, sample: SampledQueries) -> tuple[Floats, Floats]:
    """Limits of shares of large losses, each of shape (m,); the upper limit leads to PASS.

    Clopper and Pearson's, with expected counts of queries whose loss is predicted. For unequal weights and clusters,
    the number of queries is that of :func:`n_unseen`.
    """
    above, below = criteria.tails
    exact, left, values = sample.split_certain(lost)
    rest = sample.drawn_queries
    if criteria.sequential:
        ends = [share_sequences(*column, below, above) for column in _columns(values, rest)]
        low, high = np.hstack(ends)
    else:
        from scipy import special

        n = n_unseen(rest, rest.moments(values), above)
        low, high = clopper_pearson(rest.mean(values), n, below, above, special.betaincinv)
    return exact + left * low, exact + left * high


def n_unseen(sample: SampledQueries, moments: Moments, tail: float) -> Floats:
    """The number of queries of equal weight that leave as large a share without a sampled query, with a probability.

    Weights of unsampled queries that are unknown are those of the tail of the sampled ones.
    """
    if sample.unsampled is None:
        return moments.n_heaviest
    share = sample.unseen_share(np.array([-np.log(tail)]))
    return np.asarray(-np.log(tail) / -np.log1p(-np.clip(share, _SMALLEST_SHARE, _LARGEST_SHARE)))


def _bounded_limits(
    criteria: Criteria, values: Floats, weights: Floats, tails: Floats, bounds: Bounds, name: str
) -> Floats:
    smallest = float(min(tails[0], 1 - tails[1]))
    if not smallest * _MAX_DRAWS >= _MIN_TAIL_DRAWS:
        raise ParameterError(
            f"limits that are wrong with probability {smallest:.2g} need more than {_MAX_DRAWS:,} draws; use a "
            "smaller level= or look="
        )
    n_draws = max(criteria.n_resamples, ceil(_MIN_TAIL_DRAWS / smallest))
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
    if np.ptp(weights) > 0:
        return _sequences(lost, weights, np.array([below, 1 - above]), (0.0, 1.0))
    n, k = np.arange(1, len(lost) + 1)[:, None], np.cumsum(lost, axis=0)
    evidence, ends = _evidence(n, k), []
    for tail, outer in ((below, 0.0), (above, 1.0)):
        inside, outside = k / n, np.full(k.shape, outer)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = evidence - _log_likelihood(n, k, middle) <= np.log(1 / tail)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(outside)
    # Intervals only narrow.
    return np.stack([ends[0].max(axis=0), ends[1].min(axis=0)])


def decisions(
    criteria: Criteria,
    differences: Floats,
    sample: SampledQueries,
    lost: Floats | None = None,
    away: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
) -> list[str]:
    """PASS, FAIL or UNKNOWN of m samples; ``away``: further errors, see :meth:`Limits.with_added_errors`."""
    if criteria.sequential:
        return _sequential_decisions(criteria, differences, sample, lost, away)
    interval = limits(criteria, differences, sample, lost)
    return interval.with_added_errors(away).decisions(criteria)


def _sequential_decisions(
    criteria: Criteria,
    differences: Floats,
    sample: SampledQueries,
    lost: Floats | None,
    away: tuple[float, float, float, float],
) -> list[str]:
    """Decisions by confidence sequences, from the capital against the margin and the largest share alone.

    They are those of :func:`limits`, unless a sequence has excluded all means before.
    """
    lost = (differences < -criteria.large_loss).astype(np.float64) if lost is None else lost
    bounds = (-criteria.worst_loss, criteria.bounds[1])
    values, lost, weights = _in_order(np.maximum(differences, bounds[0]), lost, sample)
    mean, share = ((weights * each).sum(axis=0) / weights.sum(axis=0) for each in (values, lost))
    margin, (above, below) = np.full(len(mean), -criteria.margin), criteria.tails
    passed = sequences_exceed(values, weights, above, bounds, _before(margin, mean, away[0]))
    negative = (-bounds[1], -bounds[0])
    failed = sequences_exceed(-values, weights, below, negative, _before(-margin, -mean, away[1]))
    if criteria.counts_losses:
        most = np.full(len(mean), criteria.max_share)
        passed &= _share_is_excluded(lost, weights, above, -_before(-most, -share, away[3]), is_above=True)
        failed |= _share_is_excluded(lost, weights, below, _before(most, share, away[2]), is_above=False)
    return [PASS if good else FAIL if bad else UNKNOWN for good, bad in zip(passed, failed, strict=True)]


def _in_order(values: Floats, lost: Floats, sample: SampledQueries) -> tuple[Floats, Floats, Floats]:
    """Values, losses and weights with a row for each draw, shape (n, m); the draws of a query follow each other."""
    n, m = values.shape
    weights, lost = np.broadcast_to(sample.weights[:, None], (n, m)), np.broadcast_to(lost, (n, m))
    if sample.copies is None:
        return values, lost, weights
    copies = np.broadcast_to(sample.copies.reshape(n, -1), (n, m)).T.astype(np.int64)
    rows = np.repeat(np.tile(np.arange(n), m), copies.ravel()).reshape(m, -1).T
    return (
        np.take_along_axis(values, rows, axis=0),
        np.take_along_axis(lost, rows, axis=0),
        np.take_along_axis(weights, rows, axis=0),
    )


def _before(least: Floats, value: Floats, reach: float) -> Floats:
    """The lower limit that :meth:`Limits.with_added_errors` moves to ``least``; infinite if the reach passes it."""
    if reach <= 0:
        return least
    away = value - least
    return np.where(away > reach, value - np.sqrt(np.maximum(away**2 - reach**2, 0.0)), np.inf)


def _share_is_excluded(lost: Floats, weights: Floats, tail: float, share: Floats, *, is_above: bool) -> Bools:
    """True for each column whose sequence has excluded a share, which is above, or below, the observed ones."""
    if np.ptp(weights) > 0:
        if is_above:
            # A limit that equals the share excludes larger ones.
            return sequences_exceed(-lost, weights, tail, (-1.0, 0.0), -share - _SHARE_OFFSET)
        return sequences_exceed(lost, weights, tail, (0.0, 1.0), share)
    n, k = np.arange(1, len(lost) + 1)[:, None], np.cumsum(lost, axis=0)
    is_outside = (k < n * share) if is_above else (k > n * share)
    evidence = _evidence(n, k) - _log_likelihood(n, k, np.clip(share, 0.0, 1.0))
    return np.asarray((is_outside & (evidence > np.log(1 / tail))).any(axis=0))


def _evidence(n: Ints, k: Floats) -> Floats:
    """The logarithm of the probability of k losses in n queries, averaged over the prior of their share."""
    from scipy import special

    a, b = LOSS_SHARE_PRIOR
    return np.asarray(special.betaln(a + k, b + n - k) - special.betaln(a, b))


def _log_likelihood(n: Ints, k: Floats, share: Floats) -> Floats:
    """The logarithm of the probability of k losses in n queries with a share."""
    from scipy import special

    return np.asarray(special.xlogy(k, share) + special.xlog1py(n - k, -share))


@dataclass(frozen=True, eq=False)
class SampledPair:
    """Differences of a pair of systems on sampled queries, with the criteria of their decision.

    - ``differences``, ``lost``: the difference of each query, and its probability of a large loss, shape (n,)
    - ``sample``: how the queries were sampled
    - ``away``: further errors, see :meth:`Limits.with_added_errors`
    """

    criteria: Criteria
    differences: Floats
    sample: SampledQueries
    lost: Floats
    away: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def limits(self, name: str = "") -> Limits:
        """The limits of one sample, without further errors; ``name``: see :func:`limits`."""
        return limits(self.criteria, self.differences[:, None], self.sample, self.lost[:, None], name)

    def probability_of_decision(self, size: int) -> float:
        """The share of resamples of ``size`` of the observed units that are decided: queries, or clusters.

        Errors of predictions decrease with the square root of the number.
        """
        criteria, sample = self.criteria, self.sample
        n_resamples = _FEW_RESAMPLES if criteria.sequential or criteria.guarantee == ANY else _N_RESAMPLES
        resampled = sample.resample_units(size, n_resamples, stream(criteria.seed, "queries needed"))
        drawn = sample.drawn_queries.copies
        n_observed = sample.n_units if drawn is None else drawn.sum()
        values, losses = (np.repeat(each[:, None], n_resamples, axis=1) for each in (self.differences, self.lost))
        scale = float(np.sqrt(n_observed / size))
        below, above, share_below, share_above = self.away
        reach = (below * scale, above * scale, share_below * scale, share_above * scale)
        outcomes = decisions(replace(criteria, n_resamples=1), values, resampled, losses, reach)
        return 1 - outcomes.count(UNKNOWN) / n_resamples

    def number_that_decides(self) -> int | None:
        """The smallest number of queries, such as those of the sample, that decide with a probability of .8.

        See :meth:`probability_of_decision`. Returns None if ten times the queries, or 1,000, do not suffice.
        """
        certain, n_units = self.sample.certain, self.sample.n_units
        n_certain = 0 if certain is None else int((certain > 0).sum())
        n = len(self.differences) - n_certain
        most = max(_MOST_TIMES * n_units, _MOST_QUERIES)
        n_needed = smallest_number(self.probability_of_decision, DECISION_PROBABILITY, 1, most)
        return None if n_needed is None else n_certain + ceil(n_needed * n / n_units)

    def passing_worst_loss(self) -> float:
        """The largest worst loss with which the sample passes, by bisection; NaN if none passes."""
        criteria, differences, lost = self.criteria, self.differences[:, None], self.lost[:, None]

        def passes(worst: float) -> bool:
            tried = replace(criteria, worst=worst)
            return decisions(tried, differences, self.sample, lost, self.away) == [PASS]

        low, high = criteria.margin, min(criteria.worst_loss, -criteria.bounds[0])
        if not low < high or not passes(low + _MIN_LOSS_STEP * (high - low)):
            return np.nan
        for _ in range(_HALVINGS // 2):
            middle = (low + high) / 2
            low, high = (middle, high) if passes(middle) else (low, middle)
        return low


def welch_p(means: Floats, variances: Floats, df: Floats) -> float:
    """P-value of equal means of k groups with unequal variances of their means.

    ``F = Σ w (m - m̄)²/(k - 1)/(1 + 2 (k - 2) Λ/(k² - 1))`` with w the inverse variances, m̄ their weighted mean,
    ``Λ = Σ (1 - w/Σw)²/df``, and ``(k² - 1)/(3 Λ)`` degrees of freedom of the denominator. Without spread in a group, 1
    if all means are equal, and NaN otherwise.

    - ``means``, ``variances``, ``df``: shape (k,)

    Source: Welch, Biometrika 38, 1951.
    """
    from scipy import special

    if not (variances > 0).all():
        return 1.0 if np.ptp(means) == 0 else np.nan
    k, w = len(means), 1 / variances
    center = (w * means).sum() / w.sum()
    rest = ((1 - w / w.sum()) ** 2 / df).sum()
    f = (w * (means - center) ** 2).sum() / (k - 1) / (1 + 2 * (k - 2) * rest / (k**2 - 1))
    return float(special.fdtrc(k - 1, (k**2 - 1) / (3 * rest), f))
