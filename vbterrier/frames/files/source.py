"""Bytes and lines of files, plain or compressed, and the layout of a line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import zlib
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from errno import EISDIR
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier import remedies
from vbterrier.errors import FileError, nearest, path_parameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from vbterrier.annotations import StrPath


BOM = b"\xef\xbb\xbf"
# Default limit of the unpacked size of a file.
MAX_BYTES = 64 * 2**30
IDS = frozenset({"qid", "docno", "entity_id"})
WHOLE_COLUMNS = frozenset({"rank", "label"})
# Columns that hold numbers also where they are read as text first.
_NUMBERS = frozenset({"rank", "label", "score"})
_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
GZIP_MAGIC = b"\x1f\x8b"
_COMPRESSED = re.compile(
    rb"(?P<gzip>%b)|(?P<bz2>BZh[1-9](1AY&SY|\x17rE8P\x90))|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<xz>\xfd7zXZ\0)"
    rb"|(?P<lz4>\x04\x22\x4d\x18)" % GZIP_MAGIC
)
# Beginnings of files that are no text, with the remedy.
_FOREIGN_STARTS = {
    rb"PK\x03\x04": "a zip archive: unpack it",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a": "an archive: unpack it",
    rb"(?s)[^\0]{1,100}\0.{156,255}ustar": "a tar archive: unpack it",
    rb"ARROW1\0|\xff{4}": "an Arrow (Feather) file: write it as Parquet",
    rb"SQLite format 3\0": "a SQLite database: export the table as CSV or Parquet",
    rb"\x80[\x02-\x05][\x95c(})\]]": "a pickle, which can run any code: write the table as Parquet",
    rb"%PDF-\d": "a PDF document: find the data from which it was made",
    rb"\xff\xfe|\xfe\xff": "text in UTF-16: convert it, for example with `iconv -f utf-16 -t utf-8`",
    rb"(?i)\s*<(!doctype )?html": "a web page, perhaps of an error or a log-in: download the file again",
    rb"version https://git-lfs": "a pointer of Git LFS: fetch the file with `git lfs pull`",
}
_HEAD_BYTES, _BLOCK_BYTES = 512, 1 << 20
_NUMBER = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_MAX_QUOTED = 80
LINE_END = re.compile(r"[\r\n]")
# Comments: lines that begin with # in TREC files, as in trec_eval 10, or with the description of a run of NTCIR; and
# lines whose first word is # elsewhere.
COMMENT = re.compile(rb"[ \t\v\f]*(#|<SYSDESC>)")
REMARK = re.compile(rb"[ \t\v\f]*#([ \t\v\f]|$)")


# The limit of all readers that have one, instead of their own; None for their own.
BYTE_LIMIT: ContextVar[int | None] = ContextVar("limit", default=None)


class UntidyError(Exception):
    """A byte that the fast parser cannot read; the slower one may."""


@dataclass(frozen=True)
class Source:
    """A file that exists and can be opened."""

    path: Path
    max_bytes: int | None  # limit of the unpacked size; ``None`` for no limit
    content: bytes | None = None  # the bytes of a pipe, which can be read only once; ``None`` for a file

    @classmethod
    def at(cls, path: StrPath, max_bytes: int | None) -> Source:
        """Open a path once to check it; a pipe is read to its end, or to the limit."""
        path = path_parameter("path", path)
        if max_bytes is not None:
            max_bytes = BYTE_LIMIT.get() or max_bytes
        try:
            source = cls(path, max_bytes, None if path.is_file() else _read_pipe(path, max_bytes))
            source.raw().close()
        except FileNotFoundError as error:
            raise FileError(path, _missing(path)) from error
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) == EISDIR:
                raise FileError(path, "is a folder; wanted a file: name one in it") from error
            raise FileError(path, f"cannot be opened: {getattr(error, 'strerror', None) or error}") from error
        return source

    def raw(self) -> Any:
        """Open the bytes as stored."""
        return pa.OSFile(str(self.path)) if self.content is None else pa.BufferReader(self.content)

    @property
    def is_parquet(self) -> bool:
        """True if the content is a Parquet table."""
        with self.raw() as raw:
            return self._head(raw).startswith(_PARQUET)

    @property
    def is_workbook(self) -> bool:
        """True if the content is a zip archive, as .xlsx files are."""
        with self.raw() as raw:
            return self._head(raw).startswith(_ZIP)

    def stream(self, refused: bytes = b"", start: int = 0) -> _Stream:
        """Open the unpacked bytes from ``start``; reading any of the ``refused`` bytes raises ``UntidyError``."""
        with self.raw() as raw:
            match = _COMPRESSED.match(self._head(raw))
        kind = None if match is None else match.lastgroup
        stream = _Stream(self, _decompressed_stream(self.raw(), kind), refused)
        if kind is None:
            stream.inner.seek(start)
        while kind is not None and start > 0 and (passed := stream.read(min(start, _BLOCK_BYTES))):
            start -= len(passed)
        return stream

    def _head(self, raw: Any) -> bytes:
        """Return the first bytes; read errors of the disk surface here."""
        try:
            head: bytes = raw.read(_HEAD_BYTES)
        except OSError as error:
            raise FileError(self.path, f"cannot be read ({error}): fetch or pack the file again") from error
        return head

    def text(self) -> bytes:
        """Read all unpacked bytes."""
        with self.stream() as stream:
            return b"".join(iter(lambda: stream.read(_BLOCK_BYTES), b""))

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers from 1, without line ends: LF, CRLF or CR, as in Arrow."""
        number = 0
        with io.BufferedReader(self.stream(), _BLOCK_BYTES) as stream:
            for lines in stream:
                for line in lines.splitlines():
                    number += 1
                    yield number, line if number > 1 else line.removeprefix(BOM)

    def first(self, comment: re.Pattern[bytes] | None = None) -> tuple[int, bytes]:
        """Return the number and bytes of the first line that is neither blank nor a comment."""
        with self.stream() as stream:
            head = stream.read(_HEAD_BYTES)
        for mark, what in _FOREIGN_STARTS.items():
            if re.match(mark, head):
                raise FileError(self.path, f"is {what}")
        skipped = 0
        for number, line in self.lines():
            if comment is not None and comment.match(line):
                skipped += 1
            elif line.strip():
                return number, line
        if skipped:
            raise FileError(self.path, "holds comments alone, lines that begin with #, as in trec_eval; wanted a row")
        raise FileError(self.path, "is empty; wanted at least one line: was the file written to its end?")


