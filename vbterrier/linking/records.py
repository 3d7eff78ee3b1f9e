"""JSON lines of linked documents on their way into columns."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.files.source import Source
from vbterrier.linking.formats.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from os import PathLike

    import pandas as pd

    StrPath = str | PathLike[str]

SCHEMA = pa.schema(
    [
        ("docno", pa.large_string()),
        ("entity_id", pa.large_string()),
        ("weight", pa.float64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("name", pa.large_string()),
        ("field", pa.large_string()),
    ]
)
# Rows that are Python objects at any time.
SLAB = 1 << 16


@dataclass
class _Rows:
    """Rows on their way into columns: as Python objects they take ten times the memory, so few are at any time."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)

    def flush(self, fewest: int = 1) -> None:
        if len(self.rows) >= fewest:
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*self.rows, strict=True), SCHEMA.types, strict=True)
            ]
            self.batches.append(pa.record_batch(columns, schema=SCHEMA))
            self.rows.clear()


def read_records(
    path: StrPath,
    documents: Callable[[Node], Iterable[tuple[str, Node]]],
    rows: Callable[[Node], Iterable[tuple[Any, ...]]],
    docnos: Collection[str] | None,
    max_bytes: int | None,
) -> pd.DataFrame:
    """Read a file of one JSON object a line, plain or gzip, into columns.

    Parameters
    ----------
    path
        The file.
    documents
        The documents of an object: the id and what holds the links of each.
    rows
        The links of a document: the columns behind the id.
    docnos
        The documents to read; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Raises
    ------
    FileError
        Names the line and the member to blame.
    """
    source, kept = Source.at(path, max_bytes), _Rows()
    wanted = None if docnos is None else frozenset(docnos)
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            for docno, node in documents(Node(json.loads(line), "document")):
                if wanted is None or docno in wanted:
                    kept.rows += [(docno, *row) for row in rows(node)]
        except InputError as error:
            raise FileError(source.path, str(error), line=number) from error
        except (ValueError, RecursionError) as error:
            raise FileError(
                source.path, f"wanted a JSON object a line, found other text ({error})", line=number
            ) from error
        kept.flush(SLAB)
    kept.flush()
    frame: pd.DataFrame = pa.Table.from_batches(kept.batches, SCHEMA).to_pandas()
    return frame


def under(*keys: str) -> Callable[[Node], Iterable[tuple[str, Node]]]:
    """Objects that are a document each, whose id stands under the first of some keys."""
    return lambda record: [(_docno(record, keys), record)]


def _docno(record: Node, keys: tuple[str, ...]) -> str:
    """The document's id as text; integers, of early versions of MMEAD, become it."""
    found = next((node for key in keys if (node := record.get(key))), None)
    if found is None:
        raise record.wanted(f"an object with {' or '.join(map(repr, keys))}")
    docno = str(found.whole()) if isinstance(found.value, int) else found.text()
    if not docno:
        raise found.wanted("an id")
    return docno


def weight_of(node: Node | None) -> float:
    """A weight in [0, 1]; 1 where none is read."""
    weight = 1.0 if node is None else node.number()
    if node is not None and not 0 <= weight <= 1:
        raise node.wanted("a weight, 0 to 1")
    return weight


def require_one(name: str, value: str | None, legal: tuple[str | None, ...]) -> None:
    """Refuse an option that does not exist."""
    if value not in legal:
        raise ParameterError(f"{name}={value!r}: wanted one of {', '.join(map(repr, legal))}")
