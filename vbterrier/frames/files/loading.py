"""Tables of files of any shape: delimited text, JSON, markup, Parquet, spreadsheets, and datasets of ir_datasets."""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, examples, printable, warn
from vbterrier.frames.contracts import near_miss
from vbterrier.frames.files.json_tables import (
    STATUS,
    cbor_of,
    is_json,
    json_table,
    object_table,
    warn_of_failures,
)
from vbterrier.frames.files.kinds import (
    LABELS,
    QRELS,
    RUN,
    TOPICS,
    first_line,
    header_layout,
    is_ranked,
    plain_layout,
)
from vbterrier.frames.files.linked import MAY_BE_LINKED, link_layout, linked_rows
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.spreadsheets import workbook_as_csv
from vbterrier.frames.files.tables import (
    TEXT,
    require_columns,
    text_table,
    typed_table,
    whole_table,
    with_labels,
)

if TYPE_CHECKING:
    from pathlib import Path

    from vbterrier.annotations import StrPath
    from vbterrier.frames.files.kinds import FileKind
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


def load(path: StrPath, max_bytes: int | None, kind: FileKind) -> Loaded:
    """Read a file of any shape as a table of a kind."""
    started = time.perf_counter()
    is_file = not str(path).startswith(_IR_DATASETS)
    loaded = _loaded(Source.at(path, max_bytes), kind) if is_file else Loaded(_of_ir_datasets(str(path), kind))
    rows, seconds = f"{len(loaded.frame):,}", time.perf_counter() - started
    _LOG.info("read %s, %s rows (%.2f s)", printable(path), rows, seconds)
    return loaded


def _loaded(source: Source, kind: FileKind) -> Loaded:
    loaded = _parquet(source, kind) if source.is_parquet else _text(source, kind)
    frame, is_named = loaded.frame, loaded.form not in ("lines", "markup", "linked")
    if is_named and (message := near_miss(frame.columns, kind.near)):
        raise FileError(source.path, message)
    if kind.unrated == "label" and loaded.form in ("lines", "table"):
        frame = _answered(source, frame)
    if kind is LABELS:
        frame = _expected(source, frame)
    for name, value in kind.defaults.items():
        if name not in frame.columns:
            frame[name] = value
    if kind is RUN:
        frame = with_scores(source.path, frame, is_named=is_named)
        _warn_of_systems(source.path, frame)
    first = [name for name in kind.columns if name in frame.columns]
    others = [
        name for name in frame.columns if name not in kind.columns and (kind.others is None or name in kind.others)
    ]
    return replace(loaded, frame=frame[[*first, *others]])


def _warn_of_systems(path: Path, frame: pd.DataFrame) -> None:
    """Warn of topics with rows of several systems, as in joined files of runs; they are ranked as one run."""
    for column in ("name", "system"):
        if column in frame.columns and len(frame) and not (frame[column] == frame[column].iloc[0]).all():
            pairs = frame[["qid", column]].drop_duplicates()
            if pairs["qid"].duplicated().any():
                names = pairs[column].unique()
                warn(
                    f"{printable(path)}: topics have rows of several of {len(names)} systems ({examples(names)}), "
                    "which are ranked as one run; make a file of each system"
                )


def _parquet(source: Source, kind: FileKind) -> Loaded:
    table = whole_table(source)
    columns = table.column_names
    table = table.rename_columns(kind.renamed(columns))
    n_rows = len(table)
    if kind.unrated == "label" and "label" in table.column_names:
        table = with_labels(table)
    typed = typed_table(source, table, kind.required, kind.numeric, whole=kind.whole, columns=columns)
    return Loaded(typed.to_pandas(), "table", n_rows - len(table))


