"""Scores of many systems, compared with single measures, and their intervals."""

import math
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pyndeval
import pytest
from ir_measures import AP, nDCG
from pandas.testing import assert_frame_equal

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.scores import score
from vbterrier.frames.ranking import Run
from vbterrier.settings import Data, Execution, Inference
from vbterrier.stats.topic_intervals import topics_interval
from vbterrier.unjudged import distribution, fit, metrics
from vbterrier.unjudged.pool import Judgments

QRELS = pd.DataFrame(
    {"qid": ["q1", "q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d3", "d4", "d5"], "label": [2, 1, 0, 1, 0]}
)
RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": ["d1", "d2", "d3", "d9", "d5", "d4"],
        "score": [3.0, 2.0, 1.0, 0.5, 2.0, 1.0],
    }
)
BNDCG = "BNDCG@10"
NDCG = 0.8154648767857288
V_COLUMNS = ["name", "qid", "measure", "value"]
C_COLUMNS = ["name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed"]


def collection(seed=0, n_topics=12, n_docs=40, n_judged=25, depth=20):
    """Judgments and a run with distinct scores, with some unjudged documents."""
    rng = np.random.default_rng(seed)
    qids, docnos = [f"q{t}" for t in range(n_topics)], [f"d{i}" for i in range(n_docs)]
    judged = [(qid, docno, rng.choice(3)) for qid in qids for docno in rng.choice(docnos, n_judged, replace=False)]
    ranked = [(qid, docno, float(-n)) for qid in qids for n, docno in enumerate(rng.permutation(docnos)[:depth])]
    return frame_of(judged, "qid", "docno", "label"), frame_of(ranked, "qid", "docno", "score")


def frame_of(rows, *columns):
    return pd.DataFrame(rows, columns=columns)


def diversity(seed=0):
    """Judgments of three subtopics for each of four topics, and a run."""
    rng = np.random.default_rng(seed)
    lists = [(f"q{t}", str(s), rng.choice(20, 10, replace=False)) for t in range(4) for s in (1, 2, 3)]
    rows = [(qid, subtopic, f"d{d}", int(rng.random() < 0.4)) for qid, subtopic, docs in lists for d in docs]
    run = [(f"q{t}", f"d{d}", float(-place)) for t in range(4) for place, d in enumerate(rng.permutation(25)[:15])]
    return frame_of(rows, "qid", "iteration", "docno", "label"), frame_of(run, "qid", "docno", "score")


def per_topic(scores, name, measure):
    rows = scores.values[(scores.values["name"] == name) & (scores.values["measure"] == measure)]
    return dict(zip(rows["qid"], rows["value"], strict=True))


# Input.


def test_frames_by_name_score_as_the_specification_says():
    for name, runs in (("mine", {"mine": RUN}), ("run", RUN)):
        means = score(runs, QRELS, [BNDCG, "nDCG@10", "Unjudged@10"]).means()
        assert list(means.index) == [name]
        assert means.loc[name].tolist() == pytest.approx([NDCG, NDCG, 0.125], abs=1e-12)


def test_paths_are_named_after_their_files(tmp_path):
    names = {"a.run": "a", "b.txt": "b", "c.txt.gz": "c", "d.run.gz": "d", "e.v2": "e.v2"}
    paths, qrels = [tmp_path / name for name in names], tmp_path / "qrels.txt"
    for path in paths:
        vbterrier.frames.write_run(RUN, path)
    vbterrier.frames.write_qrels(QRELS, qrels)
    scores = score(paths, qrels, [BNDCG])
    assert scores.means().index.tolist() == list(names.values())
    assert scores.means()[BNDCG].tolist() == pytest.approx([NDCG] * 5)
    assert score(str(paths[1]), str(qrels), [BNDCG]).means().index.tolist() == ["b"]
    assert score({"x": paths[0], "y": RUN}, qrels, [BNDCG]).means().index.tolist() == ["x", "y"]


def test_measures_as_objects_and_as_text_are_the_same():
    as_text = score(RUN, QRELS, ["BNDCG(prior='pool',stat='q5')@10", "AP"])
    as_objects = score(RUN, QRELS, [vbterrier.BNDCG(prior="pool", stat="q5") @ 10, AP])
    assert_frame_equal(as_text.intervals, as_objects.intervals)
    assert_frame_equal(as_text.values, as_objects.values)


