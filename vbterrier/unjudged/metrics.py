"""Metrics of partly judged rankings as functions of the grades of unjudged documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from vbterrier.errors import ParameterError, choice, whole
from vbterrier.kernels.gain import average_precision, discounts, err, ideal_dcg, q_measure, ranks, rbp_weights
from vbterrier.kernels.grades.model import Increments
from vbterrier.unjudged.pool import grade_gains

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Floats, Ints
    from vbterrier.unjudged.pool import JudgedTop


def cumulative_increments(
    judged: JudgedTop, visits: Ints, relevant: Floats, worth: Floats, weight: Floats
) -> Increments:
    """``Σ_r I(r) w_r Σ_{i<=r} h_i``: average precision and the Q-measure.

    Parameters
    ----------
    judged, visits
        The cut run, and the places of its unjudged documents in the order of the ranking.
    relevant, worth
        I and h of each level, shape (L,).
    weight
        w of each rank, shape (n, width).
    """
    is_relevant, so_far = at(relevant, judged.levels), np.cumsum(at(worth, judged.levels), axis=1)
    behind = _behind(judged, is_relevant * weight * so_far)
    lasting = _behind(judged, is_relevant * weight)
    own = np.take_along_axis(weight, visits, axis=1)
    alone = own * np.take_along_axis(so_far, visits, axis=1)
    return Increments(behind[:, 0], alone, own, behind[:, 1:], lasting[:, 1:], lambda n: (n @ relevant, n @ worth))


def cascade_increments(judged: JudgedTop, visits: Ints, stops: Floats) -> Increments:
    """``Σ_r (1/r) s_r Π_{i<r} (1 - s_i)``: expected reciprocal rank.

    What an unjudged document adds is ``1/r`` of the share of users who stop there: the fall of those who go on.

    Parameters
    ----------
    judged, visits
        As in :func:`cumulative_increments`.
    stops
        s of each level, shape (L,), below 1.
    """
    stop = at(stops, judged.levels)
    reaches = np.cumprod(1.0 - stop, axis=1) / (1.0 - stop)
    share = reaches / ranks(stop.shape[1])
    lasting = _behind(judged, stop * share)
    alone = -np.take_along_axis(share, visits, axis=1)
    nothing = np.zeros_like(alone)

    def seen(landed: Ints) -> tuple[Floats, Floats]:
        goes_on: Floats = ((1.0 - stops) ** landed).prod(axis=-1)
        return goes_on, goes_on

    return Increments(lasting[:, 0], alone, nothing, nothing, lasting[:, 1:], seen)


def at(gain: Floats, levels: Ints) -> Floats:
    """The gain at each rank; levels -1 and -2 gain nothing."""
    found: Floats = np.append(gain, [0.0, 0.0])[levels]
    return found


def _behind(judged: JudgedTop, terms: Floats) -> Floats:
    """Sums of terms before the first unjudged document and from each to the next, shape (n, most unjudged + 1)."""
    n, width = len(terms), int(judged.n_unjudged.max(initial=0)) + 1
    cell = np.arange(n)[:, None] * width + np.cumsum(judged.unjudged, axis=1)
    sums: Floats = np.bincount(cell.ravel(), terms.ravel(), minlength=n * width).astype(np.float64)
    return sums.reshape(n, width)


DCG = ("log2", "exp-log2")
# The highest grade of TREC's web tracks, which gdeval takes for granted.
WEB_GRADE = 4
# Beyond, 2^-grade is lost beside 1.
MOST_GRADE = 50


@dataclass(frozen=True, eq=False)
class Parts:
    """A score, taken apart.

    Parameters
    ----------
    gain
        Gain of each grade, shape (L,), not falling, from 0.
    unit
        Score of one unit of gain at each rank, shape (n, width); 0 where the score is no sum over ranks.
    score
        For scores that are no sum over ranks: of levels (places among the grades; below 0 no document) of shape
        (m, width) and the place of their topic, scores of shape (m,). ``None`` for
        ``score = Σ_rank unit · gain[level]``.
    steps
        Of the places of unjudged documents, shape (n, u), in the order of the ranking, the same score as what each of
        them adds; ``None`` for a sum over ranks, and where nobody worked it out.
    """

    gain: Floats
    unit: Floats
    score: Callable[[Ints, int], Floats] | None = None
    increments: Callable[[Ints], Increments] | None = None


class Metric(Protocol):
    """What every metric has."""

    name: ClassVar[str]

    def parts(self, judged: JudgedTop) -> Parts:
        """The score of rankings over this pool."""


@dataclass(frozen=True)
class NDCG:
    """``nDCG@k = Σ_r gain_r / log2(r + 1) / IDCG@k(pool)``, 0 where no document is relevant (trec_eval).

    Parameters
    ----------
    dcg
        ``"log2"``: the gain is the grade; ``"exp-log2"``: ``2^grade - 1``.

    Raises
    ------
    ParameterError
        Another ``dcg``.
    """

    name: ClassVar[str] = "nDCG"
    dcg: str = "log2"

    def __post_init__(self) -> None:
        choice("dcg", self.dcg, DCG)

    def parts(self, judged: JudgedTop) -> Parts:
        """Discounts over the pool's ideal."""
        gain = grade_gains(judged, self.dcg)
        ideal = ideal_dcg(judged.judgments.counts, gain, judged.depth)
        return Parts(gain, discounts(judged.levels.shape[1]) / np.where(ideal > 0, ideal, np.inf)[:, None])


