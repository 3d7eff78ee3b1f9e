"""Decisions of the release gate: levels, families of baselines, segments, looks, and inputs."""

import json

import numpy as np
import pandas as pd
import pytest
import release_gate as bench
from night import at_night, slow
from scipy import special, stats

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import GateOptions, release_gate
from vbterrier.evaluate.scores import score
from vbterrier.kernels.mean_limits import lower_limit, moments
from vbterrier.report.comparison import gate_report
from vbterrier.settings import Data, Inference
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
    return release_gate({"new": new}, qrels, measure, baseline={"old": old}, margin=margin, **options)


def test_a_small_difference_passes_a_large_one_fails_and_a_few_queries_tell_nothing():
    assert gate(*collection()).decision == "PASS"
    assert gate(*collection(loss=0.6)).decision == "FAIL"
    decision = gate(*collection(n=8, loss=0.3))
    assert (decision.decision, decision.exit_code) == ("UNKNOWN", 3)


@pytest.mark.parametrize(
    ("kind", "n_releases"),
    [("1 % of the queries lose all", 40), *(at_night(kind, 150) for kind in (*bench.KINDS, bench.HEAD))],
)
def test_false_decisions_are_as_rare_as_stated(kind, n_releases):
    for rate in (
        *bench.rates(kind, "any", 100, n_releases),
        *bench.daily_rates(kind, 200, n_releases),
    ):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3


@pytest.mark.parametrize("n_releases", [200, at_night(1000)])
@pytest.mark.parametrize("n", [100, 400])
def test_default_decisions_are_as_rarely_false_as_stated(n, n_releases):
    kinds = [("all queries change a little", -bench.MARGIN), ("a tenth of the queries change", -bench.MARGIN)]
    # The share of queries with a large loss is exactly the acceptable one.
    for kind, shift in [*kinds, (bench.MANY, 0.0)]:
        for rate in bench.rates(kind, "mean+losses", n, n_releases, shift):
            assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3
    # The mean is below the margin because of rare queries, which few samples have.
    rare = bench.rates(bench.RARE, "mean+losses", n, n_releases, -0.02, 0.02)[0]
    assert stats.binom.sf(round(rare * n_releases) - 1, n_releases, 0.063) > 1e-3


@pytest.mark.parametrize("n_releases", [200, at_night(1000)])
def test_equal_releases_pass_with_a_few_hundred_queries(n_releases):
    for kind, margin, least in (("all queries change a little", 0.02, 0.25), (bench.TIES, 0.03, 0.5)):
        passed = {
            each: [bench.rates(kind, each, n, n_releases, 0.0, margin) for n in (50, 100, 400)]
            for each in ("mean+losses", "any")
        }
        assert passed["mean+losses"][0][0] == 0
        assert passed["mean+losses"][1][0] > max(least, passed["any"][1][0] + 0.15)
        assert passed["mean+losses"][2][0] > 0.95
        assert all(failed == 0 for rows in passed.values() for _, failed in rows)


def test_daily_limits_decide_and_keep_the_level():
    assert bench.daily_rates("all queries change a little", 600, 100, 0.0, 0.02)[0] > 0.8
    for kind, shift in (("a tenth of the queries change", -bench.MARGIN), (bench.RARE, -0.02), (bench.MANY, 0.0)):
        for rate in bench.daily_rates(kind, 400, 200, shift, max(-shift, 0.01)):
            assert stats.binom.sf(round(rate * 200) - 1, 200, bench.ALPHA) > 1e-3
    # The simulation is that of the gate.
    kind = "a tenth of the queries change"
    assert bench.peeking_rates(kind, "daily", 60, 20, 8) <= bench.daily_rates(kind, 60, 8)


@pytest.mark.parametrize("n_releases", [60, at_night(200)])
def test_numbered_looks_keep_the_level_and_uncorrected_looks_do_not(n_releases):
    kind = "all queries change a little"
    # At the margin .05, 59 queries can pass.
    for rate in bench.peeking_rates(kind, "look", 400, 40, n_releases, 0.05):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3
    assert bench.peeking_rates(kind, "uncorrected", 400, 40, n_releases, 0.05)[0] > 1.5 * bench.ALPHA


