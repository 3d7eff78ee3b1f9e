"""Where intents and tags come from when nobody gave them as such: diversity judgments, a column of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, integers_of, repeated_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints
    from vbterrier.frames.ranking import Run


# The document of an intent that has none; judged 0, so one that is called so keeps its own judgments. Diversity engines
# of others crash on empty ids.
NO_DOCUMENT = "-"


def from_diversity(qrels: Any, *, rel: int = 1, name: str = "qrels") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intents and tags from diversity qrels.

    The intents of a query are the distinct iterations of its rows, uniform unless a column ``prob`` says otherwise;
    a row below ``rel`` names an intent that its document does not cover. Iteration "0" is no intent when the query
    has others: TREC 2009 marks judged non-relevant documents so.

    Parameters
    ----------
    qrels
        Columns qid, iteration, docno, label, and optionally prob (of the intent, the same in all its rows).
    rel
        The lowest label that covers an intent.
    name
        What messages call it.

    Returns
    -------
    (intents, tags)
        Frames with qid, entity_id, prob, and with qid, docno, entity_id.

    Raises
    ------
    InputError
        A missing column; an intent with two probabilities.
    """
    frame = frame_of(qrels, name)
    require(frame, ("qid", "iteration", "docno", "label"), name)
    label = integers_of(frame["label"], f"{name} column 'label'")
    iteration = frame["iteration"].astype(str)
    qid, docno, entity = (
        ids_of(column, f"{name} column {column.name!r}") for column in (frame["qid"], frame["docno"], iteration)
    )
    topics, topic = qid.codes()
    entities, code = entity.codes()
    rows = _of_intents(topic, code != (entities.index("0") if "0" in entities else -1))
    intent = topic * len(entities) + code
    named = frame.assign(entity_id=iteration)
    again = _again(named, rows[repeated_pairs(intent[rows], docno.take(rows))], label, name)
    if not (code[rows] != code[rows[:1]]).any():
        warn(f"{name}: one iteration only: no query is ambiguous")
    told = pd.DataFrame(
        {"intent": intent[rows]} | ({"prob": frame["prob"].to_numpy()[rows]} if "prob" in frame else {})
    )
    first = rows[~told.duplicated().to_numpy()]
    columns = ["qid", "entity_id", *(["prob"] if "prob" in frame.columns else [])]
    intents = named[columns].take(first).reset_index(drop=True)
    if "prob" not in columns:
        intents["prob"] = 1.0 / np.bincount(topic[first], minlength=len(topics))[topic[first]]
    covering = np.setdiff1d(rows[label[rows] >= rel], again, assume_unique=True)
    return intents, named[["qid", "docno", "entity_id"]].take(covering).reset_index(drop=True)


def _of_intents(topic: Ints, is_named: NDArray[np.bool_]) -> Ints:
    """The rows that tell of an intent: those of iteration "0" only where a query has no other."""
    others = np.zeros(int(topic.max(initial=-1)) + 1, dtype=bool)
    others[topic[is_named]] = True
    return np.flatnonzero(is_named | ~others[topic])


def _again(named: pd.DataFrame, rows: Ints, label: Ints, name: str) -> Ints:
    """Of rows that judge a document for an intent more than once, all but the first, refusing another label."""
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
    """Diversity qrels of intents and tags: every tag with one of a query's intents is a judgment 1 of that subtopic.

    Diversity measures know neither probabilities nor weights: intents count alike, and so do tags above 0. An intent
    without documents leaves a judgment 0 of the document "-", so that its query counts.

    Parameters
    ----------
    intents
        Columns qid, entity_id.
    tags
        Columns docno, entity_id, and optionally weight and qid.

    Returns
    -------
    pandas.DataFrame
        Columns qid, iteration, docno, label.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["E1", "E2"], "prob": [0.5, 0.5]})
    >>> to_diversity(intents, pd.DataFrame({"docno": ["d1"], "entity_id": ["E2"]})).values.tolist()
    [['q1', 'E1', '-', 0], ['q1', 'E2', 'd1', 1]]
    """
    require(intents, ("qid", "entity_id"), "intents")
    require(tags, ("docno", "entity_id"), "tags")
    held = tags[tags["weight"] > 0] if "weight" in tags.columns else tags
    on = [name for name in ("qid", "entity_id") if name in held.columns]
    # All as text: ids of one space may be integers on one side.
    left = intents[["qid", "entity_id"]].astype(str)
    right = held[[*on, "docno"]].astype(str).drop_duplicates()
    found = left.merge(right, on=on, how="left", sort=False)
    known = found["docno"].notna()
    return pd.DataFrame(
        {
            "qid": found["qid"],
            "iteration": found["entity_id"],
            "docno": found["docno"].where(known, NO_DOCUMENT),
            "label": known.astype("int64"),
        }
    )


def from_run(run: Run) -> pd.DataFrame:
    """Tags from the column ``entity_id`` of a run, one id or a list of ids a row, with their query.

    Raises
    ------
    InputError
        Rows tagged by several taggers, or rows without a tagger among rows that have one: what tags names itself in
        every row, also where it finds nothing, so such rows were blanked by an operator.
    """
    if not len(run):
        return pd.DataFrame({"qid": [], "docno": [], "entity_id": []}, dtype=str)
    require(run.frame, ("entity_id",), run.name)
    if "tagger" in run.frame.columns:
        _require_whole(run)
    frame = run.frame[["qid", "docno", "entity_id", *(["weight"] if "weight" in run.frame.columns else [])]]
    listed = [name for name in ("entity_id", "weight") if name in frame.columns and _holds_lists(frame[name])]
    if listed:
        frame = frame.explode(listed)
    return frame[frame["entity_id"].notna()].reset_index(drop=True).infer_objects()


def _require_whole(run: Run) -> None:
    tagger = run.frame["tagger"]
    if tagger.isna().any():
        qid, docno = run.frame.loc[tagger.isna().to_numpy(), ["qid", "docno"]].iloc[0]
        raise InputError(
            f"{run.name}: {int(tagger.isna().sum())} of {len(run)} rows were never tagged (query {qid!r}, document "
            f"{docno!r}): |, &, + and ^ blank or lose columns; tag last in a pipeline, as (a + b) >> TagEntities(...)"
        )
    several = tagger.unique()
    if len(several) > 1:
        raise InputError(
            f"{run.name}: its rows are tagged by {several[0]} and by {several[1]}; one tagger only: tag last in a "
            "pipeline, as (a + b) >> TagEntities(...)"
        )


def _holds_lists(column: pd.Series[Any]) -> bool:
    return column.dtype == object and bool(
        column.map(lambda value: isinstance(value, (list, tuple, set, np.ndarray))).any()
    )
