"""Columns of frames as checked arrays of ids and numbers, and joins on (topic, id)."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, warn
from vbterrier.kernels import fingerprints, rankings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Ints, Words

    Column = pd.Series[Any] | NDArray[Any]


_MAX_FLOAT = float(np.finfo(np.float64).max)
# Searches that sort the keys near their own, in an index of more than a few: about as much work as sorting all.
_NARROW_SEARCHES, MIN_INDEX_KEYS = 8, 1 << 14
# A search that has this many times as many pairs as the index looks at their last bytes first.
_MIN_SEARCH_RATIO = 4
# Matches whose ids are compared at a time: comparing copies the ids of both sides.
COMPARED = 1 << 16
# Rows of a column that show how often neighbours share an object.
_SAMPLED_ROWS = 4096
# How :func:`_folded_text` changes the characters of a byte: 0 not at all, so that ids of such bytes, as numbers, are in
# one spelling; 1 to lower case; 2 percent signs, underscores, blanks, control characters and all beyond ASCII.
_CHANGES = np.full(256, 2, dtype=np.uint8)
_CHANGES[list(b"!\"#$&'()*+,-./0123456789:;<=>?@[\\]^`abcdefghijklmnopqrstuvwxyz{|}~")] = 0
_CHANGES[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = 1
# Rows of a run, and of judgments or tags, whose spelling represents that of all.
FEW_ROWS, MANY_ROWS = 1000, 100_000


@dataclass(frozen=True, eq=False)
class Ids:
    """A column of ids as contiguous text."""

    text: Any  # a ``pyarrow.LargeStringArray`` without nulls
    # True if the ids were integers, so that a join with text raises an error instead of finding nothing.
    integers: bool = False

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: Ints) -> Ids:
        """Return the ids at some positions."""
        return Ids(self.text.take(pa.array(rows)), self.integers)

    @cached_property
    def fingerprints(self) -> NDArray[np.uint64]:
        """A 64-bit fingerprint of each id, shape (n,)."""
        data, bounds = self.utf8_bytes()
        return fingerprints.of_spans(data, bounds[:-1], np.diff(bounds))

    @cached_property
    def folded_forms(self) -> Any:
        """The form of each id that its spellings share, see :func:`near_matches`."""
        if self.folding == 0:
            return self.text
        return pc.ascii_lower(self.text) if self.folding == 1 else _folded_text(self.text)

    @cached_property
    def folding(self) -> int:
        """The largest number of ``_CHANGES`` among the bytes of all ids."""
        data, bounds = self.utf8_bytes()
        return int(_CHANGES[data[bounds[0] : bounds[-1]]].max(initial=0))

    def utf8_bytes(self) -> tuple[NDArray[np.uint8], Ints]:
        """Return the concatenated bytes of all ids, and their n + 1 offsets."""
        if not len(self.text):
            return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        _, offsets, data = self.text.buffers()
        first = self.text.offset
        bounds = np.frombuffer(offsets, dtype=np.int64)[first : first + len(self.text) + 1]
        utf8_bytes = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        return utf8_bytes, bounds

    def blocks(self) -> Ints:
        """Return the starts of the runs of equal neighbours."""
        if not len(self.text):
            return np.empty(0, dtype=np.int64)
        changes = pc.not_equal(self.text.slice(1), self.text.slice(0, len(self.text) - 1))
        return np.concatenate([[0], np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1])

    def distinct(self) -> tuple[Ids, Ints]:
        """Return the distinct ids in order of appearance, and the number of each row's id."""
        return self.distinct_blocks().distinct(len(self))

    def distinct_blocks(self) -> Blocks:
        """Return the distinct ids by runs of equal neighbours.

        Neighbours are compared before hashing, so that a file grouped by topic costs one hash per topic.
        """
        starts = self.blocks()
        if 2 * len(starts) > len(self):
            # Hardly any neighbours are equal.
            return Blocks(*self.distinct_by_hash(), np.arange(len(self)))
        return Blocks(*self.take(starts).distinct_by_hash(), starts)

    def distinct_by_hash(self) -> tuple[Ids, Ints]:
        """Return :meth:`distinct`, with a hash of each row."""
        encoded = self.text.dictionary_encode()
        return Ids(encoded.dictionary, self.integers), encoded.indices.to_numpy().astype(np.int64)

    @cached_property
    def _cached_codes(self) -> tuple[list[str], Ints]:
        ids, numbers = self.distinct()
        # Callers share this array.
        numbers.flags.writeable = False
        return ids.text.to_pylist(), numbers

    def codes(self) -> tuple[list[str], Ints]:
        """Return :meth:`distinct` with the ids as a list of ``str``."""
        names, numbers = self._cached_codes
        return list(names), numbers

    def order(self) -> Ints:
        """Return the positions of the ids in byte order, equal ids in order of appearance, shape (n,)."""
        head = fingerprints.heads(*self.utf8_bytes())
        order = np.argsort(head)
        if (head[order[1:]] == head[order[:-1]]).any():
            order = pc.array_sort_indices(self.text).to_numpy().astype(np.int64)
        return order

    def ranks(self) -> Ints:
        """Return the 0-based rank of each id in byte order, shape (n,)."""
        places = np.empty(len(self.text), dtype=np.int64)
        places[self.order()] = np.arange(len(self.text))
        return places


