"""Reranking by the cosine of entity and document vectors, and by propagation between similar documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.rankers.similarity import blocks, inner, known_vectors, unit
from vbterrier.entities.rerank.base import ENTITY_WEIGHTS, Interpolation, by_id, entity_weights
from vbterrier.entities.rerank.overlap import PropagationReranker
from vbterrier.errors import InputError, ParameterError, choice, whole
from vbterrier.frames.entity_coverage import warn_of_no_entities
from vbterrier.frames.ids import column_ids
from vbterrier.kernels.tolerances import COMPARED_DECIMALS, ROUNDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.linked_pool import LinkedPool


class EmbeddingReranker(Interpolation):
    """Rerank documents by their score and the cosine of their vector with the vector of the entities: R -> R.

    ``score' = (1 - weight) norm(score) + weight norm(cos(c_q, c_d))``: ``c_q`` is the centroid of the vectors of the
    first entities, ``c_d`` the centroid of the entities that the document mentions, or a given vector of the document.
    Vectors are scaled to length 1 before they are averaged.

    Parameters
    ----------
    links, entities, cutoff, weight, norm
        See :class:`~vbterrier.entities.OverlapReranker`.
    embeddings
        Vectors of entities by id: anything with ``in`` and ``[id]``, such as a dictionary or word vectors.
    document_embeddings
        Vectors of documents by docno, from the same model; ``None`` for the centroids of their entities.
    entity_weight
        The weight of an entity in ``c_q``, see :func:`vbterrier.entities.rerank.base.entity_weights`.
    confidence
        If True, weight the entities in ``c_d`` by their links.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        Vectors of different lengths or not finite; scores below 0 as weights. See the contracts of
        runs, tags and K frames.

    Notes
    -----
    Entities without a vector are left out of centroids, with a warning; the cosine of a document or a topic without
    vectors is 0.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (iii).

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Texas", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Rome"], "score": [1.0]})
    >>> vectors = {"Paris": [1.0, 0.1], "Rome": [1.0, 0.0], "Texas": [0.0, 1.0]}
    >>> stage = EmbeddingReranker(tags, entities, vectors, weight=0.75)
    >>> stage.transform(run)[["docno", "score"]].values.tolist()
    [['d2', 0.75], ['d1', 0.25]]
    """

    def __init__(
        self,
        links: Any,
        entities: Any,
        embeddings: Mapping[str, Any],
        *,
        document_embeddings: Mapping[str, Any] | None = None,
        cutoff: int = 20,
        weight: float = 0.5,
        entity_weight: str = "uniform",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self._set_common(cutoff, norm, weight)
        self.embeddings = _vectors_by_id(embeddings)
        self.document_embeddings = by_id("document_embeddings", document_embeddings)
        self.entity_weight = choice("entity_weight", entity_weight, ENTITY_WEIGHTS)
        self.confidence = bool(confidence)

    def _check_ids(self, listed: TopEntities) -> None:
        """Accept entities that no document mentions: they need a vector only, and a warning reports missing vectors."""
        warn_of_no_entities(listed.ids, listed.pool.topics, "entities")

    def prepare_documents(self, documents: Documents) -> DocumentVectors | Centroids:
        """Return the vectors of documents."""
        if self.document_embeddings is None:
            return Centroids(documents.pool, self.embeddings)
        return DocumentVectors(documents.pool, self.document_embeddings)

    def match_entities(self, listed: TopEntities, prepared: Any) -> Floats:
        """Return the cosine of each document's vector with its topic's, 0 without either, shape (n_documents,)."""
        vectors = _unit_vectors(self.embeddings, listed.ids, "selected entities")
        queries = np.zeros((len(listed.pool.topics), vectors.shape[1]))
        np.add.at(queries, listed.topic, vectors * entity_weights(listed, self.entity_weight)[:, None])
        sizes = prepared.vectors.shape[1], queries.shape[1]
        if 0 in sizes:
            return np.zeros(len(listed.pool))
        if sizes[0] != sizes[1]:
            raise InputError(
                f"vectors of documents have {sizes[0]} numbers, vectors of entities {sizes[1]}; use the same embedding "
                "model"
            )
        return np.asarray(prepared.cosines(np.nan_to_num(unit(queries)), confidence=self.confidence))


class SimilarityPropagationReranker(PropagationReranker):
    """Rerank documents by propagating scores, with restarts, between documents of similar entities: R -> R.

    ``f_0 = norm(score)``, ``f_{t+1} = (1 - damping) f_0 + damping S f_t``: S maps the score of a document to the mean
    score of its nearest documents in the topic, weighted by cosines above 0. The vector of a document is the centroid
    of the vectors of the entities in ``Λ(d) ∩ Ê^k``.

    Parameters
    ----------
    links, entities, cutoff, damping, steps, entity_weight, confidence, norm
        See :class:`~vbterrier.entities.PropagationReranker`; ``entity_weight`` and ``confidence`` weight entities in
        centroids.
    embeddings
        Vectors of entities by id, see :class:`EmbeddingReranker`.
    neighbours
        The number of nearest documents; documents with the cosine of the last one count, too.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See :class:`EmbeddingReranker`.

    Notes
    -----
    Documents without a listed entity that has a vector, or without a document of positive cosine, keep their score. The
    cost of a topic is quadratic in its documents. The paper names graphs of similarity and does not define them.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (iv). Zhou et al.: Learning with Local
    and Global Consistency, NIPS 2003.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [4.0, 1.0, 0.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d3"], "entity_id": ["Paris", "Lyon"]})
    >>> entities = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["Paris", "Lyon"], "score": [2.0, 1.0]})
    >>> vectors = {"Paris": [1.0, 0.2], "Lyon": [1.0, 0.1]}
    >>> stage = SimilarityPropagationReranker(tags, entities, vectors, damping=0.8, steps=1)
    >>> stage.transform(run)[["docno", "score"]].round(3).values.tolist()
    [['d3', 0.8], ['d2', 0.25], ['d1', 0.2]]
    """

    def __init__(
        self,
        links: Any,
        entities: Any,
        embeddings: Mapping[str, Any],
        *,
        neighbours: int = 10,
        cutoff: int = 20,
        damping: float = 0.5,
        steps: int = 2,
        entity_weight: str = "uniform",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        options: dict[str, Any] = {"entity_weight": entity_weight, "confidence": confidence, "norm": norm}
        super().__init__(links, entities, cutoff=cutoff, damping=damping, steps=steps, **options)
        self.embeddings, self.neighbours = _vectors_by_id(embeddings), whole("neighbours", neighbours)

    def match_entities(self, listed: TopEntities, prepared: Any) -> Neighbours:
        """Return the weighted graph of each topic's documents."""
        vectors, pool = _unit_vectors(self.embeddings, listed.ids, "selected entities"), listed.pool
        weights = super().match_entities(listed, prepared).weight
        made = np.zeros((len(pool), vectors.shape[1]))
        np.add.at(made, listed.document, vectors[listed.owner] * weights[:, None])
        return Neighbours(np.nan_to_num(unit(made)), pool.topic_starts, self.neighbours)


