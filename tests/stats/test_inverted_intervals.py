"""Intervals of differences that invert the reported test."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import constant_limits
from vbterrier.stats.comparisons import comparisons, is_significant
from vbterrier.stats.inverted_intervals import corrected_levels, effect_limits, inverted_limits
from vbterrier.stats.paired_tests import TESTS, max_t, paired_p, simultaneous_level

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
CORRECTIONS = [
    (test, by)
    for test in TESTS
    for by in ("none", "holm", "bh", "max-t")
    if by != "max-t" or test in {"randomisation", "bootstrap"}
]


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
    for n in (2, 3, 5, 8, 12, 20, 30, 40):
        table = scores(kind, n, 5, rng)
        columns = {"name": np.repeat([*"abcde"], n), "qid": np.tile([*map(str, range(n))], 5), "measure": "P@10"}
        frame = pd.DataFrame(columns).assign(value=table.T.ravel())
        found = comparisons(frame, test=test, correction=correction, n_resamples=499, seed=n)
        rejected = is_significant(found["p_adjusted"], found["level"])
        excludes = (found["low"] > 0) | (found["high"] < 0)
        # A limit of 0 is the open end of the interval of a rejected difference.
        at_zero = (found["low"] == 0) | (found["high"] == 0)
        assert not (excludes & ~rejected).any()
        assert (excludes | at_zero)[rejected].all()
        assert (found["low"] < found["high"]).all()
        assert found["low"].min() >= -1
        assert found["high"].max() <= 1
        n_open += int((rejected & at_zero).sum())
    # Truncation at 0 is the exception.
    assert n_open < 25


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

    if np.isinf(low):
        assert not rejects(-1e6)
    elif low != 0:
        # Next to the limit, equal means of flips differ by more than rounding.
        assert rejects(low - 1e-6)
        assert not rejects(low + 1e-6)
    if np.isinf(high):
        assert not rejects(1e6)
    elif high != 0:
        assert rejects(high + 1e-6)
        assert not rejects(high - 1e-6)


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
    assert np.isnan(
        inverted_limits(np.ones((1, 1)), "t", np.array([0.05]), np.array([False]), (-1, 1), n_resamples=9, seed=0)
    ).all()


def test_levels_of_corrections():
    adjusted = np.array([0.01, 0.03, 0.2, 0.9])
    assert corrected_levels(adjusted, "none", 0.05).tolist() == [0.05] * 4
    assert corrected_levels(adjusted, "holm", 0.05).tolist() == [0.0125] * 4
    # Two tests are rejected.
    assert corrected_levels(adjusted, "bh", 0.05).tolist() == [0.025] * 4
    assert corrected_levels(adjusted + 0.1, "bh", 0.05).tolist() == [0.0125] * 4


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_the_simultaneous_level_is_that_of_a_single_step(test):
    rng = np.random.default_rng(2)
    # One column alone has nearly its own level; copies of it share it; independent columns have about Bonferroni's.
    one = rng.normal(size=(60, 1))
    options = {"n_resamples": 3999, "seed": 1}
    alone = simultaneous_level(one, test, 0.05, **options)
    assert alone == pytest.approx(0.05, abs=0.012)
    assert simultaneous_level(np.repeat(one, 4, axis=1), test, 0.05, **options) == pytest.approx(alone, abs=1e-9)
    apart = simultaneous_level(rng.normal(size=(60, 6)), test, 0.05, **options)
    assert apart == pytest.approx(1 - 0.95 ** (1 / 6), abs=0.003)
    # The true differences decide nothing.
    d = rng.normal(size=(60, 6))
    both = [simultaneous_level(d + shift, test, 0.05, **options) for shift in (0.0, 0.8)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    # Without differences among the others, the largest is rejected nearly if its interval excludes 0.
    for shift in (0.0, 0.2, 0.6, 0.8):
        d = rng.normal(size=(60, 6)) + shift * np.array([1, 0, 0, 0, 0, 0])
        _, adjusted = max_t(d, test, **options)
        level = simultaneous_level(d, test, 0.05, **options)
        p = stats.ttest_1samp(d, 0).pvalue
        assert (p.min() <= level) == (adjusted.min() <= 0.05)
    assert simultaneous_level(one[:3], test, 0.001, n_resamples=99, seed=0) == 0


def test_effect_sizes_have_intervals_by_the_noncentral_t():
    d = np.random.default_rng(6).normal(0.3, 1, (15, 3))
    low, high = effect_limits(d, np.full(3, 0.1))
    for place, t in enumerate(stats.ttest_1samp(d, 0).statistic):
        for limit, tail in ((low[place], 0.95), (high[place], 0.05)):
            root = optimize.brentq(lambda nc, t=t, tail=tail: stats.nct.cdf(t, 14, nc) - tail, -30, 30)
            assert limit == pytest.approx(root / 15**0.5, abs=1e-6)
    # Equal differences have no spread; an interval of the effect excludes 0 exactly if t rejects.
    assert np.isnan(effect_limits(np.ones((5, 1)), np.array([0.05]))).all()
    found = effect_limits(d, stats.ttest_1samp(d, 0).pvalue)
    assert np.abs(found).min(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)


def test_a_single_topic_has_no_interval():
    frame = pd.DataFrame({"name": ["a", "b"], "qid": "1", "measure": "AP", "value": [0.2, 0.4]})
    with pytest.warns(DegenerateWarning, match="at least two topics"):
        found = comparisons(frame).iloc[0]
    assert found[["low", "high", "effect_low", "effect_high"]].isna().all()
