"""Delimited text and Parquet files as Arrow tables."""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vbterrier.errors import FileError, nearest, printable, warn
from vbterrier.frames.columns import ID_WORDS, simplified_name
from vbterrier.frames.files.source import (
    BOM,
    COMMENT,
    IDS,
    LINE_END,
    WHOLE_COLUMNS,
    Layout,
    MisfitError,
    Source,
    UntidyError,
    quoted_text,
)
from vbterrier.frames.labels import text_of_padded_labels
from vbterrier.remedies import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


TEXT = pa.large_string()
CODED = pa.dictionary(pa.int32(), TEXT)
# By name, because the oldest supported Arrow does not know the type string_view.
_TEXTS = frozenset({"string", "large_string", "string_view", "null"})
_WORDS = IDS | {"iteration", "name"}
# A number with leading zeros.
_WHITE = b" \t\v\f"
_TO_BLANKS = bytes.maketrans(_WHITE, b" " * len(_WHITE))
_MAX_LINE_BYTES = 1 << 26
# Bytes of text that Arrow parses at a time: fewer chunks are copied sooner.
_TEXT_BLOCK = 1 << 23
# Default limit of a batch, in bytes.
BATCH_BYTES = 1 << 26
_NUMBER_BYTES = 8
# Documents of queries without results in exports of Quepid.
_NO_DOCUMENT = ("", "No Results")
# Columns that a message names, and that a file may have.
_MAX_LISTED, _MAX_COLUMNS = 30, 10_000


def require_width(path: Path, n_columns: int, line: int | None = None) -> None:
    """Refuse tables of very many columns, each of which takes memory and time, even if it is empty."""
    if n_columns > _MAX_COLUMNS:
        message = f"has {n_columns:,} columns, wanted at most {_MAX_COLUMNS:,}; leave out the others"
        raise FileError(path, message, line=line)


def require_columns(
    path: Path,
    columns: Sequence[str],
    required: Sequence[str],
    line: int | None = None,
    original: Sequence[str] | None = None,
) -> None:
    """Check the column names of a file; ``original`` are those of the file, if they were renamed."""
    require_width(path, len(columns), line)
    for name in required:
        if name not in columns:
            listed_columns = columns if original is None else original
            near = nearest(name, listed_columns)
            listed = ", ".join(listed_columns[:_MAX_LISTED]) + (", ..." if len(listed_columns) > _MAX_LISTED else "")
            message = f"wanted columns {', '.join(required)}; missing {name}; found {listed}.{near}"
            raise FileError(path, message, line=line)
    for name, n in Counter(columns).items():
        if n > 1:
            raise FileError(path, f"column {quoted_text(name)} occurs {n} times; keep one", line=line)


def text_table(source: Source, layout: Layout) -> tuple[Any, int]:
    """Read delimited text.

    Arrow parses the unchanged file first. If it refuses the file, or may have misread it, white space is normalised and
    the text is parsed again. If that also fails, lines are checked one by one to find the first invalid one.

    Returns the layout's columns except the constant Q0: text, ``float64`` or ``int64``, without nulls, NaN or empty
    ids; and the number of rows without a rating, or without a document, which are left out.
    """
    is_quoted = layout.separator in ",;"
    # Arrow reads text behind a closing quote as if it belonged to the value: files with quotes are checked first.
    odd = _WHITE.replace(layout.separator.encode(), b"") if layout.blanks else b'"' if is_quoted else b""
    refused = odd + b"\0"
    # Arrow reads 0x10 as 16. This is harmless for a rank, but labels are parsed strictly.
    as_text = dict.fromkeys((*layout.whole, layout.unrated, *(["label"] if layout.level else [])), TEXT)
    types = {"rank": pa.int64(), **({"label": TEXT} if "label" in as_text else {})}
    with suppress(pa.ArrowInvalid, UntidyError, MisfitError), source.stream(refused) as stream:
        return _rated_rows(_parse_text(stream, layout, layout.separator, types), layout, source.path)
    text = source.text()
    if b"\0" not in text and not (is_quoted and _is_misquoted(text, layout.separator)):
        separator = " " if layout.blanks else layout.separator
        text = _tidy(text) if layout.blanks else text
        if layout.remarks:
            fields = rb"((?:^|(?<=[\r\n]))[^ \r\n]+(?: [^ \r\n]+){%d})" % (len(layout.names) - 1)
            text = re.sub(fields + rb" #[^\r\n]*", rb"\1", text)
        if layout.comment is not None:
            text = _without_comments(text, layout.comment)
            if not text.strip(BOM + b"\r\n"):
                return _empty(layout), 0
        # Arrow recognises a header only if a line end follows.
        tidy = pa.BufferReader(text + b"\n")
        with suppress(pa.ArrowInvalid, MisfitError):
            table = _parse_text(tidy, layout, separator, as_text, block_size=_MAX_LINE_BYTES)
            if is_quoted:
                _check_lines(table, layout)
            return _rated_rows(table, layout, source.path)
    raise misfit_error(source, layout)


