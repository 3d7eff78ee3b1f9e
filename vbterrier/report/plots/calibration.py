"""Predicted probabilities against what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.intents.calibration import CalibrationError
from vbterrier.report.plots import style, words

if TYPE_CHECKING:
    from collections.abc import Sequence

# Printer's points of the mark of the largest bin, and the least that is seen.
_LARGEST, _LEAST = 9.0, 2.4


def reliability(
    bins: Any, *, method: str | Sequence[str] | None = None, ax: Any = None, width: float = style.COLUMN
) -> Any:
    """Reliability diagram: observed shares against predicted probabilities, the area of a mark being the bin's size.

    The caption has the expected calibration error ``ECE = Σ_b n_b/N |predicted_b - observed_b|`` of each method.

    Parameters
    ----------
    bins
        What :func:`vbterrier.intents.calibration.calibration_error` gives, or a frame: columns predicted and observed
        (means over the bin, 0 to 1), n (its size), and optionally method, which gives each method its line. Empty bins
        (n = 0) may have NaN; they are not drawn. A mapping of methods to either draws them all.
    method
        Methods to draw; all by default.
    ax
        Where to draw; a new figure by default.
    width
        Inches of a new figure, about a square: ``COLUMN`` (3.3), ``FULL`` (7).

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        A missing column; a filled bin without numbers or with numbers outside [0, 1]; a mapping to bins that name
        methods themselves.
    ParameterError
        A method that the frame does not have.
    ImportError
        matplotlib is missing: ``pip install 'vbterrier[plot]'``.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = reliability(pd.DataFrame({"predicted": [0.2, 0.8], "observed": [0.1, 0.9], "n": [30, 10]}))
    >>> ax.texts[-1].get_text()
    'ECE 0.100; 2 bins, area of a mark: its size (10 to 30); n = 40'
    """
    frame = words.only(_bins_of(bins), "method", method, "bins")
    parts = [(str(name), part) for name, part in frame.groupby("method", sort=False)]
    with style.canvas(ax, width, None if parts else 0.5) as drawn:
        if not len(frame):
            return style.nothing(drawn, "bins")
        drawn.plot([0, 1], [0, 1], color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        largest = frame["n"].max()
        handles = [_draw(drawn, part, place, largest) for place, (_, part) in enumerate(parts)]
        drawn.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=_TICKS, yticks=_TICKS)
        drawn.set_aspect("equal")
        drawn.set_xlabel("predicted probability")
        drawn.set_ylabel("observed share")
        errors = [f"{_error(part):.3f}" for _, part in parts]
        said = errors[0]
        if len(parts) > 1:
            said = ", ".join(f"{error} ({name})" for (name, _), error in zip(parts, errors, strict=True))
            style.legend(drawn, handles, [name for name, _ in parts], style.cell(drawn)[0] - 0.5)
        style.caption(drawn, f"ECE {said}", *_sizes(frame, len(parts)))
    return drawn


_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)


def _bins_of(given: Any) -> pd.DataFrame:
    """The filled bins of one method or of several."""
    if not isinstance(given, Mapping):
        return _checked(given, "bins")
    parts = {str(method): _checked(bins, f"bins[{method!r}]") for method, bins in given.items()}
    named = [method for method, part in parts.items() if (part["method"] != "").any()]
    if named:
        raise InputError(f"bins[{named[0]!r}]: the bins have a column method themselves; drop it, or pass them alone")
    empty = _checked(pd.DataFrame({"predicted": [], "observed": [], "n": np.empty(0, dtype=np.int64)}), "bins")
    return pd.concat([empty, *(part.assign(method=method) for method, part in parts.items())], ignore_index=True)


def _checked(bins: Any, what: str) -> pd.DataFrame:
    """The filled bins, columns method, n, predicted, observed."""
    frame = frame_of(bins.bins if isinstance(bins, CalibrationError) else bins, what)
    require(frame, ("predicted", "observed", "n"), what)
    n = integers_of(frame["n"], f"{what} column 'n'")
    filled = pd.DataFrame({"method": frame["method"].astype(str) if "method" in frame.columns else "", "n": n})
    for column in ("predicted", "observed"):
        filled[column] = words.reals(frame[column], f"{what} column {column!r}")
        bad = (n < 0) | ((n > 0) & ~filled[column].between(0, 1).to_numpy())
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{what}: row {row} has n = {n[row]} and {column} = {filled[column].iloc[row]:g}; wanted numbers from "
                "0 to 1, and NaN in empty bins only"
            )
    return filled[filled["n"] > 0]


def _draw(ax: Any, part: pd.DataFrame, place: int, largest: int) -> Any:
    """One method: its line and its bins; returns what stands for it in a legend."""
    colour, marker = style.look(place)
    ordered = part.sort_values("predicted", kind="stable")
    x, y = ordered["predicted"].to_numpy(), ordered["observed"].to_numpy()
    ax.plot(x, y, color=colour, linewidth=1.0, zorder=2)
    area = np.maximum(_LARGEST**2 * ordered["n"].to_numpy() / largest, _LEAST**2)
    ax.scatter(x, y, s=area, color=colour, marker=marker, linewidths=0, zorder=3)
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, markersize=4)


def _error(part: pd.DataFrame) -> float:
    """Expected calibration error over the bins that there are."""
    return float(np.average((part["predicted"] - part["observed"]).abs(), weights=part["n"]))


def _sizes(frame: pd.DataFrame, n_methods: int) -> list[str]:
    """The number of bins and the size of bins and sample."""
    n_bins = frame.groupby("method", sort=False).size()
    said = words.counted(n_bins, "bin") + f", area of a mark: its size ({frame['n'].min():,} to {frame['n'].max():,})"
    total = frame.groupby("method", sort=False)["n"].sum()
    return [said, "n = " + words.counted(total, "").rstrip(" s") + (" a method" if n_methods > 1 else "")]
