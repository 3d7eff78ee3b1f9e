"""Scores of the published rerankers: inputs, weights and outputs of their code (``peer_values/neural``)."""

import numpy as np
import pytest

from vbterrier.entities.neural import architectures
from vbterrier.entities.neural.architectures import INTERACTIONS, PAIRS, WORD_PAIRS
from vbterrier.entities.neural.models import hinge
from vbterrier.entities.neural.raw import RawBatch, RawEntities

torch = pytest.importorskip("torch")

# The tolerance that the data state: the rounding of single precision.
TOLERANCE = 1e-5
QDER = [
    *("base", "one_document", "linear", "no_first_stage", "no_entities_switch", "add_only", "multiply_only"),
    *("all_three", "first_stage_signs", "query_without_entities", "unmasked_entities", "empty_entity_arrays"),
]
CASES = ["several", "one_document"]


@pytest.fixture(scope="module")
def peer(shared_data):
    def read(name):
        with np.load(shared_data / "peer_values" / "neural" / f"{name}.npz", allow_pickle=False) as file:
            return {key: torch.tensor(np.asarray(file[key])) for key in file}

    return read


def part(values, prefix):
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def require_equal(values, expected):
    assert values.shape == expected.shape
    assert not values.numel() or float((values - expected).abs().max()) <= TOLERANCE


@pytest.mark.parametrize("case", QDER)
def test_qder_equals_the_published_code(peer, case):
    values = part(peer("qder"), f"{case}.")
    x, p, switch, out = (part(values, f"{name}.") for name in ("in", "weight", "set", "out"))
    for side in ("query", "document"):
        # Without masks, every row counts.
        x.setdefault(f"{side}_entity_mask", torch.ones(x[f"{side}_entities"].shape[:2]))
    used = [name for name, is_used in zip(INTERACTIONS, switch["interactions"], strict=True) if is_used]
    switches = {"entities": bool(switch["use_entities"]), "first_stage": bool(switch["use_first_stage"])}
    pooled = architectures.qder_pooled(x, used, **switches)
    assert p["score_weight"].ndim == 1 + int(switch["bilinear"])
    require_equal(pooled, out["before_norm"])
    require_equal(architectures.layer_norm(p, pooled), out["after_norm"])
    require_equal(architectures.qder(p, pooled), out["score"])


@pytest.mark.parametrize("case", CASES)
def test_dreq_equals_the_published_code(peer, case):
    values = peer("dreq")
    p, x, out = (part(values, prefix) for prefix in ("weight.", f"{case}.in.", f"{case}.out."))
    require_equal(architectures.dreq_interactions(p, x), out["interactions"])
    score = architectures.dreq(p, x)
    require_equal(score, out["score"])
    require_equal(torch.nn.functional.binary_cross_entropy_with_logits(score, x["label"]), out["loss"])


def edrm_weights(values):
    """The stored weights by the names of this package; convolutions have the shape (filters, dimensions, width)."""
    stored = part(values, "weight.")
    size = stored["wrd_emb.weight"].shape[1]
    named = {
        "word": stored["wrd_emb.weight"],
        "entity": stored["ent_emb.weight"],
        "type": stored["car_emb.weight"],
        "bag_weight": stored["dense_bow.weight"],
        "bag_bias": stored["dense_bow.bias"],
        "description_weight": stored["conv_des.0.weight"].reshape(-1, 5, size).transpose(1, 2),
        "description_bias": stored["conv_des.0.bias"],
        "score_weight": stored["dense_f.weight"][0],
        "score_bias": stored["dense_f.bias"],
    }
    for n, name in enumerate(("uni", "bi", "tri"), 1):
        if f"conv_{name}.0.weight" in stored:
            named[f"gram{n}_weight"] = stored[f"conv_{name}.0.weight"][:, 0].transpose(1, 2)
            named[f"gram{n}_bias"] = stored[f"conv_{name}.0.bias"]
    return named


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "pairs"), [("edrm_convknrm", PAIRS), ("edrm_knrm", WORD_PAIRS)])
def test_edrm_equals_the_published_code(peer, name, pairs, case):
    values = peer(name)
    p, x, out, shared = edrm_weights(values), *(part(values, key) for key in (f"{case}.in.", f"{case}.out.", "shared."))
    for side in ("query", "document"):
        entity = x[f"{side}_entity"]
        x |= {f"{side}_entity_description": shared["description_words"][entity]}
        x |= {f"{side}_entity_types": shared["types"][entity]}
        inputs = (x[f"{side}_{each}"] for each in ("entity", "entity_description", "entity_types", "words"))
        require_equal(architectures.entity_vectors(p, *inputs), out[f"{side}_entity_unit"])
    features = architectures.edrm_features(p, x, pairs)
    require_equal(features, out["features"])
    score = architectures.edrm(p, features)
    require_equal(score, out["score"])
    if "hinge_1_over_2" in out:
        # Document 0 is preferred to document 1.
        require_equal(hinge(score[:2], torch.tensor([1, 0])), out["hinge_1_over_2"])


