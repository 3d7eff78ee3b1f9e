"""Finished parts of a run that is read in chunks, kept so that who is interrupted goes on where he was."""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import DegenerateWarning, FileError
from vbterrier.evaluate.journal import Journal
from vbterrier.evaluate.prints import rows_print
from vbterrier.evaluate.topicwise import Part, Work, values_of
from vbterrier.frames.files.writing import replacing
from vbterrier.frames.named import named
from vbterrier.frames.ranked import Run, warn_of_ties
from vbterrier.frames.topics import run_places
from vbterrier.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import ir_measures

    from vbterrier.frames.files.blocks import Place
    from vbterrier.measures.scoring import Slot

_SAMPLE = 1 << 16
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
        return [
            (name, topic, str(measure), value)
            for measure in at_once
            for part in _in_order(self.values[str(measure)], empty.get(str(measure), {}), turn, measure)
            for topic, value in part
        ]


def _in_order(
    found: dict[str, float], empty: dict[str, float], turn: dict[str, int], measure: ir_measures.Measure
) -> Iterator[list[tuple[str, float]]]:
    """Topics and values: of our measures in the order of the slot, of others by name, topics without a list last."""
    if isinstance(measure, Measure):
        every = {**found, **empty}
        yield [(topic, every[topic]) for topic in turn if topic in every]
    else:
        yield from ([(topic, part[topic]) for topic in sorted(part) if topic in turn] for part in (found, empty))


class Pieces:
    """Finished parts in a folder: rows in a file each, all else in a journal, which a part counts from."""

    def __init__(self, folder: Path, work: Work, inputs: str) -> None:
        self.folder, self.work = folder, work
        (folder / "kept").mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / "journal.jsonl", inputs, "runs, judgments, intents, tags, measures or version")

    @property
    def by_place(self) -> list[dict[str, Any]]:
        """The parts that were read as they stand."""
        return [result for key, result in self.journal.done.items() if key.startswith("place ")]

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts that count."""
        if "apart" not in self.journal.done:
            return self.by_place
        return [result for key, result in self.journal.done.items() if key.startswith("topics ")]

    def add(self, key: str, table: Any, behind: Place | None = None) -> None:
        """Work on a chunk and write down what it comes to."""
        part: Part = self.work(table)
        for pool in _POOLS:
            pool.release_unused()
        file = f"{key.translate(_TO_NAME)}.arrow"
        with replacing(self.folder / "kept" / file) as stream, pa.ipc.new_file(stream, part.kept.schema) as writer:
            writer.write_table(part.kept)
        result = {key: value for key, value in vars(part).items() if key != "kept"}
        self.journal.add(key, {**result, "file": file, "behind": behind and asdict(behind)})

    def kept(self, result: dict[str, Any]) -> Any:
        """The rows of a part."""
        with pa.OSFile(str(self.folder / "kept" / result["file"])) as file:
            return pa.ipc.open_file(file).read_all()

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


def _empty(name: str) -> Run:
    return Run(pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object), name=name)


@contextmanager
def opened(folder: Path | None) -> Iterator[Path]:
    """A folder that stays, or one that goes."""
    if folder is None:
        with TemporaryDirectory(prefix="vbterrier-") as made:
            yield Path(made)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror or error}; resume= wants a folder") from error
    yield folder


@contextmanager
def memory_returned() -> Iterator[None]:
    """Let Arrow take memory from the system: its own pool keeps what was freed, and each chunk comes on top."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(_POOLS[0])
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def inputs_of(paths: Sequence[Path], work: Work) -> str:
    """What tells inputs from others: files by size, time and samples, judgments, measures and version."""
    plan, slot = work.plan, work.slot
    frames = [slot.frame, slot.intents, slot.tags] if plan.at_once else []
    for measure in plan.at_once:
        frames += [named(kind, given) for kind in ("intents", "tags") if (given := measure.params.get(kind))]
    parts = [
        # The package itself stands above all floors, and is there when this is called.
        sys.modules["vbterrier"].__version__,
        *(repr((work.name, work.duplicates, plan.depth)), *map(repr, plan.at_once)),
        *map(_file_print, paths),
        *(_frame_print(frame) for frame in frames if frame is not None),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _file_print(path: Path) -> str:
    try:
        about = path.stat()
        with path.open("rb") as file:
            made = hashlib.blake2b(digest_size=16)
            for start in (0, about.st_size // 2, max(about.st_size - _SAMPLE, 0)):
                file.seek(start)
                made.update(file.read(_SAMPLE))
    except OSError:
        # Reading it says what is wrong.
        return str(path)
    return f"{about.st_size} {about.st_mtime_ns} {made.hexdigest()}"


def _frame_print(frame: pd.DataFrame) -> str:
    columns = sorted(map(str, frame.columns))
    return " ".join(columns) + rows_print([pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()])
