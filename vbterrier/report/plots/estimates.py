"""Estimates with their intervals, held against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.report.plots import style, words
from vbterrier.report.plots.parts import few, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        they stand in a frame of their own, as in :class:`vbterrier.evaluate.simulations.Simulation`.
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
    frame = words.only(_checked(_joined(estimates, intervals, level)), "estimator", estimator, "estimates")
    parts = few(frame, "estimator")
    points = [part.dropna(subset=["truth", "estimate"]) for _, part in parts]
    with style.canvas(ax, width, None if any(map(len, points)) else 0.5) as drawn:
        if not any(map(len, points)):
            return style.nothing(drawn, "estimates")
        limits = limits_of(frame[["truth", "estimate", "low", "high"]])
        drawn.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        handles = [_draw(drawn, part, place, sum(map(len, points))) for place, part in enumerate(points)]
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
    frame = pd.DataFrame({"estimator": words.texts(given["estimator"], "estimates column 'estimator'")})
    for column in ("truth", "estimate", "low", "high", "level"):
        there = column in given.columns
        frame[column] = words.reals(given[column], f"estimates column {column!r}") if there else np.nan
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


def _draw(ax: Any, part: pd.DataFrame, place: int, n_points: int) -> Any:
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
        f"n = {words.counted(sizes, 'run-topic')}"
        + (" each" if len(points) > 1 else "")
        + (f", nothing unjudged in {words.counted(known, '').rstrip(' s')}" if known.any() else ""),
        f"without truth or estimate: {lost:,}" if lost else "",
    ]
