"""Regressions of topic gains on coverage, and means over strata of coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, check_level, warn, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_numbers
from vbterrier.frames.ranges import score_bounds
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.stats.comparisons import adjusted_p_values
from vbterrier.stats.topic_intervals import UNSEEN, Interval, method_within, topics_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints


STRATA_COLUMNS = (
    *("stratum", "coverage_low", "coverage_high", "measure", "value", "low", "high", "level", "method", "n_qids"),
    "n_undefined",
)
REGRESSION_COLUMNS = (
    *("measure", "coef", "std_error", "low", "high", "p_value", "p_adjusted", "r_squared", "n_qids", "n_undefined"),
    *("covariance", "std_error_classical", "p_classical"),
)
# At this leverage a topic determines its own fit, so that its error cannot be estimated.
_FULL_LEVERAGE = 1 - 1e-9
# Relative residuals below this are rounding errors.
_MIN_RELATIVE_RESIDUAL = 1e-9
# Larger than the cost of any boundaries, and far from overflow.
_UNREACHABLE = 2**60


def numeric_columns(table: Any, names: Sequence[str], *, gaps: Sequence[str] = ()) -> dict[str, Floats]:
    """Return columns of a table as finite numbers, shape (n_topics,); NaN where a value of a column in ``gaps`` is
    missing.
    """
    frame = pandas_frame(table, "table")
    require(frame, list(names), "table")
    columns: dict[str, Floats] = {}
    for name in names:
        column, where = frame[name], f"table column {name!r}"
        is_number = column.notna().to_numpy()
        if name not in gaps and not is_number.all():
            row = int(np.argmin(is_number))
            raise InputError(f"{where}: row {row} has no value, wanted a number for every topic; leave the topic out")
        # Fill missing values with 0, so that errors name the rows of the table.
        values = column_numbers(column if is_number.all() else column.astype(object).where(column.notna(), 0.0), where)
        values = np.where(is_number, values, np.nan)
        if np.isinf(values).any():
            raise InputError(f"{where}: row {int(np.argmax(np.isinf(values)))} is infinite, wanted a finite number")
        columns[name] = values
    return columns


@with_usual_errors
def coverage_strata(
    table: Any, coverage: str, measures: Sequence[str], *, n_strata: int = 3, level: float = 0.95
) -> pd.DataFrame:
    """Means of measures over topics of low, middle and high coverage, with confidence intervals.

    Parameters
    ----------
    table, coverage, measures
        A frame with a row for each topic; the column to stratify by, whose undefined topics (NaN) belong to no stratum
        and are counted; the columns to average: gains, or scores of systems.
    n_strata, level
        Number of strata of about equal size, 3 for tertiles; nominal coverage of the intervals:
        ``"unseen"`` (:func:`vbterrier.stats.intervals`), and Student's t for columns whose range is unknown.

    Returns
    -------
    pandas.DataFrame
        A row for each stratum, from 1 (low coverage), and measure: stratum, coverage_low and coverage_high (the minimum
        and the maximum of its topics), measure, value (the mean), low, high, level, method, n_qids, n_undefined (topics
        without a stratum).

    Notes
    -----
    Topics of equal coverage are in the same stratum. Strata are as equal in size as this allows: the sum of their
    squared sizes is minimal. With fewer values than strata, the last strata are empty, with a warning. Strata differ in
    more than coverage: topics that are easy to cover are easy in general.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 6.1 and 7.3.

    Examples
    --------
    >>> table = pd.DataFrame({"RelCov@20": [0.2, 0.3, 0.8, 0.7, 1.0, 1.0], "gain": [0.0, 0.02, 0.09, 0.11, 0.1, 0.3]})
    >>> coverage_strata(table, "RelCov@20", ["gain"])[["coverage_low", "coverage_high", "value"]].values.tolist()
    [[0.2, 0.3, 0.01], [0.7, 0.8, 0.1], [1.0, 1.0, 0.2]]
    """
    check_level(level)
    whole("n_strata", n_strata, low=2)
    measures = [measures] if isinstance(measures, str) else list(measures)
    if not measures:
        raise ParameterError("no measures; name at least one column, such as 'gain'")
    columns = numeric_columns(table, list(dict.fromkeys([coverage, *measures])), gaps=[coverage])
    stratum = topic_strata(columns[coverage], n_strata)
    sizes = np.bincount(stratum[stratum >= 0], minlength=n_strata)
    if not sizes.all():
        which = ", ".join(str(place + 1) for place in np.flatnonzero(sizes == 0))
        warn(f"{coverage}: no topic is in stratum {which} of {n_strata}; its topics have fewer than {n_strata} values")
    nan, n_undefined = float("nan"), int((stratum < 0).sum())
    rows: list[tuple[Any, ...]] = []
    for place in range(n_strata):
        inside = stratum == place
        covered = columns[coverage][inside]
        low, high = (float(covered.min()), float(covered.max())) if len(covered) else (nan, nan)
        for name in measures:
            values = columns[name][inside]
            mean = float(values.mean()) if len(values) else nan
            bounds = score_bounds(name)
            method = method_within(UNSEEN, bounds)
            limits = Interval(nan, nan, f"topics ({method})")
            if len(values) > 1:
                limits = topics_interval(values, level=level, method=method, bounds=bounds)
            interval = (mean, limits.low, limits.high, level, limits.method)
            rows.append((place + 1, low, high, name, *interval, int(sizes[place]), n_undefined))
    return pd.DataFrame(rows, columns=list(STRATA_COLUMNS))


def topic_strata(coverage: Floats, n_strata: int) -> Ints:
    """Return the stratum of each topic, from 0, and -1 if its coverage is NaN; shape (n,).

    Equal values share a stratum, no stratum is empty, and the sum of the squared sizes of the strata is minimal. With
    fewer values than strata, each value is a stratum.
    """
    defined = ~np.isnan(coverage)
    stratum = np.full(len(coverage), -1)
    values, value, sizes = np.unique(coverage[defined], return_inverse=True, return_counts=True)
    s = min(n_strata, len(values))
    # Numbers of topics below each value, and of all.
    below = np.concatenate([[0], np.cumsum(sizes)])
    n = int(below[-1])
    # Without ties, the boundaries next to the quantiles leave sizes that differ by at most one topic.
    cuts = np.searchsorted(2 * s * below, (2 * np.arange(s + 1) * n) - s) if s else np.zeros(1, dtype=np.int64)
    if s and np.ptp(np.diff(below[cuts])) > 1:
        cuts = _most_equal(below, s)
    stratum[defined] = np.searchsorted(cuts[1:], value, side="right")
    return stratum


def _most_equal(below: Ints, s: int) -> Ints:
    """Return the indices of s + 1 boundaries in increasing ``below`` that minimise the sum of squared differences."""
    cost, previous = np.where(below > 0, below**2, _UNREACHABLE), []
    for _ in range(s - 1):
        rows = [
            np.where(below[:end] > 0, cost[:end] + (at - below[:end]) ** 2, _UNREACHABLE)
            for end, at in enumerate(below)
        ]
        previous.append([int(np.argmin(row)) if len(row) else 0 for row in rows])
        cost = np.array([row.min(initial=_UNREACHABLE) for row in rows])
    place, cuts = len(below) - 1, [len(below) - 1]
    for earlier in reversed(previous):
        place = earlier[place]
        cuts.append(place)
    return np.array([0, *reversed(cuts)])


@with_usual_errors
def gain_regressions(
    table: Any, gain: str, measures: Sequence[str], *, controls: Sequence[str] = (), level: float = 0.95
) -> pd.DataFrame:
    """Regress the gain of topics on each of several coverage measures, one at a time, with controls.

    ``gain_q = b_0 + b measure_q + Σ_c b_c control_{q,c} + error_q`` by ordinary least squares, with standard errors
    robust to heteroskedasticity (HC3) and Student's t of ``n - 2 - #controls`` degrees of freedom.

    Parameters
    ----------
    table, gain, measures
        A frame with a row for each topic; its columns of the gain, such as the difference in AP between a re-ranker and
        its baseline, and of the coverage measures. A topic with an undefined measure (NaN) is left out of its
        regression.
    controls, level
        The columns of controls, such as the baseline's AP and the number of relevant documents (one that is collinear
        with earlier ones is dropped); nominal coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each measure: measure, coef (b), std_error, low, high, p_value (two-sided), p_adjusted (Holm over the
        measures that could be tested), r_squared (of the whole model), n_qids, n_undefined, covariance,
        std_error_classical and p_classical (for errors of equal variance, as in published tables). NaN, with a warning,
        if the measure does not vary given the controls or there are too few topics. If a single topic determines the
        coefficient, only the coefficient and r_squared are given.

    Notes
    -----
    A coefficient is not a causal effect: easy topics are also easy to cover, and controls account for a part of this.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 6.1, table 8. HC3: MacKinnon and White,
    Some heteroskedasticity-consistent covariance matrix estimators, Journal of Econometrics 29, 1985.

    Examples
    --------
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
    columns = numeric_columns(table, names, gaps=measures)
    base = np.stack([np.ones(len(columns[gain])), *(columns[name] for name in controls)], axis=1)
    rows = [_regression_row(name, columns[name], base, columns[gain], level) for name in measures]
    regressions = pd.DataFrame(rows, columns=list(REGRESSION_COLUMNS))
    tested = regressions["p_value"].notna()
    regressions.loc[tested, "p_adjusted"] = adjusted_p_values(regressions.loc[tested, "p_value"].to_numpy(), "holm")
    return regressions


