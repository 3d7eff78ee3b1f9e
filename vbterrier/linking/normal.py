"""The normal form of names: in which two spellings of one name are the same."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def normal_form(text: str) -> str:
    r"""Text with case folded, composed (NFC), punctuation and control characters as blanks, blanks squeezed.

    ``NFC(casefold(NFD(text)))``, canonical caseless matching of the Unicode standard (D145), then every character of
    the categories P and Cc a blank. Letters with marks keep them; symbols (category S) stay, so that "C++" is not "C".
    Text that holds nothing but punctuation keeps it, so that "!!!" and "?" are two names.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    str
        Its normal form; empty only for blank text. The normal form of a normal form is itself.

    Examples
    --------
    >>> normal_form("  O'Brien,\tWM. "), normal_form("Fox_(1919)"), normal_form("STRASSE") == normal_form("Stra\u00dfe")
    ('o brien wm', 'fox 1919', True)
    """
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    return " ".join(folded.translate(_BLANKS).split()) or " ".join(folded.split())


def normal_forms(texts: Iterable[str]) -> list[str]:
    """The normal form of each text.

    >>> normal_forms(["C++", "J. Smith", "!!!"])
    ['c++', 'j smith', '!!!']
    """
    return [normal_form(text) for text in texts]


class _Blanks(dict[int, "int | str"]):
    """What each code point becomes; each of the few that texts hold is looked up once."""

    def __missing__(self, code: int) -> int | str:
        kind = unicodedata.category(chr(code))
        self[code] = " " if kind[0] == "P" or kind == "Cc" else code
        return self[code]


_BLANKS = _Blanks()
