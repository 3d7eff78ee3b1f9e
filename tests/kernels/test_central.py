"""Central intervals by mid-probabilities, against the definition and by what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.kernels.grades.distributions import atoms_of, central_interval

LEVELS = (0.0, 0.1, 0.5, 0.8, 0.9, 0.95, 1.0)


def by_definition(values, probs, level):
    """The smallest and largest value with a mid-probability within the tails, else the median twice."""
    tail = (1 - level) / 2
    inside = [
        x for x in values if tail - 1e-9 <= probs[values < x].sum() + probs[values == x].sum() / 2 <= 1 - tail + 1e-9
    ]
    if inside:
        return min(inside), max(inside)
    median = min(x for x in values if probs[values <= x].sum() >= 0.5 - 1e-9)
    return median, median


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 20)), min_size=1, max_size=12),
    st.sampled_from(LEVELS),
)
@settings(max_examples=300, deadline=None)
def test_the_ends_are_those_of_the_definition(atoms, level):
    values = np.array([value for value, _ in atoms]) / 8
    probs = np.array([count for _, count in atoms], dtype=float)
    probs /= probs.sum()
    assert central_interval(atoms_of(values, probs), level) == pytest.approx(by_definition(values, probs, level))


def test_one_document_that_is_hardly_ever_relevant_is_taken_for_not_relevant():
    assert central_interval(atoms_of(np.array([0.3, 0.8]), np.array([0.92, 0.08])), 0.9) == (0.3, 0.3)
    # The quantile at .95 would be .8: between .3 and .8 lies everything.
    assert central_interval(atoms_of(np.array([0.3, 0.8]), np.array([0.85, 0.15])), 0.9) == (0.3, 0.8)


def test_between_the_ends_lies_the_level_on_average():
    """Over distributions of one document, drawn at random, the interval covers the truth at the nominal rate."""
    rng = np.random.default_rng(0)
    held, quantiles = [], []
    for chance in rng.random(4000):
        distribution = atoms_of(np.array([0.0, 1.0]), np.array([1 - chance, chance]))
        truth = float(rng.random() < chance)
        low, high = central_interval(distribution, 0.9)
        held.append(low <= truth <= high)
        low, high = distribution.quantiles(np.array([0.05, 0.95]))
        quantiles.append(low <= truth <= high)
    # Expected: a certain end is missed with the chance c of the other, for c below .1: 2 ∫ c dc = .01.
    assert np.mean(held) == pytest.approx(1 - 0.01, abs=0.006)
    assert np.mean(quantiles) >= np.mean(held)
