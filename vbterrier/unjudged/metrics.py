"""Metrics of partly judged rankings as functions of the grades of unjudged documents."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from vbterrier.errors import ParameterError, choice, whole
from vbterrier.kernels.grades.model import Increments
from vbterrier.kernels.rankings import (
    average_precision,
    discounts,
    err,
    ideal_dcg,
    ndcg,
    q_measure,
    ranks,
    rbp_weights,
    weighted_sums,
)
from vbterrier.unjudged.pool import grade_gains

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Floats, Ints
    from vbterrier.unjudged.pool import JudgedTop


DCG = ("log2", "exp-log2")
# The highest grade of TREC's web tracks, assumed by gdeval.
WEB_GRADE = 4
# For larger grades, 2^-grade is below the precision of 1.
MOST_GRADE = 50


@dataclass(frozen=True, eq=False)
class Parts:
    """The components of a score."""

    # Gain of each grade, shape (L,), non-decreasing from 0.
    gain: Floats
    # Score of one unit of gain at each rank, shape (n, width); 0 if the score is not a sum over ranks.
    unit: Floats
    # Scores, shape (m,), of levels (positions of grades; below 0 for no document), shape (m, width), and the position
    # of their topic; None for ``Σ_rank unit · gain[level]``.
    score: Callable[[Ints, int], Floats] | None = None
    # The score as a sum of increments, by the ranks of unjudged documents, shape (n, u), in increasing order.
    increments: Callable[[Ints], Increments] | None = None


class _OfJudged:
    """The score of the judged documents of a ranking, and of metrics that are no sums over ranks."""

    def terms(self, judged: JudgedTop) -> tuple[Floats, Floats] | None:
        """Return the gain of each level and the weight of each rank, None for other metrics than sums over ranks."""

    def norm(self, _: JudgedTop, counts: Ints) -> Floats:
        """Return the divisor of the sum over ranks under given pools, shape (..., L)."""
        return np.ones(counts.shape[:-1])

    def of_judged(self, judged: JudgedTop) -> Floats:
        """Return the scores of rankings whose unjudged documents have gain 0, shape (n,)."""
        scores: Floats = self.scores(judged, judged.levels, judged.judgments.counts)  # type: ignore[attr-defined]
        return scores


class Metric(Protocol):
    """The interface of a metric."""

    name: ClassVar[str]
    # True if the score is relative to an ideal ranking, or to the number of relevant documents.
    has_ideal: ClassVar[bool]

    def parts(self, judged: JudgedTop) -> Parts:
        """Return the components of the score of judged rankings."""

    def scores(self, judged: JudgedTop, levels: Ints, counts: Ints) -> Floats:
        """Return the scores of rankings under given levels, shape (..., width), and pools, shape (..., L)."""

    def of_judged(self, judged: JudgedTop) -> Floats:
        """Return the scores of rankings whose unjudged documents have gain 0, shape (n,)."""

    def terms(self, judged: JudgedTop) -> tuple[Floats, Floats] | None:
        """Return the gain of each level and the weight of each rank, None for other metrics than sums over ranks."""

    def norm(self, judged: JudgedTop, counts: Ints) -> Floats:
        """Return the divisor of the sum over ranks under given pools, shape (..., L)."""


def metric_text(metric: Metric) -> str:
    """The name of a metric with the parameters that are not the default, as ``RBP(p=0.95)``."""
    parameters: tuple[Field[Any], ...] = fields(metric) if is_dataclass(metric) else ()
    options = [f"{one.name}={value!r}" for one in parameters if (value := getattr(metric, one.name)) != one.default]
    return metric.name + f"({','.join(options)})" * bool(options)


@dataclass(frozen=True)
class NDCG(_OfJudged):
    """``nDCG@k = Σ_r gain_r / log2(r + 1) / IDCG@k(pool)``, 0 without a relevant document (trec_eval).

    - ``dcg``: ``"log2"``: the gain is the grade; ``"exp-log2"``: ``2^grade - 1``
    """

    name: ClassVar[str] = "nDCG"
    has_ideal: ClassVar[bool] = True
    dcg: str = "log2"

    def __post_init__(self) -> None:
        choice("dcg", self.dcg, DCG)

    def parts(self, judged: JudgedTop) -> Parts:
        """Discounts divided by the ideal DCG of the pool."""
        unit = discounts(judged.levels.shape[1]) / self.norm(judged, judged.judgments.counts)[:, None]
        return Parts(grade_gains(judged, self.dcg), unit)

    def scores(self, judged: JudgedTop, levels: Ints, counts: Ints) -> Floats:
        """DCG divided by the ideal DCG of the pools."""
        dcg = weighted_sums(at(grade_gains(judged, self.dcg), levels), discounts(levels.shape[-1]))
        return np.asarray(dcg / self.norm(judged, counts))

    def terms(self, judged: JudgedTop) -> tuple[Floats, Floats]:
        """Gains and discounts."""
        return grade_gains(judged, self.dcg), discounts(judged.levels.shape[1])

    def norm(self, judged: JudgedTop, counts: Ints) -> Floats:
        """The ideal DCG of the pools, infinite without a relevant document."""
        ideal = ideal_dcg(counts, grade_gains(judged, self.dcg), judged.cutoff)
        return np.where(ideal > 0, ideal, np.inf)

    def of_judged(self, judged: JudgedTop) -> Floats:
        """NDCG as trec_eval adds it up, to the last bit."""
        gain = grade_gains(judged, self.dcg)
        return ndcg(at(gain, judged.levels), judged.judgments.counts, gain, judged.cutoff)


@dataclass(frozen=True)
class RBP(_OfJudged):
    """``RBP@k = (1 - p) Σ_r p^(r-1) gain_r`` with gains in [0, 1] and persistence p < 1 (Moffat and Zobel, TOIS 2008).

    Grades from ``rel`` on have gain 1, lower ones 0; with ``rel=0`` the gain is ``grade / max_grade``, by default of
    the highest grade of the qrels.
    """

    name: ClassVar[str] = "RBP"
    has_ideal: ClassVar[bool] = False
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
        weights = np.broadcast_to(rbp_weights(judged.levels.shape[1], self.p), judged.levels.shape)
        return Parts(self._gain(judged), weights)

    def scores(self, judged: JudgedTop, levels: Ints, _: Ints) -> Floats:
        """Weighted gains."""
        return weighted_sums(at(self._gain(judged), levels), rbp_weights(levels.shape[-1], self.p))

    def terms(self, judged: JudgedTop) -> tuple[Floats, Floats]:
        """Gains and geometric weights."""
        return self._gain(judged), rbp_weights(judged.levels.shape[1], self.p)

    def _gain(self, judged: JudgedTop) -> Floats:
        if self.rel:
            return _binary(judged, self.rel)
        top = _highest(judged) if self.max_grade is None else self.max_grade
        _check_top(judged, top)
        return np.asarray(judged.judgments.grades / max(top, 1))


@dataclass(frozen=True)
class Precision(_OfJudged):
    """``P@k = relevant documents in the first k / k``, also for shorter lists (trec_eval).

    ``rel`` is the lowest grade that counts as relevant.
    """

    name: ClassVar[str] = "P"
    has_ideal: ClassVar[bool] = False
    rel: int = 1

    def __post_init__(self) -> None:
        whole("rel", self.rel)

    def parts(self, judged: JudgedTop) -> Parts:
        """Equal weights."""
        if judged.cutoff is None:
            raise ParameterError("precision needs a cutoff; add one, as in BP@10")
        return Parts(_binary(judged, self.rel), np.full(judged.levels.shape, 1.0 / judged.cutoff))

    def scores(self, judged: JudgedTop, levels: Ints, _: Ints) -> Floats:
        """Means of binary gains."""
        gain, weights = self.terms(judged)
        return weighted_sums(at(gain, levels), weights)

    def terms(self, judged: JudgedTop) -> tuple[Floats, Floats]:
        """Binary gains and equal weights."""
        parts = self.parts(judged)
        return parts.gain, parts.unit[0]


@dataclass(frozen=True)
class AP(_OfJudged):
    """``AP@k = (1/R) Σ_{r<=k} I(r) P@r`` with R relevant documents in the pool, 0 if R = 0 (trec_eval).

    ``rel`` is the lowest grade that counts as relevant.
    """

    name: ClassVar[str] = "AP"
    has_ideal: ClassVar[bool] = True
    rel: int = 1

    def __post_init__(self) -> None:
        whole("rel", self.rel)

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        gain = _binary(judged, self.rel)
        n_relevant = judged.judgments.counts @ gain.astype(np.int64)
        weight = 1.0 / (ranks(judged.levels.shape[1]) * np.maximum(n_relevant, 1)[:, None])
        return Parts(
            gain,
            np.zeros(judged.levels.shape),
            lambda levels, topic: self.scores(judged, levels, judged.judgments.counts[topic]),
            lambda visits: cumulative_increments(judged, visits, gain, gain, weight),
        )

    def scores(self, judged: JudgedTop, levels: Ints, counts: Ints) -> Floats:
        """Average precision with the relevant documents of the pools."""
        gain = _binary(judged, self.rel)
        return average_precision(at(gain, levels), counts @ gain.astype(np.int64))


@dataclass(frozen=True)
class ERR(_OfJudged):
    """``ERR@k = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)``, ``s = (2^grade - 1) / 2^max_grade`` (Chapelle et al., CIKM 2009).

    ``max_grade`` is the highest possible grade, by default 4 as for TREC's web tracks and gdeval.
    """

    name: ClassVar[str] = "ERR"
    has_ideal: ClassVar[bool] = False
    max_grade: int = WEB_GRADE

    def __post_init__(self) -> None:
        whole("max_grade", self.max_grade, high=MOST_GRADE)

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        gain = self._gain(judged)
        return Parts(
            gain,
            np.zeros(judged.levels.shape),
            lambda levels, _: err(at(gain, levels)),
            lambda visits: cascade_increments(judged, visits, gain),
        )

    def scores(self, judged: JudgedTop, levels: Ints, _: Ints) -> Floats:
        """Expected reciprocal ranks."""
        return err(at(self._gain(judged), levels))

    def _gain(self, judged: JudgedTop) -> Floats:
        _check_top(judged, self.max_grade)
        return np.asarray((np.exp2(judged.judgments.grades) - 1.0) / 2.0**self.max_grade)


@dataclass(frozen=True)
class Q(_OfJudged):
    """``Q@k = 1/min(k, R) Σ_{r<=k} I(r) (C(r) + β cg(r)) / (r + β cg*(r))`` (Sakai, AIRS 2004; cutoff as NTCIREVAL).

    Gains are grades; C(r) counts relevant documents in the first r, cg(r) and cg*(r) are the cumulative gains of the
    ranking and of the ideal ranking of the pool, and β >= 0 is their weight relative to ranks. Q is 0 if the pool has
    no relevant document (R = 0).
    """

    name: ClassVar[str] = "Q"
    has_ideal: ClassVar[bool] = True
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.beta < np.inf:
            raise ParameterError(f"beta={self.beta!r}: wanted a number of at least 0")

    def parts(self, judged: JudgedTop) -> Parts:
        """No sum over ranks."""
        gain = grade_gains(judged, "log2")
        n_relevant, ideal = self._ideal(judged, judged.judgments.counts)
        relevant = (gain > 0).astype(np.float64)
        value = relevant + self.beta * gain
        weight = 1.0 / ((ranks(judged.levels.shape[1]) + self.beta * ideal) * np.maximum(n_relevant, 1)[:, None])
        return Parts(
            gain,
            np.zeros(judged.levels.shape),
            lambda levels, topic: q_measure(at(gain, levels), ideal[topic], n_relevant[topic], self.beta),
            lambda visits: cumulative_increments(judged, visits, relevant, value, weight),
        )

    def scores(self, judged: JudgedTop, levels: Ints, counts: Ints) -> Floats:
        """The Q-measure with the ideal rankings of the pools."""
        n_relevant, ideal = self._ideal(judged, counts)
        return q_measure(at(grade_gains(judged, "log2"), levels), ideal, n_relevant, self.beta)

    def _ideal(self, judged: JudgedTop, counts: Ints) -> tuple[Ints, Floats]:
        """R up to the cutoff, shape (...), and the cumulative gains of the ideal ranking, shape (..., width)."""
        gain = grade_gains(judged, "log2")
        # Number of documents with each relevant grade or a higher one.
        at_least = np.cumsum(counts[..., :0:-1], axis=-1)[..., ::-1]
        n_relevant = at_least.max(axis=-1, initial=0)
        if judged.cutoff is not None:
            n_relevant = np.minimum(n_relevant, judged.cutoff)
        rank = ranks(judged.levels.shape[1])
        ideal = np.zeros((*counts.shape[:-1], len(rank)))
        for level, rise in enumerate(np.diff(gain)):
            ideal += np.minimum(rank, at_least[..., level, None]) * rise
        return n_relevant, ideal


def cumulative_increments(
    judged: JudgedTop, visits: Ints, relevant: Floats, value: Floats, weight: Floats
) -> Increments:
    """The increments of ``Σ_r I(r) w_r Σ_{i<=r} h_i``: average precision and the Q-measure.

    ``visits``: the ranks of unjudged documents in increasing order. ``relevant, value``: I and h of each level, shape
    (L,). ``weight``: w of each rank, shape (n, width).
    """
    is_relevant, so_far = at(relevant, judged.levels), np.cumsum(at(value, judged.levels), axis=1)
    behind = _behind(judged, is_relevant * weight * so_far)
    lasting = _behind(judged, is_relevant * weight)
    weights = np.take_along_axis(weight, visits, axis=1)
    alone = weights * np.take_along_axis(so_far, visits, axis=1)
    return Increments(behind[:, 0], alone, weights, behind[:, 1:], lasting[:, 1:], lambda n: (n @ relevant, n @ value))


def cascade_increments(judged: JudgedTop, visits: Ints, stops: Floats) -> Increments:
    """The increments of ``Σ_r (1/r) s_r Π_{i<r} (1 - s_i)``, expected reciprocal rank; ``stops`` is s of each level."""
    stop = at(stops, judged.levels)
    # A user who surely stops at a rank reaches none behind it.
    reaches = np.cumprod(np.hstack([np.ones((len(stop), 1)), 1.0 - stop[:, :-1]]), axis=1)
    share = reaches / ranks(stop.shape[1])
    lasting = _behind(judged, stop * share)
    alone = -np.take_along_axis(share, visits, axis=1)
    nothing = np.zeros_like(alone)

    def continuation_probs(assigned: Ints) -> tuple[Floats, Floats]:
        goes_on: Floats = ((1.0 - stops) ** assigned).prod(axis=-1)
        return goes_on, goes_on

    return Increments(lasting[:, 0], alone, nothing, nothing, lasting[:, 1:], continuation_probs)


def at(gain: Floats, levels: Ints) -> Floats:
    """The gain at each rank, 0 for levels -1 and -2."""
    gains: Floats = np.append(gain, [0.0, 0.0]).take(levels)
    return gains


def _behind(judged: JudgedTop, terms: Floats) -> Floats:
    """Sums of terms before the first unjudged document and from each to the next, shape (n, most unjudged + 1)."""
    n, width = len(terms), int(judged.n_unjudged.max(initial=0)) + 1
    cell = np.arange(n)[:, None] * width + np.cumsum(judged.unjudged_mask, axis=1)
    sums: Floats = np.bincount(cell.ravel(), terms.ravel(), minlength=n * width).astype(np.float64)
    return sums.reshape(n, width)


def _binary(judged: JudgedTop, rel: int) -> Floats:
    return (judged.judgments.grades >= rel).astype(np.float64)


def _highest(judged: JudgedTop) -> int:
    """The highest grade of any document; with ``compat``, ``grades`` also contains unused grades."""
    present = judged.judgments.counts.any(axis=0)
    return int(judged.judgments.grades[present].max(initial=0))


def _check_top(judged: JudgedTop, top: int) -> None:
    if top < (highest := _highest(judged)):
        raise ParameterError(f"max_grade={top}: {judged.judgments.name} hold grade {highest}; give at least that")
