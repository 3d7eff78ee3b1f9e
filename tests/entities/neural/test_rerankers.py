"""Neural rerankers on a planted collection, where it is known how much each entity says of relevance."""

import hashlib
import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP
from night import at_night
from pandas.testing import assert_frame_equal
from planted import planted_collection
from scipy.stats import ttest_rel

from vbterrier.entities import Architecture, NeuralReranker, Training
from vbterrier.entities.cross_validation import fold_number
from vbterrier.entities.neural import models
from vbterrier.entities.neural.batches import Batch
from vbterrier.entities.neural.models import MODELS
from vbterrier.entities.neural.reference import REFERENCE
from vbterrier.entities.neural.reranker import predict_scores
from vbterrier.entities.pool import link_pool
from vbterrier.entities.supervision import entity_labels
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.evaluate.settings import evaluate_settings
from vbterrier.kernels.resample import stream
from vbterrier.settings import Inference

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("neural")]

SIZE = 16
# The model that is trained in less time than the others.
TRAINED = [name if name == "dreq" else at_night(name) for name in MODELS]
WITH_ENTITIES = [name if name == "dreq" else at_night(name) for name in MODELS if name != "knrm"]


def encoder(text):
    """A vector of each word, whatever stands beside it."""
    vectors = [stream(0, "word", word).normal(size=SIZE) for word in text.split()]
    return np.stack(vectors) if vectors else np.zeros((0, SIZE))


@cache
def collection():
    """Documents of words at random, and entities whose vectors have a direction in common, as those of networks do."""
    made = planted_collection(n_topics=40, n_documents=24, n_relevant=6, n_entities={"sparse": 5})
    words = [f"w{each}" for each in range(60)]
    common = 1.5 * stream(0, "common").normal(size=SIZE)
    query = {qid: " ".join(stream(0, "query", qid).choice(words, 3)) for qid in made.topics["qid"]}
    run = made.pool.assign(query=made.pool["qid"].map(query))
    run["text"] = [" ".join(stream(0, "text", docno).choice(words, 8)) for docno in run["docno"]]
    labels = entity_labels(link_pool(run, made.tags, made.qrels)).dropna(subset="label")
    labels = labels.rename(columns={"entity_id": "docno"})[["qid", "docno", "label"]]
    labels["chance"] = [stream(0, "chance", *pair).random() for pair in labels[["qid", "docno"]].to_numpy()]
    # As many negatives as positives, as in the closed design; a random ranker, and one that has learned the labels.
    n = labels.groupby("qid")["label"].transform("sum")
    place = labels.sort_values("chance").groupby(["qid", "label"]).cumcount()
    closed = labels[place.reindex(labels.index) < n]
    rng = np.random.default_rng(0)
    permuted = made.qrels.assign(label=made.qrels.groupby("qid")["label"].transform(rng.permutation))
    entities = made.entities["entity_id"].unique()
    keys = ["qid", "docno", "score"]
    return SimpleNamespace(
        run=run,
        tags=made.tags,
        pool=link_pool(run, made.tags),
        vectors={each: stream(0, "vector", each).normal(size=SIZE) + common for each in entities},
        qrels={"true": made.qrels, "permuted": permuted},
        entities={
            **{new: made.runs[old].groupby("qid").head(3) for new, old in (("signal", "odds"), ("chance", "chance"))},
            "closed, random": closed.assign(score=closed["chance"])[keys],
            "closed, trained": closed.assign(score=closed["label"] + 0.1 * closed["chance"])[keys],
        },
    )


def stage(model, entities="signal", pool=None, variant="compact", switches=None, **training):
    data = collection()
    # The convolutions are the only features that are computed in every epoch.
    training = ({"epochs": 4, "patience": 2, "rate": 0.02} if model == "edrm-convknrm" else {}) | training
    inputs = data.pool if pool is None else pool, data.entities[entities]
    architecture = Architecture(variant=variant, switches=switches)
    options = {"vectors": data.vectors, "encoder": encoder, "training": Training(**training)}
    return NeuralReranker(*inputs, model=model, architecture=architecture, **options)


@cache
def crossed(model, entities="signal", labels="true"):
    data = collection()
    return stage(model, entities).cross_validated(data.run, data.qrels[labels])


