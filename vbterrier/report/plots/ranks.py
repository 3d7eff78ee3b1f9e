"""Figures of the ranks of systems and of variance shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, examples
from vbterrier.evaluate import verdicts
from vbterrier.evaluate.variance import VarianceShares
from vbterrier.frames.contracts import pandas_frame
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING
from vbterrier.report import captions
from vbterrier.report.plots import elements, style
from vbterrier.stats.variance_components import INTERACTIONS

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.report.plots.style import Names


# White to light blue, so that marks on it are visible.
_SHADES = ("#ffffff", "#6baed6")


def rank_uncertainty(ranking: Any, probabilities: Any = None, *, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Expected rank of each system with its interval, best first; shades show the probability of each rank.

    Parameters
    ----------
    ranking
        Columns name, mean (score, printed right of the row), expected_rank (from 1) or rank (by the means), low and
        high (ranks; NaN for no interval), level, and for the caption measure, method, n_qids, n_draws, seed; the
        ``ranks()`` of :func:`vbterrier.evaluate.ranking.rank_systems`.
    probabilities
        Columns name, rank, prob: the probability that a system has a rank, 0 for missing ranks; the
        ``rank_probabilities`` of the same result.

    Examples
    --------
    >>> ranks = {"expected_rank": [1.7, 1.3], "low": [1, 1], "high": [2, 2], "level": 0.9}
    >>> ax = rank_uncertainty(pd.DataFrame({"name": ["bm25", "dense"], "mean": [0.41, 0.44], **ranks}))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['dense', 'bm25']
    """
    table = pandas_frame(ranking, "ranking")
    point = "rank" if "rank" in table.columns and "expected_rank" not in table.columns else "expected_rank"
    frame = _valid_ranking(table.rename(columns={point: "expected_rank"}))
    n = len(frame)
    shares = None if probabilities is None else _shares(probabilities, frame)
    row = float(np.clip(style.PAGE / max(n, 1), 0.075, 0.17))
    with style.canvas(ax, width, max(n * row, 0.3) if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "systems")
        across, down = style.cell(drawn)
        row = max(row, 0.3 / n) if ax is None else max(down - 0.7, 0.3) / n
        taken = style.row_labels(drawn, frame["name"].tolist(), row, 0.42 * across)
        space = across - taken - 0.15 - elements.beside_rows(drawn, [f"{mean:.3f}" for mean in frame["mean"]], "mean")
        shades = "" if shares is None else _shade(drawn, shares)
        colour = "#000000" if shades else style.COLOURS[0]
        y, size = np.arange(len(frame)), float(np.clip(0.4 * 72 * row, 2.0, 4.0))
        expected, low, high = (frame[column].to_numpy() for column in ("expected_rank", "low", "high"))
        has_interval = ~np.isnan(low)
        if colour == style.COLOURS[0]:
            drawn.hlines(y, 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        drawn.hlines(
            y[has_interval],
            low[has_interval],
            high[has_interval],
            color=colour,
            linewidth=min(1.1, size / 2.8),
            zorder=2,
        )
        look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": size, "color": colour}
        drawn.plot(
            expected[has_interval], y[has_interval], **look, markeredgecolor="white", markeredgewidth=0.4, zorder=3
        )
        drawn.plot(
            expected[~has_interval], y[~has_interval], **look, markerfacecolor="white", markeredgewidth=0.6, zorder=3
        )
        drawn.spines["left"].set_visible(False)
        elements.number_columns(drawn, n, space)
        drawn.set_xlabel("rank")
        levels = frame.loc[frame["low"].notna(), "level"].unique()
        interval = f", line: {' and '.join(f'{100 * level:g}%' for level in levels)} interval" if len(levels) else ""
        notes = (
            verdicts.count_range_text(n, "system"),
            f"point: {'rank of the mean' if point == 'rank' else 'expected rank'}{interval}",
        )
        hollow = captions.absent(frame["expected_rank"], frame["low"], "hollow")
        style.caption(drawn, *notes, hollow, shades, captions.origin(table))
    return drawn


def _valid_ranking(ranking: Any) -> pd.DataFrame:
    shown = ("expected_rank", "low", "high", "level")
    frame = elements.figure_columns(ranking, "ranking", texts=("name",), reals=("mean", *shown))
    expected, low, high = (frame[column] for column in ("expected_rank", "low", "high"))
    out = ~expected.between(1 - PROBABILITY_ROUNDING, len(frame) + PROBABILITY_ROUNDING)
    checks = [
        (out, f"an expected rank from 1 to {len(frame)}, the number of systems"),
        (low.isna() != high.isna(), "low and high, or NaN for both"),
        ((low < 1) | (high > len(frame)) | (low > high), f"low and high in order, from 1 to {len(frame)}"),
        (low.notna() & ~frame["level"].between(0, 1, inclusive="neither"), "a level between 0 and 1, as 0.9"),
        (frame["name"].duplicated(), "each system once"),
    ]
    elements.refuse(frame, "ranking", shown, checks, named="name")
    return frame.sort_values("expected_rank", kind="stable").reset_index(drop=True)


def _shares(probabilities: Any, ranking: pd.DataFrame) -> Floats:
    """Probability of each rank in each row, shape (n, n)."""
    frame = elements.figure_columns(probabilities, "probabilities", texts=("name",), reals=("prob",), wholes=("rank",))
    n = len(ranking)
    at = pd.Index(ranking["name"]).get_indexer(pd.Index(frame["name"]))
    rank, prob = frame["rank"].to_numpy(), frame["prob"]
    checks = [
        (at < 0, "a system of the ranking"),
        ((rank < 1) | (rank > n), f"a rank from 1 to {n}"),
        (~prob.between(0, 1 + PROBABILITY_ROUNDING), "a probability from 0 to 1"),
        (frame.duplicated(["name", "rank"]), "each rank of a system once"),
    ]
    elements.refuse(frame, "probabilities", ("rank", "prob"), checks, named="name")
    shares = np.zeros((n, n))
    shares[at, rank - 1] = prob
    return shares


def _shade(ax: Any, shares: Floats) -> str:
    """Draw the probability of each rank as a shade; returns a part of the caption."""
    from matplotlib.colors import LinearSegmentedColormap

    n, highest = len(shares), float(shares.max())
    edges = np.arange(n + 1)
    shades = LinearSegmentedColormap.from_list("probability", list(_SHADES))
    ax.pcolormesh(edges + 0.5, edges - 0.5, shares, cmap=shades, vmin=0, vmax=highest or 1, zorder=0)
    return f"shade: probability of a rank, at most {highest:.2g}"


def variance_shares(
    shares: Any, *, measure: Names = None, sort: bool = False, ax: Any = None, width: float = style.COLUMN
) -> Any:
    """Shares of the variance by source, a bar for each system, with the standard error of the total.

    The standard error is ``√(Σ_sources variance)``. Estimates of small shares can be negative; they are drawn left of
    zero, and all shares of a bar still sum to 100 %.

    Parameters
    ----------
    shares
        The result of :func:`vbterrier.evaluate.variance.variance_shares`, or its ``shares``: columns name, measure,
        source, variance, share (they sum to 1 over the sources of a name and measure), n_qids, n_draws, seed. Names
        with a variance of 0 or NaN have no bar; the caption counts them.
    measure
        Measures to draw, each in its own row; all by default.
    sort
        Sort by standard error, largest first, instead of keeping the order of the frame.

    Examples
    --------
    >>> result = {"source": ["topics", "unjudged"], "variance": [0.0003, 0.0001], "share": [0.75, 0.25]}
    >>> about = {"name": "bm25", "measure": "nDCG@10", "n_qids": 50, "n_draws": 1000, "seed": 0}
    >>> ax = variance_shares(pd.DataFrame({**result, **about}))
    >>> [float(bar.get_width()) for bar in ax.patches], ax.texts[0].get_text()
    ([75.0, 25.0], '0.020')
    """
    frame = captions.only(_valid_shares(shares), "measure", measure, "shares")
    names, sources, table, error = _share_matrix(frame, sort=sort)
    n = len(names)
    row = float(np.clip(style.PAGE / max(n, 1), 0.075, 0.19))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "shares")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.9, 0.3) / n
        taken = style.row_labels(drawn, names, row, 0.4 * across)
        space = across - taken - 0.15 - elements.beside_rows(drawn, elements.aligned_numbers(error), "std. error")
        handles = _draw_shares(drawn, table, sources, (space, row))
        drawn.set_xlabel("share of the variance (%)")
        elements.legend_from_left(drawn, handles, sources, space, taken)
        measures, data = captions.short(list(frame["measure"].unique()))
        kinds = elements.kinds(frame, "n_draws", "seed")
        bare, below = int((~(np.nan_to_num(table) != 0).any(axis=1)).sum()), bool((table < 0).any())
        style.caption(
            drawn,
            measures[0] if len(measures) == 1 else "",
            data,
            verdicts.count_range_text(frame["n_qids"], "topic"),
            " and ".join(f"{n_draws:,} draws, seed {seed}" for n_draws, seed in kinds),
            "std. error: square root of the total variance",
            "negative shares: estimates of small shares" if below else "",
            f"no variance: {bare} of {len(table)}" if bare else "",
        )
    return drawn


