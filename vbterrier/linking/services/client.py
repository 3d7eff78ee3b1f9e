"""Base class of linker clients: address, credentials and cached answers."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import FileError, InputError, ParameterError, ServiceError, printable
from vbterrier.frames.files.source import Source
from vbterrier.linking.services.json_answers import is_text
from vbterrier.linking.services.transport import Failure, Request, Secret, Transport, is_private, require_address
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from vbterrier.linking.links import Links
    from vbterrier.linking.services.json_answers import Format


_START = b'{"key": "'


class AnswerCache:
    """Answers by key; a file has a line an answer, ``{"key": ..., "answer": ...}``.

    Lines are written when answers come, so that a run that was broken off resumes. Half a line at the end of the file,
    which a process leaves that was killed as it wrote, is cut off. One process at a time may write to a file.

    Parameters
    ----------
    path
        The file, made with the first answer; ``None`` keeps answers in memory alone.

    Raises
    ------
    FileError
        The file cannot be read or written, or is no such file; names the line.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._answers: dict[str, str] = {}
        self._whole = 0
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __getitem__(self, key: str) -> str:
        return self._answers[key]

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, key: str, answer: str) -> None:
        """Keep an answer, a JSON text on one line."""
        self._answers[key] = answer
        if self.path is None:
            return
        line = f'{{"key": "{key}", "answer": {answer}}}\n'.encode()
        try:
            with self.path.open("ab") as file:
                if file.tell() > self._whole:
                    file.truncate(self._whole)
                file.write(line)
        except OSError as error:
            raise FileError(self.path, f"cannot be written: {error.strerror or error}") from error
        self._whole += len(line)

    def _load(self, path: Path) -> None:
        # As it lies on the disk: lines cannot be added to a packed file, nor does one unpack without end.
        with Source.at(path, None).raw() as file:
            text = bytes(file.read())
        self._whole = text.rfind(b"\n") + 1
        *lines, rest = text.split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                key, answer = record["key"], record["answer"]
            except (ValueError, KeyError, TypeError, RecursionError):
                key = None
            if not isinstance(key, str):
                raise _no_cache(path, number)
            self._answers[key] = json.dumps(answer)
        # What no process of ours left half done is not cut off.
        if not rest.startswith(_START[: len(rest)]):
            raise _no_cache(path, len(lines) + 1)


def _no_cache(path: Path, line: int) -> FileError:
    return FileError(path, 'wanted {"key": ..., "answer": ...}: no cache of answers? name another file', line=line)


_LOG = logging.getLogger(__name__)
_MANY = 20


