"""Findings of the doctor as text."""

import io
import json

import pandas as pd
import pytest

from vbterrier.evaluate.doctor import diagnose
from vbterrier.report.system_tables import doctor_report

QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "c"], "label": [2, -1, 0]})
RUN = pd.DataFrame({"qid": ["q1", "q1", "q1"], "docno": ["a", "x", "b"], "score": [3.0, 2.0, 1.0]})


@pytest.fixture(scope="module")
def diagnosis():
    return diagnose({"mine": RUN}, QRELS)


def test_without_notes_there_is_no_such_title():
    clean = diagnose({"mine": RUN.iloc[:1]}, QRELS.iloc[:1])
    assert clean.notes == ()
    for style in ("table", "markdown"):
        assert "Notes" not in doctor_report(clean, style)


def test_json_is_one_object_of_all_parts(diagnosis):
    parts = json.loads(doctor_report(diagnosis, "json"))
    assert list(parts) == ["qrels", "runs", "support", "notes"]
    assert parts["notes"] == list(diagnosis.notes)
    assert parts["runs"][0]["name"] == "mine"
    assert parts["runs"][0]["unjudged@10"] == pytest.approx(1 / 6)
    assert {item["possible"] for item in parts["support"]} == {"yes", "no"}
    assert len(parts["support"]) == len(diagnosis.support)


def test_csv_is_the_table_of_runs(diagnosis):
    again = pd.read_csv(io.StringIO(doctor_report(diagnosis, "csv")))
    assert list(again.columns) == list(diagnosis.runs.columns)
    assert again["unjudged@5"].tolist() == pytest.approx(diagnosis.runs["unjudged@5"].tolist(), abs=1e-15)
