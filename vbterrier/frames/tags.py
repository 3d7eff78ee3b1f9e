"""What every frame of tags must hold, as checked arrays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Lookup, ids_of, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class TagFrame:
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
            # A copy: what the caller does to the frame later changes nothing.
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
