"""Joined candidates of several sources."""

import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.intents import join_intents
from vbterrier.linking import DictionaryLinker

TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["jordan", "java", "nothing"]})
FIRST = vbterrier.Truncate(cutoff=1)


def linker(rows):
    names = pd.DataFrame(rows, columns=["alias", "entity_id", "score"])
    return DictionaryLinker(names, id_space="own")


@pytest.fixture
def one():
    return vbterrier.CandidateIntents(linker([("jordan", "athlete", 0.75), ("jordan", "country", 0.25)]))


@pytest.fixture
def two():
    return vbterrier.CandidateIntents(
        linker([("jordan", "river", 0.5), ("jordan", "country", 0.5), ("java", "island", 1.0)])
    )


def probabilities(frame):
    return {(qid, entity): round(prob, 4) for qid, entity, prob in frame[["qid", "entity_id", "prob"]].to_numpy()}


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (lambda a, b: a + b, {"athlete": 0.375, "country": 0.375, "river": 0.25}),
        (lambda a, b: a | b, {"athlete": 0.4286, "country": 0.2857, "river": 0.2857}),
        (lambda a, b: a ^ b, {"athlete": 0.6, "country": 0.2, "river": 0.2}),
        (lambda a, b: (a + b) % 1, {"athlete": 1.0}),
        (lambda a, b: a % 1 + b, {"athlete": 0.5, "country": 0.25, "river": 0.25}),
        (lambda a, b: (a >> FIRST) | (b >> FIRST >> FIRST), {"athlete": 0.5, "country": 0.5}),
        (lambda a, b: join_intents(a, b, weights=[3, 1]), {"athlete": 0.5625, "country": 0.3125, "river": 0.125}),
    ],
)  # fmt: skip
def test_operators_join_candidates(one, two, join, expected):
    with pytest.warns(DegenerateWarning, match=r"^1 query \('q3'\) without candidates") as caught:
        result = join(one, two)(TOPICS)
    assert len(caught) == 1
    made = probabilities(result)
    assert {entity: prob for (qid, entity), prob in made.items() if qid == "q1"} == expected
    # A source without candidates does not count, and a query that none knows has NIL.
    assert {pair: prob for pair, prob in made.items() if pair[0] != "q1"} == {("q2", "island"): 1.0, ("q3", "NIL"): 1.0}
    assert result["query"].tolist() == result["qid"].map(TOPICS.set_index("qid")["query"]).tolist()


def test_joined_stages_are_stages(one, two):
    both = one | two
    assert repr(both) == f"({one!r} | {two!r})"
    assert both == (one | two)
    assert both != one + two
    assert isinstance(both >> vbterrier.Truncate(cutoff=2), pt.Transformer)
    topic = TOPICS.head(1)
    frames = [stage(topic) for stage in (one, two)]
    assert probabilities(join_intents(*frames, method="max")) == probabilities(both(topic))
    # Other transformers keep PyTerrier's operators.
    assert isinstance(one >> pt.apply.generic(lambda frame: frame), pt.Compose)


def test_three_sources_are_one_mean():
    frames = [pd.DataFrame({"qid": "q", "entity_id": [one], "prob": 1.0}) for one in "aab"]
    assert probabilities(join_intents(*frames)) == {("q", "a"): 0.6667, ("q", "b"): 0.3333}


def test_appended_candidates_are_never_more_probable_than_earlier_ones():
    frames = [
        pd.DataFrame({"qid": "q", "entity_id": ["a", "b"], "prob": [0.9, 0.1]}),
        pd.DataFrame({"qid": "q", "entity_id": ["a", "c", "d"], "prob": [0.2, 0.6, 0.2]}),
        pd.DataFrame({"qid": "q", "entity_id": ["e"], "prob": [1.0]}),
    ]
    made = join_intents(*frames, method="append")
    assert made["entity_id"].tolist() == ["a", "b", "c", "d", "e"]
    assert (made["prob"] / made["prob"].iloc[0]).round(4).tolist() == [1.0, 0.1111, 0.1111, 0.037, 0.037]


def test_refusals(one):
    frame = pd.DataFrame({"qid": ["q1"], "entity_id": ["a"], "prob": [1.0]})
    for arguments, options, message in [
        ([frame], {}, "at least two sources"),
        ([frame, one], {}, "found frames and stages"),
        ([frame, frame], {"method": "sum"}, "method"),
        ([frame, frame], {"weights": [1]}, "weights: wanted 2"),
        ([frame, frame], {"weights": [1, 0]}, "weights"),
        ([frame, frame], {"weights": [1, 1], "method": "append"}, "no effect with method='append'"),
    ]:
        with pytest.raises(ParameterError, match=message):
            join_intents(*arguments, **options)
    with pytest.raises(InputError, match=r"intents 2: .*0\.5"):
        join_intents(frame, frame.assign(prob=0.5))
    with pytest.raises(InputError, match="qid"):
        join_intents(frame, frame.assign(qid=1))
    with pytest.raises(InputError, match="gives no intents"):
        (one | pt.apply.generic(lambda topics: topics))(TOPICS.head(1))
