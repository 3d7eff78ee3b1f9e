"""Paired tests: textbook loops, SciPy, identities, and type I error rates; intervals of ranks of planted systems."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.kernels import resample
from vbterrier.kernels.resample import random_signs, resampled_means, resamples, stream
from vbterrier.stats import paired_tests
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.paired_tests import (
    RESAMPLED_TESTS,
    TESTS,
    column_std,
    max_t,
    paired_p,
    rank_intervals,
    t_statistic,
    t_test,
)

RNG = np.random.default_rng(12)
# Twelve pairs on 30 topics, with zeros and ties, some of them centred at 0.
DIFFERENCES = np.round(RNG.normal(np.linspace(0, 0.15, 12), 0.3, (30, 12)), 1)
SMALL = DIFFERENCES[:7, :5]
STEPS = st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.1, 0.3, 0.7])


def p_of(differences, test="randomisation", n_resamples=999, seed=0):
    return paired_p(np.asarray(differences, dtype=float), test, n_resamples=n_resamples, seed=seed)


def one_t(d):
    """Student's t of one list of numbers."""
    n, mean = len(d), sum(d) / len(d)
    variance = sum((x - mean) ** 2 for x in d) / (n - 1)
    return mean / (variance / n) ** 0.5


def null_ts(differences, test, n_resamples, seed):
    """``|t|`` of every pair in every sign flip or resample, one after the other, shape (n_resamples, k)."""
    n, k = differences.shape
    if test == "randomisation":
        flips = np.vstack(list(random_signs(n, n_resamples, stream(seed, "sign flips"))))
        return np.array([[abs(one_t(flip * differences[:, pair])) for pair in range(k)] for flip in flips])
    counts = np.vstack(list(resamples(n, n_resamples, stream(seed, "bootstrap test")))).astype(int)
    moved = differences - differences.mean(axis=0)
    return np.array([[abs(one_t(np.repeat(moved[:, pair], count))) for pair in range(k)] for count in counts])


@pytest.mark.parametrize("test", RESAMPLED_TESTS)
def test_p_is_the_share_of_a_plain_loop_with_what_was_seen_added(test):
    result = p_of(DIFFERENCES, test, 199, seed=3)
    drawn = null_ts(DIFFERENCES, test, 199, seed=3)
    for pair, p in enumerate(result):
        seen = abs(one_t(DIFFERENCES[:, pair]))
        assert p == pytest.approx((1 + np.sum(drawn[:, pair] >= seen - 1e-9)) / 200)
    assert result.max() > 0.3
    assert result.min() < 0.06
    first, again, other = (p_of(DIFFERENCES, test, 299, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_few_topics_get_every_sign_flip_as_scipy_makes_them():
    result = p_of(SMALL, n_resamples=2**7)
    for pair, p in enumerate(result):
        peer = stats.permutation_test((SMALL[:, pair],), np.mean, permutation_type="samples", n_resamples=2**7)
        assert p == pytest.approx(peer.pvalue)
    # With one resample fewer, flips are drawn at random.
    assert p_of(SMALL, n_resamples=2**7 - 1).tolist() != result.tolist()


def test_students_t_is_scipys():
    expected = stats.ttest_1samp(DIFFERENCES, 0)
    assert p_of(DIFFERENCES, "t") == pytest.approx(expected.pvalue, rel=1e-12)
    assert t_statistic(DIFFERENCES) == pytest.approx(expected.statistic, rel=1e-12)
    assert t_statistic(DIFFERENCES, 0.1) == pytest.approx(stats.ttest_1samp(DIFFERENCES, 0.1).statistic, rel=1e-12)


def test_signed_ranks_that_differ_by_rounding_are_tied():
    # .3 - .2 and .8 - .7 are the same difference.
    a, b = np.array([0.3, 0.8, 0.5, 0.9, 0.4, 0.6]), np.array([0.2, 0.7, 0.7, 0.5, 0.1, 0.9])
    exact = np.array([0.1, 0.1, -0.2, 0.4, 0.3, -0.3])
    assert p_of((a - b)[:, None], "wilcoxon").item() == pytest.approx(p_of(exact[:, None], "wilcoxon").item())


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=12), st.sampled_from(list(TESTS)), st.sampled_from([1e-6, 0.3, 100.0]))
def test_neither_the_order_of_systems_nor_the_unit_of_the_measure_changes_p(differences, test, unit):
    column = np.array(differences)[:, None]
    p = p_of(column, test, 64)
    assert p == pytest.approx(p_of(-column, test, 64), abs=1e-12)
    assert p_of(unit * column, test, 64) == pytest.approx(p, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=8), st.randoms(), st.sampled_from(["randomisation", "t", "wilcoxon"]))
