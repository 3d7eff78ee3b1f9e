"""Frames as text: for the terminal, for files, for papers."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import textwrap
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, excerpt, printable
from vbterrier.evaluate.replicas import GOLD_TAGS
from vbterrier.frames.notebook import column_titles
from vbterrier.report import latex
from vbterrier.stats.replicas import excludes_its_score
from vbterrier.stats.topic_intervals import CONSTANT_METHOD, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from vbterrier.evaluate.scores import Scores
    from vbterrier.frames.answer import Answer
    from vbterrier.frames.notebook import Panel


FORMATS = ("table", "csv", "json", "latex", "markdown")
# Formats of papers and of pages beside code, which have the answer with the tables.
PAPERS = ("latex", "markdown")
# The mark of intervals of replicas that exclude the score.
EXCLUDED = "‡"
# Columns of the terminal that a command prints to; None for as many as a table needs, as in files and pipes.
WIDTH: ContextVar[int | None] = ContextVar("width", default=None)
# What GitHub's Markdown turns into a link: the start of an address, and the sign before a name, an issue or a host.
_LINKED = re.compile(
    r"\b(?:https?|ftp|mailto|xmpp)(?=:)|\bwww(?=\.)|(?<!\w)[@#](?=\w)|(?<=\w)@(?=[\w-]+\.[a-z])", re.IGNORECASE
)
_COMMENT = "<!-- -->"
# Characters with a meaning in Markdown.
_MARKDOWN_ESCAPES = str.maketrans({"<": "&lt;", "&": "&amp;"} | {sign: f"\\{sign}" for sign in "\\|*[]`$"})
# Columns of means that a narrow terminal leaves out first.
LAST = ("missing", "topics", "rankings")
# Explanation of the columns of tagging.
TAGGING = "tagged: share of the documents up to the cutoff with a candidate of their query as a tag; oracle_ES: "
TAGGING += "the best possible ranking under the same tags"


@contextmanager
def width(columns: int | None) -> Iterator[None]:
    """Format tables for this many columns, ``None`` for as many as they need."""
    token = WIDTH.set(columns)
    try:
        yield
    finally:
        WIDTH.reset(token)


def format_table(
    frame: pd.DataFrame,
    style: str,
    *,
    title: str = "",
    caption: Sequence[str] = (),
    label: str = "",
    digits: int = 4,
    bold: Collection[tuple[int, str]] = (),
    drop: Sequence[str] = (),
    turns: bool = False,
) -> str:
    """Format a frame in one of ``FORMATS``; csv and json keep all digits, json has null for missing and infinite.

    Only LaTeX and the table for terminals have a title. ``caption``: sentences, above the table in LaTeX (the title if
    there are none) and below it in Markdown. ``label``: label of a LaTeX table with a caption. ``bold``: cells, by row
    number and column, that are bold in LaTeX and Markdown. ``drop``: columns that a narrow terminal leaves out first,
    in this order. ``turns``: True if systems may become columns there.
    """
    if style == "csv":
        return frame.to_csv(index=False).rstrip("\n")
    if style == "json":
        # to_json rounds to 15 decimals; null stands for NaN and infinity, which JSON does not have.
        plain = frame.astype(object).where(frame.notna() & ~frame.isin([math.inf, -math.inf]), None)
        return json.dumps(plain.to_dict(orient="records"), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    text = frame.map(lambda value: _cell(value, digits))
    right = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    if style == "markdown":
        cells = _emphasise_cells(text.map(lambda cell: escape_for_style(cell, "markdown")), bold, "**{}**")
        rows = [[escape_for_style(name, "markdown") for name in text.columns], *cells.to_numpy().tolist()]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        rule = "|" + "|".join("---:" if numeric else ":---" for numeric in right) + "|"
        return with_caption("\n".join([lines[0], rule, *lines[1:]]), style, caption)
    if style == "latex":
        return with_caption(_latex(text, right, bold), style, caption or [title] * bool(title), label)
    if style == "table":
        return _terminal_table(text, right, title, drop, turns=turns)
    raise ParameterError(f"format={excerpt(style)}: wanted one of {', '.join(map(repr, FORMATS))}")


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else latex.fixed_number(value, digits)
    return printable(value)


def _emphasise_cells(text: pd.DataFrame, bold: Collection[tuple[int, str]], form: str) -> pd.DataFrame:
    text = text.copy()
    for row, name in bold:
        at = row, list(text.columns).index(name)
        text.iloc[at] = form.format(text.iloc[at])
    return text


def _latex(text: pd.DataFrame, right: list[bool], bold: Collection[tuple[int, str]]) -> str:
    cells = text.map(latex.escaped_text)
    for name, numeric in zip(text.columns, right, strict=True):
        cells[name] = cells[name].map(latex.number if numeric else latex.ends)
    rows = _emphasise_cells(cells, bold, r"\textbf{{{}}}").to_numpy().tolist()
    heads = [latex.escaped_text(name) for name in text.columns]
    return latex.tabular(heads, rows, "".join("r" if numeric else "l" for numeric in right))


def _terminal_table(text: pd.DataFrame, right: list[bool], title: str, drop: Sequence[str], *, turns: bool) -> str:
    """A table for terminals, of at most ``WIDTH`` columns if that breaks no number and no word.

    Wide columns of words are folded; a table that ``turns`` becomes one of the other direction if that one fits; then
    columns of ``drop`` are left out, in this order, and then the last ones; a line below names them.
    """
    room, columns = WIDTH.get(), list(text.columns)
    numeric = dict(zip(columns, right, strict=True))
    spans = {name: _span([printable(name), *text[name]]) for name in columns}
    # The rows of a system by several cutoffs would be columns of one name.
    if turns and room is not None and text[columns[0]].is_unique and _least_width(spans.values()) > room:
        turned = text.set_index(columns[0]).T.rename_axis(columns=None)
        turned = turned.reset_index(names=columns[0]).set_axis([columns[0], *text[columns[0]]], axis=1)
        if _least_width(_span([printable(name), *turned.iloc[:, place]]) for place, name in enumerate(turned)) <= room:
            return _terminal_table(turned, [False, *[True] * len(text)], title, (), turns=False)
    left_out: list[str] = []
    # Columns of ``drop`` go first, then the last ones; the first column always stays.
    first = [name for name in drop if name in columns]
    for name in [*first, *(one for one in reversed(columns[1:]) if one not in first)]:
        if room is None or _least_width(spans[one] for one in columns) <= room:
            break
        columns.remove(name)
        left_out.append(printable(name))
    shown = text[columns]
    drawn = _terminal_text(shown, [numeric[name] for name in columns], [spans[name] for name in columns], title, room)
    if not left_out:
        return drawn
    hidden = [printable(name) for name in text.columns if printable(name) in left_out]
    note = f"Not shown at {room} columns: {', '.join(hidden)}. A wider terminal shows them."
    return f"{drawn}\n{prose(note, room)}"


# Numbers, intervals, counts, and marks beside them, which are not folded.
_UNFOLDED = re.compile(r"[-−+]?[\d.(\[][^A-Za-z]*( to [-−+]?\d.*)?")
# Columns between those of a table, and at both of its sides; folded words have at least this many columns.
_BETWEEN, _SIDE_WIDTH, _MIN_FOLDED_WIDTH = 3, 3, 24


def _span(cells: Sequence[str]) -> tuple[int, int]:
    """The smallest and the best width of a column, whose first cell is its name."""
    from rich.cells import cell_len

    head, *rest = cells
    words = max(map(cell_len, head.split()), default=0)
    best = max(map(cell_len, rest), default=0)
    whole = [cell_len(cell) for cell in rest if _UNFOLDED.fullmatch(cell)]
    broken = [cell_len(word) for cell in rest if not _UNFOLDED.fullmatch(cell) for word in cell.split()]
    return max([words, *whole, *broken, min(best, _MIN_FOLDED_WIDTH)]), max(best, words)


def _least_width(spans: Iterable[tuple[int, int]]) -> int:
    least = [low for low, _ in spans]
    return sum(least) + _BETWEEN * (len(least) - 1) + _SIDE_WIDTH


def _terminal_text(
    text: pd.DataFrame, right: list[bool], spans: list[tuple[int, int]], title: str, room: int | None
) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    titles = [len(printable(name)) for name in text.columns]
    widths = [max(high, head) if room is None else low for (low, high), head in zip(spans, titles, strict=True)]
    # The rest of the room goes to folded words, to each by its need, and then to names.
    left = 0 if room is None else max(room - _least_width((width, 0) for width in widths), 0)
    needs = [max(high - width, 0) for (_, high), width in zip(spans, widths, strict=True)]
    share = min(left / max(sum(needs), 1), 1)
    widths = [width + int(share * need) for width, need in zip(widths, needs, strict=True)]
    left -= sum(int(share * need) for need in needs)
    for place, head in enumerate(titles):
        # A name that stays folded needs no more room.
        if 0 < head - widths[place] <= left:
            left -= head - widths[place]
            widths[place] = head
    title = printable(title)
    table = Table(title=Text(title) if title else None, box=box.SIMPLE_HEAD, title_justify="left")
    for name, numeric, width in zip(text.columns, right, widths, strict=True):
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", width=width)
    for row in text.itertuples(index=False, name=None):
        # Text, not markup: an id such as [bold] is an id.
        table.add_row(*(Text(cell) for cell in row))
    page = io.StringIO()
    Console(file=page, width=max(sum(widths) + _BETWEEN * len(widths) + _SIDE_WIDTH, len(title))).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().strip("\n").splitlines())


def terminal_columns() -> int | None:
    """Return the width of standard output: that of COLUMNS or of the terminal, ``None`` for pipes and files."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (AttributeError, OSError, ValueError):
        return None


