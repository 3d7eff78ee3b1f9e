"""Readers of mentions and writers of queries."""

import gzip

import pandas as pd
import pytest

from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import read_mentions
from vbterrier.frames.files.writing import write_queries

ROWS = [["007", "Paris, Texas", "NA"], ["d 2", 'the "Hole"', "NIL"]]
FILES = {
    "no header": b'007\tParis, Texas\tNA\nd 2\tthe "Hole"\tNIL\n',
    "header": b'docno\tmention\tentity_id\n007\tParis, Texas\tNA\nd 2\tthe "Hole"\tNIL\n',
    "other order, CRLF": b'entity_id\tmention\tdocno\r\nNA\tParis, Texas\t007\r\nNIL\tthe "Hole"\td 2\r\n',
    "commas": b'docno,mention,entity_id\n007,"Paris, Texas",NA\nd 2,"the ""Hole""",NIL\n',
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_mentions_read_as_they_are(tmp_path, name, packed):
    path = tmp_path / "mentions"
    path.write_bytes(gzip.compress(FILES[name]) if packed else FILES[name])
    found = read_mentions(path)
    assert found.columns.tolist() == ["docno", "mention", "entity_id"]
    assert found.to_numpy().tolist() == ROWS


def test_two_fields_parquet_and_other_columns(tmp_path):
    path = tmp_path / "mentions"
    path.write_text("d1\tParis\n")
    assert read_mentions(path).to_dict("records") == [{"docno": "d1", "mention": "Paris"}]
    pd.DataFrame({"size": [0.5], "mention": ["Paris"], "docno": [7]}).to_parquet(path)
    assert read_mentions(path).to_dict("records") == [{"docno": "7", "mention": "Paris", "size": 0.5}]
    path.write_text("docno\tmention\tnote\nd1\tParis\t\n")
    assert read_mentions(path).to_numpy().tolist() == [["d1", "Paris", ""]]


BAD = {
    "one field": (b"d1 Paris\n", ":1: wanted 2 fields"),
    "a field more": (b"d1\tParis\nd2\tParis\tQ90\n", ":2: wanted 2 fields, docno mention"),
    "another table": (b"qid\tentity_id\nq1\tQ90\n", "missing docno; found qid, entity_id"),
    "another name": (b"doc_id\tname\nd1\tParis\n", "missing docno; found doc_id, name"),
    "no mention": (b"docno\ttext\nd1\tParis\n", "missing mention"),
    "empty entity": (b"d1\tParis\tQ90\nd2\tParis\t\n", ":2: entity_id is empty"),
    "twice": (b"docno\tmention\tmention\nd1\ta\tb\n", "'mention' occurs 2 times"),
    "not UTF-8": (b"docno\tmention\nd1\t\xff\n", "UTF-8"),
    "not UTF-8 at the top": (b"d1\t\xff\n", "UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / "mentions.tsv"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_mentions(path)


def test_queries_read_back(tmp_path):
    path = tmp_path / "queries.tsv.gz"
    frame = pd.DataFrame({"prob": [0.1, 1 / 3], "qid": ["q1", "q2"], "docno": ["007", "d 2"]})
    frame = frame.assign(mention=["Paris, Texas", 'the "Hole"'], note=[None, 2.5], n_draws=[1, 2])
    write_queries(frame, path)
    found = read_mentions(path)
    assert found.columns.tolist() == ["docno", "mention", "qid", "prob", "note", "n_draws"]
    assert found["prob"].astype(float).tolist() == [0.1, 1 / 3]
    assert found["note"].tolist() == ["", "2.5"]
    with pytest.raises(InputError, match="row 0 holds"):
        write_queries(frame.assign(mention="a\tb"), path)
    with pytest.raises(InputError, match="missing mention"):
        write_queries(frame.drop(columns="mention"), path)
