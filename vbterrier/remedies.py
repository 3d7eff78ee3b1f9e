"""Remedies of errors and warnings: parameters, as the interface in use writes them."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class Interface:
    """The parameters that callers can give: of a function, by settings object, or the options of a command.

    - ``parameters``: the settings of each parameter, as ``"data=Data"``; empty for a parameter of the function itself
    - ``options``: the option of each parameter; a command has options alone
    """

    parameters: Mapping[str, str]
    options: Mapping[str, str] | None = None

    def text(self, name: str, value: str | None) -> str:
        """Return a parameter as callers write it; empty if they cannot give it."""
        if self.options is not None:
            option = self.options.get(name)
            return "" if option is None else f"{option} {value}" if value is not None else option
        settings = self.parameters.get(name)
        if settings is None:
            return ""
        return f"{settings}({_set(name, value)})" if settings else _set(name, value)


def _set(name: str, value: str | None) -> str:
    return f"{name}=" if value is None else f"{name}={value!r}"


# The interface of the outermost call: a public function, or a command.
_IN_USE: ContextVar[Interface | None] = ContextVar("interface", default=None)


@contextmanager
def interface(used: Interface | None) -> Iterator[None]:
    """Name remedies as an interface writes them, unless a caller has its own."""
    if used is None or _IN_USE.get() is not None:
        yield
        return
    token = _IN_USE.set(used)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def interface_of(call: Callable[..., Any], settings: Mapping[str, Any]) -> Interface:
    """Return the interface of a function; ``settings`` are the settings that it uses, by their parameter."""
    own = dict.fromkeys(inspect.signature(call).parameters.keys() - settings.keys(), "")
    used = {
        name: f"{parameter}={type(defaults).__name__}"
        for parameter, defaults in settings.items()
        for name in defaults.given()
    }
    return Interface({**own, **used})


@dataclass(frozen=True)
class Remedy:
    """A parameter that resolves a problem, and its value if it is not one of the user's data.

    - ``way``, ``command``: what has the parameter, for functions and for commands that have not

    >>> with interface(Interface({"system": "data=Data"})):
    ...     ONE_SYSTEM.text()
    "data=Data(system='none')"
    >>> with interface(Interface({}, {"system": "--system"})):
    ...     SYSTEM.text("tag")
    '--system tag'
    >>> ONE_SYSTEM.text()
    "vbterrier.score(..., data=Data(system='none'))"
    >>> NEGATIVE.text()
    "vbterrier.read_qrels(path, negative='unjudged')"
    """

    name: str
    way: str
    value: str | None = None
    command: str = ""

    def text(self, value: str | None = None) -> str:
        """Return the parameter as the interface in use writes it, or a way that every caller has."""
        value = self.value if value is None else value
        used = _IN_USE.get()
        if self.command and used is not None and used.options is not None:
            return self.offered(value) or self.command.format(self._option(value))
        return self.offered(value) or self.way.format(_set(self.name, value))

    def _option(self, value: str | None) -> str:
        return f"--{self.name.replace('_', '-')}{'' if value is None else f' {value}'}"

    def offered(self, value: str | None = None) -> str:
        """Return the parameter as the interface in use writes it; empty if its callers cannot give it."""
        used = _IN_USE.get()
        return "" if used is None else used.text(self.name, self.value if value is None else value)

    def of(self, call: str, given: str = "...") -> str:
        """Return another call with the parameter, or the command of its name if a command is in use.

        ``given`` are its other arguments in Python.

        >>> COMMON_TOPICS.of("compare")
        "vbterrier.compare(..., data=Data(on_topics='common'))"
        >>> with interface(Interface({}, {"qrels": "--qrels"})):
        ...     COMMON_TOPICS.of("compare")
        'vbterrier compare --on-topics common'
        """
        used = _IN_USE.get()
        if used is not None and used.options is not None:
            return f"vbterrier {call} {self._option(self.value)}"
        return f"vbterrier.{call}({given}, data=Data({_set(self.name, self.value)}))"


_SCORE = "vbterrier.score(..., data=Data({}))"
_READ_QRELS = "vbterrier.read_qrels(path, {})"
_CONVERT = "vbterrier convert FILE -o NEW --kind qrels --to trec {}"

SYSTEM = Remedy("system", _SCORE)
ONE_SYSTEM = Remedy("system", _SCORE, "none")
FIRST_DUPLICATE = Remedy("duplicates", "vbterrier.frames.ranked(run, {})", "first")
COMMON_TOPICS = Remedy("on_topics", _SCORE, "common")
ALL_TOPICS = Remedy("on_topics", _SCORE, "all")
TOPICS = Remedy("topics", _SCORE)
SUBTOPICS = Remedy("subtopics", _SCORE)
NEGATIVE = Remedy("negative", _READ_QRELS, "unjudged", _CONVERT)
FIRST_LABEL = Remedy("contradictions", _READ_QRELS, "first", _CONVERT)
UNIT = Remedy("unit", _READ_QRELS, None, _CONVERT)
MAX_BYTES = Remedy("max_bytes", "max_bytes= of its reader, such as vbterrier.read_run,")
