"""Decoded JSON of strangers: each value with its place, so that what is not there is missed by name."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from vbterrier.errors import InputError, printable

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Node:
    """A value in decoded JSON and the way to it.

    Parameters
    ----------
    value
        What ``json.loads`` gave.
    name
        The key or place in ``parent``; of a root, what the whole is called.
    parent
        What holds it; ``None`` for a root.

    >>> Node({"annotations": [{"rho": "much"}]}, "answer")["annotations"].items()[0]["rho"].number()
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: answer: annotations[0].rho: wanted a number, found 'much'
    """

    value: Any
    name: str
    parent: Node | None = None

    @property
    def where(self) -> str:
        """The way from the root, for messages."""
        if self.parent is None:
            return self.name
        if self.parent.parent is None:
            return f"{self.parent.name}: {self.name.removeprefix('.')}"
        return self.parent.where + self.name

    def wanted(self, what: str) -> InputError:
        """The error of a value that is not what was wanted."""
        return InputError(f"{self.where}: wanted {what}, found {_shown(self.value)}")

    def get(self, key: str) -> Node | None:
        """The member of an object, ``None`` when it is absent or null."""
        if not isinstance(self.value, dict):
            raise self.wanted("an object")
        value = self.value.get(key)
        return None if value is None else Node(value, f".{key}", self)

    def __getitem__(self, key: str) -> Node:
        found = self.get(key)
        if found is None:
            raise self.wanted(f"an object with {key!r}")
        return found

    def items(self) -> list[Node]:
        """The members of a list."""
        if not isinstance(self.value, list):
            raise self.wanted("a list")
        return [Node(value, f"[{place}]", self) for place, value in enumerate(self.value)]

    def each(self) -> list[Node]:
        """The members of a list, or an object as the only one: what XML turned into JSON makes of one and of many."""
        return [self] if isinstance(self.value, dict) else self.items()

    def text(self) -> str:
        """Text that can be written to a file."""
        if not isinstance(self.value, str) or not is_text(self.value):
            raise self.wanted("text")
        return self.value

    def number(self) -> float:
        """A finite number, or text that reads as one."""
        value = self.value
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                number = float(value)
            except (ValueError, OverflowError):
                number = math.nan
            if math.isfinite(number):
                return number
        raise self.wanted("a number")

    def whole(self) -> int:
        """A whole number of at most 18 digits, or text that reads as one."""
        if isinstance(self.value, (int, str)) and not isinstance(self.value, bool):
            text = self.value if isinstance(self.value, str) else format(self.value, "d") if _small(self.value) else ""
            if _WHOLE.fullmatch(text):
                return int(text)
        raise self.wanted("a whole number")


def is_text(value: str) -> bool:
    r"""Whether text has no half of a surrogate pair, which no file and no service takes.

    >>> is_text("Zürich"), is_text("\ud800")
    (True, False)
    """
    return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)


def _small(number: int) -> bool:
    # Python refuses to spell integers of thousands of digits.
    return -(10**18) < number < 10**18


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        keys = ", ".join(printable(key)[:_SHOWN] for key in list(value)[:8])
        return f"an object with {keys}{', ...' if len(value) > 8 else ''}" if keys else "an empty object"  # noqa: PLR2004 - as many as a line holds
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and not _small(value):
        return "an integer of more than 18 digits"
    shown = repr(value) if not isinstance(value, str) else f"'{printable(value[: _SHOWN + 1])}'"
    return shown if len(shown) <= _SHOWN + 2 else f"{shown[:_SHOWN]}...'"
