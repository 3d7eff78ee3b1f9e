"""Measures over candidate intents: every way to give intents and tags, the paper's cases, real diversity judgments."""

import itertools
import math
import tempfile
from functools import partial
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import StRecall
from one_topic import RENAMED, values

import vbterrier
from vbterrier import ES, VB, TopIntent, VarPenalty, register_intents, register_tags
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

# Random cases have topics in which nothing meets; that it is said is tested by itself.
pytestmark = pytest.mark.filterwarnings("ignore:no (entity|retrieved document)")


unambiguous = pytest.mark.filterwarnings("ignore:.*no query is ambiguous:vbterrier.errors.DegenerateWarning")


def ranked(**rankings):
    """A run from {qid: documents, best first}."""
    rows = [(qid, docno, -float(rank)) for qid, docs in rankings.items() for rank, docno in enumerate(docs)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def diversity(*rows):
    return pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"])


# A textbook loop, and every way to give it intents and tags


def gain_by_hand(ranking, tags, entity, k, kind, n_known):
    """The gain of one intent: ``tags`` maps documents to {entity: weight}."""
    weights = [tags.get(docno, {}).get(entity, 0.0) for docno in ranking[:k]]
    if kind == "binary":
        return max(weights, default=0.0)
    dcg = sum(weight / math.log2(rank + 2) for rank, weight in enumerate(weights))
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, n_known)))
    return dcg / ideal if ideal else 0.0


def expected(case, k, kind, *, pooled):
    """{measure: {qid: value}} by plain loops."""
    results = {"ES": {}, "VarPenalty": {}, "intent": {}, "TopIntent": {}}
    for qid, topic in case.items():
        gains = {}
        for entity in topic["prob"]:
            n_known = sum(tags.get(entity, 0) > 0 for tags in topic["tags"].values()) if pooled else k
            gains[entity] = gain_by_hand(topic["ranking"], topic["tags"], entity, k, kind, n_known)
        prob = topic["prob"]
        success = sum(prob[entity] * gain for entity, gain in gains.items())
        results["ES"][qid] = success
        results["VarPenalty"][qid] = math.sqrt(max(success * (1 - success), 0))
        across = sum(prob[entity] * gain**2 for entity, gain in gains.items()) - success**2
        results["intent"][qid] = math.sqrt(max(across, 0))
        best = [gains[entity] for entity in prob if prob[entity] >= max(prob.values()) - 1e-12]
        results["TopIntent"][qid] = sum(best) / len(best)
    return results


@st.composite
def cases(draw, *, uniform=False, several=True, weighted=False):
    """{qid: {prob, tags, ranking}}; at least one topic retrieves something."""
    documents = [f"d{number}" for number in range(7)]
    case = {}
    for number in range(draw(st.integers(1, 3))):
        n_intents = draw(st.integers(1, 4))
        entities = [f"{number}:{letter}" for letter in "ABCD"[:n_intents]]
        shares = [1] * n_intents if uniform else [draw(st.integers(1, 5)) for _ in entities]
        tags = {}
        for docno in documents:
            others = [] if uniform else [f"{number}:elsewhere"]
            chosen = draw(st.lists(st.sampled_from(entities + others), unique=True, max_size=3 if several else 1))
            weight = st.sampled_from([0.25, 0.5, 1.0]) if weighted else st.just(1.0)
            tags[docno] = {entity: draw(weight) for entity in chosen}
        ranking = draw(st.permutations(documents))[: draw(st.integers(0 if number else 1, 7))]
        prob = {entity: share / sum(shares) for entity, share in zip(entities, shares, strict=True)}
        case[f"q{number}"] = {"prob": prob, "tags": tags, "ranking": ranking}
    return case


def intents_of(case):
    rows = [(qid, entity, prob) for qid, topic in case.items() for entity, prob in topic["prob"].items()]
    return pd.DataFrame(rows, columns=["qid", "entity_id", "prob"])


