"""Tables of files of any shape: delimited text, JSON, markup, Parquet, spreadsheets, and datasets of ir_datasets."""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, InputError, printable, warn
from vbterrier.frames.contracts import near_miss
from vbterrier.frames.files.json_tables import (
    STATUS,
    is_json,
    json_table,
    object_table,
    parse_cbor,
    warn_of_failures,
)
from vbterrier.frames.files.kinds import RUN, first_line, header_layout, plain_layout
from vbterrier.frames.files.lines import is_ranked
from vbterrier.frames.files.linked import JSON_LINKERS, MAY_BE_LINKED, link_layout
from vbterrier.frames.files.mentions import LINKED, linked_rows
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.spreadsheets import workbook_as_csv
from vbterrier.frames.files.tables import (
    TEXT,
    parquet_columns,
    require_columns,
    text_table,
    typed_table,
    whole_table,
    with_labels,
)
from vbterrier.frames.id_spaces import normalised_ids
from vbterrier.frames.ids import column_flags, column_integers

if TYPE_CHECKING:
    from collections.abc import Callable

    from vbterrier.annotations import StrPath
    from vbterrier.frames.files.kinds import FileKind
    from vbterrier.frames.files.mentions import LinkLayout
    from vbterrier.frames.files.source import Layout


_LOG = logging.getLogger(__name__)
# The prefix of ids of ir_datasets, and the variable that sets the timeout of its downloads.
_IR_DATASETS, _TIMEOUT = "irds:", "IR_DATASETS_DL_TIMEOUT"
# Spreadsheets run cells that begin with one of these signs: exports guard them, this package by an apostrophe, Quepid
# by a blank.
_GUARDED = r"^(?:'('*[=+\-@\t\r])| ([=+\-@]))"
_LZ4 = b"\x04\x22\x4d\x18"
PROB = re.compile(r"prob_(\d+)")


@dataclass(frozen=True, eq=False)
class Loaded:
    """The table of a file."""

    frame: pd.DataFrame
    # lines (without a header), table (with a header, Parquet too), json_lines, nested (JSON), rank_eval, workbench,
    # markup, or linked
    form: str = "lines"
    n_unrated: int = 0  # rows without a rating, or queries of a run without documents, which are left out
    heads: tuple[str, ...] = ()  # the names of the required columns in the header
    separator: str = "\t"  # of a table


@dataclass(frozen=True)
class _Opened:
    """A file, a kind, and the first line of the file that is neither blank nor a comment."""

    source: Source
    kind: FileKind
    in_sheet: bool = False  # True for the text of a spreadsheet, whose first row is a header
    ids: str | None = None  # the id space of the entities, ``None`` for ids as in the file

    @cached_property
    def first(self) -> tuple[int, bytes]:
        """The number and bytes of the first line."""
        return first_line(self.kind, self.source)


@dataclass(frozen=True)
class FileFormat:
    """A format of files.

    - ``recognise``: returns the layout of a file of the format, ``None`` for other files
    - ``rows``: returns the table of a file in this layout
    """

    name: str
    recognise: Callable[[_Opened], Any]
    rows: Callable[[_Opened, Any], Loaded]


def load(path: StrPath, max_bytes: int | None, kind: FileKind, ids: str | None = None) -> Loaded:
    """Read a file of any shape as a table of a kind; with ``ids``, entities have ids of that space."""
    started = time.perf_counter()
    if is_dataset(path):
        loaded = _with_kind_columns(Path(str(path)), kind, Loaded(_of_ir_datasets(str(path), kind)))
    else:
        opened = _Opened(Source.at(path, max_bytes), kind, ids=ids)
        loaded = _with_kind_columns(opened.source.path, kind, _loaded_table(opened))
        if ids is not None and loaded.form != "linked":
            entities, where = loaded.frame["entity_id"].tolist(), str(opened.source.path)
            entities = normalised_ids(entities, [""] * len(entities), ids, name=where)
            loaded = replace(loaded, frame=loaded.frame.assign(entity_id=entities))
    rows, seconds = f"{len(loaded.frame):,}", time.perf_counter() - started
    _LOG.info("read %s, %s rows (%.2f s)", printable(path), rows, seconds)
    return loaded


