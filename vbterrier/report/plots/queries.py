"""Figures of scores, comparisons and power against the number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, number
from vbterrier.evaluate import verdicts
from vbterrier.report import captions
from vbterrier.report.plots import elements, style
from vbterrier.report.plots.elements import MAX_LINEAR_RATIO, band_checks, few, figure_columns, kinds, refuse, varies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.report.plots.style import Names

    Crossing = tuple[float, float, float]


_KEYS = ("delta", "test", "n_qids")


def score_by_size(
    scores: Any,
    *,
    measure: Names = None,
    order: str | None = None,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Mean scores against the number of queries, with bands, a line for each system (Mertens et al. 2014, figure 1).

    Colours are systems, dashes are measures, as in :func:`curve`. The axis is logarithmic if sizes grow by factors.

    Parameters
    ----------
    scores
        Columns name, measure, n_qids, mean, low, high (NaN where there is no band), level, order (``"given"``: the
        first n queries; ``"random"``: subsets), n_subsets, seed, as :func:`vbterrier.design.score_by_size` gives them.
    measure, order
        Measures to draw, at most six, and ``"given"`` or ``"random"``, each with its own dashes; all by default.
    highlight
        As for :func:`curve`.

    Examples
    --------
    >>> sizes = {"name": "bm25", "measure": "F1", "n_qids": [10, 20], "mean": [0.6, 0.7], "low": [0.4, 0.6]}
    >>> about = {"high": [0.8, 0.8], "level": 0.95, "order": "random", "n_subsets": 200, "seed": 0}
    >>> ax = score_by_size(pd.DataFrame({**sizes, **about}))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('number of queries', 'F1')
    """
    texts, reals = ("name", "measure", "order"), ("mean", "low", "high", "level")
    frame = figure_columns(scores, "scores", texts=texts, reals=reals, wholes=("n_qids", "n_subsets", "seed"))
    keys = ("name", "measure", "order", "n_qids")
    refuse(frame, "scores", (*keys, "mean", "low", "high"), band_checks(frame, "mean", keys))
    frame = captions.only(captions.only(frame, "measure", measure, "scores"), "order", order, "scores")
    with style.canvas(ax, width, min(0.55 * width, 3.0) if len(frame) else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "scores")
        points, dashed = _with_lines(frame.assign(at=frame["n_qids"], value=frame["mean"]), "measure")
        coloured, rest = elements.split_by_highlight(points, highlight)
        elements.draw(drawn, points, dashed, coloured)
        elements.size_axis(drawn, points["at"], grows=elements.grow(points["at"]))
        shown, data = captions.short(list(frame["measure"].unique()))
        drawn.set_ylabel(style.fitted_text(shown[0] if len(shown) == 1 else "score", 1.6))
        elements.explain(drawn, coloured, len(rest), dashed)
        n_systems = verdicts.count_range_text(frame["name"].nunique(), "system")
        style.caption(drawn, n_systems, *_subsets(frame), elements.choice_caption(rest, highlight), data)
    return drawn


def _with_lines(frame: pd.DataFrame, column: str) -> tuple[pd.DataFrame, list[str]]:
    """Add the column ``line`` (the given column, the order, or both, as they vary); returns the lines, too."""
    orders = varies(frame["order"])
    several = varies(frame[column]) or not orders
    labels = {"given": "order given", "random": "random subsets"}
    parts = [frame[column]] if several else []
    parts += [frame["order"].replace(labels)] if orders else []
    line = parts[0] if len(parts) == 1 else parts[0] + ", " + parts[1]
    names = list(line.unique())
    if len(names) > len(style.DASHES):
        raise ParameterError(
            f"{len(names)} kinds of lines ({examples(names)}) are too many for one figure; choose at most "
            f"{len(style.DASHES)} with measure= and order="
        )
    return frame.assign(line=line), names


def _subsets(frame: pd.DataFrame) -> list[str]:
    """Parts of the caption: the queries of a size, and the bands."""
    notes = []
    for order, part in frame.groupby("order", sort=False):
        drawn = (
            f"{verdicts.count_range_text(part['n_subsets'], 'random subset')} of each size, seed {part['seed'].iloc[0]}"
        )
        notes.append("the first queries in the order given" if order == "given" else drawn)
    levels = frame.loc[frame["low"].notna(), "level"].unique()
    bands = " and ".join(f"{100 * level:g}%" for level in levels)
    return [*notes, f"bands: the middle {bands} of the subsets" if bands else "no bands"]


