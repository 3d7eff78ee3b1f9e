"""Tokenization of texts into words with offsets and folded forms.

A word is a run of letters and digits of any script with their marks, or a run of symbols (``+``, ``$``, emoji), so that
"C++" differs from "C"; punctuation, blanks and control characters separate words. Scripts written without spaces (Han,
kana, Thai, Lao, Khmer, Myanmar) cannot be split into words without a dictionary: there every letter with its marks is a
word, and a name matches its letters in sequence.
"""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Ints

    Kinds = NDArray[np.uint8]
    Codes = NDArray[np.uint8] | NDArray[np.uint32]


_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # halfwidth Katakana
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)
_ZERO_WIDTH_SPACE = 0x200B

_BLANK, _IN_WORD, _UNSPACED_LETTER, _SYMBOL, _MARK, _INVISIBLE = range(1, 7)
_BY_CATEGORY = {"L": _IN_WORD, "N": _IN_WORD, "M": _MARK, "S": _SYMBOL}
# The kind of each code point, computed at its first use; 0 if not computed.
_KINDS = np.zeros(sys.maxunicode + 1, np.uint8)

# Letters that do not decompose into a letter and an accent.
_LETTERS = {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE"}
_LETTERS |= {"œ": "oe", "Œ": "OE", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i", "ß": "ss"}
_ACCENTS = {**dict.fromkeys(range(0x0300, 0x0370), ""), **{ord(letter): plain for letter, plain in _LETTERS.items()}}

# Code points of the texts that are processed together; each takes some 60 bytes.
_BLOCK_CODE_POINTS = 2**20


def _kind(code: int) -> int:
    category = unicodedata.category(chr(code))
    if category in {"Lo", "Lm", "Nl"} and any(low <= code <= high for low, high in _UNSPACED):
        return _UNSPACED_LETTER
    if category == "Cf":
        return _BLANK if code == _ZERO_WIDTH_SPACE else _INVISIBLE
    return _BY_CATEGORY.get(category[0], _BLANK)


def _kinds(codes: Codes) -> Kinds:
    kinds = _KINDS[codes]
    if not kinds.all():
        for code in np.unique(codes[kinds == 0]).tolist():
            _KINDS[code] = _kind(code)
        kinds = _KINDS[codes]
    return kinds


def strip_accents(text: str) -> str:
    """Return a text without the accents of its letters; marks of scripts such as Devanagari are not accents.

    >>> strip_accents("José Łukasz Æbeltoft 東京")
    'Jose Lukasz AEbeltoft 東京'
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_ACCENTS))


def check_texts(texts: Iterable[str]) -> list[str]:
    """Check the texts given to a linker."""
    if isinstance(texts, str):
        raise InputError("texts: wanted a list of texts, found one text; pass [text]")
    checked = list(texts)
    for place, text in enumerate(checked):
        if not isinstance(text, str):
            raise InputError(f"texts: wanted text, found {type(text).__name__} in place {place}; pass '' for none")
    return checked


@dataclass(frozen=True, eq=False)
class Words:
    """The words of texts, in order."""

    texts: list[str]
    text: Ints  # the index of the text of each word
    start: Ints  # start, end: the offsets of each word in its text, in code points, half-open
    end: Ints

    @classmethod
    def of(cls, texts: list[str]) -> Words:
        """Find the words.

        >>> words = Words.of(["C++ at Zoë's", "東京"])
        >>> [words.texts[t][s:e] for t, s, e in zip(words.text, words.start, words.end)]
        ['C', '++', 'at', 'Zoë', 's', '東', '京']
        """
        # Line ends separate words, so that no word spans two texts.
        codes = _codes(texts)
        starts, ends = _runs(_kinds(codes), is_plain=codes.dtype == np.uint8)
        begin = _text_starts(texts)
        text = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(starts, begin)))
        return cls(texts, text, starts - begin[text], ends - begin[text])

    def folded_words(self, *, case: bool = False) -> str:
        r"""Return all words between single blanks: NFC, casefolded unless ``case``, without invisible characters.

        Line ends separate texts that have words. Folding may change the number of letters but not that of words.

        >>> Words.of(["STRASSE, Straße!", "", "x"]).folded_words()
        ' \n strasse strasse \n x '
        """
        return self.utf8(case=case).decode()

    def utf8(self, *, case: bool = False) -> bytes:
        """Return :meth:`folded_words` in UTF-8."""
        codes = _codes(self.texts)
        begin = _text_starts(self.texts)[self.text]
        starts, ends = self.start + begin, self.end + begin
        inside = np.zeros(len(codes) + 1, np.int8)
        # In scripts without spaces one word starts at the end of another.
        inside[ends] -= 1
        inside[starts] += 1
        copies = np.cumsum(inside[:-1], dtype=np.int8)
        first = np.diff(self.text, prepend=-1) > 0
        # Insert a blank before each word, and a blank, a line end and a blank before the first word of a text.
        inserted = np.where(first, 3, 1)
        if codes.dtype == np.uint8:
            sizes = ends - starts
            at = np.cumsum(sizes + inserted) - sizes
            filled = np.zeros(int((sizes + inserted).sum()) + 1, np.int8)
            filled[at], filled[at + sizes] = 1, -1
            letters = np.full(len(filled), ord(" "), np.uint8)
            letters[np.cumsum(filled, dtype=np.int8).view(np.bool_)] = codes[copies.view(np.bool_)]
            letters[at[first] - 2] = ord("\n")
            plain = letters.tobytes()
            return plain if case else plain.lower()
        copies[_KINDS[codes] == _INVISIBLE] = 0
        copies[starts] += inserted
        after = np.cumsum(copies, dtype=np.int64)[starts]
        expanded = np.repeat(codes, copies)
        expanded[after - 2] = ord(" ")
        expanded[after[first] - 3] = ord("\n")
        expanded[after[first] - 4] = ord(" ")
        composed = unicodedata.normalize("NFC", expanded.tobytes().decode("utf-32-le"))
        # Casefolding can split composed letters ('\u01f0' becomes 'j' and a caron).
        return (composed if case else unicodedata.normalize("NFC", composed.casefold())).encode() + b" "

    def forms(self, *, case: bool = False) -> list[str]:
        """Return the folded words of each text; empty if it has none."""
        forms = [""] * len(self.texts)
        for place, form in zip(
            np.unique(self.text).tolist(), self.folded_words(case=case).split("\n")[1:], strict=True
        ):
            forms[place] = form[1:-1]
        return forms


def batches(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield batches of consecutive texts with a limited total length, and the index of the first text of each."""
    begin, low = _text_starts(texts), 0
    while low < len(texts):
        high = max(low + 1, int(np.searchsorted(begin, begin[low] + _BLOCK_CODE_POINTS, side="right")) - 1)
        yield low, texts[low:high]
        low = high


def _text_starts(texts: list[str]) -> Ints:
    """Return the offset of each text in the texts joined by line ends, and the end; shape (n_texts + 1,)."""
    return np.cumsum([0, *map(len, texts)]) + np.arange(len(texts) + 1)


def _runs(kinds: Kinds, *, is_plain: bool) -> tuple[Ints, Ints]:
    """Return the start and end of every word: a run of characters of one kind, with their marks.

    Plain characters, those of ASCII, are neither marks nor invisible nor letters of scripts without spaces.
    """
    if is_plain:
        edges = np.concatenate([[0], np.flatnonzero(kinds[1:] != kinds[:-1]) + 1, [len(kinds)]])
        words = np.flatnonzero(kinds[edges[: -1 if len(kinds) else 0]] != _BLANK)
        return edges[words], edges[words + 1]
    loose = (kinds == _MARK) | (kinds == _INVISIBLE)
    base = kinds
    if loose.any():
        # Marks and invisible characters take the kind of the character before them; at the start they are blank.
        places = np.maximum.accumulate(np.where(loose, -1, np.arange(len(kinds))))
        base = np.where(places >= 0, kinds[places], _BLANK)
    boundary = np.ones(len(kinds), bool)
    boundary[1:] = base[1:] != base[:-1]
    boundary |= ~loose & (base == _UNSPACED_LETTER)
    edges = np.flatnonzero(boundary)
    words = base[edges] != _BLANK
    ends = np.append(edges[1:], len(kinds))
    starts, ends = edges[words], ends[words]
    if (kinds == _INVISIBLE).any():
        # Invisible characters after the last letter are not part of the word.
        visible = np.maximum.accumulate(np.where(kinds == _INVISIBLE, 0, np.arange(len(kinds))))
        ends = visible[ends - 1] + 1
    return starts, ends


def _codes(texts: list[str]) -> Codes:
    """Return the code points of the texts joined by line ends; ASCII in single bytes."""
    joined = "\n".join(texts)
    if joined.isascii():
        return np.frombuffer(joined.encode("ascii"), np.uint8)
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
