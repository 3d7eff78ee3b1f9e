"""Leaderboards on planted collections: letters, groups left out, automatic judges, batches, several collections."""

import math
import re
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from night import slow
from scipy import stats

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import JudgingBudget, leaderboard, ranking
from vbterrier.evaluate.collection_scores import systems_by_ranking
from vbterrier.frames.ranking import Run
from vbterrier.kernels.resample import stream
from vbterrier.settings import Data, Inference
from vbterrier.stats.agreement import rank_biased_overlap, rank_correlations
from vbterrier.unjudged.incomplete import leave_group_out

FEW = Inference(n_draws=200)


def planted(n_topics=12, n_documents=60, skills=(3.0, 2.9, 1.5, 1.4, 0.3, 0.2), seed=1, name="t"):
    """Runs of systems with given skills, two of each group, and all relevance judgments."""
    rng = stream(seed, "planted track")
    qids = [f"{name}{i:02}" for i in range(n_topics)]
    docnos = [f"d{i:02}" for i in range(n_documents)]
    relevant = rng.random((n_topics, n_documents)) < 0.25
    pool = pd.DataFrame({"qid": np.repeat(qids, n_documents), "docno": np.tile(docnos, n_topics)}).astype(str)
    runs = {}
    for i, skill in enumerate(skills):
        scored = pool.assign(score=(skill * relevant + rng.normal(0, 1, relevant.shape)).ravel())
        runs[f"s{i}"] = scored.sort_values("score", ascending=False).groupby("qid").head(15).reset_index(drop=True)
    return runs, pool.assign(label=relevant.ravel().astype(int))


