"""Scores and comparisons as a query set grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, examples
from vbterrier.report.plots import lines, style, words
from vbterrier.report.plots.parts import band_checks, columns_of, few, kinds, refuse, varies

if TYPE_CHECKING:
    from collections.abc import Sequence


def score_by_size(
    scores: Any,
    *,
    measure: str | Sequence[str] | None = None,
    order: str | None = None,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Mean scores against the number of queries, with bands, a line for each system (Mertens et al. 2014, figure 1).

    Colours are systems, dashes are measures. Of more than seven systems those with the highest scores at the end have
    a colour and a place in the legend, and the others are grey. Sizes that grow by factors stand at equal steps.

    Parameters
    ----------
    scores
        Columns name, measure, n_qids, mean, low, high (NaN where there is no band), level, order (``"given"``: the
        first n queries; ``"random"``: subsets), n_subsets, seed, as
        :func:`vbterrier.score_by_size` gives them.
    measure
        Measures to draw, six at most; all by default.
    order
        ``"given"`` or ``"random"``; by default what the frame has, each with dashes of its own.
    highlight
        Systems to colour, seven at most.
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
        A missing column; a size twice; a band with one end, or that its mean is outside of.
    ParameterError
        A measure, order or system that the frame does not have; more measures than can be told apart.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> sizes = {"name": "bm25", "measure": "F1", "n_qids": [10, 20], "mean": [0.6, 0.7], "low": [0.4, 0.6]}
    >>> about = {"high": [0.8, 0.8], "level": 0.95, "order": "random", "n_subsets": 200, "seed": 0}
    >>> ax = score_by_size(pd.DataFrame({**sizes, **about}))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('number of queries', 'F1')
    """
    reals = ("mean", "low", "high", "level")
    frame = columns_of(
        scores, "scores", texts=("name", "measure", "order"), reals=reals, wholes=("n_qids", "n_subsets", "seed")
    )
    keys = ("name", "measure", "order", "n_qids")
    refuse(frame, "scores", (*keys, "mean", "low", "high"), band_checks(frame, "mean", keys))
    frame = words.only(words.only(frame, "measure", measure, "scores"), "order", order, "scores")
    with style.canvas(ax, width, min(0.55 * width, 3.0) if len(frame) else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "scores")
        points, dashed = _lined(frame.assign(at=frame["n_qids"], value=frame["mean"]), "measure")
        coloured, rest = lines.chosen(points, highlight)
        lines.draw(drawn, points, dashed, coloured)
        lines.size_axis(drawn, points["at"], grows=lines.grow(points["at"]))
        shown, data = words.short(list(frame["measure"].unique()))
        drawn.set_ylabel(style.fitted(shown[0] if len(shown) == 1 else "score", 1.6))
        lines.explain(drawn, coloured, len(rest), dashed)
        picked = f"in colour: the {len(style.COLOURS)} highest at the end" if rest and highlight is None else ""
        n_systems = words.counted(pd.Series([frame["name"].nunique()]), "system")
        style.caption(drawn, n_systems, *_subsets(frame), picked, data)
    return drawn


