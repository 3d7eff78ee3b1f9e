"""Probabilities of candidates and which to keep, against loops as a textbook has them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels import candidates
from vbterrier.kernels.candidates import softmax


@st.composite
def problems(draw, low=0.0, high=1.0):
    """Values with topics in any order, every topic there."""
    n_topics = draw(st.integers(1, 4))
    topic = [*range(n_topics), *draw(st.lists(st.integers(0, n_topics - 1), max_size=8))]
    values = draw(st.lists(st.floats(low, high), min_size=len(topic), max_size=len(topic)))
    order = draw(st.permutations(range(len(topic))))
    return np.array(values)[order], np.array(topic)[order], n_topics


def sums(prob, topic, n_topics):
    return [math.fsum(prob[topic == place]) for place in range(n_topics)]


def test_weights_of_nothing_are_alike_and_others_keep_their_shares():
    prob = candidates.proportional(np.array([0.0, 3.0, 0.0, 1.0]), np.array([1, 0, 1, 0]), 2)
    assert prob.tolist() == [0.5, 0.75, 0.5, 0.25]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300])
def test_tiny_and_huge_weights_keep_their_shares(scale):
    prob = candidates.proportional(np.array([1.0, 3.0]) * scale, np.array([0, 0]), 1)
    assert prob == pytest.approx([0.25, 0.75], abs=1e-3)


@given(problems())
def test_proportional_is_the_share_of_the_sum(problem):
    weights, topic, n = problem
    prob = candidates.proportional(weights, topic, n)
    for place in range(n):
        mine = weights[topic == place]
        total = mine.sum()
        share = mine / total if total > 1e-300 else None
        if share is not None:
            assert prob[topic == place] == pytest.approx(share, rel=1e-9, abs=1e-300)
    assert sums(prob, topic, n) == pytest.approx([1.0] * n)


@given(problems(low=1e-6), st.floats(0.05, 20))
def test_tempering_is_a_power(problem, temperature):
    weights, topic, n = problem
    expected = candidates.proportional(weights ** (1 / temperature), topic, n)
    assert candidates.tempered(weights, temperature, topic, n) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_tempering_nothing_gives_all_the_same():
    assert candidates.tempered(np.zeros(2), 0.5, np.array([0, 0]), 1).tolist() == [0.5, 0.5]
    assert candidates.tempered(np.array([0.0, 0.2]), 0.5, np.array([0, 0]), 1).tolist() == [0.0, 1.0]


@given(problems(low=-50, high=50), st.floats(0.05, 20))
def test_softening_is_the_formula(problem, temperature):
    score, topic, n = problem
    prob = candidates.softened(score, temperature, topic, n)
    for place in range(n):
        mine = score[topic == place]
        raised = [math.exp((s - max(mine)) / temperature) for s in mine]
        assert prob[topic == place] == pytest.approx([r / sum(raised) for r in raised], abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-300, 1e-5, 1e300])
def test_extreme_scores_and_temperatures_stay_finite(temperature):
    prob = candidates.softened(np.array([1e308, -1e308, 7.0]), temperature, np.array([0, 0, 1]), 2)
    assert prob.tolist() == [1.0, 0.0, 1.0]


@given(problems(low=-20, high=20), st.floats(0.1, 10), st.data())
def test_relaxation_adds_in_log_space(problem, temperature, data):
    score, topic, n = problem
    delta = np.array(data.draw(st.lists(st.floats(0, 9), min_size=len(score), max_size=len(score))))
    both = candidates.relaxed(candidates.softened(score, temperature, topic, n), delta, topic, n)
    assert both == pytest.approx(softmax(score / temperature - delta, topic, n), abs=1e-12)
    alone = candidates.relaxed(candidates.proportional(np.ones(len(score)), topic, n), delta, topic, n)
    expected = np.exp(-delta)
    assert alone == pytest.approx(candidates.proportional(expected, topic, n), abs=1e-12)


def test_relaxation_keeps_what_is_impossible_impossible():
    assert candidates.relaxed(np.array([0.0, 1.0]), np.array([0.0, 900.0]), np.array([0, 0]), 1).tolist() == [0.0, 1.0]


def test_masses_that_stay():
    prob = candidates.with_fixed_masses(
        np.array([0.25, 0.75, 0.0, 1.0]), np.array([0.0, 0.0, 0.6, 0.0]), np.array([0, 0, 0, 1]), 2
    )
    assert prob == pytest.approx([0.1, 0.3, 0.6, 1.0])
    assert candidates.with_fixed_masses(np.zeros(2), np.array([0.3, 0.0]), np.array([0, 0]), 1).tolist() == [1.0, 0.0]


@given(problems(), st.randoms(use_true_random=False))
def test_ranks_are_places_in_the_sorted_list(problem, random):
    values, topic, n = problem
    values = np.round(values, 1)
    tie = np.array(random.sample(range(len(values)), len(values)))
    ranks = candidates.ranks(values, topic, tie)
    for place in range(n):
        mine = np.flatnonzero(topic == place)
        expected = sorted(mine, key=lambda i: (-values[i], tie[i]))
        assert [expected.index(i) for i in mine] == ranks[mine].tolist()


def textbook_kept(prob, topic, tie, threshold, top, mass):
    stay = []
    for place in set(topic.tolist()):
        mine = sorted(np.flatnonzero(topic == place), key=lambda i: (-prob[i], tie[i]))
        total = 0.0
        for rank, i in enumerate(mine):
            reached = mass is not None and total >= mass - 1e-9
            if rank == 0 or (prob[i] >= threshold and (top is None or rank < top) and not reached):
                stay.append(i)
            total += prob[i]
    return sorted(stay)


@given(
    problems(low=0.01),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 0.3, 0.95, 1.0]),
    st.randoms(use_true_random=False),
)
def test_what_is_kept_is_what_the_textbook_keeps(problem, threshold, top, mass, random):
    weights, topic, n = problem
    prob = np.round(candidates.proportional(np.round(weights, 1) + 0.1, topic, n), 12)
    tie = np.array(random.sample(range(len(prob)), len(prob)))
    kept = candidates.kept(prob, topic, tie, threshold=threshold, top=top, mass=mass)
    assert np.flatnonzero(kept).tolist() == textbook_kept(prob, topic, tie, threshold, top, mass)
    assert set(topic[kept].tolist()) == set(range(n)), "no topic is emptied"


def test_masses_are_reached_in_spite_of_rounding():
    prob = np.array([0.7, 0.1, 0.1, 0.1])
    assert (0.7 + 0.1) + 0.1 < 0.9, "the sum falls short in floats"
    assert candidates.kept(prob, np.zeros(4, int), np.arange(4), mass=0.9).tolist() == [True, True, True, False]
    third = np.full(3, 1 / 3)
    assert candidates.kept(third, np.zeros(3, int), np.arange(3), threshold=1 / 3 + 1e-13).all()


def test_leading_axes_are_replicas():
    rng = np.random.default_rng(5)
    topic, tie = np.array([1, 0, 1, 0, 1]), np.array([3, 1, 4, 0, 2])
    prob = np.stack([candidates.proportional(rng.random(5), topic, 2) for _ in range(6)]).reshape(2, 3, 5)
    delta = rng.random((2, 3, 5))
    calls = {
        "kept": lambda p, _: candidates.kept(p, topic, tie, top=2, mass=0.8),
        "ranks": lambda p, _: candidates.ranks(p, topic, tie),
        "relaxed": lambda p, d: candidates.relaxed(p, d, topic, 2),
        "tempered": lambda p, _: candidates.tempered(p, 0.7, topic, 2),
        "softened": lambda _, d: candidates.softened(d, 0.7, topic, 2),
        "with_fixed_masses": lambda p, d: candidates.with_fixed_masses(p, d / 10, topic, 2),
        "proportional": lambda _, d: candidates.proportional(d, topic, 2),
    }
    for name, call in calls.items():
        together = call(prob, delta)
        for i, j in np.ndindex(2, 3):
            assert together[i, j] == pytest.approx(call(prob[i, j], delta[i, j])), name


def test_cross_entropy_by_hand():
    logits, target = np.array([0.0, math.log(3), 5.0]), np.array([1.0, 0.0, 0.0])
    assert candidates.cross_entropy(logits, target, np.array([0, 0, 1]), 2) == pytest.approx(math.log(4))
    assert candidates.cross_entropy(np.array([1e5, 0.0]), np.array([0.5, 0.5]), np.array([0, 0]), 1) == pytest.approx(
        5e4
    )


def test_nothing_comes_of_nothing():
    none, topic = np.empty(0), np.empty(0, dtype=int)
    assert candidates.proportional(none, topic, 0).shape == (0,)
    assert candidates.kept(none, topic, topic, top=1).shape == (0,)
    assert candidates.softened(none, 1.0, topic, 0).shape == (0,)


def test_what_rounding_tells_apart_is_equal():
    prob = np.array([0.4, 0.1 + 0.2, 0.3])
    assert prob[1] > prob[2]
    assert candidates.kept(prob, np.zeros(3, int), np.array([0, 2, 1]), top=2).tolist() == [True, False, True]


def test_topics_without_rows_leave_the_cross_entropy_as_it_is():
    # Warnings are errors here: the logarithm of an empty topic is never taken.
    logits, target = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    alone = candidates.cross_entropy(logits, target, np.array([0, 0]), 1)
    assert candidates.cross_entropy(logits, target, np.array([1, 1]), 3) == alone == pytest.approx(np.log(2))
