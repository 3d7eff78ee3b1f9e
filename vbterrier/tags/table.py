"""A frame of tags as checked arrays."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.frames.ids import ids_of, require_same_kind
from vbterrier.frames.tags import TagFrame
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class TagTable(TagFrame):
    """Tags of documents, looked up for results."""

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
