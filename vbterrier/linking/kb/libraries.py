"""Builders of knowledge bases from files of REL, spaCy and wikimapper."""

from __future__ import annotations

import json
import re
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError, choice, module_of_extra, path_parameter
from vbterrier.frames.files.source import is_folder, is_there
from vbterrier.frames.id_spaces import WIKIDATA, WIKIPEDIA_ID, WIKIPEDIA_TITLE
from vbterrier.linking.kb.building import building
from vbterrier.linking.kb.staging import UntrustedSQLite, quoted_text, text_fault
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging

    # Number, title and item.
    Page = tuple[Any, Any, Any]


# REL stores a few thousand candidates per mention.
_MAX_TEXT = 256 * 2**20
# The maximum number of binary digits of a code point.
_MAX_BITS = 21
_PAIR_LENGTH = 2

# The place of each kind of id in a page.
_PLACES = {WIKIPEDIA_ID: 0, WIKIPEDIA_TITLE: 1, WIKIDATA: 2}
_QUALIFIER = re.compile(r"(.*\S) \([^()]+\)")


def kb_from_rel(path: StrPath, source: StrPath, *, keep_zeros: bool = False, progress: bool = True) -> KnowledgeBase:
    """Build a knowledge base of the id space ``"wikipedia_title"`` from REL's SQLite file of p(e|m).

    Entities are Wikipedia titles with underscores, as in REL; names have blanks. Mentions are aliases, and their
    frequency (``freq``) is their weight in normalised look-ups.

    Parameters
    ----------
    path, progress
        As in :func:`~vbterrier.linking.build_kb`.
    source
        REL's ``entity_word_embedding.db``, with a table ``wiki(word, p_e_m, lower, freq)``.
    keep_zeros
        Keep titles of probability zero, of which some mentions have thousands.

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    FileError
        The file cannot be read, is not a SQLite file or lacks the table; or the candidates of a mention are invalid.

    Warns
    -----
    DegenerateWarning
        The number of titles that are left out, and of mentions whose priors are divided by their sum.

    Notes
    -----
    REL adds priors from Wikipedia and YAGO, with a sum of up to 2; those that do not sum to 1 are divided by their sum.
    Van Hulst, Hasibi, Dercksen, Balog, de Vries, *REL: An Entity Linker Standing on the Shoulders of Giants*, SIGIR
    2020, section 3.1.

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

    source = path_parameter("source", source)
    letters = _Letters()

    def row_error(row: int, message: str) -> FileError:
        return FileError(source, f"row {row}: {message}")

    with (
        UntrustedSQLite(source, "REL's p(e|m)", {"wiki": ("word", "p_e_m", "freq")}) as rel,
        building(path, WIKIPEDIA_TITLE, row_error, is_strict=False, progress=progress) as staging,
    ):
        rows = rel.rows("SELECT rowid, word, p_e_m, freq FROM wiki ORDER BY rowid")
        for row, word, coded, count in bar(rows, source.name, unit="mention", shown=progress, delay=2):
            for title, prior in _candidates(source, word, coded, letters):
                if prior == 0 and not keep_zeros:
                    staging.leave_out("titles of probability 0 (keep_zeros=True keeps them)")
                elif fault := text_fault(title):
                    staging.leave_out(f"titles whose text {fault}")
                else:
                    staging.alias(row, title, word, prior)
            if isinstance(count, int) and count > 0:
                staging.weight(word, float(count))
        staging.flush()
        staging.db.execute("INSERT INTO staged.entity SELECT DISTINCT id, replace(id, '_', ' '), 0 FROM staged.alias")
    return KnowledgeBase(path)


class _Letters(dict[str, str]):
    """Letters by the binary digits of their code points, the encoding of text in REL."""

    def __missing__(self, bits: str) -> str:
        if len(bits) > _MAX_BITS:
            raise ValueError(f"{bits[:30]!r} is not a code point")
        self[bits] = chr(int(bits, 2))
        return self[bits]


def _candidates(path: Path, word: object, coded: Any, letters: _Letters) -> Iterator[tuple[str, Any]]:
    """Yield the titles in a cell and their probabilities."""

    def mention_error(fault: str) -> FileError:
        return FileError(path, f"mention {quoted_text(word)}: p_e_m {fault}; download the file again")

    if isinstance(coded, bytes):
        coded = coded.decode("ascii", "replace")
    if not isinstance(coded, str) or len(coded) > _MAX_TEXT:
        raise mention_error("is not text of binary code points between blanks, or too long")
    try:
        text = "".join(map(letters.__getitem__, coded.split()))
    except (ValueError, OverflowError) as error:
        raise mention_error(f"has invalid code points ({error})") from error
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise mention_error(f"is not JSON ({error})") from error
    if not isinstance(pairs, list):
        raise mention_error("is not a list of titles")
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == _PAIR_LENGTH and isinstance(pair[0], str)):
            raise mention_error(f"has {quoted_text(pair)}, wanted a title and its probability")
        yield pair[0], pair[1]


def kb_from_spacy(
    path: StrPath,
    source: Any,
    *,
    id_space: str,
    names: Mapping[str, str] | None = None,
    progress: bool = True,
) -> KnowledgeBase:
    """Build a knowledge base from a spaCy knowledge base: entities, aliases and their prior probabilities.

    Parameters
    ----------
    path, id_space, progress
        As in :func:`~vbterrier.linking.build_kb`.
    source
        A ``spacy.kb.InMemoryLookupKB``, or the folder written by its ``to_disk``.
    names
        Names of entities by id, which spaCy does not store.

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    FileError, InputError
        The folder cannot be read; neither a folder nor a spaCy knowledge base.
    ModuleNotFoundError
        The source is a folder, and the extra ``spacy`` is not installed.

    Warns
    -----
    DegenerateWarning
        The number of aliases whose priors sum to less than 1, which are divided by their sum.

    Notes
    -----
    In spaCy, priors of an alias that sum to less than 1 leave the rest to the probability of no entity.

    Examples
    --------
    >>> import tempfile, spacy
    >>> from spacy.kb import InMemoryLookupKB
    >>> source = InMemoryLookupKB(spacy.blank("en").vocab, entity_vector_length=1)
    >>> source.set_entities(["Q1", "Q2"], [1, 1], [[0.0], [0.0]])
    >>> _ = source.add_alias("Emerson", ["Q1", "Q2"], [0.75, 0.25])
    >>> with kb_from_spacy(f"{tempfile.mkdtemp()}/emerson.kb", source, id_space="wikidata") as kb:
    ...     kb.lookup(["emerson"])[["entity_id", "score"]].values.tolist()
    [['Q1', 0.75], ['Q2', 0.25]]
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    base = _open_spacy_kb(Path(source)) if isinstance(source, (str, Path)) else source
    methods = ("get_entity_strings", "get_alias_strings")
    # The method is private in spaCy 4.
    candidates = getattr(base, "get_alias_candidates", None) or getattr(base, "_get_alias_candidates", None)
    if candidates is None or not all(hasattr(base, name) for name in methods):
        raise InputError(f"source: wanted spaCy's InMemoryLookupKB or the folder of one, found {type(base).__name__}")

    def row_error(row: int, message: str) -> InputError:
        return InputError(f"spaCy's knowledge base: alias number {row}: {message}")

    with building(path, id_space, row_error, progress=progress) as staging:
        for entity in sorted(base.get_entity_strings()):
            staging.entity(0, entity, (names or {}).get(entity, ""))
        aliases = sorted(base.get_alias_strings())
        for row, alias in enumerate(bar(aliases, "aliases", unit="alias", shown=progress, delay=2)):
            for candidate in candidates(alias):
                staging.alias(row, candidate.entity_, alias, candidate.prior_prob)
    return KnowledgeBase(path)


