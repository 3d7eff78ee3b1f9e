"""The answer of a result: one verdict, its reason, caveats and next step, for every output."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vbterrier.errors import CAN_BE_WRONG, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

# The name of the JSON format, which docs/reference/answer.md describes; its number changes with its keys.
SCHEMA = "vbterrier.answer/1"
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
# Marks of decisions, for readers who see no colour, and those of terminals without them.
MARKS = {PASS: "✓", FAIL: "✗", UNKNOWN: "?"}
# Kinds of notes: on models of unjudged documents, topics without documents, and tags that are guesses.
MODEL_NOTE, EMPTY_TOPICS_NOTE, GUESSES_NOTE = "model", "empty topics", "guesses"
# The subjects of caveats that are warnings, and of those without another subject; lines leave both out.
WARNING, NOTE = "Warning", "Note"
# Numbers of queries and documents that a text names, and of further subjects of warnings of one kind.
_MAX_NAMED, _MAX_FURTHER_NAMED = 5, 3
# What differs between warnings of the same kind: quoted ids, lists of ids, numbers.
_SINGULAR = {"are": "i", "is": "i", "have": "ha", "has": "ha", "were": "wa", "was": "wa", "do": "doe", "does": "doe"}
_VARIES = re.compile(r"""'[^']*'|"[^"]*"|\([^()]*\)|\d[\d.,%]*""")


class Caveat(NamedTuple):
    """Subject and text of a caveat; serious if it may reverse the verdict; ``n`` counts equal ones."""

    about: str
    text: str
    serious: bool
    n: int = 1

    def line(self) -> str:
        """The caveat in one line, with its count."""
        about = "" if self.about in (WARNING, NOTE) else f"{printable(self.about)}: "
        return f"{about}{printable(self.text)}{f' ({self.n} times)' if self.n > 1 else ''}"


class Note(str):
    """A sentence about a result; ``kind`` is that of its caveat, ``system`` the system that it is about, if any."""

    __slots__ = ("kind", "system")
    kind: str
    system: str

    def __new__(cls, text: str, kind: str = "", system: str = "") -> Self:  # noqa: D102
        note = super().__new__(cls, text)
        note.kind, note.system = kind, system
        return note


class Finding(NamedTuple):
    """A query, or a document of a query, behind a verdict, and what it shows."""

    qid: str
    docno: str
    shows: str

    def text(self) -> str:
        """The query or document in one phrase."""
        return printable(" ".join(filter(None, [self.qid, self.docno])) + (f" ({self.shows})" if self.shows else ""))


@dataclass(frozen=True)
class Answer:
    """The answer of a result, the same in every output.

    - ``verdict``: a sentence with the number, its interval and what it was compared with
    - ``reason``: sentences that explain the verdict; may be empty
    - ``next``: a command or a call that runs as printed; empty if there is nothing to do
    - ``caveats``: each text once, the serious ones first
    - ``evidence``: the queries or documents behind the verdict, the most important first
    - ``made_by``: the command or call that made the result
    - ``decision``: ``"PASS"``, ``"FAIL"``, ``"UNKNOWN"``, or empty

    Examples
    --------
    >>> answer = Answer("By nDCG@10, a scores higher than b.", next="vbterrier report a.run b.run -q qrels.txt")
    >>> print(answer)
    By nDCG@10, a scores higher than b.
    Next: vbterrier report a.run b.run -q qrels.txt
    """

    verdict: str
    reason: str = ""
    next: str = ""
    caveats: tuple[Caveat, ...] = ()
    evidence: tuple[Finding, ...] = ()
    made_by: str = ""
    decision: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, [self.head(), self.foot()]))

    def _repr_html_(self) -> str:
        return self.html()

    def head(self) -> str:
        """The verdict and the reason, a line each, for the top of a text."""
        return "\n".join(map(printable, filter(None, [self.verdict, *self.reason.split("\n")])))

    def foot(self, *, evidence: bool = True) -> str:
        """Evidence, caveats and the next step, a line each, for the end of a text."""
        lines = []
        if self.evidence and evidence:
            more = len(self.evidence) - _MAX_NAMED
            reasons = [one.text() for one in self.evidence[:_MAX_NAMED]]
            lines.append(f"Evidence: {'; '.join(reasons)}{f'; and {more} more' if more > 0 else ''}")
        lines += [f"{'Serious caveat' if one.serious else 'Caveat'}: {one.line()}" for one in self.caveats]
        return "\n".join([*lines, *([f"Next: {printable(self.next)}"] if self.next else [])])

    def html(self) -> str:
        """The answer as escaped HTML, for notebooks."""
        decision_attribute = f' data-decision="{self.decision}"' if self.decision else ""
        mark = f"{MARKS[self.decision]} " if self.decision else ""
        parts = [f"<p><strong{decision_attribute}>{mark}{_escape_html(self.verdict)}</strong></p>"]
        parts += [f"<p>{_escape_html(self.reason)}</p>"] if self.reason else []
        if self.caveats:
            serious = "<strong>Serious caveat:</strong> "
            items = "".join(f"<li>{serious * one.serious}{_escape_html(one.line())}</li>" for one in self.caveats)
            parts.append(f"<ul>{items}</ul>")
        if self.next:
            code = f"<code>{_escape_html(self.next)}</code>"
            # Calls have few places to break a line at.
            parts.append(f'<p style="overflow-wrap: anywhere">Next: {code}</p>')
        return "\n".join(parts)

    def record(self) -> dict[str, Any]:
        """The answer as a mapping for JSON, which docs/reference/answer.md describes."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "decision": self.decision,
            "reason": self.reason,
            "next": self.next,
            "caveats": [one._asdict() for one in self.caveats],
            "evidence": [one._asdict() for one in self.evidence],
            "made_by": self.made_by,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Answer:
        """Return the answer of a mapping that :meth:`record` made.

        >>> answer = Answer("By AP, a scores higher than b.", caveats=(Caveat("Tests", "Two topics.", False),))
        >>> Answer.of(answer.record()) == answer
        True
        """
        words = {name: record[name] for name in ("verdict", "decision", "reason", "next", "made_by")}
        caveats = tuple(Caveat(**one) for one in record["caveats"])
        return cls(**words, caveats=caveats, evidence=tuple(Finding(**one) for one in record["evidence"]))

    def json(self) -> str:
        """The answer as JSON."""
        return json.dumps(self.record(), indent=2, ensure_ascii=False)


def counted_caveats(caveats: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return each caveat once with its count, the serious ones first; of equal texts, the first is kept.

    >>> [(one.about, one.n) for one in counted_caveats([Caveat("A", "x.", False)] * 2 + [Caveat("B", "y", True)])]
    [('B', 1), ('A', 2)]
    """
    caveats_by_key: dict[str, Caveat] = {}
    for one in caveats:
        key = text_key(one.text)
        same = caveats_by_key.get(key)
        caveats_by_key[key] = (
            one if same is None else same._replace(n=same.n + one.n, serious=same.serious or one.serious)
        )
    return tuple(sorted(caveats_by_key.values(), key=lambda one: not one.serious))


