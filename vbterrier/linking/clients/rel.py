"""A client of REL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.transport import Request
from vbterrier.linking.formats.rel import REL


@dataclass(frozen=True, kw_only=True, repr=False)
class RELClient(Client):
    """A client of REL's server.

    Parameters
    ----------
    endpoint
        The address of the server, as ``http://localhost:5555``.
    score, misplaced
        See ``vbterrier.linking.formats.REL``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.clients.Client``.

    Examples
    --------
    >>> RELClient("http://localhost:5555", score="conf_md").format.scale
    'score'
    """

    score: str = "conf_ed"

    @cached_property
    def format(self) -> REL:
        """How REL answers."""
        return REL(score=self.score, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        # Without spans REL finds the mentions itself.
        return Request(json={"text": text, "spans": []})
