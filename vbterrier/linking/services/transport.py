"""HTTP requests with limits on time and size."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

from vbterrier.errors import ParameterError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_SIGNS = re.compile(r"[\x21-\x7e]+")


def require_address(address: str, what: str) -> None:
    """Check an address of http or https.

    Raises
    ------
    ParameterError
        Another scheme, no host, a port that is none, or a password, a query or a fragment, which are not repeated.

    >>> require_address("example.org", "endpoint")
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: endpoint: wanted https://host/path or http://host/path, with a host
    """
    if not isinstance(address, str) or not _SIGNS.fullmatch(address):
        raise ParameterError(f"{what}: wanted an address in ASCII without blanks, as https://host/path")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise ParameterError(f"{what}: wanted https://host/path or http://host/path, with a host")
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise ParameterError(
            f"{what}: wanted https://host/path without user, password, query or fragment; "
            "a token goes in token=..., parameters in those of the client"
        )


def is_private(address: str) -> bool:
    """Whether nobody on the way can read what is sent there: https, or this machine itself.

    >>> is_private("http://127.0.0.1:8080/tag"), is_private("http://example.org/tag")
    (True, False)
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "https" or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_TOKEN = re.compile(r"[\x21-\x7e]+")


class Secret:
    """A word that prints as ``***``, compares with its like, and does not pickle.

    >>> Secret("s3cr3t")
    ***
    >>> Secret("s3cr3t").hide("the token s3cr3t is unknown")
    'the token *** is unknown'
    """

    def __init__(self, word: str) -> None:
        if not isinstance(word, str) or not _TOKEN.fullmatch(word):
            # The word itself stays out of the message.
            raise ParameterError("token: wanted printable ASCII text without blanks")
        self._word = word

    def reveal(self) -> str:
        """The word."""
        return self._word

    def hide(self, text: str) -> str:
        r"""Text with stars for the word, each sign of it plain or as addresses, JSON or HTML spell it.

        >>> Secret("a+b/c").hide(r"a%2Bb%2fc, a+b\/c, a\u002bb/c, a&#43;b/c")
        '***, ***, ***, ***'
        """
        return re.sub("".join(map(_spelt, self._word)), "***", text)

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._word == other._word

    def __hash__(self) -> int:
        return hash(self._word)

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a token is not pickled, so that it ends in no file: make the client anew where it is needed")


def _spelt(sign: str) -> str:
    """A pattern of all that a sign of ASCII may be written as."""
    code = ord(sign)
    named = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;"}.get(sign, "")
    return rf"(?:\\?{re.escape(sign)}|(?i:%{code:02x}|\\u00{code:02x}|&\#0*{code};|&\#x0*{code:x};{named}))"


class Watch:
    """Shuts sockets at a deadline, whatever the reader waits for.

    The time-outs of requests are of single reads: a server that sends a byte now and then, in its headers or its body,
    is never late for any of them.
    """

    def __init__(self) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self.is_over = False

    def add(self, opened: socket.socket) -> None:
        """Watch a socket for as long as it lives; one that comes after the deadline is shut at once."""
        with self._lock:
            self._sockets.add(opened)
            if self.is_over:
                _shut(opened)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Shut all sockets if the block takes longer; ``is_over`` tells."""
        self.is_over = False
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # One that is at it must not meet the connections of the next request.
            timer.join()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for opened in self._sockets:
                _shut(opened)


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def watched_adapter(watch: Watch) -> Any:
    """An adapter of requests, one connection at a time, that shows each socket it opens to a watch."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    pools = {"http": _watched(HTTPConnectionPool, watch), "https": _watched(HTTPSConnectionPool, watch)}

    class Adapter(HTTPAdapter):  # type: ignore[misc]
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
            manager = super().proxy_manager_for(*args, **kwargs)
            manager.pool_classes_by_scheme = pools
            return manager

    return Adapter(pool_connections=1, pool_maxsize=1)


def _watched(pool: Any, watch: Watch) -> Any:
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        # Watched as soon as it is there: a proxy is spoken to before the connection counts as made.
        @property
        def sock(self) -> Any:
            return self._sock

        @sock.setter
        def sock(self, opened: Any) -> None:
            self._sock = opened
            if opened is not None:
                watch.add(opened)

        def _tunnel(self) -> None:
            super()._tunnel()
            # A proxy that was cut off looks like one that has said all, and TLS would begin.
            if watch.is_over:
                raise TimeoutError

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})


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
