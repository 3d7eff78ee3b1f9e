"""HTML tables of results, as notebooks show them, and their captions."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, printable
from vbterrier.frames.pictures import decimals, interval_end, limits, ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Figures = Mapping[str, Callable[[], dict[str, Any]]]


# Pixels of an interval bar, the margin that keeps its points whole, and pixels of an axis and of its numbers.
WIDTH, HEIGHT, _BAR_MARGIN_PIXELS = 120, 14, 4
AXIS_HEIGHT, _DIGIT, _N_TICKS = 15, 5.4, 4
# Longer cells of text are sentences.
_PROSE = 40
# Characters of a title of a reliability diagram.
_LONGEST_TITLE = 30
# Styles of all tables. Notebooks align every cell to the right by rules with the specificity of two classes.
STYLE = (
    "table.vbterrier{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.3em 0 1em}"
    # A table that is wider than its place scrolls; its caption does not.
    "div.vbterrier{overflow-x:auto}"
    "table.vbterrier caption{text-align:left;caption-side:top;padding:.3em .5em;color:inherit;max-width:90vw}"
    "table.vbterrier.vbterrier :is(th,td){padding:.2em .6em;text-align:left;vertical-align:middle;white-space:nowrap}"
    "table.vbterrier.vbterrier td.prose{white-space:normal;min-width:20em}"
    "table.vbterrier.vbterrier :is(th,td).number{text-align:right}"
    "table.vbterrier thead th{border-bottom:1px solid}"
    "table.vbterrier tbody th{font-weight:normal}"
    "table.vbterrier svg{display:block;overflow:visible}"
)


# Columns that say what is measured; others say how.
_SUBJECT_COLUMNS = ("measure", "n_qids", "n_pilot")
# Titles of columns whose names do not say what they hold.
_HEADS = {
    "name": "system",
    "name_a": "a",
    "name_b": "b",
    "diff": "a - b",
    "qid": "topic",
    "docno": "document",
    "entity_id": "entity",
    "n_qids": "topics",
    "p_value": "p",
    "p_adjusted": "adjusted p",
    "prob": "probability",
    "n": "number",
}


def column_titles(columns: Iterable[object]) -> list[str]:
    """Return the titles of columns: words instead of names of variables; two columns with one title keep their names.

    >>> column_titles(["name_a", "n_unjudged_share", "nDCG@10"])
    ['a', 'unjudged share', 'nDCG@10']
    """
    names = list(map(str, columns))
    titles = [_HEADS.get(name, _head(name)) for name in names]
    return [title if titles.count(title) == 1 else name for title, name in zip(titles, names, strict=True)]


def _head(name: str) -> str:
    # Other names, as alpha_nDCG, are those of measures.
    return name.removeprefix("n_").replace("_", " ") if re.fullmatch(r"[a-z0-9_]+", name) else name


def cell(value: object, digits: int = 4) -> str:
    """Return a value as escaped HTML text: numbers rounded, missing values empty, control characters spelled out."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    return html.escape(printable(value))


def interval_bar(
    value: float,
    low: float,
    high: float,
    least: float,
    most: float,
    *,
    rule: float | None = None,
    digits: int = 4,
    axis: bool = False,
) -> str:
    """Draw an interval as inline SVG on the scale from ``least`` to ``most``, in the colour of the surrounding text.

    With a bound of NaN only the point is drawn, with a value of NaN nothing; a dotted line at ``rule`` if it is on the
    scale; an arrow where the interval leaves the scale. ``digits`` are the decimals of the label for screen readers;
    ``axis`` draws the axis of the scale below.
    """
    value, low, high = float(value), float(low), float(high)
    if math.isnan(value):
        return ""
    has_interval = not (math.isnan(low) or math.isnan(high))
    label = cell(value, digits) + (f", {cell(low, digits)} to {cell(high, digits)}" if has_interval else "")
    middle = HEIGHT / 2
    drawn = []
    if rule is not None and least <= rule <= most:
        x = _at(rule, least, most)
        drawn.append(f'<path d="M{x} 0V{HEIGHT}" stroke-dasharray="1 2" opacity=".7"/>')
    if has_interval:
        a, b = _at(low, least, most), _at(high, least, most)
        half = middle - 3
        bounds = ((a, low, half, low < least), (b, high, -half, high > most))
        caps = "".join(interval_end(float(x), middle, size, cut=cut) for x, _, size, cut in bounds)
        drawn.append(f'<path d="M{a} {middle:g}H{b}{caps}"/>')
    drawn.append(f'<circle cx="{_at(value, least, most)}" cy="{middle:g}" r="2.5" fill="currentColor"/>')
    height = HEIGHT
    if axis:
        drawn.append(f'<g transform="translate(0 {HEIGHT})">{_axis(least, most, rule)}</g>')
        height += AXIS_HEIGHT
    return (
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'fill="none" stroke="currentColor">{"".join(drawn)}</svg>'
    )


