"""Writers of runs, qrels, intents, tags and queries; a file appears only once it is complete."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import stat
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError, InputError, ParameterError, excerpt, path_parameter, printable
from vbterrier.frames.columns import TAGS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.source import IDS, is_there
from vbterrier.frames.files.tables import TEXT
from vbterrier.frames.ids import column_ids, column_integers, column_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    import pandas as pd

    from vbterrier.annotations import StrPath
    from vbterrier.frames.ids import Ids


_BLOCK_ROWS = 1 << 20
# The empty id, white space of any reader, NUL, and the byte-order mark, which readers drop at the start of a file.
_UNWRITABLE = r"^$|[\s\x00\x0b\x1c-\x1f\x85\p{Z}\x{FEFF}]"
_UNWRITABLE_FIELD = r"[\t\r\n\x00]"
_QUERIES = ("qid", "docno", "mention")


def write_run(frame: Any, path: StrPath, name: str = "vbterrier") -> None:
    """Write a TREC run, compressed if the name ends in ``.gz``.

    Topics are written in order of appearance, their rows by ``rank``, or in the order of the frame without that column;
    the ranks of the file count from 1. Scores are written so that they read back as the same float64.

    Parameters
    ----------
    frame
        Columns qid, docno, score and optionally rank.
    path
        The file; an existing one is replaced once the new one is complete.
    name
        The run tag; a column ``name`` of the frame is ignored.

    Raises
    ------
    InputError
        A missing column, a missing or NaN value, an id that is empty or holds white space.
    ParameterError
        A run tag with white space.
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "mine.run")
    >>> import pandas as pd
    >>> write_run(pd.DataFrame({"qid": "q1", "docno": ["d2", "d1"], "score": [0.5, 1.0], "rank": [1, 0]}), path)
    >>> print(path.read_text(), end="")
    q1 Q0 d1 1 1 vbterrier
    q1 Q0 d2 2 0.5 vbterrier
    """
    frame = pandas_frame(frame, "run")
    require(frame, ("qid", "docno", "score"), "run")
    if not name or len(name.split()) != 1 or name != name.strip():
        raise ParameterError(f"name={excerpt(name)}: wanted a run tag without white space")
    qid, docno = (_ids(frame, column, "run") for column in ("qid", "docno"))
    score = column_numbers(frame["score"], "run column 'score'")
    place = column_numbers(frame["rank"], "run column 'rank'") if "rank" in frame else np.arange(len(frame))
    _, topic = qid.codes()
    rows = np.lexsort((place, topic))
    sizes = np.bincount(topic)
    rank = np.arange(1, len(rows) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    _write_lines(path, [qid.take(rows).text, "Q0", docno.take(rows).text, pa.array(rank), pa.array(score[rows]), name])


def write_qrels(frame: Any, path: StrPath) -> None:
    """Write TREC qrels, compressed if the name ends in ``.gz``, rows in the order of the frame.

    Parameters
    ----------
    frame
        Columns qid, docno, label and optionally iteration ("0" by default).
    path
        As in :func:`write_run`, with the same ``FileError``.

    Raises
    ------
    InputError
        A missing column or value, a label that is not a whole number, an id that is empty or holds white space.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "qrels.txt")
    >>> import pandas as pd
    >>> write_qrels(pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [2]}), path)
    >>> print(path.read_text(), end="")
    q1 0 d1 2
    """
    frame = pandas_frame(frame, "qrels")
    require(frame, ("qid", "docno", "label"), "qrels")
    qid, docno = (_ids(frame, column, "qrels") for column in ("qid", "docno"))
    iteration = _ids(frame, "iteration", "qrels").text if "iteration" in frame else "0"
    label = frame["label"]
    # Integers beyond 2^53 would lose digits as floats.
    is_whole = label.dtype.kind in "iu"
    numbers = (
        label.to_numpy() if is_whole and not label.isna().any() else column_integers(label, "qrels column 'label'")
    )
    _write_lines(path, [qid.text, iteration, docno.text, pa.array(numbers)])


def write_intents(frame: Any, path: StrPath) -> None:
    """Write candidate intents as tab-separated text with a header line, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    frame
        Columns qid, entity_id, prob; score, name, mention, query and source are written if every row has a value.
    path
        As in :func:`write_run`, with the same ``FileError``.

    Raises
    ------
    InputError
        A missing column or value, a tab or a line end in a text, an empty id.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "intents.tsv")
    >>> import pandas as pd
    >>> write_intents(pd.DataFrame({"qid": ["q1"], "entity_id": ["Q90"], "prob": [0.75], "name": ["Paris"]}), path)
    >>> path.read_text().split()
    ['qid', 'entity_id', 'prob', 'name', 'q1', 'Q90', '0.75', 'Paris']
    """
    write_table(frame, path, "intents", ("qid", "entity_id", "prob"), ("score", "name", "mention", "query", "source"))


def write_tags(frame: Any, path: StrPath) -> None:
    """Write the entities of documents as tab-separated text with a header line, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    frame
        Columns docno, entity_id; weight, qid, tagger, tied (as 0 or 1) and n_abstained are written if every row has a
        value.
    path
        As in :func:`write_run`, with the same ``FileError``.

    Raises
    ------
    InputError
        A missing column or value, a tab or a line end in a text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tags.tsv")
    >>> import pandas as pd
    >>> write_tags(pd.DataFrame({"docno": ["d1"], "entity_id": ["Q90"], "weight": [1.0]}), path)
    >>> path.read_text().split()
    ['docno', 'entity_id', 'weight', 'd1', 'Q90', '1']
    """
    frame = pandas_frame(frame, "tags", TAGS)
    if "tied" in frame.columns and frame["tied"].dtype == bool:
        frame = frame.assign(tied=frame["tied"].astype(np.int64))
    write_table(frame, path, "tags", ("docno", "entity_id"), ("weight", "qid", "tagger", "tied", "n_abstained"))


def write_queries(queries: Any, path: StrPath) -> None:
    r"""Write queries as tab-separated text with a header line, compressed if the name ends in ``.gz``.

    Parameters
    ----------
    queries
        A frame with qid, docno and mention, or a :class:`vbterrier.design.sampling.QuerySample`; all other columns
        follow, a missing value as an empty field.
    path
        As in :func:`write_run`, with the same ``FileError``.

    Raises
    ------
    InputError
        A missing column or id, a tab or a line end in a text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "queries.tsv")
    >>> import pandas as pd
    >>> write_queries(pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "mention": ["Paris"], "prob": [0.25]}), path)
    >>> path.read_text().splitlines()
    ['qid\tdocno\tmention\tprob', 'q1\td1\tParis\t0.25']
    """
    is_result = hasattr(type(queries), "to_frame")
    frame = pandas_frame(queries.to_frame() if is_result else queries, "queries")
    others = [name for name in frame.columns if name not in _QUERIES]
    gaps = [name for name in others if name != "entity_id" and frame[name].isna().any()]
    full = frame.assign(**{name: frame[name].astype(object).where(frame[name].notna(), "") for name in gaps})
    write_table(full, path, "queries", _QUERIES, others)


def write_table(frame: Any, path: StrPath, what: str, required: Sequence[str], others: Sequence[str]) -> None:
    """Write tab-separated text with a header line: the wanted columns, and the other columns that have all values."""
    frame = pandas_frame(frame, what)
    require(frame, required, what)
    names = [*required, *(name for name in others if name in frame.columns and frame[name].notna().all())]
    fields = []
    for name in names:
        where = f"{what} column {name!r}"
        if name in ("prob", "score", "weight"):
            fields.append(pa.array(column_numbers(frame[name], where)))
            continue
        is_id = name in IDS
        text = column_ids(frame[name], where).text if is_id else pa.array(frame[name].astype(str), TEXT)
        row = _first_match(text, f"^$|{_UNWRITABLE_FIELD}" if is_id else _UNWRITABLE_FIELD)
        if row >= 0:
            raise InputError(
                f"{where}: row {row} holds {text[row].as_py()!r}; wanted text without tab, line end or NUL"
                f"{' that is not empty' if is_id else ''}: replace it"
            )
        fields.append(text)
    _write_lines(path, fields, separator="\t", header="\t".join(names))


def _ids(frame: pd.DataFrame, column: str, what: str) -> Ids:
    """Ids that a field between blanks can hold."""
    ids = column_ids(frame[column], f"{what} column {column!r}")
    row = _first_match(ids.text, "^#") if column == "qid" else -1
    if row >= 0:
        raise InputError(
            f"{what} column {column!r}: row {row} holds {ids.text[row].as_py()!r}; lines that begin with # are "
            "comments of TREC files, as in trec_eval: replace it"
        )
    row = _first_match(ids.text, _UNWRITABLE)
    if row >= 0:
        raise InputError(
            f"{what} column {column!r}: row {row} holds {ids.text[row].as_py()!r}; TREC files hold ids that are not "
            "empty and without white space: replace it, for example by '_'",
        )
    return ids


def _first_match(text: Any, pattern: str) -> int:
    row: int = pc.index(pc.match_substring_regex(text, pattern), pa.scalar(value=True)).as_py()
    return row


def _write_lines(path: StrPath, fields: Sequence[Any], *, separator: str = " ", header: str = "") -> None:
    """Write one line a row; a field is an Arrow array, or a text that all rows share."""
    columns = [pa.scalar(field, TEXT) if isinstance(field, str) else field.cast(TEXT) for field in fields]
    n_rows = max(len(column) for column in columns if isinstance(column, pa.Array))
    with replacing(path_parameter("path", path)) as file:
        if header:
            file.write(f"{header}\n".encode())
        for start in range(0, n_rows, _BLOCK_ROWS):
            part = [c.slice(start, _BLOCK_ROWS) if isinstance(c, pa.Array) else c for c in columns]
            lines = pc.binary_join_element_wise(*part, pa.scalar(separator, TEXT))
            text = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), pa.scalar("\n", TEXT))
            file.write(text[0].as_buffer())
            file.write(b"\n")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` once it is complete, compressed if the name ends in .gz."""
    target = Path(os.path.realpath(path))
    try:
        # Devices and pipes are written directly: renaming would replace them by a plain file. The real path of an
        # inherited one, such as /dev/stdout, does not exist.
        is_special = path.exists() and not path.is_file() and not path.is_dir()
        part = path if is_special else target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            if not is_special:
                create_like(part, target)
            with part.open("wb") as file:
                if path.suffix == ".gz":
                    # Without name and time, equal runs give equal files.
                    with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                        yield packed  # type: ignore[misc]
                else:
                    yield file
            if not is_special:
                part.replace(target)
        finally:
            if not is_special:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error


