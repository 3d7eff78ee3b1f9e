"""Texts, entities and vectors of the documents of one topic, as padded arrays."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from vbterrier.entities.rankers.similarity import entity_texts, known_vectors, unit
from vbterrier.entities.rerank.base import normalise_by_topic, refuse_as_weights
from vbterrier.errors import InputError, float_array
from vbterrier.kernels.rankings import spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.stage import Documents, TopEntities
    from vbterrier.frames.linked_pool import LinkedPool

    Single: TypeAlias = NDArray[np.float32]
    Encode: TypeAlias = Callable[[str], Any]


Made = TypeVar("Made")
# Texts whose token vectors are kept: some gigabytes at most.
_MAX_CACHED_TEXTS = 8192
ENTITY_WEIGHTS = ("rank", "score")


@dataclass(frozen=True, eq=False)
class Batch:
    """The documents of one topic in trec_eval's order; all vectors have length 1, and padding has length 0."""

    score: Single  # first-stage scores, standardised in the topic, shape (n,)
    document: Ints  # codes that are equal for equal document ids of the same run, shape (n,)
    words: Single  # words, text: vectors of the tokens of the query, shape (q, d), and of its text, shape (d,)
    text: Single
    # document_words, document_text: vectors of the tokens of the documents, shape (n, w, d), and of their texts, shape
    # (n, d).
    document_words: Single
    document_text: Single
    has_word: Single  # 1 for tokens, 0 for padding, shape (n, w)
    # entities, vectors, weight: the entities of the query: vectors of their texts, (e, d), their own vectors, (e, v),
    # and weights, (e,).
    entities: Single
    vectors: Single
    weight: Single
    # document_entities, document_vectors: the entities of the documents: vectors of their texts, (n, m, d), and their
    # own, (n, m, v).
    document_entities: Single
    document_vectors: Single
    link_weight: Single  # the confidence of each link, 0 for padding, shape (n, m)
    same: Single  # 1 if an entity of a document is an entity of the query, shape (n, e, m)


class EncodedTexts(Generic[Made]):
    """Base class of vectors of texts from an encoder; those of the latest texts are kept."""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode
        self._known: OrderedDict[str, Made] = OrderedDict()

    def _cached_vectors(self, key: str, vectors: Callable[[], Made]) -> Made:
        """Return the kept vectors of a key, or compute and keep them."""
        if key not in self._known:
            self._known[key] = vectors()
            if len(self._known) > _MAX_CACHED_TEXTS:
                self._known.popitem(last=False)
        return self._known[key]

    @staticmethod
    def _tokens(encode: Encode, text: str) -> Floats:
        """Return the vectors of the tokens of a text, shape (n_tokens, d)."""
        tokens = float_array("encoder", encode(text))
        if tokens.ndim != 2 or not np.isfinite(tokens).all():  # noqa: PLR2004 - a table has two dimensions
            raise InputError(
                f"encoder: wanted finite vectors of shape (n_tokens, d) for {text[:40]!r}, found {tokens.shape}"
            )
        return tokens


class Texts(EncodedTexts["tuple[Single, Single]"]):
    """Unit vectors of tokens and texts."""

    def __call__(self, text: str) -> tuple[Single, Single]:
        """Return unit vectors of the tokens, shape (n_tokens, d), and of the mean of the tokens, shape (d,)."""
        return self._cached_vectors(text, lambda: self._units(text))

    def _units(self, text: str) -> tuple[Single, Single]:
        tokens = self._tokens(self.encode, text)
        mean = tokens.sum(axis=0, keepdims=True)
        made = [np.nan_to_num(unit(part)).astype(np.float32) for part in (tokens, mean)]
        return made[0], made[1][0]


