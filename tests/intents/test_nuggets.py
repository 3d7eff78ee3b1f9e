"""Nuggets of answers as intents and tags: ES@1 is the nugget recall of AutoNuggetizer."""

import json

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.frames import read_nuggets
from vbterrier.intents import from_nuggets

KINDS, SUPPORT = ("vital", "okay"), ("support", "partial_support", "not_support")


@pytest.fixture(scope="module")
def records():
    """Answers of three systems to six queries, all with the nuggets of the query."""
    rng = np.random.default_rng(3)
    made = []
    for q in range(6):
        nuggets = [(f"fact {i}", "vital" if i == 0 else str(rng.choice(KINDS))) for i in range(rng.integers(3, 9))]
        # A list of nuggets may have a text twice.
        nuggets.append(nuggets[1])
        for system in ("a", "b", "c"):
            nuggets_of_topic = [
                {"text": one, "importance": kind, "assignment": str(rng.choice(SUPPORT))} for one, kind in nuggets
            ]
            made.append(
                {"query": "?", "qid": f"{q:03}", "answer_text": "...", "run_id": system, "nuggets": nuggets_of_topic}
            )
    return made


@pytest.fixture
def path(records, tmp_path):
    file = tmp_path / "assigned.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def recall(record, *, okay, partial):
    """Nugget recall of an answer."""
    weight = {"vital": 1.0, "okay": okay}
    worth = {"support": 1.0, "partial_support": partial, "not_support": 0.0}
    total = sum(weight[nugget["importance"]] for nugget in record["nuggets"])
    return sum(weight[nugget["importance"]] * worth[nugget["assignment"]] for nugget in record["nuggets"]) / total


@pytest.mark.parametrize("okay", [1.0, 0.0, 0.3])
@pytest.mark.parametrize("partial", [0.5, 0.0])
def test_expected_success_is_nugget_recall(path, records, okay, partial):
    runs, intents, tags = from_nuggets(path, okay=okay, partial=partial)
    result = vbterrier.score(runs, measures=["ES@1", "VB@1"], intents=intents, tags=tags)
    es = result.values[result.values["measure"] == "ES@1"].set_index(["name", "qid"])["value"]
    assert es.to_dict() == pytest.approx(
        {(record["run_id"], record["qid"]): recall(record, okay=okay, partial=partial) for record in records}
    )
    assert result.intervals["low"].notna().all()
    means = result.means()
    assert (means["VB@1"] < means["ES@1"]).all()


def test_documents_of_a_ranking_have_tags_too(tmp_path):
    rows = [
        {"qid": "1", "docid": docno, "nuggets": [{"text": "x", "importance": "vital", "assignment": how}]}
        for docno, how in (("d1", "not_support"), ("d2", "support"))
    ]
    file = tmp_path / "docs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    runs, intents, tags = from_nuggets(file)
    assert runs["run"]["docno"].tolist() == ["d1", "d2"]
    assert runs["run"]["score"].is_monotonic_decreasing
    assert tags[["docno", "weight"]].to_numpy().tolist() == [["d1", 0.0], ["d2", 1.0]]
    assert intents["prob"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nuggets": 3}, r":1: member 'nuggets' is no list"),
        ({"nuggets": [{"text": "x", "importance": "great", "assignment": "support"}]}, "importance is 'great'"),
        ({"nuggets": [{"text": "x", "importance": "vital"}]}, "assignment is None, wanted one of support"),
        ({"nuggets": [{"importance": "vital"}]}, "member 'text' is missing"),
        ({"qid": None}, "member 'qid'"),
    ],
)
def test_a_line_that_is_no_assignment_is_named(tmp_path, records, change, message):
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps(records[0] | change) + "\n")
    with pytest.raises(FileError, match=message):
        read_nuggets(file)


def test_answers_that_are_not_comparable_are_refused(path):
    frame = read_nuggets(path)
    with pytest.raises(InputError, match="is assigned to 2 of its 3 documents"):
        from_nuggets(frame.iloc[1:])
    other = frame.copy()
    other.loc[0, "importance"] = "okay"
    with pytest.raises(InputError, match="row 0: importance is 'nice', wanted vital, okay, failed"):
        from_nuggets(frame.assign(importance=["nice", *frame["importance"][1:]]))
    with pytest.raises(InputError, match="has two importances"):
        from_nuggets(other)
    with pytest.raises(InputError, match="twice"):
        from_nuggets(pd.concat([frame, frame.head(1)]))
    with pytest.raises(ParameterError, match="partial=2"):
        from_nuggets(frame, partial=2)


def test_failed_assignments_are_missing_for_all_systems(records, path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    # The assignment of one system's answer, the importance of another nugget, and all of another query.
    rows[0]["nuggets"][1]["assignment"] = "failed"
    for row in rows[3:6]:
        row["nuggets"][0]["importance"] = "failed"
    for nugget in rows[7]["nuggets"]:
        nugget["assignment"] = "failed"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    message = (
        rf"{1 + 3 + len(rows[7]['nuggets'])} of \d+ answers of the judge failed: their nuggets, "
        rf"{2 + len(rows[7]['nuggets'])} of 3 queries .* left out of all documents .*; 1 query has no other nugget"
    )
    with pytest.warns(DegenerateWarning, match=message):
        runs, intents, tags = from_nuggets(path)
    table = vbterrier.score(runs, measures=["ES@1"], intents=intents, tags=tags).values.set_index(["name", "qid"])
    expected = {}
    for record in rows:
        kept = [nugget for nugget in record["nuggets"] if nugget["importance"] != "failed"]
        kept = [one for place, one in enumerate(kept) if (record["qid"], place) != ("000", 1)]
        if record["qid"] != "002":
            expected[record["run_id"], record["qid"]] = recall(record | {"nuggets": kept}, okay=1.0, partial=0.5)
    assert table["value"].to_dict() == pytest.approx(expected)
    with pytest.raises(InputError, match="failed on some answer for every nugget"):
        from_nuggets(read_nuggets(path).assign(assignment="failed"))


def test_queries_without_a_vital_nugget_are_counted(path):
    frame = read_nuggets(path)
    frame.loc[frame["qid"] == "000", "importance"] = "okay"
    with pytest.warns(DegenerateWarning, match=r"1 query has no nugget of positive weight .*\('000'\)"):
        runs, intents, _ = from_nuggets(frame, okay=0)
    assert "000" not in set(intents["qid"])
    assert "000" not in set(runs["a"]["qid"])
