"""Mean and variance of scores over the grades of unjudged documents, without the distribution."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.kernels.grades.exact import active, drawn_levels, layer, n_walk_states, successors, walk
from vbterrier.kernels.grades.model import comonotone_variance, next_draw
from vbterrier.kernels.rankings import row_sums, weighted_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.model import Increments, UnjudgedModel


# Topics times states held in memory at a time.
_BLOCK_CELLS = 400_000
# The largest product of states, documents and levels of one topic.
MAX_WORK = 1e7
# Topics times states up to which topics with fewer levels have the states of all levels.
_FEW_STATES = 20_000
# The work of a state of pairs of documents in terms of that of a count of levels.
_PAIR_WORK = 8
# The number of counts of levels, over the square of the number of documents, up to which they give the mean as fast
# as the recursion over levels.
_FEW_COUNTS = 3
# The largest number of documents whose factorial leaves all digits to the weights of counts.
_MOST_DOCUMENTS = 100


# Products of many probabilities may underflow to 0.
@np.errstate(under="ignore")
def moments(model: UnjudgedModel, *, with_variance: bool = True) -> tuple[Floats, Floats]:
    """Mean and variance of every topic; without ``with_variance`` some variances may be NaN, which is faster.

    If every level has enough documents, ``mean = base + Σ_i w_i μ_i``. Independent draws have the variance
    ``Σ_i w_i² σ_i²``. Draws from an urn of strength s have ``var = s/(s+1)·Σ_i w_i² σ_i² + 1/(s+1)·C``, where C is the
    variance if all documents had the same uniform number (``(Σ_i w_i)² σ²`` with a shared prior). Otherwise a dynamic
    program over documents computes both from the first two moments of the score in every state. If there are more than
    few states, a recursion over levels computes the mean of topics with a shared prior, in less time.

    Returns (mean, variance): Each of shape (n,); NaN if there are too many states (``MAX_WORK``) and for scores that
    are neither sums nor :class:`~vbterrier.kernels.grades.model.Increments`; callers compute these from the
    distribution.
    """
    if model.increments is not None:
        return _increment_moments(model, model.increments, with_variance=with_variance)
    if model.value is not None:
        unknown = np.full(len(model), np.nan)
        return unknown, unknown.copy()
    mean, variance = _unlimited_moments(model, with_variance=with_variance)
    binding = np.flatnonzero(model.binds)
    if not len(binding):
        return mean, variance
    part = model.select(binding)
    n_unjudged, n_counts = part.n_unjudged, _n_counts(part)
    many = n_counts > _FEW_COUNTS * n_unjudged**2
    by_levels = many & (n_unjudged <= _MOST_DOCUMENTS) & (n_unjudged**3 * part.n_active <= MAX_WORK) & part.is_shared
    # The mean comes from the same recursion with and without the variance, so that all its digits are the same.
    exact_mean = np.full(len(binding), np.nan)
    if by_levels.any():
        exact_mean[by_levels] = mean[binding[by_levels]] - _shortfall(part.select(np.flatnonzero(by_levels)))
    mean[binding], variance[binding] = exact_mean, np.nan
    states = np.flatnonzero(~by_levels | with_variance)
    limited = _limited_moments(part.select(states), n_counts[states], exact_mean[states], with_variance=with_variance)
    mean[binding[states]], variance[binding[states]] = limited
    return mean, variance


def _unlimited_moments(model: UnjudgedModel, *, with_variance: bool) -> tuple[Floats, Floats]:
    """The closed form for topics with enough documents of every level."""
    expected = weighted_sums(model.attainable_prob, model.gain)
    mean = model.base + row_sums(model.weights * expected)
    if not with_variance:
        return mean, np.full(len(model), np.nan)
    gain_variance = np.maximum(weighted_sums(model.attainable_prob, model.gain**2) - expected**2, 0.0)
    variance = row_sums(model.weights**2 * gain_variance)
    if model.strength is None or not model.depends.any():
        return mean, variance
    if model.is_shared:
        together = row_sums(model.weights) ** 2 * gain_variance[:, 0]
    else:
        together = comonotone_variance(model.attainable_prob, model.weights, model.gain)
    return mean, variance + (together - variance) / (model.strength + 1)


def _shortfall(model: UnjudgedModel) -> Floats:
    """The expected part of the score that topics lose because levels have too few documents, shape (n,).

    Of the first i documents, with D_l drawing level l, ``O_l = max(O_(l+1) + D_l - cap_l, 0)`` are assigned lower
    levels. For draws from an urn with a shared prior, ``P(D) = Π_l a_l(D_l) / a(i)`` with
    ``a_l(d) = Π_(j<d) (s p_l + j)/(j + 1)`` and a that of ``p = 1``. So one pass over the levels from the highest,
    whose states are the number of documents that draw at least a level and O, serves all i, in time linear in levels
    and cubic in documents.
    """
    n, width = len(model), int(model.n_unjudged.max()) + 1
    step = max(1, _BLOCK_CELLS // width**2)
    if n > step:
        return np.concatenate([_shortfall(model.select(slice(at, at + step))) for at in range(0, n, step)])
    tied = np.zeros(n) if model.strength is None else 1 / (model.strength + 1)
    numbers = np.arange(width)[:, None]

    def rising(prob: Floats) -> Floats:
        """The weight a(d) of every d over (s + 1)^d, shape (width, n), contiguous over topics."""
        steps = (1 - tied) * prob + tied * numbers[:-1]
        return np.asarray(np.cumprod(np.vstack([np.ones((1, n)), steps / numbers[1:]]), axis=0), dtype=np.float64)

    prob = model.attainable_prob[:, 0]
    at_most = np.cumsum(prob, axis=1)
    weight = np.zeros((width, width, n))
    weight[0, 0] = 1.0
    lost = np.zeros((width, n))
    for level in range(len(model.gain) - 1, 0, -1):
        drawn, before = rising(prob[:, level]), weight
        weight = before.copy()
        for count in range(1, width):
            weight[count:, count:] += drawn[count] * before[:-count, :-count]
        cap = model.caps[:, level]
        within = np.cumsum(weight, axis=1)
        over = np.minimum(cap + numbers, width)
        weight = np.take_along_axis(np.pad(weight, ((0, 0), (0, 1), (0, 0))), over[None], axis=1)
        weight[:, 0] = np.take_along_axis(within, cap[None, None], axis=1)[:, 0]
        expected = (np.ascontiguousarray(np.moveaxis(weight, 2, 0)) @ numbers[:, 0]).T
        rise, others = model.gain[level] - model.gain[level - 1], rising(at_most[:, level - 1])
        for count in range(1, width):
            lost[count:] += rise * expected[count] * others[: width - count]
    lost = (lost / rising(np.ones(n))).T
    weights = model.weights[:, : width - 1]
    return row_sums((weights - np.pad(weights[:, 1:], ((0, 0), (0, 1)))) * lost[:, 1:])


def _n_counts(model: UnjudgedModel) -> NDArray[Any]:
    """Number of different counts of the levels that all documents of each topic draw, shape (n,)."""
    # Few pairs of sizes differ, and numbers are sorted faster than pairs.
    width = len(model.gain) + 1
    sizes, kind = np.unique(model.n_unjudged * width + model.n_active, return_inverse=True)
    return np.array([comb(u + s - 1, s - 1) for u, s in (divmod(size, width) for size in sizes.tolist())])[kind]


def _limited_moments(
    model: UnjudgedModel, n_counts: NDArray[Any], exact_mean: Floats, *, with_variance: bool
) -> tuple[Floats, Floats]:
    """The dynamic programs, for topics with the same states together.

    ``n_counts`` are the numbers of :func:`_n_counts`; ``exact_mean`` are means of a recursion or NaN.
    """
    topic_moments = np.stack([exact_mean, np.full(len(model), np.nan)])
    n_unjudged, n_active = model.n_unjudged, model.n_active
    counts = n_unjudged * n_counts
    # The pairs of counts of u documents that keep their level and that are left over are C(u + 4, 4).
    pairs = _PAIR_WORK * np.prod([n_unjudged + more for more in range(1, 5)], axis=0, dtype=np.float64) / 24
    pairs[np.isnan(exact_mean)] = np.inf
    by_counts = model.is_shared & (np.minimum(counts, pairs) * n_active <= MAX_WORK)
    by_pairs, by_caps = by_counts & (counts > pairs), ~by_counts & ~model.depends
    by_draws = by_counts & ~by_pairs
    most, n_levels = (int(numbers[by_draws].max(initial=1)) for numbers in (n_unjudged, n_active))
    # States of levels that no document draws have no effect; few of them cost less than another call.
    few = np.count_nonzero(by_draws) * comb(most + n_levels - 1, n_levels - 1) <= _FEW_STATES
    walks: list[tuple[Any, Any, Callable[[UnjudgedModel, Floats], tuple[Floats, Floats]]]] = [
        (by_draws, n_active * (not few), lambda part, _: _urn_moments(part, with_variance=with_variance)),
        (by_pairs, n_unjudged, lambda part, mean: (mean, _pair_variance(part, mean))),
        (by_caps, np.column_stack([n_unjudged, model.caps]), lambda part, _: _assigned_moments(part)),
    ]
    for chosen, signature, compute in walks:
        topics = np.flatnonzero(chosen)
        if not len(topics):
            continue
        # Equal caps of neighbours make batches with few different supplies.
        topics = topics[np.lexsort((*model.caps[topics].T, -n_active[topics], -n_unjudged[topics]))]
        kinds, member = np.unique(signature[topics], axis=0, return_inverse=True)
        for kind in range(len(kinds)):
            alike = topics[member.reshape(-1) == kind]
            topic_moments[:, alike] = compute(model.select(alike), exact_mean[alike])
    return topic_moments[0], topic_moments[1]


def _assigned_moments(model: UnjudgedModel) -> tuple[Floats, Floats]:
    """Mean and variance of topics with independent draws and the same caps, each of shape (n,)."""
    n_unjudged = int(model.n_unjudged[0])
    if n_walk_states(model) * n_unjudged * len(model.gain) > MAX_WORK:
        unknown = np.full(len(model), np.nan)
        return unknown, unknown
    path = walk(model)
    # Rows of `carried`: probability of the state, and the first two moments of the score within it.
    carried = np.zeros((3, len(model), len(path)))
    carried[0, :, 0] = 1.0
    for document in range(n_unjudged):
        after = np.zeros_like(carried)
        for source, target, level, chance in path.moves(document):
            value = (model.weights[:, document] * model.gain[level])[:, None]
            mass, first, second = carried[:, :, source] * chance
            after[0][:, target] += mass
            after[1][:, target] += first + value * mass
            after[2][:, target] += second + 2 * value * first + value**2 * mass
        carried = after
    _, first, second = carried.sum(axis=2)
    return model.base + first, np.maximum(second - first**2, 0.0)


def _urn_moments(model: UnjudgedModel, *, with_variance: bool) -> tuple[Floats, Floats]:
    """Mean and variance of topics with a shared prior; states count the draws of as many levels as any topic has.

    ``F_i(c) = E[v_i T_i + ... + v_u T_u | c drawn by the first i]``, with T_i the gain of the first i documents and v_i
    the difference of consecutive weights, and its second moment follow from those of i + 1 by one draw from the urn.
    The cost is topics times counts of drawn levels times levels.

    - ``model``: topics by decreasing number of documents
    """
    n, most, n_levels = len(model), int(model.n_unjudged[0]), int(model.n_active.max())
    step = max(1, _BLOCK_CELLS // len(layer(most, n_levels)))
    if n > step:
        batches = (model.select(slice(at, at + step)) for at in range(0, n, step))
        mean, variance = np.hstack([_urn_moments(part, with_variance=with_variance) for part in batches])
        return mean, variance
    gain, prob, caps = active(model)
    # By level, contiguous over topics, shape (n_levels, 1, n).
    prob = np.ascontiguousarray(prob.T)
    differs = np.ones(n, dtype=bool)
    differs[1:] = ((gain[1:] != gain[:-1]) | (caps[1:] != caps[:-1])).any(axis=1)
    # Documents are few, and bytes are added and compared faster.
    rooms = np.minimum(caps[differs].T, most).astype(_at_least(most, n_levels).dtype)
    kind, lowest, rises = np.cumsum(differs) - 1, gain[differs, 0], np.diff(gain[differs], axis=1).T
    falls = model.weights[:, :most].T.copy()
    falls[:-1] -= falls[1:]
    # The number of topics with at least so many documents.
    n_reaching = np.searchsorted(-model.n_unjudged, -np.arange(most + 1), side="right").tolist()
    # The mean and, if requested, the second moment; counts are rows, which are gathered faster than single numbers.
    later = [np.zeros((len(layer(most, n_levels)), 0)) for _ in range(1 + with_variance)]
    for n_drawn in range(most, 0, -1):
        counts, topics = layer(n_drawn, n_levels), slice(n_reaching[n_drawn])
        n_joining = n_reaching[n_drawn] - later[0].shape[1]
        if n_joining:
            # Scores change no more after a topic's last document.
            joining = np.zeros((len(counts), n_joining))
            later = [np.concatenate([moment, joining], axis=1) for moment in later]
        kinds = kind[topics]
        n_kinds = kinds[-1] + 1
        total = _total_gain(n_drawn, lowest[:n_kinds], rises[:, :n_kinds], rooms[:, :n_kinds])
        gained = total.take(kinds, axis=1)
        gained *= falls[n_drawn - 1, topics]
        if with_variance:
            added = 2 * later[0]
            added += gained
            added *= gained
            later[1] += added
        later[0] += gained
        by_number = prob[:, :, topics]
        if model.strength is None or n_drawn == 1:
            chance = list(by_number)
        else:
            # As :func:`next_draw`, by the number of earlier draws of the level.
            share = (n_drawn - 1) / (model.strength[topics] + (n_drawn - 1))
            by_number = by_number + share * (np.arange(0.0, n_drawn)[:, None] / (n_drawn - 1) - by_number)
            before = layer(n_drawn - 1, n_levels)
            chance = [each.take(before[:, level], axis=0) for level, each in enumerate(by_number)]
        later = [_expectation(moment, chance, successors(n_drawn - 1, n_levels)) for moment in later]
    mean, *square = (moment[0] for moment in later)
    variance = np.maximum(square[0] - mean**2, 0.0) if with_variance else np.full(n, np.nan)
    return model.base + mean, variance


def _pair_variance(model: UnjudgedModel, mean: Floats) -> Floats:
    """The variance of topics as of :func:`_urn_moments` from their mean, in time linear in levels.

    With G_i the gain of the first i documents, ``E[T²] = Σ_i Σ_j v_i v_j E[G_i G_j]``. For ``i <= j``, states of the
    recursion of :func:`_shortfall` are the documents assigned and left over of the first i, and of the next ``j - i``.

    - ``model``: topics with the same number of documents, by decreasing number of active levels
    - ``mean``: the mean of each topic, shape (n,)
    """
    n, n_unjudged = len(model), int(model.n_unjudged[0])
    states = _pair_states(n_unjudged)
    step = max(1, _BLOCK_CELLS // len(states.both))
    if n > step:
        batches = (slice(at, at + step) for at in range(0, n, step))
        return np.concatenate([_pair_variance(model.select(part), mean[part]) for part in batches])
    gain, prob, caps = active(model)
    tied = np.zeros((n, 1)) if model.strength is None else 1 / (model.strength[:, None] + 1)
    numbers, (one, other) = np.arange(n_unjudged + 1), states.pairs.T
    factorial = np.cumprod(np.maximum(numbers, 1.0))
    total, ways = np.append(one + other, 0), np.append(1 / (factorial[one] * factorial[other]), 0.0)

    def pair_weights(chance: Floats) -> Floats:
        """The weight of every pair of counts, and 0, shape (n, Q + 1)."""
        shared = tied[: len(chance)]
        steps = (1 - shared) * chance[:, None] + shared * numbers[:-1]
        rising = np.cumprod(np.concatenate([np.ones((len(chance), 1)), steps], axis=1), axis=1)
        return np.asarray(rising.take(total, axis=1) * ways)

    def matrix(chance: Floats) -> Floats:
        """The weight of the pair that leads from one to another, shape (n, Q, Q)."""
        return pair_weights(chance).take(states.difference, axis=1, mode="clip")

    # The first has no effect, since G_0 is 0.
    falls = -np.diff(np.pad(model.weights[:, :n_unjudged], ((0, 0), (1, 1))), axis=1)
    ends = np.where(other == 0, 1, 2) * falls[:, one] * falls[:, one + other] / pair_weights(np.ones(n))[:, :-1]
    at_most = np.cumsum(prob[:, 0], axis=1)
    assigned = np.cumsum(states.pairs[states.assigned].T, axis=0).astype(np.float64)
    # Weights of states, and these times the gain of the first i documents, and of the first j.
    carried = np.zeros((3, n, len(states.both)))
    carried[0, :, 0] = 1.0
    square = np.zeros(n)
    for level in range(gain.shape[1] - 1, 0, -1):
        # The first topics have this level.
        part = slice(np.count_nonzero(model.n_active > level))
        mass, first, second = now = carried[:, part]
        draws = matrix(prob[part, 0, level])
        for block, width in states.blocks:
            rows = np.moveaxis(now[:, :, block], 0, 1).reshape(len(draws), -1, width) @ draws[:, :width, :width]
            now[:, :, block] = np.moveaxis(rows.reshape(len(draws), 3, -1), 1, 0)
        _cap(now, n_unjudged, caps[part, level])
        rise = (gain[part, level] - gain[part, level - 1])[:, None]
        rest = (matrix(at_most[part, level - 1]) @ ends[part, :, None])[:, :, 0].take(states.both, axis=1) * rise
        gained = rise * assigned[0]
        square[part] += (rest * ((first + gained * mass) * assigned[1] + second * assigned[0])).sum(axis=1)
        first += gained * mass
        second += rise * assigned[1] * mass
    lowest = gain[:, 0] * row_sums(model.weights)
    return np.maximum(square - (mean - model.base - lowest) ** 2, 0.0)


def _cap(values: Floats, n_unjudged: int, caps: Ints) -> None:
    """Assign a level to documents in values of states, shape (3, n, S), with a cap for each topic."""
    kinds, kind = np.unique(caps, return_inverse=True)
    target = np.stack([_assigned_states(n_unjudged, cap) for cap in kinds.tolist()])[kind]
    target += np.arange(len(caps))[:, None] * target.shape[1]
    for each in values:
        each[:] = np.bincount(target.reshape(-1), each.reshape(-1), each.size).reshape(each.shape)


class _PairStates(NamedTuple):
    """The states of :func:`_pair_variance`.

    - ``pairs``: all pairs of counts, by their sum, shape (Q, 2)
    - ``difference``: the position in ``pairs`` of the second pair minus the first; Q if a count is negative; shape (Q,
      Q)
    - ``assigned``, ``over``: the positions in ``pairs`` of the documents that keep their level and that are left over,
      shape (S,)
    - ``both``: the position of their sum, shape (S,)
    - ``starts``: the first state of each pair, shape (Q,)
    - ``blocks``: the states by the sum of ``assigned``, which a draw keeps, and the number of pairs ``over`` can be
    """

    pairs: Ints
    difference: Ints
    assigned: Ints
    over: Ints
    both: Ints
    starts: Ints
    blocks: list[tuple[slice, int]]


def _place(pairs: Ints) -> Ints:
    """The positions of pairs of counts in the order of their sum, then of the first."""
    total = pairs.sum(axis=-1)
    return np.asarray(total * (total + 1) // 2 + pairs[..., 0])


@lru_cache(maxsize=64)
def _pair_states(n_unjudged: int) -> _PairStates:
    pairs = np.array([(one, total - one) for total in range(n_unjudged + 1) for one in range(total + 1)])
    apart = pairs[None] - pairs[:, None]
    difference = np.where((apart >= 0).all(axis=2), _place(np.maximum(apart, 0)), len(pairs))
    widths = np.array([comb(n_unjudged - total + 2, 2) for total in range(n_unjudged + 1)])[pairs.sum(axis=1)]
    starts = np.cumsum(widths) - widths
    assigned = np.repeat(np.arange(len(pairs)), widths)
    over = np.arange(len(assigned)) - starts[assigned]
    firsts = [total * (total + 1) // 2 for total in range(n_unjudged + 1)]
    edges = [*starts[firsts].tolist(), len(assigned)]
    blocks = [(slice(*edge), int(widths[first])) for first, edge in zip(firsts, pairwise(edges), strict=True)]
    return _PairStates(pairs, difference, assigned, over, _place(pairs[assigned] + pairs[over]), starts, blocks)


@lru_cache(maxsize=256)
def _assigned_states(n_unjudged: int, cap: int) -> Ints:
    """The state in which a level with a cap leaves each state, shape (S,)."""
    states = _pair_states(n_unjudged)
    assigned, over = states.pairs[states.assigned], states.pairs[states.over]
    first = np.maximum(over[:, 0] - cap, 0)
    left = np.column_stack([first, np.maximum(over.sum(axis=1) - cap, 0) - first])
    return states.starts[_place(assigned + over - left)] + _place(left)


def _expectation(values: Floats, chance: list[Floats], after: tuple[Ints, ...]) -> Floats:
    """The expectation over the next draw of values that depend on the counts after it, shape (S, n)."""
    value = values.take(after[0], axis=0)
    value *= chance[0]
    for share, place in zip(chance[1:], after[1:], strict=True):
        reached = values.take(place, axis=0)
        reached *= share
        value += reached
    return value


def _total_gain(n_drawn: int, lowest: Floats, rises: Floats, rooms: NDArray[np.signedinteger[Any]]) -> Floats:
    """The total gain of documents by the counts of their drawn levels, shape (S, n).

    - ``lowest``, ``rises``, ``rooms``: for each column the gain of the lowest level, shape (n,), and by level the rise
      of the gain from the level below, and the number of documents to which the level can be assigned
    """
    at_least = _at_least(n_drawn, len(rooms))
    total = np.empty((at_least.shape[1], len(lowest)))
    total[:] = lowest * n_drawn
    assigned: Any = 0
    for level in range(len(rooms) - 1, 0, -1):
        # The documents that are assigned the level or a higher one: all that draw it, if enough are left.
        assigned = np.minimum(assigned + rooms[level], at_least[level])
        total += assigned * rises[level - 1]
    return total


@lru_cache(maxsize=256)
def _at_least(n_drawn: int, n_levels: int) -> NDArray[np.signedinteger[Any]]:
    """The number of draws of each level or above, by the counts of a layer, shape (n_levels, S, 1)."""
    kind: type[np.signedinteger[Any]] = np.int8 if n_drawn < np.iinfo(np.int8).max // 2 else np.int64
    at_least = np.cumsum(layer(n_drawn, n_levels)[:, ::-1], axis=1)[:, ::-1]
    by_level: NDArray[np.signedinteger[Any]] = at_least.T.astype(kind, order="C")[:, :, None]
    return by_level


def _increment_moments(model: UnjudgedModel, increments: Increments, *, with_variance: bool) -> tuple[Floats, Floats]:
    """Mean and variance of scores that are sums of increments; NaN for too many states or priors that are not shared.

    ``M_i(c) = E[added by documents i+1...u | c drawn by the first i]`` follows from ``M_(i+1)`` by one draw from the
    urn, and so does the variance, by conditioning on that draw.
    """
    mean, variance = np.full((2, len(model)), np.nan)
    if not model.is_shared:
        return mean, variance
    for n_unjudged in np.unique(model.n_unjudged).tolist():
        alike = np.flatnonzero(model.n_unjudged == n_unjudged)
        levels = drawn_levels(model.select(alike))
        n_states = comb(n_unjudged + len(levels) - 1, len(levels) - 1)
        if n_states * n_unjudged * len(model.gain) > MAX_WORK:
            continue
        n_together = max(1, _BLOCK_CELLS // n_states)
        for start in range(0, len(alike), n_together):
            topics = alike[start : start + n_together]
            part = model.select(topics), increments.select(topics)
            mean[topics], variance[topics] = _increment_backwards(*part, levels, with_variance=with_variance)
    return mean, variance


def _increment_backwards(
    model: UnjudgedModel, increments: Increments, levels: Ints, *, with_variance: bool
) -> tuple[Floats, Floats]:
    mean, variance = np.zeros((2, len(model), 1))
    for step in increment_steps(model, increments, levels):
        total = step.gained + mean
        added = [total[:, to] - lost for to, lost in zip(step.after, step.lost, strict=True)]
        mean = sum(share * value for share, value in zip(step.chance, added, strict=True))
        if with_variance:
            parts = zip(step.chance, added, step.after, strict=True)
            later = np.broadcast_to(variance, total.shape)
            variance = sum(share * ((value - mean) ** 2 + later[:, to]) for share, value, to in parts)
    return increments.base + mean[:, 0], variance[:, 0] if with_variance else np.full(len(model), np.nan)


class IncrementStep(NamedTuple):
    """The draw of one document, for scores that are sums of increments.

    - ``chance``: the probability of each level by the counts of drawn levels before the draw, shape (L, n, S)
    - ``after``: the position of the counts after the draw of each level, each of shape (S,)
    - ``gained``, ``lost``: the document adds ``gained[:, after[l]] - lost[l]``; shape (n, S'), and each of shape (n, S)
    """

    chance: Floats
    after: tuple[Ints, ...]
    gained: Floats
    lost: list[Floats]


def increment_steps(model: UnjudgedModel, increments: Increments, levels: Ints) -> Iterator[IncrementStep]:
    """Yield the draws from the last to the first, of topics with a shared prior and the same number of documents.

    - ``levels``: the levels that documents draw
    """
    n_unjudged = int(model.n_unjudged[0])
    caps, kind = np.unique(model.caps, axis=0, return_inverse=True)
    kind, prob = kind.reshape(-1), model.attainable_prob[:, :, levels]
    seen = _moments_after_draws(n_unjudged, caps, levels, increments)
    for document in range(n_unjudged - 1, -1, -1):
        (changed, behind), before = seen, _moments_after_draws(document, caps, levels, increments)
        terms = (increments.alone, increments.together, increments.fixed, increments.lasting)
        alone, together, fixed, lasting = (each[:, [document]] for each in terms)
        unit = alone + together * behind[kind]
        drawn = layer(document, len(levels)).astype(np.float64)
        chance = np.moveaxis(next_draw(prob, model.strength, drawn, document), 2, 0)
        after = successors(document, len(levels))
        gained = changed[kind] * unit + fixed + lasting * behind[kind]
        yield IncrementStep(chance, after, gained, [before[0][kind] * unit[:, to] for to in after])
        seen = before


def _moments_after_draws(n_drawn: int, caps: Ints, levels: Ints, increments: Increments) -> tuple[Floats, Floats]:
    """X and Y of the increments after some draws, for several caps, each of shape (n_caps, S)."""
    counts = layer(n_drawn, len(levels))
    drawn = np.zeros((caps.shape[1], 1, len(counts)), dtype=np.int64)
    drawn[levels, 0] = counts.T
    assigned = np.empty((len(caps), len(counts), caps.shape[1]), dtype=np.int64)
    falling = np.zeros((len(caps), len(counts)), dtype=np.int64)
    for level in range(caps.shape[1] - 1, -1, -1):
        arriving = falling + drawn[level]
        assigned[:, :, level] = np.minimum(arriving, caps[:, level : level + 1])
        falling = arriving - assigned[:, :, level]
    return increments.seen(assigned)
