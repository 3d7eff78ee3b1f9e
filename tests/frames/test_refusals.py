"""Bad frames and files, and what the messages name: one table."""

import datetime as dt
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import check_refusal, refusals

from vbterrier.entities import LinkedPool
from vbterrier.errors import FileError, ParameterError
from vbterrier.execution.checkpoint import Journal
from vbterrier.frames import notebook, read_rated_list
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.files.reading import (
    read_answers,
    read_documents,
    read_intents,
    read_labels,
    read_mentions,
    read_qrels,
    read_run,
    read_similarities,
    read_subtopics,
    read_tags,
    read_topics,
)
from vbterrier.frames.ids import column_ids, column_integers, column_numbers, distinct_blocks
from vbterrier.frames.named import register_intents
from vbterrier.frames.ranking import Run, ranked, runs_by_name
from vbterrier.intents import calibration_error
from vbterrier.intents.sources import from_run
from vbterrier.unjudged.pool import Judgments

RUN = pd.DataFrame({"qid": "q1", "docno": ["a", "007"], "score": [2.0, 1.0]})
PLAIN = pd.DataFrame({"qid": ["007"], "docno": ["NA"], "score": [1.5]})
TAGS = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["E1", "E2"]})
INTENTS = pd.DataFrame({"qid": "q", "entity_id": ["A", "B"], "prob": 0.5})
HEAD = ["qid", "docno", "rank", "year"]
BOMB = "".join(f'<!ENTITY b{n} "{f"&b{n - 1};" * 10}">' for n in range(1, 10))


def typed(values):
    """A run whose queries have these types."""
    qids = pd.Series(values, dtype=object)
    return Run(pd.DataFrame({"qid": qids, "docno": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]}), duplicates="error")


def spreadsheet(rows, *, tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "g.xlsx")
    return read_run(tmp_path / "g.xlsx")


