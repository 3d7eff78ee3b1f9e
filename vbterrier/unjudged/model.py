"""The evidence model of the grades of unjudged documents, fitted to all runs and judgments.

Its terms:

- The *cut* of a run is its first k documents of a topic, with k the cutoff of the measure.
- A *level* is the position of a grade among the grades of the judgments, -1 for unjudged documents. A *step* of the
  model is the regression of a level on the level below.
- *Distinct runs* have different documents or ranks; copies are one distinct run. The *effective number of runs* also
  accounts for near copies and for runs without judged documents.
- The *trust* of a run, .02 to 1, is small if few documents of its cuts are judged, compared with other runs. The trust
  of a document is the largest of its runs.
- A *strange* run has an unusually large share of unjudged documents.
- Documents are *selected* if they were judged for their rank or for systems that the evidence lacks, not at random.
  The *selection shift* is the difference in log odds of relevance between unjudged and judged documents with equal
  features, and the *gate* its mean weight.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.kernels.grade_regression import Intercepts, MixedLogit, exact_intercepts, fit_mixed_logit, sigmoid
from vbterrier.unjudged.evidence import POOL_COUNT, collect_evidence, logit, ratio
from vbterrier.unjudged.features import Features, features_of, label_columns
from vbterrier.unjudged.selection import explain_judging, pool_depth, selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.evidence import Evidence
    from vbterrier.unjudged.pool import Judgments, MachineLabels


_LOG = logging.getLogger(__name__)

DEFAULT_POOL_CUTOFF = 100
# Unjudged documents whose features are copied at a time.
BLOCK_ROWS = 1 << 16
# exp(logit noise) moves means of probabilities; the factor sqrt(1 + .35 variance) compensates (Zeger et al. 1988).
LOGIT_SHRINKAGE = 0.35
# Relevance is not identified if a smaller share of all judged documents has grade 0.
LEAST_NON_RELEVANT = 0.05
# With fewer judged and labelled documents a topic, labels of some judges raised the errors of topics of a collection;
# see docs/how-to/machine-labels.md.
LEAST_LABELLED = 5
# Prior precisions of coefficients: of intercepts, of the first step, of slopes of the best rank and of higher steps,
# and of machine labels.
INTERCEPT_RIDGE, RIDGE, STRONG_RIDGE, LABEL_RIDGE = 0.01, 2.0, 4.0, 4.0
RANK_SLOPES = ("best", "below")
# Prior means of coefficients of the first and of higher steps: rounded means over six collections with nearly all
# judgments. A few judgments do not show how relevance falls with the rank. Those of all other features are 0.
FIRST_MEANS = {"rank": 0.45, "neighbours": 0.45, "share": 0.15, "company": 0.1, "outside": 0.6}
HIGHER_MEANS = {"rank": 0.15, "neighbours": 0.2, "outside": 0.15}
# Prior variances of topic effects: intercept and slope of the first step, intercept of higher steps (.2 to 3.7 in
# collections with nearly all judgments, with a geometric mean of 1).
FIRST_VARIANCES, HIGHER_VARIANCES, EXACT_VARIANCE = (0.5, 0.1), (1.0,), 1e-6
# The prior share of topics with hardly any document of a higher level (0 to .57 of topics have none).
LOW_SHARE = 0.1


@dataclass(frozen=True)
class Constants:
    """The constants of the model, chosen by leaving one collection out; see docs/explanation/evidence.md."""

    # The selection shift of documents whose judging is not explained, if documents were selected: its mean, and the
    # coefficients of the excess of unjudged documents and of the pool's logit minus the fitted logit.
    selected: float = -0.5
    excess: float = -4.5
    pool: float = 0.4
    # The shift of documents of strange runs whose judging is explained.
    strange: float = -2.0
    # Standard deviations of the coefficients of the parts of the shift, see :attr:`GradeModel.shift`.
    shift_sds: tuple[float, ...] = (0.5, 1.0, 0.0, 1.5, 0.4)
    # Standard deviations of errors that all topics share, of the unjudged documents of a run in all topics and in one,
    # of a topic, and additional ones of selected documents and of higher grades of a topic.
    call: float = 0.3
    of_run: float = 0.45
    # With n effective runs, the deviation of a run is larger by the factor 1 + few/n: few runs do not show how far
    # their documents are from each other.
    few: float = 1.0
    of_run_topic: float = 0.4
    topic: float = 0.35
    topic_selected: float = 0.5
    topic_higher: float = 0.5
    # Relevant documents that no run could find, in those of the evidence, and the deviation of the logarithm. With n
    # effective runs there are more of them, by the factor 1 + few_hidden/n²: few runs find less of what there is.
    hidden: float = 0.5
    few_hidden: float = 12.0
    hidden_sd: float = 0.6
    # The same for draws of AP, which depends on how many there are; nDCG@10 hardly does.
    counted_hidden: float = 1.25
    counted_hidden_sd: float = 1.2
    # The part of shift and errors that applies to higher grades.
    higher: float = 0.5
    # The factor of the covariance of coefficients and topic effects.
    inflation: float = 1.5


class GradeStep(NamedTuple):
    """The regression of a level on the lower one, and the features of all documents, shape (m, p)."""

    regression: MixedLogit
    design: Floats
    # Exact posteriors of the intercepts of topics instead of normal ones.
    intercepts: Intercepts | None = None


class Shift(NamedTuple):
    """The parts of the selection shift of unjudged documents by kind: each document in a cut, then each topic.

    Documents below the cuts have the kind of their topic, the mean of its unjudged documents in the cuts.
    """

    # The kind of each unjudged document, shape (n_unjudged,), and the parts of each kind, (n_kinds, 5).
    kind: Ints
    parts: Floats


@dataclass(frozen=True, eq=False)
class GradeModel:
    """A fitted model of the grades of unjudged documents.

    ``sigma, ks``: signs that documents were selected for judging; see :func:`vbterrier.unjudged.selection.selection`.
    ``steps``: the regression of each level on the lower one, ``P(level >= l | level >= l - 1)``, l = 1, 2, ...
    ``without_labels``: the first step without machine labels, from which the selection shift starts.
    ``n_from_others``: judged documents that no run retrieves, also not below the depth of complete judgments.
    ``counts_relevant``: draws are of AP, which divides by the number of relevant documents.
    """

    evidence: Evidence
    features: Features
    sigma: float
    ks: float
    steps: tuple[GradeStep, ...]
    without_labels: GradeStep | None = None
    constants: Constants = field(default_factory=Constants)
    n_from_others: int = 0
    counts_relevant: bool = False

    @property
    def gate(self) -> float:
        """Mean weight of the selection shift of the unjudged documents in the cuts, 0 to 1."""
        rows = self.evidence.unjudged_positions
        trust = self.evidence.trust[rows[self.evidence.near[rows]]]
        return self.sigma * float(np.average(self.shift.parts[: len(trust), 0], weights=trust)) if len(trust) else 0.0

    @property
    def of_run(self) -> float:
        """The standard deviation of the error that the unjudged documents of a run share in all topics."""
        return self.constants.of_run * (1 + self.constants.few / max(self.evidence.n_effective, 1.0))

    @property
    def hidden(self) -> tuple[float, float]:
        """Relevant documents that no run could find, in those of the evidence: the median and the deviation of the
        logarithm of the draws.
        """
        constants = self.constants
        median, deviation = constants.hidden, constants.hidden_sd
        if self.counts_relevant:
            median, deviation = constants.counted_hidden, constants.counted_hidden_sd
        return median * (1 + constants.few_hidden / max(self.evidence.n_effective, 1.0) ** 2), deviation

    @cached_property
    def shift(self) -> Shift:
        """The parts of the selection shift of unjudged documents.

        The part of judging that the evidence does not explain, g; g times the excess of unjudged documents; g times the
        pool's logit minus the fitted logit, clipped at 4; 1 - g times the strangeness of runs; and 1 - g.
        """
        evidence = self.evidence
        rows, n_topics = evidence.unjudged_positions, len(evidence.topics)
        near = evidence.near[rows]
        items = rows[near]
        topic, pulled = evidence.topic[items], np.empty(len(items))
        for start in range(0, len(items), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            pulled[part] = np.clip(evidence.pool_logit[topic[part]] - self._shrunk_logit(items[part]), -4.0, 4.0)
        judging = explain_judging(evidence, self.features)
        unexplained, excess, strange = (
            column[items] for column in (judging.unexplained, judging.excess, judging.strange)
        )
        parts = unexplained, unexplained * excess, unexplained * pulled, (1 - unexplained) * strange, 1 - unexplained
        kind = evidence.topic[rows] + len(items)
        kind[near] = np.arange(len(items))
        means = [_topic_means(values, evidence.trust[items], topic, n_topics) for values in parts]
        return Shift(kind, np.concatenate([np.column_stack(parts), np.column_stack(means)]))

    @property
    def relevance_of_unjudged(self) -> float:
        """The mean probability of relevance of the unjudged documents in the cuts, without a shift, in the share of
        relevant documents among the judged ones there; NaN without either. Documents have their trust as weights.
        """
        evidence, near = self.evidence, np.flatnonzero(self.evidence.near)
        is_judged = evidence.level[near] >= 0
        judged, unjudged = near[is_judged], near[~is_judged]
        if not (len(judged) and len(unjudged) and self.steps):
            return float("nan")
        share = np.average(evidence.level[judged] > 0, weights=evidence.trust[judged])
        prob = np.average(sigmoid(self._shrunk_logit(unjudged)), weights=evidence.trust[unjudged])
        return float(prob / share) if share else float("nan")

    def _shrunk_logit(self, items: Ints) -> Floats:
        """The logit of the mean probability of relevance of some documents, without machine labels, (n_items,)."""
        first = self.without_labels or self.steps[0]
        design, topic = first.design[items], self.evidence.topic[items]
        variance = first.regression.logit_variance(design, topic)
        return np.asarray(first.regression.logit(design, topic) / np.sqrt(1 + LOGIT_SHRINKAGE * variance))


def fit_evidence(evidence: Evidence, constants: Constants | None = None, *, exact: bool = False) -> GradeModel:
    """Fit the model to the evidence; ``exact`` takes the exact posteriors of intercepts in the first step too."""
    if not len(evidence.unjudged_positions):
        nothing = np.empty((len(evidence), 0))
        return GradeModel(evidence, Features(nothing, [], nothing, nothing), 0.0, 0.0, ())
    features, (sigma, ks) = features_of(evidence), selection(evidence)
    constants = constants or Constants()
    if not (evidence.level >= 0).any():
        warn(
            "no document of the evidence is judged: the grades of unjudged documents follow the shares of each topic's "
            "pool, with wide intervals"
        )
        return GradeModel(evidence, features, sigma, ks, tuple(_pool_steps(evidence)), None, constants)
    # Higher levels than the first need a judged document.
    levels = [level for level in range(1, evidence.counts.shape[1]) if level == 1 or (evidence.level >= level).any()]
    steps = [fit_step(evidence, features, level, exact=exact or level > 1) for level in levels]
    without = fit_step(evidence, features, 1, with_labels=False) if len(evidence.labels) and steps else None
    return GradeModel(evidence, features, sigma, ks, tuple(steps), without, constants)


def fit_step(
    evidence: Evidence, features: Features, level: int, *, with_labels: bool = True, exact: bool = False
) -> GradeStep:
    """Fit ``P(level >= l | level >= l - 1)`` to the judged documents.

    The first step has random intercepts and slopes of the rank; higher steps have random intercepts, and strong ridges,
    because a weak one invents high grades deep in the lists. ``exact``: intercepts have the posteriors of
    :func:`~vbterrier.kernels.grade_regression.exact_intercepts`, in higher steps with a component of topics that have
    hardly any document of the level, which a normal distribution does not represent. Coefficients of runs have an
    estimated variance. Labellers whose labels would lower the probability of relevance are left out.
    """
    eligible = evidence.level >= level - 1
    hit = evidence.level[eligible] >= level
    first = level == 1
    has_labels = with_labels and len(evidence.labels) > 0
    columns = label_columns(evidence.labels, eligible, hit) if has_labels else np.empty((len(evidence), 0))
    while True:
        parts = [features.fixed, columns, features.by_run]
        design = np.column_stack(parts) if columns.size else features.design
        kind = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        ridge = np.where(kind == 1, LABEL_RIDGE, RIDGE if first else STRONG_RIDGE)
        # Shallow pools do not identify slopes of deeper ranks, and a weak prior would draw any slope.
        ridge[[place for place, name in enumerate(features.names) if name in RANK_SLOPES]] = STRONG_RIDGE
        ridge[0] = INTERCEPT_RIDGE
        prior = np.array(FIRST_VARIANCES if first else HIGHER_VARIANCES)
        center, means = np.zeros(design.shape[1]), FIRST_MEANS if first else HIGHER_MEANS
        center[: len(features.names)] = [means.get(name, 0.0) for name in features.names]
        shared = kind == 2  # noqa: PLR2004 - the third part
        topic, n_topics = evidence.topic[eligible], len(evidence.topics)
        fitted = fit_mixed_logit(
            design[eligible], hit, topic, n_topics, ridge=ridge, variance_prior=prior, center=center, shared=shared
        )
        falling = fitted.coef[kind == 1] < 0
        if not falling.any():
            break
        columns = columns[:, ~falling]
    intercepts = None
    if exact:
        offset = fitted.logit(design[eligible], topic) - fitted.effect[topic, 0]
        variances = {"variance": float(fitted.variance[0]), "variance_prior": float(prior[0])}
        low_share = 0.0 if first else LOW_SHARE
        intercepts = exact_intercepts(
            offset, hit, topic, n_topics, **variances, ridge=INTERCEPT_RIDGE, low_share=low_share
        )
    return GradeStep(fitted, design, intercepts)


def _pool_steps(evidence: Evidence) -> list[GradeStep]:
    """Regressions of intercepts alone: the share of each topic's pool that has at least a level, of the lower one."""
    n_topics, n_levels = evidence.counts.shape
    at_least = np.cumsum(evidence.counts[:, ::-1], axis=1)[:, ::-1]
    design = np.ones((len(evidence), 1))
    steps = []
    for level in range(1, n_levels):
        overall = (at_least[:, level].sum() + 0.5) / (at_least[:, level - 1].sum() + 1)
        share = (at_least[:, level] + POOL_COUNT * overall) / (at_least[:, level - 1] + POOL_COUNT)
        coef = logit(np.array([overall]))
        effect = (logit(share) - coef)[:, None]
        exact = np.full((n_topics, 1, 1), EXACT_VARIANCE)
        steps.append(GradeStep(MixedLogit(coef, np.ones((1, 1)), effect, exact, np.ones(1)), design))
    return steps


