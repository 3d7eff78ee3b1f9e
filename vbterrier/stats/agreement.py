"""Agreement of estimates with the truth: errors, coverage, system rankings, preferences between systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from vbterrier.annotations import Floats


# Differences below this are rounding errors of sums in a different order.
EQUAL = 1e-9
_DECIMALS = 9


@dataclass(frozen=True)
class Errors:
    """The errors ``e = estimate - truth`` of n estimates.

    ``n``: number of estimates. ``bias``: ``mean(e)``: above 0 if the truth is overestimated. ``mae``: ``mean(|e|)``.
    ``rmse``: ``sqrt(mean(e²))``. ``rmse_over``: ``sqrt(mean(max(e, 0)²))``: underestimates count as correct, which
    suits a lower bound. ``rmse_under``: ``sqrt(mean(min(e, 0)²))``: overestimates count as correct, which suits an
    upper bound.
    """

    n: int
    bias: float
    mae: float
    rmse: float
    rmse_over: float
    rmse_under: float


def error_statistics(truth: Floats, estimate: Floats) -> Errors:
    """Summarise the errors of estimates (Fröbe et al., ECIR 2023, section 4.2).

    The paper's lower-bound RMSE "ignores under-estimations", its upper-bound RMSE over-estimations. Here, ignored
    errors count as 0 instead of being left out, so that ``rmse² = rmse_over² + rmse_under²``.

    ``truth, estimate``: shape (n,).

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
    """Exact confidence interval of a binomial proportion (Clopper and Pearson 1934); NaN if n is 0.

    It assumes independent trials. Topics are independent; runs on the same topic, and simulations of the same run, are
    not, so that the interval is too narrow for them.

    Examples
    --------
    >>> low, high = share_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not n:
        return float("nan"), float("nan")
    from scipy import stats

    interval = stats.binomtest(n_hits, n).proportion_ci(level)
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Correlations:
    """Correlations of two rankings: Kendall's τ_b, Spearman's ρ and τ_AP, each from -1 to 1."""

    tau: float
    rho: float
    tau_ap: float


def rank_correlations(truth: Floats, estimate: Floats) -> Correlations:
    """Rank correlations between the estimated and the true ranking of systems.

    ``truth, estimate``: the score of each system, shape (n,). Differences below 1e-9 are ties. Returns NaN if all
    systems are tied in ``truth`` or in ``estimate``, or there are fewer than two systems.

    >>> found = rank_correlations(np.array([0.9, 0.5, 0.1]), np.array([0.8, 0.6, 0.7]))
    >>> round(found.tau, 3), round(found.rho, 3), round(found.tau_ap, 3)
    (0.333, 0.5, 0.5)
    """
    truth, estimate = np.round(truth, _DECIMALS), np.round(estimate, _DECIMALS)
    if len(truth) < 2 or np.ptp(truth) == 0 or np.ptp(estimate) == 0:  # noqa: PLR2004 - a ranking needs two
        return Correlations(*[float("nan")] * 3)
    from scipy import stats

    tau, rho = stats.kendalltau(truth, estimate).statistic, stats.spearmanr(truth, estimate).statistic
    return Correlations(float(tau), float(rho), tau_ap(truth, estimate))


def tau_ap(truth: Floats, estimate: Floats) -> float:
    """AP correlation, which weights errors at the top of the ranking more (Yilmaz, Aslam and Robertson, SIGIR 2008).

    ``τ_AP = 2/(n - 1) Σ_{i=2..n} C(i)/(i - 1) - 1``, where C(i) is the number of systems that the estimate correctly
    ranks above its i-th system.

    ``truth, estimate``: the score of each system, shape (n,), n at least 2; more is better. Returns -1 to 1. For tied
    estimates, the expectation over all orders of the tied systems (τ_AP,a of Urbano and Marrero, ICTIR 2017); either
    order of two systems that are tied in truth counts half. 0 if all estimates are tied.

    Not symmetric. Cost and memory are quadratic in n.

    >>> truth = np.array([3.0, 2.0, 1.0])
    >>> tau_ap(truth, np.array([2.0, 3.0, 1.0])), tau_ap(truth, np.array([3.0, 1.0, 2.0]))
    (0.0, 0.5)
    """
    right = (np.sign(truth[:, None] - truth) + 1) / 2
    above = estimate[:, None] > estimate
    tied = (estimate[:, None] == estimate) & ~np.eye(len(truth), dtype=bool)
    n_above, n_tied = above.sum(axis=0), tied.sum(axis=0)
    # A tied system takes each rank of its tie with the same probability, after a random part of the tied systems.
    fixed = (right * above).sum(axis=0)
    among = (right * tied).sum(axis=0) / np.maximum(n_tied, 1)
    n_places = n_tied + (n_above > 0)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, len(truth))))
    inverse = harmonic[n_above + n_tied] - harmonic[np.maximum(n_above - 1, 0)]
    shares = (n_places * among + (fixed - n_above * among) * inverse) / (n_tied + 1)
    return float(2 * shares.sum() / (len(truth) - 1) - 1)


def rank_biased_overlap(truth: Floats, estimate: Floats, p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings of the same systems (Webber, Moffat and Zobel, ACM TOIS 28, 2010).

    ``RBO = (1 - p)/p Σ_{d=1..n} A(d) p^d + A(n) p^n`` with the agreement ``A(d) = 2 |X_d ∩ Y_d| / (|X_d| + |Y_d|)`` of
    the systems at ranks up to d. A system of a tie that begins at or above d belongs to them.

    ``truth, estimate``: the score of each system, shape (n,); more is better. ``p``: persistence, between 0 and 1: the
    first ``1/(1 - p)`` ranks have most of the weight. Returns 0 to 1; 1 for equal rankings.

    >>> round(rank_biased_overlap(np.array([3.0, 2.0, 1.0]), np.array([2.0, 3.0, 1.0])), 3)
    0.9
    """
    depth = np.arange(1, len(truth) + 1)
    # The first rank of a tie, by the number of systems above it.
    ranks = [(scores > scores[:, None] + EQUAL).sum(axis=1) + 1 for scores in (truth, estimate)]
    within = [rank[:, None] <= depth for rank in ranks]
    agreement = 2 * (within[0] & within[1]).sum(axis=0) / (within[0].sum(axis=0) + within[1].sum(axis=0))
    return float((1 - p) / p * (agreement * p**depth).sum() + agreement[-1] * p ** len(truth))


