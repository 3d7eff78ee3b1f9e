"""Means of bounded scores: intervals and tests valid for any distribution, and confidence sequences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, number, whole
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from typing import Any

    from vbterrier.annotations import Floats

    Bounds = tuple[float, float]


UNKNOWN: Bounds = (-np.inf, np.inf)
# Measures of ir_measures, of trec_eval and of this package whose scores are between 0 and 1.
_UNIT = frozenset(
    re.findall(
        r"\S+",
        """
        AP AP_IA Accuracy BPref Bpref Compat ERR ERR_IA IPrec Judged MAP MAP_IA MRR NDCG NERR8 NERR9 NERR10 NERR11 NRBP
        P P_IA Precision R RBP RPrec RR Recall Rprec SDCG SetAP SetF SetP SetR SetRelP StRecall Success alpha_nDCG infAP
        nDCG nERR_IA nNRBP α_nDCG 11pt_avg bpref gm_map iprec_at_recall map map_cut ndcg ndcg_cut recall recip_rank
        relative_P set_F set_P set_map set_recall success
        BAP BERR BNDCG BP BQ BRBP NDCGBound Unjudged ES TopIntent BaitRate NonRelCov ObsCov OracleCov Overlap RelCov
        SignalRate TopBait LinkingR
        """,
    )
)
_OTHERS = {"VarPenalty": (0.0, 0.5), "OERCorr": (-1.0, 1.0)}
# Ratios between 0 and 1 whose values of single topics are linearised.
_LINEARISED = frozenset({"LinkP", "LinkR", "NilP", "NilR", "LinkingP", "LinkingF1"})
_BATCH = 4_000_000
# Scores beyond the bounds by less than this are rounding errors.
_ROUNDING = 1e-9


def score_bounds(measure: str) -> Bounds:
    """The smallest and the largest possible score of a measure, or of a gain over a system; infinite if unknown.

    >>> score_bounds("nDCG@10"), score_bounds("ndcg_cut_10 - bm25"), score_bounds("my measure")
    ((0.0, 1.0), (-1.0, 1.0), (-inf, inf))
    """
    if " - " in measure:
        low, high = score_bounds(measure.split(" - ", maxsplit=1)[0])
        return low - high, high - low
    name = re.split(r"[(@]", measure, maxsplit=1)[0]
    if name in _UNIT or re.sub(r"_[\d.]+$", "", name) in _UNIT:
        return 0.0, 1.0
    if name == "VB":
        found = re.search(r"alpha=([\d.]+)", measure)
        return (1 - (1 + float(found[1] if found else 1.0) ** 2) ** 0.5) / 2, 1.0
    return _OTHERS.get(name, UNKNOWN)


def is_linearised(measure: str) -> bool:
    """Return True for ratios whose values of single topics are linearised, and may be outside the range of their mean.

    >>> is_linearised("LinkingF1(nil='O')"), is_linearised("LinkingR")
    (True, False)
    """
    return re.split(r"[(@]", measure, maxsplit=1)[0] in _LINEARISED


def mean_bounds(measure: str) -> Bounds:
    """The smallest and the largest possible mean of a measure.

    >>> score_bounds("LinkingF1"), mean_bounds("LinkingF1")
    ((-inf, inf), (0.0, 1.0))
    """
    return (0.0, 1.0) if is_linearised(measure) else score_bounds(measure)


def mean_draws(values: Floats, bounds: Bounds, n_draws: int, draws: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of the lower and of the upper confidence distribution of means of bounded scores, each (n_draws, m).

    The weights of the n topics and of one further topic are uniform on the simplex (those of n + 1 exponential
    numbers). The further topic has the smallest possible score in the lower, the largest in the upper distribution. The
    α quantile of the lower distribution is a lower confidence limit of the mean at 1 - α for any distribution of
    scores within the bounds (Gaffke 2005). For scores of 0 and 1 it is the limit of Clopper and Pearson.

    Parameters
    ----------
    values
        Shape (n, m).
    bounds
        The smallest and the largest possible score.
    n_draws
        Number of draws, which all columns share.
    draws
        The source of random numbers.

    References
    ----------
    Gaffke: Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
    Mathematical Methods of Statistics 14, 2005; Learned-Miller and Thomas: A new confidence interval for the mean of a
    bounded random variable, arXiv 1905.06208, which conjectures validity for every n; no exception is known.

    >>> low, high = mean_draws(np.ones((10, 1)), (0.0, 1.0), 10_000, np.random.default_rng(1))
    >>> round(float(np.quantile(low, 0.05)), 2), round(float(high.min()), 6)
    (0.75, 1.0)
    """
    n, m = values.shape
    low, high = np.empty((2, n_draws, m))
    step = max(1, _BATCH // (n + 1))
    for start in range(0, n_draws, step):
        rows = slice(start, min(start + step, n_draws))
        weights = draws.standard_exponential((rows.stop - start, n + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        known, further = weights[:, :n] @ values, weights[:, n:]
        low[rows], high[rows] = known + further * bounds[0], known + further * bounds[1]
    # Rounding errors.
    return np.clip(low, *bounds), np.clip(high, *bounds)


def constant_limits(value: Any, n: int, bounds: Any, tails: Any) -> Floats:
    """Limits of the mean if n topics have the same score, those of :func:`bounded_limits` in closed form, (2, ...).

    ``x - (x - a)(1 - α^(1/n))`` and ``x + (b - x)(1 - α^(1/n))`` for scores between a and b.

    Parameters
    ----------
    value
        The score, shape (...).
    n
        Number of topics.
    bounds
        The smallest and the largest possible score, broadcast with it; NaN is returned if they are infinite.
    tails
        The probabilities below both limits.

    >>> constant_limits(1.0, 50, (0.0, 1.0), [0.025, 0.975]).round(2).tolist()
    [0.93, 1.0]
    """
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    error = np.array([tails[0], 1 - np.asarray(tails[1])], dtype=np.float64)
    further = 1 - error ** (1 / n)
    with np.errstate(invalid="ignore"):
        limits = np.stack([value - (value - low) * further[0], value + (high - value) * further[1]])
    return np.where(np.isfinite(low) & np.isfinite(high) & (value >= low) & (value <= high), limits, np.nan)


def bounded_limits(values: Floats, bounds: Bounds, tails: Any, n_draws: int, draws: np.random.Generator) -> Floats:
    """Limits of intervals of means that cover at least their nominal level for any scores within the bounds, (2, m).

    Parameters
    ----------
    values, bounds, n_draws, draws
        As for :func:`mean_draws`.
    tails
        The probabilities below both limits, shape (2,) or (2, m).

    Returns
    -------
    numpy.ndarray
        NaN if the bounds are unknown or a score is outside them.

    >>> scores = np.repeat([[0.0], [1.0]], [18, 2], axis=0)
    >>> bounded_limits(scores, (0.0, 1.0), [0.025, 0.975], 100_000, np.random.default_rng(1)).round(2).tolist()
    [[0.01], [0.32]]
    """
    limits = np.full((2, values.shape[1]), np.nan)
    if np.isfinite(bounds).all():
        inside = ((values >= bounds[0] - _ROUNDING) & (values <= bounds[1] + _ROUNDING)).all(axis=0)
        both = mean_draws(values[:, inside], bounds, n_draws, draws)
        tails = np.broadcast_to(np.asarray(tails, dtype=np.float64).reshape(2, -1), limits.shape)[:, inside]
        for side, (drawn, tail) in enumerate(zip(both, tails, strict=True)):
            place = np.clip(np.ceil(tail * n_draws - 0.5).astype(np.int64), 0, n_draws - 1)
            limits[side, inside] = np.take_along_axis(np.sort(drawn, axis=0), place[None], axis=0)[0]
    return limits


def bounded_equivalence(differences: Floats, margin: float, bounds: Bounds, n_draws: int, seed: int) -> Floats:
    """The larger p of two one-sided tests of means at most ``-margin`` and at least ``margin``, shape (m,).

    The share of draws of :func:`mean_draws` beyond the margin. Valid for any distribution of differences within the
    bounds; NaN without bounds.

    >>> bounded_equivalence(np.zeros((100, 1)), 0.05, (-1.0, 1.0), 10_000, 1).round(3).tolist()
    [0.006]
    """
    if not np.isfinite(bounds).all():
        return np.full(differences.shape[1], np.nan)
    low, high = mean_draws(differences, bounds, n_draws, stream(seed, "equivalence"))
    beyond = np.maximum((low <= -margin).sum(axis=0), (high >= margin).sum(axis=0))
    return np.asarray((beyond + 1) / (n_draws + 1))


# Bets of at most this share of what can be lost, and the number of means that are tested.
_LARGEST_BET = 0.5
_N_MEANS = 2001
# Topics that are processed at a time.
_TOPICS = 500


def confidence_sequence(values: Any, *, level: float = 0.95, bounds: Bounds = (0.0, 1.0)) -> pd.DataFrame:
    """Intervals of a mean that remain valid when they are inspected after every topic.

    All intervals of the sequence contain the mean of the population with probability of at least ``level``, so that
    one may stop at any time, such as when an interval of a difference excludes 0. An ordinary interval that is
    inspected repeatedly excludes the mean much more often.

    Each possible mean m is tested by betting: the capital ``½ Π(1 + λ (x - m)) + ½ Π(1 - λ' (x - m))`` is a martingale
    under m, and exceeds ``1/(1 - level)`` with probability of at most ``1 - level``. Bets depend on previous topics
    alone, ``sqrt(2 log(2/α) / (s² t log(t + 1)))`` for scores scaled to [0, 1] with the variance s² so far.

    Parameters
    ----------
    values
        The scores of the topics, in the order of their addition, which must not depend on the scores, shape (n,). For
        the difference between two systems, their differences by topic, with the bounds (-1, 1).
    level
        Nominal coverage of the sequence, between 0 and 1.
    bounds
        The smallest and the largest possible score.

    Returns
    -------
    pandas.DataFrame
        A row for each number of topics: n_qids, value (the mean so far), low, high, level. Intervals only narrow.

    Raises
    ------
    InputError
        No score, a score that is not finite or outside the bounds.
    ParameterError
        A level outside (0, 1); bounds that are infinite or not increasing.

    Notes
    -----
    With 10, 25, 50, 100 and 250 differences, uniform between -.5 and .5, the intervals were 1.6, 1.5, 1.5, 1.6 and 1.6
    times as wide as Student's intervals for one inspection. Simulated probability that a sequence of 250 topics ever
    excludes the mean, nominal .05: see docs/explanation/statistics.md. Means are tested at 2,001 points; limits are
    rounded outwards. Time and memory are proportional to n.

    References
    ----------
    Waudby-Smith and Ramdas: Estimating means of bounded random variables by betting, JRSS B 86 (2024), section 4.2
    (hedged capital).

    Examples
    --------
    >>> found = confidence_sequence([0.2, 0.4, 0.9, 0.5] * 25)
    >>> found.round(2).loc[[3, 99], ["n_qids", "value", "low", "high"]].values.tolist()
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
    x = (x - low) / (high - low)
    n, alpha = np.arange(1, len(x) + 1), 1 - level
    mean = (np.cumsum(x) + 0.5) / (n + 1)
    variance = (np.cumsum((x - mean) ** 2) + 0.25) / (n + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bet = np.sqrt(2 * np.log(2 / alpha) / (before * n * np.log(n + 1)))
    tested = np.linspace(0, 1, _N_MEANS)
    with np.errstate(divide="ignore"):
        most, least = _LARGEST_BET / tested, _LARGEST_BET / (1 - tested)
    ends = np.empty((len(x), 2), dtype=np.int64)
    # Logarithms of the capitals of bets that the mean is larger, and that it is smaller, than the tested one.
    larger, smaller = np.zeros((2, 1, _N_MEANS))
    for start in range(0, len(x), _TOPICS):
        rows = slice(start, start + _TOPICS)
        away, bets = x[rows, None] - tested, bet[rows, None]
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
    value = low + (high - low) * np.cumsum(x) / n
    return pd.DataFrame({"n_qids": n, "value": value, "low": limits[:, 0], "high": limits[:, 1], "level": level})


def spent_level(level: float, look: int) -> float:
    """The level of the look-th inspection of an interval, such that all inspections together have the given level.

    ``1 - 6 (1 - level)/(π look)²``: the sum over all inspections of the probabilities of error is ``1 - level``.

    >>> round(spent_level(0.9, 1), 4), round(spent_level(0.9, 2), 4)
    (0.9392, 0.9848)
    """
    return 1 - 6 * (1 - level) / (np.pi * whole("look", look)) ** 2
