"""Checkpoints of long evaluations, and fingerprints of their inputs."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier._version import __version__
from vbterrier.errors import FileError, InputError, path_parameter, printable, unheard, warn
from vbterrier.execution.chunks import Part, Work, register, registered_sets, topic_values
from vbterrier.execution.pending import Shared
from vbterrier.frames.files.source import content_digest, parse_json, require_regular
from vbterrier.frames.files.writing import kept_in, lock, replacing
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import Run, run_places, warn_of_ties
from vbterrier.kernels.fingerprints import mix
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.execution.parallel import Workers
    from vbterrier.frames.files.blocks import Place
    from vbterrier.measures.target import EvaluationTarget


def rows_fingerprint(columns: Iterable[NDArray[Any]]) -> str:
    """Return a short digest of a table, given as columns of 64-bit numbers; the order of rows does not matter."""
    key = np.zeros(1, dtype=np.uint64)
    for column in columns:
        key = mix(key + mix(np.ascontiguousarray(column).view(np.uint64) + np.uint64(1)))
    # Sums and parities do not depend on the order of rows.
    return f"{len(key)}-{int(key.sum(dtype=np.uint64)):016x}-{int(np.bitwise_xor.reduce(key)):016x}"


def inputs_digest(paths: Sequence[Path], work: Work) -> str:
    """Return a digest of the inputs: the content of files, judgments, measures and version."""
    plan, target = work.plan, work.target
    frames = [target.frame, target.intents, target.tags, target.subtopics] if plan.at_once else []
    for measure in plan.at_once:
        kinds = ("intents", "tags", "similarities")
        frames += [named_frame(kind, source) for kind in kinds if (source := measure.params.get(kind))]
    parts = [
        __version__,
        *(repr((work.name, work.duplicates, plan.depth)), *map(repr, plan.at_once)),
        *map(_content_digest, paths),
    ]
    for frame in frames:
        if frame is not None:
            columns = sorted(map(str, frame.columns))
            numbers = pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()
            parts.append(" ".join(columns) + rows_fingerprint([numbers]))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _content_digest(path: Path) -> str:
    try:
        return content_digest(path)
    except OSError:
        # Reading the file raises the error.
        return str(path)


_LOG = logging.getLogger(__name__)
FORMAT = "vbterrier journal 1"
_GRID_INPUTS = "pool, links, entity runs, vectors, texts, judgments or measures"
# Arrow uses the second pool in places even if another is set.
_POOLS = (pa.system_memory_pool(), pa.default_memory_pool())
# Chunks after which unused memory is released: the next chunk uses most of it again, and to get it anew from the system
# takes up to a third of the time.
_RELEASED_TOGETHER = 8
_NUMBER = re.compile(r"\d+")
_TO_NAME = str.maketrans({" ": "-", "/": "-", ".": "-"})


@contextmanager
def locked_folder(folder: Path | None) -> Iterator[Path]:
    """Open a folder and lock it against other processes; without a folder, open a temporary one."""
    if folder is None:
        try:
            temporary = TemporaryDirectory(prefix="vbterrier-")
        except OSError as error:
            raise InputError(
                f"temporary files cannot be made ({error.strerror or error}): set TMPDIR to a folder with free space, "
                "or use resume="
            ) from error
        with temporary as made:
            yield Path(made)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror or error}; resume= needs a folder") from error
    with _lock_folder(folder):
        yield folder


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, because two processes would write different parts under the same names."""
    try:
        file = (folder / "lock").open("ab")
    except OSError:
        # A read-only folder.
        yield
        return
    with file:
        try:
            lock(file, wait=False)
        except BlockingIOError as error:
            message = "is in use by another call: wait until it ends, or use another folder for resume="
            raise FileError(folder, message) from error
        yield


