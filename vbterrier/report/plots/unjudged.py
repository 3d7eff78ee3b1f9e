"""Figures of distributions of scores: of unjudged documents, and after queries were removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, number
from vbterrier.evaluate import verdicts
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import (
    FILLED_ROW_SHARE,
    aligned_numbers,
    beside_rows,
    figure_columns,
    legend_from_left,
    refuse,
    round_up,
    varies,
)
from vbterrier.unjudged.distribution import ScoreDistributions
from vbterrier.unjudged.metrics import metric_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.report.plots.style import Names


# Width of a bar in inches: narrower bars are not visible.
_MIN_BAR_INCHES = 0.022
# Distances in rows: of bars above the line of mean and interval, of marks below it; then their maxima in inches.
_MAX_BASE_ROWS, _BELOW = 0.17, 0.23
_MAX_BASE_INCHES, _HANG = 0.06, 0.09
_PALE = "#9ecae1"
# Lines between two limits.
_THIN = {"color": style.INK, "linewidth": 0.5, "marker": "|"}
# The first colour is that of mean and interval.
_BLUE, *_OTHERS = style.COLOURS


def score_distributions(
    distribution: Any,
    *,
    topics: Sequence[str] | None = None,
    marks: Mapping[str, Any] | None = None,
    bounds: Any = None,
    level: float = 0.9,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Distributions of a score over the labels of unjudged documents, highest mean first (Fröbe et al. 2023, figure 1).

    Bars show the probability of scores within a step; the line below them shows the central interval and the mean. The
    highest bar of all, whose probability the caption gives, fills its row. The number of unjudged documents is printed
    right of the row. If a topic has none, its score is known and the point is hollow.

    Parameters
    ----------
    distribution
        The result of :func:`vbterrier.unjudged.bootstrap_distribution`.
    topics
        Topics to draw; all by default.
    marks
        Other values of each topic by name, as ``{"condensed": ..., "truth": ...}``, at most six: a Series or mapping
        of qid to value. The caption counts topics without a value.
    bounds
        Columns qid, low, high, and optionally kind (``naive``, ``posthoc``...), the same in all rows: thin brackets.
    level
        Level of the interval, 0 to 1.

    Examples
    --------
    >>> from vbterrier.unjudged import bootstrap_distribution
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [2, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "c"], "score": [3.0, 2.0, 1.0]})
    >>> ax = score_distributions(bootstrap_distribution(run, qrels, 3), marks={"condensed": {"q1": 0.9}})
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['q1'], 'nDCG@3')
    """
    if not isinstance(distribution, ScoreDistributions):
        kind = type(distribution).__name__
        raise InputError(f"distribution: wanted the result of bootstrap_distribution, found {kind}")
    rows = _rows(distribution, topics, level)
    marks, most = marks or {}, len(style.COLOURS) - 1
    if len(marks) > most:
        raise ParameterError(f"marks: {len(marks)} are too many for one figure; choose at most {most}")
    marked = {
        str(name): _column(pd.Series(values), f"marks[{name!r}]", distribution.topics, rows)
        for name, values in marks.items()
    }
    limits, bound = _bounds(bounds, distribution.topics, rows)
    n = len(rows)
    row = float(max(np.clip(style.PAGE / max(n, 1), 0.1, 0.3), 0.9 / max(n, 1)))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "topics")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, rows["qid"].tolist(), row, 0.36 * across)
        drawn.set_ylim(n - 1 + min(_BELOW + 0.17, 0.16 / row), -FILLED_ROW_SHARE + _below(row) - 0.1)
        space = across - taken - 0.15 - beside_rows(drawn, [f"{u:,}" for u in rows["n_unjudged"]], "unjudged")
        drawn.hlines(range(n), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        bars = _bars(drawn, [distribution.distributions[place] for place in rows["place"]], rows, (space, row))
        handles = _marks(drawn, rows, marked, limits, row)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.4, 2, 8)))
        at = "" if distribution.cutoff is None else f"@{distribution.cutoff}"
        drawn.set_xlabel(style.fitted_text(f"{metric_text(distribution.metric)}{at}", space))
        names = ["mean", f"{100 * level:g}% interval", *([bound] if bound else []), *marked]
        style.legend(drawn, handles, names, space - 0.3)
        partly = marked | ({bound: limits[0]} if limits else {})
        counts = {name: int(np.isnan(values).sum()) for name, values in partly.items()}
        missing = [f"no {name}: {count} of {n}" for name, count in counts.items() if count]
        style.caption(drawn, *_caption_parts(distribution, rows), bars, *missing)
    return drawn


