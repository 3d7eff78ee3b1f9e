"""``vbterrier queries power``: tables, formats, errors."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from vbterrier.design.planning import detectable_difference, queries_needed

OPTIONS = ["--simulations", "300"]


@pytest.fixture
def pilot(tmp_path):
    """A file with three runs, two of them alike, and its values."""
    rng = np.random.default_rng(2)
    base = rng.random(20)
    scores = {"a": base, "b": base + rng.normal(0, 0.2, 20), "c": base}
    parts = [
        pd.DataFrame({"name": k, "qid": [f"0{i}" for i in range(20)], "measure": "AP", "value": v})
        for k, v in scores.items()
    ]
    path = tmp_path / "pilot.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path, scores["a"] - scores["b"]


def test_a_table_for_people(command, pilot):
    path, differences = pilot
    code, out, err = command("queries", "power", path, "--delta", "0.05", "--baseline", "b", *OPTIONS)
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if line.strip()]
    plan = queries_needed(differences, 0.05, n_simulations=300)
    assert lines[0].split() == [
        "name_a",
        "name_b",
        "measure",
        "delta",
        "n_qids",
        "low",
        "high",
        "by_formula",
        "n_pilot",
    ]
    numbers = [plan.n_qids, plan.low, plan.high, plan.n_by_formula, 20]
    assert lines[2].split() == ["a", "b", "AP", "0.0500", *map(str, numbers)]
    assert "power 0.8, paired t test at 0.05, 300 simulations, seed 0" in out


def test_pairs_without_any_difference_give_a_warning(command, pilot):
    code, out, err = command("queries", "power", pilot[0], "--delta", "0.05", "--format", "csv", *OPTIONS)
    assert code == 0
    assert [(row["name_a"], row["name_b"]) for row in csv.DictReader(io.StringIO(out))] == [("a", "b"), ("b", "c")]
    assert "a and c, AP: left out" in err


def test_numbers_of_queries_instead(command, pilot):
    path, differences = pilot
    arguments = [
        "queries",
        "power",
        path,
        "-n",
        "50",
        "-n",
        "9",
        "--baseline",
        "b",
        "--power",
        "0.9",
        "--format",
        "json",
    ]
    code, out, _ = command(*arguments, *OPTIONS)
    assert code == 0
    found = pd.DataFrame(json.loads(out))
    expected = detectable_difference(differences, [9, 50], power=0.9, n_simulations=300)
    part = found[found["name_a"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part[list(expected)], expected, check_dtype=False)
    assert command(*arguments[:-2], *OPTIONS)[0] == 0


def test_the_curve(command, pilot):
    path, differences = pilot
    arguments = ["queries", "power", path, "--delta", "0.1", "--curve", "--baseline", "b", "--seed", "4", *OPTIONS]
    code, out, _ = command(*arguments, "--format", "csv")
    assert code == 0
    found = pd.read_csv(io.StringIO(out))
    expected = queries_needed(differences, 0.1, n_simulations=300, seed=4).curve
    part = found[found["name_a"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part[list(expected)], expected, check_dtype=False)
    code, out, _ = command(*arguments)
    assert code == 0
    assert out.split()[4:9] == ["n_qids", "power", "low", "high", "n_pilot"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "wanted either --delta"),
        (["--delta", "0.1", "-n", "5"], 2, "wanted either --delta"),
        (["-n", "5", "--curve"], 2, "wanted --delta"),
        (["--delta", "0"], 2, "delta=0"),
        (["--delta", "0.1", "--baseline", "d"], 2, "baseline='d'"),
        (["--delta", "0.1", "--measure", "ap"], 2, "Did you mean AP"),
        (["--delta", "0.1", "--format", "xml"], 2, "--format xml"),
        (["-n", "1"], 2, "-n"),
    ],
)
def test_errors_are_one_line(command, pilot, options, code, said):
    left, out, err = command("queries", "power", pilot[0], *options)
    assert (left, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_one_run_needs_no_plan(command, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("name,qid,measure,value\na,1,AP,0.5\n")
    code, _, err = command("queries", "power", path, "--delta", "0.1")
    assert code == 1
    assert "no pair of systems allows a plan" in err
