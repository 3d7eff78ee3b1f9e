"""Exact and sampled distributions over sequences of grades."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.distributions import SAME, Atoms, Halves, Pairs, Sample, atoms_of, merged
from vbterrier.kernels.grades.model import joint_probs, next_draw
from vbterrier.kernels.grades.states import states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.kernels.grades.model import UnjudgedModel


# Sequences that are scored together: a score that is no sum may lay out whole rankings for each.
BLOCK = 1 << 14


def sampled_law(problem: UnjudgedModel, topic: int, uniforms: Floats, *, legacy: bool = False) -> Sample:
    """Draw the scores of one topic.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    uniforms
        Numbers in [0, 1), shape (n_draws, n_unjudged): they decide every draw.
    legacy
        See :class:`vbterrier.kernels.grades.distributions.Sample`.
    """
    scores = np.sort(scores_of(problem, topic, uniforms))
    n_draws = len(scores)
    share = np.full(n_draws, 1.0 / n_draws)
    return Sample(scores, share, np.arange(1, n_draws + 1) / n_draws, method="mc", legacy=legacy)


def scores_of(problem: UnjudgedModel, topic: int, uniforms: Floats) -> Floats:
    """The scores of one topic whose documents have given numbers, in the order of the numbers.

    A document's grade is where its number falls in the CDF of its prior.

    Parameters
    ----------
    problem
        The process.
    topic
        Which of its topics.
    uniforms
        Numbers in [0, 1), documents in visiting order, shape (n_draws, n_unjudged).

    Returns
    -------
    numpy.ndarray
        Shape (n_draws,).
    """
    n_draws, n_unjudged = uniforms.shape
    ends = np.cumsum(problem.landed[topic, : max(n_unjudged, 1)], axis=1)
    scores = np.empty(n_draws)
    for first in range(0, n_draws, BLOCK):
        block = slice(first, first + BLOCK)
        drawn = np.zeros(uniforms[block].shape, dtype=np.int64)
        for level in range(ends.shape[1] - 1):
            drawn += uniforms[block] >= ends[:, level]
        scores[block] = _score(problem, topic, drawn)
    return scores


def scored(problem: UnjudgedModel, topic: int, drawn: Ints) -> Floats:
    """The scores of one topic whose documents drew some levels, shape (m,) for levels of shape (m, n_unjudged)."""
    blocks = range(0, len(drawn), BLOCK)
    return np.concatenate([_score(problem, topic, drawn[first : first + BLOCK]) for first in blocks])


def _score(problem: UnjudgedModel, topic: int, drawn: Ints) -> Floats:
    landed = land(drawn, problem.caps[topic])
    if problem.value is not None:
        return problem.value(topic, landed)
    scores = np.full(len(drawn), problem.base[topic])
    for document in range(drawn.shape[1]):
        scores += problem.weights[topic, document] * problem.gain[landed[:, document]]
    return scores


def land(drawn: Ints, caps: Ints) -> Ints:
    """Pass draws down from levels that have run out.

    Of the documents that arrive at a level, drawn there or passed down, the first as many as it has places stay.

    Parameters
    ----------
    drawn
        The level of each document in visiting order, shape (m, u).
    caps
        How many documents each level takes, shape (L,); level 0 takes all.

    Returns
    -------
    numpy.ndarray
        Shape (m, u).

    >>> land(np.array([[2, 2, 1, 2]]), np.array([4, 1, 1])).tolist()
    [[2, 1, 0, 0]]
    """
    landed = drawn.copy()
    for level in range(len(caps) - 1, 0, -1):
        if caps[level] < drawn.shape[1]:
            here = landed == level
            landed -= here & (np.cumsum(here, axis=1) > caps[level])
    return landed


def listed_law(problem: UnjudgedModel, topic: int) -> Atoms:
    """The exact distribution of one topic, from a list of all sequences of drawn levels."""
    n_unjudged = int(problem.n_unjudged[topic])
    prob = problem.landed[topic, : max(n_unjudged, 1)]
    levels = np.flatnonzero((prob > 0).any(axis=0))
    places = sequences(len(levels), n_unjudged)
    probs = _probs(problem, topic, prob[:, levels], places)
    happens = np.flatnonzero(probs)
    return atoms_of(scored(problem, topic, levels[places[happens]]), probs[happens])


def sequences(n_levels: int, n_documents: int) -> Ints:
    """All sequences of levels, the last document's changing fastest, shape (n_levels^n_documents, n_documents).

    >>> sequences(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    stride = n_levels ** np.arange(n_documents - 1, -1, -1)
    return np.arange(n_levels**n_documents)[:, None] // stride % n_levels


def _probs(problem: UnjudgedModel, topic: int, prob: Floats, places: Ints) -> Floats:
    """The probability of each sequence of one topic, for a prior of shape (1 or u, s)."""
    n_unjudged = places.shape[1]
    strength = problem.strength_of(topic)
    if strength is None or problem.is_shared:
        return sequence_probs(prob[None], n_unjudged, None if strength is None else np.array([strength])).reshape(-1)
    # One array of ends for both sides, summed from above: documents of equal priors meet in no sliver of rounding.
    ends = 1.0 - np.cumsum(np.pad(prob, ((0, 0), (0, 1)))[:, ::-1], axis=1)[:, ::-1]
    documents = np.arange(n_unjudged)
    low, high = ends[documents, places], ends[documents, places + 1]
    return mixed_probs(low, high, strength)


def sequence_probs(prob: Floats, n_documents: int, strength: Floats | None) -> Floats:
    """Probability of every sequence of levels, the last document's level changing fastest.

    Parameters
    ----------
    prob
        The prior, shape (n, 1, L), or (n, n_documents, L) where draws are independent.
    n_documents
        u, the length of a sequence.
    strength
        s of each topic, shape (n,); ``None`` for independent draws.

    Returns
    -------
    numpy.ndarray
        Shape (n, L^u).
    """
    n, _, n_levels = prob.shape
    probs, seen = np.ones((n, 1)), np.zeros((1, n_levels))
    for document in range(n_documents):
        drawn = prob[:, document : document + 1] if prob.shape[1] > 1 else next_draw(prob, strength, seen, document)
        probs = (probs[:, :, None] * drawn).reshape(n, -1)
        if strength is not None:
            seen = (seen[:, None, :] + np.eye(n_levels)).reshape(-1, n_levels)
    return probs


def mixed_probs(low: Floats, high: Floats, strength: float) -> Floats:
    """Probability that every document's number falls into its interval, numbers drawn from the urn.

    Documents that share their number form a block: ``P = Σ_partitions Π_blocks P(block)·|common interval|``. The sum
    runs over sets instead of partitions: the block of the first document is split off, and the rest is such a sum.

    Parameters
    ----------
    low, high
        The ends of the interval of each document, documents in visiting order, shape (m, u).
    strength
        s.

    Returns
    -------
    numpy.ndarray
        Shape (m,).
    """
    m, n_documents = low.shape
    # By sets of documents, as bits: the common interval, and the chance that the urn makes the set a block.
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
    # The first document is in nobody's rest.
    for members in (*range(2, everyone, 2), everyone):
        first = members & -members
        others = members ^ first
        joining, total[members] = others, within[first] * total[others]
        while joining:
            total[members] += within[first | joining] * total[others ^ joining]
            joining = (joining - 1) & others
    return total[everyone]


# Sequences of one topic that are enumerated together with other topics'; beyond, two halves are faster.
MAX_TOGETHER = 1000
# Topics times sequences of one table.
MOST_CELLS = 1 << 18
# Topics with 1 and 2 documents (3 and 4, 5 and 6) share a table: a document of weight 0 changes no value.
_TABLES = np.array([0, 2, 2, 4, 4, 6, 6])
_MAX_DENOMINATOR = 10
_WHOLE = 1e-9


def exact_laws(problem: UnjudgedModel) -> list[ScoreDistribution]:
    """The exact distribution of each topic; the caller has seen to it that the numbers of sequences are bearable."""
    laws: dict[int, ScoreDistribution] = {}
    listed = is_listed(problem)
    bound = problem.binds & ~listed
    many = ~listed & ~bound & (problem.n_paths() > MAX_TOGETHER)
    for topic in np.flatnonzero(listed).tolist():
        laws[topic] = listed_law(problem, topic)
    for topic in np.flatnonzero(bound).tolist():
        laws[topic] = _constrained(problem.select(slice(topic, topic + 1)))
    for topic in np.flatnonzero(many).tolist():
        laws[topic] = _in_halves(problem.select(slice(topic, topic + 1)))
    for topics in _tables(problem, np.flatnonzero(~listed & ~bound & ~many)):
        values, probs, cumulative = _together(problem.select(topics))
        for row, topic in enumerate(topics.tolist()):
            laws[topic] = Atoms(values[row], probs[row], cumulative[row])
    return [laws[topic] for topic in range(len(problem))]


def is_listed(problem: UnjudgedModel) -> Bools:
    """Which topics need a list of all their sequences, shape (n,): scores or draws that do not come apart."""
    if problem.value is not None:
        return np.ones(len(problem), dtype=bool)
    return problem.depends & (problem.binds | (not problem.is_shared))


def _tables(problem: UnjudgedModel, topics: Ints) -> Iterator[Ints]:
    """Group topics whose sequences are enumerated in one table."""
    counts = problem.n_unjudged[topics]
    width = np.where(counts < len(_TABLES), _TABLES[np.minimum(counts, len(_TABLES) - 1)], counts)
    paths = problem.n_active[topics] ** width.astype(np.float64)
    crowded = paths > MAX_TOGETHER
    width = np.where(crowded, counts, width)
    kinds = np.column_stack([width, np.where(crowded, problem.n_active[topics], 0)])
    _, member = np.unique(kinds, axis=0, return_inverse=True)
    for kind in range(int(member.max(initial=-1)) + 1):
        alike = np.flatnonzero(member.reshape(-1) == kind)
        n_together = max(int(MOST_CELLS // paths[alike].max()), 1)
        for first in range(0, len(alike), n_together):
            yield topics[alike[first : first + n_together]]


def _active(problem: UnjudgedModel) -> tuple[Floats, Floats]:
    """Gains (n, s) and probabilities (n, 1 or u, s) of the levels that can be landed on, those first."""
    n_active = int(problem.n_active.max())
    chosen = np.argsort(problem.caps == 0, axis=1, kind="stable")[:, :n_active]
    return problem.gain[chosen], np.take_along_axis(problem.landed, chosen[:, None, :], axis=2)


def _values(base: Floats, weights: Floats, gain: Floats) -> Floats:
    """The score of every sequence, the last document's level changing fastest, shape (n, s^u)."""
    values = base[:, None]
    for document in range(weights.shape[1]):
        values = (values[:, :, None] + (weights[:, document, None] * gain)[:, None, :]).reshape(len(base), -1)
    return values


def _together(problem: UnjudgedModel) -> tuple[Floats, Floats, Floats]:
    """Sorted values, probabilities and their running sums for topics of one table, shape (n, m)."""
    gain, prob = _active(problem)
    width = int(problem.n_unjudged.max(initial=0))
    values = _values(problem.base, problem.weights[:, :width], gain)
    probs = sequence_probs(prob, width, problem.strength if problem.depends.any() else None)
    order = np.argsort(values, axis=1, kind="stable")
    values, probs = np.take_along_axis(values, order, axis=1), np.take_along_axis(probs, order, axis=1)
    return values, probs, np.cumsum(probs, axis=1)


def split(weights: Floats) -> tuple[Ints, Ints, bool]:
    """Cut documents into two halves of like size so that values of one half cannot make up for those of the other.

    Discounts such as 1/log2(2) and 1/log2(4) are whole multiples of each other, and stay in one half; those whose
    ratio is irrational may part. Where most are of one kin, as those of RBP and precision, kin parts too.

    Returns
    -------
    (first, second, apart)
        The places of either half, and whether they are of different kin.

    >>> [half.tolist() for half in split(np.array([1.0, 0.6309, 0.5]))[:2]]
    [[0, 2], [1]]
    >>> [half.tolist() for half in split(np.array([1.0, 0.5, 0.25]))[:2]]
    [[0, 2], [1]]
    """
    kin = np.arange(len(weights))
    for place in range(len(weights)):
        with np.errstate(invalid="ignore", divide="ignore"):
            # What weighs nothing is kin to all, by a ratio of 0, and harms nothing among its like, by one of NaN.
            ratio = weights[place + 1 :, None] / weights[place] * np.arange(1, _MAX_DENOMINATOR + 1)
        close = (np.abs(ratio - np.round(ratio)) < _WHOLE).any(axis=1)
        kin[place + 1 :][close] = kin[place]
    halves: tuple[list[int], list[int]] = ([], [])
    for members in sorted((np.flatnonzero(kin == family) for family in np.unique(kin)), key=len, reverse=True):
        min(halves, key=len).extend(members.tolist())
    if max(map(len, halves)) > len(weights) // 2 + 1:
        places = np.arange(len(weights))
        return places[::2], places[1::2], False
    return np.array(sorted(halves[0]), dtype=np.int64), np.array(sorted(halves[1]), dtype=np.int64), True


def _in_halves(problem: UnjudgedModel) -> Halves | Pairs:
    gain, prob = _active(problem)
    weights = problem.weights[:, : int(problem.n_unjudged[0])]
    first, second, apart = split(weights[0])
    values = [_values(base, weights[:, half], gain)[0] for half, base in ((first, problem.base), (second, np.zeros(1)))]
    strength = problem.strength_of(0)
    if strength is not None:
        (left, at_left), (right, at_right) = (_counts(gain.shape[1], len(half)) for half in (first, second))
        joint = joint_probs(prob[0, 0], strength, left, right)[at_left][:, at_right]
        return _joined(values[0], values[1], joint, apart=apart)
    drawn = (prob if prob.shape[1] == 1 else prob[:, half] for half in (first, second))
    probs = [sequence_probs(chance, len(half), None)[0] for chance, half in zip(drawn, (first, second), strict=True)]
    if not apart:
        return _joined(values[0], values[1], np.multiply.outer(probs[0], probs[1]), apart=False)
    return Halves(_rising(values[0], probs[0]), _rising(values[1], probs[1]))


def _rising(values: Floats, probs: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(values, kind="stable")
    return merged(values[order], probs[order])


@lru_cache(maxsize=64)
def _counts(n_levels: int, n_documents: int) -> tuple[Ints, Ints]:
    """How often each level is in a sequence: all that there are, (c, n_levels), and which each sequence has."""
    counts = (sequences(n_levels, n_documents)[:, :, None] == np.arange(n_levels)).sum(axis=1)
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    return distinct, place.reshape(-1)


def _joined(left: Floats, right: Floats, probs: Floats, *, apart: bool) -> Pairs:
    """Pairs of sequences as pairs of rising values, equal values made one."""
    for axis, values in enumerate((left, right)):
        order = np.argsort(values, kind="stable")
        first = np.flatnonzero(np.diff(values[order], prepend=-np.inf) > SAME)
        probs = np.add.reduceat(probs.take(order, axis=axis), first, axis=axis)
        if axis:
            right = values[order][first]
        else:
            left = values[order][first]
    return Pairs(left, right, probs, apart)


def _constrained(problem: UnjudgedModel) -> Atoms:
    """Follow every sequence of landings of one topic, document by document, with the state of what has run out."""
    n_unjudged, caps = int(problem.n_unjudged[0]), problem.caps[0]
    space = states(caps, n_unjudged)
    at = np.zeros(1, dtype=np.int64)
    values, probs = problem.base.copy(), np.ones(1)
    for document in range(n_unjudged):
        drawn = problem.landed[0, document if problem.landed.shape[1] > 1 else 0]
        land = space.landing(drawn)[at] * probs[:, None]
        path, level = np.nonzero(land)
        values = values[path] + problem.weights[0, document] * problem.gain[level]
        at, probs = at[path] + space.step[level], land[path, level]
    return atoms_of(values, probs)
