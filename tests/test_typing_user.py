"""Types as a user's own module sees them: one run of mypy, strict."""

import importlib.util
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# With --strict, a comment that hides no error is an error of its own: both sides are checked in one run.
USER = '''
"""A module of somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from typing_extensions import assert_type

import vbterrier
from vbterrier.evaluate.scores import Scores
from vbterrier.report.paper import paper_table

if TYPE_CHECKING:
    from vbterrier.evaluate.comparison import Comparison


def evaluated(runs: dict[str, pd.DataFrame], qrels: pd.DataFrame) -> Comparison:
    """Scores and what they come to."""
    how = vbterrier.Inference(level=0.9, seed=1)
    scores = vbterrier.score(runs, qrels, ["BNDCG@10", vbterrier.BNDCG @ 10], inference=how)
    assert_type(scores, Scores)
    assert_type(scores.means(), pd.DataFrame)
    assert_type(vbterrier.read_run("a.run"), pd.DataFrame)
    assert_type(paper_table(scores, "markdown"), str)
    stage = vbterrier.Truncate(cutoff=3)
    print(stage, vbterrier.__version__)
    return vbterrier.compare(scores, baseline="lexical")


def wrong(runs: dict[str, pd.DataFrame], qrels: pd.DataFrame) -> int:
    """What is not there or does not fit."""
    vbterrier.scroe(runs, qrels)  # type: ignore[attr-defined]
    vbterrier.score(runs, qrels, ["AP"], inference={"level": 0.9})  # type: ignore[arg-type]
    vbterrier.Inference(n_resamples="many")  # type: ignore[arg-type]
    vbterrier.Inference(sed=1)  # type: ignore[call-arg]
    vbterrier.compare(runs, qrels, ["AP"]).pears  # type: ignore[attr-defined]
    return vbterrier.read_qrels("qrels.txt")  # type: ignore[return-value]
'''


def mypy(folder, *options, cwd=ROOT, **environment):
    if importlib.util.find_spec("mypy") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("mypy is missing: pip install '.[dev]'")
    command = [sys.executable, "-m", "mypy", *options, str(folder / "user.py")]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_users_module_is_checked_against_our_types(tmp_path):
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    # From the repository and with its options, so that what mypy knows of the package already is used again.
    out = mypy(tmp_path, "--config-file", "pyproject.toml")
    assert re.search(r"Found|Success", out), out
    assert [line for line in out.splitlines() if "user.py:" in line] == []


def test_an_installed_package_is_known_to_have_types(tmp_path):
    """Without the mark py.typed, mypy refuses to look at a package that is not in the way of its sources."""
    (tmp_path / "user.py").write_text("import vbterrier\n", encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-vbterrier.*]\nfollow_imports = skip\n", encoding="utf-8")
    package = tmp_path / "site-packages" / "vbterrier"
    package.mkdir(parents=True)
    for name in ("__init__.py", "py.typed"):
        (package / name).write_bytes((ROOT / "vbterrier" / name).read_bytes())

    # A Python without packages: the package itself, which this one may have installed, is found nowhere else.
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"

    def checked():
        options = ("--config-file", "mypy.ini", "--python-executable", str(python))
        return mypy(tmp_path, *options, cwd=tmp_path, PYTHONPATH=str(package.parent))

    assert "Success" in checked()
    (package / "py.typed").unlink()
    assert "py.typed marker" in checked()