def test_the_input_is_never_changed():
    qrels, run = collection()
    before = qrels.copy(deep=True), run.copy(deep=True)
    score({"mine": run}, qrels, [BNDCG, "nDCG@10"], data=Data(on_topics="common"), inference=Inference(n_resamples=5))
    assert_frame_equal(qrels, before[0])
    assert_frame_equal(run, before[1])


# Output.


def test_values_are_the_frame_of_the_design():
    scores = score({"a": RUN, "b": RUN.iloc[:5]}, QRELS, [BNDCG, "nDCG@10"], data=Data(on_topics="all"))
    assert list(scores.values.columns) == V_COLUMNS
    assert len(scores.values) == 8
    assert set(scores.values["measure"]) == {BNDCG, "nDCG@10"}
    assert per_topic(scores, "a", BNDCG) == pytest.approx({"q1": 1.0, "q2": 1 / math.log2(3)})
    assert per_topic(scores, "b", "nDCG@10") == pytest.approx({"q1": 1.0, "q2": 0.0})
    assert scores.values["value"].dtype == np.float64


def test_intervals_are_the_frame_of_the_design_and_name_their_method():
    intervals = score(
        {"a": RUN},
        QRELS,
        [BNDCG, "nDCG@10"],
        inference=Inference(interval="percentile", level=0.9, n_resamples=50, seed=3),
    ).intervals
    assert list(intervals.columns) == C_COLUMNS
    assert intervals[["measure", "method", "level", "n_qids", "n_resamples", "seed"]].to_numpy().tolist() == [
        [BNDCG, "topics (percentile)", 0.9, 2, 50, 3],
        [BNDCG, "unjudged (normal)", 0.9, 2, 0, 3],
        ["nDCG@10", "topics (percentile)", 0.9, 2, 50, 3],
    ]
    assert not intervals[["value", "low", "high"]].isna().any(axis=None)


def test_means_keep_the_order_of_systems_and_measures():
    names, measures = ["z", "a", "m"], ["nDCG@10", BNDCG, "AP"]
    means = score(dict.fromkeys(names, RUN), QRELS, measures).means()
    assert means.index.tolist() == names
    assert means.columns.tolist() == measures


def test_thirty_systems_score_as_each_by_itself():
    qrels, _ = collection()
    runs = {f"system {i}": collection(100 + i)[1] for i in range(30)}
    measures = [BNDCG, "nDCG@10", "nDCG(judged_only=True)@10", "NDCGBound(side='upper',kind='posthoc',max_grade=2)@10"]
    together = score(runs, qrels, measures, inference=Inference(n_resamples=20))
    assert together.means().index.tolist() == list(runs)
    for name in ("system 0", "system 17", "system 29"):
        alone = score({name: runs[name]}, qrels, measures, inference=Inference(n_resamples=20))
        here = together.intervals[together.intervals["name"] == name].reset_index(drop=True)
        assert_frame_equal(here, alone.intervals)
    assert together.values["value"].notna().all()
    assert len(together.values) == 30 * 12 * 4


def test_a_progress_bar_changes_nothing_and_keeps_off_standard_output(capsys):
    runs = {"a": RUN, "b": RUN}
    with_bar = score(runs, QRELS, [BNDCG], execution=Execution(progress=True))
    assert_frame_equal(with_bar.intervals, score(runs, QRELS, [BNDCG]).intervals)
    assert capsys.readouterr().out == ""


# Values.


