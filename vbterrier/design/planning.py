"""Number of queries for a difference, and the detectable difference for a number of queries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.design.pilot import Pilot, pilot_of
from vbterrier.errors import InputError, ParameterError, choice, examples, number, whole
from vbterrier.frames.contracts import require_difference
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.settings import Inference, with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.frames.results import Figures


# The largest number of queries of a plan.
MOST = 10**9
# The probability with which plans from a pilot reach their power.
ASSURANCE = 0.8
TESTS, CORRECTIONS = ("randomisation", "t"), ("auto", "max-t", "holm", "none")
N_SIMULATIONS = 10_000
COLUMNS = (
    *("delta", "n_qids", "power", "low", "high", "level", "test", "correction", "n_systems", "assurance"),
    *("n_pilot", "n_simulations", "seed"),
)
# Number of sizes of the curve, and its largest size relative to the number by normal theory.
_N_SIZES, _BEYOND = 40, 1.3
# The first size is the smaller of 1/_FIRST of the last size and _BEFORE times the smallest number by normal theory.
_FIRST, _BEFORE = 100, 0.5
# Relative standard deviation below which a resample is constant up to rounding.
_CONSTANT = 1e-6
# Standard deviations of differences between two systems over topics: the median and the 90 % quantile over all pairs of
# the runs of a collection (tests/bench/variances.py).
STANDARD_DEVIATIONS = {
    "nDCG@10": {"TREC Web 2012": (0.174, 0.225), "TREC DL 2019": (0.205, 0.262), "TREC-COVID": (0.326, 0.326)},
    "nDCG@20": {"TREC Web 2012": (0.135, 0.179), "TREC-COVID": (0.286, 0.286)},
    "nDCG": {"TREC Web 2012": (0.125, 0.141), "TREC-COVID": (0.092, 0.092)},
    "AP": {"TREC Web 2012": (0.083, 0.106), "TREC-COVID": (0.061, 0.061)},
    "P@10": {"TREC Web 2012": (0.229, 0.300), "TREC DL 2019": (0.209, 0.279), "TREC-COVID": (0.329, 0.329)},
    "RR@10": {"TREC Web 2012": (0.361, 0.475), "TREC DL 2019": (0.296, 0.390), "TREC-COVID": (0.382, 0.382)},
    "ERR@10": {"TREC Web 2012": (0.246, 0.319), "TREC DL 2019": (0.168, 0.208), "TREC-COVID": (0.132, 0.132)},
    "Success@5": {"TREC Web 2012": (0.514, 0.581), "TREC DL 2019": (0.258, 0.391), "TREC-COVID": (0.254, 0.254)},
}
# Quantiles of the sample variance in the quadrature over significant differences.
_N_QUANTILES = 2000
# Points of the quadrature over the score of the baseline, and standard deviations that it covers.
_N_POINTS, _REACH = 401, 8.0


def least_queries(test: str, level: float) -> int:
    """The smallest number of queries with which a two-sided test can be significant at a level.

    The smallest p of n sign flips is ``2^(1-n)``: both the observed signs and their opposites are as extreme.

    Examples
    --------
    >>> least_queries("randomisation", 0.95), least_queries("t", 0.95)
    (6, 2)
    """
    return 2 if test == "t" else max(2, math.ceil(1 - math.log2(1 - level)))


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
    """Raise InputError for more than ``MOST`` queries."""
    if n > MOST:
        raise InputError(f"delta={delta:g}: {MOST:,} queries do not detect this difference; wanted a larger one")


def corrected_level(level: float, n_systems: int, correction: str, *, baseline: bool = False) -> float:
    """The level of each test for which all tests between k systems together have a level.

    ``"holm"``: Bonferroni's ``1 - α/m`` of m tests. ``"max-t"``: for large samples and systems of equal variance and
    correlation, Tukey's studentised range for all pairs, Dunnett's test for pairs with a baseline.
    """
    from scipy import optimize, special, stats

    n_tests = n_systems - 1 if baseline else n_systems * (n_systems - 1) // 2
    if correction == "none" or n_tests == 1:
        return level
    if correction == "holm":
        return 1 - (1 - level) / n_tests
    if not baseline:
        return float(2 * special.ndtr(stats.studentized_range.ppf(level, n_systems, np.inf) / 2**0.5) - 1)
    # Given the baseline's score, the differences from it are independent.
    score = np.linspace(-_REACH, _REACH, _N_POINTS)
    density = np.exp(-(score**2) / 2) / np.exp(-(score**2) / 2).sum()

    def coverage(critical: float) -> float:
        below, above = special.ndtr(score + critical * 2**0.5), special.ndtr(score - critical * 2**0.5)
        return float(density @ (below - above) ** (n_systems - 1))

    critical = optimize.brentq(lambda value: coverage(value) - level, 0.0, _REACH)
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


@dataclass(frozen=True, eq=False, repr=False)
class QueryPlan(Shown):
    """Number of queries needed, with its power curve.

    ``low, high``: interval of the number, from the interval of the standard deviation of the pilot; without a pilot,
    the numbers for the smallest median and the largest 90 % quantile of the collections. ``delta, power, level``: the
    difference to detect, its power, and the level of test and interval. ``n_by_formula``: by the noncentral t, for
    normal differences. ``curve``: delta, n_qids, power, low, high, level, test, correction, n_systems, assurance,
    n_pilot (0 without a pilot), n_simulations, seed.
    """

    n_qids: int
    low: int
    high: int
    delta: float
    power: float
    level: float
    n_by_formula: int
    curve: pd.DataFrame = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Return one row: delta, n_qids, low, high, by_formula, power, and the columns of the curve from level on."""
        needed = {"n_qids": self.n_qids, "low": self.low, "high": self.high, "by_formula": self.n_by_formula}
        about = self.curve[list(COLUMNS[5:])].head(1)
        return pd.DataFrame({"delta": self.delta, **needed, "power": self.power}, index=[0]).join(about)

    def _line(self) -> str:
        return self.summary()

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries needed", self.to_frame().rename(columns={"n_qids": "queries"}), value="queries")
        yield Panel("Power", self.curve.drop(columns=["delta"]), value="power")

    def _figures(self) -> Figures:
        return {"power_curve": lambda: {"plans": self}}

    def summary(self) -> str:
        """The plan in one line of text."""
        one = self.curve.iloc[0]
        among = f" among {one['n_systems']} systems ({one['correction']})" if one["n_systems"] > 2 else ""  # noqa: PLR2004
        based = f"pilot of {one['n_pilot']}"
        sure = f"the power is reached with probability {one['assurance']:g}"
        if not one["n_pilot"]:
            based, sure = "no pilot", "low and high are of the TREC collections with the smallest and largest variance"
        elif one["assurance"] == 0.5:  # noqa: PLR2004 - the standard deviation of the pilot itself
            sure = "more than half of such plans fall short of the power: ask for assurance"
        return (
            f"{self.n_qids} queries ({self.low} to {self.high}) to detect a difference of {self.delta:g}{among} with "
            f"power {self.power:g} at {1 - self.level:.2g}; {based}; {sure}"
        )


