"""Bounds of nDCG@k for rankings with unjudged documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.rankings import cumulative_discounts, discounts, ideal_dcg, weighted_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


@dataclass(frozen=True, eq=False)
class PartlyJudged:
    """Rankings with unjudged documents and their pools, with intermediate results that all bounds share.

    A level is the index of a grade, by increasing gain. Topics are the first axis and are independent.

    - ``levels``: level of the document at each rank, shape (n, width), -1 for an unjudged document, -2 for no document
      (in shorter lists). Ranks below ``cutoff`` are ignored
    - ``pool``: judged documents of each level, including those in the ranking, shape (n, n_levels). Unused grades that
      an unjudged document may have are columns of zeros
    - ``gain``: the gain of each level, shape (n_levels,), strictly increasing from ``gain[0] == 0``
    - ``top``: the highest possible level of an unjudged document, 0 to n_levels - 1
    - ``cutoff``: the cutoff k of the ranking and of the ideal ranking, ``None`` for no cutoff; it may exceed the width
      of ``levels``
    """

    levels: Ints
    pool: Ints
    gain: Floats
    top: int
    cutoff: int | None

    @cached_property
    def cutoff_levels(self) -> Ints:
        """The levels up to the cutoff, shape (n, min(k, width))."""
        return self.levels[:, : self.cutoff]

    @cached_property
    def unjudged_mask(self) -> NDArray[np.bool_]:
        """A mask of unjudged documents, the shape of ``counted``."""
        return np.equal(self.cutoff_levels, -1)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Number of unjudged documents up to the cutoff, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged_mask, axis=1))

    @cached_property
    def judged_dcg(self) -> Floats:
        """The DCG if all unjudged documents have gain 0, shape (n,)."""
        dcg: Floats = weighted_sums(
            self.gain[np.maximum(self.cutoff_levels, 0)], discounts(self.cutoff_levels.shape[1])
        )
        return dcg

    @cached_property
    def unjudged_discounts(self) -> Floats:
        """``W(x)``, the sum of the x largest discounts at unjudged ranks, shape (n, most unjudged + 1).

        Topics with fewer than x unjudged documents repeat their last value.
        """
        ascending = np.sort(np.where(self.unjudged_mask, discounts(self.cutoff_levels.shape[1]), 0.0), axis=1)
        most = self.n_unjudged.max(initial=0)
        return np.pad(ascending[:, ::-1][:, :most].cumsum(axis=1), ((0, 0), (1, 0)))

    @cached_property
    def n_at_least(self) -> Ints:
        """``n_l``, the number of pool documents of level l or higher for l = 1, 2, ..., shape (n, n_levels - 1)."""
        return self.pool[:, :0:-1].cumsum(axis=1)[:, ::-1]

    def dcg(self, n_raised: Ints) -> Floats:
        """DCG if the first ``n_raised[:, l - 1]`` unjudged documents have level l or higher, shape (n,)."""
        n_steps = np.take_along_axis(self.unjudged_discounts, n_raised, axis=1)
        raised = weighted_sums(n_steps, np.diff(self.gain))
        return self.judged_dcg + raised

    def ideal(self, n_top: Ints | int = 0) -> Floats:
        """Ideal DCG with ``n_top`` additional documents of level ``top``, shape (..., n) like ``n_top``."""
        joining = np.multiply.outer(n_top, np.arange(len(self.gain)) == self.top)
        return ideal_dcg(self.pool + joining, self.gain, self.cutoff)


def naive_lower(topics: PartlyJudged) -> Floats:
    """Naive lower bound: all unjudged documents are non-relevant, as in trec_eval; not guaranteed.

    ``DCG(unjudged = 0) / IDCG(pool)``. It is also the lower bound of the pair inspired by RBP.

    Returns shape (n,), in [0, 1]; 0 if the ideal DCG is 0.

    The score under complete judgments may be lower: a relevant unjudged document can increase the ideal DCG more than
    the DCG.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.
    """
    return _ratio(topics.judged_dcg, topics.ideal())


def naive_upper(topics: PartlyJudged) -> Floats:
    """Naive upper bound: unjudged documents get the best judgments left in the pool, by rank; not guaranteed.

    ``[DCG(unjudged = 0) + Σ_l Δ_l · W(min(u, a_l))] / IDCG(pool)``, where ``a_l`` counts the pool documents of level l
    or higher outside the top k, and ``W(x)`` sums the discounts of the first x of the u unjudged documents.

    Returns shape (n,), in [0, 1]; 0 if the ideal DCG is 0.

    The score under complete judgments may be higher. The ideal DCG is that of the pool, so scores of different runs
    are comparable.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.
    """
    layers = np.arange(1, len(topics.gain))
    n_left = topics.n_at_least - np.count_nonzero(topics.cutoff_levels[:, :, np.newaxis] >= layers, axis=1)
    n_raised = np.minimum(n_left, topics.n_unjudged[:, np.newaxis])
    return _ratio(topics.dcg(n_raised), topics.ideal())


def rbp_upper(topics: PartlyJudged) -> Floats:
    """Upper bound inspired by RBP: unjudged documents have the top level and are added to the pool; not guaranteed.

    ``[DCG(unjudged = 0) + gain_top · W(u)] / IDCG(pool + u documents of level top)``, where ``W(u)`` sums the discounts
    of the u unjudged documents. The lower bound of this pair is ``naive_lower``.

    Returns shape (n,), in [0, 1]; 0 if the ideal DCG is 0.

    The score under complete judgments may be higher. The ideal DCG depends on the run, so scores of different runs are
    not comparable.
    Source: Fröbe et al. (ECIR 2023), Section 3.3, after the residual of RBP (Moffat and Zobel 2008).
    """
    dcg = topics.judged_dcg + topics.gain[topics.top] * topics.unjudged_discounts[:, -1]
    return _ratio(dcg, topics.ideal(topics.n_unjudged))


def guaranteed_lower(topics: PartlyJudged) -> Floats:
    """Guaranteed lower bound: any document of the collection, retrieved or not, may have the top level.

    ``DCG(unjudged = 0) / (gain_top · C(k))`` with ``C(k)`` the sum of the first k discounts, also for shorter lists,
    because documents that were not retrieved fill the ideal ranking. Without a cutoff the bound is 0.

    Returns shape (n,), in [0, 1].

    Pool documents above level ``top``, if any, precede those of the top level in the ideal ranking.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.
    """
    if topics.cutoff is None:
        return np.zeros(len(topics.levels))
    return _ratio(topics.judged_dcg, topics.ideal(topics.cutoff))


def posthoc_lower(topics: PartlyJudged) -> Floats:
    """The minimum of nDCG over all judgments of the retrieved unjudged documents.

    ``min_m [DCG(unjudged = 0) + gain_top · (W(u) - W(u - m))] / IDCG(pool + m documents of level top)``, m = 0 to u:
    the m lowest-ranked unjudged documents have the top level, the other ones are non-relevant.

    Returns shape (n,), in [0, 1]; 0 if the ideal DCG is 0.

    Levels between 0 and ``top`` cannot lower the minimum. A document raised into layer l adds the same discount to the
    DCG of every layer, but more to the ideal DCG of higher layers, where ``n_l`` is smaller; if adjacent layers differ
    in m, using the m of one of them for both gives a value that is at least as low. Documents that were not retrieved
    stay unjudged. Memory: n · u · n_levels numbers. Source: the problem of Fröbe et al. (ECIR 2023), Section 3.3,
    without relevant documents beyond the ranking; the paper has no such bound.
    """
    highest = topics.unjudged_discounts.T  # by number of non-relevant documents u - m; beyond u it repeats m = 0
    n_top = np.maximum(topics.n_unjudged - np.arange(len(highest))[:, np.newaxis], 0)
    dcg = topics.judged_dcg + topics.gain[topics.top] * (highest[-1] - highest)
    lowest: Floats = _ratio(dcg, topics.ideal(n_top)).min(axis=0)
    return lowest


def guaranteed_upper(topics: PartlyJudged) -> Floats:
    """The maximum of nDCG over all judgments of the unjudged documents.

    ``max [DCG(unjudged = 0) + Σ_l Δ_l · W(x_l)] / Σ_l Δ_l · C(min(k, n_l + x_l))`` over ``u >= x_1 >= ... >= x_top``,
    the numbers of unjudged documents of level l or higher (0 above ``top``). ``n_l`` counts those of the pool; ``W(x)``
    sums the discounts of the first x unjudged documents, ``C(n)`` the first n discounts.

    Returns shape (n,), in [0, 1]; 0 if no judgments give an ideal DCG above 0.

    Relevant documents that were not retrieved only increase the ideal DCG, so the bound includes them. The ideal DCG
    depends on the run, so scores of different runs are not comparable. Cost and memory: n · u · n_levels per iteration.
    Fröbe et al. (ECIR 2023), Section 3.3, state only that this bound is "more complicated". It is computed by the
    fractional programming of Dinkelbach (Management Science 13, 1967); each iteration is solved layer by layer.
    """
    # Given a ratio λ, the best x_l maximises W(x) - λ · C(min(k, n_l + x)) separately in each layer. The solution
    # decreases with l as required, because C is concave and n_l decreases with l.
    # C(min(k, n_l + x)) for x = 0 to the most unjudged documents, shape (n, n_levels - 1, most unjudged + 1).
    n_ideal = topics.n_at_least[:, :, np.newaxis] + np.arange(topics.unjudged_discounts.shape[1])
    if topics.cutoff is not None:
        n_ideal = np.minimum(n_ideal, topics.cutoff)
    ideal: Floats = cumulative_discounts(int(n_ideal.max(initial=0)))[n_ideal]
    ratio = np.zeros(len(ideal))
    while True:
        surplus = topics.unjudged_discounts[:, np.newaxis, :] - ratio[:, np.newaxis, np.newaxis] * ideal
        best = surplus.argmax(axis=2)
        best[:, topics.top :] = 0
        at_best = np.take_along_axis(ideal, best[:, :, np.newaxis], axis=2)[:, :, 0]
        candidate = _ratio(topics.dcg(best), weighted_sums(at_best, np.diff(topics.gain)))
        # More than rounding; with an empty pool at λ = 1 a tie may be 0/0.
        better = candidate > ratio + 1e-13
        if not better.any():
            return ratio
        ratio = np.where(better, candidate, ratio)


def _ratio(dcg: Floats, ideal: Floats) -> Floats:
    """``dcg / ideal``, or 0 if the ideal is 0."""
    ratio: Floats = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
    return ratio
