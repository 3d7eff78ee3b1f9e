"""Intervals of the ranks of systems, and tiers of systems that do not differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.stats.agreement import EQUAL

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


class RankIntervals(NamedTuple):
    """Intervals of ranks, and tiers.

    ``low, high``: the first and the last rank that no difference from another system excludes, shape (S,). ``tier``:
    the tier of each system, from 1, shape (S,). ``better``: true for each pair of systems of which the first is better,
    simultaneously over all pairs, shape (S, S).
    """

    low: Ints
    high: Ints
    tier: Ints
    better: Bools


def rank_intervals(
    means: Floats, draws: Floats, level: float, *, df: float = np.inf, inflation: float = 1.0
) -> RankIntervals:
    r"""Intervals of the ranks of systems from joint draws of their means, and tiers.

    The interval of the difference between two means is ``d ± c s``, where s is the standard deviation of the drawn
    differences, and c the ``level`` quantile of the largest ``|d* - mean(d*)|/s`` of a draw (max-T): over all
    differences from one system for the interval of its rank, over all pairs for tiers. A rank is excluded if the
    intervals of enough differences exclude 0. If all intervals of the differences from a system cover, so does the
    interval of its rank.

    The ranking by mean is cut into tiers, from the top, before each system that differs from a system of the current
    tier: tiers are consecutive systems, and no two systems of a tier differ. No other cut into such sets has fewer.

    ``means``: shape (S,). ``draws``: joint draws of the means, shape (S, n_draws). ``level``: the probability that the
    interval of a rank covers it, at least; and that no pair of systems is separated in the wrong order. ``df``: degrees
    of freedom: c becomes the quantile of Student's t with the probability that c has for a normal variable, since
    resamples of few topics have too light tails. ``inflation``: a factor of s, such as √(n/(n - 1)) for a bootstrap of
    n topics.

    Pairs whose difference does not vary differ if it is not 0. Cost is S² n_draws, memory S n_draws. Intervals are
    conservative, since a rank is excluded by single differences. Quantiles of drawn ranks are narrower, and cover less
    than their level if systems are close to each other: means of a sample scatter more than true means do, and
    resamples more than a sample; see docs/explanation/leaderboards.md.

    Source: Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024, section 3.

    >>> draws = np.random.default_rng(0).normal([[0.9], [0.5], [0.49]], 0.05, (3, 1000))
    >>> found = rank_intervals(np.array([0.9, 0.5, 0.49]), draws, 0.9)
    >>> found.low.tolist(), found.high.tolist(), found.tier.tolist()
    ([1, 2, 2], [1, 3, 3], [1, 2, 2])
    """
    from scipy import special

    n = len(means)
    spread, own = np.zeros((n, n)), np.empty(n)
    largest = np.zeros(draws.shape[1])

    def critical(statistic: Floats) -> float:
        found = float(np.quantile(statistic, level, method="higher"))
        return inflation * (-float(special.stdtrit(df, float(special.ndtr(-found)))) if np.isfinite(df) else found)

    for system in range(n):
        gap = draws - draws[system]
        gap -= gap.mean(axis=1, keepdims=True)
        spread[system] = np.sqrt(np.einsum("ij,ij->i", gap, gap) / gap.shape[1])
        varies = spread[system] > EQUAL
        most = np.abs(gap[varies] / spread[system, varies, None]).max(axis=0, initial=0.0)
        np.maximum(largest, most, out=largest)
        own[system] = critical(most)
    distance = means[:, None] - means
    better = distance > critical(largest) * spread + EQUAL
    # From the point of view of each system, a column.
    low = 1 + (distance > own * spread + EQUAL).sum(axis=0)
    high = n - (-distance > own * spread + EQUAL).sum(axis=0)
    tier, first, order = np.ones(n, dtype=np.int64), 0, np.argsort(-means, kind="stable")
    for at, system in enumerate(order.tolist()):
        if better[order[first:at], system].any():
            first = at
            tier[order[at:]] += 1
    return RankIntervals(low, high, tier, better)
