"""Figures of systems and of estimates with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import few, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def forest(
    intervals: Any,
    *,
    measure: str | Sequence[str] | None = None,
    method: str | Sequence[str] | None = None,
    sort: bool = False,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Forest plot: a row for each system, with the point and the interval of each measure (Ding 2025, figures 3 and 4).

    Parameters
    ----------
    intervals
        The C frame: name, measure, value, low, high, level, method, n_qids, n_resamples, seed. Where it has a column
        ``mean`` (over replicas), the point is that and not the value. Rows with NaN for an interval are drawn as hollow
        points, rows with NaN for a value keep their place; the caption counts both.
    measure
        Measures to draw, as the frame spells them; all by default. Several share a row, each with its own mark.
    method
        Methods of intervals to draw; all by default, each with its own mark. There are seven marks in all.
    sort
        Best first by the first measure, instead of the order of the frame.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of systems.

    Returns
    -------
    matplotlib.axes.Axes
        With a caption that names topics, level, method, resamples and seed, and a line at 0 where VB is drawn.

    Raises
    ------
    InputError
        A frame that is no C frame; a row that stands twice; an interval with one end.
    ParameterError
        A measure or method that the frame does not have; more of both than there are marks.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"measure": "VB@10", "level": 0.95, "method": "topics (percentile)", "n_qids": 50, "n_resamples": 2000}
    >>> ends = {"name": ["bm25", "dense"], "value": [0.1, 0.3], "low": [-0.1, 0.2], "high": [0.2, 0.4]}
    >>> ax = forest(pd.DataFrame(ends).assign(**row, seed=0))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['bm25', 'dense'], 'VB@10')
    """
    frame = captions.only(captions.intervals_of(intervals), "measure", measure, "intervals")
    frame = captions.only(frame, "method", method, "intervals")
    series = [part for _, part in frame.groupby(["measure", "method"], sort=False)]
    _require_few(frame, len(series))
    names = _names(frame, series, sort=sort)
    row = _row_height(len(names), len(series))
    with style.canvas(ax, width, len(names) * row if names else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "intervals")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.7, 0.3) / len(names)
        taken = style.row_labels(drawn, names, row, 0.42 * across)
        texts, data = captions.short([str(part["measure"].iloc[0]) for part in series])
        if any(getattr(captions.parsed(text), "NAME", "") == "VB" for text in texts):
            drawn.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
        drawn.hlines(range(len(names)), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        marks = [
            _draw_forest(drawn, part, {name: at for at, name in enumerate(names)}, place, len(series), row)
            for place, part in enumerate(series)
        ]
        drawn.spines["left"].set_visible(False)
        room = across - taken - 0.15
        drawn.locator_params(axis="x", nbins=int(np.clip(room / 0.4, 2, 8)))
        drawn.set_xlabel(style.fitted(texts[0] if len(set(texts)) == 1 else "score", room))
        if len(series) > 1:
            style.legend(drawn, marks, _labels(texts, series), room)
        style.caption(drawn, captions.provenance(frame), data, captions.absent(frame["value"], frame["low"], "hollow"))
    return drawn


def _require_few(frame: pd.DataFrame, n_series: int) -> None:
    if n_series > len(style.COLOURS):
        measures, methods = (list(frame[column].unique()) for column in ("measure", "method"))
        raise ParameterError(
            f"{n_series} pairs of measures ({examples(measures, 8)}) and methods ({examples(methods)}) are more than "
            f"can be told apart; choose {len(style.COLOURS)} at most with measure= and method=, or draw panels with ax="
        )


def _names(frame: pd.DataFrame, series: list[pd.DataFrame], *, sort: bool) -> list[Any]:
    names = list(frame["name"].unique())
    if not (sort and series):
        return names
    first = series[0].set_index("name")["value"]
    return sorted(names, key=lambda name: -first.get(name, np.nan) if first.get(name) == first.get(name) else np.inf)


def _row_height(n_names: int, n_series: int) -> float:
    """Inches a system: roomy for few, as little as can be read for many."""
    roomy = 0.09 + 0.08 * n_series
    return float(np.clip(style.PAGE / max(n_names, 1), min(0.075, roomy), roomy))


def _labels(texts: list[str], series: list[pd.DataFrame]) -> list[str]:
    """Measures, with the method where a measure has several; of a single measure the methods alone."""
    methods = [str(part["method"].iloc[0]) for part in series]
    if len(set(texts)) == len(texts):
        return texts
    if len(set(texts)) == 1:
        return methods
    return [f"{text}, {method}" for text, method in zip(texts, methods, strict=True)]


def _draw_forest(ax: Any, part: pd.DataFrame, rows: dict[Any, int], place: int, n_series: int, row: float) -> Any:
    """One measure of all systems: its bars and points, beside those of the other measures; returns its mark."""
    colour, marker = style.look(place)
    size = float(np.clip(0.45 * 72 * row / n_series, 1.6, 4.0))
    step = 0.72 / n_series
    y = part["name"].map(rows).to_numpy() + (place - (n_series - 1) / 2) * step
    value, low, high = (part[column].to_numpy() for column in ("value", "low", "high"))
    known = ~np.isnan(low)
    ax.hlines(y[known], low[known], high[known], color=colour, linewidth=min(1.1, size / 2.4), zorder=2)
    look = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour, "markeredgewidth": 0.8}
    (mark,) = ax.plot(value[known], y[known], **look, zorder=3)
    ax.plot(value[~known], y[~known], **look, markerfacecolor="white", zorder=3)
    return mark


