"""Every sequence of grades, with its probability and its score: for scores and draws that do not come apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import atoms_of
from vbterrier.kernels.grades.sampled import scored
from vbterrier.kernels.grades.urn import next_draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.kernels.grades.laws import Atoms
    from vbterrier.kernels.grades.problem import Problem

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def listed_law(problem: Problem, topic: int) -> Atoms:
    """The exact distribution of one topic, from a list of all sequences of drawn levels."""
    n_unjudged = int(problem.n_unjudged[topic])
    prob = problem.landed[topic, : max(n_unjudged, 1)]
    levels = np.flatnonzero((prob > 0).any(axis=0))
    places = sequences(len(levels), n_unjudged)
    probs = _probs(problem, topic, prob[:, levels], places)
    happens = np.flatnonzero(probs)
    return atoms_of(scored(problem, topic, levels[places[happens]]), probs[happens])


def sequences(n_levels: int, n_documents: int) -> Ints:
    """All sequences of levels, the last document's changing fastest, shape (n_levels^n_documents, n_documents).

    >>> sequences(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    stride = n_levels ** np.arange(n_documents - 1, -1, -1)
    return np.arange(n_levels**n_documents)[:, None] // stride % n_levels


def _probs(problem: Problem, topic: int, prob: Floats, places: Ints) -> Floats:
    """The probability of each sequence of one topic, for a prior of shape (1 or u, s)."""
    n_unjudged = places.shape[1]
    strength = problem.strength_of(topic)
    if strength is None or problem.is_shared:
        return sequence_probs(prob[None], n_unjudged, None if strength is None else np.array([strength])).reshape(-1)
    # One array of ends for both sides, summed from above: documents of equal priors meet in no sliver of rounding.
    ends = 1.0 - np.cumsum(np.pad(prob, ((0, 0), (0, 1)))[:, ::-1], axis=1)[:, ::-1]
    documents = np.arange(n_unjudged)
    low, high = ends[documents, places], ends[documents, places + 1]
    return mixed_probs(low, high, strength)


def sequence_probs(prob: Floats, n_documents: int, strength: Floats | None) -> Floats:
    """Probability of every sequence of levels, the last document's level changing fastest.

    Parameters
    ----------
    prob
        The prior, shape (n, 1, L), or (n, n_documents, L) where draws are independent.
    n_documents
        u, the length of a sequence.
    strength
        s of each topic, shape (n,); ``None`` for independent draws.

    Returns
    -------
    numpy.ndarray
        Shape (n, L^u).
    """
    n, _, n_levels = prob.shape
    probs, seen = np.ones((n, 1)), np.zeros((1, n_levels))
    for document in range(n_documents):
        drawn = prob[:, document : document + 1] if prob.shape[1] > 1 else next_draw(prob, strength, seen, document)
        probs = (probs[:, :, None] * drawn).reshape(n, -1)
        if strength is not None:
            seen = (seen[:, None, :] + np.eye(n_levels)).reshape(-1, n_levels)
    return probs


def mixed_probs(low: Floats, high: Floats, strength: float) -> Floats:
    """Probability that every document's number falls into its interval, numbers drawn from the urn.

    Documents that share their number form a block: ``P = Σ_partitions Π_blocks P(block)·|common interval|``. The sum
    runs over sets instead of partitions: the block of the first document is split off, and the rest is such a sum.

    Parameters
    ----------
    low, high
        The ends of the interval of each document, documents in visiting order, shape (m, u).
    strength
        s.

    Returns
    -------
    numpy.ndarray
        Shape (m,).
    """
    m, n_documents = low.shape
    # By sets of documents, as bits: the common interval, and the chance that the urn makes the set a block.
    start, stop, chance = [np.zeros(m)], [np.ones(m)], [1.0]
    for block in range(1, 1 << n_documents):
        last = block.bit_length() - 1
        rest = block ^ (1 << last)
        start.append(np.maximum(start[rest], low[:, last]))
        stop.append(np.minimum(stop[rest], high[:, last]))
        chance.append(chance[rest] * rest.bit_count() / (strength + last) if rest else 1 / (1 + last / strength))
    within = [np.maximum(high - low, 0.0) * share for low, high, share in zip(start, stop, chance, strict=True)]
    total = {0: np.ones(m)}
    everyone = (1 << n_documents) - 1
    # The first document is in nobody's rest.
    for members in (*range(2, everyone, 2), everyone):
        first = members & -members
        others = members ^ first
        joining, total[members] = others, within[first] * total[others]
        while joining:
            total[members] += within[first | joining] * total[others ^ joining]
            joining = (joining - 1) & others
    return total[everyone]
