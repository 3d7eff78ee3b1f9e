"""Query expansion with entity names or descriptions, and reranking by BM25 over the added words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.provenance import with_strongest_mark
from vbterrier.entities.rankers.similarity import entity_texts
from vbterrier.entities.rerank.base import Interpolation, by_id
from vbterrier.entities.stage import Documents, OnEntities, unlinked_documents
from vbterrier.errors import InputError, number, whole, whole_or_none
from vbterrier.frames.entity_coverage import warn_of_no_entities
from vbterrier.frames.ids import column_ids, require_same_kind
from vbterrier.frames.names import normal_form
from vbterrier.kernels.rankings import spans
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import TopEntities
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranking import Run


# Texts per batch.
_BLOCK_TEXTS = 2**12


def word_batches(texts: list[str]) -> Iterator[tuple[Ints, list[str]]]:
    """Yield the index of the text of each word, and the case-folded words, in batches of texts."""
    for start in range(0, len(texts), _BLOCK_TEXTS):
        words = Words.of(texts[start : start + _BLOCK_TEXTS])
        yield words.text + start, words.folded_words().split()


class DocumentTerms:
    """Term frequencies and lengths of texts."""

    def __init__(self, texts: list[str]) -> None:
        from scipy import sparse

        self._index: dict[str, int] = {}
        owners, codes = [], []
        for owner, words in word_batches(texts):
            code, names = pd.factorize(np.array(words, dtype=object))
            numbers = np.array([self._index.setdefault(name, len(self._index)) for name in names], dtype=np.int64)
            owners.append(owner)
            codes.append(numbers[code] if len(code) else np.empty(0, dtype=np.int64))
        owner, word = (np.concatenate([*parts, np.empty(0, dtype=np.int64)]) for parts in (owners, codes))
        self.length: Floats = np.bincount(owner, minlength=len(texts)).astype(np.float64)
        counts: Any = sparse.coo_array((np.ones(len(word)), (word, owner)), shape=(len(self._index), len(texts)))
        # Rows are words, because a query needs few of them.
        self._counts = counts.tocsr()

    def numbers(self, words: list[str]) -> Ints:
        """Return the index of each word, -1 for words that no text contains, shape (n,)."""
        return np.array([self._index.get(word, -1) for word in words], dtype=np.int64)

    def postings(self, word: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the postings of words by index: position in ``word``, text and frequency, shape (n,) each."""
        counts = self._counts
        owner, place = spans(counts.indptr[word].astype(np.int64), counts.indptr[word + 1].astype(np.int64))
        return owner, counts.indices[place].astype(np.int64), counts.data[place]


def bm25(
    terms: DocumentTerms, text: Ints, starts: Ints, topic: Ints, word: Ints, weight: Floats, *, k1: float, b: float
) -> Floats:
    """Score the documents of each topic with BM25 for weighted words, with the topic's pool as the collection.

    ``Σ_t w_t log(1 + (N - df + 0.5)/(df + 0.5)) tf (k1 + 1) / (tf + k1 (1 - b + b dl/avgdl))`` (Robertson and Zaragoza
    2009, with a positive logarithm as in Lucene), shape (n_documents,). ``text`` is the index of each document's text,
    ``starts`` the offsets of each topic's documents; ``topic``, ``word``, ``weight`` are the distinct words of topics.
    """
    score = np.zeros(len(text))
    place = np.full(len(terms.length), -1)
    for each in np.unique(topic).tolist():
        documents = text[starts[each] : starts[each + 1]]
        of_topic = topic == each
        length = terms.length[documents]
        norm = k1 * (1 - b + b * length / max(length.mean(), 1e-300))
        owner, posting, count = terms.postings(word[of_topic])
        # A text belongs to at most one document of a topic.
        place[documents] = np.arange(len(documents))
        inside = place[posting] >= 0
        owner, at, count = owner[inside], place[posting[inside]], count[inside]
        place[documents] = -1
        df = np.bincount(owner, minlength=int(of_topic.sum()))
        idf = np.log1p((len(documents) - df + 0.5) / (df + 0.5))
        per_posting = (weight[of_topic] * idf)[owner] * count * (k1 + 1) / (count + norm[at])
        score[starts[each] : starts[each + 1]] = np.bincount(at, per_posting, minlength=len(documents))
    return score


