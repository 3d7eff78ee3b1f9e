"""Document scores interpolated with the overlap of a document's entities and the query's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import warn
from vbterrier.entities.rerank.base import Interpolation
from vbterrier.frames.parameters import choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.documents import Listed

    Floats = NDArray[np.float64]

EVIDENCE = ("overlap", "share", "score", "rank")


def overlap(listed: Listed, evidence: str, *, confidence: bool) -> Floats:
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
    k
        How many entities of each topic count.
    weight
        Of the evidence, 0 (the documents' own score) to 1 (evidence alone).
    evidence
        ``"overlap"``: v = 1. ``"share"``: ``1/|Λ(d)|``, of a document's entities those that are listed. ``"score"``: v
        is the entity's score. ``"rank"``: ``v = 1/log2(rank + 1)`` with its rank from 1.
    confidence
        Multiply v by the weight of the link.
    norm
        How both parts are made comparable in each topic: ``"minmax"``, ``"z"`` or ``"none"``; see
        :func:`vbterrier.entities.rerank.normal.normalised`.

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
        k: int = 20,
        weight: float = 0.5,
        evidence: str = "overlap",
        confidence: bool = False,
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_inputs(links, entities)
        self._set_common(k, norm, weight)
        self.evidence = choice("evidence", evidence, EVIDENCE)
        self.confidence = bool(confidence)

    def observed(self, listed: Listed, prepared: Any) -> Floats:  # noqa: ARG002 - the same for every reranker
        """See :func:`overlap`."""
        if self.evidence == "score" and (listed.score < 0).any():
            warn("entities: some scores are below 0, so that documents lose by mentioning them; scale them first")
        return overlap(listed, self.evidence, confidence=self.confidence)
