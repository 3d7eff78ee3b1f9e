"""Bounds for nDCG@k against a loop over ranks and all judgments of small problems."""

import functools
import itertools

import numpy as np
import pytest

from vbterrier.kernels.bounds import (
    PartlyJudged,
    guaranteed_lower,
    guaranteed_upper,
    naive_lower,
    naive_upper,
    posthoc_lower,
    rbp_upper,
)
from vbterrier.kernels.rankings import gains

BOUNDS = [naive_lower, naive_upper, rbp_upper, guaranteed_lower, posthoc_lower, guaranteed_upper]
EXACT = {"rtol": 0.0, "atol": 1e-12}


def one(levels, pool, gain=(0.0, 1.0, 2.0, 3.0), *, top=3, cutoff=2):
    """A single topic, from lists."""
    return PartlyJudged(
        np.array([levels], dtype=np.int64), np.array([pool], dtype=np.int64), np.array(gain), top=top, cutoff=cutoff
    )


def counts(levels, n_levels):
    return np.bincount(np.array([level for level in levels if level >= 0], dtype=np.int64), minlength=n_levels)


def ndcg(levels, pool, gain, cutoff):
    """nDCG of complete judgments, the textbook way: levels of the list's documents (-2: no document), one row per case.

    ``pool`` holds the levels of all judged documents, one row per case.
    """
    gain_or_nothing = np.append(gain, [0.0, 0.0])  # -2 is the last but one
    ranked, best = gain_or_nothing[levels][:, :cutoff], -np.sort(-gain[pool], axis=1)[:, :cutoff]
    dcg, ideal = ((g / np.log2(np.arange(2, g.shape[1] + 2))).sum(axis=1) for g in (ranked, best))
    return np.array([d / i if i > 0 else 0.0 for d, i in zip(dcg, ideal, strict=True)])


@functools.cache
def sequences(n_levels, length):
    """All sequences of levels, shape (n_levels ** length, length)."""
    return np.array(list(itertools.product(range(n_levels), repeat=length)), dtype=np.int64).reshape(
        n_levels**length, length
    )


def outcomes(topics):
    """The nDCG of a single topic under each assignment of levels to its unjudged documents."""
    levels, cutoff = topics.levels[0], topics.cutoff
    ranks = np.flatnonzero(levels[:cutoff] == -1)
    assigned = sequences(topics.top + 1, len(ranks))
    lists = np.repeat(levels[np.newaxis, :cutoff], len(assigned), axis=0)
    lists[:, ranks] = assigned
    judged = np.repeat(np.arange(len(topics.gain)), topics.pool[0])
    pool = np.hstack([np.tile(judged, (len(assigned), 1)), assigned])
    return ndcg(lists, pool, topics.gain, cutoff)


def greedy(topics):
    """The naive upper bound of a single topic, document by document."""
    levels, left = topics.levels[0][: topics.cutoff].copy(), topics.pool[0].copy()
    for level in levels[levels >= 0]:
        left[level] -= 1
    for rank in np.flatnonzero(levels == -1):
        levels[rank] = next((level for level in range(len(left) - 1, 0, -1) if left[level] > 0), 0)
        left[levels[rank]] -= 1
    judged = np.repeat(np.arange(len(left)), topics.pool[0])
    return ndcg(levels[np.newaxis], judged[np.newaxis], topics.gain, topics.cutoff)[0]


