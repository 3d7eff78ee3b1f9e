"""What the stages over linked pools have in common: links in three shapes, parameters that make them equal."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.pool import LinkedPool
from vbterrier.errors import ParameterError, nearest
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.tags import TagFrame

if TYPE_CHECKING:
    from collections.abc import Iterable

_ARRAYS = ("topic", "label", "rank", "starts", "entity", "weight", "mentions")
_LONGEST = 60


def links_of(links: Any) -> LinkedPool | pd.DataFrame:
    """The parameter ``links``: a pool as it is, a K frame made one, or a copy of a T frame.

    Raises
    ------
    InputError
        See the contracts of the frames.
    """
    if isinstance(links, LinkedPool):
        return links
    frame = frame_of(links, "links")
    if {"label", "rank"} <= set(frame.columns):
        return LinkedPool.from_frame(frame)
    # Read for its errors, which belong here and not in the middle of an experiment.
    TagFrame(frame, name="links")
    return frame.copy()


class EntityStage(pt.Transformer):  # type: ignore[misc]
    """A transformer that is what its parameters are; each is an attribute of its own name."""

    def _given(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def __repr__(self) -> str:
        shown = []
        for parameter, value in self._given():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                shown.append(_short(value))
            elif not same(value, parameter.default):
                shown.append(f"{parameter.name}={_short(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, EntityStage):
            return NotImplemented
        pairs = zip(self._given(), other._given(), strict=True)
        return all(same(mine, theirs) for (_, mine), (_, theirs) in pairs)

    def __hash__(self) -> int:
        # Frames, pools and tables of vectors are equal by what they hold, so only their kind can count here.
        return hash((type(self).__name__, *(_hash(value) for _, value in self._given())))


def same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; pools, frames and arrays are when all that they hold is."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, LinkedPool):
        return _same_pool(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, pd.DataFrame):
        return bool(one.equals(other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def _same_pool(one: LinkedPool, other: LinkedPool) -> bool:
    ids = one.topics == other.topics and one.docno.text.equals(other.docno.text)
    ids = ids and one.entities.text.equals(other.entities.text)
    return ids and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in _ARRAYS)


def _hash(value: Any) -> int:
    if isinstance(value, LinkedPool):
        return hash(LinkedPool)
    try:
        return hash(value)
    except TypeError:
        return hash(type(value).__name__)


def _short(value: Any) -> str:
    if isinstance(value, LinkedPool):
        return f"{len(value.topics)} topics"
    if isinstance(value, pd.DataFrame):
        return f"{len(value)} rows"
    if hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    # Of tables of vectors not even the text is made: it would take longer than the ranking.
    if isinstance(value, (str, int, float, tuple, list, pt.Transformer)) or value is None:
        text = repr(value)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"{len(value)} entries" if hasattr(value, "__len__") else type(value).__name__


def choice(name: str, value: Any, legal: Iterable[str]) -> str:
    """A parameter that is one of some words.

    Raises
    ------
    ParameterError
        Another value; names the nearest.

    >>> choice("support", "rang", ["rank", "rho"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: support='rang': wanted one of 'rank', 'rho'. Did you mean rank?
    """
    legal = list(legal)
    if not isinstance(value, str) or value not in legal:
        raise ParameterError(
            f"{name}={value!r}: wanted one of {', '.join(map(repr, legal))}.{nearest(str(value), legal)}"
        )
    return value


def number(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, is_open: bool = False) -> float:
    """A parameter that is a finite number from ``low`` to ``high``, without the two if ``is_open``.

    Raises
    ------
    ParameterError
        Anything else.

    >>> number("damping", 1, low=0, high=1, is_open=True)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: damping=1: wanted a number above 0 and below 1
    """
    legal = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    made = float(value) if legal else math.nan
    if math.isfinite(made) and (low < made < high if is_open else low <= made <= high):
        return made
    words = ("above", "below") if is_open else ("of at least", "of at most")
    bounds = [f"{word} {bound:g}" for word, bound in zip(words, (low, high), strict=True) if math.isfinite(bound)]
    raise ParameterError(f"{name}={value!r}: wanted a number {' and '.join(bounds) or 'that is finite'}")


def whole(name: str, value: Any, *, low: int = 1) -> int:
    """A parameter that is a whole number of at least ``low``.

    Raises
    ------
    ParameterError
        Anything else.

    >>> whole("top", 20)
    20
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < low:
        raise ParameterError(f"{name}={value!r}: wanted a whole number of at least {low}")
    return int(value)


def whole_or_none(name: str, value: Any, *, low: int = 1) -> int | None:
    """A parameter that is a whole number of at least ``low``, or ``None``.

    >>> whole_or_none("top", None)
    """
    return None if value is None else whole(name, value, low=low)
