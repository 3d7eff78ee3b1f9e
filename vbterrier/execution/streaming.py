"""Evaluation of runs in chunks of whole topics, which bound the memory of a process."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, ParameterError, heard, printable, unheard, warn
from vbterrier.execution.checkpoint import (
    Checkpoint,
    PendingChunk,
    Streamed,
    inputs_digest,
    locked_folder,
    memory_returned,
    table_bytes,
)
from vbterrier.execution.chunks import MAX_KEPT_CUTOFF, Part, Work, register, registered_sets
from vbterrier.execution.parallel import Workers
from vbterrier.execution.pending import Shared
from vbterrier.frames.files.blocks import (
    Place,
    RunBlock,
    SystemColumns,
    SystemsError,
    amount,
    blocks,
    chunks,
    part_blocks,
    partition,
    qids,
    require_alike,
    require_size,
    split_by_system,
)
from vbterrier.frames.files.parts import independent_parts, is_in_files, is_parts, run_files
from vbterrier.frames.files.writing import kept_in, replacing
from vbterrier.frames.ranking import Run
from vbterrier.frames.systems import ONE, named_once
from vbterrier.log import tracked_items
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    Row = tuple[str, str, str, float]
    T = TypeVar("T")
    R = TypeVar("R")


_LOG = logging.getLogger(__name__)
MEMORY = 2**30
# Checking, sorting and evaluating a block takes several times its bytes.
_PER_BLOCK, _PER_TOPIC = 32, 16
# Chunks sent to workers take additional memory: two blocks for each worker.
_IN_TRANSIT, _PER_WORKER = 8, 16
LEAST_BLOCK = 1 << 18
# A buffer of the block size is allocated for every file, however small; larger blocks save no time.
_MOST_BLOCK = 1 << 28
_MOST_PARTS = 256


class _ApartError(Exception):
    """The rows of a topic are not contiguous."""


def streamed_runs(
    named_runs: Iterable[tuple[str, Any]],
    work: Work,
    memory: int | str | None,
    resume: str | os.PathLike[str] | None,
    workers: Workers,
    *,
    system: str | None = None,
    progress: bool = False,
) -> tuple[dict[str, Run], dict[str, Streamed]]:
    """Return runs by name, and the results of runs in files, which are evaluated while they are read."""
    n_bytes = amount("memory", MEMORY if memory is None else memory)
    loaded: dict[str, Any] = {}
    results: dict[str, Streamed] = {}
    for name, run in named_runs:
        if not is_in_files(run):
            loaded = named_once([*loaded.items(), (name, Run(run, name=f"run {name!r}", duplicates=work.duplicates))])
            continue
        how: dict[str, Any] = {"memory": n_bytes, "system": system, "resume": resume, "progress": progress}
        by_parts = _streamed_parts(name, run, work, workers, **how)
        if by_parts is not None:
            loaded = named_once([*loaded.items(), (name, by_parts.run)])
            results[name] = by_parts
            continue
        with run_files(name, run, system) as files:
            for system_name, result in streamed_systems(name, files, work, workers, **how):
                loaded = named_once([*loaded.items(), (system_name, result.run)])
                results[system_name] = result
                if not result.run.topics:
                    raise FileError(files[0], "has no rows; wanted a ranking: was the file written to its end?")
    return loaded, results


@dataclass(frozen=True, eq=False)
class _PartSummary:
    """Summary of one part of a run: number of rows by topic, bytes, columns, and values of the columns of systems."""

    sizes: Counter[str]
    n_bytes: int
    columns: list[str]
    systems: dict[str, Any]


def _streamed_parts(
    name: str,
    run: Any,
    work: Work,
    workers: Workers,
    *,
    memory: int,
    system: str | None,
    resume: str | os.PathLike[str] | None,
    progress: bool,
) -> Streamed | None:
    """Evaluate a run in several parts where each worker reads its own parts, each part in bounded memory.

    The workers first count the rows of each topic. Topics in one part only are evaluated by the worker that reads the
    part. Rows of the other topics are returned to this process, which evaluates them last. Returns ``None`` if this
    process has to read the run: a single part, several systems, or parts that divide so many topics that their rows
    exceed the limit of a topic.
    """
    folder = None if resume is None else _checkpoint_folder(resume, name)
    own_folder = None if folder is None else folder / "parts"
    # Path.exists would raise for a name that is too long for a file.
    is_resumed = own_folder is not None and os.path.exists(own_folder)  # noqa: PTH110
    is_begun_whole = folder is not None and os.path.exists(folder / "journal.jsonl")  # noqa: PTH110
    if is_begun_whole or not (workers.are_processes or is_resumed):
        return None
    # The folder names files by their content.
    parts = independent_parts(run) if resume is None or is_parts(run) else ()
    if len(parts) < 2:  # noqa: PLR2004 - one part is read by one process
        return None
    of_run = replace(work, name=f"run {name!r}")
    inputs = "" if own_folder is None else inputs_digest(parts, of_run)
    _, limit = _limits(memory)
    with locked_folder(own_folder) as place:
        checkpoint = Checkpoint(place, of_run, inputs, workers, memory // _IN_TRANSIT)
        done = checkpoint.journal.done
        if not _is_counted(name, parts, checkpoint, system, memory, progress=progress):
            return None
        checkpoint.work = replace(of_run, longest=done["longest"])
        left = [number for number in range(len(parts)) if f"place {number}" not in done]
        with Shared((checkpoint.work, registered_sets(work.plan.at_once))) as shared:
            evaluated = workers.map_items(
                partial(_part, shared, memory, name, system),
                [(parts[number], done["divided"][number]) for number in left],
                description=f"scoring {of_run.name}",
                progress=progress,
            )
            for number, (part, rest) in zip(left, evaluated, strict=True):
                if rest is not None:
                    with replacing(place / f"{number}.arrow") as file:
                        file.write(rest)
                checkpoint.add(PendingChunk(f"place {number}", None), part)
        files = [path for number in range(len(parts)) if (path := place / f"{number}.arrow").exists()]
        if files:

            def rows() -> Iterable[RunBlock]:
                return chain.from_iterable(map(part_blocks, files))

            size = sum(path.stat().st_size for path in files)
            checkpoint.add_all(_by_topic(rows, "", checkpoint, _n_parts(size, limit), limit))
        return checkpoint.combined_result()


def _is_counted(
    name: str, parts: Sequence[Any], checkpoint: Checkpoint, system: str | None, memory: int, *, progress: bool
) -> bool:
    """Record the longest list and the topics that several parts hold; False if this process has to read the run."""
    if "divided" in checkpoint.journal.done:
        return True
    n_bytes, limit = _limits(memory)
    how: dict[str, Any] = {"description": f"counting {checkpoint.work.name}", "progress": progress}
    try:
        summaries = list(checkpoint.workers.map_items(partial(_part_summary, name, system, n_bytes), parts, **how))
    except SystemsError:
        return False
    divided = _shared_topics(name, parts, summaries, limit)
    if divided is None:
        return False
    sizes = sum((summary.sizes for summary in summaries), Counter[str]())
    checkpoint.journal.add("longest", max(sizes.values()))
    checkpoint.journal.add("divided", divided)
    return True


def _shared_topics(
    name: str, parts: Sequence[Any], summaries: Sequence[_PartSummary], limit: int
) -> list[list[str]] | None:
    """The topics of each part that other parts hold, too; ``None`` if this process has to read the run."""
    filled = [number for number, summary in enumerate(summaries) if summary.sizes]
    if not filled:
        return None
    first = summaries[filled[0]]
    for number in filled:
        require_alike(parts[number], summaries[number].columns, first.columns)
        if summaries[number].systems != first.systems:
            return None
    n_parts = Counter(topic for summary in summaries for topic in summary.sizes)
    divided = [[topic for topic in summary.sizes if n_parts[topic] > 1] for summary in summaries]
    for summary, topics in zip(summaries, divided, strict=True):
        n_rows = sum(summary.sizes[topic] for topic in topics)
        if n_rows * summary.n_bytes > limit * sum(summary.sizes.values()):
            _LOG.info(
                "run %s: its parts divide %d topics, so that this process reads it; write the rows of a topic to one "
                "part for workers to read their own parts",
                printable(name),
                sum(n > 1 for n in n_parts.values()),
            )
            return None
    return divided


def _part_summary(name: str, system: str | None, n_bytes: int, source: Any) -> _PartSummary:
    """Count the rows of one part by topic, on a worker."""
    systems = SystemColumns(system)
    size, columns = 0, list[str]()

    def counted_blocks(read: Iterable[RunBlock]) -> Iterator[RunBlock]:
        nonlocal size, columns
        for block in read:
            size += block.table.nbytes
            columns = block.table.column_names
            yield block

    with run_files(name, source, system) as files, memory_returned():
        sizes, _ = _sizes(counted_blocks(blocks(files, n_bytes, systems=systems)))
    return _PartSummary(sizes, size, columns, systems.values)


def _part(
    shared: Shared, memory: int, name: str, system: str | None, item: tuple[Any, Sequence[str]]
) -> tuple[Part, bytes | None]:
    """Evaluate the topics of one part, on a worker, without divided topics, whose rows are returned."""
    (work, sets), (source, divided) = shared.value, item
    register(sets)
    n_bytes, limit = _limits(memory)
    topics = pa.array(divided, pa.large_string())
    rest: list[Any] = []

    def undivided_blocks(files: Sequence[Path], start: Place) -> Iterator[RunBlock]:
        # A part with the rows of a topic apart is read twice.
        rest.clear()
        for block in blocks(files, n_bytes, start, SystemColumns(system)):
            is_divided = pc.is_in(block.table["qid"], value_set=topics)
            rest.append(block.table.filter(is_divided))
            table = block.table.filter(pc.invert(is_divided))
            if len(table):
                yield RunBlock(table, block.place)

    def evaluate_part() -> Part:
        with run_files(name, source, system) as files, locked_folder(None) as place:
            checkpoint = Checkpoint(place, work, "", Workers(), 0)
            _evaluate(partial(undivided_blocks, files), files, n_bytes, limit, checkpoint, SystemColumns(system))
            return checkpoint.part(rest[0].slice(0, 0) if rest else None)

    with memory_returned():
        part, messages = heard(evaluate_part)
    return replace(part, messages=part.messages + messages), table_bytes(pa.concat_tables(rest)) if divided else None


def _limits(memory: int) -> tuple[int, int]:
    """The bytes of a block, and those of a topic, that one process of ``memory`` bytes reads."""
    n_bytes = max(memory // _PER_BLOCK, LEAST_BLOCK)
    return min(n_bytes, _MOST_BLOCK), max(memory // _PER_TOPIC, n_bytes)


def read_first_ranks(
    named_runs: Mapping[str, Any],
    work: Work,
    memory: int | str | None,
    workers: Workers,
    *,
    system: str | None = None,
    progress: bool = False,
) -> dict[str, dict[str, pd.DataFrame]]:
    """Read the runs in files in bounded memory, one worker each, and keep the ranks that the measures depend on.

    Returns the runs in each file, by the name of the file, by name; other runs are left out. ``memory``: limit of the
    memory of a worker for blocks; 1 GiB by default. Raises ParameterError: a measure without a cutoff.
    """
    if work.plan.at_once:
        raise ParameterError(
            f"{work.plan.at_once[0]}: has no cutoff of at most {MAX_KEPT_CUTOFF}, and memory= and n_jobs= keep "
            "first ranks alone; give a cutoff, as @10, or leave them out"
        )
    n_bytes = amount("memory", MEMORY if memory is None else memory)
    with Shared(work) as shared, ExitStack() as opened_files:
        # Workers may have another working folder.
        items = [
            (name, tuple(path.absolute() for path in opened_files.enter_context(run_files(name, run, system))))
            for name, run in named_runs.items()
            if is_in_files(run)
        ]
        read = workers.map_items(
            partial(_first_ranks, shared, n_bytes, system), items, description="reading", progress=progress
        )
        frames = {}
        for (name, _), (of_file, messages) in zip(items, read, strict=True):
            frames[name] = of_file
            for message in messages:
                warn(message)
    return frames


def _first_ranks(
    shared: Shared, memory: int, system: str | None, item: tuple[str, tuple[Path, ...]]
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return the first ranks of the runs in one file, by name, and the warnings."""
    runs = partial(streamed_systems, *item, shared.value, memory=memory, system=system)
    return heard(lambda: {name: result.run.frame for name, result in runs()})


