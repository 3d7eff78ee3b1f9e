"""Conversion of the JSON answers of linkers to links, with checked values and offsets."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import unquote

from vbterrier.errors import InputError, ParameterError, agreeing, printable, warn
from vbterrier.linking.links import Links, links_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_EXCERPT_LENGTH = 60

_RESOURCE = "dbpedia.org/resource/"
MISPLACED = ("error", "unplaced")


@dataclass(frozen=True, eq=False)
class Node:
    """A value in decoded JSON and its path.

    >>> Node({"annotations": [{"rho": "much"}]}, "answer")["annotations"].items()[0]["rho"].number()
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: answer: annotations[0].rho: wanted a number, found 'much'
    """

    value: Any
    name: str  # the key or index in the parent; the name of the document for a root
    parent: Node | None = None

    @property
    def where(self) -> str:
        """The path from the root, for messages."""
        if self.parent is None:
            return self.name
        if self.parent.parent is None:
            return f"{self.parent.name}: {self.name.removeprefix('.')}"
        return self.parent.where + self.name

    def value_error(self, what: str) -> InputError:
        """Return the error of an invalid value."""
        return InputError(f"{self.where}: wanted {what}, found {_describe_value(self.value)}")

    def get(self, key: str) -> Node | None:
        """Return the member of an object, or ``None`` if it is absent or null."""
        if not isinstance(self.value, dict):
            raise self.value_error("an object")
        value = self.value.get(key)
        return None if value is None else Node(value, f".{key}", self)

    def __getitem__(self, key: str) -> Node:
        node = self.get(key)
        if node is None:
            raise self.value_error(f"an object with {key!r}")
        return node

    def items(self) -> list[Node]:
        """Return the members of a list."""
        if not isinstance(self.value, list):
            raise self.value_error("a list")
        return [Node(value, f"[{place}]", self) for place, value in enumerate(self.value)]

    def each(self) -> list[Node]:
        """Return the members of a list, or an object as the only member, as in JSON converted from XML."""
        return [self] if isinstance(self.value, dict) else self.items()

    def text(self) -> str:
        """Return text that can be encoded as UTF-8."""
        if not isinstance(self.value, str) or not is_text(self.value):
            raise self.value_error("text")
        return self.value

    def number(self) -> float:
        """Return a finite number, which may be given as text."""
        value = self.value
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                number = float(value)
            except (ValueError, OverflowError):
                number = math.nan
            if math.isfinite(number):
                return number
        raise self.value_error("a number")

    def whole(self) -> int:
        """Return a whole number of at most 18 digits, which may be given as text."""
        if isinstance(self.value, (int, str)) and not isinstance(self.value, bool):
            text = self.value if isinstance(self.value, str) else format(self.value, "d") if _small(self.value) else ""
            if _WHOLE_NUMBER.fullmatch(text):
                return int(text)
        raise self.value_error("a whole number")


def is_text(value: str) -> bool:
    """Return True if text has no unpaired surrogates, so that it can be encoded as UTF-8."""
    return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)


def _small(number: int) -> bool:
    # Python raises an error when it formats integers of thousands of digits.
    return -(10**18) < number < 10**18


def _describe_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        keys = ", ".join(printable(key)[:_EXCERPT_LENGTH] for key in list(value)[:8])
        return f"an object with {keys}{', ...' if len(value) > 8 else ''}" if keys else "an empty object"  # noqa: PLR2004 - fits in a line
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and not _small(value):
        return "an integer of more than 18 digits"
    shown = repr(value) if not isinstance(value, str) else f"'{printable(value[: _EXCERPT_LENGTH + 1])}'"
    return shown if len(shown) <= _EXCERPT_LENGTH + 2 else f"{shown[:_EXCERPT_LENGTH]}...'"


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 units, as in Java and JavaScript: characters beyond U+FFFF are two units."""
    return len(text) + sum(sign > "\uffff" for sign in text)


