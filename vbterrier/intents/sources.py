"""Intents and tags from diversity qrels, and tags from a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, integers_of, repeated_pairs

if TYPE_CHECKING:
    from vbterrier.annotations import Ints
    from vbterrier.frames.ranking import Run


# The document of an intent without documents, with label 0, so that judgments of a document with this id are kept.
# Other diversity tools crash on empty ids.
NO_DOCUMENT = "-"


def from_diversity(qrels: Any, *, rel: int = 1, name: str = "qrels") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return intents and tags from diversity qrels.

    The intents of a query are the distinct iterations of its rows, uniform unless there is a column ``prob``. A row
    with a label below ``rel`` adds its intent, but no tag. Iteration "0" is not an intent if the query has other
    iterations: TREC 2009 uses it for judged non-relevant documents.

    Parameters
    ----------
    qrels
        Columns qid, iteration, docno, label, and optionally prob (of the intent, equal in all its rows).
    rel
        The lowest label that covers an intent.
    name
        The name of the frame in messages.

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
    is_named = code != (entities.index("0") if "0" in entities else -1)
    has_named = np.zeros(len(topics), dtype=bool)
    has_named[topic[is_named]] = True
    rows = np.flatnonzero(is_named | ~has_named[topic])
    intent = topic * len(entities) + code
    named = frame.assign(entity_id=iteration)
    repeated = _repeated(named, rows[repeated_pairs(intent[rows], docno.take(rows))], label, name)
    if not (code[rows] != code[rows[:1]]).any():
        warn(f"{name}: only one iteration, so no query is ambiguous")
    stated = pd.DataFrame(
        {"intent": intent[rows]} | ({"prob": frame["prob"].to_numpy()[rows]} if "prob" in frame else {})
    )
    first = rows[~stated.duplicated().to_numpy()]
    columns = ["qid", "entity_id", *(["prob"] if "prob" in frame.columns else [])]
    intents = named[columns].take(first).reset_index(drop=True)
    if "prob" not in columns:
        intents["prob"] = 1.0 / np.bincount(topic[first], minlength=len(topics))[topic[first]]
    covering = np.setdiff1d(rows[label[rows] >= rel], repeated, assume_unique=True)
    return intents, named[["qid", "docno", "entity_id"]].take(covering).reset_index(drop=True)


def _repeated(named: pd.DataFrame, rows: Ints, label: Ints, name: str) -> Ints:
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

    Diversity measures use neither probabilities nor weights: all intents, and all tags of positive weight, count
    equally. An intent without documents gets a label 0 for the document "-", so that its query is evaluated.

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
    weighted = tags[tags["weight"] > 0] if "weight" in tags.columns else tags
    on = [name for name in ("qid", "entity_id") if name in weighted.columns]
    # Compared as text, because ids may be integers in one of the frames.
    left = intents[["qid", "entity_id"]].astype(str)
    right = weighted[[*on, "docno"]].astype(str).drop_duplicates()
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
    """Return tags from the column ``entity_id`` of a run, one id or a list of ids per row, with their query.

    Raises
    ------
    InputError
        Rows tagged by several taggers, or rows without a tagger among tagged rows: taggers write their name in every
        row, also without tags, so an operator has blanked such rows.
    """
    if not len(run):
        return pd.DataFrame({"qid": [], "docno": [], "entity_id": []}, dtype=str)
    require(run.frame, ("entity_id",), run.name)
    if "tagger" in run.frame.columns:
        _require_one_tagger(run)
    frame = run.frame[["qid", "docno", "entity_id", *(["weight"] if "weight" in run.frame.columns else [])]]
    listed = [
        name
        for name in ("entity_id", "weight")
        if name in frame.columns
        and frame[name].dtype == object
        and frame[name].map(lambda one: isinstance(one, (list, tuple, set, np.ndarray))).any()
    ]
    if listed:
        frame = frame.explode(listed)
    return frame[frame["entity_id"].notna()].reset_index(drop=True).infer_objects()


def _require_one_tagger(run: Run) -> None:
    tagger = run.frame["tagger"]
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
