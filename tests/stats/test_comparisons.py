"""Differences between systems on the same topics, corrections of their p-values, and compact letter displays."""

import gc
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.multitest import multipletests

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.kernels.mean_limits import SampledQueries, lower_limit, moments, upper_limit
from vbterrier.stats.comparisons import COLUMNS, adjusted_p_values, comparisons, equivalence, letters
from vbterrier.stats.paired_tests import RESAMPLED_TESTS, TESTS, max_t


def values(measure="ES@5", **systems):
    parts = [
        pd.DataFrame({"name": name, "qid": [*map(str, range(len(scores)))], "measure": measure, "value": scores})
        for name, scores in systems.items()
    ]
    return pd.concat(parts)


def test_every_pair_of_every_measure_corrected_over_the_pairs_of_one():
    rng = np.random.default_rng(5)
    scores = {name: rng.random(30) / 2 + shift for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.5))}
    pairs = comparisons(pd.concat([values(**scores), values("VB@5", **scores)]))
    assert list(pairs) == list(COLUMNS)
    assert pairs[["name_a", "name_b"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]] * 2
    assert (set(pairs["correction"]), set(pairs["n_tests"]), set(pairs["n_qids"])) == ({"bonferroni"}, {3}, {30})
    flips = comparisons(pd.concat([values(**scores), values("VB@5", **scores)]), test="randomisation")
    assert set(flips["correction"]) == {"max-t"}
    # None of 2,000 flips is as extreme as the observed statistic, which counts too.
    assert flips["p_value"].iloc[1] == pytest.approx(1 / 2001)
    assert (pairs["low"] < pairs["diff"]).all()
    assert (pairs["diff"] < pairs["high"]).all()


def test_all_systems_are_compared_with_the_baseline_and_one_alone_with_none():
    pairs = comparisons(values(base=[0.1, 0.4], a=[0.5, 0.5], b=[0.0, 0.2]), baseline="base")
    assert pairs[["name_a", "name_b"]].to_numpy().tolist() == [["a", "base"], ["b", "base"]]
    assert pairs["diff"].tolist() == pytest.approx([0.25, -0.15])
    with pytest.raises(ParameterError, match=r"baseline='bse'.*Did you mean base"):
        comparisons(values(base=[0.1, 0.4], a=[0.5, 0.5]), baseline="bse")
    alone = comparisons(values(a=[0.5, 0.25]))
    assert (len(alone), list(alone)) == (0, list(COLUMNS))


@pytest.mark.parametrize(
    ("n", "diff", "p", "low", "high"),
    [
        # Other topics may differ by up to 1: the limit of n equal differences x is x + (1 - x)(1 - .025^(1/n)).
        (2, 0, 1, -(1 - 0.025**0.5), 1 - 0.025**0.5),
        # The limit excludes 0 from p = .05 on: 2 (1/1.25)^n.
        (
            16,
            0.25,
            pytest.approx(2 * 0.8**16),
            0.25 - 1.25 * (1 - 0.025 ** (1 / 16)),
            0.25 + 0.75 * (1 - 0.025 ** (1 / 16)),
        ),
        (
            12,
            0.25,
            pytest.approx(2 * 0.8**12),
            0.25 - 1.25 * (1 - 0.025 ** (1 / 12)),
            0.25 + 0.75 * (1 - 0.025 ** (1 / 12)),
        ),
    ],
)
def test_a_constant_difference_has_an_interval_with_room_for_others(n, diff, p, low, high):
    pairs = comparisons(values(a=[0.25 + diff] * n, b=[0.25] * n))
    expected = [[diff, pytest.approx(low), pytest.approx(high), p, p]]
    assert pairs[["diff", "low", "high", "p_value", "p_adjusted"]].to_numpy().tolist() == expected
    unknown = comparisons(values("own", a=[0.25 + diff] * n, b=[0.25] * n))
    assert unknown[["low", "high", "p_value"]].to_numpy().tolist() == [[-np.inf, np.inf, 1.0]]


