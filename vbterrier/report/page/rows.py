"""Frames read by row and by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.report.page.evaluated import Found


def rows_of(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows, as Python's own numbers and texts.

    >>> import pandas as pd
    >>> rows_of(pd.DataFrame({"a": [1], "b": ["x"], "c": [2.5]}), "c", "a")
    [(2.5, 1)]
    """
    return list(zip(*(frame[column].tolist() for column in columns), strict=True))


def wide_of(found: Found, measure: str) -> pd.DataFrame:
    """What systems score by one measure: a row a topic, a column a system, NaN where nothing is defined."""
    values = found.scores.values
    of_measure = values[values["measure"] == measure].astype({"qid": str, "name": str})
    wide = of_measure.pivot(index="qid", columns="name", values="value")
    return wide.reindex(index=found.topics, columns=found.names)
