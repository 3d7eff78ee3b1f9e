"""Coverage of documents by ranked entities, observable entity relevance, and greedy maximum coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.rankings import NO_RANK

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints


CLASSES = ("core", "conditional", "generic bait", "anti-signal", "sparse", "neutral")
# The code of an entity without an OER, which has no class.
UNDEFINED = -1
# The largest document frequency of sparse entities, the smallest of generic ones, the smallest OER of core entities.
MAX_SPARSE_DF, GENERIC, STRONG = 2, 50, 0.5


def first_ranks(link_ranks: Ints, starts: Ints) -> Ints:
    """The best rank among the entities of each document, ``NO_RANK`` if none is listed, shape (n_documents,).

    - ``link_ranks``: the rank (from 0) of each link's entity in its topic's list, ``NO_RANK`` if it is not listed,
      shape (n_links,)
    - ``starts``: the start of the links of each document, and the end of the last ones, shape (n_documents + 1,)
    """
    first = np.full(len(starts) - 1, NO_RANK)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        first[filled] = np.minimum.reduceat(link_ranks, starts[filled])
    return first


def coverage(first: Ints, chosen: Bools, topic: Ints, n_topics: int, cutoffs: Ints) -> Floats:
    """The share of selected documents that mention one of the first k entities, for several cutoffs k.

    ``|{d in chosen : rank of d's best entity < k}| / |chosen|``

    - ``first``: see :func:`first_ranks`, shape (n_documents,)
    - ``chosen``: a mask of the selected documents, shape (n_documents,)
    - ``topic``: the number of each document's topic, shape (n_documents,)
    - ``n_topics``: the number of topics
    - ``cutoffs``: the rank cutoffs k, increasing, shape (c,)

    Returns NaN for topics without selected documents, shape (n_topics, c).
    """
    # The position of the smallest cutoff that covers each document.
    place = np.searchsorted(cutoffs, first[chosen], side="right")
    cells = topic[chosen] * (len(cutoffs) + 1) + place
    counts = np.bincount(cells, minlength=n_topics * (len(cutoffs) + 1)).reshape(n_topics, len(cutoffs) + 1)
    with np.errstate(invalid="ignore"):
        reached: Floats = np.cumsum(counts, axis=1)[:, :-1] / counts.sum(axis=1, keepdims=True)
    return reached


def observable_relevance(
    df_relevant: Ints, df_other: Ints, n_relevant: Ints, n_other: Ints, *, alpha: float, shrinkage: float
) -> Floats:
    """Observable entity relevance (OER): a smoothed log odds ratio, shrunk for rare entities.

    ``OER = (1 - exp(-df/shrinkage)) (logit p(e|rel) - logit p(e|nonrel))`` with
    ``p(e|rel) = (df_rel + alpha)/(n_rel + 2 alpha)`` (Chatterjee, arXiv 2604.05204, section 2.5).

    - ``df_relevant``, ``df_other``: relevant and other documents that mention each entity, shape (m,)
    - ``n_relevant``, ``n_other``: relevant and other documents of its topic, shape (m,)
    - ``alpha``: Pseudo-count, above 0
    - ``shrinkage``: the document frequency at which the factor of support is 63 %, above 0
    """
    # A single logarithm gives exactly 0 for equal odds, on which signal classes depend.
    above = (df_relevant + alpha) * (n_other - df_other + alpha)
    below = (n_relevant - df_relevant + alpha) * (df_other + alpha)
    support: Floats = -np.expm1(-(df_relevant + df_other) / shrinkage)
    return support * np.log(above / below)


def signal_classes(oer: Floats, df_relevant: Ints, df_other: Ints) -> Ints:
    """The class of each entity by its OER and document frequencies, as a position in ``CLASSES``, shape (m,).

    The first matching class: sparse, ``df <= 2``; core, ``df_rel >= 2``, ``df_rel > df_nonrel`` and ``OER >= 0.5``;
    conditional, ``OER > 0``; anti-signal, ``OER < 0`` and ``df_nonrel > df_rel``; generic bait, ``OER <= 0`` and
    ``df >= 50``; otherwise neutral, a class that the paper does not name (Chatterjee, arXiv 2604.05204, section 2.5).

    - ``oer``, ``df_relevant``, ``df_other``: shape (m,); an entity with an OER of NaN has no class, the code -1
    """
    df = df_relevant + df_other
    tests = {
        "sparse": df <= MAX_SPARSE_DF,
        "core": (df_relevant >= 2) & (df_relevant > df_other) & (oer >= STRONG),  # noqa: PLR2004 - the definition's
        "conditional": oer > 0,
        "anti-signal": (oer < 0) & (df_other > df_relevant),
        "generic bait": (oer <= 0) & (df >= GENERIC),
    }
    codes = [CLASSES.index(name) for name in tests]
    classes = np.select(list(tests.values()), codes, CLASSES.index("neutral")).astype(np.int64)
    return np.where(np.isnan(oer), UNDEFINED, classes)


def greedy_cover(
    document: Ints, pair: Ints, pair_starts: Ints, n_documents: int, cutoff: int | None = None
) -> tuple[Ints, Ints]:
    """Greedy maximum coverage: repeatedly select the entity that covers most uncovered documents, the first of equals.

    The first k entities cover at least ``1 - (1 - 1/k)^k``, more than ``1 - 1/e``, of the maximum for k entities
    (Nemhauser, Wolsey and Fisher 1978).

    - ``document``, ``pair``: the document and the pair of topic and entity of each link, shape (n_links,)
    - ``pair_starts``: the start of the pairs of each topic, and the end of the last ones, shape (n_topics + 1,)
    - ``n_documents``: the number of documents
    - ``cutoff``: the largest number of entities; ``None`` for as many as cover new documents

    Returns (pairs, n_reached): The selected pairs, padded with -1, and the number of documents that they cover so far;
    each of shape (n_topics, d), where d is the length of the longest list.

    Each rank costs one pass over the remaining links and pairs of all topics.
    """
    n_topics, reached = len(pair_starts) - 1, np.zeros(n_documents, dtype=bool)
    kept, pair = np.unique(pair, return_inverse=True)
    topic = np.searchsorted(pair_starts, kept, side="right") - 1
    pairs: list[Ints] = []
    gains: list[Ints] = []
    while len(pair) and (cutoff is None or len(pairs) < cutoff):
        gain = np.bincount(pair, minlength=len(kept))
        best = np.zeros(n_topics, dtype=np.int64)
        np.maximum.at(best, topic, gain)
        winners = np.flatnonzero((gain == best[topic]) & (gain > 0))
        _, first = np.unique(topic[winners], return_index=True)
        taken = np.zeros(len(kept), dtype=bool)
        taken[winners[first]] = True
        chosen = np.full(n_topics, -1)
        chosen[topic[winners[first]]] = kept[winners[first]]
        reached[document[taken[pair]]] = True
        left = ~reached[document]
        document, pair = document[left], pair[left]
        pairs.append(chosen)
        gains.append(best)
    if not pairs:
        return np.empty((n_topics, 0), dtype=np.int64), np.empty((n_topics, 0), dtype=np.int64)
    return np.stack(pairs, axis=1), np.cumsum(np.stack(gains, axis=1), axis=1)