def test_rows_in_any_order_and_the_same_seed():
    table = values(a=np.random.default_rng(1).random(40), b=np.random.default_rng(2).random(40))
    mixed = pd.concat([table[table["name"] == "a"].sample(frac=1, random_state=1), table[table["name"] == "b"]])
    first, again, other = (
        comparisons(rows, test="randomisation", seed=seed) for rows, seed in ((table, 4), (mixed, 4), (table, 5))
    )
    pd.testing.assert_frame_equal(comparisons(table), comparisons(mixed))
    pd.testing.assert_frame_equal(first, again)
    assert (first.loc[0, ["low", "p_value"]] != other.loc[0, ["low", "p_value"]]).all()


# Tests and corrections.

SCORES = {name: np.random.default_rng(31).beta(2, 3, (5, 40))[place] for place, name in enumerate("abcde")}
SCORES["b"] = SCORES["a"] + np.random.default_rng(32).normal(0.05, 0.1, 40)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "none"])
def test_each_correction_is_of_the_p_values_of_one_measure(test, correction):
    table = pd.concat([values(**SCORES), values("AP", a=SCORES["a"], b=SCORES["b"])])
    pairs = comparisons(table, test=test, correction=correction, n_resamples=199)
    for _, family in pairs.groupby("measure"):
        p_values = family["p_value"].to_numpy()
        assert family["p_adjusted"].to_numpy() == pytest.approx(adjusted_p_values(p_values, correction))
    if test != "moderated":
        assert pairs["p_value"].iloc[0] == pytest.approx(pairs["p_value"].iloc[-1], abs=1e-12)
    used = 199 if test in RESAMPLED_TESTS else 0
    about = pairs[["correction", "test", "n_resamples"]].drop_duplicates()
    assert about.to_numpy().tolist() == [[correction, TESTS[test], used]]


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_max_t_is_of_all_pairs_or_of_those_with_the_baseline(test):
    table = values(**SCORES)
    every = comparisons(table, test=test, correction="max-t", n_resamples=199, seed=2)
    few = comparisons(table, baseline="a", test=test, correction="max-t", n_resamples=199, seed=2)
    pairs = zip(every["name_a"], every["name_b"], strict=True)
    # Topics are sorted as text.
    differences = np.stack([SCORES[a] - SCORES[b] for a, b in pairs], axis=1)[np.argsort([*map(str, range(40))])]
    p_values, corrected = max_t(differences, test, n_resamples=199, seed=2)
    assert every["p_value"].to_numpy() == pytest.approx(p_values, abs=1e-12)
    assert every["p_adjusted"].to_numpy() == pytest.approx(corrected, abs=1e-12)
    # A smaller family has a smaller adjustment.
    assert few["p_adjusted"].iloc[0] <= every["p_adjusted"].iloc[0]
    assert few["p_adjusted"].sum() < every["p_adjusted"].iloc[:4].sum()


def test_too_few_resamples_for_holm_are_said_with_how_many_it_takes():
    # 10 pairs: the smallest p is 10/200 = .05 with 199 resamples, and larger with fewer.
    with pytest.warns(DegenerateWarning, match="over 10 tests leaves no p below 0.051 .* at 0.05; use 200 or more, or"):
        comparisons(values(**SCORES), test="randomisation", correction="holm", n_resamples=197)
    for options in ({"n_resamples": 199, "correction": "holm"}, {"n_resamples": 9, "correction": "max-t"}):
        comparisons(values(**SCORES), test="randomisation", **options)
    comparisons(values(**SCORES), n_resamples=9, test="t")