class Places:
    """Offsets of mentions in one text, in code points or UTF-16 units.

    >>> Places("😀 Rome").find(3, 7, "Rome", utf16=True)
    (2, 6)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # The units agree if no character is beyond U+FFFF, which is the usual case.
        self.agree = max(text, default="") <= "\uffff"
        self._units = [] if self.agree else [0, *accumulate(1 + (sign > "\uffff") for sign in text)]

    def find(self, start: int, end: int, mention: str, *, utf16: bool) -> tuple[int, int] | None:
        """Return start and end in code points, or ``None`` if the mention is not there.

        Letter case and white space may differ, because services normalise mentions. An empty mention always matches.
        """
        if utf16 and not self.agree:
            places = self._point(start), self._point(end)
            if None in places:
                return None
            start, end = places  # type: ignore[assignment]
        if not 0 <= start <= end <= len(self.text):
            return None
        text_there = self.text[start:end]
        if mention and text_there != mention and text_there.casefold().split() != mention.casefold().split():
            return None
        return start, end

    def locate_candidate(self, candidate: Candidate, *, utf16: bool) -> Candidate | None:
        """Return a candidate with offsets in code points and the mention as in the text; ``None`` if not there."""
        place = self.find(candidate.start, candidate.end, candidate.mention, utf16=utf16)
        if place is None:
            return None
        return candidate._replace(start=place[0], end=place[1], mention=self.text[place[0] : place[1]])

    def _point(self, unit: int) -> int | None:
        place = bisect_left(self._units, unit)
        return place if place < len(self._units) and self._units[place] == unit else None


def title_id(title: str) -> str:
    """Return a Wikipedia title as an id, with underscores for blanks as in the addresses of pages."""
    return title.strip().replace(" ", "_")


def title_name(title: str) -> str:
    """Return a Wikipedia title as a name, with blanks for underscores."""
    return title.replace("_", " ").strip()


def dbpedia_id(node: Node, edition: str = "") -> str:
    """Return the percent-decoded name of a DBpedia resource.

    It is given as ``http://dbpedia.org/resource/AC/DC``, ``<dbpedia:AC/DC>`` or ``AC/DC``.
    """
    name = node.text().removeprefix("<").removesuffix(">").removeprefix("dbpedia:")
    if "://" in name:
        host = f"{edition}.{_RESOURCE}" if edition else _RESOURCE
        address = name.partition("://")[2].removeprefix("www.")
        if not address.startswith(host):
            raise node.value_error(f"an address under http://{host} (for another language pass edition, such as 'nl')")
        name = address.removeprefix(host)
    try:
        name = unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise node.value_error("percent signs that decode to UTF-8") from None
    if not name:
        raise node.value_error("the name of a resource")
    return title_id(name)


class Candidate(NamedTuple):
    """One entity of a mention in an answer; an empty ``entity_id`` means that the mention is linked to nothing."""

    node: Node
    start: int
    end: int
    mention: str
    entity_id: str
    score: float = 0.0
    name: str = ""


class Reading(NamedTuple):
    """Candidates in one answer, mentions linked to nothing, and True if offsets are not in the service's usual unit."""

    linked: list[Candidate]
    unlinked: list[Node]
    other_unit: bool = False


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """The format of the answers of one linker."""

    score: str  # the field of the answer that is the score, a key of ``scores``, which gives its scale
    ids: str  # the kind of entity id, one of ``spaces``
    # The treatment of a mention that is not at its offsets: ``"error"``, or ``"unplaced"`` for start and end -1.
    misplaced: str = "error"

    service: ClassVar[str]
    scores: ClassVar[Mapping[str, str]]
    spaces: ClassVar[tuple[str, ...]]
    # Java services count UTF-16 units, Python services code points.
    utf16: ClassVar[bool] = True

    def __post_init__(self) -> None:
        legal = {"score": tuple(self.scores), "ids": self.spaces, "misplaced": MISPLACED}
        for name, values in legal.items():
            if getattr(self, name) not in values:
                choices = ", ".join(map(repr, values))
                raise ParameterError(f"{self.service}: {name}={getattr(self, name)!r}: wanted one of {choices}")

    @property
    def id_space(self) -> str:
        """The name of the id space of the entities."""
        return self.ids

    @property
    def scale(self) -> str:
        """``"probability"`` if the score is the probability of the entity given the mention, else ``"score"``."""
        return self.scores[self.score]

    @abstractmethod
    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """Yield the candidates in the answer to one text, with offsets in the units of the service."""

    def links(
        self, answers: Iterable[Any], texts: Sequence[str] | None = None, *, warned: set[str] | None = None
    ) -> Links:
        """Return links from answers, one per text; ``None`` for a text that was not sent.

        If the texts are given, offsets are checked and converted to code points, and mentions are copied from the text;
        otherwise both are those of the service. An answer that fits its text only in the other unit is read in that
        unit. ``warned`` has the warnings (``"unlinked"``, ``"unit"``) that are not repeated.
        """
        rows: list[tuple[int, int, int, str, str, float, str]] = []
        unlinked: list[Node] = []
        other_unit: list[int] = []
        place = -1
        for place, answer in enumerate(answers):
            if answer is None or (texts is not None and place >= len(texts)):
                continue
            text = None if texts is None else texts[place]
            reading = self.read_answer(answer, text, f"{self.service} answer to text {place}")
            rows += [(place, *candidate[1:]) for candidate in reading.linked]
            unlinked += reading.unlinked
            other_unit += [place] * reading.other_unit
        if texts is not None and place + 1 != len(texts):
            raise InputError(f"{self.service}: {place + 1} answers to {len(texts)} texts; wanted one each, in order")
        self._warn_of_mentions(unlinked, other_unit, set() if warned is None else warned)
        return Links(links_frame(rows), self.id_space, self.scale)

    def read_answer(self, answer: Any, text: str | None = None, name: str = "answer") -> Reading:
        """Read the answer to one text; ``name`` is its name in messages."""
        candidates = list(self.candidates(Node(answer, name)))
        unlinked = [candidate.node for candidate in candidates if not candidate.entity_id]
        linked = [self._check_candidate(candidate) for candidate in candidates if candidate.entity_id]
        if text is None:
            return Reading(linked, unlinked)
        placed, other_unit = self._locate_candidates(linked, Places(text))
        return Reading(placed, unlinked, other_unit)

    def _check_candidate(self, candidate: Candidate) -> Candidate:
        if not -1 <= candidate.start <= candidate.end:
            place_text = f"(it is at {candidate.start} to {candidate.end})"
            raise candidate.node.value_error(f"a mention with 0 <= start <= end {place_text}")
        if self.scale == "probability" and not 0 <= candidate.score <= 1:
            raise candidate.node.value_error(f"a probability as {self.score}, 0 to 1 (it is {candidate.score:g})")
        return candidate

    def _locate_candidates(self, candidates: list[Candidate], places: Places) -> tuple[list[Candidate], bool]:
        """Return candidates with offsets in code points, and True if they were not in the usual unit of the service."""

        def find(*, utf16: bool) -> list[Candidate | None]:
            return [c if c.start < 0 else places.locate_candidate(c, utf16=utf16) for c in candidates]

        spans, other_unit = find(utf16=self.utf16), False
        if None in spans and not places.agree and None not in (others := find(utf16=not self.utf16)):
            spans, other_unit = others, True
        for candidate, placed in zip(candidates, spans, strict=True):
            if placed is None and self.misplaced == "error":
                raise candidate.node.value_error(
                    f"the mention {candidate.mention!r} at {candidate.start} to {candidate.end} of the text "
                    "(check that it is the linked text; misplaced='unplaced' keeps such mentions without offsets)"
                )
        both = zip(candidates, spans, strict=True)
        return [placed or candidate._replace(start=-1, end=-1) for candidate, placed in both], other_unit

    def _warn_of_mentions(self, unlinked: list[Node], other_unit: list[int], warned: set[str]) -> None:
        if unlinked and "unlinked" not in warned:
            warned.add("unlinked")
            warn(
                f"{self.service}: {agreeing(len(unlinked), 'mentions are linked to nothing and left out')}, "
                f"the first at {unlinked[0].where}"
            )
        if other_unit and "unit" not in warned:
            warned.add("unit")
            usual, unit = ("UTF-16 units", "code points")[:: 1 if self.utf16 else -1]
            warn(
                f"{self.service}: {agreeing(len(other_unit), 'answers count')} {unit} instead of "
                f"{usual}, the first to text "
                f"{other_unit[0]}; they are read in {unit}, in which the mentions match"
            )
