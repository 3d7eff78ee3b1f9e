"""What each alias may mean, as numbers: entities with their probabilities, and links made of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, examples
from vbterrier.frames.ids import ids_of
from vbterrier.kernels import order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.linking.aliases import Aliases

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

TOLERANCE = 1e-6


class Mentions(NamedTuple):
    """Places of mentions: of the text, and start and end in it; each of shape (n,)."""

    text: Ints
    start: Ints
    end: Ints

    def take(self, places: Ints) -> Mentions:
        """Some of them."""
        return Mentions(*(column[places] for column in self))

    def words(self, texts: Sequence[str]) -> list[str]:
        """The mentions themselves."""
        places = zip(*(column.tolist() for column in self), strict=True)
        return [texts[text][start:end] for text, start, end in places]


@dataclass(frozen=True, eq=False)
class Meanings:
    """The entities that each of some keys may mean, the most probable first, ties by id.

    Parameters
    ----------
    bounds
        Where the entities of each key begin, shape (n_keys + 1,).
    entity
        Number of each entity, shape (n_rows,).
    score
        Its probability given the key, shape (n_rows,).
    """

    bounds: Ints
    entity: Ints
    score: Floats

    @property
    def sizes(self) -> Ints:
        """How many entities each key may mean, shape (n_keys,)."""
        return np.diff(self.bounds)

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """Places among ``keys``, and rows here, of everything that they may mean."""
        return order.spans(self.bounds[keys], self.bounds[keys + 1])

    def keep(self, rows: NDArray[np.bool_]) -> Meanings:
        """Some of the rows alone."""
        before = np.concatenate([[0], np.cumsum(rows)])
        return Meanings(before[self.bounds], self.entity[rows], self.score[rows])


def meanings_of(table: pd.DataFrame, n_keys: int, *, priors: bool) -> Meanings:
    """Gather what each key may mean: several aliases can share a key ("US" and "us", or two spellings).

    With priors the probability is ``Σ w_a p(e|a) / Σ w_a`` over the aliases a of a key, one that lacks the entity
    counting 0, as in a normalised look-up of :class:`~vbterrier.linking.kb.KnowledgeBase`; without, 1/n over the n
    entities of the key.

    Parameters
    ----------
    table
        Columns key, alias, entity (numbers), score and weight (of the alias).
    n_keys
        How many keys there are.
    priors
        Whether ``score`` says anything.
    """
    weighted = table.assign(mass=table["weight"] * table["score"])
    merged = weighted.groupby(["key", "entity"], sort=True, as_index=False)["mass"].sum()
    key, entity = merged["key"].to_numpy(np.int64), merged["entity"].to_numpy(np.int64)
    sizes = np.bincount(key, minlength=n_keys)
    if priors:
        spellings = table.drop_duplicates(["key", "alias"])
        total = np.bincount(spellings["key"].to_numpy(np.int64), spellings["weight"].to_numpy(), minlength=n_keys)
        score = np.minimum(merged["mass"].to_numpy(np.float64) / total[key], 1.0)
    else:
        score = 1.0 / sizes[key]
    rows = np.lexsort((entity, -score, key))
    return Meanings(np.concatenate([[0], np.cumsum(sizes)]), entity[rows], score[rows])


class Vocabulary:
    """The rows of an alias table as numbers, its distinct aliases and entities as text.

    Parameters
    ----------
    source
        The aliases. Where the priors of an alias sum to more than 1 they are divided by their sum, with a warning.

    Attributes
    ----------
    rows : pandas.DataFrame
        Columns alias, entity (numbers; those of entities in the order of their ids), score and weight.
    aliases, entities, names : list of str
        What the numbers stand for.
    """

    def __init__(self, source: Aliases) -> None:
        table = source.alias_table()
        if not len(table):
            raise InputError("aliases: no rows; nothing would ever be linked")
        alias = ids_of(table["alias"], "aliases column 'alias'")
        self.aliases, code = alias.codes()
        entities, number = ids_of(table["entity_id"], "aliases column 'entity_id'").codes()
        by_id = np.argsort(np.asarray(entities, dtype=object), kind="stable")
        self.entities = [entities[place] for place in by_id]
        self.names = source.names(self.entities)
        columns = {"entity_id": self.entities, "name": self.names}
        self._columns = {name: pd.Series(column, dtype="str").array for name, column in columns.items()}
        place = np.argsort(by_id)
        score = table["score"].to_numpy(np.float64) if source.has_priors else np.ones(len(table))
        weight = table["weight"].to_numpy(np.float64) if "weight" in table.columns else 1.0
        self.rows = pd.DataFrame({"alias": code, "entity": place[number], "score": score, "weight": weight})
        self.priors = source.has_priors
        total = np.bincount(code, weights=score, minlength=len(self.aliases))
        self.over = np.flatnonzero(total > 1 + TOLERANCE) if self.priors else np.empty(0, np.int64)
        share = np.ones(len(self.aliases))
        share[self.over] = total[self.over]
        self.rows["score"] /= share[code]

    def warn_of_overfull(self) -> None:
        """Say that the scores of some aliases summed to more than 1."""
        if len(self.over):
            warnings.warn(
                f"aliases: the scores of {len(self.over)} aliases sum to more than 1 "
                f"({examples(self.aliases[place] for place in self.over[:4])}); they are divided by their sum",
                DegenerateWarning,
                stacklevel=4,
            )

    def keyed(self, keys: Sequence[str]) -> tuple[list[str], pd.DataFrame]:
        """The distinct keys, sorted, and the rows with their number in column ``key``; aliases with key '' left out."""
        distinct, number = np.unique(np.asarray(keys, dtype=object), return_inverse=True)
        first = int(len(distinct) > 0 and not distinct[0])
        key = number[self.rows["alias"].to_numpy()] - first
        return distinct[first:].tolist(), self.rows.assign(key=key)[key >= 0]

    def links(self, texts: Sequence[str], mentions: Mentions, meanings: Meanings, keys: Ints) -> pd.DataFrame:
        """A frame of links: what the key of each mention may mean."""
        owner, rows = meanings.find(keys)
        text, start, end = mentions.take(owner)
        entity = meanings.entity[rows]
        return pd.DataFrame(
            {
                "text": text,
                "start": start,
                "end": end,
                "mention": pd.Series(mentions.words(texts), dtype="str").array.take(owner),
                "entity_id": self._columns["entity_id"].take(entity),
                "score": meanings.score[rows],
                "name": self._columns["name"].take(entity),
            }
        )
