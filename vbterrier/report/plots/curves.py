"""Scores against the cutoff and against the weight of the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.parameters import choice
from vbterrier.measures.intents import VB
from vbterrier.report import captions
from vbterrier.report.plots import elements, style

if TYPE_CHECKING:
    from collections.abc import Sequence


# What each axis is called, and the parameter of measures that it shows.
AXES = {"k": ("cutoff", "cutoff k"), "alpha": ("alpha", "α, weight of the variance penalty")}


def curve(
    scores: Any,
    x: str = "k",
    *,
    measure: str | Sequence[str] | None = None,
    method: str | None = None,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Mean scores against the cutoff k or against α, a line for each system and measure (Ding 2025, figure 2).

    Colours are systems, dashes are measures. Of more than seven systems those with the highest scores at the end have
    a colour and a place in the legend, and the others are grey.

    Parameters
    ----------
    scores
        The C frame (name, measure, value, low, high, level, method, n_qids, n_resamples, seed), whose intervals become
        bands, and whose column ``mean`` (over replicas) is drawn where it has one; or the V frame (name, qid, measure,
        value), whose means are drawn without bands.
    x
        ``"k"`` reads it from the cutoff of measures, as in ``"VB(alpha=0.5)@10"``; ``"alpha"`` from their parameter
        alpha, where ES counts as VB with α = 0. Measures without it are left out with a warning.
    measure
        Measures to draw, their k or α being of no account, as ``"VB(alpha=0.5)"``; all by default.
    method
        The method of intervals to draw; by default the first of each measure.
    highlight
        Systems to colour, seven at most.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7).

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A frame that is neither; a score that stands twice.
    ParameterError
        No measure has the parameter; a measure, method or system that the frame does not have.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> values = pd.DataFrame({"name": "bm25", "qid": "q1", "measure": ["ES@1", "ES@5"], "value": [0.5, 0.75]})
    >>> curve(values).lines[0].get_xydata().tolist()
    [[1.0, 0.5], [5.0, 0.75]]
    """
    choice("x", x, AXES)
    frame = _rows(scores, method)
    with style.canvas(ax, width, min(0.55 * width, 3.0)) as drawn:
        if not len(frame):
            return style.nothing(drawn, "scores")
        points = _points(frame, x, measure)
        measures = list(points["line"].unique())
        if len(measures) > len(style.DASHES):
            raise ParameterError(f"{len(measures)} measures are more than can be told apart; choose some with measure=")
        coloured, rest = elements.chosen(points, highlight)
        if (points[["value", "low"]] < 0).any(axis=None):
            drawn.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
        elements.draw(drawn, points, measures, coloured)
        _place_ticks(drawn, points["at"], x)
        drawn.set_xlabel(AXES[x][1])
        texts, data = captions.short(measures)
        texts = [_lettered(text, x) for text in texts]
        drawn.set_ylabel(style.fitted(texts[0] if len(measures) == 1 else "score", 1.6))
        elements.explain(drawn, coloured, len(rest), texts)
        style.caption(drawn, *_described(points, len(rest), picked=highlight is not None), data)
    return drawn


def _rows(scores: Any, method: str | None) -> pd.DataFrame:
    """A row a system and measure: C frames with one method each, means of V frames with NaN for the rest."""
    frame = frame_of(scores, "scores")
    if "qid" not in frame.columns:
        kept = captions.only(captions.intervals_of(frame), "method", method, "intervals")
        return kept.drop_duplicates(["name", "measure"])
    require(frame, ("name", "qid", "measure", "value"), "values")
    twice = frame.duplicated(["name", "qid", "measure"])
    if twice.any():
        name, qid, measure = frame.loc[twice, ["name", "qid", "measure"]].iloc[0]
        raise InputError(f"values: {measure!r} of system {name!r} and query {qid!r} stands twice; keep one row")
    columns = {name: captions.texts(frame[name], f"values column {name!r}") for name in ("name", "measure")}
    values = frame.assign(value=captions.reals(frame["value"], "values column 'value'"), **columns)
    means = values.groupby(["name", "measure"], sort=False)["value"].agg(
        value=lambda scores: scores.mean(skipna=False), n_qids="size"
    )
    return means.reset_index().assign(
        low=np.nan, high=np.nan, level=np.nan, method="none", n_resamples=0, seed=0, replicated=False
    )


def _points(frame: pd.DataFrame, x: str, wanted: str | Sequence[str] | None) -> pd.DataFrame:
    """The rows that have a place on the axis: ``at``, and ``line``, the measure less the parameter of the axis."""
    texts = frame["measure"]
    read = pd.DataFrame(
        [_read(text, x) for text in texts.unique()], columns=["at", "line", "own"], index=texts.unique()
    )
    # ES is a point of a line of VB, and no line of its own.
    there = read["at"].notna() & read["line"].isin(read.loc[read["own"], "line"])
    if not there.any():
        raise ParameterError(f"x={x!r}: no measure has it; found {examples(read.index)}")
    if wanted is None and not there.all():
        left_out = examples(read.index[~there])
        warn(f"x={x!r}: measures without it are left out: {left_out}")
    points = frame.join(read, on="measure")[texts.map(there).to_numpy()]
    if wanted is not None:
        asked = [_read(one, x)[1] for one in ([wanted] if isinstance(wanted, str) else wanted)]
        points = captions.only(points.assign(measure=points["line"]), "measure", asked, "scores")
    points = points.sort_values("own", ascending=False, kind="stable").drop_duplicates(["name", "line", "at"])
    return points.sort_index(kind="stable")


def _read(text: str, x: str) -> tuple[float, str, bool]:
    """Place of a measure on the axis (NaN: none), its line, and whether it is a measure of that line itself."""
    measure, param = captions.parsed(text), AXES[x][0]
    name = getattr(measure, "NAME", "")
    if measure is None or (x == "alpha" and name not in ("VB", "ES")):
        return float("nan"), text, False
    if x == "alpha" and name == "ES":
        return 0.0, str(VB(**measure.params)), False
    at = captions.parameter(measure, param)
    return (float("nan"), text, False) if at is None else (float(at), str(captions.without(measure, param)), True)


def _place_ticks(ax: Any, values: pd.Series[float], x: str) -> None:
    """Ticks where there are points, as many as can be read."""
    places = np.unique(values)
    if x == "k" and places[-1] > elements.WIDE * places[0]:
        elements.logarithmic(ax)
    elements.tick_places(ax, places)


def _lettered(line: str, x: str) -> str:
    """The name of a line with the letter of the axis in the place of its parameter."""
    return (
        f"{line}@k" if x == "k" else line.replace("VB", "VB(α)", 1) if "(" not in line else line.replace("(", "(α,", 1)
    )


def _described(points: pd.DataFrame, n_others: int, *, picked: bool) -> list[str]:
    """What the caption says of intervals and of systems in grey."""
    bare = bool(points["low"].isna().all())
    return [
        captions.provenance(points),
        "no intervals" if bare else captions.absent(points["value"], points["low"], "no band"),
        f"in colour: the {len(style.COLOURS)} highest at the end" if n_others and not picked else "",
    ]
