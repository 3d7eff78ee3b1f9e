"""Bootstrapped measures, bounds of nDCG, and the share of unjudged documents."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import ParameterError
from vbterrier.kernels.grades.choice import METHODS
from vbterrier.kernels.rankings import rbp_weights
from vbterrier.measures.base import CUTOFF, Measure, Param
from vbterrier.unjudged.distribution import KINDS, SIDES, BootstrapDistribution, ndcg_bound
from vbterrier.unjudged.drawn import DrawnDistribution, covers
from vbterrier.unjudged.fitted import evidence_model
from vbterrier.unjudged.metrics import AP, DCG, ERR, MOST_GRADE, NDCG, RBP, WEB_GRADE, Precision, Q
from vbterrier.unjudged.model import fit_model
from vbterrier.unjudged.priors import ALL_UNJUDGED, COMPAT, MOST_DRAWS, N_DRAWS, PRIORS, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget, Memo, Scoring
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.model import GradeDraws
    from vbterrier.unjudged.pool import JudgedTop, MachineLabels


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
        super().__init__(str, "auto", choices=PRIORS, desc="prior of the grades of unjudged documents, or a dict")
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


def process_params(**own: Param) -> dict[str, Param]:
    """Return the parameters of the process with those of a metric."""
    return {
        "cutoff": CUTOFF,
        "prior": _Prior(),
        "stat": _Stat(),
        **own,
        "method": Param(str, "auto", choices=METHODS, desc="computation of the distribution"),
        "all_unjudged": Param(str, "auto", choices=ALL_UNJUDGED, desc="the run prior if no document is judged"),
        "prior_strength": _Strength(),
        "level": Param(float, 0.9, low=0, high=1, desc="level of the interval of lo and hi"),
        "n_draws": Param(int, N_DRAWS, low=1, high=MOST_DRAWS, desc="number of draws of a topic, if draws are needed"),
        "seed": Param(int, 0, low=0, desc="seed of the draws, together with the topic"),
        "horizon": Param(int, 0, low=0, desc="depth to which the ideal assumes judgments; 0: that of the pool"),
        "model": Param(str, "", desc="name of a registered model, see vbterrier.unjudged.fit"),
    }


class Bootstrapped(Measure):
    """A statistic of the distribution of a score over the grades of unjudged documents."""

    @property
    def better(self) -> str | None:
        """Direction of better values; a standard deviation has none."""
        return None if self["stat"] in ("std", VARIANCE_PART) else self.BETTER

    def metric(self) -> Metric:
        """The metric whose distribution is computed."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse parameters that the metric or the process refuses."""
        self.metric()
        self.process()

    def process(self) -> Process:
        """The process that draws grades of unjudged documents."""
        given = {name: self[name] for name in Process.__dataclass_fields__ if name in self.SUPPORTED_PARAMS}
        # The gain of nDCG is a parameter of its metric.
        given.pop("dcg", None)
        return Process(**given)

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target, and fit the evidence model to its runs."""
        process = self.process()
        _ = target.judgments(drop_negative=process.drops_negative).lookup
        if process.uses_evidence and target.evidence and not process.model:
            draw = _draws_of(target, target, target.evidence, self.cutoff, process, target.labels)
            draw(process.n_draws, process.seed)

    def distribution(self, scoring: Scoring) -> BootstrapDistribution:
        """The distribution that all statistics with the same process and cutoff share."""
        key = self.shared("stat", "level")
        if key not in scoring.kept:
            process = self.process()
            judged = scoring.judged(self.cutoff, drop_negative=process.drops_negative)
            if process.uses_evidence:
                draw = grade_draws(scoring, self.cutoff, process)
                scoring.kept[key] = DrawnDistribution(judged, process, self.metric(), draw)
            else:
                scoring.kept[key] = BootstrapDistribution(judged, process, self.metric())
        found: BootstrapDistribution = scoring.kept[key]
        return found

    def judged(self, scoring: Scoring) -> JudgedTop:
        """The ranking that is scored, with its judgments."""
        return scoring.judged(self.cutoff, drop_negative=self.process().drops_negative)

    def values(self, scoring: Scoring) -> Floats:
        """The statistic of each topic."""
        distribution, stat = self.distribution(scoring), self["stat"]
        if stat in ("mean", "median", "mode", "std", VARIANCE_PART):
            values: Floats = getattr(distribution, stat)
            return values
        if stat in ("lo", "hi"):
            return distribution.interval(self["level"])[stat == "hi"]
        return distribution.quantile(float(stat[1:]) / 100)


def uses_evidence(measures: Iterable[ir_measures.Measure]) -> bool:
    """Return True if a measure fits the evidence model to all runs of a call."""
    bootstrapped = (one for one in measures if isinstance(one, Bootstrapped) and one["stat"] not in RBP_BOUNDS)
    return any(measure.process().uses_evidence for measure in bootstrapped)


def grade_draws(scoring: Scoring, cutoff: int | None, process: Process) -> Callable[[int, int], GradeDraws]:
    """Return the function that draws grades of unjudged documents from the evidence model, fitted once.

    The evidence is that of the registered model if one is named, else of the target's runs, else of the run alone. It
    is joined by a run with documents that it lacks.
    """
    target, run = scoring.target, scoring.run
    named = evidence_model(process.model) if process.model else None
    runs = target.evidence if named is None else named.runs
    labels = target.labels if named is None or target.labels is not None else named.labels
    if runs is None:
        return _draws_of(scoring, target, {run.name: run}, cutoff, process, labels)
    draw = _draws_of(target, target, runs, cutoff, process, labels)
    judged = scoring.judged(cutoff)
    if not covers(draw(process.n_draws, process.seed).evidence, judged):
        draw = _draws_of(scoring, target, {**runs, run.name: run}, cutoff, process, labels)
    return draw


def _draws_of(
    memo: Memo,
    target: EvaluationTarget,
    runs: Mapping[str, Run],
    cutoff: int | None,
    process: Process,
    labels: MachineLabels | None,
) -> Callable[[int, int], GradeDraws]:
    horizon = process.horizon or target.horizon
    key = "evidence model", process.model, cutoff, horizon

    def draw(n_draws: int, seed: int) -> GradeDraws:
        model = memo.memo(key, lambda: fit_model(runs, target.judgments(), cutoff, horizon, labels))
        return memo.memo((*key, n_draws, seed), lambda: model.draw(n_draws, seed))

    return draw


class _BNDCG(Bootstrapped):
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
    The default model and the prior of ``compat="ecir23"`` are learned from all topics of a call; in batches
    (``pt.Experiment(batch_size=...)``) they are learned from the topics of a batch only. ``prior="pool"`` depends on no
    other topic.

    >>> import vbterrier
    >>> vbterrier.BNDCG(stat="q95", prior="pool") @ 10
    BNDCG(prior='pool',stat='q95')@10
    """

    PRETTY_NAME = "Bootstrapped nDCG"
    SHORT_DESC = "nDCG over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        dcg=Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        compat=Param(str, "", choices=COMPAT, desc="follow the code of the paper where it departs from it"),
    )

    def metric(self) -> Metric:
        return NDCG(self["dcg"])


