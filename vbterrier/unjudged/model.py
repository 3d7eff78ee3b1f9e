"""The evidence model: joint draws of the grades of unjudged documents from everything that runs and judgments show."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from vbterrier.errors import InputError, warn
from vbterrier.frames.ids import Ids
from vbterrier.kernels import fingerprints
from vbterrier.kernels.grade_regression import (
    Intercepts,
    MixedLogit,
    exact_intercepts,
    fit_mixed_logit,
    hashed_uniforms,
    sigmoid,
)
from vbterrier.kernels.resample import stream
from vbterrier.unjudged.evidence import (
    POOL_COUNT,
    Features,
    evidence_of,
    features_of,
    judging_of,
    label_columns,
    logit,
    pool_depth,
    selection,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints, Words
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.evidence import Evidence, Judging
    from vbterrier.unjudged.pool import Judgments, MachineLabels


_LOG = logging.getLogger(__name__)

DEPTH = 100
# Relevance is not identified if a smaller share of all judged documents has grade 0.
LEAST_NON_RELEVANT = 0.05
# exp(logit noise) moves means of probabilities; the factor sqrt(1 + .35 variance) compensates (Zeger et al. 1988).
SHRINKAGE = 0.35
# Prior precisions of coefficients: of intercepts, of the first step, of slopes of the best rank and of higher steps,
# and of machine labels.
INTERCEPT_RIDGE, RIDGE, STRONG_RIDGE, LABEL_RIDGE = 0.01, 0.1, 4.0, 4.0
RANK_SLOPES = ("best", "below")
# Prior variances of topic effects: intercept and slope of the first step, intercept of higher steps.
FIRST_VARIANCES, HIGHER_VARIANCES, NO_VARIANCE = (0.5, 0.1), (0.3,), 1e-6
# Unseen documents: the weight of the mean over topics beside a topic's own relevant documents, and the gamma's shape.
UNSEEN_SHRINKAGE, UNSEEN_SHAPE = 0.3, 0.5
# The ratio of hidden relevant documents of a level to those of the lower one, relative to that in the evidence.
HIDDEN_LEVELS = 0.4
# Draws that are computed at a time.
BLOCK = 50


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
    # Standard deviations of shifts, and of the logit of documents whose judging is explained.
    selected_sd: float = 0.5
    excess_sd: float = 1.0
    strange_sd: float = 1.5
    explained_sd: float = 0.4
    # Standard deviations of errors that all topics share, of the unjudged documents of a run in all topics and in one,
    # of a topic, and additional ones of selected documents and of higher grades of a topic.
    call: float = 0.3
    of_run: float = 0.45
    of_run_topic: float = 0.4
    topic: float = 0.35
    topic_selected: float = 0.5
    topic_higher: float = 0.5
    # Relevant documents that no run could find, in those of the evidence, and the deviation of the logarithm.
    hidden: float = 0.5
    hidden_sd: float = 0.6
    # The part of shift and errors that applies to higher grades.
    higher: float = 0.5
    # The factor of the covariance of coefficients and topic effects.
    inflation: float = 1.5


@dataclass(frozen=True, eq=False)
class GradeDraws:
    """Joint draws of the levels of all unjudged documents, and of the sizes of the complete pools."""

    evidence: Evidence
    # The level of each unjudged document, in the order of ``evidence.unjudged``, shape (n_draws, n_unjudged).
    levels: NDArray[np.uint8]
    # All documents of each topic and level, and those that no run retrieves and nobody judged, (n_draws, n_topics, L).
    counts: Ints
    unseen: Ints

    @cached_property
    def probability(self) -> Floats:
        """The share of draws in which each unjudged document is relevant, shape (n_unjudged,)."""
        return np.asarray((self.levels > 0).mean(axis=0))


class GradeStep(NamedTuple):
    """The regression of a level on the lower one, and the features of the unjudged documents, (n_unjudged, p)."""

    regression: MixedLogit
    design: Floats
    # Exact posteriors of the intercepts of topics instead of normal ones.
    intercepts: Intercepts | None = None


@dataclass(frozen=True, eq=False)
class GradeModel:
    """A fitted model of the grades of unjudged documents.

    ``sigma, ks``: signs that documents were selected for judging; see :func:`vbterrier.unjudged.evidence.selection`.
    ``steps``: the regression of each level on the lower one, ``P(level >= l | level >= l - 1)``, l = 1, 2, ...
    ``without_labels``: the first step without machine labels, from which the selection shift starts.
    """

    evidence: Evidence
    features: Features
    sigma: float
    ks: float
    steps: tuple[GradeStep, ...]
    without_labels: GradeStep | None = None
    constants: Constants = field(default_factory=Constants)

    @property
    def gate(self) -> float:
        """Mean weight of the selection shift of the unjudged documents in the cuts, 0 to 1."""
        near = self.evidence.near[self.evidence.unjudged]
        return self.sigma * float(self.judging.unexplained[self.evidence.unjudged][near].mean()) if near.any() else 0.0

    @cached_property
    def judging(self) -> Judging:
        """The relation of judging to the evidence."""
        return judging_of(self.evidence, self.features)

    @cached_property
    def shift(self) -> Floats:
        """The parts of the selection shift of each unjudged document, shape (n_unjudged, 5).

        The part of judging that the evidence does not explain, g; g times the excess of unjudged documents; g times the
        pool's logit minus the fitted logit, clipped at 4; 1 - g times the strangeness of runs; and 1 - g. Documents
        below the cut have the mean of their topic's unjudged documents in the cut.
        """
        evidence = self.evidence
        rows = evidence.unjudged
        topic, near = evidence.topic[rows], evidence.near[rows]
        first = self.without_labels or self.steps[0]
        fitted = first.regression.logit(first.design, topic)
        fitted = fitted / np.sqrt(1 + SHRINKAGE * first.regression.logit_variance(first.design, topic))
        pulled = np.clip(evidence.pool_logit[topic] - fitted, -4.0, 4.0)
        unexplained, excess = self.judging.unexplained[rows], self.judging.excess[rows]
        strange = (1 - unexplained) * self.judging.strange[rows]
        parts = [unexplained, unexplained * excess, unexplained * pulled, strange, 1 - unexplained]
        return np.column_stack([_topic_mean_below(part, topic, near) for part in parts])

    @cached_property
    def _run_weights(self) -> Floats:
        """The weight of each run's error in an unjudged document, shape (n_unjudged, n_runs)."""
        support = self.features.support[self.evidence.unjudged]
        return np.asarray(support / np.sqrt(np.maximum(support.sum(axis=1, keepdims=True), 1)))

    def _run_errors(self, n_draws: int, seed: int) -> Floats:
        """Standard normal numbers of each run, which depend on its documents, shape (n_draws, n_runs)."""
        keys = self.evidence.run_keys.tolist()
        # Equal runs have different numbers.
        names = [(str(key), str(keys[:place].count(key))) for place, key in enumerate(keys)]
        streams = [stream(seed, "unjudged", "run", *name) for name in names]
        return np.concatenate([_antithetic(each, n_draws, 1) for each in streams], axis=1)

    def _cells(self, seed: int) -> tuple[Ints, Words]:
        """Cells of a topic and a run, whose documents share an error.

        The cell of each unjudged document in a cut, that of the run with its best rank, shape (n,), and a key of each
        cell, which depends on the topic and the documents of the run.
        """
        evidence = self.evidence
        run_keys = evidence.run_keys
        order = np.lexsort((run_keys[evidence.run], evidence.rank, evidence.item))
        leading = evidence.run[order[np.searchsorted(evidence.item[order], np.arange(len(evidence)))]]
        rows = evidence.unjudged[evidence.near[evidence.unjudged]]
        cells, cell = np.unique(evidence.topic[rows] * evidence.n_runs + leading[rows], return_inverse=True)
        topic, run = np.divmod(cells, evidence.n_runs)
        topic_keys = fingerprints.mix(Ids(pa.array(evidence.topics, pa.large_string())).fingerprints)
        return cell.reshape(-1), fingerprints.mix(topic_keys[topic] + run_keys[run] + np.uint64(seed))

    @cached_property
    def _noise_variance(self) -> Floats:
        """The variance of all errors of the logit of each unjudged document, except of regressions, (n_unjudged,)."""
        constants, near = self.constants, self.evidence.near[self.evidence.unjudged]
        deviations = (constants.selected_sd, constants.excess_sd, 0.0, constants.strange_sd, constants.explained_sd)
        selected = self.shift**2 @ np.square(deviations) + constants.topic_selected**2
        of_run = constants.of_run**2 * (self._run_weights**2).sum(axis=1) + constants.of_run_topic**2
        return np.asarray(constants.topic**2 + constants.call**2 + np.where(near, of_run, 0.0) + self.sigma * selected)

    def _shift_weights(self, rng: np.random.Generator, n_draws: int) -> tuple[Bools, Floats]:
        """Draw if documents were selected, (n_draws,), and the coefficients of the parts of the shift, (n_draws, 5)."""
        constants = self.constants
        selected = rng.permutation((np.arange(n_draws) + 0.5) / n_draws) < self.sigma
        means = (constants.selected, constants.excess, constants.pool, constants.strange, 0.0)
        deviations = (constants.selected_sd, constants.excess_sd, 0.0, constants.strange_sd, constants.explained_sd)
        weights = np.array(means) + _antithetic(rng, n_draws, len(means)) * np.array(deviations)
        return selected, weights * selected[:, None]

    def draw(self, n_draws: int, seed: int) -> GradeDraws:
        """Draw the levels of all unjudged documents, and the sizes of the pools.

        Numbers depend on the seed, the ids of topics and documents, and the number of draws, not on their order.
        Normal errors come in pairs of opposite signs, which removes most of the sampling error of means.
        """
        from scipy import special

        evidence, constants = self.evidence, self.constants
        rows, n_levels = evidence.unjudged, evidence.counts.shape[1]
        if not len(rows) or not self.steps:
            none = np.zeros((1, *evidence.counts.shape), dtype=np.int64)
            return GradeDraws(evidence, np.zeros((n_draws, len(rows)), np.uint8), evidence.counts[None] + none, none)
        topic, near = evidence.topic[rows], evidence.near[rows]
        shift = self.shift
        call = stream(seed, "unjudged", "call")
        selected, of_shift = self._shift_weights(call, n_draws)
        shared = _antithetic(call, n_draws, 1)[:, 0] * constants.call
        of_run = self._run_errors(n_draws, seed) * constants.of_run
        regressions = [step.regression for step in self.steps]
        coefs = [
            each.coef
            + _antithetic(call, n_draws, len(each.coef)) @ np.linalg.cholesky(each.coef_cov * constants.inflation).T
            for each in regressions
        ]
        streams = [stream(seed, "unjudged", "topic", name) for name in evidence.topics]
        # One call per topic for the normal numbers of its errors, then of its effects in each step.
        n_half, sizes = (n_draws + 1) // 2, [1 + len(self.steps), *(each.effect.shape[1] for each in regressions)]
        normal = np.stack([each.standard_normal(n_half * sum(sizes)) for each in streams])
        normals = np.split(normal, n_half * np.cumsum(sizes[:-1]), axis=1)
        normals = [part.reshape(-1, n_half, size) for part, size in zip(normals, sizes, strict=True)]
        effects = [
            part @ np.linalg.cholesky(each.effect_cov * constants.inflation).swapaxes(1, 2)
            for each, part in zip(regressions, normals[1:], strict=True)
        ]

        def by_draw(half: Floats) -> Floats:
            """Numbers of topics, (n_topics, n_half), and their opposites, shape (n_draws, n_topics)."""
            return np.concatenate([half.T, -half.T])[:n_draws]

        of_topic_noise = np.sqrt(constants.topic**2 + selected * constants.topic_selected**2)[:, None]
        key = fingerprints.mix(evidence.keys[rows] + fingerprints.mix(np.array([seed], dtype=np.uint64)))
        cell, cell_keys = self._cells(seed)
        levels = np.zeros((n_draws, len(rows)), dtype=np.uint8)
        alive = np.ones(levels.shape, dtype=bool)
        for number, step in enumerate(self.steps):
            part = 1.0 if number == 0 else constants.higher
            extra = 0.0 if number == 0 else constants.topic_higher
            keep = np.sqrt(1 + SHRINKAGE * (part**2 * self._noise_variance + extra**2))
            noise = part * (shared[:, None] + of_topic_noise * by_draw(normals[0][:, :, 0]))
            noise += extra * by_draw(normals[0][:, :, number + 1 if number else 0])
            weights = np.column_stack([coefs[number], part * of_shift, part * of_run])
            design = np.vstack([np.vstack([step.design.T, shift.T]) * keep, np.where(near, self._run_weights.T, 0.0)])
            of_topic = [
                by_draw(error) + mean
                for error, mean in zip(np.moveaxis(effects[number], 2, 0), step.regression.effect.T, strict=True)
            ]
            if step.intercepts is not None:
                of_topic[0] = step.intercepts.quantiles(special.ndtr(by_draw(normals[number + 1][:, :, 0])))
            key_of_step = fingerprints.mix(key + np.uint64(number))
            for start in range(0, n_draws, BLOCK):
                block = slice(start, start + BLOCK)
                value = weights[block] @ design
                for column, effect in enumerate(of_topic):
                    value += effect[block].take(topic, axis=1) * design[column]
                value += noise[block].take(topic, axis=1)
                draws = np.arange(start, start + len(value))
                errors = _antithetic_normals(cell_keys, draws, n_half) * (part * constants.of_run_topic)
                value[:, near] += errors.take(cell, axis=1)
                uniform = hashed_uniforms(key_of_step, draws)
                alive[block] &= uniform < sigmoid(value)
                levels[block] += alive[block]
        drawn = _count(levels, topic, len(evidence.topics), n_levels)
        unseen = self._unseen(drawn, streams)
        return GradeDraws(evidence, levels, evidence.counts[None] + drawn + unseen, unseen)

    def _unseen(self, drawn: Ints, streams: list[np.random.Generator]) -> Ints:
        """Relevant documents that no run retrieves and nobody judged, shape (n_draws, n_topics, L).

        The judged share q of the relevant documents in the evidence estimates that of the documents outside: a beta
        distribution with the share of all topics as prior of weight 4, lowered to ``q^(1 + 2 sigma U)``, U uniform. The
        relevant documents outside that were judged, then follow a Poisson distribution with rate ``q λ``, and the
        others one with rate ``(1 - q) λ``. λ has a gamma prior whose mean is that over topics, in proportion to the
        topic's documents of this level in the evidence, shrunk to their mean.

        If documents were selected, and hardly any outside the evidence was judged, nothing is known about them. The
        part of them that nobody could find is then ``h (1 - q)`` times the relevant documents in the evidence, with the
        logarithm of h normal around that of ``Constants.hidden``; fewer of higher levels.
        """
        from scipy import special

        evidence = self.evidence
        n_draws, n_topics, n_levels = drawn.shape
        inside = evidence.counts - evidence.outside
        judged = inside[:, 1:].sum(axis=1)
        found = drawn[:, :, 1:].sum(axis=2)
        overall = judged.sum() / np.maximum(judged.sum() + found.sum(axis=1), 1e-9)
        lowered = 1 + 2 * self.sigma * stream(0, "unjudged", "pool").permutation((np.arange(n_draws) + 0.5) / n_draws)
        # Topics are rows, whose numbers are drawn together.
        q = np.empty((n_topics, n_draws))
        for place, (rng, others) in enumerate(zip(streams, np.ascontiguousarray(found.T), strict=True)):
            a, b = judged[place] + 4 * overall + 1e-3, others + 4 * (1 - overall)
            q[place] = np.where(b > 0, rng.beta(a, np.maximum(b, 1e-9)), 1.0)
        q = np.clip(np.clip(q, 0.02, 1 - 1e-9) ** lowered, 0.02, 1 - 1e-9)
        mean_q = np.ascontiguousarray(q.T).mean(axis=1)
        # The share of documents outside that could be judged, and the relevant ones of the others.
        n_outside, n_judged = evidence.outside.sum(), evidence.counts.sum()
        reached = 1 - self.sigma * (1 - min(n_outside / max(n_judged - n_outside, 1), 1.0))
        normal = stream(0, "unjudged", "hidden").permutation((np.arange(n_draws) + 0.5) / n_draws)
        size = self.constants.hidden * np.exp(self.constants.hidden_sd * special.ndtri(normal))
        hidden = (1 - reached) * size * (1 - overall)
        # A topic without unjudged documents has its pool as it is.
        complete = np.bincount(evidence.topic[evidence.unjudged], minlength=n_topics) == 0
        unseen = np.zeros(drawn.shape, dtype=np.int64)
        for level in range(1, n_levels):
            known = evidence.outside[:, level]
            rate = (known.sum() + 0.5) / n_topics / mean_q
            within = inside[:, level] + drawn[:, :, level] + 1e-3
            mean = within.mean(axis=1, keepdims=True)
            prior = rate[:, None] * (within / mean + UNSEEN_SHRINKAGE) / (1 + UNSEEN_SHRINKAGE)
            prior = prior + (hidden * HIDDEN_LEVELS ** (level - 1))[:, None] * within
            scale, missed = 1 / (UNSEEN_SHAPE / prior.T + q * reached), np.zeros((n_topics, n_draws), dtype=np.int64)
            for place in np.flatnonzero(~complete).tolist():
                # The numbers of `gamma` with an array of scales, in two thirds of the time.
                expected = scale[place] * streams[place].standard_gamma(known[place] + UNSEEN_SHAPE, n_draws)
                missed[place] = streams[place].poisson((1 - q[place] * reached) * expected)
            unseen[:, :, level] = missed.T
        return unseen


