"""What tests of every part share."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from vbterrier import cli


@pytest.fixture(scope="session")
def shared_data():
    """The folder of data sets next to the repository: may be missing on a laptop, never in CI."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{folder} is missing: tests on real data need it")
    return folder


@pytest.fixture(scope="session")
def strategies():
    """Hypothesis strategies for whole frames: ``data.draw(strategies.runs(...))``."""
    spec = importlib.util.spec_from_file_location("strategies_of_tests", Path(__file__).with_name("strategies.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def command(capsys, monkeypatch):
    """Run the command line in this process: exit code, output, errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["vbterrier", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return run


def pytest_make_parametrize_id(val):
    """Names of tests hold no packed bytes, which hold the second in which they were packed: processes must agree."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None
