"""Clusters of things that are alike, each pair of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]



def cosines(vectors: Floats) -> Floats:
    """Cosine of each pair of rows, shape (n, n); 0 with a row of zeros.

    >>> cosines(np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]])).round(2).tolist()
    [[1.0, 0.96, 0.0], [0.96, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    # Scaled by the largest entry first: squares must not overflow.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    units = np.divide(scaled, length, out=np.zeros_like(scaled), where=length > 0)
    return np.asarray(units @ units.T, dtype=np.float64)


def complete_linkage(similarity: Floats, threshold: float) -> Ints:
    """The cluster of each thing, named by its first member, shape (n,).

    The two most similar clusters become one while every pair of their members is at least as similar as the threshold;
    of equally similar pairs the first in the order of the rows goes first. So a chain A~B, B~C does not join A with C.

    Parameters
    ----------
    similarity
        Symmetric, shape (n, n); the diagonal does not count.
    threshold
        Similarity of the least similar pair in a cluster.

    Notes
    -----
    Costs O(n²) for each merger.

    >>> chain = np.array([[1.0, 0.97, 0.90], [0.97, 1.0, 0.96], [0.90, 0.96, 1.0]])
    >>> complete_linkage(chain, 0.95).tolist()
    [0, 0, 2]
    """
    n = len(similarity)
    label = np.arange(n)
    if n == 0:
        return label
    between = np.array(similarity, dtype=np.float64)
    np.fill_diagonal(between, -np.inf)
    while True:
        one, other = sorted(divmod(int(np.argmax(between)), n))
        if not between[one, other] >= threshold - _SLACK:
            return label
        # Complete linkage: clusters are as similar as their least similar members.
        least = np.minimum(between[one], between[other])
        between[one], between[:, one] = least, least
        between[other], between[:, other] = -np.inf, -np.inf
        label[label == other] = one