@pytest.mark.parametrize("n_releases", [slow(12), at_night(60)])
def test_predictions_keep_the_level_where_unjudged_documents_bias_ndcg(n_releases):
    for rate in bench.holes_rates(40, n_releases):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3
    # The bias of nDCG would fail every release; the gate withholds that.
    assert bench.holes_rates(40, n_releases // 6, "nDCG@10", column="withheld") == (0.0, 1.0)
    assert bench.holes_rates(40, n_releases // 6, "nDCG@10") == (0.0, 0.0)


@pytest.mark.parametrize("n_releases", [slow(12), at_night(60)])
def test_judging_between_numbered_looks_keeps_the_level(n_releases):
    for rate in bench.holes_rates(40, n_releases, looks=3):
        assert stats.binom.sf(round(rate * n_releases) - 1, n_releases, bench.ALPHA) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "right"), [((0.2, 0.9), "PASS"), ((1.5, 0.5), "FAIL")])
def test_judging_between_numbered_looks_decides_and_never_wrongly(noise, right):
    passed, failed = bench.holes_rates(40, 6, looks=3, noise=noise)
    assert (passed, failed)[right == "FAIL"] >= 0.5
    assert (passed, failed)[right == "PASS"] == 0


def test_harmless_releases_pass_with_enough_queries():
    passed, failed = bench.rates("all queries change a little", "any", 1000, 30, shift=0.0)
    assert passed > 0.6
    assert failed == 0


def test_several_baselines_are_one_family():
    new, old, qrels = collection(n=60)
    bad = old.assign(score=-old["score"])
    decision = release_gate(
        {"new": new}, qrels, "nDCG@4", baseline={"old": old, "bad": bad}, margin=0.2, options=GateOptions(max_share=0.1)
    )
    alone = gate(new, old, qrels, margin=0.2, inference=Inference(level=0.975), options=GateOptions(max_share=0.1))
    assert decision.pairs["n_tests"].tolist() == [2, 2]
    assert decision.pairs.loc[0, ["low", "high"]].tolist() == pytest.approx(
        alone.pairs.loc[0, ["low", "high"]].tolist()
    )
    assert (decision.decision, decision.pairs["decision"].tolist()) == ("PASS", ["PASS", "PASS"])
    for other, last, decisions in ((new, bad, ["UNKNOWN", "PASS"]), (bad, bad[::-1], ["FAIL", "UNKNOWN"])):
        decision = release_gate(
            {"new": other},
            qrels,
            "nDCG@4",
            baseline={"old": old, "bad": last},
            margin=0.0,
            options=GateOptions(max_share=1),
        )
        assert (decision.decision, decision.pairs["decision"].tolist()) == (decisions[0], decisions)


def test_numbers_do_not_depend_on_the_order_of_rows():
    new, old, qrels = collection(n=30)
    shuffled = (frame.sample(frac=1, random_state=1) for frame in (new, old, qrels))
    pd.testing.assert_frame_equal(gate(new, old, qrels).pairs, gate(*shuffled).pairs)


def test_segments_are_corrected_and_those_of_one_query_are_counted():
    new, old, qrels = collection(n=60)
    qids = qrels["qid"].unique()
    traffic = pd.DataFrame({"qid": qids, "segment": ["only"] + ["head"] * 30 + ["tail"] * 28 + [""], "weight": 2.0})
    decision = gate(new, old, qrels, data=Data(queries=traffic))
    assert decision.segments[["segment", "n_qids", "n_tests"]].to_numpy().tolist() == [["head", 30, 2], ["tail", 28, 2]]
    assert decision.segments["weight"].sum() == pytest.approx(58 / 60)
    counts = decision.excluded.set_index("reason")["n"].to_dict()
    assert counts == {
        "queries without a segment": 1,
        "segments with fewer than two queries, or draws, without limits": 1,
    }
    rows = qrels["qid"].isin(qids[1:31])
    alone = gate(new[rows], old[rows], qrels[rows], inference=Inference(level=0.975, n_resamples=200_000))
    expected = alone.pairs.loc[0, ["diff", "low", "high"]].tolist()
    assert decision.segments.loc[0, ["diff", "low", "high"]].tolist() == pytest.approx(expected, abs=0.005)


