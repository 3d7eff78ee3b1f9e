"""Contracts of frames: tables that are accepted, required columns, names of systems."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require, systems_of

PLAIN = pd.DataFrame({"qid": ["007"], "docno": ["NA"], "score": [1.5]})


def test_a_pandas_frame_is_taken_as_it_is():
    assert frame_of(PLAIN, "run") is PLAIN


TABLES = {"polars": pl.from_pandas, "table": pa.Table.from_pandas, "batch": pa.RecordBatch.from_pandas}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_arrow_tables_become_pandas_frames_with_ids_as_text(made):
    frame = frame_of(made(PLAIN), "run")
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_numpy(dtype=object).tolist() == [["007", "NA", 1.5]]


def test_a_generator_is_refused_because_it_can_be_read_only_once():
    with pytest.raises(InputError, match=r"mine: found a generator, which can be read only once; pass a frame"):
        frame_of((row for row in []), "mine")
    with pytest.raises(InputError, match=r"read only once.*list\(\.\.\.\)"):
        frame_of(iter([]), "mine")


@pytest.mark.parametrize(
    "other", [None, [], {"q1": {"d1": 1}}, "run.txt", 3, PLAIN["qid"]], ids=lambda x: type(x).__name__
)
def test_anything_else_is_refused_with_its_type(other):
    with pytest.raises(InputError, match=rf"mine: wanted a data frame, found {type(other).__name__}; pass a pandas"):
        frame_of(other, "mine")


def test_columns_that_are_there_are_enough_whatever_else_is():
    require(PLAIN, ("score", "qid"), "run")
    require(PLAIN.iloc[:0], ("qid",), "run")


@pytest.mark.parametrize(
    ("frame", "columns", "words"),
    [
        (
            PLAIN,
            ("qid", "doc_no", "label"),
            (
                r"^run: wanted columns qid, doc_no, label; missing doc_no, label; found qid, docno, score\. "
                r"Did you mean docno\?$"
            ),
        ),
        (pd.DataFrame(), ("qid",), r"missing qid; found none\.$"),
        (pd.DataFrame({0: [], 1: []}), ("qid",), r"found 0, 1\."),
    ],
    ids=["the nearest name", "no columns", "names that are not text"],
)
def test_missing_columns_are_listed_with_what_was_found(frame, columns, words):
    with pytest.raises(InputError, match=words):
        require(frame, columns, "run")


def test_only_duplicates_of_columns_that_are_read_are_refused():
    twice = pd.concat([PLAIN, PLAIN[["score"]]], axis=1)
    with pytest.raises(InputError, match="run: column 'score' occurs 2 times; keep one"):
        require(twice, ("qid", "score"), "run")
    require(twice, ("qid", "docno"), "run")


def test_systems_keep_their_order_from_mappings_and_pairs():
    assert list(systems_of({"b": 1, "a": 2})) == [("b", 1), ("a", 2)]
    assert list(systems_of([("b", 1), ("a", 2)])) == [("b", 1), ("a", 2)]


def test_two_systems_of_one_name_are_refused():
    with pytest.raises(InputError, match="two systems are called 'a'; give each its own name"):
        list(systems_of([("a", 1), ("b", 2), ("a", 3)]))


def test_lists_of_text_come_from_polars():
    frame = frame_of(pl.DataFrame({"docno": ["d1"], "entity_id": [["Q1", "Q2"]]}), "run")
    assert list(frame["entity_id"][0]) == ["Q1", "Q2"]
    assert frame["docno"].tolist() == ["d1"]
