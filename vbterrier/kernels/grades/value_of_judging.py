"""Expected reduction of the variance of scores by a judgment."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grades.exact import scored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.kernels.grades.model import UnjudgedModel


# Worth is compared after rounding to these decimals of all variance: sums in another order must not break ties.
DECIMALS = 12
# A variance that judgments of others have brought down to this share of itself is none.
_SPENT = 1e-12


def gain_covariance(prob: Floats, gain: Floats, correlation: float) -> Floats:
    """Covariance of the gains of one topic's unjudged documents.

    ``K_ij = correlation · Cov(h_i(U), h_j(U))`` for i ≠ j, where both gains are read off one number U: with F the CDF
    of a prior, ``Cov = Σ_l Σ_m rise_l rise_m (min(F_i(l), F_j(m)) - F_i(l) F_j(m))``.

    Parameters
    ----------
    prob
        Probability of each level, shape (u, L).
    gain
        Gain of each level, shape (L,).
    correlation
        Probability that two documents share their number: ``1/(s + 1)`` in an urn of strength s.

    Returns
    -------
    numpy.ndarray
        Shape (u, u).

    >>> gain_covariance(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.0, 1.0]), 0.2).tolist()
    [[0.25, 0.05], [0.05, 0.25]]
    """
    ends = np.minimum(np.cumsum(prob[:, :-1], axis=1), 1.0)
    rises = np.diff(gain)
    covariance = np.zeros((len(prob), len(prob)))
    for one, rise in zip(ends.T, rises, strict=True):
        for other, lift in zip(ends.T, rises, strict=True):
            covariance += rise * lift * (np.minimum.outer(one, other) - np.outer(one, other))
    own = np.diagonal(covariance).copy()
    covariance *= correlation
    np.fill_diagonal(covariance, own)
    return covariance


def linear_weights(problem: UnjudgedModel, topic: int, uniforms: Floats) -> Floats:
    """What one unit of gain adds to the score of a topic, all else being as it may be, shape (u,).

    The weights of the problem where the score is their sum; else those of the line that fits its scores best, over
    independent draws.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    uniforms
        Independent numbers in [0, 1), shape (n_draws, u); more draws than documents.
    """
    n_unjudged = int(problem.n_unjudged[topic])
    if problem.value is None:
        plain: Floats = problem.weights[topic, :n_unjudged]
        return plain
    ends = np.cumsum(problem.landed[topic, : max(n_unjudged, 1), :-1], axis=1)
    drawn = (uniforms[:, :, None] >= ends).sum(axis=2)
    gains, scores = problem.gain[drawn], scored(problem, topic, drawn)
    gains -= gains.mean(axis=0)
    # By the normal equations: independent gains condition them well, and the draws themselves are many times as large.
    weights: Floats = np.linalg.lstsq(gains.T @ gains, gains.T @ (scores - scores.mean()), rcond=None)[0]
    return weights


class Outlook:
    """What is expected to be left of the variance of scores of one topic while its documents are judged.

    Parameters
    ----------
    weights
        What one unit of a document's gain adds to each of r scores, shape (r, u).
    covariance
        Of the gains, shape (u, u).
    """

    def __init__(self, weights: Floats, covariance: Floats) -> None:
        self._weights, self._covariance = weights, covariance.copy()
        self._least = _SPENT * np.diagonal(covariance)
        # Covariance of each score with each gain, given what is judged: 0 for judged documents.
        self._toward = weights @ covariance

    @property
    def variance(self) -> Floats:
        """Of each score, shape (r,)."""
        variance: Floats = np.maximum((self._weights * self._toward).sum(axis=1), 0.0)
        return variance

    def worth(self) -> Floats:
        """The variance that judging each document would remove, mean over the scores, shape (u,)."""
        own = np.diagonal(self._covariance)
        known = own <= self._least
        removed = (self._toward**2).mean(axis=0) / np.where(known, 1.0, own)
        worth: Floats = np.where(known, 0.0, removed)
        return worth

    def judge(self, document: int) -> None:
        """Take a document for judged."""
        column = self._covariance[document].copy()
        shared = column / column[document]
        self._toward -= self._toward[:, document, None] * shared
        self._covariance -= np.outer(column, shared)
        self._toward[:, document] = 0.0
        self._covariance[document] = self._covariance[:, document] = 0.0


class Step(NamedTuple):
    """One judgment: of which topic, of which of its documents, and what is left of the sums over topics.

    Attributes
    ----------
    topic, document : int
        Places.
    worth : float
        Variance that it removes, as a share of all there was: mean over the scores.
    variance : numpy.ndarray
        What is left of each score, summed over topics, shape (r,).
    """

    topic: int
    document: int
    worth: float
    variance: Floats


def greedy(outlooks: Sequence[Outlook], n: int) -> Iterator[Step]:
    """Judge n times the document that is worth most, or until none is worth anything.

    Of documents worth the same the first topic's first comes first. Topics are independent, so their variances add up.
    """
    if not outlooks:
        return
    variances = np.array([outlook.variance for outlook in outlooks])
    total = float(variances.sum(axis=0).mean())

    def best(topic: int) -> tuple[float, int, int]:
        shares = np.round(outlooks[topic].worth() / total, DECIMALS)
        document = int(np.argmax(shares))
        return -float(shares[document]), topic, document

    queue = [best(topic) for topic in range(len(outlooks)) if total > 0 and len(outlooks[topic].worth())]
    heapq.heapify(queue)
    for _ in range(n):
        if not queue or queue[0][0] == 0:
            return
        minus_worth, topic, document = queue[0]
        outlooks[topic].judge(document)
        variances[topic] = outlooks[topic].variance
        heapq.heapreplace(queue, best(topic))
        yield Step(topic, document, -minus_worth, variances.sum(axis=0))
