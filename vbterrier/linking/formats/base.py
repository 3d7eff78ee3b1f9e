"""What the answers of all linkers have in common: from decoded JSON to links with checked places."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.linking.formats.node import Node
from vbterrier.linking.formats.offsets import Places
from vbterrier.linking.links import Links, links_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        self, answers: Iterable[Any], texts: Sequence[str] | None = None, *, told: set[str] | None = None
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
        told
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
        self._warn(unlinked, strange, set() if told is None else told)
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

    def _warn(self, unlinked: list[Node], strange: list[int], told: set[str]) -> None:
        if unlinked and "unlinked" not in told:
            told.add("unlinked")
            warnings.warn(
                f"{self.service}: {len(unlinked)} mentions are linked to nothing and left out, "
                f"the first at {unlinked[0].where}",
                DegenerateWarning,
                stacklevel=3,
            )
        if strange and "strange" not in told:
            told.add("strange")
            own, other = ("UTF-16 units", "code points")[:: 1 if self.utf16 else -1]
            warnings.warn(
                f"{self.service}: {len(strange)} answers count in {other}, not in {own} as the service is known to, "
                f"the first to text {strange[0]}; taken as such, for the mentions stand there",
                DegenerateWarning,
                stacklevel=3,
            )
