"""NIF, the annotations of documents that GERBIL reads and writes, in Turtle or N-Triples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from vbterrier.errors import FileError, agreeing, warn
from vbterrier.frames.files.source import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.frames.files.source import Source


NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
ITS = "http://www.w3.org/2005/11/its/rdf#"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
# Entities outside the knowledge base, as GERBIL's converters write them.
_NOT_IN_WIKI = re.compile(r"https?://(?:www\.)?aksw\.org/notInWiki(?:/.*)?", re.DOTALL)
# All triples are held at once.
_MAX_BYTES = 1 << 28
_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+|\#[^\r\n]*)
    |(?P<iri><[^\x00-\x20<>"{}|^`]*>)
    |(?P<long>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3})
    |(?P<short>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
    |(?P<directive>@prefix\b|@base\b|(?i:prefix|base)\b(?!:))
    |(?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    |(?P<typed>\^\^)
    |(?P<blank>_:[\w.-]*[\w-])
    |(?P<name>[\w.-]*:(?:[\w:%-]|\\.|\.(?=[\w:%\\.-]))*)
    |(?P<number>[+-]?(?:\d+\.\d*[eE][+-]?\d+|(?:\d*\.)?\d+(?:[eE][+-]?\d+)?))
    |(?P<word>a\b|true\b|false\b)
    |(?P<mark>[.;,])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_FRAGMENT = re.compile(r"[#?/](?:char=|offset_)(\d*)[,_](\d*)$|#nif=context$|#$")


class _Triples:
    """The triples of a file, whose terms are texts.

    Only statements between ids and literals are read, which is what annotations consist of: nodes in brackets and
    collections are refused.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        text = source.text()
        if len(text) > _MAX_BYTES:
            raise FileError(
                source.path, f"holds {len(text):,} bytes of Turtle, wanted at most {_MAX_BYTES:,}: split it"
            )
        try:
            self._text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileError(source.path, f"is not UTF-8 ({error}); convert the file") from error
        self._prefixes: dict[str, str] = {}
        self._base, self._at = "", 0

    def __iter__(self) -> Iterator[tuple[int, str, str, str]]:
        """Yield position, subject, predicate and object."""
        kind, word = self._next()
        while kind:
            if kind == "directive":
                self._declare(word)
                kind, word = self._next()
                continue
            at, subject = self._at, self._iri(kind, word)
            while True:
                predicate = self._iri(*self._next())
                ends = ","
                while ends == ",":
                    value, ends = self._object()
                    yield at, subject, predicate, value
                # A semicolon may be repeated, or precede the full stop.
                while ends == ";":
                    before = self._at
                    kind, word = self._next()
                    if word not in (";", "."):
                        self._at = before
                        break
                    ends = word
                if ends == ".":
                    break
            kind, word = self._next()

    def n_lines(self, start: int, stop: int) -> int:
        """Return the number of lines that end between two positions."""
        return self._text.count("\n", start, stop)

    def _next(self) -> tuple[str, str]:
        while self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                wanted = "Turtle without nodes in brackets: rewrite the file as N-Triples"
                raise self._error(f"{shown(self._text[self._at : self._at + 100])} is not read; wanted {wanted}")
            self._at = found.end()
            if found.lastgroup != "space":
                return str(found.lastgroup), found.group()
        return "", ""

    def _error(self, message: str) -> FileError:
        return FileError(self._source.path, message, line=self.n_lines(0, self._at) + 1)

    def _declare(self, word: str) -> None:
        is_base = word.lower().endswith("base")
        name = "" if is_base else self._next()[1]
        kind, iri = self._next()
        if kind != "iri" or (not is_base and not name.endswith(":")):
            raise self._error(f"wanted a prefix and an address in <> after {word}")
        address = self._joined(iri)
        if is_base:
            self._base = address
        else:
            self._prefixes[name] = address
        if word.startswith("@") and self._next()[1] != ".":
            raise self._error(f"wanted a full stop after {word}")

    def _joined(self, iri: str) -> str:
        """The address of an IRI in <>; urljoin would drop a fragment that is empty."""
        address = _unescaped(iri[1:-1])
        return address if re.match(r"[A-Za-z][\w+.-]*:", address) else urljoin(self._base, address)

    def _iri(self, kind: str, word: str) -> str:
        if kind == "iri":
            return self._joined(word)
        if kind == "blank":
            return word
        if kind == "name":
            prefix, _, local = word.partition(":")
            if f"{prefix}:" not in self._prefixes:
                raise self._error(f"prefix {prefix!r} is not declared; add its @prefix")
            return self._prefixes[f"{prefix}:"] + re.sub(r"\\(.)", r"\1", local)
        if word == "a":
            return _TYPE
        raise self._error(f"wanted an address, found {shown(word) if word else 'the end of the file: it is cut'}")

    def _object(self) -> tuple[str, str]:
        """The next object, and the mark behind it."""
        kind, word = self._next()
        if kind in ("long", "short"):
            value = _unescaped(word[3:-3] if kind == "long" else word[1:-1])
        elif kind == "number" or word in ("true", "false"):
            value = word
        else:
            value = self._iri(kind, word)
        kind, word = self._next()
        if kind == "typed":
            self._iri(*self._next())
            kind, word = self._next()
        elif kind == "language":
            kind, word = self._next()
        if kind != "mark":
            found = shown(word) if word else "the end of the file: it is cut"
            raise self._error(f"wanted a full stop, a semicolon or a comma, found {found}")
        return value, word


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        mark = found[1]
        return chr(int(mark[1:], 16)) if mark[0] in "uU" and len(mark) > 1 else _ESCAPED.get(mark, mark)

    return _ESCAPE.sub(plain, text) if "\\" in text else text


