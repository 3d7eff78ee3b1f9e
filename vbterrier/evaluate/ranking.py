"""Rankings of systems with uncertainty from unjudged documents and topics."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, excerpt, printable, require_system
from vbterrier.evaluate.inputs import evaluation_target, fitted_runs, loaded_runs, measure_with_distribution
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import MAX_BARS, Bar, IntervalPicture
from vbterrier.frames.queries import sample_by, selected_queries, warn_of_weights
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.results import Shown, measure_text, systems_line
from vbterrier.kernels.mean_limits import drawn_errors, lower_limit, upper_limit
from vbterrier.kernels.resample import stream
from vbterrier.kernels.student_t import t_quantile
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.log import log_elapsed
from vbterrier.measures.target import Scoring
from vbterrier.measures.unjudged import estimand
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.comparisons import system_pairs
from vbterrier.unjudged.estimated import Joint, joint_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.contracts import Bounds
    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.kernels.mean_limits import SampledQueries
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.measures.unjudged import UnjudgedMeasure
    from vbterrier.remedies import Call
    from vbterrier.unjudged.distribution import ScoreDistributions
    from vbterrier.unjudged.fitted import EvidenceModel
    from vbterrier.unjudged.joint import ScoresOnTopics


_LOG = logging.getLogger(__name__)
# Sources of uncertainty, and the method in tables.
UNCERTAINTY = {"unjudged": "unjudged (draws)", "topics": "topics (percentile)", "both": "unjudged and topics (draws)"}
# With weights or clusters of queries, topics are not resampled.
_SAMPLED_TOPICS = "sampled topics"
_SAMPLE_METHODS = {
    "unjudged": f"unjudged (draws) of {_SAMPLED_TOPICS}",
    "topics": f"{_SAMPLED_TOPICS} (t, unseen)",
    "both": f"unjudged (draws) and {_SAMPLED_TOPICS} (t, unseen)",
}
N_DRAWS = 2000
_PAIR = ["name_a", "name_b"]
# Arguments that a plan of judgments has, too.
_NEXT_STEP_ARGUMENTS = (
    "runs",
    "qrels",
    "measure",
    "labels",
    "model",
    "pool_cutoff",
    "on_topics",
    "duplicates",
    "system",
    "data",
)
# Drawn differences that are in memory at a time, few enough for the processor's cache.
_BLOCK_CELLS = 1 << 17


@dataclass(frozen=True, eq=False, repr=False)
class SystemRanking(Shown):
    """Result of :func:`rank_systems`.

    - ``systems``: one row per system, ordered by expected rank: name, measure, mean, low, high (of the mean),
      expected_rank, rank_low, rank_high, p_best_unjudged, p_best_both, n_unjudged_share (mean share of unjudged
      documents up to the cutoff), level, method, n_qids, n_draws, seed, and estimand (the score that a measure of the
      E family estimates, with the depth of its judgments). Rank 1 is best; tied systems get their mean rank and equal
      shares of the best rank. ``p_best_unjudged`` is the probability of the best mean over these topics, over the
      grades of unjudged documents; ``p_best_both`` that over other topics from the same population as well (NaN for
      one topic)
    - ``pairs``: one row per pair of systems, or per system and the baseline: name_a, name_b, measure, diff (of the
      means, a - b), low, high, level, p_a_beats_b (a tie counts half) with the uncertainty of ``method``, and likewise
      p_a_beats_b_unjudged and p_a_beats_b_both; method, n_qids, n_draws, seed
    - ``rank_probabilities``: name, rank (1 to the number of systems), prob: tied systems share their ranks equally, so
      that the probabilities of every system and of every rank sum to 1
    """

    systems: pd.DataFrame
    pairs: pd.DataFrame
    rank_probabilities: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``systems``: a row per system."""
        return self.systems

    def _line(self) -> str:
        return f"{systems_line(self.systems)}; {self.systems['method'].iloc[0]}"

    def _verdict(self) -> Iterator[str]:
        best, n = self.systems.iloc[0], len(self.systems)
        measure = measure_text(best["measure"], best.get("estimand", ""))
        topics = count_text(int(best["n_qids"]), "topic")
        level = f"{100 * best['level']:g}% interval"
        mean = f"mean {best['mean']:.3f} ({level} {best['low']:.3f} to {best['high']:.3f})"
        rank = f"expected rank {best['expected_rank']:.2f} ({best['rank_low']:g} to {best['rank_high']:g})"
        if n == 1:
            yield f"By {measure}, over {topics}: {printable(best['name'])}, {mean}."
            return
        first, others = self._tied_first()
        name, equal = printable(best["name"]), ", ".join(map(printable, first["name"].iloc[1:]))
        place = f"the first of {n} systems over {topics}" + (f", as is {equal} with equal scores" if equal else "")
        head = f"By {measure}, {name} is {place}: {mean}, {rank}"
        if not len(others):
            yield f"{head}."
            return
        second = others.iloc[0]
        rest = f"{printable(second['name'])}, expected rank {second['expected_rank']:.2f}"
        yield f"{head}; the {'next' if equal else 'second'} is {rest}."
        pair = {best["name"], second["name"]}
        for row in self.pairs.to_dict("records"):
            if {row["name_a"], row["name_b"]} == pair:
                beats = row["p_a_beats_b"] if row["name_a"] == best["name"] else 1 - row["p_a_beats_b"]
                yield f"{printable(best['name'])} beats {printable(second['name'])} with probability {beats:.2f}."

    def _tied_first(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The first system with those that equal it in all columns, such as copies of its run, and the others."""
        values = self.systems[["mean", "low", "high", "expected_rank", "rank_low", "rank_high"]]
        is_tied = (values == values.iloc[0]).all(axis=1)
        return self.systems[is_tied], self.systems[~is_tied]

    def _next(self, call: Call) -> str:
        pair = [str(names.iloc[0]) for systems in self._tied_first() if len(names := systems["name"])]
        # Plans of judgments have no weights.
        is_sampled = _SAMPLED_TOPICS in self.systems["method"].iloc[0]
        if len(pair) < 2 or is_sampled or not (self.systems["n_unjudged_share"] > 0).any():  # noqa: PLR2004 - a pair
            return ""
        between: Any = tuple(pair) if call.options is None else ",".join(pair)
        return call.next("judge", "judge_next", _NEXT_STEP_ARGUMENTS, difference=between, budget=20)

    def _picture(self) -> IntervalPicture:
        rows = self.systems.head(MAX_BARS)
        bars = [Bar(*row) for row in rows[["name", "mean", "low", "high"]].itertuples(index=False, name=None)]
        one = rows.iloc[0]
        return IntervalPicture(f"mean {one['measure']}, {100 * one['level']:g}% intervals", tuple(bars))

    def _panels(self) -> Iterator[Panel]:
        ranks = {column: self.systems[column].map("{:g}".format) for column in ("rank_low", "rank_high")}
        yield Panel("Systems by expected rank", self.systems.assign(**ranks), value="mean")
        yield Panel("Differences a - b", self.pairs, value="diff", rule=0, heads=2)

    def _figures(self) -> Figures:
        return {
            "rank_uncertainty": lambda: {"ranking": self.ranks(), "probabilities": self.rank_probabilities},
            "beats_matrix": lambda: {"pairs": self.pairs},
        }

    def ranks(self) -> pd.DataFrame:
        """Expected ranks with intervals (low and high are ranks)."""
        columns = ["name", "mean", "expected_rank", "rank_low", "rank_high", "level"]
        columns += ["measure", "method", "n_qids", "n_draws", "seed"]
        return self.systems[columns].rename(columns={"rank_low": "low", "rank_high": "high"})


@with_defaults
def rank_systems(
    runs: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    uncertainty: str = "unjudged",
    baseline: str | None = None,
    data: Data = Data(
        labels=None,
        model=None,
        pool_cutoff=None,
        queries=None,
        on_topics="same",
        duplicates="error",
        system=None,
    ),
    inference: Inference = Inference(level=0.9, n_draws=N_DRAWS, seed=0),
    execution: Execution = Execution(progress=False),
) -> SystemRanking:
    """Rank systems with uncertain scores: intervals of ranks, and the probability that one system beats another.

    Labels of unjudged documents are drawn jointly for all systems: a document that several systems retrieve has the
    same grade in all of them, as far as their priors agree. In every draw, systems are ranked by their mean over
    topics.

    Parameters
    ----------
    runs, qrels
        See :func:`vbterrier.score`.
    measure, baseline
        A measure of the E or B family, or its name; draws depend on its model, or its prior and prior strength. The
        system that all other systems are paired with; ``None`` for all pairs.
    uncertainty
        ``"unjudged"``: draw the labels of unjudged documents, topics are fixed. ``"topics"``: resample the topics with
        their expected scores. ``"both"``: resample the topics in every draw of the labels.
    data
        A :class:`vbterrier.Data`: ``system``, ``labels``, ``model``, ``pool_cutoff``, ``queries``, ``on_topics``
        (``"same"``), ``duplicates`` (``"error"``). Of queries, weight and cluster are used: means are weighted, and
        topics are not resampled (see Notes).
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9), ``n_draws`` (2,000), ``seed`` (0). Intervals are between the
        quantiles ``(1 ± level)/2`` of the draws.
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    SystemRanking
        ``systems``: mean, expected rank and their intervals by system; ``pairs``: probabilities that one system beats
        another.

    Raises
    ------
    InputError, ParameterError
        See :func:`vbterrier.score`; a single topic with ``uncertainty="topics"`` or ``"both"``; a measure of neither
        family, or with a ``stat`` other than the mean; invalid options.

    Notes
    -----
    ``expected_rank`` of a system is 1 plus the sum of the probabilities that each other system beats it. ``"both"``
    adds the variance within and between imputed judgments, as multiple imputation does (Rubin 1987); with a correct
    prior, its intervals are slightly conservative. No interval covers a bias of the prior that all topics share. See
    :class:`vbterrier.unjudged.joint.JointDistribution` for priors of different strength. Cost: draws times unjudged
    documents; one topic is in memory at a time.

    Percentiles of resampled weighted means are too short: nominal 95 % intervals covered .44 to .95. With weights or
    clusters, the errors of the means of topics are draws of a multivariate t instead, with the variances and degrees of
    freedom that :func:`vbterrier.compare` uses, and intervals of means are those of :func:`vbterrier.score`, which
    count queries that were not sampled; with ``"both"``, distances from the mean of these and of the intervals over
    labels add as independent errors do.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 1, 0, 0]})
    >>> lists = {"old": ["a", "c"], "new": ["a", "unknown"]}
    >>> runs = {name: pd.DataFrame({"qid": "q1", "docno": result, "score": [2, 1]}) for name, result in lists.items()}
    >>> result = rank_systems(runs, qrels, "BNDCG(prior={0: 0.6, 1: 0.4})@2")
    >>> result.systems[["name", "rank_low", "rank_high"]].values.tolist()
    [['new', 1.0, 1.5], ['old', 1.5, 2.0]]
    >>> result.pairs["p_a_beats_b"].round(1).tolist()
    [0.7]
    """
    level, n_draws, seed = inference.level, inference.n_draws, inference.seed
    progress = execution.progress
    parsed = measure_with_distribution(measure)
    if parsed["stat"] != "mean":
        raise ParameterError(f"{parsed}: rank_systems needs the scores themselves; leave out stat={parsed['stat']!r}")
    choice("uncertainty", uncertainty, UNCERTAINTY)
    judged = evaluation_target(qrels, None, None)
    loaded = loaded_runs(runs, data.duplicates, data.system)
    if baseline is not None:
        require_system("baseline", baseline, loaded)
    _queries_table(data.queries, ())
    evidence: dict[str, Any] = {"labels": data.labels, "model": data.model, "pool_cutoff": data.pool_cutoff}
    loaded, target, models = fitted_runs(loaded, judged, parsed, data.on_topics, **evidence)
    if uncertainty != "unjudged" and len(target.topics) == 1:
        raise InputError(
            f"uncertainty={excerpt(uncertainty)} resamples topics, but there is only "
            f"{target.topics[0]!r}; ask for 'unjudged'"
        )
    joint, shares = joint_scores(loaded, target, parsed, models)
    sample = _topic_sample(data.queries, joint.topics, uncertainty)
    with log_elapsed(_LOG, "ranked %s systems over %s topics: %s draws", len(loaded), len(target.topics), n_draws):
        is_sampled = (len(target.topics) if sample is None else sample.n_units) > 1
        kinds = list(dict.fromkeys([uncertainty, "unjudged", *(["both"] if is_sampled else [])]))
        means, every = drawn_means(joint, kinds, n_draws, seed, progress=progress, sample=sample)
        sources = {kind: _drawn_scores(joint.names, means, draws) for kind, draws in zip(kinds, every, strict=True)}
    drawn_scores = sources[uncertainty]
    (low, high), (rank_low, rank_high) = equal_tails(drawn_scores.draws, level), equal_tails(drawn_scores.ranks, level)
    if sample is not None and uncertainty != "unjudged":
        over_labels = sources["unjudged"] if uncertainty == "both" else None
        low, high = _limits_of_means(joint, drawn_scores, over_labels, sample, level, score_bounds(str(parsed)))
    columns = {"mean": drawn_scores.means, "low": low, "high": high, "expected_rank": drawn_scores.ranks.mean(axis=1)}
    columns |= {"rank_low": rank_low, "rank_high": rank_high}
    systems = pd.DataFrame({"name": drawn_scores.names, "measure": str(parsed), **columns})
    named = system_pairs(drawn_scores.names, baseline)
    pairs = pd.DataFrame(named, columns=_PAIR)
    a, b = drawn_scores.places(pairs)
    tails = np.concatenate([equal_tails(gap, level) for gap in drawn_scores.gaps(a, b)], axis=1)
    pairs = pairs.assign(measure=str(parsed), diff=drawn_scores.means[a] - drawn_scores.means[b])
    beats = {kind: draws.beats(pairs) for kind, draws in sources.items()}
    pairs = pairs.assign(low=tails[0], high=tails[1], level=level, p_a_beats_b=beats[uncertainty])
    for source in ("unjudged", "both"):
        draws = sources.get(source)
        systems[f"p_best_{source}"] = np.nan if draws is None else systems["name"].map(draws.best())
        pairs[f"p_a_beats_b_{source}"] = beats.get(source, np.nan)
    systems = systems.assign(n_unjudged_share=systems["name"].map(shares), level=level)
    about: dict[str, Any] = {"estimand": estimand(parsed, models)} if models else {}
    about |= {"method": (UNCERTAINTY if sample is None else _SAMPLE_METHODS)[uncertainty], "n_qids": len(target.topics)}
    about |= {"n_draws": n_draws, "seed": seed}
    return SystemRanking(systems.assign(**about), pairs.assign(**about), _rank_probabilities(drawn_scores))


def system_distributions(
    measure: UnjudgedMeasure,
    runs: Mapping[str, Run],
    target: EvaluationTarget,
    models: Mapping[str, EvidenceModel] | None = None,
) -> dict[str, ScoreDistributions]:
    """The distributions of each system's scores."""
    return {name: measure.distribution(Scoring(target, run, measure.cutoff, models)) for name, run in runs.items()}


