"""Scoring functions of the published entity-oriented rerankers, as their code computes them.

Each function takes parameters ``p`` and inputs of n documents of one query as tensors of PyTorch, and returns what the
published code of the paper computes; padding has mask or count 0. :mod:`vbterrier.entities.neural.reference` makes the
inputs and trains the parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.entities.neural.models import KERNEL_MEANS, KERNEL_WIDTHS
from vbterrier.errors import module_of_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.entities.neural.models import Arrays

# Interactions of QDER in the order of their concatenation.
INTERACTIONS = ("subtract", "add", "multiply")
# Epsilon of layer normalisation, least norm of unit vectors, least sum of a kernel, and scale of its logarithm.
_EPSILON, _LEAST_NORM, _MIN_KERNEL_SUM, _LOG_SCALE = 1e-5, 1e-10, 1e-10, 0.01
# Pairs of n-grams (1, 2, 3) and entities (e) of query and document, in the order of EDRM's features.
PAIRS = ("11", "13", "12", "21", "31", "22", "23", "32", "33", "e1", "e2", "e3", "1e", "2e", "3e", "ee")
WORD_PAIRS = ("11", "1e", "e1", "ee")
# Kernels of EVA's variant; the last weight is that of the constant 1.
EVA_MEANS, EVA_WIDTHS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0), (0.1, 0.1, 0.1, 0.1, 0.1, 1e-3)
_EVA_FLOOR, _EVA_NEAR = 1e-6, 0.8
# The difference of cosines below which a triple is trained without entities.
EVA_WRONG = -0.3


def unit(vectors: Any) -> Any:
    """Return vectors of length 1, and vectors shorter than 1e-10 divided by 1e-10."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=_LEAST_NORM)


def cross_attention(query: Any, document: Any, mask: Any) -> Any:
    """Return ``softmax(Q D^T) D`` over the real rows of D, shape (n, q, d); 0 for documents without real rows.

    No projection, scale or temperature. ``query`` (n, q, d), ``document`` (n, w, d), ``mask`` (n, w).
    """
    if not document.shape[1]:
        return query.new_zeros(query.shape)
    products = query @ document.transpose(1, 2)
    weight = products.masked_fill(~mask.bool()[:, None], -float("inf")).softmax(dim=2)
    return weight.nan_to_num(0) @ document


def interactions(query: Any, query_mask: Any, document: Any, mask: Any, used: Sequence[str]) -> list[Any]:
    """Return the means over real query rows of the interactions of Q with what each row attends to, each (n, d).

    ``subtract``: Q - A, ``add``: Q + A, ``multiply``: Q ∘ A, with A of :func:`cross_attention`. The product comes
    first, the mean second.
    """
    rows, weight = cross_attention(query, document, mask), query_mask.to(query.dtype)[..., None]
    size = weight.sum(dim=1).clamp(min=1e-9)
    every = {"subtract": query - rows, "add": query + rows, "multiply": query * rows}
    return [(every[name] * weight).sum(dim=1) / size for name in INTERACTIONS if name in used]


def qder_pooled(
    x: Arrays, used: Sequence[str] = ("add", "multiply"), *, entities: bool = True, first_stage: bool = True
) -> Any:
    """Return the pooled interactions of QDER, text before entities, shape (n, c).

    ``query_tokens`` (n, q, d), ``document_tokens`` (n, w, d), ``query_entities`` (n, e, v), ``document_entities`` (n,
    m, v), each with a mask; entity vectors are multiplied by run scores. With ``first_stage``, each row is multiplied
    by the first-stage score of its document, which layer normalisation undoes for positive scores.
    """
    channels = [("query_tokens", "query_mask", "document_tokens", "document_mask")]
    if entities:
        channels.append(("query_entities", "query_entity_mask", "document_entities", "document_entity_mask"))
    parts = [part for a, b, c, d in channels for part in interactions(x[a], x[b], x[c], x[d], used)]
    pooled = module_of_extra("torch", "neural").cat(parts, dim=1)
    return pooled * x["first_stage"][:, None] if first_stage else pooled


def layer_norm(p: Arrays, c: Any) -> Any:
    """Return layer normalisation with biased variance, ``norm_gain`` and ``norm_bias``, shape (n, c)."""
    nn = module_of_extra("torch", "neural").nn.functional
    return nn.layer_norm(c, c.shape[1:], p["norm_gain"], p["norm_bias"], _EPSILON)


def qder(p: Arrays, pooled: Any) -> Any:
    """Return the scores of QDER, ``x^T B x + b`` or, for a vector of weights, ``w x + b``, x of :func:`layer_norm`.

    Chatterjee and Dalton, QDER, SIGIR 2025, and its code.
    """
    x, weight = layer_norm(p, pooled), p["score_weight"]
    return (x @ weight if weight.ndim == 1 else ((x @ weight) * x).sum(dim=1)) + p["score_bias"]


