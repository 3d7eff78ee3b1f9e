"""Readers of topics, documents, intents and tags, and their writers."""

import gzip
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import read_documents, read_intents, read_tags, read_topics
from vbterrier.frames.files.writing import write_intents, write_tags


def stored(folder, text, name="topics.tsv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_topics_without_a_header_follow_their_qid(tmp_path):
    topics = read_topics(stored(tmp_path, "007\tJordan achievements\nNA\tnull\n"))
    assert topics.to_numpy().tolist() == [["007", "Jordan achievements"], ["NA", "null"]]


def test_the_word_query_in_a_query_is_no_header(tmp_path):
    assert read_topics(stored(tmp_path, "q1\thow to query a qid\n"))["query"].tolist() == ["how to query a qid"]


@pytest.mark.parametrize("word", ["query", "text", "Wiki", "title", "entity", "topic", "doc", "id"])
@pytest.mark.parametrize("read", [read_topics, read_documents])
def test_a_text_that_is_a_heading_beside_an_id_is_data(tmp_path, read, word):
    assert read(stored(tmp_path, f"q1\t{word}\nq2\tParis\n")).to_numpy().tolist() == [["q1", word], ["q2", "Paris"]]


@pytest.mark.parametrize(
    "header",
    [
        "id\ttext",
        "id\tcontents",
        "pid\twiki",
        "pid,wiki",
        "Query ID\tQuery",
        "QID\tQUESTION",
        "_id\ttitle\tbody",
        "entity\turl",
        "#id\tpassage",
        "query_id\tsomething else",
        '"number"\t"title"',
    ],
)
@pytest.mark.parametrize(("read", "wanted"), [(read_topics, "qid"), (read_documents, "docno")])
def test_headers_of_other_collections_are_not_data(tmp_path, header, read, wanted):
    with pytest.raises(FileError, match=f"topics.tsv:1: wanted columns {wanted}.*; missing {wanted}; found"):
        read(stored(tmp_path, f"{header}\n1\tParis\n"))


def test_documents_are_no_topics(tmp_path):
    with pytest.raises(FileError, match="wanted columns qid, query; missing qid; found docno, text"):
        read_topics(stored(tmp_path, "docno\ttext\nd1\tParis\n"))


def test_other_columns_of_topics_pass_through(tmp_path):
    topics = read_topics(stored(tmp_path, "query\tqid\tconstraints\nJohn Smith\tq1\tstate:OH\n"))
    assert topics.to_dict("records") == [{"qid": "q1", "query": "John Smith", "constraints": "state:OH"}]


def test_topics_between_commas_may_be_quoted(tmp_path):
    assert read_topics(stored(tmp_path, 'qid,query\nq1,"Paris, Texas"\n'))["query"].tolist() == ["Paris, Texas"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Jordan achievements\n", r"topics.tsv:1: wanted 2 fields, qid query; found 1 .*write qid<tab>query"),
        ("q1\tJordan\nq2\tEmerson\textra\n", r"topics.tsv:2: wanted 2 fields"),
        ("qid\ttext\nq1\tJordan\n", r"topics.tsv:1: .*missing query"),
        ("", "empty"),
    ],
)
def test_topics_that_cannot_be_read_name_line_and_remedy(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        read_topics(stored(tmp_path, text))


def test_documents_with_or_without_a_header(tmp_path):
    with_fields = stored(tmp_path, "docno\ttitle\tbody\n07\tParis\tin France\n")
    assert read_documents(with_fields).to_dict("records") == [{"docno": "07", "title": "Paris", "body": "in France"}]
    plain = stored(tmp_path, "07\tParis, in France\n")
    assert read_documents(plain).to_dict("records") == [{"docno": "07", "text": "Paris, in France"}]


def test_json_lines_keep_what_they_hold(tmp_path):
    lines = '{"query": "Emerson", "qid": "07", "intents": [1]}\n\n{"qid": 8, "query": "NA", "extra": null}\n'
    topics = read_topics(stored(tmp_path, lines))
    assert topics[["qid", "query"]].to_numpy().tolist() == [["07", "Emerson"], ["8", "NA"]]
    assert list(topics) == ["qid", "query", "intents", "extra"]
    assert topics["intents"][0] == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"docno": "a", "text": "x"}\n{"docno": "b"\n', r"topics.tsv:2: is not JSON"),
        ('{"docno": "a"}\n[1]\n', r"topics.tsv:2: wanted an object in each line, found '\[1\]'"),
        ('{"docno": "a"}\n{"id": "b"}\n', r"topics.tsv:2: member 'docno' is missing, wanted text; found id"),
        ('{"docno": 1.5}\n', r"topics.tsv:1: member 'docno' is 1.5, wanted text"),
        ('{"docno": true}\n', r"topics.tsv:1: member 'docno' is True, wanted text"),
        ('{"docno": ""}\n', r"topics.tsv:1: member 'docno' is '', wanted text"),
        ('{"docno": ' + "[" * 100_000 + "\n", r"topics.tsv:1: is not JSON"),
        ("id\ttext\n1\tx\n", r"topics.tsv:1: wanted columns docno; missing docno; found id, text"),
        ("d1 text without a tab\n", r"topics.tsv:1: wanted 2 fields, docno text; found 1 .*write docno<tab>text"),
    ],
)
def test_documents_that_cannot_be_read_name_line_and_remedy(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        read_documents(stored(tmp_path, text))


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8)
ID = st.text(st.characters(whitelist_categories=["L", "N"]), min_size=1, max_size=5)


