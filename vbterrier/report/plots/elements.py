"""Elements shared by figures: input checks, lines with bands, axes, margins and legends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_integers
from vbterrier.frames.notebook import count_text
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.report import captions
from vbterrier.report.plots import style

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# From this ratio of the largest to the smallest value on, an axis may be logarithmic.
MIN_LOG_RATIO = 30
# With a larger ratio of the largest to the smallest value, axes of ratios and of unequal sizes are logarithmic.
MAX_LINEAR_RATIO = 5
# Up to this many points, marks are large and bars dark.
MAX_LARGE_MARKS = 60
# The share of its row that the highest bar fills.
FILLED_ROW_SHARE = 0.86
# The largest number of markers on a line.
_MAX_LINE_MARKERS = 12
# Inches that an axis loses to its tick labels.
BESIDE = 0.55
# Sizes grow by factors if the last gap is this many times the first.
_GROWS = 5
# Up to this many sizes, ticks are at sizes, not at round numbers.
_MAX_LABELLED_SIZES = 12
# Inches for a tick of the axis of sizes.
_TICK = 0.45


def few(frame: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    """Split a frame by a column, in order of appearance; refuse more parts than colours."""
    parts = [(str(name), part) for name, part in frame.groupby(column, sort=False)]
    if len(parts) > len(style.COLOURS):
        raise ParameterError(
            f"{len(parts)} {column}s ({examples([name for name, _ in parts])}) are too many for one figure; choose at "
            f"most {len(style.COLOURS)} with {column}="
        )
    return parts


def axis_limits(numbers: pd.DataFrame, beyond: float = 0.04) -> tuple[float, float]:
    """Limits of an axis: the range of the numbers and a margin."""
    least, most = float(np.nanmin(numbers.to_numpy())), float(np.nanmax(numbers.to_numpy()))
    margin = beyond * (most - least) or 0.05
    return least - margin, most + margin


def round_up(number: float) -> float:
    """Return the next larger 1, 2 or 5 times a power of ten."""
    power = float(10.0 ** np.floor(np.log10(number)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number)


def varies(column: pd.Series[Any]) -> bool:
    """Return True if a column has more than one value."""
    return bool((column != column.iloc[0]).any()) if len(column) else False


def kinds(frame: pd.DataFrame, *columns: str) -> list[Any]:
    """Distinct rows of some columns, in order of appearance."""
    groups: list[Any] = frame[list(columns)].drop_duplicates().to_numpy(dtype=object).tolist()
    return groups


def figure_columns(
    data: Any, what: str, *, texts: Sequence[str] = (), reals: Sequence[str] = (), wholes: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the columns that a figure draws, with validated types and rows numbered from 0."""
    frame = pandas_frame(data, what)
    require(frame, (*texts, *reals, *wholes), what)
    read = [(texts, captions.texts), (reals, captions.reals), (wholes, column_integers)]
    return pd.DataFrame(
        {name: convert(frame[name], f"{what} column {name!r}") for names, convert in read for name in names}
    )


def refuse(
    frame: pd.DataFrame, what: str, shown: Sequence[str], checks: Iterable[tuple[Any, str]], named: str = ""
) -> None:
    """Raise InputError for the first row (numbered from 0) that violates one of the checks.

    ``shown``: columns that the message quotes. ``checks``: masks of bad rows, and what is wanted instead. ``named``:
    the column that names the row.
    """
    for bad, requirement in checks:
        if np.any(bad):
            row = int(np.argmax(bad))
            name_of_row = f" ({frame[named].iloc[row]!r})" if named else ""
            cells = [(name, frame[name].iloc[row]) for name in shown]
            texts = [f"{name} {value!r}" if isinstance(value, str) else f"{name} {value:g}" for name, value in cells]
            raise InputError(f"{what}: row {row}{name_of_row} has {', '.join(texts)}; wanted {requirement}")


def band_checks(frame: pd.DataFrame, value: str, keys: Sequence[str]) -> list[tuple[Any, str]]:
    """Checks of a value with a band around it for each number of queries."""
    low, high, slack = frame["low"], frame["high"], REPLICA_ROUNDING
    return [
        (low.isna() != high.isna(), "low and high, or NaN for both"),
        ((low > frame[value] + slack) | (frame[value] > high + slack) | (low > high), f"low <= {value} <= high"),
        (frame["n_qids"] < 1, "at least 1 query"),
        (frame.duplicated(list(keys)), "each size once"),
    ]


