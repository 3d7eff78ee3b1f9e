"""Documents reranked by entity evidence: overlap, vectors, propagation."""

import math
import re
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rerank.base import ENTITY_WEIGHTS
from vbterrier.entities.rerank.embedding import EmbeddingReranker, SimilarityPropagationReranker
from vbterrier.entities.rerank.expansion import ExpandByEntities, ExpansionReranker
from vbterrier.entities.rerank.overlap import OverlapReranker, PropagationReranker
from vbterrier.entities.stage import EntityReachable
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

SEEDS = st.integers(0, 2**32 - 1)


class World:
    """A small random collection, in frames and in dictionaries."""

    def __init__(self, seed, *, n_topics=3, n_docs=8, n_entities=7, n_dimensions=4):
        rng = np.random.default_rng(seed)
        names = [f"e{e}" for e in range(n_entities)]
        self.docs = {f"q{q}": [f"d{d}" for d in range(n_docs) if rng.random() < 0.8] or ["d0"] for q in range(n_topics)}
        self.score = {(q, d): float(rng.normal()) for q, docnos in self.docs.items() for d in docnos}
        self.links = {
            f"d{d}": {name: float(rng.random()) for name in names if rng.random() < 0.4} for d in range(n_docs)
        }
        self.links["d0"].setdefault("e0", 0.5)
        self.listed = {
            q: [(str(e), float(5 - rank - rng.random())) for rank, e in enumerate(rng.permutation([*names, "out"])[:5])]
            for q in self.docs
        }
        self.vectors = {name: rng.normal(size=n_dimensions) for name in names[:-1]}
        tags = [(d, e, w) for d, linked in self.links.items() for e, w in linked.items()]
        listed = [(q, e, s) for q, ranked in self.listed.items() for e, s in ranked]
        self.run = pd.DataFrame([(q, d, s) for (q, d), s in self.score.items()], columns=["qid", "docno", "score"])
        self.tags = pd.DataFrame(tags, columns=["docno", "entity_id", "weight"])
        self.entities = pd.DataFrame(listed, columns=["qid", "docno", "score"])

    def weights(self, q, k, kind):
        """Entity -> its weight, of the first k."""
        n, result = len(self.docs[q]), {}
        for rank, (e, s) in enumerate(self.listed[q][:k]):
            df = sum(e in self.links[d] for d in self.docs[q])
            idf = math.log((n + 1) / (df + 1)) + 1
            result[e] = {"uniform": 1.0, "rank": 1 / math.log2(rank + 2), "score": s, "idf": idf}[kind]
        return result

    def shared(self, d, weights, confidence):
        """Entity -> its weight in a document, of the listed entities that the document mentions."""
        linked = self.links[d]
        return {e: w * (linked[e] if confidence else 1.0) for e, w in weights.items() if e in linked}

    def centroid(self, weights):
        return sum(
            (w * self.vectors[e] / np.linalg.norm(self.vectors[e]) for e, w in weights.items() if e in self.vectors),
            np.zeros(4),
        )


def minmax(values):
    low, high = min(values.values()), max(values.values())
    return {key: (value - low) / (high - low) if high > low else 0.0 for key, value in values.items()}


def z(values):
    numbers = list(values.values())
    mean = sum(numbers) / len(numbers)
    sd = math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))
    return {key: (value - mean) / sd if sd > 1e-9 else 0.0 for key, value in values.items()}


NORMS = {"minmax": minmax, "z": z, "none": lambda values: values}


