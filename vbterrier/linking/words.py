"""Texts as words: where each stands in the text as it was given, and the form in which two words are the same.

A word is a run of letters and digits of any script with its marks; a symbol (``+``, ``$``, an emoji) is a word of its
own, so that "C++" is not "C"; punctuation, blanks and control characters part words. Scripts written without spaces
(Han, kana, Thai, Lao, Khmer, Myanmar) have no words to look up without a dictionary: there every letter with its
marks is a word, and a name is found wherever its letters stand side by side.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from vbterrier.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    Span = tuple[int, int]

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


class _Kinds(dict[int, str]):
    """What each code point is: ``w`` in a word, ``u`` a word by itself, ``s`` symbol, ``m`` mark, ``f`` invisible."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        if category in {"Lo", "Lm", "Nl"} and any(low <= code <= high for low, high in _UNSPACED):
            kind = "u"
        elif code == _ZERO_WIDTH_SPACE:
            kind = " "
        else:
            kind = "f" if category == "Cf" else {"L": "w", "N": "w", "M": "m", "S": "s"}.get(category[0], " ")
        # Each of the few code points that texts hold is looked up once.
        self[code] = kind
        return kind


_KINDS = _Kinds()
_WORD = re.compile(r"w(?:[wmf]*[wm])?|[us]m*")


class _Invisible(dict[int, "int | None"]):
    def __missing__(self, code: int) -> int | None:
        self[code] = None if _KINDS[code] == "f" else code
        return self[code]


_VISIBLE = _Invisible()


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


def word_spans(text: str) -> list[Span]:
    """Start and end of every word, in code points, half-open.

    >>> [text[start:end] for text in ["C++ at Zoë's, 東京"] for start, end in word_spans(text)]
    ['C', '+', '+', 'at', 'Zoë', 's', '東', '京']
    """
    return list(map(re.Match.span, _WORD.finditer(text.translate(_KINDS))))


def folded(text: str, spans: list[Span], *, case: bool = False) -> str:
    r"""The words with single blanks between: NFC, casefolded unless ``case`` counts, without invisible signs.

    Letters may become more or fewer; words do not, so that places go back to the text by counting words.

    >>> folded("STRASSE, Stra\u00dfe!", [(0, 7), (9, 15)])
    'strasse strasse'
    """
    joined = " ".join([text[start:end] for start, end in spans])
    if joined.isascii():
        return joined if case else joined.lower()
    joined = unicodedata.normalize("NFC", joined.translate(_VISIBLE))
    # Case folding can part what NFC had joined ('ǰ' becomes 'j' and a caron).
    return joined if case else unicodedata.normalize("NFC", joined.casefold())


def word_form(text: str, *, case: bool = False) -> str:
    """The folded words of a whole text; empty when it holds none.

    >>> word_form("  Obama, Barack ")
    'obama barack'
    """
    return folded(text, word_spans(text), case=case)
