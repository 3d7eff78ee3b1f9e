"""Agreement of estimates with the truth."""

from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.stats.agreement import (
    Preferences,
    bonferroni,
    error_statistics,
    paired_t,
    preferences,
    rank_biased_overlap,
    rank_correlations,
    share_interval,
    tau_ap,
    tau_b,
)

scores = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.0, 0.3, 0.5, 0.9])), min_size=2)


@given(scores)
def test_errors_are_those_of_a_loop(pairs):
    truth, estimate = np.array(pairs).T
    result = error_statistics(truth, estimate)
    errors, n = [e - t for t, e in pairs], len(pairs)
    assert result.n == n
    assert (result.bias, result.mae) == pytest.approx((sum(errors) / n, sum(map(abs, errors)) / n))
    # Ignored underestimations count as errors of 0 in the mean.
    squares = [
        sum(e * e for e in some) / n for some in (errors, [e for e in errors if e > 0], [e for e in errors if e < 0])
    ]
    assert (result.rmse, result.rmse_over, result.rmse_under) == pytest.approx(tuple(np.sqrt(squares)))
    assert result.rmse**2 == pytest.approx(result.rmse_over**2 + result.rmse_under**2)


def test_no_estimates_have_no_errors():
    result = error_statistics(np.empty(0), np.empty(0))
    assert result.n == 0
    assert np.isnan([result.bias, result.mae, result.rmse, result.rmse_over, result.rmse_under]).all()
    assert np.isnan(share_interval(0, 0)).all()
    assert np.isnan(paired_t(np.array([0.3]))).all()
    assert np.isnan(rank_correlations(np.array([0.3]), np.array([0.4])).tau)


@pytest.mark.parametrize(("k", "n", "level"), [(7, 10, 0.95), (1, 30, 0.9), (55, 60, 0.99), (0, 8, 0.95), (8, 8, 0.95)])
def test_the_interval_of_a_share_inverts_the_binomial(k, n, level):
    low, high = share_interval(k, n, level)
    assert low == 0 if k == 0 else stats.binom.sf(k - 1, n, low) == pytest.approx((1 - level) / 2)
    assert high == 1 if k == n else stats.binom.cdf(k, n, high) == pytest.approx((1 - level) / 2)


def textbook_tau_ap(truth, order):
    """Yilmaz et al., with half a point for two systems with equal true scores."""
    n, total = len(order), 0.0
    for i in range(1, n):
        right = [(np.sign(truth[order[above]] - truth[order[i]]) + 1) / 2 for above in range(i)]
        total += sum(right) / i
    return 2 * total / (n - 1) - 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=6))