def tags_of(case):
    rows = [
        (qid, docno, entity, weight)
        for qid, topic in case.items()
        for docno, tags in topic["tags"].items()
        for entity, weight in tags.items()
    ]
    # One row that nobody asks about keeps the columns' types where no document has a tag.
    return pd.DataFrame([*rows, ("q0", "never", "none", 1.0)], columns=["qid", "docno", "entity_id", "weight"])


def run_of(case):
    return ranked(**{qid: topic["ranking"] for qid, topic in case.items()})


def qrels_of(case, *, prob):
    """Diversity judgments: each intent has one row below ``rel``, tagged documents a row of label 1."""
    rows = []
    for qid, topic in case.items():
        for entity, share in topic["prob"].items():
            rows.append((qid, entity, "judged", 0, share))
            rows.extend((qid, entity, docno, 1, share) for docno, tags in topic["tags"].items() if entity in tags)
    frame = pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label", "prob"])
    return frame if prob else frame.drop(columns="prob")


def agree(case, target, run, k, kind, *, pooled, **bound):
    by_hand = expected(case, k, kind, pooled=pooled)
    options = {"gain": kind, "cutoff": k, **bound}
    reference = {ES(**options): by_hand["ES"], TopIntent(**options): by_hand["TopIntent"]}
    for variance, penalty in (("bernoulli", "VarPenalty"), ("intent", "intent")):
        reference[VarPenalty(variance=variance, **options)] = by_hand[penalty]
        for alpha in (0.5, 1):
            score = {qid: by_hand["ES"][qid] - alpha * by_hand[penalty][qid] for qid in case}
            reference[VB(alpha=alpha, variance=variance, **options)] = score
    metrics = ir_measures.iter_calc(list(reference), target.rename(columns=RENAMED), run.rename(columns=RENAMED))
    results = {(metric.measure, metric.query_id): metric.value for metric in metrics}
    assert len(results) == len(reference) * len(case)
    for (measure, qid), value in results.items():
        # A variance of rounding alone is a penalty of its root.
        within = 1e-12 if measure.NAME in ("ES", "TopIntent") else 1e-7
        assert value == pytest.approx(reference[measure][qid], abs=within), (measure, qid)


cutoffs, kinds = st.sampled_from([1, 2, 3, 5, 20]), st.sampled_from(["binary", "dcg"])


def as_qrels(case, _, *, prob):
    return qrels_of(case, prob=prob), run_of(case), {}


def in_the_run(case, data, *, several):
    """Intents as qrels; lists of entities, or one entity, in each row of the run."""
    run = run_of(case)
    tags = [case[qid]["tags"][docno] for qid, docno in zip(run["qid"], run["docno"], strict=True)]
    if not several:
        return (
            intents_of(case),
            run.assign(entity_id=pd.Series([next(iter(of), None) for of in tags], dtype=object)),
            {},
        )
    form = data.draw(st.sampled_from([list, tuple, np.array]))
    run["entity_id"] = pd.Series([form(list(entities)) for entities in tags], dtype=object)
    run["weight"] = pd.Series([form(list(entities.values())) for entities in tags], dtype=object)
    return intents_of(case), run, {}


def by_name(case, data):
    tags = tags_of(case)
    register_intents("bound intents", intents_of(case), replace=True)
    # Entities of different queries differ here, so tags that hold for all queries say the same.
    register_tags("bound tags", tags if data.draw(st.booleans()) else tags.drop(columns="qid"), replace=True)
    adhoc = pd.DataFrame({"qid": list(case), "docno": "d0", "label": 1})
    return adhoc, run_of(case), {"intents": "bound intents", "tags": "bound tags"}


# What cases are like, how they are given, and whether the tags of all documents are known.
GIVEN = {
    "diversity judgments are uniform intents and tags": ({"uniform": True}, partial(as_qrels, prob=False), True),
    "diversity judgments with probabilities": ({}, partial(as_qrels, prob=True), True),
    "one entity a row of the run": ({"several": False}, partial(in_the_run, several=False), False),
    "lists of entities in the run": ({"weighted": True}, partial(in_the_run, several=True), False),
    "names": ({"weighted": True}, by_name, True),
}