def with_warnings(caveats: Iterable[Caveat], messages: Iterable[str]) -> tuple[Caveat, ...]:
    """Return caveats and those of the messages of warnings, one for each cause; a caveat that is both is one.

    A warning that estimates can be wrong is serious.

    >>> with_warnings([Caveat("Note", "Two topics.", False)], ["two topics", f"this {CAN_BE_WRONG}"])[0].serious
    True
    """
    warned: dict[str, Caveat] = {}
    for text, n in message_counts(messages):
        warned[text_key(text)] = Caveat(WARNING, sentence(text), serious=CAN_BE_WRONG in text, n=n)
    merged = []
    for one in caveats:
        same = warned.pop(text_key(one.text), None)
        merged.append(one if same is None else one._replace(serious=one.serious or same.serious))
    return counted_caveats([*merged, *warned.values()])


def message_counts(messages: Iterable[str]) -> list[tuple[str, int]]:
    """Return the messages of warnings and their counts; those that differ in a system, ids and numbers are one.

    A message that names its subject has one cause, however often parts of a call give it.

    >>> message_counts(["run 'a': 1 topic is empty", "run 'b': 3 topics are empty", "tied", "tied"])[1:]
    [('tied', 2)]
    >>> message_counts(["run 'a': 1 document is tied", "run 'b': 3 document is tied"])
    [("run 'a': 1 document is tied (also of run 'b')", 1)]
    """
    counts: dict[str, int] = {}
    for message in messages:
        line = " ".join(message.split())
        counts[line] = counts.get(line, 0) + 1
    kinds: dict[str, list[tuple[str, str]]] = {}
    for line in counts:
        subject, rest = line.split(": ") if line.count(": ") == 1 else ("", line)
        # Without a subject, messages are alike only if they are equal.
        kinds.setdefault(_kind(rest) if subject else line, []).append((line, subject))
    entries = []
    for alike in kinds.values():
        (first, subject), *others = alike
        names = [subject for _, subject in others]
        n_more = len(names) - _MAX_FURTHER_NAMED
        more = f" (also of {', '.join(names[:_MAX_FURTHER_NAMED])}{f' and {n_more} more' * (n_more > 0)})"
        entries.append((first + more * bool(names), 1 if subject else counts[first]))
    return entries


def _kind(text: str) -> str:
    """The part that messages of one kind share: no ids and numbers, nor the forms of words that follow a number."""
    words = _VARIES.sub("", text).split()
    return " ".join(_SINGULAR.get(word, word.removesuffix("s")) for word in words)


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop or question mark; names as nDCG stay.

    >>> sentence("two runs differ"), sentence("nDCG@10 does not"), sentence("are they equal?")
    ('Two runs differ.', 'nDCG@10 does not.', 'Are they equal?')
    """
    first = text.partition(" ")[0]
    begun = text.capitalize()[:1] + text[1:] if first.isalpha() and first.islower() else text
    return begun if begun.endswith(("?", "!")) else begun.rstrip(".") + "."


def text_key(text: str) -> str:
    """Return what equal texts have in common: spaces, case and the full stop do not count."""
    return " ".join(text.split()).rstrip(".").casefold()


def _escape_html(text: str) -> str:
    return html.escape(printable(text))
