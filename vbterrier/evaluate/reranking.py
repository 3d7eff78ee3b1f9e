"""Grids of reranker configurations over one linked pool."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.entities.rerank import FAMILIES
from vbterrier.entities.rerank.base import require_finite
from vbterrier.entities.stage import PoolLinks, TopEntities, warn_of_other_ids
from vbterrier.errors import DegenerateWarning, FileError, ParameterError, examples, nearest, warn
from vbterrier.evaluate.inputs import named_runs, table_of
from vbterrier.execution.checkpoint import Journal, rows_fingerprint
from vbterrier.execution.parallel import mapped
from vbterrier.execution.pending import Shared
from vbterrier.frames.contracts import score_bounds, systems_of
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ids import Ids, ids_of, integers_of, require_same_kind
from vbterrier.frames.notebook import Panel, Shown, counted
from vbterrier.frames.ranking import Run, loaded_run, run_places
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.text import distinct_measures
from vbterrier.measures.unjudged import draw_models, models_of
from vbterrier.stats.topic_intervals import N_RESAMPLES, topics_intervals

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.entities.rerank.base import Reranker
    from vbterrier.unjudged.fitted import EvidenceModel

    Values = dict[str, dict[str, float]]


# The configuration without reranking.
POOL = "pool"
RESOURCES = ("embeddings", "document_embeddings", "texts")
_CUTOFFS, _WEIGHTS = [5, 10, 20, 50], [0.1, 0.3, 0.5, 0.7, 0.9]
_ENTITY_WEIGHTS = ["uniform", "rank", "score", "idf"]
# 437 configurations, as many as the paper's, of the families that its section 2.6.5 names.
RERANK_GRID: dict[str, list[dict[str, list[Any]]]] = {
    "overlap": [
        {
            "cutoff": _CUTOFFS,
            "weight": _WEIGHTS,
            "entity_weight": _ENTITY_WEIGHTS,
            "link_weight": ["uniform", "document"],
        },
        {"cutoff": _CUTOFFS, "weight": _WEIGHTS, "entity_weight": ["score"], "link_weight": ["entity"]},
        {"weight": [1.0]},
    ],
    "expansion": [{"cutoff": _CUTOFFS, "weight": _WEIGHTS, "n_terms": [10, 50, None]}],
    "embedding": [{"cutoff": _CUTOFFS, "weight": _WEIGHTS, "entity_weight": _ENTITY_WEIGHTS}],
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
    def shared(self) -> tuple[Any, ...]:
        """Key of configurations that combine the same evidence."""
        cheap = FAMILIES[self.family].CHEAP if self.family != POOL else ()
        kept = tuple((name, value) for name, value in self.parameters if name not in cheap)
        return self.entities, self.family, kept


def reranker(family: str, parameters: Mapping[str, Any], resources: Mapping[str, Any]) -> Reranker:
    """A stage with the parameters of a configuration, and empty links and entities."""
    made: Any = FAMILIES[family]
    known = inspect.signature(made).parameters
    unknown = [name for name in parameters if name not in known or name in {"links", "entities", *RESOURCES}]
    if unknown:
        raise ParameterError(f"grid: family {family!r} has no parameter {unknown[0]!r}")
    given = dict(parameters) | {name: value for name, value in resources.items() if name in known}
    if "links" in known:
        given["links"] = _NO_LINKS
    if "embeddings" in known and given.get("embeddings") is None:
        raise ParameterError(f"grid: family {family!r} needs embeddings=, entity vectors by id")
    stage: Reranker = made(entities=_NO_ENTITIES, **given)
    return stage


@dataclass(frozen=True, eq=False, repr=False)
class RerankGrid(Shown):
    """Result of :func:`rerank_grid`.

    - ``runs``: one row per configuration and measure, in the order of the grid, after the pool without reranking:
      configuration, family, entities, its parameters (missing if the family does not have them), measure, value (the
      mean over topics), gain (over the pool), low, high (of the gain), level, n_qids, duplicate_of (the first
      configuration with the same rankings of all topics, or missing)
    - ``values``: the V frame, whose names are configurations
    - ``omitted``: families of the default grid without the resources that they need
    """

    runs: pd.DataFrame
    values: pd.DataFrame
    omitted: tuple[str, ...]

    @property
    def n_distinct(self) -> int:
        """The number of configurations with different rankings, including the pool."""
        return n_distinct(self.runs)

    def _line(self) -> str:
        return grid_line(self.runs, "configuration")

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Configurations", self.runs, value="gain", by="measure", heads=1)


def n_distinct(runs: pd.DataFrame) -> int:
    """Return the number of configurations with different rankings in the table of a grid."""
    return int(runs.drop_duplicates("configuration")["duplicate_of"].isna().sum())


def grid_line(runs: pd.DataFrame, noun: str) -> str:
    """Summarise the table of a grid."""
    n = counted(runs["configuration"].nunique(), noun)
    return f"{n}, {n_distinct(runs)} with different rankings; {', '.join(runs['measure'].unique())}"


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
        unknown = np.flatnonzero(~self.documents.known)
        if len(unknown):
            first = self.documents.pool.docno.take(unknown[:4]).text.to_pylist()
            warn(
                f"pool: {len(unknown)} documents are not in the linked pool and count as without entities "
                f"({examples(first)})"
            )
        for run in runs.values():
            require_same_kind(run.topic_ids, pool.topic_ids, f"{run.name} column 'qid'", "pool column 'qid'")
            require_same_kind(
                self.documents.pool.entities, run.docno, "links column 'entity_id'", f"{run.name} 'docno'"
            )
            warn_of_other_ids(self.documents.pool, run.only(pool.topics).docno, run.name)
        self.runs, self.qrels, self.measures, self.resources = dict(runs), qrels, list(measures), dict(resources)
        self._frame = pool.frame[["qid", "docno"]].iloc[self.documents.row].reset_index(drop=True)
        self._memo: dict[str, tuple[Hashable, Any]] = {}

    def values(self, configuration: Configuration) -> tuple[Values, str]:
        """The value of each measure and topic, and the fingerprint of the rankings."""
        run = Run(self._frame.assign(score=self.scores(configuration)), name=f"run {str(configuration)!r}")
        target = self._once("target", None, lambda: EvaluationTarget(self.qrels))
        internal = [measure for measure in self.measures if isinstance(measure, Measure)]
        external = [measure for measure in self.measures if not isinstance(measure, Measure)]
        found: Values = {str(measure): {} for measure in self.measures}
        own = evaluate(internal, target, run, self.models) if internal else ()
        for topic, measure, value in chain(own, external_values(external, target, run, warned=True)):
            found[str(measure)][topic] = value
        return found, rankings_fingerprint(run, None)

    def scores(self, configuration: Configuration) -> Any:
        """The score of each document."""
        if configuration.family == POOL:
            return self.documents.score
        stage = reranker(configuration.family, dict(configuration.parameters), self.resources)
        observed = self._once("observed", configuration.shared, lambda: self._observed(stage, configuration.entities))
        return stage.scores(self.documents, observed)

    def _observed(self, stage: Reranker, entities: str) -> Any:
        run, kind = self.runs[entities], type(stage).__name__
        pool, cutoff = self.documents.pool, stage.cutoff
        top = self._once("listed", (entities, cutoff), lambda: TopEntities.of(pool, run, cutoff))
        # Depends on the documents alone: shared by all configurations of a family that read the same column.
        prepared = self._once(kind, getattr(stage, "field", None), lambda: stage.prepared(self.documents))
        return stage.observed(top, prepared)

    def _once(self, name: str, key: Hashable, make: Callable[[], Any]) -> Any:
        """The stored value of this name if its key is the same, otherwise a new value."""
        if name not in self._memo or self._memo[name][0] != key:
            self._memo[name] = key, make()
        return self._memo[name][1]


def inputs_fingerprint(context: RerankContext) -> str:
    """Fingerprint of the inputs of a grid: the measures, and all data that configurations read."""
    documents, pool, resources = context.documents, context.documents.pool, context.resources
    topic = _texts(pool.topics)[pool.topic]
    entity = pool.entities.fingerprints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    listed = [docno for run in context.runs.values() for docno in run.docno.text.to_pylist()]
    ids = sorted({*pool.entities.text.to_pylist(), *listed})
    texts = resources["texts"] or {}
    known = [entity_id for entity_id in ids if entity_id in texts]
    qrels, run, frame = context.qrels, documents.run, documents.run.frame
    qid, docno = (ids_of(qrels[name], f"qrels column {name!r}").fingerprints for name in ("qid", "docno"))
    columns = sorted(set(map(str, frame.columns)).difference(_KEYS))
    fields = [name for name in columns if all(isinstance(value, str) for value in frame[name])]
    parts = [
        *("values and rankings", *map(str, context.measures)),
        *(f"{name}: {model.digest}" for name, model in context.models.items()),
        rows_fingerprint([topic, pool.docno.fingerprints, documents.score]),
        rows_fingerprint([topic[pool.document], pool.docno.fingerprints[pool.document], entity, pool.weight]),
        rows_fingerprint([qid, docno, integers_of(qrels["label"], "qrels column 'label'")]),
        *(
            f"{name}: {rows_fingerprint([own.topic_ids.fingerprints[own.topic], own.docno.fingerprints, own.score])}"
            for name, own in sorted(context.runs.items())
        ),
        _vectors(resources["embeddings"] or {}, ids),
        _vectors(resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))),
        rows_fingerprint([_texts(known), _texts([str(texts[entity_id]) for entity_id in known])]),
        *(f"{name}: " + rows_fingerprint([run.docno.fingerprints, _texts(frame[name].tolist())]) for name in fields),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def rankings_fingerprint(run: Run, cutoff: int | None) -> str:
    """Fingerprint of the first documents of each topic and their order."""
    top = run.top(cutoff)
    topic, rank = top.filled
    return rows_fingerprint([_texts(run.topics)[topic], rank, top.docno.fingerprints])


def _texts(texts: list[str]) -> NDArray[np.uint64]:
    return Ids(pa.array(texts, pa.large_string())).fingerprints


def _vectors(given: Mapping[str, Any], ids: list[str]) -> str:
    """Fingerprint of the vectors of some ids, in this order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in given:
            made.update(each.encode() + b"\0" + np.asarray(given[each], dtype=np.float64).tobytes())
    return made.hexdigest()


