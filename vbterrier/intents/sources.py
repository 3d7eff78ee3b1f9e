"""Intents and tags from diversity qrels, nuggets and runs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError, agreeing, examples, number, warn
from vbterrier.frames.columns import TAGS
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.entities import TagFrame, require_once
from vbterrier.frames.files.nuggets import FAILED, NUGGET_MEMBERS, read_nuggets
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import (
    column_ids,
    column_integers,
    column_keys,
    column_numbers,
    lazy_ids,
    repeated_pairs,
    require_same_kind,
)
from vbterrier.intents.parts import PARTS
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranking import Run


# The document of an intent without documents, with label 0, so that judgments of a document with this id are kept.
# Other diversity tools crash on empty ids.
NO_DOCUMENT = "-"
# Iterations that are larger are ids of entities, not numbers of subtopics.
_MOST_SUBTOPICS = 100


class Iterations(NamedTuple):
    """The queries and the iterations of diversity qrels, and the number of those of each row."""

    topics: list[str]
    topic: Ints
    entities: list[str]
    code: Ints


def iteration_codes(qrels: pd.DataFrame, name: str = "qrels", *, qid: Ids | None = None) -> Iterations:
    """Return the distinct queries and iterations in order of appearance, and their numbers in each row.

    ``qid`` is the column qid if it is already converted.
    """
    if qid is None:
        qid = column_keys(qrels["qid"], f"{name} column 'qid'")
    return Iterations(*qid.codes(), *_iteration_ids(qrels["iteration"], f"{name} column 'iteration'").codes())


def _iteration_ids(column: pd.Series[Any], where: str) -> Ids:
    """Iterations of any type as text."""
    if column.dtype == object:
        try:
            # Faster than astype, which is for objects of other and of several types.
            return column_ids(column, where)
        except InputError:
            pass
    return column_ids(column.astype(str), where)


def from_diversity(
    qrels: Any,
    *,
    rel: int = 1,
    name: str = "qrels",
    subtopics: Any = None,
    iterations: Iterations | None = None,
    docno: Ids | None = None,
    gain: Callable[[Ints], Floats] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return intents (qid, entity_id, prob) and tags (qid, docno, entity_id) from diversity qrels.

    The intents of a query are the distinct iterations of its rows, uniform unless there is a column ``prob``, equal in
    all rows of an intent. A row with a label below ``rel`` adds its intent, but no tag. Iteration "0" is not an intent
    if the query has other iterations: TREC 2009 uses it for judged non-relevant documents. Subtopics without a judged
    document are intents only if all ``subtopics`` are given (qid, entity_id, and optionally prob). With ``gain``, a
    function from labels to numbers in [0, 1], tags have a column weight; otherwise all count equally. ``iterations``
    and ``docno`` are those of the frame if they are already there.
    """
    frame = pandas_frame(qrels, name)
    require(frame, ("qid", "iteration", "docno", "label"), name)
    refuse_near_misses(frame, ("prob",), name)
    label = column_integers(frame["label"], f"{name} column 'label'")
    if docno is None:
        docno = column_keys(frame["docno"], f"{name} column 'docno'")
    topics, topic, entities, code = iteration_codes(frame, name) if iterations is None else iterations
    is_named = code != (entities.index("0") if "0" in entities else -1)
    has_named = np.zeros(len(topics), dtype=bool)
    has_named[topic[is_named]] = True
    is_of_intent = is_named | ~has_named[topic]
    rows = np.flatnonzero(is_of_intent)
    intent = topic * len(entities) + code
    named = np.array(entities, dtype=object)
    repeated = rows[repeated_pairs(intent[rows], docno if len(rows) == len(frame) else docno.take(rows))]
    if len(repeated):
        repeated = _repeated_judgments(frame.assign(entity_id=named[code]), repeated, label, name)
    if subtopics is None and not (code[rows] != code[rows[:1]]).any():
        warn(f"{name}: only one iteration, so no query is ambiguous")
    stated = intent[rows]
    if "prob" in frame.columns:
        # Two probabilities of an intent are two intents here, which are refused later.
        prob, probs = pd.factorize(frame["prob"].take(rows).to_numpy(), use_na_sentinel=False)
        stated = stated * len(probs) + prob
    first = rows[~pd.Index(stated).duplicated()]
    intents = pd.DataFrame(
        {
            "qid": frame["qid"].take(first).array,
            "entity_id": named[code[first]],
            "prob": frame["prob"].take(first).array
            if "prob" in frame.columns
            else 1.0 / np.bincount(topic[first], minlength=len(topics))[topic[first]],
        }
    )
    if subtopics is not None:
        intents = _all_subtopics(intents, topics, subtopics, name, is_stated="prob" in frame.columns)
    is_covering = is_of_intent & (label >= rel)
    is_covering[repeated] = False
    covering = np.flatnonzero(is_covering)
    # Text stays in Arrow, which tags read without conversion; integers stay integers, which do not match text.
    has_integers = docno.integers or lazy_ids(frame["qid"], f"{name} column 'qid'").integers
    columns = {
        "qid": frame["qid"].take(covering).array if has_integers else _texts(topics, topic[covering]),
        "docno": frame["docno"].take(covering).array if has_integers else _arrow(docno.take(covering).text),
        "entity_id": _texts(entities, code[covering]),
    }
    tags = pd.DataFrame(columns)
    return intents, tags if gain is None else tags.assign(weight=gain(label[covering]))