def checked_entity_texts(ids: Ids, texts: Mapping[str, str] | None) -> list[str]:
    """Return the text of each entity, or its name if it has no text."""
    texts_of_entities = entity_texts(names := ids.text.to_pylist(), texts)
    for each, text in zip(names, texts_of_entities, strict=True):
        if not isinstance(text, str):
            raise InputError(f"texts: entity {each!r} has {text!r}, wanted text")
    return texts_of_entities


class ExpandByEntities(OnEntities):
    """Expand a query with the names or descriptions of its first entities: Q -> Q.

    Precedes a retriever: ``ExpandByEntities(entities, texts=names, cutoff=5) >> bm25``.

    Parameters
    ----------
    entities
        An entity run (qid, docno: an entity id, score), or a stage that returns one for the input queries.
    texts
        Names or descriptions of entities by id. The text of an entity without one is its id, with spaces for
        underscores.
    cutoff
        The number of entities of each query to add.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contract of runs; values of ``texts`` that are not text.

    Notes
    -----
    The added text is in normal form (:func:`vbterrier.frames.names.normal_form`), without characters that query
    parsers reject. The original query is kept as ``query_0``, as PyTerrier does.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (ii).

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["capital of france"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> ExpandByEntities(entities, texts={"Paris": "Paris (city)"}).transform(topics)["query"].tolist()
    ['capital of france paris city']
    """

    COLUMNS = ("qid", "query")

    def __init__(self, entities: Any, *, texts: Mapping[str, str] | None = None, cutoff: int = 10) -> None:
        super().__init__()
        self._set_entities(entities)
        self.texts, self.cutoff = by_id("texts", texts), whole("cutoff", cutoff)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand every row of a frame of queries."""
        self._require_columns(inp)
        pushed: pd.DataFrame = pt.model.push_queries(inp, inplace=False, keep_original=True)
        if not len(inp):
            return pushed
        run = self._entity_run(inp)
        qid = column_ids(inp["qid"], "topics column 'qid'")
        require_same_kind(run.topic_ids, qid, "entities column 'qid'", "topics column 'qid'")
        selected = run.only(set(qid.text.to_pylist()))
        top = selected.top(self.cutoff)
        topic, rank = np.nonzero(top.rows >= 0)
        ids = selected.docno.take(top.rows[topic, rank])
        warn_of_no_entities(ids, qid.codes()[0], "entities")
        texts = checked_entity_texts(ids, self.texts)
        added: dict[str, list[str]] = {}
        for place, text in zip(topic.tolist(), texts, strict=True):
            added.setdefault(selected.topics[place], []).append(normal_form(text))
        rows = zip(inp["query"].tolist(), qid.text.to_pylist(), strict=True)
        query = [" ".join([text, *added[name]]) if name in added else text for text, name in rows]
        made = pushed.assign(query=pd.Series(query, index=pushed.index, dtype=inp["query"].dtype))
        return with_strongest_mark(made, inp, run.frame)


class ExpansionReranker(Interpolation):
    """Rerank documents by their score and BM25 for words that describe the query's entities: R -> R.

    ``score' = (1 - weight) norm(score) + weight norm(BM25)``: the query weight of a word is the mean, over
    the first entities, of its relative frequency in the text of the entity.

    Parameters
    ----------
    entities, cutoff, weight, norm
        See :class:`~vbterrier.entities.OverlapReranker`; links are not needed.
    texts
        See :class:`ExpandByEntities`.
    n_terms
        The number of words of each topic to keep, by weight; ``None`` for all.
    k1, b
        The parameters of BM25.
    field
        The column with the documents' texts.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        See the contract of runs; values of ``texts`` that are not text.

    Notes
    -----
    N, df and the average length are computed over the topic's pool, so no index is needed. Words are case-folded,
    without stemming or stopword removal; idf reduces the weight of stopwords.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.5 (ii).

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0], "text": ["a map", "the Seine"]})
    >>> entities = pd.DataFrame({"qid": ["q1"], "docno": ["Paris"], "score": [1.0]})
    >>> stage = ExpansionReranker(entities, texts={"Paris": "city on the Seine"}, weight=0.75)
    >>> stage.transform(run)[["docno", "score"]].values.tolist()
    [['d2', 0.75], ['d1', 0.25]]
    """

    def __init__(
        self,
        entities: Any,
        *,
        texts: Mapping[str, str] | None = None,
        cutoff: int = 20,
        weight: float = 0.5,
        n_terms: int | None = None,
        k1: float = 1.2,
        b: float = 0.75,
        field: str = "text",
        norm: str = "minmax",
    ) -> None:
        super().__init__()
        self._set_entities(entities)
        self._set_common(cutoff, norm, weight)
        self.texts, self.n_terms = by_id("texts", texts), whole_or_none("n_terms", n_terms)
        self.k1, self.b = number("k1", k1, low=0), number("b", b, low=0, high=1)
        self.field = field

    def _columns(self) -> list[str]:
        return [*self.COLUMNS, self.field]

    def documents(self, run: Run) -> Documents:
        """Return the documents of a run, without entities."""
        return unlinked_documents(run)

    def prepare_documents(self, documents: Documents) -> tuple[DocumentTerms, Ints]:
        """Return the words of all texts, and the index of each document's text."""
        frame = documents.run.frame
        texts = frame[[self.field]].assign(docno=documents.run.docno.text.to_pylist())
        place = np.asarray(texts.groupby(["docno", self.field], sort=False, dropna=False).ngroup(), dtype=np.int64)
        first = np.unique(place, return_index=True)[1]
        distinct = texts[self.field].iloc[first].tolist()
        for row, text in zip(first.tolist(), distinct, strict=True):
            if not isinstance(text, str):
                raise InputError(f"run column {self.field!r}: row {row} holds {text!r}, wanted text; '' for none")
        return DocumentTerms(distinct), place[documents.row]

    def match_entities(self, listed: TopEntities, prepared: Any) -> Floats:
        """Return BM25 of each document for the words of its topic's entities, shape (n_documents,)."""
        terms, text = prepared
        topic, word, weight = self._words(listed, terms)
        return bm25(terms, text, listed.pool.topic_starts, topic, word, weight, k1=self.k1, b=self.b)

    def _words(self, listed: TopEntities, terms: DocumentTerms) -> tuple[Ints, Ints, Floats]:
        """Return the words of each topic that a text contains, with their weights."""
        words_of_documents = list(word_batches(checked_entity_texts(listed.ids, self.texts)))
        entity = np.concatenate([np.empty(0, dtype=np.int64), *(owner for owner, _ in words_of_documents)])
        words = [word for _, some in words_of_documents for word in some]
        share = 1 / np.maximum(np.bincount(entity, minlength=len(listed.topic)), 1) / listed.n[listed.topic]
        every = pd.DataFrame({"topic": listed.topic[entity], "word": words, "weight": share[entity]})
        frame = every.groupby(["topic", "word"], as_index=False).agg({"weight": "sum"})
        if self.n_terms is not None:
            frame = frame.sort_values(["topic", "weight", "word"], ascending=[True, False, True])
            frame = frame.groupby("topic").head(self.n_terms)
        frame = frame.assign(number=terms.numbers(frame["word"].tolist())).query("number >= 0")
        return frame["topic"].to_numpy(), frame["number"].to_numpy(), frame["weight"].to_numpy()
