"""Effects of systems and topics: analysis of variance with Tukey's HSD, Bayesian comparisons, and risk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    check_level,
    choice,
    examples,
    nearest,
    number,
    require_system,
    warn,
    whole,
)
from vbterrier.frames.notebook import Panel
from vbterrier.frames.ranges import require_difference, score_bounds
from vbterrier.frames.results import Shown
from vbterrier.frames.score_table import ScoreTable, refuse_ratios, table_on_own_topics
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import stream
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.stats.comparisons import is_significant, system_pairs
from vbterrier.stats.paired_tests import MIN_TOPICS, column_std
from vbterrier.stats.topic_intervals import N_RESAMPLES, tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats
    from vbterrier.frames.results import Figures


POSTERIORS = ("conjugate", "bootstrap")
BAYESIAN_COLUMNS = (
    *("name_a", "name_b", "measure", "diff", "low", "high", "p_a_above", "p_a_better", "p_rope", "p_b_better", "rope"),
    *("n_qids", "level", "method", "n_draws", "seed"),
)
VARIANCE_COLUMNS = ("measure", "source", "df", "sum_sq", "mean_sq", "F", "p_value", "variance", "share")
TUKEY_COLUMNS = (
    *("name_a", "name_b", "measure", "diff", "low", "high", "p_value", "p_adjusted", "n_qids", "test", "correction"),
    *("n_tests", "level", "method", "n_resamples", "seed"),
)


@dataclass(frozen=True, eq=False, repr=False)
class AnalysisOfVariance(Shown):
    """Result of :func:`analysis_of_variance`.

    ``sources``: three rows per measure, for the sources ``"system"``, ``"topic"`` and ``"residual"``: measure, source,
    df, sum_sq, mean_sq, F, p_value, variance (the estimated variance component, at least 0) and share (of the sum of
    the three components). ``pairs``: a P frame: name_a, name_b, measure, diff, low, high (simultaneous), p_value (of
    the paired contrast alone), p_adjusted (Tukey's), n_qids, test, correction, n_tests, level, method, n_resamples (0),
    seed (0).
    """

    sources: pd.DataFrame
    pairs: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``sources``: a row per measure and source of variance."""
        return self.sources

    def _line(self) -> str:
        measures = ", ".join(self.sources["measure"].unique())
        differ = int(is_significant(self.pairs["p_adjusted"], self.pairs["level"]).sum())
        return f"{measures}; {differ} of {len(self.pairs)} pairs differ by Tukey's HSD"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Sources of variance", self.sources, heads=2)
        yield Panel("Differences a - b", self.pairs, value="diff", by="measure", rule=0, heads=2)

    def _figures(self) -> Figures:
        return {"differences": lambda: {"pairs": self.pairs}}


@with_usual_errors
def analysis_of_variance(values: Any, *, level: float = 0.95) -> AnalysisOfVariance:
    """Two-way analysis of variance of topics and systems, with Tukey's honestly significant differences.

    ``y_ts = μ + τ_t + σ_s + ε_ts`` with one score of each system s and topic t (Tague-Sutcliffe and Blustein 1995). The
    variance component of systems is ``(MS_system - MS_residual)/n_topics``, that of topics ``(MS_topic -
    MS_residual)/n_systems``, that of the residual, which includes the interaction, its mean square. Tukey's p of a
    pair is the probability that the studentised range of k systems with the residual's degrees of freedom exceeds
    ``|diff| / sqrt(MS_residual/n_topics)``.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value; at least two systems on the same topics, at least two of them.
    level
        1 - the significance level, and the simultaneous coverage of the intervals of all pairs.

    Returns
    -------
    AnalysisOfVariance
        ``sources``: three rows per measure; ``pairs``: differences of systems with simultaneous intervals.

    Warns
    -----
    DegenerateWarning
        No residual variance, or a single topic: F, p and intervals are NaN.

    Notes
    -----
    HSD assumes one residual variance for all pairs, so that a pair of similar systems has wider intervals than in a
    paired test, and a pair of dissimilar systems narrower ones; :func:`vbterrier.compare` does not. The
    distribution of the range takes 9 ms a pair. docs/explanation/statistics.md has simulated family-wise error rates.

    Source: Tague-Sutcliffe and Blustein: A statistical analysis of the TREC-3 data, TREC 1995. Carterette: Multiple
    testing in statistical analysis of systems-based information retrieval experiments, ACM TOIS 30, 2012.

    Examples
    --------
    >>> values = pd.DataFrame({"name": np.repeat(["a", "b", "c"], 4), "qid": [*"1234"] * 3, "measure": "AP",
    ...                        "value": [0.5, 0.4, 0.8, 0.7, 0.3, 0.3, 0.5, 0.6, 0.3, 0.2, 0.6, 0.5]})
    >>> result = analysis_of_variance(values)
    >>> result.sources[["source", "df", "F", "share"]].round(2).values.tolist()
    [['system', 2, 15.55, 0.27], ['topic', 3, 27.18, 0.65], ['residual', 6, nan, 0.07]]
    >>> result.pairs[["name_a", "name_b", "diff", "p_adjusted"]].round(3).values.tolist()
    [['a', 'b', 0.175, 0.01], ['a', 'c', 0.2, 0.005], ['b', 'c', 0.025, 0.805]]
    """
    from scipy import special, stats

    check_level(level)
    tables, pairs = [], []
    for view in table_on_own_topics(values).views(by_id=False):
        measure, names, table = view.measure, view.names, view.values
        n, k = table.shape
        if k < 2:  # noqa: PLR2004 - effects of systems need two
            continue
        mean, by_topic, by_system = table.mean(), table.mean(axis=1, keepdims=True), table.mean(axis=0)
        residual = table - by_topic - by_system + mean
        df = np.array([k - 1, n - 1, (k - 1) * (n - 1)])
        sums = [n * ((by_system - mean) ** 2).sum(), k * ((by_topic - mean) ** 2).sum(), (residual**2).sum()]
        squares = np.where(np.array(sums) > _SQUARES_ROUNDING * (table**2).sum(), sums, 0.0)
        error = squares[2] / df[2] if df[2] else 0.0
        if not error > 0:
            warn(
                f"{measure}: without residual variance over {n} topics, there are no tests; use more topics or systems"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_sq = squares / df
            f = np.append(mean_sq[:2] / error, np.nan) if error > 0 else np.full(3, np.nan)
            components = np.maximum((mean_sq - error) / [n, k, 1], 0.0)
            components[2] = error
            shares = components / components.sum()
        p_values = special.fdtrc(df, df[2], f)
        about = {"measure": measure, "source": ["system", "topic", "residual"], "df": df, "sum_sq": squares}
        tested = {"mean_sq": mean_sq, "F": f, "p_value": p_values, "variance": components, "share": shares}
        tables.append(pd.DataFrame({**about, **tested}))
        chosen = system_pairs(names, None)
        diff = np.array([by_system[names.index(a)] - by_system[names.index(b)] for a, b in chosen])
        scale = (error / n) ** 0.5 if error > 0 else np.nan
        reach = _critical_range(level, k, int(df[2])) * scale if error > 0 else np.nan
        bounds = score_bounds(f"{measure} - ")
        compared = pd.DataFrame(chosen, columns=["name_a", "name_b"]).assign(measure=measure, diff=diff)
        compared = compared.assign(low=np.maximum(diff - reach, bounds[0]), high=np.minimum(diff + reach, bounds[1]))
        alone = 2 * special.stdtr(df[2], -np.abs(diff) / (2**0.5 * scale))
        adjusted = stats.studentized_range.sf(np.abs(diff) / scale, k, df[2]) if error > 0 else np.nan
        compared = compared.assign(
            p_value=alone, p_adjusted=adjusted, n_qids=n, test="two-way ANOVA", correction="Tukey HSD"
        )
        compared = compared.assign(
            n_tests=len(chosen), level=level, method="Tukey HSD, simultaneous", n_resamples=0, seed=0
        )
        pairs.append(compared)
    if not tables:
        return AnalysisOfVariance(*(pd.DataFrame(columns=list(names)) for names in (VARIANCE_COLUMNS, TUKEY_COLUMNS)))
    every = pd.concat(pairs, ignore_index=True)[list(TUKEY_COLUMNS)]
    return AnalysisOfVariance(pd.concat(tables, ignore_index=True), every)


@cache
def _critical_range(level: float, k: int, df: int) -> float:
    """The quantile of the studentised range of k means, which takes 0.2 s."""
    from scipy import stats

    return float(stats.studentized_range.ppf(level, k, df))


# Sums of squares that are smaller relative to the sum of the squared scores are rounding errors.
_SQUARES_ROUNDING = 1e-20


@with_usual_errors
def bayesian_comparison(
    values: Any,
    *,
    baseline: str | None = None,
    rope: float = 0.01,
    posterior: str = "conjugate",
    level: float = 0.95,
    n_draws: int = N_RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Posterior distributions of the mean differences between systems.

    Parameters
    ----------
    values, baseline
        The V frame: name, qid, measure, value; the system to compare all other systems with; ``None`` for all pairs.
    rope
        Half the width of the region of practical equivalence: differences between ``-rope`` and ``rope`` do not matter,
        in units of the measure, at least 0 and below the range of each measure.
    posterior
        ``"conjugate"``: normal differences with the reference prior ``p(μ, σ²) ∝ 1/σ²``, whose posterior of μ is
        Student's t with n - 1 degrees of freedom, the mean and the standard error of the differences. ``"bootstrap"``:
        means of the differences with uniform Dirichlet weights of the topics (Rubin 1981), for any distribution.
    level, n_draws, seed
        Probability of the credible interval; draws of the bootstrap, and their seed.

    Returns
    -------
    pandas.DataFrame
        name_a, name_b, measure, diff (mean of a - mean of b), low, high (equal-tailed credible interval), p_a_above
        (posterior probability that the mean of a is above that of b), p_a_better, p_rope and p_b_better (probabilities
        that the difference is above, within and below the region), rope, n_qids, level, method, n_draws
        (0 for conjugate), seed. NaN, with a warning, where all topics differ by the same amount, whose posterior would
        be a point, and for a single topic.

    Notes
    -----
    The more pairs, the more of their probabilities are above .95 although systems are equal. Both posteriors ignore
    unjudged documents, for which :func:`vbterrier.rank_systems` has the probability that a beats b.

    Source: Benavoli, Corani, Demšar, Zaffalon: Time for a change, JMLR 18, 2017 (region of practical equivalence).
    Carterette: Bayesian inference for information retrieval evaluation, ICTIR 2015. Rubin: The Bayesian bootstrap,
    Annals of Statistics 9, 1981.

    Examples
    --------
    >>> values = pd.DataFrame({"name": np.repeat(["a", "b"], 5), "qid": [*"12345"] * 2, "measure": "AP",
    ...                        "value": [0.5, 0.4, 0.8, 0.7, 0.6, 0.3, 0.3, 0.5, 0.6, 0.6]})
    >>> result = bayesian_comparison(values, rope=0.02)
    >>> result[["diff", "low", "high", "p_a_above", "p_rope"]].round(3).values.tolist()
    [[0.14, -0.002, 0.282, 0.974, 0.022]]
    """
    check_level(level)
    choice("posterior", posterior, POSTERIORS)
    rope, n_draws, seed = number("rope", rope, low=0), whole("n_draws", n_draws), whole("seed", seed, low=0)
    parts = []
    table_of_values = table_on_own_topics(values)
    if posterior == "bootstrap":
        refuse_ratios(table_of_values.measures, "posterior='conjugate'")
    for view in table_of_values.views(by_id=False):
        measure, names, table = view.measure, view.names, view.values
        require_difference("rope", rope, measure)
        chosen = system_pairs(names, baseline)
        if not chosen:
            continue
        differences = np.stack([table[:, names.index(a)] - table[:, names.index(b)] for a, b in chosen], axis=1)
        varies = column_std(differences) > 0 if len(differences) >= MIN_TOPICS else np.zeros(len(chosen), dtype=bool)
        if not varies.all():
            warn(
                f"{measure}: {int((~varies).sum())} of {len(varies)} pairs differ by the same amount on all topics, so "
                "that their posterior is unknown"
            )
        summaries = np.full((5, len(chosen)), np.nan)
        limits = _student if posterior == "conjugate" else _bayesian_bootstrap
        summaries[:, varies] = limits(differences[:, varies], rope, level, n_draws, seed)
        low, high, above, better, worse = summaries
        part = pd.DataFrame(chosen, columns=["name_a", "name_b"]).assign(measure=measure, diff=differences.mean(axis=0))
        part = part.assign(low=low, high=high, p_a_above=above, p_a_better=better, p_rope=1 - better - worse)
        parts.append(part.assign(p_b_better=worse, n_qids=len(differences)))
    if not parts:
        return pd.DataFrame(columns=list(BAYESIAN_COLUMNS))
    used = n_draws if posterior == "bootstrap" else 0
    made = pd.concat(parts, ignore_index=True).assign(rope=rope, level=level, method=f"posterior ({posterior})")
    return made.assign(n_draws=used, seed=seed)[list(BAYESIAN_COLUMNS)]


def _student(differences: Floats, rope: float, level: float, _n_draws: int, _seed: int) -> Floats:
    """Limits, and the probabilities of means above 0, above the region, and below it, shape (5, k)."""
    from scipy import special

    n, mean = len(differences), differences.mean(axis=0)
    error = differences.std(axis=0, ddof=1) / np.sqrt(n)
    low, high = mean + special.stdtrit(n - 1, tail_probabilities(level))[:, None] * error
    above, better = (special.stdtr(n - 1, (mean - limit) / error) for limit in (0.0, rope))
    return np.stack([low, high, above, better, special.stdtr(n - 1, (-rope - mean) / error)])


def _bayesian_bootstrap(differences: Floats, rope: float, level: float, n_draws: int, seed: int) -> Floats:
    """The same by means with Dirichlet weights."""
    weights = stream(seed, "Bayesian bootstrap").standard_exponential((n_draws, len(differences)))
    means = weights @ differences / weights.sum(axis=1, keepdims=True)
    shares = [(means > limit).mean(axis=0) for limit in (0.0, rope)]
    return np.stack([*np.quantile(means, tail_probabilities(level), axis=0), *shares, (means < -rope).mean(axis=0)])


@with_usual_errors
def risk_table(
    values: Any, *, measure: str | None = None, baseline: str | None = None, alpha: float = 1.0
) -> pd.DataFrame:
    """URisk, TRisk, ZRisk and GeoRisk of systems, beside the means of all measures, such as VB.

    With scores ``x_sq`` of system s and topic q, c topics, and ``w(y) = y`` for y >= 0, else ``(1 + α) y``:

    - ``URisk = 1/c Σ_q w(x_sq - b_q)`` against the scores b of a baseline; ``TRisk = URisk / (sd_q w / sqrt(c))``,
      which is significant at the level of 5 % beyond about ±2 (Student's t with c - 1 degrees of freedom);
    - ``ZRisk = Σ_q w(z_sq)``, ``z_sq = (x_sq - e_sq) / sqrt(e_sq)``, the residuals from the expected scores
      ``e_sq = S_s T_q / N``, with the sums S of systems, T of topics and N of all: the baseline are all systems;
    - ``GeoRisk = sqrt(S_s/c · Φ(ZRisk/c))``, the geometric mean of effectiveness and risk.

    Parameters
    ----------
    values, measure
        The V frame: name, qid, measure, value, all systems on the same topics; the measure whose risk is computed, such
        as ``"ES@10"``, the first of the frame by default.
    baseline
        The system with the scores b; ``None`` for the mean of all systems on each topic.
    alpha
        Additional weight of losses, at least 0. It is not the α of VB.

    Returns
    -------
    pandas.DataFrame
        A row for each system: name, the mean of each measure, n_losses (topics below the baseline), URisk, TRisk (NaN
        for the baseline and other differences without variance), ZRisk, GeoRisk, measure, baseline, alpha, n_qids.
        ZRisk and GeoRisk are NaN, with a warning, for a measure with scores below 0, such as VB: use ES.

    Notes
    -----
    VB penalises uneven coverage of the intents of a query and needs one system; URisk and GeoRisk penalise queries that
    other systems serve better. GeoRisk depends on the set of systems. Where ``e_sq`` is 0, so is z.

    Source: Wang, Bennett, Collins-Thompson: Robust ranking models via risk-sensitive optimization, SIGIR 2012 (URisk).
    Dinçer, Macdonald, Ounis: Hypothesis testing for the risk-sensitive evaluation of retrieval systems, SIGIR 2014
    (TRisk); Risk-sensitive evaluation and learning to rank using multiple baselines, SIGIR 2016 (ZRisk, GeoRisk).

    Examples
    --------
    >>> values = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "ES@10",
    ...                        "value": [0.9, 0.2, 0.5, 0.5]})
    >>> risk_table(values, baseline="b")[["name", "ES@10", "n_losses", "URisk", "GeoRisk"]].round(3).values.tolist()
    [['a', 0.55, 1, -0.1, 0.486], ['b', 0.5, 0, 0.0, 0.488]]
    """
    from scipy import special

    alpha = number("alpha", alpha, low=0)
    table_of_values = ScoreTable.of_frame(values)
    refuse_ratios(table_of_values.measures, "vbterrier.compare")
    tables = {view.measure: view for view in table_of_values.views(by_id=False)}
    if not tables:
        raise InputError("values: no rows; risk needs the scores of systems")
    chosen = next(iter(tables)) if measure is None else measure
    if chosen not in tables:
        raise InputError(f"values: no {chosen}; found {examples(tables)}.{nearest(chosen, tables)}")
    view = tables[chosen]
    names, qids, scores = view.names, view.qids, view.values
    if baseline is not None:
        require_system("baseline", baseline, names)
    base = scores.mean(axis=1) if baseline is None else scores[:, names.index(baseline)]
    c = len(scores)

    def weight_losses(differences: Floats) -> Floats:
        return np.where(differences < 0, 1 + alpha, 1.0) * differences

    gains = weight_losses(scores - base[:, None])
    urisk = gains.mean(axis=0)
    trisk, zrisk = np.full((2, len(names)), np.nan)
    spread = gains.std(axis=0, ddof=1) if c > 1 else np.zeros(len(names))
    np.divide(urisk, spread / np.sqrt(c), out=trisk, where=spread > REPLICA_ROUNDING)
    if (scores < 0).any():
        warn(f"{chosen}: scores below 0 have no ZRisk and GeoRisk, whose expected scores must be at least 0; use ES")
    else:
        total = max(float(scores.sum()), np.finfo(np.float64).tiny)
        expected = scores.sum(axis=0) * (scores.sum(axis=1, keepdims=True) / total)
        residual = np.divide(scores - expected, np.sqrt(expected), out=np.zeros_like(scores), where=expected > 0)
        zrisk = weight_losses(residual).sum(axis=0)
    frame = pd.DataFrame({"name": names})
    for name, table in tables.items():
        frame[name] = frame["name"].map(dict(zip(table.names, table.values.mean(axis=0).tolist(), strict=True)))
    return frame.assign(
        n_losses=(scores < base[:, None] - REPLICA_ROUNDING).sum(axis=0),
        URisk=urisk,
        TRisk=trisk,
        ZRisk=zrisk,
        GeoRisk=np.sqrt(scores.mean(axis=0).clip(0.0) * special.ndtr(zrisk / c)),
        measure=chosen,
        baseline="mean of systems" if baseline is None else baseline,
        alpha=alpha,
        n_qids=len(qids),
    )
