"""Files of linked mentions: neleval, TAC KBP, HIPE, CoNLL-AIDA, NIF, and the JSON of linkers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from vbterrier.errors import FileError, agreeing, printable, warn
from vbterrier.frames.files.json_tables import is_json, parse_number, parse_object
from vbterrier.frames.files.linker_answers import (
    ANSWERS,
    REL_TYPES,
    UNREAD,
    Answers,
    answers_reader,
    id_member,
    refuse_member,
    refuse_unnamed,
    refuse_unread,
)
from vbterrier.frames.files.mentions import LinkLayout, Mention
from vbterrier.frames.files.nif import nif_mentions
from vbterrier.frames.files.source import (
    COMMENT,
    MisfitError,
    RepeatedMemberError,
    Source,
    parse_json,
    quoted_text,
    split_fields,
)
from vbterrier.frames.id_spaces import NIL, WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE, is_no_entity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_SPAN = re.compile(r"(?P<docno>.+):(?P<start>\d+)-(?P<end>\d+)")
_WHOLE_NUMBER = re.compile(r"\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# The types of entities in the link files of TAC 2014.
_TYPES = frozenset(["PER", "ORG", "GPE", "LOC", "FAC", "WEA", "VEH", "TTL", "UKN"])
# Spellings of NIL that these formats do not have, which would pass for entities.
_LIKE_NIL = re.compile(r"\W*(nil\d*|nme)\W*", re.IGNORECASE)
# The first lines of all layouts, and of some other files, but not of those between blanks.
MAY_BE_LINKED = re.compile(rb"\s*[@<{\[#]|-DOCSTART-|[^\t]*\t[^\t]*\t|(?i:prefix|base)\s")
_TURTLE = re.compile(rb"\s*(@prefix\b|@base\b|(?i:prefix|base)\s+([\w.-]*:\s*)?<|<[^>\s]+>\s+(a|<[^>\s]+>)\s)")
# Members of ELQ, BLINK and other linkers, and documents whose links are lists, as those of REL.
_MARKS = "|".join(re.escape(mark) for mark in [*(each.mark for each in ANSWERS if each.mark != "["), *UNREAD])
_JSON_LINKS = re.compile(
    rf'"(?:pred_triples|tokenized_mention_idxs|context_left)"|nlp2rdf/ontologies/nif-core|{_MARKS}'.encode()
    + rb'|\A\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*[\[\]]|\A\s*\[\s*\['
)
_HEAD_BYTES = 1 << 16
_XML = re.compile(rb"\s*(<\?xml|<rdf:RDF)")
_DOCUMENT = re.compile(r"#\s*(?:[\w-]+:)?document_id\s*=\s*(\S.*)")
# The cells of HIPE for a word without a link.
_NO_LINK = ("_", "-", "")
_ALL_FIELDS = 8


def link_layout(source: Source) -> LinkLayout | None:
    """Return the layout of a file of linked mentions by the first line that is no comment, ``None`` for other files."""
    try:
        _, line = source.first(COMMENT)
    except FileError:
        # Other readers raise the error of the file.
        return None
    if _TURTLE.match(line):
        return NIF
    if _XML.match(line):
        with source.stream() as stream:
            if b"nlp2rdf/ontologies/nif-core" in stream.read(_HEAD_BYTES):
                message = "is NIF in RDF/XML; wanted Turtle or N-Triples: convert it, as with `riot --output=turtle`"
                raise FileError(source.path, message)
        if line.lstrip().startswith(b"<?xml"):
            message = "is XML, which is read as topics and as intents alone; write it as a table or as lines"
            raise FileError(source.path, message)
        return None
    if is_json(line):
        return _json_layout(source, line)
    fields = line.decode(errors="replace").split("\t")
    return _line_layout(fields) or _layout_below(source, fields)


def _layout_below(source: Source, fields: list[str]) -> LinkLayout | None:
    """Return the layout of neleval if mentions without an entity precede the first one with an entity."""
    if not _is_bare(fields):
        return None
    with source.stream() as stream:
        lines = stream.read(_HEAD_BYTES).decode(errors="replace").splitlines()
    below = next((other for line in lines if not _is_bare(other := line.split("\t"))), [])
    return NELEVAL if below and _line_layout(below) is NELEVAL else None


def _is_bare(fields: list[str]) -> bool:
    """Return True for a document and offsets without an entity, and for a comment or a blank line."""
    if not any(fields) or fields[0].startswith("#"):
        return True
    return len(fields) == 3 and all(map(_WHOLE_NUMBER.fullmatch, fields[1:])) and int(fields[1]) <= int(fields[2])  # noqa: PLR2004


def _line_layout(fields: list[str]) -> LinkLayout | None:
    n_fields = len(fields)
    layout = None
    if fields[0].startswith("-DOCSTART-"):
        layout = AIDA
    elif fields[0] == "TOKEN":
        layout = HIPE
    elif n_fields in (_ALL_FIELDS - 1, _ALL_FIELDS) and _SPAN.fullmatch(fields[3]):
        layout = TAC
    elif n_fields in (3, 4) and fields[2] in _TYPES and all(map(_NUMBER.fullmatch, fields[3:])):
        layout = TAC_2014
    elif n_fields > 3 and all(map(_WHOLE_NUMBER.fullmatch, fields[1:3])) and int(fields[1]) <= int(fields[2]):  # noqa: PLR2004
        # In TREC qrels and runs, a number may replace the entity.
        layout = None if _NUMBER.fullmatch(fields[3]) else NELEVAL
    return layout


def _json_layout(source: Source, line: bytes) -> LinkLayout | None:
    with source.stream() as stream:
        head = stream.read(_HEAD_BYTES)
    if not _JSON_LINKS.search(head):
        # Parsing would take as long as reading the whole of a large object of another kind.
        return None
    record = _first_object(source, line)
    if not isinstance(record, dict):
        refuse_unnamed(source, record)
        return None
    answers = answers_reader(record, head)
    layout = _layout_of_members(record) or (_ANSWERS[answers] if answers else None)
    if layout is None:
        refuse_unread(source, record, head)
    elif layout is REL or (answers and answers.mark == "["):
        refuse_member(source, record)
    return layout


def _layout_of_members(record: dict[str, Any]) -> LinkLayout | None:
    """Return the layout of ELQ, BLINK or REL by an object."""
    if "pred_triples" in record or {"label_id", "tokenized_mention_idxs"} <= set(record):
        return ELQ
    if {"context_left", "mention", "label_id"} <= set(record):
        return BLINK
    lists = [links for links in record.values() if isinstance(links, list)]
    first = next((links[0] for links in lists if links), None)
    return REL if len(lists) == len(record) > 0 and isinstance(first, list) and len(first) == len(REL_TYPES) else None


def _first_object(source: Source, line: bytes) -> Any:
    """Return the value of the first line, or of the file if it has one, or the first of its list; ``None`` if cut."""
    texts: tuple[Callable[[], bytes], ...] = (lambda: line, source.text)
    for text in texts:
        try:
            value = parse_json(text())
        except (ValueError, RecursionError):
            continue
        return next(iter(value), None) if isinstance(value, list) else value
    return None


def _has_list(value: Any, name: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(name), list)


class _Line(NamedTuple):
    """The fields of a line between tabs."""

    source: Source
    number: int
    fields: list[str]

    def line_error(self, message: str) -> FileError:
        return FileError(self.source.path, message, line=self.number)

    def misfit(self, requirement: str) -> FileError:
        problem = f"found {len(self.fields)} fields in {quoted_text(chr(9).join(self.fields))}"
        return self.line_error(f"wanted {requirement}; {problem}: is the line cut?")

    def entity(self, place: int, nil: str = NIL) -> str:
        """An id, empty for the layout's own spelling of no entity."""
        entity = self.fields[place]
        if entity != nil and not is_no_entity(entity) and _LIKE_NIL.fullmatch(entity):
            message = f"found {entity!r} as an entity, which resembles {nil!r}, the spelling of no entity; correct it"
            raise self.line_error(message)
        return "" if entity == nil else entity

    def field_number(self, place: int, name: str) -> float | None:
        """The number in a field, ``None`` if the field is missing or empty."""
        text = self.fields[place] if place < len(self.fields) else ""
        if text and not _NUMBER.fullmatch(text):
            raise self.line_error(f"{name} is {quoted_text(text)}, wanted a number; repair the line")
        return float(text) if text else None

    def offset(self, place: int, name: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(self.fields[place]):
            raise self.line_error(
                f"{name} is {quoted_text(self.fields[place])}, wanted a whole number; repair the line"
            )
        return int(self.fields[place])


def _lines(source: Source) -> Iterator[_Line]:
    for number, line in source.lines():
        try:
            fields = split_fields(line, "\t", blanks=False)
        except MisfitError as error:
            raise FileError(source.path, str(error), line=number) from error
        yield _Line(source, number, fields)


def _mention_lines(
    requirement: str, mention_of: Callable[[_Line], Mention | None]
) -> Callable[[Source], Iterator[Mention]]:
    """The reader of a layout with a mention in each line; ``mention_of`` returns ``None`` for lines that do not fit."""

    def line_mentions(source: Source) -> Iterator[Mention]:
        for line in _lines(source):
            if any(line.fields):
                mention = mention_of(line)
                if mention is None:
                    raise line.misfit(requirement)
                yield mention

    return line_mentions


def _neleval(line: _Line) -> Mention | None:
    n = len(line.fields) - 3
    if n < 0 or (n > 2 and n % 3):  # noqa: PLR2004 - nothing, id, or id and score, or triples
        return None
    start, end = line.offset(1, "start"), line.offset(2, "end") + 1
    entities = [(line.entity(at), "", line.field_number(at + 1, "score")) for at in range(3, len(line.fields), 3)]
    return Mention(line.number, line.fields[0], start, end, "", entities)


def _tac(line: _Line) -> Mention | None:
    place = _SPAN.fullmatch(line.fields[3]) if len(line.fields) in (_ALL_FIELDS - 1, _ALL_FIELDS) else None
    if place is None:
        return None
    entities = [(line.entity(4), "", line.field_number(7, "confidence"))]
    return Mention(line.number, place["docno"], int(place["start"]), int(place["end"]) + 1, line.fields[2], entities)


def _tac_2014(line: _Line) -> Mention | None:
    if len(line.fields) not in (3, 4) or line.fields[2] not in _TYPES:
        return None
    return Mention(line.number, line.fields[0], -1, -1, "", [(line.entity(1), "", line.field_number(3, "score"))])


class _Word(NamedTuple):
    line: int
    text: str
    tag: str  # B, I or O
    entities: tuple[tuple[str, str], ...] = ()
    mention: str = ""  # the text of the mention, if the file has it
    is_joined: bool = False  # True if no blank follows


def _of_words(source: Source, words: Iterator[_Word | str | None]) -> Iterator[Mention]:
    """The mentions of words with tags; a text begins the document of this name, and ``None`` ends a sentence."""
    docno, place, first = "", 0, 0
    inside: list[_Word] = []

    def mention() -> Mention:
        head = inside[0]
        text = "".join(word.text + " " * (not word.is_joined) for word in inside).strip()
        entities: list[tuple[str, str, float | None]] = [(entity, space, None) for entity, space in head.entities]
        return Mention(head.line, docno, first, first + len(inside), head.mention or text, entities)

    for word in words:
        continues = isinstance(word, _Word) and word.tag == "I"
        if inside and not continues:
            yield mention()
            inside = []
        if isinstance(word, str):
            docno, place = word, 0
            continue
        if word is None:
            continue
        if not docno:
            raise FileError(source.path, "a word precedes the first document; is the beginning cut?", line=word.line)
        if continues and (not inside or inside[0].entities != word.entities):
            message = (
                f"word {word.text!r} continues a mention that {'has another entity' if inside else 'has no begin'}"
            )
            raise FileError(source.path, f"{message}; are lines missing before it?", line=word.line)
        if word.tag in "BI":
            first = first if inside else place
            inside.append(word)
        place += 1
    if inside:
        yield mention()


def _aida(source: Source) -> Iterator[Mention]:
    return _of_words(source, _aida_words(source))


def _aida_words(source: Source) -> Iterator[_Word | str | None]:
    for line in _lines(source):
        fields = line.fields
        if fields[0].startswith("-DOCSTART-"):
            yield fields[0].removeprefix("-DOCSTART-").strip().removeprefix("(").removesuffix(")")
        elif not any(fields):
            yield None
        elif len(fields) == 1:
            yield _Word(line.number, fields[0], "O")
        elif len(fields) not in (4, 5, 6, 7) or fields[1] not in ("B", "I"):
            raise line.misfit("a word, or word, B or I, mention, entity (--NME--: none), address, page id, Freebase id")
        else:
            name, address, page = (line.entity(3, "--NME--"), *fields[4:6], "", "")[:3]
            entities = [(address or name, WIKIPEDIA_TITLE), (page, WIKIPEDIA_ID)] if name else []
            yield _Word(line.number, fields[0], fields[1], tuple(each for each in entities if each[0]), fields[2])


def _hipe(source: Source) -> Iterator[Mention]:
    return _words_of_hipe(source, is_gold=False)


def _hipe_gold(source: Source) -> Iterator[Mention]:
    return _words_of_hipe(source, is_gold=True)


def _words_of_hipe(source: Source, *, is_gold: bool) -> Iterator[Mention]:
    links = list[set[str]]()
    yield from _of_words(source, _hipe_words(source, links, is_gold=is_gold))
    if several := sum(len(each) > 1 for each in links):
        way = "keeps the link of its first word" if is_gold else "is divided where the link changes"
        message = f"{agreeing(several, 'mentions have words with different links')}; each {way}, as in HIPE-scorer"
        warn(f"{printable(source.path)}: {message}")
    if unlinked := sum(not any(each) for each in links):
        message = agreeing(unlinked, "mentions have no link and are left out")
        warn(f"{printable(source.path)}: {message}; NIL is an entity that the knowledge base lacks")


def _is_hipe_word(row: dict[str, str]) -> bool:
    """Return True for a row whose tag is one, which is no comment."""
    return re.fullmatch(r"O|_|[BIES]-\S+", row.get("NE-COARSE-LIT", "")) is not None


def _hipe_rows(source: Source) -> Iterator[tuple[_Line, dict[str, str]] | str]:
    """The rows of the words of a table, and the name of each document before them."""
    names: list[str] = []
    for line in _lines(source):
        fields = line.fields
        if fields[0].startswith("#") and not _is_hipe_word(dict(zip(names, fields, strict=False))):
            # Tools that write tables pad comments with tabs, or separate their words by tabs.
            if document := _DOCUMENT.match(" ".join(fields)):
                yield document[1].rstrip()
        elif not any(fields):
            continue
        elif not names:
            names = "\t".join(fields).rstrip("\t").split("\t")
            if missing := [name for name in ("TOKEN", "NE-COARSE-LIT", "NEL-LIT") if name not in names]:
                raise line.line_error(f"is a table of HIPE without the column {missing[0]}; found {', '.join(names)}")
        elif len(fields) < len(names) or any(fields[len(names) :]):
            raise line.misfit(f"{len(names)} fields")
        else:
            yield line, dict(zip(names, fields, strict=False))


def _hipe_words(source: Source, links: list[set[str]], *, is_gold: bool) -> Iterator[_Word | str]:
    """The words of a table, with mentions as HIPE-scorer has them.

    A mention ends at another type, and where its link changes; in a gold standard, it has the link of its first word. A
    word with a link outside of mentions is a mention. ``links`` gets the links of each mention of the column of tags.
    """
    kind = link = ""  # of the mention that the next word may continue
    for hipe_row in _hipe_rows(source):
        if isinstance(hipe_row, str):
            kind = ""
            yield hipe_row
            continue
        line, row = hipe_row
        tag, _, type_ = row["NE-COARSE-LIT"].partition("-")
        cell = "" if row["NEL-LIT"] in _NO_LINK else row["NEL-LIT"]
        # Of IOBES, S is a mention of one word, and E ends one.
        continues = tag in ("I", "E") and type_ == kind
        if type_:
            links.extend([] if continues else [set()])
            links[-1].add(cell)
        if is_gold and continues:
            cell = link
        continues &= cell == link
        kind, link = type_, cell
        candidates = list(dict.fromkeys(cell.split("|"))) if cell else []
        entities = [_Line(source, line.number, candidates).entity(place) for place in range(len(candidates))]
        tag = "O" if not cell else "I" if continues else "B"
        joined = "NoSpaceAfter" in row.get("MISC", "").split("|")
        yield _Word(line.number, row["TOKEN"], tag, tuple((each, WIKIDATA) for each in entities), is_joined=joined)


def _nif(source: Source) -> Iterator[Mention]:
    # A graph has no order.
    for mention in sorted(nif_mentions(source)):
        yield Mention(None, *mention)


def _objects(source: Source) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The objects of JSON lines, of a list, or of a file with one object, with their lines."""
    _, first = source.first()
    try:
        is_lines = isinstance(parse_json(first), dict)
    except RepeatedMemberError:
        is_lines = True
    except (ValueError, RecursionError):
        is_lines = False
    if is_lines:
        yield from ((number, parse_object(source, number, line)) for number, line in source.lines() if line.strip())
        return
    # A layout is recognised in such a file once the whole of it is parsed.
    value = parse_json(source.text())
    for record in value if isinstance(value, list) else [value]:
        if not isinstance(record, dict):
            raise FileError(source.path, f"wanted a list of objects, found {quoted_text(repr(record))} in it")
        yield None, record


def _rel(source: Source) -> Iterator[Mention]:
    requirement = "[start, length, mention, title, confidence in the entity, confidence in the mention, type]"
    for line, record in _objects(source):
        for docno, links in record.items():
            for link in links if isinstance(links, list) else [links]:
                fits = isinstance(link, list) and len(link) == len(REL_TYPES)
                # Versions of REL differ in the order of the last two fields.
                last = REL_TYPES[5:]
                kinds = [*REL_TYPES[:5], *(last[::-1] if fits and isinstance(link[5], str) else last)]
                if (
                    not fits
                    or not all(isinstance(*pair) for pair in zip(link, kinds, strict=True))
                    or link[0] < 0
                    or link[1] < 0
                ):
                    message = f"document {docno!r}: wanted {requirement}, found {quoted_text(repr(link))}"
                    raise FileError(source.path, message, line=line)
                start, length, text, title, score = link[:5]
                entity = "" if title == NIL else title
                yield Mention(line, docno, start, start + length, text, [(entity, WIKIPEDIA_TITLE, float(score))])


def _elq(source: Source) -> Iterator[Mention]:
    for line, record in _objects(source):
        docno = id_member(source, line, record, "id")
        triples, texts, scores = (
            _list_member(record, name) for name in ("pred_triples", "pred_tuples_string", "scores")
        )
        if "pred_triples" not in record:
            ids, spans = _list_member(record, "label_id"), _list_member(record, "tokenized_mention_idxs")
            if len(ids) != len(spans):
                raise FileError(source.path, f"{docno!r} has {len(spans)} mentions and {len(ids)} entities", line=line)
            triples = [
                [entity, *span] if isinstance(span, list) else span for entity, span in zip(ids, spans, strict=True)
            ]
        for place, triple in enumerate(triples):
            fields: list[Any] = triple if isinstance(triple, list) and triple else [None]
            entity, span = fields[0], fields[1:]
            is_span = len(span) == 2 and all(type(end) is int and end >= 0 for end in span)  # noqa: PLR2004
            if not is_span or isinstance(entity, bool) or not isinstance(entity, (int, str)):
                message = (
                    f"{docno!r}: wanted an entity with start and end of its words, found {quoted_text(repr(triple))}"
                )
                raise FileError(source.path, message, line=line)
            score = parse_number(scores[place]) if place < len(scores) else None
            pair = texts[place] if place < len(texts) else None
            text = str(pair[-1]) if isinstance(pair, list) and pair else ""
            yield Mention(line, docno, span[0], span[1], text, [(str(entity), WIKIPEDIA_ID, score)])


def _list_member(record: dict[str, Any], name: str) -> list[Any]:
    """A member that is a list; an empty one for anything else, as ELQ writes null for no mentions."""
    value = record.get(name)
    return value if isinstance(value, list) else []


def _blink(source: Source) -> Iterator[Mention]:
    for line, record in _objects(source):
        docno = id_member(source, line, record, "query_id" if "query_id" in record else "id")
        entity, text = record.get("label_id"), record.get("mention")
        if isinstance(entity, bool) or not isinstance(entity, (int, str)) or not isinstance(text, str):
            members = ", ".join(record)
            raise FileError(
                source.path, f"{docno!r}: wanted the members mention and label_id; found {members}", line=line
            )
        # BLINK writes -1 for unknown entities.
        entity_id = "" if str(entity) in ("-1", "") else str(entity)
        yield Mention(line, docno, -1, -1, text, [(entity_id, WIKIPEDIA_ID, None)])


def _answers(answers: Answers) -> Callable[[Source], Iterator[Mention]]:
    """The reader of the saved answers of a linker."""

    def answer_mentions(source: Source) -> Iterator[Mention]:
        for line, docno, mention in answers(source, _objects(source)):
            entities = [(*each, score) for ids, score in mention.candidates for each in ids]
            numbers = [at for at, (ids, _) in enumerate(mention.candidates) for _ in ids]
            yield Mention(line, docno, mention.start, mention.end, mention.text, entities, numbers, mention.part)

    return answer_mentions


_NELEVAL_FIELDS = (
    "docno, start, end (of the last character), then an entity, or entity and score, or triples with a type"
)
_TAC_FIELDS = "run, mention id, mention, docno:start-end, entity, type, kind of mention and confidence"
NELEVAL = LinkLayout("neleval (docno, start, end, entity)", _mention_lines(_NELEVAL_FIELDS, _neleval), has_texts=False)
TAC = LinkLayout("TAC KBP (mentions with docno:start-end)", _mention_lines(_TAC_FIELDS, _tac))
TAC_2014 = LinkLayout(
    "TAC 2014 (query, entity, type)",
    _mention_lines("query, entity, type and score", _tac_2014),
    unit="",
    has_documents=False,
    has_texts=False,
)
HIPE = LinkLayout("HIPE (a word in each line)", _hipe, unit="words", read_gold=_hipe_gold)
AIDA = LinkLayout("CoNLL-AIDA (a word in each line)", _aida, unit="words", has_alternatives=True, has_main=True)
NIF = LinkLayout("NIF (Turtle)", _nif, has_alternatives=True)
REL = LinkLayout("results of REL", _rel)
ELQ = LinkLayout("JSON of ELQ", _elq, unit="words")
BLINK = LinkLayout("JSON of BLINK", _blink, unit="")
_ANSWERS = {
    answers: LinkLayout(
        f"answers of {answers.linker}",
        _answers(answers),
        unit="characters" if answers.has_offsets else "",
        has_texts=answers.has_texts,
        has_alternatives=answers.has_alternatives,
        has_main=answers.has_alternatives,
    )
    for answers in ANSWERS
}
LAYOUTS = (NELEVAL, TAC, TAC_2014, HIPE, AIDA, NIF, REL, ELQ, BLINK, *_ANSWERS.values())
# The linkers whose JSON is read.
JSON_LINKERS = ", ".join(["REL", "ELQ", "BLINK", *dict.fromkeys(answers.linker for answers in ANSWERS)])
