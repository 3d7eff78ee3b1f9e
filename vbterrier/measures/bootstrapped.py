"""Measures of the B family: bootstrapped scores, each of the topic's ranking and judgments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.kernels.rankings import rbp_weights, weighted_sums
from vbterrier.measures.base import Param
from vbterrier.measures.unjudged import (
    Bootstrapped,
    OfAP,
    OfERR,
    OfNDCG,
    OfP,
    OfQ,
    OfRBP,
    Stat,
    process_params,
)
from vbterrier.unjudged.priors import COMPAT

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import EvaluationTarget, Scoring


# Statistics of RBP that need no distribution.
RBP_BOUNDS = ("lower", "residual", "upper")


class _BNDCG(OfNDCG, Bootstrapped):
    """Bootstrapped nDCG@k: a statistic of the distribution of nDCG over the grades of unjudged documents.

    ``nDCG = (DCG of the judged part + gains drawn from a prior) / IDCG@k(pool)``, in [0, 1]; see
    :func:`vbterrier.unjudged.bootstrap_distribution` for the process, its parameters and its source. Without
    unjudged documents it equals ``nDCG@k``. All statistics of one evaluation share one computation.

    Parameters
    ----------
    stat
        ``mean`` (default), ``median``, ``mode``, ``std`` or a percentile ``q0`` to ``q100`` of the paper's process; or
        ``lo`` and ``hi``, the ends of the central interval at ``level`` for the score of complete judgments.
    prior_strength
        ``'auto'``: independent draws, as in the paper, except for ``lo``, ``hi`` and the intervals of means of
        :func:`vbterrier.score`, for which the prior is as uncertain as if learned from two documents; or one
        pseudo-count for all statistics; ``'inf'`` for independent draws in all of them.

    Notes
    -----
    The value of a topic depends on its ranking and its judgments alone, except with ``compat="ecir23"``, whose pool
    prior is that of all topics of a call, or of a batch in ``pt.Experiment(batch_size=...)``.

    >>> import vbterrier
    >>> vbterrier.BNDCG(stat="q95", prior="pool") @ 10
    BNDCG(prior='pool',stat='q95')@10
    """

    PRETTY_NAME = "Bootstrapped nDCG"
    SHORT_DESC = "nDCG over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        **OfNDCG.PARAMS,
        compat=Param(str, "", choices=COMPAT, desc="follow the code of the paper where it departs from it"),
    )


class _BRBP(OfRBP, Bootstrapped):
    """Bootstrapped rank-biased precision, RBP@k over the grades of unjudged documents.

    ``RBP = (1 - p) Σ_r p^(r-1) gain_r``, in [0, 1]; the process and its statistics are those of
    :data:`vbterrier.BNDCG`, with persistence p in [0, 1). Grades from ``rel`` on have gain 1, lower ones 0, as in
    ``RBP(rel=1)`` of ir_measures; with ``rel=0`` the gain is ``grade / max_grade``, with ``max_grade`` the highest
    grade of the scale.

    Three more statistics need no model (Moffat and Zobel, TOIS 2008, section 5): ``lower``, the RBP of the judged
    documents; ``residual``, the weight of all ranks without a judged document, those below the cutoff included; and
    ``upper``, their sum. RBP of the ranking without a cutoff, and every other statistic, lies between lower and upper
    for any grades of unjudged documents.

    >>> import vbterrier
    >>> vbterrier.BRBP(p=0.95, rel=2) @ 10
    BRBP(p=0.95,rel=2)@10
    """

    PRETTY_NAME = "Bootstrapped RBP"
    SHORT_DESC = "rank-biased precision over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(stat=Stat(*RBP_BOUNDS), **OfRBP.PARAMS)

    @property
    def better(self) -> str | None:
        """Direction of better values; a residual has none."""
        return None if self["stat"] == "residual" else super().better

    @property
    def draws_from_judgments(self) -> bool:
        """False for bounds, which draw nothing."""
        return self["stat"] not in RBP_BOUNDS and super().draws_from_judgments

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target; bounds need no model."""
        if self["stat"] in RBP_BOUNDS:
            _ = target.judgments().lookup
        else:
            super().prepare(target)

    def values(self, scoring: Scoring) -> Floats:
        if self["stat"] not in RBP_BOUNDS:
            return super().values(scoring)
        judged = scoring.judged_top(self.cutoff)
        # Unjudged documents have gain 0 in the metric.
        lower = self.metric.scores(judged, judged.levels, judged.judgments.counts)
        weights = rbp_weights(judged.levels.shape[1], self["p"])
        residual = 1.0 - weighted_sums((judged.levels >= 0).astype(np.float64), weights)
        return {"lower": lower, "residual": residual, "upper": lower + residual}[self["stat"]]


