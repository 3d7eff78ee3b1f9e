"""A stochastic tagger, such as a language model with a temperature, that is run again in replicas."""

import itertools
import json

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier import TagEntities
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate import IntentOptions, Paraphrases, RerunTagger
from vbterrier.intents import ModelTagger, TagOptions

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jordan", "paris"]})
INTENTS = pd.DataFrame(
    {"qid": ["q1", "q1", "q2", "q2"], "entity_id": ["A", "B", "A", "B"], "prob": [0.75, 0.25, 0.5, 0.5]}
)
RUNS = {
    "one": pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d3"], "score": 1.0, "text": ["x", "z"]}),
    "two": pd.DataFrame(
        {"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d3"], "score": [2.0, 1.0, 1.0], "text": ["x", "y", "z"]}
    ),
}


def evaluated(tagger, perturb, n_replicas=6, intents=INTENTS, runs=RUNS, **options):
    return vbterrier.evaluate_intents(
        runs,
        TOPICS,
        intents=intents,
        tagger=tagger,
        measures=["ES"],
        options=IntentOptions(cutoff=2, n_replicas=n_replicas, perturb=perturb, **options),
    )


def of_replicas(tags, intents=INTENTS):
    """ES of each system and query under each list of tags, by loops: shape (systems, lists, queries)."""
    return [
        [
            [
                sum(
                    intent.prob
                    for intent in intents[intents["qid"] == qid].itertuples()
                    if any(intent.entity_id in tag.get(docno, ()) for docno in run.loc[run["qid"] == qid, "docno"])
                )
                for qid in TOPICS["qid"]
            ]
            for tag in tags
        ]
        for run in RUNS.values()
    ]


def test_replicas_take_the_tags_of_each_run_in_turn_for_all_systems():
    draw, requests = np.random.default_rng(5), []

    def tag(text):
        requests.append((text, draw.choice(["A", "B", "C"])))
        return requests[-1][1]

    result = evaluated(TagEntities(tag), [RerunTagger(2)])
    # Each run of the tagger reads each text once, whatever the cache, and the systems share its tags.
    assert [text for text, _ in requests] == ["x", "z", "y"] * 3
    docno = {"x": "d1", "y": "d2", "z": "d3"}
    tags = [{docno[text]: {name} for text, name in requests[at : at + 3]} for at in (0, 3, 6)]
    expected = np.array(of_replicas(tags))
    assert len(np.unique(expected, axis=1)[0]) > 1
    values = result.replicas.values[:, 0]
    assert values == pytest.approx(np.concatenate([expected, expected], axis=1))
    # The score itself is that of the first run, which is among the replicas.
    assert result.values["value"].to_numpy().reshape(2, 2) == pytest.approx(expected[:, 0])


@pytest.mark.slow
def test_a_language_model_gets_a_seed_for_each_document_and_run():
    seeds = []

    def ask(_prompt, *, seed):
        seeds.append(seed)
        return json.dumps({"full": [1 + seed % 2], "part": []})

    def once(_prompt):
        return '{"full": [1], "part": []}'

    def stage(model):
        return TagEntities(ModelTagger(model, INTENTS), fields=None, per_query=True)

    queries = {name: run.merge(TOPICS, on="qid") for name, run in RUNS.items()}

    # The first run has no seed.
    def tagger(prompt, seed=0):
        return ask(prompt, seed=seed)

    first = evaluated(stage(tagger), [RerunTagger(7)], n_replicas=8, runs=queries)
    assert len(set(seeds[3:])) == 21
    assert len(set(first.replicas.values[0, 0, :, 0])) == 2
    of_first = seeds[3:].copy()
    seeds.clear()
    again = evaluated(stage(tagger), [RerunTagger(7)], n_replicas=8, runs=dict(reversed(queries.items())))
    assert sorted(seeds[3:]) == sorted(of_first)
    assert again.replicas.values[::-1] == pytest.approx(first.replicas.values)
    with pytest.warns(DegenerateWarning, match="3 runs of the tagger gave the same tags"):
        evaluated(stage(once), [RerunTagger(2)], runs=queries)


