"""Reranking by entity overlap with the query, and by score propagation between documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rerank.base import Interpolation, Reranker, normalised
from vbterrier.errors import choice, number, warn, whole

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities


EVIDENCE = ("overlap", "share", "score", "rank")


def overlap(listed: TopEntities, evidence: str, *, confidence: bool) -> Floats:
    """Return the overlap of each document with the listed entities, shape (n_documents,).

    Parameters
    ----------
    listed
        The entities of the topics.
    evidence
        See :class:`OverlapReranker`.
    confidence
        If True, weight the links.
    """
    pool = listed.pool
    per_entity = np.ones(len(listed.rank))
    if evidence == "score":
        per_entity = listed.score
    elif evidence == "rank":
        per_entity = 1 / np.log2(listed.rank + 2)
    per_link = per_entity[listed.owner]
    total = listed.summed(per_link * pool.weight[listed.link] if confidence else per_link)
    return total / np.maximum(np.diff(pool.starts), 1) if evidence == "share" else total


class OverlapReranker(Interpolation):
    """Rerank documents by their score and the number of first entities that they mention: R -> R.

    ``score' = (1 - weight) norm(score) + weight norm(Σ v(e))``, the sum over ``Λ(d) ∩ Ê^k``.

    Parameters
    ----------
    links
        The entities of documents: a :class:`~vbterrier.entities.pool.LinkedPool`, its K frame, or tags (docno,
        entity_id [, weight, qid]).
    entities
        An entity run (qid, docno: an entity id, score), or a stage that returns one for the input run.
    cutoff
        The number of entities of each topic that count.
    weight
        The weight of the evidence, 0 (document score only) to 1 (evidence only).
    evidence
        ``"overlap"``: v = 1. ``"share"``: ``v = 1/|Λ(d)|``, the listed share of the document's entities. ``"score"``: v
        is the entity's score. ``"rank"``: ``v = 1/log2(rank + 1)`` with ranks from 1.
    confidence
        Multiply v by the weight of the link.
    norm
        The normalisation of both parts in each topic: ``"minmax"``, ``"z"`` or ``"none"``; see
        :func:`vbterrier.entities.rerank.base.normalised`.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    With ``evidence="score"``, negative entity scores, such as log probabilities, lower the scores of documents that
    mention the entities; a warning reports them. The cost is linear in the number of links.

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
        evidence: str = "overlap",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self._set_common(cutoff, norm, weight)
        self.evidence = choice("evidence", evidence, EVIDENCE)
        self.confidence = bool(confidence)

    def observed(self, listed: TopEntities, prepared: Any) -> Floats:  # noqa: ARG002 - common signature
        """Return the overlap, see :func:`overlap`."""
        if self.evidence == "score" and (listed.score < 0).any():
            warn("entities: scores below 0 lower the scores of documents that mention them; scale them first")
        return overlap(listed, self.evidence, confidence=self.confidence)


ENTITY_WEIGHTS = ("uniform", "rank", "idf")


@dataclass(frozen=True, eq=False)
class Sharing:
    """Weighted links between documents and listed entities: document, entity and weight of each, shape (m,)."""

    document: Ints
    entity: Ints
    weight: Floats
    n_documents: int
    n_entities: int

    def smoothed(self, score: Floats) -> Floats:
        """Return the mean, over a document's entities, of their mean scores; its own score without entities."""
        of_entity = self._mean(score[self.document], self.entity, self.n_entities)
        found = self._mean(of_entity[self.entity], self.document, self.n_documents)
        return np.where(np.isnan(found), score, found)

    def _mean(self, values: Floats, owner: Ints, n: int) -> Floats:
        total = np.bincount(owner, self.weight * values, minlength=n)
        weight = np.bincount(owner, self.weight, minlength=n)
        mean: Floats = np.divide(total, weight, out=np.full(n, np.nan), where=weight > 0)
        return mean


def sharing(listed: TopEntities, entity_weight: str, *, confidence: bool) -> Sharing:
    """Return the weighted links between documents and listed entities.

    Parameters
    ----------
    listed
        The entities of the topics.
    entity_weight, confidence
        See :class:`PropagationReranker`.
    """
    pool, n = listed.pool, len(listed.rank)
    weight = np.ones(n)
    if entity_weight == "rank":
        weight = 1 / np.log2(listed.rank + 2)
    elif entity_weight == "idf":
        size = np.diff(pool.topic_starts)[listed.topic]
        weight = np.log((size + 1) / (np.bincount(listed.owner, minlength=n) + 1)) + 1
    per_link = weight[listed.owner]
    per_link = per_link * pool.weight[listed.link] if confidence else per_link
    return Sharing(listed.document, listed.owner, per_link, len(pool), n)


class PropagationReranker(Reranker):
    """Rerank documents by propagating scores, with restarts, between documents that share query entities: R -> R.

    ``f_0 = norm(score)``, ``f_{t+1} = (1 - damping) f_0 + damping S f_t``: S maps the score of a document to the
    mean, over the entities in ``Λ(d) ∩ Ê^k``, of the mean score of the topic's documents that mention the entity.

    Parameters
    ----------
    links, entities, cutoff
        See :class:`~vbterrier.entities.rerank.overlap.OverlapReranker`.
    damping
        The weight of propagated scores, 0 (document score only) to 1.
    steps
        The number of propagation steps.
    entity_weight
        The weight of an entity in a document's mean: ``"uniform"``; ``"rank"``, ``1/log2(rank + 1)`` with ranks from 1;
        ``"idf"``, ``log((N + 1)/(df + 1)) + 1`` over the topic's pool, which reduces the weight of frequent entities.
    confidence
        If True, multiply by the weight of the link, in both means.
    norm
        See :class:`~vbterrier.entities.rerank.overlap.OverlapReranker`.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    S is a random walk from documents to entities and back (possibly to the same document), so scores remain within the
    range of ``f_0``. Documents without a listed entity keep their score. Each step is linear in the number of links to
    listed entities. The paper names the family and does not define the walk.

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

    def observed(self, listed: TopEntities, prepared: Any) -> Sharing:  # noqa: ARG002 - common signature
        """Return the links that propagate scores, see :func:`sharing`."""
        return sharing(listed, self.entity_weight, confidence=self.confidence)

    def scores(self, documents: Documents, observed: Any) -> Floats:
        """Return the scores after the last step."""
        start = normalised(documents.score, documents.pool.topic_starts, self.norm)
        score = start
        for _ in range(self.steps):
            score = (1 - self.damping) * start + self.damping * observed.smoothed(score)
        return score
