"""SQLite files of knowledge bases: schema and read-only connections."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, printable
from vbterrier.frames.files.source import Source, is_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


# "vbKB" in the application id of SQLite's header; and the version of the tables below.
APPLICATION_ID = 0x76624B42
FORMAT_VERSION = 4

# Maximum lengths of ids, names and aliases (Wikidata allows 250 letters, Wikipedia 255 bytes), and of values.
MAX_LETTERS = 4096
MAX_VALUE = 65_536

# With more distinct names than this, an index of trigrams selects those to compare.
MAX_COMPARED_NAMES = 250_000

# The metadata of a knowledge base as a PyTerrier artifact, and its file in the folder of one.
ARTIFACT = {"type": "knowledge_base", "format": "vbterrier", "package_hint": "vbterrier"}
IN_FOLDER = "entities.kb"

# Keys of the metadata of the file.
FACTS = (
    "id_space",
    "has_priors",
    "counts_are_of_entities",
    "n_entities",
    "n_aliases",
    "n_forms",
    "has_trigrams",
    "digest",
)

TYPES = ("text", "number", "year", "boolean")

# Places start at 1 in the order of ids and texts (by code point; forms by length first, because similar names have
# similar lengths), ranks at 0. The rows of a query are therefore adjacent and sorted. A mention is a distinct alias, a
# form the normal form of one or more mentions.
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entity(place INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE redirect(source TEXT PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE form(place INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE form_length(n_letters INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE mention(place INTEGER PRIMARY KEY, text TEXT NOT NULL, form INTEGER NOT NULL, weight REAL NOT NULL);
CREATE TABLE mention_sense(
  key INTEGER, rank INTEGER, entity INTEGER NOT NULL, prob REAL NOT NULL, mention INTEGER NOT NULL,
  PRIMARY KEY(key, rank)
) WITHOUT ROWID;
CREATE TABLE form_sense(
  key INTEGER, rank INTEGER, entity INTEGER NOT NULL, prob REAL NOT NULL, mention INTEGER NOT NULL,
  PRIMARY KEY(key, rank)
) WITHOUT ROWID;
CREATE TABLE attribute(
  entity INTEGER, place INTEGER, name TEXT NOT NULL, value TEXT NOT NULL, type TEXT NOT NULL,
  PRIMARY KEY(entity, place)
) WITHOUT ROWID;
CREATE TABLE spelling(
  attribute TEXT, value TEXT, place INTEGER, name TEXT NOT NULL, PRIMARY KEY(attribute, value, place)
) WITHOUT ROWID;
CREATE TABLE trigram(text TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""

# The unsorted input of builders, in a separate temporary file.
STAGED = """
CREATE TABLE staged.entity(id TEXT, name TEXT, row INTEGER);
CREATE TABLE staged.alias(text TEXT, id TEXT, prior REAL, count REAL, row INTEGER, origin TEXT);
CREATE TABLE staged.popularity(id TEXT, count REAL);
CREATE TABLE staged.attribute(id TEXT, name TEXT, value TEXT, type TEXT, row INTEGER);
CREATE TABLE staged.redirect(source TEXT, target TEXT, row INTEGER);
CREATE TABLE staged.weight(text TEXT PRIMARY KEY, weight REAL) WITHOUT ROWID;
"""

# The SQL of the schema is checked, which SQLite executes, and not its column `type`, which may be forged.
_COMPUTED = """
SELECT name FROM sqlite_master
WHERE sql IS NOT NULL AND sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %'
  AND sql NOT LIKE 'CREATE UNIQUE INDEX %' AND NOT (name = 'form_trigram' AND sql LIKE 'CREATE VIRTUAL TABLE %')
UNION ALL
SELECT m.name FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
WHERE m.sql LIKE 'CREATE TABLE %' AND c.hidden > 1
LIMIT 1
"""
SQLITE_MAGIC = b"SQLite format 3\x00"
# Offset and length of fields in the header of a SQLite file (sqlite.org/fileformat.html, section 1.3).
_PAGE_SIZE, _N_PAGES, _USER_VERSION, _APPLICATION_ID = (16, 2), (28, 4), (60, 4), (68, 4)
_HEADER_BYTES = 100
# A number that Python's len() can return.
_COUNT = re.compile(r"[0-9]{1,15}")
# Types that builders store, which exclude NULL and bytes.
_STORED = frozenset({str, int, float})
# Older versions of SQLite accept 999 parameters in a statement.
_MAX_SQL_PARAMETERS = 900
# Enough for the upper levels of the indexes of a large file.
_CACHE = "PRAGMA cache_size = -65536"
_EXTERNAL = {
    "wiki": "it looks like a file of REL: build with kb_from_rel (--kind rel)",
    "mapping": "it looks like a file of wikimapper: build with kb_from_wikimapper (--kind wikimapper)",
}


def execute_statements(db: sqlite3.Connection, script: str) -> None:
    """Run statements one by one, because ``executescript`` would end their transaction."""
    for statement in script.split(";"):
        db.execute(statement)


def distrust(db: sqlite3.Connection) -> None:
    """Disable functions in the schema of a file, and check its pages as they are read."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def computed_object_name(db: sqlite3.Connection) -> str:
    """Return the name of an object that SQLite would compute when it is read, possibly without end; empty if none.

    These are views, triggers, generated columns and virtual tables. Knowledge bases contain only one, the index of
    trigrams.
    """
    row = db.execute(_COMPUTED).fetchone()
    return str(row[0]) if row else ""


def is_table(db: sqlite3.Connection, name: str) -> bool:
    """Return True if a name is an ordinary table, not a view or a virtual table."""
    plain = "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE AND sql LIKE 'CREATE TABLE %'"
    return db.execute(plain, (name,)).fetchone() is not None


