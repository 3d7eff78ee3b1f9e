"""What a learned ranker may know of an entity and a query: nothing that was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import Topics
from vbterrier.entities.rankers.idf import pool_df
from vbterrier.entities.vectors import name_of
from vbterrier.kernels.order import mix
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.entities.pool import LinkedPool
    from vbterrier.entities.rankers.base import Placed

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

SUPPORT = ("df", "df_distinct", "mentions", "rank_support")
STAGE = ("score", "rank")
WORDS = ("overlap", "jaccard", "query_share")
FEATURES = (*SUPPORT, *STAGE, *WORDS)


def distinct_documents(pool: LinkedPool) -> NDArray[np.bool_]:
    """Which documents are the first of their topic with just these entities, as often mentioned, shape (n_documents,).

    Near-duplicates of news are linked alike: without their texts this is what shows them.
    """
    # A sum does not ask for order, and entities of a document are distinct.
    mentioned = mix(mix(pool.entity.astype(np.uint64)) + pool.mentions.astype(np.uint64))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mentioned, dtype=np.uint64)])
    marks = mix(total[pool.starts[1:]] - total[pool.starts[:-1]]) ^ mix(pool.topic.astype(np.uint64))
    first = np.zeros(len(pool), dtype=bool)
    first[np.unique(marks, return_index=True)[1]] = True
    return first


def candidate_support(pool: LinkedPool) -> Floats:
    """How the pool supports each of its pairs, shape (n_pairs, 4).

    Documents that mention the entity; those that differ in their entities; mentions; ``sum 1/rank``, rank from 1.
    """
    n = len(pool.pairs)
    distinct = distinct_documents(pool)[pool.document]
    columns = [
        pool_df(pool),
        np.bincount(pool.pair[distinct], minlength=n),
        np.bincount(pool.pair, pool.mentions, minlength=n),
        np.bincount(pool.pair, 1.0 / (1 + pool.rank[pool.document]), minlength=n),
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def word_overlap(query: Sequence[str], name: Sequence[str]) -> Floats:
    """Words that two texts share, shape (n, 3): how many, their Jaccard coefficient, their share of the query's.

    A word counts once; case does not count. Texts without words share nothing.

    >>> word_overlap(["gas tax in Texas"], ["Gas Tax"]).tolist()
    [[2.0, 0.5, 0.5]]
    """
    from scipy.sparse import csr_array

    texts = {text: place for place, text in enumerate(dict.fromkeys([*query, *name]))}
    words = [list(dict.fromkeys(form.split())) for form in Words.of(list(texts)).forms()]
    sizes = np.array([len(each) for each in words], dtype=np.int64)
    numbers: dict[str, int] = {}
    column = [numbers.setdefault(word, len(numbers)) for each in words for word in each]
    row = np.repeat(np.arange(len(words)), sizes)
    holds = csr_array((np.ones(len(row)), (row, column)), shape=(len(words), max(len(numbers), 1)))
    asked, called = (np.array([texts[text] for text in given], dtype=np.int64) for given in (query, name))
    shared: Floats = np.asarray(holds[asked].multiply(holds[called]).sum(axis=1)).reshape(-1)
    either = sizes[asked] + sizes[called] - shared
    return np.stack([shared, shared / np.maximum(either, 1), shared / np.maximum(sizes[asked], 1)], axis=1)


def feature_table(placed: Placed, features: Sequence[str], names: Mapping[str, str] | None) -> Floats:
    """The features of each row of an entity run, in the order asked, shape (n_rows, n_features).

    Those that are none of ``FEATURES`` are columns of the run.
    """
    run = placed.run
    columns: dict[str, Any] = {"score": run.score, "rank": run.ranks() + 1.0}
    if set(features) & set(SUPPORT):
        support = candidate_support(placed.pool)
        columns |= {name: placed.of_pairs(support[:, place]) for place, name in enumerate(SUPPORT)}
    if set(features) & set(WORDS):
        known = names or {}
        called = [known[each] if each in known else name_of(each) for each in run.docno.text.to_pylist()]
        queries = Topics(run.frame).queries(run.topics)
        overlap = word_overlap([queries[topic] for topic in run.topic.tolist()], called)
        columns |= {name: overlap[:, place] for place, name in enumerate(WORDS)}
    made = [columns[name] if name in columns else run.frame[name].to_numpy(dtype=np.float64) for name in features]
    return np.stack(made, axis=1).astype(np.float64) if len(run) else np.empty((0, len(features)))