class _Stream(io.RawIOBase):
    """Unpacked bytes for a parser, counted against the limit and searched for refused bytes."""

    def __init__(self, source: Source, inner: Any, refused: bytes) -> None:
        self._source, self.inner, self._refused = source, inner, refused
        self._n_bytes = 0
        # Arrow reads ahead in another thread, possibly while the reader closes the stream after an error.
        self._lock = Lock()

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        with self._lock:
            self.inner.close()
        super().close()

    def read(self, size: int = -1, /) -> bytes:
        path, limit = self._source.path, self._source.max_bytes
        try:
            with self._lock:
                data: bytes = self.inner.read(size if size >= 0 else None)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise FileError(path, f"cannot be read to its end ({error}): fetch or pack the file again") from error
        self._n_bytes += len(data)
        if limit is not None and self._n_bytes > limit:
            remedy = f"{remedies.MAX_BYTES.text()} sets the limit"
            raise FileError(path, f"holds more than {limit:,} bytes when unpacked; {remedy}")
        # Each test is one memchr over bytes that the parser needs in the cache next anyway.
        if any(byte in data for byte in self._refused):
            raise UntidyError
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decompressed_stream(raw: Any, kind: str | None) -> Any:
    """Open compressed bytes; xz and padded gzip, which Arrow does not read, with the standard library."""
    if kind == "gzip":
        # Tapes and block devices pad files with zeros.
        raw.seek(raw.size() - 1)
        is_padded = raw.read(1) == b"\0"
        raw.seek(0)
        return gzip.GzipFile(fileobj=raw) if is_padded else pa.CompressedInputStream(raw, kind)
    if kind == "xz":
        return lzma.LZMAFile(raw)
    return raw if kind is None else pa.CompressedInputStream(raw, kind)


def _read_pipe(path: Path, max_bytes: int | None) -> bytes:
    """Read a pipe to its end, or until it exceeds the limit."""
    content = bytearray()
    with path.open("rb") as pipe:
        while (max_bytes is None or len(content) <= max_bytes) and (piece := pipe.read(_BLOCK_BYTES)):
            content += piece
            if content[0] == 0:
                # As /dev/zero, which has no end.
                raise ValueError("begins with a NUL byte, as no format does; name a file, or a pipe of text")
    return bytes(content)


def _missing(path: Path) -> str:
    if path.is_symlink():
        return "is a link to nothing: correct the link"
    if not path.parent.is_dir():
        return f"no such file, nor the folder {path.parent}: correct the path"
    suggestion = nearest(path.name, (other.name for other in path.parent.iterdir()))
    return f"no such file in the folder {path.parent}: correct the path.{suggestion}"


