"""Grids of reranker configurations over one linked pool."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.rerank import RERANKER_FAMILIES
from vbterrier.entities.rerank.base import ENTITY_WEIGHTS, require_finite
from vbterrier.entities.stage import PoolLinks, TopEntities
from vbterrier.errors import ParameterError, agreeing, examples, excerpt, warn
from vbterrier.evaluate.grids import (
    GridOptions,
    GridResult,
    grid_items,
    grid_results,
    parameter_combinations,
    rankings_fingerprint,
    texts_fingerprint,
)
from vbterrier.evaluate.inputs import input_table, loaded_runs
from vbterrier.execution.checkpoint import Journal, rows_fingerprint
from vbterrier.frames.entity_coverage import warn_of_other_ids
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ids import column_ids, column_integers, require_same_kind
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import Run, loaded_run, run_places
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget, warn_of_few_non_relevant
from vbterrier.measures.text import distinct_measures
from vbterrier.measures.unjudged import Estimated, draw_models, estimand, evidence_models, needs_model
from vbterrier.settings import Execution, Inference, with_defaults
from vbterrier.stats.topic_intervals import N_RESAMPLES, topics_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import ir_measures

    from vbterrier.entities.rerank.base import Reranker
    from vbterrier.unjudged.fitted import EvidenceModel

    Values = dict[str, dict[str, float]]


# The configuration without reranking.
POOL = "pool"
RESOURCES = ("embeddings", "document_embeddings", "texts")
_CUTOFFS, _WEIGHTS = [5, 10, 20, 50], [0.1, 0.3, 0.5, 0.7, 0.9]
# 437 configurations, as many as the paper's, of the families that its section 2.6.5 names.
RERANK_GRID: dict[str, list[dict[str, list[Any]]]] = {
    "overlap": [
        {
            "cutoff": _CUTOFFS,
            "weight": _WEIGHTS,
            "entity_weight": [*ENTITY_WEIGHTS],
            "link_weight": ["uniform", "document"],
        },
        {"cutoff": _CUTOFFS, "weight": _WEIGHTS, "entity_weight": ["score"], "link_weight": ["entity"]},
        {"weight": [1.0]},
    ],
    "expansion": [{"cutoff": _CUTOFFS, "weight": _WEIGHTS, "n_terms": [10, 50, None]}],
    "embedding": [{"cutoff": _CUTOFFS, "weight": _WEIGHTS, "entity_weight": [*ENTITY_WEIGHTS]}],
    "propagation": [
        {"cutoff": _CUTOFFS, "damping": _WEIGHTS, "steps": [1, 2], "entity_weight": ["uniform", "idf"]},
    ],
    "similarity": [{"cutoff": [10, 20, 50], "damping": [0.3, 0.5, 0.7], "neighbours": [5, 10, 20, 50]}],
}
# A grid links the pool once: its stages hold parameters only, with empty links and entities.
_NO_LINKS = pd.DataFrame({"docno": [], "entity_id": []}, dtype=str)
_NO_ENTITIES = pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=str)
# Columns of a run without document text.
_KEYS = ("qid", "docno", "score", "rank", "query")


@dataclass(frozen=True)
class Configuration:
    """A family of rerankers with its parameters and the name of its entity run."""

    family: str
    entities: str
    parameters: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        if self.family == POOL:
            return POOL
        return f"{self.family}({', '.join(f'{name}={value!r}' for name, value in self.parameters)}) on {self.entities}"

    @property
    def evidence_key(self) -> tuple[Any, ...]:
        """Key of configurations that combine the same evidence."""
        cheap = RERANKER_FAMILIES[self.family].CHEAP if self.family != POOL else ()
        kept = tuple((name, value) for name, value in self.parameters if name not in cheap)
        return self.entities, self.family, kept


def reranker(family: str, parameters: Mapping[str, Any], resources: Mapping[str, Any]) -> Reranker:
    """A stage with the parameters of a configuration, and empty links and entities."""
    made: Any = RERANKER_FAMILIES[family]
    accepted = inspect.signature(made).parameters
    unknown = [name for name in parameters if name not in accepted or name in {"links", "entities", *RESOURCES}]
    if unknown:
        names = [name for name in accepted if name not in {"links", "entities", *RESOURCES}]
        raise ParameterError(
            f"grid: family {family!r} has no parameter {excerpt(unknown[0])} to vary; it has {', '.join(names)}"
        )
    arguments = dict(parameters) | {name: value for name, value in resources.items() if name in accepted}
    if "links" in accepted:
        arguments["links"] = _NO_LINKS
    if "embeddings" in accepted and arguments.get("embeddings") is None:
        raise ParameterError(f"grid: family {family!r} needs embeddings=, entity vectors by id")
    stage: Reranker = made(entities=_NO_ENTITIES, **arguments)
    return stage


class RerankGrid(GridResult):
    """Result of :func:`rerank_grid`, whose first configuration is the pool without reranking.

    The columns of ``runs``: configuration, family, entities, its parameters, measure, value, gain (over the pool), low,
    high (of the gain), level, n_qids, duplicate_of, and with measures of the E family estimand, the score that each
    estimates.
    """

    TITLE, NOUN, SHOWN = "Configurations", "configuration", "gain"


class RerankContext:
    """Evaluation of configurations on a pool with its links, entity runs, judgments and ``RESOURCES`` of stages."""

    def __init__(
        self,
        links: Any,
        pool: Run,
        runs: Mapping[str, Run],
        qrels: pd.DataFrame,
        measures: Sequence[ir_measures.Measure],
        resources: Mapping[str, Any],
        models: Mapping[str, EvidenceModel] | None = None,
    ) -> None:
        self.models = models or {}
        self.documents = PoolLinks(links).of(pool)
        require_finite(self.documents)
        unknown = np.flatnonzero(~self.documents.in_pool)
        if len(unknown):
            first = self.documents.pool.docno.take(unknown[:4]).text.to_pylist()
            warn(
                f"pool: {agreeing(len(unknown), 'documents are not in the linked pool and count as without entities')} "
                f"({examples(first)})"
            )
        for run in runs.values():
            require_same_kind(run.topic_ids, pool.topic_ids, f"{run.name} column 'qid'", "pool column 'qid'")
            require_same_kind(
                self.documents.pool.entities, run.docno, "links column 'entity_id'", f"{run.name} 'docno'"
            )
            listed, entities = run.only(pool.topics).docno, self.documents.pool
            warn_of_other_ids(entities, listed, entities.entities_of(listed), run.name)
        self.runs, self.qrels, self.measures, self.resources = dict(runs), qrels, list(measures), dict(resources)
        self._frame = pool.frame[["qid", "docno"]].iloc[self.documents.row].reset_index(drop=True)
        self._memo: dict[str, tuple[Hashable, Any]] = {}

    def values(self, configuration: Configuration) -> tuple[Values, str]:
        """The value of each measure and topic, and the fingerprint of the rankings."""
        run = Run(self._frame.assign(score=self.scores(configuration)), name=f"run {str(configuration)!r}")
        target = self._once("target", None, lambda: EvaluationTarget(self.qrels))
        internal = [measure for measure in self.measures if isinstance(measure, Measure)]
        external = [measure for measure in self.measures if not isinstance(measure, Measure)]
        values: Values = {str(measure): {} for measure in self.measures}
        internal_values = evaluate(internal, target, run, self.models) if internal else ()
        for topic, measure, value in chain(internal_values, external_values(external, target, run, warned=True)):
            values[str(measure)][topic] = value
        return values, rankings_fingerprint(run)

    def scores(self, configuration: Configuration) -> Any:
        """The score of each document."""
        if configuration.family == POOL:
            return self.documents.score
        stage = reranker(configuration.family, dict(configuration.parameters), self.resources)
        observed = self._once(
            "observed", configuration.evidence_key, lambda: self._match_entities(stage, configuration.entities)
        )
        return stage.scores(self.documents, observed)

    def _match_entities(self, stage: Reranker, entities: str) -> Any:
        run, kind = self.runs[entities], type(stage).__name__
        pool, cutoff = self.documents.pool, stage.cutoff
        top = self._once("listed", (entities, cutoff), lambda: TopEntities.of(pool, run, cutoff))
        # Depends on the documents alone: shared by all configurations of a family that read the same column.
        prepared = self._once(kind, getattr(stage, "field", None), lambda: stage.prepare_documents(self.documents))
        return stage.match_entities(top, prepared)

    def _once(self, name: str, key: Hashable, make: Callable[[], Any]) -> Any:
        """The stored value of this name if its key is the same, otherwise a new value."""
        if name not in self._memo or self._memo[name][0] != key:
            self._memo[name] = key, make()
        return self._memo[name][1]


def inputs_fingerprint(context: RerankContext) -> str:
    """Fingerprint of the inputs of a grid: the measures, and all data that configurations read."""
    documents, pool, resources = context.documents, context.documents.pool, context.resources
    topic = texts_fingerprint(pool.topics)[pool.topic]
    entity = pool.entities.fingerprints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    listed = [docno for run in context.runs.values() for docno in run.docno.text.to_pylist()]
    ids = sorted({*pool.entities.text.to_pylist(), *listed})
    texts = resources["texts"] or {}
    described = [entity_id for entity_id in ids if entity_id in texts]
    qrels, run, frame = context.qrels, documents.run, documents.run.frame
    qid, docno = (column_ids(qrels[name], f"qrels column {name!r}").fingerprints for name in ("qid", "docno"))
    columns = sorted(set(map(str, frame.columns)).difference(_KEYS))
    fields = [name for name in columns if all(isinstance(value, str) for value in frame[name])]
    parts = [
        *("values and rankings", *map(str, context.measures)),
        *(f"{name}: {model.digest}" for name, model in context.models.items()),
        rows_fingerprint([topic, pool.docno.fingerprints, documents.score]),
        rows_fingerprint([topic[pool.document], pool.docno.fingerprints[pool.document], entity, pool.weight]),
        rows_fingerprint([qid, docno, column_integers(qrels["label"], "qrels column 'label'")]),
        *(
            f"{name}: {rows_fingerprint([run.topic_ids.fingerprints[run.topic], run.docno.fingerprints, run.score])}"
            for name, run in sorted(context.runs.items())
        ),
        _vectors(resources["embeddings"] or {}, ids),
        _vectors(resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))),
        rows_fingerprint(
            [texts_fingerprint(described), texts_fingerprint([str(texts[entity_id]) for entity_id in described])]
        ),
        *(
            f"{name}: " + rows_fingerprint([run.docno.fingerprints, texts_fingerprint(frame[name].tolist())])
            for name in fields
        ),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _vectors(vectors: Mapping[str, Any], ids: list[str]) -> str:
    """Fingerprint of the vectors of some ids, in this order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in vectors:
            made.update(each.encode() + b"\0" + np.asarray(vectors[each], dtype=np.float64).tobytes())
    return made.hexdigest()


