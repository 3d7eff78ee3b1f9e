"""Language models as callables: generated intents, probabilities, tags of documents and answers, failed replies."""

import itertools
import json
from dataclasses import replace

import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import IntentOptions, RerunPipeline, RerunSystems
from vbterrier.intents import GenerateIntents, ModelProbabilities, ModelTagger
from vbterrier.intents.language_model import ANSWER_PROMPT, GENERATION_PROMPT
from vbterrier.intents.tagging import TagEntities

one_query = pytest.mark.filterwarnings("ignore:an interval over topics needs at least two topics")
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jordan", 'say "hi" {now}'], "year": [1, 2]})
INTENTS = pd.DataFrame(
    {"qid": ["q1", "q1", "q1", "q2"], "query": ["jordan"] * 3 + ["java"], "entity_id": ["E1", "E2", "NIL", "E3"]}
).assign(name=["country", "athlete", None, "island"], prob=[0.3, 0.3, 0.4, 1.0])
DOCUMENTS = pd.DataFrame(
    {"qid": ["q1", "q1", "q2", "q9"], "docno": [*"abca"], "text": ["Amman", "NBA", "coffee", "x"], "score": 1.0}
)


def generated(*intents):
    return json.dumps({"intents": [{"name": name, "probability": prob} for name, prob in intents]})


def test_intents_are_generated_by_one_call_a_query_and_normalised():
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        return generated(("country", 0.2), ("athlete", 0.6), (" river ", 0.1))

    result = GenerateIntents(ask, cutoff=2)(TOPICS)
    assert result[["qid", "entity_id", "prob", "year"]].values.tolist() == [
        ["q1", "athlete", pytest.approx(0.75), 1],
        ["q1", "country", pytest.approx(0.25), 1],
        ["q2", "athlete", pytest.approx(0.75), 2],
        ["q2", "country", pytest.approx(0.25), 2],
    ]
    assert len(prompts) == 2
    assert json.dumps(TOPICS["query"][1]) in prompts[1], "the query is data, whatever it contains"
    assert GenerateIntents(ask) == GenerateIntents(ask)
    # The stage goes on to the others.
    assert (GenerateIntents(ask) >> vbterrier.Truncate(cutoff=1))(TOPICS)["prob"].tolist() == [1.0, 1.0]
    assert list(GenerateIntents(ask)(TOPICS[:0]).columns) == list(result.columns)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("the country", "wanted {\"intents\": [...]}, found 'the country'"),
        (generated(), r"wanted a list of intents, found \[\]"),
        (generated(("a", 0.5), ("a", 0.5)), "wanted distinct names other than NIL, found 'a'"),
        (generated(("NIL", 0.5)), "wanted distinct names other than NIL"),
        (generated(("a", 1.5)), "wanted probabilities from 0 to 1, found 1.5"),
        (generated(("a", True)), "wanted probabilities from 0 to 1, found True"),
        (generated(("a", 0)), "the probabilities sum to 0"),
        ('{"intents": [{"name": 7, "probability": 1}]}', "wanted a name and a probability"),
        ('{"intents": ["a"]}', "wanted a name and a probability"),
        ('{"intents": [], "intents": []}', "wanted"),
        (None, "wanted"),
    ],
)
def test_failed_replies_are_counted_and_say_why(reply, reason):
    replies = iter([generated(("country", 1)), reply])
    stage = GenerateIntents(lambda _: next(replies))
    with pytest.warns(DegenerateWarning, match=r"1 of 2 replies failed, whose queries are left out.*'q2'"):
        assert stage(TOPICS)["qid"].tolist() == ["q1"]
    _, failures = GenerateIntents(lambda _: reply).generate(TOPICS)
    assert failures["qid"].tolist() == ["q1", "q2"]
    assert failures["reason"].str.contains(reason.replace("{", r"\{").replace("[...]", r"\[...\]")).all()


