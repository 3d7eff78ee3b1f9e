"""Reading files of linked documents: which entities a collection's documents mention, as tags."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from vbterrier.errors import DegenerateWarning
from vbterrier.frames.files.reading import MAX_BYTES
from vbterrier.linking.formats.titles import title_id, title_name
from vbterrier.linking.links import WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.records import read_records, require_one, under, weight_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from os import PathLike

    import pandas as pd

    from vbterrier.linking.formats.node import Node

    StrPath = str | PathLike[str]

_SPACES = (WIKIPEDIA_TITLE, WIKIPEDIA_ID)
_FIELDS = ("passage", "title", "headings", "body")


def read_wat_corpus(
    path: StrPath,
    *,
    ids: str = WIKIPEDIA_TITLE,
    weight: str | None = None,
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read a corpus linked by WAT (``corpus.entities.jsonl``), plain or gzip.

    A line is ``{"doc_id", "entities": [{wikipedia_title, wikipedia_id, start, end, rho, prior_prob}]}``, as for the
    Robust04 and CODEC corpora of DREQ (Chatterjee and Dietz 2024).

    Parameters
    ----------
    path
        The file.
    ids
        ``"wikipedia_title"`` (blanks made underscores) or ``"wikipedia_id"``.
    weight
        ``"rho"`` or ``"prior_prob"`` as the weight of a tag, in [0, 1]; ``None`` for 1.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        A row a link: ``docno``, ``entity_id``, ``weight``, ``start``, ``end`` (as in the file) and ``name``.

    Raises
    ------
    FileError
        Names the line and the member to blame.

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

    A line is ``{"passage": [...], "pid"}`` or ``{"title": [...], "headings": [...], "body": [...], "docid"}``, a link
    ``{entity_id, start_pos, end_pos, entity}`` with numbers or text and, in the files, ``details.md_score``.

    Parameters
    ----------
    path
        The file.
    ids
        ``"wikipedia_id"`` or ``"wikipedia_title"`` (blanks made underscores).
    weight
        ``"md_score"``, the confidence in the mention, as the weight of a tag; ``None`` for 1.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        A row a link: ``docno``, ``entity_id``, ``weight``, ``start``, ``end`` (in the field), ``name`` and ``field``.

    Raises
    ------
    FileError
        Names the line and the member to blame.

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
    r"""Read links as spans, ``{"doc", "links": [[start, end, entity, surface]]}`` a line, plain or gzip.

    The short form of ELEVANT's linked articles (Bast et al. 2022); the surface may be missing.

    Parameters
    ----------
    path
        The file.
    nil
        What to do with mentions of no entity of the knowledge base, those whose id stands in ``<...>`` or begins with
        "Unknown": ``"warn"`` (left out, and counted in a warning), ``"drop"`` (left out) or ``"keep"``.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        A row a link: ``docno``, ``entity_id``, ``weight`` (1), ``start``, ``end`` and ``name`` (the surface).

    Raises
    ------
    FileError
        Names the line and the member to blame.

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
        warnings.warn(
            f"{path}: {n_nil} mentions of no known entity are left out; nil='drop' agrees, nil='keep' keeps them",
            DegenerateWarning,
            stacklevel=2,
        )
    return frame
