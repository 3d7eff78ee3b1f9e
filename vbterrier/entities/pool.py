"""Linked pools, and their Parquet files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vbterrier import remedies
from vbterrier.entities.links import COLUMNS, UNJUDGED, coded, fields_of, links_of
from vbterrier.errors import FileError, InputError, path_of, whole_or_none
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.files.source import MAX_BYTES, Source
from vbterrier.frames.files.tables import require_columns
from vbterrier.frames.files.writing import replacing
from vbterrier.frames.id_spaces import entity_ids
from vbterrier.frames.ids import Ids, Lookup, require_same_kind
from vbterrier.frames.notebook import Panel
from vbterrier.frames.ranking import Run, places
from vbterrier.frames.results import Shown, facts
from vbterrier.kernels.rankings import spans, stable_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, StrPath


@dataclass(frozen=True, eq=False, repr=False)
class LinkedPool(Shown):
    """The documents of each topic's candidate pool, and the entities that each mentions.

    Use :func:`link_pool`, or :meth:`from_frame` for a frame. Documents are sorted by topic and rank; the entities of
    document d are ``entity[starts[d]:starts[d + 1]]``, distinct and in ascending order.

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
        own = self.entities if plain.space == self.space else entity_ids(self.entities, "links", space=plain.space).ids
        return Lookup(None, own).find_one(None, plain.ids)

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
        return cls(**fields_of(frame, name))


def link_pool(pool: Any, tags: Any, qrels: Any = None, *, cutoff: int | None = None) -> LinkedPool:
    """Join a candidate pool with the entities of its documents and with judgments.

    Parameters
    ----------
    pool
        A first-stage run: qid, docno, score.
    tags
        Entity mentions of documents, one per row: docno, entity_id [, weight, qid].
    qrels
        qid, docno, label; a label below 0 counts as 0. Unjudged documents get the label -1.
    cutoff
        The number of documents in the pool of each topic; ``None`` for all.

    Returns
    -------
    LinkedPool
        ``.to_frame()`` is the K frame that entity measures take as qrels.

    Raises
    ------
    ParameterError
        ``cutoff`` is not a whole number of at least 1.
    InputError
        See the contracts of the frames; ids of different kinds or id spaces; no document with an entity.

    Notes
    -----
    All mentions of an entity in a document become one link with their number and their highest weight. Entity ids
    become text, numbers included, in the spelling of their id space: ``http://www.wikidata.org/entity/Q42``,
    ``wd:Q42`` and ``Q42`` are one entity, and ``dbr:Michael_Jordan`` is that of the name beside it. Addresses of two id
    spaces are refused: map them to one of them before linking.

    Mentions without an entity are no links, and their documents stay in the pool. These are ``NIL``, ``NIL0012``,
    ``<NIL>``, ``--NME--``, ``<unk_wiki>``, ``notInWiki`` and empty text; ``null``, ``NA`` and ``O`` are names among
    names, and no entity if all other ids are codes of Wikidata or addresses.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2: D(q), Λ(d).

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2"], "entity_id": ["Paris", "Paris", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    >>> link_pool(pool, tags, qrels).to_frame()[["docno", "entity_id", "label", "mentions"]].values.tolist()
    [['d1', 'Paris', 1, 2], ['d2', 'Texas', -1, 1]]
    """
    run = pool if isinstance(pool, Run) else Run(pool, name="pool")
    top = run.top(whole_or_none("cutoff", cutoff))
    topic, rank = np.nonzero(top.rows >= 0)
    docno = run.docno.take(top.rows[topic, rank])
    linked = TagFrame(tags)
    require_same_kind(linked.docno, docno, "tags column 'docno'", "pool column 'docno'")
    document, row = _mentions(linked, run, topic, docno)
    if linked.n_abstained is not None:
        # Rows of weight 0 count abstentions, and link nothing.
        document, row = document[linked.weight[row] > 0], row[linked.weight[row] > 0]
    if len(topic) and not len(row):
        raise InputError(
            f"none of the {len(topic)} documents of the pool has an entity in tags; check the document ids (tags: "
            f"{linked.docno.text[:3].to_pylist()}, pool: {docno.text[:3].to_pylist()})"
        )
    # Ids are encoded before they are repeated for documents of several pools.
    vocabulary, entity, space = coded(linked.entity, f"{linked.name} column 'entity_id'")
    if len(row) and (entity[row] < 0).all():
        raise InputError(f"{linked.name}: no link of the pool has an entity, all are NIL; check the column entity_id")
    document, row = document[entity[row] >= 0], row[entity[row] >= 0]
    links = links_of(len(topic), document, vocabulary, entity[row], linked.weight[row])
    label = np.full(len(topic), UNJUDGED)
    if qrels is not None:
        label = judged(LabelFrame(qrels), run.topic_ids, run.topics, topic, docno, ("pool", "pool"))
    return LinkedPool(
        topics=run.topics, topic=topic, docno=docno, label=label, rank=rank, **links._asdict(), space=space
    )


