"""``vbterrier rank``: tables, formats, errors."""

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest

from vbterrier.evaluate.ranking import rank_systems
from vbterrier.report.system_tables import ranking_report

RUNS = {
    "a.run": "q1 Q0 d1 1 3 t\nq1 Q0 d9 2 2 t\nq2 Q0 d5 1 2 t\nq2 Q0 d4 2 1 t\n",
    "b[x].run": "q1 Q0 d9 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d4 1 2 t\nq2 Q0 d7 2 1 t\n",
    "c.run": "q1 Q0 d3 1 3 t\nq1 Q0 d8 2 2 t\nq2 Q0 d8 1 2 t\nq2 Q0 d5 2 1 t\n",
}
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq1 0 d6 2\nq1 0 d11 1\nq2 0 d4 1\nq2 0 d5 0\nq2 0 d6 1\nq2 0 d10 2\n"
RANK = ["rank", *RUNS, "--qrels", "qrels.txt", "--draws", "300"]


@pytest.fixture
def found(write_files):
    """The result of the library on the files of the working folder."""
    write_files({**RUNS, "qrels.txt": QRELS})
    return lambda **options: rank_systems([*RUNS], "qrels.txt", **{"n_draws": 300, **options})


def test_pairs(command, done, found):
    out = done(*RANK, "--pairs", "--level", "0.5")
    lines = [line for line in out.splitlines() if line.strip()]
    assert "50% of a - b" in lines[0]
    assert [line.split()[:2] for line in lines[2:5]] == found().pairs[["name_a", "name_b"]].to_numpy().tolist()
    out = done(*RANK, "--pairs", "--baseline", "c", "--format", "csv")
    assert [row["name_b"] for row in csv.DictReader(io.StringIO(out))] == ["c", "c"]


def test_one_run_has_no_pairs(done, found):
    out = done("rank", "a.run", "--qrels", "qrels.txt", "--pairs", "--draws", "10")
    assert "interval of a - b   a beats b, these topics" in out
    none = replace(found(), pairs=found().pairs.head(0))
    assert none.pairs["low"].dtype == float
    assert "| interval of a - b |" in ranking_report(none, "markdown", pairs=True)


@pytest.mark.parametrize("pairs", [False, True])
def test_csv_and_json_hold_the_frame_itself(done, found, pairs):
    options = ["-m", "BNDCG(prior='pool')@5", "--seed", "3", "--over", "both", *(["--pairs"] if pairs else [])]
    expected = found(measure="BNDCG(prior='pool')@5", seed=3, uncertainty="both")
    expected = expected.pairs if pairs else expected.systems
    out = done(*RANK, *options, "--format", "json")
    pd.testing.assert_frame_equal(pd.DataFrame(json.loads(out)), expected, check_dtype=False)
    out = done(*RANK, *options, "--format", "csv")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(out)), expected, check_dtype=False)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--over", "all"], 2, "over='all'"),
        (["--qrels", "nothing.txt"], 1, "nothing.txt"),
    ],
)
def test_errors_are_one_line(refused, found, options, code, said):
    refused([*RANK, *options], code, said)