def differences(new, old, qrels, measure="nDCG@4"):
    values = score({"new": new, "old": old}, qrels, [measure], inference=Inference(n_resamples=2)).values
    table = values.pivot(index="qid", columns="name", values="value").loc[qrels["qid"].unique()]
    return (table["new"] - table["old"]).to_numpy()


@pytest.mark.slow
def test_weights_are_those_of_the_mean_and_zero_leaves_a_query_out():
    new, old, qrels = collection(n=40, loss=0.3)
    weight = np.arange(40.0)
    traffic = pd.DataFrame({"qid": [*qrels["qid"].unique(), "other"], "weight": [*weight, 5.0]})
    decision = gate(new, old, qrels, data=Data(queries=traffic))
    assert decision.pairs.loc[0, "n_qids"] == 39
    assert decision.pairs.loc[0, "diff"] == pytest.approx(np.average(differences(new, old, qrels), weights=weight))
    counts = decision.excluded.set_index("reason")["n"].to_dict()
    assert counts == {"queries of weight 0": 1, "queries without ratings": 1}


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.slow
def test_daily_limits_are_those_of_the_sequence_in_the_order_of_the_ratings(step):
    new, old, qrels = collection(n=50, loss=0.3)
    row = gate(new, old, qrels.iloc[::step], options=GateOptions(daily=True)).pairs.loc[0]
    expected = confidence_sequence(differences(new, old, qrels)[::step], level=0.9, bounds=(-1, 1)).iloc[-1]
    assert row["method"] == "one-sided, confidence sequence"
    assert row[["diff", "low"]].tolist() == pytest.approx(expected[["value", "low"]].tolist())
    half = confidence_sequence(differences(new, old, qrels)[::step], level=0.95, bounds=(-1, 1)).iloc[-1]
    assert row["high"] == pytest.approx(half["high"])


def test_looks_spend_the_level():
    new, old, qrels = collection(n=50)
    second = gate(new, old, qrels, options=GateOptions(look=2)).pairs.loc[0, ["low", "high"]].tolist()
    level = 1 - 6 * 0.05 / (np.pi * 2) ** 2
    assert second == pytest.approx(
        gate(new, old, qrels, inference=Inference(level=level)).pairs.loc[0, ["low", "high"]].tolist()
    )


def unjudged(n=40):
    new, old, qrels = collection(n=n)
    return new, old, qrels[~((qrels["docno"] == "d") & (qrels.index % 3 == 0))]


def undecided(new, old, qrels, measure="ENDCG@4", **options):
    """A gate with a margin that the lower limit nearly reaches, so that ratings can decide."""
    any_loss = GateOptions(max_share=1)
    low = gate(new, old, qrels, measure, options=any_loss, **{**options, "budget": 0}).pairs.loc[0, "low"]
    return gate(new, old, qrels, measure, options=any_loss, **options, margin=-0.99 * low)


def test_predicted_ratings_widen_the_limits_and_are_listed_to_judge():
    new, old, qrels = unjudged()
    result = undecided(new, old, qrels, budget=3)
    row = result.pairs.loc[0]
    assert row["unjudged"] > 0
    assert row["method"] == "one-sided, t, unseen losses and prediction"
    d = differences(new, old, qrels, "ENDCG@4")
    low = float(lower_limit(moments(d[:, None]), 0.05, 1.0, special.stdtrit)[0])
    assert row["diff"] == pytest.approx(d.mean())
    assert row["low"] < low - 1e-6
    assert result.decision == "UNKNOWN"
    assert len(result.judge) == 3
    assert set(result.judge["docno"]) == {"d"}


@pytest.mark.parametrize("measure", ["nDCG@4", "ENDCG@4"])
@pytest.mark.filterwarnings("ignore:.*unjudged:vbterrier.errors.DegenerateWarning")
# The judgments are those of these runs: the model of unjudged documents says so.
@pytest.mark.filterwarnings("ignore:the judgments seem to end:vbterrier.errors.DegenerateWarning")
def test_shares_of_unjudged_documents_are_those_of_each_system(measure):
    new, old, qrels = collection(n=40)
    # Half of the documents of the new run have no judgment.
    new = pd.concat([new, new.assign(docno=new["docno"] + "2", score=new["score"] + 0.1)])
    decision = gate(new, old, qrels, measure)
    row = decision.pairs.loc[0]
    shares = {
        name: score(run, qrels, "Unjudged@4", inference=Inference(n_resamples=2)).means().iloc[0, 0]
        for name, run in {"new": new, "old": old}.items()
    }
    assert row["unjudged_baseline"] == shares["old"] == 0.0
    assert row["unjudged"] == pytest.approx(shares["new"])
    assert 0.3 < row["unjudged"] < 0.7
    assert f"{100 * row['unjudged']:.1f}% / 0.0%" in gate_report(decision, "table")


