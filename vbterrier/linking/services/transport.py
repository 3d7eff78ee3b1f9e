"""HTTP requests with limits on time and size."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vbterrier.errors import ParameterError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRINTABLE_ASCII = re.compile(r"[\x21-\x7e]+")
_BLOCK_BYTES = 1 << 16
_EXCERPT_LENGTH = 300
_REMEDIES = {
    HTTPStatus.UNAUTHORIZED: "pass the service's token",
    HTTPStatus.FORBIDDEN: "pass a token that may use the service",
    HTTPStatus.NOT_FOUND: "correct the path of the endpoint",
    HTTPStatus.METHOD_NOT_ALLOWED: "correct the path of the endpoint",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "cut the text",
    HTTPStatus.REQUEST_URI_TOO_LONG: "cut the text, or pass method='POST' where the client has it",
}


def require_address(address: str, what: str) -> None:
    """Check an http or https address."""
    if not isinstance(address, str) or not _PRINTABLE_ASCII.fullmatch(address):
        raise ParameterError(f"{what}: wanted an address in ASCII without blanks, such as https://host/path")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise ParameterError(f"{what}: wanted https://host/path or http://host/path, with a host")
    if "@" in parts.netloc or "?" in address or "#" in address:
        remedy = "pass a token as token=..., and parameters as those of the client"
        raise ParameterError(f"{what}: wanted https://host/path without user, password, query or fragment; {remedy}")


def is_private(address: str) -> bool:
    """Return True if requests to an address cannot be read in transit: https, or this machine."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "https" or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Secret:
    """A token that prints as ``***``, compares by value, and cannot be pickled."""

    def __init__(self, word: str) -> None:
        if not isinstance(word, str) or not _PRINTABLE_ASCII.fullmatch(word):
            # The message does not show the token.
            raise ParameterError("token: wanted printable ASCII text without blanks")
        self._word = word

    def reveal(self) -> str:
        """Return the token."""
        return self._word

    def hide(self, text: str) -> str:
        r"""Replace the token with ``***``, each character as is or escaped as in URLs, JSON or HTML.

        >>> Secret("a+b/c").hide(r"a%2Bb%2fc, a+b\/c, a\u002bb/c, a&#43;b/c")
        '***, ***, ***, ***'
        """
        return re.sub("".join(map(_escapes, self._word)), "***", text)

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._word == other._word

    def __hash__(self) -> int:
        return hash(self._word)

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a token is not pickled, so that no file contains it: construct the client where it is needed")


def _escapes(character: str) -> str:
    """Return a pattern of the ways to write an ASCII character."""
    code = ord(character)
    named = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;"}.get(character, "")
    return rf"(?:\\?{re.escape(character)}|(?i:%{code:02x}|\\u00{code:02x}|&\#0*{code};|&\#x0*{code:x};{named}))"


@dataclass(frozen=True)
class Request:
    """An HTTP request: the method, the query of the address, and a form or JSON as the body."""

    method: str = "POST"
    params: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None
    json: Any = None


@dataclass(frozen=True)
class Failure:
    """The reason why a request has no answer."""

    message: str  # the problem and the remedy, without secrets
    temporary: bool = False  # True if a retry may succeed
    status: int | None = None  # the HTTP status, if there is one
    retry_after: float = 0.0  # the seconds that the service asks to wait before a retry


