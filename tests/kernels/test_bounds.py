"""Bounds for nDCG@k against published cases, a loop over ranks, and all judgments of small problems."""

import doctest
import functools
import gzip
import itertools
import json

import numpy as np
import pytest

from vbterrier.kernels import bounds as kernel
from vbterrier.kernels.bounds import (
    PartlyJudged,
    guaranteed_lower,
    guaranteed_upper,
    guaranteed_upper_levels,
    naive_lower,
    naive_upper,
    posthoc_lower,
    rbp_upper,
)
from vbterrier.kernels.rankings import gains

BOUNDS = {
    "naive_lower": naive_lower,
    "naive_upper": naive_upper,
    "rbp_lower": naive_lower,
    "rbp_upper": rbp_upper,
    "guaranteed_lower": guaranteed_lower,
    "posthoc_lower": posthoc_lower,
    "guaranteed_upper": guaranteed_upper,
}
EXACT = {"rtol": 0.0, "atol": 1e-12}
CASES = [f"T{i}" for i in range(1, 11)]


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


@pytest.fixture(scope="session")
def published(shared_data):
    cases = json.loads((shared_data / "trec-covid" / "bound_examples.json").read_text())["tiny_bound_examples"]
    return {case["name"]: case for case in cases}


def topics_of(case, dcg):
    levels = [-1 if grade is None else grade for grade in case["ranking"]]
    gain = gains(np.arange(case["G"] + 1), exponential=dcg == "exp")
    return one(levels, counts(case["pool"], len(gain)), gain, top=case["G"], cutoff=case["k"])


def test_the_published_cases_are_these(published):
    assert sorted(published) == sorted(CASES)


@pytest.mark.parametrize("dcg", ["linear", "exp"])
@pytest.mark.parametrize("name", CASES)
class TestPublished:
    @pytest.mark.parametrize("bound", BOUNDS)
    def test_value(self, published, name, dcg, bound):
        case = published[name]
        assert BOUNDS[bound](topics_of(case, dcg)) == pytest.approx(case[dcg][bound], abs=1e-9)

    def test_judgments_of_the_guaranteed_upper_bound_attain_it(self, published, name, dcg):
        case = published[name]
        topics = topics_of(case, dcg)
        assigned = guaranteed_upper_levels(topics)[topics.unjudged]
        for grades in (assigned, case[dcg]["guaranteed_upper_grades"]):  # several judgments may be best
            levels = topics.levels.copy()
            levels[topics.unjudged] = grades
            truth = ndcg(levels, np.array([[*case["pool"], *grades]]), topics.gain, topics.cutoff)
            assert truth == pytest.approx(case[dcg]["guaranteed_upper"], abs=1e-9)

    def test_truth_lies_within_the_exact_bounds(self, published, name, dcg):
        topics, truth = topics_of(published[name], dcg), published[name][dcg]["true_by_grade"]
        for value in truth.values():
            assert guaranteed_lower(topics) <= posthoc_lower(topics)
            assert posthoc_lower(topics) - 1e-9 <= value <= guaranteed_upper(topics) + 1e-9
        if truth:
            assert outcomes(topics) == pytest.approx([truth[str(grade)] for grade in range(4)], abs=1e-9)


@pytest.fixture(scope="session")
def trec_covid(shared_data):
    """The first ten ranks of a dense run on TREC-COVID, the judgments it was missing, and the expected scores."""

    def lines(name):
        with gzip.open(shared_data / "trec-covid" / name, "rt") as file:
            yield from map(str.split, file)

    qrels = {}
    for qid, _, docno, label in lines("qrels.incomplete.txt.gz"):
        if int(label) >= 0:
            qrels.setdefault(qid, {})[docno] = int(label)
    levels = {}
    for qid, _, docno, rank, *_ in lines("run.ance.top100.txt.gz"):
        if int(rank) <= 10:
            levels.setdefault(qid, []).append(qrels[qid].get(docno, -1))
    with gzip.open(shared_data / "trec-covid" / "expected.ance.json.gz", "rt") as file:
        expected = json.load(file)["ance"]
    pool = [counts(qrels[qid].values(), 3) for qid in expected]
    ranked = np.array([levels[qid] for qid in expected])
    return PartlyJudged(ranked, np.array(pool), np.arange(3.0), top=2, cutoff=10), list(expected.values())


def test_trec_covid(trec_covid):
    topics, expected = trec_covid
    assert topics.n_unjudged.tolist() == [topic["u"] for topic in expected]
    np.testing.assert_allclose(naive_lower(topics), [topic["lower"] for topic in expected], atol=1e-9)
    np.testing.assert_allclose(naive_upper(topics), [topic["upper"] for topic in expected], atol=1e-9)
    truth = np.array([topic["true"] for topic in expected])
    assert (guaranteed_lower(topics) <= truth + 1e-9).all()
    assert (guaranteed_upper(topics) >= truth - 1e-9).all()
    assert naive_upper(topics).mean() == pytest.approx(0.8527, abs=5e-5)  # the paper's Table 7


