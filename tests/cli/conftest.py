"""What tests of the command line share."""

import subprocess
import sys

import pytest


@pytest.fixture
def write_files(tmp_path, monkeypatch):
    """Write texts to files of the working folder, by their names."""
    monkeypatch.chdir(tmp_path)

    def write(texts):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.fixture
def refused(command):
    """Run a command that fails: this exit code, no output, one line on standard error with these words."""

    def run(arguments, code, words="", *, warns=False):
        left, out, err = command(*arguments)
        *before, last = err.splitlines()
        assert (left, out) == (code, "")
        assert warns or before == []
        assert all(line.startswith("vbterrier: warning: ") for line in before)
        assert last.startswith("vbterrier: error: ")
        assert words in last

    return run


@pytest.fixture
def process():
    """Run the command line in a separate process."""

    def run(*arguments, **options):
        options_of_process = {"stdout": subprocess.PIPE, "text": True, "encoding": "utf-8", **options}
        argv = [sys.executable, "-m", "vbterrier", *map(str, arguments)]
        return subprocess.run(argv, check=False, stderr=subprocess.PIPE, **options_of_process)

    return run
