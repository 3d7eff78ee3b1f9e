"""Rerankers as published, for the reference variant of ``NeuralReranker``: inputs, parameters and losses.

The scores are those of :mod:`vbterrier.entities.neural.architectures`. The first stage enters by linear interpolation,
whose weight validation topics choose; ``qder`` and ``duet`` read it besides, as published.
"""

# Methods of models are documented in ``NeuralModel``.
# ruff: noqa: D102
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vbterrier.entities.neural import architectures
from vbterrier.entities.neural.architectures import INTERACTIONS, PAIRS, WORD_PAIRS
from vbterrier.entities.neural.checkpoints import TokenVectors, parameters_of_layers, run_layers
from vbterrier.entities.neural.models import NeuralModel, cluster_entities
from vbterrier.entities.neural.raw import lowercase_words, pad_rows
from vbterrier.errors import ParameterError, examples, module_of_extra
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.neural.batches import Single
    from vbterrier.entities.neural.models import Arrays, Example
    from vbterrier.entities.neural.raw import RawBatch, RawTexts

# Words of queries, documents and descriptions, entities of queries and documents, and types of EDRM.
QUERY_WORDS, DOCUMENT_WORDS, DESCRIPTION_WORDS, QUERY_ENTITIES, DOCUMENT_ENTITIES, N_TYPES = 10, 50, 20, 5, 10, 15
_FILTERS, _DESCRIPTION_WIDTH = 128, 5
# Parts of the query and of each document.
_SIDE = ("words", "entity", "entity_count")
# Dirichlet's prior, and the parameters of BM25.
_MU, _K1, _B = 2500, 1.2, 0.75
# Lower ends of the cosine bins of the duet's entities.
_COSINE_EDGES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)


def binary(score: Any, label: Any) -> Any:
    """Return the mean binary cross-entropy of logits over documents; relevant have labels above 0."""
    nn = module_of_extra("torch", "neural").nn.functional
    return nn.binary_cross_entropy_with_logits(score, (label > 0).to(score.dtype))


def _linear(draw: np.random.Generator, *shape: int) -> Floats:
    """Return initial weights, uniform within 1/sqrt(number of inputs), the product of all dimensions but the first."""
    bound = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else shape[0])
    return draw.uniform(-bound, bound, shape)


class ReferenceModel(NeuralModel):
    """Base class of published models: the encoder, the number of its layers to train, and the switches of the model."""

    # The legal values of each switch, the default first.
    SWITCHES: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    decay = 0.0
    interpolated = True

    def __init__(self, encode: RawTexts, switches: Mapping[str, Any]) -> None:
        unknown = set(switches) - set(self.SWITCHES)
        if unknown:
            legal = examples(self.SWITCHES) if self.SWITCHES else "none for this model"
            raise ParameterError(f"switches: found {examples(sorted(unknown))}; wanted {legal}")
        self.encode = encode
        self.switches = {name: legal[0] for name, legal in self.SWITCHES.items()} | dict(switches)
        for name, values in self.SWITCHES.items():
            self._require(name, self.switches[name], values)

    def _require(self, name: str, value: Any, legal: tuple[Any, ...]) -> None:
        # Not `in` alone: 1 is equal to True.
        if not any(value is each or (isinstance(value, str) and value == each) for each in legal):
            raise ParameterError(f"switches[{name!r}]={value!r}: wanted one of {', '.join(map(repr, legal))}")

    @property
    def _layers(self) -> list[Any]:
        """The layers of the encoder that are trained."""
        encode = self.encode.encode
        return encode.layers(self.encode.n_layers) if isinstance(encode, TokenVectors) else []

    def _encoder(self, *prefixes: str) -> Arrays:
        """Return the initial parameters of the trained layers of an encoder, once for each prefix."""
        made: Arrays = {}
        for prefix in prefixes:
            made |= parameters_of_layers(self._layers, prefix)
        return made


