"""Figures of scores after queries were removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.design.removal import Removal
from vbterrier.errors import number
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import aligned, beside_rows, columns_of, legend_from_left, refuse, round_up, varies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats


# Side of the row, and colour of each source.
_SIDES = {"model": (-1, style.COLOURS[0]), "queries": (1, style.COLOURS[1])}
# Fraction of its half of the row that the highest bar fills, and minimal width of a bar in inches.
_FILLED, _BAR = 0.42, 0.025


class Row(NamedTuple):
    """Values of a row, minus its mean if centred."""

    label: str
    values: dict[str, Floats]
    worst: float
    best: float

    def limits(self) -> tuple[float, float]:
        """Smallest and largest value."""
        ends = [self.worst, self.best, *(end for one in self.values.values() for end in (one.min(), one.max()))]
        return float(np.nanmin(ends)), float(np.nanmax(ends))


def removal_distributions(
    removal: Any,
    *,
    measure: str | Sequence[str] | None = None,
    extremes: bool = True,
    centred: bool | None = None,
    step: float | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Distributions of scores after queries were removed, model above queries (Mertens et al. 2014, figure 3).

    One row for each query set and measure: bars above its line show the prediction of the hypergeometric model, bars
    below it show scores after real queries were removed; the better the model, the more symmetric the row. Standard
    deviations are printed right of the row.

    Parameters
    ----------
    removal
        The result of :func:`vbterrier.design.removal`, or its draws: columns source (``"model"`` or ``"queries"``),
        measure, value. A mapping of names to either has a row for each, as three query sets, or one with more and more
        queries removed. Rows with NaN are not drawn; the caption counts them.
    measure
        Measures to draw; all by default.
    extremes
        Mark the worst and the best score that the model allows, if known. If they are far out, the distributions are
        narrow: ``False`` omits them.
    centred
        Draw differences from the mean of the row, which is given in brackets, so that rows with different means share
        an axis; by default for several measures.
    step
        Width of the bars; by default the narrowest that is visible.
    ax, width
        Axes to draw on, and width of a new figure; see :func:`curve`. The height follows from the number of rows.

    Raises
    ------
    InputError
        A missing column; an unknown source.
    ParameterError
        A measure that the frame does not have; a step of 0 or less.

    Notes
    -----
    Bars are scaled so that the highest bar of each row fills it: shares compare within a row, on both of its sides.

    Examples
    --------
    >>> import pandas as pd
    >>> draws = pd.DataFrame({"source": ["model", "queries"] * 3, "measure": "F1"})
    >>> ax = removal_distributions(draws.assign(value=[0.85, 0.86, 0.87, 0.87, 0.88, 0.89]))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['F1'], 'F1')
    """
    if step is not None:
        step = number("step", step, low=0, open_low=True)
    frame, limits = _draws(removal)
    frame = captions.only(frame, "measure", measure, "draws")
    several = varies(frame["measure"])
    centred = several if centred is None else centred
    rows = _rows(frame.dropna(subset=["value"]), limits if extremes else {}, centred=centred, several=several)
    n = len(rows)
    row = float(np.clip(style.PAGE / max(n, 1), 0.22, 1.0 / max(n, 1) + 0.3))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "draws")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, [one.label for one in rows], row, 0.36 * across)
        sources = [source for source in _SIDES if any(source in one.values for one in rows)]
        texts = iter(aligned([np.std(one.values.get(source, [np.nan])) for one in rows for source in sources]))
        stds = [" / ".join(next(texts) or "–" for _ in sources) for _ in rows]
        space = across - taken - 0.15 - beside_rows(drawn, stds, f"std {' / '.join(sources)}")
        handles, step = _draw(drawn, rows, step, space)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.45, 2, 8)))
        shown, data = captions.short(list(frame["measure"].unique()))
        said = shown[0] if len(shown) == 1 else "score"
        drawn.set_xlabel(style.fitted(f"{said} minus its mean" if centred else said, space))
        legend_from_left(drawn, list(handles.values()), list(handles), space, taken)
        style.caption(drawn, *_described(removal, frame, rows, step), data)
    return drawn


