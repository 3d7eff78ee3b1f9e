"""Number of queries for a difference, and the detectable difference for a number of queries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.design.pilot import Pilot, build_pilot
from vbterrier.design.power import (
    MAX_QUERIES,
    corrected_level,
    detectable_by_formula,
    least_queries,
    needed_by_formula,
    power_by_formula,
    require_possible,
)
from vbterrier.errors import InputError, ParameterError, choice, examples, number, whole
from vbterrier.frames.notebook import Panel
from vbterrier.frames.ranges import require_difference, score_bounds
from vbterrier.frames.results import Shown
from vbterrier.kernels.mean_limits import (
    LEAST_CLUSTERS,
    LEAST_DF,
    SampledQueries,
    clopper_pearson,
    lower_limit,
    smallest_number,
)
from vbterrier.kernels.resample import stream
from vbterrier.kernels.tolerances import WHOLE_ROUNDING
from vbterrier.remedies import sampling_by_traffic
from vbterrier.settings import CORRECTIONS, Data, Inference, Options, with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.annotations import Bools, Floats
    from vbterrier.frames.results import Figures


# The probability with which plans from a pilot reach their power.
ASSURANCE = 0.8
TESTS = ("moderated", "t", "randomisation")
# The levels of tests that control the false discovery rate depend on all differences, which a plan does not have.
_CORRECTIONS = tuple(by for by in CORRECTIONS if by != "bh")
# Simulations of each size: of queries of equal weight, and of weights, clusters and non-inferiority.
N_SIMULATIONS, _N_SLOW = 10_000, 1000
# The criterion of large losses of the release gate, and the largest number of queries of its plans.
_LARGE_LOSS, _MAX_SHARE, MOST_OF_MARGIN = 0.5, 0.05, 100_000
# Sizes of the curve of a plan for a margin, and its range relative to the number.
_N_MARGIN_SIZES, _MARGIN_SIZE_RANGE = 12, (0.5, 1.3)
# Neighbours of the number, and their largest relative distance from it.
_N_WITHIN, _NEIGHBOUR_DISTANCE = 17, 0.08
# Normal differences without a pilot.
_N_NORMAL = 99
COLUMNS = (
    *("delta", "n_qids", "power", "low", "high", "level", "test", "correction", "n_systems", "assurance"),
    *("n_pilot", "n_simulations", "seed"),
)
# Number of sizes of the curve, and its largest size relative to the number by normal theory.
_N_SIZES, _MAX_SIZE_FACTOR = 40, 1.3
# The first size is the smaller of the last size divided by the ratio, and the smallest number by normal theory times
# the factor.
_MAX_SIZE_RATIO, _MIN_SIZE_FACTOR = 100, 0.5
# Relative standard deviation below which a resample is constant up to rounding.
_MIN_RELATIVE_STD = 1e-6
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


@dataclass(frozen=True, eq=False, repr=False)
class QueryPlan(Shown):
    """Number of queries needed, with its power curve.

    ``low, high``: interval of the number, from the interval of the standard deviation of the pilot; without a pilot,
    the numbers for the smallest median and the largest 90 % quantile of the collections. ``delta, power, level``: the
    difference to detect, its power, and the level of test and interval. ``n_by_formula``: by the noncentral t, for
    normal differences; for a margin, the smallest number with which equal systems pass. ``margin``: that of a plan for
    the release gate, whose ``delta`` is the true difference, and whose ``high`` is 100,000 if no number suffices; NaN
    otherwise. ``curve``: delta, n_qids, power, low, high,
    level, test, correction, n_systems, assurance, n_pilot (0 without a pilot), n_simulations, seed.
    """

    n_qids: int
    low: int
    high: int
    delta: float
    power: float
    level: float
    n_by_formula: int
    curve: pd.DataFrame = field(repr=False)
    margin: float = math.nan

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
            sure = "about half of such plans fall short of the power: use assurance"
        goal = f"to detect a difference of {self.delta:g}{among} with power {self.power:g} at {1 - self.level:.2g}"
        if not math.isnan(self.margin):
            against = f" against {one['n_systems'] - 1} baselines" if one["n_systems"] > 2 else ""  # noqa: PLR2004
            goal = (
                f"that pass with margin {self.margin:g}{against} with probability {self.power:g} at a difference of "
                f"{self.delta:g}, level {self.level:g}"
            )
            sure = sure.replace("power", "probability")
        return f"{self.n_qids} queries ({self.low} to {self.high}) {goal}; {based}; {sure}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlanOptions(Options):
    """Options of :func:`vbterrier.design.queries_needed` and :func:`vbterrier.design.detectable_difference`.

    Parameters
    ----------
    n_systems
        Number of systems that will be compared, 2 by default; with a margin, one new system and its baselines.
    baseline
        True for comparisons of each system with a baseline instead of all pairs, the default.
    worst_loss
        With a margin: no query counts for a larger loss; by default the range of the measure, 1 for differences.

    Examples
    --------
    >>> PlanOptions(n_systems=5, baseline=True)
    PlanOptions(n_systems=5, baseline=True, worst_loss=None)
    """

    n_systems: int = 2
    baseline: bool = False
    worst_loss: float | None = None


@with_defaults
def queries_needed(
    pilot: Any,
    delta: float | None = None,
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    assurance: float | None = None,
    n_simulations: int | None = None,
    data: Data = Data(queries=None),
    inference: Inference = Inference(level=0.95, seed=0, test="moderated", correction="auto", margin=None),
    options: PlanOptions = PlanOptions(),
) -> QueryPlan:
    """Number of queries needed to detect a difference, or to pass a release gate, with some probability.

    The differences of the pilot, shifted to mean δ, are resampled to n queries. Without a margin, they are tested,
    two-sided at the level of one of the tests between all systems; power is the share of simulations in which the
    better system is significantly better. With a margin, power is the share of simulations that pass
    :func:`vbterrier.evaluate.release_gate`.

    Parameters
    ----------
    pilot
        A V frame (name, qid, measure, value) with two systems, or the differences themselves, shape (k,), k >= 5. Or
        ``None``, for a plan before any data: normal differences with the median of the standard deviations that
        differences by ``measure`` have in TREC collections (``vbterrier.design.planning.STANDARD_DEVIATIONS``).
    delta
        The difference to detect, in the unit of the scores, negative if the second system is better. Choose a
        difference of practical relevance, not the observed difference, which is biased by chance. With a margin: the
        true difference at which the first system passes with the wanted probability, above ``-margin``; 0 by default.
    pair, measure
        Two systems and a measure, if the frame contains more.
    power
        Probability of detection or of PASS, between ``(1 - level)/2`` and 1.
    assurance
        Probability, at least .5 and below 1, that the number suffices for this power in spite of the uncertainty of the
        standard deviation of the pilot: the number for its upper confidence limit at this level. ``None``: .8 with a
        pilot. .5: the number for the standard deviation of the pilot, which falls short in about half of all pilots,
        and in three of four with log-normal weights.
    n_simulations
        Number of resamples of each size, by default 10,000, and 1,000 with weights, clusters or a margin. The number of
        queries has a Monte Carlo error of 1 to 2 % by default. Cost: ``n_simulations * min(n, 40 k)`` random numbers.
    data
        A :class:`vbterrier.Data`: ``queries``. Weights and clusters are those of the queries of a V frame. Further
        queries are drawn as those of the pilot were: pairs of weight and difference, or whole clusters.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``seed`` (0), ``test`` (``"moderated"``), ``correction``
        (``"auto"``), ``margin``, the largest acceptable loss of the mean, which plans for the release gate. The level
        is that of all tests together, and of the interval of the number of queries. The test is
        ``"moderated"``, the default of :func:`vbterrier.compare`, planned as ``"t"``, or ``"randomisation"``. The
        correction is ``"bonferroni"``, ``"max-t"``, ``"holm"`` or ``"none"``; ``"auto"`` is ``"max-t"`` for
        randomisation, ``"bonferroni"`` for t; :func:`vbterrier.design.power.corrected_level` gives the level of each
        test. With a margin, the level is that of the one-sided limits, for all baselines together.
    options
        A :class:`vbterrier.design.PlanOptions`: ``n_systems``, ``baseline``, ``worst_loss``.

    Returns
    -------
    QueryPlan
        ``n_qids`` with its interval ``low, high``, and ``curve``: power by number of queries.

    Raises
    ------
    InputError
        A pilot of fewer than 5 queries or clusters, or with constant differences; a difference too small for a billion
        queries, or for a margin for 100,000.
    ParameterError
        A difference of 0 without a margin, or of at most ``-margin``; unknown or ambiguous systems or measures; without
        a pilot, a measure without a standard deviation, or an assurance; a measure without range for a margin without
        ``worst_loss``; a column of queries other than weight and cluster; unequal weights and a margin, since no pilot
        shows the heaviest queries, on which the number depends (draws by traffic have equal weights).

    Notes
    -----
    ``power(n, δ) = P(|t| significant, right sign) = P(τ_n s_n/√n - m_n <= δ)`` with mean m_n and standard deviation s_n
    of a resample of n centred differences and the quantile τ_n of Student's t, so that one set of resamples serves all
    δ. A constant resample, frequent if most queries tie, counts as not detected, and so does every resample of sizes at
    which the smallest p of sign flips, ``2^(1-n)``, exceeds the corrected level. The interval follows from that of the
    standard deviation of the pilot (Bonett 2006): a larger σ is equivalent to a smaller δ. Sizes form a grid; between
    them, the isotonic curve is interpolated over √n. With weights or clusters, ``s_n/√n`` and the degrees of freedom
    are those of :func:`vbterrier.kernels.mean_limits.moments`. With a margin, limits are
    :func:`~vbterrier.kernels.mean_limits.lower_limit`, and at most 5 % of queries may lose more than .5.
    docs/explanation/statistics.md has the coverage of the intervals, the power of sign flips, which is nearly that of
    t, and the share of plans that reach the power with an assurance of .8: .82 to .89 for tests (normal, half tied and
    exponential differences, log-normal weights), .67 to .83 for margins with 30 and 50 queries, and at most .05 with
    Zipf weights, whose heaviest queries a uniform pilot lacks.

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
    >>> plan = queries_needed([0.0] * 50 + [0.01, -0.01], n_simulations=100, inference=Inference(margin=0.02))
    >>> plan.n_qids, plan.n_by_formula
    (147, 149)
    """
    level, seed, test, correction = inference.level, inference.seed, inference.test, inference.correction
    n_systems, baseline = options.n_systems, options.baseline
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    if assurance is not None:
        assurance = number("assurance", assurance, low=0.5, high=1, open_high=True)
    each, by = _of_each_test(level, n_systems, test, correction, baseline=baseline)
    margin, worst_loss = inference.margin, options.worst_loss
    delta = _require_delta(delta, margin, worst_loss)
    if pilot is None and assurance is not None:
        raise ParameterError(
            "assurance needs a pilot, whose standard deviation is uncertain; give one, or plan for high"
        )
    if pilot is None and data.queries is not None:
        raise ParameterError("queries: weights and clusters need the differences of a pilot; give values")
    sample, measure_name = (None, measure or "") if pilot is None else build_pilot(pilot, pair, measure, data.queries)
    if measure_name:
        require_difference("delta", delta, measure_name)
    n_slow = N_SIMULATIONS if margin is None and (sample is None or sample.is_equal) else _N_SLOW
    n_simulations = n_slow if n_simulations is None else whole("n_simulations", n_simulations)
    assurance = assurance or (np.nan if sample is None else ASSURANCE)
    if margin is not None:
        if sample is not None and np.ptp(sample.sample.weights) > 0:
            raise ParameterError(
                f"margin={margin:g}: a pilot does not show the heaviest queries of unequal weights, which decide how "
                f"many the gate needs; draw queries by traffic ({sampling_by_traffic()}), and plan without weights"
            )
        gate = _build_gate(margin, worst_loss, measure_name, level, n_systems)
        number("delta", delta, low=-gate.margin, open_low=True)
        return _for_margin(sample, gate, delta, measure_name, power, level, n_systems, assurance, n_simulations, seed)
    about = (level, test, by, n_systems, assurance)
    number("delta", abs(delta), low=0, open_low=True)
    least = least_queries(test, each)
    if sample is None:
        return _without_pilot(delta, measure, power, each, least, about)
    return _for_difference(sample, delta, power, each, least, about, n_simulations, seed)


def _require_delta(delta: float | None, margin: float | None, worst_loss: float | None) -> float:
    """The true difference of a plan."""
    if delta is None and margin is None:
        raise ParameterError("wanted delta, the difference to detect, or margin, the largest acceptable loss")
    if worst_loss is not None and margin is None:
        raise ParameterError(f"worst_loss={worst_loss:g}: has no effect without a margin")
    return 0.0 if delta is None else number("delta", delta)


def _for_difference(
    sample: Pilot,
    delta: float,
    power: float,
    each: float,
    least: int,
    about: tuple[Any, ...],
    n_simulations: int,
    seed: int,
) -> QueryPlan:
    """A plan that detects a difference by tests at the level ``each``."""
    level, assurance, difference = about[0], about[4], abs(delta)
    # Power of skewed differences depends on the sign.
    sample = sample if delta > 0 else sample.negation
    # A standard deviation larger by a factor is equivalent to a difference smaller by that factor.
    narrow, wide = sample.std_interval(level)
    deltas = difference * sample.std / np.array([sample.std, wide, narrow, sample.std_upper_limit(assurance)])
    smallest, largest = (needed_by_formula(end, sample.std, power, each, least) for end in (deltas.max(), deltas.min()))
    while True:
        last = max(int(largest * _MAX_SIZE_FACTOR), 20)
        first = max(2, min(last / _MAX_SIZE_RATIO, smallest * _MIN_SIZE_FACTOR))
        sizes = sorted({round(size) for size in np.geomspace(first, last, _N_SIZES)} | {max(least, round(first))})
        thresholds = _thresholds(sample, sizes, each, least, n_simulations, seed)
        powers = np.stack([(some[:, None] <= deltas).mean(axis=0) for some in thresholds], axis=1)
        needed = [_crossing(sizes, curve, power, least) for curve in powers]
        if all(n is not None for n in needed):
            break
        largest *= 2
        require_possible(largest, difference)
    numbers = [
        sample.n_queries(n or 0) for n in [*needed, needed_by_formula(difference, sample.std, power, each, least)]
    ]
    rows = [
        (delta, sample.n_queries(size), *row, *about, len(sample.values), n_simulations, seed)
        for size, *row in zip(sizes, *powers[:3].tolist(), strict=True)
    ]
    _, high, low, n_qids, formula = numbers
    curve = pd.DataFrame(rows, columns=list(COLUMNS))
    return QueryPlan(n_qids, min(low, n_qids), max(high, n_qids), delta, power, level, formula, curve)


@dataclass(frozen=True)
class _Gate:
    """The criteria of a release gate: margin, largest loss that counts, bounds of differences, level of the limit."""

    margin: float
    worst: float
    bounds: tuple[float, float]
    tail: float

    def passes(self, sample: SampledQueries, values: Floats) -> Bools:
        """True for each column of values, shape (n, m), that passes, as ``vbterrier.evaluate.release_gate`` decides."""
        from scipy import special

        moments = sample.moments(np.maximum(values, -self.worst))
        # Clusters of fewer degrees of freedom do not pass, and their quantiles cost most.
        suffice = True if sample.clusters is None else moments.df >= LEAST_DF
        moments = moments if sample.clusters is None else moments._replace(df=np.maximum(moments.df, LEAST_DF))
        moments = moments.heaviest_unseen
        low = lower_limit(moments, self.tail, self.worst, special.stdtrit)
        lost = sample.mean((values < -_LARGE_LOSS).astype(np.float64))
        _, share = clopper_pearson(lost, moments.n_effective, self.tail, self.tail, special.betaincinv)
        return np.asarray((low > -self.margin) & (share <= _MAX_SHARE) & suffice)


def _build_gate(margin: float, worst_loss: float | None, measure: str, level: float, n_systems: int) -> _Gate:
    """The gate of a new system and its baselines."""
    margin = number("margin", margin, low=0, open_low=True)
    bounds = score_bounds(f"{measure} - ") if measure else (-1.0, 1.0)
    if measure:
        require_difference("margin", margin, measure)
    if worst_loss is None and not np.isfinite(bounds).all():
        raise ParameterError(
            f"{measure}: its range of scores is unknown, so that losses are not bounded; give worst_loss="
        )
    high = bounds[1]
    worst = high if worst_loss is None else number("worst_loss", worst_loss, low=margin, high=high, open_low=True)
    return _Gate(margin, worst, bounds, (1 - level) / (n_systems - 1))


def _for_margin(
    sample: Pilot | None,
    gate: _Gate,
    delta: float,
    measure: str,
    power: float,
    level: float,
    n_systems: int,
    assurance: float,
    n_simulations: int,
    seed: int,
) -> QueryPlan:
    """A plan for a release gate; without a pilot, by normal differences with the standard deviations of collections."""
    if sample is None:
        usual, largest, smallest = _spreads(measure)
        pilot, scales = _normal_pilot(), np.array([usual, largest, smallest, usual])
    else:
        narrow, wide = sample.std_interval(level)
        pilot, scales = sample, np.array([sample.std, wide, narrow, sample.std_upper_limit(assurance)]) / sample.std

    def resample_pilot(size: int) -> SampledQueries:
        return pilot.sample.resample_units(size, n_simulations, stream(seed, "non-inferiority", str(size)))

    def passing(scale: float, size: int) -> float:
        return share_passing(scale, resample_pilot(size))

    def share_passing(scale: float, sample: SampledQueries) -> float:
        values = np.clip(delta + scale * pilot.centred_differences, *gate.bounds)
        return float(gate.passes(sample, np.repeat(values[:, None], n_simulations, axis=1)).mean())

    least = 2 if pilot.sample.clusters is None else LEAST_CLUSTERS
    needed = [smallest_number(partial(passing, scale), power, least, MOST_OF_MARGIN) for scale in scales]
    if needed[3] is None:
        raise InputError(
            f"margin={gate.margin:g}, delta={delta:g}: {MOST_OF_MARGIN:,} queries do not pass with probability "
            f"{power:g}; wanted a larger margin"
        )
    _, high, low, n_units = (n or MOST_OF_MARGIN for n in needed)
    # Neighbours, with independent simulations, reduce the Monte Carlo error.
    around = sorted(
        {
            max(round(part * n_units), least)
            for part in np.linspace(1 - _NEIGHBOUR_DISTANCE, 1 + _NEIGHBOUR_DISTANCE, _N_WITHIN)
        }
    )
    powers = np.array([passing(float(scales[3]), size) for size in around])
    n_units = math.ceil(_crossing(around, powers, power, least) or n_units)
    n_equal = math.ceil(math.log(gate.tail) / math.log1p(-gate.margin / gate.worst)) if gate.margin < gate.worst else 2
    sizes = np.unique(
        np.geomspace(max(2, _MARGIN_SIZE_RANGE[0] * low), _MARGIN_SIZE_RANGE[1] * high, _N_MARGIN_SIZES)
        .round()
        .astype(int)
    )
    about = (level, f"non-inferiority (margin {gate.margin:g})", "bonferroni", n_systems, assurance)
    n_pilot = (0 if sample is None else len(sample.values), n_simulations, seed)
    rows = [
        (delta, pilot.n_queries(size), *(share_passing(scale, sample) for scale in scales[:3]), *about, *n_pilot)
        for size, sample in ((size, resample_pilot(size)) for size in sizes.tolist())
    ]
    n_qids, low, high, n_equal = (pilot.n_queries(n) for n in (n_units, low, high, n_equal))
    ends = min(low, n_qids), max(high, n_qids)
    return QueryPlan(
        n_qids, *ends, delta, power, level, n_equal, pd.DataFrame(rows, columns=list(COLUMNS)), gate.margin
    )


def _normal_pilot() -> Pilot:
    """Normal quantiles with the standard deviation 1."""
    from scipy import special

    quantiles = special.ndtri((np.arange(_N_NORMAL) + 0.5) / _N_NORMAL)
    return Pilot(quantiles / quantiles.std(ddof=1))


def _of_each_test(level: float, n_systems: int, test: str, correction: str, *, baseline: bool) -> tuple[float, str]:
    """The level of each test, and the correction."""
    choice("test", test, TESTS)
    choice("correction", correction, _CORRECTIONS)
    whole("n_systems", n_systems, low=2)
    if correction == "max-t" and test != "randomisation":
        raise ParameterError("correction='max-t' needs a test that resamples; use test='randomisation', or 'holm'")
    by = correction
    if correction == "auto":
        by = "max-t" if test == "randomisation" else "bonferroni"
    return corrected_level(level, n_systems, by, baseline=baseline), by


def _without_pilot(
    delta: float, measure: str | None, power: float, each: float, least: int, about: tuple[Any, ...]
) -> QueryPlan:
    """A plan by the noncentral t with the standard deviations of collections."""
    # Power decreases with the standard deviation: low belongs to the largest.
    spreads = _spreads(measure)
    n_qids, high, low = (needed_by_formula(abs(delta), std, power, each, least) for std in spreads)
    sizes = np.unique(np.geomspace(max(2, low / 4), high * _MAX_SIZE_FACTOR, _N_SIZES).round())
    powers = [power_by_formula(sizes, abs(delta), std, each, least) for std in spreads]
    rows = [(delta, int(row[0]), *row[1:], *about, 0, 0, 0) for row in zip(sizes, *powers, strict=True)]
    return QueryPlan(n_qids, low, high, delta, power, about[0], n_qids, pd.DataFrame(rows, columns=list(COLUMNS)))


def _spreads(measure: str | None) -> tuple[float, float, float]:
    """The usual, the largest and the smallest standard deviation of differences by a measure in TREC collections."""
    if measure not in STANDARD_DEVIATIONS:
        raise ParameterError(
            f"pilot=None, measure={measure!r}: standard deviations are known for {examples(STANDARD_DEVIATIONS, 8)}; "
            "choose one of these, or give a pilot"
        )
    medians, quantiles = zip(*STANDARD_DEVIATIONS[measure].values(), strict=True)
    return float(np.median(medians)), max(quantiles), min(medians)


@with_defaults
def detectable_difference(
    pilot: Any,
    n_qids: int | Iterable[int],
    *,
    pair: Sequence[str] | None = None,
    measure: str | None = None,
    power: float = 0.8,
    n_simulations: int | None = None,
    data: Data = Data(queries=None),
    inference: Inference = Inference(level=0.95, seed=0, test="moderated", correction="auto"),
    options: PlanOptions = PlanOptions(),
) -> pd.DataFrame:
    """Smallest difference in favour of the first system that a number of queries detects with some power.

    Parameters
    ----------
    n_qids
        Numbers of queries, at least 2. Other parameters, and errors, are those of :func:`queries_needed`.
    data
        A :class:`vbterrier.Data`: ``queries``.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``seed`` (0), ``test`` (``"moderated"``), ``correction``
        (``"auto"``).
    options
        A :class:`vbterrier.design.PlanOptions`: ``n_systems``, ``baseline``; a ``worst_loss`` is refused.

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
    n_systems, baseline = options.n_systems, options.baseline
    if options.worst_loss is not None:
        raise ParameterError(f"worst_loss={options.worst_loss:g}: has no effect without a margin")
    sample, _ = build_pilot(pilot, pair, measure, data.queries)
    power = number("power", power, low=(1 - level) / 2, high=1, open_low=True, open_high=True)
    n_usual = N_SIMULATIONS if sample.is_equal else _N_SLOW
    n_simulations = n_usual if n_simulations is None else whole("n_simulations", n_simulations)
    numbers = [n_qids] if hasattr(n_qids, "__index__") else list(n_qids)
    sizes = sorted({whole("n_qids", n, low=2, high=MAX_QUERIES) for n in numbers})
    each, by = _of_each_test(level, n_systems, test, correction, baseline=baseline)
    narrow, wide = (end / sample.std for end in sample.std_interval(level))
    rows = []
    least = least_queries(test, each)
    units = [max(round(n / sample.per_unit), 1) for n in sizes]
    for n, size, thresholds in zip(
        sizes, units, _thresholds(sample, units, each, least, n_simulations, seed), strict=True
    ):
        delta = float(np.quantile(thresholds, power, method="inverted_cdf"))
        formula = detectable_by_formula(size, sample.std, power, each, least)
        about = (power, level, test, by, n_systems, len(sample.values), n_simulations, seed)
        rows.append((n, delta, delta * narrow, delta * wide, formula, *about))
    about_columns = ["power", "level", "test", "correction", "n_systems", "n_pilot", "n_simulations", "seed"]
    return pd.DataFrame(rows, columns=["n_qids", "delta", "low", "high", "by_formula", *about_columns])