class PublishedQDER(ReferenceModel):
    """QDER: interactions of tokens and of entities, added and multiplied, under a bilinear form.

    Text: two encoders, of queries and of documents. Entities: the first of the entity run for the query, and all that
    the run lists for a document, each vector multiplied by its run score.
    """

    SWITCHES: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "interactions": (("add", "multiply"),),
        "bilinear": (True, False),
        "entities": (True, False),
        "first_stage": (True, False),
    }
    rate = 1e-4
    criterion = staticmethod(binary)

    def _require(self, name: str, value: Any, legal: tuple[Any, ...]) -> None:
        if name != "interactions":
            super()._require(name, value, legal)
        elif isinstance(value, str) or not set(value) or not set(value) <= set(INTERACTIONS):
            raise ParameterError(f"switches['interactions']: found {value!r}; wanted some of {examples(INTERACTIONS)}")

    def features(self, batch: RawBatch) -> Arrays:
        documents, mask = pad_rows([batch.encode(text) for text in batch.texts])
        query, _, linked, linked_mask = batch.scaled_vectors()
        inputs = {
            "query_tokens": batch.encode(batch.query),
            "document_tokens": documents,
            "document_mask": mask,
            "query_entities": query,
            "document_entities": linked,
            "document_entity_mask": linked_mask.astype(np.float32),
            "first_stage": batch.first_stage,
        }
        if self.encode.n_layers:
            return {"score": batch.score, **inputs}
        torch = module_of_extra("torch", "neural")
        with torch.no_grad():
            pooled = self._pooled_interactions({}, {name: torch.from_numpy(values) for name, values in inputs.items()})
        # Without trained layers, nothing before the norm has parameters.
        return {"score": batch.score, "pooled": pooled.numpy()}

    def _pooled_interactions(self, p: Arrays, x: Arrays) -> Any:
        n = len(x["document_tokens"])
        query = x["query_tokens"][None]
        query = run_layers(self._layers, p, "query_layer", query, query.new_ones(query.shape[:2]))
        documents = run_layers(self._layers, p, "document_layer", x["document_tokens"], x["document_mask"])
        inputs = {
            **x,
            "query_tokens": query.expand(n, -1, -1),
            "query_mask": query.new_ones(n, query.shape[1]),
            "document_tokens": documents,
            "query_entities": x["query_entities"].expand(n, -1, -1),
            "query_entity_mask": query.new_ones(n, len(x["query_entities"])),
        }
        switches = {name: self.switches[name] for name in ("entities", "first_stage")}
        return architectures.qder_pooled(inputs, self.switches["interactions"], **switches)

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        if "pooled" in x:
            c = x["pooled"].shape[1]
        else:
            sizes = [x["document_tokens"].shape[2], x["document_entities"].shape[2] * self.switches["entities"]]
            c = len(set(self.switches["interactions"])) * sum(sizes)
        weight = _linear(draw, c, c) if self.switches["bilinear"] else _linear(draw, c)
        form = {"norm_gain": np.ones(c), "norm_bias": np.zeros(c), "score_weight": weight, "score_bias": np.zeros(1)}
        return form | self._encoder("query_layer", "document_layer")

    def forward(self, p: Arrays, x: Arrays) -> Any:
        return architectures.qder(p, x["pooled"] if "pooled" in x else self._pooled_interactions(p, x))


