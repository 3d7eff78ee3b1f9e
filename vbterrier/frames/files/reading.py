"""Readers of runs, qrels, topics, subtopics, documents, intents, tags, answers, mentions and values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, InputError, agreeing, examples, number, printable, warn
from vbterrier.frames.contracts import PATH, chosen_labels, label_steps, odd_label_message, treat_negative
from vbterrier.frames.files.kinds import (
    ANNOTATIONS,
    ANSWERS,
    COSTS,
    DESCRIPTIONS,
    DOCUMENT_ANNOTATIONS,
    DOCUMENTS,
    FRACTIONS,
    GROUPS,
    INTENTS,
    LABELS,
    MENTIONS,
    POPULARITY,
    PRELS,
    QRELS,
    QUERIES,
    RUN,
    SIMILARITIES,
    SPELLINGS,
    SUBTOPICS,
    TAGS,
    TOPICS,
    VALUES,
)
from vbterrier.frames.files.loading import load
from vbterrier.frames.files.source import MAX_BYTES
from vbterrier.frames.systems import columns_of_systems, systems_in

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import pandas as pd

    from vbterrier.annotations import StrPath
    from vbterrier.frames.files.kinds import FileKind

# The columns of judgments that evaluations read beside those of QRELS: of subtopics and of linked pools.
EVALUATED = ("prob", "entity_id", "rank", "weight")


def read_run(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read a run: a TREC or MS MARCO file, a table with a header line, JSON, a spreadsheet, or Parquet.

    A line of a TREC file is ``qid Q0 docno rank score tag``. All lines may lack the tag, or all may lack ``Q0``; any
    white space separates fields. A line of an MS MARCO file is ``qid docno rank``, with ranks that rise from 1 (or 0)
    within each topic. The header of a table (values between commas, semicolons or tabs), the members of an object of
    JSON lines, or the first row of the first sheet of an .xlsx file (extra ``xlsx``), name ``qid``, ``docno`` (also:
    query id, topic id; doc id, document id, corpus id, pid) and ``score`` or ``rank``. Without a score, documents are
    in the order of their ranks; without both, in the order of rows, with a warning. Text may be compressed (gzip, bz2,
    xz or zstd). Lines of TREC and MS MARCO files that begin with ``#``, such as the header of an ir_metadata file, are
    comments, as in trec_eval 10; ids may hold ``#`` elsewhere. A first line between blanks that names query and
    document is a header, too. ``docs/reference/files.rst`` lists the layouts of other tools.

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

    Warns
    -----
    DegenerateWarning
        The table holds several systems, or may do so, see :func:`vbterrier.frames.systems.split_systems`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "bm25.run")
    >>> _ = path.write_text("q1 Q0 007 1 2.5 bm25\nq1 Q0 NA 2 inf bm25\n")
    >>> read_run(path).values.tolist()
    [['q1', '007', 2.5, 1, 'bm25'], ['q1', 'NA', inf, 2, 'bm25']]
    """
    frame = run_table(path, max_bytes=max_bytes)
    try:
        systems = systems_in(frame, None, printable(path))
    except InputError as error:
        # The functions of this package refuse such tables, and other hosts do not. Parts of a run by topic, as those of
        # folds, may have names of their own.
        columns = columns_of_systems(frame.columns, None)
        if any((frame.groupby("qid", sort=False)[column].nunique() > 1).any() for column in columns):  # noqa: PD101
            warn(f"{error}; PyTerrier and ir_measures evaluate it as one run")
        return frame
    if systems is not None:
        column, _, names = systems
        warn(
            f"{printable(path)}: holds {len(names)} systems ({examples(names)}; column {column!r}), which PyTerrier "
            "and ir_measures evaluate as one run, and the functions of this package one by one"
        )
    return frame


def run_table(
    path: StrPath, *, max_bytes: int | None = MAX_BYTES, others: Container[str] | None = None
) -> pd.DataFrame:
    """Read the table of a run, which may hold several systems, as :func:`read_run` does.

    ``others``: the other columns to keep; all by default.
    """
    return _frame(path, max_bytes, RUN if others is None else replace(RUN, others=others))


