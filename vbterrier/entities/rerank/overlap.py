"""Reranking by shared entities: overlap with the query, propagation between documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rerank.base import Interpolation, Reranker, normalised
from vbterrier.errors import warn
from vbterrier.frames.parameters import choice, number, whole

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities


EVIDENCE = ("overlap", "share", "score", "rank")


def overlap(listed: TopEntities, evidence: str, *, confidence: bool) -> Floats:
    """How much of the listed entities each document mentions, shape (n_documents,).

    Parameters
    ----------
    listed
        The entities of the topics.
    evidence
        See :class:`OverlapReranker`.
    confidence
        Whether each link counts by its weight instead of 1.
    """
    pool = listed.pool
    per_entity = np.ones(len(listed.rank))
    if evidence == "score":
        per_entity = listed.score
    elif evidence == "rank":
        per_entity = 1 / np.log2(listed.rank + 2)
    per_link = per_entity[listed.owner]
    told = listed.summed(per_link * pool.weight[listed.link] if confidence else per_link)
    return told / np.maximum(np.diff(pool.starts), 1) if evidence == "share" else told


class OverlapReranker(Interpolation):
    """Rerank documents by their score and how many of the first k entities they mention: R -> R.

    ``score' = (1 - weight) norm(score) + weight norm(Σ v(e))``, the sum over ``Λ(d) ∩ Ê^k``.

    Parameters
    ----------
    links
        What documents mention: a :class:`~vbterrier.entities.pool.LinkedPool`, its K frame, or tags (docno, entity_id
        [, weight, qid]).
    entities
        An entity run (qid, docno: an entity's id, score), or a stage that makes one of the run that comes in.
    cutoff
        The number of entities of each topic that count.
    weight
        Of the evidence, 0 (the documents' own score) to 1 (evidence alone).
    evidence
        ``"overlap"``: v = 1. ``"share"``: ``1/|Λ(d)|``, of a document's entities those that are listed. ``"score"``: v
        is the entity's score. ``"rank"``: ``v = 1/log2(rank + 1)`` with its rank from 1.
    confidence
        Multiply v by the weight of the link.
    norm
        How both parts are made comparable in each topic: ``"minmax"``, ``"z"`` or ``"none"``; see
        :func:`vbterrier.entities.rerank.base.normalised`.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    Where scores of entities are below 0, such as logarithms of probabilities, mentioning one would cost: this is warned
    of. Linear in the links.

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

    def observed(self, listed: TopEntities, prepared: Any) -> Floats:  # noqa: ARG002 - the same for every reranker
        """See :func:`overlap`."""
        if self.evidence == "score" and (listed.score < 0).any():
            warn("entities: some scores are below 0, so that documents lose by mentioning them; scale them first")
        return overlap(listed, self.evidence, confidence=self.confidence)


ENTITY_WEIGHTS = ("uniform", "rank", "idf")


@dataclass(frozen=True, eq=False)
class Sharing:
    """Which documents share which entities: the place of both and the weight of each link, shape (m,)."""

    document: Ints
    entity: Ints
    weight: Floats
    n_documents: int
    n_entities: int

    def smoothed(self, score: Floats) -> Floats:
        """Each document's mean over its entities of each entity's mean score; its own score where it has none."""
        of_entity = self._mean(score[self.document], self.entity, self.n_entities)
        found = self._mean(of_entity[self.entity], self.document, self.n_documents)
        return np.where(np.isnan(found), score, found)

    def _mean(self, values: Floats, owner: Ints, n: int) -> Floats:
        total = np.bincount(owner, self.weight * values, minlength=n)
        weight = np.bincount(owner, self.weight, minlength=n)
        mean: Floats = np.divide(total, weight, out=np.full(n, np.nan), where=weight > 0)
        return mean


def sharing(listed: TopEntities, entity_weight: str, *, confidence: bool) -> Sharing:
    """What documents share of the listed entities.

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
    """Rerank documents by scores that spread, with restarts, over documents that share query entities: R -> R.

    ``f_0 = norm(score)``, ``f_{t+1} = (1 - damping) f_0 + damping S f_t``: S takes each document to the mean, over the
    entities of ``Λ(d) ∩ Ê^k``, of the mean score of the documents of its topic that mention the entity.

    Parameters
    ----------
    links, entities, cutoff
        As :class:`~vbterrier.entities.rerank.overlap.OverlapReranker` takes them.
    damping
        The part that comes from others, 0 (the documents' own score) to 1.
    steps
        How often scores are spread.
    entity_weight
        How much an entity counts in a document's mean: ``"uniform"``; ``"rank"``, ``1/log2(rank + 1)`` with its rank
        from 1; ``"idf"``, ``log((N + 1)/(df + 1)) + 1`` over the topic's pool, which holds back what many share.
    confidence
        Multiply by the weight of the link, in both means.
    norm
        As :class:`~vbterrier.entities.rerank.overlap.OverlapReranker` takes it.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contracts of runs, tags and K frames; a score that is not finite.

    Notes
    -----
    S is a random walk from documents to entities and back (the first step may return at once), so scores stay within
    the range of ``f_0``. Documents without a listed entity keep theirs. Each step is linear in the links to listed
    entities; the graph of documents is never made. The paper names the family and leaves the walk open.

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

    def observed(self, listed: TopEntities, prepared: Any) -> Sharing:  # noqa: ARG002 - the same for every reranker
        """See :func:`sharing`."""
        return sharing(listed, self.entity_weight, confidence=self.confidence)

    def scores(self, documents: Documents, observed: Any) -> Floats:
        """The scores after the last step."""
        start = normalised(documents.score, documents.pool.topic_starts, self.norm)
        score = start
        for _ in range(self.steps):
            score = (1 - self.damping) * start + self.damping * observed.smoothed(score)
        return score
