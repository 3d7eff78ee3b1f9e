"""Coverage of intents by the first documents of a ranking, and by the best documents."""

import gzip
import itertools
import json

import numpy as np
import pandas as pd
import pytest

from vbterrier import read_run, register_intents, register_tags
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.ranking import Run
from vbterrier.intents.coverage import Intents, Tags, cover, oracle_success

INTENTS = pd.DataFrame({"qid": ["a", "b", "a", "b"], "entity_id": ["A", "A", "B", "C"], "prob": [0.75, 0.5, 0.25, 0.5]})
RUN = pd.DataFrame({"qid": list("baaba"), "docno": list("xxyyz"), "score": [2.0, 3.0, 2.0, 1.0, 1.0]})


def tags(*rows, columns=("docno", "entity_id"), **options):
    return Tags(pd.DataFrame(rows, columns=list(columns)), **options)


def covered(*rows, depth=None, **options):
    return cover(Run(RUN), Intents(INTENTS), tags(*rows, **options), depth)


def matches(coverage):
    topics, entities = coverage.intents.topics, coverage.intents.entity.text.to_pylist()
    return sorted(
        (topics[coverage.intents.topic[intent]], entities[intent], int(rank), float(weight))
        for intent, rank, weight in zip(coverage.intent, coverage.rank, coverage.weight, strict=True)
    )


def test_a_tag_given_twice_counts_with_the_larger_weight_and_one_document_and_not_without_weight():
    rows = [("x", "A", 0.25), ("x", "A", 0.75), ("x", "A", 0.5), ("y", "A", 0.0)]
    coverage = covered(*rows, columns=("docno", "entity_id", "weight"))
    assert matches(coverage) == [("a", "A", 0, 0.75), ("b", "A", 0, 0.75)]
    assert coverage.known_document_counts.tolist() == [1, 1, 0, 0]


def test_gains_variances_and_most_probable_intents_by_hand():
    rows = [("a", "x", "A"), ("b", "x", "A"), ("a", "y", "B"), ("a", "z", "B")]
    coverage = covered(*rows, columns=("qid", "docno", "entity_id"))
    assert coverage.gain(1, "binary").tolist() == [1.0, 1.0, 0.0, 0.0]
    assert coverage.gain(2, "dcg").tolist() == pytest.approx([1.0, 1.0, 1 / np.log2(3) / (1 + 1 / np.log2(3)), 0.0])
    assert coverage.success(coverage.gain(2, "binary")).tolist() == [1.0, 0.5]
    graded = np.array([0.5, 0.5, 1.0, 0.0])
    assert coverage.variance(graded, "bernoulli") == pytest.approx([0.625 * 0.375, 0.25 * 0.75])
    assert coverage.variance(graded, "intent") == pytest.approx([0.75 * 0.25 + 0.25 - 0.625**2, 0.125 - 0.0625])
    assert coverage.top_intent(np.array([1.0, 1.0, 0.0, 0.0])).tolist() == [1.0, 0.5]
    assert covered(("x", "A"), pooled=False).known_document_counts is None


def test_the_share_of_tagged_documents_counts_tags_that_are_candidates():
    coverage = covered(("x", "A"), ("x", "B"), ("y", "nobody"))
    assert coverage.tagged.tolist() == pytest.approx([1 / 3, 1 / 2])
    assert covered(("x", "B")).tagged.tolist() == pytest.approx([1 / 3, 0.0]), "B is a candidate of query a only"
    alone = cover(Run(RUN[RUN["qid"] == "a"]), Intents(INTENTS), tags(("x", "A")), 1)
    assert alone.tagged.tolist() == [1.0, 0.0], "nothing retrieved, nothing tagged"


def test_tags_without_a_row_are_told():
    intents = Intents(pd.DataFrame({"qid": ["q"], "entity_id": ["A"], "prob": [1.0]}))
    run = Run(pd.DataFrame({"qid": ["q"], "docno": ["d"], "score": [1.0]}))
    nothing = Tags(pd.DataFrame({"docno": [], "entity_id": []}, dtype=str))
    with pytest.warns(DegenerateWarning, match="tags: no rows, so every topic scores 0"):
        result = cover(run, intents, nothing, 1)
    assert result.success(result.gain(1, "binary")).tolist() == [0.0]


TWO_INTENTS = pd.DataFrame({"qid": list("baaa"), "entity_id": list("AABC"), "prob": [1.0, 0.5, 0.25, 0.25]})
TAGS = pd.DataFrame({"docno": ["x", "y", "y", "z"], "entity_id": ["A", "B", "C", "elsewhere"]})