def not_worse_by_size(
    counts: Any, *, measure: Names = None, order: str | None = None, ax: Any = None, width: float = style.COLUMN
) -> Any:
    """Number of systems that are not significantly worse than the best, against the number of queries.

    A smaller number means that a query set of that size discriminates better between systems.

    Source: Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section
    3.3 and figure 4.

    Parameters
    ----------
    counts
        Columns measure, n_qids, n_systems, n_not_worse (mean over subsets, of all systems but the best), low, high (NaN
        where there is no band), order, n_subsets, level (tests are at 1 - level), test, n_resamples, seed, as
        :func:`vbterrier.design.discriminative_power` gives them.
    measure, order
        Measures to draw, each with its colour, at most seven, and ``"given"`` or ``"random"``, each with its own
        dashes; all by default.

    Examples
    --------
    >>> sizes = {"measure": "F1", "n_qids": [10, 20], "n_systems": 27, "n_not_worse": [20.0, 9.0], "low": [15.0, 5.0]}
    >>> about = {"high": [25.0, 12.0], "order": "random", "n_subsets": 100, "level": 0.95, "test": "bootstrap"}
    >>> ax = not_worse_by_size(pd.DataFrame({**sizes, **about, "n_resamples": 1000, "seed": 0}))
    >>> ax.get_ylabel()
    'systems not worse'
    """
    texts, reals = ("measure", "order", "test"), ("n_not_worse", "low", "high", "level")
    wholes = ("n_qids", "n_systems", "n_subsets", "n_resamples", "seed")
    frame = figure_columns(counts, "counts", texts=texts, reals=reals, wholes=wholes)
    keys = ("measure", "order", "test", "n_qids")
    count, others = frame["n_not_worse"], frame["n_systems"] - 1
    over = ((count < 0) | (count > others), "0 to n_systems - 1 systems: the best is not counted")
    checks = [*band_checks(frame, "n_not_worse", keys), over]
    refuse(frame, "counts", (*keys, "n_not_worse", "low", "high", "n_systems"), checks)
    frame = captions.only(captions.only(frame, "measure", measure, "counts"), "order", order, "counts")
    few(frame, "measure")
    with style.canvas(ax, width, min(0.5 * width, 2.8) if len(frame) else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "counts")
        named = frame.assign(at=frame["n_qids"], value=frame["n_not_worse"], name=frame["measure"])
        points, dashed = _with_lines(named, "test")
        most = max(int(frame["n_systems"].max()) - 1, 1)
        drawn.axhline(most, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        measures = list(frame["measure"].unique())
        elements.draw(drawn, points, dashed, measures)
        drawn.set_ylim(-0.02 * most, 1.04 * most)
        drawn.yaxis.get_major_locator().set_params(integer=True)
        elements.size_axis(drawn, points["at"], grows=elements.grow(points["at"]))
        drawn.set_ylabel("systems not worse")
        shown, data = captions.short(measures)
        elements.explain(drawn, shown, 0, dashed)
        tests = [
            f"{test} test at {1 - level:.3g}" + (f", {n_resamples:,} resamples, seed {seed}" if n_resamples else "")
            for test, level, n_resamples, seed in kinds(frame, "test", "level", "n_resamples", "seed")
        ]
        n_others = verdicts.count_range_text(frame["n_systems"] - 1, "other")
        best = f"not significantly worse than the best, of {n_others} (dashed)"
        style.caption(drawn, best, *tests, *_subsets(frame), data)
    return drawn


def power_curve(plans: Any, *, target: float | None = None, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Power against the number of queries, with bands and the size that reaches a target; a line for each difference δ.

    Parameters
    ----------
    plans
        Results of :func:`vbterrier.design.queries_needed`, one, a list, or a mapping; or columns delta, n_qids, power,
        low, high (NaN where there is no band), level (of the test and the band), test, n_pilot, n_simulations, seed:
        the ``curve`` of such a plan, or several concatenated.
    target
        Target power, between 0 and 1; by default that of the first plan, or 0.8. A plan for this target gives the
        number of queries and its interval; otherwise the number is interpolated on the line, linearly in √n.

    Examples
    --------
    >>> about = {"level": 0.95, "test": "t", "n_pilot": 50, "n_simulations": 1000, "seed": 0}
    >>> result = {"delta": 0.05, "n_qids": [50, 100, 150], "power": [0.5, 0.7, 0.9], "low": [0.4, 0.6, 0.8]}
    >>> ax = power_curve(pd.DataFrame({**result, "high": [0.6, 0.8, 1.0], **about}))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['δ = 0.05: 124 queries']
    """
    if target is not None:
        target = number("target", target, low=0, high=1, open_low=True, open_high=True)
    frame, planned, target = _curves(plans, target)
    parts = few(frame, "delta")
    with style.canvas(ax, width, min(0.55 * width, 3.0) if parts else 0.5) as drawn:
        if not parts:
            return style.nothing(drawn, "curve")
        points = frame.assign(name=frame["delta"].map("{:g}".format), line=frame["test"])
        points = points.assign(at=frame["n_qids"], value=frame["power"])
        deltas, tests = list(points["name"].unique()), list(points["line"].unique())
        drawn.axhline(target, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        elements.draw(drawn, points, tests, deltas)
        drawn.set_ylim(-0.02, 1.04)
        crossings = _crossings(points, planned, target)
        for (delta, _), (at, low, high) in crossings.items():
            colour = style.look(deltas.index(delta))[0]
            drawn.vlines([at], -0.02, target, color=colour, linewidth=0.6, linestyle=(0, (1, 1.2)), zorder=2)
            drawn.hlines([target], low, high, color=colour, linewidth=1.8, zorder=4)
        ends = points.groupby(["name", "line"])["at"].max()
        elements.size_axis(drawn, points["at"], grows=ends.max() > MAX_LINEAR_RATIO * ends.min())
        drawn.set_ylabel("power")
        texts: dict[str, list[str]] = {delta: [] for delta in deltas}
        for (delta, test), (at, low, high) in crossings.items():
            span = "" if np.isnan(low) else f" ({low:,.0f} to {high:,.0f})"
            several = f" ({test})" * (sum(one == delta for one, _ in crossings) > 1)
            texts[delta].append(("not reached" if np.isnan(at) else f"{at:,.0f} queries{span}") + several)
        names = [f"δ = {delta}: {', '.join(sizes)}" for delta, sizes in texts.items()]
        elements.explain(drawn, names, 0, tests)
        style.caption(drawn, *_caption_parts(frame, target, _assurance(plans) if planned else None))
    return drawn


def _curves(plans: Any, target: float | None) -> tuple[pd.DataFrame, dict[tuple[str, str], Crossing], float]:
    """All curves concatenated; the number of queries of plans for the target; the target."""
    from vbterrier.design.planning import QueryPlan

    plans = list(plans.values()) if isinstance(plans, Mapping) else plans
    listed = plans if isinstance(plans, (list, tuple)) else [plans]
    if not listed:
        raise InputError("plans: none; wanted a plan of queries_needed, its curve, or several of them")
    made = [plan for plan in listed if isinstance(plan, QueryPlan)]
    power = target or next((plan.power for plan in made), 0.8)
    reals, wholes = ("delta", "power", "low", "high", "level"), ("n_qids", "n_pilot", "n_simulations", "seed")
    frames = []
    for plan in listed:
        curve = plan.curve if isinstance(plan, QueryPlan) else plan
        frames.append(part := figure_columns(curve, "curve", texts=("test",), reals=reals, wholes=wholes))
        none = (~part["power"].between(0, 1), "a power from 0 to 1")
        refuse(part, "curve", (*_KEYS, "power", "low", "high"), [none, *band_checks(part, "power", _KEYS)])
    frame = pd.concat(frames, ignore_index=True)
    refuse(frame, "curve", _KEYS, [(frame.duplicated(list(_KEYS)), "each size of a difference and test once")])
    planned = {
        (f"{plan.delta:g}", str(plan.curve["test"].iloc[0])): (float(plan.n_qids), float(plan.low), float(plan.high))
        for plan in made
        if plan.power == power
    }
    return frame, planned, power


def _crossings(
    points: pd.DataFrame, planned: Mapping[tuple[str, str], Crossing], target: float
) -> dict[tuple[str, str], Crossing]:
    """Number of queries for each line, from its plan or where the line first crosses the target; NaN if neither."""
    crossings = {}
    for (delta, test), part in points.groupby(["name", "line"], sort=False):
        key = str(delta), str(test)
        at, power = part.sort_values("at", kind="stable")[["at", "value"]].to_numpy(dtype=np.float64).T
        first = int(np.argmax(power >= target))
        if power[first] < target:
            crossing = np.nan
        elif first == 0:
            crossing = at[0]
        else:
            crossing = np.interp(target, power[first - 1 : first + 1], np.sqrt(at[first - 1 : first + 1])) ** 2
        crossings[key] = planned.get(key, (float(np.ceil(np.round(crossing, 6))), np.nan, np.nan))
    return crossings


def _assurance(plans: Any) -> str:
    """The probability with which planned numbers of queries reach the power, if it is that of all plans."""
    from vbterrier.design.planning import QueryPlan

    listed = list(plans.values()) if isinstance(plans, Mapping) else plans
    listed = listed if isinstance(listed, (list, tuple)) else [listed]
    assured = {float(plan.curve["assurance"].iloc[0]) for plan in listed if isinstance(plan, QueryPlan)}
    return f", which reaches it with probability {assured.pop():g}" if len(assured) == 1 and max(assured) > 0 else ""


def _caption_parts(frame: pd.DataFrame, target: float, assurance: str | None) -> list[str]:
    """Parts of the caption: target, tests, simulations and bands; ``assurance``: of planned numbers, if there are any.

    The number of queries is right of the line's crossing, which is for the standard deviation of the pilot itself.
    """
    levels = frame.loc[frame["low"].notna(), "level"].unique()
    bands = " and ".join(f"{100 * level:g}%" for level in levels)
    notes = [
        f"dashed: power {target:g}"
        + ("" if assurance is None else f"; dotted: number of queries{assurance}; thick: its interval"),
        " and ".join(f"{test} test at {1 - level:.3g}" for test, level in kinds(frame, "test", "level")),
    ]
    if not frame["n_pilot"].any():
        return [*notes, "no pilot; bands: TREC collections with the smallest and the largest standard deviation"]
    simulations = verdicts.count_range_text(frame["n_simulations"], "simulation")
    return [
        *notes,
        f"pilot of {verdicts.count_range_text(frame['n_pilot'], 'query')}",
        f"{simulations} for each size, seed {frame['seed'].iloc[0]}",
        f"bands: {bands} intervals for the uncertainty of the pilot's variance" if bands else "no bands",
    ]