class _BRBP(Bootstrapped):
    """Bootstrapped rank-biased precision, RBP@k over the grades of unjudged documents.

    ``RBP = (1 - p) Σ_r p^(r-1) gain_r``, in [0, 1]; the process and its statistics are those of
    :data:`vbterrier.BNDCG`, with persistence p in [0, 1). Grades from ``rel`` on have gain 1, lower ones 0, as in
    ``RBP(rel=1)`` of ir_measures; with ``rel=0`` (default) the gain is ``grade / max_grade``, by default of the highest
    grade of the given qrels: set it for topics in batches.

    Three more statistics need no model (Moffat and Zobel, TOIS 2008, section 5): ``lower``, the RBP of the judged
    documents; ``residual``, the weight of all ranks without a judged document, those below the cutoff included; and
    ``upper``, their sum. RBP of the ranking without a cutoff, and every other statistic, lies between lower and upper
    for any grades of unjudged documents.

    >>> import vbterrier
    >>> vbterrier.BRBP(p=0.95, rel=1) @ 10
    BRBP(p=0.95,rel=1)@10
    """

    PRETTY_NAME = "Bootstrapped RBP"
    SHORT_DESC = "rank-biased precision over the grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        stat=_Stat(*RBP_BOUNDS),
        p=Param(float, 0.8, low=0, desc="persistence, below 1"),
        rel=Param(int, 0, low=0, desc="lowest relevant grade; 0: gains are graded"),
        max_grade=Param(int, low=1, desc="the highest grade"),
    )

    def metric(self) -> Metric:
        return RBP(self["p"], self["rel"], self.params.get("max_grade"))

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
        judged = self.judged(scoring)
        # Unjudged documents have gain 0 in the metric.
        lower = self.metric().scores(judged, judged.levels, judged.judgments.counts)
        residual = 1.0 - (judged.levels >= 0) @ rbp_weights(judged.levels.shape[1], self["p"])
        return {"lower": lower, "residual": residual, "upper": lower + residual}[self["stat"]]


class _BP(Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(rel=_REL)

    def metric(self) -> Metric:
        return Precision(self["rel"])


class _BAP(Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(rel=_REL)

    def metric(self) -> Metric:
        return AP(self["rel"])


class _BERR(Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        max_grade=Param(int, WEB_GRADE, low=1, high=MOST_GRADE, desc="the highest grade")
    )

    def metric(self) -> Metric:
        return ERR(self["max_grade"])


class _BQ(Bootstrapped):
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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = process_params(
        beta=Param(float, 1.0, low=0, desc="weight of gains relative to ranks")
    )

    def metric(self) -> Metric:
        return Q(self["beta"])


BNDCG = _BNDCG()
BRBP = _BRBP()
BP = _BP()
BAP = _BAP()
BERR = _BERR()
BQ = _BQ()


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

    ``naive``, ``rbp`` and ``guaranteed``: Fröbe et al., ECIR 2023, section 3.3; ``posthoc`` is an addition. The highest
    grade is by default that of the given qrels: set ``max_grade`` for topics in batches.

    >>> import vbterrier
    >>> vbterrier.NDCGBound(side="upper", kind="posthoc") @ 10
    NDCGBound(side='upper',kind='posthoc')@10
    """

    BETTER = None
    PRETTY_NAME = "Bound of nDCG"
    SHORT_DESC = "lowest or highest nDCG for any grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "side": Param(str, "lower", choices=SIDES, desc="which bound"),
        "kind": Param(str, "naive", choices=KINDS, desc="assumption of the bound"),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "max_grade": Param(int, low=0, desc="the highest grade"),
    }

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments().lookup

    def values(self, scoring: Scoring) -> Floats:
        judged = scoring.judged(self.cutoff)
        return ndcg_bound(judged, self["side"], self["kind"], dcg=self["dcg"], max_grade=self.params.get("max_grade"))


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
