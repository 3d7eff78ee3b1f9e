"""Probabilities of candidates: textbook loops, ranges of floats, rows of replicas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.candidates import normalised, peaks, raised, softmax
from vbterrier.kernels.vb import per_topic, segments

numbers = st.floats(-50, 50) | st.sampled_from([-math.inf, 0.0])


@st.composite
def cases(draw):
    """Logits of (b, n) candidates of topics in any order."""
    n_topics = draw(st.integers(1, 4))
    topic = draw(st.lists(st.integers(0, n_topics - 1), max_size=9))
    b = draw(st.integers(1, 3))
    rows = st.lists(numbers, min_size=len(topic), max_size=len(topic))
    logits = draw(st.lists(rows, min_size=b, max_size=b))
    return np.array(logits).reshape(b, len(topic)), np.array(topic, dtype=np.int64), n_topics


def textbook(row, topic, place):
    here = [math.exp(x) for x, t in zip(row, topic, strict=True) if t == place]
    return [x / sum(here) if sum(here) else 0.0 for x in here]


@given(cases())
def test_the_softmax_is_the_textbook_loop_of_each_row(case):
    logits, topic, n_topics = case
    before = logits.copy()
    found = softmax(logits, topic, n_topics)
    assert (logits == before).all(), "inputs are left as they were"
    for b, row in enumerate(logits):
        for place in range(n_topics):
            assert found[b, topic == place].tolist() == pytest.approx(textbook(row, topic, place), abs=1e-12)
    if len(topic):
        assert softmax(logits[0], topic, n_topics) == pytest.approx(found[0], abs=1e-15)


@given(cases())
def test_peaks_and_sums_are_the_textbook_loops(case):
    logits, topic, n_topics = case
    weights = np.exp(logits)
    for b in range(len(logits)):
        for place in range(n_topics):
            here = logits[b, topic == place]
            assert peaks(logits, topic, n_topics)[b, place] == max(here.tolist(), default=-math.inf)
            total = math.fsum(weights[b, topic == place])
            assert per_topic(weights, topic, n_topics)[b, place] == pytest.approx(total, rel=1e-12)
            assert per_topic(weights[b], topic, n_topics)[place] == pytest.approx(total, rel=1e-12)


@given(cases())
def test_the_most_probable_is_raised_to_one_exactly(case):
    logits, topic, n_topics = case
    best = peaks(raised(logits, topic, n_topics), topic, n_topics)
    there = peaks(logits, topic, n_topics) > -math.inf
    assert (best[there] == 1.0).all()
    assert (best[~there] <= 0.0).all()


def test_scores_beyond_the_range_of_exponentials():
    topic = np.array([0, 0, 1, 1])
    assert softmax(np.array([1e300, -1e300, -5000.0, -5000.0]), topic, 2).tolist() == [1.0, 0.0, 0.5, 0.5]


def test_weights_of_nothing_stay_nothing():
    assert normalised(np.array([[0.0, 0.0, 2.0]]), np.array([0, 0, 1]), 2).tolist() == [[0.0, 0.0, 1.0]]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_segments_bring_the_intents_of_each_topic_together(topic):
    topic = np.array(topic)
    order, present, starts = segments(topic)
    sorted_topic = topic if order is None else topic[order]
    assert (np.diff(sorted_topic) >= 0).all()
    assert present.tolist() == sorted(set(topic.tolist()))
    assert sorted_topic[starts].tolist() == present.tolist()
    assert (order is None) == (np.diff(topic) >= 0).all()
