"""Measures of ir_measures beside those of this package."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, repeat
from math import log2
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, integers_of, require_same_kind
from vbterrier.frames.runs import run_places
from vbterrier.hosts.ir_measures import ENGINES, JUDGED, NDEVAL, TO_IR_MEASURES, TREC_EVAL
from vbterrier.intents.sources import to_diversity
from vbterrier.measures.target import EvaluationTarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.pool import Judgments


_JUDGMENT = ["qid", "docno", "iteration"]
# trec_eval has a table of all labels up to the highest, which its nDCG goes through again and again: a label of 10^8
# costs hours. Labels are C ints there: those from 2^31 on are negative, and score 0.
_HIGHEST = 2**15 - 1


def require_ids_of(target: EvaluationTarget) -> None:
    """Refuse judgments whose ids engines of others would misread."""
    require(target.frame, ("qid", "docno", "label"), "qrels")
    require_ids(ids_of(target.frame["docno"], "qrels column 'docno'"), "qrels column 'docno'")
    require_no_nul(target.qid, "qrels column 'qid'")


def require_ids(docno: Ids, where: str) -> None:
    """Refuse empty ids, on which engines of others crash."""
    _, bounds = docno.utf8_bytes()
    empty = bounds[1:] == bounds[:-1]
    if empty.any():
        row = int(np.argmax(empty))
        raise InputError(f"{where}: row {row} is empty; give the document an id, or remove the row")
    require_no_nul(docno, where)


def require_no_nul(ids: Ids, where: str, numbers: NDArray[np.int64] | None = None) -> None:
    """Refuse ids that engines of others, for which a NUL ends a text, would take for shorter ones.

    ``numbers`` say which of the ids stands in each row; without them each row has its own.
    """
    utf8_bytes, _ = ids.utf8_bytes()
    if utf8_bytes.all():
        return
    row = pc.index(pc.match_substring(ids.text, "\0"), pa.scalar(value=True)).as_py()
    if row >= 0:
        value = ids.text[row].as_py()
        row = row if numbers is None else int(np.argmax(numbers == row))
        raise InputError(f"{where}: row {row} holds {value!r}; measures of others end ids at a NUL: remove it")


def judges_once(target: EvaluationTarget) -> bool:
    """Whether all rows of the qrels are of one iteration, so that a document that stands twice is an error."""
    if "iteration" not in target.frame.columns:
        return True
    return bool((target.frame["iteration"] == target.frame["iteration"].iloc[0]).all())


def has_subtopics(qrels: pd.DataFrame) -> bool:
    """Whether a document is judged for more than one iteration."""
    if not len(qrels) or (qrels["iteration"] == qrels["iteration"].iloc[0]).all():
        return False
    return bool(qrels.drop_duplicates(_JUDGMENT).duplicated(["qid", "docno"]).any())


def qrels_of(target: EvaluationTarget) -> pd.DataFrame:
    """Judgments as engines take them, made once."""
    made: pd.DataFrame = target.memo("external qrels", partial(_checked_qrels, target))
    return made


def _checked_qrels(target: EvaluationTarget) -> pd.DataFrame:
    """Judgments as their engines take them, or an error where they would read something else."""
    frame = target.frame
    checked = pd.DataFrame(
        {
            "qid": _objects(target.qid),
            "docno": _objects(ids_of(frame["docno"], "qrels column 'docno'")),
            "label": integers_of(frame["label"], "qrels column 'label'"),
            "iteration": frame["iteration"].astype(str).to_numpy() if "iteration" in frame.columns else "0",
        }
    )
    _require_small(checked)
    # trec_eval's nDCG reads before its memory, and may never end, where no label of a topic is 0 or more. All measures
    # are 0 there, as they are where labels are 0.
    worthless = (checked.groupby("qid", sort=False)["label"].transform("max") < 0).to_numpy()
    checked.loc[worthless, "label"] = 0
    # Judgments refuse conflicts and warn of repetitions, once for all measures.
    if not has_subtopics(checked) and len(target.judgments().label) == len(checked):
        return checked
    conflict = checked[~checked.duplicated([*_JUDGMENT, "label"])].duplicated(_JUDGMENT)
    if conflict.any():
        qid, docno, subtopic = checked.loc[conflict[conflict].index[0], _JUDGMENT]
        raise InputError(
            f"qrels: document {docno!r} of query {qid!r} has several labels for subtopic {subtopic!r}; keep one"
        )
    return checked.drop_duplicates(_JUDGMENT, ignore_index=True)


def _require_small(checked: pd.DataFrame) -> None:
    """Refuse labels that engines of others cannot hold."""
    large = (checked["label"].abs() > _HIGHEST).to_numpy()
    if large.any():
        row = int(np.argmax(large))
        qid, docno, label = checked.loc[row, ["qid", "docno", "label"]]
        raise InputError(
            f"qrels column 'label': row {row} holds {label} (query {qid!r}, document {docno!r}); measures of others "
            f"take labels of at most {_HIGHEST:,} above or below 0: map them to grades"
        )


def ranking_of(run: Run, depth: int | None = None) -> pd.DataFrame:
    """The first documents of each topic, by rank."""
    if depth is None:
        rows, starts, sizes = run.ordered()
        rank = np.arange(len(rows)) - np.repeat(starts, sizes)
    else:
        cut = run.top(depth).rows
        topic, rank = np.nonzero(cut >= 0)
        rows = cut[topic, rank]
    return pd.DataFrame(
        {
            "qid": _objects(run.topic_ids.take(run.topic[rows])),
            "docno": _objects(run.docno.take(rows)),
            "score": -rank.astype(np.float64),
        }
    ).sort_values(["qid", "score"], ascending=[True, False], ignore_index=True)


def by_topic(frame: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """A column by query and document, as the engines' own dictionaries: ir_measures makes them row by row."""
    qids, docnos, values = (frame[name].tolist() for name in ("qid", "docno", column))
    starts = ids_of(frame["qid"], column).blocks().tolist()
    found: dict[str, dict[str, Any]] = {}
    for start, stop in pairwise([*starts, len(frame)]):
        found.setdefault(qids[start], {}).update(zip(docnos[start:stop], values[start:stop], strict=True))
    return found


