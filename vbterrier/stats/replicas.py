"""Replicas of scores under perturbed intents and tags (Ding 2025, section 3.5 and Algorithm 1)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, check_level, choice, examples, excerpt, warn, whole
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.normal import normal_quantile
from vbterrier.kernels.resample import bca_acceleration
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.kernels.vb import per_topic
from vbterrier.log import bar
from vbterrier.stats.candidates import CandidateArrays, Draws, State
from vbterrier.stats.matches import AlignedMatches, Matches, PooledSuccess, Statistic, WeightedSuccess
from vbterrier.stats.perturbations import IntentBootstrap
from vbterrier.stats.topic_intervals import Intervals, bca_limits, proportion_below, tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vbterrier.annotations import Floats


REPLICA_METHODS = ("percentile", "bca", "normal")


@with_usual_errors
def hoeffding_replicas(epsilon: float, delta: float, *, alpha: float = 0.0) -> int:
    """Smallest number of replicas whose mean is within ``epsilon`` of its expectation with probability ``1 - delta``.

    The smallest B with ``2 exp(-2 B ε² / R²) <= δ``. ``R`` is the range of a replica's score: 1 for ES (``alpha=0``),
    ``1 - (1 - sqrt(1 + α²))/2`` for VB_α, which can be negative; the paper's claim is for ES.

    Parameters
    ----------
    epsilon, delta
        The tolerated error, above 0, and the probability of a larger error, in (0, 1).
    alpha
        Weight of the variance penalty, at least 0.

    Returns
    -------
    int
        The number of replicas.

    Examples
    --------
    >>> hoeffding_replicas(0.05, 0.05), hoeffding_replicas(0.05, 0.05, alpha=1)
    (738, 1076)
    """
    width = _score_range(alpha)
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf):
        raise ParameterError(f"epsilon={excerpt(epsilon)}: wanted a number above 0")
    _check_probability(delta)
    return max(1, math.ceil(width * width * math.log(2 / delta) / (2 * epsilon * epsilon)))


@with_usual_errors
def hoeffding_error(n_replicas: int, delta: float, *, alpha: float = 0.0) -> float:
    """Error that the mean of B replicas exceeds with probability at most ``delta``.

    ``ε = R sqrt(ln(2/δ) / (2 B))``, see :func:`hoeffding_replicas`.

    Parameters
    ----------
    n_replicas
        The number of replicas B, at least 1.
    delta, alpha
        As for :func:`hoeffding_replicas`.

    Returns
    -------
    float
        The error ε, in the unit of the scores.

    Examples
    --------
    >>> round(hoeffding_error(1000, 0.05), 4)
    0.0429
    """
    whole("n_replicas", n_replicas)
    _check_probability(delta)
    return _score_range(alpha) * math.sqrt(math.log(2 / delta) / (2 * n_replicas))


def _score_range(alpha: float) -> float:
    if not (isinstance(alpha, (int, float)) and 0 <= alpha < math.inf):
        raise ParameterError(f"alpha={excerpt(alpha)}: wanted a number of at least 0")
    return (1 + math.hypot(1, alpha)) / 2


def _check_probability(delta: float) -> None:
    if not (isinstance(delta, (int, float)) and 0 < delta < 1):
        raise ParameterError(f"delta={excerpt(delta)}: wanted a number between 0 and 1, such as 0.05")


def replica_intervals(
    replicas: Floats,
    *,
    point: Floats | None = None,
    acceleration: Floats | None = None,
    level: float = 0.95,
    method: str = "percentile",
    source: str = "replicas",
) -> Intervals:
    """Confidence intervals of scores from their replicas.

    - ``replicas``: scores, with the replicas along the first axis, shape (B, ...).
    - ``point``: scores without perturbation, shape (...); needed for ``"bca"``.
    - ``acceleration``: of the BCa interval, shape (...), see :func:`vbterrier.kernels.resample.bca_acceleration`;
      defined if units, such as intents, were resampled. By default 0, which is stated in the name of the method.
    - ``method``: ``"percentile"``: the quantiles ``(1 ± level)/2`` of the replicas. ``"bca"``: quantiles adjusted for
      the proportion of replicas below the point (ties count half) and for the acceleration (Efron 1987). ``"normal"``:
      the formula of the paper, ``mean_b ± z s_b/sqrt(B)``: only the Monte Carlo error of the mean over replicas.
    - ``source``: ``"replicas"`` or ``"intents"``, for the name of the method.

    Percentile intervals have their nominal coverage if the true value deviates from the observed one as replicas do.
    They do not correct bias, and undercover for few intents; docs/explanation/evidence-other.md has the simulated
    coverage.
    """
    choice("method", method, REPLICA_METHODS)
    check_level(level)
    if method == "percentile":
        low, high = np.quantile(replicas, tail_probabilities(level), axis=0)
        return Intervals(low, high, f"{source} (percentile)")
    if method == "normal":
        mean, n, name = replicas.mean(axis=0), len(replicas), f"{source} (normal, Monte Carlo error)"
        if n == 1:
            warn("the error of a mean needs at least two replicas")
            return Intervals(np.full_like(mean, np.nan), np.full_like(mean, np.nan), name)
        half_width = normal_quantile((1 + level) / 2) * replicas.std(axis=0, ddof=1) / np.sqrt(n)
        return Intervals(mean - half_width, mean + half_width, name)
    if point is None:
        raise ParameterError("method='bca' needs the score without perturbation: give point")
    share = proportion_below(replicas, point, REPLICA_ROUNDING)
    if outside := int(((share == 0) | (share == 1)).sum()):
        warn(
            f"{outside} of {share.size} scores without perturbation lie outside the range of their replicas: the "
            "perturbation shifts these scores, and their BCa intervals end at the nearest replica; use "
            "method='percentile'"
        )
    low, high = bca_limits(replicas, share, 0.0 if acceleration is None else acceleration, tail_probabilities(level))
    return Intervals(low, high, f"{source} (bca{', acceleration 0' if acceleration is None else ''})")


N_REPLICAS = 1000
# Size of an array held in memory: replicas times the candidates, violations or matches of some queries.
_ARRAY_SIZE = 100_000


@dataclass(frozen=True, eq=False)
class Replicas:
    """Scores of systems in every replica.

    ``values``: shape (n_systems, n_statistics, B, n_topics). ``point``: scores without any perturbation, shape
    (n_systems, n_statistics, n_topics).
    """

    topics: list[str]
    systems: list[str]
    statistics: list[Statistic]
    values: Floats
    point: Floats
    perturbations: tuple[Any, ...]
    seed: int

    @property
    def n_replicas(self) -> int:
        """B."""
        return int(self.values.shape[2])

    @property
    def mean(self) -> Floats:
        """The paper's estimate ``mean_b score^(b)``, shape (n_systems, n_statistics, n_topics)."""
        return np.asarray(self.values.mean(axis=2))

    def of(self, system: str, statistic: Statistic) -> Floats:
        """Return the scores of one system and statistic, shape (B, n_topics)."""
        for what, one, present in (("system", system, self.systems), ("statistic", statistic, self.statistics)):
            if one not in present:
                raise ParameterError(f"{what} {str(one)!r} was not replicated; found {examples(map(str, present))}")
        return np.asarray(self.values[self.systems.index(system), self.statistics.index(statistic)])

    @property
    def source(self) -> str:
        """The source of uncertainty: ``"intents"`` if only intents were resampled, else ``"replicas"``."""
        return "intents" if self.perturbations == (IntentBootstrap(),) else "replicas"

    def only(self, statistics: Sequence[Statistic]) -> Replicas:
        """Return the scores of some of the statistics."""
        places = [self.statistics.index(statistic) for statistic in statistics]
        return replace(self, statistics=list(statistics), values=self.values[:, places], point=self.point[:, places])

    def pool_queries(self, statistics: Sequence[Statistic]) -> Replicas:
        """Return scores of the joint intents of all queries as those of one query, from :func:`moment_statistics`."""

        def scores(values: Floats) -> Floats:
            columns = []
            for statistic in statistics:
                success, spread, top = (values[:, self.statistics.index(one)] for one in moment_statistics([statistic]))
                moments = (success, success**2 + spread**2, top)
                columns.append(statistic.of(PooledSuccess(*(moment.mean(axis=-1) for moment in moments))))
            return np.stack(columns, axis=1)[..., None]

        values, point = scores(self.values), scores(self.point)
        return replace(self, topics=[""], statistics=list(statistics), values=values, point=point)

    def frame(self, *, level: float = 0.95, method: str = "percentile", left_out: Floats | None = None) -> pd.DataFrame:
        """Return a row for each system, query and statistic, with an interval of the score of the query.

        The columns are name, qid, measure, value (the unperturbed score), mean, std (of the replicas), low, high,
        level, method. ``left_out``, the result of :func:`left_out`, gives the acceleration of the BCa intervals of
        resampled intents.
        """
        replicas = np.moveaxis(self.values, 2, 0)
        acceleration = None if left_out is None else bca_acceleration(left_out)
        limits = self._limits(replicas, self.point, acceleration, level, method)
        names, measures, topics = np.meshgrid(self.systems, list(map(str, self.statistics)), self.topics, indexing="ij")
        std = replicas.std(axis=0, ddof=1) if len(replicas) > 1 else np.full(self.point.shape, np.nan)
        arrays = {"name": names, "qid": topics, "measure": measures, "value": self.point, "mean": self.mean, "std": std}
        frame = pd.DataFrame({name: array.ravel() for name, array in arrays.items()})
        return frame.assign(low=limits.low.ravel(), high=limits.high.ravel(), level=level, method=limits.method)

    def intervals(
        self, *, level: float = 0.95, method: str = "percentile", left_out: Floats | None = None
    ) -> pd.DataFrame:
        """Return the C frame of means over these queries, with intervals of their variation between replicas.

        ``value`` is the mean unperturbed score, ``mean`` the mean over replicas, the paper's ``VB^ = mean_b VB^(b)``.
        The interval lies around the latter: if noise shifts scores, it may not contain ``value``. See :meth:`frame`.
        """
        means, point = self.values.mean(axis=3), self.point.mean(axis=2)
        acceleration = None if left_out is None else bca_acceleration(left_out, of_mean=True)
        limits = self._limits(np.moveaxis(means, 2, 0), point, acceleration, level, method)
        names, measures = np.meshgrid(self.systems, list(map(str, self.statistics)), indexing="ij")
        arrays = {"name": names, "measure": measures, "value": point, "low": limits.low, "high": limits.high}
        frame = pd.DataFrame({name: array.ravel() for name, array in arrays.items()})
        frame = frame.assign(level=level, method=limits.method, n_qids=len(self.topics), n_resamples=self.n_replicas)
        return frame.assign(seed=self.seed, mean=means.mean(axis=2).ravel())

    def _limits(
        self, replicas: Floats, point: Floats, acceleration: Floats | None, level: float, method: str
    ) -> Intervals:
        options: dict[str, Any] = {"level": level, "method": method, "source": self.source}
        return replica_intervals(replicas, point=point, acceleration=acceleration, **options)


