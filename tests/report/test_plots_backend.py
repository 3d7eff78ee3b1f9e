"""Figures in notebooks: settings that a backend makes when it is loaded persist."""

import os
import subprocess
import sys

import pytest

BACKEND = """
import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

matplotlib.interactive(True)  # as the one of notebooks does, which then shows figures after each cell
"""
DRAW = """
import matplotlib
import matplotlib.pyplot
import pandas as pd
from vbterrier.report.plots import reliability

bins = pd.DataFrame({"predicted": [0.2, 0.8], "observed": [0.3, 0.7], "n": [5, 5]})
reliability(bins)
print(matplotlib.is_interactive(), matplotlib.rcParams["font.size"])
"""


def drawn(tmp_path, backend):
    (tmp_path / "shown_by_cells.py").write_text(BACKEND, encoding="utf-8")
    script = tmp_path / "draw.py"
    script.write_text(DRAW, encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": backend}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_figures_are_shown_after_the_first_one(tmp_path):
    assert drawn(tmp_path, "module://shown_by_cells") == ["True", "10.0"]


@pytest.mark.nightly
def test_a_backend_that_cannot_run_is_no_obstacle(tmp_path):
    (tmp_path / "broken.py").write_text("raise ImportError('no display')", encoding="utf-8")
    assert drawn(tmp_path, "module://broken") == ["False", "10.0"]