class _BP(OfP, Bootstrapped):
    """Bootstrapped precision, P@k over the grades of unjudged documents.

    ``P@k = relevant documents in the first k / k``, in [0, 1]; the process and its statistics are those of
    :data:`vbterrier.BNDCG`. Without unjudged documents it equals ``P(rel=...)@k`` of trec_eval, with the lowest
    relevant grade ``rel``. The cutoff is required.

    >>> import vbterrier
    >>> vbterrier.BP(rel=2, stat="lo") @ 10
    BP(stat='lo',rel=2)@10
    """

    PRETTY_NAME = "Bootstrapped precision"
    SHORT_DESC = "precision over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**OfP.PARAMS)


class _BAP(OfAP, Bootstrapped):
    """Bootstrapped average precision, AP[@k] over the grades of unjudged documents.

    ``AP@k = (1/R) Σ_{r<=k} I(r) P@r`` with R relevant documents in the pool, in [0, 1]; the process and its statistics
    are those of :data:`vbterrier.BNDCG`. R is constant: a document drawn as relevant replaces one of the judged
    documents outside the ranking. If judgments are missing in the whole pool, R is too small and scores are far too
    high: use AP, and ``EAP`` with all runs, unless only the documents of single runs are unjudged
    (docs/explanation/evidence-measures.md). Without unjudged documents it equals ``AP(rel=...)[@k]`` of trec_eval,
    with the lowest relevant grade ``rel``.

    >>> import vbterrier
    >>> vbterrier.BAP(stat="median") @ 100
    BAP(stat='median')@100
    """

    PRETTY_NAME = "Bootstrapped average precision"
    SHORT_DESC = "average precision over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**OfAP.PARAMS)


class _BERR(OfERR, Bootstrapped):
    """Bootstrapped expected reciprocal rank, ERR@k over the grades of unjudged documents.

    ``ERR = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)`` with ``s = (2^grade - 1) / 2^max_grade``, in [0, 1]; the process and its
    statistics are those of :data:`vbterrier.BNDCG`. Without unjudged documents it equals ``ERR@k`` of gdeval
    (Chapelle et al., CIKM 2009), whose highest possible grade is 4, the default.

    >>> import vbterrier
    >>> vbterrier.BERR(max_grade=2) @ 20
    BERR(max_grade=2)@20
    """

    PRETTY_NAME = "Bootstrapped expected reciprocal rank"
    SHORT_DESC = "expected reciprocal rank over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**OfERR.PARAMS)


class _BQ(OfQ, Bootstrapped):
    """Bootstrapped Q-measure, Q[@k] over the grades of unjudged documents.

    ``Q@k = 1/min(k, R) Σ_{r<=k} I(r) (C(r) + β cg(r)) / (r + β cg*(r))``, in [0, 1], with R relevant documents in the
    pool (Sakai, AIRS 2004); see :class:`vbterrier.unjudged.metrics.Q`. The process and its statistics are those of
    :data:`vbterrier.BNDCG`. β weights gains relative to ranks; 0 gives AP (divided by ``min(k, R)``).

    >>> import vbterrier
    >>> vbterrier.BQ(prior="pool", beta=10) @ 10
    BQ(prior='pool',beta=10.0)@10
    """

    PRETTY_NAME = "Bootstrapped Q-measure"
    SHORT_DESC = "Q-measure over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**OfQ.PARAMS)


BNDCG = _BNDCG()
BRBP = _BRBP()
BP = _BP()
BAP = _BAP()
BERR = _BERR()
BQ = _BQ()
