"""What scores become when queries are removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.design.removal import Removal
from vbterrier.frames.parameters import number
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import aligned, beside_rows, columns_of, legend_from_left, refuse, round_up, varies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats


# Which way the bars of a source stand, and their colour.
_SIDES = {"model": (-1, style.COLOURS[0]), "queries": (1, style.COLOURS[1])}
# How much of its half of the row the highest bar fills, and inches that a bar should have.
_FILLED, _BAR = 0.42, 0.025


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

    A row a query set and measure: bars above its line are what the hypergeometric model predicts, bars below it what
    removing real queries gave; the better both agree, the more they mirror each other. Beside the row stand their
    standard deviations.

    Parameters
    ----------
    removal
        What :func:`vbterrier.design.removal` gives, or its draws: columns source (``"model"`` or
        ``"queries"``), measure, value. A mapping of names to either has a row for each, as three query sets, or one
        with ever more queries removed. Rows with NaN are not drawn; the caption counts them.
    measure
        Measures to draw; all by default.
    extremes
        Mark the worst and the best that the model allows, where they are known. They can lie so far out that the
        distributions are narrow: ``False`` leaves them out.
    centred
        Draw differences from the mean of the row, which stands in brackets, so that rows with other means share an
        axis; by default for several measures.
    step
        Width of the bars; by default what can be seen.
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
        A missing column; a source that is neither.
    ParameterError
        A measure that the frame does not have; a step of 0 or less.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Notes
    -----
    Bars are scaled so that the highest of each row fills it: shares compare within a row, between both of its sides.

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
        room = across - taken - 0.15 - beside_rows(drawn, *_deviations(rows))
        handles, step = _draw(drawn, rows, step, room)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(room / 0.45, 2, 8)))
        shown, data = captions.short(list(frame["measure"].unique()))
        said = shown[0] if len(shown) == 1 else "score"
        drawn.set_xlabel(style.fitted(f"{said} less its mean" if centred else said, room))
        legend_from_left(drawn, list(handles.values()), list(handles), room, taken)
        style.caption(drawn, *_described(removal, frame, rows, step), data)
    return drawn


class Row(NamedTuple):
    """What stands in a row, all numbers less ``centre``."""

    label: str
    values: dict[str, Floats]
    worst: float
    best: float

    def spread(self) -> tuple[float, float]:
        """Least and greatest of all."""
        ends = [self.worst, self.best, *(end for one in self.values.values() for end in (one.min(), one.max()))]
        return float(np.nanmin(ends)), float(np.nanmax(ends))


def _draws(removal: Any) -> tuple[pd.DataFrame, dict[tuple[str, str], tuple[float, float]]]:
    """Columns name, source, measure, value; worst and best by name and measure, where they are known."""
    parts: list[pd.DataFrame] = []
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    for name, one in removal.items() if isinstance(removal, Mapping) else [("", removal)]:
        what = f"draws[{name!r}]" if name else "draws"
        held = isinstance(one, Removal)
        part = columns_of(one.draws if held else one, what, texts=("source", "measure"), reals=("value",))
        refuse(part, what, ["source", "measure"], [(~part["source"].isin(_SIDES), "source 'model' or 'queries'")])
        parts.append(part.assign(name=str(name)))
        if held:
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
        rows.append(
            Row(
                f"{label} ({mean:.3f})" if centred else label,
                {source: own - centre for source, own in values.items()},
                worst - centre,
                best - centre,
            )
        )
    return rows


def _deviations(rows: list[Row]) -> tuple[list[str], str]:
    """The standard deviations of the sources that there are, and their heading."""
    sources = [source for source in _SIDES if any(source in one.values for one in rows)]
    stds = [np.std(one.values.get(source, [np.nan])) for one in rows for source in sources]
    texts = iter(aligned(stds))
    return [" / ".join(next(texts) or "–" for _ in sources) for _ in rows], f"std {' / '.join(sources)}"


def _draw(ax: Any, rows: list[Row], step: float | None, room: float) -> tuple[dict[str, Any], float]:
    """All rows; returns what stands in a legend by name, and the width of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    least, most = min(one.spread()[0] for one in rows), max(one.spread()[1] for one in rows)
    step = step or round_up((most - least or 0.01) * _BAR / max(room, _BAR))
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
            thin: dict[str, Any] = {
                "color": style.INK,
                "linewidth": 0.5,
                "marker": "|",
                "markersize": 6,
                "markeredgewidth": 0.7,
            }
            ax.plot([one.worst, one.best], [at, at], **thin, zorder=3)
            handles["worst and best"] = Line2D([], [], **thin)
    return {name: handles[name] for name in (*_SIDES, "worst and best") if name in handles}, step


def _described(removal: Any, frame: pd.DataFrame, rows: list[Row], step: float) -> list[str]:
    """What the caption says of draws, sizes, distances and bars."""
    held = [
        one for one in (removal.values() if isinstance(removal, Mapping) else [removal]) if isinstance(one, Removal)
    ]
    summary = pd.concat([one.summary() for one in held], ignore_index=True) if held else pd.DataFrame()
    summary = summary[summary["measure"].isin(frame["measure"])] if held else summary
    counts = frame.groupby(["name", "measure", "source"], sort=False).size()
    said = []
    if held:
        removed = ", ".join(f"{one:,}" for one in sorted(summary["n_removed"].unique().tolist()))
        said.append(f"{removed} of {captions.counted(summary['n_qids'], 'query')} removed")
    lost = int(frame["value"].isna().sum())
    return [
        *said,
        captions.counted(counts, "draw") + (f", seed {summary['seed'].iloc[0]}" if held else ""),
        _distance(summary),
        f"bars: shares in steps of {step:.2g}" + (", the highest of each row alike" if len(rows) > 1 else ""),
        f"no value: {captions.counted(pd.Series([lost]), 'draw')}" if lost else "",
    ]


def _distance(summary: pd.DataFrame) -> str:
    """How far apart model and queries are at most."""
    known = summary["ks"].dropna() if "ks" in summary else pd.Series(dtype=np.float64)
    if not len(known):
        return ""
    low, high = known.min(), known.max()
    return f"Kolmogorov distance {low:.3f}" + (f" to {high:.3f}" if high > low else "")
