"""Nested objects as tables: dictionaries of dictionaries, lists of records, and the documents of evaluation tools.

Objects of Python and of JSON have the same shapes; see :func:`nested_rows`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.frames.columns import NAMES, ColumnNames, simplified_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# Lists of queries in documents of Quepid, the Search Relevance Workbench of OpenSearch and rank_llm.
_QUERIES = ("requests", "judgmentRatings", "judgmentScores", "query_doc_pairs", "queries", "data")
# Lists of documents by their names without case and punctuation: of a query, or of judges of a pair; and those of a
# query alone, as of encoders, rerankers, toolkits and answers with references.
_DOCUMENTS = ("ratings", "judgements", "judgments", "candidates", "results", "hits", "documents", "docs")
_RANKINGS = """
    docnos docids docidlist documentids pids corpusids passageids productids ids ranking rankings rankedlist rankeddocs
    rankeddocuments retrieved retrieveddocs retrieveddocids retrieveddocuments ctxs contexts passages references
    relevantdocuments
"""
# Different members of the objects of a table.
MAX_MEMBERS = 1_000
# Numbers beside a list of documents, and the system of a query and its documents.
_NUMBERS, _SYSTEM = ("scores", "similarities", "labels", "grades"), ("name", "system", "model", "tag", "run_id")
_LABELS, _PLACES = (
    frozenset(" ".join(NAMES[name] for name in names).split()) for names in (("label",), ("score", "rank"))
)
_QUERY = ColumnNames(("qid",), (), {"qid": "id querytext searchquery query topic question text"})
_OWN_DOCUMENT = ColumnNames(("docno",))
_DOCUMENT = ColumnNames(("docno",), (), {"docno": "id document doc"})
# A grade as the name of a member, in ratings by grade.
_GRADE = re.compile(r"-?[0-9]{1,2}(\.[0-9]{1,9})?")
# Ratings of the Rated Ranking Evaluator: groups of queries, in lists of these names, have documents.
_RATED_LIST, _GROUPS = "relevant_documents", ("topics", "query_groups", "queries")


def is_nested(data: Any) -> bool:
    """Return True for an object that is a table: of objects or lists alone, or with a list of queries."""
    if not isinstance(data, Mapping):
        return False
    values = list(data.values())
    nested = bool(values) and all(isinstance(value, (Mapping, list)) for value in values)
    is_list = any(isinstance(data.get(name), (Mapping, list)) for name in (*_QUERIES, "details", "rank_eval"))
    return nested or is_list or _hits(data) is not None or next(_rated_groups(data), None) is not None


def nested_rows(data: Any, vocabulary: ColumnNames) -> pd.DataFrame:
    """Return the rows of a nested object, with the names of columns of this package; values are not converted.

    - a list of records, tuples with names included
    - ``{qid: {docno: number}}``, as of pytrec_eval, ranx and BEIR, also inside of other objects, as of MTEB
    - ``{qid: documents}``: ids, pairs of id and number, or objects in a list; ids by grade
    - ``{qid: text}`` and ``{id: {"title": ..., "text": ...}}``, for topics and documents
    - ``{column: values}`` and ``{column: {row: value}}``, as pandas writes
    - lists of queries, each with documents
    - the answer of a search for one of these

    Raises
    ------
    ValueError
        Another shape; the message says what was found and wanted.
    """
    data = _search_hits(data)
    if isinstance(data, Mapping):
        for read in _SHAPES:
            frame = read(data, vocabulary)
            if frame is not None:
                return frame
    return _of_records(data, vocabulary)


def _search_hits(data: Any) -> Any:
    """The documents in the answer of a search of OpenSearch or Elasticsearch; other objects as they are."""
    hits = _hits(data) if isinstance(data, Mapping) else None
    if hits is None:
        return data
    sources = [hit.get("_source") for hit in hits if isinstance(hit, Mapping)]
    tables = [source for source in sources if is_nested(source)]
    if len(tables) > 1:
        raise ValueError(f"is the answer of a search, with {len(tables)} lists of judgments; keep one")
    if tables:
        return tables[0]
    if sources and all(
        isinstance(source, Mapping) and "qid" in _QUERY.standard_names(list(source)) for source in sources
    ):
        return sources
    raise ValueError("is the answer of one search, which names no query; write hits with their query, as qid and docno")


def _hits(data: Mapping[str, Any]) -> list[Any] | None:
    hits = data.get("hits")
    inner = hits.get("hits") if isinstance(hits, Mapping) else None
    return inner if isinstance(inner, list) else None


def _columns(data: Mapping[str, Any], vocabulary: ColumnNames) -> pd.DataFrame | None:
    """``{column: values}``, ``{column: {row: value}}``, and lists of rows beside their columns."""
    if (
        len(data) <= MAX_MEMBERS
        and vocabulary.knows(list(data))
        and all(isinstance(value, (Mapping, list)) for value in data.values())
    ):
        return _renamed_columns(pd.DataFrame(data, dtype=object).reset_index(drop=True), vocabulary)
    if "columns" in data and isinstance(data.get("data"), list):
        return _renamed_columns(pd.DataFrame(data["data"], columns=data["columns"], dtype=object), vocabulary)
    return None


def _numbers_of_pairs(data: Mapping[str, Any], vocabulary: ColumnNames) -> pd.DataFrame | None:
    """``{qid: {docno: number}}``."""
    _, *values = vocabulary.named
    inner = _pairs_in(data) if "docno" in values or "label" in values else None
    return None if inner is None else _pairs(inner, values[-1])


def _texts(data: Mapping[str, Any], vocabulary: ColumnNames) -> pd.DataFrame | None:
    """``{id: text}``."""
    if not data or not all(isinstance(value, str) for value in data.values()):
        return None
    key, *texts = (*vocabulary.named, *vocabulary.optional)
    return pd.DataFrame({key: list(data), texts[0]: list(data.values())}, dtype=object) if texts else None


def _rre_ratings(data: Mapping[str, Any], vocabulary: ColumnNames) -> pd.DataFrame | None:
    """Ratings of the Rated Ranking Evaluator."""
    if not {"qid", "docno"} <= set(vocabulary.named):
        return None
    rows = [
        {"qid": qid, **document}
        for qid, documents in _rated_groups(data)
        for document in _documents(documents, vocabulary.named[-1])
    ]
    return _of_records(rows, vocabulary) if rows else None


def _rated_groups(data: Mapping[str, Any], lists: Sequence[str] = _GROUPS) -> Iterator[tuple[Any, Any]]:
    """The name of each group of queries, or the text of its query, and its rated documents."""
    if isinstance(data.get(_RATED_LIST), (Mapping, list)):
        queries = data.get("queries")
        query = queries[0] if isinstance(queries, list) and queries and isinstance(queries[0], Mapping) else data
        texts = query.get("placeholders")
        texts = texts if isinstance(texts, Mapping) else {}
        yield (
            data.get("name") or (next(iter(texts.values())) if len(texts) == 1 else texts.get("$query")),
            data[_RATED_LIST],
        )
        return
    for place, name in enumerate(lists, 1):
        for part in data[name] if isinstance(data.get(name), list) else ():
            if isinstance(part, Mapping):
                yield from _rated_groups(part, lists[place:])


def _queries(data: Mapping[str, Any], vocabulary: ColumnNames) -> pd.DataFrame:
    """Lists of queries with their documents."""
    name = next((name for name in _QUERIES if isinstance(data.get(name), (Mapping, list))), None)
    queries = data if name is None else data[name]
    key = vocabulary.named[0]
    if isinstance(queries, Mapping):
        queries = [
            {key: qid, **row} if isinstance(row, Mapping) and _is_object(row, vocabulary) else {key: qid, "docs": row}
            for qid, row in queries.items()
        ]
    if name == "judgmentScores":
        queries = [
            {**query, "docs": [_with_label(document) for document in query["docs"]]}
            if isinstance(query, Mapping) and isinstance(query.get("docs"), list)
            else query
            for query in queries
        ]
    return _of_records(queries, vocabulary)


def _with_label(document: Any) -> Any:
    """A judgment whose rating is called score, as in older versions of the Search Relevance Workbench."""
    if not isinstance(document, Mapping):
        return document
    return {"rating" if name == "score" else name: value for name, value in document.items()}


def _is_object(row: Mapping[str, Any], vocabulary: ColumnNames) -> bool:
    """Return True for the members of a query or a document, and False for its documents by id or by grade."""
    if "docno" not in vocabulary.named or "qid" not in vocabulary.named:
        return True
    return _list_in(row) is not None or "docno" in _DOCUMENT.standard_names(list(row))


_SHAPES = (_columns, _numbers_of_pairs, _rre_ratings, _texts, _queries)


def _of_records(items: Iterable[Any], vocabulary: ColumnNames) -> pd.DataFrame:
    records = [record for item in items for record in item_records(item, vocabulary)]
    return pd.DataFrame(_in_columns(records, vocabulary), dtype=object)


def _in_columns(records: Sequence[Mapping[str, Any]], vocabulary: ColumnNames) -> list[dict[str, Any]]:
    """Records with the names of columns of this package."""
    renamed: dict[tuple[str, ...], list[str]] = {}
    members: dict[str, None] = {}
    rows = []
    for record in records:
        names = tuple(record)
        columns = renamed.get(names)
        if columns is None:
            columns = renamed[names] = vocabulary.standard_names([str(name) for name in names])
            if len(set(columns)) < len(columns):
                raise ValueError(f"has two members of one meaning among {', '.join(map(str, names))}; keep one")
            members |= dict.fromkeys(columns)
            if len(members) > MAX_MEMBERS:
                # Each is a column of all rows.
                raise ValueError(f"has more than {MAX_MEMBERS:,} different members; nest them")
        rows.append(dict(zip(columns, record.values(), strict=True)))
    return rows


def _renamed_columns(frame: pd.DataFrame, vocabulary: ColumnNames) -> pd.DataFrame:
    return frame.set_axis(vocabulary.standard_names([str(name) for name in frame.columns]), axis=1)


def _is_pairs(data: Any) -> bool:
    """Return True for ``{qid: {docno: number}}``."""
    if not isinstance(data, Mapping) or not data or not all(isinstance(row, Mapping) for row in data.values()):
        return False
    if {simplified_name(name) for name in next(iter(data.values()))} <= _LABELS | _PLACES:
        # Objects by document, of a single query.
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


def item_records(item: Any, vocabulary: ColumnNames) -> list[dict[str, Any]]:
    """Return the records of an item: itself, or a record for each of its documents."""
    if hasattr(item, "_asdict"):
        item = item._asdict()
    if not isinstance(item, Mapping):
        raise ValueError(f"wanted objects with members, found {item!r:.80}")  # noqa: TRY004 - of a file or a caller
    item = {str(name): value for name, value in item.items()}
    if "docno" not in vocabulary.named or "qid" not in vocabulary.named:
        return [item]
    inner = _list_in(item)
    if inner is None:
        return [item]
    about, value = _query_members(item, inner), vocabulary.named[-1]
    beside = next((numbers for name, numbers in item.items() if simplified_name(name) in _NUMBERS), None)
    documents = item[inner]
    if isinstance(beside, list) and isinstance(documents, list):
        if len(beside) != len(documents):
            raise ValueError(f"has {len(documents)} {inner} and {len(beside)} numbers beside them; wanted one for each")
        documents = [_with_number(document, number, value) for document, number in zip(documents, beside, strict=True)]
    records = [{**about, **document} for document in _documents(documents, value, is_judged="docno" in about)]
    names = {simplified_name(name) for name in records[0]} if records else set()
    if value == "score" and names & _LABELS and not names & _PLACES:
        raise ValueError(f"has {inner} with labels, without ranks and scores; wanted a run: are these judgments?")
    return records


def _query_members(item: Mapping[str, Any], inner: str) -> dict[str, Any]:
    """The query of an item with documents, its document if the documents are judgments of it, and its system."""
    about: dict[str, Any] = {}
    # The query of rank_llm, and the metadata of TREC RAG.
    for part in (item.get("query"), item.get("metadata"), item):
        if isinstance(part, Mapping):
            named = dict(zip(_QUERY.standard_names(list(part)), part.values(), strict=True))
            about = {name: named[name] for name in ("qid", *_SYSTEM) if isinstance(named.get(name), (str, int))} | about
    if "qid" not in about:
        raise ValueError(f"an object with {inner} names no query; it has {', '.join(item)}")
    names = _OWN_DOCUMENT.standard_names(list(item))
    return about | ({"docno": list(item.values())[names.index("docno")]} if "docno" in names else {})


def _list_in(item: Mapping[str, Any]) -> str | None:
    """The name of the documents of a query, or of the judgments of a pair."""
    words = {simplified_name(name): str(name) for name, value in item.items() if isinstance(value, (Mapping, list))}
    names = (
        _DOCUMENTS
        if "docno" in _OWN_DOCUMENT.standard_names(list(map(str, item)))
        else (*_DOCUMENTS, *_RANKINGS.split())
    )
    return next((words[name] for name in names if name in words), None)


def _with_number(document: Any, number: Any, value: str) -> dict[str, Any]:
    return {**document, value: number} if isinstance(document, Mapping) else {"docno": document, value: number}


def _documents(documents: Any, value: str, *, is_judged: bool = False) -> Iterator[dict[str, Any]]:
    """The records of documents: objects, ids, or pairs of id and number in a list; numbers or objects by id; by grade.

    - ``value``: the column of numbers, label or score
    - ``is_judged``: True for the judgments of one document
    """
    if isinstance(documents, Mapping):
        graded = _by_grade(documents) if value == "label" else None
        if graded is not None:
            yield from graded
            return
        for docno, about in documents.items():
            yield (
                {**_document_members(about), "docno": docno}
                if isinstance(about, Mapping)
                else {"docno": docno, value: about}
            )
        return
    for place, document in enumerate(documents, 1):
        hit = document.get("hit") if isinstance(document, Mapping) else None
        record: Any = {**hit, **document} if isinstance(hit, Mapping) else document
        if isinstance(record, Mapping):
            values = list(record.values())
            if len(values) == 1 and isinstance(values[0], Mapping):
                yield {**_document_members(values[0]), "docno": next(iter(record))}
            elif is_judged:
                yield dict(record)
            else:
                yield dict(zip(_DOCUMENT.standard_names(list(map(str, record))), values, strict=True))
        elif isinstance(record, (list, tuple)):
            yield _document_fields(record, value)
        else:
            yield {"docno": record, **({"rank": place} if value == "score" else {})}


def _document_members(about: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a document; the Rated Ranking Evaluator calls a label the gain."""
    return {"label" if name == "gain" else str(name): value for name, value in about.items()}


