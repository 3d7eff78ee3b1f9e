"""SQLite files of strangers: tables are read, and nothing in the file is run to make them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

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
