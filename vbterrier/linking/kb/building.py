"""Building a knowledge base from staged entities."""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import secrets
import shutil
import sqlite3
import stat
import time
from contextlib import closing, contextmanager
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import FileError, InputError, ParameterError, number, path_parameter, printable, warn
from vbterrier.frames.files.source import is_folder
from vbterrier.frames.files.writing import lock
from vbterrier.linking.kb.codes import ATTRIBUTES, checked_spellings, known_names
from vbterrier.linking.kb.ordering import FETCH_ROWS, Ordering
from vbterrier.linking.kb.sqlite import (
    APPLICATION_ID,
    FORMAT_VERSION,
    MAX_COMPARED_NAMES,
    TABLES,
    execute_statements,
    is_external,
    lexicon_path,
)
from vbterrier.linking.kb.staging import Staging, contradiction, quoted_text, settle_redirects, text_fault
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.codes import Spellings
    from vbterrier.linking.kb.staging import RecordError


# The contents that determine look-ups, in the order of the file. Probabilities are rounded to nine places, because sums
# differ in the last digits between versions of SQLite.
_CONTENTS = (
    "SELECT id, name FROM entity ORDER BY place",
    "SELECT source, target FROM redirect ORDER BY source",
    "SELECT text, weight FROM mention ORDER BY place",
    "SELECT key, entity, CAST(prob * 1e9 + 0.5 AS INTEGER) FROM mention_sense ORDER BY key, rank",
    "SELECT entity, name, value, type FROM attribute ORDER BY entity, place",
    "SELECT attribute, value, name FROM spelling ORDER BY attribute, value, place",
)

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
# The file in the temporary folder of a build that its process holds locked.
_LOCK = "lock"
# The file is renamed when it is complete and synced, so that no journal is needed before.
_FAST_WRITES = """
PRAGMA main.journal_mode = OFF;
PRAGMA main.synchronous = OFF;
PRAGMA main.cache_size = -8192;
PRAGMA staged.journal_mode = OFF;
PRAGMA staged.synchronous = OFF;
"""


def kb_digest(db: sqlite3.Connection, facts: Mapping[str, Any]) -> str:
    """Return the digest of the contents and metadata of a knowledge base, in constant memory; 32 hex digits."""
    digest = hashlib.blake2b(repr(sorted(facts.items())).encode(), digest_size=16)
    for sql in _CONTENTS:
        cursor = db.execute(sql)
        while rows := cursor.fetchmany(FETCH_ROWS):
            if isinstance(rows[0][0], int) and isinstance(rows[0][-1], int):
                numbers = np.fromiter(chain.from_iterable(rows), "<i8", len(rows) * len(rows[0]))
                digest.update(numbers.tobytes())
                continue
            for place in range(len(rows[0])):
                # Faster than to zip thousands of rows.
                column = list(map(itemgetter(place), rows))
                # No text contains a NUL, so that different contents have different representations.
                if isinstance(column[0], str):
                    digest.update("\0".join(column).encode())
                else:
                    digest.update(np.fromiter(column, "<f8", len(column)).tobytes())
                digest.update(b"\0\n")
        digest.update(b"\n")
    return digest.hexdigest()


def steps(db: sqlite3.Connection, staging: Staging, ordering: Ordering) -> Iterator[Callable[[], object]]:
    """Yield the steps of a build, in order."""
    yield lambda: _require_consistent(db, staging)
    yield lambda: settle_redirects(db, staging)
    # Number the entities by id; the first name of an id is its name.
    yield lambda: db.execute(
        "INSERT INTO entity(id, name) SELECT id, name FROM ("
        "  SELECT id, name, min(CASE WHEN name = '' THEN 9e18 ELSE row END) FROM staged.entity GROUP BY id"
        ") ORDER BY id"
    )
    yield lambda: db.execute("CREATE UNIQUE INDEX entity_id ON entity(id)")
    yield ordering.write_texts
    yield ordering.read_aliases
    yield ordering.write_mention_senses
    yield ordering.write_form_senses
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
    if twice := contradiction(db, "entity WHERE name <> ''", "name", "id"):
        entity, one, other, row = twice
        fault = (
            f"id {quoted_text(entity)} has the labels {quoted_text(one)} and {quoted_text(other)}; make one an alias"
        )
        raise staging.record_error(row, fault)
    if twice := contradiction(db, "alias WHERE prior IS NOT NULL", "prior", "text, id"):
        text, entity, low, high, row = twice
        fault = f"alias {quoted_text(text)} of {quoted_text(entity)} has the priors {low:g} and {high:g}; keep one"
        raise staging.record_error(row, fault)


def _write_spellings(db: sqlite3.Connection, names: list[tuple[str, str, str]], *, is_default: bool) -> None:
    """Insert the names of values, by default those of known codes."""
    if is_default:
        places = ", ".join("?" * len(ATTRIBUTES))
        sql = f"SELECT DISTINCT name, value FROM staged.attribute WHERE lower(name) IN ({places})"  # noqa: S608
        values: dict[str, list[str]] = {}
        for attribute, value in sorted(db.execute(sql, ATTRIBUTES)):
            values.setdefault(attribute, []).append(value)
        names = [row for attribute, of_attribute in values.items() for row in known_names(attribute, of_attribute)]
    rows = ((attribute, value, place, name) for place, (attribute, value, name) in enumerate(dict.fromkeys(names)))
    db.executemany("INSERT INTO spelling VALUES (?, ?, ?, ?)", rows)


