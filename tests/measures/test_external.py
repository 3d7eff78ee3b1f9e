"""Measures of ir_measures alone in a call: what ours refuse or warn of, theirs must too."""

import math
import pickle

import ir_measures
import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.scores import score
from vbterrier.frames.ranking import Run, ranked
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.measures.external import TOP_MEASURES, engine_qrels, external_values, is_topicwise, n_decisive
from vbterrier.measures.target import EvaluationTarget, restricted_target
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data, Inference

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
RIGHT = (1 + 1 / math.log2(3)) / 2


def ndcg(run, qrels, **options):
    return (
        score({"mine": run}, qrels, ["nDCG@10"], inference=Inference(n_resamples=2), **options)
        .means()
        .loc["mine", "nDCG@10"]
    )


def test_repeated_judgments_are_warned_of_once_and_refused_if_they_conflict_and_are_no_diversity():
    qrels = pd.concat([QRELS, QRELS.iloc[:1]], ignore_index=True).assign(iteration="0")
    with pytest.warns(DegenerateWarning, match="1 repeated judgments with the same label count once") as record:
        assert ndcg(RUN, qrels) == pytest.approx(RIGHT)
    assert len(record) == 1
    with pytest.raises(InputError, match=r"document 'd1' of query 'q1' has the labels 2 .* and 0 "):
        ndcg(RUN, qrels.assign(label=[2, 1, 0, 1, 0, 0]))


def test_one_text_is_one_measure_and_measures_asked_for_twice_count_once():
    assert score(RUN, QRELS, "BNDCG@10").means().iloc[0, 0] == pytest.approx(RIGHT)
    assert len(score(RUN, QRELS, ["BNDCG@10", "BNDCG@10"]).intervals) == 2


@pytest.mark.filterwarnings("ignore:.*are they grades")
@pytest.mark.parametrize("label", [2**15, 10**8, 2**31, 2**32 + 1, -(2**31) - 1])
def test_labels_that_engines_cannot_hold_are_refused_by_theirs_alone(label):
    # To trec_eval 2^31 is below 0, so that a run of relevant documents alone would score 0.
    qrels = QRELS.assign(label=[label, 1, 0, 1, 0])
    for measure in ("SetAP", "nDCG(gains={1:2})", "IPrec@0.5"):
        with pytest.raises(InputError, match=rf"row 0 holds {label} \(query 'q1', document 'd1'\); external measures"):
            score({"mine": RUN}, qrels, [measure], inference=Inference(n_resamples=2))
    assert ndcg(RUN, qrels) > 0


def test_a_topic_with_no_label_of_0_or_more_scores_0_and_does_not_hang_trec_eval():
    # Without a level, its nDCG reads before its memory and may never end: this looks at what it is given.
    qrels = QRELS.assign(label=[-1, -2, -1, 1, -1])
    assert engine_qrels(EvaluationTarget(qrels))["label"].tolist() == [0, 0, 0, 1, 0]
    assert qrels["label"].tolist() == [-1, -2, -1, 1, -1]
    measures = ["nDCG", "AP", "Bpref", "SetP", "NumRel", "Judged@2", "infAP"]
    values = score({"mine": RUN}, qrels, measures, inference=Inference(n_resamples=2)).values.set_index(
        ["measure", "qid"]
    )["value"]
    assert {measure: values[measure, "q1"] for measure in measures} == dict.fromkeys(measures, 0.0) | {"Judged@2": 1.0}
    assert values["AP", "q2"] == 0.5


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_ties_of_diversity_measures_are_in_trec_evals_order():
    qrels = pd.DataFrame({"qid": "q1", "iteration": ["1", "2"], "docno": ["a", "a"], "label": 1})
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "score": [1.0, 1.0, 1.0]})
    measures = ["StRecall@1", "ERR_IA@5"]
    tied, settled = (
        score(run.assign(score=scores), qrels, measures).means() for scores in ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    )
    assert tied.to_numpy().tolist() == settled.to_numpy().tolist()


@pytest.mark.parametrize("text", ["alpha_nDCG@50", "RBP@10", "RBP(p=1.5)@10", "AP(rel=0)", "alpha_nDCG"])
def test_what_the_engines_of_others_refuse_is_a_usage_error(text):
    with pytest.raises(ParameterError, match=r"alpha_nDCG|RBP|AP"):
        score(RUN, QRELS.assign(iteration=list("12121")), [text])


@pytest.mark.filterwarnings("ignore:no document of the evidence is judged:vbterrier.errors.DegenerateWarning")
def test_ids_of_documents_that_never_meet_are_warned_of_with_what_to_look_for():
    blank = RUN.assign(docno=RUN["docno"] + " ")
    for measure in ("BNDCG@10", "ENDCG@10", "nDCG@10"):
        with pytest.warns(DegenerateWarning, match="none of its documents is judged: .*without suffixes such as"):
            score(blank, QRELS, [measure])


def test_a_measure_without_a_value_for_a_topic_is_named_with_the_cause():
    run = RUN[RUN["docno"].isin(["d1", "d2", "d4"])]
    with pytest.raises(ParameterError, match=r"Accuracy: ir_measures .* a topic has no value, such as Accuracy where"):
        score({"mine": run}, QRELS, ["Accuracy"], inference=Inference(n_resamples=2))


