"""Figures of entity runs by two measures, with the Pareto frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest
from vbterrier.evaluate import verdicts
from vbterrier.frames.notebook import count_text
from vbterrier.kernels.tolerances import COMPARED_DECIMALS, REPLICA_ROUNDING
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import MAX_LINEAR_RATIO, axis_limits, figure_columns, highlighted_names
from vbterrier.stats.frontier import pearson_interval, undominated_mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Measures of which lower values are better.
LOWER = ("NonRelCov", "BaitRate", "TopBait")
# Minimal number of runs for a correlation.
_MIN_RUNS = 4


def run_means(values: Any, x: str, y: str) -> tuple[pd.DataFrame, int, int]:
    """One row for each run: name, x, y, on_front; the number of topics, and of those left out."""
    frame = figure_columns(values, "values", texts=("name", "qid", "measure"), reals=("value",))
    if not len(frame):
        return pd.DataFrame({"name": [], "x": [], "y": [], "on_front": []}), 0, 0
    needed = list(dict.fromkeys(source for measure in (x, y) for source in _sources(measure)))
    measures = list(frame["measure"].unique())
    for measure in needed:
        if measure not in measures:
            raise ParameterError(f"values: no {measure}; found {examples(measures, 6)}.{nearest(measure, measures)}")
    frame = frame[frame["measure"].isin(needed)]
    twice = frame.duplicated(["name", "qid", "measure"])
    if twice.any():
        name, qid, measure = frame.loc[twice, ["name", "qid", "measure"]].iloc[0]
        raise InputError(f"values: {measure!r} of run {name!r} and query {qid!r} is duplicated; keep one row")
    names = list(frame["name"].unique())
    table = frame.pivot(index="qid", columns=["name", "measure"], values="value")
    table = table.reindex(columns=pd.MultiIndex.from_product([names, needed]))
    whole = table.dropna()
    if not len(whole):
        raise InputError(f"values: no topic has {' and '.join(needed)} of all {len(names)} runs")
    mean = whole.mean().unstack().loc[names]
    runs = pd.DataFrame({"name": names, "x": _system_means(mean, x), "y": _system_means(mean, y)})
    signs = (("y", -_worse(y)), ("x", _worse(x)))
    up, down = ((runs[axis] * sign).to_numpy().round(COMPARED_DECIMALS) for axis, sign in signs)
    return runs.assign(on_front=undominated_mask(up, down)), len(whole), len(table) - len(whole)


def _sources(measure: str) -> tuple[str, ...]:
    """Measures that a measure of runs is computed from."""
    if not measure.startswith("DiscRatio"):
        return (measure,)
    return measure.replace("DiscRatio", "RelCov", 1), measure.replace("DiscRatio", "NonRelCov", 1)


def _system_means(mean: pd.DataFrame, measure: str) -> Any:
    sources = _sources(measure)
    if len(sources) == 1:
        return mean[measure].to_numpy()
    above, below = (mean[source].to_numpy(dtype=np.float64) for source in sources)
    nothing = (above == 0) & (below == 0)
    if nothing.any():
        name = mean.index[int(np.argmax(nothing))]
        raise InputError(f"values: run {name!r} reaches no document, so its {measure} is undefined; remove this run")
    return np.divide(above, below, out=np.full(len(above), np.inf), where=below > 0)


def _worse(measure: str) -> int:
    """Return 1 if higher values of a measure are worse, -1 if they are better."""
    return 1 if measure.startswith(LOWER) else -1


def coverage_discrimination(
    values: Any,
    *,
    x: str = "NonRelCov@20",
    y: str = "RelCov@20",
    families: Mapping[str, str] | None = None,
    highlight: Sequence[str] | None = None,
    target: tuple[float, float] | None = None,
    oracle: str | None = None,
    line: bool = False,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Entity runs by two measures, with the Pareto frontier (Chatterjee 2026, figures 1, 2, 5 and 6).

    A run is on the frontier, and filled, if no other run is at least as good in both measures and better in one; lower
    values are better for NonRelCov, BaitRate and TopBait. ``x="RelCov@20", y="DiscRatio@20"`` is the paper's figure 1,
    ``x="RelCov@20", y="OER@20"`` its figure 5.

    Parameters
    ----------
    values
        The V frame of entity runs, as ``CoverageReport.values``. Means are over topics with all values of both
        measures; the caption counts the other topics.
    x, y
        Measures as the frame spells them. ``"DiscRatio@20"`` is the ratio of the means of RelCov@20 and NonRelCov@20;
        values of DiscRatio in the frame are ignored.
    families
        Families of runs by name of the run, each with its colour, at most seven.
    highlight
        Without families: runs to colour, at most seven. By default all, or if there are more, runs on the frontier,
        evenly spaced.
    target
        A limit of x and one of y; the region that is better in both is shaded and its runs are counted.
    oracle
        A run to draw as a star, such as one selected with judgments. It counts as the others do.
    line
        Draw the least-squares line of y on x over runs with finite values; the caption gives its slope with Student's
        95% interval.

    Notes
    -----
    Pearson's r, with Fisher's interval, and the slope treat runs as a random sample. Configurations of one method are
    nearly identical: the intervals are then too narrow. Runs with an infinite DiscRatio, which reach no non-relevant
    document, are drawn at the edge of the figure, and the caption counts them.

    Examples
    --------
    >>> values = pd.DataFrame({"name": ["a", "b", "c"] * 2, "qid": "q1",
    ...                        "measure": ["RelCov@20"] * 3 + ["NonRelCov@20"] * 3,
    ...                        "value": [0.5, 0.9, 0.8, 0.2, 0.8, 0.9]})
    >>> ax = coverage_discrimination(values)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('NonRelCov@20', 'RelCov@20')
    """
    runs, n_topics, n_lost = run_means(values, x, y)
    with style.canvas(ax, width, min(0.62 * width, 3.4) if len(runs) else 0.5) as drawn:
        if not len(runs):
            return style.nothing(drawn, "entity runs")
        series, rest = _series(runs, families, highlight)
        series = [name for name in series if name != oracle]
        _place(drawn, runs, x, y, target)
        runs, infinite = _at_the_edge(drawn, runs, x, y)
        shaded = "" if target is None else _shade(drawn, runs, x, y, target)
        reference_note = _reference(drawn, x, y)
        front = runs[runs["on_front"]].sort_values("x", kind="stable")
        # Towards worse x, the best known y is that of the nearest run on the frontier.
        steps = "steps-post" if _worse(x) > 0 else "steps-pre"
        drawn.plot(front["x"], front["y"], color=style.INK, linewidth=0.7, drawstyle=steps, zorder=2)
        handles = [_draw(drawn, runs[runs["series"] == name], place, len(runs)) for place, name in enumerate(series)]
        if rest:
            handles.append(_draw(drawn, runs[~runs["series"].isin(series)], None, len(runs)))
        starred = _star(drawn, runs, oracle)
        fitted = _draw_regression_line(drawn, runs) if line else ""
        space = style.cell(drawn)[0] - 0.5
        drawn.set_xlabel(style.fitted_text(x, space))
        drawn.set_ylabel(style.fitted_text(y, 2.0))
        if handles:
            style.legend(drawn, handles, [*series, *([count_text(rest, "other")] if rest else [])], space)
        best = f"filled, on the line: Pareto frontier ({len(front)} of {len(runs)} runs)"
        undefined = f" ({n_lost} undefined)" if n_lost else ""
        means = f"points: means over {verdicts.count_range_text(n_topics, 'topic')}{undefined}"
        style.caption(
            drawn, means, starred, best, reference_note, infinite, _correlation_text(runs, x, y), fitted, shaded
        )
    return drawn


