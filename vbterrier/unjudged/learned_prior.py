"""Priors learned from the judged documents around the unjudged documents of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.rankings import ranks

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.unjudged.pool import JudgedTop


# Candidate strengths of a Dirichlet distribution.
STRENGTHS = 2.0 ** np.arange(9)
# Distance of expected shares from 0 and 1, at which a beta distribution is undefined.
EDGE = 1e-9
# Ranks up to this multiple of the cutoff k are evidence, with weight (k/rank)^2 below the cutoff.
REACH = 3
# The pool has the weight of this many judged documents per rank of the first k.
POOL_WEIGHT = 1.5
# Intraclass correlations of judging documents of one topic, or at one rank, if judgments are clustered.
CLUSTERING = np.linspace(0.05, 0.5, 30)
# The prior of the shares of grades among relevant documents has the weight of this many documents.
SPLIT_STRENGTH = 3.0
LEAST_STRENGTH = 0.1
# Explanations with a smaller probability are ignored.
NEGLIGIBLE = 1e-3


def hierarchical(counts: Ints) -> Floats:
    """The share of each grade in the pool of a topic, shrunk to the shares in the pool of all topics.

    ``P_r = (|J_r| + s C_r) / (|J| + s)`` with C the shares of the grades among the judged documents of all topics and s
    estimated from the numbers of relevant documents, see :func:`expected_strength`.
    """
    overall = counts.sum(axis=0) / max(int(counts.sum()), 1)
    total = counts.sum(axis=1)
    strength = expected_strength(total - counts[:, 0], total, np.full(len(counts), 1 - overall[0]))
    shrunk: Floats = (counts + strength * overall) / (total + strength)[:, None]
    return shrunk


def expected_strength(hits: Floats, trials: Floats, expected: Floats) -> float:
    """Estimate the strength of the beta distribution of shares of hits from beta-binomial counts.

    The strengths ``STRENGTHS`` have equal prior probabilities. The estimate has the posterior mean of the intraclass
    correlation, ``1/(s + 1)``. With few counts it is in the middle of the range, whereas the maximum-likelihood
    estimate is often the largest strength. Counts may be weighted.
    """
    from scipy.special import softmax

    posterior = softmax([beta_binomial(hits, trials, expected, strength).sum() for strength in STRENGTHS])
    return float(1 / (posterior / (STRENGTHS + 1)).sum() - 1)


def beta_binomial(hits: Floats, trials: Floats, expected: Floats, strength: Floats | float) -> Floats:
    """The beta-binomial log-likelihood of a strength, up to a constant."""
    from scipy.special import betaln

    share = np.clip(expected, EDGE, 1 - EDGE)
    a, b = strength * share, strength * (1 - share)
    log: Floats = betaln(a + hits, b + trials - hits) - betaln(a, b)
    return log


class Learned(NamedTuple):
    """A Dirichlet prior over the grades of unjudged documents, with the probability that these are random."""

    prob: Floats  # expected probability of each grade, shape (n, L)
    strength: Floats  # pseudo-count, shape (n,)
    random: float


def learned(judged: JudgedTop) -> Learned:
    """Estimate the prior of a run's unjudged documents as a mixture of two models of missing judgments.

    *Missing at random*: the judgment of a document is independent of its relevance, so unjudged documents are similar
    to judged documents of the same run. A logistic regression of relevance on the logarithm of the rank and on the
    logit of the pool's share of relevant documents, over all topics, gives the expectation of each topic, which is
    updated with the judged documents of the topic (a Dirichlet prior with a strength estimated from all topics).

    *Missing not at random*: documents were judged because other systems retrieved them, in some topics more than in
    others. The estimate is then a mean of the pool, with the weight of ``1.5 k`` documents, and the judged documents of
    the ranking.

    The weights of the models are the posterior probabilities given which documents were judged, see
    :func:`random_missing`. The strength gives the Dirichlet distribution the variance of the mixture. Judged documents
    are used up to rank 3k, with weight ``(k/rank)^2`` below rank k.

    The constants were chosen on simulated data: one run of TREC Web 2012 or TREC-COVID left out at k from 5 to 50,
    shallow pools and subsampled pools. Errors are insensitive to them: the weight of the pool can be halved or doubled.
    """
    n, n_grades = judged.judgments.counts.shape
    if n_grades == 1:
        return Learned(np.ones((n, 1)), np.full(n, np.inf), 0.5)
    evidence = JudgedEvidence(judged, judged.deeper(REACH).levels)
    pool = hierarchical(judged.judgments.counts)
    random = random_missing(judged.levels >= 0, judged.unjudged)
    prob, variance = _missing_not_at_random(evidence, pool)
    if random > NEGLIGIBLE:
        at_random, variance_at_random = _missing_at_random(evidence, pool)
        apart = at_random[:, 0] - prob[:, 0]
        variance = random * variance_at_random + (1 - random) * variance + random * (1 - random) * apart**2
        prob = random * at_random + (1 - random) * prob
    relevant = 1 - prob[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.where(variance > 0, relevant * (1 - relevant) / variance - 1, np.inf)
    return Learned(prob, np.maximum(strength, LEAST_STRENGTH), random)


class JudgedEvidence:
    """The judged documents among the first 3k of each topic of a run, which is cut at k; levels of shape (n, 3k)."""

    def __init__(self, judged: JudgedTop, levels: Ints) -> None:
        self.cut, self.levels = judged, levels
        self.width = judged.levels.shape[1]
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
    """The probability that judgments of a run are missing at random.

    Four models of judging are compared: uniformly at random, or clustered by rank, by topic, or by both. Counts of
    judged documents are binomial if uniform, and beta-binomial with an intraclass correlation of .05 to .5 if
    clustered. Uniform and clustered judging have equal prior probabilities, and so have the three kinds of clusters.
    Judgments are missing at random under uniform judging, not at random under clusters by topic, and with probability
    1/2 under clusters by rank only, which occur in shallow pools of any systems. Masks have the shape (n, k).
    """
    from scipy.special import softmax

    by_topic, by_rank = (_clustered(judged.sum(axis, np.float64), unjudged.sum(axis)) for axis in (1, 0))
    even, uneven, *_ = softmax([np.log(3), by_rank, by_topic, by_topic + by_rank])
    return float(even + uneven / 2)


def _clustered(judged: Floats, unjudged: Floats) -> float:
    """The log Bayes factor of clustered versus uniform judging, for counts of shape (n,)."""
    from scipy.special import logsumexp

    share = (judged.sum() + 0.5) / (judged.sum() + unjudged.sum() + 1)
    random = float((judged * np.log(share) + unjudged * np.log1p(-share)).sum())
    strength = (1 / CLUSTERING - 1)[:, None]
    clustered = beta_binomial(judged, judged + unjudged, np.full(len(judged), share), strength).sum(axis=1)
    return float(logsumexp(clustered) - np.log(len(CLUSTERING))) - random


def _missing_not_at_random(evidence: JudgedEvidence, pool: Floats) -> tuple[Floats, Floats]:
    """Weighted means of pool and ranking, and the variance of relevance, shapes (n, L) and (n,)."""
    weight = POOL_WEIGHT * evidence.width
    total = weight + evidence.total
    prob = (weight * pool + evidence.counts) / np.maximum(total, 1e-300)[:, None]
    relevant, share = 1 - prob[:, 0], weight / np.maximum(total, 1e-300)
    ranking = np.where(evidence.total > 0, evidence.counts[:, 0] / np.maximum(evidence.total, 1e-300), pool[:, 0])
    # A mixture of the pool with weight `share` and of the ranking, plus the uncertainty of both.
    variance = share * (1 - share) * (ranking - pool[:, 0]) ** 2 + relevant * (1 - relevant) / (total + 1)
    return prob, variance


def _missing_at_random(evidence: JudgedEvidence, pool: Floats) -> tuple[Floats, Floats]:
    """Probabilities from the judged documents of the ranking, and the variance of relevance."""
    expected = _expected(evidence, pool)
    unjudged = evidence.cut.unjudged
    asked = np.where(unjudged.any(axis=1, keepdims=True), unjudged, True)
    share = np.average(expected[:, : evidence.width], axis=1, weights=asked) if evidence.width else 1 - pool[:, 0]
    # Hits at judged ranks, adjusted to the expected share at the ranks of unjudged documents.
    moved = (evidence.levels > 0) + share[:, None] - expected
    hits = np.clip((evidence.weight * moved).sum(axis=1), 0, evidence.total)
    strength = expected_strength(hits, evidence.total, share)
    relevant = (strength * share + hits) / (strength + evidence.total)
    split = _split(evidence, pool)
    prob = np.column_stack([1 - relevant, relevant[:, None] * split])
    return prob, relevant * (1 - relevant) / (strength + evidence.total + 1)


def _expected(evidence: JudgedEvidence, pool: Floats) -> Floats:
    """Probability of relevance at each rank of each topic if judgments are missing at random, shape (n, width)."""
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

    The shares of the pool, reweighted by the run's judged documents of all topics, then updated with the topic's own.
    """
    share = pool[:, 1:] / np.maximum(pool[:, 1:].sum(axis=1, keepdims=True), 1e-300)
    counts = evidence.counts[:, 1:]
    relevant = counts.sum(axis=1, keepdims=True)
    share = share * (counts.sum(axis=0) + 1) / ((share * relevant).sum(axis=0) + 1)
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    split: Floats = (counts + SPLIT_STRENGTH * share) / (relevant + SPLIT_STRENGTH)
    return split
