"""Files of answers in all formats."""

import gzip

import pandas as pd
import pytest

from vbterrier.errors import FileError
from vbterrier.frames.files.reading import read_answers

GOLD = [["q1", "New York"], ["007", "NA"], ["q3", "NIL"]]


def written(tmp_path, text, name="answers.tsv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "qid\tentity_id\nq1\tNew York\n007\tNA\nq3\tNIL\n",
        "q1\tNew York\n007\tNA\nq3\tNIL\n",
        "qid,entity_id\nq1,New York\n007,NA\nq3,NIL\n",
        "entity_id\tqid\nNew York\tq1\nNA\t007\nNIL\tq3\n",
    ],
)
def test_ids_stay_text_with_a_header_and_without(tmp_path, text):
    found = read_answers(written(tmp_path, text))
    assert found.columns.tolist() == ["qid", "entity_id"]
    assert found.values.tolist() == GOLD


def test_gzip_and_parquet_are_recognised_by_content(tmp_path):
    with gzip.open(tmp_path / "a", "wt") as file:
        file.write("q1 Q90\nq2 NIL\n")
    assert read_answers(tmp_path / "a").values.tolist() == [["q1", "Q90"], ["q2", "NIL"]]
    pd.DataFrame(GOLD, columns=["qid", "entity_id"]).assign(mention="x").to_parquet(tmp_path / "b")
    found = read_answers(tmp_path / "b")
    assert found.columns.tolist() == ["qid", "entity_id", "mention"]
    assert found[["qid", "entity_id"]].values.tolist() == GOLD


def test_scores_are_numbers_and_further_columns_text(tmp_path):
    found = read_answers(written(tmp_path, "q1 Q90 0.5\nq1 Q1 1\n"))
    assert found.values.tolist() == [["q1", "Q90", 0.5], ["q1", "Q1", 1.0]]
    found = read_answers(written(tmp_path, "qid\tmention\tscore\tentity_id\nq1\t12\t2\tQ90\n"))
    assert found.values.tolist() == [["q1", "Q90", "12", 2.0]]


def test_a_run_and_judgments_hold_entities_for_documents(tmp_path):
    found = read_answers(written(tmp_path, "q1 Q0 Q90 1 0.5 mine\n"))
    assert found.to_dict("records") == [{"qid": "q1", "entity_id": "Q90", "rank": 1, "score": 0.5, "name": "mine"}]
    found = read_answers(written(tmp_path, "q1 0 Q90 1\nq1 0 Q1 0\n"))
    assert found.values.tolist() == [["q1", "Q90", "0", 1], ["q1", "Q1", "0", 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\n", "wanted 2 fields, qid entity_id; found 1 in 'q1'; write qid<tab>entity_id, NIL where"),
        ("q1\tQ90\nq2\t\n", "entity_id is empty"),
        ("q1\tQ90\nq2\n", r"answers.tsv:2: wanted 2 fields"),
        ("qid\tanswer\nq1\tQ90\n", "wanted columns qid, entity_id; missing entity_id; found qid, answer"),
        ("q1 Q90 high\n", "score must be a number, found 'high'"),
        ("q1 0 Q90 right\n", "label must be a whole number of at most 64 bits, found 'right'"),
        ("", "is empty"),
    ],
)
def test_errors_name_the_invalid_line(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        read_answers(written(tmp_path, text))
