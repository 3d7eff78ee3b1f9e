"""Runs in blocks of lines and in chunks of whole topics."""

from __future__ import annotations

import logging
import re
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, InputError, ParameterError, excerpt, printable
from vbterrier.frames.files.kinds import RUN, first_line
from vbterrier.frames.files.lines import line_layout
from vbterrier.frames.files.loading import is_read_whole
from vbterrier.frames.files.reading import run_table
from vbterrier.frames.files.source import BOM, Source
from vbterrier.frames.files.tables import batches, misfit_error, require_columns, text_table, typed_table, unreadable
from vbterrier.frames.files.writing import kept_in
from vbterrier.frames.ids import Ids
from vbterrier.frames.systems import ONE, EvaluatedColumns, columns_of_systems, missing_system, systems_in
from vbterrier.kernels.fingerprints import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from vbterrier.frames.files.source import Layout


_LOG = logging.getLogger(__name__)
KEYS = ("qid", "docno", "score")
# Optional columns that measures and checks read; lines of text have the first only.
READ = ("rank", "entity_id", "weight", "tagger", "tied", "n_abstained", "grade_prob")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", re.ASCII | re.IGNORECASE)
# Threads and allocators alone take this much.
LEAST_MEMORY = 64 * 2**20
# Topics, and about so many rows of them, that show whether documents or ranks repeat across systems.
_FIRST_TOPICS, _MOST_DECISIVE = 100, 1_000_000
# Files that are written at once.
_MOST_SYSTEMS = 256
# The longest line, in blocks.
_MAX_LINE_BLOCKS = 16


@dataclass(frozen=True)
class Place:
    """The position of a row in the files of a run."""

    file: int = 0  # the number of the file
    offset: int = 0  # the start of the block in the file: the byte of the unpacked text, or the row of a Parquet file
    row: int = 0  # the number of the row in its block


@dataclass(frozen=True, eq=False)
class RunBlock:
    """Rows of a run that are read together."""

    table: Any  # columns qid, docno, score, and the columns of ``READ`` that the file has
    place: Place  # the position of its first row

    def slice(self, start: int, stop: int | None = None) -> RunBlock:
        """The rows from ``start`` to ``stop``."""
        length = None if stop is None else stop - start
        return RunBlock(self.table.slice(start, length), replace(self.place, row=self.place.row + start))


class SystemsError(Exception):
    """Rows of several systems, perhaps, in a run that is read in blocks."""


@dataclass(eq=False)
class SystemColumns:
    """The columns of blocks that may name systems: with more than one value they raise SystemsError, or are kept.

    - ``system``: as in :func:`vbterrier.frames.systems.split_systems`
    - ``values``: the first value of each column
    - ``kept``: True to keep these columns in the blocks
    """

    system: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    kept: bool = False

    def among(self, names: Sequence[str]) -> list[str]:
        """The columns among those of a file."""
        return [name for name in columns_of_systems(names, self.system) if name not in (*KEYS, *READ)]

    def checked_rows(self, table: Any) -> Any:
        """The rows of a block, without these columns unless they are kept."""
        columns = self.among(table.column_names)
        if self.kept:
            return table
        for name in columns:
            column = table[name]
            value = self.values.setdefault(name, column[0].as_py())
            odd = column.is_valid() if value is None else pc.not_equal(column, pa.scalar(value, column.type))
            if pc.any(odd).as_py() or (value is not None and column.null_count):
                raise SystemsError
        return table.drop_columns(columns)


