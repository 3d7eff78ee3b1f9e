"""Classic measures of rankings from the ranks of judged documents: precision, recall, AP, RR, Bpref and others.

A ranking of a topic enters as its judged documents: ``topic`` (ascending) and ``rank`` (from 0, ascending within a
topic), and whether each is relevant. Unjudged documents are non-relevant. Values are those of trec_eval 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


def counts(topic: Ints, mask: Bools, n_topics: int) -> Ints:
    """The number of documents of a mask in each topic, shape (n_topics,)."""
    return np.bincount(topic[mask], minlength=n_topics)


def ratio(numerator: Floats | Ints, denominator: Floats | Ints) -> Floats:
    """``numerator / denominator``, 0 where the denominator is 0, shape (n_topics,)."""
    made = np.zeros(len(numerator))
    return np.divide(numerator, denominator, out=made, where=np.asarray(denominator) > 0)


def running(topic: Ints, mask: Bools) -> Ints:
    """The number of documents of a mask up to each document of its topic, itself included, shape (n,)."""
    total = np.cumsum(mask)
    starts = np.flatnonzero(np.append(True, topic[1:] != topic[:-1])) if len(topic) else np.empty(0, dtype=np.int64)
    before: Ints = total[starts] - mask[starts]
    return np.asarray(total - np.repeat(before, np.diff(np.append(starts, len(topic)))))


def average_precision(topic: Ints, rank: Ints, relevant: Bools, n_relevant: Ints, cutoff: int | None = None) -> Floats:
    """``AP = (1/R) Σ_r C(r)/r`` over the ranks r of relevant documents, C(r) of them in the first r.

    With a cutoff, the sum ends there and R remains. Returns shape (n_topics,).
    """
    within = relevant if cutoff is None else relevant & (rank < cutoff)
    precision = running(topic, relevant)[within] / (rank[within] + 1)
    return ratio(np.bincount(topic[within], precision, minlength=len(n_relevant)), n_relevant)


def reciprocal_rank(topic: Ints, rank: Ints, relevant: Bools, n_topics: int) -> Floats:
    """``1/r`` of the first relevant document, 0 without one, shape (n_topics,)."""
    made = np.zeros(n_topics)
    # Of equal topics, the last assignment counts: the first rank.
    made[topic[relevant][::-1]] = 1 / (rank[relevant][::-1] + 1)
    return made


def r_precision(topic: Ints, rank: Ints, relevant: Bools, n_relevant: Ints) -> Floats:
    """The share of relevant documents among the first R, R the number of relevant documents, shape (n_topics,)."""
    within = relevant & (rank < n_relevant[topic])
    return ratio(counts(topic, within, len(n_relevant)), n_relevant)


def bpref(topic: Ints, relevant: Bools, n_relevant: Ints, n_other: Ints) -> Floats:
    """``(1/R) Σ 1 - min(n, R)/min(N, R)`` over relevant documents, n judged non-relevant ones above, N of them in all.

    Buckley and Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR 2004, as trec_eval computes it.
    """
    above, owner = running(topic, ~relevant)[relevant], topic[relevant]
    lost = ratio(np.minimum(above, n_relevant[owner]), np.minimum(n_other, n_relevant)[owner])
    return ratio(np.bincount(owner, 1 - lost, minlength=len(n_relevant)), n_relevant)


def f_measure(precision: Floats, recall: Floats, beta: float) -> Floats:
    """``(β + 1) P R / (R + β P)``, the F measure of trec_eval's ``set_F``, 0 without precision, shape (n_topics,)."""
    return ratio((beta + 1) * precision * recall, recall + beta * precision)


def dcg(topic: Ints, rank: Ints, gain: Floats, n_topics: int) -> Floats:
    """``Σ gain / log2(rank + 2)``, added from the first rank down, shape (n_topics,)."""
    return np.bincount(topic, gain / np.log2(rank + 2), minlength=n_topics).astype(np.float64, copy=False)
