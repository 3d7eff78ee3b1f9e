"""Features, scores and losses of seven entity-oriented neural rerankers."""

# Methods of models are documented in ``NeuralModel``.
# ruff: noqa: D102
from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vbterrier.errors import module_of_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.entities.neural.batches import Batch, Single

    # Features of one topic and parameters, by name: arrays of NumPy, then tensors.
    Arrays: TypeAlias = dict[str, Any]
    Example: TypeAlias = tuple[Arrays, Any]

# Kernels of KNRM (Xiong et al., SIGIR 2017): one for exact matches, ten for soft matches.
KERNEL_MEANS = np.array([1.0, *np.arange(0.9, -1.0, -0.2)], dtype=np.float32)
KERNEL_WIDTHS = np.array([1e-3, *[0.1] * 10], dtype=np.float32)
N_KERNELS = len(KERNEL_MEANS)
_MIN_KERNEL_SUM, _LOG_SCALE = 1e-10, 0.1
# Dimensions of trained projections, the rank of the bilinear form, the largest number of views of a document.
HIDDEN_SIZE, PROJECTED_SIZE, N_GRAM, RANK, N_VIEWS = 64, 64, 32, 4, 3
# Steps of k-means.
_CLUSTER_STEPS = 10
# The inverse temperature of cosines in attention and contrast.
SHARPNESS = 10.0


def kernel_pooling(cosines: Single, weight: Single) -> Single:
    """Return kernel-pooled rows of similarity matrices, (n, q, w) and weights of columns (n, w) -> (n, q, 11).

    ``0.1 log max(Σ_j weight_j exp(-(cos_ij - μ_k)²/(2 σ_k²)), 1e-10)``.
    """
    made = np.empty((*cosines.shape[:2], N_KERNELS), dtype=np.float32)
    for at, (mean, width) in enumerate(zip(KERNEL_MEANS, KERNEL_WIDTHS, strict=True)):
        response = np.exp(-((cosines - mean) ** 2) / (2 * width**2))
        made[..., at] = np.einsum("nqw,nw->nq", response, weight)
    return np.float32(_LOG_SCALE) * np.log(np.maximum(made, np.float32(_MIN_KERNEL_SUM)))


def _cosines(queries: Single, documents: Single) -> Single:
    """Return the cosines of unit vectors, (q, d) and (n, w, d) -> (n, q, w)."""
    made: Single = queries @ documents.transpose(0, 2, 1)
    return made


def _similar(batch: Batch) -> Single:
    """Return the cosines of the entities of queries and documents, 1 for equal entities, shape (n, e, m)."""
    made: Single = np.where(batch.same > 0, np.float32(1), _cosines(batch.vectors, batch.document_vectors))
    return made


def matches(batch: Batch) -> dict[str, Single]:
    """Return the four pooled matrices by name, query first: words and entities by words and entities."""
    return {
        "ww": kernel_pooling(_cosines(batch.words, batch.document_words), batch.has_word),
        "we": kernel_pooling(_cosines(batch.words, batch.document_entities), batch.link_weight),
        "ew": kernel_pooling(_cosines(batch.entities, batch.document_words), batch.has_word),
        "ee": kernel_pooling(_similar(batch), batch.link_weight),
    }


def query_entities(batch: Batch) -> Single:
    """Return the weights of the query's entities, cosines with the query, and shares of documents; shape (e, 3)."""
    share = batch.same.max(axis=2, initial=0).mean(axis=0)
    return np.stack([batch.weight, batch.entities @ batch.text, share], axis=1).astype(np.float32)


def hinge(score: Any, label: Any) -> Any:
    """Return the mean of ``max(0, 1 - s_i + s_j)`` over pairs of documents with label i > label j."""
    pairs = label[:, None] > label
    return (1 - score[:, None] + score)[pairs].clamp(min=0).mean()


