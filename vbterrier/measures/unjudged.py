"""Measures of rankings with unjudged documents: bootstrapped (B), estimated by a fitted model (E), and bounds."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.grades.choice import METHODS
from vbterrier.kernels.rankings import rbp_weights, weighted_sums
from vbterrier.measures.base import CUTOFF, Measure, Param
from vbterrier.unjudged.distribution import KINDS, SIDES, BootstrapDistribution, ndcg_bound
from vbterrier.unjudged.fitted import evidence_model, fit_loaded
from vbterrier.unjudged.metrics import AP, DCG, ERR, MOST_GRADE, NDCG, RBP, WEB_GRADE, Precision, Q
from vbterrier.unjudged.priors import ALL_UNJUDGED, COMPAT, DEFAULT_PRIOR, MOST_DRAWS, N_DRAWS, PRIORS, Process

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import ir_measures

    from vbterrier.annotations import Floats, StrPath
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget, Scoring
    from vbterrier.unjudged.distribution import ScoreDistributions
    from vbterrier.unjudged.fitted import EvidenceModel
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.pool import MachineLabels


# The part of a topic in the variance of the sum over topics, for intervals of means.
VARIANCE_PART = "variance_part"
STATS = ("mean", "median", "mode", "std", "lo", "hi", VARIANCE_PART)
# Statistics of RBP that need no distribution.
RBP_BOUNDS = ("lower", "residual", "upper")
_PERCENTILE = re.compile(r"q(\d{1,2}(\.\d+)?|100)")
# Strengths that are words in the text of a measure, and their values in the process.
STRENGTHS = ("auto", "inf")


_REL = Param(int, 1, low=1, desc="lowest relevant grade")


class _Prior(Param):
    """The name of a prior, or a mapping of grade to probability."""

    def __init__(self) -> None:
        super().__init__(
            str, DEFAULT_PRIOR, choices=PRIORS, desc="prior of the grades of unjudged documents, or a dict"
        )
        self.dtype = (str, dict)

    def coerce(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            grade, chance = Param(int, low=0), Param(float, low=0, high=1)
            return {grade.coerce("grade", key): chance.coerce("probability", share) for key, share in value.items()}
        return Param(str, choices=PRIORS).coerce(name, value)

    def validate(self, value: Any) -> bool:
        return isinstance(value, dict) or bool(super().validate(value))


class _Stat(Param):
    """The name of a statistic, or a percentile such as q5."""

    def __init__(self, *more: str) -> None:
        listed = ", ".join(["mean, median, mode, std, lo, hi", *more])
        super().__init__(str, "mean", desc=f"{listed}, or a percentile such as q5")
        self.legal = (*STATS, *more)

    def coerce(self, name: str, value: Any) -> Any:
        if value in self.legal:
            return value
        if isinstance(value, str) and _PERCENTILE.fullmatch(value):
            return "q" + repr(float(value[1:])).removesuffix(".0")
        raise ParameterError(
            f"{name}={value!r}: wanted one of {', '.join(map(repr, self.legal))}, or a percentile such as 'q5'"
        )


class _Strength(Param):
    """A pseudo-count above 0, or its name."""

    def __init__(self) -> None:
        super().__init__(str, "auto", desc="pseudo-count of the prior, in documents; 'inf': it is known exactly")
        self.dtype = (str, float)

    def coerce(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in STRENGTHS:
            return value
        if value == math.inf:
            return "inf"
        wrong = ParameterError(
            f"{name}={value!r}: wanted a number above 0, or one of {', '.join(map(repr, STRENGTHS))}"
        )
        if isinstance(value, str):
            raise wrong
        try:
            strength: float = Param(float, low=0).coerce(name, value)
        except ParameterError as error:
            raise wrong from error
        if strength == 0:
            raise wrong
        return strength


_DRAWS = {
    "level": Param(float, 0.9, low=0, high=1, desc="level of the interval of lo and hi"),
    "n_draws": Param(int, N_DRAWS, low=1, high=MOST_DRAWS, desc="number of draws of a topic, if draws are needed"),
    "seed": Param(int, 0, low=0, desc="seed of the draws, together with the topic"),
}


def process_params(**own: Param) -> dict[str, Param]:
    """Return the parameters of a bootstrapped measure: of the process, and its own."""
    return {
        "cutoff": CUTOFF,
        "prior": _Prior(),
        "stat": _Stat(),
        **own,
        "method": Param(str, "auto", choices=METHODS, desc="computation of the distribution"),
        "all_unjudged": Param(str, "auto", choices=ALL_UNJUDGED, desc="the run prior if no document is judged"),
        "prior_strength": _Strength(),
        **_DRAWS,
    }


def model_params(**own: Param) -> dict[str, Param]:
    """Return the parameters of an estimated measure: its model and draws, and its own."""
    model = Param(str, "", desc="a registered model, a digest or a folder, see vbterrier.unjudged.fit")
    return {"cutoff": CUTOFF, "model": model, "stat": _Stat(), **own, **_DRAWS}


class UnjudgedMeasure(Measure):
    """A statistic of the distribution of a score over the grades of unjudged documents."""

    @property
    def better(self) -> str | None:
        """Direction of better values; a standard deviation has none."""
        return None if self["stat"] in ("std", VARIANCE_PART) else self.BETTER

    @cached_property
    def metric(self) -> Metric:
        """The metric whose distribution is computed."""
        raise NotImplementedError

    def distribution(self, scoring: Scoring) -> ScoreDistributions:
        """The distribution that all statistics of one metric, process or model and cutoff share."""
        raise NotImplementedError

    def values(self, scoring: Scoring) -> Floats:
        """The statistic of each topic."""
        distribution, stat = self.distribution(scoring), self["stat"]
        if stat in ("mean", "median", "mode", "std", VARIANCE_PART):
            values: Floats = getattr(distribution, stat)
            return values
        if stat in ("lo", "hi"):
            return distribution.interval(self["level"])[stat == "hi"]
        return distribution.quantile(float(stat[1:]) / 100)


class Bootstrapped(UnjudgedMeasure):
    """A measure of the B family: the process of the paper, of the topic's ranking and judgments alone."""

    def check(self) -> None:
        """Refuse parameters that the metric or the process refuses."""
        _ = self.metric, self.process

    @cached_property
    def process(self) -> Process:
        """The process that draws grades of unjudged documents."""
        return Process(**{name: self[name] for name in Process.__dataclass_fields__ if name in self.SUPPORTED_PARAMS})

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments(drop_negative=self.process.drops_negative).lookup

    def distribution(self, scoring: Scoring) -> BootstrapDistribution:
        """The distribution that all statistics with the same process and cutoff share."""
        key = self.shared("stat", "level")
        if key not in scoring.kept:
            judged = scoring.judged(self.cutoff, drop_negative=self.process.drops_negative)
            scoring.kept[key] = BootstrapDistribution(judged, self.process, self.metric)
        found: BootstrapDistribution = scoring.kept[key]
        return found


