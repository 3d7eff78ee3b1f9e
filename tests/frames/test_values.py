"""The V frame and its files."""

import gzip

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest

from vbterrier.errors import FileError, InputError
from vbterrier.frames.files.reading import read_values
from vbterrier.frames.values import values_frame

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


@pytest.mark.parametrize("frame", list(variants()))
def test_frames_of_any_kind_are_one(frame):
    before = frame.clone() if isinstance(frame, pl.DataFrame) else frame.copy()
    assert values_frame(frame).to_numpy().tolist() == PLAIN
    assert frame.equals(before)
    assert values_frame(frame[:0]).shape == (0, 4)
    with pytest.raises(InputError, match=r"missing value; found name, qid, measure, values\. Did you mean values"):
        values_frame(BASE.rename(columns={"value": "values"}))


@pytest.mark.parametrize(
    ("column", "value", "message"),
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
def test_errors_name_the_row(column, value, message):
    frame = BASE.astype(object)
    frame.loc[2, column] = value
    with pytest.raises(InputError) as error:
        values_frame(frame)
    assert message in str(error.value)


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("index", [True, False])
def test_files_keep_ids_as_they_are(tmp_path, separator, index):
    other = 'c "d", e' if separator == "," else "null"
    frame = BASE.assign(name=["NA", "NA", other, other], qid=["007", "08"] * 2, measure="VB(alpha=1,intents='x')@10")
    path, packed = tmp_path / "values", tmp_path / "values.gz"
    frame.to_csv(path, sep=separator, index=index)
    packed.write_bytes(gzip.compress(path.read_bytes()))
    frame.to_parquet(tmp_path / "values.parquet")
    for each in (path, packed, tmp_path / "values.parquet"):
        pd.testing.assert_frame_equal(read_values(each), frame, check_dtype=False)


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_files_that_hold_no_values(tmp_path, text, message):
    path = tmp_path / "values.csv"
    path.write_text(text)
    with pytest.raises(FileError) as error:
        read_values(path)
    assert message in str(error.value)


@pytest.mark.parametrize("is_file", [False, True])
def test_means_over_topics_are_no_topic(tmp_path, is_file):
    """trec_eval -q writes them with four digits as the values of "all"."""

    def of(values):
        values.to_csv(tmp_path / "values.csv", index=False)
        return values_frame(read_values(tmp_path / "values.csv") if is_file else values)

    means = pd.DataFrame({"name": ["a", "b"], "qid": "all", "measure": "AP", "value": [0.15004, 0.35]})
    with pytest.raises(InputError, match=r"topic 'all' is no topic: its values are the means .*; drop its 2 rows"):
        of(pd.concat([BASE, means]))
    # Other values are those of a topic of this name, as are values of no other topic.
    assert len(of(pd.concat([BASE, means.assign(value=[0.15, 0.9])]))) == 6
    assert len(of(means)) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_without_values_are_refused_with_all_their_columns(tmp_path, kind):
    wide = BASE.pivot_table(index="qid", columns="name", values="value").reset_index().rename_axis(columns=None)
    path = tmp_path / f"wide.{kind}"
    wide.to_csv(path, index=False) if kind == "csv" else wide.to_parquet(path)
    with pytest.raises(FileError, match=r"missing name, measure, value; found qid, a, b|missing name; found qid, a, b"):
        read_values(path)
