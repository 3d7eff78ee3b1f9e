"""Base class of linker clients: address, credentials and cached answers."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from os import SEEK_END
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.errors import (
    FileError,
    InputError,
    ParameterError,
    ServiceError,
    number,
    path_parameter,
    printable,
    settings_parameter,
    whole,
)
from vbterrier.frames.files.source import Source, is_there, parse_json, refuse_constant, require_regular
from vbterrier.frames.files.writing import lock
from vbterrier.linking.services.json_answers import is_text
from vbterrier.linking.services.transport import Failure, Request, Secret, Transport, is_private, require_address
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from vbterrier.linking.links import Links
    from vbterrier.linking.services.json_answers import Format


_LOG = logging.getLogger(__name__)
_MIN_PROGRESS_TEXTS = 20
_REPEATED = "not shown because the answer repeats the token"
_LINE_START = b'{"key": "'


class AnswerCache:
    """Answers by key, in memory or in a file with lines ``{"key": ..., "answer": ...}``.

    Each answer is appended when it arrives, so that an interrupted run can resume. An incomplete last line, which a
    killed process may leave, is removed. Processes take turns to write, and get the answers of the others.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._answers: dict[str, str] = {}
        # Bytes and lines of whole answers.
        self._whole = self._n_lines = 0
        if self.path is not None:
            require_regular(self.path)
        if self.path is not None and is_there(self.path):
            # Compressed files are not decompressed: lines cannot be appended to them.
            with Source.at(self.path, None).raw() as file:
                self._take(self.path, bytes(file.read()))

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __getitem__(self, key: str) -> str:
        return self._answers[key]

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, key: str, answer: str) -> None:
        """Store an answer, which is JSON on one line."""
        self._answers[key] = answer
        if self.path is None:
            return
        line = f'{{"key": "{key}", "answer": {answer}}}\n'.encode()
        try:
            with self.path.open("a+b") as file:
                lock(file)
                # Whole lines behind the known ones are answers of other processes; a rest is of one that was killed.
                self._whole = min(self._whole, file.seek(0, SEEK_END))
                file.seek(self._whole)
                self._take(self.path, file.read())
                file.truncate(self._whole)
                file.write(line)
        except OSError as error:
            raise FileError(self.path, f"cannot be written: {error.strerror or error}") from error
        self._whole += len(line)
        self._n_lines += 1

    def _take(self, path: Path, text: bytes) -> None:
        """Take the answers of the lines behind those that are known."""
        *lines, rest = text.split(b"\n")
        for place, line in enumerate(lines, start=self._n_lines + 1):
            try:
                record = parse_json(line)
                key, answer = record["key"], record["answer"]
            except (ValueError, KeyError, TypeError, RecursionError):
                key = None
            if not isinstance(key, str):
                raise _not_a_cache(path, place)
            self._answers[key] = json.dumps(answer)
        self._n_lines += len(lines)
        # Remove an incomplete line only if this class can have written it.
        if not rest.startswith(_LINE_START[: len(rest)]):
            raise _not_a_cache(path, self._n_lines + 1)
        self._whole += len(text) - len(rest)


def _not_a_cache(path: Path, line: int) -> FileError:
    return FileError(path, 'wanted {"key": ..., "answer": ...}; name a cache of answers or a new file', line=line)


@dataclass(frozen=True)
class RequestOptions:
    """Limits and retries of the requests to a linking service, and where its answers are kept: ``options=``.

    Parameters
    ----------
    timeout
        Seconds to wait for the connection, and for each read of an answer, above 0.
    deadline
        Seconds for one text, above 0, retries and waits included. The connection is ended then, also if the
        service still sends.
    max_bytes
        The maximum size of an answer, compressed and decompressed, at least 1 byte.
    retries, backoff
        The number of retries after a status of 500 or more, 429, a time-out or a broken connection, at least 0, and the
        seconds before the first one, at least 0, doubled for each further one. A longer ``Retry-After`` replaces them;
        there is no retry beyond the deadline.
    proxy
        The address of a proxy, such as ``http://proxy:3128``.
    cache
        A file of answers (JSON lines) to read and extend; ``None`` keeps them in memory.

    Raises
    ------
    ParameterError
        A value outside its range; a proxy with a password, a query or a fragment; a cache that is no path.

    Examples
    --------
    >>> from vbterrier.linking import RELClient
    >>> RELClient("http://localhost:5555", options=RequestOptions(timeout=60, deadline=300)).options.deadline
    300
    """

    timeout: float = 10.0
    deadline: float = 60.0
    max_bytes: int = 1 << 24
    retries: int = 2
    backoff: float = 0.5
    proxy: str | None = None
    cache: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("timeout", "deadline"):
            number(name, getattr(self, name), low=0, open_low=True)
        number("backoff", self.backoff, low=0)
        whole("max_bytes", self.max_bytes)
        whole("retries", self.retries, low=0)
        if self.proxy is not None:
            require_address(self.proxy, "proxy")
        if self.cache is not None:
            path_parameter("cache", self.cache)


