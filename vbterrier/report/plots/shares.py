"""Which sources of uncertainty a score owes its variance to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, examples
from vbterrier.evaluate.shares import VarianceShares
from vbterrier.report.plots import style, words
from vbterrier.report.plots.margin import aligned, beside_rows, legend_from_left
from vbterrier.report.plots.parts import columns_of, refuse, varies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# What no source has by itself is grey.
TOGETHER = "interactions"


def variance_shares(
    shares: Any,
    *,
    measure: str | Sequence[str] | None = None,
    sort: bool = False,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Shares of the variance by source, a bar for each system, with the standard error of the total beside it.

    The standard error is ``√(Σ_sources variance)``. Shares below zero, which estimates of small ones can be, stand left
    of zero: all shares of a bar still sum to 100 %.

    Parameters
    ----------
    shares
        What :func:`vbterrier.evaluate.shares.variance_shares` gives, or its ``shares``: columns name, measure, source,
        variance, share (they sum to 1 over the sources of a name and measure), n_qids, n_draws, seed. Names whose
        variance is 0, or NaN, have no bar; the caption counts them.
    measure
        Measures to draw; all by default. Several have a row each.
    sort
        Largest standard error first, instead of the order of the frame.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of rows.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a source twice; shares that do not sum to 1; a total below zero.
    ParameterError
        A measure that the frame does not have; more sources than can be told apart.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> found = {"source": ["topics", "unjudged"], "variance": [0.0003, 0.0001], "share": [0.75, 0.25]}
    >>> about = {"name": "bm25", "measure": "nDCG@10", "n_qids": 50, "n_draws": 1000, "seed": 0}
    >>> ax = variance_shares(pd.DataFrame({**found, **about}))
    >>> [float(bar.get_width()) for bar in ax.patches], ax.texts[0].get_text()
    ([75.0, 25.0], '0.020')
    """
    frame = words.only(_checked(shares), "measure", measure, "shares")
    names, sources, table, error = _table(frame, sort=sort)
    n = len(names)
    row = float(np.clip(style.PAGE / max(n, 1), 0.075, 0.19))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "shares")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.9, 0.3) / n
        taken = style.row_labels(drawn, names, row, 0.4 * across)
        room = across - taken - 0.15 - beside_rows(drawn, aligned(error), "std. error")
        handles = _draw(drawn, table, sources, (room, row))
        drawn.set_xlabel("share of the variance (%)")
        legend_from_left(drawn, handles, sources, room, taken)
        style.caption(drawn, *_described(frame, table))
    return drawn


def _checked(given: Any) -> pd.DataFrame:
    frame = columns_of(
        given.shares if isinstance(given, VarianceShares) else given,
        "shares",
        texts=("name", "measure", "source"),
        reals=("variance", "share"),
        wholes=("n_qids", "n_draws", "seed"),
    )
    keys = ["name", "measure", "source"]
    total = frame.groupby(["name", "measure"], sort=False)[["variance", "share"]].transform("sum", min_count=1)
    checks = [
        (frame.duplicated(keys), "each source once"),
        (frame["variance"].isna() & frame["share"].notna(), "a variance where there is a share"),
        ((total["share"] - 1).abs() > _SLACK, "shares that sum to 1 over the sources of a name and measure"),
        (total["variance"] < 0, "variances that sum to 0 or more"),
    ]
    refuse(frame, "shares", [*keys, "variance", "share"], checks)
    return frame


