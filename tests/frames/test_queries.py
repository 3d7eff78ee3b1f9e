"""Weights, clusters and segments of queries: one table in, typed columns out."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames import read_queries, read_values
from vbterrier.frames.queries import queries_frame, selected_queries
from vbterrier.frames.values import values_frame

TABLE = pd.DataFrame(
    {
        "qid": ["2", "01", "3"],
        "weight": [2.5, 0.0, 1.0],
        "cluster": ["c1", "c1", "7"],
        "segment": ["head", "", "tail"],
        "drawn": [0, 3, 1],
        "covariate": [0.25, np.nan, 1.0],
    }
)


def written(tmp_path, form):
    """The table in a file of a format."""
    path = tmp_path / f"queries.{form}"
    if form == "parquet":
        TABLE.to_parquet(path)
    elif form == "jsonl":
        TABLE.to_json(path, orient="records", lines=True)
    elif form == "xlsx":
        pytest.importorskip("openpyxl")
        TABLE.to_excel(path, index=False)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "xlsx"])
def test_files_and_frames_give_the_same_columns(tmp_path, form):
    frame = queries_frame(written(tmp_path, form))
    pd.testing.assert_frame_equal(frame, queries_frame(TABLE))
    assert frame["qid"].tolist() == ["2", "01", "3"]
    assert frame["weight"].tolist() == [2.5, 0.0, 1.0]
    assert frame["segment"].tolist() == ["head", "", "tail"]
    assert frame["drawn"].dtype == np.int64
    assert frame["covariate"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("kind", [str, object, "category", "string", "string[pyarrow]", "Float64"])
def test_numbers_of_any_storage_are_numbers(kind):
    assert queries_frame(TABLE.astype({"weight": kind}))["weight"].tolist() == [2.5, 0.0, 1.0]


def test_topics_with_a_weight_are_queries():
    topics = pd.DataFrame({"qid": [1, 2], "query": ["jaguar", "fox"], "traffic": [10, 90], "note": ["a", "b"]})
    assert queries_frame(topics).values.tolist() == [["1", 10.0], ["2", 90.0]]


def test_a_search_log_is_read_as_queries(tmp_path):
    (tmp_path / "traffic.csv").write_text("Query,Segment,Traffic\nhat,head,10\nred shoes,,0.5\n")
    frame = read_queries(tmp_path / "traffic.csv")
    assert frame[["qid", "segment", "weight"]].to_numpy().tolist() == [["hat", "head", 10.0], ["red shoes", "", 0.5]]


def test_rows_follow_the_queries_of_the_call():
    frame = selected_queries(TABLE, ["3", "2"], call="gate", honoured=tuple(TABLE.columns[1:]))
    assert frame["weight"].tolist() == [1.0, 2.5]
    assert frame.index.tolist() == ["3", "2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": [1, -1, 1]}, "the weight of '01' is -1, wanted a finite number of at least 0"),
        ({"weight": [1, np.inf, 1]}, "the weight of '01' is inf, wanted a finite number of at least 0"),
        ({"weight": [1, np.nan, 1]}, r"row 1 holds nan \(query '01'\), wanted a number"),
        ({"weight": ["1", "many", "1"]}, r"row 1 holds 'many' \(query '01'\), wanted a number"),
        ({"weight": 0}, "all 3 weights are 0"),
        ({"drawn": [0, 1.5, 0]}, r"row 1 holds 1.5 \(query '01'\), wanted a whole number"),
        ({"drawn": [0, -1, 0]}, "the drawn of '01' is -1"),
        ({"cluster": ["a", None, "b"]}, "query '01' has no cluster; give it one"),
        ({"covariate": [0, "high", 0]}, r"row 1 holds 'high' \(query '01'\), wanted a number"),
        ({"covariate": [0, np.inf, 0]}, "the covariate of '01' is inf, wanted a finite number"),
        ({"qid": ["2", "2", "3"]}, "query '2' is duplicated; keep one row per query"),
        ({"qid": ["2", None, "3"]}, "row 1 has no id"),
        ({"traffic": 1}, None),
    ],
)
def test_a_value_of_another_kind_is_named(change, message):
    if message is None:  # a weight and a further column that is none of the frame's
        pd.testing.assert_frame_equal(queries_frame(TABLE.assign(**change)), queries_frame(TABLE))
        return
    with pytest.raises(InputError, match=f"^queries.*{message}"):
        queries_frame(TABLE.assign(**change))


@pytest.mark.parametrize(
    ("table", "qids", "error", "message"),
    [
        (TABLE, ["2"], ParameterError, "rank_systems: column 'segment' of queries has no effect; leave it out, weight"),
        (TABLE[["qid"]], ["2"], InputError, "wanted a column weight or cluster; found qid alone"),
        (TABLE[["qid", "weight"]], ["2", "9"], InputError, r"no row for 1 of 2 queries \('9'\); add them, with weight"),
        (TABLE[["qid", "weight"]], ["01"], InputError, "all 1 weights of these queries are 0"),
    ],
)
def test_a_column_without_effect_is_refused(table, qids, error, message):
    with pytest.raises(error, match=message):
        selected_queries(table, qids, call="rank_systems", honoured=("weight", "cluster"))


@pytest.mark.parametrize("name", ["weight", "cluster", "drawn"])
def test_columns_of_queries_in_values_are_refused(tmp_path, name):
    values = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "P@5", "value": 0.5})
    values.assign(**{name: [3, 1, 3, 1]}).to_csv(tmp_path / "values.csv", index=False)
    with pytest.raises(InputError, match=rf"a column {name} has no effect here; drop it, .* \(qid, {name}\)"):
        values_frame(read_values(tmp_path / "values.csv"))
    assert len(values_frame(values)) == 4
