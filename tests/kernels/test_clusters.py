"""Complete linkage against SciPy and against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from vbterrier.kernels.candidates import complete_linkage, cosines


def groups(labels):
    return {tuple(np.flatnonzero(labels == label)) for label in set(labels.tolist())}


@st.composite
def similarities(draw):
    n = draw(st.integers(1, 8))
    # All different, so that no tie rule matters.
    values = draw(st.lists(st.integers(0, 10_000), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2, unique=True))
    matrix = np.eye(n)
    matrix[np.triu_indices(n, 1)] = np.array(values, dtype=float) / 10_000
    return np.maximum(matrix, matrix.T)


@given(similarities(), st.sampled_from([0.1, 0.5, 0.95]))
def test_complete_linkage_is_that_of_scipy(similarity, threshold):
    found = complete_linkage(similarity, threshold)
    if len(similarity) > 1:
        distance = 1 - similarity
        np.fill_diagonal(distance, 0)
        tree = linkage(squareform(distance, checks=False), method="complete")
        expected = fcluster(tree, t=1 - threshold + 1e-9, criterion="distance")
        assert groups(found) == groups(expected)
    for group in groups(found):
        assert similarity[np.ix_(group, group)].min() >= threshold - 1e-9
        assert found[list(group)].tolist() == [group[0]] * len(group)


def test_of_equal_pairs_the_first_goes_first():
    chain = np.array([[1, 0.96, 0.5], [0.96, 1, 0.96], [0.5, 0.96, 1]])
    assert complete_linkage(chain, 0.95).tolist() == [0, 0, 2]


@pytest.mark.parametrize("n", [0, 1])
def test_few_things_are_clusters_of_their_own(n):
    assert complete_linkage(np.ones((n, n)), 0.95).tolist() == list(range(n))


def test_a_cosine_of_the_threshold_itself_is_enough():
    angle = np.arccos(0.95)
    vectors = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    assert complete_linkage(cosines(vectors * 3), 0.95).tolist() == [0, 0]


def test_cosines_know_no_length():
    vectors = np.array([[1e-200, 1e-200], [1e200, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    expected = np.array([[1, 0.5**0.5, 0, -(0.5**0.5)], [0.5**0.5, 1, 0, -1], [0, 0, 0, 0], [-(0.5**0.5), -1, 0, 1]])
    assert cosines(vectors) == pytest.approx(expected, abs=1e-12)
