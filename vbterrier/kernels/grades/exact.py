"""Exact and sampled distributions over sequences of grades."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.kernels.grades.distributions import (
    Atoms,
    Convolution,
    Pairs,
    Sample,
    atoms_from_unsorted,
    merge_atoms,
)
from vbterrier.kernels.grades.model import joint_probs, next_draw
from vbterrier.kernels.tolerances import ROUNDING, WHOLE_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.kernels.grades.model import UnjudgedModel


class Move(NamedTuple):
    """The transitions of some states by a draw.

    - ``source``, ``target``: the distinct states before and after the draw, shape (S,)
    - ``level``: the level assigned to the document
    - ``chance``: the probability of the transition, shape (n, S)
    """

    source: Ints
    target: Ints
    level: int
    chance: Floats


@dataclass(frozen=True, eq=False)
class States:
    """Counts of documents on the levels that may have too few documents, along one axis.

    - ``available``: True if a level has a document left in a state, shape (S, L)
    - ``step``: the difference of the states before and after each level is assigned, shape (L,); 0 for unlimited levels
    """

    available: Bools
    step: Ints

    def __len__(self) -> int:
        return len(self.available)

    def assignment_prob(self, prob: Floats) -> Floats:
        """Probability that each level is assigned from each state, shape (..., S, L), for draws of shape (..., L)."""
        assigned = np.zeros((*prob.shape[:-1], *self.available.shape))
        carried = np.zeros((*prob.shape[:-1], len(self)))
        for level in range(prob.shape[-1] - 1, -1, -1):
            carried = carried + prob[..., None, level]
            free = self.available[:, level]
            assigned[..., level] = np.where(free, carried, 0.0)
            carried = np.where(free, 0.0, carried)
        return assigned


def states(caps: Ints, n_unjudged: int) -> States:
    """The states of topics with the same caps, shape (L,)."""
    binding = np.flatnonzero((caps > 0) & (caps < n_unjudged))
    shape = tuple(int(caps[level]) + 1 for level in binding)
    total = int(np.prod(shape, dtype=np.int64))
    counts = np.indices(shape).reshape(len(binding), total)
    available = np.broadcast_to(caps > 0, (total, len(caps))).copy()
    step = np.zeros(len(caps), dtype=np.int64)
    for axis, level in enumerate(binding):
        available[:, level] = counts[axis] < caps[level]
        step[level] = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    return States(available, step)


class AssignedWalk:
    """Independent draws; states are the counts of documents on the levels that may have too few documents.

    - ``model``: topics with the same caps and number of documents
    """

    def __init__(self, model: UnjudgedModel) -> None:
        self._attainable_prob, self._caps = model.attainable_prob, model.caps[0]
        self._states = states(self._caps, int(model.n_unjudged[0]))
        self._assignment_prob = self._states.assignment_prob(self._attainable_prob[:, 0])

    def __len__(self) -> int:
        return len(self._states)

    def moves(self, document: int) -> Iterator[Move]:
        """Yield the transitions by the draw of a document."""
        if document and self._attainable_prob.shape[1] > 1:
            self._assignment_prob = self._states.assignment_prob(self._attainable_prob[:, document])
        for level in np.flatnonzero(self._caps > 0).tolist():
            source = np.flatnonzero(self._states.available[:, level])
            yield Move(source, source + self._states.step[level], level, self._assignment_prob[:, source, level])


class DrawnWalk:
    """Draws from an urn; states are the counts of drawn levels, which determine the levels without documents left.

    - ``model``: topics with the same caps and number of documents and with shared priors
    """

    def __init__(self, model: UnjudgedModel) -> None:
        self._prob, self._caps = model.attainable_prob, model.caps[0]
        self._strength = model.strength
        self._levels = drawn_levels(model)
        side = int(model.n_unjudged[0]) + 1
        n_free = len(self._levels) - 1
        # The count of the first level is the number of draws less all other counts.
        counts = np.indices((side,) * n_free).reshape(n_free, side**n_free)
        within = np.flatnonzero(counts.sum(axis=0) < side)
        self._counts = counts[:, within].T
        self._strides = np.append(0, side ** np.arange(n_free - 1, -1, -1))
        self._cells = within
        self._states = np.zeros(side**n_free, dtype=np.int64)
        self._states[within] = np.arange(len(within))

    def __len__(self) -> int:
        return len(self._cells)

    def moves(self, document: int) -> Iterator[Move]:
        """Yield the transitions by the draw of a document."""
        others = self._counts.sum(axis=1)
        reached = np.flatnonzero(others <= document)
        counts = np.column_stack([document - others, self._counts])[reached]
        drawn = next_draw(self._prob[:, :, self._levels], self._strength, counts, document)
        assigned = self._assigned_levels(counts)
        for place, stride in enumerate(self._strides.tolist()):
            for level in np.unique(assigned[:, place]).tolist():
                among = np.flatnonzero(assigned[:, place] == level)
                source = reached[among]
                yield Move(source, self._states[self._cells[source] + stride], level, drawn[:, among, place])

    def _assigned_levels(self, counts: Ints) -> Ints:
        """The level assigned to a draw of each level in each state, shape (S, n_drawn)."""
        arriving = np.zeros((len(counts), len(self._caps)), dtype=np.int64)
        arriving[:, self._levels] = counts
        free = np.ones(arriving.shape, dtype=bool)
        for level in range(len(self._caps) - 1, 0, -1):
            over = np.maximum(arriving[:, level] - self._caps[level], 0)
            arriving[:, level - 1] += over
            free[:, level] = arriving[:, level] < self._caps[level]
        below = np.maximum.accumulate(np.where(free, np.arange(len(self._caps)), 0), axis=1)
        return below[:, self._levels]


def drawn_levels(model: UnjudgedModel) -> Ints:
    """The levels that documents of some topic draw."""
    return np.flatnonzero((model.attainable_prob > 0).any(axis=(0, 1)))


def n_walk_states(model: UnjudgedModel) -> float:
    """The number of states of :func:`walk`; infinite if there is no such walk."""
    n_unjudged = int(model.n_unjudged[0])
    if not model.depends[0]:
        caps = model.caps[0]
        return float(np.prod(caps[(caps > 0) & (caps < n_unjudged)] + 1.0))
    n_free = len(drawn_levels(model)) - 1
    return float(comb(n_unjudged + n_free, n_free)) if model.is_shared else float("inf")


def walk(model: UnjudgedModel) -> AssignedWalk | DrawnWalk:
    """The draws of topics with the same caps and number of documents, either all independent or all dependent."""
    return DrawnWalk(model) if model.depends[0] else AssignedWalk(model)


@lru_cache(maxsize=256)
def layer(n_drawn: int, n_levels: int) -> Ints:
    """All counts of levels that sum to ``n_drawn``, in lexicographic order, shape (S, n_levels)."""
    places = list(combinations(range(n_drawn + n_levels - 1), n_levels - 1))
    bars = np.array(places, dtype=np.int64).reshape(len(places), n_levels - 1)
    ends = np.pad(bars, ((0, 0), (1, 0)), constant_values=-1)
    return np.diff(ends, axis=1, append=n_drawn + n_levels - 1) - 1


@lru_cache(maxsize=256)
def successors(n_drawn: int, n_levels: int) -> tuple[Ints, ...]:
    """The position in the next layer of counts with one more draw of each level, each of shape (S,)."""
    after = layer(n_drawn + 1, n_levels)
    base = (n_drawn + 2) ** np.arange(n_levels - 1, -1, -1)
    # In lexicographic order the counts, read as digits of a number, increase.
    return tuple(
        np.searchsorted(after @ base, (layer(n_drawn, n_levels) + unit) @ base)
        for unit in np.eye(n_levels, dtype=np.int64)
    )


# Sequences that are scored together: a score that is not a sum may build a ranking for each.
BLOCK_SEQUENCES = 1 << 14
# The largest number of sequences of a topic in a table with other topics; beyond, two halves are faster.
MAX_TOGETHER = 1000
# The largest number of cells of a table: topics times sequences.
MAX_TABLE_CELLS = 1 << 18
# The number of documents of a topic's table: a padding document of weight 0 changes no value.
_PADDED_COUNTS = np.array([0, 2, 2, 4, 4, 6, 6])
# Ratios of weights with a larger denominator count as irrational.
_MAX_DENOMINATOR = 10


def exact_distributions(model: UnjudgedModel) -> list[ScoreDistribution]:
    """The exact distribution of each topic; callers limit the number of sequences."""
    distributions: dict[int, ScoreDistribution] = {}
    listed = is_enumerated(model)
    bound = model.binds & ~listed
    many = ~listed & ~bound & (model.n_paths() > MAX_TOGETHER)
    for topic in np.flatnonzero(listed).tolist():
        distributions[topic] = enumerated_distribution(model, topic)
    for topic in np.flatnonzero(bound).tolist():
        distributions[topic] = _capped_distribution(model.select(slice(topic, topic + 1)))
    for topic in np.flatnonzero(many).tolist():
        distributions[topic] = _convolution(model.select(slice(topic, topic + 1)))
    for topics in _tables(model, np.flatnonzero(~listed & ~bound & ~many)):
        values, probs, cumulative = _together(model.select(topics))
        for row, topic in enumerate(topics.tolist()):
            distributions[topic] = Atoms(values[row], probs[row], cumulative[row])
    return [distributions[topic] for topic in range(len(model))]


def is_enumerated(model: UnjudgedModel) -> Bools:
    """Topics whose sequences must all be enumerated, shape (n,): scores or draws that do not factorise."""
    if model.value is not None:
        return np.ones(len(model), dtype=bool)
    return model.depends & (model.binds | (not model.is_shared))


def sampled_distribution(model: UnjudgedModel, topic: int, uniforms: Floats, *, legacy: bool = False) -> Sample:
    """The empirical distribution of draws of the score of one topic.

    - ``model``: the model of unjudged documents
    - ``topic``: the position of the topic
    - ``uniforms``: numbers in [0, 1), shape (n_draws, n_unjudged)
    - ``legacy``: see :class:`vbterrier.kernels.grades.distributions.Sample`
    """
    scores = np.sort(sampled_scores(model, topic, uniforms))
    n_draws = len(scores)
    share = np.full(n_draws, 1.0 / n_draws)
    return Sample(scores, share, np.arange(1, n_draws + 1) / n_draws, method="mc", legacy=legacy)


def sampled_scores(model: UnjudgedModel, topic: int, uniforms: Floats) -> Floats:
    """The scores of one topic for given uniform numbers of its documents.

    A document draws the level that is the quantile of its prior at its number.

    - ``model``: the model of unjudged documents
    - ``topic``: the position of the topic
    - ``uniforms``: numbers in [0, 1), documents in drawing order, shape (n_draws, n_unjudged)

    Returns shape (n_draws,).
    """
    n_draws, n_unjudged = uniforms.shape
    ends = np.cumsum(model.attainable_prob[topic, : max(n_unjudged, 1)], axis=1)
    scores = np.empty(n_draws)
    for first in range(0, n_draws, BLOCK_SEQUENCES):
        block = slice(first, first + BLOCK_SEQUENCES)
        drawn = np.zeros_like(uniforms[block], dtype=_small(ends.shape[1]))
        for level in range(ends.shape[1] - 1):
            drawn += (uniforms[block] >= ends[:, level]).view(np.uint8)
        scores[block] = _score(model, topic, drawn)
    return scores


def topic_scores(model: UnjudgedModel, topic: int, drawn: Ints) -> Floats:
    """The scores of one topic, shape (m,), for drawn levels of shape (m, n_unjudged)."""
    blocks = range(0, len(drawn), BLOCK_SEQUENCES)
    return np.concatenate([_score(model, topic, drawn[first : first + BLOCK_SEQUENCES]) for first in blocks])


def _score(model: UnjudgedModel, topic: int, drawn: Ints) -> Floats:
    assigned = assign_levels(drawn, model.caps[topic])
    if model.value is not None:
        return model.value(topic, assigned)
    scores = np.full(len(drawn), model.base[topic])
    for document in range(drawn.shape[1]):
        scores += (model.weights[topic, document] * model.gain).take(assigned[:, document])
    return scores


def assign_levels(drawn: Ints, caps: Ints) -> Ints:
    """Move draws down from levels with too few documents.

    Of the documents that draw a level or are moved to it, the first ``caps[level]`` keep it.

    - ``drawn``: the level of each document in drawing order, shape (m, u)
    - ``caps``: the largest number of documents on each level, shape (L,); level 0 is unlimited

    Returns shape (m, u).
    """
    n_documents = drawn.shape[1]
    small = _small(max(len(caps), n_documents))
    # One contiguous array per document.
    assigned = np.array(drawn.T, dtype=small, order="C")
    for level in range(len(caps) - 1, 0, -1):
        if caps[level] < n_documents:
            n_here = np.zeros(len(drawn), dtype=small)
            for place in range(n_documents):
                # Views need no conversion in sums of bytes.
                here = (assigned[place] == level).view(np.uint8)
                n_here += here
                assigned[place] -= here & (n_here > caps[level]).view(np.uint8)
    return assigned.T


def enumerated_distribution(model: UnjudgedModel, topic: int) -> Atoms:
    """The exact distribution of one topic by enumeration of all sequences of drawn levels."""
    n_unjudged = int(model.n_unjudged[topic])
    prob = model.attainable_prob[topic, : max(n_unjudged, 1)]
    levels = np.flatnonzero((prob > 0).any(axis=0))
    places = sequences(len(levels), n_unjudged)
    probs = _probs(model, topic, prob[:, levels], places)
    if not probs.all():
        happens = np.flatnonzero(probs)
        places, probs = places[happens], probs[happens]
    drawn = places if len(levels) == prob.shape[1] else levels.astype(places.dtype)[places]
    return atoms_from_unsorted(topic_scores(model, topic, drawn), probs)


def sequences(n_levels: int, n_documents: int) -> Ints:
    """All sequences of levels in lexicographic order, shape (n_levels^n_documents, n_documents)."""
    if n_levels == 1:
        # Of any length: arrays have at most 64 dimensions.
        return np.zeros((1, n_documents), dtype=np.uint8)
    by_document = np.indices((n_levels,) * n_documents, dtype=_small(n_levels))
    return by_document.reshape(n_documents, n_levels**n_documents).T


def _small(largest: int) -> type[np.integer[Any]]:
    """The type of integers up to a number of documents or levels: bytes are copied and compared faster."""
    return np.uint8 if largest < np.iinfo(np.uint8).max else np.int64


def _probs(model: UnjudgedModel, topic: int, prob: Floats, places: Ints) -> Floats:
    """The probability of each sequence of one topic, for a prior of shape (1 or u, s)."""
    n_unjudged = places.shape[1]
    strength = model.topic_strength(topic)
    if strength is None or model.is_shared:
        return sequence_probs(prob[None], n_unjudged, None if strength is None else np.array([strength])).reshape(-1)
    # Intervals share their ends, so that rounding makes no intervals of documents with equal priors overlap.
    ends = 1.0 - np.cumsum(np.pad(prob, ((0, 0), (0, 1)))[:, ::-1], axis=1)[:, ::-1]
    documents = np.arange(n_unjudged)
    low, high = ends[documents, places], ends[documents, places + 1]
    return mixed_probs(low, high, strength)


def sequence_probs(prob: Floats, n_documents: int, strength: Floats | None) -> Floats:
    """Probability of every sequence of levels, in lexicographic order.

    - ``prob``: the prior, shape (n, 1, L), or (n, n_documents, L) for independent draws
    - ``n_documents``: u, the length of a sequence
    - ``strength``: s of each topic, shape (n,); ``None`` for independent draws

    Returns shape (n, L^u).
    """
    n, _, n_levels = prob.shape
    probs, seen = np.ones((n, 1)), np.zeros((1, n_levels))
    for document in range(n_documents):
        drawn = prob[:, document : document + 1] if prob.shape[1] > 1 else next_draw(prob, strength, seen, document)
        probs = (probs[:, :, None] * drawn).reshape(n, -1)
        # Behind the last document, no draw depends on them: they would be the longest array.
        if strength is not None and document + 1 < n_documents:
            seen = (seen[:, None, :] + np.eye(n_levels)).reshape(-1, n_levels)
    return probs


def mixed_probs(low: Floats, high: Floats, strength: float) -> Floats:
    """Probability that the numbers of all documents, drawn from an urn, lie in given intervals.

    Documents with the same number form a block: ``P = Σ_partitions Π_blocks P(block)·|common interval|``. The sum over
    partitions is computed recursively over sets, by the block of the first document.

    - ``low``, ``high``: the ends of the interval of each document, documents in drawing order, shape (m, u)
    - ``strength``: s

    Returns shape (m,).
    """
    m, n_documents = low.shape
    # By sets of documents, as bits: the common interval, and the probability that the set is a block.
    start, stop, chance = [np.zeros(m)], [np.ones(m)], [1.0]
    for block in range(1, 1 << n_documents):
        last = block.bit_length() - 1
        rest = block ^ (1 << last)
        start.append(np.maximum(start[rest], low[:, last]))
        stop.append(np.minimum(stop[rest], high[:, last]))
        chance.append(chance[rest] * rest.bit_count() / (strength + last) if rest else 1 / (1 + last / strength))
    within = [np.maximum(high - low, 0.0) * share for low, high, share in zip(start, stop, chance, strict=True)]
    total = {0: np.ones(m)}
    everyone = (1 << n_documents) - 1
    # No remaining set contains the first document.
    for members in (*range(2, everyone, 2), everyone):
        first = members & -members
        others = members ^ first
        joining, total[members] = others, within[first] * total[others]
        while joining:
            total[members] += within[first | joining] * total[others ^ joining]
            joining = (joining - 1) & others
    return total[everyone]


def _tables(model: UnjudgedModel, topics: Ints) -> Iterator[Ints]:
    """Group topics whose sequences share a table."""
    counts = model.n_unjudged[topics]
    width = np.where(counts < len(_PADDED_COUNTS), _PADDED_COUNTS[np.minimum(counts, len(_PADDED_COUNTS) - 1)], counts)
    paths = model.n_active[topics] ** width.astype(np.float64)
    crowded = paths > MAX_TOGETHER
    width = np.where(crowded, counts, width)
    kinds = np.column_stack([width, np.where(crowded, model.n_active[topics], 0)])
    _, member = np.unique(kinds, axis=0, return_inverse=True)
    for kind in range(int(member.max(initial=-1)) + 1):
        alike = np.flatnonzero(member.reshape(-1) == kind)
        n_together = max(int(MAX_TABLE_CELLS // paths[alike].max()), 1)
        for first in range(0, len(alike), n_together):
            yield topics[alike[first : first + n_together]]


def active(model: UnjudgedModel) -> tuple[Floats, Floats, Ints]:
    """Gains (n, s), probabilities (n, 1 or u, s) and caps (n, s), first of levels that documents can be assigned."""
    n_active = int(model.n_active.max())
    chosen = np.argsort(model.caps == 0, axis=1, kind="stable")[:, :n_active]
    prob = np.take_along_axis(model.attainable_prob, chosen[:, None, :], axis=2)
    return model.gain[chosen], prob, np.take_along_axis(model.caps, chosen, axis=1)


def _values(base: Floats, weights: Floats, gain: Floats) -> Floats:
    """The score of every sequence, in lexicographic order, shape (n, s^u)."""
    values = base[:, None]
    for document in range(weights.shape[1]):
        values = (values[:, :, None] + (weights[:, document, None] * gain)[:, None, :]).reshape(len(base), -1)
    return values


def _together(model: UnjudgedModel) -> tuple[Floats, Floats, Floats]:
    """Sorted values, probabilities and cumulative probabilities of the topics of a table, shape (n, m)."""
    gain, prob, _ = active(model)
    width = int(model.n_unjudged.max(initial=0))
    values = _values(model.base, model.weights[:, :width], gain)
    probs = sequence_probs(prob, width, model.strength if model.depends.any() else None)
    order = np.argsort(values, axis=1, kind="stable")
    values, probs = np.take_along_axis(values, order, axis=1), np.take_along_axis(probs, order, axis=1)
    return values, probs, np.cumsum(probs, axis=1)


def split_documents(weights: Floats) -> tuple[Ints, Ints, bool]:
    """Divide documents into two halves of similar size such that different pairs of values have different sums.

    Documents whose weights have a rational ratio, as the discounts 1/log2(2) and 1/log2(4), stay in one half; weights
    with an irrational ratio may be separated. If most ratios are rational, as for RBP and precision, documents are
    divided regardless, and pairs may have equal sums.

    Returns (first, second, apart): The positions of either half, and False if pairs may have equal sums.
    """
    kin = np.arange(len(weights))
    for place in range(len(weights)):
        with np.errstate(invalid="ignore", divide="ignore"):
            # A weight of 0 belongs to every family: its ratio is 0, or NaN to another 0.
            ratio = weights[place + 1 :, None] / weights[place] * np.arange(1, _MAX_DENOMINATOR + 1)
        close = (np.abs(ratio - np.round(ratio)) < WHOLE_ROUNDING).any(axis=1)
        kin[place + 1 :][close] = kin[place]
    halves: tuple[list[int], list[int]] = ([], [])
    for members in sorted((np.flatnonzero(kin == family) for family in np.unique(kin)), key=len, reverse=True):
        min(halves, key=len).extend(members.tolist())
    if max(map(len, halves)) > len(weights) // 2 + 1:
        places = np.arange(len(weights))
        return places[::2], places[1::2], False
    return np.array(sorted(halves[0]), dtype=np.int64), np.array(sorted(halves[1]), dtype=np.int64), True


def _convolution(model: UnjudgedModel) -> Convolution | Pairs:
    gain, prob, _ = active(model)
    weights = model.weights[:, : int(model.n_unjudged[0])]
    first, second, apart = split_documents(weights[0])
    values = [_values(base, weights[:, half], gain)[0] for half, base in ((first, model.base), (second, np.zeros(1)))]
    strength = model.topic_strength(0)
    if strength is not None:
        (left, at_left), (right, at_right) = (_counts(gain.shape[1], len(half)) for half in (first, second))
        joint = joint_probs(prob[0, 0], strength, left, right)[at_left][:, at_right]
        return _merged_pairs(values[0], values[1], joint, apart=apart)
    drawn = (prob if prob.shape[1] == 1 else prob[:, half] for half in (first, second))
    probs = [sequence_probs(chance, len(half), None)[0] for chance, half in zip(drawn, (first, second), strict=True)]
    if not apart:
        return _merged_pairs(values[0], values[1], np.multiply.outer(probs[0], probs[1]), apart=False)
    return Convolution(_rising(values[0], probs[0]), _rising(values[1], probs[1]))


def _rising(values: Floats, probs: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(values, kind="stable")
    return merge_atoms(values[order], probs[order])


@lru_cache(maxsize=64)
def _counts(n_levels: int, n_documents: int) -> tuple[Ints, Ints]:
    """The distinct counts of levels in sequences, (c, n_levels), and the position of each sequence's counts in them."""
    counts = (sequences(n_levels, n_documents)[:, :, None] == np.arange(n_levels)).sum(axis=1)
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    return distinct, place.reshape(-1)