@pytest.mark.parametrize("case", CASES)
def test_knrm_equals_the_published_code(peer, case):
    values = peer("knrm")
    x, out = part(values, f"{case}.in."), part(values, f"{case}.out.")
    weight = {"score_weight": values["weight.dense"], "score_bias": values["weight.dense_bias"]}
    p = {"word": values["weight.words"], **weight}
    features = architectures.edrm_features(p, x, ["11"])
    require_equal(features, out["features"])
    require_equal(architectures.edrm(p, features), out["score"])


def test_duet_equals_its_formula(peer):
    values = peer("duet")
    score, rank, attention = architectures.duet(part(values, "weight."), part(values, "in."))
    require_equal(score, values["formula.score"])
    require_equal(rank, values["formula.rank"])
    require_equal(attention, values["formula.attention"])


@pytest.mark.parametrize("case", ["two", "one"])
def test_eva_inputs_equal_the_published_code(peer, case):
    values = peer("eva")
    tokens, mask, entities = eva_passages(values)
    query = values["vectors"][values[f"{case}.in.query_entities"]]
    require_equal(query.mean(dim=0), values[f"{case}.out.query_vector"])
    require_equal(architectures.eva_view(query, tokens, entities), values[f"{case}.out.training_passage_vector"])
    require_equal(architectures.eva_kernels(query, tokens, mask), values[f"{case}.out.kernels"])


def eva_passages(values):
    """Vectors of words and entities of passages, the mask of both, and that of entities (rows from 8 on)."""
    rows = values["in.passage_tokens"]
    mask = rows >= 0
    return values["vectors"][rows.clamp(min=0)] * mask[..., None], mask.float(), mask & (rows >= 8)


def test_eva_scores_equal_the_published_code(peer):
    values = peer("eva")
    p = {"entity": values["weight.entity"], "entity_bias": values["weight.entity_bias"]}
    query = architectures.eva_vector(p, values["two.in.query_text"], values["two.out.query_vector"])
    view = architectures.eva_vector(p, values["two.in.passage_text"], values["two.out.training_passage_vector"])
    require_equal(view @ query, values["two.formula.score"])
    tokens, mask, _ = eva_passages(values)
    kernels = architectures.eva_kernels(values["vectors"][values["two.in.query_entities"]], tokens, mask)
    tanh = torch.tanh(kernels @ values["weight.kernels"] + values["weight.kernels_bias"])
    require_equal(view @ query + tanh, values["two.formula.score_with_kernels"])


@pytest.fixture
def linked(peer):
    """A topic of five documents with the stored entity run and links."""
    values = {name: value.numpy() for name, value in peer("entity_vectors").items()}
    vectors = np.where(values["has_vector"][:, None], values["vectors"], 0)
    links = [list(dict.fromkeys(row[row >= 0].tolist())) for row in values["document_entities"]]
    rows = np.array([each + [-1] * (4 - len(each)) for each in links])
    mentions = np.array(
        [
            [(row == each).sum() * (each >= 0) for each in ids]
            for ids, row in zip(rows, values["document_entities"], strict=True)
        ]
    )
    table = np.vstack([vectors, np.zeros((1, 300))]).astype(np.float32)
    has_vector = np.append(values["has_vector"], False)
    entities = RawEntities([str(at) for at in range(8)], [""] * 8, table, has_vector, {})
    zeros = np.zeros(5, np.float32)
    score = values["run_score"].astype(np.float32)
    return values, lambda cutoff: RawBatch(
        "", [""] * 5, zeros, zeros, values["run_entity"], score, rows, mentions, entities, cutoff, None
    )


@pytest.mark.parametrize("cutoff", [2, 20])
def test_qder_reads_entity_vectors_times_run_scores(linked, cutoff):
    values, batch = linked
    query, mask, documents, document_mask = batch(cutoff).scaled_vectors()
    assert mask.all()
    np.testing.assert_allclose(query[:, :3], values[f"qder.k{cutoff}.query_vector_first3"], atol=TOLERANCE)
    for at, (rows, is_document) in enumerate(zip(documents, document_mask, strict=True)):
        np.testing.assert_allclose(rows[is_document][:, :3], values[f"qder.document{at}.vector_first3"], atol=TOLERANCE)
        assert not rows[~is_document].any()


@pytest.mark.parametrize(
    ("weight", "stored"), [("score", "score"), ("uniform", "uniform"), ("reciprocal", "recip-rank")]
)
def test_dreq_sums_weighted_entity_vectors_with_repeats(linked, weight, stored):
    values, batch = linked
    expected = values[f"dreq.{stored}.entity_vector"]
    # The published code drops documents without a listed entity; here their sum is 0.
    np.testing.assert_allclose(batch(20).summed_vectors(weight), np.nan_to_num(expected), atol=TOLERANCE)
    assert np.isnan(expected).any()
