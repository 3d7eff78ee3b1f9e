"""Runs in several files, and Arrow's datasets."""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import FileError, InputError, examples
from vbterrier.frames.contracts import is_arrow_dataset
from vbterrier.frames.files.blocks import KEYS, READ, require_alike
from vbterrier.frames.files.loading import is_dataset, is_read_whole
from vbterrier.frames.files.reading import run_table
from vbterrier.frames.files.source import Source, is_folder, is_there
from vbterrier.frames.systems import columns_of_systems

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

# Batches that Arrow reads ahead; more would take the memory that ``memory=`` limits.
_READAHEAD_BATCHES = 1
_BLOCK_ROWS = 1 << 16


def is_parts(run: Any) -> bool:
    """Return True if a run is given by paths."""
    if isinstance(run, (list, tuple)):
        return bool(run) and all(isinstance(each, (str, os.PathLike)) for each in run)
    return isinstance(run, (str, os.PathLike))


def is_in_files(run: Any) -> bool:
    """Return True if a run is given by paths or as a dataset, which can be read in blocks."""
    return is_parts(run) or is_arrow_dataset(run)


def is_table(run: Any) -> bool:
    """Return True if a run is a single file that cannot be read in blocks."""
    return isinstance(run, (str, os.PathLike)) and Path(run).is_file() and is_read_whole(Source.at(run, None))


def run_paths(run: Any) -> tuple[Path, ...]:
    """Return the files of one run, given as a path, several paths, a folder or a pattern such as ``run/*.gz``.

    Files that other programs put beside the parts are left out: names that begin with a dot or an underscore, such as
    ``_SUCCESS``, and checksums (``.crc``).
    """
    if isinstance(run, (list, tuple)):
        paths = [part for each in run for part in run_paths(each)]
    else:
        path = Path(run)
        try:
            if path.is_dir():
                paths = sorted(each for each in path.iterdir() if each.is_file() and not _is_marker(each))
            elif _is_pattern(run):
                # Path.glob reads `a**` and `**` in another way since Python 3.13.
                matches = glob.glob(str(run), recursive=True)  # noqa: PTH207
                paths = sorted(each for each in map(Path, matches) if each.is_file() and not _is_marker(each))
            else:
                paths = [path]
        except (OSError, ValueError) as error:
            # A folder without permission to read, a name that is too long.
            raise FileError(run, f"cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if not paths:
        raise InputError(
            f"runs: no file in {str(run)!r}; name files, a folder that holds some, or a pattern for them; folders of "
            "partitions are read by pyarrow.dataset.dataset(folder, partitioning='hive')"
        )
    for each in paths:
        if each.exists() and not each.is_file():
            raise FileError(each, "is a pipe or a device, and the parts of a run are read more than once: write a file")
        Source.at(each, None)
    return tuple(paths)


def independent_parts(run: Any) -> tuple[Any, ...]:
    """Return the parts of one run that other processes can read: absolute paths, or datasets of one file each.

    Other datasets, such as filtered ones and those in memory, have no such parts.
    """
    if is_parts(run):
        return tuple(path.absolute() for path in run_paths(run))
    if type(run).__name__ != "FileSystemDataset":
        return ()
    try:
        fragments = list(run.get_fragments())
    except ValueError:
        # Arrow does not divide a filtered dataset.
        return ()
    return tuple(type(run)([each], run.schema, run.format, run.filesystem) for each in fragments)


def _is_marker(path: Path) -> bool:
    return path.name.startswith((".", "_")) or path.suffix == ".crc"


def _is_pattern(run: str | os.PathLike[str]) -> bool:
    return glob.has_magic(str(run)) and not is_there(run)


def table_of_parts(run: Any, others: Container[str] | None = None) -> pd.DataFrame:
    """Read the table of a run from its :func:`run_paths`, with ``others``, by default all columns."""
    if isinstance(run, (str, os.PathLike)) and (is_dataset(run) or not (is_folder(run) or _is_pattern(run))):
        return run_table(run, others=others)
    paths = run_paths(run)
    frames = [run_table(path, others=others) for path in paths]
    for path, frame in zip(paths, frames, strict=True):
        require_alike(path, list(frame.columns), list(frames[0].columns))
    return pd.concat(frames, ignore_index=True)


@contextmanager
def run_files(name: str, run: Any, system: str | None) -> Iterator[tuple[Path, ...]]:
    """The files of a run that is read in blocks.

    The columns that are needed of a dataset are copied to a temporary file in bounded memory, on any file system,
    format and partitions. ``system``: as in :func:`vbterrier.frames.systems.split_systems`.
    """
    import pyarrow.parquet as pq

    if not is_arrow_dataset(run):
        yield run_paths(run)
        return
    names = run.schema.names
    if lacking := [key for key in KEYS if key not in names]:
        raise InputError(
            f"run {name!r}: the dataset has no column {lacking[0]!r}, found {examples(names)}; rename "
            "columns when it is written, or leave out memory="
        )
    needed = {*KEYS, *READ, *columns_of_systems(names, system)}
    scanner = run.scanner(
        columns=[column for column in names if column in needed],
        batch_size=_BLOCK_ROWS,
        batch_readahead=_READAHEAD_BATCHES,
        fragment_readahead=_READAHEAD_BATCHES,
    )
    with TemporaryDirectory(prefix="vbterrier-") as folder:
        path = Path(folder, "dataset.parquet")
        with pq.ParquetWriter(path, scanner.projected_schema) as writer:
            for batch in scanner.to_batches():
                writer.write_batch(batch)
        yield (path,)
