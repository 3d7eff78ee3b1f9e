"""Building a knowledge base from staged entities."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier import log
from vbterrier.errors import FileError, InputError, ParameterError, printable, warn
from vbterrier.linking.kb.sqlite import APPLICATION_ID, COMPARED_AT_MOST, FORMAT, TABLES, is_external, run
from vbterrier.linking.kb.staging import Staging, fault_of, settle_redirects, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.staging import RecordError


_ROWS = 10_000

# The contents that determine look-ups, in the order of the file. Probabilities are rounded to nine places, because sums
# differ in the last digits between versions of SQLite.
_CONTENTS = (
    "SELECT id, name FROM entity ORDER BY place",
    "SELECT source, target FROM redirect ORDER BY source",
    "SELECT text, weight FROM mention ORDER BY place",
    "SELECT key, entity, CAST(prob * 1e9 + 0.5 AS INTEGER) FROM mention_sense ORDER BY key, rank",
    "SELECT entity, name, value, type FROM attribute ORDER BY entity, place",
)

# The rounding error allowed in sums of priors.
_TOLERANCE = 1e-6
# Duplicates of an alias and an id count once; the priors of ids that redirect to one entity are added.
_PAIRS = """
CREATE TABLE staged.pair AS
SELECT m.place AS mention, e.place AS entity, a.prior AS prior
FROM (
  SELECT text, id, sum(prior) AS prior FROM (
    SELECT text, id, max(prior) AS prior FROM staged.alias GROUP BY text, id, origin
  ) GROUP BY text, id
) AS a JOIN mention AS m ON m.text = a.text JOIN entity AS e ON e.id = a.id
"""

# For each mention the number of entities, the number of entities with a prior, and the sum of the priors.
_TOTALS = """
CREATE TABLE staged.total(mention INTEGER PRIMARY KEY, n INTEGER, n_given INTEGER, given REAL);
INSERT INTO staged.total
SELECT mention, count(*), count(prior), total(prior) FROM staged.pair GROUP BY mention ORDER BY mention;
"""

# p(e|m): the prior divided by the sum of the priors; entities without a prior share the rest of 1 equally.
_MENTION_SENSES = """
INSERT INTO mention_sense
SELECT mention, row_number() OVER (PARTITION BY mention ORDER BY prob DESC, entity) - 1, entity, prob, mention
FROM (
  SELECT p.mention, p.entity, CASE
    WHEN t.given <= 0 AND t.n_given IN (0, t.n) THEN 1.0 / t.n
    WHEN p.prior IS NULL THEN max(0.0, 1.0 - t.given) / (t.n - t.n_given) / max(t.given, 1.0)
    WHEN t.n_given < t.n THEN p.prior / max(t.given, 1.0)
    ELSE p.prior / t.given
  END AS prob
  FROM staged.pair AS p JOIN staged.total AS t ON t.mention = p.mention
) ORDER BY 1, 2
"""

# p(e|form) = Σ_m w_m p(e|m) / Σ_m w_m over the mentions m of the form; 1/n if no alias has a prior. The alias shown for
# an entity is the mention that contributes most.
_FORM_SENSES = """
INSERT INTO form_sense
SELECT form, row_number() OVER (PARTITION BY form ORDER BY prob DESC, entity) - 1, entity, prob, mention
FROM (
  SELECT form, entity, mention,
    CASE WHEN EXISTS (SELECT 1 FROM staged.alias WHERE prior IS NOT NULL)
      THEN mass / sum(mass) OVER whole ELSE 1.0 / count(*) OVER whole END AS prob
  FROM (
    SELECT m.form, s.entity, s.mention,
      sum(m.weight * s.prob) OVER same AS mass,
      row_number() OVER (PARTITION BY m.form, s.entity ORDER BY m.weight * s.prob DESC, s.mention) AS nth
    FROM mention_sense AS s JOIN mention AS m ON m.place = s.key
    WINDOW same AS (PARTITION BY m.form, s.entity)
  ) WHERE nth = 1
  WINDOW whole AS (PARTITION BY form)
) ORDER BY 1, 2
"""

_TRIGRAMS = """
CREATE VIRTUAL TABLE form_trigram
USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram case_sensitive 1');
INSERT INTO form_trigram(rowid, text) SELECT place, ' ' || text || ' ' FROM form ORDER BY place;
INSERT INTO form_trigram(form_trigram) VALUES ('optimize');
CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, form_trigram, row);
INSERT INTO trigram SELECT term, doc FROM temp.vocabulary;
DROP TABLE temp.vocabulary;
"""
_LOG = logging.getLogger(__name__)
# The file is renamed when it is complete and synced, so that no journal is needed before.
_FAST_WRITES = """
PRAGMA main.journal_mode = OFF;
PRAGMA main.synchronous = OFF;
PRAGMA main.cache_size = -32768;
PRAGMA staged.journal_mode = OFF;
PRAGMA staged.synchronous = OFF;
"""


def digest_of(db: sqlite3.Connection, facts: Mapping[str, Any]) -> str:
    """Return the digest of the contents and metadata of a knowledge base, in constant memory; 32 hex digits."""
    digest = hashlib.blake2b(repr(sorted(facts.items())).encode(), digest_size=16)
    for sql in _CONTENTS:
        cursor = db.execute(sql)
        while rows := cursor.fetchmany(_ROWS):
            # repr quotes texts, so that different contents have different representations.
            digest.update(repr(rows).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def steps(db: sqlite3.Connection, staging: Staging) -> Iterator[Callable[[], object]]:
    """Yield the steps of a build, in order."""
    yield lambda: _require_consistent(db, staging)
    yield lambda: run(db, "ALTER TABLE staged.alias ADD COLUMN origin TEXT; UPDATE staged.alias SET origin = id")
    yield lambda: settle_redirects(db, staging)
    # Number the entities by id; the first name of an id is its name.
    yield lambda: db.execute(
        "INSERT INTO entity(id, name) SELECT id, name FROM ("
        "  SELECT id, name, min(CASE WHEN name = '' THEN 9e18 ELSE row END) FROM staged.entity GROUP BY id"
        ") ORDER BY id"
    )
    yield lambda: db.execute("CREATE UNIQUE INDEX entity_id ON entity(id)")
    yield lambda: _mentions(db)
    yield lambda: db.execute(_PAIRS)
    yield lambda: run(db, _TOTALS)
    yield lambda: db.execute(_MENTION_SENSES)
    yield lambda: _warn_of_priors(db)
    yield lambda: db.execute(_FORM_SENSES)
    # Keep each value of an attribute once, in the order of the source.
    yield lambda: db.execute(
        "INSERT INTO attribute SELECT e.place, a.nth, a.name, a.value, a.type FROM ("
        "  SELECT id, name, value, type, min(rowid) AS nth FROM staged.attribute GROUP BY id, name, value, type"
        ") AS a JOIN entity AS e ON e.id = a.id ORDER BY 1, 2"
    )
    yield lambda: _trigrams(db)


def _require_consistent(db: sqlite3.Connection, staging: Staging) -> None:
    """Raise an error for an id with two labels, or an alias with two priors for one entity."""
    if not staging.is_strict:
        return
    twice = db.execute(
        "SELECT id, min(name), max(name), max(row) FROM staged.entity WHERE name <> '' "
        "GROUP BY id HAVING min(name) <> max(name) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        entity, one, other, row = twice
        raise staging.record_error(
            row,
            f"id {shown(entity)} has the labels {shown(one)} and {shown(other)}; make one an alias",
        )
    twice = db.execute(
        "SELECT text, id, min(prior), max(prior), max(row) FROM staged.alias "
        "GROUP BY text, id HAVING min(prior) <> max(prior) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        text, entity, low, high, row = twice
        raise staging.record_error(
            row, f"alias {shown(text)} of {shown(entity)} has the priors {low:g} and {high:g}; keep one"
        )


def _mentions(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO form(text) SELECT DISTINCT form FROM staged.alias ORDER BY length(form), form")
    db.execute("INSERT INTO form_length SELECT length(text), min(place) FROM form GROUP BY 1 ORDER BY 1")
    db.execute("CREATE UNIQUE INDEX form_text ON form(text)")
    db.execute(
        "INSERT INTO mention(text, form, weight) SELECT a.text, f.place, coalesce(w.weight, 1.0) "
        "FROM (SELECT DISTINCT text, form FROM staged.alias) AS a JOIN form AS f ON f.text = a.form "
        "LEFT JOIN staged.weight AS w ON w.text = a.text ORDER BY a.text"
    )
    db.execute("CREATE UNIQUE INDEX mention_text ON mention(text)")


def _warn_of_priors(db: sqlite3.Connection) -> None:
    n_off, low, high = db.execute(
        "SELECT count(*), min(given), max(given) FROM staged.total "
        "WHERE given > 0 AND (n_given = n OR given > 1) AND abs(given - 1) > ?",
        (_TOLERANCE,),
    ).fetchone()
    n_mixed = db.execute("SELECT count(*) FROM staged.total WHERE n_given BETWEEN 1 AND n - 1").fetchone()[0]
    n_zero = db.execute("SELECT count(*) FROM staged.total WHERE n_given = n AND given = 0").fetchone()[0]
    messages = []
    if n_off:
        messages.append(f"the priors of {n_off} aliases sum to {low:.4g} to {high:.4g}, not 1: divided by their sum")
    if n_mixed:
        messages.append(f"{n_mixed} aliases have entities with and without a prior: the latter share the rest of 1")
    if n_zero:
        messages.append(f"the priors of {n_zero} aliases are all 0: their entities are treated as equally probable")
    if messages:
        warn("; ".join(messages))


def _trigrams(db: sqlite3.Connection) -> None:
    """Build the index of trigrams if there are too many forms to compare a mention with each."""
    n_forms = db.execute("SELECT count(*) FROM form").fetchone()[0]
    if n_forms <= COMPARED_AT_MOST:
        return
    fault = _trigram_fault()
    if fault:
        warn(
            f"{n_forms:,} names need an index of trigrams for fuzzy look-ups, which SQLite {sqlite3.sqlite_version} "
            f"cannot create ({fault}): the knowledge base has no index; build it with SQLite 3.34 or later"
        )
    else:
        run(db, _TRIGRAMS)


def _trigram_fault() -> str:
    """Return SQLite's error when it creates an index of trigrams in memory; empty if it succeeds."""
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            run(db, _TRIGRAMS.split(";", maxsplit=1)[0])
    except sqlite3.OperationalError as error:
        return str(error)
    return ""


