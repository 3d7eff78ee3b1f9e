"""Redirects and disambiguation pages of a MediaWiki dump as aliases of page titles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.errors import FileError
from vbterrier.linking.kb.files import strip_qualifier
from vbterrier.linking.kb.staging import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import StrPath

_TITLE = re.compile(r"<title>([^<\n]*)</title>")
_NAMESPACE = re.compile(r"<ns>(-?\d+)</ns>")
_REDIRECT = re.compile(r'<redirect title="([^"\n]*)"')
_TEXT = "<text"
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(disambig\w*|disamb|dab|hndis|geodis|human name disambiguation|place name disambiguation|given name|"
    r"surname|begriffsklärung|homonymie|desambiguación|disambigua)\b",
    re.IGNORECASE,
)
_ENTITIES = (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&#039;", "'"), ("&amp;", "&"))
_END = "</page>"


def read_mediawiki_aliases(source: StrPath, *, max_bytes: int | None = None, progress: bool = True) -> pd.DataFrame:
    r"""Read the redirects and disambiguation pages of a MediaWiki XML dump (``pages-articles``), page by page.

    Parameters
    ----------
    source
        The dump, plain, gzip or bzip2.
    max_bytes
        The maximum size when decompressed; no limit by default.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    pandas.DataFrame
        Columns alias, title, kind: the title of a redirect and its target, ``"redirect"``; the title of a
        disambiguation page without its qualifier and the first link of each of its bullets, ``"disambiguation"``. Pages
        outside the main namespace are left out.

    Raises
    ------
    FileError
        The file cannot be read, or has no page.

    Notes
    -----
    Disambiguation pages are known by their template, such as ``{{disambiguation}}`` or ``{{hndis}}``. Lines are
    matched, not parsed as XML, so that no entity of a document type is expanded; the dump has one tag a line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dump.xml"
    >>> page = "<page><title>Mercury (disambiguation)</title><ns>0</ns><text>* [[Mercury (planet)|Mercury]], a planet"
    >>> _ = path.write_text(page + "\n{{disambiguation}}</text></page>")
    >>> read_mediawiki_aliases(path).values.tolist()
    [['Mercury', 'Mercury (planet)', 'disambiguation']]
    """
    rows, n_pages = list[tuple[str, str, str]](), 0
    for text in _pages(source, max_bytes, progress=progress):
        n_pages += 1
        rows.extend(_rows(text))
    if not n_pages:
        raise FileError(Path(source), "has no <page>; wanted a MediaWiki XML dump, as pages-articles.xml.bz2")
    return pd.DataFrame(rows, columns=["alias", "title", "kind"], dtype="str").drop_duplicates(ignore_index=True)


def _pages(source: StrPath, max_bytes: int | None, *, progress: bool) -> Iterator[str]:
    """Yield the text of each page of a dump."""
    lines: list[str] = []
    for _, line in numbered_lines(source, max_bytes=max_bytes, progress=progress):
        text = line.decode("utf-8", "replace")
        if "<page>" in text:
            lines = []
        lines.append(text)
        if _END in text:
            yield "\n".join(lines)
            lines = []


def _rows(page: str) -> Iterator[tuple[str, str, str]]:
    title, namespace = _TITLE.search(page), _NAMESPACE.search(page)
    if title is None or (namespace is not None and namespace[1] != "0"):
        return
    name = _unescape_xml(title[1])
    if redirect := _REDIRECT.search(page):
        yield name, _unescape_xml(redirect[1]), "redirect"
    elif _DISAMBIGUATION.search(page):
        for target in _bullets(page):
            yield strip_qualifier(name), _unescape_xml(target).strip().replace("_", " "), "disambiguation"


def _bullets(page: str) -> Iterator[str]:
    """Yield the page that the first link of each bullet of a disambiguation page means."""
    for line in page.split("\n"):
        bullet = line
        if _TEXT in line and not line.startswith("*"):
            # The first line of a text follows its tag.
            bullet = line.partition(_TEXT)[2].partition(">")[2]
        before, _, behind = bullet.partition("[[")
        link, closed, _ = behind.partition("]]")
        target = link.partition("|")[0].partition("#")[0]
        if bullet.startswith("*") and closed and target and "[" not in before and "]" not in link:
            yield target


def _unescape_xml(text: str) -> str:
    for escaped, plain in _ENTITIES:
        text = text.replace(escaped, plain)
    return text
