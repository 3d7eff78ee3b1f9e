"""Edge cases of the command line: usage, encodings, closed pipes, folders with blanks."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "q1 Q0 d1 1 3 t\nq1 Q0 d9 2 2 t\n"
QRELS = "q1 0 d1 2\nq1 0 d2 1\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.run": RUN, "b.run": RUN, "qrels.txt": QRELS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_same_warning_is_shown_once(command, files):
    (files / "subtopics.txt").write_text("q1 1 d1 1\nq1 2 d1 0\nq2 1 d1 1\n")
    for name in ("a.run", "b.run"):
        (files / name).write_text(RUN + "q2 Q0 d7 1 3 t\n")
    _, _, err = command("score", "a.run", "b.run", "-q", "subtopics.txt", "-m", "nDCG@10", "-m", "ES@10")
    assert len(err.splitlines()) == 1
    assert "the last one would win" in err


def test_the_doctor_refuses_two_runs_of_one_name(command, files):
    (files / "x").mkdir()
    (files / "x" / "a.run").write_text(RUN)
    code, out, err = command("doctor", "a.run", "x/a.run", "-q", "qrels.txt")
    assert (code, out) == (1, "")
    assert "two systems are called 'a'" in err


@pytest.mark.parametrize("measure", ["RBP@10", "alpha_nDCG@50", "nDCG@True", "BNDCG@100000000000000000000"])
def test_what_no_engine_can_do_is_one_line_and_exit_code_2(command, files, measure):
    code, out, err = command("score", "a.run", "-q", "qrels.txt", "-m", measure)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    "arguments", [["scor"], ["score"], ["doctor", "a.run"], ["score", "a.run", "--nonsense"]], ids=" ".join
)
def test_a_command_line_that_cannot_be_parsed_is_one_line(command, files, arguments):
    code, out, err = command(*arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("vbterrier: error: ")


def test_a_folder_for_the_demo_that_cannot_be_made_is_one_line(command, files):
    code, _, err = command("demo", "--save", "a.run/sub")
    assert (code, len(err.splitlines())) == (1, 1)


LONG = "n" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", LONG, "-q", "qrels.txt", "-m", "AP", "--memory", "64 MiB"],
        ["score", "a.run", "-q", "qrels.txt", "-m", "ES@5", "--intents", LONG],
        ["score", "a.run", "--intents", "qrels.txt", "-m", "ES@5", "--tags", LONG],
        ["score", "a.run", "-q", "qrels.txt", "-m", "AP", "--resume", LONG],
        ["score", "a.run", "-q", "qrels.txt", "-m", "AP", "-o", f"{LONG}.csv"],
        ["judge", "a.run", "-q", "qrels.txt", "-n", "1", "-o", LONG],
        ["demo", "--save", LONG],
        ["score", "a**.run", "-q", "qrels.txt", "-m", "AP", "--memory", "64 MiB"],
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[-1]}"[:20],
)
def test_a_name_that_no_file_can_have_is_one_line(command, files, arguments):
    code, out, err = command(*arguments)
    errors = [line for line in err.splitlines() if line.startswith("vbterrier: error: ")]
    assert (code, out, len(errors)) == (1, "", 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads a file that fails")
@pytest.mark.parametrize("more", [[], ["--memory", "64 MiB"]], ids=["whole", "chunks"])
def test_a_file_that_fails_while_it_is_read_is_one_line(command, files, more):
    code, out, err = command("score", "/proc/self/mem", "-q", "qrels.txt", "-m", "AP", *more)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert "/proc/self/mem: cannot be read (" in err


def test_commands_that_the_demo_names_run_in_folders_with_blanks(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = command("demo", "--save", "my demo")
    for line in out.splitlines():
        if line.strip().startswith("vbterrier "):
            assert command(*shlex.split(line)[1:])[0] == 0


def test_a_reader_that_went_away_is_no_bad_input(files):
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", "vbterrier", "doctor", "a.run", "-q", "qrels.txt"]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="writes to a device that is full")
@pytest.mark.parametrize("arguments", [["doctor"], ["score", "-m", "AP"], ["judge", "-n", "1"]], ids=" ".join)
def test_a_full_disk_behind_the_screen_is_one_line(files, arguments):
    argv = [sys.executable, "-m", "vbterrier", *arguments, "a.run", "-q", "qrels.txt"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert (done.returncode, errors) == (
        1,
        ["vbterrier: error: standard output: cannot be written: No space left on device"],
    )


@pytest.mark.parametrize("memory", ["1000 TiB", "99999999999999999999 TiB"])
def test_more_memory_than_there_is_may_be_allowed(command, files, memory):
    code, out, _ = command("score", "a.run", "-q", "qrels.txt", "-m", "AP", "--memory", memory, "-f", "csv")
    assert (code, out) == (0, command("score", "a.run", "-q", "qrels.txt", "-m", "AP", "-f", "csv")[1])


def test_a_terminal_without_unicode_gets_text_and_no_traceback(files):
    arguments = [sys.executable, "-m", "vbterrier", "doctor", "a.run", "-q", "qrels.txt"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(arguments, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
