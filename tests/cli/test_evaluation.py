"""``vbterrier demo``, ``doctor`` and ``score``: output, formats, exit codes."""

import csv
import html
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest
from night import at_night
from typer.testing import CliRunner

import vbterrier
from vbterrier.cli import app
from vbterrier.demo import demo_folder
from vbterrier.errors import DegenerateWarning, FileError, ParameterError, encodable
from vbterrier.settings import Data, Inference

RUN = "q1 Q0 d1 1 3 t\nq1 Q0 d9 2 2 t\nq1 Q0 d2 3 1 t\nq2 Q0 d5 1 2 t\nq2 Q0 d4 2 1 t\n"
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq1 0 d6 2\nq2 0 d4 1\nq2 0 d5 0\n"
PLAIN = ["score", "a.run", "-q", "qrels.txt"]
SCORE = ["score", "a.run", "[b]|_%.run", "--qrels", "qrels.txt", "--resamples", "50"]
BOTH = ["-m", "ENDCG@10", "-m", "nDCG@10"]


@pytest.fixture
def files(write_files):
    """The working folder, with two runs and qrels."""
    return write_files({"a.run": RUN, "[b]|_%.run": RUN.replace("d9", "d6"), "qrels.txt": QRELS})


@pytest.fixture
def scores(files):
    return vbterrier.score(
        ["a.run", "[b]|_%.run"], "qrels.txt", ["ENDCG@10", "nDCG@10"], inference=Inference(n_resamples=50)
    )


def rows_of(out):
    return list(csv.DictReader(io.StringIO(out)))


# Help and version.


def test_no_arguments_show_the_help(command):
    code, out, err = command()
    assert code in {0, 2}
    assert all(name in out + err for name in ("Usage", "demo", "doctor", "score", "--version"))


@pytest.mark.parametrize(
    ("name", "word"), [("judge", "--budget"), ("queries", "sample"), ("queries power", "--verbose")]
)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_commands_and_groups_have_a_help(command, name, word, option):
    code, out, _ = command(*name.split(), option)
    assert code == 0
    assert "Usage" in out
    assert word in out


def test_the_version_is_the_packages(command):
    assert command("--version") == (0, f"vbterrier {vbterrier.__version__}\n", "")


# The demo.


def test_the_demo_says_what_each_way_of_scoring_makes_of_two_systems(command):
    code, out, err = command("demo")
    assert (code, err) == (0, "")
    for words in ("Unjudged@10", "nDCG@10", "nDCG(judged_only=True)@10", "BNDCG@10", "ENDCG@10", "topics (unseen)"):
        assert words in out
    assert "unjudged (normal)" in out
    means = {tuple(cells[:2]): [float(cell.split()[0]) for cell in cells[2:]] for cells in _verdicts(out)}
    (naive, other), (good, better) = means["nDCG@10", "non-relevant"], means["nDCG@10", "none"]
    assert naive > other
    assert good < better
    # The new system was not pooled; the judgments of twelve of its documents bring the order of complete judgments.
    assert means["ENDCG@10", "estimated"] == [0.738, 0.717]
    assert means["ENDCG@10, 12 judged", "estimated"] == [0.698, 0.773]


def test_the_demos_further_judgments_are_those_that_the_judge_command_lists(command):
    runs = {name: demo_folder() / f"{name}.run" for name in ("lexical", "dense")}
    code, out, _ = command("judge", *runs.values(), "--qrels", demo_folder() / "qrels.txt", "--budget", 12, "-f", "csv")
    assert code == 0
    chosen = pd.read_csv(io.StringIO(out))[["qid", "docno"]]
    assert len(chosen) == 12
    labels = vbterrier.read_qrels(demo_folder() / "complete.txt").merge(chosen, on=["qid", "docno"])
    judged = pd.concat([vbterrier.read_qrels(demo_folder() / "qrels.txt"), labels])
    # The judgments reach the tenth rank of these runs, and no further.
    with pytest.warns(DegenerateWarning, match="the judgments seem to end at rank 10"):
        means = vbterrier.score(runs, judged, ["ENDCG@10"]).means()["ENDCG@10"]
    assert {name: round(value, 3) for name, value in means.items()} == {"lexical": 0.698, "dense": 0.773}


def _verdicts(out):
    """Rows of the demo's table of differences from the complete judgments: measure, unjudged documents, two means."""
    rows = [re.split(r" {2,}", line.strip()) for line in out.splitlines()]
    return [cells for cells in rows if len(cells) == 4 and "DCG" in cells[0]]