def _merged_pairs(left: Floats, right: Floats, probs: Floats, *, apart: bool) -> Pairs:
    """Pairs of increasing values from pairs of sequences, equal values merged."""
    for axis, values in enumerate((left, right)):
        order = np.argsort(values, kind="stable")
        first = np.flatnonzero(np.diff(values[order], prepend=-np.inf) > ROUNDING)
        probs = np.add.reduceat(probs.take(order, axis=axis), first, axis=axis)
        if axis:
            right = values[order][first]
        else:
            left = values[order][first]
    return Pairs(left, right, probs, apart)


def _capped_distribution(model: UnjudgedModel) -> Atoms:
    """Enumerate the sequences of levels assigned to the documents of one topic, with their states."""
    n_unjudged, caps = int(model.n_unjudged[0]), model.caps[0]
    space = states(caps, n_unjudged)
    at = np.zeros(1, dtype=np.int64)
    values, probs = model.base.copy(), np.ones(1)
    for document in range(n_unjudged):
        drawn = model.attainable_prob[0, document if model.attainable_prob.shape[1] > 1 else 0]
        assigned = space.assignment_prob(drawn)[at] * probs[:, None]
        path, level = np.nonzero(assigned)
        values = values[path] + model.weights[0, document] * model.gain[level]
        at, probs = at[path] + space.step[level], assigned[path, level]
    return atoms_from_unsorted(values, probs)