@pytest.mark.parametrize("measure", ["ENDCG@2", "BNDCG(prior='pool')@2"])
@pytest.mark.slow
def test_documents_of_queries_with_much_traffic_are_judged_first(measure):
    new, old, every = collection(n=40, loss=0.5)
    qrels = every.sample(frac=0.5, random_state=1)
    plain = undecided(new, old, qrels, measure, budget=40).judge
    rest = plain["qid"].drop_duplicates().tolist()
    assert len(rest) > 6
    heavy, none = rest[-2:], rest[0]
    weights = {qid: 10.0 if qid in heavy else 0.0 if qid == none else 1.0 for qid in qrels["qid"].unique()}
    traffic = pd.DataFrame({"qid": list(weights), "weight": list(weights.values())})
    result = undecided(new, old, qrels, measure, budget=40, data=Data(queries=traffic)).judge
    assert set(result["qid"].head(2)) == set(heavy)
    assert none not in set(result["qid"])
    # Equal weights are no weights, and their unit does not matter.
    same = undecided(new, old, qrels, measure, budget=40, data=Data(queries=traffic.assign(weight=7.0))).judge
    pd.testing.assert_frame_equal(same, plain)


@pytest.mark.slow
def test_daily_limits_are_withheld_while_documents_are_unjudged():
    decision = gate(*unjudged(n=120), "ENDCG@4", margin=0.5, options=GateOptions(daily=True))
    assert decision.pairs.loc[0, ["low", "high", "decision"]].tolist() == [-1.0, 1.0, "UNKNOWN"]
    assert len(decision.judge)


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
    paths = tmp_path / "new.json", tmp_path / "ratings.csv"
    expected = undecided(new, old, qrels, budget=5)
    decision = release_gate(
        *paths,
        "ENDCG@4",
        baseline=tmp_path / "old.json",
        margin=expected.pairs.loc[0, "margin"],
        budget=5,
        options=GateOptions(max_share=1),
        data=Data(scale=(0, 3)),
    )
    assert decision.pairs.loc[0, ["diff", "low"]].tolist() == pytest.approx(
        expected.pairs.loc[0, ["diff", "low"]].tolist()
    )
    decision.write_judging(tmp_path / "next.csv")
    lines = (tmp_path / "next.csv").read_text().splitlines()
    assert lines[0] == "Query Text,Doc ID,Rating"
    assert lines[1:] == [f"{qid},{docno}," for qid, docno in expected.judge[["qid", "docno"]].to_numpy()]
    assert set(decision.judge["index"]) <= {"new", "old"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (lambda: {"margin": -0.1}, ParameterError, "margin=-0.1: wanted a number of at least 0"),
        (
            lambda: {"margin": 2},
            ParameterError,
            "margin=2: means of nDCG@4 differ by at most 1; wanted less; did you mean 0.02, 2 per cent of 1?",
        ),
        (lambda: {"margin": 1}, ParameterError, "margin=1: means of nDCG@4 differ by at most 1; wanted less"),
        (
            lambda: {"margin": 1.3, "measure": "VB@4"},
            ParameterError,
            "means of VB@4 differ by at most 1.20711; wanted less",
        ),
        (
            lambda: {"inference": Inference(level=0.5)},
            ParameterError,
            "level=0.5: wanted a number above 0.5 and below 1",
        ),
        (lambda: {"inference": Inference(level=95)}, ParameterError, "did you mean 0.95, 95 per cent?"),
        (lambda: {"options": GateOptions(guarantee="normal")}, ParameterError, "wanted one of 'mean+losses', 'any'"),
        (lambda: {"options": GateOptions(max_share=0)}, ParameterError, "max_share=0: wanted a number above 0"),
        (
            lambda: {"options": GateOptions(large_loss=1.5)},
            ParameterError,
            "large_loss=1.5: means of nDCG@4 differ by at most 1",
        ),
        (lambda: {"options": GateOptions(large_loss=0)}, ParameterError, "large_loss=0: wanted a number above 0"),
        (
            lambda: {"options": GateOptions(worst_loss=0.02)},
            ParameterError,
            "worst_loss=0.02: wanted more than margin=",
        ),
        (
            lambda: {"options": GateOptions(worst_loss=0.06, guardrails={"RR@10": 0.06})},
            ParameterError,
            "more than guardrails['RR@10']=0.06",
        ),
        (
            lambda: {"options": GateOptions(guardrails={"RR@10": 2})},
            ParameterError,
            "guardrails['RR@10']=2: means of RR@10 differ by at most 1",
        ),
        (
            lambda: {"options": GateOptions(guardrails={"RR@10": -1})},
            ParameterError,
            "guardrails['RR@10']=-1: wanted a number of at least 0",
        ),
        (lambda: {"measure": "INSQ(max_rel=3)"}, ParameterError, "its range of scores is unknown"),
        (lambda: {"options": GateOptions(look=1, daily=True)}, ParameterError, "give one of them"),
        (lambda: {"options": GateOptions(look=0)}, ParameterError, "look=0"),
        (lambda: {"budget": -1}, ParameterError, "budget=-1"),
        (lambda: {"measure": "BaitRate@4"}, ParameterError, "higher values are better"),
        (lambda: {"measure": "NumRet"}, ParameterError, "not a mean over topics"),
        (lambda: {"measure": "ENDCG(stat='std')@4"}, ParameterError, "higher values are better"),
        (lambda: {"measure": "BNDCG(stat='lo')@4"}, ParameterError, "leave out stat='lo'"),
        (
            lambda: {"data": Data(queries=pd.DataFrame({"qid": ["query 0"], "weight": 1.0}))},
            InputError,
            "no row for 19 of 20 rated queries",
        ),
        (
            lambda: {"data": Data(queries=pd.DataFrame({"text": ["query 0"]}))},
            InputError,
            "wanted columns qid; missing qid",
        ),
        (
            lambda: {"data": Data(queries=pd.DataFrame({"qid": ["query 0"] * 2, "weight": 1.0}))},
            InputError,
            "query 'query 0' is duplicated",
        ),
        (
            lambda: {"data": Data(queries=pd.DataFrame({"qid": [f"query {i}" for i in range(20)], "weight": np.nan}))},
            InputError,
            "row 0 holds nan (query 'query 0'), wanted a number",
        ),
    ],
)
def test_bad_options_and_tables_are_named(options, error, message):
    with pytest.raises(error) as caught:
        gate(*collection(n=20), **options())
    assert message in str(caught.value)


