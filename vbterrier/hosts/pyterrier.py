"""Base class of the package's PyTerrier transformers."""

from __future__ import annotations

import inspect
from typing import Any

import pyterrier as pt


def schematic_of(settings: dict[str, str]) -> dict[str, Any]:
    """How PyTerrier draws a stage, which looks nothing up on the network for it.

    >>> schematic_of({"top": "3"})
    {'settings': {'top': '3'}, 'help_url': None}
    """
    return {"settings": settings, "help_url": None}


class Stage(pt.Transformer):  # type: ignore[misc]
    """A transformer that is what its parameters are; each is an attribute of its own name.

    Subclasses may say when two values of a parameter are the same, and what stands for one in the text.
    """

    @staticmethod
    def same(one: Any, other: Any) -> bool:
        """Whether two values of a parameter are equal."""
        return one is other or (type(one) is type(other) and bool(one == other))

    @staticmethod
    def short(value: Any) -> str:
        """What stands for a value in the text of the stage."""
        return repr(value)

    @staticmethod
    def hashed(value: Any) -> int:
        """A hash that equal values share."""
        try:
            return hash(value)
        except TypeError:
            return hash(type(value).__name__)

    def _given(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:  # noqa: ARG002 - what PyTerrier hands over
        """How PyTerrier draws it: with the parameters that were set, in short, less inner pipelines, drawn beside."""
        drawn = pt.inspect.subtransformers(self)
        return schematic_of(
            {
                parameter.name: self.short(value)
                for parameter, value in self._given()
                if parameter.name not in drawn and not self.same(value, parameter.default)
            }
        )

    def __repr__(self) -> str:
        shown = []
        for parameter, value in self._given():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                shown.append(self.short(value))
            elif not self.same(value, parameter.default):
                shown.append(f"{parameter.name}={self.short(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Stage):
            return NotImplemented
        pairs = zip(self._given(), other._given(), strict=True)
        return all(self.same(mine, theirs) for (_, mine), (_, theirs) in pairs)

    def __hash__(self) -> int:
        # Not of the text: what is equal may have come from files of two names.
        return hash((type(self).__name__, *(self.hashed(value) for _, value in self._given())))
