"""Reranking by entity overlap with the query, and by score propagation between documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rerank.base import ENTITY_WEIGHTS, Interpolation, Reranker, entity_weights, normalise_by_topic
from vbterrier.errors import choice, number, warn, whole

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities


LINK_WEIGHTS = ("uniform", "document", "entity")


def overlap(listed: TopEntities, entity_weight: str, link_weight: str, *, confidence: bool) -> Floats:
    """Return the overlap of each document with the listed entities, see :class:`OverlapReranker`; (n_documents,)."""
    pool = listed.pool
    per_entity = listed.score if entity_weight == "score" else entity_weights(listed, entity_weight)
    link = pool.weight[listed.link] if confidence else np.ones(len(listed.link))
    if link_weight == "entity":
        total = np.bincount(listed.owner, link, minlength=len(per_entity))
        per_entity = np.divide(per_entity, total, out=np.zeros(len(per_entity)), where=total > 0)
    scores = listed.document_sums(per_entity[listed.owner] * link)
    return scores / np.maximum(np.diff(pool.starts), 1) if link_weight == "document" else scores


class OverlapReranker(Interpolation):
    """Rerank documents by their score and the number of first entities that they mention: R -> R.

    ``score' = (1 - weight) norm(score) + weight norm(Σ v(e) w(d, e))``, the sum over ``Λ(d) ∩ Ê^k``.

    Parameters
    ----------
    links
        The entities of documents: a :class:`~vbterrier.entities.LinkedPool`, its K frame, or tags (docno,
        entity_id [, weight, qid]).
    entities
        An entity run (qid, docno: an entity id, score), or a stage that returns one for the input run.
    cutoff
        The number of entities of each topic that count.
    weight
        The weight of the evidence, 0 (document score only) to 1 (evidence only).
    entity_weight
        The weight v of an entity, see :func:`vbterrier.entities.rerank.base.entity_weights`.
    link_weight
        The weight w of a link. ``"uniform"``: 1. ``"document"``: ``1/|Λ(d)|``, so that the sum is the share of the
        document's entities that are listed. ``"entity"``: 1 over the number of the topic's documents that mention the
        entity, ``p(d|e)``; with ``entity_weight="score"``, the sum is the probability ``Σ_e p(e|q) p(d|e)`` of a walk
        from the query over its entities, up to a factor.
    confidence
        Multiply w by the confidence of the link; ``p(d|e)`` is then in proportion to it.
    norm
        The normalisation of both parts in each topic: ``"minmax"``, ``"z"`` or ``"none"``; see
        :func:`vbterrier.entities.rerank.base.normalise_by_topic`.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    With ``entity_weight="score"``, negative entity scores, such as log probabilities, lower the scores of documents
    that mention the entities; a warning reports them.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (i).

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d3"], "entity_id": ["Texas", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> OverlapReranker(tags, entities, weight=0.6).transform(run)[["docno", "score"]].values.tolist()
    [['d3', 0.6], ['d1', 0.4], ['d2', 0.2]]
    """

    def __init__(
        self,
        links: Any,
        entities: Any,
        *,
        cutoff: int = 20,
        weight: float = 0.5,
        entity_weight: str = "uniform",
        link_weight: str = "uniform",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self._set_common(cutoff, norm, weight)
        self.entity_weight = choice("entity_weight", entity_weight, ENTITY_WEIGHTS)
        self.link_weight = choice("link_weight", link_weight, LINK_WEIGHTS)
        self.confidence = bool(confidence)

    def match_entities(self, listed: TopEntities, prepared: Any) -> Floats:  # noqa: ARG002 - common signature
        """Return the overlap."""
        if self.entity_weight == "score" and (listed.score < 0).any():
            warn("entities: scores below 0 lower the scores of documents that mention them; scale them first")
        return overlap(listed, self.entity_weight, self.link_weight, confidence=self.confidence)


@dataclass(frozen=True, eq=False)
class Sharing:
    """Weighted links between documents and listed entities: document, entity and weight of each, shape (m,)."""

    document: Ints
    entity: Ints
    weight: Floats
    n_documents: int
    n_entities: int

    def propagate_scores(self, score: Floats) -> Floats:
        """Return the mean, over a document's entities, of their mean scores; its own score without entities."""
        of_entity = self._mean(score[self.document], self.entity, self.n_entities)
        means = self._mean(of_entity[self.entity], self.document, self.n_documents)
        return np.where(np.isnan(means), score, means)

    def _mean(self, values: Floats, owner: Ints, n: int) -> Floats:
        total = np.bincount(owner, self.weight * values, minlength=n)
        weight = np.bincount(owner, self.weight, minlength=n)
        mean: Floats = np.divide(total, weight, out=np.full(n, np.nan), where=weight > 0)
        return mean


class PropagationReranker(Reranker):
    """Rerank documents by propagating scores, with restarts, between documents that share query entities: R -> R.

    ``f_0 = norm(score)``, ``f_{t+1} = (1 - damping) f_0 + damping S f_t``: S maps the score of a document to the
    mean, over the entities in ``Λ(d) ∩ Ê^k``, of the mean score of the topic's documents that mention the entity.

    Parameters
    ----------
    links, entities, cutoff, norm
        See :class:`~vbterrier.entities.OverlapReranker`.
    damping, steps
        The weight of propagated scores, 0 (document score only) to 1, and the number of steps.
    entity_weight
        The weight of an entity in a document's mean, see :func:`vbterrier.entities.rerank.base.entity_weights`;
        ``"idf"`` reduces that of frequent entities.
    confidence
        If True, multiply by the weight of the link, in both means.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    S is a random walk from documents to entities and back (possibly to the same document), so scores remain within the
    range of ``f_0``. Documents without a listed entity keep their score. The paper names the family and does not define
    the walk.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (iv). Zhou, Huang and Schölkopf: Learning
    with Hypergraphs, NIPS 2006, for the walk.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [4.0, 1.0, 0.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d3"], "entity_id": ["Paris", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> stage = PropagationReranker(tags, entities, damping=0.8, steps=1)
    >>> stage.transform(run)[["docno", "score"]].round(3).values.tolist()
    [['d1', 0.6], ['d3', 0.4], ['d2', 0.25]]
    """

    CHEAP = ("damping", "steps", "norm")

    def __init__(
        self,
        links: Any,
        entities: Any,
        *,
        cutoff: int = 20,
        damping: float = 0.5,
        steps: int = 2,
        entity_weight: str = "uniform",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self._set_common(cutoff, norm)
        self.damping = number("damping", damping, low=0, high=1)
        self.steps = whole("steps", steps)
        self.entity_weight = choice("entity_weight", entity_weight, ENTITY_WEIGHTS)
        self.confidence = bool(confidence)

    def match_entities(self, listed: TopEntities, prepared: Any) -> Any:  # noqa: ARG002 - common signature
        """Return the weighted links between documents and listed entities."""
        weight = entity_weights(listed, self.entity_weight)[listed.owner]
        if self.confidence:
            weight = weight * listed.pool.weight[listed.link]
        return Sharing(listed.document, listed.owner, weight, len(listed.pool), len(listed.rank))

    def scores(self, documents: Documents, observed: Any) -> Floats:
        """Return the scores after the last step."""
        start = normalise_by_topic(documents.score, documents.pool.topic_starts, self.norm)
        score = start
        for _ in range(self.steps):
            score = (1 - self.damping) * start + self.damping * observed.propagate_scores(score)
        return score
