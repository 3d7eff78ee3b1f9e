"""Columns of frames as checked arrays: ids as text, numbers as numbers, and joins on pairs of ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError
from vbterrier.kernels import fingerprints, ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Ints


@dataclass(frozen=True, eq=False)
class Ids:
    """A column of ids: contiguous text, and whether it came as integers.

    Parameters
    ----------
    text
        A ``pyarrow.LargeStringArray`` without nulls.
    integers
        Whether the ids were numbers, so that a join with text can say so instead of finding nothing.
    """

    text: Any
    integers: bool = False

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: Ints) -> Ids:
        """The ids at some positions."""
        return Ids(self.text.take(pa.array(rows)), self.integers)

    @cached_property
    def fingerprints(self) -> NDArray[np.uint64]:
        """A 64-bit fingerprint of each id, shape (n,)."""
        return fingerprints.fingerprints(*self.utf8_bytes())

    def utf8_bytes(self) -> tuple[NDArray[np.uint8], Ints]:
        """The bytes of all ids end to end, and where each begins and the last ends."""
        if not len(self.text):
            return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        _, offsets, data = self.text.buffers()
        first = self.text.offset
        bounds = np.frombuffer(offsets, dtype=np.int64)[first : first + len(self.text) + 1]
        utf8_bytes = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        return utf8_bytes, bounds

    def blocks(self) -> Ints:
        """Where each run of equal neighbours begins."""
        if not len(self.text):
            return np.empty(0, dtype=np.int64)
        changes = pc.not_equal(self.text.slice(1), self.text.slice(0, len(self.text) - 1))
        return np.concatenate([[0], np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1])

    def distinct(self) -> tuple[Ids, Ints]:
        """The distinct ids in order of appearance, and the number of each row's id among them.

        Neighbours are compared before anything is hashed: a file grouped by topic costs one hash a topic.
        """
        starts = self.blocks()
        encoded = self.take(starts).text.dictionary_encode()
        sizes = np.diff(np.append(starts, len(self.text)))
        return Ids(encoded.dictionary, self.integers), np.repeat(encoded.indices.to_numpy().astype(np.int64), sizes)

    def codes(self) -> tuple[list[str], Ints]:
        """The distinct ids as :meth:`distinct` gives them, as texts of Python."""
        ids, numbers = self.distinct()
        return ids.text.to_pylist(), numbers

    def ranks(self) -> Ints:
        """The place of each id in the order of their bytes, shape (n,): 0 is the smallest."""
        places = np.empty(len(self.text), dtype=np.int64)
        places[pc.array_sort_indices(self.text).to_numpy()] = np.arange(len(self.text))
        return places


def ids_of(column: pd.Series[Any], where: str) -> Ids:
    """Check a column of ids and make it text.

    Parameters
    ----------
    column
        Text of any storage (object, ``str``, Arrow, categorical), or integers.
    where
        The frame and column for messages, as ``run column 'qid'``.

    Raises
    ------
    InputError
        A missing id, or a column that holds anything but text or integers.
    """
    if not len(column):
        # A column without rows has whatever type pandas gave it.
        return Ids(pa.array([], pa.large_string()))
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_float_dtype(column):
        raise InputError(f"{where}: wanted ids as text, found {column.dtype}; cast with .astype(str) at the source")
    if pd.api.types.is_integer_dtype(column):
        _refuse_missing(column, where)
        return Ids(pc.cast(pa.array(column), pa.large_string()), integers=True)
    try:
        # A pandas Series gives its missing values as nulls only when asked.
        text = pa.array(column, from_pandas=True)
        if pa.types.is_integer(text.type):
            _refuse_missing(column, where)
            return Ids(pc.cast(_contiguous(text), pa.large_string()), integers=True)
        if pa.types.is_dictionary(text.type) and pa.types.is_integer(text.type.value_type):
            return ids_of(column.astype(column.cat.categories.dtype), where)
        if not _is_text(text.type):
            raise InputError(f"{where}: wanted ids as text, found {text.type}; cast with .astype(str) at the source")
        text = pc.cast(_contiguous(text), pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(_mixed(column, where)) from error
    except OverflowError as error:
        raise InputError(f"{where}: holds an integer beyond 64 bits; cast with .astype(str) at the source") from error
    if text.null_count:
        _refuse_missing(column, where)
    return Ids(text)


def _nobodys(_row: int) -> str:
    return ""


def owner_of(topics: Sequence[str], topic: Ints, docno: Ids) -> Callable[[int], str]:
    """Name the query and document of a row, for messages."""
    return lambda row: f" (query {topics[topic[row]]!r}, document {docno.text[row].as_py()!r})"


def numbers_of(column: pd.Series[Any], where: str, whose: Callable[[int], str] = _nobodys) -> NDArray[np.float64]:
    """A column as float64: numbers, or text that reads as numbers; NaN is refused, infinity is not.

    Raises
    ------
    InputError
        Names the first row that is missing or no number.
    """
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        numbers = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.isnan(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where}: row {row} holds {_shown(column, row)}{whose(row)}, wanted a number; "
            "repair or drop the row before evaluating"
        )
    return numbers


def integers_of(column: pd.Series[Any], where: str, whose: Callable[[int], str] = _nobodys) -> Ints:
    """A column as int64, refusing fractions.

    Raises
    ------
    InputError
        Names the first row that is not a whole number.
    """
    numbers = numbers_of(column, where, whose)
    # Beyond 64 bits a cast would give any number; infinities are there, too.
    bad = (numbers != np.floor(numbers)) | (np.abs(numbers) >= 2.0**63)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where}: row {row} holds {_shown(column, row)}{whose(row)}, wanted a whole number; "
            "map graded or fractional judgments to integer grades first"
        )
    return numbers.astype(np.int64)


def require_same_kind(left: Ids, right: Ids, left_name: str, right_name: str) -> None:
    """Refuse a join of integers with text, which would find nothing.

    Raises
    ------
    InputError
        Names both types and the cast.
    """
    if left.integers != right.integers and len(left) and len(right):
        kinds = {True: "integers", False: "text"}
        odd = left_name if left.integers else right_name
        raise InputError(
            f"{left_name} holds {kinds[left.integers]}, {right_name} holds {kinds[right.integers]}: they can never "
            f"meet; cast {odd} with .astype(str), or read both from files with vbterrier.read_run and read_qrels"
        )


class Lookup:
    """An index over rows (topic, id), or over ids alone, that finds all rows of many pairs at once.

    It is built by sorting 64-bit keys and searched by bisection: nothing is hashed twice, and each pair found is
    compared letter by letter with the row it met.

    Parameters
    ----------
    topics
        The number of each row's topic; ``None`` indexes the ids alone.
    ids
        The rows' ids.
    """

    def __init__(self, topics: Ints | None, ids: Ids) -> None:
        self.topics, self.ids = topics, ids
        unsorted = self._keys(topics, ids)
        self._order = np.argsort(unsorted)
        self._sorted = unsorted[self._order]
        self._repeats = bool((self._sorted[1:] == self._sorted[:-1]).any())
        if self._repeats:
            # Rows of one pair keep their own order; without repeats the faster sort says the same.
            self._order = np.argsort(unsorted, kind="stable")

    @staticmethod
    def _keys(topics: Ints | None, ids: Ids) -> NDArray[np.uint64]:
        return ids.fingerprints if topics is None else fingerprints.keys(topics, ids.fingerprints)

    def find(self, topics: Ints | None, ids: Ids) -> tuple[Ints, Ints]:
        """Match pairs with rows.

        Parameters
        ----------
        topics, ids
            What to look for, each of shape (n,).

        Returns
        -------
        (pairs, rows)
            For every match the position of the pair and of the row, pairs rising, rows in their own order.

        Raises
        ------
        InputError
            Two different ids share a fingerprint: no accident with honest data.
        """
        pairs, places = self._met(self._keys(topics, ids))
        rows = self._order[places]
        met = pc.equal(self.ids.take(rows).text, ids.take(pairs).text).to_numpy(zero_copy_only=False).astype(bool)
        if topics is not None and self.topics is not None:
            met &= self.topics[rows] == topics[pairs]
        if not met.all():
            at = int(np.argmin(met))
            clash = self.ids.text[int(rows[at])].as_py(), ids.text[int(pairs[at])].as_py()
            raise InputError(f"ids {clash[0]!r} and {clash[1]!r} share a fingerprint: rename one of them")
        return pairs, rows

    def _met(self, wanted: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """The position of each wanted key that is there, and its places in the sorted ones."""
        low = np.searchsorted(self._sorted, wanted, side="left")
        if self._repeats:
            return ranking.spans(low, np.searchsorted(self._sorted, wanted, side="right"))
        within = np.flatnonzero(low < len(self._sorted))
        pairs = within[self._sorted[low[within]] == wanted[within]]
        return pairs, low[pairs]

    def find_one(self, topics: Ints | None, ids: Ids) -> Ints:
        """The row of each pair, -1 where there is none; for an index without repeated pairs. Shape (n,)."""
        pairs, rows = self.find(topics, ids)
        found = np.full(len(ids), -1, dtype=np.int64)
        found[pairs] = rows
        return found


def repeated_pairs(topics: Ints, ids: Ids) -> Ints:
    """The rows whose (topic, id) stands more than once, equal pairs side by side."""
    rows = fingerprints.roughly_repeated(topics, *ids.utf8_bytes())
    rows = rows[fingerprints.repeated(fingerprints.keys(topics[rows], ids.take(rows).fingerprints))]
    if not len(rows):
        return rows
    # Few rows are left: compare them as they are, so that an accident of fingerprints accuses nobody.
    pairs = pd.DataFrame({"topic": topics[rows], "id": ids.take(rows).text.to_pylist()})
    repeats: Ints = rows[pairs.duplicated(keep=False).to_numpy()]
    return repeats


def _contiguous(text: Any) -> Any:
    if not isinstance(text, pa.ChunkedArray):
        return text
    # One chunk is taken as it is; combining would copy it.
    return text.chunk(0) if text.num_chunks == 1 else text.combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # Categories of nothing are those of an empty column.
    return str(kind) in {"string", "large_string", "string_view", "null"}


def _shown(column: pd.Series[Any], row: int) -> str:
    value = column.iloc[row]
    return repr(value.item() if isinstance(value, np.generic) else value)


def _refuse_missing(column: pd.Series[Any], where: str) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        raise InputError(f"{where}: row {int(np.argmax(missing))} has no id; repair or drop the row before evaluating")


def _mixed(column: pd.Series[Any], where: str) -> str:
    kinds = column.map(lambda value: type(value).__name__)
    row = int(np.argmax((kinds != kinds.iloc[0]).to_numpy()))
    return (
        f"{where}: wanted ids of one type, found {kinds.iloc[0]} in row 0 and {kinds.iloc[row]} in row {row}; "
        "cast with .astype(str) at the source"
    )
