"""Mean and variance of scores over the grades of unjudged documents, without the distribution."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.exact import layer, n_walk_states, successors, walk
from vbterrier.kernels.grades.model import comonotone_variance, next_draw
from vbterrier.kernels.rankings import row_sums

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.model import Increments, UnjudgedModel


# Topics times states held in memory at a time.
_BATCH = 100_000
# The largest product of states, documents and levels of one topic.
MAX_WORK = 1e7
# The largest number of documents whose factorial leaves all digits to the weights of counts.
_MOST_DOCUMENTS = 100


def moments(model: UnjudgedModel, *, with_variance: bool = True) -> tuple[Floats, Floats]:
    """Mean and variance of every topic; without ``with_variance`` some variances may be NaN, which is faster.

    If every level has enough documents, ``mean = base + Σ_i w_i μ_i``. Independent draws have the variance
    ``Σ_i w_i² σ_i²``. Draws from an urn of strength s have ``var = s/(s+1)·Σ_i w_i² σ_i² + 1/(s+1)·C``, where C is the
    variance if all documents had the same uniform number (``(Σ_i w_i)² σ²`` with a shared prior). Otherwise a recursion
    over levels computes the mean of topics with a shared prior, and a dynamic program over documents the variance, and
    the mean of other topics, from the probability and the first two moments of the score in every state.

    Returns
    -------
    (mean, variance)
        Each of shape (n,); NaN if there are too many states (``MAX_WORK``) and for scores that are neither sums nor
        :class:`~vbterrier.kernels.grades.model.Increments`; callers compute these from the distribution.
    """
    if model.increments is not None:
        return _increment_moments(model, model.increments, with_variance=with_variance)
    if model.value is not None:
        unknown = np.full(len(model), np.nan)
        return unknown, unknown.copy()
    mean, variance = _unlimited_moments(model)
    binding = np.flatnonzero(model.binds)
    if not len(binding):
        return mean, variance
    part = model.select(binding)
    n_unjudged = int(part.n_unjudged.max())
    is_linear = part.is_shared and n_unjudged <= _MOST_DOCUMENTS and n_unjudged**3 * len(model.gain) <= MAX_WORK
    if is_linear:
        mean[binding] -= _shortfall(part)
        variance[binding] = np.nan
    if with_variance or not is_linear:
        # Topics with the same states. For dependent draws from a shared prior, states do not depend on the caps.
        caps = np.where((part.depends & part.is_shared)[:, None], 0, part.caps)
        kinds, member = np.unique(np.column_stack([part.n_unjudged, part.depends, caps]), axis=0, return_inverse=True)
        for kind in range(len(kinds)):
            alike = np.flatnonzero(member.reshape(-1) == kind)
            first, variance[binding[alike]] = _limited_moments(part.select(alike))
            if not is_linear:
                mean[binding[alike]] = first
    return mean, variance


def _unlimited_moments(model: UnjudgedModel) -> tuple[Floats, Floats]:
    """The closed form for topics with enough documents of every level."""
    expected = model.landed @ model.gain
    gain_variance = np.maximum(model.landed @ model.gain**2 - expected**2, 0.0)
    mean = model.base + row_sums(model.weights * expected)
    variance = row_sums(model.weights**2 * gain_variance)
    if model.strength is None or not model.depends.any():
        return mean, variance
    if model.is_shared:
        together = row_sums(model.weights) ** 2 * gain_variance[:, 0]
    else:
        together = comonotone_variance(model.landed, model.weights, model.gain)
    return mean, variance + (together - variance) / (model.strength + 1)


def _shortfall(model: UnjudgedModel) -> Floats:
    """The expected part of the score that topics lose because levels have too few documents, shape (n,).

    Of the first i documents, with D_l drawing level l, ``O_l = max(O_(l+1) + D_l - cap_l, 0)`` land below level l. For
    draws from an urn with a shared prior, ``P(D) = Π_l a_l(D_l) / a(i)`` with ``a_l(d) = Π_(j<d) (s p_l + j)/(j + 1)``
    and a that of ``p = 1``. So one pass over the levels from the highest, whose states are the number of documents that
    draw at least a level and O, serves all i, in time linear in levels and cubic in documents.
    """
    n, width = len(model), int(model.n_unjudged.max()) + 1
    step = max(1, _BATCH // width**2)
    if n > step:
        return np.concatenate([_shortfall(model.select(slice(at, at + step))) for at in range(0, n, step)])
    tied = np.zeros(n) if model.strength is None else 1 / (model.strength + 1)
    numbers = np.arange(width)

    def rising(prob: Floats) -> Floats:
        """The weight a(d) of every d over (s + 1)^d, shape (n, width)."""
        steps = ((1 - tied) * prob)[:, None] + tied[:, None] * numbers[:-1]
        return np.cumprod(np.pad(steps / numbers[1:], ((0, 0), (1, 0)), constant_values=1.0), axis=1)

    prob = model.landed[:, 0]
    at_most = np.cumsum(prob, axis=1)
    weight = np.zeros((n, width, width))
    weight[:, 0, 0] = 1.0
    lost = np.zeros((n, width))
    for level in range(len(model.gain) - 1, 0, -1):
        drawn, before = rising(prob[:, level]), weight
        weight = before.copy()
        for count in range(1, width):
            weight[:, count:, count:] += drawn[:, count, None, None] * before[:, :-count, :-count]
        cap = model.caps[:, level, None]
        within = np.cumsum(weight, axis=2)
        over = np.minimum(cap + numbers, width)
        weight = np.take_along_axis(np.pad(weight, ((0, 0), (0, 0), (0, 1))), over[:, None], axis=2)
        weight[:, :, 0] = np.take_along_axis(within, cap[:, None], axis=2)[:, :, 0]
        expected, others = weight @ numbers, rising(at_most[:, level - 1])
        rise = model.gain[level] - model.gain[level - 1]
        for count in range(1, width):
            lost[:, count:] += rise * expected[:, count, None] * others[:, : width - count]
    lost /= rising(np.ones(n))
    weights = model.weights[:, : width - 1]
    return row_sums((weights - np.pad(weights[:, 1:], ((0, 0), (0, 1)))) * lost[:, 1:])


def _limited_moments(model: UnjudgedModel) -> tuple[Floats, Floats]:
    """The dynamic program for topics with the same :func:`vbterrier.kernels.grades.exact.walk`."""
    n_unjudged = int(model.n_unjudged[0])
    if n_walk_states(model) * n_unjudged * len(model.gain) > MAX_WORK:
        unknown = np.full(len(model), np.nan)
        return unknown, unknown
    if model.depends[0]:
        return _urn_moments(model)
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


def _urn_moments(model: UnjudgedModel) -> tuple[Floats, Floats]:
    """Mean and variance of topics with the same number of unjudged documents and a shared prior, each of shape (n,).

    ``F_i(c) = E[v_i T_i + ... + v_u T_u | c drawn by the first i]``, with T_i the gain of the first i documents and v_i
    the difference of consecutive weights, and its second moment follow from those of i + 1 by one draw from the urn.
    The cost is topics times counts of drawn levels times levels.
    """
    n_unjudged = int(model.n_unjudged[0])
    levels = np.flatnonzero((model.landed > 0).any(axis=(0, 1)))
    step = max(1, _BATCH // len(layer(n_unjudged, len(levels))))
    mean, square = np.empty(len(model)), np.empty(len(model))
    for start in range(0, len(model), step):
        part = slice(start, start + step)
        mean[part], square[part] = _urn_backwards(model.select(part), n_unjudged, levels)
    return model.base + mean, np.maximum(square - mean**2, 0.0)


def _urn_backwards(model: UnjudgedModel, n_unjudged: int, levels: Ints) -> tuple[Floats, Floats]:
    """The first two moments of the part of the score that the unjudged documents of some topics add."""
    caps, kind = np.unique(model.caps, axis=0, return_inverse=True)
    prob = model.landed[:, :, levels]
    falls = model.weights[:, :n_unjudged] - np.pad(model.weights[:, 1:n_unjudged], ((0, 0), (0, 1)))
    mean, square = np.zeros((2, len(model), 1))
    for n_drawn in range(n_unjudged, 0, -1):
        counts = layer(n_drawn, len(levels))
        gained = _total_gain(counts, caps, levels, model.gain)[kind.reshape(-1)] * falls[:, n_drawn - 1 : n_drawn]
        before = layer(n_drawn - 1, len(levels)).astype(np.float64)
        # One contiguous array per level is faster to read.
        chance = [
            next_draw(prob[:, :, [place]], model.strength, before[:, [place]], n_drawn - 1)[:, :, 0]
            for place in range(len(levels))
        ]
        after = successors(n_drawn - 1, len(levels))
        square = _expected(square + gained * (gained + 2 * mean), chance, after)
        mean = _expected(gained + mean, chance, after)
    return mean[:, 0], square[:, 0]


def _expected(values: Floats, chance: list[Floats], after: tuple[Ints, ...]) -> Floats:
    """The expectation over the next draw of values that depend on the counts after it, shape (n, S)."""
    found = chance[0] * values.take(after[0], axis=1)
    for share, place in zip(chance[1:], after[1:], strict=True):
        found += share * values.take(place, axis=1)
    return found


def _total_gain(counts: Ints, caps: Ints, levels: Ints, gain: Floats) -> Floats:
    """The total gain of documents by the counts of their drawn levels, for several caps, shape (n_caps, S)."""
    total = np.zeros((len(caps), len(counts)))
    falling = np.zeros((len(caps), len(counts)), dtype=np.int64)
    drawn = dict(zip(levels.tolist(), counts.T, strict=True))
    for level in range(len(gain) - 1, -1, -1):
        arriving = falling + drawn.get(level, 0)
        landed = np.minimum(arriving, caps[:, level : level + 1])
        total += gain[level] * landed
        falling = arriving - landed
    return total


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
        levels = np.flatnonzero((model.landed[alike] > 0).any(axis=(0, 1)))
        n_states = comb(n_unjudged + len(levels) - 1, len(levels) - 1)
        if n_states * n_unjudged * len(model.gain) > MAX_WORK:
            continue
        n_together = max(1, _BATCH // n_states)
        for start in range(0, len(alike), n_together):
            topics = alike[start : start + n_together]
            part = _increment_backwards(
                model.select(topics), increments.select(topics), levels, with_variance=with_variance
            )
            mean[topics], variance[topics] = part
    return mean, variance


def _increment_backwards(
    model: UnjudgedModel, increments: Increments, levels: Ints, *, with_variance: bool
) -> tuple[Floats, Floats]:
    n_unjudged = int(model.n_unjudged[0])
    caps, kind = np.unique(model.caps, axis=0, return_inverse=True)
    kind, prob = kind.reshape(-1), model.landed[:, :, levels]
    mean, variance = np.zeros((2, len(model), len(layer(n_unjudged, len(levels)))))
    seen = _seen(n_unjudged, caps, levels, increments)
    for document in range(n_unjudged - 1, -1, -1):
        (changed, behind), before = seen, _seen(document, caps, levels, increments)
        terms = (increments.alone, increments.together, increments.fixed, increments.lasting)
        alone, together, fixed, lasting = (each[:, [document]] for each in terms)
        unit = alone + together * behind[kind]
        total = changed[kind] * unit + fixed + lasting * behind[kind] + mean
        drawn = layer(document, len(levels)).astype(np.float64)
        chance = np.moveaxis(next_draw(prob, model.strength, drawn, document), 2, 0)
        after = successors(document, len(levels))
        added = [total[:, to] - before[0][kind] * unit[:, to] for to in after]
        mean = sum(share * value for share, value in zip(chance, added, strict=True))
        if with_variance:
            variance = sum(
                share * ((value - mean) ** 2 + variance[:, to])
                for share, value, to in zip(chance, added, after, strict=True)
            )
        seen = before
    return increments.base + mean[:, 0], variance[:, 0] if with_variance else np.full(len(model), np.nan)


def _seen(n_drawn: int, caps: Ints, levels: Ints, increments: Increments) -> tuple[Floats, Floats]:
    """X and Y of the increments after some draws, for several caps, each of shape (n_caps, S)."""
    counts = layer(n_drawn, len(levels))
    drawn = np.zeros((caps.shape[1], 1, len(counts)), dtype=np.int64)
    drawn[levels, 0] = counts.T
    landed = np.empty((len(caps), len(counts), caps.shape[1]), dtype=np.int64)
    falling = np.zeros((len(caps), len(counts)), dtype=np.int64)
    for level in range(caps.shape[1] - 1, -1, -1):
        arriving = falling + drawn[level]
        landed[:, :, level] = np.minimum(arriving, caps[:, level : level + 1])
        falling = arriving - landed[:, :, level]
    return increments.seen(landed)
