"""Figures of coverage, gain and observable entity relevance (OER)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, excerpt
from vbterrier.evaluate import verdicts
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entity_coverage import ABSENT, BAIT, SIGNAL
from vbterrier.kernels.coverage import CLASSES
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.curves import curve
from vbterrier.report.plots.elements import (
    FILLED_ROW_SHARE,
    MAX_LARGE_MARKS,
    MAX_LINEAR_RATIO,
    axis_limits,
    beside_rows,
    figure_columns,
    legend_from_left,
    round_up,
    varies,
)
from vbterrier.report.plots.entities import in_factors
from vbterrier.stats.breakpoints import Breakpoint
from vbterrier.stats.regression import coverage_strata, numeric_columns

if TYPE_CHECKING:
    from collections.abc import Sequence


_POINTS, _MEANS, _BREAK = style.COLOURS[0], style.COLOURS[1], style.COLOURS[2]
# From bait to signal; grey for classes without a direction. Neighbours differ in lightness.
_LOOK = {
    "anti-signal": "#D55E00",
    "generic bait": "#E69F00",
    "neutral": "#757575",
    ABSENT: "#ffffff",
    "sparse": "#d4d4d4",
    "conditional": "#56B4E9",
    "core": "#0072B2",
}
# Columns with settings of the numbers, and their form in captions.
_SETTINGS = {"k": "first {} entities", "alpha": "α {}", "tau": "τ {}", "rel": "relevant: label {} and above"}
# Minimal width of a bar in inches.
_MIN_BAR_INCHES = 0.07


def coverage_by_k(
    intervals: Any,
    *,
    ratio: bool = False,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Coverage of relevant and of non-relevant documents, or the ratio of the two, against the number of entities k.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 4.1: as k grows, RelCov rises and
    DiscRatio falls.

    Parameters
    ----------
    intervals
        The C frame of entity runs for several k: concatenated ``CoverageReport.entities``. Its DiscRatio is the ratio
        of means.
    ratio
        Draw DiscRatio, with a line at 1 (no discrimination), instead of RelCov (solid) and NonRelCov (dashed).
    highlight
        As for :func:`curve`.

    Examples
    --------
    >>> about = {"level": 0.95, "method": "topics (percentile)", "n_qids": 50, "n_resamples": 2000, "seed": 0}
    >>> rows = {"name": "consensus", "measure": ["DiscRatio@10", "DiscRatio@20"], "value": [1.4, 1.2]}
    >>> ax = coverage_by_k(pd.DataFrame(rows).assign(low=1.1, high=1.5, **about), ratio=True)
    >>> ax.get_ylabel()
    'DiscRatio@k'
    """
    table = pandas_frame(intervals, "intervals")
    require(table, captions.INTERVALS, "intervals")
    measure_names = ("DiscRatio",) if ratio else ("RelCov", "NonRelCov")
    # Reports of several k repeat the measures without k, which are not drawn.
    kept = captions.valid_intervals(table[[_bare_name(text) in measure_names for text in table["measure"]]])
    # The first wanted measure gets a solid line, the second a dashed one.
    order = kept["measure"].map(lambda text: measure_names.index(_bare_name(text)))
    kept = kept.iloc[np.argsort(order.to_numpy(), kind="stable")]
    drawn = curve(kept.drop(columns="replicated"), "k", highlight=highlight, ax=ax, width=width)
    if ratio and len(kept):
        if kept["value"].max() > MAX_LINEAR_RATIO * kept["value"].min() > 0:
            in_factors(drawn, "y")
        drawn.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    elif len(kept):
        drawn.set_ylabel("share of documents reached")
    return drawn


def _bare_name(measure: object) -> str:
    """Name of a measure without parameters and cutoff."""
    return str(measure).partition("@")[0].partition("(")[0]


