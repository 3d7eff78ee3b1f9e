"""Regression of gain on coverage, with heteroskedasticity-robust errors."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.stats.comparisons import holm
from vbterrier.stats.regression import REGRESSION_COLUMNS as COLUMNS
from vbterrier.stats.regression import gain_regressions


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
    found = gain_regressions(table, "gain", ["one", "two"], controls=["ap", "n"], level=0.9)
    assert list(found) == list(COLUMNS)
    assert found["measure"].tolist() == ["one", "two"]
    for row in found.itertuples():
        design = np.column_stack([np.ones(60), table["ap"], table["n"], table[row.measure]])
        coef, error = by_hand(design, table["gain"].to_numpy())
        reach = stats.t.ppf(0.95, 56) * error[-1]
        assert (row.coef, row.std_error) == pytest.approx((coef[-1], error[-1]))
        assert (row.low, row.high) == pytest.approx((coef[-1] - reach, coef[-1] + reach))
        assert row.p_value == pytest.approx(2 * stats.t.sf(abs(coef[-1] / error[-1]), 56))
        left = table["gain"] - design @ coef
        assert row.r_squared == pytest.approx(1 - left.var() / table["gain"].var())
        assert (row.n_qids, row.n_undefined, row.covariance) == (60, 0, "HC3")
    assert found["p_adjusted"].to_numpy() == pytest.approx(holm(found["p_value"].to_numpy()))
    assert found["p_value"].iloc[1] < 1e-3 < found["p_value"].iloc[0]


def test_formulas_of_statsmodels_say_the_same():
    table = topics(slope=0.1, seed=2)
    peer = smf.ols("gain ~ ap + n + one", table).fit(cov_type="HC3", use_t=True)
    found = gain_regressions(table, "gain", "one", controls=["ap", "n"]).iloc[0]
    assert found["coef"] == pytest.approx(peer.params["one"])
    assert found["p_value"] == pytest.approx(peer.pvalues["one"])
    assert found["p_adjusted"] == found["p_value"]


def test_undefined_topics_are_left_out_of_their_own_regression_alone():
    table = topics()
    gaps = table.assign(one=table["one"].where(table.index >= 7))
    found = gain_regressions(gaps, "gain", ["one", "two"], controls=["ap"]).set_index("measure")
    kept = gain_regressions(table.iloc[7:], "gain", ["one"], controls=["ap"]).set_index("measure")
    assert found.loc["one", ["n_qids", "n_undefined"]].tolist() == [53, 7]
    assert found.loc["one", "coef"] == pytest.approx(kept.loc["one", "coef"])
    assert found.loc["two", ["n_qids", "n_undefined"]].tolist() == [60, 0]


def test_a_collinear_control_changes_nothing():
    table = topics(slope=0.2).assign(twice=lambda frame: 2 * frame["ap"] + 1, constant=40)
    plain = gain_regressions(table, "gain", ["two"], controls=["ap"])
    more = gain_regressions(table, "gain", ["two"], controls=["ap", "twice", "constant"])
    pd.testing.assert_frame_equal(plain, more)


def test_undefined_coefficients_are_nan_and_not_tested():
    table = topics().assign(flat=1.0, copy=lambda frame: frame["ap"] * 3)
    with pytest.warns(DegenerateWarning, match="does not vary given the controls") as told:
        found = gain_regressions(table, "gain", ["flat", "one", "copy"], controls=["ap"])
    assert len(told) == 2
    assert found["p_adjusted"].isna().tolist() == [True, False, True]
    assert found["coef"].isna().tolist() == [True, False, True]
    # A single test needs no adjustment.
    assert found["p_adjusted"][1] == found["p_value"][1]
    with pytest.warns(DegenerateWarning, match="3 topics for 3 coefficients"):
        few = gain_regressions(table.iloc[:3], "gain", ["one"], controls=["ap"])
    assert few[["coef", "p_value"]].isna().all(axis=None)


def test_a_coefficient_that_one_topic_decides_has_no_error():
    # All topics but one have coverage 1, as with an oracle.
    table = topics().assign(oracle=np.where(np.arange(60) == 5, 0.9, 1.0))
    with pytest.warns(DegenerateWarning, match="single topic determines"):
        found = gain_regressions(table, "gain", ["oracle"]).iloc[0]
    others = table["gain"].drop(5).mean()
    assert found["coef"] == pytest.approx((others - table["gain"][5]) / 0.1)
    assert np.isnan([found["std_error"], found["p_value"], found["p_adjusted"]]).all()


def test_without_an_effect_p_values_are_uniform():
    p = [
        gain_regressions(topics(50, seed=seed), "gain", ["two"], controls=["ap"])["p_value"].item()
        for seed in range(300)
    ]
    for level in (0.05, 0.2, 0.5):
        assert stats.binomtest(int(np.sum(np.array(p) <= level)), 300, level).pvalue > 0.001


def test_bad_tables_are_refused():
    table = topics(10)
    with pytest.raises(InputError, match=r"missing tow; found .* Did you mean two"):
        gain_regressions(table, "gain", ["tow"])
    with pytest.raises(InputError, match="'gain': row 3 has no value"):
        gain_regressions(table.assign(gain=table["gain"].where(table.index != 3)), "gain", ["one"])
    with pytest.raises(InputError, match="'one': row 2 is infinite"):
        gain_regressions(table.assign(one=table["one"].where(table.index != 2, np.inf)), "gain", ["one"])
    with pytest.raises(InputError, match="'one': row 4 holds 'high'"):
        gain_regressions(table.assign(one=[None, *table["one"][1:4], "high", *table["one"][5:]]), "gain", ["one"])
    with pytest.raises(ParameterError, match="each column once"):
        gain_regressions(table, "gain", ["one"], controls=["one"])
    with pytest.raises(ParameterError, match="at least one measure"):
        gain_regressions(table, "gain", [])
    with pytest.raises(ParameterError, match="level=95"):
        gain_regressions(table, "gain", ["one"], level=95)
