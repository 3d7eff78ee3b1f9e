"""Words of texts as numbers: what documents hold of them, and BM25 in the pools of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.kernels.order import spans
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Texts taken apart at a time.
_BATCH = 2**12


def words_of(texts: list[str]) -> Iterator[tuple[Ints, list[str]]]:
    """The place of the text of each word, and the words in the form in which two are the same; some texts at a time."""
    for start in range(0, len(texts), _BATCH):
        words = Words.of(texts[start : start + _BATCH])
        yield words.text + start, words.folded().split()


class DocumentTerms:
    """How often some texts hold each word, without their order.

    Parameters
    ----------
    texts
        A text a document.

    Attributes
    ----------
    length : numpy.ndarray
        Words of each text, shape (n_texts,).
    """

    def __init__(self, texts: list[str]) -> None:
        from scipy import sparse

        self._index: dict[str, int] = {}
        owners, codes = [], []
        for owner, words in words_of(texts):
            code, names = pd.factorize(np.array(words, dtype=object))
            numbers = np.array([self._index.setdefault(name, len(self._index)) for name in names], dtype=np.int64)
            owners.append(owner)
            codes.append(numbers[code] if len(code) else np.empty(0, dtype=np.int64))
        owner, word = (np.concatenate([*parts, np.empty(0, dtype=np.int64)]) for parts in (owners, codes))
        self.length: Floats = np.bincount(owner, minlength=len(texts)).astype(np.float64)
        counts: Any = sparse.coo_array((np.ones(len(word)), (word, owner)), shape=(len(self._index), len(texts)))
        # Rows are words: a query needs few of them.
        self._counts = counts.tocsr()

    def numbers(self, words: list[str]) -> Ints:
        """The number of each word, -1 for those that no text holds, shape (n,)."""
        return np.array([self._index.get(word, -1) for word in words], dtype=np.int64)

    def postings(self, word: Ints) -> tuple[Ints, Ints, Floats]:
        """For words by number: which of them, in which text, and how often there; each of shape (n,)."""
        counts = self._counts
        owner, place = spans(counts.indptr[word].astype(np.int64), counts.indptr[word + 1].astype(np.int64))
        return owner, counts.indices[place].astype(np.int64), counts.data[place]


def bm25(
    terms: DocumentTerms, text: Ints, starts: Ints, topic: Ints, word: Ints, weight: Floats, *, k1: float, b: float
) -> Floats:
    """BM25 of each topic's documents for its weighted words, with the topic's pool as the collection.

    ``Σ_t w_t log(1 + (N - df + 0.5)/(df + 0.5)) tf (k1 + 1) / (tf + k1 (1 - b + b dl/avgdl))`` (Robertson and Zaragoza
    2009, the logarithm kept above 0 as Lucene does).

    Parameters
    ----------
    terms
        The words of texts.
    text
        The text of each document, by topic, shape (n_documents,).
    starts
        Where the documents of each topic begin, and where the last one's end, shape (n_topics + 1,).
    topic, word, weight
        The words of topics, by number, each once a topic, with their weights, shape (n,).
    k1, b
        Saturation and length normalisation.

    Returns
    -------
    numpy.ndarray
        Shape (n_documents,).
    """
    score = np.zeros(len(text))
    place = np.full(len(terms.length), -1)
    for number in np.unique(topic).tolist():
        documents = text[starts[number] : starts[number + 1]]
        own = topic == number
        length = terms.length[documents]
        norm = k1 * (1 - b + b * length / max(length.mean(), 1e-300))
        owner, found, count = terms.postings(word[own])
        # A text is one document of a topic at most.
        place[documents] = np.arange(len(documents))
        inside = place[found] >= 0
        owner, at, count = owner[inside], place[found[inside]], count[inside]
        place[documents] = -1
        df = np.bincount(owner, minlength=int(own.sum()))
        idf = np.log1p((len(documents) - df + 0.5) / (df + 0.5))
        per_posting = (weight[own] * idf)[owner] * count * (k1 + 1) / (count + norm[at])
        score[starts[number] : starts[number + 1]] = np.bincount(at, per_posting, minlength=len(documents))
    return score
