"""Odd but legal evaluations, and odd ones that are refused, found by looking for them."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier import BNDCG, ES, DegenerateWarning, InputError, NDCGBound, ParameterError, score
from vbterrier.frames import ranking
from vbterrier.unjudged import distribution

# The intervals of single topics are undefined and not tested here.
pytestmark = pytest.mark.filterwarnings("ignore:an interval over topics")


def qrels_of(*rows):
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def run_of(**lists):
    rows = [(qid, docno, -float(rank)) for qid, docnos in lists.items() for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def test_topics_without_any_relevant_document_score_zero_beside_shorter_lists():
    scores = score({"mine": run_of(q1=["a", "x"], q2=["b"])}, qrels_of(("q1", "a", 0), ("q2", "b", 0)), [BNDCG @ 10])
    assert scores.values["value"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "measure", [BNDCG(dcg="exp-log2") @ 10, NDCGBound(side="upper", kind="posthoc", dcg="exp-log2") @ 10]
)
def test_a_grade_without_finite_gain_is_named(measure):
    with pytest.raises(InputError, match=r"grade 2000 has no finite gain 2\^grade - 1; use dcg='log2'"):
        score(run_of(q1=["a"]), qrels_of(("q1", "a", 2000)), [measure])


def test_dcg_gain_of_tags_in_the_run_needs_a_cutoff():
    intents = pd.DataFrame({"qid": ["q1"], "entity_id": ["A"], "prob": [1.0]})
    run = run_of(q1=["a", "b"]).assign(entity_id="A")
    with pytest.raises(ParameterError, match="use a cutoff k, such as @10"):
        score(run, intents, [ES(gain="dcg")])
    assert score(run, intents, [ES(gain="dcg") @ 2]).values["value"].tolist() == [1.0]


def test_topics_left_out_beside_another_measure_are_counted_for_each_measure():
    vbterrier.register_intents("only q1", pd.DataFrame({"qid": ["q1"], "entity_id": ["A"], "prob": [1.0]}))
    vbterrier.register_tags("only a", pd.DataFrame({"docno": ["a"], "entity_id": ["A"]}))
    qrels, run = qrels_of(("q1", "a", 1), ("q2", "b", 1)), run_of(q1=["a"], q2=["b"])
    skipping = ES(intents="only q1", tags="only a", undefined="skip") @ 2
    with pytest.warns(DegenerateWarning, match="1 topics are not in intents"):
        found = score(run, qrels, [skipping, BNDCG @ 2])
    assert found.intervals.groupby("measure")["n_qids"].max().to_dict() == {str(skipping): 1, "BNDCG@2": 2}


@pytest.mark.parametrize(
    ("entity", "docno", "words"),
    [
        ("wd:A", "a", "no entity of tags is among the intents, so every topic scores 0: 'wd:A' against 'A'"),
        ("A", "other", "no retrieved document has tags, so every topic scores 0: 'other' against 'a'"),
    ],
)
def test_tags_of_another_world_are_told(entity, docno, words):
    name = f"strangers {entity} {docno}"
    vbterrier.register_tags(name, pd.DataFrame({"docno": [docno], "entity_id": [entity]}))
    intents = pd.DataFrame({"qid": ["q1"], "entity_id": ["A"], "prob": [1.0]})
    with pytest.warns(DegenerateWarning, match=words):
        assert score(run_of(q1=["a"]), intents, [ES(tags=name) @ 5]).values["value"].tolist() == [0.0]


def test_one_list_far_longer_than_the_others_asks_for_a_cutoff(monkeypatch):
    monkeypatch.setattr(ranking, "MOST_PLACES", 10)
    run, qrels = run_of(q1=[f"d{i}" for i in range(9)], q2=["a"]), qrels_of(("q1", "d1", 1), ("q2", "a", 1))
    with pytest.raises(
        InputError,
        match=r"2 topics and a list of 9 documents exceed the limit of [\d,]+ places of a table; give a cutoff",
    ):
        score(run, qrels, [BNDCG])
    assert len(score(run, qrels, [BNDCG(prior="learned") @ 3]).values) == 2
    assert len(vbterrier.frames.ranked(run)) == 10, "a flat ranking needs no table"


@pytest.mark.parametrize("strength", [2.0, float("inf")])
def test_distributions_with_more_atoms_than_can_be_listed_still_answer_quantiles(monkeypatch, strength):
    run = run_of(q1=[f"u{i}" for i in range(6)])
    qrels = qrels_of(*(("q1", f"j{i}", i % 4) for i in range(60)))
    found = vbterrier.unjudged.bootstrap_distribution(run, qrels, prior="pool", prior_strength=strength)
    assert len(found.atoms("q1")[0]) > 1
    monkeypatch.setattr(distribution, "MOST_ATOMS", 1)
    with pytest.raises(ParameterError, match="more than the 1 that can be listed; ask for quantiles"):
        found.atoms("q1")
    assert np.isfinite(found.median).all()


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "1", "BNDCG@99999999999999999999999", "VB(alpha=1e999)@5", "P(rel=0)@10", "nDCG@True"]
)
def test_text_that_no_measure_survives_is_refused(text):
    with pytest.raises(ParameterError):
        vbterrier.measures_from(text)


def test_an_interval_of_no_level_is_refused():
    found = vbterrier.unjudged.bootstrap_distribution(run_of(q1=["a"]), qrels_of(("q1", "a", 1)))
    with pytest.raises(ParameterError, match=r"level=1\.5"):
        found.interval(1.5)


def test_one_subtopic_with_two_labels_for_a_document_is_an_error_for_measures_of_others_too():
    rows = [("q1", "1", "a", 1), ("q1", "2", "a", 0), ("q1", "2", "b", 1), ("q1", "2", "b", 0)]
    qrels = pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"])
    with pytest.raises(InputError, match="document 'b' of query 'q1' has several labels for subtopic '2'"):
        score(run_of(q1=["a"]), qrels, ["alpha_nDCG@10"])