class Blocks(NamedTuple):
    """A column of ids by runs of equal neighbours."""

    ids: Ids  # the distinct ids, in order of appearance
    number: Ints  # the id of each block, shape (n_blocks,)
    starts: Ints  # the first row of each block, shape (n_blocks,)

    def distinct(self, n_rows: int) -> tuple[Ids, Ints]:
        """Return the distinct ids, and the number of each row's id, shape (n_rows,)."""
        return self.ids, np.repeat(self.number, np.diff(np.append(self.starts, n_rows)))


def column_ids(column: Column, where: str) -> Ids:  # noqa: C901 - one error of each kind of column
    """Check a column of ids, integers or text of any storage (object, ``str``, Arrow, categorical), and convert it."""
    if not len(column):
        # The type of an empty column is arbitrary in pandas.
        return Ids(pa.array([], pa.large_string()))
    is_object = column.dtype == object
    if not is_object and (pd.api.types.is_bool_dtype(column) or pd.api.types.is_float_dtype(column)):
        raise InputError(f"{where}: wanted ids as text, found {column.dtype}; cast with .astype(str) at the source")
    if not is_object and pd.api.types.is_integer_dtype(column):
        _refuse_missing(column, where)
        return Ids(pc.cast(pa.array(column), pa.large_string()), integers=True)
    try:
        # Without from_pandas, NaN would not become null.
        text = pa.array(column, from_pandas=True)
        if pa.types.is_integer(text.type):
            _refuse_missing(column, where)
            return Ids(pc.cast(_contiguous(text), pa.large_string()), integers=True)
        if pa.types.is_dictionary(text.type) and pa.types.is_integer(text.type.value_type):
            coded: Any = column.dtype
            return column_ids(column.astype(coded.categories.dtype), where)
        if not _is_text(text.type):
            remedy = "cast with .astype(str) at the source"
            if pa.types.is_list(text.type):
                remedy = "write a row for each id, with .explode of its column"
            raise InputError(f"{where}: wanted ids as text, found {text.type}; {remedy}")
        text = _contiguous(text)
        if text.type != pa.large_string():
            text = pc.cast(text, pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(_mixed_types_message(column, where)) from error
    except OverflowError as error:
        raise InputError(f"{where}: holds an integer beyond 64 bits; cast with .astype(str) at the source") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: {error.object!r} holds half of a surrogate pair; read its file as UTF-8") from error
    if text.null_count:
        _refuse_missing(column, where)
    return Ids(text)


def column_keys(column: Column, where: str) -> Ids:
    """Return the :func:`column_ids` of a column whose ids are keys of runs and judgments, none of which may be empty.

    Files are refused for empty ids, too, and external engines crash on them. Among entities, an empty id is none.
    """
    ids = column_ids(column, where)
    _, bounds = ids.utf8_bytes()
    if (bounds[1:] == bounds[:-1]).any():
        raise InputError(f"{where}: row {pc.index(ids.text, '').as_py()} is empty; give it an id, or remove the row")
    return ids


class LazyIds(Ids):
    """A column of ids that become text when they are looked at, checked then as by :func:`column_keys`."""

    _column: Column
    _where: str

    def __init__(self, column: pd.Series[Any], where: str) -> None:
        # Selecting rows of an array takes a tenth of the time for a column.
        kept: Any = column.to_numpy() if isinstance(column.dtype, np.dtype) else column
        # Text without accents, as most ids are, needs no conversion to be checked.
        is_text = isinstance(kept, np.ndarray) and type(kept[0]) is str and kept[0].isascii()
        integers = not is_text and column_keys(kept[:1], where).integers
        # The fields of the base class cannot be assigned.
        vars(self).update(_column=kept, _where=where, integers=integers)

    def __len__(self) -> int:
        return len(self._column)

    @cached_property
    def text(self) -> Any:
        """All ids, converted at first use."""
        return column_keys(self._column, self._where).text

    def distinct_blocks(self) -> Blocks:
        """Return the distinct ids by runs of equal neighbours."""
        return distinct_blocks(self._column, self._where)

    def take(self, rows: Ints) -> Ids:
        """Return the ids at some positions."""
        if "text" in vars(self) or 2 * len(rows) > len(self):
            return super().take(rows)
        part: Any = self._column[rows] if isinstance(self._column, np.ndarray) else self._column.iloc[rows]
        if isinstance(part.dtype, pd.CategoricalDtype) and not part.isna().any():
            # Otherwise all categories would become text.
            part = part.astype(part.dtype.categories.dtype)
        try:
            some = column_keys(part, self._where)
        except InputError:
            # The message names the row of the whole column.
            _ = self.text
            raise
        if len(rows) and some.integers != self.integers:
            # Integers and text.
            _ = self.text
        return Ids(some.text, self.integers)


def lazy_ids(column: pd.Series[Any], where: str) -> Ids:
    """Return the ids of a column; those that are no Arrow text, as objects and integers, as :class:`LazyIds`."""
    return column_keys(column, where) if not len(column) or _is_arrow(column) else LazyIds(column, where)


def distinct_blocks(column: Column, where: str) -> Blocks:
    """Return the distinct ids of a column by runs of equal neighbours.

    Equal neighbours, as in a run grouped by topic, are compared as they are; only the first of them becomes text.
    """
    starts = None if not len(column) or _is_arrow(column) else _changes(column)
    if starts is None:
        return column_keys(column, where).distinct_blocks()
    try:
        firsts: Any = np.asarray(column)[starts] if isinstance(column.dtype, np.dtype) else column.iloc[starts]
        ids, numbers = column_keys(firsts, where).distinct_by_hash()
    except InputError:
        # The message names the row of the whole column.
        column_keys(column, where)
        raise
    if ids.integers and column.dtype.kind == "O":
        # Objects of other types, as 1.0, equal integers.
        return column_keys(column, where).distinct_blocks()
    return Blocks(ids, numbers, starts)


def _changes(column: Column) -> Ints | None:
    """Return the rows that differ from the row before; ``None`` for types that have no plain comparison."""
    values = column.cat.codes.to_numpy() if isinstance(column.dtype, pd.CategoricalDtype) else np.asarray(column)
    if values.dtype.kind not in "Oiu":
        return None
    changes = _changes_of_objects(values)
    try:
        if changes is None:
            changes = np.flatnonzero(values[1:] != values[:-1])
        else:
            changes = changes[values[changes] != values[changes + 1]]
    except (TypeError, ValueError):
        # Objects that cannot be compared, as pandas.NA.
        return None
    return np.concatenate([[0], changes + 1])


def _changes_of_objects(values: NDArray[Any]) -> Ints | None:
    """Return the rows before another object; ``None`` if neighbours rarely share one.

    Addresses are compared ten times faster than text; readers of files and retrievers repeat one object per query.
    """
    if values.dtype.kind != "O" or not values.flags.c_contiguous:
        return None
    addresses = np.ndarray(values.shape, np.intp, values)
    head = addresses[:_SAMPLED_ROWS]
    if np.count_nonzero(head[1:] != head[:-1]) > len(head) // 8:
        return None
    return np.flatnonzero(addresses[1:] != addresses[:-1])


def _is_arrow(column: Column) -> bool:
    """Return True if a column is stored by Arrow, whose text needs no conversion."""
    dtype = column.dtype
    return isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow"


def row_describer(topics: Sequence[str], topic: Ints, docno: Ids) -> Callable[[int], str]:
    """Return a function that names the query and document of a row in messages."""
    return lambda row: f" (query {topics[topic[row]]!r}, document {docno.text[row].as_py()!r})"


def column_numbers(
    column: pd.Series[Any], where: str, whose: Callable[[int], str] | None = None
) -> NDArray[np.float64]:
    """Convert a column of numbers, or of text that spells numbers, to float64; NaN is refused, infinity is not."""
    if column.dtype.kind in "cmM":
        raise InputError(f"{where}: wanted numbers, found {column.dtype}; pass the numbers that they stand for")
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError as error:
        row = next(row for row, number in enumerate(column) if isinstance(number, int) and abs(number) > _MAX_FLOAT)
        raise InputError(f"{where}: row {row} holds an integer beyond the range of floating-point numbers") from error
    except (ValueError, TypeError):
        numbers = np.array([_number(value) for value in column])
    if column.dtype.kind not in "biuf":
        # Python reads 1_000 as a number, other programs do not.
        grouped = np.fromiter((isinstance(value, str) and "_" in value for value in column), bool, len(column))
        numbers = np.where(grouped, np.nan, numbers)
    bad = np.isnan(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{where}: row {row} holds {_quoted_value(column, row, whose)}, wanted a number; "
            "repair or drop the row before evaluating"
        )
    return numbers


def _number(value: Any) -> float:
    """Return a number, or text that spells one, as a float; NaN for anything else."""
    try:
        return float(value) if isinstance(value, (str, int, float, np.number, Decimal)) else float("nan")
    except (ValueError, OverflowError, TypeError):
        return float("nan")


def column_integers(column: pd.Series[Any], where: str, whose: Callable[[int], str] | None = None) -> Ints:
    """Convert a column to int64, refusing fractions."""
    if column.dtype == np.int64:
        whole: Ints = column.to_numpy()
        return whole
    numbers = column_numbers(column, where, whose)
    # A cast beyond 64 bits, or of infinity, is undefined.
    bad = (numbers != np.floor(numbers)) | (np.abs(numbers) >= 2.0**63)
    if bad.any():
        row = int(np.argmax(bad))
        remedy = "repair the row"
        if "'label'" in where:
            remedy = "map graded or fractional judgments to integer grades first, as vbterrier.frames.in_units does"
        raise InputError(
            f"{where}: row {row} holds {_quoted_value(column, row, whose)}, wanted a whole number; {remedy}"
        )
    return numbers.astype(np.int64)


# How files spell True and False.
_FLAGS = {"1": True, "1.0": True, "true": True, "yes": True, "0": False, "0.0": False, "false": False, "no": False}


def column_flags(column: pd.Series[Any], where: str) -> Bools:
    """Convert a column of flags: bool, 0 and 1, or text that spells them, as ``"false"`` and ``"0"`` in a file.

    >>> column_flags(pd.Series(["0", "TRUE", "1"]), "tags column 'tied'").tolist()
    [False, True, True]
    """
    if column.dtype == np.bool_:
        booleans: Bools = column.to_numpy()
        return booleans
    codes, values = pd.factorize(column, use_na_sentinel=False)
    flags = [_FLAGS.get(str(value).strip().casefold()) for value in values]
    if None in flags:
        row = int(np.argmax(codes == flags.index(None)))
        raise InputError(
            f"{where}: row {row} holds {_quoted_value(column, row, None)}, wanted 0 or 1, or true or false"
        )
    return np.array(flags, dtype=np.bool_)[codes] if len(column) else np.zeros(0, dtype=np.bool_)


def require_same_kind(left: Ids, right: Ids, left_name: str, right_name: str) -> None:
    """Refuse a join of integers with text, which would be empty."""
    if left.integers != right.integers and len(left) and len(right):
        kinds = {True: "integers", False: "text"}
        odd = left_name if left.integers else right_name
        raise InputError(
            f"{left_name} holds {kinds[left.integers]}, {right_name} holds {kinds[right.integers]}: they can never "
            f"match; cast {odd} with .astype(str), or read both from files with vbterrier.read_run and read_qrels"
        )


def release_unused() -> None:
    """Return the memory of freed arrays to the system, which Arrow and glibc would keep."""
    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        # Other C libraries have no such function.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


class Lookup:
    """An index over rows (topic, id), or over ids alone if ``topics`` is ``None``.

    It sorts 64-bit keys and searches them by bisection; the ids of each match are compared in full.
    """

    def __init__(self, topics: Ints | None, ids: Ids) -> None:
        self.topics, self.ids = topics, ids
        self._keys = ids.fingerprints if topics is None else fingerprints.keys(topics, ids.fingerprints)
        self._narrow_searches = _NARROW_SEARCHES if len(ids) > MIN_INDEX_KEYS else 0

    def _near(self, prints: Words) -> tuple[Words, Ints, bool]:
        """Return sorted keys, their rows, and True for repeated keys; without most of the keys that are not wanted.

        The first searches sort the keys near their own; an index that is searched more often sorts all of them once.
        """
        if self._narrow_searches and "_all" not in vars(self):
            self._narrow_searches -= 1
            near = _near_keys(self._keys, prints)
            if 2 * len(near) < len(self._keys):
                keys_near, order, repeats = _sorted_keys(self._keys[near])
                return keys_near, near[order], repeats
        return self._all

    @property
    def has_repeats(self) -> bool:
        """True if a pair of topic and id occurs more than once."""
        return self._all[2]

    @cached_property
    def _all(self) -> tuple[Words, Ints, bool]:
        return _sorted_keys(self._keys)

    @cached_property
    def _marks(self) -> Bools:
        """Marks of the rough keys of all pairs."""
        return fingerprints.leading_bits(_rough_keys(self.topics, self.ids, slice(None)))

    def _roughly(self, topics: Ints | None, ids: Ids) -> Ints | None:
        """Return the positions of pairs whose rough keys may occur; ``None`` if that rules out few pairs.

        Most documents of a long run are unjudged: the last bytes of an id cost a fraction of its fingerprint.
        """
        if "fingerprints" in vars(ids) or len(ids) <= _MIN_SEARCH_RATIO * max(len(self.ids), MIN_INDEX_KEYS):
            return None
        positions = []
        for start in range(0, len(ids), COMPARED):
            key = _rough_keys(topics, ids, slice(start, start + COMPARED))
            positions.append(start + np.flatnonzero(self._marks[fingerprints.marks(key)]))
        rough = np.concatenate(positions)
        return rough if _MIN_SEARCH_RATIO * len(rough) <= len(ids) else None

    def find(self, topics: Ints | None, ids: Ids) -> tuple[Ints, Ints]:
        """Match pairs with rows: the positions of pair and row of each match, ascending in pairs, then rows."""
        rough = self._roughly(topics, ids)
        if rough is not None:
            pairs, rows = self.find(None if topics is None else topics[rough], ids.take(rough))
            return rough[pairs], rows
        prints = ids.fingerprints if topics is None else fingerprints.keys(topics, ids.fingerprints)
        keys, order, repeats = self._near(prints)
        # Most documents of a run are unjudged: bisection is left to those whose leading bits a key has.
        near = _near_keys(prints, keys) if len(prints) > max(MIN_INDEX_KEYS, len(keys)) else None
        if near is not None:
            prints = prints[near]
        low = np.searchsorted(keys, prints, side="left")
        if repeats:
            pairs, places = rankings.spans(low, np.searchsorted(keys, prints, side="right"))
        else:
            within = np.flatnonzero(low < len(keys))
            pairs = within[keys[low[within]] == prints[within]]
            places = low[pairs]
        if near is not None:
            pairs = near[pairs]
        rows = order[places]
        for start in range(0, len(pairs), COMPARED):
            part = slice(start, start + COMPARED)
            indexed, others = self.ids.take(rows[part]).text, ids.take(pairs[part]).text
            equal = pc.equal(indexed, others).to_numpy(zero_copy_only=False).astype(bool)
            if topics is not None and self.topics is not None:
                equal &= self.topics[rows[part]] == topics[pairs[part]]
            if not equal.all():
                at = int(np.argmin(equal))
                clash = indexed[at].as_py(), others[at].as_py()
                raise InputError(f"ids {clash[0]!r} and {clash[1]!r} share a fingerprint: rename one of them")
        return pairs, rows

    def find_one(self, topics: Ints | None, ids: Ids) -> Ints:
        """Return the row of each pair, -1 if it is missing, shape (n,); for an index without repeated pairs."""
        pairs, rows = self.find(topics, ids)
        row_of_id = np.full(len(ids), -1, dtype=np.int64)
        row_of_id[pairs] = rows
        return row_of_id


def _near_keys(keys: Words, others: Words) -> Ints:
    """Return the positions of the keys whose leading bits one of the others has."""
    return np.flatnonzero(fingerprints.leading_bits(others)[fingerprints.marks(keys)])


def _rough_keys(topics: Ints | None, ids: Ids, part: slice) -> Words:
    """Keys of some pairs from the last bytes of their ids; equal pairs have equal keys."""
    data, bounds = ids.utf8_bytes()
    start, stop, _ = part.indices(len(ids))
    codes = np.zeros(stop - start, dtype=np.int64) if topics is None else topics[start:stop]
    return fingerprints.rough_keys(codes, data, bounds[start : stop + 1])


def _sorted_keys(keys: Words) -> tuple[Words, Ints, bool]:
    """Return sorted keys, their positions, and True for repeated keys."""
    order = np.argsort(keys)
    in_order = keys[order]
    repeats = bool((in_order[1:] == in_order[:-1]).any())
    # Positions of equal keys keep their order; without repeats the faster sort has the same result.
    return in_order, np.argsort(keys, kind="stable") if repeats else order, repeats


def repeated_pairs(topics: Ints, ids: Ids) -> Ints:
    """Return the rows whose pair (topic, id) is repeated, equal pairs next to each other."""
    if len(ids) > MIN_INDEX_KEYS:
        rows = fingerprints.roughly_repeated(topics, *ids.utf8_bytes())
        rows = rows[fingerprints.repeated_keys(fingerprints.keys(topics[rows], ids.take(rows).fingerprints))]
    else:
        # Joins need the fingerprints of all ids.
        rows = fingerprints.repeated_keys(fingerprints.keys(topics, ids.fingerprints))
    if not len(rows):
        return rows
    # Compare the few rows left in full, so that equal fingerprints of different ids do no harm.
    pairs = pd.DataFrame({"topic": topics[rows], "id": ids.take(rows).text.to_pylist()})
    repeats: Ints = rows[pairs.duplicated(keep=False).to_numpy()]
    return repeats


def near_matches(ids: Ids, others: Ids) -> list[tuple[str, str]]:
    """Pairs of an unknown id and a known id that are one id in two spellings.

    They differ only in case, percent-encoding, blanks or underscores, blanks at the ends, characters of no width, or
    Unicode form. Each unknown id has at most one pair; the cost is linear in the ids.
    """
    if ids.folding == others.folding == 0:
        return []
    # Runs are read in turns beside the same known ids, which keep their folded form; only the fewer ids are hashed.
    same = others.text.filter(pc.is_in(others.text, value_set=ids.text))
    unknown = Ids(ids.text.filter(pc.invert(pc.is_in(ids.text, value_set=same))))
    near = pc.is_in(others.folded_forms, value_set=unknown.folded_forms)
    if not pc.any(near).as_py():
        return []
    unknown = unknown.distinct()[0]
    place = pc.index_in(unknown.folded_forms, value_set=others.folded_forms.filter(near))
    matched = unknown.text.filter(place.is_valid()).to_pylist()
    return list(zip(matched, others.text.filter(near).take(place.drop_null()).to_pylist(), strict=True))


def warn_of_near_matches(ids: Ids, others: Ids, name: str, kind: str, other: str) -> bool:
    """Warn of ids that are known ids in another spelling, see :func:`near_matches`; return True then."""
    pairs = near_matches(ids, others)
    if pairs:
        warn(f"{name}: {near_match_text(pairs, kind, other)}")
    return bool(pairs)


def near_match_text(pairs: list[tuple[str, str]], kind: str, other: str) -> str:
    """Description of ids that are known ids in another spelling, with the remedy."""
    one, match = pairs[0]
    return (
        f"{len(pairs)} {kind} differ from those of {other} only in case, percent-encoding, blanks, underscores, "
        f"zero-width characters or Unicode form, such as {one!r} and {match!r}, and do not match; write ids alike in "
        "both"
    )


def _folded_text(text: Any) -> Any:
    """Text in lower case and compatibility form, decoded, with a space for blanks and underscores."""
    encoded = pc.match_substring(text, "%")
    if pc.any(encoded).as_py():
        decoded = pa.array([unquote(one) for one in text.filter(encoded).to_pylist()], text.type)
        text = pc.replace_with_mask(text, encoded, decoded)
    text = pc.utf8_lower(pc.replace_substring(pc.utf8_normalize(text, "NFKC"), "_", " "))
    if not pc.all(pc.string_is_ascii(text)).as_py():
        text = pc.replace_substring_regex(pc.replace_substring_regex(text, r"\p{Cf}", ""), r"\p{Z}", " ")
    return pc.utf8_trim_whitespace(text)


def _contiguous(text: Any) -> Any:
    if not isinstance(text, pa.ChunkedArray):
        return text
    # Combining would copy a single chunk.
    return text.chunk(0) if text.num_chunks == 1 else text.combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # The categories of an empty column have the type null.
    return str(kind) in {"string", "large_string", "string_view", "null"}


def _quoted_value(column: pd.Series[Any], row: int, whose: Callable[[int], str] | None) -> str:
    value = column.iloc[row]
    return repr(value.item() if isinstance(value, np.generic) else value) + ("" if whose is None else whose(row))


def _refuse_missing(column: Column, where: str) -> None:
    missing = np.asarray(pd.isna(column))
    if missing.any():
        raise InputError(f"{where}: row {int(np.argmax(missing))} has no id; repair or drop the row before evaluating")


def _mixed_types_message(column: Column, where: str) -> str:
    kinds = pd.Series(column).map(lambda value: type(value).__name__)
    row = int(np.argmax((kinds != kinds.iloc[0]).to_numpy()))
    return (
        f"{where}: wanted ids of one type, found {kinds.iloc[0]} in row 0 and {kinds.iloc[row]} in row {row}; "
        "cast with .astype(str) at the source"
    )
