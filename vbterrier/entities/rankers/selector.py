"""Entity rankers learned from judgments with LambdaRank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.rankers.base import RunOnPool, RunReranker
from vbterrier.entities.rankers.learning import (
    FEATURES,
    WORDS,
    Examples,
    LabelledRun,
    feature_table,
    from_documents,
    from_entities,
    learn,
    predict,
)
from vbterrier.entities.stage import same
from vbterrier.errors import InputError, ParameterError, choice, whole, whole_or_none
from vbterrier.frames.ids import numbers_of
from vbterrier.frames.ranking import ranked
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.annotations import Bools, Floats, Ints


SUPERVISION = ("documents", "entities")


def refuse_copies(features: Mapping[str, Floats], label: Ints) -> None:
    """Refuse a feature that is an exact copy of the labels: equal to them, or a one-to-one recoding of them.

    - ``features``: columns by name, shape (n,) each
    - ``label``: the labels of the same rows, shape (n,). Constant labels are not compared; if all labels differ, only
      equality counts, because then every column of distinct values is a recoding.
    """
    code, n = _coded(label)
    for name, values in features.items():
        equal = np.array_equal(values, label)
        recoded = n < len(label) and np.array_equal(_coded(values)[0], code)
        if n > 1 and (equal or recoded):
            raise InputError(
                f"feature {name!r} is a copy of the label in all {len(label)} rows; it was made from judgments: drop it"
            )


def _coded(values: Any) -> tuple[Ints, int]:
    """Values as numbers in order of appearance, shape (n,), and the number of distinct values."""
    code, distinct = pd.factorize(values)
    return code, len(distinct)


class EntitySelector(RunReranker, pt.Estimator):  # type: ignore[misc]
    """Rerank an entity run by a model learned from other queries (LightGBM's LambdaRank): E -> E.

    Features of an entity and a query: ``df`` (documents of the pool that mention the entity), ``df_distinct`` (the
    same, documents with equal entities counted once), ``mentions``, ``rank_support`` (``sum 1/rank``); ``score`` and
    ``rank`` in the input run; ``overlap``, ``jaccard``, ``query_share`` (the number of words shared by the query and
    the name of the entity, as a share of all words, as a share of the query).

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.pool.LinkedPool`, or its K frame. Its labels are not read.
    features
        Names of the features above, and further columns of the run.
    names
        Names of entities by id. An entity without a name is named by its id, with spaces for underscores.
    supervision
        The unit that the qrels passed to :meth:`fit` judge. ``"documents"``: an entity is positive if only relevant
        documents of the pool mention it, negative if only non-relevant ones do, and left out if both do.
        ``"entities"``: the docno of qrels is an entity id, or the qrels come from
        :func:`~vbterrier.entities.supervision.entity_labels`; entities without a label are left out.
    rel
        The lowest relevant label of documents; unjudged documents of judged topics are non-relevant.
    rounds
        The largest number of trees.
    patience
        Stop after this many trees without a gain in nDCG@20 on the validation topics, if there are any; ``None`` never
        stops.
    parameters
        Further parameters of LightGBM.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.
    seed
        At least 0.

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
    >>> from vbterrier.entities.pool import link_pool
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
        supervision: str = "documents",
        rel: int = 1,
        rounds: int = 200,
        patience: int | None = 20,
        parameters: Mapping[str, Any] | None = None,
        pool_cutoff: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff)
        self.features = tuple(features)
        if not self.features or isinstance(features, str) or len(set(self.features)) < len(self.features):
            raise ParameterError(f"features={features!r}: wanted a list of different names")
        self.names, self.parameters = names, None if parameters is None else dict(parameters)
        self.supervision = choice("supervision", supervision, SUPERVISION)
        self.rel, self.rounds = whole("rel", rel), whole("rounds", rounds)
        self.patience, self.seed = whole_or_none("patience", patience), whole("seed", seed, low=0)
        self._model: str | None = None

    def fit(
        self, topics_or_res_tr: Any, qrels_tr: Any, topics_or_res_va: Any = None, qrels_va: Any = None
    ) -> EntitySelector:
        """Learn from the entity run of judged topics; validation topics, if given, determine early stopping.

        Returns
        -------
        EntitySelector
            Itself.
        """
        labelled = self._labelled(topics_or_res_tr, qrels_tr)
        checked = None
        if topics_or_res_va is not None and len(topics_or_res_va):
            checked = self._labelled(topics_or_res_va, qrels_tr if qrels_va is None else qrels_va).examples()
        self._model = self._learn(labelled.examples(), checked)
        return self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace the scores and ranks of an entity run."""
        aligned, table = self._described(inp)
        if not len(inp):
            return ranked(inp, name="entity run")
        if self._model is None:
            raise InputError(f"{self!r} is not fitted; call fit, or use cross_validated")
        return ranked(aligned.run.frame.assign(score=predict(self._model, table)), name="entity run")

    def cross_validated(self, topics_and_res: pd.DataFrame, qrels: Any, *, folds: int = 5) -> pd.DataFrame:
        """Return the entity run of all topics, each scored by a model learned from other topics.

        The fold of a topic depends on the seed and the topic's id only. For each fold that is predicted, the next fold
        determines early stopping (with ``patience`` and at least three folds), and the remaining folds are used for
        training.

        Parameters
        ----------
        topics_and_res
            An entity run.
        qrels
            As for :meth:`fit`.
        folds
            The number of folds, at least 2.
        """
        folds = whole("folds", folds, low=2)
        labelled = self._labelled(topics_and_res, qrels)
        run = labelled.aligned.run
        fold = np.array([fold_of(qid, folds, self.seed) for qid in run.topics], dtype=np.int64)[run.topic]
        score = np.full(len(run), np.nan)
        stops = folds > 2 and self.patience is not None  # noqa: PLR2004 - one fold must remain for training
        for test_fold in np.unique(fold).tolist():
            checked: Bools = (fold == (test_fold + 1) % folds) & stops
            try:
                model = self._learn(
                    labelled.examples((fold != test_fold) & ~checked),
                    labelled.examples(checked) if checked.any() else None,
                )
            except InputError as error:
                raise InputError(f"fold {test_fold} of {folds}: {error}") from error
            score[fold == test_fold] = predict(model, labelled.table[fold == test_fold])
        return ranked(run.frame.assign(score=score), name="entity run")

    def _learn(self, examples: Examples, checked: Examples | None) -> str:
        return learn(
            examples,
            checked if self.patience is not None else None,
            names=self.features,
            rounds=self.rounds,
            patience=self.patience or 0,
            parameters=self.parameters or {},
            seed=self.seed,
        )

    def _described(self, inp: pd.DataFrame) -> tuple[RunOnPool, Floats]:
        """A run on the pool, and its features."""
        further = [name for name in self.features if name not in FEATURES]
        query = ["query"] if set(WORDS) & set(self.features) else []
        pt.validate.result_frame(inp, extra_columns=["score", *query, *further])
        for name in further:
            numbers_of(inp[name], f"entity run column {name!r}")
        aligned = RunOnPool.on(self._pool, inp)
        return aligned, feature_table(aligned, self.features, self.names)

    def _labelled(self, inp: pd.DataFrame, qrels: Any) -> LabelledRun:
        aligned, table = self._described(inp)
        labels_from = from_entities if self.supervision == "entities" else from_documents
        labelled = labels_from(aligned, table, qrels, self.rel)
        # Features that are computed here read no judgments.
        given = [place for place, name in enumerate(self.features) if name == "score" or name not in FEATURES]
        refuse_copies(
            {self.features[place]: table[labelled.rows, place] for place in given}, labelled.label[labelled.rows]
        )
        return labelled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EntitySelector) and bool(super().__eq__(other)) and same(self._model, other._model)

    __hash__ = RunReranker.__hash__


def fold_of(qid: str, folds: int, seed: int) -> int:
    """Return the fold of a query, from 0; it does not depend on the other queries.

    >>> [fold_of(f"q{each}", 5, seed=0) for each in range(4)] == [fold_of(f"q{each}", 5, seed=0) for each in range(4)]
    True
    """
    return int(stream(seed, "fold", qid).integers(folds))
