"""Slopes that leave one query out, against fits without it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.kernels.resample import left_out_slopes


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 12), st.integers(0, 10_000))
def test_each_slope_is_the_fit_without_the_query(n, seed):
    rng = np.random.default_rng(seed)
    labels, scores = rng.normal(5, 1, n), rng.normal(-3, 2, n)
    expected = [np.polyfit(np.delete(scores, i), np.delete(labels, i), 1)[0] for i in range(n)]
    assert left_out_slopes(labels, scores) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_leading_axes_are_replicas():
    rng = np.random.default_rng(1)
    labels, scores = rng.random((2, 3, 4, 9))
    found = left_out_slopes(labels, scores)
    assert found.shape == (3, 4, 9)
    assert found[2, 1] == pytest.approx(left_out_slopes(labels[2, 1], scores[2, 1]))


@pytest.mark.parametrize("size", [1e-9, 0.1, -0.1, 1e9])
def test_scores_that_do_not_differ_have_no_slope(size):
    labels = np.array([0.3, 0.1, 0.9, 0.5, 0.7, 0.7])
    assert not left_out_slopes(labels, np.full(6, size)).any()
    # All others are alike without the first.
    one = left_out_slopes(labels, np.array([size, 0, 0, 0, 0, 0]))
    assert one[0] == 0
    assert (one[1:] != 0).all()
    assert not left_out_slopes(labels[:2], np.array([0.0, size])).any()


def test_scores_of_zero_have_no_slope():
    assert left_out_slopes(np.array([0.3, 0.1, 0.9]), np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
