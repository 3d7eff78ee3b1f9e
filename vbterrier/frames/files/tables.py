"""Files as Arrow tables: delimited text at the speed of Arrow's parser, and Parquet."""

from __future__ import annotations

import csv
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from vbterrier.errors import FileError
from vbterrier.frames.files.first_line import require_columns
from vbterrier.frames.files.layout import IDS, WHOLE, Layout, MisfitError, whole_number
from vbterrier.frames.files.parquet import batches, too_much
from vbterrier.frames.files.source import BOM, Source, UntidyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT = pa.large_string()
_WHITE = b" \t\v\f"
_TO_BLANKS = bytes.maketrans(_WHITE, b" " * len(_WHITE))
_LONGEST_LINE = 1 << 26
_WORDS = IDS | {"iteration", "name"}
# By name, because the oldest Arrow we run on does not know the last.
_TEXTS = frozenset({"string", "large_string", "string_view", "null"})


def text_table(source: Source, layout: Layout) -> Any:
    """Read delimited text.

    Well-kept files go to Arrow's parser as they are. What it refuses, or may have misread, is put in order and read
    again; only when that fails too are lines looked at one by one, for the one to blame.

    Returns
    -------
    pyarrow.Table
        The layout's columns but the constant Q0: text, ``float64`` or ``int64``, without nulls, NaN or empty ids.

    Raises
    ------
    FileError
        Names the first line that does not fit the layout.
    """
    refused = (_WHITE.replace(layout.separator.encode(), b"") if layout.blanks else b"") + b"\0"
    # Arrow takes 0x10 for 16: of no consequence for a rank, but a label is read as it is written.
    types = {"rank": pa.int64(), "label": TEXT}
    with suppress(pa.ArrowInvalid, UntidyError, MisfitError), source.stream(refused) as stream:
        return _checked(_parse(stream, layout, layout.separator, types), layout)
    text = source.text()
    if b"\0" not in text:
        separator = " " if layout.blanks else layout.separator
        # A header that no line end follows is no header for Arrow.
        tidy = pa.BufferReader((_tidy(text) if layout.blanks else text) + b"\n")
        types = dict.fromkeys(WHOLE, TEXT)
        with suppress(pa.ArrowInvalid, MisfitError):
            return _checked(_parse(tidy, layout, separator, types, block_size=_LONGEST_LINE), layout)
    raise blame(source, layout)


def parquet_table(source: Source, wanted: Sequence[str], numeric: Sequence[str]) -> Any:
    """Read a Parquet file whose columns are named as ours.

    Parameters
    ----------
    source
        The file.
    wanted
        Columns that must be there.
    numeric
        Columns of numbers, made ``float64`` or ``int64`` where they are there, as ids are made text.

    Raises
    ------
    FileError
        A damaged file, a column missing or of another kind, a missing value.
    """
    try:
        with source.raw() as raw:
            file = pq.ParquetFile(raw)
            n_bytes = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
            if source.max_bytes is not None and n_bytes > source.max_bytes:
                raise too_much(source)
            empty = file.schema_arrow.empty_table()
        tables = [table for _, table in batches(source)]
        table = pa.concat_tables(tables) if tables else empty
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source, error) from error
    return typed_table(source, table, wanted, numeric)


def unreadable(source: Source, error: Exception) -> FileError:
    """The error of a Parquet file that Arrow cannot read."""
    return FileError(source.path, f"is no Parquet file that can be read ({error}): write it again")


def typed_table(source: Source, table: Any, wanted: Sequence[str], numeric: Sequence[str], before: int = 0) -> Any:
    """Rows of a Parquet file with columns of our types, see :func:`parquet_table`; ``before`` of them came earlier."""
    # What pandas notes about its index would move columns away from where we look for them.
    table = table.replace_schema_metadata(None)
    require_columns(source.path, table.column_names, wanted)
    for place, name in enumerate(table.column_names):
        if name in _WORDS or name in numeric:
            column = _typed(source, name, table[name], is_numeric=name in numeric)
            if name in wanted or name in IDS or name in numeric:
                _require_values(source, name, column, before)
            table = table.set_column(place, name, column)
    return table.select([name for name in table.column_names if not name.startswith("__index_level_")])


