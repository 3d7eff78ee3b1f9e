"""Clients and answer formats of TagMe (Ferragina and Scaiella 2010) and WAT (Piccinno and Ferragina 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from vbterrier.errors import ParameterError
from vbterrier.linking.links import WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format, title_id, title_name
from vbterrier.linking.services.transport import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


@dataclass(frozen=True, kw_only=True)
class WAT(Format):
    """Answers of WAT: ``{"annotations": [{start, end, spot, id, title, rho, explanation}]}``.

    - ``score``: ``"rho"``, the confidence of the annotation; or ``"prior"``, the probability of the entity given the
      mention (``explanation.prior_explanation.entity_mention_probability``), a probability
    - ``ids``: ``"wikipedia_title"`` or ``"wikipedia_id"``
    - ``misplaced``: see ``Format``

    >>> annotation = {"start": 0, "end": 6, "spot": "Jordan", "id": 20455, "title": "Michael_Jordan", "rho": 0.61}
    >>> WAT().links([{"annotations": [annotation]}], ["Jordan won"]).frame.values.tolist()
    [[0, 0, 6, 'Jordan', 'Michael_Jordan', 0.61, 'Michael Jordan']]
    """

    score: str = "rho"
    ids: str = WIKIPEDIA_TITLE

    service: ClassVar[str] = "WAT"
    scores: ClassVar[Mapping[str, str]] = {"rho": "score", "prior": "probability"}
    spaces: ClassVar[tuple[str, ...]] = (WIKIPEDIA_TITLE, WIKIPEDIA_ID)

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the annotations of an answer."""
        for node in answer["annotations"].items():
            if self.score == "rho":
                score = node["rho"]
            else:
                score = node["explanation"]["prior_explanation"]["entity_mention_probability"]
            yield annotated(node, self.ids, score.number())


def annotated(node: Node, ids: str, score: float) -> Candidate:
    """Return an annotation of WAT or TagMe; without a title, or with id 0 or less, it is linked to nothing."""
    title = node.get("title")
    name = title.text() if title else ""
    page = node["id"].whole() if ids == WIKIPEDIA_ID else 1
    entity = str(page) if ids == WIKIPEDIA_ID else title_id(name)
    start, end = node["start"].whole(), node["end"].whole()
    linked = entity if name and page > 0 else ""
    return Candidate(node, start, end, node["spot"].text(), linked, score, title_name(name))


@dataclass(frozen=True, kw_only=True, repr=False)
class WATClient(Client):
    """A client of WAT.

    Parameters
    ----------
    endpoint
        The address of ``tag``, such as ``https://wat.d4science.org/wat/tag/tag``.
    lang
        The language of the texts.
    method
        ``"GET"`` (as documented by WAT), or ``"POST"`` for texts that are too long for an address.
    score, ids, misplaced
        See ``WAT``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.services.Client``; the token goes in the header ``gcube-token``.

    Examples
    --------
    >>> WATClient("https://wat.example.org/tag", token="s3cr3t", score="prior")
    WATClient('https://wat.example.org/tag', token=***, score='prior')
    """

    lang: str = "en"
    method: str = "GET"
    score: str = "rho"
    ids: str = WIKIPEDIA_TITLE

    token_header: ClassVar[tuple[str, str]] = ("gcube-token", "")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in {"GET", "POST"}:
            raise ParameterError(f"method={self.method!r}: wanted 'GET' or 'POST'")

    @cached_property
    def format(self) -> WAT:
        """The format of WAT's answers."""
        return WAT(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        asked = {"lang": self.lang, "text": text}
        return Request("GET", params=asked) if self.method == "GET" else Request("POST", form=asked)


@dataclass(frozen=True, kw_only=True)
class TagMe(Format):
    """Answers of TagMe: ``{"annotations": [{start, end, spot, id, title, rho}]}``.

    Annotations without a title, which have id 0, are linked to nothing.

    - ``score``: ``"rho"``, the confidence of the annotation
    - ``ids``: ``"wikipedia_title"`` or ``"wikipedia_id"``
    - ``misplaced``: see ``Format``

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