def success(*arguments, **options):
    result = oracle_success(*arguments, **options)
    return dict(zip(result["qid"], result["success"], strict=True))


@pytest.mark.parametrize(("k", "best"), [(1, 0.5), (2, 1.0), (7, 1.0), (None, 1.0)])
def test_the_best_documents_of_every_query_in_the_order_of_the_intents(k, best):
    before = TWO_INTENTS.copy(), TAGS.copy()
    result = oracle_success(TWO_INTENTS, TAGS, k)
    assert result.to_numpy().tolist() == [["b", 1.0, "exact"], ["a", best, "exact"]]
    assert result.columns.tolist() == ["qid", "success", "method"]
    pd.testing.assert_frame_equal(TWO_INTENTS, before[0])
    pd.testing.assert_frame_equal(TAGS, before[1])


def test_weights_and_tags_for_one_query():
    weighted = TAGS.assign(weight=[0.5, 1.0, 0.0, 1.0])
    assert success(TWO_INTENTS, weighted, 5) == {"b": 0.5, "a": 0.5}
    assert success(TWO_INTENTS, TAGS.assign(qid=["b", "a", "b", "a"]), 5) == {"b": 1.0, "a": 0.25}


def test_documents_restrict_the_pool():
    assert success(TWO_INTENTS, TAGS, 5, documents=["y"]) == {"b": 0.0, "a": 0.5}
    assert success(TWO_INTENTS, TAGS, 5, documents={"x", "unknown"}) == {"b": 1.0, "a": 0.5}
    assert success(TWO_INTENTS, TAGS, 5, documents=[]) == {"b": 0.0, "a": 0.0}
    run = pd.DataFrame({"qid": ["a", "a", "b", "other"], "docno": ["y", "z", "y", "x"]})
    assert success(TWO_INTENTS, TAGS, 5, documents=run) == {"b": 0.0, "a": 0.5}
    assert success(TWO_INTENTS, TAGS, 5, documents=run[["docno"]]) == {"b": 1.0, "a": 1.0}
    assert success(TWO_INTENTS, TAGS, 5, documents=pd.concat([run, run])) == {"b": 0.0, "a": 0.5}


def test_showing_nothing_serves_the_nil_intent():
    intents = TWO_INTENTS.replace({"entity_id": {"B": "NIL"}})
    assert success(intents, TAGS, 1, nil="NIL") == {"b": 1.0, "a": 0.5}
    assert success(intents.assign(prob=[1.0, 0.25, 0.5, 0.25]), TAGS, 1, nil="NIL") == {"b": 1.0, "a": 0.5}
    named = pd.concat([TAGS, pd.DataFrame({"docno": ["w"], "entity_id": ["NIL"]})])
    assert success(intents, named, 9, nil="NIL") == {"b": 1.0, "a": 0.75}, "a tag of NIL covers nothing"
    assert success(intents, named, 9) == {"b": 1.0, "a": 1.0}


def test_names_and_probabilities_to_divide():
    register_intents("of the oracle", TWO_INTENTS.assign(prob=[3, 2, 1, 1]), replace=True)
    register_tags("of the oracle", TAGS, replace=True)
    assert success("of the oracle", "of the oracle", 1, normalise=True) == {"b": 1.0, "a": 0.5}


