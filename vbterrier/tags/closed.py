"""Closed tagging: tags restricted to the candidate intents of each query."""

from __future__ import annotations

import hashlib
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import DegenerateWarning, examples
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import Lookup, ids_of, require_same_kind
from vbterrier.frames.named import named
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]


class Candidates:
    """The candidate intents of queries.

    Parameters
    ----------
    intents
        Columns qid, entity_id; or a registered name, or a path.
    """

    def __init__(self, intents: Any) -> None:
        frame = named("intents", intents)
        require(frame, ("qid", "entity_id"), "intents")
        self.qid = ids_of(frame["qid"], "intents column 'qid'")
        self.entity = ids_of(frame["entity_id"], "intents column 'entity_id'")
        self.topics, topic = self.qid.codes()
        self._lookup = Lookup(topic, self.entity)

    def among(self, qid: Ids, row: Ints, entity: Ids) -> Bools:
        """Whether tags of rows are with candidates of the rows' queries, shape (n_tags,).

        Parameters
        ----------
        qid
            The query of each row of the run.
        row, entity
            The row and the entity of each tag.
        """
        require_same_kind(self.qid, qid, "intents column 'qid'", "run column 'qid'")
        require_same_kind(self.entity, entity, "intents column 'entity_id'", "entities that the tagger found")
        topics, code = qid.codes()
        here = places(topics, self.topics)
        if (here < 0).any():
            without = [topic for topic, place in zip(topics, here, strict=True) if place < 0]
            warnings.warn(
                f"{len(without)} of {len(topics)} queries have no intents, and their documents get no tags "
                f"({examples(without)})",
                DegenerateWarning,
                stacklevel=5,
            )
        asked = here[code[row]]
        known = np.flatnonzero(asked >= 0)
        found, _ = self._lookup.find(asked[known], entity.take(known))
        among = np.zeros(len(row), dtype=bool)
        among[known[found]] = True
        return among

    @cached_property
    def digest(self) -> str:
        """What tells these intents from others, the same in every process."""
        content = self.qid.prints.tobytes() + self.entity.prints.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()
