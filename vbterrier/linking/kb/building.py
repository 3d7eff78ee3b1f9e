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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, InputError, ParameterError, number, printable, warn
from vbterrier.frames.files.source import is_folder
from vbterrier.linking.aliases import Vocabulary
from vbterrier.linking.kb.codes import ATTRIBUTES, checked_spellings, known_names
from vbterrier.linking.kb.sqlite import APPLICATION_ID, COMPARED_AT_MOST, FORMAT, TABLES, is_external, lexicon_path, run
from vbterrier.linking.kb.staging import Staging, contradiction, fault_of, settle_redirects, shown
from vbterrier.linking.lexicon import Lexicon
from vbterrier.linking.links import normal_forms
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, StrPath
    from vbterrier.linking.kb.codes import Spellings
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
    "SELECT attribute, value, name FROM spelling ORDER BY attribute, value, place",
)

# With more aliases than this, a file beside the knowledge base has the names for linkers in texts.
IN_MEMORY_AT_MOST = 100_000
# The rounding error allowed in sums of priors.
_TOLERANCE = 1e-6
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
            if isinstance(rows[0][0], int) and isinstance(rows[0][-1], int):
                digest.update(np.array(rows, dtype="<i8").tobytes())
                continue
            for column in zip(*rows, strict=True):
                # No text contains a NUL, so that different contents have different representations.
                if isinstance(column[0], str):
                    digest.update("\0".join(column).encode())
                else:
                    digest.update(np.array(column, dtype="<f8").tobytes())
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
    yield ordering.read
    yield ordering.write_texts
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
        fault = f"id {shown(entity)} has the labels {shown(one)} and {shown(other)}; make one an alias"
        raise staging.record_error(row, fault)
    if twice := contradiction(db, "alias WHERE prior IS NOT NULL", "prior", "text, id"):
        text, entity, low, high, row = twice
        fault = f"alias {shown(text)} of {shown(entity)} has the priors {low:g} and {high:g}; keep one"
        raise staging.record_error(row, fault)


@dataclass(frozen=True, eq=False)
class Senses:
    """Entities of numbered texts with their probabilities, by text, then by descending probability, then by entity."""

    key: Ints  # the number of the text
    entity: Ints  # the number of the entity
    prob: Floats  # the probability of the entity given the text
    mention: Ints  # the number of the alias that contributes most

    @classmethod
    def of(cls, key: Ints, entity: Ints, prob: Floats, mention: Ints) -> Senses:
        """Sort senses."""
        order = np.lexsort((entity, -prob, key)).astype(np.int32)
        sorted_key = key[order]
        return cls(sorted_key, entity[order], prob[order], sorted_key if mention is key else mention[order])

    def write(self, db: sqlite3.Connection, table: str) -> None:
        """Insert all senses; numbers start at 1, ranks at 0."""
        columns = self.key, self.entity, self.prob, self.mention
        for begin in range(0, len(self.key), _ROWS):
            key, entity, prob, mention = (column[begin : begin + _ROWS] for column in columns)
            rank = np.arange(begin, begin + len(key)) - np.searchsorted(self.key, key)
            _insert(db, table, key + 1, rank, entity + 1, prob, mention + 1)