@with_defaults
def rerank_grid(
    pool: Any,
    qrels: Any,
    measures: Sequence[str | ir_measures.Measure] = ("AP",),
    *,
    links: Any,
    entity_runs: Any,
    grid: Any = None,
    options: GridOptions = GridOptions(embeddings=None, document_embeddings=None, texts=None),
    inference: Inference = Inference(interval="normal", level=0.95, n_resamples=N_RESAMPLES, seed=0),
    execution: Execution = Execution(n_jobs=1, resume=None, progress=True),
) -> RerankGrid:
    """Evaluate every configuration of a grid of rerankers on one linked pool.

    Parameters
    ----------
    pool, qrels, measures
        The documents to rerank, a run or its path, with the column ``text`` if a family reads it; a frame (qid, docno,
        label) or the path of TREC qrels; measures of this package or of ir_measures, or their names.
    links, entity_runs
        Entity links of documents: a :class:`~vbterrier.entities.LinkedPool`, its K frame, or tags (docno,
        entity_id [, weight, qid]); and entity runs by name, or paths.
    grid
        By family (``overlap``, ``expansion``, ``embedding``, ``propagation``, ``similarity``), a mapping of parameter
        to value or list of values, which are combined; or a list of such mappings. Other parameters have their
        defaults. A list of grids is the union of their configurations. By default
        ``vbterrier.evaluate.reranking.RERANK_GRID``: 437 configurations, of which those without resources (vectors;
        the column ``text``) are omitted, with a warning; scores of entities are at least 0.
    options
        A :class:`vbterrier.evaluate.GridOptions`: ``embeddings``, ``document_embeddings``, ``texts``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"normal"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0). Intervals of the gain over topics.
    execution
        An :class:`vbterrier.Execution`: ``n_jobs`` (1), ``resume``, ``progress`` (True). ``resume`` is a file to which
        results are appended. A later call with the same inputs and any grid resumes from it; a file of other inputs is
        refused. Inputs include texts and vectors.

    Returns
    -------
    RerankGrid
        ``runs``: a row per configuration and measure, with its gain over the pool.

    Notes
    -----
    A model of measures of the E family is fitted to the pool, and its estimates are for judgments of all of the pool.

    The paper's 437 configurations are listed in an appendix that is not part of it: the default grid has its families
    and its size, not its parameters. The pool is linked once. Configurations that differ in weights alone share all
    earlier computations. Intervals are not corrected for the number of configurations: among hundreds, some gain by
    chance.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.6.5 and 3.5.

    Examples
    --------
    >>> pool = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": ["a", "b", "c", "d"], "score": [2.0, 1.0, 2.0, 1.0]})
    >>> qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["b", "d"], "label": [1, 1]})
    >>> tags = pd.DataFrame({"docno": ["b", "d"], "entity_id": ["X", "X"]})
    >>> runs = {"mine": pd.DataFrame({"qid": ["1", "2"], "docno": ["X", "X"], "score": [1.0, 1.0]})}
    >>> options = {"links": tags, "entity_runs": runs, "grid": {"overlap": {"weight": [0.2, 0.8]}}}
    >>> result = rerank_grid(pool, qrels, ["RR"], **options, execution=Execution(progress=False))
    >>> result.runs[["family", "weight", "value", "gain"]].values.tolist()
    [['pool', nan, 0.5, 0.0], ['overlap', 0.2, 0.5, 0.0], ['overlap', 0.8, 1.0, 0.5]]
    >>> result.n_distinct, result.runs["duplicate_of"].dropna().tolist()
    (2, ['pool'])
    """
    embeddings, document_embeddings, texts = options.embeddings, options.document_embeddings, options.texts
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    n_jobs, path, progress = execution.n_jobs, execution.resume, execution.progress
    reported = distinct_measures(measures, "AP")
    refuse_ratios(map(str, reported), "vbterrier.score")
    judged = input_table(qrels, "qrels", read_qrels, ())
    documents = loaded_run(POOL, pool)
    runs = loaded_runs(entity_runs)
    target = EvaluationTarget(judged)
    run_places(documents, target.topics, target.qid, "qrels")
    resources = {"embeddings": embeddings, "document_embeddings": document_embeddings, "texts": texts}
    is_default, lacking = grid is None, lacking_resources(documents, embeddings)
    grid, omitted = without(RERANK_GRID, lacking) if is_default else (grid, ())
    every = configurations(grid, list(runs), resources)
    # Rerankings have the documents of the pool.
    warn_of_few_non_relevant(reported, target)
    models = evidence_models(reported, {POOL: documents}, target, pool_cutoff=_depth(reported, documents))
    draw_models(reported, models)
    context = RerankContext(links, documents.only(target.topics), runs, judged, reported, resources, models)
    journal = Journal(path, inputs_fingerprint(context))
    names = [str(measure) for measure in reported]
    # Adjacent configurations share computations.
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "key": lambda one: repr(one.evidence_key)}
    results = grid_results("configurations", context, {str(one): one for one in every}, journal, path, names, **how)
    table = _grid_frame(every, results, names, method=interval, level=level, n_resamples=n_resamples, seed=seed)
    if models:
        table["estimand"] = table["measure"].map({str(each): estimand(each, models) for each in reported})
    return RerankGrid.of(table, results, omitted)


