"""Measures of rankings with unjudged documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import ParameterError
from vbterrier.judgments.bootstrap import COMPAT, DCG, MOST_DRAWS, N_DRAWS, BootstrapDistribution, Process
from vbterrier.judgments.bounds import KINDS, SIDES, ndcg_bound
from vbterrier.judgments.priors import ALL_UNJUDGED, PRIORS
from vbterrier.kernels.grades import METHODS
from vbterrier.measures.base import Measure
from vbterrier.measures.params import CUTOFF, Param

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vbterrier.measures.scoring import Scoring

    Floats = NDArray[np.float64]

STATS = ("mean", "median", "mode", "std", "lo", "hi")
_PERCENTILE = re.compile(r"q(\d{1,2}(\.\d+)?|100)")


class _Prior(Param):
    """The name of a prior, or a mapping of grade to probability."""

    def __init__(self) -> None:
        super().__init__(
            str, "pool+run", choices=PRIORS, desc="where grades of unjudged documents come from, or a dict"
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


class _BNDCG(Measure):
    """Bootstrapped nDCG@k: a statistic of the score's distribution over what unjudged documents could be.

    ``nDCG = (DCG of the judged part + gains drawn from a prior) / IDCG@k(pool)``, in [0, 1]; see
    :func:`vbterrier.bootstrap_distribution` for the process, its parameters and its source. With nothing unjudged it is
    ``nDCG@k``. All statistics of one evaluation come from one computation.

    Parameters
    ----------
    stat
        ``mean`` (default), ``median``, ``mode``, ``std``, a percentile ``q0`` to ``q100``, or ``lo`` and ``hi``, the
        ends of the central interval at ``level``.

    Notes
    -----
    In batches (``pt.Experiment(batch_size=...)``) ``compat="ecir23"`` sees the pool of a batch, not of all topics.

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
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "prior": _Prior(),
        "stat": _Stat(),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "method": Param(str, "auto", choices=METHODS, desc="how the distribution is computed"),
        "compat": Param(str, "", choices=COMPAT, desc="follow the code of the paper where it departs from it"),
        "all_unjudged": Param(str, "auto", choices=ALL_UNJUDGED, desc="the run prior where nothing is judged"),
        "level": Param(float, 0.9, low=0, high=1, desc="level of the interval of lo and hi"),
        "n_draws": Param(int, N_DRAWS, low=1, high=MOST_DRAWS, desc="draws of a topic, where draws are needed"),
        "seed": Param(int, 0, low=0, desc="decides the draws, together with the topic"),
    }

    def distribution(self, scoring: Scoring) -> BootstrapDistribution:
        """The distribution that all statistics with the same process and cutoff share."""
        process = Process(**{name: self[name] for name in Process.__dataclass_fields__})

        def make() -> BootstrapDistribution:
            return BootstrapDistribution(scoring.judged(self.cutoff, drop_negative=process.drops_negative), process)

        return scoring.once(self.shared("stat", "level"), make)

    def values(self, scoring: Scoring) -> Floats:
        """The statistic of each topic."""
        law, stat = self.distribution(scoring), self["stat"]
        if stat in ("mean", "median", "mode", "std"):
            values: Floats = getattr(law, stat)
            return values
        if stat in ("lo", "hi"):
            return law.interval(self["level"])[stat == "hi"]
        return law.quantile(float(stat[1:]) / 100)


class _NDCGBound(Measure):
    """A bound of nDCG@k with unjudged documents: ``side`` lower or upper, ``kind`` naive, rbp, guaranteed or posthoc.

    See :func:`vbterrier.judgments.bounds.ndcg_bound`; in [0, 1]. Neither the naive nor the rbp pair always holds the
    truth; ``guaranteed`` and ``posthoc`` do (Fröbe et al., ECIR 2023, section 3.3).

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
    PRETTY_NAME = "Share of unjudged documents"
    SHORT_DESC = "how much of the ranking a score knows nothing about"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF}

    def values(self, scoring: Scoring) -> Floats:
        """The share of each topic."""
        return scoring.judged(self.cutoff).unjudged_share()


BNDCG = _BNDCG()
NDCGBound = _NDCGBound()
Unjudged = _Unjudged()
