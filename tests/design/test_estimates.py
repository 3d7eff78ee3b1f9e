"""Estimates for a corpus: unbiased over all possible samples, as are their variances."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.design.sampling import horvitz_thompson, sample_queries
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

PAIRS = ["d1 a", "d1 b", "d1 c", "d2 a", "d3 a", "d3 b"]
VALUES = [0.9, 0.1, 0.4, 1.0, 0.3, 0.7]
WEIGHT = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
N = len(PAIRS)
Y = np.array(VALUES)
KIND = ["x", "x", "x", "y", "y", "y"]


@pytest.fixture
def corpus():
    frame = pd.DataFrame([pair.split() for pair in PAIRS], columns=["docno", "mention"])
    return frame.assign(value=VALUES, weight=WEIGHT, kind=KIND, qid=[f"q{number}" for number in range(N)])


def valued(sample):
    return sample.frame[["qid", "value"]].assign(name="mine", measure="P")


def sample_of(drawn, corpus, queries, prob, strata=None):
    """A sample of given queries (by row) instead of drawn ones."""
    counts = pd.Series(queries).value_counts(sort=False)
    rows = counts.index.to_numpy()
    stratum, prob = "all" if strata is None else np.array(strata)[rows], np.asarray(prob, dtype=float)[rows]
    frame = corpus.iloc[rows].reset_index(drop=True)
    return replace(drawn, frame=frame.assign(n_documents=1, stratum=stratum, prob=prob, n_draws=counts.to_numpy()))


def over_all(design, corpus, samples, prob, strata=None, **options):
    """Estimates and variances over all samples of a design, with their probabilities."""
    found = []
    for queries, chance in samples:
        sample = sample_of(design, corpus, queries, prob, strata)
        row = horvitz_thompson(sample, valued(sample), **options).iloc[0]
        found.append((row["value"], row["std_error"] ** 2, chance))
    values, variances, chances = np.array(found).T
    assert chances.sum() == pytest.approx(1)
    mean = chances @ values
    return mean, chances @ (values - mean) ** 2, chances @ variances


def one_of_each(units, n):
    """All samples of n units with one query each, with probabilities by the sizes of the units."""
    chosen = list(combinations(units, n))
    for sets in chosen:
        sizes = np.prod([len(unit) for unit in sets])
        for queries in product(*sets):
            yield list(queries), 1 / len(chosen) / sizes


@pytest.mark.parametrize("estimator", ["ht", "hajek"])
def test_simple_random_samples_estimate_mean_and_variance_without_bias(corpus, estimator):
    design = sample_queries(corpus, 3, method="uniform")
    samples = [(list(chosen), 1 / 20) for chosen in combinations(range(N), 3)]
    mean, variance, estimated = over_all(design, corpus, samples, [0.5] * N, estimator=estimator)
    assert mean == pytest.approx(Y.mean())
    assert variance == pytest.approx((1 - 0.5) * Y.var(ddof=1) / 3)
    assert estimated == pytest.approx(variance)


def test_stratified_samples_estimate_mean_and_variance_without_bias(corpus):
    design = sample_queries(corpus, 4, method="uniform", strata="kind", allocation="equal")
    pairs = list(combinations(range(3), 2))
    samples = [([*one, *(3 + place for place in other)], 1 / 9) for one in pairs for other in pairs]
    mean, variance, estimated = over_all(design, corpus, samples, [2 / 3] * N, KIND, estimator="ht")
    assert mean == pytest.approx(Y.mean())
    by_hand = sum((1 / 2) ** 2 * (1 - 2 / 3) * part.var(ddof=1) / 2 for part in (Y[:3], Y[3:]))
    assert variance == pytest.approx(by_hand)
    assert estimated == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("method", "units"), [("random-document", [[0, 1, 2], [3], [4, 5]]), ("random-mention", [[0, 3, 4], [1, 5], [2]])]
)
def test_one_query_of_each_unit_estimates_the_mean_without_bias_and_the_variance_from_above(corpus, method, units):
    design = sample_queries(corpus, 2, method=method)
    prob = np.empty(N)
    for unit in units:
        prob[unit] = 2 / 3 / len(unit)
    mean, variance, estimated = over_all(design, corpus, one_of_each(units, 2), prob, estimator="ht")
    assert mean == pytest.approx(Y.mean())
    # The overestimate of the docstring: D times the variance of the totals of the units.
    totals = np.array([Y[unit].sum() for unit in units])
    assert estimated - variance == pytest.approx(len(units) * totals.var(ddof=1) / N**2)


@pytest.mark.parametrize("method", ["random-document", "random-mention", "uniform", "weighted"])
def test_draws_with_replacement_estimate_mean_and_variance_without_bias(corpus, method):
    options = {"weights": "weight"} if method == "weighted" else {}
    prob = sample_queries(corpus, 500, method=method, replace=True, **options).frame.set_index("qid")["prob"]
    prob = prob[corpus["qid"]].to_numpy()
    assert prob.sum() == pytest.approx(1)
    design = sample_queries(corpus, 2, method=method, replace=True, **options)
    samples = [(list(draws), prob[list(draws)].prod()) for draws in product(range(N), repeat=2)]
    mean, variance, estimated = over_all(design, corpus, samples, prob, estimator="ht")
    assert mean == pytest.approx(Y.mean())
    assert variance == pytest.approx(prob @ (Y / prob - Y.sum()) ** 2 / 2 / N**2)
    assert estimated == pytest.approx(variance)


@pytest.mark.slow
def test_stratified_draws_with_replacement_estimate_mean_and_variance_without_bias(corpus):
    design = sample_queries(corpus, 5, method="uniform", strata="kind", allocation={"x": 2, "y": 3}, replace=True)
    draws = product(product(range(3), repeat=2), product(range(3, 6), repeat=3))
    samples = [([*one, *other], 3**-5) for one, other in draws]
    mean, variance, estimated = over_all(design, corpus, samples, [1 / 3] * N, KIND, estimator="ht")
    assert mean == pytest.approx(Y.mean())
    assert variance == pytest.approx((Y[:3].var() / 2 + Y[3:].var() / 3) / 4)
    assert estimated == pytest.approx(variance)


def test_values_without_spread_and_whole_corpora_are_estimated_without_error(corpus):
    columns = ["value", "low", "high"]
    for method in ("random-document", "random-mention", "uniform"):
        sample = sample_queries(corpus, 3, method=method, seed=1)
        found = horvitz_thompson(sample, valued(sample).assign(value=0.25)).iloc[0]
        assert found[columns].tolist() == pytest.approx([0.25] * 3)
    whole = sample_queries(corpus, N, method="uniform", strata="kind")
    assert horvitz_thompson(whole, valued(whole)).iloc[0][columns].tolist() == pytest.approx([Y.mean()] * 3)
    for options in ({}, {"replace": True}):
        sample = sample_queries(corpus, 3, method="weighted", weights="weight", **options)
        values = valued(sample).assign(value=sample.frame["weight"].to_numpy())
        found = horvitz_thompson(sample, values, of="total", estimator="ht").iloc[0]
        assert found["value"] == pytest.approx(12)
        assert found["std_error"] == pytest.approx(0, abs=1e-6)


def test_interval_is_of_student(corpus):
    sample = sample_queries(corpus, 4, method="uniform", seed=3)
    found = horvitz_thompson(sample, valued(sample), level=0.8).iloc[0]
    y = sample.frame["value"].to_numpy()
    error = np.sqrt((1 - 4 / 6) * y.var(ddof=1) / 4)
    reach = stats.t.ppf(0.9, 3) * error
    assert [found[n] for n in ("value", "low", "high")] == pytest.approx([y.mean(), y.mean() - reach, y.mean() + reach])
    assert found["method"] == "queries (hajek)"
    total = horvitz_thompson(sample, valued(sample), of="total", level=0.8).iloc[0]
    columns = ["value", "low", "high", "std_error"]
    assert total[columns].tolist() == pytest.approx((6 * found[columns]).tolist())


def test_systems_and_measures_are_separate_in_any_order(corpus):
    sample = sample_queries(corpus, 3, method="random-mention")
    parts = [valued(sample).assign(name=name, measure=m) for name in ("s2", "s1") for m in ("P", "R")]
    parts[1]["value"] *= 2
    frame = pd.concat(parts)
    found = horvitz_thompson(sample, frame.sample(frac=1, random_state=1).sort_values("name", kind="stable"))
    assert " ".join(found.columns[:10]) == "name measure value low high level method n_qids n_resamples seed"
    values = found.set_index(["name", "measure"])["value"]
    assert values["s2", "R"] == pytest.approx(2 * values["s2", "P"])
    assert values["s1", "R"] == pytest.approx(values["s2", "P"])
    assert horvitz_thompson(sample, frame[:0]).empty


def test_a_single_draw_of_a_stratum_says_nothing_of_its_variance(corpus):
    sample = sample_queries(corpus, 3, method="uniform", strata="kind", allocation={"x": 1, "y": 2})
    with pytest.warns(DegenerateWarning, match=r"1 strata have a single draw \('x'\)"):
        found = horvitz_thompson(sample, valued(sample)).iloc[0]
    assert np.isnan(found[["low", "high", "std_error"]].astype(float)).all()
    assert np.isfinite(found["value"])


@pytest.mark.slow
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
            found = horvitz_thompson(sample, valued(sample), level=0.9).iloc[0]
            held += found["low"] <= corpus["value"].mean() <= found["high"]
        assert stats.binomtest(held, n_samples, 0.9).pvalue > 1e-3


def test_weights_that_leave_few_queries_are_told_of():
    mentions = ["all"] * 900 + [f"m{number}" for number in range(99)]
    corpus = pd.DataFrame({"docno": [f"d{number}" for number in range(999)], "mention": mentions}).assign(value=0.5)
    sample = sample_queries(corpus, 100, method="random-mention")
    values = sample.frame.assign(name="mine", measure="P")
    # One of weight 900 and 99 of weight 1.
    with pytest.warns(DegenerateWarning, match=r"its 100 queries have an effective size of 1\.2;"):
        horvitz_thompson(sample, values)
    even = sample_queries(corpus, 100, method="uniform")
    assert horvitz_thompson(even, even.frame.assign(name="mine", measure="P"))["value"].item() == pytest.approx(0.5)


BAD = {
    "stranger": (lambda v: v.assign(qid=["zz", *v["qid"][1:]]), {}, "query 'zz' .* was not sampled"),
    "unjudged": (lambda v: v[1:], {}, "'mine', 'P' has 0 values of query"),
    "twice": (lambda v: pd.concat([v, v[:1]]), {}, "has 2 values of query"),
    "NaN": (lambda v: v.assign(value=np.nan), {}, "row 0 holds nan"),
    "infinite": (lambda v: v.assign(value=np.inf), {}, "infinite"),
    "integers": (lambda v: v.assign(qid=range(3)), {}, "can never match"),
    "no column": (lambda v: v.drop(columns="measure"), {}, "missing measure"),
    "estimator": (None, {"estimator": "hayek"}, "Did you mean hajek"),
    "target": (None, {"of": "sum"}, "of='sum'"),
    "level": (None, {"level": 1}, "level=1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(corpus, name):
    change, options, message = BAD[name]
    sample = sample_queries(corpus, 3, method="uniform")
    values = valued(sample) if change is None else change(valued(sample))
    with pytest.raises(ParameterError if change is None else InputError, match=message):
        horvitz_thompson(sample, values, **options)
    with pytest.raises(InputError, match="wanted a QuerySample"):
        horvitz_thompson(corpus, corpus)