def rerank_grid(
    links: Any,
    pool: Any,
    entity_runs: Any,
    qrels: Any,
    grid: Any = None,
    measures: Sequence[str | ir_measures.Measure] = ("AP",),
    *,
    embeddings: Mapping[str, Any] | None = None,
    document_embeddings: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
    n_jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    interval: str = "normal",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    progress: bool = True,
) -> RerankGrid:
    """Evaluate every configuration of a grid of rerankers on one linked pool.

    Parameters
    ----------
    links, pool
        Entity links of documents: a :class:`~vbterrier.entities.pool.LinkedPool`, its K frame, or tags (docno,
        entity_id [, weight, qid]); and the documents to rerank, a run or its path, with the column ``text`` if a family
        reads it.
    entity_runs, measures, qrels
        Entity runs by name, or paths; measures of this package or of ir_measures, or their names; a frame (qid, docno,
        label) or the path of TREC qrels.
    grid
        By family (``overlap``, ``expansion``, ``embedding``, ``propagation``, ``similarity``), a mapping of parameter
        to value or list of values, which are combined; or a list of such mappings. Other parameters have their
        defaults. A list of grids is the union of their configurations. By default ``RERANK_GRID`` of this module: 437
        configurations, of which those without resources (vectors; the column ``text``) are omitted, with a warning;
        scores of entities are at least 0.
    embeddings, document_embeddings, texts
        See :class:`~vbterrier.entities.rerank.EmbeddingReranker` and
        :class:`~vbterrier.entities.rerank.ExpansionReranker`.
    n_jobs, progress
        Number of processes, -1 for one per processor, on which results do not depend; show a progress bar.
    path
        A file to which results are appended. A later call with the same inputs and any grid resumes from it; a file of
        other inputs is refused. Inputs include texts and vectors.
    interval, level, n_resamples, seed
        Interval of the gain over topics, see :func:`vbterrier.score`; Student's t by default.

    Notes
    -----
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
    >>> found = rerank_grid(tags, pool, runs, qrels, {"overlap": {"weight": [0.2, 0.8]}}, ["RR"], progress=False)
    >>> found.runs[["family", "weight", "value", "gain"]].values.tolist()
    [['pool', nan, 0.5, 0.0], ['overlap', 0.2, 0.5, 0.0], ['overlap', 0.8, 1.0, 0.5]]
    >>> found.n_distinct, found.runs["duplicate_of"].dropna().tolist()
    (2, ['pool'])
    """
    asked = distinct_measures(measures, "AP")
    judged = table_of(qrels, "qrels", read_qrels, ())
    documents = loaded_run(POOL, pool)
    runs = {name: loaded_run(name, run) for name, run in systems_of(named_runs(entity_runs))}
    target = EvaluationTarget(judged)
    run_places(documents, target.topics, target.qid, "qrels")
    resources = {"embeddings": embeddings, "document_embeddings": document_embeddings, "texts": texts}
    is_default, lacking = grid is None, lacking_resources(documents, embeddings)
    grid, omitted = without(RERANK_GRID, lacking) if is_default else (grid, ())
    every = configurations(grid, list(runs), resources)
    # Rerankings have the documents of the pool.
    models = models_of(asked, {POOL: documents}, target)
    draw_models(asked, models)
    context = RerankContext(links, documents.only(target.topics), runs, judged, asked, resources, models)
    journal = Journal(path, inputs_fingerprint(context))
    names = [str(measure) for measure in asked]
    # Adjacent configurations share computations.
    options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "key": lambda one: repr(one.shared)}
    results = grid_results("configurations", context, {str(one): one for one in every}, journal, path, names, **options)
    table = _table(every, results, names, method=interval, level=level, n_resamples=n_resamples, seed=seed)
    return RerankGrid(table.merge(duplicates(results), how="left"), values_of(results), omitted)