def test_ours_are_those_of_the_distribution():
    qrels, run = collection()
    distribution = vbterrier.unjudged.bootstrap_distribution(run, qrels, 10, prior="pool")
    scores = score(run, qrels, [f"BNDCG(prior='pool',stat='{stat}')@10" for stat in ("mean", "median", "std", "q95")])
    expected = (distribution.mean, distribution.median, distribution.std, distribution.quantile(0.95))
    assert scores.means().loc["run"].tolist() == pytest.approx([values.mean() for values in expected], abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*no documents for 20 of 50 topics:vbterrier.errors.DegenerateWarning")
def test_real_runs_score_as_ir_measures_says(shared_data):
    folder = shared_data / "trec-covid"
    runs = {"ance": folder / "run.ance.top100.txt.gz", "bb": folder / "run.BBGhelani2.top100.txt.gz"}
    measures = ["BNDCG(prior='pool')@10", BNDCG, "nDCG@10"]
    scores = score(
        runs,
        folder / "qrels.incomplete.txt.gz",
        measures,
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=100),
    )
    reference = ir_measures.calc_aggregate(
        [nDCG @ 10],
        ir_measures.read_trec_qrels(str(folder / "qrels.incomplete.txt.gz")),
        ir_measures.read_trec_run(str(runs["ance"])),
    )
    assert scores.means().loc["ance", "nDCG@10"] == pytest.approx(reference[nDCG @ 10], abs=1e-9)
    assert scores.missing.to_numpy().tolist() == [["ance", 50, 0], ["bb", 50, 20]]
    # All of the first ten documents of the second run were judged.
    nothing = pytest.approx(0.0, abs=1e-12)
    for measure, gain in ((measures[0], 0.0523), (measures[1], 0.0889)):
        gained = scores.means()[measure] - scores.means()["nDCG@10"]
        assert gained.to_dict() == {"ance": pytest.approx(gain, abs=1e-4), "bb": nothing}


@pytest.mark.parametrize("measures", [["NumRet", BNDCG], [BNDCG, "NumRet", "NumRel"]])
def test_counts_are_added_up_and_get_no_interval(measures):
    scores = score(RUN, QRELS, measures)
    counted = scores.intervals[scores.intervals["measure"] == "NumRet"]
    assert counted["value"].tolist() == [6.0]
    assert counted["method"].tolist() == ["none"]
    assert counted[["low", "high"]].isna().all(axis=None)
    assert counted["n_resamples"].tolist() == [0]


def test_intents_in_place_of_qrels():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "A"], "prob": [0.75, 0.25, 1.0]})
    run = RUN.assign(entity_id=["A", "A", "", "", "B", "A"])
    scores = score(run, intents, ["ES@2", "VB@2", "TopIntent@1"])
    assert per_topic(scores, "run", "ES@2") == {"q1": 0.75, "q2": 1.0}
    assert per_topic(scores, "run", "VB@2") == pytest.approx({"q1": 0.75 - math.sqrt(0.75 * 0.25), "q2": 1.0})
    assert per_topic(scores, "run", "TopIntent@1") == {"q1": 1.0, "q2": 0.0}


# Intervals.


@pytest.mark.parametrize("method", ["percentile", "bca", "studentised"])
def test_intervals_over_topics_are_those_of_the_values_in_order_of_topics_by_the_seeds_stream(method):
    qrels, run = collection()
    scores = score(
        {"mine": run}, qrels, [BNDCG, "AP"], inference=Inference(interval=method, level=0.8, n_resamples=99, seed=5)
    )
    for measure in (BNDCG, "AP"):
        values = np.array([value for _, value in sorted(per_topic(scores, "mine", measure).items())])
        expected = topics_interval(values, level=0.8, method=method, n_resamples=99, seed=5)
        rows = scores.intervals[(scores.intervals["measure"] == measure) & (scores.intervals["n_resamples"] > 0)]
        assert rows["method"].tolist() == [f"topics ({method})"]
        # Matrix products with further columns round differently.
        ends = rows[["low", "high"]].to_numpy(dtype=float)[0]
        assert ends == pytest.approx([expected.low, expected.high], abs=1e-12)


@pytest.mark.parametrize(("level", "z"), [(0.95, 1.959963984540054), (0.9, 1.6448536269514722)])
def test_the_unjudged_interval_of_the_mean_is_z_times_the_root_of_the_summed_variances_over_n(level, z):
    qrels, run = collection()
    distribution = vbterrier.unjudged.bootstrap_distribution(run, qrels, 10)
    row = (
        score(run, qrels, [BNDCG], inference=Inference(level=level))
        .intervals.set_index("method")
        .loc["unjudged (normal)"]
    )
    weak = vbterrier.unjudged.bootstrap_distribution(run, qrels, 10, prior_strength=2)
    reach, mean = z * math.sqrt((weak.std**2).sum()) / len(distribution), distribution.mean.mean()
    assert reach > 0.01
    assert [row["low"], row["high"]] == pytest.approx([mean - reach, mean + reach], abs=1e-12)


