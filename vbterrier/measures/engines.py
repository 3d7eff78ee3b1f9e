"""Judgments and rankings as engines of others take them: checked ids, each judgment once, plain dictionaries."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, integers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranked import Run
    from vbterrier.measures.scoring import Slot

_JUDGMENT = ["qid", "docno", "iteration"]
# trec_eval has a table of all labels up to the highest, which its nDCG goes through again and again: a label of 10^8
# costs hours. Labels are C ints there: those from 2^31 on are negative, and score 0.
_HIGHEST = 2**15 - 1


def require_ids_of(slot: Slot) -> None:
    """Refuse judgments whose ids engines of others would misread."""
    require(slot.frame, ("qid", "docno", "label"), "qrels")
    require_ids(ids_of(slot.frame["docno"], "qrels column 'docno'"), "qrels column 'docno'")
    require_no_nul(slot.qid, "qrels column 'qid'")


def require_ids(docno: Ids, where: str) -> None:
    """Refuse empty ids, on which engines of others crash."""
    _, bounds = docno.octets()
    empty = bounds[1:] == bounds[:-1]
    if empty.any():
        row = int(np.argmax(empty))
        raise InputError(f"{where}: row {row} is empty; give the document an id, or remove the row")
    require_no_nul(docno, where)


def require_no_nul(ids: Ids, where: str, numbers: NDArray[np.int64] | None = None) -> None:
    """Refuse ids that engines of others, for which a NUL ends a text, would take for shorter ones.

    ``numbers`` say which of the ids stands in each row; without them each row has its own.
    """
    octets, _ = ids.octets()
    if octets.all():
        return
    row = pc.index(pc.match_substring(ids.text, "\0"), pa.scalar(value=True)).as_py()
    if row >= 0:
        value = ids.text[row].as_py()
        row = row if numbers is None else int(np.argmax(numbers == row))
        raise InputError(f"{where}: row {row} holds {value!r}; measures of others end ids at a NUL: remove it")


def judges_once(slot: Slot) -> bool:
    """Whether all rows of the qrels are of one iteration, so that a document that stands twice is an error."""
    if "iteration" not in slot.frame.columns:
        return True
    return bool((slot.frame["iteration"] == slot.frame["iteration"].iloc[0]).all())


def has_subtopics(qrels: pd.DataFrame) -> bool:
    """Whether a document is judged for more than one iteration."""
    if not len(qrels) or (qrels["iteration"] == qrels["iteration"].iloc[0]).all():
        return False
    return bool(qrels.drop_duplicates(_JUDGMENT).duplicated(["qid", "docno"]).any())


def qrels_of(slot: Slot) -> pd.DataFrame:
    """Judgments as engines take them, made once."""
    made: pd.DataFrame = slot.once("foreign", partial(_checked_qrels, slot))
    return made


def _checked_qrels(slot: Slot) -> pd.DataFrame:
    """Judgments as their engines take them, or an error where they would read something else."""
    frame = slot.frame
    checked = pd.DataFrame(
        {
            "qid": _objects(slot.qid),
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
    if not has_subtopics(checked) and len(slot.judgments().label) == len(checked):
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
