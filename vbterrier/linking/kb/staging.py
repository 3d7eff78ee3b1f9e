"""Staging of entities and redirects before a knowledge base is built."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vbterrier.errors import InputError, examples, printable, warn
from vbterrier.linking.kb.sqlite import MAX_LETTERS, MAX_VALUE, STAGED, run
from vbterrier.linking.links import normal_forms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    Blame = Callable[[int, str], InputError]


_BATCH = 10_000


def shown(text: object) -> str:
    """A text in a message: quoted, short, with control characters spelt out.

    >>> print(shown("Smith" * 20))
    'SmithSmithSmithSmithSmithSmithSmithSmith...'
    """
    words = str(text)
    return f"'{printable(words[:40])}{'...' if len(words) > 40 else ''}'"  # noqa: PLR2004 - half a line


def fault_of(text: object, most: int = MAX_LETTERS) -> str:
    r"""What keeps a value from being an id, a name or an alias; empty when nothing does.

    >>> fault_of("Q42"), fault_of(" "), fault_of(42)
    ('', 'is blank', 'is int, wanted text')
    >>> fault_of("a\x00b"), fault_of("\ud800")
    ('holds a NUL', 'holds half a surrogate pair')
    """
    if not isinstance(text, str):
        return f"is {type(text).__name__}, wanted text"
    if not text or text.isspace():
        return "is blank"
    if len(text) > most:
        return f"is longer than {most:,} letters"
    if "\x00" in text:
        return "holds a NUL"
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return "holds half a surrogate pair"
    return ""


class Staging:
    """A store for entities on their way into a knowledge base.

    Parameters
    ----------
    db
        The connection that builds.
    blame
        Makes the error of a record from its place and what is wrong.
    is_strict
        Whether an unusable alias or value is an error; otherwise it is left out and counted in ``left_out``: the dumps
        of others hold some, and nobody can repair them.
    """

    def __init__(self, db: sqlite3.Connection, blame: Blame, *, is_strict: bool = True) -> None:
        self.db, self.blame, self.is_strict = db, blame, is_strict
        self.left_out: dict[str, int] = {}
        self._entities: list[tuple[str, str, int]] = []
        self._aliases: list[tuple[str, str, float | None, int]] = []
        self._attributes: list[tuple[str, str, str, str, int]] = []
        self._redirects: list[tuple[str, str, int]] = []
        self._weights: list[tuple[str, float]] = []
        run(db, STAGED)

    def entity(self, row: int, entity_id: str, name: str = "") -> None:
        """Add an entity; one that comes again must have the same name, or none."""
        self._require(row, entity_id, "the id")
        if name:
            self._require(row, name, "the label of {}", entity_id)
        self._entities.append((entity_id, name, row))
        self._flush_full()

    def alias(self, row: int, entity_id: str, text: str, prior: float | None = None) -> None:
        """Add an alias of an entity, with its probability given the alias where that is known."""
        fault = fault_of(text)
        if fault and not self.is_strict:
            self.leave_out(f"aliases whose text {fault}")
            return
        if fault:
            raise self.blame(row, f"alias {shown(text)} of {shown(entity_id)} {fault}; leave it out or repair it")
        if prior is not None:
            prior = self._probability(row, entity_id, text, prior)
        self._aliases.append((text, entity_id, prior, row))
        self._flush_full()

    def attribute(self, row: int, entity_id: str, name: str, value: str, kind: str) -> None:
        """Add one value of an attribute."""
        fault = fault_of(value, MAX_VALUE)
        if fault and not self.is_strict:
            self.leave_out(f"values whose text {fault}")
            return
        self._require(row, name, "the name of an attribute of {}", entity_id)
        self._require(row, value, "{} of {}", name, entity_id, most=MAX_VALUE)
        self._attributes.append((entity_id, name, value, kind, row))

    def redirect(self, row: int, source: str, target: str) -> None:
        """Add an id that stands for another."""
        self._require(row, source, "an id that redirects to {}", target)
        self._require(row, target, "the id that {} redirects to", source)
        self._redirects.append((source, target, row))
        self._flush_full()

    def weight(self, text: str, weight: float) -> None:
        """Say how often an alias is used, which weighs it among others of its normal form."""
        self._weights.append((text, weight))

    def leave_out(self, what: str, n: int = 1) -> None:
        """Count something that is not taken."""
        self.left_out[what] = self.left_out.get(what, 0) + n

    def flush(self) -> None:
        """Write what has gathered."""
        forms = normal_forms(text for text, *_ in self._aliases)
        aliases = ((text, form, *rest) for (text, *rest), form in zip(self._aliases, forms, strict=True))
        self._write("entity", 3, self._entities)
        self._write("alias", 5, aliases)
        self._write("attribute", 5, self._attributes)
        self._write("redirect", 3, self._redirects)
        self._write("weight", 2, self._weights)
        for batch in (self._entities, self._aliases, self._attributes, self._redirects, self._weights):
            batch.clear()

    def _write(self, table: str, n_columns: int, rows: Iterable[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * n_columns)
        self.db.executemany(f"INSERT OR REPLACE INTO staged.{table} VALUES ({places})", rows)  # noqa: S608 - own words

    def _flush_full(self) -> None:
        if max(len(self._entities), len(self._aliases), len(self._attributes), len(self._redirects)) >= _BATCH:
            self.flush()

    def _require(self, row: int, text: object, what: str, *of: object, most: int = MAX_LETTERS) -> None:
        fault = fault_of(text, most)
        if fault:
            raise self.blame(row, f"{what.format(*map(shown, of))} {fault}{_remedy(text)}")

    def _probability(self, row: int, entity_id: str, text: str, prior: object) -> float:
        try:
            # bool is an int to Python and no probability to anybody.
            number = math.nan if isinstance(prior, bool) else float(prior)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 <= number <= 1:
            raise self.blame(
                row,
                f"alias {shown(text)} of {shown(entity_id)} has prior {shown(prior)}, wanted a number in 0 to 1, the "
                "probability of the entity given the alias; divide counts by their sum over the alias",
            )
        return number


def _remedy(text: object) -> str:
    is_number = isinstance(text, int) and not isinstance(text, bool)
    return f": {shown(text)}; make it text with str() where it is read" if is_number else f": {shown(text)}; repair it"


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
        warn(f"{left} redirects run in a circle or into one ({examples(some)}); such ids stand for themselves")
