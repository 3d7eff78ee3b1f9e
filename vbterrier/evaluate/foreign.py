"""Measures of others in the same call as ours, kept from the mistakes that their hosts make in silence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import ir_measures

from vbterrier.errors import DegenerateWarning
from vbterrier.judgments.pool import Judgments
from vbterrier.measures.base import TO_IR_MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from vbterrier.frames.ranked import Run


def is_diversity(measure: ir_measures.Measure) -> bool:
    """Whether a measure reads the iterations of diversity qrels."""
    return bool(ir_measures.providers.registry["pyndeval"].supports(measure))


def foreign_values(
    measures: Sequence[ir_measures.Measure], qrels: pd.DataFrame, run: Run
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    """Query, measure and value of measures that are not ours.

    Diversity measures are evaluated one at a time: two settings of one measure in one call come back as 0 from
    pyndeval. ``judged_only``, which it does not know, is done by condensing the run first.
    """
    theirs = qrels.rename(columns=TO_IR_MEASURES)
    plain = [measure for measure in measures if not is_diversity(measure)]
    if plain:
        _warn_of_subtopics(plain, qrels)
        yield from _calculated(plain, theirs, run.frame)
    for measure in measures:
        if is_diversity(measure):
            if measure.params.get("judged_only"):
                asked = type(measure)(**{key: value for key, value in measure.params.items() if key != "judged_only"})
                for qid, _, value in _calculated([asked], theirs, _condensed(run, qrels)):
                    yield qid, measure, value
            else:
                yield from _calculated([measure], theirs, run.frame)


def _calculated(
    measures: Sequence[ir_measures.Measure], qrels: pd.DataFrame, run: pd.DataFrame
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    run = run[["qid", "docno", "score"]].rename(columns=TO_IR_MEASURES)
    for metric in ir_measures.iter_calc(
        measures, qrels, run.sort_values(["query_id", "score"], ascending=[True, False])
    ):
        yield str(metric.query_id), metric.measure, float(metric.value)


def _condensed(run: Run, qrels: pd.DataFrame) -> pd.DataFrame:
    from vbterrier.judgments.condense import condensed

    return condensed(run, Judgments(qrels[["qid", "docno"]].drop_duplicates().assign(label=0)))


def _warn_of_subtopics(measures: Sequence[ir_measures.Measure], qrels: pd.DataFrame) -> None:
    if "iteration" in qrels.columns and qrels.duplicated(["qid", "docno"]).any():
        warnings.warn(
            f"{', '.join(map(str, measures))}: the qrels judge documents once a subtopic, and the last one would win; "
            "flatten them with vbterrier.flatten_qrels, or use diversity measures",
            DegenerateWarning,
            stacklevel=3,
        )


def mean_of(measure: ir_measures.Measure, values: Any) -> float:
    """The aggregate that a measure asks for: a mean, or the sum of counts."""
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return float(aggregator.result())


def is_mean(measure: ir_measures.Measure) -> bool:
    """Whether a measure is averaged over topics, so that an interval of its mean makes sense."""
    return isinstance(measure.aggregator(), ir_measures.MeanAgg)