def test_only_the_mean_gets_an_interval_over_unjudged_documents():
    qrels, run = collection()
    others = ["BNDCG(prior='run',stat='median')@5", "BNDCG(prior='run',stat='std')@5", "Unjudged@5", "nDCG@5"]
    intervals = score(run, qrels, ["BNDCG(prior='run')@5", *others], inference=Inference(n_resamples=9)).intervals
    assert intervals["measure"].tolist() == ["BNDCG(prior='run')@5"] * 2 + others
    assert intervals["method"].tolist() == ["topics (unseen)", "unjudged (normal)"] + ["topics (unseen)"] * 4


def test_the_seed_decides_intervals_and_nothing_else():
    qrels, run = collection()
    first, again, other = (
        score(run, qrels, [BNDCG], inference=Inference(interval="percentile", n_resamples=50, seed=seed))
        for seed in (1, 1, 2)
    )
    assert_frame_equal(first.intervals, again.intervals)
    assert_frame_equal(first.values, other.values)
    assert first.intervals["low"].tolist() != other.intervals["low"].tolist()


def test_one_topic_gets_nan_for_topics_a_warning_and_still_an_interval_for_what_is_unjudged():
    with pytest.warns(DegenerateWarning, match="at least two") as record:
        intervals = score(RUN.iloc[:4], QRELS.iloc[:3], [BNDCG]).intervals.set_index("method")
    assert len(record) == 1
    assert intervals.loc["topics (unseen)", ["low", "high"]].isna().all()
    assert intervals.loc["unjudged (normal)", "low"] == 1.0


# Measures estimated by a model.


def evidence():
    """Judgments and three runs, each with documents that only it retrieves."""
    qrels, run = collection()
    return qrels, {"a": run, "b": collection(1)[1], "c": collection(2)[1].query("docno > 'd2'")}


@pytest.mark.parametrize("labelled", [False, True])
def test_estimates_are_those_of_one_model_of_all_runs_and_labels(labelled):
    qrels, runs = evidence()
    labels = {"judge": collection(3)[0]} if labelled else None
    result = score(
        runs, qrels, ["ENDCG@10", "EP@5", "nDCG@10"], data=Data(labels=labels), inference=Inference(level=0.9)
    )
    model = fit(runs, qrels, cutoff=10, labels=labels)
    assert result.model.digest == model.digest
    models = result.values.groupby("measure")["model"].unique().map(list).to_dict()
    assert models == {"ENDCG@10": [model.digest], "EP@5": [model.digest], "nDCG@10": [""]}
    judgments = Judgments(qrels)
    for measure, cutoff, metric in (("ENDCG@10", 10, metrics.NDCG()), ("EP@5", 5, metrics.Precision(1))):
        of_mean = result.intervals.query("measure == @measure and method == 'unjudged (normal)'").set_index("name")
        for name, run in runs.items():
            distribution = model.distribution(judgments.judge(Run(run), cutoff), metric)
            expected = dict(zip(distribution.topics, distribution.mean, strict=True))
            assert per_topic(result, name, measure) == pytest.approx(expected, abs=1e-12)
            # Topics share the errors of the model, so the variance is that of the mean of each draw.
            reach = 1.6448536269514722 * distribution.draws.mean(axis=1).std()
            mean = distribution.mean.mean()
            assert of_mean.loc[name, ["low", "high"]].tolist() == pytest.approx([mean - reach, mean + reach], abs=1e-12)


def test_a_fitted_model_gives_a_run_the_same_estimate_in_any_company(tmp_path):
    qrels, runs = evidence()
    together = score(runs, qrels, ["ENDCG@10"]).means()
    model = fit(runs, qrels).register("scores")
    folder = model.save(tmp_path / "model")
    for source in (model, "scores", model.digest, folder, str(folder)):
        alone = score({"b": runs["b"]}, qrels, ["ENDCG@10"], data=Data(model=source))
        assert alone.means().loc["b"].tolist() == together.loc["b"].tolist()
        named = f"ENDCG(model='{source}')@10"
        if isinstance(source, str):
            assert score({"b": runs["b"]}, qrels, [named]).means().loc["b"].tolist() == together.loc["b"].tolist()
    # Without it, another run is no evidence.
    assert score({"b": runs["b"]}, qrels, ["ENDCG@10"]).means().loc["b"].tolist() != together.loc["b"].tolist()


