"""Sheets that people fill in, with their instructions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, InputError, ParameterError, path_parameter, printable
from vbterrier.frames.files.exports import delimited_text, guarded_texts
from vbterrier.frames.files.source import is_there
from vbterrier.frames.files.writing import replace_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from vbterrier.annotations import StrPath


_SEPARATORS = {".csv": ",", ".tsv": "\t", ".jsonl": None}
# Spreadsheets run texts that begin with one of these.
_FORMULA = re.compile(r"^[=+\-@]")


def write_sheet(
    path: StrPath, rows: pd.DataFrame, ids: Sequence[str], texts: Sequence[str], instructions: str, content: str
) -> Path:
    """Write a sheet, and its instructions in a second file, whose path is returned.

    - ``path``: a file that does not exist yet, .csv, .tsv or .jsonl
    - ``ids``, ``texts``: columns of ids, which are never changed, and of texts, which lose line ends and begin with an
      apostrophe if a spreadsheet would run them
    - ``content``: what people write into the sheet

    Raises InputError for an id that a spreadsheet would run as a formula.
    """
    path = path_parameter("path", path)
    if path.suffix not in _SEPARATORS:
        raise ParameterError(f"{printable(path)}: wanted a name that ends in {', '.join(_SEPARATORS)}")
    if is_there(path):
        raise FileError(path, f"exists already, perhaps with {content}; choose another name")
    separator = _SEPARATORS[path.suffix]
    if separator is None:
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows.to_dict("records"))
    else:
        text = _delimited_text(rows, separator, ids, texts)
    about = path.with_suffix(".instructions.txt")
    replace_files({path: text, about: instructions})
    return about


def _delimited_text(rows: pd.DataFrame, separator: str, ids: Sequence[str], texts: Sequence[str]) -> str:
    for column in ids:
        formula = rows[column].str.contains(_FORMULA)
        if formula.any():
            odd = rows.loc[formula, column].iloc[0]
            raise InputError(f"{column} {odd!r}: spreadsheets would run it as a formula; write a .jsonl file")
    plain = {name: guarded_texts(rows[name].str.split().str.join(" ")) for name in texts}
    return delimited_text(rows.assign(**plain), separator, "an id holds a tab or a line end; write a .jsonl file")