def pooled(runs, qrels):
    first = pd.concat([run.sort_values("score", ascending=False).groupby("qid").head(10) for run in runs.values()])
    return qrels.merge(first[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"])


@pytest.fixture(scope="module")
def track():
    runs, complete = planted()
    return runs, pooled(runs, complete), {f"s{i}": f"g{i // 2}" for i in range(6)}


@pytest.fixture(scope="module")
def collections():
    """Runs and qrels of two collections, whose topics have the same ids."""
    one, two = planted(8), planted(9, seed=2)
    return {"b": one[0], "a": two[0]}, {"b": pooled(*one), "a": pooled(*two)}


def test_runs_with_the_same_rankings_are_one_system(track):
    runs, qrels, _ = track
    same = runs["s2"].sample(frac=1, random_state=0).assign(score=lambda run: run["score"] * 2)
    board = leaderboard({**runs, "twin": same, "copy": runs["s2"]}, qrels, "nDCG@10", inference=FEW)
    assert sorted(board.systems["name"]) == ["s0", "s1", "s2 = twin = copy", "s3", "s4", "s5"]
    alone = leaderboard(runs, qrels, "nDCG@10", inference=FEW)
    assert board.systems["mean"].tolist() == alone.systems["mean"].tolist()
    # Two systems that differ in one document keep their names.
    other = same.assign(docno=same["docno"].where(same.index != same["score"].idxmin(), "new"))
    differ = leaderboard({**runs, "other": other}, qrels, "nDCG@10", inference=FEW)
    assert "other" in set(differ.systems["name"])


def test_equal_rankings_are_one_system_in_any_order_of_rows_and_no_other_ranking_is():
    def ranking(*lists):
        rows = [(qid, docno, -float(at)) for qid, docnos in lists for at, docno in enumerate(docnos)]
        return Run(pd.DataFrame(rows, columns=["qid", "docno", "score"]))

    first = ranking(("t1", ["ab", "c"]), ("t2", ["d"]))
    frame = first.frame.assign(score=np.exp(first.frame["score"]))
    same = {"first": first, "shuffled": Run(frame.iloc[[2, 1, 0]].reset_index(drop=True))}
    others = {
        "other ids": ranking(("t1", ["a", "bc"]), ("t2", ["d"])),
        "other order": ranking(("t1", ["c", "ab"]), ("t2", ["d"])),
        "other sizes": ranking(("t1", ["ab"]), ("t2", ["c", "d"])),
        "other topics": ranking(("t1", ["ab", "c"]), ("t3", ["d"])),
    }
    expected = {"first = shuffled": ["first", "shuffled"], **{name: [name] for name in others}}
    assert systems_by_ranking({"": {**same, **others}}) == expected
    # A second collection tells apart what the first does not.
    second = {"first": others["other ids"], "shuffled": first, **others}
    assert len(systems_by_ranking({"a": {**same, **others}, "b": second})) == len(same) + len(others)


def test_identical_runs_are_one_system_of_each_of_their_groups(track):
    runs, qrels, groups = track
    alone = leaderboard(runs, qrels, "nDCG@10", groups=groups, inference=FEW).reusability
    for group in (groups["s2"], "elsewhere"):
        twins, members = {**runs, "twin": runs["s2"]}, {**groups, "twin": group}
        found = leaderboard(twins, qrels, "nDCG@10", groups=members, inference=FEW)
        assert sorted(found.systems["name"]) == ["s0", "s1", "s2 = twin", "s3", "s4", "s5"]
        rows = found.reusability
        assert rows["name"].tolist().count("s2 = twin") == len({groups["s2"], group})
        kept = rows[rows["group"] != "elsewhere"].replace({"name": {"s2 = twin": "s2"}}).reset_index(drop=True)
        # Documents of two groups stay when one of them is left out.
        pd.testing.assert_series_equal(kept["name"], alone["name"])
        own, before = (frame[frame["group"] == groups["s2"]]["n_removed"].iloc[0] for frame in (kept, alone))
        assert own == before if group == groups["s2"] else own < before
    with pytest.raises(ParameterError, match="1 run has no group"):
        leaderboard({**runs, "twin": runs["s2"]}, qrels, "nDCG@10", groups=groups, inference=FEW)


def test_scores_of_a_judge_are_those_of_the_runs_of_a_system(track):
    runs, qrels, _ = track
    scores = {name: float(place) for place, name in enumerate(runs)} | {"twin": 4.0}
    merged = {**runs, "twin": runs["s2"]}
    found = leaderboard(merged, qrels, "nDCG@10", automatic={"llm": scores}, inference=FEW)
    assert "s2 = twin" in set(found.systems["name"])
    # The mean of 2 and 4.
    mean = {**scores, "s2": 3.0}
    alone = leaderboard(runs, qrels, "nDCG@10", automatic={"llm": mean}, inference=FEW)
    pd.testing.assert_frame_equal(found.judges, alone.judges)


def test_planted_groups_of_systems_are_found(track):
    runs, qrels, _ = track
    board = leaderboard(runs, qrels, "nDCG@10")
    letters = board.systems.set_index("name")["letters"]
    assert [letters[f"s{i}"] for i in range(6)] == [*"aabbcc"]
    assert board.n_inseparable == 3
    assert "12 of 15 pairs differ; 3 of 5 neighbouring pairs cannot be told apart" in repr(board)
    means = vbterrier.score(runs, qrels, ["nDCG@10"]).means()["nDCG@10"].sort_values(ascending=False)
    assert board.systems["name"].tolist() == means.index.tolist()
    assert board.systems["mean"].to_numpy() == pytest.approx(means.to_numpy())
    assert board.systems["rank"].tolist() == [1, 2, 3, 4, 5, 6]


def test_the_page_of_a_track_begins_with_the_systems_that_are_first(track):
    runs, qrels, _ = track
    board = leaderboard(runs, qrels, "nDCG@10", inference=FEW)
    first, second = board.systems["name"][:2]
    lines = list(board._verdict())
    leader = board.systems.iloc[0]
    assert (first, leader["mean"]) == ("s1", board.systems["mean"].max())
    assert (leader["rank_low"], leader["rank_high"]) == (1, 2)
    mean = f"{leader['mean']:.3f} ({leader['low']:.3f} to {leader['high']:.3f})"
    lead = f"{first} leads with a mean nDCG@10 of {mean} over 12 topics"
    tied = "from which 1 system does not differ significantly: "
    pairs = (
        "12 of 15 pairs of systems differ significantly: those that share no letter; 90% confidence for all together."
    )
    assert lines == [f"{lead}, {tied}{second}.", pairs]


def orders(table):
    """The pairs of systems that a table says to differ, the better one first."""
    rows = table.sort_values("mean", ascending=False)[["name", "letters"]].to_numpy().tolist()
    return {(a, b) for (a, one), (b, other) in combinations(rows, 2) if not set(one) & set(other)}


@pytest.mark.parametrize(("n_topics", "spread"), [(25, 0.08), (50, 0.0), slow(50, 0.02)])
@pytest.mark.slow
def test_the_table_of_a_track_claims_a_wrong_order_in_at_most_the_nominal_share_of_samples(n_topics, spread):
    n_samples, wrong, claimed = 40, 0, 0
    for seed in range(n_samples):
        rng = stream(seed, "planted systems")
        skill = rng.normal(0.5, spread, 10)
        scores = skill[:, None] + rng.normal(0, 0.15, n_topics) + rng.normal(0, 0.15, (10, n_topics))
        names, qids = [f"s{i}" for i in range(10)], [f"q{i}" for i in range(n_topics)]
        values = pd.DataFrame({"name": np.repeat(names, n_topics), "qid": qids * 10, "value": scores.ravel()})
        systems = leaderboard(values.assign(measure="nDCG@10"), uncertainty="topics", inference=FEW).systems
        pairs = orders(systems)
        # Of equal systems, each order is wrong.
        wrong += any(skill[int(a[1:])] <= skill[int(b[1:])] + 1e-9 for a, b in pairs)
        claimed += len(pairs)
    assert stats.binom.sf(wrong - 1, n_samples, 0.1) > 1e-3
    assert (claimed > 10 * n_samples) == (spread == 0.08)


def test_ties_share_ranks_from_1():
    scores = {"a": [0.5, 0.7], "b": [0.7, 0.5], "c": [0.2, 0.4], "d": [0.4, 0.2], "e": [0.1, 0.1]}
    rows = [(name, f"q{i}", "AP", value) for name, row in scores.items() for i, value in enumerate(row)]
    board = leaderboard(
        pd.DataFrame(rows, columns=["name", "qid", "measure", "value"]),
        uncertainty="topics",
        inference=FEW,
    )
    assert board.systems.set_index("name")["rank"].to_dict() == {"a": 1, "b": 1, "c": 3, "d": 3, "e": 5}
    assert board.systems["rank"].dtype == np.int64
    assert board.collections["rank"].tolist() == board.systems["rank"].tolist()
    assert board.systems["rank"].between(board.systems["rank_low"], board.systems["rank_high"]).all()


def test_draws_and_their_sources_are_those_of_rank_systems(track):
    runs, qrels, _ = track
    some = qrels.sample(frac=0.6, random_state=1)
    board = leaderboard(runs, some, inference=replace(FEW, seed=3))
    ranking = vbterrier.rank_systems(runs, some, uncertainty="both", inference=replace(FEW, seed=3))
    ranked = ranking.systems.set_index("name")
    systems = board.systems.set_index("name")
    for column in ("mean", "low", "high", "n_unjudged_share"):
        assert systems[column].to_numpy() == pytest.approx(ranked.loc[systems.index, column].to_numpy())
    widths = (board.ranks["rank_high"] - board.ranks["rank_low"]).groupby(board.ranks["uncertainty"]).sum()
    assert set(widths.index) == {"unjudged", "topics", "both"}
    assert widths["both"] >= max(widths["topics"], widths["unjudged"])
    main = board.ranks[board.ranks["uncertainty"] == "both"].set_index("name").loc[systems.index]
    assert (main[["rank_low", "rank_high", "letters"]] == systems[["rank_low", "rank_high", "letters"]]).all(axis=None)
    pairs = ranking.pairs.set_index(["name_a", "name_b"])["p_a_beats_b"]
    for a, b in pairwise(systems.index):
        assert systems["p_beats_next"][a] == pytest.approx(pairs[a, b] if (a, b) in pairs else 1 - pairs[b, a])
    assert math.isnan(systems["p_beats_next"].iloc[-1])


def test_groups_are_left_out_and_all_systems_are_ranked_again(track):
    runs, qrels, groups = track
    result = leaderboard(runs, qrels, "nDCG@10", groups=groups, inference=FEW).reusability
    assert result["name"].tolist() == sorted(runs)
    for reduced in leave_group_out(runs, qrels, groups=groups):
        means = vbterrier.score(runs, reduced.qrels, ["nDCG@10"], data=Data(on_topics="all")).means()["nDCG@10"]
        rank = means.rank(ascending=False)
        rows = result[result["group"] == reduced.name].set_index("name")
        assert rows["rank_without"].to_dict() == rank[list(reduced.runs)].to_dict()
        assert (rows["n_removed"] == len(qrels) - len(reduced.qrels)).all()
        assert (rows["n_runs"] == 2).all()
    # Both systems of each planted pair share a letter.
    place = result["letters"].map("abc".index)
    first, last = 2 * place + 1, 2 * place + 2
    assert result["recovered"].tolist() == result["rank_without"].between(first, last).tolist()
    assert result["covered"].tolist() == result["rank"].between(result["low"], result["high"]).tolist()


def test_a_system_whose_documents_only_its_group_judged_loses_its_rank():
    rng = np.random.default_rng(1)
    qids = [f"q{i}" for i in range(8)]

    def run(docnos):
        rows = [(qid, d, -i) for qid in qids for i, d in enumerate(docnos)]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])

    runs = {"new": run("123"), "old": run("abx"), "older": run("byx")}
    rows = [(qid, d, int(d in "123a" or (d == "b" and rng.random() < 0.5))) for qid in qids for d in "123abxy"]
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    board = leaderboard(runs, qrels, "nDCG@3", groups={n: n for n in runs}, inference=FEW)
    reusability = board.reusability.set_index("name")
    assert reusability.loc["new", ["rank", "rank_without", "n_removed", "recovered"]].tolist() == [1, 3, 24, False]
    assert reusability.loc["older", "recovered"]
    assert not reusability.loc["new", "covered"]


