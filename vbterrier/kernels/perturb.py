"""Random numbers for perturbed candidates and tags: a row per replica, a column per candidate or match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.candidates import peaks
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints, Words


_STEP = np.uint64(0x9E3779B97F4A7C15)


def log_gammas(shape: Floats, larger: Floats, exponential: Floats) -> Floats:
    """The logarithm of gamma variates of shape a, from variates of shape a + 1.

    ``log G(a) = log G(a + 1) - E/a`` with ``E`` exponential (Marsaglia and Tsang 2000, section 6, in logarithms). The
    logarithm is exact even if ``G(a)`` underflows, as for shapes below .01.

    Parameters
    ----------
    shape
        ``a``, at least 0, shape (..., n); 0 gives ``-inf``.
    larger, exponential
        Draws from Gamma(a + 1) and from Exp(1), of a common shape to which ``shape`` broadcasts.

    >>> log_gammas(np.array([0.0, 0.5]), np.ones(2), np.ones(2)).tolist()
    [-inf, -2.0]
    """
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(shape > 0, 1.0 / shape, np.inf)
    # An exponential of exactly 0 with a shape of 0 must also give -inf.
    lost = np.maximum(exponential, np.finfo(np.float64).tiny)
    lost = np.multiply(lost, inverse, out=lost)
    logs = np.log(larger)
    return np.subtract(logs, lost, out=logs)


def survivors(uniform: Floats, alive: Bools, share: float, topic: Ints, n_topics: int) -> Bools:
    """A mask of the candidates that remain when each is dropped with probability ``share``, at least one per topic.

    If all candidates of a topic are dropped, the one with the largest number remains, a uniform choice.

    Parameters
    ----------
    uniform
        Numbers in [0, 1), shape (..., n).
    alive
        A mask of valid candidates, broadcasting to (..., n).
    share
        In [0, 1].
    topic, n_topics
        The topic of each candidate, shape (n,), and the number of topics.

    >>> survivors(np.array([0.2, 0.7, 0.1]), np.ones(3, bool), 0.5, np.array([0, 0, 1]), 2).tolist()
    [False, True, True]
    """
    last = peaks(np.where(alive, uniform, -np.inf), topic, n_topics)[..., topic]
    stays: Bools = alive & ((uniform >= share) | (uniform == last))
    return stays


def resampled(uniform: Floats, alive: Bools, topic: Ints, n_topics: int) -> Ints:
    """Bootstrap counts of candidates, resampled with replacement within their topic, shape (..., n).

    Parameters
    ----------
    uniform
        Numbers in [0, 1), shape (b, n).
    alive
        A mask of valid candidates, shape (1, n) or (b, n); only these are drawn.
    topic, n_topics
        The topic of each candidate, sorted, shape (n,), and the number of topics.

    >>> resampled(np.array([[0.1, 0.4, 0.9]]), np.array([[True, False, True]]), np.zeros(3, int), 1).tolist()
    [[2, 0, 0]]
    """
    b, n = uniform.shape
    start, row = np.searchsorted(topic, topic), np.arange(b)[:, None] * n
    if alive.all():
        size = np.bincount(topic, minlength=n_topics)[topic]
        number = row + start + (uniform * size).astype(np.int64)
        return np.bincount(number.ravel(), minlength=b * n).reshape(b, n)
    alive = np.broadcast_to(alive, (b, n))
    n_alive = per_topic(alive.astype(np.float64), topic, n_topics).astype(np.int64)[:, topic]
    drawn = np.arange(n) - start < n_alive
    # Draws are positions among the valid candidates of the topic.
    number = start + (uniform * n_alive).astype(np.int64)
    counts = np.bincount((row + number)[drawn], minlength=b * n).reshape(b, n)
    before: Ints = np.cumsum(alive, axis=1) - alive
    own = start + before - before[:, start]
    return np.where(alive, np.take_along_axis(counts, own, axis=1), 0)


def keyed_uniforms(keys: Words, first: int, n: int) -> Floats:
    """Numbers in [0, 1) that depend only on a key and the number of the replica, shape (n, n_keys).

    Each key seeds a separate splitmix64 sequence (Steele et al. 2014), so its draws do not depend on other keys or
    their order.

    Parameters
    ----------
    keys
        64-bit words with well-mixed bits, shape (n_keys,).
    first, n
        The first replica, from 0, and the number of replicas.

    >>> keys = np.array([1, 2, 3], dtype=np.uint64)
    >>> bool((keyed_uniforms(keys, 0, 5)[3:, 1:] == keyed_uniforms(keys[1:], 3, 2)).all())
    True
    """
    turns = np.arange(first + 1, first + n + 1, dtype=np.uint64)[:, None] * _STEP
    return (mix(keys + turns) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def another(uniform: Floats, intent: Ints, start: Ints, size: Ints) -> Ints:
    """A uniform draw of another candidate of the same topic, or the candidate itself if it is the only one.

    Parameters
    ----------
    uniform
        Numbers in [0, 1), shape (..., m).
    intent
        The position of a candidate, broadcasting to (..., m).
    start, size
        The first position and the number of the candidates of its topic, shape (m,).

    >>> another(np.array([0.1, 0.9]), np.array([5, 5]), np.array([4, 4]), np.array([3, 3])).tolist()
    [4, 6]
    """
    others = np.maximum(size - 1, 0)
    other = start + (uniform * others).astype(np.int64)
    return np.where(others > 0, other + (other >= intent), intent)