def create_like(part: Path, target: Path) -> None:
    """Create an empty file that has the permissions of the file that it will replace, if any, before it has content."""
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # The umask only removes permissions, so that nobody else can open the file in between.
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode))
    if mode is not None:
        part.chmod(mode)


def replace_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write files, of which none takes its name before all are complete; then they do so in this order."""
    with ExitStack() as opened:
        # Those that are opened last are closed first.
        for path, content in reversed(list(contents.items())):
            file = opened.enter_context(replacing(path))
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()


def require_page_name(path: Path) -> None:
    """Raise ParameterError for the name of an HTML page without its ending."""
    if path.suffix != ".html":
        raise ParameterError(f"{printable(path)}: wanted a name that ends in .html")


def require_no_input(path: Path, *inputs: Any) -> None:
    """Raise ParameterError if a file to write is an input of the same call, or lies in a folder that is one.

    ``inputs`` are paths, lists of them and mappings to them, and other data, which are ignored. Links are followed.
    """
    if not is_there(path):
        return
    folders = Path(os.path.realpath(path)).parents
    for data in inputs:
        values = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else [data]
        for each in values:
            if not isinstance(each, (str, os.PathLike)) or not is_there(each):
                continue
            is_same = os.path.realpath(path) == os.path.realpath(each)
            with suppress(OSError):
                # Also two names of one file; a link may be broken.
                is_same |= path.samefile(each)
            if is_same:
                raise ParameterError(f"{printable(path)} is an input, which would be lost; write to another file")
            if Path(os.path.realpath(each)) in folders:
                raise ParameterError(f"{printable(path)} lies in {printable(each)}, an input; write to another folder")


@contextmanager
def new_folder(path: Path, *, parents: bool = False) -> Iterator[Path]:
    """Yield a folder that takes the name ``path``, which must be free, once it is complete."""
    if is_there(path):
        raise FileError(path, "exists already; use another folder, or delete this one first")
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.mkdir(parents=parents)
        try:
            yield part
            part.replace(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error


@contextmanager
def folder_of_files(path: Path) -> Iterator[None]:
    """Make a folder for files if it is missing; a new one is removed if they cannot be written."""
    is_new = not is_there(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def lock(file: Any, *, wait: bool = True) -> bool:
    """Lock an open file against other processes until it is closed; return False without locks of the system.

    The lock ends with the process, even if it is killed. Without ``wait``, a lock of another process raises an error.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        # Windows, or a file system without locks.
        return False
    return True


@contextmanager
def kept_in(path: Path) -> Iterator[None]:
    """Raise errors of temporary files as errors that name their folder."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise FileError(
            path, f"cannot be written or read ({reason}): free some space, or choose another folder for these files"
        ) from error
