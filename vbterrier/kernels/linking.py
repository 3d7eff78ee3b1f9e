"""Precision and recall of entity linking with NIL, also after removal of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints


# What a query is answered with, in the order of a table's columns; its rows are gold links and gold NILs.
RIGHT_LINK, WRONG_LINK, NIL, UNANSWERED = range(4)
FIGURES = ("LinkP", "LinkR", "NilP", "NilR", "LinkingP", "LinkingR", "LinkingF1")

# The sums that the figures are made of, as the cells of a table that each adds up: gold links and NILs, links and NILs
# of the system, right links and NILs; shape (6, 2, 4).
_SUMS = np.array(
    [
        [[1, 1, 1, 1], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [1, 1, 1, 1]],
        [[1, 1, 0, 0], [1, 1, 0, 0]],
        [[0, 0, 1, 0], [0, 0, 1, 0]],
        [[1, 0, 0, 0], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 1, 0]],
    ],
    dtype=np.float64,
)


def weighted_scores(gold: Any, predicted: Any, right: Any) -> tuple[Floats, Floats, Floats]:
    """P, R and F1 from numbers of links and NILs, each of the shape of what comes before the last axis.

    ``P = (n_L P_L + n_N P_N)/(n_L + n_N)`` and R likewise, both with the numbers in the gold standard (Mertens et al.
    2014, section 2.2). Precision of a kind that is never predicted counts 0, and so does F1 where nothing is right; of
    no queries all are NaN.

    Parameters
    ----------
    gold, predicted, right
        How many there are in the gold standard, of the system, and of the system and right; the last axis is link, NIL.

    >>> [round(float(score), 3) for score in weighted_scores([10, 5], [9, 5], [6, 3])]
    [0.644, 0.6, 0.621]
    """
    gold, predicted, right = (np.asarray(given, dtype=np.float64) for given in (gold, predicted, right))
    n = gold.sum(axis=-1)
    precision = _ratio((gold * np.nan_to_num(_ratio(right, predicted))).sum(axis=-1), n)
    recall = _ratio(right.sum(axis=-1), n)
    both = precision + recall
    return precision, recall, np.where(both == 0, 0.0, _ratio(2 * precision * recall, both))


def figures(counts: Any) -> Floats:
    """The figures of tables of counts, in the order of ``FIGURES``, shape (..., 7); NaN where one is undefined.

    Parameters
    ----------
    counts
        How many queries there are of each kind (gold link, gold NIL) with each answer (right link, wrong link, NIL,
        unanswered), shape (..., 2, 4).

    >>> figures([[6, 1, 2, 1], [0, 2, 3, 0]]).round(3).tolist()
    [0.667, 0.6, 0.6, 0.6, 0.644, 0.6, 0.621]
    """
    gold, predicted, right = _sums(counts)
    kinds = np.stack([_ratio(right, predicted), _ratio(right, gold)], axis=-1)
    parts = kinds.reshape(*kinds.shape[:-2], 4)
    return np.concatenate([parts, np.stack(weighted_scores(gold, predicted, right), axis=-1)], axis=-1)


def influence(counts: Any) -> Floats:
    """What a query of each cell of a table stands for in each figure, shape (2, 4, 7).

    ``v_q = θ + n ∇θ · x_q`` with the gradient of the figure θ by the sums that it is made of and the query's part x_q
    in them. No figure changes when all counts double, so ``∇θ · Σ x_q = 0`` (Euler) and the mean of v_q is θ; to first
    order, other queries of the kind move θ as they move this mean. Gold weights are sums like others.

    Parameters
    ----------
    counts
        The table, shape (2, 4).

    >>> table = np.array([[6, 1, 2, 1], [0, 2, 3, 0]])
    >>> means = np.einsum("ij,ijf->f", table / table.sum(), influence(table))
    >>> bool(np.allclose(means, figures(table)))
    True
    """
    parts: Floats = np.sum(counts) * np.einsum("fs,sij->ijf", _gradients(counts), _SUMS)
    return figures(counts) + parts


def _sums(counts: Any) -> tuple[Floats, Floats, Floats]:
    """What is in the gold standard, what is predicted, and what is right, each of shape (..., 2): links, NILs."""
    sums = np.einsum("...ij,sij->...s", np.asarray(counts, dtype=np.float64), _SUMS)
    return sums[..., :2], sums[..., 2:4], sums[..., 4:]


def _gradients(counts: Any) -> Floats:
    """The derivative of each figure by each sum, shape (7, 6); NaN where a figure is undefined."""
    gold, predicted, right = _sums(counts)
    precision, recall, _ = weighted_scores(gold, predicted, right)
    n, made = gold.sum(), np.zeros((7, 6))
    for kind in range(2):
        # Of a ratio a/b: 1/b by a, -a/b² by b.
        for figure, (below, by) in enumerate(((2, predicted[kind]), (0, gold[kind]))):
            made[2 * kind + figure, 4 + kind] = _ratio(1.0, by)
            made[2 * kind + figure, below + kind] = -_ratio(right[kind], by**2)
        # A kind that is never predicted has no precision that could move.
        made[4] += gold[kind] / n * np.nan_to_num(made[2 * kind])
        made[4, kind] += (np.nan_to_num(_ratio(right[kind], predicted[kind])) - precision) / n
    made[5] = np.array([-recall, -recall, 0, 0, 1, 1]) / n
    both = precision + recall
    if both > 0:
        made[6] = 2 * (recall**2 * made[4] + precision**2 * made[5]) / both**2
    return made


def _ratio(above: Any, below: Any) -> Floats:
    """NaN where nothing is divided by."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64))
    ratio: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return ratio