def gain_by_coverage(
    table: Any,
    *,
    gain: str = "gain",
    coverage: str = "RelCov@20",
    n_strata: int | None = 3,
    at: Breakpoint | None = None,
    level: float = 0.95,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Gain of each topic against its entity coverage, with means over topics of low to high coverage.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 6.1 and 7.3.

    Parameters
    ----------
    table
        A row for each topic, as :meth:`~vbterrier.evaluate.coverage.CoverageReport.gains` returns it. Topics with
        undefined coverage (NaN) are not drawn; the caption counts them.
    gain, coverage
        Columns of the table.
    n_strata, level
        Number of strata of about equal size, 3 for tertiles; ``None`` for none. A bar spans the coverage of a stratum
        at its mean gain, the band is Student's t interval of this level; see :func:`vbterrier.stats.coverage_strata`.
    at
        The result of :func:`vbterrier.stats.breakpoint_sweep`, drawn as a line with a band for its interval.

    Examples
    --------
    >>> table = pd.DataFrame({"RelCov@20": [0.2, 0.3, 0.8, 0.7, 1.0, 0.9], "gain": [0.0, 0.02, 0.09, 0.11, 0.1, 0.3]})
    >>> ax = gain_by_coverage(table)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('RelCov@20', 'gain')
    """
    if at is not None and not isinstance(at, Breakpoint):
        raise InputError(f"at: wanted the result of breakpoint_sweep, found {type(at).__name__}")
    columns = numeric_columns(table, [coverage, gain], gaps=[coverage])
    defined = ~np.isnan(columns[coverage])
    x, y = columns[coverage][defined], columns[gain][defined]
    with style.canvas(ax, width, min(0.58 * width, 3.2) if len(x) else 0.5) as drawn:
        from matplotlib.lines import Line2D

        if not len(x):
            return style.nothing(drawn, "topics with coverage")
        size = 3.4 if len(x) <= MAX_LARGE_MARKS else 2.4
        look: dict[str, Any] = {"marker": "o", "markersize": size, "color": _POINTS, "linestyle": "none"}
        drawn.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
        (points,) = drawn.plot(x, y, **look, markeredgewidth=0, alpha=0.55, zorder=3)
        handles, names, notes = [points], ["topic"], []
        if n_strata is not None:
            means = coverage_strata(table, coverage, [gain], n_strata=n_strata, level=level)
            there = means[means["value"].notna()]
            # A minimal width keeps a stratum with a single coverage visible.
            least = 0.012 * float(there["coverage_high"].max() - there["coverage_low"].min() or 1.0)
            columns_shown = ["coverage_low", "coverage_high", "value", "low", "high"]
            for left, right, value, low, high in there[columns_shown].to_numpy():
                middle, half = (left + right) / 2, max((right - left) / 2, least)
                ends = middle - half, middle + half
                drawn.hlines(value, *ends, color=_MEANS, linewidth=1.8, zorder=5)
                if not np.isnan(low):
                    drawn.fill_between(ends, low, high, color=_MEANS, alpha=0.18, linewidth=0, zorder=2)
            handles.append(Line2D([], [], color=_MEANS, linewidth=1.8))
            names.append(f"mean of {'tertile' if n_strata == 3 else 'stratum'}")  # noqa: PLR2004 - the word for 3
            topics = verdicts.count_range_text(means["n_qids"], "topic")
            notes = [f"means of {topics}, {100 * level:g}% intervals: Student's t"]
        if at is not None and not np.isnan(at.value):
            if not np.isnan(at.low):
                drawn.axvspan(at.low, at.high, color=_BREAK, alpha=0.1, linewidth=0, zorder=0)
            handles.append(drawn.axvline(at.value, color=_BREAK, linewidth=1.0, linestyle=(0, (4, 1.5)), zorder=4))
            names.append("breakpoint")
        drawn.set_xlim(*axis_limits(pd.DataFrame({"x": x})))
        drawn.locator_params(nbins=6)
        space = style.cell(drawn)[0] - 0.5
        drawn.set_xlabel(style.fitted_text(coverage, space))
        drawn.set_ylabel(style.fitted_text(gain, 2.0))
        style.legend(drawn, handles, names, space)
        lost = int((~defined).sum())
        topics = verdicts.count_range_text(len(x), "topic") + f" ({lost} without coverage)" * bool(lost)
        style.caption(drawn, f"{topics}, mean gain {y.mean():+.3f}", *notes, _breakpoint_text(at))
    return drawn


def _breakpoint_text(at: Breakpoint | None) -> str:
    """Part of the caption about the breakpoint."""
    if at is None:
        return ""
    if np.isnan(at.value):
        return "no breakpoint: too few topics"
    drawn = f"{at.n_resamples:,} resamples"
    ends = "" if np.isnan(at.low) else f" ({100 * at.level:g}% {at.low:.2f} to {at.high:.2f}, {drawn})"
    return (
        f"breakpoint ({at.model}) {at.value:.2f}{ends}, p = {at.p_value:.3f} of {at.n_permutations:,} permutations, "
        f"all cuts searched, seed {at.seed}"
    )


def oer_distributions(
    selected: Any,
    *,
    runs: Sequence[str] | None = None,
    step: float | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Observable entity relevance of the entities that runs select, by signal class (Chatterjee 2026, figures 3 and 4).

    One row for each run: stacked bars show the share of the run's entities with an OER within a step, over all topics,
    and a diamond marks their mean. The highest bar of each run fills its row: shares compare within a run, not between
    runs. The shares of signal (core, conditional) and of bait (generic bait, anti-signal) are printed right of the row.

    Parameters
    ----------
    selected
        Columns name, qid, oer and signal, a row for each selected entity, as
        :func:`vbterrier.entities.selected_entities` returns it; or other entities with their classes, as the
        partitions of a supervision (figure 3). Rows with a missing OER are not drawn; the caption counts them.
    runs
        Runs to draw, in this order; all by default.
    step
        Width of the bars; by default the narrowest that is visible.

    Examples
    --------
    >>> slots = pd.DataFrame({"name": "consensus", "qid": "q1", "oer": [1.2, 0.3, -0.4], "signal": "conditional"})
    >>> ax = oer_distributions(slots.assign(signal=["core", "conditional", "anti-signal"]))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['consensus'], 'OER (log odds)')
    """
    if step is not None and not step > 0:
        raise ParameterError(f"step={excerpt(step)}: wanted a width above 0, or None")
    frame = _valid_classes(pandas_frame(selected, "selected"))
    frame = captions.only(frame, "name", runs, "selected")
    names = list(dict.fromkeys(runs)) if runs is not None else list(frame["name"].unique())
    defined = frame.dropna(subset=["oer"])
    n = len(names)
    row = float(np.clip(style.PAGE / max(n, 1), 0.22, 1.3 / max(n, 1) + 0.3))
    with style.canvas(ax, width, n * row if len(defined) else 0.5) as drawn:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if not len(defined):
            return style.nothing(drawn, "entities with an OER")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, names, row, 0.36 * across)
        # The shares of signal and of bait.
        rates = [defined["signal"].isin(kinds).groupby(defined["name"]).mean() for kinds in (SIGNAL, BAIT)]
        beside = [" / ".join(f"{100 * rate[name]:.0f}%" for rate in rates if name in rate) for name in names]
        space = across - taken - 0.15 - beside_rows(drawn, beside, "signal / bait")
        # An edge is at 0, so that no bar mixes signs.
        least, most = float(defined["oer"].min()), float(defined["oer"].max())
        step = step or round_up(max(most - least, 0.1) * _MIN_BAR_INCHES / max(space, _MIN_BAR_INCHES))
        edges = step * np.arange(int(np.floor(least / step)), int(np.floor(most / step)) + 2)
        _draw(drawn, defined, names, edges)
        drawn.set_ylim(n - 1 + 0.5, -0.5)
        drawn.axvline(0, color=style.INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=4)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.4, 2, 8)))
        drawn.set_xlabel("OER (log odds)")
        # The legend is aligned with the names of the rows.
        there = [name for name in reversed(_LOOK) if (defined["signal"] == name).any()]
        handles: list[Any] = [Patch(facecolor=_LOOK[name], edgecolor=style.MUTED, linewidth=0.3) for name in there]
        mean = Line2D([], [], color="black", marker="D", markersize=3.4, linestyle="none")
        legend_from_left(drawn, [*handles, mean], [*there, "mean"], space, taken)
        lost, several = len(frame) - len(defined), n > 1
        # Settings that are the same in all rows.
        shared = {name: frame[name].iloc[0] for name in _SETTINGS if name in frame.columns and not varies(frame[name])}
        style.caption(
            drawn,
            verdicts.count_range_text(defined.groupby("name").size().reindex(names, fill_value=0), "entity")
            + " for each run" * several,
            verdicts.count_range_text(defined["qid"].nunique(), "topic"),
            ", ".join(_SETTINGS[name].format(f"{value:g}") for name, value in shared.items()),
            f"bars: shares in steps of {edges[1] - edges[0]:.3g}" + ", scaled to the highest bar of each run" * several,
            f"not drawn, no OER for their topics: {lost:,}" if lost else "",
        )
    return drawn


