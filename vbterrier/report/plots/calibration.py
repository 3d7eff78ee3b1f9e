"""Figures of calibration and of interval coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.evaluate import verdicts
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_integers
from vbterrier.intents.calibration import CalibrationError
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import axis_limits, few, figure_columns, refuse

if TYPE_CHECKING:
    from vbterrier.report.plots.style import Names


# Diameters in points of the mark of the largest bin, and of the smallest visible mark.
_MAX_MARK_POINTS, _MIN_MARK_POINTS = 9.0, 2.4
_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)
# Inches between the bars of estimators at one level, if levels are far enough apart.
_BAR_DISTANCE_INCHES = 0.05
_SHARES = ("level", "covered", "covered_low", "covered_high")


def reliability(bins: Any, *, method: Names = None, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Reliability diagram: observed shares against predicted probabilities; the area of a mark is the size of the bin.

    The caption has the expected calibration error ``ECE = Σ_b n_b/N |predicted_b - observed_b|`` of each method.

    Parameters
    ----------
    bins
        The result of :func:`vbterrier.intents.calibration.calibration_error`, or a frame: columns predicted and
        observed (means over the bin, 0 to 1; NaN in empty bins, which are not drawn), n (its size), and optionally
        method, one line for each. A mapping of methods to either draws them all.
    method
        Methods to draw; all by default.

    Examples
    --------
    >>> ax = reliability(pd.DataFrame({"predicted": [0.2, 0.8], "observed": [0.1, 0.9], "n": [30, 10]}))
    >>> ax.texts[-1].get_text()
    'ECE 0.100; 2 bins, area: bin size (10 to 30); n = 40'
    """
    frame = captions.only(_calibration_bins(bins), "method", method, "bins")
    parts = [(str(name), part) for name, part in frame.groupby("method", sort=False)]
    with style.canvas(ax, width, None if parts else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "bins")
        drawn.plot([0, 1], [0, 1], color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        largest = frame["n"].max()
        handles = [_draw_calibration(drawn, part, place, largest) for place, (_, part) in enumerate(parts)]
        drawn.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=_TICKS, yticks=_TICKS, aspect="equal")
        drawn.set(xlabel="predicted probability", ylabel="observed share")
        off = [(part["predicted"] - part["observed"]).abs() for _, part in parts]
        errors = [f"{np.average(gap, weights=part['n']):.3f}" for gap, (_, part) in zip(off, parts, strict=True)]
        error_text = errors[0]
        if len(parts) > 1:
            error_text = ", ".join(f"{error} ({name})" for (name, _), error in zip(parts, errors, strict=True))
            style.legend(drawn, handles, [name for name, _ in parts], style.cell(drawn)[0] - 0.5)
        n_bins, groups = verdicts.count_range_text(frame.groupby("method").size(), "bin"), frame.groupby("method")["n"]
        sizes = f"{n_bins}, area: bin size ({frame['n'].min():,} to {frame['n'].max():,})"
        n = "n = " + verdicts.count_range_text(groups.sum(), "").rstrip(" s") + " for each method" * (len(parts) > 1)
        style.caption(drawn, f"ECE {error_text}", sizes, n)
    return drawn


def _calibration_bins(bins: Any) -> pd.DataFrame:
    """Filled bins of one or more methods."""
    if not isinstance(bins, Mapping):
        return _checked_calibration(bins, "bins")
    parts = {str(method): _checked_calibration(bins, f"bins[{method!r}]") for method, bins in bins.items()}
    named = [method for method, part in parts.items() if (part["method"] != "").any()]
    if named:
        raise InputError(f"bins[{named[0]!r}]: the bins already have a column method; drop it, or pass them alone")
    none = pd.DataFrame({"predicted": [], "observed": [], "n": np.empty(0, dtype=np.int64)})
    empty = _checked_calibration(none, "bins")
    return pd.concat([empty, *(part.assign(method=method) for method, part in parts.items())], ignore_index=True)


def _checked_calibration(bins: Any, what: str) -> pd.DataFrame:
    """Validate bins and return the filled ones, columns method, n, predicted, observed."""
    frame = pandas_frame(bins.bins if isinstance(bins, CalibrationError) else bins, what)
    require(frame, ("predicted", "observed", "n"), what)
    n = column_integers(frame["n"], f"{what} column 'n'")
    filled = pd.DataFrame({"method": frame["method"].astype(str) if "method" in frame.columns else "", "n": n})
    for column in ("predicted", "observed"):
        filled[column] = captions.reals(frame[column], f"{what} column {column!r}")
        bad = (n < 0) | ((n > 0) & ~filled[column].between(0, 1).to_numpy())
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{what}: row {row} has n = {n[row]} and {column} = {filled[column].iloc[row]:g}; wanted numbers from "
                "0 to 1, and NaN in empty bins only"
            )
    return filled[filled["n"] > 0]


def _draw_calibration(ax: Any, part: pd.DataFrame, place: int, largest: int) -> Any:
    """Draw the line and the bins of one method; returns the handle of the legend."""
    from matplotlib.lines import Line2D

    colour, marker = style.look(place)
    ordered = part.sort_values("predicted", kind="stable")
    x, y = ordered["predicted"].to_numpy(), ordered["observed"].to_numpy()
    ax.plot(x, y, color=colour, linewidth=1.0, zorder=2)
    area = np.maximum(_MAX_MARK_POINTS**2 * ordered["n"].to_numpy() / largest, _MIN_MARK_POINTS**2)
    ax.scatter(x, y, s=area, color=colour, marker=marker, linewidths=0, zorder=3)
    return Line2D([], [], color=colour, marker=marker, markersize=4)


