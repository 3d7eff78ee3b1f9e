"""Expected reduction of the variance of scores by a judgment."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grades.exact import topic_scores
from vbterrier.kernels.tolerances import ROUNDING, SUM_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.kernels.grades.model import UnjudgedModel


def gain_covariance(prob: Floats, gain: Floats, correlation: float) -> Floats:
    """Covariance of the gains of one topic's unjudged documents.

    ``K_ij = correlation · Cov(h_i(U), h_j(U))`` for i ≠ j, where both gains are quantiles at the same uniform number U:
    with F the CDF of a prior, ``Cov = Σ_l Σ_m rise_l rise_m (min(F_i(l), F_j(m)) - F_i(l) F_j(m))``.

    - ``prob``: probability of each level, shape (u, L)
    - ``gain``: gain of each level, shape (L,)
    - ``correlation``: probability that two documents have the same number: ``1/(s + 1)`` in an urn of strength s

    Returns shape (u, u).
    """
    ends = np.minimum(np.cumsum(prob[:, :-1], axis=1), 1.0)
    rises = np.diff(gain)
    covariance = np.zeros((len(prob), len(prob)))
    for one, rise in zip(ends.T, rises, strict=True):
        for other, lift in zip(ends.T, rises, strict=True):
            covariance += rise * lift * (np.minimum.outer(one, other) - np.outer(one, other))
    variance = np.diagonal(covariance).copy()
    covariance *= correlation
    np.fill_diagonal(covariance, variance)
    return covariance


# Covariances of draws below this number of standard errors count as 0.
_MIN_STANDARD_ERRORS = 2.0


def linear_weights(model: UnjudgedModel, topic: int, uniforms: Floats) -> Floats:
    """The expected change of the score of a topic per unit of gain of each document, shape (u,).

    These are the weights of the model if the score is a weighted sum, and otherwise the coefficients of a least-squares
    fit to the scores of independent draws.

    - ``model``: the model of unjudged documents
    - ``topic``: the position of the topic
    - ``uniforms``: independent numbers in [0, 1), shape (n_draws, u); more draws than documents
    """
    n_unjudged = int(model.n_unjudged[topic])
    if model.value is None:
        plain: Floats = model.weights[topic, :n_unjudged]
        return plain
    ends = np.cumsum(model.attainable_prob[topic, : max(n_unjudged, 1), :-1], axis=1)
    drawn = (uniforms[:, :, None] >= ends).sum(axis=2)
    gains, scores = model.gain[drawn], topic_scores(model, topic, drawn)
    gains -= gains.mean(axis=0)
    # The normal equations are well conditioned for independent gains, and much smaller than the draws.
    weights: Floats = np.linalg.lstsq(gains.T @ gains, gains.T @ (scores - scores.mean()), rcond=None)[0]
    return weights


class ResidualVariance:
    """The expected variance of the scores of one topic after some of its documents are judged.

    - ``variance``: the variance of each of r scores, shape (r,)
    - ``score_covariance``: covariance of the scores with the gain of each document, shape (r, u)
    - ``covariance``: covariance of the gains, shape (u, u)
    """

    def __init__(self, variance: Floats, score_covariance: Floats, covariance: Floats) -> None:
        self._variance, self._score_covariance, self._covariance = variance, score_covariance, covariance.copy()
        # Conditional variances below these shares of the prior variances are 0.
        self._least, self._least_variance = ROUNDING * np.diagonal(covariance), ROUNDING * variance

    @classmethod
    def of_weights(cls, weights: Floats, covariance: Floats) -> ResidualVariance:
        """Scores that are weighted sums of the gains, with weights of shape (r, u)."""
        score_covariance = weights @ covariance
        return cls((weights * score_covariance).sum(axis=1), score_covariance, covariance)

    @classmethod
    def of_draws(cls, scores: Floats, gains: Floats) -> ResidualVariance:
        """Joint draws of the scores, shape (n_draws, r), and of the gains, shape (n_draws, u).

        Covariances of scores and gains that are as small as those of independent draws count as 0.
        """
        n_draws = len(scores)
        centred, moved = scores - scores.mean(axis=0), gains - gains.mean(axis=0)
        variance, gain_variance = (centred**2).mean(axis=0), (moved**2).mean(axis=0)
        together = centred.T @ moved / n_draws
        chance = _MIN_STANDARD_ERRORS * np.sqrt(np.outer(variance, gain_variance) / n_draws)
        return cls(variance, np.where(np.abs(together) > chance, together, 0.0), moved.T @ moved / n_draws)

    @property
    def variance(self) -> Floats:
        """The variance of each score, shape (r,)."""
        return np.where(self._variance > self._least_variance, self._variance, 0.0)

    def value_of_judging(self) -> Floats:
        """The variance that the judgment of each document removes, mean over the scores, shape (u,)."""
        variance = np.diagonal(self._covariance)
        is_constant = variance <= self._least
        removed: Floats = (self._score_covariance**2).mean(axis=0) / np.where(is_constant, 1.0, variance)
        return np.where(is_constant, 0.0, removed)

    def judge(self, document: int) -> None:
        """Condition on the judgment of a document."""
        column = self._covariance[document].copy()
        shared = column / column[document]
        self._variance = self._variance - self._score_covariance[:, document] ** 2 / column[document]
        self._score_covariance = self._score_covariance - self._score_covariance[:, document, None] * shared
        self._covariance -= np.outer(column, shared)
        self._score_covariance[:, document] = 0.0
        self._covariance[document] = self._covariance[:, document] = 0.0


class Step(NamedTuple):
    """One judgment and the variance that it leaves.

    - ``topic``, ``document``: positions of the topic and of its document
    - ``value``: the removed variance as a share of the initial variance, mean over the scores
    - ``variance``: the remaining variance of each score, summed over topics, shape (r,)
    """

    topic: int
    document: int
    value: float
    variance: Floats


def greedy(
    residuals: Sequence[ResidualVariance], n: float, quota: Sequence[int] = (), cost: Sequence[float] = ()
) -> Iterator[Step]:
    """Judge the document with the largest value of judging per cost, until the budget is spent or all values are 0.

    Ties are broken by topic, then by document. Topics are independent, so their variances add up. A topic whose cost
    exceeds the rest of the budget gets no more judgments.

    - ``residuals``: the residual variance of each topic
    - ``n``: the budget, in units of the costs
    - ``quota``: the largest number of judgments of each topic; empty for no limit
    - ``cost``: the cost of a judgment in each topic, above 0; empty for 1
    """
    if not residuals:
        return
    variances = np.array([residual.variance for residual in residuals])
    total = float(variances.sum(axis=0).mean())
    price = np.ones(len(residuals)) if not len(cost) else np.asarray(cost, dtype=np.float64)
    left = np.full(len(residuals), np.inf) if not len(quota) else np.asarray(quota, dtype=np.float64)

    def best(topic: int) -> tuple[float, int, int, float]:
        shares = np.round(residuals[topic].value_of_judging() / total, SUM_DECIMALS)
        document = int(np.argmax(shares))
        share = float(shares[document]) if left[topic] > 0 else 0.0
        return -share / float(price[topic]), topic, document, share

    queue = [best(topic) for topic in range(len(residuals)) if total > 0 and len(residuals[topic].value_of_judging())]
    heapq.heapify(queue)
    budget = float(n)
    while queue and queue[0][0] < 0:
        _, topic, document, share = queue[0]
        if price[topic] > budget:
            heapq.heappop(queue)
            continue
        budget -= float(price[topic])
        left[topic] -= 1
        residuals[topic].judge(document)
        variances[topic] = residuals[topic].variance
        heapq.heapreplace(queue, best(topic))
        yield Step(topic, document, share, variances.sum(axis=0))
