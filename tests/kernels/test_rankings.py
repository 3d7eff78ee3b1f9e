"""Scores of rankings as arrays, against loops over ranks as the papers write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.rankings import average_precision, err, q_measure, ranks, rbp_weights, stable_order


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
