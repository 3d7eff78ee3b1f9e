"""Reference variants from outside: scores of saved models by the formulas of the papers' code, in NumPy."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.entities import Architecture, NeuralReranker, Training

safetensors = pytest.importorskip("safetensors.numpy")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("neural")]

RNG = np.random.default_rng(0)
WORDS = {f"w{each}": RNG.normal(size=6) for each in range(40)}
# The last entity has no vector.
ENTITIES = [f"Q{each}" for each in range(1, 9)]
VECTORS = {entity: RNG.normal(size=5) for entity in ENTITIES[:-1]}
TOPICS = [f"q{each}" for each in range(8)]


def encoder(text):
    return np.array([WORDS.get(word, np.ones(6)) for word in text.split()])


def collection():
    """Runs, entity runs, links with repeats and judgments at random; some documents have no entity."""
    run, tags, entities = [], [], []
    for qid in TOPICS:
        query = " ".join(RNG.choice(list(WORDS), 3))
        for number in range(6):
            docno, text = f"{qid}d{number}", " ".join(RNG.choice(list(WORDS), RNG.integers(2, 7)))
            run.append((qid, docno, RNG.normal() + 3, query, text))
            tags += [(docno, RNG.choice(ENTITIES), 3 * at, 3 * at + 2) for at in range(RNG.integers(0, 5))]
        listed = RNG.permutation(ENTITIES)[:6]
        entities += [(qid, entity, score) for entity, score in zip(listed, RNG.random(6) + 0.5, strict=True)]
    run = pd.DataFrame(run, columns=["qid", "docno", "score", "query", "text"])
    return (
        run,
        pd.DataFrame(tags, columns=["docno", "entity_id", "start", "end"]),
        pd.DataFrame(entities, columns=["qid", "docno", "score"]),
        run[["qid", "docno"]].assign(label=RNG.integers(0, 2, len(run))),
    )


def attended(query, document):
    if not len(document):
        return np.zeros_like(query)
    weight = np.exp(query @ document.T)
    return weight / weight.sum(axis=1, keepdims=True) @ document


def qder(p, row, linked, score):
    """Means of sums and products of Q and what it attends to, times the first stage; a norm; a bilinear form."""
    listed = sorted(score, key=score.get, reverse=True)
    of_query, of_document = (
        np.array([VECTORS[each] * score[each] for each in names if each in score and each in VECTORS]).reshape(-1, 5)
        for names in (listed, linked)
    )
    parts = []
    for query, document in ((encoder(row.query), encoder(row.text)), (of_query, of_document)):
        rows = attended(query, document)
        parts += [(query + rows).mean(axis=0), (query * rows).mean(axis=0)]
    c = np.concatenate(parts) * row.score
    x = (c - c.mean()) / np.sqrt(c.var() + 1e-5) * p["norm_gain"] + p["norm_bias"]
    return x @ p["score_weight"] @ x + p["score_bias"][0]


def dreq(p, row, linked, score):
    """Linear maps of the query and of the document with the sum of its entities' vectors, times their run scores."""
    entities = sum((score[each] * VECTORS[each] for each in linked if each in score and each in VECTORS), np.zeros(5))
    q = p["query_weight"] @ encoder(row.query).mean(axis=0) + p["query_bias"]
    d = p["document_weight"] @ np.concatenate([encoder(row.text).mean(axis=0), entities]) + p["document_bias"]
    return np.concatenate([q, d, q + d, q - d, q * d]) @ p["score_weight"] + p["score_bias"][0]


@pytest.mark.parametrize("formula", [qder, dreq])
def test_saved_reference_models_score_by_the_formula(formula, tmp_path):
    run, tags, entities, qrels = collection()
    training = Training(epochs=3, patience=float("inf"), rate=1e-2)
    stage = NeuralReranker(
        tags,
        entities,
        model=formula.__name__,
        vectors=VECTORS,
        encoder=encoder,
        architecture=Architecture(variant="reference"),
        training=training,
    )
    scored = stage.fit(run, qrels)(run).set_index(["qid", "docno"])["score"]
    stage.save(tmp_path)
    p = safetensors.load_file(tmp_path / "model.safetensors")
    assert p["interpolation"][0] == 0
    for qid, topic in run.groupby("qid"):
        score = entities[entities["qid"] == qid].set_index("docno")["score"].to_dict()
        links = [tags.loc[tags["docno"] == docno, "entity_id"].tolist() for docno in topic["docno"]]
        values = np.array(
            [formula(p, row, links_of, score) for row, links_of in zip(topic.itertuples(), links, strict=True)]
        )
        expected = (values - values.mean()) / values.std()
        assert scored.loc[qid].loc[topic["docno"]].to_numpy() == pytest.approx(expected, abs=1e-5)
