"""TrecTools: its objects and its style, our numbers."""

import inspect
import math
import re

import pandas as pd
import pytest
from scipy.stats import ttest_rel
from trectools import TrecEval, TrecQrel, TrecRes, TrecRun, misc, procedures

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError, VBTerrierError
from vbterrier.evaluate.trectools import VBTrecEval
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.hosts import trectools as hosts
from vbterrier.settings import Data, Inference

# TrecTools calls pandas as older versions allow.
pytestmark = [
    pytest.mark.filterwarnings("ignore:DataFrameGroupBy.apply operated on the grouping columns:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The default of observed=False is deprecated:FutureWarning"),
]

RUN = "q1 Q0 d1 1 3.0 t\nq1 Q0 d9 2 2.0 t\nq1 Q0 d2 3 1.0 t\nq2 Q0 d5 1 2.0 t\nq2 Q0 d4 2 1.0 t\n"
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq1 0 d6 2\nq2 0 d4 1\nq2 0 d5 0\nq3 0 d7 1\n"
SUBTOPICS = "q1 1 d1 1\nq1 2 d1 0\nq1 2 d2 1\nq1 3 d7 1\nq2 1 d4 1\nq2 2 d5 0\n"


@pytest.fixture
def files(tmp_path):
    """Names of a run, judgments and diversity judgments."""
    texts = {"a.run": RUN, "qrels.txt": QRELS, "subtopics.txt": SUBTOPICS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


@pytest.fixture
def evaluation(files):
    return VBTrecEval(TrecRun(files["a.run"]), TrecQrel(files["qrels.txt"]))


@pytest.fixture(scope="module")
def covid(shared_data):
    folder = shared_data / "trec-covid"
    return str(folder / "run.ance.top100.txt.gz"), str(folder / "qrels.incomplete.txt.gz")


@pytest.fixture(scope="module")
def covid_evaluation(covid):
    return VBTrecEval(TrecRun(covid[0]), TrecQrel(covid[1]))


def ours(files, measure, qrels="qrels.txt"):
    """What the measure itself says of each query."""
    scores = vbterrier.score(files["a.run"], files[qrels], [measure], inference=Inference(n_resamples=2))
    return dict(zip(scores.values["qid"], scores.values["value"], strict=True))


def column(frame, name):
    assert list(frame.columns) == [name]
    assert frame.index.name == "query"
    return frame[name].to_dict()


# Each method.

BOOTSTRAPPED = {
    "BNDCG": {"dcg": "exp-log2", "stat": "hi", "level": 0.5},
    "BRBP": {"p": 0.5, "rel": 1},
    "BP": {"rel": 2, "stat": "hi"},
    "BAP": {"prior": "pool"},
    "BERR": {"max_grade": 3},
    "BQ": {"beta": 2, "prior": "pool", "prior_strength": 4},
}


@pytest.mark.parametrize("name", BOOTSTRAPPED)
@pytest.mark.parametrize("depth", [1, 3, 10])
def test_every_bootstrapped_measure_is_at_hand(evaluation, files, depth, name):
    for parameters in ({}, BOOTSTRAPPED[name]):
        expected = ours(files, getattr(vbterrier, name)(**parameters) @ depth)
        frame = evaluation.get_bootstrapped(name, depth, per_query=True, **parameters)
        assert column(frame, f"{name}@{depth}") == expected
        mean = evaluation.get_bootstrapped(name, depth, **parameters)
        assert isinstance(mean, float)
        assert mean == pytest.approx(sum(expected.values()) / 3, abs=1e-15)
        if name == "BNDCG":
            pd.testing.assert_frame_equal(evaluation.get_bootstrapped_ndcg(depth, True, **parameters), frame)
            assert evaluation.get_bootstrapped_ndcg(depth=depth, **parameters) == mean


@pytest.mark.parametrize("name", ["ndcg", "bap", "VB", "AP", None])
def test_a_measure_that_is_not_bootstrapped_is_refused(evaluation, name):
    names = ", ".join(repr(measure.NAME) for measure in vbterrier.measures.BOOTSTRAPPED)
    with pytest.raises(ParameterError, match=f"measure=.*: wanted one of {names}"):
        evaluation.get_bootstrapped(name)


@pytest.mark.parametrize("kind", ["naive", "rbp", "guaranteed", "posthoc"])
def test_bounds_are_the_measures(evaluation, files, kind):
    scale = {} if kind == "naive" else {"max_grade": 2}
    frame = evaluation.get_ndcg_bounds(depth=5, per_query=True, kind=kind, **scale)
    assert list(frame.columns) == ["lower@5", "upper@5"]
    assert frame.index.name == "query"
    for side in ("lower", "upper"):
        assert frame[f"{side}@5"].to_dict() == ours(files, vbterrier.NDCGBound(side=side, kind=kind, **scale) @ 5)
    means = evaluation.get_ndcg_bounds(depth=5, kind=kind, **scale)
    if kind == "guaranteed":
        pd.testing.assert_frame_equal(evaluation.get_ndcg_bounds(5, per_query=True, **scale), frame)
    assert means.to_dict() == pytest.approx(frame.mean().to_dict(), abs=1e-15)
    assert frame["lower@5"]["q1"] < frame["upper@5"]["q1"]


def test_unjudged_overrides_trectools_with_the_share_of_what_was_retrieved(evaluation, files):
    assert column(evaluation.get_unjudged(depth=10, per_query=True), "UNJ@10") == {"q1": 1 / 3, "q2": 0.0, "q3": 0.0}
    assert evaluation.get_unjudged(depth=10) == pytest.approx(1 / 9)
    assert evaluation.get_unjudged(2, True, False)["UNJ@2"].to_dict() == ours(files, "Unjudged@2")
    theirs = TrecEval(evaluation.run, evaluation.qrels).get_unjudged(10, per_query=True)
    assert theirs["UNJ@10"].to_dict() == {"q1": 0.1, "q2": 0.0}


@pytest.mark.parametrize("depth", [1, 2, 10])
def test_vb_and_expected_success_are_those_of_the_second_column(files, depth):
    evaluation = VBTrecEval(TrecRun(files["a.run"]), TrecQrel(files["subtopics.txt"]))
    success = evaluation.get_expected_success(depth=depth, per_query=True)
    assert column(success, f"ES@{depth}") == ours(files, vbterrier.ES @ depth, "subtopics.txt")
    score = evaluation.get_vb_score(depth=depth, per_query=True, alpha=0.5)
    assert column(score, f"VB@{depth}") == ours(files, vbterrier.VB(alpha=0.5) @ depth, "subtopics.txt")
    assert evaluation.get_expected_success(depth) == pytest.approx(success[f"ES@{depth}"].mean())
    assert evaluation.get_vb_score(depth, alpha=0.5) == pytest.approx(score[f"VB@{depth}"].mean())


def test_trectools_own_measures_still_work_and_frames_look_as_theirs(evaluation):
    there = TrecEval(evaluation.run, evaluation.qrels).get_ndcg(depth=10, per_query=True)
    pd.testing.assert_frame_equal(evaluation.get_ndcg(depth=10, per_query=True), there)
    here = evaluation.get_bootstrapped_ndcg(per_query=True)
    assert (here.index.name, here.columns.name) == (there.index.name, there.columns.name)
    assert set(there.index) <= set(here.index)
    assert here.index.is_monotonic_increasing
    # A query without retrieved documents counts as an empty ranking.
    assert here.loc["q3", "BNDCG@10"] == 0.0


# Real runs.


@pytest.mark.parametrize(
    "parameters", [{}, {"prior": "pool"}, {"prior": "run", "all_unjudged": "zero", "stat": "median"}], ids=str
)
def test_real_runs_score_with_the_labels_below_zero_that_trectools_drops(covid, covid_evaluation, parameters):
    # Two documents of topic 50 have one.
    qrels = vbterrier.read_qrels(covid[1])
    assert len(qrels) - len(covid_evaluation.qrels.qrels_data) == 2
    process = {name: value for name, value in parameters.items() if name != "stat"}
    expected = vbterrier.unjudged.bootstrap_distribution(vbterrier.read_run(covid[0]), qrels, **process)
    frame = covid_evaluation.get_bootstrapped_ndcg(per_query=True, **parameters)
    values = getattr(expected, parameters.get("stat", "mean"))
    assert frame["BNDCG@10"].to_dict() == dict(zip(expected.topics, values.tolist(), strict=True))


def test_from_frames_labels_below_zero_are_judgments(covid):
    run, qrels = vbterrier.read_run(covid[0]), vbterrier.read_qrels(covid[1])
    expected = vbterrier.unjudged.bootstrap_distribution(run, qrels)
    frame = VBTrecEval.from_frames(run, qrels).get_bootstrapped_ndcg(per_query=True)
    assert frame["BNDCG@10"].to_dict() == dict(zip(expected.topics, expected.mean.tolist(), strict=True))


def test_shares_of_unjudged_documents_are_trectools_where_all_rankings_are_long_enough(covid_evaluation):
    theirs = TrecEval(covid_evaluation.run, covid_evaluation.qrels)
    for depth in (5, 10, 100):
        assert covid_evaluation.get_unjudged(depth) == pytest.approx(theirs.get_unjudged(depth), abs=1e-12)


def test_the_naive_lower_bound_is_trec_evals_ndcg(covid, covid_evaluation):
    import pytrec_eval

    run, qrels = vbterrier.read_run(covid[0]), vbterrier.read_qrels(covid[1])
    nested = {q: dict(zip(rows["docno"], rows["label"].tolist(), strict=True)) for q, rows in qrels.groupby("qid")}
    ranked = {q: dict(zip(rows["docno"], rows["score"], strict=True)) for q, rows in run.groupby("qid")}
    result = pytrec_eval.RelevanceEvaluator(nested, {"ndcg_cut_10"}).evaluate(ranked)
    lower = covid_evaluation.get_ndcg_bounds(10, per_query=True, kind="naive")["lower@10"]
    assert lower.to_dict() == pytest.approx({qid: value["ndcg_cut_10"] for qid, value in result.items()}, abs=1e-9)


# From frames.


def frames():
    run = pd.DataFrame({"qid": "001", "docno": ["7", "007"], "score": [2.0, 1.0], "rank": [5, 9], "name": "x"})
    qrels = pd.DataFrame({"qid": ["001", "001"], "docno": ["007", "7"], "label": [1, 0]})
    return run, qrels


def test_ids_from_frames_of_pandas_and_polars_stay_as_they_are():
    def values_by_topic(*arguments):
        return VBTrecEval.from_frames(*arguments).get_bootstrapped_ndcg(per_query=True)["BNDCG@10"].to_dict()

    assert values_by_topic(*frames()) == {"001": 1 / math.log2(3)}
    polars = pytest.importorskip("polars")
    assert values_by_topic(*map(polars.from_pandas, frames())) == {"001": 1 / math.log2(3)}


def test_files_read_by_trectools_have_lost_their_zeros(tmp_path):
    (tmp_path / "a.run").write_text("001 Q0 7 1 2.0 t\n001 Q0 008 2 1.0 t\n")
    (tmp_path / "qrels.txt").write_text("001 0 7 0\n001 0 008 1\n")
    evaluation = VBTrecEval(TrecRun(str(tmp_path / "a.run")), TrecQrel(str(tmp_path / "qrels.txt")))
    assert evaluation.get_bootstrapped_ndcg(per_query=True).index.tolist() == ["1"]


def test_frames_become_objects_that_trectools_takes():
    run, qrels = frames()
    evaluation = VBTrecEval.from_frames(run, qrels, name="mine")
    assert evaluation.run.run_data.to_numpy().tolist() == [
        ["001", "Q0", "7", 1, 2.0, "mine"],
        ["001", "Q0", "007", 2, 1.0, "mine"],
    ]
    assert list(evaluation.run.run_data.columns) == ["query", "q0", "docid", "rank", "score", "system"]
    assert list(evaluation.qrels.qrels_data.columns) == ["query", "q0", "docid", "rel"]
    assert evaluation.get_runid() == "mine"
    assert evaluation.get_precision(depth=1) == 0.0
    assert evaluation.get_precision(depth=2) == 0.5


def test_columns_that_measures_read_are_kept():
    run, qrels = frames()
    prob = [[0.25, 0.75], [1.0]]
    evaluation = VBTrecEval.from_frames(run.assign(entity_id=["A", "B"], grade_prob=prob), qrels)
    assert evaluation.run.run_data[["entity_id", "grade_prob"]].to_numpy().tolist() == [["A", prob[0]], ["B", prob[1]]]
    assert evaluation.get_precision(depth=2) == 0.5
    subtopics = VBTrecEval.from_frames(run, qrels.assign(iteration=["1", "2"], label=1))
    assert subtopics.get_expected_success(depth=1) == 0.5


def test_frames_and_objects_of_trectools_are_never_changed():
    run, qrels = frames()
    evaluation = VBTrecEval.from_frames(run, qrels)
    data = evaluation.run.run_data.copy(), evaluation.qrels.qrels_data.copy()
    evaluation.get_bootstrapped_ndcg()
    evaluation.get_unjudged()
    for result, expected in zip((run, qrels), frames(), strict=True):
        pd.testing.assert_frame_equal(result, expected)
    for result, expected in zip((evaluation.run.run_data, evaluation.qrels.qrels_data), data, strict=True):
        pd.testing.assert_frame_equal(result, expected)


def test_an_empty_run_of_frames_scores_zero_with_a_warning():
    run, qrels = frames()
    with pytest.warns(DegenerateWarning, match="run 'vbterrier': empty; its topic scores 0"):
        assert VBTrecEval.from_frames(run.iloc[:0], qrels).get_bootstrapped_ndcg() == 0.0


# What is refused.


def test_objects_of_another_kind_are_refused_as_trectools_does(evaluation):
    with pytest.raises(TypeError, match='"run" should be a TrecRun object'):
        VBTrecEval(evaluation.qrels, evaluation.qrels)
    with pytest.raises(TypeError, match='"qrels" should be a TrecQrel object'):
        VBTrecEval(evaluation.run, evaluation.run)
    with pytest.raises(TypeError, match="TrecRun"):
        VBTrecEval(*frames())


def test_objects_without_data_are_refused_with_the_remedy(evaluation):
    for run, qrels in ((TrecRun(), evaluation.qrels), (evaluation.run, TrecQrel())):
        with pytest.raises(VBTerrierError, match="must hold data: read a file, or load a data frame, first") as caught:
            VBTrecEval(run, qrels)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run, qrels: (pd.concat([run, run[:1]]), qrels), "document '7' is duplicated for query '001'"),
        (
            lambda run, qrels: (run.drop(columns=["score", "rank"], errors="ignore"), qrels),
            "run: wanted columns qid, docno, score; missing score",
        ),
        (lambda run, qrels: (run, qrels[["qid", "docno"]]), "qrels: wanted columns qid, docno, label; missing label"),
    ],
)
def test_frames_that_cannot_be_evaluated_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        VBTrecEval.from_frames(*change(*frames()))