def _is_misquoted(text: bytes, separator: str) -> bool:
    """Return True if text follows a closing quote, or the last quote is not closed."""
    text = text.removeprefix(BOM)
    data, sign, ends = np.frombuffer(text + b"\n", dtype=np.uint8), ord('"'), (ord(separator), *b'\r\n"')
    quotes = np.flatnonzero(data == sign)
    opening, closing = quotes[::2], quotes[1::2]
    # Quotes open at the start of a value, or double the one before them; each other one ends a value.
    if (
        len(opening) == len(closing)
        and np.isin(data[opening - 1], ends).all()
        and np.isin(data[closing + 1], ends).all()
    ):
        return False
    # Quotes inside of unquoted values are ordinary characters.
    value = re.compile(rb'(?:"[^"]*(?:""[^"]*)*"|[^"%b\r\n][^%b\r\n]*|)(?:%b|\r|\n|\Z)' % ((separator.encode(),) * 3))
    at = 0
    while at < len(text):
        match = value.match(text, at)
        if match is None:
            return True
        at = match.end()
    return False


def _check_lines(table: Any, layout: Layout) -> None:
    """Check the rows with values of several lines, see :meth:`Layout.check_lines`."""
    texts = [table[name] for name in table.column_names if table[name].type == TEXT]
    several = [pc.match_substring_regex(column, LINE_END.pattern).to_numpy() for column in texts]
    rows = np.flatnonzero(np.logical_or.reduce(several)) if several else ()
    for row in table.take(rows).to_pylist() if len(rows) else ():
        layout.check_lines(layout.separator.join(map(str, row.values())))


def _without_comments(text: bytes, comment: re.Pattern[bytes]) -> bytes:
    """Blank the lines of comments."""
    if b"#" not in text and b"<SYSDESC>" not in text:
        return text
    lines = b"\n" + text.removeprefix(BOM)
    remark = rb"#(?:[ \t\v\f][^\r\n]*)?(?=[\r\n]|\Z)"
    pattern = rb"(?:#|<SYSDESC>)[^\r\n]*" if comment is COMMENT else remark
    # A second byte-order mark at the start belongs to the first id.
    return BOM + re.sub(rb"([\r\n])" + pattern, rb"\1", lines)[1:]


def _empty(layout: Layout) -> Any:
    """A table without rows."""
    kinds = {name: pa.int64() if name in layout.whole else pa.float64() for name in layout.numeric}
    return pa.table({name: pa.array([], kinds.get(name, TEXT)) for name in layout.names if name != "Q0"})


def _parse_text(
    stream: Any, layout: Layout, separator: str, types: dict[str, Any], block_size: int = _TEXT_BLOCK
) -> Any:
    columns = dict.fromkeys(layout.names, TEXT)
    columns |= {name: types.get(name, pa.float64()) for name in layout.numeric}
    # A constant, of which no row needs text.
    columns |= {"Q0": CODED} if "Q0" in columns else {}
    quoted = separator in ",;"
    return pacsv.read_csv(
        stream,
        pacsv.ReadOptions(column_names=layout.names, skip_rows=layout.header, block_size=block_size),
        pacsv.ParseOptions(delimiter=separator, quote_char='"' if quoted else False, newlines_in_values=quoted),
        pacsv.ConvertOptions(column_types=columns, null_values=[]),
    )


def _rated_rows(table: Any, layout: Layout, path: Path) -> tuple[Any, int]:
    """Drop comments and rows without a rating, and convert the other rows."""
    if layout.comment is not None:
        table = _rows_without_comments(table, layout.names[0], layout.comment)
    try:
        return _converted_table(table, layout, path), 0
    except MisfitError:
        if not layout.unrated or table[layout.unrated].type != TEXT:
            raise
    rated = _rows_with_ratings(table, layout.unrated)
    return _converted_table(rated, layout, path), len(table) - len(rated)


