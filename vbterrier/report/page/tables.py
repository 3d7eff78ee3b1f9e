"""Tables of means and of pairs, as the page shows them: text, numbers set right, small bars of intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from vbterrier.errors import printable
from vbterrier.frames.notebook import interval_bar
from vbterrier.report.captions import better
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import ReportNumbers


_DIGITS = 4
_LEAST = 0.0001
_RATIO = "ratio of means"


class IntervalCell(NamedTuple):
    """Its ends as text, and drawn."""

    text: str
    bar: Markup


class Table(NamedTuple):
    """Rows under a caption, and what is to be said of how they came about, a sentence each."""

    measure: str
    caption: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()


def means(found: ReportNumbers) -> list[Table]:
    """A table for each measure: the highest mean first, its intervals, and letters where all pairs were compared."""
    return [_means(found, measure) for measure in dict.fromkeys(found.scores.intervals["measure"])]


def _means(found: ReportNumbers, measure: str) -> Table:
    every = found.scores.intervals
    frame = every[every["measure"] == measure].astype({"name": str})
    methods = [str(method) for method in frame["method"].unique() if method != "none"]
    first = frame.drop_duplicates("name").sort_values("value", ascending=False, kind="stable")
    scale = frame[["value", "low", "high"]].min().min(), frame[["value", "low", "high"]].max().max()
    ends = {(row["name"], row["method"]): row for row in frame.to_dict("records")}
    letters, flags = _letters(found, measure), _flags(found, measure)
    missing = dict(zip(found.scores.missing["name"].astype(str), found.scores.missing["n_missing"], strict=True))
    rows = [
        {
            "name": printable(name),
            "flag": flags.get(name, ""),
            "mean": _number(value),
            "intervals": [_interval(ends.get((name, method)), *scale) for method in methods],
            "letters": letters.get(name, ""),
            "topics": n_qids,
            "missing": missing.get(name, 0),
        }
        for name, value, n_qids in rows_of(first, "name", "value", "n_qids")
    ]
    level = f"{100 * float(frame['level'].iloc[0]):g}%"
    columns = tuple(f"{level} over {_source(method)}" for method in methods)
    return Table(measure, _caption(measure, methods), columns, rows, tuple(_notes(frame, methods, letters, flags)))


def _caption(measure: str, methods: list[str]) -> str:
    """What the figure of a collection is: not all are means over topics."""
    if any(method.endswith(_RATIO) for method in methods):
        return f"{measure}, {_RATIO}"
    lower = ", lower is better" * (better(measure) == "lower")
    return f"Mean {measure}{lower}" if methods else f"{measure}{lower}"


def _letters(found: ReportNumbers, measure: str) -> dict[str, str]:
    if found.comparison is None or found.comparison.baseline is not None:
        return {}
    systems = found.comparison.systems
    of_measure = systems[systems["measure"] == measure]
    return dict(zip(of_measure["name"].astype(str), of_measure["letters"], strict=True))


def _flags(found: ReportNumbers, measure: str) -> dict[str, str]:
    if found.comparison is None:
        return {}
    flags = found.comparison.flags
    said = flags[(flags["measure"] == measure) & (flags["flag"] != "")]
    return dict(zip(said["name"].astype(str), said["flag"], strict=True))


def _source(method: str) -> str:
    """What an interval is over: topics, or what is unjudged."""
    return method.partition(" (")[0]


def _notes(frame: pd.DataFrame, methods: list[str], letters: dict[str, str], flags: dict[str, str]) -> Iterator[str]:
    for method in methods:
        one = frame[frame["method"] == method].iloc[0]
        drawn = f" ({one['n_resamples']:,} resamples, seed {one['seed']})" if one["n_resamples"] else ""
        about = {"topics": "other topics of the kind", "unjudged": "what the unjudged documents of these topics may be"}
        yield f"Intervals over {method} are about {about.get(_source(method), 'these topics')}{drawn}."
    if letters:
        yield "Systems that share a letter are not distinguishable."
    # Neither paper nor a phone shows what a sign says when it is pointed at.
    for name, flag in flags.items():
        yield f"{FLAGGED} {printable(name)} {flag}: its numbers may say nothing about its quality."


def notes(tables: list[Table]) -> str:
    """What is to be said of some tables, each thing once."""
    return " ".join(dict.fromkeys(note for table in tables for note in table.notes))


def pairs(found: ReportNumbers) -> list[Table]:
    """A table for each measure that systems are compared by."""
    if found.comparison is None:
        return []
    return [_pairs(found.comparison, measure) for measure in found.compared]


def _pairs(comparison: Comparison, measure: str) -> Table:
    of_measure = comparison.pairs["measure"] == measure
    frame = comparison.pairs[of_measure].assign(told=comparison.significant()[of_measure])
    numbers = frame[["diff", "low", "high"]]
    scale = min(numbers.min().min(), 0.0), max(numbers.max().max(), 0.0)
    rows = [
        {
            "a": printable(row["name_a"]),
            "b": printable(row["name_b"]),
            "diff": _number(row["diff"]),
            "interval": _interval(row, *scale, rule=0.0, of="diff"),
            "p": _p(row["p_adjusted"]),
            "told": bool(row["told"]),
            "effect": "" if pd.isna(row["effect_size"]) else f"{row['effect_size']:.2f}".replace("-", "−"),
            "won": f"{row['wins']}/{row['losses']}/{row['ties']}",
            "flag": row["flag"],
        }
        for row in frame.to_dict("records")
    ]
    one = frame.iloc[0]
    told = int(frame["told"].sum())
    caption = f"Differences of {measure}: {told} of {len(frame)} distinguishable"
    return Table(measure, caption, (f"{100 * one['level']:g}% interval",), rows, tuple(_of_pairs(one)))


def _of_pairs(one: pd.Series[Any]) -> Iterator[str]:
    drawn = f", {one['n_resamples']:,} resamples, seed {one['seed']}" if one["n_resamples"] else ""
    tested = f"{one['n_qids']} topics; {one['test']}, {one['correction']}"
    yield f"{tested}; intervals, not corrected: {one['method']}{drawn}."
    yield "Effect: the mean difference over its standard deviation between topics."
    yield "Won/lost/tied: topics, as a has them."


def _interval(
    row: Any, least: float, most: float, *, rule: float | None = None, of: str = "value"
) -> IntervalCell | None:
    if row is None or pd.isna(row["low"]):
        return None
    # Only numbers are in it.
    bar = Markup(interval_bar(row[of], row["low"], row["high"], least, most, rule=rule))  # noqa: S704
    return IntervalCell(f"{_number(row['low'])} to {_number(row['high'])}", bar)


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.{_DIGITS}f}".replace("-", "−")


def _p(p: float) -> str:
    return "" if pd.isna(p) else f"{p:.4f}" if p >= _LEAST else f"< {_LEAST:g}"
