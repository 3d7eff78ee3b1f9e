"""One-sided limits of means over queries, valid against losses of queries that were not sampled."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Floats, Ints

    # Student's t: its quantile at (df, probability), and its distribution function at (df, t), as SciPy's functions.
    OfT = Callable[[Any, Any], Any]
    # The quantile of a Beta distribution at (a, b, probability).
    OfBeta = Callable[[Any, Any, Any], Any]
    # The share of the weight that has no sampled query, at an exponent.
    OfExponent = Callable[[Floats], Floats]


# Unequal weights or clusters leave fewer degrees of freedom, or clusters, than limits of decisions need.
LEAST_DF, LEAST_CLUSTERS = 8, 10
# Shares of queries without a sampled one at which limits are inspected; values of t at which p-values are.
_N_SHARES, _N_VALUES = 161, 161
# The first of two searches of the lowest limit inspects every _COARSE_STEP-th share.
_COARSE_STEP = 4
# The distribution function of t is nearly 0 below -_MAX_NEGATIVE_T; values of t are cut at +-_INFINITE.
_MAX_NEGATIVE_T, _INFINITE = 8.0, 1e3
# Numbers are searched by steps of a factor, to a part of the number.
_FACTOR, _PRECISION = 4, 50
# Student's t has no quantile at 1.
_LARGEST_TAIL = 1 - 1e-9
# Leverages are cut here, so that a query with nearly all of the weight has a finite variance.
_LARGEST_LEVERAGE = 0.9
# Skewness without effect, which avoids a division by 0; standard deviations this small are rounding errors.
_NO_SKEWNESS, _NO_SPREAD = 1e-9, 1e-300
# A count above 0 that replaces 0.
_MIN_COUNT = 1e-9
# The tail of weights is estimated from at most 20 of them, or a quarter; the largest index.
_N_TAIL, _TAIL_PARTS, _LARGEST_INDEX = 20, 4, 0.95
# Values whose moments are computed at a time.
_BLOCK_CELLS = 1 << 20
# Nodes and the least degrees of freedom at which quantiles of t are interpolated, to 1e-13.
_N_NODES, _LEAST_INTERPOLATED = 24, 3.0


class Moments(NamedTuple):
    """Moments of weighted means: all that a limit needs, each of shape (m,), or (1,) if all columns share it.

    - ``mean``: D = Σ a x, with the shares a = w/Σw
    - ``variance``: that of the mean, Σ a² e²/(1 - a) with e = x - D (HC2); s²/n for equal weights
    - ``third``: the third moment of the mean, Σ a³ e³
    - ``n_effective``: the number of queries of equal weight that the sample is worth, 1/Σ a² (Kish)
    - ``df``: degrees of freedom of the variance, by Satterthwaite; n - 1 for equal weights
    - ``n_heaviest``: the number of queries that weigh as much as queries heavier than all in the sample do on average,
      and together as the sample: ``(1 - ξ)/max a`` for a Pareto tail with the index ξ of the weights, see
      :func:`tail_index`; n for equal weights
    """

    mean: Floats
    variance: Floats
    third: Floats
    n_effective: Floats
    df: Floats
    n_heaviest: Floats

    @property
    def heaviest_unseen(self) -> Moments:
        """The moments for limits of decisions: queries that the sample lacks are heavier than all in it.

        Kish's number gives them the average weight of the sample. A uniform sample is likely to lack the heaviest
        queries, whose weight is estimated from the tail of the weights in the sample.
        """
        return self._replace(n_effective=self.n_heaviest)

    @property
    def negation(self) -> Moments:
        """The moments of the negative values, whose lower limit is the negative upper limit."""
        return self._replace(mean=-self.mean, third=-self.third)


class Covariate(NamedTuple):
    """A covariate of sampled queries, with its mean over all queries for which it is known.

    - ``values``: shape (n,) or (n, m)
    - ``mean``: the mean over all queries, the sampled ones included, and ``n_all``, the number of these (Kish's for
      unequal weights)
    """

    values: Floats
    mean: Any
    n_all: float


class SampledQueries(NamedTuple):
    """A sample of n queries from the population that they represent.

    - ``weights``: above 0, shape (n,), or (n, m) for separate weights of m columns of values
    - ``clusters``: codes 0, 1, ... of groups of dependent queries, shape (n,)
    - ``copies``: the number of draws of each query, shape (n,) or (n, m); 1 by default. Members of a cluster are drawn
      together
    - ``certain``: for samples by traffic, the share of the mean of each query that was taken for certain, and 0 for
      queries that were drawn, shape (n,)
    - ``covariate``: a covariate of the queries
    - ``unsampled``: weights of all other queries of the population, the heaviest first, if they are known, shape (k,)
    """

    weights: Floats
    clusters: Ints | None = None
    copies: Floats | None = None
    certain: Floats | None = None
    covariate: Covariate | None = None
    unsampled: Floats | None = None

    @classmethod
    def equal(cls, n: int) -> SampledQueries:
        """A sample of n queries of equal weight."""
        return cls(np.ones(n))

    @property
    def drawn_queries(self) -> SampledQueries:
        """The queries that were drawn, without those taken for certain."""
        if self.certain is None:
            return self
        rows = self.certain == 0
        copies = None if self.copies is None else self.copies[rows]
        return SampledQueries(self.weights[rows], copies=copies, unsampled=self.unsampled)

    def unseen_share(self, exponent: Floats) -> Floats:
        """The largest share of the weight of a set of queries that no sampled one belongs to with probability ``e^-l``.

        A uniform sample of n queries lacks a set of a share ``1 - e^{-l/n}`` of the population with that probability.
        Its weight is at most that of as many of the heaviest unsampled queries.

        - ``exponent``: l, at least 0

        >>> sample = SampledQueries(np.ones(10), unsampled=np.array([5.0, *np.ones(85)]))
        >>> sample.unseen_share(np.array([0.0, 0.105, 3.0])).round(3).tolist()
        [0.0, 0.05, 0.289]
        """
        if self.unsampled is None:
            raise ValueError("the weights of unsampled queries are unknown")
        n = float(len(self.weights) if self.copies is None else self.copies.sum(axis=0).flat[0])
        number = -np.expm1(-exponent / n) * (len(self.weights) + len(self.unsampled))
        mass = np.append(0.0, np.cumsum(self.unsampled))
        return np.asarray(np.interp(number, np.arange(len(mass)), mass) / (self.weights.sum() + mass[-1]))

    def split_certain(self, values: Floats) -> tuple[Floats, float, Floats]:
        """The known part of the mean, shape (m,), the share of the drawn queries in it, and the values of these.

        The mean of the population is the known part, plus the share times the mean of the queries to draw from.
        """
        if self.certain is None:
            return np.zeros(1), 1.0, values
        return self.certain @ values, float(1 - self.certain.sum()), values[self.certain == 0]

    def mean(self, values: Floats) -> Floats:
        """The weighted mean of each column, shape (m,), without the covariate."""
        exact, left, rest = self.split_certain(values)
        drawn = self.drawn_queries
        weights = drawn.weights.reshape(len(rest), -1)
        if drawn.copies is not None:
            weights = weights * drawn.copies.reshape(len(rest), -1)
        return np.asarray(exact + left * (weights * rest).sum(axis=0) / weights.sum(axis=0))

    def estimate(self, values: Floats) -> Floats:
        """The estimated mean of each column, shape (m,), with the covariate if there is one."""
        return self.mean(values) if self.covariate is None else self.moments(values).mean

    def moments(self, values: Floats) -> Moments:
        """Moments of the means of values of the drawn queries, shape (n, m).

        Many columns that share their weights are taken in blocks: intermediate results are as large as the values.
        """
        is_shared = all(each is None or each.ndim == 1 for each in (self.weights, self.copies))
        n_blocks = -(-values.size // _BLOCK_CELLS)
        if n_blocks < 2 or not is_shared or self.covariate is not None:  # noqa: PLR2004 - a single block
            return moments(values, self.weights, self.clusters, self.covariate, self.copies)
        blocks = np.array_split(values, min(n_blocks, values.shape[1] // 2), axis=1)
        parts = [moments(block, self.weights, self.clusters, None, self.copies) for block in blocks]
        mean, variance, third = (np.concatenate(each) for each in list(zip(*parts, strict=True))[:3])
        return parts[0]._replace(mean=mean, variance=variance, third=third)

    @property
    def n_units(self) -> int:
        """The number of queries or clusters that are drawn independently."""
        drawn = self.drawn_queries
        return len(drawn.weights) if drawn.clusters is None else int(drawn.clusters.max()) + 1

    def of_clusters(self, values: Floats) -> Floats:
        """Sums over clusters, scaled so that their mean is that of the values, shape (n_units, m); else the values."""
        if self.clusters is None:
            return values
        sums = np.zeros((self.n_units, values.shape[1]))
        np.add.at(sums, self.clusters, values)
        return sums * len(sums) / len(values)

    def resample_units(self, size: int, n_resamples: int, draws: np.random.Generator) -> SampledQueries:
        """Resamples of ``size`` of the drawn units, queries or clusters; queries taken for certain remain."""
        rest = self.drawn_queries
        unit = np.arange(len(rest.weights)) if rest.clusters is None else rest.clusters
        observed = np.ones(len(unit)) if rest.copies is None else rest.copies
        often = np.bincount(unit, observed) / (np.bincount(unit) if rest.clusters is not None else 1)
        copies = draws.multinomial(size, often / often.sum(), size=n_resamples)[:, unit].T.astype(np.float64)
        if self.certain is not None:
            every = np.zeros((len(self.weights), n_resamples))
            every[self.certain == 0] = copies
            copies = every
        return self._replace(copies=copies)


def smallest_number(probability: Callable[[int], float], target: float, least: int, most: int) -> int | None:
    """The smallest number from ``least`` to ``most`` that has a wanted probability, which increases with the number.

    By steps of factor 4, bisection of logarithms to 2 %, and linear interpolation; None if ``most`` does not suffice.

    >>> smallest_number(lambda n: 1 - 0.9**n, 0.5, 1, 100)
    7
    """
    few, below, many = least - 1, 0.0, least
    while (above := probability(many)) < target:
        if many == most:
            return None
        few, below, many = many, above, min(_FACTOR * many, most)
    while many - few > max(1, few // _PRECISION):
        middle = min(max(math.ceil(math.sqrt(few * many)), few + 1), many - 1)
        reached = probability(middle)
        if reached < target:
            few, below = middle, reached
        else:
            many, above = middle, reached
    return few + max(1, math.ceil((target - below) / (above - below) * (many - few)))


def moments(
    values: Floats,
    weights: Floats | None = None,
    clusters: Ints | None = None,
    covariate: Covariate | None = None,
    copies: Floats | None = None,
) -> Moments:
    """Moments of the weighted mean of each column.

    - ``values``: shape (n, m), a row for each query
    - ``weights``, ``clusters``, ``copies``: see :class:`SampledQueries`; sums over clusters replace queries
    - ``covariate``: the mean becomes ``D - θ (c̄ - C̄)``, with θ by regression on the covariate; the variance is that of
      the residuals plus ``θ² var(c)/n_all``, with one degree of freedom less

    Source: Bell and McCaffrey, Survey Methodology 28, 2002 (HC2 and degrees of freedom); Kish, Survey Sampling, 1965.
    """
    n = len(values)
    weights = np.ones((n, 1)) if weights is None else np.asarray(weights, dtype=np.float64).reshape(n, -1)
    often = np.ones((n, 1)) if copies is None else np.asarray(copies, dtype=np.float64).reshape(n, -1)
    if clusters is None and weights.shape[1] == 1 and np.ptp(weights) == 0:
        # Queries of equal weight share one row, of shape (1, m).
        weights = weights[:1]
    share = weights / (often * weights).sum(axis=0)
    mean = (often * share * values).sum(axis=0)
    deviation, leverage, further, lost = values - mean, share, np.zeros(1), 0
    if covariate is not None:
        covariates = np.asarray(covariate.values, dtype=np.float64).reshape(n, -1)
        n, weight = often.sum(axis=0), often * share
        center = (weight * covariates).sum(axis=0)
        away = covariates - center
        spread = (weight * away**2).sum(axis=0)
        slope = np.divide((weight * away * deviation).sum(axis=0), spread, out=np.zeros_like(mean), where=spread > 0)
        mean = mean - slope * (center - covariate.mean)
        deviation, lost = deviation - slope * away, 1
        # The mean over all queries has a separate error.
        further = slope**2 * spread * n / (n - 1) / covariate.n_all
        leverage = share + np.divide(away**2, n * spread, out=np.zeros_like(away), where=spread > 0)
    part, of_units = share * deviation, share
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        part, of_units, leverage = (np.add.reduceat(each[order], starts, axis=0) for each in (part, share, leverage))
        often = often[order][starts]
    squares = (often * part**2 / (1 - np.minimum(leverage, _LARGEST_LEVERAGE))).sum(axis=0)
    # Deviations of constant values from their mean are rounding errors.
    constant = np.abs(deviation).max(axis=0) <= ROUNDING * np.abs(values).max(axis=0)
    squares, third = np.where(constant, 0.0, squares), np.where(constant, 0.0, (often * part**3).sum(axis=0))
    if len(of_units) < len(often):
        often = often.sum(axis=0, keepdims=True)
    n_effective = (often * of_units).sum(axis=0) / (often * of_units**2).sum(axis=0)
    n_heaviest = (1 - tail_index(of_units, often)) / np.where(often > 0, of_units, 0.0).max(axis=0)
    return Moments(mean, squares + further, third, n_effective, _freedom(of_units, often) - lost, n_heaviest)


def tail_index(weights: Floats, copies: Floats) -> Floats:
    """Cautious estimate of the index ξ of the Pareto tail of weights, from 0 to .95, shape (m,).

    The mean logarithm of the k heaviest weights minus that of the next one (Hill), plus one standard error, a factor
    ``1 + 1/√k``, with k = 20, or a quarter of the draws if that is less. Weights above a weight w of the tail have the
    mean ``w/(1 - ξ)``. 0 if the heaviest weights are equal.

    - ``weights``: above 0, shape (n, 1) or (n, m); ``copies``: the number of draws of each, of the same shape or (n, m)

    Source: Hill, Annals of Statistics 3, 1975. tests/bench/decisions.py chooses k and the factor, and tests them on
    other distributions.

    >>> tail_index(np.geomspace(1, 8, 8)[:, None], np.ones((8, 1))).round(2).tolist()
    [0.76]
    """
    n, drawn = copies.sum(axis=0), np.where(copies > 0, weights, 0.0)
    most = min(_N_TAIL + 1, len(drawn))
    top = np.argpartition(-drawn, most - 1, axis=0)[:most]
    top = np.take_along_axis(top, np.argsort(-np.take_along_axis(drawn, top, axis=0), axis=0), axis=0)
    copies, drawn = np.take_along_axis(copies, top, axis=0), np.take_along_axis(drawn, top, axis=0)
    before = np.cumsum(copies, axis=0) - copies
    k = np.minimum(np.clip(n // _TAIL_PARTS, 1, _N_TAIL), n - 1)
    logs = np.log(np.maximum(drawn, _NO_SPREAD))
    heaviest, with_next = ((np.clip(at - before, 0, copies) * logs).sum(axis=0) for at in (k, k + 1))
    at_least_one = np.maximum(k, 1)
    index = (heaviest / at_least_one - (with_next - heaviest)) * (1 + 1 / np.sqrt(at_least_one))
    return np.asarray(np.where(k > 0, np.clip(index, 0.0, _LARGEST_INDEX), 0.0))


def drawn_errors(values: Floats, sample: SampledQueries, n_draws: int, draws: np.random.Generator) -> Floats:
    """Joint draws of the errors of the weighted means of m columns, shape (m, n_draws).

    ``√(df/χ²) Σ_i z_i a_i e_i/√(1 - a_i)`` with independent standard normal z, shared by all columns, and one χ² in a
    draw: multivariate t with the covariance (HC2) and the degrees of freedom of :func:`moments`. Sums over clusters
    replace queries.

    - ``values``: shape (n, m)
    - ``sample``: weights and clusters

    >>> errors = drawn_errors(np.eye(2), SampledQueries(np.ones(2)), 4, np.random.default_rng(0))
    >>> bool(np.allclose(errors[0], -errors[1]))
    True
    """
    share = sample.weights / sample.weights.sum()
    parts, leverage = share[:, None] * (values - share @ values), share
    if sample.clusters is not None:
        sums = np.zeros((sample.n_units, values.shape[1]))
        np.add.at(sums, sample.clusters, parts)
        parts, leverage = sums, np.bincount(sample.clusters, share)
    df = float(_freedom(leverage[:, None], np.ones((len(leverage), 1)))[0])
    scaled = parts / np.sqrt(1 - np.minimum(leverage, _LARGEST_LEVERAGE))[:, None]
    normal = draws.standard_normal((len(leverage), n_draws))
    return np.asarray(scaled.T @ normal * np.sqrt(df / draws.chisquare(df, n_draws)))


def _freedom(share: Floats, often: Floats) -> Floats:
    """Satterthwaite's degrees of freedom of Σ q e² with q = a²/(1 - a) and e = (I - 1 a')d, for equal variances of d.

    ``(Σ q V_ii)²/Σ_ij q_i q_j V_ij²`` with V = (I - 1 a')(I - 1 a')', in sums over units. Shape (m,).
    """
    q, s = share**2 / (1 - np.minimum(share, _LARGEST_LEVERAGE)), (often * share**2).sum(axis=0)
    factor, weight = 1 - 2 * share + s, often * q
    q0, q1, q2 = weight.sum(axis=0), (weight * share).sum(axis=0), (weight * share**2).sum(axis=0)
    squares = (weight * q * factor**2).sum(axis=0)
    others = s**2 * q0**2 + 2 * q0 * q2 + 2 * q1**2 - 4 * s * q0 * q1 - (weight * q * (s - 2 * share) ** 2).sum(axis=0)
    return np.asarray((weight * factor).sum(axis=0) ** 2 / (squares + others))


def lower_limit(
    moments: Moments, tail: Any, worst: Any, quantile_of_t: OfT, unseen: OfExponent | None = None
) -> Floats:
    r"""Lower limit of the mean over the population that the queries are a sample of, shape (m,).

    1. One more query such as those that lost: :math:`c = \min(0, m/v)` for the variance v and the third moment m of the
       mean D; then :math:`k_1 = D + c`, :math:`k_2 = v + c^2`, :math:`g = -2 (\min(m, 0) + c^3)/k_2^{1.5}`.
    2. The quantile of a Gamma distribution with the skewness g (Wilson and Hilferty), at that of Student's t:
       :math:`K(t) = \frac 2 g ((1 + g t/6 - g^2/36)_+^3 - 1)`, and t without skewness.
    3. Queries that the sample lacks: a share :math:`p = 1 - e^{-l/N}` of the queries has no sampled one with
       probability :math:`e^{-l}`, so that the limit is :math:`\min_l (1 - p)(k_1 - \sqrt{k_2} K(t)) - p B` over
       :math:`0 \le l \le -\log \alpha`, with the upper quantile t at :math:`\alpha e^l`.

    Without spread it is ``x - (x + B)(1 - α^(1/N))``, Clopper and Pearson's limit for 0 and 1. It is continuous in each
    value, with a slope of at most 2.5 from 30 queries on; it rises with the mean at the same spread, with the tail and
    with N, and falls with B.

    It is not monotone in the spread: for 147 normal differences around 0 with standard deviations 0, .001, .03, .07 and
    .1 it is -.0202, -.0199, -.0166, -.0156 and -.0164 at α = .05. Without spread, the sample hides a share of unseen
    losses with probability α by itself; with some spread, the mean of the sample must be high as well, which happens in
    a part of those samples. A valid limit that never rises with the spread is at most Clopper and Pearson's for all
    spreads, so that with the standard deviation .1 it shows a loss below .02 of equal systems with probability .16 and
    .77 at most for 100 and 200 queries; this one does with .36 and .84. Its error rate stays below α: .043 at most for
    margins .0167 and .018 with standard deviations .003 to .05 and shares of .002 to .022 that lose 1 (4,000 samples
    each).

    - ``moments``: see :func:`moments`
    - ``tail``: α, the nominal probability that the mean is below the limit, between 0 and 1; a number or shape (m,)
    - ``worst``: B, the largest loss of a query: no value of the population is below -B; a number or shape (m,)
    - ``quantile_of_t``: such as ``scipy.special.stdtrit``
    - ``unseen``: p as a function of l, such as :meth:`SampledQueries.unseen_share`; by default that of step 3

    Steps 1 and 3 have no theorem; tests/bench/decisions.py simulates error rates, docs/explanation/statistics.md states
    them. Cost: 161 quantiles of t for all columns if they share their degrees of freedom, else at most 3,864, and 161
    for each column with less than 3.

    Source: Clopper and Pearson, Biometrika 26, 1934; Wilson and Hilferty, PNAS 17, 1931.

    >>> from scipy import special
    >>> lower_limit(moments(np.zeros((100, 1))), 0.05, 1.0, special.stdtrit).round(4).tolist()
    [-0.0295]
    """
    tail = np.atleast_1d(np.asarray(tail, dtype=np.float64))
    mean, spread, skewness = _with_another_loss(moments)
    exponent = exponents(tail)
    t = _quantiles_of_t(moments.df, tail, quantile_of_t)

    def limits_at(t: Floats, exponent: Floats) -> Floats:
        share = -np.expm1(-exponent / moments.n_effective) if unseen is None else unseen(exponent)
        return np.asarray((1 - share) * (mean - spread * skewed_quantiles(t, skewness)) - share * worst)

    # Every fourth share first, then those around the lowest one. A second minimum can only be at the end.
    rows = np.arange(0, _N_SHARES, _COARSE_STEP)
    coarse = limits_at(t[rows], exponent[rows])
    lowest = rows[coarse[:-1].argmin(axis=0)]
    around = np.clip(lowest + np.arange(1 - _COARSE_STEP, _COARSE_STEP)[:, None], 0, _N_SHARES - 1)
    limit = limits_at(_of_rows(t, around), _of_rows(exponent, around)).min(axis=0)
    return np.asarray(np.maximum(np.minimum(limit, coarse[-1]), -np.asarray(worst)))


def _of_rows(table: Floats, rows: Ints) -> Floats:
    """Values of separate rows of each column, or of a column that all share."""
    return np.asarray(table[rows, 0] if table.shape[1] == 1 else np.take_along_axis(table, rows, axis=0))


def limit_of_seen(moments: Moments, tail: Any, quantile_of_t: OfT) -> Floats:
    """Steps 1 and 2 of :func:`lower_limit`, which assume that the sample lacks no query, for values without bounds."""
    mean, spread, skewness = _with_another_loss(moments)
    return np.asarray(mean - spread * skewed_quantiles(-quantile_of_t(moments.df, tail), skewness))


def upper_limit(moments: Moments, tail: Any, best: Any, quantile_of_t: OfT, unseen: OfExponent | None = None) -> Floats:
    """Upper limit of the mean if no value of the population is above ``best``; see :func:`lower_limit`."""
    return -lower_limit(moments.negation, tail, best, quantile_of_t, unseen)


def exponents(tail: Floats) -> Floats:
    """Exponents l from 0 to -log α at which limits are inspected, for tails of shape (m,): shape (n_shares, m).

    They are dense at the end, which decides if values have nearly no spread.
    """
    return np.asarray((1 - np.linspace(1, 0, _N_SHARES)[:, None] ** 2) * -np.log(tail))


def _quantiles_of_t(df: Floats, tail: Floats, quantile_of_t: OfT) -> Floats:
    """Upper quantiles at the tails ``α e^l``, shape (n_shares, 1) or (n_shares, m).

    They cost most of a limit. Columns that share their degrees of freedom share one quantile; those of many columns
    that differ are interpolated in 1/df by Chebyshev polynomials, whose error is that of rounding (relative 1e-13).

    - ``df``, ``tail``: shape (1,) or (m,)
    """
    if np.ptp(df) <= ROUNDING * df[0]:
        return -np.asarray(quantile_of_t(df[:1], _tails(tail)))
    if len(tail) > 1 or len(df) <= _N_NODES:
        return -np.asarray(quantile_of_t(df, _tails(tail)))
    within = np.maximum(df, _LEAST_INTERPOLATED)
    angles = np.arccos(2 * _LEAST_INTERPOLATED / within - 1)
    quantiles = _coefficients(float(tail[0]), quantile_of_t) @ np.cos(np.arange(_N_NODES)[:, None] * angles)
    few = df < _LEAST_INTERPOLATED
    quantiles[:, few] = -quantile_of_t(df[few], _tails(tail))
    return np.asarray(quantiles)


def _tails(tail: Floats) -> Floats:
    """The tails ``α e^l``, below 1."""
    return np.asarray(np.minimum(tail * np.exp(exponents(tail)), _LARGEST_TAIL))


@lru_cache(maxsize=16)
def _coefficients(tail: float, quantile_of_t: OfT) -> Floats:
    """Chebyshev coefficients of quantiles as functions of 1/df from 0 to 1/_LEAST_INTERPOLATED."""
    angles, order = np.pi * (np.arange(_N_NODES) + 0.5) / _N_NODES, np.arange(_N_NODES)
    at_nodes = -quantile_of_t(2 * _LEAST_INTERPOLATED / (1 + np.cos(angles)), _tails(np.array([tail])))
    return np.asarray(at_nodes @ np.cos(angles[:, None] * order) * np.where(order > 0, 2.0, 1.0) / _N_NODES)


def p_value(moments: Moments, null: Any, worst: Any, distribution_of_t: OfT) -> Floats:
    """P-value of the hypothesis that the mean is at most ``null``: the inverse of :func:`lower_limit`, shape (m,).

    ``max_t ((null + B)/(k_1 - √k_2 K(t) + B))^N P(T > t)`` over the t for which the base is at most 1: the tail ``e^-l
    P(T > t)`` at which the limit of the share of unseen queries is ``null``.

    - ``null``, ``worst``: numbers or shape (m,)
    - ``distribution_of_t``: such as ``scipy.special.stdtr``

    >>> from scipy import special
    >>> p_value(moments(np.zeros((100, 1))), -0.0295, 1.0, special.stdtr).round(3).tolist()
    [0.05]
    """
    mean, spread, skewness = _with_another_loss(moments)
    null, worst = (np.asarray(each, dtype=np.float64) for each in (null, worst))
    # Without unseen queries.
    largest = _inverse_skewed_quantiles((mean - null) / np.maximum(spread, _NO_SPREAD), skewness)
    largest = np.arcsinh(np.clip(largest, -_INFINITE, _INFINITE))
    t = np.sinh(np.linspace(np.minimum(-np.arcsinh(_MAX_NEGATIVE_T), largest), largest, _N_VALUES))
    seen = (null + worst) / np.maximum(mean - spread * skewed_quantiles(t, skewness) + worst, _NO_SPREAD)
    p: Floats = (np.clip(seen, 0.0, 1.0) ** moments.n_effective * distribution_of_t(moments.df, -t)).max(axis=0)
    constant: Floats = np.clip((null + worst) / np.maximum(mean + worst, _NO_SPREAD), 0.0, 1.0) ** moments.n_effective
    return np.asarray(np.where(spread > 0, np.clip(p, 0.0, 1.0), constant))


def clopper_pearson(
    share: Floats, n: Any, below: float, above: float, quantile_of_beta: OfBeta
) -> tuple[Floats, Floats]:
    """Limits of a share in n trials, also of fractional numbers: ``below`` the lower, ``above`` the upper limit.

    - ``quantile_of_beta``: such as ``scipy.special.betaincinv``

    Source: Clopper and Pearson, Biometrika 26, 1934.
    """
    count = n * share
    # The limits are 0 without a loss and 1 with losses alone, where the inverse is undefined.
    low = np.where(count > 0, quantile_of_beta(np.maximum(count, _MIN_COUNT), n - count + 1, below), 0.0)
    rest = np.maximum(n - count, _MIN_COUNT)
    high = np.where(share < 1, quantile_of_beta(count + 1, rest, 1 - above), 1.0)
    return low, high


def _with_another_loss(moments: Moments) -> tuple[Floats, Floats, Floats]:
    """Mean, standard deviation and skewness with one more query such as those that lost: step 1."""
    loss = np.divide(moments.third, moments.variance, out=np.zeros(np.shape(moments.mean)), where=moments.variance > 0)
    loss = np.minimum(loss, 0.0)
    spread = np.sqrt(moments.variance + loss**2)
    cube = -2 * (np.minimum(moments.third, 0.0) + loss**3)
    skewness = np.divide(cube, spread**3, out=np.zeros_like(spread), where=spread > 0)
    return moments.mean + loss, spread, skewness


def skewed_quantiles(t: Floats, skewness: Floats) -> Floats:
    """K(t): quantiles of a standardised Gamma distribution, step 2, without cancellation for small skewness."""
    third = np.maximum(t / 6 - skewness / 36, -1 / np.maximum(skewness, _NO_SPREAD))
    return np.asarray(2 * third * (3 + 3 * skewness * third + (skewness * third) ** 2))


def _inverse_skewed_quantiles(k: Floats, skewness: Floats) -> Floats:
    """Values t with K(t) = k."""
    g = np.maximum(skewness, _NO_SKEWNESS)
    with np.errstate(divide="ignore"):
        root = np.expm1(np.log1p(np.maximum(g * k / 2, -1.0)) / 3)
    return np.asarray(6 / g * root + g / 6)