def blocks(
    paths: Sequence[Path], n_bytes: int, start: Place = Place(), systems: SystemColumns | None = None
) -> Iterator[RunBlock]:
    """Yield the rows of a run in blocks, file by file.

    - ``paths``: files of TREC text, plain or compressed, Parquet files, or tables of text and JSON that one block
      holds; the content decides
    - ``systems``: columns that may name systems; by default they are not read
    """
    systems = systems or SystemColumns(ONE)
    columns: list[str] = []
    for file in range(start.file, len(paths)):
        source = Source.at(paths[file], None)
        offset, row = (start.offset, start.row) if file == start.file else (0, 0)
        read = _parquet_tables if source.is_parquet else _whole_table if is_read_whole(source) else _line_tables
        for at, rows in read(source, n_bytes, offset, systems):
            table = systems.checked_rows(rows)
            columns = columns or table.column_names
            require_alike(source.path, table.column_names, columns)
            block = RunBlock(table, Place(file, at))
            _LOG.debug("%s: a block of %s rows", printable(source.path), f"{len(table):,}")
            if row < len(table):
                yield block.slice(row)
            row = max(row - len(table), 0)


def require_alike(path: Path, columns: Sequence[str], others: Sequence[str]) -> None:
    """Check that a file of a run has the columns of the files before it."""
    if list(columns) != list(others):
        problem = f"{', '.join(columns)}, found {', '.join(others)} before"
        raise FileError(path, f"the files of a run must have the same columns: this one has {problem}")


def amount(name: str, value: Any, least: int = LEAST_MEMORY) -> int:
    """Return a parameter that is a number of bytes, or a text such as "1 GiB" or "500 MB", of ``least`` or more."""
    number, unit = value, ""
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value.strip())
        number, unit = (float(match[1]), match[2].casefold()) if match else (None, "")
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not least <= number * _UNITS[unit] < inf:
        limit = "64 MiB" if least == LEAST_MEMORY else least
        raise ParameterError(
            f"{name}={excerpt(value)}: wanted a number of bytes of at least {limit}, as 2**30 or '1 GiB'"
        )
    # More than files can hold is no limit.
    return int(min(number * _UNITS[unit], 2**63 - 1))


def _line_tables(source: Source, n_bytes: int, start: int, systems: SystemColumns) -> Iterator[tuple[int, Any]]:
    """Yield tables of whole lines, each with the byte of its start."""
    layout = replace(line_layout(RUN.trec, source.path, *first_line(RUN, source)), comment=RUN.comment)
    rest, is_last = b"", False
    with source.stream(start=start) as stream:
        while not is_last:
            data = stream.read(n_bytes)
            is_last = not data
            content = rest + data
            stop = len(content) if is_last else max(content.rfind(b"\n"), content.rfind(b"\r")) + 1
            if not stop and len(content) > max(_MAX_LINE_BLOCKS * n_bytes, 1 << 20):
                raise FileError(source.path, f"holds a line of more than {len(content):,} bytes; is it a TREC run?")
            if content[:stop].strip():
                table = _block_table(source, layout, content[:stop], is_first=not start)
                names = [*KEYS, *(name for name in READ if name in table.column_names)]
                if len(table):
                    yield start, table.select([*names, *systems.among(table.column_names)])
            start, rest = start + stop, content[stop:]


def _whole_table(source: Source, n_bytes: int, _: int, systems: SystemColumns) -> Iterator[tuple[int, Any]]:
    """Yield the table of a file that its reader reads whole, if it is small enough for one block."""
    size = 0
    if not source.is_workbook:
        with source.stream() as stream:
            while size <= n_bytes and (data := stream.read(n_bytes)):
                size += len(data)
    if source.is_workbook or size > n_bytes:
        message = (
            "is a table with a header, a spreadsheet, JSON or of three columns, which are read whole, and memory= "
            f"leaves {n_bytes:,} bytes for that, and none for spreadsheets: leave out memory=, give 32 times the "
            "unpacked size, or write it as TREC first with `vbterrier convert FILE -o NEW --kind run --to trec`"
        )
        raise FileError(source.path, message)
    frame = run_table(source.path, max_bytes=None, others=EvaluatedColumns(frozenset(READ), systems.system))
    if systems.system not in (None, ONE, *frame.columns):
        raise FileError(source.path, missing_system(str(systems.system), frame.columns))
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:
        raise FileError(source.path, f"has a column of values of several types ({error}): leave out memory=") from error
    names = [*KEYS, *(name for name in READ if name in frame.columns), *systems.among(table.column_names)]
    yield 0, typed_table(source, table.select(names), KEYS, RUN.numeric)