@pytest.mark.parametrize("depth", [0, -1, 2.5])
def test_parameters_are_checked(evaluation, depth):
    for method in (evaluation.get_bootstrapped_ndcg, evaluation.get_unjudged, evaluation.get_ndcg_bounds):
        with pytest.raises(ParameterError, match="whole number"):
            method(depth=depth)
    with pytest.raises(ParameterError, match=r"BNDCG has no parameter 'priors'; .* Did you mean prior\?"):
        evaluation.get_bootstrapped_ndcg(priors="pool")


# Any measure.


@pytest.fixture
def pair(files, tmp_path):
    """Two runs, and judgments of the topics of both and of a third topic."""
    (tmp_path / "b.run").write_text("q1 Q0 d2 1 3.0 b\nq1 Q0 d3 2 2.0 b\nq2 Q0 d8 1 2.0 b\nq2 Q0 d4 2 1.0 b\n")
    return TrecRun(files["a.run"]), TrecRun(str(tmp_path / "b.run")), TrecQrel(files["qrels.txt"])


@pytest.mark.parametrize(
    "measure", ["nDCG@10", "AP(rel=2)", "BNDCG(prior='pool')@10", "Unjudged@3", "RR", vbterrier.BAP @ 5], ids=str
)
def test_any_measure_by_its_text(evaluation, files, measure):
    expected = ours(files, measure)
    assert column(evaluation.get(measure, per_query=True), str(measure)) == expected
    assert evaluation.get(measure) == pytest.approx(sum(expected.values()) / 3, abs=1e-15)
    assert isinstance(evaluation.get(measure), float)


