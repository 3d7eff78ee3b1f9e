"""Priors learned from the judged documents around the unjudged documents of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.gain import ranks

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.unjudged.pool import JudgedTop


# Strengths of a Dirichlet that are tried.
STRENGTHS = 2.0 ** np.arange(9)
# Expected shares keep this far from 0 and 1, which no beta distribution reaches.
EDGE = 1e-9


def hierarchical(counts: Ints) -> Floats:
    """Each topic's pool, shrunk to that of all topics.

    ``P_r = (|J_r| + s C_r) / (|J| + s)`` with C the shares of the grades among the judged documents of all topics and s
    what the numbers of relevant documents tell of how topics differ, see :func:`expected_strength`.

    Parameters
    ----------
    counts
        Judged documents of each topic and grade, shape (n, L).

    Returns
    -------
    numpy.ndarray
        Shape (n, L).
    """
    overall = counts.sum(axis=0) / max(int(counts.sum()), 1)
    total = counts.sum(axis=1)
    strength = expected_strength(total - counts[:, 0], total, np.full(len(counts), 1 - overall[0]))
    shrunk: Floats = (counts + strength * overall) / (total + strength)[:, None]
    return shrunk


def expected_strength(hits: Floats, trials: Floats, expected: Floats) -> float:
    """The strength of the beta distribution that shares of hits are drawn from, as far as counts tell.

    Of the strengths ``STRENGTHS``, equally likely beforehand, each has a posterior probability given beta-binomial
    counts; the strength is the one with their mean intraclass correlation, ``1/(s + 1)``. Where counts are few and fit
    any, it is in the middle of them: the likeliest one would as often as not be the largest.

    Parameters
    ----------
    hits, trials, expected
        Counts, which may be weighted, and the expected share of hits, each of shape (n,).
    """
    from scipy.special import softmax

    posterior = softmax([beta_binomial(hits, trials, expected, strength).sum() for strength in STRENGTHS])
    return float(1 / (posterior / (STRENGTHS + 1)).sum() - 1)


def beta_binomial(hits: Floats, trials: Floats, expected: Floats, strength: Floats | float) -> Floats:
    """Logarithm of the probability of counts, but for a factor that the strength has no part in."""
    from scipy.special import betaln

    share = np.clip(expected, EDGE, 1 - EDGE)
    a, b = strength * share, strength * (1 - share)
    log: Floats = betaln(a + hits, b + trials - hits) - betaln(a, b)
    return log


# Ranks behind the cut that are looked at too, as a multiple of it: what is judged there is worth (k/rank)^2.
REACH = 3
# The pool counts as much as this many judged documents for each of the first k.
POOL_WORTH = 1.5
# How much documents of one topic, or at one rank, share being judged, where they cluster (intraclass correlation).
CLUSTERING = np.linspace(0.05, 0.5, 30)
# The share among the relevant of each grade moves from the run's to the topic's own with its judged documents.
SPLIT_WORTH = 3.0
LEAST_STRENGTH = 0.1
# An explanation less probable than this is not worked out.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Learned:
    """Probabilities of the grades of unjudged documents, with how sure they are.

    Parameters
    ----------
    prob
        Probability of each grade, shape (n, L).
    strength
        Pseudo-count of the Dirichlet around it, shape (n,).
    random
        Probability that documents are unjudged at random, 0 to 1.
    """

    prob: Floats
    strength: Floats
    random: float


def learned(judged: JudgedTop) -> Learned:
    """What a run's unjudged documents may be, from two explanations of why nobody judged them.

    *At random*: which of the first k documents were judged has nothing to do with what they are. Then the unjudged are
    like the judged ones of the same run: a logistic regression of relevance on the logarithm of the rank and on the
    logit of the pool's share of relevant documents, over all topics, gives each topic's expectation, and its own judged
    documents correct it (a Dirichlet as strong as topics are alike).

    *Not at random*: other systems chose what was judged, more in some topics than in others. Then the unjudged are
    between the pool, which counts as ``1.5 k`` documents, and the judged ones of the topic's ranking.

    The explanations are weighed by how well they predict which documents were judged, see :func:`random_missing`. The
    strength is that of the Dirichlet with the variance of the mixture of all of these. Judged documents count to rank
    3k, those behind the cut ``(k/rank)^2``.

    The constants were chosen on simulated data: leaving out one run of TREC Web 2012 and of TREC-COVID at k from 5 to
    50, shallow pools, thinned pools. Errors hardly depend on them: the pool's worth may be halved or doubled.

    Parameters
    ----------
    judged
        The cut run.

    Returns
    -------
    Learned
    """
    n, n_grades = judged.judgments.counts.shape
    if n_grades == 1:
        return Learned(np.ones((n, 1)), np.full(n, np.inf), 0.5)
    evidence = JudgedEvidence(judged)
    pool = hierarchical(judged.judgments.counts)
    random = random_missing(judged.levels >= 0, judged.unjudged)
    prob, variance = _between(evidence, pool)
    if random > NEGLIGIBLE:
        alike, spread = _alike(evidence, pool)
        apart = alike[:, 0] - prob[:, 0]
        variance = random * spread + (1 - random) * variance + random * (1 - random) * apart**2
        prob = random * alike + (1 - random) * prob
    relevant = 1 - prob[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.where(variance > 0, relevant * (1 - relevant) / variance - 1, np.inf)
    return Learned(prob, np.maximum(strength, LEAST_STRENGTH), random)


class JudgedEvidence:
    """What is judged among the first 3k documents of each topic of a run.

    Parameters
    ----------
    judged
        The run, cut at k.
    """

    def __init__(self, judged: JudgedTop) -> None:
        self.cut = judged
        self.width = judged.levels.shape[1]
        self.levels = judged.deeper(REACH).levels
        n, depth = self.levels.shape
        self.n_grades = len(judged.judgments.grades)
        weight = np.minimum(1.0, (self.width / ranks(depth)) ** 2)
        self.judged: Bools = self.levels >= 0
        self.weight: Floats = np.where(self.judged, weight, 0.0)
        topic, rank = np.nonzero(self.judged)
        cells = topic * self.n_grades + self.levels[topic, rank]
        counts = np.bincount(cells, self.weight[topic, rank], minlength=n * self.n_grades)
        self.counts: Floats = counts.reshape(n, self.n_grades).astype(np.float64)
        self.total: Floats = self.counts.sum(axis=1)


def random_missing(judged: Bools, unjudged: Bools) -> float:
    """The probability that the unjudged documents of a run are like its judged ones.

    Four explanations of which documents are judged are compared: evenly at random, or clustered by rank, by topic, or
    by both. Evenly their numbers are binomial, in clusters beta-binomial with an intraclass correlation of .05 to .5.
    Even and clustered judging are equally likely beforehand, the three kinds of clusters too. Documents judged evenly
    speak for their neighbours; those clustered by topic do not, as other systems chose them; where only ranks differ,
    pools may have been shallow or others', and it is even odds.

    Parameters
    ----------
    judged, unjudged
        Where judged and unjudged documents stand, shape (n, k).

    Returns
    -------
    float
        From 0 to 1.
    """
    from scipy.special import softmax

    by_topic, by_rank = (
        _clustered(judged.sum(axis=axis, dtype=np.float64), unjudged.sum(axis=axis)) for axis in (1, 0)
    )
    even, uneven, *_ = softmax([np.log(3), by_rank, by_topic, by_topic + by_rank])
    return float(even + uneven / 2)


def _clustered(judged: Floats, unjudged: Floats) -> float:
    """The logarithm of how much better clusters explain numbers of judged and unjudged documents, shape (n,)."""
    from scipy.special import logsumexp

    share = (judged.sum() + 0.5) / (judged.sum() + unjudged.sum() + 1)
    random = float((judged * np.log(share) + unjudged * np.log1p(-share)).sum())
    strength = (1 / CLUSTERING - 1)[:, None]
    clustered = beta_binomial(judged, judged + unjudged, np.full(len(judged), share), strength).sum(axis=1)
    return float(logsumexp(clustered) - np.log(len(CLUSTERING))) - random


def _between(evidence: JudgedEvidence, pool: Floats) -> tuple[Floats, Floats]:
    """Probabilities between the pool's and the ranking's, and the variance of relevance, shapes (n, L) and (n,)."""
    worth = POOL_WORTH * evidence.width
    total = worth + evidence.total
    prob = (worth * pool + evidence.counts) / np.maximum(total, 1e-300)[:, None]
    relevant, share = 1 - prob[:, 0], worth / np.maximum(total, 1e-300)
    ranking = np.where(evidence.total > 0, evidence.counts[:, 0] / np.maximum(evidence.total, 1e-300), pool[:, 0])
    # Like the pool with the probability `share`, else like the ranking; and neither share is known for certain.
    variance = share * (1 - share) * (ranking - pool[:, 0]) ** 2 + relevant * (1 - relevant) / (total + 1)
    return prob, variance


def _alike(evidence: JudgedEvidence, pool: Floats) -> tuple[Floats, Floats]:
    """Probabilities as of the judged documents of the ranking, and the variance of relevance."""
    expected = _expected(evidence, pool)
    unjudged = evidence.cut.unjudged
    asked = np.where(unjudged.any(axis=1, keepdims=True), unjudged, True)
    share = np.average(expected[:, : evidence.width], axis=1, weights=asked) if evidence.width else 1 - pool[:, 0]
    # What is judged elsewhere in the ranking, at the rate that it would have at the ranks of the unjudged.
    moved = (evidence.levels > 0) + share[:, None] - expected
    hits = np.clip((evidence.weight * moved).sum(axis=1), 0, evidence.total)
    strength = expected_strength(hits, evidence.total, share)
    relevant = (strength * share + hits) / (strength + evidence.total)
    split = _split(evidence, pool)
    prob = np.column_stack([1 - relevant, relevant[:, None] * split])
    return prob, relevant * (1 - relevant) / (strength + evidence.total + 1)


def _expected(evidence: JudgedEvidence, pool: Floats) -> Floats:
    """Probability of relevance at each rank of each topic, were it judged at random, shape (n, depth)."""
    from scipy.special import logit

    judged, relevant = evidence.judged, evidence.levels[evidence.judged] > 0
    if relevant.all() or not relevant.any():
        return np.full(judged.shape, (relevant.sum() + 0.5) / (len(relevant) + 1))
    from sklearn.linear_model import LogisticRegression

    rank = np.broadcast_to(np.log2(ranks(judged.shape[1])), judged.shape)
    richness = np.broadcast_to(logit(np.clip(1 - pool[:, :1], 1e-3, 1 - 1e-3)), judged.shape)
    features = np.stack([rank, richness], axis=-1)
    features = features - features[judged].mean(axis=0)
    model = LogisticRegression(solver="newton-cholesky", tol=1e-8)
    model.fit(features[judged], relevant, sample_weight=evidence.weight[judged])
    chances: Floats = model.predict_proba(features.reshape(-1, 2))[:, 1].reshape(judged.shape)
    return chances


def _split(evidence: JudgedEvidence, pool: Floats) -> Floats:
    """The share of each grade above 0 among the relevant documents of a topic, shape (n, L - 1).

    The pool's, tilted as the run's judged documents are over all topics, then the topic's own.
    """
    share = pool[:, 1:] / np.maximum(pool[:, 1:].sum(axis=1, keepdims=True), 1e-300)
    counts = evidence.counts[:, 1:]
    relevant = counts.sum(axis=1, keepdims=True)
    share = share * (counts.sum(axis=0) + 1) / ((share * relevant).sum(axis=0) + 1)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    split: Floats = (counts + SPLIT_WORTH * share) / (relevant + SPLIT_WORTH)
    return split
