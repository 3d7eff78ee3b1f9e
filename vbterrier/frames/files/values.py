"""Reading values: what each system scores on each topic."""

from __future__ import annotations

from vbterrier.frames.files.reading import MAX_BYTES

from typing import TYPE_CHECKING

from vbterrier.errors import FileError
from vbterrier.frames.files.first_line import require_columns
from vbterrier.frames.files.layout import Layout, MisfitError, split
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import parquet_table, text_table

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    import pandas as pd

_COLUMNS = ("name", "qid", "measure", "value")


def read_values(path: str | PathLike[str], *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a V frame: comma- or tab-separated text with a header line, plain or gzip, or a Parquet file.

    ``vbterrier score --per-query --format csv`` writes one, and so does ``to_csv`` of what
    ``pt.Experiment(perquery=True)`` gives.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``name``, ``qid``, ``measure`` (text) and ``value`` (float64), rows as in the file.

    Raises
    ------
    FileError
        The file cannot be read, or its first line does not name these columns; names the first line to blame.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "per_query.csv")
    >>> _ = path.write_text("name,qid,measure,value\nbm25,007,nDCG@10,0.5\n")
    >>> read_values(path).values.tolist()
    [['bm25', '007', 'nDCG@10', 0.5]]
    """
    source = Source.at(path, max_bytes)
    if source.is_parquet:
        table = parquet_table(source, _COLUMNS, ("value",))
    else:
        table = text_table(source, _layout(source.path, *source.first()))
    frame: pd.DataFrame = table.select(list(_COLUMNS)).to_pandas()
    return frame


def _layout(path: Path, number: int, line: bytes) -> Layout:
    """The layout that the header line tells."""
    separator = "\t" if b"\t" in line else ","
    try:
        names = tuple(split(line, separator, blanks=False))
    except MisfitError as error:
        raise FileError(path, str(error), line=number) from error
    require_columns(path, names, _COLUMNS, line=number)
    return Layout(names, ("value",), separator, blanks=False, header=number)
