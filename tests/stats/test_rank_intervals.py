"""Intervals of ranks and tiers, on planted systems."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vbterrier.kernels.resample import resampled_means, stream
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.paired_tests import rank_intervals

LEVEL = 0.9


def planted(rng, n_systems, n_topics, spread):
    """True means, and scores of topics with effects of the topic and of each system on it, shape (n, S)."""
    true = rng.normal(0.5, spread, n_systems)
    hard, own = rng.normal(0, 0.15, (n_topics, 1)), rng.normal(0, 0.15, (n_topics, n_systems))
    return true, true + hard + own * rng.choice([0.5, 1.0, 1.8], (n_topics, 1))


@pytest.mark.parametrize(("n_topics", "spread"), [(25, 0.08), (50, 0.02)])
def test_intervals_cover_the_rank_of_each_system_and_no_pair_is_in_the_wrong_order(n_topics, spread):
    n, covered, ordered, widths = 150, 0, 0, []
    for seed in range(n):
        rng = stream(seed, "planted")
        true, scores = planted(rng, 12, n_topics, spread)
        draws = resampled_means(scores, 500, rng).T
        inflation = np.sqrt(n_topics / (n_topics - 1))
        found = rank_intervals(scores.mean(axis=0), draws, LEVEL, df=n_topics - 1, inflation=inflation)
        rank = 1 + (true > true[:, None]).sum(axis=1)
        # One system of each collection, because systems of a collection are dependent.
        covered += bool(found.low[0] <= rank[0] <= found.high[0])
        ordered += not (found.better & (true[:, None] < true)).any()
        widths.append(np.mean(found.high - found.low))
    for hits in (covered, ordered):
        assert share_interval(hits, n, 0.999)[1] >= LEVEL
    # Intervals that exclude nothing would cover, too.
    assert np.mean(widths) < 10.9


def test_a_system_far_above_or_below_has_one_rank():
    draws = np.random.default_rng(1).normal([[0.1], [0.9], [0.5], [0.5]], 0.02, (4, 400))
    found = rank_intervals(np.array([0.1, 0.9, 0.5, 0.5]), draws, LEVEL)
    assert found.low.tolist() == [4, 1, 2, 2]
    assert found.high.tolist() == [4, 1, 3, 3]
    assert found.tier.tolist() == [3, 1, 2, 2]


def test_the_critical_value_is_that_of_the_largest_difference():
    """Of two systems, the pair decides: an ordinary interval of the difference."""
    draws = np.random.default_rng(2).normal(0, 0.1, (2, 20_000))
    spread = (draws[0] - draws[1]).std()
    for df in (np.inf, 9):
        edge = (stats.norm if df == np.inf else stats.t(df)).ppf((1 + LEVEL) / 2) * spread
        for factor, differ in ((0.97, False), (1.03, True)):
            found = rank_intervals(np.array([edge * factor, 0.0]), draws, LEVEL, df=df)
            assert found.better[0, 1] == differ
            assert found.tier.tolist() == [1, 1 + differ]
            assert found.high.tolist() == [2 - differ, 2]


def test_certain_differences_separate_and_certain_ties_do_not():
    draws = np.tile([[0.3], [0.2], [0.2]], (1, 100))
    found = rank_intervals(draws[:, 0], draws, LEVEL)
    assert found.low.tolist() == [1, 2, 2]
    assert found.high.tolist() == [1, 3, 3]


@given(st.integers(0, 1000), st.integers(2, 9))
def test_tiers_are_the_fewest_consecutive_sets_without_a_significant_pair(seed, n):
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 0.1, n)
    found = rank_intervals(means, rng.normal(means[:, None], rng.uniform(0.005, 0.1, (n, 1)), (n, 60)), 0.8)
    order = np.argsort(-means)
    tiers = found.tier[order]
    assert (np.diff(tiers) >= 0).all()
    assert tiers[0] == 1

    def legal(cuts):
        parts = np.split(order, cuts)
        return not any(found.better[np.ix_(part, part)].any() for part in parts)

    assert legal(np.flatnonzero(np.diff(tiers)) + 1)
    fewer = (cuts for k in range(tiers[-1] - 1) for cuts in itertools.combinations(range(1, n), k))
    assert not any(legal(list(cuts)) for cuts in fewer)
    assert not (found.better & found.better.T).any()


@given(st.integers(0, 1000))
def test_the_order_of_systems_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    draws = rng.normal(rng.normal(0, 0.1, (6, 1)), 0.05, (6, 50))
    order = rng.permutation(6)
    one, other = (rank_intervals(each.mean(axis=1), each, LEVEL) for each in (draws, draws[order]))
    for name in ("low", "high", "tier"):
        assert getattr(one, name)[order].tolist() == getattr(other, name).tolist()