@unambiguous
@pytest.mark.parametrize(("options", "give", "pooled"), GIVEN.values(), ids=GIVEN)
@settings(max_examples=80, deadline=None)
@given(data=st.data(), k=cutoffs, kind=kinds)
def test_every_way_to_give_intents_and_tags(options, give, pooled, data, k, kind):
    case = data.draw(cases(**options))
    target, run, bound = give(case, data)
    agree(case, target, run, k, kind, pooled=pooled, **bound)


@settings(max_examples=25, deadline=None)
@given(cases(weighted=True), cutoffs, kinds)
@pytest.mark.slow
def test_intents_and_tags_bound_by_the_path_of_a_file(case, k, kind):
    adhoc = pd.DataFrame({"qid": list(case), "docno": "d0", "label": 1})
    with tempfile.TemporaryDirectory() as folder:
        intents, tags = str(Path(folder, "my intents.tsv")), str(Path(folder, "tags.tsv"))
        intents_of(case).to_csv(intents, sep="\t", index=False)
        tags_of(case).to_csv(tags, sep="\t", index=False)
        agree(case, adhoc, run_of(case), k, kind, pooled=True, intents=intents, tags=tags)
        bound = VB(intents=intents, tags=tags) @ k
        assert values(ir_measures.parse_measure(repr(bound)), adhoc, run_of(case)) == values(bound, adhoc, run_of(case))


# The paper


@pytest.mark.parametrize(
    ("prob", "documents", "success", "score"),
    [
        ((0.8, 0.2), ["athlete 1", "athlete 2"], 0.8, 0.4),
        ((0.8, 0.2), ["athlete 1", "professor 1"], 1.0, 1.0),
        ((0.2, 0.8), ["athlete 1"], 0.2, -0.2),
        ((0.2, 0.8), ["professor 1", "athlete 1"], 1.0, 1.0),
    ],
)
def test_the_case_studies(prob, documents, success, score):
    intents = pd.DataFrame({"qid": "q", "entity_id": ["athlete", "professor"], "prob": prob})
    run = ranked(q=documents).assign(entity_id=lambda frame: frame["docno"].str.split().str[0])
    assert values(ES @ 10, intents, run)["q"] == pytest.approx(success, abs=1e-15)
    assert values(VB @ 10, intents, run)["q"] == pytest.approx(score, abs=1e-15)
    assert values(VB(alpha=0) @ 10, intents, run)["q"] == pytest.approx(success, abs=1e-15)
    assert values(VarPenalty @ 10, intents, run)["q"] == pytest.approx(success - score, abs=1e-15)
    assert values(TopIntent @ 10, intents, run)["q"] == (1.0 if success > 0.5 else 0.0)


def test_a_topic_that_fails_completely_beats_a_poor_one_unless_monotone():
    intents = pd.DataFrame({"qid": ["a"] * 2 + ["b"] * 2, "entity_id": ["x", "y"] * 2, "prob": [0.1, 0.9] * 2})
    run = ranked(a=["1"], b=["1"]).assign(entity_id=["x", "none"])
    plain = values(VB @ 1, intents, run)
    assert plain == pytest.approx({"a": 0.1 - 0.3, "b": 0.0}, abs=1e-15)
    lowest = (1 - math.sqrt(2)) / 2
    assert values(VB(monotone=True) @ 1, intents, run) == pytest.approx({"a": lowest, "b": lowest}, abs=1e-15)
    assert values(VB(clip=True) @ 1, intents, run) == {"a": 0.0, "b": 0.0}
    assert values(VB(clip=True, monotone=True) @ 1, intents, run) == {"a": 0.0, "b": 0.0}


# Diversity judgments


