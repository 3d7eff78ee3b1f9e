"""Mentions made links, and K frames made the arrays of a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from vbterrier.errors import InputError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Ids, ids_of, integers_of, numbers_of, repeated_pairs

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import Floats, Ints


# The label of a document that nobody judged.
UNJUDGED = -1
COLUMNS = ("qid", "docno", "entity_id", "label", "rank", "weight")


class LinkArrays(NamedTuple):
    """Each entity of each document once, by document and entity; see ``LinkedPool`` for the fields."""

    entities: Ids
    starts: Ints
    entity: Ints
    weight: Floats
    mentions: Ints


def coded(ids: Ids) -> tuple[Ids, Ints]:
    """The distinct ids, and the number of each row's id among them."""
    encoded = ids.text.dictionary_encode()
    # From here on entities are text, as rankers give them back.
    return Ids(encoded.dictionary), encoded.indices.to_numpy().astype(np.int64)


def links_of(
    n_documents: int, document: Ints, vocabulary: Ids, entity: Ints, weight: Floats, mentions: Ints | None = None
) -> LinkArrays:
    """Make mentions links: of an entity's mentions in a document the highest weight, and their number.

    Parameters
    ----------
    n_documents
        How many documents there are.
    document, entity, weight
        Of each mention, the entity as a number among ``vocabulary``; shape (n_mentions,).
    vocabulary
        Distinct ids; those without a mention are left out of the result.
    mentions
        How many mentions a row stands for; 1 by default.
    """
    used = np.flatnonzero(np.bincount(entity, minlength=len(vocabulary)))
    kept = vocabulary.take(used)
    number = np.empty(len(vocabulary), dtype=np.int64)
    number[used] = kept.ranks()
    size = max(len(kept), 1)
    key = document * size + number[entity]
    # Of equal keys the highest weight and the sum count, which no order changes.
    rows = np.argsort(key)
    key = key[rows]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else rows
    link = key[first]
    weight = weight[rows]
    n_mentions = np.diff(first, append=len(rows))
    if len(first) < len(rows):
        weight = np.maximum.reduceat(weight, first)
    if mentions is not None:
        n_mentions = np.add.reduceat(mentions[rows], first) if len(first) else n_mentions
    in_order = np.asarray(pc.array_sort_indices(kept.text).to_numpy(), dtype=np.int64)
    starts = np.searchsorted(link, np.arange(n_documents + 1) * size)
    return LinkArrays(kept.take(in_order), starts, link % size, weight, n_mentions)


def fields_of(frame: Any, name: str) -> dict[str, Any]:
    """The fields of a ``LinkedPool`` from a K frame.

    Raises
    ------
    InputError
        A missing column or id; a document with two labels or ranks; a rank below 0; a weight missing or outside [0, 1].
    """
    frame = frame_of(frame, name)
    require(frame, COLUMNS, name)
    docno, (topics, topic) = _ids(frame, "docno", name), _ids(frame, "qid", name).codes()
    label, rank = (integers_of(frame[column], f"{name} column {column!r}") for column in ("label", "rank"))
    _require_ranks(rank, name)
    weight = _weights(frame, name)
    mentions = _counts(frame, name)
    linked = frame["entity_id"].notna().to_numpy()
    _, code = docno.codes()
    rows = _by_document(topic, rank, code)
    new = np.ones(len(rows), dtype=bool)
    for part in (topic, rank, code):
        new[1:] &= part[rows[1:]] == part[rows[:-1]]
    new[1:] = ~new[1:]
    document, first = np.cumsum(new) - 1, rows[new]
    fields = {"topics": topics, "topic": topic[first], "docno": docno.take(first), "rank": rank[first]}
    _require_one_document(fields, label, rows, document, name)
    kept = linked[rows]
    rows = rows[kept]
    vocabulary, entity = coded(_ids(frame[linked], "entity_id", name))
    require_named(vocabulary, name)
    among = np.cumsum(linked) - 1
    links = links_of(len(first), document[kept], vocabulary, entity[among[rows]], weight[rows], mentions[rows])
    return fields | {"label": np.maximum(label[first], UNJUDGED), **links._asdict()}


def _ids(frame: pd.DataFrame, column: str, name: str) -> Ids:
    return ids_of(frame[column], f"{name} column {column!r}")


def _by_document(topic: Ints, rank: Ints, code: Ints) -> Ints:
    """Rows by topic, rank and document; as they stand where they are so already, as written."""
    falls = np.zeros(max(len(topic) - 1, 0), dtype=bool)
    same = ~falls
    for part in (topic, rank, code):
        step = np.diff(part)
        falls |= same & (step < 0)
        same &= step == 0
    return np.lexsort((code, rank, topic)) if falls.any() else np.arange(len(topic))


def require_named(vocabulary: Ids, name: str) -> None:
    """Refuse an entity whose id is empty: one that is missing, read as text, would link what has nothing in common.

    Raises
    ------
    InputError
    """
    if len(vocabulary) and pc.any(pc.equal(vocabulary.text, "")).as_py():
        raise InputError(f"{name}: an entity_id is the empty text; leave it missing where a document has no entity")


def _require_ranks(rank: Ints, name: str) -> None:
    """Refuse ranks before the first, at which discounts have no value; warn where no list begins with it."""
    if len(rank) and rank.min() >= 1:
        warn(f"{name}: no rank is 0, which is the first; ranks from 1 weigh less than they should, take 1 off")
    bad = rank < 0
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: row {row} has rank {rank[row]}, wanted at least 0, which is the first")


def _weights(frame: pd.DataFrame, name: str) -> Floats:
    unsaid = (frame["weight"].isna() & frame["entity_id"].notna()).to_numpy()
    if unsaid.any():
        row = int(np.argmax(unsaid))
        raise InputError(f"{name}: row {row} has no weight, wanted 0 to 1; where linkers say none, give 1 for all")
    # Documents without entities have no weight, or any.
    weight = numbers_of(frame["weight"].fillna(0.0), f"{name} column 'weight'")
    bad = (weight < 0) | (weight > 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: row {row} has weight {weight[row]:g}, wanted 0 to 1")
    return weight


def _counts(frame: pd.DataFrame, name: str) -> Ints:
    """How often documents mention entities: once, where nothing is said."""
    if "mentions" not in frame.columns:
        return np.ones(len(frame), dtype=np.int64)
    mentions = integers_of(frame["mentions"], f"{name} column 'mentions'")
    bad = (mentions < 1) & frame["entity_id"].notna().to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: row {row} has {mentions[row]} mentions; a link has one at least")
    return mentions


def _require_one_document(fields: dict[str, Any], label: Ints, rows: Ints, document: Ints, name: str) -> None:
    """Refuse a document that stands at two ranks, or with two labels."""
    topics, topic, docno = fields["topics"], fields["topic"], fields["docno"]

    def owner(which: int) -> str:
        return f"document {docno.text[which].as_py()!r} of query {topics[topic[which]]!r}"

    twice = repeated_pairs(topic, docno)
    if len(twice):
        raise InputError(
            f"{name}: {owner(int(twice[0]))} has several ranks; give every row of a document its rank in the pool"
        )
    clash = np.flatnonzero((np.diff(document) == 0) & (np.diff(label[rows]) != 0))
    if len(clash):
        first, second = (label[rows[clash[0] + step]] for step in (0, 1))
        raise InputError(f"{name}: {owner(int(document[clash[0]]))} has the labels {first} and {second}; keep one")
