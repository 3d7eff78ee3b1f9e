"""Readers of linked corpora and of result files of linkers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier.errors import FileError, InputError, ParameterError, warn
from vbterrier.frames.files.reading import MAX_BYTES
from vbterrier.frames.files.source import Source
from vbterrier.linking.links import WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.services.annotators import REL
from vbterrier.linking.services.json_answers import Node, title_id, title_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pandas as pd

    from vbterrier.annotations import StrPath


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
# Rows that are converted to columns at a time.
SLAB = 1 << 16

_SPACES = (WIKIPEDIA_TITLE, WIKIPEDIA_ID)
_FIELDS = ("passage", "title", "headings", "body")


@dataclass
class _Rows:
    """A buffer of rows that are converted to columns in batches, because Python objects take ten times the memory."""

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
    """Read a file with one JSON object per line, plain or gzip, into columns.

    - ``documents``: a function that returns the documents of an object: the id and the node with the links
    - ``rows``: a function that returns the links of a document: the columns after the id
    - ``docnos``: the documents to read; ``None`` for all
    - ``max_bytes``: the maximum size when decompressed; ``None`` for no limit
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
                source.path, f"wanted one JSON object per line, found other text ({error})", line=number
            ) from error
        kept.flush(SLAB)
    kept.flush()
    frame: pd.DataFrame = pa.Table.from_batches(kept.batches, SCHEMA).to_pandas()
    return frame


def under(*keys: str) -> Callable[[Node], Iterable[tuple[str, Node]]]:
    """Return a function for objects with one document each, whose id is the value of the first present key."""
    return lambda record: [(_docno(record, keys), record)]


def _docno(record: Node, keys: tuple[str, ...]) -> str:
    """Return the id of a document as text; early versions of MMEAD have integers."""
    found = next((node for key in keys if (node := record.get(key))), None)
    if found is None:
        raise record.wanted(f"an object with {' or '.join(map(repr, keys))}")
    docno = str(found.whole()) if isinstance(found.value, int) else found.text()
    if not docno:
        raise found.wanted("an id")
    return docno


def weight_of(node: Node | None) -> float:
    """Return a weight in [0, 1]; 1 if there is no node."""
    weight = 1.0 if node is None else node.number()
    if node is not None and not 0 <= weight <= 1:
        raise node.wanted("a weight, 0 to 1")
    return weight


def require_one(name: str, value: str | None, legal: tuple[str | None, ...]) -> None:
    """Check an option."""
    if value not in legal:
        raise ParameterError(f"{name}={value!r}: wanted one of {', '.join(map(repr, legal))}")


