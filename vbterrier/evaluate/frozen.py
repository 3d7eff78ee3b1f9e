"""Rerankers that are trained once and evaluated, frozen, with the entities of several rankers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.entities.cross_validation import Folds, RowsByTopic, Teaching, fittable_copy, is_trained
from vbterrier.entities.pool import link_pool
from vbterrier.entities.provenance import require_independent, without_mark
from vbterrier.entities.stage import OnEntities, PoolLinks, TopEntities
from vbterrier.errors import InputError, ParameterError, choice, excerpt, whole
from vbterrier.evaluate.coverage import CoverageOptions, CoverageReport, coverage_report
from vbterrier.evaluate.inputs import input_table
from vbterrier.evaluate.reranking import POOL
from vbterrier.evaluate.scores import score
from vbterrier.evaluate.settings import (
    UNREACHED,
    Reachability,
    ReachableQrels,
    ReachOptions,
    judged_topics,
    setting_gaps,
)
from vbterrier.frames.contracts import system_items
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.frames.ranking import Run, loaded_run
from vbterrier.frames.results import Shown
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.systems import ONE
from vbterrier.measures.text import distinct_measures
from vbterrier.settings import Data, Inference, with_defaults
from vbterrier.stats.comparisons import comparisons
from vbterrier.stats.topic_intervals import N_RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.results import Figures


# The name of the entities of the training.
TRAINING = "training"
TRAIN_ON = ("conditional", "open-world")


@dataclass(frozen=True, eq=False, repr=False)
class FrozenReranker(Shown):
    """Result of :func:`evaluate_frozen`.

    - ``gaps``: name (``"reranker"`` or ``"pool"``), entities (of which ranker), measure, conditional, open_world, gap,
      low, high, level, method, n_qids, RelCov, NonRelCov; see ``gaps`` of
      :class:`vbterrier.evaluate.settings.Settings`
    - ``comparisons``: a P frame of the open-world document runs with the pool
    - ``report``: the three levels, a :class:`~vbterrier.evaluate.coverage.CoverageReport`: document systems are the
      pool, the reranker with the entities of each ranker, by the name of the latter, and further runs
    - ``runs``, ``entity_runs``: the open-world document run and the entity run of each ranker

    ``print`` shows the gaps and the three levels.
    """

    PRINTED = None

    gaps: pd.DataFrame
    comparisons: pd.DataFrame
    report: CoverageReport
    runs: dict[str, pd.DataFrame]
    entity_runs: dict[str, pd.DataFrame]

    def to_frame(self) -> pd.DataFrame:
        """Return ``gaps``: a row per document run, entity ranker and measure."""
        return self.gaps

    def _line(self) -> str:
        rankers = count_text(len(self.entity_runs), "entity run")
        return f"{rankers}; {', '.join(self.gaps['measure'].unique())}; {self.gaps['n_qids'].max()} topics"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Conditional minus open world", self.gaps, value="gap", by="measure", rule=0, heads=2)
        yield Panel("Differences a - b, open world", self.comparisons, value="diff", by="measure", rule=0, heads=2)
        yield from self.report._panels()  # noqa: SLF001 - a part of this result

    def _figures(self) -> Figures:
        return self.report._figures()  # noqa: SLF001 - a part of this result


@with_defaults
def evaluate_frozen(
    pool: Any,
    qrels: Any,
    measures: Sequence[str | ir_measures.Measure] = ("AP", "nDCG@20"),
    *,
    reranker: Any,
    entities: Mapping[str, Any],
    runs: Mapping[str, Any] | None = None,
    links: Any = None,
    folds: Any = 5,
    options: ReachOptions = ReachOptions(cutoff=20, rel=1, unreached="skip", train_on="conditional"),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
) -> FrozenReranker:
    """Train a reranker once per fold, freeze it, and evaluate it with its own and with other entities.

    In each fold, the reranker learns from the training topics with its own entities, from the documents that mention
    one of the first ``cutoff`` entities only. The same model then ranks the test topics: with its own entities
    (``"training"``) and with those of ``entities``, on the documents that they reach (conditional) and on the whole
    pool (open world).

    Parameters
    ----------
    pool, qrels, measures
        The documents to rerank, a run with the columns that the reranker needs; judgments (qid, docno, label), or a
        path; measures of documents.
    reranker
        A trained stage of links and entities, such as :class:`~vbterrier.entities.NeuralReranker`. Its entities are
        those of the training: an entity run, for example of :func:`~vbterrier.entities.closed_entities`, or a stage or
        pipeline. Pipelines with estimators are fitted on the training topics of each fold and frozen.
    entities
        Entity runs by name: frames, paths, or stages and pipelines of the documents.
    runs
        Further document runs by name, such as rerankers without entities: frames or paths. They are compared in the
        open world.
    links
        Entity links of documents; by default those of the reranker.
    folds
        See :func:`vbterrier.entities.cross_validated`.
    options
        A :class:`vbterrier.evaluate.ReachOptions`: ``cutoff``, ``rel``, ``unreached``, ``train_on``. ``cutoff`` is also
        that of the report.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0). The seed is also that of folds.

    Returns
    -------
    FrozenReranker
        ``gaps``: a row per document run, entity ranker and measure; ``comparisons`` with the pool; ``report``: a
        coverage report.

    Raises
    ------
    InputError, ParameterError
        A stage that cannot be trained; entities of the training that were cross-validated; names that occur twice.

    Notes
    -----
    No judgment of a test topic reaches its scores, except through entities that were made from its judgments, as those
    of ``closed_entities``: that is the closed side of the paper, on which every ranking reads the judgments. If a
    random order of these entities (:class:`~vbterrier.entities.RandomEntities`) has the same gap, the gap is that of
    the candidates.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.6.7 and 3.1 to 3.3, tables 1 to 3.

    Examples
    --------
    >>> import warnings
    >>> from vbterrier.entities import NeuralReranker, Training, link_pool
    >>> from vbterrier.entities.rankers.consensus import ConsensusEntities
    >>> rows = [(f"q{q}", f"d{q}.{d}", -d, f"E{d // 2}_{q}", int(d > 2)) for q in range(20) for d in range(6)]
    >>> pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    >>> pool = pool.assign(query="capital", text="a text")
    >>> links = link_pool(pool, pool[["docno", "entity_id"]])
    >>> entities = pd.DataFrame({"qid": pool["qid"].unique(), "docno": [f"E1_{q}" for q in range(20)], "score": 1.0})
    >>> training = Training(epochs=1)
    >>> reranker = NeuralReranker(links, entities, model="knrm", encoder=lambda text: [[1.0]], training=training)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # all topics are equal
    ...     judged, entities = pool[["qid", "docno", "label"]], {"open": ConsensusEntities(links)}
    ...     result = evaluate_frozen(pool, judged, ["AP"], reranker=reranker, entities=entities)
    >>> result.gaps[["name", "entities", "conditional", "open_world"]].round(2).values.tolist()
    [['reranker', 'training', 0.5, 0.38], ['pool', 'training', 0.5, 0.38], ['reranker', 'open', 0.38, 0.38], ['pool', \
'open', 0.38, 0.38]]
    """
    cutoff, rel, unreached, train_on = options.cutoff, options.rel, options.unreached, options.train_on
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    choice("train_on", train_on, TRAIN_ON)
    choice("unreached", unreached, UNREACHED)
    if not (isinstance(reranker, OnEntities) and hasattr(reranker, "fit")):
        raise ParameterError(
            f"reranker={excerpt(reranker)}: wanted a trained stage with entities, such as NeuralReranker"
        )
    cutoff, seed = whole("cutoff", cutoff), whole("seed", seed, low=0)
    further = dict(system_items(runs or {}))
    names = [POOL, TRAINING, *entities, *further]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(
            f"entities, runs: {twice[0]!r} occurs twice ({POOL!r} and {TRAINING!r} are taken); rename it"
        )
    refuse_ratios(map(str, distinct_measures(measures)), "vbterrier.score")
    judged = input_table(qrels, "qrels", read_qrels, ())
    documents = loaded_run(POOL, pool).only(set(judged["qid"].astype(str).unique()))
    if not len(documents):
        raise InputError("pool: no topic is judged in qrels; check that both use the same query ids")
    linked = _judged_links(reranker.links if links is None else links, documents, judged)
    if not is_pipeline(reranker.entities):
        require_independent(reranker.entities, "entities of the reranker", folds=True)
    sources = {TRAINING: reranker.entities} | {
        name: source if is_pipeline(source) else loaded_run(f"entities {name!r}", source).frame
        for name, source in entities.items()
    }
    made = _rankings(reranker, documents.frame, judged, sources, PoolLinks(linked), folds, cutoff, train_on, seed)
    how: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    gaps = []
    for name, part in made.items():
        reachability = Reachability(linked, Run(part.entities, name=f"entities {name!r}"), cutoff)
        labelled = ReachableQrels(judged, reachability, whole("rel", rel))
        within = labelled.conditional(unreached)
        conditional = {"reranker": part.conditional, POOL: reachability.reachable(documents)}
        conditional = {system: judged_topics(frame, within) for system, frame in conditional.items()}
        within_values, every_values = (
            score(systems, labels, measures, data=Data(on_topics="all", system=ONE), inference=inference).values
            for systems, labels in ((conditional, within), ({"reranker": part.every, POOL: documents.frame}, judged))
        )
        gaps.append(setting_gaps(within_values, every_values, labelled.coverage(), **how).assign(entities=name))
    table = pd.concat(gaps, ignore_index=True)
    table = table[["name", "entities", *table.columns.difference(["name", "entities"], sort=False)]]
    ranked = {name: part.every for name, part in made.items()}
    entity_runs = {name: part.entities for name, part in made.items()}
    report = coverage_report(
        entity_runs, linked, qrels=judged, doc_runs={POOL: documents.frame, **ranked, **further},
        cutoff=cutoff, measures=measures, baseline=POOL,
        options=CoverageOptions(rel=rel), data=Data(on_topics="all", system=ONE), inference=inference,
    )  # fmt: skip
    tested = comparisons(report.document_values, baseline=POOL, level=level, n_resamples=n_resamples, seed=seed)
    return FrozenReranker(table, tested, report, ranked, entity_runs)


def _judged_links(links: Any, documents: Run, qrels: pd.DataFrame) -> LinkedPool:
    """The links of the documents with their judgments."""
    source = PoolLinks(links).given
    tags = source.to_frame().dropna(subset="entity_id") if isinstance(source, LinkedPool) else source
    return link_pool(documents, tags[tags.columns.intersection(["qid", "docno", "entity_id", "weight"])], qrels)


@dataclass(frozen=True, eq=False)
class _Rankings:
    """The entity run of a ranker, and the rankings of the documents that it reaches and of all documents."""

    entities: pd.DataFrame
    conditional: pd.DataFrame
    every: pd.DataFrame


def _rankings(
    reranker: Any,
    pool: pd.DataFrame,
    qrels: pd.DataFrame,
    sources: Mapping[str, Any],
    links: PoolLinks,
    folds: Any,
    cutoff: int,
    train_on: str,
    seed: int,
) -> dict[str, _Rankings]:
    """Rankings of all topics, each by a reranker and by entity rankers of other topics."""
    topics, labels = RowsByTopic(pool, "pool"), RowsByTopic(qrels, "qrels")
    divided = Folds(folds, topics.names, seed)
    parts: dict[str, list[tuple[pd.DataFrame, ...]]] = {name: [] for name in sources}

    def training_rows(rows: pd.DataFrame, entities: pd.DataFrame) -> pd.DataFrame:
        return _reached_documents(links, rows, entities, cutoff) if train_on == "conditional" else rows

    for fold in divided:
        training, checked, test = (topics.rows(part) for part in (fold.training, fold.validation, fold.test))
        training_labels = labels.rows(fold.training | fold.validation)
        teaching = Teaching(training, training_labels, checked if len(checked) else None, training_labels, seed)
        rankers = {name: fittable_copy(source) for name, source in sources.items()}
        with divided.error_context(fold):
            for name, ranker in rankers.items():
                if name != TRAINING and is_trained(ranker):
                    teaching.fit_stage(ranker)
            entity_ranker = rankers[TRAINING]
            first = (
                teaching.cross_fit_transform(entity_ranker)
                if is_pipeline(entity_ranker)
                else _entities(entity_ranker, training)
            )
            entities = [first, _entities(entity_ranker, checked)]
            rows = [training_rows(rows, each) for rows, each in zip((training, checked), entities, strict=True)]
            model = fittable_copy(reranker).with_entities(without_mark(pd.concat(entities, ignore_index=True)))
            model.fit(rows[0], training_labels, rows[1] if len(rows[1]) else None, training_labels)
        for name, ranker in rankers.items():
            entity_run = _entities(ranker, test)
            frozen = model.with_entities(entity_run)
            within = _reached_documents(links, test, entity_run, cutoff)
            parts[name].append((entity_run, frozen.transform(within), frozen.transform(test)))
    return {
        name: _Rankings(*(pd.concat(frames, ignore_index=True) for frames in zip(*folds, strict=True)))
        for name, folds in parts.items()
    }


def _entities(source: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the entities of the topics of some documents."""
    if is_pipeline(source):
        rows_of_entities: pd.DataFrame = source.transform(rows)
        return rows_of_entities
    return RowsByTopic(source, "entities").rows(set(rows["qid"].astype(str).unique()))


def _reached_documents(links: PoolLinks, rows: pd.DataFrame, entities: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Return the documents that mention one of the first entities of their topic."""
    documents = links.of(Run(rows, name=POOL))
    reached = TopEntities.of(documents.pool, Run(entities, name="entities"), cutoff).reached_mask
    return rows.iloc[documents.row[reached]].reset_index(drop=True)
