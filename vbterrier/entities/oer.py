"""Observable entity relevance: entities among relevant and non-relevant documents."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.kernels.coverage import observable_relevance, signal_classes

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.pool import LinkedPool


# The paper states neither value; every report prints them.
ALPHA = 0.5
SHRINKAGE = 5.0


class EntityTable:
    """Counts of relevant and non-relevant documents for each pair of topic and entity in a pool.

    - ``rel``: the lowest relevant label. Unjudged documents are non-relevant.
    - ``df_relevant``, ``df_other``: relevant and non-relevant documents of the topic that mention the entity, shape
      (n_pairs,)
    - ``n_relevant``, ``n_other``: relevant and non-relevant documents in the pool of each topic, shape (n_topics,)

    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Texas", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    >>> table = EntityTable(link_pool(pool, tags, qrels))
    >>> table.df_relevant, table.df_other, table.oer().round(2)
    (array([1, 0]), array([0, 2]), array([ 0.49, -0.89]))
    """

    def __init__(self, pool: LinkedPool, rel: int = 1) -> None:
        if isinstance(rel, bool) or not isinstance(rel, int) or rel < 1:
            raise ParameterError(f"rel={rel!r}: wanted a whole number of at least 1, the lowest relevant label")
        self.pool, self.rel = pool, rel
        relevant = pool.relevant(rel)
        n_topics, n_pairs = len(pool.topics), len(pool.pairs)
        self.n_relevant: Ints = np.bincount(pool.topic[relevant], minlength=n_topics)
        self.n_other: Ints = np.bincount(pool.topic[~relevant], minlength=n_topics)
        self.df_relevant: Ints = np.bincount(pool.pair[relevant[pool.document]], minlength=n_pairs)
        self.df_other: Ints = np.bincount(pool.pair, minlength=n_pairs) - self.df_relevant

    def __len__(self) -> int:
        return len(self.pool.pairs)

    def __repr__(self) -> str:
        return f"EntityTable({len(self)} pairs of topic and entity, rel={self.rel})"

    @cached_property
    def topic(self) -> Ints:
        """The topic of each pair, in ascending order, shape (n_pairs,)."""
        return self.pool.pairs // max(len(self.pool.entities), 1)

    @cached_property
    def entity(self) -> Ints:
        """Index of each pair's entity in ``pool.entities``, ascending in each topic, shape (n_pairs,)."""
        return self.pool.pairs % max(len(self.pool.entities), 1)

    @property
    def pair(self) -> Ints:
        """The pair of each link, shape (n_links,)."""
        return self.pool.pair

    @property
    def df(self) -> Ints:
        """Documents of the topic's pool that mention the entity, shape (n_pairs,)."""
        return self.df_relevant + self.df_other

    @property
    def contrasts(self) -> Bools:
        """True for topics with relevant and non-relevant documents; other topics have no OER, shape (n_topics,)."""
        return (self.n_relevant > 0) & (self.n_other > 0)

    def find(self, topic: Ints, entity: Ints) -> Ints:
        """Return the index of pairs of topic and entity, -1 if no document mentions the entity; any shape."""
        return self.pool.find(topic, entity)

    def oer(self, alpha: float = ALPHA, shrinkage: float = SHRINKAGE) -> Floats:
        """Return the observable entity relevance of each pair, shape (n_pairs,).

        See :func:`vbterrier.kernels.coverage.observable_relevance`. NaN in topics without relevant or without
        non-relevant documents.
        """
        for name, value in (("alpha", alpha), ("shrinkage", shrinkage)):
            if not (np.isfinite(value) and value > 0):
                raise ParameterError(f"{name}={value!r}: wanted a number above 0")
        n_relevant, n_other = self.n_relevant[self.topic], self.n_other[self.topic]
        found = observable_relevance(
            self.df_relevant, self.df_other, n_relevant, n_other, alpha=alpha, shrinkage=shrinkage
        )
        return np.where(self.contrasts[self.topic], found, np.nan)

    def classes(self, alpha: float = ALPHA, shrinkage: float = SHRINKAGE) -> Ints:
        """Return the signal class of each pair as an index into ``CLASSES``, shape (n_pairs,).

        In topics without an OER, entities that are not sparse are neutral.
        """
        return signal_classes(self.oer(alpha, shrinkage), self.df_relevant, self.df_other)
