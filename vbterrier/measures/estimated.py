"""Measures of the E family: scores under complete judgments, estimated by a fitted model of all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vbterrier.measures.unjudged import Estimated, OfAP, OfERR, OfNDCG, OfP, OfQ, OfRBP, model_params

if TYPE_CHECKING:
    from vbterrier.measures.base import Param


class _ENDCG(OfNDCG, Estimated):
    """Estimated nDCG@k: the nDCG that complete judgments would give, by a model of all runs and judgments.

    ``E[DCG@k / IDCG@k]`` over joint draws of the grades of the unjudged documents of all runs and of the relevant
    documents that no run retrieves, in [0, 1]; see :mod:`vbterrier.unjudged.model`. The ideal ranking is drawn, too, so
    that the value of a fully judged ranking may differ from its nDCG. All statistics of one evaluation share one set
    of draws.

    Parameters
    ----------
    model
        The fitted model: the name of a registered one, its digest, or the folder of a saved one, see
        :func:`vbterrier.unjudged.fit`. Calls that evaluate several runs at once, as :func:`vbterrier.score` and
        :func:`vbterrier.Experiment`, fit one without a name to their runs.
    stat
        ``mean`` (default), ``median``, ``mode``, ``std``, a percentile ``q0`` to ``q100``, or ``lo`` and ``hi``, the
        ends of the central interval at ``level``.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.ENDCG(model="mine", stat="lo") @ 10
    ENDCG(model='mine',stat='lo')@10
    """

    PRETTY_NAME = "Estimated nDCG"
    SHORT_DESC = "nDCG under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfNDCG.PARAMS)


class _ERBP(OfRBP, Estimated):
    """Estimated rank-biased precision: RBP under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BRBP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.ERBP(model="mine") @ 10
    ERBP(model='mine')@10
    """

    PRETTY_NAME = "Estimated rank-biased precision"
    SHORT_DESC = "rank-biased precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfRBP.PARAMS)


class _EP(OfP, Estimated):
    """Estimated precision: P under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EP(model="mine") @ 10
    EP(model='mine')@10
    """

    PRETTY_NAME = "Estimated precision"
    SHORT_DESC = "precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfP.PARAMS)


class _EAP(OfAP, Estimated):
    """Estimated average precision: AP under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BAP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    AP divides by the number of relevant documents, of which many are in no run. On six collections, 90 % intervals
    cover the AP@100 of .90 of topics where random judgments are missing, but of .71 to .78 if a group of systems or all
    documents below some rank are not judged; see docs/explanation/evidence-measures.md.

    >>> import vbterrier
    >>> vbterrier.EAP(model="mine") @ 10
    EAP(model='mine')@10
    """

    PRETTY_NAME = "Estimated average precision"
    SHORT_DESC = "average precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfAP.PARAMS)


class _EERR(OfERR, Estimated):
    """Estimated expected reciprocal rank: ERR under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BERR`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EERR(model="mine") @ 10
    EERR(model='mine')@10
    """

    PRETTY_NAME = "Estimated expected reciprocal rank"
    SHORT_DESC = "expected reciprocal rank under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfERR.PARAMS)


class _EQ(OfQ, Estimated):
    """Estimated Q-measure: Q under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BQ`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EQ(model="mine") @ 10
    EQ(model='mine')@10
    """

    PRETTY_NAME = "Estimated Q-measure"
    SHORT_DESC = "Q-measure under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**OfQ.PARAMS)


ENDCG = _ENDCG()
ERBP = _ERBP()
EP = _EP()
EAP = _EAP()
EERR = _EERR()
EQ = _EQ()
