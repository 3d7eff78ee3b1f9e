"""Simulations: estimates compared with true scores."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import vbterrier
from vbterrier import score
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import simulation
from vbterrier.evaluate.simulated_runs import RANGES, STANDARD
from vbterrier.evaluate.simulation import simulate
from vbterrier.settings import Execution, Inference
from vbterrier.stats.agreement import tau_ap
from vbterrier.unjudged.incomplete import leave_group_out, subsample_qrels

QIDS = tuple(f"q{i}" for i in range(6))
DOCUMENTS = [f"d{i:02}" for i in range(30)]


@pytest.fixture(scope="module")
def complete():
    rng = np.random.default_rng(1)
    parts = [pd.DataFrame({"qid": qid, "docno": DOCUMENTS, "label": rng.integers(0, 3, 30)}) for qid in QIDS]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(2)
    made = {}
    for i in range(4):
        lists = {qid: rng.permutation(DOCUMENTS)[:15] for qid in QIDS}
        parts = [pd.DataFrame({"qid": qid, "docno": docs, "score": -np.arange(15.0)}) for qid, docs in lists.items()]
        made[f"r{i}"] = pd.concat(parts)
    return made


def thinned(complete):
    shares = [(share, seed) for share in (0.3, 0.5) for seed in range(3)]
    return [(f"{share:.0%} #{seed}", subsample_qrels(complete, share, seed)) for share, seed in shares]


LOWER = {"lower": "nDCG@10"}


@pytest.fixture(scope="module")
def simulations(runs, complete):
    return simulate(runs, complete, incomplete=thinned(complete))


def values(runs, qrels, measure):
    shared = {name: run[run["qid"].isin(qrels["qid"])] for name, run in runs.items()}
    table = score(shared, qrels, [measure], inference=Inference(n_resamples=2)).values
    return table.set_index(["name", "qid"])["value"]


@pytest.mark.slow
def test_truth_and_estimates_are_those_of_score(simulations, runs, complete):
    truth = values(runs, complete, "nDCG@10")
    assert simulations.truth.set_index(["name", "qid"])["truth"].sort_index().equals(truth.sort_index())
    estimates = simulations.estimates.query("simulation in ('30% #1', '50% #2')")
    for (left, name), rows in estimates.groupby(["simulation", "estimator"]):
        group = rows.set_index(["name", "qid"])
        assert len(group) == len(truth)
        expected = values(runs, dict(thinned(complete))[left], STANDARD[name])
        assert group["estimate"].to_numpy() == pytest.approx(expected[group.index].to_numpy(), abs=1e-12)
        assert group["truth"].to_numpy() == pytest.approx(truth[group.index].to_numpy())
    assert estimates["n_unjudged"].max() > 5
    assert not estimates["n_unknown"].any()


def test_measures_with_levels_get_their_intervals(simulations, runs, complete):
    left = dict(thinned(complete))["30% #2"]
    group = simulations.intervals.query("simulation == '30% #2' and estimator == 'mean, pool' and level == 0.8")
    group = group.set_index(["name", "qid"])
    for end in ("low", "high"):
        expected = values(runs, left, f"BNDCG(prior='pool',stat='{end[:2]}',level=0.8)@10")
        assert group[end].to_numpy() == pytest.approx(expected[group.index].to_numpy())
    with_levels = {name for name, text in STANDARD.items() if text.startswith(("BNDCG", "ENDCG"))}
    assert set(simulations.intervals["estimator"]) == with_levels
    assert sorted(simulations.intervals["level"].unique()) == [0.5, 0.8, 0.9, 0.95]


def test_complete_judgments_leave_nothing_to_estimate(runs, complete):
    result = simulate(runs, complete, incomplete=[("all", complete)])
    assert result.errors()[["bias", "rmse"]].abs().to_numpy().max() < 1e-12
    coverage = result.coverage().set_index("topics")
    assert (coverage.loc["all", "covered"] == 1).all()
    assert (coverage.loc["unjudged", "n"] == 0).all()
    assert result.correlations()[["tau", "rho", "tau_ap"]].to_numpy() == pytest.approx(1)
    assert result.preferences()[["precision", "recall", "f1"]].to_numpy() == pytest.approx(1)
    assert (result.tests()["p_adjusted"] == 1).all()
    nothing = result.unjudged()
    for table in (nothing.errors(), nothing.coverage(), nothing.correlations(), nothing.preferences()):
        assert not len(table)
        assert "estimator" in table


def test_errors_of_estimators_are_grouped_by_simulation(simulations):
    table = simulations.errors(["simulation"]).set_index(["simulation", "estimator"])
    group = simulations.estimates.query("simulation == '50% #0' and estimator == 'condensed'")
    error = group["estimate"] - group["truth"]
    assert table.loc[("50% #0", "condensed"), "rmse"] == pytest.approx((error**2).mean() ** 0.5)
    assert table.loc[("50% #0", "condensed"), "bias"] == pytest.approx(error.mean())
    assert (table["n"] == len(QIDS) * 4).all()
    pd.testing.assert_frame_equal(simulations.errors("simulation"), simulations.errors(["simulation"]))
    everything = simulations.errors().set_index("estimator")
    assert (everything["n"] == len(QIDS) * 4 * 6).all()
    assert everything.loc["lower", "rmse_under"] > 0.1
    assert everything.loc["naive upper", "rmse_over"] > 0.1


def test_labels_of_simulations_are_columns_to_group_by(simulations):
    table = simulations.labelled(share=lambda name: name.split()[0]).errors(["share"])
    assert table["share"].unique().tolist() == ["30%", "50%"]
    parts = simulations.errors(["simulation"]).groupby("estimator")["bias"].mean()
    assert table.groupby("estimator")["bias"].mean().to_numpy() == pytest.approx(parts.to_numpy())
    for taken in ("qid", "covered", "rmse"):
        with pytest.raises(ParameterError, match=f"{taken!r} is already a column"):
            simulations.labelled(**{taken: str})


def test_coverage_counts_what_is_held(simulations):
    table = simulations.coverage().set_index(["estimator", "level", "topics"])
    group = simulations.intervals.query("estimator == 'mean, run' and level == 0.9")
    held = (group["low"] - 1e-9 <= group["truth"]) & (group["truth"] <= group["high"] + 1e-9)
    for topics, part in (("all", held), ("unjudged", held[group["n_unjudged"] > 0])):
        row = table.loc["mean, run", 0.9, topics]
        assert row["n"] == len(part)
        assert row["covered"] == pytest.approx(part.mean())
        assert row["covered_low"] < row["covered"] < row["covered_high"]
    assert table.loc["mean, run", 0.9, "all"]["width"] == pytest.approx((group["high"] - group["low"]).mean())
    wide = table["covered"].unstack("level").to_numpy()
    assert (np.diff(wide, axis=1) >= 0).all()
    assert 0 < wide.min() < wide.max()


def test_an_end_that_is_the_truth_holds_it(simulations):
    intervals = simulations.intervals.assign(low=simulations.intervals["truth"] + 1e-12, high=1.0)
    assert (replace(simulations, intervals=intervals).coverage()["covered"] == 1).all()
    assert (
        replace(simulations, intervals=intervals.assign(low=intervals["truth"] + 1e-6)).coverage()["covered"] == 0
    ).all()


def test_correlations_are_of_means_over_topics(simulations):
    table = simulations.correlations().set_index(["simulation", "estimator"])
    for key, group in simulations.estimates.groupby(["simulation", "estimator"]):
        means = group.groupby("name")[["truth", "estimate"]].mean()
        row = table.loc[key]
        assert row["tau"] == pytest.approx(stats.kendalltau(means["truth"], means["estimate"]).statistic)
        assert row["rho"] == pytest.approx(stats.spearmanr(means["truth"], means["estimate"]).statistic)
        assert row["tau_ap"] == pytest.approx(tau_ap(means["truth"].to_numpy(), means["estimate"].to_numpy()))
        assert (row["n_systems"], row["n_qids"]) == (4, len(QIDS))
    assert table["tau"].min() < 1


def test_systems_are_compared_on_the_topics_that_all_have(runs, complete):
    shorter = {**runs, "r3": runs["r3"].query("qid != 'q2'")}
    table = simulate(shorter, complete, incomplete=thinned(complete)[:2], estimators=LOWER).correlations()
    assert (table["n_qids"] == len(QIDS) - 1).all()
    apart = {"r0": runs["r0"].query("qid == 'q0'"), "r1": runs["r1"].query("qid == 'q1'")}
    with pytest.raises(InputError, match="no topic in common"):
        simulate(apart, complete, incomplete=thinned(complete)[:1], estimators=LOWER).correlations()


def test_preferences_are_those_of_a_loop(simulations):
    table = simulations.preferences().set_index(["estimator", "level"])
    points = simulations.estimates.assign(
        level=0.0, low=simulations.estimates["estimate"], high=simulations.estimates["estimate"]
    )
    for name, level in (("condensed", 0.0), ("mean, pool", 0.0), ("mean, pool", 0.5), ("mean, run", 0.95)):
        ranges = pd.concat([points, simulations.intervals]).query("estimator == @name and level == @level")
        counts = np.zeros(3)
        for _, group in ranges.groupby(["simulation", "qid"]):
            for a, b in combinations(group.itertuples(), 2):
                true = np.sign(a.truth - b.truth) * (abs(a.truth - b.truth) > 1e-9)
                stated = int(a.low > b.high + 1e-9) - int(b.low > a.high + 1e-9)
                counts += [true != 0, stated != 0, stated != 0 and stated == true]
        assert table.loc[(name, level), ["n_true", "n_stated", "n_right"]].tolist() == counts.tolist()
        assert 0 < counts[2] < counts[0]


def test_runs_that_are_not_evaluated_have_their_true_score(runs, complete):
    (group, left, names, _), *_ = leave_group_out(runs, complete, cutoff=10)
    result = simulate(runs, complete, incomplete=[(group, left, names)], estimators=LOWER)
    assert result.estimates["name"].unique().tolist() == ["r0"]
    truth = values(runs, complete, "nDCG@10").unstack("qid")
    estimate, others = values({"r0": runs["r0"]}, left, "nDCG@10").unstack("qid").loc["r0"], truth.drop("r0")
    n_right = (np.sign(truth.loc["r0"] - others) == np.sign(estimate - others)).to_numpy().sum()
    (row,) = result.preferences().itertuples()
    assert (row.n_true, row.n_stated, row.n_right) == (18, 18, n_right)
    assert n_right < 18


def test_runs_of_several_simulations_are_ordered_together(runs, complete):
    result = simulate(runs, complete, incomplete=leave_group_out(runs, complete, cutoff=10), estimators=LOWER)
    assert result.correlations()[["tau"]].isna().all(axis=None)
    (row,) = result.correlations(by=()).itertuples()
    assert row.n_systems == 4
    assert not np.isnan(row.tau)


def test_tests_are_of_the_mean_losses_of_topics(simulations):
    table = simulations.tests(baseline="lower")
    assert len(table) == len(STANDARD) - 1
    losses = simulations.estimates.assign(
        loss=(simulations.estimates["estimate"] - simulations.estimates["truth"]) ** 2
    )
    losses = losses.pivot_table(index="qid", columns="estimator", values="loss")
    for row in table.itertuples():
        expected = stats.ttest_rel(losses[row.estimator_a], losses["lower"])
        assert (row.t, row.p_value) == pytest.approx((expected.statistic, expected.pvalue))
        assert row.p_adjusted == pytest.approx(min(1, row.p_value * len(table)))
        assert row.diff == pytest.approx((losses[row.estimator_a] - losses["lower"]).mean())
        assert (row.estimator_b, row.n_units) == ("lower", len(QIDS))
    absolute = simulations.tests(loss="absolute", unit=("name", "qid"))
    assert len(absolute) == len(STANDARD) * (len(STANDARD) - 1) / 2
    assert (absolute["n_units"] == len(QIDS) * 4).all()
    errors = simulations.errors().set_index("estimator")["mae"]
    for row in absolute.itertuples():
        assert row.diff == pytest.approx(errors[row.estimator_a] - errors[row.estimator_b])


def test_topics_without_a_relevant_document_are_left_out_and_counted(runs, complete):
    worthless = complete.assign(label=complete["label"].where(complete["qid"] != "q0", 0))
    fewer = worthless[~worthless["qid"].isin(["q1"])]
    fewer = fewer.assign(label=fewer["label"].where(fewer["qid"] != "q2", 0))
    result = simulate({"r0": runs["r0"].query("qid != 'q3'")}, worthless, incomplete=[("fewer", fewer)])
    assert set(result.truth["qid"]) == {"q1", "q2", "q4", "q5"}
    assert set(result.estimates["qid"]) == {"q4", "q5"}
    assert result.topics.to_numpy().tolist() == [["fewer", "r0", 4, 2]]


def test_topics_meet_by_name_whatever_their_order(runs, complete):
    left = subsample_qrels(complete, 0.5, 1).query("qid != 'q0'").iloc[::-1]
    lacking = complete.drop(index=complete.index[complete["qid"] == "q3"][:10])
    with pytest.warns(DegenerateWarning, match="lack documents"):
        result = simulate(runs, lacking, incomplete=[("turned", left)], estimators=LOWER)
    table = result.estimates.set_index(["name", "qid"])
    assert set(result.estimates["qid"]) == set(QIDS[1:])
    for column, qrels, measure in (("truth", lacking, "nDCG@10"), ("estimate", left, "nDCG@10")):
        assert table[column].to_numpy() == pytest.approx(values(runs, qrels, measure)[table.index].to_numpy())
    for column, qrels in (("n_unknown", lacking), ("n_unjudged", left)):
        expected = 10 * values(runs, qrels, "Unjudged@10")[table.index]
        assert table[column].to_numpy() == pytest.approx(expected.to_numpy())


def test_a_simulation_may_leave_nothing_of_a_run(runs, complete):
    one = {"r0": runs["r0"].query("qid == 'q0'"), "r1": runs["r1"]}
    result = simulate(one, complete, incomplete=[("without q0", complete.query("qid != 'q0'"))])
    assert result.topics["n_evaluated"].tolist() == [0, len(QIDS) - 1]
    assert result.estimates["name"].unique().tolist() == ["r1"]
    with pytest.raises(InputError, match="nothing to evaluate"):
        simulate({"r0": one["r0"]}, complete, incomplete=[("without q0", complete.query("qid != 'q0'"))])
    with pytest.raises(InputError, match="nothing to evaluate"):
        simulate(one, complete, incomplete=[])


def test_documents_that_complete_judgments_lack_are_told(runs, complete):
    first = runs["r0"].query("qid == 'q1'")["docno"].iloc[0]
    lacking = complete[(complete["qid"] != "q1") | (complete["docno"] != first)]
    with pytest.warns(DegenerateWarning, match=r"lack documents that \d runs retrieved \(1 of 'r0'"):
        result = simulate(runs, lacking, incomplete=[("all", lacking)], estimators={"mean": "BNDCG@10"})
    assert set(result.truth.query("n_unknown > 0")["qid"]) == {"q1"}
    assert "q1" not in set(result.known().estimates.query("name == 'r0'")["qid"])
    assert result.errors()["rmse"].item() > 0
    assert result.known().errors()["rmse"].item() < 1e-12


@pytest.mark.parametrize(
    ("measures", "level"),
    [
        (("nDCG@10", "nDCG@10", "NDCGBound(side='upper',max_grade=3)@10"), 1.0),
        (("BNDCG(stat='mode')@10", "BNDCG(stat='lo',level=0.7)@10", "BNDCG(stat='hi',level=0.7)@10"), 0.7),
        (("BNDCG@10", "nDCG@10", "BNDCG(stat='q90')@10", 0.9), 0.9),
    ],
)
def test_intervals_of_any_two_measures(runs, complete, measures, level):
    left = subsample_qrels(complete, 0.5, 1)
    result = simulate(runs, complete, incomplete=[("thin", left)], estimators={"mine": measures})
    assert result.intervals["level"].unique().tolist() == [level]
    for end, measure in zip(("low", "high"), measures[1:3], strict=True):
        expected = values(runs, left, measure)
        group = result.intervals.set_index(["name", "qid"])
        assert group[end].to_numpy() == pytest.approx(expected[group.index].to_numpy(), abs=1e-9)


def test_ranges_of_the_papers_table_6(runs, complete):
    result = simulate(runs, complete, incomplete=thinned(complete), estimators=RANGES)
    table = result.preferences().query("level > 0").set_index("estimator")
    # Higher ends give longer ranges, which state fewer preferences.
    stated = table.loc[["to q75", "to q90", "to q95", "to naive upper"], "n_stated"].tolist()
    assert all(more >= less for more, less in pairwise(stated))
    assert stated[0] > stated[-1]
    assert set(table["level"]) == {0.75, 0.9, 0.95, 1.0}


def test_other_measures_can_be_the_truth(runs, complete):
    left = subsample_qrels(complete, 0.4, 1)
    message = r"1 estimators have another cutoff than the true score P@5, such as \'more\' .P@10."
    with pytest.warns(DegenerateWarning, match=message):
        result = simulate(
            runs, complete, incomplete=[("thin", left)], measure="P@5", estimators={"lower": "P@5", "more": "P@10"}
        )
    assert repr(result) == "Simulation(1 simulation, 4 runs, 6 topics: lower, more)"
    assert result.estimates["truth"].nunique() <= 6
    group = result.estimates.query("estimator == 'lower'").set_index(["name", "qid"])
    assert group["estimate"].to_numpy() == pytest.approx(values(runs, left, "P@5")[group.index].to_numpy())
    assert group["n_unjudged"].max() <= 5
    assert not len(result.intervals)
    assert list(result.coverage())[:3] == ["estimator", "level", "topics"]


def test_the_truth_of_err_has_all_digits(runs, complete):
    """The five digits of gdeval would miss an interval that ends at the true score."""
    result = simulate(runs, complete, incomplete=[("all", complete)], measure="ERR@10", estimators={"own": "BERR@10"})
    assert result.coverage().query("topics == 'all'")["covered"].eq(1).all()
    exact = result.estimates.set_index(["name", "qid"])["truth"]
    labels = {key: rows.set_index("docno")["label"] for key, rows in complete.groupby("qid")}
    for (name, qid), truth in exact.items():
        run = runs[name][runs[name]["qid"] == qid].sort_values("score", ascending=False)
        stops, went_on, expected = [(2 ** labels[qid][docno] - 1) / 16 for docno in run["docno"][:10]], 1.0, 0.0
        for rank, stop in enumerate(stops, start=1):
            expected += went_on * stop / rank
            went_on *= 1 - stop
        assert truth == pytest.approx(expected, abs=1e-12)


def test_judgments_are_prepared_once_and_taken_one_by_one(runs, complete, monkeypatch):
    made, taken, original = [], [], simulation.evaluation_target
    counted = lambda *arguments, **options: made.append(arguments) or original(*arguments, **options)  # noqa: E731
    monkeypatch.setattr(simulation, "evaluation_target", counted)

    def generated():
        for name, left in thinned(complete)[:2]:
            taken.append((name, len(made)))
            yield name, left

    simulate(runs, complete, incomplete=generated(), estimators=LOWER)
    assert len(made) == 3
    assert taken == [("30% #0", 1), ("30% #1", 2)]


def test_files_and_order_of_runs_change_nothing(runs, complete, tmp_path):
    left = subsample_qrels(complete, 0.5, 1)
    vbterrier.frames.write_qrels(complete, tmp_path / "qrels.txt")
    for name, frame in runs.items():
        vbterrier.frames.write_run(frame, tmp_path / f"{name}.run")
    paths = [tmp_path / f"{name}.run" for name in reversed(runs)]
    one, other = (
        simulate(*inputs, incomplete=[("thin", left)], estimators={"mean": "ENDCG@10"}).estimates.sort_values(
            ["name", "qid"]
        )
        for inputs in ((runs, complete), (paths, tmp_path / "qrels.txt"))
    )
    pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True), check_dtype=False)


def test_a_bar_shows_how_far_it_is(runs, complete, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for progress in (False, True):
        simulate(runs, complete, incomplete=thinned(complete), estimators=LOWER, execution=Execution(progress=progress))
        assert ("simulations" in capsys.readouterr().err) is progress


def test_illegal_options_of_tests_of_estimators_are_refused(simulations):
    for call, options, message in (
        (simulations.errors, {"by": ["estimater"]}, "no column 'estimater' to group by"),
        (simulations.tests, {"loss": "cubic"}, "loss='cubic'"),
        (simulations.tests, {"baseline": "nobody"}, "no such system"),
        (simulations.preference_tests, {"level": 0.6}, r"level=0\.6: no ranges of this level"),
    ):
        with pytest.raises(ParameterError, match=message):
            call(**options)


@pytest.fixture(scope="module")
def covid(shared_data):
    folder = shared_data / "trec-covid"
    with pytest.warns(DegenerateWarning, match="lack documents that 1 runs retrieved"):
        return simulate(
            {"ance": folder / "run.ance.top100.txt.gz"},
            folder / "qrels.complete.txt.gz",
            incomplete=[("original", folder / "qrels.incomplete.txt.gz")],
        )


def test_table_7_of_the_paper(covid):
    table = covid.estimates.assign(group=np.searchsorted([3, 5], covid.estimates["n_unjudged"], side="right"))
    some = table.groupby(["estimator", "group"])[["estimate", "truth"]].mean().round(4)
    everything = table.groupby("estimator")[["estimate", "truth"]].mean().round(4)
    expected = {"lower": (0.6524, 0.4894, 0.2068), "condensed": (0.7725, 0.6829, 0.5471)}
    expected["naive upper"] = (0.8527, 0.8383, 0.7690)
    for name, (over_all, *groups) in expected.items():
        assert everything.loc[name, "estimate"] == over_all
        assert some.loc[name, "estimate"].tolist()[1:] == groups
    assert everything["truth"].unique().tolist() == [0.7347]
    assert some.loc["lower", "truth"].tolist()[1:] == [0.6501, 0.3572]


def test_our_mean_is_closer_than_the_papers_mode_where_judgments_were_missing(covid):
    rmse = covid.errors().set_index("estimator")["rmse"]
    assert rmse["mean, pool+run"] < 0.85 * rmse["mode, pool+run"]
    assert rmse["mean, pool+run"] < 0.85 * rmse["condensed"]


@pytest.mark.parametrize(("score", "level", "baseline"), [("f1", 0.0, None), ("precision", 0.9, "mean, pool")])
@pytest.mark.slow
def test_preferences_of_estimators_are_tested_over_simulations(simulations, score, level, baseline):
    table = simulations.preference_tests(score, level=level, baseline=baseline)
    names = ["estimator_a", "estimator_b", "score", "level", "a", "b", "diff", "t", "p_value", "p_adjusted", "n_units"]
    assert table.columns.tolist() == names
    single = simulations.preferences("simulation").query("level == @level")
    single = single.pivot(index="simulation", columns="estimator", values=score)
    n = len(single.columns)
    assert len(table) == (n * (n - 1) / 2 if baseline is None else n - 1)
    for row in table.itertuples():
        # Units in which both are defined.
        a, b = single[[row.estimator_a, row.estimator_b]].dropna().to_numpy().T
        assert (row.a, row.b, row.diff) == pytest.approx((a.mean(), b.mean(), a.mean() - b.mean()))
        expected = tuple(stats.ttest_rel(a, b)) if (a != b).any() else (0, 1)
        assert (row.t, row.p_value) == pytest.approx(expected)
        assert row.p_adjusted == pytest.approx(min(1, row.p_value * len(table)))
        assert (row.score, row.level, row.n_units) == (score, level, len(a))
