"""Links from the decoded JSON of linkers, with checked values and offsets."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import unquote

from vbterrier.errors import InputError, ParameterError, printable, warn
from vbterrier.linking.links import Links, links_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Node:
    """A value in decoded JSON and the way to it.

    Parameters
    ----------
    value
        What ``json.loads`` gave.
    name
        The key or place in ``parent``; of a root, what the whole is called.
    parent
        What holds it; ``None`` for a root.

    >>> Node({"annotations": [{"rho": "much"}]}, "answer")["annotations"].items()[0]["rho"].number()
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: answer: annotations[0].rho: wanted a number, found 'much'
    """

    value: Any
    name: str
    parent: Node | None = None

    @property
    def where(self) -> str:
        """The way from the root, for messages."""
        if self.parent is None:
            return self.name
        if self.parent.parent is None:
            return f"{self.parent.name}: {self.name.removeprefix('.')}"
        return self.parent.where + self.name

    def wanted(self, what: str) -> InputError:
        """The error of a value that is not what was wanted."""
        return InputError(f"{self.where}: wanted {what}, found {_shown(self.value)}")

    def get(self, key: str) -> Node | None:
        """The member of an object, ``None`` when it is absent or null."""
        if not isinstance(self.value, dict):
            raise self.wanted("an object")
        value = self.value.get(key)
        return None if value is None else Node(value, f".{key}", self)

    def __getitem__(self, key: str) -> Node:
        found = self.get(key)
        if found is None:
            raise self.wanted(f"an object with {key!r}")
        return found

    def items(self) -> list[Node]:
        """The members of a list."""
        if not isinstance(self.value, list):
            raise self.wanted("a list")
        return [Node(value, f"[{place}]", self) for place, value in enumerate(self.value)]

    def each(self) -> list[Node]:
        """The members of a list, or an object as the only one: what XML turned into JSON makes of one and of many."""
        return [self] if isinstance(self.value, dict) else self.items()

    def text(self) -> str:
        """Text that can be written to a file."""
        if not isinstance(self.value, str) or not is_text(self.value):
            raise self.wanted("text")
        return self.value

    def number(self) -> float:
        """A finite number, or text that reads as one."""
        value = self.value
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                number = float(value)
            except (ValueError, OverflowError):
                number = math.nan
            if math.isfinite(number):
                return number
        raise self.wanted("a number")

    def whole(self) -> int:
        """A whole number of at most 18 digits, or text that reads as one."""
        if isinstance(self.value, (int, str)) and not isinstance(self.value, bool):
            text = self.value if isinstance(self.value, str) else format(self.value, "d") if _small(self.value) else ""
            if _WHOLE.fullmatch(text):
                return int(text)
        raise self.wanted("a whole number")


def is_text(value: str) -> bool:
    r"""Whether text has no half of a surrogate pair, which no file and no service takes.

    >>> is_text("Zürich"), is_text("\ud800")
    (True, False)
    """
    return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)


def _small(number: int) -> bool:
    # Python refuses to spell integers of thousands of digits.
    return -(10**18) < number < 10**18


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        keys = ", ".join(printable(key)[:_SHOWN] for key in list(value)[:8])
        return f"an object with {keys}{', ...' if len(value) > 8 else ''}" if keys else "an empty object"  # noqa: PLR2004 - as many as a line holds
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and not _small(value):
        return "an integer of more than 18 digits"
    shown = repr(value) if not isinstance(value, str) else f"'{printable(value[: _SHOWN + 1])}'"
    return shown if len(shown) <= _SHOWN + 2 else f"{shown[:_SHOWN]}...'"


def utf16_length(text: str) -> int:
    """The length as Java, JavaScript and Scala count it: signs beyond U+FFFF are two units.

    >>> utf16_length("a😀")
    3
    """
    return len(text) + sum(sign > "\uffff" for sign in text)


class Places:
    """The places in one text.

    Parameters
    ----------
    text
        The text as it was sent.

    >>> Places("😀 Rome").find(3, 7, "Rome", utf16=True)
    (2, 6)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # Where all signs are one unit, and they nearly always are, the two ways of counting agree.
        self.agree = max(text, default="") <= "\uffff"
        self._units = [] if self.agree else [0, *accumulate(1 + (sign > "\uffff") for sign in text)]

    def find(self, start: int, end: int, mention: str, *, utf16: bool) -> tuple[int, int] | None:
        """Start and end in code points, ``None`` unless the mention stands there.

        Letter case and the amount of white space may differ: services normalise them in what they repeat. An empty
        mention stands anywhere inside the text.
        """
        if utf16 and not self.agree:
            places = self._point(start), self._point(end)
            if None in places:
                return None
            start, end = places  # type: ignore[assignment]
        if not 0 <= start <= end <= len(self.text) or (mention and not _alike(self.text[start:end], mention)):
            return None
        return start, end

    def _point(self, unit: int) -> int | None:
        place = bisect_left(self._units, unit)
        return place if place < len(self._units) and self._units[place] == unit else None


