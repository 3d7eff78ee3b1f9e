"""What the stages of this package have in common: parameters that make them equal, and a short text."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from vbterrier.errors import ParameterError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST = 60


class Stage(pt.Transformer):  # type: ignore[misc]
    """A transformer that is what its parameters are; each is an attribute of its own name."""

    def _given(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def __repr__(self) -> str:
        shown = []
        for parameter, value in self._given():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                if not _same(value, parameter.default):
                    shown.append(f"{parameter.name}={_short(value)}")
            else:
                shown.append(_short(value))
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Stage):
            return NotImplemented
        pairs = zip(self._given(), other._given(), strict=True)
        return all(_same(mine, theirs) for (_, mine), (_, theirs) in pairs)

    def __hash__(self) -> int:
        # Not of the repr: what is equal may have come from files of two names.
        return hash((type(self).__name__, *(_hash(value) for _, value in self._given())))


def label_of(source: object) -> str:
    """A short text of a linker, a pipeline or a callable, the same in every process.

    >>> label_of(len), label_of(object())
    ('len', 'object')
    """
    if hasattr(source, "__qualname__"):
        return str(source.__qualname__)
    text = repr(source)
    return type(source).__name__ if " at 0x" in text else text


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def _hash(value: Any) -> int:
    try:
        return hash(value)
    except TypeError:
        return hash(type(value).__name__)


def _short(value: Any) -> str:
    """The label of a value, where it is long without the last of its parameters: ``Client('https://...', ...)``."""
    text = label_of(value)
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, (dict, list, tuple)):
        return f"{len(value)} entries"
    name, bracket, rest = text[: _LONGEST - 4].partition("(")
    if not bracket or not text.endswith(")"):
        return text[: _LONGEST - 3] + "..."
    kept, comma, _ = rest.rpartition(", ")
    is_whole = comma and kept.count("(") == kept.count(")") and kept.count("'") % 2 == kept.count('"') % 2 == 0
    return f"{name}({kept + comma if is_whole else ''}...)"


def knowledge_base(given: Any, *methods: str) -> Any:
    """A parameter that is a knowledge base, or anything with those of its methods that are needed.

    Raises
    ------
    ParameterError
        Anything else, such as a path.

    >>> knowledge_base("congress.kb", "names")
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: kb='congress.kb': wanted a knowledge base, as KnowledgeBase(path); it has no \
method 'names'
    """
    missing = [name for name in methods if not callable(getattr(given, name, None))]
    if missing:
        wanted = "wanted a knowledge base, as KnowledgeBase(path)"
        raise ParameterError(f"kb={given!r}: {wanted}; it has no method {missing[0]!r}")
    return given


def choice(name: str, value: Any, legal: Iterable[str]) -> str:
    """A parameter that is one of some words.

    Raises
    ------
    ParameterError
        Another value; names the nearest.

    >>> choice("method", "softmx", ["softmax", "prior"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: method='softmx': wanted one of 'softmax', 'prior'. Did you mean softmax?
    """
    legal = list(legal)
    if not isinstance(value, str) or value not in legal:
        raise ParameterError(
            f"{name}={value!r}: wanted one of {', '.join(map(repr, legal))}.{nearest(str(value), legal)}"
        )
    return value


def number(name: str, value: Any, *, low: float, high: float = math.inf, open_low: bool = False) -> float:
    """A parameter that is a finite number from ``low`` to ``high``, the former left out if ``open_low``.

    Raises
    ------
    ParameterError
        Anything else.

    >>> number("temperature", 2, low=0, open_low=True)
    2.0
    """
    try:
        made = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        made = math.nan
    if math.isfinite(made) and low <= made <= high and not (open_low and made == low):
        return made
    least = f"{'above' if open_low else 'of at least'} {low:g}"
    wanted = f"a number {least}" if high == math.inf else f"a number {least} and at most {high:g}"
    raise ParameterError(f"{name}={value!r}: wanted {wanted}")


def numbers(name: str, given: Mapping[str, Any] | None, *, low: float) -> dict[str, float] | None:
    """A parameter that maps words to numbers of at least ``low``.

    Raises
    ------
    ParameterError
        Anything else.

    >>> numbers("weights", {"state": 2}, low=0)
    {'state': 2.0}
    """
    if given is None:
        return None
    if not hasattr(given, "items"):
        raise ParameterError(f"{name}={given!r}: wanted a mapping of names to numbers")
    return {str(key): number(f"{name}[{key!r}]", value, low=low) for key, value in given.items()}


def whole(name: str, value: Any, *, low: int) -> int:
    """A parameter that is a whole number of at least ``low``.

    Raises
    ------
    ParameterError
        Anything else.

    >>> whole("top", 5, low=1)
    5
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < low:
        raise ParameterError(f"{name}={value!r}: wanted a whole number of at least {low}")
    made: int = value.__index__()
    return made
