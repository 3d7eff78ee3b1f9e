"""Intervals that invert a test: of differences, of effect sizes, and confidence sequences of means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, number, warn, whole
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import BLOCK_CELLS, agreeing_limits, constant_limits
from vbterrier.kernels.student_t import noncentrality
from vbterrier.kernels.tolerances import WHOLE_ROUNDING
from vbterrier.stats.paired_tests import MIN_TOPICS, TESTS, TTest, column_std, null_distribution, paired_p, t_test

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.contracts import Bounds


# Halvings of the range of the differences in the search for a limit of the signed-rank test.
_HALVINGS = 40
# Bets of at most this share of what can be lost, and the number of means that are tested.
_LARGEST_BET = 0.5
_N_MEANS = 2001
# Topics that are processed at a time.
_BLOCK_TOPICS = 500


def corrected_levels(adjusted: Floats, correction: str, alpha: float) -> Floats:
    """The significance level of each test's interval that agrees with a correction of p-values, shape (k,).

    ``"none"``: α. ``"bonferroni"``, and for the intervals beside Holm's and max-T p-values: α/k. ``"bh"``: ``max(R, 1)
    α/k`` for R rejected tests, so that among the intervals of rejected tests, the expected share without the true
    difference is at most α (Benjamini and Yekutieli, JASA 100, 2005).
    """
    k = len(adjusted)
    share = {
        "none": 1.0,
        "bonferroni": 1 / k,
        "holm": 1 / k,
        "max-t": 1 / k,
        "bh": max(int((adjusted <= alpha).sum()), 1) / k,
    }[correction]
    return np.full(k, alpha * share)


def inverted_limits(
    differences: Floats,
    test: str,
    levels: Floats,
    rejected: Bools | None,
    bounds: tuple[float, float],
    *,
    n_resamples: int,
    seed: int,
    tests: TTest | None = None,
) -> tuple[Floats, Floats]:
    """Limits of the difference of each pair: all d such that the test does not reject differences centred at d, (k,).

    ``differences, test, n_resamples, seed``: as for :func:`~vbterrier.stats.paired_tests.paired_p`, with the same sign
    flips or resamples, at the significance ``levels`` of the pairs. ``rejected``: the tests at these levels that
    reject, so that at ties and rounding errors an interval excludes 0 exactly where its test rejects; ``None`` if the
    p-values are those of another test. ``tests``: for Student's t, the tests of the differences, which have weights and
    clusters of topics; by default those of topics of equal weight. Limits are clipped to ``bounds``; they are infinite,
    or the bounds, if no difference can be rejected with so few topics or resamples, those of
    :func:`~vbterrier.kernels.resample.constant_limits` where all topics differ by the same amount, and NaN for a single
    topic.

    Randomisation: if the topics of a set A are flipped, the mean of the differences less d is at least as far from 0 as
    without flips if and only if d is not below ``min(mean of A, mean of the others)``, for d below the mean. So the
    limits are order statistics of these minima and maxima, without a search. Bootstrap: ``mean ± q s`` with a quantile
    of the resampled ``|t|``. Signed ranks: a search by halving; the interval is that of the location shift.
    """
    n, k = differences.shape
    if n < MIN_TOPICS:
        warn("an interval over topics needs at least two topics")
        return np.full(k, np.nan), np.full(k, np.nan)
    if test in {"t", "moderated"}:
        tests = t_test(differences, moderated=test == "moderated", bounds=bounds) if tests is None else tests
        low, high = np.clip(tests.limits(levels), *bounds)
        return (low, high) if rejected is None else agreeing_limits(low, high, tests.mean, rejected)
    limits = np.empty((2, k))
    varies = column_std(differences) > 0
    some, of_some = differences[:, varies], levels[varies]
    if test == "randomisation":
        limits[:, varies] = _flip_limits(some, of_some, n_resamples, seed)
    elif test == "wilcoxon":
        limits[:, varies] = [-_rank_limit(-some, of_some), _rank_limit(some, of_some)]
    else:
        mean = some.mean(axis=0)
        half_width = _half_widths(some, of_some, n_resamples, seed)
        limits[:, varies] = mean - half_width, mean + half_width
    of_constant = levels[~varies]
    constant = constant_limits(differences[0, ~varies], n, bounds, [of_constant / 2, 1 - of_constant / 2])
    limits[:, ~varies] = np.where(np.isnan(constant), [[-np.inf], [np.inf]], constant)
    low, high = np.clip(limits, *bounds)
    return (low, high) if rejected is None else agreeing_limits(low, high, differences.mean(axis=0), rejected)


def interval_label(test: str, correction: str, n_tests: int, *, constant: bool = False) -> str:
    """The method of the intervals of a family of tests; ``constant``: of a pair that differs alike on all topics."""
    of_shift = " of the shift" if test == "wilcoxon" else ""
    kinds = {"bonferroni": ", simultaneous", "bh": ", false coverage rate", "none": ""}
    # Intervals beside step-down corrections are those of the single-step correction.
    kinds |= dict.fromkeys(("holm", "max-t"), ", simultaneous by Bonferroni")
    name = "bounded" if constant else f"inverted {TESTS[test]}{of_shift}"
    return f"{name}{kinds[correction] if n_tests > 1 else ''}"


def effect_limits(tests: TTest, levels: Floats, rejected: Bools) -> tuple[Floats, Floats]:
    """Limits of the standardised differences, Cohen's d_z, each of shape (k,); NaN without spread.

    The noncentralities of Student's t that give the observed t with probabilities of α/2 and 1 - α/2, divided by √n:
    exact for normal differences (Cumming and Finch, Educational and Psychological Measurement 61, 2001). They exclude 0
    exactly where the test ``rejected``: limits of other tests end at 0, or are extended to it.
    """
    t, limits = tests.t, np.full((2, len(tests.mean)), np.nan)
    finite = np.isfinite(t) & (tests.error > 0)
    df = np.broadcast_to(tests.df, t.shape)[finite]
    tails = np.stack([1 - levels[finite] / 2, levels[finite] / 2])
    limits[:, finite] = noncentrality(df, tails, t[finite]) / np.sqrt(
        np.broadcast_to(tests.n_effective, t.shape)[finite]
    )
    return agreeing_limits(limits[0], limits[1], tests.mean, rejected)


def _flip_limits(differences: Floats, levels: Floats, n_resamples: int, seed: int) -> Floats:
    """Limits by sign flips, shape (2, k)."""
    n, k = differences.shape
    null = null_distribution(differences, "randomisation", n_resamples, seed)
    places = _order_statistics(levels, null.n_draws, null.n_observed)
    blocks, total = list(null.blocks), differences.sum(axis=0)
    limits = np.empty((2, k))
    step = max(1, BLOCK_CELLS // null.n_draws)
    for start in range(0, k, step):
        these = slice(start, start + step)
        lowest, highest = [], []
        for signs in blocks:
            flipped, balance = signs @ differences[:, these], signs.sum(axis=1)[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                means = np.stack([(total[these] - flipped) / (n - balance), (total[these] + flipped) / (n + balance)])
            # A set without topics has no mean: the flips change no difference.
            nothing = np.abs(balance[:, 0]) == n
            lowest.append(np.where(nothing[:, None], -np.inf, means.min(axis=0)))
            highest.append(np.where(nothing[:, None], np.inf, means.max(axis=0)))
        limits[0, these] = -_largest(-np.concatenate(lowest), places[these])
        limits[1, these] = _largest(np.concatenate(highest), places[these])
    return limits


def _half_widths(differences: Floats, levels: Floats, n_resamples: int, seed: int) -> Floats:
    """Half the width of symmetric intervals by the studentised bootstrap, shape (k,)."""
    k, std = differences.shape[1], column_std(differences)
    null = null_distribution(differences, "bootstrap", n_resamples, seed)
    drawn = np.concatenate([null.block_statistics(block, slice(0, k)).T for block in null.blocks])
    return _largest(drawn, _order_statistics(levels, null.n_draws, null.n_observed)) * std


def _order_statistics(levels: Floats, n_draws: int, n_observed: int) -> Ints:
    """The number of draws that may be more extreme than a limit; negative if the limit is infinite, shape (k,)."""
    places: Ints = np.floor(levels * (n_draws + n_observed) + WHOLE_ROUNDING).astype(np.int64) - n_observed
    return places


def _largest(drawn: Floats, places: Ints) -> Floats:
    """Order statistics of each column, counted from the largest, which is 0; infinite for negative places."""
    ordered = np.sort(drawn, axis=0)
    values = np.take_along_axis(ordered, len(drawn) - 1 - np.clip(places, 0, len(drawn) - 1)[None], axis=0)[0]
    return np.where(places < 0, np.inf, values)


def _rank_limit(differences: Floats, levels: Floats) -> Floats:
    """Upper limits by the signed-rank test, shape (k,)."""
    inside, outside = np.median(differences, axis=0), differences.max(axis=0)
    outside = outside + 1e-6 * np.maximum(np.ptp(differences, axis=0), np.abs(outside))
    # With few topics, no shift is rejected.
    endless = _rank_p(differences, outside) > levels
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        kept = _rank_p(differences, middle) > levels
        inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return np.where(endless, np.inf, outside)


def _rank_p(differences: Floats, shift: Floats) -> Floats:
    return paired_p(differences - shift, "wilcoxon", n_resamples=0, seed=0)


@with_usual_errors
def confidence_sequence(
    values: Any, *, level: float = 0.95, bounds: Bounds = (0.0, 1.0), weights: Any = None
) -> pd.DataFrame:
    """Intervals of a mean that remain valid when they are inspected after every topic.

    All intervals of the sequence contain the mean of the population with probability of at least ``level``, so that
    one may stop at any time, such as when an interval of a difference excludes 0.

    Each possible mean m is tested by betting: the capital ``½ Π(1 + λ (x - m)) + ½ Π(1 - λ' (x - m))`` is a martingale
    under m, and exceeds ``1/(1 - level)`` with probability of at most ``1 - level``. Bets depend on previous topics
    alone, ``sqrt(2 log(2/α) / (s² t log(t + 1)))`` for scores scaled to [0, 1] with the variance s² so far.

    Parameters
    ----------
    values
        The scores of the topics, in the order of their addition, which must not depend on the scores, shape (n,). For
        the difference between two systems, their differences by topic, with the bounds (-1, 1).
    level, bounds
        Nominal coverage of the sequence, between 0 and 1; the smallest and the largest possible score.
    weights
        Sampling weights above 0 of the topics, shape (n,), for the weighted mean ``E[w x]/E[w]``: deviations ``x - m``
        are multiplied by w, divided by the largest weight. That must not change with the topics that are added.

    Returns
    -------
    pandas.DataFrame
        A row for each number of topics: n_qids, value (the mean so far), low, high, level. Intervals only narrow.

    Notes
    -----
    With 10, 25, 50, 100 and 250 differences, uniform between -.5 and .5, the intervals were 2.4, 2.2, 1.8, 1.6 and 1.5
    times as wide as Student's intervals for one inspection (medians of 400 sequences, bounds (-1, 1)); see
    docs/explanation/statistics.md. Means are tested at 2,001 points; limits are rounded outwards. Time and memory are
    proportional to n.

    Source: Waudby-Smith and Ramdas: Estimating means of bounded random variables by betting, JRSS B 86 (2024), section
    4.2 (hedged capital).

    Examples
    --------
    >>> result = confidence_sequence([0.2, 0.4, 0.9, 0.5] * 25)
    >>> result.round(2).loc[[3, 99], ["n_qids", "value", "low", "high"]].values.tolist()
    [[4.0, 0.5, 0.1, 0.91], [100.0, 0.5, 0.43, 0.57]]
    """
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    low, high = (float(bound) for bound in bounds)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"bounds={bounds}: wanted the smallest and the largest possible score, as (0, 1)")
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise InputError(f"values: wanted the score of each topic, found an array of shape {x.shape}")
    if not ((x >= low) & (x <= high)).all():
        row = int(np.argmin((x >= low) & (x <= high)))
        raise InputError(f"values: topic {row} has {x[row]:g}, wanted {low:g} to {high:g}; pass bounds=")
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != x.shape or not (np.isfinite(w) & (w > 0)).all():
        raise InputError("weights: wanted a finite number above 0 for each topic; leave out topics of weight 0")
    w = w / w.max()
    x = (x - low) / (high - low)
    n, alpha = np.arange(1, len(x) + 1), 1 - level
    bet = predictable_bets(x[:, None], w[:, None], alpha)[:, 0]
    tested = np.linspace(0, 1, _N_MEANS)
    with np.errstate(divide="ignore"):
        most, least = _LARGEST_BET / tested, _LARGEST_BET / (1 - tested)
    ends = np.empty((len(x), 2), dtype=np.int64)
    # Logarithms of the capitals of bets that the mean is larger, and that it is smaller, than the tested one.
    larger, smaller = np.zeros((2, 1, _N_MEANS))
    for start in range(0, len(x), _BLOCK_TOPICS):
        rows = slice(start, start + _BLOCK_TOPICS)
        away, bets = w[rows, None] * (x[rows, None] - tested), bet[rows, None]
        larger = larger[-1] + np.cumsum(np.log1p(np.minimum(bets, most) * away), axis=0)
        smaller = smaller[-1] + np.cumsum(np.log1p(-np.minimum(bets, least) * away), axis=0)
        left = np.maximum(larger, smaller) < np.log(2 / alpha)
        some = left.any(axis=1)
        # Without a possible mean, the previous interval remains.
        ends[rows, 0] = np.where(some, left.argmax(axis=1), 0)
        ends[rows, 1] = np.where(some, _N_MEANS - 1 - left[:, ::-1].argmax(axis=1), _N_MEANS - 1)
    first, last = np.maximum.accumulate(ends[:, 0]), np.minimum.accumulate(ends[:, 1])
    kept = np.maximum.accumulate(np.where(first <= last, np.arange(len(x)), 0))
    limits = tested[np.stack([np.maximum(first[kept] - 1, 0), np.minimum(last[kept] + 1, _N_MEANS - 1)], axis=1)]
    limits = low + (high - low) * limits
    value = low + (high - low) * np.cumsum(w * x) / np.cumsum(w)
    return pd.DataFrame({"n_qids": n, "value": value, "low": limits[:, 0], "high": limits[:, 1], "level": level})


def sequences_exceed(values: Floats, weights: Floats, tail: float, bounds: Bounds, means: Floats) -> Bools:
    """True for each column whose :func:`confidence_sequence` has its last lower limit above a mean, shape (m,).

    Capital against the means alone, since it decreases with the mean: as fast as a sum, for any number of columns. The
    sequences have the level ``1 - 2 tail``. Upper limits below a mean: those of the negative values.

    - ``values``, ``weights``: shape (n, m), a row a topic in its order
    - ``means``: shape (m,); may be outside of the bounds
    """
    low, high = bounds
    x, w = (values - low) / (high - low), weights / weights.max(axis=0)
    # Limits are rounded outwards to the tested means.
    tested = (np.floor((np.minimum(means, high) - low) / (high - low) * (_N_MEANS - 1) + WHOLE_ROUNDING) + 1) / (
        _N_MEANS - 1
    )
    within = np.clip(tested, 1 / (_N_MEANS - 1), 1.0)
    bets = np.minimum(predictable_bets(x, w, 2 * tail), _LARGEST_BET / within)
    capital = np.cumsum(np.log1p(bets * w * (x - within)), axis=0).max(axis=0)
    return np.asarray((tested <= 0) | ((tested < 1) & (capital >= np.log(1 / tail))))


def predictable_bets(x: Floats, w: Floats, alpha: float) -> Floats:
    """Bets of :func:`confidence_sequence` on scores from 0 to 1 with weights up to 1, for each column, shape (n, k)."""
    n = np.arange(1, len(x) + 1)[:, None]
    mean = (np.cumsum(w * x, axis=0) + 0.5) / (np.cumsum(w, axis=0) + 1)
    variance = (np.cumsum((w * (x - mean)) ** 2, axis=0) + 0.25) / (n + 1)
    before = np.concatenate([np.full((1, x.shape[1]), 0.25), variance[:-1]])
    return np.asarray(np.sqrt(2 * np.log(2 / alpha) / (before * n * np.log(n + 1))))


def spent_level(level: float, look: int) -> float:
    """The level of the look-th inspection of an interval, such that all inspections together have the given level.

    ``1 - 6 (1 - level)/(π look)²``: the sum over all inspections of the probabilities of error is ``1 - level``.
    """
    return 1 - 6 * (1 - level) / (np.pi * whole("look", look)) ** 2
