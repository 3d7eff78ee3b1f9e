"""What the first line of a text file tells about all others."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, nearest
from vbterrier.frames.files.layout import Layout, MisfitError, shown, split

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_RUN = ("qid", "Q0", "docno", "rank", "score", "name")
_QRELS = ("qid", "iteration", "docno", "label")
# Words that head columns, here or elsewhere, without marks and case: a line of nothing else is a header.
_OF_IDS = "qid queryid topicid docno docid documentid pid passageid entityid"
_OTHERS = """
    id number num query queries question topic doc document passage paragraph sentence page entity item need text texts
    content contents body title abstract description desc narrative keywords constraints answer answers wiki wikipedia
    url link name label alias mention kind type prob probability prior score weight rank source
"""
_IDS = frozenset(_OF_IDS.split())
_HEADINGS = _IDS | frozenset(_OTHERS.split())
# In tables of ids one of them is enough.
_TELLING = frozenset(("topic", "doc", "entity"))
# Columns that a message names, and that a file may have.
_LISTED, _MOST = 30, 10_000
_MARKS = re.compile(r"[\s_\-\"'#]+")


def run_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out a run; with five columns, tell which is missing.

    Raises
    ------
    FileError
        Five columns that can be read in two ways.
    """
    separator = _white(line)
    whole = Layout(
        _RUN,
        ("rank", "score"),
        separator,
        remedies={
            4: "judgments are read with read_qrels",
            5: "five fields are read when every line lacks the run tag (qid Q0 docno rank score) "
            "or Q0 (qid docno rank score tag), rank being a whole number and score a number",
            7: "the run tag or an id seems to hold a blank: replace it",
        },
        form="qid Q0 docno rank score tag",
    )
    fields = line.split()
    if len(fields) != len(_RUN) - 1:
        return whole
    untagged = replace(whole, names=_RUN[:-1], form="")
    if fields[1].upper() == b"Q0":
        return untagged
    unmarked = replace(whole, names=(_RUN[0], *_RUN[2:]), form="qid docno rank score tag")
    fitting = [layout for layout in (untagged, unmarked) if _fits(layout, line)]
    if len(fitting) > 1:
        raise FileError(
            path,
            f"found 5 fields in {shown(line)}, which can be read as {' '.join(untagged.names)} and as {unmarked.form}; "
            f"write all six, {whole.form}",
            line=number,
        )
    return fitting[0] if fitting else whole


def qrels_layout(_path: Path, _number: int, line: bytes) -> Layout:
    """Lay out judgments, of documents or of subtopics."""
    remedies = {
        3: "write the iteration (or the subtopic) between qid and docno, 0 where there is none",
        5: "an id seems to hold a blank: replace it",
        6: "a run is read with read_run",
    }
    return Layout(_QRELS, ("label",), _white(line), remedies=remedies)


def topics_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out queries, with a header line or without."""
    return _texts(path, number, line, ("qid", "query"), ("qid", "query"))


def documents_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out texts of documents, with a header line or without."""
    return _texts(path, number, line, ("docno", "text"), ("docno",))


def _texts(path: Path, number: int, line: bytes, names: tuple[str, ...], wanted: tuple[str, ...]) -> Layout:
    """Lay out texts, which hold blanks, so that a tab comes before them; a text may be a word that heads columns."""
    remedy = f"write {names[0]}<tab>{names[1]}, or name the columns in a header line"
    plain = Layout(names, (), "\t", blanks=False, remedies=dict.fromkeys((1, 3), remedy))
    return _headed(path, number, line, wanted, (), telling=names[:1], separators="\t,") or plain


def intents_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out candidate intents, with a header line or without."""
    shape = ("qid", "entity_id", "prob")
    telling = (*shape, *_IDS, *_TELLING)
    return _headed(path, number, line, shape, ("prob", "score"), telling=telling) or _headless(line, [shape], "prob")


def tags_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out tags, with a header line or without."""
    shape = ("docno", "entity_id")
    shapes = [shape, (*shape, "weight")]
    telling = (*shape, *_IDS, *_TELLING)
    return _headed(path, number, line, shape, ("weight",), telling=telling) or _headless(line, shapes, "weight")