@dataclass(frozen=True, repr=False)
class Client(ABC):
    """A linker behind an HTTP endpoint.

    Texts are sent one at a time, in order, each different one once; blank texts are not sent. Nothing is sent, resolved
    or opened before ``link`` is called, and no host but the endpoint's (or the proxy's) is ever asked: redirects are
    errors, and proxies and passwords of the environment are left alone. Answers are kept, so that after an error the
    same call goes on where it stopped.

    Parameters
    ----------
    endpoint
        The full address that takes requests, ``https://...`` or ``http://...``; there is no default.
    token
        The service's token; never shown, logged or pickled, and sent over https or to this machine alone.
    timeout
        Seconds to wait for a connection, and for each piece of an answer.
    deadline
        Seconds that one text may take, tries and waits included.
    max_bytes
        How large an answer may be, packed and unpacked.
    retries
        How often to try again after a status of 500 or more, 429, a time-out or a broken connection.
    backoff
        Seconds before the first retry, doubled for each further one. A ``Retry-After`` that is longer counts instead,
        and ends the tries when it goes beyond the deadline.
    proxy
        A proxy to go through, as ``http://proxy:3128``.
    cache
        A file of answers (JSON lines), read and added to; ``None`` keeps them in memory.
    misplaced
        What to do with mentions that do not stand where the answer says: ``"error"`` or ``"unplaced"``.

    Raises
    ------
    ParameterError
        A value outside its range, or an endpoint with a password, a query or a fragment.
    """

    endpoint: str
    token: str | Secret | None = field(default=None, kw_only=True)
    timeout: float = field(default=10.0, kw_only=True)
    deadline: float = field(default=60.0, kw_only=True)
    max_bytes: int = field(default=1 << 24, kw_only=True)
    retries: int = field(default=2, kw_only=True)
    backoff: float = field(default=0.5, kw_only=True)
    proxy: str | None = field(default=None, kw_only=True)
    cache: str | PathLike[str] | None = field(default=None, kw_only=True)
    misplaced: str = field(default="error", kw_only=True)

    # The header that carries the token, and what stands before it.
    token_header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer ")

    def __post_init__(self) -> None:
        require_address(self.endpoint, "endpoint")
        if self.proxy is not None:
            require_address(self.proxy, "proxy")
        for name in ("timeout", "deadline", "max_bytes", "retries", "backoff"):
            self._require_number(name, zero=name in {"retries", "backoff"}, whole=name in {"max_bytes", "retries"})
        if self.token is not None and not isinstance(self.token, Secret):
            object.__setattr__(self, "token", Secret(self.token))
        if self.token is not None and not is_private(self.endpoint):
            raise ParameterError(
                f"endpoint={self.endpoint!r}: a token would be readable on its way; use https, or no token"
            )
        # Wrong parameters of the format are told now, not after the first answer.
        _ = self.format

    def _require_number(self, name: str, *, zero: bool, whole: bool) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not (is_number and (0 < value < math.inf or (zero and value == 0))):
            wanted = f"a {'whole ' * whole}number, {'0 or more' if zero else 'more than 0'}"
            raise ParameterError(f"{name}={value!r}: wanted {wanted}")

    @property
    @abstractmethod
    def format(self) -> Format:
        """How the service answers."""

    @abstractmethod
    def _request(self, text: str) -> Request:
        """What to send for a text."""

    @property
    def id_space(self) -> str:
        """What the entity ids count in."""
        return self.format.id_space

    def link(self, texts: Sequence[str]) -> Links:
        """Candidates of the mentions in each text.

        Raises
        ------
        InputError
            Something that is not a sequence of texts.
        ServiceError
            The service did not answer, or not with what can be read: names the endpoint, the text and the status. What
            was answered before is kept.
        FileError
            The cache cannot be read or written.

        Warns
        -----
        DegenerateWarning
            Mentions are linked to nothing, or answers count in other units than the service is known to; each once for
            a client.
        """
        texts = _checked(texts)
        with self._lock:
            asked = list(dict.fromkeys(text for text in texts if text.strip()))
            missing = [text for text in asked if self._key(text) not in self._answers]
            _LOG.info(
                "%s: %d texts, %d answers are kept, %d to ask for",
                self.format.service,
                len(asked),
                len(asked) - len(missing),
                len(missing),
            )
            self._ask(missing, texts)
        return self.format.links((self._answer(text) for text in texts), texts, told=self._told)

    def close(self) -> None:
        """Close the connection that was kept; another is opened when needed."""
        self._transport.close()

    def __repr__(self) -> str:
        shown = [repr(self.endpoint)]
        for parameter in fields(self)[1:]:
            value = getattr(self, parameter.name)
            if value != parameter.default:
                shown.append(f"{parameter.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        # Connections and answers stay here; a token refuses to go.
        return {parameter.name: getattr(self, parameter.name) for parameter in fields(self)}

    @cached_property
    def _lock(self) -> Any:
        return RLock()

    @cached_property
    def _told(self) -> set[str]:
        """The warnings that were given: what a service does always is no news in the next batch."""
        return set()

    @cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.cache)

    @cached_property
    def _transport(self) -> Transport:
        headers = ((*self.token_header, self.token),) if isinstance(self.token, Secret) else ()
        return Transport(self.endpoint, headers, self.timeout, self.max_bytes, self.proxy)

    def _key(self, text: str) -> str:
        """Names a text and all else that the answer depends on, and nothing that is secret."""
        what = [type(self).__name__, self.endpoint, asdict(self._request(text))]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def _answer(self, text: str) -> Any:
        return json.loads(self._answers[self._key(text)]) if text.strip() else None

    def _ask(self, missing: list[str], texts: list[str]) -> None:
        shown = bar(missing, self.format.service, shown=len(missing) > _MANY, unit="text")
        for n_done, text in enumerate(shown):
            found = self._fetch(text)
            if isinstance(found, Failure):
                shown.close()
                which = f"text {texts.index(text)} ({printable(text[:40])!r})"
                raise ServiceError(
                    self.endpoint,
                    f"{self.format.service} at {self.endpoint}: {which}: {found.message}; {n_done} of {len(missing)} "
                    "answers came and are kept: the same call asks for the others alone",
                    status=found.status,
                )
            self._answers.add(self._key(text), found)

    def _fetch(self, text: str) -> str | Failure:
        """The answer to a text as checked JSON, after as many tries as it may take."""
        started, request, n_tries = time.monotonic(), self._request(text), 0
        while True:
            n_tries += 1
            found = self._transport.attempt(request, max(self.deadline - (time.monotonic() - started), 0.001))
            if isinstance(found, bytes):
                return self._decoded(found, text)
            if not found.passing:
                return found
            if n_tries > self.retries:
                return _told(found, n_tries)
            wait = max(self.backoff * 2 ** (n_tries - 1), found.wait)
            if time.monotonic() - started + wait >= self.deadline:
                late = f"; the next would be in {wait:g} s, beyond the deadline of {self.deadline:g} s"
                return _told(found, n_tries, late)
            time.sleep(wait)

    def _decoded(self, body: bytes, text: str) -> str | Failure:
        try:
            answer = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse)
            written = json.dumps(answer)
            self.format.read(answer, text)
        except UnicodeDecodeError as error:
            return Failure(f"answered in no UTF-8 (byte {error.start}); JSON is UTF-8")
        except InputError as error:
            # The message may end in the middle of a token.
            repeats = isinstance(self.token, Secret) and self.token.hide(written) != written
            said = "not shown, for the answer repeats the token" if repeats else error
            return Failure(f"answered what its format does not have: {said}")
        except (ValueError, RecursionError) as error:
            kind = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
            said = "" if kind == "HTML" else f" ({printable(str(error))[:80]})"
            return Failure(f"answered {kind}{said}; is the path of the endpoint right, and does it want a token?")
        return written


def _told(failure: Failure, n_tries: int, more: str = "") -> Failure:
    tries = f"{n_tries} tries" if n_tries > 1 else "1 try"
    return replace(failure, message=f"{failure.message} ({tries}{more})")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _checked(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError("texts: wanted a sequence of texts, found one text; put it in a list")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"texts: wanted text, found {type(text).__name__} at {place}; cast or drop it")
        if not is_text(text):
            raise InputError(f"texts: text {place} holds half of a surrogate pair, which cannot be sent; repair it")
    return texts