def test_iteration_zero_is_no_intent_where_the_query_has_others():
    qrels = diversity(
        ("a", "0", "x", 0), ("a", "0", "y", 1), ("a", "1", "x", 1), ("a", "2", "z", 1), ("b", "0", "x", 1)
    )
    assert values(ES @ 5, qrels, ranked(a=["y", "x"], b=["x"])) == {"a": 0.5, "b": 1.0}
    assert values(ES @ 5, qrels, ranked(a=["y"], b=["y"])) == {"a": 0.0, "b": 0.0}
    numbered = diversity(("a", 1, "x", "1"), ("a", 2, "y", "0"), ("a", 0, "x", "1"))
    assert values(ES @ 5, numbered, ranked(a=["x", "y"])) == {"a": 0.5}


def test_an_intent_without_a_relevant_document_still_counts():
    qrels = diversity(("a", "1", "x", 1), ("a", "2", "y", 0), ("a", "3", "z", -2), ("a", "4", "z", 0))
    assert values(ES @ 5, qrels, ranked(a=["x", "y", "z"])) == {"a": 0.25}
    assert values(ES(gain="dcg") @ 5, qrels, ranked(a=["x", "y", "z"])) == {"a": 0.25}
    # The peer leaves such intents out.
    assert values(StRecall @ 5, qrels, ranked(a=["x", "y", "z"])) == {"a": 1.0}


def test_rel_is_the_lowest_label_that_covers():
    qrels = diversity(("a", "1", "x", 1), ("a", "1", "y", 2), ("a", "2", "x", 2), ("a", "3", "z", 1))
    run = ranked(a=["x", "z"])
    third = 1 / 3
    assert values(ES @ 5, qrels, run)["a"] == pytest.approx(3 * third)
    assert values(ES(rel=2) @ 5, qrels, run)["a"] == pytest.approx(third), "the intents stay three"
    assert values(ES(rel=3) @ 5, qrels, run)["a"] == 0.0
    # For intent 1, x is no known document at rel=2: y alone is.
    assert values(ES(rel=2, gain="dcg") @ 5, qrels, ranked(a=["y"]))["a"] == pytest.approx(third)


def test_judgments_for_one_iteration_only_are_scored_with_a_warning():
    """Hosts may pass some of the topics, which may have one subtopic."""
    qrels = diversity(("a", "1", "x", 1), ("b", "1", "y", 1))
    with pytest.warns(DegenerateWarning, match="qrels: only one iteration, so no query is ambiguous"):
        assert values(ES @ 5, qrels, ranked(a=["x"], b=["x"])) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("iteration", ["0", "Q0", "0.5"])
def test_ordinary_judgments_have_no_intents(iteration):
    qrels = diversity(("a", iteration, "x", 1), ("b", iteration, "y", 1))
    for measure in (ES @ 5, VB @ 10):
        with pytest.raises(InputError, match=rf"their iterations \('{iteration}'\) are no subtopics"):
            values(measure, qrels, ranked(a=["x"], b=["x"]))


# Where intents and tags come from, the first place that has them


@pytest.fixture(scope="module")
def places():
    register_intents("A only", pd.DataFrame({"qid": ["a"], "entity_id": ["A"], "prob": [1.0]}), replace=True)
    register_intents("B only", pd.DataFrame({"qid": ["a"], "entity_id": ["B"], "prob": [1.0]}), replace=True)
    register_tags("x is A", pd.DataFrame({"docno": ["x"], "entity_id": ["A"]}), replace=True)
    return ranked(a=["x"])


def test_bound_intents_and_tags_go_before_those_in_the_place_of_qrels_and_of_the_run(places):
    target = pd.DataFrame({"qid": ["a"], "entity_id": ["B"], "prob": [1.0]})
    run = places.assign(entity_id="A")
    assert values(ES @ 1, target, run) == {"a": 0.0}
    assert values(ES(intents="A only") @ 1, target, run) == {"a": 1.0}
    assert values(ES(intents="A only") @ 1, target, places.assign(entity_id="B")) == {"a": 0.0}
    assert values(ES(intents="A only", tags="x is A") @ 1, target, places.assign(entity_id="B")) == {"a": 1.0}


