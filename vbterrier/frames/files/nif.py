"""NIF, the annotations of documents that GERBIL reads and writes, in Turtle or N-Triples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, agreeing, module_of_extra, warn
from vbterrier.frames.files.source import quoted_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.frames.files.source import Source


NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core"
ITS = "http://www.w3.org/2005/11/its/rdf"
# Entities outside the knowledge base, as GERBIL's converters write them.
_NOT_IN_WIKI = re.compile(r"https?://(?:www\.)?aksw\.org/notInWiki(?:/.*)?", re.DOTALL)
# All triples are held at once.
_MAX_BYTES = 1 << 28
# The base of relative addresses, which is removed again.
_RELATIVE_BASE = "http://relative.invalid/"
_FRAGMENT = re.compile(r"[#?/](?:char=|offset_)(\d*)[,_](\d*)$|#nif=context$|#$")


def nif_mentions(source: Source) -> Iterator[tuple[str, int, int, str, list[tuple[str, str, float | None]]]]:
    """Yield docno, start, end, text and entities (id, its own space, confidence) of each mention.

    A document is a ``nif:Context`` with ``nif:isString``, whose address without the fragment is its id. A mention has
    ``nif:referenceContext``, ``nif:beginIndex``, ``nif:endIndex``, and ``itsrdf:taIdentRef``: an address of
    ``http://aksw.org/notInWiki/`` is no entity. Mentions without ``taIdentRef`` are left out, and counted in a warning.
    """
    nodes = _nodes(source)
    n_bare = n_odd = 0
    for subject, about in nodes.items():
        if "isString" in about or not {"referenceContext", "anchorOf", "taIdentRef"} & set(about):
            continue
        if "taIdentRef" not in about:
            n_bare += "beginIndex" in about
            continue
        context = next(iter(about.get("referenceContext", [])), "")
        start, end = _bounds(source, subject, about)
        text = next(iter(nodes.get(context, {}).get("isString", [])), None)
        if text is None:
            raise FileError(source.path, f"{subject}: wanted nif:referenceContext, a node with nif:isString")
        if not start <= end <= len(text):
            message = f"{subject}: the mention from {start} to {end} is not within its text of {len(text)} characters"
            raise FileError(source.path, f"{message}; count code points from 0, the end behind the last")
        anchor = next(iter(about.get("anchorOf", [])), text[start:end])
        n_odd += anchor != text[start:end]
        score = _confidence(source, subject, about)
        entities = [("" if _NOT_IN_WIKI.fullmatch(entity) else entity, "", score) for entity in about["taIdentRef"]]
        yield _FRAGMENT.sub("", context), start, end, anchor, entities
    if n_bare:
        warn(f"{source.path}: {agreeing(n_bare, 'mentions without itsrdf:taIdentRef are left out')}")
    if n_odd:
        warn(
            f"{source.path}: the nif:anchorOf of {agreeing(n_odd, 'mentions')} differs from the "
            "text at their offsets; were the "
            "offsets counted in UTF-16 or bytes?"
        )


def _nodes(source: Source) -> dict[str, dict[str, list[str]]]:
    """Return the annotations of each node."""
    rdflib = module_of_extra("rdflib", "rdf")
    notation3 = module_of_extra("rdflib.plugins.parsers.notation3", "rdf")
    text = source.text()
    if len(text) > _MAX_BYTES:
        raise FileError(source.path, f"holds {len(text):,} bytes of Turtle, wanted at most {_MAX_BYTES:,}: split it")
    try:
        graph = rdflib.Graph().parse(data=text.decode("utf-8-sig"), format="turtle", publicID=_RELATIVE_BASE)
    except UnicodeDecodeError as error:
        raise FileError(source.path, f"is not UTF-8 ({error}); convert the file") from error
    except notation3.BadSyntax as error:
        # The message has several lines.
        reason = str(error).partition("Bad syntax (")[2].rpartition(") at ^ in")[0]
        message = f"is not Turtle ({reason or 'bad syntax'}); repair the line, or is the file cut?"
        raise FileError(source.path, message, line=error.lines + 1) from error
    except Exception as error:
        # The parser meets other faults with errors of many types, failed assertions included.
        raise FileError(source.path, f"is not Turtle ({quoted_text(str(error))}); is the file cut?") from error
    nodes: dict[str, dict[str, list[str]]] = {}
    for subject, predicate, value in graph:
        # Terms are texts whose methods differ from those of str.
        address, _, name = str(predicate).rpartition("#")
        if address in (NIF, ITS):
            about = nodes.setdefault(str(subject).removeprefix(_RELATIVE_BASE), {})
            is_address = isinstance(value, rdflib.URIRef)
            about.setdefault(name, []).append(str(value).removeprefix(_RELATIVE_BASE if is_address else ""))
    if not any("isString" in about for about in nodes.values()):
        raise FileError(source.path, "is Turtle, but not NIF: wanted documents, nodes with nif:isString")
    # A graph has no order.
    return {subject: {name: sorted(values) for name, values in nodes[subject].items()} for subject in sorted(nodes)}


def _bounds(source: Source, subject: str, about: dict[str, list[str]]) -> tuple[int, int]:
    fragment = _FRAGMENT.search(subject)
    spelled = ("", "") if fragment is None else fragment.groups("")
    bounds = [about.get(name, [text])[0] for name, text in zip(("beginIndex", "endIndex"), spelled, strict=True)]
    if not all(re.fullmatch(r"\d{1,18}", bound) for bound in bounds):
        message = f"{subject}: wanted nif:beginIndex and nif:endIndex, whole numbers, found {bounds}"
        raise FileError(source.path, message)
    return int(bounds[0]), int(bounds[1])


def _confidence(source: Source, subject: str, about: dict[str, list[str]]) -> float | None:
    if "taConfidence" not in about:
        return None
    try:
        return float(about["taConfidence"][0])
    except ValueError as error:
        value = quoted_text(about["taConfidence"][0])
        raise FileError(source.path, f"{subject}: itsrdf:taConfidence is {value}, wanted a number") from error
