"""Assumptions about PyTerrier, and the base class of this package's transformers.

``pt.Experiment`` passes text to ``ir_measures.parse_trec_measure`` (see :mod:`vbterrier.hosts.ir_measures`), needs a
value of every measure for every topic, and averages the values over topics.
"""

from __future__ import annotations

import inspect
from typing import Any

import pyterrier as pt

from vbterrier.hosts import require_api

require_api(
    pt,
    "pyterrier",
    "1.1.2",
    (
        "Artifact",
        "Experiment",
        "Transformer",
        "inspect.subtransformers",
        "inspect.transformer_inputs",
        "model.push_queries",
        "model.query_columns",
        "validate.InputValidationError",
        "validate.any",
        "validate.columns",
        "validate.query_frame",
        "validate.result_frame",
    ),
)


def schematic_of(settings: dict[str, str]) -> dict[str, Any]:
    """Description of a transformer for PyTerrier's schematics, without a help page that needs the network.

    >>> schematic_of({"cutoff": "3"})
    {'settings': {'cutoff': '3'}, 'help_url': None}
    """
    return {"settings": settings, "help_url": None}


# PyTerrier's own test case refuses longer labels of schematics.
_LONGEST_LABEL = 20


class Stage(pt.Transformer):  # type: ignore[misc]
    """A transformer that stores each constructor parameter as an attribute of the same name.

    Two stages are equal if they have the same class and equal parameters. Subclasses may override the comparison and
    the representation of parameters.
    """

    @staticmethod
    def same(one: Any, other: Any) -> bool:
        """Return True if two values of a parameter are equal."""
        return one is other or (type(one) is type(other) and bool(one == other))

    @staticmethod
    def short(value: Any) -> str:
        """Representation of a parameter value in the representation of the stage."""
        return repr(value)

    @staticmethod
    def hashed(value: Any) -> int:
        """Hash that equal values share."""
        try:
            return hash(value)
        except TypeError:
            return hash(type(value).__name__)

    def _given(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:  # noqa: ARG002 - PyTerrier's signature
        """Description for PyTerrier's schematics: parameters other than defaults and inner pipelines."""
        inner, label = pt.inspect.subtransformers(self), type(self).__name__
        described = schematic_of(
            {
                parameter.name: self.short(value)
                for parameter, value in self._given()
                if parameter.name not in inner and not self.same(value, parameter.default)
            }
        )
        cut = len(label) > _LONGEST_LABEL
        return described | {"label": f"{label[: _LONGEST_LABEL - 1]}…" if cut else label}

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
        return all(self.same(one, another) for (_, one), (_, another) in pairs)

    def __hash__(self) -> int:
        # The representation differs between equal stages whose parameters come from files of different names.
        return hash((type(self).__name__, *(self.hashed(value) for _, value in self._given())))
