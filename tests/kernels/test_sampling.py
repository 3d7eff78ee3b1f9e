"""Units, probabilities, steps, sizes of strata and variances, by enumeration."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.sampling import allocation, drawn_units, inclusion_probabilities, systematic, total_variance

SIZES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


class Given:
    """A generator whose order and start are given."""

    def __init__(self, order, start):
        self.order, self.start = np.array(order, dtype=int), start

    def permutation(self, n):
        assert n == len(self.order)
        return self.order

    def random(self):
        return self.start


def certainties_one_by_one(sizes, n):
    """Take the largest for certain as long as its share is above 1."""
    prob, left = np.zeros(len(sizes)), list(range(len(sizes)))
    while n and left:
        share = n * sizes[left] / sizes[left].sum()
        if share.max() < 1:
            prob[left] = share
            break
        prob[left.pop(int(np.argmax(share)))] = 1
        n -= 1
    return prob


@given(SIZES, st.data())
def test_probabilities_sum_to_n_and_follow_sizes(sizes, data):
    sizes, n = np.array(sizes), data.draw(st.integers(1, len(sizes)))
    result = inclusion_probabilities(sizes, n)
    assert result.sum() == pytest.approx(n)
    assert result == pytest.approx(certainties_one_by_one(sizes, n))
    assert inclusion_probabilities(np.array([1e-20, 1.0, 1.0]), 2).tolist() == [1e-20, 1.0, 1.0]


def test_equal_steps_hit_each_unit_as_often_as_its_probability_says_in_any_order():
    prob = np.array([0.1, 0.7, 0.9, 0.3])
    starts = (np.arange(200) + 0.5) / 200
    for order in permutations(range(4)):
        hits = np.zeros(4)
        for start in starts:
            drawn = systematic(prob, Given(order, start))
            assert len(set(drawn.tolist())) == 2
            hits[drawn] += 1
        assert hits / 200 == pytest.approx(prob)
    # The order is random: any two units may meet.
    draws = np.random.default_rng(1)
    assert len({frozenset(systematic(np.full(4, 0.5), draws).tolist()) for _ in range(200)}) == 6


@pytest.mark.parametrize("start", [0.0, np.nextafter(1, 0)])
def test_roundings_do_not_step_over_the_end(start):
    prob = np.full(10, 0.1) * (1 - 1e-15)
    assert len(systematic(prob, Given(range(10), start))) == 1
    assert sorted(systematic(np.ones(3), Given([], start)).tolist()) == [0, 1, 2]


@pytest.mark.parametrize("replace", [True, False])
def test_a_larger_sample_begins_with_the_smaller_one(replace):
    few, more, every = (drawn_units(50, n, np.random.default_rng(3), replace=replace) for n in (7, 20, 50))
    assert every[:20].tolist() == more.tolist()
    assert more[:7].tolist() == few.tolist()
    assert replace or sorted(every.tolist()) == list(range(50))


@given(st.lists(st.tuples(st.just(0.0) | st.floats(0.01, 5), st.integers(1, 30)), min_size=1, max_size=8), st.data())
def test_sizes_of_strata_are_within_bounds_and_sum_to_n(strata, data):
    shares, high = np.array([share for share, _ in strata]), np.array([most for _, most in strata])
    shares[0] += 0.1
    low = np.minimum(high, 2)
    n = data.draw(st.integers(int(low.sum()), int(high.sum())))
    result = allocation(shares, n, low, high)
    assert result.sum() == n
    assert (result >= low).all()
    assert (result <= high).all()
    # At no bound, sizes are those of one factor but for rounding, which moves none by one.
    free = (result > low) & (result < high) & (shares > 0)
    assert ((result[free] - 1) / shares[free]).max(initial=0) < ((result[free] + 1) / shares[free]).min(initial=np.inf)


def test_sizes_by_hand():
    wide = np.full(3, 100)
    assert allocation(np.array([0.5, 0.3, 0.2]), 10, np.ones(3, int), wide).tolist() == [5, 3, 2]
    # What a full stratum cannot take goes to the others, by their shares.
    assert allocation(np.array([0.5, 0.3, 0.2]), 14, np.ones(3, int), np.array([4, 100, 100])).tolist() == [4, 6, 4]
    # The unit of shares does not matter, however small it is.
    assert allocation(np.array([5e-9, 3e-9, 2e-9]), 10, np.ones(3, int), wide).tolist() == [5, 3, 2]
    # A stratum of share 0 takes what is left.
    assert allocation(np.array([1.0, 0.0]), 7, np.ones(2, int), np.array([4, 9])).tolist() == [4, 3]


def test_variances_by_hand():
    expanded = np.array([[1.0], [3.0], [10.0], [14.0], [5.0]])
    stratum = np.array([0, 0, 1, 1, 2])
    # Stratum 2 is drawn for certain. 2 Σ (e - mean)² / (2 - 1) of both others, the second with half of it left.
    left = np.array([1.0, 1.0, 0.5, 0.5, 0.0])
    variance, varying = total_variance(expanded, np.ones(5, int), left, stratum)
    assert variance.tolist() == [2 * 2 + 2 * 0.5 * 8]
    assert varying.tolist() == [2, 2, 0]
    # A query drawn three times is three draws.
    assert total_variance(expanded[:2], np.array([3, 1]), np.ones(2), np.zeros(2, int))[0] == pytest.approx(
        total_variance(expanded[[0, 0, 0, 1]], np.ones(4, int), np.ones(4), np.zeros(4, int))[0]
    )
    # One draw has no variance, whatever rounding makes of its mean.
    for value in np.linspace(0.1, 0.9, 50):
        assert np.isnan(total_variance(np.array([[value]]), np.array([1]), np.array([0.3]), np.zeros(1, int))[0])
