"""Texts as words: where each stands in the text as it was given, and the form in which two words are the same.

A word is a run of letters and digits of any script with its marks, or a run of symbols (``+``, ``$``, emoji), so that
"C++" is not "C"; punctuation, blanks and control characters part words. Scripts written without spaces
(Han, kana, Thai, Lao, Khmer, Myanmar) have no words to look up without a dictionary: there every letter with its
marks is a word, and a name is found wherever its letters stand side by side.
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

    Octets = NDArray[np.uint8]
    Codes = NDArray[np.uint32]


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
# What each code point is, 0 while nobody asked; memory is taken only for those that texts hold.
_KINDS = np.zeros(sys.maxunicode + 1, np.uint8)


def _kind(code: int) -> int:
    category = unicodedata.category(chr(code))
    if category in {"Lo", "Lm", "Nl"} and any(low <= code <= high for low, high in _UNSPACED):
        return _UNSPACED_LETTER
    if category == "Cf":
        return _BLANK if code == _ZERO_WIDTH_SPACE else _INVISIBLE
    return _BY_CATEGORY.get(category[0], _BLANK)


def _kinds(codes: Codes) -> Octets:
    kinds = _KINDS[codes]
    if not kinds.all():
        for code in np.unique(codes[kinds == 0]).tolist():
            _KINDS[code] = _kind(code)
        kinds = _KINDS[codes]
    return kinds


# Texts taken at a time, in code points: each costs some 60 bytes on the way.
_BATCH = 2**20


def texts_of(texts: Iterable[str]) -> list[str]:
    """Check the texts given to a linker.

    Raises
    ------
    InputError
        One text instead of several, or something that is no text, with its place.

    >>> texts_of("one text")
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: texts: wanted a list of texts, found one text; pass [text]
    """
    if isinstance(texts, str):
        raise InputError("texts: wanted a list of texts, found one text; pass [text]")
    checked = list(texts)
    for place, text in enumerate(checked):
        if not isinstance(text, str):
            raise InputError(f"texts: wanted text, found {type(text).__name__} in place {place}; pass '' for none")
    return checked


@dataclass(frozen=True, eq=False)
class Words:
    """The words of several texts, in order.

    Parameters
    ----------
    texts
        The texts.
    text
        Place of the text of each word, shape (n_words,).
    start, end
        Where each word stands in its text, in code points, half-open; shape (n_words,).
    """

    texts: list[str]
    text: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, texts: list[str]) -> Words:
        """Find the words.

        >>> words = Words.of(["C++ at Zoë's", "東京"])
        >>> [words.texts[t][s:e] for t, s, e in zip(words.text, words.start, words.end)]
        ['C', '++', 'at', 'Zoë', 's', '東', '京']
        """
        # Line ends part words, so that no word runs from one text into the next.
        starts, ends = _runs(_kinds(_codes(texts)))
        begin = _begins(texts)
        text = np.searchsorted(begin, starts, side="right") - 1
        return cls(texts, text, starts - begin[text], ends - begin[text])

    def folded(self, *, case: bool = False) -> str:
        r"""All words between single blanks: NFC, casefolded unless ``case`` counts, without invisible signs.

        Texts that have words are parted by line ends. Letters may become more or fewer, words do not, so that places
        go back to the texts by counting words.

        >>> Words.of(["STRASSE, Straße!", "", "x"]).folded()
        ' \n strasse strasse \n x '
        """
        codes = _codes(self.texts)
        begin = _begins(self.texts)[self.text]
        starts, ends = self.start + begin, self.end + begin
        inside = np.zeros(len(codes) + 1, np.int8)
        # A word begins where another ends in scripts without spaces.
        inside[ends] -= 1
        inside[starts] += 1
        copies = np.cumsum(inside[:-1], dtype=np.int8)
        copies[_KINDS[codes] == _INVISIBLE] = 0
        first = np.diff(self.text, prepend=-1) > 0
        # In front of a word goes a blank, of the first of a text a blank, a line end and a blank.
        copies[starts] += np.where(first, 3, 1)
        after = np.cumsum(copies, dtype=np.int64)[starts]
        spread = np.repeat(codes, copies)
        spread[after - 2] = ord(" ")
        spread[after[first] - 3] = ord("\n")
        spread[after[first] - 4] = ord(" ")
        return _fold(spread.tobytes().decode("utf-32-le"), case=case) + " "

    def forms(self, *, case: bool = False) -> list[str]:
        """The folded words of each text; empty where it holds none.

        >>> Words.of(["  Obama, Barack ", "!"]).forms()
        ['obama barack', '']
        """
        forms = [""] * len(self.texts)
        for place, form in zip(np.unique(self.text).tolist(), self.folded(case=case).split("\n")[1:], strict=True):
            forms[place] = form[1:-1]
        return forms


def word_form(text: str, *, case: bool = False) -> str:
    """The folded words of one text.

    >>> word_form("St.  LOUIS")
    'st louis'
    """
    return Words.of([text]).forms(case=case)[0]


def batches(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Consecutive texts that together are not too long, with the place of the first."""
    begin, low = _begins(texts), 0
    while low < len(texts):
        high = max(low + 1, int(np.searchsorted(begin, begin[low] + _BATCH, side="right")) - 1)
        yield low, texts[low:high]
        low = high


def _begins(texts: list[str]) -> Ints:
    """Where each text begins among all, a line end between; and where the next would. Shape (n_texts + 1,)."""
    return np.cumsum([0, *map(len, texts)]) + np.arange(len(texts) + 1)


def _runs(kinds: Octets) -> tuple[Ints, Ints]:
    """Start and end of every word: a sign that is no mark, and what follows of its kind, with marks."""
    loose = (kinds == _MARK) | (kinds == _INVISIBLE)
    base = kinds
    if loose.any():
        # Marks and invisible signs are of the kind of what stands before them; of none at the very beginning.
        places = np.maximum.accumulate(np.where(loose, -1, np.arange(len(kinds))))
        base = np.where(places >= 0, kinds[places], _BLANK)
    apart = np.ones(len(kinds), bool)
    apart[1:] = base[1:] != base[:-1]
    apart |= ~loose & (base == _UNSPACED_LETTER)
    edges = np.flatnonzero(apart)
    words = base[edges] != _BLANK
    ends = np.append(edges[1:], len(kinds))
    starts, ends = edges[words], ends[words]
    if (kinds == _INVISIBLE).any():
        # An invisible sign behind the last letter is not of the word.
        visible = np.maximum.accumulate(np.where(kinds == _INVISIBLE, 0, np.arange(len(kinds))))
        ends = visible[ends - 1] + 1
    return starts, ends


def _codes(texts: list[str]) -> Codes:
    """The code points of all texts, a line end between two."""
    return np.frombuffer("\n".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)


def _fold(text: str, *, case: bool) -> str:
    # Case folding can part what NFC had joined ('\u01f0' becomes 'j' and a caron).
    composed = unicodedata.normalize("NFC", text)
    return composed if case else unicodedata.normalize("NFC", composed.casefold())