def moment_statistics(statistics: Sequence[Statistic]) -> list[Statistic]:
    """Return the statistics from which pooled scores follow: ES, its standard deviation, the most probable intent."""
    kinds = dict.fromkeys(statistic.kind for statistic in statistics)
    variances = {"ES": "bernoulli", "VarPenalty": "intent", "TopIntent": "bernoulli"}
    return [
        Statistic(measure, cutoff, gain=gain, variance=variance)
        for cutoff, gain in kinds
        for measure, variance in variances.items()
    ]


def replicate(
    intents: Any,
    systems: Mapping[str, Matches | Sequence[Matches]],
    perturbations: Sequence[Any],
    statistics: Sequence[Statistic] = (Statistic("ES"), Statistic("VB")),
    *,
    n_replicas: int = N_REPLICAS,
    seed: int = 0,
    progress: bool = False,
) -> Replicas:
    """Score systems repeatedly under perturbed candidates and tags.

    In a replica, all systems share the perturbed candidates and the perturbed tags of documents, so that differences
    between systems are paired.

    - ``intents``: I frame: qid, entity_id, prob [, delta, violations].
    - ``systems``: the matches of each system with the rows of that frame. For a system that was run again, a list: its
      matches for each frame of the :class:`Variants` among the perturbations, then those for the queries as given. A
      replica of a query then uses the ranking that belongs to its candidates.
    - ``perturbations``: applied in this order, perturbations of tags after those of candidates; with none, equal
      replicas.
    - ``n_replicas, seed``: B, at least 1. Replica b of a query does not depend on B, the other queries, the other
      systems or the order of rows.

    Queries are processed in blocks, so that memory beside the result is bounded by about twenty arrays of 200,000
    numbers, or of the number of candidates of the largest query.
    """
    whole("n_replicas", n_replicas)
    whole("seed", seed, low=0)
    # Perturbations of candidates and of tags, each with the name of its random stream.
    noise: dict[str, list[tuple[str, Any]]] = {"intents": [], "tags": []}
    for perturbation, name in zip(
        perturbations, numbered_names(type(one).__name__ for one in perturbations), strict=True
    ):
        check_perturbation(perturbation)
        noise[getattr(perturbation, "target", "intents")].append((name, perturbation))
    candidates = CandidateArrays.of(intents)
    plan = _ReplicaPlan(candidates, _aligned_matches(systems, candidates), list(statistics))
    values = plan.scores(n_replicas, seed, noise["intents"], noise["tags"], progress=progress)
    point = plan.scores(1, seed, [], [])[:, :, 0]
    return Replicas(candidates.topics, list(systems), plan.statistics, values, point, tuple(perturbations), seed)


