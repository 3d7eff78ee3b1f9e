"""Samples of queries, and estimates for a corpus: unbiased over all possible samples, as are their variances."""

import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.design.sampling import horvitz_thompson, sample_queries
from vbterrier.design.strata import MentionCorpus, Units, query_strata
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

# Mentions by document: a in 4 documents, b in 2, c and d in 1; d2 has a single mention.
PAIRS = ["d1 a", "d1 b", "d1 c", "d2 a", "d3 a", "d3 b", "d4 a", "d4 d"]
WEIGHT = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 40.0]
# Documents of each stratum differ, mentions do, and a is in both.
KIND = ["x", "x", "x", "x", "y", "y", "y", "y"]
METHODS = ["random-document", "random-mention", "uniform", "weighted"]


@pytest.fixture
def corpus():
    frame = pd.DataFrame([pair.split() for pair in PAIRS], columns=["docno", "mention"])
    return frame.assign(weight=WEIGHT, kind=KIND)


def drawn(corpus, n, method, **options):
    return sample_queries(corpus, n, method=method, weights="weight" if method == "weighted" else None, **options)


def one_draw(rows, method):
    """The probability of each query (docno, mention, weight) in one draw, by the definition, exactly."""
    units = {"random-document": 0, "random-mention": 1}
    if method == "weighted":
        total = sum(Fraction(row[2]) for row in rows)
        return {row[:2]: Fraction(row[2]) / total for row in rows}
    if method == "uniform":
        return {row[:2]: Fraction(1, len(rows)) for row in rows}
    sizes = Counter(row[units[method]] for row in rows)
    return {row[:2]: Fraction(1, len(sizes) * sizes[row[units[method]]]) for row in rows}


def rows_of(corpus, kind=None):
    part = corpus if kind is None else corpus[corpus["kind"] == kind]
    return [(row.docno, row.mention, row.weight) for row in part.itertuples()]


def probabilities(sample):
    return {(row.docno, row.mention): row.prob for row in sample.queries.itertuples()}


@pytest.mark.parametrize("method", METHODS)
def test_draws_with_replacement_are_as_frequent_as_their_probability(corpus, method):
    n = 20_000
    result = drawn(corpus, n, method, replace=True, seed=5)
    expected = {query: float(prob) for query, prob in one_draw(rows_of(corpus), method).items()}
    assert probabilities(result) == pytest.approx(expected)
    counts = result.queries.set_index(["docno", "mention"])["n_draws"]
    p = stats.chisquare([counts[query] for query in expected], [n * prob for prob in expected.values()]).pvalue
    assert p > 1e-4
    assert counts.sum() == n


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [None, "x", "y"])
def test_samples_without_replacement_hold_each_query_as_often_as_its_probability(corpus, method, kind):
    """The probabilities of one stratum, sampled separately."""
    n, n_samples = 2 if kind else 3, 2000
    mentions = MentionCorpus(corpus)
    names, stratum = query_strata(mentions, "kind" if kind else None, [])
    place = names.index(kind or "all")
    units = Units.of(mentions, method, stratum, len(names), "weight" if method == "weighted" else None)
    seen, stated = Counter(), {}
    for seed in range(n_samples):
        queries, prob = units.draw(place, n, replace=False, seed=seed, name=f"{method}, {names[place]}")
        assert len(set(queries.tolist())) == n
        stated |= dict(zip(queries.tolist(), prob.tolist(), strict=True))
        seen.update(queries.tolist())
        if kind is None and seed < 5:
            # The public function draws the same.
            result = drawn(corpus, n, method, seed=seed).queries
            rows = corpus.iloc[mentions.rows[queries]].assign(prob=prob)
            columns = ["docno", "mention", "prob"]
            assert result[columns].to_numpy().tolist() == rows[columns].to_numpy().tolist()
    assert set(stated) == set(np.flatnonzero(stratum == place))
    assert sum(stated.values()) == pytest.approx(n)
    for query, prob in stated.items():
        assert stats.binomtest(seen[query], n_samples, min(prob, 1)).pvalue > 1e-5