def _table(frame: pd.DataFrame, *, sort: bool) -> tuple[list[str], list[str], Floats, Floats]:
    """Names of rows, sources, shares in percent of shape (rows, sources), and the standard error of each row."""
    rows = pd.MultiIndex.from_frame(frame[["name", "measure"]].drop_duplicates())
    sources = sorted(frame["source"].unique(), key=lambda source: source == TOGETHER)
    if len(sources) - (TOGETHER in sources) > len(style.FILLS):
        raise ParameterError(
            f"{len(sources)} sources ({examples(sources, 8)}) are more than can be told apart; "
            f"add up small ones, {len(style.FILLS)} at most"
        )
    keyed = frame.set_index(["name", "measure", "source"])
    wide = keyed["share"].unstack().reindex(index=rows, columns=sources)
    table = 100 * wide.to_numpy(dtype=np.float64)
    total = keyed["variance"].groupby(level=["name", "measure"], sort=False).sum(min_count=1).reindex(rows)
    error = np.sqrt(total.to_numpy(dtype=np.float64))
    order = np.argsort(-error if sort else np.zeros(len(rows)), kind="stable")
    measures, _ = words.short(list(rows.get_level_values(1)))
    several = varies(frame["measure"])
    names = [f"{name}, {text}" if several else str(name) for (name, _), text in zip(rows, measures, strict=True)]
    return [names[place] for place in order], sources, table[order], error[order]


def _draw(ax: Any, table: Floats, sources: list[str], size: tuple[float, float]) -> list[Any]:
    """Stacked bars in rows of this width and height in inches; returns what stands for the sources in a legend."""
    from matplotlib.patches import Patch

    known = np.nan_to_num(table)
    above, below = np.clip(known, 0, None), np.clip(known, None, 0)
    low, high = float(below.sum(axis=1).min()), float(above.sum(axis=1).max())
    ax.set_xlim(low, max(high, 100))
    inch = size[0] / (max(high, 100) - low)
    colours = [style.MUTED if source == TOGETHER else style.FILLS[at] for at, source in enumerate(sources)]
    rows = np.arange(len(table))
    for at, colour in enumerate(colours):
        left = np.where(known[:, at] < 0, below[:, :at].sum(axis=1), above[:, :at].sum(axis=1))
        there = known[:, at] != 0
        look = {"color": colour, "edgecolor": "white", "linewidth": 0.4}
        ax.barh(rows[there], known[there, at], 0.78, left[there], **look, zorder=2)
        _numbers(ax, left + known[:, at] / 2, known[:, at], (inch, size[1]), colour)
    if low < 0:
        ax.axvline(0, color=style.INK, linewidth=0.6, zorder=3)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=int(np.clip(size[0] / 0.4, 2, 8)))
    return [Patch(facecolor=colour) for colour in colours]


def _numbers(ax: Any, middle: Floats, shares: Floats, size: tuple[float, float], colour: str) -> None:
    """Percents in the bars that have room for them: this many inches a percent, and a row."""
    fits = min(style.SMALL, 0.6 * 72 * size[1])
    if fits < style.TINY:
        return
    for row, share in enumerate(shares):
        text = f"{share:.0f}"
        if abs(share) * size[0] > style.text_width(text, fits) + 0.04:
            look = {"ha": "center", "va": "center_baseline", "fontsize": fits, "color": _on(colour)}
            ax.text(middle[row], row, text, **look, zorder=4)


def _on(colour: str) -> str:
    """Black or white, whichever is read better on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.45 else "white"  # noqa: PLR2004 - luma


def _described(frame: pd.DataFrame, table: Floats) -> list[str]:
    measures, data = words.short(list(frame["measure"].unique()))
    drawn = frame[["n_draws", "seed"]].drop_duplicates().to_numpy().tolist()
    said = " and ".join(f"{n_draws:,} draws, seed {seed}" for n_draws, seed in drawn)
    bare, below = int((~(np.nan_to_num(table) != 0).any(axis=1)).sum()), bool((table < 0).any())
    return [
        measures[0] if len(measures) == 1 else "",
        data,
        words.counted(frame["n_qids"], "topic"),
        said,
        "std. error: square root of the total variance",
        "shares below 0 are estimates of small ones" if below else "",
        f"no variance: {bare} of {len(table)}" if bare else "",
    ]
