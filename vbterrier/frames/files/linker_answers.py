"""Saved answers of linkers in JSON: the mentions of each document, with their candidates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vbterrier.errors import FileError, agreeing, printable, warn
from vbterrier.frames.files.json_tables import parse_number
from vbterrier.frames.files.source import quoted_text
from vbterrier.frames.id_spaces import DBPEDIA, WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vbterrier.frames.files.source import Source

# Members that name the document of an answer.
DOCNOS = ("docno", "doc_id", "docid", "docId", "pid", "qid", "doc", "id")


_TRIPLE = [int, int, str]


class AnswerMention(NamedTuple):
    """A mention in an answer, with its candidates, best first: the ids of each in several id spaces, and its score."""

    start: int  # half-open; -1 without offsets
    end: int
    text: str
    candidates: list[tuple[list[tuple[str, str]], Any]]
    part: str = ""  # of the document, with its own offsets


Items = list[Any] | None


@dataclass(frozen=True)
class Answers:
    """The reader of answers of a linker: objects with a list of items, each with the id of its document.

    The id is a member, or the object is a member of an object of documents. ``items`` returns the items of an answer,
    ``None`` for other objects; ``mentions_of`` returns the mentions of an item, or raises KeyError, TypeError or
    ValueError for a fault. Mentions without a candidate are left out and counted. Items of the same span are candidates
    of one mention if ``groups``.
    """

    linker: str
    mark: str  # a member that no other layout has
    items: Callable[[Any], Items]
    mentions_of: Callable[[Any], Iterable[AnswerMention]]
    groups: bool = False
    has_offsets: bool = True
    has_texts: bool = True
    has_alternatives: bool = False  # True if ids are in several spaces, the first of which is read

    def __call__(
        self, source: Source, records: Iterable[tuple[int | None, dict[str, Any]]]
    ) -> Iterator[tuple[int | None, str, AnswerMention]]:
        """Yield the line, the document and each mention with a candidate."""
        n_unlinked = 0
        for line, record in records:
            for docno, items in self._by_document(source, line, record):
                for mention in self._mentions(source, line, docno, items):
                    n_unlinked += not mention.candidates
                    if mention.candidates:
                        yield line, docno, mention
        if n_unlinked:
            warn(f"{printable(source.path)}: {agreeing(n_unlinked, 'mentions are linked to nothing and left out')}")

    def _mentions(self, source: Source, line: int | None, docno: str, items: list[Any]) -> Iterable[AnswerMention]:
        mentions_by_key: dict[tuple[int, int, str], AnswerMention] = {}
        for number, item in enumerate(items):
            try:
                mentions = list(self.mentions_of(item))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                message = f"document {docno!r}: wanted an item of {self.linker}, found {quoted_text(repr(item))}"
                raise FileError(source.path, f"{message} ({error!r})", line=line) from error
            for place, mention in enumerate(self._scored_mention(source, line, docno, each) for each in mentions):
                key = (*mention[:2], mention.text) if self.groups else (number, place, "")
                first = mentions_by_key.get(key)
                candidates = mention.candidates if first is None else [*first.candidates, *mention.candidates]
                mentions_by_key[key] = mention._replace(candidates=candidates)
        return mentions_by_key.values()

    @staticmethod
    def _scored_mention(source: Source, line: int | None, docno: str, mention: AnswerMention) -> AnswerMention:
        made = []
        for ids, score in mention.candidates:
            number = None if score is None else parse_number(score)
            if score is not None and number is None:
                message = f"document {docno!r}: the score of a mention is {quoted_text(repr(score))}, wanted a number"
                raise FileError(source.path, message, line=line)
            made.append((ids, number))
        return mention._replace(candidates=made)

    def _by_document(self, source: Source, line: int | None, record: Any) -> Iterator[tuple[str, list[Any]]]:
        items = self.items(record)
        if items is not None:
            key = next((each for each in DOCNOS if isinstance(record, dict) and each in record), None)
            if key is None:
                message = f"is an answer of {self.linker} that does not name its document"
                remedy = "add a member 'docno' to each answer, or save one object of answers by docno"
                raise FileError(source.path, f"{message}; {remedy}", line=line)
            yield id_member(source, line, record, key), items
            return
        for docno, answer in record.items():
            items = self.items(answer)
            if items is None:
                message = f"{docno!r}: wanted an answer of {self.linker}"
                raise FileError(source.path, f"{message}, found {quoted_text(repr(answer))}", line=line)
            yield docno, items


def id_member(source: Source, line: int | None, record: dict[str, Any], name: str) -> str:
    """Return the member of a record that is an id."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        message = f"member {name!r} is {quoted_text(repr(value))}, wanted an id; found {', '.join(record)}"
        raise FileError(source.path, message, line=line)
    return str(value)