def _mentions(tags: TagFrame, run: Run, topic: Ints, docno: Ids) -> tuple[Ints, Ints]:
    """Return the document and the row of tags of every mention in the pool."""
    _, code = tags.docno.codes()
    group, own, place = code, None, None
    if tags.topics is not None and tags.topic is not None:
        group = tags.topic * (int(code.max(initial=0)) + 1) + code
        own, place = tags.topic, places(run.topics, tags.topics)[topic]
    rows = np.argsort(group, kind="stable") if (np.diff(group) < 0).any() else np.arange(len(group))
    first = np.flatnonzero(np.concatenate([[True], np.diff(group[rows]) != 0])) if len(rows) else rows
    heads = rows[first]
    pairs = Lookup(None if own is None else own[heads], tags.docno.take(heads)).find_one(place, docno)
    stops = np.append(first, len(rows))
    has = np.flatnonzero(pairs >= 0)
    owner, place = spans(stops[pairs[has]], stops[pairs[has] + 1])
    return has[owner], rows[place]


def judged(
    labels: LabelFrame, ids: Ids, topics: list[str], topic: Ints, docno: Ids, names: Sequence[str], low: int = 0
) -> Ints:
    """Return the label of each document, at least ``low``, or -1 if it is unjudged; kinds of ids have to agree.

    ``topic`` is the index of each document's topic in ``topics``, ``ids`` the ids of topics of its frame; ``names``
    are the frames of the ids of topics and of documents, for messages.
    """
    require_same_kind(labels.qid, ids, "qrels column 'qid'", f"{names[0]} column 'qid'")
    require_same_kind(labels.docno, docno, "qrels column 'docno'", f"{names[1]} column 'docno'")
    if not len(labels.label):
        return np.full(len(topic), UNJUDGED)
    row = labels.lookup.find_one(places(topics, labels.topics)[topic], docno)
    return np.where(row >= 0, np.maximum(labels.label, low)[row], UNJUDGED)


def of_rows(values: Any, link: Ints) -> Any:
    """Return the value of each row's link, 0 for a document without links."""
    return np.append(values, values.dtype.type(0))[link]


_IDS = ("qid", "docno", "entity_id")
_SCHEMA = pa.schema(
    [
        *((name, pa.dictionary(pa.int32(), pa.large_string())) for name in _IDS),
        *((name, pa.int64()) for name in ("label", "rank")),
        ("weight", pa.float64()),
        ("mentions", pa.int64()),
    ]
)
# The id space of the entities, in the metadata of the file.
_SPACE = b"vbterrier:id_space"
# Rows per write.
_CHUNK = 1 << 20