def _converted_table(table: Any, layout: Layout, path: Path) -> Any:
    """Convert numbers that were read as text; refuse NaN and empty ids, which Arrow accepts."""
    for name in layout.numeric:
        if table[name].type == TEXT:
            numbers = _numbers(table[name], name, layout, path)
            table = table.set_column(table.column_names.index(name), name, numbers)
        elif pc.any(pc.is_nan(table[name])).as_py():
            raise MisfitError(name)
    for name in layout.never_empty:
        if any(map(_has_empty, table[name].chunks)):
            raise MisfitError(name)
    for name in IDS.intersection(layout.names) if layout.separator in ",;" else ():
        if pc.any(pc.match_substring_regex(table[name], LINE_END.pattern)).as_py():
            raise MisfitError(name)
    return table.select([name for name in layout.names if name != "Q0"])


def _has_empty(chunk: Any) -> bool:
    """Return True if a text is empty, of all or of those of a dictionary."""
    texts = chunk.dictionary if chunk.type == CODED else chunk
    if not len(texts):
        return False
    # Comparing offsets takes half the time of Arrow's lengths, which would be a tenth of the whole reading.
    bounds = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return bool((bounds[1:] == bounds[:-1]).any())


def _rows_with_ratings(table: Any, name: str) -> Any:
    """The rows with a rating, or of a run those with a document; Quepid writes queries that have none, too."""
    empty = pc.equal(pc.utf8_trim_whitespace(table[name]), "")
    if name == "rank":
        empty = pc.and_(empty, pc.is_in(table["docno"], pa.array(_NO_DOCUMENT, TEXT)))
    return table.filter(pc.invert(empty))


def _rows_without_comments(table: Any, name: str, comment: re.Pattern[bytes]) -> Any:
    """Drop rows that are comments of as many words as a row has fields."""
    masks = []
    for chunk in table[name].chunks:
        bounds = np.frombuffer(chunk.buffers()[1], dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        if len(chunk) == 0 or bounds[-2] == bounds[-1]:
            # An empty id is refused later.
            masks.append(np.zeros(len(chunk), dtype=bool))
            continue
        text = np.frombuffer(chunk.buffers()[2], dtype=np.uint8)
        is_comment = text[bounds[:-1]] == ord("#")
        if is_comment.any():
            lengths = np.diff(bounds)
            is_comment &= lengths > 0
            if comment is not COMMENT:
                second = text[np.minimum(bounds[:-1] + 1, len(text) - 1)]
                is_comment &= (lengths == 1) | np.isin(second, list(_WHITE))
        masks.append(is_comment)
    return table.filter(pa.array(~np.concatenate(masks))) if any(mask.any() for mask in masks) else table


def _numbers(column: Any, name: str, layout: Layout, path: Path) -> Any:
    try:
        encoded = column.combine_chunks().dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        values = [layout.number(name, text) for text in texts]
    except ValueError as error:
        raise MisfitError(str(error)) from error
    if name == "label":
        warn_of_zeros(path, texts)
    is_whole = name in layout.whole or (layout.level and name == "label")
    return pa.array(values, pa.int64() if is_whole else pa.float64()).take(encoded.indices)


def warn_of_zeros(path: Path, texts: Iterable[str]) -> None:
    """Warn of labels with leading zeros, as of bit masks of aspects."""
    if text := text_of_padded_labels(texts):
        warn(f"{printable(path)}: {text}")


def _tidy(text: bytes) -> bytes:
    """Separate fields by one blank each, and strip lines."""
    text = text.removeprefix(BOM).translate(_TO_BLANKS)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    for end in (b"\n", b"\r"):
        text = text.replace(b" " + end, end).replace(end + b" ", end)
    # Arrow drops one byte-order mark at the start; a second one belongs to the first id.
    return BOM + text.strip(b" ")


def misfit_error(source: Source, layout: Layout) -> FileError:
    """Return the error that names the first line that does not fit the layout."""
    first = True
    for number, line in _records(source, layout):
        try:
            layout.check(line)
        except MisfitError as error:
            # A line that cannot be split raises here, too.
            with suppress(MisfitError):
                if first and not layout.header and (hint := layout.hint(line)):
                    return FileError(source.path, f"{error.problem}; {hint}", line=number)
            kind = f" (recognised as {layout.kind})" * bool(layout.kind)
            return FileError(source.path, f"{error}{kind}", line=number)
        first = False
    return FileError(source.path, "cannot be read although no line looks wrong; please report this with the file")


def _records(source: Source, layout: Layout) -> Iterator[tuple[int, bytes]]:
    """Yield the records below the header that are neither blank nor comments, with the number of their first lines."""
    lines = ((number, line) for number, line in source.lines() if number > layout.header)
    if layout.separator in ",;":
        yield from _quoted_records(lines, layout.separator)
    else:
        for number, line in lines:
            is_comment = layout.comment is not None and layout.comment.match(line)
            if (line.strip() if layout.blanks else line) and not is_comment:
                yield number, line


def _quoted_records(lines: Iterator[tuple[int, bytes]], separator: str) -> Iterator[tuple[int, bytes]]:
    """Join lines that end inside double quotes, as the csv module does."""
    pending: list[tuple[int, bytes]] = []

    def decoded_lines() -> Iterator[str]:
        for number, line in lines:
            pending.append((number, line))
            # latin1 decodes any byte: only quotes, commas and line ends matter here.
            yield line.decode("latin1")

    # An unclosed quote raises an error of the csv module; the lines up to it are the invalid record.
    with suppress(csv.Error):
        for fields in csv.reader(decoded_lines(), delimiter=separator):
            if fields:
                yield pending[0][0], b"\n".join(line for _, line in pending)
            pending.clear()
    if pending:
        yield pending[0][0], b"\n".join(line for _, line in pending)


def parquet_table(source: Source, required: Sequence[str], numeric: Sequence[str]) -> Any:
    """Read a Parquet file with the column names of the frames.

    - ``numeric``: columns that are converted to ``float64`` or ``int64`` if present; ids are converted to text
    """
    return typed_table(source, whole_table(source), required, numeric)


def parquet_columns(source: Source) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    import pyarrow.parquet as pq

    try:
        with source.raw() as raw:
            names: list[str] = pq.ParquetFile(raw).schema_arrow.names
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source, error) from error
    return names