@pytest.mark.parametrize(("method", "n"), [("random-document", 3), ("random-mention", 3), ("uniform", 5)])
def test_probabilities_without_replacement_by_definition(corpus, method, n):
    expected = {query: float(n * prob) for query, prob in one_draw(rows_of(corpus), method).items()}
    for seed in range(5):
        result = probabilities(drawn(corpus, n, method, seed=seed))
        assert result == pytest.approx({query: expected[query] for query in result})


def test_weights_that_ask_for_more_than_one_are_certain(corpus):
    samples = [probabilities(drawn(corpus, 3, "weighted", seed=seed)) for seed in range(30)]
    assert all(("d4", "d") in sample for sample in samples)
    # 40 of 68 gives 1.76 of 3: drawn with probability 1, and two others with shares of 28.
    expected = {tuple(pair.split()): 2 * w / 28 for pair, w in zip(PAIRS[:-1], WEIGHT[:-1], strict=True)}
    assert {k: v for sample in samples for k, v in sample.items()} == pytest.approx(expected | {("d4", "d"): 1.0})


@pytest.mark.parametrize("method", METHODS)
def test_each_stratum_is_a_corpus(corpus, method):
    result = drawn(corpus, 4000, method, replace=True, strata="kind", allocation="equal", seed=1)
    expected = one_draw(rows_of(corpus, "x"), method) | one_draw(rows_of(corpus, "y"), method)
    assert probabilities(result) == pytest.approx({query: float(prob) for query, prob in expected.items()})
    assert result.strata[["n_draws", "n_queries"]].to_numpy().tolist() == [[2000, 4]] * 2


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # a is one of three mentions of d1, the only one of d2, one of two of d3 and d4: (1/3 + 1 + 1/2 + 1/2)/4.
        ("random-document", [1400, 500, 200, 300]),
        ("random-mention", [600, 600, 600, 600]),
        ("uniform", [1200, 600, 300, 300]),
        ("weighted", [600, 282, 106, 1412]),
    ],
)
def test_proportional_sizes_follow_the_shares_of_draws_without_strata(corpus, method, expected):
    assert drawn(corpus, 2400, method, replace=True, strata="mention").strata["n_draws"].tolist() == expected


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_neither_the_order_of_rows_nor_repeated_ones_nor_other_columns_change_a_draw(corpus, method, replace):
    before = corpus.copy()
    queries = drawn(corpus, 4, method, replace=replace, seed=2).queries
    shuffled = pd.concat([corpus, corpus.iloc[::2]]).sample(frac=1, random_state=1).assign(more=1)
    again = drawn(shuffled, 4, method, replace=replace, seed=2).queries
    pd.testing.assert_frame_equal(again.drop(columns="more"), queries)
    assert drawn(corpus, 4, method, replace=replace, seed=3).queries["qid"].tolist() != queries["qid"].tolist()
    pd.testing.assert_frame_equal(corpus, before)


@pytest.mark.parametrize("method", METHODS[:3])
def test_a_larger_sample_contains_the_smaller_one_and_no_unit_twice(corpus, method):
    unit = {"random-document": "docno", "random-mention": "mention", "uniform": "qid"}[method]
    for seed in range(8):
        few, more = (drawn(corpus, n, method, seed=seed).queries for n in (2, 4))
        assert more["qid"].tolist()[:2] == few["qid"].tolist()
        assert more[unit].is_unique


def test_qids_are_those_of_the_frame_or_of_docno_and_mention(corpus):
    by_query = {}
    for seed in range(8):
        frame = drawn(corpus, 4, "uniform", seed=seed).queries
        for row in frame.itertuples():
            assert by_query.setdefault((row.docno, row.mention), row.qid) == row.qid
    assert len(set(by_query.values())) == len(by_query)
    named = corpus.assign(qid=[f"q{number}" for number in range(8)])
    frame = drawn(named, 8, "uniform").queries
    assert sorted(frame["qid"]) == sorted(named["qid"])
    assert frame.columns[:3].tolist() == ["qid", "docno", "mention"]
    with pytest.raises(InputError, match="two queries have the same qid"):
        drawn(corpus.assign(qid="q1"), 2, "uniform")
    # The border between docno and mention matters.
    close = pd.DataFrame({"docno": ["a", "a b"], "mention": ["b c", "c"]})
    assert sample_queries(close, 2).queries["qid"].is_unique


