"""Building a knowledge base from the files of REL, spaCy and wikimapper."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError, choice, module_of_extra
from vbterrier.linking.kb.building import bar, building
from vbterrier.linking.kb.staging import fault_of, shown
from vbterrier.linking.kb.untrusted import External
from vbterrier.linking.links import WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging

    Page = tuple[int, str, str | None]


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
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    source = Path(source)
    decoded = _Letters()
    with (
        External(source, "REL's p(e|m)", {"wiki": ("word", "p_e_m", "freq")}) as rel,
        building(path, WIKIPEDIA_TITLE, partial(_rel_error, source), is_strict=False, progress=progress) as staging,
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


def _rel_error(path: Path, row: int, message: str) -> FileError:
    return FileError(path, f"row {row}: {message}")


def kb_from_spacy(
    path: StrPath,
    source: Any,
    *,
    id_space: str,
    vocab: Any = None,
    names: Mapping[str, str] | None = None,
    progress: bool = True,
) -> KnowledgeBase:
    """Build a knowledge base from spaCy's: entities, aliases and their prior probabilities.

    Parameters
    ----------
    path
        The knowledge base; one that exists is replaced once the new one is complete.
    source
        A ``spacy.kb.InMemoryLookupKB``, or the folder that its ``to_disk`` wrote.
    id_space
        What its ids count in.
    vocab
        The vocabulary for reading a folder; an empty one by default, which is enough.
    names
        Names of entities by id, which spaCy does not keep.
    progress
        Whether a build that takes long shows a bar, on a terminal.

    Returns
    -------
    KnowledgeBase

    Raises
    ------
    FileError
        The folder cannot be read.
    InputError
        Neither a folder nor a knowledge base of spaCy.
    ModuleNotFoundError
        A folder, and the extra ``spacy`` is not installed.

    Warns
    -----
    DegenerateWarning
        Of how many aliases the priors sum to less than 1 (spaCy leaves the rest to "none of these"): they are divided
        by their sum.

    Examples
    --------
    >>> import tempfile, spacy
    >>> from spacy.kb import InMemoryLookupKB
    >>> theirs = InMemoryLookupKB(spacy.blank("en").vocab, entity_vector_length=1)
    >>> theirs.set_entities(["Q1", "Q2"], [1, 1], [[0.0], [0.0]])
    >>> _ = theirs.add_alias("Emerson", ["Q1", "Q2"], [0.75, 0.25])
    >>> with kb_from_spacy(f"{tempfile.mkdtemp()}/emerson.kb", theirs, id_space="wikidata") as kb:
    ...     kb.lookup(["emerson"])[["entity_id", "score"]].values.tolist()
    [['Q1', 0.75], ['Q2', 0.25]]
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    theirs = _opened(Path(source), vocab) if isinstance(source, (str, Path)) else source
    wanted = ("get_entity_strings", "get_alias_strings")
    # spaCy 4 makes it private.
    candidates = getattr(theirs, "get_alias_candidates", None) or getattr(theirs, "_get_alias_candidates", None)
    if candidates is None or not all(hasattr(theirs, name) for name in wanted):
        raise InputError(f"source: wanted spaCy's InMemoryLookupKB or the folder of one, found {type(theirs).__name__}")
    with building(path, id_space, _spacy_error, progress=progress) as staging:
        for entity in sorted(theirs.get_entity_strings()):
            staging.entity(0, entity, (names or {}).get(entity, ""))
        aliases = sorted(theirs.get_alias_strings())
        for row, alias in enumerate(bar(aliases, "aliases", "alias", shown=progress)):
            for candidate in candidates(alias):
                staging.alias(row, candidate.entity_, alias, candidate.prior_prob)
    return KnowledgeBase(path)


def _opened(path: Path, vocab: Any) -> Any:
    kind = module_of_extra("spacy.kb", "spacy").InMemoryLookupKB
    if not path.is_dir():
        what = "is a file" if path.exists() else "no such folder"
        raise FileError(path, f"{what}; wanted the folder that a knowledge base of spaCy was saved to with to_disk")
    theirs = kind(module_of_extra("spacy.vocab", "spacy").Vocab() if vocab is None else vocab, entity_vector_length=1)
    try:
        theirs.from_disk(path)
    except Exception as error:
        # spaCy says what is wrong with a file in as many ways as it has readers.
        raise FileError(path, f"cannot be read as a knowledge base of spaCy ({error}); save it again") from error
    return theirs


