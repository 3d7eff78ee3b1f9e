"""Delimited text and Parquet files as Arrow tables."""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from vbterrier.errors import FileError, nearest
from vbterrier.frames.files.source import (
    BOM,
    IDS,
    WHOLE,
    Layout,
    MisfitError,
    Source,
    UntidyError,
    shown,
    split,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_RUN = ("qid", "Q0", "docno", "rank", "score", "name")
_QRELS = ("qid", "iteration", "docno", "label")
# Words that head columns, here or elsewhere, without marks and case: a line of nothing else is a header.
_OF_IDS = "qid queryid topicid docno docid documentid pid passageid entityid"
_OTHERS = """
    id number num query queries question topic doc document passage paragraph sentence page entity item need text texts
    content contents body title abstract description desc narrative keywords constraints answer answers wiki wikipedia
    url link name label alias mention kind type prob probability prior score weight rank source
"""
_IDS = frozenset(_OF_IDS.split())
_HEADINGS = _IDS | frozenset(_OTHERS.split())
# In tables of ids one of them is enough.
_TELLING = frozenset(("topic", "doc", "entity"))
# Columns that a message names, and that a file may have.
_LISTED, _MOST = 30, 10_000
_MARKS = re.compile(r"[\s_\-\"'#]+")


def run_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out a run; with five columns, tell which is missing.

    Raises
    ------
    FileError
        Five columns that can be read in two ways.
    """
    separator = _white(line)
    whole = Layout(
        _RUN,
        ("rank", "score"),
        separator,
        remedies={
            4: "judgments are read with read_qrels",
            5: "five fields are read when every line lacks the run tag (qid Q0 docno rank score) "
            "or Q0 (qid docno rank score tag), rank being a whole number and score a number",
            7: "the run tag or an id seems to hold a blank: replace it",
        },
        form="qid Q0 docno rank score tag",
    )
    fields = line.split()
    if len(fields) != len(_RUN) - 1:
        return whole
    untagged = replace(whole, names=_RUN[:-1], form="")
    if fields[1].upper() == b"Q0":
        return untagged
    unmarked = replace(whole, names=(_RUN[0], *_RUN[2:]), form="qid docno rank score tag")
    fitting = [layout for layout in (untagged, unmarked) if _fits(layout, line)]
    if len(fitting) > 1:
        raise FileError(
            path,
            f"found 5 fields in {shown(line)}, which can be read as {' '.join(untagged.names)} and as {unmarked.form}; "
            f"write all six, {whole.form}",
            line=number,
        )
    return fitting[0] if fitting else whole


def qrels_layout(_path: Path, _number: int, line: bytes) -> Layout:
    """Lay out judgments, of documents or of subtopics."""
    remedies = {
        3: "write the iteration (or the subtopic) between qid and docno, 0 where there is none",
        5: "an id seems to hold a blank: replace it",
        6: "a run is read with read_run",
    }
    return Layout(_QRELS, ("label",), _white(line), remedies=remedies)


def topics_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out queries, with a header line or without."""
    return _texts(path, number, line, ("qid", "query"), ("qid", "query"))


def documents_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out texts of documents, with a header line or without."""
    return _texts(path, number, line, ("docno", "text"), ("docno",))


def _texts(path: Path, number: int, line: bytes, names: tuple[str, ...], wanted: tuple[str, ...]) -> Layout:
    """Lay out texts, which hold blanks, so that a tab comes before them; a text may be a word that heads columns."""
    remedy = f"write {names[0]}<tab>{names[1]}, or name the columns in a header line"
    plain = Layout(names, (), "\t", blanks=False, remedies=dict.fromkeys((1, 3), remedy))
    return _headed(path, number, line, wanted, (), telling=names[:1], separators="\t,") or plain


def intents_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out candidate intents, with a header line or without."""
    shape = ("qid", "entity_id", "prob")
    telling = (*shape, *_IDS, *_TELLING)
    return _headed(path, number, line, shape, ("prob", "score"), telling=telling) or _headless(line, [shape], "prob")


def tags_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out tags, with a header line or without."""
    shape = ("docno", "entity_id")
    shapes = [shape, (*shape, "weight")]
    telling = (*shape, *_IDS, *_TELLING)
    return _headed(path, number, line, shape, ("weight",), telling=telling) or _headless(line, shapes, "weight")


def answers_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out answers, with a header line or without; or a run or judgments, whose documents are entities."""
    shape = ("qid", "entity_id")
    headed = _headed(path, number, line, shape, ("score",), telling=(*shape, *_IDS, *_TELLING))
    if headed is not None:
        return headed
    separator = _white(line)
    # Entities may be titles, with blanks between tabs.
    n_fields = len(line.split(b"\t") if separator == "\t" else line.split())
    if n_fields > len(shape) + 1:
        layout = (qrels_layout if n_fields == len(_QRELS) else run_layout)(path, number, line)
        return replace(layout, names=tuple("entity_id" if name == "docno" else name for name in layout.names))
    names = (*shape, "score")[: max(n_fields, len(shape))]
    remedy = "write qid<tab>entity_id, NIL where there is no entity, or name the columns in a header line"
    return Layout(names, names[2:], separator, blanks=separator == " ", remedies=dict.fromkeys((1, 2, 3, 4), remedy))


def mentions_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out mentions of documents, with a header line or without; mentions hold blanks, and commas."""
    shape = ("docno", "mention")
    headed = _headed(path, number, line, shape, (), telling=shape, separators="\t,")
    if headed is not None:
        return headed
    remedy = "write docno<tab>mention<tab>entity_id, NIL where there is none, or name the columns in a header line"
    names = (*shape, "entity_id") if line.count(b"\t") == len(shape) else shape
    return Layout(names, (), "\t", blanks=False, remedies=dict.fromkeys((1, 2, 3, 4), remedy))


def require_columns(path: Path, found: Sequence[str], wanted: Sequence[str], line: int | None = None) -> None:
    """Check the columns that a file names itself.

    Raises
    ------
    FileError
        One is missing, or stands twice; they are too many.
    """
    if len(found) > _MOST:
        # Each takes memory and time, whether it holds anything or not.
        raise FileError(path, f"has {len(found):,} columns, wanted at most {_MOST:,}; leave out the others", line=line)
    for name in wanted:
        if name not in found:
            near = nearest(name, found)
            there = ", ".join(found[:_LISTED]) + (", ..." if len(found) > _LISTED else "")
            message = f"wanted columns {', '.join(wanted)}; missing {name}; found {there}.{near}"
            raise FileError(path, message, line=line)
    for name, n in Counter(found).items():
        if n > 1:
            raise FileError(path, f"column {shown(name)} stands {n} times; keep one", line=line)


def _headed(
    path: Path,
    number: int,
    line: bytes,
    wanted: tuple[str, ...],
    numeric: tuple[str, ...],
    *,
    telling: tuple[str, ...],
    separators: str = "\t, ",
) -> Layout | None:
    """Lay out by a header line: told by any name in ``telling``, by an id's at its start, or by headings alone."""
    for separator in separators:
        if separator == "," and b"\t" in line:
            # Commas of a text, which may be longer than the csv module takes.
            continue
        try:
            names = split(line, separator, blanks=separator == " ")
        except MisfitError as error:
            raise FileError(path, str(error), line=number) from error
        words = [_MARKS.sub("", name.casefold()) for name in names]
        if words[0] in _IDS or _HEADINGS.issuperset(words) or not set(telling).isdisjoint((*names, *words)):
            require_columns(path, names, wanted, line=number)
            present = tuple(name for name in numeric if name in names)
            return Layout(tuple(names), present, separator, blanks=separator == " ", header=number)
    return None


def _headless(line: bytes, shapes: list[tuple[str, ...]], numeric: str) -> Layout:
    n_fields = len(line.split())
    names = next((shape for shape in shapes if len(shape) == n_fields), shapes[-1])
    columns = "<tab>".join(shapes[-1])
    remedy = f"name the columns in a header line, as {columns}, or remove what is too many"
    present = tuple(name for name in names if name == numeric)
    return Layout(
        names,
        present,
        _white(line),
        remedies=dict.fromkeys((1, 2, 3, 4), remedy),
        for_header=f"name its columns as {columns}, or remove the line",
    )


def _white(line: bytes) -> str:
    return "\t" if b"\t" in line.strip() else " "


def _fits(layout: Layout, line: bytes) -> bool:
    try:
        layout.check(line)
    except MisfitError:
        return False
    return True


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
