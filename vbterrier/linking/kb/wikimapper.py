"""Building a knowledge base from wikimapper's table of Wikipedia pages and Wikidata items."""

from __future__ import annotations

import re
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError
from vbterrier.frames.parameters import choice
from vbterrier.linking.kb.building import bar, building
from vbterrier.linking.kb.foreign import Foreign
from vbterrier.linking.kb.staging import fault_of
from vbterrier.linking.links import WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from vbterrier.linking.kb.base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging

    StrPath = str | os.PathLike[str]
    # Page id, title, Wikidata id.
    Page = tuple[int, str, str | None]

# Which column of a page is its id.
_PLACES = {WIKIPEDIA_ID: 0, WIKIPEDIA_TITLE: 1, WIKIDATA: 2}
_QUALIFIER = re.compile(r"(.*\S) \([^()]+\)")


def kb_from_wikimapper(
    path: StrPath,
    source: StrPath,
    *,
    id_space: str = WIKIDATA,
    unqualified: bool = True,
    progress: bool = True,
) -> KnowledgeBase:
    """Build a knowledge base from wikimapper's SQLite file.

    Pages with the same Wikidata item are an article and the pages that redirect to it; which is which the file does not
    say. The page with the smallest number is taken for the article: the others mostly came into being when it was
    moved or named otherwise. All their titles are aliases; none has a prior.

    Parameters
    ----------
    path
        The knowledge base; one that exists is replaced once the new one is complete.
    source
        wikimapper's file, with a table ``mapping(wikipedia_id, wikipedia_title, wikidata_id)``.
    id_space
        What its ids are to be: ``"wikidata"``; ``"wikipedia_title"`` (with underscores) or ``"wikipedia_id"`` (as
        text), where the other pages redirect to the article.
    unqualified
        Whether a title such as "Mercury (planet)" is an alias without its qualifier, "Mercury", too.
    progress
        Whether a build that takes long shows a bar, on a terminal.

    Returns
    -------
    KnowledgeBase

    Raises
    ------
    FileError
        The file cannot be read, is no SQLite or another table.

    Warns
    -----
    DegenerateWarning
        How many pages without a Wikidata item are left out, where ids are Wikidata's.

    Examples
    --------
    >>> import sqlite3, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with sqlite3.connect(folder / "index.db") as db:
    ...     _ = db.execute("CREATE TABLE mapping (wikipedia_id INTEGER, wikipedia_title TEXT, wikidata_id TEXT)")
    ...     _ = db.execute("INSERT INTO mapping VALUES (19694, 'Mercury_(planet)', 'Q308')")
    >>> db.close()
    >>> kb_from_wikimapper(folder / "index.kb", folder / "index.db").lookup(["mercury"])["entity_id"].tolist()
    ['Q308']
    """
    from vbterrier.linking.kb.base import KnowledgeBase

    choice("id_space", id_space, tuple(_PLACES))
    source = Path(source)
    columns = ("wikipedia_id", "wikipedia_title", "wikidata_id")
    with (
        Foreign(source, "wikimapper", {"mapping": columns}) as mapping,
        building(path, id_space, partial(_blamed, source), is_strict=False, progress=progress) as staging,
    ):
        pages = mapping.rows(f"SELECT {', '.join(columns)} FROM mapping ORDER BY wikidata_id, wikipedia_id")  # noqa: S608 - own words
        for group in _articles(_titled(staging, bar(pages, source.name, "page", shown=progress))):
            if id_space == WIKIDATA and group[0][2] is None:
                staging.leave_out("pages without a Wikidata item")
            else:
                _stage(staging, group, _PLACES[id_space], unqualified=unqualified)
    return KnowledgeBase(path)


def _titled(staging: Staging, pages: Iterable[Page]) -> Iterator[Page]:
    for page in pages:
        fault = fault_of(page[1])
        if fault:
            staging.leave_out(f"pages whose title {fault}")
        else:
            yield page


def _articles(pages: Iterable[Page]) -> Iterator[list[Page]]:
    """The pages of each item; a page without one is by itself."""
    for item, group in groupby(pages, key=itemgetter(2)):
        if item is None:
            yield from ([page] for page in group)
        else:
            yield list(group)


def _stage(staging: Staging, pages: list[Page], place: int, *, unqualified: bool) -> None:
    row, entity = pages[0][0], _id(pages[0][place])
    staging.entity(row, entity, pages[0][1].replace("_", " "))
    for page in pages:
        title = page[1].replace("_", " ")
        staging.alias(page[0], entity, title)
        bare = _QUALIFIER.fullmatch(title) if unqualified else None
        if bare:
            staging.alias(page[0], entity, bare[1])
        if _id(page[place]) != entity:
            staging.redirect(page[0], _id(page[place]), entity)


def _id(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


def _blamed(path: Path, row: int, message: str) -> FileError:
    return FileError(path, f"page {row}: {message}")
