"""Arrays of a linked pool from mentions and from K frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.errors import InputError, agreeing, warn
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.entities import WEIGHT_REMEDY
from vbterrier.frames.id_spaces import entity_ids, resembles_nil
from vbterrier.frames.ids import Ids, column_ids, column_integers, column_numbers, repeated_pairs
from vbterrier.kernels.rankings import stable_order

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from vbterrier.annotations import Bools, Floats, Ints


# The label of an unjudged document.
UNJUDGED = -1
COLUMNS = ("qid", "docno", "entity_id", "label", "rank", "weight")


class LinkArrays(NamedTuple):
    """The distinct entities of each document, sorted by document and entity; see ``LinkedPool`` for the fields."""

    entities: Ids
    starts: Ints
    entity: Ints
    weight: Floats
    mentions: Ints


def entity_codes(ids: Ids, name: str) -> tuple[Ids, Ints, str]:
    """Return the distinct entities, the index of each row's entity among them, -1 for NIL, and their id space.

    A warning reports names that spell no entity elsewhere, such as null.
    """
    plain = entity_ids(ids, name)
    if (near := resembles_nil(plain)).any():
        first, n = ids.text[int(near.argmax())].as_py(), int(near.sum())
        warn(
            f"{name}: {first!r} ({agreeing(n, 'rows')}) is treated as an entity, as its other ids are names, too; "
            "remove these rows if it means no entity"
        )
    encoded = plain.ids.text.dictionary_encode()
    # Entities are text from here on, because rankers return text.
    entity = np.where(plain.is_nil, -1, encoded.indices.to_numpy().astype(np.int64))
    return Ids(encoded.dictionary), entity, plain.space


def link_arrays(
    n_documents: int, document: Ints, vocabulary: Ids, entity: Ints, weight: Floats, mentions: Ints | None = None
) -> LinkArrays:
    """Merge the mentions of an entity in a document into one link with their highest weight and their number.

    - ``document``, ``entity``, ``weight``: for each mention, shape (n_mentions,); ``entity`` is an index into
      ``vocabulary``
    - ``vocabulary``: distinct ids; ids without a mention are not part of the result
    - ``mentions``: the number of mentions that each row represents; 1 by default
    """
    used = np.flatnonzero(np.bincount(entity, minlength=len(vocabulary)))
    kept = vocabulary.take(used)
    in_order = kept.order()
    number = np.empty(len(vocabulary), dtype=np.int64)
    number[used[in_order]] = np.arange(len(used))
    size = max(len(kept), 1)
    rows, key = stable_order(document * size + number[entity], n_documents * size)
    new = key[1:] != key[:-1]
    weight = weight[rows]
    n_mentions = np.ones(len(rows), dtype=np.int64) if mentions is None else mentions[rows]
    if not new.all():
        first = np.flatnonzero(np.concatenate([[True], new]))
        key, weight, n_mentions = key[first], np.maximum.reduceat(weight, first), np.add.reduceat(n_mentions, first)
    starts = np.searchsorted(key, np.arange(n_documents + 1) * size)
    return LinkArrays(kept.take(in_order), starts, key % size, weight, n_mentions)


def pool_fields(frame: Any, name: str) -> dict[str, Any]:
    """Return the fields of a ``LinkedPool`` from a K frame."""
    frame = pandas_frame(frame, name)
    require(frame, COLUMNS, name)
    refuse_near_misses(frame, ("mentions",), name)
    docno, (topics, topic) = _ids(frame, "docno", name), _ids(frame, "qid", name).codes()
    label, rank = (column_integers(frame[column], f"{name} column {column!r}") for column in ("label", "rank"))
    if len(rank) and rank.min() >= 1:
        warn(f"{name}: no rank is 0, the first rank; ranks that start at 1 get too little weight, subtract 1")
    _refuse(rank < 0, lambda row: f"{name}: row {row} has rank {rank[row]}, wanted at least 0, the first rank")
    weight = _weights(frame, name)
    mentions = _counts(frame, name)
    linked = frame["entity_id"].notna().to_numpy()
    vocabulary, code, space = entity_codes(_ids(frame[linked], "entity_id", name), f"{name} column 'entity_id'")
    entity = np.full(len(frame), -1)
    entity[linked] = code
    linked = entity >= 0
    rows, new = _by_document(topic, rank, docno)
    columns: Any = label, linked, entity, weight, mentions
    label, linked, entity, weight, mentions = (column[rows] for column in columns)
    document, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    first = rows[starts]
    fields = {"topics": topics, "topic": topic[first], "docno": docno.take(first), "rank": rank[first]}
    _require_one_document(fields, label, document, name)
    links = link_arrays(len(first), document[linked], vocabulary, entity[linked], weight[linked], mentions[linked])
    return fields | {"label": np.maximum(label[starts], UNJUDGED), **links._asdict(), "space": space}


def _ids(frame: pd.DataFrame, column: str, name: str) -> Ids:
    return column_ids(frame[column], f"{name} column {column!r}")


def _by_document(topic: Ints, rank: Ints, docno: Ids) -> tuple[Ints, Bools]:
    """Return row numbers by topic and rank, each document's together, and True for the first row of each document."""
    new = np.zeros(len(topic), dtype=bool)
    new[docno.blocks()] = True
    step = np.diff(topic), np.diff(rank)
    place = (step[0] != 0) | (step[1] != 0)
    if not ((step[0] < 0) | ((step[0] == 0) & (step[1] < 0)) | (new[1:] & ~place)).any():
        # The usual order, which takes no sorting.
        new[1:] |= place
        return np.arange(len(topic)), new
    _, code = docno.distinct()
    rows = np.lexsort((code, rank, topic))
    new[1:] = (np.diff([topic[rows], rank[rows], code[rows]]) != 0).any(axis=0)
    return rows, new


