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
    from vbterrier.linking.kb.staging import Blame


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


# Sums of priors that are off by no more are rounding.
_TOLERANCE = 1e-6

# The same alias of the same id twice says it once; of two ids that redirect to one it adds up.
_PAIRS = """
CREATE TABLE staged.pair AS
SELECT m.place AS mention, e.place AS entity, a.prior AS prior
FROM (
  SELECT text, id, sum(prior) AS prior FROM (
    SELECT text, id, max(prior) AS prior FROM staged.alias GROUP BY text, id, origin
  ) GROUP BY text, id
) AS a JOIN mention AS m ON m.text = a.text JOIN entity AS e ON e.id = a.id
"""

# Of each mention: its entities, how many of them have a prior, the sum of the priors.
_TOTALS = """
CREATE TABLE staged.total(mention INTEGER PRIMARY KEY, n INTEGER, n_given INTEGER, given REAL);
INSERT INTO staged.total
SELECT mention, count(*), count(prior), total(prior) FROM staged.pair GROUP BY mention ORDER BY mention;
"""

# p(e|m): the prior by the sum of the priors; those without one share evenly what the others leave of 1.
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

# p(e|form) = Σ_m w_m p(e|m) / Σ_m w_m over the mentions m of the form; 1/n where there are no priors at all, as
# linkers that are given the aliases have it. The mention that gives an entity most of it stands for it.
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


def steps(db: sqlite3.Connection, staging: Staging) -> Iterator[Callable[[], object]]:
    """What is to be done, one after another."""
    yield lambda: _require_consistent(db, staging)
    yield lambda: run(db, "ALTER TABLE staged.alias ADD COLUMN origin TEXT; UPDATE staged.alias SET origin = id")
    yield lambda: settle_redirects(db, staging)
    yield lambda: _entities(db)
    yield lambda: _mentions(db)
    yield lambda: db.execute(_PAIRS)
    yield lambda: run(db, _TOTALS)
    yield lambda: db.execute(_MENTION_SENSES)
    yield lambda: _warn_of_priors(db)
    yield lambda: db.execute(_FORM_SENSES)
    yield lambda: _attributes(db)
    yield lambda: _trigrams(db)


