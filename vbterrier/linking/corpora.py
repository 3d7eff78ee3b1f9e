"""Readers of linked corpora and of result files of linkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier.errors import FileError, InputError, ParameterError, agreeing, excerpt, warn
from vbterrier.frames.files.source import MAX_BYTES, RepeatedMemberError, Source, parse_json
from vbterrier.frames.id_spaces import WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.services.annotators import REL
from vbterrier.linking.services.json_answers import Node, title_id, title_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pandas as pd

    from vbterrier.annotations import StrPath

_SCHEMA = {"docno": pa.large_string(), "entity_id": pa.large_string(), "weight": pa.float64(), "start": pa.int64()}
_SCHEMA |= {"end": pa.int64(), "name": pa.large_string(), "field": pa.large_string()}
# Rows that are converted to columns at a time, because Python objects take ten times the memory.
SLAB = 1 << 16

_SPACES = (WIKIPEDIA_TITLE, WIKIPEDIA_ID)
_FIELDS = ("passage", "title", "headings", "body")


def _read_json_lines(
    path: StrPath,
    keys: tuple[str, ...],
    rows: Callable[[Node], Iterable[tuple[Any, ...]]],
    docnos: Collection[str] | None,
    max_bytes: int | None,
    n_columns: int = 6,
) -> pd.DataFrame:
    """Read a file with one JSON object per line, plain or gzip, into columns.

    An object is a document, whose id is the value of the first present of ``keys``; without ``keys`` its members are
    documents. ``rows`` returns the links of a document.
    """
    source, kept, batches = Source.at(path, max_bytes), list[tuple[Any, ...]](), []
    selection = None if docnos is None else frozenset(docnos)
    schema = pa.schema(list(_SCHEMA.items())[:n_columns])

    def flush() -> None:
        columns = zip(zip(*kept, strict=True), schema.types, strict=True)
        batches.append(pa.record_batch([pa.array(column, kind) for column, kind in columns], schema=schema))
        kept.clear()

    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            record = Node(parse_json(line), "document")
            for docno, node in [(_docno(record, keys), record)] if keys else _members(record):
                if selection is None or docno in selection:
                    kept += [(docno, *row) for row in rows(node)]
        except (InputError, RepeatedMemberError) as error:
            raise FileError(source.path, str(error), line=number) from error
        except (ValueError, RecursionError) as error:
            fault = f"wanted one JSON object per line, found other text ({error})"
            raise FileError(source.path, fault, line=number) from error
        if len(kept) >= SLAB:
            flush()
    if kept:
        flush()
    frame: pd.DataFrame = pa.Table.from_batches(batches, schema).to_pandas()
    return frame


def _docno(record: Node, keys: tuple[str, ...]) -> str:
    """Return the id of a document as text; early versions of MMEAD have integers."""
    node = next((node for key in keys if (node := record.get(key))), None)
    if node is None:
        raise record.value_error(f"an object with {' or '.join(map(repr, keys))}")
    docno = str(node.whole()) if isinstance(node.value, int) else node.text()
    if not docno:
        raise node.value_error("an id")
    return docno


def _members(record: Node) -> Iterator[tuple[str, Node]]:
    if not isinstance(record.value, dict):
        raise record.value_error("an object of documents")
    for docno in record.value:
        if not docno:
            raise record.value_error("ids of documents")
        yield docno, record[docno]


def _read_weight(node: Node | None) -> float:
    """Return a weight in [0, 1]; 1 if there is no node."""
    weight = 1.0 if node is None else node.number()
    if node is not None and not 0 <= weight <= 1:
        raise node.value_error("a weight, 0 to 1")
    return weight


def _require_one(name: str, value: str | None, legal: tuple[str | None, ...]) -> None:
    if value not in legal:
        raise ParameterError(f"{name}={excerpt(value)}: wanted one of {', '.join(map(repr, legal))}")


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
    _require_one("ids", ids, _SPACES)
    _require_one("weight", weight, (None, "rho", "prior_prob"))

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        for node in record["entities"].items():
            title, start, end = node["wikipedia_title"].text(), node["start"].whole(), node["end"].whole()
            entity = title_id(title) if ids == WIKIPEDIA_TITLE else str(node["wikipedia_id"].whole())
            yield entity, _read_weight(node[weight] if weight else None), start, end, title_name(title)

    return _read_json_lines(path, ("doc_id",), rows, docnos, max_bytes)


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
    The columns, errors and other parameters are those of :func:`read_wat_corpus`, with a further column ``field`` (such
    as ``"passage"``), in which ``start`` and ``end`` count.

    Parameters
    ----------
    weight
        ``"md_score"``, the confidence in the mention, as the weight of a tag; ``None`` for 1.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "passages.jsonl")
    >>> link = '{"entity_id": "7954681", "start_pos": "126", "end_pos": "134", "entity": "Montreal"}'
    >>> _ = path.write_text('{"passage": [' + link + '], "pid": "123"}\n')
    >>> read_mmead(path).values.tolist()
    [['123', '7954681', 1.0, 126, 134, 'Montreal', 'passage']]
    """
    _require_one("ids", ids, _SPACES)
    _require_one("weight", weight, (None, "md_score"))

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        fields_with_links = [(name, links) for name in _FIELDS if (links := record.get(name))]
        if not fields_with_links:
            raise record.value_error(f"an object with some of {', '.join(_FIELDS)}")
        for name, links in fields_with_links:
            for node in links.items():
                title, start, end = node["entity"].text(), node["start_pos"].whole(), node["end_pos"].whole()
                entity = title_id(title) if ids == WIKIPEDIA_TITLE else str(node["entity_id"].whole())
                score = _read_weight(node["details"][weight] if weight else None)
                yield entity, score, start, end, title_name(title), name

    return _read_json_lines(path, ("docid", "pid"), rows, docnos, max_bytes, n_columns=7)


