"""Remedies of errors and warnings, and next steps of results: as the interface in use writes them."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


# A parameter without a value, as in "pool_cutoff= states the depth".
_PARAMETER = re.compile(r"(?<![\w(,'\"=-])([a-z][a-z_]*)=(?=[\s.,;:)]|$)")
# The most values of a list that the text of a call repeats.
_MAX_REPEATED_VALUES = 40


@dataclass(frozen=True, eq=False)
class Call:
    """The call of a public function, or of a command, that made a result.

    - ``name``: as ``"vbterrier.score"`` or ``"vbterrier score"``
    - ``words``: the given arguments by parameter: of a function, their text, as ``"measure='nDCG@10'"``; of a command,
      its words, as ``("--measure", "nDCG@10")``
    - ``options``: the options of a command by parameter; ``None`` for a function
    - ``warnings``: messages of the warnings that the call issued
    """

    name: str
    words: Mapping[str, tuple[str, ...]]
    options: Mapping[str, str] | None = None
    warnings: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the call as its caller wrote it; arguments without a short text have the names of their parameters."""
        return self._call_text(self.name, self.words.values())

    def warning_text(self, message: str) -> str:
        """Return the message of a warning, for a command with its options instead of parameters.

        >>> Call("vbterrier score", {}, {"pool_cutoff": "--pool-cutoff"}).warning_text("pool_cutoff= states the depth")
        '--pool-cutoff states the depth'
        """
        options = self.options or {}
        return _PARAMETER.sub(lambda match: options.get(match[1], match[0]), message)

    def again(self, **changes: Any) -> str:
        """Return the same call with other or further arguments."""
        kept = [word for name, word in self.words.items() if name not in changes]
        return self._call_text(self.name, [*kept, *self._change_words(changes)])

    def next(self, command: str, function: str, same: Iterable[str], **more: Any) -> str:
        """Return another command, or function, with some of the arguments of this call and more.

        >>> made = Call("vbterrier score", {"runs": ("a.run",), "qrels": ("--qrels", "q.txt")}, {"qrels": "--qrels"})
        >>> made.next("judge", "judge_next", ["runs", "qrels"], budget=20)
        'vbterrier judge a.run --qrels q.txt --budget 20'
        >>> made = Call("vbterrier.score", {"runs": ("runs",), "qrels": ("'q.txt'",)})
        >>> made.next("judge", "judge_next", ["runs", "qrels"], budget=20)
        "vbterrier.judge_next(runs, 'q.txt', budget=20)"
        """
        name = f"vbterrier.{function}" if self.options is None else f"vbterrier {command}"
        return self._call_text(
            name, [*(self.words[one] for one in same if one in self.words), *self._change_words(more)]
        )

    def _change_words(self, changes: Mapping[str, Any]) -> list[tuple[str, ...]]:
        if self.options is None:
            return [(f"{name}={source(value, name)}",) for name, value in changes.items()]
        flags = {name: self.options.get(name, f"--{name.replace('_', '-')}") for name in changes}
        return [
            word
            for name, value in changes.items()
            for one in (value if isinstance(value, (list, tuple)) else [value])
            for word in [(flags[name],) if one is True else (flags[name], str(one))]
        ]

    def _call_text(self, name: str, words: Iterable[tuple[str, ...]]) -> str:
        every = [word for part in words for word in part]
        if self.options is not None:
            return f"{name} {shlex.join(every)}".rstrip()
        return f"{name}({', '.join(sorted(every, key=_is_keyword))})"


def _is_keyword(text: str) -> bool:
    return text.partition("=")[0].isidentifier() and "=" in text


def source(value: Any, name: str) -> str:
    """Return a value as it is written in a call; a value without a short text has a name.

    >>> source(["a.run", 0.5], "runs"), source(object(), "qrels")
    ("['a.run', 0.5]", 'qrels')
    """
    if value is None or isinstance(value, (str, bool, int, float, PathLike)):
        return repr(str(fspath(value)) if isinstance(value, PathLike) else value)
    if isinstance(value, (list, tuple, dict)) and len(value) <= _MAX_REPEATED_VALUES:
        parts = [source(one, "") for one in (value.values() if isinstance(value, dict) else value)]
        if isinstance(value, dict):
            inner = ", ".join(f"{key!r}: {part}" for key, part in zip(value, parts, strict=True))
            return f"{{{inner}}}" if all(parts) else name
        return f"[{', '.join(parts)}]" if all(parts) else name
    if hasattr(value, "NAME") and hasattr(value, "params"):
        # A measure.
        return repr(str(value))
    if hasattr(value, "explicit_settings"):
        # Settings.
        inner = ", ".join(f"{one}={source(setting, one)}" for one, setting in value.explicit_settings().items())
        return f"{public_name(type(value))}({inner})"
    return name


