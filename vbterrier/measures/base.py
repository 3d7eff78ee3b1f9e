"""Base class and parameters of the measures."""

from __future__ import annotations

import logging
import math
import operator
import time
from typing import TYPE_CHECKING, Any, ClassVar

import ir_measures
import numpy as np

from vbterrier.errors import InputError, ParameterError, agreeing, examples, excerpt, nearest, printable
from vbterrier.frames.ranges import UNKNOWN
from vbterrier.hosts.ir_measures import Provider, registered_measure
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.rankings import MOST_RANKS
from vbterrier.measures.target import (
    EvaluationTarget,
    Scoring,
    check_subtopics,
    deepest,
    warn_of_few_non_relevant,
    warn_of_id_mismatch,
    warn_of_labels,
    warn_of_missing_topics,
)

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.fitted import EvidenceModel


_NOTHING = object()
# Limits from here on only guard against running out of memory; messages mention them to those who reach them.
_MIN_MEMORY_LIMIT = 1e6


class Param(ir_measures.ParamInfo):  # type: ignore[misc]
    """One parameter of a measure; without a default, it is absent from the measure unless given.

    Values are one of ``choices``, or numbers from ``low`` to ``high``, both included; ``desc`` documents it in a line.
    """

    def __init__(
        self,
        dtype: type,
        default: Any = _NOTHING,
        *,
        choices: tuple[Any, ...] = (),
        low: float | None = None,
        high: float | None = None,
        desc: str = "",
    ) -> None:
        arguments = {} if default is _NOTHING else {"default": default}
        super().__init__(dtype=dtype, desc=desc, **({"choices": choices} if choices else {}), **arguments)
        self.legal, self.low, self.high = choices, low, high

    def coerce(self, name: str, value: Any) -> Any:
        """Return the canonical form of a legal value: 1 and 1.0 are the same alpha."""
        try:
            made = self._cast_value(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"{name}={excerpt(value)}: wanted {self._requirement()}") from error
        if self.legal and made not in self.legal:
            raise ParameterError(
                f"{name}={excerpt(value)}: wanted {self._requirement()}.{nearest(str(value), map(str, self.legal))}"
            )
        low, high = (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)
        if isinstance(made, (int, float)) and not (math.isfinite(made) and low <= made <= high):
            raise ParameterError(f"{name}={excerpt(value)}: wanted {self._requirement(too_large=made > high)}")
        return made

    def _cast_value(self, value: Any) -> Any:
        if self.dtype is bool or isinstance(value, bool):
            if not (self.dtype is bool and isinstance(value, bool)):
                raise TypeError
            return value
        if self.dtype is int:
            return operator.index(value)
        if self.dtype is str and not isinstance(value, str):
            raise TypeError
        # -0.0 is 0.0.
        return self.dtype(value) + 0.0 if self.dtype is float else self.dtype(value)

    def _requirement(self, *, too_large: bool = False) -> str:
        if self.legal:
            return f"one of {', '.join(map(repr, self.legal))}"
        kind = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}[self.dtype]
        if self.low is not None and self.high is not None and (too_large or self.high < _MIN_MEMORY_LIMIT):
            return f"{kind} from {self.low:g} to {self.high:{',' if self.dtype is int else 'g'}}"
        return kind if self.low is None else f"{kind} of at least {self.low:g}"


CUTOFF = Param(int, low=1, high=MOST_RANKS, desc="ranking cutoff k, as in @10; the whole ranking without it")


_LOG = logging.getLogger(__name__)

_POLICIES = ("raise", "zero", "skip")
_DESC = "a topic without a value: an error, 0, or left out of the mean (not in hosts that average all topics)"
UNDEFINED = Param(str, "raise", choices=_POLICIES, desc=_DESC)
# Measures of properties that many pools lack, such as non-relevant documents.
SKIP_UNDEFINED = Param(str, "skip", choices=_POLICIES, desc=_DESC)


