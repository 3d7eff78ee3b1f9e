"""``vbterrier link``: tables, differences, errors."""

import json
from pathlib import Path

import pandas as pd
import pytest

GOLD = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4", "q5"], "entity_id": ["Q90", "NIL", "Q142", "Q90", "NIL"]})


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    GOLD.to_csv("gold.tsv", sep="\t", index=False)
    GOLD.assign(entity_id=["Q90", "Q1", "Q142", "Q90", "NIL"]).to_csv("one.tsv", sep="\t", index=False)
    GOLD.assign(entity_id=["Q1", "NIL", "NIL", "Q90", "NIL"]).to_csv("other.tsv", sep="\t", index=False)


def test_differences_in_json_and_in_a_file(made, done):
    out = done("link", "one.tsv", "other.tsv", "-g", "gold.tsv", "--pairs", "--format", "json")
    rows = {row["measure"]: row for row in json.loads(out)}
    # Of the three queries that one system alone answers correctly, one has two and the other one.
    assert (rows["LinkingF1"]["wins"], rows["LinkingF1"]["losses"], rows["LinkingF1"]["ties"]) == (2, 1, 2)
    assert rows["LinkingR"]["p_value"] == 1.0
    done("link", "one.tsv", "other.tsv", "-g", "gold.tsv", "--pairs", "-o", "pairs.md")
    text = Path("pairs.md").read_text(encoding="utf-8")
    assert "| one | other | LinkingR | 0.2000 |" in text
    assert "p: swaps of answers (all)" in text


def test_bad_input_is_one_line(made, refused):
    refused(["link", "one.tsv", "-g", "missing.tsv"], 1, "missing.tsv")