@dataclass(frozen=True, repr=False)
class Client(ABC):
    """A linker behind an HTTP endpoint.

    Each distinct text is sent once, in order, one at a time; blank texts are not sent. Only ``link`` opens connections,
    and only to the host of the endpoint or to the proxy: redirects are errors, and proxies and passwords in the
    environment are ignored. Answers are cached, so that the same call resumes after an error.

    Parameters
    ----------
    endpoint
        The full address that takes requests, ``https://...`` or ``http://...``; there is no default.
    token
        The service's token; never shown, logged or pickled, and sent only over https or to this machine.
    misplaced
        The treatment of mentions that are not at their offsets in the text: ``"error"`` or ``"unplaced"``.
    options
        A :class:`vbterrier.linking.RequestOptions`: time limits, retries, a proxy, and a file of answers.

    Raises
    ------
    ParameterError
        A value outside its range, or an endpoint with a password, a query or a fragment.
    """

    endpoint: str
    token: str | Secret | None = field(default=None, kw_only=True)
    misplaced: str = field(default="error", kw_only=True)
    options: RequestOptions = field(default=RequestOptions(), kw_only=True)

    format_type: ClassVar[type[Format]]
    # The header of the token, and the text before the token.
    token_header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer ")

    def __post_init__(self) -> None:
        require_address(self.endpoint, "endpoint")
        settings_parameter("options", RequestOptions, self.options)
        if self.token is not None:
            if not isinstance(self.token, Secret):
                object.__setattr__(self, "token", Secret(self.token))
            if not is_private(self.endpoint):
                fault = "a token would be sent unencrypted; use https, or no token"
                raise ParameterError(f"endpoint={self.endpoint!r}: {fault}")
            if self.options.proxy is not None and self.endpoint.startswith("http:"):
                fault = f"would read the token, which goes unencrypted to {self.endpoint}"
                raise ParameterError(f"proxy={self.options.proxy!r}: {fault}; use an https endpoint, or no proxy")
        # Check the parameters of the format now, not after the first answer.
        _ = self.format

    @cached_property
    def format(self) -> Format:
        """The format of the answers."""
        settings = {
            each.name: getattr(self, each.name) for each in fields(self.format_type) if hasattr(self, each.name)
        }
        return self.format_type(**settings)

    @abstractmethod
    def _request(self, text: str) -> Request:
        """Return the request for a text."""

    @property
    def id_space(self) -> str:
        """The name of the id space of the entities."""
        return self.format.id_space

    def link(self, texts: Sequence[str]) -> Links:
        """Link the mentions in each text to candidate entities.

        Raises
        ------
        InputError
            ``texts`` is not a sequence of texts.
        ServiceError
            The service gave no answer, or an invalid one; the error names the endpoint, the text and the status.
            Earlier answers are kept.
        FileError
            The cache cannot be read or written.

        Warns
        -----
        DegenerateWarning
            Mentions are linked to nothing, or offsets are not in the usual unit of the service; once per client.
        """
        texts = _valid_texts(texts)
        with self._lock:
            distinct = list(dict.fromkeys(text for text in texts if text.strip()))
            missing = [text for text in distinct if self._key(text) not in self._answers]
            counts = len(distinct), len(distinct) - len(missing), len(missing)
            _LOG.info("%s: %d texts, %d cached answers, %d to request", self.format.service, *counts)
            self._request_answers(missing, texts)
        answers = (json.loads(self._answers[self._key(text)]) if text.strip() else None for text in texts)
        return self.format.links(answers, texts, warned=self._issued_warnings)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._transport.close()

    def __repr__(self) -> str:
        values = [(each.name, getattr(self, each.name), each.default) for each in fields(self)[1:]]
        shown = [f"{name}={value!r}" for name, value, default in values if value != default]
        return f"{type(self).__name__}({', '.join([repr(self.endpoint), *shown])})"

    def __getstate__(self) -> dict[str, Any]:
        # Connections and answers are not pickled; a token raises an error.
        return {parameter.name: getattr(self, parameter.name) for parameter in fields(self)}

    @cached_property
    def _lock(self) -> Any:
        return RLock()

    @cached_property
    def _issued_warnings(self) -> set[str]:
        """The warnings already given, which later batches do not repeat."""
        return set()

    @cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.options.cache)

    @cached_property
    def _transport(self) -> Transport:
        headers = ((*self.token_header, self.token),) if isinstance(self.token, Secret) else ()
        limits = self.options.timeout, self.options.max_bytes
        return Transport(self.endpoint, headers, *limits, self.options.proxy)

    def _key(self, text: str) -> str:
        """Return a digest of a text and everything else that its answer depends on, without secrets."""
        parts = [type(self).__name__, self.endpoint, asdict(self._request(text))]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _request_answers(self, missing: list[str], texts: list[str]) -> None:
        progress = bar(missing, self.format.service, shown=len(missing) > _MIN_PROGRESS_TEXTS, unit="text")
        for n_done, text in enumerate(progress):
            if self._key(text) in self._answers:
                # Another process got it in the meantime.
                continue
            answer = self._fetch(text)
            if isinstance(answer, Failure):
                progress.close()
                place = f"text {texts.index(text)} ({printable(text[:40])!r})"
                message = (
                    f"{self.format.service} at {self.endpoint}: {place}: {answer.message}; {n_done} of {len(missing)} "
                    "answers arrived and are kept: the same call requests the rest"
                )
                raise ServiceError(self.endpoint, self._transport.hide(message), status=answer.status)
            self._answers.add(self._key(text), answer)

    def _fetch(self, text: str) -> str | Failure:
        """Request the answer to a text, with retries, and return it as checked JSON."""
        started, request, n_tries, options = time.monotonic(), self._request(text), 0, self.options
        while True:
            n_tries += 1
            answer = self._transport.attempt(request, max(options.deadline - (time.monotonic() - started), 0.001))
            if isinstance(answer, bytes):
                return self._decode_answer(answer, text)
            if not answer.temporary:
                return answer
            wait = max(options.backoff * 2 ** (n_tries - 1), answer.retry_after)
            late = time.monotonic() - started + wait >= options.deadline
            if n_tries > options.retries or late:
                tries = f"{n_tries} tries" if n_tries > 1 else "1 try"
                if n_tries <= options.retries:
                    tries += f"; the next would be in {wait:g} s, beyond the deadline of {options.deadline:g} s"
                return replace(answer, message=f"{answer.message} ({tries})")
            time.sleep(wait)

    def _decode_answer(self, body: bytes, text: str) -> str | Failure:
        try:
            content = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return Failure(f"answered with invalid UTF-8 (byte {error.start}); JSON is UTF-8")
        # Messages may end in the middle of a token, which is not found there.
        repeats_token = self._transport.hide(content) != content
        try:
            answer = parse_json(content, parse_constant=refuse_constant)
            text_of_answer = json.dumps(answer)
            self.format.read_answer(answer, text)
        except InputError as error:
            reason = _REPEATED if repeats_token else str(error)
            return Failure(f"answered in another format: {reason}")
        except (ValueError, RecursionError) as error:
            problem = _REPEATED if repeats_token else printable(str(error))[:80]
            reason = "HTML" if body.lstrip()[:1] == b"<" else f"invalid JSON ({problem})"
            return Failure(f"answered with {reason}; check the path of the endpoint, and whether it needs a token")
        return text_of_answer


def _valid_texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError("texts: wanted a sequence of texts, found one text; put it in a list")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"texts: wanted text, found {type(text).__name__} at {place}; cast or drop it")
        if not is_text(text):
            raise InputError(f"texts: text {place} contains half of a surrogate pair, which cannot be sent; repair it")
    return texts
