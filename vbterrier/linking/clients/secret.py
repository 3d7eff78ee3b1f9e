"""Words that must be sent and never shown."""

from __future__ import annotations

import re
from urllib.parse import quote, quote_plus

from vbterrier.errors import ParameterError

_TOKEN = re.compile(r"[\x21-\x7e]+")


class Secret:
    """A word that prints as ``***``, compares with its like, and does not pickle.

    >>> Secret("s3cr3t")
    ***
    >>> Secret("s3cr3t").hide("the token s3cr3t is unknown")
    'the token *** is unknown'
    """

    def __init__(self, word: str) -> None:
        if not isinstance(word, str) or not _TOKEN.fullmatch(word):
            # The word itself stays out of the message.
            raise ParameterError("token: wanted printable ASCII text without blanks")
        self._word = word

    def reveal(self) -> str:
        """The word."""
        return self._word

    def hide(self, text: str) -> str:
        """Text with stars for the word, plain or percent-encoded."""
        for spelt in sorted({self._word, quote(self._word, safe=""), quote_plus(self._word)}, key=len, reverse=True):
            text = text.replace(spelt, "***")
        return text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._word == other._word

    def __hash__(self) -> int:
        return hash(self._word)

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a token is not pickled, so that it ends in no file: make the client anew where it is needed")
