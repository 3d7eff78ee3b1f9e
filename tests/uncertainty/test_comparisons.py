"""Differences between systems on the same topics."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import InputError, ParameterError
from vbterrier.uncertainty.comparisons import COLUMNS, comparisons, holm


def values(measure="ES@5", **systems):
    return pd.concat(
        [
            pd.DataFrame(
                {"name": name, "qid": [str(i) for i in range(len(scores))], "measure": measure, "value": scores}
            )
            for name, scores in systems.items()
        ]
    )


def exact_p(differences):
    """All sign flips, one by one."""
    seen = abs(np.mean(differences))
    flips = [abs(np.mean(np.multiply(signs, differences))) for signs in product([1, -1], repeat=len(differences))]
    return np.mean([flip >= seen - 1e-12 for flip in flips])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.1, 0.2, 0.3, -0.7, 1.0]), min_size=2, max_size=7))
def test_the_test_equals_all_sign_flips(differences):
    found = comparisons(values(a=differences, b=[0.0] * len(differences)))
    assert found["p_value"].item() == pytest.approx(exact_p(differences))
    assert found["diff"].item() == pytest.approx(np.mean(differences))


def test_every_pair_of_every_measure_with_holm_over_the_pairs_of_one():
    rng = np.random.default_rng(5)
    scores = {name: rng.random(30) + shift for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.6))}
    table = pd.concat([values(**scores), values("VB@5", **scores)])
    found = comparisons(table)
    assert list(found) == list(COLUMNS)
    assert found[["name_a", "name_b"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]] * 2
    first = found[found["measure"] == "ES@5"]
    assert first["p_adjusted"].to_numpy() == pytest.approx(holm(first["p_value"].to_numpy()))
    # None of 2,000 flips is as far out as what was seen, which counts among them.
    assert first["p_value"].iloc[1] == pytest.approx(1 / 2001)
    assert (found["low"] < found["diff"]).all()
    assert (found["diff"] < found["high"]).all()
    assert (found["n_qids"] == 30).all()


def test_a_baseline_is_what_others_are_compared_with():
    found = comparisons(values(base=[0.1, 0.4], a=[0.5, 0.5], b=[0.0, 0.2]), baseline="base")
    assert found[["name_a", "name_b"]].to_numpy().tolist() == [["a", "base"], ["b", "base"]]
    assert found["diff"].tolist() == pytest.approx([0.25, -0.15])
    with pytest.raises(ParameterError, match=r"baseline='bse'.*Did you mean base"):
        comparisons(values(base=[0.1, 0.4], a=[0.5, 0.5]), baseline="bse")


def test_random_flips_agree_with_all_of_them_and_with_scipy_in_blocks_too(monkeypatch):
    from scipy import stats

    rng = np.random.default_rng(3)
    differences = rng.normal(0.2, 1, 14)
    table = values(a=differences, b=[0.0] * 14)
    every = exact_p(differences)
    assert comparisons(table, n_resamples=2**14)["p_value"].item() == pytest.approx(every)
    peer = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=2**14)
    assert every == pytest.approx(peer.pvalue)
    drawn = comparisons(table, n_resamples=10_000, seed=2)["p_value"].item()
    # Five standard errors of a share of 10,000.
    assert drawn == pytest.approx(every, abs=5 * np.sqrt(every * (1 - every) / 10_000))
    monkeypatch.setattr("vbterrier.kernels.resample._BLOCK", 14 * 999)
    assert comparisons(table, n_resamples=10_000, seed=2)["p_value"].item() == drawn


def test_other_systems_do_not_change_a_test():
    rng = np.random.default_rng(9)
    a, b, c = rng.random((3, 25))
    columns = ["diff", "low", "high", "p_value"]
    alone, beside = comparisons(values(a=a, b=b)), comparisons(values(a=a, b=b, c=c))
    # Products of matrices with other columns beside round otherwise.
    assert alone[columns].iloc[0].tolist() == pytest.approx(beside[columns].iloc[0].tolist(), abs=1e-12)


def test_equal_systems_do_not_differ():
    found = comparisons(values(a=[0.5, 0.25], b=[0.5, 0.25]))
    assert found[["diff", "low", "high", "p_value", "p_adjusted"]].to_numpy().tolist() == [[0, 0, 0, 1, 1]]


def test_a_constant_difference_is_one():
    found = comparisons(values(a=[0.5] * 12, b=[0.25] * 12))
    assert found[["diff", "low", "high"]].to_numpy().tolist() == [[0.25, 0.25, 0.25]]
    assert found["p_value"].item() == pytest.approx(2 / 2**12, abs=1e-3)


def test_rows_in_any_order_and_the_same_seed():
    rng = np.random.default_rng(1)
    table = values(a=rng.random(40), b=rng.random(40))
    mixed = pd.concat([table[table["name"] == "a"].sample(frac=1, random_state=1), table[table["name"] == "b"]])
    pd.testing.assert_frame_equal(comparisons(table, seed=4), comparisons(mixed, seed=4))
    first, second = (comparisons(table, seed=seed).iloc[0] for seed in (4, 5))
    assert first["low"] != second["low"]
    assert first["p_value"] != second["p_value"]


def test_one_system_alone_has_no_comparison():
    found = comparisons(values(a=[0.5, 0.25]))
    assert len(found) == 0
    assert list(found) == list(COLUMNS)


def test_systems_with_other_topics_are_refused():
    table = values(a=[0.5, 0.25, 0.1], b=[0.5, 0.25])
    with pytest.raises(InputError, match=r"of ES@5, 1 topics \('2'\) lack a value .*topics='common'"):
        comparisons(table)


def test_holm_by_hand():
    # .01 * 4, then .02 * 3 = .06, .03 * 2 = .06, and the largest as it is.
    assert holm(np.array([0.03, 0.01, 0.5, 0.02])).tolist() == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_the_share_of_false_alarms_is_what_the_level_says():
    from scipy import stats

    rng = np.random.default_rng(11)
    n = 300
    alarms = sum(comparisons(values(a=rng.random(9), b=rng.random(9)))["p_value"].item() <= 0.05 for _ in range(n))
    assert stats.binomtest(alarms, n, 0.05).pvalue > 1e-3
