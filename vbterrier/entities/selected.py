"""The entities that runs select, with their observable entity relevance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.oer import ALPHA, SHRINKAGE, EntityTable
from vbterrier.entities.stage import TopEntities
from vbterrier.errors import whole
from vbterrier.frames.ids import Ids
from vbterrier.frames.ranking import Run, run_places
from vbterrier.kernels.coverage import CLASSES

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.pool import LinkedPool

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
