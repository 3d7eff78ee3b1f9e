"""Similarities of intents: from vectors of entities, and matched with candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.errors import InputError, agreeing, examples, float_array, number, warn
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.entities import require_once
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import Lookup, column_ids, column_numbers, require_same_kind
from vbterrier.frames.ranking import places
from vbterrier.kernels.rankings import spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.intents.coverage import Intents


# Numbers of vectors that are multiplied at a time.
_BLOCK_CELLS = 4_000_000


def neighbour_pairs(similarities: Any, intents: Intents, *, name: str = "similarities") -> tuple[Ints, Ints, Floats]:
    """Match similarities with intents: each intent, its neighbour, and their similarity, each of shape (n_pairs,).

    A pair (entity_id, other_id, similarity, and optionally qid) holds in both directions and may be given in either;
    similarities of other entities are ignored.
    """
    frame = pandas_frame(similarities, name)
    require(frame, ("entity_id", "other_id", "similarity"), name)
    refuse_near_misses(frame, ("qid",), name)
    left, right = (column_ids(frame[column], f"{name} column {column!r}") for column in ("entity_id", "other_id"))

    def pair(row: int) -> str:
        return f" ({left.text[row].as_py()!r} and {right.text[row].as_py()!r})"

    value = column_numbers(frame["similarity"], f"{name} column 'similarity'", pair)
    same = pc.equal(left.text, right.text).to_numpy(zero_copy_only=False).astype(bool)
    outside = ~((value >= 0) & (value <= 1))
    for bad, range_text in ((outside, "0 to 1"), (same & (value != 1), "1 of an entity with itself")):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{name}: row {row}{pair(row)} has similarity {value[row]:g}, wanted {range_text}")
    for side, column in ((left, "entity_id"), (right, "other_id")):
        require_same_kind(intents.entity, side, f"{intents.name} column 'entity_id'", f"{name} column {column!r}")
    if "qid" in frame.columns:
        qid = column_ids(frame["qid"], f"{name} column 'qid'")
        require_same_kind(intents.qid, qid, f"{intents.name} column 'qid'", f"{name} column 'qid'")
        topics, topic = qid.codes()
        rows, one = intents.lookup.find(places(topics, intents.topics)[topic], left)
    else:
        rows, one = Lookup(None, intents.entity).find(None, left)
    other = intents.lookup.find_one(intents.topic[one], right.take(rows))
    kept = (other >= 0) & (one != other)
    if len(frame) and not (other >= 0).any():
        both = (examples(ids.text[:4].to_pylist()) for ids in (left, intents.entity))
        warn(f"{name}: no pair has two intents of a query: {' against '.join(both)}; similarities change no value")
    ends = {"first": np.minimum(one, other)[kept], "second": np.maximum(one, other)[kept]}
    pairs = pd.DataFrame({**ends, "row": rows[kept], "value": value[rows[kept]]}).sort_values(list(ends), kind="stable")
    clash = pairs.duplicated(list(ends)) & (pairs["value"] != pairs["value"].shift())
    if clash.any():
        at = int(np.argmax(clash))
        earlier, row = sorted(pairs["row"].iloc[[at - 1, at]].tolist())
        raise InputError(f"{name}: rows {earlier} and {row}{pair(row)} have two similarities; keep one")
    pairs = pairs[~pairs.duplicated(list(ends)) & (pairs["value"] > 0)]
    first, second, values = (pairs[column].to_numpy() for column in ("first", "second", "value"))
    return np.concatenate([first, second]), np.concatenate([second, first]), np.concatenate([values, values])


def similarities_from(intents: Any, embeddings: Mapping[str, Any], *, floor: float = 0.0) -> pd.DataFrame:
    """Similarities of the intents of each query from vectors of entities.

    ``s(e, e') = max(0, (cos(v_e, v_e') - floor) / (1 - floor))``

    Parameters
    ----------
    intents
        Columns qid, entity_id.
    embeddings
        The vector of each entity by id, all of one length.
    floor
        The cosine of unrelated entities, which becomes 0, in [0, 1); with 0 almost any neighbour counts, because
        cosines of sentence embeddings are rarely near 0.

    Returns
    -------
    pandas.DataFrame
        qid, entity_id, other_id, similarity: each pair once, without pairs of similarity 0 and without NIL.

    Raises
    ------
    ParameterError
        A floor outside [0, 1).
    InputError
        A repeated intent, an intent without a vector, vectors of different lengths, zero or not finite.

    Notes
    -----
    The cost is linear in the number of pairs of intents of a query. Neither the order of rows nor the other intents
    change the similarity of a pair.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": "jordan", "entity_id": ["NBA", "Bulls", "country"]})
    >>> vectors = {"NBA": [1.0, 0.0], "Bulls": [0.8, 0.6], "country": [0.0, 1.0]}
    >>> similarities_from(intents, vectors, floor=0.5).round(2).values.tolist()
    [['jordan', 'Bulls', 'NBA', 0.6], ['jordan', 'Bulls', 'country', 0.2]]
    """
    floor = number("floor", floor, low=0, high=1, open_high=True)
    frame = pandas_frame(intents, "intents")
    require(frame, ("qid", "entity_id"), "intents")
    qid, entity = (column_ids(frame[column], f"intents column {column!r}") for column in ("qid", "entity_id"))
    topics, topic = qid.codes()
    require_once(topics, topic, entity, "intents")
    names, code = entity.codes()
    rows = np.lexsort((entity.ranks(), topic))
    rows = rows[code[rows] != (names.index(NIL) if NIL in names else -1)]
    # NIL has no neighbours.
    units = _units([name for name in names if name != NIL], embeddings)
    place = np.cumsum([name != NIL for name in names]) - 1
    ends = np.searchsorted(topic[rows], topic[rows], side="right")
    left, right = spans(np.arange(1, len(rows) + 1), ends)
    left, right = rows[left], rows[right]
    step = max(1, _BLOCK_CELLS // max(units.shape[1], 1))
    # Sums of products in the order of the vectors, unlike a matrix product, do not depend on the order of rows.
    parts = [
        (units[place[code[left[at : at + step]]]] * units[place[code[right[at : at + step]]]]).sum(axis=1)
        for at in range(0, len(left), step)
    ]
    cosine = np.concatenate([np.empty(0), *parts])
    similarity = np.clip((cosine - floor) / (1 - floor), 0.0, 1.0)
    some = similarity > 0
    pairs = {"qid": (qid, left), "entity_id": (entity, left), "other_id": (entity, right)}
    columns = {name: ids.take(at[some]).text.to_pandas() for name, (ids, at) in pairs.items()}
    return pd.DataFrame({**columns, "similarity": similarity[some]})


def _units(names: list[str], embeddings: Mapping[str, Any]) -> Floats:
    """Return the vectors of entities, scaled to length 1, shape (n, d)."""
    if missing := [name for name in names if name not in embeddings]:
        raise InputError(
            f"embeddings: no vector of {agreeing(len(missing), 'intents')} ({examples(missing)}); "
            "add them, or drop these"
        )
    vectors = [float_array(f"embeddings: {name!r}", embeddings[name]) for name in names]
    if not vectors:
        return np.empty((0, 0))
    for name, vector in zip(names, vectors, strict=True):
        if vector.ndim != 1 or vector.shape != vectors[0].shape or not np.isfinite(vector).all() or not vector.any():
            raise InputError(
                f"embeddings: {name!r} has a vector of shape {vector.shape}, wanted {vectors[0].shape}, finite and not "
                "all 0"
            )
    table = np.stack(vectors)
    table /= np.abs(table).max(axis=1, keepdims=True)
    units: Floats = table / np.sqrt((table**2).sum(axis=1, keepdims=True))
    return units
