"""Paired tests of many pairs of systems at once, and intervals of ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.kernels.mean_limits import SampledQueries, lower_limit, p_value, upper_limit
from vbterrier.kernels.normal import normal_cdf
from vbterrier.kernels.resample import (
    BLOCK_CELLS,
    INFINITY_SUBSTITUTE,
    random_signs,
    resamples,
    stream,
    studentised_means,
)
from vbterrier.kernels.student_t import t_cdf, t_quantile
from vbterrier.kernels.tolerances import REPLICA_ROUNDING, ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.mean_limits import Moments
    from vbterrier.stats.ratio_tests import RatioPair


# The tests and their names in the P frame.
TESTS = {
    "moderated": "moderated paired t",
    "randomisation": "sign-flip randomisation",
    "t": "paired t",
    "wilcoxon": "Wilcoxon signed-rank",
    "bootstrap": "studentised bootstrap",
}
RESAMPLED_TESTS = ("randomisation", "bootstrap")
# A standard deviation needs at least two topics.
MIN_TOPICS = 2
# Up to this number of topics, tied signed ranks are tested by all sign flips, as in SciPy.
_MAX_EXACT_TIES = 13
# The weight of the median variance of all pairs, in topics: variances of few topics are moderated most.
_PRIOR_TOPICS = 4


def paired_p(
    differences: Floats, test: str, *, n_resamples: int, seed: int, ratios: Sequence[RatioPair | None] = ()
) -> Floats:
    """Two-sided p-values of the hypothesis that the differences of a pair are centred at 0, shape (k,).

    ``differences`` has a row for each topic, a column for each pair. ``"randomisation"``: the proportion of sign flips
    whose mean is at least as far from 0, among all ``2^n`` if these are at most ``n_resamples``, otherwise among random
    flips and the observed statistic (Phipson and Smyth 2010); exact if the scores of both systems are exchangeable.
    ``"bootstrap"``: the proportion of resamples of the centred differences whose ``|t|`` is at least the observed one,
    which is counted too (Efron and Tibshirani 1993, section 16.4; Sakai, SIGIR 2006, figure 1). ``"t"``: Student's;
    ``"moderated"``: with moderated variances, see :func:`t_test`.
    ``"wilcoxon"``: signed ranks as in SciPy: differences of 0 are dropped; the null distribution is exact up to 50
    topics without ties and up to 13 with ties, and normal without continuity correction beyond.

    ``ratios``: of pairs whose differences are linearised ratios of sums, their answers, which tests that resample
    exchange and draw instead.

    Returns 1 if no topic differs, and for a single topic. If all topics differ by the same amount, see :func:`t_test`.
    """
    if len(differences) < MIN_TOPICS:
        return np.ones(differences.shape[1])
    if test in RESAMPLED_TESTS:
        return max_t(differences, test, n_resamples=n_resamples, seed=seed, ratios=ratios)[0]
    if test == "wilcoxon":
        return _wilcoxon(differences)
    return t_test(differences, moderated=test == "moderated").p_value


class TTest(NamedTuple):
    """Student's t tests of k mean differences, each of shape (k,).

    ``mean``; ``error``: its standard error, 0 without spread; ``df``: degrees of freedom, (1,) or (k,);
    ``n_effective``: the number of topics of equal weight that the sample is worth; ``p_value``: two-sided.
    """

    mean: Floats
    error: Floats
    df: Floats
    n_effective: Floats
    p_value: Floats
    moments: Moments
    bounds: tuple[float, float]

    @property
    def t(self) -> Floats:
        """Student's t: 0 or infinite without spread."""
        flat = np.where(self.mean == 0, 0.0, np.copysign(np.inf, self.mean))
        return np.asarray(np.divide(self.mean, self.error, out=flat, where=self.error > 0))

    def limits(self, levels: Floats) -> Floats:
        """Limits of the differences at significance levels of shape (k,), shape (2, k).

        Without spread, those of :func:`~vbterrier.kernels.mean_limits.lower_limit`, infinite for unknown bounds.
        """
        below = 1 - levels / 2
        half = t_quantile(self.df, below) * self.error
        ends = np.stack([self.mean - half, self.mean + half])
        constant = np.flatnonzero(self.error == 0)
        if len(constant):
            ends[:, constant] = [[-np.inf], [np.inf]]
            if np.isfinite(self.bounds).all():
                tail = np.broadcast_to(levels, self.mean.shape)[constant] / 2
                low = lower_limit(self.moments, tail.min(), -self.bounds[0], t_quantile)
                high = upper_limit(self.moments, tail.min(), self.bounds[1], t_quantile)
                ends[:, constant] = low[constant], high[constant]
        return ends


