"""Scores over intents and tags, with or without judgments."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import vbterrier
from vbterrier.cli import app
from vbterrier.errors import InputError
from vbterrier.evaluate.intents import IntentOptions
from vbterrier.settings import Data, Execution, Inference

INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "entity_id": list("ABAC"), "prob": [0.5, 0.5, 0.9, 0.1]})
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["A", "B", "C"]})
RUN = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d3"], "score": [2.0, 1.0, 1.0]})
QRELS = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d9"], "label": [1, 1]})


def means(*args, **kwargs):
    return vbterrier.score(*args, **kwargs).means().loc["mine"].to_dict()


def test_intents_and_tags_alone():
    averages = means({"mine": RUN}, measures=["ES@1", "ES@2", "VB@2"], intents=INTENTS, tags=TAGS)
    # q1: half of the mass at rank 1, all of it at 2; q2: C alone, .1, penalty .3.
    assert averages == pytest.approx({"ES@1": 0.3, "ES@2": 0.55, "VB@2": (1 + 0.1 - 0.3) / 2})


@pytest.mark.parametrize("names", [["QID", "ENTITY_ID", "PROB"], ["Query ID", "Entity", "probabilities"]])
def test_intents_have_the_names_of_columns_of_runs(tmp_path, names):
    frame = INTENTS.set_axis(names, axis=1)
    frame.to_csv(tmp_path / "intents.csv", index=False)
    for intents in (frame, tmp_path / "intents.csv"):
        assert means({"mine": RUN}, measures=["ES@2"], intents=intents, tags=TAGS)["ES@2"] == pytest.approx(0.55)


def test_intents_without_rows_are_refused_by_their_name():
    with pytest.raises(InputError, match=r"^intents: no rows"):
        means({"mine": RUN}, measures=["ES@2"], intents=INTENTS.iloc[:0], tags=TAGS)


def test_judgments_and_intents_in_one_call():
    averages = means({"mine": RUN}, QRELS, ["nDCG@2", "ES@2"], intents=INTENTS, tags=TAGS)
    assert averages == pytest.approx({"nDCG@2": 0.5, "ES@2": 0.55})


def test_given_tags_come_before_those_of_the_run_and_of_diversity_judgments():
    tagged = RUN.assign(entity_id=["B", "B", "A"])
    assert means({"mine": tagged}, measures="ES@2", intents=INTENTS)["ES@2"] == pytest.approx((0.5 + 0.9) / 2)
    assert means({"mine": tagged}, measures="ES@2", intents=INTENTS, tags=TAGS)["ES@2"] == pytest.approx(0.55)
    diversity = pd.DataFrame(
        {"qid": ["q1", "q1", "q2"], "iteration": list("ABA"), "docno": ["d1", "d8", "d9"], "label": [1, 1, 1]}
    )
    assert means({"mine": RUN}, diversity, "ES@2") == {"ES@2": 0.25}
    assert means({"mine": RUN}, diversity, "ES@2", tags=TAGS) == {"ES@2": 0.5}


def test_parameters_of_a_measure_come_before_what_is_given_beside():
    vbterrier.register_tags("beside", pd.DataFrame({"docno": ["d1"], "entity_id": ["A"]}), replace=True)
    averages = means({"mine": RUN}, measures=["ES(tags='beside')@2", "ES@2"], intents=INTENTS, tags=TAGS)
    assert averages == pytest.approx({"ES(tags='beside')@2": 0.25, "ES@2": 0.55})


def test_diversity_measures_judge_by_the_same_tags():
    # In a single call of pyndeval, the second setting of a measure is 0.
    measures = ["alpha_nDCG@2", "alpha_nDCG(alpha=0.9)@2", "ERR_IA@2", "StRecall@2", "nERR_IA@2"]
    equal = INTENTS.assign(prob=0.5)
    by_tags = vbterrier.score({"mine": RUN}, measures=measures, intents=equal, tags=TAGS)
    assert by_tags.means().loc["mine"].min() > 0
    judged = pd.DataFrame({"qid": INTENTS["qid"], "iteration": list("ABAC"), "docno": ["d1", "d2", "d1", "d3"]})
    judged["label"] = 1
    by_judgments = vbterrier.score({"mine": RUN}, judged, measures)
    pd.testing.assert_frame_equal(by_tags.values, by_judgments.values)
    assert by_tags.means().loc["mine", "StRecall@2"] == 0.75


def test_measures_of_others_keep_runs_apart():
    rng = np.random.default_rng(8)
    documents = [f"d{number}" for number in range(12)]
    tags = pd.DataFrame({"docno": documents * 2, "entity_id": rng.choice(list("ABC"), 24)}).drop_duplicates()
    runs = {"one": RUN[RUN["qid"] == "q1"]}
    for name in ("a", "b"):
        listed = [*rng.permutation(documents)[:9], *rng.permutation(documents)[:9]]
        runs[name] = pd.DataFrame({"qid": ["q1"] * 9 + ["q2"] * 9, "docno": listed, "score": [*range(9)] * 2})
    qrels = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d3"], "label": [1, 2, 1]})
    diverse = ["alpha_nDCG@3", "ERR_IA@5", "StRecall@2", "P_IA@5", "alpha_nDCG(judged_only=True)@3"]
    for judged, measures, options in (
        (None, diverse, {"intents": INTENTS.assign(prob=0.5), "tags": tags}),
        (qrels, ["nDCG@5", "AP", "RR", "Judged@5"], {}),
    ):
        together = vbterrier.score(runs, judged, measures, **options, data=Data(on_topics="all")).values
        alone = [vbterrier.score({name: run}, judged, measures, **options).values for name, run in runs.items()]
        pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))


def test_names_and_paths_stand_for_intents_and_tags(tmp_path):
    vbterrier.frames.write_intents(INTENTS, tmp_path / "intents.tsv")
    vbterrier.register_tags("by name", TAGS, replace=True)
    averages = means({"mine": RUN}, measures="ES@2", intents=tmp_path / "intents.tsv", tags="by name")
    assert averages == pytest.approx({"ES@2": 0.55})


def test_systems_tagged_in_different_ways_are_not_compared():
    one, other = (RUN.assign(entity_id="A", tagger=tagger) for tagger in ("WAT", "gold"))
    with pytest.raises(InputError, match=r"run 'a' is tagged by WAT, run 'b' by gold: .* one tagger only"):
        vbterrier.score({"a": one, "b": other}, measures="ES@2", intents=INTENTS)
    assert len(vbterrier.score({"a": one, "b": one}, measures="ES@2", intents=INTENTS).means()) == 2


POOLED = ["ES@1", "VB@2", "VB(alpha=0.5,gain='dcg',variance='intent')@2", "VarPenalty@2", "TopIntent@1"]


def test_joint_intents_by_hand():
    scores = vbterrier.score({"mine": RUN}, measures=["ES@2", "VB@2"], intents=INTENTS, tags=TAGS, pool="collection")
    # The mean success of both queries is (1 + .1) / 2, and its variance .55 * .45.
    assert scores.means().loc["mine"].tolist() == pytest.approx([0.55, 0.55 - (0.55 * 0.45) ** 0.5])
    # Values remain those of each query.
    values = scores.values.set_index(["measure", "qid"])["value"].to_dict()
    expected = {("ES@2", "q1"): 1.0, ("ES@2", "q2"): 0.1, ("VB@2", "q1"): 1.0, ("VB@2", "q2"): 0.1 - 0.3}
    assert values == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("interval", ["percentile", "bca", "normal"])
def test_joint_intents_are_those_of_the_command_and_of_evaluate_intents(tmp_path, interval):
    runs = {"mine": RUN, "one": RUN.assign(docno=["d1", "d3", "d1"])}
    for name, run in runs.items():
        vbterrier.frames.write_run(run.assign(rank=[0, 1, 0]), tmp_path / f"{name}.run")
    INTENTS.to_csv(tmp_path / "intents.tsv", sep="\t", index=False)
    TAGS.to_csv(tmp_path / "tags.tsv", sep="\t", index=False)
    how = Inference(interval=interval, n_resamples=200, seed=3)
    scores = vbterrier.score(runs, measures=POOLED, intents=INTENTS, tags=TAGS, pool="collection", inference=how)
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ""})
    together = IntentOptions(pool="collection")
    evaluation = vbterrier.evaluate_intents(
        runs, topics, measures=POOLED, intents=INTENTS, tagger=TAGS, options=together, inference=how
    )
    pd.testing.assert_frame_equal(scores.intervals, evaluation.intervals)
    command = ["score", *(str(tmp_path / f"{name}.run") for name in runs), "--intents", str(tmp_path / "intents.tsv")]
    command += ["--tags", str(tmp_path / "tags.tsv"), "--pool", "collection", "--interval", interval, "-f", "json"]
    command += ["--resamples", "200", "--seed", "3", *(part for measure in POOLED for part in ("-m", measure))]
    printed = json.loads(CliRunner().invoke(app, command).output)
    rows = pd.DataFrame(printed).set_index(["name", "measure"])[["value", "low", "high"]]
    ours = scores.intervals.set_index(["name", "measure"])[["value", "low", "high"]]
    pd.testing.assert_frame_equal(rows.loc[ours.index], ours, check_exact=False, rtol=1e-12)


def test_joint_intents_do_not_depend_on_memory(tmp_path):
    vbterrier.frames.write_run(RUN.assign(rank=[0, 1, 0]), tmp_path / "mine.run")
    options = {"measures": POOLED, "intents": INTENTS, "tags": TAGS, "pool": "collection"}
    whole = vbterrier.score(tmp_path / "mine.run", **options).intervals
    pd.testing.assert_frame_equal(
        vbterrier.score(tmp_path / "mine.run", execution=Execution(memory="64 MiB"), **options).intervals, whole
    )
