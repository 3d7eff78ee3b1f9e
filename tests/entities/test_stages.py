"""Links of any shape, equality and refusals of all stages over links."""

import warnings

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, LocalIDF, PersonalisedPageRank
from vbterrier.entities.rankers.hybrid import HybridEntities, OERFilter
from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.entities.rerank.embedding import EmbeddingReranker, SimilarityPropagationReranker
from vbterrier.entities.rerank.overlap import OverlapReranker, PropagationReranker
from vbterrier.entities.stage import EntityReachable
from vbterrier.errors import DegenerateWarning
from vbterrier.frames.linked_pool import LinkedPool

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
VECTORS = dict(zip([f"E{each}" for each in range(9)], np.random.default_rng(2).normal(size=(9, 5)), strict=True))


def embed(texts):
    """Vectors that depend on the text alone."""
    return [np.random.default_rng(list(text.encode())).normal(size=5) for text in texts]


def oer_filter(links, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "OERFilter reads the judgments", DegenerateWarning)
        return OERFilter(links, **options)


def hybrid(links, **options):
    rankers = [ConsensusEntities(links, cutoff=5), PersonalisedPageRank(links), ConsensusEntities(links) % 3]
    return HybridEntities(**({"rankers": rankers} | options))


SIMILAR = {"embeddings": VECTORS, "embed": embed}
# The stage, whether it reads an entity run, its parameters, its input, another parameter, and its text with that.
STAGES = {
    "consensus": (ConsensusEntities, False, {"support": "rho+rank"}, "run", {"support": "rho", "cutoff": 20},
                  "ConsensusEntities(4 topics, support='rho', cutoff=20)"),
    "pagerank": (PersonalisedPageRank, False, {"cutoff": 5}, "run", {"damping": 0.5, "cutoff": None},
                 "PersonalisedPageRank(4 topics, damping=0.5)"),
    "similarity": (EntitySimilarity, False, SIMILAR, "run", {"cutoff": 4},
                   "EntitySimilarity(4 topics, embeddings=9 entries, embed=embed, cutoff=4)"),
    "idf": (LocalIDF, False, {}, "entities", {"pool_cutoff": 3}, "LocalIDF(4 topics, pool_cutoff=3)"),
    "oer": (oer_filter, False, {}, "entities", {"threshold": 0.5},
            "OERFilter(diagnostic, reads judgments: 4 topics, threshold=0.5)"),
    "hybrid": (hybrid, False, {}, "topics", {"k": 1}, "HybridEntities(["),
    "reachable": (EntityReachable, True, {"cutoff": 2}, "run", {"cutoff": 1}, "EntityReachable(4 topics, "),
    "overlap": (OverlapReranker, True, {}, "run", {"cutoff": 3}, "OverlapReranker(4 topics, "),
    "propagation": (PropagationReranker, True, {}, "run", {"cutoff": 3}, "PropagationReranker(4 topics, "),
    "embedding": (EmbeddingReranker, True, {"embeddings": VECTORS}, "run", {"cutoff": 3},
                  "EmbeddingReranker(4 topics, "),
    "similar documents": (SimilarityPropagationReranker, True, {"embeddings": VECTORS}, "run", {"cutoff": 3},
                          "SimilarityPropagationReranker(4 topics, "),
}  # fmt: skip


def maker(name, data):
    """A function from links and parameters to a stage."""
    kind, reads_entities, parameters, *_ = STAGES[name]
    entities = [data["entities"]] if reads_entities else []
    return lambda links, **options: kind(links, *entities, **(parameters | options))


OF_POOLS = ("idf", "oer", "hybrid")


@pytest.fixture
def data(collection):
    made = collection(2)
    pool = link_pool(made["run"], made["tags"], made["qrels"])
    entities = ConsensusEntities(pool, min_documents=1)(made["topics"])
    return made | {"pool": pool, "entities": entities}


