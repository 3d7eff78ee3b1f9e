"""A small test collection in which a new system retrieves unjudged documents.

It has 182 documents of one or two sentences, 12 topics and three systems.

============== ======================================================================================================
documents.tsv  docno, text: well-known facts, written for this project
topics.tsv     qid, query, need: the information need; the query alone is often ambiguous
complete.txt   labels of the first ten documents of every system, and of all other relevant documents
qrels.txt      labels that would exist in practice: the first ten documents of the two older systems
lexical.run    an older system: BM25 over stems
words.run      an older system: BM25 over words without stemming
dense.run      the new system: latent vectors of words and of their senses in a small thesaurus, with feedback
intents.tsv    qid, entity_id, prob: candidate intents of the queries
tags.tsv       docno, entity_id: entities of the documents
entities.tsv   id, label, alias, prior, kind: a knowledge base of these entities, for linking
============== ======================================================================================================

Labels depend on the text and the need only: 2 for a document that answers the need, 1 for one that helps a little or is
about the right entity, 0 for the rest. Probabilities of intents are rough estimates of how often users who type the
query mean the entity: the second word of a query may settle its meaning (0.75 to 0.9 for the first intent) or hardly
help ("mercury temperature": 0.5 and 0.45). Priors in ``entities.tsv`` are estimates for the name alone.

A third of the first ten documents of ``dense`` is unjudged, from none in two topics to seven in another. By nDCG@10
``lexical`` is the better system; with complete labels it is ``dense``. Documents and queries were chosen to show this
effect: the collection is an illustration, not evidence. No system used the labels.

Texts, labels and probabilities were written for this project under its license, Apache-2.0.
``tests/golden/make_demo.py`` makes the runs and ``qrels.txt``.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, InputError, examples, path_parameter
from vbterrier.frames.files.writing import folder_of_files, replace_files

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["FILES", "copy_demo", "demo_folder"]


FILES = (
    "documents.tsv",
    "topics.tsv",
    "complete.txt",
    "qrels.txt",
    "lexical.run",
    "words.run",
    "dense.run",
    "intents.tsv",
    "tags.tsv",
    "entities.tsv",
)


def demo_folder() -> Path:
    """Return the folder of the collection's files.

    Examples
    --------
    >>> (demo_folder() / "qrels.txt").read_text(encoding="utf-8").splitlines()[0]
    'q01 0 d001 2'
    """
    return Path(str(files("vbterrier.demo")))


def copy_demo(target: str | PathLike[str]) -> list[Path]:
    """Copy the collection's files to a folder, which is created if necessary.

    Parameters
    ----------
    target
        The folder.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        The folder is a file, or it has a file of one of these names with other contents; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> len(copy_demo(tempfile.mkdtemp()))
    10
    """
    folder = path_parameter("target", target)
    written = [folder / name for name in FILES]
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; wanted a folder for the demo's files")
        # Files of an earlier demo are the same.
        present = [path.name for path in written if path.exists() and not _is_copy(path)]
        if present:
            raise InputError(
                f"{folder} has {examples(present)} already, with other contents; name another folder, or remove them "
                "first"
            )
    except OSError as error:
        raise FileError(folder, f"cannot be written ({error.strerror}); name another folder") from error
    with folder_of_files(folder):
        replace_files({path: (demo_folder() / path.name).read_bytes() for path in written})
    return written


def _is_copy(path: Path) -> bool:
    """Return True for a file with the contents of the demo's file of this name."""
    return path.is_file() and path.read_bytes() == (demo_folder() / path.name).read_bytes()
