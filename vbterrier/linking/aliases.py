"""Aliases of entities and the distribution over the entities of an alias."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError, ParameterError, agreeing, examples, excerpt, warn
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.id_spaces import id_in
from vbterrier.frames.ids import Ids, column_ids, column_numbers, repeated_pairs
from vbterrier.kernels import rankings
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import AnyInts, Floats, Ints

# Rows of keys that are merged at a time.
_BLOCK_ROWS = 100_000
# Columns of counts, from which probabilities follow.
_COUNTS = ("count", "clicks")


@runtime_checkable
class Aliases(Protocol):
    """The part of the interface of a knowledge base that linkers use."""

    id_space: str
    has_priors: bool

    def alias_table(self) -> pd.DataFrame:
        """Return columns alias, entity_id, score [, weight of the alias among its spellings], each pair once."""

    def names(self, ids: list[str]) -> list[str]:
        """Return the name of each entity, empty if unknown."""


class AliasFrame:
    """Aliases in a frame, with the interface of a knowledge base that linkers use.

    The columns are alias, entity_id [, score (probability of the entity given the alias) or count (of both, such as
    clicks: ``p(e|a) ∝ c + 1``), weight (frequency of the alias, relative to other aliases, by default the sum of its
    counts), name].
    """

    def __init__(self, frame: Any, id_space: str) -> None:
        frame = pandas_frame(frame, "aliases")
        require(frame, ("alias", "entity_id"), "aliases")
        counts = [name for name in ("score", *_COUNTS) if name in frame.columns]
        if len(counts) > 1:
            raise InputError(f"aliases: columns {' and '.join(counts)}: keep one source of the probabilities")
        refuse_near_misses(frame, ("score",), "aliases", others=_COUNTS)
        alias = column_ids(frame["alias"], "aliases column 'alias'")
        entity = column_ids(frame["entity_id"], "aliases column 'entity_id'")
        # An entity in two spellings would be two candidates. Links have the spelling of the frame.
        twice = repeated_pairs(alias.codes()[1], _in_space(entity, alias, id_space))
        if len(twice):
            raise InputError(
                f"aliases: alias {alias.text[int(twice[0])].as_py()!r} of entity "
                f"{entity.text[int(twice[0])].as_py()!r} is in rows {twice[0]} and {twice[1]}; keep one"
            )
        self.id_space = id_space
        self.has_priors = bool(counts)
        columns = {"alias": alias.text.to_pylist(), "entity_id": entity.text.to_pylist()}
        score = total = np.ones(len(frame))
        if counts == ["score"]:
            score = _probabilities(frame["score"], columns)
        elif counts:
            score, total = _of_counts(frame[counts[0]], alias)
        self._table = pd.DataFrame({name: pd.Series(column, dtype="str") for name, column in columns.items()})
        self._table["score"] = score
        self._table["weight"] = _weights(frame["weight"], alias) if "weight" in frame.columns else total
        named = frame["name"].fillna("").astype(str).tolist() if "name" in frame.columns else [""] * len(frame)
        # The first name of an entity counts.
        self._names = dict(reversed(list(zip(columns["entity_id"], named, strict=True))))

    def alias_table(self) -> pd.DataFrame:
        """Return a copy of columns alias, entity_id, score (1 without priors) and weight (1 without counts)."""
        return self._table.copy()

    def names(self, ids: Sequence[str]) -> list[str]:
        """Return the name of each entity, empty if unknown."""
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


def _in_space(entity: Ids, alias: Ids, id_space: str) -> Ids:
    """Return ids of entities in the spelling of their id space; refuse NIL and ids of another space."""
    distinct, code = entity.distinct()
    names = distinct.text.to_pylist()
    plain: list[str] = []
    try:
        plain.extend(id_in(name, id_space) for name in names)
    except ValueError as error:
        place = len(plain)
        row = int(np.argmax(code == place))
        raise InputError(
            f"aliases: row {row} (alias {alias.text[row].as_py()!r}): the id {names[place]!r} {error}"
        ) from None
    return entity if plain == names else Ids(pa.array(plain, pa.large_string()).take(pa.array(code)))


def _probabilities(column: Any, columns: dict[str, list[str]]) -> Floats:
    score = column_numbers(column, "aliases column 'score'")
    bad = (score < 0) | (score > 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"aliases: row {row} (alias {columns['alias'][row]!r}, entity {columns['entity_id'][row]!r}) has score "
            f"{score[row]:g}, wanted a probability in 0 to 1; divide counts by their sum over the alias"
        )
    return score


def _of_counts(column: Any, alias: Ids) -> tuple[Floats, Floats]:
    """Return ``(c + 1) / Σ (c + 1)`` over the rows of each alias."""
    count = column_numbers(column, f"aliases column {column.name!r}")
    bad = ~((count >= 0) & np.isfinite(count))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"aliases: row {row} has {column.name} {count[row]:g}, wanted a finite number of at least 0")
    _, code = alias.codes()
    total = np.bincount(code, weights=count + 1)[code].astype(np.float64)
    return (count + 1) / total, total


def _weights(column: Any, alias: Ids) -> Floats:
    """Check the frequency of each alias: one number above 0, the same in all its rows."""
    weight = column_numbers(column, "aliases column 'weight'")
    distinct, code = alias.codes()
    first = np.empty(len(distinct))
    first[code[::-1]] = weight[::-1]
    bad = ~((weight > 0) & np.isfinite(weight)) | (weight != first[code])
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"aliases: row {row} (alias {distinct[code[row]]!r}) has weight {weight[row]:g}, wanted a finite number "
            "above 0, the frequency of the alias, the same in all its rows"
        )
    return weight


def check_aliases(source: Any, id_space: str | None) -> Aliases:
    """Return a knowledge base unchanged, or a frame of aliases checked."""
    if hasattr(source, "alias_table") and hasattr(source, "names"):
        base: Aliases = source
        if id_space not in {None, base.id_space}:
            raise ParameterError(
                f"id_space={excerpt(id_space)}: the knowledge base has {base.id_space!r}; leave it out"
            )
        return base
    fault = ""
    if isinstance(source, (str, os.PathLike)):
        fault = "a path: open it with KnowledgeBase(path), or read it into a frame"
    elif callable(getattr(source, "link", None)):
        fault = "a linker, which can be used as it is"
    elif callable(getattr(source, "transform", None)) and not isinstance(source, pd.DataFrame):
        fault = "a transformer: use RetrieverLinker with a retriever over entities"
    if fault:
        requirement = "a knowledge base or a frame (alias, entity_id)"
        raise ParameterError(f"aliases={excerpt(source)}: wanted {requirement}, found {fault}")
    frame = pandas_frame(source, "aliases")
    if id_space is None:
        raise ParameterError(
            "id_space: wanted the name of the id space of a frame of aliases, such as 'wikidata' or any other name"
        )
    return AliasFrame(frame, id_space)


class Mentions(NamedTuple):
    """Offsets of mentions: index of the text, and start and end in it; each of shape (n,)."""

    text: Ints
    start: Ints
    end: Ints

    def take(self, places: Ints) -> Mentions:
        """Return a selection of the mentions."""
        return Mentions(*(column[places] for column in self))

    def words(self, texts: Sequence[str]) -> list[str]:
        """Return the text of each mention."""
        offsets = zip(*(column.tolist() for column in self), strict=True)
        return [texts[text][start:end] for text, start, end in offsets]


@dataclass(frozen=True, eq=False)
class Meanings:
    """The candidate entities of keys, the most probable first, ties by id."""

    bounds: AnyInts  # the first row of each key, and the number of rows, shape (n_keys + 1,)
    entity: Ints  # the number of each entity, shape (n_rows,)
    score: Floats  # the probability of the entity given the key, shape (n_rows,)

    @property
    def sizes(self) -> Ints:
        """Number of entities of each key."""
        return np.diff(self.bounds)

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the rows of ``keys``: the place among ``keys`` and the row of each candidate."""
        return rankings.spans(self.bounds[keys], self.bounds[keys + 1])

    def keep(self, rows: NDArray[np.bool_]) -> Meanings:
        """Return a selection of the rows."""
        before = np.concatenate([[0], np.cumsum(rows)])
        return Meanings(before[self.bounds], self.entity[rows], self.score[rows])