def cross_entropy(score: Any, label: Any) -> Any:
    """Return binary cross-entropy; relevant and non-relevant documents of a topic have the same total weight."""
    softplus = module_of_extra("torch", "neural").nn.functional.softplus
    return (softplus(-score[label > 0]).mean() + softplus(score[label <= 0]).mean()) / 2


class NeuralModel(abc.ABC):
    """A scoring function with frozen features and trained parameters.

    ``first`` is the weight of the first-stage score, 1 before training. All other evidence then weighs 0, except the
    similarity of EVA, so that training starts from the first-stage ranking.
    """

    # Features that are standardised by their mean and standard deviation in training.
    standardised_features: tuple[str, ...] = ()
    rate = 0.02
    decay = 0.01
    criterion = staticmethod(hinge)
    # True if validation topics choose the weight of a linear interpolation with the first stage.
    interpolated = False

    @abc.abstractmethod
    def features(self, batch: Any) -> Arrays:
        """Return the part of the input that does not depend on parameters: of a Batch, a RawBatch, or texts."""

    def tables(self, topics: Sequence[Arrays]) -> tuple[Arrays, Arrays]:  # noqa: ARG002 - common signature
        """Return initial parameters that depend on all topics of the training, and the keys of their rows."""
        return {}, {}

    def table_rows(self, state: Arrays, x: Arrays) -> Arrays:  # noqa: ARG002 - common signature
        """Return the rows of the tables that the features of a topic use."""
        return {}

    @abc.abstractmethod
    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        """Return initial parameters for features of the given shapes."""

    @abc.abstractmethod
    def forward(self, p: Arrays, x: Arrays) -> Any:
        """Return the scores of the documents of a topic, shape (n,)."""

    def loss(self, p: Arrays, examples: Sequence[Example]) -> Any:
        """Return the mean loss of some topics with labels."""
        return sum(self.criterion(self.forward(p, x), label) for x, label in examples) / len(examples)


class KNRM(NeuralModel):
    """Kernel pooling of interactions, a linear score; EDRM-KNRM reads all four matrices.

    Liu et al., Entity-Duet Neural Ranking, ACL 2018. Trained: one weight per kernel and matrix. Here the vectors of
    words and entities are frozen: an entity is the vector of its text (name and description) and its own vector.
    """

    standardised_features = ("kernels",)

    def __init__(self, channels: Sequence[str] = ("ww", "we", "ew", "ee")) -> None:
        self.channels = channels

    def features(self, batch: Batch) -> Arrays:
        matched = matches(batch)
        kernels = np.concatenate([matched[name].sum(axis=1) for name in self.channels], axis=1)
        return {"score": batch.score, "kernels": kernels}

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:  # noqa: ARG002 - common signature
        return {"first": np.ones(1), "kernels": np.zeros(x["kernels"].shape[1])}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        return x["score"] * p["first"] + x["kernels"] @ p["kernels"]


