"""How well estimates agree with the truth: errors, coverage, orders of systems, preferences between systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from vbterrier.annotations import Floats


# Scores this close are one score: sums in another order.
EQUAL = 1e-9
_DECIMALS = 9


@dataclass(frozen=True)
class Errors:
    """The errors ``e = estimate - truth`` of n estimates.

    Attributes
    ----------
    n : int
        Estimates.
    bias : float
        ``mean(e)``: above 0 where truth is over-estimated.
    mae : float
        ``mean(|e|)``.
    rmse : float
        ``sqrt(mean(e²))``.
    rmse_over : float
        ``sqrt(mean(max(e, 0)²))``: under-estimates count as right, as is fair to a lower bound.
    rmse_under : float
        ``sqrt(mean(min(e, 0)²))``: over-estimates count as right, as is fair to an upper bound.
    """

    n: int
    bias: float
    mae: float
    rmse: float
    rmse_over: float
    rmse_under: float


def error_statistics(truth: Floats, estimate: Floats) -> Errors:
    """Sum up the errors of some estimates (Fröbe et al., ECIR 2023, section 4.2).

    The paper's lower-bound RMSE "ignores under-estimations", its upper-bound RMSE over-estimations. They are taken here
    as errors of 0, not left out, so that ``rmse² = rmse_over² + rmse_under²``.

    Parameters
    ----------
    truth, estimate
        Shape (n,).

    Examples
    --------
    >>> found = error_statistics(np.array([0.5, 0.5]), np.array([0.9, 0.2]))
    >>> round(found.rmse_over**2, 3), round(found.rmse_under**2, 3), round(found.rmse**2, 3), round(found.bias, 3)
    (0.08, 0.045, 0.125, 0.05)
    """
    error = estimate - truth
    if not len(error):
        return Errors(0, *[float("nan")] * 5)
    rmse, over, under = (float(np.sqrt((part**2).mean())) for part in (error, error.clip(min=0), error.clip(max=0)))
    return Errors(len(error), float(error.mean()), float(np.abs(error).mean()), rmse, over, under)


def share_interval(n_hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a binomial share (Clopper and Pearson 1934); NaN where nothing was counted.

    It takes the n trials for independent. Topics are; runs on one topic, and simulations of one run, are not: then it
    is too narrow.

    Examples
    --------
    >>> low, high = share_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not n:
        return float("nan"), float("nan")
    from scipy import stats

    ends = stats.binomtest(n_hits, n).proportion_ci(level)
    return float(ends.low), float(ends.high)


@dataclass(frozen=True)
class Correlations:
    """Agreement of two orders: Kendall's τ_b, Spearman's ρ and τ_AP, each from -1 to 1."""

    tau: float
    rho: float
    tau_ap: float


def rank_correlations(truth: Floats, estimate: Floats) -> Correlations:
    """Agreement of the order of systems by estimates with their true order.

    Parameters
    ----------
    truth, estimate
        A score of each system, shape (n,). What differs by less than 1e-9 is a tie.

    Returns
    -------
    Correlations
        NaN where all systems are equal in one of them, or there are fewer than two: there is no order.

    Examples
    --------
    >>> found = rank_correlations(np.array([0.9, 0.5, 0.1]), np.array([0.8, 0.6, 0.7]))
    >>> round(found.tau, 3), round(found.rho, 3), round(found.tau_ap, 3)
    (0.333, 0.5, 0.5)
    """
    truth, estimate = np.round(truth, _DECIMALS), np.round(estimate, _DECIMALS)
    if len(truth) < 2 or np.ptp(truth) == 0 or np.ptp(estimate) == 0:  # noqa: PLR2004 - an order takes two
        return Correlations(*[float("nan")] * 3)
    from scipy import stats

    tau, rho = stats.kendalltau(truth, estimate).statistic, stats.spearmanr(truth, estimate).statistic
    return Correlations(float(tau), float(rho), tau_ap(truth, estimate))


def tau_ap(truth: Floats, estimate: Floats) -> float:
    """AP correlation, which weighs errors at the top of the order more (Yilmaz, Aslam and Robertson, SIGIR 2008).

    ``τ_AP = 2/(n - 1) Σ_{i=2..n} C(i)/(i - 1) - 1``, where C(i) counts the systems that the estimate ranks above its
    i-th one and that are above it in truth, too.

    Parameters
    ----------
    truth, estimate
        A score of each system, shape (n,), n at least 2; more is better.

    Returns
    -------
    float
        -1 to 1. Where estimates tie, the expectation over all orders of the tied systems (τ_AP,a of Urbano and
        Marrero, ICTIR 2017); of two systems that tie in truth either order is half right. An estimate that knows no
        order has 0.

    Notes
    -----
    Not symmetric. Cost and memory are quadratic in n.

    Examples
    --------
    >>> truth = np.array([3.0, 2.0, 1.0])
    >>> tau_ap(truth, np.array([2.0, 3.0, 1.0])), tau_ap(truth, np.array([3.0, 1.0, 2.0]))
    (0.0, 0.5)
    """
    right = (np.sign(truth[:, None] - truth) + 1) / 2
    above = estimate[:, None] > estimate
    tied = (estimate[:, None] == estimate) & ~np.eye(len(truth), dtype=bool)
    n_above, n_tied = above.sum(axis=0), tied.sum(axis=0)
    # A tied system has each place of its tie with the same probability, and random others of the tie before it.
    fixed = (right * above).sum(axis=0)
    among = (right * tied).sum(axis=0) / np.maximum(n_tied, 1)
    n_places = n_tied + (n_above > 0)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, len(truth))))
    inverse = harmonic[n_above + n_tied] - harmonic[np.maximum(n_above - 1, 0)]
    shares = (n_places * among + (fixed - n_above * among) * inverse) / (n_tied + 1)
    return float(2 * shares.sum() / (len(truth) - 1) - 1)


@dataclass(frozen=True)
class Preferences:
    """Preferences between two systems on a topic: how many there are in truth, were stated, and are right."""

    n_true: int
    n_stated: int
    n_right: int

    @property
    def precision(self) -> float:
        """``n_right / n_stated``, NaN where none was stated."""
        return self.n_right / self.n_stated if self.n_stated else float("nan")

    @property
    def recall(self) -> float:
        """``n_right / n_true``, NaN where there is none."""
        return self.n_right / self.n_true if self.n_true else float("nan")

    @property
    def f1(self) -> float:
        """``2 n_right / (n_true + n_stated)``, the harmonic mean of both; NaN where there is nothing."""
        n = self.n_true + self.n_stated
        return 2 * self.n_right / n if n else float("nan")

    def __add__(self, other: Preferences) -> Preferences:
        return Preferences(self.n_true + other.n_true, self.n_stated + other.n_stated, self.n_right + other.n_right)


def preferences(truth: Floats, low: Floats, high: Floats, estimated: ArrayLike) -> Preferences:
    """Compare the preferences that ranges of scores state with the true ones (Fröbe et al., ECIR 2023, Table 6).

    A range strictly above another states that its system is better, on that topic. Ends of both kinds may be equal: a
    range of one point is an estimate, or a score that is known.

    Parameters
    ----------
    truth
        The score of each system and topic, shape (n, n_topics); NaN where there is none.
    low, high
        The ends of the range of each, shape (n, n_topics).
    estimated
        Which scores are estimates, broadcast to (n, n_topics): pairs of two scores that are known do not count.

    Returns
    -------
    Preferences
        Over all pairs of systems and all topics. Equal truths are no preference, and one stated there is wrong.

    Examples
    --------
    >>> truth = np.array([[0.6], [0.5], [0.1]])
    >>> low, high = np.array([[0.4], [0.5], [0.1]]), np.array([[0.7], [0.5], [0.1]])
    >>> found = preferences(truth, low, high, np.array([[True], [False], [False]]))
    >>> found, found.precision, found.recall
    (Preferences(n_true=2, n_stated=1, n_right=1), 1.0, 0.5)
    """
    estimated = np.broadcast_to(np.asarray(estimated, dtype=bool), truth.shape)
    total = Preferences(0, 0, 0)
    for one in range(len(truth) - 1):
        others = slice(one + 1, None)
        true = _sign(truth[one] - truth[others], truth[one] - truth[others])
        stated = _sign(low[one] - high[others], high[one] - low[others])
        asked = (estimated[one] | estimated[others]) & ~np.isnan(truth[one]) & ~np.isnan(truth[others])
        counted = (asked & (true != 0), asked & (stated != 0), asked & (stated != 0) & (true == stated))
        total += Preferences(*(int(np.count_nonzero(mask)) for mask in counted))
    return total


def _sign(least: Floats, most: Floats) -> NDArray[np.int64]:
    """1 where a difference is above 0 at the least, -1 where it is below at the most, else 0."""
    return (least > EQUAL).astype(np.int64) - (most < -EQUAL)


def paired_t(differences: Floats) -> tuple[float, float]:
    """Student's t of paired differences, and its two-sided p.

    Parameters
    ----------
    differences
        Shape (n,).

    Returns
    -------
    (t, p)
        (0, 1) where nothing differs; NaN where there are fewer than two.

    Examples
    --------
    >>> t, p = paired_t(np.array([0.1, 0.3, 0.2, 0.4]))
    >>> round(t, 3), round(p, 3)
    (3.873, 0.03)
    """
    if len(differences) < 2:  # noqa: PLR2004 - a variance takes two
        return float("nan"), float("nan")
    if np.abs(differences).max() <= EQUAL:
        return 0.0, 1.0
    spread = float(differences.std(ddof=1))
    if spread <= EQUAL * np.abs(differences).max():
        return float(np.copysign(np.inf, differences[0])), 0.0
    from scipy import stats

    found = stats.ttest_1samp(differences, 0.0)
    return float(found.statistic), float(found.pvalue)


def bonferroni(p_values: Floats) -> Floats:
    """``min(1, n p)`` for n tests of one family, shape (n,); NaN, of tests that could not be made, count as none.

    >>> bonferroni(np.array([0.01, 0.5, np.nan])).tolist()
    [0.02, 1.0, nan]
    """
    return np.minimum(p_values * np.count_nonzero(~np.isnan(p_values)), 1.0)
