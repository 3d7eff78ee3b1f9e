"""A client of DBpedia Spotlight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from vbterrier.errors import ParameterError
from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.transport import Request
from vbterrier.linking.formats.spotlight import SpotlightAnnotate, SpotlightCandidates

if TYPE_CHECKING:
    from vbterrier.linking.formats.base import Format

_FORMATS = {"annotate": SpotlightAnnotate, "candidates": SpotlightCandidates}


@dataclass(frozen=True, kw_only=True, repr=False)
class SpotlightClient(Client):
    """A client of DBpedia Spotlight, one entity a mention or competing candidates.

    Parameters
    ----------
    endpoint
        The address of ``annotate`` or ``candidates``, as ``http://localhost:2222/rest/candidates``: its last part says
        which.
    confidence
        The confidence below which Spotlight leaves a mention out, in [0, 1]; 0 for all.
    support
        The number of links in Wikipedia that an entity must have.
    score
        Which number is the score; ``None`` for ``similarityScore`` of annotate and ``finalScore`` of candidates, the
        latter a probability. See ``vbterrier.linking.formats``.
    edition, misplaced
        See ``vbterrier.linking.formats.SpotlightAnnotate``.
    token, timeout, deadline, max_bytes, retries, backoff, proxy, cache
        See ``vbterrier.linking.clients.Client``.

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
        """How the part of Spotlight that the endpoint names answers."""
        part = urlsplit(self.endpoint).path.rstrip("/").rpartition("/")[2]
        if part not in _FORMATS:
            raise ParameterError(f"endpoint={self.endpoint!r}: wanted an address that ends in /annotate or /candidates")
        chosen = {} if self.score is None else {"score": self.score}
        return _FORMATS[part](**chosen, edition=self.edition, misplaced=self.misplaced)

    def _request(self, text: str) -> Request:
        return Request(form={"text": text, "confidence": str(self.confidence), "support": str(self.support)})
