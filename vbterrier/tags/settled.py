"""Tags of rows in order: each once, the heaviest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Settled:
    """Tags by row.

    Parameters
    ----------
    row
        The row of each tag, rising, shape (n_tags,).
    entities
        The entity of each tag.
    weight
        Its weight in [0, 1], shape (n_tags,).
    """

    row: Ints
    entities: list[Any]
    weight: Floats

    def lists(self, n_rows: int) -> tuple[list[list[Any]], list[list[float]]]:
        """The entities and the weights of each row, for columns of a frame."""
        stops = np.cumsum(np.bincount(self.row, minlength=n_rows)).tolist()
        bounds = list(zip([0, *stops[:-1]], stops, strict=True)) if stops else []
        weights = self.weight.tolist()
        return [self.entities[a:b] for a, b in bounds], [weights[a:b] for a, b in bounds]


def settled(row: Ints, entity: Ids, score: Floats, *, top: int | None, binary: bool) -> Settled:
    """Keep each tag of a row once with its largest score, and of each row the first ``top`` by score, then by id.

    Parameters
    ----------
    row, entity, score
        Tags in any order, each of shape (n_tags,).
    top
        How many to keep a row; ``None`` for all.
    binary
        Whether tags then weigh 1.

    >>> import pandas as pd
    >>> from vbterrier.frames.ids import ids_of
    >>> entity = ids_of(pd.Series(["B", "A", "B"]), "tags")
    >>> settled(np.array([0, 0, 0]), entity, np.array([0.2, 0.5, 0.5]), top=None, binary=False).entities
    ['A', 'B']
    """
    names, code = entity.codes()
    alphabetical = np.empty(len(names), dtype=np.int64)
    alphabetical[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    place = alphabetical[code]
    order = np.lexsort((-score, place, row))
    again = (row[order[1:]] == row[order[:-1]]) & (place[order[1:]] == place[order[:-1]])
    order = order[np.concatenate([[True], ~again])[: len(order)]]
    order = order[np.lexsort((place[order], -score[order], row[order]))]
    if top is not None:
        starts = np.searchsorted(row[order], row[order], side="left")
        order = order[np.arange(len(order)) - starts < top]
    entities = [names[number] for number in code[order]]
    weight = np.ones(len(order)) if binary else score[order]
    return Settled(row[order], [int(name) for name in entities] if entity.integers else entities, weight)
