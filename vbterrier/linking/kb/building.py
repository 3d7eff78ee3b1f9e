"""Building a knowledge base: a new file beside the old one, which it replaces once it is complete."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, printable
from vbterrier.linking.kb.connection import is_foreign
from vbterrier.linking.kb.digest import digest_of
from vbterrier.linking.kb.finishing import steps
from vbterrier.linking.kb.schema import APPLICATION_ID, FORMAT, TABLES, run
from vbterrier.linking.kb.staging import Staging, fault_of
from vbterrier.parallel import bars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.linking.kb.staging import Blame

    StrPath = str | os.PathLike[str]

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
    return bars.bar(records, what, shown=shown, unit=unit, delay=2)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """A folder of its own on the disk of the file to be."""
    if path.is_dir():
        raise FileError(path, "is a folder; wanted the name of a file to write")
    if is_foreign(path):
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
        warnings.warn(f"{path.name}: left out {told}", DegenerateWarning, stacklevel=5)


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
