"""Probabilities, perturbation, truncation and clusters of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.fingerprints import GOLDEN_STEP, mix
from vbterrier.kernels.tolerances import REPLICA_ROUNDING, ROUNDING, SUM_DECIMALS
from vbterrier.kernels.vb import per_topic, segments

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints, Words


def normalise_weights(weights: Floats, topic: Ints, n_topics: int) -> Floats:
    """Weights divided by their sum over each topic, shape (..., n_intents); 0 if all are 0."""
    total = per_topic(weights, topic, n_topics)[..., topic]
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def softmax(logits: Floats, topic: Ints, n_topics: int) -> Floats:
    """``π_i = exp(l_i) / Σ_j exp(l_j)`` over each topic, numerically stable, shape (..., n_intents).

    ``-inf`` gives 0, also for all intents of a topic.

    - ``logits``: shape (..., n_intents)
    - ``topic``: the number of each intent's topic, shape (n_intents,), in any order
    - ``n_topics``: the number of topics
    """
    return normalise_weights(unnormalised_softmax(logits, topic, n_topics), topic, n_topics)


def unnormalised_softmax(logits: Floats, topic: Ints, n_topics: int) -> Floats:
    """``exp(l_i - max_j l_j)`` over each topic: the softmax before normalisation, 1 for the most probable intent."""
    peak = peaks(logits, topic, n_topics)
    below = logits - np.where(np.isfinite(peak), peak, 0.0)[..., topic]
    return np.exp(below, out=below)


def peaks(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """The largest value of each topic, shape (..., n_topics); ``-inf`` for topics without values."""
    best = np.full((*values.shape[:-1], n_topics), -np.inf)
    if len(topic):
        order, present, starts = segments(topic)
        sorted_values = values if order is None else values[..., order]
        best[..., present] = np.maximum.reduceat(sorted_values, starts, axis=-1)
    return best


def proportional(weights: Floats, topic: Ints, n_topics: int) -> Floats:
    """Weights divided by their sum over each topic, uniform if all are 0; shape (..., n)."""
    # Scaling avoids overflow of the sum and underflow of small weights.
    peak = peaks(weights, topic, n_topics)[..., topic]
    scaled = np.divide(weights, peak, out=np.ones_like(weights), where=peak > 0)
    return normalise_weights(scaled, topic, n_topics)


def tempered_prob(weights: Floats, temperature: float, topic: Ints, n_topics: int) -> Floats:
    """``π_i ∝ w_i^(1/T)``, uniform if all weights of a topic are 0; shape (..., n)."""
    if temperature == 1.0:
        return proportional(weights, topic, n_topics)
    none = peaks(weights, topic, n_topics)[..., topic] <= 0
    return softmax(logarithm(np.where(none, 1.0, weights)) / temperature, topic, n_topics)


def temperature_softmax(score: Floats, temperature: float, topic: Ints, n_topics: int) -> Floats:
    """``π_i ∝ exp(s_i / T)`` over each topic, for finite scores and any T above 0; shape (..., n)."""
    # An overflow to -inf gives probability 0.
    with np.errstate(over="ignore"):
        below = (score - peaks(score, topic, n_topics)[..., topic]) / temperature
    return softmax(below, topic, n_topics)


def relaxed_prob(prob: Floats, delta: Floats, topic: Ints, n_topics: int) -> Floats:
    """``π_i ∝ p_i exp(-Δ_i)`` (Ding 2025, section 3.2), in log space; shape (..., n).

    ``p ∝ exp(s/T)`` gives ``exp(s/T - Δ)``; a uniform p gives the paper's ``exp(-Δ)``.
    """
    return softmax(logarithm(prob) - delta, topic, n_topics)


def logarithm(prob: Floats) -> Floats:
    """The natural logarithm, ``-inf`` of 0."""
    return np.log(prob, out=np.full_like(prob, -np.inf), where=prob > 0)


def with_fixed_masses(prob: Floats, fixed: Floats, topic: Ints, n_topics: int) -> Floats:
    """Probabilities of candidates combined with fixed masses: ``(1 - Σ m) π_i + m_i``, shape (..., n).

    If all π of a topic are 0, the fixed masses are normalised.
    """
    rest = 1.0 - per_topic(fixed, topic, n_topics)[..., topic]
    return normalise_weights(prob * np.maximum(rest, 0.0) + fixed, topic, n_topics)


def ranks(values: Floats, topic: Ints, tie: Ints) -> Ints:
    """The rank of each candidate in its topic, 0 for the largest value, shape (..., n).

    - ``values``: shape (..., n)
    - ``tie``: among equal values the smallest comes first, shape (n,)
    """
    order, first = _order(values, topic, tie)
    places = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(places, order, np.broadcast_to(np.arange(len(topic)) - first, values.shape), axis=-1)
    return places


def truncation_mask(
    prob: Floats, topic: Ints, tie: Ints, *, threshold: float = 0.0, top: int | None = None, mass: float | None = None
) -> Bools:
    """A mask of the candidates that remain after truncation by up to three rules, shape (..., n).

    Every rule keeps a prefix of the candidates by decreasing probability, so all rules together keep the shortest
    prefix. The most probable candidate is always kept.

    - ``prob``: shape (..., n), with sum 1 over a topic. Differences below 1e-12 are ignored
    - ``tie``: among equal probabilities the smallest comes first, shape (n,)
    - ``threshold``: keep ``π >= τ``
    - ``top``: keep the first K
    - ``mass``: keep the shortest prefix with a total probability of at least ρ
    """
    prob = np.round(prob, SUM_DECIMALS)
    order, first = _order(prob, topic, tie)
    place = np.arange(len(topic)) - first
    ordered = np.take_along_axis(prob, order, axis=-1)
    stay = ordered >= threshold - ROUNDING
    if top is not None:
        stay &= place < top
    if mass is not None:
        before = np.cumsum(ordered, axis=-1) - ordered
        stay &= before - before[..., first] < mass - REPLICA_ROUNDING
    stay |= place == 0
    mask = np.empty(prob.shape, dtype=bool)
    np.put_along_axis(mask, order, stay, axis=-1)
    return mask


def _order(values: Floats, topic: Ints, tie: Ints) -> tuple[Ints, Ints]:
    """The order of candidates by topic and decreasing value, and the start of the topic of each position."""
    order = np.lexsort(np.broadcast_arrays(tie, -values, topic), axis=-1)
    by_topic = np.sort(topic)
    return order, np.searchsorted(by_topic, by_topic)


def cross_entropy(logits: Floats, target: Floats, topic: Ints, n_topics: int) -> float:
    """``-Σ_i y_i log softmax(l)_i``, summed over all topics.

    - ``logits``: finite, shape (n,)
    - ``target``: the target distribution, shape (n,), with sum 1 over a topic, or 0 for the whole topic
    """
    below = logits - peaks(logits, topic, n_topics)[topic]
    # Indexed by row, because topics without candidates have no logarithm.
    total = per_topic(np.exp(below), topic, n_topics)[topic]
    return float(np.sum(target * (np.log(total) - below)))


def cosines(vectors: Floats) -> Floats:
    """Cosine similarity of each pair of rows, shape (n, n); 0 for rows of zeros."""
    # Scaling by the largest entry avoids overflow of squares.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    units = np.divide(scaled, length, out=np.zeros_like(scaled), where=length > 0)
    return np.asarray(units @ units.T, dtype=np.float64)


def complete_linkage(similarity: Floats, threshold: float) -> Ints:
    """Complete-linkage clustering: the cluster of each item, named by its first member, shape (n,).

    The two most similar clusters are merged while all pairs of their members have at least the threshold similarity;
    ties are broken by the order of rows. A chain A~B, B~C does not merge A with C.

    - ``similarity``: symmetric, shape (n, n); the diagonal does not count
    - ``threshold``: similarity of the least similar pair in a cluster

    The cost is O(n²) per merge.
    """
    n = len(similarity)
    label = np.arange(n)
    if n == 0:
        return label
    between = np.array(similarity, dtype=np.float64)
    np.fill_diagonal(between, -np.inf)
    while True:
        one, other = sorted(divmod(int(np.argmax(between)), n))
        if not between[one, other] >= threshold - REPLICA_ROUNDING:
            return label
        # The similarity of clusters is that of their least similar members.
        least = np.minimum(between[one], between[other])
        between[one], between[:, one] = least, least
        between[other], between[:, other] = -np.inf, -np.inf
        label[label == other] = one


def log_gammas(shape: Floats, larger: Floats, exponential: Floats) -> Floats:
    """The logarithm of gamma variates of shape a, from variates of shape a + 1.

    ``log G(a) = log G(a + 1) - E/a`` with ``E`` exponential (Marsaglia and Tsang 2000, section 6, in logarithms). The
    logarithm is exact even if ``G(a)`` underflows, as for shapes below .01.

    - ``shape``: ``a``, at least 0, shape (..., n); 0 gives ``-inf``
    - ``larger``, ``exponential``: draws from Gamma(a + 1) and from Exp(1), of a common shape to which ``shape``
      broadcasts
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

    - ``uniform``: numbers in [0, 1), shape (..., n)
    - ``alive``: a mask of valid candidates, broadcasting to (..., n)
    - ``share``: in [0, 1]
    - ``topic``, ``n_topics``: the topic of each candidate, shape (n,), and the number of topics
    """
    last = peaks(np.where(alive, uniform, -np.inf), topic, n_topics)[..., topic]
    stays: Bools = alive & ((uniform >= share) | (uniform == last))
    return stays


def bootstrap_counts(uniform: Floats, alive: Bools, topic: Ints, n_topics: int) -> Ints:
    """Bootstrap counts of candidates, resampled with replacement within their topic, shape (..., n).

    - ``uniform``: numbers in [0, 1), shape (b, n)
    - ``alive``: a mask of valid candidates, shape (1, n) or (b, n); only these are drawn
    - ``topic``, ``n_topics``: the topic of each candidate, sorted, shape (n,), and the number of topics
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
    column = start + before - before[:, start]
    return np.where(alive, np.take_along_axis(counts, column, axis=1), 0)


def keyed_uniforms(keys: Words, first: int, n: int) -> Floats:
    """Numbers in [0, 1) that depend only on a key and the number of the replica, shape (n, n_keys).

    Each key seeds a separate splitmix64 sequence (Steele et al. 2014), so its draws do not depend on other keys or
    their order.

    - ``keys``: 64-bit words with well-mixed bits, shape (n_keys,)
    - ``first``, ``n``: the first replica, from 0, and the number of replicas
    """
    turns = np.arange(first + 1, first + n + 1, dtype=np.uint64)[:, None] * GOLDEN_STEP
    return (mix(keys + turns) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def another(uniform: Floats, intent: Ints, start: Ints, size: Ints) -> Ints:
    """A uniform draw of another candidate of the same topic, or the candidate itself if it is the only one.

    - ``uniform``: numbers in [0, 1), shape (..., m)
    - ``intent``: the position of a candidate, broadcasting to (..., m)
    - ``start``, ``size``: the first position and the number of the candidates of its topic, shape (m,)
    """
    others = np.maximum(size - 1, 0)
    other = start + (uniform * others).astype(np.int64)
    return np.where(others > 0, other + (other >= intent), intent)