@dataclass(frozen=True)
class Preferences:
    """Numbers of true, stated and correct preferences between two systems on a topic."""

    n_true: int
    n_stated: int
    n_right: int

    @property
    def precision(self) -> float:
        """``n_right / n_stated``, NaN if none is stated."""
        return self.n_right / self.n_stated if self.n_stated else float("nan")

    @property
    def recall(self) -> float:
        """``n_right / n_true``, NaN if there is none."""
        return self.n_right / self.n_true if self.n_true else float("nan")

    @property
    def f1(self) -> float:
        """``2 n_right / (n_true + n_stated)``, the harmonic mean of precision and recall; NaN if there is none."""
        n = self.n_true + self.n_stated
        return 2 * self.n_right / n if n else float("nan")

    def __add__(self, other: Preferences) -> Preferences:
        return Preferences(self.n_true + other.n_true, self.n_stated + other.n_stated, self.n_right + other.n_right)


def preferences(truth: Floats, low: Floats, high: Floats, estimated: ArrayLike) -> Preferences:
    """Compare the preferences stated by ranges of scores with the true ones (Fröbe et al., ECIR 2023, Table 6).

    A range strictly above another states a preference for its system on that topic. A range may be a single point: a
    point estimate, or a known score.

    ``truth``: the score of each system and topic, shape (n, n_topics); NaN if unknown. ``low, high``: the limits of
    each range, shape (n, n_topics). ``estimated``: mask of estimated scores, broadcast to (n, n_topics): pairs of two
    known scores do not count. Returns counts over all pairs of systems and all topics. Equal true scores are not a
    preference; one stated there is wrong.
    """
    estimated = np.broadcast_to(np.asarray(estimated, dtype=bool), truth.shape)
    total = Preferences(0, 0, 0)
    for one in range(len(truth) - 1):
        rest = slice(one + 1, None)
        true = _sign(truth[one] - truth[rest], truth[one] - truth[rest])
        stated = _sign(low[one] - high[rest], high[one] - low[rest])
        valid = (estimated[one] | estimated[rest]) & ~np.isnan(truth[one]) & ~np.isnan(truth[rest])
        counted = (valid & (true != 0), valid & (stated != 0), valid & (stated != 0) & (true == stated))
        total += Preferences(*(int(np.count_nonzero(mask)) for mask in counted))
    return total


def _sign(low: Floats, high: Floats) -> NDArray[np.int64]:
    """Return 1 if all of a range of differences is above 0, -1 if all is below 0, and 0 otherwise."""
    return (low > EQUAL).astype(np.int64) - (high < -EQUAL)


def paired_t(differences: Floats) -> tuple[float, float]:
    """Student's t of paired differences and its two-sided p-value.

    ``differences``: shape (n,). Returns (0, 1) if all differences are 0; NaN for fewer than two.

    >>> t, p = paired_t(np.array([0.1, 0.3, 0.2, 0.4]))
    >>> round(t, 3), round(p, 3)
    (3.873, 0.03)
    """
    if len(differences) < 2:  # noqa: PLR2004 - a variance needs two
        return float("nan"), float("nan")
    if np.abs(differences).max() <= EQUAL:
        return 0.0, 1.0
    std = float(differences.std(ddof=1))
    if std <= EQUAL * np.abs(differences).max():
        return float(np.copysign(np.inf, differences[0])), 0.0
    from scipy import stats

    found = stats.ttest_1samp(differences, 0.0)
    return float(found.statistic), float(found.pvalue)


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni's ``min(1, n p)`` for a family of n tests, shape (n,); NaN p-values are not counted.

    >>> bonferroni(np.array([0.01, 0.5, np.nan])).tolist()
    [0.02, 1.0, nan]
    """
    return np.minimum(p_values * np.count_nonzero(~np.isnan(p_values)), 1.0)
