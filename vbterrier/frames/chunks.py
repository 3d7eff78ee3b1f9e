"""Runs too large for the memory, in chunks of whole topics: as they come, or parted by topic first."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vbterrier.errors import InputError
from vbterrier.frames.files.blocks import Block, Place
from vbterrier.frames.files.writing import kept_in
from vbterrier.frames.ids import Ids
from vbterrier.kernels.order import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


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


def chunks(blocks: Iterable[Block], n_bytes: int, name: str) -> Iterator[Chunk]:
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
    held: list[Block] = []
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


def _chunk(parts: list[Block], behind: Place | None) -> Chunk:
    table = pa.concat_tables([part.table for part in parts])
    return Chunk(table, qids(table).codes()[0], behind)


def split(blocks: Iterable[Block], folder: Path, n_parts: int, level: int = 0) -> dict[str, int]:
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


def parted(path: Path) -> Iterator[Block]:
    """What :func:`split` wrote into a file, block by block.

    Raises
    ------
    FileError
        It is gone or damaged.
    """
    with kept_in(path), pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            yield Block(pa.Table.from_batches([batch]), Place())
