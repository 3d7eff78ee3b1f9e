"""Training of neural models, and document rerankers."""

from __future__ import annotations

import abc
import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vbterrier.entities import fingerprints
from vbterrier.entities.cross_validation import Teaching, is_trained
from vbterrier.entities.learners import NDCG_CUTOFF, Learner, Prepared, TrainingTopic
from vbterrier.entities.neural.batches import ENTITY_WEIGHTS, Batches, Texts, document_texts
from vbterrier.entities.neural.checkpoints import TokenVectors, is_of_sentences, single_threaded
from vbterrier.entities.neural.models import MODELS
from vbterrier.entities.neural.raw import RawBatches, RawTexts
from vbterrier.entities.neural.reference import REFERENCE
from vbterrier.entities.pool import lookup_labels
from vbterrier.entities.provenance import require_independent
from vbterrier.entities.rankers.base import Topics
from vbterrier.entities.rerank.base import by_id, require_finite
from vbterrier.entities.stage import EntityStage, OnDocuments
from vbterrier.errors import (
    FileError,
    InputError,
    ParameterError,
    choice,
    module_of_extra,
    number,
    settings_parameter,
    whole,
)
from vbterrier.frames.contracts import LabelFrame
from vbterrier.frames.ranking import Run, places
from vbterrier.kernels.rankings import discounts
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.neural.models import Arrays, NeuralModel


# Weights of the first stage in an interpolation.
INTERPOLATION_WEIGHTS = tuple(at / 20 for at in range(21))
VARIANTS = ("compact", "reference")


@dataclass(frozen=True)
class Training:
    """Settings of the training of a neural model: ``training=``; ``None`` stands for the default of the model.

    Parameters
    ----------
    epochs
        The number of passes over the training topics, at least 1.
    patience
        The number of epochs without a gain in nDCG@20 on validation topics, if there are any, after which training
        stops, at least 1; ``inf`` never stops, and then ``cross_validated`` has no validation topics.
    batch_size
        The number of topics of a step, at least 1.
    rate
        The learning rate of AdamW, above 0.
    seed
        Seed of initial parameters, order of topics, samples and folds, at least 0.
    rel
        The lowest relevant label, at least 1; unjudged documents of judged topics are non-relevant.

    Raises
    ------
    ParameterError
        A value outside its range.

    Examples
    --------
    >>> Training(epochs=50, patience=float("inf"), seed=1).epochs
    50
    """

    epochs: int | None = None
    patience: float | None = None
    batch_size: int | None = None
    rate: float | None = None
    seed: int | None = None
    rel: int | None = None

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("patience", 1), ("batch_size", 1), ("seed", 0), ("rel", 1)):
            value = getattr(self, name)
            if value is not None and not (name == "patience" and value == math.inf):
                whole(name, value, low=low)
        if self.rate is not None:
            number("rate", self.rate, low=0, open_low=True)

    def with_defaults(self, defaults: Training) -> Training:
        """Return these settings, with those of ``defaults`` for ``None``."""
        return replace(defaults, **{name: value for name, value in asdict(self).items() if value is not None})


