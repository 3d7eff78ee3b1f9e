"""What the stages over linked pools have in common: links in three shapes, parameters that make them equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.pool import LinkedPool
from vbterrier.frames import stage
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.tags import TagFrame

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


class EntityStage(stage.Stage):
    """A stage whose parameters may be pools, frames and tables of vectors."""

    @staticmethod
    def same(one: Any, other: Any) -> bool:
        """Whether two parameters are equal; pools, frames and arrays are when all that they hold is."""
        return same(one, other)

    @staticmethod
    def short(value: Any) -> str:
        """How much a pool, a frame or a table holds."""
        return _short(value)

    @staticmethod
    def hashed(value: Any) -> int:
        """Pools are equal by what they hold, so only their kind can count here."""
        return hash(LinkedPool) if isinstance(value, LinkedPool) else stage.Stage.hashed(value)


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
