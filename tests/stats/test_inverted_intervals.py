"""Intervals of differences that invert the reported test, and intervals that remain valid after every topic."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.kernels.resample import constant_limits
from vbterrier.stats.comparisons import comparisons, is_significant
from vbterrier.stats.inverted_intervals import (
    confidence_sequence,
    corrected_levels,
    effect_limits,
    inverted_limits,
    spent_level,
)
from vbterrier.stats.paired_tests import TESTS, paired_p, t_test

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
CORRECTIONS = [(test, by) for test in TESTS for by in ("none", "bonferroni", "bh")]


def limits(differences, test, level=0.95, *, n_resamples=499, seed=3, bounds=(-np.inf, np.inf)):
    """The interval of one column, without a correction."""
    column = np.asarray(differences, dtype=float)[:, None]
    p = paired_p(column, test, n_resamples=n_resamples, seed=seed)
    options = {"n_resamples": n_resamples, "seed": seed}
    low, high = inverted_limits(column, test, np.array([1 - level]), p <= 1 - level, bounds, **options)
    return low.item(), high.item()


def scores(kind, n, k, rng):
    base = rng.random((n, 1))
    if kind == "continuous":
        return np.clip(base + rng.normal(0, 0.1, (n, k)) + 0.05 * rng.integers(0, 2, k), 0, 1)
    if kind == "discrete":
        return np.round(np.clip(base + rng.normal(0.1, 0.2, (n, k)), 0, 1), 1)
    return (rng.random((n, k)) < 0.1) * 1.0


@pytest.mark.parametrize(("test", "correction"), CORRECTIONS)
@pytest.mark.parametrize("kind", ["continuous", "discrete", "sparse"])
def test_an_interval_excludes_0_only_if_the_test_rejects(test, correction, kind):
    rng, n_open = np.random.default_rng(8), 0
    for n in (2, 3, 8, 20, 40):
        table = scores(kind, n, 5, rng)
        columns = {"name": np.repeat([*"abcde"], n), "qid": np.tile([*map(str, range(n))], 5), "measure": "P@10"}
        frame = pd.DataFrame(columns).assign(value=table.T.ravel())
        pairs = comparisons(frame, test=test, correction=correction, n_resamples=499, seed=n)
        rejected = is_significant(pairs["p_adjusted"], pairs["level"])
        excludes = (pairs["low"] > 0) | (pairs["high"] < 0)
        effects = (pairs["effect_low"] > 0) | (pairs["effect_high"] < 0)
        assert not (effects & ~rejected).any()
        # A limit of 0 is the open end of the interval of a rejected difference.
        at_zero = (pairs["low"] == 0) | (pairs["high"] == 0)
        assert not (excludes & ~rejected).any()
        assert (excludes | at_zero)[rejected].all()
        assert (pairs["low"] < pairs["high"]).all()
        assert pairs["low"].min() >= -1
        assert pairs["high"].max() <= 1
        n_open += int((rejected & at_zero).sum())
    # Truncation at 0 is the exception.
    assert n_open < 6


@settings(max_examples=60, deadline=None)
@given(
    differences=st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.1, 0.2, 0.33, -0.7, 1.0]), min_size=3, max_size=9),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
)
def test_limits_of_all_sign_flips_are_where_the_test_begins_to_reject(differences, level):
    if np.ptp(differences) == 0:
        return
    d = np.array(differences)
    low, high = limits(d, "randomisation", level, n_resamples=1000)

    def rejects(shift):
        return paired_p((d - shift)[:, None], "randomisation", n_resamples=1000, seed=0)[0] <= 1 - level + 1e-12

    for limit, outside in ((low, -1e-6), (high, 1e-6)):
        if np.isinf(limit):
            assert not rejects(1e12 * outside)
        elif limit != 0:
            # Next to the limit, equal means of flips differ by more than rounding.
            assert rejects(limit + outside)
            assert not rejects(limit - outside)


def test_random_flips_reject_outside_the_limits():
    d = np.random.default_rng(4).normal(0.02, 0.1, 40)
    low, high = limits(d, "randomisation")
    for limit, outside in ((low, -1), (high, 1)):
        for shift, expected in ((limit + outside * 1e-7, True), (limit - outside * 1e-7, False)):
            p = paired_p((d - shift)[:, None], "randomisation", n_resamples=499, seed=3)[0]
            assert (p <= 0.05) == expected
    # Of normal differences, nearly Student's interval.
    assert (low, high) == pytest.approx(stats.ttest_1samp(d, 0).confidence_interval(), abs=0.006)


def test_t_and_bootstrap_are_symmetric_intervals_of_their_statistics():
    d = np.random.default_rng(5).normal(0.2, 1, 20)
    assert limits(d, "t") == pytest.approx(stats.ttest_1samp(d, 0).confidence_interval())
    low, high = limits(d, "bootstrap")
    assert d.mean() - low == pytest.approx(high - d.mean())
    for shift, expected in ((low - 1e-9, True), (low + 1e-9, False)):
        assert (paired_p((d - shift)[:, None], "bootstrap", n_resamples=499, seed=3)[0] <= 0.05) == expected


@pytest.mark.parametrize("n", [6, 12, 30, 80])
def test_signed_ranks_give_the_walsh_averages(n):
    d = np.random.default_rng(n).normal(0.1, 1, n)
    low, high = limits(d, "wilcoxon")
    averages = np.sort(((d[:, None] + d) / 2)[np.triu_indices(n)])
    for limit in (low, high):
        assert np.abs(averages - limit).min() < 1e-9
    assert stats.wilcoxon(d - (low - 1e-6)).pvalue <= 0.05 < stats.wilcoxon(d - (low + 1e-6)).pvalue
    assert stats.wilcoxon(d - (high + 1e-6)).pvalue <= 0.05 < stats.wilcoxon(d - (high - 1e-6)).pvalue


@pytest.mark.parametrize("test", ["randomisation", "wilcoxon"])
def test_few_topics_exclude_no_difference(test):
    # Of 32 flips, 2 are the most extreme: p is at least .0625.
    d = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert limits(d, test) == (-np.inf, np.inf)
    assert limits(d, test, bounds=(-1.0, 1.0)) == (-1, 1)
    assert limits([*d, 0.6], test) == pytest.approx((0.1, 0.6))


def test_equal_differences_have_the_limits_of_bounded_scores():
    tails = [0.025, 0.975]
    # Without a difference, limits are symmetric.
    assert limits([0.0] * 10, "t", bounds=(-1.0, 1.0)) == pytest.approx((-1 + 0.025**0.1, 1 - 0.025**0.1))
    low, high = constant_limits(0.2, 10, (-1.0, 1.0), tails)
    assert low == pytest.approx(0.2 - 1.2 * (1 - 0.025**0.1))
    # A rejected difference ends the interval at 0.
    assert limits([0.2] * 10, "randomisation", n_resamples=2000, bounds=(-1.0, 1.0)) == (0.0, pytest.approx(high))
    single = np.ones((1, 1)), "t", np.array([0.05]), np.array([False]), (-1, 1)
    assert np.isnan(inverted_limits(*single, n_resamples=9, seed=0)).all()


def test_levels_of_corrections():
    adjusted = np.array([0.01, 0.03, 0.2, 0.9])
    assert corrected_levels(adjusted, "none", 0.05).tolist() == [0.05] * 4
    for by in ("bonferroni", "holm", "max-t"):
        assert corrected_levels(adjusted, by, 0.05).tolist() == [0.0125] * 4
    # Two tests are rejected.
    assert corrected_levels(adjusted, "bh", 0.05).tolist() == [0.025] * 4
    assert corrected_levels(adjusted + 0.1, "bh", 0.05).tolist() == [0.0125] * 4


def test_effect_sizes_have_intervals_by_the_noncentral_t():
    d = np.random.default_rng(6).normal(0.3, 1, (15, 3))
    p = stats.ttest_1samp(d, 0).pvalue
    low, high = effect_limits(t_test(d, moderated=False), np.full(3, 0.1), p <= 0.1)
    for place, t in enumerate(stats.ttest_1samp(d, 0).statistic):
        for limit, tail in ((low[place], 0.95), (high[place], 0.05)):
            root = optimize.brentq(lambda nc, t=t, tail=tail: stats.nct.cdf(t, 14, nc) - tail, -30, 30)
            assert limit == pytest.approx(root / 15**0.5, abs=1e-6)
    # Equal differences have no spread; an interval of the effect excludes 0 exactly if t rejects.
    constant = t_test(np.ones((5, 1)), moderated=False)
    assert np.isnan(effect_limits(constant, np.array([0.05]), np.array([True]))).all()
    result = effect_limits(t_test(d, moderated=False), p, np.ones(3, bool))
    assert np.abs(result).min(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)


def test_a_single_topic_has_no_interval():
    frame = pd.DataFrame({"name": ["a", "b"], "qid": "1", "measure": "AP", "value": [0.2, 0.4]})
    with pytest.warns(DegenerateWarning, match="at least two topics"):
        row = comparisons(frame).iloc[0]
    assert row[["low", "high", "effect_low", "effect_high"]].isna().all()


# Confidence sequences
KINDS = {
    "uniform": lambda rng, n: rng.random(n) - 0.5,
    "sparse": lambda rng, n: (rng.random(n) < 0.05) - 0.05,
    "binary": lambda rng, n: (rng.random(n) < 0.5) - 0.5,
    "skewed": lambda rng, n: rng.beta(0.3, 2, n) - 0.3 / 2.3,
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_all_intervals_together_contain_the_mean_as_often_as_they_say(kind):
    rng, n, n_samples = np.random.default_rng(1), 120, 200
    missed = peeked = 0
    for _ in range(n_samples):
        x = KINDS[kind](rng, n)
        sequence = confidence_sequence(x, bounds=(-1, 1), level=0.9)
        missed += int(((sequence["low"] > 0) | (sequence["high"] < 0)).any())
        sizes = np.arange(5, n + 1)
        means = np.cumsum(x)[4:] / sizes
        std = np.sqrt(np.maximum(np.cumsum(x**2)[4:] / sizes - means**2, 1e-12) * sizes / (sizes - 1))
        peeked += int((np.abs(means) > stats.t.ppf(0.95, sizes - 1) * std / sizes**0.5).any())
    assert stats.binom.sf(missed - 1, n_samples, 0.1) > 1e-3
    # An ordinary interval excludes the mean at some time in far more samples.
    assert peeked > 0.35 * n_samples


def test_weighted_sequences_follow_equal_weights_and_bets_one_by_one():
    rng = np.random.default_rng(5)
    x, w = rng.random(40), rng.uniform(0.2, 1, 40)
    assert confidence_sequence(x, weights=np.full(40, 7.0)).equals(confidence_sequence(x))
    sequence = confidence_sequence(x, weights=w)
    assert sequence["value"].to_numpy() == pytest.approx(np.cumsum(w * x) / np.cumsum(w))
    u, means, alpha = w / w.max(), np.linspace(0, 1, 2001), 0.05
    more = less = np.ones(2001)
    mean, squares, low, high = 0.5, 0.25, 0.0, 1.0
    for at, (value, weight) in enumerate(zip(x, u, strict=True), 1):
        bet = np.sqrt(2 * np.log(2 / alpha) / (squares / at * at * np.log(at + 1)))
        with np.errstate(divide="ignore"):
            more = more * (1 + np.minimum(bet, 0.5 / means) * weight * (value - means))
            less = less * (1 - np.minimum(bet, 0.5 / (1 - means)) * weight * (value - means))
        left = means[np.maximum(more, less) < 2 / alpha]
        low, high = max(low, left.min() - 0.0005), min(high, left.max() + 0.0005)
        assert sequence.loc[at - 1, ["low", "high"]].tolist() == pytest.approx([low, high], abs=1e-9)
        mean = ((u * x)[:at].sum() + 0.5) / (u[:at].sum() + 1)
        squares += (weight * (value - mean)) ** 2


def test_intervals_narrow_and_follow_the_bounds():
    x = np.random.default_rng(5).random(700)
    sequence = confidence_sequence(x, level=0.9)
    assert sequence["n_qids"].tolist() == list(range(1, 701))
    assert sequence["value"].to_numpy() == pytest.approx(np.cumsum(x) / np.arange(1, 701))
    assert sequence["low"].is_monotonic_increasing
    assert sequence["high"].is_monotonic_decreasing
    moved = confidence_sequence(4 * x - 2, level=0.9, bounds=(-2, 2))
    assert moved[["low", "high"]].to_numpy() == pytest.approx(4 * sequence[["low", "high"]].to_numpy() - 2)
    # The first 100 intervals know nothing of later topics.
    assert confidence_sequence(x[:100], level=0.9).equals(sequence.head(100))


def test_levels_of_all_looks_together_spend_the_error_once():
    spent = sum(1 - spent_level(0.9, look) for look in range(1, 20_000))
    assert spent == pytest.approx(0.1, abs=1e-4)
    with pytest.raises(ParameterError, match="look=0"):
        spent_level(0.9, 0)


def test_limits_by_sign_flips_are_those_of_each_difference_alone_however_many_are_flipped_at_a_time(monkeypatch):
    differences = np.random.default_rng(2).normal(size=(15, 7))

    def limits_of(columns):
        k, how = len(columns), {"n_resamples": 300, "seed": 1}
        bounds = (-np.inf, np.inf)
        return inverted_limits(
            differences[:, columns], "randomisation", np.full(k, 0.05), np.zeros(k, bool), bounds, **how
        )

    alone = np.column_stack([limits_of([place]) for place in range(7)])
    for most in (1, 1000, 4_000_000):
        monkeypatch.setattr("vbterrier.stats.inverted_intervals.BLOCK_CELLS", most)
        np.testing.assert_allclose(limits_of([*range(7)]), alone, rtol=1e-12)
