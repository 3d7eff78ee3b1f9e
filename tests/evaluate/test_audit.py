"""Audits of judges: planted biases, corrected scores, warnings and errors."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from night import at_night, slow
from scipy import stats

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate import audit_judge, topics_to_judge
from vbterrier.evaluate.judge_scores import Estimate
from vbterrier.settings import Data, Inference

TOPICS, DEPTH = 40, 50
FAMILIES = {"a": "llm", "b": "llm", "c": "other"}


def collection(seed):
    """Four systems over labelled documents; all judgments; labels of an honest judge, and of one that prefers a, b."""
    rng = np.random.default_rng(seed)
    pool = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(TOPICS)], DEPTH)})
    pool["docno"] = [f"d{i}" for i in range(len(pool))]
    share = np.repeat(rng.beta(3, 5, TOPICS), DEPTH)
    grade = rng.binomial(2, share)
    first, second = rng.normal(size=(2, len(pool)))
    runs = {
        name: pool.assign(score=skill * grade + 0.7 * shared + 0.5 * rng.normal(size=len(pool)))
        for name, skill, shared in (("a", 0.6, first), ("b", 0.8, first), ("c", 0.7, second), ("d", 0.9, second))
    }
    chance = rng.random(len(pool))
    honest = np.where(chance < 0.1, np.maximum(grade - 1, 0), np.where(chance < 0.2, np.minimum(grade + 1, 2), grade))
    liked = pool["docno"].isin([*first_ten(runs["a"]), *first_ten(runs["b"])]) & (rng.random(len(pool)) < 0.6)
    biased = np.where(liked, np.minimum(honest + 1, 2), honest)
    labels = {"honest": pool.assign(label=honest), "partial": pool.assign(label=biased)}
    return runs, pool.assign(label=grade), labels


def first_ten(run):
    return run.sort_values("score").groupby("qid").tail(10)["docno"]


@pytest.fixture(scope="module")
def planted():
    runs, truth, labels = collection(0)
    human = truth.sample(frac=0.45, random_state=0)
    return (
        runs,
        truth,
        labels,
        human,
        audit_judge(runs, human, labels=labels, families=FAMILIES, budget=400, baseline="a"),
    )


@pytest.mark.slow
def test_every_estimate_is_there_with_its_interval(planted):
    runs, _, _, _, result = planted
    keys = result.systems[["estimate", "judge"]].drop_duplicates().to_numpy().tolist()
    assert keys == [["humans alone", ""], ["corrected", ""], ["judge alone", "honest"], ["judge alone", "partial"]]
    assert result.systems.groupby(["estimate", "judge"])["name"].agg(list).tolist() == [list(runs)] * 4
    assert (result.systems["low"] < result.systems["value"]).all()
    assert (result.systems["value"] < result.systems["high"]).all()
    assert result.pairs[["name_a", "name_b"]].drop_duplicates().to_numpy().tolist() == [[name, "a"] for name in "bcd"]
    values = result.systems.set_index(["estimate", "judge", "name"])["value"]
    pair = result.pairs.query("estimate == 'corrected' and name_a == 'd'").iloc[0]
    assert pair["diff"] == pytest.approx(values["corrected", "", "d"] - values["corrected", "", "a"])


@pytest.mark.slow
def test_judges_of_some_topics_are_compared_with_humans_on_these(planted):
    runs, _, labels, human, whole = planted
    topics = sorted(set(human["qid"]))
    parts = {"half": topics[:20], "rest": topics[20:]}
    judgments = {name: labels["honest"][labels["honest"]["qid"].isin(part)] for name, part in parts.items()}
    with pytest.warns(DegenerateWarning, match=r"no label for 20 of 40 topics .* means over the other 20"):
        audit = audit_judge(runs, human, labels=judgments, budget=1)
    frame = audit.systems.set_index(["estimate", "judge", "name"]).sort_index()
    sizes = frame.groupby(["estimate", "judge"])["n_qids"].unique().map(list).to_dict()
    assert sizes == {("humans alone", ""): [40], ("corrected", ""): [40]} | {
        (estimate, judge): [20] for estimate in ("humans alone", "judge alone") for judge in parts
    }
    pairs = audit.pairs.groupby(["estimate", "judge"])["n_qids"].unique().map(list).to_dict()
    assert pairs == sizes
    for name, part in parts.items():
        exact = vbterrier.score(
            {n: run[run["qid"].isin(part)] for n, run in runs.items()}, judgments[name], ["nDCG@10"]
        )
        assert frame.loc["judge alone", name]["value"].to_dict() == pytest.approx(exact.means()["nDCG@10"].to_dict())
    # One model of all topics: means over systems, which no factor shrinks, are those of both halves.
    halves = [frame.loc["humans alone", name]["value"].mean() for name in parts]
    every = whole.systems.query("estimate == 'humans alone'")["value"].mean()
    assert abs(halves[0] - halves[1]) > 0.01
    assert sum(halves) / 2 == pytest.approx(every, abs=1e-9)


def test_equal_labels_of_half_of_the_topics_show_no_bias(shared_data):
    folder = shared_data / "cases" / "audit-partial-judge"
    with pytest.warns(DegenerateWarning):
        systems = audit_judge(folder / "good.run", folder / "q.txt", labels=folder / "half.txt").systems
    humans, judge = (systems.query("judge == 'half' and estimate == @name") for name in ("humans alone", "judge alone"))
    assert humans["value"].item() == pytest.approx(judge["value"].item(), abs=1e-12) == pytest.approx(0.8453, abs=5e-5)
    assert humans["n_qids"].item() == judge["n_qids"].item() == 6


@pytest.mark.nightly
def test_the_score_by_the_judge_alone_is_its_ndcg(planted):
    runs, _, labels, _, result = planted
    means = vbterrier.score(runs, labels["partial"], ["nDCG@10"]).means()["nDCG@10"]
    alone = result.systems.query("judge == 'partial'").set_index("name")["value"]
    pd.testing.assert_series_equal(alone, means.rename("value"))
    # Probabilities are labels, too: nDCG does not depend on their unit.
    halved = {"half": labels["partial"].assign(label=labels["partial"]["label"] / 2)}
    again = (
        audit_judge(runs, planted[3], labels=halved, budget=1)
        .systems.query("judge == 'half'")
        .set_index("name")["value"]
    )
    pd.testing.assert_series_equal(again, alone, atol=1e-9)


def test_a_judge_that_prefers_a_family_is_found_and_corrected(planted):
    runs, truth, _, _, result = planted
    family = result.bias.query("by == 'family'").set_index(["judge", "group"])
    assert family.loc[("partial", "llm"), "low"] > 0.1
    assert family.loc[("partial", "other"), "high"] < family.loc[("partial", "llm"), "low"]
    assert family.loc[("honest", "llm"), "low"] < 0 < family.loc[("honest", "llm"), "high"]
    assert family.loc[("partial", "llm"), "bias"] > 0.2 > family.loc[("honest", "llm"), "bias"]
    exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
    alone = result.pairs.query("judge == 'partial'").set_index("name_a")["diff"]
    corrected = result.pairs.query("estimate == 'corrected'").set_index("name_a")
    gap = exact["d"] - exact["a"]
    assert alone["d"] < gap - 0.03
    assert corrected.loc["d", "low"] < gap < corrected.loc["d", "high"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:judge .*do not fill the gaps:vbterrier.errors.DegenerateWarning")
def test_intervals_cover_the_scores_under_all_judgments():
    inside = {"systems": [], "pairs": []}
    errors = {"humans alone": [], "corrected": []}
    for seed in range(1, 9):
        runs, truth, labels = collection(seed)
        human = truth.sample(frac=0.4, random_state=seed)
        audit = audit_judge(
            runs, human, labels={"honest": labels["honest"]}, budget=1, inference=Inference(n_draws=300)
        )
        exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
        for estimate, error in errors.items():
            rows = audit.systems[audit.systems["estimate"] == estimate]
            error.extend(rows["value"] - rows["name"].map(exact))
        rows = audit.systems[audit.systems["estimate"] == "corrected"]
        inside["systems"] += rows["name"].map(exact).between(rows["low"], rows["high"]).tolist()
        pairs = audit.pairs[audit.pairs["estimate"] == "corrected"]
        gap = pairs["name_a"].map(exact) - pairs["name_b"].map(exact)
        inside["pairs"] += gap.between(pairs["low"], pairs["high"]).tolist()
    # Systems of one collection depend on each other; collections are independent.
    for hits in inside.values():
        assert np.mean(hits) >= stats.binom.ppf(0.01, 8, 0.9) / 8
    rmse = {estimate: np.sqrt(np.mean(np.square(of))) for estimate, of in errors.items()}
    assert rmse["corrected"] < rmse["humans alone"]


@pytest.mark.parametrize(("n", "size", "weight"), [(2, 0.01, 1.0), (12, 0.01, 0.0), (12, 1.0, 1 - 9 / 11)])
def test_deviations_are_shrunk_by_the_factor_of_james_and_stein(n, size, weight):
    """One judgment per system: noise is the spread of the deviations, times the squared factor of the errors."""
    rng = np.random.default_rng(n)
    draws, fitted = rng.normal(size=(n, 50)), rng.normal(size=(n, 40))
    parts = np.diag(rng.normal(size=n) * size) * n / (n - 1)
    parts -= parts.mean(axis=0)
    # Deviations that exceed their noise by far, as 1 / size: all errors but one percent are noise-free.
    spread = np.full(n, 1.0 if weight != 0.0 else 100.0)
    deviation = parts.sum(axis=1) - parts.sum(axis=1).mean()
    noise = ((parts * spread - (parts * spread).mean(axis=0)) ** 2).sum()
    factor = max(1 - (n - 3) / (n - 1) * noise / (deviation**2).sum(), 0.0) if n > 2 else 1.0
    _, pairs = Estimate([f"s{i:02}" for i in range(n)], 9, draws, fitted, parts, spread).tables("corrected", 0.9, None)
    first = pairs.iloc[0]
    expected = fitted[0].mean() - fitted[1].mean() + factor * (parts[0].sum() - parts[1].sum())
    assert first["diff"] == pytest.approx(expected)
    errors = (parts * spread)[0] - (parts * spread)[1]
    variance = (1 - factor) * (draws[0] - draws[1]).var() + factor * (errors**2).sum()
    assert first["high"] - first["diff"] == pytest.approx(stats.norm.ppf(0.95) * np.sqrt(variance))
    assert factor == pytest.approx(weight, abs=0.35)


@pytest.mark.nightly
def test_residuals_correct_the_model_on_a_collection(shared_data):
    folder = shared_data / "trec_dl19"
    truth = vbterrier.read_qrels(folder / "qrels.nist.txt.gz")
    condense = vbterrier.Condense(truth)
    runs = {}
    for name in ("idst_bert_p1", "p_bert", "bm25base_p", "ms_duet_passage", "TUW19-p1-f", "ICT-BERT2"):
        run = vbterrier.read_run(folder / "runs" / f"run.{name}.gz")
        runs[name] = condense(run[run["qid"].isin(truth["qid"])].assign(rank=0))
    human = truth.sample(frac=0.2, random_state=0)
    judge = folder / "labels.llama3-70b-criteria.txt.gz"
    audit = audit_judge(runs, human, labels=judge, budget=1)
    exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
    error = audit.systems.assign(error=audit.systems["value"] - audit.systems["name"].map(exact))
    rmse = np.sqrt((error["error"] ** 2).groupby(error["estimate"]).mean())
    assert audit.systems.query("estimate == 'corrected'")["method"].iloc[0] == "unjudged and residuals (normal)"
    assert rmse["corrected"] < 0.05
    assert rmse["judge alone"] > 0.1


def test_needed_labels_are_the_first_of_the_plan(planted):
    result = planted[-1]
    needed = result.needed.set_index("labels")
    assert needed.loc["with", "width"] < needed.loc["without", "width"]
    n = int(needed.loc["with", "n"])
    widths = result.plan.documents["width_after"]
    assert widths.iloc[n - 1] <= 0.04 < widths.iloc[n - 2]
    assert f"±0.02 needs {n} more human judgments" in repr(result)


def test_agreement_counts_documents_that_all_labelled(planted):
    _, _, _, human, result = planted
    assert result.agreement["judges"].tolist()[:3] == ["humans, honest", "humans, partial", "honest, partial"]
    assert (result.agreement["n_items"] == len(human)).all()
    kappa = result.agreement.set_index("judges")["value"]
    assert kappa["humans, honest"] > kappa["humans, partial"]


@pytest.mark.nightly
def test_bias_by_grade_and_length_is_a_mean_over_documents(planted):
    runs, truth, labels, human, _ = planted
    texts = truth[["docno"]].assign(text=["word " * (5 + 3 * (i % 40)) for i in range(len(truth))])
    audit = audit_judge(runs, human, labels={"honest": labels["honest"]}, budget=1, data=Data(documents=texts))
    both = human.merge(labels["honest"], on=["qid", "docno"])
    difference = (both["label_y"] - both["label_x"]).groupby(both["label_x"]).mean()
    assert audit.bias.query("by == 'grade'")["bias"].tolist() == pytest.approx(difference.tolist())
    lengths = audit.bias.query("by == 'length'")
    assert lengths["n"].sum() == len(human)
    shortest = [int(group.split()[0]) for group in lengths["group"]]
    assert len(shortest) == 4
    assert shortest == sorted(shortest)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* documents of .* are unjudged")
@pytest.mark.filterwarnings("ignore:the judgments seem to end:vbterrier.errors.DegenerateWarning")
def test_gaps_filled_in_proportion_to_holes_are_shown_and_flagged(planted):
    runs, truth, labels, _, _ = planted
    cut = first_ten(runs["c"])
    human = truth[truth["docno"].isin(cut)]
    with pytest.warns(DegenerateWarning, match="do not fill the gaps of the judgments .* machine labels"):
        audit = audit_judge(runs, human, labels={"partial": labels["partial"]}, budget=1)
    mixed = audit.mixed.set_index("name")
    assert mixed.loc["c", "machine"] == 0 < mixed.loc["a", "machine"]
    gaps = labels["partial"][~labels["partial"]["docno"].isin(cut)]
    filled = vbterrier.score(runs, pd.concat([human, gaps]), ["nDCG@10"]).means()["nDCG@10"]
    assert mixed["filled"].tolist() == pytest.approx(filled.tolist())
    methods = audit.systems.query("estimate == 'corrected'")["method"].unique().tolist()
    assert methods == [
        "a correction needs 15 complete topics (now 0), or 20 judged documents in each other topic (now 10.0)"
    ]
    assert audit.mixed["shift"].isna().all()


@pytest.mark.nightly
def test_judgments_that_were_filled_are_recognised(planted):
    runs, truth, labels, _, _ = planted
    cuts = {name: set(first_ten(run)) for name, run in runs.items()}
    alone = cuts["a"] - cuts["b"] - cuts["c"] - cuts["d"]
    filled = truth.assign(label=np.where(truth["docno"].isin(alone), labels["partial"]["label"], truth["label"]))
    with pytest.warns(DegenerateWarning, match="documents that only a retrieves, and .* seem to be machine labels"):
        audit_judge(runs, filled, labels={"partial": labels["partial"]}, budget=1)
    with pytest.warns(DegenerateWarning) as told:
        audit_judge(runs, truth.sample(frac=0.5, random_state=0), labels={"copy": truth}, budget=1)
    assert any("its labels equal all human judgments" in str(one.message) for one in told)


@pytest.mark.slow
def test_a_judge_of_some_systems_is_counted(planted):
    runs, _, labels, human, _ = planted
    cut = first_ten(runs["c"])
    some = labels["honest"][labels["honest"]["docno"].isin(cut)]
    with pytest.warns(DegenerateWarning) as told:
        audit = audit_judge(runs, human, labels={"some": some}, budget=1)
    assert any("neither a label nor a judgment" in str(one.message) for one in told)
    neither = audit.mixed.set_index("name")["neither"]
    assert neither["c"] == 0
    assert neither["a"] == pytest.approx(1 - first_ten(runs["a"]).isin(set(cut) | set(human["docno"])).mean())


@pytest.mark.slow
def test_complete_judgments_are_exact(planted):
    runs, truth, labels, _, _ = planted
    audit = audit_judge(runs, truth, labels={"honest": labels["honest"]}, budget=1)
    exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
    rows = audit.systems.query("estimate == 'corrected'").set_index("name")
    for column in ("value", "low", "high"):
        assert rows[column].tolist() == pytest.approx(exact.tolist())


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_rows_and_show_themselves(planted):
    runs, _, labels, human, result = planted
    turned = {name: run.sample(frac=1, random_state=1) for name, run in runs.items()}
    judgments = {name: one.sample(frac=1, random_state=2) for name, one in labels.items()}
    again = audit_judge(turned, human.sample(frac=1), labels=judgments, families=FAMILIES, budget=1, baseline="a")
    pd.testing.assert_frame_equal(again.systems, result.systems)
    pd.testing.assert_frame_equal(again.bias, result.bias)
    assert "Bias of the judge" in result._repr_html_()
    pytest.importorskip("matplotlib")
    assert result.plot(measure="nDCG@10").get_xlabel() == "nDCG@10"
    assert result.plot("reliability").get_xlabel() == "predicted probability"


def complete(truth, n, seed=1):
    """The judgments of n random topics, all their documents."""
    topics = np.random.default_rng(seed).permutation(sorted(set(truth["qid"])))[:n]
    return truth[truth["qid"].isin(topics)]


@pytest.fixture(scope="module")
def judged():
    """Audits of planted judges with 20 complete topics of 40, each made when it is read."""
    runs, truth, labels = collection(1)
    rng, grade, pool = np.random.default_rng(1), truth["label"].to_numpy(), truth[["qid", "docno"]]
    wrong = np.clip(grade + rng.choice([-1, 1], len(grade)), 0, 2)
    judgments = {
        "good": np.where(rng.random(len(grade)) < 0.03, wrong, grade),
        "biased": labels["partial"]["label"].to_numpy(),
        "generous": np.minimum(grade + (rng.random(len(grade)) < 0.5), 2),
        "noisy": np.where(rng.random(len(grade)) < 0.5, rng.integers(0, 3, len(grade)), grade),
        "constant": np.ones(len(grade), dtype=int),
    }
    options = {"families": FAMILIES, "budget": 50, "inference": Inference(n_draws=300)}

    @cache
    def audited(name):
        with warnings.catch_warnings():
            # The constant judge has no standard errors.
            warnings.simplefilter("ignore", DegenerateWarning)
            return audit_judge(runs, complete(truth, 20), labels={name: pool.assign(label=judgments[name])}, **options)

    return audited


@pytest.mark.parametrize(
    ("judge", "order", "levels", "texts"),
    [
        ("good", "TRUSTED", "TRUSTED", ("at most 0.0% of 5 pairs that it separates by 0.02", "within ±0.04", "")),
        ("biased", "NOT TRUSTED", "NOT TRUSTED", ("at least ", "such as ", "it prefers family llm: by +0.")),
        at_night("generous", "TRUSTED", "NOT TRUSTED", ("at most ", "beyond ±0.04, such as ", "+0.5")),
        at_night("noisy", "UNKNOWN", "NOT TRUSTED", (" more)", "", "its labels are noisy: AUC 0.7")),
        slow("constant", "UNKNOWN", "NOT TRUSTED", ("separates none of 6 pairs", "", "do not separate relevant")),
    ],
)
@pytest.mark.slow
def test_verdicts_on_planted_judges_are_those_of_their_errors(judged, judge, order, levels, texts):
    result = judged(judge)
    row = result.verdicts.iloc[0]
    assert (row["judge"], row["order"], row["levels"]) == (judge, order, levels)
    for text, column in zip(texts, ("order_reason", "levels_reason", "findings"), strict=True):
        assert text in row[column]
    lines = [
        f"The {about} by {judge} is {row[what]}: {row[f'{what}_reason']}."
        for what, about in (("order", "order of systems"), ("levels", "level of scores"))
    ]
    assert result.summary()[:3] == [*lines, f"{judge}: {row['findings']}"]
    assert repr(result).startswith(f"JudgeAudit(4 systems, 1 judge; {judge} order {order}, levels {levels}; ")


def test_reversed_pairs_are_named_with_both_differences(judged):
    row = judged("biased").verdicts.iloc[0]
    assert row["reversed_low"] <= row["reversed"] <= row["reversed_high"]
    named = [text for text in row["findings"].split("; ") if text.startswith("it reverses ")]
    assert named[0].startswith("it reverses a and d: +0.033 by its labels, -0.116 ± 0.053 corrected")
    # The share of the pairs that are named is a lower limit.
    assert row["reversed_low"] >= len(named) / row["n_apart"] > 0.1
    assert np.isnan(row["n_order"])


def test_the_picture_has_corrected_scores_or_else_the_pairs_reversed(judged):
    result = judged("biased")
    corrected = result.systems[result.systems["estimate"] == "corrected"].set_index("name")
    bars = {bar.name: bar[1:] for bar in result._picture().bars}
    assert bars == {name: tuple(row[["value", "low", "high"]]) for name, row in corrected.iterrows()}
    without = replace(result, systems=result.systems.assign(value=np.nan))
    row = result.verdicts.iloc[0]
    picture = without._picture()
    assert picture.bars == (("biased", row["reversed"], row["reversed_low"], row["reversed_high"]),)
    assert [rule.value for rule in picture.rules] == [0.1]
    assert replace(without, verdicts=result.verdicts.assign(reversed=np.nan))._picture() is None


def test_shifts_are_those_of_complete_topics(judged):
    runs, truth, labels = collection(1)
    expected, row = complete(truth, 20), judged("biased").verdicts.iloc[0]
    parts = {name: run[run["qid"].isin(expected["qid"])] for name, run in runs.items()}
    by_judge = labels["partial"][labels["partial"]["qid"].isin(expected["qid"])]
    human, judge = (vbterrier.score(parts, each, ["nDCG@10"]).means()["nDCG@10"] for each in (expected, by_judge))
    assert row["shift"] == pytest.approx((judge - human).mean())
    assert row["largest_shift"] == pytest.approx((judge - human).max())
    assert (row["n_complete"], row["n_topics"]) == (20, 40)


def test_complete_topics_correct_the_scores_of_all_topics(judged):
    runs, truth, labels = collection(1)
    exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
    result = judged("biased")
    table = result.systems.set_index(["estimate", "name"])
    alone, corrected = (table.loc[estimate] for estimate in ("judge alone", "corrected"))
    assert (alone["n_qids"] == 40).all()
    assert (corrected["n_qids"] == 40).all()
    assert (table.loc["humans alone", "n_qids"] == 20).all()
    by_judge = vbterrier.score(runs, labels["partial"], ["nDCG@10"]).means()["nDCG@10"]
    assert alone["value"].to_dict() == pytest.approx(by_judge.to_dict())
    assert corrected["method"].unique().tolist() == ["complete topics (t)"]
    assert (corrected["value"] - exact).abs().max() < 0.4 * (alone["value"] - exact).abs().max()
    assert ((corrected["low"] <= exact) & (exact <= corrected["high"])).mean() >= 0.75
    half = (corrected["high"] - corrected["low"]) / 2
    assert (corrected["common"] < half).all()
    assert result.comparison.columns[4:].tolist() == ["humans alone (20 topics)", "judge alone: biased (40 topics)"]


@pytest.mark.parametrize(
    ("n_topics", "share", "reason"),
    [
        (
            14,
            1.0,
            "a correction needs 15 complete topics (now 14), or 20 judged documents in each other topic (now 0.0)",
        ),
        slow(
            40,
            0.3,
            "a correction needs 15 complete topics (now 0), or 20 judged documents in each other topic (now 15.0)",
        ),
    ],
)
@pytest.mark.slow
def test_few_judgments_correct_no_scores(planted, n_topics, share, reason):
    runs, truth, labels, _, _ = planted
    human = complete(truth, n_topics).groupby("qid").sample(frac=share, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        audit = audit_judge(runs, human, labels={"honest": labels["honest"]}, budget=1, inference=Inference(n_draws=50))
    for table, columns in ((audit.systems, ["value", "low", "high", "common"]), (audit.pairs, ["diff", "low", "high"])):
        corrected = table[table["estimate"] == "corrected"]
        assert corrected[columns].isna().all(axis=None)
        assert corrected["method"].unique().tolist() == [reason]
    assert audit.comparison["corrected"].isna().all()
    assert audit.comparison["humans alone"].is_monotonic_decreasing
    assert f"Scores are not corrected: {reason}." in audit.summary()
    row = audit.verdicts.iloc[0]
    if n_topics == 14:
        assert row["order"] == "TRUSTED"
    else:
        assert (row["order"], row["levels"], row["n_order"]) == ("UNKNOWN", "UNKNOWN", 10)
        assert (
            "0 of 40 topics are judged completely; a verdict needs 10, whose documents vbterrier judge --complete 10"
            in row["order_reason"]
        )


@pytest.mark.slow
def test_topics_to_judge_complete_topics_for_an_audit(planted):
    runs, truth, labels, _, _ = planted
    human = complete(truth, 3)
    # Of three complete topics, one lacks a document that no run has in its cut.
    cut = {docno for run in runs.values() for docno in first_ten(run)}
    outside = human[~human["docno"].isin(cut)].iloc[0]
    human = human[human["docno"] != outside["docno"]]
    plan = topics_to_judge(runs, human, labels={"honest": labels["honest"]}, n_topics=12, inference=Inference(seed=3))
    assert plan["qid"].nunique() == 10
    assert not plan.merge(human[["qid", "docno"]]).shape[0]
    more = topics_to_judge(runs, human, labels={"honest": labels["honest"]}, n_topics=20, inference=Inference(seed=3))
    assert set(plan["qid"]) < set(more["qid"])
    assert len(topics_to_judge(runs, human, labels={"honest": labels["honest"]}, n_topics=2)) == 0
    every = topics_to_judge(runs, None, labels={"honest": labels["honest"]}, n_topics=40)
    assert sorted(zip(every["qid"], every["docno"], strict=True)) == sorted(
        zip(truth["qid"], truth["docno"], strict=True)
    )
    whole = topics_to_judge(runs, human, labels={"honest": labels["honest"]}, n_topics=40)
    assert whole.loc[whole["qid"] == outside["qid"], ["docno", "reason"]].to_numpy().tolist() == [
        [outside["docno"], "labelled by a judge"]
    ]
    best = min(
        run[run["qid"] == "q5"].assign(r=lambda x: x["score"].rank(ascending=False))["r"].min() for run in runs.values()
    )
    assert every.loc[every["qid"] == "q5", "rank"].iloc[0] == best == 1
    judged_now = pd.concat([human, truth.merge(plan[["qid", "docno"]])])
    audit = audit_judge(
        runs, judged_now, labels={"honest": labels["honest"]}, budget=1, inference=Inference(n_draws=50)
    )
    assert audit.verdicts["n_complete"].item() == 12


def test_what_the_labels_save_is_said_with_both_numbers(planted):
    result = planted[-1]
    needed = result.needed.set_index("labels")["n"]
    texts = {word: f"more than {400}" if np.isnan(needed[word]) else f"{needed[word]:,.0f}" for word in needed.index}
    more = f"{texts['with']} more human judgments with these labels, and {texts['without']} without them."
    assert result.summary()[-1] == f"An interval of ±0.02 of ENDCG@10 (nDCG@10, judged to depth 100) needs {more}"


def test_systems_stand_side_by_side(planted):
    result = planted[-1]
    table = result.comparison
    columns = ["name", "corrected", "low", "high", "humans alone", "judge alone: honest", "judge alone: partial"]
    assert table.columns.tolist() == columns
    assert table["corrected"].is_monotonic_decreasing
    rows = result.systems.set_index(["estimate", "judge", "name"])["value"].sort_index()
    for column, key in (
        ("corrected", ("corrected", "")),
        ("humans alone", ("humans alone", "")),
        ("judge alone: partial", ("judge alone", "partial")),
    ):
        assert table.set_index("name")[column].to_dict() == rows[key].to_dict()


def test_the_page_begins_with_the_verdicts_and_folds_the_details(judged):
    result = judged("biased")
    row = result.verdicts.iloc[0]
    assert list(result._verdict())[:2] == [
        f"The order of systems by biased is NOT TRUSTED: {row['order_reason']}.",
        f"The level of scores by biased is NOT TRUSTED: {row['levels_reason']}.",
    ]
    assert list(result._verdict())[2:] == result.summary()[3:]
    caveats = list(result._caveats())
    # The verdict has both reasons.
    assert [each.text for each in caveats] == [f"{finding}." for finding in row["findings"].split("; ")]
    assert all(each.serious for each in caveats)
    good = judged("good")
    assert list(good._verdict())[:2] == good.summary()[:2]
    assert not any(each.serious for each in good._caveats())
    panels = list(result._panels())
    assert [panel.title for panel in panels if not panel.folded] == [
        "Verdicts",
        "Corrected differences a - b",
        "Systems: corrected scores, and others beside them",
        "Human judgments needed",
    ]
    page = result.page()
    assert (
        page.index("order of systems by biased is NOT TRUSTED")
        < page.index("it prefers family llm")
        < page.index("<table")
    )
    assert "mainly that of the ideal ranking" in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:judge .*do not fill the gaps:vbterrier.errors.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:.*are they grades")
def test_three_judges_have_an_estimate_without_humans():
    runs, truth, _ = collection(3)
    rng, pool = np.random.default_rng(3), truth[["qid", "docno"]]
    accuracy = {"one": 0.9, "two": 0.8, "three": 0.65}
    labels = {
        name: pool.assign(label=np.where(rng.random(len(pool)) < share, truth["label"], rng.integers(0, 3, len(pool))))
        for name, share in accuracy.items()
    }
    audit = audit_judge(
        runs, truth.sample(frac=0.3, random_state=3), labels=labels, budget=1, inference=Inference(n_draws=300)
    )
    table = audit.without_humans.set_index("judge")
    # A random label is right in a third of the cases.
    assert table["accuracy"].to_dict() == pytest.approx(
        {name: share + (1 - share) / 3 for name, share in accuracy.items()}, abs=0.05
    )
    assert table["agreement_with_humans"].to_numpy() == pytest.approx(table["accuracy"].to_numpy(), abs=0.06)
    values = audit.systems[audit.systems["estimate"] == "judges without humans (Dawid-Skene)"].set_index("name")[
        "value"
    ]
    exact = vbterrier.score(runs, truth, ["nDCG@10"]).means()["nDCG@10"]
    alone = audit.systems.query("judge == 'three'").set_index("name")["value"]
    assert (values - exact).abs().max() < 0.5 * (alone - exact).abs().max()
    assert "judges without humans (Dawid-Skene)" in audit.comparison
    two = audit_judge(runs, truth.sample(frac=0.3, random_state=3), labels=dict(list(labels.items())[:2]), budget=1)
    assert not len(two.without_humans)
    assert set(two.systems["estimate"]) == {"humans alone", "corrected", "judge alone"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:judge .*do not fill the gaps:vbterrier.errors.DegenerateWarning")
def test_a_judge_that_likes_words_of_the_query_is_found():
    runs, truth, _ = collection(4)
    rng = np.random.default_rng(4)
    has = rng.random(len(truth)) < 0.4
    texts = pd.DataFrame({"docno": truth["docno"], "text": np.where(has, "Red shoes for you", "green hats for you")})
    queries = pd.DataFrame({"qid": truth["qid"].unique(), "query": "red shoes"})
    label = np.where(has & (rng.random(len(truth)) < 0.5), np.minimum(truth["label"] + 1, 2), truth["label"])
    human = truth.sample(frac=0.3, random_state=4)
    options = {"data": Data(documents=texts, topics=queries), "budget": 1, "inference": Inference(n_draws=300)}
    bias = audit_judge(runs, human, labels={"llm": truth.assign(label=label)}, **options).bias
    by = bias[bias["by"] == "overlap"].set_index("group")
    assert by.index.tolist() == ["0% to 25% of the query's words", "75% to 100% of the query's words"]
    assert by["n"].tolist() == [int((~has)[human.index].sum()), int(has[human.index].sum())]
    assert by["residual"].iloc[0] < 0 < by["low"].iloc[1]
    assert by["bias"].iloc[0] == 0
    assert by["bias"].iloc[1] > 0.25
    other = Data(documents=texts, topics=queries.assign(qid="other-" + queries["qid"]))
    with pytest.raises(InputError, match="queries: no query of a judged topic"):
        audit_judge(runs, human, labels={"llm": truth}, budget=1, data=other)


@pytest.mark.slow
def test_whole_numbers_as_ids_are_audited_as_their_text_is():
    rng = np.random.default_rng(2)
    pool = pd.DataFrame({"qid": np.repeat([1, 2, 3, 4], 12), "docno": np.tile(np.arange(12), 4)})
    truth = pool.assign(label=rng.integers(0, 3, 48))
    runs = {name: pool.assign(score=rng.random(48)) for name in "ab"}
    judge = truth.assign(label=(truth["label"] + rng.integers(0, 2, 48)).clip(upper=2))

    def text(frame):
        return frame.astype({"qid": str, "docno": str})

    options = {"inference": Inference(n_draws=50), "budget": 5}
    audit = audit_judge(runs, truth[::2], labels={"j": judge}, **options)
    expected = audit_judge(
        {name: text(run) for name, run in runs.items()}, text(truth[::2]), labels={"j": text(judge)}, **options
    )
    assert set(audit.systems["estimate"]) == {"humans alone", "corrected", "judge alone"}
    pd.testing.assert_frame_equal(audit.systems, expected.systems)
    pd.testing.assert_frame_equal(audit.pairs, expected.pairs)