def _open_spacy_kb(path: Path) -> Any:
    kind = module_of_extra("spacy.kb", "spacy").InMemoryLookupKB
    if not is_folder(path):
        what = "is a file" if is_there(path) else "no such folder"
        raise FileError(path, f"{what}; wanted the folder of a spaCy knowledge base, written by to_disk")
    base = kind(module_of_extra("spacy.vocab", "spacy").Vocab(), entity_vector_length=1)
    try:
        base.from_disk(path)
    except Exception as error:
        # spaCy's readers raise many types of exceptions.
        raise FileError(path, f"cannot be read as a spaCy knowledge base ({error}); save it again") from error
    return base


def kb_from_wikimapper(
    path: StrPath, source: StrPath, *, id_space: str = WIKIDATA, unqualified: bool = True, progress: bool = True
) -> KnowledgeBase:
    """Build a knowledge base from wikimapper's SQLite file.

    Pages with the same Wikidata item are an article and the pages that redirect to it, which the file does not
    distinguish: the page with the smallest number is treated as the article. All titles are aliases without priors.

    Parameters
    ----------
    path, progress
        As in :func:`~vbterrier.linking.build_kb`.
    source
        wikimapper's file, with a table ``mapping(wikipedia_id, wikipedia_title, wikidata_id)``.
    id_space
        The id space of the knowledge base: ``"wikidata"``; ``"wikipedia_title"`` (with underscores) or
        ``"wikipedia_id"`` (as text), in which the other pages redirect to the article. Pages without a Wikidata item
        are left out of ``"wikidata"``, with a warning.
    unqualified
        Add the alias "Mercury" for a title with a qualifier such as "Mercury (planet)".

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    FileError
        The file cannot be read, is not a SQLite file or lacks the table.

    Warns
    -----
    DegenerateWarning
        The number of pages without a Wikidata item, which are left out if the id space is Wikidata.

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
    source = path_parameter("source", source)
    columns = ("wikipedia_id", "wikipedia_title", "wikidata_id")

    def row_error(row: int, message: str) -> FileError:
        return FileError(source, f"page {row}: {message}")

    with (
        UntrustedSQLite(source, "wikimapper", {"mapping": columns}) as mapping,
        building(path, id_space, row_error, is_strict=False, progress=progress) as staging,
    ):
        pages = mapping.rows(f"SELECT {', '.join(columns)} FROM mapping ORDER BY wikidata_id, wikipedia_id")  # noqa: S608 - constant names
        pages = _valid_pages(staging, bar(pages, source.name, unit="page", shown=progress, delay=2))
        for item, group in groupby(pages, key=itemgetter(2)):
            # A page without an item is a group.
            for article in [list(group)] if item is not None else ([page] for page in group):
                if id_space == WIKIDATA and item is None:
                    staging.leave_out("pages without a Wikidata item")
                else:
                    _stage(staging, article, _PLACES[id_space], unqualified=unqualified)
    return KnowledgeBase(path)


def _valid_pages(staging: Staging, pages: Iterable[Page]) -> Iterator[Page]:
    for page in pages:
        if fault := text_fault(page[1]):
            staging.leave_out(f"pages whose title {fault}")
        else:
            yield page


def _stage(staging: Staging, pages: list[Page], place: int, *, unqualified: bool) -> None:
    ids = [str(page[place]) if isinstance(page[place], int) else page[place] for page in pages]
    staging.entity(pages[0][0], ids[0], pages[0][1].replace("_", " "))
    for page, entity_id in zip(pages, ids, strict=True):
        title = page[1].replace("_", " ")
        staging.alias(page[0], ids[0], title)
        if unqualified and (bare := _QUALIFIER.fullmatch(title)):
            staging.alias(page[0], ids[0], bare[1])
        if entity_id != ids[0]:
            staging.redirect(page[0], entity_id, ids[0])
