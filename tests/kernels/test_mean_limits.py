"""Limits of means: against a loop over the formulas, in closed form, continuous, inverted, and simulated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from vbterrier.kernels import mean_limits
from vbterrier.kernels.mean_limits import (
    Covariate,
    Moments,
    SampledQueries,
    _with_another_loss,
    drawn_errors,
    exponents,
    limit_of_seen,
    lower_limit,
    moments,
    p_value,
    skewed_quantiles,
    smallest_number,
    tail_index,
    upper_limit,
)

DIFFERENCES = arrays(np.float64, st.integers(3, 30), elements=st.floats(-1, 1).map(lambda x: round(x, 6) + 0.0))
RARE = np.where(np.arange(100) < 2, -0.9, np.linspace(-0.02, 0.03, 100))


def lower(x, tail=0.05, worst=1.0, **about):
    return float(lower_limit(moments(np.asarray(x, float)[:, None], **about), tail, worst, special.stdtrit)[0])


def p_of(x, null, worst=1.0, **about):
    return float(p_value(moments(np.asarray(x, float)[:, None], **about), null, worst, special.stdtr)[0])


def by_loop(x, w, tail, worst):
    """The limit as printed: moments, one more loss, Wilson-Hilferty, and unseen queries, at 2,001 shares."""
    a = np.asarray(w) / np.sum(w)
    mean = sum(a * x)
    e = x - mean
    v, m = sum(a**2 * e**2 / (1 - a)), sum(a**3 * e**3)
    center = np.eye(len(x)) - np.outer(np.ones(len(x)), a)
    spread = center @ center.T
    q = a**2 / (1 - a)
    df = (q @ np.diag(spread)) ** 2 / (q @ spread**2 @ q)
    c = min(0.0, m / v) if v > 0 else 0.0
    k1, k2, k3 = mean + c, v + c**2, 2 * (min(m, 0) + c**3)
    g = -k3 / k2**1.5 if k2 > 0 else 0.0
    best = np.inf
    for exponent in np.linspace(0, -np.log(tail), 2001):
        t = stats.t.isf(min(tail * np.exp(exponent), 1 - 1e-9), df)
        k = 2 / g * (max(1 + g * t / 6 - g**2 / 36, 0) ** 3 - 1) if g > 1e-5 else t
        p = 1 - np.exp(-exponent * sum(a**2))
        best = min(best, (1 - p) * (k1 - np.sqrt(k2) * k) - p * worst)
    return max(best, -worst)


@pytest.mark.parametrize("worst", [1.0, 0.5])
@pytest.mark.parametrize("tail", [0.05, 0.001])
@pytest.mark.parametrize("kind", ["normal", "rare", "gains", "weighted"])
def test_limits_are_those_of_the_formulas(kind, tail, worst):
    rng = np.random.default_rng(4)
    x = {"rare": RARE, "gains": -RARE}.get(kind, rng.normal(0, 0.1, 100))
    w = rng.lognormal(0, 1, 100) if kind == "weighted" else np.ones(100)
    x = np.maximum(x, -worst)
    assert lower(x, tail, worst, weights=w) == pytest.approx(by_loop(x, w, tail, worst), abs=3e-5)


def test_without_spread_limits_are_those_of_clopper_and_pearson():
    for x, worst in ((0.0, 1.0), (0.3, 0.5), (-0.2, 1.0)):
        assert lower(np.full(50, x), 0.025, worst) == pytest.approx(x - (x + worst) * (1 - 0.025 ** (1 / 50)))
    of = moments(np.zeros((50, 1)))
    high = stats.binomtest(0, 50).proportion_ci(0.95, "exact").high
    assert upper_limit(of, 0.025, 1.0, special.stdtrit) == pytest.approx(high)
    assert lower_limit(of, 0.025, 0.0, special.stdtrit) == pytest.approx(0.0)
    assert p_of(np.full(40, 0.25), 0.1) == pytest.approx((1.1 / 1.25) ** 40)


def test_with_spread_and_many_queries_limits_are_those_of_t():
    x = np.random.default_rng(1).normal(0, 0.3, 400)
    assert lower(x) == pytest.approx(x.mean() - stats.t.isf(0.05, 399) * stats.sem(x), abs=4e-4)
    of = moments(x[:, None])
    assert [float(each[0]) for each in of[:2]] == pytest.approx([x.mean(), stats.sem(x) ** 2])
    assert [float(of.n_effective[0]), float(of.df[0])] == pytest.approx([400, 399])


@given(DIFFERENCES, st.sampled_from([1.0, 0.5]))
def test_a_tiny_change_of_a_difference_changes_the_limit_little(x, worst):
    x = np.maximum(x, -worst)
    moved = x.copy()
    moved[0] += 1e-7
    assert lower(moved, worst=worst) == pytest.approx(lower(x, worst=worst), abs=3e-5)


def kinds_of_differences(n, m, rng):
    """Differences without spread, with rare losses or gains, ties and noise, shape (n, m) each."""
    return {
        "equal": np.broadcast_to(rng.uniform(-0.5, 0.5, m), (n, m)),
        "zero": np.zeros((n, m)),
        "rare losses": np.where(rng.random((n, m)) < 0.05, -0.9, 0.0),
        "rare gains": np.where(rng.random((n, m)) < 0.05, 0.9, 0.0),
        "noise": rng.normal(0, 0.1, (n, m)),
        "little noise": rng.normal(0, 1e-6, (n, m)),
    }


# The slope is largest without spread, where the sample hides a share of unseen losses by itself.
@pytest.mark.parametrize("step", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("n", [30, 100])
def test_limits_have_a_bounded_slope_in_every_difference(n, step):
    rng = np.random.default_rng(n)
    for kind, x in kinds_of_differences(n, 300, rng).items():
        one = np.zeros(x.shape)
        one[rng.integers(n, size=300), np.arange(300)] = rng.choice([-1, 1], 300)
        for direction in (one, rng.choice([-1, 1], x.shape), rng.uniform(-1, 1, x.shape)):
            before, after = (
                lower_limit(moments(each), 0.05, 1.0, special.stdtrit) for each in (x, x + step * direction)
            )
            assert np.abs(after - before).max() <= 2.5 * step, kind


@pytest.mark.parametrize("n", [30, 100])
def test_limits_and_p_values_are_monotone_in_all_but_the_spread(n):
    rng = np.random.default_rng(n + 1)
    for x in kinds_of_differences(n, 200, rng).values():
        of = moments(x)
        limit = lower_limit(of, 0.05, 1.0, special.stdtrit)
        shifted = lower_limit(moments(x + 0.01), 0.05, 1.0, special.stdtrit)
        # Unseen queries do not shift.
        assert (shifted > limit).all()
        assert (shifted <= limit + 0.01 + 1e-12).all()
        assert (lower_limit(of, 0.05, 1.1, special.stdtrit) <= limit).all()
        assert (lower_limit(of, 0.04, 1.0, special.stdtrit) < limit).all()
        more = of._replace(n_effective=of.n_effective * 1.1)
        assert (lower_limit(more, 0.05, 1.0, special.stdtrit) >= limit).all()
        p, larger = (p_value(of, null, 1.0, special.stdtr) for null in (-0.03, -0.02))
        assert (p <= larger).all()
        assert (p_value(moments(x + 0.01), -0.03, 1.0, special.stdtr) <= p).all()


def test_no_valid_limit_that_falls_with_spread_passes_as_often():
    # Without spread, a sample of equal differences D hides a share u of losses of 1 with probability .05, so that a
    # valid limit is at most D - (D + 1) u. One that does not rise with the spread is below that for any spread: it
    # passes at the margin .02 only if D > (u - .02)/(1 - u).
    margin, sd, passing = 0.02, 0.1, []
    for n in (100, 200):
        u = 1 - 0.05 ** (1 / n)
        most = stats.norm.sf((u - margin) / (1 - u), scale=sd / np.sqrt(n))
        of = moments(np.random.default_rng(n).normal(0, sd, (n, 2000)))
        passed = int((lower_limit(of, 0.05, 1.0, special.stdtrit) > -margin).sum())
        assert stats.binom.sf(passed - 1, 2000, most) < 1e-6
        passing.append(round(float(most), 3))
    assert passing == [0.163, 0.769]


@given(DIFFERENCES, st.sampled_from([0.2, 0.05, 0.001]))
def test_p_values_are_the_inverse_of_limits(x, tail):
    limit = lower(x, tail)
    if limit > -1 + 1e-6:
        assert p_of(x, limit) == pytest.approx(tail, rel=0.05)
        assert p_of(x, limit - 0.01) <= p_of(x, limit) <= p_of(x, limit + 0.01)


@given(DIFFERENCES)
def test_upper_limits_mirror_lower_limits(x):
    high = upper_limit(moments(x[:, None]), 0.05, 1.0, special.stdtrit)
    assert float(high[0]) == pytest.approx(-lower(-x))


def test_columns_are_independent():
    x = np.random.default_rng(2).normal(0, 0.1, (60, 3))
    x[:, 1] = 0.2
    together = lower_limit(moments(x), 0.05, 1.0, special.stdtrit)
    assert together.tolist() == pytest.approx([lower(column) for column in x.T])


def test_only_ratios_of_weights_matter_and_one_heavy_query_is_one_query():
    rng = np.random.default_rng(3)
    x, w = rng.normal(0, 0.1, 80), rng.lognormal(0, 1, 80)
    assert lower(x, weights=5 * w) == pytest.approx(lower(x, weights=w))
    assert lower(x, weights=np.full(80, 7.0)) == pytest.approx(lower(x))
    one = np.where(np.arange(80) == 3, 1e6, 1.0)
    assert float(moments(x[:, None], one).n_effective[0]) == pytest.approx(1, abs=1e-3)
    assert lower(x, weights=one) < x[3] - 0.95 * (x[3] + 1)


def test_copies_are_repeated_rows():
    rng = np.random.default_rng(5)
    x, w, often = rng.normal(0, 0.1, 40), rng.lognormal(0, 1, 40), rng.integers(0, 4, 40)
    rows = np.repeat(np.arange(40), often)
    covariate = rng.normal(0, 1, 40)
    for about in ({}, {"covariate": covariate}):
        one, other = (
            moments(
                x[index, None],
                w[index],
                covariate=Covariate(about["covariate"][index], 0.1, 500) if about else None,
                copies=copies,
            )
            for index, copies in ((np.arange(40), often), (rows, None))
        )
        assert [float(a[0]) for a in one] == pytest.approx([float(b[0]) for b in other])


def test_clusters_of_one_query_change_nothing_and_copies_in_clusters_count_once():
    x = np.random.default_rng(6).normal(0, 0.1, 30)
    assert lower(x, clusters=np.arange(30)[::-1].copy()) == pytest.approx(lower(x))
    assert lower(np.repeat(x, 5), clusters=np.repeat(np.arange(30), 5)) == pytest.approx(lower(x))
    assert lower(np.repeat(x, 5)) > lower(x) + 0.005


def test_a_covariate_shifts_the_mean_along_the_regression_and_removes_its_variance():
    rng = np.random.default_rng(7)
    c = rng.normal(0, 1, 200)
    x = 0.1 * c + rng.normal(0, 0.02, 200)
    of = moments(x[:, None], covariate=Covariate(c, 0.5, 10**9))
    fit = stats.linregress(c, x)
    assert float(of.mean[0]) == pytest.approx(fit.intercept + 0.5 * fit.slope)
    residual = x - fit.intercept - fit.slope * c
    assert float(of.variance[0]) == pytest.approx((residual**2).sum() / 198 / 200, rel=0.02)
    assert float(of.df[0]) == pytest.approx(198)
    few = moments(x[:, None], covariate=Covariate(c, 0.5, 400))
    assert float((few.variance - of.variance)[0]) == pytest.approx(fit.slope**2 * c.var(ddof=1) / 400)
    assert lower(x, covariate=Covariate(np.ones(200), 1.0, 400)) == pytest.approx(lower(x), abs=3e-4)


def test_queries_taken_for_certain_have_no_error():
    rng = np.random.default_rng(8)
    certain = np.array([0.4, 0.2, *[0.0] * 50])
    copies = np.array([1, 1, *rng.integers(1, 3, 50)])
    sample = SampledQueries(np.ones(52), copies=copies, certain=certain)
    x = rng.normal(0, 0.1, (52, 2))
    exact, left, rest = sample.split_certain(x)
    assert exact == pytest.approx(0.4 * x[0] + 0.2 * x[1])
    assert (left, len(rest)) == (pytest.approx(0.4), 50)
    assert sample.mean(x) == pytest.approx(exact + 0.4 * np.average(rest, axis=0, weights=copies[2:]))
    assert float(sample.drawn_queries.moments(rest).n_effective[0]) == pytest.approx(copies[2:].sum())


# The largest rates that tests/bench/decisions.py measures, of a nominal 5 %.
@pytest.mark.parametrize(
    ("kind", "most"), [("normal", 0.055), ("rare", 0.063), ("flips", 0.063), ("often zero", 0.055)]
)
@pytest.mark.parametrize("n", [50, 100, 200])
def test_limits_exceed_the_mean_as_rarely_as_measured(kind, most, n):
    rng, m = np.random.default_rng([n, len(kind)]), 1500
    noise = rng.normal(0, 0.1, (n, m))
    x, mean = {
        "normal": (noise, 0.0),
        "rare": (np.where(rng.random((n, m)) < 0.01, -0.9, 0.1 * noise), -0.009),
        "flips": (rng.choice([-0.9, 0.9, 0.0], (n, m), p=[0.03, 0.02, 0.95]), -0.009),
        "often zero": (np.where(rng.random((n, m)) < 0.9, 0.0, rng.uniform(-0.5, 0.5, (n, m))), 0.0),
    }[kind]
    wrong = int((lower_limit(moments(x), 0.05, 1.0, special.stdtrit) > mean).sum())
    assert stats.binom.sf(wrong - 1, m, most) > 1e-3
    if kind == "rare":
        plain = x.mean(axis=0) - stats.t.isf(0.05, n - 1) * stats.sem(x, axis=0)
        assert (plain > mean).mean() > 0.1


def test_sums_of_clusters_have_the_mean_of_their_queries():
    values = np.array([[0.1, 1.0], [0.3, 2.0], [0.5, 6.0]])
    clustered = SampledQueries(np.ones(3), clusters=np.array([0, 1, 0]))
    np.testing.assert_allclose(clustered.of_clusters(values), [[0.4, 14 / 3], [0.2, 4 / 3]])
    assert SampledQueries(np.ones(3)).of_clusters(values) is values


def test_resamples_keep_queries_that_were_taken_for_certain():
    certain = np.array([0.4, 0.0, 0.0, 0.0])
    sample = SampledQueries(np.ones(4), certain=certain)
    resamples = sample.resample_units(5, 200, np.random.default_rng(0))
    assert resamples.copies.shape == (4, 200)
    np.testing.assert_array_equal(resamples.copies[0], 0)
    np.testing.assert_array_equal(resamples.copies.sum(axis=0), 5)
    # The certain query keeps its share of every mean, the drawn ones have the rest.
    means = resamples.mean(np.array([1.0, 0.0, 0.0, 0.0])[:, None].repeat(200, axis=1))
    np.testing.assert_allclose(means, 0.4)


def test_unsampled_queries_bound_the_share_that_no_sample_has_seen():
    rng = np.random.default_rng(10)
    weights, others = rng.lognormal(0, 1, 50), np.sort(rng.lognormal(0, 1, 950))[::-1]
    sample, exponent = SampledQueries(weights, unsampled=others), np.linspace(0, 3, 7)
    # A share f of all queries has no sampled one with probability (1 - f)^50.
    number = 1000 * (1 - np.exp(-exponent / 50))
    mass = [others[: int(k)].sum() + (k - int(k)) * others[int(k)] for k in number]
    np.testing.assert_allclose(sample.unseen_share(exponent), np.array(mass) / (weights.sum() + others.sum()))
    assert sample.drawn_queries.unseen_share(exponent).tolist() == sample.unseen_share(exponent).tolist()
    # All queries equal: Clopper and Pearson's limit, up to the queries that are rated.
    equal = SampledQueries(np.ones(100), unsampled=np.ones(10**6))
    of = moments(np.zeros((100, 1)))
    low = lower_limit(of, 0.05, 1.0, special.stdtrit, equal.unseen_share)
    assert low[0] == pytest.approx(lower_limit(of, 0.05, 1.0, special.stdtrit)[0], abs=1e-6)
    few = SampledQueries(np.ones(100), unsampled=np.ones(1))
    assert lower_limit(of, 0.05, 1.0, special.stdtrit, few.unseen_share)[0] == pytest.approx(-1 / 101)
    with pytest.raises(ValueError, match="weights of unsampled queries are unknown"):
        SampledQueries(weights).unseen_share(exponent)


def test_the_tail_of_weights_bounds_the_weight_of_unsampled_queries():
    # The heaviest weights are equal, so that heavier ones are not expected.
    w = np.r_[np.full(5, 3.0), np.ones(12)]
    of = moments(np.zeros((17, 1)), w).heaviest_unseen
    assert float(of.n_effective[0]) == pytest.approx(9)
    assert lower_limit(of, 0.05, 1.0, special.stdtrit)[0] == pytest.approx(-(1 - 0.05 ** (1 / 9)))
    w[0] = 3.6
    index = np.log(1.2) / 4 * 1.5
    assert float(moments(np.zeros((17, 1)), w).n_heaviest[0]) == pytest.approx((1 - index) * 27.6 / 3.6)
    w[0] = 1e4
    assert float(moments(np.zeros((17, 1)), w).n_heaviest[0]) == pytest.approx((1 - 0.95) * 10024 / 1e4)
    # The heaviest one was not drawn.
    copies = np.r_[0.0, 5.0, np.ones(15)]
    assert float(moments(np.zeros((17, 1)), w, copies=copies).n_heaviest[0]) == pytest.approx((15 + 9 + 12) / 3)


def test_tail_indices_are_those_of_repeated_rows_and_of_pareto_weights():
    rng = np.random.default_rng(12)
    weights, copies = rng.lognormal(0, 0.3, (90, 4)), rng.integers(0, 4, (90, 4)).astype(float)
    expected = []
    for w, often in zip(weights.T, copies.T, strict=True):
        logs = np.sort(np.log(np.repeat(w, often.astype(int))))[::-1]
        expected.append((logs[:20].mean() - logs[20]) * (1 + 1 / np.sqrt(20)))
    np.testing.assert_allclose(tail_index(weights, copies), expected)
    shared = tail_index(weights[:, :1], copies)
    assert shared[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(shared[1], tail_index(weights[:, :1], copies[:, 1:2])[0])
    assert tail_index(np.ones((1, 1)), np.full((1, 3), 50.0)).tolist() == [0, 0, 0]
    assert tail_index(np.full((1, 1), 7.0), np.ones((1, 1))).tolist() == [0]
    # Weights above the heaviest of a sample weigh on average what the index says, or less.
    for index in (0.2, 0.4):
        samples = rng.random((800, 500)) ** -index
        beyond = samples.max(axis=0) / (1 - tail_index(samples, np.ones_like(samples)))
        assert stats.binom.sf(int((beyond < samples.max(axis=0) / (1 - index)).sum()) - 1, 500, 0.25) > 1e-3


def test_no_number_below_the_limit_is_none():
    assert smallest_number(lambda n: 1 - 0.9**n, 0.5, 1, 6) is None
    assert smallest_number(lambda n: 1 - 0.9**n, 0.5, 1, 7) == 7


@pytest.mark.parametrize("clusters", [None, np.arange(60) // 3])
def test_drawn_errors_have_the_variance_and_the_degrees_of_freedom_of_the_mean(clusters):
    rng = np.random.default_rng(4)
    values, weights = rng.normal(size=(60, 2)), rng.lognormal(0, 1, 60)
    of = moments(values, weights, clusters)
    errors = drawn_errors(values, SampledQueries(weights, clusters=clusters), 40_000, rng)
    scaled = errors / np.sqrt(of.variance)[:, None]
    expected = special.stdtrit(of.df[0], [0.05, 0.5, 0.95, 0.99])
    for row in scaled:
        assert np.quantile(row, [0.05, 0.5, 0.95, 0.99]) == pytest.approx(expected, abs=0.12)
    difference = moments(values[:, :1] - values[:, 1:], weights, clusters)
    assert (errors[0] - errors[1]).std() == pytest.approx(
        float(np.sqrt(difference.variance[0] * of.df[0] / (of.df[0] - 2))), rel=0.05
    )


@pytest.mark.parametrize("tail", [0.05, 0.001, 0.4])
def test_limits_of_many_columns_equal_those_of_each_and_of_every_share(tail):
    rng = np.random.default_rng(8)
    for n in (3, 10, 60):
        values = np.clip(rng.normal(0, 10.0 ** rng.uniform(-4, -0.3, 60), (n, 60)), -1, 1)
        values = np.where(rng.random(values.shape) < 0.03, -0.9, values)
        weights = rng.lognormal(0, 10.0 ** rng.uniform(-2, 0.5, 60), values.shape)
        of = moments(values, weights)
        limits = lower_limit(of, tail, 1.0, special.stdtrit)
        for column in range(60):
            one = Moments(*(each[column : column + 1] for each in of))
            assert limits[column] == pytest.approx(lower_limit(one, tail, 1.0, special.stdtrit)[0], abs=1e-11)
        # The quantiles of many columns are interpolated, those of a few are not.
        few = Moments(*(each[:5] for each in of))
        np.testing.assert_allclose(lower_limit(few, tail, 1.0, special.stdtrit), limits[:5], atol=1e-11)
        mean, spread, skewness = _with_another_loss(of)
        exponent = exponents(np.array([tail]))
        t = -special.stdtrit(of.df, np.minimum(tail * np.exp(exponent), 1 - 1e-9))
        unseen = -np.expm1(-exponent / of.n_effective)
        every = (1 - unseen) * (mean - spread * skewed_quantiles(t, skewness)) - unseen
        np.testing.assert_allclose(limits, np.maximum(every.min(axis=0), -1), atol=1e-11)


def test_equal_weights_have_the_moments_of_weights_that_are_written_out():
    rng = np.random.default_rng(9)
    values, copies = rng.normal(size=(12, 5)), rng.integers(1, 4, (12, 5)).astype(float)
    for some in (None, copies):
        short = moments(values, copies=some)
        for each, other in zip(short, moments(values, np.full((12, 5), 2.0), copies=some), strict=True):
            np.testing.assert_allclose(np.broadcast_to(each, other.shape), other, rtol=1e-12)


def test_smallest_numbers_are_precise():
    for expected in (0.5, 0.8, 0.95):
        result = smallest_number(lambda n: 1 - 0.999**n, expected, 2, 10**6)
        assert result == pytest.approx(np.log(1 - expected) / np.log(0.999), rel=0.002)


def test_limit_of_seen_is_that_of_another_loss_without_unseen_queries():
    # 1 of 10 values is -1: by hand, with the formulas of steps 1 and 2.
    values = np.r_[-1.0, np.zeros(9)]
    share = np.full(10, 0.1)
    e = values - values.mean()
    v, m = (share**2 * e**2).sum() / 0.9, (share**3 * e**3).sum()
    c = m / v
    g = -2 * (m + c**3) / (v + c**2) ** 1.5
    t = special.stdtrit(9, 0.8)
    k = 2 / g * ((1 + g * t / 6 - g**2 / 36) ** 3 - 1)
    result = limit_of_seen(moments(values[:, None]), 0.2, special.stdtrit)
    assert result[0] == pytest.approx(values.mean() + c - np.sqrt(v + c**2) * k, rel=1e-12)


def test_moments_of_many_columns_do_not_depend_on_blocks(monkeypatch):
    draws = np.random.default_rng(0)
    values, weights, clusters = draws.normal(size=(6, 11)), draws.random(6) + 0.5, np.array([0, 0, 1, 2, 2, 3])
    samples = [SampledQueries.equal(6), SampledQueries(weights), SampledQueries(weights, clusters=clusters)]
    whole = [sample.moments(values) for sample in samples]
    monkeypatch.setattr(mean_limits, "_BLOCK_CELLS", 20)
    for sample, moments_of_all in zip(samples, whole, strict=True):
        for part, of_all in zip(sample.moments(values), moments_of_all, strict=True):
            assert part.tolist() == pytest.approx(of_all.tolist(), rel=1e-13)


def test_separate_weights_of_columns_are_taken_whole(monkeypatch):
    draws = np.random.default_rng(1)
    values, sample = draws.normal(size=(6, 11)), SampledQueries(draws.random((6, 11)) + 0.5)
    whole = sample.moments(values)
    monkeypatch.setattr(mean_limits, "_BLOCK_CELLS", 20)
    assert sample.moments(values).variance.tolist() == whole.variance.tolist()
