"""The two families of measures of unjudged documents: bootstrapped (B), and estimated by a fitted model (E)."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import InputError, ParameterError, excerpt
from vbterrier.kernels.grades.choice import METHODS
from vbterrier.measures.base import CUTOFF, Measure, Param
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.fitted import evidence_model, fit_loaded
from vbterrier.unjudged.metrics import AP, DCG, ERR, MOST_GRADE, NDCG, RBP, WEB_GRADE, Precision, Q
from vbterrier.unjudged.priors import ALL_UNJUDGED, DEFAULT_PRIOR, MAX_DRAWS, N_DRAWS, PAPER, PRIORS, Process

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


class Stat(Param):
    """The name of a statistic, or a percentile such as q5."""

    def __init__(self, *more: str) -> None:
        listed = ", ".join(["mean, median, mode, std, lo, hi", *more])
        super().__init__(str, "mean", desc=f"{listed}, or a percentile such as q5")
        self.legal = (*STATS, *more)

    def coerce(self, name: str, value: Any) -> Any:
        """Return the name of a statistic; ``q5.0`` is ``q5``."""
        if value in self.legal:
            return value
        if isinstance(value, str) and _PERCENTILE.fullmatch(value):
            return "q" + repr(float(value[1:])).removesuffix(".0")
        raise ParameterError(
            f"{name}={excerpt(value)}: wanted one of {', '.join(map(repr, self.legal))}, or a percentile such as 'q5'"
        )


class _Strength(Param):
    """A pseudo-count above 0, or its name."""

    def __init__(self) -> None:
        super().__init__(str, "auto", desc="pseudo-count of the prior, in documents; 'inf': independent draws")
        self.dtype = (str, float)

    def coerce(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in STRENGTHS:
            return value
        if value == math.inf:
            return "inf"
        wrong = ParameterError(
            f"{name}={excerpt(value)}: wanted a number above 0, or one of {', '.join(map(repr, STRENGTHS))}"
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
    "n_draws": Param(int, N_DRAWS, low=1, high=MAX_DRAWS, desc="number of draws of a topic, if draws are needed"),
    "seed": Param(int, 0, low=0, desc="seed of the draws, together with the topic"),
}


def process_params(**further: Param) -> dict[str, Param]:
    """Return the parameters of a bootstrapped measure: of the process, and its own."""
    return {
        "cutoff": CUTOFF,
        "prior": _Prior(),
        "stat": Stat(),
        **further,
        "method": Param(str, "auto", choices=METHODS, desc="computation of the distribution"),
        "all_unjudged": Param(str, "auto", choices=ALL_UNJUDGED, desc="the run prior if no document is judged"),
        "prior_strength": _Strength(),
        **_DRAWS,
    }


def model_params(**further: Param) -> dict[str, Param]:
    """Return the parameters of an estimated measure: its model and draws, and its own."""
    model = Param(str, "", desc="a registered model, a digest or a folder, see vbterrier.unjudged.fit")
    return {"cutoff": CUTOFF, "model": model, "stat": Stat(), **further, **_DRAWS}


class UnjudgedMeasure(Measure):
    """A statistic of the distribution of a score over the grades of unjudged documents."""

    RANGE = (0.0, 1.0)

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

    @property
    def is_topicwise(self) -> bool:
        """False for ``compat``: the published code shares the pool of all topics."""
        return not self.process.compat

    @property
    def draws_from_judgments(self) -> bool:
        """True for the priors of the paper."""
        return self["prior"] in PAPER

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments(drop_negative=self.process.drops_negative).lookup

    def distribution(self, scoring: Scoring) -> BootstrapDistribution:
        """The distribution that all statistics with the same process and cutoff share."""
        key = self.shared_key("stat", "level")
        if key not in scoring.kept:
            judged = scoring.judged_top(self.cutoff, drop_negative=self.process.drops_negative)
            scoring.kept[key] = BootstrapDistribution(judged, self.process, self.metric)
        distribution: BootstrapDistribution = scoring.kept[key]
        return distribution


class Estimated(UnjudgedMeasure):
    """A measure of the E family: the score under complete judgments, estimated by a fitted model of all evidence."""

    def check(self) -> None:
        """Refuse parameters that the metric refuses."""
        _ = self.metric

    def estimand(self, model: EvidenceModel) -> str:
        """The estimated score in words, as ``"nDCG@10, judged to depth 28"``."""
        plain = "nDCG" if self.NAME == "ENDCG" else self.NAME.removeprefix("E")
        return f"{plain}{'' if self.cutoff is None else f'@{self.cutoff}'}, {model.judged_to(self.cutoff)}"

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
        key = (self.shared_key("stat", "level"), model.digest)
        if key not in scoring.kept:
            judged, (n_draws, seed) = scoring.judged_top(self.cutoff), (self["n_draws"], self["seed"])
            scoring.kept[key] = model.distribution(judged, self.metric, n_draws=n_draws, seed=seed, name=name)
        distributions: ScoreDistributions = scoring.kept[key]
        return distributions


def variance_measure(measure: ir_measures.Measure) -> ir_measures.Measure | None:
    """The variance over unjudged documents, by topic, that belongs to a bootstrapped mean."""
    return measure(stat=VARIANCE_PART) if isinstance(measure, UnjudgedMeasure) and measure["stat"] == "mean" else None


def evidence_models(
    measures: Iterable[ir_measures.Measure],
    runs: Mapping[str, Run],
    target: EvaluationTarget,
    *,
    labels: MachineLabels | None = None,
    pool_cutoff: int | None = None,
    model: EvidenceModel | StrPath | None = None,
    cautious: bool = True,
) -> dict[str, EvidenceModel]:
    """Return the models of the estimated measures by name.

    The empty name is that of measures without one: the given ``model``, or one fitted to all runs of the call, their
    judgments and machine labels, for complete judgments to ``pool_cutoff`` (``None`` for the depth of the pool).
    Options that no measure uses are an error. ``cautious``: warn of models whose estimates should not be trusted.
    """
    measures = list(measures)
    require_use(measures, labels=labels, model=model)
    estimated = [measure for measure in measures if isinstance(measure, Estimated)]
    models = {name: evidence_model(name) for name in {measure["model"] for measure in estimated} if name}
    cutoffs = [measure.cutoff for measure in estimated if not measure["model"]]
    if cutoffs and model is not None:
        if labels is not None or pool_cutoff is not None:
            raise ParameterError("labels= and pool_cutoff= apply to fits; give them to vbterrier.unjudged.fit")
        models[""] = evidence_model(model)
    elif cutoffs:
        deepest = None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)
        models[""] = fit_loaded(runs, target.judgments(), deepest, pool_cutoff, labels, cautious=cautious)
        for measure in estimated:
            if not measure["model"]:
                _draw_grades(measure, models[""])
    return models


def estimand(measure: ir_measures.Measure, models: Mapping[str, EvidenceModel]) -> str:
    """The score that a measure of the E family estimates in words; empty for other measures."""
    return measure.estimand(models[measure["model"]]) if isinstance(measure, Estimated) else ""


def draw_models(measures: Iterable[ir_measures.Measure], models: Mapping[str, EvidenceModel]) -> None:
    """Draw what the measures need of their models, for other processes, which get models without their runs."""
    for measure in measures:
        if isinstance(measure, Estimated):
            _draw_grades(measure, models[measure["model"]])


def _draw_grades(measure: Estimated, model: EvidenceModel) -> None:
    counts_relevant = isinstance(measure.metric, AP)
    model.draw(measure.cutoff, measure["n_draws"], measure["seed"], counts_relevant=counts_relevant)


def require_use(measures: Iterable[ir_measures.Measure], **options: Any) -> None:
    """Refuse options of the model of the call (``labels``, ``model``, ``pool_cutoff``) that no measure uses."""
    measures = list(measures)
    option = next((f"{name}=" for name in ("model", "labels", "pool_cutoff") if options.get(name) is not None), "")
    if option and not needs_model(measures):
        raise ParameterError(
            f"{option}: {', '.join(map(str, measures))} would not use it; add a measure of the E family without a "
            "model of its own, as ENDCG@10, or leave it out"
        )


def needs_model(measures: Iterable[ir_measures.Measure]) -> bool:
    """Return True if a measure needs a model that the call fits to its runs."""
    return any(isinstance(measure, Estimated) and not measure["model"] for measure in measures)


class OfNDCG(UnjudgedMeasure):
    """A measure of nDCG in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1")
    }

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        return NDCG(self["dcg"])