N_CELLS = 5
# Where they stand in a table of gold link and gold NIL by right link, wrong link, NIL, unanswered, row by row.
PLACES = np.array([0, 1, 2, 6, 5])
SCORES = ("P", "R", "F1")
_TOTALS = [FIGURES.index(name) for name in ("LinkingP", "LinkingR", "LinkingF1")]
# Numbers of a block: 16 MB.
_BLOCK = 1 << 21


def scores(cells: Ints) -> Floats:
    """P, R and F1 of each row, shape (..., 3).

    >>> scores(np.array([3, 1, 1, 4, 1])).round(3).tolist()
    [0.7, 0.7, 0.7]
    """
    tables = np.zeros((*cells.shape[:-1], 8))
    tables[..., PLACES] = cells
    return figures(tables.reshape(*cells.shape[:-1], 2, 4))[..., _TOTALS]


def nested_draws(cells: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """How many of each kind go when queries are removed at random, shape (n_draws, 5).

    Links among the removed, those of them that were found, and those of these that were resolved right are
    hypergeometric, each given the one before; so are the NILs recognised among the NILs removed.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    links = draws.hypergeometric(right + wrong + missed, nil + taken, n_removed, n_draws)
    found = draws.hypergeometric(right + wrong, missed, links)
    correct = draws.hypergeometric(right, wrong, found)
    recognised = draws.hypergeometric(nil, taken, n_removed - links)
    gone = [correct, found - correct, links - found, recognised, n_removed - links - recognised]
    return np.stack(gone, axis=-1).astype(np.int64)


def removed_queries(kind: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """How many of each kind go when queries are picked one by one, shape (n_draws, 5).

    Parameters
    ----------
    kind
        The cell of each query, from 0, shape (n,).
    """
    gone = [
        np.bincount((N_CELLS * np.arange(len(picked))[:, None] + kind[picked]).ravel(), minlength=N_CELLS * len(picked))
        for picked in _picked(len(kind), n_removed, n_draws, draws)
    ]
    return np.concatenate(gone).reshape(-1, N_CELLS).astype(np.int64)


def _picked(n: int, n_picked: int, n_draws: int, draws: np.random.Generator) -> Iterator[Ints]:
    """Blocks of rows of different queries, shape (rows, n_picked)."""
    step = max(1, _BLOCK // n)
    for done in range(0, n_draws, step):
        numbers = draws.random((min(step, n_draws - done), n))
        yield np.argpartition(numbers, n_picked - 1, axis=1)[:, :n_picked]


def extremes(cells: Ints, n_removed: int) -> tuple[Floats, Floats]:
    """The lowest and the highest P, R and F1 that removing so many queries can leave, each shape (3,).

    Notes
    -----
    Let the missed links and the taken NILs that go be fixed, d what is left of the first less what is left of the
    second, A the links and B the NILs that the system still predicts, n = A + B. Then
    ``n P = n R + d (right/A - nil/B)``, and of the other removed queries s are links. Best, wrong links go before right
    ones: P and R rise with s up to the number of wrong links; from there on R stays and P is monotone, in the
    direction of -d. Worst, right links go first: up to their number R stays and P is monotone, beyond it both rise. So
    the extremes of all three scores lie where s is at an end of its range or at that number: all removals of missed
    links and taken NILs are tried with these, which costs their product.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    all_missed, all_taken = np.arange(min(missed, n_removed) + 1), np.arange(min(taken, n_removed) + 1)
    step = max(1, _BLOCK // (32 * len(all_taken)))
    for start in range(0, len(all_missed), step):
        gone_missed, gone_taken = np.meshgrid(all_missed[start : start + step], all_taken, indexing="ij")
        rest = n_removed - gone_missed - gone_taken
        low, high = np.maximum(rest - nil, 0), np.minimum(rest, right + wrong)
        possible = low <= high
        low, high, rest = low[possible], high[possible], rest[possible]
        for best, turn in ((True, wrong), (False, right)):
            links = np.stack([low, np.clip(turn, low, high), high])
            gone_right = np.maximum(links - wrong, 0) if best else np.minimum(links, right)
            gone = [gone_right, links - gone_right, *np.broadcast_arrays(gone_missed[possible], rest - links)]
            gone.append(np.broadcast_to(gone_taken[possible], links.shape))
            found = scores(cells - np.stack(gone, axis=-1)).reshape(-1, 3)
            if found.size:
                lowest = np.minimum(lowest, found.min(axis=0))
                highest = np.maximum(highest, found.max(axis=0))
    return lowest, highest