@pytest.mark.slow
def test_the_model_recovers_ranks_that_zeros_for_unjudged_documents_lose():
    runs, complete = planted(n_topics=25, n_documents=200, skills=(2.2, 2.0, 1.8, 1.6, 1.4, 1.2), seed=5)
    qrels, groups = pooled(runs, complete), {name: name for name in runs}
    naive, model = (
        leaderboard(runs, qrels, measure, groups=groups, inference=FEW).reusability
        for measure in ("nDCG@10", "ENDCG@10")
    )
    moved = [(each["rank_without"] - each["rank"]).abs().sum() for each in (naive, model)]
    assert moved[1] < moved[0]
    assert model["covered"].all()


@pytest.mark.slow
def test_an_automatic_judge_is_compared_with_the_judgments(track):
    runs, qrels, _ = track
    rng = np.random.default_rng(4)
    noisy = qrels.assign(label=np.where(rng.random(len(qrels)) < 0.3, 1 - qrels["label"], qrels["label"]))
    judges = leaderboard(runs, qrels, "nDCG@10", automatic={"same": qrels, "noisy": noisy}, inference=FEW).judges
    table = judges.set_index(["judge", "statistic", "uncertainty"])
    same = table.loc["same"]
    # Two systems tie in some resamples, of which τ_AP is below 1.
    assert same["value"].to_numpy() == pytest.approx(1)
    assert same["low"].drop("tau_ap", level="statistic").to_numpy() == pytest.approx(1)
    means = [vbterrier.score(runs, each, ["nDCG@10"]).means()["nDCG@10"].to_numpy() for each in (qrels, noisy)]
    expected = rank_correlations(*means)
    row = table.xs("topics", level="uncertainty").loc["noisy"]
    assert row["value"].tolist() == pytest.approx([expected.tau, expected.tau_ap, float(rank_biased_overlap(*means))])
    assert ((row["low"] <= row["value"]) & (row["value"] <= row["high"]) & (row["high"] <= 1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["nDCG@10", slow("BNDCG(prior='pool')@10")])
def test_a_judge_of_some_topics_is_compared_on_these(track, measure):
    runs, qrels, _ = track
    rng = np.random.default_rng(4)
    noisy = qrels.assign(label=np.where(rng.random(len(qrels)) < 0.3, 1 - qrels["label"], qrels["label"]))
    few = ["t03", "t07", "t10", "t01"]
    judges = {"few": noisy[noisy["qid"].isin(few)], "all": noisy, "one": noisy[noisy["qid"] == "t05"]}
    with pytest.warns(DegenerateWarning) as told:
        table = leaderboard(runs, qrels, measure, automatic=judges, inference=FEW).judges.set_index("judge")
    lines = [str(each.message) for each in told if "no label" in str(each.message)]
    assert lines[0].startswith(
        "judge 'few': no label for 8 of 12 topics ('t00', 't02', 't04', ...): its leaderboard is"
    )
    assert len(lines) == 2
    assert table["n_qids"].groupby(level=0).unique().map(list).to_dict() == {"few": [4], "all": [12], "one": [1]}
    assert set(table.loc["one", "uncertainty"]) == {"unjudged"}
    only = {name: run[run["qid"].isin(few)] for name, run in runs.items()}
    part = leaderboard(
        only, qrels[qrels["qid"].isin(few)], measure, automatic={"few": judges["few"]}, inference=FEW
    ).judges
    pd.testing.assert_frame_equal(table.loc[["few"]].reset_index(), part)


@pytest.mark.slow
def test_intervals_of_correlations_are_quantiles_of_draws_around_the_value(track):
    runs, qrels, _ = track
    values = vbterrier.score(runs, qrels, ["nDCG@10"]).values.pivot(index="name", columns="qid", values="value")
    judged = pd.Series([0.9, 0.5, 0.8, 0.4, 0.1, 0.2], values.index)
    row = leaderboard(
        runs, qrels, "nDCG@10", automatic={"llm": judged.to_dict()}, inference=replace(FEW, seed=5)
    ).judges.iloc[0]
    counts = np.array(list(ranking.resampled_counts(12, 200, 5)))
    taus = [rank_correlations(draw, judged.to_numpy()).tau for draw in (values.to_numpy() @ counts).T]
    low, high = np.quantile(taus, [0.05, 0.95], method="inverted_cdf") - np.mean(taus) + row["value"]
    assert row[["low", "high"]].tolist() == pytest.approx([low, min(high, 1)])


@pytest.mark.slow
def test_a_leaderboard_of_an_automatic_judge_is_a_table(track):
    runs, qrels, _ = track
    means = vbterrier.score(runs, qrels, ["nDCG@10"]).means()["nDCG@10"]
    frame = pd.DataFrame({"name": means.index, "value": means.to_numpy()})
    for judge in (means.to_dict(), frame):
        judges = leaderboard(runs, qrels, "nDCG@10", automatic={"llm": judge}, inference=FEW).judges
        assert judges["value"].tolist() == pytest.approx([1] * 6)
    with pytest.raises(InputError, match=r"'llm': 1 of 6 systems have no score \('s2'\)"):
        leaderboard(runs, qrels, "nDCG@10", automatic={"llm": means.drop("s2").to_dict()}, inference=FEW)


@pytest.mark.parametrize(
    ("measure", "call"), [("ENDCG@10", "qrels, 'ENDCG@10', budget=20)"), ("AP", "qrels, budget=20)")]
)
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_the_next_call_has_a_measure_that_plans_judgments(measure, call):
    pool = pd.DataFrame({"qid": np.repeat([*"abcdef"], 4), "docno": [*"wxyz"] * 6})
    rng = np.random.default_rng(0)
    runs = {name: pool.assign(score=rng.random(24)) for name in ("one", "two")}
    board = leaderboard(runs, pool.iloc[::2].assign(label=[1, 0] * 6), measure)
    assert f"vbterrier.judge_next(runs, {call}" in str(board)


def test_the_batch_is_that_of_judge_next(track):
    runs, qrels, _ = track
    some = qrels.sample(frac=0.5, random_state=2)
    result = leaderboard(runs, some, budget=JudgingBudget(8, quota=2), inference=FEW).batch
    plan = vbterrier.judge_next(runs, some, budget=JudgingBudget(8, quota=2))
    assert result["docno"].tolist() == plan.documents["docno"].tolist()
    assert result["qid"].value_counts().max() == 2


def test_several_collections_have_the_mean_of_their_means_and_topics_never_merge(collections):
    runs, qrels = collections
    board = leaderboard(runs, qrels, "nDCG@10", uncertainty="collections", inference=FEW)
    parts = {name: vbterrier.score(runs[name], qrels[name], ["nDCG@10"]).means()["nDCG@10"] for name in runs}
    means = (parts["a"] + parts["b"]) / 2
    assert board.systems.set_index("name")["mean"].to_dict() == pytest.approx(means.to_dict())
    assert (board.systems["n_qids"] == 17).all()
    assert board.collections.set_index(["dataset", "name"])["mean"].to_dict() == pytest.approx(
        {(name, system): part[system] for name, part in parts.items() for system in part.index}
    )
    # The order of collections or systems changes nothing.
    turned = {name: dict(reversed(runs[name].items())) for name in ("a", "b")}
    again = leaderboard(
        turned,
        {name: qrels[name] for name in ("a", "b")},
        "nDCG@10",
        uncertainty="collections",
        inference=FEW,
    )
    pd.testing.assert_frame_equal(board.systems, again.systems)
    pd.testing.assert_frame_equal(board.ranks, again.ranks)


def test_topics_of_several_collections_are_drawn_independently(track):
    runs, qrels, _ = track
    one = leaderboard(runs, qrels, "nDCG@10", inference=Inference(n_draws=1000)).systems
    two = leaderboard(
        {"a": runs, "b": runs}, {"a": qrels, "b": qrels}, "nDCG@10", inference=Inference(n_draws=1000)
    ).systems
    assert two["mean"].tolist() == pytest.approx(one["mean"].tolist())
    ratio = (two["high"] - two["low"]) / (one["high"] - one["low"])
    # Two independent samples have intervals narrower by the square root of 2.
    assert ratio.mean() == pytest.approx(0.71, abs=0.08)


def test_values_with_a_dataset_are_collections_and_agree_with_runs(collections):
    runs, qrels = collections
    values = pd.concat(
        vbterrier.score(runs[name], qrels[name], ["nDCG@10"]).values.assign(dataset=name) for name in runs
    )
    result, expected = (
        leaderboard(values, inference=FEW).systems,
        leaderboard(runs, qrels, "nDCG@10", inference=FEW).systems,
    )
    pd.testing.assert_frame_equal(result.drop(columns="n_unjudged_share"), expected.drop(columns="n_unjudged_share"))
    # A comparison pairs topics within the collections.
    compared = vbterrier.compare(runs, qrels, ["nDCG@10"], baseline="s0", inference=Inference(n_resamples=200))
    assert (compared.pairs["n_qids"] == 17).all()
    again = vbterrier.compare(values, baseline="s0", inference=Inference(n_resamples=200))
    pd.testing.assert_frame_equal(compared.pairs, again.pairs)
    means = values.groupby("name")["value"].mean()
    assert compared.systems.set_index("name")["value"].to_dict() == pytest.approx(means.to_dict())
    with pytest.raises(InputError, match="wanted runs by the same names"):
        vbterrier.compare(runs["a"], qrels, ["nDCG@10"])


@pytest.mark.slow
def test_groups_and_batches_of_several_collections(collections, track):
    (runs, judged), groups = collections, track[2]
    qrels = {name: each.sample(frac=0.6, random_state=1) for name, each in judged.items()}
    board = leaderboard(runs, qrels, groups=groups, budget=6, automatic={"llm": judged}, inference=FEW)
    removed = {
        reduced.name: len(qrels["a"]) - len(reduced.qrels)
        for reduced in leave_group_out(runs["a"], qrels["a"], groups=groups)
    }
    assert (board.reusability.groupby("group")["n_removed"].first() > pd.Series(removed)).all()
    assert len(board.batch) == 6
    assert set(board.batch["dataset"]) == {"a", "b"}
    means = [board.systems, leaderboard(runs, judged, inference=FEW).systems]
    expected = rank_correlations(*(each.set_index("name")["mean"].sort_index().to_numpy() for each in means))
    assert board.judges["value"].tolist()[:2] == pytest.approx([expected.tau, expected.tau_ap])


def test_costs_and_quotas_of_judgments(track):
    runs, qrels, _ = track
    some = qrels.sample(frac=0.5, random_state=2)
    costs = {qid: 1.0 if qid < "t06" else 5.0 for qid in some["qid"].unique()}
    plan = vbterrier.judge_next(runs, some, budget=JudgingBudget(10, costs=costs))
    spent = plan.documents["qid"].map(costs)
    assert spent.sum() <= 10
    quota = dict.fromkeys(costs, 1) | {"t00": 0}
    limited = vbterrier.judge_next(runs, some, budget=JudgingBudget(30, quota=quota)).documents["qid"].value_counts()
    assert limited.max() == 1
    assert set(limited.index) == set(costs) - {"t00"}
    for options, message in (
        ({"quota": {"t00": 1}}, r"quota: topic '.*' has none"),
        ({"costs": 3}, "wanted a mapping"),
        ({"costs": costs | {"t00": 0}}, r"costs\['t00'\]=0: wanted a number above 0"),
        ({"quota": quota | {"t00": -1}}, r"quota\['t00'\]=-1"),
    ):
        with pytest.raises(ParameterError, match=message):
            vbterrier.judge_next(runs, some, budget=JudgingBudget(10, **options))


def test_a_judge_that_labelled_documents_of_some_systems_only(track):
    runs, qrels, _ = track
    some = qrels.merge(pd.concat([runs["s0"], runs["s1"]])[["qid", "docno"]].drop_duplicates())
    run = runs["s5"].assign(docno="x" + runs["s5"]["docno"])
    others = qrels.merge(pooled({"s5": run}, qrels.assign(docno="x" + qrels["docno"])), how="outer")
    with pytest.raises(InputError, match=r"labelled no document of 1 of 6 systems \('s5'\)"):
        leaderboard(runs | {"s5": run}, others, automatic={"llm": some}, inference=FEW)


def test_topics_that_are_not_judged_are_left_out_with_one_warning(track):
    runs, qrels, _ = track
    extra = {name: pd.concat([run, run.head(1).assign(qid="u1")]) for name, run in runs.items()}
    with pytest.warns(DegenerateWarning) as told:
        board = leaderboard(extra, qrels, "nDCG@10", inference=FEW)
    assert [str(each.message) for each in told] == ["1 topic of the runs is not in the qrels and is left out ('u1')"]
    pd.testing.assert_frame_equal(board.systems, leaderboard(runs, qrels, "nDCG@10", inference=FEW).systems)


def test_the_page_is_html_with_its_own_script_and_escaped(track):
    runs, qrels, _ = track
    named = {f"<script>{name}" if name == "s0" else name: run for name, run in runs.items()}
    page = leaderboard(named, qrels, "nDCG@10", inference=FEW).page()
    assert page.startswith("<!DOCTYPE html>")
    assert "&lt;script&gt;s0" in page
    assert page.count("<script") == 1
    assert "<script>s0" not in page
    assert "default-src 'none'" in page
    # The style of the report, and nothing from elsewhere.
    assert "--paper: #ffffff" in page
    assert not re.search(r"https?:|url\(|@import|\bsrc=", page.partition("<script>")[0])
