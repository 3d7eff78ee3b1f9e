"""Values as one table for each measure, topics in the order given or by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.errors import InputError, examples
from vbterrier.frames.values import values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class MeasureTable(NamedTuple):
    """The values of all systems under one measure, shape (n_topics, n_systems), and the topics of its rows."""

    measure: str
    names: list[str]
    values: Floats
    qids: list[str]


def measure_tables(values: Any, *, by_id: bool = False) -> list[MeasureTable]:
    """A table for each measure of a V frame, each with systems in their order of appearance.

    Parameters
    ----------
    values
        The V frame.
    by_id
        Sort topics by their ids, so that what is drawn of them does not depend on the order of the rows; else they
        stand in order of appearance, too.

    Raises
    ------
    InputError
        Systems with different topics; see also :func:`vbterrier.frames.values.values_of`.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["2", "1", "1", "2"], "measure": "AP"})
    >>> measure_tables(frame.assign(value=[0.2, 0.1, 0.3, 0.4]))[0].values.tolist()
    [[0.2, 0.4], [0.1, 0.3]]
    """
    groups = values_of(values).groupby("measure", sort=False)
    return [_table(str(measure), group, by_id=by_id) for measure, group in groups]


def _table(measure: str, group: Any, *, by_id: bool) -> MeasureTable:
    (name, names), (qid, qids) = group["name"].factorize(), group["qid"].factorize(sort=by_id)
    table = np.full((len(qids), len(names)), np.nan)
    table[qid, name] = group["value"].to_numpy()
    lacking = np.isnan(table)
    odd = lacking.any(axis=1)
    if odd.any():
        row, column = np.argwhere(lacking)[0]
        raise InputError(
            f"values: of {measure}, {int(odd.sum())} topics ({examples(qids[odd])}) lack a value for some system: "
            f"{names[column]!r} has none for {qids[row]!r}; keep the topics that all systems have (compare does with "
            "topics='common'), or score missing ones as 0"
        )
    return MeasureTable(measure, names.tolist(), table, list(qids))
