"""What figures of several estimators share."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def limits_of(numbers: pd.DataFrame, beyond: float = 0.04) -> tuple[float, float]:
    """Where an axis begins and ends: a little beyond what there is."""
    least, most = float(np.nanmin(numbers.to_numpy())), float(np.nanmax(numbers.to_numpy()))
    margin = beyond * (most - least) or 0.05
    return least - margin, most + margin
