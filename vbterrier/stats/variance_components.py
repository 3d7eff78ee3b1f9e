"""Variance components of means: several sources of uncertainty in one interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.kernels.resample import nested_noise, resampled_counts, resampled_variances, stream
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.stats.replicas import N_REPLICAS, Replicas, check_perturbation, numbered_names, replicate
from vbterrier.stats.topic_intervals import Intervals, tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.kernels.resample import Counts
    from vbterrier.stats.candidates import Draws
    from vbterrier.stats.matches import Matches, Statistic


SCORES = ("expected", "measured")
METHODS = ("nested", "normal")
TOPICS, INTERACTIONS = "topics", "interactions"


@dataclass(frozen=True, eq=False)
class _Components:
    """Variances between and within topics.

    ``values, within, noise``: scores of the topics, their variances within topics, and the part of these that the
    values contain, shape (m, n). ``parts``: first-order variances of the sources, shape (S, m, n). ``counts``: counts
    of the topics in each resample, shape (n, B).
    """

    values: Floats
    within: Floats
    noise: Floats
    parts: Floats
    counts: Counts

    def contributions(self) -> Floats:
        """Return the variance of the mean by source, shape (m, sources)."""
        n = self.values.shape[1]
        if n == 1:
            warn("the variance between topics needs at least two topics")
        variance: Floats = self.values.var(axis=1, ddof=1) if n > 1 else np.full(len(self.values), np.nan)
        between = variance - self.noise.mean(axis=1)
        if (between < -ROUNDING).any():
            warn(
                f"noise within topics exceeds the variance over topics of {int((between < 0).sum())} of "
                f"{len(between)} means: topics contribute 0"
            )
        return np.asarray(_by_source(between, self.within.mean(axis=1), self.parts.mean(axis=2)) / n)

    def share_limits(self, contributions: Floats, level: float) -> tuple[Floats, Floats]:
        """Return quantiles of the shares over resampled topics, each (m, sources); NaN for undefined shares."""
        n, unknown = len(self.counts), np.isnan(_shares(contributions))
        if n == 1:
            return np.full(unknown.shape, np.nan), np.full(unknown.shape, np.nan)
        weights = self.counts.astype(np.float64) / n
        _, variance = resampled_variances(self.values, self.counts)
        drawn = _by_source(variance - self.noise @ weights, self.within @ weights, self.parts @ weights)
        # Resamples that repeat a single topic have no variance.
        shares = np.nan_to_num(np.moveaxis(_shares(np.moveaxis(drawn, 1, 2)), 2, 1), nan=0.0)
        low, high = _limits(shares, level)
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)

    def rescaled_resample_means(self, topics: Floats) -> Floats:
        """Return means over resampled topics whose values vary as expected scores do, shape (m, B)."""
        n = len(self.counts)
        if n == 1:
            return np.full((len(self.values), self.counts.shape[1]), np.nan)
        mean = self.values.mean(axis=1, keepdims=True)
        variance = self.values.var(axis=1, ddof=1, keepdims=True)
        factor = np.sqrt(np.divide(topics[:, None] * n, variance, out=np.zeros_like(variance), where=variance > 0))
        # Values without noise remain bitwise the same.
        values = self.values if not self.noise.any() else mean + factor * (self.values - mean)
        return np.asarray(values @ self.counts.astype(np.float64) / n)


def _by_source(between: Floats, within: Floats, parts: Floats) -> Floats:
    """Stack topics (m, ...), sources (S, m, ...) and, for several sources, interactions: (m, S + 1 or S + 2, ...).

    Estimates whose sum exceeds ``within`` are scaled down in proportion.
    """
    between, parts = np.maximum(between, 0.0), np.maximum(parts, 0.0)
    if len(parts) == 1:
        return np.stack([between, np.maximum(within, 0.0)], axis=1)
    total = parts.sum(axis=0)
    parts = parts * np.where(total > within, np.divide(within, total, out=np.ones_like(total), where=total > 0), 1.0)
    interactions = np.maximum(within - parts.sum(axis=0), 0.0)
    return np.stack([between, *parts, interactions], axis=1)


def _shares(variances: Floats) -> Floats:
    """Divide by the sum along the last axis; NaN where it is 0."""
    total = variances.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(variances, total, out=np.full(variances.shape, np.nan), where=total > 0))


def _limits(draws: Floats, level: float) -> tuple[Floats, Floats]:
    low, high = np.quantile(draws, tail_probabilities(level), axis=-1)
    return low, high


@dataclass(frozen=True, eq=False)
class Combined:
    """Result of :func:`combine_sources` for m quantities, with S sources besides the topics.

    ``sources``: ``"topics"``, the other sources, and ``"interactions"`` if there are two other sources or more.
    ``means``: means over topics, the centres of the intervals, shape (m,). ``variances``: contribution of each source
    to the variance of the mean, shape (m, S + 1 or S + 2). ``low, high``: limits of each share. ``interval, topics``:
    of all sources together, and of the topics alone, for ``"measured"`` scores without their noise.
    """

    sources: list[str]
    means: Floats
    variances: Floats
    low: Floats
    high: Floats
    interval: Intervals
    topics: Intervals
    level: float
    n_qids: int
    scores: str

    @property
    def total(self) -> Floats:
        """The variance of the mean, shape (m,)."""
        return np.asarray(self.variances.sum(axis=-1))

    @property
    def shares(self) -> Floats:
        """Share of each source in the total, shape of ``variances``; NaN if the total is 0."""
        return _shares(self.variances)

    def source_interval(self, source: str) -> Intervals:
        """Return the interval of the mean over these topics if only one source is uncertain: ``mean ± z √V_source``."""
        half_width = self.half_width(self.variances[:, self.sources.index(source)])
        return Intervals(self.means - half_width, self.means + half_width, f"{source} (normal)")

    def half_width(self, variance: Floats) -> Floats:
        """Return half the width of a normal interval with the given variance."""
        from scipy import special

        return np.asarray(special.ndtri((1 + self.level) / 2) * np.sqrt(variance))

    def remaining(self, source: str) -> tuple[Floats, Floats, Floats]:
        """Return the variances that remain if one source is resolved, each of shape (m,).

        They are of the mean over these topics; of the mean over the population of topics; and the total minus the
        source, ``E Var(mean | source) = V - V_source``. For ``"measured"`` scores, the last also applies to the
        population: the noise vanishes from the variance over topics. ``"expected"`` scores vary less than true scores,
        ``Var T = Var μ + σ²``: resolved uncertainty reappears as variance over topics, so that an interval for the
        population remains as wide as before. If the expected scores are estimates themselves, the true variance is
        in between.
        """
        resolved = self.variances[:, self.sources.index(source)]
        best = np.maximum(self.total - resolved, 0.0)
        these = np.maximum(self.variances[:, 1:].sum(axis=-1) - resolved, 0.0)
        return these, best if self.scores == "measured" else self.total, best


def combine_sources(
    draws: Iterable[Floats],
    source: str | Mapping[str, Floats],
    *,
    n_qids: int,
    n_draws: int,
    values: Floats | None = None,
    variances: Floats | None = None,
    common: Floats | None = None,
    scores: str = "expected",
    method: str = "nested",
    level: float = 0.95,
    seed: int = 0,
) -> Combined:
    """Confidence intervals and variance components of means over topics with uncertain scores.

    With ``μ_t`` the expected score of topic t and ``σ_t²`` the variance of its score over all sources within topics,
    which are independent between topics, the mean of n scores, one for each topic, has the variance::

        V = Var_t(μ_t)/n  +  Σ_t σ_t²/n²,          σ_t² = Σ_s V_ts + interactions,   V_ts = Var(E[score_t | source s])

    The contribution of ``topics`` is the first term, that of source s is ``Σ_t V_ts/n²`` (its first-order Sobol index
    times the variance within topics), and ``interactions`` is the remainder.

    - ``draws``: for each of n topics, draws of m quantities over all sources within topics at once, shape (m, B); one
      topic is held in memory at a time.
    - ``source``: the name of the only source within topics; or the first-order variances ``V_ts`` of several, shape
      (m, n), see :func:`first_order`.
    - ``values``: scores of the topics, shape (m, n): exact expectations, or with ``scores="measured"`` the measured
      scores. The means of the draws by default.
    - ``variances``: exact ``σ_t²``, shape (m, n), if known.
    - ``common``: errors that all topics share, if there are any: draws of deviations of the means, shape (m, B).
      ``draws`` are then those of the topics without them, and ``variances`` the parts of the topics in the variance of
      the mean, ``Σ_s Cov(score_t, score_s)`` in the place of ``σ_t²``.
    - ``scores``: ``"expected"``: true scores are distributed around the values as the draws are, so that ``Var_t(μ_t)``
      is the variance of the values; minus ``mean σ_t²/B`` if they are means of B draws. ``"measured"``: the values are
      distributed around the true scores as the draws are around their means: their variance includes the noise,
      ``Var_t(μ_t) = s² - mean σ_t²``.
    - ``method``: ``"nested"``: quantiles of means over resampled topics, with a separate draw for each copy of a topic.
      ``"normal"``: ``mean ± t √V`` with Satterthwaite's degrees of freedom, ``(n - 1) V²/(Var_t(μ_t)/n)²``
      (``"measured"``: n - 1).

    ``low`` and ``high`` are quantiles of the shares over the same resamples of topics. With a single topic, the
    variance between topics and what depends on it are NaN, with a warning. If the noise exceeds the variance over
    topics, the contribution of topics is 0, with a warning, and the total is that of the noise.

    For ``"measured"`` scores the total is ``s²/n``: an interval over topics includes independent noise already. For
    ``"expected"`` scores the total is the expected variance of the mean of *true* scores, ``E Var_t(T)/n``: the
    interval bounds the error of the mean for these topics, for their population, and for any finite population of N
    topics (``Var_t(μ_t) (1/n - 1/N) + mean σ_t²/N``), and overcovers the population mean if σ² is large. It adds half
    of the variance that multiple imputation adds (Rubin 1987, section 3.1), whose variance is too large if imputations
    use more information than the analysis (Meng 1994). docs/explanation/statistics.md has the simulated coverage.

    Source: Searle, Casella and McCulloch 1992, chapter 3; Davison and Hinkley 1997, section 3.8 (nested resampling);
    Sobol 1993 and Saltelli et al. 2010 (first-order indices).
    """
    if n_qids < 1:
        raise InputError(f"draws: {n_qids} topics with {n_draws} draws; wanted at least one topic and two draws")
    # The same resamples as those of intervals over topics.
    counts = resampled_counts(n_qids, n_draws, stream(seed, ""))
    noise, means, drawn = nested_noise(draws, counts)
    within = drawn if variances is None else variances
    scored = means if values is None else values
    named = {source: within} if isinstance(source, str) else source
    parts = np.stack(list(named.values()))
    noise_share = 1.0 if scores == "measured" else 0.0 if values is not None else 1 / n_draws
    # Errors that topics share do not vary over topics.
    components = _Components(scored, within, noise_share * (within if common is None else drawn), parts, counts)
    contributions = components.contributions()
    low, high = components.share_limits(contributions, level)
    resampled = components.rescaled_resample_means(contributions[:, 0])
    if method == "nested":
        limits = _limits(resampled + noise + (0.0 if common is None else common), level)
    else:
        limits = _satterthwaite_limits(scored, contributions, scores, level)
    without = ", without noise" if scores == "measured" else ""
    sources = [TOPICS, *named]
    together = Intervals(*limits, f"{', '.join(sources[:-1])} and {sources[-1]} ({method})")
    alone = Intervals(*_limits(resampled, level), f"{TOPICS} (percentile{without})")
    sources += [INTERACTIONS] if len(named) > 1 else []
    return Combined(sources, scored.mean(axis=1), contributions, low, high, together, alone, level, n_qids, scores)


def _satterthwaite_limits(values: Floats, contributions: Floats, scores: str, level: float) -> tuple[Floats, Floats]:
    from scipy import special

    n, total = values.shape[1], contributions.sum(axis=1)
    if n == 1:
        return np.full(len(total), np.nan), np.full(len(total), np.nan)
    ratio = np.divide(total, contributions[:, 0], out=np.full(len(total), np.inf), where=contributions[:, 0] > 0)
    freedom = np.minimum((n - 1) * np.where(scores == "measured", 1.0, ratio**2), 1e12)
    half_width = special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(total)
    return values.mean(axis=1) - half_width, values.mean(axis=1) + half_width


@dataclass(frozen=True)
class _Named:
    """A perturbation with a separate name for its random numbers."""

    perturbation: Any
    name: str

    @property
    def target(self) -> str:
        return getattr(self.perturbation, "target", "intents")

    def apply(self, state: Any, draws: Draws) -> Any:
        return self.perturbation.apply(state, replace(draws, name=self.name))


def perturbations_by_source(perturbations: Sequence[Any] | Mapping[str, Any]) -> dict[str, list[Any]]:
    """Group perturbations by source of uncertainty, ``"intents"`` or ``"tags"``, with the class name if several.

    Each perturbation of a sequence is a separate source; a mapping names them, with one or several perturbations of a
    source.
    """
    if hasattr(perturbations, "items"):
        named = {
            str(name): list(some) if isinstance(some, (list, tuple)) else [some] for name, some in perturbations.items()
        }
    else:
        listed = list(perturbations) if isinstance(perturbations, (list, tuple)) else [perturbations]
        targets = [getattr(one, "target", "intents") for one in listed]
        kinds = numbered_names(f"{target} ({type(one).__name__})" for target, one in zip(targets, listed, strict=True))
        names = [target if targets.count(target) == 1 else kind for target, kind in zip(targets, kinds, strict=True)]
        named = dict(zip(names, ([one] for one in listed), strict=True))
    if not named or not all(named.values()):
        raise ParameterError("replicas: no perturbation; give at least one, such as [Dirichlet(10)]")
    for name, some in named.items():
        if name in {"topics", "interactions"}:
            raise ParameterError(f"replicas: a source cannot be called {name!r}, the name of another row of the result")
        for one in some:
            check_perturbation(one)
            if len(named) > 1 and "turn" in {getattr(one, "order", None), getattr(one, "which", None)}:
                raise ParameterError(
                    f"{type(one).__name__} takes turns, which are the same in every draw, so that its variance cannot "
                    "be separated from other sources; use random draws, or this perturbation alone"
                )
    return named


def crossed_replicas(
    intents: Any,
    systems: Mapping[str, Matches],
    sources: Mapping[str, Sequence[Any]],
    statistic: Statistic,
    *,
    n_replicas: int = N_REPLICAS,
    seed: int = 0,
    progress: bool = False,
) -> tuple[Replicas, dict[str, Floats]]:
    """Replicas under all sources at once, and for each source replicas that share only the draws of this source.

    The former equal those of :func:`replicate`; the latter, with two sources or more, are scores of shape (n_systems,
    B, n_topics) with new draws of all other sources, for :func:`first_order`.
    """
    pairs = [(source, one) for source, some in sources.items() for one in some]
    names = numbered_names(type(one).__name__ for _, one in pairs)

    def draw_replicas(kept: str | None) -> Replicas:
        # The suffix belongs to the label of the random stream, and so to the numbers.
        noise = [
            _Named(one, name if kept in {None, source} else f"{name} anew")
            for (source, one), name in zip(pairs, names, strict=True)
        ]
        return replicate(intents, systems, noise, [statistic], n_replicas=n_replicas, seed=seed, progress=progress)

    replicas = draw_replicas(None)
    again = {source: draw_replicas(source).values[:, 0] for source in sources} if len(sources) > 1 else {}
    return replicas, again


def first_order(scores: Floats, again: Floats) -> Floats:
    """``Var(E[score | source])`` from pairs of scores that share only the draws of that source, over the first axis.

    It is their covariance (Sobol 1993) around their common mean (Janon et al. 2014).
    """
    n = len(scores)
    middle = (scores.mean(axis=0) + again.mean(axis=0)) / 2
    return np.asarray(((scores - middle) * (again - middle)).sum(axis=0) / (n - 1))
