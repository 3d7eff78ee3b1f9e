"""Messages of the library on the command line: parameters are named as options."""

import subprocess
import sys

import pytest
import typer

from vbterrier.cli import app
from vbterrier.cli.options import in_options

RUN = "q1 Q0 d1 1 2.0 tag\nq2 Q0 d1 1 2.0 tag\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "b.run").write_text(RUN.splitlines()[0] + "\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    return tmp_path


MESSAGES = {
    "memory='little': wanted a number": "--memory='little': wanted a number",
    "which memory= is there to avoid; leave out memory= and resume=": (
        "which --memory is there to avoid; leave out --memory and --resume"
    ),
    "n_jobs=2 and client=: wanted one": "--jobs=2 and --dask: wanted one",
    "ask for on_topics='common' (only those)": "ask for --topics='common' (only those)",
    "BAP(seed=1,topics='x'): give prior='pool', or max_bytes=None": (
        "BAP(seed=1,topics='x'): give prior='pool', or max_bytes=None"
    ),
    "run 'memory=a': topic 'x'": "run 'memory=a': topic 'x'",
}


@pytest.mark.parametrize(("said", "wanted"), MESSAGES.items())
def test_parameters_are_named_as_options(said, wanted):
    assert in_options(said, typer.main.get_command(app), ["score", "a.run", "--topics", "all"]) == wanted


def test_options_are_those_of_the_command_that_was_called():
    command = typer.main.get_command(app)
    assert in_options("n_jobs=2", command, ["doctor", "a.run"]) == "n_jobs=2"
    assert in_options("seed=-1:", command, ["queries", "sample", "--seed", "-1"]) == "--seed=-1:"
    assert in_options("seed=-1:", command, ["nonsense"]) == "seed=-1:"
    assert in_options("seed=-1:", command, []) == "seed=-1:"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--memory", "1"], "--memory='1': wanted a number of bytes"),
        (["--jobs", "0"], "--jobs=0: wanted a whole number"),
        (["--topics", "some"], "--topics='some': wanted one of"),
        ([], "ask for --topics='common' (only those that all runs have) or --topics='all'"),
    ],
)
def test_errors_name_options(files, command, more, words):
    code, _, err = command("score", files / "a.run", files / "b.run", "-q", files / "qrels", "-m", "nDCG@10", *more)
    assert code in {1, 2}
    assert words in err


def test_the_package_is_a_command():
    done = subprocess.run([sys.executable, "-m", "vbterrier", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("vbterrier ")