def is_dataset(path: StrPath) -> bool:
    """Return True for the id of a dataset of ir_datasets."""
    return str(path).startswith(_IR_DATASETS)


def _loaded_table(opened: _Opened) -> Loaded:
    layouts = ((each, each.recognise(opened)) for each in FORMATS)
    chosen, layout = next((each, layout) for each, layout in layouts if layout is not None)
    _LOG.debug("%s: read as %s", printable(opened.source.path), chosen.name)
    return chosen.rows(opened, layout)


def _with_kind_columns(path: Path, kind: FileKind, loaded: Loaded) -> Loaded:
    """The table with the columns of its kind."""
    frame, is_named = loaded.frame, loaded.form not in ("lines", "markup", "linked")
    if is_named and (message := near_miss(frame.columns, kind.near)):
        raise FileError(path, message)
    if kind.unrated == "label" and loaded.form in ("lines", "table"):
        frame = _without_failures(path, frame)
    if kind.expects:
        frame = _expected_grades(path, frame)
    for name, value in kind.defaults.items():
        if name not in frame.columns:
            frame[name] = value
    if kind.is_ranked:
        if not len(frame):
            raise FileError(path, "has no rows; wanted a ranking: was the file written to its end?")
        frame = with_scores(path, frame, is_named=is_named)
    frame = _with_types(path, kind, frame)
    first = [name for name in kind.columns if name in frame.columns]
    others = [
        name for name in frame.columns if name not in kind.columns and (kind.others is None or name in kind.others)
    ]
    return replace(loaded, frame=frame[[*first, *others]])


