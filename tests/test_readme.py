"""The README as its reader runs it: every example, on the demo's files."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from vbterrier.demo import copy_demo

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def demo(tmp_path, monkeypatch):
    copy_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)


def test_the_readme_has_the_examples_that_are_run_here():
    assert len(PYTHON) == README.count("```python") == 10
    assert len(COMMANDS) == 15


@pytest.mark.parametrize("code", PYTHON)
def test_python_example_runs_and_prints(demo, code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert re.search(r"\d\.\d", capsys.readouterr().out)


def test_what_the_text_says_of_an_example_is_what_that_prints(demo, capsys):
    (code,) = (code for code in PYTHON if "thin_pool" in code)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    (rmse, held) = re.search(r"an RMSE of (.*), and nominal .* hold (\d+) %", README).groups()
    assert [f"{float(number):.3f}" for number in re.findall(r"\.\d+", rmse)] == [
        f"{float(line.split()[-1]):.3f}" for line in printed.splitlines()[1:4]
    ]
    assert round(100 * float(printed.splitlines()[-1].split()[-1])) == int(held)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs_and_prints(demo, command):
    words = shlex.split(command)
    assert words[0] == "vbterrier"
    for code in PYTHON:
        # Some commands read what an example above them wrote.
        made = [word for word in words if Path(word).suffix in {".run", ".parquet", ".csv"} and "/" not in word]
        if any(f'"{word}"' in code for word in made):
            exec(compile(code, "README.md", "exec"), {})
    done = subprocess.run([sys.executable, "-m", "vbterrier", *words[1:]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\d\.\d", done.stdout)


def test_the_two_commands_stand_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:24])
    assert "pip install '.[demo]' && vbterrier demo" in first_screen
    assert "pip install '.[test]' && pytest" in first_screen
