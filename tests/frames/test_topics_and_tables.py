"""Readers of topics, documents, intents, tags, answers and mentions, and their writers."""

import gzip
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import (
    read_answers,
    read_documents,
    read_intents,
    read_mentions,
    read_subtopics,
    read_tags,
    read_topics,
)
from vbterrier.frames.files.writing import write_intents, write_queries, write_tags

READ = {
    "topics without a header": (
        read_topics,
        "007\tJordan achievements\nNA\thow to query a qid\n",
        [{"qid": "007", "query": "Jordan achievements"}, {"qid": "NA", "query": "how to query a qid"}],
    ),
    "other columns of topics": (
        read_topics,
        "query\tqid\tconstraints\nJohn Smith\tq1\tstate:OH\n",
        [{"qid": "q1", "query": "John Smith", "constraints": "state:OH"}],
    ),
    "quoted topics": (read_topics, 'qid,query\nq1,"Paris, Texas"\n', [{"qid": "q1", "query": "Paris, Texas"}]),
    "documents with a header": (
        read_documents,
        "docno\ttitle\tbody\n07\tParis\tin France\n",
        [{"docno": "07", "title": "Paris", "body": "in France"}],
    ),
    "documents": (read_documents, "07\tParis, in France\n", [{"docno": "07", "text": "Paris, in France"}]),
    "scores of answers": (
        read_answers,
        "q1 Q90 0.5\nq1 Q1 1\n",
        [{"qid": "q1", "entity_id": "Q90", "score": 0.5}, {"qid": "q1", "entity_id": "Q1", "score": 1.0}],
    ),
    "other columns of answers": (
        read_answers,
        "qid\tmention\tscore\tentity_id\nq1\t12\t2\tQ90\n",
        [{"qid": "q1", "entity_id": "Q90", "mention": "12", "score": 2.0}],
    ),
    "a run as answers": (
        read_answers,
        "q1 Q0 Q90 1 0.5 mine\n",
        [{"qid": "q1", "entity_id": "Q90", "rank": 1, "score": 0.5, "name": "mine"}],
    ),
    "judgments as answers": (
        read_answers,
        "q1 0 Q90 1\n",
        [{"qid": "q1", "entity_id": "Q90", "iteration": "0", "label": 1}],
    ),
    "mentions without entities": (read_mentions, "d1\tParis\n", [{"docno": "d1", "mention": "Paris"}]),
    "other columns of mentions": (
        read_mentions,
        "docno\tmention\tnote\nd1\tParis\t\n",
        [{"docno": "d1", "mention": "Paris", "note": ""}],
    ),
}


@pytest.mark.parametrize(("read", "text", "rows"), READ.values(), ids=READ)
def test_tables_are_read(stored, read, text, rows):
    assert read(stored(text)).to_dict("records") == rows


@pytest.mark.parametrize("word", ["query", "text", "Wiki", "title", "entity", "topic", "doc", "id"])
@pytest.mark.parametrize("read", [read_topics, read_documents])
def test_a_text_that_is_a_heading_beside_an_id_is_data(stored, read, word):
    assert read(stored(f"q1\t{word}\nq2\tParis\n")).to_numpy().tolist() == [["q1", word], ["q2", "Paris"]]


HEADERS = {
    "id\ttext": (["qid", "query"], ["docno", "text"]),
    "id\tcontents": ("query", ["docno", "text"]),
    "pid\twiki": ("qid", ["docno", "wiki"]),
    "pid,wiki": ("qid", ["docno", "wiki"]),
    "Query ID\tQuery": (["qid", "query"], "docno"),
    "QID\tQUESTION": (["qid", "query"], "docno"),
    "_id\tbody": ("query", ["docno", "text"]),
    "#id\tpassage": ("query", ["docno", "text"]),
    "query_id\tsomething else": ("query", "docno"),
    '"number"\t"title"': (["qid", "query"], "docno"),
    '"number","title"': (["qid", "query"], "docno"),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("place", [0, 1])
def test_headers_of_other_collections_are_not_data(stored, header, place):
    read, expected = (read_topics, read_documents)[place], HEADERS[header][place]
    separator = "," if "," in header else "\t"
    path = stored(f"{header}\n1{separator}Paris\n")
    if isinstance(expected, list):
        result = read(path)
        assert list(result) == expected
        assert result.to_numpy().tolist() == [["1", "Paris"]]
    else:
        with pytest.raises(FileError, match=f"input:1: wanted columns .*; missing {expected}; found"):
            read(path)


def test_json_lines_keep_what_they_hold(stored):
    lines = '{"query": "Emerson", "qid": "07", "intents": [1]}\n\n{"qid": 8, "query": "NA", "extra": null}\n'
    topics = read_topics(stored(lines))
    assert topics[["qid", "query"]].to_numpy().tolist() == [["07", "Emerson"], ["8", "NA"]]
    assert list(topics) == ["qid", "query", "intents", "extra"]
    assert topics["intents"][0] == [1]


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8)
ID = st.text(st.characters(whitelist_categories=["L", "N"]), min_size=1, max_size=5)