@pytest.mark.filterwarnings("ignore:.* documents of .* are unjudged")
def test_notes_name_the_model_and_say_why_the_estimate_of_a_judged_run_is_not_its_score():
    qrels, runs = evidence()
    judged = qrels.groupby("qid").head(12).drop(columns="label")
    runs = {"odd\u202e name": judged.assign(score=-np.arange(len(judged), dtype=float)), **runs}
    result = score(runs, qrels, ["ENDCG@10", "nDCG@10", "Unjudged@10"], inference=Inference(n_resamples=2))
    means = result.means()
    assert means.iloc[0]["Unjudged@10"] == 0 < means.iloc[1]["Unjudged@10"]
    first, second = result.notes
    assert first.startswith("ENDCG@10 estimates nDCG@10, judged to depth ")
    assert second.startswith(
        f"ENDCG@10 is {means.iloc[0]['ENDCG@10']:.3f} and nDCG@10 {means.iloc[0]['nDCG@10']:.3f} although the first 10 "
        "documents of odd\\u202e name are all judged: ENDCG estimates"
    )


# Topics.


def test_runs_that_differ_in_topics_are_refused_unless_told_what_to_do():
    runs = {"whole": RUN, "part": RUN.iloc[:4]}
    words = (
        r"run 'whole' has 2 of the 2 topics, run 'part' has 1, and they differ in 'q2': means over different topics "
        r"are not comparable; ask for data=Data\(on_topics='common'\) .* or data=Data\(on_topics='all'\)"
    )
    with pytest.raises(InputError, match=words):
        score(runs, QRELS, [BNDCG])
    assert score(runs, QRELS, [BNDCG], data=Data(on_topics="all")).means().loc["part", BNDCG] == 0.5
    with pytest.warns(DegenerateWarning, match="at least two"):
        common = score(runs, QRELS, [BNDCG, "nDCG@10"], data=Data(on_topics="common"))
    assert common.means().to_numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert common.missing["n_qids"].tolist() == [1, 1]
    assert common.missing["n_missing"].tolist() == [0, 0]


def test_a_topic_that_all_runs_lack_is_no_difference():
    runs = {"a": RUN.iloc[:4], "b": RUN.iloc[:3]}
    assert score(runs, QRELS, [BNDCG]).means()[BNDCG].tolist() == [0.5, 0.5]


def test_topics_without_judgments_are_no_difference_either():
    extra = pd.concat([RUN, RUN.iloc[:1].assign(qid="q9")])
    with pytest.warns(DegenerateWarning, match=r"run 'b': 1 topic is not in qrels and is left out \('q9'\)") as record:
        means = score({"a": RUN, "b": extra}, QRELS, [BNDCG, "nDCG@10"]).means()
    assert len(record) == 1
    assert means.nunique().tolist() == [1, 1]


def test_common_topics_of_whole_number_ids():
    runs = {"a": RUN, "b": RUN.iloc[:4]}
    numbered = {name: run.assign(qid=run["qid"].str[1:].astype(int)) for name, run in runs.items()}
    qrels = QRELS.assign(qid=QRELS["qid"].str[1:].astype(int))
    with pytest.warns(DegenerateWarning, match="at least two"):
        scores = score(numbered, qrels, [BNDCG], data=Data(on_topics="common"))
    assert scores.values["qid"].tolist() == ["1", "1"]


# Diversity.


def subtopic_scores(qrels, run, measure, **options):
    judged = [pyndeval.SubtopicQrel(*row) for row in qrels.itertuples(index=False)]
    rows = run.sort_values(["qid", "score"], ascending=[True, False])
    listed = [pyndeval.ScoredDoc(*row) for row in rows.itertuples(index=False)]
    result = pyndeval.RelevanceEvaluator(judged, [measure], **options).evaluate(listed)
    return {qid: values[measure] for qid, values in result.items()}


