"""Untrusted files of other libraries: packed lines and SQLite tables."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
import zlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

from vbterrier.errors import FileError, printable
from vbterrier.frames.files.source import BOM, Source
from vbterrier.linking.kb.sqlite import SQLITE, distrust, is_table, reader_of
from vbterrier.log import bar

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self


# The largest entities of Wikidata have some 5 MB.
MAX_LINE = 64 * 2**20
_GZIP, _BZ2 = b"\x1f\x8b", b"BZh"
_PACKED = {_GZIP: "gunzip", _BZ2: "bunzip2"}


def numbered_lines(
    path: str | os.PathLike[str], *, max_bytes: int | None, progress: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, numbered from 1, without their ends: plain, gzip or bzip2, told by content.

    Parameters
    ----------
    path
        The file.
    max_bytes
        How much it may hold when unpacked; ``None`` for no limit.
    progress
        Whether a bar shows how much of the file is read, on a terminal.

    Raises
    ------
    FileError
        No file, one of SQLite, one that does not unpack to its end, holds too much, or has a line of more than 64 MB.
    """
    path, n_bytes = Source.at(path, max_bytes).path, 0
    size = path.stat().st_size
    with (
        path.open("rb") as raw,
        _unpacked(raw) as file,
        bar(None, path.name, shown=progress, total=size, unit="B", unit_scale=True, delay=2) as shown,
    ):
        number = 0
        while line := _next(path, file, number + 1):
            number += 1
            n_bytes += len(line)
            if number == 1 and line.startswith(SQLITE):
                raise FileError(path, f"is a SQLite file, not one of lines; {_remedy(path)}")
            if max_bytes is not None and n_bytes > max_bytes:
                raise FileError(
                    path, f"holds more than {max_bytes:,} bytes when unpacked; pass max_bytes=None to read all"
                )
            shown.update(raw.tell() - shown.n)
            yield number, (line if number > 1 else line.removeprefix(BOM)).rstrip(b"\r\n")


def tool_of(path: Path) -> str:
    """What unpacks a file; empty where it is not packed."""
    with path.open("rb") as file:
        start = file.read(3)
    return next((tool for magic, tool in _PACKED.items() if start.startswith(magic)), "")


def _remedy(path: Path) -> str:
    tool = tool_of(path)
    return f"it is packed, too: unpack it first ({tool})" if tool else reader_of(path)


def _unpacked(raw: BinaryIO) -> Any:
    magic = raw.read(3)
    raw.seek(0)
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)
    return bz2.BZ2File(raw) if magic == _BZ2 else nullcontext(raw)


def _next(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        line = file.readline(MAX_LINE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            path, f"cannot be read to its end ({error}): fetch or pack the file again", line=number
        ) from error
    if len(line) > MAX_LINE:
        raise FileError(path, f"has a line of more than {MAX_LINE:,} bytes; wanted an entity a line", line=number)
    return line


class External:
    """A SQLite file of another library.

    Parameters
    ----------
    path
        The file.
    what
        What it should be, for messages.
    tables
        The columns that tables must have.

    Raises
    ------
    FileError
        On entering: no file, a packed one, no SQLite, or without the tables. Later: a damaged or locked one.
    """

    def __init__(self, path: Path, what: str, tables: Mapping[str, Sequence[str]]) -> None:
        self.path, self.what, self.tables = path, what, tables

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, as they are asked for."""
        try:
            # Not "yield from": left half read, it would close a cursor whose database may be closed already.
            for row in self._db.execute(sql, parameters):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            remedy = "close what writes to it" if "locked" in str(error) else "fetch the file again"
            raise FileError(self.path, f"cannot be read as {self.what} ({error}); {remedy}") from error

    def __enter__(self) -> Self:
        Source.at(self.path, None)
        tool = tool_of(self.path)
        if tool:
            raise FileError(self.path, f"is packed; wanted {self.what} as it is: unpack it first ({tool})")
        # Others may be writing to it, so it is locked as SQLite sees fit; we write nothing.
        self._db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            distrust(self._db)
            self._require_tables()
        except BaseException:
            self._db.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def _require_tables(self) -> None:
        for table, columns in self.tables.items():
            found = [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))]
            if not set(columns) <= set(found):
                there = f"its columns are {', '.join(map(printable, found[:20]))}" if found else "there is none"
                raise FileError(
                    self.path, f"is no file of {self.what}: wanted a table {table}({', '.join(columns)}), {there}"
                )
            if not is_table(self._db, table):
                # A view may be computed without end.
                raise FileError(self.path, f"is no file of {self.what}: {table} is no table; make one of it")
