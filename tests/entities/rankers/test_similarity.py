import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers import similarity
from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.errors import DegenerateWarning, InputError


def embed(texts):
    """Vectors that depend on the text alone."""
    return [np.random.default_rng(list(text.encode())).normal(size=5) for text in texts]


def cosine(one, other):
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.fixture
def data(collection):
    return collection(1)


@pytest.fixture
def vectors():
    return dict(zip([f"E{each}" for each in range(9)], np.random.default_rng(2).normal(size=(9, 5)), strict=True))


def mentioned(data):
    """The pairs of query and entity that there are."""
    rows = data["run"].merge(data["tags"], on="docno")[["qid", "query", "entity_id"]].drop_duplicates()
    return list(rows.itertuples(index=False))


def test_text_against_given_vectors(data, vectors, scores_of):
    expected = {(qid, e): cosine(embed([query])[0], vectors[e]) for qid, query, e in mentioned(data)}
    for links in (data["tags"], link_pool(data["run"], data["tags"])):
        stage = EntitySimilarity(links, embeddings=vectors, embed=embed)
        assert scores_of(stage(data["run"])) == pytest.approx(expected)


def test_text_against_text(data, scores_of):
    tags = data["tags"].assign(entity_id="Big_" + data["tags"]["entity_id"])
    texts = {"Big_E1": "the first", "Big_E2": "the second"}
    stage = EntitySimilarity(tags, embed=embed, texts=texts)
    expected = {
        (qid, f"Big_{e}"): cosine(*embed([query, texts.get(f"Big_{e}", f"Big {e}")]))
        for qid, query, e in mentioned(data)
    }
    assert scores_of(stage(data["run"])) == pytest.approx(expected)


def test_centroid_of_the_entities_of_the_query(data, vectors, scores_of):
    rows = [("q0", "E1", 0.8), ("q0", "E2", 0.2), ("q1", "E3", 1), ("q2", "E4", 0.5), ("q2", "gone", 0.5)]
    queries = pd.DataFrame(rows, columns=["qid", "entity_id", "prob"])
    unit = {e: vector / np.linalg.norm(vector) for e, vector in vectors.items()}
    centroid = {"q0": 0.8 * unit["E1"] + 0.2 * unit["E2"], "q1": unit["E3"], "q2": unit["E4"]}
    stage = EntitySimilarity(data["tags"], embeddings=vectors, query_entities=queries)
    with pytest.warns(DegenerateWarning, match="1 of 4 topics have no vector and no ranking.*'q3'"):
        result = stage(data["run"].drop(columns="query"))
    expected = {(qid, e): cosine(centroid[qid], vectors[e]) for qid, _, e in mentioned(data) if qid in centroid}
    assert scores_of(result) == pytest.approx(expected)


def test_blocks_change_nothing(data, vectors, monkeypatch):
    stage = EntitySimilarity(data["tags"], embeddings=vectors, embed=embed)
    whole = stage(data["run"])
    monkeypatch.setattr(similarity, "_BLOCK_ROWS", 2)
    assert_frame_equal(stage(data["run"]), whole, check_exact=True)


def test_texts_are_embedded_once(data):
    requests = []

    def counting(texts):
        requests.extend(texts)
        return embed(texts)

    stage = EntitySimilarity(data["tags"], embed=counting)
    for _, each in data["run"].groupby("qid"):
        stage(each)
    assert sorted(requests) == sorted([*data["run"]["query"].unique(), *data["tags"]["entity_id"].unique()])


def test_entities_without_vectors_are_told_of(data, vectors):
    without = {e: vector for e, vector in vectors.items() if e != "E3"} | {"E4": np.zeros(5)}
    with pytest.warns(DegenerateWarning, match="2 of 9 entities have no vector and are not ranked.*'E3', 'E4'"):
        result = EntitySimilarity(data["tags"], embeddings=without, embed=embed)(data["run"])
    assert set(result["docno"]) == set(vectors) - {"E3", "E4"}
    with pytest.warns(DegenerateWarning, match="9 of 9 entities have no vector"):
        assert len(EntitySimilarity(data["tags"], embeddings={}, embed=embed)(data["run"])) == 0
    queries = pd.DataFrame({"qid": ["q0"], "entity_id": ["gone"]})
    stage = EntitySimilarity(data["tags"], embeddings=vectors, query_entities=queries)
    with pytest.warns(DegenerateWarning, match="4 of 4 topics have no vector"):
        assert len(stage(data["run"])) == 0


@pytest.mark.parametrize("source", ["embeddings", "embed"])
def test_entities_of_other_queries_rank_nothing(data, vectors, source):
    queries = pd.DataFrame({"qid": ["other"], "entity_id": ["E1"]})
    made = {"embeddings": vectors} if source == "embeddings" else {"embed": embed}
    with pytest.warns(DegenerateWarning, match="4 of 4 topics have no vector"):
        assert len(EntitySimilarity(data["tags"], query_entities=queries, **made)(data["run"])) == 0


def test_vectors_of_different_lengths_are_refused(data, vectors):
    words = "vectors of 9 entities: not a table of numbers; check that all have the same length"
    with pytest.raises(InputError, match=words):
        EntitySimilarity(data["tags"], embeddings=vectors | {"E1": [1.0, 2.0]}, embed=embed)(data["run"])
