"""Measures over what unjudged documents could be: a declaration for each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vbterrier.judgments.metrics import AP, DCG, ERR, MOST_GRADE, NDCG, RBP, WEB_GRADE, Precision, Q
from vbterrier.judgments.process import COMPAT
from vbterrier.measures.params import Param
from vbterrier.measures.process import Bootstrapped, process_params

if TYPE_CHECKING:
    from vbterrier.judgments.metrics import Metric


class _BNDCG(Bootstrapped):
    """Bootstrapped nDCG@k: a statistic of the score's distribution over what unjudged documents could be.

    ``nDCG = (DCG of the judged part + gains drawn from a prior) / IDCG@k(pool)``, in [0, 1]; see
    :func:`vbterrier.bootstrap_distribution` for the process, its parameters and its source. With nothing unjudged it is
    ``nDCG@k``. All statistics of one evaluation come from one computation.

    Parameters
    ----------
    stat
        ``mean`` (default), ``median``, ``mode``, ``std``, a percentile ``q0`` to ``q100``, or ``lo`` and ``hi``, the
        ends of the central interval at ``level``.
    prior_strength
        As there; a number, or a text: ``'inf'`` for a prior known exactly, ``'auto'``.

    Notes
    -----
    The default prior is learned over all topics of a call, and so is that of ``compat="ecir23"``: in batches
    (``pt.Experiment(batch_size=...)``) they see the topics of a batch only. ``prior="pool"`` does not depend on others.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BNDCG(stat="q95", prior="pool") @ 10
    BNDCG(prior='pool',stat='q95')@10
    """

    __name__ = "BNDCG"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped nDCG"
    SHORT_DESC = "nDCG over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        dcg=Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        compat=Param(str, "", choices=COMPAT, desc="follow the code of the paper where it departs from it"),
    )

    def metric(self) -> Metric:
        """Normalised discounted cumulative gain."""
        return NDCG(self["dcg"])


class _BRBP(Bootstrapped):
    """Bootstrapped rank-biased precision, RBP@k over what unjudged documents could be.

    ``RBP = (1 - p) Σ_r p^(r-1) gain_r``, in [0, 1]; the process and its statistics are those of
    :data:`vbterrier.BNDCG`. Every value lies in [base, base + residual] with base the RBP of the judged part and
    residual what it would gain if every unjudged document gained 1 (Moffat and Zobel, TOIS 2008, section 5).

    Parameters
    ----------
    p
        Persistence, in [0, 1).
    rel
        The lowest grade that gains 1, all below gaining nothing, as in ``RBP(rel=1)`` of ir_measures; 0 (default) for
        graded gains, ``grade / max_grade``.
    max_grade
        The grade that gains 1 where gains are graded; the highest of the given qrels by default. Give it when topics
        come in batches.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BRBP(p=0.95, rel=1) @ 10
    BRBP(p=0.95,rel=1)@10
    """

    __name__ = "BRBP"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped RBP"
    SHORT_DESC = "rank-biased precision over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        p=Param(float, 0.8, low=0, desc="persistence, below 1"),
        rel=Param(int, 0, low=0, desc="lowest relevant grade; 0: gains are graded"),
        max_grade=Param(int, low=1, desc="the highest grade there is"),
    )

    def metric(self) -> Metric:
        """Rank-biased precision."""
        return RBP(self["p"], self["rel"], self.params.get("max_grade"))


class _BP(Bootstrapped):
    """Bootstrapped precision, P@k over what unjudged documents could be.

    ``P@k = relevant documents in the first k / k``, in [0, 1]; the process and its statistics are those of
    :data:`vbterrier.BNDCG`. With nothing unjudged it is ``P(rel=...)@k`` of trec_eval. The cutoff must be given.

    Parameters
    ----------
    rel
        The lowest grade that counts as relevant.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BP(rel=2, stat="lo") @ 10
    BP(stat='lo',rel=2)@10
    """

    __name__ = "BP"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped precision"
    SHORT_DESC = "precision over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        rel=Param(int, 1, low=1, desc="lowest relevant grade")
    )

    def metric(self) -> Metric:
        """Precision."""
        return Precision(self["rel"])


class _BAP(Bootstrapped):
    """Bootstrapped average precision, AP[@k] over what unjudged documents could be.

    ``AP@k = (1/R) Σ_{r<=k} I(r) P@r`` with R relevant documents in the pool, in [0, 1]; the process and its statistics
    are those of :data:`vbterrier.BNDCG`. R never changes: a document that is drawn relevant stands for one of the
    judged ones outside the ranking. Where judgments are missing all over the pool, R is too small and scores are far
    too high: condensed lists are nearer to the truth there. With nothing unjudged it is ``AP(rel=...)[@k]`` of
    trec_eval.

    Parameters
    ----------
    rel
        The lowest grade that counts as relevant.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BAP(stat="median") @ 100
    BAP(stat='median')@100
    """

    __name__ = "BAP"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped average precision"
    SHORT_DESC = "average precision over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        rel=Param(int, 1, low=1, desc="lowest relevant grade")
    )

    def metric(self) -> Metric:
        """Average precision."""
        return AP(self["rel"])


class _BERR(Bootstrapped):
    """Bootstrapped expected reciprocal rank, ERR@k over what unjudged documents could be.

    ``ERR = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)`` with ``s = (2^grade - 1) / 2^max_grade``, in [0, 1]; the process and its
    statistics are those of :data:`vbterrier.BNDCG`. With nothing unjudged it is ``ERR@k`` of gdeval (Chapelle et
    al., CIKM 2009).

    Parameters
    ----------
    max_grade
        The highest grade there can be; 4 as in gdeval unless given.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BERR(max_grade=2) @ 20
    BERR(max_grade=2)@20
    """

    __name__ = "BERR"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped expected reciprocal rank"
    SHORT_DESC = "expected reciprocal rank over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        max_grade=Param(int, WEB_GRADE, low=1, high=MOST_GRADE, desc="the highest grade there is")
    )

    def metric(self) -> Metric:
        """Expected reciprocal rank."""
        return ERR(self["max_grade"])


class _BQ(Bootstrapped):
    """Bootstrapped Q-measure, Q[@k] over what unjudged documents could be.

    ``Q@k = 1/min(k, R) Σ_{r<=k} I(r) (C(r) + β cg(r)) / (r + β cg*(r))``, in [0, 1], with R relevant documents in the
    pool (Sakai, AIRS 2004); see :class:`vbterrier.judgments.metrics.Q`. The process and its statistics are those of
    :data:`vbterrier.BNDCG`.

    Parameters
    ----------
    beta
        How much gains count beside ranks; at 0 it is AP (divided by ``min(k, R)``).

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.BQ(prior="pool", beta=10) @ 10
    BQ(prior='pool',beta=10.0)@10
    """

    __name__ = "BQ"
    NAME = __name__
    PRETTY_NAME = "Bootstrapped Q-measure"
    SHORT_DESC = "Q-measure over what the unjudged documents could be"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        beta=Param(float, 1.0, low=0, desc="how much gains count beside ranks")
    )

    def metric(self) -> Metric:
        """The Q-measure."""
        return Q(self["beta"])


BNDCG = _BNDCG()
BRBP = _BRBP()
BP = _BP()
BAP = _BAP()
BERR = _BERR()
BQ = _BQ()