@unambiguous
def test_subtopics_come_with_their_own_documents_and_other_intents_ask_the_run_first(places):
    qrels, run = diversity(("a", "B", "x", 1)), places.assign(entity_id="A")
    assert values(ES @ 1, qrels, run) == {"a": 1.0}, "the judgments know x to be about B"
    assert values(ES(intents="A only") @ 1, qrels, run) == {"a": 1.0}, "the run says A"
    assert values(ES(intents="B only") @ 1, qrels, run) == {"a": 0.0}
    assert values(ES(intents="B only") @ 1, qrels, places) == {"a": 1.0}, "without a column the judgments are asked"
    assert values(ES(tags="x is A") @ 1, qrels, run) == {"a": 0.0}


def test_nothing_found_is_an_error_that_names_the_ways(places):
    adhoc = pd.DataFrame({"qid": ["a"], "docno": ["x"], "label": [1]})
    for measure, ways in (
        (VB, ("VB@10: found no intents", "intents=", "register_intents", "qid, entity_id, prob", "diversity qrels")),
        (VB(intents="A only"), ("found no tags", "tags=", "register_tags", "entity_id in the run", "diversity qrels")),
    ):
        with pytest.raises(InputError) as caught:
            values(measure @ 10, adhoc, places)
        assert all(way in str(caught.value) for way in ways)
    # Intents for none of the topics are an error, and those of further topics are left out.
    with pytest.raises(InputError, match=r"intents='A only' have none of the topics \['other'\]"):
        values(ES(intents="A only", tags="x is A") @ 1, adhoc.assign(qid="other"), ranked(other=["x"]))
    more = pd.DataFrame({"qid": ["a", "b"], "entity_id": ["A", "A"], "prob": [1.0, 1.0]})
    register_intents("two", more, replace=True)
    assert values(ES(intents="two") @ 1, adhoc, places.assign(entity_id="A")) == {"a": 1.0}


# Probabilities


@pytest.mark.parametrize(
    ("prob", "success"), [([3, 1], 0.75), ([0.1, 0.1], 0.5), (["2", "0"], 1.0), ([0.5, 0.5 + 1e-7], 0.5)]
)
def test_normalise_divides_by_the_sum_of_each_query(prob, success):
    intents = pd.DataFrame({"qid": "a", "entity_id": ["A", "B"], "prob": prob})
    run = ranked(a=["x"]).assign(entity_id="A")
    assert values(ES(normalise=True) @ 1, intents, run)["a"] == pytest.approx(success, abs=1e-6)
    # A sum off by rounding is repaired without asking.
    rounded, both = intents.assign(prob=[0.5, 0.5 + 9e-7]), ranked(a=["x", "y"]).assign(entity_id=["A", "B"])
    assert values(ES @ 2, rounded, both) == values(VB @ 2, rounded, both) == {"a": 1.0}


def test_normalise_of_one_measure_does_not_repair_for_another():
    intents = pd.DataFrame({"query_id": "a", "entity_id": ["A", "B"], "prob": [3.0, 1.0]})
    run = ranked(a=["x"]).assign(entity_id="A").rename(columns=RENAMED)
    measures = [ES(normalise=True) @ 1, VB(normalise=True) @ 1]
    assert ir_measures.calc_aggregate(measures, intents, run)[measures[0]] == 0.75
    for measure in (VarPenalty @ 1, TopIntent @ 1, VB @ 1):
        with pytest.raises(InputError, match="has probability 3, wanted 0 to 1"):
            ir_measures.calc_aggregate([*measures, measure], intents, run)