def test_measures_of_intents_with_frames(files, evaluation):
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "C"], "prob": [0.75, 0.25, 1.0]})
    tags = pd.DataFrame({"docno": ["d1", "d2", "d4"], "entity_id": ["A", "B", "C"]})
    judged = hosts.trectools_qrels(hosts.qrels_frame(evaluation.qrels)[lambda rows: rows["qid"] != "q3"], "two topics")
    bound = VBTrecEval(evaluation.run, judged, intents=intents, tags=tags)
    expected = {"q1": 0.75, "q2": 0.0}
    assert column(bound.get("ES@2", per_query=True), "ES@2") == expected | {"q2": 1.0}
    assert bound.get_expected_success(depth=1) == pytest.approx(0.375)
    run = vbterrier.read_run(files["a.run"]).assign(entity_id=["A", "X", "B", "X", "C"])
    assert column(VBTrecEval.from_frames(run, intents).get("ES@1", per_query=True), "ES@1") == expected


def links():
    """A pool of two topics: in the second, no document is relevant."""
    rows = [("q1", "d1", "Paris", 1), ("q1", "d2", "Texas", 0), ("q2", "d1", "Paris", 0), ("q2", "d2", "Texas", 0)]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "entity_id", "label"])
    return frame.assign(rank=0, weight=1.0)


