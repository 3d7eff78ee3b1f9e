"""Frames as text: for the terminal, for files, for papers."""

from __future__ import annotations

import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, printable
from vbterrier.evaluate.replicas import GOLD_TAGS
from vbterrier.report import latex
from vbterrier.stats.replicas import excludes_its_score
from vbterrier.stats.topic_intervals import OF_CONSTANT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from vbterrier.evaluate.scores import Scores


FORMATS = ("table", "csv", "json", "latex", "markdown")
# The mark of intervals of replicas that exclude the score.
EXCLUDED = "‡"
# What Markdown of GitHub makes a link: the start of an address, and the sign before a name, an issue or a host.
_LINKED = re.compile(
    r"\b(?:https?|ftp|mailto|xmpp)(?=:)|\bwww(?=\.)|(?<!\w)[@#](?=\w)|(?<=\w)@(?=[\w-]+\.[a-z])", re.IGNORECASE
)
_COMMENT = "<!-- -->"
# Characters with a meaning in Markdown.
_OF_MARKDOWN = str.maketrans({"<": "&lt;", "&": "&amp;"} | {sign: f"\\{sign}" for sign in "\\|*[]`$"})
# Explanation of the columns of tagging.
TAGGING = "tagged: share of the documents up to the cutoff with a candidate of their query as a tag; oracle_ES: "
TAGGING += "the best possible ranking under the same tags"


def rendered(
    frame: pd.DataFrame,
    style: str,
    *,
    title: str = "",
    caption: Sequence[str] = (),
    label: str = "",
    digits: int = 4,
    bold: Collection[tuple[int, str]] = (),
) -> str:
    """Format a frame in one of ``FORMATS``; csv and json keep all digits, json has null for missing and infinite.

    Only LaTeX and the table for terminals have a title. ``caption``: sentences, above the table in LaTeX (the title if
    there are none) and below it in Markdown. ``label``: label of a LaTeX table with a caption. ``bold``: cells, by row
    number and column, that are bold in LaTeX and Markdown.
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
        cells = _emphasised(text.map(lambda cell: escaped(cell, "markdown")), bold, "**{}**")
        rows = [[escaped(name, "markdown") for name in text.columns], *cells.to_numpy().tolist()]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        rule = "|" + "|".join("---:" if numeric else ":---" for numeric in right) + "|"
        return captioned("\n".join([lines[0], rule, *lines[1:]]), style, caption)
    if style == "latex":
        return captioned(_latex(text, right, bold), style, caption or [title] * bool(title), label)
    if style == "table":
        return _table(text, right, title)
    raise ParameterError(f"format={style!r}: wanted one of {', '.join(map(repr, FORMATS))}")


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else latex.fixed(value, digits)
    return printable(value)


def _emphasised(text: pd.DataFrame, bold: Collection[tuple[int, str]], form: str) -> pd.DataFrame:
    text = text.copy()
    for row, name in bold:
        at = row, list(text.columns).index(name)
        text.iloc[at] = form.format(text.iloc[at])
    return text


def _latex(text: pd.DataFrame, right: list[bool], bold: Collection[tuple[int, str]]) -> str:
    cells = text.map(latex.escaped)
    for name, numeric in zip(text.columns, right, strict=True):
        cells[name] = cells[name].map(latex.number if numeric else latex.ends)
    rows = _emphasised(cells, bold, r"\textbf{{{}}}").to_numpy().tolist()
    heads = [latex.escaped(name) for name in text.columns]
    return latex.tabular(heads, rows, "".join("r" if numeric else "l" for numeric in right))


def _table(text: pd.DataFrame, right: list[bool], title: str) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, box=box.SIMPLE_HEAD, title_justify="left")
    for name, numeric in zip(text.columns, right, strict=True):
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", no_wrap=False)
    for row in text.itertuples(index=False, name=None):
        # Text, not markup: an id such as [bold] is an id.
        table.add_row(*(Text(cell) for cell in row))
    page = io.StringIO()
    # As wide as necessary, since shortened names may be ambiguous.
    Console(file=page, width=10_000).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().strip("\n").splitlines())


# Marks intervals of scores that are equal on all topics, in the column of the intervals of others.
CONSTANT = "="


def of_columns(intervals: pd.DataFrame) -> tuple[pd.Series[str], pd.Series[str]]:
    """The method whose column holds each interval of a C frame, and the mark of intervals of another method."""
    method = intervals["method"].astype(str)
    others = [one for one in method.unique() if one.startswith("topics (") and one != OF_CONSTANT]
    moved = (method == OF_CONSTANT) & (len(others) == 1)
    return method.mask(moved, others[0] if others else ""), moved.map({True: f" {CONSTANT}", False: ""})


def summary(scores: Scores, style: str) -> pd.DataFrame:
    """One row for each system and measure: the mean and its intervals, named by their methods.

    For csv and json, the C frame itself.
    """
    intervals = scores.intervals.merge(scores.missing[["name", "n_missing"]], on="name", sort=False)
    if style in ("csv", "json"):
        return intervals
    ends = intervals["low"].map(lambda end: _cell(end, 4)) + " to " + intervals["high"].map(lambda end: _cell(end, 4))
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
            drawn = f"{n} resamples, seed {seed}" if n else "Student's t"
            if method == OF_CONSTANT:
                drawn = f"scores that are equal on all topics{' (' + CONSTANT + ')' if is_marked else ''}"
            parts.append(f"{method}: {drawn}: other topics from the same population")
        elif method.startswith(("replicas", "intents")):
            lists = _lists(scores)
            parts.append(f"{method}: {n} replicas, seed {seed}: other candidates and tags of these topics{lists}")
        elif method == GOLD_TAGS:
            parts.append(f"{method}: {n} replicas, seed {seed}: these topics under gold tags of all documents")
        elif method == "unjudged (normal)":
            parts.append(f"{method}: grades of unjudged documents of these topics under the model")
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
    of = scores.intervals.dropna(subset="lists").drop_duplicates("name").groupby("lists", sort=False)["name"]
    names = {str(kind): ", ".join(map(str, group)) for kind, group in of}
    if len(names) == 1:
        return f"; rankings of all systems: {next(iter(names))}"
    return "; rankings " + ", ".join(f"{kind}: {group}" for kind, group in names.items())


def escaped(text: object, style: str) -> str:
    """Escape text outside of tables for a format."""
    if style == "latex":
        return latex.escaped(text)
    if style != "markdown":
        return printable(text)
    # A comment is not shown, and keeps GitHub from linking addresses and from calling people by ids of documents.
    return _LINKED.sub(rf"\g<0>{_COMMENT}", printable(text).translate(_OF_MARKDOWN))


def captioned(table: str, style: str, caption: Sequence[str], label: str = "") -> str:
    """Add a caption to a table in LaTeX or Markdown."""
    if not caption:
        return table
    said = [escaped(sentence, style) for sentence in caption]
    if style == "latex":
        return latex.floated(table, said, label)
    # A caption in Pandoc's syntax; other programs show it as a line.
    return "\n".join([table, "", f"Table: {said[0]}", *said[1:]])
