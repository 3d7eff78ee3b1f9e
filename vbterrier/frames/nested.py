"""Nested objects as tables: dictionaries of dictionaries, lists of records, and the documents of evaluation tools.

Objects of Python and of JSON have the same shapes; see :func:`table_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.frames.columns import ColumnNames

if TYPE_CHECKING:
    from collections.abc import Sequence


# Lists of queries in documents of Quepid, the Search Relevance Workbench of OpenSearch and rank_llm, and lists of the
# documents of a query.
_QUERIES = ("requests", "judgmentRatings", "query_doc_pairs", "queries", "data")
_DOCUMENTS = ("ratings", "judgements", "judgments", "candidates", "results", "hits", "documents", "docs")
_QUERY = ColumnNames(("qid",), (), {"qid": "id querytext searchquery query topic question text"})
_OWN_DOCUMENT = ColumnNames(("docno",))
_DOCUMENT = ColumnNames(("docno",), (), {"docno": "id document doc"})


def is_nested(data: Any) -> bool:
    """Return True for an object that is a table: of objects or lists alone, or with a list of queries."""
    if not isinstance(data, Mapping):
        return False
    values = list(data.values())
    nested = bool(values) and all(isinstance(value, (Mapping, list)) for value in values)
    return nested or any(isinstance(data.get(name), (Mapping, list)) for name in (*_QUERIES, "details", "rank_eval"))


def table_of(data: Any, vocabulary: ColumnNames) -> pd.DataFrame:
    """Return the rows of a nested object, with the names of columns of this package; values are not converted.

    - a list of records, tuples with names included
    - ``{qid: {docno: number}}``, as of pytrec_eval, ranx and BEIR, also inside of other objects, as of MTEB
    - ``{qid: text}`` and ``{id: {"title": ..., "text": ...}}``, for topics and documents
    - ``{column: values}`` and ``{column: {row: value}}``, as pandas writes
    - lists of queries, each with a list of documents

    Raises
    ------
    ValueError
        Another shape; the message says what was found and wanted.
    """
    key, *values = vocabulary.named
    if isinstance(data, Mapping):
        if vocabulary.knows(list(data)) and all(isinstance(value, (Mapping, list)) for value in data.values()):
            return _renamed(pd.DataFrame(data, dtype=object).reset_index(drop=True), vocabulary)
        if "docno" in values or "label" in values:
            inner = _pairs_in(data)
            if inner is not None:
                return _pairs(inner, values[-1])
        queries = next((data[name] for name in _QUERIES if isinstance(data.get(name), (Mapping, list))), None)
        if queries is None:
            if data and all(isinstance(value, str) for value in data.values()):
                text = (values or list(vocabulary.optional))[0]
                return pd.DataFrame({key: list(data), text: list(data.values())}, dtype=object)
            queries = data
        if "columns" in data and queries is data.get("data"):
            return _renamed(pd.DataFrame(data["data"], columns=data["columns"], dtype=object), vocabulary)
        if isinstance(queries, Mapping):
            queries = [
                {key: name, **row} if isinstance(row, Mapping) else {key: name, "documents": row}
                for name, row in queries.items()
            ]
        data = queries
    records = [record for item in data for record in records_of(item, vocabulary)]
    return pd.DataFrame(_in_columns(records, vocabulary), dtype=object)


def _in_columns(records: Sequence[Mapping[str, Any]], vocabulary: ColumnNames) -> list[dict[str, Any]]:
    """Records with the names of columns of this package."""
    renamed: dict[tuple[str, ...], list[str]] = {}
    rows = []
    for record in records:
        names = tuple(record)
        columns = renamed.get(names)
        if columns is None:
            columns = renamed[names] = vocabulary.renamed([str(name) for name in names])
            twice = {name for name in columns if columns.count(name) > 1}
            if twice:
                raise ValueError(f"has two members of one meaning among {', '.join(map(str, names))}; keep one")
        rows.append(dict(zip(columns, record.values(), strict=True)))
    return rows


def _renamed(frame: pd.DataFrame, vocabulary: ColumnNames) -> pd.DataFrame:
    return frame.set_axis(vocabulary.renamed([str(name) for name in frame.columns]), axis=1)


def _is_pairs(data: Any) -> bool:
    """Return True for ``{qid: {docno: number}}``."""
    if not isinstance(data, Mapping) or not data or not all(isinstance(row, Mapping) for row in data.values()):
        return False
    kinds = set(map(type, chain.from_iterable(row.values() for row in data.values())))
    return bool(kinds) and all(kind is type(None) or issubclass(kind, (Number, np.number)) for kind in kinds)


def _pairs_in(data: Any) -> Mapping[str, Any] | None:
    """The only ``{qid: {docno: number}}`` in nested objects; ``None`` for none."""
    if _is_pairs(data):
        return data  # type: ignore[no-any-return]
    if not isinstance(data, Mapping):
        return None
    inner = {str(name): pairs for name, value in data.items() if (pairs := _pairs_in(value)) is not None}
    if len(inner) > 1:
        raise ValueError(f"holds several tables of queries and documents: {', '.join(inner)}; keep one")
    return next(iter(inner.values()), None)


def _pairs(data: Mapping[str, Any], value: str) -> pd.DataFrame:
    rows = list(data.values())
    qid = np.repeat(np.array(list(data), dtype=object), [len(row) for row in rows])
    docno = list(chain.from_iterable(rows))
    values = list(chain.from_iterable(row.values() for row in rows))
    return pd.DataFrame({"qid": qid, "docno": docno, value: values}, dtype=object)


def records_of(item: Any, vocabulary: ColumnNames) -> list[dict[str, Any]]:
    """Return the records of an item: itself, or a record for each of its documents."""
    if hasattr(item, "_asdict"):
        item = item._asdict()
    if not isinstance(item, Mapping):
        raise ValueError(f"wanted objects with members, found {item!r:.80}")  # noqa: TRY004 - of a file or a caller
    item = {str(name): value for name, value in item.items()}
    if "docno" not in vocabulary.named or "qid" not in vocabulary.named:
        return [item]
    inner = next((name for name in _DOCUMENTS if isinstance(item.get(name), (Mapping, list))), None)
    if inner is None:
        return [item]
    documents, query = item[inner], item.get("query")
    own = query if isinstance(query, Mapping) else item
    named = dict(zip(_QUERY.renamed(list(own)), own.values(), strict=True))
    if "qid" not in named:
        raise ValueError(f"an object with {inner} names no query; it has {', '.join(item)}")
    about = {"qid": named["qid"]}
    if "docno" in (names := _OWN_DOCUMENT.renamed(list(item))):
        about["docno"] = list(item.values())[names.index("docno")]
    value = vocabulary.named[-1]
    if isinstance(documents, Mapping):
        return [{**about, "docno": docno, value: number} for docno, number in documents.items()]
    records = []
    for place, document in enumerate(documents, 1):
        hit = document.get("hit") if isinstance(document, Mapping) else None
        record = {**hit, **document} if isinstance(hit, Mapping) else document
        if not isinstance(record, Mapping):
            record = {"docno": record, **({"rank": place} if value == "score" else {})}
        row = (
            dict(zip(_DOCUMENT.renamed(list(record)), record.values(), strict=True)) if "docno" not in about else record
        )
        records.append({**about, **row})
    return records