class Journal:
    """A file of named results, one per line, for one set of inputs; ``None`` as the path keeps results in memory only.

    ``inputs``: a digest of the inputs and the version. ``kinds``: the kinds of inputs, for messages. ``done``: the
    results by name; of two results of the same name, the last one counts. An incomplete last line is removed.
    """

    def __init__(self, path: str | os.PathLike[str] | None, inputs: str, kinds: str = _GRID_INPUTS) -> None:
        self._path = None if path is None else path_parameter("resume", path)
        self.done: dict[str, Any] = {}
        if self._path is not None:
            try:
                self._open(self._path, {"format": FORMAT, "inputs": inputs}, kinds)
            except OSError as error:
                raise FileError(self._path, f"cannot be opened: {error.strerror or error}") from error

    def _open(self, path: Path, head: dict[str, str], kinds: str) -> None:
        require_regular(path)
        # Another process may be writing a line, which would be taken for one of a killed process.
        with path.open("a+b") as file:
            lock(file)
            file.seek(0)
            self._read_results(file, path, head, kinds)

    def _read_results(self, file: IO[bytes], path: Path, head: dict[str, str], kinds: str) -> None:
        text = file.read()
        first = f"{json.dumps(head)}\n".encode()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole and first.startswith(text):
            file.truncate(0)
            file.write(first)
            return
        lines = whole.decode("utf-8", errors="replace").splitlines()
        try:
            header, *entries = [parse_json(line) for line in lines]
            done = {entry["name"]: entry["result"] for entry in entries}
            is_journal = header["format"] == FORMAT
        except (ValueError, KeyError, TypeError, RecursionError):
            is_journal = False
        if not is_journal:
            raise FileError(path, f"wanted a {FORMAT}, found something else; give another path")
        if header != head:
            raise FileError(path, f"holds results of other inputs ({kinds}); give another path, or remove the file")
        self.done = done
        _LOG.info("%s: %d results are finished", printable(path), len(self.done))
        file.truncate(len(whole))

    def add(self, name: str, result: Any) -> None:
        """Write a result to the file before it counts as done."""
        if self._path is not None:
            with kept_in(self._path), self._path.open("ab") as file:
                lock(file)
                file.write(f"{json.dumps({'name': name, 'result': result})}\n".encode())
            _LOG.debug("%s: %s is done", printable(self._path), printable(name))
        self.done[name] = result


@dataclass(frozen=True, eq=False)
class Streamed:
    """The result of streaming one run: the first rows of all its topics, and the evaluation of each chunk.

    ``values``: by measure and topic, for measures that are evaluated chunk by chunk.
    """

    run: Run
    work: Work
    values: dict[str, dict[str, float]]

    def rows(self, name: str, target: EvaluationTarget) -> list[tuple[str, str, str, float]]:
        """Rows of V of the measures that were evaluated chunk by chunk, for all topics of a target."""
        at_once = self.work.plan.at_once
        if not at_once:
            return []
        if not self.work.plan.last:
            run_places(self.run, target.topics, target.qid, "qrels")
        missing = set(target.topics).difference(self.run.topics)
        # Topics without retrieved documents are counted separately.
        with unheard():
            empty = topic_values(at_once, target, _empty(self.run.name), missing) if missing else {}
        topics = set(target.topics)
        rows: list[tuple[str, str, str, float]] = []
        for measure in at_once:
            text = str(measure)
            scored_topics, none = self.values[text], empty.get(text, {})
            # In the order of runs in memory, so that sums over topics agree to the last digit: topics of the target
            # for values computed in this package; sorted topics, those without documents last, for others.
            if isinstance(measure, Measure) or is_computed_here(measure):
                every = {**scored_topics, **none}
                ordered = [(topic, every[topic]) for topic in target.topics if topic in every]
            else:
                ordered = [
                    (topic, part[topic]) for part in (scored_topics, none) for topic in sorted(part) if topic in topics
                ]
            rows += [(name, topic, text, value) for topic, value in ordered]
        return rows


@dataclass(frozen=True, eq=False)
class PendingChunk:
    """The rows of whole topics of a run that are not evaluated yet, and their name in the journal.

    ``behind``: start of the next chunk, for a run that is read in the order of its files. ``file``: file to remove when
    the chunk is finished.
    """

    key: str
    table: Any
    behind: Place | None = None
    file: Path | None = None


