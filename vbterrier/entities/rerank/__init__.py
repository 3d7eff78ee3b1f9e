"""Five families of unsupervised document rerankers that use the entities of queries."""

from vbterrier.entities.rerank.base import Reranker
from vbterrier.entities.rerank.embedding import EmbeddingReranker as EmbeddingReranker
from vbterrier.entities.rerank.embedding import SimilarityPropagationReranker as SimilarityPropagationReranker
from vbterrier.entities.rerank.expansion import ExpandByEntities as ExpandByEntities
from vbterrier.entities.rerank.expansion import ExpansionReranker as ExpansionReranker
from vbterrier.entities.rerank.overlap import OverlapReranker as OverlapReranker
from vbterrier.entities.rerank.overlap import PropagationReranker as PropagationReranker

RERANKER_FAMILIES: dict[str, type[Reranker]] = {
    "overlap": OverlapReranker,
    "expansion": ExpansionReranker,
    "embedding": EmbeddingReranker,
    "propagation": PropagationReranker,
    "similarity": SimilarityPropagationReranker,
}
