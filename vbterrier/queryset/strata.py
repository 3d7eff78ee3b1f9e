"""Strata of a corpus of queries, and how many queries are drawn from each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, examples
from vbterrier.frames.ids import ids_of
from vbterrier.frames.parameters import choice, number, whole
from vbterrier.kernels.sampling import allocation as allocated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.queryset.mentions import Mentions

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Strata = str | int | Callable[[pd.DataFrame], Any] | None
    Allocation = str | Mapping[Any, int]

ALLOCATIONS = ("proportional", "equal", "neyman")
# The name of the stratum where there are none.
ALL = "all"
# Draws from which a variance can be estimated.
_LEAST = 2


def strata_of(mentions: Mentions, strata: Strata, extras: Sequence[str]) -> tuple[list[str], Ints]:
    """The names of the strata, and the number of each query's stratum.

    Parameters
    ----------
    mentions
        The corpus.
    strata
        A column; a number of bins of mention frequency; a function of the distinct queries; or ``None``.
    extras
        The columns that a function is given besides docno and mention.

    Raises
    ------
    InputError
        A missing column or value.

    >>> from vbterrier.queryset.mentions import Mentions
    >>> pairs = [("d1", "a"), ("d2", "a"), ("d3", "a"), ("d1", "b"), ("d2", "c"), ("d3", "d")]
    >>> strata_of(Mentions(pd.DataFrame(pairs, columns=["docno", "mention"])), 2, [])
    (['1', '3'], array([1, 0, 1, 0, 1, 0]))
    """
    if strata is None:
        return [ALL], np.zeros(len(mentions), dtype=np.int64)
    if isinstance(strata, str):
        return _named(mentions.column(strata), f"{mentions.name} column {strata!r}")
    if callable(strata):
        queries = mentions.frame[["docno", "mention", *extras]].iloc[mentions.rows].reset_index(drop=True)
        labels = pd.Series(strata(queries.assign(n_documents=mentions.frequency)))
        if len(labels) != len(mentions):
            raise InputError(
                f"strata: the function gave {len(labels)} labels for {len(mentions)} distinct queries; wanted one each"
            )
        return _named(labels, "labels of the function strata")
    return frequency_bins(mentions.frequency, whole("strata", strata, low=2, meaning=", a column or a function"))


def _named(labels: pd.Series[Any], where: str) -> tuple[list[str], Ints]:
    codes, names = pd.factorize(ids_of(labels, where).text.to_pandas(), sort=True)
    return [str(name) for name in names], codes.astype(np.int64)


def frequency_bins(frequency: Ints, n_bins: int) -> tuple[list[str], Ints]:
    """Bins of mention frequency that hold about as many queries each, named as "1", "2-5", "6-90".

    Queries of one frequency stay together, so that there may be fewer bins, of which it warns.

    >>> frequency_bins(np.array([1, 1, 1, 1, 2, 5, 9, 9]), 2)
    (['1', '2-9'], array([0, 0, 0, 0, 1, 1, 1, 1]))
    """
    levels = np.arange(1, n_bins) / n_bins
    cuts = np.unique([*np.quantile(frequency, levels, method="inverted_cdf").astype(np.int64), frequency.max()])
    if len(cuts) < n_bins:
        warnings.warn(
            f"strata={n_bins}: mentions are so alike in frequency that the number of bins is {len(cuts)}",
            DegenerateWarning,
            stacklevel=4,
        )
    code = np.searchsorted(cuts, frequency)
    least = np.full(len(cuts), np.iinfo(np.int64).max)
    np.minimum.at(least, code, frequency)
    # Names tell what is there, not what could be.
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
    """How many queries are drawn from each stratum, shape (n_strata,); see :func:`sample_queries`.

    Parameters
    ----------
    names
        The strata.
    n
        The size of the sample.
    how
        ``"proportional"``, ``"equal"``, ``"neyman"``, or the sizes themselves.
    capacity
        What can be drawn from each.
    shares
        The share of the draws that each would get if there were no strata.
    n_queries
        The distinct queries of each.
    variances
        Of a value within each, for ``"neyman"``.

    Raises
    ------
    ParameterError
        A sample too small for all strata, sizes or variances that do not fit them.

    >>> sizes = {"capacity": np.array([90, 10]), "shares": np.array([0.9, 0.1]), "n_queries": np.array([90, 10])}
    >>> allocate(["rare", "frequent"], 20, "neyman", **sizes, variances={"rare": 1, "frequent": 81}).tolist()
    [10, 10]
    """
    if not isinstance(how, str):
        return _given(names, n, how, capacity)
    choice("allocation", how, ALLOCATIONS)
    if (variances is not None) != (how == "neyman"):
        raise ParameterError("variances of strata and allocation='neyman' go together; give both or neither")
    if n < len(names):
        raise ParameterError(f"n={n}: wanted at least one query from each of the {len(names)} strata; draw more")
    weights = np.ones(len(names)) if how == "equal" else shares
    if how == "neyman":
        weights = n_queries.astype(np.float64) * np.sqrt(_by_stratum("variances", names, variances, low=0))
        if not weights.any():
            raise ParameterError("variances: all are 0; wanted one above it")
    # Two from each where n allows, so that the variance within each can be estimated.
    low = np.minimum(_LEAST, capacity)
    return allocated(weights, n, low if low.sum() <= n else np.ones_like(low), capacity)


def _given(names: Sequence[str], n: int, how: Any, capacity: Ints) -> Ints:
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


def _by_stratum(what: str, names: Sequence[str], given: Any, *, low: int) -> Floats:
    """A number for each stratum from a mapping that knows them all and no others."""
    if not hasattr(given, "items"):
        raise ParameterError(f"{what}={given!r}: wanted a mapping of strata to numbers")
    known = {str(name): value for name, value in given.items()}
    if set(known) != set(names):
        raise ParameterError(f"{what}: wanted the strata {examples(names, 9)}; found {examples(known, 9)}")
    check = whole if what == "allocation" else number
    return np.array([check(f"{what}[{name!r}]", known[name], low=low) for name in names], dtype=np.float64)