def entities():
    return pd.DataFrame({"qid": ["q1", "q2"], "docno": "Paris", "score": 1.0})


@pytest.mark.parametrize("qrels", [links(), LinkedPool.from_frame(links())], ids=["frame", "pool"])
def test_coverage_with_a_linked_pool_instead_of_qrels(qrels):
    evaluation = VBTrecEval.from_frames(entities(), qrels, name="linker")
    # RelCov has no value for the second topic, which its mean leaves out.
    assert column(evaluation.get("RelCov@20", per_query=True), "RelCov@20") == {"q1": 1.0}
    assert evaluation.get("RelCov@20") == 1.0
    assert evaluation.get("NonRelCov@20") == 0.25
    if isinstance(qrels, LinkedPool):
        assert VBTrecEval(evaluation.run, qrels).get("NonRelCov@20") == 0.25
    for method in (evaluation.get_ndcg, evaluation.get_map, evaluation.evaluate_all):
        with pytest.raises(InputError, match=r"(get|evaluate)_\w+: reads judgments of documents, .*use get\(measure\)"):
            method()


def test_linking_with_gold_answers():
    gold = pd.DataFrame({"qid": ["m1", "m2", "m3"], "entity_id": ["A", "NIL", "C"]})
    answers = pd.DataFrame({"qid": ["m1", "m2", "m3"], "docno": ["A", "NIL", "B"], "score": 1.0})
    evaluation = VBTrecEval.from_frames(answers, gold)
    expected = (
        vbterrier.score({"mine": answers}, gold, ["LinkP", "LinkingF1"], inference=Inference(n_resamples=2))
        .means()
        .loc["mine"]
    )
    assert evaluation.get("LinkP") == expected["LinkP"] == 0.5
    assert evaluation.get("LinkingF1") == expected["LinkingF1"]


