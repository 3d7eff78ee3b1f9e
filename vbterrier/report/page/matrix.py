"""The matrix of systems and measures: means, intervals, and marks of significance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.errors import printable
from vbterrier.report.captions import better
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.content import between, drawing, number
from vbterrier.report.page.evaluated import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from vbterrier.report.page.evaluated import ReportNumbers


_RATIO = "ratio of means"
_ABOUT = {"topics": "other topics from the same population", "unjudged": "the unjudged documents of these topics"}
HIGHER, LOWER = "▲", "▼"


class Cell(NamedTuple):
    """A mean, True if it is the best of its measure, a mark and its meaning, intervals and their drawing."""

    mean: str
    best: bool
    mark: str
    meaning: str
    intervals: list[str]
    bar: str


class SystemRow(NamedTuple):
    """A system: its name, the reason why its numbers may mislead, cells, and numbers of topics and empty topics."""

    name: str
    flag: str
    cells: list[Cell]
    topics: int
    missing: int


class Matrix(NamedTuple):
    """Columns (a measure, and what is special about it), rows with the best system first, and notes."""

    columns: list[tuple[str, str]]
    rows: list[SystemRow]
    notes: list[str]

    @property
    def shows_topics(self) -> bool:
        """True if the numbers of topics differ or topics are empty."""
        return len({row.topics for row in self.rows}) > 1 or any(row.missing for row in self.rows)


def matrix(found: ReportNumbers) -> Matrix:
    """The means of all systems by all measures."""
    frame = found.scores.intervals.astype({"name": str})
    measures = list(dict.fromkeys(frame["measure"]))
    first = found.compared[0] if found.compared else measures[0]
    values = frame[frame["measure"] == first].drop_duplicates("name")
    names = list(values.sort_values("value", ascending=better(first) == "lower", kind="stable")["name"])
    names += [name for name in found.names if name not in names]
    columns = {measure: _cells(found, frame[frame["measure"] == measure], measure) for measure in measures}
    nothing = Cell("–", best=False, mark="", meaning="", intervals=[], bar="")
    counts = frame.groupby("name")["n_qids"].max().to_dict()
    missing = dict(rows_of(found.scores.missing.astype({"name": str}), "name", "n_missing"))
    flags: dict[str, str] = {}
    if found.comparison is not None:
        marked = found.comparison.flags[found.comparison.flags["flag"] != ""]
        flags = {str(name): flag for name, flag in rows_of(marked, "name", "flag")}
    rows = [
        SystemRow(
            printable(name),
            flags.get(name, ""),
            [columns[measure].get(name, nothing) for measure in measures],
            counts.get(name, 0),
            missing.get(name, 0),
        )
        for name in names
    ]
    return Matrix(list(_heads(frame, measures)), rows, list(_notes(found, frame, flags)))


def _cells(found: ReportNumbers, frame: pd.DataFrame, measure: str) -> dict[str, Cell]:
    """The cells of a measure by system."""
    # Infinite ratios cannot be drawn.
    numbers = frame[["value", "low", "high"]].replace([np.inf, -np.inf], np.nan)
    scale = float(numbers.min().min()), float(numbers.max().max())
    marks = _marks(found, measure)
    direction = better(measure)
    values = frame.drop_duplicates("name").set_index("name")["value"]
    best = values.min() if direction == "lower" else values.max()
    # Measures that describe runs, as the share of unjudged documents, have no best value.
    has_best = measure in found.compared and bool((values != values.iloc[0]).any())
    cells: dict[str, Cell] = {}
    for name, rows in frame.groupby("name"):
        value = float(values[name])
        known = rows.dropna(subset="low")
        ends = rows_of(known, "low", "high", "method")
        sources = [f" {_source(method)}" if len(ends) > 1 else "" for _, _, method in ends]
        texts = [between(low, high) + source for (low, high, _), source in zip(ends, sources, strict=True)]
        is_finite = bool(ends) and np.isfinite([value, *(end for low, high, _ in ends for end in (low, high))]).all()
        bar = drawing(value, [(low, high) for low, high, _ in ends], scale) if is_finite else ""
        is_best = bool(has_best and np.isclose(value, best, rtol=0, atol=1e-12))
        cells[str(name)] = Cell(number(value), is_best, *marks.get(str(name), ("", "")), texts, bar)
    return cells


def _marks(found: ReportNumbers, measure: str) -> dict[str, tuple[str, str]]:
    """Letters, or signs of significant differences from the baseline, with their meaning."""
    if found.comparison is None or measure not in found.compared:
        return {}
    if found.comparison.baseline is None:
        systems = found.comparison.systems[found.comparison.systems["measure"] == measure]
        return {str(name): (letters, "") for name, letters in rows_of(systems, "name", "letters")}
    pairs = found.comparison.pairs[found.comparison.significant() & (found.comparison.pairs["measure"] == measure)]
    base = printable(found.comparison.baseline)
    return {
        str(name): (HIGHER, f"significantly higher than {base}")
        if diff > 0
        else (LOWER, f"significantly lower than {base}")
        for name, diff in rows_of(pairs, "name_a", "diff")
    }


def _heads(frame: pd.DataFrame, measures: list[str]) -> Iterator[tuple[str, str]]:
    for measure in measures:
        methods = frame.loc[frame["measure"] == measure, "method"].astype(str)
        notes = [_RATIO] * bool(methods.str.endswith(_RATIO).any()) + ["lower is better"] * (better(measure) == "lower")
        yield measure, ", ".join(notes)


def _source(method: Any) -> str:
    """Source of the uncertainty of an interval: topics or unjudged documents."""
    return str(method).partition(" (")[0]


def _notes(found: ReportNumbers, frame: pd.DataFrame, flags: dict[str, str]) -> Iterator[str]:
    level = f"{100 * float(frame['level'].iloc[0]):g}%"
    for method, rows in frame[frame["method"] != "none"].groupby("method", sort=False):
        one = rows.iloc[0]
        drawn = f" ({one['n_resamples']:,} resamples, seed {one['seed']})" if one["n_resamples"] else ""
        yield f"{level} intervals over {method} are about {_ABOUT.get(_source(method), 'these topics')}{drawn}."
    if len(found.names) > 1:
        yield "The best mean of a measure is bold."
    if found.comparison is not None:
        base = found.comparison.baseline
        yield (
            "Systems that share a letter do not differ significantly."
            if base is None
            else f"{HIGHER} and {LOWER}: significantly higher and lower than {printable(base)}."
        )
    # Tooltips are not visible in print and on phones.
    for name, flag in flags.items():
        yield f"{FLAGGED} {printable(name)} {flag}: its numbers may not reflect its quality."