def _depth(measures: Sequence[ir_measures.Measure], pool: Run) -> int | None:
    """The depth of complete judgments: all of the pool, whose documents a reranking can put in its first ranks."""
    if not needs_model(measures):
        return None
    cutoffs = [each.cutoff for each in measures if isinstance(each, Estimated) and each.cutoff is not None]
    deepest: int = max([pool.top(None).rows.shape[1], *cutoffs])
    return deepest


def lacking_resources(documents: Run, embeddings: Any) -> dict[str, str]:
    """Return the missing resource of each family that cannot be evaluated."""
    lacking = {} if "text" in documents.frame else {"expansion": "the column 'text' of the pool"}
    return lacking if embeddings is not None else lacking | dict.fromkeys(("embedding", "similarity"), "embeddings")


def without(grid: Mapping[str, Any], lacking: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the families of a default grid whose resources are given, and the names of the others, with a warning."""
    n, n_lost = (
        sum(len(list(parameter_combinations(values))) for family, values in grid.items() if family in families)
        for families in (grid, lacking)
    )
    if n_lost:
        needs = "; ".join(f"{family!r} needs {need}" for family, need in lacking.items())
        warn(f"grid: {n_lost} of {n} configurations are omitted, for lack of resources: {needs}")
    return {family: values for family, values in grid.items() if family not in lacking}, tuple(lacking)


def configurations(grid: Any, entity_runs: Sequence[str], resources: Mapping[str, Any]) -> list[Configuration]:
    """The distinct configurations of a grid with all checked parameters, after the pool without reranking."""
    made = [Configuration(POOL, "", ())]
    for family, values in grid_items(grid, RERANKER_FAMILIES):
        stage = reranker(family, values, resources)
        varied = [name for name in inspect.signature(type(stage)).parameters if name not in {"links", "entities"}]
        parameters = tuple((name, getattr(stage, name)) for name in varied if name not in RESOURCES)
        made += [Configuration(family, name, parameters) for name in entity_runs]
    if len(made) == 1:
        raise ParameterError("grid: no configuration; name at least a family and an entity run")
    return list(dict.fromkeys(made))


def _grid_frame(
    every: Sequence[Configuration], done: Mapping[str, Any], measures: list[str], **options: Any
) -> pd.DataFrame:
    """One row per configuration and measure."""
    heads = [{"configuration": str(one), "family": one.family, "entities": one.entities} for one in every]
    table = pd.DataFrame([head | dict(one.parameters) for head, one in zip(heads, every, strict=True)])
    tables = []
    for measure in measures:
        qids = list(done[POOL]["values"][measure])
        cells = np.array([[done[str(one)]["values"][measure][topic] for topic in qids] for one in every])
        gains = cells - cells[0]
        ends = topics_intervals(gains.T, qids=qids, bounds=score_bounds(f"{measure} - "), **options)
        # The pool gains nothing over itself.
        low, high = (np.where(table["family"] == POOL, 0.0, end) for end in (ends.low, ends.high))
        means = {"value": [row.mean() for row in cells], "gain": [row.mean() for row in gains]}
        made = table.assign(measure=measure, **means, low=low, high=high, level=options["level"], n_qids=len(qids))
        tables.append(made)
    return pd.concat(tables).sort_index(kind="stable", ignore_index=True)