def read_spans(
    path: StrPath, *, nil: str = "warn", docnos: Collection[str] | None = None, max_bytes: int | None = MAX_BYTES
) -> pd.DataFrame:
    r"""Read lines of links as spans, ``{"doc", "links": [[start, end, entity, surface]]}``, plain or gzip.

    This is the short format of ELEVANT's linked articles (Bast et al. 2022); the surface may be missing. The columns,
    errors and other parameters are those of :func:`read_wat_corpus`; weights are 1, and ``name`` is the surface.

    Parameters
    ----------
    nil
        The treatment of mentions without an entity, whose id is in ``<...>`` or begins with "Unknown": ``"warn"`` (left
        out, and counted in a warning), ``"drop"`` (left out) or ``"keep"``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.jsonl")
    >>> _ = path.write_text('{"doc": "dev-1", "links": [[66, 72, "Q84", "LONDON"], [80, 85, "<NIL>"]]}\n')
    >>> read_spans(path, nil="drop").values.tolist()
    [['dev-1', 'Q84', 1.0, 66, 72, 'LONDON']]
    """
    _require_one("nil", nil, ("warn", "drop", "keep"))
    n_nil = 0

    def rows(record: Node) -> Iterator[tuple[Any, ...]]:
        nonlocal n_nil
        for node in record["links"].items():
            parts = node.items()
            if len(parts) not in {3, 4}:
                raise node.value_error("[start, end, entity] or [start, end, entity, surface]")
            entity = parts[2].text()
            is_nil = entity.startswith(("<", "Unknown"))
            n_nil += is_nil
            if not is_nil or nil == "keep":
                yield entity, 1.0, parts[0].whole(), parts[1].whole(), parts[3].text() if parts[3:] else ""

    frame = _read_json_lines(path, ("doc",), rows, docnos, max_bytes)
    if n_nil and nil == "warn":
        warn(
            f"{path}: {agreeing(n_nil, 'mentions without an entity are left out')}; pass nil='drop' "
            "to accept, nil='keep' to keep"
        )
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
    with further members, which are ignored. The columns, errors and other parameters are those of
    :func:`read_wat_corpus`; weights are 1, and ``name`` is the text of the span, empty if the article has no text.

    Parameters
    ----------
    what
        ``"entity_mentions"`` for the links of a linker, or ``"labels"`` for the ground truth. Mentions without entity
        (null, or an id that begins with "Unknown" or is in ``<...>``) are left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "linked_articles.jsonl")
    >>> mention = '{"span": [0, 5], "recognized_by": "NER", "id": "Q60036", "linked_by": "WAT", "candidates": []}'
    >>> _ = path.write_text('{"id": 7, "text": "Heidi and Seal", "entity_mentions": [' + mention + "]}\n")
    >>> read_elevant(path).values.tolist()
    [['7', 'Q60036', 1.0, 0, 5, 'Heidi']]
    """
    _require_one("what", what, ("entity_mentions", "labels"))
    key = "id" if what == "entity_mentions" else "entity_id"

    def rows(article: Node) -> Iterator[tuple[Any, ...]]:
        text = "" if (node := article.get("text")) is None else node.text()
        for mention in article[what].items():
            entity, span = mention.get(key), mention["span"].items()
            if len(span) != 2:  # noqa: PLR2004 - start and end
                raise mention["span"].value_error("[start, end]")
            start, end = (bound.whole() for bound in span)
            if entity is not None and not entity.text().startswith(("<", "Unknown")):
                yield entity.text(), 1.0, start, end, text[max(start, 0) : max(end, 0)]

    return _read_json_lines(path, ("id",), rows, docnos, max_bytes)


def read_rel(
    path: StrPath,
    *,
    weight: str | None = None,
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read the JSON results of REL's Python interface (van Hulst et al. 2020), plain or gzip.

    A line is an object with any number of documents, the result of ``process_results`` written by ``json.dumps``:
    ``{docno: [[start, length, mention, title, conf_ed, conf_md, tag]]}``. The columns, errors and other parameters are
    those of :func:`read_wat_corpus`; ids are titles with underscores, and the title "NIL" links to nothing.

    Parameters
    ----------
    weight
        ``"conf_ed"``, the confidence in the entity, or ``"conf_md"``, the confidence in the mention, as the weight of a
        tag in [0, 1]; ``None`` for 1. REL writes -1 if it computes no confidence in the entity, which is an error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rel.jsonl")
    >>> _ = path.write_text('{"d1": [[0, 3, "Fox", "Fox_Broadcasting_Company", 0.9, 0.99, "ORG"]], "d2": []}\n')
    >>> read_rel(path, weight="conf_ed").values.tolist()
    [['d1', 'Fox_Broadcasting_Company', 0.9, 0, 3, 'Fox Broadcasting Company']]
    """
    _require_one("weight", weight, (None, "conf_ed", "conf_md"))
    form = REL(score=weight or "conf_ed")

    def rows(links: Node) -> Iterator[tuple[Any, ...]]:
        for candidate in form.candidates(links):
            if candidate.entity_id:
                if weight is not None and not 0 <= candidate.score <= 1:
                    raise candidate.node.value_error(f"{weight} from 0 to 1 (or pass weight=None)")
                score = 1.0 if weight is None else candidate.score
                yield candidate.entity_id, score, candidate.start, candidate.end, candidate.name

    return _read_json_lines(path, (), rows, docnos, max_bytes)