def test_the_demos_numbers_are_those_of_its_files(command):
    runs = [demo_folder() / "lexical.run", demo_folder() / "dense.run"]
    measures = ["Unjudged@10", "nDCG@10", "nDCG(judged_only=True)@10", "BNDCG@10", "ENDCG@10"]
    means = vbterrier.score(runs, demo_folder() / "qrels.txt", measures).means()
    table = [line.split() for line in command("demo")[1].splitlines()]
    shown = {(cells[0], cells[1]): cells[2] for cells in table if len(cells) > 5 and cells[1] in measures}
    assert shown == {(name, measure): f"{value:.4f}" for measure, of in means.items() for name, value in of.items()}
    assert len(shown) == 10


@pytest.mark.parametrize("folder", ["mine", "my demo"])
@pytest.mark.slow
def test_the_demos_files_are_saved_and_the_commands_it_names_next_run(command, write_files, folder):
    here = write_files({})
    code, out, err = command("demo", "--save", folder)
    assert (code, err) == (0, "")
    assert len(list((here / folder).iterdir())) == 10
    assert f"10 files in {folder}" in out
    # The next step of each command is another one, up to the comparison.
    for name in ("doctor", "score", "compare"):
        arguments = shlex.split(out.splitlines()[-1].removeprefix("Next: vbterrier "))
        assert arguments[0] == name
        code, out, err = command(*arguments)
        assert (code, err) == (0, "")
        assert "lexical" in out
        assert "dense" in out


