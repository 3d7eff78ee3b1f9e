"""Raw inputs of the reference architectures: texts, first-stage scores, entities with scores, counts and vectors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.neural.batches import EncodedTexts, EntityRows
from vbterrier.entities.neural.checkpoints import TokenVectors
from vbterrier.entities.rankers.similarity import entity_texts, raw_vectors
from vbterrier.entities.rerank.base import normalise_by_topic
from vbterrier.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.neural.batches import Single
    from vbterrier.entities.stage import Documents, TopEntities

# Sentences of a passage, and sentences from the start of one passage to that of the next.
_PASSAGE, _STRIDE = 10, 5
_SENTENCE, _WORD = re.compile(r"(?<=[.!?])\s+"), re.compile(r"\w+")


class RawTexts(EncodedTexts["Single"]):
    """Token vectors of texts as the encoder gives them, [CLS] and [SEP] included.

    With ``n_layers`` above 0, the vectors are the input of the encoder's last layers, which a model then trains.
    """

    def __init__(self, encode: Callable[[str], Any], n_layers: int = 0) -> None:
        if n_layers and not isinstance(encode, TokenVectors):
            raise ParameterError(
                f"layers={n_layers}: a function has no layers to train; pass a checkpoint, or layers=0"
            )
        super().__init__(encode)
        self.n_layers = n_layers

    def __call__(self, text: str) -> Single:
        """Return the vectors of the tokens of a text, shape (n_tokens, d), one zero vector if there are none."""
        return self._cached_vectors(text, lambda: self._raw(text))

    def _raw(self, text: str) -> Single:
        encode = self.encode
        n = self.n_layers
        hidden = (lambda each: encode.hidden(each, n)) if isinstance(encode, TokenVectors) else encode
        tokens = self._tokens(hidden, text)
        return (tokens if len(tokens) else np.zeros((1, tokens.shape[1]))).astype(np.float32)

    def mean(self, text: str) -> Single:
        """Return the mean of the vectors of the tokens, shape (d,)."""
        made: Single = self(text).mean(axis=0)
        return made

    def first(self, text: str) -> Single:
        """Return the vector of [CLS], or the mean of the vectors that a function gives, shape (d,)."""
        made: Single = self(text)[0] if isinstance(self.encode, TokenVectors) else self.mean(text)
        return made

    def word(self, text: str) -> Single:
        """Return the mean of the vectors of a word without [CLS] and [SEP], shape (d,)."""
        return self._cached_vectors(f"\0{text}", lambda: self._word(text))

    def _word(self, text: str) -> Single:
        tokens = self._tokens(self.encode, text)
        made: Single = (tokens if len(tokens) else np.zeros((1, tokens.shape[1]))).mean(axis=0).astype(np.float32)
        return made

    def passages(self, text: str) -> Single:
        """Return the mean over passages of 10 sentences, every 5 sentences, of their means, shape (d,)."""
        sentences = _SENTENCE.split(text.strip())
        starts = range(0, max(len(sentences) - _PASSAGE, 0) + _STRIDE, _STRIDE)
        parts = [" ".join(sentences[start : start + _PASSAGE]) for start in starts if start < len(sentences)]
        made: Single = np.mean([self.mean(part) for part in parts], axis=0, dtype=np.float32)
        return made


def lowercase_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, eq=False)
class RawBatch:
    """The documents of one topic in trec_eval's order. Row -1 of an entity is padding, whose vector and score are 0."""

    query: str
    texts: Sequence[str]  # of the documents
    first_stage: Single  # raw scores of the first stage, shape (n,)
    score: Single  # the same, standardised in the topic, shape (n,)
    listed: Ints  # rows of the entities of the topic's entity run, best first, shape (e,)
    run_score: Single  # their scores, shape (e,)
    linked: Ints  # rows of the entities of each document, shape (n, m)
    mentions: Ints  # how often the document mentions each, 0 for padding, shape (n, m)
    entities: RawEntities
    cutoff: int  # the number of entities of the query
    encode: RawTexts

    @property
    def query_entities(self) -> Ints:
        """The rows of the first entities of the entity run, shape (e,)."""
        return self.listed[: self.cutoff]

    def entity_scores(self) -> Floats:
        """Return the run score of each row of the table of entities, 0 for entities that the run does not list."""
        score = np.zeros(len(self.entities.vectors))
        score[self.listed] = self.run_score
        return score

    def summed_vectors(self, weight: str) -> Single:
        """Return ``Σ weight(e) v(e)`` over the links of each document to listed entities, repeats included, (n, v).

        The weight is the run score (``"score"``), 1 (``"uniform"``) or 1 over the rank from 1 (``"reciprocal"``).
        """
        table = np.zeros(len(self.entities.vectors))
        rank = np.arange(1, len(self.listed) + 1)
        weights: dict[str, Floats] = {
            "score": self.run_score.astype(np.float64),
            "uniform": np.ones(len(rank)),
            "reciprocal": 1 / rank,
        }
        table[self.listed] = weights[weight]
        share = np.where(self.linked >= 0, table[self.linked], 0) * self.mentions
        made: Single = np.einsum("nm,nmv->nv", share, self.entities.vectors[self.linked]).astype(np.float32)
        return made

    def scaled_vectors(self) -> tuple[Single, Bools, Single, Bools]:
        """Return vectors times run scores and masks: of the query's entities, (e, v), and of documents, (n, m', v).

        A document has the entities that the run lists at any rank, in the order of its links, repeats included;
        entities without a vector are absent.
        """
        has_vector, vectors, score = self.entities.has_vector, self.entities.vectors, self.entity_scores()
        listed = np.zeros(len(vectors), dtype=bool)
        listed[self.listed] = True
        with_vector = self.query_entities[has_vector[self.query_entities]]
        repeats = np.where((self.linked >= 0) & (listed & has_vector)[self.linked], self.mentions, 0)
        size = repeats.sum(axis=1)
        rows = np.full((len(self.linked), int(size.max(initial=0))), -1)
        mask = np.arange(rows.shape[1]) < size[:, None]
        rows[mask] = np.repeat(self.linked.ravel(), repeats.ravel())
        query, document = (score[each][..., None] * vectors[each] for each in (with_vector, rows))
        document[~mask] = 0
        return query.astype(np.float32), np.ones(len(with_vector), dtype=bool), document.astype(np.float32), mask


