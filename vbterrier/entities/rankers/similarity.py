"""Entity ranker by cosine similarity to the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import PoolRanker, QueryEntities
from vbterrier.entities.rankers.consensus import SUPPORT, soft_support
from vbterrier.entities.vectors import VectorFile
from vbterrier.errors import InputError, ParameterError, choice, examples, excerpt, warn
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.id_spaces import keys_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.linked_pool import LinkedPool


def entity_texts(ids: list[str], texts: Mapping[str, str] | None) -> list[str]:
    """Return the text of each entity: its own, or else its id with spaces for underscores.

    A warning reports texts that no entity has: the keys are then usually other ids.
    """
    named = texts or {}
    keys = keys_in(named, ids)
    if named and ids and not any(each in named for each in keys):
        warn(
            f"none of {len(set(ids))} entities has a text or name, and their ids are used ({examples(ids)}); check "
            "that the texts have the same entity ids as the links and runs"
        )
    return [named[key] if key in named else each.replace("_", " ") for key, each in zip(keys, ids, strict=True)]


def unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; vectors of length 0 become NaN, shape (n, d)."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors / np.where(length > 0, length, np.nan)[:, None]


def raw_vectors(vectors: Mapping[str, Any], ids: list[str]) -> tuple[Floats, Bools]:
    """Return vectors of ids, zeros for ids without a vector, shape (n, d), and True for ids with a vector, (n,)."""
    ids = keys_in(vectors, ids)
    if isinstance(vectors, VectorFile):
        rows = vectors.rows(ids)
        has_vector, values = rows >= 0, vectors.table(rows[rows >= 0])
    else:
        has_vector = np.array([each in vectors for each in ids], dtype=bool)
        present = [each for each, has in zip(ids, has_vector.tolist(), strict=True) if has]
        values = table([vectors[each] for each in present], present, "entities") if present else np.empty((0, 0))
    made = np.zeros((len(ids), values.shape[1] if has_vector.any() else 0))
    if has_vector.any():
        made[has_vector] = values
    return made, has_vector


def unit_vectors(vectors: Mapping[str, Any], ids: list[str]) -> Floats:
    """Return unit vectors of ids, NaN for ids without a vector, shape (n, d), or (n, 0) if no id has a vector."""
    made, has_vector = raw_vectors(vectors, ids)
    return np.where(has_vector[:, None], unit(made), np.nan)


def known_vectors(vectors: Mapping[str, Any], ids: list[str], without: str) -> Floats:
    """Return unit vectors of ids, zeros for ids without a vector, which a warning reports, shape (n, d)."""
    made = unit_vectors(vectors, ids)
    missing = np.isnan(made).any(axis=1) | (made.shape[1] == 0)
    if missing.any():
        lost = list(dict.fromkeys(ids[place] for place in np.flatnonzero(missing).tolist()))
        warn(f"{len(lost)} of {len(set(ids))} {without} ({examples(lost)})")
    return np.nan_to_num(made)


def table(vectors: Any, ids: list[str], what: str) -> Floats:
    """Return vectors as an array with one row for each id or text."""
    try:
        made = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        why = f"not a table of numbers; check that all have the same length ({error})"
        raise InputError(f"vectors of {len(ids)} {what}: {why}") from error
    if made.ndim != 2 or len(made) != len(ids) or not made.shape[1]:  # noqa: PLR2004 - a table has two dimensions
        raise InputError(f"vectors of {len(ids)} {what}: wanted a table of shape ({len(ids)}, d), found {made.shape}")
    bad = ~np.isfinite(made).all(axis=1)
    if bad.any():
        raise InputError(f"vectors of {what}: the vector of {ids[int(np.argmax(bad))]!r} is not finite; leave it out")
    return made


# Vectors per batch.
_BLOCK_ROWS = 2**14


def blocks(n: int) -> Iterator[slice]:
    """Yield the slices of batches of vectors."""
    return (slice(start, min(start + _BLOCK_ROWS, n)) for start in range(0, n, _BLOCK_ROWS))


def inner(left: Floats, row: Ints, right: Floats, column: Ints) -> Floats:
    """Return the inner products of rows of two tables, shape (n,)."""
    products = np.empty(len(row))
    for some in blocks(len(row)):
        products[some] = np.einsum("ij,ij->i", left[row[some]], right[column[some]])
    return products


class EntitySimilarity(PoolRanker):
    """Rank the entities of the pool by the cosine of their vectors with the query vector: R -> E.

    The query vector is the vector of its text, or the centroid ``sum_e p(e) v(e)/|v(e)|`` of its entities.

    Parameters
    ----------
    links, pool_cutoff, cutoff
        As in :class:`~vbterrier.entities.ConsensusEntities`.
    embeddings
        Vectors of entities by id: anything with ``in`` and ``[id]``, such as a dictionary or word vectors.
    embed
        A function from n texts to vectors of shape (n, d), such as :class:`vbterrier.intents.MiniLM`. It embeds the
        queries unless ``query_entities`` is given, and the entities unless ``embeddings`` is.
    texts
        Texts of entities by id, for ``embed``. The text of an entity without one is its id, with spaces for
        underscores.
    query_entities
        The entities of the queries, an I frame (qid, entity_id [, prob]); prob is 1 if absent.
    idf
        Multiply by the inverse document frequency in the pool, ``log((K + 1)/(df + 1)) + 1``.
    support
        Multiply by the support of the entity in the pool, ``"rank"``, ``"rho"`` or ``"rho+rank"``, as
        :class:`~vbterrier.entities.ConsensusEntities` defines it; ``"none"`` does not.

    Raises
    ------
    ParameterError
        Neither ``embeddings`` nor ``embed``; neither ``embed`` nor ``query_entities``.
    InputError
        Vectors of different lengths, or not finite. See the contracts of runs, tags, K and I frames.

    Notes
    -----
    With ``idf`` or ``support``, the cosine c is replaced by ``(1 + c)/2``, since a factor would move negative cosines
    in the wrong direction. Entities without a vector, or with a vector of length 0, are not ranked, and topics without
    one have no ranking; a warning reports both. The vectors from ``embed`` are cached. A network may embed a text
    slightly differently in different batches; the single precision of rankings hides most of these differences.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.8.

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": "q1", "query": "capital", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Texas", "Paris"]})
    >>> vectors = {"Paris": [1.0, 0.0], "Texas": [0.6, 0.8]}
    >>> stage = EntitySimilarity(tags, embeddings=vectors, embed=lambda texts: [[2.0, 0.0]] * len(texts))
    >>> stage(pool)[["docno", "score"]].values.tolist()
    [['Paris', 1.0], ['Texas', 0.6]]
    """

    def __init__(
        self,
        links: Any,
        *,
        embeddings: Mapping[str, Any] | None = None,
        embed: Callable[[list[str]], Any] | None = None,
        texts: Mapping[str, str] | None = None,
        query_entities: Any = None,
        idf: bool = False,
        support: str = "none",
        pool_cutoff: int | None = None,
        cutoff: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff, cutoff)
        if embeddings is None and embed is None:
            raise ParameterError("EntitySimilarity: entities have no vectors; pass embeddings= or embed=")
        if embed is None and query_entities is None:
            raise ParameterError("EntitySimilarity: queries have no vectors; pass embed= or query_entities=")
        if embed is not None and not callable(embed):
            raise ParameterError(f"embed={excerpt(embed)}: wanted a callable from texts to vectors")
        if embeddings is not None and texts is not None:
            raise ParameterError("texts= and embeddings= both describe the entities; pass one of them")
        self.embeddings, self.texts = embeddings, texts
        self.embed: Any = embed
        self.idf, self.support = bool(idf), choice("support", support, ("none", *SUPPORT))
        self.query_entities = None if query_entities is None else pandas_frame(query_entities, "query_entities").copy()
        self._query = None if query_entities is None else QueryEntities(self.query_entities, name="query_entities")
        self.needs_query = self._query is None
        self._embedded: dict[str, Floats] = {}

    def _vectors(self, ids: list[str]) -> Floats:
        """Return unit vectors of entities, NaN for ids without a vector; vectors of texts are computed once."""
        if self.embeddings is not None:
            return unit_vectors(self.embeddings, ids)
        new = [each for each in dict.fromkeys(ids) if each not in self._embedded]
        if new:
            vectors = table(self.embed(entity_texts(new, self.texts)), new, "entities")
            self._embedded.update(zip(new, vectors, strict=True))
        return unit(np.stack([self._embedded[each] for each in ids])) if ids else np.empty((0, 0))

    def scores(self, pool: LinkedPool, queries: list[str]) -> Floats:
        """Return the score of each of ``pool.pairs``, NaN without a vector, shape (n_pairs,)."""
        cosine = self._cosines(pool, queries)
        if not self.idf and self.support == "none":
            return cosine
        score = (1 + cosine) / 2
        if self.idf:
            score = score * pool.idf
        return score if self.support == "none" else score * soft_support(pool, self.support)

    def _cosines(self, pool: LinkedPool, queries: list[str]) -> Floats:
        query = unit(self._query_vectors(pool.topics, queries))
        score = np.full(len(pool.pairs), np.nan)
        lost = [pool.topics[place] for place in np.flatnonzero(np.isnan(query[:, 0])).tolist()]
        if lost:
            warn(f"{len(lost)} of {len(query)} topics have no vector and no ranking ({examples(lost)})")
        if len(lost) == len(query):
            return score
        topic, entity = np.divmod(pool.pairs, len(pool.entities))
        number, place = np.unique(entity, return_inverse=True)
        # The pairs of a block of entities are together.
        order = np.argsort(place, kind="stable")
        in_order, unknown = place[order], list[str]()
        for some in blocks(len(number)):
            ids = pool.entities.take(number[some]).text.to_pylist()
            vectors = self._vectors(ids)
            if not vectors.shape[1]:
                vectors = np.full((len(ids), query.shape[1]), np.nan)
            if vectors.shape[1] != query.shape[1]:
                remedy = f"vectors of queries {query.shape[1]}; use the same embedding model"
                raise InputError(f"vectors of entities have {vectors.shape[1]} numbers, {remedy}")
            unknown += [each for each, none in zip(ids, np.isnan(vectors[:, 0]).tolist(), strict=True) if none]
            pairs = order[slice(*np.searchsorted(in_order, (some.start, some.stop)))]
            score[pairs] = inner(vectors, place[pairs] - some.start, query, topic[pairs])
        if unknown:
            warn(f"{len(unknown)} of {len(number)} entities have no vector and are not ranked ({examples(unknown)})")
        return score

    def _query_vectors(self, topics: list[str], queries: list[str]) -> Floats:
        if self._query is None:
            place = {text: each for each, text in enumerate(dict.fromkeys(queries))}
            made = table(self.embed(list(place)), list(place), "queries")
            return made[[place[text] for text in queries]]
        topic, entity, prob = self._query.of(topics)
        vectors = self._vectors(entity.text.to_pylist())
        made = np.zeros((len(topics), max(vectors.shape[1], 1)))
        if vectors.shape[1]:
            np.add.at(made, topic, np.nan_to_num(vectors) * prob[:, None])
        return made