def _lists(*names: str) -> Callable[[Any], Items]:
    """The function that returns the items of the first of some members of an answer, which are lists."""

    def items(answer: Any) -> Items:
        members = answer if isinstance(answer, dict) else {}
        return next((members[name] for name in names if isinstance(members.get(name), list)), None)

    return items


def _lists_or_none(name: str, other: str) -> Callable[[Any], Items]:
    """The function for answers that have ``other``, but not the list if nothing was found, or its only item alone."""

    def items(answer: Any) -> Items:
        if not isinstance(answer, dict) or not (name in answer or other in answer):
            return None
        value = answer.get(name) or []
        return value if isinstance(value, list) else [value]

    return items


def _whole(value: Any) -> Any:
    """Return text of digits as a number, and other values as they are."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _offsets(start: Any, end: Any) -> tuple[int, int]:
    """Return offsets, which may be text of digits."""
    numbers = [
        int(each) if isinstance(each, str) and each.isascii() and each.isdigit() else each for each in (start, end)
    ]
    first, last = numbers
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        raise ValueError(f"offsets {start!r} to {end!r}")
    return first, last


def _one(start: Any, end: Any, text: Any, ids: list[tuple[str, str]], score: Any) -> list[AnswerMention]:
    return [AnswerMention(*_offsets(start, end), str(text), [(ids, score)] if ids else [])]


def _in_wikipedia(title: Any, page: Any) -> list[tuple[str, str]]:
    """Return a page of Wikipedia by its title and its number; none without a title, or with a number of 0 or less."""
    number = _whole(page)
    if title is None or type(number) is not int or number <= 0:
        return []
    return [(str(title), WIKIPEDIA_TITLE), (str(number), WIKIPEDIA_ID)]


def _annotation(item: Any) -> Iterable[AnswerMention]:
    # Dandelion has the members of TagMe, but confidence for rho.
    score = item["rho"] if "rho" in item or "confidence" not in item else item["confidence"]
    yield from _one(item["start"], item["end"], item["spot"], _in_wikipedia(item.get("title"), item["id"]), score)


def _wat_entity(item: Any) -> Iterable[AnswerMention]:
    ids = _in_wikipedia(item["wikipedia_title"], item["wikipedia_id"])
    yield from _one(item["start"], item["end"], "", ids, item["rho"])


def _refined_span(item: Any) -> Iterable[AnswerMention]:
    entity = item["predicted_entity"] or {}
    ids = ((entity.get("wikidata_entity_id"), WIKIDATA), (entity.get("wikipedia_entity_title"), WIKIPEDIA_TITLE))
    entities = [(str(each), space) for each, space in ids if each]
    score = item.get("entity_linking_model_confidence_score")
    yield from _one(item["start"], item["start"] + item["ln"], item["text"], entities or [("", "")], score)


def _spacy_entity(item: Any) -> Iterable[AnswerMention]:
    if "kb_id" not in item:
        raise ValueError("Doc.to_json() of spaCy leaves links out: add kb_id=ent.kb_id_ to each of ents")
    yield from _one(item["start"], item["end"], "", [(str(item["kb_id"]), "")] if item["kb_id"] else [], None)


def _resource(item: Any) -> Iterable[AnswerMention]:
    start, text = int(item["@offset"]), str(item["@surfaceForm"])
    yield from _one(start, start + len(text), text, [(str(item["@URI"]), DBPEDIA)], item["@similarityScore"])


def _forms(answer: Any) -> Items:
    """The surface forms of an answer of Spotlight's candidates."""
    inner = answer.get("annotation") if isinstance(answer, dict) else None
    return _lists_or_none("surfaceForm", "@text")(inner)


def _form(item: Any) -> Iterable[AnswerMention]:
    start, text = int(item["@offset"]), str(item["@name"])
    resources = item.get("resource") or []
    rows = resources if isinstance(resources, list) else [resources]
    candidates = [([(str(each["@uri"]), DBPEDIA)], each["@finalScore"]) for each in rows]
    yield AnswerMention(*_offsets(start, start + len(text)), text, candidates)