def test_tau_ap_is_the_mean_over_all_orders_of_ties(pairs):
    truth, estimate = np.array(pairs, dtype=float).T
    orders = [
        order
        for order in permutations(range(len(pairs)))
        if all(estimate[a] >= estimate[b] for a, b in pairwise(order))
    ]
    assert tau_ap(truth, estimate) == pytest.approx(np.mean([textbook_tau_ap(truth, order) for order in orders]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_correlations_count_pairs_and_ranks(pairs):
    truth, estimate = np.array(pairs, dtype=float).T
    correlations = rank_correlations(truth, estimate)
    if np.ptp(truth) == 0 or np.ptp(estimate) == 0:
        assert np.isnan([correlations.tau, correlations.rho, correlations.tau_ap]).all()
        return
    pairs = list(combinations(range(len(truth)), 2))
    signs = [(np.sign(truth[i] - truth[j]), np.sign(estimate[i] - estimate[j])) for i, j in pairs]
    both, one, other = (sum(products) for products in zip(*((a * b, a * a, b * b) for a, b in signs), strict=True))
    assert correlations.tau == pytest.approx(both / (one * other) ** 0.5)
    ranks = [[np.sum(x < v) + (np.sum(x == v) - 1) / 2 for v in x] for x in (truth, estimate)]
    assert correlations.rho == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert correlations.tau_ap == pytest.approx(tau_ap(truth, estimate))


@pytest.mark.parametrize("n", [2, 3, 9])
def test_draws_at_once_have_the_correlations_of_each(n):
    truth, estimate = np.random.default_rng(n).integers(0, 4, (2, 5, 8, n)) / 4
    for statistic in (tau_b, tau_ap, rank_biased_overlap):
        each = [[statistic(*pair) for pair in zip(*rows, strict=True)] for rows in zip(truth, estimate, strict=True)]
        np.testing.assert_allclose(statistic(truth, estimate), each, rtol=1e-14)


def test_sums_in_another_order_are_ties():
    correlations = rank_correlations(np.array([0.1 + 0.2, 0.3, 0.5]), np.array([0.3, 0.3, 0.6]))
    assert (correlations.tau, correlations.rho) == (pytest.approx(1), pytest.approx(1))


def textbook_preferences(truth, low, high, estimated):
    counts = [0, 0, 0]
    for (a, b), q in product(combinations(range(len(truth)), 2), range(truth.shape[1])):
        if np.isnan([truth[a, q], truth[b, q]]).any() or not (estimated[a, q] or estimated[b, q]):
            continue
        true = int(truth[a, q] > truth[b, q]) - int(truth[a, q] < truth[b, q])
        stated = int(low[a, q] > high[b, q]) - int(high[a, q] < low[b, q])
        for place, hit in enumerate((true != 0, stated != 0, stated != 0 and true == stated)):
            counts[place] += int(hit)
    return Preferences(*counts)


@pytest.mark.parametrize("seed", range(20))
def test_preferences_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    shape = (5, 6)
    truth = rng.integers(0, 6, shape) / 5
    truth[rng.random(shape) < 0.1] = np.nan
    ends = np.sort(rng.integers(0, 6, (2, *shape)) / 5, axis=0)
    estimated = rng.random(shape) < 0.4
    assert preferences(truth, *ends, estimated) == textbook_preferences(truth, *ends, estimated)


def test_touching_ranges_state_nothing_and_what_is_stated_of_equals_is_wrong():
    truth, high = np.array([[0.7], [0.5]]), np.array([[0.9], [0.5]])
    assert preferences(truth, np.array([[0.5 + 1e-12], [0.5]]), high, True) == Preferences(1, 0, 0)
    assert preferences(truth, np.array([[0.6], [0.5]]), high, True) == Preferences(1, 1, 1)
    result = preferences(np.array([[0.5], [0.5]]), np.array([[0.6], [0.1]]), np.array([[0.7], [0.2]]), True)
    assert (result, result.precision) == (Preferences(0, 1, 0), 0)
    assert np.isnan([result.recall, Preferences(0, 0, 0).f1]).all()


@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.05, 1))
def test_f1_is_the_harmonic_mean(n_true, n_stated, share):
    result = Preferences(n_true, n_stated, max(1, int(share * min(n_true, n_stated))))
    assert result.f1 == pytest.approx(2 / (1 / result.precision + 1 / result.recall))


def test_paired_t_is_scipys_and_defined_without_spread():
    one, other = np.random.default_rng(1).random((2, 40))
    assert paired_t(one - other) == pytest.approx(tuple(stats.ttest_rel(one, other)))
    assert paired_t(np.array([0.0, 1e-17, 0.0])) == (0.0, 1.0)
    assert paired_t(np.array([0.1, 0.1, 0.1])) == (np.inf, 0.0)
    assert paired_t(np.array([-0.1, -0.1])) == (-np.inf, 0.0)


def test_bonferroni_counts_the_tests_that_were_made():
    assert bonferroni(np.array([0.01, 0.2, 0.5])).tolist() == pytest.approx([0.03, 0.6, 1.0])
    assert bonferroni(np.array([0.01, np.nan])).tolist() == pytest.approx([0.01, np.nan], nan_ok=True)


def overlap_by_hand(truth, estimate, p):
    """RBO of two rankings by sets, a tie whole from its first rank on."""
    n, total = len(truth), 0.0

    def first(scores, depth):
        return {i for i in range(n) if sum(other > scores[i] for other in scores) < depth}

    for depth in range(1, n + 1):
        one, other = first(truth, depth), first(estimate, depth)
        agreement = 2 * len(one & other) / (len(one) + len(other))
        total += (1 - p) / p * agreement * p**depth
    return total + agreement * p**n


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8), st.floats(0.1, 0.95))
def test_rank_biased_overlap_is_that_of_its_definition(pairs, p):
    truth, estimate = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    result = rank_biased_overlap(truth, estimate, p)
    assert result == pytest.approx(overlap_by_hand(truth.tolist(), estimate.tolist(), p))
    assert result == pytest.approx(rank_biased_overlap(estimate, truth, p))
    assert rank_biased_overlap(truth, truth, p) == pytest.approx(1)
    assert 0 <= result <= 1 + 1e-12