def left_out(
    intents: Any,
    systems: Mapping[str, Matches | Sequence[Matches]],
    statistics: Sequence[Statistic] = (Statistic("ES"), Statistic("VB")),
) -> Floats:
    """Jackknife over intents: scores of each query with each of its candidates left out in turn.

    Returns an array of shape (n_systems, n_statistics, most candidates, n_topics); NaN after a query's last candidate,
    for candidates of probability 0 (which do not affect scores), and if no candidate would be left.
    """
    candidates = CandidateArrays.of(intents)
    plan = _ReplicaPlan(candidates, _aligned_matches(systems, candidates), list(statistics))
    return plan.scores(int(candidates.sizes.max(initial=0)), 0, [("", _LeaveOneOut())], [], undefined=True)


def _aligned_matches(
    systems: Mapping[str, Matches | Sequence[Matches]], candidates: CandidateArrays
) -> list[list[AlignedMatches]]:
    """Return the rankings of each system: one, or one for each frame of the variants and one for the given queries."""
    return [
        [AlignedMatches(one, candidates, name) for one in ([matches] if isinstance(matches, Matches) else matches)]
        for name, matches in systems.items()
    ]


def check_perturbation(perturbation: Any) -> None:
    """Raise an error unless an object is a perturbation."""
    if isinstance(perturbation, type) or not hasattr(perturbation, "apply"):
        raise ParameterError(f"perturbation {perturbation!r}: wanted an object with apply, such as Dirichlet(10)")