def test_a_query_that_repeats_with_another_meaning_is_told_of():
    frame = pd.DataFrame({"docno": "d1", "mention": ["a", "a", "b", "b"], "entity_id": ["Q1", "Q2", "NIL", "NIL"]})
    with pytest.warns(DegenerateWarning, match=r"1 row repeats .* 'entity_id', as rows 0 and 1") as record:
        result = sample_queries(frame, 2, method="uniform")
    assert len(record) == 1
    assert dict(zip(result.queries["mention"], result.queries["entity_id"], strict=True)) == {"a": "Q1", "b": "NIL"}


def test_bins_of_frequency_and_functions_make_strata(corpus):
    result = drawn(corpus, 4, "uniform", strata=2)
    assert result.strata[["stratum", "n_queries", "n_draws"]].to_numpy().tolist() == [["1-2", 4, 2], ["4", 4, 2]]
    assert set(result.queries.loc[result.queries["stratum"] == "4", "mention"]) == {"a"}
    with pytest.warns(DegenerateWarning, match="number of bins is 3"):
        assert len(drawn(corpus, 8, "uniform", strata=5).strata) == 3
    result = drawn(corpus, 8, "uniform", strata=lambda queries: np.where(queries["n_documents"] > 1, "many", "one"))
    assert result.strata[["stratum", "n_queries"]].to_numpy().tolist() == [["many", 6], ["one", 2]]
    with pytest.raises(InputError, match="3 labels for 8 queries"):
        drawn(corpus, 2, "uniform", strata=lambda _: ["x", "y", "y"])


@pytest.mark.parametrize(
    ("n", "options", "expected"),
    [
        (5, {"allocation": {"x": 1, "y": 4}}, [1, 4]),
        # 4 sqrt(.04) to 4 sqrt(.36) is 1 to 3; y has 4 queries.
        (4, {"allocation": "neyman", "variances": {"x": 0.01, "y": 1.0}, "replace": True}, [2, 2]),
        (40, {"allocation": "neyman", "variances": {"x": 0.04, "y": 0.36}, "replace": True}, [10, 30]),
        (2, {"allocation": "equal"}, [1, 1]),
    ],
)
def test_draws_are_allocated_to_strata_as_asked(corpus, n, options, expected):
    assert drawn(corpus, n, "uniform", strata="kind", **options).strata["n_draws"].tolist() == expected


def test_ids_are_text_and_columns_pass_through():
    frame = pd.DataFrame({"docno": [1, 2], "mention": ["007", "NA"], "note": [None, 3.5]})
    queries = sample_queries(frame, 2).queries
    assert (sorted(queries["docno"]), sorted(queries["mention"])) == (["1", "2"], ["007", "NA"])
    assert queries["note"].isna().sum() == 1
    assert " ".join(queries.columns) == "qid docno mention note n_documents stratum prob n_draws"


