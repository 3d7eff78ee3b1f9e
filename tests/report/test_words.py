"""All words of the command line and the report, as ``tests/golden/make_words.py`` keeps them."""

import json
import runpy
from pathlib import Path

import pytest

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
    assert GOLDEN["said"](command) == kept[command]


def test_every_command_of_a_table_is_here(kept):
    assert list(kept) == GOLDEN["COMMANDS"]
    said = {command.split()[0] for command in kept}
    assert {"demo", "doctor", "score", "compare", "rank", "track", "gate", "judge", "audit", "link", "report"} <= said
    codes = [int(lines[0]) for lines in kept.values()]
    assert {0, 1, 2, 3} == set(codes)
