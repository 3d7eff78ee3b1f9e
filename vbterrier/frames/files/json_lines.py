"""Files of one JSON object a line: queries and documents, whose text may hold anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import FileError
from vbterrier.frames.files.layout import IDS, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.frames.files.source import Source

_MOST = 1_000


def is_json(line: bytes) -> bool:
    """Whether a first line begins an object."""
    return line.lstrip()[:1] == b"{"


def json_frame(source: Source, wanted: Sequence[str]) -> pd.DataFrame:
    """Read one object a line; members that some lack are missing there.

    Parameters
    ----------
    source
        The file.
    wanted
        Members that every object must have, as text; a whole number is taken as its digits.

    Raises
    ------
    FileError
        Names the line that is no object, or lacks a member.
    """
    rows, members = [], dict.fromkeys(wanted)
    for number, line in source.lines():
        if line.strip():
            row = _object(source, number, line)
            members |= dict.fromkeys(row)
            if len(members) > _MOST:
                # Each is a column of all rows: few bytes would become much memory.
                raise FileError(source.path, f"has more than {_MOST:,} different members; nest them", line=number)
            rows.append(row | {name: _text(source, number, row, name) for name in wanted})
    try:
        return pd.DataFrame(rows)
    except OverflowError:
        # pandas 2 wants a float of every whole number.
        return pd.DataFrame(rows, dtype=object)


def _object(source: Source, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode())
        if b"\\u" in line:
            # Half a surrogate pair can be spelt in JSON, but is no text.
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise FileError(source.path, f"is no JSON ({error}): {shown(line)}; repair the line", line=number) from error
    if not isinstance(found, dict):
        raise FileError(source.path, f"wanted an object in each line, found {shown(line)}", line=number)
    return found


def _text(source: Source, number: int, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or (not value and name in IDS):
        there = "missing" if name not in row else f"{value!r}"
        raise FileError(
            source.path, f"member {name!r} is {there}, wanted text; found {', '.join(row) or 'none'}", line=number
        )
    return value
