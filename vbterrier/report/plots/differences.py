"""Figures of differences between systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest
from vbterrier.evaluate import verdicts
from vbterrier.evaluate.comparison import Comparison
from vbterrier.evaluate.verdicts import FLAG_MARK
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.notebook import CORRECTION_NAMES
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING
from vbterrier.report import captions
from vbterrier.report.plots import elements, style

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.report.plots.style import Names


# The largest number of rows of a figure.
_MAX_ROWS = 120
# Smaller p-values are written as "< .001".
_MIN_PRINTED_P = 0.0005
# Orange, white and blue of the palette, which colour-blind readers can distinguish.
_SHADES = (style.COLOURS[1], "#f3b48a", "#ffffff", "#8abadb", style.COLOURS[0])


def differences(
    pairs: Any,
    *,
    measure: Names = None,
    baseline: str | None = None,
    sort: bool = False,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Forest plot of differences: a row for each pair of systems, filled if the difference is significant.

    With one measure, adjusted p-values are printed right of the rows. A dagger marks pairs with a system that
    retrieved nothing for most topics: such a difference is not evidence about ranking quality.

    Parameters
    ----------
    pairs
        The result of :func:`vbterrier.compare`, or its ``pairs``: the P frame (name_a, name_b, measure, diff, low,
        high, p_adjusted, n_qids, test, correction, level, method, n_resamples, seed, and optionally ``flag``, empty or
        a sentence). A difference is significant if its adjusted p-value is at most ``1 - level``.
    measure
        Measures to draw, at most seven, each with its own mark; all by default.
    baseline
        Draw the pairs with this system only, as differences from it.
    sort
        Sort by the difference of the first measure, largest first, instead of keeping the order of the frame.

    Examples
    --------
    >>> about = {"measure": "nDCG@10", "n_qids": 50, "test": "randomisation", "correction": "holm", "level": 0.95}
    >>> rows = {"name_a": ["dense", "splade"], "name_b": "bm25", "diff": [0.1, 0.02], "low": [0.05, -0.03]}
    >>> result = {"high": [0.15, 0.07], "p_adjusted": [0.001, 0.4], "method": "percentile", "n_resamples": 10000}
    >>> ax = differences(pd.DataFrame({**about, **rows, **result, "seed": 0}))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['dense', 'splade'], 'difference in nDCG@10 from bm25')
    """
    frame = _in_one_direction(captions.only(_flagged_pairs(pairs), "measure", measure, "pairs"), baseline)
    rows = frame.drop_duplicates("pair")
    if len(rows) > _MAX_ROWS:
        raise ParameterError(
            f"{len(rows)} pairs are too many for one figure (at most {_MAX_ROWS}); choose one system with baseline="
        )
    if sort and len(rows):
        first = rows["diff"].where(rows["measure"] == rows["measure"].iloc[0], -np.inf)
        rows = rows.iloc[np.argsort(-first.to_numpy(), kind="stable")]
    parts = elements.few(frame, "measure")
    n, preferred = len(rows), 0.09 + 0.08 * len(parts)
    row = max(float(np.clip(style.PAGE / max(n, 1), min(0.075, preferred), preferred)), 0.25 / max(n, 1))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        if not n:
            return style.nothing(drawn, "pairs")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.9, 0.3) / n
        taken = style.row_labels(drawn, _labels(rows, 0.42 * across), row, 0.42 * across)
        space = across - taken - 0.15
        if len(parts) == 1:
            p = frame.set_index("pair")["p_adjusted"].loc[rows["pair"]]
            texts = ["" if np.isnan(one) else "< .001" if one < _MIN_PRINTED_P else f"{one:.3f}" for one in p]
            space -= elements.beside_rows(drawn, texts, "adj. p")
        drawn.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
        drawn.hlines(range(n), 0, 1, transform=drawn.get_yaxis_transform(), color=style.RULE, lw=0.5, zorder=0)
        places = pd.Series(range(n), index=rows["pair"])
        marks = [
            elements.points_in_rows(drawn, part, part["pair"].map(places), part["significant"], (at, len(parts)), row)
            for at, part in enumerate(part.rename(columns={"diff": "value"}) for _, part in parts)
        ]
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(space / 0.45, 2, 8)))
        shown, data = captions.short([name for name, _ in parts])
        label, other = f"difference in {shown[0] if len(shown) == 1 else 'score'}", ""
        if not elements.varies(rows["name_b"]):
            label += " from "
            other = style.fitted_text(rows["name_b"].iloc[0], space - style.text_width(label, style.SIZE))
        drawn.set_xlabel(style.fitted_text(label, space) + other)
        if len(parts) > 1:
            elements.legend_from_left(drawn, marks, shown, space, taken)
        style.caption(drawn, *_caption_parts(frame), data)
    return drawn