def _block_table(source: Source, layout: Layout, content: bytes, *, is_first: bool) -> Any:
    if content.startswith(BOM) and not is_first:
        # Arrow drops a byte-order mark at the start; this one belongs to an id.
        content = BOM + content
    try:
        table, _ = text_table(Source(source.path, None, content), layout)
    except FileError:
        raise misfit_error(source, layout) from None
    return table


def _parquet_tables(source: Source, n_bytes: int, start: int, systems: SystemColumns) -> Iterator[tuple[int, Any]]:
    """Yield tables of a Parquet file, each with the number of its first row."""
    import pyarrow.parquet as pq

    try:
        with source.raw() as raw:
            every = pq.ParquetFile(raw).schema_arrow.names
        columns = RUN.standard_names(every)
        by_rank = "score" not in columns and "rank" in columns
        require_columns(source.path, columns, ("qid", "docno", "rank") if by_rank else KEYS, original=every)
        of_systems = systems.among(every)
        if systems.system not in (None, ONE) and not of_systems:
            raise FileError(source.path, missing_system(str(systems.system), every))
        read = {
            name: concept
            for name, concept in zip(every, columns, strict=True)
            if concept in (*KEYS, *READ, *of_systems)
        }
        others = [name for name in read.values() if name not in KEYS]
        # As many rows as a block of text, whose table takes about twice its bytes.
        size, limit = 2 * n_bytes, _MAX_LINE_BLOCKS * n_bytes
        for at, batch in batches(source, list(read), n_bytes=size, start=start, limit=limit):
            table = batch.slice(max(start - at, 0)).rename_columns(list(read.values()))
            if by_rank:
                table = table.append_column("score", pc.negate(pc.cast(table["rank"], pa.float64())))
            before = at + len(batch) - len(table)
            if len(table):
                checked = typed_table(source, table, KEYS, RUN.numeric, before)
                yield before, checked.select([*KEYS, *others])
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source, error) from error


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a run that hold whole topics, if the rows of each topic are contiguous."""

    table: Any
    topics: list[str]  # their topics, in order of appearance
    behind: Place | None  # the position of the next row, ``None`` at the end


def chunks(blocks: Iterable[RunBlock], n_bytes: int, name: str) -> Iterator[Chunk]:
    """Cut blocks between topics: rows of the last topic of a block wait for the next block."""
    held: list[RunBlock] = []
    for block in blocks:
        ids = qids(block.table)
        last = int(ids.blocks()[-1])
        if held and ids.text[0] != qids(held[-1].table).text[0]:
            # The waiting topic is complete.
            yield _joined_chunk(held, block.place)
            held = []
        if last:
            yield _joined_chunk([*held, block.slice(0, last)], block.slice(last).place)
            held = []
        held.append(block.slice(last))
        require_size(held[0].table, sum(part.table.nbytes for part in held), n_bytes, name)
    if held:
        yield _joined_chunk(held, None)


def require_size(table: Any, n_bytes: int, limit: int, name: str) -> None:
    """Check the size of a topic."""
    if n_bytes > limit:
        raise InputError(
            f"{name}: topic {table['qid'][0].as_py()!r} alone holds {n_bytes:,} bytes or more, and memory= leaves "
            f"{limit:,} for one topic; give a larger memory=, by their ratio, or cut the run, as to 1,000 "
            "documents a topic"
        )


def qids(table: Any) -> Ids:
    """The ids of the topics of a table."""
    return Ids(table["qid"].combine_chunks())


def _joined_chunk(parts: list[RunBlock], behind: Place | None) -> Chunk:
    table = pa.concat_tables([part.table for part in parts])
    return Chunk(table, qids(table).codes()[0], behind)


def partition(blocks: Iterable[RunBlock], folder: Path, n_parts: int, level: int = 0) -> dict[str, int]:
    """Partition rows by topic into the files ``0.arrow``, ``1.arrow``, ...

    - ``level``: number of a partition; different levels partition topics independently

    Returns the number of topics in each file, by its name; empty parts have none.
    """
    topics: dict[int, set[str]] = {}
    with kept_in(folder), ExitStack() as opened:
        writers: dict[int, Any] = {}
        for block in blocks:
            names, topic = qids(block.table).codes()
            part = (
                mix(Ids(pa.array(names, pa.large_string())).fingerprints + np.uint64(level)) % np.uint64(n_parts)
            ).astype(int)
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
    return {f"{number}.arrow": len(topics_of_part) for number, topics_of_part in sorted(topics.items())}


def split_by_system(
    paths: Sequence[Path], folder: Path, n_bytes: int, system: str | None, name: str
) -> dict[str, Path] | None:
    """Write the rows of each system of a run in files to a Parquet file, and return these by name.

    ``None`` if the files are one run; errors as of :func:`vbterrier.frames.systems.split_systems`, with those of the
    first topics that repeat.
    """
    import pyarrow.parquet as pq

    columns = SystemColumns(system, kept=True)
    systems = systems_in(_decisive(paths, n_bytes, columns), system, name)
    if systems is None:
        return None
    column, _, names = systems
    if len(names) > _MOST_SYSTEMS:
        raise InputError(f"{name}: {len(names)} systems, wanted at most {_MOST_SYSTEMS}; make files of fewer systems")
    place = pa.array(names, pa.large_string())
    with kept_in(folder), ExitStack() as opened:
        writers: dict[int, Any] = {}
        for block in blocks(paths, n_bytes, systems=columns):
            number = pc.index_in(pc.cast(block.table[column], pa.large_string()), value_set=place)
            rows = block.table.drop_columns(columns.among(block.table.column_names))
            for at in pc.unique(number).to_pylist():
                if at not in writers:
                    file = opened.enter_context((folder / f"{at}.parquet").open("wb"))
                    writers[at] = opened.enter_context(pq.ParquetWriter(file, rows.schema, compression="lz4"))
                writers[at].write_table(rows.filter(pc.equal(number, at)))
    return {system_name: folder / f"{at}.parquet" for at, system_name in enumerate(names)}


def _decisive(paths: Sequence[Path], n_bytes: int, columns: SystemColumns) -> Any:
    """The rows of the first topics, and one row of each combination of values of the columns of systems."""
    parts, seen, topics = [], set[tuple[Any, ...]](), None
    n_rows = 0
    for block in blocks(paths, n_bytes, systems=columns):
        table = block.table.select([name for name in block.table.column_names if name not in READ or name == "rank"])
        if topics is None:
            topics = pa.array(qids(table).codes()[0][:_FIRST_TOPICS], pa.large_string())
        names = columns.among(table.column_names)
        firsts = table.select(names).append_column("row", pa.array(np.arange(len(table))))
        firsts = firsts.group_by(names).aggregate([("row", "min")])
        combinations = list(
            zip(*(firsts[name].to_pylist() for name in names), firsts["row_min"].to_pylist(), strict=True)
        )
        new = [each[-1] for each in combinations if each[:-1] not in seen]
        seen.update(each[:-1] for each in combinations)
        rows = (
            pc.indices_nonzero(pc.is_in(table["qid"], value_set=topics)).to_numpy() if n_rows < _MOST_DECISIVE else []
        )
        selection = np.union1d(rows, new).astype(np.int64)
        parts.append(table.take(pa.array(selection)))
        n_rows += len(selection)
    return pa.concat_tables(parts).to_pandas()


def part_blocks(path: Path) -> Iterator[RunBlock]:
    """Yield the blocks of a file that :func:`partition` wrote."""
    with kept_in(path), pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            yield RunBlock(pa.Table.from_batches([batch]), Place())
