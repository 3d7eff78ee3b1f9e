"""Where each of many systems ranks, and which of two is better, when scores are not certain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.report.plots import style, words
from vbterrier.report.plots.margin import beside_rows, number_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# White to a light blue: what lies on it must be seen.
_SHADES = ("#ffffff", "#6baed6")
# Rounding of sums of probabilities.
_SLACK = 1e-6


def rank_uncertainty(ranking: Any, probabilities: Any = None, *, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Expected rank of each system with its interval, best first; shades tell the probability of each rank.

    Parameters
    ----------
    ranking
        Columns name, mean (score, which stands beside the row), expected_rank (from 1), low and high (ranks; NaN where
        there is no interval), level, and for the caption measure, method, n_qids, n_draws, seed; the ``ranks()`` of
        :func:`vbterrier.evaluate.ranking.rank_systems`.
    probabilities
        Columns name, rank, prob: the probability that a system has a rank; ranks that are not there have none. Its
        ``rank_probabilities``.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of systems.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a system twice or unknown; ranks outside 1 to n, ends in the wrong order; no probability.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> ranks = {"expected_rank": [1.7, 1.3], "low": [1, 1], "high": [2, 2], "level": 0.9}
    >>> ax = rank_uncertainty(pd.DataFrame({"name": ["bm25", "dense"], "mean": [0.41, 0.44], **ranks}))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['dense', 'bm25']
    """
    frame = _ranking_of(ranking)
    n = len(frame)
    shares = None if probabilities is None else _shares(probabilities, frame)
    row = float(np.clip(style.PAGE / max(n, 1), 0.075, 0.17))
    with style.canvas(ax, width, max(n * row, 0.3) if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "systems")
        across, down = style.cell(drawn)
        row = max(row, 0.3 / n) if ax is None else max(down - 0.7, 0.3) / n
        taken = style.row_labels(drawn, frame["name"].tolist(), row, 0.42 * across)
        room = across - taken - 0.15 - beside_rows(drawn, [f"{mean:.3f}" for mean in frame["mean"]], "mean")
        shades = "" if shares is None else _shade(drawn, shares)
        _draw(drawn, frame, row, "#000000" if shades else style.COLOURS[0])
        number_columns(drawn, n, room)
        drawn.set_xlabel("rank")
        style.caption(
            drawn,
            words.counted(pd.Series([n]), "system"),
            *_described(frame),
            shades,
            words.origin(frame_of(ranking, "ranking")),
        )
    return drawn


def _ranking_of(ranking: Any) -> pd.DataFrame:
    given = frame_of(ranking, "ranking")
    require(given, ("name", "mean", "expected_rank", "low", "high", "level"), "ranking")
    frame = pd.DataFrame({"name": words.texts(given["name"], "ranking column 'name'")})
    for column in ("mean", "expected_rank", "low", "high", "level"):
        frame[column] = words.reals(given[column], f"ranking column {column!r}")
    expected, low, high = (frame[column] for column in ("expected_rank", "low", "high"))
    for bad, wanted in (
        (
            ~expected.between(1 - _SLACK, len(frame) + _SLACK),
            f"an expected rank from 1 to {len(frame)}, the number of systems",
        ),
        (low.isna() != high.isna(), "low and high, or NaN for both"),
        ((low < 1) | (high > len(frame)) | (low > high), f"low and high in order, from 1 to {len(frame)}"),
        (low.notna() & ~frame["level"].between(0, 1, inclusive="neither"), "a level between 0 and 1, as 0.9"),
        (frame["name"].duplicated(), "each system once"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            found = ", ".join(f"{name} {frame[name][row]:g}" for name in ("expected_rank", "low", "high", "level"))
            raise InputError(f"ranking: row {row} ({frame['name'][row]!r}) has {found}; wanted {wanted}")
    return frame.sort_values("expected_rank", kind="stable").reset_index(drop=True)


def _shares(probabilities: Any, ranking: pd.DataFrame) -> Floats:
    """The probability of each rank in each row, shape (n, n)."""
    given, n = frame_of(probabilities, "probabilities"), len(ranking)
    require(given, ("name", "rank", "prob"), "probabilities")
    rows = {name: row for row, name in enumerate(ranking["name"])}
    at = pd.Series(words.texts(given["name"], "probabilities column 'name'")).map(rows).to_numpy(dtype=np.float64)
    rank = np.asarray(integers_of(given["rank"], "probabilities column 'rank'"))
    prob = words.reals(given["prob"], "probabilities column 'prob'")
    for bad, wanted in (
        (np.isnan(at), "a system of the ranking"),
        ((rank < 1) | (rank > n), f"a rank from 1 to {n}"),
        (~((prob >= 0) & (prob <= 1 + _SLACK)), "a probability from 0 to 1"),
        (pd.DataFrame({"at": at, "rank": rank}).duplicated().to_numpy(), "each rank of a system once"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"probabilities: row {row} ({given['name'].iloc[row]!r}) has rank {rank[row]}, prob {prob[row]:g}; "
                f"wanted {wanted}"
            )
    shares = np.zeros((n, n))
    shares[at.astype(np.int64), rank - 1] = prob
    return shares


def _shade(ax: Any, shares: Floats) -> str:
    """The probability of each rank as shades; returns what a caption says of them."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    n, highest = len(shares), float(shares.max())
    edges = np.arange(n + 1)
    shades = LinearSegmentedColormap.from_list("probability", list(_SHADES))
    ax.pcolormesh(edges + 0.5, edges - 0.5, shares, cmap=shades, norm=PowerNorm(0.5, 0, highest or 1), zorder=0)
    return f"shade: square root of the rank's probability, {highest:.2g} at most"


def _draw(ax: Any, frame: pd.DataFrame, row: float, colour: str) -> None:
    y, size = np.arange(len(frame)), float(np.clip(0.4 * 72 * row, 2.0, 4.0))
    expected, low, high = (frame[column].to_numpy() for column in ("expected_rank", "low", "high"))
    known = ~np.isnan(low)
    if colour == style.COLOURS[0]:
        ax.hlines(y, 0, 1, transform=ax.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
    ax.hlines(y[known], low[known], high[known], color=colour, linewidth=min(1.1, size / 2.8), zorder=2)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": size, "color": colour}
    ax.plot(expected[known], y[known], **look, markeredgecolor="white", markeredgewidth=0.4, zorder=3)
    ax.plot(expected[~known], y[~known], **look, markerfacecolor="white", markeredgewidth=0.6, zorder=3)
    ax.spines["left"].set_visible(False)


def _described(frame: pd.DataFrame) -> list[str]:
    levels = frame.loc[frame["low"].notna(), "level"].unique()
    said = " and ".join(f"{100 * level:g}%" for level in levels)
    return [
        f"point: expected rank, line: {said} interval" if len(levels) else "point: expected rank",
        words.absent(frame["expected_rank"], frame["low"], "hollow"),
    ]
