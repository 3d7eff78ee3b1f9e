"""Remedies of errors and warnings: parameters, as the interface in use writes them."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

P = ParamSpec("P")
T = TypeVar("T")


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
        setting = f"{name}=" if value is None else f"{name}={value!r}"
        return f"{settings}({setting})" if settings else setting


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


def interface_in_use() -> Interface | None:
    """Return the interface of the outermost call, for work that is done by other processes."""
    return _IN_USE.get()


def interface_of(call: Callable[..., Any], settings: Mapping[str, Any]) -> Interface:
    """Return the interface of a function; ``settings`` are the settings that it uses, by their parameter."""
    own = dict.fromkeys(inspect.signature(call).parameters.keys() - settings.keys(), "")
    used = {
        name: f"{parameter}={type(defaults).__name__}"
        for parameter, defaults in settings.items()
        for name in defaults.given()
    }
    return Interface({**own, **used})


def names_remedies(call: Callable[P, T]) -> Callable[P, T]:
    """Name the parameters of a function in the remedies of its errors and warnings."""
    used = interface_of(call, {})

    @wraps(call)
    def with_interface(*args: P.args, **options: P.kwargs) -> T:
        with interface(used):
            return call(*args, **options)

    return with_interface


@dataclass(frozen=True)
class Remedy:
    """A parameter that resolves a problem.

    - ``name``, ``value``: the parameter, and its value if it is not one of the user's data
    - ``otherwise``, ``otherwise_command``: the advice in functions and in commands that lack the parameter
    """

    name: str
    value: str | None = None
    otherwise: str = ""
    otherwise_command: str = ""

    def offered(self, words: str = "{}", value: str | None = None) -> str:
        """Return words about the parameter as the interface in use writes it, or the advice of others.

        >>> with interface(Interface({"on_topics": "data=Data"})):
        ...     COMMON_TOPICS.offered("ask for {}")
        "ask for data=Data(on_topics='common')"
        >>> with interface(Interface({}, {"on_topics": "--on-topics"})):
        ...     COMMON_TOPICS.offered("ask for {}")
        'ask for --on-topics common'
        >>> COMMON_TOPICS.offered("ask for {}")
        'keep the topics that all have'
        """
        used = _IN_USE.get()
        text = "" if used is None else used.text(self.name, self.value if value is None else value)
        if text:
            return words.format(text)
        return self.otherwise if used is None or used.options is None else self.otherwise_command or self.otherwise


def advice(*texts: str) -> str:
    """Join alternatives, without those that are empty or repeated."""
    return " or ".join(dict.fromkeys(filter(None, texts)))


COMMON_TOPICS = Remedy("on_topics", "common", "keep the topics that all have")
ALL_TOPICS = Remedy("on_topics", "all")
BEST_RANK = Remedy("duplicates", "first")
QUERIES = Remedy("topics")
STEP = Remedy(
    "unit",
    None,
    "read them with vbterrier.read_qrels(path, unit=), the smallest step of their scale",
    "write whole grades first, with vbterrier convert --unit, the smallest step of their scale",
)
SIZE = Remedy("max_bytes", None, "read it with max_bytes= of its reader, as vbterrier.read_run, and pass the frame")
SYSTEM = Remedy("system")
ONE_SYSTEM = Remedy("system", "none")
SPAM = Remedy("negative", "unjudged", "vbterrier.read_qrels(path, negative='unjudged')")
REMEDIES = (COMMON_TOPICS, ALL_TOPICS, BEST_RANK, QUERIES, STEP, SIZE, SYSTEM, ONE_SYSTEM, SPAM)