def _weights(frame: pd.DataFrame, name: str) -> Floats:
    missing = (frame["weight"].isna() & frame["entity_id"].notna()).to_numpy()
    hint = "for linkers without weights, use 1 for all"
    _refuse(missing, lambda row: f"{name}: row {row} has no weight, wanted 0 to 1; {hint}")
    # The weight of a document without entities is not used.
    weight = column_numbers(frame["weight"].fillna(0.0), f"{name} column 'weight'")
    bad = (weight < 0) | (weight > 1)
    _refuse(bad, lambda row: f"{name}: row {row} has weight {weight[row]:.9g}, wanted 0 to 1; {WEIGHT_REMEDY}")
    return weight


def _refuse(bad: Bools, message: Callable[[int], str]) -> None:
    """Raise an error about the first bad row."""
    if bad.any():
        raise InputError(message(int(np.argmax(bad))))


def _counts(frame: pd.DataFrame, name: str) -> Ints:
    """Return the number of mentions of each row, 1 by default."""
    if "mentions" not in frame.columns:
        return np.ones(len(frame), dtype=np.int64)
    mentions = column_integers(frame["mentions"], f"{name} column 'mentions'")
    bad = (mentions < 1) & frame["entity_id"].notna().to_numpy()
    _refuse(bad, lambda row: f"{name}: row {row} has {mentions[row]} mentions; a link has at least one")
    return mentions


def _require_one_document(fields: dict[str, Any], label: Ints, document: Ints, name: str) -> None:
    """Refuse a document with two ranks or two labels."""
    topics, topic, docno = fields["topics"], fields["topic"], fields["docno"]

    def owner(which: int) -> str:
        return f"document {docno.text[which].as_py()!r} of query {topics[topic[which]]!r}"

    repeated = repeated_pairs(topic, docno)
    if len(repeated):
        raise InputError(
            f"{name}: {owner(int(repeated[0]))} has several ranks; give all rows of a document its rank in the pool"
        )
    clash = np.flatnonzero((np.diff(document) == 0) & (np.diff(label) != 0))
    if len(clash):
        first, second = label[clash[0]], label[clash[0] + 1]
        raise InputError(f"{name}: {owner(int(document[clash[0]]))} has the labels {first} and {second}; keep one")
