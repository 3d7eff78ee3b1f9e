"""``vbterrier track``: tables, formats, several collections, errors."""

import csv
import io
import json
import shutil

import pytest

from vbterrier.evaluate import JudgingBudget, leaderboard
from vbterrier.report.system_tables import PARTS, leaderboard_report
from vbterrier.settings import Inference

TRACK = ["track", "lexical.run", "dense.run", "words.run", "--qrels", "qrels.txt", "--draws", "200"]
RUNS = ["lexical.run", "dense.run", "words.run"]


@pytest.fixture
def track(demo_files, command, monkeypatch, tmp_path):
    """Run the command in a folder with the files of the demo."""
    shutil.copytree(demo_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "groups.tsv").write_text("name\tgroup\nlexical\tone\ndense\ttwo\nwords\tone\n")
    (tmp_path / "costs.tsv").write_text("".join(f"q{i:02}\t{1 + i % 2}\n" for i in range(1, 13)))
    return lambda *more: command(*TRACK, *more)


@pytest.mark.slow
def test_a_leaderboard_for_people(track, tmp_path):
    options = ["--groups", "groups.tsv", "--automatic", "llm=complete.txt", "-n", "4", "--html", "page.html"]
    code, out, err = track(*options)
    assert (code, err) == (0, "")
    systems = leaderboard(RUNS, "qrels.txt", inference=Inference(n_draws=200)).systems
    assert out.startswith(f"{systems['name'].iloc[0]} leads with a mean ENDCG@10 (nDCG@10, judged to depth 10) of ")
    lines = [line for line in out.partition("Leaderboard\n")[2].splitlines() if line.strip()]
    assert [line.split()[1] for line in lines[2:5]] == systems["name"].tolist()
    # The ranks of the main table are not repeated.
    for title, _ in PARTS.values():
        assert (title in out) == (title not in {"Collections", PARTS["ranks"][0]})
    assert (tmp_path / "page.html").read_text().count("<table") == 5


@pytest.mark.slow
def test_csv_has_one_part_and_json_all(track):
    costs = {f"q{i:02}": 1 + i % 2 for i in range(1, 13)}
    board = leaderboard(
        RUNS, "qrels.txt", groups="groups.tsv", budget=JudgingBudget(5, costs=costs), inference=Inference(n_draws=200)
    )
    options = ["--groups", "groups.tsv", "-n", "5", "--costs", "costs.tsv", "--format"]
    parts = json.loads(track(*options, "json")[1])
    assert list(parts) == list(PARTS)
    assert [row["letters_without"] for row in parts["reusability"]] == board.reusability["letters_without"].tolist()
    rows = list(csv.DictReader(io.StringIO(track(*options, "csv", "--show", "batch")[1])))
    assert [[row["qid"], row["docno"]] for row in rows] == board.batch[["qid", "docno"]].to_numpy().tolist()
    rows = list(csv.DictReader(io.StringIO(track("--format", "csv")[1])))
    assert [row["name"] for row in rows] == board.systems["name"].tolist()


@pytest.mark.slow
def test_a_judge_of_some_topics_has_its_number_of_topics(track, tmp_path):
    lines = (tmp_path / "complete.txt").read_text().splitlines()
    (tmp_path / "some.txt").write_text("\n".join(line for line in lines if line < "q05"))
    code, out, err = track("--automatic", "some=some.txt", "--show", "judges")
    assert code == 0
    assert "Judge 'some': no label for 8 of 12 topics" in " ".join(out.split())
    assert err == ""
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("  some")] == ["4"] * 6
    page = track("--automatic", "some=some.txt", "--show", "judges", "--format", "csv")[1]
    assert {row["n_qids"] for row in csv.DictReader(io.StringIO(page))} == {"4"}


