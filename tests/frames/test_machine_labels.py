"""Files of labels that machines gave to documents."""

import gzip

import pandas as pd
import pytest

from vbterrier.errors import FileError
from vbterrier.frames import read_labels

EXPECTED = [["07", "d1", 2.0], ["07", "d2", 0.5]]


@pytest.mark.parametrize(
    "text",
    [
        "07 0 d1 2\n07 0 d2 0.5\n",
        "07 d1 2\n07 d2 0.5\n",
        "07\t0\td1\t2\n07\t0\td2\t0.5\n",
        "qid,docno,grade\n07,d1,2\n07,d2,0.5\n",
        '{"qid": "07", "docno": "d1", "label": 2}\n\n{"query": "07", "doc_id": "d2", "grade": "0.5"}\n',
        '{"query_id": "07", "docid": "d1", "prob": [0, 0, 3]}\n{"qid": "07", "document": "d2", "prob": [1, 1]}\n',
        "topic_id,doc_id,annotation,prob_0,prob_1,prob_2\n07,d1,0,0,0,1\n07,d2,2,0.25,0.25,0\n",
        "topic_id,doc_id,annotation\n07,d1,2\n07,d2,0.5\n",
        '{"qid": "07", "docno": "d1", "judgment": 2}\n{"qid": "07", "docno": "d2", "judgment": 0.5}\n',
        '{"qid": "07", "docno": "d1", "prob": {"2": 1}}\n{"qid": "07", "docno": "d2", "prob": {"0": 0.5, "1": 0.5}}\n',
    ],
    ids=[
        "qrels",
        "three columns",
        "tabs",
        "header",
        "json lines",
        "probabilities",
        "LARA",
        "annotation",
        "UMBRELA",
        "by grade",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_gives_the_same_labels(tmp_path, text, packed):
    path = tmp_path / ("labels.gz" if packed else "labels")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    frame = read_labels(path)
    assert frame.to_numpy().tolist() == EXPECTED
    assert frame.columns.tolist() == ["qid", "docno", "label"]


def test_parquet_gives_the_same_labels(tmp_path):
    frame = pd.DataFrame(EXPECTED, columns=["qid", "docno", "grade"])
    frame.to_parquet(tmp_path / "labels.parquet")
    assert read_labels(tmp_path / "labels.parquet").to_numpy().tolist() == EXPECTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"qid": "1", "docno": "d"}\n',
            r"labels:1: no member for the label: wanted one of label, grade, relevance, judgment",
        ),
        ('{"docno": "d", "label": 1}\n', "no member for the qid: wanted one of qid, query_id, query"),
        ('{"qid": "1", "docno": "d", "label": "high"}\n', "member 'label' is .*wanted a finite number"),
        (
            '{"qid": "1", "docno": "d", "label": 1}\n{"qid": 1, "docno": "d", "label": NaN}\n',
            r"labels:2: .*finite number",
        ),
        ('{"qid": "1", "docno": "d", "prob": []}\n', "wanted a list of probabilities"),
        ('{"qid": "1", "docno": "d", "prob": [0.5, -1]}\n', "wanted a list of probabilities"),
        ('{"qid": "1", "docno": "d", "label": 1}\nnot json\n', "labels:2: is not JSON"),
        ("1 0 d1 high\n", "labels:1: grade must be a number"),
        ("1 d1\n", "labels:1: wanted 3 fields"),
        ("topic_id,doc_id,prob_0\n1,d1,0\n", "document 'd1' of query '1': wanted probabilities"),
        ("topic_id,doc_id,score\n1,d1,0\n", "annotation"),
        ("", "empty"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = tmp_path / "labels"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_labels(path)