class PublishedDREQ(ReferenceModel):
    """DREQ: a query vector and a hybrid document vector, linear maps of text and of text and entities.

    The encoder of the query is trained, that of documents frozen: the mean over passages of 10 sentences, every 5.
    """

    SWITCHES: ClassVar[Mapping[str, tuple[Any, ...]]] = {"weight": ("score", "uniform", "reciprocal")}
    rate = 1e-3
    criterion = staticmethod(binary)
    size = 100

    def features(self, batch: RawBatch) -> Arrays:
        return {
            "score": batch.score,
            "query_tokens": batch.encode(batch.query),
            "document_text": np.stack([batch.encode.passages(text) for text in batch.texts]),
            "document_entities": batch.summed_vectors(self.switches["weight"]),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        sizes = x["query_tokens"].shape[1], x["document_text"].shape[1] + x["document_entities"].shape[1]
        maps = {
            "query_weight": _linear(draw, self.size, sizes[0]),
            "query_bias": np.zeros(self.size),
            "document_weight": _linear(draw, self.size, sizes[1]),
            "document_bias": np.zeros(self.size),
            "score_weight": _linear(draw, 5 * self.size),
            "score_bias": np.zeros(1),
        }
        return maps | self._encoder("query_layer")

    def forward(self, p: Arrays, x: Arrays) -> Any:
        query = x["query_tokens"][None]
        query = run_layers(self._layers, p, "query_layer", query, query.new_ones(query.shape[:2])).mean(dim=1)
        return architectures.dreq(p, {**x, "query_text": query.expand(len(x["document_text"]), -1)})


class Tables(ReferenceModel):
    """Base class of models with trained vectors of words, entities and types.

    A topic carries its own words, entities and types with initial vectors: those that the training has not seen keep
    them. Row 0 is padding.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("word", "entity", "type")

    def tables(self, topics: Sequence[Arrays]) -> tuple[Arrays, Arrays]:
        """Return initial vectors of all words, entities and types of the topics, and their sorted keys."""
        vectors, keys = {}, {}
        for kind in self.KINDS:
            every, first = np.unique(np.concatenate([x[f"key.{kind}"] for x in topics]), return_index=True)
            keys[f"keys.{kind}"] = every
            vectors[f"table.{kind}"] = np.concatenate([x[f"start.{kind}"] for x in topics])[first]
        return vectors, keys

    def table_rows(self, state: Arrays, x: Arrays) -> Arrays:
        """Return the rows of the trained tables for the words, entities and types of a topic, -1 for unknown ones."""
        made: Arrays = {}
        for kind in self.KINDS:
            keys, batch_keys = state[f"keys.{kind}"], x[f"key.{kind}"]
            row = np.minimum(np.searchsorted(keys, batch_keys), len(keys) - 1)
            made[f"row.{kind}"] = np.where(keys[row] == batch_keys, row, -1)
        return made

    def own_tables(self, p: Arrays, x: Arrays) -> Arrays:
        """Return the vectors of the words, entities and types of a topic by kind."""
        torch = module_of_extra("torch", "neural")
        made = {}
        for kind in self.KINDS:
            row = x[f"row.{kind}"]
            made[kind] = torch.where(row[:, None] >= 0, p[f"table.{kind}"][row.clamp(min=0)], x[f"start.{kind}"])
        return made


class _Rows:
    """Rows of words, entities or types of a topic, in the order in which they are asked for; row 0 is padding."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def of(self, names: Sequence[str], size: int) -> list[int]:
        """Return the rows of at most ``size`` names, padded with 0."""
        rows = [self.names.setdefault(name, len(self.names) + 1) for name in names[:size]]
        return rows + [0] * (size - len(rows))

    def keys(self) -> Ints:
        """Return the fingerprints of the names, 0 for padding, shape (n + 1,)."""
        digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in self.names]
        return np.array([0, *(int.from_bytes(digest, "big", signed=True) for digest in digests)], dtype=np.int64)


def _project_vectors(vectors: Single, size: int) -> Single:
    """Return vectors of a size: themselves, or their product with a fixed random matrix."""
    if vectors.shape[1] == size:
        return vectors
    fixed = stream(0, "narrowed", str(vectors.shape[1])).normal(size=(vectors.shape[1], size)) / np.sqrt(size)
    made: Single = (vectors @ fixed).astype(np.float32)
    return made