def test_latex_and_its_file(track, tmp_path):
    code, out, _ = track("--format", "latex", "--show", "systems", "--output", "board.tex")
    assert code == 0
    assert "leads with a mean" in out.splitlines()[0]
    assert "Leaderboard" not in out
    page = (tmp_path / "board.tex").read_text()
    assert r"\label{tab:leaderboard}" in page
    assert "ENDCG@10 over 12 topics" in page


def test_several_collections_are_folders(track, tmp_path, command):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for run in RUNS:
            shutil.copy(run, folder)
    runs = [f"{folder}/{run}" for folder in ("one", "two") for run in RUNS]
    arguments = ["track", *runs, "-q", "one=qrels.txt", "-q", "two=complete.txt", "--draws", "200"]
    code, out, _ = command(*arguments, "--uncertainty", "collections", "--format", "json")
    assert code == 0
    assert {row["dataset"] for row in json.loads(out)["collections"]} == {"one", "two"}
    code, _, err = command(*arguments[:-2], "--labels", "complete.txt")
    assert (code, "--labels: wanted one collection" in err) == (2, True)
    code, _, err = command("track", "lexical.run", *arguments[2:])
    assert (code, "its folder is no collection" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--groups", "missing.tsv"], 1, "missing.tsv"),
        (["--automatic", "complete.txt"], 2, "wanted NAME=PATH"),
        (["--uncertainty", "collections"], 2, "--uncertainty='collections' needs several"),
        (["--scale", "-1,0"], 1, "wanted a whole number from -1 to 0"),
    ],
)
def test_errors_name_the_option(track, options, code, message):
    result, out, err = track(*options)
    assert (result, out) == (code, "")
    assert message in err


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_ranks_have_a_row_per_system_and_a_column_per_source(track, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = track("--show", "ranks")
    board = leaderboard(RUNS, "qrels.txt", inference=Inference(n_draws=200))
    table = "Intervals" + out.partition("\nIntervals")[2].partition("ENDCG@10 over")[0]
    shown = [line for line in table.splitlines() if line.strip() and "──" not in line]
    assert code == 0
    assert max(map(len, shown)) <= 60
    assert " ".join(shown[:2]) == "Intervals of ranks by source of uncertainty, 90%"
    lines = [line.split() for line in shown[2:]]
    assert lines[0] == ["run", "rank", "unjudged", "topics", "both"]
    ends = board.ranks.set_index(["name", "uncertainty"])[["rank_low", "rank_high"]]
    expected = [
        [name, str(place), *(f"{low}-{high}" for low, high in ends.loc[name].to_numpy())]
        for place, name in enumerate(board.systems["name"], 1)
    ]
    assert lines[1:] == expected
    page = track("--show", "ranks", "--format", "latex")[1]
    assert " & ".join(expected[0]) in page
    html = board.page().partition("<caption>Intervals of ranks")[2]
    cells = [cell.partition("<")[0] for cell in html.partition("</table>")[0].split('">')]
    assert [cell for cell in cells if cell in {"unjudged", "topics", "both"}] == ["unjudged", "topics", "both"]
    assert html.partition("</table>")[0].count("<tr>") == 4


@pytest.mark.usefixtures("track")
def test_an_interval_that_is_missing_is_empty():
    constant = {"llm": dict.fromkeys(("lexical", "dense", "words"), 0.5)}
    board = leaderboard(RUNS, "qrels.txt", automatic=constant, inference=Inference(n_draws=20))
    assert board.judges["low"].isna().any()
    shown = leaderboard_report(board, "markdown", part="judges")
    assert "nan" not in shown
    assert "| tau |" in shown


@pytest.mark.usefixtures("track")
def test_runs_with_the_same_rankings_are_one_row_with_their_names(tmp_path, command):
    shutil.copy(tmp_path / "dense.run", tmp_path / "same.run")
    _, out, _ = command("track", "lexical.run", "dense.run", "same.run", *TRACK[4:], "--show", "ranks", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {(row["name"], row["rank"]) for row in rows if row["uncertainty"] == "both"} == {
        ("dense = same", "2"),
        ("lexical", "1"),
    }
