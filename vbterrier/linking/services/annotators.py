"""Clients and answer formats of linkers: WAT, TagMe, REL, entity-fishing and DBpedia Spotlight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from vbterrier.errors import ParameterError, number, whole
from vbterrier.frames.id_spaces import DBPEDIA, WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format, dbpedia_id, title_id, title_name, utf16_length
from vbterrier.linking.services.transport import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


_N_FIELDS = 7
_KEYS = {WIKIPEDIA_ID: "wikipediaExternalRef", WIKIDATA: "wikidataId"}
_FISHING_SCORES = ("nerd_score", "nerd_selection_score", "confidence_score")
_CANDIDATE_SCORES = {"finalScore": "probability", "contextualScore": "score", "priorScore": "score"}


@dataclass(frozen=True, kw_only=True)
class WAT(Format):
    """Answers of WAT (Piccinno and Ferragina 2014): ``{"annotations": [{start, end, spot, id, title, rho, ...}]}``."""

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
            title, start, end = node.get("title"), node["start"].whole(), node["end"].whole()
            name = title.text() if title else ""
            page = node["id"].whole() if self.ids == WIKIPEDIA_ID else 1
            entity = str(page) if self.ids == WIKIPEDIA_ID else title_id(name)
            # Without a title, or with id 0 or less, the mention is linked to nothing.
            linked = entity if name and page > 0 else ""
            yield Candidate(node, start, end, node["spot"].text(), linked, score.number(), title_name(name))


@dataclass(frozen=True, kw_only=True, repr=False)
class WATClient(Client):
    """A client of WAT; for parameters of all clients, see ``vbterrier.linking.services.Client``.

    Parameters
    ----------
    endpoint
        The address of ``tag``, such as ``https://wat.d4science.org/wat/tag/tag``;
        the token goes in the header ``gcube-token``.
    lang
        The language of the texts.
    method
        ``"GET"`` (as documented by WAT), or ``"POST"`` for texts that are too long for an address.
    score
        ``"rho"``, the confidence of the annotation; or ``"prior"``, the probability of the entity given the mention
        (``explanation.prior_explanation.entity_mention_probability``), a probability.
    ids
        ``"wikipedia_title"`` or ``"wikipedia_id"``.

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

    format_type: ClassVar[type[Format]] = WAT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in {"GET", "POST"}:
            raise ParameterError(f"method={self.method!r}: wanted 'GET' or 'POST'")

    def _request(self, text: str) -> Request:
        fields = {"lang": self.lang, "text": text}
        return Request("GET", params=fields) if self.method == "GET" else Request("POST", form=fields)


@dataclass(frozen=True, kw_only=True)
class TagMe(WAT):
    """Answers of TagMe (Ferragina and Scaiella 2010): ``{"annotations": [{start, end, spot, id, title, rho}]}``."""

    service: ClassVar[str] = "TagMe"
    scores: ClassVar[Mapping[str, str]] = {"rho": "score"}


@dataclass(frozen=True, kw_only=True, repr=False)
class TagMeClient(Client):
    """A client of TagMe; for parameters of all clients, see ``vbterrier.linking.services.Client``.

    Parameters
    ----------
    endpoint
        The address of ``tag``, such as ``https://tagme.d4science.org/tagme/tag``;
        the token goes in the header ``gcube-token``.
    lang
        The language of the texts.
    score, ids
        ``"rho"``; ``"wikipedia_title"`` or ``"wikipedia_id"``.

    Examples
    --------
    >>> TagMeClient("https://tagme.example.org/tag", token="s3cr3t").id_space
    'wikipedia_title'
    """

    lang: str = "en"
    score: str = "rho"
    ids: str = WIKIPEDIA_TITLE

    token_header: ClassVar[tuple[str, str]] = ("gcube-token", "")

    format_type: ClassVar[type[Format]] = TagMe

    def _request(self, text: str) -> Request:
        return Request(form={"lang": self.lang, "text": text})