def dreq_interactions(p: Arrays, x: Arrays) -> Any:
    """Return ``[q; d; q + d; q - d; q ∘ d]``, q and d linear maps of the query's text and of the document's hybrid.

    ``query_text`` (n, t), ``document_text`` (n, t), ``document_entities`` (n, v): sums of weighted entity vectors.
    """
    torch = module_of_extra("torch", "neural")
    document = torch.cat([x["document_text"], x["document_entities"]], dim=1)
    q = x["query_text"] @ p["query_weight"].T + p["query_bias"]
    d = document @ p["document_weight"].T + p["document_bias"]
    return torch.cat([q, d, q + d, q - d, q * d], dim=1)


def dreq(p: Arrays, x: Arrays) -> Any:
    """Return the scores of DREQ, linear in :func:`dreq_interactions`.

    Chatterjee, Mackie and Dalton, DREQ, ECIR 2024, and its code: neither a nonlinearity nor a first-stage score.
    """
    return dreq_interactions(p, x) @ p["score_weight"] + p["score_bias"]


def entity_vectors(p: Arrays, entity: Any, description: Any, types: Any, words: Any) -> Any:
    """Return unit vectors of entities, ``id + description + type``, shape (n, e, v).

    ``entity`` (n, e) and ``types`` (n, e, 15) are rows of their tables, ``description`` (n, e, 20) and ``words`` (n,
    w), those of the query or the document of the entities, rows of ``word``. The description is the maximum over 16
    positions of ``ReLU(convolution of width 5)``, padding not masked. The types are weighted by ``softmax(b u(type))``,
    padding too, b the sum over all word positions of ``W w + c``.
    """
    torch = module_of_extra("torch", "neural")
    n, e = entity.shape
    # Documents share entities, and all of them those of the query.
    distinct, place = description.reshape(n * e, -1).unique(dim=0, return_inverse=True)
    described = word_convolution(p["word"], distinct, p["description_weight"], p["description_bias"])
    text = described.relu().amax(dim=1)[place.reshape(n, e)]
    bag = torch.nn.functional.embedding_bag(words, p["word"], mode="sum") @ p["bag_weight"].T
    bag = bag + words.shape[1] * p["bag_bias"]
    # The weight of each type of the table: documents share types, too.
    table = p["type"]
    weight = (bag @ table.T)[:, None].expand(-1, e, -1).gather(2, types).softmax(dim=2)
    share = weight.new_zeros(n, e, len(table)).scatter_add(2, types, weight)
    return unit(p["entity"][entity] + text + share @ table)


def kernel_pooling(query: Any, query_weight: Any, document: Any, document_weight: Any) -> Any:
    """Return kernel-pooled cosines of unit vectors (n, q, d) and (n, w, d), shape (n, 11).

    ``Σ_i m_i 0.01 ln max(Σ_j m_j exp(-(cos_ij - μ_k)²/(2 σ_k²)), 1e-10)``; the weights m are masks of words and counts
    of entities. Xiong et al., KNRM, SIGIR 2017.
    """
    torch = module_of_extra("torch", "neural")
    cosines = (query @ document.transpose(1, 2))[..., None]
    means, widths = torch.from_numpy(KERNEL_MEANS).to(cosines.dtype), torch.from_numpy(KERNEL_WIDTHS).to(cosines.dtype)
    response = (-((cosines - means) ** 2) / (2 * widths**2)).exp() * document_weight[:, None, :, None]
    rows = _LOG_SCALE * response.sum(dim=2).clamp(min=_MIN_KERNEL_SUM).log()
    return (rows * query_weight[..., None]).sum(dim=1)


def word_convolution(vectors: Any, words: Any, weight: Any, bias: Any) -> Any:
    """Return the convolution of words without padding, (n, w) rows of ``vectors`` -> (n, w - size + 1, f).

    A filter (f, d, size) is a sum of products with one word each, which occurrences of the word share.
    """
    nn, (f, d, size) = module_of_extra("torch", "neural").nn.functional, weight.shape
    distinct, place = words.unique(return_inverse=True)
    products = (vectors[distinct] @ weight.permute(1, 2, 0).reshape(d, size * f)).reshape(-1, f)
    windows = (size * place).unfold(1, size, 1) + place.new_tensor(range(size))
    rows = nn.embedding_bag(windows.reshape(-1, size), products, mode="sum")
    return rows.reshape(*windows.shape[:2], f) + bias


def n_grams(p: Arrays, words: Any, size: int) -> Any:
    """Return unit vectors of n-grams, ``ReLU(convolution)`` without padding, (n, w) -> (n, w - size + 1, f)."""
    return unit(word_convolution(p["word"], words, p[f"gram{size}_weight"], p[f"gram{size}_bias"]).relu())