def interval_axis(least: float, most: float, *, rule: float | None = None) -> str:
    """Draw the axis of bars of :func:`interval_bar` as inline SVG: ticks with their numbers, and ``rule`` with its."""
    dotted = f", dotted line at {rule:g}" if rule is not None and least <= rule <= most else ""
    return (
        f'<svg role="img" aria-label="axis from {least:.4g} to {most:.4g}{dotted}" width="{WIDTH}" '
        f'height="{AXIS_HEIGHT}" viewBox="0 0 {WIDTH} {AXIS_HEIGHT}" fill="none" stroke="currentColor">'
        f"{_axis(least, most, rule)}</svg>"
    )


def _axis(least: float, most: float, rule: float | None) -> str:
    places = ticks(least, most, _N_TICKS)
    digits = decimals(places)
    # The number of the dotted line first: others that would touch it are left out.
    numbers = [(rule, f"{rule:g}")] if rule is not None and least <= rule <= most else []
    numbers += [(place, f"{place:.{digits}f}") for place in places]
    taken: list[tuple[float, float]] = []
    marks = texts = ""
    for place, text in numbers:
        x, half = float(_at(place, least, most)), len(text) * _DIGIT / 2
        middle = min(max(x, half), WIDTH - half)
        if all(abs(middle - other) >= half + reach + _BAR_MARGIN_PIXELS for other, reach in taken):
            taken.append((middle, half))
            marks += f"M{x:g} 0v3"
            texts += f'<text x="{middle:g}" y="13" text-anchor="middle">{text}</text>'
    line = f'<path d="M{_BAR_MARGIN_PIXELS} 0h{WIDTH - 2 * _BAR_MARGIN_PIXELS}{marks}" opacity=".6"/>'
    return f'{line}<g fill="currentColor" stroke="none" font-size="9">{texts}</g>'


def reliability_diagrams(bins: pd.DataFrame) -> str:
    """Draw observed against predicted shares of each method as inline SVG; the area of a mark is that of the bin."""
    # The axes are 200 pixels long, from (40, 224) to (240, 24).
    ticks = "".join(f"M{40 + 200 * share:g} 224v4M40 {224 - 200 * share:g}h-4" for share in (0, 0.5, 1))
    numbers = "".join(
        f'<text x="{40 + 200 * share:g}" y="241" text-anchor="middle">{share:g}</text>'
        f'<text x="33" y="{228 - 200 * share:g}" text-anchor="end">{share:g}</text>'
        for share in (0, 0.5, 1)
    )
    diagrams = ""
    for name, part in bins.groupby("method", sort=False):
        title = str(name) if len(str(name)) <= _LONGEST_TITLE else f"…{str(name)[1 - _LONGEST_TITLE :]}"
        ordered = part.sort_values("predicted")
        points = list(zip(40 + 200 * ordered["predicted"], 224 - 200 * ordered["observed"], ordered["n"], strict=True))
        marks = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{max(8 * (n / bins["n"].max()) ** 0.5, 1.5):.1f}"/>'
            for x, y, n in points
        )
        diagrams += (
            f'<svg role="img" aria-label="{cell(name)}: {count_text(len(part), "bin")}, n = {part["n"].sum():,}" '
            f'width="260" height="264" viewBox="0 0 260 264" fill="none" stroke="currentColor">'
            f'<path d="M40 24V224H240{ticks}"/><path d="M40 224L240 24" stroke-dasharray="4 3" opacity=".6"/>'
            f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)}"/>'
            f'<g fill="currentColor" stroke="none" font-size="12">{marks}{numbers}'
            f'<text x="40" y="14">{cell(title)}</text><text x="140" y="258" text-anchor="middle">predicted</text>'
            f'<text x="-124" y="10" transform="rotate(-90)" text-anchor="middle">observed</text></g></svg>'
        )
    return f"<div>{diagrams}</div>" if diagrams else ""


