"""Records of untrusted files and databases, staged before a knowledge base is built."""

from __future__ import annotations

import bz2
import gzip
import math
import sqlite3
import zlib
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

from vbterrier.errors import FileError, InputError, examples, printable, warn
from vbterrier.frames.files.source import BOM, GZIP_MAGIC, Source
from vbterrier.linking.kb.sqlite import (
    MAX_LETTERS,
    MAX_VALUE,
    SQLITE_MAGIC,
    STAGED,
    distrust,
    execute_statements,
    is_table,
    reading_hint,
)
from vbterrier.log import bar
from vbterrier.remedies import MAX_BYTES

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Self

    RecordError = Callable[[int, str], InputError]


# The largest entities of Wikidata have some 5 MB.
MAX_LINE = 64 * 2**20
_BZ2 = b"BZh"
_TOOLS = {GZIP_MAGIC: "gunzip", _BZ2: "bunzip2"}


def numbered_lines(
    path: str | os.PathLike[str], *, max_bytes: int | None, progress: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a plain, gzip or bzip2 file, numbered from 1, without line ends.

    The content determines the compression. ``max_bytes`` is the maximum size when decompressed.
    """
    source, n_bytes = Source.at(path, max_bytes), 0
    path, max_bytes = source.path, source.max_bytes
    size = path.stat().st_size
    with (
        path.open("rb") as raw,
        _decompressed_stream(raw) as file,
        bar(None, path.name, shown=progress, total=size, unit="B", unit_scale=True, delay=2) as shown,
    ):
        number = 0
        while line := _read_line(path, file, number + 1):
            number += 1
            n_bytes += len(line)
            if number == 1 and line.startswith(SQLITE_MAGIC):
                tool = decompression_tool(path)
                remedy = f"it is also compressed: decompress it first ({tool})" if tool else reading_hint(path)
                raise FileError(path, f"is a SQLite file, wanted lines of text; {remedy}")
            if max_bytes is not None and n_bytes > max_bytes:
                limit = f"more than {max_bytes:,} bytes when decompressed"
                raise FileError(path, f"has {limit}; {MAX_BYTES.text()} sets the limit")
            shown.update(raw.tell() - shown.n)
            yield number, (line if number > 1 else line.removeprefix(BOM)).rstrip(b"\r\n")


def decompression_tool(path: Path) -> str:
    """Return the command that decompresses a file; empty if it is not compressed."""
    with path.open("rb") as file:
        start = file.read(3)
    return next((tool for magic, tool in _TOOLS.items() if start.startswith(magic)), "")


def _decompressed_stream(raw: BinaryIO) -> Any:
    magic = raw.read(3)
    raw.seek(0)
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=raw)
    return bz2.BZ2File(raw) if magic == _BZ2 else nullcontext(raw)


def _read_line(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        line = file.readline(MAX_LINE + 1)
    except (OSError, EOFError, zlib.error) as error:
        fault = f"cannot be read to its end ({error}): download or compress the file again"
        raise FileError(path, fault, line=number) from error
    if len(line) > MAX_LINE:
        raise FileError(path, f"has a line of more than {MAX_LINE:,} bytes; wanted one entity per line", line=number)
    return line


class UntrustedSQLite:
    """A read-only SQLite file of another library, without tables that SQLite would compute."""

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
        if tool := decompression_tool(self.path):
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

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _require_tables(self) -> None:
        for table, columns in self.tables.items():
            columns_present = [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))]
            if not set(columns) <= set(columns_present):
                requirement = f"wanted a table {table}({', '.join(columns)})"
                present = (
                    f"its columns are {', '.join(map(printable, columns_present[:20]))}"
                    if columns_present
                    else "there is none"
                )
                raise FileError(self.path, f"is not a file of {self.what}: {requirement}, {present}")
            if not is_table(self._db, table):
                # The computation of a view may not end.
                raise FileError(self.path, f"is not a file of {self.what}: {table} is not a table; store it as one")


_BLOCK_ROWS = 10_000
_N_COLUMNS = {"entity": 3, "alias": 6, "popularity": 2, "attribute": 5, "redirect": 3, "weight": 2}
_OPEN = "target IN (SELECT source FROM redirect)"


def quoted_text(text: object) -> str:
    """Return text for a message: quoted, short, with control characters escaped."""
    words = str(text)
    return f"'{printable(words[:40])}{'...' if len(words) > 40 else ''}'"  # noqa: PLR2004 - half a line


def text_fault(text: object, most: int = MAX_LETTERS) -> str:
    """Return the reason why a value cannot be an id, a name or an alias; empty if it can."""
    # Most texts are of this kind, which is fast to recognise.
    if not isinstance(text, str):
        return f"is {type(text).__name__}, wanted text"
    if text.isascii() and text.isprintable() and not text.isspace() and 0 < len(text) <= most:
        return ""
    return _unusual_text_fault(text, most)


def _unusual_text_fault(text: str, most: int) -> str:
    if not text or text.isspace():
        return "is blank"
    if len(text) > most:
        return f"is longer than {most:,} letters"
    if "\x00" in text:
        return "contains a NUL"
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return "contains half a surrogate pair"
    return ""


class Staging:
    """Temporary storage for the entities of a knowledge base that is being built.

    ``record_error`` returns the error of a record from its place and a message. If not ``is_strict``, an unusable alias
    or value is left out and counted in ``left_out``, because external dumps contain some.
    """

    def __init__(self, db: sqlite3.Connection, record_error: RecordError, *, is_strict: bool = True) -> None:
        self.db, self.record_error, self.is_strict = db, record_error, is_strict
        self.left_out: Counter[str] = Counter()
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _N_COLUMNS}
        execute_statements(db, STAGED)

    def entity(self, row: int, entity_id: str, name: str = "") -> None:
        """Add an entity; an entity that is repeated must have the same name, or none."""
        self._require(row, entity_id, "the id")
        if name:
            self._require(row, name, "the label of {}", entity_id)
        self._add("entity", entity_id, name, row)

    def alias(
        self, row: int, entity_id: str, text: str, prior: float | None = None, count: float | None = None
    ) -> None:
        """Add an alias of an entity, with the probability of the entity given the alias, or a count, if known."""
        fault = text_fault(text)
        if fault and not self.is_strict:
            self.leave_out(f"aliases whose text {fault}")
            return
        if fault:
            what = f"alias {quoted_text(text)} of {quoted_text(entity_id)} {fault}"
            raise self.record_error(row, f"{what}; leave it out or repair it")
        if prior is not None:
            prior = self._probability(row, entity_id, text, prior)
        if count is not None:
            count = self._count(row, entity_id, count)
        self._add("alias", text, entity_id, prior, count, row, None)

    def popularity(self, row: int, entity_id: str, count: object) -> None:
        """Add to the count of an entity: clicks, views or links, from which the priors of its aliases follow."""
        self._add("popularity", entity_id, self._count(row, entity_id, count))

    def attribute(self, row: int, entity_id: str, name: str, value: str, kind: str) -> None:
        """Add one value of an attribute."""
        fault = text_fault(value, MAX_VALUE)
        if fault and not self.is_strict:
            self.leave_out(f"values whose text {fault}")
            return
        self._require(row, name, "the name of an attribute of {}", entity_id)
        self._require(row, value, "{} of {}", name, entity_id, most=MAX_VALUE)
        self._add("attribute", entity_id, name, value, kind, row)

    def redirect(self, row: int, source: str, target: str) -> None:
        """Add an id that redirects to another."""
        self._require(row, source, "an id that redirects to {}", target)
        self._require(row, target, "the id that {} redirects to", source)
        self._add("redirect", source, target, row)

    def weight(self, text: str, weight: float) -> None:
        """Set the frequency of an alias, which is its weight among the aliases of its normal form."""
        self._add("weight", text, weight)

    def leave_out(self, what: str) -> None:
        """Count an item that is left out."""
        self.left_out[what] += 1

    def flush(self) -> None:
        """Write the collected rows."""
        for table, rows in self._rows.items():
            places = ", ".join("?" * _N_COLUMNS[table])
            self.db.executemany(f"INSERT OR REPLACE INTO staged.{table} VALUES ({places})", rows)  # noqa: S608 - constant names
            rows.clear()

    def _add(self, table: str, *row: Any) -> None:
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= _BLOCK_ROWS:
            self.flush()

    def _require(self, row: int, text: object, what: str, *ids: object, most: int = MAX_LETTERS) -> None:
        fault = text_fault(text, most)
        if fault:
            is_number = isinstance(text, int) and not isinstance(text, bool)
            remedy = "convert it with str() when reading it" if is_number else "repair it"
            raise self.record_error(
                row, f"{what.format(*map(quoted_text, ids))} {fault}: {quoted_text(text)}; {remedy}"
            )

    def _count(self, row: int, entity_id: str, count: object) -> float:
        number = _number_or_nan(count)
        if not 0 <= number < math.inf:
            fault = (
                f"the count of {quoted_text(entity_id)} is {quoted_text(count)}, wanted a finite number of at least 0"
            )
            raise self.record_error(row, fault)
        return number

    def _probability(self, row: int, entity_id: str, text: str, prior: object) -> float:
        number = _number_or_nan(prior)
        if not 0 <= number <= 1:
            fault = (
                f"alias {quoted_text(text)} of {quoted_text(entity_id)} has prior {quoted_text(prior)}, wanted a "
                "number in 0 to 1, the probability of the entity given the alias; name a column of counts count"
            )
            raise self.record_error(row, fault)
        return number


def _number_or_nan(value: object) -> float:
    """Return a value as a number, NaN if it is none."""
    try:
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def settle_redirects(db: sqlite3.Connection, staging: Staging) -> None:
    """Fill the table of redirects, and assign staged rows to the entity at the end of their chain of redirects."""
    if not db.execute("SELECT 1 FROM staged.redirect LIMIT 1").fetchone():
        return
    if twice := contradiction(db, "redirect", "target", "source"):
        source, one, other, row = twice
        raise staging.record_error(
            row, f"{quoted_text(source)} redirects to {quoted_text(one)} and to {quoted_text(other)}; keep one"
        )
    db.execute("INSERT INTO redirect SELECT DISTINCT source, target FROM staged.redirect")
    _shorten_chains(db)
    db.execute("UPDATE staged.alias SET origin = id WHERE id IN (SELECT source FROM redirect)")
    for table in ("entity", "alias", "attribute"):
        # The rows of an id that redirects come after those of its target.
        db.execute(
            f"UPDATE staged.{table} SET id = (SELECT target FROM redirect WHERE source = id), "  # noqa: S608 - constant names
            "row = row + (SELECT 1 + max(row) FROM staged.entity) WHERE id IN (SELECT source FROM redirect)"
        )
    db.execute(
        "UPDATE staged.popularity SET id = (SELECT target FROM redirect WHERE source = id) "
        "WHERE id IN (SELECT source FROM redirect)"
    )


def contradiction(db: sqlite3.Connection, rows: str, value: str, keys: str) -> Any:
    """Return the first keys of staged rows with two values: the keys, both values, and the last row; or ``None``."""
    return db.execute(
        f"SELECT {keys}, min({value}), max({value}), max(row) FROM staged.{rows} "  # noqa: S608 - constant names
        f"GROUP BY {keys} HAVING min({value}) <> max({value}) ORDER BY max(row) LIMIT 1"
    ).fetchone()


def _shorten_chains(db: sqlite3.Connection) -> None:
    """Replace each target by the target of its redirect until nothing changes; each round halves the chains."""
    before = None
    while (left := db.execute(f"SELECT count(*) FROM redirect WHERE {_OPEN}").fetchone()[0]) != before:  # noqa: S608 - constant names
        before = left
        db.execute(
            "UPDATE redirect SET target = (SELECT r.target FROM redirect AS r WHERE r.source = redirect.target) "  # noqa: S608 - constant names
            f"WHERE {_OPEN}"
        )
    if left:
        # List them first, because each deletion changes the condition for the remaining rows.
        db.execute(f"CREATE TABLE staged.circle AS SELECT source FROM redirect WHERE {_OPEN} ORDER BY source")  # noqa: S608 - constant names
        db.execute("DELETE FROM redirect WHERE source IN (SELECT source FROM staged.circle)")
        some = [source for (source,) in db.execute("SELECT source FROM staged.circle LIMIT 4")]
        warn(f"{left} redirects are part of a cycle or lead into one ({examples(some)}); they are ignored")
