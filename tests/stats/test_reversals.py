"""Limits of the share of pairs that a judge reverses, and of the shift of its scores."""

import numpy as np
import pytest
from scipy import stats

from vbterrier.stats.reversals import order_limits, shift_limits, topics_for_order, topics_for_shift

MARGIN = 0.02


def planted(rng, *, n_systems=12, n_topics=60, spread=0.05, noise=0.1, reversal=0.0):
    """Scores by humans and by a judge, shape (S, T); ``reversal``: the shift of a third of the systems, the worst."""
    quality = np.sort(rng.normal(0.5, spread, n_systems))
    human = quality[:, None] + rng.normal(0, 0.15, (n_systems, n_topics))
    shift = np.where(np.arange(n_systems) < n_systems // 3, reversal, 0.0)
    return human, human + shift[:, None] + rng.normal(0, noise, human.shape)


def true_share(human, judge):
    a, b = np.triu_indices(len(human), 1)
    gap, true = (each.mean(axis=1)[a] - each.mean(axis=1)[b] for each in (judge, human))
    apart = np.abs(gap) >= MARGIN
    return (apart & (gap * true < 0) & (np.abs(true) > MARGIN)).sum() / apart.sum()


def test_complete_collections_have_no_uncertainty():
    human, judge = planted(np.random.default_rng(0), reversal=0.2)
    result = order_limits(judge.mean(axis=1), human - judge, 60, MARGIN)
    assert result.share == result.low == result.high == pytest.approx(true_share(human, judge))
    assert result.share > 0.2
    better, worse = result.pairs[:, result.reversed_pairs]
    assert (judge.mean(axis=1)[better] - judge.mean(axis=1)[worse] >= MARGIN).all()
    assert (human.mean(axis=1)[worse] - human.mean(axis=1)[better] > MARGIN).all()
    assert len(better) == round(result.share * len(result.gap))
    assert result.corrected[result.reversed_pairs].tolist() == sorted(result.corrected[result.reversed_pairs].tolist())


def test_pairs_are_those_that_the_judge_separates():
    judge, corrections = np.array([0.5, 0.51, 0.6]), np.zeros((3, 12))
    result = order_limits(judge, corrections, 40, MARGIN)
    assert result.pairs.tolist() == [[2, 2], [0, 1]]
    assert result.gap == pytest.approx([0.1, 0.09])
    assert (result.share, result.low, result.high) == (0, 0, 0)
    nothing = order_limits(judge, corrections, 40, 0.2)
    assert nothing.pairs.shape == (2, 0)
    assert np.isnan([nothing.share, nothing.low, nothing.high]).all()


def test_names_and_order_of_systems_and_topics_change_nothing():
    rng = np.random.default_rng(1)
    human, judge = planted(rng, reversal=0.1)
    corrections, order, topics = (human - judge)[:, :15], rng.permutation(12), rng.permutation(15)
    one = order_limits(judge.mean(axis=1), corrections, 60, MARGIN)
    other = order_limits(judge.mean(axis=1)[order], corrections[order][:, topics], 60, MARGIN)
    assert (one.share, one.low, one.high) == (other.share, other.low, other.high)
    assert 0 < one.low < one.share < one.high < 1


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_noise_of_close_systems_reverses_none(noise):
    """The judge errs by noise alone; quantiles of resampled shares would condemn it in most samples."""
    rng, condemned, trusted = np.random.default_rng(2), 0, 0
    n_samples = 60
    for seed in range(n_samples):
        human, judge = planted(rng, spread=0.03, noise=noise, n_topics=200)
        assert true_share(human, judge) <= 0.1
        result = order_limits(judge.mean(axis=1), (human - judge)[:, :10], 200, MARGIN, n_draws=300, seed=seed)
        condemned += result.low > 0.1
        trusted += result.high <= 0.1
    assert stats.binom.sf(condemned - 1, n_samples, 0.06) > 1e-3
    assert trusted < n_samples


@pytest.mark.parametrize(("k", "least"), [(10, 0.75), (25, 0.95)])
def test_a_judge_that_lifts_bad_systems_is_condemned_and_never_trusted(k, least):
    rng, condemned = np.random.default_rng(3), 0
    for seed in range(40):
        human, judge = planted(rng, reversal=0.15)
        assert true_share(human, judge) > 0.15
        result = order_limits(judge.mean(axis=1), (human - judge)[:, :k], 60, MARGIN, n_draws=300, seed=seed)
        assert result.high > 0.1
        condemned += result.low > 0.1
    assert condemned >= least * 40


def test_pairs_shown_reversed_are_a_lower_limit():
    """Humans see the worst of six systems as the best, and noise as large as the other differences."""
    for seed in (1, 10, 18):
        corrections = np.random.default_rng(seed).normal(0, 0.12, (6, 12))
        corrections[0] += 0.28
        result = order_limits(np.linspace(0.5, 0.65, 6), corrections, 100, MARGIN)
        assert set(result.pairs[1, result.reversed_pairs]) == {0}
        assert result.low == len(result.reversed_pairs) / len(result.gap) >= 0.2


def test_intervals_of_pairs_are_moderated_and_simultaneous():
    corrections = np.random.default_rng(5).normal(0, [[0.1], [0.2], [0.001]], (3, 8))
    result = order_limits(np.array([0.1, 0.5, 0.9]), corrections, 80, MARGIN)
    each = corrections[result.pairs[0]] - corrections[result.pairs[1]]
    variance = each.var(axis=1, ddof=1)
    moderated = np.maximum(variance, (7 * variance + 4 * np.median(variance)) / 11)
    assert (moderated > variance).any()
    expected = stats.t.ppf(1 - 0.05 / 6, 7) * np.sqrt(moderated / 8 * 0.9)
    assert result.half == pytest.approx(expected)


def test_more_topics_decide():
    human, judge = planted(np.random.default_rng(6), spread=0.04, noise=0.15)
    corrections = (human - judge)[:, :10]
    result = order_limits(judge.mean(axis=1), corrections, 60, MARGIN)
    assert result.low <= 0.1 < result.high
    n = topics_for_order(judge.mean(axis=1), corrections, 60, MARGIN, 0.1)
    assert 10 < n <= 60
    assert topics_for_order(judge.mean(axis=1), corrections / 10, 60, MARGIN, 0.1) < n


def test_shifts_have_simultaneous_intervals():
    corrections = np.random.default_rng(7).normal(0.01, 0.05, (4, 12))
    half = shift_limits(corrections, 48)
    expected = stats.t.ppf(1 - 0.05 / 8, 11) * corrections.std(axis=1, ddof=1) / np.sqrt(12) * np.sqrt(0.75)
    assert half == pytest.approx(expected)
    assert (shift_limits(corrections, 12) == 0).all()
    assert np.isinf(shift_limits(corrections[:, :1], 12)).all()
    shift = np.abs(corrections.mean(axis=1))
    n = topics_for_shift(corrections, 48, 0.04)
    inside = [(shift + shift_limits(corrections, 48, n_topics=m) <= 0.04).all() for m in (n - 1, n)]
    assert inside == [False, True]