def panel_text(panel: Panel) -> str:
    """Format a panel as text, in the width of the terminal if there is one; intervals are one column."""
    caption, frame = panel.caption_and_table()
    room = terminal_columns()
    left_out = len(frame) - panel.rows
    frame = frame.head(panel.rows)
    frame = joined_ends(frame)
    with width(room):
        text = format_table(frame.set_axis(column_titles(frame.columns), axis=1), "table")
    more = [f"{left_out:,} more rows"] * (left_out > 0)
    return "\n".join([prose(printable(caption), room), text, *more])


def joined_ends(frame: pd.DataFrame, digits: int = 4, title: str = "interval") -> pd.DataFrame:
    """Join the columns low and high, if a frame has both, in one column of intervals with a title."""
    if not {"low", "high"} <= set(frame.columns):
        return frame
    place = list(frame.columns).index("low")
    rest = frame.drop(columns=["low", "high"])
    rest.insert(min(place, len(rest.columns)), title, interval_texts(frame, digits))
    return rest


def interval_texts(frame: pd.DataFrame, digits: int | None = 4, low: str = "low", high: str = "high") -> pd.Series[str]:
    """Join the ends of intervals, empty where one is missing; ranks have no decimals, ``digits=None``."""
    form = "{:g}".format if digits is None else partial(_cell, digits=digits)
    # An empty column of numbers stays one of numbers, to which no text can be added.
    ends = frame[low].map(form).astype(object) + " to " + frame[high].map(form).astype(object)
    return ends.where(frame[low].notna() & frame[high].notna(), "")