def _rows(distribution: ScoreDistributions, topics: Sequence[str] | None, level: float) -> pd.DataFrame:
    """Topics to draw, highest mean first, with their scores and their positions in the distribution."""
    low, high = distribution.interval(level)
    columns = {"qid": distribution.topics, "place": np.arange(len(distribution)), "n_unjudged": distribution.n_unjudged}
    ends = {"low": low, "high": high, "least": distribution.quantile(0), "greatest": distribution.quantile(1)}
    every = pd.DataFrame({**columns, "mean": distribution.mean, **ends})
    # The ideal ranking may be uncertain without unjudged documents in the list.
    every["certain"] = (every["n_unjudged"] == 0) & (every["least"] == every["greatest"])
    if topics is not None:
        names = [topics] if isinstance(topics, str) else list(topics)
        unknown = [topic for topic in names if topic not in distribution.topics]
        if unknown:
            available, near = examples(distribution.topics), nearest(str(unknown[0]), distribution.topics)
            raise ParameterError(f"topics: {examples(unknown)} not evaluated; there are {available}.{near}")
        every = every[every["qid"].isin(names)]
    return every.sort_values("mean", ascending=False, kind="stable").reset_index(drop=True)


def _column(marked: pd.Series[Any], where: str, topics: list[str], rows: pd.DataFrame) -> Floats:
    qids = captions.texts(marked.index.to_series(), f"{where} qid")
    values = pd.Series(captions.reals(marked, where), index=qids)
    if values.index.has_duplicates:
        raise InputError(f"{where}: query {values.index[values.index.duplicated()][0]!r} is duplicated; keep one")
    if len(values) and not values.index.isin(topics).any():
        raise InputError(f"{where}: none of its queries ({examples(qids)}) was evaluated ({examples(topics)})")
    column: Floats = values.reindex(rows["qid"]).to_numpy(dtype=np.float64)
    return column


def _bounds(bounds: Any, topics: list[str], rows: pd.DataFrame) -> tuple[tuple[Floats, Floats] | None, str]:
    """Lower and upper bounds in the order of the rows, and their name for the legend."""
    if bounds is None:
        return None, ""
    frame = pandas_frame(bounds, "bounds")
    require(frame, ("qid", "low", "high"), "bounds")
    kinds = list(frame["kind"].unique()) if "kind" in frame.columns else []
    if len(kinds) > 1:
        raise InputError(f"bounds: wanted one kind, found {examples(kinds)}; keep the rows of one")
    keyed = frame.set_index("qid")
    low, high = (_column(keyed[end], f"bounds column {end!r}", topics, rows) for end in ("low", "high"))
    bad = (low > high) | (np.isnan(low) != np.isnan(high))
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"bounds: query {rows['qid'][row]!r} has {low[row]:g} to {high[row]:g}"
        raise InputError(f"{problem}; wanted two ends in order, or NaN")
    return (low, high), " ".join([*map(str, kinds), "bounds"])


def _below(row: float) -> float:
    """Distance of marks below their line, for rows of this height in inches."""
    return min(_BELOW, _HANG / row)


def _bars(ax: Any, distributions: list[ScoreDistribution], rows: pd.DataFrame, size: tuple[float, float]) -> str:
    """Draw the distributions in rows of the given width and height in inches; returns a part of the caption."""
    least, span = float(rows["least"].min()), float(rows["greatest"].max() - rows["least"].min())
    unknown = np.flatnonzero(~rows["certain"])
    if not len(unknown):
        return ""
    step = round_up(span * _MIN_BAR_INCHES / size[0]) if span else 0.01
    near = min(_MAX_BASE_ROWS, _MAX_BASE_INCHES / size[1])
    tall = FILLED_ROW_SHARE - near - _below(size[1])
    # If all probability is on one score, that score is the middle of a bar.
    edges = least + step * np.arange(-0.5, span / step + 1)
    # Scores that are rounded to a grid may exceed the greatest one: they belong to the last bar.
    shares = [np.diff(distributions[place].cdf(np.append(edges[:-1], np.inf))) for place in unknown]
    highest = max(float(share.max()) for share in shares)
    look = {"fill": True, "facecolor": _PALE, "edgecolor": _BLUE, "linewidth": 0.3}
    for place, share in zip(unknown, shares, strict=True):
        first, last = np.flatnonzero(share)[[0, -1]]
        base, tops = place - near, place - near - tall * share[first : last + 1] / highest
        ax.stairs(tops, edges[first : last + 2], baseline=base, **look, zorder=2)
    return f"bars: probability in steps of {step:g}, highest bar {highest:.2g}"