@pytest.mark.parametrize("measure", ["nDGC@10", "BNDCG@0", "RelCov@", 5])
def test_what_is_no_measure_is_refused(evaluation, measure):
    with pytest.raises((ParameterError, AttributeError, TypeError)):
        evaluation.get(measure)


# Models of unjudged documents.


@pytest.mark.slow
def test_estimates_use_all_runs_or_a_model(pair):
    a, b, qrels = pair
    frames = {run.get_runid(): hosts.run_frame(run) for run in (a, b)}
    judged = hosts.qrels_frame(qrels)
    measures = ["ENDCG@10", "EAP@5", "nDCG@10"]
    expected = vbterrier.score(frames, judged, measures, data=Data(on_topics="all"), inference=Inference(n_resamples=2))
    values = expected.values[expected.values["name"] == "t"].set_index(["measure", "qid"])["value"]
    model = vbterrier.unjudged.fit(frames, judged, cutoff=10).register("trectools")
    for options in (
        dict(runs=[a, b]),
        dict(runs={"t": a, "b": frames["b"]}),
        dict(model=model),
        dict(model="trectools"),
    ):
        evaluation = VBTrecEval(a, qrels, **options)
        for measure in measures[:2]:
            result = column(evaluation.get(measure, per_query=True), measure)
            if "runs" in options or measure == "ENDCG@10":
                assert result == values[measure].to_dict()
        assert evaluation.get("ENDCG@10") == expected.means().loc["t", "ENDCG@10"]
        assert model.digest in evaluation.results("ENDCG@10").notes[0]
        assert evaluation.results("nDCG@10").notes == ()
    assert VBTrecEval(a, qrels).get("ENDCG(model='trectools')@10") == expected.means().loc["t", "ENDCG@10"]


