"""Base class and parameters of the measures."""

from __future__ import annotations

import logging
import math
import operator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ir_measures
import numpy as np

from vbterrier.errors import InputError, ParameterError, VBTerrierError, examples, nearest
from vbterrier.hosts.ir_measures import Provider, registered
from vbterrier.log import timed
from vbterrier.measures.target import EvaluationTarget, Scoring, warn_of_id_mismatch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.frames.ranking import Run


_NOTHING = object()
# Limits from here on are there to refuse what no memory holds, and are no news to anyone.
_ENDLESS = 1e6
MOST_RANKS = 1_000_000


class Param(ir_measures.ParamInfo):  # type: ignore[misc]
    """One parameter of a measure.

    Parameters
    ----------
    dtype
        ``str``, ``int``, ``float`` or ``bool``.
    default
        The value when it is not given; parameters without one are left out of the measure altogether.
    choices
        Legal values.
    low, high
        Legal range of numbers, both included.
    desc
        A line for the documentation.
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
        given = {} if default is _NOTHING else {"default": default}
        super().__init__(dtype=dtype, desc=desc, **({"choices": choices} if choices else {}), **given)
        self.legal, self.low, self.high = choices, low, high

    def coerce(self, name: str, value: Any) -> Any:
        """The canonical form of a value: 1 and 1.0 are the same alpha.

        Raises
        ------
        ParameterError
            Another type, a value outside the range or the choices.
        """
        try:
            made = self._made(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"{name}={value!r}: wanted {self._wanted()}") from error
        if self.legal and made not in self.legal:
            raise ParameterError(
                f"{name}={value!r}: wanted {self._wanted()}.{nearest(str(value), map(str, self.legal))}"
            )
        if isinstance(made, (int, float)) and not (math.isfinite(made) and self._in_range(made)):
            raise ParameterError(f"{name}={value!r}: wanted {self._wanted()}")
        return made

    def _made(self, value: Any) -> Any:
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

    def _in_range(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _wanted(self) -> str:
        if self.legal:
            return f"one of {', '.join(map(repr, self.legal))}"
        kind = {str: "a text", int: "a whole number", float: "a number", bool: "True or False"}[self.dtype]
        if self.low is not None and self.high is not None and self.high < _ENDLESS:
            return f"{kind} from {self.low:g} to {self.high:g}"
        return kind if self.low is None else f"{kind} of at least {self.low:g}"


CUTOFF = Param(int, low=1, high=MOST_RANKS, desc="ranking cutoff k, as in @10; the whole ranking without it")


_LOG = logging.getLogger(__name__)

UNDEFINED = Param(
    str, "raise", choices=("raise", "zero", "skip"), desc="a topic without a value: an error, 0, or left out"
)


class Measure(ir_measures.Measure):  # type: ignore[misc]
    """A measure of this package: a declaration of parameters over a computation of the floor below.

    Subclasses declare ``SUPPORTED_PARAMS`` and ``values``. Parameters are coerced and put in the order of the
    declaration, so that equal measures have equal text.
    """

    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {}
    RUN_INPUTS: ClassVar[list[str]] = ["query_id", "doc_id", "score"]
    QREL_INPUTS: ClassVar[list[str]] = ["query_id", "doc_id", "relevance"]
    # Which values are better: "higher", "lower", or neither.
    BETTER: ClassVar[str | None] = "higher"

    def __init__(self, **params: Any) -> None:
        declared = self.SUPPORTED_PARAMS
        unknown = [name for name in params if name not in declared]
        if unknown:
            raise ParameterError(
                f"{self.__name__} has no parameter {unknown[0]!r}; it has {', '.join(declared)}."
                f"{nearest(unknown[0], declared)}"
            )
        given = {name: value for name, value in params.items() if value is not None}
        super().__init__(**{name: declared[name].coerce(name, given[name]) for name in declared if name in given})
        self.check()

    def check(self) -> None:
        """Refuse parameters that do not go together; measures override it."""

    @property
    def cutoff(self) -> int | None:
        """The cutoff k, ``None`` for whole rankings."""
        k: int | None = self.params.get("cutoff")
        return k

    @property
    def better(self) -> str | None:
        """Which values are better, ``"higher"`` or ``"lower"``; ``None`` where a value alone is neither."""
        return self.BETTER

    @property
    def depth(self) -> int | None:
        """How many ranks the measure looks at, ``None`` for all."""
        return self.cutoff

    @property
    def DEFAULT(self) -> float:  # noqa: N802 - the host's name
        """What hosts fill in for topics that a measure did not yield: the score of an empty ranking.

        Raises
        ------
        VBTerrierError
            The topics were left out on purpose: a 0 in their place would be a wrong number.
        """
        if self.params.get("undefined") == "skip":
            raise VBTerrierError(
                f"{self}: undefined='skip' leaves topics out, which ir_measures would fill with 0 when measures of "
                "others are in the same call; evaluate it in a call of its own, or use undefined='zero'"
            )
        return 0.0

    def values(self, scoring: Scoring) -> NDArray[np.float64]:
        """The value of each topic of the target, NaN where there is none; shape (n_topics,)."""
        raise NotImplementedError

    def defined(self, scoring: Scoring) -> dict[str, float]:
        """The value of each topic, after what ``undefined`` asks for topics that have none.

        Raises
        ------
        InputError
            Topics without a value, unless asked to score them 0 or leave them out.
        """
        values = self.values(scoring)
        missing = np.isnan(values)
        if missing.any():
            policy = self["undefined"]
            if policy == "raise":
                without = [scoring.target.topics[place] for place in np.flatnonzero(missing)]
                raise InputError(
                    f"{self} is undefined for {len(without)} topics ({examples(without)}); ask for undefined='zero' or "
                    "'skip'"
                )
            if policy == "zero":
                values = np.where(missing, 0.0, values)
        return {
            topic: value
            for topic, value in zip(scoring.target.topics, values.tolist(), strict=True)
            if not np.isnan(value)
        }

    def shared(self, *own: str) -> Hashable:
        """A key for what this measure shares with those that differ in some parameters only."""
        return (type(self), repr(type(self)(**{name: value for name, value in self.params.items() if name not in own})))

    def runtime_impl(self, qrels: Any, run: Any) -> Iterator[ir_measures.Metric]:
        """Evaluate through the runtime provider of ir_measures, for pipelines without our own."""
        yield from PROVIDER.iter_calc([self], qrels, run)

    @cached_property
    def _written(self) -> str:
        own = ",".join(
            f"{name}={_text(value)}"
            for name, value in self.params.items()
            if name != "cutoff" and value != self.SUPPORTED_PARAMS[name].default
        )
        text = f"{self.__name__}({own})" if own else str(self.__name__)
        return f"{text}@{self.cutoff}" if self.cutoff is not None else text

    def __repr__(self) -> str:
        # Hosts hash and compare measures by it, once for every value.
        return self._written

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, Any]]]:
        return registered, (self.NAME, self.params)

    # Measure compares and hashes by repr; __eq__ here keeps __hash__ with it.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ir_measures.Measure) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{value[key]!r}" for key in sorted(value)) + "}"
    return repr(value)


def evaluate(measures: Iterable[Measure], target: EvaluationTarget, run: Run) -> Iterator[tuple[str, Measure, float]]:
    """Topic, measure and value: every measure for every topic of the target, in the order of the measures' text."""
    ordered = sorted(measures, key=repr)
    scoring = Scoring(target, run, deepest(ordered))
    for measure in ordered:
        with timed(_LOG, "evaluated %s on %s", measure, run.name, level=logging.DEBUG):
            values = measure.defined(scoring)
        if len(ordered) > 1 and len(values) < len(target.topics):
            # pt.Experiment wants every measure for every topic, and breaks without a word on those left out.
            _ = measure.DEFAULT
        for topic, value in values.items():
            yield topic, measure, value


def deepest(measures: Iterable[ir_measures.Measure]) -> int | None:
    """The most ranks that a measure looks at, ``None`` if one looks at all."""
    depths = [getattr(measure, "depth", measure.params.get("cutoff")) for measure in measures]
    return None if None in depths else max(depths)


def _prepared(qrels: pd.DataFrame) -> tuple[list[str], Any]:
    """Topics of the qrels, and the function that evaluates runs against them."""
    target = EvaluationTarget(qrels)

    def values(measures: list[Measure], run: Run) -> Iterator[tuple[str, Measure, float]]:
        warn_of_id_mismatch(target, run, only_misspelt=True)
        yield from evaluate(measures, target, run)

    return target.topics, values


PROVIDER = Provider(Measure, _prepared)
