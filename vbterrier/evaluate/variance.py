"""Shares of the variance of a mean: topics, unjudged documents, intents and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, choice, examples, whole
from vbterrier.evaluate.inputs import document_tags, evaluation_target, fitted_runs, intents_and_tags, loaded_runs
from vbterrier.evaluate.pooling import replica_statistic, shared_nil
from vbterrier.evaluate.ranking import system_distributions
from vbterrier.evaluate.replicas import coverage_matches
from vbterrier.frames.named import named_frame
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown, of_means, systems_line
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.log import tracked_items
from vbterrier.measures.intents import IntentMeasure
from vbterrier.measures.target import deepest, require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, estimand
from vbterrier.settings import Data, Execution, Inference, Options, with_defaults
from vbterrier.stats.comparisons import system_pairs
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.topic_intervals import COLUMNS
from vbterrier.stats.variance_components import (
    INTERACTIONS,
    METHODS,
    SCORES,
    TOPICS,
    combine_sources,
    crossed_replicas,
    first_order,
    perturbations_by_source,
)
from vbterrier.stats.variants import with_variants
from vbterrier.unjudged.estimated import EstimatedJoint, joint_distribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.stats.variance_components import Combined
    from vbterrier.unjudged.fitted import EvidenceModel


N_DRAWS = 1000
UNJUDGED = "unjudged"


class Contrast:
    """Selection of the rows of an array of systems, or of the differences between the rows of pairs, if given."""

    def __init__(self, systems: Sequence[str], pairs: Sequence[tuple[str, str]] | None) -> None:
        self.names = list(systems) if pairs is None else [f"{a} - {b}" for a, b in pairs]
        at = {name: place for place, name in enumerate(systems)}
        self._left, self._right = ([at[pair[side]] for pair in pairs or ()] for side in (0, 1))
        self.is_difference = pairs is not None

    def __call__(self, scores: Floats) -> Floats:
        """Select or subtract along the first axis."""
        return scores[self._left] - scores[self._right] if self.is_difference else scores


@dataclass(frozen=True, eq=False)
class TopicDraws:
    """Scores of m systems or differences on n topics, and draws of their uncertainty within topics."""

    names: list[str]
    values: Floats  # shape (m, n)
    expected: Floats | None  # exact means and variances of the draws if known, shape (m, n)
    variances: Floats | None
    draws: Iterable[Floats]  # by topic, shape (m, B)
    source: str | dict[str, Floats]  # as of combine_sources
    common: Floats | None = None  # draws of errors that topics share, shape (m, B)


def unjudged_draws(
    measure: UnjudgedMeasure,
    target: EvaluationTarget,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    models: Mapping[str, EvidenceModel],
    *,
    n_draws: int,
    seed: int,
    progress: bool,
) -> TopicDraws:
    """Draws of the labels of unjudged documents, jointly for all systems."""
    if measure["stat"] != "mean":
        raise ParameterError(
            f"{measure}: variance_shares draws the scores themselves; leave out stat={measure['stat']!r}"
        )
    distributions = system_distributions(measure, runs, target, models)
    joint = joint_distribution(distributions)
    contrast = Contrast(list(runs), pairs)
    # Sort the topics, so that results do not depend on their order in the qrels.
    order = sorted(range(len(joint.topics)), key=joint.topics.__getitem__)
    expected = contrast(np.array([distribution.mean for distribution in distributions.values()]))[:, order]
    places = tracked_items(order, "drawing", shown=progress and len(order) > 1, unit="topic")
    if isinstance(joint, EstimatedJoint):
        # Topics share the errors of the model.
        parts = _parts(contrast(np.stack([each.draws for each in joint.distributions])))[:, order]
        common = _common(contrast(np.stack([each.draw_scores(n_draws, seed) for each in joint.distributions])))
        draws = (contrast(joint.scores(topic, n_draws, seed)) - common for topic in places)
        return TopicDraws(contrast.names, expected, expected, parts, draws, UNJUDGED, common)
    variances = None
    if not contrast.is_difference:
        variances = np.array([distribution.variance_part for distribution in distributions.values()])[:, order]
    draws = (contrast(joint.scores(topic, n_draws, seed)) for topic in places)
    return TopicDraws(contrast.names, expected, expected, variances, draws, UNJUDGED)


def _parts(draws: Floats) -> Floats:
    """The part of each topic in the variance of the sum over topics, shape (m, n), from draws (m, B, n)."""
    away = draws - draws.mean(axis=1, keepdims=True)
    return np.asarray((away * away.sum(axis=2, keepdims=True)).mean(axis=1))


def _common(draws: Floats) -> Floats:
    """The errors that topics share, shape (m, B), from draws (m, B, n).

    Their variance is the mean covariance of two topics, and they are proportional to the mean over topics.
    """
    n, means = draws.shape[2], draws.mean(axis=2)
    means = means - means.mean(axis=1, keepdims=True)
    of_mean = (means**2).mean(axis=1)
    covariance = (n * of_mean - draws.var(axis=1).mean(axis=1)) / max(n - 1, 1)
    share = np.divide(np.clip(covariance, 0.0, of_mean), of_mean, out=np.zeros_like(of_mean), where=of_mean > 0)
    return np.asarray(np.sqrt(share)[:, None] * means)


def replica_draws(
    measure: ir_measures.Measure,
    target: EvaluationTarget,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    intents: Any,
    tags: Any,
    sources: Mapping[str, Sequence[Any]],
    *,
    n_draws: int,
    seed: int,
    progress: bool,
) -> TopicDraws:
    """Replicas under perturbed intents and tags, the same for all systems."""
    if intents is None:
        raise ParameterError(f"{measure}: wanted intents, a frame (qid, entity_id, prob)")
    nil, cutoff = shared_nil([measure]), deepest([measure])
    if tags is None:
        require_one_tagger(runs.values())
    perturbations = [one for some in sources.values() for one in some]
    intents = named_frame("intents", intents)
    qid = intents["qid"].astype(str)
    without = sorted(set(target.topics).difference(qid))
    if without:
        raise InputError(
            f"intents: {agreeing(len(without), 'topics have')} none ({examples(without)}); add some, or drop the topics"
        )
    frame = with_variants(intents[qid.isin(set(target.topics))].reset_index(drop=True), perturbations)
    all_tags, candidates = Tags(document_tags(tags, runs, cutoff)), Intents(frame)
    matches = {
        name: coverage_matches(cover(run, candidates, all_tags, cutoff, nil=nil), run) for name, run in runs.items()
    }
    made, again = crossed_replicas(
        frame, matches, sources, replica_statistic(measure), n_replicas=n_draws, seed=seed, progress=progress
    )
    order, contrast = np.argsort(np.array(made.topics, dtype=object)), Contrast(list(runs), pairs)
    scores = contrast(made.values[:, 0])[..., order]
    parts = {
        name: first_order(np.moveaxis(scores, 1, 0), np.moveaxis(contrast(values)[..., order], 1, 0))
        for name, values in again.items()
    }
    values = contrast(made.point[:, 0])[:, order]
    return TopicDraws(contrast.names, values, None, None, np.moveaxis(scores, 2, 0), parts or next(iter(sources)))


@dataclass(frozen=True, eq=False, repr=False)
class VarianceShares(Shown):
    """Result of :func:`variance_shares`.

    - ``intervals``: the C frame, with ``mean``, the centre of the interval (the mean of the replicas, or the value
      without replicas). One row for all sources together, as ``topics and unjudged (nested)``, one for the topics
      alone, one for each other source alone.
    - ``shares``: name, measure, source, variance (of the mean), share, low, high (of the share), level, n_qids,
      n_draws, seed. The rows of a system sum to its total.
    - ``advice``: effects of changes on the intervals: name, measure, change, these_topics, other_topics, at_best,
      n_qids, level. Half-widths ``z √V`` after the change: ``these_topics`` for the mean over these topics,
      ``other_topics`` for the mean over topics from the same population, ``at_best`` without the variance of the source
      (a lower bound). ``n_qids`` is the number of topics that gives the half-width ``at_best`` without the change.
    - ``estimand``: the score that a measure of the E family estimates, as ``"nDCG@10, judged to depth 28"``
    """

    intervals: pd.DataFrame
    shares: pd.DataFrame
    advice: pd.DataFrame
    estimand: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return ``shares``: a row per system, measure and source of variance."""
        return self.shares

    def _line(self) -> str:
        line = f"{systems_line(self.intervals)}; {self.intervals['method'].iloc[0]}"
        return f"{line}; estimates {self.estimand}" if self.estimand else line

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Shares of the variance", self.shares, value="share", rule=0)
        yield from of_means(self._around())
        yield Panel("Half-widths after changes", self.advice)

    def _around(self) -> pd.DataFrame:
        """Intervals, with a mean only if they are centred on replicas."""
        mean = self.intervals["mean"]
        return self.intervals.assign(mean=mean.where(mean != self.intervals["value"]))

    def _figures(self) -> Figures:
        return {"variance_shares": lambda: {"shares": self}, "forest": lambda: {"intervals": self._around()}}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VarianceOptions(Options):
    """Options of :func:`vbterrier.evaluate.variance_shares`.

    Parameters
    ----------
    perturb
        Perturbations of intents and tags, see :mod:`vbterrier.stats`, by default
        :class:`~vbterrier.stats.Dirichlet`: each is a separate source, named ``intents`` or ``tags``; or a mapping of
        names to one or several perturbations.
    scores
        ``"expected"``, the default: true scores are distributed around the scores (or the means of the replicas) as the
        draws are. ``"measured"``: the scores are noisy measurements; the noise is subtracted from their variance over
        topics.

    Examples
    --------
    >>> VarianceOptions(scores="measured").scores
    'measured'
    """

    perturb: Sequence[Any] | Mapping[str, Any] = (Dirichlet(),)
    scores: str = "expected"


