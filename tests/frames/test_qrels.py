"""Adhoc judgments from diversity judgments, and labels of machines."""

import gzip
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames import read_labels
from vbterrier.frames.contracts import flatten_qrels
from vbterrier.frames.files.reading import read_qrels

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["q1", "q2", "010", "10"]),
        st.sampled_from("0123"),
        st.sampled_from(["d1", "d2", "NA", "é"]),
        st.integers(-2, 4),
    ),
    max_size=12,
)


def qrels(rows):
    return pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"]).astype({"label": "int64"})


@given(ROWS)
def test_each_document_gets_its_highest_label_in_order_of_appearance(rows):
    expected = {}
    for qid, _, docno, label in rows:
        expected[qid, docno] = max(label, expected.get((qid, docno), label))
    flat = flatten_qrels(qrels(rows))
    assert list(flat.columns) == ["qid", "docno", "label"]
    assert flat.to_numpy(dtype=object).tolist() == [[*key, label] for key, label in expected.items()]
    assert flat.index.equals(pd.RangeIndex(len(expected)))


@pytest.mark.parametrize("storage", ["category", "object", "string[pyarrow]", "polars"])
def test_storages_of_ids_make_no_difference_and_do_not_change(storage):
    frame = qrels([("q1", "1", "d", 0), ("q2", "1", "d", 1), ("q1", "2", "d", 2), ("q1", "2", "e", 0)])
    frame = pl.from_pandas(frame) if storage == "polars" else frame.astype({"qid": storage, "docno": storage})
    before = deepcopy(frame)
    flat = flatten_qrels(frame)
    assert flat.to_numpy(dtype=object).tolist() == [["q1", "d", 2], ["q2", "d", 1], ["q1", "e", 0]]
    assert frame.equals(before)


def test_flattening_compares_labels_as_numbers_and_refuses_what_is_missing():
    assert flatten_qrels(of_labels(["9", "10"]))["label"].tolist() == [10]
    with pytest.raises(InputError, match=r"judgments: wanted columns qid, docno, label; missing docno"):
        flatten_qrels(pd.DataFrame({"qid": [], "label": []}), name="judgments")
    with pytest.raises(InputError, match="qrels column 'label': row 1"):
        flatten_qrels(of_labels([1.0, np.nan]))
    with pytest.raises(InputError, match="qrels column 'docno': row 1 has no id"):
        flatten_qrels(of_labels([1, 2], ("d", None)))


def test_real_diversity_judgments_flatten_to_one_row_a_document(shared_data):
    frame = read_qrels(shared_data / "trec_web_diversity" / "qrels.2012.diversity.gz")
    flat = flatten_qrels(frame)
    assert len(flat) == len(set(zip(frame["qid"], frame["docno"], strict=True))) < len(frame)
    assert flat["label"].sum() == frame.groupby(["qid", "docno"])["label"].max().sum()


def of_labels(labels, docnos=("d", "d")):
    return pd.DataFrame({"qid": "q", "docno": list(docnos), "label": labels})


OF_TABLES = pd.DataFrame({"qid": ["q2", "007"], "iteration": ["0", "0"], "docno": ["NA", "d,1"], "label": [2, -1]})


@pytest.mark.parametrize(
    "content",
    [
        "qid\tdocno\tlabel\nq2\tNA\t2\n007\td,1\t-1\n",
        'Query ID,Doc ID,Relevance\nq2,NA,2\n007,"d,1",-1\n',
        "qid;docno;grade\nq2;NA;2\n007;d,1;-1\n",
        "query-id\tcorpus-id\tscore\nq2\tNA\t2\n007\td,1\t-1\n",
        "q2 NA 2\n007 d,1 -1\n",
        '{"qid": "q2", "docno": "NA", "label": 2}\n{"query_id": "007", "doc_id": "d,1", "rel": -1.0}\n',
    ],
    ids=["tabs", "commas", "semicolons", "BEIR", "three columns", "JSON lines"],
)
def test_qrels_without_iterations(tmp_path, content):
    (tmp_path / "qrels").write_text(content)
    assert_frame_equal(read_qrels(tmp_path / "qrels"), OF_TABLES, check_dtype=False)
    assert read_qrels(tmp_path / "qrels")["label"].dtype == "int64"
    # Subtopics and other columns are kept.
    (tmp_path / "qrels").write_text("topic-id,subtopic,docno,label,judge\n1,3,d1,2,me\n")
    row = {"qid": "1", "iteration": "3", "docno": "d1", "label": 2, "judge": "me"}
    assert read_qrels(tmp_path / "qrels").to_dict("records") == [row]


