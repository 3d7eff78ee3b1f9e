"""Tables are complete: all digits in JSON, no shortened cells, no empty intervals."""

import json
import math

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.scores import score
from vbterrier.report.tables import rendered, summary


def test_json_keeps_every_digit():
    values = [0.8154648767857288, 1 / 3, 0.1 + 0.2, 1e-20, 123456.7890123456]
    again = json.loads(rendered(pd.DataFrame({"value": values}), "json"))
    assert [row["value"] for row in again] == values


def test_json_has_null_for_nan_and_whole_numbers_stay_whole():
    again = json.loads(rendered(pd.DataFrame({"value": [math.nan], "n": [3], "run": ["é|"]}), "json"))
    assert again == [{"value": None, "n": 3, "run": "é|"}]


def test_an_interval_that_does_not_exist_is_shown_as_nothing():
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["a"], "label": [1]})
    run = pd.DataFrame({"qid": ["q1"], "docno": ["a"], "score": [1.0]})
    with pytest.warns(DegenerateWarning, match="at least two"):
        table = summary(score(run, qrels, ["BNDCG@10"]), "table")
    assert table["95% topics (percentile)"].tolist() == [""]


def test_long_names_are_shown_whole():
    names = [f"{'indri-query-likelihood-category-b-filtered-' * 4}{i}" for i in (1, 2)]
    frame = pd.DataFrame({"run": names, **{f"column {i}": [0.5, 0.25] for i in range(12)}})
    text = rendered(frame, "table")
    assert all(name in text for name in names)
    assert "…" not in text