@with_defaults
def queries_needed(
    pilot: Any,
    delta: float,
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    assurance: float | None = None,
    n_systems: int = 2,
    baseline: bool = False,
    n_simulations: int = N_SIMULATIONS,
    inference: Inference = Inference(level=0.95, seed=0, test="randomisation", correction="auto"),
) -> QueryPlan:
    """Number of queries needed to detect a difference with some power, from the scores of a pilot.

    The differences of the pilot, shifted to mean δ, are resampled to n queries and tested, two-sided at the level of
    one of the tests between all systems; power is the share of simulations in which the better system is significantly
    better.

    Parameters
    ----------
    pilot
        A V frame (name, qid, measure, value) with two systems, or the differences themselves, shape (k,), k >= 5. Or
        ``None``, for a plan before any data: normal differences with the median of the standard deviations that
        differences by ``measure`` have in TREC collections (``vbterrier.design.planning.STANDARD_DEVIATIONS``).
    delta
        The difference to detect, in the unit of the scores, negative if the second system is better. Choose a
        difference of practical relevance, not the observed difference, which is biased by chance.
    pair, measure
        Two systems and a measure, if the frame contains more.
    power
        Probability of detection, between ``(1 - level)/2`` and 1.
    assurance
        Probability, at least .5 and below 1, that the number suffices for this power in spite of the uncertainty of the
        standard deviation of the pilot: the number for its upper confidence limit at this level. ``None``: .8 with a
        pilot. .5: the number for the standard deviation of the pilot, which falls short in more than half of all
        pilots.
    n_systems, baseline
        Number of systems that will be compared, all pairs or each with a baseline.
    n_simulations
        Number of resamples of each size. With 10,000 the number of queries has a Monte Carlo error of
        about 1 %. Cost: ``n_simulations * min(n, 40 k)`` random numbers.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``seed`` (0), ``test`` (``"randomisation"``), ``correction``
        (``"auto"``). The level is that of all tests together, and of the interval of the number of queries. The test is
        ``"randomisation"`` or ``"t"``, the correction ``"max-t"``, ``"holm"`` or ``"none"``, and ``"auto"`` the first
        for randomisation, the second for t; :func:`corrected_level` gives the level of each test.

    Returns
    -------
    QueryPlan
        ``n_qids`` with its interval ``low, high``, and ``curve``: power by number of queries.

    Raises
    ------
    InputError
        A pilot of fewer than 5 queries, or with constant differences; a difference too small for a billion queries.
    ParameterError
        A difference of 0; unknown or ambiguous systems or measures; without a pilot, a measure without a standard
        deviation, or an assurance.

    Notes
    -----
    ``power(n, δ) = P(|t| significant, right sign) = P(τ_n s_n/√n - m_n <= δ)`` with mean m_n and standard deviation s_n
    of a resample of n centred differences and the quantile τ_n of Student's t, so that one set of resamples serves all
    δ. A constant resample, frequent if most queries tie, counts as not detected, and so does every resample of sizes at
    which the smallest p of sign flips, ``2^(1-n)``, exceeds the corrected level. The interval follows from that of the
    standard deviation of the pilot (Bonett 2006): a larger σ is equivalent to a smaller δ. Sizes form a grid; between
    them, the isotonic curve is interpolated over √n. docs/explanation/statistics.md has the coverage of the intervals,
    the share of plans that reach the power, and the power of sign flips, which is nearly that of t.

    Source: Kelley and Maxwell, Psychological Methods 8, 2003 (assurance). Sakai: Topic set size design, Information
    Retrieval Journal 19 (2016), whose noncentral t is ``n_by_formula``, and whose tables plan without a pilot. Bonett,
    Computational Statistics and Data Analysis 50 (2006). Dunnett, JASA 50, 1955.

    Examples
    --------
    >>> differences = [0.1, -0.1, 0.0, 0.2, -0.2, 0.1, 0.0, -0.1, 0.3, -0.3]
    >>> plan = queries_needed(differences, 0.05, assurance=0.5, inference=Inference(seed=1))
    >>> plan.low < plan.n_qids < plan.high, abs(plan.n_qids - plan.n_by_formula) < 10
    (True, True)
    >>> queries_needed(differences, 0.05, inference=Inference(seed=1)).n_qids > plan.n_qids
    True
    """
    level, seed, test, correction = inference.level, inference.seed, inference.test, inference.correction
    delta = number("delta", delta)
    wanted = number("delta", abs(delta), low=0, open_low=True)
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    if assurance is not None:
        assurance = number("assurance", assurance, low=0.5, high=1, open_high=True)
    n_simulations = whole("n_simulations", n_simulations)
    each, by = _of_each_test(level, n_systems, test, correction, baseline=baseline)
    least = least_queries(test, each)
    if pilot is None:
        if measure is not None:
            require_difference("delta", delta, measure)
        if assurance is not None:
            raise ParameterError(
                "assurance needs a pilot, whose standard deviation is uncertain; give one, or plan for high"
            )
        return _without_pilot(delta, measure, power, each, least, (level, test, by, n_systems, np.nan))
    sample = pilot_of(pilot, pair, measure)
    if hasattr(pilot, "columns"):
        require_difference("delta", delta, str(pilot["measure"].iloc[0]) if measure is None else measure)
    if delta < 0:
        # Power of skewed differences depends on the sign.
        sample = Pilot(-sample.values)
    # A standard deviation larger by a factor is equivalent to a difference smaller by that factor.
    narrow, wide = sample.std_interval(level)
    assurance = ASSURANCE if assurance is None else assurance
    assured = sample.assured_std(assurance)
    deltas = wanted * sample.std / np.array([sample.std, wide, narrow, assured])
    smallest, largest = (needed_by_formula(end, sample.std, power, each, least) for end in (deltas.max(), deltas.min()))
    while True:
        last = max(int(largest * _BEYOND), 20)
        first = max(2, min(last / _FIRST, smallest * _BEFORE))
        sizes = sorted({round(size) for size in np.geomspace(first, last, _N_SIZES)} | {max(least, round(first))})
        thresholds = _thresholds(sample, sizes, each, least, n_simulations, seed)
        powers = np.stack([(some[:, None] <= deltas).mean(axis=0) for some in thresholds], axis=1)
        needed = [_crossing(sizes, curve, power, least) for curve in powers]
        if all(n is not None for n in needed):
            break
        largest *= 2
        require_possible(largest, wanted)
    n_pilot = (len(sample), n_simulations, seed)
    about = (level, test, by, n_systems, assurance)
    rows = [(delta, *row[:4], *about, *n_pilot) for row in zip(sizes, *powers.tolist(), strict=True)]
    _, high, low, n_qids = (int(n or 0) for n in needed)
    formula = needed_by_formula(wanted, sample.std, power, each, least)
    curve = pd.DataFrame(rows, columns=list(COLUMNS))
    return QueryPlan(n_qids, min(low, n_qids), max(high, n_qids), delta, power, level, formula, curve)


