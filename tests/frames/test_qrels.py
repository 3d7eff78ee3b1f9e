"""Adhoc judgments from diversity judgments."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier.errors import FileError, InputError
from vbterrier.frames.contracts import flatten_qrels
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ranking import ranked
from vbterrier.unjudged.pool import Judgments

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


@pytest.mark.parametrize("storage", ["category", "object", "string[pyarrow]"])
def test_storages_of_ids_make_no_difference(storage):
    rows = [("q1", "1", "d", 0), ("q2", "1", "d", 1), ("q1", "2", "d", 2), ("q1", "2", "e", 0)]
    flat = flatten_qrels(qrels(rows).astype({"qid": storage, "docno": storage}))
    assert flat.to_numpy(dtype=object).tolist() == [["q1", "d", 2], ["q2", "d", 1], ["q1", "e", 0]]


def test_the_input_is_never_changed():
    frame = qrels([("q1", "1", "d", 0), ("q1", "2", "d", 2)])
    before = frame.copy(deep=True)
    flatten_qrels(frame)
    assert_frame_equal(frame, before)


def test_polars_frames_are_flattened_too():
    polars = pytest.importorskip("polars")
    flat = flatten_qrels(polars.from_pandas(qrels([("q1", "1", "d", 0), ("q1", "2", "d", 2)])))
    assert flat.to_numpy(dtype=object).tolist() == [["q1", "d", 2]]


def test_a_missing_column_is_refused_with_the_name_of_the_frame():
    with pytest.raises(InputError, match=r"judgments: wanted columns qid, docno, label; missing docno"):
        flatten_qrels(pd.DataFrame({"qid": [], "label": []}), name="judgments")


def test_real_diversity_judgments_flatten_to_one_row_a_document(shared_data):
    frame = read_qrels(shared_data / "trec_web_diversity" / "qrels.2012.diversity.gz")
    flat = flatten_qrels(frame)
    assert len(flat) == len(set(zip(frame["qid"], frame["docno"], strict=True))) < len(frame)
    assert flat["label"].sum() == frame.groupby(["qid", "docno"])["label"].max().sum()


def of_labels(labels, docnos=("d", "d")):
    return pd.DataFrame({"qid": "q", "docno": list(docnos), "label": labels})


def test_flattening_compares_labels_as_numbers():
    assert flatten_qrels(of_labels(["9", "10"]))["label"].tolist() == [10]


def test_flattening_refuses_labels_and_ids_that_are_missing():
    with pytest.raises(InputError, match="qrels column 'label': row 1"):
        flatten_qrels(of_labels([1.0, np.nan]))
    with pytest.raises(InputError, match="qrels column 'docno': row 1 has no id"):
        flatten_qrels(of_labels([1, 2], ("d", None)))


def test_invalid_numbers_are_named_with_query_and_document_as_python_writes_them():
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, np.nan]})
    with pytest.raises(InputError, match=r"row 1 .*nan.*query 'q1', document 'b'.*wanted a number"):
        ranked(run)
    with pytest.raises(InputError, match=r"row 0 .*0\.5.*query 'q', document 'd'.*wanted a whole number"):
        Judgments(of_labels([0.5, 1.0]))


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


def test_subtopics_and_other_columns_of_tables_are_kept(tmp_path):
    (tmp_path / "qrels").write_text("topic-id,subtopic,docno,label,judge\n1,3,d1,2,me\n")
    assert read_qrels(tmp_path / "qrels").to_dict("records") == [
        {"qid": "1", "iteration": "3", "docno": "d1", "label": 2, "judge": "me"}
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "qid,docno,score\nq1,d1,2\n",
            "qrels:1: wanted columns qid, docno, label; missing label; found qid, docno, score",
        ),
        ("qid,docno,label,rel\nq1,d1,2,2\n", "qrels:1: column 'label' occurs 2 times; keep one"),
        ('{"qid": "q1", "docno": "d1", "score": 2}\n', "qrels:1: member 'label' is missing, wanted a whole number"),
        ('{"qid": "q1", "docno": "d1", "label": 0.5}\n', "qrels:1: member 'label' is '0.5', wanted a whole number"),
        ('{"qid": "q1", "docno": "d1", "label": 9223372036854775808}\n', "qrels:1: .* of at most 64 bits"),
    ],
)
def test_tables_that_are_no_qrels(tmp_path, content, message):
    (tmp_path / "qrels").write_text(content)
    with pytest.raises(FileError, match=message):
        read_qrels(tmp_path / "qrels")