def nif_mentions(source: Source) -> Iterator[tuple[int, str, int, int, str, list[tuple[str, str, float | None]]]]:
    """Yield line, docno, start, end, text and entities (id, its own space, confidence) of each mention.

    A document is a ``nif:Context`` with ``nif:isString``, whose address without the fragment is its id. A mention has
    ``nif:referenceContext``, ``nif:beginIndex``, ``nif:endIndex``, and ``itsrdf:taIdentRef``: an address of
    ``http://aksw.org/notInWiki/`` is no entity. Mentions without ``taIdentRef`` are left out, and counted in a warning.
    """
    nodes, places = _nodes(source)
    n_bare = n_odd = 0
    for subject, about in nodes.items():
        if "isString" in about or not {"referenceContext", "anchorOf", "taIdentRef"} & set(about):
            continue
        line = places[subject]
        if "taIdentRef" not in about:
            n_bare += "beginIndex" in about
            continue
        context = next(iter(about.get("referenceContext", [])), "")
        start, end = _bounds(source, line, subject, about)
        text = next(iter(nodes.get(context, {}).get("isString", [])), None)
        if text is None:
            raise FileError(source.path, f"{subject}: wanted nif:referenceContext, a node with nif:isString", line=line)
        if not start <= end <= len(text):
            message = f"{subject}: the mention from {start} to {end} is not within its text of {len(text)} characters"
            raise FileError(source.path, f"{message}; count code points from 0, the end behind the last", line=line)
        anchor = next(iter(about.get("anchorOf", [])), text[start:end])
        n_odd += anchor != text[start:end]
        score = _confidence(source, line, subject, about)
        entities = [("" if _NOT_IN_WIKI.fullmatch(entity) else entity, "", score) for entity in about["taIdentRef"]]
        yield line, _FRAGMENT.sub("", context), start, end, anchor, entities
    if n_bare:
        warn(f"{source.path}: {agreeing(n_bare, 'mentions without itsrdf:taIdentRef are left out')}")
    if n_odd:
        warn(
            f"{source.path}: the nif:anchorOf of {agreeing(n_odd, 'mentions')} differs from the "
            "text at their offsets; were the "
            "offsets counted in UTF-16 or bytes?"
        )


def _nodes(source: Source) -> tuple[dict[str, dict[str, list[str]]], dict[str, int]]:
    """The annotations of each node, and their first lines."""
    nodes: dict[str, dict[str, list[str]]] = {}
    places: dict[str, int] = {}
    triples = _Triples(source)
    at, line = 0, 1
    for start, subject, predicate, value in triples:
        if predicate.startswith((NIF, ITS)):
            line += triples.n_lines(at, start)
            at = start
            nodes.setdefault(subject, {}).setdefault(predicate.rpartition("#")[2], []).append(value)
            places.setdefault(subject, line)
    if not any("isString" in about for about in nodes.values()):
        raise FileError(source.path, "is Turtle, but no NIF: wanted documents, nodes with nif:isString")
    return nodes, places


def _bounds(source: Source, line: int, subject: str, about: dict[str, list[str]]) -> tuple[int, int]:
    found = _FRAGMENT.search(subject)
    spelled = ("", "") if found is None else found.groups("")
    bounds = [about.get(name, [own])[0] for name, own in zip(("beginIndex", "endIndex"), spelled, strict=True)]
    if not all(re.fullmatch(r"\d{1,18}", bound) for bound in bounds):
        message = f"{subject}: wanted nif:beginIndex and nif:endIndex, whole numbers, found {bounds}"
        raise FileError(source.path, message, line=line)
    return int(bounds[0]), int(bounds[1])


def _confidence(source: Source, line: int, subject: str, about: dict[str, list[str]]) -> float | None:
    if "taConfidence" not in about:
        return None
    try:
        return float(about["taConfidence"][0])
    except ValueError as error:
        found = shown(about["taConfidence"][0])
        raise FileError(
            source.path, f"{subject}: itsrdf:taConfidence is {found}, wanted a number", line=line
        ) from error