def _fishing_entity(item: Any) -> Iterable[AnswerMention]:
    page, code = str(item.get("wikipediaExternalRef") or ""), str(item.get("wikidataId") or "")
    # An entity without a page has one place in the space of pages: none.
    ids = [(page, WIKIPEDIA_ID), *([(code, WIKIDATA)] if code else [])] if page or code else []
    score = next((item[name] for name in ("confidence_score", "nerd_score") if name in item), None)
    yield from _one(item["offsetStart"], item["offsetEnd"], item["rawName"], ids, score)


_PARTS = ("passage", "query", "body", "title", "headings")


def _mmead_parts(answer: Any) -> Items:
    members = answer if isinstance(answer, dict) else {}
    parts = [name for name in _PARTS if isinstance(members.get(name), list)]
    return [(name, item) for name in parts for item in members[name]] if parts else None


def _mmead_link(item: Any) -> Iterable[AnswerMention]:
    part, link = item
    # Titles and headings have offsets of their own.
    prefix = f"{part}." if part in ("title", "headings") else ""
    ids = _in_wikipedia(link["entity"], link["entity_id"])
    yield AnswerMention(*_offsets(link["start_pos"], link["end_pos"]), "", [(ids, None)] if ids else [], prefix)


def _interpretation(item: Any) -> Iterable[AnswerMention]:
    yield AnswerMention(-1, -1, str(item["mention"]), [([(str(item["entity"]), DBPEDIA)], item["score"])])


def _fragments(answer: Any) -> Items:
    """The list that is an answer of Babelfy."""
    fits = isinstance(answer, list) and all(isinstance(each, dict) and "charFragment" in each for each in answer)
    return answer if fits else _lists("annotations")(answer)


def _fragment(item: Any) -> Iterable[AnswerMention]:
    place, address = item["charFragment"], item["DBpediaURL"]
    # The end is that of the last character. Senses of words have no entity of DBpedia.
    ids = [(str(address), DBPEDIA)] if address else []
    yield from _one(place["start"], place["end"] + 1, "", ids, item["score"])


def _triples(answer: Any) -> Items:
    """The list of spans with entities that is an answer of GENRE and EntQA, (start, length, title).

    Rankings are lists of three, too, with the document first.
    """
    rows = answer if isinstance(answer, list) else [None]
    return rows if all(isinstance(each, list) and list(map(type, each)) == _TRIPLE for each in rows) else None


def _triple(item: Any) -> Iterable[AnswerMention]:
    start, length, title = item
    yield from _one(start, start + length, "", [(str(title), WIKIPEDIA_TITLE)], None)


def _link(item: Any) -> Iterable[AnswerMention]:
    start, end, entity, *more = item
    text = more[0] if more and isinstance(more[0], str) else ""
    yield from _one(start, end, text, [(str(entity), "")], None)


def _elevant_mention(item: Any) -> Iterable[AnswerMention]:
    start, end = item["span"] if "span" in item else (item["start_char"], item["end_char"])
    entity = next(item[name] for name in ("entity_id", "entity_reference", "id") if name in item)
    yield from _one(start, end, "", [("" if entity is None else str(entity), "")], None)


def _elevant_items(answer: Any) -> Items:
    rows = _lists("entity_mentions", "predictions", "labels")(answer)
    marks = ("span", "start_char")
    fits = all(isinstance(each, dict) and any(mark in each for mark in marks) for each in rows or ())
    return rows if fits else None


def _tapioca(item: Any) -> Iterable[AnswerMention]:
    tags = item["tags"]
    best = item["best_qid"]
    candidates = [([(str(each["id"]), WIKIDATA)], each["score"]) for each in tags if best is not None]
    text = item.get("phrase") or ""
    yield AnswerMention(*_offsets(item["start"], item["end"]), str(text), candidates)


def _ambiverse(item: Any) -> Iterable[AnswerMention]:
    entity = item["entity"]
    ids = [(str(entity["id"]), WIKIDATA)] if entity.get("id") else []
    start = item["charOffset"]
    yield from _one(start, start + item["charLength"], item["text"], ids, entity.get("confidence"))


def _azure(item: Any) -> Iterable[AnswerMention]:
    for place in item["matches"]:
        start, score = place["offset"], place.get("confidenceScore")
        yield from _one(start, start + place["length"], place["text"], [(str(item["url"]), WIKIPEDIA_TITLE)], score)


