"""Contracts of frames: tables that are accepted, required columns, names of systems."""

from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.contracts import LabelFrame, pandas_frame, require, system_items
from vbterrier.frames.ranges import require_difference
from vbterrier.frames.ranking import Run

PLAIN = pd.DataFrame({"qid": ["007"], "docno": ["NA"], "score": [1.5]})


TABLES = {
    "polars": pl.from_pandas,
    "categories of polars": lambda frame: pl.from_pandas(frame).with_columns(pl.col("docno").cast(pl.Categorical)),
    "table": pa.Table.from_pandas,
    "batch": pa.RecordBatch.from_pandas,
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_arrow_tables_become_pandas_frames_with_ids_as_text(made):
    frame = pandas_frame(made(PLAIN), "run")
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_numpy(dtype=object).tolist() == [["007", "NA", 1.5]]
    assert pandas_frame(PLAIN, "run") is PLAIN
    lists = pandas_frame(pl.DataFrame({"docno": ["d1"], "entity_id": [["Q1", "Q2"]]}), "run")
    assert [lists["docno"].tolist(), list(lists["entity_id"][0])] == [["d1"], ["Q1", "Q2"]]


def test_what_can_be_read_only_once_is_refused():
    for rows in ((row for row in []), iter([])):
        with pytest.raises(
            InputError, match=r"mine: found a \w+, which can be read only once; pass a frame.*list\(\.\.\.\)"
        ):
            pandas_frame(rows, "mine")
    with pytest.raises(InputError, match="run: found a RecordBatchReader, which can be read only once"):
        pandas_frame(pa.Table.from_pandas(PLAIN).to_reader(), "run")


def test_only_duplicates_of_columns_that_are_read_are_refused():
    twice = pd.concat([PLAIN, PLAIN[["score"]]], axis=1)
    with pytest.raises(InputError, match="run: column 'score' occurs 2 times; keep one"):
        require(twice, ("qid", "score"), "run")
    for frame, columns in ((twice, ("qid", "docno")), (PLAIN, ("score", "qid")), (PLAIN.iloc[:0], ("qid",))):
        require(frame, columns, "run")


def test_systems_keep_their_order_from_mappings_and_pairs():
    assert list(system_items({"b": 1, "a": 2})) == list(system_items([("b", 1), ("a", 2)])) == [("b", 1), ("a", 2)]
    with pytest.raises(InputError, match="two systems are called 'a'; give each its own name"):
        list(system_items([("a", 1), ("b", 2), ("a", 3)]))


# Columns that are no numbers or no text

DATES = pd.to_datetime(["2020-01-01", "2021-01-01"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (DATES, r"wanted numbers, found datetime64\[.*\]; pass the numbers that they stand for"),
        (DATES.tz_localize("UTC"), r"wanted numbers, found datetime64\[.*UTC\]"),
        (DATES - DATES[0], r"wanted numbers, found timedelta64\[.*\]"),
        ([1 + 0j, 0j], "wanted numbers, found complex128"),
        (pd.Series(list(DATES), dtype=object), r"row 0 holds Timestamp\('2020-01-01 00:00:00'\)"),
        (pd.Series([1.0, 2 + 1j], dtype=object), r"row 1 holds \(2\+1j\)"),
        (pd.Series([1, 10**400], dtype=object), "row 1 holds an integer beyond the range of floating-point numbers"),
        (["1", "1_0.5"], "row 1 holds '1_0.5'"),
        (pd.Series([1.0, "1_000"], dtype=object), "row 1 holds '1_000'"),
    ],
)
@pytest.mark.parametrize("column", ["score", "label"])
def test_columns_that_are_no_numbers_are_refused(column, values, message):
    frame = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"]})
    frame[column] = values
    with pytest.raises(InputError, match=rf"column '{column}': {message}"):
        Run(frame) if column == "score" else LabelFrame(frame, name="qrels")


def test_numbers_in_objects_and_texts_are_numbers_and_half_a_surrogate_pair_is_no_text():
    frame = pd.DataFrame({"qid": "1", "docno": ["a", "b", "c"]})
    frame["score"] = pd.Series([Decimal("2.5"), "1.5e0", 1], dtype=object)
    assert Run(frame).score.tolist() == [2.5, 1.5, 1.0]
    frame["docno"] = pd.Series(["a", "\ud800", "c"], dtype=object)
    with pytest.raises(InputError, match=r"column 'docno': '\\ud800' holds half of a surrogate pair"):
        Run(frame)


def test_differences_are_below_the_range_of_a_measure():
    for measure, largest in (("nDCG@10", 1), ("LinkingF1", 1), ("VarPenalty@5", 0.5), ("OERCorr@20", 2)):
        require_difference("margin", min(largest, 1) - 0.01, measure)
        with pytest.raises(ParameterError, match=f"margin={largest}: means of {measure} differ by at most {largest}"):
            require_difference("margin", largest, measure)
    for measure, value in (("OER@20", 5), ("VB@10", 1.1)):
        with pytest.warns(DegenerateWarning, match=f"margin={value} is in units of {measure}; did you mean 0.0"):
            require_difference("margin", value, measure)
