"""Measures of others in the same call as ours, kept from the mistakes that their hosts make in silence."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import repeat
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import ir_measures
import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.frames.ids import ids_of, require_same_kind
from vbterrier.frames.topics import run_places
from vbterrier.intents.sources import to_diversity
from vbterrier.measures.base import TO_IR_MEASURES
from vbterrier.measures.engines import (
    by_topic,
    has_subtopics,
    judges_once,
    qrels_of,
    ranking_of,
    require_ids,
    require_ids_of,
    require_no_nul,
)
from vbterrier.measures.ndcg import is_plain, ndcg
from vbterrier.measures.scoring import Slot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.frames.ranked import Run

# Measures whose value at k the first k documents decide.
OF_FIRST = ("AP", "P", "R", "RR", "Success", "nDCG")
# Engines that evaluate each topic by itself.
TOPICWISE = ("pytrec_eval", "pyndeval", "judged")


def is_diversity(measure: ir_measures.Measure) -> bool:
    """Whether a measure reads the iterations of diversity qrels."""
    return bool(ir_measures.providers.registry["pyndeval"].supports(measure))


def foreign_values(
    measures: Sequence[ir_measures.Measure], slot: Slot, run: Run, *, warned: bool = False
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    """Query, measure and value of measures that are not ours.

    They get checked frames: ids as text, whole labels, each judgment once, and in place of scores the places in
    trec_eval's order, which their engines settle in three different ways. Diversity measures are evaluated one at a
    time: two settings of one measure in one call come back as 0 from pyndeval. ``judged_only``, which it does not know,
    is done by condensing the run first. It gets the first k documents alone, which decide all that it computes at k,
    because it goes through a run row by row.

    Parameters
    ----------
    measures, slot, run
        What to evaluate.
    warned
        Whether topics and ties of this run were looked at before.
    """
    if not measures:
        return
    require_ids(run.docno, f"{run.name} column 'docno'")
    require_no_nul(run.topic_ids, f"{run.name} column 'qid'", run.topic)
    known = run.only(set(slot.topics))
    for diverse, judged in ((False, slot), (True, _of_subtopics(slot))):
        asked = [measure for measure in measures if is_diversity(measure) == diverse]
        if not asked:
            continue
        judged.once("ids of qrels", partial(require_ids_of, judged))
        if not warned:
            _look_at(asked, judged, run)
        if diverse:
            yield from _diversity_values(asked, judged, qrels_of(judged), ranking_of(known))
        else:
            yield from _adhoc_values(asked, judged, known)


def _adhoc_values(
    measures: Sequence[ir_measures.Measure], slot: Slot, run: Run
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    others = list(measures)
    if judges_once(slot):
        # What takes no engine: going through dictionaries costs more than all else.
        for measure in filter(is_plain, measures):
            others.remove(measure)
            yield from zip(slot.topics, repeat(measure), ndcg(slot.judgments(), run, measure["cutoff"]).tolist())
    if others:
        _warn_of_subtopics(others, qrels_of(slot))
    for depth, alike in _by_depth(others):
        if depth is None:
            yield from _calculated(alike, slot, qrels_of(slot), ranking_of(run))
        else:
            labels = slot.once("labels by topic", partial(by_topic, qrels_of(slot), "label"))
            yield from _calculated(alike, slot, labels, by_topic(ranking_of(run, depth), "score"))


def _diversity_values(
    measures: Sequence[ir_measures.Measure], slot: Slot, qrels: pd.DataFrame, ranking: pd.DataFrame
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    for measure in measures:
        if measure.params.get("judged_only"):
            asked = type(measure)(**{key: value for key, value in measure.params.items() if key != "judged_only"})
            for qid, _, value in _calculated([asked], slot, qrels, _condensed(ranking, qrels)):
                yield qid, measure, value
        else:
            yield from _calculated([measure], slot, qrels, _first(ranking, measure.params.get("cutoff")))


def _of_subtopics(slot: Slot) -> Slot:
    """What diversity measures judge by: intents and tags, where both were given, as judgments of subtopics."""
    intents = slot.frame if {"entity_id", "prob"} <= set(slot.frame.columns) else slot.intents
    if intents is None or slot.tags is None:
        return slot
    tags = slot.tags
    made: Slot = slot.once("subtopics as judgments", lambda: Slot(to_diversity(intents, tags)))
    return made


def _look_at(measures: Sequence[ir_measures.Measure], slot: Slot, run: Run) -> None:
    """What our own measures refuse or warn of when they meet a run."""
    qid, docno = (ids_of(slot.frame[name], f"qrels column {name!r}") for name in ("qid", "docno"))
    run_places(run, slot.topics, qid, "qrels")
    require_same_kind(docno, run.docno, "qrels column 'docno'", f"{run.name} column 'docno'")
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    run.top(None if None in cutoffs else max(cutoffs)).warn_of_ties(run.name)


def _by_depth(
    measures: Sequence[ir_measures.Measure],
) -> Iterator[tuple[int | None, list[ir_measures.Measure]]]:
    """Measures that the first documents decide, with how many; and those that want whole rankings, ``None``."""
    of_first = [measure for measure in measures if is_of_first(measure)]
    if of_first:
        yield max(measure["cutoff"] for measure in of_first), of_first
    whole = [measure for measure in measures if measure not in of_first]
    if whole:
        yield None, whole


def is_of_first(measure: ir_measures.Measure) -> bool:
    """Whether the first k documents and the judgments are all that a measure looks at."""
    at_k = measure.NAME in OF_FIRST and measure.params.get("cutoff") is not None
    # Some of their settings are done by other engines, with rules of their own.
    done_by_trec_eval = bool(ir_measures.providers.registry["pytrec_eval"].supports(measure))
    return at_k and done_by_trec_eval and not measure.params.get("judged_only")


def n_decisive(measure: ir_measures.Measure) -> int | None:
    """How many of the first documents decide what a measure is, ``None`` for those that see the whole ranking."""
    cut = is_of_first(measure) or (is_diversity(measure) and not measure.params.get("judged_only"))
    n: int | None = measure.params.get("cutoff") if cut else None
    return n


def is_topicwise(measure: ir_measures.Measure) -> bool:
    """Whether judgments of other topics are known to change nothing."""
    providers = (ir_measures.providers.registry[name] for name in TOPICWISE)
    return any(provider.supports(measure) for provider in providers)


def _calculated(
    measures: Sequence[ir_measures.Measure], slot: Slot, qrels: Any, ranking: Any
) -> list[tuple[str, ir_measures.Measure, float]]:
    """Values from frames, or from dictionaries of dictionaries."""
    try:
        # Engines go through judgments row by row, too: once for all runs.
        evaluator = slot.once(
            ("evaluator", *map(str, measures)),
            lambda: ir_measures.evaluator(measures, _as_theirs(qrels)),
        )
        found = list(evaluator.iter_calc(_as_theirs(ranking)))
    except (ValueError, TypeError, KeyError, AssertionError, RuntimeError, SubprocessError) as error:
        names = ", ".join(map(str, measures))
        raise ParameterError(
            f"{names}: ir_measures cannot evaluate this ({' '.join(str(error).split())}); change the parameters, or "
            "ask for the measures one by one to find the one to blame"
        ) from error
    if len(measures) > 1:
        # Engines take measures out of sets, in an order that changes with Python's hash seed.
        place = {measure: number for number, measure in enumerate(measures)}
        found.sort(key=lambda metric: place[metric.measure])
    return [(str(metric.query_id), metric.measure, float(metric.value)) for metric in found]


def _as_theirs(data: Any) -> Any:
    return data.rename(columns=TO_IR_MEASURES) if isinstance(data, pd.DataFrame) else data


def _first(ranking: pd.DataFrame, cutoff: int | None) -> pd.DataFrame:
    """The first documents of each query: what stands for scores is the rank, negative."""
    return ranking if cutoff is None else ranking[ranking["score"] > -cutoff]


def _condensed(ranking: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    return ranking.merge(qrels[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"], how="inner")


def _warn_of_subtopics(measures: Sequence[ir_measures.Measure], qrels: pd.DataFrame) -> None:
    if has_subtopics(qrels):
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
