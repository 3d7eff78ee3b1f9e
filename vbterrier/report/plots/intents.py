"""Coverage map of the intents of queries."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import DegenerateWarning, ParameterError, choice, examples, excerpt
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ranking import Run
from vbterrier.intents.coverage import Coverage, Intents, Tags, cover
from vbterrier.intents.sources import from_run
from vbterrier.report.plots import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints


ORDERS = {"least": "lowest ES@{k} first", "most": "highest ES@{k} first", "given": "in the order given"}
# White to the palette's blue: lightness shows the probability.
_PALE, _FULL_COLOUR = "#eef4f9", style.COLOURS[0]
# Minimal size of a cell, in inches, for a legible rank.
_LEGIBLE = 0.115
# Diameter of the largest ring in points.
_RING = 10.0
# Smaller hidden probabilities are not mentioned.
_MIN_HIDDEN_PROBABILITY = 5e-4


def coverage_map(
    run: Any,
    intents: Any,
    *,
    tags: Any = None,
    cutoff: int,
    qids: Sequence[str] | None = None,
    order: str = "least",
    n_topics: int = 30,
    n_intents: int = 12,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Coverage map: queries by intents in order of probability; shades show probability, rings mark covered intents.

    An intent is covered if one of the first ``cutoff`` documents is tagged with it. The number in a cell is the rank of
    the first such document in the whole ranking, if it fits.

    Parameters
    ----------
    run, intents
        Columns qid, docno, score; columns qid, entity_id, prob, and optionally query, for the labels.
    tags
        Columns docno, entity_id, and optionally weight and qid; the column entity_id of the run by default.
    cutoff
        Number of documents that count.
    qids
        Queries to draw, from top to bottom; all by default.
    order
        Order of queries without ``qids``: ``"least"`` (lowest ES first), ``"most"``, or ``"given"``, as in the
        intents.
    n_topics, n_intents
        Largest number of each to draw. The title has the number of topics, the caption the probability that is hidden.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "jordan", "entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": "jordan", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> ax = coverage_map(run, intents, tags=pd.DataFrame({"docno": ["d2"], "entity_id": ["athlete"]}), cutoff=1)
    >>> ax.get_title(loc="left"), [text.get_text() for text in ax.texts[:-1]]
    ('1 topic', ['2'])
    """
    for name, number in (("cutoff", cutoff), ("n_topics", n_topics), ("n_intents", n_intents)):
        if not isinstance(number, int) or number < 1:
            raise ParameterError(f"{name}={excerpt(number)}: wanted a whole number of at least 1")
    choice("order", order, ORDERS)
    frame, ranking = pandas_frame(intents, "intents"), Run(run)
    require(frame, ("qid", "entity_id", "prob"), "intents")
    if not len(frame):
        with style.canvas(ax, width, 0.5) as drawn:
            return style.nothing(drawn, "topics")
    run_tags = Tags(from_run(ranking), pooled=False, name="run") if tags is None else Tags(tags)
    ranking.top(cutoff).warn_of_ties(ranking.name)
    with warnings.catch_warnings():
        # Ties beyond the cutoff change the printed ranks only, not the coverage.
        warnings.filterwarnings("ignore", ".* places are tied", DegenerateWarning)
        coverage = cover(ranking, Intents(frame), run_tags, None)
    success = coverage.success(coverage.gain(cutoff, "binary"))
    chosen = _query_order(coverage, success, qids, order)[:n_topics]
    prob, rank = (table[chosen, :n_intents] for table in _tables(coverage))
    shown = int((~np.isnan(prob)).any(axis=0).sum())
    prob, rank = prob[:, :shown], rank[:, :shown]
    # The colour bar beside a single row needs a minimal height.
    row = max(float(np.clip(style.PAGE / len(chosen), 0.075, 0.17)), 0.45 / len(chosen))
    with style.canvas(ax, width, len(chosen) * row) as drawn:
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.85, 0.3) / len(chosen)
        texts = frame["query"].astype(str).tolist() if "query" in frame.columns else [""] * len(frame)
        _, first = np.unique(coverage.intents.topic, return_index=True)
        names = [f"{coverage.intents.topics[place]} {texts[first[place]]}".rstrip() for place in chosen]
        taken = style.row_labels(drawn, names, row, 0.36 * across)
        _draw(drawn, prob, rank, cutoff, ((across - taken - 0.5) / shown, row))
        drawn.set_xlabel("intents by falling probability")
        n, n_all = len(chosen), len(coverage.intents.topics)
        title = ("" if n == n_all else f"{n:,} of ") + f"{n_all:,} topic" + ("s" if n_all > 1 else "")
        title += "" if n == 1 else ", " + ORDERS[order if qids is None else "given"].format(k=cutoff)
        title = style.wrapped_lines(title, across - taken - 0.1, style.SIZE)
        drawn.set_title(title, loc="left", fontsize=style.SIZE, color=style.INK, pad=3)
        mean = "" if n == len(success) else f"{success[chosen].mean():.3f} here, "
        hidden = 1 - float(np.nansum(prob, axis=1).min())
        ring = f"ring: covered by the first {cutoff} documents; number: rank of the first document of the intent"
        means = f"ES@{cutoff} {mean}{success.mean():.3f} over all n = {len(success):,}"
        more = (
            f"hidden intents: up to {100 * hidden:.0f}% of the probability" if hidden > _MIN_HIDDEN_PROBABILITY else ""
        )
        style.caption(drawn, ring, means, more)
    return drawn


