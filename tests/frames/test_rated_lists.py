"""Rated lists of search teams: every form gives the same ratings, and is written again in the form it came in."""

import gzip
import json

import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import FileError, InputError
from vbterrier.frames import read_rated_list, write_rated_list
from vbterrier.frames.files.rated_lists import RatedList

ROWS = [['shoes, "red"', "007", 3], ['shoes, "red"', "d2", 0], ["hat", "007", 1]]
QUOTED = '"shoes, ""red"""'
REQUEST = {
    "requests": [
        {
            "id": 'shoes, "red"',
            "request": {"query": {"match_all": {}}},
            "ratings": [
                {"_index": "shop", "_id": "007", "rating": 3},
                {"_index": "shop", "_id": "d2", "rating": 0},
                {"_index": "shop", "_id": "new", "rating": None},
            ],
        },
        {"id": "hat", "ratings": [{"_index": "shop", "_id": "007", "rating": 1.0}]},
    ],
    "metric": {"dcg": {"k": 10}},
}
RESPONSE = {
    "metric_score": 0.5,
    "details": {
        'shoes, "red"': {
            "unrated_docs": [{"_index": "shop", "_id": "new"}],
            "hits": [
                {"hit": {"_index": "shop", "_id": "007", "_score": 1.5}, "rating": 3},
                {"hit": {"_index": "shop", "_id": "new", "_score": 1.5}, "rating": None},
                {"hit": {"_index": "shop", "_id": "d2", "_score": 0.5}, "rating": 0},
            ],
        },
        "hat": {"hits": [{"hit": {"_index": "shop", "_id": "007"}, "rating": 1}]},
    },
    "failures": {},
}
FORMS = {
    "Quepid, basic": f"query,doc_id,rating\r\n{QUOTED},007,3\r\n{QUOTED},d2,0\r\n{QUOTED},new,\r\nhat,007,1\r\n",
    "Quepid, detailed": (
        "Team Name,Case Name,Case ID,Query Text,Doc ID,Title,Rating,title,title\n"
        f"a,b,1,{QUOTED},007,Boots,3,x,y\na,b,1,{QUOTED},d2,,0,x,y\na,b,1,{QUOTED},new,,,x,y\na,b,1,hat,007,Cap,1,x,y\n"
    ),
    "tabs": 'docid\tquery\trating\n007\tshoes, "red"\t3\nd2\tshoes, "red"\t0\nnew\tshoes, "red"\t\n007\that\t1.0\n',
    "request": json.dumps(REQUEST),
    "response": json.dumps(RESPONSE),
    "wrapped response": json.dumps({"rank_eval": RESPONSE}, indent=2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_gives_the_same_ratings(tmp_path, form, packed):
    path = tmp_path / "ratings"
    path.write_bytes(gzip.compress(FORMS[form].encode()) if packed else FORMS[form].encode())
    result = read_rated_list(path, scale=(0, 3))
    assert result.labels[["qid", "docno", "label"]].to_numpy().tolist() == ROWS
    assert result.labels["label"].dtype == "int64"
    assert result.n_unrated == 1


def test_trec_qrels_and_runs_are_read_as_everywhere_and_ids_are_preferred_to_texts(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 0 d2 -1\n")
    (tmp_path / "run").write_text("q1 Q0 d1 1 2.5 bm25\n")
    result = read_rated_list(tmp_path / "qrels")
    assert (result.form, result.labels["label"].tolist()) == ("trec", [2, -1])
    assert vbterrier.read_run(tmp_path / "run")[["qid", "docno", "score"]].to_numpy().tolist() == [["q1", "d1", 2.5]]
    (tmp_path / "both.csv").write_text("query,query_id,docid,rating\nred shoes,q7,d1,2\n")
    assert read_rated_list(tmp_path / "both.csv").labels.to_numpy().tolist() == [["q7", "d1", 2]]


@pytest.mark.parametrize(
    "text",
    [
        "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\ns,t,1,hat,b,1\ns,t,1,hat,a,2\n",
        "query\tdocid\tposition\that\nhat\ta\t2\t-\nhat\tb\t1\t-\n",
        json.dumps({"details": {"hat": {"hits": [{"hit": {"_id": "b"}}, {"hit": {"_id": "a"}}]}}}),
    ],
    ids=["Quepid, snapshot", "tabs", "response"],
)
def test_runs_keep_the_order_of_their_positions(tmp_path, text):
    (tmp_path / "run").write_text(text)
    frame = vbterrier.read_run(tmp_path / "run").sort_values("score", ascending=False)
    assert frame[["qid", "docno", "rank"]].to_numpy().tolist() == [["hat", "b", 1], ["hat", "a", 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,docid,rating\nhat,d1,4\n", "rating of 'd1' for query 'hat' is 4, wanted a whole number from 0 to 3"),
        ("query,docid,rating\nhat,d1,-1\n", "is -1, wanted a whole number from 0 to 3"),
        ("query,docid,rating\nhat,d1,1.5\n", "is 1.5, wanted"),
        ("query,docid,rating\nhat,d1,good\n", "is good, wanted"),
        ("query,docid,rating\nhat,d1,inf\n", "is inf, wanted"),
        ("q1 0 d1 4\n", "is 4, wanted a whole number from 0 to 3"),
        ("query,docid,rating\nhat,d1,1\nhat,d1,1\n", "document 'd1' of query 'hat' is rated twice"),
        ("query,docid,rating\nRed  shoes,d1,1\nred shoes,d2,1\n", "queries 'Red  shoes' and 'red shoes' differ only"),
        ("query,docid,rating\nhat,d1,\n", "has no rating"),
        ("query,docid,rating\nhat,,1\n", "docno is empty"),
        ("query,rating\nhat,1\n", "wanted columns qid, docno, label; missing docno"),
        ("words,url,stars\nhat,d1,1\n", "looks like the header of a table that lacks columns: name them"),
        ("query,docid,rating\nhat,d1\n", "wanted 3 fields"),
        ('{"requests": [{"id": "hat"}]}', "request 0 has no list of ratings"),
        ('{"requests": {}}', "request 0 has no list of ratings"),
        ('{"requests": [{"ratings": []}]}', "id of request 0 is None"),
        ('{"requests": [{"id": "hat", "ratings": [7]}]}', "wanted objects with _index and _id, found 7"),
        ('{"requests": [{"id": "hat", "ratings": [{"_id": "d", "rating": true}]}]}', "is True, wanted"),
        ('{"requests": [{"id": "hat", "ratings": [{"_id": "", "rating": 1}]}]}', "_id of a document of 'hat' is ''"),
        ('{"requests": [{"id": "\\ud800", "ratings": []}]}', "half of a surrogate pair"),
        ('{"details": {"hat": {"hits": 3}}}', "query 'hat' has no list of hits"),
        ('{"query": "hat"}', "member 'docno' is missing, wanted text"),
        ('{"requests": [', "is not JSON (Expecting value); repair the line"),
        ("", "is empty"),
    ],
)
def test_bad_ratings_are_named(tmp_path, text, message):
    (tmp_path / "ratings").write_text(text)
    with pytest.raises(FileError) as caught:
        read_rated_list(tmp_path / "ratings", scale=(0, 3))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(REQUEST), "a request has no hits"),
        (json.dumps({**RESPONSE, "failures": {"cap": {}}}), "the search failed for 1 query ('cap')"),
        ("query,position\nhat,1\n", "missing docno; found query, position"),
        ("query,rating\nhat,1\n", "looks like the header of a table that lacks columns: name them, as qid,docno"),
    ],
)
def test_files_without_hits_are_named(tmp_path, text, message):
    (tmp_path / "run").write_text(text)
    with pytest.raises(FileError) as caught:
        vbterrier.read_run(tmp_path / "run")
    assert message in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_documents_to_rate_are_written_in_the_form_that_came_in(tmp_path, form):
    (tmp_path / "ratings").write_text(FORMS[form])
    like = read_rated_list(tmp_path / "ratings")
    expected = pd.DataFrame({"qid": ['shoes, "red"', "hat", "hat"], "docno": ["x", "y", "z"]})
    write_rated_list(expected, tmp_path / "next", like)
    text = (tmp_path / "next").read_text()
    if like.form == "rank_eval":
        result = json.loads(text)["requests"]
        assert [one["id"] for one in result] == ['shoes, "red"', "hat"]
        assert result[1]["ratings"][0] == {"_index": "shop", "_id": "y", "rating": None}
        text = text.replace('"rating": null', '"rating": 2')
    else:
        lines = text.splitlines()
        assert lines[0].split(like.separator) == list(like.heads)
        assert [line[-1] for line in lines[1:]] == [like.separator] * 3
        text = "\n".join([lines[0], *(f"{line}2" for line in lines[1:])])
    (tmp_path / "rated").write_text(text)
    again = read_rated_list(tmp_path / "rated")
    assert again.labels[["qid", "docno"]].to_numpy().tolist() == expected.to_numpy().tolist()
    assert again.form == like.form