def linked_to_nothing(*, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    return read_run(tmp_path / "link")


def device(path):
    if not Path(path).exists():
        pytest.skip("no such device here")
    return read_run(path, max_bytes=None)


REFUSALS = [
    # Frames
    *refusals(
        "what is no frame",
        lambda other: pandas_frame(other, "mine"),
        *(
            (other, f"mine: wanted a data frame, found {type(other).__name__}; pass a pandas")
            for other in (None, [], {"q1": {"d1": 1}}, "run.txt", 3, PLAIN["qid"])
        ),
    ),
    *refusals(
        "columns of a run",
        lambda frame, columns: require(frame, columns, "run"),
        (
            PLAIN,
            ("qid", "doc_no", "label"),
            (
                r"^run: wanted columns qid, doc_no, label; missing doc_no, label; found qid, docno, score\. "
                r"Did you mean docno\?$"
            ),
        ),
        (pd.DataFrame(), ("qid",), r"missing qid; found none\.$"),
        (pd.DataFrame({0: [], 1: []}), ("qid",), r"found 0, 1\."),
    ),
    *refusals(
        "a mapping of runs",
        runs_by_name,
        (RUN, "wanted a mapping of name to run, found DataFrame; pass {'mine': run}"),
        ([RUN], "found list"),
        ({}, "runs: none; name at least one run"),
        ({"mine": RUN.drop(columns="score")}, "run 'mine'.*score"),
    ),
    *refusals(
        "columns of a table",
        lambda options: notebook.table(RUN, **options),
        ({"bar": ("mean", "low", "high")}, "no column 'mean': the frame has qid, docno, score"),
        ({"by": "mean"}, "no column 'mean': the frame has qid, docno, score"),
        error=ParameterError,
    ),
    *refusals(
        "the name of intents",
        register_intents,
        *((name, INTENTS, ParameterError, "wanted text that is not empty") for name in ("", None, 3)),
        ("mine", (row for row in []), "intents 'mine': found a generator"),
    ),
    *refusals(
        "a column that is not read",
        lambda call: call(),
        (lambda: TagFrame(TAGS.assign(query_id="q1")), "tags: column 'query_id' is not read; if it is the qid"),
        (
            lambda: from_run(Run(TAGS.assign(qid="q", score=1.0, confidence=0.5))),
            "run: column 'confidence' is not read",
        ),
        (
            lambda: LinkedPool.from_frame(TAGS.assign(qid="q", label=1, rank=[0, 1], weight=1.0, n_mentions=3)),
            "column 'n_mentions' is not read; if it is the mentions",
        ),
        (
            lambda: calibration_error(INTENTS, INTENTS.rename(columns={"prob": "probability"})),
            "labels: column 'probability' is not read",
        ),
    ),
    *refusals(
        "similarities",
        lambda text, *, stored: read_similarities(stored(text, "similarities.csv")),
        (
            "entity_id,other_id,similarity,topic_id\nA,B,0.5,q1\n",
            FileError,
            "column 'topic_id' is not read; if it is the qid",
        ),
    ),
    # Ids and numbers
    *refusals(
        "ids of another type",
        lambda column: column_ids(column, "tags column 'docno'"),
        (pd.Series([1.0, 2.0]), "float64"),
        (pd.Series([True, False]), "bool"),
        (pd.Series([1.0, None], dtype="Float64"), "Float64"),
        (pd.Series(pd.to_datetime(["2024-01-01"])), "timestamp"),
        (pd.Series([b"d1"]), "binary"),
        says=r"tags column 'docno': wanted ids as text, found {}.*astype\(str\)",
    ),
    *refusals(
        "lists of ids",
        lambda column: column_ids(column, "tags column 'docno'"),
        (pd.Series([["d1"]]), "list"),
        says=r"tags column 'docno': wanted ids as text, found {}.*; write a row for each id, with \.explode",
    ),
    *refusals(
        "ids of two types",
        lambda mixed: column_ids(pd.Series(mixed, dtype=object), "run column 'docno'"),
        (["a", "b", 3], "str in row 0 and int in row 2"),
        ([1, "b"], "int in row 0 and str in row 1"),
        says=r"wanted ids of one type, found {}; .*astype\(str\)",
    ),
    *refusals(
        "a missing id",
        lambda values, dtype: column_ids(pd.Series(values, dtype=dtype), "run column 'docno'"),
        (["a", None, "c"], object, 1),
        (["a", np.nan, "c"], object, 1),
        (["a", None, "c"], "str", 1),
        (["a", None, "c"], "category", 1),
        ([1, None, 3], "Int64", 1),
        ([1, None, 3], pd.ArrowDtype(pa.int64()), 1),
        ([None, None], object, 0),
        says="run column 'docno': row {} has no id",
    ),
    *refusals(
        "a missing id of many rows",
        lambda values: distinct_blocks(pd.Series(values, dtype=object), "run, column 'qid'"),
        (["a", *[np.nan] * 30], "row 1 "),
    ),
    *refusals(
        "queries of several types",
        typed,
        (["1", "1", 1], r"run column 'qid': (wanted ids|row 1 has no id)"),
        ([1, 1.0, "1"], r"run column 'qid': (wanted ids|row 1 has no id)"),
        ([1, 1, 1.0], r"run column 'qid': (wanted ids|row 1 has no id)"),
        ([1, True, 1], r"run column 'qid': (wanted ids|row 1 has no id)"),
        (["1", None, "1"], r"run column 'qid': (wanted ids|row 1 has no id)"),
    ),
    *refusals(
        "a column of numbers",
        lambda column: column_numbers(column, "run column 'score'"),
        (pd.Series([1.0, math.nan]), 1),
        (pd.Series([1, None], dtype="Int64"), 1),
        (pd.Series(["1", "nan"]), 1),
        (pd.Series(["x", "1"], dtype="category"), 0),
        (pd.Series([1.0, None], dtype=pd.ArrowDtype(pa.float64())), 1),
        (pd.Series([[1.0], [2.0]]), 0),
        (pd.Series(["1", ""]), 1),
        says="run column 'score': row {} .*wanted a number; repair or drop the row",
    ),
    *refusals(
        "a label that is not whole",
        lambda bad: column_integers(pd.Series([1, bad, 0.25], dtype=object), "qrels column 'label'"),
        (0.5,),
        (math.inf,),
        (-math.inf,),
        ("1.5",),
        ("inf",),
        says="qrels column 'label': row 1 .*wanted a whole number; map graded or fractional judgments to integer",
    ),
    *refusals(
        "a number of a document",
        lambda call, column, values: call(pd.DataFrame({"qid": "q1", "docno": ["a", "b"], column: values})),
        (ranked, "score", [1.0, np.nan], r"row 1 .*nan.*query 'q1', document 'b'.*wanted a number"),
        (Judgments, "label", [0.5, 1.0], r"row 0 .*0\.5.*query 'q1', document 'a'.*wanted a whole number"),
    ),
    # Files
    *refusals(
        "a path",
        lambda read, name, *, stored: read(stored("", "bm25.run").parent / name),
        *(
            (read, name, words)
            for read in (read_run, read_qrels, read_intents, read_tags)
            for name, words in (
                ("bm26.run", r"bm26\.run: no such file in the folder .*correct the path\. Did you mean bm25\.run"),
                ("nowhere/bm25.run", r"no such file, nor the folder .*nowhere"),
                ("", "is a folder; wanted a file"),
            )
        ),
        (read_run, "x" * 5_000, "cannot be opened: File name too long"),
        error=FileError,
    ),
    *refusals("a link", linked_to_nothing, (FileError, "link: is a link to nothing")),
    *refusals(
        "a device",
        device,
        ("/dev/zero", FileError, "/dev/zero: cannot be opened: begins with a NUL byte, as no format does"),
        ("/dev/null", FileError, "is empty"),
    ),
    *refusals(
        "a nested journal",
        lambda content, *, stored: Journal(stored(content), "x"),
        (b"[" * 5_000 + b"\n", "input: wanted a vbterrier journal 1, found something else"),
        (
            b'{"format": "vbterrier journal 1", "inputs": "x"}\n' + b"[" * 5_000 + b"\n",
            "input: wanted a vbterrier journal 1, found something else",
        ),
        error=FileError,
    ),
    *refusals(
        "a spreadsheet of a run",
        spreadsheet,
        ([HEAD, ["q1", "a", 1, 0], ["q1", None, 2, 0]], "g.xlsx:3: docno is empty"),
        ([["project", "docno"], ["q1", "a"]], "g.xlsx:1: wanted columns qid, docno; missing qid; found project, docno"),
        ([HEAD, ["q1", dt.date(2020, 1, 2), 1, 0]], "g.xlsx:2: docno is the date 2020-01-02.*as text"),
        ([HEAD, ["q1", "a", "first", 0]], "g.xlsx:2: rank must be a whole number"),
        ([], "is empty"),
        error=FileError,
    ),
    *refusals(
        "a file of a run",
        lambda text, *, stored: read_run(stored(text)),
        ("q1 a 1\nq1 b 1\n", "the ranks of topic 'q1' do not rise from 0 or 1: found 1 at document 'b'; name other"),
        ("q1 a 1\nq2 a 7\nq2 b 8\n", "recognised as a run of MS MARCO, .* of topic 'q2' .* found 7 at document 'a'"),
        (
            "q1 a 1\nq1 b 0.5\n",
            r"input:2: rank must be .*found '0.5'.*\(recognised as a run of MS MARCO, qid docno rank",
        ),
        (
            '{"qid": "q1", "docno": "a", "score": 1}\n{"qid": "q1", "docno": "b"}\n',
            "input:2: member 'score' is missing",
        ),
        ('{"qid": "q1", "docno": "a", "score": "high"}\n', "input:1: member 'score' is 'high', wanted a number"),
        ('{"qid": "q1", "docno": "a", "score": NaN}\n', "input:1: member 'score' is 'nan', wanted a number"),
        ('{"qid": "q1", "docno": "a", "score": true}\n', "input:1: member 'score' is 'True', wanted a number"),
        ('{"qid": "q1", "docno": "a", "rank": 1.5}\n', "input:1: member 'rank' is '1.5', wanted a whole number"),
        (
            '{"topic_id": "q1", "query_id": "q2", "docno": "a"}\n',
            "input:1: has two members of one meaning among topic_id, query_id",
        ),
        ("qid;docno;score\nq1;a;0,5\n", "input:2: score must be a number, found '0,5'; write decimals with a point"),
        error=FileError,
    ),
    *refusals(
        "a file of qrels",
        lambda text, *, stored: read_qrels(stored(text, "qrels")),
        (
            "qid,docno,score\nq1,d1,2\n",
            "qrels:1: wanted columns qid, docno, label; missing label; found qid, docno, score",
        ),
        ("qid,docno,grade,rel\nq1,d1,2,2\n", "qrels:1: column 'label' occurs 2 times; keep one"),
        ('{"qid": "q1", "docno": "d1", "score": 2}\n', "qrels:1: member 'label' is missing, wanted a whole number"),
        ('{"qid": "q1", "docno": "d1", "label": 0.5}\n', "qrels:1: member 'label' is '0.5', wanted a whole number"),
        ('{"qid": "q1", "docno": "d1", "label": 9223372036854775808}\n', "qrels:1: .* of at most 64 bits"),
        error=FileError,
    ),
    *refusals(
        "a file of labels",
        lambda text, *, stored: read_labels(stored(text, "labels")),
        (
            '{"qid": "1", "docno": "d"}\n',
            r"labels: wanted columns qid, docno, label; missing label; found qid, docno",
        ),
        ('{"docno": "d", "label": 1}\n', "member 'qid' is missing, wanted text; found docno, label"),
        ('{"qid": "1", "docno": "d", "label": "high"}\n', "member 'label' is .*wanted a finite number"),
        (
            '{"qid": "1", "docno": "d", "label": 1}\n{"qid": 1, "docno": "d", "label": NaN}\n',
            r"labels:2: .*finite number",
        ),
        ('{"qid": "1", "docno": "d", "prob": []}\n', "wanted a list of probabilities"),
        ('{"qid": "1", "docno": "d", "prob": [0.5, -1]}\n', "wanted a list of probabilities"),
        ('{"qid": "1", "docno": "d", "label": 1}\nnot json\n', "labels:2: is not JSON"),
        ("1 0 d1 high\n", "labels:1: label must be a number"),
        ("1 d1\n", "labels:1: wanted 3 fields"),
        ("topic_id,doc_id,prob_0\n1,d1,0\n", "document 'd1' of query '1': wanted probabilities"),
        ("topic_id,doc_id,score\n1,d1,0\n", "missing label; found qid, docno, score"),
        ("", "empty"),
        error=FileError,
    ),
    *refusals(
        "a scale of ratings",
        lambda *scale: read_rated_list("none", scale=scale),
        (3, 0, "smallest and the largest rating"),
        (0, "smallest and the largest rating"),
        (0, 1.5, "smallest and the largest rating"),
        error=ParameterError,
    ),
    *refusals(
        "a file of topics",
        lambda text, *, stored: read_topics(stored(text)),
        ("q1 Jordan achievements\n", r"input:1: wanted 2 fields, qid query; found 1 .*write qid<tab>query"),
        ("q1\tJordan\nq2\tEmerson\textra\n", r"input:2: wanted 2 fields"),
        ("qid\twords\nq1\tJordan\n", r"input:1: .*missing query"),
        ("docno\ttext\nd1\tParis\n", "wanted columns qid, query; missing qid; found docno, text"),
        ("", "empty"),
        error=FileError,
    ),
    *refusals(
        "a file of documents",
        lambda text, *, stored: read_documents(stored(text)),
        ('{"docno": "a", "text": "x"}\n{"docno": "b"\n', r"input:2: is not JSON"),
        ('{"docno": "a"}\n[1]\n', r"input:2: wanted an object in each line, found '\[1\]'"),
        ('{"docno": "a"}\n{"key": "b"}\n', r"input:2: member 'docno' is missing, wanted text; found key"),
        ('{"docno": 1.5}\n', r"input:1: member 'docno' is 1.5, wanted text"),
        ('{"docno": true}\n', r"input:1: member 'docno' is True, wanted text"),
        ('{"docno": ""}\n', r"input:1: member 'docno' is '', wanted text"),
        ('{"docno": ' + "[" * 100_000 + "\n", r"input:1: is not JSON"),
        ("number\ttext\n1\tx\n", r"input:1: wanted columns docno; missing docno; found number, text"),
        ("d1 text without a tab\n", r"input:1: wanted 2 fields, docno text; found 1 .*write docno<tab>text"),
        error=FileError,
    ),
    *refusals(
        "a file of answers",
        lambda text, *, stored: read_answers(stored(text)),
        ("q1\n", "wanted 2 fields, qid entity_id; found 1 in 'q1'; write qid<tab>entity_id, NIL where"),
        ("q1\tQ90\nq2\t\n", "entity_id is empty"),
        ("q1\tQ90\nq2\n", r"input:2: wanted 2 fields"),
        ("qid\tanswer\nq1\tQ90\n", "wanted columns qid, entity_id; missing entity_id; found qid, answer"),
        ("q1 Q90 high\n", "score must be a number, found 'high'"),
        ("q1 0 Q90 right\n", "label must be a whole number of at most 64 bits, found 'right'"),
        ("", "is empty"),
        error=FileError,
    ),
    *refusals(
        "a file of mentions",
        lambda text, *, stored: read_mentions(stored(text)),
        (b"d1 Paris\n", ":1: wanted 2 fields"),
        (b"d1\tParis\nd2\tParis\tQ90\n", ":2: wanted 2 fields, docno mention"),
        (b"qid\tentity_id\nq1\tQ90\n", "missing docno; found qid, entity_id"),
        (b"doc_id\tname\nd1\tParis\n", "missing mention; found doc_id, name"),
        (b"docno\ttext\nd1\tParis\n", "missing mention"),
        (b"d1\tParis\tQ90\nd2\tParis\t\n", ":2: entity_id is empty"),
        (b"docno\tmention\tmention\nd1\ta\tb\n", "'mention' occurs 2 times"),
        (b"docno\tmention\nd1\t\xff\n", "UTF-8"),
        (b"d1\t\xff\n", "UTF-8"),
        error=FileError,
    ),
    *refusals(
        "a file of subtopics",
        lambda text, *, stored: read_subtopics(stored(text)),
        (f'<!DOCTYPE w [<!ENTITY b0 "lol">{BOMB}]><w><topic number="1">&b9;</topic></w>', ":1: has a document type"),
        (
            '<w>\n<!DOCTYPE w SYSTEM "file:///etc/passwd"><topic number="1"/></w>',
            ":2: is not XML|:2: has a document type",
        ),
        ('<!DOCTYPE w SYSTEM "file:///etc/passwd"><w><topic number="1"/></w>', ":1: has a document type"),
        ('<w><topic number="1">&undefined;</topic></w>', ":1: is not XML .undefined entity"),
        ('<w>\n<topic number="1">\n</w>', ":3: is not XML .mismatched tag"),
        ('<w>\n<topic><subtopic number="1"/></topic></w>', ":2: <topic> has no number"),
        ('<w><topic number="1">\n<subtopic/></topic></w>', ":2: <subtopic> has no number"),
        ('<w><subtopic number="1"/></w>', ":1: a subtopic outside a topic"),
        ('<w><topic number="1"/></w>', ": has no subtopic"),
        ("<w>\0</w>", ":1: is not XML"),
        error=FileError,
    ),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), REFUSALS)
def test_bad_input_is_refused_by_name(request, call, arguments, error, words):
    check_refusal(request, call, arguments, error, words)
