"""The contract of linkers: texts in, scored candidate entities with their places and their id space out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.parameters import choice

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("text", "start", "end", "mention", "entity_id", "score", "name")
SCALES = ("probability", "score")
_TYPES = {"text": "int64", "start": "int64", "end": "int64", "score": "float64"}

# The id spaces of public linkers; a knowledge base of one's own names its own.
WIKIPEDIA_TITLE = "wikipedia_title"
WIKIPEDIA_ID = "wikipedia_id"
WIKIDATA = "wikidata"
DBPEDIA = "dbpedia"


@dataclass(frozen=True, eq=False)
class Links:
    """Candidate entities of the mentions in some texts.

    Parameters
    ----------
    frame
        A row a candidate: ``text`` (place of the text among those given, from 0), ``start`` and ``end`` (of the mention
        in code points of the text, half-open; -1 where unknown), ``mention``, ``entity_id``, ``score``, ``name`` (empty
        where unknown). Competing candidates of a mention share text, start and end.
    id_space
        What ``entity_id`` counts in: ``"wikidata"``, ``"wikipedia_title"``, ``"wikipedia_id"``, ``"dbpedia"``, or the
        name of a knowledge base. Ids of two spaces never meet unless a mapping says so.
    scale
        What ``score`` is: ``"probability"``, of the entity given the mention, in [0, 1]; or any other ``"score"``, more
        being better.

    Raises
    ------
    ParameterError
        Another scale.
    InputError
        Missing columns; a probability outside [0, 1].
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
            wanted = "0 to 1" if self.scale == "probability" else "a number"
            raise InputError(
                f"links: entity {row['entity_id']!r} of mention {row['mention']!r} has score {row['score']:g}, "
                f"wanted {wanted}"
            )


def links_frame(rows: Sequence[tuple[int, int, int, str, str, float, str]]) -> pd.DataFrame:
    """A frame of links from rows in the order of ``COLUMNS``; the right columns and types even when empty.

    >>> links_frame([]).columns.tolist() == list(COLUMNS)
    True
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    data = {name: list(values) for name, values in zip(COLUMNS, columns, strict=True)}
    return pd.DataFrame({name: pd.Series(data[name], dtype=_TYPES.get(name, "str")) for name in COLUMNS})


@runtime_checkable
class Linker(Protocol):
    """Anything that finds candidate entities in texts: a knowledge base, a dictionary, a model, a client."""

    @property
    def id_space(self) -> str:
        """What the entities' ids count in."""

    def link(self, texts: Sequence[str]) -> Links:
        """Candidates of the mentions in each text."""