class EntityRows:
    """The entities of documents, then those of topics that no document mentions, by row.

    ``ids``: the entities; ``link``: the row of each link of the pool; ``listed``: that of each listed entity.
    """

    def __init__(self, pool: LinkedPool, listed: TopEntities) -> None:
        used, self.link = np.unique(pool.entity, return_inverse=True)
        place = {each: at for at, each in enumerate(pool.entities.take(used).text.to_pylist())}
        listed_ids = listed.ids.text.to_pylist()
        self.listed = np.array([place.setdefault(each, len(place)) for each in listed_ids], dtype=np.int64)
        self.ids = list(place)
        self._starts = pool.starts

    def of_documents(self, documents: slice, of_links: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
        """Return rows of the entities of documents, -1 for padding, and a value of each link, 0; shape (n, m)."""
        starts = self._starts[documents.start : documents.stop + 1]
        owner, link = spans(starts[:-1], starts[1:])
        shape = len(starts) - 1, max(int(np.diff(starts).max(initial=0)), 1)
        rows, values = np.full(shape, -1), np.zeros(shape, of_links.dtype)
        place = link - starts[owner]
        rows[owner, place], values[owner, place] = self.link[link], of_links[link]
        return rows, values


class Batches:
    """Batches of the topics of a run, made one after the other; see :class:`NeuralReranker` for the parameters."""

    def __init__(
        self,
        documents: Documents,
        listed: TopEntities,
        queries: list[str],
        texts: list[str],
        encoded: Texts,
        *,
        names: Mapping[str, str] | None,
        vectors: Mapping[str, Any] | None,
        entity_weight: str,
    ) -> None:
        self.pool, self.listed, self.queries, self.texts = documents.pool, listed, queries, texts
        self._encoded = encoded
        self._score = normalise_by_topic(documents.score, self.pool.topic_starts, "z").astype(np.float32)
        self._weight = _weights(listed, entity_weight)
        self._rows = EntityRows(self.pool, listed)
        ids = self._rows.ids
        size = len(encoded(queries[0])[1]) if queries else 1
        vectors_of_texts = [encoded(text)[1] for text in entity_texts(ids, names)]
        # The last row, which -1 indexes, is the padding.
        self._text_vectors = np.pad(np.array(vectors_of_texts, np.float32).reshape(len(ids), size), ((0, 1), (0, 0)))
        self._document = self.pool.docno.codes()[1]
        self._vectors = (
            self._text_vectors if vectors is None else np.pad(_stored_vectors(vectors, ids), ((0, 1), (0, 0)))
        )

    @property
    def sizes(self) -> Single:
        """The numbers of dimensions of vectors of texts and of entities, shape (2,)."""
        return np.array([self._text_vectors.shape[1], self._vectors.shape[1]], dtype=np.float32)

    def __iter__(self) -> Iterator[Batch]:
        for topic in range(len(self.pool.topics)):
            yield self._of(topic)

    def _of(self, topic: int) -> Batch:
        pool = self.pool
        rows = slice(*pool.topic_starts[topic : topic + 2].tolist())
        encoded = [self._encoded(text) for text in self.texts[rows]]
        words, text = self._encoded(self.queries[topic])
        document_words, has_word = _pad_tokens([tokens for tokens, _ in encoded], len(text))
        chosen = np.flatnonzero(self.listed.topic == topic)
        entities = self._rows.listed[chosen]
        entity_rows, weight = self._rows.of_documents(rows, pool.weight.astype(np.float32))
        return Batch(
            score=self._score[rows],
            document=self._document[rows],
            words=words,
            text=text,
            document_words=document_words,
            document_text=np.stack([vector for _, vector in encoded]),
            has_word=has_word,
            entities=self._text_vectors[entities],
            vectors=self._vectors[entities],
            weight=self._weight[chosen],
            document_entities=self._text_vectors[entity_rows],
            document_vectors=self._vectors[entity_rows],
            link_weight=weight,
            same=(entity_rows[:, None, :] == entities[:, None]).astype(np.float32),
        )


def _pad_tokens(tokens: list[Single], size: int) -> tuple[Single, Single]:
    longest = max((len(each) for each in tokens), default=0) or 1
    made, mask = np.zeros((len(tokens), longest, size), np.float32), np.zeros((len(tokens), longest), np.float32)
    for row, each in enumerate(tokens):
        made[row, : len(each)], mask[row, : len(each)] = each, 1
    return made, mask


def _stored_vectors(vectors: Mapping[str, Any], ids: list[str]) -> Single:
    """Return given vectors of entities, zero for entities without one, which a warning reports."""
    made = known_vectors(vectors, ids, "entities have no vector and match by id only")
    return (made if made.shape[1] else np.zeros((len(ids), 1))).astype(np.float32)


def _weights(listed: TopEntities, entity_weight: str) -> Single:
    if entity_weight == "rank":
        return (1 / np.log2(listed.rank + 2)).astype(np.float32)
    refuse_as_weights(listed, ~((listed.score >= 0) & np.isfinite(listed.score)))
    # The best entity of each topic has weight 1.
    most: Floats = np.zeros(len(listed.pool.topics))
    np.maximum.at(most, listed.topic, listed.score)
    share = np.divide(listed.score, most[listed.topic], out=np.zeros(len(listed.score)), where=listed.score > 0)
    return share.astype(np.float32)


def document_texts(run: pd.DataFrame, rows: Ints, texts: Mapping[str, str] | None) -> list[str]:
    """Return the texts of documents, from a mapping by docno or from the column ``text`` of the run."""
    docno, where = run["docno"].iloc[rows].tolist(), "texts"
    values: list[Any]
    if texts is not None:
        # A mapping may be anything with `in` and `[id]`.
        values = [texts[each] if each in texts else None for each in docno]  # noqa: SIM401
    elif "text" in run.columns:
        values, where = run["text"].iloc[rows].tolist(), "column 'text'"
    else:
        raise InputError("run: no column 'text'; add the texts of documents, or pass texts= (by docno)")
    for each, text in zip(docno, values, strict=True):
        if not isinstance(text, str):
            raise InputError(f"run: document {each!r} has no text in {where}, found {text!r}")
    return values
