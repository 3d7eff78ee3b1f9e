"""Scores as tables: means with their intervals, or topics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.evaluate.intents import IntentEvaluation
from vbterrier.report import latex
from vbterrier.report.captions import best_rows, of_measures, topics_of
from vbterrier.report.tables import TAGGING, captioned, footing, per_query, rendered, summary
from vbterrier.report.wide import MOST, brackets, by_measure

if TYPE_CHECKING:
    from vbterrier.evaluate.scores import Scores


def scores_report(scores: Scores, style: str, *, topics: bool = False) -> str:
    """Means with intervals, how these came about, and what the tags of an evaluation by intents allow.

    Parameters
    ----------
    scores
        What :func:`vbterrier.score` or :func:`vbterrier.evaluate_intents` found.
    style
        One of :data:`vbterrier.report.tables.FORMATS`; csv and json hold the frame alone.
    topics
        A row for each system and topic in place of means.

    >>> from vbterrier.evaluate.scores import score
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "label": [1, 1]})
    >>> run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "new"], "score": [1.0, 1.0]})
    >>> print(scores_report(score({"mine": run}, qrels, ["RR"]), "markdown", topics=True))
    | run | qid | RR |
    |:---|:---|---:|
    | mine | q1 | 1.0000 |
    | mine | q2 | 0.0000 |
    <BLANKLINE>
    Table: Scores of each of 2 topics: RR.
    """
    if style in ("csv", "json"):
        return rendered(per_query(scores, style) if topics else summary(scores, style), style)
    if topics:
        caption = scores_caption(scores, topics=True)
        return rendered(per_query(scores, style), style, caption=caption, label="tab:topics")
    parts = [_means(scores, style)]
    if style == "table":
        parts.append(footing(scores))
    if isinstance(scores, IntentEvaluation):
        parts.append(_tagging(scores, style))
    return ("\n" if style == "table" else "\n\n").join(parts)


def scores_caption(scores: Scores, *, topics: bool = False) -> list[str]:
    """What the means are of, how intervals came about, and what is missing."""
    found = scores.intervals
    if topics:
        n = scores.values["qid"].nunique()
        return of_measures(f"Scores of each of {topics_of([n])}", scores.values["measure"].unique())
    said = of_measures(f"Means over {topics_of(found['n_qids'])}", found["measure"].unique())
    if footing(scores):
        levels = " and ".join(f"{100 * level:g}%" for level in found.loc[found["method"] != "none", "level"].unique())
        said.append(f"Intervals, {levels}: {footing(scores)}.")
    if best_rows(_ones(scores)).any():
        said.append("The best mean of a measure is bold.")
    late = scores.missing[scores.missing["n_missing"] > 0]
    said += [
        f"{row['name']} retrieved nothing for {topics_of([row['n_missing']])}, scored as empty rankings."
        for row in late.to_dict("records")
    ]
    return said


def _means(scores: Scores, style: str) -> str:
    if style == "latex" and scores.intervals["measure"].nunique() <= MOST:
        return captioned(_wide(scores), style, scores_caption(scores), "tab:scores")
    best = _best(scores)
    table = summary(scores, style)
    keys = zip(table["run"], table["measure"], strict=True)
    bold = [(row, "mean") for row, key in enumerate(keys) if key in best]
    if style == "latex":
        # The caption has the rest.
        table = table.drop(columns=["topics", "missing"]).rename(columns=lambda name: str(name).partition(" (")[0])
    return rendered(table, style, caption=scores_caption(scores), label="tab:scores", bold=bold)


def _ones(scores: Scores) -> pd.DataFrame:
    """A row a system and measure."""
    return scores.intervals.drop_duplicates(["name", "measure"])


def _best(scores: Scores) -> set[tuple[str, str]]:
    ones = _ones(scores)
    return set(ones.loc[best_rows(ones), ["name", "measure"]].itertuples(index=False, name=None))


def _wide(scores: Scores) -> str:
    best, ones = _best(scores), _ones(scores)
    cells = [
        rf"\textbf{{{latex.number(f'{value:.4f}')}}}" if (name, measure) in best else latex.number(f"{value:.4f}")
        for name, measure, value in zip(ones["name"], ones["measure"], ones["value"], strict=True)
    ]
    kinds = []
    for method, frame in scores.intervals.groupby("method", sort=False):
        if method != "none":
            index = pd.MultiIndex.from_frame(frame[["name", "measure"]])
            means = frame["mean"] if "mean" in frame.columns else [math.nan] * len(frame)
            texts = pd.Series(map(_ends, frame["low"], frame["high"], means), index=index)
            # The caption has the rest of the method.
            source, _, _ = str(method).partition(" (")
            kinds.append((latex.escaped(f"{100 * frame['level'].iloc[0]:g}% {source}"), texts))
    shown = {name: latex.escaped(name) for name in ones["name"].unique()}
    return by_measure(ones.assign(cell=cells), kinds, shown)


def _ends(low: float, high: float, mean: float) -> str:
    # Replicas lie around their own mean, which noise may have moved away from the score.
    said = brackets(low, high)
    return said if math.isnan(mean) or not said else f"{said}, mean {latex.number(f'{mean:.4f}')}"


def _tagging(scores: IntentEvaluation, style: str) -> str:
    caption = [f"How far tags reach: {TAGGING}."]
    table = rendered(scores.tagging, style, caption=caption, label="tab:tagging")
    return f"\n{table}\n{TAGGING}" if style == "table" else table
