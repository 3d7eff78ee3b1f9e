"""Decisions of the release gate: levels, families of baselines, segments, looks, and inputs."""

import json

import numpy as np
import pandas as pd
import pytest
import release_gate as bench
from night import at_night
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import release_gate
from vbterrier.evaluate.release_gate import decision_of, one_sided_limits
from vbterrier.evaluate.scores import score
from vbterrier.stats import confidence_sequence

N = 120


def collection(n=N, seed=1, loss=0.0):
    """Ratings of four documents for each query, the old run and a new one that is worse in some queries."""
    rng = np.random.default_rng(seed)
    qids = np.repeat([f"query {i}" for i in range(n)], 4)
    qrels = pd.DataFrame({"qid": qids, "docno": np.tile([*"abcd"], n), "label": rng.integers(0, 4, 4 * n)})
    old = qrels[["qid", "docno"]].assign(score=qrels["label"] + rng.normal(0, 1, 4 * n))
    worse = np.repeat(rng.random(n) < loss, 4)
    new = old.assign(score=np.where(worse, -old["score"], old["score"] + rng.normal(0, 0.3, 4 * n)))
    return new, old, qrels


def gate(new, old, qrels, measure="nDCG@4", margin=0.05, **options):
    return release_gate({"new": new}, {"old": old}, qrels, measure, margin=margin, **options)


def test_a_small_difference_passes_a_large_one_fails_and_a_few_queries_tell_nothing():
    assert gate(*collection()).decision == "PASS"
    assert gate(*collection(loss=0.6)).decision == "FAIL"
    found = gate(*collection(n=8, loss=0.3))
    assert (found.decision, found.exit_code) == ("UNKNOWN", 3)


def test_limits_are_those_of_one_sided_tests():
    rng = np.random.default_rng(2)
    d = rng.normal(0, 0.1, 60)
    low, high = one_sided_limits(d, np.ones(60), 0.05, (-1, 1), "normal")
    assert [low, high] == pytest.approx(d.mean() + stats.t.ppf([0.05, 0.95], 59) * stats.sem(d))
    # Equal differences: the closed form of bounded limits.
    low, high = one_sided_limits(np.zeros(299), np.ones(299), 0.05, (-1, 1), "bounded", n_resamples=200_000)
    assert [low, high] == pytest.approx([-(1 - 0.05 ** (1 / 299)), 1 - 0.05 ** (1 / 299)], rel=0.02)
    sequence = confidence_sequence(d, level=0.9, bounds=(-1, 1)).iloc[-1]
    found = one_sided_limits(d, np.ones(60), 0.05, (-1, 1), "sequence")
    assert found == pytest.approx((sequence["low"], sequence["high"]))


@pytest.mark.parametrize("interval", ["normal", "bounded", "sequence"])
def test_weights_matter_up_to_a_factor(interval):
    rng = np.random.default_rng(3)
    d, w = rng.normal(0, 0.1, 60), rng.uniform(0.1, 3, 60)
    options = {"tail": 0.05, "bounds": (-1, 1), "interval": interval}
    weighted = one_sided_limits(d, w, **options)
    assert one_sided_limits(d, 10 * w, **options) == pytest.approx(weighted)
    assert one_sided_limits(d, np.ones(60), **options) != pytest.approx(weighted, abs=1e-4)
    assert weighted[0] < np.average(d, weights=w) < weighted[1]


def test_small_tails_are_drawn_often_enough():
    d = np.random.default_rng(4).normal(0, 0.1, 30)
    lows = [
        one_sided_limits(d, np.ones(30), tail, (-1, 1), "bounded", n_resamples=100)[0] for tail in (0.1, 1e-3, 1e-5)
    ]
    assert lows == sorted(lows, reverse=True)
    assert lows[2] < lows[1] - 0.01


@pytest.mark.parametrize(
    ("kind", "n_releases"),
    [("1 % of the queries lose all", 40), *(at_night(kind, 150) for kind in (*bench.KINDS, bench.HEAD))],
)
def test_false_decisions_are_as_rare_as_stated(kind, n_releases):
    for rate in (
        *bench.rates(kind, "bounded", 100, n_releases),
        *bench.peeking_rates(kind, "daily", 160, 20, n_releases),
    ):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3


