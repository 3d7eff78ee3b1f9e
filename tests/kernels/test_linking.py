"""Figures of linking: from the paper's tables, from textbook loops, and their linear parts against derivatives."""

import math
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.kernels import linking
from vbterrier.kernels.linking import (
    FIGURES,
    N_CELLS,
    extremes,
    figures,
    influence,
    nested_draws,
    removed_queries,
    scores,
    weighted_scores,
)
from vbterrier.kernels.resample import stream

LINK_P, LINK_R, LINK_F1, NIL_P, NIL_R, P, R, F1 = range(8)

# Mertens et al. 2014: Table 1 (links, NILs) and Table 2 (P_L, R_L, P_N, R_N, P, R), in percent.
TABLES = {
    "manual": ((367, 133), (91.1, 86.6, 74.2, 84.2, 87.1, 86.0)),
    "RD": ((753, 654), (89.1, 80.5, 83.2, 92.5, 87.0, 86.1)),
    "RM": ((169, 777), (81.9, 56.2, 91.6, 97.8, 89.8, 90.4)),
}
# Totals of the paper that do not follow from its components, and what does.
ODD = {("manual", "P"): 86.6, ("RD", "P"): 86.4}


def rounds_to(share, printed):
    return abs(100 * share - printed) <= 0.05 + 1e-9


def printed_counts(name):
    """All numbers of (right, predicted) for links and for NILs that round to what is printed."""
    golds, (link_p, link_r, nil_p, nil_r, *_) = TABLES[name]
    results = []
    for gold, precision, recall in ((golds[0], link_p, link_r), (golds[1], nil_p, nil_r)):
        rights = [right for right in range(gold + 1) if rounds_to(right / gold, recall)]
        results.append(
            [(right, n) for right in rights for n in range(1, sum(golds) + 1) if rounds_to(right / n, precision)]
        )
    return results


def paper_table(name):
    links, nils = (gold for gold in TABLES[name][0])
    ((right, _),), ((right_nil, predicted_nil),) = printed_counts(name)
    missed = predicted_nil - right_nil
    return np.array([[right, links - right - missed, missed, 0], [0, nils - right_nil, right_nil, 0]])


@pytest.mark.parametrize("name", TABLES)
def test_components_and_recall_of_table_2(name):
    numbers = figures(paper_table(name))
    link_p, link_r, nil_p, nil_r, _, recall = TABLES[name][1]
    for figure, printed in ((LINK_P, link_p), (LINK_R, link_r), (NIL_P, nil_p), (NIL_R, nil_r), (R, recall)):
        assert rounds_to(numbers[figure], printed), FIGURES[figure]


def test_precision_of_random_mention_follows_and_that_of_the_other_sets_does_not():
    for name in TABLES:
        result, printed = figures(paper_table(name))[P], TABLES[name][1][4]
        assert rounds_to(result, ODD.get((name, "P"), printed))
        assert rounds_to(result, printed) == ((name, "P") not in ODD)


def test_all_queries_of_the_paper_together_have_the_f1_of_its_table_3():
    assert figures(sum(paper_table(name) for name in TABLES))[F1] == pytest.approx(0.876, abs=5e-4)


# By hand and by loops


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=8, max_size=8))
def test_the_mean_of_what_queries_stand_for_is_the_figure(cells):
    counts = np.reshape(cells, (2, 4))
    counts[1, 0] = 0
    assume(counts.any())
    means = (counts[..., None] / counts.sum() * influence(counts)).sum(axis=(0, 1))
    np.testing.assert_allclose(means, figures(counts), atol=1e-12)


@pytest.mark.parametrize(
    "counts", [[[6, 1, 2, 1], [0, 2, 3, 4]], [[40, 3, 0, 9], [0, 5, 30, 0]], [[5, 2, 1, 1], [0, 0, 0, 0]]]
)
def test_what_a_query_stands_for_is_the_derivative_by_its_weight(counts):
    """Weight one cell a little more: the figure moves by (v - θ) per share of all queries."""
    counts, step = np.array(counts, dtype=float), 1e-6
    value, result = figures(counts), influence(counts)
    for cell in np.ndindex(2, 4):
        more, less = (counts + 0.0 for _ in range(2))
        if counts[cell] == 0:
            continue
        more[cell] += step
        less[cell] -= step
        slope = (figures(more) - figures(less)) / (2 * step) * counts.sum()
        np.testing.assert_allclose(result[cell] - value, slope, atol=1e-6)


@pytest.mark.parametrize("counts", [[[300, 60, 30, 10], [0, 40, 140, 20]], [[30, 60, 5, 5], [0, 10, 280, 10]]])
def test_the_standard_error_of_the_linear_parts_is_that_of_the_bootstrap(counts):
    counts = np.array(counts)
    n, result = counts.sum(), influence(counts)
    variance = (counts[..., None] / n * (result - figures(counts)) ** 2).sum(axis=(0, 1))
    drawn = stream(3, "bootstrap").multinomial(n, counts.ravel() / n, size=40_000).reshape(-1, 2, 4)
    # 40,000 resamples know a standard deviation to .35 %; the rest is what is left out behind the linear part.
    np.testing.assert_allclose(np.sqrt(variance / n), figures(drawn).std(axis=0), rtol=0.02)