def whole_table(source: Source, columns: Sequence[str] | None = None) -> Any:
    """Read a Parquet file with its own types; ``columns``: all by default."""
    import pyarrow.parquet as pq

    try:
        with source.raw() as raw:
            file = pq.ParquetFile(raw)
            n_bytes = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
            if source.max_bytes is not None and n_bytes > source.max_bytes:
                raise too_large(source)
            empty = file.schema_arrow.empty_table()
            empty = empty if columns is None else empty.select(columns)
        tables = [table for _, table in batches(source, columns)]
        return pa.concat_tables(tables) if tables else empty
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source, error) from error


def unreadable(source: Source, error: Exception) -> FileError:
    """Return the error of a Parquet file that Arrow cannot read."""
    return FileError(source.path, f"is not a readable Parquet file ({error}): write it again")


def typed_table(
    source: Source,
    table: Any,
    required: Sequence[str],
    numeric: Sequence[str],
    before: int = 0,
    *,
    whole: frozenset[str] = WHOLE_COLUMNS,
    columns: Sequence[str] | None = None,
) -> Any:
    """Convert the columns of rows of a Parquet file as :func:`parquet_table` does; ``before`` rows precede them."""
    # The index metadata of pandas would make to_pandas() turn columns into an index.
    table = table.replace_schema_metadata(None)
    require_columns(source.path, table.column_names, required, original=columns)
    for place, name in enumerate(table.column_names):
        if name in _WORDS or name in numeric:
            column = _typed_column(source, name, table[name], is_numeric=name in numeric, is_whole=name in whole)
            if name in required or name in IDS or name in numeric:
                row = pc.index(pc.is_null(column, nan_is_null=True), pa.scalar(value=True)).as_py()
                if row >= 0:
                    message = f"column {name!r} has no value in row {before + row}; repair or drop the row"
                    raise FileError(source.path, message)
            table = table.set_column(place, name, column)
    return table.select([name for name in table.column_names if not name.startswith("__index_level_")])


def with_labels(table: Any) -> Any:
    """The rows in which the column ``label`` has a value."""
    empty = pc.is_null(table["label"], nan_is_null=pa.types.is_floating(table["label"].type))
    return table.filter(pc.invert(empty)) if pc.any(empty).as_py() else table


def _typed_column(source: Source, name: str, column: Any, *, is_numeric: bool, is_whole: bool) -> Any:
    target = TEXT if not is_numeric else pa.int64() if is_whole else pa.float64()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    # Ids that were stored as floats (1.0) no longer match.
    if target == TEXT and not (pa.types.is_integer(kind) or str(kind) in _TEXTS):
        raise FileError(source.path, f"column {name!r} must hold text, found {kind}; cast it before writing the file")
    if name == "label" and str(kind) in _TEXTS:
        warn_of_zeros(source.path, pc.unique(column.cast(kind)).to_pylist())
    try:
        return column.cast(kind).cast(target)
    except pa.ArrowException as error:
        message = f"column {name!r} must hold {target}, found {kind} that does not convert ({error}); repair it"
        raise FileError(source.path, message) from error