def _in_one_direction(frame: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Give all measures of a pair the direction of the first; with a baseline, keep its pairs and make it name_b."""
    first = frame.groupby("pair", sort=False)["name_a"].transform("first")
    turned = (frame["name_a"] != first).to_numpy()
    if baseline is not None:
        there = (frame[["name_a", "name_b"]] == baseline).any(axis=1)
        if not there.any():
            names = pd.unique(frame[["name_a", "name_b"]].to_numpy().ravel())
            near = nearest(baseline, map(str, names))
            raise ParameterError(f"baseline={excerpt(baseline)}: pairs has {examples(names, 6)}.{near}")
        frame, turned = frame[there], (frame["name_a"] == baseline).to_numpy()[there]
    one, other, low, high = (frame[column].to_numpy() for column in ("name_a", "name_b", "low", "high"))
    return frame.assign(
        name_a=np.where(turned, other, one),
        name_b=np.where(turned, one, other),
        diff=np.where(turned, -1, 1) * frame["diff"],
        low=np.where(turned, -high, low),
        high=np.where(turned, -low, high),
    )


def _flagged_pairs(pairs: Any) -> pd.DataFrame:
    """Validate a P frame and add the columns flagged and significant."""
    table = pandas_frame(pairs.pairs if isinstance(pairs, Comparison) else pairs, "pairs")
    texts, reals = ("name_a", "name_b", "measure", "test", "correction", "method"), ("diff", "low", "high")
    wholes = ("n_qids", "n_resamples", "seed")
    frame = elements.figure_columns(table, "pairs", texts=texts, reals=(*reals, "p_adjusted", "level"), wholes=wholes)
    # Intervals without a limit cannot be drawn.
    endless = np.isinf(frame["low"]) | np.isinf(frame["high"])
    frame = frame.assign(low=frame["low"].mask(endless), high=frame["high"].mask(endless))
    flags = table["flag"].fillna("").astype(str).tolist() if "flag" in table.columns else [""] * len(frame)
    low, high, p = frame["low"], frame["high"], frame["p_adjusted"]
    names = np.sort(frame[["name_a", "name_b"]].to_numpy(dtype=object), axis=1)
    frame["pair"] = frame.groupby([names[:, 0], names[:, 1]], sort=False).ngroup()
    checks = [
        (frame["name_a"] == frame["name_b"], "two systems"),
        (frame.duplicated(["pair", "measure"]), "each pair of a measure once"),
        (frame["diff"].isna(), "a difference"),
        ((low.isna() != high.isna()) | (low > high), "low and high in order, or NaN for both"),
        ((p < 0) | (p > 1), "an adjusted p from 0 to 1"),
        (~frame["level"].between(0, 1, inclusive="neither"), "a level between 0 and 1, as 0.95"),
    ]
    elements.refuse(frame, "pairs", ["name_a", "name_b", "diff", "low", "high", "p_adjusted", "level"], checks)
    # 1 - 0.9 is below 0.1 by rounding.
    frame = frame.assign(significant=p <= (1 - frame["level"]).round(12), flagged=[flag != "" for flag in flags])
    return frame.assign(flagged=frame.groupby("pair")["flagged"].transform("any"))


def _labels(rows: pd.DataFrame, space: float) -> list[str]:
    """Names of pairs within this many inches; the first system alone if the second is the same in all pairs."""
    daggers = [FLAG_MARK if flagged else "" for flagged in rows["flagged"]]
    if not elements.varies(rows["name_b"]):
        shown = style.distinct(rows["name_a"].tolist(), space - 0.08)
    else:
        half = (space - style.text_width(" − ", style.SIZE) - 0.08) / 2
        names = style.distinct([*rows["name_a"], *rows["name_b"]], half)
        shown = [" − ".join(pair) for pair in zip(names[: len(rows)], names[len(rows) :], strict=True)]
    return [name + dagger for name, dagger in zip(shown, daggers, strict=True)]


def _caption_parts(frame: pd.DataFrame) -> list[str]:
    """Parts of the caption: topics, tests, intervals and flags."""
    tests = [
        test if correction == "none" else f"{test}, {CORRECTION_NAMES.get(correction, correction)} correction"
        for test, correction in elements.kinds(frame, "test", "correction")
    ]
    sure, flagged = int(frame["significant"].sum()), frame.loc[frame["flagged"], "pair"].nunique()
    ways = [
        f"{100 * level:g}% intervals: {method}"
        for level, method in elements.kinds(frame.dropna(subset="low"), "level", "method")
    ]
    drawn = [f"{n:,} resamples, seed {seed}" for n, seed in elements.kinds(frame, "n_resamples", "seed") if n]
    return [
        verdicts.count_range_text(frame["n_qids"], "topic"),
        f"filled: significant ({sure} of {verdicts.count_range_text(len(frame), 'pair')}; {' and '.join(tests)})",
        " and ".join(ways) or "no intervals",
        " and ".join(drawn),
        f"{FLAG_MARK} a system that retrieved nothing for most topics ({flagged})" if flagged else "",
    ]


def beats_matrix(pairs: Any, *, ax: Any = None, width: float = style.COLUMN) -> Any:
    """Probability in percent that the system of a row beats that of a column.

    Systems are sorted by their mean probability of beating the other systems, highest first.

    Parameters
    ----------
    pairs
        Columns name_a, name_b, p_a_beats_b (0 to 1); the ``pairs`` of :func:`vbterrier.evaluate.ranking.rank_systems`.
        If a pair is given in one order only, the other is ``1 - p_a_beats_b`` and ties count half; if it is given in
        both, the remainder to 1 is the probability of a tie. Missing pairs and NaN are grey.

    Examples
    --------
    >>> ax = beats_matrix(pd.DataFrame({"name_a": ["bm25"], "name_b": ["dense"], "p_a_beats_b": [0.25]}))
    >>> [label.get_text() for label in ax.get_yticklabels()], [text.get_text() for text in ax.texts[:-1]]
    (['1 dense', '2 bm25'], ['75', '25'])
    """
    names, prob = _matrix(pairs)
    n = len(names)
    row = float(np.clip(0.62 * width / max(n, 1), 0.065, 0.2))
    with style.canvas(ax, width, n * row if n else 0.5) as drawn:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.patches import Patch

        if not n:
            return style.nothing(drawn, "pairs")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.9, 0.3) / n
        taken = style.row_labels(drawn, [f"{place} {name}" for place, name in enumerate(names, 1)], row, 0.38 * across)
        space = across - taken - 0.15
        edges = np.arange(n + 1)
        drawn.set_facecolor(style.RULE)
        for side in ("left", "bottom"):
            drawn.spines[side].set_visible(False)
        shades = LinearSegmentedColormap.from_list("beats", list(_SHADES))
        look = {"cmap": shades, "vmin": 0, "vmax": 1, "edgecolors": "white", "linewidth": 0.4}
        cells = drawn.pcolormesh(edges + 0.5, edges - 0.5, np.ma.masked_invalid(prob), **look)
        _percents(drawn, prob, (space / n, row))
        elements.number_columns(drawn, n, space)
        drawn.tick_params(axis="x", length=0)
        drawn.set_xlabel("against")
        shown = (0.0, 0.5, 1.0)
        handles = [Patch(facecolor=cells.cmap(cells.norm(p)), edgecolor=style.MUTED, linewidth=0.3) for p in shown]
        style.legend(drawn, handles, [f"{100 * share:g}%" for share in shown], space)
        lost = int(np.isnan(prob).sum() - n) // 2
        missing = f"grey: no probability ({lost} of {n * (n - 1) // 2} pairs)" if lost else ""
        notes = "probability that the row's system beats the column's", verdicts.count_range_text(n, "system"), missing
        style.caption(drawn, *notes, captions.origin(pandas_frame(pairs, "pairs")))
    return drawn


def _matrix(pairs: Any) -> tuple[list[str], Floats]:
    """Systems, and the probabilities that row beats column (NaN if unknown), highest mean first, unknown last."""
    frame = pandas_frame(pairs, "pairs")
    require(frame, ("name_a", "name_b", "p_a_beats_b"), "pairs")
    one, other = (captions.texts(frame[column], f"pairs column {column!r}") for column in ("name_a", "name_b"))
    prob = captions.reals(frame["p_a_beats_b"], "pairs column 'p_a_beats_b'")
    names = list(dict.fromkeys(name for pair in zip(one, other, strict=True) for name in pair))
    places = {name: place for place, name in enumerate(names)}
    row, column = (np.array([places[name] for name in names_of_axis], dtype=np.int64) for names_of_axis in (one, other))
    matrix = np.full((len(names), len(names)), np.nan)
    matrix[row, column] = prob
    with np.errstate(invalid="ignore"):
        over = matrix + matrix.T > 1 + PROBABILITY_ROUNDING
    for bad, requirement in (
        (row == column, "two systems"),
        ((prob < 0) | (prob > 1), "a probability from 0 to 1"),
        (pd.DataFrame({"row": row, "column": column}).duplicated().to_numpy(), "each pair once"),
        (over[row, column], "at most 1 together with the same pair the other way round"),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"pairs: row {at} ({one[at]!r}, {other[at]!r}) has {prob[at]:g}; wanted {requirement}")
    matrix = np.where(np.isnan(matrix), 1 - matrix.T, matrix)
    defined = ~np.isnan(matrix)
    wins = np.where(defined, matrix, 0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    order = np.argsort(np.where(defined.any(axis=1), -wins, np.inf), kind="stable")
    return [names[place] for place in order], matrix[np.ix_(order, order)]


def _percents(ax: Any, prob: Floats, size: tuple[float, float]) -> None:
    """Print percents in cells of this width and height in inches, if they fit."""
    fits = min(
        style.SMALL_TEXT_POINTS,
        0.8 * 72 * size[1],
        style.SMALL_TEXT_POINTS * 0.85 * size[0] / style.text_width("100", style.SMALL_TEXT_POINTS),
    )
    if fits < style.MIN_TEXT_POINTS:
        return
    for row, column in np.argwhere(~np.isnan(prob)):
        share = prob[row, column]
        colour = "white" if abs(share - 0.5) > 0.4 else style.INK  # noqa: PLR2004 - on the darkest shades
        look = {"ha": "center", "va": "center_baseline", "fontsize": fits, "color": colour}
        ax.text(int(column) + 1, int(row), f"{100 * share:.0f}", **look)