def _series(
    runs: pd.DataFrame, families: Mapping[str, str] | None, highlight: Sequence[str] | None
) -> tuple[list[str], int]:
    """Choose the series to colour, written to the column ``series``; returns them and the number of other runs."""
    names, most = runs["name"].tolist(), len(style.COLOURS)
    if families is not None:
        runs["series"] = [str(families.get(name, "other")) for name in names]
        series = list(dict.fromkeys(runs["series"]))
        if len(series) > most:
            raise ParameterError(f"families: {len(series)} are too many for one figure; choose at most {most}")
        return series, 0
    runs["series"] = names
    chosen = highlighted_names(names, highlight, "runs of the values")
    if chosen is None:
        front = runs[runs["on_front"]].sort_values("x", kind="stable")["name"].tolist()
        places = np.unique(np.linspace(0, len(front) - 1, min(most, len(front))).round()).astype(int)
        chosen = [front[place] for place in places]
    return chosen, len(names) - len(chosen)


def _place(ax: Any, runs: pd.DataFrame, x: str, y: str, target: tuple[float, float] | None) -> None:
    """Set limits and scales of both axes."""
    corner = target or (np.nan, np.nan)
    for axis, measure, limit in (("x", x, corner[0]), ("y", y, corner[1])):
        numbers = runs[axis][np.isfinite(runs[axis])].to_numpy()
        numbers = numbers if len(numbers) else np.ones(1)
        if measure.startswith("DiscRatio") and numbers.max() > MAX_LINEAR_RATIO * numbers.min() > 0:
            in_factors(ax, axis)
            low, high = axis_limits(pd.DataFrame({"log": np.log([*numbers, 1.0])}), 0.08)
            getattr(ax, f"set_{axis}lim")(np.exp(low), np.exp(high))
            continue
        beyond = [] if np.isnan(limit) else [limit]
        getattr(ax, f"set_{axis}lim")(*axis_limits(pd.DataFrame({"at": [*numbers, *beyond]}), 0.08))
        ax.locator_params(axis=axis, nbins=6)