def test_entities_that_stand_twice_or_as_numbers_against_text_are_refused_and_any_text_is_an_id():
    intents = pd.DataFrame({"qid": "a", "entity_id": ["A", "B", "A"], "prob": [0.25, 0.5, 0.25]})
    run = ranked(a=["x"])
    with pytest.raises(InputError, match="candidate 'A' of query 'a' is in rows 0 and 2"):
        values(ES @ 1, intents, run.assign(entity_id="A"))
    numbered = pd.DataFrame({"qid": "a", "entity_id": [1, 2], "prob": [0.5, 0.5]})
    assert values(ES @ 1, numbered, run.assign(entity_id=2)) == {"a": 0.5}
    with pytest.raises(InputError, match=r"intents column 'entity_id' holds integers, run column.*astype\(str\)"):
        values(ES @ 1, numbered, run.assign(entity_id="2"))
    odd = pd.DataFrame({"qid": "NA", "entity_id": ["null", "NaN"], "prob": [0.75, 0.25]})
    assert values(ES @ 2, odd, ranked(NA=["nan", "None"]).assign(entity_id=["null", "007"])) == {"NA": 0.75}


# Tags


def test_without_a_pool_the_ideal_is_k_documents_and_with_one_those_it_knows():
    intents = pd.DataFrame({"qid": ["a"], "entity_id": ["A"], "prob": [1.0]})
    run = ranked(a=["x", "y"]).assign(entity_id=["A", None])
    ideal = sum(1 / math.log2(rank + 2) for rank in range(4))
    assert values(ES(gain="dcg") @ 4, intents, run)["a"] == pytest.approx(1 / ideal, abs=1e-12)
    register_tags("two of A", pd.DataFrame({"docno": ["x", "z", "z"], "entity_id": "A"}), replace=True)
    of_pool = values(ES(gain="dcg", tags="two of A") @ 4, intents, run)["a"]
    assert of_pool == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-12)
    assert values(ES(gain="dcg", tags="two of A") @ 1, intents, run)["a"] == pytest.approx(1.0, abs=1e-12)
    # Without a cutoff there is no ideal but that of a pool.
    with pytest.raises(
        ParameterError, match=r"gain='dcg' divides by the DCG of k matches.*use a cutoff k, such as @10"
    ):
        values(ES(gain="dcg"), intents, run)
    assert values(ES, intents, run) == {"a": 1.0}
    register_tags("two of A", pd.DataFrame({"docno": ["x", "y"], "entity_id": "A"}), replace=True)
    assert values(ES(gain="dcg", tags="two of A"), intents, run) == {"a": 1.0}


def test_tags_that_cannot_mean_the_same_things_are_warned_of():
    intents = pd.DataFrame({"qid": ["a"], "entity_id": ["A"], "prob": [1.0]})
    register_tags("other entities", pd.DataFrame({"docno": ["x"], "entity_id": ["Q7"]}), replace=True)
    with pytest.warns(DegenerateWarning, match="no entity of tags is among the intents.*'Q7' against 'A'"):
        assert values(ES(tags="other entities") @ 1, intents, ranked(a=["x"])) == {"a": 0.0}
    register_tags("other documents", pd.DataFrame({"docno": ["y"], "entity_id": ["A"]}), replace=True)
    with pytest.warns(DegenerateWarning, match="no retrieved document has tags.*'y' against 'x'"):
        assert values(ES(tags="other documents") @ 1, intents, ranked(a=["x"])) == {"a": 0.0}


def test_no_document_with_a_tag_scores_zero():
    intents = pd.DataFrame({"qid": "a", "entity_id": ["A", "B"], "prob": [0.5, 0.5]})
    for nothing in (None, [[], []], [None, []]):
        run = ranked(a=["x", "y"]).assign(entity_id=pd.Series(nothing, index=[0, 1], dtype=object))
        assert values(VB @ 2, intents, run) == {"a": 0.0}
        assert values(VarPenalty @ 2, intents, run) == {"a": 0.0}


# Overlapping intents