@dataclass(frozen=True)
class Architecture:
    """Settings of the function that a :class:`NeuralReranker` computes: ``architecture=``.

    Parameters
    ----------
    variant
        ``"compact"``: small models with frozen features, which learn from a few hundred queries and have the
        first-stage score as an input. ``"reference"``: the functions that the published code computes
        (:mod:`vbterrier.entities.neural.architectures`; EsdRank has no public code), without the first stage, which
        enters by ``w first + (1 - w) model``, both standardised in the topic; validation topics choose w, which is 0
        without any.
    layers
        The number of last layers of the encoder that are trained, by ``qder``, ``dreq`` and ``eva`` in the reference
        variant; 0 keeps it frozen.
    switches
        Options of a reference model. ``qder``: ``interactions`` (some of subtract, add, multiply; default add and
        multiply), ``bilinear``, ``entities``, ``first_stage`` (True or False, default True); ``dreq``: ``weight`` of
        the entities of a document, ``"score"`` (default), ``"uniform"`` or ``"reciprocal"`` of the rank.
    entity_weight
        The weight of a query entity in compact models that weight them: ``"rank"``, ``1/log2(rank + 1)`` with ranks
        from 1, or ``"score"``, its score in the entity run, at least 0, as a share of the largest.

    Raises
    ------
    ParameterError
        A value that does not exist; an option of the other variant.

    Examples
    --------
    >>> Architecture(variant="reference", switches={"bilinear": False}).layers
    0
    """

    variant: str = "compact"
    layers: int = 0
    switches: Mapping[str, Any] | None = None
    entity_weight: str = "rank"

    def __post_init__(self) -> None:
        choice("variant", self.variant, VARIANTS)
        choice("entity_weight", self.entity_weight, ENTITY_WEIGHTS)
        whole("layers", self.layers, low=0)
        if self.variant == "compact":
            _require_reference(layers=self.layers or None, switches=self.switches)
        elif self.entity_weight != "rank":
            raise ParameterError(
                f"entity_weight={self.entity_weight!r}: an option of the compact variant; leave it out, or "
                "variant='compact'"
            )

    # The default hash has none for mappings.
    def __hash__(self) -> int:
        return hash((self.variant, self.layers, self.entity_weight))


def _require_reference(**options: Any) -> None:
    """Refuse options of the reference variant that are not None."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(
                f"{name}: an option of the reference variant; leave it out, or "
                "architecture=Architecture(variant='reference')"
            )


def ndcg(score: Any, label: Ints, cutoff: int = NDCG_CUTOFF) -> float:
    """Return nDCG of one topic whose documents are in trec_eval's order for equal scores."""
    gain, weight = np.maximum(label, 0).astype(np.float64), discounts(min(cutoff, len(label)))
    order = np.argsort(-np.asarray(score, dtype=np.float32), kind="stable")[: len(weight)]
    return float(gain[order] @ weight / (np.sort(gain)[::-1][: len(weight)] @ weight))


def train(
    model: NeuralModel,
    training: Sequence[TrainingTopic],
    validation: Sequence[TrainingTopic],
    *,
    epochs: int,
    patience: int | None,
    batch_size: int,
    rate: float | None,
    seed: int,
) -> Arrays:
    """Fit a model with AdamW and return its parameters, those of the first best epoch if there are validation topics.

    The parameters before training count as epoch 0. Topics are sorted by id and shuffled by the seed.
    """
    torch = module_of_extra("torch", "neural")
    in_order = (sorted(topics, key=lambda topic: topic.qid) for topics in (training, validation))
    # Topics with one label do not contribute.
    used, checked = ([topic for topic in topics if len(set(topic.label.tolist())) > 1] for topics in in_order)
    if not used:
        raise InputError(
            f"none of {len(training)} topics has relevant and non-relevant items among its candidates; use deeper "
            "rankings, or more judgments"
        )
    # The parameters of some models do not show the numbers of dimensions of their input.
    tables, keys = model.tables([topic.x for topic in used])
    state = {name: used[0].x[name] for name in ("sizes",) if name in used[0].x} | _scales(model, used) | keys
    made = model.parameters(used[0].x, stream(seed, "parameters")) | tables
    with single_threaded():
        p = {name: torch.tensor(values, dtype=torch.float32, requires_grad=True) for name, values in made.items()}
        ready = [(_tensors(model, state, topic.x), torch.from_numpy(topic.label)) for topic in used]
        to_check = [(_tensors(model, state, topic.x), topic.label) for topic in checked]
        optimiser = torch.optim.AdamW(p.values(), lr=rate or model.rate, weight_decay=model.decay)
        best, kept, since = -np.inf, {}, 0
        for epoch in range(epochs + 1):
            if epoch:
                order = stream(seed, "epoch", str(epoch)).permutation(len(ready))
                for step in np.split(order, range(batch_size, len(order), batch_size)):
                    optimiser.zero_grad()
                    model.loss(p, [ready[at] for at in step]).backward()
                    optimiser.step()
            with module_of_extra("torch", "neural").no_grad():
                ndcgs = [ndcg(model.forward(p, x).numpy(), label) for x, label in to_check]
            score = float(np.mean(ndcgs)) if ndcgs else float(epoch)
            if score > best:
                best, since = score, 0
                kept = {name: values.detach().numpy().copy() for name, values in p.items()}
            else:
                since += 1
                if patience is not None and since >= patience:
                    break
    if not all(np.isfinite(values).all() for values in kept.values()):
        raise InputError("training diverged: parameters are not finite; lower rate=")
    learned = {**state, **kept}
    if model.interpolated:
        learned["interpolation"] = np.array([_interpolation(model, learned, checked)], dtype=np.float32)
    return learned