@settings(max_examples=60)
@given(st.lists(st.tuples(ID, ID, st.floats(0, 1), TEXT), min_size=1, max_size=6))
def test_intents_read_back_as_written(tmp_path_factory, rows):
    frame = pd.DataFrame(rows, columns=["qid", "entity_id", "prob", "name"])
    path = tmp_path_factory.mktemp("intents") / "intents.tsv"
    write_intents(frame, path)
    assert read_intents(path).to_numpy().tolist() == frame.to_numpy().tolist()


def test_columns_with_gaps_and_unknown_columns_are_not_written(tmp_path):
    frame = pd.DataFrame(
        {"qid": ["q1"], "entity_id": ["E"], "prob": [1.0], "score": [float("nan")], "violations": [[1.0]]}
    )
    write_intents(frame, tmp_path / "intents.tsv")
    assert list(read_intents(tmp_path / "intents.tsv")) == ["qid", "entity_id", "prob"]


def test_tags_are_written_packed_with_weight_and_query(tmp_path):
    frame = pd.DataFrame({"docno": ["d1"], "entity_id": ["NA"], "weight": [0.25], "qid": ["01"]})
    write_tags(frame, tmp_path / "tags.tsv.gz")
    assert gzip.decompress((tmp_path / "tags.tsv.gz").read_bytes()) == (
        b"docno\tentity_id\tweight\tqid\nd1\tNA\t0.25\t01\n"
    )
    assert read_tags(tmp_path / "tags.tsv.gz").to_dict("records") == frame.to_dict("records")


def test_an_empty_id_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tags column 'entity_id': row 0 holds ''"):
        write_tags(pd.DataFrame({"docno": ["d1"], "entity_id": [""]}), tmp_path / "tags.tsv")


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb", "a\0b"])
def test_text_that_would_end_its_field_is_refused_by_row(tmp_path, bad):
    frame = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["A", "B"], "prob": [0.5, 0.5], "name": ["fine", bad]})
    with pytest.raises(InputError, match=r"intents column 'name': row 1 holds"):
        write_intents(frame, tmp_path / "intents.tsv")
    assert not list(tmp_path.iterdir())


def test_tables_go_through_an_inherited_pipe():
    code = (
        "import pandas as pd; from vbterrier.frames.files.writing import write_tags; "
        "write_tags(pd.DataFrame({'docno': ['d1'], 'entity_id': ['E']}), '/dev/stdout')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "docno\tentity_id\nd1\tE\n"
