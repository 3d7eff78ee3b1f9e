"""Client and answer format of entity-fishing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from vbterrier.linking.links import WIKIDATA, WIKIPEDIA_ID
from vbterrier.linking.services.client import Client
from vbterrier.linking.services.json_answers import Candidate, Format
from vbterrier.linking.services.transport import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.linking.services.json_answers import Node


_KEYS = {WIKIPEDIA_ID: "wikipediaExternalRef", WIKIDATA: "wikidataId"}


@dataclass(frozen=True, kw_only=True)
class EntityFishing(Format):
    """Answers of entity-fishing: ``{"entities": [{rawName, offsetStart, offsetEnd, nerd_score, wikidataId, ...}]}``.

    Scores and ids are numbers or text. With ``nbest`` competing candidates share their offsets. Named entities that are
    recognised but not resolved have no id and are linked to nothing. The name is the preferred term, if there is one.

    - ``score``: ``"nerd_score"``, the confidence in the entity relative to other candidates;
      ``"nerd_selection_score"``, the confidence that the mention should be linked; or ``"confidence_score"``, which
      replaces both in later versions
    - ``ids``: ``"wikipedia_id"`` (of the language of the text) or ``"wikidata"``
    - ``misplaced``: see ``Format``

    >>> entity = {"rawName": "pump", "offsetStart": 9, "offsetEnd": 13, "nerd_score": "0.34"}
    >>> answer = {"entities": [entity | {"wikipediaExternalRef": "23617"}]}
    >>> EntityFishing().links([answer]).frame.values.tolist()
    [[0, 9, 13, 'pump', '23617', 0.34, '']]
    """

    score: str = "nerd_score"
    ids: str = WIKIPEDIA_ID

    service: ClassVar[str] = "entity-fishing"
    scores: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("nerd_score", "nerd_selection_score", "confidence_score"), "score"
    )
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
            found, entity = node.get(_KEYS[self.ids]), ""
            if found is not None:
                entity = found.text() if self.ids == WIKIDATA else str(max(found.whole(), 0) or "")
            # Entities that are not resolved may have no score.
            score = node[self.score].number() if entity else 0.0
            yield Candidate(node, start, end, mention, entity, score, term.text() if term else "")


@dataclass(frozen=True, kw_only=True, repr=False)
class EntityFishingClient(Client):
    """A client of entity-fishing.

    Parameters
    ----------
    endpoint
        The address of ``disambiguate``, such as ``http://localhost:8090/service/disambiguate``.
    lang
        The language of the texts; empty to let the service detect it.
    short
        Send the texts as queries of a few words, which the service disambiguates with another model.
    nbest
        Request competing candidates.
    score, ids, misplaced
        See ``EntityFishing``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.services.Client``.

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

    @cached_property
    def format(self) -> EntityFishing:
        """The format of the answers of entity-fishing."""
        return EntityFishing(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        query = {"shortText" if self.short else "text": text, "nbest": self.nbest}
        return Request(json=query | ({"language": {"lang": self.lang}} if self.lang else {}))
