"""Reading answers: the entity that each query is linked to, of a gold standard or a system."""

from __future__ import annotations

from vbterrier.frames.files.reading import MAX_BYTES

from typing import TYPE_CHECKING

from vbterrier.frames.files.first_line import answers_layout
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import parquet_table, text_table

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

_COLUMNS = ("qid", "entity_id")


def read_answers(path: str | PathLike[str], *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read which entity each query is linked to: tab- or comma-separated text, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``qid entity_id`` or ``qid entity_id score``, apart by tabs
    or blanks. A TREC run or TREC qrels are read too, their documents being entities.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid`` and ``entity_id`` (text), then the others of the file: ``score`` as float64; of TREC files
        ``rank``, or ``iteration`` and ``label``; any other as text.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "gold.tsv")
    >>> _ = path.write_text("qid\tentity_id\nq1\tNew York\nq2\tNIL\n")
    >>> read_answers(path).values.tolist()
    [['q1', 'New York'], ['q2', 'NIL']]
    """
    source = Source.at(path, max_bytes)
    if source.is_parquet:
        table = parquet_table(source, _COLUMNS, ("score",))
    else:
        table = text_table(source, answers_layout(source.path, *source.first()))
    others = [name for name in table.column_names if name not in _COLUMNS]
    frame: pd.DataFrame = table.select([*_COLUMNS, *others]).to_pandas()
    return frame
