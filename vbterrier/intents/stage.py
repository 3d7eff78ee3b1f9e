"""What the stages of intents have in common."""

from __future__ import annotations

from typing import Any

from vbterrier.errors import ParameterError
from vbterrier.frames import stage

_LONGEST = 60


class Stage(stage.Stage):
    """A stage whose parameters may be linkers, pipelines and functions."""

    @staticmethod
    def short(value: Any) -> str:
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


def label_of(source: object) -> str:
    """A short text of a linker, a pipeline or a callable, the same in every process.

    >>> label_of(len), label_of(object())
    ('len', 'object')
    """
    if hasattr(source, "__qualname__"):
        return str(source.__qualname__)
    text = repr(source)
    return type(source).__name__ if " at 0x" in text else text


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