class TestAllJudgmentsTried:
    """3,000 random problems: what the kernels say, and what trying every judgment gives."""

    @pytest.mark.slow
    def test_exact_bounds(self):
        for topics in random_topics():
            scores = outcomes(topics)
            np.testing.assert_allclose(guaranteed_upper(topics), [scores.max()], **EXACT)
            np.testing.assert_allclose(posthoc_lower(topics), [scores.min()], **EXACT)

    @pytest.mark.slow
    def test_other_bounds(self):
        for topics in random_topics():
            scores = outcomes(topics)  # the first assignment is all 0, the last is all top
            np.testing.assert_allclose(naive_lower(topics), scores[:1], **EXACT)
            np.testing.assert_allclose(rbp_upper(topics), scores[-1:], **EXACT)
            np.testing.assert_allclose(naive_upper(topics), [greedy(topics)], **EXACT)

    def test_guaranteed_lower_bound(self):
        for topics in random_topics():
            if topics.cutoff is None:
                assert guaranteed_lower(topics) == 0.0
                continue
            levels = np.maximum(topics.counted, 0)
            judged = np.repeat(np.arange(len(topics.gain)), topics.pool[0])
            pool = np.append(judged, np.repeat(topics.top, topics.cutoff))  # as many as fit into the ideal ranking
            expected = ndcg(levels, pool[np.newaxis], topics.gain, topics.cutoff)
            np.testing.assert_allclose(guaranteed_lower(topics), expected, **EXACT)

    def test_judgments_of_the_guaranteed_upper_bound_attain_it(self):
        for topics in random_topics():
            levels = guaranteed_upper_levels(topics)
            assert levels.shape == topics.counted.shape
            assert (levels[~topics.unjudged] == topics.counted[~topics.unjudged]).all()
            assigned = levels[topics.unjudged]
            assert ((assigned >= 0) & (assigned <= topics.top)).all()
            assert (np.diff(assigned) <= 0).all()
            pool = np.append(np.repeat(np.arange(len(topics.gain)), topics.pool[0]), assigned)
            truth = ndcg(levels, pool[np.newaxis], topics.gain, topics.cutoff)
            np.testing.assert_allclose(truth, guaranteed_upper(topics), **EXACT)

    def test_layers_shrink_as_levels_rise(self):
        for topics in random_topics():
            n_raised = kernel._highest(topics)[1]
            assert (np.diff(n_raised, axis=1) <= 0).all()
            assert (n_raised <= topics.n_unjudged).all()
            assert (n_raised[:, topics.top :] == 0).all()

    def test_order_of_the_bounds(self):
        for topics in random_topics():
            scores = outcomes(topics)
            lowest, highest = posthoc_lower(topics), guaranteed_upper(topics)
            assert guaranteed_lower(topics) >= 0
            assert guaranteed_lower(topics) <= lowest + 1e-12
            assert ((lowest - 1e-12 <= scores) & (scores <= highest + 1e-12)).all()
            assert highest <= 1 + 1e-12
            assert naive_lower(topics) <= naive_upper(topics) + 1e-12
            assert naive_upper(topics) <= 1 + 1e-12

    def test_the_problems_cover_what_matters(self):
        def needs_a_level_between(topics, scores):
            assigned = sequences(topics.top + 1, topics.n_unjudged[0])
            extremes = ((assigned == 0) | (assigned == topics.top)).all(axis=1)
            return scores[extremes].max() < scores.max() - 1e-9

        pairs = [(topics, outcomes(topics)) for topics in random_topics()]
        n_cases = {
            "many judgments": sum(len(scores) >= 64 for _, scores in pairs),
            "naive lower is too high": sum(scores[0] > scores.min() + 1e-9 for _, scores in pairs),
            "naive upper is too low": sum(greedy(topics) < scores.max() - 1e-9 for topics, scores in pairs),
            "RBP upper is too low": sum(scores[-1] < scores.max() - 1e-9 for _, scores in pairs),
            "a level between is best": sum(needs_a_level_between(*pair) for pair in pairs),
            "pool above the top": sum(topics.pool[0, topics.top + 1 :].any() for topics, _ in pairs),
        }
        assert min(n_cases.values()) >= 40, n_cases


