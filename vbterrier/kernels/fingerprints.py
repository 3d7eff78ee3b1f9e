"""64-bit fingerprints of ids, and the keys on which tables of ids are joined."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Ints, Words


# Odd multipliers and shifts of splitmix64 (Steele et al. 2014).
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
GOLDEN_STEP = np.uint64(0x9E3779B97F4A7C15)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_BYTES = 8
# The bytes of a string beyond this number are hashed in one call.
_MAX_WORD_BYTES = 4096
# The shift of a word that keeps n of its bytes, by n.
_PUSH = np.array([0, *range(56, -1, -8)], dtype=np.uint64)
# Ids of a block, and the size of a block below which the upper halves of keys rarely collide.
_BLOCK_IDS, _MAX_HALF_KEY_IDS = 1 << 15, 1 << 20

# Byte strings whose fingerprints are computed at a time.
STRINGS = 1 << 16
# The number of leading bits that tell most keys apart; a table of so many marks stays in the processor's cache.
MARK_BITS = 20


def mix(words: Words) -> Words:
    """Mix the bits of 64-bit words; a bijection (the finaliser of splitmix64)."""
    mixed = words ^ (words >> _SHIFT_1)
    mixed *= _MIX_1
    mixed ^= mixed >> _SHIFT_2
    mixed *= _MIX_2
    mixed ^= mixed >> _SHIFT_3
    return mixed


def fingerprints(data: NDArray[np.uint8], offsets: Ints) -> Words:
    """A 64-bit fingerprint of each of n concatenated byte strings.

    Equal strings have equal fingerprints; two different strings collide with probability 2^-64, so callers that join
    on fingerprints compare the matching strings.

    - ``data``: the bytes of all strings, shape (n_bytes,)
    - ``offsets``: the start of each string, and the end of the last one, shape (n + 1,), increasing

    Returns shape (n,), uint64. The cost is linear in the number of bytes.
    """
    return of_spans(data, offsets[:-1], np.diff(offsets))


def of_spans(data: NDArray[np.uint8], start: Ints, length: Ints) -> Words:
    """:func:`fingerprints` of n byte strings within others, given the start and the length of each, shape (n,)."""
    data = _pad_to_word(data)
    if len(start) > STRINGS:
        # In blocks, because the temporary arrays take six times the memory of the result.
        parts = (slice(low, low + STRINGS) for low in range(0, len(start), STRINGS))
        return np.concatenate([of_spans(data, start[part], length[part]) for part in parts])
    digest = mix(length.astype(np.uint64) + GOLDEN_STEP)
    most = min(int(length.max(initial=0)), _MAX_WORD_BYTES)
    shortest = int(length.min(initial=most))
    # All strings while each fills a word, then while each has a byte left; then only the longer ones.
    full, shared = shortest // _BYTES * _BYTES, min(-(-shortest // _BYTES) * _BYTES, most)
    words = _words(data)
    for done in range(0, full, _BYTES):
        digest = mix(digest ^ words[start + done])
    for done in range(full, shared, _BYTES):
        digest = mix(digest ^ _load(data, start + done, np.minimum(length - done, _BYTES)))
    long = np.flatnonzero(length > shared)
    for done in range(shared, most, _BYTES):
        word = _load(data, start[long] + done, np.minimum(length[long] - done, _BYTES))
        digest[long] = mix(digest[long] ^ word)
        long = long[length[long] > done + _BYTES]
    for row in np.flatnonzero(length > _MAX_WORD_BYTES):
        rest = data[start[row] + _MAX_WORD_BYTES : start[row] + length[row]]
        word = np.frombuffer(hashlib.blake2b(rest.tobytes(), digest_size=_BYTES).digest(), dtype="<u8")
        digest[row : row + 1] = mix(digest[row : row + 1] ^ word)
    return digest


def keys(codes: Ints, fingerprints: Words) -> Words:
    """A 64-bit key for each pair of a small code (a topic's number) and a fingerprint."""
    return mix(fingerprints + mix((codes.astype(np.uint64) + np.uint64(1)) * GOLDEN_STEP))


def of_groups(group: Ints, fingerprints: Words, value: Words, n_groups: int) -> Words:
    """A fingerprint of the pairs (fingerprint, value) of each group in any order, shape (n_groups,)."""
    total = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(total, group, mix(fingerprints ^ mix(value + GOLDEN_STEP)))
    return total


def of_named_groups(names: Sequence[str], words: Words) -> bytes:
    """Bytes that determine the names and words of groups, independently of their order."""
    parts = sorted(f"{len(name)}:{name}={word:x};" for name, word in zip(names, words.tolist(), strict=True))
    return "".join(parts).encode()


def marks(key: Words) -> Ints:
    """The leading bits of keys, below ``2^MARK_BITS``: keys with different marks differ."""
    return (key >> np.uint64(64 - MARK_BITS)).astype(np.int64)


def leading_bits(key: Words) -> Bools:
    """A table of the leading bits that keys have, shape (2^MARK_BITS,)."""
    table = np.zeros(1 << MARK_BITS, dtype=bool)
    table[marks(key)] = True
    return table


def repeated_keys(key: Words | NDArray[np.uint32]) -> Ints:
    """The positions of duplicated keys, grouped by key, increasing within a group."""
    ranked = np.sort(key)
    twice = ranked[1:][ranked[1:] == ranked[:-1]]
    if not len(twice):
        return np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(np.isin(key, twice))
    return rows[np.argsort(key[rows], kind="stable")]


def heads(data: NDArray[np.uint8], offsets: Ints) -> Words:
    """The first 8 bytes of each of n concatenated byte strings as one word; words compare as these bytes do."""
    return _load(_pad_to_word(data), offsets[:-1], np.minimum(np.diff(offsets), _BYTES)).byteswap()


def tails(data: NDArray[np.uint8], offsets: Ints) -> Words:
    """The last 8 bytes of each of n concatenated byte strings as one word, zero-padded for shorter strings."""
    data = _pad_to_word(data)
    start, stop = offsets[:-1], offsets[1:]
    length = stop - start
    shortest, longest = int(length.min(initial=_MAX_WORD_BYTES)), int(length.max(initial=0))
    if shortest == longest >= _BYTES:
        # Ids of equal length end at regular distances, so a strided view finds them without indexing.
        return np.ndarray(length.shape, "<u8", data, int(stop[0]) - _BYTES, (longest,)).astype(np.uint64)
    n_bytes = np.minimum(length, _BYTES)
    word = _words(data)[np.maximum(stop - _BYTES, 0)]
    if shortest < _BYTES:
        # The shift drops the bytes before a short id.
        word >>= _PUSH[n_bytes]
        if not n_bytes.all():
            word[n_bytes == 0] = 0
        # The first ids have no whole word before their end.
        first = slice(0, int(np.searchsorted(stop, _BYTES)))
        if first.stop:
            word[first] = _load(data, start[first], n_bytes[first])
    return word


def rough_keys(codes: Ints, data: NDArray[np.uint8], offsets: Ints) -> Words:
    """A 64-bit key for each pair of a code and a byte string, from the string's tail; equal pairs have equal keys.

    Ids of one collection mostly differ in their last bytes, and tails cost a fraction of fingerprints.
    """
    return tails(data, offsets) * _MIX_1 + codes.astype(np.uint64) * GOLDEN_STEP


def roughly_repeated(codes: Ints, data: NDArray[np.uint8], offsets: Ints) -> Ints:
    """The positions of all duplicated pairs of a code and a byte string, and of a few others, by their rough keys.

    Consecutive pairs of one code are compared block by block, within the processor's cache, by half of their keys.
    """
    positions = [np.empty(0, dtype=np.int64)]
    for start, stop in pairwise(_block_bounds(codes)):
        rows = slice(start, stop)
        key = rough_keys(codes[rows], data, offsets[start : stop + 1])
        half = (key >> np.uint64(32)).astype(np.uint32) if stop - start < _MAX_HALF_KEY_IDS else key
        positions.append(start + repeated_keys(half))
    return np.concatenate(positions)


def _block_bounds(codes: Ints) -> list[int]:
    """Bounds of blocks of rows such that each code is in one block; a single block if codes are not sorted."""
    if (codes[1:] < codes[:-1]).any():
        return [0, len(codes)]
    firsts = np.searchsorted(codes, codes[::_BLOCK_IDS])
    return [*np.unique(firsts).tolist(), len(codes)]


def _pad_to_word(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes padded to at least one word."""
    return np.concatenate([data, np.zeros(_BYTES, dtype=np.uint8)]) if len(data) < _BYTES else data


def _words(data: NDArray[np.uint8]) -> Words:
    """The little-endian word that begins at each byte; a view."""
    return np.ndarray((len(data) - _BYTES + 1,), dtype="<u8", buffer=data, strides=(1,))


def _load(data: NDArray[np.uint8], start: Ints, n_bytes: Ints) -> Words:
    """Up to 8 bytes from each start as one little-endian, zero-padded word."""
    words = _words(data)
    inside = np.minimum(start, len(words) - 1)
    shift = ((start - inside) * _BYTES).astype(np.uint64)
    missing = ((_BYTES - n_bytes) * _BYTES).astype(np.uint64)
    # The shifts drop the bytes after the id.
    return ((words[inside] >> shift) << missing) >> missing
