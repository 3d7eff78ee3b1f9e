"""Linked pools as Parquet files."""

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
# Rows per write.
_CHUNK = 1 << 20
# Bytes per number in memory; text is dictionary-encoded.
_BYTES = 8


def write_links(pool: LinkedPool, path: StrPath) -> None:
    """Write the K frame of a linked pool as a Parquet file with dictionary-encoded ids and Zstandard compression.

    Parameters
    ----------
    pool
        The pool.
    path
        The file; an existing file is replaced after the new one is complete.

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
        for start in range(0, len(link), _CHUNK):
            at, of = document[start : start + _CHUNK], link[start : start + _CHUNK]
            codes = pool.topic[at], at, np.where(of >= 0, of_rows(pool.entity, of), -1)
            # The code -1 is a missing id.
            ids = [
                pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32), mask=code < 0), values)
                for code, values in zip(codes, text, strict=True)
            ]
            columns = [*ids, pool.label[at], pool.rank[at], of_rows(pool.weight, of), of_rows(pool.mentions, of)]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=_SCHEMA))


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

    Raises
    ------
    FileError
        Not a Parquet file, a missing column, or rows that do not form a linked pool.

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
        raise FileError(source.path, "is not a Parquet file; write links with write_links")
    try:
        with source.raw() as raw:
            schema = pq.read_schema(raw)
            require_columns(source.path, schema.names, COLUMNS)
            for field in _SCHEMA:
                if field.name in schema.names and pa.types.is_nested(schema.field(field.name).type):
                    wanted = "ids as text" if field.name in _IDS else "numbers"
                    found = schema.field(field.name).type
                    raise FileError(source.path, f"column {field.name!r} holds {found}, wanted {wanted}")
            raw.seek(0)
            file = pq.ParquetFile(raw, read_dictionary=list(_IDS))
            _require_size(source, file.metadata)
            table = file.read([field.name for field in _SCHEMA if field.name in file.schema_arrow.names])
    except (pa.ArrowException, OSError) as error:
        raise FileError(source.path, f"is not a readable Parquet file ({error}): write it again") from error
    try:
        return LinkedPool.from_frame(table.replace_schema_metadata(None).to_pandas(), name="links")
    except FileError:
        raise
    except InputError as error:
        raise FileError(source.path, str(error)) from error


def _require_size(source: Source, metadata: Any) -> None:
    """Refuse files that exceed the limit in memory: equal rows compress well, but each row holds its numbers."""
    n_bytes = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    n_bytes = max(n_bytes, metadata.num_rows * _BYTES * len(_SCHEMA))
    if source.max_bytes is not None and n_bytes > source.max_bytes:
        raise FileError(source.path, f"has {n_bytes:,} bytes uncompressed; pass max_bytes=None to read it")
