"""Reader of the nuggets of answers with their assignments."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.errors import FileError
from vbterrier.frames.files.json_tables import parse_object
from vbterrier.frames.files.source import MAX_BYTES, Source

if TYPE_CHECKING:
    from typing import Any

    from vbterrier.annotations import StrPath

FAILED = "failed"  # an answer of a judge that could not be read
NUGGET_MEMBERS = {
    "importance": ("vital", "okay", FAILED),
    "assignment": ("support", "partial_support", "not_support", FAILED),
}


def read_nuggets(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    r"""Read the nuggets of answers with their assignments, JSON lines as AutoNuggetizer writes them.

    An object has ``qid``, ``nuggets`` (a list of objects with ``text``, ``importance``: vital or okay, and
    ``assignment``: support, partial_support or not_support; either may be failed), and for answers ``run_id``, for
    retrieved documents ``docid``. See :func:`vbterrier.intents.from_nuggets`.

    Parameters
    ----------
    path, max_bytes
        As in :func:`vbterrier.read_run`, with the same errors.

    Returns
    -------
    pandas.DataFrame
        Columns name (the system; "run" without run_id), qid, docno (the document, or ``run_id/qid`` for an answer),
        entity_id (the text of the nugget; a repeated one is numbered), importance, assignment: a row for each nugget.

    References
    ----------
    Pradeep et al., Initial nugget evaluation results for the TREC 2024 RAG track, 2024.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "assigned.jsonl")
    >>> nugget = '{"text": "Paris", "importance": "vital", "assignment": "support"}'
    >>> _ = path.write_text('{"qid": "7", "run_id": "mine", "nuggets": [' + nugget + "]}\n")
    >>> read_nuggets(path).values.tolist()
    [['mine', '7', 'mine/7', 'Paris', 'vital', 'support']]
    """
    source, rows = Source.at(path, max_bytes), []
    for place, line in source.lines():
        if not line.strip():
            continue
        row = parse_object(source, place, line)
        qid = _text_member(source, place, row, "qid")
        name = _text_member(source, place, row, "run_id") if "run_id" in row else "run"
        docno = _text_member(source, place, row, "docid") if "docid" in row else f"{name}/{qid}"
        nuggets, seen = row.get("nuggets"), Counter[str]()
        if not isinstance(nuggets, list) or not all(isinstance(nugget, dict) for nugget in nuggets):
            raise FileError(source.path, "member 'nuggets' is no list of objects", line=place)
        for nugget in nuggets:
            text = _text_member(source, place, nugget, "text")
            for member, legal in NUGGET_MEMBERS.items():
                if nugget.get(member) not in legal:
                    message = f"nugget {text!r}: {member} is {nugget.get(member)!r}, wanted one of {', '.join(legal)}"
                    raise FileError(source.path, message, line=place)
            seen[text] += 1
            entity = text if seen[text] == 1 else f"{text} #{seen[text]}"
            rows.append((name, qid, docno, entity, nugget["importance"], nugget["assignment"]))
    return pd.DataFrame(rows, columns=["name", "qid", "docno", "entity_id", *NUGGET_MEMBERS])


def _text_member(source: Source, place: int, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or (not value and name == "qid"):
        text = "missing" if name not in row else f"{value!r}"
        message = f"member {name!r} is {text}, wanted text; found {', '.join(row) or 'none'}"
        raise FileError(source.path, message, line=place)
    return value
