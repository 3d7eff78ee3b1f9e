"""Readers of runs, qrels, topics, subtopics, documents, intents, tags, answers, mentions and values.

Each kind of file is declared once, as a ``FileKind``; one reader serves all of them.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np
import pandas as pd

from vbterrier.errors import FileError, examples, printable, warn
from vbterrier.frames.contracts import near_miss, treat_negative
from vbterrier.frames.files.source import (
    COMMENT,
    IDS,
    REMARK,
    WHOLE,
    Layout,
    MisfitError,
    RepeatedMemberError,
    Source,
    json_of,
    shown,
    split,
)
from vbterrier.frames.files.tables import parquet_table, require_columns, text_table, workbook_as_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from vbterrier.annotations import StrPath


_LOG = logging.getLogger(__name__)
MAX_BYTES = 64 * 2**30
_MAX_MEMBERS = 1_000
_PIECE = 1 << 20
# The prefix of ids of ir_datasets, and the variable that sets the timeout of its downloads.
_IR_DATASETS, _TIMEOUT = "irds:", "IR_DATASETS_DL_TIMEOUT"
# The beginning of an object of JSON lines; a query id may be a brace.
_OBJECT = re.compile(rb'\s*\{\s*(["}]|$)')


def read_run(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a run: a TREC or MS MARCO file, a table with a header line, JSON lines, a spreadsheet, or Parquet.

    A line of a TREC file is ``qid Q0 docno rank score tag``. All lines may lack the tag, or all may lack ``Q0``; any
    white space separates fields. A line of an MS MARCO file is ``qid docno rank``, with ranks that rise from 1 (or 0)
    within each topic. The header of a table (values between commas, semicolons or tabs), the members of an object of
    JSON lines, or the first row of the first sheet of an .xlsx file (extra ``xlsx``), name ``qid``, ``docno`` (also:
    query id, topic id; doc id, document id, corpus id, pid) and ``score`` or ``rank``. Without a score, documents are
    in the order of their ranks; without both, in the order of rows, with a warning. Text may be compressed (gzip, bz2,
    xz or zstd). Lines of TREC and MS MARCO files that begin with ``#``, such as the header of an ir_metadata file, are
    comments, as in trec_eval 10; ids may hold ``#`` elsewhere.

    Parameters
    ----------
    path
        The file. Its content decides how it is read, not its name.
    max_bytes
        Limit of the unpacked size, against files made to fill memory; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``docno`` (text), ``score`` (float64), ``rank`` (int64, as in the file) and ``name`` (the run
        tag; absent if the file has none), rows as in the file. Tables, JSON lines, spreadsheets and Parquet files keep
        their other columns, and those without ranks have none.

    Raises
    ------
    FileError
        The file cannot be read; names the first invalid line, what was wanted and the remedy. Scores may be infinite,
        but not NaN.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "bm25.run")
    >>> _ = path.write_text("q1 Q0 007 1 2.5 bm25\nq1 Q0 NA 2 inf bm25\n")
    >>> read_run(path).values.tolist()
    [['q1', '007', 2.5, 1, 'bm25'], ['q1', 'NA', inf, 2, 'bm25']]
    """
    return _read(path, max_bytes, RUN)


def read_qrels(path: StrPath, *, negative: str = "nonrelevant", max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read qrels: a TREC file, a table with a header line, JSON lines, plain or compressed, or a Parquet file.

    A line is ``qid iteration docno label``; in diversity qrels the second field is the subtopic. All lines may lack the
    iteration, and lines that begin with ``#`` are comments, as in trec_eval 10. The header of a table (values between
    commas, semicolons or tabs), or the members of an object of JSON lines, name ``qid``, ``docno`` (names as in
    :func:`read_run`), ``label`` (also: relevance, grade, score) and, if the file has it, ``iteration`` (also:
    subtopic).

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors; or the id of a dataset of ir_datasets, as
        ``"irds:msmarco-passage/trec-dl-2019/judged"``, if its files are on this computer: nothing is downloaded.
    negative
        Labels below 0 are those of ``"nonrelevant"`` documents, or mean ``"unjudged"`` (-1 in samples, -2 for spam) and
        are dropped; see :func:`vbterrier.frames.contracts.treat_negative`.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``iteration``, ``docno`` (text) and ``label`` (int64), rows as in the file. Files without
        ``iteration`` get "0".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "qrels.txt")
    >>> _ = path.write_text("101 1 d7 2\n101 2 d7 -1\n")
    >>> read_qrels(path).values.tolist()
    [['101', '1', 'd7', 2], ['101', '2', 'd7', -1]]
    """
    return treat_negative(_answered(path, _read(path, max_bytes, QRELS)), negative)


def read_topics(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read queries: tab- or comma-separated text or JSON lines, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``qid<tab>query``. ``pt.io.read_topics`` reads TREC's XML
    topics.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_qrels`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid`` and ``query``, then the other columns of the file, such as ``constraints``: text, or the values
        of the JSON members.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "topics.tsv")
    >>> _ = path.write_text("007\tJordan achievements\n")
    >>> read_topics(path).values.tolist()
    [['007', 'Jordan achievements']]
    """
    return _read(path, max_bytes, TOPICS)


def read_documents(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the texts of documents: tab- or comma-separated text or JSON lines, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``docno<tab>text``.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Column ``docno``, then the other columns of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "documents.jsonl")
    >>> _ = path.write_text('{"docno": "d1", "text": "Paris, France"}\n')
    >>> read_documents(path).values.tolist()
    [['d1', 'Paris, France']]
    """
    return _read(path, max_bytes, DOCUMENTS)


def read_intents(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read candidate intents: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``qid entity_id prob``, separated by white space. Values
    between commas may be enclosed in double quotes; between tabs a quote is an ordinary character. The subtopics of a
    TREC Web topic file (XML) are intents of equal probabilities.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors. The reader does not check that probabilities sum to 1.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``entity_id`` (text) and ``prob`` (float64), then the other columns of the file: ``score`` as
        float64, the rest as text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "intents.tsv")
    >>> _ = path.write_text("qid\tentity_id\tprob\tname\nq1\tQ90\t0.75\tParis, the city\n")
    >>> read_intents(path).values.tolist()
    [['q1', 'Q90', 0.75, 'Paris, the city']]
    """
    return _read(path, max_bytes, INTENTS)


