"""Adjusted p-values: by hand and against statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from vbterrier.stats.comparisons import adjusted, holm


def test_holm_by_hand():
    # .01 * 4, then .02 * 3 = .06, .03 * 2 = .06, and the largest unchanged.
    assert holm(np.array([0.03, 0.01, 0.5, 0.02])).tolist() == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]


def test_benjamini_and_hochberg_by_hand():
    # .01 * 4/1, .02 * 4/2, .03 * 4/3 = .04, and the largest unchanged.
    found = adjusted(np.array([0.03, 0.01, 0.5, 0.02]), "bh")
    assert found.tolist() == pytest.approx([0.04, 0.04, 0.5, 0.04])


@pytest.mark.parametrize(("name", "statsmodels_name"), [("holm", "holm"), ("bh", "fdr_bh")])
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_those_of_statsmodels(monkeypatch_gc, name, statsmodels_name, p_values):
    expected = multipletests(p_values, method=statsmodels_name)[1]
    assert adjusted(np.array(p_values), name) == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def monkeypatch_gc():
    """Disable garbage collection, which statsmodels runs in every call (0.1 s)."""
    import gc

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_no_test_has_nothing_to_adjust(correction):
    assert adjusted(np.array([]), correction).tolist() == []


def test_none_leaves_p_values_as_they_are():
    assert adjusted(np.array([0.2, 0.01]), "none").tolist() == [0.2, 0.01]