def test_further_runs_keep_the_options_of_the_tagger():
    cycle = itertools.cycle([{"A": 0.9, "B": 0.4}] * 3 + [{"A": 0.2, "B": 0.4}] * 3)
    stage = TagEntities(lambda _text: next(cycle), options=TagOptions(cutoff=1, min_weight=0.3))
    assert stage.without_cache() == stage
    message = r"exclude the score itself .*: the first run, whose score it is, is an extreme one .*n_runs="
    with pytest.warns(DegenerateWarning, match=message):
        result = evaluated(stage, [RerunTagger(1)], n_replicas=2)
    # The first run tags all documents with A, the second with B alone: each of weight .9 and .4.
    assert result.replicas.values[0, 0].tolist() == [
        pytest.approx([0.9 * 0.75, 0.45]),
        pytest.approx([0.4 * 0.25, 0.2]),
    ]


def test_tags_of_runs_are_those_of_intents_with_parts():
    intents = INTENTS[INTENTS["qid"] == "q1"].assign(entity_id=["w", "v"], parts=[["A", "B"], ["A"]])
    intents = pd.concat([intents, intents.assign(qid="q2", prob=[0.5, 0.5])])
    for reading, expected in (("all", (1.0, 0.25)), ("together", (1.0, 0.25)), ("split", (1.0, 0.625))):
        cycle = itertools.cycle([["A", "B"]] * 2 + [["A"]] * 2)

        def tag(_text, cycle=cycle):
            return next(cycle)

        result = evaluated(tag, [RerunTagger(1)], intents=intents, runs={"one": RUNS["one"]}, parts=reading)
        assert result.replicas.values[0, 0, :2, 0].tolist() == pytest.approx(expected), reading


@pytest.mark.parametrize("fixed", [False, True])
def test_replicas_have_a_wording_and_a_tagging(fixed):
    """Replica b has wording b mod 2 and tagging b mod 3 (Ding 2025, Algorithm 1)."""
    # Six documents: those of the two queries by wording, which the pipeline retrieves.
    shown = {"jordan": "d1", "paris": "d2", "jordan nba": "d3", "paris texas": "d4"}
    topics = TOPICS.assign(paraphrases=["jordan nba", "paris texas"])
    frame = topics.assign(docno=topics["query"].map(shown), score=1.0)
    system = pt.apply.generic(lambda queries: queries.assign(docno=queries["query"].map(shown), score=1.0, rank=0))
    runs = {"one": frame[["qid", "docno", "score"]] if fixed else system}
    prob = {"jordan": 0.75, "paris": 0.5, "jordan nba": 0.5, "paris texas": 1.0}

    def candidates(queries):
        tables = [queries[["qid"]].assign(entity_id="A", prob=queries["query"].map(prob)),
                  queries[["qid"]].assign(entity_id="B", prob=1 - queries["query"].map(prob))]  # fmt: skip
        return pd.concat(tables, ignore_index=True)

    taggings = [{"d1": "A", "d2": "B", "d3": "A", "d4": "A"}, {"d1": "B", "d2": "B", "d3": "B", "d4": "A"},
                {"d1": "A", "d2": "A", "d3": "B", "d4": "B"}]  # fmt: skip
    number = itertools.count()

    def tag(documents):
        tags = taggings[next(number)]
        return documents[["docno"]].assign(entity_id=documents["docno"].map(tags))

    evaluation = vbterrier.evaluate_intents(
        runs,
        topics,
        intents=pt.apply.generic(candidates),
        tagger=TagEntities(tag, fields=None),
        measures=["ES"],
        options=IntentOptions(cutoff=1, n_replicas=12, perturb=[Paraphrases(order="turn"), RerunTagger(2)]),
    )
    wordings = [["jordan", "paris"], ["jordan nba", "paris texas"]]
    expected = []
    for b in range(12):
        wording, tags = wordings[b % 2], taggings[b % 3]
        listed = wordings[0] if fixed else wording
        expected.append([
            prob[text] if tags[shown[of]] == "A" else 1 - prob[text] for text, of in zip(wording, listed, strict=True)
        ])  # fmt: skip
    assert evaluation.replicas.values[0, 0].tolist() == [pytest.approx(row) for row in expected]
    (note,) = (note for note in evaluation.notes if "RerunTagger" in note)
    assert note.startswith("RerunTagger(n_runs=2): 12 replicas hold 3 taggings")
    assert note.endswith("RerunTagger(11) makes one for each replica")
