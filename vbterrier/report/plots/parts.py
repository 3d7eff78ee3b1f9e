"""What figures of several series share: how many there may be, what their frames must hold, where axes end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import integers_of
from vbterrier.report.plots import style, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


def round_up(number: float) -> float:
    """The next larger 1, 2 or 5 times a power of ten."""
    power = float(10.0 ** np.floor(np.log10(number)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number)


def varies(column: pd.Series[Any]) -> bool:
    """Whether a column has more than one value."""
    return bool((column != column.iloc[0]).any()) if len(column) else False


def kinds(frame: pd.DataFrame, *columns: str) -> list[Any]:
    """The rows of some columns that differ, in order of appearance."""
    found: list[Any] = frame[list(columns)].drop_duplicates().to_numpy(dtype=object).tolist()
    return found


def columns_of(
    given: Any, what: str, *, texts: Sequence[str] = (), reals: Sequence[str] = (), wholes: Sequence[str] = ()
) -> pd.DataFrame:
    """The columns that a figure draws, each of its kind, rows numbered from 0.

    Raises
    ------
    InputError
        A missing column; text that is no number, infinity, a count that is none.
    """
    frame = frame_of(given, what)
    require(frame, (*texts, *reals, *wholes), what)
    read = [(texts, words.texts), (reals, words.reals), (wholes, integers_of)]
    return pd.DataFrame({name: kind(frame[name], f"{what} column {name!r}") for names, kind in read for name in names})


def refuse(frame: pd.DataFrame, what: str, shown: Sequence[str], checks: Iterable[tuple[Any, str]]) -> None:
    """Raise for the first row that one of the checks finds bad.

    Parameters
    ----------
    frame, what
        The frame, rows numbered from 0, and its name.
    shown
        Columns that a message quotes.
    checks
        Pairs of bad rows and of what was wanted.

    Raises
    ------
    InputError
        With the row and what it has.
    """
    for bad, wanted in checks:
        if np.any(bad):
            row = int(np.argmax(bad))
            found = ", ".join(f"{name} {_quoted(frame[name].iloc[row])}" for name in shown)
            raise InputError(f"{what}: row {row} has {found}; wanted {wanted}")


def band_checks(frame: pd.DataFrame, value: str, keys: Sequence[str]) -> list[tuple[Any, str]]:
    """What is wanted of a value with a band around it, by size."""
    low, high = frame["low"], frame["high"]
    slack = 1e-9
    return [
        (low.isna() != high.isna(), "low and high, or NaN for both"),
        ((low > frame[value] + slack) | (frame[value] > high + slack) | (low > high), f"low <= {value} <= high"),
        (frame["n_qids"] < 1, "at least 1 query"),
        (frame.duplicated(list(keys)), "each size once"),
    ]


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{value:g}"
