"""Titles of Wikipedia pages and names of DBpedia resources, each in the one form that ids have here."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from vbterrier.linking.formats.node import Node

_RESOURCE = "dbpedia.org/resource/"


def title_id(title: str) -> str:
    """A Wikipedia title as an id: underscores for blanks, as in the addresses of its pages.

    TagMe and MMEAD write blanks, WAT, REL and DBpedia underscores.

    >>> title_id("Charles Bukowski")
    'Charles_Bukowski'
    """
    return title.strip().replace(" ", "_")


def title_name(title: str) -> str:
    """A Wikipedia title as people read it: blanks for underscores.

    >>> title_name("Charles_Bukowski")
    'Charles Bukowski'
    """
    return title.replace("_", " ").strip()


def dbpedia_id(node: Node, edition: str = "") -> str:
    """The name of a DBpedia resource, percent signs decoded, from its address or as it stands alone.

    Parameters
    ----------
    node
        ``http://dbpedia.org/resource/AC/DC``, ``<dbpedia:AC/DC>`` or ``AC/DC``.
    edition
        The language of the chapter that must have it, as ``"nl"`` for ``nl.dbpedia.org``; empty for ``dbpedia.org``.
        The same name in two editions is two resources.

    Raises
    ------
    InputError
        An address of another edition or of no DBpedia; percent signs that hide no UTF-8.

    >>> from vbterrier.linking.formats.node import Node
    >>> dbpedia_id(Node("http://dbpedia.org/resource/Caf%C3%A9_(band)", "answer"))
    'Café_(band)'
    """
    name = node.text().removeprefix("<").removesuffix(">").removeprefix("dbpedia:")
    if "://" in name:
        host = f"{edition}.{_RESOURCE}" if edition else _RESOURCE
        address = name.partition("://")[2].removeprefix("www.")
        if not address.startswith(host):
            raise node.wanted(f"an address under http://{host} (another language: pass edition, as 'nl')")
        name = address.removeprefix(host)
    try:
        name = unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise node.wanted("percent signs that decode to UTF-8") from None
    if not name:
        raise node.wanted("the name of a resource")
    return title_id(name)
