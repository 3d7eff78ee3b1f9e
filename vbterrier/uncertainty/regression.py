"""What topics gain, against how far entities reach in them: regressions with controls."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.uncertainty.columns import numbers
from vbterrier.uncertainty.corrections import holm
from vbterrier.uncertainty.intervals import check_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COLUMNS = (
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
    found = pd.DataFrame(rows, columns=list(COLUMNS))
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
    warnings.warn(message, DegenerateWarning, stacklevel=4)
