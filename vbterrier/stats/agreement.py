"""Agreement of estimates with true scores: errors, coverage, system rankings, preferences between systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.tolerances import REPLICA_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from vbterrier.annotations import Floats


@dataclass(frozen=True)
class Errors:
    """Errors ``e = estimate - truth`` of n estimates; rmse_over is of ``max(e, 0)``, rmse_under of ``min(e, 0)``."""

    n: int
    bias: float
    mae: float
    rmse: float
    rmse_over: float
    rmse_under: float


def error_statistics(truth: Floats, estimate: Floats) -> Errors:
    """Summarise the errors of estimates (Fröbe et al., ECIR 2023, section 4.2).

    Underestimates count as 0 in rmse_over, overestimates in rmse_under, instead of being left out as in the paper, so
    that ``rmse² = rmse_over² + rmse_under²``.
    """
    error = estimate - truth
    if not len(error):
        return Errors(0, *[float("nan")] * 5)
    rmse, over, under = (float(np.sqrt((part**2).mean())) for part in (error, error.clip(min=0), error.clip(max=0)))
    return Errors(len(error), float(error.mean()), float(np.abs(error).mean()), rmse, over, under)


def share_interval(n_hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a binomial proportion (Clopper and Pearson 1934); NaN if n is 0.

    It assumes independent trials: too narrow for runs on the same topic, and for simulations of the same run.
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
    """Rank correlations of two scorings of the same systems, shape (n,); differences below 1e-9 are ties.

    NaN if all systems are tied in either, or there are fewer than two.
    """
    truth, estimate = np.round(truth, 9), np.round(estimate, 9)
    if len(truth) < 2 or np.ptp(truth) == 0 or np.ptp(estimate) == 0:  # noqa: PLR2004 - a ranking needs two
        return Correlations(*[float("nan")] * 3)
    from scipy import stats

    rho = stats.spearmanr(truth, estimate).statistic
    return Correlations(float(tau_b(truth, estimate)), float(rho), float(tau_ap(truth, estimate)))


def tau_b(truth: Floats, estimate: Floats) -> Floats:
    """Kendall's τ_b of scorings of n systems (Biometrika 33, 1945), shape (...), from shape (..., n).

    ``τ_b = Σ s_ij t_ij / √(Σ s_ij² Σ t_ij²)`` with the signs s and t of the differences between systems i and j by the
    two scorings; NaN if all systems are tied in either.
    """
    signs, other = (np.sign(scores[..., :, None] - scores[..., None, :]) for scores in (truth, estimate))
    both, *squares = (np.einsum("...ij,...ij->...", *pair) for pair in ((signs, other), (signs, signs), (other, other)))
    norm = np.sqrt(squares[0] * squares[1])
    tau: Floats = np.divide(both, norm, out=np.full(norm.shape, np.nan), where=norm > 0)
    return tau


def tau_ap(truth: Floats, estimate: Floats) -> Floats:
    """AP correlation of scorings of n systems, at least two (Yilmaz, Aslam and Robertson, SIGIR 2008).

    Returns shape (...), from shape (..., n).

    ``τ_AP = 2/(n - 1) Σ_{i=2..n} C(i)/(i - 1) - 1``, where C(i) is the number of systems that the estimate correctly
    ranks above its i-th system; two systems that are tied in truth count half. For tied estimates, the expectation over
    all orders of the tied systems (τ_AP,a of Urbano and Marrero, ICTIR 2017).
    """
    n = truth.shape[-1]
    right = (np.sign(truth[..., :, None] - truth[..., None, :]) + 1) / 2
    above = estimate[..., :, None] > estimate[..., None, :]
    tied = (estimate[..., :, None] == estimate[..., None, :]) & ~np.eye(n, dtype=bool)
    n_above, n_tied = above.sum(axis=-2), tied.sum(axis=-2)
    # A tied system takes each rank of its tie with the same probability, after a random part of the tied systems.
    fixed = (right * above).sum(axis=-2)
    among = (right * tied).sum(axis=-2) / np.maximum(n_tied, 1)
    n_places = n_tied + (n_above > 0)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, n)))
    inverse = harmonic[n_above + n_tied] - harmonic[np.maximum(n_above - 1, 0)]
    shares = (n_places * among + (fixed - n_above * among) * inverse) / (n_tied + 1)
    return np.asarray(2 * shares.sum(axis=-1) / (n - 1) - 1)


def rank_biased_overlap(truth: Floats, estimate: Floats, p: float = 0.9) -> Floats:
    """Rank-biased overlap of rankings of the same systems (Webber, Moffat and Zobel, ACM TOIS 28, 2010).

    Returns shape (...), from scorings of shape (..., n).

    ``RBO = (1 - p)/p Σ_{d=1..n} A(d) p^d + A(n) p^n`` with the agreement ``A(d) = 2 |X_d ∩ Y_d| / (|X_d| + |Y_d|)`` of
    the systems at ranks up to d; a tie that begins at or above d belongs to them.
    """
    n = truth.shape[-1]
    depth = np.arange(1, n + 1)
    # The first rank of a tie, by the number of systems above it.
    ranks = [
        (scores[..., None, :] > scores[..., :, None] + REPLICA_ROUNDING).sum(axis=-1) + 1
        for scores in (truth, estimate)
    ]
    within = [rank[..., None] <= depth for rank in ranks]
    agreement = 2 * (within[0] & within[1]).sum(axis=-2) / (within[0].sum(axis=-2) + within[1].sum(axis=-2))
    return np.asarray((1 - p) / p * (agreement * p**depth).sum(axis=-1) + agreement[..., -1] * p**n)


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

    A range of scores strictly above another states a preference for its system on that topic. ``truth`` (NaN if
    unknown), ``low`` and ``high`` have the shape (systems, topics). Pairs without an estimated score do not count.
    """
    estimated = np.broadcast_to(np.asarray(estimated, dtype=bool), truth.shape)
    total = Preferences(0, 0, 0)
    for one in range(len(truth) - 1):
        rest = slice(one + 1, None)
        difference = truth[one] - truth[rest]
        true, stated = _sign(difference, difference), _sign(low[one] - high[rest], high[one] - low[rest])
        valid = (estimated[one] | estimated[rest]) & ~np.isnan(difference)
        counted = (valid & (true != 0), valid & (stated != 0), valid & (stated != 0) & (true == stated))
        total += Preferences(*(int(np.count_nonzero(mask)) for mask in counted))
    return total


def _sign(low: Floats, high: Floats) -> NDArray[np.int64]:
    """Return 1 if all of a range of differences is above 0, -1 if all is below 0, and 0 otherwise."""
    return (low > REPLICA_ROUNDING).astype(np.int64) - (high < -REPLICA_ROUNDING)


def paired_t(differences: Floats) -> tuple[float, float]:
    """Student's t of paired differences, and its two-sided p: (0, 1) if all are 0, NaN for fewer than two."""
    n, largest = len(differences), np.abs(differences).max(initial=0.0)
    if n < 2:  # noqa: PLR2004 - a variance needs two
        return float("nan"), float("nan")
    if largest <= REPLICA_ROUNDING:
        return 0.0, 1.0
    if differences.std(ddof=1) <= REPLICA_ROUNDING * largest:
        return float(np.copysign(np.inf, differences[0])), 0.0
    from scipy import stats

    test = stats.ttest_1samp(differences, 0.0)
    return float(test.statistic), float(test.pvalue)


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni's ``min(1, n p)`` for a family of n tests, shape (n,); NaN p-values are not counted."""
    return np.minimum(p_values * np.count_nonzero(~np.isnan(p_values)), 1.0)