WEIGHTED = {"method": "weighted", "weights": "weight"}
BY_KIND = {"strata": "kind"}


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"mention": ["", *"bcaabad"]}, {}, InputError, "row 0 is empty"),
        ({"docno": [None, *"1112233"]}, {}, InputError, "docno"),
        *(
            ({name: 1}, {}, InputError, f"the sample has a column '{name}'; rename")
            for name in ("n_documents", "stratum", "prob", "n_draws")
        ),
        ({}, {"n": 5}, ParameterError, "can draw 4 of these mentions, one for each document"),
        ({}, {"n": 9, "method": "uniform"}, ParameterError, "can draw 8"),
        ({}, {"n": 0}, ParameterError, "n=0"),
        ({}, {"method": "random_mention"}, ParameterError, "Did you mean random-mention"),
        ({}, {"method": "weighted"}, ParameterError, "weights and method='weighted' go together"),
        ({}, {"weights": "weight"}, ParameterError, "go together"),
        ({"weight": [*WEIGHT[1:], 0]}, WEIGHTED, InputError, "row 7 .*has weight 0, wanted"),
        ({"weight": -1.0}, WEIGHTED, InputError, "row 0 .*has weight -1"),
        ({"weight": np.inf}, WEIGHTED, InputError, "has weight inf"),
        ({"weight": np.nan}, WEIGHTED, InputError, "row 0 holds"),
        ({}, {"strata": "kin"}, InputError, "Did you mean kind"),
        ({"kind": [None, *KIND[1:]]}, BY_KIND, InputError, "kind"),
        ({}, {"strata": 1}, ParameterError, "strata=1"),
        ({}, {"n": 1, **BY_KIND}, ParameterError, "each of the 2 strata"),
        ({}, {"allocation": "equal"}, ParameterError, "need strata"),
        ({}, {**BY_KIND, "allocation": "optimal"}, ParameterError, "allocation='optimal'"),
        ({}, {**BY_KIND, "allocation": "neyman"}, ParameterError, "go together"),
        ({}, {**BY_KIND, "allocation": {"x": 1, "z": 1}}, ParameterError, "wanted the strata"),
        ({}, {**BY_KIND, "allocation": {"x": 1, "y": 2}}, ParameterError, "sum to 3, wanted n=2"),
        ({}, {**BY_KIND, "allocation": {"x": 1, "y": 3}, "n": 4}, ParameterError, "3 from stratum 'y', where 2"),
        ({}, {**BY_KIND, "allocation": {"x": 2, "y": 0}}, ParameterError, "at least 1"),
    ],
)
def test_bad_input_is_refused(corpus, changes, options, error, message):
    with pytest.raises(error, match=message):
        sample_queries(corpus.assign(**changes), **{"n": 2, **options})
    for wrong, missing in ((corpus.drop(columns="mention"), "missing mention"), (corpus[:0], "no rows")):
        with pytest.raises(InputError, match=missing):
            sample_queries(wrong, 2)


# Estimates for a corpus of six queries.

SIX_PAIRS = ["d1 a", "d1 b", "d1 c", "d2 a", "d3 a", "d3 b"]
Y, N = np.array([0.9, 0.1, 0.4, 1.0, 0.3, 0.7]), 6
SIX_KINDS = ["x", "x", "x", "y", "y", "y"]


@pytest.fixture
def six():
    frame = pd.DataFrame([pair.split() for pair in SIX_PAIRS], columns=["docno", "mention"])
    return frame.assign(value=Y, weight=[1.0, 2.0, 3.0] * 2, kind=SIX_KINDS, qid=[f"q{number}" for number in range(N)])


def valued(sample):
    return sample.queries[["qid", "value"]].assign(name="mine", measure="P")


def sample_of(drawn, six, queries, prob, strata=None):
    """A sample of given queries (by row) instead of drawn ones."""
    counts = pd.Series(queries).value_counts(sort=False)
    rows = counts.index.to_numpy()
    stratum, prob = "all" if strata is None else np.array(strata)[rows], np.asarray(prob, dtype=float)[rows]
    frame = six.iloc[rows].reset_index(drop=True)
    return replace(drawn, queries=frame.assign(n_documents=1, stratum=stratum, prob=prob, n_draws=counts.to_numpy()))


def assert_unbiased(design, six, samples, prob, variance, strata=None, estimator="ht"):
    """Over all samples of a design, with their probabilities, estimates and variances have these expectations."""
    rows = []
    for queries, chance in samples:
        sample = sample_of(design, six, queries, prob, strata)
        row = horvitz_thompson(sample, valued(sample), estimator=estimator).iloc[0]
        rows.append((row["value"], row["std_error"] ** 2, chance))
    values, variances, chances = np.array(rows).T
    assert chances.sum() == pytest.approx(1)
    assert chances @ values == pytest.approx(Y.mean())
    assert chances @ (values - Y.mean()) ** 2 == pytest.approx(variance)
    return chances @ variances