class PublishedEDRM(Tables):
    """EDRM: kernel-pooled matrices of n-grams and entities; EDRM-KNRM, which has no published code, composes its parts.

    Trained: the vectors of words, entities and types. Words start from the encoder's vector of each word, entities from
    the given vectors.
    """

    rate = 1e-3

    def __init__(self, encode: RawTexts, switches: Mapping[str, Any], pairs: Sequence[str]) -> None:
        super().__init__(encode, switches)
        if encode.n_layers:
            raise ParameterError(
                f"layers={encode.n_layers}: the model has vectors of words and no encoder; use layers=0"
            )
        self.pairs, self.is_convolved = pairs, "22" in pairs

    def _size(self, size_of_words: int) -> int:
        """The number of dimensions of entities: that of the n-grams they meet."""
        return _FILTERS if self.is_convolved else size_of_words

    def features(self, batch: RawBatch) -> Arrays:
        words, entities, types = _Rows(), _Rows(), _Rows()
        table = batch.entities
        query_words = words.of(lowercase_words(batch.query), QUERY_WORDS)
        document_words = [words.of(lowercase_words(text), DOCUMENT_WORDS) for text in batch.texts]
        query_rows = batch.query_entities[:QUERY_ENTITIES].tolist()
        query_entity = entities.of([table.ids[row] for row in query_rows], QUERY_ENTITIES)
        linked = [[row for row in rows if row >= 0][:DOCUMENT_ENTITIES] for rows in batch.linked.tolist()]
        document_entity = [entities.of([table.ids[row] for row in rows], DOCUMENT_ENTITIES) for rows in linked]
        count = np.zeros((len(linked), DOCUMENT_ENTITIES), np.float32)
        for at, rows in enumerate(linked):
            count[at, : len(rows)] = batch.mentions[at, : len(rows)]
        place = {each: at for at, each in enumerate(table.ids)}
        rows = [place[each] for each in entities.names]
        padding = [[0] * DESCRIPTION_WORDS], [[0] * N_TYPES]
        described = padding[0] + [words.of(lowercase_words(table.texts[row]), DESCRIPTION_WORDS) for row in rows]
        typed = padding[1] + [types.of(list(table.types.get(table.ids[row], ())), N_TYPES) for row in rows]
        none = np.zeros_like(batch.encode.word(batch.query))
        of_words, of_types = (np.stack([none, *map(batch.encode.word, each.names)]) for each in (words, types))
        size = self._size(len(none))
        return {
            "score": batch.score,
            "query_words": np.array(query_words),
            "document_words": np.array(document_words),
            "query_entity": np.array(query_entity),
            "query_entity_count": (np.array(query_entity) > 0).astype(np.float32),
            "document_entity": np.array(document_entity),
            "document_entity_count": count,
            "descriptions": np.array(described),
            "types": np.array(typed),
            **{f"key.{kind}": each.keys() for kind, each in zip(self.KINDS, (words, entities, types), strict=True)},
            "start.word": of_words,
            "start.entity": _project_vectors(table.vectors[[-1, *rows]], size),
            "start.type": _project_vectors(of_types, size),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        d = x["start.word"].shape[1]
        size = self._size(d)
        made = {
            "score_weight": _linear(draw, 11 * len(self.pairs)),
            "score_bias": np.zeros(1),
            "bag_weight": _linear(draw, size, d),
            "bag_bias": np.zeros(size),
            "description_weight": _linear(draw, size, d, _DESCRIPTION_WIDTH),
            "description_bias": np.zeros(size),
        }
        for n in (1, 2, 3) if self.is_convolved else ():
            made |= {f"gram{n}_weight": _linear(draw, _FILTERS, d, n), f"gram{n}_bias": np.zeros(_FILTERS)}
        return made

    def forward(self, p: Arrays, x: Arrays) -> Any:
        n = len(x["document_words"])
        inputs = {f"query_{name}": x[f"query_{name}"].expand(n, -1) for name in _SIDE}
        return self._scores(p, {**x, **inputs})

    def loss(self, p: Arrays, examples: Sequence[Example]) -> Any:
        """Return the mean loss of the topics, whose documents are scored at once: topics share words and entities."""
        sizes = [len(label) for _, label in examples]
        scores = self._scores(p, self._join_topics([x for x, _ in examples])).split(sizes)
        pairs = zip(scores, examples, strict=True)
        return sum(self.criterion(score, label) for score, (_, label) in pairs) / len(examples)

    def _scores(self, p: Arrays, x: Arrays) -> Any:
        """Return the scores of documents, (n,), of features whose parts of the query have a row for each document."""
        inputs = {f"{side}_{name}": x[f"{side}_{name}"] for side in ("query", "document") for name in _SIDE}
        for side in ("query", "document"):
            inputs[f"{side}_entity_description"] = x["descriptions"][inputs[f"{side}_entity"]]
            inputs[f"{side}_entity_types"] = x["types"][inputs[f"{side}_entity"]]
        features = architectures.edrm_features(p | self.own_tables(p, x), inputs, self.pairs)
        return architectures.edrm(p, features)

    def _join_topics(self, topics: Sequence[Arrays]) -> Arrays:
        """Return the features of the documents of several topics, with one row for each word, entity and type."""
        torch = module_of_extra("torch", "neural")
        joined: Arrays = {}
        rows: dict[str, Sequence[Any]] = {}  # of each topic, in the joined tables
        first: Arrays = {}  # the first of the topics' rows for each
        for kind in self.KINDS:
            keys = [x[f"key.{kind}"] for x in topics]
            place = torch.cat(keys).unique(return_inverse=True)[1]
            # Padding, the first key of each topic, has row 0.
            padding = int(place[0])
            place = torch.where(place == padding, 0, torch.where(place == 0, padding, place))
            none = torch.full((int(place.max()) + 1,), len(place))
            first[kind] = none.scatter_reduce(0, place, torch.arange(len(place)), "amin")
            rows[kind] = place.split([len(each) for each in keys])
            for name in (f"start.{kind}", f"row.{kind}"):
                joined[name] = torch.cat([x[name] for x in topics])[first[kind]]
        parts = {"words": "word", "entity": "entity", "entity_count": None, "descriptions": "word", "types": "type"}
        for name in ("descriptions", "types", *(f"{side}_{part}" for side in ("query", "document") for part in _SIDE)):
            table = parts[name.removeprefix("query_").removeprefix("document_")]
            values = [x[name] if table is None else rows[table][at][x[name]] for at, x in enumerate(topics)]
            if name.startswith("query_"):
                values = [each.expand(len(x["document_words"]), -1) for each, x in zip(values, topics, strict=True)]
            joined[name] = torch.cat(values)
        return joined | {name: joined[name][first["entity"]] for name in ("descriptions", "types")}


class PublishedDuet(ReferenceModel):
    """AttR-Duet: linear ranking and attention scores of words and entities, and the sum of their products.

    Statistics of words are those of the candidates of the topic. One field, the text; the texts of entities are their
    names and descriptions.
    """

    rate = 0.01
    decay = 0.01

    def features(self, batch: RawBatch) -> Arrays:
        documents = [lowercase_words(text) for text in batch.texts]
        words = lowercase_words(batch.query)
        first = np.broadcast_to(batch.score[:, None], (len(documents), len(words)))
        table, query_rows = batch.entities, batch.query_entities
        unit_vectors = table.vectors / np.maximum(np.linalg.norm(table.vectors, axis=1, keepdims=True), 1e-10)
        cosines = np.einsum("ev,nmv->nem", unit_vectors[query_rows], unit_vectors[batch.linked])
        cosines = np.where(query_rows[:, None] == batch.linked[:, None], 1, cosines)
        lower = np.array(_COSINE_EDGES)
        inside = (cosines[..., None] >= lower - 1e-6) & (cosines[..., None] < np.append(np.inf, lower[:-1] - 1e-6))
        counts = np.einsum("nemb,nm->neb", inside, batch.mentions)
        texts = [text_scores(documents, lowercase_words(table.texts[row])).sum(axis=1) for row in query_rows.tolist()]
        named = np.stack(texts, axis=1) if texts else np.zeros((len(documents), 0, 4))
        mean = batch.encode.mean(batch.query)
        described = (
            np.stack([batch.encode.mean(table.texts[row]) for row in query_rows.tolist()])
            if len(query_rows)
            else mean[None][:0]
        )
        lengths = np.maximum(np.linalg.norm(described, axis=1) * np.linalg.norm(mean), 1e-10)
        attention = np.stack([np.ones(len(query_rows)), described @ mean / lengths], axis=1)
        return {
            "score": batch.score,
            "word_match": np.concatenate([first[..., None], text_scores(documents, words)], axis=2, dtype=np.float32),
            "entity_match": np.concatenate(
                [np.ones((*named.shape[:2], 1)), np.log1p(counts), named], axis=2, dtype=np.float32
            ),
            "word_attention": np.ones((len(documents), len(words), 1), np.float32),
            "entity_attention": np.broadcast_to(attention, (len(documents), *attention.shape)).astype(np.float32),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        kinds = ("word_match", "entity_match", "word_attention", "entity_attention")
        return {f"{kind}_weight": _linear(draw, x[kind].shape[2]) for kind in kinds}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        return architectures.duet(p, x)[0]


def text_scores(documents: Sequence[Sequence[str]], words: Sequence[str]) -> Floats:
    """Return scores of words in documents, shape (n, t, 4): LM with Dirichlet's prior, BM25, presence, TF-IDF.

    ``ln((tf + μ p)/(μ p)) + ln(μ/(length + μ))``; ``idf tf (k₁ + 1)/(tf + k₁ (1 - b + b length/mean))``; 1 for words of
    the document; ``tf idf``; with ``idf = ln((n - df + .5)/(df + .5) + 1)`` over these n documents.
    """
    tf = np.array([[document.count(word) for word in words] for document in documents], dtype=np.float64)
    tf = tf.reshape(len(documents), len(words))
    length = np.array([len(document) for document in documents], dtype=np.float64)[:, None]
    df, share = (tf > 0).sum(axis=0), (tf.sum(axis=0) + 0.5) / (length.sum() + 1)
    idf = np.log((len(documents) - df + 0.5) / (df + 0.5) + 1)
    dirichlet = np.log1p(tf / (_MU * share)) + np.log(_MU / (length + _MU))
    bm25 = idf * tf * (_K1 + 1) / (tf + _K1 * (1 - _B + _B * length / max(length.mean(), 1)))
    return np.stack([dirichlet, bm25, tf > 0, tf * idf], axis=2)


class PublishedEVA(ReferenceModel):
    """EVA: the inner product of query and view, [text; entities W + b]; the best view of a document counts.

    Text is the encoder's vector of [CLS], one encoder for both sides. In training, the view of a document are the
    entities nearest to those of the query; in ranking, the clusters of its entities, at most three.
    """

    rate = 1e-3

    def features(self, batch: RawBatch) -> Arrays:
        torch = module_of_extra("torch", "neural")
        vectors, query_rows = (
            batch.entities.vectors,
            batch.query_entities[batch.entities.has_vector[batch.query_entities]],
        )
        mask = (batch.linked >= 0) & batch.entities.has_vector[batch.linked]
        linked = vectors[batch.linked] * mask[..., None]
        views, has_view = mean_views(linked, mask)
        nearest = architectures.eva_view(*map(torch.from_numpy, (vectors[query_rows], linked, mask))).numpy()
        query = vectors[query_rows].mean(axis=0) if len(query_rows) else np.zeros(vectors.shape[1], np.float32)
        lengths = np.maximum(np.linalg.norm(nearest, axis=1) * np.linalg.norm(query), 1e-10)
        text, text_mask = pad_rows([self._text(batch, each) for each in batch.texts])
        return {
            "score": batch.score,
            "query_tokens": self._text(batch, batch.query),
            "document_tokens": text,
            "document_mask": text_mask,
            "query_entities": query,
            "views": views,
            "no_view": 1 - has_view,
            "nearest": nearest,
            "cosine": (nearest @ query / lengths).astype(np.float32),
        }

    @staticmethod
    def _text(batch: RawBatch, text: str) -> Single:
        """Return the input of the trained layers, or the vector of [CLS] alone, shape (n_tokens or 1, d)."""
        return batch.encode(text) if batch.encode.n_layers else batch.encode.first(text)[None]

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        size = len(x["query_entities"])
        return {"entity": _linear(draw, size, size), "entity_bias": np.zeros(size)} | self._encoder("layer")

    def _encode_texts(self, p: Arrays, x: Arrays) -> tuple[Any, Any]:
        query = x["query_tokens"][None]
        query = run_layers(self._layers, p, "layer", query, query.new_ones(query.shape[:2]))
        return query[0, 0], run_layers(self._layers, p, "layer", x["document_tokens"], x["document_mask"])[:, 0]

    def forward(self, p: Arrays, x: Arrays) -> Any:
        query, text = self._encode_texts(p, x)
        query_vector = architectures.eva_vector(p, query, x["query_entities"])
        views = architectures.eva_vector(p, text[:, None].expand(-1, x["views"].shape[1], -1), x["views"])
        return (views @ query_vector).masked_fill(x["no_view"] > 0, -np.inf).amax(dim=1)

    def loss(self, p: Arrays, examples: Sequence[Example]) -> Any:
        """Return the mean hinge of triples; a triple whose entities prefer the wrong document has none."""
        total = 0.0
        for x, label in examples:
            query, text = self._encode_texts(p, x)
            none = x["query_entities"] * 0
            with_entities = architectures.eva_vector(p, text, x["nearest"]) @ architectures.eva_vector(
                p, query, x["query_entities"]
            )
            without = architectures.eva_vector(p, text, x["nearest"] * 0) @ architectures.eva_vector(p, query, none)
            pairs = label[:, None] > label
            is_wrong = x["cosine"][:, None] - x["cosine"] < architectures.EVA_WRONG
            margins = [1 - each[:, None] + each for each in (with_entities, without)]
            torch = module_of_extra("torch", "neural")
            total = total + torch.where(is_wrong, margins[1], margins[0])[pairs].clamp(min=0).mean()
        return total / len(examples)


def mean_views(vectors: Single, mask: Any) -> tuple[Single, Single]:
    """Return the means of the clusters of raw vectors (n, m, v) with a mask (n, m), and 1 for views in use.

    Clusters are those of unit vectors, at most three; a document without entities has one view of zeros.
    """
    lengths = np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), 1e-10)
    centres, used = cluster_entities((vectors / lengths).astype(np.float32), mask.astype(np.float32))
    cosines = np.einsum("nmv,nkv->nmk", vectors / lengths, centres) - 4 * (1 - used[:, None])
    belongs = (cosines.argmax(axis=2)[..., None] == np.arange(centres.shape[1])) & mask[..., None]
    size = belongs.sum(axis=1)[..., None]
    means = np.einsum("nmk,nmv->nkv", belongs, vectors) / np.maximum(size, 1)
    in_use = (size[..., 0] > 0).astype(np.float32)
    in_use[~mask.any(axis=1), 0] = 1
    return means.astype(np.float32), in_use


def _edrm(pairs: Sequence[str]) -> Any:
    return lambda encode, switches: PublishedEDRM(encode, switches, pairs)


# EsdRank has no public code.
REFERENCE: dict[str, Any] = {
    "knrm": _edrm(("11",)),
    "edrm-knrm": _edrm(WORD_PAIRS),
    "edrm-convknrm": _edrm(PAIRS),
    "duet": PublishedDuet,
    "eva": PublishedEVA,
    "dreq": PublishedDREQ,
    "qder": PublishedQDER,
}