def test_queries_without_ratings_or_documents_are_counted():
    new, old, qrels = collection(n=20)
    some = qrels[~qrels["qid"].isin(["query 1", "query 2"])]
    decision = gate(new[new["qid"] != "query 3"], old, some)
    counts = decision.excluded.set_index("reason")["n"].to_dict()
    assert counts == {
        "queries of new without ratings": 2,
        "queries of old without ratings": 2,
        "queries for which new has no document, scored as empty rankings": 1,
    }
    assert decision.pairs.loc[0, "n_qids"] == 18


def reason(result):
    return result.pairs.loc[0, ["decision", "reason"]].tolist()


def test_too_few_queries_are_counted_and_with_them_the_gate_decides():
    new, old, qrels = collection(n=30)
    decision = gate(new, old, qrels)
    assert reason(decision) == ["UNKNOWN", "more queries"]
    needed = int(decision.pairs.loc[0, "n_needed"])
    text = (
        f"more queries are needed: about {needed} such as these would give PASS or FAIL with probability 0.8 (now 30)"
    )
    assert text in decision.advice()[0]
    assert not len(decision.judge)
    # The same queries again have the observed spread.
    copies = [[frame.assign(qid=frame["qid"] + f" {copy}") for copy in range(3)] for frame in (new, old, qrels)]
    assert needed < 90
    assert gate(*map(pd.concat, copies)).decision == "PASS"