class Ordering:
    """The distinct aliases of staged entities as numbers, which are sorted faster than text.

    They take some 150 bytes of memory per alias, beside its text.
    """

    def __init__(self, db: sqlite3.Connection, smoothing: float = 1.0) -> None:
        self.db, self.smoothing = db, smoothing

    def read(self) -> None:
        """Number aliases, their normal forms and entities in the order of the file, and merge repeated rows."""
        text = _encoded(self.db, "SELECT text FROM staged.alias ORDER BY rowid")
        order = pc.array_sort_indices(text.dictionary)
        self.texts = text.dictionary.take(order)
        mention = _inverse(order.to_numpy())[text.indices.to_numpy()]
        del text
        form = self._forms()
        rank = _inverse(pc.array_sort_indices(form.dictionary).to_numpy())
        order = np.lexsort((rank, pc.utf8_length(form.dictionary).to_numpy()))
        self.forms, self.form = form.dictionary.take(pa.array(order)), _inverse(order)[form.indices.to_numpy()]
        del form
        weights = dict(self.db.execute("SELECT text, weight FROM staged.weight"))
        self.weight = np.ones(len(self.texts))
        if weights:
            self.weight = np.array([weights.get(one, 1.0) for one in self.texts.to_pylist()])
        self._read_popularity()
        places = self._numbers(
            "SELECT coalesce(e.place, 0) FROM staged.alias AS a LEFT JOIN entity AS e ON e.id = a.id ORDER BY a.rowid",
            np.int32,
        )
        source = np.full(len(mention), -1, np.int32)
        if self._has("origin"):
            # Only the rows of an id that redirects have an origin.
            origin = _encoded(self.db, "SELECT origin FROM staged.alias ORDER BY rowid")
            source = origin.indices.fill_null(-1).to_numpy()
        prior, count = (
            self._numbers(f"SELECT {name} FROM staged.alias ORDER BY rowid", np.float64)  # noqa: S608 - constant names
            if self._has(name)
            else np.full(len(mention), np.nan)
            for name in ("prior", "count")
        )
        columns = [mention, places - 1, source, prior, count]
        # The list has the only references, so that each column is freed when it is merged.
        del mention, places, source, prior, count
        self._merge(columns)
        is_known = not (np.isnan(self.prior).all() and np.isnan(self.count).all())
        self.has_source = self.has_popularity or is_known

    def _forms(self) -> Any:
        """Return the normal form of each alias, dictionary-encoded."""
        pieces = (self.texts[begin : begin + _ROWS].to_pylist() for begin in range(0, len(self.texts), _ROWS))
        return _dictionary(
            [pa.array([], pa.large_string()), *(pa.array(normal_forms(some), pa.large_string()) for some in pieces)]
        )

    def _read_popularity(self) -> None:
        """Read the count of each entity."""
        cursor = self.db.execute(
            "SELECT e.place, sum(p.count) FROM staged.popularity AS p JOIN entity AS e ON e.id = p.id GROUP BY 1"
        )
        rows = np.array(cursor.fetchall(), np.float64).reshape(-1, 2)
        self.popularity = np.zeros(self.db.execute("SELECT count(*) FROM entity").fetchone()[0])
        self.popularity[rows[:, 0].astype(np.int64) - 1] = rows[:, 1]
        self.has_popularity = bool(self.db.execute("SELECT EXISTS (SELECT 1 FROM staged.popularity)").fetchone()[0])

    def _has(self, column: str) -> bool:
        """Return True if any alias has a value in a column."""
        sql = f"SELECT EXISTS (SELECT 1 FROM staged.alias WHERE {column} IS NOT NULL)"  # noqa: S608 - constant names
        return bool(self.db.execute(sql).fetchone()[0])

    def _numbers(self, sql: str, kind: Any) -> NDArray[Any]:
        """Return the only column of a query as numbers."""
        cursor = self.db.execute(sql)
        parts = [np.empty(0, kind)]
        while rows := cursor.fetchmany(_ROWS):
            parts.append(np.array(rows, dtype=kind).reshape(-1))
        return np.concatenate(parts)

    def _merge(self, columns: list[Any]) -> None:
        """Count repeated rows of an alias and an id once; add the priors of ids that redirect to one entity.

        The counts of repeated rows are added. ``columns`` are mention, entity, source, prior and count, taken from the
        list.
        """
        entity = columns[1]
        order = np.lexsort((columns[2], entity, columns[0])).astype(np.int32)
        if len(entity) and entity.min() < 0:
            order = order[entity[order] >= 0]
        del entity
        count, prior, source, entity, mention = (columns.pop()[order] for _ in range(len(columns)))
        del order
        of_senses = _starts(mention, entity)
        self.count = np.add.reduceat(np.nan_to_num(count), of_senses) if len(count) else count
        if len(count):
            self.count[~np.logical_or.reduceat(~np.isnan(count), of_senses)] = np.nan
        first = _starts(mention, entity, source)
        # The largest prior; missing ones count if there is no other.
        prior = np.fmax.reduceat(prior, first) if len(first) else prior
        mention, entity = mention[first], entity[first]
        first = _starts(mention, entity)
        given = ~np.isnan(prior)
        total = np.add.reduceat(np.where(given, prior, 0.0), first) if len(first) else prior
        total[~np.logical_or.reduceat(given, first) if len(first) else given] = np.nan
        self.mention, self.entity, self.prior = mention[first], entity[first], total

    def write_texts(self) -> None:
        """Insert aliases and normal forms, with their indexes."""
        db = self.db
        _insert(db, "form", np.arange(1, len(self.forms) + 1), self.forms)
        db.execute("INSERT INTO form_length SELECT length(text), min(place) FROM form GROUP BY 1 ORDER BY 1")
        db.execute("CREATE UNIQUE INDEX form_text ON form(text)")
        _insert(db, "mention", np.arange(1, len(self.texts) + 1), self.texts, self.form + 1, self.weight)
        db.execute("CREATE UNIQUE INDEX mention_text ON mention(text)")

    def write_mention_senses(self) -> None:
        """Insert ``p(e|m)``: the prior divided by the sum of the priors; the other entities share the rest of 1.

        They share it in proportion to ``c + a``, the count of the alias, or else of the entity, and the smoothing.
        """
        n_mentions, at, entity, prob = len(self.texts), self.mention, self.entity, self.prior
        # Arrays of all senses are the largest: they are changed in place, and freed as soon as possible.
        others = np.flatnonzero(np.isnan(prob))
        prob[others] = 0.0
        n = np.bincount(at, minlength=n_mentions)
        n_given = n - np.bincount(at[others], minlength=n_mentions)
        given: Floats = np.bincount(at, weights=prob, minlength=n_mentions).astype(np.float64)
        _warn_of_priors(n, n_given, given)
        scale = np.maximum(given, 1.0)
        share = np.ones(len(others))
        if self.has_source:
            share = self.count[others]
            share = np.where(np.isnan(share), self.popularity[entity[others]], share) + self.smoothing
        del self.mention, self.entity, self.prior, self.count, self.popularity
        of_rest = np.bincount(at[others], weights=share, minlength=n_mentions)
        # Without smoothing all counts of an alias may be 0.
        share[(of_rest == 0)[at[others]]] = 1.0
        of_rest = np.where(of_rest == 0, np.maximum(n - n_given, 1), of_rest)
        rest = np.maximum(0.0, 1.0 - given) / of_rest / scale
        whole = np.where(n_given < n, scale, np.where(given > 0, given, 1.0))
        prob /= whole[at]
        prob[others] = rest[at[others]] * share
        del others, share
        equal = ((given <= 0) & (n_given == n))[at]
        prob[equal] = 1.0 / n[at[equal]]
        self.senses = Senses.of(at, entity, prob, at)
        del at, entity, prob
        self.senses.write(self.db, "mention_sense")

    def write_form_senses(self) -> None:
        """Insert ``p(e|form) = Σ_m w_m p(e|m) / Σ_m w_m`` over the aliases m of a form; 1/n if no alias has a prior."""
        senses = self.senses
        form, mass = self.form[senses.mention], self.weight[senses.mention] * senses.prob
        order = np.lexsort((senses.mention, -mass, senses.entity, form)).astype(np.int32)
        first = _starts(form[order], senses.entity[order])
        best = order[first]
        form = form[best]
        total = np.add.reduceat(mass[order], first) if len(first) else mass
        del order, mass, first
        if not self.has_source:
            total = np.ones(len(form))
        prob = total / np.bincount(form, weights=total)[form] if len(form) else total
        Senses.of(form, senses.entity[best], prob, senses.mention[best]).write(self.db, "form_sense")

    def write_lexicon(self, path: Path, digest: str) -> None:
        """Write the names for linkers in texts, if there are too many to index them each time."""
        if len(self.texts) <= IN_MEMORY_AT_MOST:
            return
        self.db.execute("PRAGMA shrink_memory")
        ids, labels = _columns(self.db, "SELECT id, name FROM entity ORDER BY place")
        priors, senses = self.has_source, self.senses
        score = senses.prob if priors else np.ones(len(senses.prob))
        columns = {"alias": senses.key, "entity": senses.entity, "score": score, "weight": self.weight[senses.key]}
        table = Vocabulary(self.texts, ids, labels, pd.DataFrame(columns, copy=False), priors)
        del self.senses, self.forms, self.form, self.texts, senses, columns, ids, labels, score
        Lexicon.of_vocabulary(table).save(path, digest)