# Up to this many points marks are large and bars dark.
_SPARSE = 60
# A truth at the end of an interval is in it, however either was rounded.
_SLACK = 1e-9


def estimate_against_truth(
    estimates: Any,
    intervals: Any = None,
    *,
    estimator: str | Sequence[str] | None = None,
    level: float = 0.9,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Estimated against true scores: a point with its interval for each run and topic, hollow where that misses.

    The caption has ``RMSE = √(Σ (estimate - truth)²/n)``, the bias ``Σ (estimate - truth)/n``, and how many intervals
    hold the truth, ends included, among the points with unjudged documents: the others cannot miss it.

    Parameters
    ----------
    estimates
        Columns name, qid, estimator, truth, estimate, and optionally low and high (NaN where there is no interval),
        level (nominal, for the caption), and n_unjudged (documents; all points may have some where it is not there).
        Rows without truth or estimate are not drawn; the caption counts them.
    intervals
        Columns name, qid, estimator, level, low, high, and simulation where estimates have it: the intervals, where
        they stand in a frame of their own, as in :class:`vbterrier.evaluate.simulation.Simulation`.
    estimator
        Estimators to draw, each with its colour, seven at most; all by default.
    level
        Of ``intervals``, which may have several.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure, about a square: ``COLUMN`` (3.3), ``FULL`` (7).

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a number that is none; an interval twice, with one end, or with ends in the wrong order.
    ParameterError
        An estimator or level that the frames do not have; more estimators than can be told apart.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"name": "dense", "qid": ["q1", "q2"], "estimator": "mean", "truth": [0.5, 0.7]}
    >>> ax = estimate_against_truth(pd.DataFrame({**row, "estimate": [0.6, 0.7]}))
    >>> ax.texts[-1].get_text()
    'RMSE 0.071, bias +0.050; n = 2 run-topics'
    """
    frame = captions.only(_checked(_joined(estimates, intervals, level)), "estimator", estimator, "estimates")
    parts = few(frame, "estimator")
    points = [part.dropna(subset=["truth", "estimate"]) for _, part in parts]
    with style.canvas(ax, width, None if any(map(len, points)) else 0.5) as drawn:
        if not any(map(len, points)):
            return style.nothing(drawn, "estimates")
        limits = limits_of(frame[["truth", "estimate", "low", "high"]])
        drawn.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        handles = [_draw_estimates(drawn, part, place, sum(map(len, points))) for place, part in enumerate(points)]
        # A square in a wider place stands at its left, where the caption begins.
        drawn.set(xlim=limits, ylim=limits, aspect="equal", anchor="W")
        drawn.locator_params(nbins=6)
        drawn.set_xlabel("truth")
        drawn.set_ylabel("estimate")
        if len(parts) > 1:
            style.legend(drawn, handles, [name for name, _ in parts], style.cell(drawn)[0] - 0.5)
        said = [_errors(part) for part in points]
        if len(parts) > 1:
            said = [f"{name}: {errors}" for (name, _), errors in zip(parts, said, strict=True)]
        style.caption(drawn, *said, *_counts(frame, points))
    return drawn


def _joined(estimates: Any, intervals: Any, level: float) -> pd.DataFrame:
    """Estimates, with the intervals of one level where these are in a frame of their own."""
    frame = frame_of(estimates, "estimates")
    if intervals is None:
        return frame
    ends = frame_of(intervals, "intervals")
    keys = [key for key in ("simulation", "name", "qid", "estimator") if key in frame.columns or key != "simulation"]
    require(frame, keys, "estimates")
    require(ends, (*keys, "level", "low", "high"), "intervals")
    there = ends[np.isclose(ends["level"], level)]
    if not len(there):
        raise ParameterError(f"level={level:g}: intervals has {examples(ends['level'].unique(), 9)}")
    if there.duplicated(keys).any():
        raise InputError(
            f"intervals: {examples(there.loc[there.duplicated(keys), keys].iloc[0])} stands twice; keep one"
        )
    plain = frame.drop(columns=["low", "high", "level"], errors="ignore")
    return plain.merge(there[[*keys, "level", "low", "high"]], on=keys, how="left")


def _checked(given: pd.DataFrame) -> pd.DataFrame:
    """Estimates with their numbers checked; low, high and level NaN and n_unjudged -1 where the frame has none."""
    require(given, ("name", "qid", "estimator", "truth", "estimate"), "estimates")
    frame = pd.DataFrame({"estimator": captions.texts(given["estimator"], "estimates column 'estimator'")})
    for column in ("truth", "estimate", "low", "high", "level"):
        there = column in given.columns
        frame[column] = captions.reals(given[column], f"estimates column {column!r}") if there else np.nan
    there = "n_unjudged" in given.columns
    frame["n_unjudged"] = integers_of(given["n_unjudged"], "estimates column 'n_unjudged'") if there else -1
    bad = (frame["low"].isna() != frame["high"].isna()) | (frame["low"] > frame["high"])
    if bad.any():
        row = int(np.argmax(bad))
        name, qid = given["name"].iloc[row], given["qid"].iloc[row]
        raise InputError(
            f"estimates: row {row} ({name!r}, query {qid!r}) has the interval {frame['low'][row]:g} to "
            f"{frame['high'][row]:g}; wanted two ends in order, or NaN for both"
        )
    return frame


def _draw_estimates(ax: Any, part: pd.DataFrame, place: int, n_points: int) -> Any:
    """One estimator: its intervals and points; returns its mark."""
    colour, marker = style.look(place)
    size, dark = (3.5, 0.6) if n_points <= _SPARSE else (2.4, 0.35)
    x, y, low, high = (part[column].to_numpy() for column in ("truth", "estimate", "low", "high"))
    ax.vlines(x[high > low], low[high > low], high[high > low], color=colour, linewidth=0.5, alpha=dark, zorder=2)
    misses = _misses(part).to_numpy()
    look: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour}
    (mark,) = ax.plot(x[~misses], y[~misses], **look, markeredgewidth=0, zorder=3)
    ax.plot(x[misses], y[misses], **look, markerfacecolor="white", markeredgewidth=0.6, zorder=4)
    return mark


def _misses(part: pd.DataFrame) -> pd.Series[bool]:
    """Which points have their truth outside their interval; points without an interval have not."""
    return (part["truth"] < part["low"] - _SLACK) | (part["truth"] > part["high"] + _SLACK)


def _errors(part: pd.DataFrame) -> str:
    """Errors of an estimator, and how often its intervals hold the truth."""
    if not len(part):
        return "no estimates"
    error = part["estimate"] - part["truth"]
    said = f"RMSE {np.sqrt((error**2).mean()):.3f}, bias {error.mean():+.3f}"
    unsure = part[part["low"].notna() & (part["n_unjudged"] != 0)]
    if not len(unsure):
        return said
    held, levels = int((~_misses(unsure)).sum()), unsure["level"].unique()
    nominal = f", nominal {100 * levels[0]:g}%" if len(levels) == 1 and levels[0] == levels[0] else ""
    return f"{said}, truth in {held:,} of {len(unsure):,} intervals ({100 * held / len(unsure):.0f}%{nominal})"


def _counts(frame: pd.DataFrame, points: list[pd.DataFrame]) -> list[str]:
    """How many points there are, which are hollow, which are certain, and which are not there."""
    known = pd.Series([int((part["n_unjudged"] == 0).sum()) for part in points])
    sizes = pd.Series([len(part) for part in points])
    lost = len(frame) - int(sizes.sum())
    return [
        "hollow: truth outside" if any(_misses(part).any() for part in points) else "",
        f"n = {captions.counted(sizes, 'run-topic')}"
        + (" each" if len(points) > 1 else "")
        + (f", nothing unjudged in {captions.counted(known, '').rstrip(' s')}" if known.any() else ""),
        f"without truth or estimate: {lost:,}" if lost else "",
    ]
