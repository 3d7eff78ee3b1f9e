"""Files of vectors by id: word2vec (text and binary) and Wikipedia2Vec (text), mapped into memory."""

# Not the KeyedVectors of gensim 4.4: it reads whole files into memory; its wheel has 28 MB, and none is for Python 3.14
from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import FileError, agreeing, choice, path_parameter
from vbterrier.frames.files.source import GZIP_MAGIC, require_regular

if TYPE_CHECKING:
    from pathlib import Path

    from vbterrier.annotations import Floats, Ints, StrPath


FORMATS = ("auto", "text", "binary")
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?(\d{1,12})[ \t](\d{1,6})[ \t]*\r?\n")
_PICKLE = b"\x80"
_FLOAT = np.dtype("<f4")


class VectorFile(Mapping[str, "Floats"]):
    """Vectors by id in a file, of which only an index is read: result of :func:`read_vectors`.

    ``id in vectors`` and ``vectors[id]`` read one vector, :meth:`table` reads many at once. ``offsets`` and ``stops``
    are the first byte of each vector and the one after its last; binary vectors are 32-bit floats.
    """

    def __init__(
        self, path: Path, names: list[bytes], offsets: Ints, stops: Ints, dimension: int, *, is_binary: bool
    ) -> None:
        self.path, self.dimension, self.is_binary = path, dimension, is_binary
        self._names, self._offsets, self._stops = names, offsets, stops
        self._rows = {name: row for row, name in enumerate(names)}
        if len(self._rows) < len(names):
            twice = next(row for row, name in enumerate(names) if self._rows[name] != row)
            raise FileError(path, f"has two vectors of {self._quoted_name(twice)}; keep one")
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")

    def rows(self, ids: list[str]) -> Ints:
        """Return the index of each id in the file, -1 without a vector, shape (n,)."""
        names = (each.encode("utf-8", errors="surrogateescape") for each in ids)
        return np.array([self._rows.get(name, -1) for name in names], dtype=np.int64)

    def table(self, rows: Ints) -> Floats:
        """Return the vectors of rows of the file, shape (n, dimension)."""
        if self.is_binary:
            span = np.arange(self.dimension * _FLOAT.itemsize)
            made: Floats = self._bytes[self._offsets[rows][:, None] + span].view(_FLOAT).astype(np.float64)
        else:
            made = np.empty((len(rows), self.dimension))
            for place, row in enumerate(rows.tolist()):
                made[place] = self._parse_vector(row)
        bad = ~np.isfinite(made).all(axis=1)
        if bad.any():
            name = self._quoted_name(int(rows[int(np.argmax(bad))]))
            raise FileError(self.path, f"the vector of {name} is not finite; remove it from the file")
        return made

    def _quoted_name(self, row: int) -> str:
        return repr(self._names[row].decode("utf-8", errors="replace"))

    def _parse_vector(self, row: int) -> Floats:
        text = self._bytes[self._offsets[row] : self._stops[row]].tobytes()
        try:
            numbers = np.array(text.split(), dtype=np.float64)
        except ValueError:
            numbers = np.empty(0)
        if len(numbers) != self.dimension:
            problem = f"wanted {self.dimension} numbers, found {text[:60]!r}"
            raise FileError(self.path, f"the vector of {self._quoted_name(row)}: {problem}")
        return numbers

    def __contains__(self, each: object) -> bool:
        return isinstance(each, str) and each.encode("utf-8", errors="surrogateescape") in self._rows

    def __getitem__(self, each: str) -> Floats:
        row = self.rows([each])
        if row[0] < 0:
            raise KeyError(each)
        vector: Floats = self.table(row)[0]
        return vector

    def __iter__(self) -> Iterator[str]:
        return (name.decode("utf-8", errors="surrogateescape") for name in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorFile):
            return NotImplemented
        return (self.path, self.is_binary, self._names) == (other.path, other.is_binary, other._names)

    def __hash__(self) -> int:
        return hash((self.path, len(self)))

    def __repr__(self) -> str:
        return f"VectorFile({self.path.name!r}, {len(self)} vectors of {self.dimension} numbers)"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        made = partial(VectorFile, is_binary=self.is_binary)
        return made, (self.path, self._names, self._offsets, self._stops, self.dimension)


