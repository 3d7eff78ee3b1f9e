"""Figures of calibration and of interval coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.intents.calibration import CalibrationError
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import few, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence


# Printer's points of the mark of the largest bin, and the least that is seen.
_LARGEST, _LEAST = 9.0, 2.4


def reliability(
    bins: Any, *, method: str | Sequence[str] | None = None, ax: Any = None, width: float = style.COLUMN
) -> Any:
    """Reliability diagram: observed shares against predicted probabilities, the area of a mark being the bin's size.

    The caption has the expected calibration error ``ECE = Σ_b n_b/N |predicted_b - observed_b|`` of each method.

    Parameters
    ----------
    bins
        What :func:`vbterrier.intents.calibration.calibration_error` gives, or a frame: columns predicted and observed
        (means over the bin, 0 to 1), n (its size), and optionally method, which gives each method its line. Empty bins
        (n = 0) may have NaN; they are not drawn. A mapping of methods to either draws them all.
    method
        Methods to draw; all by default.
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
        A missing column; a filled bin without numbers or with numbers outside [0, 1]; a mapping to bins that name
        methods themselves.
    ParameterError
        A method that the frame does not have.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = reliability(pd.DataFrame({"predicted": [0.2, 0.8], "observed": [0.1, 0.9], "n": [30, 10]}))
    >>> ax.texts[-1].get_text()
    'ECE 0.100; 2 bins, area of a mark: its size (10 to 30); n = 40'
    """
    frame = captions.only(_bins_of(bins), "method", method, "bins")
    parts = [(str(name), part) for name, part in frame.groupby("method", sort=False)]
    with style.canvas(ax, width, None if parts else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "bins")
        drawn.plot([0, 1], [0, 1], color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        largest = frame["n"].max()
        handles = [_draw_calibration(drawn, part, place, largest) for place, (_, part) in enumerate(parts)]
        drawn.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=_TICKS, yticks=_TICKS)
        drawn.set_aspect("equal")
        drawn.set_xlabel("predicted probability")
        drawn.set_ylabel("observed share")
        errors = [f"{_error(part):.3f}" for _, part in parts]
        said = errors[0]
        if len(parts) > 1:
            said = ", ".join(f"{error} ({name})" for (name, _), error in zip(parts, errors, strict=True))
            style.legend(drawn, handles, [name for name, _ in parts], style.cell(drawn)[0] - 0.5)
        style.caption(drawn, f"ECE {said}", *_sizes(frame, len(parts)))
    return drawn


_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)


def _bins_of(given: Any) -> pd.DataFrame:
    """The filled bins of one method or of several."""
    if not isinstance(given, Mapping):
        return _checked_calibration(given, "bins")
    parts = {str(method): _checked_calibration(bins, f"bins[{method!r}]") for method, bins in given.items()}
    named = [method for method, part in parts.items() if (part["method"] != "").any()]
    if named:
        raise InputError(f"bins[{named[0]!r}]: the bins have a column method themselves; drop it, or pass them alone")
    empty = _checked_calibration(
        pd.DataFrame({"predicted": [], "observed": [], "n": np.empty(0, dtype=np.int64)}), "bins"
    )
    return pd.concat([empty, *(part.assign(method=method) for method, part in parts.items())], ignore_index=True)


def _checked_calibration(bins: Any, what: str) -> pd.DataFrame:
    """The filled bins, columns method, n, predicted, observed."""
    frame = frame_of(bins.bins if isinstance(bins, CalibrationError) else bins, what)
    require(frame, ("predicted", "observed", "n"), what)
    n = integers_of(frame["n"], f"{what} column 'n'")
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
    """One method: its line and its bins; returns what stands for it in a legend."""
    colour, marker = style.look(place)
    ordered = part.sort_values("predicted", kind="stable")
    x, y = ordered["predicted"].to_numpy(), ordered["observed"].to_numpy()
    ax.plot(x, y, color=colour, linewidth=1.0, zorder=2)
    area = np.maximum(_LARGEST**2 * ordered["n"].to_numpy() / largest, _LEAST**2)
    ax.scatter(x, y, s=area, color=colour, marker=marker, linewidths=0, zorder=3)
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, markersize=4)


def _error(part: pd.DataFrame) -> float:
    """Expected calibration error over the bins that there are."""
    return float(np.average((part["predicted"] - part["observed"]).abs(), weights=part["n"]))


def _sizes(frame: pd.DataFrame, n_methods: int) -> list[str]:
    """The number of bins and the size of bins and sample."""
    n_bins = frame.groupby("method", sort=False).size()
    said = (
        captions.counted(n_bins, "bin") + f", area of a mark: its size ({frame['n'].min():,} to {frame['n'].max():,})"
    )
    total = frame.groupby("method", sort=False)["n"].sum()
    return [said, "n = " + captions.counted(total, "").rstrip(" s") + (" a method" if n_methods > 1 else "")]


# Inches between the bars of estimators at one level, if levels leave as much.
_APART = 0.05
_SHARES = ("level", "covered", "covered_low", "covered_high")


def interval_coverage(
    coverage: Any,
    *,
    estimator: str | Sequence[str] | None = None,
    topics: str = "unjudged",
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Observed against nominal coverage of intervals; below the diagonal they promise too much.

    The caption has the mean distance ``Σ_levels |covered - level|/n_levels`` of each estimator, in percent points.
    Estimators of one level stand side by side around it.

    Parameters
    ----------
    coverage
        Columns estimator, level (nominal, between 0 and 1), n (how many intervals were looked at), covered (the share
        that held the truth), covered_low and covered_high (an interval of that share, as a binomial's; NaN where there
        is none), and optionally topics, as :meth:`vbterrier.evaluate.simulation.Simulation.coverage` finds. Rows with
        n = 0 are not drawn.
    estimator
        Estimators to draw, each with its colour, seven at most; all by default.
    topics
        Which rows to draw where there is a column topics: ``"unjudged"`` (run-topics with something unjudged: the
        others cannot miss) or ``"all"``.
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
        A missing column; a level outside (0, 1), or twice; a share that is none, or outside its interval.
    ParameterError
        An estimator or topics that the frame does not have; more estimators than can be told apart.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> found = {"level": [0.5, 0.9], "n": 150, "covered": [0.4, 0.85]}
    >>> ends = {"covered_low": [0.3, 0.8], "covered_high": [0.5, 0.9]}
    >>> ax = interval_coverage(pd.DataFrame({"estimator": "mean", **found, **ends}))
    >>> " ".join(ax.texts[-1].get_text().split())
    'off by 7.5 points on average; bars: intervals of the observed share; n = 150'
    """
    given = frame_of(coverage, "coverage")
    if "topics" in given.columns:
        given = captions.only(given, "topics", topics, "coverage")
    frame = captions.only(_checked_coverage(given), "estimator", estimator, "coverage")
    frame = frame.assign(**{column: 100 * frame[column] for column in _SHARES})
    parts = few(frame, "estimator")
    with style.canvas(ax, width, min(0.7 * width, 3.5) if parts else 0.5) as drawn:
        if not parts:
            return style.nothing(drawn, "coverage")
        limits, room = limits_of(frame[["level"]], 0.1), style.cell(drawn)[0] - 0.5
        drawn.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        drawn.set(xlim=limits, ylim=limits_of(frame[list(_SHARES)]))
        inch = (limits[1] - limits[0]) / room
        places = (np.arange(len(parts)) - (len(parts) - 1) / 2) * _step(frame["level"], len(parts), inch)
        handles = [_draw_coverage(drawn, part, place, places[place]) for place, (_, part) in enumerate(parts)]
        _place_ticks(drawn, np.unique(frame["level"]), inch)
        drawn.set_xlabel("nominal level (%)")
        drawn.set_ylabel("observed coverage (%)")
        off = [f"{(part['covered'] - part['level']).abs().mean():.1f}" for _, part in parts]
        said = off[0]
        if len(parts) > 1:
            said = ", ".join(f"{one} ({name})" for one, (name, _) in zip(off, parts, strict=True))
            style.legend(drawn, handles, [name for name, _ in parts], room)
        bars = "bars: intervals of the observed share" if frame["covered_low"].notna().any() else ""
        style.caption(
            drawn, f"off by {said} points on average", bars, "n = " + captions.counted(frame["n"], "").rstrip(" s")
        )
    return drawn