def beside_rows(ax: Any, texts: Sequence[str], head: str) -> float:
    """Print texts right of the named rows, under a heading, in small type; returns their width."""
    named = [int(place) for place in ax.get_yticks()]
    size = min(style.SMALL_TEXT_POINTS, ax.get_yticklabels()[0].get_fontsize())
    shown = [texts[place] for place in named]
    taken = max(style.text_width(text, size) for text in shown) + 0.06
    look = {"color": style.INK, "ha": "right", "annotation_clip": False, "textcoords": "offset points"}
    for place, text in zip(named, shown, strict=True):
        at = {"xy": (1, place), "xycoords": ax.get_yaxis_transform(), "xytext": (72 * taken, 0)}
        ax.annotate(text, **at, **look, va="center_baseline", fontsize=size)
    ax.annotate(
        head, (1, 1), xycoords="axes fraction", xytext=(72 * taken, 2), **look, fontsize=style.SMALL_TEXT_POINTS
    )
    return taken


def points_in_rows(
    ax: Any, part: pd.DataFrame, rows: pd.Series[int], filled: pd.Series[bool], series: tuple[int, int], height: float
) -> Any:
    """Draw the points and intervals of one of several series in their rows; returns the mark of the series.

    ``part``: value, low, high. ``filled``: True for filled points. ``series``: the number of the series and the number
    of series, which are drawn side by side. ``height``: height of a row in inches.
    """
    place, n_series = series
    colour, marker = style.look(place)
    size = float(np.clip(0.45 * 72 * height / n_series, 1.6, 4.0))
    y = rows.to_numpy() + (place - (n_series - 1) / 2) * (0.72 / n_series)
    value, low, high = (part[column].to_numpy() for column in ("value", "low", "high"))
    has_interval, full = ~np.isnan(low), filled.to_numpy()
    ax.hlines(
        y[has_interval], low[has_interval], high[has_interval], color=colour, linewidth=min(1.1, size / 2.4), zorder=2
    )
    look = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour, "markeredgewidth": 0.8}
    (mark,) = ax.plot(value[full], y[full], **look, zorder=3)
    ax.plot(value[~full], y[~full], **look, markerfacecolor="white", zorder=3)
    return mark


def aligned_numbers(numbers: Any) -> list[str]:
    """Format numbers with two significant digits of the smallest, at most four decimals; empty for NaN."""
    sizes = [abs(float(one)) for one in numbers if abs(one) > 0]
    least = min(sizes, default=1.0)
    decimals = min(max(1 - math.floor(math.log10(least)), 0), 4)
    return ["" if math.isnan(one) else f"{one:.{decimals}f}" for one in numbers]


def number_columns(ax: Any, n: int, space: float) -> None:
    """Number the columns 1 to n within ``space`` inches: column 1 and as many others as are legible."""
    widest = style.text_width(f"{n}", style.SIZE) + 0.05
    step = next((step for step in (1, 5, 10, 20, 50) if max(step - 1, 1) * space / n >= widest), 100)
    ax.set_xlim(0.5, n + 0.5)
    ax.set_xticks(range(1, n + 1) if step == 1 else [1, *range(step, n + 1, step)])


def legend_from_left(ax: Any, handles: Sequence[Any], names: Sequence[object], space: float, beside: float) -> None:
    """Legend aligned with the names of the rows, which take ``beside`` inches left of the ``space`` of the axes."""
    from matplotlib.transforms import ScaledTranslation

    made = style.legend(ax, handles, names, space + beside)
    # In inches, so that the width of the axes may still change.
    left = ScaledTranslation(-beside - 0.06, 0, ax.figure.dpi_scale_trans)
    made.set_bbox_to_anchor((0, 1), transform=ax.transAxes + left)


def highlighted_names(names: list[Any], highlight: Sequence[str] | None, what: str) -> list[Any] | None:
    """Return the names to colour; ``None`` if there are more than colours and none is to be highlighted."""
    most = len(style.COLOURS)
    if highlight is None:
        return names if len(names) <= most else None
    if not set(highlight) <= set(names) or not 0 < len(highlight) <= most:
        raise ParameterError(f"highlight={list(highlight)!r}: wanted 1 to {most} {what}, as {examples(names)}")
    return list(highlight)


