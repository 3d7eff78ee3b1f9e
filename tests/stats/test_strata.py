"""Means over topics of low, middle and high coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.stats.regression import STRATA_COLUMNS as COLUMNS
from vbterrier.stats.regression import coverage_strata, strata_of


def test_tertiles_by_hand_with_scipys_t():
    coverage = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    gain = [0.0, 0.1, 0.2, 0.1, 0.1, 0.4, 0.5, 0.2, 0.5]
    table = pd.DataFrame({"c": coverage, "gain": gain, "AP": 0.5}).sample(frac=1, random_state=1)
    found = coverage_strata(table, "c", ["gain", "AP"], level=0.9)
    assert list(found) == list(COLUMNS)
    assert found["stratum"].tolist() == [1, 1, 2, 2, 3, 3]
    assert found["measure"].tolist() == ["gain", "AP"] * 3
    for place, row in enumerate(found[found["measure"] == "gain"].itertuples()):
        some = gain[3 * place : 3 * place + 3]
        low, high = stats.t.interval(0.9, 2, np.mean(some), stats.sem(some))
        assert (row.value, row.low, row.high) == pytest.approx((np.mean(some), low, high))
        assert (row.coverage_low, row.coverage_high) == (coverage[3 * place], coverage[3 * place + 2])
        assert (row.n_qids, row.n_undefined, row.level) == (3, 0, 0.9)
    assert found.loc[found["measure"] == "AP", ["value", "low", "high"]].to_numpy() == pytest.approx(
        np.full((3, 3), 0.5)
    )


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0, np.nan]), max_size=30), st.integers(2, 5))
def test_equals_stay_together_and_more_coverage_is_never_lower(coverage, n_strata):
    coverage = np.array(coverage)
    found = strata_of(coverage, n_strata)
    known = ~np.isnan(coverage)
    assert (found[~known] == -1).all()
    assert ((found[known] >= 0) & (found[known] < n_strata)).all()
    order = np.argsort(coverage[known], kind="stable")
    assert (np.diff(found[known][order]) >= 0).all()
    assert all(len(set(found[coverage == value])) <= 1 for value in coverage[known])


@given(st.integers(1, 40), st.integers(2, 5))
def test_without_ties_strata_differ_by_one_topic_at_most(n, n_strata):
    sizes = np.bincount(strata_of(np.random.default_rng(n).random(n), n_strata), minlength=n_strata)
    assert sizes.max() - sizes.min() <= 1


def test_topics_covered_in_full_leave_a_stratum_without_topics():
    table = pd.DataFrame({"c": [0.2, 0.3, *[1.0] * 8, np.nan], "gain": np.arange(11.0)})
    with pytest.warns(DegenerateWarning, match="no topic is in stratum 3 of 3"):
        found = coverage_strata(table, "c", "gain")
    assert found["n_qids"].tolist() == [2, 8, 0]
    assert (found["n_undefined"] == 1).all()
    assert found.loc[2, ["coverage_low", "value", "low", "high"]].isna().all()
    assert found["value"].tolist()[:2] == [0.5, 5.5]


def test_one_topic_has_a_mean_without_an_interval():
    with pytest.warns(DegenerateWarning, match="stratum 1"):
        found = coverage_strata(pd.DataFrame({"c": [0.5], "gain": [0.1]}), "c", "gain", n_strata=2)
    assert found["value"].tolist()[1] == 0.1
    assert found[["low", "high"]].isna().all(axis=None)


def test_bad_input_is_refused():
    table = pd.DataFrame({"c": [0.5, 0.6], "gain": [0.1, None]})
    with pytest.raises(InputError, match="'gain': row 1 has no value"):
        coverage_strata(table, "c", "gain")
    with pytest.raises(InputError, match="missing d"):
        coverage_strata(table, "d", "c")
    with pytest.raises(ParameterError, match="n_strata=1"):
        coverage_strata(table, "c", "c", n_strata=1)
    with pytest.raises(ParameterError, match="no measures"):
        coverage_strata(table, "c", [])