def _interpolation(model: NeuralModel, learned: Arrays, validation: Sequence[TrainingTopic]) -> float:
    """Return the weight of the first stage with the highest mean nDCG of validation topics, 0 without any.

    Of equal weights, the lowest: the model alone before its mixture.
    """
    scores = [(topic.x["score"], predict_scores(model, learned, topic.x), topic.label) for topic in validation]
    means = [
        np.mean([ndcg(interpolate_scores(weight, *pair), label) for *pair, label in scores] or [0])
        for weight in INTERPOLATION_WEIGHTS
    ]
    return INTERPOLATION_WEIGHTS[int(np.argmax(means))]


def interpolate_scores(weight: float, first: Floats, score: Floats) -> Floats:
    """Return ``weight first + (1 - weight) score``, both standardised in the topic, shape (n,)."""
    centred = score - score.mean()
    deviation = float(score.std())
    # The rounding error of equal scores.
    standard = centred / deviation if deviation > 1e-9 * max(np.abs(score).max(initial=0), 1) else np.zeros(len(score))
    made: Floats = weight * first + (1 - weight) * standard
    return made


def _scales(model: NeuralModel, topics: Sequence[TrainingTopic]) -> Arrays:
    """Return means and standard deviations of the features that a model standardises; constant features have 1."""
    state = {}
    for name in model.standardised_features:
        rows = np.concatenate([topic.x[name].reshape(-1, topic.x[name].shape[-1]) for topic in topics])
        if not len(rows):
            rows = np.zeros((1, rows.shape[1]))
        scale = rows.std(axis=0, dtype=np.float64)
        state[f"mean.{name}"] = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        # The rounding error of constant features.
        state[f"scale.{name}"] = np.where(scale > 1e-6, scale, 1).astype(np.float32)  # noqa: PLR2004
    return state


def _tensors(model: NeuralModel, state: Arrays, x: Arrays) -> Arrays:
    torch = module_of_extra("torch", "neural")
    scaled = {name: (x[name] - state[f"mean.{name}"]) / state[f"scale.{name}"] for name in model.standardised_features}
    return {name: torch.tensor(values) for name, values in {**x, **scaled, **model.table_rows(state, x)}.items()}


def predict_scores(model: NeuralModel, state: Arrays, x: Arrays) -> Floats:
    """Return the scores of one topic, shape (n,)."""
    torch = module_of_extra("torch", "neural")
    with torch.no_grad(), single_threaded():
        p = {name: torch.from_numpy(values) for name, values in state.items()}
        score = np.asarray(model.forward(p, _tensors(model, state, x)).numpy(), dtype=np.float64)
    return (
        interpolate_scores(float(state["interpolation"][0]), x["score"], score) if "interpolation" in state else score
    )


# Beginnings of the names of arrays of a learned state that are no parameters.
_NOT_TRAINED = ("mean.", "scale.", "sizes", "keys.", "interpolation")