def interval_coverage(
    coverage: Any, *, estimator: Names = None, topics: str = "unjudged", ax: Any = None, width: float = style.COLUMN
) -> Any:
    """Observed against nominal coverage of intervals; intervals below the diagonal cover less than their level.

    The caption has the mean deviation ``Σ_levels |covered - level|/n_levels`` of each estimator, in percentage points.
    Estimators at one level are drawn side by side.

    Parameters
    ----------
    coverage
        Columns estimator, level (nominal, between 0 and 1), n (number of intervals; rows with 0 are not drawn), covered
        (the share that covers the truth), covered_low and covered_high (an interval of that share; NaN for none), and
        optionally topics, as :meth:`vbterrier.evaluate.simulation.Simulation.coverage` returns them.
    estimator
        Estimators to draw, each with its colour, at most seven; all by default.
    topics
        Rows to draw if there is a column topics: ``"unjudged"`` (run-topics with unjudged documents: the score of
        other run-topics is known) or ``"all"``.

    Examples
    --------
    >>> result = {"level": [0.5, 0.9], "n": 150, "covered": [0.4, 0.85]}
    >>> ends = {"covered_low": [0.3, 0.8], "covered_high": [0.5, 0.9]}
    >>> ax = interval_coverage(pd.DataFrame({"estimator": "mean", **result, **ends}))
    >>> " ".join(ax.texts[-1].get_text().split())
    'mean deviation 7.5 points; bars: intervals of the observed share; n = 150'
    """
    table = pandas_frame(coverage, "coverage")
    if "topics" in table.columns:
        table = captions.only(table, "topics", topics, "coverage")
    frame = captions.only(_checked_coverage(table), "estimator", estimator, "coverage")
    frame = frame.assign(**{column: 100 * frame[column] for column in _SHARES})
    parts = few(frame, "estimator")
    with style.canvas(ax, width, min(0.7 * width, 3.5) if parts else 0.5) as drawn:
        if not parts:
            return style.nothing(drawn, "coverage")
        limits, space = axis_limits(frame[["level"]], 0.1), style.cell(drawn)[0] - 0.5
        drawn.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        drawn.set(xlim=limits, ylim=axis_limits(frame[list(_SHARES)]))
        inch = (limits[1] - limits[0]) / space
        gaps = np.diff(np.unique(frame["level"]))
        # Bars of one level are closer to each other than to those of the next.
        step = float(min(_BAR_DISTANCE_INCHES * inch, 0.7 * gaps.min(initial=100.0) / len(parts)))
        places = (np.arange(len(parts)) - (len(parts) - 1) / 2) * step
        handles = []
        for place, (_, part) in enumerate(parts):
            colour, marker = style.look(place)
            x, y, low, high = part.sort_values("level", kind="stable")[list(_SHARES)].to_numpy().T
            has_interval, x = ~np.isnan(low), x + places[place]
            drawn.vlines(x[has_interval], low[has_interval], high[has_interval], color=colour, linewidth=0.9, zorder=2)
            handles += drawn.plot(x, y, color=colour, marker=marker, markersize=3.2, linewidth=0.6, zorder=3)
        # Levels are named from the highest down unless names overlap.
        levels, named = np.unique(frame["level"]), list[float]()
        for level in levels[::-1]:
            if not named or (named[-1] - level) / inch > style.text_width(f"{level:g}", style.SIZE) + 0.03:
                named.append(float(level))
        drawn.set_xticks(levels, [f"{level:g}" if level in named else "" for level in levels])
        drawn.set(xlabel="nominal level (%)", ylabel="observed coverage (%)")
        off = [f"{(part['covered'] - part['level']).abs().mean():.1f}" for _, part in parts]
        deviation_text = off[0]
        if len(parts) > 1:
            deviation_text = ", ".join(f"{one} ({name})" for one, (name, _) in zip(off, parts, strict=True))
            style.legend(drawn, handles, [name for name, _ in parts], space)
        bars = "bars: intervals of the observed share" if frame["covered_low"].notna().any() else ""
        n = "n = " + verdicts.count_range_text(frame["n"], "").rstrip(" s")
        style.caption(drawn, f"mean deviation {deviation_text} points", bars, n)
    return drawn


def _checked_coverage(coverage: pd.DataFrame) -> pd.DataFrame:
    """Validate coverage and return the rows with intervals, columns estimator, n and shares."""
    frame = figure_columns(coverage, "coverage", texts=("estimator",), reals=_SHARES, wholes=("n",))
    frame = frame[frame["n"] > 0].reset_index(drop=True)
    level, share, low, high = (frame[column] for column in _SHARES)
    checks = [
        (~level.between(0, 1, inclusive="neither"), "a level between 0 and 1"),
        (~share.between(0, 1), "a share covered from 0 to 1"),
        (low.isna() != high.isna(), "covered_low and covered_high, or NaN for both"),
        ((low > share) | (high < share), "covered_low <= covered <= covered_high"),
        (frame.duplicated(["estimator", "level"]), "each level of an estimator once"),
    ]
    refuse(frame, "coverage", _SHARES, checks, named="estimator")
    return frame
