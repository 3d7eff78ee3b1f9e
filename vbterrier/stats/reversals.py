"""Limits of the share of pairs of systems that a judge reverses, and of the shift of its scores, from some topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.resample import stream
from vbterrier.stats.paired_tests import moderated_variances

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints

# Pairs by draws that are compared at a time: 16 MB.
_BLOCK_CELLS = 1 << 21
# Steps from the differences by the judge to the corrected ones, at which the lower limit of the share is sought.
_N_STEPS = 20


@dataclass(frozen=True, eq=False)
class OrderLimits:
    """Limits of the share of pairs that a judge reverses.

    - ``pairs``: the places of two systems that the judge separates by the margin at least, shape (2, n_pairs), the
      better one first
    - ``gap``, ``corrected``, ``half``: the differences of these pairs by the judge, corrected by humans, and the half
      width of the simultaneous intervals of the corrected ones, each (n_pairs,)
    - ``share``, ``low``, ``high``: the share of pairs whose corrected difference is below ``-margin``, and its
      one-sided limits
    """

    pairs: Ints
    gap: Floats
    corrected: Floats
    half: Floats
    share: float
    low: float
    high: float
    margin: float

    @property
    def reversed_pairs(self) -> Ints:
        """The pairs that are shown reversed by more than the margin, the largest difference first."""
        rows = np.flatnonzero(self.corrected + self.half < -self.margin)
        return np.asarray(rows[np.argsort(self.corrected[rows], kind="stable")])


class _Order:
    """Judged and corrected differences of pairs, and the noise of the corrections of a number of topics."""

    def __init__(self, judge: Floats, corrections: Floats, margin: float, n_draws: int, seed: int) -> None:
        a, b = np.triu_indices(len(judge), 1)
        gap = judge[a] - judge[b]
        apart = np.abs(gap) >= margin
        a, b, gap = a[apart], b[apart], gap[apart]
        self.pairs = np.where(gap > 0, [a, b], [b, a])
        self.margin, self.gap = margin, np.abs(gap)
        # Draws depend neither on the names nor on the order of systems and topics.
        self.corrections = corrections[:, np.lexsort(np.sort(corrections, axis=0))]
        self.k = corrections.shape[1]
        mean = self.corrections.mean(axis=1)
        self.correction: Floats = mean[self.pairs[0]] - mean[self.pairs[1]]
        drawn = stream(seed, "complete topics").multinomial(self.k, np.full(self.k, 1 / self.k), size=n_draws)
        # Resamples of k topics vary by (k - 1)/k of the variance of samples.
        scale = np.sqrt(self.k / max(self.k - 1, 1))
        self.noise: Floats = (self.corrections @ drawn.T / self.k - mean[:, None]) * scale

    def reversed_shares(self, part: float, noise: float) -> Floats:
        """Shares of reversed pairs in all draws, with a part of the correction and a factor of its noise."""
        expected = self.gap + part * self.correction
        counts = np.zeros(self.noise.shape[1])
        step = max(_BLOCK_CELLS // max(self.noise.shape[1], 1), 1)
        for start in range(0, len(expected), step):
            first, second = self.pairs[:, start : start + step]
            drawn = expected[start : start + step, None] + noise * (self.noise[first] - self.noise[second])
            counts += (drawn < -self.margin).sum(axis=0)
        return counts / len(expected)

    def share(self, part: float = 1.0) -> float:
        """The share of reversed pairs without noise."""
        return float((self.gap + part * self.correction < -self.margin).mean())

    def limits(self, n_topics: int, n_all: int, level: float) -> tuple[float, float]:
        """One-sided limits of the share if a number of topics is complete."""
        from scipy import special

        if n_topics >= n_all:
            return self.share(), self.share()
        noise = np.sqrt(self.k / n_topics * (1 - n_topics / n_all))
        high = float(np.quantile(self.reversed_shares(1.0, noise), level))
        # Noise reverses pairs of systems that are close: shares of samples exceed the share of the collection. The
        # lower limit is the smallest share, on the way from the judge's differences to the corrected ones, of which
        # samples have the observed share with more than the probability 1 - level.
        wider = noise * special.stdtrit(n_topics - 1, level) / special.ndtri(level)
        rejected, accepted = -1, _N_STEPS
        while accepted - rejected > 1:
            middle = (rejected + accepted) // 2
            if self.share() <= np.quantile(self.reversed_shares(middle / _N_STEPS, wider), level):
                accepted = middle
            else:
                rejected = middle
        return min(self.share(accepted / _N_STEPS), high), high


def order_limits(
    judge: Floats,
    corrections: Floats,
    n_all: int,
    margin: float,
    *,
    level: float = 0.95,
    n_draws: int = 1000,
    seed: int = 0,
) -> OrderLimits:
    r"""Limits of the share of pairs of systems that a judge reverses by more than a margin.

    Pairs are those that the judge separates by the margin at least, with differences ``d > 0`` on all topics. Humans
    correct them by ``c``, the mean difference of human and judged scores in k complete topics; a pair is reversed if
    ``d + c < -margin``. The share of the collection varies around that of these topics by resamples of topics, with
    the factor ``√(1 - k/n_all)`` of a finite collection. The upper limit is a quantile of the shares of the resamples
    of ``d + c``. The lower limit inverts a test: the smallest share of ``d + λ c``, λ from 0 to 1, whose resamples,
    widened by the ratio of the quantiles of Student's t and of the normal distribution, reach the observed share; or
    the share of pairs that are shown reversed together, if that is larger.

    Parameters
    ----------
    judge
        Mean score of each system by the judge on all topics, shape (n_systems,).
    corrections
        Human minus judged score of each system in each complete topic, shape (n_systems, k), k >= 1.
    n_all
        Number of all topics, at least k.
    margin
        Smallest difference that matters, at least 0.
    level, n_draws, seed
        Level of each limit and of all intervals of pairs together; number of resamples of topics; seed.

    Returns
    -------
    OrderLimits
        ``share`` with ``low`` and ``high``, NaN if no pair is separated, and the pairs. Intervals of pairs are
        Bonferroni's of a moderated t: a variance is at least that with 4 degrees of freedom of their median.

    Notes
    -----
    Quantiles of the shares themselves are too large as lower limits: noise reverses pairs of close systems, so that a
    judge without any error beyond noise seems to reverse a tenth of the pairs in nearly all samples of ten topics.

    Examples
    --------
    >>> judge = np.array([0.3, 0.4, 0.5])
    >>> corrections = np.array([[0.4, 0.3, 0.5], [0.0, 0.1, 0.0], [0.0, 0.0, -0.1]])
    >>> result = order_limits(judge, corrections, 3, 0.02)
    >>> round(result.share, 2), result.low == result.high == result.share
    (0.67, True)
    >>> result.pairs[:, result.reversed_pairs].tolist()
    [[1, 2], [0, 0]]
    """
    from scipy import special

    order = _Order(judge, corrections, margin, n_draws, seed)
    k, n_pairs = order.k, len(order.gap)
    if not n_pairs:
        empty = np.zeros(0)
        return OrderLimits(order.pairs, empty, empty, empty, np.nan, np.nan, np.nan, margin)
    half = np.zeros(n_pairs)
    if k < n_all:
        each = order.corrections[order.pairs[0]] - order.corrections[order.pairs[1]]
        variance = each.var(axis=1, ddof=1) if k > 1 else np.full(n_pairs, np.inf)
        variance = moderated_variances(variance, k - 1)
        t = special.stdtrit(max(k - 1, 1), 1 - (1 - level) / (2 * n_pairs))
        half = t * np.sqrt(variance / k * (1 - k / n_all))
    low, high = order.limits(k, n_all, level) if k > 1 or k == n_all else (0.0, 1.0)
    corrected = order.gap + order.correction
    # All pairs that are shown reversed together are a lower limit, too.
    low = max(low, float((corrected + half < -margin).mean()))
    return OrderLimits(order.pairs, order.gap, corrected, half, order.share(), low, max(low, high), margin)


def topics_for_order(
    judge: Floats, corrections: Floats, n_all: int, margin: float, most: float, *, level: float = 0.95, seed: int = 0
) -> int:
    """Number of complete topics from which a limit of the share would be on one side of ``most``.

    Parameters are those of :func:`order_limits`; the present corrections are taken to be those of more topics.
    """
    order = _Order(judge, corrections, margin, 300, seed)
    undecided, decided = order.k, n_all
    while decided - undecided > 1:
        middle = (undecided + decided) // 2
        low, high = order.limits(middle, n_all, level)
        if low > most or high <= most:
            decided = middle
        else:
            undecided = middle
    return decided


def shift_limits(corrections: Floats, n_all: int, *, level: float = 0.95, n_topics: int | None = None) -> Floats:
    """Half widths of simultaneous intervals of the mean corrections of systems, (n_systems,).

    Bonferroni's t of k complete topics of ``n_all``; ``corrections``: (n_systems, k). ``n_topics``: the half widths
    of so many topics with the present standard deviations, k by default.
    """
    from scipy import special

    n_systems, k = corrections.shape
    n = k if n_topics is None else n_topics
    if n >= n_all:
        return np.zeros(n_systems)
    if k < 2:  # noqa: PLR2004 - a standard deviation
        return np.full(n_systems, np.inf)
    t = special.stdtrit(n - 1, 1 - (1 - level) / (2 * n_systems))
    return np.asarray(t * corrections.std(axis=1, ddof=1) * np.sqrt((1 - n / n_all) / n))


def topics_for_shift(corrections: Floats, n_all: int, most: float, *, level: float = 0.95) -> int:
    """Number of complete topics from which all shifts are shown to be within ``most``, or one to be beyond."""
    shift = np.abs(corrections.mean(axis=1))
    for n in range(corrections.shape[1], n_all):
        half = shift_limits(corrections, n_all, level=level, n_topics=n)
        if (shift + half <= most).all() or (shift - half > most).any():
            return n
    return n_all