def public_name(definition: Any) -> str:
    """Return the name under which callers find a function or a class of the package."""
    package = sys.modules.get("vbterrier")
    spaces = (
        ["vbterrier"]
        if definition.__name__ in getattr(package, "__all__", ())
        else definition.__module__.split(".")[:2]
    )
    return ".".join([*spaces, definition.__name__])


@dataclass(frozen=True)
class Interface:
    """The parameters that callers can give: of a function, by settings object, or the options of a command.

    - ``parameters``: the settings of each parameter, as ``"data=Data"``; empty for a parameter of the function itself
    - ``options``: the option of each parameter; a command has options alone
    - ``call``: the call itself
    """

    parameters: Mapping[str, str]
    options: Mapping[str, str] | None = None
    call: Call | None = None

    def text(self, name: str, value: str | None) -> str:
        """Return a parameter as callers write it; empty if they cannot give it."""
        if self.options is not None:
            option = self.options.get(name)
            return "" if option is None else f"{option} {value}" if value is not None else option
        settings = self.parameters.get(name)
        if settings is None:
            return ""
        return f"{settings}({_keyword_text(name, value)})" if settings else _keyword_text(name, value)


def _keyword_text(name: str, value: str | None) -> str:
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


def is_in_use() -> bool:
    """Return True within a public call, or a command."""
    return _IN_USE.get() is not None


def name_in_use(command: str, function: str) -> str:
    """Return another command, or function, as the interface in use writes it.

    >>> name_in_use("judge", "judge_next")
    'vbterrier.judge_next'
    """
    used = _IN_USE.get()
    return f"vbterrier.{function}" if used is None or used.options is None else f"vbterrier {command}"


def call_in_use() -> Call | None:
    """Return the outermost call, if there is one."""
    used = _IN_USE.get()
    return None if used is None else used.call


def function_interface(call: Callable[..., Any], settings: Mapping[str, Any], further: Iterable[str] = ()) -> Interface:
    """Return the interface of a function: the settings that it uses, by parameter, and further parameters."""
    parameters = dict.fromkeys((inspect.signature(call).parameters.keys() - settings.keys()) | {*further}, "")
    used = {
        name: f"{parameter}={type(defaults).__name__}"
        for parameter, defaults in settings.items()
        for name in defaults.explicit_settings()
    }
    return Interface({**parameters, **used})


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
            return self.available_text(value) or self.command.format(self._option(value))
        return self.available_text(value) or self.way.format(_keyword_text(self.name, value))

    def _option(self, value: str | None) -> str:
        return f"--{self.name.replace('_', '-')}{'' if value is None else f' {value}'}"

    def available_text(self, value: str | None = None) -> str:
        """Return the parameter as the interface in use writes it; empty if its callers cannot give it."""
        used = _IN_USE.get()
        return "" if used is None else used.text(self.name, self.value if value is None else value)

    def of(self, call: str, arguments: str = "...") -> str:
        """Return another call with the parameter, or the command of its name if a command is in use.

        ``arguments`` are its other arguments in Python.

        >>> COMMON_TOPICS.of("compare")
        "vbterrier.compare(..., data=Data(on_topics='common'))"
        >>> with interface(Interface({}, {"qrels": "--qrels"})):
        ...     COMMON_TOPICS.of("compare")
        'vbterrier compare --on-topics common'
        """
        used = _IN_USE.get()
        if used is not None and used.options is not None:
            return f"vbterrier {call} {self._option(self.value)}"
        return f"vbterrier.{call}({arguments}, data=Data({_keyword_text(self.name, self.value)}))"


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
INTENTS = Remedy("intents", _SCORE)
NEGATIVE = Remedy("negative", _READ_QRELS, "unjudged", _CONVERT)
FIRST_LABEL = Remedy("contradictions", _READ_QRELS, "first", _CONVERT)
UNIT = Remedy("unit", _READ_QRELS, None, _CONVERT)
MAX_BYTES = Remedy("max_bytes", "max_bytes= of its reader, such as vbterrier.read_run,")


def sampling_by_traffic() -> str:
    """Return the name of what draws queries by traffic: a command if one is in use, else the function.

    >>> sampling_by_traffic()
    'vbterrier.design.sample_by_traffic'
    """
    used = _IN_USE.get()
    is_command = used is not None and used.options is not None
    return "vbterrier queries traffic" if is_command else "vbterrier.design.sample_by_traffic"