def _topic_means(values: Floats, weight: Floats, topic: Ints, n_topics: int) -> Floats:
    """The weighted mean of each topic, or that of all documents for topics without any, shape (n_topics,)."""
    if not len(values):
        return np.zeros(n_topics)
    total, of_all = (np.bincount(topic, terms, minlength=n_topics) for terms in (weight * values, weight))
    return ratio(total, of_all, empty=float(np.average(values, weights=weight)))


def is_identified(judgments: Judgments) -> bool:
    """Return True if at least 5 % of the judged documents of all topics have grade 0, or nothing is judged."""
    return bool(judgments.counts[:, 0].sum() >= LEAST_NON_RELEVANT * judgments.counts.sum())


def require_identified(judgments: Judgments) -> None:
    """Refuse judgments with hardly any non-relevant document."""
    if not is_identified(judgments):
        raise InputError(
            f"{judgments.name}: {judgments.counts[:, 0].sum()} of {judgments.counts.sum()} judged documents have grade "
            "0: the relevance of unjudged documents cannot be estimated from relevant documents alone. Use measures "
            "that need no estimate (NDCGBound, nDCG, RR), BNDCG with an explicit prior=, or machine labels as qrels"
        )


def _warn_of_few(labels: MachineLabels, judgments: Judgments) -> None:
    """Warn if too few documents have a judgment and a label to learn what the labels mean."""
    labelled = ~np.isnan(labels.lookup(judgments.topics, judgments.topic, judgments.docno)).all(axis=0)
    each = labelled.sum() / max(len(judgments.topics), 1)
    # Labels of no judged document have a warning that says why.
    if 0 < each < LEAST_LABELLED:
        warn(
            f"labels: {each:.1f} judged documents a topic have a label; below {LEAST_LABELLED}, labels can raise the "
            "error of estimates: judge more documents, or compare with the estimate from judgments alone"
        )


