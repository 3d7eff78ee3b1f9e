"""Readers of runs, qrels, topics, intents, tags, answers, mentions and values."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import FileError
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.files.source import IDS, Layout, MisfitError, Source, shown, split
from vbterrier.frames.files.tables import (
    answers_layout,
    documents_layout,
    intents_layout,
    mentions_layout,
    parquet_table,
    qrels_layout,
    require_columns,
    run_layout,
    tags_layout,
    text_table,
    topics_layout,
)
from vbterrier.frames.files.writing import write_table
from vbterrier.log import timed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from pathlib import Path

    from vbterrier.annotations import StrPath


_MOST = 1_000


def is_json(line: bytes) -> bool:
    """Whether a first line begins an object."""
    return line.lstrip()[:1] == b"{"


def json_frame(source: Source, wanted: Sequence[str]) -> pd.DataFrame:
    """Read one object a line; members that some lack are missing there.

    Parameters
    ----------
    source
        The file.
    wanted
        Members that every object must have, as text; a whole number is taken as its digits.

    Raises
    ------
    FileError
        Names the line that is no object, or lacks a member.
    """
    rows, members = [], dict.fromkeys(wanted)
    for number, line in source.lines():
        if line.strip():
            row = _object(source, number, line)
            members |= dict.fromkeys(row)
            if len(members) > _MOST:
                # Each is a column of all rows: few bytes would become much memory.
                raise FileError(source.path, f"has more than {_MOST:,} different members; nest them", line=number)
            rows.append(row | {name: _text(source, number, row, name) for name in wanted})
    try:
        return pd.DataFrame(rows)
    except OverflowError:
        # pandas 2 wants a float of every whole number.
        return pd.DataFrame(rows, dtype=object)


def _object(source: Source, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode())
        if b"\\u" in line:
            # Half a surrogate pair can be spelt in JSON, but is no text.
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise FileError(source.path, f"is no JSON ({error}): {shown(line)}; repair the line", line=number) from error
    if not isinstance(found, dict):
        raise FileError(source.path, f"wanted an object in each line, found {shown(line)}", line=number)
    return found


def _text(source: Source, number: int, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or (not value and name in IDS):
        there = "missing" if name not in row else f"{value!r}"
        raise FileError(
            source.path, f"member {name!r} is {there}, wanted text; found {', '.join(row) or 'none'}", line=number
        )
    return value


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


_ANSWER_COLUMNS = ("qid", "entity_id")


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
        table = parquet_table(source, _ANSWER_COLUMNS, ("score",))
    else:
        table = text_table(source, answers_layout(source.path, *source.first()))
    others = [name for name in table.column_names if name not in _ANSWER_COLUMNS]
    frame: pd.DataFrame = table.select([*_ANSWER_COLUMNS, *others]).to_pandas()
    return frame


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
        A frame with qid, docno and mention, or a :class:`vbterrier.design.QuerySample`; all other columns are
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


_VALUE_COLUMNS = ("name", "qid", "measure", "value")


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
        table = parquet_table(source, _VALUE_COLUMNS, ("value",))
    else:
        table = text_table(source, _layout(source.path, *source.first()))
    frame: pd.DataFrame = table.select(list(_VALUE_COLUMNS)).to_pandas()
    return frame


def _layout(path: Path, number: int, line: bytes) -> Layout:
    """The layout that the header line tells."""
    separator = "\t" if b"\t" in line else ","
    try:
        names = tuple(split(line, separator, blanks=False))
    except MisfitError as error:
        raise FileError(path, str(error), line=number) from error
    require_columns(path, names, _VALUE_COLUMNS, line=number)
    return Layout(names, ("value",), separator, blanks=False, header=number)
