"""Means of topics by how far entities reach in them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.frames.parameters import whole
from vbterrier.uncertainty.columns import numbers
from vbterrier.uncertainty.intervals import Interval, check_level, topics_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

COLUMNS = (
    "stratum",
    "coverage_low",
    "coverage_high",
    "measure",
    "value",
    "low",
    "high",
    "level",
    "method",
    "n_qids",
    "n_undefined",
)


def coverage_strata(
    table: Any, coverage: str, measures: Sequence[str], *, n_strata: int = 3, level: float = 0.95
) -> pd.DataFrame:
    """Means of measures over topics of low, middle and high coverage, with intervals.

    Parameters
    ----------
    table
        A row a topic.
    coverage
        The column to order topics by; topics in which it is undefined (NaN) are in no stratum, and counted.
    measures
        The columns to average: gains, or scores of systems.
    n_strata
        How many strata of about equal size: 3 for tertiles.
    level
        Nominal coverage of the intervals, which are Student's t.

    Returns
    -------
    pandas.DataFrame
        A row for each stratum, from 1 (low coverage), and measure: stratum, coverage_low and coverage_high (the least
        and the most of its topics), measure, value (the mean), low, high, level, method, n_qids, n_undefined (topics in
        no stratum).

    Raises
    ------
    InputError
        A column that is not there, a value that is missing.
    ParameterError
        No measure, less than two strata, a level outside (0, 1).

    Notes
    -----
    Topics of equal coverage stay together, in the stratum of their mean rank: many topics of coverage 1 make strata
    unequal, or leave one without topics, of which it warns. Strata differ in more than coverage: topics that are easy
    to cover are easy.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 6.1 and 7.3.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"RelCov@20": [0.2, 0.3, 0.8, 0.7, 1.0, 1.0], "gain": [0.0, 0.02, 0.1, 0.1, 0.1, 0.3]})
    >>> coverage_strata(table, "RelCov@20", ["gain"])[["coverage_low", "coverage_high", "value"]].values.tolist()
    [[0.2, 0.3, 0.01], [0.7, 0.8, 0.1], [1.0, 1.0, 0.2]]
    """
    check_level(level)
    whole("n_strata", n_strata, low=2)
    measures = [measures] if isinstance(measures, str) else list(measures)
    if not measures:
        raise ParameterError("no measures; name at least one column, as 'gain'")
    columns = numbers(table, list(dict.fromkeys([coverage, *measures])), gaps=[coverage])
    stratum = strata_of(columns[coverage], n_strata)
    sizes = np.bincount(stratum[stratum >= 0], minlength=n_strata)
    if not sizes.all():
        which = ", ".join(str(place + 1) for place in np.flatnonzero(sizes == 0))
        warnings.warn(
            f"{coverage}: no topic is in stratum {which} of {n_strata}; too many topics are equal, or too few there",
            DegenerateWarning,
            stacklevel=2,
        )
    rows = [
        (place + 1, *_range(columns[coverage][inside]), name, *_mean(columns[name][inside], level), *counts)
        for place in range(n_strata)
        for inside in [stratum == place]
        for counts in [(int(sizes[place]), int((stratum < 0).sum()))]
        for name in measures
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def strata_of(coverage: Floats, n_strata: int) -> Ints:
    """The stratum of each topic from 0, -1 where coverage is NaN, by mean ranks, shape (n,).

    >>> strata_of(np.array([0.1, 1.0, 0.2, 1.0, np.nan]), 2).tolist()
    [0, 1, 0, 1, -1]
    """
    from scipy import stats

    known = ~np.isnan(coverage)
    found = np.full(len(coverage), -1)
    # Half ranks, doubled, so that no rounding moves a topic over an edge.
    doubled = (2 * stats.rankdata(coverage[known])).astype(np.int64) - 1
    found[known] = n_strata * doubled // (2 * max(int(known.sum()), 1))
    return found


def _range(coverage: Floats) -> tuple[float, float]:
    return (float(coverage.min()), float(coverage.max())) if len(coverage) else (float("nan"), float("nan"))


def _mean(values: Floats, level: float) -> tuple[float, float, float, float, str]:
    ends = Interval(float("nan"), float("nan"), "topics (normal)")
    if len(values) > 1:
        ends = topics_interval(values, level=level, method="normal")
    return (float(values.mean()) if len(values) else float("nan"), ends.low, ends.high, level, ends.method)
