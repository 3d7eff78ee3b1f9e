"""Evaluation of one chunk of whole topics, and registered intents and tags for workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import ParameterError, heard, warn
from vbterrier.frames.named import register_intents, register_tags, registered_frame
from vbterrier.frames.ranking import Run
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values, is_topicwise, n_decisive
from vbterrier.measures.linking import LinkingMeasure
from vbterrier.measures.target import CHECKED_RANKS, deepest
from vbterrier.measures.unjudged import Estimated
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures

    from vbterrier.measures.target import EvaluationTarget

    Sets = Mapping[tuple[str, str], pd.DataFrame]


_REGISTER = {"intents": register_intents, "tags": register_tags}


def registered_sets(measures: Iterable[ir_measures.Measure]) -> Sets:
    """Return intents and tags that measures refer to by name, by kind and name."""
    keys = {(kind, measure.params.get(kind)) for measure in measures for kind in _REGISTER}
    frames = {(kind, name): registered_frame(kind, name) for kind, name in keys}
    return {key: frame for key, frame in frames.items() if frame is not None}


def register(sets: Sets) -> None:
    """Register intents and tags on a worker."""
    for (kind, name), frame in sets.items():
        _REGISTER[kind](name, frame, replace=True)


# External measures up to this cutoff are evaluated at the end, on the kept rows of all topics.
MAX_KEPT_CUTOFF = 100
# Topics in files have no NUL.
_PADDING = "\0"
_TEXT = {pa.large_string(): pd.StringDtype("pyarrow")}


@dataclass(frozen=True)
class MeasurePlan:
    """Measures with a cutoff, evaluated ``last`` on the first ``depth`` rows of all topics, and the others.

    ``at_once``: measures of whole rankings, evaluated for each topic separately as it is read.
    """

    last: tuple[ir_measures.Measure, ...]
    depth: int
    at_once: tuple[ir_measures.Measure, ...]


def measure_plan(measures: Sequence[ir_measures.Measure]) -> MeasurePlan:
    """Return a plan that separates measures with a cutoff from measures of whole rankings.

    Raises ParameterError: a measure that needs the whole rankings of all topics at once.
    """
    depths = {measure: _depth(measure) for measure in measures}
    for measure, depth in depths.items():
        if isinstance(measure, LinkingMeasure):
            raise ParameterError(f"{measure}: one answer of each query fits into memory; leave out memory= and resume=")
        if depth is None and isinstance(measure, Measure):
            _require_topicwise(measure)
    last = tuple(measure for measure, depth in depths.items() if depth is not None)
    at_once = tuple(measure for measure, depth in depths.items() if depth is None)
    return MeasurePlan(last, max((depths[measure] or 1 for measure in last), default=1), at_once)


def _depth(measure: ir_measures.Measure) -> int | None:
    """Number of documents that decide a measure, ``None`` for measures that are evaluated chunk by chunk."""
    if not isinstance(measure, Measure):
        n = n_decisive(measure)
        return n if n is not None and n <= MAX_KEPT_CUTOFF else None
    depth = measure.depth
    return max(depth, DEFAULT_POOL_CUTOFF) if depth is not None and isinstance(measure, Estimated) else depth


def _require_topicwise(measure: Measure) -> None:
    """Refuse a measure of whole rankings whose value for a topic depends on other topics."""
    if measure.is_topicwise:
        return
    raise ParameterError(
        f"{measure}: looks at the whole rankings of all topics at once, which memory= is there to avoid; give a "
        "cutoff, as @100, or leave out memory= and resume="
    )


@dataclass(frozen=True, eq=False)
class Part:
    """Result of a chunk of whole topics: the first rows of each, in the order of trec_eval, values and warnings.

    ``values``: by text of the measure and judged topic, for measures evaluated chunk by chunk. ``tied``: number of tied
    documents, of documents and of ranks that these measures depend on; ``None`` without such measures.
    ``messages``: those of warnings.
    """

    kept: Any
    values: dict[str, dict[str, float]]
    n_dropped: int
    tied: tuple[int, int, int] | None
    messages: list[str]


@dataclass(frozen=True)
class Work:
    """Evaluation of a chunk: a function of the chunk alone that can be pickled. ``name``: the run in messages.

    ``longest``: the length of the longest list of the run, to which rankings are padded, as in memory, so that sums
    over ranks agree to the last digit.
    """

    name: str
    plan: MeasurePlan
    target: EvaluationTarget
    duplicates: str = "error"
    longest: int = 0

    def __call__(self, table: Any) -> Part:
        """Evaluate a table of whole topics."""
        frame = table.to_pandas(types_mapper=_TEXT.get)
        run, _ = heard(lambda: Run(frame, name=self.name, duplicates=self.duplicates))
        n_dropped = len(table) - len(run)
        run.refuse_duplicates(self.plan.depth)
        # One row more, to detect a tie with the last one, and those that show whether ids of documents match.
        n_kept = max(self.plan.depth + 1, CHECKED_RANKS)
        rows, starts, sizes = run.ordered_rows(n_kept)
        rank = np.arange(len(rows)) - np.repeat(starts, sizes)
        first = run.frame.iloc[rows[rank < n_kept]]
        kept = pa.Table.from_pandas(first, schema=table.schema, preserve_index=False)
        values, tied, messages = self._at_once(run) if self.plan.at_once else ({}, None, [])
        return Part(kept, values, n_dropped, tied, messages)

    def _at_once(self, run: Run) -> tuple[dict[str, dict[str, float]], tuple[int, int, int], list[str]]:
        """Values of measures of whole rankings, tied documents, and warnings."""
        top = run.top(deepest(self.plan.at_once))
        _, of_ties = heard(lambda: top.warn_of_ties(run.name))
        values, messages = heard(
            lambda: topic_values(self.plan.at_once, self.target, run, set(run.topics), self.longest)
        )
        tied = top.n_tied, int(np.count_nonzero(top.rows >= 0)), top.depth
        # Ties are reported once for all chunks.
        return values, tied, [message for message in messages if message not in of_ties]


def topic_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run, topics: set[str], longest: int = 0
) -> dict[str, dict[str, float]]:
    """Return values of some topics, for measures whose value for a topic depends on this topic alone."""
    target_topics = topics.intersection(target.topics)
    values: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    if not target_topics:
        return values
    internal = [measure for measure in measures if isinstance(measure, Measure)]
    external = [measure for measure in measures if not isinstance(measure, Measure)]
    judgments = target.of_topics(target_topics)
    run = run.only(target_topics)
    rows = _chunk_values(internal, judgments, run, longest) if internal else []
    # Measures that may depend on other topics need all judgments, and so do judgments made from intents.
    alone = target.intents is None and all(map(is_topicwise, external))
    rows += external_values(external, judgments if alone else target, run, warned=True)
    for topic, measure, value in rows:
        if topic in target_topics:
            values[str(measure)][topic] = value
    return values


def _chunk_values(
    measures: Sequence[Measure], target: EvaluationTarget, run: Run, longest: int
) -> list[tuple[str, ir_measures.Measure, float]]:
    """Values of measures of this package, with an additional list as long as the longest list of all chunks."""
    if not len(run) or len(run) >= longest * len(run.topics):
        return list(evaluate(measures, target, run))
    # Other columns are copied from a valid row.
    padding = run.frame.iloc[np.zeros(longest, dtype=np.int64)].assign(
        qid=_PADDING, docno=np.arange(longest).astype(str), score=-np.arange(longest, dtype=np.float64)
    )
    every = pd.concat([run.frame, padding.astype(run.frame.dtypes)], ignore_index=True)
    wide = Run(every, name=run.name, duplicates="error")
    values, messages = heard(lambda: list(evaluate(measures, target, wide)))
    for message in messages:
        if repr(_PADDING) not in message:
            warn(message)
    return values