def lacking_resources(documents: Run, embeddings: Any) -> dict[str, str]:
    """Return the missing resource of each family that cannot be evaluated."""
    lacking = {} if "text" in documents.frame else {"expansion": "the column 'text' of the pool"}
    return lacking if embeddings is not None else lacking | dict.fromkeys(("embedding", "similarity"), "embeddings")


def without(grid: Mapping[str, Any], lacking: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the families of a default grid whose resources are given, and the names of the others, with a warning."""
    n, n_lost = (
        sum(len(list(combined(values))) for family, values in grid.items() if family in families)
        for families in (grid, lacking)
    )
    if n_lost:
        needs = "; ".join(f"{family!r} needs {need}" for family, need in lacking.items())
        warn(f"grid: {n_lost} of {n} configurations are omitted, for lack of resources: {needs}")
    return {family: values for family, values in grid.items() if family not in lacking}, tuple(lacking)


def values_of(results: Mapping[str, Any]) -> pd.DataFrame:
    """The V frame of the results of a grid."""
    rows = [
        (name, qid, measure, value)
        for name, result in results.items()
        for measure, values in result["values"].items()
        for qid, value in values.items()
    ]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def duplicates(results: Mapping[str, Any]) -> pd.DataFrame:
    """The first configuration with the same rankings as each configuration, missing if it is the configuration."""
    first: dict[str, str] = {}
    same = [first.setdefault(result["ranking"], name) for name, result in results.items()]
    rows = [(name, None if name == other else other) for name, other in zip(results, same, strict=True)]
    return pd.DataFrame(rows, columns=["configuration", "duplicate_of"])


def grid_results(
    description: str,
    context: Any,
    every: Mapping[str, Any],
    journal: Journal,
    path: Any,
    measures: Sequence[str],
    *,
    n_jobs: int,
    progress: bool,
    key: Callable[[Any], Any] = lambda _: 0,
) -> dict[str, dict[str, Any]]:
    """Values and warnings of each configuration; new ones are computed in the order of a key and added to the journal.

    Warnings are summarised for the whole grid.
    """
    for name in every:
        if name in journal.done and not _is_result(journal.done[name], measures):
            raise FileError(str(path), f"has no valid values of {name!r}; remove its line")
    missing = sorted((name for name in every if name not in journal.done), key=lambda name: key(every[name]))
    with Shared(context) as shared:
        items = [every[name] for name in missing]
        found = mapped(partial(_evaluated, shared), items, n_jobs=n_jobs, progress=progress, description=description)
        for name, result in zip(missing, found, strict=True):
            journal.add(name, result)
    results = {name: journal.done[name] for name in every}
    messages = [result["warnings"][0] for result in results.values() if result["warnings"]]
    if messages:
        warn(f"{len(messages)} of {len(every)} configurations warn; the first warning: {messages[0]}")
    return results


def _evaluated(shared: Shared, configuration: Any) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values, ranking = shared.value.values(configuration)
    messages = [str(one.message) for one in caught if issubclass(one.category, DegenerateWarning)]
    return {"values": values, "ranking": ranking, "warnings": messages}


def _is_result(result: Any, measures: Sequence[str]) -> bool:
    """Return True if a result read from a file has the form that :func:`_evaluated` returns."""
    if not isinstance(result, dict) or not isinstance(result.get("values"), dict):
        return False
    values, messages = result["values"], result.get("warnings")
    return (
        isinstance(result.get("ranking"), str)
        and all(isinstance(values.get(measure), dict) for measure in measures)
        and all(isinstance(value, (int, float)) for measure in measures for value in values[measure].values())
        and isinstance(messages, list)
        and all(isinstance(message, str) for message in messages)
    )


def combined(given: Any) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of parameters; a single value is a list of one."""
    for values in [given] if hasattr(given, "items") else given:
        lists = [one if isinstance(one, (list, tuple, range, np.ndarray)) else [one] for one in values.values()]
        yield from (dict(zip(values, some, strict=True)) for some in product(*lists))


def grid_items(grid: Any, families: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the family and the parameters of each configuration of a grid, or of a list of grids."""
    grids = [grid] if hasattr(grid, "items") else grid
    if not isinstance(grids, (list, tuple)) or not all(hasattr(one, "items") for one in grids):
        raise ParameterError(
            f"grid: found {type(grid).__name__}, wanted a mapping of family to parameters, or a list of such mappings"
        )
    pairs = [pair for one in grids for pair in one.items()]
    for family, given in pairs:
        inner = [given] if hasattr(given, "items") else given
        if not isinstance(inner, (list, tuple)) or not all(hasattr(each, "items") for each in inner):
            raise ParameterError(
                f"grid: family {family!r} has {given!r}, wanted a mapping of parameter to values, or a list of "
                "such mappings"
            )
    for family, given in pairs:
        if family not in families:
            known = ", ".join(map(repr, families))
            raise ParameterError(f"grid: no family {family!r}; there are {known}.{nearest(str(family), families)}")
        for parameters in combined(given):
            yield family, parameters


def configurations(grid: Any, entity_runs: Sequence[str], resources: Mapping[str, Any]) -> list[Configuration]:
    """The distinct configurations of a grid with all checked parameters, after the pool without reranking."""
    made = [Configuration(POOL, "", ())]
    for family, values in grid_items(grid, FAMILIES):
        stage = reranker(family, values, resources)
        varied = [name for name in inspect.signature(type(stage)).parameters if name not in {"links", "entities"}]
        parameters = tuple((name, getattr(stage, name)) for name in varied if name not in RESOURCES)
        made += [Configuration(family, name, parameters) for name in entity_runs]
    if len(made) == 1:
        raise ParameterError("grid: no configuration; name at least a family and an entity run")
    return list(dict.fromkeys(made))


def _table(
    every: Sequence[Configuration], done: Mapping[str, Any], measures: list[str], **options: Any
) -> pd.DataFrame:
    """One row per configuration and measure."""
    heads = [{"configuration": str(one), "family": one.family, "entities": one.entities} for one in every]
    table = pd.DataFrame([head | dict(one.parameters) for head, one in zip(heads, every, strict=True)])
    tables = []
    for measure in measures:
        qids = list(done[POOL]["values"][measure])
        own = np.array([[done[str(one)]["values"][measure][topic] for topic in qids] for one in every])
        gains = own - own[0]
        ends = topics_intervals(gains.T, qids=qids, bounds=score_bounds(f"{measure} - "), **options)
        # The pool gains nothing over itself.
        low, high = (np.where(table["family"] == POOL, 0.0, end) for end in (ends.low, ends.high))
        means = {"value": [row.mean() for row in own], "gain": [row.mean() for row in gains]}
        made = table.assign(measure=measure, **means, low=low, high=high, level=options["level"], n_qids=len(qids))
        tables.append(made)
    return pd.concat(tables).sort_index(kind="stable", ignore_index=True)