def gain(run):
    """The mean gain in AP over the first stage, and the p-value of the paired test that it is above 0."""
    data = collection()
    ours, first = (
        pd.DataFrame(pt.Evaluate(each, data.qrels["true"], [AP], perquery=True)).T["AP"].sort_index()
        for each in (run, data.run)
    )
    return float((ours - first).mean()), float(ttest_rel(ours, first, alternative="greater").pvalue)


@pytest.mark.parametrize("model", WITH_ENTITIES)
def test_entities_that_carry_signal_beat_the_first_stage(model):
    difference, p = gain(crossed(model))
    assert difference > 0.02
    assert p < 0.01


@pytest.mark.parametrize("model", TRAINED)
@pytest.mark.parametrize(("entities", "labels"), [("chance", "true"), ("signal", "permuted")])
def test_nothing_is_gained_from_chance(model, entities, labels):
    difference, p = gain(crossed(model, entities, labels))
    assert p > 0.01
    assert difference < 0.02


@pytest.mark.filterwarnings("ignore:.* topics have relevant documents, but no reachable one")
@pytest.mark.parametrize("model", WITH_ENTITIES)
def test_candidates_from_labels_show_a_gap_with_a_trained_and_with_a_random_ranker(model):
    data = collection()
    for entities in ("closed, trained", "closed, random"):
        scored = stage(model, entities, epochs=2).cross_validated(data.run, data.qrels["true"])
        options = {"links": data.pool, "entities": data.entities[entities], "inference": Inference(n_resamples=100)}
        evaluation = evaluate_settings({"it": scored}, data.qrels["true"], ["AP"], **options)
        values = evaluation.values.pivot(index="qid", columns="setting", values="value").dropna()
        assert ttest_rel(values["conditional"], values["open-world"], alternative="greater").pvalue < 0.01, entities


@pytest.mark.parametrize("model", TRAINED)
def test_labels_of_a_fold_do_not_change_its_predictions(model):
    data = collection()
    fold = {qid for qid in data.run["qid"].unique() if fold_number(qid, 5, 0) == 1}
    qrels = data.qrels["true"]
    turned = qrels.assign(label=np.where(qrels["qid"].isin(fold), 1 - qrels["label"], qrels["label"]))
    after, before = stage(model).cross_validated(data.run, turned), crossed(model)
    assert_frame_equal(after[after["qid"].isin(fold)], before[before["qid"].isin(fold)], check_exact=True)
    # The labels of the other folds decide.
    assert not after["score"].equals(before["score"])


VARIANTS = [*((model, "compact") for model in MODELS), *((model, "reference") for model in REFERENCE)]


@pytest.mark.parametrize(("model", "variant"), VARIANTS)
def test_neither_order_nor_batches_nor_files_change_anything(model, variant, tmp_path):
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:8])]
    qrels = data.qrels["true"]
    fitted = stage(model, variant=variant, epochs=2).fit(some, qrels)
    expected = fitted(some)
    assert not np.allclose(expected["score"], expected.groupby("qid")["score"].transform("mean"))
    parts = pd.concat([fitted(each) for _, each in some.groupby("qid")], ignore_index=True)
    assert_frame_equal(parts, expected, check_exact=True)
    again = stage(model, pool=data.tags.sample(frac=1, random_state=1), variant=variant, epochs=2)
    shuffled = some.sample(frac=1, random_state=2)
    result = again.fit(shuffled, qrels.sample(frac=1, random_state=3))(shuffled)
    assert_frame_equal(result.sort_values(["qid", "rank"], ignore_index=True), expected, check_exact=True)
    fitted.save(tmp_path)
    inputs = data.pool, data.entities["signal"]
    loaded = NeuralReranker.load(tmp_path, *inputs, vectors=data.vectors, encoder=encoder)
    assert loaded == fitted
    assert loaded.n_parameters == fitted.n_parameters > 0
    assert_frame_equal(loaded(some), fitted(some), check_exact=True)