@pytest.mark.parametrize("n_releases", [60, at_night(200)])
def test_numbered_looks_keep_the_level_and_uncorrected_looks_do_not(n_releases):
    kind = "all queries change a little"
    for rate in bench.peeking_rates(kind, "look", 200, 20, n_releases):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3
    assert min(bench.peeking_rates(kind, "uncorrected", 200, 20, n_releases)) > 2 * bench.ALPHA


@pytest.mark.parametrize("n_releases", [12, at_night(60)])
def test_predictions_keep_the_level_where_unjudged_documents_bias_ndcg(n_releases):
    for rate in bench.holes_rates(40, n_releases):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3
    assert bench.holes_rates(40, n_releases // 6, "nDCG@10") == (0.0, 1.0)


def test_harmless_releases_pass_with_enough_queries():
    passed, failed = bench.rates("all queries change a little", "bounded", 1000, 30, shift=0.0)
    assert passed > 0.6
    assert failed == 0


def test_several_baselines_are_one_family():
    new, old, qrels = collection(n=60)
    bad = old.assign(score=-old["score"])
    found = release_gate({"new": new}, {"old": old, "bad": bad}, qrels, "nDCG@4", margin=0.2)
    alone = gate(new, old, qrels, margin=0.2, level=0.975)
    assert found.pairs["n_tests"].tolist() == [2, 2]
    assert found.pairs.loc[0, ["low", "high"]].tolist() == pytest.approx(alone.pairs.loc[0, ["low", "high"]].tolist())
    assert (found.decision, found.pairs["decision"].tolist()) == ("PASS", ["PASS", "PASS"])
    for other, last, decisions in ((new, bad, ["UNKNOWN", "PASS"]), (bad, bad[::-1], ["FAIL", "UNKNOWN"])):
        found = release_gate({"new": other}, {"old": old, "bad": last}, qrels, "nDCG@4", margin=0.0)
        assert (found.decision, found.pairs["decision"].tolist()) == (decisions[0], decisions)


def test_numbers_do_not_depend_on_the_order_of_rows():
    new, old, qrels = collection(n=30)
    shuffled = (frame.sample(frac=1, random_state=1) for frame in (new, old, qrels))
    pd.testing.assert_frame_equal(gate(new, old, qrels).pairs, gate(*shuffled).pairs)


def test_segments_are_corrected_and_those_of_one_query_are_counted():
    new, old, qrels = collection(n=60)
    qids = qrels["qid"].unique()
    traffic = pd.DataFrame({"qid": qids, "segment": ["only"] + ["head"] * 30 + ["tail"] * 28 + [""], "weight": 2.0})
    found = gate(new, old, qrels, traffic=traffic)
    assert found.segments[["segment", "n_qids", "n_tests"]].to_numpy().tolist() == [["head", 30, 2], ["tail", 28, 2]]
    assert found.segments["weight"].sum() == pytest.approx(58 / 60)
    counts = found.excluded.set_index("reason")["n"].to_dict()
    assert counts == {"queries without a segment": 1, "segments with one query, without limits": 1}
    rows = qrels["qid"].isin(qids[1:31])
    alone = gate(new[rows], old[rows], qrels[rows], level=0.975, n_resamples=200_000)
    wanted = alone.pairs.loc[0, ["diff", "low", "high"]].tolist()
    assert found.segments.loc[0, ["diff", "low", "high"]].tolist() == pytest.approx(wanted, abs=0.005)


def differences(new, old, qrels, measure="nDCG@4"):
    values = score({"new": new, "old": old}, qrels, [measure], n_resamples=2).values
    table = values.pivot(index="qid", columns="name", values="value").loc[qrels["qid"].unique()]
    return (table["new"] - table["old"]).to_numpy()


def test_weights_are_those_of_the_mean_and_zero_leaves_a_query_out():
    new, old, qrels = collection(n=40, loss=0.3)
    weight = np.arange(40.0)
    traffic = pd.DataFrame({"qid": [*qrels["qid"].unique(), "other"], "weight": [*weight, 5.0]})
    found = gate(new, old, qrels, traffic=traffic)
    assert found.pairs.loc[0, "n_qids"] == 39
    assert found.pairs.loc[0, "diff"] == pytest.approx(np.average(differences(new, old, qrels), weights=weight))
    counts = found.excluded.set_index("reason")["n"].to_dict()
    assert counts == {"queries of weight 0": 1, "queries of traffic without ratings": 1}


@pytest.mark.parametrize("step", [1, -1])
def test_daily_limits_are_those_of_the_sequence_in_the_order_of_the_ratings(step):
    new, old, qrels = collection(n=50, loss=0.3)
    found = gate(new, old, qrels.iloc[::step], daily=True).pairs.loc[0]
    wanted = confidence_sequence(differences(new, old, qrels)[::step], level=0.9, bounds=(-1, 1)).iloc[-1]
    assert found["method"] == "one-sided, confidence sequence"
    assert found[["diff", "low", "high"]].tolist() == pytest.approx(wanted[["value", "low", "high"]].tolist())


def test_looks_spend_the_level():
    new, old, qrels = collection(n=50)
    second = gate(new, old, qrels, look=2).pairs.loc[0, ["low", "high"]].tolist()
    level = 1 - 6 * 0.05 / (np.pi * 2) ** 2
    assert second == pytest.approx(gate(new, old, qrels, level=level).pairs.loc[0, ["low", "high"]].tolist())


def unjudged(n=40):
    new, old, qrels = collection(n=n)
    return new, old, qrels[~((qrels["docno"] == "d") & (qrels.index % 3 == 0))]


def test_predicted_ratings_widen_the_limits_and_are_listed_to_judge():
    new, old, qrels = unjudged()
    found = gate(new, old, qrels, "ENDCG@4", margin=0.0, interval="normal", budget=3)
    row = found.pairs.loc[0]
    assert row["unjudged"] > 0
    assert row["method"] == "one-sided, Student's t and prediction"
    d = differences(new, old, qrels, "ENDCG@4")
    low, _ = one_sided_limits(d, np.ones(len(d)), 0.05, (-1, 1), "normal")
    assert row["diff"] == pytest.approx(d.mean())
    assert row["low"] < low - 1e-4
    assert found.decision == "UNKNOWN"
    assert len(found.judge) == 3
    assert set(found.judge["docno"]) == {"d"}


@pytest.mark.parametrize("measure", ["ENDCG@2", "BNDCG(prior='pool')@2"])
def test_documents_of_queries_with_much_traffic_are_judged_first(measure):
    new, old, every = collection(n=40, loss=0.5)
    qrels = every.sample(frac=0.7, random_state=1)
    lost = -gate(new, old, qrels, measure).pairs.loc[0, "diff"]
    options = {"measure": measure, "margin": lost, "interval": "bounded", "budget": 40}
    plain = gate(new, old, qrels, **options).judge
    rest = plain["qid"].drop_duplicates().tolist()
    assert len(rest) > 6
    heavy, none = rest[-2:], rest[0]
    weights = {qid: 10.0 if qid in heavy else 0.0 if qid == none else 1.0 for qid in qrels["qid"].unique()}
    traffic = pd.DataFrame({"qid": list(weights), "weight": list(weights.values())})
    found = gate(new, old, qrels, **options, traffic=traffic).judge
    assert set(found["qid"].head(2)) == set(heavy)
    assert none not in set(found["qid"])
    # Equal weights are no weights, and their unit does not matter.
    same = gate(new, old, qrels, **options, traffic=traffic.assign(weight=7.0)).judge
    pd.testing.assert_frame_equal(same, plain)


def test_daily_limits_are_withheld_while_documents_are_unjudged():
    found = gate(*unjudged(), "ENDCG@4", margin=0.5, daily=True)
    assert found.pairs.loc[0, ["low", "high", "decision"]].tolist() == [-1.0, 1.0, "UNKNOWN"]
    assert len(found.judge)


def test_other_measures_warn_of_unjudged_documents():
    with pytest.warns(DegenerateWarning, match=r"nDCG@4 treats unjudged documents as non-relevant: .*% of new"):
        gate(*unjudged())


def test_rated_lists_give_the_same_decision_and_get_the_documents_back(tmp_path):
    new, old, qrels = unjudged()
    qrels.set_axis(["Query Text", "Doc ID", "Rating"], axis=1).to_csv(tmp_path / "ratings.csv", index=False)
    for name, run in (("new", new), ("old", old)):
        details = {
            qid: {"hits": [{"hit": {"_index": name, "_id": docno}, "rating": None} for docno in rows["docno"]]}
            for qid, rows in run.sort_values("score", ascending=False).groupby("qid")
        }
        (tmp_path / f"{name}.json").write_text(json.dumps({"details": details}))
    paths = tmp_path / "new.json", tmp_path / "old.json", tmp_path / "ratings.csv"
    found = release_gate(*paths, "ENDCG@4", margin=0.0, scale=(0, 3), budget=5)
    wanted = gate(new, old, qrels, "ENDCG@4", margin=0.0, budget=5)
    assert found.pairs.loc[0, ["diff", "low"]].tolist() == pytest.approx(wanted.pairs.loc[0, ["diff", "low"]].tolist())
    found.write_judging(tmp_path / "next.csv")
    lines = (tmp_path / "next.csv").read_text().splitlines()
    assert lines[0] == "Query Text,Doc ID,Rating"
    assert lines[1:] == [f"{qid},{docno}," for qid, docno in wanted.judge[["qid", "docno"]].to_numpy()]
    assert set(found.judge["index"]) <= {"new", "old"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"margin": -0.1}, ParameterError, "margin=-0.1: wanted a number of at least 0"),
        (
            {"margin": 2},
            ParameterError,
            "margin=2: means of nDCG@4 differ by at most 1; wanted less; did you mean 0.02, 2 per cent of 1?",
        ),
        ({"margin": 1}, ParameterError, "margin=1: means of nDCG@4 differ by at most 1; wanted less"),
        ({"margin": 1.3, "measure": "VB@4"}, ParameterError, "means of VB@4 differ by at most 1.20711; wanted less"),
        ({"level": 0.5}, ParameterError, "level=0.5: wanted a number above 0.5 and below 1"),
        ({"level": 95}, ParameterError, "did you mean 0.95, 95 per cent?"),
        ({"interval": "percentile"}, ParameterError, "wanted one of 'bounded', 'normal'"),
        ({"look": 1, "daily": True}, ParameterError, "give one of them"),
        ({"look": 0}, ParameterError, "look=0"),
        ({"budget": -1}, ParameterError, "budget=-1"),
        ({"measure": "BaitRate@4"}, ParameterError, "higher values are better"),
        ({"measure": "NumRet"}, ParameterError, "not a mean over topics"),
        ({"measure": "ENDCG(stat='std')@4"}, ParameterError, "higher values are better"),
        ({"measure": "BNDCG(stat='lo')@4"}, ParameterError, "leave out stat='lo'"),
        (
            {"traffic": pd.DataFrame({"qid": ["query 0"], "weight": 1.0})},
            InputError,
            "no row for 19 of 20 rated queries",
        ),
        ({"traffic": pd.DataFrame({"query": ["query 0"]})}, InputError, "wanted columns qid; missing qid"),
        (
            {"traffic": pd.DataFrame({"qid": ["query 0"] * 2, "weight": 1.0})},
            InputError,
            "query 'query 0' is duplicated",
        ),
        (
            {"traffic": pd.DataFrame({"qid": [f"query {i}" for i in range(20)], "weight": np.nan})},
            InputError,
            "the weight of 'query 0' is nan, wanted a number of at least 0",
        ),
    ],
)
def test_bad_options_and_tables_are_named(options, error, message):
    with pytest.raises(error) as caught:
        gate(*collection(n=20), **options)
    assert message in str(caught.value)


