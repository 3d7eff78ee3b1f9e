"""Draws of queries in one stage or two: units of a stratum first, then a query of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.ids import numbers_of
from vbterrier.kernels.resample import stream
from vbterrier.kernels.sampling import drawn_units, inclusion_probabilities, systematic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.queryset.mentions import Mentions

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# What is drawn first, by method; other methods have one stage.
STAGES = {"random-document": "document", "random-mention": "mention"}


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn first: documents, mentions or queries of each stratum; and the queries of each.

    Parameters
    ----------
    order
        The queries, those of a unit side by side, units by stratum, shape (n_queries,).
    starts, sizes
        Where each unit's queries begin in ``order``, and how many they are, shape (n_units,).
    first
        The first unit of each stratum, and behind the last where it ends, shape (n_strata + 1,).
    weight
        Of each unit; ``None`` where all are alike.
    """

    order: Ints
    starts: Ints
    sizes: Ints
    first: Ints
    weight: Floats | None

    @classmethod
    def of(cls, corpus: Mentions, method: str, stratum: Ints, n_strata: int, weights: str | None) -> Units:
        """The units of a corpus, by the method and the stratum of each query."""
        unit = getattr(corpus, STAGES[method]) if method in STAGES else np.arange(len(corpus))
        key = stratum * (int(unit.max()) + 1) + unit
        order = np.argsort(key, kind="stable")
        inside = key[order]
        starts = np.flatnonzero(np.concatenate([[True], inside[1:] != inside[:-1]]))
        sizes = np.diff(np.append(starts, len(order)))
        first = np.searchsorted(stratum[order[starts]], np.arange(n_strata + 1))
        return cls(order, starts, sizes, first, None if weights is None else _sizes_of(corpus, weights)[order])

    @property
    def n_units(self) -> Ints:
        """How many units each stratum has, shape (n_strata,)."""
        return np.diff(self.first)

    def share(self, corpus: Mentions, method: str) -> Floats:
        """The probability of each query in one draw without strata, shape (n_queries,)."""
        if self.weight is not None:
            by_query = np.empty(len(self.order))
            by_query[self.order] = self.weight
        elif method in STAGES:
            unit = getattr(corpus, STAGES[method])
            by_query = 1 / np.bincount(unit)[unit]
        else:
            by_query = np.ones(len(corpus))
        shares: Floats = by_query / by_query.sum()
        return shares

    def draw(self, place: int, n: int, *, replace: bool, seed: int, name: str) -> tuple[Ints, Floats]:
        """Queries of a stratum, in the order drawn, and the probability of each."""
        first, last = (int(end) for end in self.first[place : place + 2])
        if self.weight is not None:
            unit, prob = _weighted(self.weight[first:last], n, stream(seed, name, "units"), replace=replace)
        else:
            unit = drawn_units(last - first, n, stream(seed, name, "units"), replace=replace)
            prob = np.full(n, (1 if replace else n) / (last - first))
        unit = unit + first
        # A stream of its own, so that what is drawn within a unit does not depend on n.
        within = np.floor(stream(seed, name, "within").random(n) * self.sizes[unit]).astype(np.int64)
        return self.order[self.starts[unit] + within], prob / self.sizes[unit]


def _sizes_of(corpus: Mentions, column: str) -> Floats:
    where = f"mentions column {column!r}"
    found = numbers_of(corpus.column(column), where)
    bad = ~((found > 0) & np.isfinite(found))
    if bad.any():
        place = int(np.flatnonzero(bad)[np.argmin(corpus.rows[bad])])
        row = corpus.frame.iloc[int(corpus.rows[place])]
        raise InputError(
            f"{where}: row {corpus.rows[place]} (document {row['docno']!r}, mention {row['mention']!r}) has weight "
            f"{found[place]:g}, wanted a finite number above 0; leave the row out, or give it a small weight"
        )
    return found


def _weighted(weight: Floats, n: int, draws: np.random.Generator, *, replace: bool) -> tuple[Ints, Floats]:
    if replace:
        ends = np.cumsum(weight)
        unit = np.minimum(np.searchsorted(ends, draws.random(n) * ends[-1], side="right"), len(weight) - 1)
        return unit, weight[unit] / ends[-1]
    prob = inclusion_probabilities(weight, n)
    unit = systematic(prob, draws)
    return unit, prob[unit]
