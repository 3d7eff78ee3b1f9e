"""Short texts that tell inputs apart, whatever the order of their rows."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.frames.ids import Ids, ids_of, integers_of
from vbterrier.frames.named import named
from vbterrier.kernels.order import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.evaluate.grounds import Ground
    from vbterrier.evaluate.topicwise import Work
    from vbterrier.frames.ranked import Run

# Columns of a run that are no text of its documents.
_KEYS = ("qid", "docno", "score", "rank", "query")
_SAMPLE = 1 << 16


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


def inputs_print(ground: Ground) -> str:
    """What tells the inputs of a grid from others: all that configurations may read, and the measures."""
    documents, pool, resources = ground.documents, ground.documents.pool, ground.resources
    topic = _texts(pool.topics)[pool.topic]
    entity = pool.entities.prints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    ids = sorted({*pool.entities.text.to_pylist(), *(each for run in ground.runs.values() for each in _docnos(run))})
    texts = resources["texts"] or {}
    own = [each for each in ids if each in texts]
    parts = [
        *map(str, ground.measures),
        rows_print([topic, pool.docno.prints, documents.score]),
        rows_print([topic[pool.document], pool.docno.prints[pool.document], entity, pool.weight]),
        _judgments(ground.qrels),
        *(f"{name}: {_run(run)}" for name, run in sorted(ground.runs.items())),
        _vectors(resources["embeddings"] or {}, ids),
        _vectors(resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))),
        rows_print([_texts(own), _texts([str(texts[each]) for each in own])]),
        *_fields(documents.run),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _docnos(run: Run) -> list[str]:
    docnos: list[str] = run.docno.text.to_pylist()
    return docnos


def _fields(run: Run) -> list[str]:
    """What the columns of text say of each document."""
    frame = run.frame
    columns = [name for name in sorted(map(str, frame.columns)) if name not in _KEYS]
    texts = [name for name in columns if all(isinstance(value, str) for value in frame[name])]
    return [f"{name}: " + rows_print([run.docno.prints, _texts(frame[name].tolist())]) for name in texts]


def _texts(texts: list[str]) -> NDArray[np.uint64]:
    return Ids(pa.array(texts, pa.large_string())).prints


def _judgments(qrels: pd.DataFrame) -> str:
    qid, docno = (ids_of(qrels[name], f"qrels column {name!r}").prints for name in ("qid", "docno"))
    return rows_print([qid, docno, integers_of(qrels["label"], "qrels column 'label'")])


def _run(run: Run) -> str:
    return rows_print([run.topic_ids.prints[run.topic], run.docno.prints, run.score])


def _vectors(given: Mapping[str, Any], ids: list[str]) -> str:
    """A hash of the vectors of some ids, in their order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in given:
            made.update(each.encode() + b"\0" + np.asarray(given[each], dtype=np.float64).tobytes())
    return made.hexdigest()


def inputs_of(paths: Sequence[Path], work: Work) -> str:
    """What tells inputs from others: files by size, time and samples, judgments, measures and version."""
    plan, slot = work.plan, work.slot
    frames = [slot.frame, slot.intents, slot.tags] if plan.at_once else []
    for measure in plan.at_once:
        frames += [named(kind, given) for kind in ("intents", "tags") if (given := measure.params.get(kind))]
    parts = [
        # The package itself stands above all floors, and is there when this is called.
        sys.modules["vbterrier"].__version__,
        *(repr((work.name, work.duplicates, plan.depth)), *map(repr, plan.at_once)),
        *map(_file_print, paths),
        *(_frame_print(frame) for frame in frames if frame is not None),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _file_print(path: Path) -> str:
    try:
        about = path.stat()
        with path.open("rb") as file:
            made = hashlib.blake2b(digest_size=16)
            for start in (0, about.st_size // 2, max(about.st_size - _SAMPLE, 0)):
                file.seek(start)
                made.update(file.read(_SAMPLE))
    except OSError:
        # Reading it says what is wrong.
        return str(path)
    return f"{about.st_size} {about.st_mtime_ns} {made.hexdigest()}"


def _frame_print(frame: pd.DataFrame) -> str:
    columns = sorted(map(str, frame.columns))
    return " ".join(columns) + rows_print([pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()])