def table(
    frame: pd.DataFrame,
    *,
    caption: str = "",
    rows: int | None = 20,
    heads: int = 1,
    digits: int = 4,
    bar: tuple[str, str, str] | None = None,
    by: str | None = None,
    rule: float | None = None,
    names: Mapping[str, str] | None = None,
    joined: bool = False,
) -> str:
    """Return a frame as an HTML table without its index; all text is escaped, and numbers are aligned to the right.

    At most ``rows`` rows are shown, and a last line counts the others; the first ``heads`` columns are row headers.
    ``bar`` are columns with an estimate and the bounds of its interval, which a further column draws, on separate
    scales for the values of ``by``, with a dotted line at ``rule``; if ``joined``, the bounds are one column.
    """
    for column in (*(bar or ()), *([by] if by else ())):
        if column not in frame.columns:
            raise ParameterError(f"no column {column!r}: the frame has {', '.join(map(str, frame.columns))}")
    shown = frame if rows is None else frame.head(rows)
    columns = [
        (
            cell((names or {}).get(name, title)),
            pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name]),
            [cell(value, digits) for value in shown[name]],
        )
        for name, title in zip(frame.columns, column_titles(frame.columns), strict=True)
    ]
    if bar is not None:
        bars = _bars(frame, len(shown), bar, by, rule, digits)
        low, high = (list(frame.columns).index(name) for name in bar[1:])
        columns.insert(high + 1, ("" if joined else "interval", False, bars))
        if joined:
            ends = [f"{a} to {b}" if a and b else "" for a, b in zip(columns[low][2], columns[high][2], strict=True)]
            columns[high] = ("interval", True, ends)
            columns.pop(low)
    head = "".join(_cell("th", title, number, "col") for title, number, _ in columns)
    body = ""
    for row in range(len(shown)):
        cells = [
            _cell("th" if place < heads else "td", texts[row], number, "row" if place < heads else "")
            for place, (_, number, texts) in enumerate(columns)
        ]
        body += f"<tr>{''.join(cells)}</tr>\n"
    left_out = len(frame) - len(shown)
    if left_out:
        body += f'<tr><td colspan="{len(columns)}">{left_out:,} more row{"s" * (left_out > 1)} left out</td></tr>\n'
    above = f"<caption>{cell(caption)}</caption>" if caption else ""
    return f'<table class="vbterrier">{above}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>'


def _cell(tag: str, text: str, number: bool, scope: str) -> str:  # noqa: FBT001 - private
    kind = "number" if number else "prose" if tag == "td" and len(text) > _PROSE and not text.startswith("<") else ""
    attributes = (f' scope="{scope}"' if scope else "") + (f' class="{kind}"' if kind else "")
    return f"<{tag}{attributes}>{text}</{tag}>"


def _bars(
    frame: pd.DataFrame, n: int, bar: tuple[str, str, str], by: str | None, rule: float | None, digits: int
) -> list[str]:
    """Return the first ``n`` bars, on the scales of all rows: rows that are left out do not change the rows shown."""
    numbers = frame[list(bar)].apply(pd.to_numeric).astype(float)
    numbers = numbers.where(np.isfinite(numbers))
    groups = np.zeros(len(frame), dtype=int) if by is None else frame[by].factorize(use_na_sentinel=False)[0]
    rows: list[tuple[float, float, float]] = list(numbers.itertuples(index=False, name=None))
    scales = {
        group: limits(
            [row for row, one in zip(rows, groups, strict=True) if one == group], [] if rule is None else [rule]
        )
        for group in dict.fromkeys(groups)
    }
    drawn = [place for place in range(n) if not math.isnan(rows[place][0])]
    # The last bar of a scale has the axis.
    last = {groups[place]: place for place in drawn}
    return [
        interval_bar(*rows[place], *scales[group], rule=rule, digits=digits, axis=last.get(group) == place)
        for place, group in enumerate(groups[:n])
    ]


def _at(number: float, least: float, most: float) -> str:
    """Return the horizontal position of a number in pixels; the middle of a scale without width."""
    share = min(max((number - least) / (most - least), 0.0), 1.0) if most > least else 0.5
    return f"{_BAR_MARGIN_PIXELS + share * (WIDTH - 2 * _BAR_MARGIN_PIXELS):.1f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, eq=False)
