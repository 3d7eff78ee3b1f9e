"""TrecTools: its objects and its style, our numbers."""

import math

import pandas as pd
import pytest
from trectools import TrecEval, TrecQrel, TrecRun

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError, VBTerrierError
from vbterrier.evaluate.trectools import VBTrecEval

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
    scores = vbterrier.score(files["a.run"], files[qrels], [measure], n_resamples=2)
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
    "BQ": {"beta": 2, "prior": "learned", "prior_strength": 4},
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
    with pytest.raises(ParameterError, match=r"measure=.*: wanted one of 'BNDCG', 'BRBP', 'BP', 'BAP', 'BERR', 'BQ'"):
        evaluation.get_bootstrapped(name)


@pytest.mark.parametrize("kind", ["naive", "rbp", "guaranteed", "posthoc"])
def test_bounds_are_the_measures(evaluation, files, kind):
    frame = evaluation.get_ndcg_bounds(depth=5, per_query=True, kind=kind)
    assert list(frame.columns) == ["lower@5", "upper@5"]
    assert frame.index.name == "query"
    for side in ("lower", "upper"):
        assert frame[f"{side}@5"].to_dict() == ours(files, vbterrier.NDCGBound(side=side, kind=kind) @ 5)
    means = evaluation.get_ndcg_bounds(depth=5, kind=kind)
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
def test_real_runs_score_as_the_distribution_of_what_trectools_reads(covid, covid_evaluation, parameters):
    # TrecTools leaves out labels below 0 when it reads a file; two documents of topic 50 have one.
    qrels = vbterrier.read_qrels(covid[1])
    read = qrels[qrels["label"] >= 0]
    assert len(qrels) - len(read) == 2
    assert len(covid_evaluation.qrels.qrels_data) == len(read)
    process = {name: value for name, value in parameters.items() if name != "stat"}
    expected = vbterrier.unjudged.bootstrap_distribution(vbterrier.read_run(covid[0]), read, **process)
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
    found = pytrec_eval.RelevanceEvaluator(nested, {"ndcg_cut_10"}).evaluate(ranked)
    lower = covid_evaluation.get_ndcg_bounds(10, per_query=True)["lower@10"]
    assert lower.to_dict() == pytest.approx({qid: value["ndcg_cut_10"] for qid, value in found.items()}, abs=1e-9)


# From frames.


def frames():
    run = pd.DataFrame({"qid": "001", "docno": ["7", "007"], "score": [2.0, 1.0], "rank": [5, 9], "name": "x"})
    qrels = pd.DataFrame({"qid": ["001", "001"], "docno": ["007", "7"], "label": [1, 0]})
    return run, qrels


def test_ids_from_frames_of_pandas_and_polars_stay_as_they_are():
    def found(*given):
        return VBTrecEval.from_frames(*given).get_bootstrapped_ndcg(per_query=True)["BNDCG@10"].to_dict()

    assert found(*frames()) == {"001": 1 / math.log2(3)}
    polars = pytest.importorskip("polars")
    assert found(*map(polars.from_pandas, frames())) == {"001": 1 / math.log2(3)}


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
    for found, wanted in zip((run, qrels), frames(), strict=True):
        pd.testing.assert_frame_equal(found, wanted)
    for found, wanted in zip((evaluation.run.run_data, evaluation.qrels.qrels_data), data, strict=True):
        pd.testing.assert_frame_equal(found, wanted)


def test_an_empty_run_of_frames_scores_zero_with_a_warning():
    run, qrels = frames()
    with pytest.warns(DegenerateWarning, match="run: empty; all 1 topics score 0"):
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
        (lambda run, qrels: (run.drop(columns="score"), qrels), "run: wanted columns qid, docno, score; missing score"),
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