def _texts(names: list[str], number: Ints) -> Any:
    """The name of each number, as text of Arrow."""
    return _arrow(pa.array(names, pa.large_string()).take(pa.array(number)))


def _arrow(text: Any) -> Any:
    """An Arrow array as the column of a frame."""
    return pd.arrays.ArrowExtensionArray(text)


def from_nuggets(
    nuggets: Any, *, okay: float = 1.0, partial: float = 0.5
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame, pd.DataFrame]:
    """Return runs, intents and tags from the nuggets of answers, for measures of ambiguous queries.

    The nuggets of a query are its intents, with probabilities in proportion to their importance. A document, or the
    answer of a system, has a tag for each nugget that it supports. ES@1 of answers is then the nugget recall of the
    TREC RAG track: of all nuggets by default, of vital ones with ``okay=0``, and the strict ones with ``partial=0``;
    VB@1 subtracts the penalty for important nuggets that are missing.

    Parameters
    ----------
    nuggets
        A frame of :func:`vbterrier.frames.read_nuggets`, or its path.
    okay, partial
        Weights of a nugget of importance okay, at least 0 (that of a vital nugget is 1), and of partial support, 0 to
        1.

    Returns
    -------
    (runs, intents, tags)
        A mapping of system to run (qid, docno, score; documents in the order of the file), and frames with qid,
        entity_id, prob, and with qid, docno, entity_id, weight.

    Raises
    ------
    InputError
        A nugget with two importances, or that some answer to a query lacks; a repeated answer; no nugget is left.

    Warns
    -----
    DegenerateWarning
        Queries without a nugget of positive weight are left out; nuggets with a failed importance or assignment are
        left out of all answers to their query, so that systems are compared on the same nuggets.

    Examples
    --------
    >>> nuggets = pd.DataFrame({"name": "mine", "qid": "7", "docno": "mine/7", "entity_id": ["Paris", "1889"],
    ...                         "importance": ["vital", "okay"], "assignment": ["support", "partial_support"]})
    >>> runs, intents, tags = from_nuggets(nuggets, okay=0.25)
    >>> intents["prob"].tolist(), tags["weight"].tolist(), list(runs)
    ([0.8, 0.2], [1.0, 0.5], ['mine'])
    """
    number("okay", okay, low=0)
    number("partial", partial, low=0, high=1)
    frame = read_nuggets(nuggets) if isinstance(nuggets, (str, os.PathLike)) else pandas_frame(nuggets, "nuggets")
    require(frame, ("name", "qid", "docno", "entity_id", "importance", "assignment"), "nuggets")
    for name, legal in NUGGET_MEMBERS.items():
        odd = frame[~frame[name].isin(legal)]
        if len(odd):
            raise InputError(f"nuggets: row {odd.index[0]}: {name} is {odd[name].iloc[0]!r}, wanted {', '.join(legal)}")
    answer, nugget = ["name", "qid", "docno"], ["qid", "entity_id"]
    again = frame.duplicated([*answer, "entity_id"])
    if again.any():
        twice = frame[again].iloc[0]
        raise InputError(
            f"nuggets: document {twice['docno']!r} of query {twice['qid']!r} has nugget {twice['entity_id']!r} "
            "twice; keep one assignment"
        )
    frame = _without_failures(frame, nugget)
    intents = frame.drop_duplicates([*nugget, "importance"])[[*nugget, "importance"]].reset_index(drop=True)
    if (again := intents.duplicated(nugget)).any():
        repeated = intents[again].iloc[0]
        raise InputError(f"nuggets: nugget {repeated['entity_id']!r} of query {repeated['qid']!r} has two importances")
    n_answers = frame[answer].drop_duplicates().groupby("qid").size()
    lacking = frame.groupby(nugget, sort=False).size().rename("n").reset_index()
    lacking = lacking[lacking["n"] < lacking["qid"].map(n_answers)]
    if len(lacking):
        repeated = lacking.iloc[0]
        raise InputError(
            f"nuggets: nugget {repeated['entity_id']!r} of query {repeated['qid']!r} is assigned to {repeated['n']} of "
            f"its {n_answers[repeated['qid']]} documents; assign all nuggets of a query to each of them"
        )
    weight = intents["importance"].map({"vital": 1.0, "okay": float(okay)})
    total = weight.groupby(intents["qid"]).transform("sum")
    without = intents["qid"][total == 0].unique()
    if len(without):
        some = agreeing(len(without), "queries have no nugget of positive weight and are left out")
        warn(f"nuggets: {some} ({examples(without)})")
    intents = intents[nugget].assign(prob=weight / total)[weight > 0].reset_index(drop=True)
    frame = frame[frame["qid"].isin(intents["qid"].unique())]
    weights = {"support": 1.0, "partial_support": float(partial), "not_support": 0.0}
    tags = frame[["qid", "docno", "entity_id"]].assign(weight=frame["assignment"].map(weights))
    lists = frame.drop_duplicates(answer)[answer]
    lists["score"] = -lists.groupby(["name", "qid"], sort=False).cumcount().astype(np.float64)
    by_name = lists.groupby("name", sort=False)
    runs = {str(name): part.drop(columns="name").reset_index(drop=True) for name, part in by_name}
    return runs, intents, tags.drop_duplicates().reset_index(drop=True)