@contextmanager
def building(
    path: StrPath, id_space: str, record_error: RecordError, *, is_strict: bool = True, progress: bool = True
) -> Iterator[Staging]:
    """Return a context that stages entities, then completes the knowledge base and renames it to its path.

    Parameters
    ----------
    path
        The file; an existing one is replaced when the new one is complete.
    id_space
        The name of the id space.
    record_error
        Returns the error of a record from its place and a message.
    is_strict
        See :class:`~vbterrier.linking.kb.staging.Staging`.
    progress
        Show a progress bar for long steps on a terminal.

    Raises
    ------
    FileError
        The file cannot be written.
    InputError
        There are no entities, or they contradict each other.
    """
    path = Path(path)
    fault = fault_of(id_space)
    if fault:
        raise ParameterError(f"id_space={id_space!r}: {fault}; name the id space, such as 'wikidata' or any other name")
    started = time.perf_counter()
    with _folder_beside(path) as folder:
        try:
            with closing(sqlite3.connect(folder / "kb.sqlite", isolation_level=None)) as db:
                db.execute("ATTACH ? AS staged", (str(folder / "staged.sqlite"),))
                run(db, _FAST_WRITES + "BEGIN;" + TABLES)
                staging = Staging(db, record_error, is_strict=is_strict)
                yield staging
                staging.flush()
                for step in bar(list(steps(db, staging)), "ordering", "step", shown=progress):
                    step()
                _mark(db, id_space)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise FileError(path, f"cannot be written ({error}); check the free space on the disk") from error
        if staging.left_out:
            counts = "; ".join(f"{n:,} {what}" for what, n in sorted(staging.left_out.items()))
            warn(f"{path.name}: left out {counts}")
        _sync_and_rename(folder / "kb.sqlite", path)
    _LOG.info("built the knowledge base %s (%.2f s)", printable(path), time.perf_counter() - started)


