"""Reference variants from outside: scores of saved models by the formulas of the papers' code, in NumPy."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.entities import Architecture, NeuralReranker, Training
from vbterrier.entities.neural.models import NeuralModel

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


@pytest.mark.parametrize("model", ["knrm", "edrm-knrm", "edrm-convknrm"])
def test_topics_that_are_scored_at_once_have_the_losses_and_gradients_of_each(model):
    torch = pytest.importorskip("torch")
    run, tags, entities, qrels = collection()
    architecture = Architecture(variant="reference")
    types = {entity: [f"w{number % 3}", "w7"] for number, entity in enumerate(ENTITIES)}
    # Entities have words of the texts as names, which topics share in part.
    names = {entity: f"w{number} w{number + 20}" for number, entity in enumerate(ENTITIES)}
    inputs = {"vectors": VECTORS, "names": names, "types": types, "encoder": encoder, "architecture": architecture}
    stage = NeuralReranker(tags, entities, model=model, **inputs)
    network, features = stage._network, stage._compute_features(run).features
    tables, keys = network.tables(features[:-1])
    parameters = network.parameters(features[0], np.random.default_rng(1)) | tables
    p = {name: torch.tensor(each, dtype=torch.float32, requires_grad=True) for name, each in parameters.items()}
    label = qrels["label"].to_numpy().reshape(len(TOPICS), -1)
    # The last topic has words and entities that the tables lack.
    examples = [
        ({name: torch.tensor(each) for name, each in {**x, **network.table_rows(keys, x)}.items()}, torch.tensor(y))
        for x, y in zip(features, label, strict=True)
        if len(set(y)) > 1
    ]
    results = []
    for loss in (NeuralModel.loss, type(network).loss):
        value = loss(network, p, examples)
        gradients = torch.autograd.grad(value, list(p.values()), allow_unused=True)
        results.append([value.detach(), *(torch.zeros(()) if each is None else each for each in gradients)])
    assert any(each.abs().max() > 1e-3 for each in results[0][1:])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-6)