@pytest.mark.slow
def test_the_demo_overwrites_nothing(refused, tmp_path):
    (tmp_path / "qrels.txt").write_text("mine")
    refused(["demo", "--save", tmp_path], 1, "'qrels.txt' already")
    assert (tmp_path / "qrels.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
    refused(["demo", "--save", tmp_path / "qrels.txt" / "sub"], 1)


# Scores in every format.


@pytest.mark.parametrize(("style", "read"), [("csv", rows_of), ("json", json.loads)])
def test_scores_as_csv_and_json_are_the_frame_of_intervals(command, scores, style, read):
    code, out, err = command(*SCORE, *BOTH, "--format", style)
    assert (code, err) == (0, "")
    rows = read(out)
    for column in ("name", "measure", "method"):
        assert [row[column] for row in rows] == scores.intervals[column].tolist()
    for column in ("value", "low", "high", "level", "n_qids", "n_resamples", "seed"):
        expected = scores.intervals[column].tolist()
        expected = expected if style == "csv" else pytest.approx(expected, abs=1e-14)
        assert [float(row[column]) for row in rows] == expected
    assert {int(row["n_missing"]) for row in rows} == {0}


def test_scores_as_a_table_name_their_intervals_and_show_names_as_they_are(command, scores):
    code, out, err = command(*SCORE, *BOTH)
    assert (code, err) == (0, "")
    for words in ("95% topics (unseen)", "95% unjudged (normal)", "[b]|_%"):
        assert words in out
    assert "including scores that the sample lacks" in out.partition("Caveat: ")[0]
    # Notes on models are caveats.
    assert all(note.casefold() in out.partition("Caveat: ")[2].casefold() for note in scores.notes)
    means = scores.means()
    for name in means.index:
        for measure in means.columns:
            (line,) = [line for line in out.splitlines() if line.split()[:2] == [name, measure]]
            assert line.split()[2] == f"{means.loc[name, measure]:.4f}"
            assert line.split()[-2:] == ["2", "0"]


@pytest.mark.parametrize("style", ["csv", "json", "table"])
def test_per_query_has_a_row_for_each_topic(command, scores, style):
    code, out, err = command(*SCORE, *BOTH, "--per-query", "-f", style)
    assert (code, err) == (0, "")
    expected = scores.values
    if style == "csv":
        results = [(r["name"], r["qid"], r["measure"], float(r["value"]), r["model"]) for r in rows_of(out)]
        assert results == list(expected.itertuples(index=False, name=None))
    elif style == "json":
        results = pd.DataFrame(json.loads(out))
        pd.testing.assert_frame_equal(results, expected, check_dtype=False, rtol=0, atol=1e-14)
    else:
        for value in expected["value"]:
            assert f"{value:.4f}" in out
        assert "resamples" not in out
        assert sum("q1" in line for line in out.splitlines()) == 2


def test_options_reach_the_intervals(command, files):
    options = ["--level", "0.8", "--interval", "bca", "--seed", "7", "-m", "AP", "-m", "ENDCG@10", "-f", "csv"]
    rows = rows_of(command(*SCORE, *options)[1])
    how = Inference(level=0.8, interval="bca", seed=7, n_resamples=50)
    scores = vbterrier.score(["a.run", "[b]|_%.run"], "qrels.txt", ["AP", "ENDCG@10"], inference=how)
    assert [float(row["low"]) for row in rows] == scores.intervals["low"].tolist()
    assert {row["method"] for row in rows} == {"topics (bca)", "unjudged (normal)"}


# The doctor.


def test_the_doctor_says_what_the_files_hold_and_which_measures_they_support(command, files):
    (files / "c.run").write_text(RUN.replace("q2", "q9") + "q1 Q0 d1 9 0.5 t\n")
    code, out, err = command("doctor", "a.run", "c.run", "--qrels", "qrels.txt")
    assert (code, err) == (0, "")
    for words in ("Judgments", "Runs", "Measures", "Caveat: ", "unjudged@5", "unjudged@100", "tied@10", "duplicates"):
        assert words in out
    for words in ("c lacks 1 of the judged topics", "Run 'c': 1 row repeats a document", "left out: c 1"):
        assert words in out
    suited = re.search(r"(BNDCG, [\w, ]+, NDCGBound, Unjudged) yes some documents are", " ".join(out.split()))[1]
    assert "BAP" not in suited
    assert "of the first 10 documents are unjudged: compare by ENDCG@10" in " ".join(out.split("\n\n")[0].split())


def test_the_doctor_writes_a_page_with_all_that_it_prints(command, files):
    (files / "c<b>.run").write_text(RUN.replace("q2", "q9"))
    code, out, _ = command("doctor", "a.run", "c<b>.run", "--qrels", "qrels.txt", "--html", "page.html", "-f", "json")
    assert code == 0
    page, parts = (files / "page.html").read_text(), json.loads(out)
    # Notes are caveats, and no table.
    assert page.count("<table") == 3
    assert len(parts["notes"]) > 0
    for about, _, text in (note.partition(": ") for note in parts["notes"]):
        # As titles and sentences, which begin with a capital; names keep their case.
        assert html.escape(about[1:]) in page
        assert html.escape(text[1:]) in page
    assert all(html.escape(row["why"]) in page for row in parts["support"])
    assert "c&lt;b&gt;" in page
    assert "<b>" not in page
    assert command("doctor", "a.run", "--qrels", "qrels.txt", "--html", "no/page.html")[0] == 1


# Errors.

LONG = "n" * 300
SMALL = ["--memory", "64 MiB"]
USAGE = {
    "unknown measure": ([*SCORE, "-m", "BNCG@10"], "no measure is called 'BNCG'. Did you mean BNDCG?"),
    "unknown format of score": ([*SCORE, *BOTH, "-f", "xml"], "wanted one of table, csv, json, latex, markdown"),
    "unknown topics": ([*SCORE, *BOTH, "--on-topics", "x"], "--on-topics='x': wanted one of 'same', 'all', 'common'"),
    "no command": (["scor"], ""),
    "no arguments": (["score"], ""),
    "no qrels": (["score", "a.run", "-m", "BNDCG@10"], "nothing to score against"),
    "unknown option": ([*SCORE, *BOTH, "--nonsense"], ""),
    "no number": ([*SCORE, *BOTH, "--level", "high"], ""),
    **{measure: ([*PLAIN, "-m", measure], "") for measure in ("IPrec@1.5", "BNDCG@100000000000000000000")},
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE)
def test_bad_usage_is_one_line_on_standard_error_and_exit_code_2(refused, files, arguments, words):
    refused(arguments, 2, words)


INPUT = {
    "missing run": (["score", "b.run", "-q", "qrels.txt", *BOTH], "b.run: no such file"),
    "qrels for a run": (["score", "qrels.txt", "-q", "qrels.txt", *BOTH], "qrels.txt:1: "),
    "same name, doctor": (["doctor", "a.run", "../a.run", "-q", "qrels.txt"], "two systems are called 'a'"),
    "long run": (["score", LONG, "-q", "qrels.txt", "-m", "AP", *SMALL], ""),
    "long intents": ([*PLAIN, "-m", "ES@5", "--intents", LONG], ""),
    "long tags": (["score", "a.run", "--intents", "qrels.txt", "-m", "ES@5", "--tags", LONG], ""),
    "long resume": ([*PLAIN, "-m", "AP", "--resume", LONG], ""),
    "long output": ([*PLAIN, "-m", "AP", "-o", f"{LONG}.csv"], ""),
    "long folder": (["demo", "--save", LONG], ""),
}


@pytest.mark.parametrize(("arguments", "words"), INPUT.values(), ids=INPUT)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_1(refused, files, arguments, words):
    (files.parent / "a.run").write_text(RUN)
    refused(arguments, 1, words, warns=not words)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads a file that fails")
@pytest.mark.parametrize("more", [[], SMALL], ids=["whole", "chunks"])
def test_a_file_that_fails_while_it_is_read_is_one_line(refused, files, more):
    arguments = ["score", "/proc/self/mem", "-q", "qrels.txt", "-m", "AP", *more]
    refused(arguments, 1, "/proc/self/mem: cannot be read (")


def test_warnings_are_one_line_each_and_leave_the_output_alone(command, files):
    (files / "c.run").write_text(RUN.replace(" 2 t", " 3 t") + "q8 Q0 d1 1 1 t\nq9 Q0 d1 1 1 t\n")
    before = warnings.showwarning
    code, out, err = command("score", "c.run", "-q", "qrels.txt", "-m", "BNDCG@10", "-m", "Unjudged@5", "-f", "json")
    assert code == 0
    assert {row["name"] for row in json.loads(out)} == {"c"}
    first, second = err.splitlines()
    assert first == "vbterrier: warning: run 'c': 2 topics are not in qrels and are left out ('q8', 'q9')"
    assert second.startswith("vbterrier: warning: run 'c': 29% of the first 3 places are tied; ")
    assert warnings.showwarning is before


def test_the_same_warning_is_shown_once(command, files):
    (files / "subtopics.txt").write_text("q1 1 d1 1\nq1 2 d1 0\nq2 1 d1 1\n")
    _, out, err = command("score", *SCORE[1:3], "-q", "subtopics.txt", "-m", "nDCG@10", "-m", "ES@10")
    warning = next(line for line in (out + err).splitlines() if "only the last one would count" in line)
    assert "times)" not in warning
    assert (out + err).count("only the last one would count") == 1


def test_warnings_that_differ_in_the_run_are_shown_once_and_counted(command, files):
    runs = [f"{name}.run" for name in "abcdef"]
    for run in runs:
        (files / run).write_text("q1 Q0 d1 1 1 t\nq2 Q0 d1 1 1 t\nq9 Q0 d1 1 1 t\n")
    (files / "judged.txt").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    for style in ("table", "csv"):
        _, out, err = command("score", *runs, "-q", "judged.txt", "-m", "nDCG@10", "--interval", "normal", "-f", style)
        (alike,) = [line for line in (out + err).splitlines() if "not in" in line]
        assert "run 'a'" in alike.lower()
        assert "(also of run 'b', run 'c', run 'd' and 2 more)" in alike


# Parts of runs, and several processes.


@pytest.fixture
def parts(write_files):
    """A run of six topics, whole and as a folder of two files."""
    run = "".join(f"q{t} Q0 d{r} {r} {10 - r}.5 tag\n" for t in range(6) for r in range(5))
    qrels = "".join(f"q{t} 0 d{t % 4} 1\n" for t in range(6))
    here = write_files({"whole.run": run, "two.run": run, "qrels": qrels, "intents.tsv": "q1\tA\t1\n"})
    (here / "mine").mkdir()
    (here / "mine" / "1.run").write_text(run[: run.index("q3")])
    (here / "mine" / "2.run").write_text(run[run.index("q3") :])


def printed(*argv):
    arguments = ["score", *map(str, argv), "--format", "csv"]
    return CliRunner().invoke(app, arguments, catch_exceptions=False).output


JUDGED = ("-q", "qrels", "-m", "nDCG@3", "-m", "AP")
INTENTS = ("whole.run", "--intents", "intents.tsv", "-m", "VB@3")


@pytest.mark.slow
def test_chunks_and_processes_score_the_same_and_a_folder_is_one_run(parts):
    expected = printed("whole.run", *JUDGED)
    assert printed("whole.run", *JUDGED, *SMALL) == expected
    assert printed("mine", *JUDGED, *SMALL).replace("mine", "whole") == expected
    for _ in range(2):
        assert printed("whole.run", *JUDGED, "--resume", "done") == expected
    assert printed("whole.run", "two.run", *JUDGED, "--jobs", 2) == printed("whole.run", "two.run", *JUDGED)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("whole.run", *JUDGED, "--memory", "little"), ParameterError, "memory='little'"),
        (("whole.run", *JUDGED, "--resume", "qrels"), FileError, "cannot be made"),
        ((*INTENTS, "--resume", "done"), ParameterError, "--resume: wanted --qrels"),
        ((*INTENTS, "--jobs", 0), ParameterError, "n_jobs=0"),
        (("whole.run", *JUDGED, "--dask", "tcp://127.0.0.1:9", "--jobs", 2), ParameterError, "n_jobs=2 and client=: "),
    ],
    ids=["memory", "resume", "intents in chunks", "intents in processes", "processes and a scheduler"],
)
def test_what_does_not_go_together_is_refused(parts, arguments, error, words):
    with pytest.raises(error, match=words):
        printed(*arguments)