@dataclass(frozen=True, kw_only=True)
class REL(Format):
    """Answers of REL (van Hulst et al. 2020): a list of ``[start, length, mention, title, conf_ed, conf_md, tag]``.

    The last two fields may be in either order. An object with one document, as returned by REL's Python interface, is
    read as that document.
    """

    score: str = "conf_ed"
    ids: str = WIKIPEDIA_TITLE

    service: ClassVar[str] = "REL"
    scores: ClassVar[Mapping[str, str]] = {"conf_ed": "score", "conf_md": "score"}
    spaces: ClassVar[tuple[str, ...]] = (WIKIPEDIA_TITLE,)
    utf16: ClassVar[bool] = False

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the links of an answer."""
        if isinstance(answer.value, dict):
            if len(answer.value) != 1:
                raise answer.value_error(
                    "a list of links, or an object with one document (pass the list of each document)"
                )
            answer = answer[next(iter(answer.value))]
        for node in answer.items():
            fields = node.items()
            if len(fields) != _N_FIELDS:
                raise node.value_error("7 fields: start, length, mention, title, conf_ed, conf_md, tag")
            start, title = fields[0].whole(), fields[3].text()
            conf_md, tag = fields[5:] if isinstance(fields[6].value, str) else fields[:4:-1]
            tag.text()
            score = fields[4] if self.score == "conf_ed" else conf_md
            entity = "" if title == "NIL" else title_id(title)
            end = start + fields[1].whole()
            yield Candidate(node, start, end, fields[2].text(), entity, score.number(), title_name(title))


@dataclass(frozen=True, kw_only=True, repr=False)
class RELClient(Client):
    """A client of REL's server; for parameters of all clients, see ``vbterrier.linking.services.Client``.

    Parameters
    ----------
    endpoint
        The address of the server, such as ``http://localhost:5555``.
    score
        ``"conf_ed"``, the confidence in the entity (-1 or 0 if REL computes none); or ``"conf_md"``, the confidence in
        the mention.

    Examples
    --------
    >>> RELClient("http://localhost:5555", score="conf_md").format.scale
    'score'
    """

    score: str = "conf_ed"

    format_type: ClassVar[type[Format]] = REL

    def _request(self, text: str) -> Request:
        # Without spans REL detects the mentions.
        return Request(json={"text": text, "spans": []})


@dataclass(frozen=True, kw_only=True)
class EntityFishing(Format):
    """Answers of entity-fishing: ``{"entities": [{rawName, offsetStart, offsetEnd, nerd_score, wikidataId, ...}]}``.

    Named entities that are recognised but not resolved have no id and are linked to nothing.
    """

    score: str = "nerd_score"
    ids: str = WIKIPEDIA_ID

    service: ClassVar[str] = "entity-fishing"
    scores: ClassVar[Mapping[str, str]] = dict.fromkeys(_FISHING_SCORES, "score")
    spaces: ClassVar[tuple[str, ...]] = (WIKIPEDIA_ID, WIKIDATA)

    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the entities of an answer."""
        entities = answer.get("entities")
        if entities is None:
            # Nothing was found, but every answer has the run time.
            answer["runtime"].number()
            return
        for node in entities.items():
            start, end = node["offsetStart"].whole(), node["offsetEnd"].whole()
            mention, term = node["rawName"].text(), node.get("preferredTerm")
            identifier, entity = node.get(_KEYS[self.ids]), ""
            if identifier is not None:
                entity = identifier.text() if self.ids == WIKIDATA else str(max(identifier.whole(), 0) or "")
            # Entities that are not resolved may have no score.
            score = node[self.score].number() if entity else 0.0
            yield Candidate(node, start, end, mention, entity, score, term.text() if term else "")


@dataclass(frozen=True, kw_only=True, repr=False)
class EntityFishingClient(Client):
    """A client of entity-fishing; for parameters of all clients, see ``vbterrier.linking.services.Client``.

    Parameters
    ----------
    endpoint
        The address of ``disambiguate``, such as ``http://localhost:8090/service/disambiguate``.
    lang
        The language of the texts; empty to let the service detect it.
    short
        Send the texts as queries of a few words, which the service disambiguates with another model.
    nbest
        Request competing candidates, which share their offsets.
    score
        ``"nerd_score"``, the confidence in the entity relative to other candidates; ``"nerd_selection_score"``, the
        confidence that the mention should be linked; or ``"confidence_score"``, which replaces both in later versions.
    ids
        ``"wikipedia_id"`` (of the language of the text) or ``"wikidata"``.

    Examples
    --------
    >>> EntityFishingClient("http://localhost:8090/service/disambiguate", ids="wikidata").id_space
    'wikidata'
    """

    lang: str = "en"
    short: bool = False
    nbest: bool = False
    score: str = "nerd_score"
    ids: str = WIKIPEDIA_ID

    format_type: ClassVar[type[Format]] = EntityFishing

    def _request(self, text: str) -> Request:
        query = {"shortText" if self.short else "text": text, "nbest": self.nbest}
        return Request(json=query | ({"language": {"lang": self.lang}} if self.lang else {}))


@dataclass(frozen=True, kw_only=True)
class _Spotlight(Format):
    """Base class of the two formats of answers."""

    ids: str = DBPEDIA
    edition: str = ""  # the language of the DBpedia; the same name means different entities in two editions

    service: ClassVar[str] = "Spotlight"
    spaces: ClassVar[tuple[str, ...]] = (DBPEDIA,)

    @property
    def id_space(self) -> str:
        """``"dbpedia"``, or ``"dbpedia:nl"`` for the edition ``"nl"``."""
        return f"{DBPEDIA}:{self.edition}" if self.edition else DBPEDIA


@dataclass(frozen=True, kw_only=True)
class SpotlightAnnotate(_Spotlight):
    """Answers of Spotlight's ``/annotate``: ``{"@text", "Resources": [{@URI, @surfaceForm, @offset, ...}]}``.

    Numbers are text (Mendes et al. 2011). ``Resources`` is absent if nothing was found, and may be an object if there
    is one resource. ``similarityScore`` is a probability only with the statistical back end.
    """

    score: str = "similarityScore"

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

    ``surfaceForm`` and ``resource`` are lists, an object if there is one, or absent if there is none.
    """

    score: str = "finalScore"

    scores: ClassVar[Mapping[str, str]] = _CANDIDATE_SCORES

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
    """A client of DBpedia Spotlight; for parameters of all clients, see ``vbterrier.linking.services.Client``.

    Parameters
    ----------
    endpoint
        The address of ``annotate`` (one entity per mention) or ``candidates`` (competing entities), such as
        ``http://localhost:2222/rest/candidates``.
    confidence
        The minimum confidence of a mention, in [0, 1]; 0 for all.
    support
        The minimum number of links to an entity in Wikipedia.
    score
        ``None`` for ``"similarityScore"`` of annotate, or ``"finalScore"`` of candidates, the probability of the entity
        given the mention and its context; ``"contextualScore"`` or ``"priorScore"`` (of the entity), which are scores.
    edition
        The language of the DBpedia that the service links to, such as ``"nl"``; empty for ``dbpedia.org``. It is part
        of the id space, ``"dbpedia:nl"``.

    Examples
    --------
    >>> SpotlightClient("http://localhost:2222/rest/candidates").format.scale
    'probability'
    """

    confidence: float = 0.5
    support: int = 0
    score: str | None = None
    edition: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        number("confidence", self.confidence, low=0, high=1)
        whole("support", self.support, low=0)

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
