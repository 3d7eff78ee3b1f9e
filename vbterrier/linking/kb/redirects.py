"""Redirects: each id to the end of its chain, circles to themselves."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from vbterrier.errors import DegenerateWarning, examples
from vbterrier.linking.kb.staging import shown

if TYPE_CHECKING:
    import sqlite3

    from vbterrier.linking.kb.staging import Staging

_OPEN = "target IN (SELECT source FROM redirect)"


def settle_redirects(db: sqlite3.Connection, staging: Staging) -> None:
    """Fill the table of redirects and let everything staged count for the entity at the end of its chain."""
    if not db.execute("SELECT 1 FROM staged.redirect LIMIT 1").fetchone():
        return
    _require_one_target(db, staging)
    db.execute("INSERT INTO redirect SELECT DISTINCT source, target FROM staged.redirect")
    _shorten(db)
    for table in ("entity", "alias", "attribute"):
        # What an id had before it came to redirect ranks behind what its target has.
        db.execute(
            f"UPDATE staged.{table} SET id = (SELECT target FROM redirect WHERE source = id), "  # noqa: S608 - own words
            "row = row + (SELECT 1 + max(row) FROM staged.entity) WHERE id IN (SELECT source FROM redirect)"
        )


def _require_one_target(db: sqlite3.Connection, staging: Staging) -> None:
    twice = db.execute(
        "SELECT source, min(target), max(target), max(row) FROM staged.redirect "
        "GROUP BY source HAVING min(target) <> max(target) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        source, one, other, row = twice
        raise staging.blame(row, f"{shown(source)} redirects to {shown(one)} and to {shown(other)}; keep one")


def _shorten(db: sqlite3.Connection) -> None:
    """Let each id skip to where its target leads, until none gets any further: chains halve with every round."""
    before = None
    while (left := db.execute(f"SELECT count(*) FROM redirect WHERE {_OPEN}").fetchone()[0]) != before:  # noqa: S608 - own words
        before = left
        db.execute(
            "UPDATE redirect SET target = (SELECT r.target FROM redirect AS r WHERE r.source = redirect.target) "  # noqa: S608 - own words
            f"WHERE {_OPEN}"
        )
    if left:
        # Listed first: each row that goes would free others from the condition.
        db.execute(f"CREATE TABLE staged.circle AS SELECT source FROM redirect WHERE {_OPEN} ORDER BY source")  # noqa: S608 - own words
        db.execute("DELETE FROM redirect WHERE source IN (SELECT source FROM staged.circle)")
        some = [source for (source,) in db.execute("SELECT source FROM staged.circle LIMIT 4")]
        warnings.warn(
            f"{left} redirects run in a circle or into one ({examples(some)}); such ids stand for themselves",
            DegenerateWarning,
            stacklevel=7,
        )