def _without_failures(frame: pd.DataFrame, nugget: list[str]) -> pd.DataFrame:
    """The nuggets without those of which a judge failed to give an importance or an assignment."""
    failed = frame[list(NUGGET_MEMBERS)].isin([FAILED]).any(axis=1)
    if not failed.any():
        return frame
    key = pd.MultiIndex.from_frame(frame[nugget])
    lost = key[failed].unique()
    kept = frame[~key.isin(lost)]
    gone = sorted(set(frame["qid"]).difference(kept["qid"]))
    if not len(kept):
        raise InputError("nuggets: the judge failed on some answer for every nugget; ask it again")
    rest = f"; {agreeing(len(gone), 'queries have no other nugget')} ({examples(gone)})" if gone else ""
    some = f"{len(lost)} of {lost.get_level_values('qid').nunique()} queries"
    warn(
        f"nuggets: {int(failed.sum())} of {len(frame)} answers of the judge failed: their nuggets, {some} "
        f"({examples(lost.get_level_values('entity_id').tolist())}), are left out of all documents of the query{rest}"
    )
    return kept


def _all_subtopics(
    judged: pd.DataFrame, topics: list[str], subtopics: Any, name: str, *, is_stated: bool
) -> pd.DataFrame:
    """Return the listed subtopics of the judged topics as intents; a topic that has none keeps its iteration "0"."""
    frame = pandas_frame(subtopics, "subtopics")
    require(frame, ("qid", "entity_id"), "subtopics")
    refuse_near_misses(frame, ("prob",), "subtopics")
    qid, entity = (column_ids(frame[column], f"subtopics column {column!r}") for column in ("qid", "entity_id"))
    column = f"{name} column 'qid'"
    require_same_kind(qid, column_ids(judged["qid"], column), "subtopics column 'qid'", column)
    listed, topic = qid.codes()
    require_once(listed, topic, entity, "subtopics")
    if is_stated and "prob" not in frame.columns:
        raise InputError(f"{name} have a column prob, subtopics have none: give the probabilities of all subtopics")
    judged_pairs = set(zip(frame["qid"].astype(str), frame["entity_id"].astype(str), strict=True))
    pairs = list(zip(judged["qid"].astype(str), judged["entity_id"].astype(str), strict=True))
    if not set(listed).intersection(topics):
        raise InputError(f"subtopics: no topic of the {name}: they have {examples(listed)}; {name} {examples(topics)}")
    unlisted = [pair for pair in pairs if pair not in judged_pairs and pair[1] != "0"]
    if unlisted:
        raise InputError(
            f"subtopics: {len(unlisted)} subtopics of the {name} are missing (query {unlisted[0][0]!r}, subtopic "
            f"{unlisted[0][1]!r}); give the topic file of these {name}, with all subtopics"
        )
    made = frame[frame["qid"].astype(str).isin(topics)][["qid", "entity_id", *(["prob"] * ("prob" in frame.columns))]]
    # Iterations of qrels are text, also if they are numbers.
    made = made.assign(entity_id=made["entity_id"].astype(str))
    if "prob" not in made.columns:
        made = made.assign(prob=1.0 / made.groupby("qid")["qid"].transform("size"))
    extended = pd.concat([made, judged[~judged["qid"].astype(str).isin(listed)]], ignore_index=True)
    place = pd.Series(np.arange(len(topics)), index=topics)
    order = extended["qid"].astype(str).map(place).argsort(kind="stable")
    return extended.iloc[order].reset_index(drop=True)