def read_subtopics(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the subtopics of topics: a TREC Web topic file (XML), delimited text (also compressed), or a Parquet file.

    In XML, ``<topic number="1">`` contains ``<subtopic number="2" type="inf">text</subtopic>``. A header line of text
    names the columns; without one, a line is ``qid entity_id`` or ``qid entity_id prob``.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors; XML with a document type, which can define entities, is refused.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid`` and ``entity_id`` (the subtopic, as in the second field of diversity qrels); of XML ``name``
        (the text) and ``type``; else the other columns of the file, ``prob`` as float64.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "wt09.topics.full.xml")
    >>> topic = '<topic number="7"><query>air</query><subtopic number="1" type="nav"> Find it. </subtopic></topic>'
    >>> _ = path.write_text(f"<webtrack2009>{topic}</webtrack2009>")
    >>> read_subtopics(path).values.tolist()
    [['7', '1', 'Find it.', 'nav']]
    """
    return _read(path, max_bytes, SUBTOPICS)


def read_tags(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the entities of documents: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``docno entity_id`` or ``docno entity_id weight``, separated
    by white space.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``docno``, ``entity_id`` (text) and ``weight`` (float64; 1 if the file has none), then the other columns
        of the file as text, such as ``qid``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tags.txt")
    >>> _ = path.write_text("d1 Q90\nd1 Q167646\n")
    >>> read_tags(path).values.tolist()
    [['d1', 'Q90', 1.0], ['d1', 'Q167646', 1.0]]
    """
    return _read(path, max_bytes, TAGS)


