"""How the lines of a text file are laid out, and what is wrong with one that is not."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

IDS = frozenset({"qid", "docno", "entity_id"})
WHOLE = frozenset({"rank", "label"})
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_SHOWN = 80


class MisfitError(ValueError):
    """A line that does not fit its layout.

    Parameters
    ----------
    found
        What was wanted and found.
    remedy
        What to do about it; empty where ``found`` says it.
    """

    def __init__(self, found: str, remedy: str = "") -> None:
        self.found = found
        super().__init__("; ".join(filter(None, (found, remedy))))


@dataclass(frozen=True)
class Layout:
    """The fields of a line.

    Parameters
    ----------
    names
        The column of each field.
    numeric
        Columns of numbers; all others are text.
    separator
        What stands between fields: a blank, a tab or a comma. Values between commas may stand in double quotes.
    blanks
        Whether any white space separates fields, however much of it, as trec_eval has it.
    header
        How many lines come before the data.
    remedies
        What another number of fields usually means; the highest key speaks for all higher numbers too.
    form
        How messages write a line; the names when empty.
    for_header
        What to do about a first line that looks like a header.
    """

    names: tuple[str, ...]
    numeric: tuple[str, ...]
    separator: str = " "
    blanks: bool = True
    header: int = 0
    remedies: Mapping[int, str] = field(default_factory=dict)
    form: str = ""
    for_header: str = "remove the line"

    @property
    def never_empty(self) -> tuple[str, ...]:
        """Text columns in which every field holds something."""
        return tuple(n for n in self.names if n not in self.numeric and (self.blanks or n in IDS))

    def check(self, line: bytes) -> None:
        """Refuse a line that does not fit.

        Raises
        ------
        MisfitError
            Says why.
        """
        fields = split(line, self.separator, blanks=self.blanks)
        if len(fields) != len(self.names):
            remedy = self.remedies.get(min(len(fields), max(self.remedies, default=0)), "repair the line")
            wanted = f"{len(self.names)} fields, {self.form or ' '.join(self.names)}"
            raise MisfitError(f"wanted {wanted}; found {len(fields)} in {shown(line)}", remedy)
        for name, value in zip(self.names, fields, strict=True):
            if name in self.numeric:
                _check_number(name, value)
            elif not value and name in self.never_empty:
                raise MisfitError(f"{name} is empty; give it an id, or remove the line")

    def seems_header(self, line: bytes) -> bool:
        """Whether no field of a line is a number although some should be."""
        fields = split(line, self.separator, blanks=self.blanks)
        return bool(self.numeric) and not any(_NUMBER.fullmatch(value) for value in fields)


def split(line: bytes, separator: str, *, blanks: bool) -> list[str]:
    """Cut a line into fields.

    Raises
    ------
    MisfitError
        It is no text in UTF-8, or its quotes are broken.
    """
    if b"\0" in line:
        raise MisfitError("holds a NUL byte; wanted text: the file is binary, damaged or UTF-16")
    try:
        if blanks:
            # Bytes are split at ASCII white space alone: a no-break space belongs to an id.
            return [value.decode() for value in line.split()]
        text = line.decode()
        return next(csv.reader([text])) if separator == "," else text.split(separator)
    except UnicodeDecodeError as error:
        octet = error.object[error.start]
        remedy = "convert the file, for example with `iconv -f latin1 -t utf-8`"
        raise MisfitError(f"is not UTF-8 (found byte {octet:#04x}); {remedy}") from error
    except csv.Error as error:
        raise MisfitError(f"cannot be split at its commas ({error}); repair the line") from error


def _check_number(name: str, value: str) -> None:
    if name in WHOLE:
        try:
            whole_number(value)
        except ValueError as error:
            found = f"{name} must be a whole number of at most 64 bits, found {shown(value)}"
            raise MisfitError(found, "repair the line") from error
    elif not _NUMBER.fullmatch(value.strip()):
        remedy = "remove the line or give it a number" if "nan" in value.casefold() else "repair the line"
        raise MisfitError(f"{name} must be a number, found {shown(value)}", remedy)


def whole_number(value: str) -> int:
    """Read an integer.

    Raises
    ------
    ValueError
        The text spells none, or one beyond 64 bits.

    >>> whole_number("+1")
    1
    """
    number = int(value)
    if "_" in value or not -(2**63) <= number < 2**63:
        raise ValueError(value)
    return number


def shown(found: bytes | str) -> str:
    """Quote what was found, cut to a length that a message can bear."""
    text = found.decode(errors="replace") if isinstance(found, bytes) else found
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
