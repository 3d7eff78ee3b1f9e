"""Figures of the distribution of scores over unjudged documents."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report import captions
from vbterrier.report.plots import style
from vbterrier.report.plots.elements import beside_rows, round_up
from vbterrier.unjudged.distribution import BootstrapDistribution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.unjudged.priors import Process


def rows_of(law: BootstrapDistribution, topics: Sequence[str] | None, level: float) -> pd.DataFrame:
    """The topics to draw, highest mean first: what their rows say, and their places in the law."""
    low, high = law.interval(level)
    every = pd.DataFrame({"qid": law.topics, "place": np.arange(len(law)), "n_unjudged": law.n_unjudged})
    every = every.assign(mean=law.mean, low=low, high=high, least=law.quantile(0), greatest=law.quantile(1))
    if topics is not None:
        asked = [topics] if isinstance(topics, str) else list(topics)
        strangers = [topic for topic in asked if topic not in law.topics]
        if strangers:
            near = nearest(str(strangers[0]), law.topics)
            raise ParameterError(
                f"topics: {examples(strangers)} not evaluated; there are {examples(law.topics)}.{near}"
            )
        every = every[every["qid"].isin(asked)]
    return every.sort_values("mean", ascending=False, kind="stable").reset_index(drop=True)


def marks_of(marks: Mapping[str, Any], topics: list[str], rows: pd.DataFrame) -> dict[str, Floats]:
    """The value of each mark in each row, NaN where there is none."""
    most = len(style.COLOURS) - 1
    if len(marks) > most:
        raise ParameterError(f"marks: {len(marks)} are more than can be told apart; choose {most} at most")
    return {str(name): _column(pd.Series(given), f"marks[{name!r}]", topics, rows) for name, given in marks.items()}


def _column(given: pd.Series[Any], where: str, topics: list[str], rows: pd.DataFrame) -> Floats:
    qids = captions.texts(given.index.to_series(), f"{where} qid")
    values = pd.Series(captions.reals(given, where), index=qids)
    if values.index.has_duplicates:
        raise InputError(f"{where}: query {values.index[values.index.duplicated()][0]!r} stands twice; keep one")
    if len(values) and not values.index.isin(topics).any():
        raise InputError(f"{where}: none of its queries ({examples(qids)}) was evaluated ({examples(topics)})")
    found: Floats = values.reindex(rows["qid"]).to_numpy(dtype=np.float64)
    return found


def bounds_of(bounds: Any, topics: list[str], rows: pd.DataFrame) -> tuple[tuple[Floats, Floats] | None, str]:
    """The ends of each row's bounds, and what a legend calls them."""
    if bounds is None:
        return None, ""
    frame = frame_of(bounds, "bounds")
    require(frame, ("qid", "low", "high"), "bounds")
    kinds = list(frame["kind"].unique()) if "kind" in frame.columns else []
    if len(kinds) > 1:
        raise InputError(f"bounds: wanted one kind, found {examples(kinds)}; keep the rows of one")
    low, high = (
        _column(frame.set_index("qid")[end], f"bounds column {end!r}", topics, rows) for end in ("low", "high")
    )
    bad = (low > high) | (np.isnan(low) != np.isnan(high))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"bounds: query {rows['qid'][row]!r} has {low[row]:g} to {high[row]:g}; wanted two ends in order, or NaN"
        )
    return (low, high), " ".join([*map(str, kinds), "bounds"])


def measure_of(law: BootstrapDistribution) -> str:
    """The name of the score."""
    return law.metric.name if law.cutoff is None else f"{law.metric.name}@{law.cutoff}"


def described(law: BootstrapDistribution, rows: pd.DataFrame) -> list[str]:
    """What the caption says of topics and process."""
    known = int((rows["n_unjudged"] == 0).sum())
    drawn = sum(law.laws[place].method == "mc" for place in rows["place"])
    n_draws, seed = law.process.n_draws, law.process.seed
    return [
        captions.counted(pd.Series([len(rows)]), "topic") + ("" if len(rows) == len(law) else f" of {len(law):,}"),
        _process(law.process),
        f"{n_draws:,} draws, seed {seed}" + ("" if drawn == len(rows) else f" ({drawn} topics)") if drawn else "",
        f"hollow: nothing unjudged ({known} of {len(rows)})" if known else "",
    ]


