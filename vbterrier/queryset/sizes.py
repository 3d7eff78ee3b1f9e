"""Scores over ever more of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.frames.measure_tables import measure_tables
from vbterrier.frames.parameters import choice, number, whole
from vbterrier.queryset.subsets import ORDERS, band, checked_sizes, orders_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["score_by_size"]

COLUMNS = ("name", "measure", "n_qids", "mean", "low", "high", "level", "order", "n_subsets", "seed")


def score_by_size(
    values: Any,
    *,
    sizes: Iterable[int] | None = None,
    order: str = "given",
    n_subsets: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean score of each system over ever more of the queries.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value.
    sizes
        Numbers of queries, 1 to n; by default 20 from ``n/20`` to n.
    order
        ``"given"``: the first queries in their order of appearance, as in Figure 1 of the source; ``"random"``: random
        subsets.
    n_subsets
        Random subsets of each size. Those of one number are nested: each grows by the same queries for all systems.
    level
        Share of the subsets whose means the band holds.
    seed
        Decides the subsets.

    Returns
    -------
    pandas.DataFrame
        A row a measure, system and size: name, measure, n_qids, mean, low, high, level, order, n_subsets, seed. The
        first n queries are one subset, without a band (NaN).

    Raises
    ------
    InputError
        Systems with different topics, missing values.
    ParameterError
        A size that there is not, an unknown order.

    Notes
    -----
    The band says how far a subset strays from these very queries: it closes as all of them are taken, which says
    nothing about other queries. For that see :func:`interval_width` and ``vbterrier.intervals``. The mean is over
    queries: for ratios of sums, as F1 of linking, give values whose mean is the figure, as ours are.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 3.

    Examples
    --------
    >>> frame = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.0, 1.0, 0.5]})
    >>> score_by_size(frame, sizes=[1, 2, 3])["mean"].tolist()
    [0.0, 0.5, 0.5]
    """
    choice("order", order, ORDERS)
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    n_subsets = whole("n_subsets", n_subsets) if order == "random" else 1
    frames = [pd.DataFrame(columns=list(COLUMNS))]
    for measure, names, table, _ in measure_tables(values, by_id=order == "random"):
        wanted = checked_sizes(sizes, len(table), 1)
        means = np.concatenate(
            [
                np.stack([_memberships(block[:, :n], len(table)) @ table / n for n in wanted], axis=1)
                for block in orders_of(len(table), order, n_subsets, seed, len(table))
            ]
        )
        low, high = band(means, level, order)
        keys = pd.MultiIndex.from_product([names, wanted], names=["name", "n_qids"])
        found = {"mean": means.mean(axis=0), "low": low, "high": high}
        columns = {column: numbers.T.ravel() for column, numbers in found.items()}
        frames.append(pd.DataFrame(columns, index=keys).reset_index().assign(measure=measure))
    made = pd.concat(frames[1:] or frames, ignore_index=True)
    return made.assign(level=level, order=order, n_subsets=n_subsets, seed=seed)[list(COLUMNS)]


def _memberships(subsets: Ints, n: int) -> Floats:
    """Which of all n queries are in each subset, 1 or 0, shape (rows, n)."""
    members = np.zeros((len(subsets), n))
    np.put_along_axis(members, subsets, 1.0, axis=1)
    return members