@pytest.mark.parametrize("model", [name if name == "dreq" else at_night(name) for name in REFERENCE])
def test_reference_models_learn_from_other_folds_only(model):
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:15])]
    fold = {qid for qid in some["qid"].unique() if fold_number(qid, 5, 0) == 1}
    qrels = data.qrels["true"]
    turned = qrels.assign(label=np.where(qrels["qid"].isin(fold), 1 - qrels["label"], qrels["label"]))
    learner = stage(model, variant="reference", epochs=2)
    before, after = (learner.cross_validated(some, labels) for labels in (qrels, turned))
    assert_frame_equal(after[after["qid"].isin(fold)], before[before["qid"].isin(fold)], check_exact=True)
    assert not after["score"].equals(before["score"])
    # The published pipelines drop documents without entities.
    pairs = [frame[["qid", "docno"]].sort_values(["qid", "docno"], ignore_index=True) for frame in (before, some)]
    assert_frame_equal(*pairs)


def test_validation_topics_choose_the_weight_of_the_first_stage():
    data = collection()
    qids = data.run["qid"].unique()
    training, validation = (data.run[data.run["qid"].isin(each)] for each in (qids[:20], qids[20:]))
    # A first stage that ranks by label needs no model, and one that ranks by chance has no weight.
    relevant = validation.merge(data.qrels["true"], how="left", on=["qid", "docno"])["label"].fillna(0)
    weights = {}
    for name, score in (("labels", relevant), ("first", validation["score"]), ("inverted", -relevant)):
        learner = stage("dreq", variant="reference", epochs=4)
        learner.fit(training, data.qrels["true"], validation.assign(score=score.to_numpy()), data.qrels["true"])
        weights[name] = float(learner._learned["interpolation"][0])
    assert weights["labels"] > weights["inverted"] == 0
    assert stage("dreq", variant="reference", epochs=1).fit(training, data.qrels["true"])._learned["interpolation"] == 0


@pytest.mark.parametrize(
    ("model", "switches"),
    [
        ("qder", {"interactions": ("subtract", "multiply")}),
        ("qder", {"bilinear": False}),
        ("qder", {"entities": False}),
        ("dreq", {"weight": "reciprocal"}),
    ],
)
def test_switches_of_reference_models_change_scores_and_are_saved(model, switches, tmp_path):
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:5])]
    learners = [stage(model, variant="reference", switches=each, epochs=1) for each in (switches, None)]
    scores = [learner.fit(some, data.qrels["true"])(some)["score"].sort_index().to_numpy() for learner in learners]
    assert not np.allclose(*scores)
    learners[0].save(tmp_path)
    inputs = data.pool, data.entities["signal"]
    loaded = NeuralReranker.load(tmp_path, *inputs, vectors=data.vectors, encoder=encoder)
    assert_frame_equal(loaded(some), learners[0](some), check_exact=True)


def test_options_of_the_other_variant_are_refused():
    for options, message in (
        ({"switches": {"bilinear": False}}, "switches: an option of the reference variant"),
        ({"layers": 1}, "layers: an option of the reference variant"),
        ({"types": {"Q1": ["city"]}}, "types: an option of the reference variant"),
        ({"variant": "reference", "entity_weight": "score"}, "'score': an option of the compact variant"),
        ({"variant": "reference", "model": "esdrank"}, "model='esdrank': wanted one of"),
        (
            {"variant": "reference", "model": "qder", "switches": {"attention": 1}},
            "switches: found 'attention'; wanted",
        ),
        ({"variant": "reference", "model": "qder", "switches": {"interactions": "add"}}, "found 'add'; wanted some of"),
        ({"variant": "reference", "model": "dreq", "switches": {"weight": "rank"}}, "wanted one of 'score'"),
        ({"variant": "reference", "model": "qder", "layers": 1}, "a function has no layers to train"),
        ({"variant": "published"}, "variant='published': wanted one of 'compact'"),
    ):
        choices = {
            name: options.pop(name) for name in ("variant", "layers", "switches", "entity_weight") if name in options
        }
        inputs = collection().pool, collection().entities["signal"]
        with pytest.raises(ParameterError, match=message):
            NeuralReranker(*inputs, encoder=encoder, architecture=Architecture(**choices), **options)
    with pytest.raises(ParameterError, match=r"architecture: wanted settings as Architecture\(...\), found str"):
        NeuralReranker(*inputs, architecture="reference")