def _marks(
    ax: Any, rows: pd.DataFrame, marked: dict[str, Floats], limits: tuple[Floats, Floats] | None, row: float
) -> list[Any]:
    """Draw intervals and bounds on their line and marks below it; returns the handles of the legend."""
    from matplotlib.lines import Line2D

    y, size = np.arange(len(rows)), float(np.clip(0.24 * 72 * row, 2.2, 4.0))
    mean, low, high = (rows[column].to_numpy() for column in ("mean", "low", "high"))
    certain = rows["certain"].to_numpy()
    ax.hlines(y[~certain], low[~certain], high[~certain], color=_BLUE, linewidth=min(1.6, size / 2), zorder=3)
    point = {"linestyle": "none", "marker": "o", "color": _BLUE, "markeredgewidth": 0.7}
    look: dict[str, Any] = {**point, "markersize": size}
    ax.plot(mean[~certain], y[~certain], **look, zorder=5)
    ax.plot(mean[certain], y[certain], **look, markerfacecolor="white", zorder=5)
    handles = [Line2D([], [], **look), Line2D([], [], color=_BLUE, linewidth=1.6)]
    if limits is not None:
        thin: dict[str, Any] = {**_THIN, "markersize": 1.2 * size, "markeredgewidth": 0.6}
        wide = limits[1] > limits[0]
        ax.hlines(y[wide], limits[0][wide], limits[1][wide], color=style.INK, linewidth=0.5, zorder=2)
        ends = np.concatenate([end[wide] for end in limits])
        ax.plot(ends, np.tile(y[wide], 2), **{**thin, "linestyle": "none"}, zorder=4)
        handles.append(Line2D([], [], **thin))
    for place, values in enumerate(marked.values()):
        # Later marks are smaller, so that equal values stay visible.
        look = {"marker": style.MARKERS[1 + place], "color": _OTHERS[place], "markersize": size * 0.88**place}
        handles += ax.plot(values, y + _below(row), linestyle="none", markeredgewidth=0, **look, zorder=6)
    return handles


def _caption_parts(distribution: ScoreDistributions, rows: pd.DataFrame) -> list[str]:
    """Parts of the caption: topics, bootstrap process, draws, topics without unjudged documents."""
    n_certain = int(rows["certain"].sum())
    drawn = sum(distribution.distributions[place].method == "mc" for place in rows["place"])
    n_draws, seed = distribution.n_draws, distribution.seed
    total = "" if len(rows) == len(distribution) else f" of {len(distribution):,}"
    return [
        verdicts.count_range_text(len(rows), "topic") + total,
        distribution.source,
        f"{n_draws:,} draws, seed {seed}" + ("" if drawn == len(rows) else f" ({drawn} topics)") if drawn else "",
        f"hollow: no unjudged documents ({n_certain} of {len(rows)})" if n_certain else "",
    ]


# Side of the row, and colour of each source.
_SIDES = {"model": (-1, style.COLOURS[0]), "queries": (1, style.COLOURS[1])}
# Fraction of its half of the row that the highest bar fills, and minimal width of a bar in inches.
_HALF, _NARROW = 0.42, 0.025


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
    measure: Names = None,
    extremes: bool = True,
    centred: bool | None = None,
    step: float | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Distributions of scores after queries were removed, model above queries (Mertens et al. 2014, figure 3).

    One row for each query set and measure: bars above its line show the prediction of the hypergeometric model, bars
    below it show scores after real queries were removed; the better the model, the more symmetric the row. The highest
    bar of each row fills it: shares compare within a row. Standard deviations are printed right of the row.

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

    Examples
    --------
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
    rows = []
    for (name, measure_name), part in frame.dropna(subset=["value"]).groupby(["name", "measure"], sort=False):
        values = {source: part.loc[part["source"] == source, "value"].to_numpy() for source in _SIDES}
        values = {source: draws for source, draws in values.items() if len(draws)}
        mean = float(next(iter(values.values())).mean())
        centre = mean if centred else 0.0
        label = ", ".join([str(name)] * bool(name) + [str(measure_name)] * (several or not name))
        worst, best = limits.get((str(name), str(measure_name)), (np.nan, np.nan)) if extremes else (np.nan, np.nan)
        shifted = {source: draws - centre for source, draws in values.items()}
        rows.append(Row(f"{label} ({mean:.3f})" if centred else label, shifted, worst - centre, best - centre))
    n = len(rows)
    row = float(np.clip(style.PAGE / max(n, 1), 0.22, 1.0 / max(n, 1) + 0.3))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "draws")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, [one.label for one in rows], row, 0.36 * across)
        sources = [source for source in _SIDES if any(source in one.values for one in rows)]
        texts = iter(aligned_numbers([np.std(one.values.get(source, [np.nan])) for one in rows for source in sources]))
        stds = [" / ".join(next(texts) or "–" for _ in sources) for _ in rows]
        space = across - taken - 0.15 - beside_rows(drawn, stds, f"std {' / '.join(sources)}")
        handles, step = _draw(drawn, rows, step, space)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.45, 2, 8)))
        shown, data = captions.short(list(frame["measure"].unique()))
        axis_label = shown[0] if len(shown) == 1 else "score"
        drawn.set_xlabel(style.fitted_text(f"{axis_label} minus its mean" if centred else axis_label, space))
        legend_from_left(drawn, list(handles.values()), list(handles), space, taken)
        style.caption(drawn, *_removal_parts(removal, frame, rows, step), data)
    return drawn


