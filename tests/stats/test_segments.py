"""Cuts of a line: units change nothing. Against fits of each cut in ``tests/stats/test_breakpoints.py``."""

import numpy as np
import pytest

from vbterrier.stats.breakpoints import explained_by_cuts


@pytest.mark.parametrize("n_terms", [1, 2])
def test_neither_the_unit_of_weights_nor_that_of_scores_changes_what_a_cut_explains(n_terms):
    rng = np.random.default_rng(1)
    x, y, weights, cuts = np.linspace(-1, 1, 30), rng.normal(size=(2, 30)), rng.random((2, 30)), np.arange(5, 25)
    beside = np.stack([np.ones(30), x], axis=1)[:, :n_terms]
    expected = explained_by_cuts(x, beside, y, weights, cuts, n_terms=n_terms, least=1)
    assert np.isfinite(expected).all()
    light = explained_by_cuts(x, beside, y, 1e-9 * weights, cuts, n_terms=n_terms, least=1e-9)
    small = explained_by_cuts(x, beside, 1e-12 * y, weights, cuts, n_terms=n_terms, least=1)
    assert light == pytest.approx(expected, rel=1e-6)
    assert small == pytest.approx(expected, rel=1e-6)
