"""The documentation as its reader runs it: every example of every page in order, and what is shown under it."""

import contextlib
import doctest
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from vbterrier.cli import app
from vbterrier.demo import copy_demo

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("docs/reference/api/", "docs/reference/commands/", "docs/_build/")
PAGES = sorted(
    page
    for pattern in ("docs/**/*.md", "docs/**/*.rst", "vbterrier/pt_docs/*.rst")
    for page in ROOT.glob(pattern)
    if not page.relative_to(ROOT).as_posix().startswith(GENERATED)
)
RUN = ("python", "sh")
# What is shown but not run.
SHOWN = ("console", "bash")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(r"^\.\. code-block:: (\w+)\n(?: +:.*\n)*\n((?:(?: {3,}.*)?\n)+)", re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Block:
    """A block of code: its language, its text, and the output shown under it."""

    language: str
    code: str
    output: str = ""


def blocks(page):
    """The blocks of a page."""
    text = page.read_text(encoding="utf-8")
    results = []
    for language, code in (_FENCE if page.suffix == ".md" else _DIRECTIVE).findall(text):
        if language == "text":
            results[-1].output += code
        else:
            results.append(Block(language, code if page.suffix == ".md" else re.sub("(?m)^   ", "", code)))
    return results


def run_page(page):
    """Run a page in the folder that is current, and compare what it prints with what it shows."""
    names = {}
    for block in blocks(page):
        if block.language in SHOWN:
            continue
        printed = _printed(block, names, page.name)
        if block.output and not doctest.OutputChecker().check_output(block.output, printed, _FLAGS):
            pytest.fail(f"{page.name} shows\n{block.output}\nbut prints\n{printed}", pytrace=False)


def _printed(block, names, name):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if block.language == "python":
            exec(compile(block.code, name, "exec"), names)
        else:
            for line in block.code.replace("\\\n", " ").splitlines():
                word, *words = shlex.split(line)
                assert word == "vbterrier", line
                app(words, standalone_mode=False)
    return out.getvalue()


WITH_EXAMPLES = [page for page in PAGES if any(block.language in RUN for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    if "vbterrier demo --save demo" not in page.read_text(encoding="utf-8"):
        copy_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_no_block_is_of_a_language_that_nothing_runs():
    assert len(WITH_EXAMPLES) > 11
    assert {block.language for page in PAGES for block in blocks(page)} <= {*RUN, *SHOWN}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_files_of_the_repository_that_a_page_names_exist(page):
    named = re.findall(r"`((?:tests|notebooks|vbterrier|docs)/[\w/.-]+\.\w+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("suffix", [".md", ".rst"])
def test_output_that_is_not_what_is_printed_is_told(suffix, tmp_path):
    page = tmp_path / f"page{suffix}"
    parts = ("```python\n", "```\n\n```text\n", "```\n")
    if suffix == ".rst":
        parts = (".. code-block:: python\n   :caption: A sum\n\n   ", "\n.. code-block:: text\n\n   ", "\n")
    page.write_text("{}print(1 + 1)\n{}2\n{}".format(*parts), encoding="utf-8")
    run_page(page)
    page.write_text("{}print(1 + 1)\n{}3\n{}".format(*parts), encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="but prints\n2"):
        run_page(page)