@settings(max_examples=60)
@given(st.lists(st.tuples(ID, ID, st.floats(0, 1), TEXT), min_size=1, max_size=6))
def test_intents_read_back_as_written(tmp_path_factory, rows):
    frame = pd.DataFrame(rows, columns=["qid", "entity_id", "prob", "name"])
    path = tmp_path_factory.mktemp("intents") / "intents.tsv"
    # Columns with gaps and unknown columns are not written.
    write_intents(frame.assign(score=float("nan"), violations=[[1.0]] * len(frame)), path)
    assert read_intents(path).to_numpy().tolist() == frame.to_numpy().tolist()
    assert list(read_intents(path)) == list(frame)


def test_tags_are_written_packed_with_weight_and_query(tmp_path):
    frame = pd.DataFrame({"docno": ["d1"], "entity_id": ["NA"], "weight": [0.25], "qid": ["01"]})
    write_tags(frame, tmp_path / "tags.tsv.gz")
    assert gzip.decompress((tmp_path / "tags.tsv.gz").read_bytes()) == (
        b"docno\tentity_id\tweight\tqid\nd1\tNA\t0.25\t01\n"
    )
    assert read_tags(tmp_path / "tags.tsv.gz").to_dict("records") == frame.to_dict("records")


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb", "a\0b"])
def test_text_that_would_end_its_field_is_refused_by_row(tmp_path, bad):
    frame = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["A", "B"], "prob": [0.5, 0.5], "name": ["fine", bad]})
    with pytest.raises(InputError, match=r"intents column 'name': row 1 holds"):
        write_intents(frame, tmp_path / "intents.tsv")
    with pytest.raises(InputError, match=r"tags column 'entity_id': row 0 holds ''"):
        write_tags(pd.DataFrame({"docno": ["d1"], "entity_id": [""]}), tmp_path / "tags.tsv")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_tables_go_through_an_inherited_pipe():
    code = (
        "import pandas as pd; from vbterrier.frames.files.writing import write_tags; "
        "write_tags(pd.DataFrame({'docno': ['d1'], 'entity_id': ['E']}), '/dev/stdout')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "docno\tentity_id\nd1\tE\n"


# Answers.

GOLD = [["q1", "New York"], ["007", "NA"], ["q3", "NIL"]]


@pytest.mark.parametrize(
    "text",
    [
        "qid\tentity_id\nq1\tNew York\n007\tNA\nq3\tNIL\n",
        "q1\tNew York\n007\tNA\nq3\tNIL\n",
        "qid,entity_id\nq1,New York\n007,NA\nq3,NIL\n",
        "entity_id\tqid\nNew York\tq1\nNA\t007\nNIL\tq3\n",
    ],
)
def test_answers_stay_text_with_a_header_and_without(stored, text):
    result = read_answers(stored(text))
    assert result.columns.tolist() == ["qid", "entity_id"]
    assert result.values.tolist() == GOLD


def test_answers_in_gzip_and_parquet_are_recognised_by_content(tmp_path):
    with gzip.open(tmp_path / "a", "wt") as file:
        file.write("q1 Q90\nq2 NIL\n")
    assert read_answers(tmp_path / "a").values.tolist() == [["q1", "Q90"], ["q2", "NIL"]]
    pd.DataFrame(GOLD, columns=["qid", "entity_id"]).assign(mention="x").to_parquet(tmp_path / "b")
    result = read_answers(tmp_path / "b")
    assert result.columns.tolist() == ["qid", "entity_id", "mention"]
    assert result[["qid", "entity_id"]].values.tolist() == GOLD


# Mentions and queries.

MENTIONED = [["007", "Paris, Texas", "NA"], ["d 2", 'the "Hole"', "NIL"]]
MENTIONS = {
    "no header": b'007\tParis, Texas\tNA\nd 2\tthe "Hole"\tNIL\n',
    "header": b'docno\tmention\tentity_id\n007\tParis, Texas\tNA\nd 2\tthe "Hole"\tNIL\n',
    "other order, CRLF": b'entity_id\tmention\tdocno\r\nNA\tParis, Texas\t007\r\nNIL\tthe "Hole"\td 2\r\n',
    "commas": b'docno,mention,entity_id\n007,"Paris, Texas",NA\nd 2,"the ""Hole""",NIL\n',
}


@pytest.mark.parametrize("content", MENTIONS.values(), ids=MENTIONS)
@pytest.mark.parametrize("packed", [False, True])
def test_mentions_read_as_they_are(stored, tmp_path, content, packed):
    mentions = read_mentions(stored(gzip.compress(content) if packed else content))
    assert mentions.columns.tolist() == ["docno", "mention", "entity_id"]
    assert mentions.to_numpy().tolist() == MENTIONED
    pd.DataFrame({"size": [0.5], "mention": ["Paris"], "docno": [7]}).to_parquet(tmp_path / "mentions")
    assert read_mentions(tmp_path / "mentions").to_dict("records") == [{"docno": "7", "mention": "Paris", "size": 0.5}]


def test_queries_read_back(tmp_path):
    path = tmp_path / "queries.tsv.gz"
    frame = pd.DataFrame({"prob": [0.1, 1 / 3], "qid": ["q1", "q2"], "docno": ["007", "d 2"]})
    frame = frame.assign(mention=["Paris, Texas", 'the "Hole"'], note=[None, 2.5], n_draws=[1, 2])
    write_queries(frame, path)
    mentions = read_mentions(path)
    assert mentions.columns.tolist() == ["docno", "mention", "qid", "prob", "note", "n_draws"]
    assert mentions["prob"].astype(float).tolist() == [0.1, 1 / 3]
    assert mentions["note"].tolist() == ["", "2.5"]
    with pytest.raises(InputError, match="row 0 holds"):
        write_queries(frame.assign(mention="a\tb"), path)
    with pytest.raises(InputError, match="missing mention"):
        write_queries(frame.drop(columns="mention"), path)


# Subtopics

WEB = """<?xml version="1.0" encoding="UTF-8"?>
<!-- topics -->
<webtrack2009>
<topic number="007" type="faceted">
  <query>french &amp; lick</query>
  <subtopic number="1" type="nav">
     Find the <b>home</b>page
       of caf&#233;s.
  </subtopic>
  <subtopic number="2"/>
</topic>
<topic number="8" type="single"><query>no subtopics</query></topic>
</webtrack2009>
"""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_subtopics_of_a_topic_file_of_trec_web(stored, pack):
    path = stored(pack(WEB.encode()))
    result = read_subtopics(path)
    assert list(result) == ["qid", "entity_id", "name", "type"]
    assert result.to_numpy().tolist() == [["007", "1", "Find the homepage of cafés.", "nav"], ["007", "2", "", ""]]
    assert read_intents(path)[["qid", "entity_id", "prob"]].to_numpy().tolist() == [
        ["007", "1", 0.5],
        ["007", "2", 0.5],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 1\n1 2\n", [["1", "1"], ["1", "2"]]),
        ("1\t1\t0.75\n1\t2\t0.25\n", [["1", "1", 0.75], ["1", "2", 0.25]]),
        ("qid,entity_id,name\n1,a,air\n", [["1", "a", "air"]]),
    ],
)
def test_subtopics_of_delimited_text(stored, text, expected):
    assert read_subtopics(stored(text)).to_numpy().tolist() == expected
