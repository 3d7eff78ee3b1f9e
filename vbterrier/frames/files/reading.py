"""Reading TREC runs and qrels, candidate intents and tags. Ids stay the text that they are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier.frames.files.first_line import (
    documents_layout,
    intents_layout,
    qrels_layout,
    run_layout,
    tags_layout,
    topics_layout,
)
from vbterrier.frames.files.json_lines import is_json, json_frame
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import parquet_table, text_table
from vbterrier.log import timed

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from pathlib import Path

    import pandas as pd

    from vbterrier.frames.files.layout import Layout

    StrPath = str | PathLike[str]

_LOG = logging.getLogger(__name__)
MAX_BYTES = 64 * 2**30


def read_run(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a run: a TREC file, plain or gzip, or a Parquet file.

    A line is ``qid Q0 docno rank score tag``. Every line may lack the tag, or ``Q0``; fields stand apart by any
    white space.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked, against files made to fill the memory; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``docno`` (text), ``score`` (float64), ``rank`` (int64, as in the file) and ``name`` (the run
        tag; not there when the file has none), rows as in the file. Parquet files keep their other columns.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy. Scores may be
        infinite, but not NaN.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "bm25.run")
    >>> _ = path.write_text("q1 Q0 007 1 2.5 bm25\nq1 Q0 NA 2 inf bm25\n")
    >>> read_run(path).values.tolist()
    [['q1', '007', 2.5, 1, 'bm25'], ['q1', 'NA', inf, 2, 'bm25']]
    """
    return _read(path, max_bytes, _RUN)


def read_qrels(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read judgments: a TREC file, plain or gzip, or a Parquet file.

    A line is ``qid iteration docno label``; in judgments of diversity the second field is the subtopic.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``iteration``, ``docno`` (text) and ``label`` (int64), rows as in the file. A Parquet file
        without ``iteration`` gets "0".

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "qrels.txt")
    >>> _ = path.write_text("101 1 d7 2\n101 2 d7 -1\n")
    >>> read_qrels(path).values.tolist()
    [['101', '1', 'd7', 2], ['101', '2', 'd7', -1]]
    """
    return _read(path, max_bytes, _QRELS)


def read_topics(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read queries: tab- or comma-separated text, JSON lines, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``qid<tab>query``. TREC's XML topics are read with
    ``pt.io.read_topics``.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid`` and ``query``, then the others of the file, such as ``constraints``: text, or what JSON holds.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "topics.tsv")
    >>> _ = path.write_text("007\tJordan achievements\n")
    >>> read_topics(path).values.tolist()
    [['007', 'Jordan achievements']]
    """
    return _read(path, max_bytes, _TOPICS)


def read_documents(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read texts of documents: tab- or comma-separated text, JSON lines, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``docno<tab>text``.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Column ``docno``, then the others of the file.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "documents.jsonl")
    >>> _ = path.write_text('{"docno": "d1", "text": "Paris, France"}\n')
    >>> read_documents(path).values.tolist()
    [['d1', 'Paris, France']]
    """
    return _read(path, max_bytes, _DOCUMENTS)


def read_intents(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read candidate intents: tab- or comma-separated text, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``qid entity_id prob``, apart by white space. Values between
    commas may stand in double quotes; between tabs a quote is a letter like any other.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``entity_id`` (text) and ``prob`` (float64), then the others of the file: ``score`` as float64,
        any other as text.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy. Whether probabilities
        sum to 1 is for those who use them to check.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "intents.tsv")
    >>> _ = path.write_text("qid\tentity_id\tprob\tname\nq1\tQ90\t0.75\tParis, the city\n")
    >>> read_intents(path).values.tolist()
    [['q1', 'Q90', 0.75, 'Paris, the city']]
    """
    return _read(path, max_bytes, _INTENTS)


def read_tags(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the entities of documents: tab- or comma-separated text, plain or gzip, or a Parquet file.

    A header line names the columns; without one, a line is ``docno entity_id`` or ``docno entity_id weight``, apart by
    white space.

    Parameters
    ----------
    path
        The file. What it is, is told by its content, not by its name.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``docno``, ``entity_id`` (text) and ``weight`` (float64; 1 when the file has none), then the others of
        the file as text, such as ``qid``.

    Raises
    ------
    FileError
        The file cannot be read; names the first line to blame, what was wanted and the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tags.txt")
    >>> _ = path.write_text("d1 Q90\nd1 Q167646\n")
    >>> read_tags(path).values.tolist()
    [['d1', 'Q90', 1.0], ['d1', 'Q167646', 1.0]]
    """
    return _read(path, max_bytes, _TAGS)


@dataclass(frozen=True)
class _Kind:
    """What a frame is made of: its columns in order, those of numbers, what stands in one that is missing, and whether
    the file may be JSON lines.
    """

    columns: tuple[str, ...]
    numeric: tuple[str, ...]
    layout: Callable[[Path, int, bytes], Layout]
    defaults: dict[str, Any] = field(default_factory=dict)
    lines: bool = False


_RUN = _Kind(("qid", "docno", "score", "rank"), ("score", "rank"), run_layout)
_QRELS = _Kind(("qid", "iteration", "docno", "label"), ("label",), qrels_layout, {"iteration": "0"})
_TOPICS = _Kind(("qid", "query"), (), topics_layout, lines=True)
_DOCUMENTS = _Kind(("docno",), (), documents_layout, lines=True)
_INTENTS = _Kind(("qid", "entity_id", "prob"), ("prob", "score"), intents_layout)
_TAGS = _Kind(("docno", "entity_id", "weight"), ("weight",), tags_layout, {"weight": 1.0})


def _read(path: StrPath, max_bytes: int | None, kind: _Kind) -> pd.DataFrame:
    with timed(_LOG, "read %s", path) as found:
        frame = _frame(path, max_bytes, kind)
        found.append(f"{len(frame):,} rows")
    return frame


def _frame(path: StrPath, max_bytes: int | None, kind: _Kind) -> pd.DataFrame:
    source = Source.at(path, max_bytes)
    if source.is_parquet:
        wanted = [name for name in kind.columns if name not in kind.defaults]
        table = parquet_table(source, wanted, kind.numeric)
    else:
        first = source.first()
        if kind.lines and is_json(first[1]):
            found = json_frame(source, kind.columns)
            return found[[*kind.columns, *(name for name in found.columns if name not in kind.columns)]]
        table = text_table(source, kind.layout(source.path, *first))
    for name, value in kind.defaults.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.repeat(value, len(table)))
    others = [name for name in table.column_names if name not in kind.columns]
    frame: pd.DataFrame = table.select([*kind.columns, *others]).to_pandas()
    return frame
