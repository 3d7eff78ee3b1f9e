"""The V frame and its files."""

import gzip

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest

from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import read_values
from vbterrier.frames.values import values_of

BASE = pd.DataFrame(
    {"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "AP", "value": [0.1, 0.2, 0.3, 0.4]}
)
PLAIN = [["a", "1", "AP", 0.1], ["a", "2", "AP", 0.2], ["b", "1", "AP", 0.3], ["b", "2", "AP", 0.4]]


def variants():
    yield BASE
    yield BASE.astype({"name": "category", "qid": "category", "measure": "category"})
    yield BASE.astype(dict.fromkeys(["name", "qid", "measure", "value"], object))
    yield BASE.astype({"qid": int})
    yield BASE.set_index(pd.Index([5, 5, 6, 7])).assign(other="left out")[["value", "other", "measure", "qid", "name"]]
    yield pd.DataFrame({**BASE.to_dict("list"), "measure": [ir_measures.AP] * 4})
    yield pl.from_pandas(BASE)


@pytest.mark.parametrize("given", list(variants()))
def test_frames_of_any_kind_are_one(given):
    assert values_of(given).to_numpy().tolist() == PLAIN


def test_the_frame_that_was_given_stays():
    given = BASE.astype({"qid": int})
    before = given.copy()
    values_of(given)
    pd.testing.assert_frame_equal(given, before)


def test_no_rows_are_none():
    assert values_of(BASE.iloc[:0]).shape == (0, 4)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("value", np.nan, "row 2 holds nan (system 'b', topic '1', AP)"),
        ("value", None, "row 2 holds None (system 'b', topic '1', AP)"),
        ("value", -np.inf, "row 2 is infinite (system 'b', topic '1', AP)"),
        ("value", "0.3", "row 2 holds the text '0.3' (system 'b', topic '1', AP)"),
        ("value", "n/a", "row 2 holds the text 'n/a' (system 'b', topic '1', AP)"),
        ("qid", None, "values column 'qid': row 2 has no id"),
        ("name", None, "values column 'name': row 2 has no id"),
        ("measure", None, "values column 'measure': row 2 has no id"),
        ("qid", 1.5, "values column 'qid'"),
        ("name", "a", "row 2 repeats row 0 (system 'a', topic '1', AP)"),
    ],
)
def test_errors_name_the_row(column, value, said):
    frame = BASE.astype(object)
    frame.loc[2, column] = value
    with pytest.raises(InputError) as error:
        values_of(frame)
    assert said in str(error.value)


def test_a_missing_column_is_named():
    with pytest.raises(InputError, match=r"missing value; found name, qid, measure, values\. Did you mean values"):
        values_of(BASE.rename(columns={"value": "values"}))


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("index", [True, False])
def test_files_keep_ids_as_they_are(tmp_path, separator, index):
    frame = BASE.assign(name=["NA", "NA", "null", "null"], qid=["007", "08"] * 2)
    path = tmp_path / "values"
    frame.to_csv(path, sep=separator, index=index)
    pd.testing.assert_frame_equal(read_values(path), frame, check_dtype=False)
    packed = tmp_path / "values.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(read_values(packed), frame, check_dtype=False)


def test_parquet_and_quoted_names(tmp_path):
    frame = BASE.assign(name=["a, b", "a, b", 'c "d"', 'c "d"'], measure="VB(alpha=1,intents='x')@10")
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet")
    for name in ("v.csv", "v.parquet"):
        pd.testing.assert_frame_equal(read_values(tmp_path / name), frame, check_dtype=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("q1 Q0 d1 1 2.0 t\n", ":1: wanted columns name, qid, measure, value; missing name"),
        ("name,qid,measure,score\na,1,AP,1\n", ":1: wanted columns name, qid, measure, value; missing value"),
        ("name,qid,measure,value\na,1,AP,0.5\na,2,AP,\n", ":3: value must be a number, found ''"),
        ("name,qid,measure,value\na,1,AP,nan\n", ":2: value must be a number, found 'nan'"),
        ("name,qid,measure,value\na,1,AP\n", ":2: wanted 4 fields"),
        ("name,qid,measure,value\na,,AP,1\n", ":2: qid is empty"),
        ("name,qid,measure,value,qid\na,1,AP,1,1\n", ":1: column 'qid' occurs 2 times"),
    ],
)
def test_files_that_hold_no_values(tmp_path, text, said):
    path = tmp_path / "values.csv"
    path.write_text(text)
    with pytest.raises(FileError) as error:
        read_values(path)
    assert said in str(error.value)