def _process(process: Process) -> str:
    """The prior, and what else is not as it is by default."""
    chosen = process.chosen_prior
    prior = chosen if isinstance(chosen, str) else dict(chosen)
    said = [f"prior {prior}"]
    for one in fields(process):
        value = getattr(process, one.name)
        if one.name not in ("prior", "method", "n_draws", "seed") and value != one.default:
            said.append(f"{one.name} {value}")
    return ", ".join(said)


def missing(marked: Mapping[str, Floats]) -> list[str]:
    """How many topics lack a mark, for each mark that is missing somewhere."""
    counts = {name: int(np.isnan(values).sum()) for name, values in marked.items()}
    return [f"no {name}: {count} of {len(marked[name])}" for name, count in counts.items() if count]


# Inches of a bar of a distribution: finer than this is not seen, and the bar of a lone score still is.
_BAR = 0.022
# In rows: bars stand this high above the line with mean and interval, marks hang this far below it. Inches: at most.
_BASE, _BELOW, _FILLED = 0.17, 0.23, 0.86
_NEAR, _HANG = 0.06, 0.09
_PALE = "#9ecae1"
# The colour of mean and interval, then those of the marks.
_BLUE, *_OTHERS = style.COLOURS


def score_distributions(
    law: Any,
    *,
    topics: Sequence[str] | None = None,
    marks: Mapping[str, Any] | None = None,
    bounds: Any = None,
    level: float = 0.9,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Distributions of a score over what unjudged documents could be, highest mean first (Fröbe et al. 2023, figure 1).

    Bars are probability, the line below them is the central interval with the mean on it; beside the row stands how
    many documents are unjudged. Where none is, the score is known and the point is hollow.

    Parameters
    ----------
    law
        What :func:`vbterrier.unjudged.bootstrap_distribution` gives.
    topics
        The topics to draw; all by default.
    marks
        Other values of each topic by name, as ``{"condensed": ..., "truth": ...}``, six at most: a Series or mapping
        of qid to value. Topics without one have no such mark; the caption counts them.
    bounds
        Columns qid, low, high, and optionally kind (``naive``, ``posthoc``...), one for all: thin brackets.
    level
        Of the interval, 0 to 1.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of topics.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A law that is none; marks or bounds of other topics alone, repeated, without numbers, or in the wrong order.
    ParameterError
        A topic that was not evaluated; more marks than can be told apart; a level outside [0, 1].
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Notes
    -----
    A bar has the probability of the scores in its step; the caption names the step. Bars are scaled so that the
    highest of each topic is as high as a row allows: areas compare within a topic, not between topics.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.unjudged import bootstrap_distribution
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [2, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "c"], "score": [3.0, 2.0, 1.0]})
    >>> ax = score_distributions(bootstrap_distribution(run, qrels, 3), marks={"condensed": {"q1": 0.9}})
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['q1'], 'nDCG@3')
    """
    if not isinstance(law, BootstrapDistribution):
        raise InputError(f"law: wanted what bootstrap_distribution gives, found {type(law).__name__}")
    rows = rows_of(law, topics, level)
    marked = marks_of(marks or {}, law.topics, rows)
    limits, bound = bounds_of(bounds, law.topics, rows)
    n = len(rows)
    row = float(max(np.clip(style.PAGE / max(n, 1), 0.1, 0.3), 0.9 / max(n, 1)))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "topics")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, rows["qid"].tolist(), row, 0.36 * across)
        drawn.set_ylim(n - 1 + min(_BELOW + 0.17, 0.16 / row), -_FILLED + _below(row) - 0.1)
        room = across - taken - 0.15 - beside_rows(drawn, [f"{u:,}" for u in rows["n_unjudged"]], "unjudged")
        drawn.hlines(range(n), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        bars = _bars(drawn, [law.laws[place] for place in rows["place"]], rows, (room, row))
        handles = _marks(drawn, rows, marked, limits, row)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(room / 0.4, 2, 8)))
        drawn.set_xlabel(style.fitted(measure_of(law), room))
        names = ["mean", f"{100 * level:g}% interval", *([bound] if bound else []), *marked]
        style.legend(drawn, handles, names, room - 0.3)
        style.caption(drawn, *described(law, rows), bars, *missing(marked | ({bound: limits[0]} if limits else {})))
    return drawn


def _bars(ax: Any, laws: list[ScoreDistribution], rows: pd.DataFrame, size: tuple[float, float]) -> str:
    """The distributions, in rows of this width and height in inches; returns what a caption says of them."""
    least, span = float(rows["least"].min()), float(rows["greatest"].max() - rows["least"].min())
    unknown = np.flatnonzero(rows["n_unjudged"])
    if not len(unknown):
        return ""
    step = round_up(span * _BAR / size[0]) if span else 0.01
    near = min(_BASE, _NEAR / size[1])
    tall = _FILLED - near - _below(size[1])
    # Where all of the mass is in one place, that is the middle of a bar.
    edges = least + step * np.arange(-0.5, span / step + 1)
    for place in unknown:
        share = np.diff([laws[place].cdf(edge) for edge in edges])
        seen = slice(np.flatnonzero(share)[0], np.flatnonzero(share)[-1] + 1)
        base, highest = place - near, share.max()
        look = {"fill": True, "facecolor": _PALE, "edgecolor": _BLUE, "linewidth": 0.3}
        around = edges[seen.start : seen.stop + 1]
        ax.stairs(base - tall * share[seen] / highest, around, baseline=base, **look, zorder=2)
    scale = f"{highest:.2g} at most" if len(rows) == 1 else "the highest of each topic alike"
    return f"bars: probability in steps of {step:g}, {scale}"


def _below(row: float) -> float:
    """How far below their line marks hang, in rows of this height in inches."""
    return min(_BELOW, _HANG / row)


def _marks(
    ax: Any, rows: pd.DataFrame, marked: dict[str, Floats], limits: tuple[Floats, Floats] | None, row: float
) -> list[Any]:
    """Intervals and bounds on their line, marks below it; returns what stands for them in a legend."""
    from matplotlib.lines import Line2D

    y, size = np.arange(len(rows)), float(np.clip(0.24 * 72 * row, 2.2, 4.0))
    mean, low, high = (rows[column].to_numpy() for column in ("mean", "low", "high"))
    known = rows["n_unjudged"].to_numpy() == 0
    ax.hlines(y[~known], low[~known], high[~known], color=_BLUE, linewidth=min(1.6, size / 2), zorder=3)
    look: dict[str, Any] = {
        "linestyle": "none",
        "marker": "o",
        "markersize": size,
        "color": _BLUE,
        "markeredgewidth": 0.7,
    }
    ax.plot(mean[~known], y[~known], **look, zorder=5)
    ax.plot(mean[known], y[known], **look, markerfacecolor="white", zorder=5)
    handles = [Line2D([], [], **look), Line2D([], [], color=_BLUE, linewidth=1.6)]
    if limits is not None:
        thin: dict[str, Any] = {
            "color": style.INK,
            "linewidth": 0.5,
            "marker": "|",
            "markersize": 1.2 * size,
            "markeredgewidth": 0.6,
        }
        wide = limits[1] > limits[0]
        ax.hlines(y[wide], limits[0][wide], limits[1][wide], color=style.INK, linewidth=0.5, zorder=2)
        ends = np.concatenate([end[wide] for end in limits])
        ax.plot(ends, np.tile(y[wide], 2), **{**thin, "linestyle": "none"}, zorder=4)
        handles.append(Line2D([], [], **thin))
    for place, values in enumerate(marked.values()):
        # Of marks in one place the later is the smaller.
        look = {"marker": style.MARKERS[1 + place], "color": _OTHERS[place], "markersize": size * 0.88**place}
        handles += ax.plot(values, y + _below(row), linestyle="none", markeredgewidth=0, **look, zorder=6)
    return handles
