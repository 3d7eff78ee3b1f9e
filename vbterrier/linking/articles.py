"""Reading the result files of linkers: articles as ELEVANT writes them, and what REL returns for many documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.frames.files.reading import MAX_BYTES
from vbterrier.linking.formats.rel import REL
from vbterrier.linking.records import read_records, require_one, under

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from os import PathLike

    import pandas as pd

    from vbterrier.linking.formats.base import Candidate
    from vbterrier.linking.formats.node import Node

    StrPath = str | PathLike[str]


def read_elevant(
    path: StrPath,
    *,
    what: str = "entity_mentions",
    docnos: Collection[str] | None = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read ELEVANT's linked articles (Bast et al. 2022), plain or gzip.

    A line is ``{"id", "text", "entity_mentions": [{"span": [start, end], "id"}], "labels": [{"span", "entity_id"}]}``
    with more members that count for nothing here.

    Parameters
    ----------
    path
        The file.
    what
        ``"entity_mentions"``, what a linker found, or ``"labels"``, the ground truth. Mentions without an entity (null,
        or an id that begins with "Unknown" or stands in ``<...>``) are no links.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        A row a link: ``docno`` (whole numbers as text), ``entity_id``, ``weight`` (1), ``start``, ``end`` and ``name``
        (the text of the span, empty where the article has no text).

    Raises
    ------
    FileError
        Names the line and the member to blame.

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
            if len(span) != 2:  # noqa: PLR2004 - it begins and ends
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
    r"""Read what REL's Python interface returns for documents (van Hulst et al. 2020), written as JSON, plain or gzip.

    A line is an object of any number of documents, as ``json.dumps`` writes the result of ``process_results``:
    ``{docno: [[start, length, mention, title, conf_ed, conf_md, tag]]}``.

    Parameters
    ----------
    path
        The file.
    weight
        ``"conf_ed"``, the confidence in the entity, or ``"conf_md"``, that in the mention, as the weight of a tag in
        [0, 1]; ``None`` for 1. REL writes -1 where it computes no confidence in the entity, which is no weight.
    docnos
        The documents to read, such as those of a run; ``None`` for all.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        A row a link: ``docno``, ``entity_id`` (the title, blanks made underscores), ``weight``, ``start``, ``end`` and
        ``name``. The title "NIL" links to nothing.

    Raises
    ------
    FileError
        Names the line and the member to blame.

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
                yield found.entity_id, _confidence(found, weight), found.start, found.end, found.name, ""

    return read_records(path, _members, rows, docnos, max_bytes).drop(columns="field")


def _members(record: Node) -> Iterator[tuple[str, Node]]:
    """The documents of an object, under their ids."""
    if not isinstance(record.value, dict):
        raise record.wanted("an object of documents")
    for docno in record.value:
        if not docno:
            raise record.wanted("ids of documents")
        yield docno, record[docno]


def _confidence(found: Candidate, weight: str | None) -> float:
    if weight is None:
        return 1.0
    if not 0 <= found.score <= 1:
        raise found.node.wanted(f"{weight} from 0 to 1 (or take weight=None)")
    return found.score