def test_releases_too_close_to_the_margin_are_said_to_be():
    diff = gate(*collection(n=200, seed=4)).pairs.loc[0, "diff"]
    assert diff < 0
    lost = gate(*collection(n=200, seed=4), margin=-diff + 1e-5)
    row = lost.pairs.loc[0]
    assert (row["decision"], row["reason"]) == ("UNKNOWN", "too close")
    assert np.isnan(row["n_needed"])
    assert "2,000 queries such as these would not decide" in lost.advice()[0]
    # The margin that it names passes.
    named = float(lost.advice()[0].split("a margin above ")[1].split(",")[0])
    assert gate(*collection(n=200, seed=4), margin=named + 1e-4).decision == "PASS"
    assert gate(*collection(n=200, seed=4), margin=named - 1e-3).decision == "UNKNOWN"


def test_ratings_are_asked_for_only_if_they_can_decide():
    decision = gate(*unjudged(n=120), "ENDCG@4", margin=0.025, budget=5)
    assert reason(decision) == ["UNKNOWN", "ratings"]
    assert len(decision.judge) == 5
    assert "40 unjudged documents" in decision.advice()[0]
    # With 20 queries no ratings show that few queries lose much.
    few = gate(*unjudged(n=20), "ENDCG@4", margin=0.05, budget=5)
    assert reason(few) == ["UNKNOWN", "more queries"]
    assert not len(few.judge)
    assert "and give PASS or FAIL with probability 0%" in few.advice()[0]


@pytest.mark.slow
def test_ratings_decide_as_often_as_predicted():
    decided, stated = [], []
    for seed in range(12):
        new, old, every = collection(n=80, seed=seed)
        hidden = every.sample(frac=0.3, random_state=seed).index
        result = undecided(new, old, every.drop(hidden), budget=1)
        stated.append(int(result.advice()[0].split(" with probability ")[-1].split("%")[0]) / 100)
        rated = gate(new, old, every, margin=result.pairs.loc[0, "margin"], options=GateOptions(max_share=1))
        decided.append(rated.decision != "UNKNOWN")
    assert 0.1 < np.mean(stated) < 0.9
    assert np.mean(decided) == pytest.approx(np.mean(stated), abs=0.3)


def test_the_effect_of_ratings_on_ndcg_is_predicted_by_its_estimate():
    new, old, qrels = unjudged(n=120)
    with pytest.warns(DegenerateWarning, match="treats unjudged documents as non-relevant"):
        result = undecided(new, old, qrels, "nDCG@4")
    assert "unjudged documents would change the difference by up to" in result.advice()[0]
    with pytest.warns(DegenerateWarning, match="treats unjudged"):
        result = gate(new, old, qrels, "Success@4", margin=0.001)
    assert "unknown effect on Success@4" in result.advice()[0]
    assert not len(result.judge)


def test_several_undecided_baselines_have_a_reason_each():
    new, old, qrels = collection(n=30)
    decision = release_gate(
        {"new": new}, qrels, "nDCG@4", baseline={"old": old, "older": old.assign(score=-old["score"])}, margin=0.05
    )
    assert decision.advice()[0].startswith("old: more queries are needed")
    assert decision.pairs["reason"].tolist() == [
        "more queries" if each == "UNKNOWN" else "" for each in decision.pairs["decision"]
    ]


@pytest.mark.slow
def test_the_guarantee_is_stated_in_one_line():
    new, old, qrels = collection(n=60)
    criteria = (
        "the mean loss over the population of queries is below 0.05, even if some queries outside the sample lose 1; "
        "and at most 5% of queries lose more than 0.5."
    )
    sure = "95% confidence"
    lines = {
        "PASS": f"With {sure}: {criteria}",
        "FAIL": f"With {sure}, this does not hold: {criteria}",
        "UNKNOWN": f"Neither shown nor refuted with {sure}: {criteria}",
    }
    passing, failing, open_ = (
        gate(new, old, qrels),
        gate(old.assign(score=-old["score"]), old, qrels),
        gate(*collection(n=30)),
    )
    assert [each.decision for each in (passing, failing, open_)] == [*lines]
    assert [each.guarantee() for each in (passing, failing, open_)] == [*lines.values()]
    assert gate(new, old, qrels, options=GateOptions(guarantee="any", look=2)).guarantee() == (
        "Neither shown nor refuted with 95% confidence, for all looks together: the mean loss over the population of "
        "queries is below 0.05, for any differences."
    )
    assert "for any number of looks" in gate(new, old, qrels, options=GateOptions(daily=True)).guarantee()