@dataclass(frozen=True)
class Transport:
    """The connection to one endpoint, opened by the first request.

    Requests go to the endpoint, or to the proxy, and to no other host: redirects are not followed, and proxies,
    passwords and certificates in the environment are ignored. Cookies are not kept.
    """

    endpoint: str
    # Headers that contain secrets, as (name, text before the secret, secret).
    headers: tuple[tuple[str, str, Secret], ...]
    timeout: float  # seconds to wait for the connection, and for each read of an answer
    max_bytes: int  # the maximum size of an answer, compressed and decompressed
    proxy: str | None = None  # the address of a proxy

    @cached_property
    def _connection(self) -> _Connection:
        """The open connection, if there is one."""
        return _Connection()

    @cached_property
    def _session(self) -> Any:
        import requests

        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _adapter(self._connection))
        session.trust_env = False
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        # Even with allow_redirects=False, requests reads the whole body of an answer that redirects.
        session.get_redirect_target = lambda _: None
        session.headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "vbterrier"}
        if self.proxy:
            session.proxies = {urlsplit(self.endpoint).scheme: self.proxy}
        return session

    def close(self) -> None:
        """Close the connection."""
        if "_session" in vars(self):
            self._session.close()

    def attempt(self, request: Request, seconds: float) -> bytes | Failure:
        """Send a request once and return the body of the answer, within a time limit."""
        ends = time.monotonic() + seconds
        answers: list[bytes | Failure | BaseException] = []
        session, connection = self._session, self._connection

        def ask() -> None:
            try:
                answers.append(self._send_request(session, request, ends, seconds))
            except BaseException as error:  # noqa: BLE001 - raised by the caller
                answers.append(error)

        # No timeout of requests limits the whole: look-ups of names, further addresses, headers, trailers and
        # "100 Continue" can go on for ever.
        work = threading.Thread(target=ask, name="vbterrier-request", daemon=True)
        work.start()
        try:
            work.join(seconds)
        finally:
            if work.is_alive():
                connection.end()
                # The next request gets another connection.
                for cached in ("_session", "_connection"):
                    vars(self).pop(cached, None)
        answer = answers[0] if answers else None
        if isinstance(answer, BaseException):
            raise answer
        if answer is None or (time.monotonic() >= ends and not isinstance(answer, bytes)):
            remedy = "raise RequestOptions(deadline=), or send less text"
            return Failure(f"did not end its answer in time ({seconds:g} s left); {remedy}")
        return answer

    def _send_request(self, session: Any, request: Request, ends: float, seconds: float) -> bytes | Failure:
        """Send a request and return the body of the answer."""
        import requests
        import urllib3

        wait = min(self.timeout, seconds)
        headers = {name: before + secret.reveal() for name, before, secret in self.headers}
        # Failures are values: the traceback of an exception would refer to the request and its secrets.
        try:
            options = {"params": request.params, "data": request.form, "json": request.json, "headers": headers}
            options |= {"timeout": (wait, wait), "allow_redirects": False, "stream": True}
            with session.request(request.method, self.endpoint, **options) as response:
                return self._read_response(response, ends)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return self._connection_failure(error)

    def _read_response(self, response: Any, ends: float) -> bytes | Failure:
        status = response.status_code
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return self._body(response, self.max_bytes, ends)
        phrase = HTTPStatus(status).phrase if status in {member.value for member in HTTPStatus} else "(no known status)"
        reason = f"answered {status} {phrase}"
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            target = _without_secrets(self.hide(response.headers.get("Location", "")))
            return Failure(f"{reason} to {target}; not followed: name that endpoint if you trust it", status=status)
        body = self._body(response, _BLOCK_BYTES, ends)
        text = "" if isinstance(body, Failure) else " ".join(body.decode("utf-8", "replace").split())
        shown = f": {self._redacted_excerpt(text)}" if text and "<" not in text else ""
        temporary = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        remedy = "try later, or ask the operator of the service" if temporary else "correct the request"
        retry_after = _seconds(response.headers.get("Retry-After")) if temporary else 0.0
        return Failure(f"{reason}{shown}; {_REMEDIES.get(status, remedy)}", temporary, status, retry_after)

    def _body(self, response: Any, limit: int, ends: float) -> bytes | Failure:
        """Return the decompressed body, with at most the limit and one chunk of it in memory."""
        status = response.status_code
        coding = response.headers.get("Content-Encoding", "identity").strip()
        encoding = coding.lower()
        if encoding not in {"identity", "", "gzip", "x-gzip"}:
            shown = self._redacted_excerpt(coding, 40)
            return Failure(f"encoded its answer as {shown!r}, wanted plain or gzip", status=status)
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding.endswith("gzip") else None
        n_read, n_bytes, chunks = 0, 0, []
        # Unlike read and stream, read1 returns what has arrived and does not wait for a full chunk.
        while True:
            chunk = response.raw.read1(_BLOCK_BYTES, decode_content=False)
            # An answer without a length seems to end where its connection was cut.
            if time.monotonic() >= ends:
                return Failure("sent too slowly")
            if not chunk:
                break
            n_read += len(chunk)
            try:
                plain = inflate.decompress(chunk, limit + 1 - n_bytes) if inflate else chunk
            except zlib.error:
                return Failure("sent a damaged gzip stream", temporary=True, status=status)
            n_bytes += len(plain)
            if n_bytes > limit or n_read > limit:
                return Failure(
                    f"sent more than {limit:,} bytes; raise RequestOptions(max_bytes=) for such answers", status=status
                )
            chunks.append(plain)
        if inflate and n_read and not inflate.eof:
            return Failure("sent a truncated gzip stream", temporary=True, status=status)
        return b"".join(chunks)

    def _connection_failure(self, error: Exception) -> Failure:
        import requests
        import urllib3

        cause: BaseException = error
        while inner := cause.__cause__ or cause.__context__:
            cause = inner
        shown = self._redacted_excerpt(getattr(cause, "strerror", None) or type(cause).__name__)
        if isinstance(error, requests.exceptions.SSLError):
            return Failure(f"has no trusted certificate ({shown}); check the host")
        if isinstance(error, (requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError)):
            return Failure(f"accepted no connection in {self.timeout:g} s; check that it is up, and the host", True)
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
            return Failure(
                f"sent nothing for {self.timeout:g} s; raise RequestOptions(timeout=) if it is slow", temporary=True
            )
        if isinstance(error, requests.ConnectionError):
            return Failure(f"could not be reached ({shown}); check that it is up, and the host", temporary=True)
        if isinstance(error, (urllib3.exceptions.ProtocolError, OSError)) and not isinstance(error, ValueError):
            return Failure(f"closed the connection before its answer ended ({shown})", temporary=True)
        return Failure(f"cannot be asked ({shown}); correct the endpoint")

    def _redacted_excerpt(self, text: str, length: int = _EXCERPT_LENGTH) -> str:
        """The start of a text of the service for a message; secrets are hidden before it is cut."""
        return printable(self.hide(text)[:length])

    def hide(self, text: str) -> str:
        """Replace the secrets in a text."""
        for _, _, secret in self.headers:
            text = secret.hide(text)
        return text


