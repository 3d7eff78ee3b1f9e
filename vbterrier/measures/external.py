"""Evaluation of measures of ir_measures that are not part of this package."""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import column_ids, column_integers, require_same_kind
from vbterrier.frames.ranking import run_places
from vbterrier.hosts.ir_measures import ENGINES, JUDGED, NAME, NDEVAL, TO_IR_MEASURES, TREC_EVAL
from vbterrier.intents.sources import to_diversity, unequal
from vbterrier.measures import adhoc
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.measures.target import EvaluationTarget, check_subtopics
from vbterrier.unjudged.pool import Judgments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranking import Run


_JUDGMENT = ["qid", "docno", "iteration"]
# trec_eval has a table of all labels up to the highest, which its nDCG goes through again and again: a label of 10^8
# costs hours. Labels are C ints there: those from 2^31 on are negative, and score 0.
_HIGHEST = 2**15 - 1


def require_engine_ids(target: EvaluationTarget) -> None:
    """Refuse judgments whose ids external engines would misread."""
    require(target.frame, ("qid", "docno", "label"), "qrels")
    require_no_nul(target.docno, "qrels column 'docno'")
    # The few distinct topics are text already, unlike their column.
    if "\0" in "".join(target.topics):
        require_no_nul(target.qid, "qrels column 'qid'")


def _require_ids_of_run(measures: Sequence[ir_measures.Measure], run: Run) -> None:
    """Refuse ids of a run that external engines misread, among the documents that the measures look at."""
    depth = _looked_at(measures)
    if depth is None or depth >= run.longest or not run.top(depth).docno.utf8_bytes()[0].all():
        # The message names the row of the whole run.
        require_no_nul(run.docno, f"{run.name} column 'docno'")


def require_no_nul(ids: Ids, where: str, numbers: Callable[[], NDArray[np.int64]] | None = None) -> None:
    """Refuse ids with a NUL, where external engines end a text.

    ``numbers`` returns the positions of the ids of all rows; without it, each row has its own id.
    """
    utf8_bytes, _ = ids.utf8_bytes()
    if utf8_bytes.all():
        return
    row = pc.index(pc.match_substring(ids.text, "\0"), pa.scalar(value=True)).as_py()
    if row >= 0:
        value = ids.text[row].as_py()
        row = row if numbers is None else int(np.argmax(numbers() == row))
        raise InputError(f"{where}: row {row} holds {value!r}; external measures end ids at a NUL: remove it")


def judges_once(target: EvaluationTarget) -> bool:
    """Return True if all rows of the qrels have the same iteration, so that a duplicated document is an error."""
    if "iteration" not in target.frame.columns:
        return True
    return bool((target.frame["iteration"] == target.frame["iteration"].iloc[0]).all())


def has_subtopics(qrels: pd.DataFrame) -> bool:
    """Return True if a document is judged for more than one iteration."""
    if not len(qrels) or (qrels["iteration"] == qrels["iteration"].iloc[0]).all():
        return False
    return bool(qrels.drop_duplicates(_JUDGMENT).duplicated(["qid", "docno"]).any())


def engine_qrels(target: EvaluationTarget) -> pd.DataFrame:
    """Judgments for external engines, computed at first use."""
    return target.memo("external qrels", partial(_checked_qrels, target))


def _checked_qrels(target: EvaluationTarget) -> pd.DataFrame:
    """Judgments for external engines; those that the engines would misread are refused."""
    frame = target.frame
    checked = pd.DataFrame(
        {
            "qid": _objects(target.qid),
            "docno": _objects(target.docno),
            "label": column_integers(frame["label"], "qrels column 'label'"),
            "iteration": frame["iteration"].astype(str).to_numpy() if "iteration" in frame.columns else "0",
        }
    )
    large = (checked["label"].abs() > _HIGHEST).to_numpy()
    if large.any():
        row = int(np.argmax(large))
        qid, docno, label = checked.loc[row, ["qid", "docno", "label"]]
        raise InputError(
            f"qrels column 'label': row {row} holds {label} (query {qid!r}, document {docno!r}); external "
            f"measures need labels from {-_HIGHEST:,} to {_HIGHEST:,}: map them to grades"
        )
    # Engines treat labels below 0 as judged in some measures and as unjudged in others (judged_only, Bpref).
    checked["label"] = checked["label"].clip(lower=0)
    # Judgments refuse conflicts and warn of duplicates, once for all measures.
    if not has_subtopics(checked) and len(target.judgments().label) == len(checked):
        return checked
    conflict = checked[~checked.duplicated([*_JUDGMENT, "label"])].duplicated(_JUDGMENT)
    if conflict.any():
        qid, docno, subtopic = checked.loc[conflict[conflict].index[0], _JUDGMENT]
        raise InputError(
            f"qrels: document {docno!r} of query {qid!r} has several labels for subtopic {subtopic!r}; keep one"
        )
    return checked.drop_duplicates(_JUDGMENT, ignore_index=True)


