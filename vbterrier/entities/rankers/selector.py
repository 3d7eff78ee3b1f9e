"""Entity rankers learned from judgments: features, training rows, and LightGBM's LambdaRank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.entities.fingerprints import of_texts
from vbterrier.entities.learners import MAX_STAGE_BYTES, NDCG_CUTOFF, Learner, Prepared, TrainingTopic
from vbterrier.entities.pool import lookup_labels
from vbterrier.entities.rankers.base import RunOnPool, RunReranker, Topics
from vbterrier.entities.rankers.similarity import entity_texts
from vbterrier.entities.supervision import PARTITION_LABELS, partitions
from vbterrier.errors import (
    FileError,
    InputError,
    ParameterError,
    agreeing,
    choice,
    examples,
    excerpt,
    module_of_extra,
    warn,
    whole,
    whole_or_none,
)
from vbterrier.frames.contracts import LabelFrame, pandas_frame
from vbterrier.frames.files.source import read_content
from vbterrier.frames.ids import column_numbers
from vbterrier.frames.pool_links import UNJUDGED
from vbterrier.frames.ranking import places
from vbterrier.kernels.fingerprints import mix
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.linked_pool import LinkedPool


SUPERVISION = ("documents", "entities")
SUPPORT = ("df", "df_distinct", "mentions", "rank_support")
WORDS = ("overlap", "jaccard", "query_share")
FEATURES = (*SUPPORT, "score", "rank", *WORDS)
# Small trees, for a few hundred queries.
_DEFAULTS = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 10, "lambdarank_truncation_level": NDCG_CUTOFF}
_FIXED_PARAMETERS = {
    "objective": "lambdarank",
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
# LightGBM ignores an alias if the main name is given too, and only logs it.
_ALIASES = {
    "objective_type", "app", "application", "loss", "num_thread", "nthread", "nthreads", "n_jobs", "verbose",
    "random_seed", "random_state", "metrics", "metric_types", "ndcg_eval_at", "ndcg_at", "map_eval_at",
    "map_at", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds",
    "nrounds", "num_boost_round", "n_estimators", "max_iter", "early_stopping_round", "early_stopping_rounds",
    "early_stopping", "n_iter_no_change",
}  # fmt: skip


def distinct_documents(pool: LinkedPool) -> Bools:
    """Return True for the first document of each topic with a given multiset of entities, shape (n_documents,)."""
    # A sum of hashes does not depend on order, and entities of a document are distinct.
    mentioned = mix(mix(pool.entity.astype(np.uint64)) + pool.mentions.astype(np.uint64))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mentioned, dtype=np.uint64)])
    marks = mix(total[pool.starts[1:]] - total[pool.starts[:-1]]) ^ mix(pool.topic.astype(np.uint64))
    first = np.zeros(len(pool), dtype=bool)
    first[np.unique(marks, return_index=True)[1]] = True
    return first


def word_overlap(query: Sequence[str], name: Sequence[str]) -> Floats:
    """Return the word overlap of queries and names, shape (n, 3): its size, Jaccard coefficient, share of the query.

    A word counts once and case is ignored. The overlap of a text without words is 0.
    """
    from sklearn.preprocessing import MultiLabelBinarizer

    texts = {text: place for place, text in enumerate(dict.fromkeys([*query, *name]))}
    words = [form.split() for form in Words.of(list(texts)).forms()]
    contains = MultiLabelBinarizer(sparse_output=True).fit_transform(words)
    sizes = np.asarray(contains.sum(axis=1)).reshape(-1)
    left, right = (np.array([texts[text] for text in side], dtype=np.int64) for side in (query, name))
    shared: Floats = np.asarray(contains[left].multiply(contains[right]).sum(axis=1)).reshape(-1)
    union = sizes[left] + sizes[right] - shared
    return np.stack([shared, shared / np.maximum(union, 1), shared / np.maximum(sizes[left], 1)], axis=1)


def feature_table(aligned: RunOnPool, features: Sequence[str], names: Mapping[str, str] | None) -> Floats:
    """Return features of each row of an entity run, other than ``FEATURES`` its columns, shape (n_rows, n_features)."""
    run = aligned.run
    columns: dict[str, Any] = {"score": run.score, "rank": run.ranks() + 1.0}
    if set(features) & set(SUPPORT):
        pool, n = aligned.pool, len(aligned.pool.pairs)
        distinct = distinct_documents(pool)[pool.document]
        support = [
            pool.df,
            np.bincount(pool.pair[distinct], minlength=n),
            np.bincount(pool.pair, pool.mentions, minlength=n),
            np.bincount(pool.pair, 1.0 / (1 + pool.rank[pool.document]), minlength=n),
        ]
        columns |= {name: aligned.of_pairs(values) for name, values in zip(SUPPORT, support, strict=True)}
    if set(features) & set(WORDS):
        called = entity_texts(run.docno.text.to_pylist(), names)
        queries = Topics(run.frame).queries(run.topics)
        overlap = word_overlap([queries[topic] for topic in run.topic.tolist()], called)
        columns |= {name: overlap[:, place] for place, name in enumerate(WORDS)}
    made = [columns[name] if name in columns else run.frame[name].to_numpy(dtype=np.float64) for name in features]
    return np.stack(made, axis=1).astype(np.float64) if len(run) else np.empty((0, len(features)))


def aligned_entity_labels(aligned: RunOnPool, qrels: Any) -> Ints:
    """Return the given entity labels, as qrels or from ``entity_labels``, of rows; a label below 0 is missing."""
    frame, run = pandas_frame(qrels, "qrels"), aligned.run
    if "docno" not in frame and {"entity_id", "label"} <= set(frame.columns):
        frame = frame[frame["label"].notna()].rename(columns={"entity_id": "docno"})
    names = ("entity run", "entity run")
    return lookup_labels(LabelFrame(frame), run.topic_ids, run.topics, run.topic, run.docno, names, low=UNJUDGED)


def derived_entity_labels(aligned: RunOnPool, qrels: Any, rel: int) -> Ints:
    """Return entity labels derived from document labels (Chatterjee, arXiv 2604.05204, equation 5) of rows.

    The label is 1 if only relevant documents of the pool mention the entity, 0 if only non-relevant ones do, and
    unknown if both do, in topics without judgments, and for entities outside the pool.
    """
    pool, run, labels = aligned.pool, aligned.run, LabelFrame(qrels)
    relevant = lookup_labels(labels, run.topic_ids, pool.topics, pool.topic, pool.docno, ("entity run", "links")) >= rel
    unjudged = places(run.topics, labels.topics) < 0
    if unjudged.any():
        lost = [run.topics[each] for each in np.flatnonzero(unjudged).tolist()]
        warn(f"entity run: {agreeing(len(lost), 'topics are not in qrels and are not used')} ({examples(lost)})")
    df_relevant = np.bincount(pool.pair[relevant[pool.document]], minlength=len(pool.pairs))
    of_pair = PARTITION_LABELS[partitions(df_relevant, pool.df)]
    labelled = (aligned.pair >= 0) & ~unjudged[run.topic]
    return np.where(labelled, aligned.of_pairs(of_pair), UNJUDGED).astype(np.int64)


def refuse_copies(features: Mapping[str, Floats], label: Ints) -> None:
    """Refuse a feature that is an exact copy of the labels: equal to them, or a one-to-one recoding of them.

    Constant labels are not compared; if all labels differ, only equality counts, because then every column of distinct
    values is a recoding.
    """
    code, distinct = pd.factorize(label)
    for name, values in features.items():
        recoded = len(distinct) < len(label) and np.array_equal(pd.factorize(values)[0], code)
        if len(distinct) > 1 and (recoded or np.array_equal(values, label)):
            raise InputError(
                f"feature {name!r} is a copy of the label in all {len(label)} rows; it was made from judgments: drop it"
            )


class EntitySelector(Learner, RunReranker):
    """Rerank an entity run by a model learned from other queries (LightGBM's LambdaRank): E -> E.

    Features of an entity and a query: ``df`` (documents of the pool that mention the entity), ``df_distinct`` (the
    same, documents with equal entities counted once), ``mentions``, ``rank_support`` (``sum 1/rank``); ``score`` and
    ``rank`` in the input run; ``overlap``, ``jaccard``, ``query_share`` (the number of words shared by the query and
    the name of the entity, as a share of all words, as a share of the query).

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.LinkedPool`, or its K frame. Its labels are not read.
    features
        Names of the features above, and further columns of the run.
    names
        Names of entities by id. An entity without a name is named by its id, with spaces for underscores.
    supervision
        The unit that the qrels passed to :meth:`fit` judge. ``"documents"``: an entity is positive if only relevant
        documents of the pool mention it, negative if only non-relevant ones do, and left out if both do.
        ``"entities"``: the docno of qrels is an entity id, or the qrels come from
        :func:`~vbterrier.entities.supervision.entity_labels`; entities without a label are left out. Or a frame of
        entity labels (qid, entity_id, label), such as those of :func:`~vbterrier.entities.judge_entities`; the qrels
        are then not read.
    rel
        The lowest relevant label of documents; unjudged documents of judged topics are non-relevant.
    rounds, patience
        The largest number of trees, and of trees without a gain in nDCG@20 on validation topics, if there are any,
        after which training stops; ``None`` never stops.
    parameters, seed
        Further parameters of LightGBM.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        A feature that is an exact copy of the labels (see :func:`refuse_copies`) or not a number; no topic with
        positive and negative entities; a call before :meth:`fit`. See the contracts of runs and qrels.
    ModuleNotFoundError
        LightGBM is not installed; ``pip install 'vbterrier[ltr]'``.

    Notes
    -----
    LightGBM runs in one thread and in its deterministic mode: the order of rows and topics does not change the result.
    Only exact copies of the labels are refused: features must not be derived from the qrels in any other way, either.
    The paper does not define raw and deduplicated document frequency; the definitions above are this package's.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.6 (4) and equation 5. Burges: From RankNet
    to LambdaRank to LambdaMART, MSR-TR-2010-82.

    Examples
    --------
    >>> import pandas as pd
    >>> from vbterrier.entities.rankers.consensus import ConsensusEntities
    >>> from vbterrier.entities import link_pool
    >>> rows = [(f"q{q}", f"d{q}.{d}", -d, f"E{d // 2}_{q}", int(d > 1)) for q in range(40) for d in range(4)]
    >>> pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    >>> links = link_pool(pool, pool[["docno", "entity_id"]])
    >>> run = ConsensusEntities(links)(pool[["qid"]].drop_duplicates())
    >>> run["docno"].head(2).tolist()
    ['E0_0', 'E1_0']
    >>> learner = EntitySelector(links, features=["rank_support"], rounds=5)
    >>> learner.cross_validated(run, pool[["qid", "docno", "label"]])["docno"].head(2).tolist()
    ['E1_0', 'E0_0']
    """

    def __init__(
        self,
        links: Any,
        *,
        features: Sequence[str] = FEATURES,
        names: Mapping[str, str] | None = None,
        supervision: Any = "documents",
        rel: int = 1,
        rounds: int = 200,
        patience: int | None = 20,
        parameters: Mapping[str, Any] | None = None,
        pool_cutoff: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff)
        listed = hasattr(features, "__iter__") and not isinstance(features, str)
        self.features = tuple(features) if listed and all(isinstance(name, str) for name in features) else ()
        if not self.features or len(set(self.features)) < len(self.features):
            raise ParameterError(f"features={excerpt(features)}: wanted a list of different names")
        if parameters is not None and not hasattr(parameters, "items"):
            raise ParameterError(f"parameters={excerpt(parameters)}: wanted a mapping of LightGBM's names to values")
        self.names, self.parameters = names, None if parameters is None else dict(parameters)
        if isinstance(supervision, str):
            self.supervision: Any = choice("supervision", supervision, SUPERVISION)
        else:
            self.supervision = pandas_frame(supervision, "supervision").copy()
        self.rel, self.rounds = whole("rel", rel), whole("rounds", rounds)
        self.patience, self.seed = whole_or_none("patience", patience), whole("seed", seed, low=0)

    INPUT = "entity run"

    def _fingerprints(self, ids: Sequence[str]) -> dict[str, Any]:
        return {"names": of_texts(self.names, ids)}

    def _require_columns(self, inp: pd.DataFrame) -> None:
        further = [name for name in self.features if name not in FEATURES]
        query = ["query"] if set(WORDS) & set(self.features) else []
        self.require_columns(inp, "qid", "docno", "score", *query, *further)
        for name in further:
            column_numbers(inp[name], f"entity run column {name!r}")

    def _compute_features(self, inp: pd.DataFrame) -> Prepared:
        self._require_columns(inp)
        aligned = RunOnPool.on(self._pool, inp)
        run, table = aligned.run, feature_table(aligned, self.features, self.names)
        # By the ids of entities, so that the order of the input has no effect.
        order = np.lexsort((run.docno.ranks(), run.topic))
        rows = np.split(order, np.searchsorted(run.topic[order], np.arange(1, len(run.topics))))[: len(run.topics)]
        return Prepared(run, rows, [table[topic_rows] for topic_rows in rows], aligned=aligned)

    def _labels(self, prepared: Prepared, qrels: Any) -> list[Ints | None]:
        if isinstance(self.supervision, str) and self.supervision == "documents":
            label = derived_entity_labels(prepared.aligned, qrels, self.rel)
        else:
            label = aligned_entity_labels(
                prepared.aligned, qrels if isinstance(self.supervision, str) else self.supervision
            )
        made = [label[rows] for rows in prepared.rows]
        if made:
            table, labels = np.concatenate(prepared.features), np.concatenate(made)
            is_labelled = labels != UNJUDGED
            # Features that are computed here read no judgments.
            input_columns = [
                place for place, name in enumerate(self.features) if name == "score" or name not in FEATURES
            ]
            refuse_copies(
                {self.features[place]: table[is_labelled, place] for place in input_columns}, labels[is_labelled]
            )
        return [*made]

    def _example(self, qid: str, x: Floats, label: Ints) -> TrainingTopic:
        is_labelled = label != UNJUDGED
        return TrainingTopic(qid, x[is_labelled], label[is_labelled])

    def _train(self, training: Sequence[TrainingTopic], validation: Sequence[TrainingTopic]) -> str:
        """Fit trees, with early stopping if a validation topic has two labels, and return the model as text."""
        lightgbm, parameters = module_of_extra("lightgbm", "ltr"), self.parameters or {}
        reserved = sorted(set(parameters) & {*_FIXED_PARAMETERS, *_ALIASES, "seed", "metric", "eval_at"})
        if reserved:
            raise ParameterError(
                f"parameters: {reserved[0]!r} is set by the stage, so that its results are reproducible"
            )
        used, checked = (
            sorted((topic for topic in given if len(topic.label)), key=lambda topic: topic.qid)
            for given in (training, validation)
        )
        n = sum(len(topic.label) for topic in used)
        if not _has_contrast(used):
            raise InputError(
                f"no topic has positive and negative entities among {n} labelled entities of {len(used)} topics; use a "
                "longer entity run, or more judgments"
            )
        # The text format of LightGBM models allows few characters in names.
        names = [f"{at}_" + "".join(c if c.isalnum() else "_" for c in name) for at, name in enumerate(self.features)]
        given = {
            **_DEFAULTS,
            **parameters,
            **_FIXED_PARAMETERS,
            "seed": self.seed,
            "metric": "ndcg",
            "eval_at": [NDCG_CUTOFF],
        }

        def dataset(topics: Sequence[TrainingTopic], **further: Any) -> Any:
            table, label = (
                np.concatenate(parts) for parts in zip(*((each.x, each.label) for each in topics), strict=True)
            )
            sizes = [len(each.label) for each in topics]
            return lightgbm.Dataset(table, label, group=sizes, feature_name=names, params=given, **further)

        options, data = {}, dataset(used)
        if self.patience is not None and _has_contrast(checked):
            stop = lightgbm.early_stopping(self.patience, verbose=False)
            options = {"valid_sets": [dataset(checked, reference=data)], "callbacks": [stop]}
        model = lightgbm.train(given, data, self.rounds, **options)
        if not model.feature_importance().any():
            warn(f"nothing learned from {n} rows: all entities have the same score; lower min_data_in_leaf")
        return str(model.model_to_string())

    def _scores(self, learned: str, features: Sequence[Floats]) -> list[Floats]:
        booster = module_of_extra("lightgbm", "ltr").Booster(model_str=learned)
        values = np.asarray(booster.predict(np.concatenate(features), num_threads=1), dtype=np.float64)
        return np.split(values, np.cumsum([len(table) for table in features])[:-1])

    # A frame of labels is needed for training only.
    STORED: ClassVar[tuple[str, ...]] = ("features", "rel", "rounds", "patience", "parameters", "pool_cutoff", "seed")

    SUFFIX = ".txt"

    @staticmethod
    def _serialise_model(learned: str) -> bytes:
        return learned.encode()

    @staticmethod
    def _read_model(path: Path) -> str:
        lightgbm = module_of_extra("lightgbm", "ltr")
        try:
            text = read_content(path, MAX_STAGE_BYTES).decode()
            lightgbm.Booster(model_str=text)
        except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
            raise FileError(path, f"is not a saved model ({error}); write it with save") from error
        return text


def _has_contrast(topics: Sequence[TrainingTopic]) -> bool:
    """Return True if a topic has more than one label; other topics do not contribute to a ranking loss."""
    return any(len(set(topic.label.tolist())) > 1 for topic in topics)
