"""Building a knowledge base from spaCy's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError
from vbterrier.linking.extras import module_of_extra
from vbterrier.linking.kb.building import bar, building

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from vbterrier.linking.kb.base import KnowledgeBase

    StrPath = str | os.PathLike[str]


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
    from vbterrier.linking.kb.base import KnowledgeBase

    theirs = _opened(Path(source), vocab) if isinstance(source, (str, Path)) else source
    wanted = ("get_entity_strings", "get_alias_strings")
    # spaCy 4 makes it private.
    candidates = getattr(theirs, "get_alias_candidates", None) or getattr(theirs, "_get_alias_candidates", None)
    if candidates is None or not all(hasattr(theirs, name) for name in wanted):
        raise InputError(f"source: wanted spaCy's InMemoryLookupKB or the folder of one, found {type(theirs).__name__}")
    with building(path, id_space, _blamed, progress=progress) as staging:
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


def _blamed(row: int, message: str) -> InputError:
    return InputError(f"spaCy's knowledge base: alias number {row}: {message}")
