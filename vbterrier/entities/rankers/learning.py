"""Features, training rows and LambdaRank models of learned entity rankers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.oer import ALPHA, SHRINKAGE
from vbterrier.entities.rankers.base import Topics
from vbterrier.entities.rankers.consensus import pool_df
from vbterrier.entities.vectors import name_of
from vbterrier.errors import InputError, ParameterError, examples, module_of_extra, warn
from vbterrier.frames.contracts import LabelFrame, frame_of
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.runs import places
from vbterrier.kernels.coverage import observable_relevance
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


def feature_table(placed: RunOnPool, features: Sequence[str], names: Mapping[str, str] | None) -> Floats:
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


CUTOFF = 20
# Small trees: entities of some hundred queries are few.
_USUAL = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 10, "lambdarank_truncation_level": CUTOFF}
_FIXED = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}
# LightGBM drops the aliases of what is given under its own name, and says so where nobody listens.
_ALIASES = {
    "objective_type", "app", "application", "loss", "num_thread", "nthread", "nthreads", "n_jobs", "verbose",
    "random_seed", "random_state", "metrics", "metric_types", "ndcg_eval_at", "ndcg_at", "map_eval_at",
    "map_at", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds",
    "nrounds", "num_boost_round", "n_estimators", "max_iter", "early_stopping_round", "early_stopping_rounds",
    "early_stopping", "n_iter_no_change",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Examples:
    """What to learn from, topic by topic: features (n, n_features), labels (n,), how many rows each topic has."""

    table: Floats
    label: Ints
    sizes: Ints

    @property
    def n_contrasts(self) -> int:
        """How many topics have more than one label, without which a ranking teaches nothing."""
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
    """Fit trees, and stop early by other topics where there are any with something to order; the model as text.

    Raises
    ------
    ParameterError
        A parameter that is ours to set.
    InputError
        No topic with positives and negatives.
    """
    lightgbm = module_of_extra("lightgbm", "ltr")
    ours = sorted(set(parameters) & {*_FIXED, *_ALIASES, "seed", "metric", "eval_at"})
    if ours:
        raise ParameterError(f"parameters: {ours[0]!r} is set by the stage, so that its results can be repeated")
    if not examples.n_contrasts:
        raise InputError(
            f"no topic has positive and negative entities among {len(examples.label)} labelled ones in "
            f"{len(examples.sizes)} topics; nothing can be learned: give a longer entity run, or more judgments"
        )
    given = {**_USUAL, **parameters, **_FIXED, "seed": seed, "metric": "ndcg", "eval_at": [CUTOFF]}

    def dataset(of: Examples, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            of.table, of.label, group=of.sizes, feature_name=_plain(names), reference=reference, params=given
        )

    teaching = dataset(examples)
    if checked is None or not checked.n_contrasts:
        model = lightgbm.train(given, teaching, rounds)
    else:
        stop = lightgbm.early_stopping(patience, verbose=False)
        model = lightgbm.train(given, teaching, rounds, valid_sets=[dataset(checked, teaching)], callbacks=[stop])
    if not model.feature_importance().any():
        warn(f"nothing learned from {len(examples.label)} rows: all entities score alike; lower min_data_in_leaf")
    text: str = model.model_to_string()
    return text


def predict(model: str, table: Floats) -> Floats:
    """The score of each row of features, shape (n,)."""
    booster = module_of_extra("lightgbm", "ltr").Booster(model_str=model)
    return np.asarray(booster.predict(table, num_threads=1), dtype=np.float64)


def _plain(names: Sequence[str]) -> list[str]:
    """Names without the signs that LightGBM's text of models does not take."""
    return [f"{place}_" + "".join(sign if sign.isalnum() else "_" for sign in name) for place, name in enumerate(names)]


UNKNOWN = -1
# A support so small that every entity has it.
_NO_DISCOUNT = 1e-9


@dataclass(frozen=True, eq=False)
class LabelledRun:
    """An entity run with features and labels.

    Parameters
    ----------
    placed
        The run.
    table
        Its features, shape (n_rows, n_features).
    label
        Of each row, -1 for those that teach nothing, shape (n_rows,).
    judged
        What judgments say of the rows that teach, by name: no feature may repeat any of it.
    """

    placed: RunOnPool
    table: Floats
    label: Ints
    judged: dict[str, Floats]

    @property
    def rows(self) -> Bools:
        """Which rows teach, shape (n_rows,)."""
        taught: Bools = self.label != UNKNOWN
        return taught

    def examples(self, among: Bools | None = None) -> Examples:
        """The rows that teach, of some, by the ids of topic and entity, whatever order they came in."""
        run = self.placed.run
        rows = np.flatnonzero(self.rows if among is None else self.rows & among)
        by_name = np.argsort(np.argsort(np.array(run.topics)))
        topic = by_name[run.topic[rows]]
        rows = rows[np.lexsort((run.docno.take(rows).ranks(), topic))]
        sizes = np.bincount(topic)
        return Examples(self.table[rows], self.label[rows], sizes[sizes > 0])


