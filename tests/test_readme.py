"""The README as its reader runs it: every example prints what is shown below it."""

import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from vbterrier.demo import copy_demo
from vbterrier.errors import DegenerateWarning

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```(python|sh)\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def demo(tmp_path, monkeypatch):
    copy_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)


def words(text):
    return [line.split() for line in text.splitlines()]


def test_every_example_shows_its_output():
    assert len(EXAMPLES) == README.count("```python") + README.count("```sh") == 5


@pytest.mark.parametrize(("language", "code", "shown"), EXAMPLES, ids=[code.split()[-1] for _, code, _ in EXAMPLES])
def test_an_example_prints_what_is_shown(demo, capfd, language, code, shown):
    if language == "python":
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", DegenerateWarning)
            exec(compile(code, "README.md", "exec"), {})
        # The README says of what the first example warns.
        assert ["ENDCG@10 is 0.738" in str(warning.message) for warning in heard] == [True] * ("ENDCG@10" in code)
    else:
        for line in code.splitlines():
            subprocess.run([sys.executable, "-m", *shlex.split(line)], check=True)
    printed = capfd.readouterr()
    assert [line for line in words(shown) if line not in words(printed.out)] == []
    assert printed.err == ""


def test_the_two_commands_stand_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:24])
    assert "pip install '.[demo]' && vbterrier demo" in first_screen
    assert "pip install '.[test]' && pytest" in first_screen


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    root = Path(__file__).resolve().parents[1]
    assert [link for link in links if not (root / link).exists()] == []
