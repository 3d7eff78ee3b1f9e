"""Power of the paired t test by the noncentral t, and the level of each of several tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, number, whole
from vbterrier.kernels.floats import with_usual_errors

if TYPE_CHECKING:
    from collections.abc import Iterable


# The largest number of queries of a plan.
MAX_QUERIES = 10**9
# Quantiles of the sample variance in the quadrature over significant differences.
_N_QUANTILES = 2000
# Points of the quadrature over the score of the baseline, and standard deviations that it covers.
_N_POINTS, _MAX_SCORE_DEVIATIONS = 401, 8.0


def least_queries(test: str, level: float) -> int:
    """The smallest number of queries with which a two-sided test can be significant at a level.

    The smallest p of n sign flips is ``2^(1-n)``: both the observed signs and their opposites are as extreme.

    Examples
    --------
    >>> least_queries("randomisation", 0.95), least_queries("moderated", 0.95)
    (6, 2)
    """
    return max(2, math.ceil(1 - math.log2(1 - level))) if test == "randomisation" else 2


def power_by_formula(n: Any, delta: float, std: float, level: float, least: int = 2) -> Any:
    """Power of the paired t test for normal differences, with the correct sign: the noncentral t.

    0 below ``least``, the smallest number of queries with which a test can be significant.
    """
    from scipy import special, stats

    # SciPy before 1.13 divides by zero internally; its result is correct.
    with np.errstate(divide="ignore"):
        power = stats.nct.sf(special.stdtrit(n - 1, (1 + level) / 2), n - 1, delta * np.sqrt(n) / std)
    return np.where(n < least, 0.0, power)


def needed_by_formula(delta: float, std: float, power: float, level: float, least: int = 2) -> int:
    """The smallest n for normal differences, at least ``least``, by bisection: power increases with n."""
    low, high = least - 1, least
    while power_by_formula(float(high), delta, std, level) < power:
        low, high = high, 2 * high
        require_possible(high, delta)
    while high - low > 1:
        middle = (low + high) // 2
        if power_by_formula(float(middle), delta, std, level) < power:
            low = middle
        else:
            high = middle
    return high


def require_possible(n: int, delta: float) -> None:
    """Raise InputError for more than ``MAX_QUERIES`` queries."""
    if n > MAX_QUERIES:
        raise InputError(f"delta={delta:g}: {MAX_QUERIES:,} queries do not detect this difference; wanted a larger one")


def corrected_level(level: float, n_systems: int, correction: str, *, baseline: bool = False) -> float:
    """The level of each test for which all tests between k systems together have a level.

    ``"bonferroni"`` and ``"holm"``: ``1 - α/m`` of m tests. ``"max-t"``: for large samples and systems of equal
    variance and correlation, Tukey's studentised range for all pairs, Dunnett's test for pairs with a baseline.
    """
    from scipy import optimize, special, stats

    n_tests = n_systems - 1 if baseline else n_systems * (n_systems - 1) // 2
    if correction == "none" or n_tests == 1:
        return level
    if correction in {"bonferroni", "holm"}:
        return 1 - (1 - level) / n_tests
    if not baseline:
        return float(2 * special.ndtr(stats.studentized_range.ppf(level, n_systems, np.inf) / 2**0.5) - 1)
    # Given the baseline's score, the differences from it are independent.
    score = np.linspace(-_MAX_SCORE_DEVIATIONS, _MAX_SCORE_DEVIATIONS, _N_POINTS)
    density = np.exp(-(score**2) / 2) / np.exp(-(score**2) / 2).sum()

    def coverage(critical: float) -> float:
        below, above = special.ndtr(score + critical * 2**0.5), special.ndtr(score - critical * 2**0.5)
        return float(density @ (below - above) ** (n_systems - 1))

    critical = optimize.brentq(lambda value: coverage(value) - level, 0.0, _MAX_SCORE_DEVIATIONS)
    return float(2 * special.ndtr(critical) - 1)


def detectable_by_formula(n: int, std: float, power: float, level: float, least: int = 2) -> float:
    """The smallest difference that n queries detect with this power; infinite below ``least`` queries."""
    from scipy import optimize

    if n < least:
        return np.inf
    far = std
    while power_by_formula(float(n), far, std, level) < power:
        far *= 2
    return float(optimize.brentq(lambda delta: power_by_formula(float(n), delta, std, level) - power, 0.0, far))


@with_usual_errors
def design_errors(n_qids: int | Iterable[int], delta: float, std: float, *, level: float = 0.95) -> pd.DataFrame:
    """Power of a design, and the errors of its significant results in sign and magnitude.

    Type S: the probability that a significant difference has the wrong sign. Type M: the expected size of a significant
    difference relative to the true one, which small collections exaggerate.

    Parameters
    ----------
    n_qids
        Numbers of queries, at least 2.
    delta, std
        The true difference, above 0: a plausible one, not the observed one; the standard deviation of the differences
        over topics.
    level
        1 - the significance level of the paired t test, two-sided; for several systems, see :func:`corrected_level`.

    Returns
    -------
    pandas.DataFrame
        One row per number: n_qids, delta, std, power (significant in the right direction), type_s, type_m, level.

    Raises
    ------
    ParameterError
        A number out of range.

    Notes
    -----
    For normal differences, by the noncentral t; magnitudes by quadrature over 2,000 quantiles of the sample variance.
    Source: Gelman and Carlin: Beyond power calculations, Perspectives on Psychological Science 9, 2014.

    Examples
    --------
    >>> design_errors([10, 50, 200], 0.02, 0.2)[["power", "type_s", "type_m"]].round(2).values.tolist()
    [[0.05, 0.21, 6.82], [0.1, 0.04, 3.4], [0.29, 0.0, 1.83]]
    """
    from scipy import special

    delta, std = number("delta", delta, low=0, open_low=True), number("std", std, low=0, open_low=True)
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    rows = []
    numbers = [n_qids] if hasattr(n_qids, "__index__") else list(n_qids)
    for n in [whole("n_qids", size, low=2, high=MAX_QUERIES) for size in numbers]:
        right, wrong = (float(power_by_formula(float(n), sign * delta, std, level)) for sign in (1, -1))
        error = std / n**0.5
        # Significant means are beyond these, for each quantile of the sample variance.
        middles = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
        variance = special.chdtri(n - 1, middles) / (n - 1)
        beyond = special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt(variance)
        truth = delta / error
        density = np.exp(-((beyond - truth) ** 2) / 2) + np.exp(-((beyond + truth) ** 2) / 2)
        size = truth * (special.ndtr(truth - beyond) - special.ndtr(-truth - beyond)) + density / np.sqrt(2 * np.pi)
        magnitude = float(size.mean()) / (right + wrong) / truth
        rows.append((n, delta, std, right, wrong / (right + wrong), magnitude, level))
    return pd.DataFrame(rows, columns=["n_qids", "delta", "std", "power", "type_s", "type_m", "level"])