# Edges


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Nothing answered: no precision, and totals of 0.
        ([[0, 0, 0, 3], [0, 0, 0, 2]], [math.nan, 0, 0, math.nan, 0, 0, 0, 0]),
        # No gold NIL: the totals are those of links.
        ([[3, 1, 0, 0], [0, 0, 0, 0]], [0.75, 0.75, 0.75, math.nan, math.nan, 0.75, 0.75, 0.75]),
        # No gold link, and one predicted.
        ([[0, 0, 0, 0], [0, 1, 3, 0]], [0, math.nan, 0, 1, 0.75, 1, 0.75, 6 / 7]),
        # NIL is never answered where it is right: its precision counts 0.
        ([[2, 0, 0, 0], [0, 2, 0, 0]], [0.5, 1, 2 / 3, math.nan, 0, 0.25, 0.5, 1 / 3]),
        # Nothing right.
        ([[0, 1, 1, 0], [0, 1, 0, 0]], [0, 0, 0, 0, 0, 0, 0, 0]),
        ([[1, 0, 0, 0], [0, 0, 1, 0]], [1] * 8),
        ([[0, 0, 0, 0], [0, 0, 0, 0]], [math.nan] * 8),
    ],
)
def test_edges(counts, expected):
    np.testing.assert_allclose(figures(counts), expected, atol=1e-12)
    if np.sum(counts):
        here = np.array(counts) > 0
        np.testing.assert_array_equal(np.isnan(influence(counts)[here]).any(axis=0), np.isnan(expected))


def test_swaps_by_hand(monkeypatch):
    # Of four links that one system alone answers, all or none are swapped in 2 of 16 ways.
    answers = np.zeros((2, 4, 4), dtype=int)
    answers[0, linking.RIGHT_LINK, linking.WRONG_LINK], answers[1, linking.NIL_ANSWER, linking.NIL_ANSWER] = 4, 3
    p_values, n_drawn = linking.swap_p_values(answers, 10, np.random.default_rng(1))
    assert n_drawn == 0
    # Both answer NILs alike, and a figure without a difference has p = 1.
    assert p_values[[LINK_R, LINK_P, F1, NIL_P, NIL_R]].tolist() == [2 / 16, 2 / 16, 2 / 16, 1, 1]
    same = np.zeros((2, 4, 4), dtype=int)
    same[0, linking.RIGHT_LINK, linking.RIGHT_LINK] = 5
    p_values, _ = linking.swap_p_values(same, 10, np.random.default_rng(1))
    assert p_values[F1] == 1
    assert np.isnan(p_values[NIL_R])
    # Drawn swaps count the observed ones.
    monkeypatch.setattr(linking, "_MOST_SWAPS", 1)
    answers[0, linking.RIGHT_LINK, linking.WRONG_LINK], answers[1] = 40, 0
    p_values, n_drawn = linking.swap_p_values(answers, 99, np.random.default_rng(1))
    assert (p_values[LINK_R], n_drawn) == (1 / 100, 99)


def test_tables_along_leading_axes_are_those_one_by_one_and_scores_of_numbers_those_of_tables():
    counts = stream(1, "tables").integers(0, 6, size=(3, 5, 2, 4))
    counts[..., 1, 0] = 0
    numbers = figures(counts)
    assert numbers.shape == (3, 5, 8)
    for place in np.ndindex(3, 5):
        np.testing.assert_array_equal(numbers[place], figures(counts[place]))
    expected = figures(np.array([[6, 1, 2, 1], [0, 2, 3, 4]]))[P:]
    np.testing.assert_allclose(weighted_scores([10, 9], [9, 5], [6, 3]), expected, atol=1e-15)
    assert weighted_scores(*[np.ones((4, 3, 2))] * 3)[2].shape == (4, 3)


@given(st.lists(st.integers(0, 200), min_size=8, max_size=8).filter(any))
def test_recall_of_a_query_is_exactly_0_or_1(cells):
    # Rounding errors above 0 would count wrong answers as wins.
    values = influence(np.reshape(cells, (2, 4)))[:, :, R]
    assert values.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_small_blocks_change_nothing(monkeypatch):
    counts, kind = np.array([30, 9, 14, 40, 12]), np.repeat(np.arange(N_CELLS), [5, 4, 3, 2, 1])
    calls = [lambda: extremes(counts, 33), lambda: removed_queries(kind, 4, 50, np.random.default_rng(1))]
    whole = [call() for call in calls]
    for size in (1, 7 * len(kind)):
        monkeypatch.setattr("vbterrier.kernels.linking._BLOCK_CELLS", size)
        assert all(map(np.array_equal, [call() for call in calls], whole))


# Queries removed from a table of decisions: against enumeration, SciPy, and arithmetic by hand.


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