def bar(records: Iterable[Any], what: str, unit: str, *, shown: bool) -> Any:
    """Return the records with a progress bar, which is shown on a terminal after two seconds."""
    return log.bar(records, what, shown=shown, unit=unit, delay=2)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Return a temporary folder on the disk of a new file."""
    if path.is_dir():
        raise FileError(path, "is a folder; wanted the name of a file to write")
    if is_external(path):
        # This protects the source if source and target are confused.
        raise FileError(path, "exists and is not a knowledge base, so it is not replaced; delete it or name another")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", dir=path.parent))
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mark(db: sqlite3.Connection, id_space: str) -> None:
    """Write the metadata of the file, with counts, which would otherwise need a scan of all rows."""
    n_entities, n_mentions, n_forms = (
        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - constant names
        for table in ("entity", "mention", "form")
    )
    if not n_entities:
        raise InputError("entities: none; a knowledge base needs at least one")
    given, indexed = (
        db.execute(f"SELECT EXISTS (SELECT 1 FROM {what})").fetchone()[0]  # noqa: S608 - constant names
        for what in ("staged.alias WHERE prior IS NOT NULL", "trigram")
    )
    facts: dict[str, Any] = {
        "id_space": id_space,
        "has_priors": given,
        "n_entities": n_entities,
        "n_aliases": n_mentions,
        "n_forms": n_forms,
        "has_trigrams": indexed,
    }
    facts["digest"] = digest_of(db, facts)
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(key, str(value)) for key, value in facts.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")


def _sync_and_rename(new: Path, path: Path) -> None:
    try:
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            # Keep the permissions that the owner has set.
            new.chmod(stat.S_IMODE(path.stat().st_mode))
        new.replace(path)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error
