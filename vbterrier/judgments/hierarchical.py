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
    the strength under which the numbers of relevant documents are likeliest (beta-binomial).

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
    strength = likeliest_strength(total - counts[:, 0], total, np.full(len(counts), 1 - overall[0]))
    shrunk: Floats = (counts + strength * overall) / (total + strength)[:, None]
    return shrunk


def likeliest_strength(hits: Floats, trials: Floats, expected: Floats) -> float:
    """The strength among ``STRENGTHS`` under which beta-binomial counts are likeliest; counts may be weighted.

    Parameters
    ----------
    hits, trials, expected
        Counts and the expected share of hits, each of shape (n,).
    """
    likelihood = [beta_binomial(hits, trials, expected, strength).sum() for strength in STRENGTHS]
    return float(STRENGTHS[int(np.argmax(likelihood))])


def beta_binomial(hits: Floats, trials: Floats, expected: Floats, strength: Floats | float) -> Floats:
    """Logarithm of the probability of counts, but for a factor that the strength has no part in."""
    from scipy.special import betaln

    share = np.clip(expected, EDGE, 1 - EDGE)
    a, b = strength * share, strength * (1 - share)
    log: Floats = betaln(a + hits, b + trials - hits) - betaln(a, b)
    return log