def split_by_highlight(points: pd.DataFrame, highlight: Sequence[str] | None) -> tuple[list[Any], list[Any]]:
    """Return the systems to colour, by default the seven highest at the end of the first line, and the rest."""
    names = list(points["name"].unique())
    coloured = highlighted_names(names, highlight, "systems of the scores")
    if coloured is None:
        first = points[points["line"] == points["line"].iloc[0]].sort_values("at", kind="stable")
        last = first.drop_duplicates("name", keep="last").sort_values("value", ascending=False, kind="stable")
        coloured = list(last["name"].iloc[: len(style.COLOURS)])
    return coloured, [name for name in names if name not in coloured]


def choice_caption(others: list[Any], highlight: Sequence[str] | None) -> str:
    """Part of the caption: the choice of coloured systems."""
    return f"in colour: the {len(style.COLOURS)} highest at the end" if others and highlight is None else ""


def draw(ax: Any, points: pd.DataFrame, lines: list[str], coloured: list[Any]) -> None:
    """Draw lines with bands; with a single position on the axis, draw marks with bars side by side."""
    # Fainter where many bands overlap.
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
        every = -(-len(at) // _MAX_LINE_MARKERS)
        ax.plot(at + shift, value, color=colour, marker=marker, markersize=3, markevery=every, linestyle=dash, zorder=3)
        if len(at) > 1:
            ax.fill_between(at, low, high, color=colour, alpha=faint, linewidth=0, zorder=2)
        else:
            ax.vlines(at + shift, low, high, color=colour, linewidth=0.8, zorder=2)


def explain(ax: Any, coloured: Sequence[Any], n_others: int, lines: Sequence[str]) -> None:
    """Legend of the coloured systems, the grey ones, and the dashes if there are several."""
    from matplotlib.lines import Line2D

    looks = [style.look(place) for place in range(len(coloured))]
    handles = [Line2D([], [], color=colour, marker=marker, markersize=3) for colour, marker in looks]
    names = list(coloured)
    if n_others:
        handles.append(Line2D([], [], color=style.MUTED, linewidth=0.5))
        names.append(count_text(n_others, "other"))
    if len(lines) > 1:
        handles += [Line2D([], [], color=style.INK, linestyle=style.DASHES[at]) for at in range(len(lines))]
        names += lines
    style.legend(ax, handles, names, style.cell(ax)[0] - 0.5)


def tick_places(ax: Any, places: Any) -> None:
    """Set ticks at positions given in rising order, as many as are legible."""
    inner = ax.transData + ax.transAxes.inverted()
    inches = inner.transform(np.column_stack([places, np.zeros(len(places))]))[:, 0] * (style.cell(ax)[0] - BESIDE)
    kept: list[int] = []
    for place in range(len(places)):
        if not kept or inches[place] - inches[kept[-1]] > style.text_width(f"{places[place]:g}", style.SIZE) + 0.04:
            kept.append(place)
    ax.set_xticks(places[kept], [f"{at:g}" for at in places[kept]])


def size_axis(ax: Any, sizes: pd.Series[int], *, grows: bool) -> None:
    """Ticks and label of the axis of sizes."""
    places = np.unique(sizes)
    if grows:
        ax.set_xscale("log")
        ax.minorticks_off()
        powers = 10 ** np.arange(np.floor(np.log10(places[0])), np.ceil(np.log10(places[-1])) + 1)
        numbers = np.outer(powers, [1, 2, 5]).ravel()
        rounded = numbers[(numbers >= places[0]) & (numbers <= places[-1])].astype(np.int64)
        tick_places(ax, rounded if len(places) > _MAX_LABELLED_SIZES and len(rounded) > 1 else places)
    elif len(places) == 1:
        tick_places(ax, places)
    else:
        space = style.cell(ax)[0] - BESIDE
        ax.xaxis.get_major_locator().set_params(integer=True, nbins=int(np.clip(space / _TICK, 2, 9)))
    ax.set_xlabel("number of queries")


def grow(sizes: pd.Series[int]) -> bool:
    """Return True if sizes grow by factors."""
    places = np.unique(sizes)
    gaps = np.diff(places)
    return len(gaps) > 1 and bool(places[-1] > MIN_LOG_RATIO * places[0] and gaps[-1] >= _GROWS * gaps[0])
