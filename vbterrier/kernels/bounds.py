"""Bounds of nDCG@k for rankings with unjudged documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.gain import cumulative_discounts, discounts, ideal_dcg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


@dataclass(frozen=True, eq=False)
class PartlyJudged:
    """Rankings with unjudged documents and their pools: what every bound starts from, computed once for all bounds.

    A level is the index of a grade, by rising gain. Topics are the first axis; no topic touches another.

    Parameters
    ----------
    levels
        Level of the document at each rank, shape (n, width), -1 for an unjudged document, -2 where there is no document
        (a list shorter than others). Ranks below ``cutoff`` are ignored.
    pool
        Judged documents of each level, shape (n, n_levels), those in the ranking included. A grade that no judged
        document has, but an unjudged one may get, is a column of zeros.
    gain
        The gain of each level, shape (n_levels,), strictly rising from ``gain[0] == 0``.
    top
        The highest level that an unjudged document may get, 0 to n_levels - 1.
    cutoff
        The cutoff k of the ranking and of the ideal one, ``None`` for no cutoff; it may exceed the width of ``levels``.

    Examples
    --------
    The ranking (grade 1, unjudged) over a pool of one document, where grades go up to 3:

    >>> levels, pool = np.array([[1, -1]]), np.array([[0, 1, 0, 0]])
    >>> topics = PartlyJudged(levels, pool, gain=np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)
    >>> topics.n_unjudged, topics.judged_dcg
    (array([1]), array([1.]))
    """

    levels: Ints
    pool: Ints
    gain: Floats
    top: int
    cutoff: int | None

    @cached_property
    def counted(self) -> Ints:
        """The levels down to the cutoff, shape (n, min(k, width))."""
        return self.levels[:, : self.cutoff]

    @cached_property
    def unjudged(self) -> NDArray[np.bool_]:
        """Where an unjudged document stands, the shape of ``counted``."""
        return np.equal(self.counted, -1)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents down to the cutoff, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged, axis=1))

    @cached_property
    def judged_dcg(self) -> Floats:
        """The DCG when every unjudged document gains nothing, shape (n,)."""
        dcg: Floats = self.gain[np.maximum(self.counted, 0)] @ discounts(self.counted.shape[1])
        return dcg

    @cached_property
    def unjudged_discounts(self) -> Floats:
        """``W(x)``, the sum of the x largest discounts at unjudged ranks, shape (n, most unjudged + 1).

        Topics with fewer than x unjudged documents repeat their last value.
        """
        ascending = np.sort(np.where(self.unjudged, discounts(self.counted.shape[1]), 0.0), axis=1)
        most = self.n_unjudged.max(initial=0)
        return np.pad(ascending[:, ::-1][:, :most].cumsum(axis=1), ((0, 0), (1, 0)))

    @cached_property
    def n_at_least(self) -> Ints:
        """``n_l``, the pool documents of level l or higher for l = 1, 2, ..., shape (n, n_levels - 1)."""
        return self.pool[:, :0:-1].cumsum(axis=1)[:, ::-1]

    def dcg(self, n_raised: Ints) -> Floats:
        """DCG when the first ``n_raised[:, l - 1]`` unjudged documents reach level l, shape (n,)."""
        raised: Floats = np.take_along_axis(self.unjudged_discounts, n_raised, axis=1) @ np.diff(self.gain)
        return self.judged_dcg + raised

    def ideal(self, n_top: Ints | int = 0) -> Floats:
        """Ideal DCG when ``n_top`` documents of level ``top`` join the pool, shape (..., n) as that of ``n_top``."""
        joining = np.multiply.outer(n_top, np.arange(len(self.gain)) == self.top)
        return ideal_dcg(self.pool + joining, self.gain, self.cutoff)


def naive_lower(topics: PartlyJudged) -> Floats:
    """Naive lower bound: every unjudged document is non-relevant, as trec_eval has it; no guarantee.

    ``DCG(unjudged = 0) / IDCG(pool)``. The lower bound of the pair inspired by RBP is the same.

    Parameters
    ----------
    topics
        n rankings and their pools; ``top`` plays no part.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1]; 0 where the ideal DCG is 0.

    Notes
    -----
    The truth may be lower: a relevant unjudged document can add more to the ideal DCG than to the DCG.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[2, -1]]), np.array([[0, 0, 1, 1]])
    >>> naive_lower(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.4693])
    """
    return _ratio(topics.judged_dcg, topics.ideal())


def naive_upper(topics: PartlyJudged) -> Floats:
    """Naive upper bound: by rank, unjudged documents get the best judgments left in the pool; no guarantee.

    ``[DCG(unjudged = 0) + Σ_l Δ_l · W(min(u, a_l))] / IDCG(pool)``, where ``a_l`` counts the pool documents of level l
    or higher outside the top k, and ``W(x)`` sums the discounts of the first x of the u unjudged documents.

    Parameters
    ----------
    topics
        n rankings and their pools; ``top`` plays no part.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1]; 0 where the ideal DCG is 0.

    Notes
    -----
    The truth may be higher. The ideal DCG stays that of the pool, so scores of different runs remain comparable.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[2, -1]]), np.array([[0, 0, 1, 1]])
    >>> naive_upper(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.9134])
    """
    layers = np.arange(1, len(topics.gain))
    n_left = topics.n_at_least - np.count_nonzero(topics.counted[:, :, np.newaxis] >= layers, axis=1)
    n_raised = np.minimum(n_left, topics.n_unjudged[:, np.newaxis])
    return _ratio(topics.dcg(n_raised), topics.ideal())


def rbp_upper(topics: PartlyJudged) -> Floats:
    """Upper bound inspired by RBP: unjudged documents are of the top level and join the pool; no guarantee.

    ``[DCG(unjudged = 0) + gain_top · W(u)] / IDCG(pool + u documents of level top)``, where ``W(u)`` sums the discounts
    of the u unjudged documents. The lower bound of this pair is ``naive_lower``.

    Parameters
    ----------
    topics
        n rankings and their pools.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1]; 0 where the ideal DCG is 0.

    Notes
    -----
    The truth may be higher. The ideal DCG becomes the run's own, so scores of different runs are not comparable.
    Source: Fröbe et al. (ECIR 2023), Section 3.3, after the residual of RBP (Moffat and Zobel 2008).

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[1, -1]]), np.array([[0, 1, 0, 0]])
    >>> rbp_upper(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.7967])
    """
    dcg = topics.judged_dcg + topics.gain[topics.top] * topics.unjudged_discounts[:, -1]
    return _ratio(dcg, topics.ideal(topics.n_unjudged))


def guaranteed_lower(topics: PartlyJudged) -> Floats:
    """Guaranteed lower bound: any document of the collection, retrieved or not, may turn out to be of the top level.

    ``DCG(unjudged = 0) / (gain_top · C(k))`` with ``C(k)`` the sum of the first k discounts, however short the list is:
    documents that were not retrieved fill the ideal ranking. Without a cutoff nothing limits it, and the bound is 0.

    Parameters
    ----------
    topics
        n rankings and their pools.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1].

    Notes
    -----
    Pool documents above level ``top``, if any, keep their places in the ideal ranking, ahead of those of the top level.
    Source: Fröbe et al. (ECIR 2023), Section 3.3.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[1, -1]]), np.array([[0, 1, 0, 0]])
    >>> guaranteed_lower(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.2044])
    """
    if topics.cutoff is None:
        return np.zeros(len(topics.levels))
    return _ratio(topics.judged_dcg, topics.ideal(topics.cutoff))


def posthoc_lower(topics: PartlyJudged) -> Floats:
    """Lowest nDCG that any judgments of the retrieved unjudged documents can lead to, exactly.

    ``min_m [DCG(unjudged = 0) + gain_top · (W(u) - W(u - m))] / IDCG(pool + m documents of level top)``, m = 0 to u:
    the m unjudged documents that stand lowest are of the top level, the others non-relevant.

    Parameters
    ----------
    topics
        n rankings and their pools.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1]; 0 where the ideal DCG is 0.

    Notes
    -----
    Levels between 0 and ``top`` cannot lower it further. A document raised into layer l adds the same discount to the
    DCG of every layer, but more to the ideal DCG of higher layers, where ``n_l`` is smaller; so where neighbours differ
    in m, giving both the m of one of them is at least as low. Documents that were not retrieved stay unjudged.
    Memory: n · u · n_levels numbers. Source: the question of Fröbe et al. (ECIR 2023), Section 3.3, without relevant
    documents beyond the ranking; the paper has no such bound.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[1, -1]]), np.array([[0, 1, 0, 0]])
    >>> posthoc_lower(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.7967])
    """
    highest = topics.unjudged_discounts.T  # by number of non-relevant documents u - m; past u it repeats m = 0
    n_top = np.maximum(topics.n_unjudged - np.arange(len(highest))[:, np.newaxis], 0)
    dcg = topics.judged_dcg + topics.gain[topics.top] * (highest[-1] - highest)
    lowest: Floats = _ratio(dcg, topics.ideal(n_top)).min(axis=0)
    return lowest


def guaranteed_upper(topics: PartlyJudged) -> Floats:
    """Highest nDCG that any judgments of the unjudged documents can lead to, exactly.

    ``max [DCG(unjudged = 0) + Σ_l Δ_l · W(x_l)] / Σ_l Δ_l · C(min(k, n_l + x_l))`` over ``u >= x_1 >= ... >= x_top``,
    the numbers of unjudged documents of level l or higher (0 above ``top``). ``n_l`` counts those of the pool; ``W(x)``
    sums the discounts of the first x unjudged documents, ``C(n)`` the first n discounts.

    Parameters
    ----------
    topics
        n rankings and their pools.

    Returns
    -------
    numpy.ndarray
        Shape (n,), in [0, 1]; 0 where no judgments give an ideal DCG above 0.

    Notes
    -----
    Relevant documents that were not retrieved only raise the ideal DCG, so the bound holds with them, too. The ideal
    DCG is the run's own, so scores of different runs are not comparable. Cost and memory: n · u · n_levels a step.
    Source: Fröbe et al. (ECIR 2023), Section 3.3, says only that this bound is "more complicated". Here: the fractional
    programming of Dinkelbach (Management Science 13, 1967), each step of it solved layer by layer.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[2, -1]]), np.array([[0, 0, 1, 1]])
    >>> guaranteed_upper(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2)).round(4)
    array([0.7956])
    """
    return _highest(topics)[0]


def guaranteed_upper_levels(topics: PartlyJudged) -> Ints:
    """Judgments that lead to ``guaranteed_upper``: the levels down to the cutoff, no document left unjudged.

    With ``x_l`` from the formula there, the i-th unjudged document gets level ``|{l : i <= x_l}|``.

    Parameters
    ----------
    topics
        n rankings and their pools.

    Returns
    -------
    numpy.ndarray
        Shape (n, min(k, width)), -2 where there is no document. Of several best judgments it is one.

    Notes
    -----
    Source: as ``guaranteed_upper``.

    Examples
    --------
    >>> from vbterrier.kernels.bounds import PartlyJudged
    >>> levels, pool = np.array([[-1, 3]]), np.array([[0, 0, 1, 1]])
    >>> guaranteed_upper_levels(PartlyJudged(levels, pool, np.array([0.0, 1.0, 2.0, 3.0]), top=3, cutoff=2))
    array([[3, 3]])
    """
    n_raised = _highest(topics)[1]
    place = topics.unjudged.cumsum(axis=1)
    raised = np.count_nonzero(place[:, :, np.newaxis] <= n_raised[:, np.newaxis, :], axis=2)
    return np.where(topics.unjudged, raised, topics.counted)


def _highest(topics: PartlyJudged) -> tuple[Floats, Ints]:
    """Highest nDCG, shape (n,), and the ``x_l`` that attain it, shape (n, n_levels - 1).

    Given a ratio λ, the best ``x_l`` maximises ``W(x) - λ · C(min(k, n_l + x))`` in each layer alone. They fall with l
    by themselves, as ``n_l`` does: C flattens, so the layer with more pool documents pays less for one more.
    """
    ideal = _ideal_layers(topics)
    ratio, n_raised = np.zeros(len(ideal)), np.zeros(ideal.shape[:2], dtype=np.int64)
    while True:
        surplus = topics.unjudged_discounts[:, np.newaxis, :] - ratio[:, np.newaxis, np.newaxis] * ideal
        best = surplus.argmax(axis=2)
        best[:, topics.top :] = 0
        at_best = np.take_along_axis(ideal, best[:, :, np.newaxis], axis=2)[:, :, 0]
        candidate = _ratio(topics.dcg(best), at_best @ np.diff(topics.gain))
        better = candidate > ratio + 1e-13  # more than rounding; and a tie may be 0/0, over an empty pool at λ = 1
        if not better.any():
            return ratio, n_raised
        ratio, n_raised = np.where(better, candidate, ratio), np.where(better[:, np.newaxis], best, n_raised)


def _ideal_layers(topics: PartlyJudged) -> Floats:
    """``C(min(k, n_l + x))`` for x = 0 to the most unjudged documents, shape (n, n_levels - 1, most unjudged + 1)."""
    n_ideal = topics.n_at_least[:, :, np.newaxis] + np.arange(topics.unjudged_discounts.shape[1])
    if topics.cutoff is not None:
        n_ideal = np.minimum(n_ideal, topics.cutoff)
    layers: Floats = cumulative_discounts(int(n_ideal.max(initial=0)))[n_ideal]
    return layers


def _ratio(dcg: Floats, ideal: Floats) -> Floats:
    """``dcg / ideal``, and 0 where the ideal is 0: a pool in which nothing gains."""
    ratio: Floats = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
    return ratio