def test_the_order_of_topics_does_not_change_p(differences, random, test):
    given_order, mixed = np.array([differences]).T, np.array([random.sample(differences, len(differences))]).T
    p = p_of(given_order, test).item()
    assert p_of(np.hstack([given_order, mixed]), test) == pytest.approx([p, p])


@pytest.mark.parametrize("test", [test for test in TESTS if test != "moderated"])
def test_p_is_a_probability_that_depends_on_no_other_pair(test):
    result = p_of(DIFFERENCES, test)
    assert ((result > 0) & (result <= 1)).all()
    assert result == pytest.approx([p_of(DIFFERENCES[:, [pair]], test).item() for pair in range(12)], abs=1e-12)
    for n in (2, 3, 30):
        assert p_of(np.zeros((n, 2)), test).tolist() == [1.0, 1.0], "pairs that never differ"


def test_pairs_that_differ_by_a_constant():
    constant = np.full((20, 1), 0.3) - 0.1
    assert np.concatenate([t_statistic(constant), t_statistic(-constant)]).tolist() == [np.inf, -np.inf]
    p = {test: p_of(constant, test).item() for test in TESTS}
    # Without a range of scores, t says nothing about topics that differ otherwise.
    assert (p["t"], p["randomisation"], p["bootstrap"]) == (1.0, 1 / 1000, 1 / 1000)
    bounded = t_test(constant, moderated=True, bounds=(-1, 1))
    assert bounded.p_value.item() == pytest.approx(2 * (1 / 1.2) ** 20)
    assert 0 < p["wilcoxon"] < 1e-3
    # .3 - .1 and .7 - .5 differ by rounding alone.
    assert column_std(np.array([[0.3 - 0.1], [0.7 - 0.5]])).item() == 0.0
    assert t_statistic(constant, 0.2).tolist() == [0.0]


@pytest.mark.parametrize("test", TESTS)
def test_a_single_topic_and_one_that_differs_show_no_difference(test):
    assert p_of([[0.7, 0.0, -0.1]], test).tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(t_statistic(np.array([[0.7, 0.0]]))).all()
    if test in RESAMPLED_TESTS:
        assert np.array(max_t(np.array([[0.7, 0.0]]), test, n_resamples=99, seed=0)).tolist() == [[1.0, 1.0]] * 2
        # Resamples without the only topic that differs do not vary and are not 0: t is infinite.
        p = p_of(0.7 * np.eye(20)[:, [3]], test).item()
        assert p == 1 if test == "randomisation" else 0.3 < p <= 1


@pytest.mark.parametrize("n", [14, 60])
def test_signed_ranks_with_ties_are_asymptotic_without_a_correction_for_continuity(n):
    tied = np.round(np.random.default_rng(6).normal(0.2, 1, n), 1)
    expected = stats.wilcoxon(tied, method="asymptotic", correction=False).pvalue
    assert p_of(tied[:, None], "wilcoxon").item() == pytest.approx(expected, rel=1e-9)


def test_blocks_change_nothing_and_every_sign_flip_comes_once(monkeypatch):
    whole = [max_t(DIFFERENCES, test, n_resamples=500, seed=1) for test in RESAMPLED_TESTS]
    monkeypatch.setattr(resample, "_COUNT_BLOCK_CELLS", 30 * 70)
    monkeypatch.setattr(paired_tests, "BLOCK_CELLS", 70 * 5)
    for before, test in zip(whole, RESAMPLED_TESTS, strict=True):
        assert np.array(max_t(DIFFERENCES, test, n_resamples=500, seed=1)).tolist() == np.array(before).tolist()
    monkeypatch.setattr(paired_tests, "BLOCK_CELLS", 20)
    blocks = list(paired_tests._all_signs(5))
    assert len(blocks) == 8
    assert sorted(map(tuple, np.vstack(blocks))) == sorted(product([-1.0, 1.0], repeat=5))


