"""What measures over unjudged documents share: the parameters of the process, and its statistics."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError
from vbterrier.judgments.distribution import BootstrapDistribution
from vbterrier.judgments.priors import ALL_UNJUDGED, PRIORS
from vbterrier.judgments.process import MOST_DRAWS, N_DRAWS, Process
from vbterrier.kernels.grades import METHODS
from vbterrier.measures.base import Measure
from vbterrier.measures.params import CUTOFF, Param

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vbterrier.judgments.metrics import Metric
    from vbterrier.judgments.pool import JudgedTop
    from vbterrier.measures.scoring import Scoring

    Floats = NDArray[np.float64]

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

        return scoring.once(self.shared("stat", "level"), make)

    def judged(self, scoring: Scoring) -> JudgedTop:
        """The ranking that is scored, with its judgments."""
        return scoring.judged(self.cutoff, drop_negative=self.process().drops_negative)

    def values(self, scoring: Scoring) -> Floats:
        """The statistic of each topic."""
        law, stat = self.distribution(scoring), self["stat"]
        if stat in ("mean", "median", "mode", "std"):
            values: Floats = getattr(law, stat)
            return values
        if stat in ("lo", "hi"):
            return law.interval(self["level"])[stat == "hi"]
        return law.quantile(float(stat[1:]) / 100)
