"""Notebooks as they are committed: with what they found, and nothing of the machine that ran them.

CI executes them; ``tests/helpers/claims.py`` holds the text of each against what it finds. Outputs are made by
``tests/golden/make_notebooks.py``.
"""

import ast
import contextlib
import inspect
import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from claims import CLAIMS

import vbterrier
from vbterrier.report import plots

ROOT = Path(__file__).resolve().parents[1]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Options of pandas that notebooks set.
DISPLAY = ("precision", "max_colwidth", "float_format")
# Folders of a machine, in text of cells or of outputs; pictures are text too.
OF_A_MACHINE = re.compile(r"(?<![\w.:/<])/(?:home|root|tmp|usr|var|work|opt|Users|mnt)/|[A-Z]:\\\\|0x[0-9a-f]{6,}")


def text_of(content):
    return content if isinstance(content, str) else "".join(content)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def notebook(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.fixture
def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell):
    """What a cell printed or showed, without pictures."""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield text_of(output["text"])
        for kind, content in output.get("data", {}).items():
            if not kind.startswith("image/"):
                yield text_of(content)


def test_notebooks_are_numbered_in_order_and_listed_in_the_documentation():
    assert [path.name[:2] for path in PATHS] == [f"{number}-" for number in range(1, len(PATHS) + 1)]
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"notebooks/([\w.-]+\.ipynb)", page)) == {path.name for path in PATHS}


def test_metadata_say_nothing_but_the_language(notebook):
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert [cell["id"] for cell in notebook["cells"]] == [
        f"cell-{place:02d}" for place in range(len(notebook["cells"]))
    ]
    assert all(cell["metadata"] == {} for cell in notebook["cells"])


def test_outputs_are_those_of_one_run_from_top_to_bottom(code):
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert {output["name"] for output in outputs if output["output_type"] == "stream"} <= {"stdout"}
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1


def test_nothing_tells_of_the_machine(notebook, code):
    texts = [text_of(cell["source"]) for cell in notebook["cells"]] + [text for cell in code for text in shown(cell)]
    assert [result.group() for text in texts for result in OF_A_MACHINE.finditer(text)] == []


def test_a_notebook_reads_as_an_article(notebook):
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    prose = [text_of(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    assert prose[0].startswith("# ")
    assert "You will learn\n\n- " in prose[0]
    assert "\n## What not to conclude\n" in f"\n{prose[-1]}"
    assert kinds[-1] == "markdown"
    # Checks are tests.
    assert not any("assert " in text_of(cell["source"]) for cell in notebook["cells"])
    # Two cells of code may follow each other: numbers, then their picture.
    assert "code code code" not in " ".join(kinds)


def test_cells_compile_and_use_public_names_alone(code):
    public = {"vbterrier", *(f"vbterrier.{name}" for name in ("demo", "report"))}
    # The contract of linkers and tables for papers have no shorter names.
    public |= {"vbterrier.linking.links", "vbterrier.report.paper"}
    for cell in code:
        for node in ast.walk(ast.parse(text_of(cell["source"]))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("vbterrier"):
                assert node.module in public
                assert not any(name.name.startswith("_") for name in node.names)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "vbterrier":
                    assert node.attr in vbterrier.__all__
                elif node.value.id == "plots":
                    assert node.attr in plots.__all__


# The checks before a change run it by name.
@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_its_text_says_what_it_finds(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(plt, "show", lambda: None)
    names = {}
    # Restored afterwards, since notebooks set the options of their process.
    display = [(f"display.{name}", pd.get_option(f"display.{name}")) for name in DISPLAY]
    restored = pd.option_context(*(each for pair in display for each in pair))
    with plt.rc_context(), restored, contextlib.redirect_stdout(io.StringIO()):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile(text_of(cell["source"]), path.name, "exec"), names)
    plt.close("all")
    check = CLAIMS[path.stem]
    # Sections on real collections are left out without them.
    check(**{name: names.get(name) for name in inspect.signature(check).parameters})


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_smaller_than_500_kilobytes(path):
    assert path.stat().st_size < 500_000
