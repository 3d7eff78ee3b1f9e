"""Squares: figures with the same scale on both axes and a diagonal where both agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError, examples
from vbterrier.report.plots import style

if TYPE_CHECKING:
    import pandas as pd


def few(frame: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    """The parts of a frame by a column, in order of appearance.

    Raises
    ------
    ParameterError
        More than can be told apart by colour.
    """
    parts = [(str(name), part) for name, part in frame.groupby(column, sort=False)]
    if len(parts) > len(style.COLOURS):
        raise ParameterError(
            f"{len(parts)} {column}s ({examples([name for name, _ in parts])}) are more than can be told apart; "
            f"choose {len(style.COLOURS)} at most with {column}="
        )
    return parts


def limits_of(numbers: pd.DataFrame) -> tuple[float, float]:
    """Where both axes begin and end: some way beyond what there is, and beyond one another."""
    least, most = float(np.nanmin(numbers.to_numpy())), float(np.nanmax(numbers.to_numpy()))
    beyond = 0.04 * (most - least) or 0.05
    return least - beyond, most + beyond


def square(ax: Any, limits: tuple[float, float]) -> None:
    """Give both axes the same limits and ticks, and draw the diagonal."""
    ax.plot(limits, limits, color=style.MUTED, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    # A square in a wider place stands at its left, where the caption begins.
    ax.set(xlim=limits, ylim=limits, aspect="equal", anchor="W")
    ax.locator_params(nbins=6)
