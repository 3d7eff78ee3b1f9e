"""Finished parts of a long evaluation, kept in a folder so that it resumes."""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import DegenerateWarning, FileError, InputError, printable, warn
from vbterrier.execution.chunks import Part, Work, register, registered_sets, values_of
from vbterrier.execution.pending import Shared
from vbterrier.frames.files.writing import kept_in, replacing
from vbterrier.frames.ranking import Run, run_places, warn_of_ties
from vbterrier.measures.base import Measure
from vbterrier.measures.external import is_plain, judges_once

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import ir_measures

    from vbterrier.execution.parallel import Workers
    from vbterrier.frames.files.blocks import Place
    from vbterrier.measures.target import EvaluationTarget


_LOG = logging.getLogger(__name__)


@contextmanager
def opened(folder: Path | None) -> Iterator[Path]:
    """A folder that stays, which nobody else writes to meanwhile, or one that goes.

    Raises
    ------
    FileError
        It cannot be made, or is in use.
    """
    if folder is None:
        with _temporary() as made:
            yield Path(made)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror or error}; resume= wants a folder") from error
    with _alone(folder):
        yield folder


def _temporary() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="vbterrier-")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"temporary files cannot be made ({reason}): let TMPDIR name a folder with room, or use resume="
        ) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a folder from other processes, which would write other parts under the same names. A kill lets it go."""
    try:
        import fcntl

        file = (folder / "lock").open("ab")
    except (ImportError, OSError):
        # Windows; or a folder that nobody can write to.
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "is in use by another call: wait until it ends, or name another folder for resume="
            raise FileError(folder, message) from error
        except OSError:
            # A file system without locks.
            _LOG.debug("%s: no lock", printable(folder))
        yield


FORMAT = "vbterrier journal 1"
_OF_GRIDS = "pool, links, entity runs, vectors, texts, judgments or measures"


class Journal:
    """A file of results by name, a line each, that belongs to certain inputs.

    Parameters
    ----------
    path
        The file, made where it is missing; ``None`` to keep results in memory alone.
    inputs
        What tells these inputs from others, whatever makes it.
    kinds
        What belongs to the inputs, as messages name it.

    Attributes
    ----------
    done : dict
        The results that there are, by name.

    Raises
    ------
    FileError
        The file cannot be opened or made; it holds something else, or results of other inputs.

    Notes
    -----
    A last line that was cut off in the middle is taken off the file. A result that stands twice counts once.
    """

    def __init__(self, path: str | os.PathLike[str] | None, inputs: str, kinds: str = _OF_GRIDS) -> None:
        self._kinds = kinds
        self._path = None if path is None else Path(path)
        self._head = json.dumps({"format": FORMAT, "inputs": inputs})
        self.done: dict[str, Any] = {}
        if self._path is not None:
            try:
                self._open(self._path)
            except OSError as error:
                raise FileError(self._path, f"cannot be opened: {error.strerror or error}") from error

    def _open(self, path: Path) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        if not whole:
            if not f"{self._head}\n".encode().startswith(text):
                raise FileError(path, f"wanted a {FORMAT}, found something else; give another path")
            path.write_text(f"{self._head}\n", encoding="utf-8")
            return
        lines = whole.decode("utf-8", errors="replace").splitlines()
        self._check(path, lines[0])
        for number, line in enumerate(lines[1:], 2):
            name, result = self._entry(path, number, line)
            self.done[name] = result
        _LOG.info("%s: %d results are there", printable(path), len(self.done))
        if len(whole) < len(text):
            with path.open("r+b") as file:
                file.truncate(len(whole))

    @staticmethod
    def _entry(path: Path, number: int, line: str) -> tuple[str, Any]:
        try:
            entry = json.loads(line)
            return str(entry["name"]), entry["result"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FileError(path, f"no result ({error}); repair or remove the line", line=number) from error

    def _check(self, path: Path, line: str) -> None:
        try:
            head = json.loads(line)
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise FileError(path, f"wanted a {FORMAT}, found something else; give another path", line=1)
        if head != json.loads(self._head):
            raise FileError(
                path,
                f"holds results of other inputs ({self._kinds}); give another path, or remove the file",
                line=1,
            )

    def add(self, name: str, result: Any) -> None:
        """Write down a result before it counts as done.

        Raises
        ------
        FileError
            It cannot be written down.
        """
        if self._path is not None:
            with kept_in(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": name, "result": result}) + "\n")
            _LOG.debug("%s: %s is done", printable(self._path), printable(name))
        self.done[name] = result


JOURNAL = "journal.jsonl"
_PLACE = ("file", "offset", "row")
_KEYS = ("qid", "docno", "score")


def require_folder(folder: Path) -> None:
    """Refuse a folder that leads elsewhere, where files would be written and removed.

    Raises
    ------
    FileError
    """
    for name in ("kept", "topics"):
        if (folder / name).is_symlink():
            raise FileError(folder / name, "is a link; wanted a folder of its own: name another for resume=")


def part_of(result: Any, measures: Sequence[str], folder: Path) -> dict[str, Any]:
    """A finished part, if it is one.

    Parameters
    ----------
    result
        What a journal holds of it.
    measures
        Those whose values it must have.
    folder
        Where the journal stands.

    Raises
    ------
    FileError
        Something else, or files that are not of this folder.
    """
    if not isinstance(result, dict) or not _is_part(result, measures):
        raise _not_ours(folder, "a part")
    _require_plain(result["file"], folder)
    return result


def split_of(result: Any, folder: Path) -> dict[str, int]:
    """How many topics stand in each of the files that rows were parted into.

    Raises
    ------
    FileError
        As :func:`part_of`.
    """
    if not isinstance(result, dict) or not all(map(_is_count, result.values())):
        raise _not_ours(folder, "files that rows were parted into")
    for name in result:
        _require_plain(name, folder)
    return result


def length_of(result: Any, folder: Path) -> int:
    """The length of the longest list.

    Raises
    ------
    FileError
        As :func:`part_of`.
    """
    if not _is_count(result):
        raise _not_ours(folder, "a length")
    return int(result)


def rows_of(path: Path) -> Any:
    """The rows of a finished part.

    Raises
    ------
    FileError
        The file is gone, damaged or of something else.
    """
    try:
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise FileError(path, f"cannot be read ({error}); remove the folder, and call again") from error
    kinds = [table.schema.field(name).type for name in _KEYS if name in table.column_names]
    if kinds != [pa.large_string(), pa.large_string(), pa.float64()]:
        raise FileError(path, "holds no rows of a run; remove the folder, and call again")
    return table


def _is_part(result: dict[str, Any], measures: Sequence[str]) -> bool:
    values, tied, told, behind = (result.get(key) for key in ("values", "tied", "told", "behind"))
    return (
        isinstance(values, dict)
        and all(isinstance(values.get(measure), dict) for measure in measures)
        and all(isinstance(value, (int, float)) for measure in measures for value in values[measure].values())
        and _is_count(result.get("n_dropped"))
        and (
            tied is None or (isinstance(tied, (list, tuple)) and len(tied) == len(_PLACE) and all(map(_is_count, tied)))
        )
        and isinstance(told, list)
        and all(isinstance(message, str) for message in told)
        and (behind is None or _is_place(behind))
    )


def _is_place(behind: Any) -> bool:
    return isinstance(behind, dict) and set(behind) == set(_PLACE) and all(map(_is_count, behind.values()))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require_plain(name: Any, folder: Path) -> None:
    if not isinstance(name, str) or name in {"", "..", "."} or "\\" in name or "\0" in name or Path(name).name != name:
        raise FileError(
            folder / JOURNAL,
            f"names the file {printable(name)!r}, wanted a file of this folder: remove the folder, and call again",
        )


def _not_ours(folder: Path, what: str) -> FileError:
    return FileError(folder / JOURNAL, f"holds something else in place of {what}; remove the folder, and call again")


# The second is Arrow's own, which parts of it use whatever they are told.
_POOLS = (pa.system_memory_pool(), pa.default_memory_pool())
_NUMBER = re.compile(r"\d+")
_TO_NAME = str.maketrans({" ": "-", "/": "-", ".": "-"})


@dataclass(frozen=True, eq=False)
class Streamed:
    """What a run comes to.

    Parameters
    ----------
    run
        The first rows of all its topics.
    work
        What was asked for.
    values
        By measure and topic, of measures that were evaluated at once.
    """

    run: Run
    work: Work
    values: dict[str, dict[str, float]]

    def rows(self, name: str, target: EvaluationTarget) -> list[tuple[str, str, str, float]]:
        """Rows of V of the measures that were evaluated at once, for all topics of a target."""
        at_once, wanted = self.work.plan.at_once, set(target.topics)
        if not at_once:
            return []
        if not self.work.plan.last:
            run_places(self.run, target.topics, target.qid, "qrels")
        missing = wanted.difference(self.run.topics)
        with warnings.catch_warnings():
            # That nothing is retrieved is counted, and no news.
            warnings.simplefilter("ignore", DegenerateWarning)
            empty = values_of(at_once, target, _empty(self.run.name), missing) if missing else {}
        # In the order in which they come from runs in memory, so that sums over topics are the same to the last digit.
        turn = {topic: place for place, topic in enumerate(target.topics)}
        once = judges_once(target)

        def is_ours(measure: ir_measures.Measure) -> bool:
            return isinstance(measure, Measure) or (once and is_plain(measure))

        return [
            (name, topic, str(measure), value)
            for measure in at_once
            for part in _in_order(self.values[str(measure)], empty.get(str(measure), {}), turn, is_ours(measure))
            for topic, value in part
        ]


def _in_order(
    found: dict[str, float],
    empty: dict[str, float],
    turn: dict[str, int],
    is_ours: bool,  # noqa: FBT001 - what is said of the measure
) -> Iterator[list[tuple[str, float]]]:
    """Topics and values: of what we compute in the order of the target, of others by name, topics without a list last."""
    if is_ours:
        every = {**found, **empty}
        yield [(topic, every[topic]) for topic in turn if topic in every]
    else:
        yield from ([(topic, part[topic]) for topic in sorted(part) if topic in turn] for part in (found, empty))


@dataclass(frozen=True, eq=False)
class PendingChunk:
    """Whole topics of a run, to work on.

    Parameters
    ----------
    key
        What the journal calls it.
    table
        Its rows.
    behind
        Where the next one begins, of a run that is read as it stands.
    file
        What is not needed any more when it is done.
    """

    key: str
    table: Any
    behind: Place | None = None
    file: Path | None = None


class Checkpoint:
    """Finished parts in a folder: rows in a file each, all else in a journal, which a part counts from."""

    def __init__(self, folder: Path, work: Work, inputs: str, workers: Workers, room: int) -> None:
        self.folder, self.work, self.workers, self.room = folder, work, workers, room
        require_folder(folder)
        with kept_in(folder):
            (folder / "kept").mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / JOURNAL, inputs, "runs, judgments, intents, tags, measures or version")

    def _finished(self, kind: str) -> list[dict[str, Any]]:
        asked = list(map(str, self.work.plan.at_once))
        every = self.journal.done.items()
        return [part_of(result, asked, self.folder) for key, result in every if key.startswith(kind)]

    @property
    def by_place(self) -> list[dict[str, Any]]:
        """The parts that were read as they stand."""
        return self._finished("place ")

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts that count."""
        return self._finished("place " if "apart" not in self.journal.done else "topics ")

    def add_all(self, checkpoint: Iterable[PendingChunk]) -> None:
        """Let workers work on checkpoint, and write down what each comes to, in their order."""
        sent: deque[PendingChunk] = deque()

        def tables() -> Iterator[Any]:
            for piece in checkpoint:
                sent.append(replace(piece, table=None))
                yield piece.table

        if not self.workers.are_processes:
            for part in map(_worked(self.work), tables()):
                self._add(sent.popleft(), part)
            return
        with Shared((self.work, registered_sets(self.work.plan.at_once))) as shared:
            packed = map(_packed, tables())
            for part in self.workers.mapped(partial(_worked_elsewhere, shared), packed, room=self.room):
                self._add(sent.popleft(), part)

    def _add(self, piece: PendingChunk, part: Part) -> None:
        file = f"{piece.key.translate(_TO_NAME)}.arrow"
        with replacing(self.folder / "kept" / file) as stream, pa.ipc.new_file(stream, part.kept.schema) as writer:
            writer.write_table(part.kept)
        result = {key: value for key, value in vars(part).items() if key != "kept"}
        self.journal.add(piece.key, {**result, "file": file, "behind": piece.behind and asdict(piece.behind)})
        if piece.file is not None:
            piece.file.unlink(missing_ok=True)

    def kept(self, result: dict[str, Any]) -> Any:
        """The rows of a part."""
        return rows_of(self.folder / "kept" / result["file"])

    def streamed(self) -> Streamed:
        """All parts together."""
        parts = self.parts
        tables = [self.kept(part) for part in parts]
        run = Run(pa.concat_tables(tables).to_pandas(), name=self.work.name) if tables else _empty(self.work.name)
        values: dict[str, dict[str, float]] = {str(measure): {} for measure in self.work.plan.at_once}
        for part in parts:
            for measure, found in part["values"].items():
                values[measure].update(found)
        self._tell(parts)
        return Streamed(run, self.work, values)

    def _tell(self, parts: list[dict[str, Any]]) -> None:
        """Warn of the run what its parts were warned of."""
        name, n_dropped = self.work.name, sum(part["n_dropped"] for part in parts)
        if n_dropped:
            warn(f"{name}: {n_dropped} repeated documents dropped, each at its lower rank")
        # Parts are warned of the same things in other numbers.
        told: dict[str, list[str]] = {}
        for message in (message for part in parts for message in part["told"]):
            told.setdefault(_NUMBER.sub("", message), []).append(message)
        for messages in told.values():
            more = f" (and {len(messages) - 1} more parts of the run)" if len(messages) > 1 else ""
            warn(messages[0] + more)
        ties = [part["tied"] for part in parts if part["tied"]]
        if ties:
            n_tied, n_places, depths = zip(*ties, strict=True)
            warn_of_ties(name, sum(n_tied) / max(sum(n_places), 1), max(depths))


def _worked(work: Work) -> Callable[[Any], Part]:
    """Work that leaves no memory with Arrow."""

    def done(table: Any) -> Part:
        part = work(table)
        for pool in _POOLS:
            pool.release_unused()
        return part

    return done


def _worked_elsewhere(shared: Shared, packed: bytes) -> Part:
    """By a worker."""
    work, sets = shared.value
    register(sets)
    with memory_returned():
        return _worked(work)(pa.ipc.open_stream(packed).read_all())


def _packed(table: Any) -> bytes:
    """The rows of a table alone: a pickle holds all of which it is a slice."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _empty(name: str) -> Run:
    return Run(pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object), name=name)


@contextmanager
def memory_returned() -> Iterator[None]:
    """Let Arrow take memory from the system: its own pool keeps what was freed, and each chunk comes on top."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(_POOLS[0])
    try:
        yield
    finally:
        pa.set_memory_pool(usual)
