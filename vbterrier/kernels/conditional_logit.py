"""Conditional logit of the candidate that a document is about (McFadden 1974), with normal priors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints


# A Newton step changes a coefficient at most this much, so that separated data do not diverge.
MAX_STEP = 2.0
MAX_STEPS, TOLERANCE = 40, 1e-7


def candidate_probabilities(features: Floats, document: Ints, coef: Floats) -> Floats:
    """``exp(x_c·β) / Σ_c' exp(x_c'·β)`` over the candidates of each document, shape (n,).

    - ``features``: of each candidate of each document, shape (n, p)
    - ``document``: the document of each candidate, ascending from 0 without gaps, shape (n,)
    - ``coef``: shape (p,)
    """
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    logit = features @ coef
    logit -= np.maximum.reduceat(logit, starts)[document] if len(logit) else 0.0
    share: Floats = np.exp(logit)
    return share / np.add.reduceat(share, starts)[document] if len(share) else share


def fit_conditional_logit(features: Floats, document: Ints, target: Floats, mean: Floats, precision: Floats) -> Floats:
    """The most probable coefficients with the priors ``β_j ~ N(mean_j, 1/precision_j)``, shape (p,).

    Newton's method, with steps halved until the penalised likelihood rises.

    - ``features``, ``document``: as for :func:`candidate_probabilities`
    - ``target``: the share of each candidate in the annotation of its document, which sum to 1, shape (n,)
    - ``mean``, ``precision``: shape (p,)
    """
    coef: Floats = mean.copy()
    if not len(document):
        return coef

    def loss(at: Floats, prob: Floats) -> float:
        return float((precision * (at - mean) ** 2).sum() / 2 - (target * np.log(np.maximum(prob, 1e-300))).sum())

    prob = candidate_probabilities(features, document, coef)
    before = loss(coef, prob)
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    for _ in range(MAX_STEPS):
        weighted = features * prob[:, None]
        centre = np.add.reduceat(weighted, starts)
        hessian = features.T @ weighted - centre.T @ centre + np.diag(precision)
        gradient = features.T @ (target - prob) - precision * (coef - mean)
        step = np.clip(np.linalg.solve(hessian, gradient), -MAX_STEP, MAX_STEP)
        for _ in range(MAX_STEPS):
            moved = candidate_probabilities(features, document, coef + step)
            after = loss(coef + step, moved)
            if after <= before:
                break
            step = step / 2
        coef, prob = coef + step, moved
        if before - after < TOLERANCE:
            break
        before = after
    return coef
