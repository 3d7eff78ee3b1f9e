"""Answers of TagMe (Ferragina and Scaiella 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vbterrier.linking.formats.base import Candidate, Format
from vbterrier.linking.formats.wat import annotated
from vbterrier.linking.links import WIKIPEDIA_ID, WIKIPEDIA_TITLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.formats.node import Node


@dataclass(frozen=True, kw_only=True)
class TagMe(Format):
    """Answers of TagMe: ``{"annotations": [{start, end, spot, id, title, rho}]}``.

    Annotations without a title, which TagMe gives with id 0, are linked to nothing.

    Parameters
    ----------
    score
        ``"rho"``, the goodness of the annotation.
    ids
        ``"wikipedia_title"`` or ``"wikipedia_id"``.
    misplaced
        See ``Format``.

    Examples
    --------
    >>> annotation = {"start": 0, "end": 7, "spot": "Mexican", "id": 18333, "title": "Mexican cuisine", "rho": 0.24}
    >>> TagMe().links([{"annotations": [annotation]}]).frame.values.tolist()
    [[0, 0, 7, 'Mexican', 'Mexican_cuisine', 0.24, 'Mexican cuisine']]
    """

    score: str = "rho"
    ids: str = WIKIPEDIA_TITLE

    service: ClassVar[str] = "TagMe"
    scores: ClassVar[Mapping[str, str]] = {"rho": "score"}
    spaces: ClassVar[tuple[str, ...]] = (WIKIPEDIA_TITLE, WIKIPEDIA_ID)

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """The annotations of an answer."""
        for node in answer["annotations"].items():
            yield annotated(node, self.ids, node["rho"].number())