# Iterations of judgments without subtopics, and of judging in rounds, as those of TREC-COVID.
_NO_SUBTOPIC, _ROUND = ("0", "Q0"), re.compile(r"\d+\.\d+")


def names_subtopics(iterations: Iterations, *, is_part: bool = False) -> bool:
    """Return True if iterations are subtopics; those of ordinary qrels are all the same, and some number rounds.

    ``is_part``: a single subtopic is enough, since other queries may have others.

    >>> qrels = pd.DataFrame({"qid": "q", "iteration": ["1", "2"], "docno": ["a", "b"], "label": 1})
    >>> names_subtopics(iteration_codes(qrels)), names_subtopics(iteration_codes(qrels.assign(iteration="0")))
    (True, False)
    """
    names = [one for one in iterations.entities if one not in _NO_SUBTOPIC]
    return len(names) > (0 if is_part else 1) and not any(map(_ROUND.fullmatch, names))


def subtopic_gaps(iterations: Iterations) -> list[str]:
    """Return the topics of diversity qrels whose subtopic numbers have gaps, such as 1, 2, 4; the last leave none."""
    topics, topic, entities, code = iterations
    digits = len(str(_MOST_SUBTOPICS))
    if not all(one.isascii() and one.isdecimal() and len(one) <= digits for one in entities):
        return []
    of_code = np.array([int(one) for one in entities], dtype=np.int64)
    if of_code.max(initial=0) > _MOST_SUBTOPICS:
        return []
    is_present = np.zeros((len(topics), _MOST_SUBTOPICS + 1), dtype=bool)
    is_present[topic, of_code[code]] = True
    largest = _MOST_SUBTOPICS - np.argmax(is_present[:, ::-1], axis=1)
    gaps = largest > np.count_nonzero(is_present[:, 1:], axis=1)
    return [one for one, has_gap in zip(topics, gaps.tolist(), strict=True) if has_gap]


def _repeated_judgments(named: pd.DataFrame, rows: Ints, label: Ints, name: str) -> Ints:
    """Return all but the first of repeated judgments of a document for an intent, and refuse differing labels."""
    if not len(rows):
        return rows
    same = ["qid", "entity_id", "docno"]
    rows = np.sort(rows)
    judged = named[same].take(rows).assign(label=label[rows])
    clash = judged.drop_duplicates().duplicated(same)
    if clash.any():
        qid, entity, docno = judged.drop_duplicates()[clash].iloc[0][same]
        raise InputError(
            f"{name}: document {docno!r} of query {qid!r} has two labels for iteration {entity!r}; keep one judgment"
        )
    later: Ints = rows[judged.duplicated().to_numpy()]
    return later


