"""Where mentions stand: offsets of services, counted in their own units, as code points of the text."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate


def utf16_length(text: str) -> int:
    """The length as Java, JavaScript and Scala count it: signs beyond U+FFFF are two units.

    >>> utf16_length("a😀")
    3
    """
    return len(text) + sum(sign > "\uffff" for sign in text)


class Places:
    """The places in one text.

    Parameters
    ----------
    text
        The text as it was sent.

    >>> Places("😀 Rome").find(3, 7, "Rome", utf16=True)
    (2, 6)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # Where all signs are one unit, and they nearly always are, the two ways of counting agree.
        self.agree = max(text, default="") <= "\uffff"
        self._units = [] if self.agree else [0, *accumulate(1 + (sign > "\uffff") for sign in text)]

    def find(self, start: int, end: int, mention: str, *, utf16: bool) -> tuple[int, int] | None:
        """Start and end in code points, ``None`` unless the mention stands there.

        Letter case and the amount of white space may differ: services normalise them in what they repeat. An empty
        mention stands anywhere inside the text.
        """
        if utf16 and not self.agree:
            places = self._point(start), self._point(end)
            if None in places:
                return None
            start, end = places  # type: ignore[assignment]
        if not 0 <= start <= end <= len(self.text) or (mention and not _alike(self.text[start:end], mention)):
            return None
        return start, end

    def _point(self, unit: int) -> int | None:
        place = bisect_left(self._units, unit)
        return place if place < len(self._units) and self._units[place] == unit else None


def _alike(left: str, right: str) -> bool:
    return left == right or left.casefold().split() == right.casefold().split()