def joint_scores(
    runs: Mapping[str, Run],
    target: EvaluationTarget,
    measure: UnjudgedMeasure,
    models: Mapping[str, EvidenceModel] | None = None,
) -> tuple[Joint, dict[str, float]]:
    """The joint distribution of scores, and the mean share of unjudged documents of each system."""
    distributions = system_distributions(measure, runs, target, models)
    shares = {name: float(each.judged.unjudged_share().mean()) for name, each in distributions.items()}
    return joint_distribution(distributions), shares


@dataclass(frozen=True, eq=False)
class _DrawnScores:
    """Systems by expected rank: mean scores, shape (S,), and the scores of each draw, (S, n_draws)."""

    names: list[str]
    means: Floats
    draws: Floats
    n_better: Ints
    n_tied: Ints

    @property
    def ranks(self) -> Floats:
        return 1 + self.n_better + self.n_tied / 2

    def best(self) -> dict[str, float]:
        """The probability that each system is the best; tied systems share it."""
        best = np.where(self.n_better == 0, 1 / (1 + self.n_tied), 0.0).mean(axis=1)
        return dict(zip(self.names, best.tolist(), strict=True))

    def places(self, pairs: pd.DataFrame) -> list[Any]:
        place = {name: at for at, name in enumerate(self.names)}
        return [pairs[side].map(place).to_numpy() for side in _PAIR]

    def beats(self, pairs: pd.DataFrame) -> Floats:
        """The probability that system a of each pair beats system b; a tie counts half."""
        counts = [
            np.count_nonzero(gap > REPLICA_ROUNDING, axis=1) + np.count_nonzero(gap >= -REPLICA_ROUNDING, axis=1)
            for gap in self.gaps(*self.places(pairs))
        ]
        return np.asarray(np.concatenate(counts) / (2 * self.draws.shape[1]))

    def gaps(self, a: Ints, b: Ints) -> Iterator[Floats]:
        """Yield drawn differences of pairs of places, shape (n_pairs, n_draws), for a block of pairs at a time."""
        step = max(_BLOCK_CELLS // self.draws.shape[1], 1)
        for start in range(0, max(len(a), 1), step):
            these = slice(start, start + step)
            yield self.draws[a[these]] - self.draws[b[these]]


def _queries_table(queries: Any, qids: Sequence[str]) -> pd.DataFrame | None:
    """The W frame of the topics, by id; ``None`` without one. Without topics, columns alone are checked."""
    if queries is None:
        return None
    return selected_queries(queries, qids, call="rank_systems", honoured=("weight", "cluster"))


def _topic_sample(queries: Any, topics: Sequence[str], uncertainty: str) -> SampledQueries | None:
    """The sample that the topics are; ``None`` without a table of queries."""
    table = _queries_table(queries, topics)
    warn_of_weights(table)
    sampled = sample_by(table)
    if sampled is None:
        return None
    sample = sampled(topics)
    if uncertainty != "unjudged" and sample.n_units == 1:
        raise InputError("queries: all topics are in one cluster, so that nothing varies; ask for 'unjudged'")
    return sample


def _limits_of_means(
    joint: Joint,
    drawn: _DrawnScores,
    over_labels: _DrawnScores | None,
    sample: SampledQueries,
    level: float,
    bounds: Bounds,
) -> tuple[Floats, Floats]:
    """Intervals of the weighted means, each of shape (S,), in the order of the draws."""
    places = [joint.names.index(name) for name in drawn.names]
    expected = np.array([joint.distributions[place].mean for place in places]).T
    moments, tail = sample.moments(expected), (1 - level) / 2
    low = lower_limit(moments, tail, -bounds[0], t_quantile)
    high = upper_limit(moments, tail, bounds[1], t_quantile)
    if over_labels is not None:
        places = [over_labels.names.index(name) for name in drawn.names]
        below, above = equal_tails(over_labels.draws[places], level)
        low = moments.mean - np.hypot(moments.mean - low, np.minimum(below - moments.mean, 0))
        high = moments.mean + np.hypot(high - moments.mean, np.maximum(above - moments.mean, 0))
    return np.clip(low, *bounds), np.clip(high, *bounds)


def _drawn_scores(names: list[str], means: Floats, draws: Floats) -> _DrawnScores:
    n_better, n_tied = _rank_counts(draws)
    drawn = _DrawnScores(names, means, draws, n_better, n_tied)
    expected = drawn.ranks.mean(axis=1)
    order = sorted(range(len(means)), key=lambda at: (expected[at], -means[at], names[at]))
    return _DrawnScores([names[at] for at in order], means[order], draws[order], n_better[order], n_tied[order])


def _rank_counts(draws: Floats) -> tuple[Ints, Ints]:
    """The numbers of better and of tied systems of each system and draw, shape (S, n_draws) each."""
    n, order = len(draws), np.argsort(draws, axis=0)
    ascending = np.take_along_axis(draws, order, axis=0)
    n_above, n_below = np.zeros((2, *draws.shape), dtype=np.int32)
    # Systems that tie with one are next to it; those that are so many places apart tie if all between them do.
    for apart in range(1, n):
        is_tied = ascending[apart:] - ascending[:-apart] <= REPLICA_ROUNDING
        if not is_tied.any():
            break
        n_above[:-apart] += is_tied
        n_below[apart:] += is_tied
    n_better, n_tied = np.empty_like(n_above), np.empty_like(n_above)
    np.put_along_axis(n_tied, order, n_above + n_below, axis=0)
    np.put_along_axis(n_better, order, np.arange(n - 1, -1, -1, dtype=np.int32)[:, None] - n_above, axis=0)
    return n_better, n_tied


def drawn_means(
    joint: Joint | ScoresOnTopics,
    kinds: Sequence[str],
    n_draws: int,
    seed: int,
    *,
    progress: bool = False,
    of_grades: int | None = None,
    sample: SampledQueries | None = None,
) -> tuple[Floats, list[Floats]]:
    """Means over topics of expected scores, shape (S,), and of drawn scores, (S, n_draws) for each kind of uncertainty.

    - ``of_grades``: another seed for the grades of unjudged documents
    - ``sample``: weights and clusters of the topics; errors of the means are drawn, and topics not resampled
    """
    of_grades = seed if of_grades is None else of_grades
    n, expected = len(joint.topics), joint.means
    # Sort the topics, so that results do not depend on their order in the qrels.
    order = sorted(range(n), key=joint.topics.__getitem__)
    weight = np.ones(n) if sample is None else sample.weights * (n / sample.weights.sum())
    means = np.zeros(len(expected))
    for topic in order:
        means += expected[:, topic] * weight[topic]
    fixed: Sequence[Any] = weight[order].tolist()
    resampled: Sequence[Any] = fixed
    if sample is None and set(kinds) != {"unjudged"}:
        resampled = list(resampled_counts(n, n_draws, seed))
    weights = {kind: fixed if kind == "unjudged" else resampled for kind in kinds}
    over_labels = [kind for kind in kinds if kind != "topics"]
    sums = joint.sums(order, [weights[kind] for kind in over_labels], n_draws, of_grades, shown=progress and n > 1)
    drawn = dict(zip(over_labels, sums, strict=True))
    if "topics" in kinds:
        drawn["topics"] = np.zeros((len(expected), n_draws))
        for topic, count in zip(order, weights["topics"], strict=True):
            drawn["topics"] += expected[:, topic, None] * count
    if sample is not None:
        in_order = sample._replace(
            weights=sample.weights[order],
            clusters=None if sample.clusters is None else pd.factorize(sample.clusters[order])[0],
        )
    for kind in kinds:
        drawn[kind] /= n
        if sample is not None and kind != "unjudged":
            drawn[kind] += drawn_errors(expected[:, order].T, in_order, n_draws, stream(seed, "topics", "sampled"))
    return means / n, [drawn[kind] for kind in kinds]


def resampled_counts(n: int, n_draws: int, seed: int) -> Iterator[Ints]:
    """Counts of each topic in turn in resamples of n topics, shape (n_draws,): a multinomial by binomials."""
    rng = stream(seed, "topics", "resampled")
    left = np.full(n_draws, n)
    for n_left in range(n, 0, -1):
        count = rng.binomial(left, 1 / n_left)
        left -= count
        yield count


def equal_tails(draws: Floats, level: float) -> Floats:
    """Equal-tailed interval of draws along the last axis, shape (2, ...); its ends are drawn values."""
    return np.asarray(np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=-1, method="inverted_cdf"))


def _rank_probabilities(drawn: _DrawnScores) -> pd.DataFrame:
    """Rank probabilities; of m tied systems, each gets 1/m of each of their m ranks."""
    n, n_draws = drawn.draws.shape
    step = np.zeros((n, n + 1))
    system = np.arange(n)[:, None]
    part = 1 / (1 + drawn.n_tied) / n_draws
    np.add.at(step, (system, drawn.n_better), part)
    np.add.at(step, (system, drawn.n_better + drawn.n_tied + 1), -part)
    prob = np.clip(np.cumsum(step[:, :-1], axis=1), 0.0, 1.0)
    names = np.repeat(np.array(drawn.names, dtype=object), n)
    return pd.DataFrame({"name": names, "rank": np.tile(np.arange(1, n + 1), n), "prob": prob.ravel()})