def test_repeated_names_and_several_new_runs_are_refused():
    new, old, qrels = collection(n=20)
    with pytest.raises(InputError, match="two systems are called 'old'"):
        release_gate({"old": new}, {"old": old}, qrels, "nDCG@4", margin=0.1)
    with pytest.raises(ParameterError, match="one new run"):
        release_gate({"new": new, "other": new}, {"old": old}, qrels, "nDCG@4", margin=0.1)


def test_queries_without_ratings_or_documents_are_counted():
    new, old, qrels = collection(n=20)
    some = qrels[~qrels["qid"].isin(["query 1", "query 2"])]
    found = gate(new[new["qid"] != "query 3"], old, some)
    counts = found.excluded.set_index("reason")["n"].to_dict()
    assert counts == {
        "queries of new without ratings": 2,
        "queries of old without ratings": 2,
        "queries for which new has no document, scored as empty rankings": 1,
    }
    assert found.pairs.loc[0, "n_qids"] == 18


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [(-0.01, 0.1, "UNKNOWN"), (-0.1, -0.01, "UNKNOWN"), (-0.0099, 0.1, "PASS"), (-0.1, -0.0101, "FAIL")],
)
def test_a_limit_at_the_margin_decides_nothing(low, high, decision):
    assert decision_of(low, high, 0.01) == decision