@pytest.mark.parametrize("test", TESTS)
def test_families_of_one_measure_or_of_all(test):
    table = pd.concat([values(**SCORES), values("AP", **{name: scores**2 for name, scores in SCORES.items()})])
    apart, together = (comparisons(table, test=test, family=family, n_resamples=499) for family in ("measure", "all"))
    assert (set(apart["n_tests"]), set(together["n_tests"])) == ({10}, {20})
    pd.testing.assert_series_equal(apart["p_value"], together["p_value"])
    corrected = "bonferroni" if test in {"moderated", "t", "wilcoxon"} else "max-t"
    assert set(together["correction"]) == {corrected}
    assert (together["p_adjusted"] >= apart["p_adjusted"]).all()
    assert (together["high"] - together["low"] > apart["high"] - apart["low"]).any()
    if corrected == "bonferroni":
        assert together["p_adjusted"].to_numpy() == pytest.approx(np.minimum(20 * together["p_value"], 1))


def test_measures_on_different_topics_are_one_family_without_max_t():
    table = pd.concat([values(**SCORES), values("AP", a=SCORES["a"][:20], b=SCORES["b"][:20])])
    pairs = comparisons(table, test="randomisation", family="all", n_resamples=999)
    assert (set(pairs["correction"]), set(pairs["n_tests"])) == ({"bonferroni"}, {11})
    with pytest.raises(ParameterError, match=r"measures have different topics.*use correction='holm'"):
        comparisons(table, test="randomisation", family="all", correction="max-t")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # .4, .2, 0, -.2: mean .1, variance (.09 + .01 + .01 + .09)/3.
        ([0.5, 0.5, 0.1, 0.3], [0.1, 0.3, 0.1, 0.5], [0.1, 0.1 / (0.2 / 3) ** 0.5, 2, 1, 1]),
        # .3 - .1 - .2 is not exactly 0 in floating point.
        ([0.3 - 0.1, 0.5, 0.7], [0.2, 0.5, 0.7], [0, 0, 0, 0, 3]),
    ],
    ids=["by hand", "roundings are ties"],
)
def test_effect_size_and_topics_won(a, b, expected):
    row = comparisons(values(a=a, b=b), test="t").iloc[0]
    effect = row[["diff", "effect_size", "wins", "losses", "ties"]].tolist()
    assert effect == pytest.approx(expected, abs=0, rel=1e-12)
    assert (row["p_value"] == 1) == (expected[0] == 0)


def test_a_constant_difference_has_no_spread():
    table = values(a=[0.5] * 12, b=[0.3] * 12, c=[0.5] * 12)
    result = comparisons(table, margin=0.1).set_index(["name_a", "name_b"])
    assert result["effect_size"].tolist() == [np.inf, 0.0, -np.inf]
    # Other topics may differ by up to 1.
    p = 2 * (1 / 1.2) ** 12
    assert result["p_value"].tolist() == pytest.approx([p, 1.0, p])
    assert comparisons(table, test="t")["p_value"].tolist() == pytest.approx([p, 1.0, p])
    with pytest.warns(DegenerateWarning, match="in 2 of 3 pairs all topics differ by the same"):
        resampled = comparisons(table, test="bootstrap", n_resamples=99)
    assert resampled["p_value"].tolist() == [0.01, 1.0, 0.01]
    assert result["p_equivalence"].tolist() == pytest.approx([1.0, 0.9**12, 1.0])
    assert result.columns[result.isna().any()].tolist() == ["effect_low", "effect_high"]


def test_equivalence_is_that_of_both_limits():
    a = SCORES["a"]
    for shift, margin in ((0.0, 0.2), (0.1, 0.2), (-0.1, 0.3)):
        d = np.random.default_rng(1).normal(shift, 0.1, 40)
        p = comparisons(values(a=a, b=a - d), margin=margin)["p_equivalence"][0]
        d = np.sort(d)[:, None]
        of = moments(d)
        # The nearer limit at this level is the margin.
        low, high = (float(each(of, p, 1.0, special.stdtrit)[0]) for each in (lower_limit, upper_limit))
        assert min(margin + low, margin - high) == pytest.approx(0, abs=2e-4)
    assert comparisons(values(**SCORES))["p_equivalence"].isna().all()
    assert comparisons(values("own", **SCORES), margin=0.1)["p_equivalence"].isna().all()