def agrees(stage, world, expected):
    """The stage's scores are the expected ones, and its ranks those of its scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        table = stage.transform(world.run)
    assert len(table) == len(world.run)
    for q, rows in table.groupby("qid"):
        want = expected(q)
        assert set(rows["docno"]) == set(want)
        np.testing.assert_allclose(rows["score"], [want[d] for d in rows["docno"]], rtol=1e-9, atol=1e-9)
        assert rows["rank"].tolist() == list(range(len(rows)))
        single = rows["score"].to_numpy(np.float32)
        assert (np.diff(single) <= 0).all()


@settings(max_examples=25, deadline=None)
@given(
    SEEDS,
    st.sampled_from(ENTITY_WEIGHTS),
    st.sampled_from(["uniform", "document", "entity"]),
    st.booleans(),
    st.sampled_from(sorted(NORMS)),
    st.integers(1, 6),
    st.floats(0, 1),
)
def test_overlap_is_a_loop_over_documents_and_entities(seed, entities, links, confidence, norm, k, weight):
    world = World(seed)

    def expected(q):
        told = {}
        for d in world.docs[q]:
            total = 0.0
            for e, value in world.weights(q, k, entities).items():
                if e in world.links[d]:
                    mentioning = [other for other in world.docs[q] if e in world.links[other]]
                    trusted = [world.links[other][e] if confidence else 1.0 for other in mentioning]
                    share = value * (world.links[d][e] if confidence else 1.0)
                    total += share / sum(trusted) if links == "entity" else share
            told[d] = total / max(len(world.links[d]), 1) if links == "document" else total
        score = NORMS[norm]({d: world.score[q, d] for d in world.docs[q]})
        told = NORMS[norm](told)
        return {d: (1 - weight) * score[d] + weight * told[d] for d in world.docs[q]}

    options = {"entity_weight": entities, "link_weight": links, "confidence": confidence, "norm": norm}
    stage = OverlapReranker(world.tags, world.entities, cutoff=k, weight=weight, **options)
    agrees(stage, world, expected)


PROPAGATED = (SEEDS, st.sampled_from(ENTITY_WEIGHTS), st.booleans(), st.integers(1, 6), st.floats(0, 1))


@settings(max_examples=25, deadline=None)
@given(*PROPAGATED, st.sampled_from(["minmax", "none"]), st.integers(1, 4))
def test_propagation_is_a_loop_over_documents_and_entities(seed, entity_weight, confidence, k, damping, norm, steps):
    world = World(seed)

    def expected(q):
        weights = world.weights(q, k, entity_weight)
        link = {d: world.shared(d, weights, confidence) for d in world.docs[q]}
        start = f = NORMS[norm]({d: world.score[q, d] for d in link})
        for _ in range(steps):
            mean = {}
            for e in weights:
                having = [d for d in link if e in link[d]]
                if having:
                    mean[e] = sum(link[d][e] * f[d] for d in having) / sum(link[d][e] for d in having)
            moved = {
                d: sum(w * mean[e] for e, w in shares.items()) / sum(shares.values()) if shares else f[d]
                for d, shares in link.items()
            }
            f = {d: (1 - damping) * start[d] + damping * moved[d] for d in link}
        return f

    options = {"entity_weight": entity_weight, "confidence": confidence, "norm": norm, "damping": damping}
    agrees(PropagationReranker(world.tags, world.entities, cutoff=k, steps=steps, **options), world, expected)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(ENTITY_WEIGHTS), st.booleans(), st.booleans(), st.integers(1, 6))
def test_embedding_is_the_cosine_of_two_centroids(seed, entity_weight, confidence, own_vectors, k):
    world = World(seed)
    rng = np.random.default_rng(seed)
    documents = {f"d{d}": rng.normal(size=4) for d in range(7)} if own_vectors else None

    def expected(q):
        query, result = world.centroid(world.weights(q, k, entity_weight)), {}
        for d in world.docs[q]:
            vector = world.centroid({e: w if confidence else 1.0 for e, w in world.links[d].items()})
            vector = vector if documents is None else documents.get(d, np.zeros(4))
            length = np.linalg.norm(vector) * np.linalg.norm(query)
            result[d] = float(vector @ query / length) if length > 0 else 0.0
        return result

    options = {"document_embeddings": documents, "entity_weight": entity_weight, "confidence": confidence}
    stage = EmbeddingReranker(world.tags, world.entities, world.vectors, cutoff=k, weight=1.0, norm="none", **options)
    agrees(stage, world, expected)


@settings(max_examples=25, deadline=None)
@given(*PROPAGATED, st.integers(1, 9))
def test_propagation_between_similar_documents_is_a_loop(seed, entity_weight, confidence, k, damping, neighbours):
    world = World(seed)

    def expected(q):
        weights, vectors = world.weights(q, k, entity_weight), {}
        for d in world.docs[q]:
            total = world.centroid(world.shared(d, weights, confidence))
            if np.linalg.norm(total) > 0:
                vectors[d] = total / np.linalg.norm(total)
        start = f = {d: world.score[q, d] for d in world.docs[q]}
        for _ in range(2):
            moved = {}
            for d, shares in f.items():
                near = {o: round(vectors[d] @ vectors[o], 9) for o in vectors if o != d} if d in vectors else {}
                near = {o: c for o, c in near.items() if c > 0}
                least = sorted(near.values(), reverse=True)[:neighbours]
                near = {o: c for o, c in near.items() if c >= least[-1]}
                moved[d] = sum(c * f[o] for o, c in near.items()) / sum(near.values()) if near else shares
            f = {d: (1 - damping) * start[d] + damping * moved[d] for d in f}
        return f

    options = {"neighbours": neighbours, "entity_weight": entity_weight, "confidence": confidence, "damping": damping}
    inputs = world.tags, world.entities, world.vectors
    agrees(SimilarityPropagationReranker(*inputs, cutoff=k, norm="none", **options), world, expected)


@pytest.fixture
def world():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        yield World(7)


VECTORS = (EmbeddingReranker, SimilarityPropagationReranker)


@pytest.mark.parametrize("kind", [OverlapReranker, PropagationReranker, *VECTORS])
def test_topics_without_entities_keep_their_order(kind, world):
    entities = world.entities[world.entities["qid"] != "q1"]
    table = kind(world.tags, entities, *([world.vectors] if kind in VECTORS else [])).transform(world.run)
    scores = table[table["qid"] == "q1"].set_index("docno")["score"]
    score = minmax({d: world.score["q1", d] for d in world.docs["q1"]})
    factor = 1.0 if issubclass(kind, PropagationReranker) else 0.5
    assert scores.to_dict() == pytest.approx({d: factor * value for d, value in score.items()})


def test_other_columns_pass_through_pipelines(world):
    run = world.run.assign(query="x", text=[f"text of {d}" for d in world.run["docno"]])
    pipeline = pt.Transformer.from_df(run.assign(rank=0)) >> OverlapReranker(world.tags, world.entities)
    result = pipeline(run[["qid", "query"]].drop_duplicates())
    assert (result["text"] == "text of " + result["docno"]).all()


def test_equal_documents_say_nothing_under_either_norm():
    run = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "score": [0.1] * 3})
    tags = pd.DataFrame({"docno": ["b"], "entity_id": ["X"]})
    entities = pd.DataFrame({"qid": ["q"], "docno": ["X"], "score": [1.0]})
    for norm in ("minmax", "z"):
        table = OverlapReranker(tags, entities, norm=norm, weight=0.0).transform(run)
        assert table["score"].tolist() == [0.0] * 3


def test_inputs_with_little_evidence_are_reported():
    run = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "score": [2.0, 1.0]})
    tags = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["X", "Y"]})
    entities = pd.DataFrame({"qid": ["q"], "docno": ["X"], "score": [-1.0]})
    with pytest.warns(DegenerateWarning, match="scores below 0 lower the scores"):
        OverlapReranker(tags, entities, entity_weight="score").transform(run)
    with pytest.warns(DegenerateWarning, match=r"1 of 2 entities of documents have no vector .*'Y'"):
        EmbeddingReranker(tags, entities, {"X": [1.0, 0.0]}).transform(run)
    with pytest.warns(DegenerateWarning, match="1 document is not in the pool of links"):
        OverlapReranker(link_pool(run.iloc[:1], tags), entities).transform(run)


TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["capital", "cowboys"]})
ENTITIES = pd.DataFrame(
    {"qid": ["q1", "q1", "q3"], "docno": ["Paris", "New_York_City", "Rome"], "score": [1.0, 2.0, 1.0]}
)


def test_first_entities_are_added_by_text_or_name():
    table = ExpandByEntities(ENTITIES, texts={"Paris": "Paris, (city)!"}, cutoff=2).transform(TOPICS)
    assert table["query"].tolist() == ["capital new york city paris city", "cowboys"]
    assert table["query_0"].tolist() == ["capital", "cowboys"]
    assert ExpandByEntities(ENTITIES, cutoff=1).transform(TOPICS)["query"].tolist()[0] == "capital new york city"

    assert not len(ExpandByEntities(ENTITIES).transform(TOPICS.iloc[:0]))
    assert ExpandByEntities(ENTITIES) == ExpandByEntities(ENTITIES.copy()) != ExpandByEntities(ENTITIES, cutoff=1)


WORDS = ["rome", "Paris", "river", "map", "the", "city"]


# The first entity of all topics may be the one without a text.
@pytest.mark.filterwarnings("ignore:none of 1 entities has a text:vbterrier.errors.DegenerateWarning")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([None, 1, 2]), st.sampled_from([0.0, 0.75, 1.0]))
def test_evidence_is_bm25_by_a_loop_over_words(seed, k, n_terms, b):
    rng = np.random.default_rng(seed)

    def text(most):
        return " ".join(rng.choice(WORDS, rng.integers(0, most)))

    described = {f"e{e}": text(6) for e in range(4)}
    bodies = {f"d{d}": text(12) for d in range(6)}
    docnos = {q: [d for d in bodies if rng.random() < 0.8] or ["d0"] for q in ("q1", "q2")}
    columns = ["qid", "docno", "score", "text"]
    run = pd.DataFrame([(q, d, rng.random(), bodies[d]) for q in docnos for d in docnos[q]], columns=columns)
    listed = {q: [str(e) for e in rng.permutation([*described, "Paris_map"])] for q in docnos}
    entities = [(q, e, -rank) for q in docnos for rank, e in enumerate(listed[q])]
    entities = pd.DataFrame(entities, columns=["qid", "docno", "score"])

    def words(body):
        return re.findall(r"\w+", body.lower())

    def expected(q):
        weights = Counter()
        for e in listed[q][:k]:
            terms = words(described.get(e, e.replace("_", " ")))
            for term in terms:
                weights[term] += 1 / len(terms) / k
        kept = sorted(weights, key=lambda term: (-round(weights[term], 12), term))[:n_terms]
        docs = {d: words(bodies[d]) for d in docnos[q]}
        mean = sum(map(len, docs.values())) / len(docs)
        result = Counter(dict.fromkeys(docs, 0.0))
        for (d, terms), term in product(docs.items(), kept):
            if tf := terms.count(term):
                df = sum(term in others for others in docs.values())
                idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                result[d] += weights[term] * idf * tf * 2.2 / (tf + 1.2 * (1 - b + b * len(terms) / mean))
        return result

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
    table = ExpansionReranker(entities, weight=1.0).transform(run)
    assert table[table["rank"] == 0][["qid", "docno"]].values.tolist() == [["q1", "a"], ["q2", "b"]]


@pytest.mark.filterwarnings("ignore:.*(have no reachable document|have no vector and)")
def test_entities_that_no_document_mentions_are_reported_by_every_reranker():
    """Ids of another knowledge base would change nothing, without a word."""
    world = World(3)
    other = world.entities.assign(docno="Q" + world.entities["docno"])
    stages = {
        "overlap": lambda run: OverlapReranker(world.tags, run),
        "propagation": lambda run: PropagationReranker(world.tags, run),
        "similarity": lambda run: SimilarityPropagationReranker(world.tags, run, world.vectors),
        "reachable": lambda run: EntityReachable(world.tags, run),
    }
    for make in stages.values():
        with pytest.warns(DegenerateWarning, match=r"no document of the links mentions any of its 15 entities.*'Qe"):
            make(other)(world.run)
    run, texts = world.run.assign(text="e 4", query="x"), {each: each.upper() for each in world.tags["entity_id"]}
    of_texts = {
        "embedding": lambda run: EmbeddingReranker(world.tags, run, world.vectors),
        "expansion": lambda run: ExpansionReranker(run, texts=texts),
        "expanded queries": lambda run: ExpandByEntities(run, texts=texts),
    }
    for name, make in (stages | of_texts).items():
        with pytest.warns(DegenerateWarning, match="entities: no entities for any of 3 topics"):
            make(world.entities.assign(qid="x" + world.entities["qid"]))(run)
        if name in of_texts:
            message = (
                "selected entities have no vector" if name == "embedding" else r"none of \d+ entities has a text.*'Qe"
            )
            with pytest.warns(DegenerateWarning, match=message):
                make(other)(run)
            # Without texts, ids are texts, and any may be.
            make(world.entities)(run)
    for make in stages.values():
        with pytest.warns(DegenerateWarning, match="entities: 1 entities differ from those of the links only in case"):
            make(world.entities.replace({"docno": {"e4": "E4"}}))(world.run)