def moderated_variances(variances: Floats, df: Any) -> Floats:
    """Variances of k pairs that are at least ``(v df + 4 median)/(df + 4)``, shape (k,)."""
    return np.asarray(
        np.maximum(variances, (variances * df + _PRIOR_TOPICS * np.median(variances)) / (df + _PRIOR_TOPICS))
    )


def t_test(
    differences: Floats,
    *,
    moderated: bool,
    sample: SampledQueries | None = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> TTest:
    """Paired t tests of the columns of differences.

    ``moderated``: no variance is below ``(v df + 4 median)/(df + 4)``, with the median variance of all pairs, so that
    pairs that differ little by chance are not significant. Weights and clusters: HC2 variances with Satterthwaite's
    degrees of freedom, see :func:`~vbterrier.kernels.mean_limits.moments`. Without any spread, p is that of
    :func:`~vbterrier.kernels.mean_limits.p_value`, which assumes that other topics differ by up to the ``bounds``, and
    1 if these are unknown.

    Source: Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, for the idea of moderation.
    """
    sample = SampledQueries.equal(len(differences)) if sample is None else sample
    moments = sample.moments(differences)
    variance = moments.variance
    if moderated:
        variance = moderated_variances(variance, moments.df)
    error = np.sqrt(variance)
    mean = np.where(np.abs(moments.mean) > ROUNDING * np.abs(differences).max(axis=0, initial=0.0), moments.mean, 0.0)
    t = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)
    p = np.asarray(2 * t_cdf(moments.df, -np.abs(t)))
    constant = (error == 0) & (mean != 0)
    if constant.any() and np.isfinite(bounds).all():
        sides = [
            p_value(each, 0.0, worst, t_cdf) for each, worst in ((moments, -bounds[0]), (moments.negation, bounds[1]))
        ]
        p[constant] = np.minimum(2 * np.minimum(*sides), 1.0)[constant]
    return TTest(
        mean, error, moments.df, moments.n_effective, np.where((error == 0) & (mean == 0), 1.0, p), moments, bounds
    )


