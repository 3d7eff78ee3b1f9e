"""Which documents a list of entities reaches, and how entities stand among relevant and other documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

# The rank of what is in no list.
NEVER = np.iinfo(np.int64).max


def first_ranks(link_ranks: Ints, starts: Ints) -> Ints:
    """The best rank among the entities of each document, ``NEVER`` where none is listed, shape (n_documents,).

    Parameters
    ----------
    link_ranks
        The rank from 0 of each link's entity in its topic's list, ``NEVER`` where it is not listed, shape (n_links,).
    starts
        Where the links of each document begin, and where the last one's end, shape (n_documents + 1,).

    >>> first_ranks(np.array([4, 1, 3]), np.array([0, 2, 2, 3])).tolist() == [1, NEVER, 3]
    True
    """
    first = np.full(len(starts) - 1, NEVER)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        first[filled] = np.minimum.reduceat(link_ranks, starts[filled])
    return first


def coverage(first: Ints, chosen: Bools, topic: Ints, n_topics: int, cutoffs: Ints) -> Floats:
    """The share of some documents that the first k entities reach, for many k in one pass.

    ``|{d in chosen : rank of d's best entity < k}| / |chosen|``

    Parameters
    ----------
    first
        See :func:`first_ranks`, shape (n_documents,).
    chosen
        The documents that count, shape (n_documents,).
    topic
        The topic's number of each document, shape (n_documents,).
    n_topics
        How many topics there are.
    cutoffs
        k, rising, shape (c,).

    Returns
    -------
    numpy.ndarray
        NaN for topics without such documents, shape (n_topics, c).
    """
    # The place of the smallest cutoff that reaches each document.
    place = np.searchsorted(cutoffs, first[chosen], side="right")
    cells = topic[chosen] * (len(cutoffs) + 1) + place
    counts = np.bincount(cells, minlength=n_topics * (len(cutoffs) + 1)).reshape(n_topics, len(cutoffs) + 1)
    with np.errstate(invalid="ignore"):
        reached: Floats = np.cumsum(counts, axis=1)[:, :-1] / counts.sum(axis=1, keepdims=True)
    return reached


def observable_relevance(
    df_relevant: Floats, df_other: Floats, n_relevant: Floats, n_other: Floats, *, alpha: float, tau: float
) -> Floats:
    """Observable entity relevance: a smoothed log odds ratio, shrunk where an entity is rare.

    ``OER = (1 - exp(-df/tau)) (logit p(e|rel) - logit p(e|nonrel))`` with
    ``p(e|rel) = (df_rel + alpha)/(n_rel + 2 alpha)`` (Chatterjee, arXiv 2604.05204, section 2.5).

    Parameters
    ----------
    df_relevant, df_other
        Relevant and other documents that mention each entity, shape (m,).
    n_relevant, n_other
        Relevant and other documents of its topic, shape (m,).
    alpha
        Pseudo-count, above 0.
    tau
        How many documents make support: at ``tau`` documents it is 63 %; above 0.

    >>> observable_relevance(*map(np.array, ([4.0], [0.0], [5.0], [5.0])), alpha=0.5, tau=5.0).round(4).tolist()
    [1.9254]
    """
    odds = np.log(df_relevant + alpha) - np.log(n_relevant - df_relevant + alpha)
    others = np.log(df_other + alpha) - np.log(n_other - df_other + alpha)
    return -np.expm1(-(df_relevant + df_other) / tau) * (odds - others)