def one_of_each(units, n):
    """All samples of n units with one query each, with probabilities by the sizes of the units."""
    chosen = list(combinations(units, n))
    for sets in chosen:
        sizes = np.prod([len(unit) for unit in sets])
        for queries in product(*sets):
            yield list(queries), 1 / len(chosen) / sizes


@pytest.mark.parametrize("estimator", ["ht", "hajek"])
def test_simple_random_samples_estimate_mean_and_variance_without_bias(six, estimator):
    design = sample_queries(six, 3, method="uniform")
    samples = [(list(chosen), 1 / 20) for chosen in combinations(range(N), 3)]
    variance = (1 - 0.5) * Y.var(ddof=1) / 3
    assert assert_unbiased(design, six, samples, [0.5] * N, variance, estimator=estimator) == pytest.approx(variance)


def test_stratified_samples_estimate_mean_and_variance_without_bias(six):
    design = sample_queries(six, 4, method="uniform", strata="kind", allocation="equal")
    pairs = list(combinations(range(3), 2))
    samples = [([*one, *(3 + place for place in other)], 1 / 9) for one in pairs for other in pairs]
    variance = sum((1 / 2) ** 2 * (1 - 2 / 3) * part.var(ddof=1) / 2 for part in (Y[:3], Y[3:]))
    assert assert_unbiased(design, six, samples, [2 / 3] * N, variance, SIX_KINDS) == pytest.approx(variance)


@pytest.mark.parametrize(
    ("method", "units"), [("random-document", [[0, 1, 2], [3], [4, 5]]), ("random-mention", [[0, 3, 4], [1, 5], [2]])]
)
def test_one_query_of_each_unit_estimates_the_mean_without_bias_and_the_variance_from_above(six, method, units):
    design = sample_queries(six, 2, method=method)
    prob = np.empty(N)
    for unit in units:
        prob[unit] = 2 / 3 / len(unit)
    samples = list(one_of_each(units, 2))
    means = np.array([sum(Y[query] / prob[query] for query in queries) / N for queries, _ in samples])
    variance = np.array([chance for _, chance in samples]) @ (means - Y.mean()) ** 2
    # The overestimate of the docstring: D times the variance of the totals of the units.
    totals = np.array([Y[unit].sum() for unit in units])
    expected = variance + len(units) * totals.var(ddof=1) / N**2
    assert assert_unbiased(design, six, samples, prob, variance) == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_draws_with_replacement_estimate_mean_and_variance_without_bias(six, method):
    prob = drawn(six, 500, method, replace=True).queries.set_index("qid")["prob"][six["qid"]].to_numpy()
    assert prob.sum() == pytest.approx(1)
    samples = [(list(draws), prob[list(draws)].prod()) for draws in product(range(N), repeat=2)]
    variance = prob @ (Y / prob - Y.sum()) ** 2 / 2 / N**2
    design = drawn(six, 2, method, replace=True)
    assert assert_unbiased(design, six, samples, prob, variance) == pytest.approx(variance)


@pytest.mark.nightly
def test_stratified_draws_with_replacement_estimate_mean_and_variance_without_bias(six):
    design = sample_queries(six, 5, method="uniform", strata="kind", allocation={"x": 2, "y": 3}, replace=True)
    draws = product(product(range(3), repeat=2), product(range(3, 6), repeat=3))
    samples, variance = [([*one, *other], 3**-5) for one, other in draws], (Y[:3].var() / 2 + Y[3:].var() / 3) / 4
    assert assert_unbiased(design, six, samples, [1 / 3] * N, variance, SIX_KINDS) == pytest.approx(variance)