def lexicon_path(path: Path) -> Path:
    """Return the path of the names of a knowledge base for linkers in texts."""
    return path.with_name(f"{path.name}.lexicon")


class KBConnection:
    """A connection to a built knowledge base, opened at the first query of each process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_process: dict[int, tuple[sqlite3.Connection, Lock]] = {}

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        try:
            while True:
                db, lock = self._db()
                # The lock keeps another thread from closing the connection of a cursor; SQLite serializes reads anyway.
                with lock:
                    if self._by_process.get(os.getpid(), (None, None))[0] is db:
                        rows = db.execute(sql, parameters).fetchall()
                        if not all(_STORED.issuperset(map(type, row)) for row in rows):
                            raise self.damage_error("NULL or bytes instead of text or a number")
                        return rows
        except sqlite3.OperationalError as error:
            if not str(error).startswith(("no such module", "no such tokenizer")):
                raise self.damage_error(error) from error
            fault = (
                f"has an index that this SQLite ({sqlite3.sqlite_version}) cannot read ({error}); fuzzy look-ups "
                "need SQLite 3.34 or later with FTS5, exact and normalised ones do not"
            )
            raise FileError(self.path, fault) from error
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise self.damage_error(error) from error

    def facts(self, names: Sequence[str]) -> dict[str, str]:
        """Return the metadata of the file."""
        values = dict(self.rows("SELECT key, value FROM meta"))
        for name in names:
            fact = values.get(name)
            if not isinstance(fact, str) or (name.startswith("n_") and not _COUNT.fullmatch(fact)):
                raise self.damage_error(f"{name} is {fact!r:.40}" if name in values else f"{name} is missing")
        return values

    def batched_rows(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield all rows of a query with one ``IN ({})``, executed in batches of values."""
        for begin in range(0, len(values), _MAX_SQL_PARAMETERS):
            some = values[begin : begin + _MAX_SQL_PARAMETERS]
            yield from self.rows(sql.format(", ".join("?" * len(some))), some)

    def close(self) -> None:
        """Close the file; the next query opens it again."""
        db, lock = self._by_process.pop(os.getpid(), (None, None))
        if db is not None and lock is not None:
            with lock:
                db.close()

    def _db(self) -> tuple[sqlite3.Connection, Lock]:
        """Return the connection of this process, because connections must not be shared across a fork."""
        connection = self._by_process.get(os.getpid())
        if connection is None:
            _require_knowledge_base(self.path)
            # A built file never changes (a new one replaces it), so SQLite need not lock it or look for changes.
            uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
            db = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            connection = self._by_process.setdefault(os.getpid(), (db, Lock()))
            if connection[0] is not db:
                # Another thread was faster.
                db.close()
        return connection

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute(_CACHE)
        distrust(db)
        if name := computed_object_name(db):
            raise self.damage_error(f"{printable(name)[:40]!r} is computed, unlike the tables of a knowledge base")

    def damage_error(self, error: object) -> FileError:
        """Return the error of a file with contents that no builder writes."""
        return FileError(self.path, f"is damaged ({error}); build it again or fetch another copy")


def artifact_metadata(path: str, _listing: Sequence[str]) -> dict[str, str] | None:
    """Return the metadata of a knowledge base in one file, which ``pt.Artifact.load`` asks for."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - PyTerrier passes text
            return dict(ARTIFACT) if _is_marked(file.read(_HEADER_BYTES)) else None
    except OSError:
        return None


def is_external(path: Path) -> bool:
    """Return True for a non-empty file that is not a knowledge base of any format."""
    if not is_there(path):
        return False
    with Source.at(path, None).raw() as file:
        header = bytes(file.read(_HEADER_BYTES))
    return bool(header) and not _is_marked(header)


def _is_marked(header: bytes) -> bool:
    return header.startswith(SQLITE_MAGIC) and _number(header, _APPLICATION_ID) == APPLICATION_ID


def reading_hint(path: Path) -> str:
    """Return a hint on how to read a SQLite file."""
    hint = "it is a built knowledge base: open it with KnowledgeBase(path), or pass it to --kb"
    return _hint(path) if is_external(path) else hint


def _require_knowledge_base(path: Path) -> None:
    """Check the header and the size of a file, whose cost does not depend on the size."""
    with Source.at(path, None).raw() as file:
        header, n_bytes = bytes(file.read(_HEADER_BYTES)), file.size()
    if not header.startswith(SQLITE_MAGIC):
        what = "is empty" if not header else "is not a SQLite file"
        raise FileError(path, f"{what}; wanted a knowledge base: build one with build_kb, kb_from_file, kb_from_rel...")
    if not _is_marked(header):
        raise FileError(path, f"is a SQLite file but not a knowledge base of this package; {_hint(path)}")
    version = _number(header, _USER_VERSION)
    if version != FORMAT_VERSION:
        raise FileError(
            path, f"is a knowledge base of format {version}, this version reads {FORMAT_VERSION}: build it again"
        )
    # A page size of 1 means 65,536, which does not fit into two bytes.
    page_size = _number(header, _PAGE_SIZE)
    full_size = (65_536 if page_size == 1 else page_size) * _number(header, _N_PAGES)
    if n_bytes < full_size:
        raise FileError(path, f"is truncated: {n_bytes:,} bytes of {full_size:,}; copy or build it again")


def _number(header: bytes, place: tuple[int, int]) -> int:
    start, size = place
    return int.from_bytes(header[start : start + size], "big")


def _hint(path: Path) -> str:
    """Return the builder that matches the tables of an external file."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 100")}
    except sqlite3.Error:
        names = set()
    return next((hint for name, hint in _EXTERNAL.items() if name in names), "build one with build_kb, kb_from_file...")