def numbered_names(names: Iterable[str]) -> list[str]:
    """Append numbers to repeated names, so that perturbations of the same class have separate random streams."""
    seen: Counter[str] = Counter()
    numbered_names = []
    for name in names:
        seen[name] += 1
        numbered_names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return numbered_names


class _ReplicaPlan:
    """Systems, each with its rankings, and statistics over the same candidates, scored block by block."""

    def __init__(
        self, whole: CandidateArrays, systems: list[list[AlignedMatches]], statistics: list[Statistic]
    ) -> None:
        self.whole, self.systems, self.statistics = whole, systems, statistics
        self.kinds = list(dict.fromkeys(statistic.kind for statistic in statistics))

    def scores(
        self,
        n_replicas: int,
        seed: int,
        of_intents: list[tuple[str, Any]],
        of_tags: list[tuple[str, Any]],
        *,
        undefined: bool = False,
        progress: bool = False,
    ) -> Floats:
        """Compute scores, shape (n_systems, n_statistics, B, n_topics)."""
        gains = None
        if not of_tags:
            gains = [[[one.gain(*kind) for one in system] for kind in self.kinds] for system in self.systems]
        values = np.empty((len(self.systems), len(self.statistics), n_replicas, len(self.whole.topics)))
        batches = self._batches(n_replicas, seed, with_tags=bool(of_tags))
        for first, last, draws in _batches_with_progress(batches, values.shape[-1], progress=progress):
            state = State.from_candidates(draws.candidates)
            for name, perturbation in of_intents:
                state = perturbation.apply(state, draws.with_name(name))
            weights = state.weights
            total = per_topic(weights, draws.candidates.topic, last - first)
            if undefined:
                total[total == 0] = np.nan
            elif not (total > 0).all():
                _, topic = np.argwhere(~(total > 0))[0]
                raise InputError(
                    f"query {self.whole.topics[first + int(topic)]!r} has no candidate left after "
                    f"{' >> '.join(repr(perturbation) for _, perturbation in of_intents)}; keep at least one"
                )
            rows = slice(draws.first, draws.first + draws.n)
            for number, system in enumerate(self.systems):
                if gains is None:
                    noisy = [_noisy_gains(one, first, last, of_tags, draws, self.kinds) for one in system]
                    each_kind = [list(of_kind) for of_kind in zip(*noisy, strict=True)]
                else:
                    each_kind = [[gain[:, draws.candidates.span] for gain in of_kind] for of_kind in gains[number]]
                kind_gains = [_of_variant(of_kind, state) for of_kind in each_kind]
                served = [WeightedSuccess(weights, total, gain, draws.candidates.topic) for gain in kind_gains]
                for column, statistic in enumerate(self.statistics):
                    success = served[self.kinds.index(statistic.kind)]
                    values[number, column, rows, first:last] = statistic.of(success)
        return values

    def _batches(self, n_replicas: int, seed: int, *, with_tags: bool) -> Iterator[tuple[int, int, Draws]]:
        """Yield batches of consecutive queries and consecutive replicas that fit in memory."""
        cost = self.whole.sizes * (1 if self.whole.violations is None else 1 + self.whole.violations.shape[1])
        if with_tags:
            n, aligned = len(self.whole.topics), chain.from_iterable(self.systems)
            cost = np.max([cost, *(np.bincount(self.whole.topic[one.intent], minlength=n) for one in aligned)], axis=0)
        ends = np.cumsum(cost)
        block = (ends - cost) // max(1, _ARRAY_SIZE // n_replicas)
        bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(cost)] if len(cost) else []
        for first, last in pairwise(bounds):
            draws = Draws(seed, self.whole.block(first, last))
            step = max(1, 2 * _ARRAY_SIZE // max(1, int(cost[first:last].sum())))
            for start in range(0, n_replicas, step):
                yield first, last, replace(draws, first=start, n=min(step, n_replicas - start))


def _noisy_gains(
    system: AlignedMatches, first: int, last: int, noise: list[tuple[str, Any]], draws: Draws, kinds: Sequence[Any]
) -> list[Floats]:
    """Return the gains of a ranking under perturbed tags, an array of shape (b, n) for each kind of gain."""
    tagged, matched = system.tagged_block(first, last)
    for name, perturbation in noise:
        tagged = perturbation.apply(tagged, draws.with_name(name))
    return [system.noisy_gain(tagged, matched, *kind) for kind in kinds]


def _of_variant(gains: list[Floats], state: State) -> Floats:
    """Return the gains of the ranking that each replica of a query uses, shape (b or 1, n)."""
    if len(gains) == 1 or state.variant is None:
        return gains[-1]
    variant = state.variant[:, state.candidates.topic]
    chosen_gain = np.empty(np.broadcast_shapes(variant.shape, gains[0].shape))
    for number, gain in enumerate(gains):
        # The last ranking is that of the queries as given, number -1.
        uses = variant == (number if number < len(gains) - 1 else -1)
        np.copyto(chosen_gain, gain, where=uses)
    return chosen_gain


def _batches_with_progress(
    batches: Iterator[tuple[int, int, Draws]], n_topics: int, *, progress: bool
) -> Iterator[tuple[int, int, Draws]]:
    """Yield the batches, optionally with a progress bar that counts queries."""
    with bar(None, "replicas", shown=progress, total=n_topics, unit="query") as shown:
        for first, last, draws in batches:
            yield first, last, draws
            shown.update(last - shown.n)


class _LeaveOneOut:
    """Perturbation that removes the b-th candidate of each query in replica b."""

    def apply(self, state: State, draws: Draws) -> State:
        """Remove one candidate; remove all if there is no b-th candidate, which makes the score undefined."""
        here = state.candidates
        number = np.arange(len(here)) - here.starts[here.topic]
        removed = number == draws.replicas[:, None]
        exists = per_topic((removed & state.alive).astype(np.float64), here.topic, len(here.topics)) > 0
        return state.with_base(np.where(removed | ~exists[:, here.topic], -np.inf, state.log_base))


def excludes_its_score(intervals: pd.DataFrame) -> pd.Series[bool]:
    """Return True for intervals of replicas that exclude the score of the unperturbed data.

    Perturbations that only add errors, such as confused tags, move all replicas to one side: their interval is that of
    a score under more errors than the given data have, not of the given score.
    """
    of_replicas = intervals["method"].str.startswith(("replicas", "intents"))
    outside = (intervals["value"] < intervals["low"] - REPLICA_ROUNDING) | (
        intervals["value"] > intervals["high"] + REPLICA_ROUNDING
    )
    return of_replicas & outside
