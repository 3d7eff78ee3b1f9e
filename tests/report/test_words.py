"""All words of the command line and the report, as ``tests/golden/make_words.py`` keeps them."""

import json
import runpy
from pathlib import Path

import pytest
from rich.cells import cell_len

from vbterrier.unjudged import fitted

GOLDEN = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "make_words.py"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("words")
    GOLDEN["files"](made)
    return made


@pytest.fixture(scope="module")
def kept():
    return json.loads(GOLDEN["FILE"].read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", GOLDEN["COMMANDS"])
def test_each_command_says_what_it_said(command, kept, folder, monkeypatch):
    monkeypatch.chdir(folder)
    # Other tests of this process register models.
    monkeypatch.setattr(fitted, "_MODELS", {})
    assert GOLDEN["output_of"](command) == kept[command]


def test_no_line_of_a_terminal_is_longer_than_its_columns(kept):
    styles = ("latex", "markdown", "junit", "json", "csv")
    shown = {
        command: lines for command, lines in kept.items() if not command.endswith(tuple(f"-f {s}" for s in styles))
    }
    # Errors and warnings are one line each, and so are commands to run, which would not run if they were folded. Pages
    # have no columns.
    outputs = {
        command: [line for line in lines if not line.startswith(("vbterrier: ", "Next: vbterrier "))]
        for command, lines in shown.items()
        if not command.startswith("report")
    }
    columns = {command: 200 if command.endswith(GOLDEN["WIDE"]) else 80 for command in outputs}
    assert {
        command: line for command, lines in outputs.items() for line in lines if cell_len(line) > columns[command]
    } == {}
    narrow = {command: lines for command, lines in outputs.items() if columns[command] == 80}
    assert sum(line.strip().startswith("───") for lines in narrow.values() for line in lines) == 60


def test_a_wide_terminal_hides_no_column_and_shows_each_table_once(kept):
    wide = {command: lines for command, lines in kept.items() if command.endswith(GOLDEN["WIDE"])}
    assert len(wide) > 12
    for command, lines in wide.items():
        assert [line for line in lines if "not shown" in line or "hidden" in line.lower()] == [], command
        heads = [lines[place - 1] for place, line in enumerate(lines) if line.strip().startswith("───")]
        assert len(set(heads)) == len(heads), command


def test_every_command_of_a_table_is_here(kept):
    assert list(kept) == GOLDEN["COMMANDS"]
    commands = {command.split()[0] for command in kept}
    tables = {"agreement", "annotate", "audit", "compare", "coverage", "doctor", "gate", "judge", "link", "powered"}
    assert tables | {"demo", "queries", "rank", "report", "score", "track"} <= commands
    codes = [int(lines[0]) for lines in kept.values()]
    assert {0, 1, 2, 3} == set(codes)
