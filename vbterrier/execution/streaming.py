"""Evaluation of runs larger than memory, in chunks of whole topics."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vbterrier.errors import ParameterError, warn
from vbterrier.execution.checkpoint import Checkpoint, PendingChunk, Streamed, inputs_of, memory_returned, opened
from vbterrier.execution.chunks import SHALLOW, heard
from vbterrier.execution.parallel import Workers
from vbterrier.execution.pending import Shared
from vbterrier.frames.files.blocks import (
    Place,
    amount,
    blocks,
    chunks,
    is_parts,
    parted,
    parts_of,
    qids,
    require_size,
    split,
)
from vbterrier.frames.files.writing import kept_in
from vbterrier.frames.ranking import loaded_run
from vbterrier.log import tracked
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from vbterrier.execution.chunks import Work
    from vbterrier.frames.files.blocks import RunBlock
    from vbterrier.frames.ranking import Run


MEMORY = 2**30
# Checking, sorting and evaluating a block takes several times its bytes.
_PER_BLOCK, _PER_TOPIC = 64, 16
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
    progress: bool = False,
) -> tuple[dict[str, Run], dict[str, Streamed]]:
    """Return runs by name, and the results of runs in files, which are evaluated while they are read."""
    n_bytes = amount("memory", MEMORY if memory is None else memory)
    loaded: dict[str, Run] = {}
    found: dict[str, Streamed] = {}
    for name, run in named_runs:
        if not is_parts(run):
            loaded[name] = loaded_run(name, run, work.duplicates)
            continue
        own = replace(work, name=f"run {name!r}")
        folder = None if resume is None else Path(resume) / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        found[name] = streamed(parts_of(run), own, workers, memory=n_bytes, folder=folder, progress=progress)
        loaded[name] = found[name].run
    return loaded, found


def first_ranks_of(
    named_runs: Mapping[str, Any], work: Work, memory: int | str | None, workers: Workers, *, progress: bool = False
) -> dict[str, pd.DataFrame]:
    """Read the runs in files in bounded memory, one worker each, and keep the ranks that the measures depend on.

    ``named_runs``: runs by name; those that are not in files are left out. ``work``: the measures, all with a cutoff,
    and the treatment of duplicates. ``memory``: limit of the memory of a worker for blocks; 1 GiB by default.
    ``workers``: processes, or a cluster. Raises ParameterError: a measure without a cutoff. Raises InputError: files
    that cannot be evaluated.
    """
    if work.plan.at_once:
        raise ParameterError(
            f"{work.plan.at_once[0]}: has no cutoff of at most {SHALLOW}, and memory= and n_jobs= keep first ranks "
            "alone; give a cutoff, as @10, or leave them out"
        )
    n_bytes = amount("memory", MEMORY if memory is None else memory)
    # Workers may have another working folder.
    items = [
        (name, tuple(path.absolute() for path in parts_of(run))) for name, run in named_runs.items() if is_parts(run)
    ]
    with Shared(work) as shared:
        read = workers.mapped(partial(_first_ranks, shared, n_bytes), items, description="reading", progress=progress)
        found = {}
        for (name, _), (frame, messages) in zip(items, read, strict=True):
            found[name] = frame
            for message in messages:
                warn(message)
    return found


def _first_ranks(shared: Shared, memory: int, item: tuple[str, tuple[Path, ...]]) -> tuple[pd.DataFrame, list[str]]:
    """Return the first ranks of one run, and the warnings."""
    name, paths = item
    work = replace(shared.value, name=f"run {name!r}")
    return heard(lambda: streamed(paths, work, memory=memory).run.frame)


def streamed(
    paths: Sequence[Path],
    work: Work,
    workers: Workers | None = None,
    *,
    memory: int = MEMORY,
    folder: Path | None = None,
    progress: bool = False,
) -> Streamed:
    """Evaluate a run in files in bounded memory.

    ``paths``: the files. ``work``: the evaluation of each chunk of whole topics. ``workers``: the workers; only this
    process by default. ``memory``: limit of the memory for blocks and their evaluation, in bytes. ``folder``: folder of
    finished parts, from which a later call resumes; ``None`` to keep nothing. ``progress``: show a progress bar. Raises
    InputError: files that cannot be evaluated; a topic that is too large; a folder with parts of other inputs.
    """
    workers = workers or Workers()
    with opened(folder) as place, memory_returned():
        checkpoint = Checkpoint(place, work, inputs_of(paths, work), workers, memory // _IN_TRANSIT)
        n_bytes = max(memory // max(_PER_BLOCK, _PER_WORKER * workers.n), LEAST_BLOCK)
        limit = max(memory // _PER_TOPIC, n_bytes)
        n_bytes = min(n_bytes, _MOST_BLOCK)
        if any(isinstance(measure, Measure) for measure in work.plan.at_once):
            checkpoint.work = replace(work, longest=_longest(paths, checkpoint, n_bytes, progress=progress))
        try:
            _by_place(paths, checkpoint, n_bytes, limit, progress=progress)
        except _ApartError:
            checkpoint.journal.add("apart", result=True)
        if "apart" in checkpoint.journal.done:
            size = sum(path.stat().st_size * (10 if path.suffix == ".gz" else 2) for path in paths)
            said = f"splitting {work.name} by topic"

            def every() -> Iterable[RunBlock]:
                return tracked(
                    blocks(paths, n_bytes), said, shown=progress, total=_n_blocks(paths, n_bytes), unit="block"
                )

            checkpoint.add_all(_by_topic(every, "", checkpoint, _n_parts(size, limit), limit))
        return checkpoint.streamed()


def _longest(paths: Sequence[Path], checkpoint: Checkpoint, n_bytes: int, *, progress: bool) -> int:
    """Return the length of the longest list, and record whether the rows of a topic are not contiguous.

    Measures of whole rankings need all rows of a topic at once.
    """
    if "longest" not in checkpoint.journal.done:
        sizes: Counter[str] = Counter()
        before, is_apart = "", False
        what = f"counting {checkpoint.work.name}"
        for block in tracked(
            blocks(paths, n_bytes), what, shown=progress, total=_n_blocks(paths, n_bytes), unit="block"
        ):
            ids = qids(block.table)
            names, topic = ids.codes()
            # A topic that continues from the last block is the first of this one.
            others = names[names[0] == before :]
            is_apart |= len(ids.blocks()) > len(names) or not sizes.keys().isdisjoint(others)
            before = names[-1]
            sizes.update(dict(zip(names, np.bincount(topic).tolist(), strict=True)))
        if is_apart:
            checkpoint.journal.add("apart", result=True)
        checkpoint.journal.add("longest", max(sizes.values(), default=0))
    longest: int = checkpoint.journal.done["longest"]
    return longest


def _by_place(paths: Sequence[Path], checkpoint: Checkpoint, n_bytes: int, limit: int, *, progress: bool) -> None:
    """Evaluate the files in order, from the end of the last finished part."""
    done = checkpoint.finished("place")
    if "apart" in checkpoint.journal.done or (done and done[-1]["behind"] is None):
        return
    start = Place(**done[-1]["behind"]) if done else Place()
    seen = {topic for part in done for topic in checkpoint.kept(part)["qid"].unique().to_pylist()}
    name, total = checkpoint.work.name, _n_blocks(paths, n_bytes)
    read = tracked(blocks(paths, n_bytes, start), f"scoring {name}", shown=progress, total=total, unit="block")

    def every() -> Iterator[PendingChunk]:
        for number, chunk in enumerate(chunks(read, limit, name), len(done)):
            if not seen.isdisjoint(chunk.topics):
                raise _ApartError
            seen.update(chunk.topics)
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
        checkpoint.journal.add(f"split {key}", split(read(), folder, n_parts, level))
    for file, n_topics in checkpoint.journal.done[f"split {key}"].items():
        part, path = f"{key}/{file}".lstrip("/"), folder / file
        if f"topics {part}" in checkpoint.journal.done:
            path.unlink(missing_ok=True)
            continue
        size = path.stat().st_size if path.exists() else 0
        if f"split {part}" in checkpoint.journal.done or (size > limit and n_topics > 1):
            yield from _by_topic(partial(parted, path), part, checkpoint, _n_parts(size, limit), limit)
            path.unlink(missing_ok=True)
        else:
            table = pa.concat_tables([block.table for block in parted(path)]) if size <= limit else None
            require_size(next(parted(path)).table, size, limit, checkpoint.work.name)
            yield PendingChunk(f"topics {part}", table, file=path)


def _n_parts(size: int, limit: int) -> int:
    return min(max(2 * size // limit, 2), _MOST_PARTS)


def _n_blocks(paths: Sequence[Path], n_bytes: int) -> int:
    """Approximate number of blocks; compressed files hold more than their size."""
    return sum(path.stat().st_size // n_bytes + 1 for path in paths)
