"""Words that must be sent and never shown."""

from __future__ import annotations

import re

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
        r"""Text with stars for the word, each sign of it plain or as addresses, JSON or HTML spell it.

        >>> Secret("a+b/c").hide(r"a%2Bb%2fc, a+b\/c, a\u002bb/c, a&#43;b/c")
        '***, ***, ***, ***'
        """
        return re.sub("".join(map(_spelt, self._word)), "***", text)

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


def _spelt(sign: str) -> str:
    """A pattern of all that a sign of ASCII may be written as."""
    code = ord(sign)
    named = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;"}.get(sign, "")
    return rf"(?:\\?{re.escape(sign)}|(?i:%{code:02x}|\\u00{code:02x}|&\#0*{code};|&\#x0*{code:x};{named}))"