@dataclass(frozen=True, eq=False)
class RawEntities:
    """The entities of a run and of its documents by row, and a last row of padding, which -1 indexes."""

    ids: list[str]
    texts: list[str]  # name and description
    vectors: Single  # as given, or the means of the token vectors of the texts, shape (n + 1, v)
    has_vector: Bools  # shape (n + 1,)
    types: Mapping[str, Sequence[str]]  # names of types by entity


class RawBatches:
    """Raw inputs of the topics of a run, made one after the other; see :class:`NeuralReranker` for the parameters."""

    def __init__(
        self,
        documents: Documents,
        listed: TopEntities,
        queries: list[str],
        texts: list[str],
        encode: RawTexts,
        *,
        names: Mapping[str, str] | None,
        vectors: Mapping[str, Any] | None,
        types: Mapping[str, Sequence[str]] | None,
        cutoff: int,
    ) -> None:
        self.pool, self.listed, self.queries, self.texts = documents.pool, listed, queries, texts
        self.encode, self.cutoff, self._raw = encode, cutoff, documents.score
        self._score = normalise_by_topic(documents.score, self.pool.topic_starts, "z").astype(np.float32)
        self._rows = EntityRows(self.pool, listed)
        ids = self._rows.ids
        called = entity_texts(ids, names)
        if vectors is None:
            made = np.stack([encode.mean(text) for text in called]) if ids else np.zeros((0, 1))
            has_vector = np.ones(len(ids), dtype=bool)
        else:
            made, has_vector = raw_vectors(vectors, ids)
        table = np.pad(made.astype(np.float32), ((0, 1), (0, 0)))
        self.entities = RawEntities(ids, called, table, np.append(has_vector, False), types or {})

    def __iter__(self) -> Iterator[RawBatch]:
        for topic in range(len(self.pool.topics)):
            yield self._of(topic)

    def _of(self, topic: int) -> RawBatch:
        pool = self.pool
        rows = slice(*pool.topic_starts[topic : topic + 2].tolist())
        chosen = np.flatnonzero(self.listed.topic == topic)
        chosen = chosen[np.argsort(self.listed.rank[chosen], kind="stable")]
        linked, mentions = self._rows.of_documents(rows, pool.mentions)
        return RawBatch(
            query=self.queries[topic],
            texts=self.texts[rows],
            first_stage=self._raw[rows].astype(np.float32),
            score=self._score[rows],
            listed=self._rows.listed[chosen],
            run_score=self.listed.score[chosen].astype(np.float32),
            linked=linked,
            mentions=mentions,
            entities=self.entities,
            cutoff=self.cutoff,
            encode=self.encode,
        )


def pad_rows(rows: Sequence[Single]) -> tuple[Single, Single]:
    """Return arrays of rows of equal width as one array with a mask, shapes (n, w, d) and (n, w)."""
    size = np.array([len(each) for each in rows])
    mask = np.arange(int(size.max(initial=1))) < size[:, None]
    made = np.zeros((*mask.shape, rows[0].shape[1] if len(rows) else 1), np.float32)
    made[mask] = np.concatenate(rows) if len(rows) else 0
    return made, mask.astype(np.float32)