def _document_fields(document: Sequence[Any], value: str) -> dict[str, Any]:
    """A document as id and number, or as id, rank and number."""
    number = document[-1] if len(document) > 1 else None
    if len(document) not in (2, 3) or isinstance(number, bool) or not isinstance(number, (Number, str, type(None))):
        raise ValueError(f"wanted documents as ids, as id and {value}, or as objects, found {document!r:.80}")
    ranked = {"rank": document[1]} if len(document) == 3 and value == "score" else {}  # noqa: PLR2004 - with a rank
    return {"docno": document[0], value: number, **ranked}


def _by_grade(documents: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Documents in lists by grade; ``None`` for numbers by document."""
    if not documents or not all(_GRADE.fullmatch(str(name)) for name in documents):
        return None
    values = list(documents.values())
    if not all(isinstance(value, (list, str)) for value in values):
        return None
    if all(isinstance(value, str) and _GRADE.fullmatch(value) for value in values):
        raise ValueError(
            f"has numbers in quotes by numbers, as {dict(documents)!r:.60}: a document by grade, or a grade by "
            "document? Write grades as numbers without quotes, or lists of documents"
        )
    lists = {grade: [value] if isinstance(value, str) else value for grade, value in documents.items()}
    return [{"docno": docno, "label": grade} for grade, docnos in lists.items() for docno in docnos]