class Measure(ir_measures.Measure):  # type: ignore[misc]
    """Base class of the measures of this package.

    Subclasses declare ``SUPPORTED_PARAMS`` and implement ``values``. Parameters are coerced and put in the order of
    their declaration, so that equal measures have equal text.
    """

    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {}
    RUN_INPUTS: ClassVar[list[str]] = ["query_id", "doc_id", "score"]
    QREL_INPUTS: ClassVar[list[str]] = ["query_id", "doc_id", "relevance"]
    # Better values: "higher", "lower", or None for neither.
    BETTER: ClassVar[str | None] = "higher"
    # The smallest and the largest possible score.
    RANGE: ClassVar[tuple[float, float]] = UNKNOWN
    # Values of single topics are parts of a ratio between 0 and 1, and may be outside its range.
    IS_LINEARISED: ClassVar[bool] = False
    # The value of a collection is a ratio of means, and no mean of those of topics.
    IS_RATIO_OF_MEANS: ClassVar[bool] = False
    # The value of a topic depends on all topics: it is its part of the value of the collection.
    IS_OF_COLLECTION: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The class of a measure is private and named after it: _RelCov is RelCov.
        cls.NAME = cls.__qualname__.rpartition(".")[2].removeprefix("_")

    @classmethod
    def score_range(cls, measure: str) -> tuple[float, float]:  # noqa: ARG003 - ranges may depend on parameters
        """Return the smallest and the largest possible score of a measure of this class, given as text."""
        return cls.RANGE

    @property
    def __name__(self) -> str:
        """The name, as measures of ir_measures have it."""
        return str(self.NAME)

    def __init__(self, **params: Any) -> None:
        declared = self.SUPPORTED_PARAMS
        unknown = [name for name in params if name not in declared]
        if unknown:
            raise ParameterError(
                f"{self.NAME} has no parameter {unknown[0]!r}; it has {', '.join(declared)}."
                f"{nearest(unknown[0], declared)}"
            )
        arguments = {name: value for name, value in params.items() if value is not None}
        super().__init__(
            **{name: declared[name].coerce(name, arguments[name]) for name in declared if name in arguments}
        )
        # Hosts hash and compare measures by their text for every value.
        self._written = self._text()
        self.check()

    def check(self) -> None:
        """Refuse incompatible parameters; subclasses may override it."""

    @property
    def cutoff(self) -> int | None:
        """Rank cutoff, ``None`` for whole rankings."""
        k: int | None = self.params.get("cutoff")
        return k

    @property
    def better(self) -> str | None:
        """Direction of better values: ``"higher"``, ``"lower"``, or ``None`` if a value alone is neither."""
        return self.BETTER

    @property
    def reads_subtopics(self) -> bool:
        """True if the intents of the measure are the subtopics of diversity judgments."""
        return False

    @property
    def draws_from_judgments(self) -> bool:
        """True if grades of unjudged documents are drawn from the shares of grades in the judgments."""
        return False

    @property
    def depth(self) -> int | None:
        """Number of ranks that the measure depends on, ``None`` for all."""
        return self.cutoff

    @property
    def is_topicwise(self) -> bool:
        """True if the value of a topic depends on no other topic, also for whole rankings."""
        return False

    def prepare(self, target: EvaluationTarget) -> None:
        """Compute what the measure needs of a target, once for all runs; subclasses may override it."""

    def values(self, scoring: Scoring) -> NDArray[np.float64]:
        """Value of each topic of the target, NaN for undefined values; shape (n_topics,)."""
        raise NotImplementedError

    def defined_values(self, scoring: Scoring) -> dict[str, float]:
        """Value of each topic, with the parameter ``undefined`` applied to topics without a value."""
        values = self.values(scoring)
        missing = np.isnan(values)
        if missing.any():
            policy = self["undefined"]
            if policy == "raise":
                without = [scoring.target.topics[place] for place in np.flatnonzero(missing)]
                raise InputError(
                    f"{self} is undefined for {agreeing(len(without), 'topics')} "
                    f"({examples(without)}); ask for undefined='zero' or "
                    "'skip'"
                )
            if policy == "zero":
                values = np.where(missing, 0.0, values)
        pairs = zip(scoring.target.topics, values.tolist(), strict=True)
        # NaN alone differs from itself.
        return {topic: value for topic, value in pairs if value == value}  # noqa: PLR0124

    def shared_key(self, *ignored: str) -> Hashable:
        """Key of the results that this measure shares with measures that differ only in the parameters ``ignored``."""
        return (type(self), self._text(leave_out=ignored))

    def runtime_impl(self, qrels: Any, run: Any) -> Iterator[ir_measures.Metric]:
        """Evaluate through the runtime provider of ir_measures, in pipelines without the provider of this package."""
        yield from PROVIDER.iter_calc([self], qrels, run)

    def _text(self, *, leave_out: Container[str] = ()) -> str:
        """The name, the parameters that are not the default, and the cutoff."""
        parameters = []
        for name, value in self.params.items():
            if name != "cutoff" and name not in leave_out and value != self.SUPPORTED_PARAMS[name].default:
                text = repr(value)
                if isinstance(value, dict):
                    text = "{" + ",".join(f"{key!r}:{value[key]!r}" for key in sorted(value)) + "}"
                parameters.append(f"{name}={text}")
        text = f"{self.NAME}({','.join(parameters)})" if parameters else str(self.NAME)
        return f"{text}@{self.cutoff}" if self.cutoff is not None else text

    def __repr__(self) -> str:
        return self._written

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, Any]]]:
        return registered_measure, (self.NAME, self.params)

    # ir_measures compares and hashes measures by repr; a class that defines __eq__ must define __hash__.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ir_measures.Measure) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self._written)


