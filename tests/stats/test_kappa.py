"""Inter-annotator agreement, against scikit-learn, textbook tables and plain loops."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.kernels.resample import stream
from vbterrier.stats.kappa import COLUMNS, cohen_kappa, fleiss_kappa, judge_agreement, krippendorff_alpha

# The example of Fleiss 1971: 10 items, 14 judges, 5 categories; kappa .210.
REPRINTED = np.array(
    [
        [0, 0, 0, 0, 14, 0, 2, 6, 4, 2, 0, 0, 3, 5, 6, 0, 3, 9, 2, 0, 2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0, 3, 2, 6, 3, 0, 2, 5, 3, 2, 2, 6, 5, 2, 1, 0, 0, 2, 2, 3, 7],
    ]
).reshape(10, 5)


def spread(counts):
    """Expand counts of labels to labels, a row for each item."""
    return np.array([np.repeat(np.arange(len(row)), row) for row in counts])


def fleiss(labels):
    """The formula by a loop over pairs of judges."""
    labels = np.asarray(labels)
    agreed = np.mean([np.mean([row[a] == row[b] for a, b in combinations(range(len(row)), 2)]) for row in labels])
    chance = sum(np.mean(labels == label) ** 2 for label in np.unique(labels))
    return (agreed - chance) / (1 - chance)


@pytest.mark.filterwarnings("ignore:all labels agree:vbterrier.errors.DegenerateWarning")
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30),
    st.sampled_from([None, "linear", "quadratic"]),
)
def test_cohens_kappa_equals_scikit_learns(pairs, weights):
    assume(len({label for pair in pairs for label in pair}) > 1)
    first, second = zip(*pairs, strict=True)
    kappa = cohen_kappa(first, second, weights=weights, categories=range(4))
    peer = cohen_kappa_score(first, second, weights=weights, labels=range(4))
    assert kappa.value == pytest.approx(peer, abs=1e-12)
    assert kappa.agreement == pytest.approx(np.mean(np.equal(first, second)))
    assert kappa.n_items == len(pairs)


def test_the_error_of_cohens_kappa_by_the_formula_of_fleiss_cohen_and_everitt():
    p = np.array([[20, 5], [10, 15]]) / 50
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    seen, chance = np.trace(p), rows @ columns
    kappa = (seen - chance) / (1 - chance)
    a = sum(p[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in range(2))
    b = (1 - kappa) ** 2 * sum(p[i, j] * (columns[i] + rows[j]) ** 2 for i in range(2) for j in range(2) if i != j)
    error = np.sqrt((a + b - (kappa - chance * (1 - kappa)) ** 2) / 50) / (1 - chance)
    labels = [(i, j) for i in range(2) for j in range(2) for _ in range(int(50 * p[i, j] + 0.5))]
    result = cohen_kappa(*zip(*labels, strict=True), level=0.9)
    assert result.value == pytest.approx(0.4)
    reach = stats.norm.ppf(0.95) * error
    assert (result.low, result.high) == pytest.approx((0.4 - reach, 0.4 + reach))


@pytest.mark.slow
def test_intervals_of_cohens_kappa_hold_the_truth_as_often_as_they_say():
    # Both judges know the label with probability .8, else guess: with two equally likely labels, kappa is .64.
    rng, held = np.random.default_rng(7), 0
    for _ in range(300):
        truth = rng.integers(2, size=150)
        judges = [np.where(rng.random(150) < 0.8, truth, rng.integers(2, size=150)) for _ in range(2)]
        kappa = cohen_kappa(*judges)
        held += kappa.low <= 0.64 <= kappa.high
    assert stats.binomtest(held, 300, 0.95).pvalue > 0.001


def test_fleiss_kappa_of_the_reprinted_table():
    kappa = fleiss_kappa(spread(REPRINTED))
    assert round(kappa.value, 3) == 0.210
    assert kappa.value == pytest.approx(fleiss(spread(REPRINTED)))
    assert (kappa.agreement, kappa.n_items) == (0.1, 10)


def test_the_interval_of_fleiss_kappa_equals_a_loop_over_the_same_resamples(monkeypatch):
    labels = spread(REPRINTED)
    kappa = fleiss_kappa(labels, n_resamples=100, seed=3)
    loop = [fleiss(labels[rows]) for rows in stream(3, "kappa").integers(10, size=(100, 10))]
    assert (kappa.low, kappa.high) == pytest.approx(tuple(np.quantile(loop, [0.025, 0.975])))
    monkeypatch.setattr("vbterrier.stats.kappa.BLOCK_CELLS", 70)
    assert fleiss_kappa(labels, n_resamples=100, seed=3) == kappa


def test_the_table_of_judges_holds_each_number():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=40)
    labels = pd.DataFrame({name: np.where(rng.random(40) < 0.7, truth, rng.integers(3, size=40)) for name in "abc"})
    result = judge_agreement(labels, weights="quadratic", seed=1)
    assert list(result) == list(COLUMNS)
    assert result["judges"].tolist() == ["a, b", "a, c", "b, c", "a, b, c", "a, b, c"]
    two = cohen_kappa(labels["a"], labels["c"], weights="quadratic")
    assert result.loc[1, ["value", "low", "high"]].tolist() == [two.value, two.low, two.high]
    every = fleiss_kappa(labels, seed=1)
    assert result.loc[3, ["value", "low", "high"]].tolist() == [every.value, every.low, every.high]
    agreed = int((labels.eq(labels["a"], axis=0)).all(axis=1).sum())
    ends = stats.binomtest(agreed, 40).proportion_ci()
    assert result.loc[4, ["value", "low", "high"]].tolist() == pytest.approx([agreed / 40, ends.low, ends.high])
    assert (result["n_items"] == 40).all()


@pytest.mark.parametrize(
    ("first", "second", "categories"),
    [
        # Labels 0 and 2 of 0, 1, 2: two steps apart, against labels one step apart.
        ([0, 0, 2, 2, 0, 1], [0, 2, 2, 0, 0, 0], [0, 1, 2]),
        (["low", "high", "mid", "low"], ["low", "mid", "mid", "high"], ["low", "mid", "high"]),
        ([2, 10, 0, 2, 0, 10], [10, 2, 0, 2, 2, 10], None),
    ],
    ids=["unused category", "text in a given order", "numbers in their order"],
)
def test_distances_follow_the_order_of_labels(first, second, categories):
    peer = cohen_kappa_score(first, second, weights="linear", labels=categories)
    assert cohen_kappa(first, second, weights="linear", categories=categories).value == pytest.approx(peer)
    table = judge_agreement(pd.DataFrame({"a": first, "b": second}), weights="linear", categories=categories)
    assert table["value"][0] == pytest.approx(peer)


def test_text_has_no_order_of_its_own():
    words = (["low", "high", "mid", "low"], ["low", "mid", "mid", "high"])
    assert cohen_kappa(*words).value == pytest.approx(cohen_kappa_score(*words))
    with pytest.raises(ParameterError, match="need an order of labels"):
        cohen_kappa(*words, weights="linear")


def test_judges_who_always_say_the_same_show_nothing():
    with pytest.warns(DegenerateWarning, match="all labels are the same"):
        two = cohen_kappa([1, 1], [1, 1])
    with pytest.warns(DegenerateWarning, match="all labels are the same"):
        every = fleiss_kappa([[1, 1, 1]] * 2)
    for result in (two, every):
        assert np.isnan([result.value, result.low, result.high]).all()
        assert result.agreement == 1


@pytest.mark.parametrize("second", [[0, 1, 1, 0], [1, 1, 1, 1]])
def test_an_error_of_nothing_is_no_interval(second):
    with pytest.warns(DegenerateWarning, match="the standard error is 0"):
        kappa = cohen_kappa([0, 1, 1, 0], second)
    assert kappa.value == (1 if second[0] == 0 else 0)
    assert np.isnan([kappa.low, kappa.high]).all()


# The example of Krippendorff 2011: 4 observers, 12 units, missing labels; alpha of nominal labels .743.
OBSERVED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, np.nan, np.nan, np.nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, np.nan, 3],
        [np.nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, np.nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, np.nan],
    ]
).T


def alpha(rows):
    """Alpha by pairs of labels: within items for the observed, of all labels for the expected disagreement."""
    kept = [row[~np.isnan(row)] for row in rows]
    kept = [row for row in kept if len(row) > 1]
    every = np.concatenate(kept)
    seen = sum((row[:, None] != row).sum() / (len(row) - 1) for row in kept) / len(every)
    return 1 - seen / ((every[:, None] != every).sum() / (len(every) * (len(every) - 1)))


def test_krippendorffs_alpha_of_his_example_and_by_pairs():
    result = krippendorff_alpha(OBSERVED)
    assert (round(result.value, 3), result.n_items) == (0.743, 11)
    assert result.value == pytest.approx(alpha(OBSERVED), abs=1e-12)
    draws = np.random.default_rng(0).integers(3, size=(40, 3)).astype(float)
    draws[draws == 2] = np.nan
    assert krippendorff_alpha(draws).value == pytest.approx(alpha(draws), abs=1e-12)
    words = pd.DataFrame(OBSERVED).replace({1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}).astype(object)
    assert krippendorff_alpha(words) == result


def test_resamples_of_equal_labels_have_no_alpha_and_leave_the_interval_to_the_others():
    rows = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    result = krippendorff_alpha(rows, n_resamples=200, seed=5)
    drawn = [rows[places] for places in stream(5, "alpha").integers(3, size=(200, 3))]
    defined = [alpha(resampled) for resampled in drawn if np.ptp(resampled) > 0]
    assert 0 < len(defined) < 200
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(defined, [0.025, 0.975])))


@pytest.mark.parametrize("groups", [None, [*"aaabbbcccddd"]])
def test_the_interval_of_alpha_equals_a_loop_over_resampled_groups(groups):
    result = krippendorff_alpha(OBSERVED, groups=groups, n_resamples=50, seed=3)
    keys = np.arange(12) if groups is None else np.array(groups)
    groups_of_pairs = list(dict.fromkeys(keys[(~np.isnan(OBSERVED)).sum(axis=1) > 1]))
    parts = [OBSERVED[keys == key] for key in groups_of_pairs]
    drawn = stream(3, "alpha").integers(len(parts), size=(50, len(parts)))
    loop = [alpha(np.concatenate([parts[at] for at in rows])) for rows in drawn]
    assert [result.low, result.high] == pytest.approx(np.quantile(loop, [0.025, 0.975]), abs=1e-12)


def test_alpha_of_equal_labels_is_undefined_and_needs_two_of_an_item():
    with pytest.warns(DegenerateWarning, match="all labels are the same"):
        assert np.isnan(krippendorff_alpha([[1, 1], [1, 1], [0, None]]).value)
    with pytest.raises(InputError, match="no item has two labels"):
        krippendorff_alpha([[1, None], [None, 0]])
