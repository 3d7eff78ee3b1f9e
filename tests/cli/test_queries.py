"""``vbterrier queries``: ``sample``, ``traffic``, ``profile`` and ``power``."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from vbterrier.design.planning import PlanOptions, detectable_difference, queries_needed
from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import sample_by_traffic, sample_queries
from vbterrier.frames.files.reading import read_mentions, read_values
from vbterrier.frames.queries import queries_frame
from vbterrier.settings import Data, Inference

ROWS = [(f"d{number % 7}", f"m {number % 5}", "NIL" if number % 5 == 4 else f"Q{number % 5}") for number in range(33)]
SAMPLE = ["queries", "sample", "mentions.tsv", "-n"]


@pytest.fixture(autouse=True)
def corpus(write_files):
    write_files({})
    frame = pd.DataFrame(ROWS, columns=["docno", "mention", "entity_id"])
    frame.to_csv("mentions.tsv", sep="\t", index=False)
    return frame


def test_a_sample_is_written_and_described(command, corpus):
    code, out, err = command(*SAMPLE, 4, "--method", "random-mention", "--seed", 3, "-o", "queries.tsv")
    sample = sample_queries(corpus, 4, method="random-mention", seed=3)
    assert (code, err) == (0, "")
    assert out.startswith("4 of 33 queries are drawn (random-mention, without replacement, seed 3).\n\nqueries.tsv: 4")
    read = read_mentions("queries.tsv")
    for name in ("qid", "docno", "mention", "entity_id"):
        assert read[name].tolist() == sample.queries[name].tolist()
    assert read["prob"].astype(float).tolist() == sample.queries["prob"].tolist()
    code, out, err = command("queries", "profile", "queries.tsv", "--mentions", "mentions.tsv", "-f", "json")
    assert (code, err) == (0, "")
    expected = query_profile(sample, corpus)
    assert [row["value"] for row in json.loads(out)] == pytest.approx(expected["value"].tolist())
    code, out, _ = command("queries", "profile", "queries.tsv", "--level", "0.9")
    assert code == 0
    assert "90% Wilson" in out
    assert "random_mention" not in out


def test_a_sample_is_printed(command, corpus):
    code, out, _ = command(*SAMPLE, 4, "-f", "csv")
    assert code == 0
    assert out.splitlines()[0] == "qid,docno,mention,entity_id,n_documents,stratum,prob,n_draws"
    assert len(out.splitlines()) == 5
    assert "4 of 33 queries are drawn (random-document" in command(*SAMPLE, 4)[1]


def test_a_sample_by_traffic_is_printed_and_written_for_the_gate(command, refused):
    traffic = pd.DataFrame({"query": [f"q{i}" for i in range(50)], "weight": 1 / np.arange(1, 51), "segment": "a"})
    traffic.to_csv("traffic.csv", index=False)
    expected = sample_by_traffic("traffic.csv", 20, seed=3)
    code, out, err = command("queries", "traffic", "traffic.csv", "-n", 20, "--seed", 3, "-o", "sample.csv")
    certain = int((expected["drawn"] == 0).sum())
    assert (code, err) == (0, "")
    assert f"{len(expected)} queries to rate: the {certain} heaviest for certain" in out
    written = queries_frame("sample.csv")
    assert written[["qid", "drawn"]].equals(expected[["qid", "drawn"]])
    assert written["weight"].tolist() == pytest.approx(expected["weight"].tolist(), rel=1e-12)
    assert (
        command("queries", "traffic", "traffic.csv", "-n", 20, "--seed", 3, "-f", "csv")[1].count("\n")
        == len(expected) + 1
    )
    traffic[["query", "segment"]].to_csv("traffic.csv", index=False)
    refused(["queries", "traffic", "traffic.csv", "-n", 20], 1, "traffic: wanted a column weight")


def test_strata_weights_and_replacement(command, corpus):
    options = ["--strata", "entity_id", "--allocation", "Q0=3,Q1=2,Q2=2,Q3=1,NIL=1", "--replace"]
    _, out, _ = command(*SAMPLE, 9, *options, "-f", "json")
    drawn = pd.DataFrame(json.loads(out)).groupby("stratum")["n_draws"].sum().to_dict()
    assert drawn == {"NIL": 1, "Q0": 3, "Q1": 2, "Q2": 2, "Q3": 1}
    variances = "Q0=1,Q1=0,Q2=0,Q3=0,NIL=0"
    _, out, _ = command(*SAMPLE, 14, *options[:2], "--allocation", "neyman", "--variances", variances, "-f", "json",
                        "--method", "uniform")  # fmt: skip
    assert pd.DataFrame(json.loads(out)).groupby("stratum")["n_draws"].sum()["Q0"] == 6
    corpus.assign(size=1.5).to_parquet("sizes.parquet")
    code, out, _ = command("queries", "sample", "sizes.parquet", "-n", 5, "--method", "weighted", "--weights", "size")
    assert code == 0
    assert "weighted" in out
    # A number is the number of bins, not a column.
    code, out, _ = command(*SAMPLE, 4, "--strata", 2)
    assert (code, "the number of bins is 1" in " ".join(out.split())) == (0, True)


BAD = {
    "no n": (SAMPLE[:-1], 2, "Missing option"),
    "no such command": (["queries", "smaple"], 2, "smaple"),
    "sizes": ([*SAMPLE, 2, "--strata", "entity_id", "--allocation", "Q0=x"], 2, "--allocation Q0=x: wanted strata"),
    "fraction": ([*SAMPLE, 7, "--strata", "docno", "--allocation", "d0=1.5"], 2, "wanted the strata"),
    "no column": ([*SAMPLE, 2, "--strata", "kind"], 1, "missing kind"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), BAD.values(), ids=BAD)
def test_errors_are_one_line_with_an_exit_code(refused, arguments, code, words):
    refused(arguments, code, words)


# How many queries.

OPTIONS = ["--simulations", "300"]
FLIPS = [*OPTIONS, "--test", "randomisation"]


@pytest.fixture
def pilot(tmp_path):
    """A file with three runs, two of them alike, and its values."""
    rng = np.random.default_rng(2)
    base = rng.random(20)
    scores = {"a": base, "b": base + rng.normal(0, 0.2, 20), "c": base}
    parts = [
        pd.DataFrame({"name": name, "qid": [f"0{i}" for i in range(20)], "measure": "AP", "value": value})
        for name, value in scores.items()
    ]
    path = tmp_path / "pilot.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path, scores["a"] - scores["b"]


def test_a_plan_for_people(command, pilot):
    path, differences = pilot
    code, out, err = command("queries", "power", path, "--delta", "0.05", "--baseline", "b", *OPTIONS)
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if line.strip()]
    plan = queries_needed(differences, 0.05, n_simulations=300)
    assert out.startswith(
        "Detecting a difference of 0.05 in AP between c and b, the largest of 2 pairs, with power 0.8"
    )
    (start,) = [place for place, line in enumerate(lines) if line.split()[:1] == ["a"] and "delta" in line]
    assert " ".join(lines[start].split()) == "a b delta queries interval by formula queries of the pilot"
    numbers = [plan.n_qids, plan.low, "to", plan.high, plan.n_by_formula, 20]
    assert lines[start + 2].split() == ["a", "b", "0.0500", *map(str, numbers)]
    assert "\nAP." in out
    assert "Power 0.8, moderated test at 0.05, 300 simulations, seed 0" in out
    assert "The power is reached with probability 0.8" in out
    out = command("queries", "power", path, "--delta", "0.05", "--baseline", "b", "--assurance", ".5", *OPTIONS)[1]
    assert "More than half of such plans fall short of the power" in out


def test_pairs_without_any_difference_give_a_warning(command, pilot):
    code, out, err = command("queries", "power", pilot[0], "--delta", "0.05", "--format", "csv", *OPTIONS)
    assert code == 0
    assert [(row["name_a"], row["name_b"]) for row in csv.DictReader(io.StringIO(out))] == [("a", "b"), ("b", "c")]
    assert "a and c, AP: left out" in err


def test_numbers_of_queries_instead(command, pilot):
    path, differences = pilot
    options = ["-n", "50", "-n", "9", "--baseline", "b", "--power", "0.9", "--format", "json"]
    arguments = ["queries", "power", path, *options]
    code, out, _ = command(*arguments, *OPTIONS)
    assert code == 0
    table = pd.DataFrame(json.loads(out))
    expected = detectable_difference(differences, [9, 50], power=0.9, n_simulations=300)
    part = table[table["name_a"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part[list(expected)], expected, check_dtype=False)
    assert command(*arguments[:-2], *OPTIONS)[0] == 0


def test_a_plan_for_a_large_difference_has_enough_sign_flips(command, pilot):
    arguments = ["queries", "power", pilot[0], "--delta", "0.6", "--baseline", "b", *FLIPS, "-f", "json"]
    code, out, _ = command(*arguments)
    assert (code, [row["n_qids"] for row in json.loads(out)]) == (0, [6, 6])
    code, out, _ = command("queries", "power", pilot[0], "-n", "5", "-n", "6", "--baseline", "b", *FLIPS)
    assert code == 0
    assert "inf: so few sign flips are never significant at this level" in out


def test_the_curve(command, pilot):
    path, differences = pilot
    arguments = ["queries", "power", path, "--delta", "0.1", "--curve", "--baseline", "b", "--seed", "4", *OPTIONS]
    code, out, _ = command(*arguments, "--format", "csv")
    assert code == 0
    result = pd.read_csv(io.StringIO(out))
    expected = queries_needed(differences, 0.1, n_simulations=300, inference=Inference(seed=4)).curve
    part = result[result["name_a"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part[list(expected)], expected, check_dtype=False)
    code, out, _ = command(*arguments)
    assert code == 0
    assert "a b delta queries power interval" in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "wanted either --delta"),
        (["--delta", "0.1", "-n", "5"], 2, "wanted either --delta"),
        (["-n", "5", "--curve"], 2, "wanted --delta"),
        (["-n", "5", "--assurance", "0.8"], 2, "--assurance applies to a difference"),
        (["--delta", "0.1", "--baseline", "d"], 2, "baseline='d'"),
        (["-n", "1"], 2, "-n"),
    ],
)
def test_errors_of_plans_are_one_line(refused, pilot, options, code, message):
    refused(["queries", "power", pilot[0], *options], code, message)


def test_one_run_needs_no_plan(command, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("name,qid,measure,value\na,1,AP,0.5\n")
    code, _, err = command("queries", "power", path, "--delta", "0.1")
    assert code == 1
    assert "no pair of systems allows a plan" in err


def test_a_plan_with_assurance_for_several_systems(command, pilot):
    path, differences = pilot
    options = ["--assurance", "0.8", "--systems", "5", "--against-baseline", "--correction", "holm", *OPTIONS]
    code, out, _ = command("queries", "power", path, "--delta", "0.05", "--baseline", "b", *options, "-f", "csv")
    assert code == 0
    row = pd.read_csv(io.StringIO(out)).iloc[0]
    plan = queries_needed(
        differences,
        0.05,
        assurance=0.8,
        options=PlanOptions(n_systems=5, baseline=True),
        n_simulations=300,
        inference=Inference(correction="holm"),
    )
    assert (row["n_qids"], row["assurance"], row["n_systems"]) == (plan.n_qids, 0.8, 5)


def test_a_plan_without_a_pilot(command, refused):
    code, out, err = command("queries", "power", "--delta", "0.05", "--measure", "nDCG@10")
    assert (code, err) == (0, "")
    assert "without a pilot; interval: from the TREC collection with the smallest variance" in " ".join(out.split())
    assert str(queries_needed(None, 0.05, measure="nDCG@10").n_qids) in out.split()
    refused(["queries", "power", "--delta", "0.05"], 2, "wanted --measure, and --delta or --margin")
    code, out, err = command("queries", "power", "--margin", "0.02", "--measure", "nDCG@10", "--simulations", 100)
    assert "100,000: with so large a standard deviation, no number of queries suffices." in " ".join(out.split())
    refused(["queries", "power", "--delta", "0.05", "-m", "nDCG@7"], 2, "standard deviations are known for 'nDCG@10'")


@pytest.mark.slow
def test_a_plan_for_the_gate_refuses_unequal_weights(command, refused, pilot, tmp_path):
    path, _ = pilot
    table = tmp_path / "traffic.csv"
    table.write_text("query,weight\n" + "".join(f"0{i},2\n" for i in range(20)))
    arguments = ["queries", "power", path, "--margin", "0.1", "--baseline", "b", "--simulations", 100]
    code, out, _ = command(*arguments, "--queries", table, "-f", "csv")
    assert code == 0
    row = pd.read_csv(io.StringIO(out)).set_index("name_a").loc["a"]
    plan = queries_needed(
        read_values(path),
        pair=("a", "b"),
        measure="AP",
        n_simulations=100,
        data=Data(queries=table),
        inference=Inference(margin=0.1),
    )
    assert (row["n_qids"], row["delta"], row["test"]) == (plan.n_qids, 0.0, "non-inferiority (margin 0.1)")
    table.write_text("query,weight\n" + "".join(f"0{i},{1 + i}\n" for i in range(20)))
    refused([*arguments, "--queries", table], 2, "does not show the heaviest queries of unequal weights")
    table.write_text("query,segment\n00,head\n")
    refused([*arguments, "--queries", table], 2, "column 'segment' of queries has no effect; leave it out")