def fit_model(
    runs: Mapping[str, Run],
    judgments: Judgments,
    cutoff: int | None,
    pool_cutoff: int | None = None,
    labels: MachineLabels | None = None,
) -> GradeModel:
    """Fit the model to the evidence runs and the judgments.

    ``cutoff``: ``None`` for the length of the longest list. ``pool_cutoff``: the depth to which complete judgments
    judge the runs, at least the cutoff; ``None`` for the larger of the cutoff and the depth of the pool.

    Raises ParameterError: a ``pool_cutoff`` below the cutoff.
    """
    if not runs:
        raise InputError("no systems; name at least one, to fit a model of unjudged documents to")
    if cutoff is None:
        cutoff = max([1, *(run.top(None).rows.shape[1] for run in runs.values())])
    if pool_cutoff is not None and pool_cutoff < cutoff:
        raise ParameterError(
            f"pool_cutoff={pool_cutoff}: judgments to this depth lack documents of the first {cutoff} ranks, which are "
            f"scored; give at least {cutoff}, or measures with a smaller cutoff"
        )
    if labels is not None:
        labels.require_match(judgments)
        _warn_of_few(labels, judgments)
    evidence = collect_evidence(runs, judgments, cutoff, pool_cutoff or max(DEFAULT_POOL_CUTOFF, cutoff), labels)
    n_from_others = int(evidence.outside.sum())
    if pool_cutoff is None:
        # Runs whose first k documents are all judged have their score, independently of deeper ranks.
        evidence = evidence.cut_to(pool_depth(evidence) if evidence.n_unjudged.any() else cutoff)
    if len(evidence.unjudged_positions):
        require_identified(judgments)
    model = replace(fit_evidence(evidence), n_from_others=n_from_others)
    fitted = (
        "fitted the model of unjudged documents to %d runs, %d topics, %d documents (%d unjudged), judged to depth %d"
    )
    sizes = (evidence.n_runs, len(evidence.topics), len(evidence), len(evidence.unjudged_positions), evidence.depth)
    _LOG.info(fitted, *sizes)
    return model