@with_defaults
def variance_shares(
    runs: Any,
    qrels: Any = None,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    intents: Any = None,
    tags: Any = None,
    baseline: str | None = None,
    options: VarianceOptions = VarianceOptions(),
    data: Data = Data(model=None, pool_cutoff=None, subtopics=None, on_topics="same", duplicates="error", system=None),
    inference: Inference = Inference(interval="nested", level=0.95, n_draws=N_DRAWS, seed=0),
    execution: Execution = Execution(progress=False),
) -> VarianceShares:
    """Combine all sources of uncertainty of a mean into one interval, and attribute its variance to the sources.

    Sources are topics and unjudged documents for a measure of the B or E family; topics and perturbations for a measure
    over intents. The variance of the mean is ``Var_t(μ_t)/n + Σ_t σ_t²/n²``, between and within topics; see
    :func:`vbterrier.stats.variance_components.combine_sources`. Under a model of the E family topics share its errors,
    and the second term is ``Σ_ts Cov(score_t, score_s)/n²``, the variance of the mean as in :func:`vbterrier.score`.

    Parameters
    ----------
    runs, qrels
        See :func:`vbterrier.score`.
    measure, intents, tags
        A measure of the B or E family, or one over intents (``ES``, ``VB``...), or its name; for the latter, see
        :func:`vbterrier.score`.
    baseline
        A system: evaluate the differences from it, named ``"a - baseline"``, instead of the systems. Uncertainty that
        two systems share cancels, because a document has the same drawn grade in both.
    options
        A :class:`vbterrier.evaluate.VarianceOptions`: ``perturb``, ``scores``.
    data
        A :class:`vbterrier.Data`: ``system``, ``model``, ``pool_cutoff``, ``subtopics``, ``on_topics`` (``"same"``),
        ``duplicates`` (``"error"``).
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"nested"``), ``level`` (0.95), ``n_draws`` (1,000), ``seed``
        (0). ``interval`` is the method of the combined interval, ``"nested"`` resampling or ``"normal"``; ``n_draws``
        the number of draws within each topic, and of resamples of the topics, at least 2.
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    VarianceShares
        ``shares``: a row per system, measure and source of variance; ``intervals``; ``advice``: widths after more
        topics or judgments.

    Notes
    -----
    Judging narrows the interval of the mean over *these* topics (``these_topics``). For topics from the same
    population, expected scores under a correct prior are as good as judged scores: true scores vary more over topics,
    by the variance within topics, so that the interval stays about as wide as the combined one. None of these numbers
    include a bias of a prior of the B family that all topics share.

    Variances within topics are exact for systems if the distribution of the measure has closed-form moments, and are
    otherwise estimated from the draws.

    Examples
    --------
    >>> qids = ["q1", "q2", "q3", "q4"]
    >>> qrels = pd.DataFrame([(q, d, int(d < q[1] or d == "a")) for q in qids for d in "abc"],
    ...                      columns=["qid", "docno", "label"])
    >>> run = pd.DataFrame([(q, d, -r) for q in qids for r, d in enumerate(["new", "b", "a"][int(q[1]) % 2:])],
    ...                    columns=["qid", "docno", "score"])
    >>> result = variance_shares({"mine": run}, qrels, "BNDCG@3")
    >>> result.intervals["method"].tolist()
    ['topics and unjudged (nested)', 'topics (percentile)', 'unjudged (normal)']
    >>> result.shares.groupby("name")["share"].sum().tolist()
    [1.0]
    """
    perturb, scores = options.perturb, options.scores
    method, level, n_draws, seed = inference.interval, inference.level, inference.n_draws, inference.seed
    progress = execution.progress
    (parsed,) = measures_from(measure)
    choice("scores", scores, SCORES)
    choice("interval", method, METHODS)
    whole("n_draws", n_draws, low=2)
    intents, tags = intents_and_tags(intents, tags)
    judged = evaluation_target(qrels, intents, tags, subtopics=data.subtopics)
    loaded = loaded_runs(runs, data.duplicates, data.system)
    if not loaded:
        raise InputError("no systems; name at least one")
    pairs = None if baseline is None else system_pairs(list(loaded), baseline)
    evidence: dict[str, Any] = {"model": data.model, "pool_cutoff": data.pool_cutoff}
    loaded, target, models = fitted_runs(loaded, judged, parsed, data.on_topics, **evidence)
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "progress": progress}
    if isinstance(parsed, UnjudgedMeasure):
        drawn = unjudged_draws(parsed, target, loaded, pairs, models, **how)
    elif isinstance(parsed, IntentMeasure):
        drawn = replica_draws(parsed, target, loaded, pairs, intents, tags, perturbations_by_source(perturb), **how)
    else:
        raise ParameterError(
            f"{parsed}: only its topics are uncertain, see vbterrier.score; wanted a measure of the B or E "
            "family, as 'ENDCG@10', or one over intents, as 'ES@10'"
        )
    values, n = drawn.values if scores == "measured" else drawn.expected, drawn.values.shape[1]
    settings: dict[str, Any] = {"scores": scores, "method": method, "level": level, "n_draws": n_draws, "seed": seed}
    settings |= {"values": values, "variances": drawn.variances, "common": drawn.common}
    sources = combine_sources(drawn.draws, drawn.source, n_qids=n, **settings)
    name = str(parsed)
    shares = _shares(sources, drawn.names, name).assign(level=level, n_qids=n, n_draws=n_draws, seed=seed)
    intervals, advice = _intervals(sources, drawn, name, n_draws, seed), _advice(sources, drawn.names, name)
    return VarianceShares(intervals, shares, advice, estimand(parsed, models))