def _trigrams(db: sqlite3.Connection) -> None:
    """Build the index of trigrams if there are too many forms to compare a mention with each."""
    n_forms = db.execute("SELECT count(*) FROM form").fetchone()[0]
    if n_forms <= MAX_COMPARED_NAMES:
        return
    if fault := _trigram_fault():
        warn(
            f"{n_forms:,} names need an index of trigrams for fuzzy look-ups, which SQLite {sqlite3.sqlite_version} "
            f"cannot create ({fault}): the knowledge base has no index; build it with SQLite 3.34 or later"
        )
    else:
        execute_statements(db, _TRIGRAMS)


def _trigram_fault() -> str:
    """Return SQLite's error when it creates an index of trigrams in memory; empty if it succeeds."""
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            execute_statements(db, _TRIGRAMS.split(";", maxsplit=1)[0])
    except sqlite3.OperationalError as error:
        return str(error)
    return ""


@contextmanager
def building(
    path: StrPath,
    id_space: str,
    record_error: RecordError,
    *,
    is_strict: bool = True,
    spellings: Spellings | None = None,
    smoothing: float = 1.0,
    progress: bool = True,
) -> Iterator[Staging]:
    """Return a context that stages entities, then completes the knowledge base and renames it to its path."""
    number("smoothing", smoothing, low=0)
    path, names = path_parameter("path", path), [] if spellings is None else checked_spellings(spellings)
    fault = text_fault(id_space)
    if fault:
        raise ParameterError(f"id_space={id_space!r}: {fault}; name the id space, such as 'wikidata' or any other name")
    started = time.perf_counter()
    with _folder_beside(path) as folder:
        try:
            with closing(sqlite3.connect(folder / "kb.sqlite", isolation_level=None)) as db:
                db.execute("ATTACH ? AS staged", (str(folder / "staged.sqlite"),))
                execute_statements(db, _FAST_WRITES + "BEGIN;" + TABLES)
                staging = Staging(db, record_error, is_strict=is_strict)
                yield staging
                staging.flush()
                _write_spellings(db, names, is_default=spellings is None)
                ordering = Ordering(db, smoothing)
                for step in bar(list(steps(db, staging, ordering)), "ordering", unit="step", shown=progress, delay=2):
                    step()
                digest = _mark(db, id_space, ordering)
                ordering.write_lexicon(folder / "lexicon", digest)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise FileError(path, f"cannot be written ({error}); check the free space on the disk") from error
        if staging.left_out:
            counts = "; ".join(f"{n:,} {what}" for what, n in sorted(staging.left_out.items()))
            warn(f"{path.name}: left out {counts}")
        try:
            # First the file that alone makes no knowledge base.
            if (folder / "lexicon").exists():
                _sync_and_rename(folder / "lexicon", lexicon_path(path))
            else:
                lexicon_path(path).unlink(missing_ok=True)
            _sync_and_rename(folder / "kb.sqlite", path)
        except OSError as error:
            raise FileError(path, f"cannot be written: {error.strerror or error}") from error
    _LOG.info("built the knowledge base %s (%.2f s)", printable(path), time.perf_counter() - started)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Return a temporary folder on the disk of a new file."""
    if is_folder(path):
        raise FileError(path, "is a folder; wanted the name of a file to write")
    if is_external(path):
        # This protects the source if source and target are confused.
        raise FileError(path, "exists and is not a knowledge base, so it is not replaced; delete it or name another")
    prefix = f".{path.name[:40]}.build-"
    _remove_abandoned(path.parent, prefix)
    # Named before it is made: a signal between the two would leave it.
    folder = path.parent / f"{prefix}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise FileError(path, f"cannot be written: {error.strerror or error}") from error
        # The lock of a process ends with it, however it ends.
        with (folder / _LOCK).open("wb") as file:
            _try_lock(file)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _try_lock(file: Any) -> bool:
    """Lock a file until it is closed; return False if another process holds it, or the system has no locks."""
    try:
        return lock(file, wait=False)
    except BlockingIOError:
        return False


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the temporary folders of builds of this file whose process was killed."""
    for folder in parent.glob(f"{glob.escape(prefix)}*"):
        held = folder / _LOCK
        if not held.is_file():
            continue
        with held.open("rb+") as file:
            is_abandoned = _try_lock(file)
        if is_abandoned:
            _LOG.info("removed %s of a build that was killed", printable(folder))
            shutil.rmtree(folder, ignore_errors=True)


def _mark(db: sqlite3.Connection, id_space: str, ordering: Ordering) -> str:
    """Write the metadata of the file, with counts, which would otherwise need a scan of all rows; return the digest."""
    n_entities, n_mentions, n_forms = (
        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - constant names
        for table in ("entity", "mention", "form")
    )
    if not n_entities:
        raise InputError("entities: none; a knowledge base needs at least one")
    (indexed,) = db.execute("SELECT EXISTS (SELECT 1 FROM trigram)").fetchone()
    facts: dict[str, Any] = {"id_space": id_space, "has_priors": int(ordering.has_source), "n_entities": n_entities}
    facts["counts_are_of_entities"] = int(ordering.counts_are_of_entities)
    facts |= {"n_aliases": n_mentions, "n_forms": n_forms, "has_trigrams": indexed}
    facts["digest"] = kb_digest(db, facts)
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(key, str(value)) for key, value in facts.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    return str(facts["digest"])


def _sync_and_rename(new: Path, path: Path) -> None:
    with new.open("rb+") as file:
        os.fsync(file.fileno())
    if path.exists():
        # Keep the permissions that the owner has set.
        new.chmod(stat.S_IMODE(path.stat().st_mode))
    new.replace(path)
