"""Client and answer formats of DBpedia Spotlight (Mendes et al. 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from vbterrier.errors import ParameterError
from vbterrier.linking.links import DBPEDIA
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format, dbpedia_id, title_name, utf16_length
from vbterrier.linking.services.transport import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


@dataclass(frozen=True, kw_only=True)
class _Spotlight(Format):
    """Base class of the two formats of answers."""

    ids: str = DBPEDIA
    # The language of the DBpedia that the service links to, such as ``"nl"``; empty for ``dbpedia.org``. It is part of
    # the id space, because the same name means different entities in two editions.
    edition: str = ""

    spaces: ClassVar[tuple[str, ...]] = (DBPEDIA,)

    @property
    def id_space(self) -> str:
        """``"dbpedia"``, or ``"dbpedia:nl"`` for the edition ``"nl"``."""
        return f"{DBPEDIA}:{self.edition}" if self.edition else DBPEDIA


@dataclass(frozen=True, kw_only=True)
class SpotlightAnnotate(_Spotlight):
    """Answers of Spotlight's ``/annotate``: ``{"@text", "Resources": [{@URI, @surfaceForm, @offset, ...}]}``.

    Numbers are text. ``Resources`` is absent if nothing was found, and may be an object if there is one resource. The
    entity is the percent-decoded name of the resource, after ``/resource/``.

    - ``score``: ``"similarityScore"``, in [0, 1], which is a probability only with the statistical back end
    - ``ids``: ``"dbpedia"``
    - ``edition``: the language of the DBpedia that the service links to, such as ``"nl"``; empty for ``dbpedia.org``.
      It is part of the id space, ``"dbpedia:nl"``.
    - ``misplaced``: see ``Format``

    >>> resource = {"@URI": "http://dbpedia.org/resource/Brazil", "@surfaceForm": "Brazilian", "@offset": "0"}
    >>> answer = {"@text": "Brazilian oil", "Resources": [resource | {"@similarityScore": "0.99"}]}
    >>> SpotlightAnnotate().links([answer]).frame.values.tolist()
    [[0, 0, 9, 'Brazilian', 'Brazil', 0.99, 'Brazil']]
    """

    score: str = "similarityScore"

    service: ClassVar[str] = "Spotlight"
    scores: ClassVar[Mapping[str, str]] = {"similarityScore": "score"}

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the resources of an answer."""
        resources = answer.get("Resources")
        if resources is None:
            # Nothing was found, but every answer of Spotlight has the text.
            answer["@text"].text()
            return
        for node in resources.each():
            entity = dbpedia_id(node["@URI"], self.edition)
            start, end, mention = _place(node, node["@surfaceForm"])
            score = node["@similarityScore"].number()
            yield Candidate(node, start, end, mention, entity, score, title_name(entity))


@dataclass(frozen=True, kw_only=True)
class SpotlightCandidates(_Spotlight):
    """Answers of Spotlight's ``/candidates``: ``{"annotation": {"surfaceForm": [{@name, @offset, resource}]}}``.

    ``surfaceForm`` and ``resource`` are lists, an object if there is one, or absent if there is none. A mention without
    a resource has no candidates.

    - ``score``: ``"finalScore"``, the probability of the entity given the mention and its context; or
      ``"contextualScore"`` or ``"priorScore"`` (of the entity), which are scores
    - ``ids``: ``"dbpedia"``
    - ``edition``: the language of the DBpedia edition that the service links to, which these answers do not contain
    - ``misplaced``: see ``Format``

    >>> resource = {"@uri": "Sheffield_Wednesday_F.C.", "@finalScore": "0.059", "@label": "Sheffield Wednesday F.C."}
    >>> answer = {"annotation": {"surfaceForm": {"@name": "Wednesday", "@offset": "3", "resource": resource}}}
    >>> SpotlightCandidates().links([answer]).frame.values.tolist()
    [[0, 3, 12, 'Wednesday', 'Sheffield_Wednesday_F.C.', 0.059, 'Sheffield Wednesday F.C.']]
    """

    score: str = "finalScore"

    service: ClassVar[str] = "Spotlight"
    scores: ClassVar[Mapping[str, str]] = {
        "finalScore": "probability",
        "contextualScore": "score",
        "priorScore": "score",
    }

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the resources of all surface forms."""
        forms = answer["annotation"].get("surfaceForm")
        for form in forms.each() if forms else []:
            start, end, mention = _place(form, form["@name"])
            resources = form.get("resource")
            for node in resources.each() if resources else []:
                entity, label = dbpedia_id(node["@uri"], self.edition), node.get("@label")
                name = label.text() if label else title_name(entity)
                yield Candidate(node, start, end, mention, entity, node[f"@{self.score}"].number(), name)


def _place(node: Node, mention: Node) -> tuple[int, int, str]:
    start, text = node["@offset"].whole(), mention.text()
    return start, start + utf16_length(text), text


_FORMATS = {"annotate": SpotlightAnnotate, "candidates": SpotlightCandidates}


@dataclass(frozen=True, kw_only=True, repr=False)
class SpotlightClient(Client):
    """A client of DBpedia Spotlight, with one entity per mention or competing candidates.

    Parameters
    ----------
    endpoint
        The address of ``annotate`` or ``candidates``, such as ``http://localhost:2222/rest/candidates``.
    confidence
        The minimum confidence of a mention, in [0, 1]; 0 for all.
    support
        The minimum number of links to an entity in Wikipedia.
    score
        The field that is the score; ``None`` for ``similarityScore`` of annotate and ``finalScore`` of candidates (a
        probability). See ``SpotlightCandidates``.
    edition, misplaced
        See ``SpotlightAnnotate``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.services.Client``.

    Examples
    --------
    >>> SpotlightClient("http://localhost:2222/rest/candidates").format.scale
    'probability'
    """

    confidence: float = 0.5
    support: int = 0
    score: str | None = None
    edition: str = ""

    @cached_property
    def format(self) -> Format:
        """The format of the answers of the endpoint."""
        part = urlsplit(self.endpoint).path.rstrip("/").rpartition("/")[2]
        if part not in _FORMATS:
            raise ParameterError(f"endpoint={self.endpoint!r}: wanted an address that ends in /annotate or /candidates")
        chosen = {} if self.score is None else {"score": self.score}
        return _FORMATS[part](**chosen, edition=self.edition, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        return Request(form={"text": text, "confidence": str(self.confidence), "support": str(self.support)})
