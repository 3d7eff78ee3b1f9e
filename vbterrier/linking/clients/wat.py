"""A client of WAT."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vbterrier.errors import ParameterError
from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.transport import Request
from vbterrier.linking.formats.wat import WAT
from vbterrier.linking.links import WIKIPEDIA_TITLE


@dataclass(frozen=True, kw_only=True, repr=False)
class WATClient(Client):
    """A client of WAT.

    Parameters
    ----------
    endpoint
        The address of ``tag``, as ``https://wat.d4science.org/wat/tag/tag``.
    lang
        The language of the texts.
    method
        ``"GET"`` (as WAT is documented) or ``"POST"``, for texts longer than an address may be.
    score, ids, misplaced
        See ``vbterrier.linking.formats.WAT``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.clients.Client``; the token goes in the header ``gcube-token``.

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
        """How WAT answers."""
        return WAT(score=self.score, ids=self.ids, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        asked = {"lang": self.lang, "text": text}
        return Request("GET", params=asked) if self.method == "GET" else Request("POST", form=asked)