class _Connection:
    """The last connection of a session, which another thread may end in any phase."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._is_over = False

    def opens(self, connection: Any) -> None:
        """Take the place of the last connection."""
        self._connection = connection

    def require_time(self) -> None:
        """Close a connection that was made after the end, and raise an error."""
        if self._is_over:
            self._connection.close()
            raise TimeoutError

    def end(self) -> None:
        """End the connection, also while an answer is read, so that the read ends, and any later one."""
        self._is_over = True
        made = getattr(self._connection, "sock", None)
        if made is not None:
            with suppress(OSError):
                # SSLSocket.shutdown would change what another thread reads from.
                socket.socket.shutdown(made, socket.SHUT_RDWR)


def _adapter(last: _Connection) -> Any:
    """An adapter of requests that records its last connection."""
    from requests.adapters import HTTPAdapter
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    def watched_pool(pool: Any) -> Any:
        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def connect(self) -> None:
                last.opens(self)
                super().connect()
                last.require_time()

        return type(pool.__name__, (pool,), {"ConnectionCls": Connection})

    pools = {"http": watched_pool(HTTPConnectionPool), "https": watched_pool(HTTPSConnectionPool)}

    class Adapter(HTTPAdapter):  # type: ignore[misc]
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
            manager = super().proxy_manager_for(*args, **options)
            manager.pool_classes_by_scheme = pools
            return manager

    return Adapter()


def _without_secrets(address: str) -> str:
    """Return an address without user, password, query and fragment."""
    try:
        target = urlsplit(address)
    except ValueError:
        return "an invalid address"
    host = target.netloc.rpartition("@")[2]
    return printable(f"{target.scheme}://{host}{target.path}"[:_EXCERPT_LENGTH])


def _seconds(header: str | None) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 if it is absent or invalid."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return float(Retry().parse_retry_after(header)) if header else 0.0
    except (InvalidHeader, ValueError, OverflowError):
        return 0.0
