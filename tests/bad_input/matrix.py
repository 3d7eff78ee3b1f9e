"""The results of bad inputs by each interface, as a page: ``python tests/bad_input/matrix.py`` writes it."""

import contextlib
import io
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from unittest.mock import patch

# As a script, it does not get the path of the tests.
sys.path.append(str(Path(__file__).resolve().parents[1] / "helpers"))

import pandas as pd
import pyterrier as pt
from inputs import inputs

import vbterrier
from vbterrier import cli
from vbterrier.errors import DegenerateWarning, VBTerrierError
from vbterrier.settings import Data, Inference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "developers" / "input-validation.md"
HEAD = """# Input validation

The effect of damaged or unusual input: on `vbterrier.score` (or on the reader, knowledge base or set of the row), on
`pt.Experiment` with the frames that the readers return, and on the command line, with frames written to files. A number
is the mean score, of which 0.8155 is the correct one unless the row changes it. `⚠` marks a warning, and `1:` or `2:`
the exit code of the command line, with its error message. Messages are shortened, and text in brackets is left out.
*Same* is the result of the column on its left.

`pt.Experiment` computes nDCG and alpha_nDCG with ir_measures: if rows are not sorted, alpha_nDCG is .5000 there, and
.8155 by `score`, which sorts them. PyTerrier converts integer ids to text before it calls measures, which can then only
warn.

`python tests/bad_input/matrix.py` writes this page, and a nightly test compares it with the results.

| input | library | pt.Experiment | command line |
|:---|:---|:---|:---|
"""
SHOWN, CRASH, SAME = 130, "CRASH", "*same*"
OTHERS = {"pyterrier": "PyTerrier's own", "ir_measures": "ir_measures' own"}


def by_library(case):
    if case.ask is not None:
        return case.ask(case.folder)
    files = {name: case.file(name) for name in ("intents", "tags") if case.data[name] is not None}
    runs = {"mine": case.file("run")}
    settings = {"data": Data(on_topics="all", **case.how), "inference": Inference(n_resamples=2)}
    return score_of(vbterrier.score(runs, case.file("qrels"), case.measures, **files, **settings))


def by_experiment(case):
    if case.experiment is not None:
        return case.experiment(case.folder)
    topics = pd.DataFrame({"qid": case.topics, "query": ["one", "two"]})
    options = {}
    for name in ("intents", "tags"):
        if case.data[name] is not None:
            getattr(vbterrier, f"register_{name}")(f"matrix-{name}", case.frame(name), replace=True)
            options[name] = f"matrix-{name}"
    measures = [measure(**options) if options else measure for measure in vbterrier.measures_from(*case.measures)]
    run, qrels = case.pipeline(case.folder) if case.pipeline else case.frame("run"), case.frame("qrels")
    table = pt.Experiment([run], topics, qrels, measures, names=["mine"])
    values = [float(table[str(measure)].item()) for measure in measures]
    return shown_of(values)


def by_command(case):
    if case.is_of_python:
        return "not possible"
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
    lines = err.getvalue().splitlines()
    if code:
        # Warnings may come before.
        return f"{code}: {lines[-1].removeprefix('vbterrier: error: ')}"
    told = [f"⚠ {line.removeprefix('vbterrier: warning: ')}" for line in lines[:1]]
    text = out.getvalue()
    if not text.startswith("name,measure,value"):
        return " ".join([text.splitlines()[0], *told])
    rows = pd.read_csv(io.StringIO(text)).query("method.str.startswith('topics')")
    values = rows.drop_duplicates(["measure", "value"])["value"].tolist()
    return " ".join([", ".join(f"{value:.4f}" for value in values), *told])


def score_of(scores):
    return shown_of(scores.means().iloc[0].tolist())


def shown_of(values):
    """One number, or several."""
    return float(values[0]) if len(values) == 1 else ", ".join(f"{value:.4f}" for value in values)


def outcome(way, case):
    """The result of an interface, as a cell of the table."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DegenerateWarning)
        try:
            result = way(case)
        except VBTerrierError as error:
            return plain(f"{type(error).__name__}: {error}", case.folder)
        except Exception as error:  # noqa: BLE001 - the table shows what should not be
            *_, last = traceback.walk_tb(error.__traceback__)
            whose = OTHERS.get(last[0].f_globals["__name__"].split(".")[0], CRASH)
            return plain(f"{whose} {type(error).__name__}: {error}", case.folder)
    told = [f"⚠ {item.message}" for item in warned[:1]]
    shown = f"{result:.4f}" if isinstance(result, float) else str(result)
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
    """Yield the cells of each row: the input, and its result by each interface."""
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
    return HEAD + "".join(line(row) for row in rows())


def line(row):
    """A line of the table, in which a cell that equals the one on its left is short."""
    title, library, experiment, command = row
    second = SAME if experiment == library else experiment
    return f"| {title} | {library} | {second} | {SAME if command == experiment else command} |\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
