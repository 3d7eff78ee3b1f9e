"""A small test collection in which a new system retrieves what nobody judged.

182 documents of one or two sentences, 12 topics, three systems.

============== ======================================================================================================
documents.tsv  docno, text: well-known facts, in the project's own words
topics.tsv     qid, query, need: what the user wants to know; the query alone is often ambiguous
complete.txt   labels of all documents that any system has among its first ten, and of the other relevant ones
qrels.txt      those labels that exist in practice: of the first ten of the two older systems
lexical.run    an older system: BM25 over stems
words.run      an older system: BM25 over words as they are written
dense.run      the new one: latent vectors of words and of their meanings in a small thesaurus, with feedback
intents.tsv    qid, entity_id, prob: what the query may mean
tags.tsv       docno, entity_id: which meaning a document is about
entities.tsv   id, label, alias, prior, kind: a knowledge base of these meanings, to link queries and documents with
============== ======================================================================================================

Labels are read from text and need alone: 2 answers the need, 1 helps a little or is about the right thing, 0 does
neither. Probabilities of intents are rough estimates of how often people who type the query mean it: its second word
may settle the meaning (0.75 to 0.9 for the first intent) or hardly help ("mercury temperature": 0.5 and 0.45). Those of
names in ``entities.tsv`` are estimates too, of the name alone, whatever stands beside it.

A third of what ``dense`` has in its first ten is unjudged, from nothing in two topics to seven in ten in another. To
nDCG@10 ``lexical`` is the better system; with all labels it is ``dense``. Documents and queries were chosen so that
this happens: the collection illustrates, it proves nothing. No system saw a label.

Texts, labels and probabilities were written for this project and come under its license, Apache-2.0. The runs and
``qrels.txt`` are made by ``tests/golden/make_demo.py``.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, InputError, examples

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
    """The folder of the collection's files, to read from.

    Examples
    --------
    >>> (demo_folder() / "qrels.txt").read_text(encoding="utf-8").splitlines()[0]
    'q01 0 d001 2'
    """
    return Path(str(files("vbterrier.demo")))


def copy_demo(target: str | PathLike[str]) -> list[Path]:
    """Write the collection's files to a folder, which is made where it is missing.

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
        A file of the name of the folder, or of one of the collection's, is there already. Nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> len(copy_demo(tempfile.mkdtemp()))
    10
    """
    folder = Path(target)
    written = [folder / name for name in FILES]
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; wanted a folder for the demo's files")
        present = [path.name for path in written if path.exists()]
        if present:
            raise InputError(f"{folder} has {examples(present)} already; name another folder, or remove them first")
        folder.mkdir(parents=True, exist_ok=True)
        for path in written:
            path.write_bytes((demo_folder() / path.name).read_bytes())
    except OSError as error:
        raise FileError(folder, f"cannot be written ({error.strerror}); name another folder") from error
    return written
