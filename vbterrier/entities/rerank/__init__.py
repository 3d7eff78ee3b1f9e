"""Five families of unsupervised document rerankers that use the entities of queries."""

from vbterrier.entities.rerank.base import Reranker
from vbterrier.entities.rerank.embedding import EmbeddingReranker, SimilarityPropagationReranker
from vbterrier.entities.rerank.expansion import ExpandByEntities, ExpansionReranker
from vbterrier.entities.rerank.overlap import OverlapReranker, PropagationReranker

__all__ = [
    "FAMILIES",
    "EmbeddingReranker",
    "ExpandByEntities",
    "ExpansionReranker",
    "OverlapReranker",
    "PropagationReranker",
    "Reranker",
    "SimilarityPropagationReranker",
]


FAMILIES: dict[str, type[Reranker]] = {
    "overlap": OverlapReranker,
    "expansion": ExpansionReranker,
    "embedding": EmbeddingReranker,
    "propagation": PropagationReranker,
    "similarity": SimilarityPropagationReranker,
}