def _at_the_edge(ax: Any, runs: pd.DataFrame, x: str, y: str) -> tuple[pd.DataFrame, str]:
    """Move infinite values to the edge of the axes; returns the runs and a part of the caption."""
    moved, parts = runs.assign(finite=np.isfinite(runs["x"]) & np.isfinite(runs["y"])), []
    for axis, measure in (("x", x), ("y", y)):
        infinite = np.isinf(runs[axis])
        if infinite.any():
            moved.loc[infinite, axis] = getattr(ax, f"get_{axis}lim")()[1]
            parts.append(f"at the {'right' if axis == 'x' else 'top'} edge: {measure} infinite ({infinite.sum()})")
    return moved, "; ".join(parts)


def _star(ax: Any, runs: pd.DataFrame, oracle: str | None) -> str:
    """Draw a run as a star; returns a part of the caption."""
    if oracle is None:
        return ""
    at = runs[runs["name"] == oracle]
    if at.empty:
        choices = examples(runs["name"].tolist())
        raise ParameterError(f"oracle={excerpt(oracle)}: no such run; found {choices}.{nearest(oracle, runs['name'])}")
    look = {"markeredgecolor": style.INK, "markerfacecolor": "#E69F00", "markeredgewidth": 0.7}
    ax.plot(at["x"], at["y"], linestyle="none", marker="*", markersize=9, clip_on=False, zorder=8, **look)
    return f"star: {oracle}"


def _draw_regression_line(ax: Any, runs: pd.DataFrame) -> str:
    """Draw the least-squares line; returns a part of the caption."""
    from scipy import stats

    finite = runs[runs["finite"]]
    if len(finite) < _MIN_RUNS or finite["x"].std() < REPLICA_ROUNDING:
        return "no line: too few runs with different values"
    line = stats.linregress(finite["x"], finite["y"])
    ends = np.array([finite["x"].min(), finite["x"].max()])
    ax.plot(ends, line.intercept + line.slope * ends, color=style.MUTED, linewidth=1.0, zorder=2)
    reach = stats.t.ppf(0.975, len(finite) - 2) * line.stderr
    low, high = line.slope - reach, line.slope + reach
    return f"line: slope {line.slope:.2f} over {len(finite)} runs (95% t: {low:.2f} to {high:.2f})"


