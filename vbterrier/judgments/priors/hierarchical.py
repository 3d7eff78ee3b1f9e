"""Each topic's pool in the light of all topics' pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

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
