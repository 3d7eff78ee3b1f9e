"""The V frame (name, qid, measure, value) as matrices: a row a topic, a column a system and measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.frames.values import KEY, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopicValues:
    """The values of some systems and measures that have the same topics.

    Parameters
    ----------
    names, measures
        Of each column.
    places
        The place of each column among those of all topics, in order of appearance.
    qids
        The topics, sorted.
    values
        Shape (n, m).
    """

    names: list[str]
    measures: list[str]
    places: list[int]
    qids: list[str]
    values: Floats


def topic_values(values: Any) -> list[TopicValues]:
    """Columns of a V frame, those with the same topics together. The order of rows decides that of columns, no more.

    Raises
    ------
    InputError
        See :func:`vbterrier.frames.values.values_of`.

    >>> frame = pd.DataFrame({"name": "a", "qid": ["2", "1", "1"], "measure": ["P", "P", "AP"], "value": [0.5, 1, 0]})
    >>> [(found.measures, found.qids, found.values.tolist()) for found in topic_values(frame)]
    [(['P'], ['1', '2'], [[1.0], [0.5]]), (['AP'], ['1'], [[0.0]])]
    """
    frame = values_of(values)
    return tables_of([frame[key] for key in KEY], frame["value"].to_numpy())


def tables_of(keys: Sequence[Any], values: Floats) -> list[TopicValues]:
    """:func:`topic_values` of columns known to be good: names, topics and measures, and a finite value of each."""
    if not len(values):
        return []
    (name, names), (measure, measures) = (pd.factorize(keys[at]) for at in (0, 2))
    qid, qids = pd.factorize(keys[1], sort=True)
    column, pairs = pd.factorize(name * len(measures) + measure)
    order = np.lexsort((qid, column))
    parts = np.split(order, np.flatnonzero(np.diff(column[order])) + 1)
    groups: dict[bytes, list[int]] = {}
    for place, rows in enumerate(parts):
        groups.setdefault(qid[rows].tobytes(), []).append(place)
    return [
        TopicValues(
            [names[pairs[place] // len(measures)] for place in places],
            [measures[pairs[place] % len(measures)] for place in places],
            places,
            list(qids[qid[parts[places[0]]]]),
            np.stack([values[parts[place]] for place in places], axis=1),
        )
        for places in groups.values()
    ]