def _objects(ids: Ids) -> pd.Series[Any]:
    """Ids for engines that go through them one by one, which text in Arrow's memory is slow at."""
    return pd.Series(ids.text.to_pylist(), dtype=object)


def is_plain(measure: ir_measures.Measure) -> bool:
    """Whether a measure is nDCG@k as trec_eval has it: grades are gains, and all documents count."""
    given = {name for name, value in measure.params.items() if value is not False}
    if measure.NAME != "nDCG" or not {"cutoff", "dcg"}.issuperset(given):
        return False
    cutoff = measure.params.get("cutoff")
    return bool(measure["dcg"] == "log2" and type(cutoff) is int and cutoff > 0)


def ndcg(judgments: Judgments, run: Run, cutoff: int) -> Floats:
    """nDCG@k of each topic of the judgments, 0 where none of its documents is relevant, shape (n_topics,).

    Terms are added in trec_eval's order, from the first rank down, so that the numbers are the same to the last bit.
    """
    levels = judgments.judged(run, run.top(cutoff), cutoff).levels
    gain = judgments.grades.astype(np.float64)
    # The last two places are what levels of unjudged and missing documents index.
    return _over(_dcg(np.append(gain, [0.0, 0.0])[levels]), _dcg(gain[_best(judgments, cutoff)]))


def _best(judgments: Judgments, cutoff: int) -> NDArray[np.int64]:
    """The place of the grade at each rank of each topic's best ranking, shape (n_topics, at most cutoff)."""
    at_least = np.cumsum(judgments.counts[:, :0:-1], axis=1)
    width = min(cutoff, int(at_least.max(initial=0)))
    best: NDArray[np.int64] = (np.arange(width)[:, None] < at_least[:, None, :]).sum(axis=2)
    return best


def _dcg(gain: Floats) -> Floats:
    total = np.zeros(len(gain))
    for rank in range(gain.shape[1]):
        total += gain[:, rank] / log2(rank + 2)
    return total


def _over(found: Floats, ideal: Floats) -> Floats:
    return np.divide(found, ideal, out=np.zeros(len(found)), where=ideal > 0)


# Measures whose value at k the first k documents decide.
OF_FIRST = ("AP", "P", "R", "RR", "Success", "nDCG")
# Engines that evaluate each topic by itself.
TOPICWISE = (TREC_EVAL, NDEVAL, JUDGED)


def is_diversity(measure: ir_measures.Measure) -> bool:
    """Whether a measure reads the iterations of diversity qrels."""
    return bool(ENGINES[NDEVAL].supports(measure))


