"""Qrels of one kind made into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, integers_of

if TYPE_CHECKING:
    import pandas as pd


def flatten_qrels(qrels: Any, *, name: str = "qrels") -> pd.DataFrame:
    """Adhoc judgments from diversity judgments: the highest label of each document over all iterations.

    Parameters
    ----------
    qrels
        Columns qid, docno, label; an iteration column is ignored.
    name
        What messages call it.

    Returns
    -------
    pandas.DataFrame
        qid, docno, label; one row a document, in order of appearance.

    Raises
    ------
    InputError
        A missing column or id, a label that is no whole number.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "1", "iteration": ["1", "2"], "docno": "d", "label": [0, 2]})
    >>> flatten_qrels(qrels).values.tolist()
    [['1', 'd', 2]]
    """
    frame = frame_of(qrels, name)
    require(frame, ("qid", "docno", "label"), name)
    for column in ("qid", "docno"):
        ids_of(frame[column], f"{name} column {column!r}")
    frame = frame.assign(label=integers_of(frame["label"], f"{name} column 'label'"))
    return frame.groupby(["qid", "docno"], sort=False, observed=True)["label"].max().reset_index()