@pytest.mark.parametrize("n", [50, 400])
def test_rare_large_differences_are_rarely_taken_for_equivalence(n):
    rng = np.random.default_rng(n)
    d = np.where(rng.random((n, 300)) < 0.06, -0.9, np.where(rng.random((n, 300)) < 0.45, 0.0, 0.004))
    p = equivalence(moments(d), 0.05, (-1.0, 1.0))
    # The mean is -.052: two t-tests are wrong in up to .45 of such samples.
    assert stats.binom.sf(int((p <= 0.05).sum()) - 1, 300, 0.05) > 1e-3


@pytest.mark.parametrize(("n_systems", "n"), [(2, 10), (8, 30), (12, 12)])
@pytest.mark.parametrize("test", ["moderated", "t"])
def test_intervals_and_effects_exclude_zero_exactly_where_the_test_rejects(test, n_systems, n):
    scores = np.random.default_rng([n_systems, n]).beta(2, 3, (n_systems, n)) + np.arange(n_systems)[:, None] / 20
    systems = {f"s{i}": row for i, row in enumerate(scores)}
    for correction in ("bonferroni", "bh", "none"):
        pairs = comparisons(values(**systems), test=test, correction=correction)
        rejected = pairs["p_adjusted"] <= 0.05
        assert ((pairs["low"] > 0) | (pairs["high"] < 0)).tolist() == rejected.tolist()
        assert ((pairs["effect_low"] > 0) | (pairs["effect_high"] < 0)).tolist() == rejected.tolist()
        assert (pairs["effect_low"] <= pairs["effect_size"]).all()
        assert (pairs["effect_size"] <= pairs["effect_high"]).all()


@pytest.mark.parametrize(
    ("test", "correction", "label"),
    [
        ("moderated", "bonferroni", "inverted moderated paired t, simultaneous"),
        ("moderated", "holm", "inverted moderated paired t, simultaneous by Bonferroni"),
        ("randomisation", "max-t", "inverted moderated paired t, simultaneous by Bonferroni"),
        ("randomisation", "holm", "inverted moderated paired t, simultaneous by Bonferroni"),
        ("wilcoxon", "bonferroni", "inverted Wilcoxon signed-rank of the shift, simultaneous"),
        ("wilcoxon", "none", "inverted Wilcoxon signed-rank of the shift"),
    ],
)
def test_intervals_name_their_method(test, correction, label):
    pairs = comparisons(values(**SCORES), test=test, correction=correction, n_resamples=999)
    assert set(pairs["method"]) == {label}
    if "by Bonferroni" in label:
        default = comparisons(values(**SCORES))
        assert pairs["low"].tolist() == pytest.approx(default["low"].tolist())
        # Effects agree with the test that is reported.
        rejected = pairs["p_adjusted"] <= 0.05
        excluded = (pairs["effect_low"] > 0) | (pairs["effect_high"] < 0)
        assert not (excluded & ~rejected).any()


def test_variances_are_moderated_by_the_median_of_all_pairs():
    n, rng = 12, np.random.default_rng(3)
    systems = {"a": rng.random(n), "b": rng.random(n), "c": rng.random(n)}
    systems["d"] = systems["a"] + 0.01 + rng.normal(0, 1e-4, n)
    table = comparisons(values(**systems)).set_index(["name_a", "name_b"])
    d = np.stack([systems[a] - systems[b] for a, b in table.index], axis=1)
    v = d.var(axis=0, ddof=1)
    v = np.maximum(v, (v * (n - 1) + 4 * np.median(v)) / (n + 3))
    t = d.mean(axis=0) / np.sqrt(v / n)
    assert table["p_value"].tolist() == pytest.approx((2 * stats.t.sf(np.abs(t), n - 1)).tolist())
    assert table["effect_size"].tolist() == pytest.approx((t / np.sqrt(n)).tolist())
    # Without moderation, a difference of .01 by chance would be certain.
    assert table.loc[("a", "d"), "p_value"] > 0.5
    assert comparisons(values(**systems), test="t").set_index(["name_a", "name_b"]).loc[("a", "d"), "p_value"] < 1e-6
    half = stats.t.isf(0.05 / 12, n - 1) * np.sqrt(v / n)
    assert (table["high"] - table["low"]).tolist() == pytest.approx((2 * half).tolist())