def to_diversity(intents: pd.DataFrame, tags: pd.DataFrame) -> pd.DataFrame:
    """Convert intents and tags to diversity qrels: a tag with an intent of a query is a label 1 for that subtopic.

    Diversity measures of ndeval use neither probabilities nor weights: all intents, and all tags of positive weight,
    count equally. An intent without documents gets a label 0 for the document "-", so that its query is evaluated.

    >>> intents = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["E1", "E2"], "prob": [0.5, 0.5]})
    >>> to_diversity(intents, pd.DataFrame({"docno": ["d1"], "entity_id": ["E2"]})).values.tolist()
    [['q1', 'E1', '-', 0], ['q1', 'E2', 'd1', 1]]
    """
    require(intents, ("qid", "entity_id"), "intents")
    if PARTS in intents.columns:
        raise InputError(
            "intents: are several ids at once (column parts), which diversity measures of other packages do not read; "
            "use WeightedERRIA, WeightedAlphaNDCG or ES, or convert them with vbterrier.intents.split_parts"
        )
    tags = pandas_frame(tags, "tags", TAGS)
    weighted = tags[TagFrame(tags).weight > 0]
    on = [name for name in ("qid", "entity_id") if name in weighted.columns]
    # Compared as text, because ids may be integers in one of the frames.
    left = intents[["qid", "entity_id"]].astype(str)
    right = weighted[[*on, "docno"]].astype(str).drop_duplicates()
    pairs = left.merge(right, on=on, how="left", sort=False)
    pairs["label"] = pairs["docno"].notna().astype("int64")
    pairs["docno"] = pairs["docno"].fillna(NO_DOCUMENT)
    return pairs.rename(columns={"entity_id": "iteration"})[["qid", "iteration", "docno", "label"]]


def unequal(intents: pd.DataFrame) -> list[str]:
    """Return the queries whose intents have different probabilities; none without a column ``prob``.

    >>> unequal(pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": [*"ABA"], "prob": [0.4, 0.6, 1.0]}))
    ['q1']
    """
    if "prob" not in intents.columns or not len(intents):
        return []
    prob = pd.Series(column_numbers(intents["prob"].reset_index(drop=True), "intents column 'prob'"))
    by_query = prob.groupby(intents["qid"].astype(str).to_numpy(), sort=False)
    spread = by_query.max() - by_query.min()
    return [str(qid) for qid in spread.index[spread > 2 * PROBABILITY_ROUNDING]]


def from_run(run: Run) -> pd.DataFrame:
    """Return tags from the column ``entity_id`` of a run, one id or a list of ids per row, with their query."""
    if not len(run):
        return pd.DataFrame({"qid": [], "docno": [], "entity_id": []}, dtype=str)
    require(run.frame, ("entity_id",), run.name)
    refuse_near_misses(run.frame, ("weight",), run.name, others=("score",))
    tagger = run.frame.get("tagger", pd.Series(dtype=object))
    if tagger.isna().any():
        qid, docno = run.frame.loc[tagger.isna().to_numpy(), ["qid", "docno"]].iloc[0]
        raise InputError(
            f"{run.name}: {int(tagger.isna().sum())} of {len(run)} rows were never tagged (query {qid!r}, document "
            f"{docno!r}): |, &, + and ^ blank or lose columns; tag last in a pipeline, as (a + b) >> TagEntities(...)"
        )
    taggers = tagger.unique()
    if len(taggers) > 1:
        raise InputError(
            f"{run.name}: its rows are tagged by {taggers[0]} and by {taggers[1]}; use one tagger only, last in the "
            "pipeline, as in (a + b) >> TagEntities(...)"
        )
    columns = [name for name in ("entity_id", "weight", "tied", "n_abstained") if name in run.frame.columns]
    frame = run.frame[["qid", "docno", *columns]]
    lists = (list, tuple, set, np.ndarray)
    objects = [name for name in columns if frame[name].dtype == object]
    listed = [name for name in objects if frame[name].map(lambda one: isinstance(one, lists)).any()]
    if listed:
        frame = frame.explode(listed)
    is_tag = frame["entity_id"].notna()
    tags = frame[is_tag].reset_index(drop=True).infer_objects()
    if "n_abstained" in columns and not pd.api.types.is_integer_dtype(tags["entity_id"]):
        # Documents without tags count their abstentions in a row of weight 0, as those of TagEntities.tags.
        silent = frame[~is_tag & (column_integers(frame["n_abstained"], f"{run.name} column 'n_abstained'") > 0)]
        if len(silent):
            tags = tags if "weight" in columns else tags.assign(weight=1.0)
            rows = silent.assign(entity_id=NIL, weight=0.0, **({"tied": False} if "tied" in columns else {}))
            tags = pd.concat([tags, rows[tags.columns]], ignore_index=True).infer_objects()
    return tags