def read_similarities(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read similarities (entity_id, other_id, similarity [, qid]) from a file with a header; see :func:`read_tags`."""
    return _read(path, max_bytes, SIMILARITIES)


def read_popularity(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read counts of entities (entity_id, count), such as page views, from a file with a header; see
    :func:`read_tags`.
    """
    return _read(path, max_bytes, POPULARITY)


def read_spellings(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read names of values of attributes (attribute, value, name) from a file with a header; see :func:`read_tags`."""
    return _read(path, max_bytes, SPELLINGS)


def read_answers(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the linked entity of each query: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``qid entity_id`` or ``qid entity_id score``, separated by
    tabs or blanks. TREC runs and TREC qrels over entities are also read.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid`` and ``entity_id`` (text), then the other columns of the file: ``score`` as float64; of TREC
        files ``rank``, or ``iteration`` and ``label``; the rest as text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "gold.tsv")
    >>> _ = path.write_text("qid\tentity_id\nq1\tNew York\nq2\tNIL\n")
    >>> read_answers(path).values.tolist()
    [['q1', 'New York'], ['q2', 'NIL']]
    """
    return _read(path, max_bytes, ANSWERS)


def read_mentions(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the mentions of documents: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``docno<tab>mention``, with an optional third field
    ``entity_id``.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``docno`` and ``mention``, then the other columns of the file, such as ``entity_id``: text, or the types
        of the Parquet file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "mentions.tsv")
    >>> _ = path.write_text("d1\tParis, Texas\tQ830149\nd2\tM. Dupont\tNIL\n")
    >>> read_mentions(path).values.tolist()
    [['d1', 'Paris, Texas', 'Q830149'], ['d2', 'M. Dupont', 'NIL']]
    """
    return _read(path, max_bytes, MENTIONS)


def read_labels(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the labels that a machine gave to documents: TREC qrels, text, JSON lines or Parquet, plain or compressed.

    A line of text is ``qid iteration docno grade`` or ``qid docno grade``, the grade being any number; a header line
    names the columns qid, docno and grade, and so does a Parquet file. CSV files, as LARA's, may have topic_id, doc_id,
    and the probabilities of grades, prob_0, prob_1, ..., or else annotation. An object of JSON lines has a query
    (``qid``, ``query_id`` or ``query``), a document (``docno``, ``doc_id``, ``docid`` or ``document``), and a number
    (``label``, ``grade``, ``relevance`` or UMBRELA's ``judgment``) or the probabilities of the grades 0, 1, ...
    (``probabilities`` or ``prob``: a list, or an object of grade and probability). A warning counts failed answers,
    which give no label: objects whose number is null, or with UMBRELA's ``result_status`` 0, whose judgment 0 is none.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``docno`` (text) and ``label`` (float64): the number, or the expected grade under the
        probabilities, which are divided by their sum.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "llm.jsonl")
    >>> _ = path.write_text('{"qid": 7, "docno": "d1", "label": 2}\n{"qid": 7, "docno": "d2", "prob": [0.25, 0.75]}\n')
    >>> read_labels(path).values.tolist()
    [['7', 'd1', 2.0], ['7', 'd2', 0.75]]
    """
    source = Source.at(path, max_bytes)
    if not (source.is_parquet or source.is_workbook) and _OBJECT.match(source.first()[1]):
        rows = [_json_label(source, number, row) for number, row in _answers(source, _LABEL_MEMBERS["label"])]
        return pd.DataFrame(rows, columns=["qid", "docno", "label"]).astype({"label": "float64"})
    if not source.is_parquet and not source.is_workbook and b"topic_id," in source.first()[1]:
        return _annotated(source)
    frame = _answered(path, _read(path, max_bytes, LABELS))
    return frame[["qid", "docno", "grade"]].rename(columns={"grade": "label"})


# UMBRELA's column, 0 for an answer without a judgment, whose judgment is then 0, too.
_STATUS = "result_status"
_FAILED = "answers of the judge failed and give no label"


def _answers(source: Source, labels: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of JSON lines with their numbers, without the failed answers of a judge, which are counted.

    An answer failed if its ``result_status`` is 0, or one of the members ``labels`` is null.
    """
    failed, n_answers = [], 0
    for number, line in source.lines():
        if line.strip():
            row = _json_object(source, number, line)
            n_answers += 1
            if str(row.get(_STATUS)) == "0" or any(name in row and row[name] is None for name in labels):
                failed.append(number)
            else:
                yield number, row
    if failed:
        warn(f"{printable(source.path)}: {len(failed)} of {n_answers} {_FAILED} (lines {examples(failed)})")


def _answered(path: StrPath, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table without the failed answers of a judge, which are counted."""
    if _STATUS not in frame.columns:
        return frame
    failed = frame[_STATUS].astype(str) == "0"
    if failed.any():
        warn(f"{printable(path)}: {int(failed.sum())} of {len(frame)} {_FAILED}")
    return frame[~failed].reset_index(drop=True)


def _annotated(source: Source) -> pd.DataFrame:
    """Labels of a CSV file with topic_id, doc_id, and prob_0, prob_1, ... or annotation."""
    number, line = source.first()
    names = split(line, ",", blanks=False)
    probs = [name for name in names if re.fullmatch(r"prob_\d+", name)]
    require_columns(source.path, names, ("topic_id", "doc_id", *([] if probs else ["annotation"])), line=number)
    words = [{"topic_id": "qid", "doc_id": "docno"}.get(name, name) for name in names]
    layout = Layout(tuple(words), tuple(probs or ["annotation"]), ",", blanks=False, header=number)
    frame = text_table(source, layout).to_pandas()
    label = frame["annotation"] if not probs else frame[probs] @ [int(name[5:]) for name in probs]
    total = frame[probs].sum(axis=1) if probs else 1.0
    bad = (frame[probs] < 0).any(axis=1) | ~(total > 0) if probs else pd.Series(False, frame.index)
    if bad.any():
        first = frame.loc[bad.idxmax()]
        message = f"document {first['docno']!r} of query {first['qid']!r}: wanted probabilities, from 0 to 1"
        raise FileError(source.path, message)
    return pd.DataFrame({"qid": frame["qid"], "docno": frame["docno"], "label": (label / total).astype("float64")})


_LABEL_MEMBERS = {
    "qid": ("qid", "query_id", "query"),
    "docno": ("docno", "doc_id", "docid", "document"),
    "label": ("label", "grade", "relevance", "judgment"),
    "probabilities": ("probabilities", "prob"),
}


def _json_label(source: Source, number: int, row: dict[str, Any]) -> tuple[str, str, float]:
    """The query, the document and the label of an object."""
    given = {what: next((name for name in names if name in row), "") for what, names in _LABEL_MEMBERS.items()}
    missing = [what for what in ("qid", "docno") if not given[what]]
    if not given["label"] and not given["probabilities"]:
        missing.append("label")
    if missing:
        names = ", ".join(_LABEL_MEMBERS[missing[0]])
        message = f"no member for the {missing[0]}: wanted one of {names}; found {', '.join(row) or 'none'}"
        raise FileError(source.path, message, line=number)
    qid, docno = (_json_text(source, number, row, given[what]) for what in ("qid", "docno"))
    what = given["label"] or given["probabilities"]
    label = _number(row[what]) if given["label"] else _expected(row[what])
    if label is None:
        wanted = "a finite number" if given["label"] else "a list of probabilities, or grades and probabilities"
        message = f"member {what!r} is {shown(repr(row[what]).encode())}, wanted {wanted}"
        raise FileError(source.path, message, line=number)
    return qid, docno, label


def read_nuggets(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the nuggets of answers with their assignments, JSON lines as AutoNuggetizer writes them.

    An object has ``qid``, ``nuggets`` (a list of objects with ``text``, ``importance``: vital or okay, and
    ``assignment``: support, partial_support or not_support; either may be failed), and for answers ``run_id``, for
    retrieved documents ``docid``. See :func:`vbterrier.intents.from_nuggets`.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns name (the system; "run" without run_id), qid, docno (the document, or ``run_id/qid`` for an answer),
        entity_id (the text of the nugget; a repeated one is numbered), importance, assignment: a row for each nugget.

    References
    ----------
    Pradeep et al., Initial nugget evaluation results for the TREC 2024 RAG track, 2024.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "assigned.jsonl")
    >>> nugget = '{"text": "Paris", "importance": "vital", "assignment": "support"}'
    >>> _ = path.write_text('{"qid": "7", "run_id": "mine", "nuggets": [' + nugget + "]}\n")
    >>> read_nuggets(path).values.tolist()
    [['mine', '7', 'mine/7', 'Paris', 'vital', 'support']]
    """
    source, rows = Source.at(path, max_bytes), []
    for number, line in source.lines():
        if not line.strip():
            continue
        row = _json_object(source, number, line)
        qid = _json_text(source, number, row, "qid")
        name = _json_text(source, number, row, "run_id") if "run_id" in row else "run"
        docno = _json_text(source, number, row, "docid") if "docid" in row else f"{name}/{qid}"
        nuggets, seen = row.get("nuggets"), Counter[str]()
        if not isinstance(nuggets, list) or not all(isinstance(nugget, dict) for nugget in nuggets):
            raise FileError(source.path, "member 'nuggets' is no list of objects", line=number)
        for nugget in nuggets:
            text = _json_text(source, number, nugget, "text")
            for member, legal in NUGGET_MEMBERS.items():
                if nugget.get(member) not in legal:
                    message = f"nugget {text!r}: {member} is {nugget.get(member)!r}, wanted one of {', '.join(legal)}"
                    raise FileError(source.path, message, line=number)
            seen[text] += 1
            entity = text if seen[text] == 1 else f"{text} #{seen[text]}"
            rows.append((name, qid, docno, entity, nugget["importance"], nugget["assignment"]))
    return pd.DataFrame(rows, columns=["name", "qid", "docno", "entity_id", *NUGGET_MEMBERS])


FAILED = "failed"  # an answer of a judge that could not be read
NUGGET_MEMBERS = {
    "importance": ("vital", "okay", FAILED),
    "assignment": ("support", "partial_support", "not_support", FAILED),
}


def _number(value: Any, *, finite: bool = True) -> float | None:
    """Return a number, ``None`` for NaN, infinity if ``finite``, and anything else; text may hold a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) or (math.isinf(found) and not finite) else None


def _expected(given: Any) -> float | None:
    """Return the expected grade under probabilities, ``None`` for anything else."""
    pairs = (
        list(enumerate(given)) if isinstance(given, list) else list(given.items()) if isinstance(given, dict) else []
    )
    grades, probs = [_number(grade) for grade, _ in pairs], [_number(prob) for _, prob in pairs]
    known = [(grade, prob) for grade, prob in zip(grades, probs, strict=True) if grade is not None and prob is not None]
    total = sum(prob for _, prob in known)
    if len(known) < len(pairs) or total <= 0 or min(prob for _, prob in known) < 0:
        return None
    return sum(grade * prob for grade, prob in known) / total


def read_annotations(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a sheet of annotations: comma- or tab-separated text with a header line, JSON lines, or a Parquet file.

    Parameters
    ----------
    path
        A file of :meth:`vbterrier.evaluate.annotation.AnnotationTask.write`, with labels.
    max_bytes
        Limit of the unpacked size; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``entity_id`` and ``label`` (text, empty where there is none), then the other columns.

    Raises
    ------
    FileError
        The file cannot be read, or lacks a column; names the first invalid line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ann.csv")
    >>> _ = path.write_text('qid,query,entity_id,label\n007,"Jordan, achievements",Q41421,1\n')
    >>> read_annotations(path).values.tolist()
    [['007', 'Q41421', '1', 'Jordan, achievements']]
    """
    return _read(path, max_bytes, ANNOTATIONS)


def read_values(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a V frame: comma- or tab-separated text with a header line, plain or compressed, or a Parquet file.

    ``vbterrier score --per-query --format csv`` writes such a file, and so does ``to_csv`` of the result of
    ``pt.Experiment(perquery=True)``.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``name``, ``qid``, ``measure`` (text) and ``value`` (float64), and ``dataset`` if the file has it; rows
        as in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "per_query.csv")
    >>> _ = path.write_text("name,qid,measure,value\nbm25,007,nDCG@10,0.5\n")
    >>> read_values(path).values.tolist()
    [['bm25', '007', 'nDCG@10', 0.5]]
    """
    return _read(path, max_bytes, VALUES)


def read_groups(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read the group of each run: lines of name and group, or a table with these columns."""
    return _read(path, max_bytes, GROUPS)


def read_costs(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read the cost of a judgment in each topic: lines of qid and cost, or a table with these columns."""
    return _read(path, max_bytes, COSTS)


class _WebTopics:
    """Handlers of an XML parser that collect the subtopics of a TREC Web topic file."""

    def __init__(self, source: Source) -> None:
        self._source, self._topic, self._text = source, "", list[str]()
        self.rows: list[list[str]] = []
        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = self._text.append, self._refuse

    def _fail(self, message: str) -> None:
        raise FileError(self._source.path, message, line=self.parser.CurrentLineNumber)

    def _start(self, tag: str, given: dict[str, str]) -> None:
        if tag not in ("topic", "subtopic"):
            return
        number = given.get("number", "").strip()
        if not number:
            self._fail(f'<{tag}> has no number; wanted <{tag} number="1">')
        if tag == "topic":
            self._topic = number
        elif self._topic:
            self._text.clear()
            self.rows.append([self._topic, number, "", given.get("type", "")])
        else:
            self._fail('a subtopic outside a topic; wanted <topic number="1"> around it')

    def _end(self, tag: str) -> None:
        if tag == "subtopic":
            self.rows[-1][2] = " ".join("".join(self._text).split())
        elif tag == "topic":
            self._topic = ""

    def _refuse(self, *_: Any) -> None:
        self._fail("has a document type, which can define entities of any size; remove the line <!DOCTYPE ...>")


def _web_topics(source: Source) -> pd.DataFrame:
    """Subtopics of a TREC Web topic file: qid, entity_id, name, type."""
    found = _WebTopics(source)
    try:
        with source.stream() as stream:
            while piece := stream.read(_PIECE):
                found.parser.Parse(piece, False)
        found.parser.Parse(b"", True)
    except expat.ExpatError as error:
        message = f"is not XML ({expat.ErrorString(error.code)}); repair the line"
        raise FileError(source.path, message, line=error.lineno) from error
    if not found.rows:
        raise FileError(source.path, 'has no subtopic; wanted <subtopic number="1"> inside <topic number="1">')
    return pd.DataFrame(found.rows, columns=["qid", "entity_id", "name", "type"])


def _equal_intents(source: Source) -> pd.DataFrame:
    """Subtopics of a TREC Web topic file as intents of equal probabilities."""
    frame = _web_topics(source)
    frame.insert(2, "prob", 1 / frame.groupby("qid")["qid"].transform("size"))
    return frame


def run_layout(path: Path, number: int, line: bytes) -> Layout:
    """Return the layout of a TREC run; of five fields, find the one that is missing."""
    whole = Layout(
        _RUN_FIELDS,
        ("rank", "score"),
        _white(line),
        remedies={
            4: "judgments are read with read_qrels",
            5: "five fields are read when every line lacks the run tag (qid Q0 docno rank score) "
            "or Q0 (qid docno rank score tag), rank being a whole number and score a number",
            7: "the run tag or an id seems to hold a blank: replace it",
        },
        form="qid Q0 docno rank score tag",
    )
    fields = line.split()
    if is_ranked(line):
        return replace(
            whole, names=("qid", "docno", "rank"), numeric=("rank",), kind="a run of MS MARCO, qid docno rank"
        )
    if len(fields) == 3:  # noqa: PLR2004 - two ids and a number
        remedy = (
            "three fields are read as qid docno rank (MS MARCO), ranks from 1; name other columns in a first line, "
        )
        return replace(whole, remedies={**whole.remedies, 3: f"{remedy}as qid<tab>docno<tab>score"})
    if len(fields) != len(_RUN_FIELDS) - 1:
        return whole
    untagged = replace(whole, names=_RUN_FIELDS[:-1], form="")
    if fields[1].upper() == b"Q0":
        return untagged
    unmarked = replace(whole, names=(_RUN_FIELDS[0], *_RUN_FIELDS[2:]), form="qid docno rank score tag")
    fitting = [layout for layout in (untagged, unmarked) if layout.fits(line)]
    if len(fitting) > 1:
        raise FileError(
            path,
            f"found 5 fields in {shown(line)}, which can be read as {' '.join(untagged.names)} and as {unmarked.form}; "
            f"write all six, {whole.form}",
            line=number,
        )
    return fitting[0] if fitting else whole


def is_ranked(line: bytes) -> bool:
    """Return True for the first line of a run of MS MARCO, as ``qid docno 1``."""
    fields = line.split()
    return len(fields) == 3 and fields[2] in (b"0", b"1")  # noqa: PLR2004 - qid, docno, rank


def is_read_whole(source: Source) -> bool:
    """Return True for a run that cannot be read in blocks: a table with a header, JSON lines, three columns."""
    if source.is_parquet or source.is_workbook:
        return source.is_workbook
    number, line = first_line(RUN, source)
    return (
        _OBJECT.match(line) is not None or is_ranked(line) or table_header(RUN, source.path, number, line) is not None
    )


def first_line(kind: FileKind, source: Source) -> tuple[int, bytes]:
    """Return the number and bytes of the first line that is neither blank nor a comment; a header may begin with #."""
    number, line = source.first()
    if kind.comment is None or not kind.comment.match(line):
        return number, line
    if kind.aliases and table_header(kind, source.path, number, line) is not None:
        return number, line
    return source.first(kind.comment)


def table_header(kind: FileKind, path: Path, number: int, line: bytes, *, must: bool = False) -> Layout | None:
    """Return the layout that the header of a table names; ``None`` if the line is no header and need not be one."""
    for separator in "," if must else "\t" if b"\t" in line else ",;":
        try:
            names = _columns_of(kind, split(line, separator, blanks=False))
        except MisfitError:
            break
        if must or ({"qid", "docno"} <= set(names) and "Q0" not in names):
            require_columns(path, names, kind.named, line=number)
            numeric = tuple(name for name in kind.numeric if name in names)
            return Layout(tuple(names), numeric, separator, blanks=False, header=number)
    return None


def _columns_of(kind: FileKind, given: Sequence[str]) -> list[str]:
    """Replace the names of a header by the columns that they mean."""
    words = list(map(simplified, given))
    # A score is a label in the judgments of BEIR alone.
    aliases = kind.aliases if "corpusid" in words else {**kind.aliases, "score": "score"}
    return [aliases.get(word, name) for word, name in zip(words, given, strict=True)]


def simplified(name: str) -> str:
    """Return the name of a column in lower case and without blanks and punctuation."""
    return _PUNCTUATION.sub("", name.casefold())


def with_scores(path: Path, frame: pd.DataFrame, *, is_named: bool = True) -> pd.DataFrame:
    """Add the scores of a run without them, from its ranks or from the order of its rows."""
    if "score" not in frame.columns:
        if "rank" not in frame.columns:
            warn(f"{printable(path)}: no column score or rank; documents are ranked in the order of rows")
        elif not is_named:
            _require_ranks(path, frame)
        order = frame["rank"] if "rank" in frame.columns else frame.groupby("qid", sort=False).cumcount()
        frame["score"] = -order.astype("float64")
    return frame


def _require_ranks(path: Path, frame: pd.DataFrame) -> None:
    """Refuse a third column that is no rank: from 0 or 1 up within each topic."""
    before = frame.groupby("qid", sort=False)["rank"].shift(fill_value=-1)
    wrong = ((frame["rank"] <= before) | ((before < 0) & (frame["rank"] > 1))).to_numpy()
    if wrong.any():
        qid, docno, rank = frame.loc[int(np.argmax(wrong)), ["qid", "docno", "rank"]]
        raise FileError(
            path,
            f"recognised as a run of MS MARCO, qid docno rank, but the ranks of topic {qid!r} do not rise from 0 or 1: "
            f"found {rank} at document {docno!r}; name other columns in a first line, as qid<tab>docno<tab>score",
        )


def _qrels_layout(_path: Path, _number: int, line: bytes) -> Layout:
    fields = line.split()
    if len(fields) == 3 and fields[1].upper() not in (b"0", b"Q0") and _WHOLE.fullmatch(fields[2]):  # noqa: PLR2004
        names = tuple(name for name in _QRELS_FIELDS if name != "iteration")
        return Layout(names, ("label",), _white(line), kind="qrels without iterations, qid docno label")
    remedies = {
        3: "write the iteration (or the subtopic) between qid and docno, 0 where there is none",
        5: "an id seems to hold a blank: replace it",
        6: "a run is read with read_run",
    }
    return Layout(_QRELS_FIELDS, ("label",), _white(line), remedies=remedies)


def _labels_layout(_path: Path, _number: int, line: bytes) -> Layout:
    fields = (*_QRELS_FIELDS[:-1], "grade")
    return Layout(fields, ("grade",), _white(line), remedies={5: "an id seems to hold a blank: replace it"})


def _entity_layout(path: Path, number: int, line: bytes) -> Layout:
    """Return the layout of a TREC run or TREC qrels over entities."""
    n_fields = line.count(b"\t") + 1 if _white(line) == "\t" else len(line.split())
    layout = (_qrels_layout if n_fields == len(_QRELS_FIELDS) else run_layout)(path, number, line)
    return replace(layout, names=tuple("entity_id" if name == "docno" else name for name in layout.names))


def _white(line: bytes) -> str:
    return "\t" if b"\t" in line.strip() else " "


@dataclass(frozen=True)
class FileKind:
    r"""A kind of file: the columns of its frame, and the layout of its lines."""

    columns: tuple[str, ...]  # the first columns of the frame, in order
    numeric: tuple[str, ...] = ()  # columns of numbers; all others are text
    defaults: Mapping[str, Any] = field(default_factory=dict)  # values of the columns that a file may lack
    keeps_others: bool = True  # True if other columns of the file follow
    json_lines: bool = False  # True if the file may hold JSON lines
    # The layout of TREC files: of lines with more fields than ``fields`` has.
    trec: Callable[[Path, int, bytes], Layout] | None = None
    # Words that mark the first line as a header; without any, the first line never is one.
    header_words: frozenset[str] = frozenset()
    needs_header: bool = False  # True if the first line is always a header
    # The separator without a header: ``" "`` for any white space, ``"\t"`` if fields hold blanks, ``"\t "`` for tabs if
    # the first line has one.
    separator: str = " "
    # The columns of lines without a header, by their number; the first describes lines with any other number.
    fields: tuple[tuple[str, ...], ...] = ()
    remedy: str = ""  # the advice for a line without a header that has another number of fields
    xml: Callable[[Source], pd.DataFrame] | None = None  # the reader of XML files; ``None`` if the file is never XML
    optional: tuple[str, ...] = ()  # columns that a file may lack and that then are missing
    near: tuple[str, ...] = ()  # optional columns that are refused under another name
    # Columns by their names in headers and JSON, in lower case and without punctuation: the file may be a table that is
    # known by the columns of its header.
    aliases: Mapping[str, str] = field(default_factory=dict)
    named: tuple[str, ...] = ()  # columns that such a header must have

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that every file must have."""
        return tuple(name for name in self.columns if name not in self.defaults and name not in self.optional)

    @property
    def comment(self) -> re.Pattern[bytes] | None:
        """Comments among lines of words, which may have as many words as a row has fields; ``None`` for other lines."""
        if self.trec is not None:
            return COMMENT
        return None if self.separator == "\t" or self.needs_header else REMARK


_RUN_FIELDS = ("qid", "Q0", "docno", "rank", "score", "name")
_QRELS_FIELDS = ("qid", "iteration", "docno", "label")
# Column names of common collections, in lower case and without punctuation: a line of nothing else is a header.
_ID_WORDS = frozenset(["qid", "queryid", "topicid", "docno", "docid", "documentid", "pid", "passageid", "entityid"])
_TEXT_WORDS = """
    id number num query queries question topic doc document passage paragraph sentence page entity item need text texts
    content contents body title abstract description desc narrative keywords constraints answer answers wiki wikipedia
    url link name label alias mention kind type prob probability prior score weight rank source
"""
_HEADINGS = _ID_WORDS.union(_TEXT_WORDS.split())
_PUNCTUATION = re.compile(r"[\s_\-\"'#]+")
_WHOLE = re.compile(rb"[+-]?\d+")
# Columns by their names in tables of common collections.
_PAIR_WORDS = {
    **dict.fromkeys(("qid", "queryid", "topicid"), "qid"),
    **dict.fromkeys(("docno", "docid", "documentid", "corpusid", "pid", "passageid"), "docno"),
    "q0": "Q0",
}
_RUN_WORDS = {**_PAIR_WORDS, "score": "score", "rank": "rank"}
_QRELS_WORDS = {
    **_PAIR_WORDS,
    **dict.fromkeys(("label", "relevance", "rel", "grade", "score"), "label"),
    **dict.fromkeys(("iteration", "iter", "subtopic"), "iteration"),
}
# One of these is enough in tables of ids, which hold no texts.
_ENTITY_WORDS = _ID_WORDS | {"topic", "doc", "entity", "entity_id"}
_OR_HEADER = "or name the columns in a header line"

RUN = FileKind(
    ("qid", "docno", "score", "rank"),
    ("score", "rank"),
    json_lines=True,
    trec=run_layout,
    optional=("rank",),
    aliases=_RUN_WORDS,
    named=("qid", "docno"),
)
QRELS = FileKind(
    ("qid", "iteration", "docno", "label"),
    ("label",),
    {"iteration": "0"},
    json_lines=True,
    trec=_qrels_layout,
    aliases=_QRELS_WORDS,
    named=("qid", "docno", "label"),
)
TOPICS = FileKind(
    ("qid", "query"),
    json_lines=True,
    header_words=frozenset(("qid",)),
    separator="\t",
    fields=(("qid", "query"),),
    remedy=f"write qid<tab>query, {_OR_HEADER}",
)
DOCUMENTS = FileKind(
    ("docno",),
    json_lines=True,
    header_words=frozenset(("docno",)),
    separator="\t",
    fields=(("docno", "text"),),
    remedy=f"write docno<tab>text, {_OR_HEADER}",
)
INTENTS = FileKind(
    ("qid", "entity_id", "prob"),
    ("prob", "score"),
    header_words=_ENTITY_WORDS | {"prob"},
    fields=(("qid", "entity_id", "prob"),),
    remedy="name the columns in a header line, as qid<tab>entity_id<tab>prob, or remove the extra fields",
    xml=_equal_intents,
)
SUBTOPICS = FileKind(
    ("qid", "entity_id"),
    ("prob",),
    near=("prob",),
    header_words=_ENTITY_WORDS | {"prob"},
    fields=(("qid", "entity_id"), ("qid", "entity_id", "prob")),
    remedy=f"write qid<tab>entity_id, {_OR_HEADER}",
    xml=_web_topics,
)
TAGS = FileKind(
    ("docno", "entity_id", "weight"),
    ("weight",),
    {"weight": 1.0},
    near=("weight", "qid"),
    header_words=_ENTITY_WORDS,
    fields=(("docno", "entity_id", "weight"), ("docno", "entity_id")),
    remedy="name the columns in a header line, as docno<tab>entity_id<tab>weight, or remove the extra fields",
)
SIMILARITIES = FileKind(
    ("entity_id", "other_id", "similarity"),
    ("similarity",),
    near=("qid",),
    header_words=_ENTITY_WORDS | {"other_id", "similarity"},
    needs_header=True,
)
POPULARITY = FileKind(("entity_id", "count"), ("count",), header_words=_ENTITY_WORDS | {"count"}, needs_header=True)
SPELLINGS = FileKind(
    ("attribute", "value", "name"), (), header_words=frozenset({"attribute", "value", "name"}), needs_header=True
)
ANSWERS = FileKind(
    ("qid", "entity_id"),
    ("score",),
    trec=_entity_layout,
    header_words=_ENTITY_WORDS,
    separator="\t ",
    fields=(("qid", "entity_id"), ("qid", "entity_id", "score")),
    remedy=f"write qid<tab>entity_id, NIL where there is no entity, {_OR_HEADER}",
)
MENTIONS = FileKind(
    ("docno", "mention"),
    header_words=frozenset(("docno", "mention")),
    separator="\t",
    fields=(("docno", "mention"), ("docno", "mention", "entity_id")),
    remedy=f"write docno<tab>mention<tab>entity_id, NIL where there is none, {_OR_HEADER}",
)
LABELS = FileKind(
    ("qid", "docno", "grade"),
    ("grade",),
    trec=_labels_layout,
    header_words=_ENTITY_WORDS,
    fields=(("qid", "docno", "grade"),),
    remedy=f"write qid iteration docno grade, or qid docno grade, {_OR_HEADER}",
)
ANNOTATIONS = FileKind(("qid", "entity_id", "label"), json_lines=True, needs_header=True)
GROUPS = FileKind(
    ("name", "group"),
    header_words=frozenset(("name", "group")),
    separator="\t ",
    fields=(("name", "group"),),
    remedy=f"write name<tab>group, {_OR_HEADER}",
)
COSTS = FileKind(
    ("qid", "cost"),
    ("cost",),
    header_words=frozenset(("qid", "cost")),
    separator="\t ",
    fields=(("qid", "cost"),),
    remedy=f"write qid<tab>cost, {_OR_HEADER}",
)
VALUES = FileKind(("name", "qid", "measure", "value"), ("value",), keeps_others=False, needs_header=True)


def _read(path: StrPath, max_bytes: int | None, kind: FileKind) -> pd.DataFrame:
    started = time.perf_counter()
    is_file = not str(path).startswith(_IR_DATASETS)
    frame = _frame(Source.at(path, max_bytes), kind) if is_file else _of_ir_datasets(str(path), kind)
    rows, seconds = f"{len(frame):,}", time.perf_counter() - started
    _LOG.info("read %s, %s rows (%.2f s)", printable(path), rows, seconds)
    return frame


def _of_ir_datasets(path: str, kind: FileKind) -> pd.DataFrame:
    """Queries or qrels of ir_datasets, if their files are on this computer; nothing is downloaded."""
    import ir_datasets

    name, part = path.removeprefix(_IR_DATASETS), "queries" if kind is TOPICS else "qrels" if kind is QRELS else ""
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise FileError(path, "ir_datasets has no dataset of this name; `ir_datasets list` prints all") from error
    if not part or not getattr(dataset, f"has_{part}")():
        has = [each for each in ("queries", "qrels") if getattr(dataset, f"has_{each}")()]
        raise FileError(
            path, f"has {' and '.join(has) or 'neither queries nor qrels'}; wanted a path of {', '.join(kind.columns)}"
        )
    before = os.environ.get(_TIMEOUT)
    # With this timeout, requests fails before it connects.
    os.environ[_TIMEOUT] = "0"
    try:
        rows = list(getattr(dataset, f"{part}_iter")())
    except (OSError, RuntimeError, ValueError) as error:
        remedy = f"`ir_datasets export {name} {part}` fetches them"
        raise FileError(
            path, f"its {part} are not on this computer, and are not downloaded unasked; {remedy}"
        ) from error
    finally:
        if before is None:
            del os.environ[_TIMEOUT]
        else:
            os.environ[_TIMEOUT] = before
    if kind is TOPICS:
        return pd.DataFrame([(row.query_id, row.default_text()) for row in rows], columns=["qid", "query"])
    iterations = [str(getattr(row, "subtopic_id", getattr(row, "iteration", "0"))) for row in rows]
    judged = [(row.query_id, row.doc_id, row.relevance) for row in rows]
    frame = pd.DataFrame(judged, columns=["qid", "docno", "label"]).astype({"label": "int64"})
    frame.insert(1, "iteration", iterations)
    return frame


def _frame(source: Source, kind: FileKind) -> pd.DataFrame:
    is_named = True
    if source.is_parquet:
        frame: pd.DataFrame = parquet_table(source, kind.required, kind.numeric).to_pandas()
    else:
        in_sheet = source.is_workbook
        source = workbook_as_csv(source) if in_sheet else source
        number, line = first_line(kind, source)
        if kind.xml is not None and line.lstrip()[:1] == b"<":
            return kind.xml(source)
        if kind.json_lines and _OBJECT.match(line):
            frame = _json_frame(source, kind)
        else:
            layout = _table_layout(kind, source.path, number, line, must=in_sheet)
            is_named = bool(layout.header)
            if not is_named:
                # Comments at the start are skipped, and others are looked for.
                skipped = number - 1 if kind.comment is not None and source.first()[0] < number else 0
                layout = replace(layout, header=skipped, comment=kind.comment)
            frame = text_table(source, layout).to_pandas()
    if is_named and (message := near_miss(frame.columns, kind.near)):
        raise FileError(source.path, message)
    for name, value in kind.defaults.items():
        if name not in frame.columns:
            frame[name] = value
    if kind is RUN:
        frame = with_scores(source.path, frame, is_named=is_named)
    first = [name for name in kind.columns if name in frame.columns]
    others = [name for name in frame.columns if name not in kind.columns and (kind.keeps_others or name == "dataset")]
    return frame[[*first, *others]]


def _table_layout(kind: FileKind, path: Path, number: int, line: bytes, *, must: bool) -> Layout:
    """Return the layout of text, with or without a header."""
    found = _header_layout(kind, path, number, line)
    if kind.aliases:
        found = table_header(kind, path, number, line, must=must)
    if found is not None:
        columns = ", ".join(found.names)
        _LOG.info(
            "%s: recognised a table with the columns %s, separated by %r", printable(path), columns, found.separator
        )
        return found
    plain = _plain_layout(kind, path, number, line)
    _LOG.info("%s: recognised lines of %s", printable(path), plain.kind or plain.form or " ".join(plain.names))
    return plain


def _header_layout(kind: FileKind, path: Path, number: int, line: bytes) -> Layout | None:
    """Return the layout that a header line names, or None if the line is none.

    A header names a header word, begins with the name of an id, or holds nothing but headings.
    """
    separators = "\t,;" if kind.separator == "\t" else "\t,; "
    if kind.needs_header:
        separators = "\t" if b"\t" in line else ";" if b";" in line and b"," not in line else ","
    elif not kind.header_words:
        separators = ""
    for separator in separators:
        if separator in ",;" and (b"\t" in line or (separator == ";" and separator.encode() not in line)):
            # The commas belong to a text, which may be longer than the csv module allows.
            continue
        try:
            names = split(line, separator, blanks=separator == " ")
        except MisfitError as error:
            raise FileError(path, str(error), line=number) from error
        words = list(map(simplified, names))
        named = words[0] in _ID_WORDS or _HEADINGS.issuperset(words) or kind.header_words.intersection((*names, *words))
        if kind.needs_header or named:
            require_columns(path, names, kind.required, line=number)
            numeric = tuple(name for name in kind.numeric if name in names)
            return Layout(tuple(names), numeric, separator, blanks=separator == " ", header=number)
    return None


def _plain_layout(kind: FileKind, path: Path, number: int, line: bytes) -> Layout:
    """Return the layout of lines without a header."""
    separator = "\t" if kind.separator == "\t" else _white(line)
    blanks = kind.separator == " " or separator == " "
    n_fields = len(line.split() if blanks else line.split(b"\t"))
    longest = max(kind.fields, key=len, default=())
    if kind.trec is not None and n_fields > len(longest):
        return kind.trec(path, number, line)
    names = next((names for names in kind.fields if len(names) == n_fields), kind.fields[0])
    return Layout(
        names,
        tuple(name for name in names if name in kind.numeric),
        separator,
        blanks,
        remedies=dict.fromkeys((1, 2, 3, 4), kind.remedy),
        for_header=f"name its columns as {'<tab>'.join(longest)}, or remove the line",
    )


def _json_frame(source: Source, kind: FileKind) -> pd.DataFrame:
    """Read one JSON object per line: ids and texts, integers as their digits, numbers, then all other members."""
    path, must = source.path, kind.named or kind.columns
    rows, members = [], dict.fromkeys(must)
    for number, given in _answers(source):
        row = dict(zip(_columns_of(kind, list(given)), given.values(), strict=True))
        members |= dict.fromkeys(row)
        if len(members) > _MAX_MEMBERS:
            # Each member is a column of all rows: a small file would take much memory.
            message = f"has more than {_MAX_MEMBERS:,} different members; nest them"
            raise FileError(path, message, line=number)
        if len(row) < len(given):
            raise FileError(path, f"has two members of one meaning among {', '.join(given)}; keep one", line=number)
        for name in kind.columns:
            if name in must or name in members:
                checked = _json_number if name in kind.numeric else _json_text
                row[name] = checked(source, number, row, name)
        rows.append(row)
    _LOG.info("%s: recognised JSON lines with the members %s", printable(path), ", ".join(members))
    columns = list(members)
    try:
        frame = pd.DataFrame(rows, columns=columns)
    except OverflowError:
        # pandas 2 wants a float of every whole number.
        frame = pd.DataFrame(rows, columns=columns, dtype=object)
    return frame.astype({name: "int64" if name in WHOLE else "float64" for name in kind.numeric if name in columns})


def _json_number(source: Source, number: int, row: dict[str, Any], name: str) -> float:
    value = row.get(name)
    found = _number(value, finite=False) if not isinstance(value, str) else None
    if found is None or (name in WHOLE and not (abs(found) < 2**63 and found % 1 == 0)):
        wanted = "a whole number of at most 64 bits" if name in WHOLE else "a number"
        given = shown(str(value)) if name in row else "missing"
        raise FileError(source.path, f"member {name!r} is {given}, wanted {wanted}", line=number)
    return int(row[name]) if name in WHOLE else found


def _json_object(source: Source, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json_of(line.decode())
        if b"\\u" in line:
            # JSON can spell half a surrogate pair, which is not valid text.
            json.dumps(found, ensure_ascii=False).encode()
    except RepeatedMemberError as error:
        raise FileError(source.path, str(error), line=number) from error
    except (ValueError, RecursionError) as error:
        raise FileError(source.path, f"is not JSON ({error}): {shown(line)}; repair the line", line=number) from error
    if not isinstance(found, dict):
        raise FileError(source.path, f"wanted an object in each line, found {shown(line)}", line=number)
    return found


def _json_text(source: Source, number: int, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or (not value and name in IDS):
        given = "missing" if name not in row else f"{value!r}"
        message = f"member {name!r} is {given}, wanted text; found {', '.join(row) or 'none'}"
        raise FileError(source.path, message, line=number)
    return value