def _vectors_by_id(embeddings: Any) -> Any:
    if embeddings is None:
        raise ParameterError("embeddings: found None, wanted vectors of entities by id")
    return by_id("embeddings", embeddings)


class Neighbours:
    """The nearest documents of each document among those of its topic, by the cosine of unit vectors or zeros."""

    def __init__(self, vectors: Floats, starts: Ints, n: int) -> None:
        from scipy import sparse

        blocks = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            # Equal vectors are equally near, whatever the rounding of their products.
            cosine = np.round(vectors[start:stop] @ vectors[start:stop].T, COMPARED_DECIMALS)
            np.fill_diagonal(cosine, 0.0)
            cosine[cosine < 0] = 0.0
            if n < len(cosine):
                cosine[cosine < np.partition(cosine, -n, axis=1)[:, -n, None]] = 0.0
            blocks.append(sparse.csr_array(cosine))
        self._weight = sparse.block_diag(blocks, format="csr") if blocks else sparse.csr_array((0, 0))
        self._total: Floats = np.asarray(self._weight.sum(axis=1)).ravel()

    def propagate_scores(self, score: Floats) -> Floats:
        """Return the weighted mean score of each document's neighbours, its own score without any."""
        summed = np.asarray(self._weight @ score)
        means: Floats = np.divide(summed, self._total, out=score.astype(np.float64), where=self._total > 0)
        return means


class DocumentVectors:
    """Given vectors of the documents of a pool, by docno, for cosines."""

    def __init__(self, pool: LinkedPool, vectors: Mapping[str, Any]) -> None:
        self.pool = pool
        names, self._number = pool.docno.codes()
        self.vectors = _unit_vectors(vectors, column_ids(pd.Series(names, dtype=str), "documents"), "documents")

    def cosines(self, queries: Floats, *, confidence: bool) -> Floats:  # noqa: ARG002 - as of centroids
        """Return the cosine of each document with its topic's unit vector, shape (n_documents,)."""
        return inner(self.vectors, self._number, queries, self.pool.topic)


class Centroids:
    """Centroids of the vectors of the entities of each document of a pool, for cosines."""

    def __init__(self, pool: LinkedPool, embeddings: Mapping[str, Any]) -> None:
        self.pool = pool
        is_used = np.bincount(pool.entity, minlength=len(pool.entities)) > 0
        # The place of each entity among those that occur; a table, since sorting all links costs more.
        self._place: Ints = np.cumsum(is_used) - 1
        self.vectors = _unit_vectors(embeddings, pool.entities.take(np.flatnonzero(is_used)), "entities of documents")
        self._lengths: dict[bool, Floats] = {}

    def cosines(self, queries: Floats, *, confidence: bool) -> Floats:
        """Return the cosine of each document with its topic's unit vector, shape (n_documents,)."""
        pool = self.pool
        weights = pool.weight if confidence else np.ones(len(pool.entity))
        if confidence not in self._lengths:
            self._lengths[confidence] = self._length(weights)
        # Once per pair of topic and entity.
        topic, entity = np.divmod(pool.pairs, max(len(pool.entities), 1))
        of_link = inner(self.vectors, self._place[entity], queries, topic)[pool.pair]
        products, lengths = (
            np.bincount(pool.document, of_link * weights, minlength=len(pool)),
            self._lengths[confidence],
        )
        return np.divide(products, lengths, out=np.zeros(len(products)), where=lengths > ROUNDING)

    def _length(self, weights: Floats) -> Floats:
        """Return the length of each document's weighted sum of vectors."""
        from scipy import sparse

        shape = len(self.pool), len(self.vectors)
        links = sparse.csr_array((weights, self._place[self.pool.entity], self.pool.starts), shape=shape)
        lengths = np.empty(len(self.pool))
        for some in blocks(len(self.pool)):
            sums = np.asarray(links[some] @ self.vectors)
            lengths[some] = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        return lengths


def _unit_vectors(vectors: Mapping[str, Any], ids: Ids, what: str) -> Floats:
    """Return unit vectors, zeros for ids without a vector (with a warning), shape (n, d)."""
    return known_vectors(vectors, ids.text.to_pylist(), f"{what} have no vector and are ignored")
