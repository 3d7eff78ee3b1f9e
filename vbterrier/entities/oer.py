"""Observable entity relevance: entities among relevant and non-relevant documents, and those that runs select."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.stage import TopEntities
from vbterrier.errors import ParameterError, whole
from vbterrier.frames.ids import Ids
from vbterrier.frames.ranking import Run, run_places
from vbterrier.kernels.coverage import CLASSES, observable_relevance, signal_classes

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.pool import LinkedPool


# The paper states neither value; every report prints them.
ALPHA = 0.5
SHRINKAGE = 5.0


class EntityTable:
    """Counts of relevant and non-relevant documents for each pair of topic and entity in a pool.

    Parameters
    ----------
    pool
        The pool.
    rel
        The lowest relevant label. Unjudged documents are non-relevant.

    Attributes
    ----------
    df_relevant, df_other : numpy.ndarray
        Relevant and non-relevant documents of the topic that mention the entity, shape (n_pairs,).
    n_relevant, n_other : numpy.ndarray
        Relevant and non-relevant documents in the pool of each topic, shape (n_topics,).

    Raises
    ------
    ParameterError
        ``rel`` below 1.

    Examples
    --------
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

        Raises
        ------
        ParameterError
            ``alpha`` or ``shrinkage`` not above 0.
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


COLUMNS = (
    *("name", "qid", "rank", "entity_id", "score", "df_relevant", "df_other", "oer", "signal"),
    *("k", "rel", "alpha", "tau"),
)
# The class of an entity that no document of the topic's pool mentions.
ABSENT = "absent"


def selected_entities(
    runs: Any, links: LinkedPool, *, cutoff: int = 20, rel: int = 1, alpha: float = ALPHA, shrinkage: float = SHRINKAGE
) -> pd.DataFrame:
    """Return the first entities of runs with their document frequencies, OER and signal class.

    Parameters
    ----------
    runs
        An entity run (qid, docno: an entity's id, score), or a mapping of names to such runs.
    links
        A linked pool with labels.
    cutoff
        The number of entities of each topic that count.
    rel
        The lowest relevant label; unjudged documents are non-relevant.
    alpha, shrinkage
        The pseudo-count and the shrinkage of OER, see :meth:`vbterrier.entities.oer.EntityTable.oer`.

    Returns
    -------
    pandas.DataFrame
        One row per run, topic and rank: name, qid, rank (from 0), entity_id, score, df_relevant, df_other, oer,
        signal (the class; ``"absent"`` with ``oer`` 0 if no document of the topic mentions the entity), k, rel, alpha,
        tau. In topics without relevant or without non-relevant documents ``oer`` is NaN.

    Raises
    ------
    InputError
        See the contract of runs; ids of different kinds; no topic in common.
    ParameterError
        An illegal value.

    Notes
    -----
    In each topic, the mean of ``oer`` is OER@k, and the share of rows of two classes is SignalRate or BaitRate.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.5 and figure 4.

    Examples
    --------
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Texas", "Texas"]})
    >>> links = link_pool(pool, tags, pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]}))
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Texas", "Rome"], "score": [2.0, 1.0]})
    >>> found = selected_entities(run, links)
    >>> found[["entity_id", "df_relevant", "df_other", "oer", "signal"]].round(2).values.tolist()
    [['Texas', 0, 2, -0.89, 'sparse'], ['Rome', 0, 0, 0.0, 'absent']]
    """
    table = EntityTable(links, rel)
    oer, classes = table.oer(alpha, shrinkage), table.classes(alpha, shrinkage)
    named = runs if isinstance(runs, Mapping) else {"run": runs}
    cutoff = whole("cutoff", cutoff)
    parts = [_rows(str(name), run, table, oer, classes, cutoff) for name, run in named.items()]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS[:-4]))
    return found.assign(k=cutoff, rel=rel, alpha=alpha, tau=shrinkage)


def _rows(name: str, given: Any, table: EntityTable, oer: Floats, classes: Ints, cutoff: int) -> pd.DataFrame:
    pool = table.pool
    run = given if isinstance(given, Run) else Run(given, name=f"run {name!r}")
    # Raises an error if the two share no topic.
    run_places(run, pool.topics, Ids(None, run.topic_ids.integers), "links")
    listed = TopEntities.of(pool, run, cutoff)
    # -1 indexes the last value, which is appended for entities that no document of the topic mentions.
    pair, topic = listed.pair, listed.topic
    names = np.array([*CLASSES, ABSENT], dtype=object)
    return pd.DataFrame(
        {
            "name": name,
            "qid": np.array(pool.topics, dtype=object)[topic],
            "rank": listed.rank,
            "entity_id": listed.ids.text.to_pandas(),
            "score": listed.score,
            "df_relevant": np.append(table.df_relevant, 0)[pair],
            "df_other": np.append(table.df_other, 0)[pair],
            "oer": np.where(table.contrasts[topic], np.append(oer, 0.0)[pair], np.nan),
            "signal": names[np.append(classes, len(CLASSES))[pair]],
        }
    )
