"""Tables with a row a topic: their columns as numbers, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def numbers(table: Any, names: Sequence[str], *, gaps: Sequence[str] = ()) -> dict[str, Floats]:
    """Columns of a table as numbers, each of shape (n_topics,).

    Parameters
    ----------
    table
        A frame, a row a topic.
    names
        The columns.
    gaps
        Those of them in which a value may be missing (NaN): coverage is undefined for topics without relevant
        documents.

    Raises
    ------
    InputError
        A missing column; a value that is missing, infinite or no number.

    >>> import pandas as pd
    >>> numbers(pd.DataFrame({"gain": [1, 2]}), ["gain"])
    {'gain': array([1., 2.])}
    """
    frame = frame_of(table, "table")
    require(frame, list(names), "table")
    found: dict[str, Floats] = {}
    for name in names:
        column, where = frame[name], f"table column {name!r}"
        known = column.notna().to_numpy()
        if name not in gaps and not known.all():
            row = int(np.argmin(known))
            raise InputError(f"{where}: row {row} has no value, wanted a number for every topic; leave the topic out")
        # A 0 in place of what is missing, so that errors name the rows of the table.
        values = numbers_of(column if known.all() else column.astype(object).where(column.notna(), 0.0), where)
        values = np.where(known, values, np.nan)
        if np.isinf(values).any():
            raise InputError(f"{where}: row {int(np.argmax(np.isinf(values)))} is infinite, wanted a finite number")
        found[name] = values
    return found
