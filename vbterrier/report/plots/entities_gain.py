"""What entities reach as more are taken, and what topics gain by how far entities reach in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report.plots import style, words
from vbterrier.report.plots.curves import curve
from vbterrier.report.plots.entities import in_factors
from vbterrier.report.plots.parts import limits_of
from vbterrier.uncertainty.breakpoints import Breakpoint
from vbterrier.uncertainty.columns import numbers
from vbterrier.uncertainty.strata import coverage_strata

if TYPE_CHECKING:
    from collections.abc import Sequence

_POINTS, _MEANS, _BREAK = style.COLOURS[0], style.COLOURS[1], style.COLOURS[2]
# From this ratio on, equal steps are equal factors.
_WIDE = 5
# Up to this many points marks are large.
_SPARSE = 60


def coverage_by_k(
    intervals: Any,
    *,
    ratio: bool = False,
    highlight: Sequence[str] | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Coverage of relevant and of other documents, or the ratio of the two, against the number of entities k.

    Parameters
    ----------
    intervals
        The C frame of entity runs for several k: ``CoverageReport.entities`` of reports, one below the other. Its
        DiscRatio is the ratio of means.
    ratio
        DiscRatio, with a line at 1, where nothing is told apart; otherwise RelCov (drawn through) and NonRelCov
        (dashed).
    highlight
        Runs to colour, seven at most.
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
        A frame that is no C frame.
    ParameterError
        A measure or run that the frame does not have.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 4.1: as k grows, RelCov rises and DiscRatio
    falls.

    Examples
    --------
    >>> import pandas as pd
    >>> about = {"level": 0.95, "method": "topics (percentile)", "n_qids": 50, "n_resamples": 2000, "seed": 0}
    >>> rows = {"name": "consensus", "measure": ["DiscRatio@10", "DiscRatio@20"], "value": [1.4, 1.2]}
    >>> ax = coverage_by_k(pd.DataFrame(rows).assign(low=1.1, high=1.5, **about), ratio=True)
    >>> ax.get_ylabel()
    'DiscRatio@k'
    """
    given = frame_of(intervals, "intervals")
    require(given, words.INTERVALS, "intervals")
    wanted = ("DiscRatio",) if ratio else ("RelCov", "NonRelCov")
    # Reports of several k share what has none, which is not drawn: it may stand there several times.
    kept = words.intervals_of(given[[_named(text) in wanted for text in given["measure"]]])
    # Through for what is reached, dashed for what should not be.
    order = kept["measure"].map(lambda text: wanted.index(_named(text)))
    kept = kept.iloc[np.argsort(order.to_numpy(), kind="stable")]
    drawn = curve(kept.drop(columns="replicated"), "k", highlight=highlight, ax=ax, width=width)
    if ratio and len(kept):
        if kept["value"].max() > _WIDE * kept["value"].min() > 0:
            in_factors(drawn, "y")
        drawn.axhline(1, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    elif len(kept):
        drawn.set_ylabel("share of documents reached")
    return drawn


def _named(measure: object) -> str:
    """A measure less its parameters and cutoff."""
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
    """What each topic gains against how far entities reach in it, with means over topics of low to high coverage.

    Parameters
    ----------
    table
        A row a topic, as :meth:`~vbterrier.evaluate.coverage_result.CoverageReport.gains` makes it. Topics whose
        coverage is undefined (NaN) are not drawn; the caption counts them.
    gain, coverage
        Columns.
    n_strata
        How many strata of about equal size, 3 for tertiles; ``None`` for none. A bar from the least to the most
        coverage of a stratum is its mean gain, the band Student's t interval; see :func:`vbterrier.coverage_strata`.
    at
        What :func:`vbterrier.breakpoint_sweep` found: a line, and a band for its interval.
    level
        Of the intervals of strata.
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
        A missing column, a gain that is none; something else than a breakpoint.
    ParameterError
        Fewer than two strata, a level outside (0, 1).
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 6.1 and 7.3.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"RelCov@20": [0.2, 0.3, 0.8, 0.7, 1.0, 0.9], "gain": [0.0, 0.02, 0.1, 0.1, 0.1, 0.3]})
    >>> ax = gain_by_coverage(table)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('RelCov@20', 'gain')
    """
    if at is not None and not isinstance(at, Breakpoint):
        raise InputError(f"at: wanted what breakpoint_sweep gives, found {type(at).__name__}")
    columns = numbers(table, [coverage, gain], gaps=[coverage])
    known = ~np.isnan(columns[coverage])
    x, y = columns[coverage][known], columns[gain][known]
    with style.canvas(ax, width, min(0.58 * width, 3.2) if len(x) else 0.5) as drawn:
        if not len(x):
            return style.nothing(drawn, "topics with coverage")
        size = 3.4 if len(x) <= _SPARSE else 2.4
        look: dict[str, Any] = {"marker": "o", "markersize": size, "color": _POINTS, "linestyle": "none"}
        drawn.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
        (points,) = drawn.plot(x, y, **look, markeredgewidth=0, alpha=0.55, zorder=3)
        handles, names, said = [points], ["topic"], []
        if n_strata is not None:
            means = coverage_strata(table, coverage, [gain], n_strata=n_strata, level=level)
            handles.append(_strata(drawn, means))
            names.append(f"mean of {'tertile' if n_strata == 3 else 'stratum'}")  # noqa: PLR2004 - the word for 3
            said = [f"means of {words.counted(means['n_qids'], 'topic')}, {100 * level:g}% intervals: Student's t"]
        if at is not None and not np.isnan(at.value):
            handles.append(_break(drawn, at))
            names.append("breakpoint")
        drawn.set_xlim(*limits_of(pd.DataFrame({"x": x})))
        drawn.locator_params(nbins=6)
        room = style.cell(drawn)[0] - 0.5
        drawn.set_xlabel(style.fitted(coverage, room))
        drawn.set_ylabel(style.fitted(gain, 2.0))
        style.legend(drawn, handles, names, room)
        lost = int((~known).sum())
        topics = words.counted(pd.Series([len(x)]), "topic") + (f" ({lost} without coverage)" if lost else "")
        style.caption(drawn, f"{topics}, mean gain {y.mean():+.3f}", *said, _broken(at))
    return drawn


def _strata(ax: Any, means: pd.DataFrame) -> Any:
    """Bars and bands of strata; returns what stands for them in a legend."""
    there = means[means["value"].notna()]
    # A stratum of one coverage still is to be seen.
    least = 0.012 * float(there["coverage_high"].max() - there["coverage_low"].min() or 1.0)
    for left, right, value, low, high in there[["coverage_low", "coverage_high", "value", "low", "high"]].to_numpy():
        middle, half = (left + right) / 2, max((right - left) / 2, least)
        ends = middle - half, middle + half
        ax.hlines(value, *ends, color=_MEANS, linewidth=1.8, zorder=5)
        if not np.isnan(low):
            ax.fill_between(ends, low, high, color=_MEANS, alpha=0.18, linewidth=0, zorder=2)
    from matplotlib.lines import Line2D

    return Line2D([], [], color=_MEANS, linewidth=1.8)


def _break(ax: Any, at: Breakpoint) -> Any:
    if not np.isnan(at.low):
        ax.axvspan(at.low, at.high, color=_BREAK, alpha=0.1, linewidth=0, zorder=0)
    return ax.axvline(at.value, color=_BREAK, linewidth=1.0, linestyle=(0, (4, 1.5)), zorder=4)


def _broken(at: Breakpoint | None) -> str:
    """What a caption says of a breakpoint."""
    if at is None:
        return ""
    if np.isnan(at.value):
        return "no breakpoint could be tried"
    drawn = f"{at.n_resamples:,} resamples"
    ends = "" if np.isnan(at.low) else f" ({100 * at.level:g}% {at.low:.2f} to {at.high:.2f}, {drawn})"
    return (
        f"breakpoint ({at.model}) {at.value:.2f}{ends}, p = {at.p_value:.3f} of {at.n_permutations:,} permutations, "
        f"all cuts searched, seed {at.seed}"
    )
