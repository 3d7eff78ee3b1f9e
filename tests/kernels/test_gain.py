"""Gains, discounts and ideal DCG against a textbook loop over documents."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.rankings import cumulative_discounts, discounts, gains, ideal_dcg

depths = st.none() | st.integers(0, 30)


@st.composite
def pools_with_gains(draw):
    pool = draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    rises = draw(st.lists(st.floats(0.1, 10.0), min_size=len(pool) - 1, max_size=len(pool) - 1))
    return np.array(pool), np.cumsum([0.0, *rises])


def dcg_by_loop(document_gains, cutoff):
    total = 0.0
    for rank, document_gain in enumerate(document_gains, start=1):
        if cutoff is not None and rank > cutoff:
            break
        total += document_gain / math.log2(rank + 1)
    return total


@given(st.integers(0, 50))
def test_discounts_and_their_sums_are_those_of_the_textbook(cutoff):
    expected = [1 / math.log2(rank + 1) for rank in range(1, cutoff + 1)]
    assert discounts(cutoff).tolist() == pytest.approx(expected)
    assert cumulative_discounts(cutoff).tolist() == pytest.approx([0.0, *np.cumsum(expected)], rel=1e-12)


@given(st.lists(st.integers(-3, 5)))
def test_gains_follow_their_definitions(grades):
    grades = np.array(grades, dtype=np.int64)
    assert gains(grades).tolist() == [max(grade, 0) for grade in grades]
    assert gains(grades, exponential=True).tolist() == [2.0 ** max(grade, 0) - 1 for grade in grades]
    for exponential in (False, True):
        assert gains(grades, exponential=exponential).dtype == np.float64
        assert gains(grades[None], exponential=exponential).shape == (1, len(grades))


@given(pools_with_gains(), depths)
def test_ideal_dcg_is_the_dcg_of_the_pool_sorted_by_gain(problem, cutoff):
    pool, gain = problem
    by_gain = sorted(np.repeat(gain, pool), reverse=True)
    assert ideal_dcg(pool, gain, cutoff) == pytest.approx(dcg_by_loop(by_gain, cutoff), abs=1e-12)


def test_leading_axes_are_independent():
    rng = np.random.default_rng(1)
    many, gain = rng.integers(0, 9, (4, 3, 5)), np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    for cutoff in (0, 3, 10, None):
        batch = ideal_dcg(many, gain, cutoff)
        assert batch.shape == (4, 3)
        single = [[float(ideal_dcg(pool, gain, cutoff)) for pool in row] for row in many]
        np.testing.assert_allclose(batch, single, rtol=1e-14)
        assert ideal_dcg(many[:0, 0], gain, cutoff).shape == (0,)
