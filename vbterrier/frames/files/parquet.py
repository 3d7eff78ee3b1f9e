"""Rows of Parquet files, as few at a time as their widest values allow: dictionaries of long texts fill a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vbterrier.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.frames.files.source import Source

# Bytes of a batch at most, where nothing else is asked for.
ROOM = 1 << 26
# A number, or where a text begins.
_FIXED = 8
_TEXT = "BYTE_ARRAY"


def batches(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    room: int = ROOM,
    start: int = 0,
    limit: int | None = None,
) -> Iterator[tuple[int, Any]]:
    """Rows of a Parquet file in the order of the file, with the number of the first, texts spelt out.

    Parameters
    ----------
    source
        The file.
    columns
        Those to read; all unless given.
    room
        How many bytes a batch may take. A single row may take more.
    start
        How many rows come before those that are wanted; what is given may begin earlier.
    limit
        How many bytes the lists of a row may take, and all batches together where ``source`` has no other.

    Raises
    ------
    FileError
        There are more bytes than ``source`` allows.
    pyarrow.ArrowException, OSError
        The file cannot be read.
    """
    with source.raw() as raw:
        file = pq.ParquetFile(raw, buffer_size=2**20)
        texts = [path for path, kind in _leaves(file, columns) if kind == _TEXT]
        # The same columns by their dictionaries: a row of them tells how wide all others may be.
        probe = pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=texts, buffer_size=2**20)
        first = n_bytes = 0
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group)
            if first + about.num_rows > start:
                width = _width(source, probe, group, columns, limit or source.max_bytes)
                size = max(min(room // width, about.num_rows), 1)
                at = first
                for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                    table = _spelt_out(pa.Table.from_batches([batch]))
                    n_bytes += table.nbytes
                    if source.max_bytes is not None and n_bytes > source.max_bytes:
                        raise too_much(source)
                    yield at, table
                    at += len(table)
            first += about.num_rows


def too_much(source: Source) -> FileError:
    """The error of a file that holds more than it may."""
    return FileError(
        source.path, f"holds more than {source.max_bytes:,} bytes when unpacked; pass max_bytes=None to read it all"
    )


def _leaves(file: Any, columns: Sequence[str] | None) -> list[tuple[str, str]]:
    """The paths and kinds of the columns that are stored, those in lists among them."""
    found = [file.schema.column(place) for place in range(len(file.schema))]
    return [(leaf.path, leaf.physical_type) for leaf in found if columns is None or leaf.path.split(".")[0] in columns]


def _width(source: Source, probe: Any, group: int, columns: Sequence[str] | None, limit: int | None) -> int:
    """How many bytes a row of a group takes at most, as far as its texts stand in dictionaries; on average beside."""
    about = probe.metadata.row_group(group)
    n_rows = max(about.num_rows, 1)
    width: int = about.total_byte_size // n_rows + 1
    row = next(probe.iter_batches(1, row_groups=[group], columns=columns), None)
    if row is None:
        return width
    for name, column in zip(row.schema.names, row.columns, strict=True):
        widest = _widest(column)
        leaves = [about.column(place) for place in range(about.num_columns)]
        n_values = max(leaf.num_values for leaf in leaves if leaf.path_in_schema.split(".")[0] == name)
        if pa.types.is_nested(column.type) and limit is not None and n_values * (widest + _FIXED) > limit:
            # All of them may be in one row.
            raise FileError(
                source.path,
                f"column {name!r} holds lists of {n_values:,} values of up to {widest:,} bytes, which may take more "
                f"than {limit:,}; cut the lists, or allow more",
            )
        width += widest + _FIXED
    return width


def _widest(column: Any) -> int:
    """The length of the longest text in the dictionaries of a column, those of its lists among them."""
    if isinstance(column, pa.DictionaryArray):
        if not (pa.types.is_string(column.dictionary.type) or pa.types.is_large_string(column.dictionary.type)):
            return _FIXED
        widest: int = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        return widest
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _widest(column.values)
    if pa.types.is_struct(column.type):
        return sum(map(_widest, column.flatten()))
    return _FIXED


def _spelt_out(table: Any) -> Any:
    """Columns that are dictionaries, as those of pandas' categories, as what they stand for."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table
