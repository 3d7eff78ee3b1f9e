"""Queries removed from a table of decisions: against enumeration, SciPy, and arithmetic by hand."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.kernels.linking import N_CELLS, extremes, nested_draws, removed_queries, scores

cells = st.lists(st.integers(0, 6), min_size=5, max_size=5).map(np.array)


def every_removal(counts, m):
    """All removals of m queries with their multivariate hypergeometric probabilities."""
    gone = [one for one in product(*(range(n + 1) for n in counts)) if sum(one) == m]
    ways = [np.prod([comb(int(n), k) for n, k in zip(counts, one, strict=True)], dtype=float) for one in gone]
    return np.array(gone), np.array(ways) / comb(int(sum(counts)), m)


def by_hand(right, wrong, missed, recognised, taken):
    """P, R, F1 as section 2.2 of the paper words them."""
    links, nils = right + wrong + missed, recognised + taken
    link_p = right / (right + wrong + taken) if right + wrong + taken else 0
    nil_p = recognised / (recognised + missed) if recognised + missed else 0
    link_r = right / links if links else 0
    nil_r = recognised / nils if nils else 0
    p = (links * link_p + nils * nil_p) / (links + nils)
    r = (links * link_r + nils * nil_r) / (links + nils)
    return [p, r, 2 * p * r / (p + r) if p + r else 0]


@given(cells)
def test_scores_are_those_of_the_paper(counts):
    assume(counts.sum())
    assert scores(counts) == pytest.approx(by_hand(*counts.tolist()))
    assert scores(np.stack([counts, counts]))[1] == pytest.approx(scores(counts))


@settings(max_examples=150, deadline=None)
@given(cells, st.data())
def test_worst_and_best_are_those_of_all_removals(counts, data):
    n = int(counts.sum())
    assume(n >= 2)
    m = data.draw(st.integers(1, n - 1))
    every = scores(counts - every_removal(counts, m)[0])
    worst, best = extremes(counts, m)
    assert worst == pytest.approx(every.min(axis=0))
    assert best == pytest.approx(every.max(axis=0))


def test_worst_and_best_in_small_blocks_are_the_same(monkeypatch):
    counts = np.array([30, 9, 14, 40, 12])
    whole = extremes(counts, 33)
    monkeypatch.setattr("vbterrier.kernels.linking._BLOCK", 1)
    assert np.array_equal(extremes(counts, 33), whole)


@pytest.mark.parametrize("source", ["model", "queries"])
@pytest.mark.parametrize(
    ("counts", "m"), [((4, 2, 3, 5, 2), 6), ((3, 0, 2, 1, 4), 9), ((0, 0, 0, 4, 3), 2), ((1, 1, 1, 1, 1), 2)]
)
def test_draws_follow_the_exact_law(source, counts, m):
    counts, n_draws = np.array(counts), 20_000
    rng = np.random.default_rng(7)
    if source == "model":
        drawn = nested_draws(counts, m, n_draws, rng)
    else:
        # Kinds in no order, as queries come.
        kind = rng.permutation(np.repeat(np.arange(N_CELLS), counts))
        drawn = removed_queries(kind, m, n_draws, rng)
    assert drawn.shape == (n_draws, 5)
    gone, prob = every_removal(counts, m)
    places = {tuple(one): place for place, one in enumerate(gone.tolist())}
    seen = np.bincount([places[tuple(one)] for one in drawn.tolist()], minlength=len(gone))
    # Cells that are expected fewer than five times are one.
    often = prob * n_draws >= 5
    pooled = [np.append(part[often], part[~often].sum()) for part in (seen, prob * n_draws)]
    kept = pooled[1] > 0
    assert stats.chisquare(pooled[0][kept], pooled[1][kept]).pvalue > 1e-4


def test_queries_in_small_blocks_are_the_same(monkeypatch):
    kind = np.repeat(np.arange(N_CELLS), [5, 4, 3, 2, 1])
    whole = removed_queries(kind, 4, 50, np.random.default_rng(1))
    monkeypatch.setattr("vbterrier.kernels.linking._BLOCK", 7 * len(kind))
    assert np.array_equal(removed_queries(kind, 4, 50, np.random.default_rng(1)), whole)