def _spacy_error(row: int, message: str) -> InputError:
    return InputError(f"spaCy's knowledge base: alias number {row}: {message}")


# Which column of a page is its id.
_PLACES = {WIKIPEDIA_ID: 0, WIKIPEDIA_TITLE: 1, WIKIDATA: 2}
_QUALIFIER = re.compile(r"(.*\S) \([^()]+\)")


def kb_from_wikimapper(
    path: StrPath,
    source: StrPath,
    *,
    id_space: str = WIKIDATA,
    unqualified: bool = True,
    progress: bool = True,
) -> KnowledgeBase:
    """Build a knowledge base from wikimapper's SQLite file.

    Pages with the same Wikidata item are an article and the pages that redirect to it; which is which the file does not
    say. The page with the smallest number is taken for the article: the others mostly came into being when it was
    moved or named otherwise. All their titles are aliases; none has a prior.

    Parameters
    ----------
    path
        The knowledge base; one that exists is replaced once the new one is complete.
    source
        wikimapper's file, with a table ``mapping(wikipedia_id, wikipedia_title, wikidata_id)``.
    id_space
        What its ids are to be: ``"wikidata"``; ``"wikipedia_title"`` (with underscores) or ``"wikipedia_id"`` (as
        text), where the other pages redirect to the article.
    unqualified
        Whether a title such as "Mercury (planet)" is an alias without its qualifier, "Mercury", too.
    progress
        Whether a build that takes long shows a bar, on a terminal.

    Returns
    -------
    KnowledgeBase

    Raises
    ------
    FileError
        The file cannot be read, is no SQLite or another table.

    Warns
    -----
    DegenerateWarning
        How many pages without a Wikidata item are left out, where ids are Wikidata's.

    Examples
    --------
    >>> import sqlite3, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with sqlite3.connect(folder / "index.db") as db:
    ...     _ = db.execute("CREATE TABLE mapping (wikipedia_id INTEGER, wikipedia_title TEXT, wikidata_id TEXT)")
    ...     _ = db.execute("INSERT INTO mapping VALUES (19694, 'Mercury_(planet)', 'Q308')")
    >>> db.close()
    >>> kb_from_wikimapper(folder / "index.kb", folder / "index.db").lookup(["mercury"])["entity_id"].tolist()
    ['Q308']
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    choice("id_space", id_space, tuple(_PLACES))
    source = Path(source)
    columns = ("wikipedia_id", "wikipedia_title", "wikidata_id")
    with (
        External(source, "wikimapper", {"mapping": columns}) as mapping,
        building(path, id_space, partial(_wikimapper_error, source), is_strict=False, progress=progress) as staging,
    ):
        pages = mapping.rows(f"SELECT {', '.join(columns)} FROM mapping ORDER BY wikidata_id, wikipedia_id")  # noqa: S608 - own words
        for group in _articles(_titled(staging, bar(pages, source.name, "page", shown=progress))):
            if id_space == WIKIDATA and group[0][2] is None:
                staging.leave_out("pages without a Wikidata item")
            else:
                _stage(staging, group, _PLACES[id_space], unqualified=unqualified)
    return KnowledgeBase(path)


def _titled(staging: Staging, pages: Iterable[Page]) -> Iterator[Page]:
    for page in pages:
        fault = fault_of(page[1])
        if fault:
            staging.leave_out(f"pages whose title {fault}")
        else:
            yield page


def _articles(pages: Iterable[Page]) -> Iterator[list[Page]]:
    """The pages of each item; a page without one is by itself."""
    for item, group in groupby(pages, key=itemgetter(2)):
        if item is None:
            yield from ([page] for page in group)
        else:
            yield list(group)


def _stage(staging: Staging, pages: list[Page], place: int, *, unqualified: bool) -> None:
    row, entity = pages[0][0], _id(pages[0][place])
    staging.entity(row, entity, pages[0][1].replace("_", " "))
    for page in pages:
        title = page[1].replace("_", " ")
        staging.alias(page[0], entity, title)
        bare = _QUALIFIER.fullmatch(title) if unqualified else None
        if bare:
            staging.alias(page[0], entity, bare[1])
        if _id(page[place]) != entity:
            staging.redirect(page[0], _id(page[place]), entity)


def _id(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


def _wikimapper_error(path: Path, row: int, message: str) -> FileError:
    return FileError(path, f"page {row}: {message}")
