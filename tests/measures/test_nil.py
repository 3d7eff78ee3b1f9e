"""Queries that presuppose what does not exist: an intent that is served by showing no entity."""

import math

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_topic import RENAMED, values

from vbterrier import ES, VB, TopIntent, VarPenalty, register_intents, register_tags
from vbterrier.errors import DegenerateWarning

INTENTS = pd.DataFrame({"qid": "a", "entity_id": ["A", "NIL"], "prob": [0.25, 0.75]})


def run(*entities, qid="a", **columns):
    """A run of d0, d1, ... with these entities."""
    made = {"qid": qid, "docno": [f"d{rank}" for rank in range(len(entities))], "score": -np.arange(len(entities))}
    return pd.DataFrame({**made, "entity_id": pd.Series(list(entities), dtype=object), **columns})


@pytest.mark.parametrize("gain", ["binary", "dcg"])
def test_showing_no_entity_serves_the_nil_intent_until_one_is_shown(gain):
    untagged_first = run([], [], ["A"])
    assert values(ES(nil="NIL", gain=gain) @ 2, INTENTS, untagged_first) == {"a": 0.75}
    covered = {"binary": 1.0, "dcg": 0.5 / (1 + 1 / math.log2(3) + 0.5)}[gain]
    assert values(ES(nil="NIL", gain=gain) @ 3, INTENTS, untagged_first)["a"] == pytest.approx(0.25 * covered)
    assert values(TopIntent(nil="NIL", gain=gain) @ 2, INTENTS, untagged_first) == {"a": 1.0}
    assert values(TopIntent(nil="NIL", gain=gain) @ 3, INTENTS, untagged_first) == {"a": 0.0}
    penalty = math.sqrt(0.75 * 0.25)
    for variance in ("bernoulli", "intent"):
        options = {"nil": "NIL", "gain": gain, "variance": variance}
        assert values(VarPenalty(**options) @ 2, INTENTS, untagged_first)["a"] == pytest.approx(penalty)
        assert values(VB(**options) @ 2, INTENTS, untagged_first)["a"] == pytest.approx(0.75 - penalty)


def test_a_topic_that_retrieves_nothing_abstains():
    both = pd.concat([INTENTS, INTENTS.assign(qid="b")])
    assert values(ES(nil="NIL") @ 5, both, run(["A"])) == {"a": 0.25, "b": 0.75}
    assert values(ES(nil="NIL"), both, run(["A"])) == {"a": 0.25, "b": 0.75}


@pytest.mark.parametrize(
    ("nil", "shown", "value", "words"),
    [
        ("NIL", [], 0.75, "run: empty; no intent but 'NIL' is covered"),
        ("nil", ["A"], 0.25, "nil='nil': intents have no intent with this entity"),
        ("NIL", ["elsewhere"], 0.0, "no entity of run is among the intents, so no intent but 'NIL' is"),
    ],
)
def test_empty_runs_unknown_nils_and_tags_that_meet_no_intent_are_warned_of(nil, shown, value, words):
    with pytest.warns(DegenerateWarning, match=words) as record:
        assert values(ES(nil=nil) @ 1, INTENTS, run(*shown)) == {"a": value}
    assert shown or "scores 0" not in str(record[0].message)


def test_measures_with_and_without_nil_share_one_call():
    """Without ``nil``, an entity of that name is like any other."""
    target, frame = INTENTS.rename(columns=RENAMED), run([], ["NIL"]).rename(columns=RENAMED)
    measures = [ES @ 1, ES(nil="NIL") @ 1, ES @ 2, ES(nil="NIL") @ 2, ES(nil="A") @ 1]
    result = ir_measures.calc_aggregate(measures, target, frame)
    assert [result[measure] for measure in measures] == [0.0, 0.75, 0.75, 0.75, 0.25]
    assert repr(ES(nil="") @ 2) == "ES@2"


ENTITIES = ("A", "B", "NIL", "other")
TAGS = st.dictionaries(st.sampled_from(ENTITIES), st.sampled_from([0.0, 0.5, 1.0]), max_size=3)


def served(ranking, tags, prob, k, kind):
    """ES by a plain loop."""
    success = 0.0
    shown = [tags[docno] for docno in ranking[:k]]
    for entity, share in prob.items():
        weights = [about.get(entity, 0.0) for about in shown]
        if entity == "NIL":
            gain = float(not any(weight > 0 for about in shown for name, weight in about.items() if name != "NIL"))
        elif kind == "binary":
            gain = max(weights, default=0.0)
        else:
            n_known = sum(about.get(entity, 0.0) > 0 for about in tags.values())
            ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, n_known)))
            gain = sum(weight / math.log2(rank + 2) for rank, weight in enumerate(weights)) / ideal if ideal else 0.0
        success += share * gain
    return success


@pytest.mark.filterwarnings("ignore:no (entity|retrieved document)")
@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["d0", "d1", "d2", "d3"]), TAGS, min_size=4),
    st.permutations(["d0", "d1", "d2", "d3"]),
    st.integers(1, 4),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.sampled_from([1, 2, 3, 9]),
    st.sampled_from(["binary", "dcg"]),
)
def test_success_with_nil_is_that_of_a_plain_loop(tags, ranking, depth, shares, k, kind):
    prob = {entity: share / sum(shares) for entity, share in zip(("A", "B", "NIL"), shares, strict=True)}
    rows = [(docno, entity, weight) for docno, about in tags.items() for entity, weight in about.items()]
    # A tag that nobody asks about keeps the types of the columns where no document has one.
    frame = pd.DataFrame([*rows, ("never", "none", 1.0)], columns=["docno", "entity_id", "weight"])
    register_tags("of nil", frame, replace=True)
    intents = pd.DataFrame([("a", *pair) for pair in prob.items()], columns=["qid", "entity_id", "prob"])
    register_intents("with nil", intents, replace=True)
    shown = pd.DataFrame({"qid": "a", "docno": ranking[:depth], "score": -np.arange(depth)})
    expected = served(ranking[:depth], tags, prob, k, kind)
    measure = ES(nil="NIL", gain=kind, tags="of nil", intents="with nil") @ k
    adhoc = pd.DataFrame({"qid": ["a"], "docno": ["d0"], "label": [1]})
    assert values(measure, adhoc, shown)["a"] == pytest.approx(expected, abs=1e-12)