class Checkpoint:
    """Finished parts in a folder: an Arrow file of rows for each part, all other results in a journal."""

    def __init__(self, folder: Path, work: Work, inputs: str, workers: Workers, max_bytes: int) -> None:
        self.folder, self.work, self.workers, self.max_bytes = folder, work, workers, max_bytes
        with kept_in(folder):
            (folder / "kept").mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / "journal.jsonl", inputs, "runs, judgments, intents, tags, measures or version")

    def finished_parts(self, kind: str) -> list[dict[str, Any]]:
        """Results of the parts of a kind: ``"place"`` for parts in file order, ``"topics"`` for parts by topic."""
        return [result for key, result in self.journal.done.items() if key.startswith(f"{kind} ")]

    def add_all(self, pending: Iterable[PendingChunk]) -> None:
        """Evaluate chunks on the workers and write the results in order."""
        sent: deque[PendingChunk] = deque()

        def tables() -> Iterator[Any]:
            for chunk in pending:
                sent.append(replace(chunk, table=None))
                yield chunk.table

        if not self.workers.are_processes:
            for part in map(_releasing_work(self.work), tables()):
                self.add(sent.popleft(), part)
            return
        with Shared((self.work, registered_sets(self.work.plan.at_once))) as shared:
            tables_packed = map(table_bytes, tables())
            for part in self.workers.map_items(partial(_on_worker, shared), tables_packed, max_bytes=self.max_bytes):
                self.add(sent.popleft(), part)

    def add(self, chunk: PendingChunk, part: Part) -> None:
        """Write the result of a chunk."""
        file = f"{chunk.key.translate(_TO_NAME)}.arrow"
        with replacing(self.folder / "kept" / file) as stream, pa.ipc.new_file(stream, part.kept.schema) as writer:
            writer.write_table(part.kept)
        result = {key: value for key, value in vars(part).items() if key != "kept"}
        self.journal.add(chunk.key, {**result, "file": file, "behind": chunk.behind and asdict(chunk.behind)})
        if chunk.file is not None:
            chunk.file.unlink(missing_ok=True)

    def read_rows(self, result: dict[str, Any]) -> Any:
        """The rows of a part; FileError if the file is missing or damaged."""
        path = self.folder / "kept" / result["file"]
        try:
            with pa.OSFile(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise FileError(path, f"cannot be read ({error}); remove the folder, and call again") from error
        return table

    def combined_result(self) -> Streamed:
        """The results of all parts."""
        parts = self._used_parts()
        tables = [self.read_rows(part) for part in parts]
        run = _empty(self.work.name)
        if tables:
            # Without combine_chunks, ids would be held twice: in chunks, and contiguously in the run.
            table = pa.concat_tables(tables).combine_chunks()
            tables.clear()
            # Duplicates were handled when the parts were read, down to the ranks that measures use.
            run = Run(table.to_pandas(), name=self.work.name, duplicates="error")
        self._warn(parts)
        return Streamed(run, self.work, self._merged_values(parts))

    def part(self, none: Any) -> Part:
        """The results of all parts as one part, with the rows of ``none`` if there are no parts."""
        parts = self._used_parts()
        kept = pa.concat_tables([self.read_rows(part) for part in parts]) if parts else none
        tied = [part["tied"] for part in parts if part["tied"]]
        n_tied, n_places, depths = zip(*tied, strict=True) if tied else ((0,), (0,), (0,))
        messages = [message for part in parts for message in part["messages"]]
        n_dropped = sum(part["n_dropped"] for part in parts)
        n_ties = (sum(n_tied), sum(n_places), max(depths)) if tied else None
        return Part(kept, self._merged_values(parts), n_dropped, n_ties, messages)

    def _merged_values(self, parts: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
        """The values of all parts, by measure and topic."""
        values: dict[str, dict[str, float]] = {str(measure): {} for measure in self.work.plan.at_once}
        for part in parts:
            for measure, topic_values_of_part in part["values"].items():
                values[measure].update(topic_values_of_part)
        return values

    def _used_parts(self) -> list[dict[str, Any]]:
        """The finished parts that count: of a run with topics apart, those by topic."""
        return [*([] if "apart" in self.journal.done else self.finished_parts("place")), *self.finished_parts("topics")]

    def _warn(self, parts: list[dict[str, Any]]) -> None:
        """Repeat the warnings of the parts for the whole run."""
        name, n_dropped = self.work.name, sum(part["n_dropped"] for part in parts)
        if n_dropped:
            warn(f"{name}: {n_dropped} repeated documents dropped, each at its lower rank")
        # Warnings of different parts differ in numbers only.
        alike: dict[str, list[str]] = {}
        for message in (message for part in parts for message in part["messages"]):
            alike.setdefault(_NUMBER.sub("", message), []).append(message)
        for messages in alike.values():
            more = f" (and {len(messages) - 1} more parts of the run)" if len(messages) > 1 else ""
            warn(messages[0] + more)
        ties = [part["tied"] for part in parts if part["tied"]]
        if ties:
            n_tied, n_places, depths = zip(*ties, strict=True)
            warn_of_ties(name, sum(n_tied) / max(sum(n_places), 1), max(depths))


def _releasing_work(work: Work) -> Callable[[Any], Part]:
    """Return the work followed by the release of Arrow's unused memory after some chunks."""
    number = count(1)

    def evaluate_chunk(table: Any) -> Part:
        part = work(table)
        if not next(number) % _RELEASED_TOGETHER:
            _release()
        return part

    return evaluate_chunk


def _release() -> None:
    for pool in _POOLS:
        pool.release_unused()


def _on_worker(shared: Shared, packed: bytes) -> Part:
    work, sets = shared.value
    register(sets)
    with memory_returned():
        part: Part = work(pa.ipc.open_stream(packed).read_all())
        _release()
        return part


def table_bytes(table: Any) -> bytes:
    """The rows of a table as bytes; a pickle would hold the whole table of which it is a slice."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _empty(name: str) -> Run:
    return Run(pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object), name=name)


@contextmanager
def memory_returned() -> Iterator[None]:
    """Let Arrow allocate from the system; its default pool keeps freed memory, to which each chunk would add."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(_POOLS[0])
    try:
        yield
    finally:
        pa.set_memory_pool(usual)