def _checked_coverage(given: pd.DataFrame) -> pd.DataFrame:
    """The rows that tell of some interval, columns estimator, n and shares."""
    require(given, ("estimator", "n", *_SHARES), "coverage")
    frame = pd.DataFrame({"estimator": captions.texts(given["estimator"], "coverage column 'estimator'")})
    frame["n"] = integers_of(given["n"], "coverage column 'n'")
    for column in _SHARES:
        frame[column] = captions.reals(given[column], f"coverage column {column!r}")
    frame = frame[frame["n"] > 0].reset_index(drop=True)
    level, share, low, high = (frame[column] for column in _SHARES)
    for bad, wanted in (
        (~level.between(0, 1, inclusive="neither"), "a level between 0 and 1"),
        (~share.between(0, 1), "a share covered from 0 to 1"),
        (low.isna() != high.isna(), "covered_low and covered_high, or NaN for both"),
        ((low > share) | (high < share), "covered_low <= covered <= covered_high"),
        (frame.duplicated(["estimator", "level"]), "each level of an estimator once"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            found = ", ".join(f"{column} {frame[column][row]:g}" for column in _SHARES)
            raise InputError(f"coverage: row {row} ({frame['estimator'][row]!r}) has {found}; wanted {wanted}")
    return frame


def _step(levels: pd.Series[float], n_parts: int, inch: float) -> float:
    """How far apart the bars of one level stand, so that those of the next are apart too."""
    gaps = np.diff(np.unique(levels))
    return float(min(_APART * inch, 0.7 * gaps.min(initial=100.0) / n_parts))


def _draw_coverage(ax: Any, part: pd.DataFrame, place: int, aside: float) -> Any:
    """One estimator: its bars and points; returns what stands for it in a legend."""
    colour, marker = style.look(place)
    x, y, low, high = part.sort_values("level", kind="stable")[list(_SHARES)].to_numpy().T
    known = ~np.isnan(low)
    ax.vlines(x[known] + aside, low[known], high[known], color=colour, linewidth=0.9, zorder=2)
    (line,) = ax.plot(x + aside, y, color=colour, marker=marker, markersize=3.2, linewidth=0.6, zorder=3)
    return line


def _place_ticks(ax: Any, levels: Any, inch: float) -> None:
    """Ticks at the levels, of which the highest are named first where there is no room for all."""
    named: list[float] = []
    for level in levels[::-1]:
        if not named or (named[-1] - level) / inch > style.text_width(f"{level:g}", style.SIZE) + 0.03:
            named.append(float(level))
    ax.set_xticks(levels, [f"{level:g}" if level in named else "" for level in levels])