def _google_items(answer: Any) -> Items:
    rows = _lists("entities")(answer)
    return rows if rows is not None and all(_has(each, "metadata", "mentions") for each in rows) else None


def _google(item: Any) -> Iterable[AnswerMention]:
    address = item["metadata"].get("wikipedia_url")
    for place in item["mentions"]:
        text, start = place["text"]["content"], place["text"]["beginOffset"]
        yield from _one(start, start + len(text), text, [(str(address), WIKIPEDIA_TITLE)] if address else [], None)


def _has(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and set(names) <= set(value)


def _extend(item: Any) -> Iterable[AnswerMention]:
    ids = [(str(item["entity"]), WIKIPEDIA_TITLE)]
    yield from _one(item["char_start"], item["char_end"], item["mention"], ids, None)


def _columns(*names: str, needs: tuple[str, ...] = ()) -> Callable[[Any], Items]:
    """The function that returns the rows of an answer with lists of equal length, ``None`` for other answers.

    A row is a dictionary of the first members that the answer has, ``needs`` among them.
    """

    def items(answer: Any) -> Items:
        if not _has(answer, *needs):
            return None
        columns = {name: answer[name] for name in (*needs, *names) if name in answer}
        if not all(isinstance(column, list) for column in columns.values()):
            return None
        sizes = [len(column) for column in columns.values()]
        if len(set(sizes)) > 1:
            # A row that is none is refused.
            return [f"{', '.join(columns)} of {', '.join(map(str, sizes))} elements"]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    return items


def _bela(item: Any) -> Iterable[AnswerMention]:
    score = next((item[name] for name in ("el_scores", "scores") if name in item), None)
    start = item["offsets"]
    yield from _one(start, start + item["lengths"], "", [(str(item["entities"]), WIKIDATA)], score)


# Spellings of Bootleg for no candidate.
_NO_CANDIDATE = ("NC", "-1")


def _bootleg_items(answer: Any) -> Items:
    rows = _columns("aliases", "probs", "cands", "cand_probs", needs=("char_spans", "qids"))(answer)
    # Offsets are those of the sentence.
    part = f"{answer['sent_idx_unq']}." if rows and "sent_idx_unq" in answer else ""
    return None if rows is None else [(part, each) for each in rows]


def _bootleg(row: Any) -> Iterable[AnswerMention]:
    part, item = row
    start, end = item["char_spans"]
    best = (item["qids"], item.get("probs"))
    others = zip(item.get("cands", []), item.get("cand_probs", []), strict=False)
    ranked = [best, *sorted((each for each in others if each[0] != best[0]), key=lambda each: -each[1])]
    candidates = [
        ([("", "")] if code in _NO_CANDIDATE else [(str(code), WIKIDATA)], score)
        for code, score in ranked
        if code not in _NO_CANDIDATE or code == best[0]
    ]
    yield AnswerMention(*_offsets(start, end), str(item.get("aliases", "")), candidates, part)


_ZELDA = ("index", "wikipedia_titles", "wikipedia_ids")


def _zelda(item: Any) -> Iterable[AnswerMention]:
    start, end = item["index"]
    yield from _one(start, end, "", _in_wikipedia(item["wikipedia_titles"], item["wikipedia_ids"]), None)


_SPAN = ("start", "end", "label", "text")
# Types of entities, which other tools write where ReLiK writes titles.
_NER_TYPES = frozenset(
    ["PER", "PERSON", "LOC", "LOCATION", "ORG", "ORGANIZATION", "GPE", "FAC", "NORP", "PRODUCT", "EVENT", "LANGUAGE"]
) | {"WORK_OF_ART", "LAW", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "MISC"}


def _relik_items(answer: Any) -> Items:
    """The spans of ReLiK with the text, as dictionaries or as lists."""
    spans = answer.get("spans") if _has(answer, "text", "spans") else None
    if not isinstance(spans, list):
        return None
    rows = [dict(zip(_SPAN, each, strict=False)) if isinstance(each, list) else each for each in spans]
    fits = all(isinstance(each, dict) and set(each) == set(_SPAN) for each in rows)
    is_typed = bool(rows) and all(str(each.get("label")) in _NER_TYPES for each in rows if isinstance(each, dict))
    return [(answer["text"], each) for each in rows] if fits and not is_typed else None


def _relik_span(item: Any) -> Iterable[AnswerMention]:
    text, span = item
    start, end = _offsets(span["start"], span["end"])
    if text[start:end] != span["text"]:
        raise ValueError("the text at the offsets is another one; use annotation_type='char', not words")
    yield from _one(start, end, span["text"], [(str(span["label"]), WIKIPEDIA_TITLE)], None)


def _turns(answer: Any) -> Items:
    """The links of a dialogue, or of one turn, with the number of the turn; those of the system have none."""
    turns = answer if isinstance(answer, list) else [answer]
    if not turns or not all(_has(each, "speaker", "utterance") for each in turns):
        return None
    numbers = [""] if isinstance(answer, dict) else [f"{at}." for at in range(len(turns))]
    return [
        (number, link) for number, turn in zip(numbers, turns, strict=True) for link in turn.get("annotations") or []
    ]


def _turn_link(item: Any) -> Iterable[AnswerMention]:
    part, (start, length, text, title) = item
    yield AnswerMention(*_offsets(start, start + length), str(text), [([(str(title), WIKIPEDIA_TITLE)], None)], part)


def _wikifier(item: Any) -> Iterable[AnswerMention]:
    # The ends are those of last characters.
    spaces = {"url": WIKIPEDIA_TITLE, "wikiDataItemId": WIKIDATA, "dbPediaIri": DBPEDIA}
    ids = [(str(item[name]), space) for name, space in spaces.items() if item.get(name)]
    for place in item["support"]:
        yield from _one(place["chFrom"], place["chTo"] + 1, "", ids, item["pageRank"])


def _sentences(answer: Any) -> Items:
    rows = _lists("sentences")(answer)
    if rows is None or not all(_has(each, "entitymentions") for each in rows):
        return None
    return [mention for each in rows for mention in each["entitymentions"]]


def _entity_mention(item: Any) -> Iterable[AnswerMention]:
    title = item.get("entitylink", "O")
    ids = [] if title == "O" else [(str(title), WIKIPEDIA_TITLE)]
    yield from _one(item["characterOffsetBegin"], item["characterOffsetEnd"], item["text"], ids, None)


def _rosette(item: Any) -> Iterable[AnswerMention]:
    code = str(item["entityId"])
    # T1, T2, ... are clusters of the document without an entity.
    entity = "" if re.fullmatch(r"T\d+", code) else code
    score = next((item[name] for name in ("linkingConfidence", "confidence") if name in item), None)
    for place in item["mentionOffsets"]:
        yield from _one(place["startOffset"], place["endOffset"], "", [(entity, WIKIDATA)], score)


def _watson(item: Any) -> Iterable[AnswerMention]:
    address = item.get("disambiguation", {}).get("dbpedia_resource")
    for place in item["mentions"]:
        start, end = place["location"]
        yield from _one(start, end, place["text"], [(str(address), DBPEDIA)] if address else [], None)


def _resolved_items(answer: Any) -> Items:
    rows = _lists("entities")(answer)
    return rows if rows is not None and all(_has(each, "entity_title") for each in rows) else None


def _resolved_mention(item: Any) -> Iterable[AnswerMention]:
    entity, rows = item["entity_id"], item.get("candidates") or []
    scores = {each["entity_id"]: each.get("score") for each in rows if isinstance(each, dict)}
    ids = [("" if entity is None else str(entity), "")]
    yield from _one(item["start"], item["end"], item["text"], ids, scores.get(entity))


def _beam_items(answer: Any) -> Items:
    """The beams of mGENRE for one mention: titles with languages, or codes with the titles that they unite."""
    rows: list[Any] = answer if isinstance(answer, list) and answer else [None]
    fits = all(_has(each, "id", "texts") or (_has(each, "text") and _EDITION in str(each["text"])) for each in rows)
    return [rows] if fits else None


_EDITION = " >> "


def _beams(item: Any) -> Iterable[AnswerMention]:
    candidates = []
    for beam in item:
        title, _, language = str(beam.get("text", "")).rpartition(_EDITION)
        address = f"https://{language}.wikipedia.org/wiki/{title.replace(' ', '_')}"
        ids = [(str(beam["id"]), WIKIDATA)] if "id" in beam else [(address, WIKIPEDIA_TITLE)]
        candidates.append((ids, beam["score"]))
    yield AnswerMention(-1, -1, "", candidates)


def _kilt_items(answer: Any) -> Items:
    """The outputs for one mention of KILT's entity linking, with its text; other tasks of KILT are not read."""
    rows = _lists("output")(answer)
    has_mention = rows is not None and _has(answer.get("meta"), "mention")
    if rows is None or not (has_mention or "[START_ENT]" in str(answer.get("input"))):
        return None
    mention = answer["meta"]["mention"] if has_mention else ""
    # ExtEnD adds the place of the answer among the candidates.
    return [(mention, [each for each in rows if isinstance(each, dict)])]


def _kilt(item: Any) -> Iterable[AnswerMention]:
    mention, outputs = item
    candidates = []
    for output in outputs:
        page: dict[str, Any] = next(iter(output.get("provenance") or []), {})
        title = page.get("title") or output["answer"]
        ids = [(str(title), WIKIPEDIA_TITLE)]
        if page.get("wikipedia_id"):
            ids.append((str(page["wikipedia_id"]), WIKIPEDIA_ID))
        candidates.append((ids if title else [("", "")], None))
    yield AnswerMention(-1, -1, str(mention), candidates)


def _link_lists(answer: Any) -> Items:
    rows = _lists("links")(answer)
    return rows if rows is not None and all(isinstance(each, list) for each in rows) else None


ANSWERS = (
    Answers("TagMe or WAT", '"spot"', _lists("annotations"), _annotation, has_alternatives=True),
    Answers("WAT", '"wikipedia_title"', _lists("entities"), _wat_entity, has_texts=False, has_alternatives=True),
    Answers("ReFinED", '"predicted_entity"', _lists("spans"), _refined_span, has_alternatives=True),
    Answers("spaCy", '"ents"', _lists("ents"), _spacy_entity, has_texts=False),
    Answers("Spotlight's candidates", '"@name"', _forms, _form),
    Answers("Spotlight", '"@text"', _lists_or_none("Resources", "@text"), _resource),
    Answers(
        "entity-fishing",
        '"rawName"',
        _lists_or_none("entities", "runtime"),
        _fishing_entity,
        groups=True,
        has_alternatives=True,
    ),
    Answers("MMEAD", '"start_pos"', _mmead_parts, _mmead_link, has_texts=False, has_alternatives=True),
    Answers("Nordlys", '"processed_query"', _lists("results"), _interpretation, groups=True, has_offsets=False),
    Answers("Babelfy", '"charFragment"', _fragments, _fragment, has_texts=False),
    Answers("ELEVANT", '"span"', _elevant_items, _elevant_mention, has_texts=False),
    Answers("ELEVANT", '"entity_reference"', _elevant_items, _elevant_mention, has_texts=False),
    Answers("OpenTapioca", '"best_qid"', _lists("annotations"), _tapioca),
    Answers("Ambiverse", '"charOffset"', _lists("matches"), _ambiverse),
    Answers("Azure", '"dataSource"', _lists("entities"), _azure),
    Answers("Google", '"beginOffset"', _google_items, _google),
    Answers("ExtEnD", '"disambiguated_entities"', _lists("disambiguated_entities"), _extend),
    Answers(
        "BELA",
        '"lengths"',
        _columns("el_scores", "scores", needs=("offsets", "lengths", "entities")),
        _bela,
        has_texts=False,
    ),
    Answers("Bootleg", '"char_spans"', _bootleg_items, _bootleg),
    Answers("ZELDA", '"wikipedia_titles"', _columns(needs=_ZELDA), _zelda, has_texts=False, has_alternatives=True),
    Answers("CREL", '"utterance"', _turns, _turn_link),
    Answers(
        "Wikifier", '"pageRank"', _lists("annotations"), _wikifier, groups=True, has_texts=False, has_alternatives=True
    ),
    Answers("CoreNLP", '"entitymentions"', _sentences, _entity_mention),
    Answers("Rosette", '"mentionOffsets"', _lists("entities"), _rosette, has_texts=False),
    Answers("Watson", '"disambiguation"', _lists("entities"), _watson),
    Answers("LELA", '"entity_title"', _resolved_items, _resolved_mention),
    Answers("mGENRE", '"texts"', _beam_items, _beams, has_offsets=False, has_texts=False),
    Answers("mGENRE", _EDITION, _beam_items, _beams, has_offsets=False, has_texts=False),
    Answers("KILT", '"output"', _kilt_items, _kilt, has_offsets=False, has_alternatives=True),
    Answers("ReLiK", '"spans"', _relik_items, _relik_span),
    Answers("lists of links", '"links"', _link_lists, _link),
    Answers("GENRE", "[", _triples, _triple, has_texts=False),
)
# Members of answers that are not read, and the reason.
UNREAD = {
    '"bestEntity"': "AIDA, whose ids are those of YAGO",
    '"wikiLink"': "TextRazor, whose members are nested",
    '"entities_wikidata"': "Falcon, which has no offsets",
    '"sent_idx_unq"': "Bootleg without char_spans, whose spans are of words",
    '"cand_probs"': "Bootleg's annotator, whose lists are by sentence",
    '"predicts"': "EntQA's reader, whose spans are of windows that overlap: write what get_results_doc returns",
    '"el_tool_annotations"': "ConEL, which has no offsets",
    '"diffbotUri"': "Diffbot, whose ids are of its own graph",
    '"wikifierEntities"': "the Illinois Wikifier",
    '"linkProbability"': "Dexter",
    '"entity_list"': "MeaningCloud",
    '"tokenFragment"': "Babelfy that does not name its document",
}
_TABLE = (
    "write its links as lines of docno, start, end (of the last character) and entity between tabs, or as a table with "
    "the columns docno and entity_id (qid and entity_id for answers)"
)
# Types of the members of a link of REL: start, length, mention, title, two confidences and the type of the entity.
REL_TYPES: tuple[Any, ...] = (int, int, str, str, (int, float), (int, float), str)


def answers_reader(record: dict[str, Any], head: bytes) -> Answers | None:
    """Return the reader of an object of answers, in a file that begins with ``head``; ``None`` for other objects."""
    values = (record, *record.values())
    marked = [answers for answers in ANSWERS if answers.mark.encode() in head]
    if not all(isinstance(each, list) for each in record.values()):
        marked = [answers for answers in marked if answers.mark != "["]
    of_items = (answers for answers in marked if any(answers.items(each) for each in values))
    # The lists of the first documents may be empty.
    of_empty = (answers for answers in marked if any(answers.items(each) is not None for each in values))
    return next(of_items, None) or next((answers for answers in of_empty if answers.mark != "["), None)


def refuse_unread(source: Source, record: dict[str, Any], head: bytes) -> None:
    """Refuse answers of linkers that are not read, by name; ``record`` is the first object."""
    if "entity_id" in record:
        # A table, with columns of any name.
        return
    if _has(record, "id", "texts", "scores"):
        raise FileError(source.path, f"is an answer of mGENRE that does not name its mention; {_TABLE}")
    if b"nlp2rdf/ontologies/nif-core" in head:
        raise FileError(source.path, "is NIF in JSON-LD; wanted Turtle or N-Triples: convert it, as with `riot`")
    for mark, what in UNREAD.items():
        if mark.encode() in head:
            raise FileError(source.path, f"is an answer of {what}; {_TABLE}")


def refuse_unnamed(source: Source, first: Any) -> None:
    """Refuse lists of links of REL, GENRE and EntQA, and beams of GENRE and mGENRE, by the first element."""
    if not isinstance(first, list):
        return
    if _beam_items(first):
        message = "is an answer of mGENRE that does not name its mentions; save one object of answers by qid or docno"
        raise FileError(source.path, message)
    if first and all(isinstance(each, dict) and {"text", "score"} <= set(each) for each in first):
        raise FileError(source.path, f"is an answer of GENRE without offsets; {_TABLE}")
    is_rel = len(first) == len(REL_TYPES) and all(isinstance(*pair) for pair in zip(first, REL_TYPES[:4], strict=False))
    if is_rel or _triples([first]):
        linker = "REL" if is_rel else "GENRE or EntQA"
        message = f"is an answer of {linker} that does not name its document; save one object of answers by docno"
        raise FileError(source.path, message)


# Members of answers, which are no ids of documents.
_MEMBERS = frozenset(["annotations", "entities", "mentions", "spans", "predictions", "result", "results", "response"])


def refuse_member(source: Source, record: dict[str, Any]) -> None:
    """Refuse lists of REL, GENRE or EntQA in a member of an answer, which would be taken for its document."""
    if record and set(record) <= _MEMBERS:
        message = f"is recognised as links in the member {next(iter(record))!r}, without a document"
        raise FileError(source.path, f"{message}; save one object of answers by docno")
