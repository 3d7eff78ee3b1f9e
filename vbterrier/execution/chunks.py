"""Evaluation of one chunk of whole topics, and registered sets that workers need."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.frames.named import register_intents, register_tags, registered
from vbterrier.frames.ranking import Run
from vbterrier.measures.base import Measure, deepest, evaluate
from vbterrier.measures.external import external_values, is_topicwise, n_decisive
from vbterrier.measures.intents import IntentMeasure
from vbterrier.measures.linking import LinkingMeasure
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.unjudged import Bootstrapped, Unjudged
from vbterrier.unjudged.learned_prior import REACH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import ir_measures

    Sets = Mapping[tuple[str, str], pd.DataFrame]
    T = TypeVar("T")


_REGISTER = {"intents": register_intents, "tags": register_tags}


def registered_sets(measures: Iterable[ir_measures.Measure]) -> Sets:
    """Intents and tags that measures know by name, by kind and name."""
    given = {(kind, measure.params.get(kind)) for measure in measures for kind in _REGISTER}
    found = {(kind, name): registered(kind, name) for kind, name in given}
    return {key: frame for key, frame in found.items() if frame is not None}


def register(sets: Sets) -> None:
    """On a worker: make them known."""
    for (kind, name), frame in sets.items():
        _REGISTER[kind](name, frame, replace=True)


# Measures of others that look no deeper than this are evaluated in the end, on what is kept of all topics.
SHALLOW = 100
# No topic of a file is called so.
_NOBODYS = "\0"
_TEXT = {pa.large_string(): pd.StringDtype("pyarrow")}


@dataclass(frozen=True)
class MeasurePlan:
    """Which measures are evaluated when.

    Parameters
    ----------
    last
        Measures of the first documents: all topics together, on the rows that are kept.
    depth
        How many documents they look at.
    at_once
        Measures of whole rankings: each topic by itself, as it comes.
    """

    last: tuple[ir_measures.Measure, ...]
    depth: int
    at_once: tuple[ir_measures.Measure, ...]


def planned(measures: Sequence[ir_measures.Measure]) -> MeasurePlan:
    """Tell measures that the first documents decide from those of whole rankings.

    Raises
    ------
    ParameterError
        A measure that needs the whole rankings of all topics at once.
    """
    depths = {measure: _depth(measure) for measure in measures}
    for measure, depth in depths.items():
        if isinstance(measure, LinkingMeasure):
            raise ParameterError(f"{measure}: an answer a query fits into memory; leave out memory= and resume=")
        if depth is None and isinstance(measure, Measure):
            _require_topicwise(measure)
    last = tuple(measure for measure, depth in depths.items() if depth is not None)
    at_once = tuple(measure for measure, depth in depths.items() if depth is None)
    return MeasurePlan(last, max((depths[measure] or 1 for measure in last), default=1), at_once)


def _depth(measure: ir_measures.Measure) -> int | None:
    """How many of the first documents decide what a measure is, ``None`` where it is better evaluated at once."""
    if not isinstance(measure, Measure):
        n = n_decisive(measure)
        return n if n is not None and n <= SHALLOW else None
    depth = measure.depth
    learned = isinstance(measure, Bootstrapped) and measure.process().chosen_prior == "learned"
    return depth * REACH if depth is not None and learned else depth


def _require_topicwise(measure: Measure) -> None:
    """Refuse a measure of whole rankings whose value of a topic depends on others.

    Raises
    ------
    ParameterError
        Says what to ask for.
    """
    if isinstance(measure, Bootstrapped):
        process, graded = measure.process(), measure.NAME == "BRBP" and not measure["rel"]
        if process.compat or process.chosen_prior in {"learned", "hierarchical"}:
            remedy = "give a cutoff, as @100, or prior='pool', which is of each topic alone"
        elif graded and measure.params.get("max_grade") is None:
            remedy = "give a cutoff, as @100, or max_grade="
        else:
            return
    elif isinstance(measure, (IntentMeasure, type(Unjudged))):
        return
    else:
        remedy = "give a cutoff, as @100"
    raise ParameterError(
        f"{measure}: looks at the whole rankings of all topics at once, which memory= is there to avoid; {remedy}, or "
        "leave out memory= and resume="
    )


@dataclass(frozen=True, eq=False)
class Part:
    """What a chunk of whole topics comes to.

    Parameters
    ----------
    kept
        The first rows of each topic, in trec_eval's order.
    values
        For each measure that is evaluated at once, as text, the values of the chunk's topics that are judged.
    n_dropped
        How many repeated documents were left out.
    tied
        Of the places that measures look at, how many share their score, how many there are, and in how many ranks;
        ``None`` where nothing is evaluated at once.
    told
        What was warned of.
    """

    kept: Any
    values: dict[str, dict[str, float]]
    n_dropped: int
    tied: tuple[int, int, int] | None
    told: list[str]


@dataclass(frozen=True)
class Work:
    """What is done with each chunk: a function of the chunk alone, which pickles.

    Parameters
    ----------
    name
        What messages call the run.
    plan
        What is asked for.
    target
        What runs are evaluated against.
    duplicates
        As in :func:`vbterrier.score`.
    longest
        The length of the longest list of the run. Rankings are laid out that wide, as in memory: sums over ranks then
        add up in the same order, to the last digit.
    """

    name: str
    plan: MeasurePlan
    target: EvaluationTarget
    duplicates: str = "error"
    longest: int = 0

    def __call__(self, table: Any) -> Part:
        """What a table of whole topics comes to."""
        frame = table.to_pandas(types_mapper=_TEXT.get)
        run, _ = heard(lambda: Run(frame, name=self.name, duplicates=self.duplicates))
        n_dropped = len(table) - len(run)
        rows, starts, sizes = run.ordered(self.plan.depth + 1)
        rank = np.arange(len(rows)) - np.repeat(starts, sizes)
        # One more, so that a tie with the last place shows.
        first = run.frame.iloc[rows[rank <= self.plan.depth]]
        kept = pa.Table.from_pandas(first, schema=table.schema, preserve_index=False)
        values, tied, told = self._at_once(run) if self.plan.at_once else ({}, None, [])
        return Part(kept, values, n_dropped, tied, told)

    def _at_once(self, run: Run) -> tuple[dict[str, dict[str, float]], tuple[int, int, int], list[str]]:
        """Values of measures of whole rankings, ties among what they look at, and what was warned of."""
        top = run.top(deepest(self.plan.at_once))
        _, of_ties = heard(lambda: top.warn_of_ties(run.name))
        values, told = heard(lambda: values_of(self.plan.at_once, self.target, run, set(run.topics), self.longest))
        tied = top.n_tied, int(np.count_nonzero(top.rows >= 0)), top.depth
        # Ties are told of once for all chunks.
        return values, tied, [message for message in told if message not in of_ties]


def heard(call: Callable[[], T]) -> tuple[T, list[str]]:
    """What a call gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        given = call()
    return given, [str(one.message) for one in said if issubclass(one.category, DegenerateWarning)]


