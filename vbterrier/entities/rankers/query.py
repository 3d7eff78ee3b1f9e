"""The entities that queries name, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Ids, ids_of, numbers_of
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class QueryEntities:
    """Entities of queries with their probabilities, from an I frame.

    Parameters
    ----------
    frame
        Columns qid, entity_id and optionally prob, at least 0, 1 where absent.
    name
        What messages call it.

    Raises
    ------
    InputError
        A missing column or id; a probability that is none.
    """

    def __init__(self, frame: Any, *, name: str) -> None:
        frame = frame_of(frame, name)
        require(frame, ("qid", "entity_id"), name)
        self.topics, self.topic = ids_of(frame["qid"], f"{name} column 'qid'").codes()
        self.entity = ids_of(frame["entity_id"], f"{name} column 'entity_id'")
        self.prob = numbers_of(frame["prob"], f"{name} column 'prob'") if "prob" in frame else np.ones(len(frame))
        bad = ~((self.prob >= 0) & np.isfinite(self.prob))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{name}: row {row} has prob {self.prob[row]:g}, wanted a number of at least 0")

    def of(self, topics: list[str]) -> tuple[Ints, Ids, Floats]:
        """The rows of some topics: the place of each row's topic among them, its entity, its probability."""
        place = places(self.topics, topics)[self.topic]
        rows = np.flatnonzero(place >= 0)
        return place[rows], self.entity.take(rows), self.prob[rows]