def streamed_systems(
    name: str,
    paths: Sequence[Path],
    work: Work,
    workers: Workers | None = None,
    *,
    memory: int = MEMORY,
    system: str | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Iterator[tuple[str, Streamed]]:
    """Yield the names and results of the run in files, or of each system in them.

    ``system``: as in :func:`vbterrier.frames.systems.split_systems`; the first topics decide whether documents or ranks
    repeat. Files of several systems are first split into temporary files as large as the uncompressed run.
    """

    def result(system_name: str, files: Sequence[Path], columns: SystemColumns) -> Streamed:
        folder = None if resume is None else _checkpoint_folder(resume, system_name)
        of_run = replace(work, name=f"run {system_name!r}")
        how: dict[str, Any] = {"memory": memory, "folder": folder, "source": paths, "progress": progress}
        return stream_run(files, of_run, workers, systems=columns, **how)

    try:
        yield name, result(name, paths, SystemColumns(system))
    except SystemsError:
        with locked_folder(None) as folder:
            # Warnings about a file are issued where it is first read.
            with unheard():
                files = split_by_system(paths, folder, max(memory // _PER_BLOCK, LEAST_BLOCK), system, f"run {name!r}")
            if files is None:
                yield name, result(name, paths, SystemColumns(ONE))
            for system_name, file in (files or {}).items():
                yield system_name, result(system_name, [file], SystemColumns(ONE))


def _checkpoint_folder(resume: str | os.PathLike[str], name: str) -> Path:
    return Path(resume) / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def stream_run(
    paths: Sequence[Path],
    work: Work,
    workers: Workers | None = None,
    *,
    systems: SystemColumns | None = None,
    memory: int = MEMORY,
    folder: Path | None = None,
    source: Sequence[Path] = (),
    progress: bool = False,
) -> Streamed:
    """Evaluate a run in files in bounded memory, by default in this process only.

    ``systems``: columns that may name systems, by default none. ``memory``: limit of the memory for blocks and their
    evaluation, in bytes. ``folder``: folder of finished parts, from which a later call resumes; ``None`` to keep
    nothing. ``source``: the files of which those of the run are a part. Raises InputError: files that cannot be
    evaluated; a topic that is too large; a folder with parts of other inputs. Raises SystemsError: several values in a
    column of systems.
    """
    workers, systems = workers or Workers(), systems or SystemColumns(ONE)
    # A temporary folder is never resumed from.
    inputs = "" if folder is None else inputs_digest(source or paths, work)
    with locked_folder(folder) as place, memory_returned():
        checkpoint = Checkpoint(place, work, inputs, workers, memory // _IN_TRANSIT)
        n_bytes = max(memory // max(_PER_BLOCK, _PER_WORKER * workers.n), LEAST_BLOCK)
        limit = max(memory // _PER_TOPIC, n_bytes)
        n_bytes = min(n_bytes, _MOST_BLOCK)
        if any(isinstance(measure, Measure) for measure in work.plan.at_once):
            checkpoint.work = replace(work, longest=_longest(paths, checkpoint, n_bytes, systems, progress=progress))
        read = partial(blocks, paths, n_bytes, systems=systems)
        _evaluate(read, paths, n_bytes, limit, checkpoint, systems, progress=progress)
        return checkpoint.combined_result()


def _longest(
    paths: Sequence[Path], checkpoint: Checkpoint, n_bytes: int, systems: SystemColumns, *, progress: bool
) -> int:
    """Return the length of the longest list, and record whether the rows of a topic are not contiguous.

    Measures of whole rankings need all rows of a topic at once.
    """
    if "longest" not in checkpoint.journal.done:
        what, total = f"counting {checkpoint.work.name}", _n_blocks(paths, n_bytes)
        read = blocks(paths, n_bytes, systems=systems)
        sizes, is_apart = _sizes(tracked_items(read, what, shown=progress, total=total, unit="block"))
        if is_apart:
            checkpoint.journal.add("apart", result=True)
        checkpoint.journal.add("longest", max(sizes.values(), default=0))
    longest: int = checkpoint.journal.done["longest"]
    return longest


def _sizes(read: Iterable[RunBlock]) -> tuple[Counter[str], bool]:
    """Return the number of rows of each topic, and True if the rows of a topic are not contiguous."""
    sizes: Counter[str] = Counter()
    before, is_apart = "", False
    for block in read:
        ids = qids(block.table)
        names, topic = ids.codes()
        # A topic that continues from the last block is the first of this one.
        others = names[names[0] == before :]
        is_apart |= len(ids.blocks()) > len(names) or not sizes.keys().isdisjoint(others)
        before = names[-1]
        sizes.update(dict(zip(names, np.bincount(topic).tolist(), strict=True)))
    return sizes, is_apart


def _evaluate(
    read: Callable[[Place], Iterator[RunBlock]],
    paths: Sequence[Path],
    n_bytes: int,
    limit: int,
    checkpoint: Checkpoint,
    systems: SystemColumns,
    *,
    progress: bool = False,
) -> None:
    """Evaluate the blocks that ``read`` yields from a place on: in their order, or by topic if topics are apart."""
    total = _n_blocks(paths, n_bytes)
    try:
        _by_place(read, total, checkpoint, limit, systems, progress=progress)
    except _ApartError:
        checkpoint.journal.add("apart", result=True)
    if "apart" in checkpoint.journal.done:
        size = sum(path.stat().st_size * (10 if path.suffix == ".gz" else 2) for path in paths)
        task = f"splitting {checkpoint.work.name} by topic"

        def every() -> Iterable[RunBlock]:
            return tracked_items(read(Place()), task, shown=progress, total=total, unit="block")

        checkpoint.add_all(_by_topic(every, "", checkpoint, _n_parts(size, limit), limit))


def _by_place(
    read: Callable[[Place], Iterator[RunBlock]],
    n_blocks: int,
    checkpoint: Checkpoint,
    limit: int,
    systems: SystemColumns,
    *,
    progress: bool,
) -> None:
    """Evaluate the files in order, from the end of the last finished part."""
    done = checkpoint.finished_parts("place")
    if "apart" in checkpoint.journal.done or (done and done[-1]["behind"] is None):
        return
    start = Place(**done[-1]["behind"]) if done else Place()
    seen = {topic for part in done for topic in checkpoint.read_rows(part)["qid"].unique().to_pylist()}
    name = checkpoint.work.name
    # The rows behind the last finished part may be those of another system.
    systems.values.update(checkpoint.journal.done.get("systems", {}))
    tracked_blocks = tracked_items(read(start), f"scoring {name}", shown=progress, total=n_blocks, unit="block")

    def every() -> Iterator[PendingChunk]:
        for number, chunk in enumerate(chunks(tracked_blocks, limit, name), len(done)):
            if not seen.isdisjoint(chunk.topics):
                raise _ApartError
            seen.update(chunk.topics)
            if "systems" not in checkpoint.journal.done:
                checkpoint.journal.add("systems", systems.values)
            yield PendingChunk(f"place {number}", chunk.table, chunk.behind)

    checkpoint.add_all(every())


def _by_topic(
    read: Callable[[], Iterable[RunBlock]], key: str, checkpoint: Checkpoint, n_parts: int, limit: int
) -> Iterator[PendingChunk]:
    """Split rows by topic until each part is small enough, and yield the parts that are not done."""
    folder = checkpoint.folder / "topics" / key.replace(".arrow", "")
    level = key.count("/") + bool(key)
    if f"split {key}" not in checkpoint.journal.done:
        with kept_in(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        checkpoint.journal.add(f"split {key}", partition(read(), folder, n_parts, level))
    for file, n_topics in checkpoint.journal.done[f"split {key}"].items():
        part, path = f"{key}/{file}".lstrip("/"), folder / file
        if f"topics {part}" in checkpoint.journal.done:
            path.unlink(missing_ok=True)
            continue
        size = path.stat().st_size if path.exists() else 0
        if f"split {part}" in checkpoint.journal.done or (size > limit and n_topics > 1):
            yield from _by_topic(partial(part_blocks, path), part, checkpoint, _n_parts(size, limit), limit)
            path.unlink(missing_ok=True)
        else:
            table = pa.concat_tables([block.table for block in part_blocks(path)]) if size <= limit else None
            require_size(next(part_blocks(path)).table, size, limit, checkpoint.work.name)
            yield PendingChunk(f"topics {part}", table, file=path)


def _n_parts(size: int, limit: int) -> int:
    return min(max(2 * size // limit, 2), _MOST_PARTS)


def _n_blocks(paths: Sequence[Path], n_bytes: int) -> int:
    """Approximate number of blocks; compressed files hold more than their size."""
    return sum(path.stat().st_size // n_bytes + 1 for path in paths)