def max_t(
    differences: Floats, test: str, *, n_resamples: int, seed: int, ratios: Sequence[RatioPair | None] = ()
) -> tuple[Floats, Floats]:
    """Unadjusted and max-T adjusted p-values of each pair, under joint sign flips or resamples, shape (k,).

    Westfall and Young's step-down (1993, algorithm 2.8): the observed ``|t|`` of a pair is compared with the largest
    ``|t|`` among the pairs whose observed ``|t|`` is not larger. It controls the family-wise error rate if the joint
    null distribution of the true hypotheses is the resampled one. Time is ``n_resamples · n · k``, in matrix products.
    """
    if len(differences) < MIN_TOPICS:
        return np.ones(differences.shape[1]), np.ones(differences.shape[1])
    pairs = list(ratios) or [None] * differences.shape[1]
    order = np.argsort(null_distribution(differences, test, n_resamples, seed, pairs).observed, kind="stable")
    null = null_distribution(differences[:, order], test, n_resamples, seed, [pairs[at] for at in order])
    as_extreme, max_as_extreme = np.zeros((2, len(order)))
    for block in null.blocks:
        maximum = np.zeros(len(block))
        step = max(1, BLOCK_CELLS // len(block))
        for start in range(0, len(order), step):
            these = slice(start, start + step)
            drawn = null.block_statistics(block, these)
            threshold = null.observed[these, None] - ROUNDING * np.sqrt(len(differences))
            as_extreme[these] += np.count_nonzero(drawn >= threshold, axis=1)
            np.maximum(drawn[0], maximum, out=drawn[0])
            np.maximum.accumulate(drawn, axis=0, out=drawn)
            max_as_extreme[these] += np.count_nonzero(drawn >= threshold, axis=1)
            maximum = drawn[-1]
    p_values = np.empty((2, len(order)))
    # Adjusted p-values must not decrease with a smaller observed statistic.
    stepped = np.maximum.accumulate(max_as_extreme[::-1])[::-1]
    p_values[:, order] = (np.stack([as_extreme, stepped]) + null.n_observed) / (null.n_draws + null.n_observed)
    return p_values[0], p_values[1]


def null_distribution(
    differences: Floats, test: str, n_resamples: int, seed: int, ratios: Sequence[RatioPair | None] = ()
) -> NullDistribution:
    """The null distribution of a resampling test."""
    draw = _sign_flip_distribution if test == "randomisation" else _bootstrap_distribution
    null = draw(differences, n_resamples, seed)
    return _ratio_distribution(null, differences, test, ratios) if any(ratios) else null


def _ratio_distribution(
    null: NullDistribution, differences: Floats, test: str, ratios: Sequence[RatioPair | None]
) -> NullDistribution:
    """The null distribution with the statistics of ratios, which are on the scale of those of differences."""
    observed, n = null.observed.copy(), len(differences)
    # Sign flips do not change the standard error of linearised differences.
    scale = n / np.maximum(np.sqrt((differences**2).sum(axis=0)), ROUNDING)

    def statistic(block: Floats, at: int, ratio: RatioPair) -> Floats:
        return ratio.flipped_differences(block) * scale[at] if test == "randomisation" else ratio.resampled_t(block)

    def block_statistics(block: Floats, these: slice) -> Floats:
        made = null.block_statistics(block, these)
        for row, at in enumerate(range(len(observed))[these]):
            ratio = ratios[at]
            if ratio is not None:
                made[row] = statistic(block, at, ratio)
        return made

    for at, ratio in enumerate(ratios):
        if ratio is not None:
            whole = np.ones((1, n))
            if test == "randomisation":
                observed[at] = statistic(whole, at, ratio)[0]
            else:
                difference, spread = (float(np.abs(each[0])) for each in ratio.difference(whole))
                none = 0.0 if difference <= ROUNDING else INFINITY_SUBSTITUTE
                observed[at] = difference / spread if spread > ROUNDING else none
    return replace(null, observed=observed, block_statistics=block_statistics)


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Observed ``|t|`` of each pair and draws under the hypothesis, up to the same increasing function.

    - ``observed``: shape (k,)
    - ``blocks``: signs or counts of topics, shape (rows, n)
    - ``block_statistics``: function of a block and a slice of pairs, which returns shape (pairs, rows)
    - ``n_draws``: number of rows of all blocks
    - ``n_observed``: 1 to count the observed statistic besides the draws, 0 if it is one of the draws
    """

    observed: Floats
    blocks: Iterator[Floats]
    block_statistics: Callable[[Floats, slice], Floats]
    n_draws: int
    n_observed: int


def _sign_flip_distribution(differences: Floats, n_resamples: int, seed: int) -> NullDistribution:
    # Flips do not change the sum of squares, so that t increases with the mean of the normalised differences.
    size = np.sqrt((differences**2).sum(axis=0))
    unit = np.divide(differences, size, out=np.zeros_like(differences), where=size > 0).T
    n = unit.shape[1]
    all_flips = 2**n <= n_resamples
    blocks = _all_signs(n) if all_flips else random_signs(n, n_resamples, stream(seed, "sign flips"))

    def block_statistics(block: Floats, these: slice) -> Floats:
        return np.asarray(np.abs(unit[these] @ block.T))

    n_draws = 2**n if all_flips else n_resamples
    return NullDistribution(np.abs(unit.sum(axis=1)), blocks, block_statistics, n_draws, 0 if all_flips else 1)


def _all_signs(n: int) -> Iterator[Floats]:
    step = max(1, BLOCK_CELLS // max(n, 1))
    for start in range(0, 2**n, step):
        numbers = np.arange(start, min(start + step, 2**n))[:, None]
        yield 1.0 - 2.0 * (numbers >> np.arange(n) & 1).astype(np.float64)


def _bootstrap_distribution(differences: Floats, n_resamples: int, seed: int) -> NullDistribution:
    n = len(differences)
    mean, std = differences.mean(axis=0), column_std(differences)
    scaled = np.divide(differences - mean, std, out=np.zeros_like(differences), where=std > 0).T
    squares = scaled**2
    observed = np.divide(np.abs(mean), std, out=np.where(mean == 0, 0.0, INFINITY_SUBSTITUTE), where=std > 0)

    def block_statistics(block: Floats, these: slice) -> Floats:
        return np.abs(studentised_means(scaled[these] @ block.T / n, squares[these] @ block.T / n))

    return NullDistribution(
        observed, resamples(n, n_resamples, stream(seed, "bootstrap test")), block_statistics, n_resamples, 1
    )


def column_std(differences: Floats) -> Floats:
    """Standard deviation (divisor n) of each column, with rounding errors set to 0, shape (k,)."""
    std = differences.std(axis=0)
    return np.where(std > ROUNDING * np.abs(differences).max(axis=0, initial=0.0), std, 0.0)


def t_statistic(differences: Floats, against: float = 0.0) -> Floats:
    """Student's t of column means against a number, shape (k,): 0 or infinite without spread, NaN for a single topic.

    >>> t_statistic(np.array([[1.0, 0.5, 0.0], [3.0, 0.5, 0.0]])).tolist()
    [2.0, inf, 0.0]
    """
    n = len(differences)
    distance, std = differences.mean(axis=0) - against, column_std(differences)
    distance = np.where(np.abs(distance) > ROUNDING * np.abs(differences).max(axis=0, initial=0.0), distance, 0.0)
    flat = np.where(distance == 0, 0.0, np.copysign(np.inf, distance)) if n >= MIN_TOPICS else distance * np.nan
    return np.asarray(np.divide(distance * np.sqrt(n - 1), std, out=flat, where=std > 0))


def _wilcoxon(differences: Floats) -> Floats:
    from scipy import stats

    n = len(differences)
    largest = np.abs(differences).max(axis=0)
    p_values = np.ones(differences.shape[1])
    differs = np.flatnonzero(largest > 0)
    # Differences that are equal except for rounding are ties.
    scaled = np.round(differences[:, differs] / largest[differs], 12)
    ordered = np.sort(np.abs(scaled), axis=0)
    tied = (ordered[0] == 0) | (np.diff(ordered, axis=0) == 0).any(axis=0)
    if n <= _MAX_EXACT_TIES and tied.any():
        size = np.abs(scaled[:, tied])
        ranks = np.sign(scaled[:, tied]) * (stats.rankdata(size, axis=0) - (size == 0).sum(axis=0))
        p_values[differs[tied]] = paired_p(ranks, "randomisation", n_resamples=2**n, seed=0)
        differs, scaled, tied = differs[~tied], scaled[:, ~tied], tied[~tied]
    # SciPy uses one null distribution for all columns of a call, exact if no column has ties: separate these columns.
    for columns in (tied, ~tied):
        if columns.any():
            p_values[differs[columns]] = stats.wilcoxon(scaled[:, columns], axis=0).pvalue
    return p_values


class RankIntervals(NamedTuple):
    """First and last rank of each system that no difference excludes, and the pairs (S, S) whose first is better."""

    low: Ints
    high: Ints
    better: Bools


def rank_intervals(
    means: Floats, draws: Floats, level: float, *, df: float = np.inf, inflation: float = 1.0
) -> RankIntervals:
    r"""Intervals of the ranks of systems from joint draws of their means, and pairs that differ.

    The interval of the difference between two means is ``d ± c s``, where s is the standard deviation of the drawn
    differences, and c the ``level`` quantile of the largest ``|d* - mean(d*)|/s`` of a draw (max-T): over all
    differences from one system for the interval of its rank, over all pairs for pairs that differ. A rank is excluded
    if the intervals of enough differences exclude 0.

    ``means``: shape (S,). ``draws``: joint draws of the means, shape (S, n_draws). ``level``: the least probability
    that the interval of a rank covers it, and that no pair of systems is separated in the wrong order. ``df``: c
    becomes the quantile of Student's t with the probability that c has for a normal variable, since with few
    topics, resampling tails are too light. ``inflation``: a factor of s, such as √(n/(n - 1)) for a bootstrap of n
    topics.

    Intervals are conservative, since a rank is excluded by single differences. Quantiles of drawn ranks cover less than
    their level if systems are close to each other; see docs/explanation/leaderboards.md. Cost is S² n_draws.

    Source: Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024, section 3.
    """
    n = len(means)
    spread, factor = np.zeros((n, n)), np.empty(n)
    largest = np.zeros(draws.shape[1])

    def critical(statistic: Floats) -> float:
        quantile = float(np.quantile(statistic, level, method="higher"))
        return inflation * (-float(t_quantile(df, float(normal_cdf(-quantile)))) if np.isfinite(df) else quantile)

    for system in range(n):
        gap = draws - draws[system]
        gap -= gap.mean(axis=1, keepdims=True)
        spread[system] = np.sqrt(np.einsum("ij,ij->i", gap, gap) / gap.shape[1])
        varies = spread[system] > REPLICA_ROUNDING
        most = np.abs(gap[varies] / spread[system, varies, None]).max(axis=0, initial=0.0)
        np.maximum(largest, most, out=largest)
        factor[system] = critical(most)
    distance = means[:, None] - means
    better = distance > critical(largest) * spread + REPLICA_ROUNDING
    # From the point of view of each system, a column.
    low = 1 + (distance > factor * spread + REPLICA_ROUNDING).sum(axis=0)
    high = n - (-distance > factor * spread + REPLICA_ROUNDING).sum(axis=0)
    return RankIntervals(low, high, better)
