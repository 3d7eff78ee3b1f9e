"""What the text of each notebook says of its numbers: a function of the variables of the notebook with these names."""

import numpy as np
import pyterrier as pt


def of_replace_condensed_lists(table, scores, dense, after, covered, rankings):
    told = [
        (scores.means().loc["dense", "nDCG@10"], 0.688),
        (scores.means().loc["dense", "ENDCG@10"], 0.726),
        (scores.means().loc["lexical", "ENDCG@10"], 0.738),
        (scores.means().loc["lexical", "NDCGBound(max_grade=2)@10"], 0.542),
        (table.loc["the truth: all documents judged", "dense"], 0.8),
        (table.loc["the truth: all documents judged", "lexical"], 0.699),
        (rankings["unjudged"].pairs["p_a_beats_b"].iloc[0], 0.612),
        (rankings["both"].pairs["p_a_beats_b"].iloc[0], 0.581),
        (dense.set_index("measure").loc["nDCG@10", "diff"], -0.123),
        (after.pairs["diff"].iloc[0], 0.092),
        (covered["covered"].tolist()[2], 0.967),
    ]
    assert all(abs(result - number) < 0.001 for result, number in told), told


def of_evaluate_without_labels(found, errors, values, linked):
    means = found.means()
    told = [
        (means.loc["dense", "ES@1"], 0.746),
        (means.loc["lexical", "ES@1"], 0.637),
        (means.loc["words", "ES@1"], 0.522),
        (means.loc["dense", "TopIntent@1"], 0.917),
        (errors["priors"].brier, 0.183),
        (errors["softmax, T = 1"].brier, 0.236),
        (errors["uniform"].brier, 0.29),
        (linked.tagging["oracle_ES"].iloc[0], 0.698),
        (linked.means().loc["words", "ES@5"], 0.627),
        (values.loc["dense", "VB@5"], -0.09),
        (values.loc["words", "VB@5"], 0.6),
    ]
    assert all(abs(value - number) < 0.001 for value, number in told), told


def of_entity_signals(folder, gaps, entities, by_recall, K, random_gap):
    stated = [
        (by_recall.loc[0.1, "gain conditional"] / by_recall.loc[1.0, "gain conditional"], 2 / 3),
        (by_recall.loc[0.1, "gain open-world"] / by_recall.loc[1.0, "gain open-world"], 1 / 6),
        (by_recall.loc[0.05, "gain open-world"], 0.03),
        (gaps.loc[("balanced", "random"), "entity side"], 0.04),
        (gaps.loc[("balanced", "trained"), "entity side"], 0.04),
        (gaps["closed x closed"].sub(gaps["closed x open"]).abs().max(), 0.0),
    ]
    if folder.is_dir():
        stated.append((random_gap.loc["gold"].iloc[0] - random_gap.loc["gold"].iloc[1], 0.19))
    assert all(abs(result - number) < 0.01 for result, number in stated), stated
    assert gaps.loc[("all labelled", "random"), "entity side"] < 0
    assert ((gaps["low"] <= 0) & (gaps["high"] >= 0)).all()
    reached = entities.set_index(["name", "measure"])["value"]
    assert reached["odds", f"RelCov@{K}"] > 0.8
    assert reached["odds", f"NonRelCov@{K}"] < 0.5


def of_how_many_queries(truth, needed, held, difference, rows_of_samples, plans, checked, shares):
    told = [
        (difference.mean(), 0.0242),
        (difference.head(25).mean(), 0.0499),
        (rows_of_samples["random-document"][0], 0.309),
        (rows_of_samples["random-mention"][0], 0.823),
        (truth, 0.316),
        (checked["power there was"].min(), 0.77),
        (shares.shares["share"].iloc[0], 0.265),
    ]
    assert all(abs(result - number) < 0.01 for result, number in told), told
    assert (checked["power there was"] >= 0.8).sum() == 9
    assert (plans[0.05].n_qids, plans[0.025].n_qids, needed, held) == (105, 409, 232, 10)


