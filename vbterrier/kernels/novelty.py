"""Gains of documents over several intents, which may fall with repetition, and their largest discounted sum."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.rankings import discounts, ranks
from vbterrier.kernels.tolerances import SUM_DECIMALS

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints


def novel_weights(intent: Ints, rank: Ints, weight: Floats, alpha: float, n_intents: int) -> Floats:
    """``w_ir Π_{j<r} (1 - α w_ij)`` of each match (Clarke et al. 2008, equation 4), shape (n_matches,).

    - ``intent``, ``rank``, ``weight``: the intent, the 0-based rank and the weight in [0, 1] of each match, each of
      shape (n_matches,); an intent has one match at a rank
    - ``alpha``: the probability that a document about an intent satisfies a user who means it, in [0, 1]
    - ``n_intents``: the number of intents
    """
    left, gains = np.ones(n_intents), np.empty(len(rank))
    order = np.argsort(rank, kind="stable")
    for start, stop in pairwise(np.searchsorted(rank[order], np.arange(int(rank.max(initial=-1)) + 2))):
        rows = order[start:stop]
        gains[rows] = weight[rows] * left[intent[rows]]
        left[intent[rows]] *= 1.0 - alpha * weight[rows]
    return gains


def reciprocal_norm(cutoff: int, alpha: float) -> float:
    """``Σ_{r<=k} (1 - α)^(r-1) / r``: the sum of novel weights over ranks if all documents are about an intent."""
    return float(((1.0 - alpha) ** np.arange(cutoff) / ranks(cutoff)).sum())


def unit_gains(grades: Ints, *, exponential: bool = False) -> Floats:
    """Gains of grades above 0, the grade or ``2^grade - 1``, divided by the same power of two, in (0, 1].

    A ratio of their sums is that of the gains to the last digit, for any other grades beside them.

    - ``grades``: shape (n,)
    """
    highest = int(grades.max(initial=1))
    if exponential:
        return np.asarray(np.exp2(grades - float(highest)) - np.exp2(-float(highest)))
    return grades / 2.0 ** (highest - 1).bit_length()


def ideal_global_dcg(gain: Floats, topic: Ints, *, cutoff: int | None, n_topics: int) -> Floats:
    """The DCG of the documents of each topic by falling gain (Sakai and Song 2011, section 3.1), shape (n_topics,).

    - ``gain``: global gain ``Σ_i π_i g_id`` of each document, shape (n_documents,)
    - ``topic``: the topic of each document, ascending, shape (n_documents,)
    - ``cutoff``, ``n_topics``: the number of ranks, ``None`` for all documents, and of topics
    """
    order = np.lexsort((-gain, topic))
    sizes = np.bincount(topic, minlength=n_topics)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    seen = rank < (len(order) if cutoff is None else cutoff)
    discount = discounts(int(rank.max(initial=0)) + 1)
    dcg = np.bincount(topic[seen], gain[order][seen] * discount[rank[seen]], minlength=n_topics)
    return dcg.astype(np.float64, copy=False)


def ideal_alpha_dcg(
    gain: Floats, intent: Ints, document: Ints, weight: Floats, topic: Ints, *, alpha: float, cutoff: int, n_topics: int
) -> Floats:
    """The α-DCG of the greedy ranking of each topic (Clarke et al. 2008, section 3.3), shape (n_topics,).

    At each rank, it takes the document with the largest gain ``Σ_i π_i w_id Π_{j taken} (1 - α w_ij)``; the first of
    equals. The best ranking is NP-hard to find.

    - ``gain``: the gain π of each intent, shape (n_intents,)
    - ``intent``, ``document``, ``weight``: the intent, the document and the weight in [0, 1] of each tag, each of shape
      (n_tags,); a document has one tag for an intent
    - ``topic``: the topic of each document, ascending, shape (n_documents,)
    - ``alpha``, ``cutoff``, ``n_topics``: α as in :func:`novel_weights`, the number of ranks and of topics
    """
    left, total = np.ones(len(gain)), np.zeros(n_topics)
    if not len(topic):
        return total
    starts = np.concatenate([[0], np.flatnonzero(np.diff(topic)) + 1])
    sizes = np.diff(np.append(starts, len(topic)))
    is_left = np.ones(len(topic), dtype=bool)
    for discount in discounts(cutoff):
        value = np.bincount(document, gain[intent] * weight * left[intent], minlength=len(topic))
        rounded = np.where(is_left, np.round(value, SUM_DECIMALS), -1.0)
        best = np.repeat(np.maximum.reduceat(rounded, starts), sizes)
        leading = np.flatnonzero((rounded == best) & (best > 0))
        chosen = leading[np.unique(topic[leading], return_index=True)[1]]
        if not len(chosen):
            break
        total[topic[chosen]] += discount * value[chosen]
        is_left[chosen] = False
        is_chosen = np.zeros(len(topic), dtype=bool)
        is_chosen[chosen] = True
        tags = np.flatnonzero(is_chosen[document])
        left[intent[tags]] *= 1.0 - alpha * weight[tags]
    return total