def test_estimates_without_a_model_are_refused_with_both_remedies(pair):
    a, b, qrels = pair
    for options in ({}, {"runs": [a]}):
        with pytest.raises(InputError, match=r"ENDCG@10: .* give runs=, .* or model=, .*unjudged\.fit"):
            VBTrecEval(a, qrels, **options).get("ENDCG@10")
    with pytest.raises(ParameterError, match="leave one of them out"):
        VBTrecEval(a, qrels, runs=[b], model="trectools")
    with pytest.raises(InputError, match="another run than that of the evaluation is called 't'"):
        VBTrecEval(a, qrels, runs={"t": b})
    with pytest.raises(InputError, match="two systems are called 'b'"):
        VBTrecEval(a, qrels, runs=[b, b])


# TrecTools' own tables, correlations and plots.


def test_results_work_with_the_functions_of_trectools(pair, tmp_path):
    a, b, qrels = pair
    one, two = VBTrecEval(a, qrels, runs=[a, b]).results_of_runs(["nDCG@10", "BNDCG@10"])
    assert [result.get_runid() for result in (one, two)] == ["t", "b"]
    assert isinstance(one, TrecRes)
    scores = vbterrier.score({"t": hosts.run_frame(a), "b": hosts.run_frame(b)}, hosts.qrels_frame(qrels), ["nDCG@10"])
    means = scores.means()["nDCG@10"]
    assert one.get_result("nDCG@10") == means["t"]
    by_topic = scores.values[scores.values["name"] == "t"].set_index("qid")["value"].to_dict()
    assert one.get_results_for_metric("nDCG@10") == by_topic
    assert one.get_result("nDCG@10", "q1") == by_topic["q1"]
    others = scores.values[scores.values["name"] == "b"]["value"].tolist()
    assert one.compare_with(two, "nDCG@10").pvalue == ttest_rel(list(by_topic.values()), others).pvalue
    # Correlations of two rankings of systems.
    ranked = [misc.sort_systems_by([two, one], metric) for metric in ("nDCG@10", "BNDCG@10")]
    assert ranked[0] == sorted(zip(means, means.index, strict=True), reverse=True)
    for kind in ("kendall", "pearson", "spearman", "tauap"):
        assert misc.get_correlation(*ranked, kind)[0] == pytest.approx(1.0)
    # Plots.
    plotted = procedures.extract_metric_from_results([one, two], "nDCG@10")
    assert plotted[0][:2] == ("t", pytest.approx(means["t"]))
    procedures.plot_system_rank(plotted, "nDCG@10", str(tmp_path / "ranks.png"))
    assert (tmp_path / "ranks.png").stat().st_size > 1000
    # Tables.
    one.printresults(str(tmp_path / "table.csv"))
    table = pd.read_csv(tmp_path / "table.csv", index_col="query")
    assert table.loc["all", "nDCG@10"] == pytest.approx(means["t"])
    assert table["nDCG@10"].drop("all").to_dict() == pytest.approx(by_topic)
    assert VBTrecEval(a, qrels).results("nDCG@10", per_query=False).data.to_numpy().tolist() == [
        ["nDCG@10", "all", means["t"]]
    ]


@pytest.mark.slow
def test_results_stand_beside_those_of_trectools(evaluation):
    there = TrecEval(evaluation.run, evaluation.qrels).evaluate_all(per_query=True)
    here = evaluation.results(["P@10", "nDCG@10"])
    assert list(here.data.columns) == ["metric", "query", "value"]
    assert set(here.data.columns) == set(there.data.columns)
    assert here.get_runid() == there.get_runid() == "t"
    assert here.get_results_for_metric("P@10")["q1"] == there.get_results_for_metric("P_10")["q1"]


