"""Order, ties and top rows of ranked lists compared with Python lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels import rankings


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