@dataclass(frozen=True)
class RBP:
    """``RBP@k = (1 - p) Σ_r p^(r-1) gain_r`` with gains in [0, 1] (Moffat and Zobel, TOIS 2008).

    Parameters
    ----------
    p
        Persistence, in [0, 1).
    rel
        The lowest grade that gains 1, all below gaining nothing; 0 for graded gains, ``grade / max_grade``.
    max_grade
        The grade that gains 1 where gains are graded; ``None`` for the highest of the qrels.

    Raises
    ------
    ParameterError
        A number outside its range; ``max_grade`` below a grade of the qrels.
    """

    name: ClassVar[str] = "RBP"
    p: float = 0.8
    rel: int = 0
    max_grade: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise ParameterError(f"p={self.p!r}: wanted a number from 0 to below 1")
        whole("rel", self.rel, low=0)
        if self.max_grade is not None:
            whole("max_grade", self.max_grade)

    def parts(self, judged: JudgedTop) -> Parts:
        """Geometric weights."""
        weights = rbp_weights(judged.levels.shape[1], self.p)
        return Parts(self._gain(judged), np.broadcast_to(weights, judged.levels.shape))

    def _gain(self, judged: JudgedTop) -> Floats:
        if self.rel:
            return _binary(judged, self.rel)
        top = _highest(judged) if self.max_grade is None else self.max_grade
        _check_top(judged, top)
        return judged.judgments.grades / max(top, 1)


@dataclass(frozen=True)
class Precision:
    """``P@k = relevant documents in the first k / k`` (trec_eval: shorter lists are divided by k too).

    Parameters
    ----------
    rel
        The lowest grade that counts as relevant.

    Raises
    ------
    ParameterError
        ``rel`` below 1; no cutoff.
    """

    name: ClassVar[str] = "P"
    rel: int = 1

    def __post_init__(self) -> None:
        whole("rel", self.rel)

    def parts(self, judged: JudgedTop) -> Parts:
        """Equal weights."""
        if judged.depth is None:
            raise ParameterError("precision needs a cutoff, as in BP@10")
        return Parts(_binary(judged, self.rel), np.full(judged.levels.shape, 1.0 / judged.depth))


