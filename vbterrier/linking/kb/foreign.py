"""SQLite files of other libraries, opened to be read."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, printable
from vbterrier.frames.files.source import Source
from vbterrier.linking.kb.inert import distrust, is_table
from vbterrier.linking.kb.lines import tool_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self


class Foreign:
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