def _valid_shares(shares: Any) -> pd.DataFrame:
    shares = shares.shares if isinstance(shares, VarianceShares) else shares
    keys, wholes = ["name", "measure", "source"], ("n_qids", "n_draws", "seed")
    frame = elements.figure_columns(shares, "shares", texts=keys, reals=("variance", "share"), wholes=wholes)
    total = frame.groupby(["name", "measure"], sort=False)[["variance", "share"]].transform("sum", min_count=1)
    checks = [
        (frame.duplicated(keys), "each source once"),
        (frame["variance"].isna() & frame["share"].notna(), "a variance where there is a share"),
        (
            (total["share"] - 1).abs() > PROBABILITY_ROUNDING,
            "shares that sum to 1 over the sources of a name and measure",
        ),
        (total["variance"] < 0, "variances that sum to 0 or more"),
    ]
    elements.refuse(frame, "shares", [*keys, "variance", "share"], checks)
    return frame


def _share_matrix(frame: pd.DataFrame, *, sort: bool) -> tuple[list[str], list[str], Floats, Floats]:
    """Names of rows, sources, shares in percent with shape (rows, sources), and standard errors of rows."""
    rows = pd.MultiIndex.from_frame(frame[["name", "measure"]].drop_duplicates())
    # Interactions are grey and last, since they are not due to any single source.
    sources = sorted(frame["source"].unique(), key=lambda source: source == INTERACTIONS)
    if len(sources) - (INTERACTIONS in sources) > len(style.FILLS):
        raise ParameterError(
            f"{len(sources)} sources ({examples(sources, 8)}) are too many for one figure; "
            f"add up small ones, at most {len(style.FILLS)}"
        )
    keyed = frame.set_index(["name", "measure", "source"])
    wide = keyed["share"].unstack().reindex(index=rows, columns=sources)
    table = 100 * wide.to_numpy(dtype=np.float64)
    total = keyed["variance"].groupby(level=["name", "measure"], sort=False).sum(min_count=1).reindex(rows)
    error = np.sqrt(total.to_numpy(dtype=np.float64))
    order = np.argsort(-error if sort else np.zeros(len(rows)), kind="stable")
    measures, _ = captions.short(list(rows.get_level_values(1)))
    several = elements.varies(frame["measure"])
    names = [f"{name}, {text}" if several else str(name) for (name, _), text in zip(rows, measures, strict=True)]
    return [names[place] for place in order], sources, table[order], error[order]