REPLY = generated(("country", 0.6), ("athlete", 0.2))


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        f"```json\n{REPLY}\n```",
        f"Here are the {{meanings}}:\n\n```\n{REPLY}\n```\nI hope that this helps.",
        f'<think>Maybe {{"intents": [["river", 1]]}}?</think>\n{REPLY}',
        f"The template opened this.</think>{REPLY}",
        f"{REPLY}\nAgain: {REPLY}",
        json.dumps({"result": json.loads(REPLY), "note": "sure"}),
        REPLY.replace("0.6", '"60%"').replace("0.2", '"0.2"'),
        '{"intents": [["country", 0.6], ["athlete", "20 %"]]}',
        '{"intents": [[' + REPLY[len('{"intents": [') : -1] + "]}",
        REPLY[len('{"intents": ') : -1],
        "```json\n" + REPLY[len('{"intents": ') : -1] + "\n```",
        '{"intents": [{"name": "country", "probability": 0.6, "why": "x"}, ["athlete", 0.2]], "query": "jordan"}',
    ],
)
def test_replies_are_read_as_models_write_them(reply):
    intents, failures = GenerateIntents(lambda _: reply).generate(TOPICS[:1])
    assert not len(failures)
    assert dict(zip(intents["entity_id"], intents["prob"], strict=True)) == pytest.approx(
        {"country": 0.75, "athlete": 0.25}
    )


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"probabilities": [[0.9, 0.3]]}', [0.75, 0.25]),
        ('{"probabilities": ["90%", "30 %"]}', [0.75, 0.25]),
        ("[0.9, 0.3]", [0.75, 0.25]),
        ('{"probabilities": [0.9, 0.3, 0.1]}', None),
        ('{"probabilities": [90, 30]}', None),
        ('{"probabilities": ["90", "30"]}', None),
        ('{"probabilities": ["high", "low"]}', None),
        ('{"probabilities": [NaN, 0.3]}', None),
        ('{"probabilities": [0.9, 0.3]} or {"probabilities": [0.3, 0.9]}', None),
        ('<think>{"probabilities": [0.9, 0.3]}</think>', None),
        ('<think>{"probabilities": [0.9, 0.3]}', None),
        ('{"probabilities": [0.9, 0.', None),
        ("{" * 10_000, None),
        ("[" * 100_000, None),
    ],
)
def test_probabilities_are_read_or_refused(reply, expected):
    intents = INTENTS[:2].assign(prob=[0.6, 0.4])
    stage = ModelProbabilities(lambda _: reply)
    if expected is None:
        with pytest.warns(DegenerateWarning, match="1 of 1 replies failed"):
            assert stage(intents)["prob"].tolist() == pytest.approx([0.6, 0.4])
    else:
        assert stage(intents)["prob"].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"full": [["2"]], "part": null, "why": "x"}', [["E2", 1.0]]),
        ('```json\n{"full": 2, "part": [1.0]}\n```', [["E1", 0.5], ["E2", 1.0]]),
        ('{"full": [0], "part": []}', None),
        ('{"full": [1.5], "part": []}', None),
        ('{"full": [true], "part": []}', None),
        ('{"full": [Infinity], "part": []}', None),
        ('{"full": [2]}', None),
    ],
)
def test_numbers_of_candidates_are_read_or_refused(reply, expected):
    tags, failures = ModelTagger(lambda _: reply, INTENTS).tags(DOCUMENTS[:1])
    assert len(failures) == (expected is None)
    assert sorted(tags[["entity_id", "weight"]].values.tolist()) == (expected or [])


def test_an_exception_of_the_model_fails_its_query_alone():
    def ask(prompt):
        if "jordan" in prompt:
            raise TimeoutError("too slow")
        return generated(("greeting", 1))

    intents, failures = GenerateIntents(ask).generate(TOPICS)
    assert intents["qid"].tolist() == ["q2"]
    assert failures.to_numpy().tolist() == [["q1", "TimeoutError: too slow"]]


