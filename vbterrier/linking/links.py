"""The interface of linkers, and their identity."""

from __future__ import annotations

import inspect
import re
import reprlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxother = _SHORT_REPR.maxstring = 80
COLUMNS = ("text", "start", "end", "mention", "entity_id", "score", "name")
SCALES = ("probability", "score")
_TYPES = dict.fromkeys(COLUMNS, "str") | {"text": "int64", "start": "int64", "end": "int64", "score": "float64"}
# Similarities of names held in memory at a time: 64 MB.
BLOCK_CELLS = 2**23


def positive(name: str, value: int) -> int:
    """Check a parameter that is a positive count."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ParameterError(f"{name}={excerpt(value)}: wanted a whole number, 1 or more")
    return int(value)


class Identified:
    """A short repr, equality and a hash for objects that are defined by their parameters.

    The first parameter of the constructor is the subject, and every parameter is stored under its name. An ``id_space``
    with a default is that of the subject. Cached properties are not pickled.
    """

    @classmethod
    def _declared_parameters(cls) -> tuple[str, dict[str, Any]]:
        """Return the name of the subject, and the defaults of the other parameters."""
        _, subject, *others = inspect.signature(cls.__init__).parameters.values()
        stated = [each for each in others if each.name != "id_space" or each.default is each.empty]
        return subject.name, {each.name: None if each.default is each.empty else each.default for each in stated}

    def _parameters(self) -> tuple[Any, ...]:
        subject, defaults = self._declared_parameters()
        return tuple(getattr(self, name) for name in (subject, *defaults))

    def _subject(self) -> str:
        # With addresses, the repr of the same linker would differ between processes.
        return re.sub(r" at 0x[0-9a-f]+", "", _SHORT_REPR.repr(getattr(self, self._declared_parameters()[0])))

    def __repr__(self) -> str:
        values = {name: (getattr(self, name), default) for name, default in self._declared_parameters()[1].items()}
        shown = [f"{name}={_SHORT_REPR.repr(value)}" for name, (value, default) in values.items() if value != default]
        return f"{type(self).__name__}({', '.join([self._subject(), *shown])})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identified) and type(self) is type(other) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parameters()))

    def __getstate__(self) -> dict[str, Any]:
        kind, values = type(self), self.__dict__.items()
        return {name: value for name, value in values if not isinstance(getattr(kind, name, None), cached_property)}


@dataclass(frozen=True, eq=False)
class Links:
    """Candidate entities of the mentions in some texts.

    - ``frame``: one row per candidate: ``text`` (index of the text, from 0), ``start`` and ``end`` (of the mention in
      code points of the text, half-open; -1 if unknown), ``mention``, ``entity_id``, ``score``, ``name`` (empty if
      unknown). Competing candidates of a mention share text, start and end
    - ``id_space``: the space of ``entity_id``: ``"wikidata"``, ``"wikipedia_title"``, ``"wikipedia_id"``,
      ``"dbpedia"``, or that of a knowledge base. Ids of different spaces are different entities unless a mapping
      relates them
    - ``scale``: ``"probability"`` if ``score`` is the probability of the entity given the mention, in [0, 1]; else
      ``"score"`` (higher is better)

    Raises ParameterError: an unknown scale. Raises InputError: a missing column, a probability outside [0, 1].
    """

    frame: pd.DataFrame
    id_space: str
    scale: str = "score"

    def __post_init__(self) -> None:
        choice("scale", self.scale, SCALES)
        missing = [name for name in COLUMNS if name not in self.frame.columns]
        if missing:
            raise InputError(f"links: wanted columns {', '.join(COLUMNS)}; missing {', '.join(missing)}")
        bad = ~self.frame["score"].between(0, 1) if self.scale == "probability" else self.frame["score"].isna()
        if bad.any():
            row = self.frame[bad].iloc[0]
            requirement = "0 to 1" if self.scale == "probability" else "a number"
            raise InputError(
                f"links: entity {row['entity_id']!r} of mention {row['mention']!r} has score {row['score']:g}, "
                f"wanted {requirement}"
            )


def links_frame(rows: Sequence[tuple[int, int, int, str, str, float, str]]) -> pd.DataFrame:
    """Return a frame of links from rows in the order of ``COLUMNS``; columns and types are set even if it is empty."""
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object).astype(_TYPES)


@runtime_checkable
class Linker(Protocol):
    """An object that finds candidate entities in texts: a knowledge base, a dictionary, a model, a client."""

    @property
    def id_space(self) -> str:
        """The name of the id space of the entities."""

    def link(self, texts: Sequence[str]) -> Links:
        """Link the mentions in each text to candidate entities; offsets are in code points."""
