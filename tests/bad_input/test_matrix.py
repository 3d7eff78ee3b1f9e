"""The page of bad inputs says what running them gives, and none of it is a crash."""

import importlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def matrix():
    # Its own import of the inputs is that of a script.
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(HERE))
        yield importlib.import_module("matrix")
    for name in ("matrix", "inputs"):
        sys.modules.pop(name, None)


@pytest.mark.nightly
def test_what_bad_inputs_come_to_is_what_the_page_says_and_no_crash(matrix):
    result = matrix.page()
    assert matrix.CRASH not in result
    kept = matrix.PAGE.read_text(encoding="utf-8")
    assert result.splitlines() == kept.splitlines(), "run `python tests/bad_input/matrix.py` and look at what changed"
