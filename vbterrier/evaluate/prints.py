"""Short texts that tell inputs apart, whatever the order of their rows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vbterrier.frames.ids import Ids, ids_of, integers_of
from vbterrier.kernels.order import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.evaluate.grounds import Configuration, Ground
    from vbterrier.frames.ranked import Run


def rows_print(columns: Iterable[NDArray[Any]]) -> str:
    """A short text that tells tables apart.

    Parameters
    ----------
    columns
        64-bit numbers, each of shape (n,).

    >>> one, other = np.array([1.0, 2.0]), np.array([3, 4])
    >>> rows_print([one, other]) == rows_print([one[::-1], other[::-1]])
    True
    >>> rows_print([one, other]) == rows_print([one[::-1], other])
    False
    """
    key = np.zeros(1, dtype=np.uint64)
    for column in columns:
        key = mix(key + mix(np.ascontiguousarray(column).view(np.uint64) + np.uint64(1)))
    # Sums and parities forget the order of rows.
    return f"{len(key)}-{int(key.sum(dtype=np.uint64)):016x}-{int(np.bitwise_xor.reduce(key)):016x}"


def inputs_print(ground: Ground, configurations: Sequence[Configuration]) -> str:
    """What tells the inputs of a grid from others: all that its configurations may read, and the measures."""
    documents, pool = ground.documents, ground.documents.pool
    topic = _texts(pool.topics)[pool.topic]
    entity = pool.entities.prints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    parts = [
        *map(str, ground.measures),
        rows_print([topic, pool.docno.prints, documents.score]),
        rows_print([topic[pool.document], pool.docno.prints[pool.document], entity, pool.weight]),
        _judgments(ground.qrels),
    ]
    parts += [f"{name}: {_run(run)}" for name, run in sorted(ground.runs.items())]
    families = {configuration.family for configuration in configurations}
    ids = sorted(
        {
            *pool.entities.text.to_pylist(),
            *(each for run in ground.runs.values() for each in run.docno.text.to_pylist()),
        }
    )
    if "embedding" in families:
        parts.append(_vectors(ground.resources["embeddings"], ids))
        parts.append(_vectors(ground.resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))))
    if "expansion" in families:
        texts = ground.resources["texts"] or {}
        own = [each for each in ids if each in texts]
        parts.append(rows_print([_texts(own), _texts([str(texts[each]) for each in own])]))
        fields = {dict(one.parameters)["field"] for one in configurations if one.family == "expansion"}
        frame = documents.run.frame
        parts += [
            rows_print([documents.run.docno.prints, _texts(frame[field].astype(str).tolist())])
            for field in sorted(fields & set(frame.columns))
        ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _texts(texts: list[str]) -> NDArray[np.uint64]:
    return Ids(pa.array(texts, pa.large_string())).prints


def _judgments(qrels: pd.DataFrame) -> str:
    qid, docno = (ids_of(qrels[name], f"qrels column {name!r}").prints for name in ("qid", "docno"))
    return rows_print([qid, docno, integers_of(qrels["label"], "qrels column 'label'")])


def _run(run: Run) -> str:
    return rows_print([run.qid.prints, run.docno.prints, run.score])


def _vectors(given: Mapping[str, Any], ids: list[str]) -> str:
    """A hash of the vectors of some ids, in their order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in given:
            made.update(each.encode() + b"\0" + np.asarray(given[each], dtype=np.float64).tobytes())
    return made.hexdigest()