def _parse(stream: Any, layout: Layout, separator: str, types: dict[str, Any], block_size: int | None = None) -> Any:
    columns = dict.fromkeys(layout.names, TEXT)
    columns |= {name: types.get(name, pa.float64()) for name in layout.numeric}
    quoted = separator == ","
    return pacsv.read_csv(
        stream,
        pacsv.ReadOptions(column_names=layout.names, skip_rows=layout.header, block_size=block_size),
        pacsv.ParseOptions(delimiter=separator, quote_char='"' if quoted else False, newlines_in_values=quoted),
        pacsv.ConvertOptions(column_types=columns, null_values=[]),
    )


def _checked(table: Any, layout: Layout) -> Any:
    """Convert integers that were read as text; refuse what Arrow accepts and we do not."""
    for name in layout.numeric:
        if table[name].type == TEXT:
            table = table.set_column(table.column_names.index(name), name, _integers(table[name]))
        elif pc.any(pc.is_nan(table[name])).as_py():
            raise MisfitError(name)
    for name in layout.never_empty:
        if any(map(_holds_empty, table[name].chunks)):
            raise MisfitError(name)
    return table.select([name for name in layout.names if name != "Q0"])


def _holds_empty(text: Any) -> bool:
    # Two equal offsets: half the time of Arrow's lengths, which would be a tenth of the whole reading.
    bounds = np.frombuffer(text.buffers()[1], dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    return bool((bounds[1:] == bounds[:-1]).any())


def _integers(column: Any) -> Any:
    try:
        spelt = column.combine_chunks().dictionary_encode()
        values = [whole_number(text) for text in spelt.dictionary.to_pylist()]
    except ValueError as error:
        raise MisfitError(str(error)) from error
    return pa.array(values, pa.int64()).take(spelt.indices)


def _tidy(text: bytes) -> bytes:
    """Put one blank between fields, and none at the ends of lines."""
    text = text.removeprefix(BOM).translate(_TO_BLANKS)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    for end in (b"\n", b"\r"):
        text = text.replace(b" " + end, end).replace(end + b" ", end)
    # Arrow drops one mark at the top; a second would be part of the first id.
    return BOM + text.strip(b" ")


def blame(source: Source, layout: Layout) -> FileError:
    """The error that names the first line of a text that does not fit its layout."""
    first = True
    for number, line in _records(source, layout):
        try:
            layout.check(line)
        except MisfitError as error:
            with suppress(MisfitError):
                if first and not layout.header and layout.seems_header(line):
                    why = f"{error.found}; this looks like a header: {layout.for_header}"
                    return FileError(source.path, why, line=number)
            return FileError(source.path, str(error), line=number)
        first = False
    return FileError(source.path, "cannot be read although no line looks wrong; please report this with the file")


def _records(source: Source, layout: Layout) -> Iterator[tuple[int, bytes]]:
    """Yield what stands below the header, blank lines left out, with the number of each first line."""
    lines = ((number, line) for number, line in source.lines() if number > layout.header)
    if layout.separator == ",":
        yield from _quoted_records(lines)
    else:
        yield from ((number, line) for number, line in lines if (line.strip() if layout.blanks else line))


def _quoted_records(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Join lines that end inside double quotes, as the csv module sees them."""
    pending: list[tuple[int, bytes]] = []

    def letters() -> Iterator[str]:
        for number, line in lines:
            pending.append((number, line))
            # Each byte a letter: only quotes, commas and ends matter here.
            yield line.decode("latin1")

    # A quote that is never closed ends in an error of the csv module; the lines up to there are the record to blame.
    with suppress(csv.Error):
        for fields in csv.reader(letters()):
            if fields:
                yield pending[0][0], b"\n".join(line for _, line in pending)
            pending.clear()
    if pending:
        yield pending[0][0], b"\n".join(line for _, line in pending)


def _typed(source: Source, name: str, column: Any, *, is_numeric: bool) -> Any:
    wanted = TEXT if not is_numeric else pa.int64() if name in WHOLE else pa.float64()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    # Ids that became 1.0 on their way are nobody's ids any more.
    if wanted == TEXT and not (pa.types.is_integer(kind) or str(kind) in _TEXTS):
        raise FileError(source.path, f"column {name!r} must hold text, found {kind}; cast it before writing the file")
    try:
        return column.cast(kind).cast(wanted)
    except pa.ArrowException as error:
        message = f"column {name!r} must hold {wanted}, found {kind} that does not convert ({error}); repair it"
        raise FileError(source.path, message) from error


def _require_values(source: Source, name: str, column: Any, before: int) -> None:
    missing = pc.is_null(column, nan_is_null=True)
    row = pc.index(missing, pa.scalar(value=True)).as_py()
    if row >= 0:
        raise FileError(source.path, f"column {name!r} has no value in row {before + row}; repair or drop the row")