def _text(source: Source, kind: FileKind) -> Loaded:
    """The table of anything but Parquet."""
    in_sheet = source.is_workbook
    source = workbook_as_csv(source) if in_sheet else source
    if (packed := _twice_packed(source)) is not None:
        frame, n_unrated = object_table(source, kind, packed)
        return Loaded(frame, "json", n_unrated)
    number, line = first_line(kind, source)
    if kind.links and not in_sheet and MAY_BE_LINKED.match(line) and (linked := link_layout(source)) is not None:
        return Loaded(linked_rows(source, linked, kind.links), "linked")
    if kind.markup is not None and line.lstrip()[:1] == b"<":
        return Loaded(kind.markup(source), "markup")
    if is_json(line) and not in_sheet:
        frame, n_unrated, form = json_table(source, kind, number, line)
        return Loaded(frame, form, n_unrated)
    layout = _layout(kind, source.path, number, line, must=in_sheet)
    if not layout.header:
        # Comments at the start are skipped, and others are looked for.
        skipped = number - 1 if kind.comment is not None and source.first()[0] < number else 0
        table, _ = text_table(source, replace(layout, header=skipped, comment=kind.comment))
        return Loaded(table.to_pandas())
    table, n_unrated = text_table(source, layout)
    return Loaded(_unguarded(table, kind).to_pandas(), "table", n_unrated, layout.heads, layout.separator)


def _layout(kind: FileKind, path: Path, number: int, line: bytes, *, must: bool) -> Layout:
    """Return the layout of text, with or without a header."""
    layout = header_layout(kind, path, number, line, must=must)
    if layout is not None:
        columns = ", ".join(layout.names)
        _LOG.info(
            "%s: recognised a table with the columns %s, separated by %r", printable(path), columns, layout.separator
        )
        return layout
    plain = plain_layout(kind, path, number, line)
    _LOG.info("%s: recognised lines of %s", printable(path), plain.kind or plain.form or " ".join(plain.names))
    return plain


def _unguarded(table: Any, kind: FileKind) -> Any:
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


def _twice_packed(source: Source) -> Any:
    """The object that ranx packed twice with lz4, as CBOR; ``None`` for other files."""
    with source.stream() as stream:
        head = stream.read(len(_LZ4))
    if head != _LZ4:
        return None
    try:
        return cbor_of(pa.CompressedInputStream(pa.BufferReader(source.text()), "lz4").read())
    except (ValueError, IndexError, KeyError, OSError, RecursionError) as error:
        message = f"is packed twice with lz4, as by ranx, but holds no CBOR that is read ({error}): save it as JSON"
        raise FileError(source.path, message) from error


def _answered(source: Source, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table without the failed answers of a judge, which are counted."""
    if STATUS not in frame.columns:
        return frame
    failed = frame[STATUS].astype(str) == "0"
    if failed.any():
        warn_of_failures(source, int(failed.sum()), len(frame))
    return frame[~failed].reset_index(drop=True)


def _expected(source: Source, frame: pd.DataFrame) -> pd.DataFrame:
    """Labels of a table of LARA: expected grades under the probabilities prob_0, prob_1, ..., if it has them."""
    probs = [name for name in frame.columns if PROB.fullmatch(name)]
    if not probs:
        require_columns(source.path, list(frame.columns), ("qid", "docno", "label"))
        return frame
    try:
        chances = frame[probs].astype("float64")
    except ValueError as error:
        raise FileError(
            source.path, f"columns {', '.join(probs)}: wanted probabilities, from 0 to 1 ({error})"
        ) from error
    total = chances.sum(axis=1)
    bad = (chances < 0).any(axis=1) | ~(total > 0)
    if bad.any():
        first = frame[bad].iloc[0]
        message = f"document {first['docno']!r} of query {first['qid']!r}: wanted probabilities, from 0 to 1"
        raise FileError(source.path, message)
    grades = np.array([int(name[5:]) for name in probs])
    return frame.assign(label=chances.to_numpy() @ grades / total.to_numpy())


def is_read_whole(source: Source) -> bool:
    """Return True for a run that cannot be read in blocks: a table with a header, JSON, three columns."""
    if source.is_parquet or source.is_workbook:
        return source.is_workbook
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

    name, part = path.removeprefix(_IR_DATASETS), "queries" if kind is TOPICS else "qrels" if kind is QRELS else ""
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
    if kind is TOPICS:
        return pd.DataFrame([(row.query_id, row.default_text()) for row in rows], columns=["qid", "query"])
    iterations = [str(getattr(row, "subtopic_id", getattr(row, "iteration", "0"))) for row in rows]
    judged = [(row.query_id, row.doc_id, row.relevance) for row in rows]
    frame = pd.DataFrame(judged, columns=["qid", "docno", "label"]).astype({"label": "int64"})
    frame.insert(1, "iteration", iterations)
    return frame