def test_two_settings_of_a_diversity_measure_in_one_call_are_both_right_although_rows_are_interleaved():
    qrels, run = diversity()
    measures = ["alpha_nDCG@5", "alpha_nDCG(alpha=0.9)@5", "alpha_nDCG@10", "ERR_IA@5", "VB@5"]
    scores = score(run.sample(frac=1, random_state=3), qrels.sample(frac=1, random_state=4), measures)
    names = ["alpha-nDCG@5", "alpha-nDCG@5", "alpha-nDCG@10", "ERR-IA@5"]
    for measure, name in zip(measures, names, strict=False):
        expected = subtopic_scores(qrels, run, name, **({"alpha": 0.9} if "0.9" in measure else {}))
        assert per_topic(scores, "run", measure) == pytest.approx(expected, abs=1e-9)
        assert max(expected.values()) > 0.1
    assert len(scores.means().columns) == 5


def test_judged_only_of_a_diversity_measure_is_the_measure_of_the_condensed_run():
    qrels, run = diversity()
    kept = run.merge(qrels[["qid", "docno"]].drop_duplicates())
    assert len(kept) < len(run)
    scores = score(run, qrels, ["alpha_nDCG(judged_only=True)@5", "alpha_nDCG@5", "ES@5"])
    condensed = per_topic(scores, "run", "alpha_nDCG(judged_only=True)@5")
    assert condensed == pytest.approx(subtopic_scores(qrels, kept, "alpha-nDCG@5"), abs=1e-9)
    assert condensed != pytest.approx(per_topic(scores, "run", "alpha_nDCG@5"), abs=1e-3)


def test_entity_runs_are_scored_on_links_without_a_word_of_documents():
    pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Paris", "Texas"]})
    links = vbterrier.entities.link_pool(pool, tags, pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]}))
    entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        warnings.filterwarnings("ignore", "an interval over topics needs")
        scores = score(entities, links, ["RelCov@5", "NonRelCov@5"])
        assert scores.values.equals(score(entities, links.to_frame(), ["RelCov@5", "NonRelCov@5"]).values)
    assert scores.means().to_numpy().tolist() == [[1.0, 0.0]]


def test_the_best_share_of_the_systems():
    qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    lists = {"bad": "b", "good": "a", "middle": "ba", "also bad": "b"}
    runs = {
        name: frame_of([("q1", docno, -float(n)) for n, docno in enumerate(listed)], "qid", "docno", "score")
        for name, listed in lists.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        result = score(runs, qrels, ["nDCG@10", "P@1"], inference=Inference(n_resamples=2))
    assert result.best() == ["good", "middle", "bad"]
    assert result.best(0.01) == ["good"]
    assert result.best(1, "P@1") == ["good", "bad", "middle", "also bad"]
    with pytest.raises(ParameterError, match="measure='AP'"):
        result.best(measure="AP")


@pytest.mark.parametrize(
    "text", ["BNDCG(prior='pool')@10", "BAP(prior='pool',prior_strength=5)@10", "BP(prior='run')@5"]
)
def test_means_and_their_variances_over_unjudged_documents_are_computed_together(text, monkeypatch):
    calls = []
    moments = distribution.moments
    monkeypatch.setattr(distribution, "moments", lambda *args, **how: calls.append(how) or moments(*args, **how))
    qrels, run = collection()
    result = score({"mine": run}, qrels, [text])
    # The mean is that of independent draws; intervals have another strength unless one is given.
    expected = [{"with_variance": True}, {"with_variance": False}]
    assert calls == (expected[:1] if "strength" in text else expected)
    assert "unjudged (normal)" in set(result.intervals["method"])


def test_intervals_without_a_seed_are_those_of_the_documented_seed_0():
    qrels, run = collection()
    result, zero, other = (
        score({"mine": run}, qrels, ["nDCG@10"], inference=Inference(interval="percentile", **seed)).intervals
        for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert_frame_equal(result, zero, check_exact=True)
    assert result["seed"].tolist() == [0]
    assert result[["low", "high"]].to_numpy().tolist() != other[["low", "high"]].to_numpy().tolist()