def _starts(*keys: NDArray[Any]) -> Ints:
    """Return the first row of each run of equal keys."""
    changes = np.ones(len(keys[0]), bool)
    changes[1:] = False
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


def _inverse(order: NDArray[Any]) -> NDArray[np.int32]:
    """Return the place of each number in an order."""
    # Half the memory of 64 bits.
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _columns(db: sqlite3.Connection, sql: str) -> list[Any]:
    """Return the columns of a query as Arrow arrays of text, or of numbers for columns ``prior`` and ``count``."""
    cursor = db.execute(sql)
    names = [name for name, *_ in cursor.description]
    kinds = [pa.float64() if name in {"prior", "count"} else pa.large_string() for name in names]
    columns: list[list[Any]] = [[pa.array([], kind)] for kind in kinds]
    while rows := cursor.fetchmany(_ROWS):
        for chunks, kind, values in zip(columns, kinds, zip(*rows, strict=True), strict=True):
            chunks.append(pa.array(values, kind))
    return [pa.chunked_array(chunks).combine_chunks() for chunks in columns]


def _encoded(db: sqlite3.Connection, sql: str) -> Any:
    """Return the only column of a query, text, as a dictionary array."""
    cursor, chunks = db.execute(sql), [pa.array([], pa.large_string())]
    while rows := cursor.fetchmany(_ROWS):
        chunks.append(pa.array([text for (text,) in rows], pa.large_string()))
    return _dictionary(chunks)