class NeuralStage(Learner):
    """Base class of trained stages over runs with a neural model."""

    training: Training

    @property
    def patience(self) -> int | None:  # type: ignore[override]
        """The number of epochs without a gain after which training stops, ``None`` for never."""
        epochs: int | None = self._own_settings["patience"]
        return epochs

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The seed of the training."""
        return int(self._own_settings["seed"])

    @property
    def rel(self) -> int:
        """The lowest relevant label."""
        return int(self._own_settings["rel"])

    @property
    def _own_settings(self) -> dict[str, Any]:
        """The settings of the training with the names and values of saved models.

        Not ``_training``: PyTerrier reads the parameter ``training`` from an attribute of this name first.
        """
        return {name: None if value == math.inf else value for name, value in asdict(self.training).items()}

    def _stored_parameters(self) -> dict[str, Any]:
        settings = self._own_settings
        return {name: settings[name] if name in settings else getattr(self, name) for name in self.STORED}

    @classmethod
    def _arguments(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        training = {name: parameters[name] for name in NeuralStage.STORED}
        training["patience"] = math.inf if training["patience"] is None else training["patience"]
        others = {name: value for name, value in parameters.items() if name not in training}
        return {**others, "training": Training(**training)}

    @staticmethod
    def short(value: Any) -> str:
        """Return a short text for a parameter."""
        return repr(value) if isinstance(value, (Architecture, Training)) else EntityStage.short(value)

    @property
    @abc.abstractmethod
    def _network(self) -> NeuralModel:
        """The model."""

    def _train(self, training: Sequence[TrainingTopic], validation: Sequence[TrainingTopic]) -> Arrays:
        options = {name: value for name, value in self._own_settings.items() if name != "rel"}
        return train(self._network, training, validation, **options)

    def _scores(self, learned: Arrays, features: Sequence[Arrays]) -> list[Floats]:
        return [self._output(predict_scores(self._network, learned, x)) for x in features]

    def _output(self, score: Floats) -> Floats:
        return score

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters."""
        state = self._learned or {}
        return sum(values.size for name, values in state.items() if not name.startswith(_NOT_TRAINED))

    def _require_features(self, x: Arrays) -> None:
        state = self._learned or {}
        if "sizes" in x and "sizes" in state and not np.array_equal(x["sizes"], state["sizes"]):
            texts, vectors = (" and ".join(f"{size:g}" for size in sizes) for sizes in (x["sizes"], state["sizes"]))
            raise InputError(
                f"{type(self).__name__}: vectors of texts and of entities have {texts} numbers, those of the training "
                f"{vectors}; use the encoder and the vectors of the training"
            )
        of_topics = ("sizes", "keys.", "table.", "interpolation")
        shapes = {name: values.shape for name, values in state.items() if not name.startswith(of_topics)}
        # The values of initial parameters do not matter, only their shapes.
        made = {name: values.shape for name, values in self._network.parameters(x, stream(0)).items()}
        standardised = self._network.standardised_features
        made |= {f"{kind}.{name}": (x[name].shape[-1],) for name in standardised for kind in ("mean", "scale")}
        if made != shapes:
            names = sorted(set(made) ^ set(shapes)) or [name for name in made if made[name] != shapes[name]]
            raise InputError(
                f"{type(self).__name__}: parameter {names[0]!r} has the shape {shapes.get(names[0])}, wanted "
                f"{made.get(names[0])} for these inputs; use the encoder and the vectors of the training"
            )

    STORED: ClassVar[tuple[str, ...]] = ("epochs", "patience", "batch_size", "rate", "seed", "rel")

    def _require_learned(self, learned: Arrays) -> None:
        trained, size = self._sizes_of_encoder(learned)
        if trained != size:
            raise InputError(
                f"{type(self).__name__}: vectors of the encoder have {size} numbers, those of the training {trained}; "
                "use the encoder of the training"
            )

    @abc.abstractmethod
    def _sizes_of_encoder(self, learned: Arrays) -> tuple[int, int]:
        """Return the number of dimensions in training and of the encoder, equal if only a call shows them."""

    SUFFIX = ".safetensors"

    @staticmethod
    def _serialise_model(learned: Arrays) -> bytes:
        return bytes(module_of_extra("safetensors.numpy", "neural").save(learned))

    @staticmethod
    def _read_model(path: Path) -> Arrays:
        safetensors = module_of_extra("safetensors.numpy", "neural")
        try:
            state: Arrays = safetensors.load_file(path)
        except (OSError, ValueError, TypeError, module_of_extra("safetensors", "neural").SafetensorError) as error:
            raise FileError(path.parent, f"is not a saved model ({error}); write it with save") from error
        kinds = {name: np.int64 if name.startswith("keys.") else np.float32 for name in state}
        if not all(values.dtype == kinds[name] and np.isfinite(values).all() for name, values in state.items()):
            raise FileError(path, "holds numbers that are not finite or not single precision")
        if any((values <= 0).any() for name, values in state.items() if name.startswith("scale.")):
            raise FileError(path, "holds a scale that is not above 0")
        return state


