"""The power of a test against the number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.parameters import number
from vbterrier.queryset.planning import QueryPlan
from vbterrier.report.plots import lines, style, words
from vbterrier.report.plots.parts import band_checks, columns_of, few, kinds, refuse

if TYPE_CHECKING:
    # Number of queries, and its interval; NaN where there is none.
    Crossing = tuple[float, float, float]

# From this ratio of the longest to the shortest curve on, equal steps are equal factors.
_APART = 5
_KEYS = ("delta", "test", "n_qids")


def power_curve(plans: Any, *, target: float | None = None, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Power against the number of queries, with bands, and where it reaches a target; a line for each difference δ.

    Parameters
    ----------
    plans
        What :func:`vbterrier.queries_needed` gives, one, a list, or a mapping; or columns delta,
        n_qids, power, low, high (NaN where there is no band), level (of the test and the band), test, n_pilot,
        n_simulations, seed: the ``curve`` of such a plan, or several, one below the other.
    target
        The power that is wanted, between 0 and 1; by default that of the first plan, or 0.8. A plan for it has the
        number of queries and its interval, drawn at the target; else the number is read from the line, between sizes
        over √n.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7).

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No plan; a missing column; a size twice; a power outside [0, 1] or outside its band.
    ParameterError
        A target outside (0, 1); more than seven differences, more than six tests.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> about = {"level": 0.95, "test": "t", "n_pilot": 50, "n_simulations": 1000, "seed": 0}
    >>> found = {"delta": 0.05, "n_qids": [50, 100, 150], "power": [0.5, 0.7, 0.9], "low": [0.4, 0.6, 0.8]}
    >>> ax = power_curve(pd.DataFrame({**found, "high": [0.6, 0.8, 1.0], **about}))
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
        lines.draw(drawn, points, tests, deltas)
        drawn.set_ylim(-0.02, 1.04)
        crossings = _crossings(points, planned, target)
        for (delta, _), crossing in crossings.items():
            _mark(drawn, crossing, target, style.look(deltas.index(delta))[0])
        ends = points.groupby(["name", "line"])["at"].max()
        lines.size_axis(drawn, points["at"], grows=ends.max() > _APART * ends.min())
        drawn.set_ylabel("power")
        lines.explain(drawn, [f"δ = {delta}: {_said(crossings, delta)}" for delta in deltas], 0, tests)
        style.caption(drawn, *_described(frame, target, planned=bool(planned)))
    return drawn


def _curves(plans: Any, target: float | None) -> tuple[pd.DataFrame, dict[tuple[str, str], Crossing], float]:
    """All curves, one below the other; how many queries plans for the target found to be needed; the target."""
    given = (
        list(plans.values()) if isinstance(plans, Mapping) else plans if isinstance(plans, (list, tuple)) else [plans]
    )
    if not given:
        raise InputError("plans: none; wanted a plan of queries_needed, its curve, or several of them")
    made = [plan for plan in given if isinstance(plan, QueryPlan)]
    wanted = target or next((plan.power for plan in made), 0.8)
    frames = [_checked(plan.curve if isinstance(plan, QueryPlan) else plan) for plan in given]
    frame = pd.concat(frames, ignore_index=True)
    refuse(frame, "curve", _KEYS, [(frame.duplicated(list(_KEYS)), "each size of a difference and test once")])
    planned = {
        (f"{plan.delta:g}", str(plan.curve["test"].iloc[0])): (float(plan.n_qids), float(plan.low), float(plan.high))
        for plan in made
        if plan.power == wanted
    }
    return frame, planned, wanted


def _checked(given: Any) -> pd.DataFrame:
    reals, wholes = ("delta", "power", "low", "high", "level"), ("n_qids", "n_pilot", "n_simulations", "seed")
    frame = columns_of(given, "curve", texts=("test",), reals=reals, wholes=wholes)
    none = (~frame["power"].between(0, 1), "a power from 0 to 1")
    refuse(frame, "curve", (*_KEYS, "power", "low", "high"), [none, *band_checks(frame, "power", _KEYS)])
    return frame


def _crossings(
    points: pd.DataFrame, planned: Mapping[tuple[str, str], Crossing], target: float
) -> dict[tuple[str, str], Crossing]:
    """How many queries each line needs, of its plan or where it first crosses the target; NaN where it does not."""
    found = {}
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
        found[key] = planned.get(key, (float(np.ceil(np.round(crossing, 6))), np.nan, np.nan))
    return found


def _mark(ax: Any, crossing: Crossing, target: float, colour: str) -> None:
    """A line down from where the target is reached, and the interval of the place."""
    at, low, high = crossing
    ax.vlines([at], -0.02, target, color=colour, linewidth=0.6, linestyle=(0, (1, 1.2)), zorder=2)
    ax.hlines([target], low, high, color=colour, linewidth=1.8, zorder=4)


def _said(crossings: Mapping[tuple[str, str], Crossing], delta: str) -> str:
    """How many queries a difference needs, for each test if there are several."""
    own = {test: crossing for (one, test), crossing in crossings.items() if one == delta}
    texts = [_number(crossing) + (f" ({test})" if len(own) > 1 else "") for test, crossing in own.items()]
    return ", ".join(texts)


def _number(crossing: Crossing) -> str:
    at, low, high = crossing
    if np.isnan(at):
        return "not reached"
    return f"{at:,.0f} queries" + ("" if np.isnan(low) else f" ({low:,.0f} to {high:,.0f})")


def _described(frame: pd.DataFrame, target: float, *, planned: bool) -> list[str]:
    """What the caption says of target, simulations and bands."""
    levels = frame.loc[frame["low"].notna(), "level"].unique()
    bands = " and ".join(f"{100 * level:g}%" for level in levels)
    return [
        f"dashed: power {target:g}" + (", with the interval of the number of queries" if planned else ""),
        " and ".join(f"{test} test at {1 - level:.3g}" for test, level in kinds(frame, "test", "level")),
        f"pilot of {words.counted(frame['n_pilot'], 'query')}",
        f"{words.counted(frame['n_simulations'], 'simulation')} a size, seed {frame['seed'].iloc[0]}",
        f"bands: {bands} intervals, as the pilot leaves its spread uncertain" if bands else "no bands",
    ]
