"""Lines of a file that may be packed and must not be trusted."""

from __future__ import annotations

import bz2
import gzip
import zlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

from vbterrier.errors import FileError
from vbterrier.frames.files.source import BOM, Source
from vbterrier.linking.kb.connection import SQLITE, reader_of
from vbterrier.parallel.bars import bar

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

# The largest entities of Wikidata have some 5 MB.
MAX_LINE = 64 * 2**20
_GZIP, _BZ2 = b"\x1f\x8b", b"BZh"
_PACKED = {_GZIP: "gunzip", _BZ2: "bunzip2"}


def numbered_lines(
    path: str | os.PathLike[str], *, max_bytes: int | None, progress: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, numbered from 1, without their ends: plain, gzip or bzip2, told by content.

    Parameters
    ----------
    path
        The file.
    max_bytes
        How much it may hold when unpacked; ``None`` for no limit.
    progress
        Whether a bar shows how much of the file is read, on a terminal.

    Raises
    ------
    FileError
        No file, one of SQLite, one that does not unpack to its end, holds too much, or has a line of more than 64 MB.
    """
    path, n_bytes = Source.at(path, max_bytes).path, 0
    size = path.stat().st_size
    with (
        path.open("rb") as raw,
        _unpacked(raw) as file,
        bar(None, path.name, shown=progress, total=size, unit="B", unit_scale=True, delay=2) as shown,
    ):
        number = 0
        while line := _next(path, file, number + 1):
            number += 1
            n_bytes += len(line)
            if number == 1 and line.startswith(SQLITE):
                raise FileError(path, f"is a SQLite file, not one of lines; {_remedy(path)}")
            if max_bytes is not None and n_bytes > max_bytes:
                raise FileError(
                    path, f"holds more than {max_bytes:,} bytes when unpacked; pass max_bytes=None to read all"
                )
            shown.update(raw.tell() - shown.n)
            yield number, (line if number > 1 else line.removeprefix(BOM)).rstrip(b"\r\n")


def tool_of(path: Path) -> str:
    """What unpacks a file; empty where it is not packed."""
    with path.open("rb") as file:
        start = file.read(3)
    return next((tool for magic, tool in _PACKED.items() if start.startswith(magic)), "")


def _remedy(path: Path) -> str:
    tool = tool_of(path)
    return f"it is packed, too: unpack it first ({tool})" if tool else reader_of(path)


def _unpacked(raw: BinaryIO) -> Any:
    magic = raw.read(3)
    raw.seek(0)
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)
    return bz2.BZ2File(raw) if magic == _BZ2 else nullcontext(raw)


def _next(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        line = file.readline(MAX_LINE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            path, f"cannot be read to its end ({error}): fetch or pack the file again", line=number
        ) from error
    if len(line) > MAX_LINE:
        raise FileError(path, f"has a line of more than {MAX_LINE:,} bytes; wanted an entity a line", line=number)
    return line