def stepped(seen, drawn, extra):
    """Westfall and Young's adjustment by definition, from observed ``|t|`` and drawn ones (B, k)."""
    k, adjusted = len(seen), np.zeros(len(seen))
    for pair in range(k):
        steps = []
        for other in range(k):
            if seen[other] >= seen[pair]:
                below = [third for third in range(k) if seen[third] <= seen[other]]
                largest = drawn[:, below].max(axis=1)
                steps.append((np.sum(largest >= seen[other] - 1e-9) + extra) / (len(drawn) + extra))
        adjusted[pair] = max(steps)
    return adjusted


@pytest.mark.parametrize("test", RESAMPLED_TESTS)
def test_max_t_is_the_definition_step_by_step(test):
    p_values, adjusted = max_t(DIFFERENCES, test, n_resamples=199, seed=3)
    seen = np.array([abs(one_t(DIFFERENCES[:, pair])) for pair in range(12)])
    expected = stepped(seen, null_ts(DIFFERENCES, test, 199, seed=3), 1)
    assert adjusted == pytest.approx(expected)
    assert p_values.tolist() == p_of(DIFFERENCES, test, 199, seed=3).tolist()
    assert len(set(adjusted)) > 5


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(STEPS, min_size=6, max_size=6), min_size=2, max_size=5), st.sampled_from(RESAMPLED_TESTS))
def test_adjusted_p_is_no_smaller_than_p_and_falls_as_t_rises(columns, test):
    differences = np.array(columns).T
    p_values, adjusted = max_t(differences, test, n_resamples=99, seed=0)
    assert (adjusted >= p_values).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(np.abs(t_statistic(differences)), kind="stable")]) <= 0).all()


@pytest.mark.parametrize("test", RESAMPLED_TESTS)
def test_one_pair_alone_and_pairs_that_are_one_need_no_adjustment(test):
    p_values, adjusted = max_t(DIFFERENCES[:, [7]], test, n_resamples=99, seed=0)
    assert adjusted.tolist() == p_values.tolist()
    twice = np.hstack([DIFFERENCES[:, [7]], 2 * DIFFERENCES[:, [7]], -DIFFERENCES[:, [7]]])
    assert np.array(max_t(twice, test, n_resamples=99, seed=0)).ravel() == pytest.approx([p_values.item()] * 6)


def often_zero(rng, shape):
    """Scores similar to ES: every other topic is 0."""
    return rng.beta(2, 3, shape) * (rng.random(shape) < 0.5)


@pytest.mark.parametrize("n", [25, 50])
@pytest.mark.parametrize("test", TESTS)
def test_the_type_i_error_rate_is_5_percent(test, n):
    # Skewed scores with many zeros and equal distributions: 10 batches of 400 pairs with separate resamples.
    rng = np.random.default_rng(21)
    lots = [often_zero(rng, (n, 400)) - often_zero(rng, (n, 400)) for _ in range(10)]
    alarms = np.concatenate([p_of(lot, test, 999, seed) for seed, lot in enumerate(lots)]) <= 0.05
    assert stats.binomtest(int(alarms.sum()), alarms.size, 0.05).pvalue > 0.001, alarms.mean()


@pytest.mark.parametrize("test", TESTS)
def test_discrete_scores_raise_no_more_false_alarms(test):
    rng = np.random.default_rng(22)
    grades = rng.choice([0, 0.5, 1], p=[0.6, 0.3, 0.1], size=(2, 25, 4000))
    lots = np.split(grades[0] - grades[1], 10, axis=1)
    alarms = np.concatenate([p_of(lot, test, 999, seed) for seed, lot in enumerate(lots)]) <= 0.05
    assert stats.binomtest(int(alarms.sum()), alarms.size, 0.05, alternative="greater").pvalue > 0.001, alarms.mean()