def _alike(left: str, right: str) -> bool:
    return left == right or left.casefold().split() == right.casefold().split()


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

    >>> from vbterrier.linking.services.json_answers import Node
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


MISPLACED = ("error", "unplaced")


class Candidate(NamedTuple):
    """One entity of one mention, as the answer has it; an empty ``entity_id`` links the mention to nothing."""

    node: Node
    start: int
    end: int
    mention: str
    entity_id: str
    score: float = 0.0
    name: str = ""


class Reading(NamedTuple):
    """What one answer says: candidates, mentions linked to nothing, and whether it counts in units of others."""

    linked: list[Candidate]
    unlinked: list[Node]
    is_strange: bool = False


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """How one linker answers.

    Parameters
    ----------
    score
        Which number of the answer is the score: one of ``scores``, which says of each whether it is a probability.
    ids
        Which id of the answer is the entity's: one of ``spaces``.
    misplaced
        What to do with a mention that does not stand in the text where the answer says: ``"error"``, or ``"unplaced"``
        to keep it with start and end -1.

    Raises
    ------
    ParameterError
        A value that the linker does not have.
    """

    score: str
    ids: str
    misplaced: str = "error"

    service: ClassVar[str]
    scores: ClassVar[Mapping[str, str]]
    spaces: ClassVar[tuple[str, ...]]
    # Services on the Java machine count in UTF-16 units, those in Python in code points.
    utf16: ClassVar[bool] = True

    def __post_init__(self) -> None:
        legal = {"score": tuple(self.scores), "ids": self.spaces, "misplaced": MISPLACED}
        for name, values in legal.items():
            if getattr(self, name) not in values:
                wanted = ", ".join(map(repr, values))
                raise ParameterError(f"{self.service}: {name}={getattr(self, name)!r}: wanted one of {wanted}")

    @property
    def id_space(self) -> str:
        """What the entity ids count in."""
        return self.ids

    @property
    def scale(self) -> str:
        """Whether the score is a probability, of the entity given the mention."""
        return self.scores[self.score]

    @abstractmethod
    def candidates(self, answer: Node) -> Iterator[Candidate]:
        """The candidates in the answer to one text, places in the units of the service."""

    def links(
        self, answers: Iterable[Any], texts: Sequence[str] | None = None, *, warned: set[str] | None = None
    ) -> Links:
        """Links from the answers to some texts.

        Parameters
        ----------
        answers
            Decoded JSON, one answer a text; ``None`` for a text that nobody asked about.
        texts
            What was sent. With them places are checked and become code points, and mentions are those of the text;
            without them both stay as the service gave them. Services on the Java machine, all but REL, count UTF-16
            units, where signs beyond U+FFFF are two; an answer that fits its text in the other way alone is read so.
        warned
            Which warnings (``"unlinked"``, ``"strange"``) were given before and are not given again; those given now
            are added.

        Raises
        ------
        InputError
            An answer that is none: says which, where in it, what was wanted and found. Not one answer a text.

        Warns
        -----
        DegenerateWarning
            Mentions linked to nothing are left out; an answer counts in other units than its service is known to.
        """
        rows: list[tuple[int, int, int, str, str, float, str]] = []
        unlinked: list[Node] = []
        strange: list[int] = []
        place = -1
        for place, answer in enumerate(answers):
            if answer is None or (texts is not None and place >= len(texts)):
                continue
            reading = self.read(
                answer, None if texts is None else texts[place], f"{self.service} answer to text {place}"
            )
            rows += [(place, *candidate[1:]) for candidate in reading.linked]
            unlinked += reading.unlinked
            strange += [place] * reading.is_strange
        if texts is not None and place + 1 != len(texts):
            raise InputError(f"{self.service}: {place + 1} answers to {len(texts)} texts; wanted one a text, in order")
        self._warn(unlinked, strange, set() if warned is None else warned)
        return Links(links_frame(rows), self.id_space, self.scale)

    def read(self, answer: Any, text: str | None = None, name: str = "answer") -> Reading:
        """Read the answer to one text, which messages call ``name``."""
        found = list(self.candidates(Node(answer, name)))
        unlinked = [candidate.node for candidate in found if not candidate.entity_id]
        linked = [self._checked(candidate) for candidate in found if candidate.entity_id]
        if text is None:
            return Reading(linked, unlinked)
        placed, is_strange = self._placed(linked, Places(text))
        return Reading(placed, unlinked, is_strange)

    def _checked(self, candidate: Candidate) -> Candidate:
        if not -1 <= candidate.start <= candidate.end:
            raise candidate.node.wanted(
                f"a mention that starts at 0 or later and ends behind (it is at {candidate.start} to {candidate.end})"
            )
        if self.scale == "probability" and not 0 <= candidate.score <= 1:
            raise candidate.node.wanted(f"a probability as {self.score}, 0 to 1 (it is {candidate.score:g})")
        return candidate

    def _placed(self, candidates: list[Candidate], places: Places) -> tuple[list[Candidate], bool]:
        """Candidates with places in code points, and whether they were counted in units not the service's own."""
        found = [self._find(c, places, utf16=self.utf16) for c in candidates]
        is_strange = False
        if None in found and not places.agree:
            others = [self._find(c, places, utf16=not self.utf16) for c in candidates]
            if None not in others:
                found, is_strange = others, True
        moved = []
        for candidate, place in zip(candidates, found, strict=True):
            if place is None:
                if self.misplaced == "error":
                    raise candidate.node.wanted(
                        f"the mention {candidate.mention!r} at {candidate.start} to {candidate.end} of the text "
                        "(is it the text that was linked? misplaced='unplaced' keeps such mentions without a place)"
                    )
                moved.append(candidate._replace(start=-1, end=-1))
            elif place == (-1, -1):
                moved.append(candidate)
            else:
                start, end = place
                moved.append(candidate._replace(start=start, end=end, mention=places.text[start:end]))
        return moved, is_strange

    @staticmethod
    def _find(candidate: Candidate, places: Places, *, utf16: bool) -> tuple[int, int] | None:
        if candidate.start < 0:
            return -1, -1
        return places.find(candidate.start, candidate.end, candidate.mention, utf16=utf16)

    def _warn(self, unlinked: list[Node], strange: list[int], warned: set[str]) -> None:
        if unlinked and "unlinked" not in warned:
            warned.add("unlinked")
            warn(
                f"{self.service}: {len(unlinked)} mentions are linked to nothing and left out, "
                f"the first at {unlinked[0].where}"
            )
        if strange and "strange" not in warned:
            warned.add("strange")
            own, other = ("UTF-16 units", "code points")[:: 1 if self.utf16 else -1]
            warn(
                f"{self.service}: {len(strange)} answers count in {other}, not in {own} as the service is known to, "
                f"the first to text {strange[0]}; taken as such, for the mentions stand there"
            )