def _dictionary(chunks: list[Any]) -> Any:
    """Return chunks of text as one dictionary array."""
    text = pa.concat_arrays(chunks)
    chunks.clear()
    found = text.dictionary_encode()
    del text
    pa.default_memory_pool().release_unused()
    return found


def _insert(db: sqlite3.Connection, table: str, *columns: Any) -> None:
    """Insert columns of equal length."""
    places = ", ".join("?" * len(columns))
    for begin in range(0, len(columns[0]), _ROWS):
        parts = (column[begin : begin + _ROWS] for column in columns)
        rows = zip(*(part.tolist() for part in parts), strict=True)
        db.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - constant names


def _warn_of_priors(n: Ints, n_given: Ints, given: Floats) -> None:
    off = (given > 0) & ((n_given == n) | (given > 1)) & (np.abs(given - 1) > _TOLERANCE)
    n_mixed = int(((n_given > 0) & (n_given < n)).sum())
    n_zero = int(((n_given == n) & (n > 0) & (given == 0)).sum())
    messages = []
    if off.any():
        low, high = given[off].min(), given[off].max()
        messages.append(
            f"the priors of {off.sum()} aliases sum to {low:.4g} to {high:.4g}, not 1: divided by their sum"
        )
    if n_mixed:
        messages.append(f"{n_mixed} aliases have entities with and without a prior: the latter share the rest of 1")
    if n_zero:
        messages.append(f"the priors of {n_zero} aliases are all 0: their entities are treated as equally probable")
    if messages:
        warn("; ".join(messages))


def _write_spellings(db: sqlite3.Connection, names: list[tuple[str, str, str]], *, is_default: bool) -> None:
    """Insert the names of values, by default those of known codes."""
    if is_default:
        places = ", ".join("?" * len(ATTRIBUTES))
        sql = f"SELECT DISTINCT name, value FROM staged.attribute WHERE lower(name) IN ({places})"  # noqa: S608
        values: dict[str, list[str]] = {}
        for attribute, value in sorted(db.execute(sql, ATTRIBUTES)):
            values.setdefault(attribute, []).append(value)
        names = [row for attribute, own in values.items() for row in known_names(attribute, own)]
    rows = ((attribute, value, place, name) for place, (attribute, value, name) in enumerate(dict.fromkeys(names)))
    db.executemany("INSERT INTO spelling VALUES (?, ?, ?, ?)", rows)


def _trigrams(db: sqlite3.Connection) -> None:
    """Build the index of trigrams if there are too many forms to compare a mention with each."""
    n_forms = db.execute("SELECT count(*) FROM form").fetchone()[0]
    if n_forms <= COMPARED_AT_MOST:
        return
    if fault := _trigram_fault():
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
    path, names = Path(path), [] if spellings is None else checked_spellings(spellings)
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
                _write_spellings(db, names, is_default=spellings is None)
                ordering = Ordering(db, smoothing)
                for step in bar(list(steps(db, staging, ordering)), "ordering", unit="step", shown=progress, delay=2):
                    step()
                digest = _mark(db, id_space, has_priors=ordering.has_source)
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
        with (folder / _LOCK).open("wb") as lock:
            _locked(lock)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _locked(lock: Any) -> bool:
    """Lock a file until it is closed; return False if another process holds it, or the system has no locks."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the temporary folders of builds of this file whose process was killed."""
    for folder in parent.glob(f"{glob.escape(prefix)}*"):
        lock = folder / _LOCK
        if not lock.is_file():
            continue
        with lock.open("rb+") as file:
            is_abandoned = _locked(file)
        if is_abandoned:
            _LOG.info("removed %s of a build that was killed", printable(folder))
            shutil.rmtree(folder, ignore_errors=True)


def _mark(db: sqlite3.Connection, id_space: str, *, has_priors: bool) -> str:
    """Write the metadata of the file, with counts, which would otherwise need a scan of all rows; return the digest."""
    n_entities, n_mentions, n_forms = (
        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - constant names
        for table in ("entity", "mention", "form")
    )
    if not n_entities:
        raise InputError("entities: none; a knowledge base needs at least one")
    (indexed,) = db.execute("SELECT EXISTS (SELECT 1 FROM trigram)").fetchone()
    facts: dict[str, Any] = {"id_space": id_space, "has_priors": int(has_priors), "n_entities": n_entities}
    facts |= {"n_aliases": n_mentions, "n_forms": n_forms, "has_trigrams": indexed}
    facts["digest"] = digest_of(db, facts)
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(key, str(value)) for key, value in facts.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    return str(facts["digest"])


def _sync_and_rename(new: Path, path: Path) -> None:
    with new.open("rb+") as file:
        os.fsync(file.fileno())
    if path.exists():
        # Keep the permissions that the owner has set.
        new.chmod(stat.S_IMODE(path.stat().st_mode))
    new.replace(path)
