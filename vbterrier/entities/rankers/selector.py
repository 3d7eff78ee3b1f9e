"""Learned selection of entities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
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
from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.ids import numbers_of
from vbterrier.frames.parameters import choice, whole, whole_or_none
from vbterrier.frames.ranking import ranked
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from vbterrier.annotations import Bools, Floats


# The words of column names that say that a column was made from judgments.
_WORDS = re.compile(
    r"labels?|(df)?(non|ir)?rel(evant|evance)?|qrels?|oer|judged|judge?ments?|grades?|gain|precision|recall|lift|(log)?odds|"
    r"(non)?relcov|truth|gold"
)
# Of fewer rows an honest feature may by accident order all as judgments do.
_FEWEST = 20


def refuse_names(features: Sequence[str]) -> None:
    """Refuse features that are called as what is made from judgments.

    Raises
    ------
    ParameterError
        Names the feature.

    >>> refuse_names(["df", "df_rel"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: feature 'df_rel' is called as what judgments say; what is known from judgments \
alone cannot rank entities for new queries: drop it, or rename a column that is innocent
    """
    for name in features:
        words = re.split(r"[\W_\d]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
        if any(_WORDS.fullmatch(word) for word in words):
            raise ParameterError(
                f"feature {name!r} is called as what judgments say; what is known from judgments alone cannot rank "
                "entities for new queries: drop it, or rename a column that is innocent"
            )


def refuse_copies(features: Mapping[str, Floats], judged: Mapping[str, Floats]) -> None:
    """Refuse features from which something judged can be read off: equal, or each strictly monotone in the other.

    Parameters
    ----------
    features, judged
        Of the same rows, shape (n,) each. What is one value throughout tells nothing; of fewer than 20 rows only equal
        values count.

    Raises
    ------
    InputError
        Names the feature and what it repeats.

    >>> refuse_copies({"x": np.arange(20) % 2 * 0.3}, {"the label": 1.0 - np.arange(20) % 2})
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: feature 'x' repeats the label in all 20 rows; it was made from judgments: drop it
    """
    telling = {what: values for what, values in judged.items() if len(np.unique(values)) > 1}
    for name, values in features.items():
        for what, known in telling.items():
            if np.array_equal(values, known) or (len(values) >= _FEWEST and _same_order(values, known)):
                raise InputError(
                    f"feature {name!r} repeats {what} in all {len(values)} rows; it was made from judgments: drop it"
                )


def _same_order(one: Floats, other: Floats) -> bool:
    """Whether each is a strictly monotone function of the other."""
    places = [np.unique(values, return_inverse=True)[1] for values in (one, other, -other)]
    return np.array_equal(places[0], places[1]) or np.array_equal(places[0], places[2])


SUPERVISION = ("documents", "entities")


class EntitySelector(RunReranker, pt.Estimator):  # type: ignore[misc]
    """Rerank an entity run by a model learned from other queries (LambdaRank of LightGBM): E -> E.

    Features of an entity and a query: ``df``, ``df_distinct`` (documents of the pool that mention it; those that differ
    in their entities), ``mentions``, ``rank_support`` (``sum 1/rank``); ``score`` and ``rank`` in the run given;
    ``overlap``, ``jaccard``, ``query_share`` (words that query and name share: how many, of all, of the query's).

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.pool.LinkedPool`, or its K frame. Its labels are not read.
    features
        Names among those above, and further columns of the run.
    names
        Names of entities by id; otherwise the id with blanks for underscores.
    supervision
        What the qrels given to :meth:`fit` judge. ``"documents"``: an entity is a positive if relevant documents of
        the pool mention it and others do not, a negative the other way round, and left out where both do.
        ``"entities"``: the docno of qrels is an entity's id, or they come from
        :func:`~vbterrier.entities.supervision.entity_labels`; entities without a label are left out.
    rel
        The lowest relevant label of documents; unjudged ones of judged topics are not relevant.
    rounds
        How many trees at most.
    patience
        Stop after so many trees that do not raise nDCG@20 of the validation topics, where there are any; ``None`` never
        stops.
    parameters
        Further parameters of LightGBM, by its names.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.
    seed
        At least 0.

    Raises
    ------
    ParameterError
        An illegal value; a feature that is called as what judgments say.
    InputError
        A feature that repeats what judgments say, or is no number; nothing to learn from; a model asked before
        :meth:`fit`. See the contracts of runs and qrels.
    ModuleNotFoundError
        LightGBM is not installed; ``pip install 'vbterrier[ltr]'``.

    Notes
    -----
    One thread and LightGBM's deterministic mode: the order of rows and topics changes nothing. What the paper means by
    raw and deduplicated document frequency it does not say; ours are above.

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
        refuse_names(self.features)
        self.names, self.parameters = names, None if parameters is None else dict(parameters)
        self.supervision = choice("supervision", supervision, SUPERVISION)
        self.rel, self.rounds = whole("rel", rel), whole("rounds", rounds)
        self.patience, self.seed = whole_or_none("patience", patience), whole("seed", seed, low=0)
        self._model: str | None = None

    def fit(
        self, topics_or_res_tr: Any, qrels_tr: Any, topics_or_res_va: Any = None, qrels_va: Any = None
    ) -> EntitySelector:
        """Learn from the entity run of judged topics; stop early by another, where one is given.

        Returns
        -------
        EntitySelector
            Itself.
        """
        taught = self._taught(topics_or_res_tr, qrels_tr)
        checked = None
        if topics_or_res_va is not None and len(topics_or_res_va):
            checked = self._taught(topics_or_res_va, qrels_tr if qrels_va is None else qrels_va).examples()
        self._model = self._learn(taught.examples(), checked)
        return self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set scores and ranks of an entity run anew."""
        placed, table = self._described(inp)
        if not len(inp):
            return ranked(inp, name="entity run")
        if self._model is None:
            raise InputError(f"{self!r} has learned nothing yet; call fit, or take cross_validated")
        return ranked(placed.run.frame.assign(score=predict(self._model, table)), name="entity run")

    def cross_validated(self, topics_and_res: pd.DataFrame, qrels: Any, *, folds: int = 5) -> pd.DataFrame:
        """The entity run of all topics, each scored by a model that was learned from other topics.

        The fold of a topic follows from the seed and its id alone. One fold is predicted, the next one stops early
        (with ``patience`` and three folds or more), the others teach.

        Parameters
        ----------
        topics_and_res
            An entity run.
        qrels
            As for :meth:`fit`.
        folds
            At least 2.
        """
        folds = whole("folds", folds, low=2)
        taught = self._taught(topics_and_res, qrels)
        run = taught.placed.run
        fold = np.array([fold_of(qid, folds, self.seed) for qid in run.topics], dtype=np.int64)[run.topic]
        score = np.full(len(run), np.nan)
        stops = folds > 2 and self.patience is not None  # noqa: PLR2004 - one to learn from must be left
        for held in np.unique(fold).tolist():
            checked: Bools = (fold == (held + 1) % folds) & stops
            try:
                model = self._learn(
                    taught.examples((fold != held) & ~checked), taught.examples(checked) if checked.any() else None
                )
            except InputError as error:
                raise InputError(f"fold {held} of {folds}: {error}") from error
            score[fold == held] = predict(model, taught.table[fold == held])
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
        placed = self._placed(inp)
        return placed, feature_table(placed, self.features, self.names)

    def _taught(self, inp: pd.DataFrame, qrels: Any) -> LabelledRun:
        placed, table = self._described(inp)
        teach = from_entities if self.supervision == "entities" else from_documents
        taught = teach(placed, table, qrels, self.rel)
        suspects = {name: table[taught.rows, place] for place, name in enumerate(self.features) if _is_given(name)}
        refuse_copies(suspects, taught.judged)
        return taught

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EntitySelector) and bool(super().__eq__(other)) and same(self._model, other._model)

    __hash__ = RunReranker.__hash__


def fold_of(qid: str, folds: int, seed: int) -> int:
    """The fold of a query, from 0, whatever the others.

    >>> [fold_of(f"q{each}", 5, seed=0) for each in range(4)] == [fold_of(f"q{each}", 5, seed=0) for each in range(4)]
    True
    """
    return int(stream(seed, "fold", qid).integers(folds))


def _is_given(feature: str) -> bool:
    """Whether a feature comes with the run; the others are made here, from what is not judged."""
    return feature == "score" or feature not in FEATURES