# Topics of means.

OF_RUN_TOPICS = (
    "get_reciprocal_rank get_geometric_map get_map get_rprec get_ndcg get_bpref get_precision get_recall get_rbp "
    "evaluate_all"
)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
# TrecTools with pandas before 3.
@pytest.mark.filterwarnings("ignore:DataFrameGroupBy.apply operated on the grouping columns:FutureWarning")
@pytest.mark.parametrize("method", OF_RUN_TOPICS.split())
def test_means_of_trectools_over_other_topics_give_a_warning(pair, method):
    a, _, qrels = pair
    evaluation = VBTrecEval(a, qrels)
    with pytest.warns(
        DegenerateWarning, match=rf"{method}: TrecTools averages over the 2 topics of the run, of which 2 "
    ):
        result = getattr(evaluation, method)()
    averages = getattr(TrecEval(a, qrels), method)()
    assert (
        result.data.equals(averages.data) if method == "evaluate_all" else result == averages
    ) or method == "get_geometric_map"
    if method not in ("evaluate_all", "get_geometric_map"):
        # Values of single topics are no means.
        getattr(evaluation, method)(per_query=True)
    same = VBTrecEval.from_frames(hosts.run_frame(a), hosts.qrels_frame(qrels)[lambda rows: rows["qid"] != "q3"])
    getattr(same, method)()


def test_every_method_of_trectools_that_averages_over_run_topics_is_checked():
    averaging = [
        name
        for name, method in inspect.getmembers(TrecEval, inspect.isfunction)
        if "len(self.run.topics())" in inspect.getsource(method) or "self.get_map(" in inspect.getsource(method)
    ]
    assert {"get_ndcg", "get_ubpref", "evaluate_all"} <= set(averaging)
    unchecked = [name for name in averaging if vars(VBTrecEval).get(name) is None]
    assert unchecked == []


def test_means_are_over_the_topics_of_the_qrels(shared_data):
    folder = shared_data / "trec_dl19"
    path = min((folder / "runs").iterdir())
    run, qrels = vbterrier.read_run(path), vbterrier.read_qrels(folder / "qrels.nist.txt.gz")
    evaluation = VBTrecEval.from_frames(run, qrels)
    with pytest.warns(
        DegenerateWarning, match="TrecTools averages over the 200 topics of the run, of which 43 are among"
    ):
        there = evaluation.get_ndcg(depth=10)
    with pytest.warns(DegenerateWarning, match="157 topics are not in qrels and are left out"):
        here = evaluation.get("nDCG@10")
    with pytest.warns(DegenerateWarning, match="157 topics"):
        assert (
            here
            == vbterrier.score({"a": run}, qrels, ["nDCG@10"], inference=Inference(n_resamples=2))
            .means()
            .loc["a", "nDCG@10"]
        )
    assert there == pytest.approx(here * 43 / 200, abs=5e-4)


# Bad input, by TrecTools' own methods.


def trec_objects(run=(), qrels=()):
    """A run and judgments of two topics, with some columns replaced."""
    run_columns = dict(query=["1", "1", "2"], q0="Q0", docid=["a", "b", "a"], rank=[1, 2, 1], score=[2.0, 1.0, 1.0])
    qrels_columns = dict(query=["1", "1", "2"], q0="0", docid=["a", "b", "c"], rel=[1, 0, 1])
    run_object, qrels_object = TrecRun(), TrecQrel()
    run_object.run_data = pd.DataFrame(run_columns | dict(run)).assign(system="s")
    qrels_object.qrels_data = pd.DataFrame(qrels_columns | dict(qrels))
    return run_object, qrels_object