@dataclass(frozen=True)
class AP:
    """``AP@k = (1/R) Σ_{r<=k} I(r) P@r`` with R relevant documents in the pool, 0 where there is none (trec_eval).

    Parameters
    ----------
    rel
        The lowest grade that counts as relevant.

    Raises
    ------
    ParameterError
        ``rel`` below 1.
    """

    name: ClassVar[str] = "AP"
    rel: int = 1

    def __post_init__(self) -> None:
        whole("rel", self.rel)

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        gain = _binary(judged, self.rel)
        n_relevant = judged.judgments.counts @ gain.astype(np.int64)

        def score(levels: Ints, topic: int) -> Floats:
            return average_precision(at(gain, levels), n_relevant[topic])

        weight = 1.0 / (ranks(judged.levels.shape[1]) * np.maximum(n_relevant, 1)[:, None])
        return Parts(
            gain, _nothing(judged), score, lambda visits: cumulative_increments(judged, visits, gain, gain, weight)
        )


@dataclass(frozen=True)
class ERR:
    """``ERR@k = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)``, ``s = (2^grade - 1) / 2^max_grade`` (Chapelle et al., CIKM 2009).

    Parameters
    ----------
    max_grade
        The highest grade there can be; 4, that of TREC's web tracks and of gdeval, unless given.

    Raises
    ------
    ParameterError
        ``max_grade`` that is none, or below a grade of the qrels.
    """

    name: ClassVar[str] = "ERR"
    max_grade: int = WEB_GRADE

    def __post_init__(self) -> None:
        whole("max_grade", self.max_grade, high=MOST_GRADE)

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        _check_top(judged, self.max_grade)
        gain = (np.exp2(judged.judgments.grades) - 1.0) / 2.0**self.max_grade

        def score(levels: Ints, _: int) -> Floats:
            return err(at(gain, levels))

        return Parts(gain, _nothing(judged), score, lambda visits: cascade_increments(judged, visits, gain))


@dataclass(frozen=True)
class Q:
    """``Q@k = 1/min(k, R) Σ_{r<=k} I(r) (C(r) + β cg(r)) / (r + β cg*(r))`` (Sakai, AIRS 2004; cutoff as NTCIREVAL).

    Gains are grades; C(r) counts relevant documents in the first r, cg(r) and cg*(r) are the cumulative gains of the
    ranking and of the pool's ideal; 0 where the pool has no relevant document (R = 0).

    Parameters
    ----------
    beta
        How much gains count beside ranks, at least 0.

    Raises
    ------
    ParameterError
        ``beta`` below 0 or not finite.
    """

    name: ClassVar[str] = "Q"
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.beta < np.inf:
            raise ParameterError(f"beta={self.beta!r}: wanted a number of at least 0")

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        gain = grade_gains(judged, "log2")
        # Documents of each relevant grade or a higher one.
        at_least = np.cumsum(judged.judgments.counts[:, :0:-1], axis=1)[:, ::-1]
        n_relevant = at_least.max(axis=1, initial=0)
        if judged.depth is not None:
            n_relevant = np.minimum(n_relevant, judged.depth)

        rank = ranks(judged.levels.shape[1])
        ideal = np.zeros(judged.levels.shape)
        for n_documents, rise in zip(at_least.T, np.diff(gain), strict=True):
            ideal += np.minimum(rank, n_documents[:, None]) * rise

        def score(levels: Ints, topic: int) -> Floats:
            return q_measure(at(gain, levels), ideal[topic], n_relevant[topic], self.beta)

        relevant = (gain > 0).astype(np.float64)
        worth = relevant + self.beta * gain
        weight = 1.0 / ((rank + self.beta * ideal) * np.maximum(n_relevant, 1)[:, None])
        return Parts(
            gain, _nothing(judged), score, lambda visits: cumulative_increments(judged, visits, relevant, worth, weight)
        )


def _binary(judged: JudgedTop, rel: int) -> Floats:
    return (judged.judgments.grades >= rel).astype(np.float64)


def _nothing(judged: JudgedTop) -> Floats:
    return np.zeros(judged.levels.shape)


def _highest(judged: JudgedTop) -> int:
    """The highest grade that a document has: with ``compat`` there are places for grades that none has."""
    given = judged.judgments.counts.any(axis=0)
    return int(judged.judgments.grades[given].max(initial=0))


def _check_top(judged: JudgedTop, top: int) -> None:
    if top < _highest(judged):
        name = judged.judgments.name
        raise ParameterError(f"max_grade={top}: {name} hold grade {_highest(judged)}; give at least that")