def read_qrels(
    path: StrPath,
    *,
    negative: str = "nonrelevant",
    contradictions: str = "error",
    unit: float = 1.0,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read qrels: a TREC file, a table with a header line, JSON, plain or compressed, or a Parquet file.

    A line is ``qid iteration docno label``; in diversity qrels the second field is the subtopic. All lines may lack the
    iteration, and lines that begin with ``#`` are comments, as in trec_eval 10. The header of a table (values between
    commas, semicolons or tabs), or the members of objects of JSON, name ``qid``, ``docno`` (names as in
    :func:`read_run`), ``label`` (also: relevance, rel, grade, rating, judgment; score beside corpus-id or q_id) and, if
    the file has it, ``iteration`` (also: subtopic). Rows with an empty label are unrated: they are left out, and
    counted in a warning. Labels such as 3.0 are whole numbers. Nested JSON, as ``{qid: {docno: label}}``, and judgments
    of Quepid, OpenSearch and Elasticsearch are read, too.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors; or the id of a dataset of ir_datasets, as
        ``"irds:msmarco-passage/trec-dl-2019/judged"``, if its files are on this computer: nothing is downloaded.
    negative
        Labels below 0 are those of ``"nonrelevant"`` documents, or mean ``"unjudged"`` (-1 in samples, -2 for spam) and
        are dropped; see :func:`vbterrier.frames.contracts.treat_negative`.
    contradictions
        The label of a document with several ones, after ``negative``: ``"first"``, ``"last"`` or ``"max"``; with
        ``"error"`` they are refused where judgments are used.
    unit
        The step of a scale with fractions, above 0: labels are divided by it. Ratings of 0, 0.25, 0.5 and 1 are the
        grades 0, 1, 2 and 4 with ``unit=0.25``. nDCG with linear gains is that of the ratings; measures of binary
        relevance need ``rel=`` in units, as ``P(rel=2)@5`` for ratings of at least 0.5.

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
    return _qrels(path, negative, contradictions, unit, max_bytes, None)


def evaluated_qrels(
    path: StrPath, *, negative: str = "nonrelevant", contradictions: str = "error", unit: float = 1.0
) -> pd.DataFrame:
    """Read judgments as :func:`read_qrels` does, with the columns that evaluations read; others may be many."""
    return _qrels(path, negative, contradictions, unit, MAX_BYTES, EVALUATED)


def _qrels(
    path: StrPath, negative: str, contradictions: str, unit: float, max_bytes: int | None, others: Sequence[str] | None
) -> pd.DataFrame:
    if number("unit", unit, low=0, open_low=True) == 1:
        frame = _frame(path, max_bytes, replace(QRELS, others=others))
    else:
        frame = _frame(path, max_bytes, replace(FRACTIONS, others=others))
        steps, odd = label_steps(frame["label"].to_numpy(), unit)
        if odd.any():
            raise FileError(Path(path), odd_label_message(frame, odd, unit))
        frame = frame.assign(label=steps)
    qrels = chosen_labels(treat_negative(frame, negative), contradictions)
    # Errors about contradicting labels name lines of the file.
    qrels.attrs[PATH] = str(path)
    return qrels


def read_prels(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read judgments of sampled documents with their inclusion probabilities (prels), as of the Million Query tracks.

    A line is ``qid docno label method probability``, or has an iteration behind the qid; a header line, or members of
    JSON, may name the columns instead. :func:`vbterrier.design.score_sampled` estimates measures from them.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``docno`` (text), ``label`` (int64), ``method`` (text, if the file has it) and ``prob``
        (float64), rows as in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "prels")
    >>> _ = path.write_text("1 d7 1 1 0.25\n1 d9 0 2 1.0\n")
    >>> read_prels(path).values.tolist()
    [['1', 'd7', 1, '1', 0.25], ['1', 'd9', 0, '2', 1.0]]
    """
    return _frame(path, max_bytes, PRELS)


def read_topics(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read queries: tab- or comma-separated text or JSON lines, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``qid<tab>query``. ``pt.io.read_topics`` reads TREC's XML
    topics.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_qrels`, with the same errors; a query with two texts is refused, too.

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
    topics = _frame(path, max_bytes, TOPICS)
    twice = topics["qid"].duplicated()
    # Rows with documents, the input of rerankers, repeat their topic.
    if twice.any() and "docno" not in topics.columns:
        raise FileError(Path(path), f"query {topics['qid'][twice].iloc[0]!r} is duplicated; keep one row per query")
    return topics


def read_queries(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read weights, clusters and segments of queries: a table with a header line, JSON, a spreadsheet, or Parquet.

    The header names a column for the query, ``qid`` (names as in :func:`read_run`) or its text, and any of ``weight``
    (also: traffic, frequency, count, volume), ``cluster``, ``segment`` (also: category, group), ``drawn`` and
    ``covariate``; :func:`vbterrier.frames.queries.queries_frame` has their meaning, and checks their values.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Column ``qid`` (text), those of the above that the file has, then its other columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "traffic.csv")
    >>> _ = path.write_text("query,traffic,segment\njaguar,120,head\n")
    >>> read_queries(path).values.tolist()
    [['jaguar', 120.0, 'head']]
    """
    return _frame(path, max_bytes, QUERIES)


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
    return _frame(path, max_bytes, DOCUMENTS)


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
    return _frame(path, max_bytes, INTENTS)


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
    return _frame(path, max_bytes, SUBTOPICS)


