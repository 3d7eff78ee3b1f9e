"""Tables of results for papers, with captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, path_parameter, printable
from vbterrier.evaluate.coverage import CoverageReport
from vbterrier.evaluate.intents import IntentEvaluation
from vbterrier.evaluate.verdicts import count_range_text
from vbterrier.frames.files.writing import replace_files
from vbterrier.frames.notebook import column_titles, shared_caption
from vbterrier.frames.results import SUFFIXES, Shown
from vbterrier.report import latex, system_tables
from vbterrier.report.captions import best_rows, measures_sentence
from vbterrier.report.comparison import (
    comparison_caption,
    comparison_report,
    pairs_caption,
    segment_rows,
    with_segments,
)
from vbterrier.report.latex import MAX_MEAN_COLUMNS, brackets, by_measure, fixed_number
from vbterrier.report.tables import (
    CONSTANT_MARK,
    EXCLUDED,
    LAST,
    TAGGING,
    footing,
    format_table,
    joined_ends,
    of_columns,
    per_query,
    summary,
    width,
    with_answer,
    with_caption,
)
from vbterrier.stats.replicas import excludes_its_score

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from vbterrier.evaluate.scores import Scores
    from vbterrier.frames.answer import Answer


_KEYS = ["name", "measure"]


def scores_report(scores: Scores, style: str, *, topics: bool = False) -> str:
    """Table of means with intervals, their methods, and the tagging of an evaluation by intents.

    csv and json hold the frame only. ``topics``: one row for each system and topic instead of means.
    """
    if style in ("csv", "json"):
        means = with_segments(summary(scores, style), scores.segments)
        return format_table(per_query(scores, style) if topics else means, style)
    if topics:
        caption = scores_caption(scores, topics=True)
        return format_table(per_query(scores, style), style, caption=caption, label="tab:topics")
    parts = [_means_table(scores, style)]
    if style == "table":
        parts.append(footing(scores))
        if is_pooled(scores):
            parts.append("pooled: scores of the joint intents of all topics instead of means over topics")
    if len(scores.segments):
        rows = segment_rows(scores.segments)
        table = format_table(rows, style, caption=["Means over segments of queries."], label="tab:segments")
        parts.append(f"\nSegments of queries:\n{table}" if style == "table" else table)
    if isinstance(scores, IntentEvaluation):
        caption = [f"Tagging: {TAGGING}."]
        table = format_table(scores.tagging, style, caption=caption, label="tab:tagging")
        parts.append(f"\n{table}\n{TAGGING}" if style == "table" else table)
    return ("\n" if style == "table" else "\n\n").join(parts)


def _means_table(scores: Scores, style: str) -> str:
    if style == "latex" and scores.intervals["measure"].nunique() <= MAX_MEAN_COLUMNS:
        return with_caption(_wide_latex_table(scores), style, scores_caption(scores), "tab:scores")
    ones = scores.intervals.drop_duplicates(_KEYS)
    best = set(ones.loc[best_rows(ones), _KEYS].itertuples(index=False, name=None))
    table = summary(scores, style)
    keys = zip(table["run"], table["measure"], strict=True)
    bold = [(row, "mean") for row, key in enumerate(keys) if key in best]
    if style == "latex":
        # The caption has topics, missing topics, and methods.
        table = table.drop(columns=["topics", "missing"]).rename(columns=lambda name: str(name).partition(" (")[0])
    return format_table(table, style, caption=scores_caption(scores), label="tab:scores", bold=bold, drop=LAST)


def _wide_latex_table(scores: Scores) -> str:
    ones = scores.intervals.drop_duplicates(_KEYS)
    texts = ones["value"].map(lambda value: latex.number(fixed_number(value)))
    cells = texts.where(~best_rows(ones), r"\textbf{" + texts + "}")
    kinds = []
    column, moved = of_columns(scores.intervals)
    intervals = scores.intervals.assign(mark=moved)
    for method, frame in intervals.groupby(column, sort=False):
        if method != "none":
            index = pd.MultiIndex.from_frame(frame[_KEYS])
            means = frame["mean"].to_numpy() if "mean" in frame.columns else np.full(len(frame), np.nan)
            marks = np.where(excludes_its_score(frame), rf"\textsuperscript{{{latex.escaped_text(EXCLUDED)}}}", "")
            ends = pd.Series(map(brackets, frame["low"], frame["high"]), index=index)
            # Replicas have their own mean, which may differ from the score.
            around = pd.Series(means, index=index).map(lambda mean: f", mean {latex.number(fixed_number(mean))}")
            ends += around.where(ends.ne("") & np.isfinite(means), "") + marks
            ends += np.where(frame["mark"].ne(""), rf"\textsuperscript{{{latex.escaped_text(CONSTANT_MARK)}}}", "")
            # The caption has the parameters of the method.
            source, _, _ = str(method).partition(" (")
            kinds.append((latex.escaped_text(f"{100 * frame['level'].iloc[0]:g}% {source}"), ends))
    shown = {name: latex.escaped_text(name) for name in ones["name"].unique()}
    return by_measure(ones.assign(cell=cells), kinds, shown)


def scores_caption(scores: Scores, *, topics: bool = False) -> list[str]:
    """Caption: measures, topics, methods of intervals, and missing topics."""
    intervals = scores.intervals
    if topics:
        n = scores.values["qid"].nunique()
        return measures_sentence(f"Scores of each of {count_range_text(n, 'topic')}", scores.values["measure"].unique())
    topics_text = count_range_text(intervals["n_qids"], "topic")
    what = f"Pooled scores, of the joint intents of {topics_text}" if is_pooled(scores) else f"Means over {topics_text}"
    sentences = measures_sentence(what, intervals["measure"].unique())
    if footing(scores):
        levels = " and ".join(
            f"{100 * level:g}%" for level in intervals.loc[intervals["method"] != "none", "level"].unique()
        )
        sentences.append(f"Intervals, {levels}: {footing(scores)}.")
    if best_rows(intervals.drop_duplicates(_KEYS)).any():
        sentences.append("The best mean of a measure is bold.")
    late = scores.missing[scores.missing["n_missing"] > 0]
    for name, n in zip(late["name"], late["n_missing"], strict=True):
        sentences.append(f"{name} retrieved nothing for {count_range_text(n, 'topic')}, scored as empty rankings.")
    return sentences + [f"{note}." for note in scores.notes]


def is_pooled(scores: Scores) -> bool:
    """Return True for scores of the joint intents of all topics."""
    return isinstance(scores, IntentEvaluation) and scores.pool == "collection"


# The functions for the table and the caption of each result, by the name of its class, as its package may not be
# imported.
_TABLES: dict[str, tuple[Callable[..., str], Callable[..., list[str]]]] = {
    "Scores": (scores_report, scores_caption),
    "Comparison": (
        comparison_report,
        lambda compared, systems=False, compact=False, **_: (
            comparison_caption(compared) if systems or compact else pairs_caption(compared)
        ),
    ),
    "SystemRanking": (system_tables.ranking_report, system_tables.ranking_caption),
    "Leaderboard": (system_tables.leaderboard_report, system_tables.leaderboard_caption),
    "LinkingReport": (system_tables.linking_table, system_tables.linking_caption),
    "CoverageReport": (
        lambda report, *style, **options: system_tables.coverage_table([report], *style, **options),
        lambda report, **options: system_tables.coverage_caption([report], **options),
    ),
    "Shown": (
        lambda result, style, **options: _frame(result.to_frame(), style, caption=result_caption(result), **options),
        lambda result, **_: result_caption(result),
    ),
}


def _renderers(result: Shown) -> tuple[Callable[..., str], Callable[..., list[str]]]:
    """The functions for the table and the caption of a result."""
    return next(_TABLES[kind.__name__] for kind in type(result).__mro__ if kind.__name__ in _TABLES)


def result_caption(result: Shown) -> list[str]:
    """Caption of a result that has no special table for papers: its ``repr``."""
    return [f"{result!r}."]


def result_table(result: Shown, style: str) -> str:
    """The table of a result in a file: the rows of ``to_frame`` in csv and json, else that for papers, of any width."""
    with width(None):
        return format_table(result.to_frame(), style) if style in ("csv", "json") else paper_table(result, style)


def paper_table(result: Any, style: str = "latex", *, answer: Answer | None = None, **options: Any) -> str:
    """Format results as a table with a caption that gives measures, k, n, method and seed.

    In Markdown, the verdict is above the table and caveats are below it; in LaTeX, they are comments above it.

    - ``result``: any result, or several of :func:`vbterrier.coverage_report` as a list; those of
      :func:`vbterrier.score`, :func:`vbterrier.evaluate_intents`, :func:`vbterrier.compare`,
      :func:`vbterrier.rank_systems`, :func:`vbterrier.evaluate.leaderboard`, :func:`vbterrier.coverage_report` and
      :func:`vbterrier.linking.linking_report` have tables of their own, others that of their ``to_frame()``. Or a
      frame, whose caption (sentences) and label are then options.
    - ``style``: ``"latex"`` (needs the package booktabs, and longtable if longer than a page), ``"markdown"`` (with the
      caption below, in Pandoc's syntax), ``"csv"`` or ``"json"`` (frames with all digits, and with methods and seeds in
      columns), or ``"table"``.
    - ``answer``: the answer of a frame or of several results; by default that of the result, if it has one.
    - ``**options``: ``topics=True`` for scores by topic, ``part="judges"`` for a part of a leaderboard, ``pairs=True``
      for the pairs of a ranking or of linking systems, ``per_query=True`` for coverage by topic, ``systems=True`` for
      the systems of a comparison in csv, ``compact=True`` for one table of a comparison (systems by measures, with
      marks of significance), with ``names=`` of systems and scores by measures without a test as ``beside=``.

    Raises ParameterError: another type of result, or an unknown style.
    """
    if isinstance(result, Shown):
        table, _ = _renderers(result)
        text, answer = table(result, style, **options), answer or result.answer()
    elif isinstance(result, pd.DataFrame):
        text = _frame(result, style, **options)
    else:
        text = system_tables.coverage_table(_reports(result), style, **options)
    return text if answer is None else with_answer(text, answer, style)


def _frame(frame: pd.DataFrame, style: str, *, caption: Sequence[str] = (), **options: Any) -> str:
    """Format a frame; of several rows, columns of the method that have one value are in the caption."""
    if style in ("csv", "json"):
        return format_table(frame, style)
    shared, rest = shared_caption(frame) if len(frame) > 1 else ("", frame)
    joined = joined_ends(rest, options.get("digits", 4))
    sentences = [*caption, *([f"{shared}."] if shared else [])]
    text = format_table(joined.set_axis(column_titles(joined.columns), axis=1), style, caption=sentences, **options)
    return "\n".join([text, *map(printable, sentences)]) if style == "table" else text


def _reports(result: Any) -> list[CoverageReport]:
    if isinstance(result, list) and result and all(isinstance(one, CoverageReport) for one in result):
        return result
    raise ParameterError(
        f"result: wanted a result, a list of those of coverage_report, or a frame; found {type(result).__name__}"
    )


def table_caption(result: Any, **options: Any) -> list[str]:
    """Return the caption of a table, for formats without one; options as for :func:`paper_table`."""
    if isinstance(result, Shown):
        _, caption = _renderers(result)
        return caption(result, **options)
    if isinstance(result, pd.DataFrame):
        return list(options.get("caption", []))
    return system_tables.coverage_caption(_reports(result), **options)


def save_table(result: Any, path: str | os.PathLike[str], *, answer: Answer | None = None, **options: Any) -> None:
    """Write a table in the format of the file's extension; the caption of a CSV file is written to a separate file.

    ``result``, ``answer``, ``**options``: as for :func:`paper_table`. ``path``: ends in .tex, .md, .csv, .json or .txt.
    The caption of ``means.csv`` is written to ``means.caption.txt``, since its lines would be rows of the CSV file.
    Raises ParameterError: another extension, or an object that is not a result. Raises FileError: the file cannot be
    written.
    """
    where = path_parameter("path", path)
    style = suffix_format(where)
    with width(None):
        pages = {where: paper_table(result, style, answer=answer, **options)}
    caption = table_caption(result, **options) if style == "csv" else []
    if caption:
        pages[where.with_suffix(".caption.txt")] = "\n".join(map(printable, caption))
    replace_files({target: f"{page}\n" for target, page in pages.items()})


def suffix_format(path: Path) -> str:
    """Return the format of a file's extension; refuse an unknown one."""
    styles = {suffix: style for suffix, style in SUFFIXES.items() if style != "page"}
    if path.suffix not in styles:
        raise ParameterError(f"{path}: wanted a name that ends in {', '.join(styles)}")
    return styles[path.suffix]
