"""Entity labels derived from document labels, and a report on the derivation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.entities.provenance import OWN_TOPIC, with_mark
from vbterrier.entities.rankers.base import RunOnPool
from vbterrier.entities.rankers.consensus import ConsensusEntities, random_scores
from vbterrier.entities.stage import pool_of_links, require_judged
from vbterrier.errors import InputError, ParameterError, agreeing, choice, examples, excerpt, warn, whole
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.entity_coverage import ALPHA, SHRINKAGE, UNDEFINED, EntityTable, share
from vbterrier.frames.ids import column_numbers
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.ranking import ranked
from vbterrier.frames.results import Shown
from vbterrier.kernels.coverage import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.linked_pool import LinkedPool
    from vbterrier.frames.results import Figures


PARTITIONS = ("positive", "negative", "common")
POSITIVE, NEGATIVE, COMMON = range(3)
# The label of each partition, -1 for none.
PARTITION_LABELS = np.array([1, 0, -1])


def entity_labels(pool: Any, rel: int = 1) -> pd.DataFrame:
    """Derive binary entity labels from the document labels of a topic's pool.

    An entity that only relevant documents mention is positive (1), an entity that only non-relevant documents mention
    is negative (0), and an entity of both (common) has no label.

    Parameters
    ----------
    pool
        A :class:`~vbterrier.entities.LinkedPool`, its K frame, or its artifact.
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
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Paris", "EU", "EU", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    >>> entity_labels(link_pool(pool, tags, qrels))[["entity_id", "partition"]].values.tolist()
    [['EU', 'common'], ['Paris', 'positive'], ['Texas', 'negative']]
    """
    pool = pool_of_links(pool, "entity_labels")
    table = EntityTable(pool, rel)
    partition = partitions(table.df_relevant, table.df)
    label = pd.Series(np.where(partition == POSITIVE, 1, 0), dtype="Int64").mask(partition == COMMON)
    return pd.DataFrame(
        {
            "qid": pa.array(pool.topics, pa.large_string()).take(pa.array(table.topic)).to_pandas(),
            "entity_id": pool.entities.take(table.entity).text.to_pandas(),
            "df_rel": table.df_relevant,
            "df_nonrel": table.df_other,
            "df_cand": table.df,
            "label": label,
            "partition": pd.Categorical.from_codes(partition, pd.Index(PARTITIONS)),
        }
    )


def closed_entities(
    links: Any, run: Any = None, *, rel: int = 1, balanced: bool = False, seed: int = 0
) -> pd.DataFrame:
    """Candidate entities that are derived from document labels, a diagnostic: the closed entity side.

    The candidates of a topic are the entities of its pool that :func:`entity_labels` labels: those that only relevant
    or only non-relevant documents mention. Common entities, of both, are excluded. Any ranker of these candidates,
    also a random one, reads the judgments with which its result is evaluated.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.LinkedPool` with judgments, or its K frame.
    run
        An entity run (qid, docno, score) whose candidates are kept, with their scores; by default all candidates, with
        the score 0.
    rel
        See :func:`entity_labels`.
    balanced
        Keep a random sample of the negatives of each topic, as many as it has positives, determined by ``seed``, as
        public code of the paper's authors does. Topics without positives have no candidates, with a warning.

    Returns
    -------
    pandas.DataFrame
        An entity run: qid, docno (an entity id), score, rank, and the columns of ``run``; ``label``, 1 for positive
        entities, else 0; ``judgments``, which says that the judgments of each topic decide.

    Raises
    ------
    ParameterError
        ``rel`` below 1.
    InputError
        Links without a pool or without any judgment. See the contract of runs.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.6.6 (1) and 3.4.

    Examples
    --------
    >>> import pandas as pd
    >>> import warnings
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Paris", "EU", "EU", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     closed_entities(link_pool(pool, tags, qrels))[["docno", "label"]].values.tolist()
    [['Texas', 0], ['Paris', 1]]
    """
    pool = pool_of_links(links, "closed_entities")
    require_judged(pool, "closed_entities")
    table = EntityTable(pool, rel)
    label = PARTITION_LABELS[partitions(table.df_relevant, table.df)]
    if run is None:
        kept, topic, entity = label >= 0, table.topic, pool.entities.take(table.entity)
        names = np.array(pool.topics, dtype=object)
        made = pd.DataFrame({"qid": names[topic], "docno": entity.text.to_pandas(), "score": 0.0})
    else:
        aligned = RunOnPool.on(pool, pandas_frame(run, "run"))
        topic, entity, made = aligned.topic, aligned.run.docno, aligned.run.frame
        label = np.where(aligned.pair >= 0, label[aligned.pair], -1)
        kept = label >= 0
    if balanced:
        kept &= _is_balanced(topic, label, random_scores(pool.topics, np.maximum(topic, 0), entity, seed))
    lost = [pool.topics[place] for place in np.setdiff1d(topic[topic >= 0], topic[kept]).tolist()]
    if lost:
        warn(f"closed_entities: {agreeing(len(lost), 'topics have no candidate')} ({examples(lost)})")
    warn("closed_entities derives candidates from the judgments of the evaluation: use them as a diagnostic only")
    return with_mark(ranked(made[kept].assign(label=label[kept]), name="entity run"), OWN_TOPIC)


def _is_balanced(topic: Ints, label: Ints, order: Floats) -> Bools:
    """Return a mask of all positives, and of as many negatives of each topic, the smallest by ``order``."""
    n_positive = np.bincount(topic[label == 1], minlength=int(topic.max(initial=-1)) + 1)
    rows = np.flatnonzero(label == 0)
    rows = rows[np.lexsort((order[rows], topic[rows]))]
    rank = np.arange(len(rows)) - np.searchsorted(topic[rows], topic[rows])
    is_chosen: Bools = label == 1
    is_chosen[rows[rank < n_positive[topic[rows]]]] = True
    return is_chosen


def partitions(df_relevant: Ints, df: Ints) -> Ints:
    """Return the partition of entities of some relevant and all documents, an index into ``PARTITIONS``, shape (n,)."""
    return np.select([df_relevant == df, df_relevant == 0], [POSITIVE, NEGATIVE], COMMON).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Supervision(Shown):
    """Result of :func:`supervision_report`.

    - ``topics``: one row per topic: qid, n_relevant, n_other (documents), n_positive, n_negative, n_common (entities),
      n_sampled (negatives of the sample), n_contaminated (of them, positive for another topic), contamination (their
      share, NaN without negatives)
    - ``partitions``: one row per partition: partition, n_pairs, share
    - ``frequencies``: partition (also of the sample of negatives, as "negative (hard)"), quantity, n_pairs, mean, q25,
      median, q75; of ``"df_cand"`` (documents of the topic's pool that mention the entity), ``"df"`` and ``"idf"``
      (``ln(N/df)``, both of the collection if given, else of all distinct documents of the pools)
    - ``evidence``: one row per partition: partition, n_pairs (with an OER), the mean, q25, median and q75 of OER,
      share_positive (log odds above 0), share_negative, and the share of each signal class
    - ``contamination``: one row: negatives ("all", "random" or "hard"), pooled (share of all negatives of the sample),
      mean, std and max (over topics), n_qids (topics with such negatives)
    - ``pairs``: one row per topic and entity: name (the partition), qid, oer, signal (NaN and ``"undefined"`` in topics
      without an OER); for :func:`vbterrier.plots.oer_distributions`, which draws figure 3
    - ``n_documents``, ``n_unjudged``, ``n_without_relevant``: the number of documents of all pools, of unjudged ones,
      and of topics whose pool has no relevant document
    - ``alpha``, ``shrinkage``, ``rel``: the parameters of OER, and the lowest relevant label
    """

    topics: pd.DataFrame
    partitions: pd.DataFrame
    frequencies: pd.DataFrame
    evidence: pd.DataFrame
    contamination: pd.DataFrame
    pairs: pd.DataFrame
    n_documents: int
    n_unjudged: int
    n_without_relevant: int
    alpha: float
    shrinkage: float
    rel: int

    def to_frame(self) -> pd.DataFrame:
        """Return ``topics``: a row per topic."""
        return self.topics

    def _line(self) -> str:
        return f"{count_text(len(self.topics), 'topic')}, {count_text(self.n_documents, 'document')}; rel={self.rel}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Partitions of pairs of topic and entity", self.partitions)
        yield Panel("Evidence", self.evidence.drop(columns="n_pairs"))
        yield Panel("Negatives that are positives of another topic", self.contamination, heads=0)
        yield Panel("Frequencies", self.frequencies, heads=2)

    def _figures(self) -> Figures:
        return {"oer_distributions": lambda: {"selected": self.pairs}}


NEGATIVES = ("all", "random", "hard")


def supervision_report(
    pool: Any,
    rel: int = 1,
    *,
    negatives: str = "all",
    ranking: Any = None,
    df: Mapping[str, int] | None = None,
    n_documents: int | None = None,
    alpha: float = ALPHA,
    shrinkage: float = SHRINKAGE,
    seed: int = 0,
) -> Supervision:
    """Report how many entities document labels supervise, how many they exclude, and how contaminated the labels are.

    Parameters
    ----------
    pool, rel
        See :func:`entity_labels`.
    negatives, seed
        The negatives whose contamination is reported. ``"all"``; ``"random"``: a random sample, as many of each topic
        as it has positives; ``"hard"``: as many, those that ``ranking`` ranks first.
    ranking
        An entity run (qid, docno, score) for hard negatives; by default that of
        :class:`~vbterrier.entities.ConsensusEntities`.
    df, n_documents
        The number of documents of the collection that mention each entity, by id, and the number of its documents.
        Without them, frequencies are counted over the documents of the pools.
    alpha, shrinkage
        The parameters of OER, see :meth:`vbterrier.frames.entity_coverage.EntityTable.oer`.

    Returns
    -------
    Supervision
        ``topics``: a row per topic; ``partitions`` and ``frequencies`` of positive and negative entities.

    Raises
    ------
    InputError
        An entity without a frequency, or with one below its number of documents in the pools or above ``n_documents``.
    ParameterError
        A ranking of other negatives; one of ``df`` and ``n_documents`` without the other.

    Notes
    -----
    A negative entity is contaminated if it is positive for another topic. The paper reports hard and random negatives
    without defining them: here, both are as many as the positives of a topic (its section 2.6.6 balances them). OER is
    undefined, and left out, in topics without relevant or without non-relevant documents. Its pseudo-counts have more
    influence in the smaller group: with few relevant documents, a negative entity of few documents can have log odds
    above 0.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.4, 4.3 and 4.4, figure 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d2", "d1"], "score": 1.0})
    >>> tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["Paris", "EU", "EU", "Texas"]})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d2"], "label": [1, 1]})
    >>> result = supervision_report(link_pool(pool, tags, qrels))
    >>> result.partitions["n_pairs"].tolist(), result.contamination["pooled"].item()
    ([2, 2, 2], 1.0)
    """
    choice("negatives", negatives, NEGATIVES)
    if ranking is not None and negatives != "hard":
        raise ParameterError(f"ranking is for negatives='hard', not for negatives={excerpt(negatives)}")
    if (df is None) != (n_documents is None):
        raise ParameterError("df and n_documents belong together: give both, or neither")
    pool = pool_of_links(pool, "supervision_report")
    table = EntityTable(pool, rel)
    partition = partitions(table.df_relevant, table.df)
    oer, classes = table.oer(alpha, shrinkage), table.classes(alpha, shrinkage)
    sizes = np.bincount(partition, minlength=len(PARTITIONS))
    sampled = _sample_mask(table, partition, negatives, ranking, whole("seed", seed, low=0))
    topics = _topics(table, partition, sampled)
    counted_df, n = document_frequencies(pool)
    frequency = counted_df[table.entity]
    if df is not None and n_documents is not None:
        frequency, n = _collection_df(table, counted_df, df, n_documents), n_documents
    quantities = {"df_cand": table.df, "df": frequency, "idf": np.log(n / np.maximum(frequency, 1))}
    groups = {kind: partition == code for code, kind in enumerate(PARTITIONS)}
    if negatives != "all":
        groups[f"negative ({negatives})"] = sampled
    frequencies = [
        {"partition": kind, "quantity": quantity, **_summary(values[mask])}
        for kind, mask in groups.items()
        for quantity, values in quantities.items()
    ]
    # The code -1, of entities without an OER, indexes the last name.
    named = (PARTITIONS, partition), (pool.topics, table.topic), ((*CLASSES, UNDEFINED), classes)
    name, qid, signal = (np.array(names, dtype=object)[codes] for names, codes in named)
    return Supervision(
        topics,
        pd.DataFrame({"partition": PARTITIONS, "n_pairs": sizes, "share": sizes / max(len(table), 1)}),
        pd.DataFrame(frequencies),
        _evidence(partition, oer, classes),
        _contamination(topics, negatives),
        pd.DataFrame({"name": name, "qid": qid, "oer": oer, "signal": signal}),
        n_documents=len(pool),
        n_unjudged=int((pool.label < 0).sum()),
        n_without_relevant=int((table.n_relevant == 0).sum()),
        alpha=alpha,
        shrinkage=shrinkage,
        rel=rel,
    )


def _sample_mask(table: EntityTable, partition: Ints, negatives: str, ranking: Any, seed: int) -> Bools:
    """Return a mask of the negatives whose contamination is reported, shape (n_pairs,)."""
    negative: Bools = partition == NEGATIVE
    if negatives == "all":
        return negative
    pool, label = table.pool, PARTITION_LABELS[partition]
    if negatives == "random":
        order = random_scores(pool.topics, table.topic, pool.entities.take(table.entity), seed)
    else:
        if ranking is None:
            ranking = ConsensusEntities(pool, support="rank")(pd.DataFrame({"qid": pool.topics}))
        aligned = RunOnPool.on(pool, pandas_frame(ranking, "ranking"))
        order = np.full(len(table), np.inf)
        inside = aligned.pair >= 0
        order[aligned.pair[inside]] = aligned.run.ranks()[inside]
        label = np.where(np.isinf(order) & negative, -1, label)
    return negative & _is_balanced(table.topic, label, order)


def _collection_df(table: EntityTable, counted: Ints, df: Mapping[str, int], n_documents: int) -> Ints:
    """Return the number of documents of the collection that mention the entity of each pair, shape (n_pairs,)."""
    ids = table.pool.entities.text.to_pylist()
    missing = [each for each in ids if each not in df]
    if missing:
        raise InputError(
            f"df: {agreeing(len(missing), 'entities of the pools have no frequency')} ({examples(missing)})"
        )
    counts = column_numbers(pd.Series([df[each] for each in ids], dtype=object), "df")
    wrong = ~((counts >= counted) & (counts <= whole("n_documents", n_documents)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"df: {ids[at]!r} has {counts[at]:g}, wanted at least {counted[at]}, its documents in the pools, and at "
            f"most n_documents={n_documents}"
        )
    return counts.astype(np.int64)[table.entity]


def _topics(table: EntityTable, partition: Ints, sampled: Bools) -> pd.DataFrame:
    n_topics = len(table.pool.topics)
    contaminated = sampled & np.isin(table.entity, table.entity[partition == POSITIVE])
    masks = {f"n_{name}": partition == code for code, name in enumerate(PARTITIONS)}
    masks |= {"n_sampled": sampled, "n_contaminated": contaminated}
    sizes = {name: np.bincount(table.topic[mask], minlength=n_topics) for name, mask in masks.items()}
    columns = {"qid": table.pool.topics, "n_relevant": table.n_relevant, "n_other": table.n_other, **sizes}
    return pd.DataFrame(columns | {"contamination": share(sizes["n_contaminated"], sizes["n_sampled"])})


def _contamination(topics: pd.DataFrame, negatives: str) -> pd.DataFrame:
    # Topics without negatives have no share.
    shares = topics["contamination"]
    pooled = topics["n_contaminated"].sum() / (topics["n_sampled"].sum() or np.nan)
    over_topics = {"mean": shares.mean(), "std": shares.std(), "max": shares.max(), "n_qids": shares.count()}
    return pd.DataFrame([{"negatives": negatives, "pooled": pooled, **over_topics}])


def document_frequencies(pool: LinkedPool) -> tuple[Ints, int]:
    """Return the number of distinct documents that mention each entity, shape (n_entities,), and of all documents."""
    names, code = pool.docno.codes()
    if len(names) == len(pool):
        return np.bincount(pool.entity, minlength=len(pool.entities)), len(names)
    # A document of several pools counts once. Sorting is about twenty times as fast as numpy.unique.
    size = max(len(pool.entities), 1)
    key = np.sort(code[pool.document] * size + pool.entity)
    once = key[np.diff(key, prepend=-1) > 0]
    return np.bincount(once % size, minlength=len(pool.entities)), len(names)


def _evidence(partition: Ints, oer: Floats, classes: Ints) -> pd.DataFrame:
    rows = []
    for code, name in enumerate(PARTITIONS):
        in_class = (partition == code) & ~np.isnan(oer)
        values, n = oer[in_class], in_class.sum() or np.nan
        shares = np.bincount(classes[in_class], minlength=len(CLASSES)) / n
        signs = {"share_positive": (values > 0).sum() / n, "share_negative": (values < 0).sum() / n}
        rows.append({"partition": name, **_summary(values), **signs, **dict(zip(CLASSES, shares, strict=True))})
    return pd.DataFrame(rows)


def _summary(values: Any) -> dict[str, float]:
    q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3
    mean = float(np.mean(values)) if len(values) else float("nan")
    return {"n_pairs": len(values), "mean": mean, "q25": float(q25), "median": float(median), "q75": float(q75)}