def test_large_losses_fail_a_release_with_a_higher_mean():
    n = 200
    ids = {"qid": np.repeat([f"q{i}" for i in range(n)], 2), "docno": [*"ab"] * n}
    qrels = pd.DataFrame(ids).assign(label=[1, 0] * n)
    old = pd.DataFrame(ids).assign(score=[0.0, 1.0] * n)
    # Half of the queries gain, a quarter loses: the old run is right for the last quarter.
    old.loc[old.index >= 3 * n // 2, "score"] = [1.0, 0.0] * (n // 4)
    new = old.assign(score=np.r_[[1.0, 0.0] * (n // 2), [0.0, 1.0] * (n // 2)])
    decision = gate(new, old, qrels, "P@1")
    row = decision.pairs.loc[0]
    assert (row["diff"], row["losses"]) == (0.25, 0.25)
    assert decision.decision == "FAIL"
    assert row["losses_low"] == pytest.approx(stats.binomtest(50, 200).proportion_ci(0.95, "exact").low)
    assert gate(new, old, qrels, "P@1", options=GateOptions(max_share=1)).decision == "PASS"
    assert gate(new, old, qrels, "P@1", options=GateOptions(guarantee="any")).decision == "PASS"


@pytest.mark.filterwarnings("ignore:.* documents of .* are unjudged")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the judgments seem to end:vbterrier.errors.DegenerateWarning")
def test_the_reach_of_prediction_errors_is_the_stated_quantile_of_drawn_differences():
    new, old, qrels = collection(n=60)
    new = pd.concat([new, new.assign(docno=new["docno"] + "2", score=new["score"] + 0.1)])
    runs = {"new": new, "old": old}
    for level in (0.9, 0.975):
        row = gate(
            new, old, qrels, "ENDCG@4", options=GateOptions(max_share=1), inference=Inference(level=level)
        ).pairs.loc[0]
        d = differences(new, old, qrels, "ENDCG@4")
        of_sample = d.mean() - float(lower_limit(moments(d[:, None]), 1 - level, 1.0, special.stdtrit)[0])
        reach = np.sqrt((row["diff"] - row["low"]) ** 2 - of_sample**2)
        # The interval of the difference by other code, from other draws.
        how = Inference(level=2 * level - 1, n_draws=4000, seed=7)
        pair = vbterrier.rank_systems(runs, qrels, "ENDCG@4", uncertainty="unjudged", inference=how).pairs.loc[0]
        assert reach == pytest.approx((pair["high"] - pair["low"]) / 2, rel=0.08)


def test_the_page_of_a_gate_begins_with_its_decision_and_reason():
    decision = gate(*collection(n=30))
    first, reason, last = decision._verdict()
    row = decision.pairs.loc[0]
    assert first == (
        "UNKNOWN: 30 queries do not show whether new is at most 0.05 worse than old by nDCG@4: mean difference "
        f"{row['diff']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})."
    )
    assert reason.casefold() == f"{decision.advice()[0]}.".casefold()
    assert last == decision.guarantee()


def test_the_verdict_has_the_mean_that_its_limits_are_of():
    new, old, qrels = collection(n=60)
    # Some queries lose all.
    new = new[~new["qid"].isin(new["qid"].unique()[:6]) | (new["docno"] == "b")]
    options = GateOptions(worst_loss=0.2, max_share=1)
    decision = gate(new, old, qrels, "nDCG@4", margin=0.1, options=options)
    row, d = decision.pairs.loc[0], differences(new, old, qrels, "nDCG@4")
    assert row["diff"] == pytest.approx(d.mean())
    assert row["counted"] == pytest.approx(np.maximum(d, -0.2).mean())
    assert row["low"] < row["counted"] < row["high"]
    verdict = f"mean difference {row['diff']:+.4f}, or {row['counted']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f}) "
    assert f"{verdict}where no query counts for more than 0.2" in decision.answer().verdict
    assert f"{row['counted']:.4f}" in gate_report(decision, "table")
    whole = gate(new, old, qrels, "nDCG@4", margin=0.1, options=GateOptions(max_share=1)).pairs.loc[0]
    assert whole["counted"] == whole["diff"]