def _thresholds(
    pilot: Pilot, sizes: Sequence[int], level: float, least: int, n_simulations: int, seed: int
) -> Iterator[Floats]:
    """For each size, the smallest difference that each simulation detects, shape (n_simulations,)."""
    from scipy import special

    for n, (mean, error, df) in zip(sizes, pilot.resampled_moments(sizes, n_simulations, seed), strict=True):
        smallest = special.stdtrit(df, (1 + level) / 2) * error - mean
        # Constant resamples do not allow a test, and fewer queries than the least no significance.
        yield np.where((n >= least) & (error > _MIN_RELATIVE_STD * pilot.std / n**0.5), smallest, np.inf)


def _crossing(sizes: Sequence[int], powers: Floats, target: float, least: int) -> int | None:
    """The smallest number of queries with the wanted power, at least ``least``, or ``None``."""
    from sklearn.isotonic import isotonic_regression

    rising, roots = isotonic_regression(powers), np.sqrt(sizes)
    above = int(np.argmax(rising >= target))
    if rising[above] < target:
        return None
    if above == 0:
        return sizes[0]
    low, high = rising[above - 1], rising[above]
    root = roots[above - 1] + (target - low) / (high - low) * (roots[above] - roots[above - 1])
    # Rounding must not exceed the next size, and no test is significant with fewer than the least number.
    return max(min(int(np.ceil(root**2 - WHOLE_ROUNDING)), sizes[above]), least)
