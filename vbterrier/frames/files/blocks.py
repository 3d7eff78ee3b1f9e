"""Runs in blocks of lines and in chunks of whole topics."""

from __future__ import annotations

import glob
import logging
import os
import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vbterrier.errors import FileError, InputError, ParameterError, printable
from vbterrier.frames.files.source import BOM, Source
from vbterrier.frames.files.tables import (
    batches,
    blame,
    require_columns,
    run_layout,
    text_table,
    typed_table,
    unreadable,
)
from vbterrier.frames.files.writing import kept_in
from vbterrier.frames.ids import Ids
from vbterrier.kernels.order import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.frames.files.source import Layout


_LOG = logging.getLogger(__name__)
_KEYS = ("qid", "docno", "score")
_WANTED = (*_KEYS, "rank")
# Columns of Parquet files that are kept beside those of every run: what measures may read of a run.
READ = ("entity_id", "weight", "tagger", "grade_prob")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", re.ASCII | re.IGNORECASE)
# Less than threads and allocators need for themselves could not be kept.
LEAST_MEMORY = 64 * 2**20
# In blocks.
_LONGEST_LINE = 16


@dataclass(frozen=True)
class Place:
    """Where rows of a run begin.

    Parameters
    ----------
    file
        Which of its files.
    offset
        Where in it a block begins: the byte of the inflated text, or the row of a Parquet file.
    row
        How many rows of that block come before.
    """

    file: int = 0
    offset: int = 0
    row: int = 0


@dataclass(frozen=True, eq=False)
class RunBlock:
    """Rows of a run that were read together.

    Parameters
    ----------
    table
        Columns qid, docno, score, and those of ``READ`` that a Parquet file has.
    place
        Where its first row stands.
    """

    table: Any
    place: Place

    def slice(self, start: int, stop: int | None = None) -> RunBlock:
        """Some of the rows."""
        length = None if stop is None else stop - start
        return RunBlock(self.table.slice(start, length), replace(self.place, row=self.place.row + start))


def blocks(paths: Sequence[Path], n_bytes: int, start: Place = Place()) -> Iterator[RunBlock]:
    """The rows of a run's files, one file after the other.

    Parameters
    ----------
    paths
        TREC text, plain or gzip, or Parquet; what a file is, is told by its content.
    n_bytes
        How much to read at once.
    start
        Where to begin.

    Raises
    ------
    FileError
        As :func:`vbterrier.read_run`; files with different columns.
    """
    columns: list[str] = []
    for file in range(start.file, len(paths)):
        source = Source.at(paths[file], None)
        offset, row = (start.offset, start.row) if file == start.file else (0, 0)
        read = _rows if source.is_parquet else _lines
        for at, table in read(source, n_bytes, offset):
            columns = columns or table.column_names
            if table.column_names != columns:
                found = f"{', '.join(table.column_names)}, found {', '.join(columns)} before"
                raise FileError(source.path, f"one of several files of a run, which must be alike: has columns {found}")
            block = RunBlock(table, Place(file, at))
            _LOG.debug("%s: a block of %s rows", printable(source.path), f"{len(table):,}")
            if row < len(table):
                yield block.slice(row)
            row = max(row - len(table), 0)


