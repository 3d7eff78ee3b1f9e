"""JSON as tables: lines of objects, lists of objects, and nested objects; CBOR, as ranx packs it."""

from __future__ import annotations

import json
import logging
import math
import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import FileError, agreeing, examples, printable, warn
from vbterrier.frames.files.source import IDS, RepeatedMemberError, parse_json, quoted_text, real_number
from vbterrier.frames.files.tables import warn_of_zeros
from vbterrier.frames.labels import fraction_remedy
from vbterrier.frames.nested import MAX_MEMBERS, is_nested, item_records, nested_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.frames.files.kinds import FileKind
    from vbterrier.frames.files.source import Source


_LOG = logging.getLogger(__name__)
# The beginning of an object or a list of JSON; a query id may be a brace or a bracket.
_JSON = re.compile(rb'\s*(\{\s*(["}]|$)|\[\s*([{\["\]]|$))')
# UMBRELA's column, 0 for an answer without a judgment, whose judgment is then 0, too.
STATUS = "result_status"
_RANK_EVAL = ("requests", "details", "rank_eval")


def is_json(line: bytes) -> bool:
    """Return True for the first line of JSON, which ends with a sign of JSON, or a quote."""
    return _JSON.match(line) is not None and line.rstrip()[-1:] in b'{}[],:"'


def json_table(
    source: Source, kind: FileKind, number: int, line: bytes, hint: str = ""
) -> tuple[pd.DataFrame, int, str]:
    """Read JSON: ids and texts, integers as their digits, numbers, then all other members.

    ``hint``: what the file may hold, for the error of a missing member.

    Returns the frame, the number of rows without a rating, which are left out, and the form of the file:
    ``json_lines``, ``rank_eval``, ``workbench`` or ``nested``.
    """
    value = _document(source, number, line)
    if value is None:
        return *_json_lines_frame(source, kind, hint), "json_lines"
    if isinstance(value, dict) and any(name in value for name in _RANK_EVAL) and kind.is_pairs:
        frame, form = _rank_eval(source, value, kind), "rank_eval"
    else:
        is_workbench = isinstance(value, dict) and "judgmentRatings" in value
        frame, form = _nested_frame(source, value, kind), "workbench" if is_workbench else "nested"
    return *_checked_frame(source, kind, frame, None, document=value, hint=hint), form


def object_table(source: Source, kind: FileKind, value: Any) -> tuple[pd.DataFrame, int]:
    """The table of an object that was read from another format."""
    return _checked_frame(source, kind, _nested_frame(source, value, kind), None)


def _nested_frame(source: Source, value: Any, kind: FileKind) -> pd.DataFrame:
    try:
        frame = nested_rows(value, kind.vocabulary)
    except ValueError as error:
        raise FileError(source.path, str(error)) from error
    columns = ", ".join(map(str, frame.columns))
    _LOG.info("%s: recognised nested JSON with the columns %s", printable(source.path), columns)
    return frame


