"""Entity labels derived from document labels, and a report on the derivation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.entities.oer import ALPHA, SHRINKAGE, EntityTable
from vbterrier.frames.notebook import Panel, Shown, counted
from vbterrier.kernels.coverage import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints
    from vbterrier.entities.pool import LinkedPool


PARTITIONS = ("positive", "negative", "common")
POSITIVE, NEGATIVE, COMMON = range(3)


def entity_labels(pool: LinkedPool, rel: int = 1) -> pd.DataFrame:
    """Derive binary entity labels from the document labels of a topic's pool.

    An entity that only relevant documents mention is positive (1), an entity that only non-relevant documents mention
    is negative (0), and an entity of both (common) has no label.

    Parameters
    ----------
    pool
        See :func:`vbterrier.entities.link_pool`.
    rel
        The lowest relevant label of documents; unjudged documents are non-relevant.

    Returns
    -------
    pandas.DataFrame
        qid, entity_id, df_rel, df_nonrel, df_cand, label (1, 0 or missing), partition ("positive", "negative" or
        "common"); one row per topic and entity of its pool.

    Raises
    ------
    ParameterError
        ``rel`` below 1.

    Notes
    -----
    The labels are derived from the qrels: do not evaluate a ranker on the topics whose labels it was trained on. In a
    topic without relevant documents in the pool, all entities are negative.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.4, equation 5.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Paris", "EU", "EU", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    >>> entity_labels(link_pool(pool, tags, qrels))[["entity_id", "partition"]].values.tolist()
    [['EU', 'common'], ['Paris', 'positive'], ['Texas', 'negative']]
    """
    table = EntityTable(pool, rel)
    partition = partitions_of(table)
    kind = pd.CategoricalDtype(list(PARTITIONS))
    label = pd.Series(np.where(partition == POSITIVE, 1, 0), dtype="Int64").mask(partition == COMMON)
    return pd.DataFrame(
        {
            "qid": pa.array(pool.topics, pa.large_string()).take(pa.array(table.topic)).to_pandas(),
            "entity_id": pool.entities.take(table.entity).text.to_pandas(),
            "df_rel": table.df_relevant,
            "df_nonrel": table.df_other,
            "df_cand": table.df,
            "label": label,
            "partition": pd.Categorical.from_codes(partition, dtype=kind),
        }
    )


def partitions_of(table: EntityTable) -> Ints:
    """Return the partition of each pair as an index into ``PARTITIONS``, shape (n_pairs,)."""
    return np.select([table.df_other == 0, table.df_relevant == 0], [POSITIVE, NEGATIVE], COMMON).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Supervision(Shown):
    """Result of :func:`supervision_report`.

    Parameters
    ----------
    topics
        One row per topic: qid, n_relevant, n_other (documents), n_positive, n_negative, n_common (entities),
        n_contaminated (negatives that are positive for another topic), contamination (their share of the negatives,
        NaN without negatives).
    partitions
        One row per partition: partition, n_pairs, share.
    frequencies
        partition, quantity, n_pairs, mean, q25, median, q75; of ``"df_cand"`` (documents of the topic's pool that
        mention the entity), ``"df"`` and ``"idf"`` (``ln(N/df)``, both of all distinct documents of the pools).
    evidence
        One row per partition: partition, n_pairs (with an OER), the mean, q25, median and q75 of OER, share_positive
        (log odds above 0), share_negative, and the share of each signal class.
    contamination
        One row: pooled (share of all negatives), mean, std and max (over topics), n_qids (topics with negatives).
    common_oer
        OER of the common entities, for plots; shape (n,).
    n_documents, n_unjudged, n_without_relevant
        The number of documents of all pools, of unjudged documents, and of topics without relevant documents in their
        pool, whose entities are all negative.
    alpha, shrinkage, rel
        The parameters of OER, and the lowest relevant label.
    """

    topics: pd.DataFrame
    partitions: pd.DataFrame
    frequencies: pd.DataFrame
    evidence: pd.DataFrame
    contamination: pd.DataFrame
    common_oer: Floats
    n_documents: int
    n_unjudged: int
    n_without_relevant: int
    alpha: float
    shrinkage: float
    rel: int

    def _line(self) -> str:
        return f"{counted(len(self.topics), 'topic')}, {counted(self.n_documents, 'document')}; rel={self.rel}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Partitions of pairs of topic and entity", self.partitions)
        yield Panel("Evidence", self.evidence.drop(columns="n_pairs"))
        yield Panel("Negatives that are positives of another topic", self.contamination, heads=0)
        yield Panel("Frequencies", self.frequencies, heads=2)


def supervision_report(
    pool: LinkedPool, rel: int = 1, *, alpha: float = ALPHA, shrinkage: float = SHRINKAGE
) -> Supervision:
    """Report how many entities document labels supervise, how many they exclude, and how contaminated the labels are.

    Parameters
    ----------
    pool
        See :func:`vbterrier.entities.link_pool`.
    rel
        The lowest relevant label of documents; unjudged documents are non-relevant.
    alpha, shrinkage
        The parameters of OER, see :meth:`vbterrier.entities.oer.EntityTable.oer`.

    Returns
    -------
    Supervision

    Raises
    ------
    ParameterError
        ``rel`` below 1; ``alpha`` or ``shrinkage`` not above 0.

    Notes
    -----
    A negative entity is contaminated if it is positive for another topic. Frequencies are counted over the documents of
    the pools, not over the whole collection. OER is undefined, and left out, in topics without relevant or without
    non-relevant documents. Its pseudo-counts have more influence in the smaller group: with few relevant documents, a
    negative entity of few documents can have log odds above 0.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.4, 4.3 and 4.4, figure 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.pool import link_pool
    >>> pool = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d2", "d1"], "score": 1.0})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Paris", "EU", "EU", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d2"], "label": [1, 1]})
    >>> found = supervision_report(link_pool(pool, tags, qrels))
    >>> found.partitions["n_pairs"].tolist(), found.contamination["pooled"].item()
    ([2, 2, 2], 1.0)
    """
    table = EntityTable(pool, rel)
    partition = partitions_of(table)
    oer, classes = table.oer(alpha, shrinkage), table.classes(alpha, shrinkage)
    sizes = np.bincount(partition, minlength=len(PARTITIONS))
    topics = _topics(table, partition)
    common = oer[partition == COMMON]
    return Supervision(
        topics,
        pd.DataFrame({"partition": PARTITIONS, "n_pairs": sizes, "share": sizes / max(len(table), 1)}),
        _frequencies(table, partition),
        _evidence(partition, oer, classes),
        _contamination(topics),
        common[~np.isnan(common)],
        len(pool),
        int((pool.label < 0).sum()),
        int((table.n_relevant == 0).sum()),
        alpha,
        shrinkage,
        rel,
    )


def _topics(table: EntityTable, partition: Ints) -> pd.DataFrame:
    n_topics = len(table.pool.topics)
    cells = np.bincount(table.topic * 3 + partition, minlength=3 * n_topics).reshape(n_topics, 3)
    positive_somewhere = np.zeros(len(table.pool.entities), dtype=bool)
    positive_somewhere[table.entity[partition == POSITIVE]] = True
    contaminated = (partition == NEGATIVE) & positive_somewhere[table.entity]
    n = np.bincount(table.topic[contaminated], minlength=n_topics)
    share = np.full(n_topics, np.nan)
    np.divide(n, cells[:, NEGATIVE], out=share, where=cells[:, NEGATIVE] > 0)
    return pd.DataFrame(
        {
            "qid": table.pool.topics,
            "n_relevant": table.n_relevant,
            "n_other": table.n_other,
            "n_positive": cells[:, POSITIVE],
            "n_negative": cells[:, NEGATIVE],
            "n_common": cells[:, COMMON],
            "n_contaminated": n,
            "contamination": share,
        }
    )


def _contamination(topics: pd.DataFrame) -> pd.DataFrame:
    shares, n = topics["contamination"].dropna().to_numpy(), int(topics["n_negative"].sum())
    row = {
        "pooled": topics["n_contaminated"].sum() / n if n else np.nan,
        "mean": shares.mean() if len(shares) else np.nan,
        "std": shares.std(ddof=1) if len(shares) > 1 else np.nan,
        "max": shares.max(initial=np.nan) if not len(shares) else shares.max(),
        "n_qids": len(shares),
    }
    return pd.DataFrame([row])


def _frequencies(table: EntityTable, partition: Ints) -> pd.DataFrame:
    df, n_documents = document_frequencies(table.pool)
    of_pair = df[table.entity]
    quantities = {"df_cand": table.df, "df": of_pair, "idf": np.log(n_documents / np.maximum(of_pair, 1))}
    rows = [
        {"partition": name, "quantity": quantity, **_summary(values[partition == code])}
        for code, name in enumerate(PARTITIONS)
        for quantity, values in quantities.items()
    ]
    return pd.DataFrame(rows)


def document_frequencies(pool: LinkedPool) -> tuple[Ints, int]:
    """Return the number of distinct documents that mention each entity, shape (n_entities,), and of all documents."""
    names, code = pool.docno.codes()
    if len(names) == len(pool):
        return np.bincount(pool.entity, minlength=len(pool.entities)), len(names)
    # A document of several pools counts once, with the entities of all its tags.
    size = max(len(pool.entities), 1)
    # Sorting is about twenty times as fast as numpy.unique.
    key = np.sort(code[pool.document] * size + pool.entity)
    once = key[np.diff(key, prepend=-1) > 0]
    return np.bincount(once % size, minlength=len(pool.entities)), len(names)


def _evidence(partition: Ints, oer: Floats, classes: Ints) -> pd.DataFrame:
    rows = []
    for code, name in enumerate(PARTITIONS):
        known = (partition == code) & ~np.isnan(oer)
        n = int(known.sum())
        shares = np.bincount(classes[known], minlength=len(CLASSES)) / (n or np.nan)
        signs = {
            f"share_{sign}": float(mask[known].mean()) if n else float("nan")
            for sign, mask in (("positive", oer > 0), ("negative", oer < 0))
        }
        rows.append({"partition": name, **_summary(oer[known]), **signs, **dict(zip(CLASSES, shares, strict=True))})
    return pd.DataFrame(rows)


def _summary(values: Any) -> dict[str, float]:
    q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3
    mean = float(np.mean(values)) if len(values) else float("nan")
    return {"n_pairs": len(values), "mean": mean, "q25": float(q25), "median": float(median), "q75": float(q75)}
