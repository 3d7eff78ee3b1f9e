"""Untrusted files of other libraries: lines, plain or compressed, and SQLite tables."""

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
_TOOLS = {_GZIP: "gunzip", _BZ2: "bunzip2"}


def numbered_lines(
    path: str | os.PathLike[str], *, max_bytes: int | None, progress: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a plain, gzip or bzip2 file, numbered from 1, without line ends.

    Parameters
    ----------
    path
        The file; its content determines the compression.
    max_bytes
        The maximum size when decompressed; ``None`` for no limit.
    progress
        Show a progress bar on a terminal.

    Raises
    ------
    FileError
        The file is missing, a SQLite file, truncated or too large, or has a line of more than 64 MB.
    """
    path, n_bytes = Source.at(path, max_bytes).path, 0
    size = path.stat().st_size
    with (
        path.open("rb") as raw,
        _decompressed(raw) as file,
        bar(None, path.name, shown=progress, total=size, unit="B", unit_scale=True, delay=2) as shown,
    ):
        number = 0
        while line := _next(path, file, number + 1):
            number += 1
            n_bytes += len(line)
            if number == 1 and line.startswith(SQLITE):
                tool = tool_of(path)
                remedy = f"it is also compressed: decompress it first ({tool})" if tool else reader_of(path)
                raise FileError(path, f"is a SQLite file, wanted lines of text; {remedy}")
            if max_bytes is not None and n_bytes > max_bytes:
                raise FileError(
                    path, f"has more than {max_bytes:,} bytes when decompressed; pass max_bytes=None to read all"
                )
            shown.update(raw.tell() - shown.n)
            yield number, (line if number > 1 else line.removeprefix(BOM)).rstrip(b"\r\n")


def tool_of(path: Path) -> str:
    """Return the command that decompresses a file; empty if it is not compressed."""
    with path.open("rb") as file:
        start = file.read(3)
    return next((tool for magic, tool in _TOOLS.items() if start.startswith(magic)), "")


def _decompressed(raw: BinaryIO) -> Any:
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
            path, f"cannot be read to its end ({error}): download or compress the file again", line=number
        ) from error
    if len(line) > MAX_LINE:
        raise FileError(path, f"has a line of more than {MAX_LINE:,} bytes; wanted one entity per line", line=number)
    return line


class UntrustedSQLite:
    """A read-only SQLite file of another library, without tables that SQLite would compute.

    Parameters
    ----------
    path
        The file.
    what
        The expected kind of file, for messages.
    tables
        The required columns of tables.

    Raises
    ------
    FileError
        On entering: the file is missing, compressed, not a SQLite file, or lacks the tables. Later: it is damaged or
        locked.
    """

    def __init__(self, path: Path, what: str, tables: Mapping[str, Sequence[str]]) -> None:
        self.path, self.what, self.tables = path, what, tables

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        try:
            # "yield from" would close the cursor of an unfinished query, whose database may be closed already.
            for row in self._db.execute(sql, parameters):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            remedy = "close the program that writes to it" if "locked" in str(error) else "download the file again"
            raise FileError(self.path, f"cannot be read as {self.what} ({error}); {remedy}") from error

    def __enter__(self) -> Self:
        Source.at(self.path, None)
        tool = tool_of(self.path)
        if tool:
            raise FileError(self.path, f"is compressed; wanted {self.what}: decompress it first ({tool})")
        # Not opened as immutable, because another program may write to the file.
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
                present = f"its columns are {', '.join(map(printable, found[:20]))}" if found else "there is none"
                raise FileError(
                    self.path, f"is not a file of {self.what}: wanted a table {table}({', '.join(columns)}), {present}"
                )
            if not is_table(self._db, table):
                # The computation of a view may not end.
                raise FileError(self.path, f"is not a file of {self.what}: {table} is not a table; store it as one")