def fit_evidence(evidence: Evidence, constants: Constants | None = None, *, exact: bool = False) -> GradeModel:
    """Fit the model to the evidence; ``exact`` takes the exact posteriors of the intercepts of topics."""
    if not len(evidence.unjudged):
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
    steps = [fit_step(evidence, features, level, exact=exact) for level in levels]
    without = fit_step(evidence, features, 1, with_labels=False) if len(evidence.labels) and steps else None
    return GradeModel(evidence, features, sigma, ks, tuple(steps), without, constants)


def fit_step(
    evidence: Evidence, features: Features, level: int, *, with_labels: bool = True, exact: bool = False
) -> GradeStep:
    """Fit ``P(level >= l | level >= l - 1)`` to the judged documents.

    The first step has random intercepts and slopes of the rank; higher steps have random intercepts, and strong ridges,
    because a weak one invents high grades deep in the lists. Coefficients of runs have an estimated variance. Labellers
    whose labels would lower the probability of relevance are left out.
    """
    known = evidence.level >= level - 1
    hit = evidence.level[known] >= level
    first = level == 1
    columns = label_columns(evidence.labels, known, hit) if with_labels else np.empty((len(evidence), 0))
    while True:
        parts = [features.fixed, columns, features.by_run]
        design = np.column_stack(parts)
        kind = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        ridge = np.where(kind == 1, LABEL_RIDGE, RIDGE if first else STRONG_RIDGE)
        # Shallow pools do not identify slopes of deeper ranks, and a weak prior would draw any slope.
        ridge[[place for place, name in enumerate(features.names) if name in RANK_SLOPES]] = STRONG_RIDGE
        ridge[0] = INTERCEPT_RIDGE
        prior = np.array(FIRST_VARIANCES if first else HIGHER_VARIANCES)
        shared = kind == 2  # noqa: PLR2004 - the third part
        topic, n_topics = evidence.topic[known], len(evidence.topics)
        fitted = fit_mixed_logit(design[known], hit, topic, n_topics, ridge=ridge, variance_prior=prior, shared=shared)
        falling = fitted.coef[kind == 1] < 0
        if not falling.any():
            break
        columns = columns[:, ~falling]
    intercepts = None
    if exact:
        offset = fitted.logit(design[known], topic) - fitted.effect[topic, 0]
        variances = {"variance": float(fitted.variance[0]), "variance_prior": float(prior[0])}
        intercepts = exact_intercepts(offset, hit, topic, n_topics, **variances, ridge=INTERCEPT_RIDGE)
    return GradeStep(fitted, design[evidence.unjudged], intercepts)