_COMPACT = Architecture()
_RERANKERS = Training(epochs=30, patience=5, batch_size=8, seed=0, rel=1)


class NeuralReranker(OnDocuments, NeuralStage):
    """Rerank documents by a neural model of words and entities, learned from judgments: R -> R.

    ``"knrm"``: kernel pooling of words; ``"edrm-knrm"``, ``"edrm-convknrm"``: of words and entities, and of their
    n-grams; ``"duet"``: Word-Entity Duet, with attention over query entities; ``"esdrank"``: query entities as a latent
    space; ``"eva"``: views of documents by clusters of entities; ``"dreq"``, ``"qder"``: query-specific entity
    vectors.

    Parameters
    ----------
    links, entities
        See :class:`~vbterrier.entities.OverlapReranker`.
    model
        One of the names above.
    texts
        Texts of documents by docno; ``None`` for the column ``text`` of the run.
    names, vectors
        Texts of entities by id, such as name and description; by default the id, with spaces for underscores. Vectors
        of entities by id, such as Wikipedia2Vec; ``None`` for vectors of their texts. Entities without a vector match
        by id only.
    encoder
        A function from a text to vectors of its tokens, shape (n_tokens, d), or a checkpoint, as the first parameter of
        :class:`~vbterrier.entities.TokenVectors`; ``None`` for all-MiniLM-L6-v2.
    types
        Names of types of entities by id, for EDRM in the reference variant.
    cutoff
        The number of entities of each topic.
    architecture
        A :class:`vbterrier.entities.Architecture`: ``variant`` (``"compact"``), ``layers`` (0), ``switches``,
        ``entity_weight`` (``"rank"``).
    training
        A :class:`vbterrier.entities.Training`: ``epochs`` (30), ``patience`` (5), ``batch_size`` (8), ``rate`` (that of
        the model), ``seed`` (0), ``rel`` (1).

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        A document without text; no topic with relevant and non-relevant documents; a call before :meth:`fit`. See the
        contracts of runs, tags and qrels.
    ModuleNotFoundError
        PyTorch is not installed; ``pip install 'vbterrier[neural]'``.

    Notes
    -----
    Compact models have frozen vectors of words and entities, so that features are computed once and a few hundred
    queries suffice. Numbers do not depend on the order of rows or on the batches of topics. First-stage scores are
    standardised in their topic. The judgments of a topic must not decide its entities: entity runs from labels measure
    the labels.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.4; the models in
    :mod:`vbterrier.entities.neural.models`.

    Examples
    --------
    >>> import pandas as pd
    >>> tags = pd.DataFrame({"docno": ["d1", "d3"], "entity_id": ["Texas", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> reranker = NeuralReranker(tags, entities, model="duet", training=Training(epochs=20))
    >>> reranker.training
    Training(epochs=20, patience=5, batch_size=8, rate=None, seed=0, rel=1)
    """

    _ARCHITECTURE = tuple(each.name for each in fields(Architecture))
    STORED = ("model", "cutoff", *_ARCHITECTURE, *NeuralStage.STORED)

    def __init__(
        self,
        links: Any,
        entities: Any,
        *,
        model: str = "edrm-knrm",
        texts: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
        vectors: Mapping[str, Any] | None = None,
        encoder: Any = None,
        types: Mapping[str, Sequence[str]] | None = None,
        cutoff: int = 20,
        architecture: Architecture = _COMPACT,
        training: Training = _RERANKERS,
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self.training = settings_parameter("training", Training, training).with_defaults(_RERANKERS)
        self.architecture = settings_parameter("architecture", Architecture, architecture)
        is_compact = self.architecture.variant == "compact"
        self.model = choice("model", model, MODELS if is_compact else REFERENCE)
        self.texts, self.names, self.vectors = by_id("texts", texts), by_id("names", names), by_id("vectors", vectors)
        self.types = by_id("types", types)
        # Models of sentence-transformers are callable, too.
        is_function = callable(encoder) and not is_of_sentences(encoder)
        self.encoder = encoder
        self.cutoff = whole("cutoff", cutoff)
        encode = encoder if is_function else TokenVectors(encoder)
        if is_compact:
            _require_reference(types=types)
            self._encoded: Texts | RawTexts = Texts(encode)
            self._scoring: NeuralModel = MODELS[model]
        else:
            self._encoded = RawTexts(encode, self.architecture.layers)
            self._scoring = REFERENCE[model](self._encoded, self.architecture.switches or {})

    def _stored_parameters(self) -> dict[str, Any]:
        architecture = {name: getattr(self.architecture, name) for name in self._ARCHITECTURE}
        architecture["switches"] = None if architecture["switches"] is None else dict(architecture["switches"])
        return {"model": self.model, "cutoff": self.cutoff, **architecture, **self._own_settings}

    @classmethod
    def _arguments(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        architecture = Architecture(**{name: parameters[name] for name in cls._ARCHITECTURE})
        others = {name: value for name, value in parameters.items() if name not in cls._ARCHITECTURE}
        return {**super()._arguments(others), "architecture": architecture}

    @property
    def _network(self) -> NeuralModel:
        return self._scoring

    def _compute_features(self, inp: pd.DataFrame) -> Prepared:
        module_of_extra("torch", "neural")
        self.require_columns(inp, *self.COLUMNS)
        run = Run(inp)
        documents, entities = self._linker.of(run), self._entity_run(inp)
        require_finite(documents)
        queries, texts = Topics(inp).queries(run.topics), document_texts(inp, documents.row, self.texts)
        inputs: dict[str, Any] = {"names": self.names, "vectors": self.vectors}
        if isinstance(self._encoded, RawTexts):
            listed = self._top_entities(documents, entities, None)
            inputs |= {"types": self.types, "cutoff": self.cutoff}
            raw = RawBatches(documents, listed, queries, texts, self._encoded, **inputs)
            with single_threaded():
                features = [self._network.features(batch) for batch in raw]
        else:
            listed = self._top_entities(documents, entities, self.cutoff)
            inputs |= {"entity_weight": self.architecture.entity_weight}
            batches = Batches(documents, listed, queries, texts, self._encoded, **inputs)
            features = [{**self._network.features(batch), "sizes": batches.sizes} for batch in batches]
        rows = np.split(documents.row, documents.pool.topic_starts[1:-1])[: len(features)]
        return Prepared(run, rows, features, (entities.frame,))

    COLUMNS = ("qid", "docno", "score", "query")

    def _columns(self) -> list[str]:
        return [*self.COLUMNS, *(["text"] if self.texts is None else [])]

    def _fingerprints(self, ids: Sequence[str]) -> dict[str, Any]:
        return {
            "encoder": fingerprints.of_encoder(self._encoded.encode),
            "names": fingerprints.of_texts(self.names, ids),
            "vectors": fingerprints.of_vectors(self.vectors, ids),
        }

    def _sizes_of_encoder(self, learned: Arrays) -> tuple[int, int]:
        sizes, encoder = learned.get("sizes"), self._encoded.encode
        # Other shapes are refused by the first call, which compares all of them.
        if not isinstance(encoder, TokenVectors) or sizes is None or sizes.shape != (2,):
            return 0, 0
        return int(sizes[0]), encoder.size

    def _training_features(self, teaching: Teaching) -> Prepared:
        if not is_trained(self.entities):
            prepared = self._compute_features(teaching.training)
            for source in prepared.sources:
                require_independent(source, "entities", folds=False)
            return prepared
        stage = self.with_entities(teaching.cross_fit_transform(self.entities))
        return stage._compute_features(teaching.training)  # noqa: SLF001 - a copy of this stage

    def _labels(self, prepared: Prepared, qrels: Any) -> list[Ints | None]:
        labels, run = LabelFrame(qrels), prepared.run
        label = lookup_labels(labels, run.topic_ids, run.topics, run.topic, run.docno, ("run", "run"))
        label, has_labels = np.where(label >= self.rel, label, 0), places(run.topics, labels.topics)
        return [label[rows] if has_labels[at] >= 0 else None for at, rows in enumerate(prepared.rows)]