@pytest.mark.parametrize("model", ["dreq", *map(at_night, ("qder", "eva"))])
def test_layers_of_the_encoder_are_trained(model, tmp_path):
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:2])].groupby("qid").head(6)
    architecture = Architecture(variant="reference", layers=1)
    options = {"model": model, "architecture": architecture, "training": Training(epochs=1, rate=1e-3)}
    inputs = data.pool, data.entities["signal"]
    learner = NeuralReranker(*inputs, vectors=data.vectors, **options).fit(some, data.qrels["true"])
    layer = learner._encoded.encode.layers(1)[0]
    before = {name: values.detach().numpy() for name, values in layer.named_parameters()}
    names = [name for name in learner._learned if "layer0." in name]
    changed = [name for name in names if not np.array_equal(learner._learned[name], before[name.split("layer0.")[1]])]
    assert len(changed) > len(before) / 2
    learner.save(tmp_path)
    loaded = NeuralReranker.load(tmp_path, *inputs, vectors=data.vectors)
    assert_frame_equal(loaded(some), learner(some), check_exact=True)


def test_the_best_epoch_on_validation_topics_counts():
    data = collection()
    qids = data.run["qid"].unique()
    parts = [data.run[data.run["qid"].isin(some)] for some in (qids[:20], qids[20:])]
    learner = stage("duet", epochs=12, patience=np.inf)
    stopped = learner.fit(parts[0], data.qrels["permuted"], parts[1], data.qrels["true"])(parts[1])
    last = learner.fit(parts[0], data.qrels["permuted"])(parts[1])
    ndcg = [pt.Evaluate(each, data.qrels["true"], ["ndcg_cut_20"])["ndcg_cut_20"] for each in (stopped, last, parts[1])]
    assert ndcg[0] >= max(ndcg[1:])
    assert ndcg[0] > ndcg[1]


@pytest.mark.parametrize(
    ("model", "n"),
    [("knrm", 12), ("edrm-knrm", 45), ("edrm-convknrm", 1 + 176 + 64 * 32 * 7), ("duet", 48), ("esdrank", 9)],
)
def test_models_have_the_parameters_of_their_papers(model, n):
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:3])]
    assert stage(model, epochs=1).fit(some, data.qrels["true"]).n_parameters == n


# Input


def test_bad_input_is_refused(tmp_path):
    data = collection()
    qrels, run = data.qrels["true"], data.run
    learner = stage("knrm", epochs=1)
    entities = data.entities["signal"]
    for message, call in {
        "not fitted; call fit": lambda: learner(run),
        "nothing to save": lambda: learner.save(tmp_path),
        r"document 'q001-d0.*' has no text in column 'text', found": lambda: learner.fit(run.assign(text=None), qrels),
        "no column 'text'; add the texts of documents,": lambda: learner.fit(run.drop(columns="text"), qrels),
        "none of 40 topics has relevant and non-relevant": lambda: learner.fit(run, qrels.assign(label=1)),
        "fold 0 of 2: none of": lambda: learner.cross_validated(run, qrels.assign(label=0), folds=2),
        "wanted finite vectors of shape": lambda: NeuralReranker(data.pool, entities, encoder=lambda _: [1.0]).fit(
            run, qrels
        ),
        "has the score -1, wanted at least 0 as a weight; use entity_weight='rank'": lambda: NeuralReranker(
            data.pool, entities.assign(score=-1.0), encoder=encoder, architecture=Architecture(entity_weight="score")
        ).fit(run, qrels),
    }.items():
        with pytest.raises(InputError, match=message):
            call()
    with pytest.warns(DegenerateWarning, match="39 topics are not in qrels and are not used"):
        learner.fit(run, qrels[qrels["qid"] == "q001"])
    with pytest.raises(ParameterError, match=r"wanted one of 'knrm', 'edrm-knrm'.* Did you mean duet?"):
        stage("duett")
    assert list(learner(run.head(0)).columns) == [*run.columns, "judgments"]


def test_entities_without_a_vector_match_by_id():
    data = collection()
    some = data.run[data.run["qid"].isin(data.run["qid"].unique()[:10])]
    options = {"vectors": {"x": [1.0]}, "encoder": encoder, "training": Training(epochs=20)}
    learner = NeuralReranker(data.pool, data.entities["signal"], **options)
    with pytest.warns(DegenerateWarning, match="entities have no vector and match by id only"):
        result = learner.fit(some, data.qrels["true"])(some)
    qrels = data.qrels["true"].merge(some[["qid"]].drop_duplicates())
    measured = [pt.Evaluate(each, qrels, [AP])["AP"] for each in (result, some)]
    assert measured[0] > measured[1] + 0.1