def engine_ranking(run: Run, depth: int | None = None) -> pd.DataFrame:
    """The documents of each topic up to a cutoff, in rank order.

    Scores are whole numbers that fall to 1, because engines compare them with 0, the score of documents that were not
    retrieved: Compat ranks these above documents with negative scores in its ideal ranking.
    """
    if depth is None:
        run.refuse_duplicates()
        rows, starts, sizes = run.ordered_rows()
        rank = np.arange(len(rows)) - np.repeat(starts, sizes)
        topic, docno = run.topic[rows], run.docno.take(rows)
    else:
        top = run.top(depth)
        (topic, rank), docno = top.topic_and_rank, top.docno
    score = np.bincount(topic, minlength=len(run.topics))[topic] - rank
    return pd.DataFrame(
        {"qid": _objects(run.topic_ids.take(topic)), "docno": _objects(docno), "score": score.astype(np.float64)}
    ).sort_values(["qid", "score"], ascending=[True, False], ignore_index=True)


def by_topic(frame: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """A column by query and document, as the dictionaries of the engines; ir_measures makes them row by row."""
    qids, docnos, values = (frame[name].tolist() for name in ("qid", "docno", column))
    starts = column_ids(frame["qid"], column).blocks().tolist()
    nested: dict[str, dict[str, Any]] = {}
    for start, stop in pairwise([*starts, len(frame)]):
        nested.setdefault(qids[start], {}).update(zip(docnos[start:stop], values[start:stop], strict=True))
    return nested


def _objects(ids: Ids) -> pd.Series[Any]:
    """Ids as Python objects, because engines iterate over them, which is slow for Arrow."""
    return pd.Series(ids.text.to_pylist(), dtype=object)


# Measures whose value at k depends on the first k documents only.
TOP_MEASURES = ("AP", "P", "R", "RR", "Success", "nDCG")
# Engines that evaluate each topic separately.
TOPICWISE = (TREC_EVAL, NDEVAL, JUDGED)


# Distributions of engines, and the programs whose values they return.
_PACKAGES = {TREC_EVAL: ("pytrec_eval-terrier", "trec_eval 9"), NDEVAL: ("pyndeval", "ndeval")}


def engine_description(measure: ir_measures.Measure) -> str:
    """Package, version and program that evaluate a measure of ir_measures; empty for measures computed here.

    >>> engine_description(ir_measures.nDCG @ 10)
    ''
    """
    if is_computed_here(measure):
        return ""
    engines = (engine for engine in ir_measures.DefaultPipeline.providers if engine.NAME != NAME)
    able = next((engine.NAME for engine in engines if engine.supports(measure) and engine.is_available()), "")
    package, program = _PACKAGES.get(able, ("ir_measures", able))
    try:
        installed = version(package)
    except PackageNotFoundError:
        # Another distribution of the same module.
        installed = ""
    return " ".join(filter(None, (package, installed, f"({program})" * bool(program))))


def is_diversity(measure: ir_measures.Measure) -> bool:
    """Return True if a measure reads the iterations of diversity qrels."""
    return bool(ENGINES[NDEVAL].supports(measure))


def prepare(measure: ir_measures.Measure, target: EvaluationTarget) -> None:
    """Look up the judgments of a target if a measure is computed from them directly; refuse them without subtopics."""
    if is_diversity(measure) and _of_subtopics(target) is target:
        check_subtopics(target)
    if is_computed_here(measure) and {"docno", "label"} <= target.columns and judges_once(target):
        _ = target.judgments().lookup


def external_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run, *, warned: bool = False
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    """Yield topic, measure and value of external measures; ``warned`` if topics and ties of this run were checked.

    Their engines receive checked frames: ids as text, integer labels, each judgment once. Scores are replaced by
    numbers that fall to 1 in the order of trec_eval, because engines break ties in three different ways. Diversity
    measures are evaluated one at a time: pyndeval returns 0 for two settings of one measure in one call. It does not
    know ``judged_only``, so the run is condensed first. It iterates over the rows of a run, so it receives the first k
    documents only.
    """
    if not measures:
        return
    _require_ids_of_run(measures, run)
    require_no_nul(run.topic_ids, f"{run.name} column 'qid'", lambda: run.topic)
    ranking = run.only(set(target.topics))
    of_kind: dict[bool, list[ir_measures.Measure]] = {False: [], True: []}
    for measure in measures:
        of_kind[is_diversity(measure)].append(measure)
    for diverse, group in of_kind.items():
        if not group:
            continue
        judged = _of_subtopics(target) if diverse else target
        if diverse:
            target.memo("equal intents", partial(_require_equal_intents, group, target))
        judged.memo("checked ids", partial(require_engine_ids, judged))
        if not warned:
            # Check a run as measures of this package do.
            run_places(run, judged.topics, judged.qid, "qrels")
            require_same_kind(judged.docno, run.docno, "qrels column 'docno'", f"{run.name} column 'docno'")
            cutoffs = [measure.params.get("cutoff") for measure in group]
            run.top(None if None in cutoffs else max(cutoffs)).warn_of_ties(run.name)
        if diverse:
            yield from _diversity_values(
                group, judged, engine_qrels(judged), engine_ranking(ranking, _looked_at(group))
            )
        else:
            yield from _adhoc_values(group, judged, ranking)


def _adhoc_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    of_subtopics = not judges_once(target) and has_subtopics(engine_qrels(target))
    if of_subtopics:
        warn(
            f"{', '.join(map(str, measures))}: the qrels judge documents once a subtopic, and only the last one "
            "would count; flatten them with vbterrier.frames.flatten_qrels, or use diversity measures"
        )
    computed = list(filter(is_computed_here, measures))
    others = [measure for measure in measures if measure not in computed]
    if computed:
        judgments = target.memo("last labels", partial(_last_labels, target)) if of_subtopics else target.judgments()
        target.memo(("scale of", *map(str, computed)), partial(adhoc.warn_of_scale, computed, judgments))
        for measure, values in adhoc.values(computed, judgments, run):
            yield from zip(judgments.topics, repeat(measure), values.tolist())
    # Of infAP, -1 is the label of a document of the pool that was not sampled for judging.
    sampled = [measure for measure in others if measure.NAME == "infAP"]
    of_first = [measure for measure in others if is_of_first(measure)]
    whole = [measure for measure in others if measure not in of_first and measure not in sampled]
    if sampled:
        raw = column_integers(target.frame["label"], "qrels column 'label'")
        yield from _external_values(sampled, target, engine_qrels(target).assign(label=raw), engine_ranking(run))
    if of_first:
        labels = target.memo("labels by topic", partial(by_topic, engine_qrels(target), "label"))
        ranking = engine_ranking(run, max(measure["cutoff"] for measure in of_first))
        yield from _external_values(of_first, target, labels, by_topic(ranking, "score"))
    if whole:
        yield from _external_values(whole, target, engine_qrels(target), engine_ranking(run))


def _last_labels(target: EvaluationTarget) -> Judgments:
    """The last label of each document over all subtopics, as engines read them."""
    return Judgments(engine_qrels(target).groupby(["qid", "docno"], sort=False)["label"].last().reset_index())


def _diversity_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, qrels: pd.DataFrame, ranking: pd.DataFrame
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    for measure in measures:
        if measure.params.get("judged_only"):
            plain = type(measure)(**{key: value for key, value in measure.params.items() if key != "judged_only"})
            condensed = ranking.merge(qrels[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"], how="inner")
            for qid, _, value in _external_values([plain], target, qrels, condensed):
                yield qid, measure, value
        else:
            cutoff = measure.params.get("cutoff")
            first = ranking if cutoff is None else ranking.groupby("qid", sort=False).head(cutoff)
            yield from _external_values([measure], target, qrels, first)


def _of_subtopics(target: EvaluationTarget) -> EvaluationTarget:
    """The target of diversity measures: intents and tags, if both were given, as judgments of subtopics."""
    intents = target.frame if {"entity_id", "prob"} <= target.columns else target.intents
    if intents is None or target.tags is None:
        return target
    tags = target.tags
    return target.memo("subtopics as judgments", lambda: EvaluationTarget(to_diversity(intents, tags)))


def _require_equal_intents(measures: Sequence[ir_measures.Measure], target: EvaluationTarget) -> None:
    """Refuse intents with different probabilities, which ndeval ignores without a warning."""
    topics = set(target.topics)
    frames = (frame for frame in (target.intents, target.subtopics, target.frame) if frame is not None)
    odd = dict.fromkeys(qid for frame in frames for qid in unequal(frame) if qid in topics)
    if odd:
        raise InputError(
            f"{', '.join(map(str, measures))}: ndeval counts all intents equally, but those of {len(odd)} of "
            f"{len(topics)} queries have different probabilities ({examples(odd)}); use WeightedERRIA, "
            "WeightedAlphaNDCG, or ES, the weighted subtopic recall, or give the intents of a query equal probabilities"
        )


def is_of_first(measure: ir_measures.Measure) -> bool:
    """Return True if a measure depends on the judgments and the first k documents only."""
    at_k = measure.NAME in TOP_MEASURES and measure.params.get("cutoff") is not None
    # Other engines evaluate some settings, with different rules.
    done_by_trec_eval = bool(ENGINES[TREC_EVAL].supports(measure))
    return at_k and done_by_trec_eval and not measure.params.get("judged_only")


def n_decisive(measure: ir_measures.Measure) -> int | None:
    """Number of documents at the top of a ranking that decide a measure, ``None`` for the whole ranking."""
    if is_computed_here(measure):
        return adhoc.n_decisive(measure)
    cut = is_of_first(measure) or (is_diversity(measure) and not measure.params.get("judged_only"))
    n: int | None = measure.params.get("cutoff") if cut else None
    return n


def _looked_at(measures: Sequence[ir_measures.Measure]) -> int | None:
    """The number of documents of each topic that the measures look at, ``None`` for all."""
    depths = [n_decisive(measure) for measure in measures]
    cutoffs = [depth for depth in depths if depth is not None]
    return max(cutoffs) if len(cutoffs) == len(depths) else None


def is_topicwise(measure: ir_measures.Measure) -> bool:
    """Return True if a measure is known not to depend on judgments of other topics."""
    return any(ENGINES[name].supports(measure) for name in TOPICWISE)


def _external_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, qrels: Any, ranking: Any
) -> list[tuple[str, ir_measures.Measure, float]]:
    """Values from frames or from nested dictionaries."""
    try:
        # Engines iterate over the rows of judgments, too, so this is done once for all runs.
        key = tuple(map(str, measures))
        evaluator = target.evaluators.memo(key, lambda: ir_measures.evaluator(measures, _with_ir_measures_names(qrels)))
        metrics = list(evaluator.iter_calc(_with_ir_measures_names(ranking)))
    except (ValueError, TypeError, KeyError, AssertionError, RuntimeError, ArithmeticError) as error:
        names, remedy = ", ".join(map(str, measures)), "change the parameters"
        if isinstance(error, ZeroDivisionError):
            remedy = "a topic has no value, such as Accuracy where only relevant documents are retrieved: leave it out"
        raise ParameterError(
            f"{names}: ir_measures cannot evaluate this ({' '.join(str(error).split())}); {remedy}, or evaluate the "
            "measures one by one to find the cause"
        ) from error
    if len(measures) > 1:
        # Engines iterate over sets of measures, in an order that depends on the hash seed of Python.
        place = {measure: number for number, measure in enumerate(measures)}
        metrics.sort(key=lambda metric: place[metric.measure])
    if len(metrics) < len(measures) * len(target.topics):
        _warn_of_lost(metrics, measures, list(ranking if isinstance(ranking, dict) else ranking["qid"].unique()))
    return [(str(metric.query_id), metric.measure, float(metric.value)) for metric in metrics]


def _warn_of_lost(metrics: list[Any], measures: Sequence[ir_measures.Measure], topics: list[str]) -> None:
    """Warn of retrieved topics without a value, which means leave out: Accuracy without a relevant document."""
    for measure in measures:
        scored_topics = {str(metric.query_id) for metric in metrics if metric.measure == measure}
        if lost := [topic for topic in topics if topic not in scored_topics]:
            left_out = f"{len(lost)} of {len(topics)} topics have no value, and its mean leaves them out"
            warn(f"{measure}: {left_out} ({examples(lost)})")


def _with_ir_measures_names(data: Any) -> Any:
    return data.rename(columns=TO_IR_MEASURES) if isinstance(data, pd.DataFrame) else data


def aggregate_values(measure: ir_measures.Measure, values: Any) -> float:
    """Aggregate values as a measure defines it: a mean, or a sum of counts."""
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return float(aggregator.result())


def is_mean(measure: ir_measures.Measure) -> bool:
    """Return True if a measure is averaged over topics, so that its mean has an interval."""
    return isinstance(measure.aggregator(), ir_measures.MeanAgg)