@pytest.mark.parametrize("weighted", [True, False])
def test_weights_and_clusters_are_those_of_students_t(weighted):
    rng = np.random.default_rng(4)
    systems = {name: rng.random(20) for name in "ab"}
    w, code = rng.lognormal(0, 1, 20), np.arange(20) // 2
    sample = SampledQueries(w if weighted else np.ones(20), clusters=None if weighted else code)
    order = np.argsort([*map(str, range(20))])
    sorted_sample = SampledQueries(sample.weights[order], clusters=None if weighted else code[order])
    row = comparisons(values(**systems), sample=lambda _: sorted_sample).iloc[0]
    of = sample.moments((systems["a"] - systems["b"])[:, None])
    t = of.mean / np.sqrt(of.variance)
    assert row["p_value"] == pytest.approx(float(2 * special.stdtr(of.df, -abs(t))[0]))
    assert row["diff"] == pytest.approx(float(of.mean[0]))
    for test in ("randomisation", "wilcoxon") if weighted else ("wilcoxon",):
        with pytest.raises(ParameterError, match=f"test='{test}' has no weights"):
            comparisons(values(**systems), test=test, sample=lambda _: sorted_sample)


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_clusters_are_flipped_and_drawn_as_one(test):
    rng = np.random.default_rng(8)
    single = {name: rng.random(10) for name in "abc"}
    twice = values(**{name: np.repeat(scores, 2) for name, scores in single.items()})

    def sample(qids):
        return SampledQueries(
            np.ones(len(qids)), clusters=np.unique([int(q) // 2 for q in qids], return_inverse=True)[1]
        )

    pairs = comparisons(twice, test=test, sample=sample)
    alone = comparisons(values(**single), test=test)
    assert pairs["p_adjusted"].tolist() == pytest.approx(alone["p_adjusted"].tolist())
    # Copies would be taken as evidence without clusters.
    assert (comparisons(twice, test=test)["p_value"] < pairs["p_value"]).all()
    assert pairs["method"].iloc[0] == "inverted moderated paired t, simultaneous by Bonferroni"
    pair = comparisons(twice[twice["name"] != "c"], test=test, sample=sample).iloc[0]
    assert (pair["p_value"] > 0.05) == (pair["low"] <= 0 <= pair["high"])


@pytest.mark.parametrize("test", TESTS)
def test_swapping_two_systems_turns_signs_alone(test):
    options = dict(test=test, margin=0.1, n_resamples=99)
    one = comparisons(values(a=SCORES["a"], b=SCORES["b"]), **options).iloc[0]
    other = comparisons(values(b=SCORES["b"], a=SCORES["a"]), **options).iloc[0]
    assert (other["name_a"], other["name_b"]) == ("b", "a")
    for same in ("p_value", "p_adjusted", "ties", "p_equivalence"):
        assert one[same] == pytest.approx(other[same], abs=1e-12)
    for mine, its in (("diff", "diff"), ("low", "high"), ("high", "low"), ("effect_size", "effect_size")):
        assert one[mine] == pytest.approx(-other[its], abs=1e-12)
    assert (one["wins"], one["losses"]) == (other["losses"], other["wins"])


@pytest.mark.parametrize("correction", ["holm", "max-t"])
def test_names_of_systems_change_no_p_value(correction):
    renamed = {f"x{9 - i}": scores for i, scores in enumerate(SCORES.values())}
    result, again = (
        comparisons(values(**systems), test="randomisation", correction=correction, n_resamples=199).drop(
            columns=["name_a", "name_b"]
        )
        for systems in (SCORES, renamed)
    )
    pd.testing.assert_frame_equal(result, again)


def test_no_p_values_and_none_to_adjust():
    for correction in ("holm", "bh", "none"):
        assert adjusted_p_values(np.array([]), correction).tolist() == []
    assert adjusted_p_values(np.array([0.03, 0.01]), "none").tolist() == [0.03, 0.01]


@pytest.mark.parametrize(("name", "statsmodels_name"), [("holm", "holm"), ("bh", "fdr_bh")])
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_those_of_statsmodels(monkeypatch_gc, name, statsmodels_name, p_values):
    expected = multipletests(p_values, method=statsmodels_name)[1]
    assert adjusted_p_values(np.array(p_values), name) == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def monkeypatch_gc():
    """Disable garbage collection, which statsmodels runs in every call (0.1 s)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


# Compact letter displays are exact for any pattern of differences, and short where a shortest is known.
def signs(text):
    return set(re.findall(r"[a-z]\d*", text))


def matrix(n, pairs):
    different = np.zeros((n, n), dtype=bool)
    for a, b in pairs:
        different[a, b] = different[b, a] = True
    return different


@st.composite
def differences(draw, n_most=9):
    n = draw(st.integers(0, n_most))
    every = list(combinations(range(n), 2))
    return matrix(n, draw(st.lists(st.sampled_from(every), unique=True)) if every else [])


def maximal_cliques(alike):
    n = len(alike)
    sets = [
        set(chosen)
        for size in range(1, n + 1)
        for chosen in combinations(range(n), size)
        if all(alike[a, b] for a, b in combinations(chosen, 2))
    ]
    return [one for one in sets if not any(one < other for other in sets)]


@given(differences())
def test_systems_share_a_letter_exactly_when_they_are_not_different(different):
    results = [signs(text) for text in letters(different)]
    assert all(results)
    for a, b in combinations(range(len(different)), 2):
        assert bool(results[a] & results[b]) != different[a, b]


# Three sets that others make redundant; and a first one.
@example(matrix(6, [(0, 1), (2, 3), (4, 5)]))
@example(matrix(6, [(0, 3), (1, 5), (2, 4), (3, 4), (3, 5)]))
@given(differences(7))
def test_every_letter_is_a_maximal_set_and_none_can_be_left_out(different):
    results = [signs(text) for text in letters(different)]
    groups = {sign: {at for at, members in enumerate(results) if sign in members} for sign in set().union(*results)}
    cliques = maximal_cliques(~different)
    assert all(group in cliques for group in groups.values())
    in_order = [sorted(groups[sign]) for sign in sorted(groups)]
    assert in_order == sorted(in_order), "the best system has the first letter"
    for sign, group in groups.items():
        others = [other for name, other in groups.items() if name != sign]
        needed = [pair for pair in combinations(group, 2) if not any(set(pair) <= other for other in others)]
        alone = [at for at in group if not any(at in other for other in others)]
        assert needed or alone


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 10))
def test_where_only_distance_decides_letters_are_the_maximal_sets_in_order(scores, reach):
    scores = np.sort(scores)
    different = np.abs(scores[:, None] - scores) > reach
    results = [signs(text) for text in letters(different)]
    cliques = sorted(sorted(clique) for clique in maximal_cliques(~different))
    names = sorted(set().union(*results))
    assert [[at for at, members in enumerate(results) if name in members] for name in names] == cliques


@pytest.mark.parametrize(
    ("n", "pairs", "expected"),
    # Differences need not follow the order of means.
    [(0, [], []), (3, [(0, 2)], ["a", "ab", "b"]), (4, [(0, 1), (2, 3)], ["ab", "cd", "ac", "bd"])],
)
def test_letters_of_few_systems_by_hand(n, pairs, expected):
    assert letters(matrix(n, pairs)) == expected


def test_letters_go_on_after_z():
    result = letters(~np.eye(60, dtype=bool))
    assert (result[25:28], result[52], len(set(result))) == (["z", "a1", "b1"], "a2", 60)
