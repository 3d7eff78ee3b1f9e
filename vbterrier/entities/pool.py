"""Joins of candidate pools with entities of documents, and Parquet files of linked pools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vbterrier import remedies
from vbterrier.errors import FileError, InputError, path_parameter, whole_or_none
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.files.source import MAX_BYTES, Source
from vbterrier.frames.files.tables import require_columns
from vbterrier.frames.files.writing import replacing
from vbterrier.frames.ids import Ids, Lookup, require_same_kind
from vbterrier.frames.linked_pool import LinkedPool, of_rows
from vbterrier.frames.pool_links import COLUMNS, UNJUDGED, entity_codes, link_arrays
from vbterrier.frames.ranking import Run, places
from vbterrier.kernels.rankings import spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Ints, StrPath

__all__ = ["LinkedPool", "link_pool", "lookup_labels", "read_links", "write_links"]


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
    vocabulary, entity, space = entity_codes(linked.entity, f"{linked.name} column 'entity_id'")
    if len(row) and (entity[row] < 0).all():
        raise InputError(f"{linked.name}: no link of the pool has an entity, all are NIL; check the column entity_id")
    document, row = document[entity[row] >= 0], row[entity[row] >= 0]
    links = link_arrays(len(topic), document, vocabulary, entity[row], linked.weight[row])
    label = np.full(len(topic), UNJUDGED)
    if qrels is not None:
        label = lookup_labels(LabelFrame(qrels), run.topic_ids, run.topics, topic, docno, ("pool", "pool"))
    return LinkedPool(
        topics=run.topics, topic=topic, docno=docno, label=label, rank=rank, **links._asdict(), space=space
    )


def _mentions(tags: TagFrame, run: Run, topic: Ints, docno: Ids) -> tuple[Ints, Ints]:
    """Return the document and the row of tags of every mention in the pool."""
    _, code = tags.docno.codes()
    group, tag_topic, place = code, None, None
    if tags.topics is not None and tags.topic is not None:
        group = tags.topic * (int(code.max(initial=0)) + 1) + code
        tag_topic, place = tags.topic, places(run.topics, tags.topics)[topic]
    rows = np.argsort(group, kind="stable") if (np.diff(group) < 0).any() else np.arange(len(group))
    first = np.flatnonzero(np.concatenate([[True], np.diff(group[rows]) != 0])) if len(rows) else rows
    heads = rows[first]
    pairs = Lookup(None if tag_topic is None else tag_topic[heads], tags.docno.take(heads)).find_one(place, docno)
    stops = np.append(first, len(rows))
    has = np.flatnonzero(pairs >= 0)
    owner, place = spans(stops[pairs[has]], stops[pairs[has] + 1])
    return has[owner], rows[place]


def lookup_labels(
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
_BLOCK_ROWS = 1 << 20


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
    import pyarrow.parquet as pq

    if not isinstance(pool, LinkedPool):
        raise InputError(
            f"write_links: found {type(pool).__name__}, wanted a LinkedPool: that of link_pool, LinkedPool.from_frame "
            "or the attribute pool of an artifact"
        )
    document, link = pool.rows()
    text = pa.array(pool.topics, pa.large_string()), pool.docno.text, pool.entities.text
    schema = _SCHEMA.with_metadata({_SPACE: pool.space.encode()})
    with replacing(path_parameter("path", path)) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(link), _BLOCK_ROWS):
            at, links = document[start : start + _BLOCK_ROWS], link[start : start + _BLOCK_ROWS]
            codes = pool.topic[at], at, np.where(links >= 0, of_rows(pool.entity, links), -1)
            # The code -1 is a missing id.
            ids = [
                pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32), mask=code < 0), values)
                for code, values in zip(codes, text, strict=True)
            ]
            columns = [*ids, pool.label[at], pool.rank[at], of_rows(pool.weight, links), of_rows(pool.mentions, links)]
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
    >>> links = pd.DataFrame({"qid": ["q1"], "docno": "007", "entity_id": "E7", "label": 1, "rank": 0, "weight": 0.5})
    >>> write_links(LinkedPool.from_frame(links), path)
    >>> read_links(path).to_frame().values.tolist()
    [['q1', '007', 'E7', 1, 0, 0.5, 1]]
    """
    import pyarrow.parquet as pq

    source = Source.at(path, max_bytes)
    if not source.is_parquet:
        raise FileError(source.path, "is not a Parquet file; write links with write_links")
    try:
        with source.raw() as raw:
            schema = pq.read_schema(raw)
            require_columns(source.path, schema.names, COLUMNS)
            for field in _SCHEMA:
                if field.name in schema.names and pa.types.is_nested(schema.field(field.name).type):
                    requirement = "ids as text" if field.name in _IDS else "numbers"
                    column_type = schema.field(field.name).type
                    raise FileError(source.path, f"column {field.name!r} holds {column_type}, wanted {requirement}")
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
