"""Reading and writing files: unusual and invalid files of every kind."""

import gzip
import os
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.files import tables, writing
from vbterrier.frames.files.reading import read_intents, read_qrels, read_run, read_tags
from vbterrier.frames.files.writing import write_qrels, write_run

ONE_RUN = b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n"
ONE_RUN_ROWS = [["q1", "d1", 2.5, 1, "bm25"], ["q1", "d2", 1.5, 2, "bm25"]]
UNTAGGED_ROWS = [row[:4] for row in ONE_RUN_ROWS]
BOM = b"\xef\xbb\xbf"


def rows(frame):
    return frame.to_numpy(dtype=object).tolist()


# Valid files.

RUNS = {
    "plain": (ONE_RUN, ONE_RUN_ROWS),
    "no end of last line": (ONE_RUN.rstrip(), ONE_RUN_ROWS),
    "BOM": (BOM + ONE_RUN, ONE_RUN_ROWS),
    "CRLF": (ONE_RUN.replace(b"\n", b"\r\n"), ONE_RUN_ROWS),
    "CR": (ONE_RUN.replace(b"\n", b"\r"), ONE_RUN_ROWS),
    "tabs": (ONE_RUN.replace(b" ", b"\t"), ONE_RUN_ROWS),
    "tabs, CRLF, BOM": (BOM + ONE_RUN.replace(b" ", b"\t").replace(b"\n", b"\r\n"), ONE_RUN_ROWS),
    "repeated blanks": (ONE_RUN.replace(b" ", b"   "), ONE_RUN_ROWS),
    "one repeated blank": (ONE_RUN.replace(b" d2", b"  d2"), ONE_RUN_ROWS),
    "blanks, then tabs": (ONE_RUN.replace(b" d2 ", b"\td2\t"), ONE_RUN_ROWS),
    "tabs, then blanks": (ONE_RUN.replace(b" d1 ", b"\td1\t"), ONE_RUN_ROWS),
    "form feed": (ONE_RUN.replace(b" d2", b"\fd2"), ONE_RUN_ROWS),
    "vertical tab at an end": (ONE_RUN.replace(b"\nq1", b"\v\nq1"), ONE_RUN_ROWS),
    "blanks at both ends": (b"  " + ONE_RUN.replace(b"\n", b" \t\r\n "), ONE_RUN_ROWS),
    "BOM, blanks at both ends": (BOM + b"  " + ONE_RUN.replace(b"\n", b"  \n"), ONE_RUN_ROWS),
    "blank lines": (b"\n \n" + ONE_RUN.replace(b"\n", b"\n\n\t\r\n"), ONE_RUN_ROWS),
    "gzip": (gzip.compress(ONE_RUN), ONE_RUN_ROWS),
    "gzip in two members": (gzip.compress(ONE_RUN[:20]) + gzip.compress(ONE_RUN[20:]), ONE_RUN_ROWS),
    "gzip, repeated blanks": (gzip.compress(ONE_RUN.replace(b" ", b"  ")), ONE_RUN_ROWS),
    "no tag": (ONE_RUN.replace(b" bm25", b""), UNTAGGED_ROWS),
    "no tag, blanks at ends": (ONE_RUN.replace(b" bm25", b" "), UNTAGGED_ROWS),
    "no tag, ids that are numbers": (b"1 Q0 12 1 2.5\n", [["1", "12", 2.5, 1]]),
    "no tag, 0 for Q0": (ONE_RUN.replace(b" bm25", b"").replace(b"Q0", b"0"), UNTAGGED_ROWS),
    "no Q0": (ONE_RUN.replace(b" Q0", b""), ONE_RUN_ROWS),
    "no Q0, whole scores": (b"q1 7 1 100 bm25\n", [["q1", "7", 100.0, 1, "bm25"]]),
    "leading zeros": (b"001 Q0 007 01 02 0\n", [["001", "007", 2.0, 1, "0"]]),
    "words for nothing": (
        b"NA Q0 null 1 1 nan\nNaN Q0 None 2 0 NULL\n",
        [["NA", "null", 1.0, 1, "nan"], ["NaN", "None", 0.0, 2, "NULL"]],
    ),
    "ids like numbers": (b"1e5 Q0 0x10 1 1 1.0\n", [["1e5", "0x10", 1.0, 1, "1.0"]]),
    "quotes": (b'q" Q0 "d 1 1 \'x\n"q Q0 d\' 2 0 ""\n', [['q"', '"d', 1.0, 1, "'x"], ['"q', "d'", 0.0, 2, '""']]),
    "letters beyond ASCII": ("été Q0 東京 1 1 ñ\n".encode(), [["été", "東京", 1.0, 1, "ñ"]]),
    "no-break space in an id": ("q1 Q0 d\xa01 1 1 x\n".encode(), [["q1", "d\xa01", 1.0, 1, "x"]]),
    "commas, hashes, backslashes": (b"q#1 Q0 #a,b 1 1 \\\n", [["q#1", "#a,b", 1.0, 1, "\\"]]),
    "odd numbers": (
        b"q Q0 a -1 +1.5 t\nq Q0 b 0 .5e1 t\nq Q0 c 007 -Infinity t\nq Q0 d 3 1e400 t\n",
        [["q", "a", 1.5, -1, "t"], ["q", "b", 5.0, 0, "t"], ["q", "c", -np.inf, 7, "t"], ["q", "d", np.inf, 3, "t"]],
    ),
    "signed rank": (b"q Q0 a +1 1 t\n", [["q", "a", 1.0, 1, "t"]]),
    "second BOM belongs to the id": (BOM + BOM + b"q Q0 a 1 1 t\n", [["\ufeffq", "a", 1.0, 1, "t"]]),
    "second BOM, repeated blank": (BOM + BOM + b"q  Q0 a 1 1 t\n", [["\ufeffq", "a", 1.0, 1, "t"]]),
}


