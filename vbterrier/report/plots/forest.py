"""Figures of systems and of estimates with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.evaluate import verdicts
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_integers
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import MAX_LARGE_MARKS, axis_limits, few, points_in_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.report.plots.style import Names


# Marks: each colour of the palette with two of its markers.
_MAX_SERIES = 2 * len(style.COLOURS)


def forest(
    intervals: Any,
    *,
    measure: Names = None,
    method: Names = None,
    sort: bool = False,
    rules: Mapping[str, float] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Forest plot: a row for each system, with the point and the interval of each measure (Ding 2025, figures 3 and 4).

    Parameters
    ----------
    intervals
        The C frame. Points are at its column ``mean`` (over replicas) if it has one, else at ``value``. Rows with NaN
        for an interval are drawn as hollow points, rows with NaN for a value are empty; the caption counts both.
    measure, method
        Measures, as the frame spells them, and methods of intervals to draw, in all at most 14 pairs, each with its own
        mark; all by default.
    sort
        Sort by the first measure, highest first, instead of keeping the order of the frame.
    rules
        Values to mark by dotted lines, by their meaning, as ``{"no difference": 0, "margin": -0.02}``; the caption has
        both.

    Examples
    --------
    >>> row = {"measure": "VB@10", "level": 0.95, "method": "topics (percentile)", "n_qids": 50, "n_resamples": 2000}
    >>> ends = {"name": ["bm25", "dense"], "value": [0.1, 0.3], "low": [-0.1, 0.2], "high": [0.2, 0.4]}
    >>> ax = forest(pd.DataFrame(ends).assign(**row, seed=0))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['bm25', 'dense'], 'VB@10')
    """
    frame = captions.only(captions.valid_intervals(intervals), "measure", measure, "intervals")
    frame = captions.only(frame, "method", method, "intervals")
    series = [part for _, part in frame.groupby(["measure", "method"], sort=False)]
    if len(series) > _MAX_SERIES:
        measures, methods = (list(frame[column].unique()) for column in ("measure", "method"))
        raise ParameterError(
            f"{len(series)} pairs of measures ({examples(measures, 8)}) and methods ({examples(methods)}) are too many "
            f"for one figure; choose at most {_MAX_SERIES} with measure= and method=, or draw panels with ax="
        )
    names = list(frame["name"].unique())
    if sort and series:
        first = series[0].set_index("name")["value"].reindex(names).to_numpy(dtype=np.float64)
        names = [names[place] for place in np.argsort(-first, kind="stable")]
    # Rows are as high as comfortable for few systems, and as low as legible for many.
    comfortable = 0.09 + 0.08 * len(series)
    row = float(np.clip(style.PAGE / max(len(names), 1), min(0.075, comfortable), comfortable))
    with style.canvas(ax, width, len(names) * row if names else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "intervals")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.7, 0.3) / len(names)
        taken = style.row_labels(drawn, names, row, 0.42 * across)
        texts, data = captions.short([str(part["measure"].iloc[0]) for part in series])
        if any(getattr(verdicts.measure_from_name(text), "NAME", "") == "VB" for text in texts):
            drawn.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
        for value in (rules or {}).values():
            drawn.axvline(value, color=style.INK, linewidth=0.6, linestyle=":", zorder=1)
        drawn.hlines(range(len(names)), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        places = {name: at for at, name in enumerate(names)}
        marks = [
            points_in_rows(drawn, part, part["name"].map(places), part["low"].notna(), (at, len(series)), row)
            for at, part in enumerate(series)
        ]
        drawn.spines["left"].set_visible(False)
        space = across - taken - 0.15
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.4, 2, 8)))
        drawn.set_xlabel(style.fitted_text(texts[0] if len(set(texts)) == 1 else "score", space))
        if len(series) > 1:
            # The method if a measure has several; for a single measure, the methods only.
            methods, n_measures = [str(part["method"].iloc[0]) for part in series], len(set(texts))
            labels = [f"{text}, {method}" for text, method in zip(texts, methods, strict=True)]
            labels = texts if n_measures == len(texts) else methods if n_measures == 1 else labels
            style.legend(drawn, marks, labels, space)
        dotted = ", ".join(f"{value:g} ({meaning})" for meaning, value in (rules or {}).items())
        notes = data, f"dotted: {dotted}" if dotted else "", captions.absent(frame["value"], frame["low"], "hollow")
        style.caption(drawn, captions.provenance(frame), *notes)
    return drawn


