"""The normal form of names."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def normal_form(text: str) -> str:
    r"""Return text case-folded and composed (NFC), with punctuation and control characters replaced by single blanks.

    ``NFC(casefold(NFD(text)))``, canonical caseless matching of the Unicode standard (D145), then a blank for every
    character of the categories P and Cc. Symbols (category S) stay, so that "C++" differs from "C", and so does text
    that consists of punctuation. Only blank text has an empty form.

    >>> normal_form("  O'Brien,\tWM. "), normal_form("Fox_(1919)"), normal_form("STRASSE") == normal_form("Stra\u00dfe")
    ('o brien wm', 'fox 1919', True)
    """
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    return " ".join(folded.translate(_BLANKS).split()) or " ".join(folded.split())


def normal_forms(texts: Iterable[str]) -> list[str]:
    """Return the normal form of each text."""
    return [normal_form(text) for text in texts]


class _Blanks(dict[int, "int | str"]):
    """The replacement of each code point, computed at its first use."""

    def __missing__(self, code: int) -> int | str:
        category = unicodedata.category(chr(code))
        self[code] = " " if category[0] == "P" or category == "Cc" else code
        return self[code]


_BLANKS = _Blanks()