def prose(text: str, room: int | None) -> str:
    """Fold the sentences of a text to a number of columns; lines that begin with a space, as those of tables, stay."""
    if room is None:
        return text
    lines = []
    for line in text.split("\n"):
        below = "  " if line.startswith("- ") else ""
        fold = textwrap.TextWrapper(room, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)
        lines += fold.wrap(line) if len(line) > room and line[:1] != " " else [line]
    return "\n".join(lines)


def folded_text(text: str) -> str:
    """Fold the sentences of a text to the terminal, if there is one; a command of a next step stays in one line."""
    lines, room = text.split("\n"), terminal_columns()
    return "\n".join(line if line.startswith("Next: ") else prose(line, room) for line in lines)


# Marks intervals of scores that are equal on all topics, in the column of the intervals of others.
CONSTANT_MARK = "="


def of_columns(intervals: pd.DataFrame) -> tuple[pd.Series[str], pd.Series[str]]:
    """The method whose column holds each interval of a C frame, and the mark of intervals of another method."""
    method = intervals["method"].astype(str)
    others = [one for one in method.unique() if one.startswith("topics (") and one != CONSTANT_METHOD]
    moved = (method == CONSTANT_METHOD) & (len(others) == 1)
    return method.mask(moved, others[0] if others else ""), moved.map({True: f" {CONSTANT_MARK}", False: ""})


def summary(scores: Scores, style: str) -> pd.DataFrame:
    """One row for each system and measure: the mean and its intervals, named by their methods.

    For csv and json, the C frame itself.
    """
    intervals = scores.intervals.merge(scores.missing[["name", "n_missing"]], on="name", sort=False)
    if style in ("csv", "json"):
        return intervals
    ends = interval_texts(intervals)
    if "mean" in intervals.columns:
        # Replicas have their own mean, which may differ from the score.
        around = ", mean " + intervals["mean"].map(lambda mean: _cell(mean, 4))
        ends += around.where(intervals["mean"].notna(), "")
    ends += np.where(excludes_its_score(intervals), f" {EXCLUDED}", "")
    intervals["column"], marks = of_columns(intervals)
    intervals["ends"] = (ends + marks).where(intervals["low"].notna(), "")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in intervals.itertuples():
        cells = rows.setdefault(
            (str(row.name), str(row.measure)), {"run": row.name, "measure": row.measure, "mean": row.value}
        )
        if row.method != "none":
            cells[f"{row.level:.0%} {row.column}"] = row.ends
        if isinstance(lists := getattr(row, "lists", None), str):
            cells["rankings"] = lists
        cells |= {"topics": row.n_qids, "missing": row.n_missing}
    table = pd.DataFrame(list(rows.values()))
    return table[[name for name in table if name not in ("topics", "missing")] + ["topics", "missing"]].fillna("")