def test_values_without_spread_and_whole_corpora_are_estimated_without_error(six):
    columns = ["value", "low", "high"]
    for method in ("random-document", "random-mention", "uniform"):
        sample = sample_queries(six, 3, method=method, seed=1)
        row = horvitz_thompson(sample, valued(sample).assign(value=0.25)).iloc[0]
        assert row[columns].tolist() == pytest.approx([0.25] * 3)
    whole = sample_queries(six, N, method="uniform", strata="kind")
    assert horvitz_thompson(whole, valued(whole)).iloc[0][columns].tolist() == pytest.approx([Y.mean()] * 3)
    for options in ({}, {"replace": True}):
        sample = sample_queries(six, 3, method="weighted", weights="weight", **options)
        values = valued(sample).assign(value=sample.queries["weight"].to_numpy())
        row = horvitz_thompson(sample, values, of="total", estimator="ht").iloc[0]
        assert row["value"] == pytest.approx(12)
        assert row["std_error"] == pytest.approx(0, abs=1e-6)


def test_interval_is_of_student(six):
    sample = sample_queries(six, 4, method="uniform", seed=3)
    columns = ["value", "low", "high", "std_error"]
    row = horvitz_thompson(sample, valued(sample), level=0.8).iloc[0]
    y = sample.queries["value"].to_numpy()
    error = np.sqrt((1 - 4 / 6) * y.var(ddof=1) / 4)
    reach = stats.t.ppf(0.9, 3) * error
    assert row[columns].tolist() == pytest.approx([y.mean(), y.mean() - reach, y.mean() + reach, error])
    assert row["method"] == "queries (hajek)"
    total = horvitz_thompson(sample, valued(sample), of="total", level=0.8).iloc[0]
    assert total[columns].tolist() == pytest.approx((6 * row[columns]).tolist())


def test_systems_and_measures_are_separate_in_any_order(six):
    sample = sample_queries(six, 3, method="random-mention")
    parts = [valued(sample).assign(name=name, measure=m) for name in ("s2", "s1") for m in ("P", "R")]
    parts[1]["value"] *= 2
    frame = pd.concat(parts)
    result = horvitz_thompson(sample, frame.sample(frac=1, random_state=1).sort_values("name", kind="stable"))
    assert " ".join(result.columns[:10]) == "name measure value low high level method n_qids n_resamples seed"
    values = result.set_index(["name", "measure"])["value"]
    assert values["s2", "R"] == pytest.approx(2 * values["s2", "P"])
    assert values["s1", "R"] == pytest.approx(values["s2", "P"])
    assert horvitz_thompson(sample, frame[:0]).empty


def test_a_single_draw_of_a_stratum_says_nothing_of_its_variance(six):
    sample = sample_queries(six, 3, method="uniform", strata="kind", allocation={"x": 1, "y": 2})
    with pytest.warns(DegenerateWarning, match=r"1 strata have a single draw \('x'\)"):
        row = horvitz_thompson(sample, valued(sample)).iloc[0]
    assert np.isnan(row[["low", "high", "std_error"]].astype(float)).all()
    assert np.isfinite(row["value"])


@pytest.mark.nightly
def test_intervals_hold_the_truth_as_often_as_they_say():
    """Skewed values on a corpus of 3,000 queries, 40 of them drawn: Hájek's intervals of all methods."""
    draw = np.random.default_rng(0)
    corpus = pd.DataFrame({"docno": draw.integers(400, size=3000), "mention": draw.zipf(1.6, 3000).clip(max=500)})
    corpus = corpus.astype(str).drop_duplicates(ignore_index=True)
    corpus["value"], n_samples = draw.beta(0.5, 1.0, len(corpus)), 80
    for method in ("random-document", "uniform"):
        held = 0
        for seed in range(n_samples):
            sample = sample_queries(corpus, 40, method=method, seed=seed)
            row = horvitz_thompson(sample, valued(sample), level=0.9).iloc[0]
            held += row["low"] <= corpus["value"].mean() <= row["high"]
        assert stats.binomtest(held, n_samples, 0.9).pvalue > 1e-3


