"""The first sheet of an .xlsx file as CSV."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from vbterrier.errors import FileError, module_of_extra, warn
from vbterrier.frames.files.tables import is_id, require_width, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.frames.files.source import Source


# Unpacked size of a spreadsheet, which takes many times as much memory.
_MAX_SHEET = 1 << 30
# Rows that a sheet of Excel can have. Rows and cells that are left out in the file are empty ones of the sheet, so that
# a small file can have a sheet of any size.
_MAX_ROWS, _MAX_CELLS = 1 << 20, 1 << 26
_BLOCK_BYTES = 1 << 12
# Parts of an archive; each is opened to look at its beginning.
_MAX_PARTS = 1 << 13


def workbook_as_csv(source: Source) -> Source:
    """Return the first sheet of an .xlsx file as the text of a CSV file, row by row.

    Numbers are written as they are stored, so that an id that a spreadsheet turned into a number has lost its zeros.
    Formulas are not computed: their cells hold the values that were saved with them.
    """
    content = source.content
    if content is None:
        with source.raw() as raw:
            content = raw.read()
    limit = _MAX_SHEET if source.max_bytes is None else min(source.max_bytes, _MAX_SHEET)
    source = replace(source, max_bytes=limit)
    _check_archive(source, content)
    try:
        module_of_extra("openpyxl", "xlsx")
    except ModuleNotFoundError as error:
        raise FileError(source.path, f"is a spreadsheet, and {error}; or save it as CSV") from error
    rows = _first_sheet(source, content)
    _refuse_dates(source, rows)
    width, text = max(map(len, rows), default=0), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        if row:
            writer.writerow(row + [""] * (width - len(row)))
        else:
            # A blank line, so that messages number the rows of the sheet.
            text.write("\n")
        # Cells share texts, so that a small file can have a long table.
        if text.tell() > limit:
            raise too_large(source)
    return replace(source, content=text.getvalue().encode())


def _check_archive(source: Source, content: bytes) -> None:
    """Refuse archives without a spreadsheet, too large ones, and parts with a document type."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                raise FileError(source.path, "is a zip archive without a spreadsheet (.xlsx): unpack it")
            if source.max_bytes is not None and sum(part.file_size for part in archive.infolist()) > source.max_bytes:
                raise too_large(source)
            names = archive.namelist()
            if len(set(names)) < len(names) or len(names) > _MAX_PARTS:
                message = f"has {len(names):,} parts, more than spreadsheets have, or two of one name: save it again"
                raise FileError(source.path, message)
            for name in names:
                if _has_doctype(archive, name):
                    # Its entities can hold other files, or grow without limit.
                    message = f"has a document type in {name!r}, which spreadsheets have not: save it again"
                    raise FileError(source.path, message)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FileError(source.path, f"is a damaged zip archive ({error}): save the spreadsheet again") from error


class _RootError(Exception):
    """The end of what precedes the root element of an XML document."""


def _has_doctype(archive: zipfile.ZipFile, name: str) -> bool:
    """Return True if a part is XML with a document type; reads as far as its root element."""
    parser, doctypes = expat.ParserCreate(), list[str]()

    def stop(*_: Any) -> None:
        raise _RootError

    def stop_at_type(*_: Any) -> None:
        doctypes.append(name)
        raise _RootError

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = stop, stop_at_type
    try:
        with archive.open(name) as part:
            size = _BLOCK_BYTES
            while piece := part.read(size):
                parser.Parse(piece)
                # expat reads an open comment again from its start with each piece.
                size *= 2
    except (_RootError, expat.ExpatError, ValueError):
        # Parts that are no XML, such as pictures, are not read later.
        pass
    return bool(doctypes)


def _first_sheet(source: Source, content: bytes) -> list[list[Any]]:
    """The values of the first sheet by row, up to the last one of each row and the last row with values."""
    import openpyxl  # type: ignore[import-untyped]

    try:
        # Links to other workbooks are not followed.
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        rows = list(_rows(source, book.worksheets[0]))
    except FileError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise FileError(source.path, f"is not a readable spreadsheet ({reason}): save it again") from error
    first, *others = (sheet.title for sheet in book.worksheets)
    if others:
        warn(f"{source.path}: reads the first sheet, {first!r}, alone; {', '.join(map(repr, others))} ignored")
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _rows(source: Source, sheet: Any) -> Iterator[list[Any]]:
    if hasattr(sheet, "reset_dimensions"):
        # Tools may state another size than that of the sheet, and openpyxl fills its rows up to that.
        sheet.reset_dimensions()
    width = 0
    for line, cells in enumerate(sheet.rows, 1):
        row = [_value(source, line, cell) for cell in cells]
        while row and row[-1] == "":
            row.pop()
        require_width(source.path, len(row), line)
        width = max(width, len(row))
        if line > _MAX_ROWS or line * width > _MAX_CELLS:
            message = f"has a sheet of {line:,} rows and {width:,} columns or more, too many; save it as CSV"
            raise FileError(source.path, message)
        yield row


def _value(source: Source, line: int, cell: Any) -> Any:
    """The value of a cell; "" for an empty one, and for an error of the spreadsheet."""
    value = cell.value
    if value is None or cell.data_type == "e":
        return ""
    if cell.data_type == "n" and not isinstance(value, int):
        if not math.isfinite(value):
            raise FileError(source.path, f"column {cell.column} is {value}, wanted a finite number", line=line)
        # Spreadsheets store whole numbers as others.
        return int(value) if value == int(value) else value
    return value


def _refuse_dates(source: Source, rows: list[list[Any]]) -> None:
    """Refuse dates in columns of ids, which spreadsheets make of ids such as 1-2."""
    for place in [place for place, head in enumerate(rows[0] if rows else []) if is_id(head)]:
        for line, row in enumerate(rows, 1):
            if place < len(row) and isinstance(row[place], date):
                message = f"{rows[0][place]} is the date {row[place]}, wanted an id; format column {place + 1} as text"
                raise FileError(source.path, message, line=line)
