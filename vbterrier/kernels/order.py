"""Order of ranked lists, and fingerprints of ids: what a join needs before any document is compared."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints, Words


# Odd multipliers with well spread bits (splitmix64, Steele et al. 2014).
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_BYTES = 8
# What lies behind so many bytes of a string is digested at once.
_LONGEST = 4096
# Bits that n bytes leave of a word.
_PUSH = np.array([0, *range(56, -1, -8)], dtype=np.uint64)
# Ids looked at together, and so few that halves of their keys tell most of them apart.
_BLOCK, _FEW = 1 << 15, 1 << 20


def mix(words: Words) -> Words:
    """Spread the bits of 64-bit words; a bijection (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * _MIX_1
    words = (words ^ (words >> np.uint64(27))) * _MIX_2
    return words ^ (words >> np.uint64(31))


def _padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes of one word at least."""
    return np.concatenate([data, np.zeros(_BYTES, dtype=np.uint8)]) if len(data) < _BYTES else data


def _words(data: NDArray[np.uint8]) -> Words:
    """The word that begins at each byte."""
    return np.ndarray((len(data) - _BYTES + 1,), dtype="<u8", buffer=data, strides=(1,))


def _load(data: NDArray[np.uint8], start: Ints, n_bytes: Ints) -> Words:
    """Up to 8 bytes from each start as one little-endian word, the rest of the word zero."""
    words = _words(data)
    inside = np.minimum(start, len(words) - 1)
    shift = ((start - inside) * _BYTES).astype(np.uint64)
    missing = ((_BYTES - n_bytes) * _BYTES).astype(np.uint64)
    # What lies behind the id is pushed out at the top of the word.
    return ((words[inside] >> shift) << missing) >> missing


def fingerprints(data: NDArray[np.uint8], offsets: Ints) -> Words:
    """A 64-bit fingerprint of each of n byte strings that lie end to end.

    Equal strings have equal fingerprints; different ones differ but for accidents of probability 2^-64 a pair, so
    whoever joins on them compares the strings that met.

    Parameters
    ----------
    data
        The bytes of all strings, shape (n_bytes,).
    offsets
        Where each string starts, and behind the last one where it ends, shape (n + 1,), rising.

    Returns
    -------
    numpy.ndarray
        Shape (n,), uint64. The cost is linear in the bytes, whatever the longest string.

    >>> prints = fingerprints(np.frombuffer(b"d1d2d1", dtype=np.uint8), np.array([0, 2, 4, 6]))
    >>> bool(prints[0] == prints[2]), bool(prints[0] == prints[1])
    (True, False)
    """
    data = _padded(data)
    start, length = offsets[:-1], np.diff(offsets)
    prints = mix(length.astype(np.uint64) + _STEP)
    most = min(int(length.max(initial=0)), _LONGEST)
    # As long as every string has a whole word; then only those that go on.
    shared = min(int(length.min(initial=most)), most) // _BYTES * _BYTES
    for done in range(0, shared, _BYTES):
        prints = mix(prints ^ _load(data, start + done, np.full(len(length), _BYTES)))
    long = np.flatnonzero(length > shared)
    for done in range(shared, most, _BYTES):
        word = _load(data, start[long] + done, np.minimum(length[long] - done, _BYTES))
        prints[long] = mix(prints[long] ^ word)
        long = long[length[long] > done + _BYTES]
    for row in np.flatnonzero(length > _LONGEST):
        rest = data[start[row] + _LONGEST : offsets[row + 1]]
        word = np.frombuffer(hashlib.blake2b(rest.tobytes(), digest_size=_BYTES).digest(), dtype="<u8")
        prints[row : row + 1] = mix(prints[row : row + 1] ^ word)
    return prints


def tails(data: NDArray[np.uint8], offsets: Ints) -> Words:
    """The last 8 bytes of each of n byte strings that lie end to end, fewer of shorter ones, as one word each.

    >>> words = tails(np.frombuffer(b"d1d2d1", dtype=np.uint8), np.array([0, 2, 4, 6]))
    >>> bool(words[0] == words[2]), bool(words[0] == words[1])
    (True, False)
    """
    data = _padded(data)
    start, stop = offsets[:-1], offsets[1:]
    length = stop - start
    shortest, longest = int(length.min(initial=_LONGEST)), int(length.max(initial=0))
    if shortest == longest >= _BYTES:
        # Ids of one length end at even distances: no place needs to be looked up.
        return np.ndarray(length.shape, "<u8", data, int(stop[0]) - _BYTES, (longest,)).astype(np.uint64)
    n_bytes = np.minimum(length, _BYTES)
    found = _words(data)[np.maximum(stop - _BYTES, 0)]
    if shortest < _BYTES:
        # What lies before a short id is pushed out at the bottom of the word.
        found >>= _PUSH[n_bytes]
        if not n_bytes.all():
            found[n_bytes == 0] = 0
        # The first ids have no whole word before their end.
        first = slice(0, int(np.searchsorted(stop, _BYTES)))
        if first.stop:
            found[first] = _load(data, start[first], n_bytes[first])
    return found


def rough_keys(codes: Ints, data: NDArray[np.uint8], offsets: Ints) -> Words:
    """One 64-bit key for each pair of a code and a byte string, from its tail alone: equal pairs have equal keys.

    Ids of one collection differ at their ends: where tails tell them apart, no fingerprint is needed, which costs
    several times more.
    """
    return tails(data, offsets) * _MIX_1 + codes.astype(np.uint64) * _STEP


def roughly_repeated(codes: Ints, data: NDArray[np.uint8], offsets: Ints) -> Ints:
    """The positions of pairs whose rough keys stand more than once: all pairs that do, and a few that do not.

    Pairs of one code that stand together are compared among themselves, while they are in the processor's cache, by
    half of their keys.

    >>> utf8_bytes = np.frombuffer(b"d1d2d1d1", dtype=np.uint8)
    >>> roughly_repeated(np.array([0, 0, 0, 1]), utf8_bytes, np.array([0, 2, 4, 6, 8]))
    array([0, 2])
    """
    found = [np.empty(0, dtype=np.int64)]
    for start, stop in pairwise(_cuts(codes)):
        rows = slice(start, stop)
        key = rough_keys(codes[rows], data, offsets[start : stop + 1])
        half = (key >> np.uint64(32)).astype(np.uint32) if stop - start < _FEW else key
        found.append(start + repeated(half))
    return np.concatenate(found)


def _cuts(codes: Ints) -> list[int]:
    """Where to cut rows into blocks so that no code is in two of them: nowhere, if its rows do not stand together."""
    if (codes[1:] < codes[:-1]).any():
        return [0, len(codes)]
    firsts = np.searchsorted(codes, codes[::_BLOCK])
    return [*np.unique(firsts).tolist(), len(codes)]


def keys(codes: Ints, prints: Words) -> Words:
    """One 64-bit key for each pair of a small code (a topic's number) and a fingerprint."""
    return mix(prints + mix((codes.astype(np.uint64) + np.uint64(1)) * _STEP))


def repeated(key: Words | NDArray[np.uint32]) -> Ints:
    """The positions of keys that stand more than once, those of one key side by side in rising order.

    >>> repeated(np.array([5, 7, 5, 9], dtype=np.uint64))
    array([0, 2])
    """
    ranked = np.sort(key)
    twice = ranked[1:][ranked[1:] == ranked[:-1]]
    if not len(twice):
        return np.empty(0, dtype=np.int64)
    found = np.flatnonzero(np.isin(key, twice))
    return found[np.argsort(key[found], kind="stable")]


def is_falling(score: NDArray[np.float32], starts: Ints) -> bool:
    """Whether scores never rise within the groups that begin at ``starts``."""
    rises = score[1:] > score[:-1]
    rises[starts[1:] - 1] = False
    return not bool(rises.any())


def top_rows(starts: Ints, stops: Ints, depth: int) -> Ints:
    """The first ``depth`` rows of each group, -1 where a group is shorter, shape (n_groups, depth).

    >>> top_rows(np.array([0, 3]), np.array([3, 4]), 2)
    array([[ 0,  1],
           [ 3, -1]])
    """
    rows = starts[:, None] + np.arange(depth)
    return np.where(rows < stops[:, None], rows, -1)


def tied_groups(score: NDArray[np.float32], starts: Ints, stops: Ints, depth: int) -> NDArray[np.bool_]:
    """Which groups of falling scores have a tie that touches their first ``depth`` rows, shape (n_groups,)."""
    if len(starts) * (depth + 1) < len(score):
        rows = top_rows(starts, stops, depth + 1)
        tied: NDArray[np.bool_] = ((rows[:, 1:] >= 0) & (score[rows[:, 1:]] == score[rows[:, :-1]])).any(axis=1)
        return tied
    equal = np.flatnonzero(score[1:] == score[:-1])
    # The group of each row that equals the next, unless the next begins another group or stands behind the cut.
    group = np.searchsorted(starts, equal, side="right") - 1
    touching = (equal + 1 < stops[group]) & (equal - starts[group] < depth)
    tied = np.zeros(len(starts), dtype=bool)
    tied[group[touching]] = True
    return tied


def n_tied(score: NDArray[np.float32], rows: Ints, starts: Ints, stops: Ints) -> int:
    """How many of some rows, each -1 or within its group of falling scores, share their score with a neighbour.

    >>> n_tied(np.float32([3, 2, 2, 1]), np.array([[0, 1]]), np.array([0]), np.array([4]))
    1
    """
    above = (rows > starts[:, None]) & (score[np.maximum(rows - 1, 0)] == score[rows])
    below = (rows >= 0) & (rows + 1 < stops[:, None])
    below &= score[np.where(below, rows + 1, 0)] == score[rows]
    return int(np.count_nonzero(above | below))


def spans(lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """Lay the half-open ranges ``[low, high)`` end to end: which range each element is of, and the element.

    >>> spans(np.array([4, 0, 7]), np.array([6, 0, 8]))
    (array([0, 0, 2]), array([4, 5, 7]))
    """
    sizes = highs - lows
    owner = np.repeat(np.arange(len(lows)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) - np.repeat(before - lows, sizes)
