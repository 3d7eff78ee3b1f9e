"""What names the contents of a knowledge base, whenever and wherever it is built."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_ROWS = 10_000

# All that look-ups follow from, in the order in which it lies in the file, which is that of the contents: ids and texts
# are numbered in their order. Probabilities count to nine places: SQLite's versions differ in the last digits of sums.
_CONTENTS = (
    "SELECT id, name FROM entity ORDER BY place",
    "SELECT source, target FROM redirect ORDER BY source",
    "SELECT text, weight FROM mention ORDER BY place",
    "SELECT key, entity, CAST(prob * 1e9 + 0.5 AS INTEGER) FROM mention_sense ORDER BY key, rank",
    "SELECT entity, name, value, type FROM attribute ORDER BY entity, place",
)


def digest_of(db: sqlite3.Connection, facts: Mapping[str, Any]) -> str:
    """Digest what a knowledge base holds and the facts about it, in constant memory; 32 hex digits."""
    digest = hashlib.blake2b(repr(sorted(facts.items())).encode(), digest_size=16)
    for sql in _CONTENTS:
        cursor = db.execute(sql)
        while rows := cursor.fetchmany(_ROWS):
            # repr quotes texts, so that no two contents are written alike.
            digest.update(repr(rows).encode())
        digest.update(b"\n")
    return digest.hexdigest()