def per_query(scores: Scores, style: str) -> pd.DataFrame:
    """The V frame; for other formats than csv and json, one column for each measure."""
    if style in ("csv", "json"):
        return scores.values
    return one_column_each(scores.values)


def one_column_each(values: pd.DataFrame) -> pd.DataFrame:
    """Pivot a V frame to one column for each measure, in the order of the frame."""
    wide = values.pivot(index=["name", "qid"], columns="measure", values="value").reset_index()
    ordered = values[["name", "qid"]].drop_duplicates().merge(wide, on=["name", "qid"], how="left")
    return ordered[["name", "qid", *values["measure"].unique()]].rename(columns={"name": "run"})


def footing(scores: Scores) -> str:
    """Methods of the intervals in one line."""
    parts, is_marked = [], bool(of_columns(scores.intervals)[1].any())
    for first in scores.intervals.drop_duplicates("method").to_dict("records"):
        method, n, seed = first["method"], first["n_resamples"], first["seed"]
        if method.startswith("topics"):
            drawn = f" ({n} resamples, seed {seed})" if n else " (Student's t)"
            if method == f"topics ({UNSEEN})":
                drawn = ", including scores that the sample lacks"
            if method == CONSTANT_METHOD:
                drawn = f", for scores that are equal on all topics{' (' + CONSTANT_MARK + ')' if is_marked else ''}"
            parts.append(f"{method}: over other topics from the same population{drawn}")
        elif method.startswith(("replicas", "intents")):
            lists = _lists(scores)
            parts.append(f"{method}: over other candidates and tags of these topics ({n} replicas, seed {seed}){lists}")
        elif method == GOLD_TAGS:
            parts.append(f"{method}: over gold tags of all documents for these topics ({n} replicas, seed {seed})")
        elif method == "unjudged (normal)":
            parts.append(f"{method}: over the possible grades of the unjudged documents of these topics")
    if excludes_its_score(scores.intervals).any():
        parts.append(
            f"{EXCLUDED} excludes the score: the perturbations add errors, so that it is not an interval of the score; "
            "a tagger model (fit_tagger) gives one of the score under gold tags"
        )
    return "; ".join(parts)


def _lists(scores: Scores) -> str:
    """Describe the rankings that replicas use: the same in all replicas, or those of systems that were run again."""
    if "lists" not in scores.intervals.columns:
        return ""
    groups = scores.intervals.dropna(subset="lists").drop_duplicates("name").groupby("lists", sort=False)["name"]
    names = {str(kind): ", ".join(map(str, group)) for kind, group in groups}
    if len(names) == 1:
        return f"; rankings of all systems: {next(iter(names))}"
    return "; rankings " + ", ".join(f"{kind}: {group}" for kind, group in names.items())


def with_answer(tables: str, answer: Answer, style: str) -> str:
    """Tables for a paper with the answer of their result, in LaTeX as comments for the author; others as they are."""
    if style not in PAPERS:
        return tables
    above = [escape_for_style(line, style) for line in [answer.verdict, *answer.reason.split("\n")] if line]
    # Captions have some of the caveats.
    caveats = [
        one
        for one in answer.caveats
        if escape_for_style(one.text.rstrip("."), style).casefold() not in tables.casefold()
    ]
    below = [
        f"{'Serious caveat' if one.serious else 'Caveat'}: {escape_for_style(one.line(), style)}" for one in caveats
    ]
    if style == "latex":
        return "\n\n".join(["\n".join(f"% {line}" for line in [*above, *below]), tables])
    return "\n\n".join([*above, tables, *(["\n".join(f"- {line}" for line in below)] if below else [])])


def escape_for_style(text: object, style: str) -> str:
    """Escape text outside of tables for a format."""
    if style == "latex":
        return latex.escaped_text(text)
    if style != "markdown":
        return printable(text)
    # A comment is not shown, and keeps GitHub from linking addresses and from calling people by ids of documents.
    return _LINKED.sub(rf"\g<0>{_COMMENT}", printable(text).translate(_MARKDOWN_ESCAPES))


def with_caption(table: str, style: str, caption: Sequence[str], label: str = "") -> str:
    """Add a caption to a table in LaTeX or Markdown."""
    if not caption:
        return table
    sentences = [escape_for_style(sentence, style) for sentence in caption]
    if style == "latex":
        return latex.floating_table(table, sentences, label)
    # A caption in Pandoc's syntax; other programs show it as a line.
    return "\n".join([table, "", f"Table: {sentences[0]}", *sentences[1:]])