def values_of(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run, topics: set[str], longest: int = 0
) -> dict[str, dict[str, float]]:
    """Values of some topics of the target, for measures whose value of a topic depends on that topic alone."""
    asked = topics.intersection(target.topics)
    found: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    if not asked:
        return found
    ours = [measure for measure in measures if isinstance(measure, Measure)]
    theirs = [measure for measure in measures if not isinstance(measure, Measure)]
    run, own = run.only(asked), _of_topics(target, asked)
    rows = _evaluated(ours, own, run, longest) if ours else []
    # What is not known to look at one topic alone gets the judgments of all, and so does what is made of intents.
    alone = target.intents is None and all(map(is_topicwise, theirs))
    rows += external_values(theirs, own if alone else target, run, warned=True)
    for topic, measure, value in rows:
        if topic in asked:
            found[str(measure)][topic] = value
    return found


def _evaluated(
    measures: Sequence[Measure], target: EvaluationTarget, run: Run, longest: int
) -> list[tuple[str, ir_measures.Measure, float]]:
    """Values of our measures, with a list beside those of the topics that is as long as the longest of all chunks."""
    if not len(run) or len(run) >= longest * len(run.topics):
        return list(evaluate(measures, target, run))
    # It has the other columns of a row that is in order.
    beside = run.frame.iloc[np.zeros(longest, dtype=np.int64)].assign(
        qid=_NOBODYS, docno=np.arange(longest).astype(str), score=-np.arange(longest, dtype=np.float64)
    )
    wide = Run(pd.concat([run.frame, beside.astype(run.frame.dtypes)], ignore_index=True), name=run.name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* topics are not in ", DegenerateWarning)
        return list(evaluate(measures, target, wide))


def _of_topics(target: EvaluationTarget, topics: set[str]) -> EvaluationTarget:
    """The target without its other topics."""
    names, topic = target.qid.codes()
    kept = np.array([name in topics for name in names], dtype=bool)[topic]
    return EvaluationTarget(target.frame[kept].reset_index(drop=True), intents=target.intents, tags=target.tags)
