"""Tables of means and of pairs for the page: text, right-aligned numbers, small bars of intervals."""

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
    """The ends of an interval as text, and its drawing."""

    text: str
    bar: Markup


class Table(NamedTuple):
    """Rows with a caption, and notes on methods, a sentence each."""

    measure: str
    caption: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()


def means(found: ReportNumbers) -> list[Table]:
    """A table for each measure: highest mean first, intervals, and letters if all pairs were compared."""
    return [_means(found, measure) for measure in dict.fromkeys(found.scores.intervals["measure"])]


def _means(found: ReportNumbers, measure: str) -> Table:
    every = found.scores.intervals
    frame = every[every["measure"] == measure].astype({"name": str})
    methods = [str(method) for method in frame["method"].unique() if method != "none"]
    first = frame.drop_duplicates("name").sort_values("value", ascending=False, kind="stable")
    scale = frame[["value", "low", "high"]].min().min(), frame[["value", "low", "high"]].max().max()
    ends = {(row["name"], row["method"]): row for row in frame.to_dict("records")}
    letters: dict[str, str] = {}
    flags: dict[str, str] = {}
    if found.comparison is not None:
        marked = found.comparison.flags
        marked = marked[(marked["measure"] == measure) & (marked["flag"] != "")]
        flags = dict(zip(marked["name"].astype(str), marked["flag"], strict=True))
    if found.comparison is not None and found.comparison.baseline is None:
        systems = found.comparison.systems
        systems = systems[systems["measure"] == measure]
        letters = dict(zip(systems["name"].astype(str), systems["letters"], strict=True))
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
    lower = ", lower is better" * (better(measure) == "lower")
    caption = f"Mean {measure}{lower}" if methods else f"{measure}{lower}"
    if any(method.endswith(_RATIO) for method in methods):
        caption = f"{measure}, {_RATIO}"
    return Table(measure, caption, columns, rows, tuple(_notes(frame, methods, letters, flags)))


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.{_DIGITS}f}".replace("-", "−")


def _interval(
    row: Any, least: float, most: float, *, rule: float | None = None, of: str = "value"
) -> IntervalCell | None:
    if row is None or pd.isna(row["low"]):
        return None
    # Safe: the markup contains only numbers.
    bar = Markup(interval_bar(row[of], row["low"], row["high"], least, most, rule=rule))  # noqa: S704
    return IntervalCell(f"{_number(row['low'])} to {_number(row['high'])}", bar)


def _source(method: str) -> str:
    """Source of the uncertainty of an interval: topics or unjudged documents."""
    return method.partition(" (")[0]


def _notes(frame: pd.DataFrame, methods: list[str], letters: dict[str, str], flags: dict[str, str]) -> Iterator[str]:
    for method in methods:
        one = frame[frame["method"] == method].iloc[0]
        drawn = f" ({one['n_resamples']:,} resamples, seed {one['seed']})" if one["n_resamples"] else ""
        about = {
            "topics": "other topics from the same population",
            "unjudged": "the unjudged documents of these topics",
        }
        yield f"Intervals over {method} are about {about.get(_source(method), 'these topics')}{drawn}."
    if letters:
        yield "Systems that share a letter do not differ significantly."
    # Tooltips are not visible in print and on phones.
    for name, flag in flags.items():
        yield f"{FLAGGED} {printable(name)} {flag}: its numbers may not reflect its quality."


def notes(tables: list[Table]) -> str:
    """Notes of some tables without repetitions."""
    return " ".join(dict.fromkeys(note for table in tables for note in table.notes))


def pairs(found: ReportNumbers) -> list[Table]:
    """A table for each measure by which systems are compared."""
    if found.comparison is None:
        return []
    return [_pairs(found.comparison, measure) for measure in found.compared]


def _pairs(comparison: Comparison, measure: str) -> Table:
    of_measure = comparison.pairs["measure"] == measure
    frame = comparison.pairs[of_measure].assign(significant=comparison.significant()[of_measure])
    numbers = frame[["diff", "low", "high"]]
    scale = min(numbers.min().min(), 0.0), max(numbers.max().max(), 0.0)
    rows = [
        {
            "a": printable(row["name_a"]),
            "b": printable(row["name_b"]),
            "diff": _number(row["diff"]),
            "interval": _interval(row, *scale, rule=0.0, of="diff"),
            "p": "" if pd.isna(p := row["p_adjusted"]) else f"{p:.4f}" if p >= _LEAST else f"< {_LEAST:g}",
            "significant": bool(row["significant"]),
            "effect": "" if pd.isna(row["effect_size"]) else f"{row['effect_size']:.2f}".replace("-", "−"),
            "won": f"{row['wins']}/{row['losses']}/{row['ties']}",
            "flag": row["flag"],
        }
        for row in frame.to_dict("records")
    ]
    one = frame.iloc[0]
    significant = int(frame["significant"].sum())
    caption = f"Differences of {measure}: {significant} of {len(frame)} significant"
    drawn = f", {one['n_resamples']:,} resamples, seed {one['seed']}" if one["n_resamples"] else ""
    tested = f"{one['n_qids']} topics; {one['test']}, {one['correction']}"
    notes = (
        f"{tested}; intervals, not corrected: {one['method']}{drawn}.",
        "Effect: the mean difference divided by its standard deviation over topics.",
        "Won/lost/tied: numbers of topics from the point of view of a.",
    )
    return Table(measure, caption, (f"{100 * one['level']:g}% interval",), rows, notes)
