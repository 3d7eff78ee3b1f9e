"""Aliases of entities, from a knowledge base or a frame alike."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Ids, ids_of, numbers_of, repeated_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@runtime_checkable
class Aliases(Protocol):
    """What linkers ask of a knowledge base."""

    id_space: str
    has_priors: bool

    def alias_table(self) -> pd.DataFrame:
        """Columns alias, entity_id, score [, weight of the alias among its spellings]: every pair once."""

    def names(self, ids: list[str]) -> list[str]:
        """The name of each entity, empty where unknown."""


class AliasFrame:
    """Aliases in a frame, with what linkers ask of a knowledge base.

    Parameters
    ----------
    frame
        Columns alias, entity_id, and optionally score (probability of the entity given the alias), weight (of the
        alias among others of the same form: how often it is used) and name.
    id_space
        What the ids count in.

    Raises
    ------
    InputError
        A missing column, id or number; a score outside [0, 1]; a weight that is not above 0, or an alias with two; an
        alias of an entity that stands twice.

    >>> frame = pd.DataFrame({"alias": ["Jordan"], "entity_id": ["Q41421"], "name": ["Michael Jordan"]})
    >>> AliasFrame(frame, "wikidata").names(["Q41421", "Q0"])
    ['Michael Jordan', '']
    """

    def __init__(self, frame: Any, id_space: str) -> None:
        frame = frame_of(frame, "aliases")
        require(frame, ("alias", "entity_id"), "aliases")
        alias = ids_of(frame["alias"], "aliases column 'alias'")
        entity = ids_of(frame["entity_id"], "aliases column 'entity_id'")
        twice = repeated_pairs(alias.codes()[1], entity)
        if len(twice):
            raise InputError(
                f"aliases: alias {alias.text[int(twice[0])].as_py()!r} of entity "
                f"{entity.text[int(twice[0])].as_py()!r} stands in rows {twice[0]} and {twice[1]}; keep one"
            )
        self.id_space = id_space
        self.has_priors = "score" in frame.columns
        columns = {"alias": alias.text.to_pylist(), "entity_id": entity.text.to_pylist()}
        score = _probabilities(frame["score"], columns) if self.has_priors else np.ones(len(frame))
        self._table = pd.DataFrame({name: pd.Series(column, dtype="str") for name, column in columns.items()})
        self._table["score"] = score
        self._table["weight"] = _weights(frame["weight"], alias) if "weight" in frame.columns else 1.0
        named = frame["name"].fillna("").astype(str).tolist() if "name" in frame.columns else [""] * len(frame)
        # The first name of an entity is its name.
        self._names = dict(reversed(list(zip(columns["entity_id"], named, strict=True))))

    def alias_table(self) -> pd.DataFrame:
        """Columns alias, entity_id, score (1 without priors) and weight (1 without any), a copy."""
        return self._table.copy()

    def names(self, ids: Sequence[str]) -> list[str]:
        """The name of each entity, empty where unknown."""
        return [self._names.get(entity, "") for entity in ids]

    def __repr__(self) -> str:
        return f"{len(self._table)} aliases of {self.id_space!r}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AliasFrame)
            and (self.id_space, self.has_priors, self._names) == (other.id_space, other.has_priors, other._names)
            and self._table.equals(other._table)
        )

    def __hash__(self) -> int:
        return hash((self.id_space, self.has_priors, len(self._table), tuple(self._table["alias"].head(3))))


def _probabilities(column: Any, columns: dict[str, list[str]]) -> Floats:
    score = numbers_of(column, "aliases column 'score'")
    bad = (score < 0) | (score > 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"aliases: row {row} (alias {columns['alias'][row]!r}, entity {columns['entity_id'][row]!r}) has score "
            f"{score[row]:g}, wanted a probability in 0 to 1; divide counts by their sum over the alias"
        )
    return score


def _weights(column: Any, alias: Ids) -> Floats:
    """How often each alias is used: one number above 0 in all its rows."""
    weight = numbers_of(column, "aliases column 'weight'")
    distinct, code = alias.codes()
    first = np.empty(len(distinct))
    first[code[::-1]] = weight[::-1]
    bad = ~((weight > 0) & np.isfinite(weight)) | (weight != first[code])
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"aliases: row {row} (alias {distinct[code[row]]!r}) has weight {weight[row]:g}, wanted a finite number "
            "above 0, the same in all rows of the alias: how often it is used"
        )
    return weight


def aliases_of(source: Any, id_space: str | None) -> Aliases:
    """A knowledge base as it is, or a frame of aliases checked.

    Raises
    ------
    ParameterError
        A path, or something else that is neither; a frame without an id space; a knowledge base of another one.
    InputError
        See :class:`AliasFrame`.

    >>> aliases_of("congress.kb", None)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: aliases='congress.kb': wanted a knowledge base or a frame (alias, entity_id), \
found a path: open it with KnowledgeBase(path), or read it into a frame
    """
    if hasattr(source, "alias_table") and hasattr(source, "names"):
        base: Aliases = source
        if id_space not in {None, base.id_space}:
            raise ParameterError(f"id_space={id_space!r}: the knowledge base counts in {base.id_space!r}; leave it out")
        return base
    fault = _no_aliases(source)
    if fault:
        raise ParameterError(
            f"aliases={source!r}: wanted a knowledge base or a frame (alias, entity_id), found {fault}"
        )
    if id_space is None:
        raise ParameterError(
            "id_space: wanted with a frame of aliases, to say what its ids count in, as 'wikidata' or a name of yours"
        )
    return AliasFrame(source, id_space)


def _no_aliases(source: Any) -> str:
    """What something is that holds no aliases, and the remedy; empty for frames, and for what they say more of."""
    if isinstance(source, (str, os.PathLike)):
        return "a path: open it with KnowledgeBase(path), or read it into a frame"
    if callable(getattr(source, "link", None)):
        return "a linker, which needs no other"
    if callable(getattr(source, "transform", None)) and not isinstance(source, pd.DataFrame):
        return "a transformer: RetrieverLinker makes a linker of a retriever over entities"
    frame_of(source, "aliases")
    return ""
