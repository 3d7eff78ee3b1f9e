"""SQLite files of knowledge bases: schema and read-only connections."""

from __future__ import annotations

import os
import re
import sqlite3
from threading import Lock
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, printable
from vbterrier.frames.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


# "vbKB" in the header of the file, where SQLite leaves room for it; and the version of the tables below.
APPLICATION_ID = 0x76624B42
FORMAT = 2

# Ids, names and aliases; longer ones are text, no name. (Wikidata allows 250 letters, Wikipedia 255 bytes.)
MAX_LETTERS = 4096
MAX_VALUE = 65_536

# More distinct names than this are not compared one by one: an index of trigrams says which are worth it.
COMPARED_AT_MOST = 250_000

# What the file says of itself.
FACTS = ("id_space", "has_priors", "n_entities", "n_aliases", "n_forms", "has_trigrams", "digest")

TYPES = ("text", "number", "year", "boolean")

# Places count from 1 in the order of ids and texts (by code point; of forms by their length first, for a name is never
# like one of another length), ranks from 0: what is asked for most lies together, already in its order. A mention is
# a distinct alias, a form the normal form of one or more mentions.
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
CREATE TABLE trigram(text TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""

# What builders hand over as it comes, in a file of its own that is thrown away.
STAGED = """
CREATE TABLE staged.entity(id TEXT, name TEXT, row INTEGER);
CREATE TABLE staged.alias(text TEXT, form TEXT, id TEXT, prior REAL, row INTEGER);
CREATE TABLE staged.attribute(id TEXT, name TEXT, value TEXT, type TEXT, row INTEGER);
CREATE TABLE staged.redirect(source TEXT, target TEXT, row INTEGER);
CREATE TABLE staged.weight(text TEXT PRIMARY KEY, weight REAL) WITHOUT ROWID;
"""


def run(db: sqlite3.Connection, script: str) -> None:
    """Run statements one by one: ``executescript`` would end the transaction that they are part of."""
    for statement in script.split(";"):
        db.execute(statement)


# What a file says of itself is checked as its text, which is what SQLite goes by: its column `type` may lie.
_COMPUTED = """
SELECT name FROM sqlite_master
WHERE sql IS NOT NULL AND sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %'
  AND sql NOT LIKE 'CREATE UNIQUE INDEX %' AND NOT (name = 'form_trigram' AND sql LIKE 'CREATE VIRTUAL TABLE %')
UNION ALL
SELECT m.name FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
WHERE m.sql LIKE 'CREATE TABLE %' AND c.hidden > 1
LIMIT 1
"""


def distrust(db: sqlite3.Connection) -> None:
    """Keep what stands in the file from calling functions, and have its pages checked as they are read."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def computed(db: sqlite3.Connection) -> str:
    """What in a knowledge base would be computed as it is read, without end if its maker likes; empty for nothing.

    Views, triggers, generated columns, virtual tables: none of our files has any but the index of trigrams.
    """
    found = db.execute(_COMPUTED).fetchone()
    return str(found[0]) if found else ""


def is_table(db: sqlite3.Connection, name: str) -> bool:
    """Whether a name is that of a table that lies in the file, no view and no virtual one."""
    plain = "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE AND sql LIKE 'CREATE TABLE %'"
    return db.execute(plain, (name,)).fetchone() is not None


SQLITE = b"SQLite format 3\x00"
# Where the header of every SQLite file keeps what we look at (sqlite.org/fileformat.html, section 1.3).
_PAGE_SIZE, _N_PAGES, _USER_VERSION, _APPLICATION_ID = (16, 2), (28, 4), (60, 4), (68, 4)
_HEADER = 100
# A number that Python's len() can give.
_COUNT = re.compile(r"[0-9]{1,15}")
# What builders store: neither NULL nor bytes.
_STORED = frozenset({str, int, float})
# Older builds of SQLite take 999 parameters in a statement.
_AT_ONCE = 900

# The upper floors of the indexes of a large file stay in memory.
_CACHE = "PRAGMA cache_size = -65536"

_FOREIGN = {
    "wiki": "it looks like REL's p(e|m): build with kb_from_rel (--kind rel)",
    "mapping": "it looks like wikimapper's: build with kb_from_wikimapper (--kind wikimapper)",
}


class KBConnection:
    """A connection to a built knowledge base, opened when first asked, anew in every process.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FileError
        On opening: no file, no SQLite, no knowledge base, one of another format, one cut off. Later: a damaged one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_process: dict[int, tuple[sqlite3.Connection, Lock]] = {}

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            while True:
                db, lock = self._db()
                # SQLite lets one thread at a time read anyway; the lock keeps a cursor from another thread's close.
                with lock:
                    if self._by_process.get(os.getpid(), (None, None))[0] is db:
                        return self._checked(db.execute(sql, parameters).fetchall())
        except sqlite3.OperationalError as error:
            if not str(error).startswith(("no such module", "no such tokenizer")):
                raise self.damaged(error) from error
            raise FileError(
                self.path,
                f"holds an index that this SQLite ({sqlite3.sqlite_version}) cannot read ({error}); fuzzy look-ups "
                "need SQLite 3.34 or later with FTS5, exact and normalised ones do not",
            ) from error
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise self.damaged(error) from error

    def facts(self, names: Sequence[str]) -> dict[str, str]:
        """What the file says of itself."""
        found = dict(self.rows("SELECT key, value FROM meta"))
        for name in names:
            fact = found.get(name)
            if not isinstance(fact, str) or (name.startswith("n_") and not _COUNT.fullmatch(fact)):
                what = f"says {fact!r:.40} for" if name in found else "does not say"
                raise self.damaged(f"it {what} {name}")
        return found

    def rows_of(self, sql: str, values: Sequence[Any], more: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """All rows of a query with one ``IN ({})``, asked with as many values at a time as SQLite takes."""
        for begin in range(0, len(values), _AT_ONCE):
            some = values[begin : begin + _AT_ONCE]
            yield from self.rows(sql.format(", ".join("?" * len(some))), (*some, *more))

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        db, lock = self._by_process.pop(os.getpid(), (None, None))
        if db is not None and lock is not None:
            with lock:
                db.close()

    def _db(self) -> tuple[sqlite3.Connection, Lock]:
        """The connection of this process: one that came through a fork would share its place in the file."""
        mine = self._by_process.get(os.getpid())
        if mine is None:
            _require_knowledge_base(self.path)
            # Nobody writes to a built file (a new one takes its name), so SQLite need not lock it or look for changes.
            uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
            db = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            mine = self._by_process.setdefault(os.getpid(), (db, Lock()))
            if mine[0] is not db:
                # Another thread was faster.
                db.close()
        return mine

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute(_CACHE)
        distrust(db)
        name = computed(db)
        if name:
            raise self.damaged(f"{printable(name)[:40]!r} is computed, which nothing in a knowledge base is")

    def _checked(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if not all(_STORED.issuperset(map(type, row)) for row in rows):
            raise self.damaged("nothing, or bytes, where text or a number was wanted")
        return rows

    def damaged(self, error: object) -> FileError:
        """The error of a file that holds what no builder writes."""
        return FileError(self.path, f"is damaged ({error}); build it again or fetch another copy")


def is_external(path: Path) -> bool:
    """Whether a file exists that is not empty and no knowledge base of any format."""
    if not path.exists():
        return False
    with Source.at(path, None).raw() as file:
        header = bytes(file.read(_HEADER))
    return bool(header) and not (header.startswith(SQLITE) and _number(header, _APPLICATION_ID) == APPLICATION_ID)


def reader_of(path: Path) -> str:
    """What reads a SQLite file."""
    if is_external(path):
        return _hint(path)
    return "it is a knowledge base that is built: open it with KnowledgeBase(path), or give it to --kb"


def _require_knowledge_base(path: Path) -> None:
    """Look at the header and the size of a file alone: a large one costs no more than a small one."""
    with Source.at(path, None).raw() as file:
        header, n_bytes = bytes(file.read(_HEADER)), file.size()
    if not header.startswith(SQLITE):
        what = "is empty" if not header else "is no SQLite file"
        raise FileError(path, f"{what}; wanted a knowledge base: build one with build_kb, kb_from_file, kb_from_rel...")
    if _number(header, _APPLICATION_ID) != APPLICATION_ID:
        raise FileError(path, f"is a SQLite file but no knowledge base of this package; {_hint(path)}")
    version = _number(header, _USER_VERSION)
    if version != FORMAT:
        raise FileError(path, f"is a knowledge base of format {version}, this version reads {FORMAT}: build it again")
    # A page size of 1 stands for 65,536, which has no place in two bytes.
    page_size = _number(header, _PAGE_SIZE)
    wanted = (65_536 if page_size == 1 else page_size) * _number(header, _N_PAGES)
    if n_bytes < wanted:
        raise FileError(path, f"is cut off: {n_bytes:,} bytes of {wanted:,}; copy or build it again")


def _number(header: bytes, place: tuple[int, int]) -> int:
    start, size = place
    return int.from_bytes(header[start : start + size], "big")


def _hint(path: Path) -> str:
    """Which builder may take the tables of a foreign file."""
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 100")}
        finally:
            db.close()
    except sqlite3.Error:
        names = set()
    return next((hint for name, hint in _FOREIGN.items() if name in names), "build one with build_kb, kb_from_file...")