def _draws(removal: Any) -> tuple[pd.DataFrame, dict[tuple[str, str], tuple[float, float]]]:
    """Columns name, source, measure, value; worst and best score by name and measure, if known."""
    from vbterrier.design.removal import Removal

    parts: list[pd.DataFrame] = []
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    for name, one in removal.items() if isinstance(removal, Mapping) else [("", removal)]:
        what = f"draws[{name!r}]" if name else "draws"
        simulated = isinstance(one, Removal)
        part = figure_columns(one.draws if simulated else one, what, texts=("source", "measure"), reals=("value",))
        refuse(part, what, ["source", "measure"], [(~part["source"].isin(_SIDES), "source 'model' or 'queries'")])
        parts.append(part.assign(name=str(name)))
        if simulated:
            ends = one.summary()[["measure", "worst", "best"]].dropna().drop_duplicates("measure")
            limits |= {(str(name), measure): (worst, best) for measure, worst, best in ends.to_numpy().tolist()}
    columns = ["name", "source", "measure", "value"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns), limits


def _draw(ax: Any, rows: list[Row], step: float | None, space: float) -> tuple[dict[str, Any], float]:
    """Draw all rows; returns the handles of the legend by name, and the width of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    least, most = min(one.limits()[0] for one in rows), max(one.limits()[1] for one in rows)
    step = step or round_up((most - least or 0.01) * _NARROW / max(space, _NARROW))
    edges = least + step * np.arange(-0.5, (most - least) / step + 1)
    handles: dict[str, Any] = {}
    for at, one in enumerate(rows):
        shares = {source: np.histogram(draws, edges)[0] / len(draws) for source, draws in one.values.items()}
        highest = max(share.max() for share in shares.values())
        for source, share in shares.items():
            side, colour = _SIDES[source]
            look = {"fill": True, "facecolor": colour, "alpha": 0.55, "linewidth": 0}
            ax.stairs(at + side * _HALF * share / highest, edges, baseline=at, **look, zorder=2)
            handles.setdefault(source, Patch(facecolor=colour, alpha=0.55))
        ax.hlines(at, 0, 1, transform=ax.get_yaxis_transform(), color=style.RULE, linewidth=0.5, zorder=1)
        if not np.isnan(one.worst):
            thin: dict[str, Any] = {**_THIN, "markersize": 6, "markeredgewidth": 0.7}
            ax.plot([one.worst, one.best], [at, at], **thin, zorder=3)
            handles["worst and best"] = Line2D([], [], **thin)
    return {name: handles[name] for name in (*_SIDES, "worst and best") if name in handles}, step


def _removal_parts(removal: Any, frame: pd.DataFrame, rows: list[Row], step: float) -> list[str]:
    """Parts of the caption: sizes, draws, distances, bars and missing values."""
    from vbterrier.design.removal import Removal

    simulations = removal.values() if isinstance(removal, Mapping) else [removal]
    simulated = [one.summary() for one in simulations if isinstance(one, Removal)]
    summary = pd.concat(simulated, ignore_index=True) if simulated else pd.DataFrame()
    summary = summary[summary["measure"].isin(frame["measure"].unique())] if simulated else summary
    counts = frame.groupby(["name", "measure", "source"], sort=False).size()
    notes = []
    if simulated:
        removed = ", ".join(f"{one:,}" for one in sorted(summary["n_removed"].unique().tolist()))
        notes.append(f"{removed} of {verdicts.count_range_text(summary['n_qids'], 'query')} removed")
    distances = summary["ks"] if "ks" in summary else pd.Series(dtype=np.float64)
    low, high = distances.min(), distances.max()
    lost = int(frame["value"].isna().sum())
    return [
        *notes,
        verdicts.count_range_text(counts, "draw") + (f", seed {summary['seed'].iloc[0]}" if simulated else ""),
        "" if np.isnan(low) else f"Kolmogorov distance {low:.3f}" + (f" to {high:.3f}" if high > low else ""),
        f"bars: shares in steps of {step:.2g}" + ", scaled to the highest bar of each row" * (len(rows) > 1),
        f"no value: {verdicts.count_range_text(lost, 'draw')}" if lost else "",
    ]