def from_entities(placed: RunOnPool, table: Floats, qrels: Any, rel: int) -> LabelledRun:  # noqa: ARG001 - as from_documents
    """Labels as they are given for entities, as qrels or as ``entity_labels`` gives them; below 0 counts as none."""
    frame = frame_of(qrels, "qrels")
    if "docno" not in frame and {"entity_id", "label"} <= set(frame.columns):
        frame = frame[frame["label"].notna()].rename(columns={"entity_id": "docno"})
    labels = LabelFrame(frame)
    require_same_kind(labels.qid, placed.run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, placed.run.docno, "qrels column 'docno'", "entity run column 'docno'")
    label = np.full(len(placed.run), UNKNOWN)
    if len(labels.label):
        row = labels.lookup.find_one(places(placed.run.topics, labels.topics)[placed.run.topic], placed.run.docno)
        label = np.where(row >= 0, np.maximum(labels.label, UNKNOWN)[row], UNKNOWN)
    return LabelledRun(placed, table, label, {"the label": label[label != UNKNOWN].astype(np.float64)})


def from_documents(placed: RunOnPool, table: Floats, qrels: Any, rel: int) -> LabelledRun:
    """Labels of entities from those of the pool's documents (Chatterjee, arXiv 2604.05204, equation 5).

    1 where relevant documents of the pool alone mention the entity, 0 where others alone do, none where both do, in
    topics that were not judged, and for entities outside the pool.
    """
    pool, run = placed.pool, placed.run
    labels = LabelFrame(qrels)
    require_same_kind(labels.qid, run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, pool.docno, "qrels column 'docno'", "links column 'docno'")
    place = places(pool.topics, labels.topics)
    unjudged = places(run.topics, labels.topics) < 0
    if unjudged.any():
        lost = [run.topics[each] for each in np.flatnonzero(unjudged).tolist()]
        warn(f"entity run: {len(lost)} topics are not in qrels and teach nothing ({examples(lost)})")
    relevant = np.zeros(len(pool), dtype=bool)
    if len(labels.label):
        row = labels.lookup.find_one(place[pool.topic], pool.docno)
        relevant = (row >= 0) & (labels.label[row] >= rel)
    df = pool_df(pool)
    df_relevant = np.bincount(pool.pair[relevant[pool.document]], minlength=len(df))
    of_pair = np.where(df_relevant == df, 1, np.where(df_relevant == 0, 0, UNKNOWN))
    known = (placed.pair >= 0) & ~unjudged[run.topic]
    label = np.where(known, placed.of_pairs(of_pair), UNKNOWN).astype(np.int64)
    rows = label != UNKNOWN
    return LabelledRun(placed, table, label, _judged(placed, rows, label, relevant, df_relevant))


def _judged(placed: RunOnPool, rows: Bools, label: Ints, relevant: Bools, df_relevant: Ints) -> dict[str, Floats]:
    """What judgments say of some rows."""
    pool = placed.pool
    topic, pair = placed.topic[rows], placed.pair[rows]
    n_documents = np.diff(pool.topic_starts)[topic] if len(topic) else topic
    n_relevant = np.bincount(pool.topic[relevant], minlength=len(pool.topics))[topic] if len(topic) else topic
    ours = df_relevant[pair]
    others = pool_df(pool)[pair] - ours
    counts = ours, others, n_relevant, n_documents - n_relevant
    odds = observable_relevance(*counts, alpha=ALPHA, tau=_NO_DISCOUNT)
    with np.errstate(invalid="ignore", divide="ignore"):
        lift = np.nan_to_num(label[rows] / (n_relevant / n_documents))
        reach = np.nan_to_num(ours / n_relevant)
    return {
        "the label": label[rows].astype(np.float64),
        "the number of relevant documents": ours.astype(np.float64),
        "the number of other documents": others.astype(np.float64),
        "lift": lift,
        "relevance coverage": reach,
        "log odds of relevance": odds,
        "OER": observable_relevance(*counts, alpha=ALPHA, tau=SHRINKAGE),
    }