class Estimated(UnjudgedMeasure):
    """A measure of the E family: the score under complete judgments, estimated by a fitted model of all evidence."""

    def check(self) -> None:
        """Refuse parameters that the metric refuses."""
        _ = self.metric

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments().lookup

    def distribution(self, scoring: Scoring) -> ScoreDistributions:
        """The distribution that all statistics with the same model and cutoff share."""
        name = self["model"]
        model = scoring.models.get(name) or (evidence_model(name) if name else None)
        if model is None:
            raise InputError(
                f"{self}: needs a model fitted to all runs: use vbterrier.Experiment or vbterrier.score, which fit "
                f"one, or name one, as {self.NAME}(model='mine') after "
                "vbterrier.unjudged.fit(runs, qrels).register('mine')"
            )
        key = (self.shared("stat", "level"), model.digest)
        if key not in scoring.kept:
            judged, (n_draws, seed) = scoring.judged(self.cutoff), (self["n_draws"], self["seed"])
            scoring.kept[key] = model.distribution(judged, self.metric, n_draws=n_draws, seed=seed, name=name)
        found: ScoreDistributions = scoring.kept[key]
        return found


def models_of(
    measures: Iterable[ir_measures.Measure],
    runs: Mapping[str, Run],
    target: EvaluationTarget,
    *,
    labels: MachineLabels | None = None,
    horizon: int = 0,
    model: EvidenceModel | StrPath | None = None,
) -> dict[str, EvidenceModel]:
    """Return the models of the estimated measures by name.

    The empty name is that of measures without one: the given ``model``, or one fitted to all runs of the call, their
    judgments and machine labels, with a horizon (0 for the depth of the pool). Labels or a model that no measure uses
    are an error.
    """
    measures = list(measures)
    require_use(measures, labels=labels, model=model)
    estimated = [measure for measure in measures if isinstance(measure, Estimated)]
    models = {name: evidence_model(name) for name in {measure["model"] for measure in estimated} if name}
    cutoffs = [measure.cutoff for measure in estimated if not measure["model"]]
    if cutoffs and model is not None:
        if labels is not None or horizon:
            raise ParameterError("labels=, horizon=: are those of a fit; give them to vbterrier.unjudged.fit")
        models[""] = evidence_model(model)
    elif cutoffs:
        deepest = None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)
        models[""] = fit_loaded(runs, target.judgments(), deepest, horizon, labels)
        for measure in estimated:
            if not measure["model"]:
                models[""].draw(measure.cutoff, measure["n_draws"], measure["seed"])
    return models