def test_more_memory_than_there_is_may_be_allowed(command, files):
    code, out, _ = command(*PLAIN, "-m", "AP", "-f", "csv", "--memory", "99999999999999999999 TiB")
    assert (code, out) == (0, command(*PLAIN, "-m", "AP", "-f", "csv")[1])


# In a separate process.


@pytest.mark.slow
def test_a_process_prints_scores_and_leaves_with_0(process, files):
    done = process(*SCORE, *BOTH, "-f", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("name,measure,value,low,high,")


@pytest.mark.slow
def test_a_process_that_fails_shows_one_line_and_no_traceback(process, files):
    (files / "bad.run").write_text(RUN + "q3 Q0 d1 1 abc t\n")
    done = process("score", "bad.run", "-q", "qrels.txt", "-m", "BNDCG@10")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "vbterrier: error: bad.run:6: score must be a number, found 'abc'; repair the line\n"


EACH = """
import json, sys
from vbterrier.cli import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["vbterrier", *command]
    try:
        main()
    except SystemExit as left:
        heavy = {"matplotlib", "pyterrier", "scipy.stats", "sklearn", "statsmodels"}
        if command[0] in ("score", "compare"):
            heavy |= {"numpy.f2py", "pyarrow.parquet", "scipy.special"}
        print(command[0], left.code or 0, *sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.slow
def test_commands_import_nothing_heavy_that_they_do_not_use(files):
    inputs = ["a.run", "[b]|_%.run", "-q", "qrels.txt"]
    evaluating = [["doctor", *inputs, "--html", "page.html"], ["rank", *inputs], ["judge", *inputs, "-n", "1"]]
    # First, with their default measures: later commands may use SciPy.
    small = [[name, *inputs, *options] for name in ("score", "compare") for options in ([], BOTH)]
    commands = [*small, ["demo"], *evaluating]
    argv = [sys.executable, "-W", "ignore", "-c", EACH, json.dumps(commands)]
    done = subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", check=True)
    ended = [line for line in done.stderr.splitlines() if not line.startswith("vbterrier: warning: ")]
    assert ended == [f"{command[0]} 0" for command in commands]
    assert "<table" in (files / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [[*SCORE, *BOTH], at_night(["doctor", "a.run", "-q", "qrels.txt"])], ids=lambda a: a[0]
)
def test_a_reader_that_went_away_is_no_error(process, files, arguments):
    read, write = os.pipe()
    os.close(read)
    try:
        done = process(*arguments, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="writes to a device that is full")
@pytest.mark.parametrize(
    "arguments", [at_night(["doctor"]), ["score", "-m", "AP"], at_night(["judge", "-n", "1"])], ids=" ".join
)
def test_a_full_disk_behind_the_screen_is_one_line(process, files, arguments):
    with Path("/dev/full").open("w") as full:
        done = process(*arguments, "a.run", "-q", "qrels.txt", stdout=full)
    errors = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert done.returncode == 1
    assert errors == ["vbterrier: error: standard output: cannot be written: No space left on device"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "plain"),
    [
        (["doctor", "a.run", "日本.run"], ["----", r"\u65e5\u672c"]),
        (["compare", "a.run", "日本.run"], ["----", "95% interval -", r"\u65e5\u672c"]),
        (["gate", "a.run", "--baseline", "日本.run", "--margin", "0.2"], ["? UNKNOWN", "*", r"\u65e5\u672c"]),
    ],
    ids=lambda words: words[0],
)
def test_code_pages_have_tables_minus_signs_and_names(process, files, words, plain):
    Path("日本.run").write_text(RUN.replace("d9", "d8"))
    shown, whole = (
        process(*words, "-q", "qrels.txt", env={**os.environ, "PYTHONIOENCODING": name}, encoding=name)
        for name in ("cp1252", "utf-8")
    )
    assert shown.returncode == whole.returncode
    assert [one for one in plain if one not in shown.stdout] == []
    assert (shown.stdout, shown.stderr) == (encodable(whole.stdout, "cp1252"), encodable(whole.stderr, "cp1252"))
    assert "日本" in whole.stdout


@pytest.mark.slow
def test_results_print_to_code_pages(tmp_path):
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    code = "import vbterrier; print(vbterrier.score('a.run', 'qrels.txt', ['nDCG@10']))"
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252:strict", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b" ------" in done.stdout


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("command_name", ["score", "compare", "rank", "judge"])
def test_labels_are_evidence_on_the_command_line(command, write_files, command_name):
    runs = {"a.run": RUN, "b.run": RUN.replace("d9", "d8")}
    qrels = QRELS.replace("q1 0 d6 2", "q1 0 d6 0")
    labels = "q1 0 d1 3\nq1 0 d3 0\nq1 0 d6 0\nq1 0 d9 3\nq1 0 d8 0\nq2 0 d5 0\nq2 0 d4 2\n"
    write_files({**runs, "qrels.txt": qrels, "llm.txt": labels, "bad.txt": "q1 0 d1 high\n"})
    more = {"judge": ["--budget", "2"], "rank": ["--draws", "50"]}.get(command_name, ["--resamples", "50"])
    arguments = [command_name, *runs, "--qrels", "qrels.txt", "-m", "ENDCG@10", *more, "-f", "csv"]
    without, result = command(*arguments), command(*arguments, "--labels", "llm.txt")
    assert (without[0], result[0]) == (0, 0)
    assert result[1] != without[1]
    code, _, err = command(*arguments, "--labels", "bad.txt")
    assert code == 1
    assert "bad.txt:1: label must be a number" in err


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("command_name", ["score", "rank", "judge"])
def test_a_saved_model_is_used_on_the_command_line(command, refused, write_files, command_name):
    runs = {"a.run": RUN, "b.run": RUN.replace("d9", "d8")}
    write_files({**runs, "qrels.txt": QRELS})
    read = {name: vbterrier.read_run(name) for name in runs}
    vbterrier.unjudged.fit(read, vbterrier.read_qrels("qrels.txt")).save("fitted")
    options = {"judge": ["--budget", "2"], "rank": ["--draws", "50"], "score": []}[command_name]
    shared = ["-q", "qrels.txt", *options, "-f", "json"]
    together, alone = (
        [command_name, *runs, "-m", "ENDCG@10", *shared],
        [command_name, "a.run", "-m", "ENDCG@10", *shared],
    )
    # The runs of the call are those of the model.
    assert command(*together, "--model", "fitted")[:2] == command(*together)[:2]
    code, out, _ = command(*alone, "--model", "fitted")
    assert code == 0
    assert out != command(*alone)[1]
    refused([*alone, "--model", "nowhere"], 1, "model='nowhere': no model is registered")
    refused([command_name, "a.run", "-m", "BNDCG@10", *shared, "--model", "fitted"], 2, "BNDCG@10 would not use it")


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("command_name", ["score", "compare", "table", "rank", "judge"])
@pytest.mark.slow
def test_complete_judgments_have_the_depth_of_the_option(command, refused, command_name):
    runs, qrels = [demo_folder() / f"{name}.run" for name in ("lexical", "dense")], demo_folder() / "qrels.txt"
    options = ["--budget", "3"] if command_name == "judge" else []
    arguments = [command_name, *runs, "-q", qrels, "-m", "ENDCG@10", *options]
    results = [command(*arguments, "--pool-cutoff", cutoff) for cutoff in (10, 20)]
    assert [code for code, *_ in results] == [0, 0]
    assert results[0][1] != results[1][1]
    read, data = {run.stem: vbterrier.read_run(run) for run in runs}, Data(pool_cutoff=20)
    if command_name in {"score", "compare", "table"}:
        means = vbterrier.score(read, qrels, ["ENDCG@10"], data=data).means()["ENDCG@10"]
        assert all(f"{mean:.3f}" in results[1][1] for mean in means)
    elif command_name == "rank":
        means = vbterrier.rank_systems(read, qrels, data=data).systems["mean"]
        assert all(f"{mean:.3f}" in results[1][1] for mean in means)
    else:
        plan = vbterrier.judge_next(read, qrels, budget=3, data=data)
        answer, out = plan.answer(), " ".join(results[1][1].split())
        assert "3 of 38 unjudged documents" in answer.verdict
        assert "the mean ENDCG@10 (nDCG@10, judged to depth 20) of 2 runs" in answer.verdict
        assert answer.verdict in out
        assert answer.reason in out
        # The limits and half the widths of the summary.
        low, high, width, after = map(float, re.findall(r"\b0\.\d{4}", plan.summary()))
        assert f"{low:.4f} to {high:.4f}" in answer.reason
        halves = [float(half) for half in re.findall(r"±(0\.\d{4})", answer.verdict)]
        assert halves == pytest.approx([width / 2, after / 2], abs=1.01e-4)
    refused([*arguments, "--pool-cutoff", "0"], 2, "--pool-cutoff")
    unused = [command_name, *runs, "-q", qrels, "-m", "BNDCG@10", *options, "--pool-cutoff", "40"]
    refused(unused, 2, "BNDCG@10 would not use it")


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.slow
def test_subtopics_without_a_judged_document_count_on_the_command_line(command, refused, write_files):
    subtopic = '<subtopic number="{}"/>'.format
    write_files(
        {
            "a.run": "1 Q0 a 1 2 x\n",
            "b.run": "1 Q0 b 1 2 x\n",
            "qrels.txt": "1 1 a 1\n1 3 a 1\n1 3 b 1\n",
            "topics.xml": '<w><topic number="1">' + "".join(map(subtopic, range(1, 5))) + "</topic></w>",
        }
    )
    score = ["score", "a.run", "-q", "qrels.txt", "-m", "ES@5", "-f", "json"]
    code, out, err = command(*score)
    assert (code, json.loads(out)[0]["value"]) == (0, 1.0)
    assert "1 of 1 topics have gaps" in err
    assert "with --subtopics topics.xml" in err
    code, out, err = command(*score, "--subtopics", "topics.xml")
    assert (code, json.loads(out)[0]["value"]) == (0, 0.5)
    assert "gaps" not in err
    _, out, _ = command("doctor", "a.run", "-q", "qrels.txt", "--subtopics", "topics.xml")
    assert "4, 2 without a judged document" in " ".join(out.split())
    both = ["a.run", "b.run", "-q", "qrels.txt", "--subtopics", "topics.xml"]
    assert "0.25" in command("compare", *both, "-m", "ES@5", "-f", "json")[1]
    refused(["score", "a.run", "--intents", "x", "-m", "ES@5", "--subtopics", "topics.xml"], 2, "wanted --qrels")
    code, out, _ = command("report", *both, "-o", "page.html")
    assert (code, "0.250" in out) == (0, True)


@pytest.mark.slow
def test_pooled_intents_of_runs_in_tables(write_files):
    write_files(
        {
            "a.csv": "qid,docno,rank,title\np1,d1,1,wages\np2,d9,1,prices\n",
            "b.run": "p1 Q0 d1 1 1 t\np2 Q0 d2 1 1 t\n",
            "intents.tsv": "qid\tentity_id\tprob\tparts\np1\ti1\t1\tSmith|CPS\np2\ti2\t1\tJones|CPS\n",
            "tags.tsv": "docno\tentity_id\nd1\tSmith\nd1\tCPS\nd2\tCPS\n",
        }
    )
    shared = ("a.csv", "b.run", "--intents", "intents.tsv", "--tags", "tags.tsv", "-m", "ES@1", "-m", "VB@1")
    for options, expected in (
        ((), [0.5, 0.5, 0.5, 0.5]),
        (("--pool", "collection"), [0.5, 0, 0.5, 0]),
        (("--pool", "collection", "--parts", "part"), [0.5, 0, 0.75, 0.75 - 0.1875**0.5]),
    ):
        result = rows_of(printed(*shared, *options))
        assert [row["name"] for row in result] == ["a", "a", "b", "b"]
        assert [float(row["value"]) for row in result] == pytest.approx(expected)
    text = CliRunner().invoke(app, ["score", *shared, "--pool", "collection", "-f", "markdown"]).output
    assert "Pooled scores, of the joint intents of 2 topics" in text
    with pytest.raises(ParameterError, match="--pool and --parts: wanted --intents without --qrels"):
        printed("b.run", "-q", "qrels.txt", "-m", "P@1", "--pool", "collection")


@pytest.mark.slow
def test_folder_of_intent_set_gives_intents_and_tags(parts, tmp_path):
    intents = pd.DataFrame({"qid": np.repeat([f"q{t}" for t in range(6)], 2), "entity_id": ["A", "B"] * 6, "prob": 0.5})
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["A", "B"]})
    vbterrier.IntentSet.build("set", intents, tags)
    vbterrier.frames.write_intents(intents, "intents.tsv")
    vbterrier.frames.write_tags(tags, "tags.tsv")
    vbterrier.frames.write_tags(tags[:1], "other.tsv")
    files = ("--intents", "intents.tsv", "--tags", "tags.tsv", "-m", "ES@3")
    expected = printed("whole.run", *files)
    assert [float(row["value"]) for row in rows_of(expected)] == [1.0]
    of_set = ("whole.run", "--intents", "set", "-m", "ES@3")
    assert printed(*of_set) == expected
    assert printed(*of_set, "-q", "qrels") == printed("whole.run", *files, "-q", "qrels")
    (other,) = rows_of(printed(*of_set, "--tags", "other.tsv"))
    assert float(other["value"]) == 0.5


@pytest.mark.slow
def test_intents_alone_are_scored_in_chunks_and_processes_alike(parts):
    intents = [f"q{t}\t{entity}\t{prob}\n" for t in range(6) for entity, prob in (("A", 0.7), ("B", 0.3))]
    Path("intents.tsv").write_text("".join(intents))
    Path("tags.tsv").write_text("".join(f"d{r}\t{'AB'[r % 2]}\t1\n" for r in range(1, 5)))
    shared = ("--intents", "intents.tsv", "--tags", "tags.tsv", "-m", "VB@3", "-m", "ES@1")
    expected = printed("whole.run", "two.run", *shared)
    assert expected.count("\n") > 4
    assert printed("whole.run", "two.run", *shared, *SMALL) == expected
    assert printed("whole.run", "two.run", *shared, "--jobs", 2) == expected
    assert printed("mine", *shared, *SMALL).replace("mine", "whole") == printed("whole.run", *shared)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--memory", "1" * 400], "wanted a number of bytes of at least 64 MiB"),
        (["--resume", ""], "--resume='': wanted a folder; leave it out to keep no checkpoints"),
        (["-m", "INST"], "'INST': needs the parameter max_rel; a measure is written as Name, Name@10"),
    ],
)
def test_options_are_checked_before_any_file_is_read(refused, options, words):
    refused(["score", "none.run", "--qrels", "none.txt", "-m", "nDCG@10", *options], 2, words)


def test_engines_that_are_not_installed_are_named_with_the_remedy(refused, monkeypatch):
    for engine in ir_measures.DefaultPipeline.providers:
        monkeypatch.setattr(engine, "is_available", lambda: False)
    refused(["score", "none.run", "--qrels", "none.txt", "-m", "Compat"], 2, "install one that does: ")


def test_a_measure_that_fails_at_these_data_is_an_error(write_files, refused):
    write_files({"qrels": "1 0 d1 1\n", "a.run": "1 Q0 d1 1 1 t\n"})
    refused(
        ["score", "a.run", "--qrels", "qrels", "-m", "Accuracy"],
        2,
        "division by zero); a topic has no value, such as Accuracy where",
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process")
def test_too_little_memory_is_an_error_of_one_line(write_files, process, tmp_path):
    write_files({"a.run": "1 Q0 d1 1 1 t\n"})
    os.mkfifo(tmp_path / "pipe")

    def endless():
        with suppress(BrokenPipeError), (tmp_path / "pipe").open("wb", buffering=0) as file:
            while True:
                file.write(b"1 0 d1 1\n" * 100_000)

    resource = pytest.importorskip("resource")
    writer = threading.Thread(target=endless)
    writer.start()
    limit = 1_500_000_000
    result = process(
        *["score", "a.run", "--qrels", "pipe", "-m", "nDCG@10"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    writer.join(10)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(
        "vbterrier: error: not enough memory: an allocation failed; score and report read runs in chunks with --memory"
    )
    assert len(result.stderr.splitlines()) == 1
