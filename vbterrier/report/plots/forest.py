"""Systems with their intervals, one below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError, examples
from vbterrier.report.plots import style, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


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
    frame = words.only(words.intervals_of(intervals), "measure", measure, "intervals")
    frame = words.only(frame, "method", method, "intervals")
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
        texts, data = words.short([str(part["measure"].iloc[0]) for part in series])
        if any(getattr(words.parsed(text), "NAME", "") == "VB" for text in texts):
            drawn.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
        drawn.hlines(range(len(names)), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        marks = [
            _draw(drawn, part, {name: at for at, name in enumerate(names)}, place, len(series), row)
            for place, part in enumerate(series)
        ]
        drawn.spines["left"].set_visible(False)
        room = across - taken - 0.15
        drawn.locator_params(axis="x", nbins=int(np.clip(room / 0.4, 2, 8)))
        drawn.set_xlabel(style.fitted(texts[0] if len(set(texts)) == 1 else "score", room))
        if len(series) > 1:
            style.legend(drawn, marks, _labels(texts, series), room)
        style.caption(drawn, words.provenance(frame), data, words.absent(frame["value"], frame["low"], "hollow"))
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


def _draw(ax: Any, part: pd.DataFrame, rows: dict[Any, int], place: int, n_series: int, row: float) -> Any:
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
