"""Measures of others in the same call as ours, kept from the mistakes that their hosts make in silence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import ir_measures
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, integers_of
from vbterrier.frames.ranked import Run
from vbterrier.judgments.pool import Judgments
from vbterrier.measures.base import TO_IR_MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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
    if not measures:
        return
    theirs = _readable(qrels)
    ranking = pd.DataFrame({"qid": run.qid.text.to_pylist(), "docno": run.docno.text.to_pylist(), "score": run.score})
    plain = [measure for measure in measures if not is_diversity(measure)]
    if plain:
        _warn_of_subtopics(plain, qrels)
        yield from _calculated(plain, theirs, ranking)
    for measure in measures:
        if is_diversity(measure):
            if measure.params.get("judged_only"):
                asked = type(measure)(**{key: value for key, value in measure.params.items() if key != "judged_only"})
                for qid, _, value in _calculated([asked], theirs, _condensed(ranking, qrels)):
                    yield qid, measure, value
            else:
                yield from _calculated([measure], theirs, ranking)


def _calculated(
    measures: Sequence[ir_measures.Measure], qrels: pd.DataFrame, run: pd.DataFrame
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    run = run.sort_values(["qid", "score"], ascending=[True, False]).rename(columns=TO_IR_MEASURES)
    try:
        found = list(ir_measures.iter_calc(measures, qrels, run))
    except Exception as error:
        # Whatever an engine of others raises, its user gets one clear line.
        names = ", ".join(map(str, measures))
        raise InputError(f"{names}: ir_measures cannot compute this here ({type(error).__name__}: {error})") from error
    for metric in found:
        yield str(metric.query_id), metric.measure, float(metric.value)


def _readable(qrels: pd.DataFrame) -> pd.DataFrame:
    """Qrels as other engines want them: text ids and integer labels, in the words of ir_measures."""
    require(qrels, ("qid", "docno", "label"), "qrels")
    ids = {name: ids_of(qrels[name], f"qrels column {name!r}").text.to_pylist() for name in ("qid", "docno")}
    frame = pd.DataFrame({**ids, "label": integers_of(qrels["label"], "qrels column 'label'")})
    if "iteration" in qrels.columns:
        frame["iteration"] = qrels["iteration"].astype(str).to_numpy()
    return frame.rename(columns=TO_IR_MEASURES)


def _condensed(run: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    from vbterrier.judgments.condense import condensed

    judged = Judgments(qrels[["qid", "docno"]].drop_duplicates().assign(label=0))
    return condensed(Run(run), judged)[["qid", "docno", "score"]]


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
