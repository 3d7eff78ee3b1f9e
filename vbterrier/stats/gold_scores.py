"""Scores of a system under gold tags of all documents, estimated from those of some."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.errors import InputError
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.kernels.resample import stream
from vbterrier.kernels.vb import per_topic
from vbterrier.stats.matches import WeightedSuccess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.stats.matches import Statistic


# Normal priors: precision of the coefficients of tags, and means and precisions of those of attestation and of the
# logarithm of the standard deviation of random effects. Most candidates are attested, probable ones above all.
_TAG_PRECISION = 0.1
_PRIOR_MEANS = np.array([4.0, 1.0, np.log(0.5)])
_PRECISIONS = np.array([1.0, 0.25, 1.0])
# Keeps probabilities above rounding errors.
_MIN_PROBABILITY = 1e-9
# Nodes and weights of the quadrature over random effects.
_NODES, _QUADRATURE_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_LOG_WEIGHTS = np.log(_QUADRATURE_WEIGHTS / _QUADRATURE_WEIGHTS.sum())
# Keeps the log odds of probabilities of 0 and 1 finite.
_LOG_ODDS_OFFSET = 1e-3
# Constants of the intervals: the share of the labels' likelihood, and the standard deviation of the logarithm of the
# repetition of documents; the wider of those that two linkers choose (docs/explanation/taggers.md).
WEIGHT = 0.5
REPETITION = 0.6
# Samples of the coefficients, and degrees of freedom of the distribution that proposes them.
_PROPOSALS, _FREEDOM = 500, 6
_GRADIENT_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class RetrievedPairs:
    """Pairs of a retrieved document and a candidate intent of its query, for one system.

    ``topic, prob``: query, increasing, and probability of each intent, shape (n,). ``intent, rank``: intent,
    increasing, and 0-based rank of the document of each pair, shape (m,). ``tagged, labelled, gold``: true for pairs
    whose document is tagged with the intent, is labelled, is labelled with the intent; shape (m,).
    """

    topics: Sequence[str]
    topic: Ints
    prob: Floats
    intent: Ints
    rank: Ints
    tagged: Bools
    labelled: Bools
    gold: Bools

    @cached_property
    def features(self) -> Floats:
        """Features of the probability that the document is about the intent, shape (m, 7)."""
        document = self.topic[self.intent] * (int(self.rank.max(initial=0)) + 1) + self.rank
        n_tagged = np.bincount(document, self.tagged)
        other = n_tagged[document] > self.tagged
        # Errors of a tagger repeat: it misses some intents in all documents.
        never = (self.sums(self.tagged) == 0)[self.intent]
        odds, depth = self.log_odds[self.intent], np.log1p(self.rank)
        return np.stack([np.ones(len(odds)), self.tagged, other, never, odds, depth, odds * depth], axis=1)

    @cached_property
    def log_odds(self) -> Floats:
        """Log odds of each intent, shape (n,)."""
        return log_odds(self.prob)

    def sums(self, values: Floats | Bools) -> Floats:
        """Sum over the documents of each intent, shape (n, ...)."""
        sums = np.zeros((len(self.prob), *values.shape[1:]))
        present, starts = np.unique(self.intent, return_index=True)
        if len(present):
            sums[present] = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        return sums


def log_odds(prob: Floats) -> Floats:
    """Log odds of probabilities, finite for 0 and 1."""
    return np.log((prob + _LOG_ODDS_OFFSET) / (1 - prob + _LOG_ODDS_OFFSET))


class _Parts(NamedTuple):
    """Parts of the density for each intent i, and each node u of its random effect, given the coefficients.

    ``logit, log_none``: of pairs, shape (m, n_nodes). ``attested``: A, shape (n,). ``all_none, unseen_none``: log
    probability that no document, and no unlabelled one, is about the intent, shape (n, n_nodes). ``joint``: density of
    the labels at each node, divided by its maximum ``exp(log_scale)``. ``some``: probability that any document is about
    the intent, shape (n,). ``some_given_labels``: the same at each node, given the labels.
    """

    logit: Floats
    log_none: Floats
    attested: Floats
    all_none: Floats
    unseen_none: Floats
    joint: Floats
    log_scale: Floats
    some: Floats
    some_given_labels: Floats


class Posterior:
    """Posterior density of the coefficients given the labels.

    A document at rank r is about intent i with probability ``sigmoid(x'β + σ log(1 + r) u_i)``: documents of a query
    depend on each other by the standard normal effect u_i of the intent. With probability ``A = sigmoid(γ_0 + γ_1 logit
    π_i)``, the intent is attested: at least one retrieved document is about it. Coefficients are β, γ and log σ.
    """

    def __init__(self, pairs: RetrievedPairs, weight: float) -> None:
        self.pairs, self.weight = pairs, weight
        self.x = pairs.features
        self.v = np.stack([np.ones(len(pairs.prob)), pairs.log_odds], axis=1)
        self.effect = np.log1p(pairs.rank)[:, None] * _NODES
        self.labelled = pairs.labelled.astype(np.float64)[:, None]
        self.gold = pairs.gold.astype(np.float64)[:, None] * self.labelled
        self.seen = pairs.sums(self.gold[:, 0]) > 0
        n_tags = self.x.shape[1]
        self.mean = np.concatenate([np.zeros(n_tags), _PRIOR_MEANS])
        self.precision = np.concatenate([np.full(n_tags, _TAG_PRECISION), _PRECISIONS])

    def parts(self, coefficients: Floats, repetition: float = 1.0) -> _Parts:
        """Parts of the density; ``repetition``: the factor of ``log(1 - r)`` of all documents but the first."""
        beta, gamma, (log_sd,) = np.split(coefficients, [self.x.shape[1], self.x.shape[1] + 2])
        logit = np.clip((self.x @ beta)[:, None] + np.exp(np.clip(log_sd, -5, 2)) * self.effect, -30, 30)
        log_one = -np.logaddexp(0, logit)
        log_none = log_one * np.where(self.pairs.rank == 0, 1.0, repetition)[:, None]
        sums = self.pairs.sums
        all_none, unseen_none = sums(log_none), sums(log_none * (1 - self.labelled))
        log_joint = _LOG_WEIGHTS + sums(self.labelled * (self.gold * logit + log_one))
        scale = log_joint.max(axis=1)
        some = (np.exp(_LOG_WEIGHTS) * np.maximum(-np.expm1(all_none), _MIN_PROBABILITY)).sum(axis=1)
        expected = np.where(self.seen[:, None], 1.0, -np.expm1(unseen_none))
        joint, attested = np.exp(log_joint - scale[:, None]), sigmoid(self.v @ gamma)
        return _Parts(logit, log_none, attested, all_none, unseen_none, joint, scale, some, expected)

    def negative(self, coefficients: Floats) -> tuple[float, Floats]:
        """Negative logarithm of the density, and its gradient."""
        p, intent = self.parts(coefficients), self.pairs.intent
        of_labels, of_found = p.joint.sum(axis=1), (p.joint * p.some_given_labels).sum(axis=1)
        mixed = np.maximum((1 - p.attested) * of_labels + p.attested * of_found / p.some, 1e-300)
        ratio = p.attested / (p.some * mixed)
        # Derivatives by the log density of the labels, that of some given the labels, and that of some.
        by_labels = p.joint * (((1 - p.attested) / mixed)[:, None] + ratio[:, None] * p.some_given_labels)
        by_found = p.joint * np.where(self.seen, 0.0, ratio)[:, None] * np.exp(p.unseen_none)
        by_some = (ratio * of_found / p.some)[:, None] * np.exp(_LOG_WEIGHTS + p.all_none)
        r = sigmoid(p.logit)
        slope = by_labels[intent] * self.labelled * (self.gold - r)
        slope += r * (by_found[intent] * (1 - self.labelled) - by_some[intent])
        of_attested = (of_found / p.some - of_labels) / mixed * p.attested * (1 - p.attested)
        of_effect = float((slope * self.effect).sum()) * np.exp(np.clip(coefficients[-1], -5, 2))
        gradient = np.concatenate([self.x.T @ slope.sum(axis=1), self.v.T @ of_attested, [of_effect]])
        distance = coefficients - self.mean
        penalty = self.precision * distance
        log_density = float((np.log(mixed) + p.log_scale).sum())
        return 0.5 * float(penalty @ distance) - self.weight * log_density, penalty - self.weight * gradient

    def mode(self) -> Floats:
        """Coefficients of the largest density."""
        from scipy.optimize import minimize

        optimum = minimize(self.negative, self.mean, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        return np.asarray(optimum.x)

    def sample(self, n: int, draw: np.random.Generator) -> Floats:
        """Draw coefficients by sampling importance resampling (Rubin 1987), shape (n, p)."""
        mode = self.mode()
        steps = _GRADIENT_STEP * np.eye(len(mode))
        gradients = [self.negative(mode + e)[1] - self.negative(mode - e)[1] for e in steps]
        hessian = np.array(gradients) / (2 * _GRADIENT_STEP)
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        # A proposal is at most as wide as the prior.
        root = vectors / np.sqrt(np.maximum(values, self.precision.min()))
        t = draw.standard_normal((_PROPOSALS, len(mode)))
        t /= np.sqrt(draw.chisquare(_FREEDOM, (_PROPOSALS, 1)) / _FREEDOM)
        proposed = mode + t @ root.T
        log_proposal = -0.5 * (_FREEDOM + len(mode)) * np.log1p((t**2).sum(axis=1) / _FREEDOM)
        log_weight = np.array([-self.negative(one)[0] for one in proposed]) - log_proposal
        weight = np.exp(log_weight - log_weight.max())
        return np.asarray(proposed[draw.choice(_PROPOSALS, n, p=weight / weight.sum())])

    def coverage(self, coefficients: Floats, cutoffs: Sequence[int | None], repetition: float = 1.0) -> Floats:
        """Probability that a document up to each cutoff is about each intent, given the labels, (n_cutoffs, n)."""
        p = self.parts(coefficients, repetition)
        if_found = 1 - p.attested + p.attested / p.some
        total = (1 - p.attested) * p.joint.sum(axis=1) + p.attested * (p.joint * p.some_given_labels).sum(
            axis=1
        ) / p.some
        curves = []
        for cutoff in cutoffs:
            shown = (self.pairs.rank < (np.inf if cutoff is None else cutoff))[:, None]
            uncovered = self.pairs.sums(p.log_none * (shown * (1 - self.labelled)))
            covered = if_found * (p.joint * -np.expm1(uncovered)).sum(axis=1) / total
            attested = self.pairs.sums((self.gold * shown)[:, 0]) > 0
            curves.append(np.where(attested, 1.0, np.clip(covered, 0.0, 1.0)))
        return np.stack(curves)


def gold_scores(
    pairs: RetrievedPairs,
    statistics: Sequence[Statistic],
    *,
    n_replicas: int,
    seed: int,
    weight: float = WEIGHT,
    repetition: float = REPETITION,
) -> tuple[Floats, Floats]:
    """Draw the scores of a system under gold tags of all documents, given those of the labelled documents.

    Returns mean scores with binary gains over queries, each of shape (n_statistics, n_replicas): of the most probable
    coefficients, whose mean is the estimate, and of coefficients drawn with ``weight`` of the labels' likelihood, whose
    quantiles are an interval. In the latter, all documents but the first count as ``exp(repetition z)`` documents,
    with a standard normal z: fewer if documents of a query repeat each other more than the model says, more if they
    complement each other. ``1 - score`` is scaled so that the mean is the estimate.

    Coverage of the intents of a query is drawn with one uniform number by systematic sampling at rank 1, since a
    document is mostly about one meaning of a name.
    """
    if not pairs.labelled.any():
        raise InputError(
            "the tagger model has labels of none of the retrieved documents; label documents that systems retrieve"
        )
    cutoffs = list(dict.fromkeys(statistic.cutoff for statistic in statistics))
    n = len(pairs.topics)
    total = per_topic(pairs.prob, pairs.topic, n)[None]
    uniform = np.stack([stream(seed, topic, "gold tags").random(n_replicas) for topic in pairs.topics], axis=1)
    first = np.searchsorted(pairs.topic, np.arange(n))
    most_probable = Posterior(pairs, 1.0).mode()
    posterior, draw = Posterior(pairs, weight), stream(seed, "tagger model")
    sampled = posterior.sample(n_replicas, draw)
    repetitions = np.exp(repetition * draw.standard_normal(n_replicas))
    values = np.empty((2, len(statistics), n_replicas))
    for kind, all_coefficients in enumerate((most_probable[None], sampled)):
        for b in range(n_replicas):
            if b < len(all_coefficients):
                factor = float(repetitions[b]) if kind else 1.0
                at_first, *coverage = posterior.coverage(all_coefficients[b], [1, *cutoffs], factor)
                before = np.cumsum(at_first) - at_first
                offset = before - before[first][pairs.topic]
            drawn = (uniform[b][pairs.topic] - offset) % 1.0
            success = [
                WeightedSuccess(pairs.prob[None], total, (drawn < covered)[None].astype(np.float64), pairs.topic)
                for covered in coverage
            ]
            for row, statistic in enumerate(statistics):
                values[kind, row, b] = statistic.of(success[cutoffs.index(statistic.cutoff)]).mean()
    return values[0], _rescale_to_mean(values[1], values[0].mean(axis=1))


def _rescale_to_mean(draws: Floats, mean: Floats) -> Floats:
    """Scale the distance of scores to 1 so that their mean is another, shape (n_statistics, n_replicas)."""
    distance = 1 - draws
    ratio = np.divide(
        1 - mean, distance.mean(axis=1), out=np.ones(len(mean)), where=distance.mean(axis=1) > _MIN_PROBABILITY
    )
    return np.asarray(1 - distance * ratio[:, None])