def _regression_row(name: str, measure: Floats, base: Floats, gain: Floats, level: float) -> tuple[Any, ...]:
    defined = ~np.isnan(measure)
    n, nan = int(defined.sum()), float("nan")
    counts = (n, len(defined) - n, "HC3")
    base = base[defined]
    # A column that depends on earlier ones does not change the other coefficients.
    kept = [place for place in range(base.shape[1]) if _rank(base[:, : place + 1]) > _rank(base[:, :place])]
    design = np.column_stack([base[:, kept], measure[defined]])
    m = design.shape[1]
    if n <= m or _rank(design) < m:
        reason = f"{n} topics for {m} coefficients; a regression needs more topics"
        warn(f"{name}: {reason if n <= m else 'it does not vary given the controls: its coefficient is undefined'}")
        return (name, *[nan] * 7, *counts, nan, nan)
    from statsmodels.api import OLS

    plain = OLS(gain[defined], design).fit()
    # R² is undefined for a constant gain.
    r_squared = float(plain.rsquared) if np.ptp(gain[defined]) > 0 else nan
    basis, _ = np.linalg.qr(design)
    leverage = (basis**2).sum(axis=1)  # the diagonal of the hat matrix
    if leverage.max() > _FULL_LEVERAGE:
        warn(f"{name}: a single topic determines a coefficient, so that its standard error is undefined")
        return (name, float(plain.params[-1]), *[nan] * 5, r_squared, *counts, nan, nan)
    fit = plain.get_robustcov_results("HC3", use_t=True)
    low, high = fit.conf_int(alpha=1 - level)[-1]
    estimates = (fit.params[-1], fit.bse[-1], low, high, fit.pvalues[-1])
    classical = float(plain.bse[-1]), float(plain.pvalues[-1])
    return (name, *map(float, estimates), nan, r_squared, *counts, *classical)


def _rank(design: Floats) -> int:
    """Return the number of linearly independent columns, regardless of their units."""
    if not design.size:
        return 0
    scaled = design / np.maximum(np.abs(design).max(axis=0), np.finfo(np.float64).tiny)
    return int(np.linalg.matrix_rank(scaled, tol=_MIN_RELATIVE_RESIDUAL * np.sqrt(len(design))))