def batches(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    n_bytes: int = BATCH_BYTES,
    start: int = 0,
    limit: int | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a Parquet file in batches, with the number of the first row of each; dictionaries are decoded.

    - ``columns``: the columns to read; all by default
    - ``n_bytes``: limit of a batch. A single row may exceed it.
    - ``start``: the first row that is wanted; the first batch may begin earlier
    - ``limit``: limit of the lists in one row, in bytes; that of ``source`` by default
    """
    import pyarrow.parquet as pq

    with source.raw() as raw:
        file = pq.ParquetFile(raw, buffer_size=2**20)
        leaves = [file.schema.column(place) for place in range(len(file.schema))]
        texts = [
            leaf.path
            for leaf in leaves
            if leaf.physical_type == "BYTE_ARRAY" and (columns is None or leaf.path.split(".")[0] in columns)
        ]
        # Read as dictionaries, one row holds all distinct texts of its group: an upper bound of the width of a row.
        probe = pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=texts, buffer_size=2**20)
        first = total = 0
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            if first + n_rows > start:
                width = _width(source, probe, group, columns, limit or source.max_bytes)
                size = max(min(n_bytes // width, n_rows), 1)
                at = first
                for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                    # Parquet does not check that text is UTF-8, and Python cannot read other text.
                    batch.validate(full=True)
                    table = _decoded_table(pa.Table.from_batches([batch]))
                    total += table.nbytes
                    if source.max_bytes is not None and total > source.max_bytes:
                        raise too_large(source)
                    yield at, table
                    at += len(table)
            first += n_rows


def too_large(source: Source) -> FileError:
    """Return the error of a file beyond its limit."""
    return FileError(
        source.path, f"holds more than {source.max_bytes:,} bytes when unpacked; {MAX_BYTES.text()} sets the limit"
    )


def _width(source: Source, probe: Any, group: int, columns: Sequence[str] | None, limit: int | None) -> int:
    """Upper bound of the bytes of a row in a group, if dictionaries hold its texts; else the average."""
    about = probe.metadata.row_group(group)
    n_values_by_column: dict[str, int] = {}
    n_text_bytes = 0
    for place in range(about.num_columns):
        leaf = about.column(place)
        root = leaf.path_in_schema.partition(".")[0]
        n_values_by_column[root] = max(n_values_by_column.get(root, 0), leaf.num_values)
        if columns is None or root in columns:
            n_text_bytes += leaf.total_uncompressed_size * (leaf.physical_type == "BYTE_ARRAY")
    width: int = n_text_bytes // max(about.num_rows, 1) + 1
    row = next(probe.iter_batches(1, row_groups=[group], columns=columns), None)
    if row is None:
        return width
    for name, column in zip(row.schema.names, row.columns, strict=True):
        widest, n_values = _widest(column), n_values_by_column[name]
        if pa.types.is_nested(column.type) and limit is not None and n_values * (widest + _NUMBER_BYTES) > limit:
            # All of them may be in one row.
            raise FileError(
                source.path,
                f"column {name!r} holds lists of {n_values:,} values of up to {widest:,} bytes, which may take more "
                f"than {limit:,}; shorten the lists, or allow more",
            )
        # Texts and lists have the place of their start as well.
        width += widest + _NUMBER_BYTES * (not pa.types.is_primitive(column.type))
    return width


def _widest(column: Any) -> int:
    """The bytes of the longest text in the dictionaries of a column, including those of its lists."""
    if isinstance(column, pa.DictionaryArray):
        if not (pa.types.is_string(column.dictionary.type) or pa.types.is_large_string(column.dictionary.type)):
            return _NUMBER_BYTES
        widest: int = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        return widest
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _widest(column.values)
    if pa.types.is_struct(column.type):
        return sum(map(_widest, column.flatten()))
    return _NUMBER_BYTES


def _decoded_table(table: Any) -> Any:
    """Replace dictionary columns, such as those of pandas' categories, by their values."""
    if not any(pa.types.is_dictionary(field.type) for field in table.schema):
        return table
    columns = [
        column.cast(field.type.value_type) if pa.types.is_dictionary(field.type) else column
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def is_id(head: object) -> bool:
    """Return True if the header of a column names ids."""
    word = simplified_name(head)
    return word in ID_WORDS or word in ("topic", "document", "iteration")