def test_documents_without_ratings_are_a_plan_and_a_tab_in_a_query_is_refused(tmp_path):
    write_rated_list(pd.DataFrame({"qid": ["q1"], "docno": ["d1"]}), tmp_path / "next", RatedList(pd.DataFrame()))
    assert (tmp_path / "next").read_text() == "qid\tdocno\treason\nq1\td1\tunjudged\n"
    like = RatedList(pd.DataFrame(), "table", ("query", "docid", "rating"), "\t")
    with pytest.raises(InputError, match="holds a tab"):
        write_rated_list(pd.DataFrame({"qid": ["a\tb"], "docno": ["d1"]}), tmp_path / "other", like)
    assert not (tmp_path / "other").exists()
    # The index of a hit is kept.
    (tmp_path / "ratings").write_text(json.dumps(REQUEST))
    expected = pd.DataFrame({"qid": "hat", "docno": ["x", "y"], "index": ["shop-2", None]})
    write_rated_list(expected, tmp_path / "next", read_rated_list(tmp_path / "ratings"))
    result = json.loads((tmp_path / "next").read_text())["requests"][0]["ratings"]
    assert [one["_index"] for one in result] == ["shop-2", "shop"]


FORMULAS = ["=1+1", "+49 30", "-5 degrees", "@sum", "'=quoted", "''@twice", "'plain", "minus -1"]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_cells_that_a_spreadsheet_runs_are_guarded_and_come_back(tmp_path, separator):
    path = tmp_path / "next.csv"
    like = RatedList(pd.DataFrame(), "table", ("Query Text", "Doc ID", "Rating"), separator)
    frame = pd.DataFrame({"qid": FORMULAS, "docno": FORMULAS[::-1]})
    write_rated_list(frame, path, like)
    cells = [cell for line in path.read_text().splitlines()[1:] for cell in line.split(separator)]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert "'=1+1" in cells
    assert "'plain" in cells
    # Rated by people, whose file is read again.
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, *(f"{line}1" for line in lines)]))
    labels = read_rated_list(path).labels
    assert labels[["qid", "docno"]].to_numpy().tolist() == frame.to_numpy().tolist()
    path.write_text(path.read_text().replace("Rating", "Position"))
    assert vbterrier.read_run(path)[["qid", "docno"]].to_numpy().tolist() == frame.to_numpy().tolist()