def _pool_steps(evidence: Evidence) -> list[GradeStep]:
    """Regressions of intercepts alone: the share of each topic's pool that has at least a level, of the lower one."""
    n_topics, n_levels = evidence.counts.shape
    at_least = np.cumsum(evidence.counts[:, ::-1], axis=1)[:, ::-1]
    design = np.ones((len(evidence.unjudged), 1))
    steps = []
    for level in range(1, n_levels):
        overall = (at_least[:, level].sum() + 0.5) / (at_least[:, level - 1].sum() + 1)
        share = (at_least[:, level] + POOL_COUNT * overall) / (at_least[:, level - 1] + POOL_COUNT)
        coef = logit(np.array([overall]))
        effect = (logit(share) - coef)[:, None]
        exact = np.full((n_topics, 1, 1), NO_VARIANCE)
        steps.append(GradeStep(MixedLogit(coef, np.ones((1, 1)), effect, exact, np.ones(1)), design))
    return steps


def _antithetic(rng: np.random.Generator, n_draws: int, width: int) -> Floats:
    """Standard normal numbers, shape (n_draws, width): the second half are the first half with opposite signs."""
    half = rng.standard_normal(((n_draws + 1) // 2, width))
    return np.concatenate([half, -half])[:n_draws]


def _antithetic_normals(keys: Words, draws: Ints, n_half: int) -> Floats:
    """Standard normal numbers of pairs of draws and keys; from draw ``n_half`` on, the first with opposite signs."""
    from scipy import special

    first = draws < n_half
    uniform = hashed_uniforms(keys, np.where(first, draws, draws - n_half))
    # The middle of the cells of 24 bits, so that no number is infinite.
    return np.asarray(special.ndtri(uniform + np.float64(2.0**-25)) * np.where(first, 1.0, -1.0)[:, None])


def _topic_mean_below(values: Floats, topic: Ints, near: NDArray[np.bool_]) -> Floats:
    """Values of documents in a cut; the mean of their topic for the others, or of all topics."""
    if not near.any():
        return np.zeros_like(values)
    n_topics = int(topic.max(initial=-1)) + 1
    n = np.bincount(topic[near], minlength=n_topics)
    mean = np.bincount(topic[near], values[near], minlength=n_topics) / np.maximum(n, 1)
    mean = np.where(n > 0, mean, values[near].mean())
    return np.where(near, values, mean[topic])


def _count(levels: NDArray[np.uint8], topic: Ints, n_topics: int, n_levels: int) -> Ints:
    """Drawn documents of each topic and level above 0, shape (n_draws, n_topics, L)."""
    first, shape = topic * n_levels, (n_topics, n_levels)
    counts = np.stack([np.bincount(first + level, minlength=n_topics * n_levels).reshape(shape) for level in levels])
    counts[:, :, 0] = 0
    return counts


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


def fit_model(
    runs: Mapping[str, Run],
    judgments: Judgments,
    cutoff: int | None,
    horizon: int = 0,
    labels: MachineLabels | None = None,
) -> GradeModel:
    """Fit the model to the evidence runs and the judgments.

    ``cutoff``: ``None`` for the length of the longest list. ``horizon``: the depth to which all documents are meant to
    be judged; 0 for the larger of the cutoff and the depth of the pool.
    """
    if cutoff is None:
        cutoff = max([1, *(run.top(None).rows.shape[1] for run in runs.values())])
    if labels is not None:
        labels.require_match(judgments)
    evidence = evidence_of(runs, judgments, cutoff, max(horizon, cutoff) if horizon else max(DEPTH, cutoff), labels)
    if not horizon:
        # Runs whose first k documents are all judged have their score, whatever stands below.
        evidence = evidence.cut_to(pool_depth(evidence) if evidence.n_unjudged.any() else cutoff)
    if len(evidence.unjudged):
        require_identified(judgments)
    model = fit_evidence(evidence)
    fitted = "fitted the model of unjudged documents to %d runs, %d topics, %d documents (%d unjudged), horizon %d"
    sizes = (evidence.n_runs, len(evidence.topics), len(evidence), len(evidence.unjudged), evidence.depth)
    _LOG.info(fitted, *sizes)
    return model
