"""What every frame of judgments must hold, as checked arrays."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Lookup, ids_of, integers_of, owner_of, repeated_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class LabelFrame:
    """Judged documents, each once.

    Parameters
    ----------
    qrels
        Columns qid, docno, label.
    name
        What messages call it.
    drop_negative
        Take labels below 0 for missing judgments.

    Raises
    ------
    InputError
        A missing column or id, a label that is no whole number, one document with two labels.

    Attributes
    ----------
    qid : Ids
        The column as it came.
    topics : list of str
        In order of appearance.
    topic, docno, label
        The topic's number, the document and the label of each judgment.
    """

    def __init__(self, qrels: Any, *, name: str = "qrels", drop_negative: bool = False) -> None:
        self.name = name
        frame = frame_of(qrels, name)
        require(frame, ("qid", "docno", "label"), name)
        self.qid = ids_of(frame["qid"], f"{name} column 'qid'")
        self.docno = ids_of(frame["docno"], f"{name} column 'docno'")
        self.topics, self.topic = self.qid.codes()
        owner = owner_of(self.topics, self.topic, self.docno)
        self.label = integers_of(frame["label"], f"{name} column 'label'", owner)
        keep = self._once(diversity="iteration" in frame.columns)
        if drop_negative:
            keep &= self.label >= 0
        if not keep.all():
            self.topic, self.label = self.topic[keep], self.label[keep]
            self.docno = self.docno.take(np.flatnonzero(keep))

    @cached_property
    def lookup(self) -> Lookup:
        """Finds the row of a topic's number and a document."""
        return Lookup(self.topic, self.docno)

    def _once(self, *, diversity: bool) -> NDArray[np.bool_]:
        """Which rows to keep so that each document is judged once."""
        topic, docno, label = self.topic, self.docno, self.label
        keep = np.ones(len(label), dtype=bool)
        rows = repeated_pairs(topic, docno)
        if not len(rows):
            return keep
        same = (topic[rows[1:]] == topic[rows[:-1]]) & (docno.take(rows).prints[1:] == docno.take(rows).prints[:-1])
        clash = same & (label[rows[1:]] != label[rows[:-1]])
        if clash.any():
            first, second = rows[int(np.argmax(clash))], rows[int(np.argmax(clash)) + 1]
            hint = "; diversity qrels? flatten them first with vbterrier.flatten_qrels" if diversity else ""
            raise InputError(
                f"{self.name}: document {docno.text[int(first)].as_py()!r} of query {self.topics[topic[first]]!r} has "
                f"the labels {label[first]} (row {first}) and {label[second]} (row {second}); keep one judgment a "
                f"document{hint}"
            )
        keep[rows[1:][same]] = False
        warnings.warn(
            f"{self.name}: {int(same.sum())} repeated judgments with the same label count once",
            DegenerateWarning,
            stacklevel=4,
        )
        return keep
