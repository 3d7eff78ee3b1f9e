"""Notes about intents and tags: uniform probabilities, queries without candidates, guessed tags."""

import math

import pandas as pd
import pytest

import vbterrier
from vbterrier.evaluate import IntentOptions
from vbterrier.evaluate.intent_notes import GUESSES, missing_note, prior_note, tie_bounds
from vbterrier.frames.ranking import Run

INTENTS = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.6, 0.3, 0.1]})
RUN = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["A", "C", "C"], "tied": [0, 1, 1]})


def vb(success):
    return success - math.sqrt(success * (1 - success))


@pytest.mark.parametrize(
    ("cutoff", "low", "high"), [(1, 0.6, 0.6), (2, 0.6, 0.9), (3, 0.6, 1.0)], ids=["no guess", "one", "two"]
)
def test_guessed_tags_give_a_range_of_scores(cutoff, low, high):
    """At worst a guess covers nothing, at best the most probable intent that is still open."""
    row = tie_bounds({"mine": Run(RUN)}, INTENTS, TAGS, [cutoff], "").iloc[0]
    assert row[["ES_worst", "ES_best"]].tolist() == pytest.approx([low, high])
    assert row[["VB_worst", "VB_best"]].tolist() == pytest.approx([vb(low), vb(high)])


@pytest.mark.filterwarnings("ignore:tags. no rows")
def test_the_least_vb_is_between_the_ends_if_it_is_not_monotone():
    """With all tags guessed ES is 0 to 1; VB is least at (1 - 1/sqrt(2))/2 and largest at ES = 1."""
    row = tie_bounds({"mine": Run(RUN)}, INTENTS, TAGS.assign(tied=1), [3], "").iloc[0]
    assert row[["ES_worst", "ES_best", "VB_best"]].tolist() == pytest.approx([0, 1, 1])
    assert row["VB_worst"] == pytest.approx((1 - math.sqrt(2)) / 2)


@pytest.mark.filterwarnings("ignore:an interval over topics needs")
def test_evaluations_report_guesses_and_the_range_of_scores():
    topics = pd.DataFrame({"qid": ["q1"], "query": ["name"]})
    options = {"intents": INTENTS, "tagger": TAGS, "measures": ["ES", "VB"], "options": IntentOptions(cutoff=[2])}
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="50% of the tags are decided by a tie"):
        evaluation = vbterrier.evaluate_intents({"mine": RUN}, topics, **options)
    assert evaluation.tagging.loc[0, ["ES", "ES_worst", "ES_best"]].tolist() == pytest.approx([0.7, 0.6, 0.9])
    # Two of all three tags, and one of those of the first two documents.
    mostly, note = evaluation.notes
    assert mostly == f"67% of the tags are decided by a tie: {GUESSES}"
    assert note.startswith("50% of the tags of mine are guesses between candidates with equal scores: for any choice")
    assert note.endswith("its ES@2 is 0.600 to 0.900 and its VB@2 0.110 to 0.600")
    certain = vbterrier.evaluate_intents({"mine": RUN}, topics, **options | {"tagger": TAGS.assign(tied=0)})
    assert "ES_worst" not in certain.tagging.columns
    assert not certain.notes


@pytest.mark.filterwarnings("ignore:.*1 topic is not in intents")
def test_ids_of_queries_and_names_of_systems_do_not_decide_the_kind_of_a_note():
    odd, name = "q; model 1", "a; model b"
    run = pd.DataFrame({"qid": ["q1", "q2", odd], "docno": "d1", "score": 1.0})
    intents = pd.concat([INTENTS, INTENTS.assign(qid="q2")])
    scores = vbterrier.score({name: run}, measures=["ES@1"], intents=intents, tags=TAGS[["docno", "entity_id"]])
    (note,) = scores.notes
    assert odd in note
    assert [caveat.about for caveat in scores.answer().caveats if odd in caveat.text and "mean" in caveat.text] == [
        "Note"
    ]


def test_equal_probabilities_and_missing_queries_are_notes_of_scores():
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2", "q2"], "entity_id": list("ABABC")})
    intents["prob"] = 1 / intents.groupby("qid")["qid"].transform("size")
    run = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": "d", "score": 1.0})
    tags = pd.DataFrame({"docno": ["d"], "entity_id": ["A"]})
    uniform = (
        "the intents of all 2 queries with several are uniform over n candidates (n = 2 to 3, mean 2.5): no source of "
        "their probabilities"
    )
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="1 topic is not in intents"):
        scores = vbterrier.score({"mine": run}, measures=["ES@1"], intents=intents, tags=tags)
    assert scores.notes == (uniform, "1 of 3 queries ('q3') have no candidate intents and count in no mean")
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": "name"})
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="q3"):
        evaluation = vbterrier.evaluate_intents(
            {"mine": run},
            topics,
            intents=intents,
            tagger=tags,
            measures=["ES"],
            options=IntentOptions(cutoff=1, undefined="skip"),
        )
    assert evaluation.notes == (scores.notes[1], uniform)


def test_given_probabilities_need_no_note():
    assert not list(prior_note(INTENTS))
    one = pd.concat([INTENTS, INTENTS.assign(qid="q2", prob=1 / 3)])
    assert not list(prior_note(one)), "half of the queries may be uniform by chance"
    nil = pd.DataFrame({"qid": "q", "entity_id": ["A", "B", "NIL"], "prob": [0.45, 0.45, 0.1]})
    assert list(prior_note(nil)), "NIL is no candidate"
    assert not list(missing_note(["q1"], INTENTS))


TYPES = ["text", "str", "category", "object", "Float64", "double[pyarrow]", "float32"]


@pytest.mark.filterwarnings("ignore:an interval over topics needs")
@pytest.mark.parametrize("kind", TYPES)
def test_probabilities_of_all_types_mean_the_same(kind, tmp_path):
    prob = INTENTS["prob"]
    made = {"text": lambda: prob.map(str).astype(object), "str": lambda: prob.map(str)}
    intents = INTENTS.assign(prob=made.get(kind, lambda: prob.astype(kind))())
    tags = TAGS.drop(columns="tied")
    intents.to_csv(tmp_path / "i.csv", index=False)
    for source in (intents, tmp_path / "i.csv"):
        scores = vbterrier.score({"a": RUN}, intents=source, tags=tags, measures=["ES@2"])
        assert scores.means().iloc[0, 0] == pytest.approx(0.7)
        assert not any("uniform" in note for note in scores.notes)
        topics = pd.DataFrame({"qid": ["q1"], "query": ["name"]})
        options = IntentOptions(cutoff=2)
        evaluation = vbterrier.evaluate_intents(
            {"a": RUN}, topics, intents=source, tagger=tags, measures=["ES"], options=options
        )
        assert evaluation.means().loc["a", "ES@2"] == pytest.approx(0.7)