def random_topic(rng):
    """Few documents and levels, so that all judgments can be tried; every kind of gain, cutoff and gap."""
    n_levels, width = rng.choice([1, 2, 3, 4, 4, 4]), rng.choice([0, 1, 2, 3, 4, 4, 5, 5, 6])
    levels = np.sort(rng.integers(0, n_levels, width))[::-1]
    levels = np.where(
        rng.random(width) < rng.uniform(0.2, 1.0), -1, rng.permutation(levels) if rng.random() < 0.5 else levels
    )
    levels[width - rng.choice([0, 0, 0, 0, 0, 1, width // 2, width]) :] = -2
    pool = counts(levels, n_levels) + rng.integers(0, rng.choice([1, 2, 2, 4]), n_levels)
    rises = [np.ones(n_levels - 1), np.exp2(np.arange(n_levels - 1)), rng.uniform(0.1, 5.0, n_levels - 1)]
    gain = np.append(0.0, np.cumsum(rises[rng.integers(3)]))
    top = n_levels - 1 if rng.random() < 0.7 else rng.integers(0, n_levels)
    cutoff = None if rng.random() < 0.2 else int(rng.integers(1, width + 4))
    return one(levels, pool, gain, top=int(top), cutoff=cutoff)


@functools.cache
def random_topics():
    rng = np.random.default_rng(20230402)
    return [random_topic(rng) for _ in range(3000)]


def random_batch(rng, n, *, width=8, n_levels=4, cutoff=10, top=3):
    levels = rng.choice([-2, -1, -1, *range(n_levels)], size=(n, width))
    pool = np.array([counts(row, n_levels) for row in levels], dtype=np.int64).reshape(n, n_levels) + rng.integers(
        0, 4, (n, n_levels)
    )
    return PartlyJudged(levels, pool, gains(np.arange(n_levels)), top=top, cutoff=cutoff)


class TestAllJudgmentsTried:
    """3,000 random problems: what the kernels say, and what trying every judgment gives."""

    @pytest.mark.parametrize("n_topics", [120, pytest.param(3000, marks=pytest.mark.nightly)])
    def test_bounds_are_those_of_all_judgments(self, n_topics):
        for topics in random_topics()[:n_topics]:
            scores = outcomes(topics)  # the first assignment is all 0, the last is all top
            np.testing.assert_allclose(guaranteed_upper(topics), [scores.max()], **EXACT)
            np.testing.assert_allclose(posthoc_lower(topics), [scores.min()], **EXACT)
            np.testing.assert_allclose(naive_lower(topics), scores[:1], **EXACT)
            np.testing.assert_allclose(rbp_upper(topics), scores[-1:], **EXACT)
            np.testing.assert_allclose(naive_upper(topics), [greedy(topics)], **EXACT)

    def test_guaranteed_lower_bound(self):
        for topics in random_topics():
            if topics.cutoff is None:
                assert guaranteed_lower(topics) == 0.0
                continue
            levels = np.maximum(topics.cutoff_levels, 0)
            judged = np.repeat(np.arange(len(topics.gain)), topics.pool[0])
            pool = np.append(judged, np.repeat(topics.top, topics.cutoff))  # as many as fit into the ideal ranking
            expected = ndcg(levels, pool[np.newaxis], topics.gain, topics.cutoff)
            np.testing.assert_allclose(guaranteed_lower(topics), expected, **EXACT)


@pytest.mark.parametrize("bound", BOUNDS)
class TestShapes:
    @pytest.mark.parametrize("cutoff", [1, 3, 8, 20, None])
    @pytest.mark.parametrize("top", [0, 2, 3])
    def test_a_batch_equals_its_topics(self, bound, cutoff, top):
        batch = random_batch(np.random.default_rng(3), 60, cutoff=cutoff, top=top)
        single = [
            bound(PartlyJudged(levels[np.newaxis], pool[np.newaxis], batch.gain, top=top, cutoff=cutoff))[0]
            for levels, pool in zip(batch.levels, batch.pool, strict=True)
        ]
        np.testing.assert_allclose(bound(batch), single, **EXACT)

    @pytest.mark.parametrize("cutoff", [0, 5, None])
    def test_no_topics(self, bound, cutoff):
        result = bound(random_batch(np.random.default_rng(3), 0, cutoff=cutoff))
        assert len(result) == 0
        assert result.ndim == 1

    def test_inputs_stay_as_they_are(self, bound):
        batch = random_batch(np.random.default_rng(4), 20)
        before = [array.copy() for array in (batch.levels, batch.pool, batch.gain)]
        bound(batch)
        for array, kept in zip((batch.levels, batch.pool, batch.gain), before, strict=True):
            np.testing.assert_array_equal(array, kept)


def test_upper_bound_of_an_empty_pool_is_1():
    # At ratio 1 raising nobody (0/0) ties with raising somebody (1/1).
    assert guaranteed_upper(one([-1, 0, -1], [1, 0, 0, 0], cutoff=3)) == 1.0


@pytest.mark.parametrize(
    ("levels", "pool", "gain", "cutoff"),
    [
        ([-1, -1, 1, 1, -1, -1, 0, -1], [2, 3, 1], (0.0, 2.0, 3.0), 8),
        ([1, 1, 1, -1, -1, 0], [2, 5, 2], (0.0, 2.0, 2.5), 5),
        ([1, 2, 1, -1, 0, -1, 2], [1, 4, 2], (0.0, 4.0, 5.0), 6),
    ],
)
def test_the_upper_bound_is_attained_also_if_the_last_step_gains_little(levels, pool, gain, cutoff):
    """Problems whose last step increases the bound by 1.4e-6, 5.7e-6 and 6.7e-5."""
    topics = one(levels, pool, gain, top=2, cutoff=cutoff)
    np.testing.assert_allclose(guaranteed_upper(topics), [outcomes(topics).max()], **EXACT)
