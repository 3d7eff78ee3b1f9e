"""The matrix of bad inputs: what each comes to, by every way in. ``python tests/bad_input/matrix.py`` writes it."""

import contextlib
import io
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pyterrier as pt
from inputs import inputs

import vbterrier
from vbterrier import cli
from vbterrier.errors import DegenerateWarning, VBTerrierError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bad-input.md"
HEAD = """# What bad input gets

Each row was run three ways: `vbterrier.score` (or the reader, knowledge base or set that the row is about), the same
through `pt.Experiment` with frames that our readers gave, and the command line, where frames were written to files
first. A number is the mean that comes out; 0.8155 is right where nothing else is said. `⚠` begins a warning, `1:` and
`2:` an exit code with the one line that the command line writes. Messages are cut, and folders and what stands in
brackets left out. `python tests/bad_input/matrix.py` writes this page; a test runs all of it and compares.

| input | library | pt.Experiment | command line |
|:---|:---|:---|:---|
"""
SHOWN, CRASH = 130, "CRASH"


def by_library(case):
    if case.ask is not None:
        return case.ask(case.folder)
    given = {name: case.file(name) for name in ("intents", "tags") if case.data[name] is not None}
    runs = {"mine": case.file("run")}
    return score_of(vbterrier.score(runs, case.file("qrels"), [case.measure], n_resamples=2, topics="all", **given))


def by_experiment(case):
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
    given = {}
    for name in ("intents", "tags"):
        if case.data[name] is not None:
            getattr(vbterrier, f"register_{name}")(f"matrix-{name}", case.frame(name), replace=True)
            given[name] = f"matrix-{name}"
    (measure,) = vbterrier.measures_from(case.measure)
    measure = measure(**given) if given else measure
    run, qrels = case.pipeline(case.folder) if case.pipeline else case.frame("run"), case.frame("qrels")
    return pt.Experiment([run], topics, qrels, [measure], names=["mine"])[str(measure)].item()


def by_command(case):
    arguments = case.arguments(case.folder) if case.arguments else case.command()
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["vbterrier", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
    said = err.getvalue().splitlines()
    if code:
        # Warnings may come before.
        return f"{code}: {said[-1].removeprefix('vbterrier: error: ')}"
    told = [f"⚠ {line.removeprefix('vbterrier: warning: ')}" for line in said[:1]]
    text = out.getvalue()
    found = re.search(r"^mine,.*", text, re.MULTILINE)
    row = pd.read_csv(io.StringIO(text)) if found else None
    return " ".join([f"{row['value'][0]:.4f}" if row is not None else text.splitlines()[0], *told])


def score_of(scores):
    return scores.means().iloc[0, 0]


def outcome(way, case):
    """What comes out, as a cell of the table."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DegenerateWarning)
        try:
            found = way(case)
        except VBTerrierError as error:
            return plain(f"{type(error).__name__}: {error}", case.folder)
        except Exception as error:  # noqa: BLE001 - the table shows what should not be
            *_, last = traceback.walk_tb(error.__traceback__)
            whose = "PyTerrier's own" if last[0].f_globals["__name__"].startswith("pyterrier") else CRASH
            return plain(f"{whose} {type(error).__name__}: {error}", case.folder)
    told = [f"⚠ {item.message}" for item in warned[:1]]
    shown = f"{found:.4f}" if isinstance(found, float) else str(found)
    return plain(" ".join([shown, *told]), case.folder)


def plain(text, folder):
    """A message without what differs from place to place and between releases of others, cut, for a table."""
    text = text.replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    text = re.sub(r"bytes of [\d,]+", "bytes of …", text)
    text = re.sub(r"\s+", " ", re.sub(r" ?\([^()]*\)", "", text))
    text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    text = text if len(text) <= SHOWN else text[:SHOWN].rstrip() + "…"
    return re.sub(r"([|<>*_\[\]`\\])", r"\\\1", text)


def rows():
    """The cells of each row: the input and what it comes to by each way."""
    for title, make in inputs():
        with tempfile.TemporaryDirectory() as folder:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateWarning)
                case = make(Path(folder))
            cells = [outcome(way, case) for way in (by_library, by_experiment, by_command)]
            if hasattr(case.held, "close"):
                case.held.close()
        yield [title, *cells]


def page():
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows())


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
