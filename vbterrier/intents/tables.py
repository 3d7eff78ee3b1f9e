"""Candidate intents and tags as checked arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.frames.candidates import probabilities_of, require_once
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Ids, Lookup, ids_of, require_same_kind
from vbterrier.frames.tags import TagFrame
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Intents:
    """The candidate intents of every query with their probabilities.

    Parameters
    ----------
    frame
        Columns qid, entity_id, prob.
    normalise
        Divide the probabilities of each query by their sum; otherwise a sum that is off by more than 1e-6 is an error.
    name
        What messages call it.

    Raises
    ------
    InputError
        A missing column or id, an intent that stands twice, a probability outside [0, 1], a sum that is not 1.

    Attributes
    ----------
    topics : list of str
        In order of appearance.
    topic : numpy.ndarray
        The place of each intent's topic, shape (n_intents,).
    prob : numpy.ndarray
        Probability of each intent, shape (n_intents,), 1 in sum over a topic.
    """

    def __init__(self, frame: Any, *, normalise: bool = False, name: str = "intents") -> None:
        self.name = name
        frame = frame_of(frame, name)
        require(frame, ("qid", "entity_id", "prob"), name)
        self.qid = ids_of(frame["qid"], f"{name} column 'qid'")
        self.entity = ids_of(frame["entity_id"], f"{name} column 'entity_id'")
        self.topics, self.topic = self.qid.codes()
        require_once(self.topics, self.topic, self.entity, name)
        prob, total = probabilities_of(frame["prob"], self.topics, self.topic, self.entity, name, normalise=normalise)
        self.prob = prob / total[self.topic]
        self.lookup = Lookup(self.topic, self.entity)

    def called(self, entity: str) -> Ints:
        """The places of the intents of an entity."""
        return called(self.entity, entity)


class Tags(TagFrame):
    """Which entities each document is about.

    Parameters
    ----------
    frame
        Columns docno, entity_id, and optionally weight in [0, 1] (1 where absent) and qid (tags for one query only).
    pooled
        Whether the frame holds all documents known to be about an entity, for an ideal ranking to be built of them.
    name
        What messages call it.
    """

    def __init__(self, frame: Any, *, pooled: bool = True, name: str = "tags") -> None:
        super().__init__(frame, name=name)
        self.pooled = pooled

    def find(self, intents: Intents, topic: Ints, docno: Ids, run: str) -> tuple[Ints, Ints]:
        """Match retrieved documents with tags: places among the documents, and rows here."""
        require_same_kind(self.docno, docno, f"{self.name} column 'docno'", f"{run} column 'docno'")
        if self.topics is None:
            return self._lookup.find(None, docno)
        require_same_kind(self.qid, intents.qid, f"{self.name} column 'qid'", f"{intents.name} column 'qid'")
        here = places(intents.topics, self.topics)[topic]
        known = np.flatnonzero(here >= 0)
        pairs, rows = self._lookup.find(here[known], docno.take(known))
        return known[pairs], rows

    def known_documents(self, intents: Intents) -> Ints | None:
        """How many documents are known to be about each intent, shape (n_intents,); ``None`` without a pool."""
        if not self.pooled:
            return None
        rows, found = self.of_intents(intents)
        pairs = pd.DataFrame({"intent": found, "docno": self.docno.take(rows).text.to_pylist()})
        return np.bincount(pairs.drop_duplicates()["intent"], minlength=len(intents.prob))

    def of_intents(self, intents: Intents) -> tuple[Ints, Ints]:
        """Match the tags of some weight with the intents that they are about, retrieved or not.

        Returns
        -------
        (rows, places)
            For every match the row here and the place of the intent, rows rising.
        """
        counted = np.flatnonzero(self.weight > 0)
        if self.topics is None or self.topic is None:
            return self._all_topics(intents, counted)
        here = places(self.topics, intents.topics)[self.topic]
        rows = counted[here[counted] >= 0]
        found = intents.lookup.find_one(here[rows], self.entity.take(rows))
        return rows[found >= 0], found[found >= 0]

    def _all_topics(self, intents: Intents, rows: Ints) -> tuple[Ints, Ints]:
        """Tags without a query count for every query that has their entity among its intents."""
        pairs, found = Lookup(None, intents.entity).find(None, self.entity.take(rows))
        return rows[pairs], found


def called(ids: Ids, name: str) -> Ints:
    """The places where an id stands."""
    return np.flatnonzero(pc.equal(ids.text, name).to_numpy(zero_copy_only=False))
