"""Finished parts of a run that is read in chunks, kept so that who is interrupted goes on where he was."""

from __future__ import annotations

import re
import warnings
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.elsewhere import register, registered_sets
from vbterrier.evaluate.finished import JOURNAL, part_of, require_folder, rows_of
from vbterrier.evaluate.journal import Journal
from vbterrier.evaluate.topicwise import Part, Work, values_of
from vbterrier.frames.files.writing import kept_in, replacing
from vbterrier.frames.ranked import Run, warn_of_ties
from vbterrier.frames.topics import run_places
from vbterrier.measures import Measure
from vbterrier.measures.engines import judges_once
from vbterrier.measures.ndcg import is_plain
from vbterrier.parallel import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import ir_measures

    from vbterrier.frames.files.blocks import Place
    from vbterrier.measures.scoring import Slot
    from vbterrier.parallel import Workers

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

    def rows(self, name: str, slot: Slot) -> list[tuple[str, str, str, float]]:
        """Rows of V of the measures that were evaluated at once, for all topics of a slot."""
        at_once, wanted = self.work.plan.at_once, set(slot.topics)
        if not at_once:
            return []
        if not self.work.plan.last:
            run_places(self.run, slot.topics, slot.qid, "qrels")
        missing = wanted.difference(self.run.topics)
        with warnings.catch_warnings():
            # That nothing is retrieved is counted, and no news.
            warnings.simplefilter("ignore", DegenerateWarning)
            empty = values_of(at_once, slot, _empty(self.run.name), missing) if missing else {}
        # In the order in which they come from runs in memory, so that sums over topics are the same to the last digit.
        turn = {topic: place for place, topic in enumerate(slot.topics)}
        once = judges_once(slot)

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
    """Topics and values: of what we compute in the order of the slot, of others by name, topics without a list last."""
    if is_ours:
        every = {**found, **empty}
        yield [(topic, every[topic]) for topic in turn if topic in every]
    else:
        yield from ([(topic, part[topic]) for topic in sorted(part) if topic in turn] for part in (found, empty))


@dataclass(frozen=True, eq=False)
class Piece:
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


class Pieces:
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

    def add_all(self, pieces: Iterable[Piece]) -> None:
        """Let workers work on pieces, and write down what each comes to, in their order."""
        sent: deque[Piece] = deque()

        def tables() -> Iterator[Any]:
            for piece in pieces:
                sent.append(replace(piece, table=None))
                yield piece.table

        if not self.workers.are_elsewhere:
            for part in map(_worked(self.work), tables()):
                self._add(sent.popleft(), part)
            return
        with Shared((self.work, registered_sets(self.work.plan.at_once))) as shared:
            packed = map(_packed, tables())
            for part in self.workers.mapped(partial(_worked_elsewhere, shared), packed, room=self.room):
                self._add(sent.popleft(), part)

    def _add(self, piece: Piece, part: Part) -> None:
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
            warnings.warn(
                f"{name}: {n_dropped} repeated documents dropped, each at its lower rank", DegenerateWarning, 4
            )
        # Parts are warned of the same things in other numbers.
        told: dict[str, list[str]] = {}
        for message in (message for part in parts for message in part["told"]):
            told.setdefault(_NUMBER.sub("", message), []).append(message)
        for messages in told.values():
            more = f" (and {len(messages) - 1} more parts of the run)" if len(messages) > 1 else ""
            warnings.warn(messages[0] + more, DegenerateWarning, stacklevel=4)
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
