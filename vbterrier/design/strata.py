"""Corpora of mentions, strata of queries, and draws within strata."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, agreeing, choice, examples, excerpt, number, warn, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_mentions
from vbterrier.frames.ids import Ids, column_ids, column_numbers
from vbterrier.kernels.resample import stream
from vbterrier.kernels.sampling import allocation as allocated
from vbterrier.kernels.sampling import drawn_units, inclusion_probabilities, systematic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints

    Strata = str | int | Callable[[pd.DataFrame], Any] | None
    Allocation = str | Mapping[Any, int]

ALLOCATIONS = ("proportional", "equal", "neyman")
# Name of the single stratum without strata.
SINGLE_STRATUM = "all"
# Draws needed to estimate a variance.
_MIN_STRATUM_DRAWS = 2
# Units of the first stage by method; other methods have one stage.
STAGES = {"random-document": "document", "random-mention": "mention"}


class MentionCorpus:
    """The distinct queries (docno, mention) of a mention frame or its path, in the order of their documents and
    mentions.

    Rows with the same docno and mention are one query, of which the first row is used. ``rows``: the row of each query
    in the frame; ``document, mention``: codes in byte order, shape (n,).
    """

    def __init__(self, frame: Any, name: str = "mentions") -> None:
        self.frame = read_mentions(frame) if isinstance(frame, (str, os.PathLike)) else pandas_frame(frame, name)
        self.name = name
        require(self.frame, ("docno", "mention"), name)
        if not len(self.frame):
            raise InputError(f"{name}: no rows; wanted a row (docno, mention) for each mention of a document")
        document, self.n_documents = self._codes("docno")
        mention, self.n_mentions = self._codes("mention")
        key = document * self.n_mentions + mention
        order = np.argsort(key, kind="stable")
        inside = key[order]
        first = np.concatenate([[True], inside[1:] != inside[:-1]])
        self.rows = order[first]
        self.document, self.mention = document[self.rows], mention[self.rows]
        self._repeats, self._firsts = order[~first], self.rows[np.cumsum(first)[~first] - 1]

    def __len__(self) -> int:
        return len(self.rows)

    def _codes(self, column: str) -> tuple[Ints, int]:
        ids = column_ids(self.frame[column], f"{self.name} column {column!r}")
        row = pc.index(pc.equal(ids.text, ""), pa.scalar(value=True)).as_py()
        if row >= 0:
            raise InputError(f"{self.name} column {column!r}: row {row} is empty; add a text, or remove the row")
        encoded = ids.text.dictionary_encode()
        place = Ids(encoded.dictionary).ranks()
        return place[encoded.indices.to_numpy()], len(place)

    @cached_property
    def frequency(self) -> Ints:
        """Number of documents with the mention of each query, shape (n,)."""
        return np.asarray(np.bincount(self.mention)[self.mention])

    def column(self, name: str) -> pd.Series[Any]:
        """A column of the frame, one row per query."""
        require(self.frame, (name,), self.name)
        column: pd.Series[Any] = self.frame[name].iloc[self.rows].reset_index(drop=True)
        return column

    def warn_of_conflicts(self, columns: Sequence[str]) -> None:
        """Warn of duplicated queries whose rows differ in some columns."""
        pairs = np.concatenate([self._repeats, self._firsts])
        for name in columns:
            repeated, used = np.split(pd.factorize(self.frame[name].iloc[pairs])[0], 2)
            if n_other := int((repeated != used).sum()):
                row, first = (int(rows[np.argmax(repeated != used)]) for rows in (self._repeats, self._firsts))
                warn(
                    f"{self.name}: {agreeing(n_other, 'rows repeat')} a docno and mention with "
                    f"another {name!r}, as rows {first} "
                    f"and {row}; the first row is used, because a mention has one meaning in a document"
                )


def query_strata(mentions: MentionCorpus, strata: Strata, extras: Sequence[str]) -> tuple[list[str], Ints]:
    """Names of the strata, and the index of the stratum of each query; functions get docno, mention and ``extras``."""
    if strata is None:
        return [SINGLE_STRATUM], np.zeros(len(mentions), dtype=np.int64)
    if isinstance(strata, str):
        return _names_and_codes(mentions.column(strata), f"{mentions.name} column {strata!r}")
    if callable(strata):
        queries = mentions.frame[["docno", "mention", *extras]].iloc[mentions.rows].reset_index(drop=True)
        labels = pd.Series(strata(queries.assign(n_documents=mentions.frequency)))
        if len(labels) != len(mentions):
            raise InputError(
                f"strata: the function returned {len(labels)} labels for {len(mentions)} queries; wanted one per query"
            )
        return _names_and_codes(labels, "labels of the function strata")
    return frequency_bins(mentions.frequency, whole("strata", strata, low=2, meaning=", a column or a function"))


def _names_and_codes(labels: pd.Series[Any], where: str) -> tuple[list[str], Ints]:
    codes, names = pd.factorize(column_ids(labels, where).text.to_pandas(), sort=True)
    return [str(name) for name in names], codes.astype(np.int64)


def frequency_bins(frequency: Ints, n_bins: int) -> tuple[list[str], Ints]:
    """Bins of mention frequency with similar numbers of queries, named as "1", "2-5", "6-90".

    Queries of the same frequency share a bin; warn if this gives fewer bins.
    """
    levels = np.arange(1, n_bins) / n_bins
    cuts = np.unique([*np.quantile(frequency, levels, method="inverted_cdf").astype(np.int64), frequency.max()])
    if len(cuts) < n_bins:
        warn(f"strata={n_bins}: too few distinct mention frequencies; the number of bins is {len(cuts)}")
    code = np.searchsorted(cuts, frequency)
    least = np.full(len(cuts), np.iinfo(np.int64).max)
    np.minimum.at(least, code, frequency)
    # Names contain observed frequencies.
    ends = [(int(low), int(frequency[code == place].max())) for place, low in enumerate(least)]
    return [f"{low}" if low == high else f"{low}-{high}" for low, high in ends], code


def allocate(
    names: Sequence[str],
    n: int,
    how: Allocation,
    *,
    capacity: Ints,
    shares: Floats,
    n_queries: Ints,
    variances: Mapping[Any, float] | None,
) -> Ints:
    """Number of draws from each stratum, shape (n_strata,); see :func:`sample_queries`.

    ``shares``: expected share of the draws of each stratum without stratification.
    """
    if not isinstance(how, str):
        return _stated_sizes(names, n, how, capacity)
    choice("allocation", how, ALLOCATIONS)
    if (variances is not None) != (how == "neyman"):
        raise ParameterError("variances of strata and allocation='neyman' go together; give both or neither")
    if n < len(names):
        raise ParameterError(f"n={n}: wanted at least one query from each of the {len(names)} strata; draw more")
    weights = np.ones(len(names)) if how == "equal" else shares
    if how == "neyman":
        weights = n_queries.astype(np.float64) * np.sqrt(_by_stratum("variances", names, variances, low=0))
        if not weights.any():
            raise ParameterError("variances: all are 0; wanted at least one above 0")
    # Two draws from each stratum if possible, to estimate the variance within strata.
    low = np.minimum(_MIN_STRATUM_DRAWS, capacity)
    return allocated(weights, n, low if low.sum() <= n else np.ones_like(low), capacity)


def _stated_sizes(names: Sequence[str], n: int, how: Any, capacity: Ints) -> Ints:
    sizes = _by_stratum("allocation", names, how, low=1).astype(np.int64)
    if sizes.sum() != n:
        raise ParameterError(f"allocation: the sizes of the strata sum to {sizes.sum()}, wanted n={n}")
    if (sizes > capacity).any():
        place = int(np.argmax(sizes > capacity))
        raise ParameterError(
            f"allocation: {sizes[place]} from stratum {names[place]!r}, where {capacity[place]} can be drawn without "
            "replacement; draw fewer, or with replace=True"
        )
    return sizes


def _by_stratum(what: str, names: Sequence[str], values: Any, *, low: int) -> Floats:
    """A number for each stratum from a mapping with exactly these strata."""
    if not hasattr(values, "items"):
        raise ParameterError(f"{what}={excerpt(values)}: wanted a mapping of strata to numbers")
    by_name = {str(name): value for name, value in values.items()}
    if set(by_name) != set(names):
        raise ParameterError(f"{what}: wanted the strata {examples(names, 9)}; found {examples(by_name, 9)}")
    check = whole if what == "allocation" else number
    return np.array([check(f"{what}[{name!r}]", by_name[name], low=low) for name in names], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Units:
    """Sampling units of the first stage (documents, mentions or queries of each stratum), with their queries."""

    order: Ints  # queries sorted by stratum and unit, shape (n_queries,)
    starts: Ints  # starts, sizes: start in ``order`` and number of queries of each unit, shape (n_units,)
    sizes: Ints
    first: Ints  # first unit of each stratum, and the end of the last stratum, shape (n_strata + 1,)
    weight: Floats | None  # weight of each unit; ``None`` for equal weights

    @classmethod
    def of(cls, corpus: MentionCorpus, method: str, stratum: Ints, n_strata: int, weights: str | None) -> Units:
        """The units of a corpus for a method and the strata of the queries."""
        unit = getattr(corpus, STAGES[method]) if method in STAGES else np.arange(len(corpus))
        key = stratum * (int(unit.max()) + 1) + unit
        order = np.argsort(key, kind="stable")
        inside = key[order]
        starts = np.flatnonzero(np.concatenate([[True], inside[1:] != inside[:-1]]))
        sizes = np.diff(np.append(starts, len(order)))
        first = np.searchsorted(stratum[order[starts]], np.arange(n_strata + 1))
        return cls(order, starts, sizes, first, None if weights is None else _weight_column(corpus, weights)[order])

    @property
    def n_units(self) -> Ints:
        """Number of units of each stratum, shape (n_strata,)."""
        return np.diff(self.first)

    def share(self, corpus: MentionCorpus, method: str) -> Floats:
        """The probability of each query in one draw without strata, shape (n_queries,)."""
        if self.weight is not None:
            by_query = np.empty(len(self.order))
            by_query[self.order] = self.weight
        elif method in STAGES:
            unit = getattr(corpus, STAGES[method])
            by_query = 1 / np.bincount(unit)[unit]
        else:
            by_query = np.ones(len(corpus))
        return np.asarray(by_query / by_query.sum())

    def draw(self, place: int, n: int, *, replace: bool, seed: int, name: str) -> tuple[Ints, Floats]:
        """Draw queries of a stratum; return them in the order of the draws, with their probabilities."""
        first, last = (int(end) for end in self.first[place : place + 2])
        if self.weight is not None:
            unit, prob = _weighted_sample(self.weight[first:last], n, stream(seed, name, "units"), replace=replace)
        else:
            unit = drawn_units(last - first, n, stream(seed, name, "units"), replace=replace)
            prob = np.full(n, (1 if replace else n) / (last - first))
        unit = unit + first
        # A separate stream, so that draws within a unit do not depend on n.
        within = np.floor(stream(seed, name, "within").random(n) * self.sizes[unit]).astype(np.int64)
        return self.order[self.starts[unit] + within], prob / self.sizes[unit]


def _weight_column(corpus: MentionCorpus, column: str) -> Floats:
    where = f"mentions column {column!r}"
    sizes = column_numbers(corpus.column(column), where)
    bad = ~((sizes > 0) & np.isfinite(sizes))
    if bad.any():
        place = int(np.flatnonzero(bad)[np.argmin(corpus.rows[bad])])
        row = corpus.frame.iloc[int(corpus.rows[place])]
        raise InputError(
            f"{where}: row {corpus.rows[place]} (document {row['docno']!r}, mention {row['mention']!r}) has weight "
            f"{sizes[place]:g}, wanted a finite number above 0; remove the row, or use a small weight"
        )
    return sizes


def _weighted_sample(weight: Floats, n: int, draws: np.random.Generator, *, replace: bool) -> tuple[Ints, Floats]:
    if replace:
        ends = np.cumsum(weight)
        unit = np.minimum(np.searchsorted(ends, draws.random(n) * ends[-1], side="right"), len(weight) - 1)
        return unit, weight[unit] / ends[-1]
    prob = inclusion_probabilities(weight, n)
    unit = systematic(prob, draws)
    return unit, prob[unit]
