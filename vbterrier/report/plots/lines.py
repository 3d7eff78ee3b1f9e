"""What figures of lines with bands share: who has a colour, how lines and bands look, where ticks stand.

Points are frames with the columns name (colour), line (dashes), at, value, low, high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError, examples
from vbterrier.frames.shown import counted
from vbterrier.report.plots import style
from vbterrier.report.plots.parts import varies

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

# From this ratio of the largest to the smallest place on, equal steps may be equal factors.
WIDE = 30
# Marks on a line: more would hide it.
_MARKS = 12
# Inches that an axis loses to labels beside it.
BESIDE = 0.55
# How much wider the last gap between sizes is than the first where sizes grow by factors.
_GROWS = 5
# Up to this many sizes ticks stand at some of them, whatever their numbers.
_FEW = 12
# Inches that a tick of the axis of sizes should have.
_TICK = 0.45


def chosen(points: pd.DataFrame, highlight: Sequence[str] | None) -> tuple[list[Any], list[Any]]:
    """The systems to colour, by default the seven highest at the end of the first line, and the others.

    Raises
    ------
    ParameterError
        A system to highlight that is not there; more than seven.
    """
    names, most = list(points["name"].unique()), len(style.COLOURS)
    if highlight is not None:
        strangers = [name for name in highlight if name not in names]
        if strangers or not 0 < len(highlight) <= most:
            raise ParameterError(
                f"highlight={list(highlight)!r}: wanted 1 to {most} systems of the scores, as {examples(names)}"
            )
        coloured = list(highlight)
    elif len(names) <= most:
        coloured = names
    else:
        first = points[points["line"] == points["line"].iloc[0]].sort_values("at", kind="stable")
        last = first.drop_duplicates("name", keep="last").sort_values("value", ascending=False, kind="stable")
        coloured = list(last["name"].iloc[:most])
    return coloured, [name for name in names if name not in coloured]


def draw(ax: Any, points: pd.DataFrame, lines: list[str], coloured: list[Any]) -> None:
    """Lines with bands; where there is one place only, marks with bars, side by side around it."""
    # Many bands over one another must still let the lines through.
    faint = 0.14 if len(coloured) * len(lines) <= 3 else 0.07  # noqa: PLR2004 - a look, not a rule
    parts = [part.sort_values("at", kind="stable") for _, part in points.groupby(["name", "line"], sort=False)]
    alone = not varies(points["at"])
    aside = (np.arange(len(parts)) - (len(parts) - 1) / 2) * (0.8 / len(parts) if alone else 0)
    if alone:
        ax.set_xlim(points["at"].iloc[0] - 0.6, points["at"].iloc[0] + 0.6)
    for part, shift in zip(parts, aside, strict=True):
        name, line = part["name"].iloc[0], part["line"].iloc[0]
        at, value, low, high = (part[column].to_numpy() for column in ("at", "value", "low", "high"))
        dash = style.DASHES[lines.index(line)]
        if name not in coloured:
            grey = {"marker": ".", "markersize": 2.5} if alone else {}
            ax.plot(at + shift, value, color=style.MUTED, linewidth=0.5, linestyle=dash, alpha=0.6, zorder=1, **grey)
            continue
        colour, marker = style.look(coloured.index(name))
        every = -(-len(at) // _MARKS)
        ax.plot(at + shift, value, color=colour, marker=marker, markersize=3, markevery=every, linestyle=dash, zorder=3)
        if len(at) > 1:
            ax.fill_between(at, low, high, color=colour, alpha=faint, linewidth=0, zorder=2)
        else:
            ax.vlines(at + shift, low, high, color=colour, linewidth=0.8, zorder=2)


def explain(ax: Any, coloured: Sequence[Any], n_others: int, lines: Sequence[str]) -> None:
    """A legend of colours, of what is grey, and of dashes where they differ."""
    from matplotlib.lines import Line2D

    handles, names = [], []
    for place, name in enumerate(coloured):
        colour, marker = style.look(place)
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=3))
        names.append(name)
    if n_others:
        handles.append(Line2D([], [], color=style.MUTED, linewidth=0.5))
        names.append(counted(n_others, "other"))
    if len(lines) > 1:
        handles += [Line2D([], [], color=style.INK, linestyle=style.DASHES[at]) for at in range(len(lines))]
        names += lines
    style.legend(ax, handles, names, style.cell(ax)[0] - 0.5)


def tick_places(ax: Any, places: Any) -> None:
    """Ticks at places, in rising order: as many as can be read."""
    inner = ax.transData + ax.transAxes.inverted()
    inches = inner.transform(np.column_stack([places, np.zeros(len(places))]))[:, 0] * (style.cell(ax)[0] - BESIDE)
    kept: list[int] = []
    for place in range(len(places)):
        if not kept or inches[place] - inches[kept[-1]] > style.text_width(f"{places[place]:g}", style.SIZE) + 0.04:
            kept.append(place)
    ax.set_xticks(places[kept], [f"{at:g}" for at in places[kept]])


def logarithmic(ax: Any) -> None:
    """Equal steps of the axis from left to right are equal factors."""
    ax.set_xscale("log")
    ax.minorticks_off()


def size_axis(ax: Any, sizes: pd.Series[int], *, grows: bool) -> None:
    """Ticks and label of the axis of sizes, which stand at equal steps where they grow by factors."""
    places = np.unique(sizes)
    if grows:
        logarithmic(ax)
        tick_places(ax, places if len(places) <= _FEW else _round(places))
    elif len(places) == 1:
        tick_places(ax, places)
    else:
        room = style.cell(ax)[0] - BESIDE
        ax.xaxis.get_major_locator().set_params(integer=True, nbins=int(np.clip(room / _TICK, 2, 9)))
    ax.set_xlabel("number of queries")


def grow(sizes: pd.Series[int]) -> bool:
    """Whether sizes are spaced by factors."""
    places = np.unique(sizes)
    gaps = np.diff(places)
    return len(gaps) > 1 and bool(places[-1] > WIDE * places[0] and gaps[-1] >= _GROWS * gaps[0])


def _round(places: Any) -> Any:
    """1, 2 and 5 times powers of ten within the range of places."""
    powers = 10 ** np.arange(np.floor(np.log10(places[0])), np.ceil(np.log10(places[-1])) + 1)
    numbers = np.outer(powers, [1, 2, 5]).ravel()
    inside = numbers[(numbers >= places[0]) & (numbers <= places[-1])].astype(np.int64)
    return inside if len(inside) > 1 else places