class MisfitError(ValueError):
    """A line that does not fit its layout.

    - ``remedy``: the remedy; empty if ``problem`` contains it
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = problem
        super().__init__("; ".join(filter(None, (problem, remedy))))


@dataclass(frozen=True)
class Layout:
    """The fields of a line."""

    names: tuple[str, ...]  # the column of each field
    numeric: tuple[str, ...]  # columns of numbers; all others are text
    # A blank, a tab, a comma or a semicolon. Values between the last two may be enclosed in double quotes.
    separator: str = " "
    blanks: bool = True  # True if any amount of white space separates fields, as in trec_eval
    header: int = 0  # number of lines before the data
    # The remedy by the number of fields found; the highest key covers all higher numbers.
    remedies: Mapping[int, str] = field(default_factory=dict)
    form: str = ""  # the form of a line in messages; the names if empty
    kind: str = ""  # the kind of file that the first line was recognised as, for messages; empty for the usual kind
    for_header: str = "remove the line"  # the remedy if the first line looks like a header
    comment: re.Pattern[bytes] | None = None  # lines that are skipped
    whole: frozenset[str] = WHOLE_COLUMNS  # the numeric columns that hold whole numbers
    # The numeric column that is empty in rows without a rating (label) or without a document (rank); they are left out.
    unrated: str = ""
    remarks: bool = False  # True if # and a remark, such as an object of JSON, may follow the last field
    level: str = ""  # the letter before whole labels, as L in L2 of NTCIREVAL
    heads: tuple[str, ...] = ()  # the names in the header of the columns that every file must have

    @property
    def never_empty(self) -> tuple[str, ...]:
        """Text columns in which no field may be empty."""
        return tuple(n for n in self.names if n not in self.numeric and (self.blanks or n in IDS))

    def check(self, line: bytes) -> None:
        """Check that a line fits."""
        fields = split_fields(line, self.separator, blanks=self.blanks)
        if self.remarks and fields[len(self.names) :] and fields[len(self.names)].startswith("#"):
            fields = fields[: len(self.names)]
        if len(fields) != len(self.names):
            remedy = self.remedies.get(min(len(fields), max(self.remedies, default=0)), "repair the line")
            requirement = f"{len(self.names)} fields, {self.form or ' '.join(self.names)}"
            raise MisfitError(f"wanted {requirement}; found {len(fields)} in {quoted_text(line)}", remedy)
        if self.separator in ",;":
            self.check_lines(line.decode())
        if self.unrated and not dict(zip(self.names, fields, strict=True))[self.unrated].strip():
            return
        for name, value in zip(self.names, fields, strict=True):
            if name in self.numeric:
                self._check_number(name, value)
            elif not value and name in self.never_empty:
                may_be_nil = name == "entity_id" and "prob" not in self.names
                remedy = "write NIL if there is no entity" if may_be_nil else "give it an id"
                raise MisfitError(f"{name} is empty; {remedy}, or remove the line")
            elif name in IDS and LINE_END.search(value):
                raise MisfitError(f"{name} holds a line end: {quoted_text(value)}", "is a closing quote missing?")

    def check_lines(self, record: str) -> None:
        """Refuse a record whose lines are rows by themselves, of which a quote that is not closed made a value.

        Only rows with numbers are recognised: any line of a text may have as many commas as a row of texts.
        """
        numbers = [place for place, name in enumerate(self.names) if name in self.numeric or name in _NUMBERS]
        rows = [line.split(self.separator) for line in LINE_END.split(record.replace('"', ""))]
        if not numbers or len(rows[0]) != len(self.names):
            return
        for row in rows[1:]:
            if len(row) == len(self.names) and all(_NUMBER.fullmatch(row[place].strip()) for place in numbers):
                line = self.separator.join(row)
                raise MisfitError(
                    f"a value between quotes holds another row, {quoted_text(line)}",
                    "is a closing quote missing? If not, remove the line ends from the value",
                )

    def number(self, name: str, value: str) -> float:
        """Parse the number of a column; ValueError for another text."""
        if self.level and name == "label":
            if not value.strip().startswith(self.level):
                raise ValueError(value)
            return whole_number(value.strip()[len(self.level) :])
        return whole_number(value) if name in self.whole else real_number(value)

    def _check_number(self, name: str, value: str) -> None:
        try:
            self.number(name, value)
        except ValueError as error:
            text, is_label = value.strip(), name == "label"
            if is_label and self.level:
                raise MisfitError(
                    f"label must be {self.level}0, {self.level}1, ..., found {quoted_text(value)}"
                ) from error
            if name not in self.whole:
                remedy = "remove the line or give it a number" if "nan" in value.casefold() else "repair the line"
                remedy = "write decimals with a point" if _NUMBER.fullmatch(value.replace(",", ".", 1)) else remedy
                raise MisfitError(f"{name} must be a number, found {quoted_text(value)}", remedy) from error
            remedy = "repair the line"
            if is_label and "." in value and _NUMBER.fullmatch(text):
                remedy = f"read fractions with {remedies.UNIT.text()}, the smallest step of their scale"
            requirement = f"{name} must be a whole number of at most 64 bits"
            raise MisfitError(f"{requirement}, found {quoted_text(value)}", remedy) from error

    def hint(self, line: bytes) -> str:
        """Return a hint of what a first line that does not fit seems to be; empty if unknown."""
        if line.startswith((b"#", b"//", b"%")):
            return "this looks like a comment: remove such lines"
        if line.startswith((b"{", b"[")):
            return "this looks like JSON; wanted one object per line, with the names of the columns"
        fields = split_fields(line, self.separator, blanks=self.blanks)
        if len(fields) == 1 and self.blanks and re.search(rb"[,;]", line):
            columns = ",".join(name for name in self.names if name != "Q0")
            if not re.search(rb"\d", line):
                return f"this looks like the header of a table that lacks columns: name them, as {columns}"
            return f"this looks like CSV: name its columns in a first line, as {columns}"
        if self.numeric and not re.search(rb"\d", line.replace(b"Q0", b"")):
            are_intents = "label" in self.numeric and {"entity_id", "prob"} <= set(fields)
            use = f"these are candidate intents: give them as {remedies.INTENTS.text()}"
            return use if are_intents else f"this looks like a header: {self.for_header}"
        return ""


def split_fields(line: bytes, separator: str, *, blanks: bool) -> list[str]:
    """Split a line into fields."""
    if b"\0" in line:
        raise MisfitError("holds a NUL byte; wanted text: the file is binary, damaged or UTF-16")
    try:
        if blanks:
            # Only ASCII white space separates fields: a no-break space belongs to an id.
            return [value.decode() for value in line.split()]
        text = line.decode()
        return (
            next(csv.reader([text], delimiter=separator, strict=True)) if separator in ",;" else text.split(separator)
        )
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        remedy = "convert the file, for example with `iconv -f latin1 -t utf-8`"
        raise MisfitError(f"is not UTF-8 (found byte {byte:#04x}); {remedy}") from error
    except csv.Error as error:
        remedy = "is a quote missing, or a quote inside of a value not doubled?"
        if "expected after" in str(error):
            raise MisfitError(f"text follows a closing quote in {quoted_text(line)}", remedy) from error
        if "end of data" in str(error):
            raise MisfitError(f"a quote is not closed in {quoted_text(line)}", remedy) from error
        raise MisfitError(f"cannot be split at its commas ({error}); repair the line") from error


def whole_number(value: str) -> int:
    """Parse an integer, also as tools write it that store floats: ``3.0``."""
    whole, _, zeros = value.strip().partition(".")
    number = int(whole)
    if zeros.strip("0") or "_" in value or not value.isascii() or not -(2**63) <= number < 2**63:
        raise ValueError(value)
    return number


def real_number(value: str) -> float:
    """Parse a number that is not NaN."""
    if not _NUMBER.fullmatch(value.strip()):
        raise ValueError(value)
    return float(value)


def content_digest(path: Path) -> str:
    """Return a digest of all bytes of a file: its size and times may stay while the content changes.

    It takes about a tenth of the time of parsing the file.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_BLOCK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def is_folder(path: StrPath) -> bool:
    """Return True for a folder; unlike ``Path.is_dir``, False for names that are too long for any."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def is_there(path: StrPath) -> bool:
    """Return True for anything of this name, also a broken link; False for names that are too long."""
    return os.path.lexists(path)


def require_regular(*paths: Path) -> None:
    """Raise FileError for pipes, devices and folders, in the place of files of a folder; reading a pipe may not end."""
    for path in paths:
        if is_there(path) and not path.is_file():
            raise FileError(path, "is no regular file; wanted one that save or build wrote")


def read_content(path: Path, n_bytes: int) -> bytes:
    """Return the content of a regular file; raise FileError for other things, and for more than ``n_bytes``."""
    require_regular(path)
    with path.open("rb") as file:
        # Before anything is read: a file may state any size.
        if os.fstat(file.fileno()).st_size > n_bytes:
            raise FileError(path, f"is larger than {n_bytes:,} bytes; wanted one that save or build wrote")
        return file.read(n_bytes)


class RepeatedMemberError(ValueError):
    """An object of JSON with two members of one name, of which Python's parser would keep the last."""


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON whose objects have members of different names."""
    return json.loads(text, object_pairs_hook=_distinct, **options)


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(members)
    if len(mapping) < len(members):
        twice = next(name for name, n in Counter(name for name, _ in members).items() if n > 1)
        raise RepeatedMemberError(f"has two members {quoted_text(twice)} in one object; keep one")
    return mapping


def refuse_constant(constant: str) -> Any:
    """Refuse NaN and Infinity in JSON, which does not have them; Python's parser accepts them."""
    raise ValueError(f"{constant} is not JSON")


def quoted_text(content: bytes | str) -> str:
    """Quote a text for a message, shortened to 80 characters."""
    text = content.decode(errors="replace") if isinstance(content, bytes) else content
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "...")
