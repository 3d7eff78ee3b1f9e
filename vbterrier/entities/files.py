"""Linked pools as Parquet files: linked once, read in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vbterrier.entities.links import COLUMNS
from vbterrier.entities.pool import LinkedPool, of_rows
from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import MAX_BYTES
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import require_columns
from vbterrier.frames.files.writing import replacing

if TYPE_CHECKING:
    from vbterrier.annotations import StrPath


_IDS = ("qid", "docno", "entity_id")
_SCHEMA = pa.schema(
    [
        *((name, pa.dictionary(pa.int32(), pa.large_string())) for name in _IDS),
        *((name, pa.int64()) for name in ("label", "rank")),
        ("weight", pa.float64()),
        ("mentions", pa.int64()),
    ]
)
# Rows written at a time.
_SLAB = 1 << 20
# What a number takes when read; text stands once in a dictionary.
_BYTES = 8


def write_links(pool: LinkedPool, path: StrPath) -> None:
    """Write a linked pool as a Parquet file: the rows of its K frame, each id's text once, packed with Zstandard.

    Parameters
    ----------
    pool
        The pool.
    path
        The file; one that exists is replaced once the new one is complete.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import pandas as pd
    >>> import tempfile, pathlib
    >>> from vbterrier.entities.pool import link_pool
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.parquet")
    >>> pool = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    >>> write_links(link_pool(pool, pd.DataFrame({"docno": ["d1"], "entity_id": ["Paris"]})), path)
    >>> read_links(path)
    LinkedPool(1 topics, 1 documents, 1 entities, 1 links)
    """
    document, link = pool.rows()
    text = pa.array(pool.topics, pa.large_string()), pool.docno.text, pool.entities.text
    with replacing(Path(path)) as file, pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer:
        for start in range(0, len(link), _SLAB):
            at, of = document[start : start + _SLAB], link[start : start + _SLAB]
            numbers = pool.topic[at], at, np.where(of >= 0, of_rows(pool.entity, of), -1)
            ids = [_spelt(number, words) for number, words in zip(numbers, text, strict=True)]
            columns = [*ids, pool.label[at], pool.rank[at], of_rows(pool.weight, of), of_rows(pool.mentions, of)]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=_SCHEMA))


def read_links(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> LinkedPool:
    """Read a linked pool from a Parquet file: one of :func:`write_links`, or any whose columns are those of a K frame.

    Parameters
    ----------
    path
        The file.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    LinkedPool

    Raises
    ------
    FileError
        No Parquet file, a column missing, or rows that are no linked pool's.

    Examples
    --------
    >>> import pandas as pd
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.parquet")
    >>> links = pd.DataFrame({"qid": ["q1"], "docno": "007", "entity_id": "NA", "label": 1, "rank": 0, "weight": 0.5})
    >>> write_links(LinkedPool.from_frame(links), path)
    >>> read_links(path).frame().values.tolist()
    [['q1', '007', 'NA', 1, 0, 0.5, 1]]
    """
    source = Source.at(path, max_bytes)
    if not source.is_parquet:
        raise FileError(source.path, "is no Parquet file; links are kept as write_links writes them")
    try:
        with source.raw() as raw:
            schema = pq.read_schema(raw)
            require_columns(source.path, schema.names, COLUMNS)
            _require_flat(source.path, schema)
            raw.seek(0)
            file = pq.ParquetFile(raw, read_dictionary=list(_IDS))
            _require_size(source, file.metadata)
            table = file.read([field.name for field in _SCHEMA if field.name in file.schema_arrow.names])
    except (pa.ArrowException, OSError) as error:
        raise FileError(source.path, f"is no Parquet file that can be read ({error}): write it again") from error
    try:
        return LinkedPool.from_frame(table.replace_schema_metadata(None).to_pandas(), name="links")
    except FileError:
        raise
    except InputError as error:
        raise FileError(source.path, str(error)) from error


def _spelt(numbers: Any, words: Any) -> Any:
    """Numbers among words as text, -1 as nothing."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32), mask=numbers < 0), words)


def _require_flat(path: Path, schema: Any) -> None:
    """Refuse lists and structs where a value is wanted."""
    for field in _SCHEMA:
        if field.name in schema.names and pa.types.is_nested(schema.field(field.name).type):
            wanted = "ids as text" if field.name in _IDS else "numbers"
            raise FileError(path, f"column {field.name!r} holds {schema.field(field.name).type}, wanted {wanted}")


def _require_size(source: Source, metadata: Any) -> None:
    """Refuse files that would fill the memory: a row takes its numbers, however well a file packs equal rows."""
    n_bytes = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    n_bytes = max(n_bytes, metadata.num_rows * _BYTES * len(_SCHEMA))
    if source.max_bytes is not None and n_bytes > source.max_bytes:
        raise FileError(source.path, f"unpacks to {n_bytes:,} bytes; pass max_bytes=None to read it all")
