"""What the entities that runs select tell of relevance, as distributions by signal class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.measured import BAIT, SIGNAL
from vbterrier.entities.slots import ABSENT
from vbterrier.entities.table import CLASSES
from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report.plots import style, words
from vbterrier.report.plots.margin import beside_rows, legend_from_left
from vbterrier.report.plots.parts import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

# From bait to signal; what has no direction is grey. Neighbours differ in lightness.
_LOOK = {
    "anti-signal": "#D55E00",
    "generic bait": "#E69F00",
    "neutral": "#757575",
    ABSENT: "#ffffff",
    "sparse": "#d4d4d4",
    "conditional": "#56B4E9",
    "core": "#0072B2",
}
# Columns of what the numbers were made with, and what captions call it.
_SETTINGS = {"k": "first {} entities", "alpha": "α {}", "tau": "τ {}", "rel": "relevant: label {} and above"}
# How much of its row the highest bar fills.
_FILLED = 0.86
# Inches that a bar should have at least.
_BAR = 0.07


def oer_distributions(
    selected: Any,
    *,
    runs: Sequence[str] | None = None,
    step: float | None = None,
    ax: Any = None,
    width: float = style.COLUMN,
) -> Any:
    """Observable entity relevance of the entities that runs select, by signal class (Chatterjee 2026, figures 3 and 4).

    A row a run: stacked bars hold the share of the run's entities whose OER is in a step, over all topics; a diamond is
    the mean of all. The numbers beside are the shares of signal (core,
    conditional) and of bait (generic bait, anti-signal).

    Parameters
    ----------
    selected
        Columns name, qid, oer and signal, a row an entity that a run selects, as
        :func:`vbterrier.entities.slots.selected_entities` gives it; or any other entities with their classes, as the
        partitions of a supervision (figure 3). Rows whose OER is NaN are not drawn; the caption counts them.
    runs
        Runs to draw, in this order; all by default.
    step
        Width of the bars; by default what can be seen.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure: ``COLUMN`` (3.3), ``FULL`` (7). Its height follows from the number of runs.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a class that there is not.
    ParameterError
        A run that the frame does not have; a step of 0 or less.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Notes
    -----
    Bars are scaled so that the highest of each run fills its row: shares compare within a run, not between runs.

    Examples
    --------
    >>> import pandas as pd
    >>> slots = pd.DataFrame({"name": "consensus", "qid": "q1", "oer": [1.2, 0.3, -0.4], "signal": "conditional"})
    >>> ax = oer_distributions(slots.assign(signal=["core", "conditional", "anti-signal"]))
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['consensus'], 'OER (log odds)')
    """
    if step is not None and not step > 0:
        raise ParameterError(f"step={step!r}: wanted a width above 0, or None")
    frame = _checked(frame_of(selected, "selected"))
    if runs is not None:
        frame = words.only(frame, "name", runs, "selected")
    names = list(dict.fromkeys(runs)) if runs is not None else list(frame["name"].unique())
    known = frame.dropna(subset=["oer"])
    n = len(names)
    row = float(np.clip(style.PAGE / max(n, 1), 0.22, 1.3 / max(n, 1) + 0.3))
    with style.canvas(ax, width, n * row if len(known) else 0.5) as drawn:
        if not len(known):
            return style.nothing(drawn, "entities with an OER")
        across, down = style.cell(drawn)
        row = row if ax is None else max(down - 0.95, 0.3) / n
        taken = style.row_labels(drawn, names, row, 0.36 * across)
        beside = [_rates(known[known["name"] == name]) for name in names]
        room = across - taken - 0.15 - beside_rows(drawn, beside, "signal / bait")
        edges = _edges(known["oer"], step, room)
        _draw(drawn, known, names, edges)
        drawn.set_ylim(n - 1 + 0.5, -0.5)
        drawn.axvline(0, color=style.INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=4)
        drawn.spines["left"].set_visible(False)
        drawn.locator_params(axis="x", nbins=int(np.clip(room / 0.4, 2, 8)))
        drawn.set_xlabel("OER (log odds)")
        _explain(drawn, known, room, taken)
        style.caption(drawn, *_described(frame, known, names, edges))
    return drawn


def _checked(given: pd.DataFrame) -> pd.DataFrame:
    require(given, ("name", "qid", "oer", "signal"), "selected")
    columns = {name: words.texts(given[name], f"selected column {name!r}") for name in ("name", "qid", "signal")}
    frame = pd.DataFrame({**columns, "oer": words.reals(given["oer"], "selected column 'oer'")})
    frame = frame.join(given[[name for name in _SETTINGS if name in given.columns]].reset_index(drop=True))
    odd = ~frame["signal"].isin(_LOOK)
    if odd.any():
        row = int(np.argmax(odd.to_numpy()))
        wanted = ", ".join(map(repr, (*CLASSES, ABSENT)))
        raise InputError(f"selected: row {row} has the class {frame['signal'][row]!r}; wanted one of {wanted}")
    return frame


def _rates(part: pd.DataFrame) -> str:
    """The shares of signal and of bait."""
    if not len(part):
        return ""
    return " / ".join(f"{100 * part['signal'].isin(names).mean():.0f}%" for names in (SIGNAL, BAIT))


def _edges(oer: pd.Series[float], step: float | None, room: float) -> Any:
    """Edges of bars, 0 among them: no bar holds both signs."""
    least, most = float(oer.min()), float(oer.max())
    if step is None:
        step = round_up(max(most - least, 0.1) * _BAR / max(room, _BAR))
    first, last = int(np.floor(least / step)), int(np.floor(most / step)) + 1
    return step * np.arange(first, last + 1)


def _draw(ax: Any, known: pd.DataFrame, names: list[str], edges: Any) -> None:
    """The bars and means of all rows."""
    step = edges[1] - edges[0]
    place = np.clip(np.searchsorted(edges, known["oer"].to_numpy(), side="right") - 1, 0, len(edges) - 2)
    signal = known["signal"].map({name: at for at, name in enumerate(_LOOK)}).to_numpy()
    run = known["name"].map({name: at for at, name in enumerate(names)}).to_numpy()
    shape = (len(names), len(_LOOK), len(edges) - 1)
    counts = np.bincount(np.ravel_multi_index((run, signal, place), shape), minlength=int(np.prod(shape)))
    counts = counts.reshape(shape)
    shares = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    highest = shares.sum(axis=1).max(axis=1)
    for at, _ in enumerate(names):
        base = np.full(shape[2], at + 0.45)
        for which, colour in enumerate(_LOOK.values()):
            tall = _FILLED * shares[at, which] / (highest[at] or 1)
            there = tall > 0
            look = {"color": colour, "edgecolor": style.MUTED if colour == "#ffffff" else "white", "linewidth": 0.25}
            ax.bar(edges[:-1][there], -tall[there], step, base[there], align="edge", **look, zorder=2)
            base = base - tall
        ax.hlines(at + 0.45, edges[0], edges[-1], color=style.RULE, linewidth=0.5, zorder=1)
        own = known.loc[known["name"] == names[at], "oer"]
        ax.plot(
            [own.mean()],
            [at + 0.45],
            marker="D",
            markersize=3.4,
            color="black",
            markeredgecolor="white",
            markeredgewidth=0.5,
            linestyle="none",
            clip_on=False,
            zorder=5,
        )
    ax.set_xlim(edges[0], edges[-1])


def _explain(ax: Any, known: pd.DataFrame, room: float, beside: float) -> None:
    """A legend that begins above the names of the rows."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    there = [name for name in reversed(_LOOK) if (known["signal"] == name).any()]
    handles: list[Any] = [Patch(facecolor=_LOOK[name], edgecolor=style.MUTED, linewidth=0.3) for name in there]
    mean = Line2D([], [], color="black", marker="D", markersize=3.4, linestyle="none")
    legend_from_left(ax, [*handles, mean], [*there, "mean"], room, beside)


def _described(frame: pd.DataFrame, known: pd.DataFrame, names: list[str], edges: Any) -> list[str]:
    n_entities = known.groupby("name").size().reindex(names, fill_value=0)
    lost = len(frame) - len(known)
    return [
        words.counted(n_entities, "entity") + (" a run" if len(names) > 1 else ""),
        words.counted(pd.Series([known["qid"].nunique()]), "topic"),
        *_settings(frame),
        f"bars: shares in steps of {edges[1] - edges[0]:.3g}"
        + (", the highest of each run alike" if len(names) > 1 else ""),
        f"not drawn, their topics have no OER: {lost:,}" if lost else "",
    ]


def _settings(frame: pd.DataFrame) -> list[str]:
    """What the numbers were made with, where the frame says so and all rows agree."""
    there = {name: form for name, form in _SETTINGS.items() if name in frame.columns and len(frame)}
    found = [(form, frame[name].iloc[0]) for name, form in there.items() if (frame[name] == frame[name].iloc[0]).all()]
    return [", ".join(form.format(f"{value:g}") for form, value in found)]
