"""``vbterrier rank``: tables, formats, errors."""

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest

from vbterrier.evaluate.ranking import rank_systems
from vbterrier.report.system_tables import ranking_report
from vbterrier.settings import Inference

RUNS = {
    "a.run": "q1 Q0 d1 1 3 t\nq1 Q0 d9 2 2 t\nq2 Q0 d5 1 2 t\nq2 Q0 d4 2 1 t\n",
    "b[x].run": "q1 Q0 d9 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d4 1 2 t\nq2 Q0 d7 2 1 t\n",
    "c.run": "q1 Q0 d3 1 3 t\nq1 Q0 d8 2 2 t\nq2 Q0 d8 1 2 t\nq2 Q0 d5 2 1 t\n",
}
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq1 0 d6 2\nq1 0 d11 1\nq2 0 d4 1\nq2 0 d5 0\nq2 0 d6 1\nq2 0 d10 2\n"
RANK = ["rank", *RUNS, "--qrels", "qrels.txt", "--draws", "300"]


@pytest.fixture
def ranking(write_files):
    """The result of the library on the files of the working folder."""
    write_files({**RUNS, "qrels.txt": QRELS})
    return lambda **options: rank_systems([*RUNS], "qrels.txt", **{"inference": Inference(n_draws=300), **options})


def test_a_table_for_people(command, ranking):
    code, out, err = command(*RANK)
    assert (code, err) == (0, "")
    assert out.startswith(ranking().answer().head())
    lines = [line for line in out.partition("\n\n")[2].splitlines() if line.strip()]
    assert lines[0].split("  ")[1].strip() == "run"
    for title in ("mean", "90% of means", "rank", "90% of ranks", "best: these", "best: all", "unjudged"):
        assert title in lines[0]
    systems = ranking().systems
    assert [line.split()[0] for line in lines[2:5]] == systems["name"].tolist()
    first = systems.iloc[0]
    for cell in (f"{first['mean']:.3f}", f"{first['low']:.3f} to {first['high']:.3f}", f"{first['expected_rank']:.3f}"):
        assert cell in lines[2]
    assert f"{first['rank_low']:g} to {first['rank_high']:g}" in lines[2]
    assert lines[5] == (
        "ENDCG@10, 2 topics; unjudged (draws): 300 draws, seed 0: grades of unjudged documents of these topics under "
        "the model"
    )


@pytest.mark.parametrize(
    ("over", "message"), [("topics", "with expected scores"), ("both", "other topics from the same population, and")]
)
def test_the_output_of_rank_says_over_what_ranks_are_uncertain(command, ranking, over, message):
    code, out, _ = command(*RANK, "--uncertainty", over)
    assert code == 0
    assert message in out


def test_pairs(command, ranking):
    code, out, _ = command(*RANK, "--pairs", "--level", "0.5")
    assert code == 0
    lines = [line for line in out.partition("\n\n")[2].splitlines() if line.strip()]
    assert "50% of a - b" in lines[0]
    assert [line.split()[:2] for line in lines[2:5]] == ranking().pairs[["name_a", "name_b"]].to_numpy().tolist()
    code, out, _ = command(*RANK, "--pairs", "--baseline", "c", "--format", "csv")
    assert [row["name_b"] for row in csv.DictReader(io.StringIO(out))] == ["c", "c"]


def test_one_run_has_no_pairs(command, ranking):
    code, out, _ = command("rank", "a.run", "--qrels", "qrels.txt", "--pairs", "--draws", "10")
    assert code == 0
    assert "interval of a - b   a beats b, these topics" in out
    none = replace(ranking(), pairs=ranking().pairs.head(0))
    assert none.pairs["low"].dtype == float
    assert "| interval of a - b |" in ranking_report(none, "markdown", pairs=True)


@pytest.mark.parametrize("pairs", [False, True])
def test_csv_and_json_hold_the_frame_itself(command, ranking, pairs):
    options = ["-m", "BNDCG(prior='pool')@5", "--seed", "3", "--uncertainty", "both", *(["--pairs"] if pairs else [])]
    expected = ranking(measure="BNDCG(prior='pool')@5", uncertainty="both", inference=Inference(n_draws=300, seed=3))
    expected = expected.pairs if pairs else expected.systems
    code, out, _ = command(*RANK, *options, "--format", "json")
    assert code == 0
    pd.testing.assert_frame_equal(pd.DataFrame(json.loads(out)), expected, check_dtype=False)
    code, out, _ = command(*RANK, *options, "--format", "csv")
    assert code == 0
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(out)), expected, check_dtype=False)


@pytest.mark.parametrize("style", ["latex", "markdown"])
def test_papers_get_a_table_with_a_caption(command, ranking, style):
    code, out, _ = command(*RANK, "--format", style)
    assert code == 0
    plain = out.replace("{[}", "[").replace("{]}", "]").replace("\\", "")
    assert all(words in plain for words in ("Cutoff at rank 10.", " draws, seed 0.", "a", "b[x]", "c"))


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--baseline", "a"], 2, "wanted --pairs too"),
        (["--uncertainty", "all"], 2, "uncertainty='all'"),
        (["--qrels", "nothing.txt"], 1, "nothing.txt"),
    ],
)
def test_errors_are_one_line(refused, ranking, options, code, message):
    refused([*RANK, *options], code, message)


def test_the_verdict_of_copies_compares_the_first_system_with_another_run(in_demo, tmp_path, demo_files):
    twin = tmp_path / "twin.run"
    twin.write_bytes((demo_files / "lexical.run").read_bytes())
    _, out, _ = in_demo("rank", "lexical.run", twin, "dense.run", "-q", "qrels.txt", "--draws", "100")
    first, second = out.splitlines()[:2]
    assert "lexical is the first of 3 systems over 12 topics, as is twin with equal scores: " in first
    assert "; the next is dense, expected rank " in first
    assert second.startswith("lexical beats dense with probability ")
    assert out.splitlines()[-1].endswith("--difference lexical,dense --budget 20")
    _, out, _ = in_demo("rank", "lexical.run", twin, "-q", "qrels.txt", "--draws", "100")
    assert "as is twin with equal scores: " in out.splitlines()[0]
    assert "beats" not in out