def meanings_from_table(table: pd.DataFrame, n_keys: int, vocabulary: Vocabulary) -> Meanings:
    """Return the candidate entities of each key, which several aliases may share ("US" and "us", or two spellings).

    With priors the probability is ``Σ w_a p(e|a) / Σ w_a`` over the aliases a of a key, with 0 for an alias that lacks
    the entity. Counts of entities are the same for all their aliases: there it is ``max_a w_a p(e|a)`` over its sum.
    Without priors it is 1/n over the n entities of the key. The table has columns key, alias, entity (numbers), score
    and weight (of the alias).
    """
    columns = [table[name].to_numpy() for name in ("alias", "entity", "score", "weight")]
    return meanings_of_columns(table["key"].to_numpy(), np.arange(len(table)), columns, n_keys, vocabulary)


def meanings_of_columns(
    key: AnyInts, rows: AnyInts, columns: Sequence[NDArray[Any]], n_keys: int, vocabulary: Vocabulary
) -> Meanings:
    """Return :func:`meanings_from_table` the columns alias, entity, score and weight.

    ``key, rows``: keys, and the row of the columns that each belongs to. Keys are processed in blocks, because
    temporary arrays of all of them would take several times the memory of the result.
    """
    entities, probabilities = np.empty(len(key), columns[1].dtype), np.empty(len(key))
    kind: Any = np.int32 if len(key) < np.iinfo(np.int32).max else np.int64
    bounds: AnyInts = np.zeros(n_keys + 1, kind)
    n = 0
    step = max(1, _BLOCK_ROWS * n_keys // max(1, len(key)))
    for first in range(0, n_keys, step):
        some = np.flatnonzero((key >= first) & (key < first + step))
        block = [each[rows[some]] for each in columns]
        merged, entity, probability = _merge_entities(key[some] - first, block, vocabulary)
        entities[n : n + len(entity)], probabilities[n : n + len(entity)] = entity, probability
        sizes = bounds[first + 1 : first + step + 1]
        sizes[:] = np.bincount(merged, minlength=len(sizes))
        n += len(entity)
    return Meanings(np.cumsum(bounds, dtype=kind, out=bounds), entities[:n], probabilities[:n])


def _merge_entities(key: Ints, columns: Sequence[NDArray[Any]], vocabulary: Vocabulary) -> tuple[Ints, Ints, Floats]:
    """Return the entities of each key, most probable first: key, entity, probability."""
    alias, entity, score, weight = columns
    if not len(key):
        return key, entity, score
    order = np.lexsort((entity, key))
    first = _starts(key[order], entity[order])
    merged_key, merged_entity = key[order[first]], entity[order[first]]
    if vocabulary.counts_are_of_entities:
        mass = np.maximum.reduceat(score[order] * weight[order], first)
        probability = mass / np.bincount(merged_key, mass)[merged_key]
    elif vocabulary.priors:
        spellings = np.lexsort((alias, key))
        spellings = spellings[_starts(key[spellings], alias[spellings])]
        total = np.bincount(key[spellings], weight[spellings])
        mass = np.add.reduceat(score[order] * weight[order], first)
        probability = np.minimum(mass / total[merged_key], 1.0)
    else:
        probability = 1.0 / np.bincount(merged_key)[merged_key]
    rows = np.lexsort((merged_entity, -probability, merged_key))
    return merged_key[rows], merged_entity[rows], probability[rows]


def _starts(*keys: Ints) -> Ints:
    """Return the first row of each run of equal keys."""
    changes = np.ones(len(keys[0]), bool)
    changes[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(changes)


@dataclass(eq=False)
class Vocabulary:
    """The distinct aliases and entities of an alias table as text, entities in the order of their ids."""

    aliases: Any  # a list, or an Arrow array of text
    ids: Any  # ids, labels: id and name of each entity, Arrow arrays of text
    labels: Any
    rows: pd.DataFrame  # columns alias, entity (numbers), score, weight
    priors: bool
    counts_are_of_entities: bool = False
    over: list[str] = field(default_factory=list)  # aliases whose scores sum to more than 1, divided by their sum

    @classmethod
    def of(cls, source: Aliases) -> Vocabulary:
        """Read the rows of an alias table."""
        table = source.alias_table()
        if not len(table):
            raise InputError("aliases: no rows; a linker needs at least one alias")
        aliases, code = column_ids(table["alias"], "aliases column 'alias'").codes()
        entities, number = column_ids(table["entity_id"], "aliases column 'entity_id'").codes()
        by_id = np.argsort(np.asarray(entities, dtype=object), kind="stable")
        entities = [entities[place] for place in by_id]
        ids, labels = (pa.array(column, pa.large_string()) for column in (entities, source.names(entities)))
        score = table["score"].to_numpy(np.float64) if source.has_priors else np.ones(len(table))
        weight = table["weight"].to_numpy(np.float64) if "weight" in table.columns else 1.0
        total = np.bincount(code, weights=score, minlength=len(aliases))
        over = (total > 1 + PROBABILITY_ROUNDING) & source.has_priors
        score = score / np.where(over, total, 1.0)[code]
        rows = pd.DataFrame({"alias": code, "entity": np.argsort(by_id)[number], "score": score, "weight": weight})
        overfull = [aliases[place] for place in np.flatnonzero(over)]
        of_entities = bool(getattr(source, "counts_are_of_entities", False))
        return cls(aliases, ids, labels, rows, source.has_priors, of_entities, overfull)


def candidate_links(
    texts: Sequence[str], mentions: Mentions, meanings: Meanings, keys: Ints, ids: Any, labels: Any
) -> pd.DataFrame:
    """Return a frame of links: the candidates of the key of each mention."""
    owner, rows = meanings.find(keys)
    text, start, end = mentions.take(owner)
    entity = pa.array(meanings.entity[rows])
    return pd.DataFrame(
        {
            "text": text,
            "start": start,
            "end": end,
            "mention": pd.Series(mentions.words(texts), dtype="str").array.take(owner),
            "entity_id": ids.take(entity).to_pandas().astype("str"),
            "score": meanings.score[rows],
            "name": labels.take(entity).to_pandas().astype("str"),
        }
    )


def warn_of_overfull(over: Sequence[str]) -> None:
    """Warn of aliases whose scores sum to more than 1."""
    if over:
        warn(
            f"aliases: the scores of {agreeing(len(over), 'aliases')} sum to more than 1 ({examples(over[:4])}); they "
            "are divided by their sum"
        )