def read_vectors(path: StrPath, *, prefix: str = "", form: str = "auto") -> VectorFile:
    r"""Read the index of a file of vectors; the vectors stay in the file until they are used.

    Parameters
    ----------
    path
        A file of word2vec, binary or text with a header ``n d``; of GloVe, text without a header; or of Wikipedia2Vec's
        ``save_text``, whose names and numbers are separated by a tab.
    prefix
        Keep the names with this prefix, and remove it: ``"ENTITY/"`` for the entities of Wikipedia2Vec.
    form
        ``"auto"``, ``"text"`` or ``"binary"``. By default a file with a header is binary unless its first vector is
        text.

    Returns
    -------
    VectorFile
        A mapping of id to vector of shape (d,), for the parameters ``embeddings`` of this package.

    Raises
    ------
    FileError
        A file that is missing, pickled, compressed or cut off; a line without a name; two vectors of one name; no
        vector with the prefix.

    Notes
    -----
    Names are kept as they are: titles with underscores for spaces are other ids than titles with spaces.

    References
    ----------
    Yamada et al.: Wikipedia2Vec, EMNLP 2020 (demonstrations).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("2 3\nENTITY/Paris 1 0 0.5\nparis 0 1 0\n", encoding="utf-8")
    >>> vectors = read_vectors(path, prefix="ENTITY/")
    >>> vectors["Paris"].tolist(), "paris" in vectors
    ([1.0, 0.0, 0.5], False)
    """
    choice("form", form, FORMATS)
    path = path_parameter("path", path)
    require_regular(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _index_vectors(path, data, prefix.encode(), form)
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        reason = getattr(error, "strerror", None) or "is empty; wanted at least one vector"
        raise FileError(path, f"cannot be read: {reason}") from error


def _index_vectors(path: Path, data: mmap.mmap, prefix: bytes, form: str) -> VectorFile:
    if data[:1] == _PICKLE or data[:2] == GZIP_MAGIC:
        kind = "compressed" if data[:2] == GZIP_MAGIC else "a pickled model, which is never loaded"
        raise FileError(path, f"is {kind}; wanted word2vec or text: unpack it, or save it with save_text")
    header = _HEADER.match(data[:64])
    is_binary = form == "binary" or (form == "auto" and header is not None and not _is_text(data, header))
    if is_binary:
        if header is None:
            raise FileError(path, "binary vectors: wanted a first line of two numbers, n and d", line=1)
        names, offsets, dimension = _of_binary(path, data, header)
        stops = offsets + dimension * _FLOAT.itemsize
    else:
        names, offsets, stops, dimension = _of_text(path, data, 0 if header is None else header.end())
        if header is not None and (len(names), dimension) != (stated := tuple(map(int, header.groups()))):
            problem = f"found {len(names)} of {dimension}: was it written to its end?"
            raise FileError(path, f"the header says {stated[0]} vectors of {stated[1]} numbers, {problem}", line=1)
    kept = np.flatnonzero([name.startswith(prefix) for name in names])
    if not len(kept):
        raise FileError(path, f"no name begins with {prefix.decode()!r}; found {names[0].decode(errors='replace')!r}")
    ids = [names[place][len(prefix) :] for place in kept.tolist()]
    return VectorFile(path, ids, offsets[kept], stops[kept], dimension, is_binary=is_binary)


def _is_text(data: mmap.mmap, header: re.Match[bytes]) -> bool:
    """Return True if the first vector after a header is a line of as many numbers as the header says."""
    stop = data.find(b"\n", header.end())
    # The name may have spaces, so that the last words are the numbers.
    words = data[header.end() : stop if stop >= 0 else len(data)].split()
    dimension = int(header.group(2))
    try:
        return len(words) > dimension and len(np.array(words[-dimension:], dtype=np.float64)) == dimension
    except ValueError:
        return False


def _of_binary(path: Path, data: mmap.mmap, header: re.Match[bytes]) -> tuple[list[bytes], Ints, int]:
    n, dimension = map(int, header.groups())
    size, at = dimension * _FLOAT.itemsize, header.end()
    if not 0 < n * (size + 1) <= len(data) or not dimension:
        raise FileError(
            path,
            f"the header says {agreeing(n, 'vectors')} of {agreeing(dimension, 'numbers')}, more than the file has",
            line=1,
        )
    names, offsets = [], np.empty(n, dtype=np.int64)
    # Names have different lengths, so that each record follows from the one before.
    for row in range(n):
        stop = data.find(b" ", at)
        if stop < 0 or stop + 1 + size > len(data):
            raise FileError(path, f"ends in vector {row + 1} of {n}: was it written to its end?")
        name = data[at:stop].lstrip(b"\n")
        if not name:
            raise FileError(path, f"vector {row + 1} of {n} has no name")
        # Bytes that are not UTF-8 become surrogates, which are not printable.
        if not name.decode("utf-8", "surrogateescape").isprintable():
            requirement = (
                f"wanted text without spaces, and {dimension} numbers of 32 bits: save titles with underscores"
            )
            raise FileError(path, f"vector {row + 1} of {n} has the name {name[:30]!r}; {requirement}")
        names.append(name)
        offsets[row] = stop + 1
        at = stop + 1 + size
    if data[at:].strip(b"\r\n"):
        raise FileError(
            path,
            f"has more than the {agreeing(n, 'vectors')} of {agreeing(dimension, 'numbers')} that its header says",
            line=1,
        )
    return names, offsets, dimension


def _of_text(path: Path, data: mmap.mmap, start: int) -> tuple[list[bytes], Ints, Ints, int]:
    names: list[bytes] = []
    offsets: list[int] = []
    stops: list[int] = []
    at, number, dimension = start, int(start > 0), 0
    while at < len(data):
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        number += 1
        tab = data.find(b"\t", at, stop)
        gap = tab if tab >= 0 else data.find(b" ", at, stop)
        if gap <= at:
            if data[at:stop].strip():
                raise FileError(path, "wanted a name and numbers", line=number)
        else:
            names.append(data[at:gap])
            offsets.append(gap + 1)
            stops.append(stop)
            n_words = len(data[gap:stop].split())
            if n_words != (dimension := dimension or n_words):
                requirement = f"wanted {agreeing(dimension, 'numbers')}; separate names with spaces by a tab"
                raise FileError(path, f"has {agreeing(n_words, 'words')} after the name, {requirement}", line=number)
        at = stop + 1
    if not names or not dimension:
        raise FileError(path, "has no vectors; wanted lines of a name and numbers")
    return names, np.array(offsets), np.array(stops), dimension