def not_worse_by_size(
    counts: Any,
    *,
    measure: str | Sequence[str] | None = None,
    order: str | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """How many systems are not significantly worse than the best, against the number of queries.

    The fewer, the better a query set of that size tells systems apart.

    Parameters
    ----------
    counts
        Columns measure, n_qids, n_systems, n_not_worse (mean over subsets, of all systems but the best), low, high (NaN
        where there is no band), order, n_subsets, level (tests are at 1 - level), test, n_resamples, seed, as
        :func:`vbterrier.discriminative_power` gives them.
    measure
        Measures to draw, each with its colour, seven at most; all by default.
    order
        ``"given"`` or ``"random"``; by default what the frame has, each with dashes of its own.
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
        A missing column; a size twice; a band with one end, or that its count is outside of; more than all others.
    ParameterError
        A measure or order that the frame does not have; more measures than can be told apart.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 3.3 and
    figure 4.

    Examples
    --------
    >>> import pandas as pd
    >>> sizes = {"measure": "F1", "n_qids": [10, 20], "n_systems": 27, "n_not_worse": [20.0, 9.0], "low": [15.0, 5.0]}
    >>> about = {"high": [25.0, 12.0], "order": "random", "n_subsets": 100, "level": 0.95, "test": "bootstrap"}
    >>> ax = not_worse_by_size(pd.DataFrame({**sizes, **about, "n_resamples": 1000, "seed": 0}))
    >>> ax.get_ylabel()
    'systems not worse'
    """
    frame = columns_of(
        counts,
        "counts",
        texts=("measure", "order", "test"),
        reals=("n_not_worse", "low", "high", "level"),
        wholes=("n_qids", "n_systems", "n_subsets", "n_resamples", "seed"),
    )
    keys = ("measure", "order", "test", "n_qids")
    count, others = frame["n_not_worse"], frame["n_systems"] - 1
    over = ((count < 0) | (count > others), "0 to n_systems - 1 systems: the best is not counted")
    checks = [*band_checks(frame, "n_not_worse", keys), over]
    refuse(frame, "counts", (*keys, "n_not_worse", "low", "high", "n_systems"), checks)
    frame = words.only(words.only(frame, "measure", measure, "counts"), "order", order, "counts")
    few(frame, "measure")
    with style.canvas(ax, width, min(0.5 * width, 2.8) if len(frame) else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "counts")
        named = frame.assign(at=frame["n_qids"], value=frame["n_not_worse"], name=frame["measure"])
        points, dashed = _lined(named, "test")
        most = max(int(frame["n_systems"].max()) - 1, 1)
        drawn.axhline(most, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        measures = list(frame["measure"].unique())
        lines.draw(drawn, points, dashed, measures)
        drawn.set_ylim(-0.02 * most, 1.04 * most)
        drawn.yaxis.get_major_locator().set_params(integer=True)
        lines.size_axis(drawn, points["at"], grows=lines.grow(points["at"]))
        drawn.set_ylabel("systems not worse")
        shown, data = words.short(measures)
        lines.explain(drawn, shown, 0, dashed)
        rivals = words.counted(frame["n_systems"] - 1, "other")
        style.caption(
            drawn,
            f"not significantly worse than the best, of {rivals} (dashed)",
            *_tests(frame),
            *_subsets(frame),
            data,
        )
    return drawn


def _lined(frame: pd.DataFrame, column: str) -> tuple[pd.DataFrame, list[str]]:
    """The frame with a column ``line``, the given one and the order where both differ, and its values."""
    orders = varies(frame["order"])
    several = varies(frame[column]) or not orders
    said = {"given": "order given", "random": "random subsets"}
    parts = [frame[column]] if several else []
    parts += [frame["order"].replace(said)] if orders else []
    line = parts[0] if len(parts) == 1 else parts[0] + ", " + parts[1]
    found = list(line.unique())
    if len(found) > len(style.DASHES):
        raise ParameterError(
            f"{len(found)} kinds of lines ({examples(found)}) are more than can be told apart; choose some with "
            f"measure= and order="
        )
    return frame.assign(line=line), found


def _subsets(frame: pd.DataFrame) -> list[str]:
    """Which queries a size has, and what a band is."""
    said = []
    for order, part in frame.groupby("order", sort=False):
        drawn = f"{words.counted(part['n_subsets'], 'random subset')} of each size, seed {part['seed'].iloc[0]}"
        said.append("the first queries in the order given" if order == "given" else drawn)
    levels = frame.loc[frame["low"].notna(), "level"].unique()
    bands = " and ".join(f"{100 * level:g}%" for level in levels)
    return [*said, f"bands: the middle {bands} of the subsets" if bands else "no bands"]


def _tests(frame: pd.DataFrame) -> list[str]:
    """What "significantly" means."""
    said = []
    for test, level, n_resamples, seed in kinds(frame, "test", "level", "n_resamples", "seed"):
        drawn = f", {n_resamples:,} resamples, seed {seed}" if n_resamples else ""
        said.append(f"{test} test at {1 - level:.3g}{drawn}")
    return said