def external_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run, *, warned: bool = False
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    """Query, measure and value of measures that are not ours.

    They get checked frames: ids as text, whole labels, each judgment once, and in place of scores the places in
    trec_eval's order, which their engines settle in three different ways. Diversity measures are evaluated one at a
    time: two settings of one measure in one call come back as 0 from pyndeval. ``judged_only``, which it does not know,
    is done by condensing the run first. It gets the first k documents alone, which decide all that it computes at k,
    because it goes through a run row by row.

    Parameters
    ----------
    measures, target, run
        What to evaluate.
    warned
        Whether topics and ties of this run were looked at before.
    """
    if not measures:
        return
    require_ids(run.docno, f"{run.name} column 'docno'")
    require_no_nul(run.topic_ids, f"{run.name} column 'qid'", run.topic)
    known = run.only(set(target.topics))
    for diverse, judged in ((False, target), (True, _of_subtopics(target))):
        asked = [measure for measure in measures if is_diversity(measure) == diverse]
        if not asked:
            continue
        judged.memo("ids of qrels", partial(require_ids_of, judged))
        if not warned:
            _look_at(asked, judged, run)
        if diverse:
            yield from _diversity_values(asked, judged, qrels_of(judged), ranking_of(known))
        else:
            yield from _adhoc_values(asked, judged, known)


def _adhoc_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    others = list(measures)
    if judges_once(target):
        # What takes no engine: going through dictionaries costs more than all else.
        for measure in filter(is_plain, measures):
            others.remove(measure)
            yield from zip(target.topics, repeat(measure), ndcg(target.judgments(), run, measure["cutoff"]).tolist())
    if others:
        _warn_of_subtopics(others, qrels_of(target))
    for depth, alike in _by_depth(others):
        if depth is None:
            yield from _calculated(alike, target, qrels_of(target), ranking_of(run))
        else:
            labels = target.memo("labels by topic", partial(by_topic, qrels_of(target), "label"))
            yield from _calculated(alike, target, labels, by_topic(ranking_of(run, depth), "score"))


def _diversity_values(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, qrels: pd.DataFrame, ranking: pd.DataFrame
) -> Iterator[tuple[str, ir_measures.Measure, float]]:
    for measure in measures:
        if measure.params.get("judged_only"):
            asked = type(measure)(**{key: value for key, value in measure.params.items() if key != "judged_only"})
            for qid, _, value in _calculated([asked], target, qrels, _condensed(ranking, qrels)):
                yield qid, measure, value
        else:
            yield from _calculated([measure], target, qrels, _first(ranking, measure.params.get("cutoff")))


def _of_subtopics(target: EvaluationTarget) -> EvaluationTarget:
    """What diversity measures judge by: intents and tags, where both were given, as judgments of subtopics."""
    intents = target.frame if {"entity_id", "prob"} <= set(target.frame.columns) else target.intents
    if intents is None or target.tags is None:
        return target
    tags = target.tags
    made: EvaluationTarget = target.memo("subtopics as judgments", lambda: EvaluationTarget(to_diversity(intents, tags)))
    return made


def _look_at(measures: Sequence[ir_measures.Measure], target: EvaluationTarget, run: Run) -> None:
    """What our own measures refuse or warn of when they meet a run."""
    qid, docno = (ids_of(target.frame[name], f"qrels column {name!r}") for name in ("qid", "docno"))
    run_places(run, target.topics, qid, "qrels")
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
    done_by_trec_eval = bool(ENGINES[TREC_EVAL].supports(measure))
    return at_k and done_by_trec_eval and not measure.params.get("judged_only")


def n_decisive(measure: ir_measures.Measure) -> int | None:
    """How many of the first documents decide what a measure is, ``None`` for those that see the whole ranking."""
    cut = is_of_first(measure) or (is_diversity(measure) and not measure.params.get("judged_only"))
    n: int | None = measure.params.get("cutoff") if cut else None
    return n


def is_topicwise(measure: ir_measures.Measure) -> bool:
    """Whether judgments of other topics are known to change nothing."""
    return any(ENGINES[name].supports(measure) for name in TOPICWISE)


def _calculated(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, qrels: Any, ranking: Any
) -> list[tuple[str, ir_measures.Measure, float]]:
    """Values from frames, or from dictionaries of dictionaries."""
    try:
        # Engines go through judgments row by row, too: once for all runs.
        evaluator = target.memo(
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
        warn(
            f"{', '.join(map(str, measures))}: the qrels judge documents once a subtopic, and the last one would win; "
            "flatten them with vbterrier.frames.flatten_qrels, or use diversity measures"
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
