"""The share of documents that a list of entities reaches, against plain loops; more in ``tests/entities``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.coverage import coverage, first_ranks, greedy_cover
from vbterrier.kernels.rankings import NO_RANK

documents = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2, 3, 7, NO_RANK]), st.booleans()), min_size=1, max_size=12
)


@given(documents, st.sets(st.integers(1, 8), min_size=1, max_size=4).map(sorted))
def test_coverage_counts_the_documents_above_each_cutoff(rows, cutoffs):
    topic, first, chosen = (np.array(column) for column in zip(*rows, strict=True))
    expected = []
    for place in range(4):
        ranks = [rank for of, rank, counts in rows if of == place and counts]
        expected.append([sum(rank < k for rank in ranks) / len(ranks) if ranks else np.nan for k in cutoffs])
    result = coverage(first, chosen, topic, 4, np.array(cutoffs))
    assert result == pytest.approx(np.array(expected), nan_ok=True)


@given(st.lists(st.lists(st.sampled_from([0, 1, 5, NO_RANK]), max_size=3), max_size=5))
def test_a_document_is_reached_where_the_first_of_its_links_is_listed(links):
    starts = np.cumsum([0, *map(len, links)])
    ranks = np.array([rank for of_document in links for rank in of_document], dtype=np.int64)
    expected = [min(of_document, default=NO_RANK) for of_document in links]
    assert first_ranks(ranks, starts).tolist() == expected
    none = np.empty(0, dtype=np.int64)
    assert [part.shape for part in greedy_cover(none, none, np.array([0, 0, 0]), 3)] == [(2, 0), (2, 0)]