def _require_consistent(db: sqlite3.Connection, staging: Staging) -> None:
    """Refuse an id with two labels, an alias with two priors for one entity."""
    if not staging.is_strict:
        return
    twice = db.execute(
        "SELECT id, min(name), max(name), max(row) FROM staged.entity WHERE name <> '' "
        "GROUP BY id HAVING min(name) <> max(name) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        entity, one, other, row = twice
        raise staging.blame(
            row, f"id {shown(entity)} has the labels {shown(one)} and {shown(other)}; one is an alias, or another id"
        )
    twice = db.execute(
        "SELECT text, id, min(prior), max(prior), max(row) FROM staged.alias "
        "GROUP BY text, id HAVING min(prior) <> max(prior) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        text, entity, low, high, row = twice
        raise staging.blame(
            row, f"alias {shown(text)} of {shown(entity)} has the priors {low:g} and {high:g}; keep one"
        )


def _entities(db: sqlite3.Connection) -> None:
    """Number the entities by id; the first name that an id has is its name."""
    db.execute(
        "INSERT INTO entity(id, name) SELECT id, name FROM ("
        "  SELECT id, name, min(CASE WHEN name = '' THEN 9e18 ELSE row END) FROM staged.entity GROUP BY id"
        ") ORDER BY id"
    )
    db.execute("CREATE UNIQUE INDEX entity_id ON entity(id)")


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


def _attributes(db: sqlite3.Connection) -> None:
    """Take each value of an attribute once, in the order they came."""
    db.execute(
        "INSERT INTO attribute SELECT e.place, a.nth, a.name, a.value, a.type FROM ("
        "  SELECT id, name, value, type, min(rowid) AS nth FROM staged.attribute GROUP BY id, name, value, type"
        ") AS a JOIN entity AS e ON e.id = a.id ORDER BY 1, 2"
    )


def _warn_of_priors(db: sqlite3.Connection) -> None:
    n_off, low, high = db.execute(
        "SELECT count(*), min(given), max(given) FROM staged.total "
        "WHERE given > 0 AND (n_given = n OR given > 1) AND abs(given - 1) > ?",
        (_TOLERANCE,),
    ).fetchone()
    n_mixed = db.execute("SELECT count(*) FROM staged.total WHERE n_given BETWEEN 1 AND n - 1").fetchone()[0]
    n_zero = db.execute("SELECT count(*) FROM staged.total WHERE n_given = n AND given = 0").fetchone()[0]
    said = []
    if n_off:
        said.append(f"the priors of {n_off} aliases sum to {low:.4g} to {high:.4g}, not 1: divided by their sum")
    if n_mixed:
        said.append(
            f"of {n_mixed} aliases some entities have a prior and some have none: those share what is left of 1, if any"
        )
    if n_zero:
        said.append(f"the priors of {n_zero} aliases are all 0: their entities are taken as equally probable")
    if said:
        warn("; ".join(said))


def _trigrams(db: sqlite3.Connection) -> None:
    """Index the forms where there are too many to compare a mention with each."""
    n_forms = db.execute("SELECT count(*) FROM form").fetchone()[0]
    if n_forms <= COMPARED_AT_MOST:
        return
    fault = _no_trigrams()
    if fault:
        warn(
            f"{n_forms:,} names need an index of trigrams for fuzzy look-ups, which SQLite {sqlite3.sqlite_version} "
            f"cannot make ({fault}): the knowledge base is built without; build it with SQLite 3.34 or later"
        )
    else:
        run(db, _TRIGRAMS)


def _no_trigrams() -> str:
    """What SQLite says against an index of trigrams, tried where nothing can break; empty when it can."""
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            run(db, _TRIGRAMS.split(";", maxsplit=1)[0])
    except sqlite3.OperationalError as error:
        return str(error)
    return ""


# Nobody sees the file before it is complete and on the disk: no journal, no waiting in between.
_LOG = logging.getLogger(__name__)
_HASTE = """
PRAGMA main.journal_mode = OFF;
PRAGMA main.synchronous = OFF;
PRAGMA main.cache_size = -32768;
PRAGMA staged.journal_mode = OFF;
PRAGMA staged.synchronous = OFF;
"""


@contextmanager
def building(
    path: StrPath, id_space: str, blame: Blame, *, is_strict: bool = True, progress: bool = True
) -> Iterator[Staging]:
    """Stage entities within, then finish the knowledge base and put it in place.

    Parameters
    ----------
    path
        The file; one that exists stays as it is until the new one is complete, and for those who have it open.
    id_space
        What its ids count in.
    blame
        Makes the error of a record.
    is_strict
        See :class:`~vbterrier.linking.kb.staging.Staging`.
    progress
        Whether steps that take long show a bar, on a terminal.

    Raises
    ------
    FileError
        The file cannot be written.
    InputError
        Nothing was staged, or entities that contradict each other.
    """
    path = Path(path)
    fault = fault_of(id_space)
    if fault:
        raise ParameterError(
            f"id_space={id_space!r}: {fault}; say what the ids count in, as 'wikidata' or a name of yours"
        )
    started = time.perf_counter()
    with _folder_beside(path) as folder:
        try:
            with closing(sqlite3.connect(folder / "kb.sqlite", isolation_level=None)) as db:
                db.execute("ATTACH ? AS staged", (str(folder / "staged.sqlite"),))
                run(db, _HASTE + "BEGIN;" + TABLES)
                staging = Staging(db, blame, is_strict=is_strict)
                yield staging
                staging.flush()
                for step in bar(list(steps(db, staging)), "ordering", "step", shown=progress):
                    step()
                _mark(db, id_space)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise FileError(path, f"cannot be written ({error}): is there room on the disk?") from error
        _say_what_was_left_out(path, staging)
        _put(folder / "kb.sqlite", path)
    _LOG.info("built the knowledge base %s (%.2f s)", printable(path), time.perf_counter() - started)


def bar(records: Iterable[Any], what: str, unit: str, *, shown: bool) -> Any:
    """The records, with a bar of progress on a terminal once they take a while."""
    return log.bar(records, what, shown=shown, unit=unit, delay=2)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """A folder of its own on the disk of the file to be."""
    if path.is_dir():
        raise FileError(path, "is a folder; wanted the name of a file to write")
    if is_external(path):
        # A mix-up of source and target would cost the source.
        raise FileError(path, "exists and is no knowledge base, so it is not replaced; name another file, or delete it")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", dir=path.parent))
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mark(db: sqlite3.Connection, id_space: str) -> None:
    """Say what the file is; counts are kept because counting would read all of it."""
    n_entities, n_mentions, n_forms = (
        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - own words
        for table in ("entity", "mention", "form")
    )
    if not n_entities:
        raise InputError("entities: none; a knowledge base holds at least one")
    given, indexed = (
        db.execute(f"SELECT EXISTS (SELECT 1 FROM {what})").fetchone()[0]  # noqa: S608 - own words
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


def _say_what_was_left_out(path: Path, staging: Staging) -> None:
    if staging.left_out:
        told = "; ".join(f"{n:,} {what}" for what, n in sorted(staging.left_out.items()))
        warn(f"{path.name}: left out {told}")


def _put(new: Path, path: Path) -> None:
    """Bring a file to the disk for good, then under its name."""
    try:
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            # Who may read it is for its owner to say.
            new.chmod(stat.S_IMODE(path.stat().st_mode))
        new.replace(path)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error