def _intervals(combined: Combined, drawn: TopicDraws, measure: str, n_draws: int, seed: int) -> pd.DataFrame:
    """One row for all sources, the topics, and each other source; systems in order."""
    alone = [combined.source_interval(source) for source in combined.sources if source not in (TOPICS, INTERACTIONS)]
    values = drawn.values.mean(axis=1)
    rows = []
    for at, name in enumerate(drawn.names):
        for ends in (combined.interval, combined.topics, *alone):
            n_resamples = 0 if ends.method.endswith("(normal)") else n_draws
            about = (combined.level, ends.method, combined.n_qids, n_resamples, seed)
            rows.append((name, measure, values[at], ends.low[at], ends.high[at], *about))
    return pd.DataFrame(rows, columns=list(COLUMNS)).assign(mean=np.repeat(combined.means, 2 + len(alone)))


def _shares(combined: Combined, names: Sequence[str], measure: str) -> pd.DataFrame:
    heads = {"name": np.repeat(np.array(names, dtype=object), len(combined.sources)), "measure": measure}
    numbers = {"variance": combined.variances, "share": combined.shares, "low": combined.low, "high": combined.high}
    columns = {name: array.ravel() for name, array in numbers.items()}
    return pd.DataFrame({**heads, "source": combined.sources * len(names), **columns})


def _advice(combined: Combined, names: Sequence[str], measure: str) -> pd.DataFrame:
    """Half-widths without a change, with twice the topics, and without each source; systems in order."""
    within = combined.variances[:, 1:].sum(axis=1)
    changes = {"none": (within, combined.total, combined.total)}
    changes["twice the topics"] = (within / 2, combined.total / 2, combined.total / 2)
    settled = [source for source in combined.sources if source not in (TOPICS, INTERACTIONS)]
    changes |= {f"{source} settled": combined.remaining(source) for source in settled}
    rows = []
    for at, name in enumerate(names):
        for change, variances in changes.items():
            these, others, best = (float(combined.half_width(variance)[at]) for variance in variances)
            left, total = float(variances[2][at]), float(combined.total[at])
            n_qids = combined.n_qids * total / left if left > 0 else np.inf if total > 0 else float(combined.n_qids)
            rows.append((name, measure, change, these, others, best, n_qids, combined.level))
    columns = ["name", "measure", "change", "these_topics", "other_topics", "at_best", "n_qids", "level"]
    return pd.DataFrame(rows, columns=columns)
