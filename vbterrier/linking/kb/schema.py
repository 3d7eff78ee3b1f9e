"""What a knowledge base is on the disk: one SQLite file, told by its marks, never changed once it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

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
