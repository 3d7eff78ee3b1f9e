"""Precision and recall of entity linking with NIL, and their distribution when queries are removed."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints


# The answers to a query, in the order of a table's columns; the rows are gold links and gold NILs.
RIGHT_LINK, WRONG_LINK, NIL_ANSWER, NO_ANSWER = range(4)
GOLD, ANSWERS = ("link", "nil"), ("right_link", "wrong_link", "nil", "unanswered")
N_ANSWERS = len(GOLD) * len(ANSWERS)
FIGURES = ("LinkP", "LinkR", "LinkF1", "NilP", "NilR", "LinkingP", "LinkingR", "LinkingF1")

# The sums that determine the figures, as masks of the cells of a table: gold links and NILs, links and NILs of the
# system, right links and NILs; shape (6, 2, 4).
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
    """P, R and F1 from numbers of links and NILs, each of the shape of the leading axes.

    ``P = (n_L P_L + n_N P_N)/(n_L + n_N)`` and R likewise, both with the numbers in the gold standard (Mertens et al.
    2014, section 2.2). The precision of a kind that is never predicted is 0, and so is F1 without right answers;
    without queries all are NaN.

    - ``gold``, ``predicted``, ``right``: numbers in the gold standard, of the system, and of right answers of the
      system; the last axis is link, NIL
    """
    gold, predicted, right = (np.asarray(counts, dtype=np.float64) for counts in (gold, predicted, right))
    n = gold.sum(axis=-1)
    precision = _ratio((gold * np.nan_to_num(_ratio(right, predicted))).sum(axis=-1), n)
    recall = _ratio(right.sum(axis=-1), n)
    both = precision + recall
    return precision, recall, np.where(both == 0, 0.0, _ratio(2 * precision * recall, both))


def figures(counts: Any) -> Floats:
    """The figures of tables of counts, in the order of ``FIGURES``, shape (..., 8); NaN if undefined.

    - ``counts``: numbers of queries of each kind (gold link, gold NIL) with each answer (right link, wrong link, NIL,
      unanswered), shape (..., 2, 4)
    """
    gold, predicted, right = _sums(counts)
    kinds = np.stack([_ratio(right, predicted), _ratio(right, gold)], axis=-1)
    f1 = _ratio(2 * right[..., 0], predicted[..., 0] + gold[..., 0])
    parts = [kinds[..., 0, :], f1[..., None], kinds[..., 1, :]]
    return np.concatenate([*parts, np.stack(weighted_scores(gold, predicted, right), axis=-1)], axis=-1)


def figure_index(measure: str) -> int:
    """The place among ``FIGURES`` of a measure, such as that of ``"LinkP(nil='O')"``."""
    return FIGURES.index(re.split(r"[(@]", measure, maxsplit=1)[0])


def figure(shares: Any, *, place: int) -> Floats:
    """The figure at a place of ``FIGURES`` of shares of the first answers, (...) of (..., at most 8)."""
    return figures(_tables(np.asarray(shares)))[..., place]


def _tables(shares: Floats) -> Floats:
    """Tables of the first answers, (..., 2, 4) of (..., at most 8)."""
    tables = np.zeros((*shares.shape[:-1], N_ANSWERS))
    tables[..., : shares.shape[-1]] = shares
    return tables.reshape(*shares.shape[:-1], len(GOLD), len(ANSWERS))


def influence(counts: Any) -> Floats:
    """The pseudo-value of a query of each cell of tables for each figure, shape (..., 2, 4, 8).

    ``v_q = θ + n ∇θ · x_q`` with the gradient of the figure θ with respect to the sums, and the query's contribution
    x_q to the sums. Figures are homogeneous of degree 0 in the counts, so ``∇θ · Σ x_q = 0`` (Euler) and the mean of
    v_q is θ; with weighted counts, the weighted mean is. To first order, the sampling variation of θ is that of this
    mean, including that of the gold weights.

    - ``counts``: the tables, shape (..., 2, 4)
    """
    n = np.sum(counts, axis=(-2, -1))[..., None, None, None]
    values: Floats = figures(counts)[..., None, None, :] + n * np.einsum("...fs,sij->...ijf", _gradients(counts), _SUMS)
    # Recall over all queries is a mean: 1 for right answers and 0 for others, without rounding errors.
    values[..., FIGURES.index("LinkingR")] = _SUMS[4] + _SUMS[5]
    return values


def slopes(shares: Any, *, place: int) -> Floats:
    """The derivative of a figure by each of the first shares of answers, (..., k) of (..., k), k at most 8."""
    shares = np.asarray(shares)
    made: Floats = np.einsum("...s,sc->...c", _gradients(_tables(shares))[..., place, :], _SUMS.reshape(6, -1))
    return made[..., : shares.shape[-1]]


# Swaps that are enumerated.
_MOST_SWAPS = 1 << 17


def swap_p_values(answers: Any, n_resamples: int, draws: np.random.Generator) -> tuple[Floats, int]:
    """Two-sided p-values of the differences between the figures of two systems, under swaps of their answers.

    If both systems answer alike, each query's two answers are exchangeable. p is the probability that swapping the
    answers of random queries gives a difference at least as large as the observed one. Of the queries with the same
    kind and the same two answers, only the number of swaps matters, which is binomial: all combinations of these
    numbers are enumerated if there are at most 131,072, and drawn otherwise.

    - ``answers``: numbers of queries of each kind (gold link, gold NIL) by the answers of both systems, shape (2, 4, 4)
    - ``n_resamples``: number of draws
    - ``draws``: the source of random numbers

    Returns (numpy.ndarray, int): p of each of ``FIGURES``, shape (8,), NaN if the figure of a system is undefined; the
    number of draws, 0 if all swaps are enumerated. Swaps that leave a figure undefined count as at least as large.
    """
    answers = np.asarray(answers)
    differ = np.argwhere((answers > 0) & ~np.eye(4, dtype=bool))
    sizes = answers[tuple(differ.T)]
    n_all = float(np.prod(sizes + 1.0))
    exact = n_all <= _MOST_SWAPS
    if exact:
        swapped = np.indices(sizes + 1).reshape(len(sizes), int(n_all)).T
        # The probability of a number of swaps, from the triangle of Pascal.
        chances = [np.array([math.comb(int(n), k) / 2.0**n for k in range(n + 1)]) for n in sizes]
        weight = np.prod([chance[swapped[:, at]] for at, chance in enumerate(chances)], axis=0) * np.ones(len(swapped))
    else:
        swapped = draws.binomial(sizes, 0.5, size=(n_resamples, len(sizes)))
        weight = np.ones(n_resamples)
    # A swapped query moves from the answer of the first system to that of the second.
    moves = np.zeros((len(sizes), 2, 4))
    at = np.arange(len(sizes))
    moves[at, differ[:, 0], differ[:, 1]] -= 1
    moves[at, differ[:, 0], differ[:, 2]] += 1
    change = np.tensordot(swapped, moves, axes=1)
    first, second = answers.sum(axis=2), answers.sum(axis=1)
    observed = np.abs(figures(first) - figures(second))
    drawn = np.abs(figures(first + change) - figures(second - change))
    beyond = weight @ ~(drawn < observed - ROUNDING)
    p_values = beyond if exact else (beyond + 1) / (n_resamples + 1)
    return np.where(np.isnan(observed), np.nan, np.minimum(p_values, 1.0)), 0 if exact else n_resamples


def _sums(counts: Any) -> tuple[Floats, Floats, Floats]:
    """Numbers in the gold standard, of predictions, and of right predictions, each of shape (..., 2): links, NILs."""
    sums = np.einsum("...ij,sij->...s", np.asarray(counts, dtype=np.float64), _SUMS)
    return sums[..., :2], sums[..., 2:4], sums[..., 4:]


def _gradients(counts: Any) -> Floats:
    """The derivative of each figure by each sum, shape (..., 8, 6); NaN for undefined figures."""
    gold, predicted, right = _sums(counts)
    precision, recall, _ = weighted_scores(gold, predicted, right)
    n, made = gold.sum(axis=-1), np.zeros((*gold.shape[:-1], len(FIGURES), 6))
    at = {name: made[..., place, :] for place, name in enumerate(FIGURES)}
    for kind, name in enumerate(("Link", "Nil")):
        its_gold, its_predicted, its_right = (each[..., kind] for each in (gold, predicted, right))
        # The derivatives of a ratio a/b: 1/b by a, -a/b² by b.
        for figure, below, by in ((f"{name}P", 2, its_predicted), (f"{name}R", 0, its_gold)):
            at[figure][..., 4 + kind] = _ratio(1.0, by)
            at[figure][..., below + kind] = -_ratio(its_right, by**2)
        # The precision of a kind that is never predicted is constant.
        at["LinkingP"] += (its_gold / n)[..., None] * np.nan_to_num(at[f"{name}P"])
        at["LinkingP"][..., kind] += (np.nan_to_num(_ratio(its_right, its_predicted)) - precision) / n
    links = predicted[..., 0] + gold[..., 0]
    at["LinkF1"][..., 4] = _ratio(2.0, links)
    at["LinkF1"][..., [0, 2]] = -_ratio(2 * right[..., 0], links**2)[..., None]
    at["LinkingR"][..., :2] = -(recall / n)[..., None]
    at["LinkingR"][..., 4:] = (1 / n)[..., None]
    weighted = recall[..., None] ** 2 * at["LinkingP"] + precision[..., None] ** 2 * at["LinkingR"]
    at["LinkingF1"] += np.nan_to_num(_ratio(2 * weighted, ((precision + recall) ** 2)[..., None]))
    return made


def _ratio(above: Any, below: Any) -> Floats:
    """The ratio, or NaN for a denominator of 0."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64))
    ratio: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return ratio