def evaluate(
    measures: Sequence[Measure], target: EvaluationTarget, run: Run, models: Mapping[str, EvidenceModel] | None = None
) -> Iterator[tuple[str, Measure, float]]:
    """Yield topic, measure and value for every measure and topic of the target, measures sorted by their text.

    ``models`` are fitted models of unjudged documents, see :class:`vbterrier.measures.target.Scoring`.
    """
    for measure, by_topic in values_by_topic(measures, Scoring(target, run, deepest(measures), models)):
        for topic, value in by_topic.items():
            yield topic, measure, value


@with_usual_errors
def values_by_topic(measures: Iterable[Measure], scoring: Scoring) -> list[tuple[Measure, dict[str, float]]]:
    """Return measures, sorted by their text, each with its values by topic."""
    ordered, values = sorted(measures, key=repr), {}
    # Means follow from the computation of variances and standard deviations, of which neither direction is better.
    for measure in sorted(ordered, key=lambda measure: measure.better is not None):
        started = time.perf_counter()
        values[measure] = measure.defined_values(scoring)
        if _LOG.isEnabledFor(logging.DEBUG):
            seconds = time.perf_counter() - started
            _LOG.debug("evaluated %s on %s (%.2f s)", measure, printable(scoring.run.name), seconds)
    return [(measure, values[measure]) for measure in ordered]


def _topics_and_evaluator(measures: Iterable[Measure], qrels: pd.DataFrame) -> tuple[list[str], Any]:
    """Topics of the qrels, and the function that evaluates runs against them, for hosts that average all topics."""
    for measure in measures:
        if measure.IS_OF_COLLECTION:
            raise InputError(
                f"{measure}: the value of a topic depends on all topics, of which this host may select some; use "
                "vbterrier.score, vbterrier.Experiment or vbterrier.linking.linking_report"
            )
    if not len(qrels) and len(qrels.columns):
        raise InputError(
            "qrels: no rows; a run is evaluated over the topics of this frame. If pt.Experiment(batch_size=...) made a "
            "batch without judged topics, use vbterrier.Experiment, or filter_by_qrels=True"
        )
    target = EvaluationTarget(qrels)
    warn_of_labels(target)
    if any(measure.reads_subtopics for measure in measures):
        check_subtopics(target, is_part=True)
    for measure in measures:
        measure.prepare(target)
    warn_of_few_non_relevant(measures, target)

    def values(measures: list[Measure], run: Run) -> Iterator[tuple[str, Measure, float]]:
        scoring = Scoring(target, run, deepest(measures))
        results = values_by_topic(measures, scoring)
        if scoring.reads_judgments or not scoring.has_judged:
            warn_of_id_mismatch(target, run, only_misspelt=True, all_topics=scoring.reads_judgments)
        warn_of_missing_topics(target, run)
        run.warn_of_ranks()
        for measure, by_topic in results:
            if len(by_topic) < len(target.topics):
                without = [topic for topic in target.topics if topic not in by_topic]
                raise InputError(
                    f"{measure} is undefined for {len(without)} of {len(target.topics)} topics ({examples(without)}), "
                    "and this host averages all topics: use vbterrier.Experiment or vbterrier.score, which leave them "
                    "out and count them, or undefined='zero'"
                )
            yield from ((topic, measure, value) for topic, value in by_topic.items())

    return target.topics, values


PROVIDER = Provider(Measure, _topics_and_evaluator)
