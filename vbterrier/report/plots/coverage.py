"""Whether intervals hold what they promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.report.plots import style, words
from vbterrier.report.plots.parts import few, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        is none), and optionally topics, as :meth:`vbterrier.evaluate.simulations.Simulation.coverage` finds. Rows with
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
        given = words.only(given, "topics", topics, "coverage")
    frame = words.only(_checked(given), "estimator", estimator, "coverage")
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
        handles = [_draw(drawn, part, place, places[place]) for place, (_, part) in enumerate(parts)]
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
            drawn, f"off by {said} points on average", bars, "n = " + words.counted(frame["n"], "").rstrip(" s")
        )
    return drawn


def _checked(given: pd.DataFrame) -> pd.DataFrame:
    """The rows that tell of some interval, columns estimator, n and shares."""
    require(given, ("estimator", "n", *_SHARES), "coverage")
    frame = pd.DataFrame({"estimator": words.texts(given["estimator"], "coverage column 'estimator'")})
    frame["n"] = integers_of(given["n"], "coverage column 'n'")
    for column in _SHARES:
        frame[column] = words.reals(given[column], f"coverage column {column!r}")
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


def _draw(ax: Any, part: pd.DataFrame, place: int, aside: float) -> Any:
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