def estimate_against_truth(
    estimates: Any,
    intervals: Any = None,
    *,
    estimator: Names = None,
    level: float = 0.9,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Estimated against true scores: a point with its interval for each run and topic, hollow if not covered.

    The caption has ``RMSE = √(Σ (estimate - truth)²/n)``, the bias ``Σ (estimate - truth)/n``, and the share of
    intervals that cover the truth, ends included, among points with unjudged documents: the score of other points is
    known.

    Parameters
    ----------
    estimates
        Columns name, qid, estimator, truth, estimate, and optionally low and high (NaN for no interval), level
        (nominal, for the caption), and n_unjudged (documents; without it, all points may have some). Rows without truth
        or estimate are not drawn; the caption counts them.
    intervals, level
        Columns name, qid, estimator, level, low, high, and simulation if the estimates have it: the intervals in a
        separate frame, as in :class:`vbterrier.evaluate.simulation.Simulation`; and the level to draw.
    estimator
        Estimators to draw, each with its colour, at most seven; all by default.

    Examples
    --------
    >>> row = {"name": "dense", "qid": ["q1", "q2"], "estimator": "mean", "truth": [0.5, 0.7]}
    >>> ax = estimate_against_truth(pd.DataFrame({**row, "estimate": [0.6, 0.7]}))
    >>> ax.texts[-1].get_text()
    'RMSE 0.071, bias +0.050; n = 2 run-topics'
    """
    frame = captions.only(
        _complete_estimates(_with_intervals(estimates, intervals, level)), "estimator", estimator, "estimates"
    )
    parts = few(frame, "estimator")
    points = [part.dropna(subset=["truth", "estimate"]) for _, part in parts]
    with style.canvas(ax, width, None if any(map(len, points)) else 0.5) as drawn:
        if not any(map(len, points)):
            return style.nothing(drawn, "estimates")
        limits = axis_limits(frame[["truth", "estimate", "low", "high"]])
        drawn.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        handles = [_draw_estimates(drawn, part, place, sum(map(len, points))) for place, part in enumerate(points)]
        # In a wider cell, a square is at the left, where the caption begins.
        drawn.set(xlim=limits, ylim=limits, aspect="equal", anchor="W", xlabel="truth", ylabel="estimate")
        drawn.locator_params(nbins=6)
        if len(parts) > 1:
            style.legend(drawn, handles, [name for name, _ in parts], style.cell(drawn)[0] - 0.5)
        error_notes = [_error_note(part) for part in points]
        if len(parts) > 1:
            error_notes = [f"{name}: {errors}" for (name, _), errors in zip(parts, error_notes, strict=True)]
        judged = pd.Series([int((part["n_unjudged"] == 0).sum()) for part in points])
        sizes = pd.Series([len(part) for part in points])
        lost = len(frame) - int(sizes.sum())
        style.caption(
            drawn,
            *error_notes,
            "hollow: truth not covered" if any(_excludes_truth(part).any() for part in points) else "",
            f"n = {verdicts.count_range_text(sizes, 'run-topic')}"
            + (" each" if len(points) > 1 else "")
            + (
                f", {verdicts.count_range_text(judged, '').rstrip(' s')} without unjudged documents"
                if judged.any()
                else ""
            ),
            f"without truth or estimate: {lost:,}" if lost else "",
        )
    return drawn


def _complete_estimates(estimates: pd.DataFrame) -> pd.DataFrame:
    """Validate estimates; missing columns low, high and level become NaN, n_unjudged becomes -1."""
    require(estimates, ("name", "qid", "estimator", "truth", "estimate"), "estimates")
    frame = pd.DataFrame({"estimator": captions.texts(estimates["estimator"], "estimates column 'estimator'")})
    for column in ("truth", "estimate", "low", "high", "level"):
        there = column in estimates.columns
        frame[column] = captions.reals(estimates[column], f"estimates column {column!r}") if there else np.nan
    there = "n_unjudged" in estimates.columns
    frame["n_unjudged"] = column_integers(estimates["n_unjudged"], "estimates column 'n_unjudged'") if there else -1
    bad = (frame["low"].isna() != frame["high"].isna()) | (frame["low"] > frame["high"])
    if bad.any():
        row = int(np.argmax(bad))
        name, qid = estimates["name"].iloc[row], estimates["qid"].iloc[row]
        raise InputError(
            f"estimates: row {row} ({name!r}, query {qid!r}) has the interval {frame['low'][row]:g} to "
            f"{frame['high'][row]:g}; wanted two ends in order, or NaN for both"
        )
    return frame


def _with_intervals(estimates: Any, intervals: Any, level: float) -> pd.DataFrame:
    """Estimates, with the intervals of one level if these are in a separate frame."""
    frame = pandas_frame(estimates, "estimates")
    if intervals is None:
        return frame
    ends = pandas_frame(intervals, "intervals")
    keys = [key for key in ("simulation", "name", "qid", "estimator") if key in frame.columns or key != "simulation"]
    require(frame, keys, "estimates")
    require(ends, (*keys, "level", "low", "high"), "intervals")
    there = ends[np.isclose(ends["level"], level)]
    if not len(there):
        raise ParameterError(f"level={level:g}: intervals has {examples(ends['level'].unique(), 9)}")
    twice = there.loc[there.duplicated(keys), keys]
    if len(twice):
        raise InputError(f"intervals: {examples(twice.iloc[0])} is duplicated; keep one")
    plain = frame.drop(columns=["low", "high", "level"], errors="ignore")
    return plain.merge(there[[*keys, "level", "low", "high"]], on=keys, how="left")


def _draw_estimates(ax: Any, part: pd.DataFrame, place: int, n_points: int) -> Any:
    """Draw the intervals and points of one estimator; returns its mark."""
    colour, marker = style.look(place)
    size, dark = (3.5, 0.6) if n_points <= MAX_LARGE_MARKS else (2.4, 0.35)
    x, y, low, high = (part[column].to_numpy() for column in ("truth", "estimate", "low", "high"))
    ax.vlines(x[high > low], low[high > low], high[high > low], color=colour, linewidth=0.5, alpha=dark, zorder=2)
    misses = _excludes_truth(part).to_numpy()
    look: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour}
    (mark,) = ax.plot(x[~misses], y[~misses], **look, markeredgewidth=0, zorder=3)
    ax.plot(x[misses], y[misses], **look, markerfacecolor="white", markeredgewidth=0.6, zorder=4)
    return mark


def _excludes_truth(part: pd.DataFrame) -> pd.Series[bool]:
    """Return True for points with the truth outside their interval; False for points without an interval."""
    return (part["truth"] < part["low"] - REPLICA_ROUNDING) | (part["truth"] > part["high"] + REPLICA_ROUNDING)


def _error_note(part: pd.DataFrame) -> str:
    """Part of the caption: errors of an estimator, and the coverage of its intervals."""
    if not len(part):
        return "no estimates"
    error = part["estimate"] - part["truth"]
    text = f"RMSE {np.sqrt((error**2).mean()):.3f}, bias {error.mean():+.3f}"
    unsure = part[part["low"].notna() & (part["n_unjudged"] != 0)]
    if not len(unsure):
        return text
    covered, levels = int((~_excludes_truth(unsure)).sum()), unsure["level"].unique()
    nominal = f", nominal {100 * levels[0]:g}%" if len(levels) == 1 and levels[0] == levels[0] else ""
    share = 100 * covered / len(unsure)
    return f"{text}, truth in {covered:,} of {len(unsure):,} intervals ({share:.0f}%{nominal})"
