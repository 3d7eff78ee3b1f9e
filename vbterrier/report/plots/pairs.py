"""Every system against every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report.plots import style, words
from vbterrier.report.plots.margin import number_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Orange, white, blue: the palette's, which the colour-blind tell apart.
_SHADES = (style.COLOURS[1], "#f3b48a", "#ffffff", "#8abadb", style.COLOURS[0])
# Rounding of sums of probabilities.
_SLACK = 1e-6


def beats_matrix(pairs: Any, *, ax: Any = None, width: float = style.COLUMN) -> Any:
    """The probability that the system of a row beats that of a column, in percent; the likeliest winner on top.

    Systems are in order of their mean probability to beat the others.

    Parameters
    ----------
    pairs
        Columns name_a, name_b, p_a_beats_b (0 to 1); the ``pairs`` of :func:`vbterrier.evaluate.ranking.rank_systems`.
        Where a pair stands in one order alone, the other is ``1 - p_a_beats_b``, ties counting half; where it stands in
        both, what is missing to 1 are ties. Pairs that are not there, or NaN, are grey.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of systems.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a system against itself; a pair twice; no probability, or two that are more than 1 together.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = beats_matrix(pd.DataFrame({"name_a": ["bm25"], "name_b": ["dense"], "p_a_beats_b": [0.25]}))
    >>> [label.get_text() for label in ax.get_yticklabels()], [text.get_text() for text in ax.texts[:-1]]
    (['1 dense', '2 bm25'], ['75', '25'])
    """
    names, prob = _ordered(*_matrix(pairs))
    n = len(names)
    row = float(np.clip(0.62 * width / max(n, 1), 0.065, 0.2))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "pairs")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.9, 0.3) / n
        taken = style.row_labels(drawn, [f"{place} {name}" for place, name in enumerate(names, 1)], row, 0.38 * across)
        room = across - taken - 0.15
        cells = _shade(drawn, prob)
        _numbers(drawn, prob, (room / n, row))
        number_columns(drawn, n, room)
        drawn.tick_params(axis="x", length=0)
        drawn.set_xlabel("against")
        shown = (0.0, 0.5, 1.0)
        handles = [_patch(cells.cmap(cells.norm(share))) for share in shown]
        style.legend(drawn, handles, [f"{100 * share:g}%" for share in shown], room)
        lost = int(np.isnan(prob).sum() - n) // 2
        style.caption(
            drawn,
            "probability that the row's system beats the column's",
            words.counted(pd.Series([n]), "system"),
            f"grey: no probability ({lost} of {n * (n - 1) // 2} pairs)" if lost else "",
            words.origin(frame_of(pairs, "pairs")),
        )
    return drawn


def _matrix(pairs: Any) -> tuple[list[str], Floats]:
    """The systems, in order of appearance, and the probability that each beats each, NaN where nothing is known."""
    frame = frame_of(pairs, "pairs")
    require(frame, ("name_a", "name_b", "p_a_beats_b"), "pairs")
    one, other = (words.texts(frame[column], f"pairs column {column!r}") for column in ("name_a", "name_b"))
    prob = words.reals(frame["p_a_beats_b"], "pairs column 'p_a_beats_b'")
    names = list(dict.fromkeys(name for pair in zip(one, other, strict=True) for name in pair))
    places = {name: place for place, name in enumerate(names)}
    row, column = (np.array([places[name] for name in given], dtype=np.int64) for given in (one, other))
    matrix = np.full((len(names), len(names)), np.nan)
    matrix[row, column] = prob
    with np.errstate(invalid="ignore"):
        over = matrix + matrix.T > 1 + _SLACK
    for bad, wanted in (
        (row == column, "two systems"),
        ((prob < 0) | (prob > 1), "a probability from 0 to 1"),
        (pd.DataFrame({"row": row, "column": column}).duplicated().to_numpy(), "each pair once"),
        (over[row, column], "at most 1 together with the same pair the other way round"),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"pairs: row {at} ({one[at]!r}, {other[at]!r}) has {prob[at]:g}; wanted {wanted}")
    return names, np.where(np.isnan(matrix), 1 - matrix.T, matrix)


def _ordered(names: list[str], prob: Floats) -> tuple[list[str], Floats]:
    """Systems and matrix, the likeliest winner first, those of whom nothing is known last."""
    known = ~np.isnan(prob)
    wins = np.where(known, prob, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    order = np.argsort(np.where(known.any(axis=1), -wins, np.inf), kind="stable")
    return [names[place] for place in order], prob[np.ix_(order, order)]


def _shade(ax: Any, prob: Floats) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    edges = np.arange(len(prob) + 1)
    ax.set_facecolor(style.RULE)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    return ax.pcolormesh(
        edges + 0.5,
        edges - 0.5,
        np.ma.masked_invalid(prob),
        cmap=LinearSegmentedColormap.from_list("beats", list(_SHADES)),
        vmin=0,
        vmax=1,
        edgecolors="white",
        linewidth=0.4,
    )


def _numbers(ax: Any, prob: Floats, size: tuple[float, float]) -> None:
    """Percents in the cells, of this width and height in inches, where they have room."""
    fits = min(style.SMALL, 0.8 * 72 * size[1], style.SMALL * 0.85 * size[0] / style.text_width("100", style.SMALL))
    if fits < style.TINY:
        return
    for row, column in np.argwhere(~np.isnan(prob)):
        share = prob[row, column]
        colour = "white" if abs(share - 0.5) > 0.4 else style.INK  # noqa: PLR2004 - on the darkest shades
        look = {"ha": "center", "va": "center_baseline", "fontsize": fits, "color": colour}
        ax.text(int(column) + 1, int(row), f"{100 * share:.0f}", **look)


def _patch(colour: Any) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=style.MUTED, linewidth=0.3)