# Intervals of ranks, and pairs that differ

LEVEL = 0.9


def planted(rng, n_systems, n_topics, spread):
    """True means, and scores of topics with effects of the topic and of each system on it, shape (n, S)."""
    true = rng.normal(0.5, spread, n_systems)
    hard, effect = rng.normal(0, 0.15, (n_topics, 1)), rng.normal(0, 0.15, (n_topics, n_systems))
    return true, true + hard + effect * rng.choice([0.5, 1.0, 1.8], (n_topics, 1))


@pytest.mark.slow
@pytest.mark.parametrize(("n_topics", "spread"), [(25, 0.08), (50, 0.02)])
def test_intervals_cover_the_rank_of_each_system_and_no_pair_is_in_the_wrong_order(n_topics, spread):
    n, covered, ordered, widths = 150, 0, 0, []
    for seed in range(n):
        rng = stream(seed, "planted")
        true, scores = planted(rng, 12, n_topics, spread)
        draws = resampled_means(scores, 500, rng).T
        inflation = np.sqrt(n_topics / (n_topics - 1))
        ranks = rank_intervals(scores.mean(axis=0), draws, LEVEL, df=n_topics - 1, inflation=inflation)
        rank = 1 + (true > true[:, None]).sum(axis=1)
        # One system of each collection, because systems of a collection are dependent.
        covered += bool(ranks.low[0] <= rank[0] <= ranks.high[0])
        ordered += not (ranks.better & (true[:, None] < true)).any()
        widths.append(np.mean(ranks.high - ranks.low))
    for hits in (covered, ordered):
        assert share_interval(hits, n, 0.999)[1] >= LEVEL
    # Intervals that exclude nothing would cover, too.
    assert np.mean(widths) < 10.9


def test_a_system_far_above_or_below_has_one_rank():
    draws = np.random.default_rng(1).normal([[0.1], [0.9], [0.5], [0.5]], 0.02, (4, 400))
    ranks = rank_intervals(np.array([0.1, 0.9, 0.5, 0.5]), draws, LEVEL)
    assert ranks.low.tolist() == [4, 1, 2, 2]
    assert ranks.high.tolist() == [4, 1, 3, 3]
    assert ranks.better.sum() == 5
    assert ranks.better[1, [0, 2, 3]].all()
    assert ranks.better[[2, 3], 0].all()


def test_the_critical_value_is_that_of_the_largest_difference():
    """Of two systems, the pair decides: an ordinary interval of the difference."""
    draws = np.random.default_rng(2).normal(0, 0.1, (2, 20_000))
    spread = (draws[0] - draws[1]).std()
    for df in (np.inf, 9):
        edge = (stats.norm if df == np.inf else stats.t(df)).ppf((1 + LEVEL) / 2) * spread
        for factor, differ in ((0.97, False), (1.03, True)):
            ranks = rank_intervals(np.array([edge * factor, 0.0]), draws, LEVEL, df=df)
            assert ranks.better[0, 1] == differ
            assert ranks.high.tolist() == [2 - differ, 2]


def test_certain_differences_separate_and_certain_ties_do_not():
    draws = np.tile([[0.3], [0.2], [0.2]], (1, 100))
    ranks = rank_intervals(draws[:, 0], draws, LEVEL)
    assert ranks.low.tolist() == [1, 2, 2]
    assert ranks.high.tolist() == [1, 3, 3]


@given(st.integers(0, 1000))
def test_the_order_of_systems_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    draws = rng.normal(rng.normal(0, 0.1, (6, 1)), 0.05, (6, 50))
    order = rng.permutation(6)
    one, other = (rank_intervals(each.mean(axis=1), each, LEVEL) for each in (draws, draws[order]))
    for name in ("low", "high"):
        assert getattr(one, name)[order].tolist() == getattr(other, name).tolist()
    assert one.better[np.ix_(order, order)].tolist() == other.better.tolist()