def of_complete_comparison(experiment, found):
    means = experiment.set_index("name")
    told = [
        (means.loc["dense", "nDCG@10"], 0.688),
        (means.loc["BM25 + dense", "nDCG@10"], 0.776),
        (means.loc["BM25", "nDCG@10"], 0.796),
        (means.loc["dense", "BNDCG@10"], 0.818),
        (means.loc["BM25 + dense", "BNDCG@10"], 0.850),
    ]
    assert all(abs(value - number) < 0.001 for value, number in told), told
    assert not found.significant().any()
    assert not pt.java.started()


def of_your_own_linker_tagger_prior(by_trectools, by_ir_measures, parsed, compared, rates):
    told = [
        (compared.loc["Bayes", "rmse"], 0.118),
        (compared.loc["ENDCG", "rmse"], 0.130),
        (compared.loc["sure", "rmse"], 0.134),
        (compared.loc["constant", "rmse"], 0.246),
        (compared.loc["sure", "covered"], 0.693),
        (rates["trained"][2], 0.36),
        (rates["linker"][2], 0.37),
        (by_trectools["dense"], 0.287),
    ]
    assert all(abs(result - number) < 0.01 for result, number in told), told
    # The hosts add the topics in different orders.
    assert abs(by_trectools["dense"] - by_ir_measures["dense"][parsed[1]]) < 1e-12


def of_language_models_as_judges(quality, found, corrected):
    summary = quality.summary.set_index("name")
    errors = found.set_index(["judge", "way"])["RMSE of topics"]
    told = [
        (summary.loc["careful", "r2"], 0.522),
        (summary.loc["careful", "worth"], 2.094),
        (summary.loc["generous", "worth"], 1.187),
        (quality.kappa["value"].iloc[0], 0.712),
        (errors["generous", "raw labels fill the gaps"], 0.148),
        (errors["generous", "ENDCG, labels as evidence"], 0.106),
        (errors["careful", "ENDCG without labels"], 0.132),
        (errors["careful", "raw labels fill the gaps"], 0.080),
        (errors["careful", "ENDCG, labels as evidence"], 0.077),
        (found["bias"].iloc[4], 0.095),
        (corrected["width_ratio"].min(), 0.786),
    ]
    assert all(abs(value - number) < 0.001 for value, number in told), told
    assert corrected["truth"].between(corrected["low"], corrected["high"]).all()


def of_one_query_per_project(pooled, served, again, in_part, paper, by_query):
    ends = pooled.intervals.set_index(["name", "measure"])
    replicas = again.intervals[again.intervals["method"].str.startswith("replicas")].set_index(["name", "measure"])
    assert (pooled.means().round(3) - paper).abs().to_numpy().max() < 1e-9
    assert np.ptp(by_query.means().to_numpy(), axis=1).max() < 1e-9
    assert [name for name in served if ends.loc[(name, "VB@10"), "low"] > 0] == ["Group 5"]
    assert abs(ends.loc[("Group 2", "VB@10"), "high"] + 0.04) < 0.005
    assert abs(ends.loc[("Group 1", "VB@10"), "high"] + 0.2) < 0.005
    assert abs(in_part.means().loc["Group 3", "ES(parts='part')@10"] - 0.17) < 0.005
    assert set(again.per_query["lists"]) == {"run again"}
    assert replicas.loc[("synonyms", "ES@1"), "low"] == 1
    assert replicas.loc[("words", "ES@1"), "high"] < 1


CLAIMS = {
    "1-replace-condensed-lists": of_replace_condensed_lists,
    "2-evaluate-without-labels": of_evaluate_without_labels,
    "3-entity-signals": of_entity_signals,
    "4-how-many-queries": of_how_many_queries,
    "5-complete-comparison": of_complete_comparison,
    "6-your-own-linker-tagger-prior": of_your_own_linker_tagger_prior,
    "7-language-models-as-judges": of_language_models_as_judges,
    "8-one-query-per-project": of_one_query_per_project,
}
