"""Queries expanded by their entities, and documents scored by the words that describe them."""

import math
import re

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.rerank.expansion import ExpandByEntities, ExpansionReranker
from vbterrier.errors import InputError, ParameterError

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["capital", "cowboys"]})
ENTITIES = pd.DataFrame(
    {"qid": ["q1", "q1", "q3"], "docno": ["Paris", "New_York_City", "Rome"], "score": [1.0, 2.0, 1.0]}
)


def test_first_entities_are_added_by_text_or_name():
    found = ExpandByEntities(ENTITIES, texts={"Paris": "Paris, (city)!"}, cutoff=2).transform(TOPICS)
    assert found["query"].tolist() == ["capital new york city paris city", "cowboys"]
    assert found["query_0"].tolist() == ["capital", "cowboys"]
    assert ExpandByEntities(ENTITIES, cutoff=1).transform(TOPICS)["query"].tolist()[0] == "capital new york city"


def test_expanded_queries_go_through_pipelines_and_empty_frames():
    stage = ExpandByEntities(ENTITIES)
    assert not len(stage.transform(TOPICS.iloc[:0]))
    seen = []
    pipeline = stage >> pt.apply.generic(lambda inp: seen.extend(inp["query"]) or inp)
    pipeline(TOPICS)
    assert seen == ["capital new york city paris", "cowboys"]
    assert stage == ExpandByEntities(ENTITIES.copy())
    assert stage != ExpandByEntities(ENTITIES, cutoff=1)


def test_kinds_of_ids_must_meet():
    with pytest.raises(InputError, match="can never match"):
        ExpandByEntities(ENTITIES.assign(qid=[1, 1, 3])).transform(TOPICS)
    with pytest.raises(InputError, match="entity 'Paris' has 3, wanted text"):
        ExpandByEntities(ENTITIES, texts={"Paris": 3}).transform(TOPICS)
    with pytest.raises(ParameterError, match="texts: found str"):
        ExpandByEntities(ENTITIES, texts="names.tsv")


WORDS = ["rome", "Paris", "river", "map", "the", "city"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([None, 1, 2]), st.sampled_from([0.0, 0.75, 1.0]))
def test_evidence_is_bm25_by_a_loop_over_words(seed, k, n_terms, b):
    rng = np.random.default_rng(seed)

    def text(most):
        return " ".join(rng.choice(WORDS, rng.integers(0, most)))

    described = {f"e{e}": text(6) for e in range(4)}
    bodies = {f"d{d}": text(12) for d in range(6)}
    own = {q: [d for d in bodies if rng.random() < 0.8] or ["d0"] for q in ("q1", "q2")}
    run = pd.DataFrame([(q, d, rng.random(), bodies[d]) for q in own for d in own[q]])
    run.columns = ["qid", "docno", "score", "text"]
    listed = {q: [str(e) for e in rng.permutation([*described, "Paris_map"])] for q in own}
    entities = pd.DataFrame([(q, e, -rank) for q in own for rank, e in enumerate(listed[q])])
    entities.columns = ["qid", "docno", "score"]

    def words(given):
        return re.findall(r"\w+", given.lower())

    def expected(q):
        weights = {}
        for e in listed[q][:k]:
            terms = words(described.get(e, e.replace("_", " ")))
            for term in terms:
                weights[term] = weights.get(term, 0.0) + 1 / len(terms) / k
        kept = sorted(weights, key=lambda term: (-round(weights[term], 12), term))[:n_terms]
        docs = {d: words(bodies[d]) for d in own[q]}
        mean = sum(map(len, docs.values())) / len(docs)
        found = {}
        for d, terms in docs.items():
            found[d] = 0.0
            for term in kept:
                df = sum(term in others for others in docs.values())
                tf = terms.count(term)
                if tf:
                    idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                    norm = tf + 1.2 * (1 - b + b * len(terms) / mean)
                    found[d] += weights[term] * idf * tf * 2.2 / norm
        return found

    stage = ExpansionReranker(entities, texts=described, cutoff=k, n_terms=n_terms, b=b, weight=1.0, norm="none")
    for q, ranking in stage.transform(run.sample(frac=1, random_state=1)).groupby("qid"):
        want = expected(q)
        np.testing.assert_allclose(ranking["score"], [want[d] for d in ranking["docno"]], atol=1e-9)


def test_texts_must_be_there_and_be_texts():
    run = pd.DataFrame({"qid": ["q1"], "docno": ["a"], "score": [1.0], "body": ["x"], "text": [None]})
    with pytest.raises(InputError, match="column 'text': row 0 holds None, wanted text"):
        ExpansionReranker(ENTITIES).transform(run)
    assert ExpansionReranker(ENTITIES, field="body").transform(run)["score"].tolist() == [0.0]
    with pytest.raises(pt.validate.InputValidationError, match="text"):
        ExpansionReranker(ENTITIES).transform(run.drop(columns="text"))
    for wrong in ({"k1": -1}, {"b": 2}, {"n_terms": 0}):
        with pytest.raises(ParameterError):
            ExpansionReranker(ENTITIES, **wrong)


def test_same_document_with_two_texts_counts_as_each():
    run = pd.DataFrame(
        {"qid": ["q1", "q1", "q2", "q2"], "docno": ["a", "b"] * 2, "score": [1.0, 2.0] * 2,
         "text": ["paris", "x", "y", "paris"]}
    )  # fmt: skip
    entities = pd.DataFrame({"qid": ["q1", "q2"], "docno": "Paris", "score": 1.0})
    found = ExpansionReranker(entities, weight=1.0).transform(run)
    assert found[found["rank"] == 0][["qid", "docno"]].values.tolist() == [["q1", "a"], ["q2", "b"]]
