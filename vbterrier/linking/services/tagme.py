"""Client and answer format of TagMe (Ferragina and Scaiella 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from vbterrier.linking.links import WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format
from vbterrier.linking.services.transport import Request
from vbterrier.linking.services.wat import annotated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


@dataclass(frozen=True, kw_only=True)
class TagMe(Format):
    """Answers of TagMe: ``{"annotations": [{start, end, spot, id, title, rho}]}``.

    Annotations without a title, which have id 0, are linked to nothing.

    Parameters
    ----------
    score
        ``"rho"``, the confidence of the annotation.
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
        """Yield the annotations of an answer."""
        for node in answer["annotations"].items():
            yield annotated(node, self.ids, node["rho"].number())


@dataclass(frozen=True, kw_only=True, repr=False)
class TagMeClient(Client):
    """A client of TagMe.

    Parameters
    ----------
    endpoint
        The address of ``tag``, such as ``https://tagme.d4science.org/tagme/tag``.
    lang
        The language of the texts.
    score, ids, misplaced
        See ``TagMe``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.services.Client``; the token goes in the header ``gcube-token``.

    Examples
    --------
    >>> TagMeClient("https://tagme.example.org/tag", token="s3cr3t").id_space
    'wikipedia_title'
    """

    lang: str = "en"
    score: str = "rho"
    ids: str = WIKIPEDIA_TITLE

    token_header: ClassVar[tuple[str, str]] = ("gcube-token", "")

    @cached_property
    def format(self) -> TagMe:
        """The format of TagMe's answers."""
        return TagMe(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        return Request(form={"lang": self.lang, "text": text})