def read_tags(path: StrPath, *, ids: str | None = None, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the entities of documents: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``docno entity_id`` or ``docno entity_id weight``, separated
    by white space.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.
    ids
        The id space of the entities, as in :func:`vbterrier.frames.read_entity_links`; ``None`` for ids as in the file.
        Needed for linked mentions with ids of several spaces, such as NIF.

    Returns
    -------
    pandas.DataFrame
        Columns ``docno``, ``entity_id`` (text) and ``weight`` (float64; 1 if the file has none), then the other columns
        of the file: ``tied`` as bool, ``n_abstained`` as int64, and others, such as ``qid``, as text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tags.txt")
    >>> _ = path.write_text("d1 Q90\nd1 Q167646\n")
    >>> read_tags(path).values.tolist()
    [['d1', 'Q90', 1.0], ['d1', 'Q167646', 1.0]]
    """
    return _frame(path, max_bytes, TAGS, ids)


def read_similarities(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read similarities (entity_id, other_id, similarity [, qid]) from a file with a header; see :func:`read_tags`."""
    return _frame(path, max_bytes, SIMILARITIES)


def read_popularity(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read counts of entities (entity_id, count), such as page views, from a file with a header; see
    :func:`read_tags`.
    """
    return _frame(path, max_bytes, POPULARITY)


def read_descriptions(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read descriptions of entities (entity_id, text) from a file with a header; see :func:`read_tags`."""
    return _frame(path, max_bytes, DESCRIPTIONS)


def read_spellings(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read names of values of attributes (attribute, value, name) from a file with a header; see :func:`read_tags`."""
    return _frame(path, max_bytes, SPELLINGS)


def read_answers(path: StrPath, *, ids: str | None = None, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the linked entity of each query: tab- or comma-separated text, plain or compressed, or a Parquet file.

    A header line names the columns; without one, a line is ``qid entity_id`` or ``qid entity_id score``, separated by
    tabs or blanks. TREC runs and TREC qrels over entities are also read.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_run`, with the same errors.
    ids
        The id space of the entities, as in :func:`vbterrier.frames.read_entity_links`; ``None`` for ids as in the file.
        Needed for linked mentions with ids of several spaces, such as NIF.

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
    return _frame(path, max_bytes, ANSWERS, ids)


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
    return _frame(path, max_bytes, MENTIONS)


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
    frame = _frame(path, max_bytes, LABELS)
    return frame[["qid", "docno", "label"]]


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
    return _frame(path, max_bytes, ANNOTATIONS)


def read_document_annotations(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read a sheet of :func:`vbterrier.evaluate.annotate_documents`: qid, docno, annotation, then other columns."""
    return _frame(path, max_bytes, DOCUMENT_ANNOTATIONS)


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
        Columns ``name``, ``qid``, ``measure`` (text) and ``value`` (float64), then, if the file has them, ``dataset``,
        ``model`` and the columns of :func:`read_queries`; rows as in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "per_query.csv")
    >>> _ = path.write_text("name,qid,measure,value\nbm25,007,nDCG@10,0.5\n")
    >>> read_values(path).values.tolist()
    [['bm25', '007', 'nDCG@10', 0.5]]
    """
    return _frame(path, max_bytes, VALUES)


def read_groups(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read the group of each run: lines of name and group, or a table with these columns."""
    return _frame(path, max_bytes, GROUPS)


def read_costs(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read the cost of a judgment in each topic: lines of qid and cost, or a table with these columns."""
    return _frame(path, max_bytes, COSTS)


def _frame(path: StrPath, max_bytes: int | None, kind: FileKind, ids: str | None = None) -> pd.DataFrame:
    loaded = load(path, max_bytes, kind, ids)
    if loaded.n_unrated:
        left_out = "queries without results" if kind.unrated == "rank" else "rows without a rating"
        warn(f"{printable(path)}: {agreeing(loaded.n_unrated, f'{left_out} are left out')}")
    return loaded.frame