EXPECTED = [["07", "d1", 2.0], ["07", "d2", 0.5]]


LABELS = {
    "qrels": "07 0 d1 2\n07 0 d2 0.5\n",
    "three columns": "07 d1 2\n07 d2 0.5\n",
    "tabs": "07\t0\td1\t2\n07\t0\td2\t0.5\n",
    "header": "qid,docno,grade\n07,d1,2\n07,d2,0.5\n",
    "json lines": ('{"qid": "07", "docno": "d1", "label": 2}\n\n{"query": "07", "doc_id": "d2", "grade": "0.5"}\n'),
    "probabilities": (
        '{"query_id": "07", "docid": "d1", "prob": [0, 0, 3]}\n{"qid": "07", "document": "d2", "prob": [1, 1]}\n'
    ),
    "LARA": "topic_id,doc_id,annotation,prob_0,prob_1,prob_2\n07,d1,0,0,0,1\n07,d2,2,0.25,0.25,0\n",
    "annotation": "topic_id,doc_id,annotation\n07,d1,2\n07,d2,0.5\n",
    "UMBRELA": '{"qid": "07", "docno": "d1", "judgment": 2}\n{"qid": "07", "docno": "d2", "judgment": 0.5}\n',
    "by grade": (
        '{"qid": "07", "docno": "d1", "prob": {"2": 1}}\n{"qid": "07", "docno": "d2", "prob": {"0": 0.5, "1": 0.5}}\n'
    ),
}


@pytest.mark.parametrize("text", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_gives_the_same_labels(tmp_path, text, packed):
    path = tmp_path / ("labels.gz" if packed else "labels")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    frame = read_labels(path)
    assert frame.to_numpy().tolist() == EXPECTED
    assert frame.columns.tolist() == ["qid", "docno", "label"]
    frame.rename(columns={"label": "grade"}).to_parquet(tmp_path / "labels.parquet")
    assert read_labels(tmp_path / "labels.parquet").to_numpy().tolist() == EXPECTED


FAILURES = {
    "labels": '{"qid": 1, "docid": "a", "judgment": 2, "result_status": 1}\n'
    '{"qid": 1, "docid": "b", "judgment": 0, "result_status": 0}\n{"qid": 1, "docid": "c", "judgment": null}\n'
    '{"qid": 1, "docid": "d", "judgment": 0, "result_status": 1}\n',
    "json": '{"qid": 1, "docno": "a", "label": 2, "result_status": 1}\n'
    '{"qid": 1, "docno": "b", "label": 0, "result_status": 0}\n{"qid": 1, "docno": "c", "result_status": "0"}\n'
    '{"qid": 1, "docno": "d", "label": 0, "result_status": 1}\n',
    "table": "qid,docno,label,result_status\n1,a,2,1\n1,b,0,0\n1,c,0,0\n1,d,0,1\n",
}


@pytest.mark.parametrize("form", FAILURES)
def test_failed_answers_of_a_judge_are_missing_and_counted(tmp_path, form):
    path = tmp_path / "judge"
    path.write_text(FAILURES[form])
    read = read_labels if form == "labels" else read_qrels
    with pytest.warns(DegenerateWarning, match="judge: 2 of 4 answers of the judge failed and give no label"):
        frame = read(path)
    assert frame[["qid", "docno", "label"]].to_numpy().tolist() == [["1", "a", 2], ["1", "d", 0]]
    frame.assign(result_status=[1, 0]).rename(columns={"label": "grade"}).to_parquet(tmp_path / "table")
    with pytest.warns(DegenerateWarning, match="1 of 2 answers of the judge failed"):
        assert read_labels(tmp_path / "table")["docno"].tolist() == ["a"]
