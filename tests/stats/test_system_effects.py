"""Analysis of variance with Tukey's HSD, compared with statsmodels and SciPy, Bayesian comparisons, and risk."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.report import plots
from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.system_effects import analysis_of_variance, bayesian_comparison, risk_table


def values(table, measure="nDCG@10"):
    n, k = table.shape
    names = [chr(97 + at) for at in range(k)]
    columns = {"name": np.repeat(names, n), "qid": np.tile([*map(str, range(n))], k), "measure": measure}
    return pd.DataFrame(columns).assign(value=table.T.ravel())


def scores(n=20, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.clip(rng.beta(2, 3, (n, 1)) + rng.normal(0, 0.1, (n, k)) + 0.04 * np.arange(k), 0, 1)


def test_the_table_is_that_of_statsmodels():
    frame = values(scores())
    expected = sm.stats.anova_lm(ols("value ~ C(name) + C(qid)", frame).fit(), typ=2)
    sources = analysis_of_variance(frame).sources
    assert sources["source"].tolist() == ["system", "topic", "residual"]
    assert sources["sum_sq"].to_numpy() == pytest.approx(expected["sum_sq"].to_numpy())
    assert sources["df"].tolist() == expected["df"].tolist()
    assert sources["F"].to_numpy()[:2] == pytest.approx(expected["F"].to_numpy()[:2])
    assert sources["p_value"].to_numpy()[:2] == pytest.approx(expected["PR(>F)"].to_numpy()[:2])
    assert sources["F"].isna().tolist() == [False, False, True]
    # Components by the expected mean squares.
    system, topic, residual = sources["mean_sq"]
    components = [(system - residual) / 20, (topic - residual) / 4, residual]
    assert sources["variance"].to_numpy() == pytest.approx(components)
    assert sources["share"].sum() == pytest.approx(1)


def test_tukeys_differences_are_simultaneous_and_agree_with_their_p():
    table = scores()
    pairs = analysis_of_variance(values(table), level=0.9).pairs
    assert len(pairs) == 6
    # Without topic effects and with the same error, SciPy's one-way HSD has another error term alone.
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    error = (residual**2).sum() / (19 * 3)
    for row in pairs.itertuples():
        q = abs(row.diff) / (error / 20) ** 0.5
        assert row.p_adjusted == pytest.approx(stats.studentized_range.sf(q, 4, 57))
        assert ((row.low > 0) or (row.high < 0)) == (row.p_adjusted <= 0.1)
        assert row.p_value <= row.p_adjusted
    plots.differences(pairs)


def test_two_systems_have_the_paired_t_test():
    table = scores(k=2)
    row = analysis_of_variance(values(table)).pairs.iloc[0]
    expected = comparisons(values(table), test="t").iloc[0]
    ours, theirs = (each[["p_value", "p_adjusted", "low", "high"]].tolist() for each in (row, expected))
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.nightly
def test_tukeys_family_wise_error_is_nominal():
    rng, rejected = np.random.default_rng(4), 0
    for _ in range(240):
        table = rng.normal(0.5, 0.1, (15, 1)) + rng.normal(0, 0.05, (15, 4))
        rejected += int((analysis_of_variance(values(table)).pairs["p_adjusted"] <= 0.05).any())
    assert stats.binomtest(rejected, 240, 0.05).pvalue > 1e-3


@pytest.mark.parametrize("table", [np.tile([0.2, 0.4], (6, 1)), np.array([[0.2, 0.4]])], ids=["no error", "one topic"])
def test_no_residual_variance_has_no_tests(table):
    with pytest.warns(DegenerateWarning, match="without residual variance over"):
        result = analysis_of_variance(values(table))
    assert result.pairs[["low", "high", "p_value", "p_adjusted"]].isna().all(axis=None)
    assert result.sources["p_value"].isna().all()


def test_one_system_has_no_effects():
    result = analysis_of_variance(values(scores(k=1)))
    assert (len(result.sources), len(result.pairs)) == (0, 0)
    assert len(bayesian_comparison(values(scores(k=1)))) == 0


def test_the_conjugate_posterior_is_students():
    table = scores(k=3)
    result = bayesian_comparison(values(table), baseline="a", rope=0.02, level=0.9)
    assert result[["name_a", "name_b"]].to_numpy().tolist() == [["b", "a"], ["c", "a"]]
    for row, column in zip(result.itertuples(), (1, 2), strict=True):
        differences = table[:, column] - table[:, 0]
        posterior = stats.t(19, differences.mean(), stats.sem(differences))
        assert (row.low, row.high) == pytest.approx(posterior.interval(0.9))
        assert row.p_a_above == pytest.approx(posterior.sf(0))
        assert row.p_rope == pytest.approx(posterior.cdf(0.02) - posterior.cdf(-0.02))
        assert row.p_a_better + row.p_rope + row.p_b_better == pytest.approx(1)
        # One-sided p and posterior agree under the reference prior.
        assert row.p_a_above == pytest.approx(1 - stats.ttest_1samp(differences, 0, alternative="greater").pvalue)


def test_the_bayesian_bootstrap_is_close_to_it_and_has_no_shape():
    table = scores(n=60, k=2)
    one, other = (bayesian_comparison(values(table), posterior=p, n_draws=20_000) for p in ("conjugate", "bootstrap"))
    one, other = one.iloc[0], other.iloc[0]
    assert other[["low", "high"]].tolist() == pytest.approx(one[["low", "high"]].tolist(), abs=0.005)
    assert other["p_a_above"] == pytest.approx(one["p_a_above"], abs=0.02)
    assert (one["n_draws"], other["n_draws"]) == (0, 20_000)
    # Two topics: the mean with uniform weights is uniform between their differences.
    two = bayesian_comparison(values(np.array([[0.5, 0.5], [0.9, 0.5]])), posterior="bootstrap", n_draws=20_000)
    assert two[["low", "high"]].to_numpy()[0] == pytest.approx([0.01, 0.39], abs=0.004)
    assert two["p_rope"].item() == pytest.approx(0.025, abs=0.005)


def test_posteriors_without_spread_are_unknown():
    with pytest.warns(DegenerateWarning, match="1 of 1 pairs differ by the same amount on all topics"):
        result = bayesian_comparison(values(np.tile([0.2, 0.4], (6, 1))))
    assert result[["low", "high", "p_a_above", "p_rope"]].isna().all(axis=None)
    assert result["diff"].item() == pytest.approx(-0.2)
    with pytest.raises(ParameterError, match="posterior='mcmc': wanted one of"):
        bayesian_comparison(values(scores()), posterior="mcmc")
    with pytest.raises(ParameterError, match="rope=-1"):
        bayesian_comparison(values(scores()), rope=-1)
    with pytest.raises(ParameterError, match=r"rope=2: means of nDCG@10 differ by at most 1; .* did you mean 0\.02"):
        bayesian_comparison(values(scores()), rope=2)


# Risk


def risk_by_hand(scores, base, alpha):
    """URisk, TRisk, ZRisk and GeoRisk of each system by plain loops; scores as {system: [by topic]}."""
    c, result = len(base), {}
    total = sum(sum(row) for row in scores.values())
    for name, row in scores.items():
        gains = [x - b if x >= b else (1 + alpha) * (x - b) for x, b in zip(row, base, strict=True)]
        urisk = sum(gains) / c
        variance = sum((gain - urisk) ** 2 for gain in gains) / (c - 1)
        trisk = urisk / math.sqrt(variance / c) if variance > 1e-16 else math.nan
        zrisk = 0.0
        for q, x in enumerate(row):
            expected = sum(row) * sum(other[q] for other in scores.values()) / total if total else 0.0
            z = (x - expected) / math.sqrt(expected) if expected > 0 else 0.0
            zrisk += z if z >= 0 else (1 + alpha) * z
        normal = (1 + math.erf(zrisk / c / math.sqrt(2))) / 2
        result[name] = [urisk, trisk, zrisk, math.sqrt(sum(row) / c * normal)]
    return result


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.integers(2, 6), st.sampled_from([0.0, 1.0, 5.0]), st.booleans(), st.integers(0, 10**6))
def test_risk_equals_plain_loops(n_systems, n_topics, alpha, given_baseline, seed):
    rng = np.random.default_rng(seed)
    table = {f"s{i}": rng.random(n_topics) * (rng.random(n_topics) < 0.7) for i in range(n_systems)}
    table = {name: np.round(row, 2).tolist() for name, row in table.items()}
    rows = [(name, f"q{q}", "ES@10", x) for name, row in table.items() for q, x in enumerate(row)]
    frame = pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])
    frame = pd.concat([frame, frame.assign(measure="VB@10", value=frame["value"] - 0.5)])
    base = table["s1"] if given_baseline else np.mean(list(table.values()), axis=0)
    reference = risk_by_hand(table, base, alpha)
    options = {"measure": "ES@10", "baseline": "s1" if given_baseline else None, "alpha": alpha}
    result = risk_table(frame.sample(frac=1, random_state=seed), **options).set_index("name")
    for name, expected in reference.items():
        row = result.loc[name, ["URisk", "TRisk", "ZRisk", "GeoRisk"]].astype(float).tolist()
        assert row == pytest.approx(expected, abs=1e-9, nan_ok=True)
        mean = np.mean(table[name])
        assert result.loc[name, ["ES@10", "VB@10"]].tolist() == pytest.approx([mean, mean - 0.5])
        assert result.loc[name, "n_losses"] == sum(x < b - 1e-9 for x, b in zip(table[name], base, strict=True))
    assert set(result["n_qids"]) == {n_topics}


def test_risk_that_is_undefined_is_not_invented():
    frame = pd.DataFrame({"name": [*"aabb"], "qid": [*"1212"], "measure": "VB@10", "value": [-0.1, 0.5, 0.2, 0.1]})
    with pytest.warns(DegenerateWarning, match=r"VB@10: scores below 0 have no ZRisk and GeoRisk"):
        result = risk_table(frame, baseline="b")
    assert result[["ZRisk", "GeoRisk"]].isna().all(axis=None)
    assert result["TRisk"].isna().tolist() == [False, True]
    with pytest.raises(ParameterError, match="baseline='c': no such system; found 'a', 'b'"):
        risk_table(frame, baseline="c")
    with pytest.raises(InputError, match="no ES@10; found 'VB@10'"):
        risk_table(frame, measure="ES@10")
    with pytest.raises(ParameterError, match="alpha"):
        risk_table(frame, alpha=-1)
    with pytest.raises(InputError, match="no rows"):
        risk_table(frame.iloc[:0])
