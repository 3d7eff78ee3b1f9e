"""Features, training rows and LambdaRank models of learned entity rankers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import Topics
from vbterrier.entities.rankers.consensus import pool_df
from vbterrier.entities.rankers.similarity import name_of
from vbterrier.errors import InputError, ParameterError, examples, module_of_extra, warn
from vbterrier.frames.contracts import LabelFrame, frame_of
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import places
from vbterrier.kernels.fingerprints import mix
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.entities.pool import LinkedPool
    from vbterrier.entities.rankers.base import RunOnPool


SUPPORT = ("df", "df_distinct", "mentions", "rank_support")
STAGE = ("score", "rank")
WORDS = ("overlap", "jaccard", "query_share")
FEATURES = (*SUPPORT, *STAGE, *WORDS)


def distinct_documents(pool: LinkedPool) -> NDArray[np.bool_]:
    """Return True for the first document of each topic with a given multiset of entities, shape (n_documents,).

    Near-duplicate documents have the same links, which identifies them without their texts.
    """
    # A sum of hashes does not depend on order, and entities of a document are distinct.
    mentioned = mix(mix(pool.entity.astype(np.uint64)) + pool.mentions.astype(np.uint64))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mentioned, dtype=np.uint64)])
    marks = mix(total[pool.starts[1:]] - total[pool.starts[:-1]]) ^ mix(pool.topic.astype(np.uint64))
    first = np.zeros(len(pool), dtype=bool)
    first[np.unique(marks, return_index=True)[1]] = True
    return first


def candidate_support(pool: LinkedPool) -> Floats:
    """Return the support of each pair in the pool, shape (n_pairs, 4).

    The columns are: documents that mention the entity; the same, documents with equal entities counted once; mentions;
    ``sum 1/rank``, rank from 1.
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
    """Return the word overlap of queries and names, shape (n, 3): its size, Jaccard coefficient, share of the query.

    A word counts once and case is ignored. The overlap of a text without words is 0.

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
    contains = csr_array((np.ones(len(row)), (row, column)), shape=(len(words), max(len(numbers), 1)))
    left, right = (np.array([texts[text] for text in given], dtype=np.int64) for given in (query, name))
    shared: Floats = np.asarray(contains[left].multiply(contains[right]).sum(axis=1)).reshape(-1)
    union = sizes[left] + sizes[right] - shared
    return np.stack([shared, shared / np.maximum(union, 1), shared / np.maximum(sizes[left], 1)], axis=1)


def feature_table(aligned: RunOnPool, features: Sequence[str], names: Mapping[str, str] | None) -> Floats:
    """Return the requested features of each row of an entity run, shape (n_rows, n_features).

    Features that are not in ``FEATURES`` are columns of the run.
    """
    run = aligned.run
    columns: dict[str, Any] = {"score": run.score, "rank": run.ranks() + 1.0}
    if set(features) & set(SUPPORT):
        support = candidate_support(aligned.pool)
        columns |= {name: aligned.of_pairs(support[:, place]) for place, name in enumerate(SUPPORT)}
    if set(features) & set(WORDS):
        known = names or {}
        called = [known[each] if each in known else name_of(each) for each in run.docno.text.to_pylist()]
        queries = Topics(run.frame).queries(run.topics)
        overlap = word_overlap([queries[topic] for topic in run.topic.tolist()], called)
        columns |= {name: overlap[:, place] for place, name in enumerate(WORDS)}
    made = [columns[name] if name in columns else run.frame[name].to_numpy(dtype=np.float64) for name in features]
    return np.stack(made, axis=1).astype(np.float64) if len(run) else np.empty((0, len(features)))


CUTOFF = 20
# Small trees, for a few hundred queries.
_DEFAULTS = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 10, "lambdarank_truncation_level": CUTOFF}
_FIXED = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}
# LightGBM ignores an alias if the main name is given too, and only logs it.
_ALIASES = {
    "objective_type", "app", "application", "loss", "num_thread", "nthread", "nthreads", "n_jobs", "verbose",
    "random_seed", "random_state", "metrics", "metric_types", "ndcg_eval_at", "ndcg_at", "map_eval_at",
    "map_at", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds",
    "nrounds", "num_boost_round", "n_estimators", "max_iter", "early_stopping_round", "early_stopping_rounds",
    "early_stopping", "n_iter_no_change",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Examples:
    """Training rows by topic: features (n, n_features), labels (n,), number of rows of each topic (n_topics,)."""

    table: Floats
    label: Ints
    sizes: Ints

    @property
    def n_contrasts(self) -> int:
        """The number of topics with more than one label; other topics do not contribute to a ranking loss."""
        if not len(self.sizes):
            return 0
        starts = np.cumsum(self.sizes) - self.sizes
        low, high = np.minimum.reduceat(self.label, starts), np.maximum.reduceat(self.label, starts)
        return int((low < high).sum())


def learn(
    examples: Examples,
    checked: Examples | None,
    *,
    names: Sequence[str],
    rounds: int,
    patience: int,
    parameters: Mapping[str, Any],
    seed: int,
) -> str:
    """Fit trees, with early stopping on the validation topics if any has two labels, and return the model as text."""
    lightgbm = module_of_extra("lightgbm", "ltr")
    reserved = sorted(set(parameters) & {*_FIXED, *_ALIASES, "seed", "metric", "eval_at"})
    if reserved:
        raise ParameterError(f"parameters: {reserved[0]!r} is set by the stage, so that its results are reproducible")
    if not examples.n_contrasts:
        raise InputError(
            f"no topic has positive and negative entities among {len(examples.label)} labelled entities of "
            f"{len(examples.sizes)} topics; use a longer entity run, or more judgments"
        )
    # The text format of LightGBM models allows few characters in names.
    plain = [f"{place}_" + "".join(c if c.isalnum() else "_" for c in name) for place, name in enumerate(names)]
    given = {**_DEFAULTS, **parameters, **_FIXED, "seed": seed, "metric": "ndcg", "eval_at": [CUTOFF]}

    def dataset(of: Examples, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            of.table, of.label, group=of.sizes, feature_name=plain, reference=reference, params=given
        )

    teaching = dataset(examples)
    if checked is None or not checked.n_contrasts:
        model = lightgbm.train(given, teaching, rounds)
    else:
        stop = lightgbm.early_stopping(patience, verbose=False)
        model = lightgbm.train(given, teaching, rounds, valid_sets=[dataset(checked, teaching)], callbacks=[stop])
    if not model.feature_importance().any():
        warn(
            f"nothing learned from {len(examples.label)} rows: all entities have the same score; lower min_data_in_leaf"
        )
    text: str = model.model_to_string()
    return text


def predict(model: str, table: Floats) -> Floats:
    """The score of each row of features, shape (n,)."""
    booster = module_of_extra("lightgbm", "ltr").Booster(model_str=model)
    return np.asarray(booster.predict(table, num_threads=1), dtype=np.float64)


UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class LabelledRun:
    """An entity run with features and labels."""

    aligned: RunOnPool
    table: Floats  # its features, shape (n_rows, n_features)
    label: Ints  # the label of each row, -1 if unknown, shape (n_rows,)

    @property
    def rows(self) -> Bools:
        """True for rows with a label, shape (n_rows,)."""
        known: Bools = self.label != UNKNOWN
        return known

    def examples(self, among: Bools | None = None) -> Examples:
        """Return the labelled rows, sorted by the ids of topic and entity so that input order has no effect."""
        run = self.aligned.run
        rows = np.flatnonzero(self.rows if among is None else self.rows & among)
        by_name = np.argsort(np.argsort(np.array(run.topics)))
        topic = by_name[run.topic[rows]]
        rows = rows[np.lexsort((run.docno.take(rows).ranks(), topic))]
        sizes = np.bincount(topic)
        return Examples(self.table[rows], self.label[rows], sizes[sizes > 0])


def from_entities(aligned: RunOnPool, table: Floats, qrels: Any, rel: int) -> LabelledRun:  # noqa: ARG001 - common signature
    """Return a run with given entity labels, as qrels or from ``entity_labels``; a label below 0 counts as missing."""
    frame = frame_of(qrels, "qrels")
    if "docno" not in frame and {"entity_id", "label"} <= set(frame.columns):
        frame = frame[frame["label"].notna()].rename(columns={"entity_id": "docno"})
    labels = LabelFrame(frame)
    require_same_kind(labels.qid, aligned.run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, aligned.run.docno, "qrels column 'docno'", "entity run column 'docno'")
    label = np.full(len(aligned.run), UNKNOWN)
    if len(labels.label):
        row = labels.lookup.find_one(places(aligned.run.topics, labels.topics)[aligned.run.topic], aligned.run.docno)
        label = np.where(row >= 0, np.maximum(labels.label, UNKNOWN)[row], UNKNOWN)
    return LabelledRun(aligned, table, label)


def from_documents(aligned: RunOnPool, table: Floats, qrels: Any, rel: int) -> LabelledRun:
    """Return a run with entity labels derived from document labels (Chatterjee, arXiv 2604.05204, equation 5).

    The label is 1 if only relevant documents of the pool mention the entity, 0 if only non-relevant ones do, and
    unknown if both do, in topics without judgments, and for entities outside the pool.
    """
    pool, run = aligned.pool, aligned.run
    labels = LabelFrame(qrels)
    require_same_kind(labels.qid, run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, pool.docno, "qrels column 'docno'", "links column 'docno'")
    place = places(pool.topics, labels.topics)
    unjudged = places(run.topics, labels.topics) < 0
    if unjudged.any():
        lost = [run.topics[each] for each in np.flatnonzero(unjudged).tolist()]
        warn(f"entity run: {len(lost)} topics are not in qrels and are not used ({examples(lost)})")
    relevant = np.zeros(len(pool), dtype=bool)
    if len(labels.label):
        row = labels.lookup.find_one(place[pool.topic], pool.docno)
        relevant = (row >= 0) & (labels.label[row] >= rel)
    df = pool_df(pool)
    df_relevant = np.bincount(pool.pair[relevant[pool.document]], minlength=len(df))
    of_pair = np.where(df_relevant == df, 1, np.where(df_relevant == 0, 0, UNKNOWN))
    known = (aligned.pair >= 0) & ~unjudged[run.topic]
    return LabelledRun(aligned, table, np.where(known, aligned.of_pairs(of_pair), UNKNOWN).astype(np.int64))
