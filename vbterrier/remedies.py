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

    >>> with interface(Interface({"system": "data=Data"})):
    ...     ONE_SYSTEM.text()
    "data=Data(system='none')"
    >>> with interface(Interface({}, {"system": "--system"})):
    ...     SYSTEM.text("tag")
    '--system tag'
    >>> ONE_SYSTEM.text()
    "Data(system='none')"
    """

    name: str
    settings: str  # the settings that have the parameter, for calls of no known interface
    value: str | None = None

    def text(self, value: str | None = None) -> str:
        """Return the parameter as the interface in use writes it."""
        general = Interface({self.name: self.settings})
        return self.offered(value) or general.text(self.name, self.value if value is None else value)

    def offered(self, value: str | None = None) -> str:
        """Return the parameter as the interface in use writes it; empty if its callers cannot give it."""
        used = _IN_USE.get()
        return "" if used is None else used.text(self.name, self.value if value is None else value)


SYSTEM = Remedy("system", "Data")
ONE_SYSTEM = Remedy("system", "Data", "none")
FIRST_DUPLICATE = Remedy("duplicates", "Data", "first")
COMMON_TOPICS = Remedy("on_topics", "Data", "common")
ALL_TOPICS = Remedy("on_topics", "Data", "all")
TOPICS = Remedy("topics", "Data")