def test_probabilities_are_those_of_the_model_and_nil_keeps_its_own():
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        return '{"probabilities": [0.9, 0.3]}' if "jordan" in prompt else '{"probabilities": [1]}'

    result = ModelProbabilities(ask)(INTENTS)
    assert result["prob"].tolist() == pytest.approx([0.45, 0.15, 0.4, 1.0])
    assert '1: "E1, country"\n2: "E2, athlete"' in prompts[0]
    assert "NIL" not in prompts[0]
    with pytest.warns(DegenerateWarning, match=r"2 of 2 replies failed, whose queries keep their probabilities"):
        kept = ModelProbabilities(lambda _: '{"probabilities": [0, 0]}')(INTENTS)
    assert kept["prob"].tolist() == pytest.approx(INTENTS["prob"].tolist())
    only_nil = INTENTS[2:3].assign(prob=1.0)
    assert ModelProbabilities(ask)(only_nil)["prob"].tolist() == [1.0]


def test_documents_are_tagged_with_the_intents_of_their_query():
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        if "coffee" in prompt:
            return '{"full": [2], "part": []}'
        return '{"full": [1], "part": [1, 2]}' if "Amman" in prompt else '{"full": [], "part": []}'

    tagger = ModelTagger(ask, INTENTS, part=0.25)
    with pytest.warns(DegenerateWarning, match=r"1 of 4 replies failed, whose documents have no tags.*'q2'.*1 to 1"):
        tags = tagger(DOCUMENTS)
    assert sorted(tags.values.tolist()) == [["q1", "a", "E1", 1.0], ["q1", "a", "E2", 0.25]]
    assert len(prompts) == 3, "q9 has no intents"
    assert tagger.tags(DOCUMENTS)[1][["qid", "docno"]].values.tolist() == [["q2", "c"]]
    assert repr(tagger).startswith("ModelTagger(test_documents")
    with pytest.warns(DegenerateWarning, match="replies failed"):
        made = vbterrier.TagEntities(tagger, fields=None, per_query=True)(DOCUMENTS)
    assert made["entity_id"].tolist() == [["E1", "E2"], [], [], []]


@one_query
def test_answers_are_judged_against_the_intents():
    answers = pd.DataFrame({"qid": ["q1"], "docno": ["system/q1"], "text": ["Both."], "score": 1.0})
    prompts = []

    def judge(prompt):
        prompts.append(prompt)
        return '{"full": [1], "part": [2]}'

    stage = vbterrier.TagEntities(ModelTagger(judge, INTENTS, prompt=ANSWER_PROMPT), fields=None, per_query=True)
    options = {
        "intents": INTENTS[INTENTS["qid"] == "q1"],
        "tagger": stage,
        "measures": ["ES"],
        "options": IntentOptions(cutoff=1),
    }
    averages = vbterrier.evaluate_intents({"mine": answers}, TOPICS[:1], **options).means()
    assert averages.iloc[0, 0] == pytest.approx(0.3 + 0.3 * 0.5)
    assert "Which of them does this answer serve?" in prompts[0]


def test_what_is_no_model_prompt_or_document_is_refused():
    for make in (GenerateIntents, ModelProbabilities, lambda ask: ModelTagger(ask, INTENTS)):
        with pytest.raises(ParameterError, match="ask='gpt': wanted a function from a prompt to a reply"):
            make("gpt")
    with pytest.raises(ParameterError, match=r"prompt: wanted the fields \{query\}"):
        GenerateIntents(len, prompt="List meanings.")
    with pytest.raises(ParameterError, match="part=2: wanted a number from 0 to 1"):
        ModelTagger(len, INTENTS, part=2)
    with pytest.raises(InputError, match="wanted a column query, in them or in the intents"):
        ModelTagger(len, INTENTS.drop(columns="query"))(DOCUMENTS)


