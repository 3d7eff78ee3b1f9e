"""A frame of tags as checked arrays."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Lookup, ids_of, numbers_of, require_same_kind
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class TagTable:
    """Tags of documents, of all queries or of one each.

    Parameters
    ----------
    frame
        Columns docno, entity_id, and optionally weight in [0, 1] (1 where absent) and qid.
    name
        What messages call it.

    Raises
    ------
    InputError
        A missing column or id, a weight outside [0, 1].
    """

    def __init__(self, frame: Any, *, name: str = "tags") -> None:
        self.name = name
        frame = frame_of(frame, name)
        require(frame, ("docno", "entity_id"), name)
        self.docno = ids_of(frame["docno"], f"{name} column 'docno'")
        self.entity = ids_of(frame["entity_id"], f"{name} column 'entity_id'")
        self.weight = np.ones(len(frame))
        if "weight" in frame.columns:
            self.weight = numbers_of(frame["weight"], f"{name} column 'weight'").copy()
        bad = (self.weight < 0) | (self.weight > 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{name}: row {row} (document {self.docno.text[row].as_py()!r}) has weight {self.weight[row]:g}, "
                "wanted 0 to 1"
            )
        self.topics: list[str] | None = None
        self.topic: Ints | None = None
        if "qid" in frame.columns:
            self.qid = ids_of(frame["qid"], f"{name} column 'qid'")
            self.topics, self.topic = self.qid.codes()

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.topic, self.docno)

    def find(self, frame: pd.DataFrame) -> tuple[Ints, Ints]:
        """The tags of the documents of a frame: rows there, and rows here."""
        docno = ids_of(frame["docno"], "run column 'docno'")
        require_same_kind(self.docno, docno, f"{self.name} column 'docno'", "run column 'docno'")
        if self.topics is None:
            return self._lookup.find(None, docno)
        qid = ids_of(frame["qid"], "run column 'qid'")
        require_same_kind(self.qid, qid, f"{self.name} column 'qid'", "run column 'qid'")
        topics, code = qid.codes()
        here = places(topics, self.topics)[code] if topics else code
        known = np.flatnonzero(here >= 0)
        rows, found = self._lookup.find(here[known], docno.take(known))
        return known[rows], found

    @cached_property
    def digest(self) -> str:
        """What tells this table from others, the same in every process."""
        columns = [self.docno.prints, self.entity.prints, self.weight]
        columns += [] if self.topics is None else [self.qid.prints]
        kinds = bytes([self.docno.integers, self.entity.integers])
        return hashlib.blake2b(b"".join(column.tobytes() for column in columns) + kinds, digest_size=16).hexdigest()
