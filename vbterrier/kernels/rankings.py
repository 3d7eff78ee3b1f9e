"""Rankings given as arrays: order, ties, gains, discounts, ideal DCG and scores."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints

# The largest cutoff: discounts of all ranks are held in memory.
MOST_RANKS = 1_000_000
# The rank of what is not in a ranking: beyond every cutoff.
NO_RANK = np.iinfo(np.int64).max
# Numbers of keys that NumPy sorts by counting, and the largest padding of a table of groups, in its elements.
_RADIX, _MAX_PADDING_RATIO = 1 << 16, 3


def is_falling(score: NDArray[np.float32], starts: Ints) -> bool:
    """Return True if scores never increase within the groups that begin at ``starts``."""
    rises = score[1:] > score[:-1]
    rises[starts[1:] - 1] = False
    return not bool(rises.any())


def top_rows(starts: Ints, stops: Ints, cutoff: int) -> Ints:
    """The first ``cutoff`` rows of each group, padded with -1, shape (n_groups, cutoff)."""
    rows = starts[:, None] + np.arange(cutoff)
    return np.where(rows < stops[:, None], rows, -1)


def tied_groups(score: NDArray[np.float32], starts: Ints, stops: Ints, cutoff: int) -> NDArray[np.bool_]:
    """Groups of falling scores with a tie that involves their first ``cutoff`` rows, shape (n_groups,)."""
    if len(starts) * (cutoff + 1) < len(score):
        rows = top_rows(starts, stops, cutoff + 1)
        tied: NDArray[np.bool_] = ((rows[:, 1:] >= 0) & (score[rows[:, 1:]] == score[rows[:, :-1]])).any(axis=1)
        return tied
    equal = np.flatnonzero(score[1:] == score[:-1])
    # A tie counts if the next row is in the same group and the row itself is above the cutoff.
    group = np.searchsorted(starts, equal, side="right") - 1
    touching = (equal + 1 < stops[group]) & (equal - starts[group] < cutoff)
    tied = np.zeros(len(starts), dtype=bool)
    tied[group[touching]] = True
    return tied


def n_tied(score: NDArray[np.float32], rows: Ints, starts: Ints, stops: Ints) -> int:
    """The number of rows that share their score with a neighbour in their group of falling scores; -1 is no row."""
    above = (rows > starts[:, None]) & (score[np.maximum(rows - 1, 0)] == score[rows])
    below = (rows >= 0) & (rows + 1 < stops[:, None])
    below &= score[np.where(below, rows + 1, 0)] == score[rows]
    return int(np.count_nonzero(above | below))


def spans(lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """Concatenate half-open ranges ``[low, high)``; return the number of the range and the value of each element."""
    sizes = highs - lows
    owner = np.repeat(np.arange(len(lows)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) + np.repeat(lows - before, sizes)


def grouped_order(keys: Ints, n_keys: int) -> Ints:
    """The positions of keys below ``n_keys`` in ascending order, equal keys in order of appearance."""
    # NumPy sorts 16 bits by counting.
    return np.argsort(keys.astype(np.uint16), kind="stable") if n_keys <= _RADIX else stable_order(keys, n_keys)[0]


def stable_order(keys: Ints, n_keys: int) -> tuple[Ints, Ints]:
    """The positions of :func:`grouped_order`, and the sorted keys."""
    bits = max(len(keys) - 1, 0).bit_length()
    if n_keys > 1 << (63 - bits):
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    # NumPy sorts integers with vector instructions; its stable sort of positions has none.
    words = (keys << bits) | np.arange(len(keys))
    words.sort()
    return words & ((1 << bits) - 1), words >> bits


def kth_largest(score: NDArray[np.float32], starts: Ints, stops: Ints, k: int) -> NDArray[np.float32]:
    """The k-th largest score of each group, -inf for smaller groups, shape (n_groups,); groups are contiguous."""
    sizes = stops - starts
    longest = int(sizes.max(initial=0))
    if longest < k or len(starts) * longest > _MAX_PADDING_RATIO * max(len(score), 1):
        return np.full(len(starts), -np.inf, dtype=np.float32)
    table = np.full((len(starts), longest), -np.inf, dtype=np.float32)
    if (sizes == longest).all():
        table[:] = score.reshape(table.shape)
    else:
        table[np.arange(longest) < sizes[:, None]] = score
    table.partition(longest - k, axis=1)
    return np.where(sizes >= k, table[:, longest - k], np.float32(-np.inf))


def extreme_places(score: NDArray[np.float32], starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """The place of the first highest and of the last lowest score of each group, each of shape (n_groups,).

    Groups are contiguous and not empty. These are the ends of each group in :func:`descending`.
    """
    sizes = stops - starts
    highest, lowest = (
        np.flatnonzero(score == np.repeat(extreme.reduceat(score, starts), sizes))
        for extreme in (np.maximum, np.minimum)
    )
    return highest[np.searchsorted(highest, starts)], lowest[np.searchsorted(lowest, stops) - 1]


def descending(score: NDArray[np.float32], starts: Ints, stops: Ints) -> Ints:
    """The positions of each group by descending score, equal scores in order, shape (n,); groups are contiguous.

    Scores become words whose order is theirs, with the place in the group below, so that one sort of integers, which
    has vector instructions, orders a table of groups.
    """
    sizes = stops - starts
    longest = int(sizes.max(initial=0))
    if len(starts) * longest > _MAX_PADDING_RATIO * max(len(score), 1):
        owner = np.repeat(np.arange(len(starts)), sizes)
        return np.lexsort((-score, owner))
    # Adding 0 makes -0 equal to 0.
    bits = (score + np.float32(0)).view(np.uint32)
    rising = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    width = np.uint64(max(longest - 1, 0).bit_length())
    places = np.arange(longest, dtype=np.uint64)
    # Padding is behind all scores.
    words = np.full((len(starts), longest), np.iinfo(np.uint64).max)
    if (sizes == longest).all():
        words[:] = (~rising).reshape(words.shape).astype(np.uint64) << width | places
    else:
        inside = places < sizes[:, None].astype(np.uint64)
        words[inside] = (~rising).astype(np.uint64)
        words = np.where(inside, words << width | places, words)
    words.sort(axis=1)
    place = (words & ((np.uint64(1) << width) - np.uint64(1))).astype(np.int64) + starts[:, None]
    return place.ravel() if (sizes == longest).all() else place[np.arange(longest) < sizes[:, None]]


def row_sums(values: Floats) -> Floats:
    """The sum of each row from left to right, shape (n,): columns of zeros at the end change no digit."""
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1] if values.shape[1] else np.zeros(len(values)))


def weighted_sums(values: Floats, weights: Floats) -> Floats:
    """``Σ_r w_r v_r`` along the last axis, from left to right: a sum does not depend on the number of other sums.

    Products of matrices add up in an order that depends on their shapes.
    """
    total = np.zeros(values.shape[:-1])
    for place, weight in enumerate(weights.tolist()):
        total += values[..., place] * weight
    return total


def discounts(cutoff: int) -> Floats:
    """``1 / log2(rank + 1)`` for ranks 1 to ``cutoff`` (Järvelin and Kekäläinen 2002, base 2)."""
    return 1.0 / np.log2(np.arange(2, cutoff + 2))


def cumulative_discounts(cutoff: int) -> Floats:
    """The sum of the first 0, 1, ..., ``cutoff`` discounts, shape (cutoff + 1,)."""
    return np.concatenate([[0.0], np.cumsum(discounts(cutoff))])


def gains(grades: Ints, *, exponential: bool = False) -> Floats:
    """The gain of each grade: the grade itself (trec_eval), or ``2^grade - 1``; 0 for grades below 0."""
    clipped = np.maximum(grades, 0).astype(np.float64)
    return np.exp2(clipped) - 1.0 if exponential else clipped


def ideal_dcg(counts: Ints, gain: Floats, cutoff: int | None) -> Floats:
    """The DCG of the ideal ranking of each pool.

    With ``n_l`` documents of level ``l`` or higher and ``C(n)`` the sum of the first n discounts,
    ``IDCG@k = Σ_l (gain_l - gain_{l-1}) · C(min(k, n_l))``: a sum over levels, not over documents.

    - ``counts``: documents of each level, shape (..., n_levels), levels by increasing gain
    - ``gain``: the gain of each level, shape (n_levels,), increasing from ``gain[0] == 0``
    - ``cutoff``: the cutoff k; ``None`` for the whole pool

    Returns shape (...,).
    """
    at_least = np.cumsum(counts[..., :0:-1], axis=-1)[..., ::-1]
    if cutoff is not None:
        at_least = np.minimum(at_least, cutoff)
    cumulative = cumulative_discounts(int(at_least.max(initial=0)))
    return weighted_sums(cumulative[at_least], np.diff(gain))


def ndcg(gained: Floats, counts: Ints, gain: Floats, cutoff: int | None) -> Floats:
    """``nDCG@k = DCG@k / IDCG@k``, 0 for pools without gain.

    Terms are added in the order of trec_eval, from the first rank down, so that values agree to the last bit.

    - ``gained``: the gain at each rank up to the cutoff, shape (n, width)
    - ``counts``: documents of each level in the pool, shape (n, n_levels), levels by increasing gain
    - ``gain``: the gain of each level, shape (n_levels,), increasing from ``gain[0] == 0``
    - ``cutoff``: the cutoff k; ``None`` for whole rankings and pools

    Returns shape (n,).
    """
    # The level of the grade at each rank of the ideal ranking, shape (n, at most cutoff).
    at_least = np.cumsum(counts[:, :0:-1], axis=1)
    n_ideal = int(at_least.max(initial=0))
    ideal_ranks = np.arange(n_ideal if cutoff is None else min(cutoff, n_ideal))
    ideal = _dcg(gain[(ideal_ranks[:, None] < at_least[:, None, :]).sum(axis=2)])
    return np.divide(_dcg(gained), ideal, out=np.zeros(len(gained)), where=ideal > 0)


def _dcg(gained: Floats) -> Floats:
    total = np.zeros(len(gained))
    for rank in range(gained.shape[1]):
        total += gained[:, rank] / log2(rank + 2)
    return total


def ranks(width: int) -> Floats:
    """1, 2, ..., ``width``, shape (width,)."""
    return np.arange(1, width + 1, dtype=np.float64)


def rbp_weights(width: int, p: float) -> Floats:
    """``(1 - p) p^(rank - 1)`` for ranks 1 to ``width`` (Moffat and Zobel 2008, equation 4), shape (width,)."""
    return (1.0 - p) * p ** np.arange(width, dtype=np.float64)


def average_precision(relevant: Floats, n_relevant: Ints | int) -> Floats:
    """``AP = (1/R) Σ_r I(r) C(r)/r`` with C(r) relevant documents in the first r.

    - ``relevant``: I: 1 at ranks of relevant documents, otherwise 0, shape (..., width)
    - ``n_relevant``: R, the number of relevant documents, shape (...) or a scalar; AP is 0 if R = 0

    Returns shape (...,).
    """
    width = relevant.shape[-1]
    total: Floats = (relevant * np.cumsum(relevant, axis=-1) / ranks(width)).sum(axis=-1)
    return total / np.maximum(n_relevant, 1)


def err(stops: Floats) -> Floats:
    """``ERR = Σ_r (1/r) s_r Π_{i<r} (1 - s_i)`` (Chapelle et al. 2009, equation 4).

    - ``stops``: probability that a user who reaches a rank is satisfied and stops there, shape (..., width)

    Returns shape (...,).
    """
    width = stops.shape[-1]
    goes_on = np.cumprod(1.0 - stops, axis=-1)
    reaches = np.concatenate([np.ones_like(stops[..., :1]), goes_on[..., :-1]], axis=-1)
    score: Floats = (stops * reaches[..., :width] / ranks(width)).sum(axis=-1)
    return score


def q_measure(gain: Floats, ideal: Floats, n_relevant: Ints | int, beta: float = 1.0) -> Floats:
    """``Q = (1/R) Σ_r I(r) (C(r) + β cg(r)) / (r + β cg*(r))`` (Sakai 2005), 0 if no document is relevant.

    - ``gain``: gain at each rank, shape (..., width); I(r) = 1 for gains above 0
    - ``ideal``: cg*: cumulative gain of the ideal ranking at each rank, shape (..., width)
    - ``n_relevant``: R, shape (...) or a scalar
    - ``beta``: the weight of cumulative gains relative to ranks; 0 gives average precision

    Returns shape (...,).
    """
    relevant = (gain > 0).astype(np.float64)
    reached = np.cumsum(relevant, axis=-1) + beta * np.cumsum(gain, axis=-1)
    score: Floats = (relevant * reached / (ranks(gain.shape[-1]) + beta * ideal)).sum(axis=-1)
    return score / np.maximum(n_relevant, 1)