def _draws(removal: Any) -> tuple[pd.DataFrame, dict[tuple[str, str], tuple[float, float]]]:
    """Columns name, source, measure, value; worst and best score by name and measure, if known."""
    parts: list[pd.DataFrame] = []
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    for name, one in removal.items() if isinstance(removal, Mapping) else [("", removal)]:
        what = f"draws[{name!r}]" if name else "draws"
        simulated = isinstance(one, Removal)
        part = columns_of(one.draws if simulated else one, what, texts=("source", "measure"), reals=("value",))
        refuse(part, what, ["source", "measure"], [(~part["source"].isin(_SIDES), "source 'model' or 'queries'")])
        parts.append(part.assign(name=str(name)))
        if simulated:
            ends = (
                one.summary().dropna(subset=["worst", "best"]).drop_duplicates("measure")[["measure", "worst", "best"]]
            )
            limits |= {(str(name), measure): (worst, best) for measure, worst, best in ends.to_numpy().tolist()}
    columns = ["name", "source", "measure", "value"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns), limits


def _rows(frame: pd.DataFrame, limits: Mapping[Any, tuple[float, float]], *, centred: bool, several: bool) -> list[Row]:
    rows = []
    for (name, measure), part in frame.groupby(["name", "measure"], sort=False):
        values = {source: part.loc[part["source"] == source, "value"].to_numpy() for source in _SIDES}
        values = {source: own for source, own in values.items() if len(own)}
        mean = float(next(iter(values.values())).mean())
        centre = mean if centred else 0.0
        label = ", ".join([*([str(name)] if name else []), *([str(measure)] if several or not name else [])])
        worst, best = limits.get((name, measure), (np.nan, np.nan))
        shifted = {source: own - centre for source, own in values.items()}
        rows.append(Row(f"{label} ({mean:.3f})" if centred else label, shifted, worst - centre, best - centre))
    return rows


def _draw(ax: Any, rows: list[Row], step: float | None, space: float) -> tuple[dict[str, Any], float]:
    """Draw all rows; returns the handles of the legend by name, and the width of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    least, most = min(one.limits()[0] for one in rows), max(one.limits()[1] for one in rows)
    step = step or round_up((most - least or 0.01) * _BAR / max(space, _BAR))
    edges = least + step * np.arange(-0.5, (most - least) / step + 1)
    handles: dict[str, Any] = {}
    for at, one in enumerate(rows):
        shares = {source: np.histogram(own, edges)[0] / len(own) for source, own in one.values.items()}
        highest = max(share.max() for share in shares.values())
        for source, share in shares.items():
            side, colour = _SIDES[source]
            look = {"fill": True, "facecolor": colour, "alpha": 0.55, "linewidth": 0}
            ax.stairs(at + side * _FILLED * share / highest, edges, baseline=at, **look, zorder=2)
            handles.setdefault(source, Patch(facecolor=colour, alpha=0.55))
        ax.hlines(at, 0, 1, transform=ax.get_yaxis_transform(), color=style.RULE, linewidth=0.5, zorder=1)
        if not np.isnan(one.worst):
            thin: dict[str, Any] = {"color": style.INK, "linewidth": 0.5, "marker": "|", "markersize": 6}
            thin["markeredgewidth"] = 0.7
            ax.plot([one.worst, one.best], [at, at], **thin, zorder=3)
            handles["worst and best"] = Line2D([], [], **thin)
    return {name: handles[name] for name in (*_SIDES, "worst and best") if name in handles}, step


def _described(removal: Any, frame: pd.DataFrame, rows: list[Row], step: float) -> list[str]:
    """Parts of the caption: sizes, draws, distances, bars and missing values."""
    given = removal.values() if isinstance(removal, Mapping) else [removal]
    simulated = [one.summary() for one in given if isinstance(one, Removal)]
    summary = pd.concat(simulated, ignore_index=True) if simulated else pd.DataFrame()
    summary = summary[summary["measure"].isin(frame["measure"])] if simulated else summary
    counts = frame.groupby(["name", "measure", "source"], sort=False).size()
    said = []
    if simulated:
        removed = ", ".join(f"{one:,}" for one in sorted(summary["n_removed"].unique().tolist()))
        said.append(f"{removed} of {captions.counted(summary['n_qids'], 'query')} removed")
    distances = summary["ks"].dropna() if "ks" in summary else pd.Series(dtype=np.float64)
    low, high = distances.min(), distances.max()
    lost = int(frame["value"].isna().sum())
    return [
        *said,
        captions.counted(counts, "draw") + (f", seed {summary['seed'].iloc[0]}" if simulated else ""),
        f"Kolmogorov distance {low:.3f}" + (f" to {high:.3f}" if high > low else "") if len(distances) else "",
        f"bars: shares in steps of {step:.2g}" + (", scaled to the highest bar of each row" if len(rows) > 1 else ""),
        f"no value: {captions.counted(lost, 'draw')}" if lost else "",
    ]