N_CELLS = 5
# The positions of the five cells in a flattened table of gold link and gold NIL by answer: right links, wrong links,
# missed links, right NILs, and linked NILs.
CELL_PLACES = np.array([0, 1, 2, 6, 5])
SCORES = ("P", "R", "F1")
_TOTALS = [FIGURES.index(name) for name in ("LinkingP", "LinkingR", "LinkingF1")]
# Numbers of a block: 16 MB.
_BLOCK_CELLS = 1 << 21


def scores(cells: Ints) -> Floats:
    """P, R and F1 of each row, shape (..., 3)."""
    tables = np.zeros((*cells.shape[:-1], 8))
    tables[..., CELL_PLACES] = cells
    return figures(tables.reshape(*cells.shape[:-1], 2, 4))[..., _TOTALS]


def nested_draws(cells: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """Draw the numbers of removed queries of each cell when queries are removed at random, shape (n_draws, 5).

    The removed links, the found ones among these, and the right ones among these are hypergeometric, each given the
    previous number; so are the recognised NILs among the removed NILs.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    links = draws.hypergeometric(right + wrong + missed, nil + taken, n_removed, n_draws)
    found_links = draws.hypergeometric(right + wrong, missed, links)
    correct = draws.hypergeometric(right, wrong, found_links)
    recognised = draws.hypergeometric(nil, taken, n_removed - links)
    gone = [correct, found_links - correct, links - found_links, recognised, n_removed - links - recognised]
    return np.stack(gone, axis=-1).astype(np.int64)


def removed_queries(kind: Ints, n_removed: int, n_draws: int, draws: np.random.Generator) -> Ints:
    """Draw the numbers of removed queries of each cell by sampling individual queries, shape (n_draws, 5).

    - ``kind``: the cell of each query, from 0, shape (n,)
    """
    gone = [
        np.bincount((N_CELLS * np.arange(len(picked))[:, None] + kind[picked]).ravel(), minlength=N_CELLS * len(picked))
        for picked in _sample_blocks(len(kind), n_removed, n_draws, draws)
    ]
    return np.concatenate(gone).reshape(-1, N_CELLS).astype(np.int64)


def _sample_blocks(n: int, n_picked: int, n_draws: int, draws: np.random.Generator) -> Iterator[Ints]:
    """Yield blocks of samples of distinct queries, shape (rows, n_picked)."""
    step = max(1, _BLOCK_CELLS // n)
    for done in range(0, n_draws, step):
        numbers = draws.random((min(step, n_draws - done), n))
        yield np.argpartition(numbers, n_picked - 1, axis=1)[:, :n_picked]


def extremes(cells: Ints, n_removed: int) -> tuple[Floats, Floats]:
    """The minimum and the maximum of P, R and F1 over all removals of ``n_removed`` queries, each of shape (3,).

    Fix the numbers of removed missed links and of removed linked NILs. Let d be the difference of the remaining numbers
    of these, A the links and B the NILs that the system still predicts, and n = A + B. Then
    ``n P = n R + d (right/A - nil/B)``. Let s of the other removed queries be links. For the maximum, wrong links are
    removed before right ones: P and R increase with s up to the number of wrong links; beyond, R is constant and P is
    monotone in the direction of -d. For the minimum, right links are removed first: up to their number R is constant
    and P is monotone; beyond, both increase. So the extremes of all three scores are at an end of the range of s or at
    that number. These are evaluated for all removals of missed links and linked NILs, at the cost of their product.
    """
    right, wrong, missed, nil, taken = (int(n) for n in cells)
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    all_missed, all_taken = np.arange(min(missed, n_removed) + 1), np.arange(min(taken, n_removed) + 1)
    step = max(1, _BLOCK_CELLS // (32 * len(all_taken)))
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
            scored = scores(cells - np.stack(gone, axis=-1)).reshape(-1, 3)
            if scored.size:
                lowest = np.minimum(lowest, scored.min(axis=0))
                highest = np.maximum(highest, scored.max(axis=0))
    return lowest, highest