class ConvKNRM(NeuralModel):
    """Kernel pooling of uni-, bi- and trigrams and entities: 16 matrices, 176 features.

    EDRM-ConvKNRM of Liu et al., ACL 2018. Trained: convolutions over tokens of length 1 to 3 and the projection of
    entities. Here tokens are first projected to 64 dimensions by a fixed random matrix, and n-grams are linear.
    """

    rate = 0.005

    def features(self, batch: Batch) -> Arrays:
        # Fixed, so that a saved model meets the same features.
        size = batch.words.shape[1]
        normal = np.random.default_rng(size).normal(size=(size, PROJECTED_SIZE)).astype(np.float32)
        narrow = normal / np.sqrt(PROJECTED_SIZE)
        named = ("words", "entities", "document_words", "document_entities")
        made = {name: np.einsum("...d,dr->...r", getattr(batch, name), narrow.astype(np.float32)) for name in named}
        return made | {name: getattr(batch, name) for name in ("score", "has_word", "link_weight", "same")}

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:  # noqa: ARG002 - common signature
        start = draw.normal(size=(N_GRAM, PROJECTED_SIZE)) / np.sqrt(N_GRAM)
        grams = {f"gram{n}": np.repeat(start[:, :, None], n, axis=2) for n in (1, 2, 3)}
        return {"first": np.ones(1), "entity": start.T.copy(), **grams, "kernels": np.zeros(16 * N_KERNELS)}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        torch = module_of_extra("torch", "neural")
        query = [*self._grams(p, x["words"][None]), _normal(x["entities"] @ p["entity"])[None]]
        document = [*self._grams(p, x["document_words"]), _normal(x["document_entities"] @ p["entity"])]
        cosines = torch.cat(query, dim=1) @ torch.cat(document, dim=1).transpose(1, 2)
        # The last rows and columns compare entities.
        n, e, m = x["same"].shape
        same = torch.nn.functional.pad(x["same"], (cosines.shape[2] - m, 0, cosines.shape[1] - e, 0))
        cosines = torch.maximum(cosines, 2 * same - 1)
        means, widths = torch.from_numpy(KERNEL_MEANS), torch.from_numpy(KERNEL_WIDTHS)
        response = (-((cosines[..., None] - means) ** 2) / (2 * widths**2)).exp()
        weight = torch.cat([*[x["has_word"]] * 3, x["link_weight"]], dim=1)
        sizes = [[part.shape[1] for part in parts] for parts in (query, document)]
        columns = (response * weight[:, None, :, None]).split(sizes[1], dim=2)
        total = torch.stack([column.sum(dim=2) for column in columns], dim=2)
        rows = (_LOG_SCALE * total.clamp(min=_MIN_KERNEL_SUM).log()).split(sizes[0], dim=1)
        kernels = torch.stack([row.sum(dim=1) for row in rows], dim=1).reshape(n, -1)
        return x["score"] * p["first"] + kernels @ p["kernels"]

    @staticmethod
    def _grams(p: Arrays, words: Any) -> list[Any]:
        nn = module_of_extra("torch", "neural").nn.functional
        if not words.shape[1]:
            return [words.new_zeros((len(words), 0, p[f"gram{n}"].shape[0])) for n in (1, 2, 3)]
        rows = words.transpose(1, 2)
        return [_normal(nn.conv1d(nn.pad(rows, (0, n - 1)), p[f"gram{n}"]).transpose(1, 2)) for n in (1, 2, 3)]


def _normal(vectors: Any) -> Any:
    return vectors / (vectors.square().sum(dim=-1, keepdim=True) + 1e-12).sqrt()


