"""The command line after a signal, without memory, and where the system refuses: one line, and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import vbterrier
from vbterrier import cli

INTERRUPT = """
import os, signal, sys
def interrupt(event, given):
    if event == "import" and given[0] in ("typer", "pandas"):
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["module", "script", "library"])
def test_an_interrupt_during_the_import_is_no_traceback_of_the_command(tmp_path, how):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT)
    (tmp_path / "vbterrier").write_text("from vbterrier.cli import main\nmain()\n")
    (tmp_path / "mine.py").write_text("import vbterrier\n")
    root = str(Path(vbterrier.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    scripts = {"script": [str(tmp_path / "vbterrier")], "library": [str(tmp_path / "mine.py")]}
    command = [sys.executable, *scripts.get(how, ["-m", "vbterrier"]), "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -2
    # Scripts of users have Python's own exception.
    assert ("KeyboardInterrupt" in done.stderr) == (how == "library")
    if how != "library":
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("Unable to allocate 745. GiB for an array"), "not enough memory: Unable to allocate 745. GiB"),
        (MemoryError(), "not enough memory: an allocation failed; score and report read runs in chunks with --memory="),
        (OSError(36, "File name too long", "x" * 9), "xxxxxxxxx: File name too long"),
    ],
)
def test_faults_of_the_system_are_one_line(command, demo_files, monkeypatch, error, message):
    def failing(*_, **__):
        raise error

    monkeypatch.chdir(demo_files)
    monkeypatch.setattr("vbterrier.evaluate.scores.score", failing)
    monkeypatch.setattr("vbterrier.score", failing, raising=False)
    code, out, err = command("score", "dense.run", "-q", "qrels.txt", "-m", "nDCG@10")
    assert (code, out) == (1, "")
    assert err.startswith(f"vbterrier: error: {message}")
    assert err.count("\n") == 1


def test_signals_have_their_handlers_back_after_a_command(command):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    command("--version")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert cli.main.__name__ == "main"