@pytest.mark.parametrize(("content", "expected"), RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", ["run.txt", "run.gz", "run.parquet"])
def test_runs_that_read_right_whatever_their_name(stored, content, expected, name):
    frame = read_run(stored(content, name))
    assert rows(frame) == expected
    text = "str" if pd.__version__ >= "3" else "object"
    types = {"qid": text, "docno": text, "score": "float64", "rank": "int64", "name": text}
    assert list(frame.dtypes.astype(str).items()) == list(types.items())[: len(expected[0])]
    assert frame.index.equals(pd.RangeIndex(len(expected)))


QRELS = {
    "plain": (b"1 0 d1 2\n1 0 d2 -2\n", [["1", "0", "d1", 2], ["1", "0", "d2", -2]]),
    "subtopics": (b"1 1 d1 1\n1 2 d1 0\n", [["1", "1", "d1", 1], ["1", "2", "d1", 0]]),
    "tabs, CRLF": (b"1\t0\td1\t2\r\n", [["1", "0", "d1", 2]]),
    "signed, padded, as large as can be": (
        b"1 0 a +1\n1 0 b +7\n1 0 c 9223372036854775807\n1 0 d -9223372036854775808\n",
        [["1", "0", "a", 1], ["1", "0", "b", 7], ["1", "0", "c", 2**63 - 1], ["1", "0", "d", -(2**63)]],
    ),
    "leading zeros": (b"001 00 007 1\n", [["001", "00", "007", 1]]),
}


@pytest.mark.parametrize(("content", "expected"), QRELS.values(), ids=QRELS)
def test_qrels_that_read_right(stored, content, expected):
    frame = read_qrels(stored(content))
    assert rows(frame) == expected
    assert list(frame.columns) == ["qid", "iteration", "docno", "label"]
    assert frame["label"].dtype == np.int64


INTENTS = {
    "no header": (b"q1 E1 0.75\nq1 E2 0.25\n", {"qid": ["q1", "q1"], "entity_id": ["E1", "E2"], "prob": [0.75, 0.25]}),
    "no header, tabs and blanks": (b"q1\tE1  0.75\n", {"qid": ["q1"], "entity_id": ["E1"], "prob": [0.75]}),
    "no header, a comma in an id": (b"q1 Washington,_D.C. 1\n",
        {"qid": ["q1"], "entity_id": ["Washington,_D.C."], "prob": [1.0]}),
    "header between tabs": (b'qid\tentity_id\tprob\tname\n007\t"NA"\t1\tNew York\n',
        {"qid": ["007"], "entity_id": ['"NA"'], "prob": [1.0], "name": ["New York"]}),
    "BOM, CRLF, blank lines around the header": (BOM + b"\r\nqid\tentity_id\tprob\r\n\r\nq1\tE1\t1\r\n",
        {"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]}),
    "header between commas, other order, score": (
        b'prob,score,entity_id,label,qid\n 0.5 ,+7,"E,1",007,q1\n0.5,1,"a ""b""","b\nc",q1\n',
        {"qid": ["q1"] * 2, "entity_id": ["E,1", 'a "b"'], "prob": [0.5] * 2, "score": [7.0, 1.0],
         "label": ["007", "b\nc"]}),
    "header between blanks": (b"qid entity_id  prob\nq1  E1 1\n", {"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]}),
    "header alone": (b"qid\tentity_id\tprob", {"qid": [], "entity_id": [], "prob": []}),
    "gzip": (gzip.compress(b"qid\tentity_id\tprob\nq1\tE1\t1\n"), {"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]}),
    "ids with blanks at their ends stay": (b"qid\tentity_id\tprob\nq1 \t E1\t1\n",
        {"qid": ["q1 "], "entity_id": [" E1"], "prob": [1.0]}),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), INTENTS.values(), ids=INTENTS)
def test_intents_that_read_right(stored, content, expected):
    frame = read_intents(stored(content))
    assert frame[["qid", "entity_id", "prob"]].columns.equals(frame.columns[:3])
    assert frame.to_dict("list") == expected
    assert frame["prob"].dtype == np.float64


TAGS = {
    "two columns": (b"d1 E1\n", {"docno": ["d1"], "entity_id": ["E1"], "weight": [1.0]}),
    "three columns": (b"d1 E1 0.5\n", {"docno": ["d1"], "entity_id": ["E1"], "weight": [0.5]}),
    "two columns, repeated blanks": (b"d1   E1 \n", {"docno": ["d1"], "entity_id": ["E1"], "weight": [1.0]}),
    "header": (b"qid\tdocno\tentity_id\n7\td1\tE1\n",
        {"docno": ["d1"], "entity_id": ["E1"], "weight": [1.0], "qid": ["7"]}),
    "header with weight": (b"docno,entity_id,weight\nd1,E1,2\n",
        {"docno": ["d1"], "entity_id": ["E1"], "weight": [2.0]}),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), TAGS.values(), ids=TAGS)
def test_tags_that_read_right(stored, content, expected):
    frame = read_tags(stored(content))
    assert frame.to_dict("list") == expected
    assert list(frame.columns) == list(expected)
    assert frame["weight"].dtype == np.float64


# Invalid files: the reader, the bytes, the invalid line, and words of the message.

NAN = b"q1 Q0 d1 1 %s t\n"
FAULTS = {
    read_run: {
        "empty": (b"", None, "is empty; wanted at least one line"),
        "empty gzip": (gzip.compress(b""), None, "is empty"),
        "BOM alone": (BOM, None, "is empty"),
        "truncated gzip": (gzip.compress(ONE_RUN)[:-9], None, "Truncated compressed stream): fetch or pack"),
        "damaged gzip": (gzip.compress(ONE_RUN)[:-5] + b"\1\2\3\4\5", None, "incorrect"),
        "gzip and more": (gzip.compress(ONE_RUN) + b"more", None, "cannot be read to its end"),
        "latin1": (ONE_RUN + "é Q0 d1 1 1 t\n".encode("latin1"), 3, "is not UTF-8 (found byte 0xe9); convert"),
        "latin1 in gzip": (gzip.compress(ONE_RUN + b"\xff Q0 d1 1 1 t\n"), 3, "found byte 0xff"),
        "latin1 in Q0": (b"q1 \xff d1 1 1 t\n", 1, "found byte 0xff"),
        "UTF-16": (ONE_RUN.decode().encode("utf-16"), None, "is text in UTF-16: convert it"),
        "NUL": (ONE_RUN + b"q1 Q0 d\0 1 1 t\n", 3, "holds a NUL byte; wanted text"),
        "short line": (ONE_RUN + b"q1 Q0 d3 3\n", 3,
            "wanted 6 fields, qid Q0 docno rank score tag; found 4 in 'q1 Q0 d3 3'"),
        "five fields among six": (ONE_RUN + b"q1 Q0 d3 3 1.0\n", 3, "found 5 in"),
        "short line, made six by a repeated blank": (ONE_RUN + b"q1 Q0  3 1.0 t\n", 3, "found 5 in"),
        "no Q0, made six by a repeated blank": (ONE_RUN + b"q1  d3 3 1.0 t\n", 3, "found 5 in"),
        "no topic, made six by a blank": (ONE_RUN + b" Q0 d3 3 1.0 t\n", 3, "found 5 in"),
        "no tag, made six by a blank": (ONE_RUN + b"q1 Q0 d3 3 1.0 \n", 3, "found 5 in"),
        "no tag, made six by a blank, CRLF": (b"q1 Q0 d3 3 1.0 t\r\nq1 Q0 d3 3 1.0 \r\n", 2, "found 5 in"),
        "six among five": (b"q1 Q0 d1 1 1\nq1 Q0 d2 2 0 t\n", 2, "wanted 5 fields, qid Q0 docno rank score; found 6"),
        "blank in the tag": (ONE_RUN + b"q1 Q0 d3 3 1.0 my bm25\n", 3,
            "the run tag or an id seems to hold a blank: replace it"),
        "blanks in the tag": (b"q1 Q0 d3 3 1.0 my own bm25\n", 1, "seems to hold a blank"),
        "blank in the tag between tabs": (b"q1\tQ0\td3\t3\t1.0\tmy bm25\n", 1, "seems to hold a blank"),
        "word for a score": (ONE_RUN + b"\nq1 Q0 d3 3 abc t\n", 4,
            "score must be a number, found 'abc'; repair the line"),
        "word for a score, CR ends": (ONE_RUN.replace(b"\n", b"\r") + b"q1 Q0 d3 3 abc t\r", 3, "found 'abc'"),
        "hexadecimal score": (NAN % b"0x10", 1, "score must be a number, found '0x10'"),
        "underscore in a score": (NAN % b"1_0", 1, "found '1_0'"),
        "decimal comma": (NAN % b"1,5", 1, "found '1,5'"),
        "score of other digits": (NAN % "١".encode(), 1, "score must be a number"),
        "NaN": (ONE_RUN + NAN % b"nan", 3, "score must be a number, found 'nan'; remove the line or give it a number"),
        "-NaN": (NAN % b"-NaN", 1, "found '-NaN'"),
        "NaN among repeated blanks": (ONE_RUN.replace(b" ", b"  ") + NAN % b"NAN", 3, "found 'NAN'"),
        "fraction for a rank": (b"q1 Q0 d1 1.5 1 t\n", 1,
            "rank must be a whole number of at most 64 bits, found '1.5'"),
        "rank and score swapped": (b"q1 Q0 d1 2.5 1 t\n", 1, "rank must be a whole number"),
        "five columns of mentions": (b"Paris\tQ90\t.9\t0\t5\n", 1, "the second is no iteration and the third no id"),
        "five columns, either way": (b"\n1 12 1 3 7\n", 2,
            "read as qid Q0 docno rank score and as qid docno rank score tag; write all six"),
        "five columns, no way": (b"q1 Q1 d1 2.5 t\n", 1, "five fields are read when"),
        "five columns, no rank": (b"q1 Q0 d1 2.5 t\n", 1, "rank must be a whole number"),
        "qrels for a run": (b"1 0 d1 2\n", 1, "judgments are read with read_qrels"),
    },
    read_qrels: {
        "blank lines alone": (b"\n \r\n\n", None, "is empty"),
        "no header in the middle": (b"1 0 d 1\nqid iteration docno label\n", 2, "found 'label'; repair the line"),
        "run for qrels": (ONE_RUN, 1, ("wanted 4 fields, qid iteration docno label; "
            "found 6 in 'q1 Q0 d1 1 2.5 bm25'; a run is read with read_run")),
        "untagged run for qrels": (b"q1 Q0 d1 1 2.5\n", 1, "seems to hold a blank"),
        "three columns without a label": (b"1 0 7067032\n", 1,
            "wanted 4 fields, qid iteration docno label; found 3 in '1 0 7067032'; write the iteration"),
        "four columns among three": (b"1 d1 2\n1 0 d2 1\n", 2,
            "found 4 in '1 0 d2 1'; repair the line (recognised as qrels without iterations, qid docno label)"),
        "qrels made four by a repeated blank": (b"1 0 d1 2\n1  d1 2\n", 2, "found 3 in"),
        "label 1.5": (b"1 0 d1 1\n1 0 d2 1.5\n", 2, "label must be a whole number of at most 64 bits, found '1.5'"),
        "label 1.01": (b"1 0 d1 1.01\n", 1, "found '1.01'"),
        "no header below": (b"1 0 d x\nqid iteration docno label\n", 1, "found 'x'; repair the line"),
        "word for a label": (b"1 0 d1 yes\n", 1, "found 'yes'"),
        "label 1_0": (b"1 0 d1 1_0\n", 1, "found '1_0'"),
        "label 0x1": (b"1 0 d1 0x1\n", 1, "found '0x1'"),
        "label of 65 bits": (b"1 0 d1 9223372036854775808\n", 1, "64 bits"),
        "label of 5000 digits": (b"1 0 d1 " + b"9" * 5000 + b"\n", 1, "64 bits, found '9999"),
    },
    read_intents: {
        "latin1 between commas": (b"qid,entity_id,prob\nq1,\xe9,1\n", 2, "found byte 0xe9"),
        "latin1 in a header": (b"qid\tentity_id\tprob\t\xe9\nq1\tE\t1\tx\n", 1, "found byte 0xe9"),
        "NUL between tabs": (b"qid\tentity_id\tprob\tx\nq1\tE\t1\t\0\n", 2, "NUL"),
        "NUL between commas": (b"qid,entity_id,prob,x\nq1,E,1,\0\n", 2, "NUL"),
        "word for a probability": (b"qid\tentity_id\tprob\nq1\tE1\tx\n", 2,
            "prob must be a number, found 'x'; repair the line"),
        "blanks around the number above": (b"qid\tentity_id\tprob\nq1\tE1\t 0.5 \nq1\tE2\tx\n", 3,
            "prob must be a number, found 'x'"),
        "no probability": (b"qid\tentity_id\tprob\nq1\tE1\t\n", 2, "prob must be a number, found ''"),
        "NaN for a probability": (b"q1 E1 nan\n", 1, "prob must be a number, found 'nan'"),
        "header without one column": (b"qid\tentity_id\tprobability\n", 1,
            "missing prob; found qid, entity_id, probability. Did you mean probability?"),
        "header with a column twice": (b"qid,entity_id,prob,prob\n", 1, "column 'prob' occurs 2 times; keep one"),
        "unknown header": (b"a b c\nq1 E1 1\n", 1,
            "found 'c'; this looks like a header: name its columns as qid<tab>entity_id<tab>prob, or remove the line"),
        "header of intents without our names": (b"id wiki score\nq1 E1 1\n", 1, "missing qid; found id"),
        "four columns without header": (b"q1 0 E1 1\n", 1,
            "wanted 3 fields, qid entity_id prob; found 4 in 'q1 0 E1 1'; name the columns in a header line"),
        "empty id": (b"qid\tentity_id\tprob\nq1\t\t1\n", 2, "entity_id is empty; give it an id, or remove the line"),
        "short line below a header": (b"qid\tentity_id\tprob\nq1\tE1\n", 2,
            "wanted 3 fields, qid entity_id prob; found 2"),
        "short line below a record of two lines": (b'qid,entity_id,prob,name\nq1,E1,1,"a\nb"\n\nq2,E2\n', 5,
            "found 2 in 'q2,E2'"),
        "line end in an id": (b'qid,entity_id,prob\n"q\n1",E1,1\n', 2, "qid holds a line end"),
        "text behind a closing quote": (b'qid,entity_id,prob\nq1,E1,1\nq2,"E,1\nq3,"F,1\n', 3,
            "text follows a closing quote"),
        "text behind a closing quote, stray quote above": (b'qid,entity_id,prob\nq",E1,1\nq2,"E"1,1\n', 3,
            "text follows a closing quote"),
        "comma too many, stray quote above": (b'qid,entity_id,prob\nq",E1,1\nq2,E2,1,1\n', 3, "found 4"),
        "quote left open": (b'qid,entity_id,prob\nq1,E1,1\n"q2,E2,1\nq3,E3,1\n', 3, "a quote is not closed"),
        "quote left open above very much": (b'qid,entity_id,prob\n"q2,E2,1\n' + b"q3,E3,1\n" * 20000, 2,
            "cannot be split at its commas"),
    },
    read_tags: {
        "header of other names": (b"doc,entity,score\n", 1,
            "wanted columns docno, entity_id; missing docno; found doc"),
        "unknown header of five": (b"a\tb\tc\td\te\n", 1,
            ("found 5 in 'a\\tb\\tc\\td\\te'; this looks like a header: name its columns as "
            "docno<tab>entity_id<tab>weight")),
        "header of entities": (b"id\tlabel\talias\tprior\tkind\n", 1, "missing docno; found id, label, alias"),
        "header of a table without our names": (b"doc\tcui\nd1\tC1\n", 1, "missing docno; found doc, cui"),
        "one column of tags": (b"d1\n", 1, "wanted 3 fields, docno entity_id weight; found 1"),
        "empty topic of tags": (b"docno,entity_id,qid\nd,E,\n", 2, "qid is empty"),
        "empty fields": (b"docno\tentity_id\nd\tE\n\t\n", 3, "docno is empty"),
        "blank in an id": (b"d1 New York 1\n", 1, "found 4 in"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "content", "line", "words"),
    [pytest.param(read, *fault, id=name) for read, faults in FAULTS.items() for name, fault in faults.items()],
)
def test_errors_name_the_line(stored, read, content, line, words):
    path = stored(content)
    with pytest.raises(FileError) as caught:
        read(path)
    place = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(place)
    assert words in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert isinstance(caught.value, ValueError)


@pytest.mark.slow
def test_odd_lines_far_down_read_right_and_faults_are_named(stored):
    n_lines = 200_000
    plain = b"q1 Q0 d1 1 2.5 bm25\n" * n_lines
    frame = read_run(stored(plain + b" q2  Q0\td2 +2 .5 bm26 \r\n"))
    assert len(frame) == n_lines + 1
    assert rows(frame.tail(1)) == [["q2", "d2", 0.5, 2, "bm26"]]
    assert frame["score"].iloc[:-1].eq(2.5).all()
    with pytest.raises(FileError, match=f":{n_lines + 1}: wanted 6 fields"):
        read_run(stored(plain + b"q1 Q0 d1 1 bm25\n"))
    # A line longer than a block.
    long = "d" * 3_000_000
    frame = read_run(stored(ONE_RUN + f"q1 Q0 {long} 3 1 bm25\n".encode()))
    assert frame["docno"].tolist() == ["d1", "d2", long]


def test_line_ends_inside_quotes_in_a_large_file(stored, monkeypatch):
    monkeypatch.setattr(tables, "_MAX_LINE_BYTES", 1 << 20)
    n_rows = 100_000
    frame = read_intents(stored(b"qid,entity_id,prob,text\n" + b'q1,E1,1,"one\nand,\ntwo"\n' * n_rows))
    assert len(frame) == n_rows
    assert frame["text"].eq("one\nand,\ntwo").all()


def test_the_fast_way_is_taken_by_tidy_files(stored, monkeypatch):
    monkeypatch.setattr(tables, "_tidy", None)
    assert rows(read_run(stored(ONE_RUN.replace(b"\n", b"\r\n")))) == ONE_RUN_ROWS
    assert rows(read_run(stored(gzip.compress(ONE_RUN)))) == ONE_RUN_ROWS


def test_small_files_that_inflate_without_end_and_damaged_parquet(stored, tmp_path):
    path = stored(gzip.compress(ONE_RUN * 100_000))
    with pytest.raises(FileError, match="holds more than 1,000,000 bytes when unpacked; max_bytes= of its reader"):
        read_run(path, max_bytes=1_000_000)
    assert len(read_run(path, max_bytes=None)) == 200_000
    one_line = stored(gzip.compress(b"q" * 10_000_000))
    with pytest.raises(FileError, match="holds more than"):
        read_run(one_line, max_bytes=1_000_000)
    table = tmp_path / "table.parquet"
    pd.DataFrame({"docno": ["d" * 1000], "entity_id": ["E"]}).to_parquet(table)
    with pytest.raises(FileError, match="max_bytes="):
        read_tags(table, max_bytes=100)
    with pytest.raises(FileError, match="is not a readable Parquet file"):
        read_tags(stored(table.read_bytes()[:-9]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "content", [ONE_RUN, gzip.compress(ONE_RUN), ONE_RUN.replace(b" ", b"  ")], ids=["plain", "gzip", "blanks"]
)
def test_pipes_are_read_whole_although_only_once(tmp_path, content):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    frame = read_run(pipe)
    writer.join()
    assert rows(frame) == ONE_RUN_ROWS


# Parquet.

PARQUET = {
    "run": (read_run, {"name": ["t"], "rank": [1], "score": [2.5], "docno": ["d"], "qid": ["NA"], "text": ["x"]},
        ["NA", "d", 2.5, 1, "t", "x"]),
    "ids that are integers": (read_run, {"qid": [7], "docno": ["d"], "score": [2], "rank": [1.0]}, ["7", "d", 2.0, 1]),
    "qrels": (read_qrels, {"qid": ["q"], "docno": ["d"], "label": ["1"]}, ["q", "0", "d", 1]),
    "diversity": (read_qrels, {"qid": ["q"], "iteration": [3], "docno": ["d"], "label": [-1]}, ["q", "3", "d", -1]),
    "intents": (read_intents, {"qid": ["q"], "entity_id": ["E"], "prob": ["0.5"], "name": [None]},
        ["q", "E", 0.5, None]),
    "tags": (read_tags, {"docno": ["d"], "entity_id": ["E"]}, ["d", "E", 1.0]),
    "categories": (read_tags, {"docno": pd.Categorical(["d"]), "entity_id": pd.Categorical([5])}, ["d", "5", 1.0]),
}  # fmt: skip


@pytest.mark.parametrize(("read", "columns", "expected"), PARQUET.values(), ids=PARQUET)
def test_parquet_whatever_its_name(tmp_path, read, columns, expected):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    path = folder / "table.txt"
    pd.DataFrame(columns, index=[5]).to_parquet(path)
    (row,) = rows(read(path))
    assert [None if value is None or value != value else value for value in row] == expected  # noqa: PLR0124


PARQUET_FAULTS = {
    "column missing": (read_run, {"qid": ["q"], "dcno": ["d"]},
        "wanted columns qid, docno; missing docno; found qid, dcno. Did you mean dcno?"),
    "id missing": (read_qrels, {"qid": ["q", None], "docno": ["d", "d"], "label": [1, 1]},
        "column 'qid' has no value in row 1"),
    "optional id missing": (read_tags, {"docno": ["d"], "entity_id": ["E"], "qid": pd.array([None], "string")},
        "column 'qid' has no value in row 0"),
    "ids that are fractions": (read_qrels, {"qid": [1.0], "docno": ["d"], "label": [1]},
        "column 'qid' must hold text, found double; cast it"),
    "label 1.5": (read_qrels, {"qid": ["q"], "docno": ["d"], "label": [1.5]},
        "column 'label' must hold int64, found double that does not convert"),
    "NaN": (read_run, {"qid": ["q"], "docno": ["d"], "score": [np.nan], "rank": [1]},
        "column 'score' has no value in row 0"),
    "word for a number": (read_intents, {"qid": ["q"], "entity_id": ["E"], "prob": ["x"]},
        "column 'prob' must hold double"),
    "list for a number": (read_intents, {"qid": ["q"], "entity_id": ["E"], "prob": [[1.0]]},
        "column 'prob' must hold double"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "columns", "words"), PARQUET_FAULTS.values(), ids=PARQUET_FAULTS)
def test_errors_of_parquet_name_the_column(tmp_path, read, columns, words):
    path = tmp_path / "table.parquet"
    pd.DataFrame(columns).to_parquet(path)
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


# Writing.

RUN = pd.DataFrame({"qid": ["q2", "q1", "q2"], "docno": ["a", "b", "c"], "score": [1.0, 0.1, 2.0]})


def test_written_runs_and_qrels(tmp_path):
    path = tmp_path / "run.txt"
    write_run(RUN, path)
    assert path.read_text() == "q2 Q0 a 1 1 vbterrier\nq2 Q0 c 2 2 vbterrier\nq1 Q0 b 1 0.1 vbterrier\n"
    path.chmod(0o600)
    write_run(RUN.assign(rank=[1, 0, 0], name="other"), path, name="mine")
    assert path.read_text() == "q2 Q0 c 1 2 mine\nq2 Q0 a 2 1 mine\nq1 Q0 b 1 0.1 mine\n"
    assert path.stat().st_mode & 0o777 == 0o600, "who may read it stays"
    write_qrels(pd.DataFrame({"qid": [1, 2], "docno": ["a", "b"], "label": [2**62 + 1, -1]}), path)
    assert path.read_text() == f"1 0 a {2**62 + 1}\n2 0 b -1\n"
    write_qrels(pd.DataFrame({"qid": ["1"], "iteration": ["3"], "docno": ["a"], "label": ["1"]}), path)
    assert path.read_text() == "1 3 a 1\n"
    packed = [tmp_path / name for name in ("a.gz", "b.gz")]
    for path in packed:
        write_run(RUN, path)
    assert packed[0].read_bytes() == packed[1].read_bytes()
    assert packed[0].read_bytes()[3:8] == bytes(5), "neither a name nor a time"
    assert gzip.decompress(packed[0].read_bytes()).endswith(b"0.1 vbterrier\n")


@pytest.mark.parametrize(
    "bad", ["a b", "", "a\tb", "a\n", "\xa0", "a\u2028b", "\u3000", "\x85", "\x1c", "a\0", "\ufeffa"]
)
@pytest.mark.parametrize("column", ["qid", "docno"])
def test_ids_that_no_trec_file_can_hold(tmp_path, bad, column):
    for write, frame in ((write_run, RUN), (write_qrels, RUN.assign(label=1))):
        with pytest.raises(InputError) as caught:
            write(frame.assign(**{column: ["ok", bad, "ok"]}), tmp_path / "file.txt")
        assert f"column '{column}': row 1 holds {bad!r}; " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_frames_that_cannot_be_written(tmp_path):
    path = tmp_path / "run.txt"
    for frame, words in [
        (RUN.drop(columns="score"), "missing score"),
        (RUN.assign(score=np.nan), "column 'score': row 0"),
        (RUN.assign(rank=[0, 1, np.nan]), "column 'rank': row 2"),
        (RUN.assign(docno=None), "column 'docno': row 0"),
    ]:
        with pytest.raises(InputError, match=words):
            write_run(frame, path)
    with pytest.raises(InputError, match=r"column 'label': row 0 holds .*1\.5"):
        write_qrels(RUN.assign(label=1.5), path)
    with pytest.raises(InputError, match="column 'iteration': row 0 holds 'a b'"):
        write_qrels(RUN.assign(label=1, iteration="a b"), path)
    for name in ("", "a b", " a", "a\n"):
        with pytest.raises(ParameterError, match="wanted a run tag without white space"):
            write_run(RUN, path, name=name)
    assert list(tmp_path.iterdir()) == []


def test_writing_fails_whole(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="cannot be written: No such file"):
        write_run(RUN, tmp_path / "nowhere" / "run.txt")
    with pytest.raises(FileError, match="cannot be written"):
        write_run(RUN, tmp_path)
    path = tmp_path / "run.txt"
    write_run(RUN, path)
    before = path.read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables.pc, "binary_join", full)
    with pytest.raises(FileError, match="No space left"):
        write_run(RUN.head(1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_writing_through_a_link_and_into_a_pipe(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.touch()
    link.symlink_to(target)
    write_run(RUN, link)
    assert link.is_symlink()
    assert len(read_run(target)) == len(RUN)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_run, args=(RUN, pipe))
    writer.start()
    assert len(read_run(pipe)) == len(RUN)
    writer.join()
    assert pipe.is_fifo()


@pytest.mark.parametrize("run", [RUN, RUN.head(0)], ids=["more rows than are written at once", "none"])
def test_runs_of_any_size_are_written(tmp_path, monkeypatch, run):
    monkeypatch.setattr(writing, "_BLOCK_ROWS", 2)
    write_run(run, tmp_path / "run.txt")
    assert (tmp_path / "run.txt").read_bytes().count(b"\n") == len(run)
    assert run.empty or len(read_run(tmp_path / "run.txt")) == len(run)


# Without controls and separators.
IDS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
# A line that begins with # is a comment.
QIDS = IDS.filter(lambda qid: not qid.startswith("#"))
SCORES = st.floats(allow_nan=False)
AGAIN = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@AGAIN
@given(
    table=st.lists(st.tuples(QIDS, IDS, SCORES), min_size=1, max_size=20), name=IDS, suffix=st.sampled_from(["", ".gz"])
)
def test_runs_round_trip(tmp_path, table, name, suffix):
    frame = pd.DataFrame(sorted(table, key=lambda row: row[0]), columns=["qid", "docno", "score"])
    write_run(frame, tmp_path / f"run{suffix}", name=name)
    back = read_run(tmp_path / f"run{suffix}")
    assert_frame_equal(back[["qid", "docno"]], frame[["qid", "docno"]], check_dtype=False)
    assert back["score"].to_numpy().tobytes() == frame["score"].to_numpy().tobytes()
    assert back["rank"].tolist() == (frame.groupby("qid", sort=False).cumcount() + 1).tolist()
    assert back["name"].eq(name).all()


@AGAIN
@given(
    table=st.lists(st.tuples(QIDS, IDS, IDS, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=20),
    suffix=st.sampled_from(["", ".gz"]),
)
@example(table=[("{", "0", "d1", 1)], suffix="")
@example(table=[("[", "[", '"', 1)], suffix="")
def test_qrels_round_trip(tmp_path, table, suffix):
    frame = pd.DataFrame(table, columns=["qid", "iteration", "docno", "label"])
    write_qrels(frame, tmp_path / f"qrels{suffix}")
    assert_frame_equal(read_qrels(tmp_path / f"qrels{suffix}"), frame, check_dtype=False)


FIELD = st.sampled_from([b"q1", b"Q0", b"7", b"1", b"2.5", b"nan", b"x", b"\xff", b"0", b'"'])
WHITE = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b" \t", b"\f"])
END = st.sampled_from([b"\n", b"\r\n", b"\r", b" \n", b"\n\n", b"\n "])


@AGAIN
@given(data=st.data())
def test_any_bytes_read_as_a_plain_loop_reads_them_or_are_refused(stored, data):
    lines = data.draw(st.lists(st.lists(FIELD, min_size=5, max_size=7), min_size=1, max_size=3))
    content = b"q1 Q0 7 1 2.5 t\n"
    for fields in lines:
        content += b"".join(field + data.draw(WHITE) for field in fields[:-1]) + fields[-1] + data.draw(END)
    expected = []
    for line in content.splitlines():
        fields = line.split()
        try:
            if fields:
                qid, _, docno, rank, score, name = [field.decode() for field in fields]
                expected.append([qid, docno, float(score), int(rank), name])
                assert expected[-1][2] == expected[-1][2]
        except (ValueError, AssertionError):
            expected = None
            break
    path = stored(content)
    if expected is None:
        with pytest.raises(FileError, match=r":\d+: "):
            read_run(path)
    else:
        assert rows(read_run(path)) == expected


# Real files.


def plainly(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.split() for line in file]


@pytest.mark.nightly
def test_real_runs_and_qrels(shared_data):
    n_read = 0
    for folder in ("trec-covid", "trec_web_diversity"):
        for path in sorted((shared_data / folder).rglob("*.gz")):
            if "qrels" in path.name:
                expected = [[q, i, d, int(label)] for q, i, d, label in plainly(path)]
                assert rows(read_qrels(path)) == expected
            elif "run" in path.name:
                expected = [[q, d, float(score), int(rank), tag] for q, _, d, rank, score, tag in plainly(path)]
                assert rows(read_run(path)) == expected
            else:
                continue
            n_read += 1
    assert n_read == 11
