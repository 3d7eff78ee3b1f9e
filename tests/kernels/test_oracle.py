"""The most that k documents can cover."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.kernels import vb
from vbterrier.kernels.vb import best_cover, best_success, greedy_cover


def by_trying_all(prob, weights, k):
    """The best success over all sets of k documents."""
    sets = itertools.combinations(range(len(weights)), min(k, len(weights)))
    return max(sum(p * max((weights[d][i] for d in s), default=0.0) for i, p in enumerate(prob)) for s in sets)


WEIGHT = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])


@st.composite
def topics(draw, weight=WEIGHT):
    n_intents = draw(st.integers(1, 5))
    shares = draw(st.lists(st.integers(0, 5), min_size=n_intents, max_size=n_intents).filter(any))
    row = st.lists(weight, min_size=n_intents, max_size=n_intents)
    return np.array(shares) / sum(shares), np.array(draw(st.lists(row, min_size=1, max_size=7)))


@settings(deadline=None, max_examples=150)
@given(topics(), st.integers(1, 4))
def test_the_best_documents_are_those_of_trying_all(topic, k):
    prob, weights = topic
    best, exact = best_cover(prob, weights, k)
    assert exact
    assert best == pytest.approx(by_trying_all(prob, weights, k), abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(st.lists(topics(), min_size=1, max_size=4), st.sampled_from([1, 2, 3, 9, None]), st.randoms())
def test_many_topics_at_once_are_each_by_itself(several, k, random):
    prob = np.concatenate([prob for prob, _ in several])
    topic = np.repeat(np.arange(len(several)), [len(prob) for prob, _ in several])
    first = np.cumsum([0, *(len(prob) for prob, _ in several)])
    # Documents have one number in all topics, tags come in any order, and some twice.
    tags = [(first[t] + i, d, w[d, i]) for t, (_, w) in enumerate(several) for d, i in np.ndindex(w.shape)]
    tags += [(i, d, w / 2) for i, d, w in tags[::3]]
    random.shuffle(tags)
    intent, document, weight = (np.array(column) for column in zip(*tags, strict=True))
    # Intents of a topic need not stand together.
    place = np.array(random.sample(range(len(prob)), len(prob)))
    moved_prob, moved_topic = np.empty_like(prob), np.empty_like(topic)
    moved_prob[place], moved_topic[place] = prob, topic
    success, exact = best_success(
        moved_prob, moved_topic, len(several), intent=place[intent], document=document, weight=weight, k=k
    )
    expected = [by_trying_all(prob, weights, 99 if k is None else k) for prob, weights in several]
    assert exact.dtype == bool
    assert exact.all()
    assert success.tolist() == pytest.approx(expected, abs=1e-12)


# The greedy ranking takes the middle document first and cannot cover all with one more.
TRAP = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]])
SHARES = np.array([0.2, 0.3, 0.3, 0.2])


def of_one_topic(prob, intent, document, weight, k):
    topic = np.zeros(len(prob), dtype=int)
    success, exact = best_success(np.array(prob), topic, 1, intent=intent, document=document, weight=weight, k=k)
    return success.item(), exact.item()


def test_a_search_finds_better_than_greedy_and_gives_the_greedy_ranking_if_it_would_hold_too_much(monkeypatch):
    assert greedy_cover(SHARES, TRAP, 2) == pytest.approx(0.8)
    assert best_cover(SHARES, TRAP, 2) == (pytest.approx(1.0), True)
    monkeypatch.setattr(vb, "MAX_EXACT_CELLS", 11)
    assert best_cover(SHARES, TRAP, 2) == (pytest.approx(0.8), False)
    assert of_one_topic(SHARES, *np.nonzero(TRAP.T), np.ones(6), 2) == (pytest.approx(0.8), False)


def test_simple_topics_are_exact_without_a_search(monkeypatch):
    monkeypatch.setattr(vb, "MAX_EXACT_CELLS", 0)
    # One document covers all; with k = 4 every intent could have a separate document.
    intent, document = np.arange(4), np.zeros(4, dtype=int)
    assert [of_one_topic(SHARES, intent, document, np.ones(4), k)[1] for k in (1, 4)] == [False, True]
    assert of_one_topic(SHARES, intent, intent, np.ones(4), 1) == (pytest.approx(0.3), True)
    assert of_one_topic(SHARES, intent, intent, np.ones(4), 4) == (pytest.approx(1.0), True)
    # Tags that weigh nothing make no topic hard.
    tags = np.array([0, 1, 0, 1]), np.array([0, 1, 2, 2]), np.array([1.0, 1.0, 0.0, 0.0])
    assert of_one_topic([0.6, 0.4], *tags, 1) == (0.6, True)
    # Topics without tags and without intents have nothing.
    none, prob = np.empty(0, dtype=np.int64), np.array([1.0])
    result = best_success(prob, np.array([1]), 3, intent=none, document=none, weight=np.empty(0), k=2)
    assert [part.tolist() for part in result] == [[0.0, 0.0, 0.0], [True, True, True]]


@settings(deadline=None, max_examples=60)
@given(topics(), st.integers(1, 4))
def test_greedy_is_never_worse_than_its_factor(topic, k):
    prob, weights = topic
    best = by_trying_all(prob, weights, k)
    assert (1 - 1 / math.e) * best - 1e-12 <= greedy_cover(prob, weights, k) <= best + 1e-12


def test_dominated_documents_are_left_out_but_many_are_not_compared_each_with_each(monkeypatch):
    about_one = np.array([[0.5, 0.0], [0.75, 0.0], [0.25, 0.25], [0.0, 0.25], [0.75, 0.0]])
    assert vb._undominated_documents(about_one).tolist() == [[0.25, 0.25], [0.75, 0.0]]
    monkeypatch.setattr(vb, "MOST_COMPARED", 2)
    assert best_cover(SHARES, TRAP, 2) == (pytest.approx(1.0), True)
    assert len(vb._undominated_documents(np.eye(4)[[0, 0, 1, 2]] * 0.5)) == 3
    monkeypatch.setattr(vb, "MOST_COMPARED", 9)
    assert len(vb._undominated_documents(np.array([[1.0, 0.5], [0.5, 0.5], [0.5, 1.0], [1.0, 0.5]]))) == 2


def test_two_hundred_documents_and_a_dozen_intents_are_still_certain():
    draw = np.random.default_rng(4)
    weights = (draw.random((200, 12)) < 0.15).astype(float)
    prob = draw.dirichlet(np.ones(12))
    assert best_cover(prob, weights, 3) == (pytest.approx(1.0), True)
    assert greedy_cover(prob, weights, 3) < 0.96


def test_what_cannot_become_best_is_not_searched(monkeypatch):
    draw = np.random.default_rng(0)
    weights = (draw.random((40, 15)) < 0.1) * draw.random((40, 15))
    # A bound that leaves out too little holds five times as many numbers.
    monkeypatch.setattr(vb, "MAX_EXACT_CELLS", 2**16)
    assert best_cover(draw.dirichlet(np.full(15, 0.5)), weights, 4)[1]