def random_collection(seed):
    """Runs with ties, unjudged and missing topics in mixed order; labels from -1 to 3."""
    draw = np.random.default_rng(seed)
    docnos = [f"d{i}" for i in range(40)]
    judged = [(f"q{t}", docno) for t in range(12) for docno in draw.choice(docnos, 15, replace=False)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno"]).assign(label=draw.integers(-1, 4, len(judged)))
    results = [
        (f"q{t}", docno) for t in range(1, 14) for docno in draw.choice(docnos, draw.integers(1, 35), replace=False)
    ]
    run = pd.DataFrame(results, columns=["qid", "docno"]).assign(score=draw.integers(0, 12, len(results)) / 2.0)
    return run.sample(frac=1, random_state=seed).reset_index(drop=True), qrels


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("seed", range(8))
def test_measures_of_the_first_documents_are_those_of_whole_runs(seed):
    run, qrels = random_collection(seed)
    measures = [f"{name}@{k}" for name in TOP_MEASURES for k in (1, 3, 10, 100)]
    measures += ["P(rel=2)@5", "AP(rel=2)@10", "nDCG(judged_only=True)@5", "P(judged_only=True)@5", "AP"]
    ours = score({"mine": run}, qrels, measures, data=Data(on_topics="all"), inference=Inference(n_resamples=2)).values
    # Engines settle ties in different ways: theirs get places instead of scores, as ours do.
    placed = ranked(run)
    theirs = ir_measures.iter_calc(
        [ir_measures.parse_measure(measure) for measure in measures],
        # Labels below 0 are judgments of non-relevant documents in all measures.
        qrels.assign(label=qrels["label"].clip(lower=0)).rename(columns=TO_IR_MEASURES),
        placed.assign(score=-placed["rank"]).rename(columns=TO_IR_MEASURES),
    )
    expected = {(metric.query_id, str(metric.measure)): metric.value for metric in theirs}
    assert {
        (qid, measure): value for qid, measure, value in ours[["qid", "measure", "value"]].to_numpy()
    } == pytest.approx(expected, abs=1e-12)
    assert len(ours) == 12 * len(measures)


@pytest.mark.parametrize(
    ("name", "n", "topicwise"),
    [
        ("nDCG@10", 10, True),
        ("AP", None, True),
        ("alpha_nDCG@20", 20, None),
        ("alpha_nDCG(judged_only=True)@20", None, None),
        ("Compat(p=0.95)", None, False),
    ],
)
def test_how_many_documents_decide_a_measure_and_whether_judgments_of_other_topics_do(name, n, topicwise):
    measure = ir_measures.parse_measure(name)
    assert n_decisive(measure) == n
    assert topicwise is None or is_topicwise(measure) is topicwise


def test_judgments_of_subtopics_are_warned_of_where_no_diversity_measure_asks():
    subtopics = [QRELS.assign(iteration="1"), QRELS.iloc[:1].assign(iteration="2", label=1)]
    with pytest.warns(DegenerateWarning, match=r"nDCG@10: the qrels judge documents once a subtopic"):
        ndcg(RUN, pd.concat(subtopics, ignore_index=True))


def run_of(*topics, **columns):
    return Run(pd.DataFrame({"qid": [*topics], "docno": "a", "score": 1.0, **columns}))


@pytest.fixture
def target():
    return EvaluationTarget(pd.DataFrame({"qid": ["1", "2", "3"], "docno": "a", "label": [1, 0, 1]}))


def test_topics_are_those_asked_for(target):
    runs = {"one": run_of("1", "2"), "other": run_of("2", "3")}
    assert restricted_target(target, runs, "common").topics == ["2"]
    assert restricted_target(target, runs, "all") is target
    with pytest.raises(InputError, match=r"run 'one' has 2 of the 3 topics.*'1', '3'.*give runs of the same topics"):
        restricted_target(target, runs, "same")
    with pytest.raises(InputError, match="no topic that all runs and the qrels have in common"):
        restricted_target(target, {"one": run_of("1"), "other": run_of("3")}, "common")


def test_evaluators_stay_in_their_process(target):
    (measure,) = measures_from("SetAP")
    before = list(external_values([measure], target, run_of("1", "2", "3")))
    copied = pickle.loads(pickle.dumps(target))
    assert copied.evaluators.kept == {}
    assert target.evaluators.kept != {}
    assert list(external_values([measure], copied, run_of("1", "2", "3"))) == before


@pytest.mark.parametrize("on_topics", ["all", "common"])
def test_gaps_of_subtopics_are_reported_once_and_filled_by_given_subtopics(on_topics):
    rows = [("1", "1", "a", 1), ("1", "4", "a", 1), ("2", "1", "b", 1)]
    qrels = pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"])
    run = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "score": 1.0})
    options = {"measures": ["ES@5", "VB@5", "ES(rel=2)@5"], "inference": Inference(n_resamples=2)}
    every = pd.DataFrame({"qid": ["1"] * 4 + ["2"], "entity_id": [*"12341"]})
    some, filled = Data(on_topics=on_topics), Data(on_topics=on_topics, subtopics=every)
    with pytest.warns(vbterrier.errors.DegenerateWarning) as record:
        averages = vbterrier.score({"x": run, "y": run}, qrels, **options, data=some).means()
    gaps = [one for one in map(str, (w.message for w in record)) if "gaps" in one]
    assert len(gaps) == 1
    assert "numbers of 1 of 2 topics have gaps ('1')" in gaps[0]
    assert averages.loc["x", "ES@5"] == 1
    assert vbterrier.score(run, qrels, **options, data=filled).means()["ES@5"].tolist() == [0.75]
    for refused, words in (
        ({"intents": every.assign(prob=1.0)}, "leave out intents"),
        ({"qrels": None}, "give qrels"),
        ({"qrels": qrels.drop(columns="iteration")}, "no column iteration"),
    ):
        with pytest.raises(vbterrier.errors.VBTerrierError, match=words):
            vbterrier.score(run, **{"qrels": qrels, **refused}, **options, data=filled)