def write_links(pool: LinkedPool, path: StrPath) -> None:
    """Write the K frame of a linked pool as a Parquet file with dictionary-encoded ids and Zstandard compression.

    An existing file is replaced after the new one is complete.

    Parameters
    ----------
    pool, path
        The linked pool, and the file to write.

    Raises
    ------
    InputError
        Something else than a :class:`LinkedPool`.
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.parquet")
    >>> pool = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    >>> write_links(link_pool(pool, pd.DataFrame({"docno": ["d1"], "entity_id": ["Paris"]})), path)
    >>> read_links(path)
    LinkedPool(1 topics, 1 documents, 1 entities, 1 links)
    """
    if not isinstance(pool, LinkedPool):
        raise InputError(
            f"write_links: found {type(pool).__name__}, wanted a LinkedPool: that of link_pool, LinkedPool.from_frame "
            "or the attribute pool of an artifact"
        )
    document, link = pool.rows()
    text = pa.array(pool.topics, pa.large_string()), pool.docno.text, pool.entities.text
    schema = _SCHEMA.with_metadata({_SPACE: pool.space.encode()})
    with replacing(path_of("path", path)) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(link), _CHUNK):
            at, of = document[start : start + _CHUNK], link[start : start + _CHUNK]
            codes = pool.topic[at], at, np.where(of >= 0, of_rows(pool.entity, of), -1)
            # The code -1 is a missing id.
            ids = [
                pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32), mask=code < 0), values)
                for code, values in zip(codes, text, strict=True)
            ]
            columns = [*ids, pool.label[at], pool.rank[at], of_rows(pool.weight, of), of_rows(pool.mentions, of)]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


def read_links(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> LinkedPool:
    """Read a linked pool from a Parquet file of :func:`write_links`, or from any with the columns of a K frame.

    Parameters
    ----------
    path
        The file.
    max_bytes
        The largest uncompressed size; ``None`` for no limit.

    Returns
    -------
    LinkedPool
        The pool, as :func:`link_pool` returns it.

    Raises
    ------
    FileError
        Not a Parquet file, a missing column, or rows that do not form a linked pool.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.parquet")
    >>> links = pd.DataFrame({"qid": ["q1"], "docno": "007", "entity_id": "NA", "label": 1, "rank": 0, "weight": 0.5})
    >>> write_links(LinkedPool.from_frame(links), path)
    >>> read_links(path).to_frame().values.tolist()
    [['q1', '007', 'NA', 1, 0, 0.5, 1]]
    """
    source = Source.at(path, max_bytes)
    if not source.is_parquet:
        raise FileError(source.path, "is not a Parquet file; write links with write_links")
    try:
        with source.raw() as raw:
            schema = pq.read_schema(raw)
            require_columns(source.path, schema.names, COLUMNS)
            for field in _SCHEMA:
                if field.name in schema.names and pa.types.is_nested(schema.field(field.name).type):
                    wanted = "ids as text" if field.name in _IDS else "numbers"
                    column_type = schema.field(field.name).type
                    raise FileError(source.path, f"column {field.name!r} holds {column_type}, wanted {wanted}")
            raw.seek(0)
            file = pq.ParquetFile(raw, read_dictionary=list(_IDS))
            _require_size(source, file.metadata)
            table = file.read([field.name for field in _SCHEMA if field.name in file.schema_arrow.names])
            table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise FileError(source.path, f"is not a readable Parquet file ({error}): write it again") from error
    try:
        pool = LinkedPool.from_frame(table.replace_schema_metadata(None).to_pandas(), name="links")
        return replace(pool, space=pool.space or (schema.metadata or {}).get(_SPACE, b"").decode(errors="replace"))
    except FileError:
        raise
    except InputError as error:
        raise FileError(source.path, str(error)) from error


def _require_size(source: Source, metadata: Any) -> None:
    """Refuse files that exceed the limit in memory: equal rows compress well, but each row holds its numbers."""
    n_bytes = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    # Eight bytes per number; text is dictionary-encoded.
    n_bytes = max(n_bytes, metadata.num_rows * 8 * len(_SCHEMA))
    if source.max_bytes is not None and n_bytes > source.max_bytes:
        limit = f"more than {source.max_bytes:,}; {remedies.MAX_BYTES.text()} sets the limit"
        raise FileError(source.path, f"has {n_bytes:,} bytes uncompressed, {limit}")