def same(one, other):
    keys = ["qid", "rank"]
    one, other = (frame.sort_values(keys, ignore_index=True) for frame in (one, other))
    assert_frame_equal(one, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", STAGES)
def test_links_of_any_shape_give_the_same_result(name, data):
    make, inputs, pool = maker(name, data), data[STAGES[name][3]], data["pool"]
    whole = make(pool)(inputs)
    assert len(whole) > 4
    shapes = [pool.to_frame(), LinkedPool.from_frame(pool.to_frame().sample(frac=1, random_state=4))]
    for links in shapes if name in OF_POOLS else [*shapes, data["tags"].sample(frac=1, random_state=1)]:
        same(make(links)(inputs), whole)
    assert (whole["query"] == "query of " + whole["qid"]).all()


@pytest.mark.parametrize("name", STAGES)
def test_stages_are_what_their_parameters_are(name, data):
    make, (other, shown), pool = maker(name, data), STAGES[name][4:], data["pool"]
    run, tags, qrels = data["run"], data["tags"], data["qrels"]
    stage, again = make(pool), make(link_pool(run, tags, qrels))
    assert stage == again
    assert hash(stage) == hash(again)
    assert stage != make(pool, **other)
    assert stage != make(link_pool(run, tags, qrels, cutoff=3))
    assert stage != make(link_pool(run, tags, qrels.assign(label=1)))
    assert repr(make(pool, **other)).startswith(shown)
    if name == "similarity":
        assert stage == make(pool, embeddings=dict(VECTORS)) != make(pool, embeddings=VECTORS | {"E1": np.ones(5)})
    if name not in OF_POOLS:
        changed = tags.copy()
        stage = make(changed)
        assert stage == make(tags) != make(tags.iloc[1:])
        expected = stage(run)
        changed["entity_id"] = "changed"
        same(stage(run), expected)


@pytest.mark.parametrize("name", ["consensus", "pagerank"])
def test_rankers_read_the_documents_of_the_input_if_links_are_tags(name, data):
    make, columns = maker(name, data), ["qid", "query", "docno", "score", "rank"]
    assert pt.inspect.transformer_inputs(make(data["pool"])) == [["qid"]]
    assert pt.inspect.transformer_inputs(make(data["tags"])) == [["qid", "docno", "score"]]
    assert pt.inspect.transformer_outputs(make(data["tags"]), columns) == columns


RUN = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 2, "query": ["rome"] * 4 + ["texas"] * 2, "rank": [0, 1, 2, 3, 0, 1]})
RUN = RUN.assign(docno=["d1", "d2", "d3", "d4", "d1", "d5"], score=[4.0, 3.0, 2.0, 1.0, 9.0, 8.0])
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d2", "d4", "d5"], "entity_id": ["Rome", "Italy", "Rome", "Italy", "Texas"]})
ENTITIES = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["Italy", "Rome", "Texas"], "score": [2.0, 1.0, 1.0]})


def kept(frame):
    return frame[["qid", "docno", "rank"]].values.tolist()


def test_tags_of_one_query_do_not_reach_for_another():
    tags = pd.DataFrame({"qid": ["q2"], "docno": ["d1"], "entity_id": ["Texas"]})
    entities = ENTITIES.assign(docno="Texas").drop_duplicates(["qid", "docno"])
    with pytest.warns(DegenerateWarning, match=r"run: 1 of 2 topics have no reachable document \('q1'\)"):
        assert kept(EntityReachable(tags, entities).transform(RUN)) == [["q2", "d1", 0]]


def test_documents_outside_the_linked_pool_are_not_reachable():
    pool = link_pool(RUN[RUN["docno"] != "d4"], TAGS)
    with pytest.warns(DegenerateWarning, match=r"1 document is not in the pool of links .*'d4'"):
        table = EntityReachable(pool, ENTITIES, cutoff=1).transform(RUN)
    assert kept(table) == [["q1", "d2", 0], ["q2", "d5", 0]]


def test_batch_without_tagged_documents_comes_out_empty():
    batch = pd.DataFrame({"qid": ["q1"], "docno": ["new"], "score": [1.0], "rank": [0]})
    with pytest.warns(DegenerateWarning, match="1 of 1 topics"):
        table = EntityReachable(TAGS, ENTITIES).transform(batch)
    assert not len(table)
    assert list(table.columns) == list(batch.columns)


def test_stage_of_entities_is_run_on_its_input():
    with_stage = EntityReachable(TAGS, pt.apply.generic(lambda inp: ENTITIES.merge(inp[["qid"]].drop_duplicates())))
    assert kept(with_stage.transform(RUN)) == kept(EntityReachable(TAGS, ENTITIES).transform(RUN))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_loop_over_documents_says_the_same(seed, k):
    rng = np.random.default_rng(seed)
    n_topics, n_docs, n_entities = rng.integers(1, 4), 12, 6
    pairs = [(q, d) for q in range(n_topics) for d in range(n_docs) if rng.random() < 0.7]
    run = pd.DataFrame(pairs, columns=["qid", "docno"]).astype(str)
    run["score"] = rng.permutation(len(run)).astype(float)
    links = {d: {str(e) for e in range(n_entities) if rng.random() < 0.3} for d in map(str, range(n_docs))}
    tags = pd.DataFrame(
        [(d, e) for d, linked in links.items() for e in linked], columns=["docno", "entity_id"], dtype=str
    )
    ranked = {str(q): [str(e) for e in rng.permutation(n_entities)[: rng.integers(1, 6)]] for q in range(n_topics)}
    listed = [(q, e, -i) for q, ids in ranked.items() for i, e in enumerate(ids)]
    entities = pd.DataFrame(listed, columns=["qid", "docno", "score"])
    expected = []
    for qid, rows in run.sort_values("score", ascending=False).groupby("qid"):
        reach = [d for d in rows["docno"] if links[d] & set(ranked[qid][:k])]
        expected += [[qid, d, rank] for rank, d in enumerate(reach)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        assert kept(EntityReachable(tags, entities, cutoff=k).transform(run)) == expected