def _of_each_test(level: float, n_systems: int, test: str, correction: str, *, baseline: bool) -> tuple[float, str]:
    """The level of each test, and the correction."""
    choice("test", test, TESTS)
    choice("correction", correction, CORRECTIONS)
    whole("n_systems", n_systems, low=2)
    if correction == "max-t" and test == "t":
        raise ParameterError("correction='max-t' needs a test that resamples; use test='randomisation', or 'holm'")
    by = correction
    if correction == "auto":
        by = "max-t" if test == "randomisation" else "holm"
    return corrected_level(level, n_systems, by, baseline=baseline), by


def _without_pilot(
    delta: float, measure: str | None, power: float, each: float, least: int, about: tuple[Any, ...]
) -> QueryPlan:
    """A plan by the noncentral t with the standard deviations of collections."""
    if measure not in STANDARD_DEVIATIONS:
        raise ParameterError(
            f"pilot=None, measure={measure!r}: standard deviations are known for {examples(STANDARD_DEVIATIONS, 8)}; "
            "choose one of these, or give a pilot"
        )
    medians, quantiles = zip(*STANDARD_DEVIATIONS[measure].values(), strict=True)
    usual = float(np.median(medians))
    # Power decreases with the standard deviation: low belongs to the largest.
    spreads = usual, max(quantiles), min(medians)
    n_qids, high, low = (needed_by_formula(abs(delta), std, power, each, least) for std in spreads)
    sizes = np.unique(np.geomspace(max(2, low / 4), high * _BEYOND, _N_SIZES).round())
    powers = [power_by_formula(sizes, abs(delta), std, each, least) for std in spreads]
    rows = [(delta, int(row[0]), *row[1:], *about, 0, 0, 0) for row in zip(sizes, *powers, strict=True)]
    return QueryPlan(n_qids, low, high, delta, power, about[0], n_qids, pd.DataFrame(rows, columns=list(COLUMNS)))