def draw_models(measures: Iterable[ir_measures.Measure], models: Mapping[str, EvidenceModel]) -> None:
    """Draw what the measures need of their models, for other processes, which get models without their runs."""
    for measure in measures:
        if isinstance(measure, Estimated):
            models[measure["model"]].draw(measure.cutoff, measure["n_draws"], measure["seed"])


def require_use(measures: Iterable[ir_measures.Measure], *, labels: Any, model: Any) -> None:
    """Refuse labels or a model that none of the measures uses."""
    measures = list(measures)
    if (labels is not None or model is not None) and not needs_model(measures):
        given = "labels=" if model is None else "model="
        raise ParameterError(
            f"{given}: {', '.join(map(str, measures))} would not use it; add a measure of the E family without a "
            "model of its own, as ENDCG@10, or leave it out"
        )


def needs_model(measures: Iterable[ir_measures.Measure]) -> bool:
    """Return True if a measure needs a model that the call fits to its runs."""
    return any(isinstance(measure, Estimated) and not measure["model"] for measure in measures)


class _OfNDCG(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1")
    }

    @cached_property
    def metric(self) -> Metric:
        return NDCG(self["dcg"])


class _OfRBP(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {
        "p": Param(float, 0.8, low=0, desc="persistence, below 1"),
        "rel": Param(int, 1, low=0, desc="lowest relevant grade; 0: gains are graded"),
        "max_grade": Param(int, low=1, desc="the highest grade of the scale, for graded gains"),
    }

    @cached_property
    def metric(self) -> Metric:
        if not self["rel"] and self.params.get("max_grade") is None:
            raise ParameterError(
                f"{self.NAME}(rel=0): graded gains are grade / max_grade; give the highest grade of the scale, as "
                f"{self.NAME}(rel=0, max_grade=3), since the judgments of some topics may not contain it"
            )
        return RBP(self["p"], self["rel"], self.params.get("max_grade"))


class _OfP(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {"rel": _REL}

    @cached_property
    def metric(self) -> Metric:
        return Precision(self["rel"])


class _OfAP(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {"rel": _REL}

    @cached_property
    def metric(self) -> Metric:
        return AP(self["rel"])


class _OfERR(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {
        "max_grade": Param(int, WEB_GRADE, low=1, high=MOST_GRADE, desc="the highest grade")
    }

    @cached_property
    def metric(self) -> Metric:
        return ERR(self["max_grade"])


class _OfQ(UnjudgedMeasure):
    PARAMS: ClassVar[dict[str, Param]] = {"beta": Param(float, 1.0, low=0, desc="weight of gains relative to ranks")}

    @cached_property
    def metric(self) -> Metric:
        return Q(self["beta"])


class _BNDCG(_OfNDCG, Bootstrapped):
    """Bootstrapped nDCG@k: a statistic of the distribution of nDCG over the grades of unjudged documents.

    ``nDCG = (DCG of the judged part + gains drawn from a prior) / IDCG@k(pool)``, in [0, 1]; see
    :func:`vbterrier.unjudged.bootstrap_distribution` for the process, its parameters and its source. Without
    unjudged documents it equals ``nDCG@k``. All statistics of one evaluation share one computation.

    Parameters
    ----------
    stat
        ``mean`` (default), ``median``, ``mode``, ``std``, a percentile ``q0`` to ``q100``, or ``lo`` and ``hi``, the
        ends of the central interval at ``level``.
    prior_strength
        A number; ``'inf'`` for a prior known exactly; or ``'auto'``.

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
        **_OfNDCG.PARAMS,
        compat=Param(str, "", choices=COMPAT, desc="follow the code of the paper where it departs from it"),
    )


class _BRBP(_OfRBP, Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(stat=_Stat(*RBP_BOUNDS), **_OfRBP.PARAMS)

    @property
    def better(self) -> str | None:
        """Direction of better values; a residual has none."""
        return None if self["stat"] == "residual" else super().better

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target; bounds need no model."""
        if self["stat"] in RBP_BOUNDS:
            _ = target.judgments().lookup
        else:
            super().prepare(target)

    def values(self, scoring: Scoring) -> Floats:
        if self["stat"] not in RBP_BOUNDS:
            return super().values(scoring)
        judged = scoring.judged(self.cutoff)
        # Unjudged documents have gain 0 in the metric.
        lower = self.metric.scores(judged, judged.levels, judged.judgments.counts)
        weights = rbp_weights(judged.levels.shape[1], self["p"])
        residual = 1.0 - weighted_sums((judged.levels >= 0).astype(np.float64), weights)
        return {"lower": lower, "residual": residual, "upper": lower + residual}[self["stat"]]


class _BP(_OfP, Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**_OfP.PARAMS)


class _BAP(_OfAP, Bootstrapped):
    """Bootstrapped average precision, AP[@k] over the grades of unjudged documents.

    ``AP@k = (1/R) Σ_{r<=k} I(r) P@r`` with R relevant documents in the pool, in [0, 1]; the process and its statistics
    are those of :data:`vbterrier.BNDCG`. R is constant: a document drawn as relevant replaces one of the judged
    documents outside the ranking. If judgments are missing in the whole pool, R is too small and scores are far too
    high; condensed lists are more accurate then. Without unjudged documents it equals ``AP(rel=...)[@k]`` of trec_eval,
    with the lowest relevant grade ``rel``.

    >>> import vbterrier
    >>> vbterrier.BAP(stat="median") @ 100
    BAP(stat='median')@100
    """

    PRETTY_NAME = "Bootstrapped average precision"
    SHORT_DESC = "average precision over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**_OfAP.PARAMS)


class _BERR(_OfERR, Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**_OfERR.PARAMS)


class _BQ(_OfQ, Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(**_OfQ.PARAMS)


class _ENDCG(_OfNDCG, Estimated):
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

    >>> import vbterrier
    >>> vbterrier.ENDCG(model="mine", stat="lo") @ 10
    ENDCG(model='mine',stat='lo')@10
    """

    PRETTY_NAME = "Estimated nDCG"
    SHORT_DESC = "nDCG under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfNDCG.PARAMS)


class _ERBP(_OfRBP, Estimated):
    """Estimated rank-biased precision: RBP under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BRBP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.ERBP(model="mine") @ 10
    ERBP(model='mine')@10
    """

    PRETTY_NAME = "Estimated rank-biased precision"
    SHORT_DESC = "rank-biased precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfRBP.PARAMS)


class _EP(_OfP, Estimated):
    """Estimated precision: P under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EP(model="mine") @ 10
    EP(model='mine')@10
    """

    PRETTY_NAME = "Estimated precision"
    SHORT_DESC = "precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfP.PARAMS)


class _EAP(_OfAP, Estimated):
    """Estimated average precision: AP under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BAP`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EAP(model="mine") @ 10
    EAP(model='mine')@10
    """

    PRETTY_NAME = "Estimated average precision"
    SHORT_DESC = "average precision under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfAP.PARAMS)


class _EERR(_OfERR, Estimated):
    """Estimated expected reciprocal rank: ERR under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BERR`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EERR(model="mine") @ 10
    EERR(model='mine')@10
    """

    PRETTY_NAME = "Estimated expected reciprocal rank"
    SHORT_DESC = "expected reciprocal rank under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfERR.PARAMS)


class _EQ(_OfQ, Estimated):
    """Estimated Q-measure: Q under complete judgments, by a model of all runs and judgments.

    In [0, 1]; the metric and its parameters are those of :data:`vbterrier.BQ`, the model and its statistics those of
    :data:`vbterrier.ENDCG`.

    >>> import vbterrier
    >>> vbterrier.EQ(model="mine") @ 10
    EQ(model='mine')@10
    """

    PRETTY_NAME = "Estimated Q-measure"
    SHORT_DESC = "Q-measure under complete judgments, estimated from all evidence"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = model_params(**_OfQ.PARAMS)


BNDCG = _BNDCG()
BRBP = _BRBP()
BP = _BP()
BAP = _BAP()
BERR = _BERR()
BQ = _BQ()
ENDCG = _ENDCG()
ERBP = _ERBP()
EP = _EP()
EAP = _EAP()
EERR = _EERR()
EQ = _EQ()


class _NDCGBound(Measure):
    """A bound of nDCG@k with unjudged documents: ``side`` lower or upper, ``kind`` naive, rbp, guaranteed or posthoc.

    See :func:`vbterrier.unjudged.distribution.ndcg_bound`; in [0, 1]. The kinds differ in the ideal ranking:

    ==============  ==========================================================  ==================================
    kind            ideal ranking                                               encloses the true value
    ==============  ==========================================================  ==================================
    ``naive``       of the pool, fixed                                          not always
    ``rbp``         of the pool and the retrieved documents, all of top grade   not always
    ``guaranteed``  of any pool: every document may be relevant                 always
    ``posthoc``     of the pool and the retrieved documents                     if only these are judged
    ==============  ==========================================================  ==================================

    ``naive``, ``rbp`` and ``guaranteed`` (the default): Fröbe et al., ECIR 2023, section 3.3; ``posthoc`` is an
    addition. All kinds but ``naive`` need ``max_grade``, the highest grade of the scale, which the judgments of a topic
    may not contain.

    >>> import vbterrier
    >>> vbterrier.NDCGBound(side="upper", max_grade=3) @ 10
    NDCGBound(side='upper',max_grade=3)@10
    """

    BETTER = None
    PRETTY_NAME = "Bound of nDCG"
    SHORT_DESC = "lowest or highest nDCG for any grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "side": Param(str, "lower", choices=SIDES, desc="which bound"),
        "kind": Param(str, "guaranteed", choices=KINDS, desc="assumption of the bound"),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "max_grade": Param(int, low=0, desc="the highest grade of the scale"),
    }

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments().lookup

    def values(self, scoring: Scoring) -> Floats:
        judged, max_grade = scoring.judged(self.cutoff), self.params.get("max_grade")
        if max_grade is None and self["kind"] != "naive":
            raise ParameterError(
                f"{self}: give the highest grade of the scale, which unjudged documents may have, as "
                f"NDCGBound(max_grade={judged.judgments.grades[-1]}) for the highest one of these judgments"
            )
        return ndcg_bound(judged, self["side"], self["kind"], dcg=self["dcg"], max_grade=max_grade)


class _Unjudged(Measure):
    """Share of unjudged documents among the first k retrieved, in [0, 1]; 0 if nothing was retrieved.

    ``1 - Judged@k`` of ir_measures on topics with retrieved documents.

    >>> import vbterrier
    >>> vbterrier.Unjudged @ 10
    Unjudged@10
    """

    BETTER = None
    PRETTY_NAME = "Share of unjudged documents"
    SHORT_DESC = "share of the ranking without judgments"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF}

    def values(self, scoring: Scoring) -> Floats:
        return scoring.judged(self.cutoff).unjudged_share()


NDCGBound = _NDCGBound()
Unjudged = _Unjudged()