def test_files_are_checked(tmp_path):
    data = collection()
    some = data.run[data.run["qid"].isin(["q001", "q002"])]
    learner = stage("dreq", epochs=1).fit(some, data.qrels["true"])
    learner.save(tmp_path)
    inputs = data.pool, data.entities["signal"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors", "pt_meta.json"]
    for options, message in (
        ({"encoder": lambda text: encoder(text)[:, ::-1]}, "encoder= is not that of the training"),
        ({"encoder": lambda text: encoder(text)[1:]}, "encoder= is not that of the training"),
        ({"encoder": lambda text: encoder(text)[::-1]}, "encoder= is not that of the training"),
        ({"encoder": lambda text: encoder(text)[:512]}, "encoder= is not that of the training"),
        ({"encoder": lambda text: encoder(text) * 1.0005}, "encoder= is not that of the training"),
        ({"vectors": {each: vector[::-1] for each, vector in data.vectors.items()}}, "has another one; load the stage"),
        ({"vectors": {"Q1": np.ones(SIZE)}}, "none of the entities of the training has one"),
        ({"vectors": None}, "trained with vectors=; load it with vectors= as well"),
        ({"names": {"Q1": "a name"}}, "trained without names="),
    ):
        with pytest.raises(InputError, match=message):
            NeuralReranker.load(tmp_path, *inputs, **({"encoder": encoder, "vectors": data.vectors} | options))
    # The rounding of another machine.
    NeuralReranker.load(tmp_path, *inputs, encoder=lambda text: encoder(text) * (1 + 1e-6), vectors=data.vectors)
    # More entities, of other documents, are no other table.
    more = {**data.vectors, "Q1": np.ones(SIZE)}
    assert_frame_equal(NeuralReranker.load(tmp_path, *inputs, encoder=encoder, vectors=more)(some), learner(some))
    text = (tmp_path / "model.json").read_text()
    for changed in ("[]", text.replace('"format": 5', '"format": 4'), text.replace('"cutoff": 20', '"cutoff": 0'), "{"):
        (tmp_path / "model.json").write_text(changed)
        with pytest.raises(FileError, match=str(tmp_path)):
            NeuralReranker.load(tmp_path, *inputs)
    (tmp_path / "model.json").write_text(text.replace('"epochs": 1', '"epochs": 0'))
    with pytest.raises(FileError, match="epochs=0: wanted a whole number of at least 1"):
        NeuralReranker.load(tmp_path, *inputs)
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(ParameterError, match="training: is a parameter of the saved model; leave it out"):
        NeuralReranker.load(tmp_path, *inputs, training=Training(epochs=2))
    (tmp_path / "model.safetensors").write_bytes(pickled := b"\x80\x04 a pickle")
    with pytest.raises(FileError, match="is not the model that was saved with these parameters"):
        NeuralReranker.load(tmp_path, *inputs)
    digest = hashlib.blake2b(pickled, digest_size=8).hexdigest()
    (tmp_path / "model.json").write_text(text.replace(json.loads(text)["digest"], digest))
    with pytest.raises(FileError, match="is not a saved model"):
        NeuralReranker.load(tmp_path, *inputs)


def test_settings_of_training_have_the_defaults_of_the_model_and_are_saved(tmp_path):
    data = collection()
    some = data.run[data.run["qid"].isin(["q001", "q002"])]
    assert stage("knrm") == stage("knrm", epochs=30, patience=5) != stage("knrm", patience=6)
    learner = stage("knrm", epochs=1, patience=np.inf, rate=0.02, seed=3)
    assert repr(learner.training) == "Training(epochs=1, patience=inf, batch_size=8, rate=0.02, seed=3, rel=1)"
    assert repr(learner.training) in repr(learner)
    learner.fit(some, data.qrels["true"]).save(tmp_path)
    options = {"vectors": data.vectors, "encoder": encoder}
    loaded = NeuralReranker.load(tmp_path, data.pool, data.entities["signal"], **options)
    assert loaded == learner
    assert loaded.training == learner.training
    assert_frame_equal(loaded(some), learner(some), check_exact=True)


def test_labels_below_the_lowest_relevant_one_are_non_relevant():
    data = collection()
    some = data.run[data.run["qid"].isin(["q001", "q002"])]
    graded = data.qrels["true"].assign(label=lambda frame: frame["label"] * (1 + (frame["qid"] == "q002")))
    learner = stage("knrm", rel=2)
    labels = dict(zip(["q001", "q002"], learner._labels(learner._compute_features(some), graded), strict=True))
    assert (labels["q001"].max(), labels["q002"].max()) == (0, 2)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("epochs", 0), ("patience", 0), ("patience", 1.5), ("batch_size", 0), ("rate", 0), ("seed", -1), ("rel", 0)],
)
def test_settings_of_training_out_of_range_are_named(setting, value):
    with pytest.raises(ParameterError, match=f"{setting}={value}: wanted"):
        Training(**{setting: value})


