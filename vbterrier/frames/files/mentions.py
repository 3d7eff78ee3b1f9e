"""Reading mentions and writing the queries drawn from them."""

from __future__ import annotations

from vbterrier.frames.files.reading import MAX_BYTES

from typing import TYPE_CHECKING, Any

from vbterrier.frames.contracts import frame_of
from vbterrier.frames.files.first_line import mentions_layout
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import parquet_table, text_table
from vbterrier.frames.files.writing import write_table

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

_WANTED = ("docno", "mention")
_QUERIES = ("qid", *_WANTED)


def read_mentions(path: str | PathLike[str], *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the mentions of documents: tab- or comma-separated text, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``docno<tab>mention``, and may have a third field,
    ``entity_id``.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``docno`` and ``mention``, then the others of the file, such as ``entity_id``: text, or what a Parquet
        file holds.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "mentions.tsv")
    >>> _ = path.write_text("d1\tParis, Texas\tQ830149\nd2\tM. Dupont\tNIL\n")
    >>> read_mentions(path).values.tolist()
    [['d1', 'Paris, Texas', 'Q830149'], ['d2', 'M. Dupont', 'NIL']]
    """
    source = Source.at(path, max_bytes)
    if source.is_parquet:
        table = parquet_table(source, _WANTED, ())
    else:
        table = text_table(source, mentions_layout(source.path, *source.first()))
    others = [name for name in table.column_names if name not in _WANTED]
    frame: pd.DataFrame = table.select([*_WANTED, *others]).to_pandas()
    return frame


def write_queries(queries: Any, path: str | PathLike[str]) -> None:
    r"""Write queries as tab-separated text with a header line, packed when the name ends in ``.gz``.

    Parameters
    ----------
    queries
        A frame with qid, docno and mention, or a :class:`vbterrier.queryset.QuerySample`; all other columns are
        written behind these, a missing value as nothing.
    path
        The file; one that exists is replaced once the new one is complete.

    Raises
    ------
    InputError
        A missing column or id, a tab or a line end in a text.
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "queries.tsv")
    >>> import pandas as pd
    >>> write_queries(pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "mention": ["Paris"], "prob": [0.25]}), path)
    >>> path.read_text().splitlines()
    ['qid\tdocno\tmention\tprob', 'q1\td1\tParis\t0.25']
    """
    frame = frame_of(getattr(queries, "frame", queries), "queries")
    others = [name for name in frame.columns if name not in _QUERIES]
    gaps = [name for name in others if name != "entity_id" and frame[name].isna().any()]
    full = frame.assign(**{name: frame[name].astype(object).where(frame[name].notna(), "") for name in gaps})
    write_table(full, path, "queries", _QUERIES, others)
