"""Number of queries for a difference, and the detectable difference for a number of queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.design.pilot import Pilot, pilot_of
from vbterrier.errors import InputError, number, whole
from vbterrier.frames.notebook import Panel, Shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.frames.notebook import Figures


# The largest number of queries of a plan.
MOST = 10**9
TEST = "t"
N_SIMULATIONS = 10_000
COLUMNS = ("delta", "n_qids", "power", "low", "high", "level", "test", "n_pilot", "n_simulations", "seed")
# Number of sizes of the curve, and its largest size relative to the number by normal theory.
_N_SIZES, _BEYOND = 40, 1.3
# The first size is the smaller of 1/_FIRST of the last size and _BEFORE times the smallest number by normal theory.
_FIRST, _BEFORE = 100, 0.5
# Relative standard deviation below which a resample is constant up to rounding.
_CONSTANT = 1e-6


def power_by_formula(n: Any, delta: float, std: float, level: float) -> Any:
    """Power of the paired t test for normal differences, with the correct sign: the noncentral t.

    >>> round(float(power_by_formula(34, 0.5, 1.0, 0.95)), 2)
    0.81
    """
    from scipy import special, stats

    # SciPy before 1.13 divides by zero internally; its result is correct.
    with np.errstate(divide="ignore"):
        return stats.nct.sf(special.stdtrit(n - 1, (1 + level) / 2), n - 1, delta * np.sqrt(n) / std)


def needed_by_formula(delta: float, std: float, power: float, level: float) -> int:
    """The smallest n for normal differences, by bisection: power increases with n.

    >>> needed_by_formula(0.5, 1.0, 0.8, 0.95)
    34
    """
    low, high = 1, 2
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
    """Raise InputError for more than ``MOST`` queries."""
    if n > MOST:
        raise InputError(f"delta={delta:g}: {MOST:,} queries do not detect this difference; wanted a larger one")


def detectable_by_formula(n: int, std: float, power: float, level: float) -> float:
    """The smallest difference that n queries detect with this power.

    >>> round(detectable_by_formula(34, 1.0, 0.8, 0.95), 2)
    0.5
    """
    from scipy import optimize

    far = std
    while power_by_formula(float(n), far, std, level) < power:
        far *= 2
    return float(optimize.brentq(lambda delta: power_by_formula(float(n), delta, std, level) - power, 0.0, far))


@dataclass(frozen=True, eq=False, repr=False)
class QueryPlan(Shown):
    """Number of queries needed, with its power curve.

    Parameters
    ----------
    n_qids
        Number of queries needed.
    low, high
        Interval of the number, from the interval of the standard deviation of the pilot.
    delta, power, level
        The difference to detect, its power, and the level of test and interval.
    n_by_formula
        The number by the noncentral t, for normal differences with the standard deviation of the pilot.
    curve
        Columns delta, n_qids, power, low, high, level, test, n_pilot, n_simulations, seed.

    Examples
    --------
    >>> plan = queries_needed([0.1, -0.1, 0.0, 0.2, -0.2, 0.1, 0.0, -0.1, 0.3, -0.3], 0.05, n_simulations=1000)
    >>> plan.frame()[["delta", "power", "n_pilot"]].values.tolist()
    [[0.05, 0.8, 10.0]]
    """

    n_qids: int
    low: int
    high: int
    delta: float
    power: float
    level: float
    n_by_formula: int
    curve: pd.DataFrame = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """One row: delta, n_qids, low, high, by_formula, power, level, test, n_pilot, n_simulations, seed."""
        needed = {"n_qids": self.n_qids, "low": self.low, "high": self.high, "by_formula": self.n_by_formula}
        about = self.curve[["level", "test", "n_pilot", "n_simulations", "seed"]].head(1)
        return pd.DataFrame({"delta": self.delta, **needed, "power": self.power}, index=[0]).join(about)

    def _line(self) -> str:
        return self.summary()

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries needed", self.frame().rename(columns={"n_qids": "queries"}), value="queries")
        yield Panel("Power", self.curve.drop(columns=["delta"]), value="power")

    def _figures(self) -> Figures:
        return {"power_curve": lambda: {"plans": self}}

    def summary(self) -> str:
        """The plan in one line of text."""
        return (
            f"{self.n_qids} queries ({self.low} to {self.high}) to detect a difference of {self.delta:g} with power "
            f"{self.power:g} at {1 - self.level:.2g}; pilot of {self.curve['n_pilot'].iloc[0]}"
        )


def queries_needed(
    pilot: Any,
    delta: float,
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    level: float = 0.95,
    n_simulations: int = N_SIMULATIONS,
    seed: int = 0,
) -> QueryPlan:
    """Number of queries needed to detect a difference with some power, from the scores of a pilot.

    The differences of the pilot, shifted to mean δ, are resampled to n queries and tested (paired t, two-sided at
    ``1 - level``); power is the share of simulations in which the better system is significantly better.

    Parameters
    ----------
    pilot
        A V frame (name, qid, measure, value) with two systems, or the differences themselves, shape (k,), k >= 5.
    delta
        The difference to detect, in the unit of the scores: positive if the first system is better, negative if the
        second is. Choose a difference of practical relevance, not the observed difference, which is biased by chance.
    pair, measure
        Two systems and a measure, if the frame contains more.
    power
        Probability of detection, between ``(1 - level)/2`` and 1.
    level
        Level of the test and of the interval of the number of queries.
    n_simulations
        Number of resamples of each size. With 10,000 the number of queries has a Monte Carlo error of about 1 %. Cost:
        ``n_simulations * min(n, 40 k)`` random numbers.
    seed
        Seed of the resamples.

    Returns
    -------
    QueryPlan

    Raises
    ------
    InputError
        A pilot of fewer than 5 queries, or with constant differences; a difference too small for a billion queries.
    ParameterError
        A difference of 0; unknown or ambiguous systems or measures.

    Notes
    -----
    ``power(n, δ) = P(|t| significant, right sign) = P(τ_n s_n/√n - m_n <= δ)`` with mean m_n and standard deviation s_n
    of a resample of n centred differences and the quantile τ_n of Student's t, so that one set of resamples serves all
    δ. A constant resample, frequent if most queries tie, counts as not detected. The interval follows from that of the
    standard deviation of the pilot (Bonett 2006, for non-normal differences): a larger σ is equivalent to a smaller δ.
    Sizes form a grid; between them, the isotonic curve is interpolated over √n.

    Coverage of the true number (about 90, at δ = .3 σ; 300 pilots each) by nominal 95 % intervals, with pilots of 15,
    25, 50, 250 queries: normal differences .95, .94, .95, .95; differences of beta scores .95, .95, .95, .92; half of
    the queries tied .91, .92, .92, .94; exponential .90, .89, .87, .96.

    References
    ----------
    Sakai: Topic set size design, Information Retrieval Journal 19 (2016), whose noncentral t is ``n_by_formula``;
    Bonett: Approximate confidence interval for standard deviation of nonnormal distributions, Computational Statistics
    and Data Analysis 50 (2006).

    Examples
    --------
    >>> differences = [0.1, -0.1, 0.0, 0.2, -0.2, 0.1, 0.0, -0.1, 0.3, -0.3]
    >>> plan = queries_needed(differences, 0.05, seed=1)
    >>> plan.low < plan.n_qids < plan.high, abs(plan.n_qids - plan.n_by_formula) < 10
    (True, True)
    """
    delta = number("delta", delta)
    wanted = number("delta", abs(delta), low=0, open_low=True)
    found = pilot_of(pilot, pair, measure)
    if delta < 0:
        # Power of skewed differences depends on the sign.
        found = Pilot(-found.values)
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    n_simulations = whole("n_simulations", n_simulations)
    # A standard deviation larger by a factor is equivalent to a difference smaller by that factor.
    narrow, wide = found.std_interval(level)
    deltas = wanted * found.std / np.array([found.std, wide, narrow])
    smallest, largest = (needed_by_formula(deltas[place], found.std, power, level) for place in (2, 1))
    while True:
        last = max(int(largest * _BEYOND), 20)
        first = max(2, min(last / _FIRST, smallest * _BEFORE))
        sizes = sorted({round(size) for size in np.geomspace(first, last, _N_SIZES)})
        thresholds = _thresholds(found, sizes, level, n_simulations, seed)
        powers = np.stack([(some[:, None] <= deltas).mean(axis=0) for some in thresholds], axis=1)
        needed = [_crossing(sizes, curve, power) for curve in powers]
        if all(n is not None for n in needed):
            break
        largest *= 2
        require_possible(largest, wanted)
    about = (level, TEST, len(found), n_simulations, seed)
    rows = [(delta, *row, *about) for row in zip(sizes, *powers.tolist(), strict=True)]
    n_qids, high, low = (int(n or 0) for n in needed)
    formula = needed_by_formula(wanted, found.std, power, level)
    curve = pd.DataFrame(rows, columns=list(COLUMNS))
    return QueryPlan(n_qids, low, high, delta, power, level, formula, curve)


def detectable_difference(
    pilot: Any,
    n_qids: int | Iterable[int],
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    level: float = 0.95,
    n_simulations: int = N_SIMULATIONS,
    seed: int = 0,
) -> pd.DataFrame:
    """Smallest difference in favour of the first system that a number of queries detects with some power.

    Parameters
    ----------
    pilot, pair, measure, power, level, n_simulations, seed
        See :func:`queries_needed`.
    n_qids
        Numbers of queries, at least 2.

    Returns
    -------
    pandas.DataFrame
        One row per number of queries: n_qids, delta, low, high (from the interval of the standard deviation),
        by_formula (for normal differences), power, level, test, n_pilot, n_simulations, seed.

    Raises
    ------
    InputError, ParameterError
        See :func:`queries_needed`.

    Examples
    --------
    >>> differences = [0.1, -0.1, 0.0, 0.2, -0.2, 0.1, 0.0, -0.1, 0.3, -0.3]
    >>> detectable_difference(differences, [50, 200], seed=1)["delta"].round(2).tolist()
    [0.07, 0.04]
    """
    found = pilot_of(pilot, pair, measure)
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    n_simulations = whole("n_simulations", n_simulations)
    given = [n_qids] if hasattr(n_qids, "__index__") else list(n_qids)
    sizes = sorted({whole("n_qids", n, low=2, high=MOST) for n in given})
    narrow, wide = (end / found.std for end in found.std_interval(level))
    rows = []
    for n, thresholds in zip(sizes, _thresholds(found, sizes, level, n_simulations, seed), strict=True):
        delta = float(np.quantile(thresholds, power, method="inverted_cdf"))
        formula = detectable_by_formula(n, found.std, power, level)
        about = (power, level, TEST, len(found), n_simulations, seed)
        rows.append((n, delta, delta * narrow, delta * wide, formula, *about))
    columns = ["n_qids", "delta", "low", "high", "by_formula", "power", "level", *COLUMNS[6:]]
    return pd.DataFrame(rows, columns=columns)


def _thresholds(pilot: Pilot, sizes: Sequence[int], level: float, n_simulations: int, seed: int) -> Any:
    """For each size, the smallest difference that each simulation detects, shape (n_simulations,)."""
    from scipy import special

    for n, (mean, std) in zip(sizes, pilot.resampled(sizes, n_simulations, seed), strict=True):
        smallest = float(special.stdtrit(n - 1, (1 + level) / 2)) * std / n**0.5 - mean
        # Constant resamples do not allow a test.
        yield np.where(std > _CONSTANT * pilot.std, smallest, np.inf)


def _crossing(sizes: Sequence[int], powers: Floats, wanted: float) -> int | None:
    """The smallest number of queries with the wanted power, or ``None``."""
    from sklearn.isotonic import isotonic_regression

    rising, roots = isotonic_regression(powers), np.sqrt(sizes)
    above = int(np.argmax(rising >= wanted))
    if rising[above] < wanted:
        return None
    if above == 0:
        return sizes[0]
    low, high = rising[above - 1], rising[above]
    root = roots[above - 1] + (wanted - low) / (high - low) * (roots[above] - roots[above - 1])
    # Rounding must not exceed the next size.
    return min(int(np.ceil(root**2 - 1e-9)), sizes[above])
