"""Annotation of candidate intents: sheets, prompts, labels, and the benchmarks made of them."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.evaluate.annotation import INSTRUCTIONS, annotate
from vbterrier.frames.files.reading import read_annotations
from vbterrier.intents.calibration import calibration_error
from vbterrier.settings import Inference
from vbterrier.stats.kappa import judge_agreement, krippendorff_alpha

TOPICS = pd.DataFrame({"qid": ["007", "b", "c"], "query": ["jordan", 'mercury "the" {query}', "java"]})
INTENTS = pd.DataFrame(
    {
        "qid": ["b", "b", "007", "007", "007", "c"],
        "entity_id": ["planet", "god", "athlete", "country", "NA", "island"],
        "prob": [0.75, 0.25, 0.5, 0.25, 0.25, 1.0],
        "name": ["Mercury, the\tplanet", "=Mercury", "Michael", None, "river", "Java"],
    }
)


@pytest.fixture
def task():
    return annotate(TOPICS, INTENTS)


def sheet(task, meant, **columns):
    """The labels of somebody who means these entities; the queries without any are not answered."""
    entities = task.items["entity_id"]
    answered = task.items["qid"].map({qid: bool(result) for qid, result in meant.items()})
    label = [str(int(e in meant[q])) if q in meant else "" for q, e in zip(task.items["qid"], entities, strict=True)]
    return task.items[["qid", "entity_id"]].assign(label=pd.Series(label).where(answered.eq(True), ""), **columns)


ANN = {"007": {"athlete", "country"}, "b": {"planet", "god"}, "c": {"NIL"}}
BOB = {"007": {"athlete"}, "b": {"planet", "NIL"}}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("blind", [False, True])
def test_a_sheet_is_written_labelled_and_read_back(tmp_path, suffix, blind):
    task, path = annotate(TOPICS, INTENTS, blind=blind), tmp_path / f"ann.{suffix}"
    assert task.write(path).read_text() == INSTRUCTIONS
    assert task.write(tmp_path / f"bob.{suffix}").name == "bob.instructions.txt"
    with pytest.raises(FileError, match="exists already, perhaps with labels"):
        task.write(path)
    blank = read_annotations(path)
    assert ("prob" in blank.columns) is not blind
    assert blank["label"].eq("").all()
    assert blank[["qid", "entity_id"]].to_numpy().tolist() == task.items[["qid", "entity_id"]].to_numpy().tolist()
    assert blank["query"].tolist() == task.items["query"].tolist()
    names = dict(zip(blank["entity_id"], blank["name"], strict=True))
    assert names["god"] == ("=Mercury" if suffix == "jsonl" else "'=Mercury"), "a spreadsheet runs no formula"
    assert names["planet"] == ("Mercury, the\tplanet" if suffix == "jsonl" else "Mercury, the planet")
    filled = blank.assign(label=sheet(task, ANN)["label"])
    if suffix == "jsonl":
        filled.astype({"label": int}).to_json(path, orient="records", lines=True)
    else:
        how = {"sep": ",", "quoting": csv.QUOTE_ALL} if suffix == "csv" else {"sep": "\t", "quoting": csv.QUOTE_NONE}
        filled.to_csv(path, index=False, quotechar='"', escapechar="\\", **how)
    frame = task.collect({"ann": path})
    pd.testing.assert_frame_equal(frame.labels, task.collect({"ann": sheet(task, ANN)}).labels)
    assert frame.annotators.to_dict("records") == [
        {"annotator": "ann", "kind": "sheet", "n_qids": 3, "n_missing": 0, "saw_prob": not blind}
    ]
    assert len(frame.agreement) == 0


def test_candidates_are_in_their_order_or_shuffled_by_query_alone(task):
    assert " ".join(task.items["entity_id"]) == "athlete country NA NIL planet god NIL island NIL"
    many = pd.DataFrame({"qid": np.repeat([*"abcd"], 6), "entity_id": [*"uvwxyz"] * 4, "prob": 1 / 6})
    topics = pd.DataFrame({"qid": [*"abcd"], "query": "x"})
    first = annotate(topics, many, blind=True).items
    again = annotate(topics.iloc[::-1], many.sample(frac=1, random_state=1), blind=True).items
    orders = first.groupby("qid")["entity_id"].agg("".join)
    assert orders.to_dict() == again.groupby("qid")["entity_id"].agg("".join).to_dict()
    assert orders.str.endswith("NIL").all()
    assert orders.nunique() > 2
    assert annotate(topics, many, blind=True, seed=1).items["entity_id"].tolist() != first["entity_id"].tolist()


def test_votes_agreement_and_calibration_are_those_of_plain_loops(task):
    labels = {"ann": sheet(task, ANN), "bob": sheet(task, BOB)}
    frame = task.collect(labels, n_resamples=50, seed=3)
    expected = {}
    for qid in TOPICS["qid"]:
        answers = [one[qid] for one in (ANN, BOB) if one.get(qid)]
        for entity in task.items.loc[task.items["qid"] == qid, "entity_id"]:
            shares = [(entity in meant) / len(meant) for meant in answers]
            expected[qid, entity] = (
                sum(shares) / len(answers),
                sum(entity in meant for meant in answers) / len(answers),
                len(answers),
            )
    assert list(frame.votes[["qid", "entity_id"]].itertuples(index=False, name=None)) == list(expected)
    np.testing.assert_allclose(frame.votes[["prob", "votes", "n"]].to_numpy(dtype=float), list(expected.values()))
    both = frame.labels.dropna().sort_values(["qid", "entity_id"])
    peers = judge_agreement(both[["ann", "bob"]].astype(int), n_resamples=50, seed=3)
    pd.testing.assert_frame_equal(frame.agreement.iloc[:3], peers)
    rows = frame.labels.sort_values(["qid", "entity_id"])
    alpha = krippendorff_alpha(rows[["ann", "bob"]], groups=rows["qid"], n_resamples=50, seed=3)
    last = frame.agreement.iloc[3]
    assert last[["value", "low", "high", "n_items"]].tolist() == [alpha.value, alpha.low, alpha.high, 7]
    peer = calibration_error(INTENTS, frame.votes[["qid", "entity_id", "prob"]])
    assert (frame.calibration.brier, frame.calibration.missed) == (peer.brier, peer.missed)
    assert frame.calibration.missed == pytest.approx((0.25 + 1) / 3)
    assert frame.unanswered.to_numpy().tolist() == [["bob", "c", "2 of 2 labels missing"]]
    assert "3 queries with labels of 2 annotators" in repr(frame)
    assert "Krippendorff" in frame._repr_html_()


def test_a_query_with_gaps_is_not_used(task):
    part = sheet(task, ANN).drop(index=1)
    frame = task.collect({"ann": part})
    assert frame.unanswered.to_numpy().tolist() == [["ann", "007", "1 of 4 labels missing"]]
    assert frame.votes["qid"].unique().tolist() == ["b", "c"]
    with pytest.raises(InputError, match="wanted a mapping of annotator to sheet"):
        task.collect(part)


ANSWERS = {
    '{"meanings": [1, 3]}': ["1", "0", "1", "0"],
    ' {"meanings": [0]}\n': ["0", "0", "0", "1"],
    '{"meanings": []}': "wanted",
    '{"meanings": [4]}': "from 0 to 3, found [4]",
    '{"meanings": [1, 1]}': "distinct numbers",
    '{"meanings": [true]}': "found [True]",
    '{"meanings": ["1"]}': ["1", "0", "0", "0"],
    '{"meanings": [1], "meanings": [2]}': "wanted",
    '{"meanings": [1], "why": "x"}': ["1", "0", "0", "0"],
    'Sure:\n```json\n{"meanings": [[1]]}\n```': ["1", "0", "0", "0"],
    "<think>[2]</think>[1]": ["1", "0", "0", "0"],
    "1 or [2]": "wanted",
    '[["meanings", [1]]]': "wanted",
    "The first.": "wanted",
    "[" * 100_000: "wanted",
    None: "wanted",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_of_functions_are_read_or_refused(task, answer):
    expected, result = ANSWERS[answer], task.ask(lambda _: answer).query("qid == '007'").set_index("entity_id")
    if isinstance(expected, list):
        assert result.loc[["athlete", "country", "NA", "NIL"], "label"].tolist() == expected
        assert result["failure"].eq("").all()
    else:
        assert result["label"].eq("").all()
        assert expected in result["failure"].iloc[0]


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_no_text_is_an_answer_by_chance(text):
    task = annotate(TOPICS, INTENTS)
    result = task.ask(lambda _: text)
    assert result["label"].eq("").all() == result["failure"].ne("").all()


def test_a_function_that_fails_fails_its_query_alone(task):
    def judge(prompt):
        if "mercury" in prompt:
            raise TimeoutError("no answer")
        return '{"meanings": [1]}'

    frame = task.collect({"model": task.ask(judge), "ann": sheet(task, ANN)})
    assert frame.unanswered.to_numpy().tolist() == [["model", "b", "TimeoutError: no answer"]]
    assert frame.annotators["kind"].tolist() == ["function", "sheet"]


def test_prompts_show_data_as_json_and_no_probability(task):
    prompt = task.prompts()["b"]
    assert json.dumps('mercury "the" {query}') in prompt
    assert '1: "planet, Mercury, the\\tplanet"\n2: "god, =Mercury"\n0: any entity' in prompt
    assert "0.75" not in prompt
    assert '{"meanings": [1, 2]}' in prompt
    assert task.prompts("{query}|{candidates}")["c"] == '"java"|1: "island, Java"'
    for template in ("{query}", "{candidates}", "{query} {candidates} {other}", "{query} {candidates} {0}"):
        with pytest.raises(ParameterError, match="template"):
            task.prompts(template)


def test_a_benchmark_is_what_enough_annotators_mean(task):
    frame = task.collect({"ann": sheet(task, ANN), "bob": sheet(task, BOB)})
    with pytest.warns(DegenerateWarning, match="1 query without an entity of enough votes left out .'c'"):
        made = frame.benchmark()
    expected = {("007", "athlete"): 3 / 4, ("007", "country"): 1 / 4, ("b", "planet"): 2 / 3, ("b", "god"): 1 / 3}
    assert made.set_index(["qid", "entity_id"])["prob"].to_dict() == pytest.approx(expected)
    with pytest.warns(DegenerateWarning, match="1 query without"):
        strict = frame.benchmark(min_votes=1, probs="candidates")
    assert strict[["entity_id", "prob"]].to_numpy().tolist() == [["athlete", 1.0], ["planet", 1.0]]
    kept = frame.benchmark(nil=True)
    assert kept.loc[kept["qid"] == "c", "entity_id"].tolist() == ["NIL"]
    with pytest.raises(ParameterError, match="no probability of NIL"):
        frame.benchmark(nil=True, probs="candidates")
    # 0 would keep entities that nobody labelled 1.
    with pytest.raises(ParameterError, match=r"min_votes=0: wanted a number above 0"):
        frame.benchmark(min_votes=0)
    only = task.collect({"ann": sheet(task, {"c": {"NIL"}})})
    with pytest.raises(InputError, match="no entity has the votes"):
        only.benchmark()


def test_a_benchmark_is_a_set_of_intents_with_a_datasheet(task, tmp_path):
    frame = task.collect({"ann": sheet(task, ANN), "b|o<b>": sheet(task, BOB, prob=0.5)})
    tags = pd.DataFrame({"docno": ["d1"], "entity_id": ["athlete"]})
    about = {"queries": "my *log*\n# x", "candidates": "Wikidata"}
    with pytest.warns(DegenerateWarning, match="left out"):
        made, again = (
            frame.pack(tmp_path / name, date="2026-01-31", sources=about, tags=tags) for name in ("set", "again")
        )
    text = made.datasheet()
    assert text == again.datasheet(), "nothing depends on the time or the folder"
    for words in (
        "| date | 2026-01-31 |",
        f"SHA-256 {made.digest}",
        "| queries | 2 of 3 annotated |",
        "| candidates | 6, of which 4 kept |",
        r"| queries | my \*log\* \# x |",
        r"| b\|o\<b\> | sheet | 2 | 1 | True |",
        r"| b\|o\<b\> | c | 2 of 2 labels missing |",
        "Krippendorff's alpha",
        "| entropy (bits) | 0.8648 |",
        "| share of queries with several intents | 1 |",
        "Write into the column label",
    ):
        assert words in text
    assert made.topics()["query"].tolist() == TOPICS["query"].tolist()[:2]
    assert made.annotations()["ann"].tolist() == frame.labels["ann"].tolist()
    run = pd.DataFrame({"qid": ["007", "b"], "docno": ["d1", "d2"], "score": 1.0})
    assert (
        vbterrier.score(run, made.intents(), [made.ES @ 5], inference=Inference(n_resamples=2)).means().iloc[0, 0]
        == 0.375
    )
    for wrong in ({"date": "yesterday"}, {"date": None}, {"sources": {}}):
        with pytest.raises(ParameterError):
            frame.pack(tmp_path / "no", **{"date": "2026-01-31", "sources": about, **wrong})


def test_the_intent_of_any_other_entity_may_be_a_candidate(tmp_path):
    intents = pd.DataFrame({"qid": "a", "entity_id": ["x", "NIL"], "prob": [0.75, 0.25]})
    task = annotate(pd.DataFrame({"qid": ["a"], "query": ["x"]}), vbterrier.IntentSet.build(tmp_path / "s", intents))
    assert len(task.items) == 2
    assert task.collect({"ann": sheet(task, {"a": {"NIL"}})}).calibration.missed == 0


def test_ids_that_a_spreadsheet_would_run_are_written_as_json_lines(tmp_path):
    annotate(TOPICS, INTENTS.replace("god", "=1+1")).write(tmp_path / "ann.jsonl")
    assert "=1+1" in set(pd.read_json(tmp_path / "ann.jsonl", lines=True)["entity_id"])