@pytest.fixture(scope="module")
def aida(shared_data):
    folder = shared_data / "aida_ambiguous_labels"
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [(topic["qid"], intent["entity"], intent["p"]) for topic in topics for intent in topic["intents"]]
    tags = {}
    for name in ("gold", "wat", "genre"):
        with gzip.open(folder / f"links.{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            linked = [json.loads(line) for line in file]
        tags[name] = {entry["doc"]: {link[2] for link in entry["links"]} for entry in linked}
    return pd.DataFrame(rows, columns=["qid", "entity_id", "prob"]), tags, read_run(folder / "runs" / "bm25.run.gz")


def frame_of(tags):
    pairs = [(docno, entity) for docno, entities in tags.items() for entity in sorted(entities)]
    return pd.DataFrame(pairs, columns=["docno", "entity_id"])


def best_by_hand(prob, tags, k):
    """The best success over all sets of k documents, of one of each kind."""
    kinds = {frozenset(entities & prob.keys()) for entities in tags.values()} - {frozenset()}
    sets = itertools.combinations(kinds, min(k, len(kinds)))
    return max(sum(prob[entity] for entity in frozenset().union(*chosen)) for chosen in sets)


@pytest.mark.parametrize(
    ("tagger", "at_10", "at_1"), [("gold", 1.0, 0.7628), ("wat", 0.6808, 0.59465), ("genre", 0.8449, 0.7061)]
)
def test_the_oracle_of_real_names_under_three_taggers(aida, tagger, at_10, at_1):
    intents, tags, run = aida
    total = intents.groupby("qid")["prob"].transform("sum")
    probs = {
        qid: dict(zip(rows["entity_id"], rows["prob"], strict=True))
        for qid, rows in intents.assign(prob=intents["prob"] / total).groupby("qid")
    }
    frame = frame_of(tags[tagger])
    for k, expected in ((10, at_10), (1, at_1)):
        result = oracle_success(intents, frame, k, normalise=True)
        assert (result["method"] == "exact").all()
        by_hand = {qid: best_by_hand(prob, tags[tagger], k) for qid, prob in probs.items()}
        assert dict(zip(result["qid"], result["success"], strict=True)) == pytest.approx(by_hand, abs=1e-9)
        assert result["success"].mean() == pytest.approx(expected, abs=5e-5)
    # No system is above it, whatever it retrieves, and the best re-ranking of a run is between the two.
    coverage = cover(Run(run), Intents(intents, normalise=True), Tags(frame), 10)
    reached = coverage.success(coverage.gain(10, "binary"))
    oracle = oracle_success(intents, frame, 10, normalise=True)["success"].to_numpy()
    again = oracle_success(intents, frame, 10, normalise=True, documents=run)["success"].to_numpy()
    assert (reached <= again + 1e-12).all()
    assert (again <= oracle + 1e-12).all()
    assert np.mean(oracle - reached) > 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("tagger", "share", "reached"), [("gold", 1.0, 0.9955), ("wat", 0.9985, 0.6610), ("genre", 1.0, 0.8289)]
)
def test_the_share_of_tagged_results_and_the_success_of_a_real_run(aida, tagger, share, reached):
    intents, tags, run = aida
    coverage = cover(Run(run), Intents(intents, normalise=True), Tags(frame_of(tags[tagger])), 10)
    shares, success = [], []
    for qid, rows in intents.groupby("qid"):
        ranking = run[run["qid"] == qid].sort_values(["score", "docno"], ascending=False)["docno"].head(10)
        shares.append(np.mean([bool(tags[tagger].get(docno)) for docno in ranking]))
        shown = set().union(*(tags[tagger].get(docno, set()) for docno in ranking))
        success.append(rows.loc[rows["entity_id"].isin(shown), "prob"].sum() / rows["prob"].sum())
    assert coverage.tagged.tolist() == pytest.approx(shares, abs=1e-12)
    assert coverage.success(coverage.gain(10, "binary")).tolist() == pytest.approx(success, abs=1e-9)
    assert np.mean(shares) == pytest.approx(share, abs=5e-5)
    assert np.mean(success) == pytest.approx(reached, abs=5e-5)


def test_tags_of_intents_in_another_spelling_are_told():
    with pytest.warns(
        DegenerateWarning, match="tags: 1 entities differ from those of intents only in case.*'b' and 'B'"
    ):
        result = covered(("x", "A"), ("y", "b"), ("y", "elsewhere"))
    assert {entity for _, entity, _, _ in matches(result)} == {"A"}
    with pytest.warns(DegenerateWarning, match="run: 1 documents differ from those of tags only in case.*'y' and 'Y'"):
        covered(("x", "A"), ("Y", "B"))


@pytest.mark.parametrize("prefix", ["wd:", "http://www.wikidata.org/entity/", "https://www.wikidata.org/wiki/"])
def test_tags_and_intents_spell_an_entity_differently(prefix):
    run = pd.DataFrame({"qid": ["q", "q"], "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    intents = pd.DataFrame({"qid": ["q", "q"], "entity_id": ["Q1", "Q2"], "prob": [0.25, 0.75]})
    for one, other in ((prefix, ""), ("", prefix)):
        renamed = intents.assign(entity_id=[f"{one}{each}" for each in intents["entity_id"]])
        tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": [f"{other}Q1", "Q2"]})
        result = cover(Run(run), Intents(renamed), Tags(tags), 10)
        assert result.success(result.gain(10, "binary")).tolist() == [1.0]


def test_tags_of_another_id_space_than_intents_are_refused():
    run = pd.DataFrame({"qid": ["q"], "docno": ["d1"], "score": [1.0]})
    intents = pd.DataFrame({"qid": ["q"], "entity_id": ["Q1"], "prob": [1.0]})
    tags = pd.DataFrame({"docno": ["d1"], "entity_id": ["dbr:Paris"]})
    with pytest.raises(InputError, match=r"'dbr:Paris' is of dbpedia, wanted ids of wikidata.*vbterrier convert"):
        cover(Run(run), Intents(intents), Tags(tags), 10)