class Duet(NeuralModel):
    """Four-way interactions of words and entities with attention over the query's entities.

    Xiong, Callan and Liu, Word-Entity Duet, SIGIR 2017. Trained: one weight per kernel of each interaction, and the
    attention weights of :func:`query_entities`. Here all four interactions are kernel-pooled.
    """

    standardised_features = ("word", "entity", "attention")

    def features(self, batch: Batch) -> Arrays:
        matched = matches(batch)
        return {
            "score": batch.score,
            "word": np.concatenate([matched["ww"].sum(axis=1), matched["we"].sum(axis=1)], axis=1),
            "entity": np.concatenate([matched["ew"], matched["ee"]], axis=2),
            "attention": query_entities(batch),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:  # noqa: ARG002 - common signature
        return {"first": np.ones(1), **{name: np.zeros(x[name].shape[-1]) for name in self.standardised_features}}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        attention = (x["attention"] @ p["attention"]).softmax(dim=0)
        evidence = x["entity"] @ p["entity"]
        return x["score"] * p["first"] + x["word"] @ p["word"] + evidence @ attention


class EsdRank(NeuralModel):
    """Entities as a latent space between query and document: ``p(d | q) = Σ_o p(o | q) p(d | o, q)``.

    Xiong and Callan, EsdRank, CIKM 2015, with latent ListMLE: the likelihood that each relevant document is chosen
    before the documents with lower labels. ``p(o | q)`` is a softmax of :func:`query_entities`, and ``p(d | o, q)`` of
    first-stage score, link, share of the links, and cosines of texts and entities. One further object without features
    represents the query itself.
    """

    standardised_features = ("objects", "pairs")

    def features(self, batch: Batch) -> Arrays:
        n, e, _ = batch.same.shape
        links = np.einsum("nem,nm->ne", batch.same, batch.link_weight)
        similar = _similar(batch)
        has = (batch.link_weight > 0)[:, None, :]
        size = np.maximum(has.sum(axis=2), 1)
        pairs = np.zeros((n, e + 1, 6), dtype=np.float32)
        pairs[..., 0] = batch.score[:, None]
        pairs[:, 1:, 1], pairs[:, 1:, 2] = links, links / size
        pairs[:, 1:, 3] = batch.document_text @ batch.entities.T
        pairs[:, 1:, 4] = np.where(has, similar, 0).max(axis=2, initial=0)
        pairs[:, 1:, 5] = np.where(has, similar, 0).sum(axis=2) / size
        return {"objects": np.pad(query_entities(batch), ((1, 0), (0, 0))), "pairs": pairs}

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:  # noqa: ARG002 - common signature
        return {"objects": np.zeros(3), "pairs": np.eye(6)[0]}

    def _parts(self, p: Arrays, x: Arrays) -> tuple[Any, Any]:
        return (x["objects"] @ p["objects"]).log_softmax(dim=0), x["pairs"] @ p["pairs"]

    def forward(self, p: Arrays, x: Arrays) -> Any:
        of_object, of_pair = self._parts(p, x)
        return (of_object + of_pair.log_softmax(dim=0)).logsumexp(dim=1)

    def loss(self, p: Arrays, examples: Sequence[Example]) -> Any:
        total = 0.0
        for x, label in examples:
            of_object, of_pair = self._parts(p, x)
            better = label[:, None] > label
            chosen = better.any(dim=1)
            # Each relevant document competes with itself and the documents with lower labels.
            rivals = of_pair[None].masked_fill(~better[:, :, None], -np.inf).logsumexp(dim=1)
            choice = of_pair - rivals.logaddexp(of_pair)
            total = total - (of_object + choice)[chosen].logsumexp(dim=1).mean()
        return total / len(examples)


class EVA(NeuralModel):
    """Views of documents by clusters of their entities; the most similar view counts.

    Tran and Yates, Dense Retrieval with Entity Views, CIKM 2022, with the frozen encoder. Trained: the projections of
    [text; entities] of queries and of views, with an in-batch contrastive loss over the documents of all topics of a
    step. Views are k-means clusters of the entities of a document, at most three.
    """

    rate = 0.005

    def features(self, batch: Batch) -> Arrays:
        entities = batch.weight @ batch.vectors if len(batch.weight) else np.zeros(batch.vectors.shape[1])
        views, has_view = cluster_entities(batch.document_vectors, batch.link_weight)
        text = np.broadcast_to(batch.document_text[:, None], (*views.shape[:2], batch.document_text.shape[1]))
        return {
            "score": batch.score,
            "document": batch.document,
            "query": np.concatenate([batch.text, _unit(entities[None])[0]]).astype(np.float32),
            "views": np.concatenate([text, views], axis=2),
            "no_view": 1 - has_view,
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        start = draw.normal(size=(len(x["query"]), 2 * HIDDEN_SIZE)) / np.sqrt(2 * HIDDEN_SIZE)
        # Equal projections keep cosines; without a weight of the similarity, they would not be trained.
        return {"first": np.ones(1), "gate": np.full(1, 1 / SHARPNESS), "query": start, "view": start.copy()}

    @staticmethod
    def _similarities(p: Arrays, queries: Any, views: Any, no_view: Any) -> Any:
        """Return the similarity of queries (t, ·) with the nearest views (n, k, ·) of documents, shape (n, t)."""
        cosines = _normal(views @ p["view"]) @ _normal(queries @ p["query"]).T
        return SHARPNESS * (cosines - 4 * no_view[..., None]).amax(dim=1)

    def forward(self, p: Arrays, x: Arrays) -> Any:
        similarity = self._similarities(p, x["query"][None], x["views"], x["no_view"])[:, 0]
        return x["score"] * p["first"] + p["gate"] * similarity

    def loss(self, p: Arrays, examples: Sequence[Example]) -> Any:
        """Return the mean contrastive loss of some topics; documents of all of them are negatives."""
        torch = module_of_extra("torch", "neural")
        topics = [x for x, _ in examples]
        document = torch.cat([x["document"] for x in topics])
        views, no_view = (torch.cat([x[name] for x in topics]) for name in ("views", "no_view"))
        queries = torch.stack([x["query"] for x in topics])
        similarity = p["gate"] * self._similarities(p, queries, views, no_view)
        owner = torch.repeat_interleave(torch.tensor([len(x["score"]) for x in topics]))
        total = 0.0
        for at, (x, label) in enumerate(examples):
            score = x["score"] * p["first"] + similarity[owner == at, at]
            # A document that the first stage did not retrieve has its lowest score.
            outside = ~torch.isin(document, x["document"])
            beyond = x["score"].min() * p["first"] + similarity[outside, at]
            rivals = torch.cat([score[label <= 0], beyond]).logsumexp(dim=0)
            positive = score[label > 0]
            total = total + (rivals.logaddexp(positive) - positive).mean()
        return total / len(examples)


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.sqrt((vectors**2).sum(axis=-1, keepdims=True)), 1e-12)


def cluster_entities(vectors: Single, weight: Single) -> tuple[Single, Single]:
    """Cluster the entities of each document by k-means with cosines, started from the farthest entities.

    ``vectors`` (n, m, v) are unit vectors, ``weight`` (n, m) is 0 for padding. Returns unit centroids, shape (n,
    N_VIEWS, v), and 1 for views in use, shape (n, N_VIEWS); a document without entities has one view of zeros.
    """
    rows, real = np.arange(len(vectors)), weight > 0
    centres = np.zeros((len(vectors), N_VIEWS, vectors.shape[2]), dtype=np.float32)
    used = np.zeros((len(vectors), N_VIEWS), dtype=np.float32)
    nearest = np.where(real, -1.0, np.inf)
    # The heaviest entity first, then the entity that is farthest from the centres; copies of a centre are no view.
    chosen = weight.argmax(axis=1)
    for view in range(N_VIEWS):
        new = nearest[rows, chosen] < 1 - 1e-6 if view else np.ones(len(rows), dtype=bool)
        centres[new, view], used[new, view] = vectors[rows, chosen][new], 1
        cosines = np.einsum("nmv,nv->nm", vectors, centres[:, view])
        nearest = np.maximum(nearest, np.where(new[:, None], cosines, -1.0))
        chosen = nearest.argmin(axis=1)
    for _ in range(_CLUSTER_STEPS):
        cosines = np.einsum("nmv,nkv->nmk", vectors, centres) - 4 * (1 - used[:, None])
        belongs = (cosines.argmax(axis=2)[..., None] == np.arange(N_VIEWS)) * weight[..., None]
        moved = _unit(np.einsum("nmk,nmv->nkv", belongs, vectors)).astype(np.float32)
        filled = (belongs.sum(axis=1) > 0)[..., None]
        centres = np.where(filled, moved, centres)
    return centres, used


class DREQ(NeuralModel):
    """Interactions of a query and a hybrid document vector: ``[q, d, q + d, q - d, q ∘ d]``, a linear score.

    Chatterjee, Mackie and Dalton, DREQ, ECIR 2024, with the frozen encoder: ``d = W [text; Σ_e weight(e) v(e)]`` over
    the entities of the query that the document mentions, ``q`` the text of the query by the same map of texts. Trained
    with binary cross-entropy: W and the linear layer.
    """

    rate = 0.005
    criterion = staticmethod(cross_entropy)

    def features(self, batch: Batch) -> Arrays:
        mentioned = np.einsum("nem,nm->ne", batch.same, batch.link_weight)
        return {
            "score": batch.score,
            "query": batch.text,
            "text": batch.document_text,
            "entities": np.einsum("ne,e,ev->nv", mentioned, batch.weight, batch.vectors),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        sizes = {"text": x["text"].shape[1], "entities": x["entities"].shape[1]}
        maps = {name: draw.normal(size=(size, HIDDEN_SIZE)) for name, size in sizes.items()}
        return {"first": np.ones(1), "bias": np.zeros(1), **maps, "layer": np.zeros(5 * HIDDEN_SIZE)}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        document = x["text"] @ p["text"] + x["entities"] @ p["entities"]
        query = (x["query"] @ p["text"]).expand_as(document)
        parts = [query, document, query + document, query - document, query * document]
        joined = module_of_extra("torch", "neural").cat(parts, dim=1)
        return x["score"] * p["first"] + p["bias"] + joined @ p["layer"]


class QDER(DREQ):
    """Cross-attention of tokens and of entities, added and multiplied, with a bilinear score.

    Chatterjee and Dalton, QDER, SIGIR 2025, with the frozen encoder: each token of the query attends to the tokens of
    the document, each entity of the query to its entities; the attended vectors are averaged, by weight for entities.
    ``a = [t_q + t_d; x_q + x_d]``, ``m = [t_q ∘ t_d; x_q ∘ x_d]``. Trained with binary cross-entropy: a linear score of
    both and a bilinear form of rank 4.
    """

    rate = 0.002

    def features(self, batch: Batch) -> Arrays:
        weight = batch.weight / max(float(batch.weight.sum()), 1e-12)
        even = np.full(len(batch.words), 1 / max(len(batch.words), 1), dtype=np.float32)
        tokens = _attention_means(
            _cosines(batch.words, batch.document_words), batch.document_words, batch.has_word, even
        )
        entities = _attention_means(_similar(batch), batch.document_vectors, batch.link_weight, weight)
        query = np.concatenate([even @ batch.words, weight @ batch.vectors])
        size = np.float32(len(query))
        document = np.concatenate([tokens, entities], axis=1)
        # The elements of unit vectors are small: scaled to the size of the other features.
        return {
            "score": batch.score,
            "added": ((query + document) * np.sqrt(size)).astype(np.float32),
            "multiplied": (query * document * size).astype(np.float32),
        }

    def parameters(self, x: Arrays, draw: np.random.Generator) -> Arrays:
        size = x["added"].shape[1]
        maps = {"left": draw.normal(size=(size, RANK)) / size, "right": np.zeros((size, RANK))}
        return {"first": np.ones(1), "bias": np.zeros(1), **maps, "added": np.zeros(size), "multiplied": np.zeros(size)}

    def forward(self, p: Arrays, x: Arrays) -> Any:
        linear = x["added"] @ p["added"] + x["multiplied"] @ p["multiplied"]
        bilinear = ((x["added"] @ p["left"]) * (x["multiplied"] @ p["right"])).sum(dim=1)
        return x["score"] * p["first"] + p["bias"] + linear + bilinear


def _attention_means(similarity: Single, document: Single, weight: Single, share: Single) -> Single:
    """Return the mean, by share, of the vectors that each query vector attends to, shape (n, d)."""
    attention = np.exp(SHARPNESS * (similarity - 1)) * weight[:, None, :]
    attention /= np.maximum(attention.sum(axis=2, keepdims=True), 1e-12)
    made: Single = np.einsum("nqw,q,nwd->nd", attention, share, document, optimize=True)
    return made


MODELS: dict[str, NeuralModel] = {
    "knrm": KNRM(("ww",)),
    "edrm-knrm": KNRM(),
    "edrm-convknrm": ConvKNRM(),
    "duet": Duet(),
    "esdrank": EsdRank(),
    "eva": EVA(),
    "dreq": DREQ(),
    "qder": QDER(),
}
