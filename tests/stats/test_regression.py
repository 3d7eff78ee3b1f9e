"""Regression of gain on coverage, with heteroskedasticity-robust errors, and means by strata of coverage."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import DegenerateWarning
from vbterrier.stats.comparisons import adjusted_p_values
from vbterrier.stats.regression import REGRESSION_COLUMNS as COLUMNS
from vbterrier.stats.regression import STRATA_COLUMNS, coverage_strata, gain_regressions, topic_strata


def topics(n=60, slope=0.0, seed=0):
    """Two coverage measures, of which the second correlates with the gain; noise increases with coverage."""
    rng = np.random.default_rng(seed)
    one, two, ap = rng.random((3, n))
    gain = 0.02 + slope * two + 0.1 * ap + rng.normal(0, 0.02 + 0.1 * two)
    return pd.DataFrame({"one": one, "two": two, "ap": ap, "n": rng.integers(1, 200, n), "gain": gain})


def by_hand(design, y):
    """Coefficients and HC3 errors from the normal equations, topic by topic."""
    bread = np.linalg.inv(design.T @ design)
    coef = bread @ design.T @ y
    meat = np.zeros_like(bread)
    for row, target in zip(design, y, strict=True):
        leverage = row @ bread @ row
        meat += np.outer(row, row) * ((target - row @ coef) / (1 - leverage)) ** 2
    return coef, np.sqrt(np.diag(bread @ meat @ bread))


def test_every_number_against_the_normal_equations():
    table = topics(slope=0.3)
    result = gain_regressions(table, "gain", ["one", "two"], controls=["ap", "n"], level=0.9)
    assert list(result) == list(COLUMNS)
    assert result["measure"].tolist() == ["one", "two"]
    for row in result.itertuples():
        design = np.column_stack([np.ones(60), table["ap"], table["n"], table[row.measure]])
        coef, error = by_hand(design, table["gain"].to_numpy())
        reach = stats.t.ppf(0.95, 56) * error[-1]
        assert (row.coef, row.std_error) == pytest.approx((coef[-1], error[-1]))
        assert (row.low, row.high) == pytest.approx((coef[-1] - reach, coef[-1] + reach))
        assert row.p_value == pytest.approx(2 * stats.t.sf(abs(coef[-1] / error[-1]), 56))
        left = table["gain"] - design @ coef
        assert row.r_squared == pytest.approx(1 - left.var() / table["gain"].var())
        assert (row.n_qids, row.n_undefined, row.covariance) == (60, 0, "HC3")
        classical = np.sqrt((left**2).sum() / 56 * np.linalg.inv(design.T @ design)[-1, -1])
        assert row.std_error_classical == pytest.approx(classical)
        assert row.p_classical == pytest.approx(2 * stats.t.sf(abs(coef[-1] / classical), 56))
    assert result["p_adjusted"].to_numpy() == pytest.approx(adjusted_p_values(result["p_value"].to_numpy(), "holm"))
    assert result["p_value"].iloc[1] < 1e-3 < result["p_value"].iloc[0]


def test_collinear_controls_change_nothing():
    table = topics(slope=0.1, seed=2)
    result = gain_regressions(table, "gain", "one", controls=["ap", "n"])
    more = table.assign(twice=2 * table["ap"] + 1, constant=40)
    again = gain_regressions(more, "gain", ["one"], controls=["ap", "n", "twice", "constant"])
    pd.testing.assert_frame_equal(result, again)


def test_undefined_topics_are_left_out_of_their_own_regression_alone():
    table = topics()
    gaps = table.assign(one=table["one"].where(table.index >= 7))
    result = gain_regressions(gaps, "gain", ["one", "two"], controls=["ap"]).set_index("measure")
    kept = gain_regressions(table.iloc[7:], "gain", ["one"], controls=["ap"]).set_index("measure")
    assert result.loc["one", ["n_qids", "n_undefined"]].tolist() == [53, 7]
    assert result.loc["one", "coef"] == pytest.approx(kept.loc["one", "coef"])
    assert result.loc["two", ["n_qids", "n_undefined"]].tolist() == [60, 0]


def test_undefined_coefficients_are_nan_and_not_tested():
    table = topics().assign(flat=1.0, copy=lambda frame: frame["ap"] * 3)
    with pytest.warns(DegenerateWarning, match="does not vary given the controls") as told:
        result = gain_regressions(table, "gain", ["flat", "one", "copy"], controls=["ap"])
    assert len(told) == 2
    assert result["p_adjusted"].isna().tolist() == [True, False, True]
    assert result["coef"].isna().tolist() == [True, False, True]
    # A single test needs no adjustment.
    assert result["p_adjusted"][1] == result["p_value"][1]
    with pytest.warns(DegenerateWarning, match="3 topics for 3 coefficients"):
        few = gain_regressions(table.iloc[:3], "gain", ["one"], controls=["ap"])
    assert few[["coef", "p_value"]].isna().all(axis=None)
    # All topics but one have coverage 1, as with an oracle.
    table["oracle"] = np.where(np.arange(60) == 5, 0.9, 1.0)
    with pytest.warns(DegenerateWarning, match="single topic determines"):
        result = gain_regressions(table, "gain", ["oracle"]).iloc[0]
    assert result["coef"] == pytest.approx((table["gain"].drop(5).mean() - table["gain"][5]) / 0.1)
    assert np.isnan([result["std_error"], result["p_value"], result["p_adjusted"]]).all()


@pytest.mark.nightly
def test_without_an_effect_p_values_are_uniform():
    tables = (topics(50, seed=seed) for seed in range(300))
    p = np.array([gain_regressions(table, "gain", ["two"], controls=["ap"])["p_value"].item() for table in tables])
    for level in (0.05, 0.2, 0.5):
        assert stats.binomtest(int((p <= level).sum()), 300, level).pvalue > 0.001


def test_tertiles_by_hand_with_scipys_t():
    coverage = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    gain = [0.0, 0.1, 0.2, 0.1, 0.1, 0.4, 0.5, 0.2, 0.5]
    table = pd.DataFrame({"c": coverage, "gain": gain, "AP": 1.0}).sample(frac=1, random_state=1)
    result = coverage_strata(table, "c", ["gain", "AP"], level=0.9)
    assert list(result) == list(STRATA_COLUMNS)
    assert result["stratum"].tolist() == [1, 1, 2, 2, 3, 3]
    assert result["measure"].tolist() == ["gain", "AP"] * 3
    for place, row in enumerate(result[result["measure"] == "gain"].itertuples()):
        some = gain[3 * place : 3 * place + 3]
        low, high = stats.t.interval(0.9, 2, np.mean(some), stats.sem(some))
        assert (row.value, row.low, row.high) == pytest.approx((np.mean(some), low, high))
        assert (row.coverage_low, row.coverage_high) == (coverage[3 * place], coverage[3 * place + 2])
        assert (row.n_qids, row.n_undefined, row.level) == (3, 0, 0.9)
    # Equal scores of three topics have the limit of Clopper and Pearson.
    limit = stats.binomtest(3, 3).proportion_ci(0.9, "exact").low
    equal = result.loc[result["measure"] == "AP", ["value", "low", "high"]].to_numpy()
    assert equal == pytest.approx(np.tile([1, limit, 1], (3, 1)))


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0, np.nan]), max_size=30), st.integers(2, 5))
def test_equals_stay_together_and_more_coverage_is_never_lower(coverage, n_strata):
    coverage = np.array(coverage)
    result = topic_strata(coverage, n_strata)
    defined = ~np.isnan(coverage)
    assert (result[~defined] == -1).all()
    assert ((result[defined] >= 0) & (result[defined] < n_strata)).all()
    order = np.argsort(coverage[defined], kind="stable")
    assert (np.diff(result[defined][order]) >= 0).all()
    assert all(len(set(result[coverage == value])) <= 1 for value in coverage[defined])


@given(st.integers(1, 40), st.integers(2, 5))
def test_without_ties_strata_differ_by_one_topic_at_most(n, n_strata):
    sizes = np.bincount(topic_strata(np.random.default_rng(n).random(n), n_strata), minlength=n_strata)
    assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(0, 7), min_size=1, max_size=25), st.integers(2, 4))
def test_sizes_are_the_most_equal_of_all_that_ties_allow(coverage, n_strata):
    result = np.bincount(topic_strata(np.array(coverage, dtype=float), n_strata))
    values, counts = np.unique(coverage, return_counts=True)
    s = min(n_strata, len(values))
    below = np.cumsum(counts)[:-1]

    sums = [(np.diff([0, *cuts, len(coverage)]) ** 2).sum() for cuts in itertools.combinations(below, s - 1)]
    assert len(result) == s
    assert (result > 0).all()
    assert (result**2).sum() == min(sums)


def test_fewer_values_than_strata_leave_the_last_strata_without_topics():
    table = pd.DataFrame({"c": [0.2, 0.2, *[1.0] * 8, np.nan], "gain": np.arange(11.0)})
    with pytest.warns(DegenerateWarning, match="no topic is in stratum 3 of 3; its topics have fewer than 3 values"):
        result = coverage_strata(table, "c", "gain")
    assert result["n_qids"].tolist() == [2, 8, 0]
    assert (result["n_undefined"] == 1).all()
    assert result.loc[2, ["coverage_low", "value", "low", "high"]].isna().all()
    assert result["value"].tolist()[:2] == [0.5, 5.5]


def test_one_topic_has_a_mean_without_an_interval():
    with pytest.warns(DegenerateWarning, match="stratum 2"):
        result = coverage_strata(pd.DataFrame({"c": [0.5], "gain": [0.1]}), "c", "gain", n_strata=2)
    assert result["value"].tolist()[0] == 0.1
    assert result[["low", "high"]].isna().all(axis=None)


def test_means_of_strata_without_spread_have_an_interval_that_a_small_change_does_not_close():
    table = pd.DataFrame({"c": np.arange(100) // 50, "AP": 0.0})
    for first in (0.0, 0.001):
        table.loc[0, "AP"] = first
        row = coverage_strata(table, "c", "AP", n_strata=2).loc[0]
        assert row["method"] == "topics (unseen)"
        assert row["high"] == pytest.approx(0.0711, abs=0.0005)
