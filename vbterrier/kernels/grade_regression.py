"""Continuation-ratio logistic regression with random topic effects, for the grades of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints


# Logits beyond this value have no effect on double-precision probabilities that matters.
MOST_LOGIT = 30.0
# A Newton step changes a coefficient at most this much, so that separated data do not diverge.
MAX_STEP = 1.0
# The variances of random effects have inverse-gamma priors with the weight of this many topics.
PRIOR_TOPICS = 4.0
LEAST_VARIANCE = 0.02
# The prior of the variance that shared coefficients have: weight (coefficients), sum of squares, smallest value.
SHARED_WEIGHT, SHARED_SQUARES, LEAST_SHARED = 2.0, 0.2, 0.005
MAX_STEPS, FEWEST_STEPS = 30, 7
# The grid of intercepts, documents that are computed at a time, and most steps of expectation-maximisation.
GRID, GRID_ROWS, GRID_STEPS = np.linspace(-10.0, 8.0, 145), 1 << 13, 200
# The weight of the prior variance of intercepts on the grid, in topics, and the range of the intercepts of topics with
# hardly any hit, relative to the mean of the others.
GRID_TOPICS, LOW = 10.0, (-6.0, -2.0)
TOLERANCE, TOPIC_TOLERANCE = 1e-3, 1e-2


def sigmoid(logit: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """``1 / (1 + exp(-logit))``, with logits clipped to [-30, 30]."""
    share: NDArray[Any] = np.asarray(np.clip(logit, -MOST_LOGIT, MOST_LOGIT))
    # In place, since most calls are of large arrays.
    np.exp(np.negative(share, out=share), out=share)
    share += 1
    np.divide(1, share, out=share)
    return share


@dataclass(frozen=True, eq=False)
class MixedLogit:
    """A logistic regression with random topic effects; the result of :func:`fit_mixed_logit`.

    - ``coef``, ``coef_cov``: coefficients, shape (p,), and their covariance, (p, p)
    - ``effect``, ``effect_cov``: effects of each topic on the intercept and on the slopes of the first features, shape
      (n_topics, q), and their covariance, (n_topics, q, q)
    - ``variance``: variance of the topic effects, shape (q,)
    """

    coef: Floats
    coef_cov: Floats
    effect: Floats
    effect_cov: Floats
    variance: Floats

    @property
    def n_random(self) -> int:
        """Number of features with topic effects, the intercept included."""
        return int(self.effect.shape[1])

    def logit(self, features: Floats, topic: Ints) -> Floats:
        """The expected logit of each document, shape (m,)."""
        topic_effect: Floats = (features[:, : self.n_random] * self.effect[topic]).sum(axis=1)
        return np.asarray(features[:, : len(self.coef)] @ self.coef + topic_effect)

    def logit_variance(self, features: Floats, topic: Ints) -> Floats:
        """The variance of the logit of each document due to the topic effects, shape (m,)."""
        random = features[:, : self.n_random]
        return np.asarray(np.einsum("ni,nij,nj->n", random, self.effect_cov[topic], random))


def fit_mixed_logit(
    features: Floats,
    hit: Bools,
    topic: Ints,
    n_topics: int,
    *,
    ridge: Floats,
    variance_prior: Floats,
    center: Floats | None = None,
    shared: Bools | None = None,
) -> MixedLogit:
    """Fit a logistic regression with topic effects by the Laplace approximation and expectation-maximisation.

    ``logit P(hit) = x·β + x[:q]·b_topic`` with ``β_j ~ N(c_j, 1/ridge_j)``, c the ``center``, and ``b_topic ~ N(0,
    diag(v))``. Newton steps for β and for b alternate with updates of v, ``v = (Σ_t (b_t² + V_t) + 4 v_0) / (n_topics +
    4)``, with V the posterior variances and ``v_0`` the prior (Breslow and Clayton, JASA 1993, for the approximation).

    - ``features``: shape (m, p); the first column is the intercept, the first q = len(variance_prior) columns have
      topic effects
    - ``hit``: the outcome, shape (m,)
    - ``topic``: the topic of each document, shape (m,)
    - ``n_topics``: number of topics; topics without documents keep the prior
    - ``ridge``, ``center``: prior precision and mean of each coefficient, shape (p,); means of 0 by default
    - ``variance_prior``: prior variances of the topic effects, shape (q,)
    - ``shared``: coefficients with one estimated variance instead of their ridge, shape (p,); ``None`` for none
    """
    y = hit.astype(np.float64)
    q = len(variance_prior)
    random = features[:, :q]
    diagonal = np.arange(q)
    share = (y.sum() + 0.5) / (len(y) + 1)
    center = np.zeros(features.shape[1]) if center is None else center
    coef: Floats = center.copy()
    coef[0] = np.log(share / (1 - share))
    effect: Floats = np.zeros((n_topics, q))
    variance: Floats = np.asarray(variance_prior, dtype=np.float64)
    precision = np.array(ridge, dtype=np.float64)
    shared = np.zeros(len(coef), dtype=bool) if shared is None else shared
    precision[shared] = 4.0
    products = (random[:, :, None] * random[:, None, :]).reshape(len(y), q * q)
    for step in range(MAX_STEPS):
        mean = sigmoid(features @ coef + (random * effect[topic]).sum(axis=1))
        weight = mean * (1 - mean)
        hessian = (features * weight[:, None]).T @ features + np.diag(precision)
        move = np.linalg.solve(hessian, features.T @ (y - mean) - precision * (coef - center))
        coef = coef + np.clip(move, -MAX_STEP, MAX_STEP)
        mean = sigmoid(features @ coef + (random * effect[topic]).sum(axis=1))
        weight = mean * (1 - mean)
        gradient = _by_topic(random * (y - mean)[:, None], topic, n_topics) - effect / variance
        curvature = _by_topic(products * weight[:, None], topic, n_topics).reshape(n_topics, q, q)
        curvature[:, diagonal, diagonal] += 1 / variance
        topic_move = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        effect = effect + np.clip(topic_move, -MAX_STEP, MAX_STEP)
        effect_cov = np.linalg.inv(curvature)
        spread = (effect**2).sum(axis=0) + effect_cov[:, diagonal, diagonal].sum(axis=0)
        variance = (spread + PRIOR_TOPICS * np.asarray(variance_prior)) / (n_topics + PRIOR_TOPICS)
        variance = np.maximum(variance, LEAST_VARIANCE)
        coef_cov = np.linalg.inv(hessian)
        if shared.any():
            squares = (coef[shared] ** 2).sum() + np.diag(coef_cov)[shared].sum() + SHARED_SQUARES
            precision[shared] = 1 / max(squares / (shared.sum() + SHARED_WEIGHT), LEAST_SHARED)
        if step >= FEWEST_STEPS and abs(move).max() < TOLERANCE and abs(topic_move).max() < TOPIC_TOLERANCE:
            break
    return MixedLogit(coef, np.asarray(coef_cov), effect, np.asarray(effect_cov), variance)


def symmetric_root(covariance: Floats) -> Floats:
    """The symmetric square root of a covariance matrix, shape (p, p).

    Coefficients in another order have the same root in that order, unlike Cholesky's.
    """
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def fit_logit(features: Floats, hit: Bools, ridge: Floats, weight: Floats) -> Floats:
    """Fit a logistic regression with prior precisions ``ridge``, shape (p,), by Newton steps.

    ``features``: shape (m, p), the first column the intercept. ``hit``, ``weight``: the outcome and the weight of each
    row, shape (m,). Returns the fitted probabilities, shape (m,).
    """
    y = hit.astype(np.float64)
    coef: Floats = np.zeros(features.shape[1])
    share = ((weight * y).sum() + 0.5) / (weight.sum() + 1)
    coef[0] = np.log(share / (1 - share))
    for _ in range(MAX_STEPS):
        mean = sigmoid(features @ coef)
        hessian = (features * (weight * mean * (1 - mean))[:, None]).T @ features + np.diag(ridge)
        move = np.linalg.solve(hessian, features.T @ (weight * (y - mean)) - ridge * coef)
        coef = coef + np.clip(move, -MAX_STEP, MAX_STEP)
        if abs(move).max() < TOPIC_TOLERANCE:
            break
    return sigmoid(features @ coef)


@dataclass(frozen=True, eq=False)
class Intercepts:
    """The posterior distributions of the intercepts of topics on a grid; the result of :func:`exact_intercepts`.

    - ``values``: the grid, shape (G,)
    - ``cdf``: the distribution function of each topic, shape (n_topics, G)
    - ``mean``, ``variance``, ``low``: mean and variance of the normal component of the prior, and the weight of the
      component of topics with hardly any hit
    """

    values: Floats
    cdf: Floats
    mean: float
    variance: float
    low: float

    def quantiles(self, probability: Floats) -> Floats:
        """Quantiles of each topic, linear between grid points; ``probability``: shape (n, n_topics), as the result."""
        return np.stack(
            [np.interp(u, cdf, self.values) for u, cdf in zip(probability.T, self.cdf, strict=True)], axis=1
        )


def exact_intercepts(
    offset: Floats,
    hit: Bools,
    topic: Ints,
    n_topics: int,
    *,
    variance: float,
    variance_prior: float,
    ridge: float,
    low_share: float = 0.0,
) -> Intercepts:
    """Return the posterior of the intercepts of topics, ``logit P(hit) = offset + b_topic``, on a grid.

    The prior is a mixture: ``b_t ~ N(c, v)``, and with probability w a uniform distribution between ``c - 6`` and ``c -
    2``, for topics with hardly any hit. c has the prior ``N(0, 1/ridge)``, v an inverse-gamma one with the weight of
    ten topics of variance ``v_0``, and w a beta one with the weight of four topics of the mean ``low_share``; 0 for a
    normal distribution. They are estimated by expectation-maximisation, which starts at ``variance``.

    The approximation of :func:`fit_mixed_logit` is normal around the mode: for topics without a hit, it is too narrow
    and too high.
    """
    # The documents of a topic are neighbours.
    order = np.argsort(topic, kind="stable")
    offset, hit, topic = offset[order], hit[order], topic[order]
    log_likelihood = np.zeros((n_topics, len(GRID)))
    for start in range(0, len(topic), GRID_ROWS):
        part = slice(start, start + GRID_ROWS)
        logits = offset[part, None] + GRID
        # log P(hit) = logit - softplus(logit), log P(no hit) = -softplus(logit).
        terms = np.where(hit[part, None], logits, 0) - np.logaddexp(0, logits)
        topics, starts = np.unique(topic[part], return_index=True)
        log_likelihood[topics] += np.add.reduceat(terms, starts)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    mean, low, cell = 0.0, low_share, GRID[1] - GRID[0]
    for _ in range(GRID_STEPS):
        deviation = GRID - mean
        normal = np.exp(-(deviation**2) / (2 * variance))
        # The cells at the ends of the range count in part, so that the mean moves without jumps.
        uniform = np.clip(np.minimum(deviation - LOW[0], LOW[1] - deviation) / cell + 0.5, 0, 1)
        prior = np.stack([(1 - low) * normal / normal.sum(), low * uniform / uniform.sum()])
        of_both = likelihood @ prior.T
        total = of_both.sum(axis=1)
        mass = prior[0] * (likelihood.T @ (1 / total))
        before = np.array([mean, variance, low])
        mean = float(mass @ GRID / (mass.sum() + ridge * variance))
        squares = mass @ (GRID - mean) ** 2 + GRID_TOPICS * variance_prior
        variance = float(squares / (mass.sum() + GRID_TOPICS))
        low = float(((of_both[:, 1] / total).sum() + PRIOR_TOPICS * low_share) / (n_topics + PRIOR_TOPICS))
        if abs(before - [mean, variance, low]).max() < TOLERANCE:
            break
    density = likelihood * prior.sum(axis=0) / total[:, None]
    return Intercepts(GRID, np.cumsum(density, axis=1) - density / 2, mean, variance, low)


def _by_topic(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """Sums of each column by topic, shape (n_topics, n_columns)."""
    return np.stack([np.bincount(topic, column, minlength=n_topics) for column in values.T], axis=1)