def _valid_classes(selected: pd.DataFrame) -> pd.DataFrame:
    frame = figure_columns(selected, "selected", texts=("name", "qid", "signal"), reals=("oer",))
    frame = frame.join(selected[[name for name in _SETTINGS if name in selected.columns]].reset_index(drop=True))
    odd = ~frame["signal"].isin(_LOOK) & frame["oer"].notna()
    if odd.any():
        row = int(np.argmax(odd.to_numpy()))
        legal = ", ".join(map(repr, (*CLASSES, ABSENT)))
        raise InputError(f"selected: row {row} has the class {frame['signal'][row]!r}; wanted one of {legal}")
    return frame


def _draw(ax: Any, defined: pd.DataFrame, names: list[str], edges: Any) -> None:
    """Draw the bars and means of all rows."""
    step = edges[1] - edges[0]
    place = np.clip(np.searchsorted(edges, defined["oer"].to_numpy(), side="right") - 1, 0, len(edges) - 2)
    signal = defined["signal"].map({name: at for at, name in enumerate(_LOOK)}).to_numpy()
    run = defined["name"].map({name: at for at, name in enumerate(names)}).to_numpy()
    counts = np.zeros((len(names), len(_LOOK), len(edges) - 1))
    np.add.at(counts, (run, signal, place), 1)
    shares = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    highest = shares.sum(axis=1).max(axis=1)
    for at, name in enumerate(names):
        base = np.full(len(edges) - 1, at + 0.45)
        for which, colour in enumerate(_LOOK.values()):
            tall = FILLED_ROW_SHARE * shares[at, which] / (highest[at] or 1)
            there = tall > 0
            look = {"color": colour, "edgecolor": style.MUTED if colour == "#ffffff" else "white", "linewidth": 0.25}
            ax.bar(edges[:-1][there], -tall[there], step, base[there], align="edge", **look, zorder=2)
            base = base - tall
        ax.hlines(at + 0.45, edges[0], edges[-1], color=style.RULE, linewidth=0.5, zorder=1)
        mean = defined.loc[defined["name"] == name, "oer"].mean()
        look = {"marker": "D", "markersize": 3.4, "color": "black", "markeredgecolor": "white", "markeredgewidth": 0.5}
        ax.plot([mean], [at + 0.45], **look, linestyle="none", clip_on=False, zorder=5)
    ax.set_xlim(edges[0], edges[-1])
