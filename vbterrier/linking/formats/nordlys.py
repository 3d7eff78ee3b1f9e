"""Answers of Nordlys (Hasibi et al. 2017): entity linking in queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vbterrier.linking.formats.base import Candidate, Format
from vbterrier.linking.formats.titles import dbpedia_id, title_name
from vbterrier.linking.links import DBPEDIA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.formats.node import Node


@dataclass(frozen=True, kw_only=True)
class Nordlys(Format):
    """Answers of Nordlys' entity linking: ``{"results": [{entity, mention, score}]}``.

    Mentions are those of the processed query and have no offsets: start and end are -1.

    Parameters
    ----------
    score
        ``"score"``.
    ids
        ``"dbpedia"``.
    misplaced
        See ``Format``; nothing is placed here.

    Examples
    --------
    >>> result = {"entity": "<dbpedia:Total_Recall_(1990_film)>", "mention": "total recall", "score": 0.4}
    >>> Nordlys().links([{"results": [result]}]).frame.values.tolist()
    [[0, -1, -1, 'total recall', 'Total_Recall_(1990_film)', 0.4, 'Total Recall (1990 film)']]
    """

    score: str = "score"
    ids: str = DBPEDIA

    service: ClassVar[str] = "Nordlys"
    scores: ClassVar[Mapping[str, str]] = {"score": "score"}
    spaces: ClassVar[tuple[str, ...]] = (DBPEDIA,)

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """The interpretations of a query."""
        for node in answer["results"].items():
            entity = dbpedia_id(node["entity"])
            mention, score = node["mention"].text(), node["score"].number()
            yield Candidate(node, -1, -1, mention, entity, score, title_name(entity))
