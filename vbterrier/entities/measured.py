"""What an entity run reaches in a pool and what its entities tell: per topic, for every cutoff from one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.entities.selection import NONE
from vbterrier.kernels.coverage import CLASSES, coverage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.selection import Selection
    from vbterrier.entities.table import EntityTable

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

SIGNAL = ("core", "conditional")
BAIT = ("generic bait", "anti-signal")

# Two numbers always agree or oppose.
LEAST_CORRELATED = 3


def reached_shares(selection: Selection, chosen: Bools) -> Floats:
    """The share of some documents that the first 0, 1, 2, ... entities reach, shape (n_topics, depth + 1).

    Parameters
    ----------
    selection
        The entity run.
    chosen
        Which documents of the pool count, shape (n_documents,); a topic without any has NaN.
    """
    pool = selection.pool
    cutoffs = np.arange(selection.depth + 1)
    return coverage(selection.first, chosen, pool.topic, len(pool.topics), cutoffs)


def at_cutoff(shares: Floats, k: int | None) -> Floats:
    """The column of a cutoff, the last for those beyond the longest list, shape (n_topics,)."""
    last = shares.shape[1] - 1
    column: Floats = shares[:, last if k is None else min(k, last)]
    return column


def mean_overlap(selection: Selection, chosen: Bools, k: int) -> Floats:
    """How many of the first k entities some documents mention, mean over those that mention any (Table 5).

    ``mean |Λ(d) ∩ Ê^k|`` over the chosen documents with at least one; NaN for topics without such a document.

    Parameters
    ----------
    selection
        The entity run.
    chosen
        Which documents of the pool count, shape (n_documents,).
    k
        How many entities count.

    Returns
    -------
    numpy.ndarray
        Shape (n_topics,).
    """
    pool = selection.pool
    among = np.bincount(pool.document[selection.link_ranks < k], minlength=len(pool))
    covered = chosen & (among > 0)
    n, total = (
        np.bincount(pool.topic[covered], weights, minlength=len(pool.topics)) for weights in (None, among[covered])
    )
    with np.errstate(invalid="ignore"):
        overlap: Floats = total / n
    return overlap


def ratio(relevant: Floats, other: Floats, n_other: Ints) -> Floats:
    """``RelCov / (NonRelCov + 1/(2 |N_q|))`` of each topic, NaN where either is undefined; shape (n_topics,)."""
    # Half a document more than is reached: a topic that reaches no other document has a ratio, too.
    found: Floats = relevant / (other + 0.5 / np.maximum(n_other, 1))
    return found


def of_selected(selection: Selection, values: Floats, *, outside: float) -> Floats:
    """A value of each selected entity from those of all pairs, shape (n_topics, depth).

    Parameters
    ----------
    selection
        The entity run.
    values
        Of each pair, shape (n_pairs,).
    outside
        The value of an entity that no document of the topic mentions. Where the list is shorter it is NaN.
    """
    found: Floats = np.full(selection.entity.shape, outside)
    inside = selection.pair >= 0
    found[inside] = values[selection.pair[inside]]
    found[selection.entity == NONE] = np.nan
    return found


def mean_of_first(values: Floats, k: int | None) -> Floats:
    """The mean over the first k entities, or over the fewer that are listed; 0 without any; shape (n_topics,)."""
    head = values[:, :k]
    listed = ~np.isnan(head)
    mean: Floats = np.where(listed, head, 0.0).sum(axis=1) / np.maximum(listed.sum(axis=1), 1)
    return mean


def is_one_of(classes: Ints, names: tuple[str, ...]) -> Floats:
    """1 for pairs of the named classes, 0 for others, shape (n_pairs,)."""
    return np.isin(classes, [CLASSES.index(name) for name in names]).astype(np.float64)


def rank_correlation(scores: Floats, values: Floats) -> Floats:
    """Spearman's correlation of each topic over entities without NaN, equal numbers at their mean rank.

    NaN where fewer than three entities are left, or all their scores or all their values are equal; shape (n_topics,).

    >>> rank_correlation(np.array([[3.0, 2.0, 1.0, np.nan]]), np.array([[0.5, 0.9, 0.1, np.nan]]))
    array([0.5])
    """
    from scipy import stats

    known = ~(np.isnan(scores) | np.isnan(values))
    n = known.sum(axis=1, keepdims=True)
    left, right = (
        np.where(known, stats.rankdata(np.where(known, axis, np.nan), axis=1, nan_policy="omit") - (n + 1) / 2, 0.0)
        for axis in (scores, values)
    )
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    defined = (n[:, 0] >= LEAST_CORRELATED) & (scale > 0)
    found: Floats = np.full(len(scores), np.nan)
    np.divide((left * right).sum(axis=1), scale, out=found, where=defined)
    return found


def core_coverage(table: EntityTable, classes: Ints) -> Floats:
    """The share of each topic's relevant documents that mention a core entity, shape (n_topics,)."""
    pool, core = table.pool, classes == CLASSES.index("core")
    _, link = pool.mentioned(np.flatnonzero(core))
    reached = np.zeros(len(pool), dtype=bool)
    reached[pool.document[link]] = True
    n = np.bincount(pool.topic[reached & pool.relevant(table.rel)], minlength=len(pool.topics))
    return share(n, table.n_relevant)


def share(part: Ints, whole: Ints) -> Floats:
    """Part of a whole, NaN where there is nothing; shape (n_topics,)."""
    found: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found