@with_defaults
def detectable_difference(
    pilot: Any,
    n_qids: int | Iterable[int],
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    n_systems: int = 2,
    baseline: bool = False,
    n_simulations: int = N_SIMULATIONS,
    inference: Inference = Inference(level=0.95, seed=0, test="randomisation", correction="auto"),
) -> pd.DataFrame:
    """Smallest difference in favour of the first system that a number of queries detects with some power.

    Parameters
    ----------
    n_qids
        Numbers of queries, at least 2. Other parameters, and errors, are those of :func:`queries_needed`.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``seed`` (0), ``test`` (``"randomisation"``), ``correction``
        (``"auto"``).

    Returns
    -------
    pandas.DataFrame
        One row per number of queries: n_qids, delta (infinite where the test cannot be significant at the corrected
        level: sign flips of fewer than 6 queries at .05), low, high (from the interval of the standard deviation),
        by_formula (for normal differences), power, level, test, correction, n_systems, n_pilot, n_simulations, seed.

    Raises
    ------
    InputError, ParameterError
        See :func:`queries_needed`.

    Examples
    --------
    >>> differences = [0.1, -0.1, 0.0, 0.2, -0.2, 0.1, 0.0, -0.1, 0.3, -0.3]
    >>> detectable_difference(differences, [50, 200], inference=Inference(seed=1))["delta"].round(2).tolist()
    [0.07, 0.04]
    """
    level, seed, test, correction = inference.level, inference.seed, inference.test, inference.correction
    sample = pilot_of(pilot, pair, measure)
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    n_simulations = whole("n_simulations", n_simulations)
    numbers = [n_qids] if hasattr(n_qids, "__index__") else list(n_qids)
    sizes = sorted({whole("n_qids", n, low=2, high=MOST) for n in numbers})
    each, by = _of_each_test(level, n_systems, test, correction, baseline=baseline)
    narrow, wide = (end / sample.std for end in sample.std_interval(level))
    rows = []
    least = least_queries(test, each)
    for n, thresholds in zip(sizes, _thresholds(sample, sizes, each, least, n_simulations, seed), strict=True):
        delta = float(np.quantile(thresholds, power, method="inverted_cdf"))
        formula = detectable_by_formula(n, sample.std, power, each, least)
        about = (power, level, test, by, n_systems, len(sample), n_simulations, seed)
        rows.append((n, delta, delta * narrow, delta * wide, formula, *about))
    about_columns = ["power", "level", "test", "correction", "n_systems", "n_pilot", "n_simulations", "seed"]
    return pd.DataFrame(rows, columns=["n_qids", "delta", "low", "high", "by_formula", *about_columns])


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
    for n in [whole("n_qids", size, low=2, high=MOST) for size in numbers]:
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


