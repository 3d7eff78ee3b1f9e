"""Linked pools: the documents of each topic and the entities that each mentions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.frames.id_spaces import entity_ids
from vbterrier.frames.ids import Ids, Lookup, require_same_kind
from vbterrier.frames.notebook import Panel
from vbterrier.frames.pool_links import UNJUDGED, pool_fields
from vbterrier.frames.ranking import places
from vbterrier.frames.results import Shown, facts
from vbterrier.kernels.rankings import spans, stable_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class LinkedPool(Shown):
    """The documents of each topic's candidate pool, and the entities that each mentions.

    Use :func:`vbterrier.entities.link_pool`, or :meth:`from_frame` for a frame. Documents are sorted by topic and rank;
    the entities of document d are ``entity[starts[d]:starts[d + 1]]``, distinct and in ascending order.

    Parameters
    ----------
    topics, entities
        The topic ids, in the order of the pool, and the ids of all entities, in byte order.
    topic, docno, label, rank
        For each document, shape (n_documents,): index of its topic, ascending; its id; its label, -1 if unjudged and
        otherwise at least 0; its rank, from 0.
    starts
        Offsets of the links of each document, shape (n_documents + 1,).
    entity, weight, mentions
        For each link, shape (n_links,): index into ``entities``; the highest confidence of the document's mentions of
        the entity, 0 to 1, and their number.
    space
        The id space of the entities, such as ``"wikidata"``; empty if neither addresses nor the form of the ids say it.

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {"qid": "q1", "docno": ["d1", "d1"], "entity_id": ["Paris", "Rome"], "label": 1, "rank": 0, "weight": 1.0}
    ... )
    >>> LinkedPool.from_frame(frame)
    LinkedPool(1 topics, 1 documents, 2 entities, 2 links)
    """

    topics: list[str]
    topic: Ints
    docno: Ids
    label: Ints
    rank: Ints
    entities: Ids
    starts: Ints
    entity: Ints
    weight: Floats
    mentions: Ints
    space: str = ""

    def __len__(self) -> int:
        return len(self.topic)

    def _line(self) -> str:
        sizes = f"{len(self.topics)} topics, {len(self)} documents, {len(self.entities)} entities"
        return f"{sizes}, {len(self.entity)} links"

    def _panels(self) -> Iterator[Panel]:
        n = len(self)
        numbers = {
            "topics": len(self.topics),
            "documents": n,
            "relevant (label >= 1)": int(self.relevant().sum()),
            "unjudged": int((self.label == UNJUDGED).sum()),
            "without entities": int((np.diff(self.starts) == 0).sum()),
            "entities": len(self.entities),
            "links": len(self.entity),
            "entities per document": len(self.entity) / n if n else np.nan,
        }
        yield Panel("The pool", facts(numbers))

    @cached_property
    def document(self) -> Ints:
        """The document of each link, shape (n_links,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def topic_starts(self) -> Ints:
        """Offsets of the documents of each topic, shape (n_topics + 1,)."""
        return np.searchsorted(self.topic, np.arange(len(self.topics) + 1))

    @cached_property
    def _by_pair(self) -> tuple[Ints, Ints, Ints]:
        """Links sorted by topic, entity and document, the offsets of each pair of topic and entity, and the pairs."""
        size = max(len(self.entities), 1)
        links, key = stable_order(self.topic[self.document] * size + self.entity, len(self.topics) * size)
        new = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=bool)
        starts = np.flatnonzero(new)
        return links, np.append(starts, len(key)), key[starts]

    @property
    def pairs(self) -> Ints:
        """The linked pairs of topic and entity as ``topic * n_entities + entity``, ascending, shape (n_pairs,)."""
        return self._by_pair[2]

    @cached_property
    def pair(self) -> Ints:
        """Index into :attr:`pairs` of each link, shape (n_links,)."""
        links, starts, _ = self._by_pair
        place = np.empty(len(links), dtype=np.int64)
        place[links] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return place

    def find(self, topic: Ints, entity: Ints) -> Ints:
        """Return indices into :attr:`pairs` of pairs of topic and entity, -1 without a link; any shape."""
        if not len(self.pairs):
            return np.full(np.broadcast_shapes(topic.shape, entity.shape), -1)
        key = topic * len(self.entities) + entity
        place = np.minimum(np.searchsorted(self.pairs, key), len(self.pairs) - 1)
        return np.where((entity >= 0) & (self.pairs[place] == key), place, -1)

    def mentioned(self, pair: Ints) -> tuple[Ints, Ints]:
        """Return the links of pairs: the position of each link's pair in the input, and the link; shape (n,)."""
        links, starts, _ = self._by_pair
        owner, place = spans(starts[pair], starts[pair + 1])
        return owner, links[place]

    @cached_property
    def df(self) -> Ints:
        """The number of documents of the topic that mention each pair's entity, shape (n_pairs,)."""
        return np.bincount(self.pair, minlength=len(self.pairs))

    @property
    def idf(self) -> Floats:
        """``log((N_q + 1)/(df + 1)) + 1`` of each pair, with N_q documents in the topic's pool, shape (n_pairs,)."""
        n_documents = np.diff(self.topic_starts)[self.pairs // max(len(self.entities), 1)]
        idf: Floats = np.log((n_documents + 1) / (self.df + 1)) + 1
        return idf

    @cached_property
    def _documents(self) -> Lookup:
        return Lookup(self.topic, self.docno)

    def find_documents(self, topics: list[str], topic: Ints, docno: Ids, where: str) -> Ints:
        """Return indices of documents (topic as an index into ``topics``, and id), -1 outside the pool, shape (n,)."""
        require_same_kind(self.docno, docno, "links column 'docno'", where)
        if not len(self):
            return np.full(len(topic), -1)
        return self._documents.find_one(places(topics, self.topics)[topic], docno)

    def relevant(self, rel: int = 1) -> NDArray[np.bool_]:
        """Return True for relevant documents, shape (n_documents,); unjudged documents are non-relevant."""
        return self.label >= max(rel, 0)

    def entities_of(self, ids: Ids) -> Ints:
        """Return indices into :attr:`entities` of ids, -1 for ids that no document mentions, shape (n,).

        Addresses match names of the same space; ids of two spaces are refused.
        """
        plain = entity_ids(ids, "entities", space=self.space)
        pool_ids = (
            self.entities if plain.space == self.space else entity_ids(self.entities, "links", space=plain.space).ids
        )
        return Lookup(None, pool_ids).find_one(None, plain.ids)

    def rows(self) -> tuple[Ints, Ints]:
        """Return the document and link of each row of the K frame, link -1 if a document has none; shape (n_rows,)."""
        unlinked = np.flatnonzero(np.diff(self.starts) == 0)
        document = np.insert(self.document, self.starts[unlinked], unlinked)
        return document, np.insert(np.arange(len(self.entity)), self.starts[unlinked], -1)

    def to_frame(self) -> pd.DataFrame:
        """Return the K frame, one row per link: qid, docno, entity_id, label, rank, weight, mentions.

        A document without entities has one row without an entity id, so that it remains part of the pool.
        """
        document, link = self.rows()
        entity = self.entities.text.take(pa.array(of_rows(self.entity, link), mask=link < 0))
        return pd.DataFrame(
            {
                "qid": pa.array(self.topics, pa.large_string()).take(pa.array(self.topic[document])).to_pandas(),
                "docno": self.docno.take(document).text.to_pandas(),
                "entity_id": entity.to_pandas(),
                "label": self.label[document],
                "rank": self.rank[document],
                "weight": of_rows(self.weight, link),
                "mentions": of_rows(self.mentions, link),
            }
        )

    @classmethod
    def from_frame(cls, frame: Any, *, name: str = "links") -> LinkedPool:
        """Create a pool from a K frame: qid, docno, entity_id, label, rank, weight [, mentions].

        Raises
        ------
        InputError
            A missing column or id; a document with two labels or ranks; a weight outside [0, 1].
        """
        return cls(**pool_fields(frame, name))


def of_rows(values: Any, link: Ints) -> Any:
    """Return the value of each row's link, 0 for a document without links."""
    return np.append(values, values.dtype.type(0))[link]