def _query_order(coverage: Coverage, success: Floats, qids: Sequence[str] | None, order: str) -> Ints:
    """Positions of the queries to draw, from top to bottom."""
    topics = coverage.intents.topics
    if qids is None:
        sign = {"least": 1.0, "most": -1.0, "given": 0.0}[order]
        return np.argsort(sign * success, kind="stable")
    places = {qid: place for place, qid in enumerate(topics)}
    unknown = [qid for qid in qids if qid not in places]
    if unknown:
        raise ParameterError(f"qids: no intents of {examples(unknown)}; the intents have {examples(topics)}")
    return np.array([places[qid] for qid in qids], dtype=np.int64)


def _tables(coverage: Coverage) -> tuple[Floats, Floats]:
    """Probability, and 1-based rank of the first document, of each query's intents by falling probability.

    NaN for missing intents and documents. Shape (n_queries, most intents of a query).
    """
    topic, prob = coverage.intents.topic, coverage.intents.prob
    first = np.full(len(prob), np.inf)
    np.minimum.at(first, coverage.intent, coverage.rank + 1.0)
    by_prob = np.lexsort((-prob, topic))
    sizes = np.bincount(topic, minlength=len(coverage.intents.topics))
    starts = np.cumsum(sizes) - sizes
    column = np.arange(len(prob)) - np.repeat(starts, sizes)
    tables = np.full((2, len(sizes), int(sizes.max(initial=0))), np.nan)
    tables[:, topic[by_prob], column] = prob[by_prob], np.where(np.isfinite(first), first, np.nan)[by_prob]
    return tables[0], tables[1]


def _draw(ax: Any, prob: Floats, rank: Floats, cutoff: int, size: tuple[float, float]) -> None:
    """Draw cells, rings and ranks; ``size`` is the width and height of a cell in inches."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    n_rows, n_columns = prob.shape
    edges, most = (np.arange(n_columns + 1) + 0.5, np.arange(n_rows + 1) - 0.5), float(np.nanmax(prob))
    shades = LinearSegmentedColormap.from_list("probability", [_PALE, _FULL_COLOUR])
    look = {"cmap": shades, "vmin": 0.0, "vmax": most, "edgecolors": "white", "linewidth": 0.5, "zorder": 0}
    cells = ax.pcolormesh(*edges, np.ma.masked_invalid(prob), **look)
    y, x = np.nonzero(rank <= cutoff)
    ring = min(0.8 * min(size) * 72, _RING)
    ax.scatter(x + 1, y, s=ring**2, facecolors="white", edgecolors=style.INK, linewidths=0.5, zorder=2)
    if min(size) >= _LEGIBLE:
        dark = prob > 0.6 * most
        for row, column in np.argwhere(~np.isnan(rank)).tolist():
            inside = bool(rank[row, column] <= cutoff)
            colour = "white" if dark[row, column] and not inside else style.INK
            text, space = f"{rank[row, column]:.0f}", 0.75 * ring / 72 if inside else size[0]
            fontsize = min(
                style.SMALL_TEXT_POINTS,
                style.SMALL_TEXT_POINTS * space / style.text_width(text, style.SMALL_TEXT_POINTS),
            )
            look = {"ha": "center", "va": "center_baseline", "color": colour, "zorder": 3}
            ax.text(column + 1, row, text, fontsize=fontsize, **look)
    ax.set_xlim(0.5, n_columns + 0.5)
    ax.set_xticks(np.arange(1, n_columns + 1))
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="x", length=0)
    # A colour bar right of the axes: as high as they are, up to an inch.
    beside = ax.inset_axes([1, 0, 0.05, 1])
    beside.set_axes_locator(partial(_beside, ax))
    bar = ax.figure.colorbar(cells, cax=beside)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(nbins=int(np.clip(n_rows * size[1] / 0.25, 1, 4)))
    beside.tick_params(labelsize=style.SMALL_TEXT_POINTS, width=0.5, length=2, color=style.INK, labelcolor=style.INK)
    bar.set_label("probability", fontsize=style.SMALL_TEXT_POINTS, color=style.INK)


def _beside(ax: Any, _inset: Any, _renderer: Any) -> Any:
    """Position of the colour bar in the figure."""
    from matplotlib.transforms import Bbox

    inch = ax.figure.dpi
    box = ax.bbox
    height = min(box.height, inch)
    key = Bbox.from_bounds(box.x1 + 0.06 * inch, box.y1 - height, 0.07 * inch, height)
    return key.transformed(ax.figure.transSubfigure.inverted())