def edrm_features(p: Arrays, x: Arrays, pairs: Sequence[str] = PAIRS) -> Any:
    """Return the kernel-pooled features of EDRM, matrix by matrix, shape (n, 11 pairs).

    ``query_words`` (n, q), ``document_words`` (n, w), ``query_entity`` (n, e), ``document_entity`` (n, m) are rows of
    tables, 0 for padding; entities have counts, descriptions and types. Without convolutions (EDRM-KNRM, KNRM), 1-grams
    are unit vectors of words.
    """
    torch = module_of_extra("torch", "neural")
    sides, embedding = [], torch.nn.functional.embedding
    for at, side in enumerate(("query", "document")):
        words = x[f"{side}_words"]
        mask = (words > 0).to(p["word"].dtype)
        parts = {}
        for name in {pair[at] for pair in pairs} - {"e"}:
            rows = n_grams(p, words, int(name)) if f"gram{name}_weight" in p else embedding(words, unit(p["word"]))
            parts[name] = rows, mask[:, : rows.shape[1]]
        if any(pair[at] == "e" for pair in pairs):
            inputs = (x[f"{side}_{name}"] for name in ("entity", "entity_description", "entity_types", "words"))
            parts["e"] = entity_vectors(p, *inputs), x[f"{side}_entity_count"]
        sides.append(parts)
    query, document = sides
    return torch.cat([kernel_pooling(*query[pair[0]], *document[pair[1]]) for pair in pairs], dim=1)


def edrm(p: Arrays, features: Any) -> Any:
    """Return the scores of EDRM and KNRM, ``tanh(w f + b)``.

    Liu et al., Entity-Duet Neural Ranking, ACL 2018, and its code.
    """
    return (features @ p["score_weight"] + p["score_bias"]).tanh()


def duet(p: Arrays, x: Arrays) -> tuple[Any, Any, Any]:
    """Return the scores of AttR-Duet, shape (n,), and the ranking and attention scores of words and entities.

    ``Σ_words (w₁ R_t)(a₁ A_t) + Σ_entities (w₂ R_e)(a₂ A_e)``: ``word_match`` (n, t, f), ``word_attention`` (n, t, g),
    ``entity_match`` (n, e, f'), ``entity_attention`` (n, e, g'); padding is zero. Xiong, Callan and Liu, Word-Entity
    Duet, SIGIR 2017, and its code: neither biases nor a softmax.
    """
    torch, units = module_of_extra("torch", "neural"), ("word", "entity")
    rank = torch.cat([x[f"{unit}_match"] @ p[f"{unit}_match_weight"] for unit in units], dim=1)
    attention = torch.cat([x[f"{unit}_attention"] @ p[f"{unit}_attention_weight"] for unit in units], dim=1)
    return (rank * attention).sum(dim=1), rank, attention


def eva_view(query_entities: Any, view: Any, mask: Any) -> Any:
    """Return the mean of the passage entities nearest to each query entity, shape (n, v).

    0 unless the largest cosine of every query entity is above .8. ``query_entities`` (e, v), ``view`` (n, m, v).
    """
    if not len(query_entities) or not view.shape[1]:
        return view.new_zeros(len(view), view.shape[2])
    cosines = (unit(query_entities) @ unit(view).transpose(1, 2)).masked_fill(~mask.bool()[:, None], -float("inf"))
    best, nearest = cosines.max(dim=2)
    nearest_mean = view.gather(1, nearest[..., None].expand(-1, -1, view.shape[2])).mean(dim=1)
    return nearest_mean * (best > _EVA_NEAR).all(dim=1)[:, None]


def eva_vector(p: Arrays, text: Any, entities: Any) -> Any:
    """Return ``[text; entities W + b]``, shape (n, t + v); entities are means, and one W serves both sides."""
    torch = module_of_extra("torch", "neural")
    return torch.cat([text, entities @ p["entity"] + p["entity_bias"]], dim=-1)


def eva_kernels(query_entities: Any, tokens: Any, mask: Any) -> Any:
    """Return the kernels of query entities over words and entities of passages, and 1, shape (n, 7).

    ``Σ over query entities of ln(Σ_j exp(-(cos_ij - μ_k)²/(2 σ_k²)) + 1e-6)``. ``tokens`` (n, m, v).
    """
    torch = module_of_extra("torch", "neural")
    cosines = (unit(query_entities) @ unit(tokens).transpose(1, 2))[..., None]
    means, widths = (cosines.new_tensor(values) for values in (EVA_MEANS, EVA_WIDTHS))
    response = (-((cosines - means) ** 2) / (2 * widths**2)).exp() * mask[:, None, :, None]
    rows = (response.sum(dim=2) + _EVA_FLOOR).log().sum(dim=1)
    return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
