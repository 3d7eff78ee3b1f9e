"""Plans of query sets: compared with statsmodels and simulated tests, and coverage of intervals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from night import slow
from scipy import stats
from statsmodels.stats.power import TTestPower

from vbterrier.design.pilot import Pilot, interval_width, pilot_pairs, trimmed_kurtosis
from vbterrier.design.planning import (
    COLUMNS,
    PlanOptions,
    detectable_difference,
    queries_needed,
)
from vbterrier.design.power import corrected_level, design_errors, needed_by_formula, power_by_formula
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.kernels.mean_limits import SampledQueries
from vbterrier.settings import Data, Inference
from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.noninferiority import Criteria, limits
from vbterrier.stats.paired_tests import t_test

# 60 normal quantiles with standard deviation .2.
NORMAL = 0.2 * stats.zscore(stats.norm.ppf((np.arange(60) + 0.5) / 60), ddof=1)
SKEWED = np.random.default_rng(1).exponential(0.2, 30)
TIES = np.where(np.arange(40) < 36, 0.0, np.linspace(-0.5, 0.6, 40))


@pytest.mark.parametrize("delta", [0.2, 0.1, 0.03, 0.01])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_of_normal_differences_the_noncentral_t_is_found_again(delta, power):
    plan = queries_needed(NORMAL, delta, power=power, assurance=0.5, n_simulations=4000, inference=Inference(seed=2))
    expected = TTestPower().solve_power(delta / 0.2, power=power, alpha=0.025, alternative="larger")
    assert plan.n_by_formula == np.ceil(expected)
    # Monte Carlo error of the power, divided by its slope over log n.
    z = stats.norm.ppf(power)
    error = np.sqrt(power * (1 - power) / 4000) / (stats.norm.pdf(z) * (z + 1.96) / 2)
    assert plan.n_qids == pytest.approx(expected, rel=5 * error, abs=1)


@pytest.mark.parametrize("pilot", [SKEWED, TIES])
def test_power_is_the_share_of_tests_that_reject(pilot):
    plan = queries_needed(pilot, 0.1, n_simulations=4000, inference=Inference(seed=3))
    stretched = (pilot - pilot.mean()) * np.sqrt(len(pilot) / (len(pilot) - 1)) + 0.1
    assert stretched.std() == pytest.approx(pilot.std(ddof=1))
    rng = np.random.default_rng(11)
    for row in plan.curve.iloc[[8, 20, 30]].to_dict("records"):
        drawn = stretched[rng.integers(len(pilot), size=(4000, row["n_qids"]))]
        spread = np.ptp(drawn, axis=1) > 0
        test = stats.ttest_1samp(drawn[spread], 0.0, axis=1)
        share = ((test.pvalue <= 0.05) & (test.statistic > 0)).sum() / 4000
        assert row["power"] == pytest.approx(share, abs=5 * np.sqrt(2 * 0.25 / 4000))


def test_a_plan_and_what_it_says():
    plan = queries_needed(SKEWED, -0.08, n_simulations=2000, inference=Inference(seed=1))
    curve = plan.curve
    assert list(curve) == list(COLUMNS)
    assert plan.low < plan.n_qids < plan.high
    assert ((curve["low"] <= curve["power"]) & (curve["power"] <= curve["high"])).all()
    assert plan.delta == -0.08
    assert curve["power"].iloc[-1] > plan.power
    assert curve["low"].iloc[-1] > plan.power - 0.02
    assert plan.summary().startswith(f"{plan.n_qids} queries ({plan.low} to {plan.high}) to detect")
    row = plan.to_frame().loc[0, ["n_qids", "low", "high", "n_pilot", "seed"]]
    assert row.tolist() == [plan.n_qids, plan.low, plan.high, 30, 1]
    mirrored = queries_needed(-SKEWED, 0.08, n_simulations=2000, inference=Inference(seed=1)).curve
    pd.testing.assert_frame_equal(curve.drop(columns="delta"), mirrored.drop(columns="delta"))
    assert not curve.equals(queries_needed(SKEWED, 0.08, n_simulations=2000, inference=Inference(seed=2)).curve)


@pytest.mark.parametrize(("k", "level"), [(5, 0.99), (6, 0.99)])
def test_the_low_end_of_a_small_pilot_is_not_where_the_curve_happens_to_begin(k, level):
    pilot = 0.2 * stats.zscore(stats.norm.ppf((np.arange(k) + 0.5) / k), ddof=1)
    plan = queries_needed(pilot, 0.02, n_simulations=2000, inference=Inference(level=level))
    narrow = Pilot(pilot).std_interval(level)[0]
    expected = TTestPower().solve_power(0.02 / narrow, power=0.8, alpha=(1 - level) / 2, alternative="larger")
    assert plan.low == pytest.approx(expected, rel=0.15)
    assert plan.high > 100 * plan.low


def test_neither_order_nor_unit_nor_mean_of_a_pilot_matter_but_the_side_of_its_skew_does():
    plan = queries_needed(SKEWED, 0.08, n_simulations=2000)
    pd.testing.assert_frame_equal(plan.curve, queries_needed(SKEWED[::-1], 0.08, n_simulations=2000).curve)
    for pilot, delta in ((SKEWED * 100, 8.0), (SKEWED - 7, 0.08)):
        other = queries_needed(pilot, delta, n_simulations=2000)
        assert (other.n_qids, other.low, other.high) == (plan.n_qids, plan.low, plan.high)
    less = detectable_difference(SKEWED, 10, n_simulations=2000)["delta"].item()
    assert abs(detectable_difference(-SKEWED, 10, n_simulations=2000)["delta"].item() / less - 1) > 0.1


def test_what_a_plan_needs_detects_its_difference():
    plan = queries_needed(SKEWED, 0.06, assurance=0.5, inference=Inference(seed=4))
    back = detectable_difference(SKEWED, [plan.n_qids, plan.low, plan.high], inference=Inference(seed=5)).set_index(
        "n_qids"
    )
    assert back.loc[plan.n_qids, "delta"] == pytest.approx(0.06, rel=0.03)
    # The number for the lower end of the standard deviation is smaller.
    assert back.loc[plan.low, "low"] == pytest.approx(0.06, rel=0.04)
    assert back.loc[plan.high, "high"] == pytest.approx(0.06, rel=0.04)
    assert back["delta"].is_monotonic_decreasing


def test_of_normal_differences_the_detectable_one_is_that_of_the_noncentral_t():
    result = detectable_difference(NORMAL, [5, 40, 1000], inference=Inference(seed=6, test="t"))
    expected = np.array([0.2 * TTestPower().solve_power(nobs=n, power=0.8, alpha=0.05) for n in (5, 40, 1000)])
    assert result["by_formula"].to_numpy() == pytest.approx(expected, rel=1e-4)
    assert result["delta"].to_numpy() == pytest.approx(expected, rel=0.03)
    assert len(detectable_difference(NORMAL, 40, n_simulations=100)) == 1
    for n in ([1], [2.5], [0]):
        with pytest.raises(ParameterError, match="n_qids"):
            detectable_difference(NORMAL, n)


@pytest.mark.parametrize("sizes", [[3, 60], [60], [5, 11]])
def test_resamples_have_the_mean_and_spread_of_the_pilot_however_they_are_drawn(sizes, monkeypatch):
    pilot = Pilot(SKEWED[:5])
    for n, (mean, standard_error, df) in zip(sizes, pilot.resampled_moments(sizes, 20_000, 9), strict=True):
        error, std = pilot.std / np.sqrt(n), standard_error * np.sqrt(n)
        assert df == n - 1
        assert mean.mean() == pytest.approx(0, abs=5 * error / np.sqrt(20_000))
        assert mean.std() == pytest.approx(error, rel=0.03)
        assert np.mean(std**2) == pytest.approx(pilot.std**2, rel=0.04)
    whole = next(iter(Pilot(SKEWED).resampled_moments([4], 500, 1)))
    monkeypatch.setattr("vbterrier.design.pilot._BLOCK_CELLS", 40)
    for one, other in zip(whole, next(iter(Pilot(SKEWED).resampled_moments([4], 500, 1))), strict=True):
        assert one == pytest.approx(other)


def test_where_nearly_all_queries_tie_two_are_not_enough():
    plan = queries_needed([0.5, -0.5, 0.25, -0.25, *[0.0] * 96], 0.01, assurance=0.5, n_simulations=2000)
    assert plan.n_qids == pytest.approx(plan.n_by_formula, rel=0.15)


def test_the_interval_of_the_standard_deviation_is_that_of_bonett():
    x = np.array([0.3, 0.1, 0.9, 0.4, 0.2, 0.6, 0.5, 0.8, 0.2, 0.7])
    z, n = stats.norm.ppf(0.975), 10
    trimmed, c = stats.trim_mean(x, 1 / (2 * np.sqrt(n - 4))), n / (n - z)
    kurtosis = n * np.sum((x - trimmed) ** 4) / np.sum((x - x.mean()) ** 2) ** 2
    reach = z * c * np.sqrt((kurtosis - (n - 3) / n) / (n - 1))
    expected = np.sqrt(np.exp(np.log(c * x.var(ddof=1)) + np.array([-reach, reach])))
    assert Pilot(x).std_interval(0.95) == pytest.approx(tuple(expected))
    assert trimmed_kurtosis(x) == pytest.approx(kurtosis)
    # Of five values the trimmed mean is the median.
    five = np.array([0.0, 0.1, 0.2, 0.5, 2.0])
    assert trimmed_kurtosis(five) == pytest.approx(5 * np.sum((five - 0.2) ** 4) / (5 * five.var()) ** 2)


@pytest.mark.parametrize(("kind", "share"), [("normal", 0.94), ("ties", 0.925)])
def test_intervals_of_the_standard_deviation_have_their_coverage(kind, share):
    rng = np.random.default_rng(12)
    drawn = rng.normal(size=(600, 25)) * (1 if kind == "normal" else rng.random((600, 25)) < 0.5)
    std = 1 if kind == "normal" else np.sqrt(0.5)
    ends = [Pilot(one).std_interval(0.95) for one in drawn]
    covered = sum(low <= std <= high for low, high in ends)
    assert stats.binomtest(covered, 600, share).pvalue > 1e-3


def values(**systems):
    rows = [(name, f"{i:02}", "AP", score) for name, scores in systems.items() for i, score in enumerate(scores)]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def test_two_systems_of_a_frame_are_their_differences():
    base = np.linspace(0, 1, 30)
    frame = values(a=base + SKEWED, b=base, c=base * 0.5)
    alone = queries_needed(SKEWED, 0.1, n_simulations=300).n_qids
    assert queries_needed(frame, 0.1, pair=("a", "b"), n_simulations=300).n_qids == alone
    assert queries_needed(frame[frame["name"] != "c"], 0.1, n_simulations=300).n_qids == alone
    several = pd.concat([frame, frame.assign(measure="P@5", value=frame["value"] ** 2)])
    assert queries_needed(several, 0.1, pair=["a", "b"], measure="AP", n_simulations=300).n_qids == alone
    named = [("a", "b"), ("a", "c"), ("b", "c")]
    assert list(pilot_pairs(several, None, None)) == [(measure, *pair) for measure in ("AP", "P@5") for pair in named]
    assert [row[1:] for row in pilot_pairs(several, "b", "AP")] == [("a", "b"), ("c", "b")]
    for options, message in (
        ({}, "2 measures"),
        ({"measure": "AP"}, "3 systems"),
        ({"measure": "ap"}, "Did you mean AP"),
        ({"measure": "AP", "pair": ("a", "d")}, "pair='d'"),
        ({"measure": "AP", "pair": "ab"}, "two systems"),
        ({"measure": "AP", "pair": ("a", "a")}, "two systems"),
    ):
        with pytest.raises(ParameterError, match=message):
            queries_needed(several, 0.1, **options)


@pytest.mark.parametrize(
    ("pilot", "options", "error", "message"),
    [
        ([0.1] * 4, dict, InputError, "at least 5 differences"),
        ([[0.1, 0.2]] * 5, dict, InputError, r"shape \(5, 2\)"),
        ([0.1] * 9, dict, InputError, "differ by 0.1 on all 9"),
        ([0.1, 0.2, np.nan, 0, 0], dict, InputError, "difference 2"),
        (SKEWED, lambda: {"delta": 0}, ParameterError, "delta=0"),
        (SKEWED, lambda: {"delta": 1e-9}, InputError, "larger one"),
        (SKEWED, lambda: {"power": 0.02}, ParameterError, "power=0.02"),
        (SKEWED, lambda: {"power": 1}, ParameterError, "power=1"),
        (SKEWED, lambda: {"inference": Inference(level=1.5)}, ParameterError, "level"),
        (SKEWED, lambda: {"n_simulations": 0}, ParameterError, "n_simulations"),
        (SKEWED, lambda: {"pair": ("a", "b")}, ParameterError, "leave them out"),
        (SKEWED[:5], lambda: {"inference": Inference(level=1 - 1e-8)}, ParameterError, "too high for a pilot of 5"),
        (SKEWED, lambda: {"assurance": 0.4}, ParameterError, "assurance=0.4"),
        (SKEWED, lambda: {"options": PlanOptions(n_systems=1)}, ParameterError, "n_systems=1"),
        (
            SKEWED,
            lambda: {"inference": Inference(test="wilcoxon")},
            ParameterError,
            "test='wilcoxon': wanted one of 'moderated', 't'",
        ),
        (
            SKEWED,
            lambda: {"inference": Inference(test="t", correction="max-t")},
            ParameterError,
            "needs a test that resamples",
        ),
        (SKEWED, lambda: {"inference": Inference(correction="bh")}, ParameterError, "correction='bh': wanted one of"),
    ],
)
def test_plans_without_a_pilot_or_with_illegal_options_are_refused(pilot, options, error, message):
    with pytest.raises(error, match=message):
        queries_needed(pilot, **{"delta": 0.1, **options()})


def test_differences_that_a_measure_cannot_have_are_not_planned():
    frame = pd.DataFrame({"name": ["a"] * 9 + ["b"] * 9, "qid": [*"123456789"] * 2, "measure": "nDCG@10"})
    frame["value"] = np.r_[np.linspace(0, 1, 9), np.linspace(0.2, 0.4, 9)]
    for pilot in (frame, None):
        with pytest.raises(ParameterError, match=r"delta=5: means of nDCG@10 differ by at most 1; .* mean 0\.05"):
            queries_needed(pilot, 5, measure="nDCG@10")
    with pytest.raises(ParameterError, match=r"delta=-1: means of nDCG@10 differ by at most 1; wanted less$"):
        queries_needed(frame, -1)


def test_the_width_is_that_of_the_t_interval():
    scores = SKEWED[:12]
    result = interval_width(values(a=scores, b=scores**2), [24, 6], level=0.9)
    assert result[["name", "n_more"]].to_numpy().tolist() == [["a", 6], ["a", 24], ["b", 6], ["b", 24]]
    first = result.iloc[0]
    low, high = stats.t.interval(0.9, 11, loc=scores.mean(), scale=scores.std(ddof=1) / np.sqrt(12))
    assert first["width"] == pytest.approx(high - low)
    then = 2 * stats.t.ppf(0.95, 17) * scores.std(ddof=1) / np.sqrt(18)
    assert first["width_then"] == pytest.approx(then)
    assert first["ratio"] == pytest.approx(then / (high - low))
    assert (result["ratio_low"] < result["ratio"]).all()
    assert (result["ratio"] < result["ratio_high"]).all()
    assert interval_width(values(a=scores), 6, level=0.9).iloc[0].equals(first)


def test_the_ratio_is_where_it_is_said_to_be():
    drawn = np.random.default_rng(21).normal(size=(400, 60))
    now, then = (values(**{f"s{i}": scores[:n] for i, scores in enumerate(drawn)}) for n in (20, 60))
    now, then = interval_width(now, 40), interval_width(then, 1)
    held = int((then["width"] / now["width"]).between(now["ratio_low"], now["ratio_high"]).sum())
    assert stats.binomtest(held, 400, 0.955).pvalue > 1e-3


def test_heavy_tails_lower_the_degrees_of_freedom_of_the_ratio():
    n, m, kurtosis = len(SKEWED), 12, trimmed_kurtosis(SKEWED)
    assert kurtosis > 3.5
    row = interval_width(values(a=SKEWED), m).iloc[0]
    f = stats.f.ppf([0.025, 0.975], 2 * m / (kurtosis - 1), 2 * n / (kurtosis - (n - 3) / (n - 1)))
    expected = row["ratio"] * np.sqrt((n - 1 + m * f) / (n + m - 1))
    assert [row["ratio_low"], row["ratio_high"]] == pytest.approx(expected.tolist())


def test_widths_of_one_topic_are_missing_and_of_equal_topics_zero():
    with pytest.warns(DegenerateWarning, match="at least two"):
        assert interval_width(values(a=[0.5]), 3)[["width", "ratio"]].isna().all(axis=None)
    equal = interval_width(values(a=[0.5] * 6), 3).iloc[0]
    assert (equal["width"], equal["width_then"]) == (0, 0)
    assert np.isnan(equal["ratio"])
    few = interval_width(values(a=[0.1, 0.5, 0.2]), [3]).iloc[0]
    spread = stats.f.ppf([0.025, 0.975], 3, 2)
    assert [few["ratio_low"], few["ratio_high"]] == pytest.approx(few["ratio"] * np.sqrt((2 + 3 * spread) / 5))
    assert len(interval_width(values(a=[]), 3)) == 0
    for more in ([], [0], [1.5]):
        with pytest.raises(ParameterError, match="n_more"):
            interval_width(values(a=[0.1, 0.5]), more)


# Assurance, several systems, and plans without a pilot.


@pytest.mark.nightly
def test_levels_of_several_systems_are_those_of_scipy():
    assert corrected_level(0.95, 2, "max-t") == 0.95
    # A normal deviate beyond the critical value of Tukey's range, and of Dunnett's maximum.
    for k in (3, 6, 20):
        critical = stats.studentized_range.ppf(0.95, k, np.inf) / 2**0.5
        assert corrected_level(0.95, k, "max-t") == pytest.approx(1 - 2 * stats.norm.sf(critical))
        assert corrected_level(0.95, k, "holm") == pytest.approx(1 - 0.05 / (k * (k - 1) / 2))
        covariance = (np.eye(k - 1) + 1) / 2
        level = corrected_level(0.95, k, "max-t", baseline=True)
        critical = np.full(k - 1, stats.norm.isf((1 - level) / 2))
        joint = stats.multivariate_normal(cov=covariance, seed=1).cdf(critical, lower_limit=-critical)
        assert joint == pytest.approx(0.95, abs=2e-4)


def of(n_systems, **options):
    return {"options": PlanOptions(n_systems=n_systems, **options)}


def test_more_systems_need_more_queries():
    pilot = np.random.default_rng(3).normal(0, 0.2, 40)
    drawn, how = {"n_simulations": 2000, "assurance": 0.5}, Inference(seed=1, test="randomisation")
    needed = [queries_needed(pilot, 0.05, **of(k), **drawn, inference=how).n_qids for k in (2, 5, 20)]
    assert needed == sorted(set(needed))
    baseline = queries_needed(pilot, 0.05, **of(5, baseline=True), **drawn, inference=how).n_qids
    assert (
        needed[0]
        < baseline
        < needed[1]
        < queries_needed(pilot, 0.05, **of(5), **drawn, inference=replace(how, test="t")).n_qids
    )
    formula = power_by_formula(needed[1], 0.05, pilot.std(ddof=1), corrected_level(0.95, 5, "max-t"))
    assert formula == pytest.approx(0.8, abs=0.03)
    result = detectable_difference(pilot, needed[1], **of(5), n_simulations=2000, inference=how)
    assert result["delta"].item() == pytest.approx(0.05, rel=0.03)


@pytest.mark.nightly
def test_the_power_of_a_plan_is_that_of_a_comparison():
    """Compare five systems of which one is better, with the numbers of queries that plans say."""
    rng, result = np.random.default_rng(5), 0
    pilot = rng.normal(0, 0.15, 400)
    n = queries_needed(pilot, 0.1, options=PlanOptions(n_systems=5), n_simulations=3000).n_qids
    n_samples = 200
    for seed in range(n_samples):
        scores = rng.normal(0, 0.15 / 2**0.5, (n, 5)) + np.array([0.1, 0, 0, 0, 0])
        columns = {"name": np.repeat([*"abcde"], n), "qid": np.tile([*map(str, range(n))], 5), "measure": "own"}
        pairs = comparisons(pd.DataFrame(columns).assign(value=scores.T.ravel()), n_resamples=499, seed=seed)
        result += int(pairs["p_adjusted"].iloc[0] <= 0.05)
    # Step-down and differences among the others make the planned power a lower limit.
    assert stats.binom.cdf(result, n_samples, 0.78) > 1e-3
    assert result / n_samples < 0.95


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["normal", "half tied"])
def test_assurance_is_reached(kind):
    rng, n_pilots = np.random.default_rng(11), 120
    sufficient = {0.5: 0, None: 0}
    std = 1.0 if kind == "normal" else 0.5**0.5
    # At .3 standard deviations, 90 queries have the power .8.
    for _ in range(n_pilots):
        pilot = rng.normal(0, 1, 25) * (1 if kind == "normal" else rng.random(25) < 0.5)
        for assurance in sufficient:
            plan = queries_needed(pilot, 0.3 * std, assurance=assurance, n_simulations=1000)
            sufficient[assurance] += int(plan.n_qids >= 90)
    assert stats.binom.cdf(sufficient[None], n_pilots, 0.77) > 1e-3
    assert sufficient[0.5] < 0.6 * n_pilots
    by_pilot = queries_needed(pilot, 0.3, assurance=0.5, n_simulations=500)
    assert "about half of such plans fall short" in by_pilot.summary()
    sure = queries_needed(pilot, 0.3, n_simulations=500)
    assert "the power is reached with probability 0.8" in sure.summary()
    assert sure.n_qids > by_pilot.n_qids


def limits_of_pilots(draw, n=50, n_pilots=100):
    """Upper limits at .8 of the standard deviation of pilots."""
    rng = np.random.default_rng(12)
    pairs = (draw(rng, n) for _ in range(n_pilots))
    return np.array(
        [Pilot(values, None if w is None else SampledQueries(w)).std_upper_limit(0.8) for values, w in pairs]
    )


def test_standard_deviations_of_pilots_are_limited_with_the_stated_probability():
    normal = limits_of_pilots(lambda rng, n: (rng.normal(0, 1, n), None))
    assert 0.7 < (normal >= 1).mean() < 0.93
    skewed = limits_of_pilots(lambda rng, n: (rng.exponential(1, n), None))
    assert (skewed >= 1).mean() > 0.6
    # Log-normal weights make a query worth 1/e of one of equal weight.
    weighted = limits_of_pilots(lambda rng, n: (rng.normal(0, 1, n), rng.lognormal(0, 1, n)))
    assert 0.74 < (weighted >= np.e**0.5).mean() < 0.97
    # A query with all of the weight leaves no other limit than that of its weights.
    assert np.isfinite(limits_of_pilots(lambda rng, n: (rng.normal(0, 1, n), np.r_[1e6, np.ones(n - 1)]), 8, 5)).all()


def test_a_plan_for_the_gate_refuses_unequal_weights_and_grows_with_the_assurance():
    values = np.random.default_rng(5).normal(0, 0.1, 40)
    options = {"n_simulations": 100, "inference": Inference(margin=0.05)}
    frame, table = pilot_with(values, weight=np.random.default_rng(6).lognormal(0, 1, 40))
    with pytest.raises(ParameterError, match=r"draw queries by traffic .*, and plan without weights"):
        queries_needed(frame, data=Data(queries=table), **options)
    equal = queries_needed(frame, data=Data(queries=table.assign(weight=2.0)), **options)
    assert equal.n_qids == queries_needed(frame, **options).n_qids
    assert equal.n_qids >= queries_needed(frame, assurance=0.5, **options).n_qids


def test_a_plan_without_assurance_has_the_standard_deviation_of_its_pilot():
    pilot = Pilot(SKEWED, SampledQueries(np.linspace(1, 5, len(SKEWED))))
    assert pilot.std_upper_limit(0.5) == pilot.std
    assert pilot.std_upper_limit(0.9) > pilot.std_upper_limit(0.6) > pilot.std


LARGE = [0.5, 0.7, 0.62, 0.55, 0.68, 0.52, 0.71, 0.6]
FLIPS = Inference(test="randomisation")


@pytest.mark.parametrize("delta", [0.6, -0.6])
def test_a_plan_for_sign_flips_can_be_significant(delta):
    """Four sign flips have the smallest p 1/8, five 1/16: the t formula alone plans three or four queries."""
    plan = queries_needed(LARGE, delta, n_simulations=300, inference=FLIPS)
    assert plan.n_qids == plan.low == plan.n_by_formula == 6
    curve = plan.curve.set_index("n_qids")
    assert curve.index[0] < 6
    assert (curve.loc[:5, ["power", "low", "high"]] == 0).all(axis=None)
    assert curve.loc[6, "power"] > 0.99
    assert queries_needed(LARGE, delta, n_simulations=300).n_qids < 6


def test_sign_flips_detect_nothing_with_fewer_queries_than_their_smallest_p_needs():
    table = detectable_difference(LARGE, [2, 5, 6], n_simulations=300, inference=FLIPS).set_index("n_qids")
    assert np.isinf(table.loc[[2, 5], ["delta", "low", "high", "by_formula"]]).all(axis=None)
    assert np.isfinite(table.loc[6, ["delta", "low", "high", "by_formula"]].astype(float)).all()
    assert np.isfinite(detectable_difference(LARGE, 2, n_simulations=300)["delta"].item())
    # Three tests by Holm: .05/3 needs 2^(1-n) of seven queries.
    by_holm = Inference(test="randomisation", correction="holm")
    many = detectable_difference(LARGE, [6, 7], options=PlanOptions(n_systems=3), n_simulations=300, inference=by_holm)
    assert np.isinf(many["delta"]).tolist() == [True, False]
    assert queries_needed(LARGE, 0.6, **of(3), n_simulations=300, inference=by_holm).n_qids == 7
    assert queries_needed(None, 0.6, measure="nDCG@10", inference=FLIPS).n_qids == 6
    assert queries_needed(None, 0.6, measure="nDCG@10").n_qids < 6


# Weights, clusters, and plans for the release gate.


def pilot_with(differences, **columns):
    """A V frame of two systems, and the table of its queries."""
    qids = [f"q{i:03}" for i in range(len(differences))]
    frame = pd.DataFrame({"name": ["a"] * len(qids) + ["b"] * len(qids), "qid": qids * 2, "measure": "nDCG@10"})
    return frame.assign(value=np.r_[0.5 + differences, np.full(len(qids), 0.5)]), pd.DataFrame({"qid": qids, **columns})


@pytest.mark.slow
def test_equal_weights_and_clusters_of_one_query_change_no_plan():
    values, table = pilot_with(SKEWED, weight=3.0)
    plain = queries_needed(values, 0.08, n_simulations=500)
    same = queries_needed(values, 0.08, n_simulations=500, data=Data(queries=table))
    pd.testing.assert_frame_equal(same.curve, plain.curve)
    single = queries_needed(values, 0.08, n_simulations=4000, data=Data(queries=table.assign(cluster=table["qid"])))
    assert single.n_qids == pytest.approx(queries_needed(values, 0.08).n_qids, rel=0.05)
    shuffled = queries_needed(values[::-1], 0.08, n_simulations=500, pair=("a", "b"), data=Data(queries=table[::-1]))
    pd.testing.assert_frame_equal(shuffled.curve, plain.curve)


@pytest.mark.slow
def test_a_weighted_plan_reaches_its_power_in_weighted_tests():
    rng = np.random.default_rng(4)
    weights = rng.lognormal(0, 1, 1500)
    differences = np.clip(rng.normal(0, 0.2, 1500), -0.5, 0.5)
    values, table = pilot_with(differences, weight=weights)
    plan = queries_needed(values, 0.06, assurance=0.5, n_simulations=300, data=Data(queries=table))
    unweighted = queries_needed(values, 0.06, assurance=0.5, n_simulations=2000)
    # Kish: such weights make queries worth 1/e of their number.
    assert 2 < plan.n_qids / unweighted.n_qids < 3.2
    rows = rng.integers(1500, size=(plan.n_qids, 3000))
    d = differences - (weights * differences).sum() / weights.sum() + 0.06
    result = t_test(d[rows], moderated=False, sample=SampledQueries(weights[rows]))
    power = ((result.p_value <= 0.05) & (result.mean > 0)).mean()
    assert power == pytest.approx(0.8, abs=0.04)


@pytest.mark.slow
def test_a_plan_for_clusters_counts_their_queries():
    rng = np.random.default_rng(5)
    of_clusters = rng.normal(0, 0.1, 60)
    five = np.repeat(of_clusters, 5)
    values, table = pilot_with(five, cluster=[f"c{i // 5}" for i in range(300)])
    plan = queries_needed(values, 0.05, n_simulations=3000, data=Data(queries=table))
    alone = queries_needed(of_clusters, 0.05, n_simulations=3000)
    assert plan.n_qids == pytest.approx(5 * alone.n_qids, rel=0.08)
    assert plan.n_qids % 5 == 0
    assert plan.curve["n_pilot"].iloc[0] == 300


@pytest.mark.parametrize(("delta", "options"), [(None, {}), (None, {"worst_loss": 0.5}), (0.01, {"n_systems": 3})])
@pytest.mark.slow
def test_a_plan_for_the_gate_passes_with_its_probability(delta, options):
    rng = np.random.default_rng(6)
    pilot = rng.normal(0, 0.1, 150)
    how = {"inference": Inference(margin=0.02), "options": PlanOptions(**options)}
    plan = queries_needed(pilot, delta, n_simulations=1000, assurance=0.5, **how)
    criteria = Criteria(0.02, 0.05 / (options.get("n_systems", 2) - 1), worst=options.get("worst_loss"))
    centred = pilot - pilot.mean() + (delta or 0)
    drawn = centred[rng.integers(150, size=(plan.n_qids, 2000))]
    passed = limits(criteria, drawn, SampledQueries.equal(plan.n_qids)).decisions(criteria).count("PASS") / 2000
    assert passed == pytest.approx(0.8, abs=0.05)
    assert plan.margin == 0.02
    assert "pass with margin 0.02" in plan.summary()
    assert plan.curve["power"].is_monotonic_increasing


@pytest.mark.slow
def test_a_plan_for_the_gate_knows_its_smallest_number_and_large_losses():
    nearly_equal = np.r_[np.full(60, 0.0), 0.001, -0.001]
    plan = queries_needed(nearly_equal, n_simulations=200, inference=Inference(margin=0.02))
    assert plan.n_by_formula == 149
    assert plan.n_qids == pytest.approx(149, abs=4)
    # A tenth of the queries loses more than .5, so that no number of queries passes.
    with pytest.raises(InputError, match="100,000 queries do not pass"):
        queries_needed(np.r_[np.full(90, 0.08), np.full(10, -0.7)], n_simulations=100, inference=Inference(margin=0.02))
    assert queries_needed(None, measure="nDCG@10", n_simulations=200, inference=Inference(margin=0.05)).n_qids > 59


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict, "wanted delta"),
        (
            lambda: {"delta": 0.1, "options": PlanOptions(worst_loss=0.5)},
            "worst_loss=0.5: has no effect without a margin",
        ),
        (lambda: {"delta": -0.02, "inference": Inference(margin=0.02)}, "delta=-0.02"),
        (lambda: {"inference": Inference(margin=0)}, "margin=0"),
        (lambda: {"inference": Inference(margin=0.02), "options": PlanOptions(worst_loss=0.01)}, "worst_loss=0.01"),
        (
            lambda: {"delta": 0.1, "data": Data(queries=pd.DataFrame({"qid": [1], "weight": [1]}))},
            "leave them out for differences",
        ),
    ],
)
def test_plans_for_the_gate_refuse_what_has_no_effect(options, message):
    with pytest.raises(ParameterError, match=message):
        queries_needed(SKEWED, **options())


def test_columns_that_a_plan_does_not_honour_are_refused():
    values, table = pilot_with(SKEWED, segment="head")
    with pytest.raises(ParameterError, match="queries_needed: column 'segment' of queries has no effect"):
        queries_needed(values, 0.1, data=Data(queries=table))
    with pytest.raises(InputError, match="at least 5 clusters, found 1"):
        queries_needed(values, 0.1, data=Data(queries=table.rename(columns={"segment": "cluster"})))
    with pytest.raises(ParameterError, match="weights and clusters need the differences of a pilot"):
        queries_needed(None, 0.1, measure="nDCG@10", data=Data(queries=table))
    unbounded = values.assign(measure="own")
    with pytest.raises(ParameterError, match="give worst_loss="):
        queries_needed(unbounded, inference=Inference(margin=0.02))


def test_a_plan_before_any_data():
    plan = queries_needed(None, 0.05, measure="nDCG@10")
    # The median of the three collections' standard deviations is .205.
    assert plan.n_qids == needed_by_formula(0.05, 0.205, 0.8, 0.95)
    assert (plan.low, plan.high) == tuple(needed_by_formula(0.05, std, 0.8, 0.95) for std in (0.174, 0.326))
    at = plan.curve.iloc[(plan.curve["n_qids"] - plan.n_qids).abs().argmin()]
    assert at["power"] == pytest.approx(0.8, abs=0.03)
    assert (plan.curve["low"] <= plan.curve["power"]).all()
    assert (plan.curve["power"] <= plan.curve["high"]).all()
    assert queries_needed(None, 0.05, measure="nDCG@10", options=PlanOptions(n_systems=10)).n_qids > 1.5 * plan.n_qids
    with pytest.raises(ParameterError, match=r"measure='nDCG@7': standard deviations are known for 'nDCG@10'"):
        queries_needed(None, 0.05, measure="nDCG@7")
    with pytest.raises(ParameterError, match="assurance needs a pilot"):
        queries_needed(None, 0.05, measure="nDCG@10", assurance=0.8)


@pytest.mark.parametrize("n", [5, 20, slow(100)])
@pytest.mark.slow
def test_errors_of_significant_results_are_those_of_simulated_ones(n):
    rng = np.random.default_rng(n)
    samples = rng.normal(0.05, 0.2, (200_000, n))
    t, p = stats.ttest_1samp(samples, 0, axis=1)
    significant = p <= 0.05
    row = design_errors(n, 0.05, 0.2).iloc[0]
    assert row["power"] == pytest.approx((significant & (t > 0)).mean(), abs=0.004)
    assert row["type_s"] == pytest.approx((t[significant] < 0).mean(), abs=0.01)
    assert row["type_m"] == pytest.approx(np.abs(samples.mean(axis=1)[significant]).mean() / 0.05, rel=0.02)


def test_errors_vanish_with_power():
    result = design_errors([10, 100, 1000, 100_000], 0.05, 0.2)
    assert result["power"].is_monotonic_increasing
    assert result[["type_s", "type_m"]].iloc[-1].tolist() == pytest.approx([0, 1], abs=1e-3)
    with pytest.raises(ParameterError, match="delta=0"):
        design_errors(10, 0, 0.2)