def _shade(ax: Any, runs: pd.DataFrame, x: str, y: str, target: tuple[float, float]) -> str:
    """Shade the region beyond a target; returns a part of the caption."""
    from matplotlib.patches import Rectangle

    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    inside, spans, conditions = np.ones(len(runs), dtype=bool), [], []
    ends = (("x", x, target[0], left, right), ("y", y, target[1], bottom, top))
    for axis, measure, limit, low, high in ends:
        is_below = _worse(measure) > 0
        spans.append((low, limit - low) if is_below else (limit, high - limit))
        inside &= (_worse(measure) * (runs[axis] - limit) < 0).to_numpy()
        conditions.append(f"{measure} {'<' if is_below else '>'} {limit:g}")
    (x_start, across), (y_start, up) = spans
    ax.add_patch(Rectangle((x_start, y_start), across, up, facecolor="#009E73", alpha=0.12, linewidth=0, zorder=0))
    return f"shaded: {', '.join(conditions)} ({int(inside.sum())} of {len(runs)} runs)"


def _reference(ax: Any, x: str, y: str) -> str:
    """Draw the line of no discrimination; returns a part of the caption."""
    look = {"color": style.MUTED, "linewidth": 0.6, "linestyle": (0, (4, 3)), "zorder": 1}
    if x.startswith("NonRelCov") and y.startswith("RelCov"):
        ends = max(ax.get_xlim()[0], ax.get_ylim()[0]), min(ax.get_xlim()[1], ax.get_ylim()[1])
        if ends[0] >= ends[1]:
            return ""
        ax.plot(ends, ends, **look)
        return "dashed: equal shares of relevant and of non-relevant documents"
    if y.startswith("DiscRatio"):
        ax.axhline(1, **look)
        return "dashed: no discrimination; DiscRatio: ratio of means"
    if y.startswith("OER"):
        ax.axhline(0, **look)
        return "dashed: no evidence"
    return ""


def _draw(ax: Any, part: pd.DataFrame, place: int | None, n_runs: int) -> Any:
    """Draw the runs of one series, filled on the frontier; returns the handle of the legend."""
    from matplotlib.lines import Line2D

    colour, marker = (style.MUTED, "o") if place is None else style.look(place)
    size = 4.5 if n_runs <= 30 else 3.2  # noqa: PLR2004 - a look, not a rule
    look: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour}
    front = part["on_front"].to_numpy(dtype=bool)
    over = 3 if place is None else 4
    ax.plot(part["x"][front], part["y"][front], **look, markeredgewidth=0.7, zorder=over + 2)
    ax.plot(part["x"][~front], part["y"][~front], **look, markerfacecolor="white", markeredgewidth=0.7, zorder=over)
    return Line2D([], [], **look)


def _correlation_text(runs: pd.DataFrame, x: str, y: str) -> str:
    """Pearson's r over runs, with its interval."""
    is_ratio = x.startswith("DiscRatio") or y.startswith("DiscRatio")
    if len(runs) < _MIN_RUNS or is_ratio or (runs[["x", "y"]].std() < REPLICA_ROUNDING).any():
        return ""
    r = float(runs["x"].corr(runs["y"]))
    low, high = pearson_interval(r, len(runs))
    return f"r = {r:.3f} over runs (95% Fisher z: {low:.2f} to {high:.2f})"


def in_factors(ax: Any, axis: str) -> None:
    """Make an axis logarithmic, with plain numbers at the ticks."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    getattr(ax, f"set_{axis}scale")("log")
    made = getattr(ax, f"{axis}axis")
    made.set_major_locator(LogLocator(subs=(1, 2, 5)))
    made.set_major_formatter(StrMethodFormatter("{x:g}"))
    made.set_minor_locator(NullLocator())
