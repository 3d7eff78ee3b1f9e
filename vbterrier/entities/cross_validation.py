"""Folds of topics, and pipelines whose estimators are fitted again in each fold."""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.provenance import of_cross_validated, require_independent, without_mark
from vbterrier.entities.stage import EntityStage, OnEntities
from vbterrier.errors import InputError, ParameterError, agreeing, examples, whole
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.ids import column_ids
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


# The largest number of folds within the training topics of a fold.
MAX_INNER_FOLDS = 5


def fold_number(qid: str, folds: int, seed: int) -> int:
    """Return the fold of a query, from 0; it does not depend on the other queries."""
    return int(stream(seed, "fold", qid).integers(folds))


@dataclass(frozen=True)
class Fold:
    """Topics of one fold: those that are scored, those of training, and those that determine when training stops."""

    number: int
    test: frozenset[str]
    training: frozenset[str]
    validation: frozenset[str]


class Folds:
    """The division of topics into folds.

    Parameters
    ----------
    folds
        The number of folds: the fold of a topic depends on seed and topic only, so that sizes differ. Or a splitter of
        scikit-learn, such as ``KFold(5, shuffle=True, random_state=0)``, whose folds have equal sizes. Or a given
        division: lists of topics, or a mapping of topic to fold, such as the published folds of Robust04.
    topics
        The topics to divide.
    seed
        The seed of hashed folds.
    validated
        If True and there are at least three folds, the next fold is the validation fold of each.

    Raises
    ------
    ParameterError
        Fewer than two folds; a division that is no partition.
    InputError
        A topic without a fold; too few topics.

    Examples
    --------
    >>> [sorted(fold.test) for fold in Folds([["q1", "q4"], ["q2"], ["q3"]], ["q1", "q2", "q3"], 0)]
    [['q1'], ['q2'], ['q3']]
    """

    def __init__(self, folds: Any, topics: Sequence[str], seed: int, *, validated: bool = True) -> None:
        self.given, self.topics, self.validated = folds, list(topics), validated
        made = self._hashed_folds(seed) if _is_number(folds) else self._parse_folds()
        self.parts = [frozenset(part) for part in made]
        used = [part for part in self.parts if part]
        if topics and len(used) < 2:  # noqa: PLR2004 - one to score, one to learn from
            self._refuse_few("they are in one fold")
        if _is_number(folds) and 0 < len(self.topics) < len(self):
            self._refuse_few("folds would be empty")

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Fold]:
        every = frozenset(self.topics)
        for number, test in enumerate(self.parts):
            if not test:
                continue
            # One fold must remain for training.
            following = self.parts[(number + 1) % len(self)]
            validation = following if self.validated and len(self) > 2 else frozenset()  # noqa: PLR2004
            training = every - test - validation
            if not training:
                self._refuse_few(f"none is left to learn from for fold {number}")
            yield Fold(number, test, training, validation)

    @contextmanager
    def error_context(self, fold: Fold) -> Iterator[None]:
        """Name the fold in errors of its training."""
        try:
            yield
        except InputError as error:
            raise InputError(f"fold {fold.number} of {len(self)}: {error}") from error

    def _hashed_folds(self, seed: int) -> list[set[str]]:
        made: list[set[str]] = [set() for _ in range(whole("folds", self.given, low=2))]
        for topic in self.topics:
            made[fold_number(topic, len(made), seed)].add(topic)
        return made

    def _parse_folds(self) -> list[list[str]]:
        if isinstance(self.given, (str, pd.DataFrame)):
            raise ParameterError(
                f"folds: found {type(self.given).__name__}, wanted a number, a splitter of scikit-learn, lists of "
                "topics, or a mapping of topic to fold"
            )
        if hasattr(self.given, "split"):
            in_order = sorted(self.topics)
            try:
                made = [[in_order[place] for place in test] for _, test in self.given.split(in_order)]
            except (TypeError, ValueError) as error:
                raise ParameterError(f"folds={self.given!r} cannot split {len(in_order)} topics: {error}") from error
        elif hasattr(self.given, "items"):
            names = dict.fromkeys(self.given.values())
            made = [[str(topic) for topic, name in self.given.items() if name == each] for each in names]
        else:
            made = [list(map(str, part)) for part in self.given]
        if len(made) < 2:  # noqa: PLR2004 - one to score, one to learn from
            raise ParameterError(f"folds: found {len(made)} fold, wanted at least 2")
        n_folds, topics = Counter(topic for part in made for topic in part), set(self.topics)
        if twice := sorted(topic for topic, n in n_folds.items() if n > 1):
            problem = agreeing(len(twice), "topics are in several folds")
            raise ParameterError(f"folds: {problem} ({examples(twice)})")
        if lost := sorted(topics - set(n_folds)):
            raise InputError(f"folds: {agreeing(len(lost), 'topics of the run are in no fold')} ({examples(lost)})")
        return [[topic for topic in part if topic in topics] for part in made]

    def _refuse_few(self, why: str) -> None:
        n = len(self.topics)
        sizes = ", ".join(str(len(part)) for part in self.parts)
        remedy = "use more topics"
        if n > 1 and _is_number(self.given):
            remedy += f", fewer folds, or folds of equal size: folds=sklearn.model_selection.KFold({min(n, len(self))})"
        topics = "1 topic is" if n == 1 else f"{n} topics are"
        raise InputError(f"{topics} too few for {len(self)} folds of sizes {sizes}: {why}; {remedy}")


