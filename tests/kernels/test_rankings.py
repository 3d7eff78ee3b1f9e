"""Scores of rankings as arrays, against loops over ranks as the papers write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels import rankings
from vbterrier.kernels.rankings import average_precision, err, q_measure, ranks, rbp_weights, stable_order


def test_q_measure_average_precision_and_err_by_hand():
    # Sakai's blended ratio of a ranking (1, 0, 3) whose pool holds 3, 1, 1: (1 + 1)/(1 + 3) and (2 + 4)/(3 + 5).
    assert q_measure(np.array([1.0, 0.0, 3.0]), np.array([3.0, 4.0, 5.0]), 3) == pytest.approx((2 / 4 + 6 / 8) / 3)
    assert average_precision(np.array([1.0, 0.0, 1.0]), 3) == pytest.approx((1 + 2 / 3) / 3)
    assert err(np.array([1 / 16, 0.0, 15 / 16])) == pytest.approx(1 / 16 + 15 / 16 * 15 / 16 / 3)
    assert rbp_weights(3, 0.8) == pytest.approx([0.2, 0.16, 0.128])
    assert rbp_weights(3, 0.0).tolist() == [1.0, 0.0, 0.0]
    assert ranks(0).tolist() == []
    # The ideal ranking scores 1, and empty ones 0.
    pool, nothing = np.array([3.0, 2.0, 1.0, 1.0]), np.zeros((2, 0))
    assert q_measure(pool, np.cumsum(pool), 4, beta=3.0) == pytest.approx(1.0)
    assert average_precision(np.ones(4), 4) == 1.0
    for score in (average_precision(nothing, 3), err(nothing), q_measure(nothing, nothing, 3)):
        assert score.tolist() == [0.0, 0.0]
    assert average_precision(np.zeros(3), 0) == q_measure(np.zeros(3), np.zeros(3), 0) == 0.0


def test_leading_axes_are_kept_and_one_number_of_relevant_documents_does_for_all():
    relevant = np.random.default_rng(1).integers(0, 2, (2, 3, 5)).astype(float)
    ideal = np.arange(1.0, 6.0)
    for score in (average_precision(relevant, 7), err(relevant / 2), q_measure(relevant, ideal, 7)):
        assert score.shape == (2, 3)
    flat = relevant.reshape(6, 5)
    assert average_precision(relevant, 7).ravel() == pytest.approx(average_precision(flat, np.full(6, 7)))
    assert q_measure(relevant, ideal, 7).ravel() == pytest.approx(q_measure(flat, np.tile(ideal, (6, 1)), 7))


@pytest.mark.parametrize("n_keys", [5, 1 << 40, 1 << 62])
@given(st.lists(st.integers(0, 4), max_size=30))
def test_the_stable_order_is_that_of_the_stable_sort(n_keys, keys):
    keys = np.array(keys, dtype=np.int64) * (n_keys // 5)
    order, result = stable_order(keys, n_keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert result.tolist() == sorted(keys.tolist())


# Order, ties and top rows of ranked lists compared with Python lists.


@st.composite
def groups(draw, n_scores=4):
    """Falling scores of groups laid end to end: scores, starts, stops."""
    score = st.integers(0, n_scores).map(float)
    lists = draw(st.lists(st.lists(score, min_size=1, max_size=8), max_size=6))
    lists = [sorted(scores, reverse=True) for scores in lists]
    stops = np.cumsum([len(scores) for scores in lists], dtype=np.int64)
    starts = stops - np.array([len(scores) for scores in lists], dtype=np.int64)
    return np.array([x for scores in lists for x in scores], dtype=np.float32), starts, stops


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=12))
def test_spans_are_ranges_laid_end_to_end(ranges):
    lows = np.array([low for low, _ in ranges], dtype=np.int64)
    highs = np.array([low + size for low, size in ranges], dtype=np.int64)
    owner, element = rankings.spans(lows, highs)
    expected = [(place, x) for place, (low, size) in enumerate(ranges) for x in range(low, low + size)]
    assert list(zip(owner.tolist(), element.tolist(), strict=True)) == expected


# Ranked lists


@given(groups(), st.integers(0, 10))
def test_top_rows_are_the_first_of_each_group(case, cutoff):
    _, starts, stops = case
    expected = [
        [row if row < stop else -1 for row in range(start, start + cutoff)]
        for start, stop in zip(starts, stops, strict=True)
    ]
    rows = rankings.top_rows(starts, stops, cutoff)
    assert rows.tolist() == expected
    assert rows.shape == (len(starts), cutoff)


@given(groups(), st.integers(0, 10))
def test_a_group_is_tied_where_equal_scores_touch_its_first_ranks(case, cutoff):
    score, starts, stops = case
    expected = [
        any(score[row] == score[row + 1] for row in range(start, min(start + cutoff, stop - 1)))
        for start, stop in zip(starts, stops, strict=True)
    ]
    assert rankings.tied_groups(score, starts, stops, cutoff).tolist() == expected


@given(groups(n_scores=2), st.integers(1, 10), st.randoms(use_true_random=False))
def test_tied_places_are_those_whose_score_a_neighbour_has(case, cutoff, random):
    score, starts, stops = case
    if not len(score):
        return
    expected = sum(
        any(score[row] == score[other] for other in (row - 1, row + 1) if start <= other < stop)
        for start, stop in zip(starts, stops, strict=True)
        for row in range(start, min(start + cutoff, stop))
    )
    # A row of -1 reads before the first score; with one score alone there would be nothing to read.
    rows = rankings.top_rows(starts, stops, min(cutoff, int((stops - starts).max())))
    assert rankings.n_tied(score, rows, starts, stops) == expected


@given(groups(), st.data())
def test_scores_fall_unless_one_rises_within_its_group(case, data):
    score, starts, _ = case
    assert rankings.is_falling(score, starts)
    if not len(score):
        return
    row = data.draw(st.integers(0, len(score) - 1))
    changed = score.copy()
    changed[row] += 9
    first_of_its_group = row in starts.tolist()
    assert rankings.is_falling(changed, starts) == first_of_its_group


def test_a_rise_from_one_group_to_the_next_is_none():
    score = np.array([2, 1, 3, 0], dtype=np.float32)
    assert rankings.is_falling(score, np.array([0, 2]))
    assert not rankings.is_falling(score, np.array([0]))
    assert not rankings.is_falling(score, np.array([0, 1]))
    assert rankings.is_falling(np.array([1], dtype=np.float32), np.array([0]))


@pytest.mark.parametrize("seed", range(5))
def test_extreme_places_are_the_ends_of_groups_by_descending_score(seed):
    draw = np.random.default_rng(seed)
    stops = np.cumsum(draw.integers(1, 9, 20))
    starts = np.concatenate([[0], stops[:-1]])
    # Few different scores, so that many are tied, with both signs of 0.
    score = draw.choice(np.array([-1, -0.0, 0, 1], dtype=np.float32), stops[-1])
    order = rankings.descending(score, starts, stops)
    highest, lowest = rankings.extreme_places(score, starts, stops)
    assert highest.tolist() == order[starts].tolist()
    assert lowest.tolist() == order[stops - 1].tolist()
