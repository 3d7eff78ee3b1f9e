"""Scores of rankings as arrays, against loops over ranks as the papers write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vbterrier.kernels.rankings import average_precision, err, q_measure, ranks, rbp_weights, stable_order

GRADES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 3))


def textbook_ap(relevant, n_relevant):
    found, total = 0, 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            found += 1
            total += found / rank
    return total / n_relevant if n_relevant else 0.0


def textbook_err(stops):
    total, reaches = 0.0, 1.0
    for rank, stop in enumerate(stops, start=1):
        total += reaches * stop / rank
        reaches *= 1 - stop
    return total


def textbook_q(gain, pool, n_relevant, beta):
    """``pool`` holds the gains of the relevant documents in falling order."""
    total = 0.0
    for rank in range(1, len(gain) + 1):
        if gain[rank - 1] > 0:
            found = sum(g > 0 for g in gain[:rank])
            total += (found + beta * sum(gain[:rank])) / (rank + beta * sum(pool[:rank]))
    return total / n_relevant if n_relevant else 0.0


@given(GRADES, st.integers(0, 9))
def test_average_precision_is_the_loop(grades, missed):
    relevant = (grades > 0).astype(float)
    n_relevant = relevant.sum(axis=1).astype(int) + missed
    expected = [textbook_ap(row, n) for row, n in zip(relevant, n_relevant, strict=True)]
    assert average_precision(relevant, n_relevant) == pytest.approx(expected, abs=1e-12)


@given(GRADES)
def test_err_is_the_loop(grades):
    stops = (2**grades - 1) / 8
    assert err(stops) == pytest.approx([textbook_err(row) for row in stops], abs=1e-12)


@given(GRADES, st.lists(st.integers(1, 3), max_size=9), st.sampled_from([0.0, 1.0, 2.5]))
def test_q_is_the_loop(grades, missed, beta):
    pools = [sorted([*row[row > 0], *missed], reverse=True) for row in grades]
    ideal = np.array([np.cumsum([*pool, *[0] * grades.shape[1]])[: grades.shape[1]] for pool in pools])
    expected = [textbook_q(row, pool, len(pool), beta) for row, pool in zip(grades, pools, strict=True)]
    assert q_measure(grades, ideal, np.array([len(pool) for pool in pools]), beta) == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    # Sakai's blended ratio of a ranking (1, 0, 3) whose pool holds 3, 1, 1: (1 + 1)/(1 + 3) and (2 + 4)/(3 + 5).
    assert q_measure(np.array([1.0, 0.0, 3.0]), np.array([3.0, 4.0, 5.0]), 3) == pytest.approx((2 / 4 + 6 / 8) / 3)
    assert average_precision(np.array([1.0, 0.0, 1.0]), 3) == pytest.approx((1 + 2 / 3) / 3)
    assert err(np.array([1 / 16, 0.0, 15 / 16])) == pytest.approx(1 / 16 + 15 / 16 * 15 / 16 / 3)
    assert rbp_weights(3, 0.8) == pytest.approx([0.2, 0.16, 0.128])
    assert rbp_weights(3, 0.0).tolist() == [1.0, 0.0, 0.0]
    assert ranks(0).tolist() == []


def test_leading_axes_are_kept_and_one_number_of_relevant_documents_does_for_all():
    relevant = np.random.default_rng(1).integers(0, 2, (2, 3, 5)).astype(float)
    ideal = np.arange(1.0, 6.0)
    for score in (average_precision(relevant, 7), err(relevant / 2), q_measure(relevant, ideal, 7)):
        assert score.shape == (2, 3)
    flat = relevant.reshape(6, 5)
    assert average_precision(relevant, 7).ravel() == pytest.approx(average_precision(flat, np.full(6, 7)))
    assert q_measure(relevant, ideal, 7).ravel() == pytest.approx(q_measure(flat, np.tile(ideal, (6, 1)), 7))


def test_the_ideal_ranking_has_a_q_of_1_and_empty_rankings_score_0():
    pool = np.array([3.0, 2.0, 1.0, 1.0])
    assert q_measure(pool, np.cumsum(pool), 4, beta=3.0) == pytest.approx(1.0)
    assert average_precision(np.ones(4), 4) == 1.0
    nothing = np.zeros((2, 0))
    for score in (average_precision(nothing, 3), err(nothing), q_measure(nothing, nothing, 3)):
        assert score.tolist() == [0.0, 0.0]
    assert average_precision(np.zeros(3), 0) == q_measure(np.zeros(3), np.zeros(3), 0) == 0.0


@pytest.mark.parametrize("n_keys", [5, 1 << 40, 1 << 62])
@given(st.lists(st.integers(0, 4), max_size=30))
def test_the_stable_order_is_that_of_the_stable_sort(n_keys, keys):
    keys = np.array(keys, dtype=np.int64) * (n_keys // 5)
    order, found = stable_order(keys, n_keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert found.tolist() == sorted(keys.tolist())
