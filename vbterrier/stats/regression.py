"""Regressions and strata of topic gains by coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import numbers_of
from vbterrier.frames.parameters import whole
from vbterrier.stats.comparisons import holm
from vbterrier.stats.topic_intervals import Interval, check_level, topics_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints


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


STRATA_COLUMNS = (
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
        warn(f"{coverage}: no topic is in stratum {which} of {n_strata}; too many topics are equal, or too few there")
    rows = [
        (place + 1, *_range(columns[coverage][inside]), name, *_mean(columns[name][inside], level), *counts)
        for place in range(n_strata)
        for inside in [stratum == place]
        for counts in [(int(sizes[place]), int((stratum < 0).sum()))]
        for name in measures
    ]
    return pd.DataFrame(rows, columns=list(STRATA_COLUMNS))


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


REGRESSION_COLUMNS = (
    "measure",
    "coef",
    "std_error",
    "low",
    "high",
    "p_value",
    "p_adjusted",
    "r_squared",
    "n_qids",
    "n_undefined",
    "covariance",
)
# A topic with so much of the leverage decides its own fit: nothing is left to estimate an error from.
_ALONE = 1 - 1e-9
# What is left of a column beside others, as a share of its size, if it is no more than roundings.
_SAME = 1e-9


def gain_regressions(
    table: Any, gain: str, measures: Sequence[str], *, controls: Sequence[str] = (), level: float = 0.95
) -> pd.DataFrame:
    """Regress the gain of topics on each of several measures of coverage, one at a time, beside controls.

    ``gain_q = b_0 + b measure_q + Σ_c b_c control_{q,c} + error_q`` by ordinary least squares; errors of the
    coefficients are robust against unequal variances (HC3), their quantiles Student's t of ``n - 2 - #controls``
    degrees of freedom.

    Parameters
    ----------
    table
        A row a topic.
    gain
        The column of the gain, as the AP of a re-ranker less that of its baseline.
    measures
        The columns of the measures of coverage. A topic in which one is undefined (NaN) is left out of its regression.
    controls
        The columns of controls, as the baseline's AP and the number of relevant documents. One that does not vary
        beside those before changes nothing.
    level
        Nominal coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row a measure: measure, coef (b), std_error, low, high, p_value (two-sided), p_adjusted (Holm over the
        measures that could be tested), r_squared (of the whole model), n_qids, n_undefined, covariance. NaN, with a
        warning, where the measure does not vary beside the controls or topics are too few; where a single topic
        decides a coefficient, that one stays and its errors are NaN.

    Raises
    ------
    InputError
        A column that is not there, a gain or control that is missing.
    ParameterError
        No measure, a column named twice, a level outside (0, 1).

    Notes
    -----
    Coefficients are in units of gain for each unit of the measure. A coefficient is no effect: what makes topics easy
    makes them easy to cover, and the controls catch only part of that.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 6.1, table 8. HC3: MacKinnon and White, Some
    heteroskedasticity-consistent covariance matrix estimators, Journal of Econometrics 29, 1985.

    Examples
    --------
    >>> import pandas as pd
    >>> coverage = [0.2, 0.5, 0.6, 0.8, 0.9, 1.0]
    >>> table = pd.DataFrame({"RelCov@20": coverage, "gain": [0.02, 0.04, 0.07, 0.08, 0.08, 0.11]})
    >>> gain_regressions(table, "gain", ["RelCov@20"])[["coef", "r_squared"]].round(3).values.tolist()
    [[0.105, 0.924]]
    """
    check_level(level)
    measures = [measures] if isinstance(measures, str) else list(measures)
    names = [gain, *measures, *controls]
    if not measures or len(set(names)) < len(names):
        raise ParameterError(f"gain, measures and controls are {names}: wanted at least one measure, each column once")
    columns = numbers(table, names, gaps=measures)
    beside = np.stack([np.ones(len(columns[gain])), *(columns[name] for name in controls)], axis=1)
    rows = [_fitted(name, columns[name], beside, columns[gain], level) for name in measures]
    found = pd.DataFrame(rows, columns=list(REGRESSION_COLUMNS))
    tested = found["p_value"].notna().to_numpy()
    adjusted = np.full(len(found), np.nan)
    adjusted[tested] = holm(found["p_value"].to_numpy()[tested])
    return found.assign(p_adjusted=adjusted)


def _fitted(name: str, measure: Floats, beside: Floats, gain: Floats, level: float) -> tuple[Any, ...]:
    known = ~np.isnan(measure)
    n, nan = int(known.sum()), float("nan")
    counts = (n, len(known) - n, "HC3")
    design = np.column_stack([_independent(beside[known]), measure[known]])
    trouble = _trouble(design)
    if trouble:
        _warn(f"{name}: {trouble}")
        return (name, *[nan] * 7, *counts)
    from statsmodels.api import OLS

    plain = OLS(gain[known], design).fit()
    # A gain that never moves has nothing to explain.
    r_squared = float(plain.rsquared) if np.ptp(gain[known]) > 0 else nan
    if _leverage(design).max() > _ALONE:
        _warn(f"{name}: a single topic decides a coefficient, so that its error cannot be told")
        return (name, float(plain.params[-1]), *[nan] * 5, r_squared, *counts)
    fit = plain.get_robustcov_results("HC3", use_t=True)
    low, high = fit.conf_int(alpha=1 - level)[-1]
    numbers_found = (fit.params[-1], fit.bse[-1], low, high, fit.pvalues[-1])
    return (name, *map(float, numbers_found), nan, r_squared, *counts)


def _trouble(design: Floats) -> str:
    """Why a model cannot be fitted, empty if it can."""
    n, m = design.shape
    if n <= m:
        return f"{n} topics for {m} coefficients; a regression wants more topics"
    if _rank(design) < m:
        return "it does not vary beside the controls, so that its coefficient cannot be told"
    return ""


def _independent(beside: Floats) -> Floats:
    """The columns that those before do not explain: the others change no other coefficient."""
    kept = [place for place in range(beside.shape[1]) if _rank(beside[:, : place + 1]) > _rank(beside[:, :place])]
    return beside[:, kept]


def _rank(design: Floats) -> int:
    """How many columns are independent, whatever their units."""
    if not design.size:
        return 0
    scaled = design / np.maximum(np.abs(design).max(axis=0), np.finfo(np.float64).tiny)
    return int(np.linalg.matrix_rank(scaled, tol=_SAME * np.sqrt(len(design))))


def _leverage(design: Floats) -> Floats:
    """How much of its own fit each topic decides, shape (n,)."""
    basis, _ = np.linalg.qr(design)
    leverage: Floats = (basis**2).sum(axis=1)
    return leverage


def _warn(message: str) -> None:
    warn(message)