BAD = {
    "a document twice": (dict(docid=["a", "a", "a"]), {}, "document 'a' is duplicated for query '1'"),
    "a judgment twice": ({}, dict(docid=["a", "a", "c"], rel=1), "counts repeated judgments several times"),
    "two labels of a document": ({}, dict(docid=["a", "a", "c"]), "document 'a' of query '1' has the labels 1"),
    "a missing score": (dict(score=[math.nan, 1.0, 1.0]), {}, "column 'score': row 0 .*'a'"),
    "text as a score": (dict(score=["x", "1", "2"]), {}, "column 'score': row 0 .*'x'"),
    "text as a label": ({}, dict(rel=["1", "x", "1"]), "column 'label': row 1 .*'x'"),
    "a missing label": ({}, dict(rel=[1, math.nan, 1]), "column 'label': row 1"),
    "a missing query": (dict(query=["1", None, "2"]), {}, "column 'qid': row 1"),
    "a missing document": (dict(docid=["a", None, "a"]), {}, "column 'docno': row 1"),
    "a list as a document": (dict(docid=[["a"], ["b"], ["c"]]), {}, "column 'docno'"),
    "numbers as queries": (dict(query=[1, 1, 2]), {}, "column 'query' holds text, run column 'query' holds integers"),
    "numbers as documents": (dict(docid=[1, 2, 1]), {}, "column 'docid' holds text, run column 'docid' holds integers"),
    "other queries": (dict(query=["7", "7", "9"]), {}, "no topic in common: the run has '7', '9'"),
    "an empty run": (
        {key: [] for key in ("query", "docid", "score", "q0", "rank")},
        {},
        "no topic in common: the run has none",
    ),
}


@pytest.mark.filterwarnings("ignore:.*(repeated judgments|TrecTools averages):vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(("run", "qrels", "message"), BAD.values(), ids=BAD)
def test_trectools_methods_refuse_data_that_they_would_miscount(run, qrels, message):
    evaluation = VBTrecEval(*trec_objects(run, qrels))
    other = trec_objects()[1]
    for name in (*OF_RUN_TOPICS.split(), "get_urbp", "get_ubpref"):
        with pytest.raises(InputError, match=message):
            getattr(evaluation, name)(*[other] * (name in ("get_urbp", "get_ubpref")))


def test_files_of_several_systems_are_no_run():
    """TrecTools ranks the documents of all systems as one run."""
    run, qrels = trec_objects()
    run.run_data["system"] = ["a", "b", "a"]
    with pytest.raises(InputError, match=r"run: holds 2 systems \('a', 'b'\), whose rankings would be one"):
        VBTrecEval(run, qrels)
    run.run_data["system"] = [math.nan, "b", "b"]
    assert VBTrecEval(run, qrels).results(["P@1"]).get_runid() == "b"


@pytest.mark.parametrize(
    ("runs", "result"),
    [
        (5, "runs=5"),
        ("a.run", "runs='a.run'"),
        (pd.DataFrame({"a": [1, 2]}), "runs=<DataFrame of 2 x 1>"),
        (trec_objects()[0], "runs="),
        ([pd.DataFrame({"a": [1]})], "runs: holds <DataFrame of 1 x 1>"),
    ],
)
def test_runs_of_an_experiment_are_a_list_or_a_mapping(runs, result):
    with pytest.raises(ParameterError, match=f"^{re.escape(result)}.*wanted a list of TrecRun, or a mapping of names"):
        VBTrecEval(*trec_objects(), runs=runs)


def test_topics_without_judgments_are_refused_where_trectools_looks_up_their_documents():
    evaluation = VBTrecEval(*trec_objects(dict(query=["1", "1", "9"])))
    for method in (evaluation.get_rprec, evaluation.evaluate_all):
        with pytest.raises(InputError, match=r"topics of the run without judgments \('9'\)"):
            method()
    with pytest.warns(DegenerateWarning, match="of which 1 are among the 2 topics"):
        assert evaluation.get_map() == 0.5


def test_a_run_without_the_name_of_its_system_has_means_but_no_table_of_all():
    run, qrels = trec_objects()
    del run.run_data["system"]
    evaluation = VBTrecEval(run, qrels)
    assert evaluation.get_map() == evaluation.get("AP") == 0.5
    with pytest.raises(InputError, match="missing system"):
        evaluation.evaluate_all()


def test_data_that_are_no_frame_are_refused():
    run, qrels = trec_objects()
    run.run_data = "a.run"
    with pytest.raises(InputError, match="must hold data"):
        VBTrecEval(run, qrels)