class OfRBP(UnjudgedMeasure):
    """A measure of rank-biased precision in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {
        "p": Param(float, 0.8, low=0, desc="persistence, below 1"),
        "rel": Param(int, 1, low=0, desc="lowest relevant grade; 0: gains are graded"),
        "max_grade": Param(int, low=1, desc="the highest grade of the scale, for graded gains"),
    }

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        if not self["rel"] and self.params.get("max_grade") is None:
            raise ParameterError(
                f"{self.NAME}(rel=0): graded gains are grade / max_grade; give the highest grade of the scale, as "
                f"{self.NAME}(rel=0, max_grade=3), since the judgments of some topics may not contain it"
            )
        return RBP(self["p"], self["rel"], self.params.get("max_grade"))


class OfP(UnjudgedMeasure):
    """A measure of precision in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {"rel": _REL}

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        return Precision(self["rel"])


class OfAP(UnjudgedMeasure):
    """A measure of average precision in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {"rel": _REL}

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        return AP(self["rel"])


class OfERR(UnjudgedMeasure):
    """A measure of expected reciprocal rank in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {
        "max_grade": Param(int, WEB_GRADE, low=1, high=MOST_GRADE, desc="the highest grade")
    }

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        return ERR(self["max_grade"])


class OfQ(UnjudgedMeasure):
    """A measure of the Q-measure in either family."""

    PARAMS: ClassVar[dict[str, Param]] = {"beta": Param(float, 1.0, low=0, desc="weight of gains relative to ranks")}

    @cached_property
    def metric(self) -> Metric:
        """The metric with the parameters of the measure."""
        return Q(self["beta"])
