"""Weights, clusters, draws by traffic and covariates of queries, in each call that honours them."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import vbterrier
from vbterrier.design import sample_by_traffic
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import GateOptions, audit_judge, leaderboard, release_gate
from vbterrier.kernels.mean_limits import lower_limit, moments, tail_index
from vbterrier.report.comparison import comparison_report, gate_report
from vbterrier.settings import Data, Inference
from vbterrier.stats.noninferiority import welch_p

N = 120


def collection(n=N, seed=1, worse=()):
    """Ratings of four documents for each query, an old run and a new one that reverses the worse queries."""
    rng = np.random.default_rng(seed)
    qids = np.repeat([f"q{i:03d}" for i in range(n)], 4)
    qrels = pd.DataFrame({"qid": qids, "docno": np.tile([*"abcd"], n), "label": rng.integers(0, 4, 4 * n)})
    old = qrels[["qid", "docno"]].assign(score=qrels["label"] + rng.normal(0, 1, 4 * n))
    reverse = np.repeat(np.isin(np.arange(n), list(worse)), 4)
    new = old.assign(score=np.where(reverse, -old["score"], old["score"] + rng.normal(0, 0.3, 4 * n)))
    return new, old, qrels


def gate(new, old, qrels, queries=None, margin=0.1, labels=None, **options):
    data = Data(queries=queries) if labels is None else Data(queries=queries, labels=labels)
    return release_gate(
        {"new": new}, qrels, "nDCG@4", baseline={"old": old}, margin=margin, data=data, options=GateOptions(**options)
    )


def differences(new, old, qrels):
    values = vbterrier.score({"new": new, "old": old}, qrels, ["nDCG@4"]).values
    table = values.pivot(index="qid", columns="name", values="value")
    return table["new"] - table["old"]


def table(**columns):
    return pd.DataFrame({"qid": [f"q{i:03d}" for i in range(N)], **columns})


def limit(d, **about):
    of = moments(d.to_numpy()[:, None], **about).heaviest_unseen
    return float(lower_limit(of, 0.05, 1.0, special.stdtrit)[0])


def test_weights_and_clusters_enter_the_limits_of_the_gate():
    runs = collection()
    d, w = differences(*runs), np.random.default_rng(2).lognormal(0, 0.5, N)
    weighted = gate(*runs, table(weight=w)).pairs.loc[0]
    assert weighted[["diff", "low"]].tolist() == pytest.approx([np.average(d, weights=w), limit(d, weights=w)])
    assert weighted["n_effective"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    code = np.arange(N) // 4
    clustered = gate(*runs, table(cluster=code)).pairs.loc[0]
    assert clustered["low"] == pytest.approx(limit(d, clusters=code))
    assert clustered["losses_high"] == pytest.approx(1 - 0.05 ** (1 / 30))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"cluster": np.arange(N) % 9}, "more clusters are needed: at least 10, 9 now"),
        (
            {"weight": np.where(np.arange(N) < 3, 500.0, 1.0)},
            "by their weights, 120 queries count as 3; sample by traffic",
        ),
    ],
)
def test_too_few_clusters_or_heavy_queries_decide_nothing(columns, words):
    for worse in ((), range(N)):
        decision = gate(*collection(worse=worse), table(**columns))
        assert decision.decision == "UNKNOWN"
        assert words in decision.advice()[0]


@pytest.mark.parametrize(
    ("columns", "misses"),
    [
        ({"weight": 1.0 + np.arange(N) % 2}, True),
        ({"weight": 2.0}, False),
        ({"drawn": 1}, False),
        ({"segment": "a"}, False),
    ],
)
def test_the_promise_for_weights_without_draws_by_traffic_excludes_heavier_queries(columns, misses):
    decision = gate(*collection(), table(**columns))
    assert decision.pairs["misses_heavy"].tolist() == [misses]
    assert ("unless they weigh more than the weights of the sample suggest" in decision.guarantee()) == misses
    assert ("or sample by traffic" in gate_report(decision, "markdown")) == misses


def test_a_heavy_query_that_is_not_rated_prevents_a_pass_until_it_is_rated():
    new, old, qrels = collection()
    weight = np.where(np.arange(N) == 7, 60.0, 1.0)
    rated = qrels[qrels["qid"] != "q007"]
    decision = gate(new, old, rated, table(weight=weight))
    assert (decision.decision, decision.pairs.loc[0, "reason"]) == ("UNKNOWN", "more queries")
    advice = decision.advice()[0]
    assert "up to 33.5% of the weight may be unrated queries of the table without one among the 119 queries" in advice
    assert "sample by traffic (vbterrier.design.sample_by_traffic)" in advice
    assert "or rate the 1 heaviest unrated query as well" in advice
    assert "unless they weigh more" not in decision.guarantee()
    # Two light queries remain without ratings; the heavy one is known for certain.
    light = qrels[~qrels["qid"].isin(["q001", "q002"])]
    decided = gate(new, old, light, table(weight=weight))
    assert decided.decision == "PASS"
    d = differences(new, old, qrels).drop(["q001", "q002"])
    rest = d.drop("q007")
    share = 60 / weight.sum()
    row = decided.pairs.loc[0]
    assert row["diff"] == pytest.approx(share * d["q007"] + (1 - share) * rest.mean())
    assert row["unseen"] == pytest.approx(2 / weight.sum(), rel=1e-6)
    assert row["low"] > share * d["q007"] + (1 - share) * limit(rest)


def test_the_heaviest_queries_alone_are_no_sample_of_the_others():
    new, old, qrels = collection()
    weight = np.where(np.arange(N) < 100, 5.0, 1.0)
    decision = gate(new, old, qrels[qrels["qid"] < "q100"], table(weight=weight), margin=0.5)
    assert decision.decision == "UNKNOWN"
    assert "weigh more than the 20 unrated queries of the table: rate a random sample of these" in decision.advice()[0]


def test_unequal_weights_ask_for_draws_by_traffic():
    new, old, qrels = collection()
    w = np.random.default_rng(2).lognormal(0, 1, N)
    decision = gate(new, old, qrels, table(weight=w), margin=0.06)
    row = decision.pairs.loc[0]
    assert (decision.decision, row["reason"]) == ("UNKNOWN", "more queries")
    index = float(tail_index(w[:, None], np.ones((N, 1)))[0])
    assert row["unseen"] == pytest.approx(1 - 0.05 ** (w.max() / w.sum() / (1 - index)))
    assert (
        "may be heavier queries, by extrapolation of the weights, without one among the 120 queries"
        in decision.advice()[0]
    )
    assert 30 < row["n_needed"] < 2000
    assert "heaviest unrated" not in decision.advice()[0]


def test_a_covariate_has_a_weighted_mean_if_weights_are_unequal():
    new, old, qrels = collection(worse=range(0, N, 6))
    d = differences(new, old, qrels).to_numpy()
    w = np.where(np.arange(N) % 2, 1.0, 2.0)
    more = pd.DataFrame({"qid": [f"other {i}" for i in range(N)], "covariate": d, "weight": w[::-1]})
    population = pd.concat([table(covariate=d, weight=w), more], ignore_index=True)
    row = gate(new, old, qrels, population, covariate="earlier").pairs.loc[0]
    # The covariate is the difference itself, so that the mean of all queries is known.
    assert row["diff"] == pytest.approx(np.average(np.r_[d, d], weights=np.r_[w, w[::-1]]))
    rows = qrels[qrels["qid"] < "q060"]
    with pytest.raises(InputError, match="covariate: known for 60 queries without a weight"):
        gate(new, old, rows, table(weight=w)[:60], labels=qrels, covariate="labels")


def test_segments_of_queries_taken_for_certain_have_no_limits():
    new, old, qrels = collection()
    sample = sample_by_traffic(table(weight=np.arange(1, N + 1) ** -1.0), 60)
    sample["segment"] = np.where(sample["drawn"] == 0, "head", "tail")
    decision = gate(new, old, qrels[qrels["qid"].isin(sample["qid"])], sample)
    assert decision.segments["segment"].tolist() == ["tail"]
    assert decision.segments["p_equal"].isna().all()
    report = gate_report(decision, "markdown")
    assert "Left out: 1 segment with fewer than two queries, or draws, without limits ('head')" in report
    assert "Equal differences" not in report


def test_queries_taken_for_certain_have_no_error_in_the_gate():
    new, old, qrels = collection()
    traffic = table(weight=np.arange(1, N + 1) ** -1.0)
    sample = sample_by_traffic(traffic, 60, seed=3)
    rows = [frame[frame["qid"].isin(sample["qid"])] for frame in (new, old, qrels)]
    d = differences(*rows).loc[sample["qid"]].to_numpy()
    row = gate(*rows, sample).pairs.loc[0]
    assert row["diff"] == pytest.approx(sample["weight"] @ d)
    certain, drawn = sample["drawn"] == 0, sample["drawn"]
    left = 1 - sample.loc[certain, "weight"].sum()
    rest = pd.Series(np.repeat(d, drawn))
    assert 0 < certain.sum() <= 30
    assert row["low"] == pytest.approx(sample.loc[certain, "weight"] @ d[certain] + left * limit(rest))
    # Without one of the drawn queries, the others are no sample by traffic.
    with pytest.raises(InputError, match=r"1 of .* drawn queries are not rated .*; rate them"):
        gate(new, old, rows[2][rows[2]["qid"] != sample["qid"].iloc[-1]], sample)


@pytest.mark.slow
def test_samples_by_traffic_estimate_the_weighted_mean_without_bias():
    rng = np.random.default_rng(4)
    traffic = pd.DataFrame({"qid": [f"q{i}" for i in range(500)], "weight": rng.lognormal(0, 1.5, 500)})
    value = pd.Series(rng.random(500) + 0.2 * (traffic["weight"].to_numpy() > 5), index=traffic["qid"])
    truth = np.average(value, weights=traffic["weight"])
    results = [sample_by_traffic(traffic, 60, seed=seed) for seed in range(300)]
    estimates = [each["weight"] @ value.loc[each["qid"]].to_numpy() for each in results]
    assert stats.ttest_1samp(estimates, truth).pvalue > 1e-3
    assert all(each["weight"].sum() == pytest.approx(1) for each in results)
    assert all((each["drawn"] == 0).sum() + each["drawn"].sum() == 60 for each in results)
    # The heaviest are in all samples; rows in any order give the same sample.
    heaviest = traffic.nlargest(3, "weight")["qid"]
    assert all(set(heaviest) <= set(each["qid"][each["drawn"] == 0]) for each in results)
    pd.testing.assert_frame_equal(sample_by_traffic(traffic[::-1], 60, seed=5), results[5])
    assert not results[5].equals(results[6])


def test_a_covariate_of_more_queries_narrows_the_limit_and_states_both():
    new, old, qrels = collection(worse=range(0, N, 6))
    d = differences(new, old, qrels)
    noise = np.random.default_rng(5).normal(0, 0.02, N)
    more = pd.DataFrame({"qid": [f"other {i}" for i in range(600)], "covariate": np.tile(d + noise, 5)})
    population = pd.concat([table(covariate=d.to_numpy() + noise), more], ignore_index=True)
    row = gate(new, old, qrels, population, covariate="earlier").pairs.loc[0]
    plain = gate(new, old, qrels).pairs.loc[0]
    assert row["correlation"] > 0.9
    assert row["low_without"] == pytest.approx(plain["low"])
    assert row["low"] > plain["low"] + 0.003
    assert row["method"] == "one-sided, t, unseen losses, covariate"
    with pytest.warns(DegenerateWarning, match="known for the rated queries only, so that it adds nothing"):
        gate(new, old, qrels, table(covariate=d.to_numpy()), covariate="earlier")


def test_labels_of_a_machine_are_a_covariate_of_unrated_queries():
    new, old, every = collection(worse=range(0, N, 6))
    rated = every[every["qid"] < "q060"]
    decision = gate(new, old, rated, labels=every, covariate="labels")
    row = decision.pairs.loc[0]
    text = f"the lower limit is {row['low']:+.4f}, and {row['low_without']:+.4f} without the covariate."
    assert f"Covariate: correlation +1.00 with the differences; {text}" in gate_report(decision, "table")
    # Labels that agree with the ratings know the mean of all queries.
    assert row["correlation"] == pytest.approx(1)
    assert row["diff"] == pytest.approx(differences(new, old, every).mean())
    assert row["n_qids"] == 60


def test_guardrails_must_pass_and_fail_the_gate():
    runs = collection()
    decision = gate(*runs, guardrails={"P@1": 0.2})
    assert decision.pairs[["measure", "role", "margin"]].to_numpy().tolist() == [
        ["nDCG@4", "decision", 0.1],
        ["P@1", "guardrail", 0.2],
    ]
    assert decision.decision == "PASS"
    assert "P@1 PASS" in decision.summary()
    assert "by P@1 below 0.2" in decision.guarantee()
    alone = gate(*runs).pairs.loc[0]
    # PASS needs no correction; FAIL by one of two measures does.
    assert decision.pairs.loc[0, "low"] == alone["low"]
    assert decision.pairs.loc[0, "high"] > alone["high"]
    narrow = gate(*runs, guardrails={"P@1": 0.001})
    assert (narrow.decision, narrow.pairs["decision"].tolist()) == ("UNKNOWN", ["PASS", "UNKNOWN"])
    assert narrow.advice()[0].startswith("P@1: ")
    worse = collection(worse=range(0, N, 2))
    assert gate(*worse, guardrails={"P@1": 0.05}, margin=0.9, max_share=1).decision == "FAIL"
    assert "P@1" in gate_report(narrow, "table")


def test_segments_have_a_test_of_equal_differences():
    part = np.where(np.arange(N) < 60, "head", "tail")
    same = gate(*collection(), table(segment=part)).segments
    apart = gate(*collection(worse=range(30)), table(segment=part)).segments
    assert same["p_equal"].iloc[0] > 0.01
    assert apart["p_equal"].iloc[0] < 1e-3
    d = differences(*collection(worse=range(30)))
    expected = stats.ttest_ind(d[:60], d[60:], equal_var=False).pvalue
    assert apart["p_equal"].tolist() == pytest.approx([expected, expected])
    told = gate_report(gate(*collection(), table(segment=part), guardrails={"P(rel=2)@4": 0.2}), "table")
    assert f"p = {same['p_equal'].iloc[0]:.4f} (nDCG@4, old), " in told
    rng = np.random.default_rng(6)
    false = [
        welch_p(*np.array([(x.mean(), x.var(ddof=1) / len(x), len(x) - 1) for x in parts]).T)
        for parts in ([rng.normal(0, sd, n) for sd, n in ((1, 10), (3, 20), (0.5, 40))] for _ in range(1000))
    ]
    assert stats.binomtest(int((np.array(false) <= 0.05).sum()), 1000, 0.05).pvalue > 1e-3


def test_scores_and_comparisons_honour_weights_and_clusters():
    new, old, qrels = collection()
    w, code = np.random.default_rng(7).lognormal(0, 0.5, N), np.arange(N) // 4
    plain = vbterrier.score({"new": new, "old": old}, qrels, ["nDCG@4"])
    values = plain.values.pivot(index="qid", columns="name", values="value")
    for queries, about in ((table(weight=w), {"weights": w}), (table(cluster=code), {"clusters": code})):
        data = Data(queries=queries)
        result = vbterrier.score({"new": new, "old": old}, qrels, ["nDCG@4"], data=data).intervals.set_index("name")
        of = moments(values.to_numpy(), **about)
        assert result["value"].tolist() == pytest.approx(of.mean.tolist())
        low = lower_limit(of, 0.025, 0.0, special.stdtrit)
        assert result["low"].tolist() == pytest.approx(low.tolist())
        pairs = vbterrier.compare(
            {"new": new, "old": old}, qrels, "nDCG@4", data=data, inference=Inference(margin=0.1)
        ).pairs.loc[0]
        of = moments((values[pairs["name_a"]] - values[pairs["name_b"]]).to_numpy()[:, None], **about)
        assert pairs["diff"] == pytest.approx(float(of.mean[0]))
        t = abs(of.mean) / np.sqrt(of.variance)
        assert pairs["p_value"] == pytest.approx(float(2 * special.stdtr(of.df, -t)[0]))
        assert 0 < pairs["p_equivalence"] < 1


def test_ranks_honour_weights_and_clusters():
    qrels = collection()[2]
    w, code = np.random.default_rng(7).lognormal(0, 0.5, N), np.arange(N) // 4
    values = vbterrier.score(BOTH, qrels, ["ENDCG@4"]).values.pivot(index="qid", columns="name", values="value")
    d = (values["new"] - values["old"]).to_numpy()[:, None]
    inference = Inference(level=0.95, n_draws=4000)
    for columns, about in (
        ({"weight": w}, {"weights": w}),
        ({"cluster": code}, {"clusters": code}),
        ({"weight": w, "cluster": code}, {"weights": w, "clusters": code}),
    ):
        data = Data(queries=table(**columns).sample(frac=1, random_state=1))
        ranking = vbterrier.rank_systems(
            BOTH, qrels, "ENDCG@4", uncertainty="topics", baseline="old", data=data, inference=inference
        )
        systems, pair = ranking.systems.set_index("name"), ranking.pairs.loc[0]
        expected = vbterrier.score(BOTH, qrels, ["ENDCG@4"], data=data).intervals.set_index("name")
        for ours, theirs in (("mean", "value"), ("low", "low"), ("high", "high")):
            assert systems[ours].to_dict() == pytest.approx(expected[theirs].to_dict())
        of, sign = moments(d, **about), 1 if pair["name_a"] == "new" else -1
        assert pair["diff"] == pytest.approx(sign * float(of.mean[0]))
        half = float((special.stdtrit(of.df, 0.975) * np.sqrt(of.variance))[0])
        assert (pair["high"] - pair["low"]) / 2 == pytest.approx(half, rel=0.05)
        beats = float(special.stdtr(of.df, sign * of.mean / np.sqrt(of.variance))[0])
        assert pair["p_a_beats_b"] == pytest.approx(beats, abs=0.03)


def test_ranks_over_labels_have_weighted_means_and_intervals_that_contain_those_of_topics():
    qrels = collection()[2]
    rated = qrels[np.random.default_rng(3).random(len(qrels)) < 0.8]
    w = np.random.default_rng(7).lognormal(0, 0.5, N)
    results = {
        uncertainty: vbterrier.rank_systems(
            BOTH,
            rated,
            "ENDCG@4",
            uncertainty=uncertainty,
            data=Data(queries=table(weight=w)),
            inference=Inference(n_draws=500),
        ).systems.set_index("name")
        for uncertainty in ("unjudged", "topics", "both")
    }
    values = vbterrier.score(BOTH, rated, ["ENDCG@4"]).values.pivot(index="qid", columns="name", values="value")
    for frame in results.values():
        assert frame["mean"].to_dict() == pytest.approx({name: np.average(values[name], weights=w) for name in BOTH})
    for part in ("unjudged", "topics"):
        assert (results["both"]["low"] < results[part]["low"]).all()
        assert (results["both"]["high"] > results[part]["high"]).all()


def test_a_table_of_topics_counts_as_one_of_queries():
    w = np.random.default_rng(7).lognormal(0, 0.5, N)
    topics = table(query="text", weight=w, segment=np.where(np.arange(N) < 30, "head", "tail"))
    for call, frames in ((vbterrier.score, ("intervals", "segments")), (vbterrier.compare, ("pairs", "segments"))):
        by_topics, by_queries = (
            call(BOTH, RUNS[2], ["nDCG@4"], data=data)
            for data in (Data(topics=topics), Data(queries=topics.drop(columns="query")))
        )
        for name in frames:
            pd.testing.assert_frame_equal(getattr(by_topics, name), getattr(by_queries, name))
        # A table of queries replaces the columns of topics.
        equal = call(BOTH, RUNS[2], ["nDCG@4"], data=Data(topics=topics, queries=table(weight=1.0)))
        assert not np.allclose(equal.to_frame().select_dtypes("float"), by_topics.to_frame().select_dtypes("float"))
    with pytest.raises(ParameterError, match="column 'weight' of topics has no effect"):
        vbterrier.Experiment([RUNS[0]], topics, RUNS[2], ["nDCG@4"])


def test_segments_of_scores_are_a_table():
    new, _, qrels = collection()
    part = np.where(np.arange(N) < 30, "head", "tail")
    result = vbterrier.score({"new": new}, qrels, ["nDCG@4"], data=Data(queries=table(segment=part)))
    assert result.segments[["segment", "n_qids", "weight"]].to_numpy().tolist() == [
        ["head", 30, 0.25],
        ["tail", 90, 0.75],
    ]
    rows = qrels["qid"] < "q030"
    alone = vbterrier.score({"new": new[rows]}, qrels[rows], ["nDCG@4"]).intervals
    assert result.segments.loc[0, ["low", "high"]].tolist() == pytest.approx(alone.loc[0, ["low", "high"]].tolist())


def test_segments_of_comparisons_are_corrected_for_their_number():
    new, old, qrels = collection()
    part = np.where(np.arange(N) < 30, "head", "tail")
    part[-1] = ""
    weighted = Data(queries=table(segment=part, weight=1.0))
    comparison = vbterrier.compare(BOTH, qrels, "nDCG@4", baseline="old", data=weighted)
    assert comparison.segments[["segment", "n_qids", "n_tests"]].to_numpy().tolist() == [
        ["head", 30, 2],
        ["tail", 89, 2],
    ]
    assert comparison.segments["weight"].tolist() == pytest.approx([30 / N, 89 / N])
    rows = qrels["qid"] < "q030"
    alone = vbterrier.compare(
        {"new": new[rows], "old": old[rows]},
        qrels[rows],
        "nDCG@4",
        baseline="old",
        inference=Inference(level=0.975),
    ).pairs.loc[0]
    head = comparison.segments.loc[0]
    assert head[["diff", "low", "high"]].tolist() == pytest.approx(alone[["diff", "low", "high"]].tolist())
    assert head["p_adjusted"] == pytest.approx(min(2 * alone["p_adjusted"], 1))
    assert head["level"] == comparison.pairs["level"].iloc[0] == 0.95
    for report in (comparison_report(comparison, "table"), comparison_report(comparison, "markdown")):
        assert "corrected for 2 segments" in report
        assert "24.8%" in report or "25.0%" in report
    assert "head" in comparison_report(comparison, "csv")
    assert len(json.loads(comparison_report(comparison, "json"))["segments"]) == 2
    assert comparison_report(vbterrier.compare(BOTH, qrels, "nDCG@4"), "csv").startswith("name_a,")
    part[0] = "one"
    with pytest.warns(DegenerateWarning, match="'one': segments of one query"):
        comparison = vbterrier.compare(BOTH, qrels, "nDCG@4", data=Data(queries=table(segment=part)))
    assert set(comparison.segments["segment"]) == {"head", "tail"}


def test_tables_of_queries_are_checked_before_runs_are_scored(monkeypatch):
    short, unknown = table(weight=1.0)[:-1], table(drawn=1)
    monkeypatch.setattr("vbterrier.evaluate.comparison.scored_runs", None)
    monkeypatch.setattr("vbterrier.evaluate.scores.score_rows", None)
    for call in (
        lambda queries: vbterrier.score(BOTH, RUNS[2], ["nDCG@4"], data=Data(queries=queries)),
        lambda queries: vbterrier.compare(BOTH, RUNS[2], "nDCG@4", data=Data(queries=queries)),
    ):
        with pytest.raises(InputError, match="no row for 1 of 120 queries"):
            call(short)
        with pytest.raises(ParameterError, match="column 'drawn' of queries has no effect"):
            call(unknown)


def test_heavy_weights_give_a_warning():
    heavy = np.r_[1000.0, 500.0, np.ones(N - 2)]
    for call in (vbterrier.score, vbterrier.compare):
        with pytest.warns(DegenerateWarning, match="by their weights, 120 queries count as 2; sample by traffic"):
            call(BOTH, RUNS[2], ["nDCG@4"], data=Data(queries=table(weight=heavy)))


RUNS = collection()
BOTH = {"new": RUNS[0], "old": RUNS[1]}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: gate(*RUNS, table(cluster=1), daily=True),
            ParameterError,
            "daily=True has no limits for column 'cluster'",
        ),
        (lambda: gate(*RUNS, table(cluster=1), guarantee="any"), ParameterError, "has no limits for column 'cluster'"),
        (lambda: gate(*RUNS, covariate="age"), ParameterError, "covariate='age'"),
        (lambda: gate(*RUNS, covariate="earlier"), InputError, "wanted a column covariate of queries"),
        (lambda: gate(*RUNS, covariate="labels"), InputError, "wanted labels of one machine"),
        (
            lambda: gate(*RUNS, table(covariate=[np.nan] + [0.1] * (N - 1)), covariate="earlier"),
            InputError,
            "unknown for 1 of 120 rated queries",
        ),
        (
            lambda: gate(*RUNS, table(weight=np.arange(N) + 1.0, drawn=1)),
            InputError,
            "weights of drawn queries are not proportional to drawn",
        ),
        (lambda: gate(*RUNS, table(drawn=1, cluster=1)), InputError, "columns drawn and cluster; wanted one of them"),
        (lambda: gate(*RUNS, guardrails={"nDCG@4": 0.1}), ParameterError, "guardrails=: wanted measures other than"),
        (
            lambda: vbterrier.score(BOTH, RUNS[2], ["nDCG@4"], data=Data(queries=table(drawn=1))),
            ParameterError,
            "score: column 'drawn' of queries has no effect",
        ),
        (
            lambda: vbterrier.score(
                BOTH, RUNS[2], ["nDCG@4"], data=Data(queries=table(weight=1.0)), inference=Inference(interval="bca")
            ),
            ParameterError,
            "interval='bca' has no weights",
        ),
        (
            lambda: vbterrier.compare(BOTH, RUNS[2], "nDCG@4", data=Data(queries=table(covariate=1))),
            ParameterError,
            "compare: column 'covariate' of queries has no effect",
        ),
        (
            lambda: vbterrier.compare(
                BOTH, RUNS[2], "nDCG@4", data=Data(queries=table(weight=1.0)), inference=Inference(test="randomisation")
            ),
            ParameterError,
            "test='randomisation' has no weights of queries; use 'moderated' or 't'",
        ),
        (
            lambda: vbterrier.score(BOTH, RUNS[2], ["nDCG@4"], data=Data(queries=table(weight=1.0)), pool="collection"),
            ParameterError,
            "pool='collection' has no weights",
        ),
        (
            lambda: vbterrier.compare(
                BOTH, RUNS[2], "nDCG@4", data=Data(queries=table(weight=1.0)), inference=Inference(test="wilcoxon")
            ),
            ParameterError,
            "test='wilcoxon' has no weights of queries",
        ),
        (
            lambda: vbterrier.rank_systems(BOTH, RUNS[2], "ENDCG@4", data=Data(queries=table(segment="a"))),
            ParameterError,
            "rank_systems: column 'segment' of queries has no effect",
        ),
        (
            lambda: vbterrier.rank_systems(
                BOTH, RUNS[2], "ENDCG@4", uncertainty="topics", data=Data(queries=table(cluster="a"))
            ),
            InputError,
            "all topics are in one cluster",
        ),
        (
            lambda: vbterrier.score(BOTH, RUNS[2], ["nDCG@4"], data=Data(topics=table(query="a", drawn=1))),
            ParameterError,
            "score: column 'drawn' of queries has no effect",
        ),
        *(
            (call, ParameterError, f"column '{name}' of topics has no effect; leave it out")
            for name in ("weight", "cluster", "drawn")
            for call in (
                lambda name=name: audit_judge(
                    BOTH, RUNS[2], labels=RUNS[2], data=Data(topics=table(query="a", **{name: 1}))
                ),
                lambda name=name: vbterrier.evaluate_intents(
                    BOTH, table(query="a", **{name: 1}), ["ES@4"], intents=table(entity_id="x", prob=1.0)
                ),
            )
        ),
        (
            lambda: leaderboard(BOTH, RUNS[2], "nDCG@4", data=Data(queries=table(weight=1.0))),
            ParameterError,
            "weights, clusters and segments are for score, compare, rank_systems, queries_needed",
        ),
        (lambda: sample_by_traffic(table(segment="a"), 10), InputError, "wanted a column weight"),
        (lambda: sample_by_traffic(table(weight=1.0), 1), ParameterError, "n=1"),
    ],
)
def test_columns_without_effect_are_refused(call, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")):
        call()