@pytest.mark.parametrize("bound", [*dict.fromkeys(BOUNDS.values()), guaranteed_upper_levels])
class TestShapes:
    @pytest.mark.parametrize("cutoff", [1, 3, 8, 20, None])
    @pytest.mark.parametrize("top", [0, 2, 3])
    def test_a_batch_equals_its_topics(self, bound, cutoff, top):
        batch = random_batch(np.random.default_rng(3), 200, cutoff=cutoff, top=top)
        single = [
            bound(PartlyJudged(levels[np.newaxis], pool[np.newaxis], batch.gain, top=top, cutoff=cutoff))[0]
            for levels, pool in zip(batch.levels, batch.pool, strict=True)
        ]
        np.testing.assert_allclose(bound(batch), single, **EXACT)

    @pytest.mark.parametrize("cutoff", [0, 5, None])
    def test_no_topics(self, bound, cutoff):
        result = bound(random_batch(np.random.default_rng(3), 0, cutoff=cutoff))
        assert len(result) == 0
        assert result.ndim == (2 if bound is guaranteed_upper_levels else 1)

    def test_inputs_stay_as_they_are(self, bound):
        batch = random_batch(np.random.default_rng(4), 20)
        before = [array.copy() for array in (batch.levels, batch.pool, batch.gain)]
        bound(batch)
        for array, kept in zip((batch.levels, batch.pool, batch.gain), before, strict=True):
            np.testing.assert_array_equal(array, kept)


EDGES = {
    # naive lower and upper, RBP upper, guaranteed lower, post hoc lower, guaranteed upper
    "no unjudged": (one([3, 1], [0, 1, 0, 1]), [1.0, 1.0, 1.0, 0.742098, 1.0, 1.0]),
    "all unjudged": (one([-1, -1], [0, 1, 1, 0]), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
    "empty list": (one([], [0, 1, 1, 1]), [0.0] * 6),
    "no document in the list": (one([-2, -2], [0, 1, 1, 1]), [0.0] * 6),
    "empty pool, unjudged": (one([-1, -1], [0, 0, 0, 0]), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]),
    "empty pool, empty list": (one([-2, -2], [0, 0, 0, 0]), [0.0] * 6),
    "pool of level 0 only": (one([0, -1], [5, 0, 0, 0]), [0.0, 0.0, 0.630930, 0.0, 0.0, 0.630930]),
    "list longer than k": (one([3, 0, -1, -1, 3], [1, 0, 0, 2]), [0.613147] * 3 + [0.613147] * 3),
    "list shorter than k": (one([3, -1, -2], [0, 0, 0, 1], cutoff=4), [1.0, 1.0, 1.0, 0.390380, 1.0, 1.0]),
    "list shorter than k, narrow": (one([3, -1], [0, 0, 0, 1], cutoff=4), [1.0, 1.0, 1.0, 0.390380, 1.0, 1.0]),
    "relevant beyond k": (one([-1, 3], [0, 0, 0, 1], cutoff=1), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
    "no cutoff": (one([-1, 3], [0, 0, 0, 2], cutoff=None), [0.386853, 1.0, 0.765361, 0.0, 0.386853, 0.765361]),
    "depth 0": (one([-1, 3], [0, 0, 0, 1], cutoff=0), [0.0] * 6),
    "nothing above level 0 allowed": (one([1, -1], [0, 2, 0, 0], top=0), [0.613147, 1.0] + [0.613147] * 4),
    "one level only": (one([0, -1], [1], gain=[0.0], top=0), [0.0] * 6),
    "pool above the top": (
        one([2, -1], [0, 0, 1, 1], top=2),
        [0.469279, 0.913402, 0.765361, 0.469279, 0.469279, 0.765361],
    ),
}


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge):
    topics, expected = EDGES[edge]
    bounds = [naive_lower, naive_upper, rbp_upper, guaranteed_lower, posthoc_lower, guaranteed_upper]
    values = [bound(topics) for bound in bounds]
    assert all(value.shape == (1,) for value in values)
    np.testing.assert_allclose(np.concatenate(values), expected, atol=1e-6)


def test_an_empty_pool_still_has_judgments_that_attain_the_upper_bound():
    # at ratio 1 raising nobody (0/0) ties with raising somebody (1/1)
    assert guaranteed_upper_levels(one([-1, 0, -1], [1, 0, 0, 0], cutoff=3))[0, 0] > 0


def test_ranks_below_the_cutoff_play_no_part():
    near, far = one([1, -1], [2, 1, 1, 1]), one([1, -1, -1, 0], [2, 1, 1, 1])
    for bound in BOUNDS.values():
        assert bound(near) == bound(far)
    assert guaranteed_upper_levels(near).tolist() == guaranteed_upper_levels(far).tolist()


def test_examples_of_the_docstrings():
    assert doctest.testmod(kernel).failed == 0