def _thresholds(
    pilot: Pilot, sizes: Sequence[int], level: float, least: int, n_simulations: int, seed: int
) -> Iterator[Floats]:
    """For each size, the smallest difference that each simulation detects, shape (n_simulations,)."""
    from scipy import special

    for n, (mean, std) in zip(sizes, pilot.resampled(sizes, n_simulations, seed), strict=True):
        smallest = float(special.stdtrit(n - 1, (1 + level) / 2)) * std / n**0.5 - mean
        # Constant resamples do not allow a test, and fewer queries than the least no significance.
        yield np.where((n >= least) & (std > _CONSTANT * pilot.std), smallest, np.inf)


def _crossing(sizes: Sequence[int], powers: Floats, wanted: float, least: int) -> int | None:
    """The smallest number of queries with the wanted power, at least ``least``, or ``None``."""
    from sklearn.isotonic import isotonic_regression

    rising, roots = isotonic_regression(powers), np.sqrt(sizes)
    above = int(np.argmax(rising >= wanted))
    if rising[above] < wanted:
        return None
    if above == 0:
        return sizes[0]
    low, high = rising[above - 1], rising[above]
    root = roots[above - 1] + (wanted - low) / (high - low) * (roots[above] - roots[above - 1])
    # Rounding must not exceed the next size, and no test is significant with fewer than the least number.
    return max(min(int(np.ceil(root**2 - 1e-9)), sizes[above]), least)