def test_weights_that_leave_few_queries_are_told_of():
    mentions = ["all"] * 900 + [f"m{number}" for number in range(99)]
    corpus = pd.DataFrame({"docno": [f"d{number}" for number in range(999)], "mention": mentions}).assign(value=0.5)
    sample = sample_queries(corpus, 100, method="random-mention")
    values = sample.queries.assign(name="mine", measure="P")
    # One of weight 900 and 99 of weight 1.
    with pytest.warns(DegenerateWarning, match=r"its 100 queries have an effective size of 1\.2;"):
        horvitz_thompson(sample, values, interval="t")
    # The heavy query may be any: limits leave room for another one.
    row = horvitz_thompson(sample, values).iloc[0]
    assert row["method"] == "queries (hajek, bounded)"
    assert (row["low"] < 0.1, row["high"] > 0.9, row["value"]) == (True, True, pytest.approx(0.5))
    even = sample_queries(corpus, 100, method="uniform")
    assert horvitz_thompson(even, even.queries.assign(name="mine", measure="P"))["value"].item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.assign(qid=["zz", *v["qid"][1:]]), "query 'zz' .* was not sampled"),
        (lambda v: v[1:], "'mine', 'P' has 0 values of query"),
        (lambda v: pd.concat([v, v[:1]]), "has 2 values of query"),
        (lambda v: v.assign(value=np.nan), "row 0 holds nan"),
        (lambda v: v.assign(value=np.inf), "infinite"),
        (lambda v: v.assign(qid=range(3)), "can never match"),
        (lambda v: v.drop(columns="measure"), "missing measure"),
    ],
)
def test_bad_values_are_refused(six, change, message):
    sample = sample_queries(six, 3, method="uniform")
    with pytest.raises(InputError, match=message):
        horvitz_thompson(sample, change(valued(sample)))
    with pytest.raises(InputError, match="wanted a QuerySample"):
        horvitz_thompson(six, six)
    for options, text in (
        ({"estimator": "hayek"}, "mean hajek"),
        ({"of": "sum"}, "of='sum'"),
        ({"level": 1}, "level=1"),
    ):
        with pytest.raises(ParameterError, match=text):
            horvitz_thompson(sample, valued(sample), **options)


@pytest.mark.nightly
@pytest.mark.parametrize("estimator", ["hajek", "ht"])
def test_bounded_intervals_cover_where_t_does_not(estimator):
    rng = np.random.default_rng(4)
    n_queries, n_samples = 400, 150
    sizes = np.exp(1.5 * rng.standard_normal(n_queries))
    score = (rng.random(n_queries) < 0.4) * 1.0
    corpus = pd.DataFrame({"docno": [f"d{i}" for i in range(n_queries)], "mention": "m", "size": sizes, "value": score})
    covered = {"t": 0, "bounded": 0}
    for seed in range(n_samples):
        sample = sample_queries(corpus, 15, method="weighted", weights="size", replace=True, seed=seed)
        values = sample.queries.assign(name="x", measure="P@1")
        for interval in covered:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateWarning)
                result = horvitz_thompson(sample, values, estimator=estimator, interval=interval, n_resamples=500)
            covered[interval] += int(result["low"].item() <= score.mean() <= result["high"].item())
    assert covered["bounded"] >= stats.binom.ppf(0.001, n_samples, 0.95)
    assert covered["t"] < stats.binom.ppf(0.001, n_samples, 0.95)


def test_bounded_intervals_need_a_range_and_weights_that_differ(corpus):
    sample = drawn(corpus, 4, "uniform", seed=1)
    values = sample.queries.assign(name="x", measure="P@1", value=[0.0, 1.0, 1.0, 0.0])
    assert horvitz_thompson(sample, values)["method"].item() == "queries (hajek)"
    row = horvitz_thompson(sample, values, interval="bounded").iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(stats.binomtest(2, 4).proportion_ci(0.95, "exact"), abs=0.02)
    with pytest.raises(ParameterError, match="the range of 'own' is unknown; use interval='t'"):
        horvitz_thompson(sample, values.assign(measure="own"), interval="bounded")
