"""The doctor: every fact counted by hand on small cases."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vbterrier import measures
from vbterrier.errors import InputError
from vbterrier.evaluate.doctor import diagnose, judgment_notes
from vbterrier.evaluate.scores import score
from vbterrier.frames.ranking import Run
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.incomplete import leave_group_out, shallow_pool, subsample_qrels
from vbterrier.unjudged.pool import Judgments

QRELS = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2 + ["q3"],
        "docno": ["a", "b", "c", "d", "a", "e", "f"],
        "label": [2, 1, 0, -1, 1, 0, 0],
    }
)
RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 6 + ["q2"] * 3,
        "docno": ["a", "x1", "b", "x2", "x3", "c", "x1", "a", "x2"],
        "score": [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 9.0, 8.0, 7.0],
    }
)


def facts(diagnosis):
    return dict(zip(diagnosis.qrels["what"], diagnosis.qrels["value"], strict=True))


def row(diagnosis, place=0):
    return diagnosis.runs.iloc[place].to_dict()


def possible(diagnosis):
    return {item.measures: item.possible for item in diagnosis.support}


def reason(diagnosis, measure):
    return next(item.reason for item in diagnosis.support if measure in item.measures)


def test_facts_of_judgments_and_runs():
    copies = RUN.copy(), QRELS.copy()
    diagnosis = diagnose({"mine": RUN}, QRELS)
    assert facts(diagnosis) == {
        "topics": "3",
        "judgments": "7",
        "labels": "-1: 1, 0: 3, 1: 2, 2: 1",
        "labels below 0": "1 (count as 0)",
        "kind": "adhoc",
    }
    assert "qrels: 1 topic has no relevant document and always scores 0" in diagnosis.notes
    # 3 of five and 2 of three documents are unjudged; the third topic is empty.
    few, more = pytest.approx((3 / 5 + 2 / 3 + 0) / 3), pytest.approx((3 / 6 + 2 / 3 + 0) / 3)
    expected = {"name": "mine", "topics": 2, "rows": 9, "depth": "3-6"}
    expected |= {"unjudged@5": few, "unjudged@10": more, "unjudged@20": more, "unjudged@100": more}
    expected |= {"tied@10": 0.0, "float32": 0, "duplicates": 0, "missing": 1, "extra": 0}
    assert row(diagnosis) == expected
    for original, copy in zip((RUN, QRELS), copies, strict=True):
        assert_frame_equal(original, copy)


@pytest.mark.parametrize(
    ("near", "judged"),
    [("A", "a"), ("a ", "a"), ("a\u200b", "a"), ("e\u0301", "\u00e9"), ("\uff41", "a"), ("a\u00a0b", "a b")],
)
def test_ids_that_are_nearly_those_of_the_qrels_are_named(near, judged):
    qrels = pd.DataFrame({"qid": ["q1", "q1"], "docno": [judged, "z"], "label": [1, 0]})
    run = pd.DataFrame({"qid": ["q1"] * 3, "docno": [near, "other", "z"], "score": [3.0, 2.0, 1.0]})
    (note,) = [note for note in diagnose({"mine": run}, qrels).notes if "differ from those" in note]
    assert note.startswith("run 'mine': 1 documents differ")
    assert f"such as {near!r} and {judged!r}," in note
    topics = diagnose({"mine": run.assign(qid="Q1", docno=[judged, "other", "z"])}, qrels).notes
    assert [note for note in topics if note.startswith("run 'mine': 1 topics differ") and "'Q1' and 'q1'" in note]
    same = diagnose({"mine": run.assign(docno=[judged, "other", "z"])}, qrels).notes
    assert not [note for note in same if "differ from those" in note]


def test_unjudged_shares_at_each_depth_count_that_many_documents():
    depths = {5: 1, 10: 4, 20: 10, 100: 70}
    unjudged = np.zeros(120, dtype=bool)
    for depth, count in depths.items():
        unjudged[depth - (count - unjudged[:depth].sum()) : depth] = True
    docnos = [f"{'u' if new else 'j'}{rank:03}" for rank, new in enumerate(unjudged)]
    run = pd.DataFrame({"qid": "q", "docno": docnos, "score": -np.arange(120.0)})
    qrels = pd.DataFrame({"qid": "q", "docno": [d for d in docnos if d.startswith("j")], "label": 1})
    result = row(diagnose({"mine": run.sample(frac=1, random_state=0)}, qrels))
    assert {depth: result[f"unjudged@{depth}"] for depth in depths} == {d: n / d for d, n in depths.items()}


def test_ties_are_the_share_of_the_first_ten_places_whose_score_another_document_has():
    scores = [9.0, 9.0, 8.0, 7.0, 7.0, 7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 1.0, 1.0]
    run = pd.DataFrame({"qid": "q1", "docno": [f"d{i}" for i in range(13)], "score": scores})
    diagnosis = diagnose({"mine": run}, QRELS)
    # Ranks two and three, and rank ten, which is tied with rank eleven.
    assert row(diagnosis)["tied@10"] == 6 / 10
    assert row(diagnosis)["float32"] == 0
    assert "run 'mine': 60% of the top 10 documents are tied; docno breaks ties, as in trec_eval" in diagnosis.notes


def test_few_ties_are_counted_without_a_note():
    run = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(1, 5)], 11), "docno": [f"d{i}" for i in range(44)]})
    diagnosis = diagnose({"mine": run.assign(score=[0.0, 0.0, *-np.arange(2.0, 44)])}, QRELS)
    assert row(diagnosis)["tied@10"] == 2 / 40
    assert not any("tied" in note for note in diagnosis.notes)


def test_neighbours_that_differ_only_beyond_float32_are_counted():
    scores = [1 + 1e-12, 1.0, 1 - 1e-12, 0.5, 0.5, 0.25]
    run = pd.DataFrame({"qid": "q1", "docno": list("abcdef"), "score": scores})
    diagnosis = diagnose({"mine": run}, QRELS)
    assert row(diagnosis)["float32"] == 2
    assert row(diagnosis)["tied@10"] == 5 / 6
    assert "run 'mine': 2 adjacent scores differ only beyond 32-bit precision: ties, as in trec_eval" in diagnosis.notes


def test_repeated_documents_are_counted_and_the_rest_is_looked_at():
    # Rows are dropped by place, whatever their labels.
    diagnosis = diagnose({"mine": pd.concat([RUN, RUN.iloc[[0, 1, 1]].assign(score=[0.3, 0.2, 0.1])])}, QRELS)
    clean = row(diagnose({"mine": RUN}, QRELS))
    assert row(diagnosis) == {**clean, "rows": 12, "duplicates": 3}
    assert (
        "run 'mine': 3 rows repeat a document of their topic; score them with "
        "vbterrier.score(..., data=Data(duplicates='first'))" in diagnosis.notes
    )


def test_topics_that_are_missing_or_extra_are_counted_for_each_run():
    other = pd.concat([RUN[RUN["qid"] == "q2"], RUN.assign(qid="q8"), RUN.assign(qid="q9")])
    diagnosis = diagnose({"one": RUN, "two": other}, QRELS)
    assert diagnosis.runs[["name", "missing", "extra"]].to_numpy().tolist() == [["one", 1, 0], ["two", 2, 2]]
    assert (
        "topics: one lacks 1, two lacks 2 of the judged topics; "
        "vbterrier.compare(..., data=Data(on_topics='common')) evaluates their common topics" in diagnosis.notes
    )
    assert "topics without judgments are left out: two 2" in diagnosis.notes


def test_files_without_fault_give_no_notes():
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "score": [2.0, 1.0]})
    qrels = pd.DataFrame({"qid": ["q1", "q2", "q2"], "docno": ["a", "b", "c"], "label": [1, 1, 0]})
    diagnosis = diagnose({"mine": run}, qrels)
    assert diagnosis.notes == ()
    assert reason(diagnosis, "BNDCG") == "no document is unjudged: they equal nDCG"
    assert reason(diagnosis, "ENDCG") == "they estimate the scores of complete judgments, with all runs in one call"
    assert reason(diagnosis, "nDCG, AP") == "complete to depth 10"


# BAP is not advised.
OWN, ESTIMATED = (
    ", ".join(one.NAME for one in family if one.NAME != "BAP") for family in (measures.BOOTSTRAPPED, measures.ESTIMATED)
)
UNJUDGED = ", NDCGBound, Unjudged"
INTENTS, SUBTOPICS = "VB, ES, VarPenalty, TopIntent", "alpha_nDCG, ERR_IA, StRecall"


def test_adhoc_judgments_support_the_measures_of_unjudged_documents_and_say_why_not_others():
    diagnosis = diagnose({"mine": RUN}, QRELS)
    supported = {OWN + UNJUDGED: True, ESTIMATED: True, "nDCG, AP, P": True}
    assert possible(diagnosis) == {**supported, INTENTS: False, SUBTOPICS: False}
    assert reason(diagnosis, "BNDCG") == "some documents are unjudged: report these measures beside nDCG"
    assert reason(diagnosis, "nDCG, AP") == "unjudged documents count as non-relevant"
    assert "VB(intents='...',tags='...')@10" in reason(diagnosis, "VB")
    assert reason(diagnosis, "alpha_nDCG") == "they need diversity qrels"
    # Judging in rounds, as for TREC-COVID.
    rounds = diagnose({"mine": RUN}, QRELS.assign(iteration=["0.5", "0.5", "1", "1", "1.5", "1.5", "2"]))
    assert facts(rounds)["kind"] == "adhoc"
    assert possible(rounds) == possible(diagnosis)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(
    ("iterations", "has_subtopics"),
    [("0000000", False), ("1111111", False), ("0011100", False), ("1122334", True), ("0120120", True)],
)
def test_measures_of_intents_are_possible_exactly_where_they_have_a_value(iterations, has_subtopics):
    """Documents may be about one subtopic each, as those about people of one name."""
    qrels = QRELS.assign(iteration=list(iterations))
    diagnosis = diagnose({"mine": RUN}, qrels)
    assert possible(diagnosis)[INTENTS] is possible(diagnosis)[SUBTOPICS] is has_subtopics
    assert possible(diagnosis)["nDCG, AP, P"]
    assert facts(diagnosis)["kind"].startswith("diversity") is has_subtopics
    for measure in ("VB@10", "ES@10", "TopIntent@10", "WeightedERRIA@10", "alpha_nDCG@10", "StRecall@5"):
        options = {"measures": [measure], "data": Data(on_topics="all"), "inference": Inference(n_resamples=2)}
        if has_subtopics:
            assert 0 <= score(RUN, qrels, **options).means().iloc[0, 0] <= 1
        else:
            with pytest.raises(InputError, match=r"iterations .* are no subtopics, so that queries have no intents"):
                score(RUN, qrels, **options)


def test_intents_with_different_probabilities_support_weighted_measures():
    qrels = pd.DataFrame({"qid": "q1", "iteration": ["1", "2", "2"], "docno": ["a", "a", "b"], "label": [0, 1, 1]})
    diagnosis = diagnose({"mine": RUN[RUN["qid"] == "q1"]}, qrels.assign(prob=[0.8, 0.2, 0.2]))
    assert possible(diagnosis)[INTENTS]
    assert not possible(diagnosis)[SUBTOPICS]
    assert (
        reason(diagnosis, "alpha_nDCG")
        == "they ignore different probabilities: use WeightedAlphaNDCG, WeightedERRIA and ES"
    )


def test_positive_judgments_alone_support_measures_that_estimate_no_relevance():
    diagnosis = diagnose({"mine": RUN}, QRELS.assign(label=1))
    assert list(possible(diagnosis).items())[:3] == [
        (OWN, False),
        (ESTIMATED, False),
        ("RR, NDCGBound, Unjudged", True),
    ]
    assert reason(diagnosis, "BNDCG") == "without judged non-relevant documents they need an explicit prior="
    assert reason(diagnosis, "ENDCG") == "without judged non-relevant documents their model cannot be fitted"
    with pytest.raises(InputError, match="have grade 0"):
        score({"mine": RUN}, QRELS.assign(label=1), ["ENDCG@10"])


def test_diversity_judgments_support_the_measures_of_intents_and_say_what_to_do_for_others():
    qrels = pd.DataFrame(
        {"qid": "q1", "iteration": ["1", "2", "2", "3"], "docno": ["a", "a", "b", "c"], "label": [0, 1, 1, 0]}
    )
    diagnosis = diagnose({"mine": RUN[RUN["qid"] == "q1"]}, qrels)
    assert facts(diagnosis)["kind"] == "diversity, 3 iterations"
    assert possible(diagnosis) == {
        f"{OWN + UNJUDGED}, {ESTIMATED}": False,
        "nDCG, AP, P": False,
        INTENTS: True,
        SUBTOPICS: True,
    }
    assert all("vbterrier.frames.flatten_qrels" in reason(diagnosis, measure) for measure in ("BNDCG", "nDCG, AP"))
    assert "only the last subtopic would count" in reason(diagnosis, "nDCG, AP")
    # Of a, x1, b, x2, x3, c the judged ones are a, b, c.
    assert row(diagnosis)["unjudged@10"] == 0.5
    assert diagnosis.notes == ()


def test_repeated_and_conflicting_judgments_are_notes():
    clean = row(diagnose({"mine": RUN}, QRELS))
    diagnosis = diagnose({"mine": RUN}, pd.concat([QRELS, QRELS.iloc[:1]]))
    assert "qrels: 2 rows judge a document that is duplicated in its topic" in diagnosis.notes
    assert row(diagnosis) == clean
    diagnosis = diagnose({"mine": RUN}, pd.concat([QRELS, QRELS.iloc[:1].assign(label=0)], ignore_index=True))
    assert any("document 'a' of query 'q1' has the labels 2 (row 0) and 0 (row 7)" in note for note in diagnosis.notes)
    assert row(diagnosis)["unjudged@5"] == clean["unjudged@5"]
    assert possible(diagnosis) == {"all measures": False}


def test_of_empty_runs_no_measure_is_possible():
    support = diagnose({"mine": RUN.iloc[:0]}, QRELS).support
    assert [(item.possible, item.reason) for item in support] == [(False, "the runs are empty: every topic scores 0")]


def test_nothing_in_common_is_a_finding_and_leaves_no_measure():
    diagnosis = diagnose({"mine": RUN.assign(qid=RUN["qid"].str.replace("q", "topic-"))}, QRELS)
    assert possible(diagnosis) == {"all measures": False}
    assert reason(diagnosis, "all") == "runs and qrels share no topic or id"
    assert any("no topic in common: run 'mine' has 'topic-1', 'topic-2'" in note for note in diagnosis.notes)
    assert np.isnan(row(diagnosis)["unjudged@10"])
    assert (row(diagnosis)["missing"], row(diagnosis)["extra"]) == (3, 2)


def test_numbers_against_text_are_a_finding():
    diagnosis = diagnose({"mine": RUN.assign(qid=1, docno=range(9))}, QRELS)
    assert any("holds text, run 'mine' column 'qid' holds integers" in note for note in diagnosis.notes)
    assert possible(diagnosis) == {"all measures": False}


def test_one_run_that_meets_the_judgments_is_enough_for_measures():
    diagnosis = diagnose({"stray": RUN.assign(qid="q9"), "mine": RUN}, QRELS)
    assert possible(diagnosis)[OWN + UNJUDGED]
    assert diagnosis.runs["unjudged@5"].isna().tolist() == [True, False]


def test_the_doctor_diagnoses_runs_of_trec_covid(shared_data):
    from vbterrier import read_qrels, read_run

    folder = shared_data / "trec-covid"
    runs = {n: read_run(folder / f"run.{n}.top100.txt.gz") for n in ("ance", "BBGhelani2")}
    diagnosis = diagnose(runs, read_qrels(folder / "qrels.incomplete.txt.gz"))
    assert facts(diagnosis)["topics"] == "50"
    assert facts(diagnosis)["judgments"] == "66,336"
    assert facts(diagnosis)["labels below 0"] == "2 (count as 0)"
    assert facts(diagnosis)["kind"] == "adhoc"
    assert row(diagnosis)["unjudged@10"] == pytest.approx(0.224)
    assert diagnosis.runs["missing"].tolist() == [0, 20]
    assert diagnosis.runs["tied@10"].tolist() == [0.0, 0.0]


# Why documents are unjudged.


@pytest.fixture(scope="module")
def pooled():
    """Four runs of different quality, and judgments of all their documents."""
    rng = np.random.default_rng(3)
    runs, rows = {name: [] for name in "abcd"}, []
    for topic in range(30):
        quality = rng.normal(size=120)
        results = set()
        for place, name in enumerate(runs):
            order = np.argsort(-(quality + (0.6 + 0.6 * place) * rng.normal(size=120)))[:40].tolist()
            runs[name] += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
            results.update(order)
        rows += [(f"q{topic}", f"d{doc}", int(quality[doc] > 0.8)) for doc in sorted(results)]
    frames = {name: pd.DataFrame(cells, columns=["qid", "docno", "score"]) for name, cells in runs.items()}
    return frames, pd.DataFrame(rows, columns=["qid", "docno", "label"])


def one_group_out(runs, qrels):
    return next(one.qrels for one in leave_group_out(runs, qrels, cutoff=40) if one.name == "d")


@pytest.mark.filterwarnings("ignore:.* loses? all :vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize(
    ("reduce", "words", "serious"),
    [
        (lambda _, qrels: subsample_qrels(qrels, 0.5, 1), "judgments seem to be missing at random", False),
        (lambda runs, qrels: shallow_pool(runs, qrels, cutoff=3), "and the share falls after rank 3", True),
        (one_group_out, "'d' retrieved documents that were not in the pool", True),
        (lambda _, qrels: qrels[qrels["label"] > 0], "nearly all judged documents are relevant", True),
    ],
    ids=["at random", "a depth", "a group", "positive alone"],
)
def test_the_reason_for_missing_judgments_is_named(pooled, reduce, words, serious):
    runs, qrels = pooled
    left = reduce(runs, qrels)
    diagnosis = diagnose(runs, left)
    assert [note for note in diagnosis.notes if words in note]
    notes = judgment_notes({name: Run(run) for name, run in runs.items()}, Judgments(left))
    assert [note.serious for note in notes if words in note.text] == [serious]


def test_nothing_is_said_of_few_topics(pooled):
    runs, qrels = pooled
    few = [f"q{i}" for i in range(5)]
    some = {name: run[run["qid"].isin(few)] for name, run in runs.items()}
    left = shallow_pool(some, qrels[qrels["qid"].isin(few)], cutoff=3)
    assert judgment_notes({name: Run(run) for name, run in runs.items()}, Judgments(left)) == []