def _with_types(path: Path, kind: FileKind, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with its optional columns of flags and counts as such, which text of a file only spells."""
    try:
        columns = {name: column_flags(frame[name], f"column {name!r}") for name in kind.flags if name in frame.columns}
        counts = {
            name: column_integers(frame[name], f"column {name!r}") for name in kind.counts if name in frame.columns
        }
    except InputError as error:
        raise FileError(path, str(error)) from error
    return frame.assign(**columns, **counts) if columns or counts else frame


def _load_parquet(opened: _Opened, _: Any) -> Loaded:
    source, kind = opened.source, opened.kind
    selection, columns = None, parquet_columns(source)
    # A file that lacks columns is refused with the names of all that it has.
    has_all = set(kind.required_columns) <= set(kind.standard_names(columns))
    if kind.others is not None and has_all and len(set(columns)) == len(columns):
        # Columns that no caller reads may be many.
        kept = {*kind.columns, *kind.vocabulary.optional, *kind.near}
        selection = [
            name
            for name, concept in zip(columns, kind.standard_names(columns), strict=True)
            if concept in kept or concept in kind.others
        ]
    table = whole_table(source, selection or None)
    columns = table.column_names
    table = table.rename_columns(kind.standard_names(columns))
    n_rows = len(table)
    if kind.unrated == "label" and "label" in table.column_names:
        table = with_labels(table)
    typed = typed_table(source, table, kind.required_columns, kind.numeric, whole=kind.whole, columns=columns)
    return Loaded(typed.to_pandas(), "table", n_rows - len(table))


def _spreadsheet(opened: _Opened, _: Any) -> Loaded:
    opened = replace(opened, source=workbook_as_csv(opened.source), in_sheet=True)
    return _text_rows(opened, _layout(opened))


def _link_layout(opened: _Opened) -> LinkLayout | None:
    may_be = opened.kind.links and MAY_BE_LINKED.match(opened.first[1])
    return link_layout(opened.source) if may_be else None


def _link_rows(opened: _Opened, layout: LinkLayout) -> Loaded:
    return Loaded(linked_rows(opened.source, layout, opened.kind.links, opened.ids), "linked")


def _json(opened: _Opened, first: tuple[int, bytes]) -> Loaded:
    kind = opened.kind
    hint = (
        f"objects with {' and '.join(kind.required_columns)}, or links of {JSON_LINKERS}"
        if kind.links in LINKED
        else ""
    )
    frame, n_unrated, form = json_table(opened.source, kind, *first, hint)
    return Loaded(frame, form, n_unrated)


def _layout(opened: _Opened) -> Layout:
    """The layout of delimited text, with or without a header."""
    kind, path = opened.kind, opened.source.path
    number, line = opened.first
    layout = header_layout(kind, path, number, line, must=opened.in_sheet)
    if layout is not None:
        columns, text = ", ".join(layout.names), "%s: recognised a table with the columns %s, separated by %r"
        _LOG.info(text, printable(path), columns, layout.separator)
        return layout
    layout = plain_layout(kind, path, number, line)
    _LOG.info("%s: recognised lines of %s", printable(path), layout.kind or layout.form or " ".join(layout.names))
    return replace(layout, comment=kind.comment)


def _text_rows(opened: _Opened, layout: Layout) -> Loaded:
    source, kind, number = opened.source, opened.kind, opened.first[0]
    if layout.header:
        table, n_unrated = text_table(source, layout)
        return Loaded(_without_guards(table, kind).to_pandas(), "table", n_unrated, layout.heads, layout.separator)
    # Comments at the start are skipped, and others are looked for.
    skipped = number - 1 if kind.comment is not None and source.first()[0] < number else 0
    table, _ = text_table(source, replace(layout, header=skipped))
    return Loaded(table.to_pandas())


def _without_guards(table: Any, kind: FileKind) -> Any:
    """Remove the guards of ids that begin with a sign of a formula."""
    for name in ("qid", "docno") if kind.is_pairs else ():
        column = table[name]
        if any(map(_has_guards, column.chunks)):
            bare = pc.replace_substring_regex(column, _GUARDED, r"\1\2")
            table = table.set_column(table.column_names.index(name), name, bare.cast(TEXT))
    return table


def _has_guards(chunk: Any) -> bool:
    """Return True if a text may begin with a guard; Arrow's comparison takes several times as long."""
    if not len(chunk):
        return False
    starts = np.frombuffer(chunk.buffers()[1], dtype=np.int64)[chunk.offset : chunk.offset + len(chunk)]
    signs = np.frombuffer(chunk.buffers()[2], dtype=np.uint8)[starts]
    return bool(((signs == ord("'")) | (signs == ord(" "))).any())


def _is_twice_packed(source: Source) -> bool:
    with source.stream() as stream:
        return stream.read(len(_LZ4)) == _LZ4


def _twice_packed(opened: _Opened, _: Any) -> Loaded:
    """The object that ranx packed twice with lz4, as CBOR."""
    source = opened.source
    try:
        packed = parse_cbor(pa.CompressedInputStream(pa.BufferReader(source.text()), "lz4").read())
    except (ValueError, IndexError, KeyError, OSError, RecursionError) as error:
        message = f"is packed twice with lz4, as by ranx, but holds no CBOR that is read ({error}): save it as JSON"
        raise FileError(source.path, message) from error
    frame, n_unrated = object_table(source, opened.kind, packed)
    return Loaded(frame, "json", n_unrated)


# The formats, of which the first that recognises a file reads it.
FORMATS = (
    FileFormat("Parquet", lambda opened: opened.source.is_parquet or None, _load_parquet),
    FileFormat("a spreadsheet", lambda opened: opened.source.is_workbook or None, _spreadsheet),
    FileFormat("ranx's object", lambda opened: _is_twice_packed(opened.source) or None, _twice_packed),
    FileFormat("linked mentions", _link_layout, _link_rows),
    FileFormat(
        "markup",
        lambda opened: opened.kind.markup if opened.first[1].lstrip()[:1] == b"<" else None,
        lambda opened, topics: Loaded(topics(opened.source), "markup"),
    ),
    FileFormat("JSON", lambda opened: opened.first if is_json(opened.first[1]) else None, _json),
    FileFormat("text", _layout, _text_rows),
)


def _without_failures(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table without the failed answers of a judge, which are counted."""
    if STATUS not in frame.columns:
        return frame
    failed = frame[STATUS].astype(str) == "0"
    if failed.any():
        warn_of_failures(path, int(failed.sum()), len(frame))
    return frame[~failed].reset_index(drop=True)


def _expected_grades(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Labels of a table of LARA: expected grades under the probabilities prob_0, prob_1, ..., if it has them."""
    probs = [name for name in frame.columns if PROB.fullmatch(name)]
    if not probs:
        require_columns(path, list(frame.columns), ("qid", "docno", "label"))
        return frame
    try:
        chances = frame[probs].astype("float64")
    except ValueError as error:
        raise FileError(path, f"columns {', '.join(probs)}: wanted probabilities, from 0 to 1 ({error})") from error
    total = chances.sum(axis=1)
    bad = (chances < 0).any(axis=1) | ~(total > 0)
    if bad.any():
        first = frame[bad].iloc[0]
        message = f"document {first['docno']!r} of query {first['qid']!r}: wanted probabilities, from 0 to 1"
        raise FileError(path, message)
    grades = np.array([int(name[5:]) for name in probs])
    return frame.assign(label=chances.to_numpy() @ grades / total.to_numpy())


def is_read_whole(source: Source) -> bool:
    """Return True for a run that cannot be read in blocks: a table with a header, JSON, ranx's, three columns."""
    if source.is_parquet:
        return False
    if source.is_workbook or _is_twice_packed(source):
        return True
    number, line = first_line(RUN, source)
    is_table = is_json(line) or is_ranked(line) or header_layout(RUN, source.path, number, line) is not None
    return is_table or (MAY_BE_LINKED.match(line) is not None and link_layout(source) is not None)


def with_scores(path: Path, frame: pd.DataFrame, *, is_named: bool = True) -> pd.DataFrame:
    """Add the scores of a run without them, from its ranks or from the order of its rows."""
    if "score" not in frame.columns:
        if "rank" not in frame.columns:
            warn(f"{printable(path)}: no column score or rank; documents are ranked in the order of rows")
        elif not is_named:
            _require_ranks(path, frame)
        order = frame["rank"] if "rank" in frame.columns else frame.groupby("qid", sort=False).cumcount()
        frame["score"] = -order.astype("float64")
    return frame


def _require_ranks(path: Path, frame: pd.DataFrame) -> None:
    """Refuse a third column that is no rank: from 0 or 1 up within each topic."""
    before = frame.groupby("qid", sort=False)["rank"].shift(fill_value=-1)
    wrong = ((frame["rank"] <= before) | ((before < 0) & (frame["rank"] > 1))).to_numpy()
    if wrong.any():
        qid, docno, rank = frame.loc[int(np.argmax(wrong)), ["qid", "docno", "rank"]]
        raise FileError(
            path,
            f"recognised as a run of MS MARCO, qid docno rank, but the ranks of topic {qid!r} do not rise from 0 or 1: "
            f"found {rank} at document {docno!r}; name other columns in a first line, as qid<tab>docno<tab>score",
        )


def _of_ir_datasets(path: str, kind: FileKind) -> pd.DataFrame:
    """Queries or qrels of ir_datasets, if their files are on this computer; nothing is downloaded."""
    import ir_datasets

    name, part = path.removeprefix(_IR_DATASETS), kind.dataset
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise FileError(path, "ir_datasets has no dataset of this name; `ir_datasets list` prints all") from error
    if not part or not getattr(dataset, f"has_{part}")():
        has = [each for each in ("queries", "qrels") if getattr(dataset, f"has_{each}")()]
        raise FileError(
            path, f"has {' and '.join(has) or 'neither queries nor qrels'}; wanted a path of {', '.join(kind.columns)}"
        )
    before = os.environ.get(_TIMEOUT)
    # With this timeout, requests fails before it connects.
    os.environ[_TIMEOUT] = "0"
    try:
        rows = list(getattr(dataset, f"{part}_iter")())
    except (OSError, RuntimeError, ValueError) as error:
        remedy = f"`ir_datasets export {name} {part}` fetches them"
        raise FileError(
            path, f"its {part} are not on this computer, and are not downloaded unasked; {remedy}"
        ) from error
    finally:
        if before is None:
            del os.environ[_TIMEOUT]
        else:
            os.environ[_TIMEOUT] = before
    if part == "queries":
        return pd.DataFrame([(row.query_id, row.default_text()) for row in rows], columns=["qid", "query"])
    iterations = [str(getattr(row, "subtopic_id", getattr(row, "iteration", "0"))) for row in rows]
    judged = [(row.query_id, row.doc_id, row.relevance) for row in rows]
    frame = pd.DataFrame(judged, columns=["qid", "docno", "label"]).astype(
        {"label": "int64" if "label" in kind.whole else "float64"}
    )
    frame.insert(1, "iteration", iterations)
    return frame
