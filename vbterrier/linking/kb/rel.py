"""Building a knowledge base from REL's table of p(e|m)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError
from vbterrier.linking.kb.building import bar, building
from vbterrier.linking.kb.foreign import Foreign
from vbterrier.linking.kb.staging import fault_of, shown
from vbterrier.linking.links import WIKIPEDIA_TITLE

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from vbterrier.linking.kb.base import KnowledgeBase

    StrPath = str | os.PathLike[str]

# REL keeps a few thousand candidates a mention, of some 200 bits each letter.
_MAX_TEXT = 256 * 2**20
# No code point has more binary digits.
_MAX_BITS = 21
_PAIR = 2


def kb_from_rel(path: StrPath, source: StrPath, *, keep_zeros: bool = False, progress: bool = True) -> KnowledgeBase:
    """Build a knowledge base from REL's SQLite file of p(e|m).

    Entities are Wikipedia titles as REL writes them, with underscores; names have blanks. Mentions are aliases; how
    often each occurs (``freq``) weighs it in normalised look-ups.

    Parameters
    ----------
    path
        The knowledge base; one that exists is replaced once the new one is complete.
    source
        REL's ``entity_word_embedding.db``, with a table ``wiki(word, p_e_m, lower, freq)``.
    keep_zeros
        Whether titles of probability zero are kept, which REL lists for some mentions by the thousand.
    progress
        Whether a build that takes long shows a bar, on a terminal.

    Returns
    -------
    KnowledgeBase
        Of id space ``"wikipedia_title"``.

    Raises
    ------
    FileError
        The file cannot be read, is no SQLite or another table; names the mention whose candidates cannot be read.

    Warns
    -----
    DegenerateWarning
        How many titles are left out; how many mentions have priors that do not sum to 1 (REL adds a share from
        Wikipedia to one from YAGO, up to 2 in sum), which are divided by their sum.

    References
    ----------
    J. van Hulst, F. Hasibi, K. Dercksen, K. Balog, A. de Vries, REL: An Entity Linker Standing on the Shoulders of
    Giants, SIGIR 2020, section 3.1.

    Examples
    --------
    >>> import json, sqlite3, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with sqlite3.connect(folder / "rel.db") as db:
    ...     _ = db.execute("CREATE TABLE wiki (word TEXT, p_e_m BLOB, lower TEXT, freq INTEGER)")
    ...     coded = " ".join(format(ord(sign), "b") for sign in json.dumps([["Fox", 0.25], ["Fox_News", 0.75]]))
    ...     _ = db.execute("INSERT INTO wiki VALUES ('Fox', ?, 'fox', 7)", (coded,))
    >>> db.close()
    >>> kb_from_rel(folder / "rel.kb", folder / "rel.db").lookup(["fox"])[["entity_id", "score"]].values.tolist()
    [['Fox_News', 0.75], ['Fox', 0.25]]
    """
    from vbterrier.linking.kb.base import KnowledgeBase

    source = Path(source)
    decoded = _Letters()
    with (
        Foreign(source, "REL's p(e|m)", {"wiki": ("word", "p_e_m", "freq")}) as rel,
        building(path, WIKIPEDIA_TITLE, partial(_blamed, source), is_strict=False, progress=progress) as staging,
    ):
        rows = rel.rows("SELECT rowid, word, p_e_m, freq FROM wiki ORDER BY rowid")
        for row, word, coded, count in bar(rows, source.name, "mention", shown=progress):
            for title, prior in _candidates(source, word, decoded.text(source, word, coded)):
                if prior == 0 and not keep_zeros:
                    staging.leave_out("titles of probability 0 (keep_zeros=True keeps them)")
                elif fault := fault_of(title):
                    staging.leave_out(f"titles whose text {fault}")
                else:
                    staging.alias(row, title, word, prior)
            if isinstance(count, int) and count > 0:
                staging.weight(word, float(count))
        staging.flush()
        staging.db.execute("INSERT INTO staged.entity SELECT DISTINCT id, replace(id, '_', ' '), 0 FROM staged.alias")
    return KnowledgeBase(path)


class _Letters(dict[str, str]):
    """Letters by the binary digits of their code points, as REL writes text."""

    def __missing__(self, bits: str) -> str:
        if len(bits) > _MAX_BITS:
            raise ValueError(f"{bits[:30]!r} is no code point")
        self[bits] = chr(int(bits, 2))
        return self[bits]

    def text(self, path: Path, word: str, coded: Any) -> str:
        """The text of a cell."""
        if isinstance(coded, bytes):
            coded = coded.decode("ascii", "replace")
        if not isinstance(coded, str) or len(coded) > _MAX_TEXT:
            raise _broken(path, word, "no text of binary code points between blanks, or too much of it")
        try:
            return "".join(map(self.__getitem__, coded.split()))
        except (ValueError, OverflowError) as error:
            raise _broken(path, word, f"no binary code points ({error})") from error


def _candidates(path: Path, word: str, text: str) -> Iterator[tuple[str, Any]]:
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(path, word, f"no JSON ({error})") from error
    if not isinstance(pairs, list):
        raise _broken(path, word, "no list of titles")
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == _PAIR and isinstance(pair[0], str)):
            raise _broken(path, word, f"{shown(pair)} where a title and its probability were wanted")
        yield pair[0], pair[1]


def _broken(path: Path, word: object, what: str) -> FileError:
    return FileError(path, f"mention {shown(word)}: p_e_m holds {what}; fetch the file again")


def _blamed(path: Path, row: int, message: str) -> FileError:
    return FileError(path, f"row {row}: {message}")