def _document(source: Source, number: int, line: bytes) -> Any:
    """The object or list of a whole file, ``None`` for JSON lines."""
    if _is_record(line):
        return None
    try:
        text = source.text().decode("utf-8-sig")
        value = parse_json(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FileError(source.path, "holds half of a surrogate pair; write the file again") from error
    except RepeatedMemberError as error:
        raise FileError(source.path, str(error)) from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            # The first of several lines.
            return None
        message = f"is not JSON ({error.msg}); repair the line"
        raise FileError(source.path, message, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise FileError(source.path, f"is not JSON ({error}): {quoted_text(line)}", line=number) from error
    return value


def _is_record(line: bytes) -> bool:
    """Return True for a line that is a record of JSON lines, not a whole table, valid or not."""
    try:
        first = parse_json(line.decode())
    except (RepeatedMemberError, RecursionError):
        return True
    except ValueError:
        return line.rstrip().endswith(b"}") and line.lstrip().startswith(b"{")
    # The ids of a mapping of ids to texts have digits.
    is_mapping = isinstance(first, dict) and all(re.search(r"\d", name) for name in first)
    return isinstance(first, dict) and not is_nested(first) and not (first and is_mapping)


def parse_object(source: Source, number: int, line: bytes) -> dict[str, Any]:
    """Parse a line of JSON lines."""
    try:
        value = parse_json(line.decode())
        if b"\\u" in line:
            # JSON can spell half a surrogate pair, which is not valid text.
            json.dumps(value, ensure_ascii=False).encode()
    except RepeatedMemberError as error:
        raise FileError(source.path, str(error), line=number) from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            source.path, f"is not JSON ({error}): {quoted_text(line)}; repair the line", line=number
        ) from error
    if not isinstance(value, dict):
        raise FileError(source.path, f"wanted an object in each line, found {quoted_text(line)}", line=number)
    return value


def _json_lines_frame(source: Source, kind: FileKind, hint: str) -> tuple[pd.DataFrame, int]:
    rows, numbers, members = [], [], dict[str, None]()
    renamed: dict[tuple[str, ...], list[str]] = {}
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            records = item_records(parse_object(source, number, line), kind.vocabulary)
        except ValueError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(source.path, str(error), line=number) from error
        for record in records:
            names = tuple(record)
            if names not in renamed:
                columns = renamed[names] = kind.vocabulary.standard_names(names)
                members |= dict.fromkeys(columns)
                if len(members) > MAX_MEMBERS:
                    # Each member is a column of all rows: a small file would take much memory.
                    message = f"has more than {MAX_MEMBERS:,} different members; nest them"
                    raise FileError(source.path, message, line=number)
                if len(set(columns)) < len(columns):
                    message = f"has two members of one meaning among {', '.join(names)}; keep one"
                    raise FileError(source.path, message, line=number)
            rows.append(dict(zip(renamed[names], record.values(), strict=True)))
            numbers.append(number)
    _LOG.info("%s: recognised JSON lines with the members %s", printable(source.path), ", ".join(members))
    frame = pd.DataFrame(rows, columns=list(members), dtype=object)
    return _checked_frame(source, kind, frame, numbers, rows, hint=hint)


# Members and levels of an outline.
_N_OUTLINED, _MAX_OUTLINE_LEVELS = 6, 4


def outline(value: Any, depth: int = _MAX_OUTLINE_LEVELS) -> str:
    """Return the members of JSON by level, each list by its first element.

    >>> outline({"d1": {"entities": [{"id": "Q90", "score": 0.5}, {}]}, "d2": {}})
    '{d1: {entities: [{id, score}]}, d2: {}}'
    """
    if isinstance(value, list):
        return f"[{outline(value[0], depth - 1)}]" if value and depth else "[]" if not value else "[...]"
    if not isinstance(value, dict):
        return "text" if isinstance(value, str) else "null" if value is None else type(value).__name__
    if not depth and value:
        return "{...}"
    nested = (dict, list)
    parts = [
        f"{printable(name)}: {outline(each, depth - 1)}" if isinstance(each, nested) else printable(name)
        for name, each in list(value.items())[:_N_OUTLINED]
    ]
    return "{" + ", ".join(parts + ["..."] * (len(value) > _N_OUTLINED)) + "}"


def _checked_frame(
    source: Source,
    kind: FileKind,
    frame: pd.DataFrame,
    numbers: list[int] | None,
    rows: Sequence[Mapping[str, Any]] | None = None,
    document: Any = None,
    hint: str = "",
) -> tuple[pd.DataFrame, int]:
    """Check ids and numbers of a frame of objects, and leave out failed answers and rows without a rating.

    - ``numbers``: the line of each row, ``None`` for rows without lines
    - ``rows``: the objects of the lines
    - ``document``: the value of a file that is no JSON lines
    - ``hint``: what the file may hold, for the error of a missing member
    """
    frame, kept = _without_failures(source, kind, frame, numbers)
    if kind.is_pairs and "prob" in frame.columns:
        frame = _with_expected(source, frame, kept, numbers)
    n_unrated = 0
    if kind.unrated == "label" and "label" in frame.columns:
        empty = _is_empty(frame["label"])
        n_unrated = int(empty.sum())
        frame, kept = frame[~empty], kept[~empty]

    def fail(place: int, name: str, requirement: str) -> None:
        row = int(kept[place])
        value = frame[name].iloc[place] if name in frame.columns else None
        is_missing = name not in frame.columns or (rows is not None and name not in rows[row])
        text = "missing" if is_missing else quoted_text(str(value)) if requirement != "text" else repr(value)
        seen = _member_names(frame, None if rows is None else rows[row], document, hint if is_missing else "")
        where = "" if numbers is not None else f"object {row + 1}: "
        line = None if numbers is None else numbers[row]
        message = f"{where}member {name!r} is {text}, wanted {requirement}"
        raise FileError(source.path, message + seen * (is_missing or requirement == "text"), line=line)

    columns: dict[str, Any] = {}
    for name in frame.columns if len(frame) else ():
        values = frame[name].tolist()
        if name in kind.numeric:
            columns[name] = _numbers(values, name, kind, fail)
            if name == "label":
                warn_of_zeros(source.path, (value for value in set(map(str, values)) if value[:1] == "0"))
        elif (name in kind.columns or name in IDS & set(kind.vocabulary.named)) and name != kind.unrated:
            columns[name] = _texts(values, name, fail)
        else:
            columns[name] = values
    for name in kind.required_columns:
        if len(frame) and name not in columns:
            fail(0, name, _requirement(kind, name, ""))
    return _typed_frame(columns, frame), n_unrated


def _member_names(frame: pd.DataFrame, record: Mapping[str, Any] | None, document: Any, hint: str) -> str:
    """The members of a record, or the columns of a frame; with a hint, the members of the file, and the hint."""
    if hint:
        # Nested values are columns of the frame, whose names the file need not have.
        return f"; found {outline(document if record is None else record)}; wanted {hint}"
    return f"; found {', '.join(map(str, frame.columns if record is None else record)) or 'none'}"


def _typed_frame(columns: dict[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    if not columns:
        return pd.DataFrame({name: [] for name in frame.columns})
    try:
        return pd.DataFrame(columns)
    except OverflowError:
        # pandas 2 wants a float of every whole number.
        return pd.DataFrame(
            {name: pd.Series(values, dtype=getattr(values, "dtype", object)) for name, values in columns.items()}
        )


def _requirement(kind: FileKind, name: str, value: Any) -> str:
    if name not in kind.numeric:
        return "text"
    if name in kind.whole:
        return f"a whole number of at most 64 bits{fraction_remedy(value) if name == 'label' else ''}"
    return "a finite number" if kind.unrated == "label" else "a number"


def _is_empty(column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Cells of null and of empty text; NaN is a fault, or a missing member."""
    return np.array([cell is None or (isinstance(cell, str) and not cell.strip()) for cell in column], dtype=bool)


def _without_failures(
    source: Source, kind: FileKind, frame: pd.DataFrame, numbers: list[int] | None
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The rows without the failed answers of a judge, which are counted, and their positions."""
    kept = np.arange(len(frame))
    failed = np.zeros(len(frame), dtype=bool)
    if STATUS in frame.columns:
        failed |= (frame[STATUS].astype(str) == "0").to_numpy()
    if kind.numeric and not kind.whole and kind.unrated == "label" and "label" in frame.columns:
        null = frame["label"].map(lambda cell: cell is None).to_numpy(dtype=bool)
        failed |= null & (frame["prob"].isna().to_numpy() if "prob" in frame.columns else True)
    if failed.any():
        at = "" if numbers is None else f" (lines {examples(np.array(numbers)[failed].tolist())})"
        warn_of_failures(source.path, int(failed.sum()), len(frame), at)
    return frame[~failed], kept[~failed]


def _with_expected(
    source: Source, frame: pd.DataFrame, kept: NDArray[np.int64], numbers: list[int] | None
) -> pd.DataFrame:
    """Labels that are given as probabilities of the grades: expected grades."""
    label = frame["label"].tolist() if "label" in frame.columns else [None] * len(frame)
    for place, (value, probs) in enumerate(zip(label, frame["prob"].tolist(), strict=True)):
        if value is None or value != value:  # noqa: PLR0124 - NaN, of rows without the member
            label[place] = expected_grade(probs)
            if label[place] is None:
                text = "missing" if probs != probs else quoted_text(repr(probs))  # noqa: PLR0124 - NaN
                message = f"member 'prob' is {text}, wanted a list of probabilities, or grades and probabilities"
                line = None if numbers is None else numbers[int(kept[place])]
                raise FileError(source.path, message, line=line)
    return frame.assign(label=pd.Series(label, frame.index, dtype=object))


def expected_grade(value: Any) -> float | None:
    """Return the expected grade under probabilities, ``None`` for anything else."""
    pairs = list(enumerate(value)) if isinstance(value, list) else []
    pairs = list(value.items()) if isinstance(value, dict) else pairs
    numbers = [(parse_number(grade), parse_number(prob)) for grade, prob in pairs]
    grades = [grade for grade, _ in numbers if grade is not None]
    probs = [prob for _, prob in numbers if prob is not None]
    if len(grades) < len(pairs) or len(probs) < len(pairs) or sum(probs) <= 0 or min(probs) < 0:
        return None
    return sum(grade * prob for grade, prob in zip(grades, probs, strict=True)) / sum(probs)


def warn_of_failures(path: Path, n_failed: int, n_answers: int, where: str = "") -> None:
    """Warn of answers of a judge without a label."""
    warn(f"{printable(path)}: {n_failed} of {n_answers} answers of the judge failed and give no label{where}")


def _texts(values: list[Any], name: str, fail: Any) -> list[str]:
    """Texts, and integers as their digits."""
    kinds = set(map(type, values))
    if kinds <= {str, int}:
        texts = values if kinds == {str} else [value if type(value) is str else str(value) for value in values]
        if name not in IDS or all(texts):
            return texts
    for place, value in enumerate(values):
        is_text = isinstance(value, str) and (value or name not in IDS)
        if not is_text and (not isinstance(value, int) or isinstance(value, bool)):
            fail(place, name, "text")
    return [str(value) for value in values]


def _numbers(values: list[Any], name: str, kind: FileKind, fail: Any) -> NDArray[Any]:
    is_whole = name in kind.whole
    if set(map(type, values)) == {int} and is_whole and min(values) >= -(2**63) and max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    finite = kind.unrated == "label"
    numbers = [parse_number(value, finite=finite) for value in values]
    for place, number in enumerate(numbers):
        if number is None or (is_whole and not (abs(number) < 2**63 and number % 1 == 0)):
            fail(place, name, _requirement(kind, name, values[place]))
    if not is_whole:
        return np.array(numbers, dtype=np.float64)
    return np.array([value if type(value) is int else int(float(value)) for value in values], dtype=np.int64)


def parse_number(value: Any, *, finite: bool = True) -> float | None:
    """Return a number, ``None`` for NaN, infinity if ``finite``, and anything else; text may hold a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, np.number)):
        return None
    try:
        # As in other files: float() would read "1_0" and digits of other scripts.
        number = real_number(value) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) or (math.isinf(number) and not finite) else None


def _rank_eval(source: Source, document: dict[str, Any], kind: FileKind) -> pd.DataFrame:
    """Ratings, or ranked hits, of the ranking evaluation API of OpenSearch and Elasticsearch."""
    document = document.get("rank_eval", document)
    if not isinstance(document, dict) or not {"requests", "details"} & set(document):
        raise FileError(source.path, "wanted a JSON object with requests or details, those of _rank_eval")
    is_run = kind.unrated != "label"
    if is_run and not isinstance(document.get("details"), dict):
        raise FileError(source.path, "wanted the response of _rank_eval with details; a request has no hits")
    if is_run and (failures := document.get("failures")):
        raise FileError(
            source.path, f"the search failed for {agreeing(len(failures), 'queries')} ({examples(failures)}); repeat it"
        )
    rows = []
    for qid, documents in _rated_queries(
        source, document, "details" if is_run or "requests" not in document else "requests"
    ):
        for rank, one in enumerate(documents, 1):
            hit = one.get("hit", one) if isinstance(one, dict) else one
            if not isinstance(hit, dict):
                message = f"query {qid!r}: wanted objects with _index and _id, found {examples([hit])}"
                raise FileError(source.path, message)
            docno = _text(source, hit.get("_id"), f"_id of a document of {qid!r}")
            value = (-float(rank), rank) if is_run else (one.get("rating"),)
            rows.append((qid, docno, *value, str(hit.get("_index", ""))))
    values = ["score", "rank"] if is_run else ["label"]
    return pd.DataFrame(rows, columns=["qid", "docno", *values, "index"], dtype=object)


def _rated_queries(source: Source, record: dict[str, Any], member: str) -> Iterator[tuple[str, list[Any]]]:
    """The queries of a request, or of a response, with their rated documents or hits."""
    every = record[member]
    if member == "requests":
        for place, request in enumerate(every if isinstance(every, list) else [None]):
            ratings = request.get("ratings") if isinstance(request, dict) else None
            if not isinstance(ratings, list):
                raise FileError(source.path, f"request {place} has no list of ratings; wanted id and ratings")
            yield _text(source, request.get("id"), f"id of request {place}"), ratings
        return
    for qid, detail in every.items() if isinstance(every, dict) else [("details", None)]:
        hits = detail.get("hits") if isinstance(detail, dict) else None
        if not isinstance(hits, list):
            raise FileError(source.path, f"query {qid!r} has no list of hits; wanted the whole response of _rank_eval")
        yield qid, hits


def _text(source: Source, value: Any, what: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise FileError(source.path, f"{what} is {value!r}, wanted text that is not empty")
    return value


def parse_cbor(content: bytes) -> Any:
    """Parse CBOR with maps, texts and numbers (RFC 8949), as ranx writes runs and judgments.

    >>> parse_cbor(bytes.fromhex("a1627131a162643102"))
    {'q1': {'d1': 2}}
    """
    value, stop = _cbor_item(content, 0)
    if stop != len(content):
        raise ValueError(f"{len(content) - stop} bytes follow the object")
    return value


def _cbor_item(content: bytes, start: int) -> tuple[Any, int]:
    major, about = content[start] >> 5, content[start] & 31
    start += 1
    floats = {25: ">e", 26: ">f", 27: ">d"}
    if major == 7:  # noqa: PLR2004 - simple values and floats
        if about in floats:
            size = 1 << (about - 24)
            return struct.unpack_from(floats[about], content, start)[0], start + size
        return {20: False, 21: True, 22: None}[about], start
    number = about
    if about >= 24:  # noqa: PLR2004 - the number follows, in 1, 2, 4 or 8 bytes
        size = 1 << (about - 24)
        number, start = int.from_bytes(content[start : start + size], "big"), start + size
    if major in (0, 1):
        return number if major == 0 else -1 - number, start
    if major in (2, 3):
        text = content[start : start + number]
        return text.decode() if major == 3 else text, start + number  # noqa: PLR2004 - text
    values = []
    for _ in range(number * (major - 3)):
        value, start = _cbor_item(content, start)
        values.append(value)
    if major == 4:  # noqa: PLR2004 - a list
        return values, start
    if major == 5:  # noqa: PLR2004 - a map
        return dict(zip(values[::2], values[1::2], strict=True)), start
    raise ValueError(f"type {major} of CBOR is not read")
