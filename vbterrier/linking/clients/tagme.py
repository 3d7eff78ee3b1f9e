"""A client of TagMe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.transport import Request
from vbterrier.linking.formats.tagme import TagMe
from vbterrier.linking.links import WIKIPEDIA_TITLE


@dataclass(frozen=True, kw_only=True, repr=False)
class TagMeClient(Client):
    """A client of TagMe.

    Parameters
    ----------
    endpoint
        The address of ``tag``, as ``https://tagme.d4science.org/tagme/tag``.
    lang
        The language of the texts.
    score, ids, misplaced
        See ``vbterrier.linking.formats.TagMe``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.clients.Client``; the token goes in the header ``gcube-token``.

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
        """How TagMe answers."""
        return TagMe(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        return Request(form={"lang": self.lang, "text": text})