def test_models_that_take_a_seed_get_that_of_the_replica():
    seeds = []

    def ask(prompt, *, seed=0):
        seeds.append(seed)
        return generated(("country", 0.25 if seed % 2 else 0.75), ("athlete", 0.5))

    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d", "d"], "score": 1.0})
    tags = pd.DataFrame({"docno": ["d"], "entity_id": ["country"]})
    options = {"intents": GenerateIntents(ask), "tagger": tags, "measures": ["ES"]}
    again = IntentOptions(cutoff=1, n_replicas=6, perturb=[RerunPipeline()])
    made = vbterrier.evaluate_intents({"a": run}, TOPICS, **options, options=again)
    assert len(seeds) == 2 + 2 * 6
    assert set(made.replicas.values.ravel().round(9)) == {round(1 / 3, 9), 0.6}


class Sampled(pt.Transformer):
    """A system that answers by chance: the country with probability 1/2."""

    def transform(self, inp):
        seed = inp["seed"] if "seed" in inp.columns else 0
        return pd.DataFrame({"qid": inp["qid"], "docno": "d", "score": 1.0}).assign(
            docno=["land" if one % 2 else "player" for one in (seed if hasattr(seed, "tolist") else [seed] * len(inp))]
        )


@one_query
def test_a_stochastic_system_is_run_again_in_replicas():
    intents = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["country", "athlete"], "prob": [0.8, 0.2]})
    tags = pd.DataFrame({"docno": ["land", "player"], "entity_id": ["country", "athlete"]})
    settings = {"intents": intents, "tagger": tags, "measures": ["ES"]}
    options = IntentOptions(cutoff=1, n_replicas=40, perturb=[RerunSystems(19)])
    made = vbterrier.evaluate_intents({"a": Sampled()}, TOPICS[:1], **settings, options=options)
    assert made.means().iloc[0, 0] == 0.2
    values = made.replicas.values.ravel()
    assert set(values) == {0.2, 0.8}
    # Replicas take the runs in turn.
    assert values[:20].tolist() == values[20:].tolist()
    assert 5 <= (values[:20] == 0.8).sum() <= 15
    assert set(made.intervals.loc[made.intervals["method"].str.startswith("replicas"), "lists"]) == {"run again"}
    again = vbterrier.evaluate_intents({"a": Sampled()}, TOPICS[:1], **settings, options=options)
    assert again.replicas.values.tolist() == made.replicas.values.tolist()
    run = pd.DataFrame({"qid": ["q1"], "docno": ["land"], "score": 1.0})
    with pytest.raises(ParameterError, match="no system is a pipeline that can be run again"):
        vbterrier.evaluate_intents(
            {"a": run}, TOPICS[:1], **settings, options=replace(options, perturb=[RerunSystems()])
        )
    with pytest.raises(ParameterError, match="n_runs=0"):
        RerunSystems(0)


class Always(pt.Transformer):
    """A system with one document."""

    def transform(self, inp):
        return inp[["qid", "query"]].assign(docno="d", score=1.0, text="x")


@one_query
def test_a_stochastic_tagger_is_run_once_for_all_replicas():
    counter = itertools.count()

    def tag(_text):
        return ("athlete", "country")[next(counter) % 2]

    intents = pd.DataFrame({"qid": ["q1", "q1"], "entity_id": ["country", "athlete"], "prob": [0.8, 0.2]})
    replicas = IntentOptions(cutoff=1, n_replicas=9, perturb=[RerunSystems(4)])
    options = {"intents": intents, "measures": ["ES"], "options": replicas}
    made = vbterrier.evaluate_intents({"a": Always()}, TOPICS[:1], tagger=tag, **options)
    assert next(counter) == 1
    assert set(made.replicas.values.ravel()) == {0.2}
    inside = {"a": Always() >> TagEntities(tag, cache=False)}
    with pytest.raises(InputError, match=r"in 3 of the 5 systems that retrieve it .*tag all runs with the same tagger"):
        vbterrier.evaluate_intents(inside, TOPICS[:1], **options)


def test_the_prompts_have_their_fields():
    assert GENERATION_PROMPT.format(query='"x"').count('{"name": "..."') == 2
