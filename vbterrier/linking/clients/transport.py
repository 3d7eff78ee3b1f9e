"""One request and its answer: bounded in time and bytes, to one host alone, and silent about secrets."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vbterrier.errors import printable
from vbterrier.linking.clients.adapter import Watch, watched_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.linking.clients.secret import Secret

_PIECE = 1 << 16
_EXCERPT = 300
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR)
_REMEDIES = {
    HTTPStatus.UNAUTHORIZED: "pass the service's token",
    HTTPStatus.FORBIDDEN: "pass a token that may use the service",
    HTTPStatus.NOT_FOUND: "correct the path of the endpoint",
    HTTPStatus.METHOD_NOT_ALLOWED: "correct the path of the endpoint",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "cut the text",
    HTTPStatus.REQUEST_URI_TOO_LONG: "cut the text, or pass method='POST' where the client has it",
}


@dataclass(frozen=True)
class Request:
    """What to ask: a method, the query of the address, a form or JSON as the body."""

    method: str = "POST"
    params: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None
    json: Any = None


@dataclass(frozen=True)
class Failure:
    """Why there is no answer.

    Parameters
    ----------
    message
        What happened and the remedy, without secrets.
    passing
        Whether it may be otherwise in a moment.
    status
        The HTTP status, when there was one.
    wait
        The seconds after which the service wants to be asked again.
    """

    message: str
    passing: bool = False
    status: int | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class Transport:
    """The way to one endpoint; nothing is opened before the first request.

    Neither redirects are followed, nor proxies, passwords or certificates taken from the environment: what is sent goes
    where the caller said, and nowhere else.

    Parameters
    ----------
    endpoint
        The address.
    headers
        Headers that hold secrets, as (name, text before the secret, secret).
    timeout
        Seconds to connect, and seconds of silence.
    max_bytes
        How large an answer may be, packed and unpacked.
    proxy
        The proxy to go through.
    """

    endpoint: str
    headers: tuple[tuple[str, str, Secret], ...]
    timeout: float
    max_bytes: int
    proxy: str | None = None

    @cached_property
    def _watch(self) -> Watch:
        return Watch()

    @cached_property
    def _adapter(self) -> Any:
        return watched_adapter(self._watch)

    def close(self) -> None:
        """Close the connection that was kept."""
        if "_adapter" in vars(self):
            self._adapter.close()

    def attempt(self, request: Request, seconds: float) -> bytes | Failure:
        """Ask once, in so many seconds at most; failures are values, so that no traceback holds the request."""
        import requests
        import urllib3

        response = None
        try:
            with self._watch.limit(seconds):
                response = self._send(request, seconds)
                found = self._read(response)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            found = self._explain(error)
        finally:
            if response is not None:
                # A body that was not read to its end closes its connection.
                response.close()
        if self._watch.is_over:
            return Failure(f"did not end its answer in time ({seconds:g} s left); raise deadline, or send less text")
        return found

    def _send(self, request: Request, seconds: float) -> Any:
        import requests

        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "vbterrier"}
        headers |= {name: before + secret.reveal() for name, before, secret in self.headers}
        prepared = requests.Request(
            request.method, self.endpoint, headers, params=request.params, data=request.form, json=request.json
        ).prepare()
        proxies = {urlsplit(self.endpoint).scheme: self.proxy} if self.proxy else {}
        wait = min(self.timeout, seconds)
        return self._adapter.send(prepared, stream=True, timeout=(wait, wait), verify=True, proxies=proxies)

    def _read(self, response: Any) -> bytes | Failure:
        status = response.status_code
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return self._body(response, self.max_bytes)
        reason = f"answered {status} {_phrase(status)}"
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            where = _shown(self._hidden(response.headers.get("Location", "")))
            return Failure(f"{reason} to {where}; not followed: name that endpoint if you trust it", status=status)
        body = self._body(response, _PIECE)
        said = "" if isinstance(body, Failure) else self._hidden(body.decode("utf-8", "replace"))
        shown = f": {printable(' '.join(said.split())[:_EXCERPT])}" if said and "<" not in said else ""
        passing = status == _BUSY[0] or status >= _BUSY[1]
        remedy = "try later, or ask those who run the service" if passing else "correct what was sent"
        wait = _seconds(response.headers.get("Retry-After")) if passing else 0.0
        return Failure(f"{reason}{shown}; {_REMEDIES.get(status, remedy)}", passing, status, wait)

    def _body(self, response: Any, limit: int) -> bytes | Failure:
        """The body, unpacked: never more of it in memory than the limit and a piece."""
        packed = response.headers.get("Content-Encoding", "identity").strip().lower()
        if packed not in {"identity", "", "gzip", "x-gzip"}:
            return Failure(
                f"packed its answer as {printable(packed[:40])!r}, wanted plain or gzip", status=response.status_code
            )
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if packed.endswith("gzip") else None
        too_much = Failure(
            f"sent more than {limit:,} bytes; raise max_bytes if such answers are expected", status=response.status_code
        )
        n_read, pieces, n_bytes = 0, [], 0
        for piece in response.raw.stream(_PIECE, decode_content=False):
            n_read += len(piece)
            try:
                plain = inflate.decompress(piece, limit + 1 - n_bytes) if inflate else piece
            except zlib.error:
                return Failure("sent a damaged gzip stream", passing=True, status=response.status_code)
            n_bytes += len(plain)
            if n_bytes > limit or n_read > limit:
                return too_much
            pieces.append(plain)
        if inflate and n_read and not inflate.eof:
            return Failure("sent half a gzip stream", passing=True, status=response.status_code)
        return b"".join(pieces)

    def _explain(self, error: Exception) -> Failure:
        import requests
        import urllib3

        cause: BaseException = error
        while inner := cause.__cause__ or cause.__context__:
            cause = inner
        said = printable(self._hidden(getattr(cause, "strerror", None) or type(cause).__name__)[:_EXCERPT])
        if isinstance(error, requests.exceptions.SSLError):
            return Failure(f"has no certificate to trust ({said}): is it the right host?")
        if isinstance(error, (requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError)):
            return Failure(f"took no connection in {self.timeout:g} s: is it up, and the host right?", passing=True)
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
            return Failure(f"was silent for {self.timeout:g} s; raise timeout if it is slow", passing=True)
        if isinstance(error, requests.ConnectionError):
            return Failure(f"could not be reached ({said}): is it up, and the host right?", passing=True)
        if isinstance(error, (urllib3.exceptions.ProtocolError, OSError)) and not isinstance(error, ValueError):
            return Failure(f"closed the connection before its answer ended ({said})", passing=True)
        return Failure(f"cannot be asked ({said}): correct the endpoint")

    def _hidden(self, text: str) -> str:
        for _, _, secret in self.headers:
            text = secret.hide(text)
        return text


def _shown(address: str) -> str:
    """An address without user, password, query and fragment."""
    try:
        target = urlsplit(address)
    except ValueError:
        return "what is no address"
    host = target.netloc.rpartition("@")[2]
    return printable(f"{target.scheme}://{host}{target.path}"[:_EXCERPT])


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in {known.value for known in HTTPStatus} else "(no known status)"


def _seconds(header: str | None) -> float:
    """What Retry-After says, as seconds from now; 0 for what cannot be read."""
    if header is None:
        return 0.0
    if header.strip().isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
