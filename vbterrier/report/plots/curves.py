"""Figures of scores against the cutoff, the weight α of the penalty, and settings of the intents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, excerpt, warn
from vbterrier.evaluate import verdicts
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.measures.intents import VB
from vbterrier.report import captions
from vbterrier.report.plots import elements, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.report.plots.style import Names


# Axes: the parameter of measures that they show, and their label.
AXES = {"k": ("cutoff", "cutoff"), "alpha": ("alpha", "α, weight of the variance penalty")}


def curve(
    scores: Any,
    x: str = "k",
    *,
    measure: Names = None,
    method: str | None = None,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Mean scores against the cutoff k or against α, a line for each system and measure (Ding 2025, figure 2).

    Colours are systems, dashes are measures. With more than seven systems, those with the highest scores at the end
    are coloured and named in the legend; the other systems are grey.

    Parameters
    ----------
    scores
        The C frame, whose intervals are drawn as bands, and whose column ``mean`` (over replicas) is drawn instead of
        the value if it has one; or the V frame, whose means are drawn without bands.
    x
        ``"k"``: the cutoff of measures, as in ``"VB(alpha=0.5)@10"``; ``"alpha"``: their parameter alpha, where ES is
        VB with α = 0. Measures without it are omitted with a warning.
    measure
        Measures to draw, without their k or α, as ``"VB(alpha=0.5)"``; all by default.
    method
        Method of intervals to draw; by default the first of each measure.
    highlight
        Systems to colour, at most seven.

    Examples
    --------
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
        measures = _dashed_measures(points)
        coloured, rest = elements.split_by_highlight(points, highlight)
        if (points[["value", "low"]] < 0).any(axis=None):
            drawn.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
        elements.draw(drawn, points, measures, coloured)
        places = np.unique(points["at"])
        if x == "k" and places[-1] > elements.MIN_LOG_RATIO * places[0]:
            drawn.set_xscale("log")
            drawn.minorticks_off()
        elements.tick_places(drawn, places)
        drawn.set_xlabel(AXES[x][1])
        texts, data = captions.short(measures)
        if x == "k":
            texts = [f"{text}@k" for text in texts]
        else:
            texts = [text.replace("(", "(α,", 1) if "(" in text else text.replace("VB", "VB(α)", 1) for text in texts]
        drawn.set_ylabel(style.fitted_text(texts[0] if len(measures) == 1 else "score", 1.6))
        elements.explain(drawn, coloured, len(rest), texts)
        bare, picked = points["low"].isna().all(), elements.choice_caption(rest, highlight)
        missing = "no intervals" if bare else captions.absent(points["value"], points["low"], "no band")
        style.caption(drawn, captions.provenance(points), missing, picked, data)
    return drawn


def _dashed_measures(points: pd.DataFrame) -> list[str]:
    """Measures, each with its own dashes."""
    measures, most = list(points["line"].unique()), len(style.DASHES)
    if len(measures) > most:
        raise ParameterError(
            f"{len(measures)} measures are too many for one figure; choose at most {most} with measure="
        )
    return measures


def _rows(scores: Any, method: str | None) -> pd.DataFrame:
    """One row for each system and measure: a C frame with one method, or means of a V frame without intervals."""
    frame = pandas_frame(scores, "scores")
    if "qid" not in frame.columns:
        kept = captions.only(captions.valid_intervals(frame), "method", method, "intervals")
        return kept.drop_duplicates(["name", "measure"])
    require(frame, ("name", "qid", "measure", "value"), "values")
    twice = frame.duplicated(["name", "qid", "measure"])
    if twice.any():
        name, qid, measure = frame.loc[twice, ["name", "qid", "measure"]].iloc[0]
        raise InputError(f"values: {measure!r} of system {name!r} and query {qid!r} is duplicated; keep one row")
    columns = {name: captions.texts(frame[name], f"values column {name!r}") for name in ("name", "measure")}
    values = frame.assign(value=captions.reals(frame["value"], "values column 'value'"), **columns)
    groups = values.groupby(["name", "measure"], sort=False)["value"]
    means = groups.agg(value=lambda scores: scores.mean(skipna=False), n_qids="size").reset_index()
    none: dict[str, Any] = {"level": np.nan, "method": "none", "n_resamples": 0, "seed": 0, "replicated": False}
    return means.assign(low=np.nan, high=np.nan, **none)


def _points(frame: pd.DataFrame, x: str, selection: str | Sequence[str] | None) -> pd.DataFrame:
    """Rows with a position on the axis: ``at``, and ``line``, the measure without the parameter of the axis."""
    texts = frame["measure"]
    names = texts.unique()
    read = pd.DataFrame([_axis_position(text, x) for text in names], columns=["at", "line", "own"], index=names)
    # ES is a point on a line of VB, not a separate line.
    there = read["at"].notna() & read["line"].isin(read.loc[read["own"], "line"])
    if not there.any():
        raise ParameterError(f"x={excerpt(x)}: no measure has it; found {examples(read.index)}")
    if selection is None and not there.all():
        warn(f"x={x!r}: measures without it are left out: {examples(read.index[~there])}")
    points = frame.join(read, on="measure")[texts.map(there).to_numpy()]
    if selection is not None:
        lines = [_axis_position(one, x)[1] for one in ([selection] if isinstance(selection, str) else selection)]
        points = captions.only(points.assign(measure=points["line"]), "measure", lines, "scores")
    points = points.sort_values("own", ascending=False, kind="stable").drop_duplicates(["name", "line", "at"])
    return points.sort_index(kind="stable")


def _axis_position(text: str, x: str) -> tuple[float, str, bool]:
    """Position of a measure on the axis (NaN: none), its line, and True unless it is ES on a line of VB."""
    measure, param = verdicts.measure_from_name(text), AXES[x][0]
    name = getattr(measure, "NAME", "")
    if measure is None or (x == "alpha" and name not in ("VB", "ES")):
        return float("nan"), text, False
    if x == "alpha" and name == "ES":
        return 0.0, str(VB(**measure.params)), False
    at = captions.parameter(measure, param)
    return (float("nan"), text, False) if at is None else (float(at), str(captions.without(measure, param)), True)


# Short names of the settings of the intents, and their explanation in the caption.
SETTINGS = {
    "temperature": ("T", "temperature T"),
    "weight": ("w", "factor w of the weights of constraints"),
    "threshold": ("τ", "intents with π ≥ τ"),
    "n_intents": ("K", "the K most probable intents"),
    "mass": ("ρ", "intents with the mass ρ"),
}


def sensitivity(
    table: Any,
    *,
    measure: Names = None,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Mean scores against settings of the intents: a block for each parameter, a line for each system and measure.

    White marks are the scores for the intents as given. Colours are systems, dashes are measures.

    Parameters
    ----------
    table
        The result of :func:`vbterrier.evaluate.intent_sensitivity`.
    measure, highlight
        As for :func:`curve`.

    Examples
    --------
    >>> table = pd.DataFrame({"name": "bm25", "measure": "ES@10", "parameter": "temperature", "setting": [0.5, 1.0],
    ...                       "reference": [False, True], "value": [0.9, 0.8], "n_qids": 50})
    >>> [text.get_text() for text in sensitivity(table).get_xticklabels()]
    ['0.5', '1']
    """
    frame = pandas_frame(table, "table")
    columns = ["name", "measure", "parameter", "setting", "reference", "value", "n_qids"]
    require(frame, columns, "table")
    named = frame[columns].assign(measure=captions.texts(frame["measure"], "table column 'measure'"))
    frame = captions.only(named, "measure", measure, "table")
    with style.canvas(ax, width, min(0.5 * width, 2.6)) as drawn:
        if not len(frame):
            return style.nothing(drawn, "settings")
        places = frame[["parameter", "setting"]].drop_duplicates(ignore_index=True)
        places["block"] = places["parameter"].ne(places["parameter"].shift()).cumsum() - 1
        places["at"] = np.arange(len(places)) + 0.8 * places["block"]
        points = frame.merge(places).rename(columns={"measure": "line"}).assign(low=np.nan, high=np.nan)
        lines = _dashed_measures(points)
        coloured, rest = elements.split_by_highlight(points, highlight)
        for _, part in points.groupby("block"):
            elements.draw(drawn, part, lines, coloured)
        reference_points = points[points["reference"] & points["name"].isin(coloured)]
        edges = [style.look(coloured.index(name))[0] for name in reference_points["name"]]
        drawn.scatter(
            reference_points["at"],
            reference_points["value"],
            s=20,
            facecolors="white",
            edgecolors=edges,
            linewidths=0.8,
            zorder=4,
        )
        ends = places.groupby("block")["at"].agg(["min", "max"]).to_numpy()
        for between in (ends[1:, 0] + ends[:-1, 1]) / 2:
            drawn.axvline(between, color=style.RULE, linewidth=0.8, zorder=0)
        if (points["value"] < 0).any():
            drawn.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
        drawn.set_xlim(places["at"].iloc[0] - 0.6, places["at"].iloc[-1] + 0.6)
        texts = [f"{setting:g}" for setting in places["setting"]]
        drawn.set_xticks(places["at"], texts, rotation=90, fontsize=style.SMALL_TEXT_POINTS)
        # Names of the blocks, below the settings, also where both have the same position.
        drawn.xaxis.remove_overlapping_locs = False
        parameters = places.drop_duplicates("block")["parameter"].tolist()
        letters = [SETTINGS.get(name, (name, ""))[0] for name in parameters]
        drawn.set_xticks(ends.mean(axis=1), letters, minor=True)
        below = 72 * max(style.text_width(text, style.SMALL_TEXT_POINTS) for text in texts) + 6
        drawn.tick_params(axis="x", which="minor", length=0, pad=below, labelsize=style.SIZE, labelcolor=style.INK)
        names, data = captions.short(lines)
        drawn.set_ylabel(style.fitted_text(names[0] if len(names) == 1 else "score", 1.6))
        elements.explain(drawn, coloured, len(rest), names)
        descriptions = [SETTINGS[name][1] for name in parameters if name in SETTINGS]
        means = f"means of {verdicts.count_range_text(frame['n_qids'], 'topic')}; {', '.join(descriptions)}"
        style.caption(drawn, means, "white marks: intents as given", data)
    return drawn
