"""Measures over the distribution of unjudged documents, bounds of nDCG, and the unjudged share."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import ParameterError
from vbterrier.kernels.grades.choice import METHODS
from vbterrier.measures.base import CUTOFF, Measure, Param
from vbterrier.unjudged.bootstrap import KINDS, SIDES, ndcg_bound
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.metrics import AP, DCG, ERR, MOST_GRADE, NDCG, RBP, WEB_GRADE, Precision, Q
from vbterrier.unjudged.priors import ALL_UNJUDGED, COMPAT, MOST_DRAWS, N_DRAWS, PRIORS, Process

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.pool import JudgedTop


STATS = ("mean", "median", "mode", "std", "lo", "hi")
_PERCENTILE = re.compile(r"q(\d{1,2}(\.\d+)?|100)")
# Strengths that are no numbers in the text of a measure, and what the process takes for them.
STRENGTHS: dict[str, Any] = {"auto": "auto", "inf": math.inf}


class _Prior(Param):
    """The name of a prior, or a mapping of grade to probability."""

    def __init__(self) -> None:
        super().__init__(str, "auto", choices=PRIORS, desc="where grades of unjudged documents come from, or a dict")
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

    def __init__(self) -> None:
        super().__init__(str, "mean", desc="mean, median, mode, std, lo, hi, or a percentile such as q5")

    def coerce(self, name: str, value: Any) -> Any:
        if value in STATS:
            return value
        if isinstance(value, str) and _PERCENTILE.fullmatch(value):
            return "q" + repr(float(value[1:])).removesuffix(".0")
        raise ParameterError(
            f"{name}={value!r}: wanted one of {', '.join(map(repr, STATS))}, or a percentile such as 'q5'"
        )


class _Strength(Param):
    """A pseudo-count above 0, or a word for it."""

    def __init__(self) -> None:
        super().__init__(str, "auto", desc="how many documents the prior is worth; 'inf': it is known exactly")
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
    """The parameters of the process around those of a metric."""
    return {
        "cutoff": CUTOFF,
        "prior": _Prior(),
        "stat": _Stat(),
        **own,
        "method": Param(str, "auto", choices=METHODS, desc="how the distribution is computed"),
        "all_unjudged": Param(str, "auto", choices=ALL_UNJUDGED, desc="the run prior where nothing is judged"),
        "prior_strength": _Strength(),
        "level": Param(float, 0.9, low=0, high=1, desc="level of the interval of lo and hi"),
        "n_draws": Param(int, N_DRAWS, low=1, high=MOST_DRAWS, desc="draws of a topic, where draws are needed"),
        "seed": Param(int, 0, low=0, desc="decides the draws, together with the topic"),
    }


class Bootstrapped(Measure):
    """A statistic of a score's distribution over what unjudged documents could be.

    Subclasses declare the parameters of their metric, and make it. All statistics of one evaluation come from one
    computation.
    """

    @property
    def better(self) -> str | None:
        """Scores and their ends are better the higher, their spread is neither."""
        return None if self["stat"] == "std" else self.BETTER

    def metric(self) -> Metric:
        """What is scored."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse what the metric or the process refuse."""
        self.metric()
        self.process()

    def process(self) -> Process:
        """How unjudged documents are graded."""
        # The gain of nDCG is its metric's.
        given = {name: self[name] for name in Process.__dataclass_fields__ if name in self.SUPPORTED_PARAMS}
        given.pop("dcg", None)
        strength = given.pop("prior_strength")
        return Process(**given, prior_strength=STRENGTHS.get(strength, strength))

    def distribution(self, scoring: Scoring) -> BootstrapDistribution:
        """The distribution that all statistics with the same process and cutoff share."""

        def make() -> BootstrapDistribution:
            return BootstrapDistribution(self.judged(scoring), self.process(), self.metric())

        return scoring.memo(self.shared("stat", "level"), make)

    def judged(self, scoring: Scoring) -> JudgedTop:
        """The ranking that is scored, with its judgments."""
        return scoring.judged(self.cutoff, drop_negative=self.process().drops_negative)

    def values(self, scoring: Scoring) -> Floats:
        """The statistic of each topic."""
        distribution, stat = self.distribution(scoring), self["stat"]
        if stat in ("mean", "median", "mode", "std"):
            values: Floats = getattr(distribution, stat)
            return values
        if stat in ("lo", "hi"):
            return distribution.interval(self["level"])[stat == "hi"]
        return distribution.quantile(float(stat[1:]) / 100)


class _BNDCG(Bootstrapped):
    """Bootstrapped nDCG@k: a statistic of the score's distribution over what unjudged documents could be.

    ``nDCG = (DCG of the judged part + gains drawn from a prior) / IDCG@k(pool)``, in [0, 1]; see
    :func:`vbterrier.unjudged.bootstrap_distribution` for the process, its parameters and its source. With nothing
    unjudged it is ``nDCG@k``. All statistics of one evaluation come from one computation.

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
    pool (Sakai, AIRS 2004); see :class:`vbterrier.unjudged.metrics.Q`. The process and its statistics are those of
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


class _NDCGBound(Measure):
    """A bound of nDCG@k with unjudged documents: ``side`` lower or upper, ``kind`` naive, rbp, guaranteed or posthoc.

    See :func:`vbterrier.unjudged.bootstrap.ndcg_bound`; in [0, 1]. Neither the naive nor the rbp pair always holds the
    truth, ``guaranteed`` does (Fröbe et al., ECIR 2023, section 3.3); ``posthoc``, which is ours, does if only the
    retrieved documents are judged.

    Parameters
    ----------
    max_grade
        The highest grade there is; the highest of the given qrels by default. Give it when topics come in batches.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.NDCGBound(side="upper", kind="posthoc") @ 10
    NDCGBound(side='upper',kind='posthoc')@10
    """

    __name__ = "NDCGBound"
    NAME = __name__
    BETTER = None
    PRETTY_NAME = "Bound of nDCG"
    SHORT_DESC = "how low or high nDCG can be, whatever the unjudged documents are"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "side": Param(str, "lower", choices=SIDES, desc="which bound"),
        "kind": Param(str, "naive", choices=KINDS, desc="what it assumes"),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "max_grade": Param(int, low=0, desc="the highest grade there is"),
    }

    def values(self, scoring: Scoring) -> Floats:
        """The bound of each topic."""
        judged = scoring.judged(self.cutoff)
        return ndcg_bound(judged, self["side"], self["kind"], dcg=self["dcg"], max_grade=self.params.get("max_grade"))


class _Unjudged(Measure):
    """The share of unjudged documents among the first k retrieved, in [0, 1]; 0 where nothing was retrieved.

    ``1 - Judged@k`` of ir_measures on topics that retrieved something.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.Unjudged @ 10
    Unjudged@10
    """

    __name__ = "Unjudged"
    NAME = __name__
    BETTER = None
    PRETTY_NAME = "Share of unjudged documents"
    SHORT_DESC = "how much of the ranking a score knows nothing about"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF}

    def values(self, scoring: Scoring) -> Floats:
        """The share of each topic."""
        return scoring.judged(self.cutoff).unjudged_share()


NDCGBound = _NDCGBound()
Unjudged = _Unjudged()
