"""A client of entity-fishing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.transport import Request
from vbterrier.linking.formats.entity_fishing import EntityFishing
from vbterrier.linking.links import WIKIPEDIA_ID


@dataclass(frozen=True, kw_only=True, repr=False)
class EntityFishingClient(Client):
    """A client of entity-fishing.

    Parameters
    ----------
    endpoint
        The address of ``disambiguate``, as ``http://localhost:8090/service/disambiguate``.
    lang
        The language of the texts; empty to let the service tell it.
    short
        Whether the texts are queries of a few words, which the service treats in another way.
    nbest
        Whether to ask for competing candidates.
    score, ids, misplaced
        See ``vbterrier.linking.formats.EntityFishing``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.clients.Client``.

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
        """How entity-fishing answers."""
        return EntityFishing(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        query = {"shortText" if self.short else "text": text, "nbest": self.nbest}
        return Request(json=query | ({"language": {"lang": self.lang}} if self.lang else {}))
