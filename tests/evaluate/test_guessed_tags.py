"""Systems are not ordered by tags that are mostly guesses."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.evaluate import IntentOptions
from vbterrier.evaluate.intent_notes import GUESSES
from vbterrier.report.page.build import write_report
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.settings import Inference

pytestmark = pytest.mark.filterwarnings("ignore:run .*decided by a tie:vbterrier.errors.DegenerateWarning")
QIDS = [f"q{n:02}" for n in range(20)]
TOPICS = pd.DataFrame({"qid": QIDS, "query": "jordan"})
INTENTS = pd.DataFrame(
    [(qid, entity, prob) for qid in QIDS for entity, prob in (("a", 0.6), ("b", 0.4))],
    columns=["qid", "entity_id", "prob"],
)
RUNS = {
    "both": pd.DataFrame([(qid, docno, -rank) for qid in QIDS for rank, docno in enumerate(["d1", "d2"])],
                         columns=["qid", "docno", "score"]),
    "one": pd.DataFrame([(qid, docno, -rank) for qid in QIDS for rank, docno in enumerate(["d1", "d3"])],
                        columns=["qid", "docno", "score"]),
}  # fmt: skip
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["a", "b", "a"], "weight": 1.0})
FAST = {"inference": Inference(n_resamples=50)}


def tagged(*tied):
    return TAGS.assign(tied=tied, n_abstained=0)


@pytest.mark.parametrize(("tied", "guessed"), [((True, True, False), True), ((True, False, False), False)])
def test_scores_and_comparisons(tied, guessed):
    tags = tagged(*tied)
    scores = vbterrier.score(RUNS, measures=["ES@2", "VB@2"], intents=INTENTS, tags=tags, **FAST)
    assert scores.guessed == (("ES@2", "VB@2") if guessed else ())
    assert any(note.endswith(GUESSES) and note.startswith("67% of the tags") for note in scores.notes) == guessed
    assert scores.means()["ES@2"].tolist() == pytest.approx([1.0, 0.6])
    for result in (
        vbterrier.compare(RUNS, measures=["ES@2"], intents=INTENTS, tags=tags, **FAST),
        vbterrier.compare(scores, measures=["ES@2"], **FAST),
    ):
        assert result.pairs["diff"].abs().tolist() == pytest.approx([0.4])
        assert result.significant().tolist() == [not guessed]
        tests = result.pairs[["low", "high", "p_value", "p_adjusted"]]
        assert tests.isna().to_numpy().all() == guessed
        assert (result.systems["letters"] == "").all() == guessed
        assert (GUESSES in repr(result)) == guessed


def test_measures_of_judgments_are_ordered():
    qrels = pd.DataFrame([(qid, docno, int(docno == "d2")) for qid in QIDS for docno in ("d1", "d2", "d3")],
                         columns=["qid", "docno", "label"])  # fmt: skip
    result = vbterrier.compare(RUNS, qrels, ["P@2", "ES@2"], intents=INTENTS, tags=tagged(True, True, True), **FAST)
    assert result.guessed == ("ES@2",)
    significant = dict(zip(result.pairs["measure"], result.significant(), strict=True))
    assert significant == {"P@2": True, "ES@2": False}


def test_tags_of_runs_are_guesses_too():
    runs = {name: run.merge(tagged(True, True, True), on="docno") for name, run in RUNS.items()}
    assert vbterrier.score(runs, measures=["ES@2"], intents=INTENTS, **FAST).guessed == ("ES@2",)


@pytest.mark.parametrize(
    ("gold", "tied", "guessed"),
    [
        (["b", "a", "b"], (False, False, False), True),
        (["a", "b", "a"], (True, True, True), False),
        (["a", "b", "b"], (True, True, True), False),
    ],
)
def test_labels_say_whether_tags_are_guesses(gold, tied, guessed):
    options = IntentOptions(cutoff=2, gold=TAGS[["docno"]].assign(entity_id=gold))
    result = vbterrier.evaluate_intents(
        RUNS, TOPICS, ["ES"], intents=INTENTS, tagger=tagged(*tied), options=options, **FAST
    )
    assert (result.guessed == ("ES@2",)) == guessed
    assert result.comparisons["p_adjusted"].isna().all() == guessed
    assert any(note.endswith(GUESSES) for note in result.notes) == guessed


def test_without_labels_ties_decide():
    options = {"intents": INTENTS, "options": IntentOptions(cutoff=2), **FAST}
    result = vbterrier.evaluate_intents(RUNS, TOPICS, ["ES"], tagger=tagged(True, True, False), **options)
    assert result.guessed == ("ES@2",)
    assert np.isnan(result.comparisons["high"]).all()
    assert sum(note.endswith(GUESSES) for note in result.notes) == 1


def test_reports_say_so(tmp_path):
    read = {"content": ReportContent(intents=INTENTS, tags=tagged(True, True, True)), "measures": ["ES@2", "VB@2"]}
    write_report(RUNS, path=tmp_path / "page.html", **read)
    page = (tmp_path / "page.html").read_text()
    assert f"By ES@2 and VB@2, {GUESSES}." in page
    assert "differ significantly over" not in page