@st.composite
def overlaps(draw):
    """A case with the similarities of some pairs of its intents, each given in one of its two directions."""
    case, rows = draw(cases(weighted=True)), []
    for qid, topic in case.items():
        for pair in itertools.combinations(topic["prob"], 2):
            one, other = draw(st.permutations(pair))
            value = draw(st.sampled_from([None, 0.0, 0.25, 0.75, 1.0]))
            rows += [] if value is None else [(qid, one, other, value)]
    same = [(qid, entity, entity, 1.0) for qid, topic in case.items() for entity in topic["prob"]]
    return case, pd.DataFrame([*rows, *same], columns=["qid", "entity_id", "other_id", "similarity"])


@settings(max_examples=60, deadline=None)
@given(overlaps(), st.sampled_from([1, 3, 10]), st.booleans(), st.randoms(use_true_random=False))
def test_similar_intents_are_covered_in_part(given_case, k, everywhere, random):
    case, pairs = given_case
    similarity = {frozenset((one, other)): value for _, one, other, value in pairs.itertuples(index=False)}
    # Entities differ between topics, so that pairs without a query match the same intents.
    frame = pairs.drop(columns="qid") if everywhere else pairs
    vbterrier.frames.register_similarities(
        "overlap", frame.iloc[random.sample(range(len(frame)), len(frame))], replace=True
    )
    made = {"cutoff": k, "similarities": "overlap"}
    measures = [ES(**made), VB(alpha=0.5, **made), VB(variance="intent", **made), TopIntent(**made)]
    target, run = intents_of(case), run_of(case)
    register_tags("overlap", tags_of(case), replace=True)
    measures = [measure(tags="overlap") for measure in measures]
    metrics = ir_measures.iter_calc(measures, target.rename(columns=RENAMED), run.rename(columns=RENAMED))
    results = {(metric.measure, metric.query_id): metric.value for metric in metrics}
    for qid, topic in case.items():
        prob, gain = topic["prob"], {}
        for entity in prob:
            gain[entity] = max(
                [
                    topic["tags"][docno].get(other, 0.0)
                    * similarity.get(frozenset((entity, other)), float(entity == other))
                    for docno in topic["ranking"][:k]
                    for other in prob
                ],
                default=0.0,
            )
        success = sum(prob[entity] * gain[entity] for entity in prob)
        across = max(sum(prob[entity] * gain[entity] ** 2 for entity in prob) - success**2, 0)
        top = [gain[entity] for entity in prob if prob[entity] >= max(prob.values()) - 1e-12]
        figures = [success, success - 0.5 * math.sqrt(max(success * (1 - success), 0)), success - math.sqrt(across)]
        assert [results[measure, qid] for measure in measures] == pytest.approx(
            [*figures, sum(top) / len(top)], abs=1e-7
        )


def test_nil_has_no_neighbours_and_other_gains_no_similarities():
    intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "N"], "prob": [0.5, 0.5]})
    pairs = pd.DataFrame({"qid": ["q1"], "entity_id": ["N"], "other_id": ["A"], "similarity": [1.0]})
    vbterrier.frames.register_similarities("with nil", pairs, replace=True)
    register_tags("tag of nil", pd.DataFrame({"docno": ["d"], "entity_id": ["N"]}), replace=True)
    for tagged, reference in (("d", 0.5), ("other", 0.5)):
        # A document tagged with NIL alone covers NIL, and nothing else.
        measure = ES(similarities="with nil", tags="tag of nil", nil="N") @ 1
        assert values(measure, intents, ranked(q1=[tagged])) == {"q1": reference}
    with pytest.raises(ParameterError, match=r"VB: similarities= are defined for gain='binary' only"):
        VB(similarities="with nil", gain="dcg")
    with pytest.raises(InputError, match=r"similarities='nowhere': .*vbterrier\.frames\.register_similarities"):
        values(ES(similarities="nowhere", tags="tag of nil") @ 1, intents, ranked(q1=["d"]))
    text = "VB(alpha=0.5,similarities='with nil')@5"
    assert str(vbterrier.measures_from(text)[0]) == text