class Panel:
    """A table of a result, as notebooks show it."""

    title: str  # the title of the table
    # Its rows. Columns that describe the method and have one value, such as level and seed, become the caption.
    frame: pd.DataFrame
    value: str = ""  # the point estimate of the interval from ``low`` to ``high``, which is drawn; empty for none
    by: str | None = None  # a column whose values have separate scales
    rule: float | None = None  # position of a dotted line, such as 0 for differences
    rows: int = 20  # maximum number of rows shown
    heads: int = 1  # number of leading columns that are row headers
    figure: str = ""  # inline SVG below the table, which has the same numbers
    folded: bool = False  # True for details, which a page shows on demand

    def caption_and_table(self) -> tuple[str, pd.DataFrame]:
        """The caption, which has the title and the values that all rows share, and the other columns with values."""
        shared, rest = shared_caption(self.frame)
        if len(rest):
            rest = rest[[name for name in rest.columns if not (rest[name].isna() | (rest[name] == "")).all()]]
        return f"{self.title}: {shared}" if shared else self.title, rest

    def anchor(self) -> str:
        """The name of the section of a page that has the table."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")

    def note(self) -> str:
        """Sentences with the values of the method that all rows share, for a page."""
        parts = _shared_parts(self.frame)
        about = [text for name, text in parts if name in _SUBJECT_COLUMNS]
        how = [text for name, text in parts if name not in _SUBJECT_COLUMNS]
        return " ".join(f"{', '.join(each)}." for each in (about, how) if each)

    def html(self, *, joined: bool = False) -> str:
        """Return the HTML table; for a page, with intervals ``joined`` in one column and without the shared values."""
        caption, rest = self.caption_and_table()
        caption = self.title if joined else caption
        barred = self.value in rest.columns and {"low", "high"} <= set(rest.columns)
        shown = table(
            rest,
            caption=caption,
            rows=self.rows,
            heads=self.heads,
            bar=(self.value, "low", "high") if barred else None,
            by=self.by if self.by in rest.columns else None,
            rule=self.rule,
            joined=joined,
        )
        # A page has its own boxes, and folds its sections itself.
        if not joined:
            shown = f'<div class="vbterrier">{shown}</div>'
        shown = f"{shown}\n{self.figure}" if self.figure else shown
        folded = self.folded and not joined
        return f"<details><summary>{cell(self.title)}</summary>{shown}</details>" if folded else shown


def shared_caption(frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Describe the method columns that have one value in all rows; return the text and the frame without them."""
    shared = [name for name in _WORDS if name in frame.columns and len(frame[name].drop_duplicates()) == 1]
    return "; ".join(text for _, text in _shared_parts(frame[shared])), frame.drop(columns=shared)


def _shared_parts(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """The method columns that have one value in all rows, and the words for it."""
    shared = [name for name in _WORDS if name in frame.columns and len(frame[name].drop_duplicates()) == 1]
    parts: list[tuple[str, str]] = []
    for column in shared:
        value = frame[column].iloc[0]
        if isinstance(value, float) and math.isnan(value):
            continue
        words = _WORDS[column](value)
        if column == "method" and "level" in shared and parts:
            parts[-1] = parts[-1][0], parts[-1][1] + (f": {words}" if words else "")
        elif words:
            parts.append((column, words))
    return parts


def count_text(n: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural."""
    if n != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n:,} {noun}"


def _number(value: Any, noun: str) -> str:
    return count_text(int(value), noun) if value else ""


# Names of corrections in captions.
CORRECTION_NAMES = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg", "max-t": "max-T"}
_WORDS: dict[str, Callable[[Any], str]] = {
    "measure": str,
    "n_qids": partial(_number, noun="topic"),
    "n_pilot": "pilot of {} topics".format,
    "level": lambda level: f"{100 * level:g}% intervals",
    "method": lambda method: "" if method == "none" else str(method),
    "test": "{} test".format,
    "correction": lambda by: "p not corrected" if by == "none" else f"p corrected: {CORRECTION_NAMES.get(by, by)}",
    "n_resamples": partial(_number, noun="resample"),
    "n_draws": partial(_number, noun="draw"),
    "n_simulations": partial(_number, noun="simulation"),
    "n_subsets": partial(_number, noun="subset"),
    "n_permutations": partial(_number, noun="permutation"),
    "seed": "seed {}".format,
    "estimand": lambda text: f"estimates {text}" if text else "",
    "lists": "rankings {}".format,
}