def _draw_shares(ax: Any, table: Floats, sources: list[str], size: tuple[float, float]) -> list[Any]:
    """Draw stacked bars in rows of this width and height in inches; returns the handles of the legend."""
    from matplotlib.patches import Patch

    shares = np.nan_to_num(table)
    above, below = np.clip(shares, 0, None), np.clip(shares, None, 0)
    low, high = float(below.sum(axis=1).min()), float(above.sum(axis=1).max())
    ax.set_xlim(low, max(high, 100))
    inch = size[0] / (max(high, 100) - low)
    colours = [style.MUTED if source == INTERACTIONS else style.FILLS[at] for at, source in enumerate(sources)]
    rows = np.arange(len(table))
    for at, colour in enumerate(colours):
        left = np.where(shares[:, at] < 0, below[:, :at].sum(axis=1), above[:, :at].sum(axis=1))
        there = shares[:, at] != 0
        look = {"color": colour, "edgecolor": "white", "linewidth": 0.4}
        ax.barh(rows[there], shares[there, at], 0.78, left[there], **look, zorder=2)
        _numbers(ax, left + shares[:, at] / 2, shares[:, at], (inch, size[1]), colour)
    if low < 0:
        ax.axvline(0, color=style.INK, linewidth=0.6, zorder=3)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=int(np.clip(size[0] / 0.4, 2, 8)))
    return [Patch(facecolor=colour) for colour in colours]


def _numbers(ax: Any, middle: Floats, shares: Floats, size: tuple[float, float], colour: str) -> None:
    """Print percents in bars that are large enough; ``size``: inches for one percent and for a row."""
    from matplotlib.colors import to_rgb

    fits = min(style.SMALL_TEXT_POINTS, 0.6 * 72 * size[1])
    if fits < style.MIN_TEXT_POINTS:
        return
    # Black or white, whichever has more contrast to the colour: luma.
    ink = "black" if np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) > 0.45 else "white"  # noqa: PLR2004
    for row, share in enumerate(shares):
        text = f"{share:.0f}"
        if abs(share) * size[0] > style.text_width(text, fits) + 0.04:
            look = {"ha": "center", "va": "center_baseline", "fontsize": fits, "color": ink}
            ax.text(middle[row], row, text, **look, zorder=4)
