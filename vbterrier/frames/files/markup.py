"""Topic files of TREC in XML and SGML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import pandas as pd

from vbterrier.errors import FileError
from vbterrier.frames.columns import TOPICS

if TYPE_CHECKING:
    from vbterrier.frames.files.source import Source


# Tags of SGML topics; CLEF prefixes names with a language, as <EN-title>.
_TAG = re.compile(r"<(/?)(?:[a-z]{2}-)?(\w+)>", re.IGNORECASE)
_NAMES = {"num": "qid", "title": "query", "desc": "description", "narr": "narrative"}
# Labels at the start of elements, as the files of TREC write them; all other words belong to the text. Titles have one
# in TREC 1 to 3 alone.
_LABELS = {
    "qid": re.compile(r"number\s*:", re.IGNORECASE),
    "query": re.compile(r"Topic\s*:"),
    "description": re.compile(r"Description\s*:"),
    "narrative": re.compile(r"Narrative\s*:"),
}


def topics_of_markup(source: Source) -> pd.DataFrame:
    """Topics of a file of TREC: SGML, as ``<top> <num> Number: 301 <title> ...``, or XML, as ``<topic number="1">``."""
    content = source.text()
    if b"<top>" in content[: 1 << 16].lower():
        return _complete(source, _sgml_topics(source, content))
    parsed = _parse(source, content)
    if not parsed.topics:
        raise FileError(source.path, 'has no topic; wanted <topic number="1"> or <top>')
    rows = [dict(zip(TOPICS.standard_names(list(topic)), topic.values(), strict=True)) for topic in parsed.topics]
    return _complete(source, rows)


def _sgml_topics(source: Source, content: bytes) -> list[dict[str, str]]:
    """The elements of topics; each begins on a separate line, or behind one that is closed, and may be left open."""
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = "is not UTF-8; convert the file, for example with `iconv -f latin1 -t utf-8`"
        raise FileError(source.path, message) from error
    rows, column, start, behind, is_closed = list[dict[str, str]](), "", 0, 0, False
    for tag in _TAG.finditer(text):
        between = text[behind : tag.start()]
        line = between.rpartition("\n")[2]
        begins = not line.strip() and (len(line) < len(between) or is_closed)
        name = _NAMES.get(tag[2].casefold(), tag[2].casefold())
        is_end = bool(tag[1]) and name in (column, "top")
        behind = tag.end()
        # Other tags belong to the text.
        if not (is_end or name == "top" or (begins and not tag[1])):
            is_closed = False
            continue
        if rows and column:
            rows[-1].setdefault(column, _text_without_label(column, text[start : tag.start()]))
        if name == "top" and not is_end:
            rows.append({})
        column = "" if is_end or name == "top" else name
        start, is_closed = behind, is_end or name == "top"
    if rows and column:
        rows[-1].setdefault(column, _text_without_label(column, text[start:]))
    return rows


def _text_without_label(column: str, text: str) -> str:
    """The text of an element without its label."""
    text = text.strip()
    label = _LABELS[column].match(text) if column in _LABELS else None
    return " ".join(text[label.end() if label else 0 :].split())


def _complete(source: Source, rows: list[dict[str, str]]) -> pd.DataFrame:
    """The frame of topics, each of which must have a number and a query."""
    for place, row in enumerate(rows, 1):
        for name in TOPICS.named:
            if not row.get(name):
                members = ", ".join(row) or "nothing"
                raise FileError(source.path, f"topic {place} of {len(rows)} has no {name}; it has {members}: add one")
    frame = pd.DataFrame(rows).fillna("")
    return frame[[*TOPICS.named, *(name for name in frame.columns if name not in TOPICS.named)]]


class _Parser:
    """Handlers of an XML parser that collect the topics of a TREC file, and their subtopics."""

    def __init__(self, source: Source) -> None:
        self._source, self._text, self._path = source, list[str](), list[str]()
        self.topics: list[dict[str, str]] = []
        self.rows: list[list[str]] = []
        self.parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = self._text.append, self._refuse

    def _fail(self, message: str) -> None:
        raise FileError(self._source.path, message, line=self.parser.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        is_part = tag in ("topic", "subtopic") or self._path[-1:] == ["topic"]
        self._path.append(tag)
        if not is_part:
            return
        self._text.clear()
        number = (attributes.get("number") or attributes.get("id") or "").strip()
        if tag == "topic":
            self.topics.append({"qid": number} if number else {})
        elif tag == "subtopic":
            inside = "topic" in self._path
            if not inside:
                self._fail('a subtopic outside a topic; wanted <topic number="1"> around it')
            for name, identifier in (("topic", self.topics[-1].get("qid")), ("subtopic", number)):
                if not identifier:
                    self._fail(f'<{name}> has no number; wanted <{name} number="1">')
            self.rows.append([self.topics[-1]["qid"], number, "", attributes.get("type", "")])

    def _end(self, tag: str) -> None:
        self._path.pop()
        text = " ".join("".join(self._text).split())
        if tag == "subtopic":
            self.rows[-1][2] = text
        elif tag == "topic":
            if text and len(self.topics[-1]) == 1:
                # A topic without elements is its query.
                self.topics[-1]["query"] = text
        elif self._path[-1:] == ["topic"]:
            self.topics[-1].setdefault(tag, text)
        else:
            return
        self._text.clear()

    def _refuse(self, *_: Any) -> None:
        self._fail("has a document type, which can define entities of any size; remove the line <!DOCTYPE ...>")


def _parse(source: Source, content: bytes) -> _Parser:
    parsed = _Parser(source)
    try:
        # In pieces, expat would read a long tag again from its start with each piece.
        parsed.parser.Parse(content, True)
    except expat.ExpatError as error:
        message = f"is not XML ({expat.ErrorString(error.code)}); repair the line"
        raise FileError(source.path, message, line=error.lineno) from error
    return parsed


def web_topics(source: Source) -> pd.DataFrame:
    """Subtopics of a TREC Web topic file: qid, entity_id, name, type."""
    parsed = _parse(source, source.text())
    if not parsed.rows:
        raise FileError(source.path, 'has no subtopic; wanted <subtopic number="1"> inside <topic number="1">')
    return pd.DataFrame(parsed.rows, columns=["qid", "entity_id", "name", "type"])


def equal_intents(source: Source) -> pd.DataFrame:
    """Subtopics of a TREC Web topic file as intents of equal probabilities."""
    frame = web_topics(source)
    frame.insert(2, "prob", 1 / frame.groupby("qid")["qid"].transform("size"))
    return frame