def read_wat_corpus(
    path: StrPath,
    *,
    ids: str = WIKIPEDIA_TITLE,
    weight: str | None = None,
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read a corpus linked by WAT (``corpus.entities.jsonl``), plain or gzip.

    A line is ``{"doc_id", "entities": [{wikipedia_title, wikipedia_id, start, end, rho, prior_prob}]}``, as in the
    Robust04 and CODEC corpora of DREQ (Chatterjee and Dietz 2024).

    Parameters
    ----------
    path
        The file.
    ids
        ``"wikipedia_title"`` (with underscores) or ``"wikipedia_id"``.
    weight
        ``"rho"`` or ``"prior_prob"`` as the weight of a tag, in [0, 1]; ``None`` for 1.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        The maximum size when decompressed; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        One row per link: ``docno``, ``entity_id``, ``weight``, ``start``, ``end`` (as in the file) and ``name``.

    Raises
    ------
    FileError
        The file is invalid; names the line and the path of the value.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corpus.entities.jsonl")
    >>> entity = '{"wikipedia_title": "Michael_Jordan", "wikipedia_id": 20455, "start": 0, "end": 6, "rho": 0.6}'
    >>> _ = path.write_text('{"doc_id": "007", "entities": [' + entity + "]}\n")
    >>> read_wat_corpus(path, weight="rho").values.tolist()
    [['007', 'Michael_Jordan', 0.6, 0, 6, 'Michael Jordan']]
    """
    require_one("ids", ids, _SPACES)
    require_one("weight", weight, (None, "rho", "prior_prob"))

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        for node in record["entities"].items():
            title, start, end = node["wikipedia_title"].text(), node["start"].whole(), node["end"].whole()
            entity = title_id(title) if ids == WIKIPEDIA_TITLE else str(node["wikipedia_id"].whole())
            yield entity, weight_of(node[weight] if weight else None), start, end, title_name(title), ""

    return read_records(path, under("doc_id"), rows, docnos, max_bytes).drop(columns="field")


def read_mmead(
    path: StrPath,
    *,
    ids: str = WIKIPEDIA_ID,
    weight: str | None = None,
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read MMEAD, the entity links of MS MARCO (Kamphuis et al. 2023), plain or gzip.

    A line is ``{"passage": [...], "pid"}`` or ``{"title": [...], "headings": [...], "body": [...], "docid"}``; a link
    is ``{entity_id, start_pos, end_pos, entity}`` with numbers or text, and in published files ``details.md_score``.

    Parameters
    ----------
    path, docnos, max_bytes
        As in :func:`read_wat_corpus`, with the same errors.
    ids
        ``"wikipedia_id"`` or ``"wikipedia_title"`` (with underscores).
    weight
        ``"md_score"``, the confidence in the mention, as the weight of a tag; ``None`` for 1.

    Returns
    -------
    pandas.DataFrame
        One row per link: ``docno``, ``entity_id``, ``weight``, ``start``, ``end`` (in the field), ``name``, ``field``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "passages.jsonl")
    >>> link = '{"entity_id": "7954681", "start_pos": "126", "end_pos": "134", "entity": "Montreal"}'
    >>> _ = path.write_text('{"passage": [' + link + '], "pid": "123"}\n')
    >>> read_mmead(path).values.tolist()
    [['123', '7954681', 1.0, 126, 134, 'Montreal', 'passage']]
    """
    require_one("ids", ids, _SPACES)
    require_one("weight", weight, (None, "md_score"))

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        found = [(name, links) for name in _FIELDS if (links := record.get(name))]
        if not found:
            raise record.wanted(f"an object with some of {', '.join(_FIELDS)}")
        for name, links in found:
            for node in links.items():
                title, start, end = node["entity"].text(), node["start_pos"].whole(), node["end_pos"].whole()
                entity = title_id(title) if ids == WIKIPEDIA_TITLE else str(node["entity_id"].whole())
                yield (
                    entity,
                    weight_of(node["details"][weight] if weight else None),
                    start,
                    end,
                    title_name(title),
                    name,
                )

    return read_records(path, under("docid", "pid"), rows, docnos, max_bytes)


def read_spans(
    path: StrPath,
    *,
    nil: str = "warn",
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read lines of links as spans, ``{"doc", "links": [[start, end, entity, surface]]}``, plain or gzip.

    This is the short format of ELEVANT's linked articles (Bast et al. 2022); the surface may be missing.

    Parameters
    ----------
    path, docnos, max_bytes
        As in :func:`read_wat_corpus`, with the same errors.
    nil
        The treatment of mentions without an entity, whose id is in ``<...>`` or begins with "Unknown": ``"warn"`` (left
        out, and counted in a warning), ``"drop"`` (left out) or ``"keep"``.

    Returns
    -------
    pandas.DataFrame
        One row per link: ``docno``, ``entity_id``, ``weight`` (1), ``start``, ``end`` and ``name`` (the surface).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.jsonl")
    >>> _ = path.write_text('{"doc": "dev-1", "links": [[66, 72, "Q84", "LONDON"], [80, 85, "<NIL>"]]}\n')
    >>> read_spans(path, nil="drop").values.tolist()
    [['dev-1', 'Q84', 1.0, 66, 72, 'LONDON']]
    """
    require_one("nil", nil, ("warn", "drop", "keep"))
    n_nil = 0

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        nonlocal n_nil
        for node in record["links"].items():
            parts = node.items()
            if len(parts) not in {3, 4}:
                raise node.wanted("[start, end, entity] or [start, end, entity, surface]")
            entity = parts[2].text()
            is_nil = entity.startswith(("<", "Unknown"))
            n_nil += is_nil
            if not is_nil or nil == "keep":
                yield entity, 1.0, parts[0].whole(), parts[1].whole(), parts[3].text() if parts[3:] else "", ""

    frame = read_records(path, under("doc"), rows, docnos, max_bytes).drop(columns="field")
    if n_nil and nil == "warn":
        warn(f"{path}: {n_nil} mentions without an entity are left out; pass nil='drop' to accept, nil='keep' to keep")
    return frame


def read_elevant(
    path: StrPath,
    *,
    what: str = "entity_mentions",
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read ELEVANT's linked articles (Bast et al. 2022), plain or gzip.

    A line is ``{"id", "text", "entity_mentions": [{"span": [start, end], "id"}], "labels": [{"span", "entity_id"}]}``
    with further members, which are ignored.

    Parameters
    ----------
    path, docnos, max_bytes
        As in :func:`read_wat_corpus`, with the same errors.
    what
        ``"entity_mentions"`` for the links of a linker, or ``"labels"`` for the ground truth. Mentions without entity
        (null, or an id that begins with "Unknown" or is in ``<...>``) are left out.

    Returns
    -------
    pandas.DataFrame
        One row per link: ``docno`` (integers as text), ``entity_id``, ``weight`` (1), ``start``, ``end`` and ``name``
        (the text of the span, empty if the article has no text).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "linked_articles.jsonl")
    >>> mention = '{"span": [0, 5], "recognized_by": "NER", "id": "Q60036", "linked_by": "WAT", "candidates": []}'
    >>> _ = path.write_text('{"id": 7, "text": "Heidi and Seal", "entity_mentions": [' + mention + "]}\n")
    >>> read_elevant(path).values.tolist()
    [['7', 'Q60036', 1.0, 0, 5, 'Heidi']]
    """
    require_one("what", what, ("entity_mentions", "labels"))
    key = "id" if what == "entity_mentions" else "entity_id"

    def rows(article: Node) -> Iterator[tuple[Any, ...]]:
        text = "" if (node := article.get("text")) is None else node.text()
        for mention in article[what].items():
            entity, span = mention.get(key), mention["span"].items()
            if len(span) != 2:  # noqa: PLR2004 - start and end
                raise mention["span"].wanted("[start, end]")
            start, end = (bound.whole() for bound in span)
            if entity is not None and not entity.text().startswith(("<", "Unknown")):
                yield entity.text(), 1.0, start, end, text[max(start, 0) : max(end, 0)], ""

    return read_records(path, under("id"), rows, docnos, max_bytes).drop(columns="field")


def read_rel(
    path: StrPath,
    *,
    weight: str | None = None,
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read the JSON results of REL's Python interface (van Hulst et al. 2020), plain or gzip.

    A line is an object with any number of documents, the result of ``process_results`` written by ``json.dumps``:
    ``{docno: [[start, length, mention, title, conf_ed, conf_md, tag]]}``.

    Parameters
    ----------
    path, docnos, max_bytes
        As in :func:`read_wat_corpus`, with the same errors.
    weight
        ``"conf_ed"``, the confidence in the entity, or ``"conf_md"``, the confidence in the mention, as the weight of a
        tag in [0, 1]; ``None`` for 1. REL writes -1 if it computes no confidence in the entity, which is an error.

    Returns
    -------
    pandas.DataFrame
        One row per link: ``docno``, ``entity_id`` (the title with underscores), ``weight``, ``start``, ``end`` and
        ``name``. The title "NIL" links to nothing.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rel.jsonl")
    >>> _ = path.write_text('{"d1": [[0, 3, "Fox", "Fox_Broadcasting_Company", 0.9, 0.99, "ORG"]], "d2": []}\n')
    >>> read_rel(path, weight="conf_ed").values.tolist()
    [['d1', 'Fox_Broadcasting_Company', 0.9, 0, 3, 'Fox Broadcasting Company']]
    """
    require_one("weight", weight, (None, "conf_ed", "conf_md"))
    form = REL(score=weight or "conf_ed")

    def rows(links: Node) -> Iterator[tuple[Any, ...]]:
        for found in form.candidates(links):
            if found.entity_id:
                if weight is not None and not 0 <= found.score <= 1:
                    raise found.node.wanted(f"{weight} from 0 to 1 (or pass weight=None)")
                score = 1.0 if weight is None else found.score
                yield found.entity_id, score, found.start, found.end, found.name, ""

    return read_records(path, _members, rows, docnos, max_bytes).drop(columns="field")


def _members(record: Node) -> Iterator[tuple[str, Node]]:
    """Yield the documents of an object with their ids."""
    if not isinstance(record.value, dict):
        raise record.wanted("an object of documents")
    for docno in record.value:
        if not docno:
            raise record.wanted("ids of documents")
        yield docno, record[docno]