def _is_number(folds: Any) -> bool:
    return isinstance(folds, (int, float, np.integer)) or folds is None


def _inner_parts(stage: pt.Transformer) -> dict[str, Any]:
    """The transformers inside a stage, by parameter."""
    return {name: part for name, part in pt.inspect.subtransformers(stage).items() if part}


def _inner_stages(stage: pt.Transformer) -> list[pt.Transformer]:
    """The transformers inside a stage."""
    return [each for part in _inner_parts(stage).values() for each in (part if isinstance(part, list) else [part])]


def is_trained(stage: Any) -> bool:
    """Return True for an estimator, and for stages and pipelines that contain one."""
    if not isinstance(stage, pt.Transformer):
        return False
    return isinstance(stage, pt.Estimator) or any(map(is_trained, _inner_stages(stage)))


def fittable_copy(stage: Any) -> Any:
    """Return a copy of a pipeline whose estimators can be fitted without an effect on the pipeline."""
    if not is_trained(stage):
        return stage
    made = copy.copy(stage) if isinstance(stage, EntityStage) else stage
    if isinstance(stage, pt.Estimator) and made is stage:
        # Estimators of other packages may hold models that they fit in place.
        return copy.deepcopy(stage)
    parts = {
        name: list(map(fittable_copy, part)) if isinstance(part, list) else fittable_copy(part)
        for name, part in _inner_parts(stage).items()
    }
    return replace_parts(made, parts) if parts else made


def replace_parts(stage: Any, parts: dict[str, Any]) -> Any:
    """Return a stage with other transformers inside."""
    if isinstance(stage, OnEntities):
        return stage.with_entities(parts["entities"])
    # Only stages of this package and operators of pipelines: a copied cache would return scores of another fold.
    if isinstance(stage, EntityStage) or type(stage).__module__ == pt.Compose.__module__:
        return pt.inspect.transformer_apply_attributes(stage, **parts)
    raise InputError(
        f"{type(stage).__name__} contains an estimator and cannot be copied for each fold; put the estimator before or "
        "after it in the pipeline"
    )


@dataclass(frozen=True)
class Teaching:
    """Input of the estimators of a pipeline: the runs of training and of validation topics, and judgments."""

    training: pd.DataFrame
    qrels: Any
    validation: pd.DataFrame | None = None
    qrels_va: Any = None
    seed: int = 0

    def fit_stage(self, stage: Any) -> None:
        """Fit all estimators of a stage in place, each on the cross-fitted output of the earlier ones."""
        if isinstance(stage, pt.Estimator):
            stage.fit(self.training, self.qrels, self.validation, self.qrels_va)
        elif isinstance(stage, pt.Compose):
            stages = list(stage)
            teaching, last = self, max(at for at, each in enumerate(stages) if is_trained(each))
            for each in stages[:last]:
                teaching = teaching.after(each)
            teaching.fit_stage(stages[last])
        else:
            for each in _inner_stages(stage):
                if is_trained(each):
                    self.fit_stage(each)

    def cross_fit_transform(self, stage: Any) -> pd.DataFrame:
        """Fit all estimators of a stage in place, and return its output for the training topics.

        The output for a topic is that of estimators that were fitted on other training topics.
        """
        if not is_trained(stage):
            made: pd.DataFrame = stage.transform(self.training)
            return made
        if isinstance(stage, pt.Compose):
            teaching = self
            for each in stage:
                teaching = teaching.after(each)
            return teaching.training
        if isinstance(stage, pt.Estimator):
            folds = _equal_folds(self.training, self.seed)
            made = out_of_fold_output(stage, self.training, self.qrels, folds, seed=self.seed)
            self.fit_stage(stage)
            return without_mark(made)
        parts = {
            name: [self._fixed_output(each) for each in part] if isinstance(part, list) else self._fixed_output(part)
            for name, part in _inner_parts(stage).items()
        }
        return without_mark(replace_parts(stage, parts).transform(self.training))

    def after(self, stage: Any) -> Teaching:
        """Fit a stage, and return the input of the next stage of a pipeline."""
        training, validation = self.cross_fit_transform(stage), self.validation
        if validation is not None:
            validation = stage.transform(validation)
            validation = without_mark(validation) if is_trained(stage) else validation
        return replace(self, training=training, validation=validation)

    def _fixed_output(self, stage: Any) -> pt.Transformer:
        return pt.Transformer.from_df(self.cross_fit_transform(stage), uniform=True)


