"""Segmented regressions: the variance explained by a breakpoint, for all breakpoints in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


# Terms of a segment with a smaller share of unexplained variance are collinear.
_COLLINEAR = 1e-9


def explained_by_cuts(
    x: Floats, beside: Floats, y: Floats, weights: Floats, cuts: Ints, *, n_terms: int, least: float
) -> Floats:
    """The share of the residual variance of y that separate terms of x above each breakpoint explain.

    ``1 - RSS_cut/RSS`` with RSS of ``y ~ beside`` and RSS_cut of ``y ~ beside + 1[x >= c] (+ x 1[x >= c])``.

    Parameters
    ----------
    x
        Increasing, shape (n,); standardised, for precision.
    beside
        The common regressors of both segments, including the constant, shape (n, q).
    y
        Shape (b, n), or (1, n).
    weights
        The weight of each row, shape (b, n), or (1, n).
    cuts
        The first row of each upper segment, where x is larger than in the previous row; increasing, at least 1, shape
        (c,).
    n_terms
        1 for a separate level, 2 for a separate level and slope.
    least
        The smallest weight of a segment.

    Returns
    -------
    numpy.ndarray
        In [0, 1], shape (b, c). NaN for breakpoints with too little weight in a segment, with collinear terms, or
        without weight at their x (they equal the next breakpoint), and if the regression has no residuals.

    Notes
    -----
    Sums over upper segments are cumulative, so the cost is that of ``b n q`` numbers for any number of breakpoints.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> y, ones = np.array([[0.0, 0.0, 1.0, 1.0]]), np.ones((1, 4))
    >>> explained_by_cuts(x, np.ones((4, 1)), y, ones, np.array([1, 2, 3]), n_terms=1, least=1).round(3).tolist()
    [[0.333, 1.0, 0.333]]
    """
    terms = x[:, None] ** np.arange(n_terms)
    weighted = weights[:, :, None] * beside
    inverse = np.linalg.pinv(weighted.swapaxes(1, 2) @ beside, rcond=1e-12, hermitian=True)
    coef = inverse @ (weighted.swapaxes(1, 2) @ y[:, :, None])
    left = y - (beside @ coef)[:, :, 0]
    total = (weights * left**2).sum(axis=1, keepdims=True)
    own = _above(weights[:, :, None, None] * terms[:, :, None] * terms[:, None, :], cuts)
    common = _above(weights[:, :, None, None] * terms[:, :, None] * beside[:, None, :], cuts)
    gram = own - common @ inverse[:, None] @ common.swapaxes(2, 3)
    cross = _above((weights * left)[:, :, None] * terms, cuts)
    valid = _valid(weights, cuts, least) & _independent(gram, own)
    gram = np.where(valid[:, :, None, None], gram, np.eye(n_terms))
    reduction = (cross * np.linalg.solve(gram, cross[:, :, :, None])[:, :, :, 0]).sum(axis=2)
    # Residuals at the level of rounding errors are 0.
    something = total > 1e-20 * (weights * y**2).sum(axis=1, keepdims=True)
    found: Floats = np.full(reduction.shape, np.nan)
    np.divide(reduction, total, out=found, where=valid & something)
    return np.clip(found, 0.0, 1.0)


def _above(rows: Floats, cuts: Ints) -> Floats:
    """Sums over the rows of each upper segment, shape (b, c, ...)."""
    return np.flip(np.cumsum(np.flip(rows, axis=1), axis=1), axis=1)[:, cuts]


def _valid(weights: Floats, cuts: Ints, least: float) -> Bools:
    """Breakpoints with enough weight in both segments and some weight at their x, shape (b, c)."""
    above = _above(weights, cuts)
    below = weights.sum(axis=1, keepdims=True) - above
    at = above - np.concatenate([above[:, 1:], np.zeros((len(above), 1))], axis=1)
    found: Bools = (above >= least) & (below >= least) & (at > 0)
    return found


def _independent(gram: Floats, own: Floats) -> Bools:
    """Breakpoints whose terms are not collinear with the common regressors or each other, shape (b, c)."""
    size, before = (np.diagonal(matrix, axis1=2, axis2=3) for matrix in (gram, own))
    apart = np.all(size > _COLLINEAR * before, axis=2)
    scale = np.sqrt(np.where(apart[:, :, None], size, 1.0))
    determinant = np.linalg.det(gram / (scale[:, :, :, None] * scale[:, :, None, :]))
    found: Bools = apart & (determinant > _COLLINEAR)
    return found