def parts_of(run: Any) -> tuple[Path, ...]:
    """The files of one run: a path, several, those of a folder, or those that a pattern matches, as ``run/*.gz``.

    Raises
    ------
    InputError
        There is none.
    FileError
        One cannot be opened.
    """
    if isinstance(run, (list, tuple)):
        found = [part for each in run for part in parts_of(each)]
    else:
        try:
            found = _matched(run)
        except (OSError, ValueError) as error:
            # A folder that may not be read, a name that is too long, a pattern that is none.
            raise FileError(run, f"cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if not found:
        raise InputError(f"runs: no file in {str(run)!r}; name files, a folder that holds some, or a pattern for them")
    for path in found:
        if path.exists() and not path.is_file():
            raise FileError(path, "is a pipe or a device; memory= reads files more than once: write it to one")
        Source.at(path, None)
    return tuple(found)


def _matched(run: str | os.PathLike[str]) -> list[Path]:
    """The files that one path means."""
    if Path(run).is_dir():
        return sorted(path for path in Path(run).iterdir() if path.is_file() and not path.name.startswith("."))
    if glob.has_magic(str(run)) and not Path(run).exists():
        top = Path(run).anchor
        return sorted(path for path in Path(top).glob(str(Path(run).relative_to(top))) if path.is_file())
    return [Path(run)]


def is_parts(run: Any) -> bool:
    """Whether a run is given by paths."""
    if isinstance(run, (list, tuple)):
        return bool(run) and all(isinstance(each, (str, os.PathLike)) for each in run)
    return isinstance(run, (str, os.PathLike))


def amount(name: str, value: Any) -> int:
    """A parameter that is a number of bytes, or a text such as "1 GiB" or "500 MB".

    Raises
    ------
    ParameterError
        Anything else, or too little to work with.

    >>> amount("memory", "1 GiB") == 2**30
    True
    """
    number, unit = value, ""
    if isinstance(value, str):
        found = _AMOUNT.fullmatch(value.strip())
        number, unit = (float(found[1]), found[2].casefold()) if found else (None, "")
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number * _UNITS[unit] >= LEAST_MEMORY:
        raise ParameterError(f"{name}={value!r}: wanted a number of bytes of at least 64 MiB, as 2**30 or '1 GiB'")
    return int(number * _UNITS[unit])


def _lines(source: Source, n_bytes: int, start: int) -> Iterator[tuple[int, Any]]:
    """Tables of whole lines, with the byte that each begins at."""
    layout = run_layout(source.path, *source.first())
    rest, is_last = b"", False
    with source.stream(start=start) as stream:
        while not is_last:
            data = stream.read(n_bytes)
            is_last = not data
            content = rest + data
            stop = len(content) if is_last else max(content.rfind(b"\n"), content.rfind(b"\r")) + 1
            if not stop and len(content) > max(_LONGEST_LINE * n_bytes, 1 << 20):
                raise FileError(source.path, f"holds a line of more than {len(content):,} bytes; is it a TREC run?")
            if content[:stop].strip():
                yield start, _parsed(source, layout, content[:stop], is_first=not start)
            start, rest = start + stop, content[stop:]


def _parsed(source: Source, layout: Layout, content: bytes, *, is_first: bool) -> Any:
    if content.startswith(BOM) and not is_first:
        # Arrow drops a mark at the top; this one is part of an id.
        content = BOM + content
    try:
        table = text_table(Source(source.path, None, content), layout)
    except FileError:
        raise blame(source, layout) from None
    return table.select(list(_KEYS))


def _rows(source: Source, n_bytes: int, start: int) -> Iterator[tuple[int, Any]]:
    """Tables of a Parquet file, with the row that each begins at."""
    try:
        with source.raw() as raw:
            every = pq.ParquetFile(raw).schema_arrow.names
        require_columns(source.path, every, _WANTED)
        names = [name for name in every if name in (*_WANTED, *READ)]
        others = [name for name in names if name not in _WANTED]
        for at, batch in batches(source, names, room=n_bytes, start=start, limit=_LONGEST_LINE * n_bytes):
            table = batch.slice(max(start - at, 0))
            before = at + len(batch) - len(table)
            if len(table):
                checked = typed_table(source, table, _WANTED, ("score", "rank"), before)
                yield before, checked.select([*_KEYS, *others])
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source, error) from error


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a run that hold whole topics, as far as each topic's rows stand together.

    Parameters
    ----------
    table
        The rows.
    topics
        Their topics, in order of appearance.
    behind
        Where the next row stands, ``None`` at the end.
    """

    table: Any
    topics: list[str]
    behind: Place | None


def chunks(blocks: Iterable[RunBlock], n_bytes: int, name: str) -> Iterator[Chunk]:
    """Blocks cut between topics: what a block holds of its last topic waits for the next one.

    Parameters
    ----------
    blocks
        What was read.
    n_bytes
        How much one topic may hold.
    name
        What messages call the run.

    Raises
    ------
    InputError
        One topic holds more.
    """
    held: list[RunBlock] = []
    for block in blocks:
        ids = qids(block.table)
        last = int(ids.blocks()[-1])
        if held and ids.text[0] != qids(held[-1].table).text[0]:
            # The topic that waited is complete.
            yield _chunk(held, block.place)
            held = []
        if last:
            yield _chunk([*held, block.slice(0, last)], block.slice(last).place)
            held = []
        held.append(block.slice(last))
        require_room(held[0].table, sum(part.table.nbytes for part in held), n_bytes, name)
    if held:
        yield _chunk(held, None)


def require_room(table: Any, n_bytes: int, limit: int, name: str) -> None:
    """Refuse a topic that is too large.

    Raises
    ------
    InputError
        Names the topic.
    """
    if n_bytes > limit:
        raise InputError(
            f"{name}: topic {table['qid'][0].as_py()!r} alone holds {n_bytes:,} bytes or more, and memory= leaves "
            f"{limit:,} for one topic; ask for more memory (by the ratio of the two), or cut the run, as to 1,000 "
            "documents a topic"
        )


def qids(table: Any) -> Ids:
    """The column of topics."""
    return Ids(table["qid"].combine_chunks())


def _chunk(parts: list[RunBlock], behind: Place | None) -> Chunk:
    table = pa.concat_tables([part.table for part in parts])
    return Chunk(table, qids(table).codes()[0], behind)


def split(blocks: Iterable[RunBlock], folder: Path, n_parts: int, level: int = 0) -> dict[str, int]:
    """Part rows by topic, into files ``0.arrow``, ``1.arrow``, ...

    Parameters
    ----------
    blocks
        What was read.
    folder
        Where the files go.
    n_parts
        How many of them.
    level
        Another one parts topics in another way.

    Returns
    -------
    dict
        The number of topics by the name of each file that has any.

    Raises
    ------
    FileError
        They cannot be written.
    """
    topics: dict[int, set[str]] = {}
    with kept_in(folder), ExitStack() as opened:
        writers: dict[int, Any] = {}
        for block in blocks:
            names, topic = qids(block.table).codes()
            part = (mix(Ids(pa.array(names, pa.large_string())).prints + np.uint64(level)) % np.uint64(n_parts)).astype(
                int
            )
            of_row = part[topic]
            rows = np.argsort(of_row, kind="stable")
            ordered = block.table.combine_chunks().take(pa.array(rows))
            stops = np.cumsum(np.bincount(of_row, minlength=n_parts))
            for number in np.unique(part).tolist():
                if number not in writers:
                    file = opened.enter_context((folder / f"{number}.arrow").open("wb"))
                    writers[number] = opened.enter_context(pa.ipc.new_stream(file, block.table.schema))
                    topics[number] = set()
                start = int(stops[number - 1]) if number else 0
                writers[number].write_table(ordered.slice(start, int(stops[number]) - start))
            for name, number in zip(names, part.tolist(), strict=True):
                topics[number].add(name)
    return {f"{number}.arrow": len(found) for number, found in sorted(topics.items())}


def parted(path: Path) -> Iterator[RunBlock]:
    """What :func:`split` wrote into a file, block by block.

    Raises
    ------
    FileError
        It is gone or damaged.
    """
    with kept_in(path), pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            yield RunBlock(pa.Table.from_batches([batch]), Place())