def _equal_folds(run: pd.DataFrame, seed: int) -> Any:
    """Equal-sized folds within training topics, which no other topics influence."""
    from sklearn.model_selection import KFold

    n_topics = run["qid"].nunique()
    if n_topics < 2:  # noqa: PLR2004 - one to score, one to learn from
        raise InputError(
            f"{n_topics} training topics are too few for estimators in a sequence, each of which learns from the "
            "output of the earlier one for topics that this has not seen; use more topics or fewer folds"
        )
    return KFold(min(MAX_INNER_FOLDS, n_topics), shuffle=True, random_state=seed)


class RowsByTopic:
    """The rows of a frame by topic."""

    def __init__(self, frame: Any, name: str) -> None:
        self.frame = pandas_frame(frame, name)
        self.names, self._code = column_ids(self.frame["qid"], f"{name} column 'qid'").codes()

    def rows(self, topics: Collection[str]) -> pd.DataFrame:
        """Return the rows of some topics."""
        kept = np.array([name in topics for name in self.names], dtype=bool)
        return self.frame[kept[self._code]].reset_index(drop=True)


def out_of_fold_output(
    stage: Any, run: Any, qrels: Any, folds: Any, *, seed: int, validated: bool = True
) -> pd.DataFrame:
    """Return the output of a pipeline for all topics; all of its estimators are fitted again for each fold."""
    topics, labels = RowsByTopic(run, "run"), None if qrels is None else RowsByTopic(qrels, "qrels")
    parts = []
    divided = Folds(folds, topics.names, seed, validated=validated)
    for fold in divided:
        model = fittable_copy(stage)
        checked = topics.rows(fold.validation) if fold.validation else None
        labelled = None if labels is None else labels.rows(fold.training | fold.validation)
        with divided.error_context(fold):
            Teaching(topics.rows(fold.training), labelled, checked, labelled, seed).fit_stage(model)
        parts.append(model.transform(topics.rows(fold.test)))
    made = pd.concat(parts, ignore_index=True) if parts else stage.transform(topics.frame)
    place = {name: at for at, name in enumerate(topics.names)}
    order = np.argsort([place[name] for name in map(str, made["qid"])], kind="stable")
    return of_cross_validated(without_mark(made.iloc[order].reset_index(drop=True)), made)


def cross_validated(stage: Any, run: Any, qrels: Any, *, folds: Any = 5, seed: int = 0) -> pd.DataFrame:
    """Return the output of a stage or pipeline for all topics, each scored by estimators of other topics.

    All estimators are fitted again for each fold, also those inside stages (``entities=`` of rerankers) and several in
    sequence: an estimator learns from the output of earlier ones for training topics that these have not seen. So the
    judgments of a topic influence no score of the topic. They would if the output of one ``cross_validated`` were the
    input of another.

    Parameters
    ----------
    stage
        A stage or pipeline with an estimator, such as :class:`~vbterrier.entities.EntitySelector` or
        :class:`~vbterrier.entities.NeuralReranker`. It remains as it is.
    run, qrels
        The input of the pipeline, and judgments of documents (qid, docno, label).
    folds
        The number of folds, whose sizes differ because seed and topic alone determine the fold of a topic; or a
        splitter of scikit-learn, such as ``KFold(5, shuffle=True, random_state=0)``, for folds of equal size; or a
        division: lists of topics, or a mapping of topic to fold. With three or more folds, the next fold determines
        when training stops.
    seed
        The seed of the folds, at least 0.

    Returns
    -------
    pandas.DataFrame
        The output of the pipeline, with the column ``judgments``, which is ``"cross-validated"``.

    Raises
    ------
    InputError
        A run that was cross-validated already; too few topics; a stage of another package that contains an estimator.
    ParameterError
        Folds that are no partition of the topics; a pipeline without an estimator.

    Notes
    -----
    Nested fitting costs up to six times the training of a single estimator in each fold.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.7.

    Examples
    --------
    >>> from vbterrier.entities.rankers.consensus import ConsensusEntities
    >>> from vbterrier.entities.rankers.selector import EntitySelector
    >>> from vbterrier.entities import link_pool
    >>> from vbterrier.entities.rerank import OverlapReranker
    >>> rows = [(f"q{q}", f"d{q}.{d}", -d, f"E{d // 2}_{q}", int(d > 1)) for q in range(40) for d in range(4)]
    >>> pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    >>> links = link_pool(pool, pool[["docno", "entity_id"]])
    >>> selector = ConsensusEntities(links) >> EntitySelector(links, features=["rank_support"], rounds=5)
    >>> reranker = OverlapReranker(links, selector, cutoff=1, weight=0.9)
    >>> result = cross_validated(reranker, pool[["qid", "docno", "score"]], pool[["qid", "docno", "label"]])
    >>> result[["docno", "judgments"]].head(2).values.tolist()
    [['d0.2', 'cross-validated'], ['d0.3', 'cross-validated']]
    """
    if not is_trained(stage):
        raise ParameterError(f"stage: {stage!r} contains no estimator; call it, there is nothing to fit")
    run = pandas_frame(run, "run")
    require_independent(run, "run", folds=True)
    return out_of_fold_output(stage, run, qrels, folds, seed=whole("seed", seed, low=0))
