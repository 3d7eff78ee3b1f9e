"""Expected success over ambiguous intents, its variance penalty, and the maximum for k documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.rankings import cumulative_discounts, discounts, spans
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


def per_topic(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """Sums of values over each topic, shape (..., n_topics), for values of shape (..., n_intents)."""
    if values.ndim == 1:
        return np.bincount(topic, weights=values, minlength=n_topics).astype(np.float64, copy=False)
    sums = np.zeros((*values.shape[:-1], n_topics))
    if len(topic):
        order, present, starts = segments(topic)
        sorted_values = values if order is None else values[..., order]
        sums[..., present] = np.add.reduceat(sorted_values, starts, axis=-1, dtype=np.float64)
    return sums


def segments(topic: Ints) -> tuple[Ints | None, Ints, Ints]:
    """The order of intents by topic, the distinct topics and their starts, for ``ufunc.reduceat``.

    The order is ``None`` if intents are already sorted by topic.
    """
    order = None
    if (topic[1:] < topic[:-1]).any():
        order = np.argsort(topic, kind="stable")
        topic = topic[order]
    starts = np.concatenate([[0], np.flatnonzero(topic[1:] != topic[:-1]) + 1])
    return order, topic[starts], starts


def binary_gain(intent: Ints, weight: Floats, n_intents: int) -> Floats:
    """``g_i = max_j w_ij``: the largest weight of an intent in retrieved documents, shape (n_intents,).

    - ``intent``, ``weight``: the intent and the weight in [0, 1] of each match with a retrieved document, each of shape
      (n_matches,)
    - ``n_intents``: the number of intents
    """
    gain = np.zeros(n_intents)
    np.maximum.at(gain, intent, weight)
    return gain


def graded_gain(gain: Floats, target: Ints, source: Ints, similarity: Floats) -> Floats:
    """``max(g_i, max_j s_ij g_j)``: gains that count covered neighbours in part, shape (n_intents,).

    - ``gain``: the gain of each intent, shape (n_intents,)
    - ``target``, ``source``, ``similarity``: the intent i, its neighbour j and their similarity in [0, 1], each of
      shape (n_pairs,)
    """
    graded = gain.copy()
    np.maximum.at(graded, target, similarity * gain[source])
    return graded


def dcg_gain(
    intent: Ints, weight: Floats, rank: Ints, *, n_known: Ints | None, cutoff: int | None, n_intents: int
) -> Floats:
    """``g_i = Σ_j w_ij / log2(j + 1)`` over the DCG of ``min(k, n_i)`` matches in the first ranks, shape (n_intents,).

    - ``intent``, ``weight``, ``rank``: the intent, the weight in [0, 1] and the 0-based rank of each match, each of
      shape (n_matches,)
    - ``n_known``: number of known documents of each intent ``n_i``, shape (n_intents,); ``None`` uses k
    - ``cutoff``: the cutoff k; ``None`` for whole rankings, which needs ``n_known``
    - ``n_intents``: the number of intents
    """
    dcg = np.bincount(intent, weights=weight * discounts(int(rank.max(initial=-1)) + 1)[rank], minlength=n_intents)
    best = np.full(n_intents, cutoff) if n_known is None else n_known
    if cutoff is not None:
        best = np.minimum(best, cutoff)
    ideal = cumulative_discounts(int(best.max(initial=0)))[best]
    return np.divide(dcg, ideal, out=np.zeros(n_intents), where=ideal > 0)


def distinct_matches(intent: Ints, rank: Ints, weight: Floats) -> tuple[Ints, Ints, Floats]:
    """Return matches of intents with ranks, each pair once with its largest weight.

    - ``intent``, ``rank``, ``weight``: the intent, the 0-based rank and the weight of each match, each of shape
      (n_matches,)

    Returns the same arrays if no pair is repeated, otherwise shorter ones, by intent, then by rank.
    """
    pair = intent * (int(rank.max(initial=0)) + 1) + rank
    order = np.argsort(pair)
    firsts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    if len(firsts) == len(pair):
        return intent, rank, weight
    kept = order[firsts]
    return intent[kept], rank[kept], np.maximum.reduceat(weight[order], firsts)


def joint_coverage(part: Ints, rank: Ints, weight: Floats, member: Ints, starts: Ints) -> tuple[Ints, Ints, Floats]:
    """The ranks at which the coverage of intents with several parts rises: intents, ranks and coverage from there on.

    The coverage of intent i by the first r documents is ``c_i(r) = min_j max_{r'<=r} w_{r',ij}``, the least over its
    parts j of the largest weight so far. It reaches t where the last of the parts does.

    - ``part``, ``rank``, ``weight``: the part, the rank and the weight, above 0, of each match, each of shape
      (n_matches,)
    - ``member``: the distinct parts of each intent, one intent after the other, shape (n_members,)
    - ``starts``: the start of the parts of each intent, at least one, and the end of the last, shape (n_intents + 1,)

    Returns arrays of one length, by intent, then by rank. The cost is that of sorting the matches, and of a search for
    each part of an intent and each weight that its parts reach.
    """
    order = np.lexsort((rank, part))
    part, rank = part[order], rank[order]
    levels, level = np.unique(weight[order], return_inverse=True)
    base = len(levels) + 1
    # The largest level of each part so far: parts ascend, so that their keys never fall.
    keys = np.maximum.accumulate(part * base + level)
    rises = np.diff(keys, prepend=-1) > 0
    keys, part, rank = keys[rises], part[rises], rank[rises]
    owner, row = spans(np.searchsorted(part, member, side="left"), np.searchsorted(part, member, side="right"))
    of_member = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    intent, level = np.divmod(np.unique(of_member[owner] * base + keys[row] - part[row] * base), base)
    # The rank at which each part of the intent reaches this level.
    cell, place = spans(starts[intent], starts[intent + 1])
    sought = member[place] * base + level[cell]
    position = np.searchsorted(keys, sought)
    # One key more, of no part, so that searches beyond the last key find it.
    is_reached = np.append(part, -1)[position] == member[place]
    reached = np.where(is_reached, np.append(rank, 0)[position], np.iinfo(np.int64).max)
    if not len(cell):
        return intent, level, np.empty(0)
    when = np.maximum.reduceat(reached, np.flatnonzero(np.diff(cell, prepend=-1)))
    # Of the levels that an intent reaches at one rank, the highest, which is the last.
    last = np.append((intent[1:] != intent[:-1]) | (when[1:] != when[:-1]), True)
    kept = last & (when < np.iinfo(np.int64).max)
    return intent[kept], when[kept], levels[level[kept]]


def bernoulli_variance(success: Floats) -> Floats:
    """``ES (1 - ES)``: the variance across intents for binary gains, and its upper bound (Bhatia-Davis)."""
    return np.maximum(success * (1.0 - success), 0.0)


def lowest_point(alpha: float) -> float:
    """The expected success that minimises VB, ``(1 - 1/sqrt(1 + α²))/2``; VB is not monotone below it."""
    return (1.0 - 1.0 / float(np.hypot(1.0, alpha))) / 2.0


def vb(success: Floats, variance: Floats, alpha: float, *, monotone: bool = False, clip: bool = False) -> Floats:
    """``VB_α = ES - α sqrt(Var)``, in ``[(1 - sqrt(1 + α²))/2, 1]``.

    - ``success``, ``variance``: ES and Var, of one shape
    - ``alpha``: weight of the penalty, at least 0
    - ``monotone``: use the minimum of VB over all p >= ES, with the Bernoulli variance. Below the lowest point this is
      the global minimum, so that the score never decreases with success
    - ``clip``: raise negative scores to 0
    """
    if monotone:
        success = np.maximum(success, lowest_point(alpha))
        variance = bernoulli_variance(success)
    score = success - alpha * np.sqrt(variance)
    return np.maximum(score, 0.0) if clip else score


def vb_range(success: Floats, distance: Floats, alpha: float) -> tuple[Floats, Floats]:
    """The smallest and the largest VB, with the Bernoulli variance, of any success within a distance.

    VB decreases up to :func:`lowest_point` and increases beyond it, so that the extremes are those of the ends, or of
    the lowest point between them.
    """
    ends = np.maximum(success - distance, 0.0), np.minimum(success + distance, 1.0)
    lowest = np.clip(lowest_point(alpha), *ends)
    least, first, last = (vb(p, bernoulli_variance(p), alpha) for p in (lowest, *ends))
    return least, np.maximum(first, last)


# The largest number of cells of the exact search; beyond, the greedy solution is returned.
MAX_EXACT_CELLS = 2**20
# The largest number of documents that are compared pairwise to remove dominated documents.
MOST_COMPARED = 1000


def best_success(
    prob: Floats, topic: Ints, n_topics: int, *, intent: Ints, document: Ints, weight: Floats, k: int | None
) -> tuple[Floats, Bools]:
    """``max Σ_i π_i max_{d in S} w_id`` over all sets S of k documents, for each topic.

    If no document of a topic covers two intents, or if k is at least the number of intents, it is the sum of the k
    largest ``π_i max_d w_id``. Other topics use :func:`best_cover`.

    - ``prob``, ``topic``: probability and topic of each intent, each of shape (n_intents,)
    - ``n_topics``: the number of topics
    - ``intent``, ``document``, ``weight``: the intent, the document (any integer code) and the weight in [0, 1] of each
      tag, each of shape (n_tags,)
    - ``k``: number of documents, at least 1; ``None`` for any number

    Returns (success, exact): Each of shape (n_topics,). If not exact, the success is that of the greedy solution, at
    least ``1 - 1/e`` of the maximum (Nemhauser, Wolsey and Fisher 1978).
    """
    useful = (weight > 0) & (prob[intent] > 0)
    intent, document, weight = intent[useful], document[useful], weight[useful]
    best = np.zeros(len(prob))
    np.maximum.at(best, intent, weight)
    value = prob * best
    n_coverable = np.bincount(topic[value > 0], minlength=n_topics)
    if k is None:
        return per_topic(value, topic, n_topics), np.ones(n_topics, dtype=bool)
    order = np.lexsort((-value, topic))
    sizes = np.bincount(topic, minlength=n_topics)
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shown = order[place < k]
    success, exact = per_topic(value[shown], topic[shown], n_topics), np.ones(n_topics, dtype=bool)
    order = np.lexsort((intent, document, topic[intent]))
    intent, document, weight = intent[order], document[order], weight[order]
    hard = _shares_documents(topic[intent], document, intent, n_topics) & (n_coverable > k)
    bounds = np.searchsorted(topic[intent], np.arange(n_topics + 1))
    for one in np.flatnonzero(hard):
        here = slice(bounds[one], bounds[one + 1])
        intents, column = np.unique(intent[here], return_inverse=True)
        documents, row = np.unique(document[here], return_inverse=True)
        weights = np.zeros((len(documents), len(intents)))
        np.maximum.at(weights, (row, column), weight[here])
        success[one], exact[one] = best_cover(prob[intents], weights, k)
    return success, exact


def _shares_documents(topic: Ints, document: Ints, intent: Ints, n_topics: int) -> Bools:
    """Topics with a document that covers two intents, shape (n_topics,); tags sorted by topic, document and intent."""
    two = (topic[1:] == topic[:-1]) & (document[1:] == document[:-1]) & (intent[1:] != intent[:-1])
    shares = np.zeros(n_topics, dtype=bool)
    shares[topic[1:][two]] = True
    return shares


def best_cover(prob: Floats, weights: Floats, k: int) -> tuple[float, bool]:
    """The success of the best k documents of one topic, and True if it is certainly the maximum.

    Branch and bound over the gains of sets of 1, 2, ... documents: sets are pruned if the largest single additions
    cannot raise them above the greedy solution.

    - ``prob``: probabilities of the intents, shape (n_intents,)
    - ``weights``: the weight of each intent in each document, shape (n_documents, n_intents)
    - ``k``: number of documents, at least 1
    """
    weights = _undominated_documents(weights)
    best = greedy_cover(prob, weights, k)
    reached = np.zeros((1, len(prob)))
    for left in range(min(k, len(weights)), 0, -1):
        if len(reached) * weights.size > MAX_EXACT_CELLS:
            return best, False
        wider = np.maximum(reached[:, None, :], weights)
        value = wider @ prob
        best = max(best, float(value.max()))
        added = value - (reached @ prob)[:, None]
        # Success is submodular, so a document never adds more later than now.
        most = np.partition(added, -left, axis=1)[:, -left:].sum(axis=1) + reached @ prob
        reached = np.unique(wider[most > best + ROUNDING].reshape(-1, len(prob)), axis=0)
        if not len(reached):
            break
    return best, True


def greedy_cover(prob: Floats, weights: Floats, k: int) -> float:
    """The success of the greedy solution: k times the document that adds most, the first of equals."""
    gain = np.zeros(len(prob))
    for _ in range(min(k, len(weights))):
        wider = np.maximum(gain, weights)
        gain = wider[int(np.argmax(wider @ prob))]
    return float(gain @ prob)


def _undominated_documents(weights: Floats) -> Floats:
    """The distinct documents, without dominated documents if they are few enough to compare."""
    # Most documents cover one intent; of these the best of each intent suffices.
    worse = (np.count_nonzero(weights, axis=1) == 1) & (weights < weights.max(axis=0)).all(axis=1, where=weights > 0)
    distinct = np.unique(weights[~worse], axis=0)
    if len(distinct) > MOST_COMPARED:
        return distinct
    kept = np.ones(len(distinct), dtype=bool)
    for row, one in enumerate(distinct):
        # Of two distinct rows at most one dominates the other.
        kept[row] = np.count_nonzero((distinct >= one).all(axis=1)) == 1
    return distinct[kept]
