"""What makes two linkers the same."""

from __future__ import annotations

import re
import reprlib
from typing import Any, ClassVar

from vbterrier.errors import ParameterError


def positive(name: str, value: int) -> int:
    """Check a parameter that counts something.

    >>> positive("depth", 0)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: depth=0: wanted a whole number, 1 or more
    """
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ParameterError(f"{name}={value!r}: wanted a whole number, 1 or more")
    return int(value)


_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 80


class Identified:
    """Short repr, equality and hash of an object that is its parameters.

    Subclasses name the attribute of what they are made of in ``_SUBJECT`` and their other parameters with the defaults
    in ``_DEFAULTS``; what else they hold is derived, and is named in ``_DERIVED`` to stay out of pickles.

    >>> class Ruler(Identified):
    ...     _SUBJECT, _DEFAULTS = "of", {"unit": "cm", "length": 30}
    ...     def __init__(self, of, unit="cm", length=30):
    ...         self.of, self.unit, self.length = of, unit, length
    >>> Ruler("wood", length=50), Ruler("wood") == Ruler("wood", "cm")
    (Ruler('wood', length=50), True)
    """

    _SUBJECT: ClassVar[str]
    _DEFAULTS: ClassVar[dict[str, Any]]
    _DERIVED: ClassVar[tuple[str, ...]] = ()

    def _parameters(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in (self._SUBJECT, *self._DEFAULTS))

    def _subject(self) -> str:
        # Addresses would make the same linker another in every process.
        return re.sub(r" at 0x[0-9a-f]+", "", _SHORT.repr(getattr(self, self._SUBJECT)))

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self._DEFAULTS}
        told = [f"{name}={_SHORT.repr(value)}" for name, value in values.items() if value != self._DEFAULTS[name]]
        return f"{type(self).__name__}({', '.join([self._subject(), *told])})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identified) and type(self) is type(other) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parameters()))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._DERIVED}