def test_training_is_refused_as_another_object():
    with pytest.raises(ParameterError, match=r"training: wanted settings as Training\(...\), found dict"):
        NeuralReranker(collection().pool, collection().entities["signal"], training={"epochs": 1})


# Oracles


def unit(draw, *shape):
    vectors = draw.normal(size=shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def drawn(seed, n=5, n_words=6, n_entities=4, d=8, v=7, e=3):
    """A batch with padding, a document without words and one without entities."""
    draw = np.random.default_rng(seed)
    has_word = (np.arange(n_words) < draw.integers(1, n_words + 1, n)[:, None]).astype(np.float32)
    weight = (np.arange(n_entities) < draw.integers(1, n_entities + 1, n)[:, None]) * draw.random((n, n_entities))
    weight[0] = has_word[1] = 0
    vectors, embeddings = unit(draw, n_entities * n, v), unit(draw, n_entities * n, d)
    result = np.where(weight > 0, draw.permutation(n_entities * n).reshape(n, n_entities), -1)
    query = np.array([*result[result >= 0][: e - 1], n_entities * n - 1])[:e]
    real = (result >= 0)[..., None]
    return Batch(
        score=draw.normal(size=n).astype(np.float32),
        document=np.arange(n),
        words=unit(draw, 3, d),
        text=unit(draw, d),
        document_words=unit(draw, n, n_words, d) * has_word[..., None],
        document_text=unit(draw, n, d),
        has_word=has_word,
        entities=embeddings[query],
        vectors=vectors[query],
        weight=(1 / np.log2(np.arange(len(query)) + 2)).astype(np.float32),
        document_entities=np.where(real, embeddings[result], 0).astype(np.float32),
        document_vectors=np.where(real, vectors[result], 0).astype(np.float32),
        link_weight=weight.astype(np.float32),
        same=(result[:, None, :] == query[:, None]).astype(np.float32),
    )


def kernels(query, words, weight, same=None):
    """Kernel pooling by loops: (q, 11)."""
    made = np.zeros((len(query), 11))
    cosines = query.astype(float) @ words.astype(float).T
    cosines = cosines if same is None else np.where(same > 0, 1.0, cosines)
    for i, row in enumerate(cosines):
        for k, mean in enumerate([1, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9]):
            width = 0.001 if k == 0 else 0.1
            total = weight @ np.exp(-((row - mean) ** 2) / (2 * width**2))
            made[i, k] = 0.1 * np.log(max(total, 1e-10))
    return made


def softmax(values):
    values = np.exp(values - np.max(values))
    return values / values.sum()


def matched(b, n):
    return {
        "ww": kernels(b.words, b.document_words[n], b.has_word[n]),
        "we": kernels(b.words, b.document_entities[n], b.link_weight[n]),
        "ew": kernels(b.entities, b.document_words[n], b.has_word[n]),
        "ee": kernels(b.vectors, b.document_vectors[n], b.link_weight[n], b.same[n]),
    }


def shares(b):
    results = [np.mean([b.same[n, e].any() for n in range(len(b.score))]) for e in range(len(b.weight))]
    return np.stack([b.weight, b.entities @ b.text, results], axis=1)


def by_knrm(b, p, n, channels):
    features = np.concatenate([matched(b, n)[name].sum(axis=0) for name in channels])
    return features @ p["kernels"]


def by_convolution(b, p, n):
    d = b.words.shape[1]
    narrow = (np.random.default_rng(d).normal(size=(d, 64)) / 8).astype(np.float32)

    def grams(words, entities):
        padded = np.concatenate([words @ narrow, np.zeros((2, 64))])
        made = [
            sum(padded[at : at + len(words)] @ p[f"gram{size}"][:, :, at].T for at in range(size)) for size in (1, 2, 3)
        ]
        made.append(entities @ narrow @ p["entity"])
        return [rows / np.sqrt((rows**2).sum(axis=1, keepdims=True) + 1e-12) for rows in made]

    query, document = grams(b.words, b.entities), grams(b.document_words[n], b.document_entities[n])
    weight = [b.has_word[n]] * 3 + [b.link_weight[n]]
    results = [
        kernels(left, right, weight[j], b.same[n] if i == j == 3 else None).sum(axis=0)
        for i, left in enumerate(query)
        for j, right in enumerate(document)
    ]
    return np.concatenate(results) @ p["kernels"]


def by_duet(b, p, n):
    result, attention = matched(b, n), softmax(shares(b) @ p["attention"])
    word = np.concatenate([result["ww"].sum(axis=0), result["we"].sum(axis=0)]) @ p["word"]
    return word + sum(
        attention[e] * (np.concatenate([result["ew"][e], result["ee"][e]]) @ p["entity"]) for e in range(len(attention))
    )


def esdrank(b, p):
    objects = softmax(np.concatenate([[0], shares(b) @ p["objects"]]))
    evidence = np.zeros((len(b.score), len(objects)))
    for n, row in enumerate(evidence):
        real = np.flatnonzero(b.link_weight[n])
        row[0] = p["pairs"][0] * b.score[n]
        for e in range(len(b.weight)):
            link = (b.same[n, e] * b.link_weight[n]).sum()
            cosines = [1 if b.same[n, e, m] else b.vectors[e] @ b.document_vectors[n, m] for m in real] or [0]
            text = b.document_text[n] @ b.entities[e]
            features = [b.score[n], link, link / max(len(real), 1), text, max(0, *cosines), np.mean(cosines)]
            row[e + 1] = features @ p["pairs"]
    choice = np.stack([softmax(column) for column in evidence.T], axis=1)
    return np.log(choice @ objects)


def by_views(b, p, n):
    centroid = sum(weight * vector for weight, vector in zip(b.weight, b.vectors, strict=True))
    query = np.concatenate([b.text, centroid / np.linalg.norm(centroid)]) @ p["query"]
    results = []
    clusters = models.cluster_entities(b.document_vectors[n : n + 1], b.link_weight[n : n + 1])
    for view, used in zip(*(part[0] for part in clusters), strict=True):
        made = np.concatenate([b.document_text[n], view]) @ p["view"]
        if used:
            results.append(10 * (query @ made) / np.linalg.norm(query) / np.linalg.norm(made))
    return p["gate"][0] * max(results)


def by_dreq(b, p, n):
    hybrid = np.zeros(b.vectors.shape[1])
    for e, weight in enumerate(b.weight):
        for m in np.flatnonzero(b.same[n, e]):
            hybrid += b.link_weight[n, m] * weight * b.vectors[e]
    d, q = b.document_text[n] @ p["text"] + hybrid @ p["entities"], b.text @ p["text"]
    return p["bias"][0] + np.concatenate([q, d, q + d, q - d, q * d]) @ p["layer"]


def by_qder(b, p, n):
    def attended(query, documents, weight, same=0.0):
        share = np.exp(10 * np.where(np.asarray(same) > 0, 1, query @ documents.T)) * weight
        return share @ documents / np.maximum(share.sum(axis=1, keepdims=True), 1e-30)

    share = b.weight / b.weight.sum()
    tokens = attended(b.words, b.document_words[n], b.has_word[n]).mean(axis=0)
    entities = share @ attended(b.vectors, b.document_vectors[n], b.link_weight[n], b.same[n])
    q, d = np.concatenate([b.words.mean(axis=0), share @ b.vectors]), np.concatenate([tokens, entities])
    a, m = (q + d) * np.sqrt(len(q)), q * d * len(q)
    return p["bias"][0] + a @ p["added"] + m @ p["multiplied"] + (a @ p["left"]) @ (m @ p["right"])


ORACLES = {
    "knrm": lambda b, p, n: by_knrm(b, p, n, ["ww"]),
    "edrm-knrm": lambda b, p, n: by_knrm(b, p, n, ["ww", "we", "ew", "ee"]),
    "edrm-convknrm": by_convolution,
    "duet": by_duet,
    "eva": by_views,
    "dreq": by_dreq,
    "qder": by_qder,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_loops(model, seed):
    batch, network, draw = drawn(seed), MODELS[model], np.random.default_rng(seed)
    x = network.features(batch)
    p = {name: draw.normal(size=values.shape) for name, values in network.parameters(x, draw).items()}
    scales = {f"mean.{name}": np.zeros(x[name].shape[-1], np.float32) for name in network.standardised_features}
    scales |= {f"scale.{name}": np.ones(x[name].shape[-1], np.float32) for name in network.standardised_features}
    result = predict_scores(network, {**scales, **{name: values.astype(np.float32) for name, values in p.items()}}, x)
    if model == "esdrank":
        expected = esdrank(batch, p)
    else:
        expected = batch.score * p["first"] + np.array([ORACLES[model](batch, p, n) for n in range(len(batch.score))])
    assert result == pytest.approx(np.asarray(expected), rel=2e-4, abs=2e-3)


def test_losses_equal_loops():
    torch = pytest.importorskip("torch")
    score, label = np.array([0.3, -0.2, 1.4, 0.0]), np.array([1, 0, 0, 2])
    tensors = torch.from_numpy(score), torch.from_numpy(label)
    pairs = [(i, j) for i in range(4) for j in range(4) if label[i] > label[j]]
    hinge = np.mean([max(0, 1 - score[i] + score[j]) for i, j in pairs])
    assert float(models.hinge(*tensors)) == pytest.approx(hinge)
    entropy = [np.log1p(np.exp(-s if y > 0 else s)) for s, y in zip(score, label, strict=True)]
    balanced = (np.mean([entropy[0], entropy[3]]) + np.mean([entropy[1], entropy[2]])) / 2
    assert float(models.cross_entropy(*tensors)) == pytest.approx(balanced)
    # Latent ListMLE: a relevant document is chosen among itself and all documents with lower labels.
    x = {"objects": torch.zeros((2, 3)), "pairs": torch.randn((4, 2, 6), generator=torch.Generator().manual_seed(0))}
    p = {"objects": torch.zeros(3), "pairs": torch.ones(6)}
    strength = np.exp(x["pairs"].sum(dim=2).numpy())
    total = 0.0
    for one in (0, 3):
        rivals = [other for other in range(4) if label[other] < label[one] or other == one]
        total -= np.log(np.mean([strength[one, o] / strength[rivals, o].sum() for o in range(2)])) / 2
    assert float(MODELS["esdrank"].loss(p, [(x, tensors[1])])) == pytest.approx(total, rel=1e-5)


def test_other_topics_documents_are_negatives_of_the_contrast():
    torch = pytest.importorskip("torch")
    network = MODELS["eva"]
    topics = [network.features(drawn(seed)) for seed in (0, 1)]
    p = {name: torch.tensor(values) for name, values in network.parameters(topics[0], np.random.default_rng(0)).items()}
    p = {name: values.float() for name, values in p.items()} | {"gate": torch.ones(1)}
    label, losses = torch.tensor([1, 0, 0, 1, 0]), []
    x = [{name: torch.from_numpy(np.ascontiguousarray(v)) for name, v in each.items()} for each in topics]
    for shift in (0, 3, 97):
        # All, some, or none of the documents of the second topic are those of the first.
        x[1]["document"] = x[1]["document"] + shift
        losses.append(float(network.loss(p, [(each, label) for each in x])))
    assert losses[0] < losses[1] < losses[2]
    score = network.forward(p, x[0])
    alone = float(network.loss(p, [(x[0], label)]))
    rivals = torch.exp(score[label == 0]).sum()
    expected = [-torch.log(torch.exp(score[i]) / (torch.exp(score[i]) + rivals)) for i in (0, 3)]
    assert alone == pytest.approx(float(sum(expected) / 2), rel=1e-5)
