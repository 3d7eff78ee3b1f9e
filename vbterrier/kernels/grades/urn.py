"""Pólya's urn: draws that share what is not known of their prior.

The i-th visited document (i = 0, 1, ...) has with probability ``s/(s+i)`` a number of its own, else that of an earlier
document, each as likely (Blackwell and MacQueen 1973); its grade is where the number falls in its own prior's CDF.
With one prior p for all, grades follow the Dirichlet-multinomial law: the prior's probabilities are Dirichlet(s·p).
Each document keeps its prior, and two documents share their number with probability ``1/(s+1)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def urn(rng: np.random.Generator, n_draws: int, n_documents: int, strength: float) -> Floats:
    """Uniform numbers behind the grades of documents in visiting order.

    Parameters
    ----------
    rng
        Where chance comes from.
    n_draws, n_documents
        How many sequences, and their length.
    strength
        s, above 0; ``inf`` for independent numbers.

    Returns
    -------
    numpy.ndarray
        In [0, 1), shape (n_draws, n_documents).

    >>> urn(np.random.default_rng(0), 2, 4, 2.0).round(2).tolist()
    [[0.64, 0.27, 0.04, 0.02], [0.81, 0.91, 0.81, 0.81]]
    """
    uniforms = rng.random((n_draws, n_documents))
    if not np.isfinite(strength):
        return uniforms
    draws = np.arange(n_draws)
    for document in range(1, n_documents):
        # Of s + i units the first i belong to the earlier documents, one each.
        ball = rng.random(n_draws) * (strength + document)
        again = np.flatnonzero(ball < document)
        uniforms[again, document] = uniforms[draws[again], ball[again].astype(np.int64)]
    return uniforms


def next_draw(prob: Floats, strength: Floats | None, seen: Floats, n_seen: int) -> Floats:
    """Probability of each level at the next draw: ``(s·p + seen)/(s + n_seen)``, written so that s may be infinite.

    Parameters
    ----------
    prob
        The prior, shape (n, 1, L).
    strength
        s of each topic, shape (n,); ``None`` if infinite.
    seen
        How often each level was drawn so far, shape (m, L).
    n_seen
        How many draws there were.

    Returns
    -------
    numpy.ndarray
        Shape (n, m, L); (n, 1, L) where strength is ``None``.

    >>> next_draw(np.array([[[0.5, 0.5]]]), np.array([2.0]), np.array([[1.0, 0.0]]), 1).round(3).tolist()
    [[[0.667, 0.333]]]
    """
    if strength is None or not n_seen:
        return prob
    share = (n_seen / (strength + n_seen))[:, None, None]
    return prob + share * (seen / n_seen - prob)


def joint_probs(prob: Floats, strength: float, left: Ints, right: Ints) -> Floats:
    """Probability of every pair of a sequence of draws and one that follows it, each given by its counts of levels.

    A sequence with c_l draws of level l has probability ``Π_l (s·p_l)^(c_l) / s^(u)``, with rising powers.

    Parameters
    ----------
    prob
        The prior, shape (L,).
    strength
        s, finite.
    left, right
        How often each level is in the sequences, shapes (a, L) and (b, L).

    Returns
    -------
    numpy.ndarray
        Shape (a, b).

    >>> joint_probs(np.array([0.5, 0.5]), 2.0, np.array([[1, 0]]), np.array([[1, 0], [0, 1]])).round(3).tolist()
    [[0.333, 0.167]]
    """
    counts = left[:, None, :] + right
    before = np.arange(int(counts[0, 0].sum()))
    # Both products of u factors are scaled alike, so that neither a weak nor a strong prior leaves their range.
    rising = np.cumprod((strength * prob[:, None] + before) / (strength + 1), axis=1)
    rising = np.concatenate([np.ones((len(prob), 1)), rising], axis=1)
    joint = rising[np.arange(len(prob)), counts].prod(axis=2)
    return np.asarray(joint / np.prod((strength + before) / (strength + 1)))


def comonotone_variance(prob: Floats, weights: Floats, gain: Floats) -> Floats:
    """The variance of ``H(U) = Σ_i w_i·h_i(U)``, all documents' gains read off one number U.

    H is a step function of U: where U passes a document's CDF at a level, its gain rises to that of the next.

    Parameters
    ----------
    prob
        Probability of each level, shape (n, u, L).
    weights
        w, shape (n, u).
    gain
        Gain of each level, shape (L,).

    Returns
    -------
    numpy.ndarray
        Shape (n,).
    """
    n = len(prob)
    steps = np.minimum(np.cumsum(prob[:, :, :-1], axis=2), 1.0).reshape(n, -1)
    rises = (weights[:, :, None] * np.diff(gain)).reshape(n, -1)
    order = np.argsort(steps, axis=1, kind="stable")
    steps, rises = np.take_along_axis(steps, order, axis=1), np.take_along_axis(rises, order, axis=1)
    heights = np.concatenate([np.zeros((n, 1)), np.cumsum(rises, axis=1)], axis=1)
    widths = np.diff(steps, axis=1, prepend=0.0, append=1.0)
    centred = heights - (heights * widths).sum(axis=1, keepdims=True)
    variance: Floats = (centred**2 * widths).sum(axis=1)
    return variance