def answers_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out answers, with a header line or without; or a run or judgments, whose documents are entities."""
    shape = ("qid", "entity_id")
    headed = _headed(path, number, line, shape, ("score",), telling=(*shape, *_IDS, *_TELLING))
    if headed is not None:
        return headed
    separator = _white(line)
    # Entities may be titles, with blanks between tabs.
    n_fields = len(line.split(b"\t") if separator == "\t" else line.split())
    if n_fields > len(shape) + 1:
        layout = (qrels_layout if n_fields == len(_QRELS) else run_layout)(path, number, line)
        return replace(layout, names=tuple("entity_id" if name == "docno" else name for name in layout.names))
    names = (*shape, "score")[: max(n_fields, len(shape))]
    remedy = "write qid<tab>entity_id, NIL where there is no entity, or name the columns in a header line"
    return Layout(names, names[2:], separator, blanks=separator == " ", remedies=dict.fromkeys((1, 2, 3, 4), remedy))


def mentions_layout(path: Path, number: int, line: bytes) -> Layout:
    """Lay out mentions of documents, with a header line or without; mentions hold blanks, and commas."""
    shape = ("docno", "mention")
    headed = _headed(path, number, line, shape, (), telling=shape, separators="\t,")
    if headed is not None:
        return headed
    remedy = "write docno<tab>mention<tab>entity_id, NIL where there is none, or name the columns in a header line"
    names = (*shape, "entity_id") if line.count(b"\t") == len(shape) else shape
    return Layout(names, (), "\t", blanks=False, remedies=dict.fromkeys((1, 2, 3, 4), remedy))


def require_columns(path: Path, found: Sequence[str], wanted: Sequence[str], line: int | None = None) -> None:
    """Check the columns that a file names itself.

    Raises
    ------
    FileError
        One is missing, or stands twice; they are too many.
    """
    if len(found) > _MOST:
        # Each takes memory and time, whether it holds anything or not.
        raise FileError(path, f"has {len(found):,} columns, wanted at most {_MOST:,}; leave out the others", line=line)
    for name in wanted:
        if name not in found:
            near = nearest(name, found)
            there = ", ".join(found[:_LISTED]) + (", ..." if len(found) > _LISTED else "")
            message = f"wanted columns {', '.join(wanted)}; missing {name}; found {there}.{near}"
            raise FileError(path, message, line=line)
    for name, n in Counter(found).items():
        if n > 1:
            raise FileError(path, f"column {shown(name)} stands {n} times; keep one", line=line)


def _headed(
    path: Path,
    number: int,
    line: bytes,
    wanted: tuple[str, ...],
    numeric: tuple[str, ...],
    *,
    telling: tuple[str, ...],
    separators: str = "\t, ",
) -> Layout | None:
    """Lay out by a header line: told by any name in ``telling``, by an id's at its start, or by headings alone."""
    for separator in separators:
        if separator == "," and b"\t" in line:
            # Commas of a text, which may be longer than the csv module takes.
            continue
        try:
            names = split(line, separator, blanks=separator == " ")
        except MisfitError as error:
            raise FileError(path, str(error), line=number) from error
        words = [_MARKS.sub("", name.casefold()) for name in names]
        if words[0] in _IDS or _HEADINGS.issuperset(words) or not set(telling).isdisjoint((*names, *words)):
            require_columns(path, names, wanted, line=number)
            present = tuple(name for name in numeric if name in names)
            return Layout(tuple(names), present, separator, blanks=separator == " ", header=number)
    return None


def _headless(line: bytes, shapes: list[tuple[str, ...]], numeric: str) -> Layout:
    n_fields = len(line.split())
    names = next((shape for shape in shapes if len(shape) == n_fields), shapes[-1])
    columns = "<tab>".join(shapes[-1])
    remedy = f"name the columns in a header line, as {columns}, or remove what is too many"
    present = tuple(name for name in names if name == numeric)
    return Layout(
        names,
        present,
        _white(line),
        remedies=dict.fromkeys((1, 2, 3, 4), remedy),
        for_header=f"name its columns as {columns}, or remove the line",
    )


def _white(line: bytes) -> str:
    return "\t" if b"\t" in line.strip() else " "


def _fits(layout: Layout, line: bytes) -> bool:
    try:
        layout.check(line)
    except MisfitError:
        return False
    return True
